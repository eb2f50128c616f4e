/* SPDX-License-Identifier: LGPL-2.1-or-later */

#pragma once

#include <glib.h>

#include "handover.h"
#include "view.h"

/*
 * What is measured, for monitoring.  A handover measures itself (PfMeasures) as it goes on; when it
 * ends, its numbers go into the counters and histograms of the whole daemon (PfMetrics), which can
 * be looked at on the bus and in a file in Prometheus' text format, such as node_exporter's
 * textfile collector reads.  All times here are monotonic, in microseconds.
 */

#define PF_UNKNOWN (-1)

/* One handover's. */
typedef struct {
    gint64 gate_us;     /* how long libvirt's hook waited at the gate; PF_UNKNOWN: it did not */
    gint64 open_us;     /* from libvirt's word that the guest stands still, or runs at the
                         * destination, until this host had opened the port; PF_UNKNOWN: another
                         * trigger, or the other host, was faster */
    gint64 silence_us;  /* how much later than the guest the network was there; 0: it was there
                         * first; PF_UNKNOWN: never, or nobody told */
    const char *reason; /* the event that began the rollback; static; NULL: there was none */

    gint64 gate_since, opened_at; /* 0: not yet */
} PfMeasures;

void pf_measures_init(PfMeasures *measures);

/* A hook begins, or stops, to wait at the gate. */
void pf_measures_gate(PfMeasures *measures, gboolean waits);
/* This host has opened the ports for the event about the guest that came at 'guest_at' (0: there
 * was none). */
void pf_measures_opened(PfMeasures *measures, gint64 guest_at);
/* Destination: whether all ports are open, and when the guest was found running ('guest_at'; 0: not
 * yet). */
void pf_measures_look(PfMeasures *measures, gboolean open, gint64 guest_at);
/* The machine has gone to 'to' by 'why'. */
void pf_measures_visit(PfMeasures *measures, PfState to, PfEvent why);

typedef struct PfMetrics PfMetrics;

/* 'view' is the manager's, whose states and counters are shown as well; it must live longer. */
PfMetrics *pf_metrics_new(const PfManagerView *view);

/* Takes the file away, if there is one: nobody shall take old numbers for new ones. */
void pf_metrics_free(PfMetrics *metrics);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfMetrics, pf_metrics_free)

/* How many handovers are open now. */
void pf_metrics_set_open(PfMetrics *metrics, guint open);
/* A handover has ended, in the state 'end'. */
void pf_metrics_ended(PfMetrics *metrics, const PfHandoverView *view, PfState end,
                      const PfMeasures *measures);

/* Where to write the file, now and then, in a thread of its own; NULL: nowhere. */
void pf_metrics_set_file(PfMetrics *metrics, const char *path);

/* Calls 'sample' for each sample: its name, its labels as pairs of strings, NULL-terminated, and
 * its value. */
typedef void (*PfMetricsSample)(const char *name, const char *const *labels, double value,
                                gpointer data);
void pf_metrics_foreach(const PfMetrics *metrics, PfMetricsSample sample, gpointer data);

/* The text format.  Free with g_free(). */
char *pf_metrics_text(const PfMetrics *metrics);
