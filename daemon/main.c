/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* portferryd: options, signals, the main loop. */

#include <glib-unix.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "build-config.h"
#include "configuration.h"
#include "error.h"
#include "log.h"
#include "manager.h"
#include "message-ids.h"
#include "sd-source.h"

/* sysexits(3) where one fits; the unit doesn't restart a daemon whose configuration is wrong. */
#define EXIT_CONFIG 78

static GMainLoop *main_loop;
static int exit_code = EXIT_SUCCESS;

static gboolean on_stop(gpointer data G_GNUC_UNUSED)
{
    sd_notify(0, "STOPPING=1");
    g_main_loop_quit(main_loop);
    return G_SOURCE_CONTINUE;
}

static gboolean on_ignore(gpointer data G_GNUC_UNUSED)
{
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

static gboolean set_option(PfConfig *config, const char *key, const char *value)
{
    g_autoptr(GError) error = NULL;
    if (value && !pf_config_set(config, key, value, &error)) {
        const PfLogFields fields = {.message_id = PF_MESSAGE_BAD_CONFIGURATION};
        pf_log(LOG_ERR, &fields, "--%s: %s", key, error->message);
        return FALSE;
    }
    return TRUE;
}

int main(int argc, char **argv)
{
    g_autofree char *config_path = NULL, *bus_address = NULL, *libvirt_uri = NULL;
    g_autofree char *ovs_db = NULL, *ovn_nb = NULL, *ovn_sb = NULL;
    gboolean show_version = FALSE, debug = FALSE;
    const GOptionEntry entries[] = {
        {"config", 0, 0, G_OPTION_ARG_FILENAME, &config_path,
         "Configuration file (" PF_CONFIG_FILE ")", "FILE"},
        {"bus-address", 0, 0, G_OPTION_ARG_STRING, &bus_address, "D-Bus to serve on", "ADDRESS"},
        {"libvirt-uri", 0, 0, G_OPTION_ARG_STRING, &libvirt_uri, "libvirt to listen to", "URI"},
        {"ovs-db", 0, 0, G_OPTION_ARG_STRING, &ovs_db, "Local Open vSwitch database", "REMOTE"},
        {"ovn-nb", 0, 0, G_OPTION_ARG_STRING, &ovn_nb, "OVN northbound database", "REMOTES"},
        {"ovn-sb", 0, 0, G_OPTION_ARG_STRING, &ovn_sb, "OVN southbound database", "REMOTES"},
        {"debug", 0, 0, G_OPTION_ARG_NONE, &debug, "Log more", NULL},
        {"version", 0, 0, G_OPTION_ARG_NONE, &show_version, "Print the version and exit", NULL},
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

    pf_log_init("portferryd");
    if (debug) {
        pf_log_set_max_priority(LOG_DEBUG);
    }
    g_autoptr(PfConfig) config = pf_config_load(config_path ? config_path : PF_CONFIG_FILE, &error);
    if (!config) {
        const PfLogFields fields = {.message_id = PF_MESSAGE_BAD_CONFIGURATION};
        pf_log(LOG_ERR, &fields, "%s", error->message);
        return EXIT_CONFIG;
    }
    if (!set_option(config, "libvirt-uri", libvirt_uri) || !set_option(config, "ovs-db", ovs_db) ||
        !set_option(config, "ovn-nb", ovn_nb) || !set_option(config, "ovn-sb", ovn_sb)) {
        return EXIT_CONFIG;
    }

    /* Before Open vSwitch's library looks at them: it takes the signals that nobody has taken. */
    g_unix_signal_add(SIGTERM, on_stop, NULL);
    g_unix_signal_add(SIGINT, on_stop, NULL);
    g_unix_signal_add(SIGHUP, on_ignore, NULL);

    sd_event *event = NULL;
    if (sd_event_default(&event) < 0 || sd_event_set_watchdog(event, 1) < 0) {
        pf_log(LOG_ERR, NULL, "can't start the event loop");
        return EXIT_FAILURE;
    }
    guint source = pf_sd_source_add(event, G_PRIORITY_DEFAULT);
    main_loop = g_main_loop_new(NULL, FALSE);

    PfManager *manager = pf_manager_new(config, event, bus_address, on_fatal, NULL, &error);
    if (manager) {
        pf_log(LOG_INFO, NULL, "portferryd %s starts", PF_VERSION);
        g_main_loop_run(main_loop);
        pf_manager_free(manager);
    } else {
        pf_log(LOG_ERR, NULL, "%s", error->message);
        exit_code = EXIT_FAILURE;
    }
    g_source_remove(source);
    sd_event_unref(event);
    g_main_loop_unref(main_loop);
    return exit_code;
}
