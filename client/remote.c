/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "remote.h"

#include <errno.h>
#include <string.h>

#include "terminal.h"

static void clear_port(gpointer data)
{
    PfRemotePort *port = data;

    g_free(port->iface_id);
    g_free(port->mac);
    g_free(port->state);
}

static void clear_phase(gpointer data)
{
    g_free(((PfRemotePhase *)data)->phase);
}

static const struct {
    const char *property;
    gsize offset;
} handover_strings[] = {
    {"Id", offsetof(PfRemoteHandover, id)},
    {"Domain", offsetof(PfRemoteHandover, domain)},
    {"UUID", offsetof(PfRemoteHandover, uuid)},
    {"Role", offsetof(PfRemoteHandover, role)},
    {"Phase", offsetof(PfRemoteHandover, phase)},
    {"Source", offsetof(PfRemoteHandover, source)},
    {"Destination", offsetof(PfRemoteHandover, destination)},
    {"Peer", offsetof(PfRemoteHandover, peer)},
    {"LastError", offsetof(PfRemoteHandover, last_error)},
    {"Outcome", offsetof(PfRemoteHandover, outcome)},
    {"Waiting", offsetof(PfRemoteHandover, waiting)},
};

static const struct {
    const char *property;
    gsize offset;
} handover_times[] = {
    {"Started", offsetof(PfRemoteHandover, started_us)},
    {"Ended", offsetof(PfRemoteHandover, ended_us)},
    {"Deadline", offsetof(PfRemoteHandover, deadline_us)},
};

static const struct {
    const char *property;
    gsize offset;
} manager_strings[] = {
    {"Version", offsetof(PfRemoteManager, version)},
    {"Hostname", offsetof(PfRemoteManager, hostname)},
    {"Chassis", offsetof(PfRemoteManager, chassis)},
    {"LibvirtState", offsetof(PfRemoteManager, libvirt_state)},
    {"NorthboundState", offsetof(PfRemoteManager, northbound_state)},
    {"SouthboundState", offsetof(PfRemoteManager, southbound_state)},
    {"SwitchState", offsetof(PfRemoteManager, switch_state)},
};

#define STRING_AT(object, offset) (*(char **)((char *)(object) + (offset)))

PfRemoteHandover *pf_remote_handover_new(const char *path)
{
    PfRemoteHandover *h = g_new0(PfRemoteHandover, 1);

    h->path = g_strdup(path);
    for (gsize i = 0; i < G_N_ELEMENTS(handover_strings); i++) {
        STRING_AT(h, handover_strings[i].offset) = g_strdup("");
    }
    h->ports = g_array_new(FALSE, FALSE, sizeof(PfRemotePort));
    g_array_set_clear_func(h->ports, clear_port);
    h->phases = g_array_new(FALSE, FALSE, sizeof(PfRemotePhase));
    g_array_set_clear_func(h->phases, clear_phase);
    return h;
}

void pf_remote_handover_free(PfRemoteHandover *h)
{
    if (!h) {
        return;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(handover_strings); i++) {
        g_free(STRING_AT(h, handover_strings[i].offset));
    }
    g_array_unref(h->ports);
    g_array_unref(h->phases);
    g_free(h->path);
    g_free(h);
}

PfRemoteManager *pf_remote_manager_new(void)
{
    PfRemoteManager *manager = g_new0(PfRemoteManager, 1);

    for (gsize i = 0; i < G_N_ELEMENTS(manager_strings); i++) {
        STRING_AT(manager, manager_strings[i].offset) = g_strdup("");
    }
    manager->counter_names = g_ptr_array_new_with_free_func(g_free);
    manager->counter_values = g_array_new(FALSE, FALSE, sizeof(guint64));
    return manager;
}

void pf_remote_manager_free(PfRemoteManager *manager)
{
    if (!manager) {
        return;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(manager_strings); i++) {
        g_free(STRING_AT(manager, manager_strings[i].offset));
    }
    g_ptr_array_unref(manager->counter_names);
    g_array_unref(manager->counter_values);
    g_free(manager);
}

static int read_string(sd_bus_message *m, char **where)
{
    const char *value;
    int r = sd_bus_message_read(m, "v", "s", &value);

    if (r >= 0) {
        g_free(*where);
        *where = g_strdup(value);
    }
    return r;
}

