/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bus.h"

#include <errno.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "bus-internal.h"
#include "error.h"
#include "log.h"
#include "message-ids.h"
#include "metrics.h"
#include "polkit.h"

#define RETRY_FIRST_MS 200
#define RETRY_MAX_MS 5000

/* How long the bus itself may take to say who a caller is, or to give us the name. */
#define BUS_TIMEOUT_US (10 * G_USEC_PER_SEC)

/* D-Bus error texts may come from deep inside; what an operator sees is one line. */
#define MAX_ERROR_TEXT 1024

/* How many calls of others than root may wait for polkit at the same time: they cost memory, and
 * anybody may call. */
#define MAX_UNDECIDED 64

/* polkit's actions (data/org.portferry1.policy); what has none is for root alone. */
static const char *const actions[PF_BUS_N_CALLS] = {
    [PF_BUS_CALL_ACTIVATE] = "org.portferry1.activate",
    [PF_BUS_CALL_ROLLBACK] = "org.portferry1.rollback",
    [PF_BUS_CALL_HOLD] = "org.portferry1.hold",
    [PF_BUS_CALL_RELEASE] = "org.portferry1.hold",
    [PF_BUS_CALL_PREPLUG] = "org.portferry1.preplug",
    [PF_BUS_CALL_RELOAD] = "org.portferry1.reload",
    [PF_BUS_CALL_FORGET] = "org.portferry1.forget",
};

struct PfBusCall {
    PfBus *bus;              /* NULL: nobody waits any longer */
    sd_bus_message *message; /* NULL likewise */
    PfBusCallKind kind;
    char *id;
    guint32 uid;           /* the caller's, once it is known */
    sd_bus_slot *check;    /* the question who the caller is, while it is open */
    PfPolkitCheck *polkit; /* the question whether it may, while it is open */
    gboolean handed_on;    /* the manager has it */
    char *handover;        /* for the reply */
    char **strings;        /* likewise */
    PfBusCallGone gone;
    gpointer gone_userdata;
};

static void schedule_drop(PfBus *self, const char *why);

/* Calls */

static void call_free(PfBusCall *call)
{
    sd_bus_slot_unref(call->check);
    pf_polkit_cancel(call->polkit);
    sd_bus_message_unref(call->message);
    g_free(call->id);
    g_free(call->handover);
    g_strfreev(call->strings);
    g_free(call);
}

/* Nobody waits for 'call' any longer.  It has been taken off the list of calls before. */
static void call_abandon(PfBusCall *call)
{
    PfBusCallGone gone = call->gone;

    call->bus = NULL;
    call->message = sd_bus_message_unref(call->message);
    if (!call->handed_on) {
        call_free(call);
        return;
    }

    call->gone = NULL;
    if (gone != NULL)
        gone(call, call->gone_userdata);
}

static void abandon_all_calls(PfBus *self)
{
    /* gone() may end other calls, so look at the list anew each time. */
    while (self->calls->len > 0)
        call_abandon(g_ptr_array_steal_index(self->calls, self->calls->len - 1));
}

static void call_forget(PfBusCall *call)
{
    if (call->bus != NULL)
        g_ptr_array_remove_fast(call->bus->calls, call);
    call_free(call);
}

void pf_bus_call_set_handover(PfBusCall *call, const char *id)
{
    g_free(call->handover);
    call->handover = g_strdup(id);
}

void pf_bus_call_set_strings(PfBusCall *call, const char *const *strings)
{
    g_strfreev(call->strings);
    call->strings = g_strdupv((char **)strings);
}

static int append_result(const PfBusCall *call, sd_bus_message *reply)
{
    char *path = NULL;
    int r;

    if (call->kind == PF_BUS_CALL_RELOAD)
        return sd_bus_message_append_strv(reply, call->strings);
    if (call->kind != PF_BUS_CALL_PREPLUG)
        return 0;

    r = sd_bus_path_encode(PF_BUS_HANDOVER_PREFIX, call->handover != NULL ? call->handover : "",
                           &path);
    if (r >= 0)
        r = sd_bus_message_append(reply, "o", path);
    free(path);
    return r;
}

