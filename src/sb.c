/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <config.h>

#include "sb.h"

#include <openvswitch/json.h>
#include <ovsdb-idl.h>
#include <smap.h>
#include <string.h>

#include "error.h"
#include "marker.h"
#include "ovsdb-query.h"
#include "plan.h"
#include "sb-idl.h"

#define OPTION_ACTIVATED "additional-chassis-activated"

struct PfSb {
    PfOvsdb *db;
    PfOvsdbQuery *query;
    char *chassis;
    struct uuid self;           /* the chassis's row; zero while it isn't known */
    GHashTable *watched;        /* port -> how often, as a pointer */
    unsigned int current_seqno; /* the replica is that of the conditions, once it has reached it */
    PfSbChanged changed;
    gpointer data;
};

/* ---- connection ---- */

static void set_conditions(PfSb *sb, struct ovsdb_idl *idl)
{
    struct ovsdb_idl_condition condition = OVSDB_IDL_CONDITION_INIT(&condition);
    const char *const keys[] = {PF_MARKER_SOURCE, PF_MARKER_DESTINATION};
    GHashTableIter iter;
    gpointer port;

    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        struct smap pair = SMAP_INITIALIZER(&pair);
        smap_add(&pair, keys[i], sb->chassis);
        sbrec_port_binding_add_clause_external_ids(&condition, OVSDB_F_INCLUDES, &pair);
        smap_destroy(&pair);
    }
    if (!uuid_is_zero(&sb->self)) {
        sbrec_port_binding_add_clause_chassis(&condition, OVSDB_F_INCLUDES, &sb->self, 1);
        sbrec_port_binding_add_clause_requested_chassis(&condition, OVSDB_F_INCLUDES, &sb->self, 1);
        sbrec_port_binding_add_clause_requested_additional_chassis(&condition, OVSDB_F_INCLUDES,
                                                                   &sb->self, 1);
    }
    g_hash_table_iter_init(&iter, sb->watched);
    while (g_hash_table_iter_next(&iter, &port, NULL)) {
        sbrec_port_binding_add_clause_logical_port(&condition, OVSDB_F_EQ, port);
    }
    sb->current_seqno = sbrec_port_binding_set_condition(idl, &condition);
    ovsdb_idl_condition_destroy(&condition);
}

static void configure(struct ovsdb_idl *idl, gpointer data)
{
    ovsdb_idl_add_table(idl, &sbrec_table_chassis);
    ovsdb_idl_add_column(idl, &sbrec_chassis_col_name);
    ovsdb_idl_add_column(idl, &sbrec_chassis_col_hostname);
    ovsdb_idl_add_table(idl, &sbrec_table_port_binding);
    ovsdb_idl_add_column(idl, &sbrec_port_binding_col_logical_port);
    ovsdb_idl_add_column(idl, &sbrec_port_binding_col_chassis);
    ovsdb_idl_add_column(idl, &sbrec_port_binding_col_additional_chassis);
    ovsdb_idl_add_column(idl, &sbrec_port_binding_col_encap);
    ovsdb_idl_add_column(idl, &sbrec_port_binding_col_requested_chassis);
    ovsdb_idl_add_column(idl, &sbrec_port_binding_col_requested_additional_chassis);
    ovsdb_idl_add_column(idl, &sbrec_port_binding_col_options);
    ovsdb_idl_add_column(idl, &sbrec_port_binding_col_external_ids);
    set_conditions(data, idl);
}

/* The row is another one when ovn-controller has made it anew. */
static void learn_self(PfSb *sb)
{
    struct ovsdb_idl *idl = pf_ovsdb_get_idl(sb->db);
    const struct sbrec_chassis *row;

    SBREC_CHASSIS_FOR_EACH (row, idl) {
        if (g_str_equal(row->name, sb->chassis) && !uuid_equals(&row->header_.uuid, &sb->self)) {
            sb->self = row->header_.uuid;
            set_conditions(sb, idl);
        }
    }
}

static void db_changed(PfOvsdb *db G_GNUC_UNUSED, gpointer data)
{
    PfSb *sb = data;
    learn_self(sb);
    sb->changed(sb->data);
}

