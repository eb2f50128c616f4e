/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <config.h>

#include "floating.h"

#include <openvswitch/json.h>
#include <uuid.h>

#include "ovsdb-query.h"

/*
 * One question leads to the next: the NAT rows of the ports, their routers, the routers' gateway
 * ports, the other ends of these in the southbound database, and the datapaths that those are in.
 * 'found' grows and shrinks on the way: one element for each floating IP and way outside.
 */

typedef struct {
    PfFloating floating;
    struct uuid row;   /* what is to be asked for next */
    char *router_port; /* the gateway port, once it is known */
} Candidate;

typedef struct {
    PfNb *nb;
    PfSb *sb;
    char **ports;
    guint timeout_ms;
    GPtrArray *found; /* of Candidate */
    PfFloatingDone done;
    gpointer data;
} Search;

static void floating_copy(PfFloating *to, const PfFloating *from)
{
    *to = *from;
    to->port = g_strdup(from->port);
    to->address = g_strdup(from->address);
    to->mac = g_strdup(from->mac);
}

static void floating_free(gpointer data)
{
    PfFloating *floating = data;
    g_free(floating->port);
    g_free(floating->address);
    g_free(floating->mac);
    g_free(floating);
}

static GPtrArray *list_new(void)
{
    return g_ptr_array_new_with_free_func(floating_free);
}

static void list_add(GPtrArray *list, const PfFloating *floating)
{
    PfFloating *copy = g_new0(PfFloating, 1);
    floating_copy(copy, floating);
    g_ptr_array_add(list, copy);
}

GPtrArray *pf_floating_copy(const GPtrArray *list)
{
    GPtrArray *copy = list_new();
    for (guint i = 0; i < list->len; i++) {
        list_add(copy, list->pdata[i]);
    }
    return copy;
}

static void candidate_free(gpointer data)
{
    Candidate *candidate = data;
    g_free(candidate->router_port);
    floating_free(candidate); /* its first member, and so itself */
}

static Candidate *candidate_new(const PfFloating *floating)
{
    Candidate *candidate = g_new0(Candidate, 1);
    floating_copy(&candidate->floating, floating);
    return candidate;
}

static void search_end(Search *search, const GError *error)
{
    g_autoptr(GPtrArray) list = list_new();

    for (guint i = 0; !error && i < search->found->len; i++) {
        const Candidate *candidate = search->found->pdata[i];
        list_add(list, &candidate->floating);
    }
    search->done(error ? NULL : list, error, search->data);
    g_strfreev(search->ports);
    g_ptr_array_unref(search->found);
    g_free(search);
}

/* Goes on with what has been found, or ends if that is nothing. */
static gboolean goes_on(Search *search, const GError *error, GPtrArray *found)
{
    if (found != search->found) {
        g_ptr_array_unref(search->found);
        search->found = found;
    }
    if (error || found->len == 0) {
        search_end(search, error);
        return FALSE;
    }
    return TRUE;
}

/* ---- the network outside, in the southbound database ---- */

static const struct json *only_row(const struct json *result, guint i)
{
    const struct json *rows = pf_ovsdb_result_rows(result, i);
    return rows && pf_ovsdb_rows_length(rows) == 1 ? pf_ovsdb_rows_get(rows, 0) : NULL;
}

static void have_datapaths(const struct json *result, const GError *error, gpointer data)
{
    Search *search = data;

    for (guint i = error ? 0 : search->found->len; i > 0; i--) {
        Candidate *candidate = search->found->pdata[i - 1];
        const struct json *row = only_row(result, i - 1);
        gint64 key;
        if (row && pf_ovsdb_row_integer(row, "tunnel_key", &key)) {
            candidate->floating.network = (guint32)key;
        } else {
            g_ptr_array_remove_index(search->found, i - 1);
        }
    }
    search_end(search, error);
}

