/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The queue of a guest's tap: where packets wait while the guest stands still.
 */

#include <glib.h>

/* Drops what waits in the queue of the interface 'name' and makes it 'length' packets long.  The
 * length that it had is stored in '*ret_before' (may be NULL).  PF_ERROR_FAILED if it can't be done
 * (no such interface, no CAP_NET_ADMIN).
 *
 * Relies on tun_queue_resize() of Linux (since 4.8): a new length moves what fits into a new ring
 * and drops the rest, so that a length of 0 in between drops everything. */
gboolean pf_tap_renew_queue(const char *name, guint length, guint *ret_before, GError **error);

/* Changes the length alone.  What waits stays, as far as it fits. */
gboolean pf_tap_set_queue(const char *name, guint length, GError **error);

/* Whether there is an interface 'name'; TRUE if that can't be found out. */
gboolean pf_tap_exists(const char *name);
