/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* What the client writes for people: colours, widths, tables, times. */

typedef enum {
    PF_STYLE_PLAIN,
    PF_STYLE_BOLD,
    PF_STYLE_DIM,
    PF_STYLE_GOOD,
    PF_STYLE_WARN,
    PF_STYLE_BAD,
    PF_STYLE_BLUE,
    PF_STYLE_CYAN,
    PF_STYLE_MAGENTA,
    PF_N_STYLES,
} PfStyle;

/* Looks at standard output, once: a terminal?  which character set?  NO_COLOR? */
void pf_terminal_init(void);

/* Whether standard output is a terminal. */
bool pf_terminal_is_tty(void);

/* Whether characters beyond ASCII can be shown. */
bool pf_terminal_is_utf8(void);

/* The columns of standard output: of the terminal, or of COLUMNS, or 80. */
guint pf_terminal_width(void);

/* What turns 'style' on, and what turns it off; empty without colours.  Static. */
const char *pf_style_on(PfStyle style);
const char *pf_style_off(PfStyle style);

/* Returns 'utf8' where that can be shown, else 'ascii'. */
const char *pf_glyph(const char *utf8, const char *ascii);

/* Makes a text from outside safe to print, on one line.  NULL becomes the empty string.  Free with
 * g_free(). */
char *pf_safe(const char *text);

/* The columns that 'text' takes. */
guint pf_text_width(const char *text);

/* Prints 'text' and a newline; on a terminal in lines that are no longer than it is wide, of which
 * all but the first begin with 'indent' blanks.  'used' columns of the first line are taken. */
void pf_print_wrapped(const char *text, guint used, guint indent);

/* "12 ms", "3.41 s", "2 min 5 s", "1 h 3 min", "2 d 4 h".  Free with g_free(). */
char *pf_format_duration(gint64 duration_us);

/* A local time: of today without the date, with or without milliseconds. */
char *pf_format_time(gint64 time_us, bool milliseconds);
char *pf_format_date_time(gint64 time_us);

/*
 * A table: a head, then rows, each column as wide as it must be.  On a terminal that's too narrow,
 * the last column is cut.
 */
typedef struct PfTable PfTable;

/* 'heads' ends with NULL. */
PfTable *pf_table_new(const char *const *heads);
void pf_table_free(PfTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfTable, pf_table_free)

/* Adds a cell to the last row, or the first one to a new row; takes 'text' over. */
void pf_table_add(PfTable *table, char *text, PfStyle style);
void pf_table_print(const PfTable *table);
