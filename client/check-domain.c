/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whether a domain's migration to another host would work, port by port. */

#include <string.h>

#include "check.h"
#include "domain-xml.h"
#include "marker.h"
#include "terminal.h"

/* As check-ovn.c asks for them. */
enum { SB_CHASSIS, SB_ENCAPS };

static PfDomain *read_domain(PfCheck *check, const char *name)
{
    const char *const argv[] = {"virsh",      "--connect", check->config->libvirt_uri,
                                "--readonly", "dumpxml",   "--domain",
                                name,         NULL};
    g_autofree char *safe = pf_safe(name);
    g_autoptr(GError) error = NULL;
    g_auto(PfRun) run = {0};
    PfDomain *domain;

    pf_host_run(&run, 15, argv);
    if (run.result == PF_RUN_FAILED) {
        pf_check_add(check, PF_FINDING_PROBLEM, "domain.missing",
                     _("check this on the host where the domain runs: 'virsh list'"),
                     _("libvirt does not tell about domain '%s': %s"), safe, run.error);
        return NULL;
    }
    if (run.result != PF_RUN_OK) {
        pf_check_add_unknown(check, "domain.unknown", "virsh", &run);
        return NULL;
    }
    domain = pf_domain_parse(run.output, strlen(run.output), &error);
    if (!domain) {
        pf_check_add(check, PF_FINDING_PROBLEM, "domain.xml", _("correct it with 'virsh edit'"),
                     _("portferry does not understand the XML of domain '%s': %s"), safe,
                     error->message);
    }
    return domain;
}

static const PfJson *find_chassis(const PfCheck *check, const char *to)
{
    const PfJson *rows = pf_ovsdb_tool_rows(check->chassis, SB_CHASSIS);

    for (guint i = 0; i < pf_json_length(rows); i++) {
        const PfJson *row = pf_json_at(rows, i);

        if (g_strcmp0(pf_ovsdb_tool_get(row, "name"), to) == 0 ||
            g_strcmp0(pf_ovsdb_tool_get(row, "hostname"), to) == 0) {
            return row;
        }
    }
    return NULL;
}

static bool has_encap(const PfCheck *check, const char *chassis, const char *type)
{
    const PfJson *rows = pf_ovsdb_tool_rows(check->chassis, SB_ENCAPS);

    for (guint i = 0; i < pf_json_length(rows); i++) {
        const PfJson *row = pf_json_at(rows, i);

        if (g_strcmp0(pf_ovsdb_tool_get(row, "chassis_name"), chassis) == 0 &&
            (!type || g_strcmp0(pf_ovsdb_tool_get(row, "type"), type) == 0)) {
            return true;
        }
    }
    return false;
}

/* Returns the destination's row, or NULL if the migration can't work. */
static const PfJson *check_destination(PfCheck *check, const char *to)
{
    const PfJson *rows = pf_ovsdb_tool_rows(check->chassis, SB_ENCAPS);
    const PfJson *row = find_chassis(check, to);
    const char *name = pf_ovsdb_tool_get(row, "name");
    g_autofree char *safe = pf_safe(to);
    bool common = false;

    if (!row) {
        pf_check_add(check, PF_FINDING_PROBLEM, "domain.destination",
                     _("'ovn-sbctl list Chassis' names them; check that ovn-controller runs there"),
                     _("OVN knows no chassis and no host '%s'"), safe);
        return NULL;
    }
    if (g_strcmp0(name, check->system_id) == 0) {
        pf_check_add(check, PF_FINDING_PROBLEM, "domain.destination",
                     _("give the host where it shall go"), _("'%s' is this host"), safe);
        return NULL;
    }
    for (guint i = 0; i < pf_json_length(rows); i++) {
        const PfJson *encap = pf_json_at(rows, i);
        const char *type = pf_ovsdb_tool_get(encap, "type");

        common |= g_strcmp0(pf_ovsdb_tool_get(encap, "chassis_name"), name) == 0 &&
                  has_encap(check, check->system_id, type);
    }
    if (!common) {
        pf_check_add(check, PF_FINDING_PROBLEM, "domain.tunnel",
                     _("give both hosts a common type in ovn-encap-type"),
                     _("this host and '%s' have no type of tunnel in common"), safe);
    } else {
        pf_check_add(check, PF_FINDING_OK, "domain.destination", NULL,
                     _("'%s' is a chassis of OVN; what it lacks, 'portferry check' says there"),
                     safe);
    }
    return row;
}