void pf_bus_call_reply(PfBusCall *call)
{
    if (call->message != NULL) {
        sd_bus_message *reply = NULL;

        if (sd_bus_message_new_method_return(call->message, &reply) >= 0 &&
            append_result(call, reply) >= 0)
            sd_bus_send(NULL, reply, NULL);
        sd_bus_message_unref(reply);
    }
    call_forget(call);
}

void pf_bus_call_fail(PfBusCall *call, const GError *error)
{
    if (call->message != NULL) {
        g_autofree char *story = pf_error_describe(error);
        g_autofree char *text = pf_log_one_line(story, MAX_ERROR_TEXT);

        sd_bus_reply_method_errorf(call->message, pf_error_to_dbus_name(error), "%s", text);
    }
    call_forget(call);
}

void pf_bus_call_drop(PfBusCall *call)
{
    call_forget(call);
}

void pf_bus_call_set_gone(PfBusCall *call, PfBusCallGone gone, gpointer userdata)
{
    call->gone = gone;
    call->gone_userdata = userdata;
}

gboolean pf_bus_call_is_gone(const PfBusCall *call)
{
    return call->message == NULL;
}

static void hand_on_preplug(PfBusCall *call)
{
    PfBus *self = call->bus;
    const char *uuid = NULL, *source = NULL, *port = NULL;
    g_autoptr(GPtrArray) array = g_ptr_array_new();
    int r;

    if ((r = sd_bus_message_read(call->message, "s", &uuid)) < 0 ||
        (r = sd_bus_message_enter_container(call->message, 'a', "s")) < 0)
        goto fail;
    while ((r = sd_bus_message_read(call->message, "s", &port)) > 0)
        g_ptr_array_add(array, (gpointer)port);
    g_ptr_array_add(array, NULL);
    if (r < 0 || (r = sd_bus_message_exit_container(call->message)) < 0 ||
        (r = sd_bus_message_read(call->message, "s", &source)) < 0)
        goto fail;

    call->handed_on = TRUE;
    self->ops->preplug(call, uuid, (const char *const *)array->pdata, source, self->userdata);
    return;

fail:
    sd_bus_reply_method_errno(call->message, r, NULL);
    call_forget(call);
}

static void hand_on_operator(PfBusCall *call)
{
    PfBus *self = call->bus;
    const PfBusOps *ops = self->ops;

    pf_log(LOG_NOTICE, &(PfLogFields){.handover = call->id},
           "%s%s%s: called by user %" G_GUINT32_FORMAT, sd_bus_message_get_member(call->message),
           call->id != NULL ? " on handover " : "", call->id != NULL ? call->id : "", call->uid);

    if (call->kind == PF_BUS_CALL_PREPLUG) {
        hand_on_preplug(call);
        return;
    }

    call->handed_on = TRUE;
    if (call->kind == PF_BUS_CALL_RELOAD)
        ops->reload(call, self->userdata);
    else if (call->kind == PF_BUS_CALL_ACTIVATE)
        ops->activate(call, call->id, self->userdata);
    else if (call->kind == PF_BUS_CALL_ROLLBACK)
        ops->rollback(call, call->id, self->userdata);
    else if (call->kind == PF_BUS_CALL_HOLD)
        ops->hold(call, call->id, self->userdata);
    else if (call->kind == PF_BUS_CALL_RELEASE)
        ops->release(call, call->id, self->userdata);
    else
        ops->forget(call, call->id, self->userdata);
}

