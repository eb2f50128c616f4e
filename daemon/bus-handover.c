/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bus-internal.h"
#include "error.h"

static const char *shown(const char *text)
{
    return text != NULL ? text : "";
}

/* Properties and methods of one handover; userdata is its PfBusHandover. */

static int get_string(sd_bus *bus, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    static const struct {
        const char *property;
        gsize offset;
    } fields[] = {
        {"Id", offsetof(PfHandoverView, id)},
        {"Domain", offsetof(PfHandoverView, domain)},
        {"UUID", offsetof(PfHandoverView, uuid)},
        {"Role", offsetof(PfHandoverView, role)},
        {"Phase", offsetof(PfHandoverView, phase)},
        {"Source", offsetof(PfHandoverView, source)},
        {"Destination", offsetof(PfHandoverView, destination)},
        {"Peer", offsetof(PfHandoverView, peer)},
        {"LastError", offsetof(PfHandoverView, last_error)},
        {"Outcome", offsetof(PfHandoverView, outcome)},
        {"Waiting", offsetof(PfHandoverView, waiting)},
    };
    const PfHandoverView *view = ((PfBusHandover *)userdata)->view;

    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++) {
        if (strcmp(fields[i].property, property) == 0) {
            const char *value = *(const char *const *)((const char *)view + fields[i].offset);

            return sd_bus_message_append(reply, "s", shown(value));
        }
    }
    return -ENOENT;
}

static int get_time(sd_bus *bus, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    const PfHandoverView *view = ((PfBusHandover *)userdata)->view;
    gint64 time_us = strcmp(property, "Started") == 0 ? view->started_us
                     : strcmp(property, "Ended") == 0 ? view->ended_us
                                                      : view->deadline_us;

    return sd_bus_message_append(reply, "t", (guint64)time_us);
}

static int get_boolean(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    const PfHandoverView *view = ((PfBusHandover *)userdata)->view;

    return sd_bus_message_append(reply, "b",
                                 strcmp(property, "Held") == 0 ? view->held : view->by_hand);
}

static int get_ports(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    const PfHandoverView *view = ((PfBusHandover *)userdata)->view;
    int r;

    r = sd_bus_message_open_container(reply, 'a', "(sss)");
    for (gsize i = 0; r >= 0 && i < view->n_ports; i++)
        r = sd_bus_message_append(reply, "(sss)", shown(view->ports[i].iface_id),
                                  shown(view->ports[i].mac), shown(view->ports[i].state));
    if (r < 0)
        return r;
    return sd_bus_message_close_container(reply);
}

static int get_phases(sd_bus *bus, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    const PfHandoverView *view = ((PfBusHandover *)userdata)->view;
    int r;

    r = sd_bus_message_open_container(reply, 'a', "(st)");
    for (gsize i = 0; r >= 0 && i < view->n_phases; i++)
        r = sd_bus_message_append(reply, "(st)", shown(view->phases[i].phase),
                                  (guint64)view->phases[i].time_us);
    if (r < 0)
        return r;
    return sd_bus_message_close_container(reply);
}

static int on_activate(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    PfBusHandover *record = userdata;

    return pf_bus_call_begin(record->bus, m, PF_BUS_CALL_ACTIVATE, record->view->id);
}

static int on_rollback(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    PfBusHandover *record = userdata;

    return pf_bus_call_begin(record->bus, m, PF_BUS_CALL_ROLLBACK, record->view->id);
}

static int on_hold(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    PfBusHandover *record = userdata;

    return pf_bus_call_begin(record->bus, m, PF_BUS_CALL_HOLD, record->view->id);
}

static int on_release(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    PfBusHandover *record = userdata;

    return pf_bus_call_begin(record->bus, m, PF_BUS_CALL_RELEASE, record->view->id);
}

static int on_forget(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    PfBusHandover *record = userdata;

    return pf_bus_call_begin(record->bus, m, PF_BUS_CALL_FORGET, record->view->id);
}

static const sd_bus_vtable handover_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Id", "s", get_string, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Domain", "s", get_string, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("UUID", "s", get_string, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Role", "s", get_string, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("ByHand", "b", get_boolean, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Started", "t", get_time, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Ended", "t", get_time, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Outcome", "s", get_string, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Phase", "s", get_string, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Phases", "a(st)", get_phases, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Waiting", "s", get_string, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Deadline", "t", get_time, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Held", "b", get_boolean, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Source", "s", get_string, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Destination", "s", get_string, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Peer", "s", get_string, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Ports", "a(sss)", get_ports, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("LastError", "s", get_string, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),

    /* UNPRIVILEGED as far as sd-bus is concerned: pf_bus_call_begin() checks the caller. */
    SD_BUS_METHOD_WITH_ARGS("Activate", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_activate,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Rollback", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_rollback,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Hold", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_hold,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Release", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_release,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Forget", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_forget,
                            SD_BUS_VTABLE_UNPRIVILEGED),

    SD_BUS_SIGNAL_WITH_ARGS("PhaseChanged", SD_BUS_ARGS("s", old, "s", new, "t", time), 0),
    SD_BUS_VTABLE_END,
};

