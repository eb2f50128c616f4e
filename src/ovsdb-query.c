/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "ovsdb-query.h"

#include <stdarg.h>

#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/list.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/shash.h"
#include "ovsdb-cs.h"
#include "smap.h"
#include "util.h"
#include "uuid.h"

struct PfOvsdbQuery {
    PfOvsdbLoop *loop;
    char *database;
    char *name;

    struct ovsdb_cs *cs; /* NULL once freed by its owner. */
    char *remote;        /* NULL if none. */
    guint probe_interval_ms;

    GQueue calls; /* Of PfOvsdbCall, oldest first. */
};

struct PfOvsdbCall {
    PfOvsdbQuery *query;
    struct json *ops;
    bool read_only; /* May be sent twice. */
    PfOvsdbQueryDone done;
    gpointer data;
    guint timeout_ms;
    GSource *deadline;

    struct json *id; /* Of the request; NULL while it is not sent. */

    bool finished;
    struct json *result;
    GError *error;
};

/*
 * The connection
 */

/* Nothing is monitored, so that neither the server nor we have anything to copy. */
static struct json *compose_monitor_requests(const struct json *schema, void *aux)
{
    return json_object_create();
}

static const struct ovsdb_cs_ops cs_ops = {
    .compose_monitor_requests = compose_monitor_requests,
};

/* The interval belongs to a session, and each new remote begins one. */
static void apply_probe_interval(PfOvsdbQuery *query)
{
    ovsdb_cs_set_probe_interval(
        query->cs, pf_ovsdb_fit_probe_interval(query->remote, query->probe_interval_ms));
}

PfOvsdbState pf_ovsdb_query_get_state(const PfOvsdbQuery *query)
{
    return !query->remote                              ? PF_OVSDB_DISCONNECTED
           : !ovsdb_cs_is_connected(query->cs)         ? PF_OVSDB_CONNECTING
           : !ovsdb_cs_may_send_transaction(query->cs) ? PF_OVSDB_CONNECTED
                                                       : PF_OVSDB_SYNCED;
}

/*
 * Calls
 */

static void call_free(PfOvsdbCall *call)
{
    if (call->id) {
        ovsdb_cs_forget_transaction(call->query->cs, call->id);
    }
    g_queue_remove(&call->query->calls, call);
    g_source_destroy(call->deadline);
    g_source_unref(call->deadline);
    json_destroy(call->id);
    json_destroy(call->ops);
    json_destroy(call->result);
    g_clear_error(&call->error);
    g_free(call);
}

static void call_deliver(PfOvsdbCall *call)
{
    PfOvsdbQueryDone done = call->done;
    gpointer data = call->data;
    g_autoptr(GError) error = g_steal_pointer(&call->error);
    struct json *result = g_steal_pointer(&call->result);

    /* First, for 'done' may free everything. */
    call_free(call);
    done(result, error, data);
    json_destroy(result);
}

/* Ends 'call' with an error, unless it has ended already. */
static void G_GNUC_PRINTF(3, 4)
    call_fail(PfOvsdbCall *call, PfOvsdbError code, const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list args;

    if (call->finished) {
        return;
    }
    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);
    call->finished = true;
    call->error = g_error_new(PF_OVSDB_ERROR, code, "%s database: %s", call->query->name, message);
}

static const char *object_string(const struct json *object, const char *name)
{
    const struct json *member = pf_ovsdb_row_get(object, name);

    return member && member->type == JSON_STRING ? json_string(member) : NULL;
}

/* Ends 'call' with the error that the server reports in 'object', about operation 'i'. */
static void call_fail_remotely(PfOvsdbCall *call, const struct json *object, size_t i)
{
    const struct json *op = i < json_array(call->ops)->n ? json_array(call->ops)->elems[i] : NULL;
    const char *tag = object_string(object, "error");
    const char *details = object_string(object, "details");
    const char *table = op ? object_string(op, "table") : NULL;

    if (op && !g_strcmp0(object_string(op, "op"), "wait") && !g_strcmp0(tag, "timed out")) {
        call_fail(call, PF_OVSDB_ERROR_CONFLICT, "%s: the row was changed by somebody else", table);
        return;
    }
    /* A cluster that loses its leader may still carry out what it has accepted. */
    call_fail(call,
              !g_strcmp0(tag, "cluster error") && !call->read_only ? PF_OVSDB_ERROR_UNKNOWN
                                                                   : PF_OVSDB_ERROR_REFUSED,
              "%s: %s%s%s", table ? table : "commit", tag ? tag : "malformed error",
              details ? ": " : "", details ? details : "");
}