/* The northbound side of a port: does a CMS steer it, is a handover left over? */
static void check_list(PfCheck *check, const PfDomainPort *port, const char *name,
                       const char *destination)
{
    g_autofree char *quoted = pf_ovsdb_tool_quote(port->iface_id);
    g_autofree char *ops = pf_ovsdb_tool_select("Logical_Switch_Port", "name", "==", quoted,
                                                "options,external_ids,type,parent_name");
    g_autoptr(PfJson) results = NULL;
    g_auto(PfRun) run = {0};
    const PfJson *row;
    const char *list, *handover;

    if (!check->nb_remote) {
        return;
    }
    results = pf_ovsdb_tool_query(check->config, check->nb_remote, "OVN_Northbound", ops, &run);
    if (!results) {
        return; /* reported with the database */
    }
    row = pf_json_at(pf_ovsdb_tool_rows(results, 0), 0);
    if (!row) {
        pf_check_add(check, PF_FINDING_PROBLEM, "domain.port-missing",
                     _("create the port, or correct interfaceid in the domain's XML"),
                     _("port %s: the northbound database has none of that name"), name);
        return;
    }
    list = pf_ovsdb_tool_map_get(row, "options", "requested-chassis");
    handover = pf_ovsdb_tool_map_get(row, "external_ids", PF_MARKER_HANDOVER);
    if (handover) {
        pf_check_add(check, PF_FINDING_PROBLEM, "domain.port-busy",
                     _("'portferry status' on both hosts shows the handover; it must end first"),
                     _("port %s: another handover is not finished"), name);
    } else if (list && strchr(list, ',')) {
        g_autofree char *safe = pf_safe(list);
        g_auto(GStrv) entries = g_strsplit(list, ",", -1);

        if (g_strv_contains((const char *const *)entries, destination)) {
            pf_check_add(check, PF_FINDING_OK, "domain.port-cms", NULL,
                         _("port %s: a CMS has set requested-chassis to %s already; portferry "
                           "gates and opens, and leaves the list to it"),
                         name, safe);
        } else {
            pf_check_add(check, PF_FINDING_PROBLEM, "domain.port-foreign",
                         _("find out who set it, and have it set to this host alone"),
                         _("port %s: requested-chassis is %s, without the destination"), name,
                         safe);
        }
    }
}

/* The same where only the southbound database can be seen: has the CMS begun already? */
static void check_southbound_list(PfCheck *check, const PfJson *row, const PfJson *destination,
                                  const char *name)
{
    const char *wanted = pf_ovsdb_tool_get(destination, "_uuid");
    const char *added = pf_ovsdb_tool_get(row, "requested_additional_chassis");

    if (!added) {
        pf_check_add(check, PF_FINDING_OK, "domain.port-cms", NULL,
                     _("port %s: the CMS has to set requested-chassis to both hosts when it begins "
                       "the migration"),
                     name);
    } else if (g_strcmp0(added, wanted) == 0 &&
               pf_ovsdb_tool_set_length(row, "requested_additional_chassis") == 1) {
        pf_check_add(check, PF_FINDING_OK, "domain.port-cms", NULL,
                     _("port %s: the CMS has set requested-chassis to both hosts"), name);
    } else {
        pf_check_add(check, PF_FINDING_PROBLEM, "domain.port-foreign",
                     _("find out who set it, and have it set to this host alone"),
                     _("port %s: the CMS has set requested-chassis to another second host than "
                       "the destination"),
                     name);
    }
}

static void check_port_mtu(PfCheck *check, const PfDomainPort *port, const char *name)
{
    const PfJson *rows = pf_ovsdb_tool_rows(check->host_rows, 2);

    for (guint i = 0; i < pf_json_length(rows); i++) {
        const PfJson *row = pf_json_at(rows, i);
        gint64 mtu = pf_ovsdb_tool_integer(row, "mtu", 0);

        if (g_strcmp0(pf_ovsdb_tool_map_get(row, "external_ids", "iface-id"), port->iface_id) ==
                0 &&
            check->tunnel_room > 0 && mtu > check->tunnel_room) {
            pf_check_add(check, PF_FINDING_WARNING, "domain.port-mtu",
                         _("see the size of packets above"),
                         _("port %s: its MTU is %d, the tunnels carry %d"), name, (int)mtu,
                         (int)check->tunnel_room);
        }
    }
}

