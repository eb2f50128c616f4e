/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

/*
 * The one thing that daemon and hook share on disk: an empty file for each domain that this host
 * expects, named by its UUID.  Without it the hook doesn't call the daemon, so booting a guest is
 * never delayed, nor stopped by a daemon that is out of order.  The databases stay the only
 * journal: a daemon that starts makes these files anew from the markers.
 */

#define PF_RUNTIME_DIR "/run/portferry"
#define PF_RUNTIME_INCOMING_DIR PF_RUNTIME_DIR "/incoming"

/* Makes the folder, and empties it.  PF_ERROR_FAILED if that can't be done. */
gboolean pf_runtime_prepare(GError **error);

/* Makes or removes the file of the domain 'uuid' (canonical).  A failure is logged by g_warning():
 * it makes the gate of this one migration ineffective, not more. */
void pf_runtime_set_incoming(const char *uuid, gboolean incoming);
