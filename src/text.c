/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "text.h"

#include <string.h>

#define UUID_LENGTH 36

/* Writes the printable form of the character 'c' to 'piece', which holds 12 bytes. */
static void printable_char(gunichar c, char *piece)
{
    GUnicodeType type = g_unichar_type(c);

    if (c == '\\') {
        strcpy(piece, "\\\\");
    } else if (c == '\n') {
        strcpy(piece, "\\n");
    } else if (c == '\r') {
        strcpy(piece, "\\r");
    } else if (c == '\t') {
        strcpy(piece, "\\t");
    } else if (!g_unichar_isprint(c) || type == G_UNICODE_LINE_SEPARATOR ||
               type == G_UNICODE_PARAGRAPH_SEPARATOR) {
        /* Format characters are among these: a bidirectional override can make a log line show
         * something else than what it holds. */
        if (c < 0x100) {
            g_snprintf(piece, 12, "\\x%02x", (unsigned)c);
        } else {
            g_snprintf(piece, 12, c > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)c);
        }
    } else {
        piece[g_unichar_to_utf8(c, piece)] = '\0';
    }
}

char *pf_printable(const char *s)
{
    if (!s) {
        return g_strdup("(none)");
    }

    g_autoptr(GString) out = g_string_new(NULL);

    while (*s) {
        char piece[12];
        /* The second argument keeps the function from reading beyond the final NUL. */
        gunichar c = g_utf8_get_char_validated(s, -1);

        if (c == (gunichar)-1 || c == (gunichar)-2) {
            g_snprintf(piece, sizeof piece, "\\x%02x", (unsigned)(guchar)*s);
            s++;
        } else {
            printable_char(c, piece);
            s = g_utf8_next_char(s);
        }
        if (out->len + strlen(piece) > PF_PRINTABLE_MAX) {
            g_string_append(out, "...");
            break;
        }
        g_string_append(out, piece);
    }
    return g_strdup(out->str);
}

char *pf_uuid_canonical(const char *s)
{
    if (!s || strnlen(s, UUID_LENGTH + 1) != UUID_LENGTH) {
        return NULL;
    }
    for (int i = 0; i < UUID_LENGTH; i++) {
        bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;

        if (hyphen ? s[i] != '-' : !g_ascii_isxdigit(s[i])) {
            return NULL;
        }
    }
    return g_ascii_strdown(s, UUID_LENGTH);
}

bool pf_uuid_is_canonical(const char *s)
{
    g_autofree char *canonical = pf_uuid_canonical(s);

    return canonical && strcmp(canonical, s) == 0;
}

bool pf_text_is_clean(const char *s, gsize max)
{
    gsize size = strnlen(s, max + 1);

    if (size > max || !g_utf8_validate(s, (gssize)size, NULL)) {
        return false;
    }
    for (; *s; s = g_utf8_next_char(s)) {
        if (g_unichar_iscntrl(g_utf8_get_char(s))) {
            return false;
        }
    }
    return true;
}
