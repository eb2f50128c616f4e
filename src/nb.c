/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <config.h>

#include "nb.h"

#include <openvswitch/json.h>
#include <ovsdb-idl.h>
#include <smap.h>
#include <uuid.h>

#include "crash.h"
#include "error.h"
#include "marker.h"
#include "nb-idl.h"
#include "ovsdb-query.h"
#include "text.h"

#define TABLE "Logical_Switch_Port"

struct PfNb {
    PfOvsdb *db;
    PfOvsdbQuery *query;
    char *chassis;
    PfNbChanged changed;
    gpointer data;
};

/* ---- connection ---- */

static void configure(struct ovsdb_idl *idl, gpointer data)
{
    PfNb *nb = data;
    struct ovsdb_idl_condition condition = OVSDB_IDL_CONDITION_INIT(&condition);

    ovsdb_idl_add_table(idl, &nbrec_table_logical_switch_port);
    ovsdb_idl_add_column(idl, &nbrec_logical_switch_port_col_name);
    ovsdb_idl_add_column(idl, &nbrec_logical_switch_port_col_options);
    ovsdb_idl_add_column(idl, &nbrec_logical_switch_port_col_external_ids);

    const char *const keys[] = {PF_MARKER_SOURCE, PF_MARKER_DESTINATION};
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        struct smap pair = SMAP_INITIALIZER(&pair);
        smap_add(&pair, keys[i], nb->chassis);
        nbrec_logical_switch_port_add_clause_external_ids(&condition, OVSDB_F_INCLUDES, &pair);
        smap_destroy(&pair);
    }
    nbrec_logical_switch_port_set_condition(idl, &condition);
    ovsdb_idl_condition_destroy(&condition);
}

static void db_changed(PfOvsdb *db G_GNUC_UNUSED, gpointer data)
{
    PfNb *nb = data;
    nb->changed(nb->data);
}

PfNb *pf_nb_new(PfOvsdbLoop *loop, const char *remote, const char *chassis, PfNbChanged changed,
                gpointer data, GError **error)
{
    g_autoptr(PfNb) nb = g_new0(PfNb, 1);
    nb->chassis = g_strdup(chassis);
    nb->changed = changed;
    nb->data = data;
    nb->db = pf_ovsdb_new(loop, &nbrec_idl_class, "northbound", configure, db_changed, nb);
    nb->query = pf_ovsdb_query_new(loop, "OVN_Northbound", "northbound");
    /* As for the southbound database. */
    pf_ovsdb_set_leader_only(nb->db, false);
    pf_ovsdb_query_set_leader_only(nb->query, false);
    if (!pf_nb_set_remote(nb, remote, error)) {
        return NULL;
    }
    return g_steal_pointer(&nb);
}

void pf_nb_free(PfNb *nb)
{
    if (!nb) {
        return;
    }
    pf_ovsdb_query_free(nb->query);
    pf_ovsdb_free(nb->db);
    g_free(nb->chassis);
    g_free(nb);
}

gboolean pf_nb_set_remote(PfNb *nb, const char *remote, GError **error)
{
    return pf_ovsdb_set_remote(nb->db, remote, error) &&
           pf_ovsdb_query_set_remote(nb->query, remote, error);
}

PfOvsdbState pf_nb_get_state(const PfNb *nb)
{
    return pf_ovsdb_get_state(nb->db);
}

PfOvsdbQuery *pf_nb_get_query(const PfNb *nb)
{
    return nb->query;
}

/* ---- replicated rows ---- */

static GHashTable *table_from_smap(const struct smap *smap)
{
    GHashTable *table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    struct smap_node *node;
    SMAP_FOR_EACH (node, smap) {
        g_hash_table_insert(table, g_strdup(node->key), g_strdup(node->value));
    }
    return table;
}

static PfRow row_from_idl(const struct nbrec_logical_switch_port *lsp)
{
    return (PfRow){.options = table_from_smap(&lsp->options),
                   .external_ids = table_from_smap(&lsp->external_ids)};
}