PfSb *pf_sb_new(PfOvsdbLoop *loop, const char *remote, const char *chassis, PfSbChanged changed,
                gpointer data, GError **error)
{
    g_autoptr(PfSb) sb = g_new0(PfSb, 1);
    sb->chassis = g_strdup(chassis);
    sb->watched = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    sb->changed = changed;
    sb->data = data;
    sb->db = pf_ovsdb_new(loop, &sbrec_idl_class, "southbound", configure, db_changed, sb);
    sb->query = pf_ovsdb_query_new(loop, "OVN_Southbound", "southbound");
    /* A follower or a relay serves us as well: what we must know of a row arrives in any case, and
     * a write is passed on to the leader. */
    pf_ovsdb_set_leader_only(sb->db, false);
    pf_ovsdb_query_set_leader_only(sb->query, false);
    if (!pf_sb_set_remote(sb, remote, error)) {
        return NULL;
    }
    return g_steal_pointer(&sb);
}

void pf_sb_free(PfSb *sb)
{
    if (!sb) {
        return;
    }
    pf_ovsdb_query_free(sb->query);
    pf_ovsdb_free(sb->db);
    g_hash_table_unref(sb->watched);
    g_free(sb->chassis);
    g_free(sb);
}

gboolean pf_sb_set_remote(PfSb *sb, const char *remote, GError **error)
{
    return pf_ovsdb_set_remote(sb->db, remote, error) &&
           pf_ovsdb_query_set_remote(sb->query, remote, error);
}

PfOvsdbState pf_sb_get_state(const PfSb *sb)
{
    return pf_ovsdb_get_state(sb->db);
}

/* ---- what is watched ---- */

static void watch(PfSb *sb, const char *port, int more)
{
    guint n = GPOINTER_TO_UINT(g_hash_table_lookup(sb->watched, port));
    guint then = (guint)((int)n + more);

    if (then > 0) {
        g_hash_table_insert(sb->watched, g_strdup(port), GUINT_TO_POINTER(then));
    } else {
        g_hash_table_remove(sb->watched, port);
    }
    if ((n == 0) != (then == 0)) {
        set_conditions(sb, pf_ovsdb_get_idl(sb->db));
    }
}

void pf_sb_watch(PfSb *sb, const char *port)
{
    watch(sb, port, 1);
}

void pf_sb_unwatch(PfSb *sb, const char *port)
{
    g_return_if_fail(g_hash_table_contains(sb->watched, port));
    watch(sb, port, -1);
}

gboolean pf_sb_is_current(const PfSb *sb)
{
    return pf_sb_get_state(sb) == PF_OVSDB_SYNCED &&
           ovsdb_idl_get_condition_seqno(pf_ovsdb_get_idl(sb->db)) >= sb->current_seqno;
}

PfOvsdbQuery *pf_sb_get_query(const PfSb *sb)
{
    return sb->query;
}

/* ---- replicated rows ---- */

/* 'id' NULL: with or without a marker. */
static const struct sbrec_port_binding *find_row(struct ovsdb_idl *idl, const char *port,
                                                 const char *id)
{
    const struct sbrec_port_binding *row;
    SBREC_PORT_BINDING_FOR_EACH (row, idl) {
        if (g_str_equal(row->logical_port, port) &&
            (!id || g_strcmp0(smap_get(&row->external_ids, PF_MARKER_HANDOVER), id) == 0)) {
            return row;
        }
    }
    return NULL;
}

static gboolean get_chassis(struct ovsdb_idl *idl, const struct uuid *uuid, PfSbChassis *ret)
{
    const struct sbrec_chassis *row = sbrec_chassis_get_for_uuid(idl, uuid);
    if (row) {
        *ret = (PfSbChassis){.uuid = *uuid, .name = row->name, .hostname = row->hostname};
    }
    return row != NULL;
}

void pf_sb_foreach_pair(const PfSb *sb, PfSbPair pair, gpointer data)
{
    struct ovsdb_idl *idl = pf_ovsdb_get_idl(sb->db);
    const struct sbrec_port_binding *row;

    SBREC_PORT_BINDING_FOR_EACH (row, idl) {
        PfSbChassis source, destination;
        /* Of several that are to be added, who knows which one the guest goes to? */
        if (row->n_requested_chassis == 1 && row->n_requested_additional_chassis == 1 &&
            !uuid_equals(&row->requested_chassis[0], &row->requested_additional_chassis[0]) &&
            get_chassis(idl, &row->requested_chassis[0], &source) &&
            get_chassis(idl, &row->requested_additional_chassis[0], &destination) &&
            (uuid_equals(&source.uuid, &sb->self) || uuid_equals(&destination.uuid, &sb->self))) {
            pair(row->logical_port, &source, &destination,
                 smap_get(&row->external_ids, PF_MARKER_HANDOVER), data);
        }
    }
}