static void call_take_reply(PfOvsdbCall *call, const struct jsonrpc_msg *reply)
{
    const struct json_array *results;

    g_clear_pointer(&call->id, json_destroy);
    if (reply->type != JSONRPC_REPLY || reply->result->type != JSON_ARRAY) {
        const struct json *what = reply->type == JSONRPC_ERROR ? reply->error : reply->result;
        char *text = json_to_string(what, 0);

        call_fail(call, PF_OVSDB_ERROR_REFUSED, "%s", text);
        free(text);
        return;
    }

    results = json_array(reply->result);
    for (size_t i = 0; i < results->n; i++) {
        if (pf_ovsdb_row_get(results->elems[i], "error")) {
            call_fail_remotely(call, results->elems[i], i);
            return;
        }
    }
    if (results->n < json_array(call->ops)->n) {
        call_fail(call, PF_OVSDB_ERROR_INVALID, "the reply has too few results");
        return;
    }
    call->finished = true;
    call->result = json_clone(reply->result);
}

static void call_send(PfOvsdbCall *call)
{
    const struct json_array *ops = json_array(call->ops);
    struct json *params = json_array_create_1(json_string_create(call->query->database));

    for (size_t i = 0; i < ops->n; i++) {
        json_array_add(params, json_clone(ops->elems[i]));
    }
    call->id = ovsdb_cs_send_transaction(call->query->cs, params);
}

/* Sends what waits for the connection. */
static void send_calls(PfOvsdbQuery *query)
{
    for (GList *l = query->calls.head; l && ovsdb_cs_may_send_transaction(query->cs); l = l->next) {
        PfOvsdbCall *call = l->data;

        if (!call->id && !call->finished) {
            call_send(call);
        }
    }
}

/* The answers to what has been sent will never come. */
static void forget_sent_calls(PfOvsdbQuery *query)
{
    for (GList *l = query->calls.head; l; l = l->next) {
        PfOvsdbCall *call = l->data;

        if (!call->id) {
            continue;
        }
        g_clear_pointer(&call->id, json_destroy);
        if (!call->read_only) {
            call_fail(call, PF_OVSDB_ERROR_UNKNOWN,
                      "the connection was lost before the answer, the change may or may not have "
                      "been made");
        }
    }
}

static PfOvsdbCall *find_call(PfOvsdbQuery *query, const struct json *id)
{
    for (GList *l = query->calls.head; l; l = l->next) {
        PfOvsdbCall *call = l->data;

        if (call->id && json_equal(call->id, id)) {
            return call;
        }
    }
    return NULL;
}

static PfOvsdbCall *find_finished_call(PfOvsdbQuery *query)
{
    for (GList *l = query->calls.head; l; l = l->next) {
        PfOvsdbCall *call = l->data;

        if (call->finished) {
            return call;
        }
    }
    return NULL;
}

static gboolean call_deadline_passed(gpointer data)
{
    PfOvsdbCall *call = data;
    struct ovsdb_cs *cs = call->query->cs;

    if (call->id) {
        /* The server may be dead, and the probes are slow to tell: try the next one. */
        ovsdb_cs_force_reconnect(cs);
        call_fail(call, call->read_only ? PF_OVSDB_ERROR_TIMEOUT : PF_OVSDB_ERROR_UNKNOWN,
                  "no answer within %u ms%s", call->timeout_ms,
                  call->read_only ? "" : ", the change may or may not have been made");
    } else {
        int reason = ovsdb_cs_get_last_error(cs);

        call_fail(call, PF_OVSDB_ERROR_TIMEOUT, "not connected within %u ms%s%s", call->timeout_ms,
                  reason ? ": " : "", reason ? ovs_retval_to_string(reason) : "");
    }
    call_deliver(call);
    return G_SOURCE_REMOVE;
}

/* Whether no operation changes anything. */
static bool ops_are_read_only(const struct json *ops)
{
    for (size_t i = 0; i < json_array(ops)->n; i++) {
        const char *op = object_string(json_array(ops)->elems[i], "op");

        if (g_strcmp0(op, "select") && g_strcmp0(op, "wait") && g_strcmp0(op, "comment")) {
            return false;
        }
    }
    return true;
}