void pf_bus_handover_attach(PfBusHandover *record)
{
    if (record->bus->bus == NULL || record->slot != NULL)
        return;

    sd_bus_add_object_vtable(record->bus->bus, &record->slot, record->path,
                             PF_BUS_HANDOVER_INTERFACE, handover_vtable, record);
}

void pf_bus_handover_detach(PfBusHandover *record)
{
    record->slot = sd_bus_slot_unref(record->slot);
}

void pf_bus_handover_free(PfBusHandover *record)
{
    pf_bus_handover_detach(record);
    g_free(record->path);
    g_free(record->phase);
    g_free(record);
}

static PfBusHandover *find_record(PfBus *self, const PfHandoverView *view, guint *index)
{
    for (guint i = 0; i < self->records->len; i++) {
        PfBusHandover *record = g_ptr_array_index(self->records, i);

        if (record->view == view) {
            *index = i;
            return record;
        }
    }
    return NULL;
}

const PfHandoverView *pf_bus_find_handover(const PfBus *self, const char *id)
{
    for (guint i = 0; i < self->records->len; i++) {
        const PfBusHandover *record = g_ptr_array_index(self->records, i);

        if (g_strcmp0(record->view->id, id) == 0)
            return record->view;
    }
    return NULL;
}

void pf_bus_handover_added(PfBus *self, const PfHandoverView *view)
{
    PfBusHandover *record;
    char *path = NULL;
    guint index;

    g_return_if_fail(find_record(self, view, &index) == NULL);

    /* Ids may hold characters that a path may not. */
    if (sd_bus_path_encode(PF_BUS_HANDOVER_PREFIX, shown(view->id), &path) < 0)
        return;

    record = g_new0(PfBusHandover, 1);
    record->bus = self;
    record->view = view;
    record->path = g_strdup(path);
    record->phase = g_strdup(shown(view->phase));
    free(path);
    g_ptr_array_add(self->records, record);

    if (!pf_bus_is_open(self))
        return;

    pf_bus_handover_attach(record);
    sd_bus_emit_object_added(self->bus, record->path);
    sd_bus_emit_signal(self->bus, PF_BUS_PATH, PF_BUS_MANAGER_INTERFACE, "HandoverAdded", "o",
                       record->path);
}

void pf_bus_handover_changed(PfBus *self, const PfHandoverView *view, PfHandoverChange what)
{
    PfBusHandover *record;
    const char *names[16];
    gsize n = 0;
    guint index;

    record = find_record(self, view, &index);
    g_return_if_fail(record != NULL);

    if ((what & PF_HANDOVER_PHASE) && strcmp(record->phase, shown(view->phase)) != 0) {
        g_autofree char *old = g_steal_pointer(&record->phase);
        gint64 time_us =
            view->n_phases > 0 ? view->phases[view->n_phases - 1].time_us : g_get_real_time();

        record->phase = g_strdup(shown(view->phase));
        if (pf_bus_is_open(self))
            sd_bus_emit_signal(self->bus, record->path, PF_BUS_HANDOVER_INTERFACE, "PhaseChanged",
                               "sst", old, record->phase, (guint64)time_us);
    }

    if (what & PF_HANDOVER_PHASE) {
        names[n++] = "Phase";
        names[n++] = "Phases";
        if (view->ended_us != 0) {
            names[n++] = "Ended";
            names[n++] = "Outcome";
        }
    }
    if (what & PF_HANDOVER_PORTS)
        names[n++] = "Ports";
    if (what & PF_HANDOVER_DOMAIN)
        names[n++] = "Domain";
    if (what & PF_HANDOVER_HOSTS) {
        names[n++] = "Source";
        names[n++] = "Destination";
        names[n++] = "Peer";
    }
    if (what & PF_HANDOVER_ERROR)
        names[n++] = "LastError";
    if (what & PF_HANDOVER_HELD)
        names[n++] = "Held";
    if (what & PF_HANDOVER_DEADLINE)
        names[n++] = "Deadline";
    if (what & PF_HANDOVER_WAITING)
        names[n++] = "Waiting";
    names[n] = NULL;

    if (n > 0 && pf_bus_is_open(self))
        sd_bus_emit_properties_changed_strv(self->bus, record->path, PF_BUS_HANDOVER_INTERFACE,
                                            (char **)names);
}

