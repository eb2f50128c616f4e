/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The marker, in a row as a CMS or another version may have left it.  NUL-terminated fields: a
 * letter that stands for a key (see put()), then the value.
 */

#include <string.h>

#include "error.h"
#include "fuzz.h"
#include "marker.h"
#include "plan.h"

#define NOW G_GINT64_CONSTANT(1800000000000000)
#define ID "0123456789abcdef"

static GHashTable *table_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

static GHashTable *table_copy(GHashTable *from)
{
    GHashTable *to = table_new();
    GHashTableIter iter;
    gpointer key, value;

    g_hash_table_iter_init(&iter, from);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        g_hash_table_insert(to, g_strdup(key), g_strdup(value));
    }
    return to;
}

static void assert_equal(GHashTable *a, GHashTable *b)
{
    GHashTableIter iter;
    gpointer key, value;

    g_assert_cmpuint(g_hash_table_size(a), ==, g_hash_table_size(b));
    g_hash_table_iter_init(&iter, a);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        g_assert_cmpstr(g_hash_table_lookup(b, key), ==, value);
    }
}

static void put(PfRow *row, char letter, const char *value)
{
    guint n_keys = g_strv_length((char **)pf_marker_keys);

    if (letter >= 'a' && letter < 'a' + (int)n_keys) {
        g_hash_table_insert(row->external_ids, g_strdup(pf_marker_keys[letter - 'a']),
                            g_strdup(value));
    } else if (letter == 'r') {
        g_hash_table_insert(row->options, g_strdup("requested-chassis"), g_strdup(value));
    } else if (letter == 's') {
        g_hash_table_insert(row->options, g_strdup("activation-strategy"), g_strdup(value));
    } else if (letter == 'l') {
        g_hash_table_insert(row->external_ids, g_strdup(PF_MARKER_PREFIX "later"), g_strdup(value));
    } else {
        g_hash_table_insert(row->external_ids, g_strdup("neutron:name"), g_strdup(value));
    }
}

static void apply(PfRow *row, const GArray *changes)
{
    for (guint i = 0; i < changes->len; i++) {
        const PfChange *c = &g_array_index(changes, PfChange, i);
        GHashTable *t = c->external_id ? row->external_ids : row->options;

        g_assert_true(c->external_id ? pf_marker_is_key(c->key)
                                     : g_str_equal(c->key, "requested-chassis") ||
                                           g_str_equal(c->key, "activation-strategy"));
        if (c->value) {
            g_hash_table_insert(t, g_strdup(c->key), g_strdup(c->value));
        } else {
            g_hash_table_remove(t, c->key);
        }
    }
}

/* A marker that can be read is what was written, and can be written. */
static void check_marker(const PfMarker *marker)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GHashTable) keys = pf_marker_encode(marker, NOW, &error);

    g_assert_no_error(error);

    g_autoptr(PfMarker) again = pf_marker_decode_table(keys, NOW, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(again->source, ==, marker->source);
    g_assert_cmpstr(again->destination, ==, marker->destination);
    g_assert_cmpstr(again->domain, ==, marker->domain);
    g_assert_cmpstr(again->handover, ==, marker->handover);
    g_assert_cmpint(again->started, ==, marker->started);
    g_assert_cmpint(again->resumed, ==, marker->resumed);
    g_assert_cmpstr(again->requested_chassis, ==, marker->requested_chassis);
    g_assert_cmpstr(again->activation_strategy, ==, marker->activation_strategy);
    g_assert_true(again->by_hand == marker->by_hand);
}

