/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

#include "configuration.h"
#include "text.h" /* pf_printable(): names in here may hold any character */

/* The domain XML that libvirt gives its hooks and virDomainGetXMLDesc() returns: which domain, and
 * which of its interfaces may be OVN ports.  Pure. */

/* What a domain's <metadata> may say about how it is carried, in place of the configuration:
 *
 *     <portferry:policy xmlns:portferry="urn:portferry:domain:1" ready-timeout="60"/>
 *
 * The attributes are those of PfDomainPolicy, spelt with hyphens.  virsh(1) writes it:
 *     virsh metadata DOMAIN --uri urn:portferry:domain:1 --key portferry \
 *         --config --live --set '<policy ready-timeout="60"/>' */
#define PF_DOMAIN_POLICY_URI "urn:portferry:domain:1"

/* The largest XML that is read, in bytes: as much as can be read in less than a tenth of a second,
 * and ten times what a domain with 200 interfaces has. */
#define PF_DOMAIN_XML_MAX (1024u * 1024)

/* The most ports that a domain is carried with: each is looked for among all others again and
 * again.
 */
#define PF_DOMAIN_PORTS_MAX 1024

/* An interface that Open vSwitch gets an iface-id for. */
typedef struct {
    char *iface_id; /* UUID, canonical: libvirt prints interfaceid like this into external_ids */
    char *mac;      /* lower case; NULL if the XML has none */
    char *type;     /* <interface type=>: "bridge", "network", ... ; "" if absent */
    char *bridge;   /* <source bridge=>; with a network only once libvirt has resolved it (in the
                     * hooks "start" and "started", not in "migrate" and "prepare").  Or NULL */
    char *network;  /* <source network=>, or NULL */
    char *target;   /* <target dev=>: the tap; NULL where libvirt doesn't know or tell it yet (hooks
                     * "migrate", "prepare", "stopped", "release") */
    char *alias;    /* <alias name=>, which DEVICE_ADDED and DEVICE_REMOVED speak of.  Or NULL */
} PfDomainPort;

typedef struct {
    gboolean off;              /* "yes" or "no": portferry leaves the domain's ports alone */
    gint64 ready_timeout;      /* microseconds; 0: as configured */
    gboolean has_on_not_ready; /* else as configured */
    PfPolicy on_not_ready;
    char *activation_strategy; /* NULL: as configured */
} PfDomainPolicy;

void pf_domain_policy_copy(PfDomainPolicy *to, const PfDomainPolicy *from);
void pf_domain_policy_clear(PfDomainPolicy *policy);

typedef struct {
    char *name;       /* any UTF-8 that is not empty: use pf_printable() to show it */
    char *uuid;       /* canonical */
    GPtrArray *ports; /* of PfDomainPort, in the order of the XML; empty if there are none */
    PfDomainPolicy policy;
} PfDomain;

/* Parses 'size' bytes at 'xml', which need not end in NUL.  Free with pf_domain_free().
 *
 * A port is an interface with a <virtualport> of type openvswitch, or without a type (as the
 * interfaces of a network have it, where the network knows the type), that has
 * <parameters interfaceid=>.  Others are left out without a word: those without a virtualport
 * (type='ethernet' can't have one), with one of another type, and those without an interfaceid
 * (libvirt then makes one up while it starts the guest, another one on each host).
 *
 * PF_ERROR_BAD_XML: not UTF-8, a NUL byte, too large, nested too deeply, more attributes,
 * namespaces or different names than a reader can bear, or more ports, not well-formed, a DOCTYPE
 * (libvirt never writes one, and without it there is no entity to expand nor file to fetch), a root
 * other than <domain> without namespace; no name or UUID, or several; and an interface with an
 * interfaceid that isn't a UUID, be it empty, or that another interface has too, or with two
 * virtualports.  libvirt writes none of these.  Such an interface is named in the error rather than
 * left out, since a port that's left out would silently lose its network.
 *
 * The same for what is wrong in <metadata> in our own namespace, which libvirt doesn't look into:
 * an element other than <policy> or two of them, an attribute that doesn't exist, a value that the
 * configuration file would not have either, any content.  Deeper inside of other people's elements
 * the namespace is nobody's business. */
PfDomain *pf_domain_parse(const void *xml, gsize size, GError **error);
void pf_domain_free(PfDomain *domain);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfDomain, pf_domain_free)