PfOvsdbCall *pf_ovsdb_query(PfOvsdbQuery *query, struct json *ops, guint timeout_ms,
                            PfOvsdbQueryDone done, gpointer data)
{
    PfOvsdbCall *call = g_new0(PfOvsdbCall, 1);

    call->query = query;
    call->ops = ops;
    call->read_only = ops_are_read_only(ops);
    call->done = done;
    call->data = data;
    call->timeout_ms = timeout_ms;

    call->deadline = g_timeout_source_new(timeout_ms);
    g_source_set_callback(call->deadline, call_deadline_passed, call, NULL);
    g_source_attach(call->deadline, pf_ovsdb_loop_get_context(query->loop));

    g_queue_push_tail(&query->calls, call);
    send_calls(query);
    return call;
}

void pf_ovsdb_call_cancel(PfOvsdbCall *call)
{
    call_free(call);
}

/*
 * In the loop
 */

static bool query_run(gpointer member)
{
    PfOvsdbQuery *query = member;
    struct ovs_list events;
    struct ovsdb_cs_event *event;

    ovsdb_cs_run(query->cs, &events);
    LIST_FOR_EACH_POP(event, list_node, &events)
    {
        if (event->type == OVSDB_CS_EVENT_TYPE_RECONNECT) {
            forget_sent_calls(query);
        } else if (event->type == OVSDB_CS_EVENT_TYPE_TXN_REPLY) {
            PfOvsdbCall *call = find_call(query, event->txn_reply->id);

            if (call) {
                call_take_reply(call, event->txn_reply);
            }
        }
        ovsdb_cs_event_destroy(event);
    }
    send_calls(query);
    return find_finished_call(query);
}

static void query_wait(gpointer member)
{
    PfOvsdbQuery *query = member;

    ovsdb_cs_wait(query->cs);
    if (find_finished_call(query)) {
        poll_immediate_wake();
    }
}

static void query_dispatch(gpointer member)
{
    PfOvsdbQuery *query = g_rc_box_acquire(member);
    PfOvsdbCall *call;

    /* A callback may add calls, but only query_run() finishes them. */
    while (query->cs && (call = find_finished_call(query))) {
        call_deliver(call);
    }
    g_rc_box_release(query);
}

static const PfOvsdbLoopOps query_loop_ops = {
    .run = query_run,
    .wait = query_wait,
    .dispatch = query_dispatch,
};

PfOvsdbQuery *pf_ovsdb_query_new(PfOvsdbLoop *loop, const char *database, const char *name)
{
    PfOvsdbQuery *query = g_rc_box_new0(PfOvsdbQuery);

    query->loop = loop;
    query->database = g_strdup(database);
    query->name = g_strdup(name);
    query->probe_interval_ms = PF_OVSDB_PROBE_INTERVAL_MS;
    g_queue_init(&query->calls);
    query->cs = ovsdb_cs_create(query->database, 3, &cs_ops, query);
    pf_ovsdb_loop_add(loop, &query_loop_ops, query);
    return query;
}

void pf_ovsdb_query_free(PfOvsdbQuery *query)
{
    if (!query) {
        return;
    }
    pf_ovsdb_loop_remove(query->loop, query);
    while (!g_queue_is_empty(&query->calls)) {
        call_free(g_queue_peek_head(&query->calls));
    }
    g_clear_pointer(&query->cs, ovsdb_cs_destroy);
    g_clear_pointer(&query->remote, g_free);
    g_clear_pointer(&query->database, g_free);
    g_clear_pointer(&query->name, g_free);
    g_rc_box_release(query);
}

bool pf_ovsdb_query_set_remote(PfOvsdbQuery *query, const char *remote, GError **error)
{
    g_autofree char *checked = pf_ovsdb_check_remote(remote, error);

    if (!checked) {
        return false;
    }
    g_free(query->remote);
    query->remote = *checked ? g_steal_pointer(&checked) : NULL;
    ovsdb_cs_set_remote(query->cs, query->remote, true);
    apply_probe_interval(query);
    if (!ovsdb_cs_is_connected(query->cs)) {
        /* Without a session there will be no event that tells. */
        forget_sent_calls(query);
    }
    return true;
}

void pf_ovsdb_query_set_leader_only(PfOvsdbQuery *query, bool leader_only)
{
    ovsdb_cs_set_leader_only(query->cs, leader_only);
}

void pf_ovsdb_query_set_probe_interval(PfOvsdbQuery *query, guint interval_ms)
{
    query->probe_interval_ms = interval_ms;
    apply_probe_interval(query);
}

/*
 * Operations
 */

struct json *pf_ovsdb_ops(struct json *op, ...)
{
    struct json *ops = json_array_create_empty();
    va_list args;

    va_start(args, op);
    for (; op; op = va_arg(args, struct json *)) {
        json_array_add(ops, op);
    }
    va_end(args);
    return ops;
}

