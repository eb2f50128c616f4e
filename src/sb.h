/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The southbound database: who has a port, and the flag that opens it.
 *
 * Only the rows of handovers that name this host are replicated: northd copies a port's
 * external_ids, so the marker is a condition that never changes, and holds from before the
 * northbound write is over until after the last one.  A CMS writes no marker: the rows that request
 * or have this host's chassis are replicated too, and those of the ports that are watched.  And all
 * chassis, but no more of them than their names.  What else is needed is asked for by name.
 */

#include <glib.h>
#include <uuid.h> /* of Open vSwitch */

#include "facts.h"
#include "ovsdb-query.h"
#include "ovsdb.h"

typedef struct PfSb PfSb;

typedef void (*PfSbChanged)(gpointer data);

/* Connects to 'remote' and stays connected.  'chassis' is this host's own name.  NULL with 'error'
 * if 'remote' is none. */
PfSb *pf_sb_new(PfOvsdbLoop *loop, const char *remote, const char *chassis, PfSbChanged changed,
                gpointer data, GError **error);
void pf_sb_free(PfSb *sb);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfSb, pf_sb_free)

gboolean pf_sb_set_remote(PfSb *sb, const char *remote, GError **error);
PfOvsdbState pf_sb_get_state(const PfSb *sb);

/* Its connection without a replica, for questions about other tables. */
PfOvsdbQuery *pf_sb_get_query(const PfSb *sb);

/* A chassis row. */
typedef struct {
    struct uuid uuid;
    char *name;
    char *hostname;
} PfSbChassis;

/* From now on, until it is unwatched as often, the row of 'port' is replicated, whomever it names.
 */
void pf_sb_watch(PfSb *sb, const char *port);
void pf_sb_unwatch(PfSb *sb, const char *port);
/* Whether what is watched is here, as far as it exists. */
gboolean pf_sb_is_current(const PfSb *sb);

/* A row that requests two chassis, of which this host is one.  'id': of the handover whose marker
 * it carries, NULL if there is none.  Nothing is owned. */
typedef void (*PfSbPair)(const char *port, const PfSbChassis *source,
                         const PfSbChassis *destination, const char *id, gpointer data);
void pf_sb_foreach_pair(const PfSb *sb, PfSbPair pair, gpointer data);

/* Whether 'chassis' is this host. */
gboolean pf_sb_is_self(const PfSb *sb, const PfSbChassis *chassis);

/* Whether 'port' is among the rows that are replicated, and this host's chassis has it. */
gboolean pf_sb_is_here(const PfSb *sb, const char *port);

/* Fills in the sb_* members for 'port' in the handover 'id' between 'source' and 'destination'.
 * 'id' NULL: in a handover that a CMS runs, and nb_marked and nb_list as well. */
void pf_sb_get_port(const PfSb *sb, const char *port, const char *id, const PfSbChassis *source,
                    const PfSbChassis *destination, PfPortFacts *facts);

/* What is known of a port that is not replicated. */
typedef struct {
    const char *name;    /* as asked for */
    gboolean exists;     /* there is a Port_Binding */
    gboolean vif;        /* and its type is "": a port that an interface can claim */
    gboolean bound;      /* and it has a chassis: */
    PfSbChassis chassis; /* ... this one */
    gboolean pinned;     /* it has none, and is meant for another chassis than this host's */
    gboolean cold;       /* no other port of its datapath is bound here, so that not even the
                          * datapath's flows are in the switch */
} PfSbFound;

/* 'found' (n of them, in the order asked for) and 'error' are the caller's. */
typedef void (*PfSbLookupDone)(const PfSbFound *found, guint n, const PfSbChassis *self,
                               const GError *error, gpointer data);

/* Asks for 'ports' (NULL-terminated, copied), and for this host's own chassis: 'self' is NULL if it
 * has no row.  'done' is called exactly once, later. */
void pf_sb_lookup(PfSb *sb, const char *const *ports, guint timeout_ms, PfSbLookupDone done,
                  gpointer data);

/* Asks for two chassis by name; what is not found has a 'name' of NULL. */
typedef void (*PfSbChassisDone)(const PfSbChassis *source, const PfSbChassis *destination,
                                const GError *error, gpointer data);
void pf_sb_find_chassis(PfSb *sb, const char *source, const char *destination, guint timeout_ms,
                        PfSbChassisDone done, gpointer data);

/* Flags 'destination' as activated on those of 'ports' (NULL-terminated, copied; of the handover
 * 'id', or of one that a CMS runs if that is NULL) where it is a requested additional chassis; or,
 * if not 'open', takes the flag away.  ovn-controller reads it from
 * options:additional-chassis-activated (a list of names, lport.c), northd drops it with the last
 * additional chassis.  One transaction; 'done' as for pf_ovsdb_txn(). */
void pf_sb_set_open(PfSb *sb, const char *const *ports, const char *id,
                    const PfSbChassis *destination, gboolean open, guint timeout_ms,
                    PfOvsdbDone done, gpointer data);

/* Writes on those of 'ports' (NULL-terminated, copied) that carry the marker of the handover 'id',
 * and whose requested chassis still are 'from', what northd is about to write: 'to' (the source
 * alone, or both in either order), so that nobody waits for northd.  When it comes to it, it finds
 * all as it should be.  Where both ovn-controllers may have the port, the one that must be main no
 * longer finds that it isn't, and neither of them overwrites the other.
 *
 * It is left to ovn-controller to make itself the main chassis: only a port that it has claimed by
 * itself makes it look again at the flows that belong to a port's main chassis.  One transaction;
 * 'done' as for pf_ovsdb_txn(). */
void pf_sb_hasten(PfSb *sb, const char *const *ports, const char *id, const PfSbChassis *source,
                  const PfSbChassis *destination, PfListKind from, PfListKind to, guint timeout_ms,
                  PfOvsdbDone done, gpointer data);

/* The same for the pre-plug: 'mutations' is what pf_nb_preplug() has changed of each of 'ports'
 * (NULL-terminated, copied; in the same order), which only the source has so far.  So the port is
 * the two chassis's before libvirt plugs it at the destination, however long northd takes: until
 * then nobody keeps the destination from claiming a port that isn't pinned.  What isn't so is left
 * to northd.  One transaction; 'done' as for pf_ovsdb_query(), the result of which is of no use. */
void pf_sb_preplug(PfSb *sb, const char *const *ports, const GPtrArray *mutations,
                   const PfSbChassis *source, const PfSbChassis *destination, guint timeout_ms,
                   PfOvsdbQueryDone done, gpointer data);

void pf_sb_chassis_copy(PfSbChassis *to, const PfSbChassis *from);
void pf_sb_chassis_clear(PfSbChassis *chassis);
