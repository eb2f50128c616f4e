/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "fixture.h"
#include "ovsdb-query.h"

#include <signal.h>

#include "openvswitch/json.h"
#include "smap.h"
#include "uuid.h"

#define LSP "Logical_Switch_Port"

static PfOvsdbLoop *loop;

/* A call and its end. */
typedef struct {
    bool done;
    guint calls;
    struct json *result;
    GError *error;
} Answer;

static void answer_clear(Answer *answer)
{
    json_destroy(answer->result);
    g_clear_error(&answer->error);
    *answer = (Answer){0};
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Answer, answer_clear)

static void note_answer(const struct json *result, const GError *error, gpointer data)
{
    Answer *answer = data;

    g_assert_true(!result != !error);
    answer->calls++;
    answer->done = true;
    answer->result = result ? json_clone(result) : NULL;
    answer->error = error ? g_error_copy(error) : NULL;
}

/* Runs 'ops' to their end, which must be a good one. */
static void ask(PfOvsdbQuery *query, Answer *answer, struct json *ops)
{
    answer_clear(answer);
    pf_ovsdb_query(query, ops, 5000, note_answer, answer);
    g_assert_false(answer->done);
    run_until(&answer->done, 10);
}

static PfOvsdbQuery *northbound_new(const char *remote)
{
    PfOvsdbQuery *query = pf_ovsdb_query_new(loop, "OVN_Northbound", "northbound");
    g_autoptr(GError) error = NULL;

    pf_ovsdb_query_set_remote(query, remote, &error);
    g_assert_no_error(error);
    return query;
}

static Server *northbound_server_new(void)
{
    Server *server = server_new(NB_SCHEMA);

    server_start(server, NULL);
    server_add_port(server, "p1");
    server_set_key(server, "p1", "options", "foreign", "old");
    return server;
}

static struct json *where_name(const char *name)
{
    return pf_ovsdb_where("name", "==", json_string_create(name));
}

static struct json *select_port(const char *name)
{
    const char *const columns[] = {"_uuid", "name", "options", "up", "addresses", NULL};

    return pf_ovsdb_ops(pf_ovsdb_op_select(LSP, where_name(name), columns), NULL);
}

/* Sets requested-chassis if the options still are 'options'. */
static struct json *change_options(const struct uuid *uuid, GHashTable *options, const char *value)
{
    struct json *mutations = json_array_create_empty();
    struct json *row = json_object_create();

    json_object_put(row, "options", pf_ovsdb_json_map(options));
    pf_ovsdb_mutations_set_key(mutations, "options", "requested-chassis", value);
    return pf_ovsdb_ops(pf_ovsdb_op_wait(LSP, pf_ovsdb_where_uuid(uuid), row),
                        pf_ovsdb_op_mutate(LSP, pf_ovsdb_where_uuid(uuid), mutations),
                        pf_ovsdb_op_comment("test"), NULL);
}

