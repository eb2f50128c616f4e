/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* portferryd: options, signals, the main loop. */

#include <glib-unix.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>
#include <systemd/sd-event.h>

#include "build-config.h"
#include "configuration.h"
#include "crash.h"
#include "error.h"
#include "log.h"
#include "manager.h"
#include "message-ids.h"
#include "notify.h"
#include "sd-source.h"

/* sysexits(3) where one fits; the unit doesn't restart a daemon whose configuration is wrong. */
#define EXIT_CONFIG 78

static GMainLoop *main_loop;
static int exit_code = EXIT_SUCCESS;

static gboolean on_stop(gpointer data G_GNUC_UNUSED)
{
    pf_notify("STOPPING=1");
    g_main_loop_quit(main_loop);
    return G_SOURCE_CONTINUE;
}

static gboolean on_reload(gpointer data)
{
    PfManager **manager = data;
    g_autoptr(GError) error = NULL;

    if (*manager) {
        g_strfreev(pf_manager_reload(*manager, &error));
    }
    if (error) {
        const PfLogFields fields = {.message_id = PF_MESSAGE_BAD_CONFIGURATION};
        pf_log(LOG_ERR, &fields, "the configuration stays as it was: %s", error->message);
    }
    return G_SOURCE_CONTINUE;
}

static void on_fatal(const GError *error, gpointer data G_GNUC_UNUSED)
{
    const PfLogFields fields = {.message_id = g_error_matches(error, PF_ERROR, PF_ERROR_BUSY)
                                                  ? PF_MESSAGE_ANOTHER_DAEMON
                                                  : NULL};
    g_autofree char *story = pf_error_describe(error);
    pf_log(LOG_ERR, &fields, "%s", story);
    exit_code = EXIT_FAILURE;
    g_main_loop_quit(main_loop);
}

/* Where the configuration comes from: a file, and options that are stronger. */
static struct {
    char *path, *libvirt_uri, *ovs_db, *ovn_nb, *ovn_sb;
} given;

static gboolean set_option(PfConfig *config, const char *key, const char *value, GError **error)
{
    if (value && !pf_config_set(config, key, value, error)) {
        g_prefix_error(error, "--%s: ", key);
        return FALSE;
    }
    return TRUE;
}

static PfConfig *load_config(gpointer data G_GNUC_UNUSED, GError **error)
{
    g_autoptr(PfConfig) config = pf_config_load(given.path ? given.path : PF_CONFIG_FILE, error);

    if (!config || !set_option(config, "libvirt-uri", given.libvirt_uri, error) ||
        !set_option(config, "ovs-db", given.ovs_db, error) ||
        !set_option(config, "ovn-nb", given.ovn_nb, error) ||
        !set_option(config, "ovn-sb", given.ovn_sb, error)) {
        return NULL;
    }
    return g_steal_pointer(&config);
}

int main(int argc, char **argv)
{
    g_autofree char *bus_address = NULL;
    gboolean show_version = FALSE, debug = FALSE;
#ifdef PF_CRASH_POINTS
    gboolean list_crash_points = FALSE;
#endif
    const GOptionEntry entries[] = {
        {"config", 0, 0, G_OPTION_ARG_FILENAME, &given.path,
         "Configuration file (" PF_CONFIG_FILE ")", "FILE"},
        {"bus-address", 0, 0, G_OPTION_ARG_STRING, &bus_address, "D-Bus to serve on", "ADDRESS"},
        {"libvirt-uri", 0, 0, G_OPTION_ARG_STRING, &given.libvirt_uri, "libvirt to listen to",
         "URI"},
        {"ovs-db", 0, 0, G_OPTION_ARG_STRING, &given.ovs_db, "Local Open vSwitch database",
         "REMOTE"},
        {"ovn-nb", 0, 0, G_OPTION_ARG_STRING, &given.ovn_nb, "OVN northbound database", "REMOTES"},
        {"ovn-sb", 0, 0, G_OPTION_ARG_STRING, &given.ovn_sb, "OVN southbound database", "REMOTES"},
        {"debug", 0, 0, G_OPTION_ARG_NONE, &debug, "Log more", NULL},
        {"version", 0, 0, G_OPTION_ARG_NONE, &show_version, "Print the version and exit", NULL},
#ifdef PF_CRASH_POINTS
        {"list-crash-points", 0, 0, G_OPTION_ARG_NONE, &list_crash_points,
         "Print where PORTFERRY_CRASH can make it crash, and exit", NULL},
#endif
        {NULL},
    };
    g_autoptr(GOptionContext) options = g_option_context_new(NULL);
    g_autoptr(GError) error = NULL;

    g_option_context_set_summary(options, "Carries OVN ports with their guests when libvirt "
                                          "migrates them.");
    g_option_context_add_main_entries(options, entries, NULL);
    if (!g_option_context_parse(options, &argc, &argv, &error)) {
        fprintf(stderr, "portferryd: %s\n", error->message);
        return EXIT_FAILURE;
    }
    if (argc > 1) {
        fprintf(stderr, "portferryd: unexpected argument '%s'; see --help\n", argv[1]);
        return EXIT_FAILURE;
    }
    if (show_version) {
        printf("portferryd %s\n", PF_VERSION);
        return EXIT_SUCCESS;
    }
#ifdef PF_CRASH_POINTS
    if (list_crash_points) {
        pf_crash_list(stdout);
        return EXIT_SUCCESS;
    }
#endif

    pf_log_init("portferryd");
    if (debug) {
        pf_log_set_max_priority(LOG_DEBUG);
    }
    PfConfig *config = load_config(NULL, &error);
    if (!config) {
        const PfLogFields fields = {.message_id = PF_MESSAGE_BAD_CONFIGURATION};
        pf_log(LOG_ERR, &fields, "%s", error->message);
        return EXIT_CONFIG;
    }

    PfManager *manager = NULL;
    /* Before Open vSwitch's library looks at them: it takes the signals that nobody has taken. */
    g_unix_signal_add(SIGTERM, on_stop, NULL);
    g_unix_signal_add(SIGINT, on_stop, NULL);
    g_unix_signal_add(SIGHUP, on_reload, &manager);

    sd_event *event = NULL;
    if (sd_event_default(&event) < 0) {
        pf_log(LOG_ERR, NULL, "can't start the event loop");
        pf_config_free(config);
        return EXIT_FAILURE;
    }
    guint source = pf_sd_source_add(event, G_PRIORITY_DEFAULT);
    main_loop = g_main_loop_new(NULL, FALSE);

    manager = pf_manager_new(config, load_config, event, bus_address, on_fatal, NULL, &error);
    if (manager) {
        pf_log(LOG_INFO, NULL, "portferryd %s starts", PF_VERSION);
        pf_notify_watchdog();
        g_main_loop_run(main_loop);
        pf_manager_free(g_steal_pointer(&manager));
    } else {
        pf_log(LOG_ERR, NULL, "%s", error->message);
        exit_code = EXIT_FAILURE;
    }
    pf_notify_end();
    g_source_remove(source);
    sd_event_unref(event);
    g_main_loop_unref(main_loop);
    return exit_code;
}
