/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* OVN as this host sees it: the local Open vSwitch, both of OVN's databases, and the tunnels. */

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "marker.h"
#include "terminal.h"

/* What each operation of the questions below is. */
enum { HOST_SWITCH, HOST_BRIDGE, HOST_INTERFACES, HOST_SSL };
enum { SB_CHASSIS, SB_ENCAPS, SB_GLOBAL };

/* What a version of OVN can do, oldest first; a lower bound for each branch that got it. */

typedef struct {
    guint year, month, patch;
} Version;

static bool parse_version(const char *text, Version *v)
{
    return text && sscanf(text, "%u.%u.%u", &v->year, &v->month, &v->patch) >= 2;
}

static bool at_least(const Version *v, guint year, guint month, guint patch)
{
    if (v->year != year) {
        return v->year > year;
    }
    return v->month != month ? v->month > month : v->patch >= patch;
}

static bool is_branch(const Version *v, guint year, guint month)
{
    return v->year == year && v->month == month;
}

/* The strategies that the configuration names are for ovn-controller to know. */
static void check_strategy(PfCheck *check, const Version *v)
{
    const char *strategy = check->config->activation_strategy;

    if (!g_str_equal(strategy, "rarp") && !at_least(v, 25, 9, 0)) {
        pf_check_add(
            check, PF_FINDING_PROBLEM, "switch.strategy",
            _("set activation-strategy=rarp in portferry.conf, or upgrade OVN on all hosts"),
            _("activation-strategy is %s, but garp and na came with OVN 25.09"), strategy);
    }
}

static void check_version(PfCheck *check, const char *id, const char *what, const char *version)
{
    g_autofree char *safe = pf_safe(version);
    Version v = {0};

    if (!parse_version(version, &v)) {
        pf_check_add(check, PF_FINDING_UNKNOWN, id, NULL, _("%s: '%s' is no version of OVN"), what,
                     safe);
        return;
    }

    bool list = at_least(&v, 22, 6, 0);
    bool strategy = at_least(&v, 22, 9, 0) || (is_branch(&v, 22, 6) && v.patch >= 1);
    bool installed = at_least(&v, 23, 3, 1) || (is_branch(&v, 22, 9) && v.patch >= 2) ||
                     (is_branch(&v, 22, 12) && v.patch >= 1);
    const char *upgrade = _("upgrade OVN on all hosts, to 24.03.6 or later");

    if (g_str_equal(id, "switch.controller")) {
        check_strategy(check, &v);
    }
    if (!list) {
        pf_check_add(check, PF_FINDING_PROBLEM, id, upgrade,
                     _("%s %s can't bind a port to two chassis, which 22.06 brought"), what, safe);
    } else if (!strategy) {
        pf_check_add(check, PF_FINDING_PROBLEM, id, upgrade,
                     _("%s %s can't keep a destination closed until the guest runs there, which "
                       "22.09 brought: packets would arrive twice"),
                     what, safe);
    } else if (!installed) {
        pf_check_add(check, PF_FINDING_PROBLEM, id, upgrade,
                     _("%s %s doesn't tell when a destination is ready, which 22.09.2, 22.12.1 and "
                       "23.03.1 brought"),
                     what, safe);
    } else if (!at_least(&v, 24, 3, 6)) {
        pf_check_add(check, PF_FINDING_WARNING, id, upgrade,
                     _("%s %s can do all that is needed, but 24.03.6 and later have repairs for "
                       "ports on two chassis: path MTU, large networks, container ports"),
                     what, safe);
    } else {
        pf_check_add(check, PF_FINDING_OK, id, NULL, _("%s %s can do all that is needed"), what,
                     safe);
    }
}

/* "ovn-controller 23.03.1" -> "23.03.1", of the first line. */
static char *version_of(const char *output)
{
    g_auto(GStrv) words = g_strsplit_set(output ? output : "", " \n", 3);

    return g_strdup(g_strv_length(words) >= 2 ? words[1] : "");
}