gboolean pf_sb_is_self(const PfSb *sb, const PfSbChassis *chassis)
{
    return uuid_equals(&chassis->uuid, &sb->self);
}

gboolean pf_sb_is_here(const PfSb *sb, const char *port)
{
    const struct sbrec_port_binding *row = find_row(pf_ovsdb_get_idl(sb->db), port, NULL);
    return row && row->n_chassis == 1 && uuid_equals(&row->chassis[0], &sb->self);
}

static gboolean is_among(const struct uuid *set, size_t n, const struct uuid *wanted)
{
    for (size_t i = 0; i < n; i++) {
        if (uuid_equals(&set[i], wanted)) {
            return TRUE;
        }
    }
    return FALSE;
}

static gboolean is_flagged(const struct sbrec_port_binding *row, const char *name)
{
    const char *value = smap_get(&row->options, OPTION_ACTIVATED);
    g_auto(GStrv) names = g_strsplit(value ? value : "", ",", -1);
    return g_strv_contains((const char *const *)names, name);
}

/* The list is read here: there is no other place where a host without northbound access sees it. */
static void get_cms_port(const struct sbrec_port_binding *row, const PfSbChassis *source,
                         const PfSbChassis *destination, PfPortFacts *facts)
{
    gboolean main_is_src =
        row && is_among(row->requested_chassis, row->n_requested_chassis, &source->uuid);
    gboolean main_is_dst =
        row && is_among(row->requested_chassis, row->n_requested_chassis, &destination->uuid);
    gboolean src_added =
        row && (is_among(row->additional_chassis, row->n_additional_chassis, &source->uuid) ||
                is_among(row->requested_additional_chassis, row->n_requested_additional_chassis,
                         &source->uuid));

    facts->nb_marked = row != NULL;
    facts->nb_list = main_is_dst               ? PF_LIST_DST
                     : !main_is_src            ? PF_LIST_FOREIGN
                     : facts->sb_dst_requested ? PF_LIST_BOTH
                                               : PF_LIST_SRC;
    facts->sb_any_added = src_added || facts->sb_dst_added || facts->sb_dst_requested;
}

/* What northd has made of `requested-chassis`. */
static PfListKind list_of(const struct sbrec_port_binding *row, const PfSbChassis *source,
                          const PfSbChassis *destination)
{
    gboolean src_first = is_among(row->requested_chassis, row->n_requested_chassis, &source->uuid);
    gboolean dst_first =
        is_among(row->requested_chassis, row->n_requested_chassis, &destination->uuid);
    size_t n = row->n_requested_additional_chassis;

    if (n == 0) {
        return src_first ? PF_LIST_SRC : dst_first ? PF_LIST_DST : PF_LIST_FOREIGN;
    }
    if (n == 1 && src_first && is_among(row->requested_additional_chassis, n, &destination->uuid)) {
        return PF_LIST_BOTH;
    }
    if (n == 1 && dst_first && is_among(row->requested_additional_chassis, n, &source->uuid)) {
        return PF_LIST_TURNED;
    }
    return PF_LIST_FOREIGN;
}

void pf_sb_get_port(const PfSb *sb, const char *port, const char *id, const PfSbChassis *source,
                    const PfSbChassis *destination, PfPortFacts *facts)
{
    const struct sbrec_port_binding *row = find_row(pf_ovsdb_get_idl(sb->db), port, id);

    facts->sb_marked = row != NULL;
    facts->sb_on_src = row && is_among(row->chassis, row->n_chassis, &source->uuid);
    facts->sb_on_dst = row && is_among(row->chassis, row->n_chassis, &destination->uuid);
    facts->sb_src_added =
        row && is_among(row->additional_chassis, row->n_additional_chassis, &source->uuid);
    facts->sb_dst_added =
        row && is_among(row->additional_chassis, row->n_additional_chassis, &destination->uuid);
    facts->sb_dst_requested =
        row && is_among(row->requested_additional_chassis, row->n_requested_additional_chassis,
                        &destination->uuid);
    facts->sb_any_added =
        row && (row->n_additional_chassis > 0 || row->n_requested_additional_chassis > 0);
    facts->sb_dst_opened = row && is_flagged(row, destination->name);
    if (!id) {
        get_cms_port(row, source, destination, facts);
    }
    facts->sb_list = row ? list_of(row, source, destination) : PF_LIST_FOREIGN;
}

