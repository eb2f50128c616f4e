/* SPDX-License-Identifier: LGPL-2.1-or-later */

#pragma once

#include <glib.h>

/*
 * What the service manager is told (sd_notify(3)), and its watchdog.  sd_notify() itself waits when
 * the service manager does not read, and the loop would wait with it; here what can't be sent at
 * once is kept and tried again.  Everything is a no-op where nobody has set NOTIFY_SOCKET.
 */

/* Sends a state, such as "READY=1"; in the order of the calls. */
void pf_notify(const char *state);

/* Sends STATUS=; one that still waits to be sent is forgotten for it. */
void pf_notify_status(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* Sends the watchdog its signs of life from the main loop, as often as it asks for. */
void pf_notify_watchdog(void);

/* Stops all of that.  What has not been sent is lost. */
void pf_notify_end(void);