static void check_controller(PfCheck *check)
{
    static const char *const running[] = {"ovn-appctl", "-t", "ovn-controller", "version", NULL};
    static const char *const installed[] = {"ovn-controller", "--version", NULL};
    g_auto(PfRun) run = {0};

    pf_host_run(&run, 5, running);
    if (run.result == PF_RUN_OK) {
        g_autofree char *version = version_of(run.output);

        check_version(check, "switch.controller", _("the running ovn-controller"), version);
        return;
    }

    g_auto(PfRun) other = {0};

    pf_host_run(&other, 5, installed);
    if (other.result == PF_RUN_OK) {
        g_autofree char *version = version_of(other.output);

        pf_check_add_unknown(check, "switch.controller-unknown",
                             _("the running ovn-controller could not be asked"), &run);
        check_version(check, "switch.controller", _("the installed ovn-controller"), version);
    } else {
        pf_check_add_unknown(check, "switch.controller-unknown", _("ovn-controller's version"),
                             &other);
    }
}

static const PfJson *first_row(const PfJson *results, guint operation)
{
    return pf_json_at(pf_ovsdb_tool_rows(results, operation), 0);
}

/* external_ids of the local Open_vSwitch row. */
static const char *host_id(const PfCheck *check, const char *key)
{
    return pf_ovsdb_tool_map_get(first_row(check->host_rows, HOST_SWITCH), "external_ids", key);
}

/* Whether the reason why a database wasn't reached lies with whoever asks. */
static bool is_own_fault(const PfRun *run)
{
    return run->result == PF_RUN_MISSING || strstr(run->error, "Permission denied") != NULL;
}

static void check_identity(PfCheck *check)
{
    const char *system_id = host_id(check, "system-id");
    const char *const needed[] = {"ovn-remote", "ovn-encap-type", "ovn-encap-ip"};

    if (!system_id || !*system_id) {
        pf_check_add(check, PF_FINDING_PROBLEM, "switch.system-id",
                     _("ovs-vsctl set Open_vSwitch . external_ids:system-id=NAME, another one on "
                       "each host"),
                     _("this host has no name in OVN: external_ids:system-id is not set"));
    } else {
        g_autofree char *safe = pf_safe(system_id);

        check->system_id = g_strdup(system_id);
        pf_check_add(check, PF_FINDING_OK, "switch.system-id", NULL,
                     _("this host's name in OVN (system-id) is '%s'"), safe);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(needed); i++) {
        const char *value = host_id(check, needed[i]);
        g_autofree char *id = g_strconcat("switch.", needed[i], NULL);

        if (!value || !*value) {
            pf_check_add(check, PF_FINDING_PROBLEM, id,
                         _("set it as ovn-controller(8) says; ovn-controller needs it too"),
                         _("external_ids:%s of the Open_vSwitch row is not set"), needed[i]);
        }
    }
}

