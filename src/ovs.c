/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <config.h>

#include "ovs.h"

#include <openvswitch/json.h>
#include <ovsdb-idl.h>
#include <smap.h>
#include <string.h>

#include "tap.h"
#include "vswitch-idl.h"

#define OVS_RUNDIR "/run/openvswitch"

/* What a released interface carries in place of its iface-id. */
#define KEY_IFACE_ID "portferry-iface-id"
#define KEY_HANDOVER "portferry-handover"

struct PfOvs {
    PfOvsdb *db;
    char *bridge;
    char *folder; /* of the switch's sockets */
    PfOvsChanged changed;
    gpointer data;
};

static void configure(struct ovsdb_idl *idl, gpointer data G_GNUC_UNUSED)
{
    ovsdb_idl_add_table(idl, &ovsrec_table_open_vswitch);
    ovsdb_idl_add_column(idl, &ovsrec_open_vswitch_col_external_ids);
    ovsdb_idl_add_table(idl, &ovsrec_table_ssl);
    ovsdb_idl_add_column(idl, &ovsrec_ssl_col_private_key);
    ovsdb_idl_add_column(idl, &ovsrec_ssl_col_certificate);
    ovsdb_idl_add_column(idl, &ovsrec_ssl_col_ca_cert);
    ovsdb_idl_add_table(idl, &ovsrec_table_bridge);
    ovsdb_idl_add_column(idl, &ovsrec_bridge_col_name);
    ovsdb_idl_add_column(idl, &ovsrec_bridge_col_external_ids);
    ovsdb_idl_add_column(idl, &ovsrec_bridge_col_ports);
    ovsdb_idl_add_table(idl, &ovsrec_table_port);
    ovsdb_idl_add_column(idl, &ovsrec_port_col_interfaces);
    ovsdb_idl_add_table(idl, &ovsrec_table_interface);
    ovsdb_idl_add_column(idl, &ovsrec_interface_col_name);
    ovsdb_idl_add_column(idl, &ovsrec_interface_col_external_ids);
    ovsdb_idl_add_column(idl, &ovsrec_interface_col_ofport);
}

static void db_changed(PfOvsdb *db G_GNUC_UNUSED, gpointer data)
{
    PfOvs *ovs = data;
    ovs->changed(ovs->data);
}

PfOvs *pf_ovs_new(PfOvsdbLoop *loop, const char *remote, const char *bridge, PfOvsChanged changed,
                  gpointer data, GError **error)
{
    g_autoptr(PfOvs) ovs = g_new0(PfOvs, 1);
    ovs->bridge = g_strdup(bridge);
    ovs->changed = changed;
    ovs->data = data;
    ovs->db = pf_ovsdb_new(loop, &ovsrec_idl_class, "Open vSwitch", configure, db_changed, ovs);
    if (!pf_ovs_set_remote(ovs, remote, error)) {
        return NULL;
    }
    return g_steal_pointer(&ovs);
}

void pf_ovs_free(PfOvs *ovs)
{
    if (!ovs) {
        return;
    }
    pf_ovsdb_free(ovs->db);
    g_free(ovs->bridge);
    g_free(ovs->folder);
    g_free(ovs);
}

gboolean pf_ovs_set_remote(PfOvs *ovs, const char *remote, GError **error)
{
    if (!pf_ovsdb_set_remote(ovs->db, remote, error)) {
        return FALSE;
    }
    g_free(ovs->folder);
    ovs->folder = remote && g_str_has_prefix(remote, "unix:")
                      ? g_path_get_dirname(remote + strlen("unix:"))
                      : g_strdup(OVS_RUNDIR);
    return TRUE;
}

char *pf_ovs_get_openflow_socket(const PfOvs *ovs)
{
    return g_strdup_printf("%s/%s.mgmt", ovs->folder, ovs->bridge);
}

PfOvsdbState pf_ovs_get_state(const PfOvs *ovs)
{
    return pf_ovsdb_get_state(ovs->db);
}

const char *pf_ovs_get_external_id(const PfOvs *ovs, const char *key)
{
    const struct ovsrec_open_vswitch *root = ovsrec_open_vswitch_first(pf_ovsdb_get_idl(ovs->db));
    return root ? smap_get(&root->external_ids, key) : NULL;
}

gboolean pf_ovs_get_tls(const PfOvs *ovs, const char **private_key, const char **certificate,
                        const char **ca_certificate)
{
    const struct ovsrec_ssl *ssl = ovsrec_ssl_first(pf_ovsdb_get_idl(ovs->db));
    if (!ssl) {
        return FALSE;
    }
    *private_key = ssl->private_key;
    *certificate = ssl->certificate;
    *ca_certificate = ssl->ca_cert;
    return TRUE;
}

