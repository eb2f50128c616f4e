/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "json.h"

#include <string.h>

/* Deeper than anything that OVSDB sends. */
#define MAX_DEPTH 64

typedef enum {
    TYPE_NULL,
    TYPE_FALSE,
    TYPE_TRUE,
    TYPE_INTEGER,
    TYPE_STRING,
    TYPE_ARRAY,
    TYPE_OBJECT,
} Type;

struct PfJson {
    Type type;
    gint64 integer;
    char *string;
    GPtrArray *keys;   /* of an object: char *, in the order in which they were set */
    GPtrArray *values; /* of an object or array */
};

static PfJson *new_value(Type type)
{
    PfJson *json = g_new0(PfJson, 1);

    json->type = type;
    if (type == TYPE_OBJECT) {
        json->keys = g_ptr_array_new_with_free_func(g_free);
    }
    if (type == TYPE_OBJECT || type == TYPE_ARRAY) {
        json->values = g_ptr_array_new_with_free_func((GDestroyNotify)pf_json_free);
    }
    return json;
}

PfJson *pf_json_object(void)
{
    return new_value(TYPE_OBJECT);
}

PfJson *pf_json_array(void)
{
    return new_value(TYPE_ARRAY);
}

PfJson *pf_json_null(void)
{
    return new_value(TYPE_NULL);
}

PfJson *pf_json_bool(bool value)
{
    return new_value(value ? TYPE_TRUE : TYPE_FALSE);
}

PfJson *pf_json_integer(gint64 value)
{
    PfJson *json = new_value(TYPE_INTEGER);

    json->integer = value;
    return json;
}

PfJson *pf_json_string(const char *value)
{
    if (!value) {
        return pf_json_null();
    }

    PfJson *json = new_value(TYPE_STRING);

    /* File names and the output of programs need not be UTF-8, JSON must be. */
    json->string = g_utf8_make_valid(value, -1);
    return json;
}

void pf_json_free(PfJson *json)
{
    if (!json) {
        return;
    }
    g_free(json->string);
    g_clear_pointer(&json->keys, g_ptr_array_unref);
    g_clear_pointer(&json->values, g_ptr_array_unref);
    g_free(json);
}

void pf_json_set(PfJson *object, const char *key, PfJson *value)
{
    g_assert(object->type == TYPE_OBJECT);
    g_ptr_array_add(object->keys, g_strdup(key));
    g_ptr_array_add(object->values, value);
}

void pf_json_add(PfJson *array, PfJson *value)
{
    g_assert(array->type == TYPE_ARRAY);
    g_ptr_array_add(array->values, value);
}

/* Writing */

static void write_unit(GString *out, guint unit)
{
    g_string_append_printf(out, "\\u%04x", unit);
}

static void write_string(GString *out, const char *s)
{
    g_string_append_c(out, '"');
    for (; *s; s = g_utf8_next_char(s)) {
        gunichar c = g_utf8_get_char(s);

        if (c == '"' || c == '\\') {
            g_string_append_c(out, '\\');
            g_string_append_c(out, (char)c);
        } else if (c == '\n') {
            g_string_append(out, "\\n");
        } else if (c == '\t') {
            g_string_append(out, "\\t");
        } else if (c == ' ' || (g_unichar_isprint(c) && !g_unichar_isspace(c))) {
            g_string_append_unichar(out, c);
        } else if (c > 0xffff) {
            write_unit(out, 0xd800 + ((c - 0x10000) >> 10));
            write_unit(out, 0xdc00 + ((c - 0x10000) & 0x3ff));
        } else {
            write_unit(out, c);
        }
    }
    g_string_append_c(out, '"');
}

static void write_break(GString *out, bool pretty, guint depth)
{
    if (pretty) {
        g_string_append_printf(out, "\n%*s", (int)depth * 2, "");
    }
}

/* As deep as what portferry puts together itself. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void write_value(GString *out, const PfJson *json, bool pretty, guint depth)
{
    switch (json->type) {
    case TYPE_NULL:
        g_string_append(out, "null");
        return;
    case TYPE_FALSE:
        g_string_append(out, "false");
        return;
    case TYPE_TRUE:
        g_string_append(out, "true");
        return;
    case TYPE_INTEGER:
        g_string_append_printf(out, "%" G_GINT64_FORMAT, json->integer);
        return;
    case TYPE_STRING:
        write_string(out, json->string);
        return;
    case TYPE_ARRAY:
    case TYPE_OBJECT:
        break;
    }

    bool object = json->type == TYPE_OBJECT;

    g_string_append_c(out, object ? '{' : '[');
    for (guint i = 0; i < json->values->len; i++) {
        if (i > 0) {
            g_string_append_c(out, ',');
        }
        write_break(out, pretty, depth + 1);
        if (object) {
            write_string(out, g_ptr_array_index(json->keys, i));
            g_string_append(out, pretty ? ": " : ":");
        }
        write_value(out, g_ptr_array_index(json->values, i), pretty, depth + 1);
    }
    if (json->values->len > 0) {
        write_break(out, pretty, depth);
    }
    g_string_append_c(out, object ? '}' : ']');
}

char *pf_json_to_text(const PfJson *json, bool pretty)
{
    GString *out = g_string_new(NULL);

    write_value(out, json, pretty, 0);
    return g_string_free(out, FALSE);
}

/* Reading */

