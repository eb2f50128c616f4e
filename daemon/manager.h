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

/* 'config' must outlive the manager.  'bus_address' NULL: the system bus.  NULL with 'error' if a
 * setting makes no sense. */
PfManager *pf_manager_new(const PfConfig *config, sd_event *event, const char *bus_address,
                          PfManagerFatal fatal, gpointer data, GError **error);
void pf_manager_free(PfManager *manager);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfManager, pf_manager_free)
