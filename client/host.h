/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* The host that portferry check looks at: its files, its processes, and programs that ask for what
 * has no file. */

/* Where the file 'path' really is: below $PORTFERRY_TEST_ROOT, which the tests set.  Free with
 * g_free(). */
char *pf_host_path(const char *path);

/* Returns the content of a file, without white space at its end, or NULL with errno set.  Files of
 * /proc and /sys are meant: what is longer than 64 KiB is cut. */
char *pf_host_read(const char *path);

typedef enum {
    PF_RUN_OK,      /* it ended with status 0 */
    PF_RUN_FAILED,  /* ... with another one: 'error' is the last line that it complained with */
    PF_RUN_MISSING, /* there is no such program */
    PF_RUN_TIMEOUT,
} PfRunResult;

typedef struct {
    PfRunResult result;
    char *output;
    char *error; /* never NULL; safe to print */
} PfRun;

/* Runs a program, in the C locale, without standard input, for no longer than 'timeout_s'. */
void pf_host_run(PfRun *run, guint timeout_s, const char *const *argv);
void pf_run_clear(PfRun *run);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(PfRun, pf_run_clear)
