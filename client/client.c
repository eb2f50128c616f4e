/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "terminal.h"

#define SYSTEM_BUS "unix:path=/run/dbus/system_bus_socket"

/* portferryd's own errors: how the client ends, and what is better advice on a command line than
 * the hint that portferryd gives. */
static const struct {
    PfError code;
    PfExit exit_status;
    const char *hint;
} outcomes[] = {
    {PF_ERROR_FAILED, PF_EXIT_FAILED, N_("see what portferryd logged: journalctl -u portferryd")},
    {PF_ERROR_BAD_XML, PF_EXIT_FAILED, NULL},
    {PF_ERROR_BAD_CONFIG, PF_EXIT_FAILED,
     N_("correct the configuration; portferryd goes on with the one it has")},
    {PF_ERROR_BAD_MARKER, PF_EXIT_FAILED,
     N_("see what portferryd logged: journalctl -u portferryd")},
    {PF_ERROR_INVALID_ARGUMENT, PF_EXIT_USAGE, NULL},
    {PF_ERROR_NOT_FOUND, PF_EXIT_NOT_FOUND, NULL},
    {PF_ERROR_NOT_READY, PF_EXIT_NOT_NOW,
     N_("'portferry check' on the destination says what its network lacks")},
    {PF_ERROR_BUSY, PF_EXIT_NOT_NOW,
     N_("another handover of this domain is under way: 'portferry status' lists it")},
    {PF_ERROR_CONFLICT, PF_EXIT_NOT_NOW,
     N_("somebody else changed the same row; try again, or find out who")},
    {PF_ERROR_TIMEOUT, PF_EXIT_TIMEOUT, NULL},
    {PF_ERROR_UNREACHABLE, PF_EXIT_NOT_NOW,
     N_("'portferry status' says which connection is missing; portferryd reconnects by itself")},
    {PF_ERROR_DENIED, PF_EXIT_DENIED, N_("run it as root, or as a user whom polkit allows this")},
    {PF_ERROR_WRONG_PHASE, PF_EXIT_NOT_NOW,
     N_("'portferry show' says what the handover waits for")},
};

G_STATIC_ASSERT(G_N_ELEMENTS(outcomes) == PF_N_ERRORS);

PfExit pf_client_fail(PfClient *client, PfExit exit_status, const char *dbus_name, const char *hint,
                      const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);

    if (client->quiet) {
        g_free(client->failure);
        client->failure = g_steal_pointer(&text);
        return exit_status;
    }
    if (hint && *hint) {
        fprintf(stderr, "portferry: %s\n           %s\n", text, hint);
    } else {
        fprintf(stderr, "portferry: %s\n", text);
    }
    if (client->json) {
        PfJson *error = pf_json_object();
        PfJson *json = pf_json_object();

        pf_json_set(error, "exit_status", pf_json_integer(exit_status));
        pf_json_set(error, "name", pf_json_string(dbus_name));
        pf_json_set(error, "message", pf_json_string(text));
        pf_json_set(error, "hint", pf_json_string(hint && *hint ? hint : NULL));
        pf_json_set(json, "error", error);
        pf_client_print_json(json);
    }
    return exit_status;
}

static PfExit fail_no_daemon(PfClient *client, const char *name)
{
    return pf_client_fail(client, PF_EXIT_NO_DAEMON, name,
                          _("start it with 'systemctl start portferryd', or see why it ended: "
                            "journalctl -u portferryd"),
                          _("portferryd does not run on this host"));
}

