/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <string.h>

#include "error.h"
#include "marker.h"

#define NOW G_GINT64_CONSTANT(1790000000000000)
#define DOMAIN "0a1b2c3d-4e5f-6789-abcd-ef0123456789"

static GHashTable *table_new(void)
{
    GHashTable *table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    static const char *const pairs[][2] = {
        {"portferry-source", "hv1"},
        {"portferry-destination", "hv2"},
        {"portferry-domain", DOMAIN},
        {"portferry-handover", "0123456789abcdef"},
        {"portferry-started", "1789999999000000"},
        {"neutron:port_name", "not ours"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(pairs); i++) {
        g_hash_table_insert(table, g_strdup(pairs[i][0]), g_strdup(pairs[i][1]));
    }
    return table;
}

static void set(GHashTable *table, const char *key, const char *value)
{
    if (value) {
        g_hash_table_insert(table, g_strdup(key), g_strdup(value));
    } else {
        g_hash_table_remove(table, key);
    }
}

static void assert_equal(const PfMarker *a, const PfMarker *b)
{
    g_assert_cmpstr(a->source, ==, b->source);
    g_assert_cmpstr(a->destination, ==, b->destination);
    g_assert_cmpstr(a->domain, ==, b->domain);
    g_assert_cmpstr(a->handover, ==, b->handover);
    g_assert_cmpint(a->started, ==, b->started);
    g_assert_cmpstr(a->requested_chassis, ==, b->requested_chassis);
    g_assert_cmpstr(a->activation_strategy, ==, b->activation_strategy);
    g_assert_cmpint(a->resumed, ==, b->resumed);
    g_assert_cmpint(a->by_hand, ==, b->by_hand);
}

static void test_decode(void)
{
    g_autoptr(GHashTable) table = table_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(PfMarker) marker = pf_marker_decode_table(table, NOW, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(marker->source, ==, "hv1");
    g_assert_cmpstr(marker->destination, ==, "hv2");
    g_assert_cmpstr(marker->domain, ==, DOMAIN);
    g_assert_cmpstr(marker->handover, ==, "0123456789abcdef");
    g_assert_cmpint(marker->started, ==, NOW - G_USEC_PER_SEC);
    g_assert_null(marker->requested_chassis);
    g_assert_null(marker->activation_strategy);
    g_assert_cmpint(marker->resumed, ==, 0);
    g_assert_false(marker->by_hand);
}

static void test_round_trip(void)
{
    static const char *const priors[] = {NULL, "", "hv1", "hv1,hv2", " odd , list,", "虚拟机"};
    static const gint64 times[] = {0, 1, NOW, NOW + PF_MARKER_FUTURE_MAX};

    for (gsize i = 0; i < G_N_ELEMENTS(priors); i++) {
        for (gsize j = 0; j < G_N_ELEMENTS(priors); j++) {
            for (gsize k = 0; k < G_N_ELEMENTS(times); k++) {
                PfMarker marker = {
                    .source = (char *)"hv 1",
                    .destination = (char *)"ü",
                    .domain = (char *)DOMAIN,
                    .handover = (char *)"fedcba9876543210",
                    .started = times[MAX(k, 1)],
                    .requested_chassis = (char *)priors[i],
                    .activation_strategy = (char *)priors[j],
                    .resumed = times[k],
                    .by_hand = (i + k) % 2,
                };
                g_autoptr(GError) error = NULL;
                g_autoptr(GHashTable) table = pf_marker_encode(&marker, NOW, &error);

                g_assert_no_error(error);
                g_assert_cmpuint(g_hash_table_size(table), ==,
                                 5u + !!priors[i] + !!priors[j] + (times[k] != 0) + marker.by_hand);

                g_autoptr(PfMarker) back = pf_marker_decode_table(table, NOW, &error);

                g_assert_no_error(error);
                assert_equal(&marker, back);
            }
        }
    }
}

static void test_no_marker(void)
{
    g_autoptr(GHashTable) empty = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) others = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GError) error = NULL;

    g_hash_table_insert(others, (gpointer) "neutron:revision", (gpointer) "4");
    g_hash_table_insert(others, (gpointer) "portferry-of-the-future", (gpointer) "x");

    g_assert_null(pf_marker_decode_table(empty, NOW, &error));
    g_assert_error(error, PF_ERROR, PF_ERROR_NOT_FOUND);
    g_clear_error(&error);
    g_assert_null(pf_marker_decode_table(others, NOW, &error));
    g_assert_error(error, PF_ERROR, PF_ERROR_NOT_FOUND);
    g_assert_null(pf_marker_decode_table(empty, NOW, NULL));
}

