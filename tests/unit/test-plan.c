/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <glib.h>

#include "error.h"
#include "plan.h"

#define NOW G_GINT64_CONSTANT(1800000000000000)
#define ID "0123456789abcdef"

static const PfEnds ends = {{"hv1", "host1.example"}, {"hv2", "host2.example"}};

static GHashTable *table(const char *key, ...)
{
    GHashTable *t = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    va_list args;
    va_start(args, key);
    while (key) {
        const char *value = va_arg(args, const char *);
        g_hash_table_insert(t, g_strdup(key), g_strdup(value));
        key = va_arg(args, const char *);
    }
    va_end(args);
    return t;
}

static void apply(PfRow *row, const GArray *changes)
{
    for (guint i = 0; i < changes->len; i++) {
        const PfChange *c = &g_array_index(changes, PfChange, i);
        GHashTable *t = c->external_id ? row->external_ids : row->options;
        if (c->value) {
            g_hash_table_insert(t, g_strdup(c->key), g_strdup(c->value));
        } else {
            /* The IDL complains about keys that aren't there. */
            g_assert_true(g_hash_table_remove(t, c->key));
        }
    }
}

static void assert_table(GHashTable *t, GHashTable *wanted)
{
    GHashTableIter iter;
    gpointer key, value;
    g_hash_table_iter_init(&iter, wanted);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        g_assert_cmpstr(g_hash_table_lookup(t, key), ==, value);
    }
    g_assert_cmpuint(g_hash_table_size(t), ==, g_hash_table_size(wanted));
}

static PfMarker *marker_of(const PfRow *row)
{
    g_autoptr(GError) error = NULL;
    PfMarker *marker = pf_marker_decode_table(row->external_ids, NOW, &error);
    g_assert_no_error(error);
    return marker;
}

static void preplug(PfRow *row)
{
    g_autoptr(GError) error = NULL;
    const PfMarker marker = {.source = (char *)"hv1",
                             .destination = (char *)"hv2",
                             .domain = (char *)"199a8865-3c59-4a2b-966f-cc188c13125d",
                             .handover = (char *)ID,
                             .started = NOW};
    g_autoptr(GArray) changes = pf_plan_preplug(row, &marker, "rarp", NOW, &error);
    g_assert_no_error(error);
    apply(row, changes);
    g_assert_cmpstr(g_hash_table_lookup(row->options, "requested-chassis"), ==, "hv1,hv2");
    g_assert_cmpstr(g_hash_table_lookup(row->options, "activation-strategy"), ==, "rarp");
    g_assert_cmpint(pf_plan_kind(row, &ends), ==, PF_LIST_BOTH);
    g_assert_true(pf_plan_is_marked(row, ID));
}

static PfVerdict write_row(PfRow *row, PfWrite write, PfRole role)
{
    g_autoptr(PfMarker) marker = marker_of(row);
    g_autoptr(GArray) changes = NULL;
    PfVerdict verdict = pf_plan_write(write, role, row, marker, &ends, FALSE, NOW, &changes);
    g_assert_true((changes != NULL) ==
                  (verdict == PF_VERDICT_CHANGE || verdict == PF_VERDICT_MARKER_ONLY));
    if (changes) {
        apply(row, changes);
    }
    return verdict;
}

/* What was before -> what is afterwards, when the guest has gone over, and when it has not. */
typedef struct {
    const char *requested, *strategy; /* NULL: absent */
    const char *followed;
} Case;

static const Case cases[] = {
    {NULL, NULL, NULL},
    {"hv1", NULL, "hv2"},
    {"host1.example", NULL, "hv2"},
    {"", NULL, ""},
    {"hv1", "rarp", "hv2"},
    {NULL, "rarp", NULL},
    {"hv1,hv3", NULL, "hv2,hv3"},
    {"hv2", NULL, "hv2"},
    {"hv3", NULL, "hv3"},
};

static void set_if(GHashTable *t, const char *key, const char *value)
{
    if (value) {
        g_hash_table_insert(t, g_strdup(key), g_strdup(value));
    }
}