static int read_ports(sd_bus_message *m, GArray *ports)
{
    const char *iface_id, *mac, *state;
    int r;

    if ((r = sd_bus_message_enter_container(m, 'v', "a(sss)")) < 0 ||
        (r = sd_bus_message_enter_container(m, 'a', "(sss)")) < 0) {
        return r;
    }
    g_array_set_size(ports, 0);
    while ((r = sd_bus_message_read(m, "(sss)", &iface_id, &mac, &state)) > 0) {
        PfRemotePort port = {g_strdup(iface_id), g_strdup(mac), g_strdup(state)};

        g_array_append_val(ports, port);
    }
    if (r < 0 || (r = sd_bus_message_exit_container(m)) < 0) {
        return r;
    }
    return sd_bus_message_exit_container(m);
}

static int read_phases(sd_bus_message *m, GArray *phases)
{
    const char *name;
    guint64 time;
    int r;

    if ((r = sd_bus_message_enter_container(m, 'v', "a(st)")) < 0 ||
        (r = sd_bus_message_enter_container(m, 'a', "(st)")) < 0) {
        return r;
    }
    g_array_set_size(phases, 0);
    while ((r = sd_bus_message_read(m, "(st)", &name, &time)) > 0) {
        PfRemotePhase phase = {g_strdup(name), (gint64)time};

        g_array_append_val(phases, phase);
    }
    if (r < 0 || (r = sd_bus_message_exit_container(m)) < 0) {
        return r;
    }
    return sd_bus_message_exit_container(m);
}

static int read_counters(sd_bus_message *m, PfRemoteManager *manager)
{
    const char *name;
    guint64 value;
    int r;

    if ((r = sd_bus_message_enter_container(m, 'v', "a{st}")) < 0 ||
        (r = sd_bus_message_enter_container(m, 'a', "{st}")) < 0) {
        return r;
    }
    g_ptr_array_set_size(manager->counter_names, 0);
    g_array_set_size(manager->counter_values, 0);
    while ((r = sd_bus_message_read(m, "{st}", &name, &value)) > 0) {
        g_ptr_array_add(manager->counter_names, g_strdup(name));
        g_array_append_val(manager->counter_values, value);
    }
    if (r < 0 || (r = sd_bus_message_exit_container(m)) < 0) {
        return r;
    }
    return sd_bus_message_exit_container(m);
}

/* Reads a{sv}; 'read' returns 0 for a property that it doesn't know, or not of this type. */
static int read_properties(sd_bus_message *m, gpointer object,
                           int (*read)(gpointer object, const char *name, const char *type,
                                       sd_bus_message *m))
{
    int r = sd_bus_message_enter_container(m, 'a', "{sv}");

    while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
        const char *name, *type;

        if ((r = sd_bus_message_read(m, "s", &name)) < 0 ||
            (r = sd_bus_message_peek_type(m, NULL, &type)) < 0) {
            return r;
        }
        r = read(object, name, type, m);
        if (r == 0) {
            r = sd_bus_message_skip(m, "v");
        }
        if (r >= 0) {
            r = sd_bus_message_exit_container(m);
        }
    }
    return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_handover_property(gpointer object, const char *name, const char *type,
                                  sd_bus_message *m)
{
    PfRemoteHandover *h = object;
    int value, r;

    if (g_str_equal(type, "s")) {
        for (gsize i = 0; i < G_N_ELEMENTS(handover_strings); i++) {
            if (g_str_equal(handover_strings[i].property, name)) {
                return read_string(m, &STRING_AT(h, handover_strings[i].offset));
            }
        }
    } else if (g_str_equal(type, "t")) {
        for (gsize i = 0; i < G_N_ELEMENTS(handover_times); i++) {
            if (g_str_equal(handover_times[i].property, name)) {
                guint64 *where = (guint64 *)(gpointer)((char *)h + handover_times[i].offset);

                return sd_bus_message_read(m, "v", "t", where);
            }
        }
    } else if (g_str_equal(type, "b") &&
               (g_str_equal(name, "Held") || g_str_equal(name, "ByHand"))) {
        r = sd_bus_message_read(m, "v", "b", &value);
        if (r >= 0) {
            *(g_str_equal(name, "Held") ? &h->held : &h->by_hand) = value;
        }
        return r;
    } else if (g_str_equal(name, "Ports") && g_str_equal(type, "a(sss)")) {
        r = read_ports(m, h->ports);
        return r < 0 ? r : 1;
    } else if (g_str_equal(name, "Phases") && g_str_equal(type, "a(st)")) {
        r = read_phases(m, h->phases);
        return r < 0 ? r : 1;
    }
    return 0;
}