static void test_select_change(void)
{
    g_autoptr(Server) server = northbound_server_new();
    g_autoptr(PfOvsdbQuery) query = northbound_new(server->remote);
    g_autoptr(GHashTable) options = NULL;
    g_auto(GStrv) up = NULL;
    g_auto(Answer) answer = {0};
    const struct json *row;
    struct json *mutations;
    struct uuid uuid;

    ask(query, &answer, select_port("none"));
    g_assert_no_error(answer.error);
    g_assert_cmpuint(pf_ovsdb_rows_length(pf_ovsdb_result_rows(answer.result, 0)), ==, 0);

    ask(query, &answer, select_port("p1"));
    g_assert_no_error(answer.error);
    g_assert_cmpuint(pf_ovsdb_rows_length(pf_ovsdb_result_rows(answer.result, 0)), ==, 1);
    row = pf_ovsdb_rows_get(pf_ovsdb_result_rows(answer.result, 0), 0);
    g_assert_cmpstr(pf_ovsdb_row_string(row, "name"), ==, "p1");
    g_assert_true(pf_ovsdb_row_uuid(row, "_uuid", &uuid));
    options = pf_ovsdb_row_map(row, "options");
    g_assert_cmpuint(g_hash_table_size(options), ==, 1);
    g_assert_cmpstr(g_hash_table_lookup(options, "foreign"), ==, "old");
    up = pf_ovsdb_row_set(row, "up");
    g_assert_cmpuint(g_strv_length(up), ==, 0);

    ask(query, &answer, change_options(&uuid, options, "hv1,hv2"));
    g_assert_no_error(answer.error);
    g_assert_cmpint(pf_ovsdb_result_count(answer.result, 1), ==, 1);
    g_assert_true(server_has_key(server, "p1", "options", "requested-chassis", "hv1,hv2"));
    g_assert_true(server_has_key(server, "p1", "options", "foreign", "old"));

    /* The same once more is a conflict, for the options are others now. */
    ask(query, &answer, change_options(&uuid, options, "hv2"));
    g_assert_error(answer.error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_CONFLICT);
    g_test_message("%s", answer.error->message);
    g_assert_nonnull(strstr(answer.error->message, "northbound"));
    g_assert_nonnull(strstr(answer.error->message, LSP));
    g_assert_true(server_has_key(server, "p1", "options", "requested-chassis", "hv1,hv2"));

    mutations = json_array_create_empty();
    pf_ovsdb_mutations_unset_key(mutations, "options", "requested-chassis");
    ask(query, &answer,
        pf_ovsdb_ops(pf_ovsdb_op_mutate(LSP, pf_ovsdb_where_uuid(&uuid), mutations), NULL));
    g_assert_no_error(answer.error);
    g_assert_false(server_has_key(server, "p1", "options", "requested-chassis", "hv1,hv2"));
}

static void test_values(void)
{
    g_autoptr(Server) server = northbound_server_new();
    g_autoptr(PfOvsdbQuery) query = northbound_new(server->remote);
    struct smap ids = SMAP_CONST1(&ids, "owner", "test");
    struct json *row = json_object_create();
    g_auto(Answer) answer = {0};
    g_auto(GStrv) set = NULL;
    g_autoptr(GHashTable) map = NULL;
    const struct json *selected;
    gint64 number;

    json_object_put_string(row, "name", "s1");
    json_object_put(row, "external_ids", pf_ovsdb_json_smap(&ids));
    ask(query, &answer,
        pf_ovsdb_ops(pf_ovsdb_op_insert("Logical_Switch", row, NULL),
                     pf_ovsdb_op_select("Logical_Switch",
                                        pf_ovsdb_where("external_ids", "includes",
                                                       pf_ovsdb_json_pair("owner", "test")),
                                        NULL),
                     pf_ovsdb_op_select(
                         "Logical_Switch",
                         pf_ovsdb_where("name", "==", json_string_create("switch of p1")), NULL),
                     pf_ovsdb_op_select("NB_Global", json_array_create_empty(), NULL),
                     pf_ovsdb_op_insert("NB_Global", json_object_create(), NULL),
                     pf_ovsdb_op_select("NB_Global", json_array_create_empty(), NULL), NULL));
    g_assert_no_error(answer.error);

    selected = pf_ovsdb_rows_get(pf_ovsdb_result_rows(answer.result, 1), 0);
    g_assert_cmpstr(pf_ovsdb_row_string(selected, "name"), ==, "s1");
    map = pf_ovsdb_row_map(selected, "external_ids");
    g_assert_cmpstr(g_hash_table_lookup(map, "owner"), ==, "test");
    selected = pf_ovsdb_rows_get(pf_ovsdb_result_rows(answer.result, 2), 0);
    set = pf_ovsdb_row_set(selected, "ports");
    g_assert_cmpuint(g_strv_length(set), ==, 1);
    g_assert_true(g_uuid_string_is_valid(set[0]));
    selected = pf_ovsdb_rows_get(pf_ovsdb_result_rows(answer.result, 5), 0);
    g_assert_true(pf_ovsdb_row_integer(selected, "nb_cfg", &number));
    g_assert_cmpint(number, ==, 0);

    /* Questions that have no answer. */
    g_assert_null(pf_ovsdb_result_rows(answer.result, 0));
    g_assert_null(pf_ovsdb_result_rows(answer.result, 99));
    g_assert_null(pf_ovsdb_row_string(selected, "nb_cfg"));
    g_assert_null(pf_ovsdb_row_string(NULL, "name"));
    g_assert_false(pf_ovsdb_row_integer(selected, "name", &number));

    ask(query, &answer,
        pf_ovsdb_ops(pf_ovsdb_op_delete("Logical_Switch",
                                        pf_ovsdb_where("name", "==", json_string_create("s1"))),
                     NULL));
    g_assert_no_error(answer.error);
    g_assert_cmpint(pf_ovsdb_result_count(answer.result, 0), ==, 1);
}