static void call_hand_on(PfBusCall *call)
{
    PfBus *self = call->bus;
    g_autoptr(GBytes) xml = NULL;
    const char *domain = NULL;
    const void *data = NULL;
    size_t size = 0;
    int r;

    if (actions[call->kind] != NULL) {
        hand_on_operator(call);
        return;
    }

    r = sd_bus_message_read(call->message, "s", &domain);
    if (r >= 0)
        r = sd_bus_message_read_array(call->message, 'y', &data, &size);
    if (r < 0) {
        sd_bus_reply_method_errno(call->message, r, NULL);
        call_forget(call);
        return;
    }
    xml = g_bytes_new(data, size);

    if (call->kind == PF_BUS_CALL_RELEASED) {
        g_autofree char *name = g_strdup(domain);

        /* libvirtd may stand still until the hook ends, so the hook gets its answer first. */
        pf_bus_call_reply(call);
        self->ops->released(name, xml, self->userdata);
        return;
    }

    call->handed_on = TRUE;
    if (call->kind == PF_BUS_CALL_MIGRATE_BEGIN)
        self->ops->migrate_begin(call, domain, xml, self->userdata);
    else
        self->ops->started_begin(call, domain, xml, self->userdata);
}

static void G_GNUC_PRINTF(3, 4) call_refuse(PfBusCall *call, PfError code, const char *format, ...)
{
    g_autoptr(GError) error = NULL;
    va_list args;

    va_start(args, format);
    error = g_error_new_valist(PF_ERROR, (gint)code, format, args);
    va_end(args);
    g_prefix_error(&error, "%s: ", sd_bus_message_get_member(call->message));
    pf_bus_call_fail(call, error);
}

static void on_polkit_answer(PfPolkitAnswer answer, const char *why, void *userdata)
{
    PfBusCall *call = userdata;

    call->polkit = NULL;
    switch (answer) {
    case PF_POLKIT_ALLOWED:
        call_hand_on(call);
        break;
    case PF_POLKIT_DENIED:
        call_refuse(call, PF_ERROR_DENIED, "%s", why);
        break;
    case PF_POLKIT_CHALLENGE:
        /* The name that clients know, and offer to ask for a password at. */
        sd_bus_reply_method_errorf(call->message, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                                   "%s: %s", sd_bus_message_get_member(call->message), why);
        call_forget(call);
        break;
    case PF_POLKIT_SILENT:
        call_refuse(call, PF_ERROR_TIMEOUT, "%s", why);
        break;
    case PF_POLKIT_ABSENT:
        call_refuse(call, PF_ERROR_DENIED, "only root may do that, since %s", why);
        break;
    }
}

static void ask_polkit(PfBusCall *call)
{
    const PfHandoverView *view =
        call->id != NULL ? pf_bus_find_handover(call->bus, call->id) : NULL;
    const char *domain = view == NULL ? "" : view->domain != NULL ? view->domain : view->uuid;
    g_autofree char *shown = NULL;
    guint undecided = 0;

    for (guint i = 0; i < call->bus->calls->len; i++)
        undecided += ((PfBusCall *)g_ptr_array_index(call->bus->calls, i))->polkit != NULL;
    if (undecided >= MAX_UNDECIDED) {
        sd_bus_reply_method_errorf(call->message, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                   "Too many calls wait for polkit's answer");
        call_forget(call);
        return;
    }

    if (call->kind == PF_BUS_CALL_PREPLUG) {
        sd_bus_message_read(call->message, "s", &domain);
        sd_bus_message_rewind(call->message, 1);
    }
    shown = pf_log_one_line(domain, MAX_ERROR_TEXT);

    call->polkit = pf_polkit_check(
        call->bus->bus, sd_bus_message_get_sender(call->message), actions[call->kind],
        (const char *const[]){"domain", shown, "handover", call->id != NULL ? call->id : "", NULL},
        sd_bus_message_get_allow_interactive_authorization(call->message) > 0, on_polkit_answer,
        call);
    if (call->polkit == NULL)
        call_refuse(call, PF_ERROR_FAILED, "polkit can't be asked");
}

static int on_caller_known(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    PfBusCall *call = userdata;

    call->check = sd_bus_slot_unref(call->check);

    if (sd_bus_message_is_method_error(reply, NULL) ||
        sd_bus_message_read(reply, "u", &call->uid) < 0)
        call_refuse(call, PF_ERROR_DENIED, "the bus does not say who calls");
    else if (call->uid == 0 || call->uid == geteuid())
        call_hand_on(call);
    else if (actions[call->kind] != NULL)
        ask_polkit(call);
    else
        call_refuse(call, PF_ERROR_DENIED, "only root may do that");
    return 0;
}

