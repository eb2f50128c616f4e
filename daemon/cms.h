/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Handovers that a CMS has begun: it has bound ports of a guest here to two hosts, and there is no
 * marker that says more.  Which guest, and which part is this host's, is told by the southbound
 * rows and the local switch; where the guest is, by libvirt.  So a daemon that starts finds them
 * again without any journal.
 */

#include <glib.h>

#include "handover.h"
#include "ovs.h"
#include "sb.h"

typedef struct PfCms PfCms;

typedef struct {
    PfRole role;
    char *domain; /* UUID */
    char *id;     /* of the marker, where the other host has written one; else NULL */
    PfSbChassis source, destination;
    GPtrArray *ports; /* of char *, their iface-ids */
} PfCmsFound;

typedef void (*PfCmsTake)(const PfCmsFound *found, gpointer data);

PfCms *pf_cms_new(void);
void pf_cms_free(PfCms *cms);

/* Calls 'take' for each handover whose ports are all bound to the same two hosts, and that has not
 * been settled.  'marked': also those with a marker, because this host can't see it northbound.
 * FALSE: the databases are not both there, so nothing can be known yet. */
gboolean pf_cms_search(PfCms *cms, const PfSb *sb, const PfOvs *ovs, gboolean marked,
                       PfCmsTake take, gpointer data);

/* A handover between these ends (the peer is the other chassis's name) is over, whatever the CMS
 * leaves in the lists: it is not found again before the lists have been others in between. */
void pf_cms_settle(PfCms *cms, PfRole role, const char *domain, const char *peer);

/* The guest 'domain' is leaving this host: what was settled begins anew.  FALSE if no CMS has said
 * where it goes to. */
gboolean pf_cms_wake(PfCms *cms, const PfSb *sb, const PfOvs *ovs, gboolean marked,
                     const char *domain);
