/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A portferryd of paper: fake-daemon ADDRESS [--old]
 *
 * It shows on the bus what it is told on standard input, one command a line, in the shell's
 * quotes and with C's escapes; it says "ok" after each.  Of every method call that would change
 * something it says "call METHOD HANDOVER ARGUMENTS interactive=0|1" and answers as the last
 * "answer" command says.
 *
 *     add ID DOMAIN UUID ROLE STARTED-US     port ID IFACE-ID MAC STATE
 *     phase ID PHASE TIME-US                 set ID PROPERTY VALUE
 *     manager PROPERTY VALUE                 remove ID
 *     answer ok | answer never | answer ERROR-NAME MESSAGE
 *     restart KEY...   what Reload answers   leave | return   the name on the bus
 *     quit
 *
 * --old: without the members that the first version did not have.
 */

#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define NAME "org.portferry1"
#define ROOT "/org/portferry1"
#define MANAGER "org.portferry1.Manager"
#define HANDOVER "org.portferry1.Handover"

typedef struct {
    char *words[3];
} Port;

typedef struct {
    char *name;
    guint64 time;
} Phase;

typedef struct {
    GHashTable *strings; /* property -> value, numbers as text */
    GArray *ports, *phases;
    char *path;
    sd_bus_slot *slot;
} Handover;

static sd_bus *bus;
static sd_event *event;
static GHashTable *handovers; /* id -> Handover */
static GHashTable *manager;   /* property -> value */
static char **answer;
static char **restart_keys;
static bool old;

static void G_GNUC_PRINTF(1, 2) say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

static const char *value_of(GHashTable *table, const char *property)
{
    const char *value = g_hash_table_lookup(table, property);

    return value ? value : "";
}

static int get_manager(sd_bus *b, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    return sd_bus_message_append(reply, "s", value_of(manager, property));
}

static int get_counters(sd_bus *b, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    return sd_bus_message_append(reply, "a{st}", 2, "handovers-started", (guint64)3,
                                 "handovers-done", (guint64)2);
}

static int get_string(sd_bus *b, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    return sd_bus_message_append(reply, "s", value_of(((Handover *)userdata)->strings, property));
}

static int get_time(sd_bus *b, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    const char *value = value_of(((Handover *)userdata)->strings, property);

    return sd_bus_message_append(reply, "t", (guint64)g_ascii_strtoull(value, NULL, 10));
}

static int get_boolean(sd_bus *b, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    const char *value = value_of(((Handover *)userdata)->strings, property);

    return sd_bus_message_append(reply, "b", g_str_equal(value, "true"));
}

