/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>
#include <stdbool.h>

/*
 * JSON: what --json prints, and what ovsdb-client answers.  Numbers are whole ones, which is all
 * that either needs; others are read, and are 0.
 */
typedef struct PfJson PfJson;

PfJson *pf_json_object(void);
PfJson *pf_json_array(void);
PfJson *pf_json_string(const char *value); /* NULL becomes null */
PfJson *pf_json_integer(gint64 value);
PfJson *pf_json_bool(bool value);
PfJson *pf_json_null(void);
void pf_json_free(PfJson *json);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfJson, pf_json_free)

/* Both take 'value' over.  A key is set once. */
void pf_json_set(PfJson *object, const char *key, PfJson *value);
void pf_json_add(PfJson *array, PfJson *value);

/* Returns the text, over several lines or on one, without a newline at the end.  Whatever a
 * terminal might act on is escaped, so that the text is ASCII as far as control and format
 * characters go. */
char *pf_json_to_text(const PfJson *json, bool pretty);

/* Returns NULL if 'text' is not one JSON value. */
PfJson *pf_json_parse(const char *text);

/* All of these take NULL, and values of another type, for an absent value. */
const PfJson *pf_json_get(const PfJson *object, const char *key);
const PfJson *pf_json_at(const PfJson *array, guint index);
guint pf_json_length(const PfJson *array);
const char *pf_json_get_text(const PfJson *string); /* or NULL */
gint64 pf_json_get_integer(const PfJson *integer);  /* or 0 */
bool pf_json_is_true(const PfJson *json);