gint64 pf_ovs_get_flows_cfg(const PfOvs *ovs)
{
    const struct ovsrec_bridge *bridge;
    OVSREC_BRIDGE_FOR_EACH (bridge, pf_ovsdb_get_idl(ovs->db)) {
        if (g_str_equal(bridge->name, ovs->bridge)) {
            return (gint64)smap_get_ullong(&bridge->external_ids, "ovn-nb-cfg", UINT64_MAX);
        }
    }
    return -1;
}

void pf_ovs_get_port(const PfOvs *ovs, const char *iface_id, PfPortFacts *facts)
{
    const struct ovsrec_interface *iface;

    facts->ovs_claimed = facts->ovs_installed = facts->ovs_released = FALSE;
    OVSREC_INTERFACE_FOR_EACH (iface, pf_ovsdb_get_idl(ovs->db)) {
        if (g_strcmp0(smap_get(&iface->external_ids, "iface-id"), iface_id) == 0) {
            facts->ovs_claimed = TRUE;
            /* Without an OpenFlow port number ovn-controller doesn't claim it (binding.c). */
            if (iface->n_ofport && iface->ofport[0] > 0 &&
                smap_get_bool(&iface->external_ids, "ovn-installed", false)) {
                facts->ovs_installed = TRUE;
            }
        } else if (g_strcmp0(smap_get(&iface->external_ids, KEY_IFACE_ID), iface_id) == 0) {
            facts->ovs_released = TRUE;
        }
    }
}

void pf_ovs_foreach_claiming(const PfOvs *ovs, const char *iface_id, PfOvsInterface interface,
                             gpointer data)
{
    const struct ovsrec_interface *iface;

    OVSREC_INTERFACE_FOR_EACH (iface, pf_ovsdb_get_idl(ovs->db)) {
        if (g_strcmp0(smap_get(&iface->external_ids, "iface-id"), iface_id) == 0) {
            interface(iface->name, data);
        }
    }
}

static const char *get_domain(const struct ovsrec_interface *iface)
{
    const char *uuid = smap_get(&iface->external_ids, "vm-id");
    return uuid ? uuid : smap_get(&iface->external_ids, "vm-uuid"); /* os-vif's */
}

const char *pf_ovs_get_domain(const PfOvs *ovs, const char *iface_id)
{
    const struct ovsrec_interface *iface;

    OVSREC_INTERFACE_FOR_EACH (iface, pf_ovsdb_get_idl(ovs->db)) {
        if (g_strcmp0(smap_get(&iface->external_ids, "iface-id"), iface_id) == 0 &&
            get_domain(iface)) {
            return get_domain(iface);
        }
    }
    return NULL;
}

char **pf_ovs_get_domain_ports(const PfOvs *ovs, const char *uuid)
{
    g_autoptr(GStrvBuilder) ports = g_strv_builder_new();
    const struct ovsrec_interface *iface;

    OVSREC_INTERFACE_FOR_EACH (iface, pf_ovsdb_get_idl(ovs->db)) {
        const char *id = smap_get(&iface->external_ids, "iface-id");
        if (!id) {
            id = smap_get(&iface->external_ids, KEY_IFACE_ID);
        }
        if (id && g_strcmp0(get_domain(iface), uuid) == 0) {
            g_strv_builder_add(ports, id);
        }
    }
    return g_strv_builder_end(ports);
}

void pf_ovs_foreach_released(const PfOvs *ovs, PfOvsReleased released, gpointer data)
{
    const struct ovsrec_interface *iface;

    OVSREC_INTERFACE_FOR_EACH (iface, pf_ovsdb_get_idl(ovs->db)) {
        const char *id = smap_get(&iface->external_ids, KEY_IFACE_ID);
        const char *vm = smap_get(&iface->external_ids, "vm-id");
        const char *handover = smap_get(&iface->external_ids, KEY_HANDOVER);
        if (id && vm && handover) {
            released(id, vm, handover, data);
        }
    }
}

/* ---- letting go, and taking back ---- */

typedef struct {
    char **iface_ids;
    char *handover_id; /* NULL: take back */
    PfOvsdbDone done;
    gpointer data;
} Claim;

