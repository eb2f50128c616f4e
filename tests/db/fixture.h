/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>
#include <stdbool.h>

/*
 * A real ovsdb-server of our own, in a directory of its own, on a unix socket.
 */
typedef struct {
    char *directory;
    char *database; /* File. */
    char *socket;   /* Path. */
    char *remote;   /* "unix:PATH". */
    GPid pid;       /* 0 while it does not run. */
} Server;

#define NB_SCHEMA OVN_SCHEMA_DIR "/ovn-nb.ovsschema"
#define SB_SCHEMA OVN_SCHEMA_DIR "/ovn-sb.ovsschema"
#define VSWITCH_SCHEMA OVS_SCHEMA_DIR "/vswitch.ovsschema"

/* Creates an empty database; the server is yet to be started. */
Server *server_new(const char *schema);

/* Starts the server, with more arguments of its command line if there are any, and waits until it
 * accepts connections. */
void server_start(Server *server, const char *const *arguments);
void server_signal(Server *server, int signal);

/* Kills it, and waits for its end. */
void server_kill(Server *server);

/* Kills it, and removes its files. */
void server_free(Server *server);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Server, server_free)

/* Runs operations, as another client would: a process.  Returns the results. */
char *server_transact(Server *server, const char *database, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* A new port in the northbound database, of which 'name' is all that there is. */
void server_add_port(Server *server, const char *name);

/* Writes one key of the port's map, as a CMS would. */
void server_set_key(Server *server, const char *port, const char *column, const char *key,
                    const char *value);

/* Whether the port's row contains "key","value" in 'column'. */
bool server_has_key(Server *server, const char *port, const char *column, const char *key,
                    const char *value);

/* Runs the default main context until 'done', and fails after 'seconds'. */
void run_until(const bool *done, guint seconds);

/* Runs the default main context for this long. */
void run_for(guint ms);
