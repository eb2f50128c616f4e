/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Floating IPs that live where their port lives.
 *
 * A NAT row of type dnat_and_snat with a logical port and a MAC of its own is "distributed": its
 * flows are on the chassis that Port_Binding.chassis names and on no other, and the network outside
 * knows its MAC behind that host.  Whoever moves the port must move these, too.
 */

#include <glib.h>

#include "nb.h"
#include "sb.h"

typedef struct {
    char *port;      /* iface-id */
    char *address;   /* the floating IP: IPv4 or IPv6 */
    char *mac;       /* ... and the MAC that answers for it */
    guint32 network; /* where it is announced: the datapath of the switch outside, */
    guint32 inport;  /* ... and the switch's port to the router, as ovn-controller numbers them */
} PfFloating;

/* 'found' has PfFloating* and is the caller's of this function; NULL with 'error'. */
typedef void (*PfFloatingDone)(const GPtrArray *found, const GError *error, gpointer data);

/* Asks for the distributed floating IPs of 'ports' (NULL-terminated, copied).  One with several
 * networks outside is found once for each.  'done' is called exactly once, later, with an empty
 * array if there are none, or with the error of pf_ovsdb_query(). */
void pf_floating_find(PfNb *nb, PfSb *sb, const char *const *ports, guint timeout_ms,
                      PfFloatingDone done, gpointer data);

/* Asks which of 'known' (PfFloating*, copied) are still as they were.  'done' as above. */
void pf_floating_check(PfNb *nb, const GPtrArray *known, guint timeout_ms, PfFloatingDone done,
                       gpointer data);

/* A copy of 'list', to be freed with g_ptr_array_unref(). */
GPtrArray *pf_floating_copy(const GPtrArray *list);
