/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * portferry watch: what happens, as it happens.
 *
 * The signals are subscribed to before the handovers are asked for, so that nothing is missed
 * between.  A signal may then tell what the answer told already; a phase that isn't younger than
 * the last one known is therefore left out.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "phases.h"
#include "remote.h"
#include "terminal.h"

#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"

typedef struct {
    PfRemoteHandover *handover; /* as its properties were told last */
    char *phase;                /* as the signals told it */
    gint64 since_us;
} Watched;

typedef struct {
    PfClient *client;
    const char *filter;  /* a handover or domain, or NULL */
    GHashTable *watched; /* object path -> Watched */
    PfRemoteManager *manager;
    bool ended; /* one that was watched has ended, */
    bool done;  /* and well */
} Watch;

static gboolean until_end;

static const GOptionEntry watch_options[] = {
    {"until-end", 0, 0, G_OPTION_ARG_NONE, &until_end,
     N_("Stop once a handover that is watched has ended: exit status 1 unless the ports followed"),
     NULL},
    {NULL},
};

static void watched_free(gpointer data)
{
    Watched *w = data;

    pf_remote_handover_free(w->handover);
    g_free(w->phase);
    g_free(w);
}

static bool is_wanted(const Watch *watch, const PfRemoteHandover *h)
{
    return !watch->filter || g_str_equal(h->id, watch->filter) ||
           g_str_equal(h->domain, watch->filter) || g_ascii_strcasecmp(h->uuid, watch->filter) == 0;
}

/* Output: a line of text, or a JSON object on a line. */

static PfJson *new_event(const char *event, gint64 time_us, const PfRemoteHandover *h)
{
    PfJson *json = pf_json_object();

    pf_json_set(json, "event", pf_json_string(event));
    pf_json_set(json, "time_us", pf_json_integer(time_us));
    if (h) {
        pf_json_set(json, "handover", pf_json_string(h->id));
        pf_json_set(json, "domain", pf_json_string(*h->domain ? h->domain : NULL));
        pf_json_set(json, "uuid", pf_json_string(h->uuid));
        pf_json_set(json, "role", pf_json_string(h->role));
    }
    return json;
}

static void print_event(PfJson *json)
{
    g_autofree char *text = pf_json_to_text(json, false);

    puts(text);
    fflush(stdout);
    pf_json_free(json);
}

static void print_line(gint64 time_us, const PfRemoteHandover *h, PfStyle style, const char *format,
                       ...) G_GNUC_PRINTF(4, 5);

static void print_line(gint64 time_us, const PfRemoteHandover *h, PfStyle style, const char *format,
                       ...)
{
    g_autofree char *time = pf_format_time(time_us, true);
    va_list args;

    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);

    printf("%s%s%s  ", pf_style_on(PF_STYLE_DIM), time, pf_style_off(PF_STYLE_DIM));
    if (h) {
        g_autofree char *domain = pf_domain_label(h);
        const char *role = pf_role_word(h->role);
        guint width = pf_text_width(domain) + pf_text_width(role) + 3;

        printf("%s%s%s (%s)%*s", pf_style_on(PF_STYLE_BOLD), domain, pf_style_off(PF_STYLE_BOLD),
               role, width < 24 ? (int)(24 - width) + 2 : 2, "");
    }
    printf("%s%s%s\n", pf_style_on(style), text, pf_style_off(style));
    fflush(stdout);
}

static void show_phase(Watch *watch, const Watched *w, const char *new, gint64 time_us)
{
    const PfRemoteHandover *h = w->handover;
    gint64 lasted = time_us - w->since_us;

    if (watch->client->json) {
        PfJson *json = new_event("phase", time_us, h);

        pf_json_set(json, "from", pf_json_string(w->phase));
        pf_json_set(json, "to", pf_json_string(new));
        pf_json_set(json, "lasted_us", w->phase ? pf_json_integer(lasted) : pf_json_null());
        print_event(json);
        return;
    }

    g_autofree char *safe_new = pf_safe(new);
    PfStyle style = g_str_equal(new, "done") ? PF_STYLE_GOOD : pf_kind_style(pf_phase_kind(new));

    if (!w->phase) {
        print_line(time_us, h, style, "%s", safe_new);
        return;
    }

    g_autofree char *safe_old = pf_safe(w->phase);
    g_autofree char *took = pf_format_duration(lasted);
    g_autofree char *step = g_strdup_printf("%s %s %s", safe_old, pf_glyph("→", "->"), safe_new);
    g_autofree char *padded =
        g_strdup_printf("%s%*s", step, MAX(0, 22 - (int)pf_text_width(step)), "");

    if (pf_phase_kind(new) == PF_KIND_ENDED) {
        g_autofree char *total = pf_format_duration(time_us - h->started_us);
        /* TRANSLATORS: "active -> done", a phase, its duration, the whole handover's duration */
        print_line(time_us, h, style, _("%s %s took %s; %s in all"), padded, safe_old, took, total);
    } else {
        /* TRANSLATORS: "preplug -> binding", a phase, its duration */
        print_line(time_us, h, style, _("%s %s took %s"), padded, safe_old, took);
    }
}

