/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "fixture.h"
#include "ovsdb.h"

#include <glib/gstdio.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nb-idl.h"
#include "ovsdb-idl.h"
#include "sb-idl.h"
#include "smap.h"
#include "vswitch-idl.h"

static PfOvsdbLoop *loop;

/*
 * A port of the northbound database, replicated for its marker
 */

static void configure_by_marker(struct ovsdb_idl *idl, gpointer data)
{
    struct ovsdb_idl_condition condition = OVSDB_IDL_CONDITION_INIT(&condition);
    struct smap marker = SMAP_CONST1(&marker, "portferry-source", "hv1");

    ovsdb_idl_add_column(idl, &nbrec_logical_switch_port_col_name);
    ovsdb_idl_add_column(idl, &nbrec_logical_switch_port_col_options);
    ovsdb_idl_add_column(idl, &nbrec_logical_switch_port_col_external_ids);
    nbrec_logical_switch_port_add_clause_external_ids(&condition, OVSDB_F_INCLUDES, &marker);
    nbrec_logical_switch_port_set_condition(idl, &condition);
    ovsdb_idl_condition_destroy(&condition);
}

static const struct nbrec_logical_switch_port *find_port(struct ovsdb_idl *idl, const char *name)
{
    const struct nbrec_logical_switch_port *port;

    NBREC_LOGICAL_SWITCH_PORT_FOR_EACH (port, idl) {
        if (!strcmp(port->name, name)) {
            return port;
        }
    }
    return NULL;
}

/* What a callback notes: the state that a test waits for. */
typedef struct {
    bool synced;
    bool visible; /* Port "p1". */
    guint calls;
} Watch;

static void watch_changed(PfOvsdb *db, gpointer data)
{
    Watch *watch = data;

    watch->calls++;
    watch->synced = pf_ovsdb_get_state(db) == PF_OVSDB_SYNCED;
    watch->visible = find_port(pf_ovsdb_get_idl(db), "p1");
}

static PfOvsdb *northbound_new(Watch *watch)
{
    return pf_ovsdb_new(loop, &nbrec_idl_class, "northbound", configure_by_marker, watch_changed,
                        watch);
}

static void set_remote(PfOvsdb *db, const char *remote)
{
    g_autoptr(GError) error = NULL;

    pf_ovsdb_set_remote(db, remote, &error);
    g_assert_no_error(error);
}

/* A server with a marked port p1. */
static Server *northbound_server_new(void)
{
    Server *server = server_new(NB_SCHEMA);

    server_start(server, NULL);
    server_add_port(server, "p1");
    server_set_key(server, "p1", "external_ids", "portferry-source", "hv1");
    return server;
}

static void test_condition(void)
{
    g_autoptr(Server) server = server_new(NB_SCHEMA);
    g_autoptr(PfOvsdb) db = NULL;
    Watch watch = {0};
    bool gone = false;

    server_start(server, NULL);
    server_add_port(server, "p1");
    server_add_port(server, "p2");
    db = northbound_new(&watch);
    g_assert_cmpint(pf_ovsdb_get_state(db), ==, PF_OVSDB_DISCONNECTED);
    set_remote(db, server->remote);
    g_assert_cmpint(pf_ovsdb_get_state(db), ==, PF_OVSDB_CONNECTING);
    run_until(&watch.synced, 5);
    g_assert_null(nbrec_logical_switch_port_first(pf_ovsdb_get_idl(db)));

    server_set_key(server, "p1", "external_ids", "portferry-source", "hv1");
    run_until(&watch.visible, 5);
    g_assert_null(find_port(pf_ovsdb_get_idl(db), "p2"));

    server_set_key(server, "p1", "external_ids", "portferry-source", "hv2");
    while (!gone) {
        g_main_context_iteration(NULL, TRUE);
        gone = !watch.visible;
    }

    set_remote(db, NULL);
    g_assert_cmpint(pf_ovsdb_get_state(db), ==, PF_OVSDB_DISCONNECTED);
}

