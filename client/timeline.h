/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "phases.h"
#include "remote.h"

/* One bar of the picture: a phase from its beginning to the next one's. */
typedef struct {
    const char *phase; /* the handover's */
    PfPhaseKind kind;
    gint64 begin_us, end_us; /* from the beginning of the handover */
    bool open;               /* it goes on */
} PfBar;

typedef struct {
    const PfRemoteHandover *handover;
    GArray *bars;   /* of PfBar */
    gint64 span_us; /* at least 1 */
} PfTimeline;

/* The largest of 1, 2, 5, 10, ... units so that 'span_us' has no more than 'max_ticks' of them. */
gint64 pf_timeline_tick(gint64 span_us, guint max_ticks);

/* A tick's label: "0", "200 ms", "1.5 s". */
char *pf_timeline_tick_label(gint64 time_us, gint64 tick_us);

/* One line: which domain, from where to where, how it ended, how long it took. */
char *pf_timeline_title(const PfTimeline *timeline);

/* Returns the picture as a document of its own. */
char *pf_timeline_to_svg(const PfTimeline *timeline);