static void have_bindings(const struct json *result, const GError *error, gpointer data)
{
    static const char *const columns[] = {"tunnel_key", NULL};
    Search *search = data;

    for (guint i = error ? 0 : search->found->len; i > 0; i--) {
        Candidate *candidate = search->found->pdata[i - 1];
        const struct json *row = only_row(result, i - 1);
        gint64 key;
        if (row && pf_ovsdb_row_integer(row, "tunnel_key", &key) &&
            pf_ovsdb_row_uuid(row, "datapath", &candidate->row)) {
            candidate->floating.inport = (guint32)key;
        } else {
            g_ptr_array_remove_index(search->found, i - 1);
        }
    }
    if (!goes_on(search, error, search->found)) {
        return;
    }
    struct json *ops = json_array_create_empty();
    for (guint i = 0; i < search->found->len; i++) {
        const Candidate *candidate = search->found->pdata[i];
        json_array_add(ops, pf_ovsdb_op_select("Datapath_Binding",
                                               pf_ovsdb_where_uuid(&candidate->row), columns));
    }
    pf_ovsdb_query(pf_sb_get_query(search->sb), ops, search->timeout_ms, have_datapaths, search);
}

/* ---- the routers, in the northbound database ---- */

static gboolean has_any(const struct json *row, const char *column)
{
    g_auto(GStrv) set = pf_ovsdb_row_set(row, column);
    return set && set[0];
}

static void have_router_ports(const struct json *result, const GError *error, gpointer data)
{
    static const char *const columns[] = {"tunnel_key", "datapath", NULL};
    Search *search = data;

    for (guint i = error ? 0 : search->found->len; i > 0; i--) {
        Candidate *candidate = search->found->pdata[i - 1];
        const struct json *row = only_row(result, i - 1);
        if (row && pf_ovsdb_row_string(row, "name") &&
            (has_any(row, "gateway_chassis") || has_any(row, "ha_chassis_group"))) {
            candidate->router_port = g_strdup(pf_ovsdb_row_string(row, "name"));
        } else {
            g_ptr_array_remove_index(search->found, i - 1);
        }
    }
    if (!goes_on(search, error, search->found)) {
        return;
    }
    struct json *ops = json_array_create_empty();
    for (guint i = 0; i < search->found->len; i++) {
        const Candidate *candidate = search->found->pdata[i];
        struct json *peer = pf_ovsdb_json_pair("peer", candidate->router_port);
        json_array_add(ops,
                       pf_ovsdb_op_select("Port_Binding",
                                          pf_ovsdb_where("options", "includes", peer), columns));
    }
    pf_ovsdb_query(pf_sb_get_query(search->sb), ops, search->timeout_ms, have_bindings, search);
}

static void have_routers(const struct json *result, const GError *error, gpointer data)
{
    static const char *const columns[] = {"name", "gateway_chassis", "ha_chassis_group", NULL};
    Search *search = data;
    GPtrArray *found = g_ptr_array_new_with_free_func(candidate_free);
    struct json *ops = json_array_create_empty();

    for (guint i = 0; !error && i < search->found->len; i++) {
        const Candidate *candidate = search->found->pdata[i];
        const struct json *row = only_row(result, i);
        g_auto(GStrv) ports = row ? pf_ovsdb_row_set(row, "ports") : NULL;
        for (char **port = ports; port && *port; port++) {
            Candidate *through = candidate_new(&candidate->floating);
            if (uuid_from_string(&through->row, *port)) {
                json_array_add(ops,
                               pf_ovsdb_op_select("Logical_Router_Port",
                                                  pf_ovsdb_where_uuid(&through->row), columns));
                g_ptr_array_add(found, through);
            } else {
                candidate_free(through);
            }
        }
    }
    if (goes_on(search, error, found)) {
        pf_ovsdb_query(pf_nb_get_query(search->nb), ops, search->timeout_ms, have_router_ports,
                       search);
    } else {
        json_destroy(ops);
    }
}

/* The distributed ones among the NAT rows of 'port'. */
static void add_rows(GPtrArray *found, const char *port, const struct json *rows)
{
    for (guint i = 0; rows && i < pf_ovsdb_rows_length(rows); i++) {
        const struct json *row = pf_ovsdb_rows_get(rows, i);
        const char *mac = pf_ovsdb_row_string(row, "external_mac");
        const char *address = pf_ovsdb_row_string(row, "external_ip");
        struct uuid uuid;
        if (mac && *mac && address && pf_ovsdb_row_uuid(row, "_uuid", &uuid)) {
            const PfFloating floating = {
                .port = (char *)port, .address = (char *)address, .mac = (char *)mac};
            Candidate *candidate = candidate_new(&floating);
            candidate->row = uuid;
            g_ptr_array_add(found, candidate);
        }
    }
}