void pf_check_switch(PfCheck *check)
{
    PfConfig *config = check->config;
    g_autofree char *bridge = pf_ovsdb_tool_quote(config->integration_bridge);
    g_autofree char *row =
        pf_ovsdb_tool_select("Open_vSwitch", NULL, NULL, NULL, "external_ids,ovs_version");
    g_autofree char *bridges = pf_ovsdb_tool_select("Bridge", "name", "==", bridge, "name");
    g_autofree char *interfaces =
        pf_ovsdb_tool_select("Interface", NULL, NULL, NULL, "name,mtu,external_ids");
    g_autofree char *ssl =
        pf_ovsdb_tool_select("SSL", NULL, NULL, NULL, "private_key,certificate,ca_cert");
    g_autofree char *all = g_strdup_printf("%s,%s,%s,%s", row, bridges, interfaces, ssl);
    g_autofree char *safe_bridge = pf_safe(config->integration_bridge);
    g_auto(PfRun) run = {0};

    check->host_rows = pf_ovsdb_tool_query(config, config->ovs_db, "Open_vSwitch", all, &run);
    check->sb_remote = g_strdup(config->ovn_sb);
    check->nb_remote = g_strdup(config->ovn_nb);
    check->nb_is_none = pf_remote_is_none(check->nb_remote);
    if (!check->host_rows) {
        if (is_own_fault(&run)) {
            pf_check_add_unknown(check, "switch.unknown", _("the Open vSwitch database"), &run);
        } else {
            pf_check_add(check, PF_FINDING_PROBLEM, "switch.unreachable",
                         _("check that openvswitch-switch runs, and ovs-db in portferry.conf"),
                         _("Open vSwitch's database can't be reached: %s"), run.error);
        }
        check_controller(check);
        return;
    }

    check_identity(check);
    if (!first_row(check->host_rows, HOST_BRIDGE)) {
        pf_check_add(check, PF_FINDING_PROBLEM, "switch.bridge",
                     _("check that ovn-controller runs, and integration-bridge in portferry.conf"),
                     _("there is no integration bridge '%s'"), safe_bridge);
    } else {
        pf_check_add(check, PF_FINDING_OK, "switch.bridge", NULL,
                     _("the integration bridge '%s' is there"), safe_bridge);
    }
    check_controller(check);

    if (!check->sb_remote) {
        check->sb_remote = g_strdup(host_id(check, "ovn-remote"));
    }
    if (!check->nb_remote) {
        check->nb_remote = g_strdup(host_id(check, "ovn-nb-remote"));
    }
    check->nb_is_none = pf_remote_is_none(check->nb_remote);
    if (check->nb_is_none) {
        g_clear_pointer(&check->nb_remote, g_free);
    }
    pf_check_tls_find(check);
}

/* The southbound database */

static void check_row(PfCheck *check, const PfJson *row)
{
    const char *set = host_id(check, "hostname");
    const char *hostname = set && *set ? set : g_get_host_name();
    const char *shown = pf_ovsdb_tool_get(row, "hostname");
    g_autofree char *safe = pf_safe(hostname);
    g_autofree char *safe_shown = pf_safe(shown);
    const PfJson *all = pf_ovsdb_tool_rows(check->chassis, SB_CHASSIS);
    guint n = 0;

    if (g_strcmp0(shown, hostname) != 0) {
        pf_check_add(check, PF_FINDING_WARNING, "southbound.hostname",
                     _("see that no other host has this one's system-id, then restart "
                       "ovn-controller"),
                     _("this host is called '%s', but its chassis row says '%s'"), safe,
                     safe_shown);
    }
    for (guint i = 0; i < pf_json_length(all); i++) {
        n += g_strcmp0(pf_ovsdb_tool_get(pf_json_at(all, i), "hostname"), shown) == 0;
    }
    if (n > 1) {
        pf_check_add(
            check, PF_FINDING_WARNING, "southbound.hostname-twice",
            _("remove the row of a host that no longer exists: ovn-sbctl chassis-del NAME; "
              "or give the other host a name of its own"),
            _("%u chassis have the host name '%s'"), n, safe_shown);
    }
}

