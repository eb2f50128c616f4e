/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "ovsdb.h"

struct json;
struct smap;
struct uuid;

/*
 * An OVSDB connection without a replica: it asks for and changes rows by name, at the same price
 * in a database of 100 rows and of 100,000.
 *
 * Errors are those of ovsdb.h.
 */
typedef struct PfOvsdbQuery PfOvsdbQuery;

/* 'database' is its name in the schema, "OVN_Northbound"; 'name' is for messages: "northbound". */
PfOvsdbQuery *pf_ovsdb_query_new(PfOvsdbLoop *loop, const char *database, const char *name);

/* Ends all calls without calling anybody. */
void pf_ovsdb_query_free(PfOvsdbQuery *query);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfOvsdbQuery, pf_ovsdb_query_free)

/* As pf_ovsdb_set_remote() and so on. */
bool pf_ovsdb_query_set_remote(PfOvsdbQuery *query, const char *remote, GError **error);
void pf_ovsdb_query_set_leader_only(PfOvsdbQuery *query, bool leader_only);
void pf_ovsdb_query_set_probe_interval(PfOvsdbQuery *query, guint interval_ms);

/* PF_OVSDB_SYNCED is when calls are sent at once. */
PfOvsdbState pf_ovsdb_query_get_state(const PfOvsdbQuery *query);

/* 'result' is the array of the operations' results, and belongs to the caller of this function;
 * on failure it is NULL, and 'error' is set. */
typedef void (*PfOvsdbQueryDone)(const struct json *result, const GError *error, gpointer data);

/* A call under way. */
typedef struct PfOvsdbCall PfOvsdbCall;

/* Sends 'ops', an array of operations, as one transaction; takes it over.  Waits for the
 * connection, and gives up after 'timeout_ms'.  What could change something is sent once: if the
 * connection is lost before the answer, the call ends with PF_OVSDB_ERROR_UNKNOWN.
 *
 * 'done' is called exactly once, from the main loop and never from within this function, unless
 * pf_ovsdb_call_cancel() or pf_ovsdb_query_free() come before.  The handle is valid until then. */
PfOvsdbCall *pf_ovsdb_query(PfOvsdbQuery *query, struct json *ops, guint timeout_ms,
                            PfOvsdbQueryDone done, gpointer data);
void pf_ovsdb_call_cancel(PfOvsdbCall *call);

/*
 * Operations.  All of these take their JSON arguments over.
 */
struct json *pf_ovsdb_ops(struct json *op, ...) G_GNUC_NULL_TERMINATED;

/* 'columns' NULL is all columns. */
struct json *pf_ovsdb_op_select(const char *table, struct json *where, const char *const *columns);

/* Fails the whole transaction with PF_OVSDB_ERROR_CONFLICT unless the columns of 'row' are exactly
 * so in the one row that 'where' finds. */
struct json *pf_ovsdb_op_wait(const char *table, struct json *where, struct json *row);
struct json *pf_ovsdb_op_update(const char *table, struct json *where, struct json *row);
struct json *pf_ovsdb_op_mutate(const char *table, struct json *where, struct json *mutations);
struct json *pf_ovsdb_op_insert(const char *table, struct json *row, const char *uuid_name);
struct json *pf_ovsdb_op_delete(const char *table, struct json *where);
struct json *pf_ovsdb_op_comment(const char *comment);

/* Where: an array of clauses, all of which must hold; json_array_add() takes more of them. */
struct json *pf_ovsdb_clause(const char *column, const char *function, struct json *value);
struct json *pf_ovsdb_where(const char *column, const char *function, struct json *value);
struct json *pf_ovsdb_where_uuid(const struct uuid *uuid);

/* Mutations of a map column: one key is set, or taken away, and the others are left alone. */
void pf_ovsdb_mutations_set_key(struct json *mutations, const char *column, const char *key,
                                const char *value);
void pf_ovsdb_mutations_unset_key(struct json *mutations, const char *column, const char *key);

/* Values: a map from string to string, of a GHashTable, of a smap, or of one pair; a row's UUID. */
struct json *pf_ovsdb_json_map(GHashTable *map);
struct json *pf_ovsdb_json_smap(const struct smap *map);
struct json *pf_ovsdb_json_pair(const char *key, const char *value);
struct json *pf_ovsdb_json_uuid(const struct uuid *uuid);

/*
 * Results.
 */

/* The array of rows that operation 'i' selected; NULL if it was no select. */
const struct json *pf_ovsdb_result_rows(const struct json *result, guint i);
guint pf_ovsdb_rows_length(const struct json *rows);
const struct json *pf_ovsdb_rows_get(const struct json *rows, guint i);

/* How many rows operation 'i' changed. */
gint64 pf_ovsdb_result_count(const struct json *result, guint i);

/* One column of a row; NULL or false if it is not there, or of another type. */
const struct json *pf_ovsdb_row_get(const struct json *row, const char *column);
const char *pf_ovsdb_row_string(const struct json *row, const char *column);
bool pf_ovsdb_row_uuid(const struct json *row, const char *column, struct uuid *uuid);
bool pf_ovsdb_row_integer(const struct json *row, const char *column, gint64 *value);

/* A new table from string to string, empty if there is no such map. */
GHashTable *pf_ovsdb_row_map(const struct json *row, const char *column);

/* A set, also of one element, as strings (UUIDs, numbers and booleans are written out), in a new
 * array that ends with NULL. */
char **pf_ovsdb_row_set(const struct json *row, const char *column);
