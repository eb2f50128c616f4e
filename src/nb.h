/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The northbound database: what a port is meant to be.
 *
 * Only the rows whose marker names this host are replicated.  The pre-plug, which comes before
 * there is a marker, asks for its rows by name and changes them in one transaction that fails if
 * they are not as they were read.
 */

#include <glib.h>

#include "ovsdb-query.h"
#include "ovsdb.h"
#include "plan.h"

typedef struct PfNb PfNb;

typedef void (*PfNbChanged)(gpointer data);

/* Connects to 'remote' and stays connected.  'chassis' is this host's own name.  NULL with 'error'
 * if 'remote' is none. */
PfNb *pf_nb_new(PfOvsdbLoop *loop, const char *remote, const char *chassis, PfNbChanged changed,
                gpointer data, GError **error);
void pf_nb_free(PfNb *nb);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfNb, pf_nb_free)

gboolean pf_nb_set_remote(PfNb *nb, const char *remote, GError **error);
PfOvsdbState pf_nb_get_state(const PfNb *nb);

/* Its connection without a replica, for questions about other tables. */
PfOvsdbQuery *pf_nb_get_query(const PfNb *nb);

/* Fills in the nb_* members for 'port' in the handover 'id' between 'ends'. */
void pf_nb_get_port(const PfNb *nb, const char *port, const char *id, const PfEnds *ends,
                    PfPortFacts *facts);

/* A row that carries a marker; 'error' instead of 'marker' if the marker makes no sense. */
typedef void (*PfNbMarked)(const char *port, const PfMarker *marker, const GError *error,
                           gpointer data);
void pf_nb_foreach_marked(const PfNb *nb, PfNbMarked marked, gpointer data);

/* Begins a handover: both chassis, the strategy and the marker on all of 'ports' (NULL-terminated,
 * copied, as is 'marker'), in one transaction.  Tried again after a conflict with another writer.
 * 'done' is called exactly once, later, with NULL or:
 *  PF_ERROR_BUSY: another handover's marker is there; PF_ERROR_NOT_FOUND: a port doesn't exist;
 *  PF_ERROR_DENIED: a CMS has set both chassis already, the port is in its hands;
 *  and what pf_ovsdb_query() reports.  Nothing was changed then, except when that is UNKNOWN.
 * 'mutations': for each of the ports, in their order, the JSON of what was changed of its options
 * and external_ids, which are columns southbound as well; NULL with an error; not owned. */
typedef void (*PfNbPreplugDone)(const GPtrArray *mutations, const GError *error, gpointer data);
void pf_nb_preplug(PfNb *nb, const char *const *ports, const PfMarker *marker, const PfEnds *ends,
                   const char *strategy, guint timeout_ms, PfNbPreplugDone done, gpointer data);

/* Carries out 'write' on those of 'ports' (NULL-terminated, copied) that carry the marker of the
 * handover 'id', in one transaction.  'done' is called exactly once, later, with NULL or:
 *  PF_ERROR_CONFLICT: a row forbids it, nothing was changed; and what pf_ovsdb_txn() reports. */
void pf_nb_write(PfNb *nb, PfWrite write, PfRole role, const char *const *ports, const char *id,
                 const PfEnds *ends, gboolean overridden, guint timeout_ms, PfOvsdbDone done,
                 gpointer data);

/* Asks for a sign that all that is in the database now has become flows everywhere: raises
 * NB_Global.nb_cfg, which goes through northd to every ovn-controller.  'done' is called once with
 * the number to wait for (pf_ovs_get_flows_cfg()), or with 'error'. */
typedef void (*PfNbBarrierDone)(gint64 nb_cfg, const GError *error, gpointer data);
void pf_nb_barrier(PfNb *nb, guint timeout_ms, PfNbBarrierDone done, gpointer data);