static PfOvsdbBuildResult build_claim(struct ovsdb_idl *idl,
                                      struct ovsdb_idl_txn *txn G_GNUC_UNUSED, gpointer data,
                                      GError **error G_GNUC_UNUSED)
{
    const Claim *claim = data;
    const char *from = claim->handover_id ? "iface-id" : KEY_IFACE_ID;
    const char *to = claim->handover_id ? KEY_IFACE_ID : "iface-id";
    const struct ovsrec_interface *iface;
    gboolean any = FALSE;

    OVSREC_INTERFACE_FOR_EACH (iface, idl) {
        const char *id = smap_get(&iface->external_ids, from);
        if (!id || !g_strv_contains((const char *const *)claim->iface_ids, id)) {
            continue;
        }
        ovsrec_interface_verify_external_ids(iface);
        ovsrec_interface_update_external_ids_setkey(iface, to, id);
        if (claim->handover_id) {
            ovsrec_interface_update_external_ids_setkey(iface, KEY_HANDOVER, claim->handover_id);
        } else {
            ovsrec_interface_update_external_ids_delkey(iface, KEY_HANDOVER);
        }
        ovsrec_interface_update_external_ids_delkey(iface, from);
        any = TRUE;
    }
    return any ? PF_OVSDB_BUILD_COMMIT : PF_OVSDB_BUILD_NOTHING;
}

static void claim_done(const GError *error, gpointer data)
{
    Claim *claim = data;
    claim->done(error, claim->data);
    g_strfreev(claim->iface_ids);
    g_free(claim->handover_id);
    g_free(claim);
}

static void change_claim(PfOvs *ovs, const char *const *iface_ids, const char *handover_id,
                         guint timeout_ms, PfOvsdbDone done, gpointer data)
{
    Claim *claim = g_new0(Claim, 1);
    claim->iface_ids = g_strdupv((char **)iface_ids);
    claim->handover_id = g_strdup(handover_id);
    claim->done = done;
    claim->data = data;
    pf_ovsdb_txn(ovs->db, handover_id ? "portferryd: release" : "portferryd: reclaim", build_claim,
                 claim, timeout_ms, claim_done);
}

void pf_ovs_release(PfOvs *ovs, const char *const *iface_ids, const char *handover_id,
                    guint timeout_ms, PfOvsdbDone done, gpointer data)
{
    g_return_if_fail(handover_id != NULL);
    change_claim(ovs, iface_ids, handover_id, timeout_ms, done, data);
}

void pf_ovs_reclaim(PfOvs *ovs, const char *const *iface_ids, guint timeout_ms, PfOvsdbDone done,
                    gpointer data)
{
    change_claim(ovs, iface_ids, NULL, timeout_ms, done, data);
}

/* ---- clearing away ---- */

typedef struct {
    char **iface_ids;
    char *domain;
    PfOvsdbDone done;
    gpointer data;
} Removal;

static gboolean is_dead(const struct ovsrec_interface *iface, const Removal *removal)
{
    const char *id = smap_get(&iface->external_ids, "iface-id");
    const char *vm = smap_get(&iface->external_ids, "vm-id");

    if (!id) {
        id = smap_get(&iface->external_ids, KEY_IFACE_ID);
    }
    return id && g_strv_contains((const char *const *)removal->iface_ids, id) &&
           g_strcmp0(vm, removal->domain) == 0 && !pf_tap_exists(iface->name);
}

static gboolean has_dead(const struct ovsrec_port *port, const Removal *removal)
{
    for (size_t i = 0; i < port->n_interfaces; i++) {
        if (is_dead(port->interfaces[i], removal)) {
            ovsrec_interface_verify_external_ids(port->interfaces[i]);
            return TRUE;
        }
    }
    return FALSE;
}

static PfOvsdbBuildResult build_removal(struct ovsdb_idl *idl,
                                        struct ovsdb_idl_txn *txn G_GNUC_UNUSED, gpointer data,
                                        GError **error G_GNUC_UNUSED)
{
    const Removal *removal = data;
    const struct ovsrec_bridge *bridge;
    gboolean any = FALSE;

    OVSREC_BRIDGE_FOR_EACH (bridge, idl) {
        for (size_t i = 0; i < bridge->n_ports; i++) {
            if (has_dead(bridge->ports[i], removal)) {
                ovsrec_bridge_update_ports_delvalue(bridge, bridge->ports[i]);
                any = TRUE;
            }
        }
    }
    return any ? PF_OVSDB_BUILD_COMMIT : PF_OVSDB_BUILD_NOTHING;
}

static void removal_done(const GError *error, gpointer data)
{
    Removal *removal = data;
    removal->done(error, removal->data);
    g_strfreev(removal->iface_ids);
    g_free(removal->domain);
    g_free(removal);
}

void pf_ovs_remove_dead(PfOvs *ovs, const char *const *iface_ids, const char *uuid,
                        guint timeout_ms, PfOvsdbDone done, gpointer data)
{
    Removal *removal = g_new0(Removal, 1);
    removal->iface_ids = g_strdupv((char **)iface_ids);
    removal->domain = g_strdup(uuid);
    removal->done = done;
    removal->data = data;
    pf_ovsdb_txn(ovs->db, "portferryd: remove what has no device", build_removal, removal,
                 timeout_ms, removal_done);
}