static void enter_phase(Watch *watch, Watched *w, const char *new, gint64 time_us)
{
    if (w->phase &&
        (time_us < w->since_us || (time_us == w->since_us && g_str_equal(new, w->phase)))) {
        return;
    }
    show_phase(watch, w, new, time_us);
    g_free(w->phase);
    w->phase = g_strdup(new);
    w->since_us = time_us;
    if (pf_phase_kind(new) == PF_KIND_ENDED) {
        watch->ended = true;
        watch->done = g_str_equal(new, "done");
    }
}

/* A handover that was not known: with all that it has gone through.  Takes 'h' over. */
static void add(Watch *watch, PfRemoteHandover *h, const char *event)
{
    Watched *w = g_new0(Watched, 1);
    gint64 now = g_get_real_time();

    w->handover = h;
    g_hash_table_replace(watch->watched, g_strdup(h->path), w);

    if (!is_wanted(watch, h) || (pf_remote_is_ended(h) && g_str_equal(event, "present"))) {
        /* Kept all the same: its name may become known, and then be the one. */
        if (h->phases->len > 0) {
            const PfRemotePhase *last =
                &g_array_index(h->phases, PfRemotePhase, h->phases->len - 1);

            w->phase = g_strdup(last->phase);
            w->since_us = last->time_us;
        }
        return;
    }
    if (watch->client->json) {
        PfJson *json = new_event(event, now, h);

        pf_json_set(json, "state", pf_remote_handover_to_json(h));
        print_event(json);
    } else {
        g_autofree char *route = pf_route_label(h);
        guint n = h->ports->len;

        print_line(h->started_us, h, PF_STYLE_BOLD,
                   ngettext("began: %s, %u port", "began: %s, %u ports", n), route, n);
    }
    for (guint i = 0; i < h->phases->len; i++) {
        const PfRemotePhase *phase = &g_array_index(h->phases, PfRemotePhase, i);

        enter_phase(watch, w, phase->phase, phase->time_us);
    }
}

/* Says what is new about a text property that wants to be read. */
static void show_text(Watch *watch, const PfRemoteHandover *h, const char *event, const char *value,
                      PfStyle style)
{
    gint64 now = g_get_real_time();

    if (watch->client->json) {
        PfJson *json = new_event(event, now, h);

        pf_json_set(json, "text", pf_json_string(value));
        print_event(json);
    } else if (*value) {
        g_autofree char *safe = pf_safe(value);

        print_line(now, h, style, "%s", safe);
    }
}

static void show_waiting(Watch *watch, const PfRemoteHandover *h)
{
    g_autofree char *safe = pf_safe(h->waiting);

    if (watch->client->json) {
        show_text(watch, h, "waiting", h->waiting, PF_STYLE_DIM);
    } else if (*h->waiting) {
        print_line(g_get_real_time(), h, PF_STYLE_DIM, _("waits for %s"), safe);
    }
}

static void show_ports(Watch *watch, const PfRemoteHandover *h, GHashTable *before)
{
    gint64 now = g_get_real_time();

    for (guint i = 0; i < h->ports->len; i++) {
        const PfRemotePort *port = &g_array_index(h->ports, PfRemotePort, i);

        if (g_strcmp0(g_hash_table_lookup(before, port->iface_id), port->state) == 0) {
            continue;
        }
        if (watch->client->json) {
            PfJson *json = new_event("port", now, h);

            pf_json_set(json, "iface_id", pf_json_string(port->iface_id));
            pf_json_set(json, "state", pf_json_string(port->state));
            print_event(json);
        } else {
            g_autofree char *iface_id = pf_safe(port->iface_id);
            g_autofree char *state = pf_safe(port->state);

            print_line(now, h, PF_STYLE_DIM, _("port %s: %s"), iface_id, state);
        }
    }
}