static void test_there_and_back(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (guint ok = 0; ok < 2; ok++) {
            g_autoptr(GHashTable) options = table("mcast_flood", "true", NULL);
            g_autoptr(GHashTable) ids = table("neutron:x", "y", NULL);
            g_autoptr(GHashTable) wanted = table("mcast_flood", "true", NULL);
            g_autoptr(GHashTable) wanted_ids = table("neutron:x", "y", NULL);
            PfRow row = {options, ids};
            set_if(options, "requested-chassis", cases[i].requested);
            set_if(options, "activation-strategy", cases[i].strategy);
            set_if(wanted, "requested-chassis", ok ? cases[i].followed : cases[i].requested);
            set_if(wanted, "activation-strategy", cases[i].strategy);

            preplug(&row);
            if (ok) {
                g_assert_cmpint(write_row(&row, PF_WRITE_MARK, PF_ROLE_DESTINATION), ==,
                                PF_VERDICT_CHANGE);
                g_assert_cmpint(write_row(&row, PF_WRITE_MARK, PF_ROLE_DESTINATION), ==,
                                PF_VERDICT_NOTHING);
                g_assert_cmpint(write_row(&row, PF_WRITE_ROLL_BACK, PF_ROLE_SOURCE), ==,
                                PF_VERDICT_CONFLICT);
                g_assert_cmpint(write_row(&row, PF_WRITE_COLLAPSE, PF_ROLE_DESTINATION), ==,
                                PF_VERDICT_CHANGE);
                g_assert_cmpint(pf_plan_kind(&row, &ends), ==, PF_LIST_DST);
                g_assert_null(g_hash_table_lookup(options, "activation-strategy"));
                g_assert_cmpint(write_row(&row, PF_WRITE_FOLLOW, PF_ROLE_SOURCE), ==,
                                PF_VERDICT_CHANGE);
            } else {
                g_assert_cmpint(write_row(&row, PF_WRITE_PUT_BACK, PF_ROLE_DESTINATION), ==,
                                PF_VERDICT_CONFLICT);
                g_assert_cmpint(write_row(&row, PF_WRITE_ROLL_BACK, PF_ROLE_DESTINATION), ==,
                                PF_VERDICT_CHANGE);
                g_assert_cmpint(pf_plan_kind(&row, &ends), ==, PF_LIST_SRC);
                g_assert_cmpint(write_row(&row, PF_WRITE_COLLAPSE, PF_ROLE_DESTINATION), ==,
                                PF_VERDICT_CONFLICT);
                g_assert_cmpint(write_row(&row, PF_WRITE_PUT_BACK, PF_ROLE_DESTINATION), ==,
                                PF_VERDICT_CHANGE);
            }
            assert_table(options, wanted);
            assert_table(ids, wanted_ids);
        }
    }
}

/* What a CMS has set meanwhile stays; only the marker goes, keys of a later version included. */
static void test_foreign(void)
{
    static const PfWrite ends_of_handover[] = {PF_WRITE_FOLLOW, PF_WRITE_PUT_BACK};
    for (guint i = 0; i < G_N_ELEMENTS(ends_of_handover); i++) {
        g_autoptr(GHashTable) options = table(NULL, NULL);
        g_autoptr(GHashTable) ids = table(NULL, NULL);
        g_autoptr(GHashTable) wanted =
            table("requested-chassis", "hv3", "activation-strategy", "rarp", NULL);
        g_autoptr(GHashTable) none = table(NULL, NULL);
        PfRow row = {options, ids};
        preplug(&row);
        g_hash_table_insert(options, g_strdup("requested-chassis"), g_strdup("hv3"));
        g_hash_table_insert(ids, g_strdup("portferry-later"), g_strdup("1"));
        g_assert_cmpint(write_row(&row, PF_WRITE_COLLAPSE, PF_ROLE_DESTINATION), ==,
                        PF_VERDICT_CONFLICT);
        g_assert_cmpint(write_row(&row, PF_WRITE_ROLL_BACK, PF_ROLE_SOURCE), ==,
                        PF_VERDICT_CONFLICT);
        g_assert_cmpint(write_row(&row, ends_of_handover[i], PF_ROLE_SOURCE), ==,
                        PF_VERDICT_MARKER_ONLY);
        assert_table(options, wanted);
        assert_table(ids, none);
    }
}

static void test_busy(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GHashTable) options = table(NULL, NULL);
    g_autoptr(GHashTable) ids = table("portferry-handover", "fedcba9876543210",
                                      "portferry-destination", "evil\nhost", NULL);
    PfRow row = {options, ids};
    const PfMarker marker = {.source = (char *)"hv1",
                             .destination = (char *)"hv2",
                             .domain = (char *)"199a8865-3c59-4a2b-966f-cc188c13125d",
                             .handover = (char *)ID,
                             .started = NOW};
    g_assert_null(pf_plan_preplug(&row, &marker, "rarp", NOW, &error));
    g_assert_error(error, PF_ERROR, PF_ERROR_BUSY);
    g_assert_null(g_strstr_len(error->message, -1, "\n"));
}