static void check_encap(PfCheck *check)
{
    const char *ips = host_id(check, "ovn-encap-ip");
    const PfJson *encaps = pf_ovsdb_tool_rows(check->chassis, SB_ENCAPS);
    g_auto(GStrv) wanted = g_strsplit(ips ? ips : "", ",", -1);

    for (guint i = 0; ips && i < pf_json_length(encaps); i++) {
        const PfJson *row = pf_json_at(encaps, i);
        const char *ip = pf_ovsdb_tool_get(row, "ip");

        if (g_strcmp0(pf_ovsdb_tool_get(row, "chassis_name"), check->system_id) == 0 && ip &&
            !g_strv_contains((const char *const *)wanted, ip)) {
            g_autofree char *safe = pf_safe(ip);

            pf_check_add(check, PF_FINDING_PROBLEM, "southbound.system-id-twice",
                         _("give each host a system-id of its own"),
                         _("this host's chassis row has the tunnel address %s, which isn't this "
                           "host's: another host seems to have the same system-id"),
                         safe);
            return;
        }
    }
    if (g_strv_length(wanted) > 1) {
        pf_check_add(check, PF_FINDING_WARNING, "southbound.encap-several",
                     _("one address in ovn-encap-ip, if a bond can take the others' place"),
                     _("this host has several tunnel addresses; OVN may pick the wrong one for a "
                       "port on two chassis"));
    }
}

void pf_check_southbound(PfCheck *check)
{
    g_autofree char *chassis =
        pf_ovsdb_tool_select("Chassis", NULL, NULL, NULL, "_uuid,name,hostname,other_config");
    g_autofree char *encaps =
        pf_ovsdb_tool_select("Encap", NULL, NULL, NULL, "chassis_name,type,ip");
    g_autofree char *global = pf_ovsdb_tool_select("SB_Global", NULL, NULL, NULL, "options");
    g_autofree char *all = g_strdup_printf("%s,%s,%s", chassis, encaps, global);
    g_autofree char *safe_remote = pf_safe(check->sb_remote);
    g_auto(PfRun) run = {0};
    const PfJson *rows, *own = NULL;
    const char *northd;

    if (!check->sb_remote) {
        if (check->host_rows) {
            pf_check_add(check, PF_FINDING_PROBLEM, "southbound.unset",
                         _("set external_ids:ovn-remote of the Open_vSwitch row, or ovn-sb in "
                           "portferry.conf"),
                         _("nothing says where the southbound database is"));
        } else {
            pf_check_add(check, PF_FINDING_UNKNOWN, "southbound.unknown", NULL,
                         _("where the southbound database is could not be found out"));
        }
        return;
    }
    check->chassis =
        pf_ovsdb_tool_query(check->config, check->sb_remote, "OVN_Southbound", all, &run);
    if (!check->chassis) {
        if (is_own_fault(&run)) {
            pf_check_add_unknown(check, "southbound.unknown", _("the southbound database"), &run);
        } else {
            pf_check_add(check, PF_FINDING_PROBLEM, "southbound.unreachable",
                         _("check the network to it, its certificates, and that it runs"),
                         _("the southbound database at %s can't be reached: %s"), safe_remote,
                         run.error);
        }
        return;
    }
    pf_check_add(check, PF_FINDING_OK, "southbound.reachable", NULL,
                 _("the southbound database at %s answers"), safe_remote);

    northd = pf_ovsdb_tool_map_get(first_row(check->chassis, SB_GLOBAL), "options",
                                   "northd_internal_version");
    if (northd) {
        g_autofree char *version = g_strndup(northd, strcspn(northd, "-"));

        check_version(check, "southbound.northd", "ovn-northd", version);
    } else {
        pf_check_add(check, PF_FINDING_UNKNOWN, "southbound.northd-unknown", NULL,
                     _("the southbound database doesn't tell ovn-northd's version"));
    }
    if (!check->system_id) {
        return;
    }
    rows = pf_ovsdb_tool_rows(check->chassis, SB_CHASSIS);
    for (guint i = 0; i < pf_json_length(rows); i++) {
        if (g_strcmp0(pf_ovsdb_tool_get(pf_json_at(rows, i), "name"), check->system_id) == 0) {
            own = pf_json_at(rows, i);
        }
    }
    if (!own) {
        g_autofree char *safe = pf_safe(check->system_id);

        pf_check_add(check, PF_FINDING_PROBLEM, "southbound.chassis",
                     _("check that ovn-controller runs and reaches the database"),
                     _("there is no chassis '%s' in the southbound database"), safe);
        return;
    }
    pf_check_add(check, PF_FINDING_OK, "southbound.chassis", NULL,
                 _("this host has its chassis row, one of %u"), pf_json_length(rows));
    check_row(check, own);
    check_encap(check);
}

