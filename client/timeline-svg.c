/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "timeline.h"

#include <locale.h>

#include "terminal.h"

/* In pixels, with a font that is about half as wide as it is high. */
#define WIDTH 960
#define MARGIN 24
#define LABELS 96
#define DURATIONS 104
#define ROW 26
#define BAR 16
#define HEAD 76
#define FOOT 56

static const char *const fills[PF_N_KINDS] = {
    [PF_KIND_PREPARE] = "#3b6fb6",  [PF_KIND_COPY] = "#58a6b8",    [PF_KIND_SWITCH] = "#e0a030",
    [PF_KIND_ACTIVATE] = "#4c9a52", [PF_KIND_CLEAR] = "#8d7fb5",   [PF_KIND_BACK] = "#c4524a",
    [PF_KIND_ENDED] = "#555555",    [PF_KIND_UNKNOWN] = "#999999",
};

/* Numbers of a document have a point, whatever the language of its texts has. */
static void append_number(GString *out, const char *name, double value)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append_printf(out, " %s=\"%s\"", name,
                           g_ascii_formatd(buffer, sizeof buffer, "%.2f", value));
}

/* Texts are in the locale's character set, the document is UTF-8. */
static void append_text(GString *out, const char *text)
{
    g_autofree char *utf8 = g_utf8_validate(text, -1, NULL)
                                ? g_strdup(text)
                                : g_locale_to_utf8(text, -1, NULL, NULL, NULL);
    g_autofree char *escaped = g_markup_escape_text(utf8 ? utf8 : "?", -1);

    g_string_append(out, escaped);
}

static void append_label(GString *out, const char *class, double x, double y, const char *text)
{
    g_string_append_printf(out, "  <text class=\"%s\"", class);
    append_number(out, "x", x);
    append_number(out, "y", y);
    g_string_append_c(out, '>');
    append_text(out, text);
    g_string_append(out, "</text>\n");
}

static void append_bar(GString *out, const PfTimeline *timeline, const PfBar *bar, double y)
{
    double chart = WIDTH - 2 * MARGIN - LABELS - DURATIONS;
    double scale = chart / (double)timeline->span_us;
    double x = MARGIN + LABELS + (double)bar->begin_us * scale;
    double width = MAX((double)(bar->end_us - bar->begin_us) * scale, 2);
    const char *explanation = pf_phase_explain(bar->phase, timeline->handover->role);
    g_autofree char *label = pf_safe(bar->phase);
    g_autofree char *took = pf_format_duration(bar->end_us - bar->begin_us);
    double middle = y + ROW / 2.0;

    append_label(out, "label", MARGIN + LABELS - 10, middle + 4, label);
    g_string_append(out, "  <g>\n    <title>");
    append_text(out, label);
    if (explanation) {
        g_string_append(out, ": ");
        append_text(out, explanation);
    }
    g_string_append(out, "</title>\n    ");
    if (bar->kind == PF_KIND_ENDED) {
        g_string_append(out, "<circle");
        append_number(out, "cx", x);
        append_number(out, "cy", middle);
        append_number(out, "r", 5);
    } else {
        g_string_append(out, "<rect");
        append_number(out, "x", x);
        append_number(out, "y", y + (ROW - BAR) / 2.0);
        append_number(out, "width", width);
        append_number(out, "height", BAR);
        append_number(out, "rx", MIN(width / 2, 2));
    }
    g_string_append_printf(out, " fill=\"%s\"%s/>\n  </g>\n", fills[bar->kind],
                           bar->open ? " opacity=\"0.6\"" : "");
    if (bar->kind != PF_KIND_ENDED) {
        append_label(out, "took", WIDTH - MARGIN - DURATIONS + 12, middle + 4, took);
    }
}

static void append_axis(GString *out, const PfTimeline *timeline, double bottom)
{
    double chart = WIDTH - 2 * MARGIN - LABELS - DURATIONS;
    gint64 tick = pf_timeline_tick(timeline->span_us, 8);

    for (gint64 t = 0; t <= timeline->span_us; t += tick) {
        double x = MARGIN + LABELS + (double)t * chart / (double)timeline->span_us;
        g_autofree char *label = pf_timeline_tick_label(t, tick);

        g_string_append(out, "  <line class=\"grid\"");
        append_number(out, "x1", x);
        append_number(out, "x2", x);
        append_number(out, "y1", HEAD - 6);
        append_number(out, "y2", bottom + 4);
        g_string_append(out, "/>\n");
        append_label(out, "tick", x, bottom + 20, label);
    }
}

char *pf_timeline_to_svg(const PfTimeline *timeline)
{
    const PfRemoteHandover *h = timeline->handover;
    g_autofree char *title = pf_timeline_title(timeline);
    g_autofree char *began = pf_format_date_time(h->started_us);
    g_autofree char *id = pf_safe(h->id);
    /* TRANSLATORS: a handover's id, "source" or "destination", a date and time */
    g_autofree char *subtitle = g_strdup_printf(_("handover %s as the %s saw it, begun %s"), id,
                                                pf_role_word(h->role), began);
    GString *out = g_string_new("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    double bottom = HEAD + ROW * (double)timeline->bars->len;
    int height = (int)bottom + FOOT - (*h->last_error ? 0 : 20);

    g_string_append_printf(out,
                           "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\""
                           " viewBox=\"0 0 %d %d\" role=\"img\">\n  <title>",
                           WIDTH, height, WIDTH, height);
    append_text(out, title);
    g_string_append(out, "</title>\n"
                         "  <style>\n"
                         "    text { font-family: system-ui, \"DejaVu Sans\", sans-serif;"
                         " font-size: 12px; fill: #333333; }\n"
                         "    .title { font-size: 17px; font-weight: 600; fill: #111111; }\n"
                         "    .subtitle, .tick { fill: #777777; }\n"
                         "    .label { text-anchor: end; }\n"
                         "    .tick { text-anchor: middle; font-size: 11px; }\n"
                         "    .took { font-variant-numeric: tabular-nums; }\n"
                         "    .error { fill: #b3261e; }\n"
                         "    .grid { stroke: #e4e4e4; stroke-width: 1; }\n"
                         "  </style>\n"
                         "  <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
    append_label(out, "title", MARGIN, 32, title);
    append_label(out, "subtitle", MARGIN, 52, subtitle);
    append_axis(out, timeline, bottom);
    for (guint i = 0; i < timeline->bars->len; i++) {
        append_bar(out, timeline, &g_array_index(timeline->bars, PfBar, i), HEAD + ROW * (double)i);
    }
    if (*h->last_error) {
        g_autofree char *error = pf_safe(h->last_error);

        append_label(out, "error", MARGIN, bottom + 44, error);
    }
    g_string_append(out, "</svg>\n");
    return g_string_free(out, FALSE);
}