/*
 * Transactions
 */

typedef struct {
    Server *server;
    const char *foreign_value; /* Written by another client between read and commit, once. */
    int signal;                /* Sent to the server before the commit, once. */
    PfOvsdbBuildResult result;
    const char *value;

    guint builds;
    guint calls;
    bool done;
    GError *error;
} Change;

static void change_done(const GError *error, gpointer data)
{
    Change *change = data;

    change->calls++;
    change->done = true;
    change->error = error ? g_error_copy(error) : NULL;
}

static void change_clear(Change *change)
{
    g_clear_error(&change->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Change, change_clear)

static PfOvsdbBuildResult build_change(struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn,
                                       gpointer data, GError **error)
{
    Change *change = data;
    const struct nbrec_logical_switch_port *port = find_port(idl, "p1");

    change->builds++;
    if (change->result == PF_OVSDB_BUILD_ERROR) {
        g_set_error(error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_INVALID, "of the build function");
    }
    if (change->result != PF_OVSDB_BUILD_COMMIT) {
        return change->result;
    }

    g_assert_nonnull(port);
    nbrec_logical_switch_port_verify_options(port);
    nbrec_logical_switch_port_update_options_setkey(port, "requested-chassis", change->value);
    if (change->foreign_value) {
        server_set_key(change->server, "p1", "options", "foreign", change->foreign_value);
        change->foreign_value = NULL;
    }
    if (change->signal) {
        server_signal(change->server, change->signal);
        change->signal = 0;
    }
    return PF_OVSDB_BUILD_COMMIT;
}

static void test_txn(void)
{
    g_autoptr(Server) server = northbound_server_new();
    Watch watch = {0};
    g_autoptr(PfOvsdb) db = northbound_new(&watch);
    g_auto(Change) change = {.value = "hv1,hv2"};
    g_auto(Change) nothing = {.result = PF_OVSDB_BUILD_NOTHING};
    g_auto(Change) refusal = {.result = PF_OVSDB_BUILD_ERROR};
    g_auto(Change) cancelled = {.result = PF_OVSDB_BUILD_NOTHING};
    g_autofree char *log = NULL;
    gint64 start;

    set_remote(db, server->remote);
    pf_ovsdb_txn_cancel(pf_ovsdb_txn(db, "test", build_change, &cancelled, 5000, change_done));
    pf_ovsdb_txn(db, "test", build_change, &nothing, 5000, change_done);
    pf_ovsdb_txn(db, "test", build_change, &refusal, 5000, change_done);
    pf_ovsdb_txn(db, "for the log", build_change, &change, 5000, change_done);
    run_until(&change.done, 5);
    g_assert_no_error(change.error);
    g_assert_true(nothing.done);
    g_assert_no_error(nothing.error);
    g_assert_true(refusal.done);
    g_assert_error(refusal.error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_INVALID);
    g_assert_cmpuint(cancelled.calls, ==, 0);
    g_assert_true(server_has_key(server, "p1", "options", "requested-chassis", "hv1,hv2"));
    g_assert_true(g_file_get_contents(server->database, &log, NULL, NULL));
    g_assert_nonnull(strstr(log, "for the log"));

    /* The same once more changes nothing, and is a success. */
    change.done = false;
    pf_ovsdb_txn(db, "test", build_change, &change, 5000, change_done);
    g_assert_false(change.done);
    run_until(&change.done, 5);
    g_assert_no_error(change.error);
    g_assert_cmpuint(change.calls, ==, 2);

    /* What has ended before it was sent needs nothing else to happen to be told. */
    run_for(100);
    nothing.done = false;
    pf_ovsdb_txn(db, "test", build_change, &nothing, 5000, change_done);
    g_assert_false(nothing.done);
    start = g_get_monotonic_time();
    run_until(&nothing.done, 5);
    g_assert_cmpint(g_get_monotonic_time() - start, <, G_USEC_PER_SEC);
}

static void test_txn_conflict(void)
{
    g_autoptr(Server) server = northbound_server_new();
    Watch watch = {0};
    g_autoptr(PfOvsdb) db = northbound_new(&watch);
    g_auto(Change) change = {.server = server, .value = "hv1,hv2", .foreign_value = "kept"};

    set_remote(db, server->remote);
    pf_ovsdb_txn(db, "test", build_change, &change, 5000, change_done);
    run_until(&change.done, 5);
    g_assert_no_error(change.error);
    g_assert_cmpuint(change.builds, ==, 2);
    g_assert_cmpuint(change.calls, ==, 1);
    g_assert_true(server_has_key(server, "p1", "options", "requested-chassis", "hv1,hv2"));
    g_assert_true(server_has_key(server, "p1", "options", "foreign", "kept"));
}

static PfOvsdbBuildResult build_nonsense(struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn,
                                         gpointer data, GError **error)
{
    /* Names must be unique. */
    nbrec_logical_switch_port_set_name(find_port(idl, "p1"), "p2");
    return PF_OVSDB_BUILD_COMMIT;
}

static void test_txn_refused(void)
{
    g_autoptr(Server) server = northbound_server_new();
    Watch watch = {0};
    g_autoptr(PfOvsdb) db = northbound_new(&watch);
    g_auto(Change) change = {0};

    server_add_port(server, "p2");
    set_remote(db, server->remote);
    pf_ovsdb_txn(db, "test", build_nonsense, &change, 5000, change_done);
    run_until(&change.done, 5);
    g_assert_error(change.error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_REFUSED);
    g_assert_nonnull(strstr(change.error->message, "northbound"));
    g_assert_nonnull(strstr(change.error->message, "constraint violation"));
}

static gboolean start_server(gpointer data)
{
    server_start(data, NULL);
    return G_SOURCE_REMOVE;
}

static void test_txn_server_appears(void)
{
    g_autoptr(Server) server = northbound_server_new();
    Watch watch = {0};
    g_autoptr(PfOvsdb) db = northbound_new(&watch);
    g_auto(Change) late = {.value = "hv2"};
    g_auto(Change) change = {.value = "hv1,hv2"};

    server_kill(server);
    set_remote(db, server->remote);
    pf_ovsdb_txn(db, "test", build_change, &late, 200, change_done);
    pf_ovsdb_txn(db, "test", build_change, &change, 10000, change_done);
    g_timeout_add(500, start_server, server);
    run_until(&late.done, 5);
    g_assert_error(late.error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_TIMEOUT);
    g_test_message("%s", late.error->message);
    g_assert_cmpuint(late.builds, ==, 0);
    run_until(&change.done, 10);
    g_assert_no_error(change.error);
}

static gboolean replace_server(gpointer data)
{
    server_kill(data);
    server_start(data, NULL);
    return G_SOURCE_REMOVE;
}

static void test_txn_server_dies(void)
{
    g_autoptr(Server) server = northbound_server_new();
    Watch watch = {0};
    g_autoptr(PfOvsdb) db = northbound_new(&watch);
    g_auto(Change) change = {.server = server, .value = "hv1,hv2", .signal = SIGSTOP};

    set_remote(db, server->remote);
    pf_ovsdb_txn(db, "test", build_change, &change, 15000, change_done);
    g_timeout_add(500, replace_server, server);
    run_until(&change.done, 15);
    g_assert_no_error(change.error);
    g_assert_cmpuint(change.builds, ==, 2);
    g_assert_true(server_has_key(server, "p1", "options", "requested-chassis", "hv1,hv2"));
}

static gboolean count_tick(gpointer data)
{
    ++*(guint *)data;
    return G_SOURCE_CONTINUE;
}

static void test_txn_server_hangs(void)
{
    g_autoptr(Server) server = northbound_server_new();
    Watch watch = {0};
    g_autoptr(PfOvsdb) db = northbound_new(&watch);
    g_auto(Change) change = {.server = server, .value = "hv1,hv2", .signal = SIGSTOP};
    g_auto(Change) next = {.value = "hv2"};
    guint ticks = 0;
    guint timer;

    set_remote(db, server->remote);
    run_until(&watch.visible, 5);
    timer = g_timeout_add(10, count_tick, &ticks);
    pf_ovsdb_txn(db, "test", build_change, &change, 500, change_done);
    run_until(&change.done, 5);
    g_assert_error(change.error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_UNKNOWN);
    g_assert_cmpuint(change.builds, ==, 1);
    g_assert_cmpuint(ticks, >=, 40);
    g_source_remove(timer);

    /* The connection was given up, and comes back with the server. */
    server_signal(server, SIGCONT);
    pf_ovsdb_txn(db, "test", build_change, &next, 10000, change_done);
    run_until(&next.done, 10);
    g_assert_no_error(next.error);
    g_assert_true(server_has_key(server, "p1", "options", "requested-chassis", "hv2"));
}

typedef struct {
    PfOvsdb *db;
    bool done;
} Suicide;

static void free_connection(const GError *error, gpointer data)
{
    Suicide *suicide = data;

    g_assert_no_error(error);
    g_clear_pointer(&suicide->db, pf_ovsdb_free);
    suicide->done = true;
}

static PfOvsdbBuildResult build_nothing(struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn,
                                        gpointer data, GError **error)
{
    return PF_OVSDB_BUILD_NOTHING;
}

static void test_txn_free_in_callback(void)
{
    g_autoptr(Server) server = northbound_server_new();
    Watch watch = {0};
    Suicide suicide = {.db = northbound_new(&watch)};

    set_remote(suicide.db, server->remote);
    for (guint i = 0; i < 3; i++) {
        pf_ovsdb_txn(suicide.db, "test", build_nothing, &suicide, 5000, free_connection);
    }
    run_until(&suicide.done, 5);
    run_for(50);
}

/*
 * Remotes
 */

static void test_remotes_invalid(void)
{
    static const char *const invalid[] = {
        "nonsense",
        "tcp:",
        "tcp:127.0.0.1",
        "tcp:127.0.0.1:0",
        "tcp:::1:6641",
        "unix:",
        "unix:relative",
        "tcp:127.0.0.1:65536",
        "tcp:[::1:6641",
        "tcp:1.2.3:1",
        "ptcp:6641",
        "tcp:127.0.0.1:6641,",
        "tcp:127.0.0.1:x",
        "tcp:[1.2.3.4]:1",
        "tcp:127.0.0.1:6641,nonsense",
        "tcp::6641",
    };
    g_autofree char *checked = NULL;
    g_autoptr(GError) error = NULL;
    Watch watch = {0};
    g_autoptr(PfOvsdb) db = northbound_new(&watch);

    for (guint i = 0; i < G_N_ELEMENTS(invalid); i++) {
        g_test_message("%s", invalid[i]);
        g_assert_false(pf_ovsdb_set_remote(db, invalid[i], &error));
        g_assert_error(error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_INVALID);
        g_test_message("%s", error->message);
        g_clear_error(&error);
        g_assert_cmpint(pf_ovsdb_get_state(db), ==, PF_OVSDB_DISCONNECTED);
    }

    checked = pf_ovsdb_check_remote("tcp:127.0.0.1:6641, tcp:[fe80::1%eth0]:6641 ,unix:/run/sock",
                                    &error);
    g_assert_no_error(error);
    g_assert_cmpstr(checked, ==, "tcp:127.0.0.1:6641,tcp:[fe80::1%eth0]:6641,unix:/run/sock");
}

static void test_remotes_first_dead(void)
{
    g_autoptr(Server) server = northbound_server_new();

    /* More than once, for the order is random. */
    for (guint i = 0; i < 4; i++) {
        Watch watch = {0};
        g_autoptr(PfOvsdb) db = northbound_new(&watch);
        g_autofree char *remotes =
            g_strdup_printf("unix:%s/none,%s", server->directory, server->remote);

        set_remote(db, remotes);
        run_until(&watch.visible, 5);
    }
}

static guint16 free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, length), ==, 0);
    g_assert_cmpint(getsockname(fd, (struct sockaddr *)&address, &length), ==, 0);
    close(fd);
    return ntohs(address.sin_port);
}

