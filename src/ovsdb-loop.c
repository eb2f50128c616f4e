/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "ovsdb-loop.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "dns-resolve.h"
#include "fatal-signal.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/util.h"
#include "openvswitch/vlog.h"

typedef struct {
    const PfOvsdbLoopOps *ops;
    gpointer member; /* NULL once removed. */
    bool news;       /* 'run' said that 'dispatch' has something to do. */
} Member;

struct PfOvsdbLoop {
    GMainContext *context;
    GPollFunc poll; /* The context's own poll function. */
    GSource *source;
    GPtrArray *members; /* Of Member. */
    guint walking;      /* Loops over 'members' under way: nothing may be freed. */
};

typedef struct {
    GSource source;
    PfOvsdbLoop *loop;
} LoopSource;

/* A poll function gets no user data. */
static PfOvsdbLoop *the_loop;

/* Calls 'body' for each member that is not removed; members may come and go. */
#define FOR_EACH_MEMBER(MEMBER, LOOP)                                                              \
    for (guint i_ = 0; i_ < (LOOP)->members->len; i_++)                                            \
        for (Member *MEMBER = g_ptr_array_index((LOOP)->members, i_); MEMBER && MEMBER->member;    \
             MEMBER = NULL)

static gint loop_poll(GPollFD *fds, guint n_fds, gint timeout)
{
    PfOvsdbLoop *loop = the_loop;

    if (timeout != 0) {
        for (guint i = 0; i < n_fds; i++) {
            if (fds[i].fd >= 0) {
                poll_fd_wait(fds[i].fd, (short)fds[i].events);
            }
        }
        if (timeout > 0) {
            poll_timer_wait(timeout);
        }
        FOR_EACH_MEMBER(m, loop)
        {
            m->ops->wait(m->member);
        }
        poll_block();
    }
    return g_poll(fds, n_fds, 0);
}

static gboolean loop_prepare(GSource *source, gint *timeout)
{
    *timeout = -1;
    return FALSE;
}

static gboolean loop_check(GSource *source)
{
    PfOvsdbLoop *loop = ((LoopSource *)source)->loop;
    bool news = false;

    FOR_EACH_MEMBER(m, loop)
    {
        m->news = m->ops->run(m->member);
        news = news || m->news;
    }
    return news;
}

static void sweep(PfOvsdbLoop *loop)
{
    for (guint i = loop->members->len; i > 0; i--) {
        Member *m = g_ptr_array_index(loop->members, i - 1);

        if (!m->member) {
            g_ptr_array_remove_index(loop->members, i - 1);
        }
    }
}

static gboolean loop_dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
    PfOvsdbLoop *loop = ((LoopSource *)source)->loop;

    loop->walking++;
    FOR_EACH_MEMBER(m, loop)
    {
        if (m->news) {
            m->news = false;
            m->ops->dispatch(m->member);
        }
    }
    if (--loop->walking == 0) {
        sweep(loop);
    }
    return G_SOURCE_CONTINUE;
}

static GSourceFuncs loop_source_funcs = {
    .prepare = loop_prepare,
    .check = loop_check,
    .dispatch = loop_dispatch,
};

/* OVS's poll loop takes descriptor 0 for none, and aborts. */
static void occupy_stdin(void)
{
    if (fcntl(STDIN_FILENO, F_GETFD) < 0) {
        int fd = open("/dev/null", O_RDONLY);

        if (fd > STDIN_FILENO) {
            close(fd);
        }
    }
}

/* OVS would end the process from within poll_block(), on SIGHUP too.  What a signal means is for
 * the program to say, and it may say so later than this. */
static void init_fatal_signals(void)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGALRM};
    struct sigaction actions[G_N_ELEMENTS(signals)];

    for (guint i = 0; i < G_N_ELEMENTS(signals); i++) {
        sigaction(signals[i], NULL, &actions[i]);
    }
    fatal_signal_init();
    for (guint i = 0; i < G_N_ELEMENTS(signals); i++) {
        sigaction(signals[i], &actions[i], NULL);
    }
}

static void init_ovs(void)
{
    static gsize initialized;

    if (!g_once_init_enter(&initialized)) {
        return;
    }
    occupy_stdin();
    init_fatal_signals();
    signal(SIGPIPE, SIG_IGN);
    ovs_set_program_name(g_get_prgname() ? g_get_prgname() : "portferry", PACKAGE_VERSION);

    /* Standard error is the journal, which adds the time and the program's name. */
    vlog_set_levels(NULL, VLF_SYSLOG, VLL_OFF);
    vlog_set_levels(NULL, VLF_CONSOLE, VLL_WARN);
    vlog_set_pattern(VLF_CONSOLE, "%c: %m");

    dns_resolve_init(true);
    g_once_init_leave(&initialized, 1);
}

PfOvsdbLoop *pf_ovsdb_loop_new(GMainContext *context)
{
    PfOvsdbLoop *loop = g_new0(PfOvsdbLoop, 1);

    g_assert(!the_loop);
    the_loop = loop;
    init_ovs();

    loop->context = g_main_context_ref(context ? context : g_main_context_default());
    loop->members = g_ptr_array_new_with_free_func(g_free);
    loop->poll = g_main_context_get_poll_func(loop->context);
    g_main_context_set_poll_func(loop->context, loop_poll);

    loop->source = g_source_new(&loop_source_funcs, sizeof(LoopSource));
    ((LoopSource *)loop->source)->loop = loop;
    g_source_set_static_name(loop->source, "ovsdb");
    g_source_set_priority(loop->source, G_PRIORITY_HIGH);
    g_source_attach(loop->source, loop->context);
    return loop;
}

void pf_ovsdb_loop_free(PfOvsdbLoop *loop)
{
    if (!loop) {
        return;
    }
    g_assert(!loop->walking);
    sweep(loop);
    g_assert(loop->members->len == 0);

    g_source_destroy(loop->source);
    g_source_unref(loop->source);
    g_main_context_set_poll_func(loop->context, loop->poll);
    g_main_context_unref(loop->context);
    g_ptr_array_unref(loop->members);
    g_free(loop);
    the_loop = NULL;
}

GMainContext *pf_ovsdb_loop_get_context(PfOvsdbLoop *loop)
{
    return loop->context;
}

void pf_ovsdb_loop_add(PfOvsdbLoop *loop, const PfOvsdbLoopOps *ops, gpointer member)
{
    Member *m = g_new0(Member, 1);

    m->ops = ops;
    m->member = member;
    g_ptr_array_add(loop->members, m);
}

void pf_ovsdb_loop_remove(PfOvsdbLoop *loop, gpointer member)
{
    FOR_EACH_MEMBER(m, loop)
    {
        if (m->member == member) {
            m->member = NULL;
        }
    }
    if (loop->walking == 0) {
        sweep(loop);
    }
}
