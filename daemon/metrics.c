/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "metrics.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#include "ovsdb.h"

/* How often the file is written even if nothing happens: its age tells that portferryd lives. */
#define WRITE_INTERVAL_S 15
/* How soon after a handover's end. */
#define WRITE_SOON_MS 1000

#define MAX_BUCKETS 14

/* ---- one handover ---- */

void pf_measures_init(PfMeasures *measures)
{
    *measures =
        (PfMeasures){.gate_us = PF_UNKNOWN, .open_us = PF_UNKNOWN, .silence_us = PF_UNKNOWN};
}

void pf_measures_gate(PfMeasures *measures, gboolean waits)
{
    gint64 now = g_get_monotonic_time();

    if (waits) {
        measures->gate_since = now;
    } else if (measures->gate_since) {
        measures->gate_us = now - measures->gate_since;
        measures->gate_since = 0;
    }
}

void pf_measures_opened(PfMeasures *measures, gint64 guest_at)
{
    if (guest_at && measures->open_us == PF_UNKNOWN) {
        measures->open_us = MAX(g_get_monotonic_time() - guest_at, 0);
    }
}

void pf_measures_look(PfMeasures *measures, gboolean open, gint64 guest_at)
{
    if (open && !measures->opened_at) {
        measures->opened_at = g_get_monotonic_time();
    }
    if (measures->opened_at && guest_at && measures->silence_us == PF_UNKNOWN) {
        measures->silence_us = MAX(measures->opened_at - guest_at, 0);
    }
}

void pf_measures_visit(PfMeasures *measures, PfState to, PfEvent why)
{
    /* All states on the way back, and none else, refuse whoever waits at the gate. */
    if (!measures->reason && pf_state_info(to)->gate == PF_GATE_REFUSE) {
        measures->reason = pf_event_name(why);
    }
}

/* ---- all of them ---- */

typedef struct {
    const char *name, *help;
    double bounds[MAX_BUCKETS]; /* ascending; 0 ends it, but for the first */
    guint64 counts[MAX_BUCKETS + 1];
    guint64 count;
    double sum;
} Histogram;

typedef enum { OPEN, GATE, SILENCE, DURATION, N_HISTOGRAMS } Which;

static const Histogram histograms[N_HISTOGRAMS] = {
    [OPEN] = {"portferry_open_seconds",
              "From libvirt's word about the guest until this host had opened its ports.",
              {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}},
    [GATE] = {"portferry_gate_wait_seconds",
              "How long libvirt waited at the gate for the network of the destination.",
              {0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}},
    [SILENCE] = {"portferry_added_silence_seconds",
                 "How much later than the guest its network was there, as the destination knows.",
                 {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}},
    [DURATION] = {"portferry_handover_seconds",
                  "How long a handover took in all.",
                  {0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}},
};

struct PfMetrics {
    const PfManagerView *view;
    guint open;
    guint64 ended[2][PF_N_STATES]; /* by role: whether destination; by the last state */
    GHashTable *reasons;           /* "role reason" -> guint64 * */
    Histogram histograms[N_HISTOGRAMS];

    char *path; /* of the file, or NULL */
    GThread *writer;
    gint writing; /* atomic */
    gboolean complained;
    guint interval_id, soon_id;
};

static guint n_bounds(const Histogram *h)
{
    guint n = 0;

    while (n < MAX_BUCKETS && h->bounds[n] > 0) {
        n++;
    }
    return n;
}

static void observe(Histogram *h, gint64 us)
{
    double seconds = (double)us / G_USEC_PER_SEC;
    guint n = n_bounds(h), i = 0;

    if (us == PF_UNKNOWN) {
        return;
    }
    while (i < n && seconds > h->bounds[i]) {
        i++;
    }
    h->counts[i]++;
    h->count++;
    h->sum += seconds;
}

static void schedule_write(PfMetrics *m);

void pf_metrics_set_open(PfMetrics *m, guint open)
{
    m->open = open;
}

void pf_metrics_ended(PfMetrics *m, const PfHandoverView *view, PfState end,
                      const PfMeasures *measures)
{
    gboolean destination = g_strcmp0(view->role, pf_role_name(PF_ROLE_DESTINATION)) == 0;

    m->ended[destination][end]++;
    if (end == PF_ENDED_UNDONE) {
        char *key = g_strdup_printf("%s %s", view->role, measures->reason);
        guint64 *n = g_hash_table_lookup(m->reasons, key);
        if (n) {
            g_free(key);
        } else {
            n = g_new0(guint64, 1);
            g_hash_table_insert(m->reasons, key, n);
        }
        (*n)++;
    }
    observe(&m->histograms[OPEN], measures->open_us);
    observe(&m->histograms[GATE], measures->gate_us);
    if (destination) {
        observe(&m->histograms[SILENCE], measures->silence_us);
        observe(&m->histograms[DURATION], MAX(view->ended_us - view->started_us, 0));
    }
    schedule_write(m);
}