typedef struct {
    char **ports;
    char *id;
    PfSbChassis destination;
    gboolean open;
    PfOvsdbDone done;
    gpointer data;
} Opening;

static char *with_or_without(const char *value, const char *name, gboolean with)
{
    g_auto(GStrv) names = g_strsplit(value ? value : "", ",", -1);
    g_autoptr(GStrvBuilder) kept = g_strv_builder_new();

    for (char **n = names; *n; n++) {
        if (**n && !g_str_equal(*n, name)) {
            g_strv_builder_add(kept, *n);
        }
    }
    if (with) {
        g_strv_builder_add(kept, name);
    }
    g_auto(GStrv) list = g_strv_builder_end(kept);
    return list[0] ? g_strjoinv(",", list) : NULL;
}

static PfOvsdbBuildResult build_opening(struct ovsdb_idl *idl,
                                        struct ovsdb_idl_txn *txn G_GNUC_UNUSED, gpointer data,
                                        GError **error G_GNUC_UNUSED)
{
    const Opening *opening = data;
    gboolean any = FALSE;

    for (char **port = opening->ports; *port; port++) {
        const struct sbrec_port_binding *row = find_row(idl, *port, opening->id);
        if (!row || is_flagged(row, opening->destination.name) == opening->open) {
            continue;
        }
        /* Once the destination is no additional chassis any more, a flag would outlive us. */
        if (opening->open &&
            !is_among(row->requested_additional_chassis, row->n_requested_additional_chassis,
                      &opening->destination.uuid)) {
            continue;
        }
        g_autofree char *value = with_or_without(smap_get(&row->options, OPTION_ACTIVATED),
                                                 opening->destination.name, opening->open);
        sbrec_port_binding_verify_options(row);
        if (value) {
            sbrec_port_binding_update_options_setkey(row, OPTION_ACTIVATED, value);
        } else {
            sbrec_port_binding_update_options_delkey(row, OPTION_ACTIVATED);
        }
        any = TRUE;
    }
    return any ? PF_OVSDB_BUILD_COMMIT : PF_OVSDB_BUILD_NOTHING;
}

static void opening_done(const GError *error, gpointer data)
{
    Opening *opening = data;
    opening->done(error, opening->data);
    g_strfreev(opening->ports);
    g_free(opening->id);
    pf_sb_chassis_clear(&opening->destination);
    g_free(opening);
}

void pf_sb_set_open(PfSb *sb, const char *const *ports, const char *id,
                    const PfSbChassis *destination, gboolean open, guint timeout_ms,
                    PfOvsdbDone done, gpointer data)
{
    Opening *opening = g_new0(Opening, 1);
    opening->ports = g_strdupv((char **)ports);
    opening->id = g_strdup(id);
    pf_sb_chassis_copy(&opening->destination, destination);
    opening->open = open;
    opening->done = done;
    opening->data = data;
    pf_ovsdb_txn(sb->db, open ? "portferryd: open" : "portferryd: close", build_opening, opening,
                 timeout_ms, opening_done);
}

/* ---- in northd's stead ---- */

typedef struct {
    char **ports;
    char *id;
    PfSbChassis source, destination;
    PfListKind from, to;
    PfOvsdbDone done;
    gpointer data;
} Hastening;

static gboolean is_bound(const struct sbrec_port_binding *row, const struct uuid *chassis)
{
    return is_among(row->chassis, row->n_chassis, chassis) ||
           is_among(row->additional_chassis, row->n_additional_chassis, chassis);
}

static void drop_option(const struct sbrec_port_binding *row, const char *key)
{
    if (smap_get(&row->options, key)) {
        sbrec_port_binding_update_options_delkey(row, key);
    }
}

