/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Text that comes from outside: making it safe to print, and recognising UUIDs.  Pure. */

/* The most bytes of text pf_printable() returns, without the mark of a cut and the final NUL. */
#define PF_PRINTABLE_MAX 256

/* Returns 's' so that it fits on one line of a log or of an error: control and format characters,
 * line separators and backslashes escaped, bytes that aren't UTF-8 as \xHH, everything else as it
 * is; a long text is cut between two characters and ends in "...".  NULL becomes "(none)".  Free
 * with g_free(); never NULL. */
char *pf_printable(const char *s);

/* Returns the canonical form (8-4-4-4-12, lower case) of the UUID 's', or NULL if 's' is anything
 * else: no braces, no white space, hyphens required.  This is what libvirt's virUUIDFormat()
 * prints.  Free with g_free(). */
char *pf_uuid_canonical(const char *s);

/* Whether 's' is a UUID in its canonical form already.  NULL is not. */
bool pf_uuid_is_canonical(const char *s);

/* Whether 's' is UTF-8 without any control character (C0, DEL, C1) and at most 'max' bytes long. */
bool pf_text_is_clean(const char *s, gsize max);