int pf_bus_call_begin(PfBus *self, sd_bus_message *m, PfBusCallKind kind, const char *id)
{
    sd_bus_message *query = NULL;
    PfBusCall *call;
    int r;

    /*
     * sd-bus would check the caller by itself (a method without SD_BUS_VTABLE_UNPRIVILEGED), but
     * by a call to the bus that it waits for, up to 25 s.
     */
    r = sd_bus_message_new_method_call(self->bus, &query, "org.freedesktop.DBus",
                                       "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                       "GetConnectionUnixUser");
    if (r < 0)
        return r;

    call = g_new0(PfBusCall, 1);
    call->bus = self;
    call->kind = kind;
    call->message = sd_bus_message_ref(m);
    call->id = g_strdup(id);

    r = sd_bus_message_append(query, "s", sd_bus_message_get_sender(m));
    if (r >= 0)
        r = sd_bus_call_async(self->bus, &call->check, query, on_caller_known, call,
                              BUS_TIMEOUT_US);
    sd_bus_message_unref(query);
    if (r < 0) {
        call_free(call);
        return r;
    }

    g_ptr_array_add(self->calls, call);
    return 1;
}

/* A connection left the bus: NameOwnerChanged with no new owner. */
static int on_name_gone(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    PfBus *self = userdata;
    const char *name;

    if (sd_bus_message_read(m, "s", &name) < 0 || name[0] != ':')
        return 0;

    for (guint i = 0; i < self->calls->len;) {
        PfBusCall *call = g_ptr_array_index(self->calls, i);

        if (g_strcmp0(sd_bus_message_get_sender(call->message), name) == 0) {
            call_abandon(g_ptr_array_steal_index(self->calls, i));
            i = 0; /* gone() may have ended others */
        } else {
            i++;
        }
    }
    return 0;
}

/* The manager's object */

static int get_counters(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    const PfManagerView *view = ((PfBus *)userdata)->view;
    int r;

    r = sd_bus_message_open_container(reply, 'a', "{st}");
    for (gsize i = 0; r >= 0 && i < view->n_counters; i++)
        r = sd_bus_message_append(reply, "{st}", view->counters[i].name, view->counters[i].value);
    if (r < 0)
        return r;
    return sd_bus_message_close_container(reply);
}

static void append_sample(const char *name, const char *const *labels, double value, gpointer data)
{
    sd_bus_message *reply = data;

    /* What fails once makes all that follows fail, the closing of the array included. */
    if (sd_bus_message_open_container(reply, 'r', "sa{ss}d") < 0 ||
        sd_bus_message_append(reply, "s", name) < 0 ||
        sd_bus_message_open_container(reply, 'a', "{ss}") < 0)
        return;
    for (; labels[0] != NULL; labels += 2)
        sd_bus_message_append(reply, "{ss}", labels[0], labels[1]);
    sd_bus_message_close_container(reply);
    sd_bus_message_append(reply, "d", value);
    sd_bus_message_close_container(reply);
}

static int get_metrics(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    const PfManagerView *view = ((PfBus *)userdata)->view;
    int r;

    r = sd_bus_message_open_container(reply, 'a', "(sa{ss}d)");
    if (r < 0)
        return r;
    if (view->metrics != NULL)
        pf_metrics_foreach(view->metrics, append_sample, reply);
    return sd_bus_message_close_container(reply);
}

static int on_migrate_begin(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    return pf_bus_call_begin(userdata, m, PF_BUS_CALL_MIGRATE_BEGIN, NULL);
}

static int on_started_begin(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    return pf_bus_call_begin(userdata, m, PF_BUS_CALL_STARTED_BEGIN, NULL);
}

static int on_released(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    return pf_bus_call_begin(userdata, m, PF_BUS_CALL_RELEASED, NULL);
}

static int on_preplug(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    return pf_bus_call_begin(userdata, m, PF_BUS_CALL_PREPLUG, NULL);
}

static int on_reload(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    return pf_bus_call_begin(userdata, m, PF_BUS_CALL_RELOAD, NULL);
}

/*
 * sd-bus keeps methods and properties of an interface in one table with one userdata.  The methods
 * need the PfBus, the properties the view; a string's address is therefore found by name.
 */
static int get_manager_string(sd_bus *bus, const char *path, const char *interface,
                              const char *property, sd_bus_message *reply, void *userdata,
                              sd_bus_error *error)
{
    static const struct {
        const char *property;
        gsize offset;
    } fields[] = {
        {"Version", offsetof(PfManagerView, version)},
        {"Hostname", offsetof(PfManagerView, hostname)},
        {"Chassis", offsetof(PfManagerView, chassis)},
        {"LibvirtState", offsetof(PfManagerView, libvirt_state)},
        {"NorthboundState", offsetof(PfManagerView, northbound_state)},
        {"SouthboundState", offsetof(PfManagerView, southbound_state)},
        {"SwitchState", offsetof(PfManagerView, switch_state)},
    };
    const PfManagerView *view = ((PfBus *)userdata)->view;

    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++) {
        if (strcmp(fields[i].property, property) == 0) {
            const char *value = *(const char *const *)((const char *)view + fields[i].offset);

            return sd_bus_message_append(reply, "s", value != NULL ? value : "");
        }
    }
    return -ENOENT;
}

