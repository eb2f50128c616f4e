/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>

#include "configuration.h"
#include "host.h"
#include "json.h"

/* Questions to a database, by ovsdb-client(1): one transaction that only reads, which costs the
 * server no more than the rows that it finds. */

/* Runs the operations 'ops' (JSON objects without the array around them) on 'database' at 'remote'.
 * Returns the array of results, or NULL with 'run' saying why not; 'run' is the caller's to clear
 * in any case. */
PfJson *pf_ovsdb_tool_query(const PfConfig *config, const char *remote, const char *database,
                            const char *ops, PfRun *run);

/* {"op":"select",...} of all rows whose 'column' is, or includes, 'value' (JSON), or of all rows if
 * 'column' is NULL.  'columns' are names with commas. */
char *pf_ovsdb_tool_select(const char *table, const char *column, const char *function,
                           const char *value, const char *columns);

/* 'text' as JSON, in its quotes. */
char *pf_ovsdb_tool_quote(const char *text);

/* The rows that operation 'index' found; NULL if it found none. */
const PfJson *pf_ovsdb_tool_rows(const PfJson *results, guint index);

/* The value of 'key' in the map 'column' of 'row', or NULL. */
const char *pf_ovsdb_tool_map_get(const PfJson *row, const char *column, const char *key);

/* The string, or the UUID, in 'column', which may be a set of at most one; NULL if it is empty. */
const char *pf_ovsdb_tool_get(const PfJson *row, const char *column);

/* The elements of a set; pf_json_at() and pf_json_length() read it. */
guint pf_ovsdb_tool_set_length(const PfJson *row, const char *column);

/* The integer in 'column', which may be a set of at most one; 'absent' if it is empty. */
gint64 pf_ovsdb_tool_integer(const PfJson *row, const char *column, gint64 absent);