static int read_manager_property(gpointer object, const char *name, const char *type,
                                 sd_bus_message *m)
{
    PfRemoteManager *manager = object;

    if (g_str_equal(type, "s")) {
        for (gsize i = 0; i < G_N_ELEMENTS(manager_strings); i++) {
            if (g_str_equal(manager_strings[i].property, name)) {
                return read_string(m, &STRING_AT(manager, manager_strings[i].offset));
            }
        }
    } else if (g_str_equal(name, "Counters") && g_str_equal(type, "a{st}")) {
        int r = read_counters(m, manager);

        return r < 0 ? r : 1;
    }
    return 0;
}

int pf_remote_handover_read(PfRemoteHandover *handover, sd_bus_message *m)
{
    return read_properties(m, handover, read_handover_property);
}

int pf_remote_manager_read(PfRemoteManager *manager, sd_bus_message *m)
{
    return read_properties(m, manager, read_manager_property);
}

bool pf_remote_is_ended(const PfRemoteHandover *h)
{
    static const char *const ends[] = {"done", "undone", "unfinished", NULL};

    return h->ended_us > 0 || g_strv_contains(ends, h->phase);
}

gint64 pf_remote_end(const PfRemoteHandover *h)
{
    if (h->ended_us > 0) {
        return h->ended_us;
    }
    if (pf_remote_is_ended(h) && h->phases->len > 0) {
        return g_array_index(h->phases, PfRemotePhase, h->phases->len - 1).time_us;
    }
    return g_get_real_time();
}

const char *pf_remote_outcome(const PfRemoteHandover *h)
{
    if (!pf_remote_is_ended(h)) {
        return NULL;
    }
    return *h->outcome ? h->outcome : h->phase;
}

/* 'm' is a method call that only reads; a daemon that isn't there is not started for it. */
static PfExit call(PfClient *client, const char *what, sd_bus_message *m, sd_bus_message **reply)
{
    sd_bus_error error = SD_BUS_ERROR_NULL;
    PfExit result = PF_EXIT_OK;
    int r;

    sd_bus_message_set_auto_start(m, 0);
    r = sd_bus_call(client->bus, m, 0, &error, reply);
    if (r < 0) {
        result = pf_client_fail_call(client, what, &error, r);
    }
    sd_bus_error_free(&error);
    return result;
}

PfExit pf_remote_get_manager(PfClient *client, PfRemoteManager **ret)
{
    const char *what = _("portferryd's state");
    g_autoptr(PfRemoteManager) manager = pf_remote_manager_new();
    sd_bus_message *m = NULL, *reply = NULL;
    PfExit result;
    int r;

    result = pf_client_connect(client);
    if (result != PF_EXIT_OK) {
        return result;
    }
    r = sd_bus_message_new_method_call(client->bus, &m, PF_REMOTE_NAME, PF_REMOTE_PATH,
                                       "org.freedesktop.DBus.Properties", "GetAll");
    if (r >= 0) {
        r = sd_bus_message_append(m, "s", PF_REMOTE_MANAGER);
    }
    if (r >= 0) {
        result = call(client, what, m, &reply);
    }
    if (r >= 0 && result == PF_EXIT_OK) {
        r = pf_remote_manager_read(manager, reply);
    }
    sd_bus_message_unref(m);
    sd_bus_message_unref(reply);
    if (r < 0) {
        return pf_client_fail_call(client, what, NULL, r);
    }
    if (result == PF_EXIT_OK) {
        *ret = g_steal_pointer(&manager);
    }
    return result;
}

