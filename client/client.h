/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>
#include <glib/gi18n.h>
#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "json.h"

/* How the client ends.  Documented in portferry(1): never change a number's meaning. */
typedef enum {
    PF_EXIT_OK = 0,
    PF_EXIT_FAILED = 1,
    PF_EXIT_USAGE = 2,     /* the request makes no sense, by its form or to portferryd */
    PF_EXIT_NO_DAEMON = 3, /* portferryd, or the bus, can't be reached */
    PF_EXIT_NOT_FOUND = 4,
    PF_EXIT_DENIED = 5,
    PF_EXIT_NOT_NOW = 6, /* at another time it may: wrong phase, busy, not ready, a conflict */
    PF_EXIT_TIMEOUT = 7, /* no answer in time; what was asked for may still happen */
} PfExit;

/* What the global options say, and the connection to the bus. */
typedef struct {
    bool json;
    char *bus_address; /* NULL: the system bus */
    bool ask_password;
    const char *command; /* its name, for messages */
    sd_bus *bus;         /* NULL until pf_client_connect() */
    bool quiet;          /* failures are not printed but kept: */
    char *failure;
} PfClient;

typedef struct {
    const char *name;
    const char *parameters; /* for people; marked with N_() */
    const char *summary;    /* likewise */
    const GOptionEntry *options;
    guint min_arguments, max_arguments; /* G_MAXUINT: any number */
    PfExit (*run)(PfClient *client, char **arguments);
} PfCommand;

extern const PfCommand pf_command_status, pf_command_show, pf_command_watch, pf_command_history,
    pf_command_timeline, pf_command_activate, pf_command_rollback, pf_command_hold,
    pf_command_release, pf_command_preplug, pf_command_forget, pf_command_reload, pf_command_check;

/* Says on standard error what went wrong; with --json also on standard output, as an object with
 * the one key "error".  Returns 'exit_status'.  'dbus_name' may be NULL. */
PfExit pf_client_fail(PfClient *client, PfExit exit_status, const char *dbus_name, const char *hint,
                      const char *format, ...) G_GNUC_PRINTF(5, 6);

/* The same, from the answer to a D-Bus call that returned 'r'. */
PfExit pf_client_fail_call(PfClient *client, const char *what, const sd_bus_error *error, int r);

/* Connects to the bus, or returns a negative errno; once is enough. */
int pf_client_open(PfClient *client);

/* The same, and reports a failure. */
PfExit pf_client_connect(PfClient *client);

/* Prints 'json' and frees it. */
void pf_client_print_json(PfJson *json);
