/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ovsdb-tool.h"

#include <string.h>

#define TIMEOUT_S 5

static void add_option(GPtrArray *argv, const char *option, const char *value)
{
    if (value) {
        g_ptr_array_add(argv, g_strdup_printf("%s=%s", option, value));
    }
}

PfJson *pf_ovsdb_tool_query(const PfConfig *config, const char *remote, const char *database,
                            const char *ops, PfRun *run)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    PfJson *results;

    g_ptr_array_add(argv, g_strdup("ovsdb-client"));
    g_ptr_array_add(argv, g_strdup("--verbose=off"));
    g_ptr_array_add(argv, g_strdup_printf("--timeout=%d", TIMEOUT_S));
    /* Reading, any member of a cluster will do, and a relay too, which is never its leader. */
    g_ptr_array_add(argv, g_strdup("--no-leader-only"));
    add_option(argv, "--private-key", config->ssl_private_key);
    add_option(argv, "--certificate", config->ssl_certificate);
    add_option(argv, "--ca-cert", config->ssl_ca_cert);
    g_ptr_array_add(argv, g_strdup("query"));
    g_ptr_array_add(argv, g_strdup(remote));
    g_ptr_array_add(argv, g_strdup_printf("[\"%s\",%s]", database, ops));
    g_ptr_array_add(argv, NULL);

    pf_host_run(run, TIMEOUT_S + 2, (const char *const *)argv->pdata);
    if (run->result != PF_RUN_OK) {
        return NULL;
    }
    results = pf_json_parse(run->output);
    for (guint i = 0; i < pf_json_length(results); i++) {
        const char *error = pf_json_get_text(pf_json_get(pf_json_at(results, i), "error"));

        if (error) {
            g_free(run->error);
            run->error = g_strdup(error);
            run->result = PF_RUN_FAILED;
            pf_json_free(results);
            return NULL;
        }
    }
    if (!results) {
        run->result = PF_RUN_FAILED;
    }
    return results;
}

char *pf_ovsdb_tool_quote(const char *text)
{
    g_autoptr(PfJson) json = pf_json_string(text);

    return pf_json_to_text(json, false);
}

char *pf_ovsdb_tool_select(const char *table, const char *column, const char *function,
                           const char *value, const char *columns)
{
    g_auto(GStrv) names = g_strsplit(columns, ",", -1);
    g_autofree char *list = g_strjoinv("\",\"", names);
    g_autofree char *where =
        column ? g_strdup_printf("[\"%s\",\"%s\",%s]", column, function, value) : g_strdup("");

    return g_strdup_printf(
        "{\"op\":\"select\",\"table\":\"%s\",\"where\":[%s],\"columns\":[\"%s\"]}", table, where,
        list);
}

const PfJson *pf_ovsdb_tool_rows(const PfJson *results, guint index)
{
    const PfJson *rows = pf_json_get(pf_json_at(results, index), "rows");

    return pf_json_length(rows) > 0 ? rows : NULL;
}

/* OVSDB writes what is more than one value as ["map", [...]], ["set", [...]], ["uuid", "..."]. */
static const PfJson *open_wrapper(const PfJson *value, const char *kind)
{
    return g_strcmp0(pf_json_get_text(pf_json_at(value, 0)), kind) == 0 ? pf_json_at(value, 1)
                                                                        : NULL;
}

const char *pf_ovsdb_tool_map_get(const PfJson *row, const char *column, const char *key)
{
    const PfJson *pairs = open_wrapper(pf_json_get(row, column), "map");

    for (guint i = 0; i < pf_json_length(pairs); i++) {
        const PfJson *pair = pf_json_at(pairs, i);

        if (g_strcmp0(pf_json_get_text(pf_json_at(pair, 0)), key) == 0) {
            return pf_json_get_text(pf_json_at(pair, 1));
        }
    }
    return NULL;
}

/* The one value of a column; of an optional one, or NULL. */
static const PfJson *single(const PfJson *row, const char *column)
{
    const PfJson *value = pf_json_get(row, column);
    const PfJson *set = open_wrapper(value, "set");

    return set ? pf_json_at(set, 0) : value;
}

const char *pf_ovsdb_tool_get(const PfJson *row, const char *column)
{
    const PfJson *value = single(row, column);
    const PfJson *uuid = open_wrapper(value, "uuid");

    return pf_json_get_text(uuid ? uuid : value);
}

guint pf_ovsdb_tool_set_length(const PfJson *row, const char *column)
{
    const PfJson *value = pf_json_get(row, column);
    const PfJson *set = open_wrapper(value, "set");

    if (set) {
        return pf_json_length(set);
    }
    return value ? 1 : 0;
}

gint64 pf_ovsdb_tool_integer(const PfJson *row, const char *column, gint64 absent)
{
    const PfJson *value = single(row, column);

    return value && !pf_json_get_text(value) ? pf_json_get_integer(value) : absent;
}
