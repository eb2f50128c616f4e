/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* portferry timeline: a picture of a handover, a bar for each phase on one axis of time. */

#include "timeline.h"

#include <stdio.h>
#include <string.h>

#include "terminal.h"

#define MAX_WIDTH 160
#define MIN_CHART 16

static char *svg_file;

static const GOptionEntry timeline_options[] = {
    {"svg", 0, 0, G_OPTION_ARG_FILENAME, &svg_file,
     N_("Write the picture to FILE as SVG; - is standard output"), N_("FILE")},
    {NULL},
};

gint64 pf_timeline_tick(gint64 span_us, guint max_ticks)
{
    static const gint64 steps[] = {1,      2,       5,       10,      20,       50,
                                   100,    200,     500,     1000,    2000,     5000,
                                   10000,  20000,   30000,   60000,   120000,   300000,
                                   600000, 1800000, 3600000, 7200000, 21600000, 43200000};

    for (gsize i = 0; i < G_N_ELEMENTS(steps); i++) {
        gint64 tick = steps[i] * 1000;

        if (span_us / tick <= (gint64)max_ticks) {
            return tick;
        }
    }

    gint64 day = G_GINT64_CONSTANT(86400) * G_USEC_PER_SEC;

    return day * (span_us / day / max_ticks + 1);
}

char *pf_timeline_tick_label(gint64 time_us, gint64 tick_us)
{
    gint64 s = time_us / G_USEC_PER_SEC;

    if (time_us == 0) {
        return g_strdup("0");
    }
    if (tick_us < G_USEC_PER_SEC && time_us < G_USEC_PER_SEC) {
        return g_strdup_printf(_("%d ms"), (int)(time_us / 1000));
    }
    if (tick_us < G_USEC_PER_SEC) {
        return g_strdup_printf(tick_us < G_USEC_PER_SEC / 10 ? _("%.2f s") : _("%.1f s"),
                               (double)time_us / G_USEC_PER_SEC);
    }
    if (s < 120 && tick_us < 60 * G_USEC_PER_SEC) {
        return g_strdup_printf(_("%d s"), (int)s);
    }
    if (tick_us < 60 * G_USEC_PER_SEC) {
        return g_strdup_printf("%d:%02d", (int)(s / 60), (int)(s % 60));
    }
    if (s < 7200) {
        return g_strdup_printf(_("%d min"), (int)(s / 60));
    }
    return g_strdup_printf(_("%d h"), (int)(s / 3600));
}

char *pf_timeline_title(const PfTimeline *timeline)
{
    const PfRemoteHandover *h = timeline->handover;
    const char *outcome = pf_remote_outcome(h);
    g_autofree char *domain = pf_domain_label(h);
    g_autofree char *route = pf_route_label(h);
    g_autofree char *took = pf_format_duration(pf_remote_end(h) - h->started_us);
    g_autofree char *safe = outcome ? pf_safe(pf_outcome_word(outcome)) : NULL;

    if (outcome) {
        /* TRANSLATORS: a domain, "chassis-a -> chassis-b", "done", a duration */
        return g_strdup_printf(_("%s: %s, %s after %s"), domain, route, safe, took);
    }
    return g_strdup_printf(_("%s: %s, open for %s"), domain, route, took);
}

static void make_bars(PfTimeline *timeline)
{
    const PfRemoteHandover *h = timeline->handover;
    /* The other host began it; by its clock that may be later than the first phase here. */
    gint64 zero = h->started_us, end = pf_remote_end(h);
    bool ended = pf_remote_is_ended(h);

    if (h->phases->len > 0) {
        zero = MIN(zero, g_array_index(h->phases, PfRemotePhase, 0).time_us);
    }
    for (guint i = 0; i < h->phases->len; i++) {
        const PfRemotePhase *phase = &g_array_index(h->phases, PfRemotePhase, i);
        bool last = i + 1 == h->phases->len;
        PfBar bar = {
            .phase = phase->phase,
            .kind = pf_phase_kind(phase->phase),
            .begin_us = MAX(phase->time_us - zero, 0),
            .end_us = MAX((last ? MAX(end, phase->time_us) : phase[1].time_us) - zero, 0),
            .open = last && !ended,
        };

        bar.end_us = MAX(bar.end_us, bar.begin_us);
        g_array_append_val(timeline->bars, bar);
        timeline->span_us = MAX(timeline->span_us, bar.end_us);
    }
    timeline->span_us = MAX(timeline->span_us, 1);
}

/* Bar 'bar' in a chart of 'width' cells. */
static void print_bar(const PfTimeline *timeline, const PfBar *bar, guint width)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double scale = (double)width / (double)timeline->span_us;
    guint first = MIN((guint)((double)bar->begin_us * scale), width - 1);
    double end = (double)bar->end_us * scale;
    guint full = end > first ? (guint)end - MIN((guint)end, first) : 0;
    guint eighth = end > first ? (guint)((end - (guint)end) * 8) : 0;
    guint used = 0;
    PfStyle style = pf_kind_style(bar->kind);

    printf("%*s%s", (int)first, "", pf_style_on(style));
    if (bar->kind == PF_KIND_ENDED) {
        fputs(pf_glyph("◆", "*"), stdout);
        used = 1;
    } else {
        for (used = 0; used < full; used++) {
            fputs(pf_glyph("█", "#"), stdout);
        }
        /* Every phase is seen, however short. */
        if (used == 0 || (eighth > 0 && pf_terminal_is_utf8() && first + used < width)) {
            fputs(pf_glyph(eighths[MAX(eighth, 1)], "|"), stdout);
            used++;
        }
    }
    fputs(pf_style_off(style), stdout);
    if (bar->kind != PF_KIND_ENDED) {
        printf("%*s", first + used < width ? (int)(width - first - used) : 0, "");
    }
}