/* One key changed, or taken away where the value is NULL, in a marker that is good. */
static void test_nonsense(void)
{
    static const struct {
        const char *key, *value;
    } cases[] = {
        {"portferry-source", NULL},
        {"portferry-source", ""},
        {"portferry-source", "hv2"}, /* the destination */
        {"portferry-source", "a,b"},
        {"portferry-source", "a\nb"},
        {"portferry-source", "\xc3"},
        {"portferry-destination", NULL},
        {"portferry-destination", ""},
        {"portferry-destination", "hv1"},
        {"portferry-destination", "hv2,hv3"},
        {"portferry-destination", "\033]0;x\007"},
        {"portferry-domain", NULL},
        {"portferry-domain", ""},
        {"portferry-domain", "web1"},
        {"portferry-domain", "0A1B2C3D-4E5F-6789-ABCD-EF0123456789"},
        {"portferry-domain", DOMAIN "0"},
        {"portferry-domain", " " DOMAIN},
        {"portferry-handover", NULL},
        {"portferry-handover", ""},
        {"portferry-handover", "0123456789abcde"},
        {"portferry-handover", "0123456789abcdef0"},
        {"portferry-handover", "0123456789ABCDEF"},
        {"portferry-handover", "../../../../etc/"},
        {"portferry-handover", "0123456789abcde/"},
        {"portferry-started", NULL},
        {"portferry-started", ""},
        {"portferry-started", "0"},
        {"portferry-started", "-1"},
        {"portferry-started", "+1"},
        {"portferry-started", "01"},
        {"portferry-started", " 1"},
        {"portferry-started", "1 "},
        {"portferry-started", "1.5"},
        {"portferry-started", "1e6"},
        {"portferry-started", "0x10"},
        {"portferry-started", "today"},
        {"portferry-started", "1790086400000001"}, /* a day and a microsecond ahead */
        {"portferry-started", "9223372036854775807"},
        {"portferry-started", "9223372036854775808"},
        {"portferry-started", "99999999999999999999999999999999"},
        {"portferry-requested-chassis", "a\nb"},
        {"portferry-requested-chassis", "\xff"},
        {"portferry-activation-strategy", "rarp\t"},
        {"portferry-activation-strategy", "\x7f"},
        {"portferry-resumed", ""},
        {"portferry-resumed", "0"},
        {"portferry-resumed", "-5"},
        {"portferry-resumed", "yes"},
        {"portferry-resumed", "1790086400000001"},
        {"portferry-by-hand", ""},
        {"portferry-by-hand", "no"},
        {"portferry-by-hand", "Yes"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GHashTable) table = table_new();
        g_autoptr(GError) error = NULL;

        set(table, cases[i].key, cases[i].value);
        g_assert_null(pf_marker_decode_table(table, NOW, &error));
        g_assert_error(error, PF_ERROR, PF_ERROR_BAD_MARKER);
        /* The text names the key (or, for an equal pair, its twin), on one line. */
        g_assert_true(strstr(error->message, cases[i].key) ||
                      strstr(error->message, "portferry-destination"));
        for (const char *p = error->message; *p; p++) {
            g_assert_false(g_ascii_iscntrl(*p));
        }
    }
}

static void test_too_long(void)
{
    static const struct {
        const char *key;
        gsize max;
    } cases[] = {
        {"portferry-source", 255},
        {"portferry-destination", 255},
        {"portferry-requested-chassis", PF_MARKER_PRIOR_MAX},
        {"portferry-activation-strategy", 255},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GHashTable) table = table_new();
        g_autofree char *fits = g_strnfill(cases[i].max, 'x');
        g_autofree char *longer = g_strnfill(cases[i].max + 1, 'x');
        g_autoptr(GError) error = NULL;

        set(table, cases[i].key, fits);

        g_autoptr(PfMarker) marker = pf_marker_decode_table(table, NOW, &error);

        g_assert_no_error(error);
        g_assert_nonnull(marker);
        set(table, cases[i].key, longer);
        g_assert_null(pf_marker_decode_table(table, NOW, &error));
        g_assert_error(error, PF_ERROR, PF_ERROR_BAD_MARKER);
        g_assert_cmpuint(strlen(error->message), <, 1000);
    }
}

