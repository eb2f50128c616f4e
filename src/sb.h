/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The southbound database: who has a port, and the flag that opens it.
 *
 * Only the rows of handovers that name this host are replicated: northd copies a port's
 * external_ids, so the marker is a condition that never changes, and holds from before the
 * northbound write is over until after the last one.  What else is needed is asked for by name.
 */

#include <glib.h>
#include <uuid.h> /* of Open vSwitch */

#include "facts.h"
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

/* A chassis row. */
typedef struct {
    struct uuid uuid;
    char *name;
    char *hostname;
} PfSbChassis;

/* Fills in the sb_* members for 'port' in the handover 'id' between 'source' and 'destination'. */
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

/* Flags 'destination' as activated on those of 'ports' (NULL-terminated, copied) where it is a
 * requested additional chassis; or, if not 'open', takes the flag away.  ovn-controller reads it
 * from options:additional-chassis-activated (a list of names, lport.c), northd drops it with the
 * last additional chassis.  One transaction; 'done' as for pf_ovsdb_txn(). */
void pf_sb_set_open(PfSb *sb, const char *const *ports, const char *id,
                    const PfSbChassis *destination, gboolean open, guint timeout_ms,
                    PfOvsdbDone done, gpointer data);

void pf_sb_chassis_copy(PfSbChassis *to, const PfSbChassis *from);
void pf_sb_chassis_clear(PfSbChassis *chassis);
