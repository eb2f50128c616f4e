/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <string.h>

#include "runtime.h"

static gboolean parse(const char *text, PfIncoming *incoming)
{
    gsize size = strlen(text);
    g_autofree char *exact = g_memdup2(text, size); /* reading beyond it shows */

    return pf_incoming_parse(exact ? exact : "", size, incoming);
}

static void test_good(void)
{
    PfIncoming incoming;

    g_assert_true(parse("10000000 0 refuse\n", &incoming));
    g_assert_cmpint(incoming.limit, ==, 10000000);
    g_assert_cmpint(incoming.until, ==, 0);
    g_assert_cmpint(incoming.otherwise, ==, PF_POLICY_REFUSE);
    g_assert_true(parse("0 123456789012 proceed\n", &incoming));
    g_assert_cmpint(incoming.limit, ==, 0);
    g_assert_cmpint(incoming.until, ==, 123456789012);
    g_assert_cmpint(incoming.otherwise, ==, PF_POLICY_PROCEED);

    /* The longest that is written fits. */
    g_autofree char *longest = g_strdup_printf("%" G_GINT64_FORMAT " %" G_GINT64_FORMAT " %s\n",
                                               G_MAXINT64, G_MAXINT64, "proceed");
    g_assert_cmpuint(strlen(longest), <=, PF_INCOMING_MAX);
}

static void test_bad(void)
{
    static const char *const cases[] = {
        "",
        "\n",
        "1",
        "1 ",
        "1 2",
        "1 2 ",
        "1 2 \n",
        "1 2 refuse",
        "1 2 refused\n",
        "1 2 ref\n",
        "1 2 refuse\n\n",
        "1 2 refuse \n",
        " 1 2 refuse\n",
        "1  2 refuse\n",
        "1\t2 refuse\n",
        "-1 2 refuse\n",
        "+1 2 refuse\n",
        "1.5 2 refuse\n",
        "0x1 2 refuse\n",
        "1 2 Refuse\n",
        "9223372036854775808 2 refuse\n",
        "99999999999999999999999999 2 refuse\n",
        "1 99999999999999999999999999 refuse\n",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        PfIncoming incoming;

        g_assert_false(parse(cases[i], &incoming));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/runtime/good", test_good);
    g_test_add_func("/runtime/bad", test_bad);
    return g_test_run();
}