/* ---- as samples ---- */

/* A family's name, kind and help come before its samples. */
typedef void (*Family)(const char *name, const char *kind, const char *help, gpointer data);

static void add_counters(const PfMetrics *m, Family family, PfMetricsSample sample, gpointer data)
{
    const char *name = "portferry_handovers_total";

    family(name, "counter", "Handovers that have ended.", data);
    for (PfRole role = PF_ROLE_SOURCE; role <= PF_ROLE_DESTINATION; role++) {
        for (PfState state = PF_STATE_INVALID + 1; state < PF_N_STATES; state++) {
            const PfStateInfo *info = pf_state_info(state);
            if (info->ended) {
                sample(
                    name,
                    (const char *const[]){"role", pf_role_name(role), "outcome", info->phase, NULL},
                    (double)m->ended[role == PF_ROLE_DESTINATION][state], data);
            }
        }
    }

    name = "portferry_rollbacks_total";
    family(name, "counter", "Handovers that were rolled back, by the event that began it.", data);
    g_autoptr(GList) keys = g_hash_table_get_keys(m->reasons);
    keys = g_list_sort(keys, (GCompareFunc)strcmp);
    for (const GList *i = keys; i; i = i->next) {
        g_auto(GStrv) words = g_strsplit(i->data, " ", 2);
        const guint64 *n = g_hash_table_lookup(m->reasons, i->data);
        sample(name, (const char *const[]){"role", words[0], "reason", words[1], NULL}, (double)*n,
               data);
    }

    name = "portferry_events_total";
    family(name, "counter", "What else is counted: see the property Counters.", data);
    for (gsize i = 0; i < m->view->n_counters; i++) {
        sample(name, (const char *const[]){"event", m->view->counters[i].name, NULL},
               (double)m->view->counters[i].value, data);
    }
}

static void add_histogram(const Histogram *h, Family family, PfMetricsSample sample, gpointer data)
{
    g_autofree char *bucket = g_strconcat(h->name, "_bucket", NULL);
    g_autofree char *sum = g_strconcat(h->name, "_sum", NULL);
    g_autofree char *count = g_strconcat(h->name, "_count", NULL);
    guint64 so_far = 0;

    family(h->name, "histogram", h->help, data);
    for (guint i = 0; i < n_bounds(h); i++) {
        char le[G_ASCII_DTOSTR_BUF_SIZE];
        g_ascii_formatd(le, sizeof le, "%g", h->bounds[i]);
        so_far += h->counts[i];
        sample(bucket, (const char *const[]){"le", le, NULL}, (double)so_far, data);
    }
    sample(bucket, (const char *const[]){"le", "+Inf", NULL}, (double)h->count, data);
    sample(sum, (const char *const[]){NULL}, h->sum, data);
    sample(count, (const char *const[]){NULL}, (double)h->count, data);
}

static gboolean is_connected(const char *state)
{
    return g_strcmp0(state, "connected") == 0 ||
           g_strcmp0(state, pf_ovsdb_state_to_string(PF_OVSDB_SYNCED)) == 0;
}

static void add_gauges(const PfMetrics *m, Family family, PfMetricsSample sample, gpointer data)
{
    const PfManagerView *v = m->view;
    const struct {
        const char *to, *state;
    } connections[] = {
        {"libvirt", v->libvirt_state},
        {"northbound", v->northbound_state},
        {"southbound", v->southbound_state},
        {"switch", v->switch_state},
    };

    family("portferry_info", "gauge", "What runs.", data);
    sample("portferry_info", (const char *const[]){"version", v->version, NULL}, 1, data);
    family("portferry_handovers_open", "gauge", "Handovers that are under way.", data);
    sample("portferry_handovers_open", (const char *const[]){NULL}, m->open, data);
    family("portferry_connected", "gauge", "Whether portferryd is connected.", data);
    for (gsize i = 0; i < G_N_ELEMENTS(connections); i++) {
        sample("portferry_connected", (const char *const[]){"to", connections[i].to, NULL},
               is_connected(connections[i].state), data);
    }
}

