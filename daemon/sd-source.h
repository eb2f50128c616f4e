/* SPDX-License-Identifier: LGPL-2.1-or-later */

#pragma once

#include <glib.h>
#include <systemd/sd-event.h>

/*
 * Runs 'event' as a source of the default main context, at 'priority' (G_PRIORITY_*): what is
 * attached to it (sd-bus) and its watchdog (sd_event_set_watchdog(), WATCHDOG_USEC) work in GLib's
 * loop, so the watchdog proves that this loop goes round.  Takes a reference to 'event'.
 * Returns the source's id for g_source_remove().  The source ends by itself after sd_event_exit().
 *
 * Relies on sd_event_prepare(3): sd_event_get_fd() is readable when sd_event_wait(event, 0) would
 * find something.
 */
guint pf_sd_source_add(sd_event *event, gint priority);
