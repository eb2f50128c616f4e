/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Wires the adapters together: knows all handovers of this host, begins them from the hook's calls
 * and from what the databases say, and hands every event to the handover that it is about.
 */

#include <glib.h>
#include <systemd/sd-event.h>

#include "configuration.h"

typedef struct PfManager PfManager;

/* Called once when the daemon can't go on, with the reason. */
typedef void (*PfManagerFatal)(const GError *error, gpointer data);

/* Reads the configuration as it is now, or fails with PF_ERROR_BAD_CONFIG. */
typedef PfConfig *(*PfManagerLoad)(gpointer data, GError **error);

/* 'config' becomes the manager's, in any case; 'load' gives it another one when it is asked to
 * reload.  'bus_address' NULL: the system bus.  NULL with 'error' if a setting makes no sense. */
PfManager *pf_manager_new(PfConfig *config, PfManagerLoad load, sd_event *event,
                          const char *bus_address, PfManagerFatal fatal, gpointer data,
                          GError **error);

/* Follows the configuration as it is now: everything that begins from here on uses it, a limit that
 * is running already stays.  Open handovers stay open.  Returns the names of changed keys that only
 * a restart can follow (g_strfreev()); until then the old value goes.  On an error all stays as it
 * was: NULL. */
char **pf_manager_reload(PfManager *manager, GError **error);
void pf_manager_free(PfManager *manager);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfManager, pf_manager_free)
