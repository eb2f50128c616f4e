/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "client.h"

/* What portferryd says of itself and of its handovers.  What an older portferryd does not tell
 * stays NULL or 0; strings that it tells are never NULL. */

#define PF_REMOTE_NAME "org.portferry1"
#define PF_REMOTE_PATH "/org/portferry1"
#define PF_REMOTE_MANAGER "org.portferry1.Manager"
#define PF_REMOTE_HANDOVER "org.portferry1.Handover"

typedef struct {
    char *iface_id, *mac, *state;
} PfRemotePort;

typedef struct {
    char *phase;
    gint64 time_us;
} PfRemotePhase;

typedef struct {
    char *path;
    char *id, *domain, *uuid, *role, *phase, *source, *destination, *peer, *last_error;
    char *outcome, *waiting;
    gint64 started_us, ended_us, deadline_us;
    bool held, by_hand;
    GArray *ports;  /* of PfRemotePort */
    GArray *phases; /* of PfRemotePhase, oldest first */
} PfRemoteHandover;

typedef struct {
    char *version, *hostname, *chassis;
    char *libvirt_state, *northbound_state, *southbound_state, *switch_state;
    GPtrArray *counter_names; /* of char * */
    GArray *counter_values;   /* of guint64 */
} PfRemoteManager;

PfRemoteHandover *pf_remote_handover_new(const char *path);
void pf_remote_handover_free(PfRemoteHandover *handover);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfRemoteHandover, pf_remote_handover_free)

PfRemoteManager *pf_remote_manager_new(void);
void pf_remote_manager_free(PfRemoteManager *manager);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfRemoteManager, pf_remote_manager_free)

/* Reads a{sv} of PropertiesChanged, GetAll and the like: what it names is replaced. */
int pf_remote_handover_read(PfRemoteHandover *handover, sd_bus_message *m);
int pf_remote_manager_read(PfRemoteManager *manager, sd_bus_message *m);

/* Whether the handover is over. */
bool pf_remote_is_ended(const PfRemoteHandover *handover);

/* When it ended; if it didn't, now. */
gint64 pf_remote_end(const PfRemoteHandover *handover);

/* A word for how it ended: "done", "undone"; of an open one, NULL. */
const char *pf_remote_outcome(const PfRemoteHandover *handover);

/* Asks portferryd; a failure has been reported already. */
PfExit pf_remote_get_manager(PfClient *client, PfRemoteManager **manager);

/* All handovers, oldest first. */
PfExit pf_remote_get_handovers(PfClient *client, GPtrArray **handovers);

/* Which one 'name' means: a handover's id, a domain's UUID or name.  Of several of a domain the
 * open one, or else the youngest.  NULL if there is none. */
PfRemoteHandover *pf_remote_pick(GPtrArray *handovers, const char *name);

/* The same straight from portferryd; reports that there is none.  The handover is the caller's. */
PfExit pf_remote_find(PfClient *client, const char *name, PfRemoteHandover **handover);

PfJson *pf_remote_handover_to_json(const PfRemoteHandover *handover);
PfJson *pf_remote_manager_to_json(const PfRemoteManager *manager);