/* The whole table of verdicts keeps the rules that the state machine is built on. */
static void test_verdicts(void)
{
    for (guint write = 0; write < PF_N_WRITES; write++) {
        for (guint role = 0; role <= PF_ROLE_DESTINATION; role++) {
            for (guint kind = 0; kind < PF_N_LISTS; kind++) {
                for (guint flags = 0; flags < 4; flags++) {
                    gboolean resumed = (flags & 1) != 0, overridden = (flags & 2) != 0;
                    PfVerdict v = pf_plan_decide((PfWrite)write, (PfRole)role, (PfListKind)kind,
                                                 resumed, overridden);
                    /* What a CMS has set is never changed. */
                    if (kind == PF_LIST_FOREIGN) {
                        g_assert_cmpint(v, !=, PF_VERDICT_CHANGE);
                    }
                    /* Without an operator, nobody takes the guest from where it is said to be. */
                    if (write == PF_WRITE_ROLL_BACK && role == PF_ROLE_SOURCE && !overridden &&
                        (resumed || kind == PF_LIST_DST) && kind != PF_LIST_SRC) {
                        g_assert_cmpint(v, ==, PF_VERDICT_CONFLICT);
                    }
                    if (write == PF_WRITE_COLLAPSE && kind == PF_LIST_SRC && !overridden) {
                        g_assert_cmpint(v, ==, PF_VERDICT_CONFLICT);
                    }
                    /* A handover ends only from a list of one chassis. */
                    if ((write == PF_WRITE_PUT_BACK &&
                         (kind == PF_LIST_BOTH || kind == PF_LIST_TURNED)) ||
                        (write == PF_WRITE_FOLLOW && kind == PF_LIST_SRC)) {
                        g_assert_cmpint(v, ==, PF_VERDICT_CONFLICT);
                    }
                }
            }
        }
    }
}

/* Both are named all the way; only their order changes, and only between them. */
static void test_turn(void)
{
    g_autoptr(GHashTable) options = table(NULL, NULL);
    g_autoptr(GHashTable) ids = table(NULL, NULL);
    g_autoptr(GHashTable) both =
        table("requested-chassis", "hv1,hv2", "activation-strategy", "rarp", NULL);
    g_autoptr(GHashTable) turned =
        table("requested-chassis", "hv2,hv1", "activation-strategy", "rarp", NULL);
    g_autoptr(GHashTable) source = table("requested-chassis", "hv1", NULL);
    PfRow row = {options, ids};

    preplug(&row);
    g_assert_cmpint(write_row(&row, PF_WRITE_TURN_BACK, PF_ROLE_SOURCE), ==, PF_VERDICT_NOTHING);
    g_assert_cmpint(write_row(&row, PF_WRITE_TURN, PF_ROLE_SOURCE), ==, PF_VERDICT_CHANGE);
    assert_table(options, turned);
    g_assert_cmpint(pf_plan_kind(&row, &ends), ==, PF_LIST_TURNED);
    g_assert_cmpint(write_row(&row, PF_WRITE_TURN, PF_ROLE_DESTINATION), ==, PF_VERDICT_NOTHING);
    g_assert_cmpint(write_row(&row, PF_WRITE_TURN_BACK, PF_ROLE_SOURCE), ==, PF_VERDICT_CHANGE);
    assert_table(options, both);

    /* Not once the destination has said that the guest runs there. */
    write_row(&row, PF_WRITE_TURN, PF_ROLE_SOURCE);
    write_row(&row, PF_WRITE_MARK, PF_ROLE_DESTINATION);
    g_assert_cmpint(write_row(&row, PF_WRITE_TURN_BACK, PF_ROLE_SOURCE), ==, PF_VERDICT_CONFLICT);
    g_assert_cmpint(write_row(&row, PF_WRITE_ROLL_BACK, PF_ROLE_DESTINATION), ==,
                    PF_VERDICT_CHANGE);
    assert_table(options, source);
    g_assert_cmpint(write_row(&row, PF_WRITE_TURN, PF_ROLE_SOURCE), ==, PF_VERDICT_CONFLICT);
}

/* A copy may be old: northd is never replaced where that could undo what it has done already. */
static void test_hastens(void)
{
    static const guint all = G_MAXUINT;
    guint n = 0;

    for (guint from = 0; from < PF_N_LISTS; from++) {
        for (guint to = 0; to < PF_N_LISTS; to++) {
            gboolean hastens = pf_plan_hastens(all, (PfListKind)from, (PfListKind)to);
            if (hastens) {
                g_assert_true(from == PF_LIST_BOTH || from == PF_LIST_TURNED);
                n++;
            }
            g_assert_false(pf_plan_hastens(0, (PfListKind)from, (PfListKind)to));
        }
    }
    g_assert_cmpuint(n, ==, 3);
    g_assert_true(pf_plan_hastens(PF_GOAL_TURN, PF_LIST_BOTH, PF_LIST_TURNED));
    g_assert_false(pf_plan_hastens(PF_GOAL_TURN, PF_LIST_TURNED, PF_LIST_BOTH));
    g_assert_true(pf_plan_hastens(PF_GOAL_TURN_BACK, PF_LIST_TURNED, PF_LIST_BOTH));
    g_assert_true(pf_plan_hastens(PF_GOAL_ROLL_BACK, PF_LIST_TURNED, PF_LIST_SRC));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/there-and-back", test_there_and_back);
    g_test_add_func("/plan/foreign", test_foreign);
    g_test_add_func("/plan/busy", test_busy);
    g_test_add_func("/plan/verdicts", test_verdicts);
    g_test_add_func("/plan/turn", test_turn);
    g_test_add_func("/plan/hastens", test_hastens);
    return g_test_run();
}
