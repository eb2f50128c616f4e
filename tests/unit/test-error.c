/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <string.h>

#include "error.h"
#include "text.h"

static void test_table(void)
{
    for (int i = 0; i < PF_N_ERRORS; i++) {
        const char *name = pf_error_code_to_dbus_name((PfError)i);
        PfError code = PF_ERROR_FAILED;

        g_assert_true(g_str_has_prefix(name, "org.portferry1.Error."));
        g_assert_true(g_ascii_isupper(name[strlen("org.portferry1.Error.")]));
        g_assert_true(pf_error_from_dbus_name(name, &code));
        /* Both directions, hence no name twice. */
        g_assert_cmpint(code, ==, i);

        const char *hint = pf_error_hint((PfError)i);

        g_assert_cmpuint(strlen(hint), >, 10);
        g_assert_false(g_str_has_suffix(hint, "."));
    }
    g_assert_cmpstr(pf_error_code_to_dbus_name(PF_ERROR_NOT_READY), ==,
                    "org.portferry1.Error.NotReady");
}

static void test_foreign(void)
{
    static const char *const names[] = {
        "",         "org.portferry1.Error.",          "org.portferry1.Error.notready",
        "NotReady", "org.portferry1.Error.NotReady2", "org.freedesktop.DBus.Error.NoReply",
    };
    PfError code = PF_ERROR_BUSY;

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        code = PF_ERROR_BUSY;
        g_assert_false(pf_error_from_dbus_name(names[i], &code));
        g_assert_cmpint(code, ==, PF_ERROR_FAILED);
    }
    g_assert_false(pf_error_from_dbus_name(NULL, &code));

    g_autoptr(GError) foreign =
        g_error_new_literal(G_FILE_ERROR, G_FILE_ERROR_NOENT, "no such file");
    g_autofree char *story = pf_error_describe(foreign);

    g_assert_cmpstr(pf_error_to_dbus_name(foreign), ==, "org.portferry1.Error.Failed");
    g_assert_cmpstr(story, ==, "no such file");
}

static void test_out_of_range(void)
{
    static const int codes[] = {-1, PF_N_ERRORS, G_MAXINT, G_MININT};

    for (gsize i = 0; i < G_N_ELEMENTS(codes); i++) {
        g_autoptr(GError) error = g_error_new_literal(PF_ERROR, codes[i], "odd");
        g_autofree char *story = pf_error_describe(error);

        g_assert_cmpstr(pf_error_to_dbus_name(error), ==, "org.portferry1.Error.Failed");
        g_assert_true(g_str_has_prefix(story, "odd; "));
    }
}

static void test_text(void)
{
    static const struct {
        const char *domain, *port, *message;
    } cases[] = {
        {NULL, NULL, "7 of 9"},
        {"web", NULL, "domain 'web': 7 of 9"},
        {NULL, "p0", "port 'p0': 7 of 9"},
        {"web", "p0", "domain 'web', port 'p0': 7 of 9"},
        {"a\nb", "c\033d", "domain 'a\\nb', port 'c\\x1bd': 7 of 9"},
        {"100%s", "%n", "domain '100%s', port '%n': 7 of 9"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        pf_error_set(&error, PF_ERROR_TIMEOUT, cases[i].domain, cases[i].port, "%d of %s", 7, "9");
        g_assert_error(error, PF_ERROR, PF_ERROR_TIMEOUT);
        g_assert_cmpstr(error->message, ==, cases[i].message);

        g_autofree char *story = pf_error_describe(error);
        g_autofree char *wanted =
            g_strdup_printf("%s; %s", cases[i].message, pf_error_hint(PF_ERROR_TIMEOUT));

        g_assert_cmpstr(story, ==, wanted);
    }
    pf_error_set(NULL, PF_ERROR_FAILED, "d", "p", "nobody wants %s", "it");
}

static void test_printable(void)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {NULL, "(none)"},
        {"", ""},
        {"plain 'q' \"Q\" a/b", "plain 'q' \"Q\" a/b"},
        {"über 虚拟机 🐧", "über 虚拟机 🐧"},
        {"a\nb\rc\td", "a\\nb\\rc\\td"},
        {"back\\slash", "back\\\\slash"},
        {"\001\033[31m\177", "\\x01\\x1b[31m\\x7f"},
        {"c1 \xc2\x9b", "c1 \\x9b"},
        {"lone \xff\xfe end", "lone \\xff\\xfe end"},
        {"cut \xe2\x82", "cut \\xe2\\x82"},
        {"overlong \xc0\xaf", "overlong \\xc0\\xaf"},
        {"surrogate \xed\xa0\x80", "surrogate \\xed\\xa0\\x80"},
        {"line \xe2\x80\xa8 para \xe2\x80\xa9", "line \\u2028 para \\u2029"},
        {"override \xe2\x80\xae", "override \\u202e"},
        {"tag \xf3\xa0\x80\x81", "tag \\U000e0001"},
        {"bom \xef\xbb\xbf", "bom \\ufeff"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *out = pf_printable(cases[i].in);

        g_assert_cmpstr(out, ==, cases[i].out);
    }
}

