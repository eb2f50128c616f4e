/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What goes to the log: one line a field, whatever a name holds; and no waiting for a reader. */

#include <fcntl.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "log.h"

static void check_line(const char *text, gsize max, const char *expected)
{
    g_autofree char *line = pf_log_one_line(text, max);

    g_assert_cmpstr(line, ==, expected);
}

static void test_one_line(void)
{
    check_line(NULL, 10, "");
    check_line("", 10, "");
    check_line("vm1", 10, "vm1");
    check_line("a\nPRIORITY=0\r\tb", 100, "a PRIORITY=0  b");
    check_line("\x1b[31mred\x7f", 100, " [31mred ");
    check_line("a\xc2\x85"
               "b\u2028c\u202ed\u2066e",
               100, "a b c d e");
    check_line("\u00e9\u00e9\u00e9", 5, "\u00e9\u00e9"); /* cut at a character */
    check_line("abc", 0, "");
    check_line("bad \xff\xfe utf-8", 100, "bad \ufffd\ufffd utf-8");
    check_line("\U0001f600 fine", 100, "\U0001f600 fine");
}

/* Sends what 'write' logs to standard error into a pipe, and returns it. */
static char *capture(void (*write_entries)(void))
{
    char buffer[65536];
    int fds[2];
    int saved = dup(STDERR_FILENO);
    ssize_t n;

    g_assert_cmpint(pipe2(fds, O_NONBLOCK), ==, 0);
    dup2(fds[1], STDERR_FILENO);
    write_entries();
    dup2(saved, STDERR_FILENO);
    close(saved);
    n = read(fds[0], buffer, sizeof(buffer) - 1);
    close(fds[0]);
    close(fds[1]);
    buffer[MAX(n, 0)] = '\0';
    return g_strdup(buffer);
}

static void write_some(void)
{
    pf_log(LOG_WARNING,
           &(PfLogFields){.domain = "vm1\nvm2",
                          .handover = "h-1",
                          .phase_old = "watch",
                          .phase = "open",
                          .role = "",
                          .duration_us = 1234},
           "opened %d port", 1);
    pf_log(LOG_DEBUG, NULL, "not shown");
    g_warning("from GLib %s", "code");
    g_debug("not shown either");
}

static void test_stderr(void)
{
    g_autofree char *text = capture(write_some);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    g_assert_cmpuint(g_strv_length(lines), ==, 3);
    g_assert_true(g_str_has_suffix(lines[0],
                                   " test-log: warning: opened 1 port DOMAIN=vm1 vm2 HANDOVER=h-1 "
                                   "PHASE_OLD=watch PHASE=open DURATION_USEC=1234"));
    g_assert_true(g_str_has_suffix(lines[1], " test-log: warning: from GLib code"));
    g_assert_cmpstr(lines[2], ==, "");
}

static void write_much(void)
{
    g_autofree char *text = g_strnfill(100000, 'x');

    /* Far more than a pipe holds; nobody reads. */
    for (int i = 0; i < 200; i++)
        pf_log(LOG_ERR, NULL, "%s", text);
}

static void test_nobody_reads(void)
{
    gint64 begin = g_get_monotonic_time();
    guint64 lost = pf_log_get_lost();
    g_autofree char *text = capture(write_much);

    g_assert_cmpint(g_get_monotonic_time() - begin, <, 10 * G_USEC_PER_SEC);
    g_assert_cmpuint(pf_log_get_lost(), >, lost);
    g_assert_cmpuint(strlen(text), >, 0);
}

static void test_priority(void)
{
    g_assert_cmpint(pf_log_get_max_priority(), ==, LOG_INFO);
    pf_log_set_max_priority(99);
    g_assert_cmpint(pf_log_get_max_priority(), ==, LOG_DEBUG);
    pf_log_set_max_priority(LOG_INFO);
}

int main(int argc, char *argv[])
{
    g_test_init(&argc, &argv, NULL);
    g_log_set_always_fatal(G_LOG_FATAL_MASK); /* g_test makes warnings fatal */
    g_unsetenv("JOURNAL_STREAM");
    pf_log_init("test-log");
    g_test_add_func("/log/one-line", test_one_line);
    g_test_add_func("/log/stderr", test_stderr);
    g_test_add_func("/log/nobody-reads", test_nobody_reads);
    g_test_add_func("/log/priority", test_priority);
    return g_test_run();
}
