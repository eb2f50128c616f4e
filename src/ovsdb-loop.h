/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>
#include <stdbool.h>

/*
 * OVSDB connections in the GLib main loop.
 *
 * OVS's poll loop does not give its file descriptors away, so GLib's are given to OVS: the loop
 * replaces the poll function of a GMainContext by one that waits in poll_block().  A connection
 * joins as a member.  Everything happens in the thread that runs the context.
 */
typedef struct PfOvsdbLoop PfOvsdbLoop;

/* What a connection does in the loop; each function gets the 'member' of pf_ovsdb_loop_add(). */
typedef struct {
    /* Takes in what has arrived.  Returns true only if there is news for 'dispatch': a yes without
     * news would starve all sources of a lower priority.  Calls nobody back. */
    bool (*run)(gpointer member);

    /* Registers with OVS's poll loop what 'run' must wake up for. */
    void (*wait)(gpointer member);

    /* Tells the owner.  Members may be added and removed meanwhile, this one too. */
    void (*dispatch)(gpointer member);
} PfOvsdbLoopOps;

/* Starts OVS in this process as well: its log goes to standard error, its signal handlers are kept
 * out.  There can be one loop at a time; 'context' NULL is the default context. */
PfOvsdbLoop *pf_ovsdb_loop_new(GMainContext *context);
void pf_ovsdb_loop_free(PfOvsdbLoop *loop);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfOvsdbLoop, pf_ovsdb_loop_free)

GMainContext *pf_ovsdb_loop_get_context(PfOvsdbLoop *loop);

void pf_ovsdb_loop_add(PfOvsdbLoop *loop, const PfOvsdbLoopOps *ops, gpointer member);
void pf_ovsdb_loop_remove(PfOvsdbLoop *loop, gpointer member);