void pf_bus_handover_removed(PfBus *self, const PfHandoverView *view)
{
    PfBusHandover *record;
    guint index;

    record = find_record(self, view, &index);
    g_return_if_fail(record != NULL);

    if (pf_bus_is_open(self)) {
        /* Both while the object still answers: sd-bus looks its interfaces up. */
        sd_bus_emit_object_removed(self->bus, record->path);
        sd_bus_emit_signal(self->bus, PF_BUS_PATH, PF_BUS_MANAGER_INTERFACE, "HandoverRemoved", "o",
                           record->path);
    }
    g_ptr_array_remove_index(self->records, index);
}

/* The manager's methods that read the list */

int pf_bus_list_handovers(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    PfBus *self = userdata;
    sd_bus_message *reply = NULL;
    int r;

    r = sd_bus_message_new_method_return(m, &reply);
    if (r >= 0)
        r = sd_bus_message_open_container(reply, 'a', "(osssss)");
    for (guint i = 0; r >= 0 && i < self->records->len; i++) {
        const PfBusHandover *record = g_ptr_array_index(self->records, i);
        const PfHandoverView *view = record->view;

        r = sd_bus_message_append(reply, "(osssss)", record->path, shown(view->id),
                                  shown(view->domain), shown(view->uuid), shown(view->role),
                                  shown(view->phase));
    }
    if (r >= 0)
        r = sd_bus_message_close_container(reply);
    if (r >= 0)
        r = sd_bus_send(NULL, reply, NULL);
    sd_bus_message_unref(reply);
    return r;
}

static int compare_ends(gconstpointer a, gconstpointer b)
{
    gint64 first = (*(const PfBusHandover *const *)a)->view->ended_us;
    gint64 second = (*(const PfBusHandover *const *)b)->view->ended_us;

    return first < second ? 1 : first > second ? -1 : 0;
}

int pf_bus_list_history(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    PfBus *self = userdata;
    g_autoptr(GPtrArray) ended = g_ptr_array_new();
    sd_bus_message *reply = NULL;
    int r;

    for (guint i = 0; i < self->records->len; i++) {
        PfBusHandover *record = g_ptr_array_index(self->records, i);

        if (record->view->ended_us != 0)
            g_ptr_array_add(ended, record);
    }
    g_ptr_array_sort(ended, compare_ends);

    r = sd_bus_message_new_method_return(m, &reply);
    if (r >= 0)
        r = sd_bus_message_open_container(reply, 'a', "(ossssssttss)");
    for (guint i = 0; r >= 0 && i < ended->len; i++) {
        const PfBusHandover *record = g_ptr_array_index(ended, i);
        const PfHandoverView *view = record->view;

        r = sd_bus_message_append(reply, "(ossssssttss)", record->path, shown(view->id),
                                  shown(view->domain), shown(view->uuid), shown(view->role),
                                  shown(view->source), shown(view->destination),
                                  (guint64)view->started_us, (guint64)view->ended_us,
                                  shown(view->outcome), shown(view->last_error));
    }
    if (r >= 0)
        r = sd_bus_message_close_container(reply);
    if (r >= 0)
        r = sd_bus_send(NULL, reply, NULL);
    sd_bus_message_unref(reply);
    return r;
}

int pf_bus_get_handover_by_domain(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    PfBus *self = userdata;
    const PfBusHandover *found = NULL;
    const char *domain;
    int r;

    r = sd_bus_message_read(m, "s", &domain);
    if (r < 0)
        return r;

    /* A name may be given to another domain while an old handover is still shown; a UUID may not.
     * Of several, the youngest is meant. */
    for (guint i = 0; i < self->records->len; i++) {
        const PfBusHandover *record = g_ptr_array_index(self->records, i);

        if ((g_ascii_strcasecmp(shown(record->view->uuid), domain) == 0 ||
             strcmp(shown(record->view->domain), domain) == 0) &&
            (found == NULL || record->view->started_us >= found->view->started_us))
            found = record;
    }

    if (found == NULL) {
        return sd_bus_error_setf(error, pf_error_code_to_dbus_name(PF_ERROR_NOT_FOUND),
                                 "There is no handover of domain '%s'", domain);
    }

    return sd_bus_reply_method_return(m, "o", found->path);
}
