/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* sd-event as a source of GLib's loop, also when other sources keep it from being looked at. */

#include <sys/epoll.h>
#include <unistd.h>

#include "sd-source.h"

typedef struct {
    GMainLoop *loop;
    int fds[2];
    guint reads;
    guint prepared;
    guint busy;
} State;

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    State *state = userdata;
    char byte;

    g_assert_cmpint(read(fd, &byte, 1), ==, 1);
    state->reads++;
    if (state->reads == 10)
        g_main_loop_quit(state->loop);
    return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
    State *state = userdata;

    g_assert_cmpint(write(state->fds[1], "x", 1), ==, 1);
    if (state->reads < 9) {
        sd_event_source_set_time_relative(source, 2000);
        sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    }
    return 0;
}

static int on_prepare(sd_event_source *source, void *userdata)
{
    State *state = userdata;

    state->prepared++;
    return 0;
}

static gboolean on_busy(gpointer userdata)
{
    State *state = userdata;

    return --state->busy > 0;
}

static gboolean on_stuck(gpointer userdata)
{
    g_assert_not_reached(); /* the loop does not go round */
    return G_SOURCE_REMOVE;
}

static void run(guint busy)
{
    State state = {.busy = busy};
    sd_event *event = NULL;
    sd_event_source *io = NULL;
    sd_event_source *timer = NULL;
    guint source;
    guint stuck;

    g_assert_cmpint(pipe(state.fds), ==, 0);
    state.loop = g_main_loop_new(NULL, FALSE);
    g_assert_cmpint(sd_event_new(&event), >=, 0);
    source = pf_sd_source_add(event, G_PRIORITY_DEFAULT);
    g_assert_cmpint(sd_event_add_io(event, &io, state.fds[0], EPOLLIN, on_readable, &state), >=, 0);
    g_assert_cmpint(sd_event_source_set_prepare(io, on_prepare), >=, 0);
    g_assert_cmpint(
        sd_event_add_time_relative(event, &timer, CLOCK_MONOTONIC, 1000, 1, on_timer, &state), >=,
        0);

    /* Ready in each turn: GLib then leaves out check() of everything less important. */
    if (busy > 0)
        g_idle_add_full(G_PRIORITY_HIGH, on_busy, &state, NULL);
    stuck = g_timeout_add_seconds(20, on_stuck, NULL);

    g_main_loop_run(state.loop);
    g_assert_cmpuint(state.reads, ==, 10);
    g_assert_cmpuint(state.prepared, >=, 10);

    g_source_remove(stuck);
    sd_event_source_unref(io);
    sd_event_source_unref(timer);
    g_assert_true(g_source_remove(source));
    sd_event_unref(event);
    g_main_loop_unref(state.loop);
    close(state.fds[0]);
    close(state.fds[1]);
}

static void test_alone(void)
{
    run(0);
}

static void test_beside_busy_source(void)
{
    run(50000);
}

static void test_exit(void)
{
    sd_event *event = NULL;
    guint source;

    g_assert_cmpint(sd_event_new(&event), >=, 0);
    source = pf_sd_source_add(event, G_PRIORITY_DEFAULT);
    sd_event_exit(event, 0);
    for (int i = 0; i < 10; i++)
        g_main_context_iteration(NULL, FALSE);
    g_assert_null(g_main_context_find_source_by_id(NULL, source));
    sd_event_unref(event);
}

int main(int argc, char *argv[])
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sd-source/alone", test_alone);
    g_test_add_func("/sd-source/beside-busy-source", test_beside_busy_source);
    g_test_add_func("/sd-source/exit", test_exit);
    return g_test_run();
}
