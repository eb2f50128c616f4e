/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The commands that change something: each is one method call, which polkit may ask a password
 * for. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "phases.h"
#include "remote.h"
#include "terminal.h"
#include "text.h"

/* Somebody may have to find their password first. */
#define CALL_TIMEOUT_US (3 * 60 * G_USEC_PER_SEC)

/* Sends 'm' and takes it over.  'reply' may be NULL. */
static PfExit call(PfClient *client, const char *what, sd_bus_message *m, sd_bus_message **reply)
{
    sd_bus_error error = SD_BUS_ERROR_NULL;
    PfExit result = PF_EXIT_OK;
    PfAgent *agent = NULL;
    int r = 0;

    if (client->ask_password) {
        r = sd_bus_message_set_allow_interactive_authorization(m, 1);
        agent = pf_agent_start();
    }
    if (r >= 0) {
        r = sd_bus_call(client->bus, m, CALL_TIMEOUT_US, &error, reply);
    }
    pf_agent_stop(agent);
    if (r < 0) {
        result = pf_client_fail_call(client, what, &error, r);
    }
    sd_bus_error_free(&error);
    sd_bus_message_unref(m);
    return result;
}

static void print_done(const PfClient *client, const char *object, const char *id,
                       const char *domain, const char *text)
{
    if (client->json) {
        PfJson *json = pf_json_object();

        pf_json_set(json, "command", pf_json_string(client->command));
        pf_json_set(json, "result", pf_json_string("ok"));
        pf_json_set(json, "handover", pf_json_string(id));
        pf_json_set(json, "object", pf_json_string(object));
        pf_json_set(json, "domain", pf_json_string(domain && *domain ? domain : NULL));
        pf_client_print_json(json);
    } else {
        printf("%s\n", text);
    }
}

/* Calls a method without arguments of the handover that 'name' means.  Some return when what is to
 * be done is decided, not when it is done: 'lasts'. */
static PfExit call_handover(PfClient *client, const char *name, const char *method, bool lasts)
{
    g_autoptr(PfRemoteHandover) h = NULL;
    sd_bus_message *m = NULL;
    PfExit result = pf_remote_find(client, name, &h);
    int r;

    if (result != PF_EXIT_OK) {
        return result;
    }

    g_autofree char *domain = pf_domain_label(h);
    g_autofree char *id = pf_safe(h->id);
    /* TRANSLATORS: a command, a handover's id, a domain's name */
    g_autofree char *what = g_strdup_printf(_("%s %s of domain '%s'"), client->command, id, domain);

    r = sd_bus_message_new_method_call(client->bus, &m, PF_REMOTE_NAME, h->path, PF_REMOTE_HANDOVER,
                                       method);
    if (r < 0) {
        return pf_client_fail_call(client, what, NULL, r);
    }
    result = call(client, what, m, NULL);
    if (result == PF_EXIT_OK) {
        /* TRANSLATORS: "activate 9f3c of domain 'vm1'", and that it succeeded */
        g_autofree char *text =
            lasts ? g_strdup_printf(_("%s: begun; 'portferry watch %s' shows it"), what, id)
                  : g_strdup_printf(_("%s: done"), what);

        print_done(client, h->path, h->id, h->domain, text);
    }
    return result;
}

static PfExit run_activate(PfClient *client, char **arguments)
{
    return call_handover(client, arguments[0], "Activate", true);
}

static PfExit run_rollback(PfClient *client, char **arguments)
{
    return call_handover(client, arguments[0], "Rollback", true);
}

static PfExit run_hold(PfClient *client, char **arguments)
{
    return call_handover(client, arguments[0], "Hold", false);
}

static PfExit run_release(PfClient *client, char **arguments)
{
    return call_handover(client, arguments[0], "Release", false);
}

static PfExit run_forget(PfClient *client, char **arguments)
{
    return call_handover(client, arguments[0], "Forget", false);
}

/* Reads the answer: the keys that only a restart can change. */
static PfExit show_reloaded(PfClient *client, const char *what, sd_bus_message *reply)
{
    char **keys = NULL;
    int r = 0;

    /* The first versions answered with nothing. */
    if (sd_bus_message_has_signature(reply, "as") > 0) {
        r = sd_bus_message_read_strv(reply, &keys);
    }
    if (r < 0) {
        return pf_client_fail_call(client, what, NULL, r);
    }
    if (client->json) {
        PfJson *json = pf_json_object();
        PfJson *array = pf_json_array();

        for (char **key = keys; key && *key; key++) {
            pf_json_add(array, pf_json_string(*key));
        }
        pf_json_set(json, "command", pf_json_string(client->command));
        pf_json_set(json, "result", pf_json_string("ok"));
        pf_json_set(json, "need_restart", array);
        pf_client_print_json(json);
    } else {
        printf("%s\n", _("portferryd has read its configuration again"));
        for (char **key = keys; key && *key; key++) {
            g_autofree char *safe = pf_safe(*key);

            printf(_("%s has changed, and needs 'systemctl restart portferryd'"), safe);
            putchar('\n');
        }
    }
    /* Of sd-bus, which allocates as the C library does. */
    for (char **key = keys; key && *key; key++) {
        free(*key);
    }
    free(keys);
    return PF_EXIT_OK;
}