/* The northbound database */

/* Adds what is wrong with the markers in 'rows'; a handover's ports are counted once. */
static void check_markers(PfCheck *check, const PfJson *rows, GHashTable *seen)
{
    for (guint i = 0; i < pf_json_length(rows); i++) {
        const PfJson *row = pf_json_at(rows, i);
        const char *id = pf_ovsdb_tool_map_get(row, "external_ids", PF_MARKER_HANDOVER);
        const char *name = pf_ovsdb_tool_get(row, "name");
        g_autofree char *safe = pf_safe(name);

        if (!g_hash_table_add(seen, g_strdup(id ? id : name))) {
            continue;
        }
        if (!check->handovers) {
            pf_check_add(check, PF_FINDING_WARNING, "northbound.marker-waiting",
                         _("start portferryd: it takes the handover up again"),
                         _("port '%s' carries the marker of a handover that is not finished"),
                         safe);
        } else if (!id || !g_hash_table_contains(check->handovers, id)) {
            pf_check_add(check, PF_FINDING_WARNING, "northbound.marker-orphan",
                         _("journalctl -u portferryd says why; once no migration of its guest is "
                           "under way, remove its external_ids that begin with portferry-"),
                         _("port '%s' carries a marker that names this host, but portferryd has no "
                           "open handover for it"),
                         safe);
        }
    }
}

/* A write that concerns no row, and is taken back: says whether one would be let through. */
static void check_writable(PfCheck *check, const char *safe_remote)
{
    const char *probe =
        "{\"op\":\"mutate\",\"table\":\"Logical_Switch_Port\",\"where\":[[\"_uuid\","
        "\"==\",[\"uuid\",\"00000000-0000-0000-0000-000000000000\"]]],"
        "\"mutations\":[[\"external_ids\",\"delete\",[\"set\",[\"portferry-\"]]]]}";
    g_auto(PfRun) run = {0};
    g_autoptr(PfJson) results =
        pf_ovsdb_tool_query(check->config, check->nb_remote, "OVN_Northbound", probe, &run);

    if (results) {
        pf_check_add(check, PF_FINDING_OK, "northbound.writable", NULL,
                     _("the northbound database takes what this host would write"));
    } else if (run.result == PF_RUN_FAILED) {
        pf_check_add(check, PF_FINDING_PROBLEM, "northbound.read-only",
                     _("name a remote in ovn-nb that is not read-only, nor a backup's"),
                     _("the northbound database at %s takes nothing that this host would write: "
                       "%s"),
                     safe_remote, run.error);
    } else {
        pf_check_add_unknown(check, "northbound.writable-unknown", _("writing to it"), &run);
    }
}

