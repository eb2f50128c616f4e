/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "ovsdb-loop.h"

struct ovsdb_idl;
struct ovsdb_idl_class;
struct ovsdb_idl_txn;

/*
 * One OVSDB connection with a replica of the rows that concern us (an IDL).
 */
typedef struct PfOvsdb PfOvsdb;

#define PF_OVSDB_ERROR (pf_ovsdb_error_quark())
GQuark pf_ovsdb_error_quark(void);

typedef enum {
    PF_OVSDB_ERROR_INVALID,  /* Nonsense in a remote, a TLS file or a reply. */
    PF_OVSDB_ERROR_TIMEOUT,  /* The deadline passed; nothing has been changed. */
    PF_OVSDB_ERROR_UNKNOWN,  /* It was sent, no answer came: changed or not, nobody knows. */
    PF_OVSDB_ERROR_REFUSED,  /* By the server, for the reason in the message. */
    PF_OVSDB_ERROR_CONFLICT, /* A "wait" did not hold: somebody else was faster. */
    PF_OVSDB_ERROR_ABORTED,  /* By the build function, which gave no reason. */
} PfOvsdbError;

typedef enum {
    PF_OVSDB_DISCONNECTED, /* No remote is set. */
    PF_OVSDB_CONNECTING,   /* Not connected, but trying.  The replica, if any, is out of date. */
    PF_OVSDB_CONNECTED,    /* Connected; the contents are still to come. */
    PF_OVSDB_SYNCED,       /* Connected, and the contents are there. */
    PF_OVSDB_N_STATES
} PfOvsdbState;

const char *pf_ovsdb_state_to_string(PfOvsdbState state);

/* Adds columns and conditions to 'idl'.  Conditions that come later cost the server a pass over
 * the table.  'idl' is not connected yet. */
typedef void (*PfOvsdbConfigure)(struct ovsdb_idl *idl, gpointer data);

/* The replica, its condition sequence number or the state has changed. */
typedef void (*PfOvsdbChanged)(PfOvsdb *db, gpointer data);

/* 'name' is for messages: "northbound". */
PfOvsdb *pf_ovsdb_new(PfOvsdbLoop *loop, const struct ovsdb_idl_class *class, const char *name,
                      PfOvsdbConfigure configure, PfOvsdbChanged changed, gpointer data);

/* Ends all transactions without calling anybody. */
void pf_ovsdb_free(PfOvsdb *db);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfOvsdb, pf_ovsdb_free)

/* 'remote' is a comma separated list of tcp:HOST:PORT, ssl:HOST:PORT and unix:/PATH, tried in
 * random order until one answers; NULL or "" disconnects.  A connection to a remote that is still
 * in the list is kept.  On an error everything stays as it was. */
bool pf_ovsdb_set_remote(PfOvsdb *db, const char *remote, GError **error);

/* Whether to talk to the leader of a cluster alone; true unless set.  It must be false for a
 * relay, which is never a leader. */
void pf_ovsdb_set_leader_only(PfOvsdb *db, bool leader_only);

/* After how long a silence to ask a tcp or ssl server for a sign of life, in ms; 0 is never.  The
 * 30 s of the default are long on purpose: a daemon that waits for the next migration should not
 * wake up all the time, and each request has a deadline of its own. */
void pf_ovsdb_set_probe_interval(PfOvsdb *db, guint interval_ms);

PfOvsdbState pf_ovsdb_get_state(const PfOvsdb *db);

/* Rows live until the main loop runs again. */
struct ovsdb_idl *pf_ovsdb_get_idl(const PfOvsdb *db);

/* The files for ssl: remotes of the whole process, before any such remote is set; again when they
 * have been renewed. */
bool pf_ovsdb_set_tls(const char *private_key, const char *certificate, const char *ca_certificate,
                      GError **error);

/* Returns 'remote' as pf_ovsdb_set_remote() would use it, without blanks: a new string, "" for no
 * remote at all. */
char *pf_ovsdb_check_remote(const char *remote, GError **error);

#define PF_OVSDB_PROBE_INTERVAL_MS (30 * 1000)

/* 'interval_ms' as it makes sense for 'remote': never to a local server, whose end is noticed at
 * once. */
int pf_ovsdb_fit_probe_interval(const char *remote, guint interval_ms);

/*
 * Transactions.
 */
typedef enum {
    PF_OVSDB_BUILD_COMMIT,  /* Commit what was put into the transaction. */
    PF_OVSDB_BUILD_NOTHING, /* All is as it should be: success. */
    PF_OVSDB_BUILD_ERROR,   /* Give up, with the error that was set. */
} PfOvsdbBuildResult;

/* Finds the rows, and puts verifications and changes into 'txn'.  Called again for each attempt,
 * also when the last one may have been committed: what it writes must bear repetition. */
typedef PfOvsdbBuildResult (*PfOvsdbBuild)(struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn,
                                           gpointer data, GError **error);

/* 'error' is NULL if the transaction was committed, or there was nothing to do.  The error of a
 * build function is handed on as it is. */
typedef void (*PfOvsdbDone)(const GError *error, gpointer data);

/* A transaction under way. */
typedef struct PfOvsdbTxn PfOvsdbTxn;

/* Builds and commits a transaction: at once if the contents are there, otherwise as soon as they
 * are; again after a conflict and after a lost connection; and gives up after 'timeout_ms'.
 * 'comment' goes into the database's log.
 *
 * 'done' is called exactly once, from the main loop and never from within this function, unless
 * pf_ovsdb_txn_cancel() or pf_ovsdb_free() come before.  The handle is valid until then. */
PfOvsdbTxn *pf_ovsdb_txn(PfOvsdb *db, const char *comment, PfOvsdbBuild build, gpointer data,
                         guint timeout_ms, PfOvsdbDone done);

/* What has been sent may still be committed. */
void pf_ovsdb_txn_cancel(PfOvsdbTxn *txn);