/* Every write on such a row keeps to its own keys, and leaves no marker behind where it ends. */
static void check_writes(const PfRow *row, const PfMarker *marker)
{
    const PfEnds ends = {{marker->source, NULL}, {marker->destination, NULL}};

    for (guint i = 0; i < PF_N_WRITES * 4; i++) {
        g_autoptr(GHashTable) options = table_copy(row->options);
        g_autoptr(GHashTable) external_ids = table_copy(row->external_ids);
        PfRow copy = {options, external_ids};
        g_autoptr(GArray) changes = NULL;
        PfWrite write = (PfWrite)(i / 4);
        PfVerdict verdict = pf_plan_write(write, i & 1 ? PF_ROLE_SOURCE : PF_ROLE_DESTINATION, row,
                                          marker, &ends, (i & 2) != 0, NOW, &changes);

        g_assert_true((verdict == PF_VERDICT_CHANGE || verdict == PF_VERDICT_MARKER_ONLY) ==
                      (changes != NULL));
        if (!changes) {
            continue;
        }
        apply(&copy, changes);
        if (verdict == PF_VERDICT_MARKER_ONLY) {
            assert_equal(copy.options, row->options);
        }
        if (verdict == PF_VERDICT_MARKER_ONLY || write == PF_WRITE_FOLLOW ||
            write == PF_WRITE_PUT_BACK) {
            g_assert_false(pf_plan_is_marked(&copy, marker->handover));
        }
    }
}

/* A handover that begins on a row and is rolled back leaves it as it was. */
static void check_there_and_back(const PfRow *row)
{
    g_autoptr(GHashTable) options = table_copy(row->options);
    g_autoptr(GHashTable) external_ids = table_copy(row->external_ids);
    PfRow copy = {options, external_ids};
    const PfMarker begun = {.source = (char *)"hv1",
                            .destination = (char *)"hv2",
                            .domain = (char *)"5d3c6b4e-1111-4000-8000-000000000001",
                            .handover = (char *)ID,
                            .started = NOW};
    const PfEnds ends = {{"hv1", NULL}, {"hv2", NULL}};
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) begin = pf_plan_preplug(&copy, &begun, "rarp", NOW, &error);

    if (!begin) {
        check_error(error);
        return;
    }
    apply(&copy, begin);
    g_assert_true(pf_plan_is_marked(&copy, ID));
    g_assert_cmpint(pf_plan_kind(&copy, &ends), ==, PF_LIST_BOTH);

    static const PfWrite back[] = {PF_WRITE_ROLL_BACK, PF_WRITE_PUT_BACK};

    for (guint i = 0; i < G_N_ELEMENTS(back); i++) {
        g_autoptr(PfMarker) marker = pf_marker_decode_table(copy.external_ids, NOW, &error);
        g_autoptr(GArray) changes = NULL;

        g_assert_no_error(error);
        g_assert_cmpint(
            pf_plan_write(back[i], PF_ROLE_DESTINATION, &copy, marker, &ends, FALSE, NOW, &changes),
            ==, PF_VERDICT_CHANGE);
        apply(&copy, changes);
    }
    assert_equal(copy.options, row->options);
    g_hash_table_remove(row->external_ids, PF_MARKER_PREFIX "later"); /* remains of another */
    for (guint i = 0; pf_marker_keys[i]; i++) {
        g_hash_table_remove(row->external_ids, pf_marker_keys[i]);
    }
    assert_equal(copy.external_ids, row->external_ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GHashTable) options = table_new();
    g_autoptr(GHashTable) external_ids = table_new();
    PfRow row = {options, external_ids};
    g_autoptr(GError) error = NULL;

    while (size > 0) {
        const uint8_t *end = memchr(data, '\0', size);
        size_t length = end ? (size_t)(end - data) : size;

        if (length > 0) {
            g_autofree char *value = g_strndup((const char *)data + 1, length - 1);

            put(&row, (char)data[0], value);
        }
        length += end != NULL;
        data += length;
        size -= length;
    }

    g_autoptr(PfMarker) marker = pf_marker_decode_table(external_ids, NOW, &error);

    if (marker) {
        check_marker(marker);
        check_writes(&row, marker);
    } else {
        check_error(error);
        g_assert_true(g_error_matches(error, PF_ERROR, PF_ERROR_BAD_MARKER) ||
                      g_error_matches(error, PF_ERROR, PF_ERROR_NOT_FOUND));
    }
    check_there_and_back(&row);
    return 0;
}