void pf_check_northbound(PfCheck *check)
{
    g_autofree char *global = pf_ovsdb_tool_select("NB_Global", NULL, NULL, NULL, "nb_cfg");
    g_autofree char *safe_remote = pf_safe(check->nb_remote);
    g_autofree char *name = pf_ovsdb_tool_quote(check->system_id ? check->system_id : "");
    g_autofree char *as_source = g_strdup_printf("[\"map\",[[\"%s\",%s]]]", PF_MARKER_SOURCE, name);
    g_autofree char *as_destination =
        g_strdup_printf("[\"map\",[[\"%s\",%s]]]", PF_MARKER_DESTINATION, name);
    g_autofree char *leaving = pf_ovsdb_tool_select("Logical_Switch_Port", "external_ids",
                                                    "includes", as_source, "name,external_ids");
    g_autofree char *coming = pf_ovsdb_tool_select("Logical_Switch_Port", "external_ids",
                                                   "includes", as_destination, "name,external_ids");
    g_autofree char *all = g_strdup_printf("%s,%s,%s", global, leaving, coming);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(PfJson) results = NULL;
    g_auto(PfRun) run = {0};

    if (check->nb_is_none) {
        pf_check_add(check, PF_FINDING_OK, "northbound.none", NULL,
                     _("this host has no northbound database (ovn-nb=none): a CMS has to set "
                       "requested-chassis to both hosts before a migration, and to one of them "
                       "after it"));
        return;
    }
    if (!check->nb_remote && check->nb_connected) {
        pf_check_add(
            check, PF_FINDING_UNKNOWN, "northbound.command-line", NULL,
            _("portferryd knows the northbound database from its command line, and so this "
              "can't look into it"));
        return;
    }
    if (!check->nb_remote) {
        pf_check_add(check, check->host_rows ? PF_FINDING_WARNING : PF_FINDING_UNKNOWN,
                     "northbound.unset",
                     _("ovn-nb in portferry.conf, or ovs-vsctl set Open_vSwitch . "
                       "external_ids:ovn-nb-remote=REMOTE; \"none\" instead of REMOTE where a CMS "
                       "sets requested-chassis to both hosts by itself"),
                     _("nothing says where the northbound database is"));
        return;
    }
    results = pf_ovsdb_tool_query(check->config, check->nb_remote, "OVN_Northbound", all, &run);
    if (!results) {
        if (is_own_fault(&run)) {
            pf_check_add_unknown(check, "northbound.unknown", _("the northbound database"), &run);
        } else {
            pf_check_add(check, PF_FINDING_PROBLEM, "northbound.unreachable",
                         _("check the network to it, its certificates, and that it runs"),
                         _("the northbound database at %s can't be reached: %s"), safe_remote,
                         run.error);
        }
        return;
    }
    pf_check_add(check, PF_FINDING_OK, "northbound.reachable", NULL,
                 _("the northbound database at %s answers"), safe_remote);
    check_writable(check, safe_remote);
    if (check->system_id) {
        check_markers(check, pf_ovsdb_tool_rows(results, 1), seen);
        check_markers(check, pf_ovsdb_tool_rows(results, 2), seen);
    }
}

/* The size of packets: while a port is on two chassis, its traffic takes the tunnel, also on a
 * network that has a way of its own (localnet). */

/* What a tunnel adds to a guest's packet: outer IP, UDP, tunnel and OVN's option, inner Ethernet.
 */
static gint64 overhead(const char *type, int family)
{
    gint64 ip = family == AF_INET6 ? 40 : 20;

    if (g_str_equal(type, "geneve")) {
        return ip + 8 + 8 + 8 + 14;
    }
    return g_str_equal(type, "vxlan") ? ip + 8 + 8 + 14 : 0;
}

/* The interface with the address 'ip', and its MTU; 0 if there is none. */
static gint64 mtu_of_address(const char *ip, int *family, char **name)
{
    struct ifaddrs *all = NULL;
    gint64 mtu = 0;

    if (getifaddrs(&all) < 0) {
        return 0;
    }
    for (struct ifaddrs *i = all; i && mtu == 0; i = i->ifa_next) {
        char text[INET6_ADDRSTRLEN];
        const void *address = NULL;

        if (!i->ifa_addr) {
            continue;
        }
        if (i->ifa_addr->sa_family == AF_INET) {
            address = &((const struct sockaddr_in *)(gconstpointer)i->ifa_addr)->sin_addr;
        } else if (i->ifa_addr->sa_family == AF_INET6) {
            address = &((const struct sockaddr_in6 *)(gconstpointer)i->ifa_addr)->sin6_addr;
        }
        if (address && inet_ntop(i->ifa_addr->sa_family, address, text, sizeof text) &&
            g_str_equal(text, ip)) {
            g_autofree char *path = g_strdup_printf("/sys/class/net/%s/mtu", i->ifa_name);
            g_autofree char *value = pf_host_read(path);

            mtu = value ? g_ascii_strtoll(value, NULL, 10) : 0;
            *family = i->ifa_addr->sa_family;
            *name = g_strdup(i->ifa_name);
        }
    }
    freeifaddrs(all);
    return mtu;
}