static void hasten_options(const struct sbrec_port_binding *row, const Hastening *h)
{
    const PfEnds ends = {.source = {.name = h->source.name},
                         .destination = {.name = h->destination.name}};
    g_autofree char *list = pf_plan_list(h->to, &ends);

    sbrec_port_binding_update_options_setkey(row, "requested-chassis", list);
    if (h->to == PF_LIST_SRC) {
        drop_option(row, "activation-strategy");
    }
    if (h->to != PF_LIST_TURNED) { /* northd keeps it there */
        drop_option(row, OPTION_ACTIVATED);
    }
}

static PfOvsdbBuildResult build_hastening(struct ovsdb_idl *idl,
                                          struct ovsdb_idl_txn *txn G_GNUC_UNUSED, gpointer data,
                                          GError **error G_GNUC_UNUSED)
{
    const Hastening *h = data;
    gboolean dst_first = h->to == PF_LIST_TURNED;
    const struct uuid *first = dst_first ? &h->destination.uuid : &h->source.uuid;
    const struct uuid *second = dst_first ? &h->source.uuid : &h->destination.uuid;
    gboolean two = h->to != PF_LIST_SRC;
    gboolean any = FALSE;

    for (char **port = h->ports; *port; port++) {
        const struct sbrec_port_binding *row = find_row(idl, *port, h->id);
        PfListKind now = row ? list_of(row, &h->source, &h->destination) : PF_LIST_FOREIGN;

        /* Only what ovn-controller has claimed already is moved: it alone knows its interfaces. */
        if (!row || now != h->from || !is_bound(row, first)) {
            continue;
        }
        sbrec_port_binding_verify_external_ids(row); /* no marker, no business of ours */
        sbrec_port_binding_verify_requested_chassis(row);
        sbrec_port_binding_verify_requested_additional_chassis(row);
        sbrec_port_binding_verify_chassis(row);
        sbrec_port_binding_verify_options(row);
        sbrec_port_binding_set_requested_chassis(row, first, 1);
        sbrec_port_binding_set_requested_additional_chassis(row, second, two ? 1 : 0);
        if (two && is_among(row->chassis, row->n_chassis, second)) {
            sbrec_port_binding_set_chassis(row, NULL, 0);
            sbrec_port_binding_set_encap(row, NULL, 0);
        }
        hasten_options(row, h);
        any = TRUE;
    }
    return any ? PF_OVSDB_BUILD_COMMIT : PF_OVSDB_BUILD_NOTHING;
}

static void hastening_done(const GError *error, gpointer data)
{
    Hastening *h = data;
    h->done(error, h->data);
    g_strfreev(h->ports);
    g_free(h->id);
    pf_sb_chassis_clear(&h->source);
    pf_sb_chassis_clear(&h->destination);
    g_free(h);
}

void pf_sb_hasten(PfSb *sb, const char *const *ports, const char *id, const PfSbChassis *source,
                  const PfSbChassis *destination, PfListKind from, PfListKind to, guint timeout_ms,
                  PfOvsdbDone done, gpointer data)
{
    g_return_if_fail(to == PF_LIST_SRC || to == PF_LIST_BOTH || to == PF_LIST_TURNED);
    Hastening *h = g_new0(Hastening, 1);
    h->ports = g_strdupv((char **)ports);
    h->id = g_strdup(id);
    pf_sb_chassis_copy(&h->source, source);
    pf_sb_chassis_copy(&h->destination, destination);
    h->from = from;
    h->to = to;
    h->done = done;
    h->data = data;
    pf_ovsdb_txn(sb->db, "portferryd: what northd is about to write", build_hastening, h,
                 timeout_ms, hastening_done);
}

static struct json *empty_set(void)
{
    return json_array_create_2(json_string_create("set"), json_array_create_empty());
}

/* The row of 'port' as long as the source alone has it, and is (or nobody is) requested. */
static struct json *where_unplugged(const char *port, const PfSbChassis *source, gboolean pinned)
{
    struct json *where = pf_ovsdb_where("logical_port", "==", json_string_create(port));
    json_array_add(where, pf_ovsdb_clause("chassis", "==", pf_ovsdb_json_uuid(&source->uuid)));
    json_array_add(where,
                   pf_ovsdb_clause("requested_chassis",
                                   "==", pinned ? pf_ovsdb_json_uuid(&source->uuid) : empty_set()));
    json_array_add(where, pf_ovsdb_clause("requested_additional_chassis", "==", empty_set()));
    return where;
}

