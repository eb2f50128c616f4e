/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "terminal.h"

#include <glib/gi18n.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "text.h"

#define DEFAULT_WIDTH 80
#define MIN_WIDTH 40

static bool is_tty, is_utf8, has_colour;

void pf_terminal_init(void)
{
    const char *no_color = g_getenv("NO_COLOR");
    const char *term = g_getenv("TERM");

    is_tty = isatty(STDOUT_FILENO);
    is_utf8 = g_get_charset(NULL);
    /* no-color.org: whatever it is set to, unless that's nothing. */
    has_colour = is_tty && !(no_color && *no_color) && g_strcmp0(term, "dumb") != 0;
}

bool pf_terminal_is_tty(void)
{
    return is_tty;
}

bool pf_terminal_is_utf8(void)
{
    return is_utf8;
}

guint pf_terminal_width(void)
{
    struct winsize size;
    const char *columns = g_getenv("COLUMNS");
    guint64 width;

    if (columns && g_ascii_string_to_unsigned(columns, 10, MIN_WIDTH, 1000, &width, NULL)) {
        return (guint)width;
    }
    if (is_tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return MAX(size.ws_col, MIN_WIDTH);
    }
    return DEFAULT_WIDTH;
}

const char *pf_style_on(PfStyle style)
{
    static const char *const codes[PF_N_STYLES] = {
        [PF_STYLE_PLAIN] = "",        [PF_STYLE_BOLD] = "\033[1m",  [PF_STYLE_DIM] = "\033[2m",
        [PF_STYLE_GOOD] = "\033[32m", [PF_STYLE_WARN] = "\033[33m", [PF_STYLE_BAD] = "\033[1;31m",
        [PF_STYLE_BLUE] = "\033[34m", [PF_STYLE_CYAN] = "\033[36m", [PF_STYLE_MAGENTA] = "\033[35m",
    };

    return has_colour ? codes[style] : "";
}

const char *pf_style_off(PfStyle style)
{
    return has_colour && style != PF_STYLE_PLAIN ? "\033[0m" : "";
}

const char *pf_glyph(const char *utf8, const char *ascii)
{
    return is_utf8 ? utf8 : ascii;
}

char *pf_safe(const char *text)
{
    if (!text) {
        return g_strdup("");
    }

    g_autofree char *printable = pf_printable(text);

    if (is_utf8) {
        return g_steal_pointer(&printable);
    }

    GString *out = g_string_new(NULL);

    for (const char *p = printable; *p; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);

        if (c < 0x80) {
            g_string_append_c(out, (char)c);
        } else {
            g_string_append_printf(out, c > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)c);
        }
    }
    return g_string_free(out, FALSE);
}

static guint char_width(gunichar c)
{
    if (g_unichar_iszerowidth(c)) {
        return 0;
    }
    return g_unichar_iswide(c) ? 2 : 1;
}

guint pf_text_width(const char *text)
{
    guint width = 0;

    /* In another character set a byte is a character, near enough: what gettext translated. */
    if (!g_utf8_validate(text, -1, NULL)) {
        return (guint)strlen(text);
    }
    for (; *text; text = g_utf8_next_char(text)) {
        width += char_width(g_utf8_get_char(text));
    }
    return width;
}