static void check_port(PfCheck *check, const PfDomainPort *port, const PfJson *destination)
{
    g_autofree char *quoted = pf_ovsdb_tool_quote(port->iface_id);
    g_autofree char *ops = pf_ovsdb_tool_select("Port_Binding", "logical_port", "==", quoted,
                                                "chassis,additional_chassis,type,up,parent_port,"
                                                "requested_additional_chassis");
    const PfJson *own = find_chassis(check, check->system_id);
    const char *own_uuid = pf_ovsdb_tool_get(own, "_uuid");
    g_autofree char *name = pf_safe(port->iface_id);
    g_autoptr(PfJson) results = NULL;
    g_auto(PfRun) run = {0};
    const PfJson *row;
    const char *type, *chassis;

    results = pf_ovsdb_tool_query(check->config, check->sb_remote, "OVN_Southbound", ops, &run);
    if (!results) {
        pf_check_add_unknown(check, "domain.port-unknown", name, &run);
        return;
    }
    row = pf_json_at(pf_ovsdb_tool_rows(results, 0), 0);
    type = pf_ovsdb_tool_get(row, "type");
    chassis = pf_ovsdb_tool_get(row, "chassis");
    if (!row) {
        pf_check_add(check, PF_FINDING_PROBLEM, "domain.port-missing",
                     _("create the port, or correct interfaceid in the domain's XML"),
                     _("port %s: OVN has none of that name"), name);
    } else if (type && *type) {
        g_autofree char *safe = pf_safe(type);

        pf_check_add(check, PF_FINDING_PROBLEM, "domain.port-type",
                     _("turn portferry off for this domain, or change the port"),
                     _("port %s: OVN can't bind a port of type '%s' to two chassis"), name, safe);
    } else if (pf_ovsdb_tool_get(row, "parent_port")) {
        pf_check_add(check, PF_FINDING_PROBLEM, "domain.port-child", _("change the port"),
                     _("port %s is a container's port inside another one"), name);
    } else if (!chassis) {
        pf_check_add(check, PF_FINDING_PROBLEM, "domain.port-unbound",
                     _("start the domain; if it runs, see that its tap is in the integration "
                       "bridge"),
                     _("port %s is bound to no chassis"), name);
    } else if (g_strcmp0(chassis, own_uuid) != 0) {
        pf_check_add(check, PF_FINDING_PROBLEM, "domain.port-elsewhere",
                     _("find out why: another host has an interface with the same iface-id"),
                     _("port %s is bound to another host than this"), name);
    } else if (pf_ovsdb_tool_set_length(row, "additional_chassis") > 0) {
        pf_check_add(check, PF_FINDING_WARNING, "domain.port-two",
                     _("'portferry status' shows whether a handover is open"),
                     _("port %s is bound to two chassis already"), name);
    } else {
        pf_check_add(check, PF_FINDING_OK, "domain.port", NULL,
                     _("port %s is bound to this host, and can be carried"), name);
    }
    if (row && check->nb_is_none) {
        check_southbound_list(check, row, destination, name);
    }
    if (row) {
        check_list(check, port, name, pf_ovsdb_tool_get(destination, "name"));
        check_port_mtu(check, port, name);
    }
}

void pf_check_domain(PfCheck *check, const char *name, const char *to)
{
    g_autoptr(PfDomain) domain = read_domain(check, name);
    g_autofree char *safe = pf_safe(name);
    const PfJson *destination;

    if (!domain) {
        return;
    }
    if (domain->policy.off) {
        pf_check_add(check, PF_FINDING_WARNING, "domain.off",
                     _("change its <metadata> if it shall carry them"),
                     _("the XML of domain '%s' says that portferry leaves its ports alone"), safe);
        return;
    }
    if (domain->ports->len == 0) {
        pf_check_add(check, PF_FINDING_OK, "domain.no-ports", NULL,
                     _("domain '%s' has no port of OVN: there is nothing to carry"), safe);
        return;
    }
    if (!check->chassis) {
        pf_check_add(check, PF_FINDING_UNKNOWN, "domain.ports-unknown", NULL,
                     _("without the southbound database, nothing can be said about the ports of "
                       "domain '%s'"),
                     safe);
        return;
    }
    destination = check_destination(check, to);
    if (!destination) {
        return;
    }
    for (guint i = 0; i < domain->ports->len; i++) {
        check_port(check, g_ptr_array_index(domain->ports, i), destination);
    }
}
