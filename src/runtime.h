/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

#include "configuration.h"

/*
 * The one thing that daemon and hook share on disk: a file for each domain that this host expects,
 * named by its UUID.  Without it the hook doesn't call the daemon, so booting a guest is never
 * delayed, nor stopped by a daemon that is out of order.  The databases stay the only journal: a
 * daemon that starts makes these files anew from the markers.
 *
 * The file says how long the daemon may take to answer at the gate, which the configuration alone
 * doesn't tell: a domain may have a limit of its own, and an operator may hold the gate at any
 * moment, also while the hook waits there.  The hook therefore reads it again before it gives up.
 */

#define PF_RUNTIME_DIR "/run/portferry"
#define PF_RUNTIME_INCOMING_DIR PF_RUNTIME_DIR "/incoming"

/* Makes the folder, and empties it.  PF_ERROR_FAILED if that can't be done. */
gboolean pf_runtime_prepare(GError **error);

/* What the file says. */
typedef struct {
    gint64 limit;       /* microseconds from the hook's call on; then the daemon has answered */
    gint64 until;       /* or not before this moment (g_get_monotonic_time()), if that is later */
    PfPolicy otherwise; /* what to do if it has not */
} PfIncoming;

/* The most bytes that the file has. */
#define PF_INCOMING_MAX 64

/* Makes the file of the domain 'uuid' (canonical) or replaces it; or, with NULL, removes it.  A
 * failure is logged by g_warning(): it makes the gate of this one migration ineffective, not
 * more. */
void pf_runtime_set_incoming(const char *uuid, const PfIncoming *incoming);

/* Reads 'size' bytes of such a file.  FALSE for anything that portferry would not have written, the
 * empty file included.  Async-signal-safe: the hook calls it when its time is over. */
gboolean pf_incoming_parse(const char *text, gsize size, PfIncoming *incoming);
