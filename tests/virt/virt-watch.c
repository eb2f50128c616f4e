/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The libvirt adapter by itself: virt-watch URI.  Prints a line for each callback; takes commands
 * on standard input: "ask KEY UUID FLAGS TIMEOUT_MS", "cancel KEY", "quit". tests/virt/test_virt.py
 * drives it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "log.h"
#include "virt.h"

typedef struct {
    char *key;
    guint64 id;
    gint64 asked_us;
} Question;

static GMainLoop *loop;
static PfVirt *virt;
static GHashTable *questions;

static void G_GNUC_PRINTF(1, 2) say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

static void on_state(PfVirtState state, const char *why, gpointer userdata)
{
    say("state %s: %s", pf_virt_state_to_string(state), why);
}

static void on_event(const PfVirtEvent *e, gpointer userdata)
{
    say("event %s %s %s raw=%d/%d iteration=%d job=%s downtime=%" G_GINT64_FORMAT
        " at=%" G_GINT64_FORMAT,
        pf_virt_event_to_string(e->type), e->uuid, e->name, e->event, e->detail, e->iteration,
        pf_virt_job_to_string(e->job), e->downtime_us, e->realtime_us);
}

static void on_snapshot(const GPtrArray *guests, gpointer userdata)
{
    for (guint i = 0; i < guests->len; i++) {
        const PfVirtGuest *g = g_ptr_array_index(guests, i);

        say("guest %s %s %s job=%s reason=%d", g->uuid, g->name, pf_virt_guest_to_string(g->state),
            pf_virt_job_to_string(g->job), g->reason);
    }
    say("snapshot %u", guests->len);
}

static void on_answer(const PfVirtGuest *g, gpointer userdata)
{
    Question *q = userdata;
    gint64 now = g_get_monotonic_time();

    say("answer %s %s job=%s reason=%d after=%" G_GINT64_FORMAT " fresh=%d error=%s", q->key,
        pf_virt_guest_to_string(g->state), pf_virt_job_to_string(g->job), g->reason,
        now - q->asked_us, g->read_us >= q->asked_us, g->error != NULL ? g->error : "");
    g_hash_table_remove(questions, q->key);
}

static void question_free(gpointer data)
{
    Question *q = data;

    g_free(q->key);
    g_free(q);
}

static void obey(char **w)
{
    guint n = g_strv_length(w);

    if (g_str_equal(w[0], "ask") && n == 5) {
        Question *q = g_new0(Question, 1);

        q->key = g_strdup(w[1]);
        q->asked_us = g_get_monotonic_time();
        g_hash_table_insert(questions, q->key, q);
        q->id =
            pf_virt_ask(virt, w[2], (PfVirtAskFlags)atoi(w[3]), atoll(w[4]) * 1000, on_answer, q);
    } else if (g_str_equal(w[0], "cancel") && n == 2) {
        Question *q = g_hash_table_lookup(questions, w[1]);

        pf_virt_ask_cancel(virt, q->id);
        pf_virt_ask_cancel(virt, q->id); /* does no harm */
        g_hash_table_remove(questions, w[1]);
    } else {
        g_main_loop_quit(loop);
    }
}

static gboolean on_input(GIOChannel *channel, GIOCondition condition, gpointer userdata)
{
    g_autofree char *line = NULL;
    g_auto(GStrv) words = NULL;

    if (g_io_channel_read_line(channel, &line, NULL, NULL, NULL) != G_IO_STATUS_NORMAL) {
        g_main_loop_quit(loop);
        return G_SOURCE_REMOVE;
    }
    words = g_strsplit(g_strstrip(line), " ", -1);
    obey(words);
    return G_SOURCE_CONTINUE;
}

static const PfVirtCallbacks callbacks = {
    .state_changed = on_state,
    .event = on_event,
    .snapshot = on_snapshot,
};

int main(int argc, char *argv[])
{
    GIOChannel *input = g_io_channel_unix_new(STDIN_FILENO);

    pf_log_init("virt-watch");
    pf_log_set_max_priority(LOG_DEBUG);
    loop = g_main_loop_new(NULL, FALSE);
    questions = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, question_free);
    g_io_channel_set_flags(input, G_IO_FLAG_NONBLOCK, NULL);
    g_io_add_watch(input, G_IO_IN | G_IO_HUP, on_input, NULL);

    virt = pf_virt_new(argc > 1 ? argv[1] : "qemu:///system", &callbacks, NULL);
    pf_virt_start(virt);
    g_main_loop_run(loop);
    pf_virt_free(virt);
    g_hash_table_unref(questions);
    g_io_channel_unref(input);
    g_main_loop_unref(loop);
    return EXIT_SUCCESS;
}
