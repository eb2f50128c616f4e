/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "marker.h"

#include <string.h>

#include "chassis-list.h"
#include "error.h"
#include "text.h"

#define HANDOVER_ID_LENGTH 16

/* What stands under PF_MARKER_BY_HAND, if anything does. */
#define YES "yes"

const char *const pf_marker_keys[] = {
    PF_MARKER_SOURCE,
    PF_MARKER_DESTINATION,
    PF_MARKER_DOMAIN,
    PF_MARKER_HANDOVER,
    PF_MARKER_STARTED,
    PF_MARKER_REQUESTED_CHASSIS,
    PF_MARKER_ACTIVATION_STRATEGY,
    PF_MARKER_RESUMED,
    PF_MARKER_BY_HAND,
    NULL,
};

bool pf_marker_is_key(const char *key)
{
    return g_str_has_prefix(key, PF_MARKER_PREFIX);
}

PfMarker *pf_marker_new(void)
{
    return g_new0(PfMarker, 1);
}

void pf_marker_free(PfMarker *marker)
{
    if (!marker) {
        return;
    }
    g_free(marker->source);
    g_free(marker->destination);
    g_free(marker->domain);
    g_free(marker->handover);
    g_free(marker->requested_chassis);
    g_free(marker->activation_strategy);
    g_free(marker);
}

char *pf_handover_id_new(void)
{
    return g_strdup_printf("%08x%08x", g_random_int(), g_random_int());
}

bool pf_handover_id_is_valid(const char *id)
{
    if (!id || strnlen(id, HANDOVER_ID_LENGTH + 1) != HANDOVER_ID_LENGTH) {
        return false;
    }
    return strspn(id, "0123456789abcdef") == HANDOVER_ID_LENGTH;
}

static bool bad_value(GError **error, const char *key, const char *value, const char *wrong)
{
    g_autofree char *safe = pf_printable(value);

    pf_error_set(error, PF_ERROR_BAD_MARKER, NULL, NULL, "the marker's %s '%s' %s", key, safe,
                 wrong);
    return false;
}

static bool check_chassis(const char *key, const char *value, GError **error)
{
    g_autoptr(GError) wrong = NULL;

    if (pf_chassis_name_check(value, key, &wrong)) {
        return true;
    }
    pf_error_set(error, PF_ERROR_BAD_MARKER, NULL, NULL, "the marker is wrong: %s", wrong->message);
    return false;
}

/* Prior values come from a CMS or an operator.  One that could not be given back as it was is
 * refused before the handover begins. */
static bool check_prior(const char *key, const char *value, gsize max, GError **error)
{
    if (value && !pf_text_is_clean(value, max)) {
        return bad_value(error, key, value, "is too long, has control characters or isn't UTF-8");
    }
    return true;
}

static bool check_time(const char *key, gint64 time, gint64 now, GError **error)
{
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, time);

    if (time <= 0) {
        return bad_value(error, key, text, "is not a time");
    }
    /* A difference of two positive numbers can't overflow; a sum could. */
    if (time - MAX(now, 0) > PF_MARKER_FUTURE_MAX) {
        return bad_value(error, key, text,
                         "lies more than a day ahead: a host's clock is wrong, or the marker is");
    }
    return true;
}

/* Whether 'marker' is one that portferry writes.  Both directions pass here, so that what has been
 * written can be read. */
static bool check_marker(const PfMarker *marker, gint64 now, GError **error)
{
    if (!check_chassis(PF_MARKER_SOURCE, marker->source, error) ||
        !check_chassis(PF_MARKER_DESTINATION, marker->destination, error)) {
        return false;
    }
    if (strcmp(marker->source, marker->destination) == 0) {
        return bad_value(error, PF_MARKER_DESTINATION, marker->destination,
                         "is the source as well");
    }
    if (!pf_uuid_is_canonical(marker->domain)) {
        return bad_value(error, PF_MARKER_DOMAIN, marker->domain, "is not a UUID in lower case");
    }
    if (!pf_handover_id_is_valid(marker->handover)) {
        return bad_value(error, PF_MARKER_HANDOVER, marker->handover,
                         "is not 16 lower-case hexadecimal digits");
    }
    return check_time(PF_MARKER_STARTED, marker->started, now, error) &&
           check_prior(PF_MARKER_REQUESTED_CHASSIS, marker->requested_chassis, PF_MARKER_PRIOR_MAX,
                       error) &&
           check_prior(PF_MARKER_ACTIVATION_STRATEGY, marker->activation_strategy,
                       PF_MARKER_VALUE_MAX, error) &&
           (marker->resumed == 0 || check_time(PF_MARKER_RESUMED, marker->resumed, now, error));
}