static void print_axis(const PfTimeline *timeline, guint indent, guint width)
{
    gint64 tick = pf_timeline_tick(timeline->span_us, MAX(width / 14, 2));
    g_autoptr(GString) line = g_string_new(NULL);
    g_autoptr(GString) labels = g_string_new(NULL);
    guint label_width = 0;

    for (guint i = 0; i <= width; i++) {
        g_string_append(line, i == 0 ? pf_glyph("└", "+") : pf_glyph("─", "-"));
    }
    /* The ticks are put into the line of labels, which has one byte a column. */
    for (gint64 t = 0; t <= timeline->span_us; t += tick) {
        guint at = (guint)((double)t * (double)width / (double)timeline->span_us);
        g_autofree char *label = pf_timeline_tick_label(t, tick);

        if (at < label_width || at + pf_text_width(label) > width + 10) {
            continue;
        }
        g_string_append_printf(labels, "%*s%s", (int)(at - label_width), "", label);
        label_width = at + pf_text_width(label) + 1;
        g_string_append_c(labels, ' ');
    }
    g_strchomp(labels->str);
    printf("%*s%s%s\n%*s%s%s\n", (int)indent, "", pf_style_on(PF_STYLE_DIM), line->str, (int)indent,
           "", labels->str, pf_style_off(PF_STYLE_DIM));
}

static void print_timeline(const PfTimeline *timeline)
{
    g_autofree char *title = pf_timeline_title(timeline);
    g_autoptr(GPtrArray) durations = g_ptr_array_new_with_free_func(g_free);
    guint label_width = 0, duration_width = 0, total = MIN(pf_terminal_width(), MAX_WIDTH);
    guint width;

    for (guint i = 0; i < timeline->bars->len; i++) {
        const PfBar *bar = &g_array_index(timeline->bars, PfBar, i);
        g_autofree char *label = pf_safe(bar->phase);
        g_autofree char *took = pf_format_duration(bar->end_us - bar->begin_us);
        char *text = bar->kind == PF_KIND_ENDED ? g_strdup("")
                     : bar->open ? g_strdup_printf("%s %s", took, pf_glyph("…", "..."))
                                 : g_strdup(took);

        g_ptr_array_add(durations, text);
        duration_width = MAX(duration_width, pf_text_width(text));
        label_width = MAX(label_width, pf_text_width(label));
    }
    width = label_width + duration_width + 4;
    width = total > width + MIN_CHART ? total - width : MIN_CHART;

    printf("%s%s%s\n\n", pf_style_on(PF_STYLE_BOLD), title, pf_style_off(PF_STYLE_BOLD));
    for (guint i = 0; i < timeline->bars->len; i++) {
        const PfBar *bar = &g_array_index(timeline->bars, PfBar, i);
        g_autofree char *label = pf_safe(bar->phase);

        printf("%s%*s %s", label, (int)(label_width - pf_text_width(label)), "",
               pf_glyph("│", "|"));
        print_bar(timeline, bar, width);
        printf("%s%s\n", bar->kind == PF_KIND_ENDED ? "" : " ",
               (const char *)g_ptr_array_index(durations, i));
    }
    print_axis(timeline, label_width + 1, width);
    if (*timeline->handover->last_error) {
        g_autofree char *error = pf_safe(timeline->handover->last_error);

        printf("\n%s%s%s\n", pf_style_on(PF_STYLE_BAD), error, pf_style_off(PF_STYLE_BAD));
    }
}

static PfExit write_svg(PfClient *client, const PfTimeline *timeline)
{
    g_autofree char *svg = pf_timeline_to_svg(timeline);
    g_autoptr(GError) error = NULL;

    if (g_str_equal(svg_file, "-")) {
        fputs(svg, stdout);
        return PF_EXIT_OK;
    }
    if (!g_file_set_contents(svg_file, svg, -1, &error)) {
        g_autofree char *text = pf_safe(error->message);

        return pf_client_fail(client, PF_EXIT_FAILED, NULL, NULL, "%s", text);
    }
    return PF_EXIT_OK;
}

static PfExit run_timeline(PfClient *client, char **arguments)
{
    g_autoptr(PfRemoteHandover) h = NULL;
    g_autoptr(GArray) bars = g_array_new(FALSE, FALSE, sizeof(PfBar));
    PfTimeline timeline = {.bars = bars};
    PfExit result;

    if (client->json && svg_file && g_str_equal(svg_file, "-")) {
        return pf_client_fail(client, PF_EXIT_USAGE, NULL, NULL,
                              _("only one of --json and --svg can have standard output"));
    }
    result = pf_remote_find(client, arguments[0], &h);
    if (result != PF_EXIT_OK) {
        return result;
    }
    timeline.handover = h;
    make_bars(&timeline);
    if (svg_file) {
        result = write_svg(client, &timeline);
        if (result != PF_EXIT_OK) {
            return result;
        }
    }
    if (client->json) {
        pf_client_print_json(pf_remote_handover_to_json(h));
    } else if (!svg_file) {
        print_timeline(&timeline);
    }
    return PF_EXIT_OK;
}

const PfCommand pf_command_timeline = {
    .name = "timeline",
    .parameters = N_("HANDOVER|DOMAIN"),
    .summary = N_("Draw a handover: its phases on an axis of time"),
    .options = timeline_options,
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_timeline,
};