/* Whatever the bytes, one bounded line of UTF-8 comes out. */
static void test_printable_any(void)
{
    for (int round = 0; round < 5000; round++) {
        gsize size = (gsize)g_test_rand_int_range(0, 600);
        g_autofree char *in = g_malloc(size + 1);

        for (gsize i = 0; i < size; i++) {
            in[i] = (char)g_test_rand_int_range(1, 256);
        }
        in[size] = '\0';

        g_autofree char *out = pf_printable(in);

        g_assert_cmpuint(strlen(out), <=, PF_PRINTABLE_MAX + 3);
        g_assert_true(pf_text_is_clean(out, PF_PRINTABLE_MAX + 3));
    }
}

static void test_printable_bound(void)
{
    g_autofree char *fits = g_strnfill(PF_PRINTABLE_MAX, 'x');
    g_autofree char *longer = g_strnfill(PF_PRINTABLE_MAX + 1, 'x');
    g_autofree char *out = pf_printable(fits);
    g_autofree char *cut = pf_printable(longer);
    g_autofree char *wanted = g_strconcat(fits, "...", NULL);

    g_assert_cmpstr(out, ==, fits);
    g_assert_cmpstr(cut, ==, wanted);
}

static void test_uuid(void)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"0a1b2c3d-4e5f-6789-abcd-ef0123456789", "0a1b2c3d-4e5f-6789-abcd-ef0123456789"},
        {"0A1B2C3D-4E5F-6789-ABCD-EF0123456789", "0a1b2c3d-4e5f-6789-abcd-ef0123456789"},
        {"00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000"},
        {NULL, NULL},
        {"", NULL},
        {"0a1b2c3d4e5f6789abcdef0123456789", NULL},
        {"0a1b2c3d-4e5f-6789-abcd-ef012345678", NULL},
        {"0a1b2c3d-4e5f-6789-abcd-ef01234567890", NULL},
        {" a1b2c3d-4e5f-6789-abcd-ef0123456789", NULL},
        {"0a1b2c3d-4e5f-6789-abcd-ef012345678\n", NULL},
        {"0a1b2c3d-4e5f-6789-abcdeef0123456789", NULL},
        {"{a1b2c3d-4e5f-6789-abcd-ef012345678}", NULL},
        {"ga1b2c3d-4e5f-6789-abcd-ef0123456789", NULL},
        {"0a1b2c3d-4e5f-6789-abcd-ef01234567\xc3\xa9", NULL},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *out = pf_uuid_canonical(cases[i].in);

        g_assert_cmpstr(out, ==, cases[i].out);
        g_assert_true(pf_uuid_is_canonical(cases[i].in) == (out && strcmp(out, cases[i].in) == 0));
    }
}

static void test_clean(void)
{
    g_assert_true(pf_text_is_clean("", 0));
    g_assert_true(pf_text_is_clean("ü", 2));
    g_assert_false(pf_text_is_clean("ü", 1));
    g_assert_false(pf_text_is_clean("a\n", 10));
    g_assert_false(pf_text_is_clean("\x7f", 10));
    g_assert_false(pf_text_is_clean("\xc2\x80", 10));
    g_assert_false(pf_text_is_clean("\xff", 10));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/error/table", test_table);
    g_test_add_func("/error/foreign", test_foreign);
    g_test_add_func("/error/out-of-range", test_out_of_range);
    g_test_add_func("/error/text", test_text);
    g_test_add_func("/text/printable", test_printable);
    g_test_add_func("/text/printable/any", test_printable_any);
    g_test_add_func("/text/printable/bound", test_printable_bound);
    g_test_add_func("/text/uuid", test_uuid);
    g_test_add_func("/text/clean", test_clean);
    return g_test_run();
}