static void test_remotes_tls(void)
{
    g_autoptr(Server) server = server_new(NB_SCHEMA);
    g_autofree char *key = g_build_filename(server->directory, "key.pem", NULL);
    g_autofree char *certificate = g_build_filename(server->directory, "cert.pem", NULL);
    g_autofree char *make = g_strdup_printf(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=portferry -keyout %s -out %s",
        key, certificate);
    g_autofree char *remote = NULL;
    g_autofree char *passive = NULL;
    g_autofree char *chatter = NULL;
    g_autoptr(GError) error = NULL;
    Watch watch = {0};
    g_autoptr(PfOvsdb) db = northbound_new(&watch);
    guint16 port = free_port();
    int status;

    g_spawn_command_line_sync(make, NULL, &chatter, &status, &error);
    g_assert_no_error(error);
    g_assert_cmpint(status, ==, 0);
    passive = g_strdup_printf("--remote=pssl:%u:127.0.0.1", port);
    remote = g_strdup_printf("ssl:127.0.0.1:%u", port);
    server_start(server, (const char *const[]){passive, "-p", key, "-c", certificate, "-C",
                                               certificate, NULL});
    server_add_port(server, "p1");
    server_set_key(server, "p1", "external_ids", "portferry-source", "hv1");

    g_assert_false(pf_ovsdb_set_remote(db, remote, &error));
    g_assert_error(error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_INVALID);
    g_clear_error(&error);
    g_assert_false(pf_ovsdb_set_tls(key, "/none", certificate, &error));
    g_assert_error(error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_INVALID);
    g_clear_error(&error);

    pf_ovsdb_set_tls(key, certificate, certificate, &error);
    g_assert_no_error(error);
    set_remote(db, remote);
    run_until(&watch.visible, 5);
}