static PfJson *read_value(const char **at, guint depth);

static void skip_space(const char **at)
{
    *at += strspn(*at, " \t\r\n");
}

static bool skip(const char **at, const char *text)
{
    skip_space(at);
    if (!g_str_has_prefix(*at, text)) {
        return false;
    }
    *at += strlen(text);
    return true;
}

static bool read_unit(const char **at, guint *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++, (*at)++) {
        if (!g_ascii_isxdigit(**at)) {
            return false;
        }
        *unit = *unit * 16 + (guint)g_ascii_xdigit_value(**at);
    }
    return true;
}

static bool read_escape(const char **at, GString *out)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    char c = *(*at)++;
    guint unit, low;

    if (c == 'u') {
        if (!read_unit(at, &unit)) {
            return false;
        }
        if (unit >= 0xd800 && unit < 0xdc00) {
            if (!g_str_has_prefix(*at, "\\u")) {
                return false;
            }
            *at += 2;
            if (!read_unit(at, &low) || low < 0xdc00 || low > 0xdfff) {
                return false;
            }
            unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        }
        if (unit == 0 || !g_unichar_validate(unit)) {
            return false;
        }
        g_string_append_unichar(out, unit);
        return true;
    }

    const char *letter = c ? strchr(letters, c) : NULL;

    if (!letter) {
        return false;
    }
    g_string_append_c(out, meanings[letter - letters]);
    return true;
}

/* After the opening quote.  Returns NULL if it doesn't end well. */
static char *read_string(const char **at)
{
    g_autoptr(GString) out = g_string_new(NULL);

    while (**at != '"') {
        if ((guchar) * *at < ' ') {
            return NULL;
        }
        if (**at == '\\') {
            (*at)++;
            if (!read_escape(at, out)) {
                return NULL;
            }
        } else {
            g_string_append_c(out, *(*at)++);
        }
    }
    (*at)++;
    return g_strdup(out->str);
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than MAX_DEPTH */
static PfJson *read_container(const char **at, bool object, guint depth)
{
    g_autoptr(PfJson) json = object ? pf_json_object() : pf_json_array();
    const char *end = object ? "}" : "]";

    if (skip(at, end)) {
        return g_steal_pointer(&json);
    }
    do {
        g_autofree char *key = NULL;

        if (object) {
            if (!skip(at, "\"") || !(key = read_string(at)) || !skip(at, ":")) {
                return NULL;
            }
        }

        PfJson *value = read_value(at, depth + 1);

        if (!value) {
            return NULL;
        }
        if (object) {
            pf_json_set(json, key, value);
        } else {
            pf_json_add(json, value);
        }
    } while (skip(at, ","));
    return skip(at, end) ? g_steal_pointer(&json) : NULL;
}

static PfJson *read_number(const char **at)
{
    const char *start = *at;
    gsize length = strspn(start, "+-0123456789.eE");

    if (length == 0) {
        return NULL;
    }
    *at += length;

    g_autofree char *text = g_strndup(start, length);
    gint64 value = 0;

    g_ascii_string_to_signed(text, 10, G_MININT64, G_MAXINT64, &value, NULL);
    return pf_json_integer(value);
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than MAX_DEPTH */
static PfJson *read_value(const char **at, guint depth)
{
    if (depth > MAX_DEPTH) {
        return NULL;
    }
    if (skip(at, "{")) {
        return read_container(at, true, depth);
    }
    if (skip(at, "[")) {
        return read_container(at, false, depth);
    }
    if (skip(at, "\"")) {
        g_autofree char *string = read_string(at);

        return string ? pf_json_string(string) : NULL;
    }
    if (skip(at, "null")) {
        return pf_json_null();
    }
    if (skip(at, "true")) {
        return pf_json_bool(true);
    }
    if (skip(at, "false")) {
        return pf_json_bool(false);
    }
    return read_number(at);
}

PfJson *pf_json_parse(const char *text)
{
    g_autoptr(PfJson) json = read_value(&text, 0);

    skip_space(&text);
    return json && !*text ? g_steal_pointer(&json) : NULL;
}

const PfJson *pf_json_get(const PfJson *object, const char *key)
{
    if (!object || object->type != TYPE_OBJECT) {
        return NULL;
    }
    for (guint i = 0; i < object->keys->len; i++) {
        if (g_str_equal(g_ptr_array_index(object->keys, i), key)) {
            return g_ptr_array_index(object->values, i);
        }
    }
    return NULL;
}

guint pf_json_length(const PfJson *array)
{
    return array && array->type == TYPE_ARRAY ? array->values->len : 0;
}

const PfJson *pf_json_at(const PfJson *array, guint index)
{
    return index < pf_json_length(array) ? g_ptr_array_index(array->values, index) : NULL;
}

const char *pf_json_get_text(const PfJson *string)
{
    return string && string->type == TYPE_STRING ? string->string : NULL;
}

gint64 pf_json_get_integer(const PfJson *integer)
{
    return integer && integer->type == TYPE_INTEGER ? integer->integer : 0;
}

bool pf_json_is_true(const PfJson *json)
{
    return json && json->type == TYPE_TRUE;
}