void pf_sb_preplug(PfSb *sb, const char *const *ports, const GPtrArray *mutations,
                   const PfSbChassis *source, const PfSbChassis *destination, guint timeout_ms,
                   PfOvsdbQueryDone done, gpointer data)
{
    struct json *ops = json_array_create_empty();

    for (guint i = 0; ports[i]; i++) {
        for (gboolean pinned = FALSE; pinned <= TRUE; pinned++) {
            struct json *row = json_object_create();
            json_object_put(row, "requested_chassis", pf_ovsdb_json_uuid(&source->uuid));
            json_object_put(row, "requested_additional_chassis",
                            pf_ovsdb_json_uuid(&destination->uuid));
            json_array_add(ops, pf_ovsdb_op_mutate("Port_Binding",
                                                   where_unplugged(ports[i], source, pinned),
                                                   json_clone(g_ptr_array_index(mutations, i))));
            json_array_add(ops, pf_ovsdb_op_update("Port_Binding",
                                                   where_unplugged(ports[i], source, pinned), row));
        }
    }
    json_array_add(ops, pf_ovsdb_op_comment("portferryd: what northd is about to write"));
    pf_ovsdb_query(sb->query, ops, timeout_ms, done, data);
}

/* ---- questions about other rows ---- */

static const char *const chassis_columns[] = {"_uuid", "name", "hostname", NULL};

static gboolean read_chassis(const struct json *rows, PfSbChassis *ret)
{
    if (!rows || pf_ovsdb_rows_length(rows) != 1) {
        return FALSE;
    }
    const struct json *row = pf_ovsdb_rows_get(rows, 0);
    if (!pf_ovsdb_row_uuid(row, "_uuid", &ret->uuid)) {
        return FALSE;
    }
    ret->name = g_strdup(pf_ovsdb_row_string(row, "name"));
    ret->hostname = g_strdup(pf_ovsdb_row_string(row, "hostname"));
    return ret->name != NULL;
}

static struct json *select_chassis(const char *name)
{
    return pf_ovsdb_op_select("Chassis", pf_ovsdb_where("name", "==", json_string_create(name)),
                              chassis_columns);
}

typedef struct {
    PfSb *sb;
    char **ports;
    guint n;
    PfSbFound *found;
    struct uuid *datapaths;
    gboolean has_self;
    PfSbChassis self;
    guint timeout_ms;
    PfSbLookupDone done;
    gpointer data;
} Lookup;

static void lookup_end(Lookup *lookup, const GError *error)
{
    lookup->done(lookup->found, lookup->n, lookup->has_self ? &lookup->self : NULL, error,
                 lookup->data);
    for (guint i = 0; i < lookup->n; i++) {
        pf_sb_chassis_clear(&lookup->found[i].chassis);
    }
    pf_sb_chassis_clear(&lookup->self);
    g_strfreev(lookup->ports);
    g_free(lookup->found);
    g_free(lookup->datapaths);
    g_free(lookup);
}

/* The second answer: the chassis of each bound port, and who else of its datapath is here. */
static void lookup_chassis_done(const struct json *result, const GError *error, gpointer data)
{
    Lookup *lookup = data;
    guint op = 0;

    if (error) {
        lookup_end(lookup, error);
        return;
    }
    for (guint i = 0; i < lookup->n; i++) {
        PfSbFound *found = &lookup->found[i];
        if (!found->bound) {
            continue;
        }
        found->bound = read_chassis(pf_ovsdb_result_rows(result, op++), &found->chassis);
        if (lookup->has_self) {
            const struct json *here = pf_ovsdb_result_rows(result, op++);
            found->cold = !here || pf_ovsdb_rows_length(here) == 0;
        }
    }
    lookup_end(lookup, NULL);
}