/* Reads a{oa{sa{sv}}}, all objects with all their interfaces. */
static int read_objects(sd_bus_message *m, GPtrArray *handovers)
{
    int r = sd_bus_message_enter_container(m, 'a', "{oa{sa{sv}}}");

    while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "oa{sa{sv}}")) > 0) {
        const char *path, *interface;

        if ((r = sd_bus_message_read(m, "o", &path)) < 0 ||
            (r = sd_bus_message_enter_container(m, 'a', "{sa{sv}}")) < 0) {
            return r;
        }
        while ((r = sd_bus_message_enter_container(m, 'e', "sa{sv}")) > 0) {
            if ((r = sd_bus_message_read(m, "s", &interface)) < 0) {
                return r;
            }
            if (g_str_equal(interface, PF_REMOTE_HANDOVER)) {
                PfRemoteHandover *h = pf_remote_handover_new(path);

                g_ptr_array_add(handovers, h);
                r = pf_remote_handover_read(h, m);
            } else {
                r = sd_bus_message_skip(m, "a{sv}");
            }
            if (r < 0 || (r = sd_bus_message_exit_container(m)) < 0) {
                return r;
            }
        }
        if (r < 0 || (r = sd_bus_message_exit_container(m)) < 0) {
            return r;
        }
        r = sd_bus_message_exit_container(m);
    }
    return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int compare_started(gconstpointer a, gconstpointer b)
{
    const PfRemoteHandover *x = *(PfRemoteHandover *const *)a;
    const PfRemoteHandover *y = *(PfRemoteHandover *const *)b;

    if (x->started_us != y->started_us) {
        return x->started_us < y->started_us ? -1 : 1;
    }
    return strcmp(x->id, y->id);
}

PfExit pf_remote_get_handovers(PfClient *client, GPtrArray **ret)
{
    const char *what = _("the list of handovers");
    g_autoptr(GPtrArray) handovers =
        g_ptr_array_new_with_free_func((GDestroyNotify)pf_remote_handover_free);
    sd_bus_message *m = NULL, *reply = NULL;
    PfExit result;
    int r;

    result = pf_client_connect(client);
    if (result != PF_EXIT_OK) {
        return result;
    }
    r = sd_bus_message_new_method_call(client->bus, &m, PF_REMOTE_NAME, PF_REMOTE_PATH,
                                       "org.freedesktop.DBus.ObjectManager", "GetManagedObjects");
    if (r >= 0) {
        result = call(client, what, m, &reply);
    }
    if (r >= 0 && result == PF_EXIT_OK) {
        r = read_objects(reply, handovers);
    }
    sd_bus_message_unref(m);
    sd_bus_message_unref(reply);
    if (r < 0) {
        return pf_client_fail_call(client, what, NULL, r);
    }
    if (result == PF_EXIT_OK) {
        g_ptr_array_sort(handovers, compare_started);
        *ret = g_steal_pointer(&handovers);
    }
    return result;
}

PfRemoteHandover *pf_remote_pick(GPtrArray *handovers, const char *name)
{
    PfRemoteHandover *best = NULL;

    g_return_val_if_fail(handovers != NULL, NULL);
    for (guint i = 0; i < handovers->len; i++) {
        PfRemoteHandover *h = g_ptr_array_index(handovers, i);

        if (g_str_equal(h->id, name)) {
            return h;
        }
        if (g_ascii_strcasecmp(h->uuid, name) == 0 || g_str_equal(h->domain, name)) {
            /* They come oldest first, so a later one wins, unless it alone has ended. */
            if (!best || pf_remote_is_ended(best) || !pf_remote_is_ended(h)) {
                best = h;
            }
        }
    }
    return best;
}

PfExit pf_remote_find(PfClient *client, const char *name, PfRemoteHandover **ret)
{
    g_autoptr(GPtrArray) handovers = NULL;
    PfExit result = pf_remote_get_handovers(client, &handovers);
    PfRemoteHandover *found;

    if (result != PF_EXIT_OK) {
        return result;
    }
    g_return_val_if_fail(handovers != NULL, PF_EXIT_FAILED);
    found = pf_remote_pick(handovers, name);
    if (!found) {
        g_autofree char *safe = pf_safe(name);

        return pf_client_fail(client, PF_EXIT_NOT_FOUND, "org.portferry1.Error.NotFound",
                              _("'portferry status' and 'portferry history' list them"),
                              _("there is no handover '%s', nor one of a domain of that name"),
                              safe);
    }
    g_ptr_array_set_free_func(handovers, NULL);
    for (guint i = 0; i < handovers->len; i++) {
        if (g_ptr_array_index(handovers, i) != found) {
            pf_remote_handover_free(g_ptr_array_index(handovers, i));
        }
    }
    *ret = found;
    return PF_EXIT_OK;
}