/*
 * The other databases, and the loop
 */

static void watch_synced(PfOvsdb *db, gpointer data)
{
    ((Watch *)data)->synced = pf_ovsdb_get_state(db) == PF_OVSDB_SYNCED;
}

static void configure_bindings(struct ovsdb_idl *idl, gpointer data)
{
    struct ovsdb_idl_condition condition = OVSDB_IDL_CONDITION_INIT(&condition);

    ovsdb_idl_add_column(idl, &sbrec_chassis_col_name);
    ovsdb_idl_add_column(idl, &sbrec_chassis_col_hostname);
    for (size_t i = 0; i < SBREC_PORT_BINDING_N_COLUMNS; i++) {
        ovsdb_idl_add_column(idl, &sbrec_port_binding_columns[i]);
    }
    sbrec_port_binding_add_clause_chassis(&condition, OVSDB_F_EQ, data, 1);
    sbrec_port_binding_set_condition(idl, &condition);
    ovsdb_idl_condition_destroy(&condition);
}

static void test_southbound(void)
{
    g_autoptr(Server) server = server_new(SB_SCHEMA);
    const struct sbrec_port_binding *binding;
    g_autoptr(PfOvsdb) db = NULL;
    g_autofree char *inserted = NULL;
    struct uuid chassis;
    bool synced = false;

    server_start(server, NULL);
    inserted = server_transact(
        server, "OVN_Southbound",
        "{\"op\": \"insert\", \"table\": \"Chassis\", \"uuid-name\": \"c1\","
        " \"row\": {\"name\": \"hv1\", \"encaps\": [\"named-uuid\", \"e1\"]}},"
        "{\"op\": \"insert\", \"table\": \"Encap\", \"uuid-name\": \"e1\", \"row\":"
        " {\"type\": \"geneve\", \"ip\": \"10.0.0.1\", \"chassis_name\": \"hv1\"}},"
        "{\"op\": \"insert\", \"table\": \"Datapath_Binding\", \"uuid-name\": \"d1\","
        " \"row\": {\"tunnel_key\": 1}},"
        "{\"op\": \"insert\", \"table\": \"Port_Binding\", \"row\": {\"logical_port\": \"p1\","
        " \"tunnel_key\": 1, \"datapath\": [\"named-uuid\", \"d1\"],"
        " \"chassis\": [\"named-uuid\", \"c1\"], \"additional_chassis\": [\"named-uuid\", "
        "\"c1\"]}},"
        "{\"op\": \"insert\", \"table\": \"Port_Binding\", \"row\": {\"logical_port\": \"p2\","
        " \"tunnel_key\": 2, \"datapath\": [\"named-uuid\", \"d1\"]}}");
    g_assert_true(uuid_from_string_prefix(&chassis, strstr(inserted, "\"uuid\",\"") + 8));

    db = pf_ovsdb_new(loop, &sbrec_idl_class, "southbound", configure_bindings, NULL, &chassis);
    pf_ovsdb_set_leader_only(db, false);
    set_remote(db, server->remote);
    while (!synced) {
        g_main_context_iteration(NULL, TRUE);
        synced = pf_ovsdb_get_state(db) == PF_OVSDB_SYNCED;
    }
    binding = sbrec_port_binding_first(pf_ovsdb_get_idl(db));
    g_assert_nonnull(binding);
    g_assert_cmpstr(binding->logical_port, ==, "p1");
    g_assert_true(uuid_equals(binding->chassis, &chassis));
    g_assert_cmpuint(binding->n_additional_chassis, ==, 1);
    g_assert_null(sbrec_port_binding_next(binding));
}