static void test_refused(void)
{
    g_autoptr(Server) server = northbound_server_new();
    g_autoptr(PfOvsdbQuery) query = northbound_new(server->remote);
    g_auto(Answer) answer = {0};
    struct json *row = json_object_create();

    ask(query, &answer,
        pf_ovsdb_ops(pf_ovsdb_op_comment("test"),
                     pf_ovsdb_op_select("No_Such_Table", json_array_create_empty(), NULL), NULL));
    g_assert_error(answer.error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_REFUSED);
    g_test_message("%s", answer.error->message);
    g_assert_nonnull(strstr(answer.error->message, "northbound"));
    g_assert_nonnull(strstr(answer.error->message, "No_Such_Table"));

    /* Found by the server only when it commits: the name is taken. */
    server_add_port(server, "p2");
    json_object_put_string(row, "name", "p2");
    ask(query, &answer, pf_ovsdb_ops(pf_ovsdb_op_update(LSP, where_name("p1"), row), NULL));
    g_assert_error(answer.error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_REFUSED);
    g_test_message("%s", answer.error->message);
    g_assert_nonnull(strstr(answer.error->message, "constraint violation"));
}

static struct json *set_chassis(const char *value)
{
    struct json *mutations = json_array_create_empty();

    pf_ovsdb_mutations_set_key(mutations, "options", "requested-chassis", value);
    return pf_ovsdb_ops(pf_ovsdb_op_mutate(LSP, where_name("p1"), mutations), NULL);
}

static gboolean start_server(gpointer data)
{
    server_start(data, NULL);
    return G_SOURCE_REMOVE;
}

static void test_server_appears(void)
{
    g_autoptr(Server) server = northbound_server_new();
    g_autoptr(PfOvsdbQuery) query = NULL;
    g_auto(Answer) late = {0};
    g_auto(Answer) answer = {0};
    g_auto(Answer) cancelled = {0};

    server_kill(server);
    query = northbound_new(server->remote);
    g_assert_cmpint(pf_ovsdb_query_get_state(query), ==, PF_OVSDB_CONNECTING);
    pf_ovsdb_query(query, set_chassis("hv1"), 200, note_answer, &late);
    pf_ovsdb_query(query, set_chassis("hv2"), 10000, note_answer, &answer);
    pf_ovsdb_call_cancel(pf_ovsdb_query(query, set_chassis("hv3"), 10000, note_answer, &cancelled));
    g_timeout_add(500, start_server, server);
    run_until(&late.done, 5);
    g_assert_error(late.error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_TIMEOUT);
    g_test_message("%s", late.error->message);
    run_until(&answer.done, 10);
    g_assert_no_error(answer.error);
    g_assert_true(server_has_key(server, "p1", "options", "requested-chassis", "hv2"));
    g_assert_cmpuint(cancelled.calls, ==, 0);
    g_assert_cmpint(pf_ovsdb_query_get_state(query), ==, PF_OVSDB_SYNCED);
}