static int change_handover(Watch *watch, Watched *w, sd_bus_message *m)
{
    PfRemoteHandover *h = w->handover;
    g_autofree char *error = g_strdup(h->last_error);
    g_autofree char *waiting = g_strdup(h->waiting);
    bool held = h->held, had_name = *h->domain != '\0';
    g_autoptr(GHashTable) ports = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    int r;

    for (guint i = 0; i < h->ports->len; i++) {
        const PfRemotePort *port = &g_array_index(h->ports, PfRemotePort, i);

        g_hash_table_insert(ports, g_strdup(port->iface_id), g_strdup(port->state));
    }
    r = pf_remote_handover_read(h, m);
    if (r < 0 || !is_wanted(watch, h)) {
        return r;
    }

    if (*h->domain && !had_name) {
        show_text(watch, h, "domain", h->domain, PF_STYLE_DIM);
    }
    if (strcmp(error, h->last_error) != 0) {
        show_text(watch, h, "error", h->last_error, PF_STYLE_BAD);
    }
    if (strcmp(waiting, h->waiting) != 0) {
        show_waiting(watch, h);
    }
    if (held != h->held) {
        show_text(watch, h, h->held ? "held" : "released",
                  h->held ? _("held by an operator") : _("let go on by an operator"),
                  PF_STYLE_WARN);
    }
    show_ports(watch, h, ports);
    return r;
}

static int change_manager(Watch *watch, sd_bus_message *m)
{
    PfRemoteManager *manager = watch->manager;
    const struct {
        const char *name, *label;
        char *const *value;
    } connections[] = {
        {"libvirt", "libvirt", &manager->libvirt_state},
        {"northbound", _("northbound"), &manager->northbound_state},
        {"southbound", _("southbound"), &manager->southbound_state},
        {"switch", _("switch"), &manager->switch_state},
    };
    char *before[G_N_ELEMENTS(connections)];
    gint64 now = g_get_real_time();
    int r;

    for (gsize i = 0; i < G_N_ELEMENTS(connections); i++) {
        before[i] = g_strdup(*connections[i].value);
    }
    r = pf_remote_manager_read(manager, m);
    for (gsize i = 0; i < G_N_ELEMENTS(connections); i++) {
        const char *state = *connections[i].value;

        if (r >= 0 && strcmp(before[i], state) != 0) {
            if (watch->client->json) {
                PfJson *json = new_event("connection", now, NULL);

                pf_json_set(json, "connection", pf_json_string(connections[i].name));
                pf_json_set(json, "state", pf_json_string(state));
                print_event(json);
            } else {
                g_autofree char *safe = pf_safe(state);

                print_line(now, NULL, PF_STYLE_WARN, "%s: %s", connections[i].label, safe);
            }
        }
        g_free(before[i]);
    }
    return r;
}

/* Signals */

static int on_properties_changed(Watch *watch, sd_bus_message *m)
{
    const char *interface;
    Watched *w;
    int r = sd_bus_message_read(m, "s", &interface);

    if (r < 0) {
        return r;
    }
    w = g_hash_table_lookup(watch->watched, sd_bus_message_get_path(m));
    if (w && g_str_equal(interface, PF_REMOTE_HANDOVER)) {
        return change_handover(watch, w, m);
    }
    if (watch->manager && g_str_equal(interface, PF_REMOTE_MANAGER)) {
        return change_manager(watch, m);
    }
    return 0;
}

static int on_phase_changed(Watch *watch, sd_bus_message *m)
{
    Watched *w = g_hash_table_lookup(watch->watched, sd_bus_message_get_path(m));
    const char *old, *new;
    guint64 time;
    int r = sd_bus_message_read(m, "sst", &old, &new, &time);

    if (r >= 0 && w && is_wanted(watch, w->handover)) {
        enter_phase(watch, w, new, (gint64)time);
    }
    return r;
}

static int on_interfaces_added(Watch *watch, sd_bus_message *m)
{
    const char *path, *interface;
    int r;

    if ((r = sd_bus_message_read(m, "o", &path)) < 0 ||
        (r = sd_bus_message_enter_container(m, 'a', "{sa{sv}}")) < 0) {
        return r;
    }
    while ((r = sd_bus_message_enter_container(m, 'e', "sa{sv}")) > 0) {
        if ((r = sd_bus_message_read(m, "s", &interface)) < 0) {
            return r;
        }
        if (g_str_equal(interface, PF_REMOTE_HANDOVER) &&
            !g_hash_table_contains(watch->watched, path)) {
            g_autoptr(PfRemoteHandover) h = pf_remote_handover_new(path);

            r = pf_remote_handover_read(h, m);
            if (r >= 0) {
                add(watch, g_steal_pointer(&h), "added");
            }
        } else {
            r = sd_bus_message_skip(m, "a{sv}");
        }
        if (r < 0 || (r = sd_bus_message_exit_container(m)) < 0) {
            return r;
        }
    }
    return r;
}

