/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <string.h>

#include "chassis-list.h"
#include "error.h"

static const PfChassis hv1 = {"hv1", "one.example"};
static const PfChassis hv2 = {"hv2", "two.example"};

static void test_parse(void)
{
    static const struct {
        const char *value;
        PfChassisListKind kind;
        bool padded;
        const char *entries; /* with '|' between them */
    } cases[] = {
        {NULL, PF_CHASSIS_LIST_ABSENT, false, ""},
        {"", PF_CHASSIS_LIST_EMPTY, false, ""},
        {",", PF_CHASSIS_LIST_NONE, false, ""},
        {",,,", PF_CHASSIS_LIST_NONE, false, ""},
        {"hv1", PF_CHASSIS_LIST_ONE, false, "hv1"},
        {",hv1,,", PF_CHASSIS_LIST_ONE, false, "hv1"},
        {"hv1,hv2", PF_CHASSIS_LIST_MANY, false, "hv1|hv2"},
        {",,hv1,,,hv2,", PF_CHASSIS_LIST_MANY, false, "hv1|hv2"},
        {"hv1, hv2", PF_CHASSIS_LIST_MANY, true, "hv1| hv2"},
        {"hv1 ,hv2", PF_CHASSIS_LIST_MANY, true, "hv1 |hv2"},
        {"hv1,\thv2", PF_CHASSIS_LIST_MANY, true, "hv1|\thv2"},
        {"hv1\n", PF_CHASSIS_LIST_ONE, true, "hv1\n"},
        {" ", PF_CHASSIS_LIST_ONE, true, " "},
        {"hv1, ", PF_CHASSIS_LIST_MANY, true, "hv1| "},
        {"a b,c", PF_CHASSIS_LIST_MANY, false, "a b|c"},
        {"hv1,hv1", PF_CHASSIS_LIST_MANY, false, "hv1|hv1"},
        {"hv1;hv2", PF_CHASSIS_LIST_ONE, false, "hv1;hv2"},
        {"ü,\xff", PF_CHASSIS_LIST_MANY, false, "ü|\xff"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(PfChassisList) list = pf_chassis_list_parse(cases[i].value);
        g_autofree char *entries = g_strjoinv("|", list->entries);

        g_assert_cmpint(list->kind, ==, cases[i].kind);
        g_assert_cmpint(list->any_padded, ==, cases[i].padded);
        g_assert_cmpstr(entries, ==, cases[i].entries);
        g_assert_cmpuint(list->n_entries, ==, g_strv_length(list->entries));
    }
}

/* The C library's own strtok_r() is what northd uses. */
static void test_parse_like_strtok(void)
{
    for (int round = 0; round < 20000; round++) {
        char value[12] = "";
        int length = g_test_rand_int_range(0, 11);

        for (int i = 0; i < length; i++) {
            value[i] = ",, abc"[g_test_rand_int_range(0, 6)];
        }

        g_autoptr(PfChassisList) list = pf_chassis_list_parse(value);
        guint n = 0;
        char *saved = NULL;

        for (char *t = strtok_r(value, ",", &saved); t; t = strtok_r(NULL, ",", &saved)) {
            g_assert_cmpuint(n, <, list->n_entries);
            g_assert_cmpstr(t, ==, list->entries[n++]);
        }
        g_assert_cmpuint(n, ==, list->n_entries);
    }
}

static void test_predicates(void)
{
    static const struct {
        const char *value;
        bool contains_1, contains_2, is_1, is_pair;
    } cases[] = {
        {NULL, false, false, false, false},
        {"", false, false, false, false},
        {",", false, false, false, false},
        {"hv1", true, false, true, false},
        {"one.example", true, false, true, false},
        {",hv1,", true, false, true, false},
        {"hv1,hv2", true, true, false, true},
        {"one.example,hv2", true, true, false, true},
        {"hv1,two.example", true, true, false, true},
        {",hv1,,hv2,", true, true, false, true},
        {"hv2,hv1", true, true, false, false},
        {"hv1, hv2", true, false, false, false},
        {"hv1,hv2,hv3", true, true, false, false},
        {"hv1,hv2,", true, true, false, true},
        {"hv1,hv1", true, false, false, false},
        {"hv1,one.example", true, false, false, false},
        {"HV1", false, false, false, false},
        {"hv", false, false, false, false},
        {"hv11", false, false, false, false},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(PfChassisList) list = pf_chassis_list_parse(cases[i].value);

        g_assert_cmpint(pf_chassis_list_contains(list, &hv1), ==, cases[i].contains_1);
        g_assert_cmpint(pf_chassis_list_contains(list, &hv2), ==, cases[i].contains_2);
        g_assert_cmpint(pf_chassis_list_is_one(list, &hv1), ==, cases[i].is_1);
        g_assert_cmpint(pf_chassis_list_is_pair(list, &hv1, &hv2), ==, cases[i].is_pair);
    }
}

static void test_odd_hostnames(void)
{
    /* Both hosts call themselves "localhost"; one has no hostname; one's hostname is the other's
     * name. */
    static const PfChassis local1 = {"a", "localhost"};
    static const PfChassis local2 = {"b", "localhost"};
    static const PfChassis nameless1 = {"a", NULL};
    static const PfChassis nameless2 = {"b", ""};
    static const PfChassis crossed1 = {"a", "b"};
    static const PfChassis crossed2 = {"b", "a"};
    g_autoptr(PfChassisList) names = pf_chassis_list_parse("a,b");
    g_autoptr(PfChassisList) swapped = pf_chassis_list_parse("b,a");
    g_autoptr(PfChassisList) ambiguous = pf_chassis_list_parse("a,localhost");

    g_assert_true(pf_chassis_list_is_pair(names, &local1, &local2));
    g_assert_false(pf_chassis_list_is_pair(ambiguous, &local1, &local2));
    g_assert_true(pf_chassis_list_contains(ambiguous, &local2));
    g_assert_true(pf_chassis_list_is_pair(names, &nameless1, &nameless2));
    g_assert_true(pf_chassis_list_is_pair(names, &crossed1, &crossed2));
    g_assert_false(pf_chassis_list_is_pair(swapped, &crossed1, &crossed2));
}

static void test_compose(void)
{
    g_autofree char *long_name = g_strnfill(256, 'x');
    g_autofree char *longest = g_strnfill(255, 'x');
    const char *const bad[] = {"", "a,b", ",", "a\nb", "\xff", "\x7f", long_name};
    g_autofree char *one = pf_chassis_list_compose("hv1", NULL, NULL);
    g_autofree char *two = pf_chassis_list_compose("hv1", "hv 2 é", NULL);
    g_autofree char *large = pf_chassis_list_compose(longest, "b", NULL);
    g_autoptr(GError) same = NULL;

    g_assert_cmpstr(one, ==, "hv1");
    g_assert_cmpstr(two, ==, "hv1,hv 2 é");
    g_assert_nonnull(large);

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) first = NULL;
        g_autoptr(GError) second = NULL;

        g_assert_null(pf_chassis_list_compose(bad[i], "hv2", &first));
        g_assert_error(first, PF_ERROR, PF_ERROR_INVALID_ARGUMENT);
        g_assert_null(pf_chassis_list_compose("hv1", bad[i], &second));
        g_assert_error(second, PF_ERROR, PF_ERROR_INVALID_ARGUMENT);
    }
    g_assert_null(pf_chassis_list_compose("hv1", "hv1", &same));
    g_assert_error(same, PF_ERROR, PF_ERROR_INVALID_ARGUMENT);
    g_assert_nonnull(strstr(same->message, "'hv1'"));

    g_autoptr(PfChassisList) list = pf_chassis_list_parse("hv1,hv2");

    g_assert_true(pf_chassis_list_is_pair(list, &hv1, &hv2));
}