static gboolean replace_server(gpointer data)
{
    server_kill(data);
    server_start(data, NULL);
    return G_SOURCE_REMOVE;
}

/* What may have been committed is not sent again; what only reads is. */
static void test_server_dies(void)
{
    g_autoptr(Server) server = northbound_server_new();
    g_autoptr(PfOvsdbQuery) query = northbound_new(server->remote);
    g_auto(Answer) answer = {0};
    g_auto(Answer) change = {0};

    ask(query, &answer, select_port("p1"));
    g_assert_no_error(answer.error);
    answer_clear(&answer);

    server_signal(server, SIGSTOP);
    pf_ovsdb_query(query, set_chassis("hv2"), 15000, note_answer, &change);
    pf_ovsdb_query(query, select_port("p1"), 15000, note_answer, &answer);
    g_timeout_add(300, replace_server, server);
    run_until(&change.done, 5);
    g_assert_error(change.error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_UNKNOWN);
    g_test_message("%s", change.error->message);
    run_until(&answer.done, 15);
    g_assert_no_error(answer.error);
    g_assert_false(server_has_key(server, "p1", "options", "requested-chassis", "hv2"));
}

static gboolean count_tick(gpointer data)
{
    ++*(guint *)data;
    return G_SOURCE_CONTINUE;
}

static void test_server_hangs(void)
{
    g_autoptr(Server) server = northbound_server_new();
    g_autoptr(PfOvsdbQuery) query = northbound_new(server->remote);
    g_auto(Answer) answer = {0};
    g_auto(Answer) change = {0};
    guint ticks = 0;
    guint timer;

    ask(query, &answer, select_port("p1"));
    answer_clear(&answer);
    server_signal(server, SIGSTOP);
    timer = g_timeout_add(10, count_tick, &ticks);
    pf_ovsdb_query(query, set_chassis("hv2"), 500, note_answer, &change);
    pf_ovsdb_query(query, select_port("p1"), 600, note_answer, &answer);
    run_until(&change.done, 5);
    run_until(&answer.done, 5);
    g_assert_error(change.error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_UNKNOWN);
    g_assert_error(answer.error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_TIMEOUT);
    g_assert_cmpuint(ticks, >=, 40);
    g_source_remove(timer);

    server_signal(server, SIGCONT);
    ask(query, &answer, select_port("p1"));
    g_assert_no_error(answer.error);
}

/* Without a remote there is no connection that could tell. */
static void test_remote_taken_away(void)
{
    g_autoptr(Server) server = northbound_server_new();
    g_autoptr(PfOvsdbQuery) query = northbound_new(server->remote);
    g_auto(Answer) answer = {0};

    ask(query, &answer, select_port("p1"));
    answer_clear(&answer);
    server_signal(server, SIGSTOP);
    pf_ovsdb_query(query, set_chassis("hv2"), 5000, note_answer, &answer);
    pf_ovsdb_query_set_remote(query, NULL, NULL);
    g_assert_cmpint(pf_ovsdb_query_get_state(query), ==, PF_OVSDB_DISCONNECTED);
    g_assert_false(answer.done);
    run_until(&answer.done, 1);
    g_assert_error(answer.error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_UNKNOWN);
}

int main(int argc, char **argv)
{
    int status;

    g_test_init(&argc, &argv, NULL);
    loop = pf_ovsdb_loop_new(NULL);

    g_test_add_func("/ovsdb-query/select-change", test_select_change);
    g_test_add_func("/ovsdb-query/values", test_values);
    g_test_add_func("/ovsdb-query/refused", test_refused);
    g_test_add_func("/ovsdb-query/server-appears", test_server_appears);
    g_test_add_func("/ovsdb-query/server-dies", test_server_dies);
    g_test_add_func("/ovsdb-query/server-hangs", test_server_hangs);
    g_test_add_func("/ovsdb-query/remote-taken-away", test_remote_taken_away);

    status = g_test_run();
    pf_ovsdb_loop_free(loop);
    return status;
}