static PfExit run_reload(PfClient *client, char **arguments G_GNUC_UNUSED)
{
    const char *what = _("reload of the configuration");
    sd_bus_message *m = NULL, *reply = NULL;
    PfExit result = pf_client_connect(client);
    int r;

    if (result != PF_EXIT_OK) {
        return result;
    }
    r = sd_bus_message_new_method_call(client->bus, &m, PF_REMOTE_NAME, PF_REMOTE_PATH,
                                       PF_REMOTE_MANAGER, "Reload");
    if (r < 0) {
        return pf_client_fail_call(client, what, NULL, r);
    }
    result = call(client, what, m, &reply);
    if (result == PF_EXIT_OK) {
        result = show_reloaded(client, what, reply);
    }
    sd_bus_message_unref(reply);
    return result;
}

static char *preplug_source;

static const GOptionEntry preplug_options[] = {
    {"from", 0, 0, G_OPTION_ARG_STRING, &preplug_source,
     N_("Where the guest is now, a chassis name (default: as the southbound database has it)"),
     N_("CHASSIS")},
    {NULL},
};

/* Reads the answer: the object of the handover, whose id is asked for. */
static PfExit show_preplugged(PfClient *client, const char *what, sd_bus_message *reply)
{
    g_autoptr(GPtrArray) handovers = NULL;
    const PfRemoteHandover *h = NULL;
    const char *path;
    PfExit result;
    int r = sd_bus_message_read(reply, "o", &path);

    if (r < 0) {
        return pf_client_fail_call(client, what, NULL, r);
    }
    result = pf_remote_get_handovers(client, &handovers);
    if (result != PF_EXIT_OK) {
        return result;
    }
    for (guint i = 0; i < handovers->len; i++) {
        if (g_str_equal(((PfRemoteHandover *)g_ptr_array_index(handovers, i))->path, path)) {
            h = g_ptr_array_index(handovers, i);
        }
    }

    g_autofree char *id = pf_safe(h ? h->id : path);
    g_autofree char *text =
        g_strdup_printf(_("%s: handover %s; end it by activate or rollback"), what, id);

    print_done(client, path, h ? h->id : NULL, h ? h->domain : NULL, text);
    return PF_EXIT_OK;
}

static PfExit run_preplug(PfClient *client, char **arguments)
{
    g_autofree char *safe = pf_safe(arguments[0]);
    g_autofree char *uuid = pf_uuid_canonical(arguments[0]);
    sd_bus_message *m = NULL, *reply = NULL;
    PfExit result;
    int r;

    if (!uuid) {
        return pf_client_fail(client, PF_EXIT_USAGE, NULL,
                              _("'virsh domuuid DOMAIN' on the source prints it"),
                              _("'%s' is not a UUID"), safe);
    }
    result = pf_client_connect(client);
    if (result != PF_EXIT_OK) {
        return result;
    }

    g_autofree char *what = g_strdup_printf(_("preplug of domain %s"), uuid);

    r = sd_bus_message_new_method_call(client->bus, &m, PF_REMOTE_NAME, PF_REMOTE_PATH,
                                       PF_REMOTE_MANAGER, "PrePlug");
    if (r >= 0) {
        r = sd_bus_message_append(m, "s", uuid);
    }
    if (r >= 0) {
        r = sd_bus_message_append_strv(m, arguments + 1);
    }
    if (r >= 0) {
        r = sd_bus_message_append(m, "s", preplug_source ? preplug_source : "");
    }
    if (r < 0) {
        sd_bus_message_unref(m);
        return pf_client_fail_call(client, what, NULL, r);
    }
    result = call(client, what, m, &reply);
    if (result == PF_EXIT_OK) {
        result = show_preplugged(client, what, reply);
    }
    sd_bus_message_unref(reply);
    return result;
}

const PfCommand pf_command_activate = {
    .name = "activate",
    .parameters = N_("HANDOVER|DOMAIN"),
    .summary = N_("Make the destination the ports' only chassis: the guest runs there for certain"),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_activate,
};

const PfCommand pf_command_rollback = {
    .name = "rollback",
    .parameters = N_("HANDOVER|DOMAIN"),
    .summary = N_("Make the source the ports' only chassis: the guest runs there for certain"),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_rollback,
};

const PfCommand pf_command_hold = {
    .name = "hold",
    .parameters = N_("HANDOVER|DOMAIN"),
    .summary = N_("Stop a migration at the gate, before any memory is copied"),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_hold,
};

const PfCommand pf_command_release = {
    .name = "release",
    .parameters = N_("HANDOVER|DOMAIN"),
    .summary = N_("Let a migration that was held go on"),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_release,
};

const PfCommand pf_command_preplug = {
    .name = "preplug",
    .parameters = N_("DOMAIN-UUID PORT..."),
    .summary = N_("Bind ports to this host as well, without a migration by libvirt"),
    .options = preplug_options,
    .min_arguments = 2,
    .max_arguments = G_MAXUINT,
    .run = run_preplug,
};

const PfCommand pf_command_forget = {
    .name = "forget",
    .parameters = N_("HANDOVER|DOMAIN"),
    .summary = N_("Drop an ended handover from the history, or give up one that is stuck"),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_forget,
};

const PfCommand pf_command_reload = {
    .name = "reload",
    .parameters = "",
    .summary = N_("Make portferryd read its configuration again"),
    .run = run_reload,
};