static void put(GHashTable *table, const char *key, const char *value)
{
    if (value) {
        g_hash_table_insert(table, g_strdup(key), g_strdup(value));
    }
}

static void put_time(GHashTable *table, const char *key, gint64 time)
{
    g_hash_table_insert(table, g_strdup(key), g_strdup_printf("%" G_GINT64_FORMAT, time));
}

GHashTable *pf_marker_encode(const PfMarker *marker, gint64 now, GError **error)
{
    if (!check_marker(marker, now, error)) {
        return NULL;
    }

    GHashTable *table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);

    put(table, PF_MARKER_SOURCE, marker->source);
    put(table, PF_MARKER_DESTINATION, marker->destination);
    put(table, PF_MARKER_DOMAIN, marker->domain);
    put(table, PF_MARKER_HANDOVER, marker->handover);
    put_time(table, PF_MARKER_STARTED, marker->started);
    put(table, PF_MARKER_REQUESTED_CHASSIS, marker->requested_chassis);
    put(table, PF_MARKER_ACTIVATION_STRATEGY, marker->activation_strategy);
    if (marker->resumed) {
        put_time(table, PF_MARKER_RESUMED, marker->resumed);
    }
    if (marker->by_hand) {
        put(table, PF_MARKER_BY_HAND, YES);
    }
    return table;
}

/* Parses what put_time() prints, and nothing else: digits, no sign, no leading zero. */
static bool parse_time(const char *key, const char *value, gint64 *time, GError **error)
{
    guint64 number = 0;

    if (*value == '0' || !g_ascii_isdigit(*value) ||
        !g_ascii_string_to_unsigned(value, 10, 1, G_MAXINT64, &number, NULL)) {
        return bad_value(error, key, value, "is not a number of microseconds since the epoch");
    }
    *time = (gint64)number;
    return true;
}

PfMarker *pf_marker_decode(PfMarkerLookup lookup, gpointer user_data, gint64 now, GError **error)
{
    g_autoptr(PfMarker) marker = pf_marker_new();
    g_autofree char *started = NULL;
    g_autofree char *resumed = NULL;
    g_autofree char *by_hand = NULL;
    const struct {
        const char *key;
        char **value;
        bool required;
    } fields[] = {
        {PF_MARKER_SOURCE, &marker->source, true},
        {PF_MARKER_DESTINATION, &marker->destination, true},
        {PF_MARKER_DOMAIN, &marker->domain, true},
        {PF_MARKER_HANDOVER, &marker->handover, true},
        {PF_MARKER_STARTED, &started, true},
        {PF_MARKER_REQUESTED_CHASSIS, &marker->requested_chassis, false},
        {PF_MARKER_ACTIVATION_STRATEGY, &marker->activation_strategy, false},
        {PF_MARKER_RESUMED, &resumed, false},
        {PF_MARKER_BY_HAND, &by_hand, false},
    };
    const char *missing = NULL;
    bool found = false;

    G_STATIC_ASSERT(G_N_ELEMENTS(fields) == G_N_ELEMENTS(pf_marker_keys) - 1);

    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++) {
        *fields[i].value = g_strdup(lookup(fields[i].key, user_data));
        if (*fields[i].value) {
            found = true;
        } else if (fields[i].required && !missing) {
            missing = fields[i].key;
        }
    }
    if (!found) {
        pf_error_set(error, PF_ERROR_NOT_FOUND, NULL, NULL, "there is no marker");
        return NULL;
    }
    if (missing) {
        pf_error_set(error, PF_ERROR_BAD_MARKER, NULL, NULL, "the marker has no %s", missing);
        return NULL;
    }
    if (!parse_time(PF_MARKER_STARTED, started, &marker->started, error) ||
        (resumed && !parse_time(PF_MARKER_RESUMED, resumed, &marker->resumed, error)) ||
        !check_marker(marker, now, error)) {
        return NULL;
    }
    if (by_hand && strcmp(by_hand, YES) != 0) {
        bad_value(error, PF_MARKER_BY_HAND, by_hand, "is not '" YES "'");
        return NULL;
    }
    marker->by_hand = by_hand != NULL;
    return g_steal_pointer(&marker);
}

static const char *lookup_in_table(const char *key, gpointer user_data)
{
    return g_hash_table_lookup(user_data, key);
}

PfMarker *pf_marker_decode_table(GHashTable *table, gint64 now, GError **error)
{
    return pf_marker_decode(lookup_in_table, table, now, error);
}