static void have_nats(const struct json *result, const GError *error, gpointer data)
{
    static const char *const columns[] = {"ports", NULL};
    Search *search = data;

    for (guint i = 0; !error && search->ports[i]; i++) {
        add_rows(search->found, search->ports[i], pf_ovsdb_result_rows(result, i));
    }
    if (!goes_on(search, error, search->found)) {
        return;
    }
    struct json *ops = json_array_create_empty();
    for (guint i = 0; i < search->found->len; i++) {
        const Candidate *candidate = search->found->pdata[i];
        json_array_add(ops, pf_ovsdb_op_select("Logical_Router",
                                               pf_ovsdb_where("nat", "includes",
                                                              pf_ovsdb_json_uuid(&candidate->row)),
                                               columns));
    }
    pf_ovsdb_query(pf_nb_get_query(search->nb), ops, search->timeout_ms, have_routers, search);
}

static struct json *select_nats(char **ports)
{
    static const char *const columns[] = {"_uuid", "external_ip", "external_mac", NULL};
    struct json *ops = json_array_create_empty();

    for (char **port = ports; *port; port++) {
        struct json *where = pf_ovsdb_where("logical_port", "==", json_string_create(*port));
        json_array_add(where, pf_ovsdb_clause("type", "==", json_string_create("dnat_and_snat")));
        json_array_add(ops, pf_ovsdb_op_select("NAT", where, columns));
    }
    return ops;
}

static Search *search_new(PfNb *nb, PfSb *sb, guint timeout_ms, PfFloatingDone done, gpointer data)
{
    Search *search = g_new0(Search, 1);
    search->nb = nb;
    search->sb = sb;
    search->timeout_ms = timeout_ms;
    search->found = g_ptr_array_new_with_free_func(candidate_free);
    search->done = done;
    search->data = data;
    return search;
}

void pf_floating_find(PfNb *nb, PfSb *sb, const char *const *ports, guint timeout_ms,
                      PfFloatingDone done, gpointer data)
{
    Search *search = search_new(nb, sb, timeout_ms, done, data);
    search->ports = g_strdupv((char **)ports);
    pf_ovsdb_query(pf_nb_get_query(nb), select_nats(search->ports), timeout_ms, have_nats, search);
}

/* ---- the same once more ---- */

static gboolean is_among(const GPtrArray *rows, const PfFloating *floating)
{
    for (guint i = 0; i < rows->len; i++) {
        const PfFloating *row = rows->pdata[i];
        if (g_str_equal(row->port, floating->port) &&
            g_str_equal(row->address, floating->address) && g_str_equal(row->mac, floating->mac)) {
            return TRUE;
        }
    }
    return FALSE;
}

static void have_nats_again(const struct json *result, const GError *error, gpointer data)
{
    Search *search = data;
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func(candidate_free);

    for (guint i = 0; !error && search->ports[i]; i++) {
        add_rows(rows, search->ports[i], pf_ovsdb_result_rows(result, i));
    }
    for (guint i = error ? 0 : search->found->len; i > 0; i--) {
        const Candidate *candidate = search->found->pdata[i - 1];
        if (!is_among(rows, &candidate->floating)) {
            g_ptr_array_remove_index(search->found, i - 1);
        }
    }
    search_end(search, error);
}

void pf_floating_check(PfNb *nb, const GPtrArray *known, guint timeout_ms, PfFloatingDone done,
                       gpointer data)
{
    Search *search = search_new(nb, NULL, timeout_ms, done, data);
    g_autoptr(GStrvBuilder) ports = g_strv_builder_new();

    for (guint i = 0; i < known->len; i++) {
        const PfFloating *floating = known->pdata[i];
        g_ptr_array_add(search->found, candidate_new(floating));
        g_strv_builder_add(ports, floating->port);
    }
    search->ports = g_strv_builder_end(ports);
    pf_ovsdb_query(pf_nb_get_query(nb), select_nats(search->ports), timeout_ms, have_nats_again,
                   search);
}
