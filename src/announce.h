/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tells the network outside where floating IPs live now.
 *
 * ovn-controller does so, too, a second after it has got them.  Until then every switch outside
 * sends what is for them to where they were.
 */

#include <glib.h>

#include "floating.h"

typedef struct PfAnnouncement PfAnnouncement;

/* Called at most once, when nothing more can be announced. */
typedef void (*PfAnnounceFailed)(const GError *error, gpointer data);

/* Sends a gratuitous ARP (for IPv6 a RARP: it is the MAC that has to be learned) for each of
 * 'floating' (PfFloating*, copied), from the router's port of the network outside, as
 * ovn-controller does: through the logical network's own pipeline.  At once, and a few times more
 * within a second.  'socket' is the OpenFlow socket of the integration bridge.  Nothing blocks.
 * The caller ends it with pf_announcement_free(), before or after it has come to its own end. */
PfAnnouncement *pf_announcement_new(const char *socket, const GPtrArray *floating,
                                    PfAnnounceFailed failed, gpointer data);
void pf_announcement_free(PfAnnouncement *announcement);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfAnnouncement, pf_announcement_free)

/* The OpenFlow message for one of them, for tests: NULL if its MAC is none. */
GByteArray *pf_announcement_encode(const PfFloating *floating);
