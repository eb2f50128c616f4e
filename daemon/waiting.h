/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a handover waits for, in words for an operator.  Pure.
 */

#include <glib.h>

#include "facts.h"
#include "handover.h"

/* Where a handover stands.  Nothing is owned. */
typedef struct {
    PfState state;
    gboolean held;                    /* by an operator */
    gboolean by_hand;                 /* nobody but an operator says where the guest runs */
    gboolean gate_passed;             /* the hook has been let go on */
    gboolean cms;                     /* a CMS runs the handover */
    const char *source, *destination; /* chassis */
    gboolean nb_live, sb_live, ovs_live;
    const char *const *ports;
    const PfPortFacts *facts; /* as many as ports */
    guint n_ports;
} PfWaiting;

/* Returns what the ports lack to be ready at the destination, port by port; NULL if they lack
 * nothing that these facts show.  Free with g_free(). */
char *pf_waiting_missing(const PfWaiting *waiting);

/* Returns what the handover waits for, as what follows "it waits for": without a capital and a
 * stop.  "" for an ended one.  Free with g_free(). */
char *pf_waiting_describe(const PfWaiting *waiting);