static void configure_interfaces(struct ovsdb_idl *idl, gpointer data)
{
    struct ovsdb_idl_condition condition = OVSDB_IDL_CONDITION_INIT(&condition);
    struct smap iface_id = SMAP_CONST1(&iface_id, "iface-id", "p1");

    ovsdb_idl_add_column(idl, &ovsrec_open_vswitch_col_external_ids);
    ovsdb_idl_add_column(idl, &ovsrec_open_vswitch_col_bridges);
    ovsdb_idl_add_column(idl, &ovsrec_bridge_col_name);
    ovsdb_idl_add_column(idl, &ovsrec_interface_col_name);
    ovsdb_idl_add_column(idl, &ovsrec_interface_col_external_ids);
    ovsdb_idl_add_column(idl, &ovsrec_interface_col_ofport);
    ovsrec_interface_add_clause_external_ids(&condition, OVSDB_F_INCLUDES, &iface_id);
    ovsrec_interface_set_condition(idl, &condition);
    ovsdb_idl_condition_destroy(&condition);
}

static void test_vswitch(void)
{
    g_autoptr(Server) server = server_new(VSWITCH_SCHEMA);
    const struct ovsrec_open_vswitch *global;
    const struct ovsrec_interface *interface;
    g_autoptr(PfOvsdb) db = NULL;
    Watch watch = {0};

    server_start(server, NULL);
    g_free(server_transact(
        server, "Open_vSwitch",
        "{\"op\": \"insert\", \"table\": \"Open_vSwitch\", \"row\":"
        " {\"external_ids\": [\"map\", [[\"system-id\", \"hv1\"]]],"
        " \"bridges\": [\"named-uuid\", \"b1\"]}},"
        "{\"op\": \"insert\", \"table\": \"Bridge\", \"uuid-name\": \"b1\","
        " \"row\": {\"name\": \"br-int\", \"ports\": [\"named-uuid\", \"p1\"]}},"
        "{\"op\": \"insert\", \"table\": \"Port\", \"uuid-name\": \"p1\", \"row\":"
        " {\"name\": \"tap1\", \"interfaces\":"
        " [\"set\", [[\"named-uuid\", \"i1\"], [\"named-uuid\", \"i2\"]]]}},"
        "{\"op\": \"insert\", \"table\": \"Interface\", \"uuid-name\": \"i1\", \"row\":"
        " {\"name\": \"tap1\", \"external_ids\": [\"map\", [[\"iface-id\", \"p1\"]]]}},"
        "{\"op\": \"insert\", \"table\": \"Interface\", \"uuid-name\": \"i2\", \"row\":"
        " {\"name\": \"tap2\"}}"));

    db = pf_ovsdb_new(loop, &ovsrec_idl_class, "Open vSwitch", configure_interfaces, watch_synced,
                      &watch);
    set_remote(db, server->remote);
    run_until(&watch.synced, 5);
    global = ovsrec_open_vswitch_first(pf_ovsdb_get_idl(db));
    g_assert_nonnull(global);
    g_assert_cmpstr(smap_get(&global->external_ids, "system-id"), ==, "hv1");
    g_assert_cmpstr(global->bridges[0]->name, ==, "br-int");
    interface = ovsrec_interface_first(pf_ovsdb_get_idl(db));
    g_assert_nonnull(interface);
    g_assert_cmpstr(interface->name, ==, "tap1");
    g_assert_null(ovsrec_interface_next(interface));
}