static void add_all(const PfMetrics *m, Family family, PfMetricsSample sample, gpointer data)
{
    add_gauges(m, family, sample, data);
    add_counters(m, family, sample, data);
    for (guint i = 0; i < N_HISTOGRAMS; i++) {
        add_histogram(&m->histograms[i], family, sample, data);
    }
}

static void no_family(const char *name G_GNUC_UNUSED, const char *kind G_GNUC_UNUSED,
                      const char *help G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
}

void pf_metrics_foreach(const PfMetrics *m, PfMetricsSample sample, gpointer data)
{
    add_all(m, no_family, sample, data);
}

/* ---- as text ---- */

static void write_family(const char *name, const char *kind, const char *help, gpointer data)
{
    g_string_append_printf(data, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

static void write_sample(const char *name, const char *const *labels, double value, gpointer data)
{
    GString *text = data;
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append(text, name);
    for (guint i = 0; labels[i]; i += 2) {
        /* All values are our own words, and need no escape. */
        g_string_append_printf(text, "%s%s=\"%s\"%s", i ? "," : "{", labels[i], labels[i + 1],
                               labels[i + 2] ? "" : "}");
    }
    g_string_append_printf(text, " %s\n", g_ascii_dtostr(number, sizeof number, value));
}

char *pf_metrics_text(const PfMetrics *m)
{
    GString *text = g_string_new(NULL);

    add_all(m, write_family, write_sample, text);
    return g_string_free(text, FALSE);
}

/* ---- the file ---- */

typedef struct {
    char *path, *text;
    gint *writing;
} Writing;

/* Returns an error (g_error_free()) or NULL. */
static gpointer write_file(gpointer data)
{
    Writing *w = data;
    GError *error = NULL;

    /* By a rename, without waiting for the disk: after a crash old numbers are worth nothing. */
    g_file_set_contents_full(w->path, w->text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0644, &error);
    g_atomic_int_set(w->writing, 0);
    g_free(w->path);
    g_free(w->text);
    g_free(w);
    return error;
}

static void join_writer(PfMetrics *m)
{
    if (!m->writer) {
        return;
    }
    g_autoptr(GError) error = g_thread_join(g_steal_pointer(&m->writer));
    if (error && !m->complained) {
        g_warning("metrics-file: %s", error->message);
    }
    m->complained = error != NULL;
}

static gboolean on_interval(gpointer data)
{
    PfMetrics *m = data;

    if (m->path && !g_atomic_int_get(&m->writing)) {
        join_writer(m); /* it has ended */
        Writing *w = g_new(Writing, 1);
        *w = (Writing){g_strdup(m->path), pf_metrics_text(m), &m->writing};
        g_atomic_int_set(&m->writing, 1);
        m->writer = g_thread_new("metrics", write_file, w);
    }
    return G_SOURCE_CONTINUE;
}

static gboolean on_soon(gpointer data)
{
    PfMetrics *m = data;

    m->soon_id = 0;
    on_interval(m);
    return G_SOURCE_REMOVE;
}

static void schedule_write(PfMetrics *m)
{
    if (m->path && !m->soon_id) {
        m->soon_id = g_timeout_add(WRITE_SOON_MS, on_soon, m);
    }
}

void pf_metrics_set_file(PfMetrics *m, const char *path)
{
    if (g_strcmp0(path, m->path) == 0) {
        return;
    }
    g_clear_handle_id(&m->interval_id, g_source_remove);
    g_clear_handle_id(&m->soon_id, g_source_remove);
    join_writer(m);
    if (m->path && g_unlink(m->path) < 0 && errno != ENOENT) {
        g_warning("can't remove %s: %s", m->path, g_strerror(errno));
    }
    g_free(m->path);
    m->path = g_strdup(path);
    m->complained = FALSE;
    if (path) {
        m->interval_id = g_timeout_add_seconds(WRITE_INTERVAL_S, on_interval, m);
        on_interval(m);
    }
}

/* ---- life ---- */

PfMetrics *pf_metrics_new(const PfManagerView *view)
{
    PfMetrics *m = g_new0(PfMetrics, 1);

    m->view = view;
    m->reasons = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    memcpy(m->histograms, histograms, sizeof histograms);
    return m;
}

void pf_metrics_free(PfMetrics *m)
{
    if (!m) {
        return;
    }
    pf_metrics_set_file(m, NULL);
    g_hash_table_unref(m->reasons);
    g_free(m);
}
