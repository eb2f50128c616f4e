/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The local Open vSwitch database: who this host is, and which interfaces claim a port here.
 */

#include <glib.h>

#include "facts.h"
#include "ovsdb.h"

typedef struct PfOvs PfOvs;

/* Something in the database, or the connection to it, has changed. */
typedef void (*PfOvsChanged)(gpointer data);

/* Connects to 'remote' and stays connected.  'bridge' is the integration bridge.  NULL with
 * 'error' if 'remote' is none. */
PfOvs *pf_ovs_new(PfOvsdbLoop *loop, const char *remote, const char *bridge, PfOvsChanged changed,
                  gpointer data, GError **error);
void pf_ovs_free(PfOvs *ovs);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfOvs, pf_ovs_free)

gboolean pf_ovs_set_remote(PfOvs *ovs, const char *remote, GError **error);
PfOvsdbState pf_ovs_get_state(const PfOvs *ovs);

/* Where the integration bridge speaks OpenFlow: beside the socket of its database.  g_free(). */
char *pf_ovs_get_openflow_socket(const PfOvs *ovs);

/* A key of the Open_vSwitch row's external_ids ("system-id", "ovn-remote"), NULL if it has none.
 * ovn-controller(8) lists them.  Valid until the main loop runs again. */
const char *pf_ovs_get_external_id(const PfOvs *ovs, const char *key);

/* The files by which ovn-controller reaches databases by ssl: (ovs-vsctl set-ssl).  FALSE if there
 * are none.  Valid until the main loop runs again. */
gboolean pf_ovs_get_tls(const PfOvs *ovs, const char **private_key, const char **certificate,
                        const char **ca_certificate);

/* The number of the last northbound configuration whose flows are all in the integration bridge:
 * ovn-controller writes it to the bridge's external_ids:ovn-nb-cfg when the switch has confirmed
 * them.  -1 if there is none. */
gint64 pf_ovs_get_flows_cfg(const PfOvs *ovs);

/* Fills in the ovs_* members for the port 'iface_id'. */
void pf_ovs_get_port(const PfOvs *ovs, const char *iface_id, PfPortFacts *facts);

/* Called with the name of each interface that claims the port 'iface_id'. */
typedef void (*PfOvsInterface)(const char *name, gpointer data);
void pf_ovs_foreach_claiming(const PfOvs *ovs, const char *iface_id, PfOvsInterface interface,
                             gpointer data);

/* The domain for which libvirt (or os-vif) has plugged the interface that claims 'iface_id'; NULL
 * if there is none, or nobody says whose it is.  Valid until the main loop runs again. */
const char *pf_ovs_get_domain(const PfOvs *ovs, const char *iface_id);

/* The iface-ids of the interfaces that libvirt has plugged for the domain 'uuid'
 * (external_ids:vm-id), released ones included.  NULL-terminated; g_strfreev(). */
char **pf_ovs_get_domain_ports(const PfOvs *ovs, const char *uuid);

/* An interface that has been made to let go of its port. */
typedef void (*PfOvsReleased)(const char *iface_id, const char *domain_uuid,
                              const char *handover_id, gpointer data);
void pf_ovs_foreach_released(const PfOvs *ovs, PfOvsReleased released, gpointer data);

/* Removes what libvirt has plugged for the domain 'uuid', claims one of 'iface_ids'
 * (NULL-terminated, copied) or has let go of it, and has no device any more.  libvirt does that
 * itself, unless it dies at a bad moment. One transaction; 'done' as for pf_ovsdb_txn(). */
void pf_ovs_remove_dead(PfOvs *ovs, const char *const *iface_ids, const char *uuid,
                        guint timeout_ms, PfOvsdbDone done, gpointer data);

/* Makes the interfaces let go of 'iface_ids' (NULL-terminated, copied): takes away their iface-id
 * and notes it under a key of our own, from which pf_ovs_reclaim() puts it back.  One transaction;
 * 'done' as for pf_ovsdb_txn().  Nothing to do is a success. */
void pf_ovs_release(PfOvs *ovs, const char *const *iface_ids, const char *handover_id,
                    guint timeout_ms, PfOvsdbDone done, gpointer data);
void pf_ovs_reclaim(PfOvs *ovs, const char *const *iface_ids, guint timeout_ms, PfOvsdbDone done,
                    gpointer data);
