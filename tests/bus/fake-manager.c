/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The bus adapter with a manager that does as it is told: one command a line on standard input, one
 * line on standard output for each callback.  tests/bus/test_bus.py drives it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "bus.h"
#include "error.h"
#include "log.h"
#include "sd-source.h"

#define MAX_PHASES 16

typedef struct {
    PfHandoverView view;
    PfPortView port;
    PfPhaseView phases[MAX_PHASES];
} Handover;

static GMainLoop *loop;
static PfBus *bus;
static GHashTable *handovers; /* id -> Handover */
static GHashTable *calls;     /* number -> PfBusCall */
static guint last_call;
static int status = EXIT_SUCCESS;

static PfCounterView counters[] = {{"handovers-started", 3}, {"handovers-finished", 2}};
static PfManagerView manager_view = {
    .version = "0.0",
    .hostname = "host-a",
    .chassis = "chassis-a",
    .libvirt_state = "connected",
    .northbound_state = "connected",
    .southbound_state = "connected",
    .switch_state = NULL,
    .counters = counters,
    .n_counters = G_N_ELEMENTS(counters),
};

static void G_GNUC_PRINTF(1, 2) say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

static void on_gone(PfBusCall *call, gpointer userdata)
{
    say("gone %u %d", GPOINTER_TO_UINT(userdata), pf_bus_call_is_gone(call));
}

static guint keep(PfBusCall *call)
{
    guint number = ++last_call;

    g_hash_table_insert(calls, GUINT_TO_POINTER(number), call);
    pf_bus_call_set_gone(call, on_gone, GUINT_TO_POINTER(number));
    return number;
}

static void on_acquired(gpointer userdata)
{
    say("acquired");
}

static void on_lost(const char *why, gpointer userdata)
{
    say("lost %s", why);
}

static void on_fatal(const GError *error, gpointer userdata)
{
    say("fatal %s", error->message);
    status = EXIT_FAILURE;
    g_main_loop_quit(loop);
}

static void on_migrate_begin(PfBusCall *call, const char *domain, GBytes *xml, gpointer userdata)
{
    say("call %u migrate-begin %s %zu", keep(call), domain, g_bytes_get_size(xml));
}

static void on_started_begin(PfBusCall *call, const char *domain, GBytes *xml, gpointer userdata)
{
    say("call %u started-begin %s %zu", keep(call), domain, g_bytes_get_size(xml));
}

static void on_released(const char *domain, GBytes *xml, gpointer userdata)
{
    say("released %s %zu", domain, g_bytes_get_size(xml));
}

static void on_activate(PfBusCall *call, const char *id, gpointer userdata)
{
    say("call %u activate %s", keep(call), id);
}

static void on_rollback(PfBusCall *call, const char *id, gpointer userdata)
{
    say("call %u rollback %s", keep(call), id);
}

static void on_hold(PfBusCall *call, const char *id, gpointer userdata)
{
    say("call %u hold %s", keep(call), id);
}

static void on_release(PfBusCall *call, const char *id, gpointer userdata)
{
    say("call %u release %s", keep(call), id);
}

static void on_preplug(PfBusCall *call, const char *uuid, const char *const *ports,
                       const char *source, gpointer userdata)
{
    g_autofree char *joined = g_strjoinv(",", (char **)ports);

    pf_bus_call_set_handover(call, "h-new");
    say("call %u preplug '%s' '%s' '%s'", keep(call), uuid, joined, source);
}

static void on_reload(PfBusCall *call, gpointer userdata)
{
    pf_bus_call_set_strings(call, (const char *const[]){"libvirt-uri", "ovs-db", NULL});
    say("call %u reload", keep(call));
}

static void on_forget(PfBusCall *call, const char *id, gpointer userdata)
{
    say("call %u forget %s", keep(call), id);
}

static const PfBusOps ops = {
    .acquired = on_acquired,
    .lost = on_lost,
    .fatal = on_fatal,
    .migrate_begin = on_migrate_begin,
    .started_begin = on_started_begin,
    .released = on_released,
    .activate = on_activate,
    .rollback = on_rollback,
    .hold = on_hold,
    .release = on_release,
    .preplug = on_preplug,
    .reload = on_reload,
    .forget = on_forget,
};

static void enter_phase(Handover *h, const char *phase)
{
    h->view.phase = g_strdup(phase);
    h->phases[h->view.n_phases].phase = h->view.phase;
    h->phases[h->view.n_phases].time_us = 1000000 + (gint64)h->view.n_phases;
    h->view.n_phases++;
}

static void add(const char *id, const char *domain, const char *uuid, const char *role,
                const char *phase)
{
    Handover *h = g_new0(Handover, 1);

    h->port = (PfPortView){"5d3c6b4e-0000-4000-8000-00000000000a", "52:54:00:00:00:0a", "bound"};
    h->view.id = g_strdup(id);
    h->view.domain = g_strdup(domain);
    h->view.uuid = g_strdup(uuid);
    h->view.role = g_strdup(role);
    h->view.started_us = 1000000 + g_hash_table_size(handovers);
    h->view.source = "chassis-a";
    h->view.destination = "chassis-b";
    h->view.ports = &h->port;
    h->view.n_ports = 1;
    h->view.phases = h->phases;
    enter_phase(h, phase);
    g_hash_table_insert(handovers, g_strdup(id), h);
    pf_bus_handover_added(bus, &h->view);
}