static struct json *new_op(const char *name, const char *table, struct json *where)
{
    struct json *op = json_object_create();

    json_object_put_string(op, "op", name);
    if (table) {
        json_object_put_string(op, "table", table);
    }
    if (where) {
        json_object_put(op, "where", where);
    }
    return op;
}

struct json *pf_ovsdb_op_select(const char *table, struct json *where, const char *const *columns)
{
    struct json *op = new_op("select", table, where);

    if (columns) {
        struct json *array = json_array_create_empty();

        for (; *columns; columns++) {
            json_array_add(array, json_string_create(*columns));
        }
        json_object_put(op, "columns", array);
    }
    return op;
}

struct json *pf_ovsdb_op_wait(const char *table, struct json *where, struct json *row)
{
    struct json *op = new_op("wait", table, where);
    struct json *columns = json_array_create_empty();
    struct shash_node *node;

    SHASH_FOR_EACH (node, json_object(row)) {
        json_array_add(columns, json_string_create(node->name));
    }
    json_object_put(op, "timeout", json_integer_create(0));
    json_object_put(op, "columns", columns);
    json_object_put_string(op, "until", "==");
    json_object_put(op, "rows", json_array_create_1(row));
    return op;
}

struct json *pf_ovsdb_op_update(const char *table, struct json *where, struct json *row)
{
    struct json *op = new_op("update", table, where);

    json_object_put(op, "row", row);
    return op;
}

struct json *pf_ovsdb_op_mutate(const char *table, struct json *where, struct json *mutations)
{
    struct json *op = new_op("mutate", table, where);

    json_object_put(op, "mutations", mutations);
    return op;
}

struct json *pf_ovsdb_op_insert(const char *table, struct json *row, const char *uuid_name)
{
    struct json *op = new_op("insert", table, NULL);

    json_object_put(op, "row", row);
    if (uuid_name) {
        json_object_put_string(op, "uuid-name", uuid_name);
    }
    return op;
}

struct json *pf_ovsdb_op_delete(const char *table, struct json *where)
{
    return new_op("delete", table, where);
}

struct json *pf_ovsdb_op_comment(const char *comment)
{
    struct json *op = new_op("comment", NULL, NULL);

    json_object_put_string(op, "comment", comment);
    return op;
}

struct json *pf_ovsdb_clause(const char *column, const char *function, struct json *value)
{
    return json_array_create_3(json_string_create(column), json_string_create(function), value);
}

struct json *pf_ovsdb_where(const char *column, const char *function, struct json *value)
{
    return json_array_create_1(pf_ovsdb_clause(column, function, value));
}

struct json *pf_ovsdb_where_uuid(const struct uuid *uuid)
{
    return pf_ovsdb_where("_uuid", "==", pf_ovsdb_json_uuid(uuid));
}

/* ["map", pairs] or ["set", elements]. */
static struct json *new_collection(const char *kind, struct json *elements)
{
    return json_array_create_2(json_string_create(kind), elements);
}

static struct json *new_pair(const char *key, const char *value)
{
    return json_array_create_2(json_string_create(key), json_string_create(value));
}

void pf_ovsdb_mutations_set_key(struct json *mutations, const char *column, const char *key,
                                const char *value)
{
    /* "insert" leaves a key alone that is there already. */
    pf_ovsdb_mutations_unset_key(mutations, column, key);
    json_array_add(mutations, pf_ovsdb_clause(column, "insert", pf_ovsdb_json_pair(key, value)));
}

void pf_ovsdb_mutations_unset_key(struct json *mutations, const char *column, const char *key)
{
    json_array_add(
        mutations,
        pf_ovsdb_clause(column, "delete",
                        new_collection("set", json_array_create_1(json_string_create(key)))));
}

struct json *pf_ovsdb_json_map(GHashTable *map)
{
    struct json *pairs = json_array_create_empty();
    GHashTableIter iter;
    gpointer key, value;

    g_hash_table_iter_init(&iter, map);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        json_array_add(pairs, new_pair(key, value));
    }
    return new_collection("map", pairs);
}

struct json *pf_ovsdb_json_smap(const struct smap *map)
{
    struct json *pairs = json_array_create_empty();
    const struct smap_node *node;

    SMAP_FOR_EACH (node, map) {
        json_array_add(pairs, new_pair(node->key, node->value));
    }
    return new_collection("map", pairs);
}

struct json *pf_ovsdb_json_pair(const char *key, const char *value)
{
    return new_collection("map", json_array_create_1(new_pair(key, value)));
}

struct json *pf_ovsdb_json_uuid(const struct uuid *uuid)
{
    g_autofree char *text = g_strdup_printf(UUID_FMT, UUID_ARGS(uuid));