static const sd_bus_vtable manager_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Version", "s", get_manager_string, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Hostname", "s", get_manager_string, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Chassis", "s", get_manager_string, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("LibvirtState", "s", get_manager_string, 0,
                    SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("NorthboundState", "s", get_manager_string, 0,
                    SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("SouthboundState", "s", get_manager_string, 0,
                    SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("SwitchState", "s", get_manager_string, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Counters", "a{st}", get_counters, 0, 0),
    SD_BUS_PROPERTY("Metrics", "a(sa{ss}d)", get_metrics, 0, 0),

    SD_BUS_METHOD_WITH_ARGS("ListHandovers", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(osssss)", handovers),
                            pf_bus_list_handovers, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("GetHandoverByDomain", SD_BUS_ARGS("s", domain),
                            SD_BUS_RESULT("o", handover), pf_bus_get_handover_by_domain,
                            SD_BUS_VTABLE_UNPRIVILEGED),

    SD_BUS_METHOD_WITH_ARGS("ListHistory", SD_BUS_NO_ARGS,
                            SD_BUS_RESULT("a(ossssssttss)", handovers), pf_bus_list_history,
                            SD_BUS_VTABLE_UNPRIVILEGED),

    /* UNPRIVILEGED as far as sd-bus is concerned: pf_bus_call_begin() checks the caller. */
    SD_BUS_METHOD_WITH_ARGS("PrePlug", SD_BUS_ARGS("s", domain, "as", ports, "s", source),
                            SD_BUS_RESULT("o", handover), on_preplug, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_RESULT("as", need_restart), on_reload,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("MigrateBegin", SD_BUS_ARGS("s", domain, "ay", xml), SD_BUS_NO_RESULT,
                            on_migrate_begin, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("StartedBegin", SD_BUS_ARGS("s", domain, "ay", xml), SD_BUS_NO_RESULT,
                            on_started_begin, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Released", SD_BUS_ARGS("s", domain, "ay", xml), SD_BUS_NO_RESULT,
                            on_released, SD_BUS_VTABLE_UNPRIVILEGED),

    SD_BUS_SIGNAL_WITH_ARGS("HandoverAdded", SD_BUS_ARGS("o", handover), 0),
    SD_BUS_SIGNAL_WITH_ARGS("HandoverRemoved", SD_BUS_ARGS("o", handover), 0),
    SD_BUS_VTABLE_END,
};

void pf_bus_manager_changed(PfBus *self, PfManagerChange what)
{
    const char *names[8];
    gsize n = 0;

    if (!pf_bus_is_open(self))
        return;

    if (what & PF_MANAGER_CHASSIS)
        names[n++] = "Chassis";
    if (what & PF_MANAGER_LIBVIRT)
        names[n++] = "LibvirtState";
    if (what & PF_MANAGER_NORTHBOUND)
        names[n++] = "NorthboundState";
    if (what & PF_MANAGER_SOUTHBOUND)
        names[n++] = "SouthboundState";
    if (what & PF_MANAGER_SWITCH)
        names[n++] = "SwitchState";
    names[n] = NULL;

    if (n > 0)
        sd_bus_emit_properties_changed_strv(self->bus, PF_BUS_PATH, PF_BUS_MANAGER_INTERFACE,
                                            (char **)names);
}

/* The connection */

gboolean pf_bus_is_open(const PfBus *self)
{
    return self->bus != NULL && sd_bus_is_open(self->bus) > 0;
}

static int on_name_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    enum { PRIMARY_OWNER = 1, ALREADY_OWNER = 4 }; /* the reply to RequestName, D-Bus spec */
    PfBus *self = userdata;
    g_autoptr(GError) fatal = NULL;
    guint32 answer = 0;

    if (sd_bus_message_is_method_error(reply, NULL)) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        if (sd_bus_error_has_name(e, SD_BUS_ERROR_ACCESS_DENIED)) {
            g_set_error(&fatal, PF_ERROR, PF_ERROR_DENIED,
                        "The bus does not let this process own %s: %s", PF_BUS_NAME, e->message);
            self->ops->fatal(fatal, self->userdata);
        } else {
            schedule_drop(self, e->message);
        }
        return 0;
    }

    if (sd_bus_message_read(reply, "u", &answer) < 0 ||
        (answer != PRIMARY_OWNER && answer != ALREADY_OWNER)) {
        g_set_error(&fatal, PF_ERROR, PF_ERROR_BUSY,
                    "Another portferryd runs: the bus name %s is taken", PF_BUS_NAME);
        self->ops->fatal(fatal, self->userdata);
        return 0;
    }

    self->acquired = TRUE;
    self->attempts = 0;
    if (self->loss_logged)
        pf_log(LOG_NOTICE, NULL, "Connected to the bus again");
    self->loss_logged = FALSE;
    self->ops->acquired(self->userdata);
    return 0;
}

static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    schedule_drop(userdata, "the bus closed the connection");
    return 0;
}

static int ignore_reply(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    return 0;
}

static int connection_open(PfBus *self)
{
    sd_bus *bus = NULL;
    const char *address = self->address;
    int r;

    if (address == NULL)
        address = g_getenv("DBUS_SYSTEM_BUS_ADDRESS");
    if (address == NULL)
        address = "unix:path=/run/dbus/system_bus_socket";

    r = sd_bus_new(&bus);
    if (r < 0)
        return r;

    self->bus = bus;
    sd_bus_set_description(bus, "portferryd");
    sd_bus_set_exit_on_disconnect(bus, 0);
    if ((r = sd_bus_set_address(bus, address)) < 0 || (r = sd_bus_set_bus_client(bus, 1)) < 0 ||
        (r = sd_bus_start(bus)) < 0)
        return r;

    /* All of this is queued until the bus has greeted us; the name comes last, so that whoever
     * sees it finds the objects there. */
    if ((r = sd_bus_match_signal(bus, NULL, "org.freedesktop.DBus.Local",
                                 "/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local",
                                 "Disconnected", on_disconnected, self)) < 0 ||
        (r = sd_bus_add_match_async(bus, NULL,
                                    "type='signal',sender='org.freedesktop.DBus',"
                                    "path='/org/freedesktop/DBus',"
                                    "interface='org.freedesktop.DBus',"
                                    "member='NameOwnerChanged',arg2=''",
                                    on_name_gone, ignore_reply, self)) < 0 ||
        (r = sd_bus_add_object_manager(bus, NULL, PF_BUS_PATH)) < 0 ||
        (r = sd_bus_add_object_vtable(bus, NULL, PF_BUS_PATH, PF_BUS_MANAGER_INTERFACE,
                                      manager_vtable, self)) < 0 ||
        (r = pf_bus_add_log_control(bus)) < 0)
        return r;

    for (guint i = 0; i < self->records->len; i++)
        pf_bus_handover_attach(g_ptr_array_index(self->records, i));

    r = sd_bus_request_name_async(bus, NULL, PF_BUS_NAME, 0, on_name_reply, self);
    if (r < 0)
        return r;

    return sd_bus_attach_event(bus, self->event, SD_EVENT_PRIORITY_NORMAL);
}

static void connection_close(PfBus *self)
{
    for (guint i = 0; i < self->records->len; i++)
        pf_bus_handover_detach(g_ptr_array_index(self->records, i));

    self->acquired = FALSE;
    self->bus = sd_bus_close_unref(self->bus);
}

static gboolean on_retry(gpointer userdata)
{
    PfBus *self = userdata;
    int r;

    self->retry_id = 0;
    self->attempts++;
    r = connection_open(self);
    if (r < 0)
        schedule_drop(self, g_strerror(-r));
    return G_SOURCE_REMOVE;
}

static void schedule_retry(PfBus *self)
{
    guint delay = RETRY_FIRST_MS << MIN(self->attempts, 5);

    /* Many hosts may lose their bus at the same moment (an upgrade): spread them. */
    delay = MIN(delay, RETRY_MAX_MS);
    delay = delay * 3 / 4 + (guint)g_random_int_range(0, (gint32)delay / 2);
    self->retry_id = g_timeout_add(delay, on_retry, self);
}

static gboolean on_drop(gpointer userdata)
{
    PfBus *self = userdata;
    gboolean was_acquired = self->acquired;
    g_autofree char *why = g_steal_pointer(&self->why);

    self->idle_id = 0;
    abandon_all_calls(self);
    connection_close(self);

    /* The receiver of lost() reports that; what remains is a bus that isn't there in the first
     * place, which is reported once. */
    if (!was_acquired && !self->loss_logged)
        pf_log(LOG_WARNING, &(PfLogFields){.message_id = PF_MESSAGE_BUS_LOST},
               "Cannot reach the bus: %s; trying again", why);
    self->loss_logged = TRUE;

    schedule_retry(self);
    if (was_acquired)
        self->ops->lost(why, self->userdata);
    return G_SOURCE_REMOVE;
}

/* A connection can't be freed inside one of its own callbacks. */
static void schedule_drop(PfBus *self, const char *why)
{
    if (self->idle_id != 0)
        return;

    self->why = g_strdup(why);
    self->idle_id = g_idle_add_full(G_PRIORITY_DEFAULT, on_drop, self, NULL);
}

PfBus *pf_bus_new(sd_event *event, const char *address, const PfManagerView *view,
                  const PfBusOps *ops, gpointer userdata)
{
    PfBus *self = g_new0(PfBus, 1);

    self->event = sd_event_ref(event);
    self->address = g_strdup(address);
    self->view = view;
    self->ops = ops;
    self->userdata = userdata;
    self->records = g_ptr_array_new_with_free_func((GDestroyNotify)pf_bus_handover_free);
    self->calls = g_ptr_array_new();
    return self;
}

void pf_bus_start(PfBus *self)
{
    if (self->bus == NULL && self->retry_id == 0 && self->idle_id == 0)
        on_retry(self);
}

void pf_bus_free(PfBus *self)
{
    if (self == NULL)
        return;

    g_clear_handle_id(&self->retry_id, g_source_remove);
    g_clear_handle_id(&self->idle_id, g_source_remove);
    for (guint i = 0; i < self->calls->len; i++)
        pf_bus_call_set_gone(g_ptr_array_index(self->calls, i), NULL, NULL);
    abandon_all_calls(self);
    connection_close(self);
    g_ptr_array_unref(self->records);
    g_ptr_array_unref(self->calls);
    sd_event_unref(self->event);
    g_free(self->address);
    g_free(self->why);
    g_free(self);
}