static PfJson *time_to_json(gint64 time_us)
{
    return time_us > 0 ? pf_json_integer(time_us) : pf_json_null();
}

PfJson *pf_remote_handover_to_json(const PfRemoteHandover *h)
{
    PfJson *json = pf_json_object();
    PfJson *ports = pf_json_array();
    PfJson *phases = pf_json_array();
    bool ended = pf_remote_is_ended(h);

    pf_json_set(json, "id", pf_json_string(h->id));
    pf_json_set(json, "object", pf_json_string(h->path));
    pf_json_set(json, "domain", pf_json_string(h->domain));
    pf_json_set(json, "uuid", pf_json_string(h->uuid));
    pf_json_set(json, "role", pf_json_string(h->role));
    pf_json_set(json, "open", pf_json_bool(!ended));
    pf_json_set(json, "phase", pf_json_string(h->phase));
    pf_json_set(json, "outcome", pf_json_string(pf_remote_outcome(h)));
    pf_json_set(json, "source", pf_json_string(h->source));
    pf_json_set(json, "destination", pf_json_string(h->destination));
    pf_json_set(json, "peer", pf_json_string(*h->peer ? h->peer : NULL));
    pf_json_set(json, "held", pf_json_bool(h->held));
    pf_json_set(json, "by_hand", pf_json_bool(h->by_hand));
    pf_json_set(json, "waiting", pf_json_string(*h->waiting ? h->waiting : NULL));
    pf_json_set(json, "started_us", time_to_json(h->started_us));
    pf_json_set(json, "ended_us", ended ? pf_json_integer(pf_remote_end(h)) : pf_json_null());
    pf_json_set(json, "deadline_us", time_to_json(h->deadline_us));
    pf_json_set(json, "last_error", pf_json_string(*h->last_error ? h->last_error : NULL));

    for (guint i = 0; i < h->ports->len; i++) {
        const PfRemotePort *port = &g_array_index(h->ports, PfRemotePort, i);
        PfJson *item = pf_json_object();

        pf_json_set(item, "iface_id", pf_json_string(port->iface_id));
        pf_json_set(item, "mac", pf_json_string(port->mac));
        pf_json_set(item, "state", pf_json_string(port->state));
        pf_json_add(ports, item);
    }
    pf_json_set(json, "ports", ports);

    for (guint i = 0; i < h->phases->len; i++) {
        const PfRemotePhase *phase = &g_array_index(h->phases, PfRemotePhase, i);
        PfJson *item = pf_json_object();

        pf_json_set(item, "phase", pf_json_string(phase->phase));
        pf_json_set(item, "began_us", pf_json_integer(phase->time_us));
        pf_json_set(item, "lasted_us",
                    i + 1 < h->phases->len ? pf_json_integer(phase[1].time_us - phase->time_us)
                                           : pf_json_null());
        pf_json_add(phases, item);
    }
    pf_json_set(json, "phases", phases);
    return json;
}

PfJson *pf_remote_manager_to_json(const PfRemoteManager *manager)
{
    PfJson *json = pf_json_object();
    PfJson *connections = pf_json_object();
    PfJson *counters = pf_json_object();

    pf_json_set(json, "version", pf_json_string(manager->version));
    pf_json_set(json, "hostname", pf_json_string(manager->hostname));
    pf_json_set(json, "chassis", pf_json_string(*manager->chassis ? manager->chassis : NULL));
    pf_json_set(connections, "libvirt", pf_json_string(manager->libvirt_state));
    pf_json_set(connections, "northbound", pf_json_string(manager->northbound_state));
    pf_json_set(connections, "southbound", pf_json_string(manager->southbound_state));
    pf_json_set(connections, "switch", pf_json_string(manager->switch_state));
    pf_json_set(json, "connections", connections);
    for (guint i = 0; i < manager->counter_names->len; i++) {
        pf_json_set(counters, g_ptr_array_index(manager->counter_names, i),
                    pf_json_integer((gint64)g_array_index(manager->counter_values, guint64, i)));
    }
    pf_json_set(json, "counters", counters);
    return json;
}