PfExit pf_client_fail_call(PfClient *client, const char *what, const sd_bus_error *error, int r)
{
    static const char *const absent[] = {SD_BUS_ERROR_SERVICE_UNKNOWN,
                                         SD_BUS_ERROR_NAME_HAS_NO_OWNER,
                                         "org.freedesktop.DBus.Error.Spawn.ChildExited",
                                         "org.freedesktop.systemd1.NoSuchUnit",
                                         "org.freedesktop.systemd1.UnitMasked",
                                         NULL};
    static const char *const unable[] = {SD_BUS_ERROR_UNKNOWN_METHOD,
                                         SD_BUS_ERROR_UNKNOWN_INTERFACE,
                                         SD_BUS_ERROR_UNKNOWN_PROPERTY, NULL};
    static const char *const denied[] = {SD_BUS_ERROR_ACCESS_DENIED, SD_BUS_ERROR_AUTH_FAILED,
                                         SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, NULL};
    static const char *const late[] = {SD_BUS_ERROR_NO_REPLY, SD_BUS_ERROR_TIMEOUT,
                                       "org.freedesktop.DBus.Error.TimedOut", NULL};
    const char *name = error && error->name ? error->name : NULL;
    g_autofree char *text = pf_safe(error && error->message ? error->message : g_strerror(-r));
    PfError code;

    if (!name) {
        if (r == -ETIMEDOUT) {
            name = SD_BUS_ERROR_TIMEOUT;
        } else if (r == -ENOTCONN || r == -ECONNRESET) {
            return fail_no_daemon(client, NULL);
        } else {
            return pf_client_fail(client, PF_EXIT_FAILED, NULL, NULL, "%s: %s", what, text);
        }
    }
    if (g_strv_contains(absent, name)) {
        return fail_no_daemon(client, name);
    }
    if (g_strv_contains(unable, name)) {
        return pf_client_fail(
            client, PF_EXIT_FAILED, name,
            _("restart portferryd, should it have been upgraded with this client"),
            _("%s: this host's portferryd cannot do that"), what);
    }
    if (g_str_equal(name, SD_BUS_ERROR_UNKNOWN_OBJECT)) {
        return pf_client_fail(client, PF_EXIT_NOT_FOUND, name, NULL, _("%s: the handover is gone"),
                              what);
    }
    if (g_strv_contains(denied, name)) {
        return pf_client_fail(client, PF_EXIT_DENIED, name,
                              _("run it as root, or as a user whom polkit allows this"), "%s: %s",
                              what, text);
    }
    if (g_strv_contains(late, name)) {
        return pf_client_fail(client, PF_EXIT_TIMEOUT, name,
                              _("it may still be done; 'portferry status' shows it"),
                              _("%s: portferryd did not answer in time"), what);
    }
    if (pf_error_from_dbus_name(name, &code)) {
        g_autofree char *end = g_strconcat("; ", pf_error_hint(code), NULL);
        const char *hint = outcomes[code].hint ? _(outcomes[code].hint) : NULL;

        g_assert(outcomes[code].code == code);
        /* portferryd's text ends with its hint (pf_error_describe()), which has a line of its own
         * here. */
        if (g_str_has_suffix(text, end)) {
            text[strlen(text) - strlen(end)] = '\0';
            hint = hint ? hint : end + strlen("; ");
        }
        return pf_client_fail(client, outcomes[code].exit_status, name, hint, "%s: %s", what, text);
    }
    return pf_client_fail(client, PF_EXIT_FAILED, name, NULL, "%s: %s", what, text);
}

static const char *bus_address(const PfClient *client)
{
    const char *address = client->bus_address;

    if (!address) {
        address = g_getenv("DBUS_SYSTEM_BUS_ADDRESS");
    }
    return address ? address : SYSTEM_BUS;
}

int pf_client_open(PfClient *client)
{
    sd_bus *bus = NULL;
    int r;

    if (client->bus) {
        return 0;
    }
    /* Not sd_bus_open_system(), which takes no address. */
    r = sd_bus_new(&bus);
    if (r < 0) {
        return r;
    }
    sd_bus_set_description(bus, "portferry");
    if ((r = sd_bus_set_address(bus, bus_address(client))) < 0 ||
        (r = sd_bus_set_bus_client(bus, 1)) < 0 || (r = sd_bus_start(bus)) < 0) {
        sd_bus_unref(bus);
        return r;
    }
    client->bus = bus;
    return 0;
}

PfExit pf_client_connect(PfClient *client)
{
    int r = pf_client_open(client);
    g_autofree char *safe = NULL;

    if (r >= 0) {
        return PF_EXIT_OK;
    }
    safe = pf_safe(bus_address(client));
    return pf_client_fail(client, r == -EINVAL ? PF_EXIT_USAGE : PF_EXIT_NO_DAEMON, NULL, NULL,
                          _("the bus at %s can't be reached: %s"), safe, g_strerror(-r));
}

void pf_client_print_json(PfJson *json)
{
    g_autofree char *text = pf_json_to_text(json, true);

    puts(text);
    pf_json_free(json);
}