static void check_guests(PfCheck *check, const char *device, gint64 mtu, gint64 added)
{
    const PfJson *rows = pf_ovsdb_tool_rows(check->host_rows, HOST_INTERFACES);
    g_autoptr(GString) names = g_string_new(NULL);
    gint64 largest = 0;
    guint n = 0, n_large = 0;

    for (guint i = 0; i < pf_json_length(rows); i++) {
        const PfJson *row = pf_json_at(rows, i);
        gint64 guest_mtu = pf_ovsdb_tool_integer(row, "mtu", 0);

        if (!pf_ovsdb_tool_map_get(row, "external_ids", "iface-id") || guest_mtu == 0) {
            continue;
        }
        n++;
        if (guest_mtu > check->tunnel_room) {
            g_autofree char *name = pf_safe(pf_ovsdb_tool_get(row, "name"));

            largest = MAX(largest, guest_mtu);
            if (n_large++ < 5) {
                g_string_append_printf(names, "%s%s", names->len ? ", " : "", name);
            }
        }
    }
    if (n_large > 0) {
        g_autofree char *advice = g_strdup_printf(
            _("raise the MTU of %s, and of the network behind it, to %d or more; or lower the "
              "guests' to %d"),
            device, (int)(largest + added), (int)check->tunnel_room);

        pf_check_add(check, PF_FINDING_WARNING, "mtu.guests", advice,
                     ngettext("%u port has an MTU of more than %d, which the tunnels carry: %s; in "
                              "a handover its large packets are lost or must be sent again",
                              "%u ports have an MTU of more than %d, which the tunnels carry: %s; "
                              "in a handover their large packets are lost or must be sent again",
                              n_large),
                     n_large, (int)check->tunnel_room, names->str);
    } else {
        pf_check_add(check, PF_FINDING_OK, "mtu.guests", NULL,
                     ngettext("the MTU of the %u port on this host fits into the tunnels: %d of "
                              "%d bytes are the guest's",
                              "the MTU of all %u ports on this host fits into the tunnels: %d of "
                              "%d bytes are the guests'",
                              n),
                     n, (int)check->tunnel_room, (int)mtu);
    }
}

void pf_check_mtu(PfCheck *check)
{
    const char *ips = check->host_rows ? host_id(check, "ovn-encap-ip") : NULL;
    const char *types = check->host_rows ? host_id(check, "ovn-encap-type") : NULL;
    g_auto(GStrv) addresses = g_strsplit(ips ? ips : "", ",", -1);
    g_autofree char *type = types ? g_strndup(types, strcspn(types, ",")) : NULL;
    g_autofree char *device = NULL;
    gint64 mtu, added;
    int family = AF_INET;

    if (!ips || !*ips || !type) {
        return; /* reported with the switch */
    }

    g_autofree char *safe_ip = pf_safe(addresses[0]);
    g_autofree char *safe_type = pf_safe(type);

    mtu = mtu_of_address(addresses[0], &family, &device);
    if (mtu == 0) {
        pf_check_add(check, PF_FINDING_UNKNOWN, "mtu.device", NULL,
                     _("no interface of this host has the tunnel address %s, so the MTU of the "
                       "tunnels isn't known"),
                     safe_ip);
        return;
    }
    added = overhead(type, family);
    if (added == 0) {
        pf_check_add(check, PF_FINDING_UNKNOWN, "mtu.type", NULL,
                     _("how much a tunnel of type '%s' adds to a packet isn't known"), safe_type);
        return;
    }
    check->tunnel_room = mtu - added;
    check_guests(check, device, mtu, added);
}