static gboolean note_idle(gpointer data)
{
    *(bool *)data = true;
    return G_SOURCE_REMOVE;
}

/* A connection with nothing to say neither starves other sources nor wakes the process up. */
static void test_loop_idle(void)
{
    g_autoptr(Server) server = northbound_server_new();
    Watch watch = {0};
    g_autoptr(PfOvsdb) db = northbound_new(&watch);
    bool idle = false;
    bool over = false;
    guint iterations = 0;

    set_remote(db, server->remote);
    run_until(&watch.visible, 5);
    run_for(100);
    g_idle_add(note_idle, &idle);
    run_until(&idle, 1);

    g_timeout_add(1000, note_idle, &over);
    while (!over) {
        g_main_context_iteration(NULL, TRUE);
        iterations++;
    }
    g_assert_cmpuint(iterations, <=, 3);
}

/* What a signal does is decided by the program, not by OVS. */
static void test_loop_signals(void)
{
    struct sigaction action;

    sigaction(SIGTERM, NULL, &action);
    g_assert_true(action.sa_handler == SIG_DFL);
    sigaction(SIGPIPE, NULL, &action);
    g_assert_true(action.sa_handler == SIG_IGN);
}

int main(int argc, char **argv)
{
    int status;

    g_test_init(&argc, &argv, NULL);
    loop = pf_ovsdb_loop_new(NULL);

    g_test_add_func("/ovsdb/loop/idle", test_loop_idle);
    g_test_add_func("/ovsdb/loop/signals", test_loop_signals);
    g_test_add_func("/ovsdb/condition", test_condition);
    g_test_add_func("/ovsdb/southbound", test_southbound);
    g_test_add_func("/ovsdb/vswitch", test_vswitch);
    g_test_add_func("/ovsdb/txn/plain", test_txn);
    g_test_add_func("/ovsdb/txn/conflict", test_txn_conflict);
    g_test_add_func("/ovsdb/txn/refused", test_txn_refused);
    g_test_add_func("/ovsdb/txn/server-appears", test_txn_server_appears);
    g_test_add_func("/ovsdb/txn/server-dies", test_txn_server_dies);
    g_test_add_func("/ovsdb/txn/server-hangs", test_txn_server_hangs);
    g_test_add_func("/ovsdb/txn/free-in-callback", test_txn_free_in_callback);
    g_test_add_func("/ovsdb/remotes/invalid", test_remotes_invalid);
    g_test_add_func("/ovsdb/remotes/first-dead", test_remotes_first_dead);
    g_test_add_func("/ovsdb/remotes/tls", test_remotes_tls);

    status = g_test_run();
    pf_ovsdb_loop_free(loop);
    return status;
}
