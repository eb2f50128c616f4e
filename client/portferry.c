/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * portferry: what an administrator types.  It knows portferryd by its D-Bus interface alone
 * (data/org.portferry1.xml); only "check" looks at the host by itself, since it must also be right
 * where portferryd does not run.
 */

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build-config.h"
#include "client.h"
#include "terminal.h"

static const PfCommand *const commands[] = {
    &pf_command_status,   &pf_command_show,     &pf_command_watch,  &pf_command_history,
    &pf_command_timeline, &pf_command_check,    &pf_command_hold,   &pf_command_release,
    &pf_command_activate, &pf_command_rollback, &pf_command_forget, &pf_command_preplug,
    &pf_command_reload,
};

static gboolean json, no_ask_password, version;
static char *bus_address;

static const GOptionEntry global_options[] = {
    {"json", 0, 0, G_OPTION_ARG_NONE, &json, N_("Print JSON"), NULL},
    {"bus-address", 0, 0, G_OPTION_ARG_STRING, &bus_address,
     N_("D-Bus to talk to (default: the system bus)"), N_("ADDRESS")},
    {"no-ask-password", 0, 0, G_OPTION_ARG_NONE, &no_ask_password, N_("Never ask for a password"),
     NULL},
    {NULL},
};

static const GOptionEntry main_options[] = {
    {"version", 0, 0, G_OPTION_ARG_NONE, &version, N_("Print the version and exit"), NULL},
    {NULL},
};

static char *list_commands(void)
{
    GString *out = g_string_new(_("Commands:"));

    g_string_append_c(out, '\n');
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_string_append_printf(out, "  %-10s %s\n", commands[i]->name, _(commands[i]->summary));
    }
    g_string_append_c(out, '\n');
    g_string_append(out, _("'portferry COMMAND --help' tells more, portferry(1) everything."));
    return g_string_free(out, FALSE);
}

static GOptionContext *new_context(const char *parameters)
{
    GOptionContext *context = g_option_context_new(parameters);

    g_option_context_add_main_entries(context, global_options, PF_GETTEXT_DOMAIN);
    return context;
}

static PfExit fail_usage(const char *command, const char *text)
{
    PfClient client = {.json = json};
    g_autofree char *safe = pf_safe(text);
    g_autofree char *hint =
        g_strdup_printf(_("see 'portferry %s%s--help'"), command, *command ? " " : "");

    return pf_client_fail(&client, PF_EXIT_USAGE, NULL, hint, "%s", safe);
}

static const PfCommand *find_command(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (g_str_equal(commands[i]->name, name)) {
            return commands[i];
        }
    }
    return NULL;
}

/* 'argv[0]' is the command's name, and its arguments follow. */
static PfExit run_command(const PfCommand *command, int argc, char **argv)
{
    g_autofree char *parameters =
        g_strdup_printf("%s%s%s", command->name, *command->parameters ? " " : "",
                        *command->parameters ? _(command->parameters) : "");
    g_autoptr(GOptionContext) context = new_context(parameters);
    g_autoptr(GError) error = NULL;
    PfClient client = {.command = command->name};
    guint n;
    PfExit result;

    g_option_context_set_summary(context, _(command->summary));
    if (command->options) {
        g_option_context_add_main_entries(context, command->options, PF_GETTEXT_DOMAIN);
    }
    /* Else the help would begin with "portferry status status". */
    argv[0] = (char *)"portferry";
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        return fail_usage(command->name, error->message);
    }

    char **arguments = argv + 1;

    n = (guint)argc - 1;
    if (n > 0 && g_str_equal(arguments[0], "--")) {
        arguments++;
        n--;
    }
    for (guint i = 0; i < n; i++) {
        /* D-Bus would break the connection over it. */
        if (!g_utf8_validate(arguments[i], -1, NULL)) {
            return fail_usage(command->name, _("an argument is not valid UTF-8"));
        }
    }
    if (n < command->min_arguments) {
        g_autofree char *text =
            g_strdup_printf(_("%s needs %s"), command->name, _(command->parameters));

        return fail_usage(command->name, text);
    }
    if (n > command->max_arguments) {
        g_autofree char *text =
            g_strdup_printf(_("unexpected argument '%s'"), arguments[command->max_arguments]);

        return fail_usage(command->name, text);
    }

    client.json = json;
    client.bus_address = bus_address;
    client.ask_password = !no_ask_password;
    result = command->run(&client, arguments);
    sd_bus_flush_close_unref(client.bus);

    /* "portferry history > /dev/full" has failed, whatever portferryd said. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("portferry");
        return PF_EXIT_FAILED;
    }
    return result;
}

static PfExit run(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = new_context(_("COMMAND"));
    g_autofree char *list = list_commands();
    g_autoptr(GError) error = NULL;
    const PfCommand *command;

    g_option_context_set_summary(context,
                                 _("Shows and steers how portferryd carries OVN ports with "
                                   "their guests from host to host."));
    g_option_context_set_description(context, list);
    g_option_context_add_main_entries(context, main_options, PF_GETTEXT_DOMAIN);
    /* Options after the command are the command's. */
    g_option_context_set_strict_posix(context, TRUE);
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        return fail_usage("", error->message);
    }
    if (version) {
        printf("portferry %s\n", PF_VERSION);
        return PF_EXIT_OK;
    }
    if (argc < 2) {
        return fail_usage("", _("which command?"));
    }
    if (g_str_equal(argv[1], "help")) {
        /* As git and systemctl users type it. */
        command = argc > 2 ? find_command(argv[2]) : NULL;
        if (!command) {
            g_autofree char *help = g_option_context_get_help(context, TRUE, NULL);

            fputs(help, stdout);
            return PF_EXIT_OK;
        }

        char *help_argv[] = {argv[0], (char *)"--help", NULL};

        return run_command(command, 2, help_argv);
    }
    command = find_command(argv[1]);
    if (!command) {
        g_autofree char *text = g_strdup_printf(_("there is no command '%s'"), argv[1]);

        return fail_usage("", text);
    }
    return run_command(command, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    const char *localedir = g_getenv("TEXTDOMAINDIR"); /* as for gettext(1); the tests need it */

    setlocale(LC_ALL, "");
    bindtextdomain(PF_GETTEXT_DOMAIN, localedir ? localedir : PF_LOCALEDIR);
    textdomain(PF_GETTEXT_DOMAIN);
    pf_terminal_init();
    g_set_prgname("portferry");
    return (int)run(argc, argv);
}
