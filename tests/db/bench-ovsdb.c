/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What it costs to reach one port of a large network: by a query, and by a replica whose condition
 * is changed.  The argument is the number of ports.
 */
#include <config.h>

#include "fixture.h"
#include "ovsdb-query.h"

#include <stdlib.h>

#include "nb-idl.h"
#include "openvswitch/json.h"
#include "ovsdb-idl.h"
#include "smap.h"
#include "uuid.h"

#define LSP "Logical_Switch_Port"
#define N_SAMPLES 30

static PfOvsdbLoop *loop;

static double now_ms(void)
{
    return (double)g_get_monotonic_time() / 1000;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void report(const char *what, double *samples, guint n)
{
    qsort(samples, n, sizeof(*samples), compare);
    g_print("%-48s %8.2f %8.2f %8.2f\n", what, samples[0], samples[n / 2], samples[n - 1]);
}

/* Appends one record to the database file: a switch with all the ports. */
static void fill(Server *server, guint n_ports)
{
    g_autoptr(GString) ports = g_string_new(NULL);
    g_autoptr(GString) record = g_string_new("{\"_date\":0,\"" LSP "\":{");
    g_autofree char *sum = NULL;
    g_autofree char *switch_uuid = g_uuid_string_random();
    FILE *file;

    for (guint i = 0; i < n_ports; i++) {
        g_autofree char *uuid = g_uuid_string_random();

        g_string_append_printf(
            record,
            "%s\"%s\":{\"name\":\"port-%u\",\"addresses\":\"52:54:00:%02x:%02x:%02x 10.%u.%u.%u\","
            "\"options\":[\"map\",[[\"requested-chassis\",\"hv%u\"],[\"mcast_flood\",\"false\"]]],"
            "\"external_ids\":[\"map\",[[\"neutron:device_owner\",\"compute:nova\"],"
            "[\"neutron:device_id\",\"%s\"],[\"neutron:revision_number\",\"4\"]]]}",
            i ? "," : "", uuid, i, i >> 16, i >> 8 & 255, i & 255, i >> 16, i >> 8 & 255, i & 255,
            i % 1000, uuid);
        g_string_append_printf(ports, "%s[\"uuid\",\"%s\"]", i ? "," : "", uuid);
    }
    g_string_append_printf(
        record,
        "},\"Logical_Switch\":{\"%s\":{\"name\":\"s\",\"ports\":[\"set\",[%s]]}}}"
        "\n",
        switch_uuid, ports->str);

    sum = g_compute_checksum_for_string(G_CHECKSUM_SHA1, record->str, (gssize)record->len);
    file = fopen(server->database, "a");
    g_assert_nonnull(file);
    fprintf(file, "OVSDB JSON %" G_GSIZE_FORMAT " %s\n%s", record->len, sum, record->str);
    g_assert_cmpint(fclose(file), ==, 0);
}

/*
 * By query
 */

typedef struct {
    bool done;
    bool found;
    struct uuid uuid;
    GHashTable *options;
} Answer;

static void note_row(const struct json *result, const GError *error, gpointer data)
{
    Answer *answer = data;
    const struct json *row = pf_ovsdb_rows_get(pf_ovsdb_result_rows(result, 0), 0);

    g_assert_no_error(error);
    answer->done = true;
    answer->found = pf_ovsdb_row_uuid(row, "_uuid", &answer->uuid);
    answer->options = pf_ovsdb_row_map(row, "options");
}

static void note_change(const struct json *result, const GError *error, gpointer data)
{
    g_assert_no_error(error);
    g_assert_cmpint(pf_ovsdb_result_count(result, 1), ==, 1);
    ((Answer *)data)->done = true;
}

static void bench_query(Server *server, guint n_ports)
{
    const char *const columns[] = {"_uuid", "options", "external_ids", NULL};
    double connects[N_SAMPLES];
    double selects[N_SAMPLES];
    double changes[N_SAMPLES];

    for (guint i = 0; i < N_SAMPLES; i++) {
        g_autoptr(PfOvsdbQuery) query = pf_ovsdb_query_new(loop, "OVN_Northbound", "northbound");
        g_autofree char *name = g_strdup_printf("port-%d", g_random_int_range(0, (gint)n_ports));
        struct json *mutations = json_array_create_empty();
        struct json *row = json_object_create();
        Answer answer = {0};
        double start = now_ms();

        pf_ovsdb_query_set_remote(query, server->remote, NULL);
        while (pf_ovsdb_query_get_state(query) != PF_OVSDB_SYNCED) {
            g_main_context_iteration(NULL, TRUE);
        }
        connects[i] = now_ms() - start;

        start = now_ms();
        pf_ovsdb_query(
            query,
            pf_ovsdb_ops(pf_ovsdb_op_select(
                             LSP, pf_ovsdb_where("name", "==", json_string_create(name)), columns),
                         NULL),
            30000, note_row, &answer);
        run_until(&answer.done, 30);
        selects[i] = now_ms() - start;
        g_assert_true(answer.found);

        answer.done = false;
        start = now_ms();
        json_object_put(row, "options", pf_ovsdb_json_map(answer.options));
        pf_ovsdb_mutations_set_key(mutations, "options", "requested-chassis", "hv1,hv2");
        pf_ovsdb_query(
            query,
            pf_ovsdb_ops(pf_ovsdb_op_wait(LSP, pf_ovsdb_where_uuid(&answer.uuid), row),
                         pf_ovsdb_op_mutate(LSP, pf_ovsdb_where_uuid(&answer.uuid), mutations),
                         NULL),
            30000, note_change, &answer);
        run_until(&answer.done, 30);
        changes[i] = now_ms() - start;
        g_hash_table_unref(answer.options);
    }
    report("query: connect", connects, N_SAMPLES);
    report("query: select by name", selects, N_SAMPLES);
    report("query: wait and mutate by _uuid", changes, N_SAMPLES);
}

/*
 * By replica
 */

static void set_condition(struct ovsdb_idl *idl, const char *name)
{
    struct ovsdb_idl_condition condition = OVSDB_IDL_CONDITION_INIT(&condition);

    if (name) {
        nbrec_logical_switch_port_add_clause_name(&condition, OVSDB_F_EQ, name);
    } else {
        struct smap marker = SMAP_CONST1(&marker, "portferry-source", "hv1");

        nbrec_logical_switch_port_add_clause_external_ids(&condition, OVSDB_F_INCLUDES, &marker);
    }
    nbrec_logical_switch_port_set_condition(idl, &condition);
    ovsdb_idl_condition_destroy(&condition);
}

static void configure(struct ovsdb_idl *idl, gpointer data)
{
    ovsdb_idl_add_column(idl, &nbrec_logical_switch_port_col_name);
    ovsdb_idl_add_column(idl, &nbrec_logical_switch_port_col_options);
    ovsdb_idl_add_column(idl, &nbrec_logical_switch_port_col_external_ids);
    set_condition(idl, NULL);
}

static PfOvsdbBuildResult build(struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn, gpointer data,
                                GError **error)
{
    const struct nbrec_logical_switch_port *port = nbrec_logical_switch_port_first(idl);

    nbrec_logical_switch_port_verify_options(port);
    nbrec_logical_switch_port_update_options_setkey(port, "requested-chassis", data);
    return PF_OVSDB_BUILD_COMMIT;
}

static bool committed;

static void note_commit(const GError *error, gpointer data)
{
    g_assert_no_error(error);
    committed = true;
}

/* Sets requested-chassis; returns how long it took. */
static double commit(PfOvsdb *db, char *value)
{
    double start = now_ms();

    committed = false;
    pf_ovsdb_txn(db, "bench", build, value, 30000, note_commit);
    run_until(&committed, 30);
    return now_ms() - start;
}

static void bench_replica(Server *server, guint n_ports)
{
    double connects[N_SAMPLES];
    double conditions[N_SAMPLES];
    double first_changes[N_SAMPLES];
    double changes[N_SAMPLES];

    for (guint i = 0; i < N_SAMPLES; i++) {
        g_autoptr(PfOvsdb) db =
            pf_ovsdb_new(loop, &nbrec_idl_class, "northbound", configure, NULL, NULL);
        struct ovsdb_idl *idl = pf_ovsdb_get_idl(db);
        g_autofree char *name = g_strdup_printf("port-%d", g_random_int_range(0, (gint)n_ports));
        double start = now_ms();

        pf_ovsdb_set_remote(db, server->remote, NULL);
        while (pf_ovsdb_get_state(db) != PF_OVSDB_SYNCED) {
            g_main_context_iteration(NULL, TRUE);
        }
        connects[i] = now_ms() - start;

        start = now_ms();
        set_condition(idl, name);
        while (!nbrec_logical_switch_port_first(idl)) {
            g_main_context_iteration(NULL, TRUE);
        }
        conditions[i] = now_ms() - start;

        first_changes[i] = commit(db, (char[]){"hv3,hv4"});
        changes[i] = commit(db, (char[]){"hv5,hv6"});
    }
    report("replica: connect, by marker", connects, N_SAMPLES);
    report("replica: condition changed, until the row", conditions, N_SAMPLES);
    report("replica: verify and set key, first", first_changes, N_SAMPLES);
    report("replica: verify and set key, later", changes, N_SAMPLES);
}

int main(int argc, char **argv)
{
    guint n_ports = argc > 1 ? (guint)atoi(argv[1]) : 50000;
    g_autoptr(Server) server = server_new(NB_SCHEMA);
    g_autoptr(PfOvsdbLoop) the_loop = pf_ovsdb_loop_new(NULL);

    loop = the_loop;
    fill(server, n_ports);
    server_start(server, NULL);
    g_print("%u ports, %d samples%22s %8s %8s %8s\n", n_ports, N_SAMPLES, "", "min ms", "median",
            "max");
    bench_query(server, n_ports);
    bench_replica(server, n_ports);
    return 0;
}
