/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the databases say about a handover, as events for the state machine.  Pure.
 */

#include <glib.h>

#include "handover.h"

/* What a port's `requested-chassis` is, seen from its handover. */
typedef enum {
    PF_LIST_FOREIGN, /* none of the following: not ours */
    PF_LIST_BOTH,    /* source,destination */
    PF_LIST_SRC,     /* the source alone */
    PF_LIST_DST,     /* the destination alone */
    PF_LIST_TURNED,  /* destination,source */
    PF_N_LISTS,
} PfListKind;

/* One port, in the three databases, at one moment. */
typedef struct {
    /* In a handover that a CMS runs these two are southbound, where northd has resolved the list
     * (there need be no northbound database, and there is no marker): a row exists, and whom it
     * requests. */
    gboolean nb_marked;  /* its northbound row carries this handover's marker */
    PfListKind nb_list;  /* if so */
    gboolean nb_resumed; /* if so: the marker says that the guest runs at the destination */
    gboolean nb_src_too; /* if so: the source says that it runs there as well, */
    gboolean nb_dst_too; /* ... or the destination says it */

    /* Its southbound row does (of a CMS: exists): northd has seen the handover, not its end. */
    gboolean sb_marked;
    gboolean sb_on_src;    /* if so: Port_Binding.chassis is the source, */
    gboolean sb_on_dst;    /* ... or the destination (neither: nobody, or a third) */
    gboolean sb_src_added; /* additional_chassis has the source, */
    gboolean sb_dst_added; /* ... the destination */
    PfListKind
        sb_list; /* the requested chassis, as northd (or we in its stead) have resolved them */
    gboolean sb_dst_requested; /* requested_additional_chassis has the destination */
    gboolean sb_any_added;  /* additional_chassis or requested_additional_chassis has anybody (of a
                             * CMS, who may mirror a port elsewhere: has one of the two) */
    gboolean sb_dst_opened; /* options:additional-chassis-activated has the destination */

    gboolean ovs_claimed;   /* an interface here has the port's iface-id */
    gboolean ovs_released;  /* one has been made to let go of it by PF_GOAL_RELEASE */
    gboolean ovs_installed; /* and ovn-controller has set ovn-installed on it */
} PfPortFacts;

/* The databases' connections, and what is true for all ports together. */
typedef struct {
    gboolean nb_live; /* connected, with contents: what is not there does not exist */
    gboolean sb_live;
    gboolean ovs_live;
    gboolean flows_in; /* the barrier after ovn-installed is passed, or not needed */
} PfWorld;

/* The facts that hold, as a bit set: 1 << PfEvent.  A fact holds if it holds for all ports; of a
 * database that is not live nothing is known, so none of its facts holds. */
guint64 pf_facts(PfRole role, const PfWorld *world, const PfPortFacts *ports, guint n_ports);

/* Whether the time of 'state' is not over because the guest runs on both hosts: by 'guest', the
 * last event about it here, or by the other side's word.  Somebody has to end one of the two. */
gboolean pf_runs_twice(PfState state, PfEvent guest, const PfPortFacts *ports, guint n_ports);

/* Feeds 'facts' and 'guest' (the last event about the guest, or PF_N_EVENTS for none) to the
 * machine until nothing changes any more.  'visit' (or NULL) is called for each state entered.
 * Returns the state that is reached. */
PfState pf_settle(PfState state, guint64 facts, PfEvent guest,
                  void (*visit)(PfState from, PfState to, PfEvent why, gpointer data),
                  gpointer data);