static void lookup_ports_done(const struct json *result, const GError *error, gpointer data)
{
    static const char *const columns[] = {"_uuid", NULL};
    Lookup *lookup = data;
    struct json *ops = json_array_create_empty();
    gboolean any = FALSE;

    if (error) {
        json_destroy(ops);
        lookup_end(lookup, error);
        return;
    }
    lookup->has_self = read_chassis(pf_ovsdb_result_rows(result, 0), &lookup->self);
    for (guint i = 0; i < lookup->n; i++) {
        PfSbFound *found = &lookup->found[i];
        const struct json *rows = pf_ovsdb_result_rows(result, i + 1);
        struct uuid chassis, datapath;

        if (!rows || pf_ovsdb_rows_length(rows) != 1) {
            continue;
        }
        const struct json *row = pf_ovsdb_rows_get(rows, 0);
        const char *type = pf_ovsdb_row_string(row, "type");
        found->exists = TRUE;
        found->vif = type && *type == '\0';
        found->bound = pf_ovsdb_row_uuid(row, "chassis", &chassis) &&
                       pf_ovsdb_row_uuid(row, "datapath", &datapath);
        if (!found->bound) {
            found->pinned = pf_ovsdb_row_uuid(row, "requested_chassis", &chassis) &&
                            !(lookup->has_self && uuid_equals(&chassis, &lookup->self.uuid));
            continue;
        }
        any = TRUE;
        json_array_add(
            ops, pf_ovsdb_op_select("Chassis", pf_ovsdb_where_uuid(&chassis), chassis_columns));
        if (lookup->has_self) {
            struct json *where = pf_ovsdb_where("datapath", "==", pf_ovsdb_json_uuid(&datapath));
            json_array_add(
                where, pf_ovsdb_clause("chassis", "==", pf_ovsdb_json_uuid(&lookup->self.uuid)));
            json_array_add(ops, pf_ovsdb_op_select("Port_Binding", where, columns));
        }
    }
    if (!any) {
        json_destroy(ops);
        lookup_end(lookup, NULL);
        return;
    }
    pf_ovsdb_query(lookup->sb->query, ops, lookup->timeout_ms, lookup_chassis_done, lookup);
}

void pf_sb_lookup(PfSb *sb, const char *const *ports, guint timeout_ms, PfSbLookupDone done,
                  gpointer data)
{
    static const char *const columns[] = {"type", "chassis", "requested_chassis", "datapath", NULL};
    Lookup *lookup = g_new0(Lookup, 1);
    struct json *ops = pf_ovsdb_ops(select_chassis(sb->chassis), NULL);

    lookup->sb = sb;
    lookup->ports = g_strdupv((char **)ports);
    lookup->n = g_strv_length(lookup->ports);
    lookup->found = g_new0(PfSbFound, lookup->n);
    lookup->timeout_ms = timeout_ms;
    lookup->done = done;
    lookup->data = data;
    for (guint i = 0; i < lookup->n; i++) {
        lookup->found[i].name = lookup->ports[i];
        json_array_add(ops, pf_ovsdb_op_select("Port_Binding",
                                               pf_ovsdb_where("logical_port", "==",
                                                              json_string_create(lookup->ports[i])),
                                               columns));
    }
    pf_ovsdb_query(sb->query, ops, timeout_ms, lookup_ports_done, lookup);
}

typedef struct {
    PfSbChassisDone done;
    gpointer data;
} FindChassis;

static void find_chassis_done(const struct json *result, const GError *error, gpointer data)
{
    g_autofree FindChassis *find = data;
    PfSbChassis source = {0}, destination = {0};

    if (!error) {
        read_chassis(pf_ovsdb_result_rows(result, 0), &source);
        read_chassis(pf_ovsdb_result_rows(result, 1), &destination);
    }
    find->done(&source, &destination, error, find->data);
    pf_sb_chassis_clear(&source);
    pf_sb_chassis_clear(&destination);
}

void pf_sb_find_chassis(PfSb *sb, const char *source, const char *destination, guint timeout_ms,
                        PfSbChassisDone done, gpointer data)
{
    FindChassis *find = g_new0(FindChassis, 1);
    find->done = done;
    find->data = data;
    pf_ovsdb_query(sb->query,
                   pf_ovsdb_ops(select_chassis(source), select_chassis(destination), NULL),
                   timeout_ms, find_chassis_done, find);
}

void pf_sb_chassis_copy(PfSbChassis *to, const PfSbChassis *from)
{
    pf_sb_chassis_clear(to);
    to->uuid = from->uuid;
    to->name = g_strdup(from->name);
    to->hostname = g_strdup(from->hostname);
}

void pf_sb_chassis_clear(PfSbChassis *chassis)
{
    g_clear_pointer(&chassis->name, g_free);
    g_clear_pointer(&chassis->hostname, g_free);
    memset(&chassis->uuid, 0, sizeof chassis->uuid);
}
