/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fixture.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs a command to its end, which must be a good one; returns what it wrote. */
static char *run_command(const char *const *argv)
{
    g_autofree char *output = NULL;
    g_autofree char *errors = NULL;
    g_autoptr(GError) error = NULL;
    int status;

    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &output, &errors,
                 &status, &error);
    g_assert_no_error(error);
    if (!g_spawn_check_wait_status(status, &error)) {
        g_error("%s %s: %s %s", argv[0], argv[1], error->message, errors);
    }
    return g_steal_pointer(&output);
}

Server *server_new(const char *schema)
{
    Server *server = g_new0(Server, 1);
    g_autoptr(GError) error = NULL;

    /* Socket names are short: not in the build directory. */
    server->directory = g_dir_make_tmp("portferry-XXXXXX", &error);
    g_assert_no_error(error);
    server->database = g_build_filename(server->directory, "db", NULL);
    server->socket = g_build_filename(server->directory, "sock", NULL);
    server->remote = g_strconcat("unix:", server->socket, NULL);
    g_free(
        run_command((const char *const[]){"ovsdb-tool", "create", server->database, schema, NULL}));
    return server;
}

static void die_with_parent(gpointer data)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static bool accepts_connections(Server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool accepts;

    g_assert_cmpint(fd, >=, 0);
    g_strlcpy(address.sun_path, server->socket, sizeof(address.sun_path));
    accepts = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    close(fd);
    return accepts;
}

void server_start(Server *server, const char *const *arguments)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;
    gint64 deadline = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;

    g_assert_cmpint(server->pid, ==, 0);
    g_ptr_array_add(argv, g_strdup("ovsdb-server"));
    g_ptr_array_add(argv, g_strdup_printf("--remote=punix:%s", server->socket));
    g_ptr_array_add(argv, g_strdup_printf("--unixctl=%s/ctl", server->directory));
    g_ptr_array_add(argv, g_strdup("-vsyslog:off"));
    g_ptr_array_add(argv, g_strdup("-vconsole:emer"));
    for (; arguments && *arguments; arguments++) {
        g_ptr_array_add(argv, g_strdup(*arguments));
    }
    g_ptr_array_add(argv, g_strdup(server->database));
    g_ptr_array_add(argv, NULL);

    g_spawn_async(NULL, (char **)argv->pdata, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD,
                  die_with_parent, NULL, &server->pid, &error);
    g_assert_no_error(error);
    while (!accepts_connections(server)) {
        g_assert_cmpint(waitpid(server->pid, NULL, WNOHANG), ==, 0);
        g_assert_cmpint(g_get_monotonic_time(), <, deadline);
        g_usleep(5000);
    }
}

void server_signal(Server *server, int signal)
{
    g_assert_cmpint(kill(server->pid, signal), ==, 0);
}

void server_kill(Server *server)
{
    if (server->pid) {
        server_signal(server, SIGKILL);
        g_assert_cmpint(waitpid(server->pid, NULL, 0), ==, server->pid);
        server->pid = 0;
    }
}

void server_free(Server *server)
{
    g_autoptr(GDir) directory = NULL;
    const char *name;

    server_kill(server);
    directory = g_dir_open(server->directory, 0, NULL);
    while (directory && (name = g_dir_read_name(directory))) {
        g_autofree char *path = g_build_filename(server->directory, name, NULL);

        g_unlink(path);
    }
    g_rmdir(server->directory);
    g_free(server->directory);
    g_free(server->database);
    g_free(server->socket);
    g_free(server->remote);
    g_free(server);
}

char *server_transact(Server *server, const char *database, const char *format, ...)
{
    g_autofree char *ops = NULL;
    g_autofree char *params = NULL;
    g_autofree char *results = NULL;
    va_list args;

    va_start(args, format);
    ops = g_strdup_vprintf(format, args);
    va_end(args);
    params = g_strdup_printf("[\"%s\", %s]", database, ops);
    results = run_command(
        (const char *const[]){"ovsdb-client", "transact", server->remote, params, NULL});
    if (strstr(results, "\"error\"")) {
        g_error("%s: %s", params, results);
    }
    return g_steal_pointer(&results);
}

void server_add_port(Server *server, const char *name)
{
    g_free(server_transact(server, "OVN_Northbound",
                           "{\"op\": \"insert\", \"table\": \"Logical_Switch_Port\","
                           " \"uuid-name\": \"port\", \"row\": {\"name\": \"%s\"}},"
                           "{\"op\": \"insert\", \"table\": \"Logical_Switch\","
                           " \"row\": {\"name\": \"switch of %s\","
                           " \"ports\": [\"named-uuid\", \"port\"]}}",
                           name, name));
}

void server_set_key(Server *server, const char *port, const char *column, const char *key,
                    const char *value)
{
    g_free(server_transact(server, "OVN_Northbound",
                           "{\"op\": \"mutate\", \"table\": \"Logical_Switch_Port\","
                           " \"where\": [[\"name\", \"==\", \"%s\"]], \"mutations\": ["
                           "[\"%s\", \"delete\", [\"set\", [\"%s\"]]],"
                           "[\"%s\", \"insert\", [\"map\", [[\"%s\", \"%s\"]]]]]}",
                           port, column, key, column, key, value));
}

bool server_has_key(Server *server, const char *port, const char *column, const char *key,
                    const char *value)
{
    g_autofree char *pair = g_strdup_printf("[\"%s\",\"%s\"]", key, value);
    g_autofree char *row =
        server_transact(server, "OVN_Northbound",
                        "{\"op\": \"select\", \"table\": \"Logical_Switch_Port\","
                        " \"where\": [[\"name\", \"==\", \"%s\"]], \"columns\": [\"%s\"]}",
                        port, column);

    return strstr(row, pair);
}

static gboolean too_late(gpointer data)
{
    g_error("not within %u seconds", GPOINTER_TO_UINT(data));
    return G_SOURCE_REMOVE;
}

void run_until(const bool *done, guint seconds)
{
    guint deadline = g_timeout_add_seconds(seconds, too_late, GUINT_TO_POINTER(seconds));

    while (!*done) {
        g_main_context_iteration(NULL, TRUE);
    }
    g_source_remove(deadline);
}

static gboolean set_true(gpointer data)
{
    *(bool *)data = true;
    return G_SOURCE_REMOVE;
}

void run_for(guint ms)
{
    bool done = false;

    g_timeout_add(ms, set_true, &done);
    while (!done) {
        g_main_context_iteration(NULL, TRUE);
    }
}