static void test_follow(void)
{
    static const struct {
        const char *prior, *after;
    } cases[] = {
        {NULL, NULL},
        {"", ""},
        {",", ","},
        /* A pin to the source. */
        {"hv1", "hv2"},
        {"one.example", "hv2"},
        {",hv1,", "hv2"},
        /* The destination already, to the letter. */
        {"hv2", "hv2"},
        {"two.example", "two.example"},
        {",hv2", ",hv2"},
        {"hv2,hv3", "hv2,hv3"},
        /* Both. */
        {"hv1,hv2", "hv2"},
        {"hv2,hv1", "hv2"},
        {"hv1,two.example", "hv2"},
        {"one.example,hv1", "hv2"},
        {"hv1,hv1", "hv2"},
        /* Third chassis. */
        {"hv3", "hv3"},
        {"hv3,hv4", "hv3,hv4"},
        {"hv1,hv3", "hv2,hv3"},
        {"hv3,hv1", "hv3,hv2"},
        {"hv3,hv1,hv4", "hv3,hv2,hv4"},
        {"hv1,hv3,hv2", "hv2,hv3"},
        {"hv2,hv3,hv1", "hv2,hv3"},
        {"hv3,hv1,hv3", "hv3,hv2,hv3"},
        /* White space. */
        {"hv1, hv2", "hv2"},
        {"hv1, hv3", "hv2, hv3"},
        {" hv1", " hv1"},
        {" hv1,hv1", "hv2"},
        {"hv1, ", "hv2, "},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *after = pf_chassis_list_follow(cases[i].prior, &hv1, &hv2);
        g_autofree char *again = pf_chassis_list_follow(after, &hv1, &hv2);

        g_assert_cmpstr(after, ==, cases[i].after);
        g_assert_cmpstr(again, ==, after);
    }
}

static void test_follow_odd_hostnames(void)
{
    static const PfChassis local1 = {"a", "localhost"};
    static const PfChassis local2 = {"b", "localhost"};
    static const PfChassis crossed1 = {"a", "b"};
    static const PfChassis nameless = {"c", ""};
    g_autofree char *ambiguous = pf_chassis_list_follow("localhost", &local1, &local2);
    g_autofree char *crossed = pf_chassis_list_follow("b,x", &crossed1, &local2);
    g_autofree char *plain = pf_chassis_list_follow("a", &local1, &nameless);

    g_assert_cmpstr(ambiguous, ==, "b");
    g_assert_cmpstr(crossed, ==, "b,x");
    g_assert_cmpstr(plain, ==, "c");
}

/* There and back, a list that named only the source among the two is what it was. */
static void test_follow_and_back(void)
{
    static const char *const lists[] = {"hv1", "hv1,hv3", "hv3,hv1", "hv3", "", "hv3,hv1,hv4"};

    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++) {
        g_autofree char *there = pf_chassis_list_follow(lists[i], &hv1, &hv2);
        g_autofree char *back = pf_chassis_list_follow(there, &hv2, &hv1);

        g_assert_cmpstr(back, ==, lists[i]);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/chassis-list/parse", test_parse);
    g_test_add_func("/chassis-list/parse/like-strtok", test_parse_like_strtok);
    g_test_add_func("/chassis-list/predicates", test_predicates);
    g_test_add_func("/chassis-list/predicates/odd-hostnames", test_odd_hostnames);
    g_test_add_func("/chassis-list/compose", test_compose);
    g_test_add_func("/chassis-list/follow", test_follow);
    g_test_add_func("/chassis-list/follow/odd-hostnames", test_follow_odd_hostnames);
    g_test_add_func("/chassis-list/follow/and-back", test_follow_and_back);
    return g_test_run();
}