static void row_clear(PfRow *row)
{
    g_clear_pointer(&row->options, g_hash_table_unref);
    g_clear_pointer(&row->external_ids, g_hash_table_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(PfRow, row_clear)

static const struct nbrec_logical_switch_port *find_row(struct ovsdb_idl *idl, const char *port,
                                                        const char *id)
{
    const struct nbrec_logical_switch_port *lsp;
    NBREC_LOGICAL_SWITCH_PORT_FOR_EACH (lsp, idl) {
        if (g_str_equal(lsp->name, port) &&
            g_strcmp0(smap_get(&lsp->external_ids, PF_MARKER_HANDOVER), id) == 0) {
            return lsp;
        }
    }
    return NULL;
}

void pf_nb_get_port(const PfNb *nb, const char *port, const char *id, const PfEnds *ends,
                    PfPortFacts *facts)
{
    const struct nbrec_logical_switch_port *lsp = find_row(pf_ovsdb_get_idl(nb->db), port, id);

    facts->nb_marked = lsp != NULL;
    facts->nb_list = PF_LIST_FOREIGN;
    facts->nb_resumed = facts->nb_src_too = facts->nb_dst_too = FALSE;
    if (lsp) {
        g_auto(PfRow) row = row_from_idl(lsp);
        facts->nb_list = pf_plan_kind(&row, ends);
        facts->nb_resumed = smap_get(&lsp->external_ids, PF_MARKER_RESUMED) != NULL;
        const char *twice = smap_get(&lsp->external_ids, PF_MARKER_TWICE);
        facts->nb_src_too = g_strcmp0(twice, pf_role_name(PF_ROLE_SOURCE)) == 0;
        facts->nb_dst_too = g_strcmp0(twice, pf_role_name(PF_ROLE_DESTINATION)) == 0;
    }
}

void pf_nb_foreach_marked(const PfNb *nb, PfNbMarked marked, gpointer data)
{
    const struct nbrec_logical_switch_port *lsp;
    NBREC_LOGICAL_SWITCH_PORT_FOR_EACH (lsp, pf_ovsdb_get_idl(nb->db)) {
        g_autoptr(GError) error = NULL;
        g_auto(PfRow) row = row_from_idl(lsp);
        g_autoptr(PfMarker) marker =
            pf_marker_decode_table(row.external_ids, g_get_real_time(), &error);
        marked(lsp->name, marker, error, data);
    }
}

typedef struct {
    PfWrite write;
    PfRole role;
    char **ports;
    char *id;
    char *names[4]; /* owns what 'ends' points to */
    PfEnds ends;
    gboolean overridden;
    PfOvsdbDone done;
    gpointer data;
} Write;

static void ends_copy(PfEnds *to, char *names[4], const PfEnds *from)
{
    names[0] = g_strdup(from->source.name);
    names[1] = g_strdup(from->source.hostname);
    names[2] = g_strdup(from->destination.name);
    names[3] = g_strdup(from->destination.hostname);
    to->source = (PfChassis){.name = names[0], .hostname = names[1]};
    to->destination = (PfChassis){.name = names[2], .hostname = names[3]};
}

static void apply_changes(const struct nbrec_logical_switch_port *lsp, const GArray *changes)
{
    for (guint i = 0; i < changes->len; i++) {
        const PfChange *c = &g_array_index(changes, PfChange, i);
        if (c->external_id && c->value) {
            nbrec_logical_switch_port_update_external_ids_setkey(lsp, c->key, c->value);
        } else if (c->external_id) {
            nbrec_logical_switch_port_update_external_ids_delkey(lsp, c->key);
        } else if (c->value) {
            nbrec_logical_switch_port_update_options_setkey(lsp, c->key, c->value);
        } else {
            nbrec_logical_switch_port_update_options_delkey(lsp, c->key);
        }
    }
}

static PfOvsdbBuildResult build_write(struct ovsdb_idl *idl,
                                      struct ovsdb_idl_txn *txn G_GNUC_UNUSED, gpointer data,
                                      GError **error)
{
    const Write *w = data;
    gint64 now = g_get_real_time();
    gboolean any = FALSE;

    for (char **port = w->ports; *port; port++) {
        const struct nbrec_logical_switch_port *lsp = find_row(idl, *port, w->id);
        if (!lsp) {
            continue;
        }
        g_auto(PfRow) row = row_from_idl(lsp);
        g_autoptr(PfMarker) marker = pf_marker_decode_table(row.external_ids, now, error);
        if (!marker) {
            return PF_OVSDB_BUILD_ERROR;
        }
        g_autoptr(GArray) changes = NULL;
        PfVerdict verdict =
            pf_plan_write(w->write, w->role, &row, marker, &w->ends, w->overridden, now, &changes);
        if (verdict == PF_VERDICT_CONFLICT) {
            g_autofree char *list = pf_printable(smap_get(&lsp->options, "requested-chassis"));
            g_set_error(error, PF_ERROR, PF_ERROR_CONFLICT,
                        "port %s: its requested-chassis has become '%s'%s", *port, list,
                        marker->resumed ? ", and the destination says that the guest runs there"
                                        : "");
            return PF_OVSDB_BUILD_ERROR;
        }
        if (changes) {
            nbrec_logical_switch_port_verify_options(lsp);
            nbrec_logical_switch_port_verify_external_ids(lsp);
            apply_changes(lsp, changes);
            any = TRUE;
        }
    }
    return any ? PF_OVSDB_BUILD_COMMIT : PF_OVSDB_BUILD_NOTHING;
}

static void write_done(const GError *error, gpointer data)
{
    Write *w = data;
    w->done(error, w->data);
    g_strfreev(w->ports);
    g_free(w->id);
    for (guint i = 0; i < G_N_ELEMENTS(w->names); i++) {
        g_free(w->names[i]);
    }
    g_free(w);
}

void pf_nb_write(PfNb *nb, PfWrite write, PfRole role, const char *const *ports, const char *id,
                 const PfEnds *ends, gboolean overridden, guint timeout_ms, PfOvsdbDone done,
                 gpointer data)
{
    static const char *const comments[PF_N_WRITES] = {
        [PF_WRITE_MARK] = "portferryd: the guest runs at the destination",
        [PF_WRITE_TURN] = "portferryd: the destination comes first",
        [PF_WRITE_TURN_BACK] = "portferryd: the source comes first again",
        [PF_WRITE_COLLAPSE] = "portferryd: activate the destination",
        [PF_WRITE_ROLL_BACK] = "portferryd: roll back to the source",
        [PF_WRITE_FOLLOW] = "portferryd: end of the handover",
        [PF_WRITE_PUT_BACK] = "portferryd: end of the rolled back handover",
        [PF_WRITE_TWICE] = "portferryd: the guest runs on both hosts",
    };
    Write *w = g_new0(Write, 1);
    w->write = write;
    w->role = role;
    w->ports = g_strdupv((char **)ports);
    w->id = g_strdup(id);
    ends_copy(&w->ends, w->names, ends);
    w->overridden = overridden;
    w->done = done;
    w->data = data;
    pf_ovsdb_txn(nb->db, comments[write], build_write, w, timeout_ms, write_done);
}

/* ---- the pre-plug ---- */

typedef struct {
    PfNb *nb;
    char **ports;
    PfMarker marker; /* strings owned */
    char *names[4];
    PfEnds ends;
    char *strategy;
    gint64 deadline;      /* monotonic */
    GPtrArray *mutations; /* of struct json, one for each port */
    PfNbPreplugDone done;
    gpointer data;
} Preplug;

static void preplug_end(Preplug *p, const GError *error)
{
    p->done(error ? NULL : p->mutations, error, p->data);
    g_ptr_array_unref(p->mutations);
    g_strfreev(p->ports);
    g_free(p->marker.source);
    g_free(p->marker.destination);
    g_free(p->marker.domain);
    g_free(p->marker.handover);
    for (guint i = 0; i < G_N_ELEMENTS(p->names); i++) {
        g_free(p->names[i]);
    }
    g_free(p->strategy);
    g_free(p);
}

static guint preplug_left_ms(const Preplug *p)
{
    return (guint)(MAX(p->deadline - g_get_monotonic_time(), 1000) / 1000);
}

static void preplug_read(Preplug *p);

static void preplug_written(const struct json *result G_GNUC_UNUSED, const GError *error,
                            gpointer data)
{
    Preplug *p = data;

    if (g_error_matches(error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_CONFLICT) &&
        g_get_monotonic_time() < p->deadline) {
        preplug_read(p); /* somebody else wrote between our reading and writing */
        return;
    }
    preplug_end(p, error);
}

static GArray *plan_row(const Preplug *p, const struct json *json, const char *port, PfRow *row,
                        struct uuid *uuid, GError **error)
{
    row->options = pf_ovsdb_row_map(json, "options");
    row->external_ids = pf_ovsdb_row_map(json, "external_ids");
    if (!pf_ovsdb_row_uuid(json, "_uuid", uuid)) {
        g_set_error(error, PF_ERROR, PF_ERROR_FAILED, "port %s: its northbound row has no UUID",
                    port);
        return NULL;
    }
    if (!pf_plan_is_marked(row, p->marker.handover) &&
        pf_plan_kind(row, &p->ends) == PF_LIST_BOTH &&
        !g_hash_table_contains(row->external_ids, PF_MARKER_HANDOVER)) {
        g_set_error(error, PF_ERROR, PF_ERROR_DENIED,
                    "port %s: its requested-chassis names both hosts already", port);
        return NULL;
    }
    GArray *changes = pf_plan_preplug(row, &p->marker, p->strategy, g_get_real_time(), error);
    if (!changes) {
        g_prefix_error(error, "port %s: ", port);
    }
    return changes;
}

static void json_free(gpointer json)
{
    json_destroy(json);
}

static struct json *mutations_of(const GArray *changes)
{
    struct json *mutations = json_array_create_empty();

    for (guint i = 0; i < changes->len; i++) {
        const PfChange *c = &g_array_index(changes, PfChange, i);
        const char *column = c->external_id ? "external_ids" : "options";
        if (c->value) {
            pf_ovsdb_mutations_set_key(mutations, column, c->key, c->value);
        } else {
            pf_ovsdb_mutations_unset_key(mutations, column, c->key);
        }
    }
    return mutations;
}

static void preplug_have_rows(const struct json *result, const GError *error, gpointer data)
{
    Preplug *p = data;
    g_autoptr(GError) problem = NULL;
    struct json *ops = json_array_create_empty();

    g_ptr_array_set_size(p->mutations, 0); /* of an earlier try */
    for (guint i = 0; !error && p->ports[i]; i++) {
        const char *port = p->ports[i];
        const struct json *rows = pf_ovsdb_result_rows(result, i);
        if (!rows || pf_ovsdb_rows_length(rows) != 1) {
            g_set_error(&problem, PF_ERROR, PF_ERROR_NOT_FOUND,
                        "port %s: no such logical switch port in the northbound database", port);
            break;
        }
        g_auto(PfRow) row = {0};
        struct uuid uuid;
        g_autoptr(GArray) changes =
            plan_row(p, pf_ovsdb_rows_get(rows, 0), port, &row, &uuid, &problem);
        if (!changes) {
            break;
        }

        struct json *expected = json_object_create();
        json_object_put(expected, "options", pf_ovsdb_json_map(row.options));
        json_object_put(expected, "external_ids", pf_ovsdb_json_map(row.external_ids));
        json_array_add(ops, pf_ovsdb_op_wait(TABLE, pf_ovsdb_where_uuid(&uuid), expected));

        struct json *mutations = mutations_of(changes);
        g_ptr_array_add(p->mutations, json_clone(mutations));
        json_array_add(ops, pf_ovsdb_op_mutate(TABLE, pf_ovsdb_where_uuid(&uuid), mutations));
    }
    if (error || problem) {
        json_destroy(ops);
        preplug_end(p, error ? error : problem);
        return;
    }
    json_array_add(ops, pf_ovsdb_op_comment("portferryd: pre-plug"));
    pf_ovsdb_query(p->nb->query, ops, preplug_left_ms(p), preplug_written, p);
    pf_crash_at_sent(PF_GOAL_PREPLUG);
}

static void preplug_read(Preplug *p)
{
    static const char *const columns[] = {"_uuid", "options", "external_ids", NULL};
    struct json *ops = json_array_create_empty();

    for (char **port = p->ports; *port; port++) {
        json_array_add(
            ops, pf_ovsdb_op_select(TABLE, pf_ovsdb_where("name", "==", json_string_create(*port)),
                                    columns));
    }
    pf_ovsdb_query(p->nb->query, ops, preplug_left_ms(p), preplug_have_rows, p);
}

void pf_nb_preplug(PfNb *nb, const char *const *ports, const PfMarker *marker, const PfEnds *ends,
                   const char *strategy, guint timeout_ms, PfNbPreplugDone done, gpointer data)
{
    Preplug *p = g_new0(Preplug, 1);
    p->nb = nb;
    p->ports = g_strdupv((char **)ports);
    p->marker = (PfMarker){
        .source = g_strdup(marker->source),
        .destination = g_strdup(marker->destination),
        .domain = g_strdup(marker->domain),
        .handover = g_strdup(marker->handover),
        .started = marker->started,
        .by_hand = marker->by_hand,
    };
    ends_copy(&p->ends, p->names, ends);
    p->strategy = g_strdup(strategy);
    p->deadline = g_get_monotonic_time() + (gint64)timeout_ms * 1000;
    p->mutations = g_ptr_array_new_with_free_func(json_free);
    p->done = done;
    p->data = data;
    preplug_read(p);
}

/* ---- the barrier ---- */

typedef struct {
    PfNbBarrierDone done;
    gpointer data;
} Barrier;

static void barrier_done(const struct json *result, const GError *error, gpointer data)
{
    g_autofree Barrier *barrier = data;
    g_autoptr(GError) problem = NULL;
    const struct json *rows = error ? NULL : pf_ovsdb_result_rows(result, 1);
    gint64 nb_cfg = -1;

    if (!error && (!rows || pf_ovsdb_rows_length(rows) != 1 ||
                   !pf_ovsdb_row_integer(pf_ovsdb_rows_get(rows, 0), "nb_cfg", &nb_cfg))) {
        g_set_error(&problem, PF_ERROR, PF_ERROR_NOT_FOUND,
                    "the northbound database has no NB_Global row (ovn-nbctl init makes it)");
    }
    barrier->done(nb_cfg, error ? error : problem, barrier->data);
}

void pf_nb_barrier(PfNb *nb, guint timeout_ms, PfNbBarrierDone done, gpointer data)
{
    static const char *const columns[] = {"nb_cfg", NULL};
    struct json *raise = json_array_create_3(json_string_create("nb_cfg"), json_string_create("+="),
                                             json_integer_create(1));
    Barrier *barrier = g_new0(Barrier, 1);
    barrier->done = done;
    barrier->data = data;
    pf_ovsdb_query(nb->query,
                   pf_ovsdb_ops(pf_ovsdb_op_mutate("NB_Global", json_array_create_empty(),
                                                   json_array_create_1(raise)),
                                pf_ovsdb_op_select("NB_Global", json_array_create_empty(), columns),
                                NULL),
                   timeout_ms, barrier_done, barrier);
}