static PfBusCall *take_call(const char *number)
{
    guint n = (guint)strtoul(number, NULL, 10);
    PfBusCall *call = g_hash_table_lookup(calls, GUINT_TO_POINTER(n));

    g_assert_nonnull(call);
    g_hash_table_remove(calls, GUINT_TO_POINTER(n));
    return call;
}

static void obey(char **w)
{
    guint n = g_strv_length(w);
    Handover *h = n > 1 ? g_hash_table_lookup(handovers, w[1]) : NULL;

    if (g_str_equal(w[0], "add") && n == 6) {
        add(w[1], w[2], w[3], w[4], w[5]);
    } else if (g_str_equal(w[0], "phase") && n == 3) {
        enter_phase(h, w[2]);
        pf_bus_handover_changed(bus, &h->view, PF_HANDOVER_PHASE);
    } else if (g_str_equal(w[0], "port") && n == 3) {
        h->port.state = g_strdup(w[2]);
        pf_bus_handover_changed(bus, &h->view, PF_HANDOVER_PORTS);
    } else if (g_str_equal(w[0], "error") && n == 3) {
        h->view.last_error = g_strdup(w[2]);
        h->view.peer = "host-b";
        pf_bus_handover_changed(bus, &h->view, PF_HANDOVER_ERROR | PF_HANDOVER_HOSTS);
    } else if (g_str_equal(w[0], "hold") && n == 2) {
        h->view.held = TRUE;
        h->view.deadline_us = 7000000;
        h->view.waiting = "an operator";
        pf_bus_handover_changed(bus, &h->view,
                                PF_HANDOVER_HELD | PF_HANDOVER_DEADLINE | PF_HANDOVER_WAITING);
    } else if (g_str_equal(w[0], "end") && n == 4) {
        h->view.ended_us = g_ascii_strtoll(w[2], NULL, 10);
        h->view.outcome = g_strdup(w[3]);
        enter_phase(h, w[3]);
        pf_bus_handover_changed(bus, &h->view, PF_HANDOVER_PHASE);
    } else if (g_str_equal(w[0], "remove") && n == 2) {
        pf_bus_handover_removed(bus, &h->view);
        g_hash_table_remove(handovers, w[1]);
    } else if (g_str_equal(w[0], "libvirt") && n == 2) {
        manager_view.libvirt_state = g_strdup(w[1]);
        pf_bus_manager_changed(bus, PF_MANAGER_LIBVIRT);
    } else if (g_str_equal(w[0], "reply") && n == 2) {
        pf_bus_call_reply(take_call(w[1]));
    } else if (g_str_equal(w[0], "fail") && n == 4) {
        g_autoptr(GError) error = NULL;

        error = g_error_new(PF_ERROR, atoi(w[2]), "%s\nand a second line", w[3]);
        pf_bus_call_fail(take_call(w[1]), error);
    } else if (g_str_equal(w[0], "quit")) {
        g_main_loop_quit(loop);
    } else {
        say("what? %s", w[0]);
    }
    say("ok");
}

static gboolean on_input(GIOChannel *channel, GIOCondition condition, gpointer userdata)
{
    g_autofree char *line = NULL;
    g_auto(GStrv) words = NULL;

    if (g_io_channel_read_line(channel, &line, NULL, NULL, NULL) != G_IO_STATUS_NORMAL) {
        g_main_loop_quit(loop);
        return G_SOURCE_REMOVE;
    }
    words = g_strsplit(g_strstrip(line), " ", -1);
    obey(words);
    return G_SOURCE_CONTINUE;
}

int main(int argc, char *argv[])
{
    sd_event *event = NULL;
    GIOChannel *input;
    guint source;

    pf_log_init("fake-manager");
    pf_log_set_max_priority(LOG_DEBUG);
    if (sd_event_new(&event) < 0)
        return EXIT_FAILURE;
    source = pf_sd_source_add(event, G_PRIORITY_DEFAULT);
    loop = g_main_loop_new(NULL, FALSE);
    handovers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    calls = g_hash_table_new(NULL, NULL);

    bus = pf_bus_new(event, argc > 1 ? argv[1] : NULL, &manager_view, &ops, NULL);
    input = g_io_channel_unix_new(STDIN_FILENO);
    g_io_channel_set_flags(input, G_IO_FLAG_NONBLOCK, NULL);
    g_io_add_watch(input, G_IO_IN | G_IO_HUP, on_input, NULL);

    pf_bus_start(bus);
    g_main_loop_run(loop);

    pf_bus_free(bus);
    g_source_remove(source);
    sd_event_unref(event);
    return status;
}