static int get_ports(sd_bus *b, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    const Handover *h = userdata;
    int r = sd_bus_message_open_container(reply, 'a', "(sss)");

    for (guint i = 0; r >= 0 && i < h->ports->len; i++) {
        char *const *words = g_array_index(h->ports, Port, i).words;

        r = sd_bus_message_append(reply, "(sss)", words[0], words[1], words[2]);
    }
    return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int get_phases(sd_bus *b, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    const Handover *h = userdata;
    int r = sd_bus_message_open_container(reply, 'a', "(st)");

    for (guint i = 0; r >= 0 && i < h->phases->len; i++) {
        const Phase *phase = &g_array_index(h->phases, Phase, i);

        r = sd_bus_message_append(reply, "(st)", phase->name, phase->time);
    }
    return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* Answers 'm' as told; 'signature' and what follows it is the good answer. */
static int reply_as_told(sd_bus_message *m, sd_bus_error *error, const char *signature,
                         const char *path)
{
    if (g_str_equal(answer[0], "never")) {
        return 1;
    }
    if (!g_str_equal(answer[0], "ok")) {
        return sd_bus_error_set(error, answer[0], answer[1]);
    }
    if (g_str_equal(signature, "o")) {
        return sd_bus_reply_method_return(m, "o", path);
    }
    if (g_str_equal(signature, "as")) {
        sd_bus_message *reply = NULL;
        int r = sd_bus_message_new_method_return(m, &reply);

        if (r >= 0) {
            r = sd_bus_message_append_strv(reply, restart_keys);
        }
        if (r >= 0) {
            r = sd_bus_send(NULL, reply, NULL);
        }
        sd_bus_message_unref(reply);
        return r;
    }
    return sd_bus_reply_method_return(m, "");
}

static int is_interactive(sd_bus_message *m)
{
    return sd_bus_message_get_allow_interactive_authorization(m);
}

static int on_override(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    const Handover *h = userdata;

    say("call %s %s interactive=%d", sd_bus_message_get_member(m), value_of(h->strings, "Id"),
        is_interactive(m));
    return reply_as_told(m, error, "", NULL);
}

static int on_reload(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    say("call Reload interactive=%d", is_interactive(m));
    return reply_as_told(m, error, "as", NULL);
}

static int on_preplug(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    const char *domain, *source;
    char **ports = NULL;
    int r;

    if ((r = sd_bus_message_read(m, "s", &domain)) < 0 ||
        (r = sd_bus_message_read_strv(m, &ports)) < 0 ||
        (r = sd_bus_message_read(m, "s", &source)) < 0) {
        return r;
    }

    g_autofree char *list = g_strjoinv(",", ports);

    say("call PrePlug %s %s from=%s interactive=%d", domain, list, source, is_interactive(m));
    for (char **port = ports; *port; port++) {
        free(*port);
    }
    free(ports);
    return reply_as_told(m, error, "o", ROOT "/handover/h1");
}

#define EMITS SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE
#define OVERRIDE(name)                                                                             \
    SD_BUS_METHOD_WITH_ARGS(name, SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_override,                   \
                            SD_BUS_VTABLE_UNPRIVILEGED)
#define OLD_HANDOVER                                                                               \
    SD_BUS_PROPERTY("Id", "s", get_string, 0, SD_BUS_VTABLE_PROPERTY_CONST),                       \
        SD_BUS_PROPERTY("Domain", "s", get_string, 0, EMITS),                                      \
        SD_BUS_PROPERTY("UUID", "s", get_string, 0, SD_BUS_VTABLE_PROPERTY_CONST),                 \
        SD_BUS_PROPERTY("Role", "s", get_string, 0, SD_BUS_VTABLE_PROPERTY_CONST),                 \
        SD_BUS_PROPERTY("Started", "t", get_time, 0, SD_BUS_VTABLE_PROPERTY_CONST),                \
        SD_BUS_PROPERTY("Phase", "s", get_string, 0, EMITS),                                       \
        SD_BUS_PROPERTY("Phases", "a(st)", get_phases, 0, EMITS),                                  \
        SD_BUS_PROPERTY("Source", "s", get_string, 0, EMITS),                                      \
        SD_BUS_PROPERTY("Destination", "s", get_string, 0, EMITS),                                 \
        SD_BUS_PROPERTY("Peer", "s", get_string, 0, EMITS),                                        \
        SD_BUS_PROPERTY("Ports", "a(sss)", get_ports, 0, EMITS),                                   \
        SD_BUS_PROPERTY("LastError", "s", get_string, 0, EMITS), OVERRIDE("Activate"),             \
        OVERRIDE("Rollback"),                                                                      \
        SD_BUS_SIGNAL_WITH_ARGS("PhaseChanged", SD_BUS_ARGS("s", old, "s", new, "t", time), 0)
#define OLD_MANAGER                                                                                \
    SD_BUS_PROPERTY("Version", "s", get_manager, 0, SD_BUS_VTABLE_PROPERTY_CONST),                 \
        SD_BUS_PROPERTY("Hostname", "s", get_manager, 0, SD_BUS_VTABLE_PROPERTY_CONST),            \
        SD_BUS_PROPERTY("Chassis", "s", get_manager, 0, EMITS),                                    \
        SD_BUS_PROPERTY("LibvirtState", "s", get_manager, 0, EMITS),                               \
        SD_BUS_PROPERTY("NorthboundState", "s", get_manager, 0, EMITS),                            \
        SD_BUS_PROPERTY("SouthboundState", "s", get_manager, 0, EMITS),                            \
        SD_BUS_PROPERTY("SwitchState", "s", get_manager, 0, EMITS),                                \
        SD_BUS_PROPERTY("Counters", "a{st}", get_counters, 0, 0),                                  \
        SD_BUS_SIGNAL_WITH_ARGS("HandoverAdded", SD_BUS_ARGS("o", handover), 0),                   \
        SD_BUS_SIGNAL_WITH_ARGS("HandoverRemoved", SD_BUS_ARGS("o", handover), 0)

static const sd_bus_vtable old_handover_vtable[] = {
    SD_BUS_VTABLE_START(0),
    OLD_HANDOVER,
    SD_BUS_VTABLE_END,
};

static const sd_bus_vtable handover_vtable[] = {
    SD_BUS_VTABLE_START(0),
    OLD_HANDOVER,
    SD_BUS_PROPERTY("ByHand", "b", get_boolean, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Ended", "t", get_time, 0, EMITS),
    SD_BUS_PROPERTY("Outcome", "s", get_string, 0, EMITS),
    SD_BUS_PROPERTY("Waiting", "s", get_string, 0, EMITS),
    SD_BUS_PROPERTY("Deadline", "t", get_time, 0, EMITS),
    SD_BUS_PROPERTY("Held", "b", get_boolean, 0, EMITS),
    OVERRIDE("Hold"),
    OVERRIDE("Release"),
    OVERRIDE("Forget"),
    SD_BUS_VTABLE_END,
};

static const sd_bus_vtable old_manager_vtable[] = {
    SD_BUS_VTABLE_START(0),
    OLD_MANAGER,
    SD_BUS_VTABLE_END,
};

static const sd_bus_vtable manager_vtable[] = {
    SD_BUS_VTABLE_START(0),
    OLD_MANAGER,
    SD_BUS_METHOD_WITH_ARGS("PrePlug", SD_BUS_ARGS("s", domain, "as", ports, "s", source),
                            SD_BUS_RESULT("o", handover), on_preplug, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_RESULT("as", need_restart), on_reload,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

static void set(GHashTable *table, const char *property, const char *value)
{
    g_hash_table_replace(table, g_strdup(property), g_strdup(value));
}

static void add(char **w)
{
    static const char *const properties[] = {"Id", "Domain", "UUID", "Role", "Started"};
    Handover *h = g_new0(Handover, 1);
    char *path = NULL;

    h->strings = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    h->ports = g_array_new(FALSE, FALSE, sizeof(Port));
    h->phases = g_array_new(FALSE, FALSE, sizeof(Phase));
    for (gsize i = 0; i < G_N_ELEMENTS(properties); i++) {
        set(h->strings, properties[i], w[i + 1]);
    }
    set(h->strings, "Source", "host-a");
    set(h->strings, "Destination", "host-b");
    sd_bus_path_encode(ROOT "/handover", w[1], &path);
    h->path = g_strdup(path);
    free(path);
    g_hash_table_insert(handovers, g_strdup(w[1]), h);
    sd_bus_add_object_vtable(bus, &h->slot, h->path, HANDOVER,
                             old ? old_handover_vtable : handover_vtable, h);
    sd_bus_emit_object_added(bus, h->path);
    sd_bus_emit_signal(bus, ROOT, MANAGER, "HandoverAdded", "o", h->path);
}

static void enter_phase(Handover *h, const char *name, const char *time)
{
    Phase phase = {g_strdup(name), g_ascii_strtoull(time, NULL, 10)};
    const char *before =
        h->phases->len ? g_array_index(h->phases, Phase, h->phases->len - 1).name : "";

    g_array_append_val(h->phases, phase);
    set(h->strings, "Phase", name);
    sd_bus_emit_signal(bus, h->path, HANDOVER, "PhaseChanged", "sst", before, name, phase.time);
    sd_bus_emit_properties_changed(bus, h->path, HANDOVER, "Phase", "Phases", NULL);
}

static void set_port(Handover *h, char **w)
{
    Port port = {{g_strdup(w[0]), g_strdup(w[1]), g_strdup(w[2])}};

    for (guint i = 0; i < h->ports->len; i++) {
        Port *known = &g_array_index(h->ports, Port, i);

        if (g_str_equal(known->words[0], w[0])) {
            *known = port;
            sd_bus_emit_properties_changed(bus, h->path, HANDOVER, "Ports", NULL);
            return;
        }
    }
    g_array_append_val(h->ports, port);
    sd_bus_emit_properties_changed(bus, h->path, HANDOVER, "Ports", NULL);
}

static void obey(char **w)
{
    guint n = g_strv_length(w);
    Handover *h = n > 1 ? g_hash_table_lookup(handovers, w[1]) : NULL;

    if (g_str_equal(w[0], "add") && n == 6) {
        add(w);
    } else if (g_str_equal(w[0], "port") && n == 5 && h) {
        set_port(h, w + 2);
    } else if (g_str_equal(w[0], "phase") && n == 4 && h) {
        enter_phase(h, w[2], w[3]);
    } else if (g_str_equal(w[0], "set") && n == 4 && h) {
        set(h->strings, w[2], w[3]);
        sd_bus_emit_properties_changed(bus, h->path, HANDOVER, w[2], NULL);
    } else if (g_str_equal(w[0], "manager") && n == 3) {
        set(manager, w[1], w[2]);
        sd_bus_emit_properties_changed(bus, ROOT, MANAGER, w[1], NULL);
    } else if (g_str_equal(w[0], "remove") && n == 2 && h) {
        sd_bus_emit_object_removed(bus, h->path);
        sd_bus_emit_signal(bus, ROOT, MANAGER, "HandoverRemoved", "o", h->path);
        sd_bus_slot_unref(h->slot);
        g_hash_table_remove(handovers, w[1]);
    } else if (g_str_equal(w[0], "answer") && n >= 2) {
        g_strfreev(answer);
        answer = g_strdupv(w + 1);
    } else if (g_str_equal(w[0], "restart")) {
        g_strfreev(restart_keys);
        restart_keys = g_strdupv(w + 1);
    } else if (g_str_equal(w[0], "leave")) {
        sd_bus_release_name(bus, NAME);
    } else if (g_str_equal(w[0], "return")) {
        sd_bus_request_name(bus, NAME, 0);
    } else if (g_str_equal(w[0], "quit")) {
        sd_event_exit(event, 0);
    } else {
        say("what? %s", w[0]);
    }
    say("ok");
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
    static GString *pending;
    char block[4096];
    ssize_t size = read(fd, block, sizeof block);
    const char *newline;

    if (size <= 0) {
        return sd_event_exit(event, 0);
    }
    if (!pending) {
        pending = g_string_new(NULL);
    }
    g_string_append_len(pending, block, size);
    while ((newline = strchr(pending->str, '\n'))) {
        g_autofree char *line = g_strndup(pending->str, (gsize)(newline - pending->str));
        g_auto(GStrv) words = NULL;

        g_string_erase(pending, 0, newline - pending->str + 1);
        if (!g_shell_parse_argv(line, NULL, &words, NULL)) {
            say("what? %s", line);
            continue;
        }
        for (char **word = words; *word; word++) {
            char *plain = g_strcompress(*word);

            g_free(*word);
            *word = plain;
        }
        obey(words);
    }
    return 0;
}

int main(int argc, char **argv)
{
    int r;

    old = argc > 2 && g_str_equal(argv[2], "--old");
    answer = g_strsplit("ok", " ", -1);
    restart_keys = g_new0(char *, 1);
    handovers = g_hash_table_new(g_str_hash, g_str_equal);
    manager = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    set(manager, "Version", "0.1.0");
    set(manager, "Hostname", "host-b");
    set(manager, "Chassis", "host-b");
    set(manager, "LibvirtState", "connected");
    set(manager, "NorthboundState", "synced");
    set(manager, "SouthboundState", "synced");
    set(manager, "SwitchState", "synced");

    if ((r = sd_event_new(&event)) < 0 || (r = sd_bus_new(&bus)) < 0 ||
        (r = sd_bus_set_address(bus, argv[1])) < 0 || (r = sd_bus_set_bus_client(bus, 1)) < 0 ||
        (r = sd_bus_start(bus)) < 0 || (r = sd_bus_add_object_manager(bus, NULL, ROOT)) < 0 ||
        (r = sd_bus_add_object_vtable(bus, NULL, ROOT, MANAGER,
                                      old ? old_manager_vtable : manager_vtable, NULL)) < 0 ||
        (r = sd_bus_request_name(bus, NAME, 0)) < 0 ||
        (r = sd_bus_attach_event(bus, event, 0)) < 0 ||
        (r = sd_event_add_io(event, NULL, STDIN_FILENO, 1 /* EPOLLIN */, on_input, NULL)) < 0) {
        fprintf(stderr, "fake-daemon: %s\n", strerror(-r));
        return EXIT_FAILURE;
    }
    say("acquired");
    r = sd_event_loop(event);
    sd_bus_flush_close_unref(bus);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