static void test_time_limit(void)
{
    static const gint64 nows[] = {NOW - G_USEC_PER_SEC - PF_MARKER_FUTURE_MAX, NOW, G_MAXINT64};
    g_autoptr(GHashTable) table = table_new();

    for (gsize i = 0; i < G_N_ELEMENTS(nows); i++) {
        g_autoptr(PfMarker) marker = pf_marker_decode_table(table, nows[i], NULL);

        g_assert_nonnull(marker);
    }
    /* A clock at the epoch, before it, or just not far enough. */
    g_assert_null(pf_marker_decode_table(table, nows[0] - 1, NULL));
    g_assert_null(pf_marker_decode_table(table, 0, NULL));
    g_assert_null(pf_marker_decode_table(table, G_MININT64, NULL));
}

/* What can't be read back isn't written. */
static void test_encode_refuses(void)
{
    g_autoptr(GHashTable) table = table_new();
    g_autofree char *long_list = g_strnfill(PF_MARKER_PRIOR_MAX + 1, 'x');

    for (int i = 0; i < 10; i++) {
        g_autoptr(PfMarker) marker = pf_marker_decode_table(table, NOW, NULL);
        g_autoptr(GError) error = NULL;
        char **const fields[] = {&marker->source, &marker->destination, &marker->domain,
                                 &marker->handover};

        if (i < 4) {
            g_clear_pointer(fields[i], g_free);
        } else if (i == 4) {
            g_free(marker->destination);
            marker->destination = g_strdup(marker->source);
        } else if (i == 5) {
            marker->started = 0;
        } else if (i == 6) {
            marker->started = G_MAXINT64;
        } else if (i == 7) {
            marker->resumed = -1;
        } else if (i == 8) {
            marker->requested_chassis = g_strdup(long_list);
        } else {
            marker->activation_strategy = g_strdup("rarp\n");
        }
        g_assert_null(pf_marker_encode(marker, NOW, &error));
        g_assert_error(error, PF_ERROR, PF_ERROR_BAD_MARKER);
    }
}

static void test_keys(void)
{
    PfMarker marker = {
        .source = (char *)"a",
        .destination = (char *)"b",
        .domain = (char *)DOMAIN,
        .handover = (char *)"fedcba9876543210",
        .started = 1,
        .requested_chassis = (char *)"",
        .activation_strategy = (char *)"rarp",
        .resumed = 1,
        .by_hand = true,
    };
    g_autoptr(GHashTable) table = pf_marker_encode(&marker, NOW, NULL);
    guint n = 0;

    for (; pf_marker_keys[n]; n++) {
        g_assert_true(pf_marker_is_key(pf_marker_keys[n]));
        g_assert_true(g_hash_table_contains(table, pf_marker_keys[n]));
    }
    g_assert_cmpuint(n, ==, g_hash_table_size(table));
    g_assert_true(pf_marker_is_key("portferry-of-the-future"));
    g_assert_true(pf_marker_is_key("portferry-"));
    g_assert_false(pf_marker_is_key("portferry"));
    g_assert_false(pf_marker_is_key("Portferry-source"));
    g_assert_false(pf_marker_is_key(" portferry-source"));
    g_assert_false(pf_marker_is_key(""));
    pf_marker_free(NULL);
}

static void test_handover_id(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (int i = 0; i < 10000; i++) {
        char *id = pf_handover_id_new();

        g_assert_true(pf_handover_id_is_valid(id));
        g_assert_true(g_hash_table_add(seen, id));
    }
    g_assert_false(pf_handover_id_is_valid(NULL));
    g_assert_false(pf_handover_id_is_valid(""));
    g_assert_false(pf_handover_id_is_valid("0123456789abcdeg"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/marker/decode", test_decode);
    g_test_add_func("/marker/round-trip", test_round_trip);
    g_test_add_func("/marker/no-marker", test_no_marker);
    g_test_add_func("/marker/nonsense", test_nonsense);
    g_test_add_func("/marker/too-long", test_too_long);
    g_test_add_func("/marker/time-limit", test_time_limit);
    g_test_add_func("/marker/encode-refuses", test_encode_refuses);
    g_test_add_func("/marker/keys", test_keys);
    g_test_add_func("/marker/handover-id", test_handover_id);
    return g_test_run();
}