void pf_print_wrapped(const char *text, guint used, guint indent)
{
    guint width = pf_terminal_width();
    bool first = true;

    if (!is_tty) {
        puts(text);
        return;
    }
    while (*text) {
        gsize length = strcspn(text, " ");
        g_autofree char *word = g_strndup(text, length);
        guint columns = pf_text_width(word);

        if (!first && used + 1 + columns > width) {
            printf("\n%*s", (int)indent, "");
            used = indent;
            first = true;
        }
        if (!first) {
            putchar(' ');
            used++;
        }
        fputs(word, stdout);
        used += columns;
        first = false;
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

char *pf_format_duration(gint64 us)
{
    gint64 s;

    us = MAX(us, 0);
    if (us < 1000) {
        return g_strdup_printf(_("%.1f ms"), (double)us / 1000);
    }
    if (us < 999500) {
        return g_strdup_printf(_("%d ms"), (int)((us + 500) / 1000));
    }
    if (us < 59 * G_USEC_PER_SEC) {
        return g_strdup_printf(_("%.2f s"), (double)us / G_USEC_PER_SEC);
    }
    s = (us + G_USEC_PER_SEC / 2) / G_USEC_PER_SEC;
    if (s < 3600) {
        return g_strdup_printf(_("%d min %d s"), (int)(s / 60), (int)(s % 60));
    }
    if (s < 2 * 86400) {
        return g_strdup_printf(_("%d h %d min"), (int)(s / 3600), (int)(s / 60 % 60));
    }
    return g_strdup_printf(_("%d d %d h"), (int)(s / 86400), (int)(s / 3600 % 24));
}

static GDateTime *local_time(gint64 time_us)
{
    g_autoptr(GDateTime) utc = g_date_time_new_from_unix_utc(time_us / G_USEC_PER_SEC);

    /* A time beyond the year 9999 is nonsense that must not end the program. */
    return utc ? g_date_time_to_local(utc) : NULL;
}

char *pf_format_date_time(gint64 time_us)
{
    g_autoptr(GDateTime) time = local_time(time_us);

    return time ? g_date_time_format(time, "%Y-%m-%d %H:%M:%S") : g_strdup("?");
}

char *pf_format_time(gint64 time_us, bool milliseconds)
{
    g_autoptr(GDateTime) time = local_time(time_us);
    g_autoptr(GDateTime) now = g_date_time_new_now_local();

    if (!time) {
        return g_strdup("?");
    }

    bool today = g_date_time_get_year(time) == g_date_time_get_year(now) &&
                 g_date_time_get_day_of_year(time) == g_date_time_get_day_of_year(now);
    g_autofree char *text = g_date_time_format(time, today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S");

    if (!milliseconds) {
        return g_steal_pointer(&text);
    }
    return g_strdup_printf("%s.%03d", text, (int)(time_us % G_USEC_PER_SEC / 1000));
}

/* Tables */

typedef struct {
    char *text;
    PfStyle style;
} Cell;

struct PfTable {
    guint n_columns;
    GArray *cells; /* of Cell, row after row, the head first */
};

static void clear_cell(gpointer cell)
{
    g_free(((Cell *)cell)->text);
}

PfTable *pf_table_new(const char *const *heads)
{
    PfTable *table = g_new0(PfTable, 1);

    table->cells = g_array_new(FALSE, FALSE, sizeof(Cell));
    g_array_set_clear_func(table->cells, clear_cell);
    table->n_columns = g_strv_length((char **)heads);
    for (guint i = 0; i < table->n_columns; i++) {
        pf_table_add(table, g_strdup(heads[i]), PF_STYLE_DIM);
    }
    return table;
}

void pf_table_free(PfTable *table)
{
    if (table) {
        g_array_unref(table->cells);
        g_free(table);
    }
}

void pf_table_add(PfTable *table, char *text, PfStyle style)
{
    Cell cell = {text, style};

    g_array_append_val(table->cells, cell);
}

/* Prints as much of 'text' as fits into 'width' columns. */
static void print_cut(const char *text, guint width)
{
    guint used = 0;

    if (pf_text_width(text) <= width || !g_utf8_validate(text, -1, NULL)) {
        fputs(text, stdout);
        return;
    }

    const char *dots = pf_glyph("…", "...");
    guint dots_width = pf_text_width(dots);
    const char *p = text;

    while (*p && used + char_width(g_utf8_get_char(p)) + dots_width <= width) {
        used += char_width(g_utf8_get_char(p));
        p = g_utf8_next_char(p);
    }
    printf("%.*s%s", (int)(p - text), text, dots);
}

void pf_table_print(const PfTable *table)
{
    guint n = table->n_columns;
    g_autofree guint *widths = g_new0(guint, n);
    guint left = 0;

    for (guint i = 0; i < table->cells->len; i++) {
        guint width = pf_text_width(g_array_index(table->cells, Cell, i).text);

        widths[i % n] = MAX(widths[i % n], width);
    }
    for (guint i = 0; i + 1 < n; i++) {
        left += widths[i] + 2;
    }
    if (is_tty && left + widths[n - 1] > pf_terminal_width()) {
        guint rest = pf_terminal_width() > left ? pf_terminal_width() - left : 0;

        widths[n - 1] = MAX(rest, 10);
    }

    for (guint i = 0; i < table->cells->len; i++) {
        const Cell *cell = &g_array_index(table->cells, Cell, i);
        bool last = i % n == n - 1;

        fputs(pf_style_on(cell->style), stdout);
        print_cut(cell->text, widths[i % n]);
        fputs(pf_style_off(cell->style), stdout);
        if (!last) {
            /* No blanks at the end of a line. */
            bool blank = true;

            for (guint j = i + 1; j % n != 0; j++) {
                blank = blank && !*g_array_index(table->cells, Cell, j).text;
            }
            if (blank) {
                putchar('\n');
                i += n - 1 - i % n;
                continue;
            }
            printf("%*s", (int)(widths[i % n] - pf_text_width(cell->text)) + 2, "");
        } else {
            putchar('\n');
        }
    }
}