static int on_interfaces_removed(Watch *watch, sd_bus_message *m)
{
    const char *path;
    int r = sd_bus_message_read(m, "o", &path);
    Watched *w = r < 0 ? NULL : g_hash_table_lookup(watch->watched, path);

    if (w && is_wanted(watch, w->handover) && watch->client->json) {
        print_event(new_event("removed", g_get_real_time(), w->handover));
    }
    if (w) {
        g_hash_table_remove(watch->watched, path);
    }
    return r;
}

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *error G_GNUC_UNUSED)
{
    static const struct {
        const char *interface, *member;
        int (*handle)(Watch *watch, sd_bus_message *m);
    } handlers[] = {
        {"org.freedesktop.DBus.Properties", "PropertiesChanged", on_properties_changed},
        {PF_REMOTE_HANDOVER, "PhaseChanged", on_phase_changed},
        {OBJECT_MANAGER, "InterfacesAdded", on_interfaces_added},
        {OBJECT_MANAGER, "InterfacesRemoved", on_interfaces_removed},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(handlers); i++) {
        if (sd_bus_message_is_signal(m, handlers[i].interface, handlers[i].member) > 0) {
            return handlers[i].handle(userdata, m);
        }
    }
    return 0;
}

static PfExit look(Watch *watch)
{
    g_autoptr(GPtrArray) handovers = NULL;
    PfExit result;

    g_clear_pointer(&watch->manager, pf_remote_manager_free);
    if ((result = pf_remote_get_manager(watch->client, &watch->manager)) != PF_EXIT_OK ||
        (result = pf_remote_get_handovers(watch->client, &handovers)) != PF_EXIT_OK) {
        return result;
    }
    g_ptr_array_set_free_func(handovers, NULL);
    for (guint i = 0; i < handovers->len; i++) {
        add(watch, g_ptr_array_index(handovers, i), "present");
    }
    return PF_EXIT_OK;
}

static int on_owner_changed(sd_bus_message *m, void *userdata, sd_bus_error *error G_GNUC_UNUSED)
{
    Watch *watch = userdata;
    const char *name, *old, *new;
    gint64 now = g_get_real_time();
    int r = sd_bus_message_read(m, "sss", &name, &old, &new);

    if (r < 0) {
        return r;
    }
    if (watch->client->json) {
        PfJson *json = new_event("daemon", now, NULL);

        pf_json_set(json, "running", pf_json_bool(*new));
        print_event(json);
    } else {
        print_line(now, NULL, PF_STYLE_WARN, "%s",
                   *new ? _("portferryd is back") : _("portferryd has left the bus"));
    }
    /* It takes its handovers up again from the databases; some may be over by then. */
    g_hash_table_remove_all(watch->watched);
    return *new &&look(watch) != PF_EXIT_OK ? -ECONNRESET : 0;
}

static PfExit run_watch(PfClient *client, char **arguments)
{
    const char *what = _("watch");
    Watch watch = {.client = client, .filter = arguments[0]};
    PfExit result = pf_client_connect(client);
    int r;

    if (result != PF_EXIT_OK) {
        return result;
    }
    watch.watched = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, watched_free);
    if ((r = sd_bus_add_match(client->bus, NULL,
                              "type='signal',sender='" PF_REMOTE_NAME "',"
                              "path_namespace='" PF_REMOTE_PATH "'",
                              on_signal, &watch)) < 0 ||
        (r = sd_bus_add_match(client->bus, NULL,
                              "type='signal',sender='org.freedesktop.DBus',"
                              "member='NameOwnerChanged',arg0='" PF_REMOTE_NAME "'",
                              on_owner_changed, &watch)) < 0) {
        result = pf_client_fail_call(client, what, NULL, r);
    } else {
        result = look(&watch);
    }
    if (result == PF_EXIT_OK && !client->json && pf_terminal_is_tty()) {
        printf("%s%s%s\n", pf_style_on(PF_STYLE_DIM), _("Waiting for handovers; Ctrl-C ends this."),
               pf_style_off(PF_STYLE_DIM));
    }

    while (result == PF_EXIT_OK && !(until_end && watch.ended)) {
        r = sd_bus_process(client->bus, NULL);
        if (r == 0) {
            r = sd_bus_wait(client->bus, UINT64_MAX);
        }
        if (r < 0 && r != -EINTR) {
            result = pf_client_fail_call(client, what, NULL, r);
        }
    }
    if (result == PF_EXIT_OK && !watch.done) {
        result = PF_EXIT_FAILED;
    }
    g_hash_table_unref(watch.watched);
    pf_remote_manager_free(watch.manager);
    return result;
}

const PfCommand pf_command_watch = {
    .name = "watch",
    .parameters = N_("[HANDOVER|DOMAIN]"),
    .summary = N_("Show what happens, as it happens, and how long each phase took"),
    .options = watch_options,
    .max_arguments = 1,
    .run = run_watch,
};