    return json_array_create_2(json_string_create("uuid"), json_string_create(text));
}

/*
 * Results
 */

/* Element 'i' of 'array'; NULL if it has none. */
static const struct json *array_get(const struct json *array, size_t i)
{
    return array && array->type == JSON_ARRAY && i < json_array(array)->n
               ? json_array(array)->elems[i]
               : NULL;
}

/* The second element of a pair that begins with 'kind', as in ["map", [...]]. */
static const struct json *tagged(const struct json *value, const char *kind)
{
    const struct json *tag = array_get(value, 0);

    return tag && tag->type == JSON_STRING && !strcmp(json_string(tag), kind) &&
                   json_array(value)->n == 2
               ? array_get(value, 1)
               : NULL;
}

const struct json *pf_ovsdb_result_rows(const struct json *result, guint i)
{
    const struct json *rows = pf_ovsdb_row_get(array_get(result, i), "rows");

    return rows && rows->type == JSON_ARRAY ? rows : NULL;
}

guint pf_ovsdb_rows_length(const struct json *rows)
{
    return rows && rows->type == JSON_ARRAY ? (guint)json_array(rows)->n : 0;
}

const struct json *pf_ovsdb_rows_get(const struct json *rows, guint i)
{
    return array_get(rows, i);
}

gint64 pf_ovsdb_result_count(const struct json *result, guint i)
{
    gint64 count;

    return pf_ovsdb_row_integer(array_get(result, i), "count", &count) ? count : 0;
}

const struct json *pf_ovsdb_row_get(const struct json *row, const char *column)
{
    return row && row->type == JSON_OBJECT ? shash_find_data(json_object(row), column) : NULL;
}

const char *pf_ovsdb_row_string(const struct json *row, const char *column)
{
    return object_string(row, column);
}

bool pf_ovsdb_row_uuid(const struct json *row, const char *column, struct uuid *uuid)
{
    const struct json *text = tagged(pf_ovsdb_row_get(row, column), "uuid");

    return text && text->type == JSON_STRING && uuid_from_string(uuid, json_string(text));
}

bool pf_ovsdb_row_integer(const struct json *row, const char *column, gint64 *value)
{
    const struct json *json = pf_ovsdb_row_get(row, column);

    if (!json || json->type != JSON_INTEGER) {
        return false;
    }
    *value = json_integer(json);
    return true;
}

GHashTable *pf_ovsdb_row_map(const struct json *row, const char *column)
{
    GHashTable *map = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    const struct json *pairs = tagged(pf_ovsdb_row_get(row, column), "map");
    const struct json *pair;

    for (size_t i = 0; (pair = array_get(pairs, i)); i++) {
        const struct json *key = array_get(pair, 0);
        const struct json *value = array_get(pair, 1);

        if (key && key->type == JSON_STRING && value && value->type == JSON_STRING) {
            g_hash_table_insert(map, g_strdup(json_string(key)), g_strdup(json_string(value)));
        }
    }
    return map;
}

/* The text of one value that is no collection; NULL if it is one. */
static char *atom_to_string(const struct json *atom)
{
    const struct json *uuid = tagged(atom, "uuid");

    if (uuid) {
        atom = uuid;
    }
    switch (atom->type) {
    case JSON_STRING:
        return g_strdup(json_string(atom));
    case JSON_INTEGER:
        return g_strdup_printf("%" G_GINT64_FORMAT, (gint64)json_integer(atom));
    case JSON_TRUE:
        return g_strdup("true");
    case JSON_FALSE:
        return g_strdup("false");
    case JSON_NULL:
    case JSON_REAL:
    case JSON_OBJECT:
    case JSON_ARRAY:
    case JSON_SERIALIZED_OBJECT:
    case JSON_N_TYPES:
    default:
        return NULL;
    }
}

char **pf_ovsdb_row_set(const struct json *row, const char *column)
{
    g_autoptr(GStrvBuilder) set = g_strv_builder_new();
    const struct json *value = pf_ovsdb_row_get(row, column);
    const struct json *elements = tagged(value, "set");
    size_t n = elements && elements->type == JSON_ARRAY ? json_array(elements)->n : 0;

    /* A set of one element is written as that element. */
    if (value && !elements) {
        n = 1;
    }
    for (size_t i = 0; i < n; i++) {
        g_autofree char *text = atom_to_string(elements ? array_get(elements, i) : value);

        if (text) {
            g_strv_builder_add(set, text);
        }
    }
    return g_strv_builder_end(set);
}
