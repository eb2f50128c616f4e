/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <glib.h>
#include <string.h>

#include "facts.h"
#include "handover.h"

#define FACT(event) (G_GUINT64_CONSTANT(1) << (event))

static gboolean is_source(PfState state)
{
    return (state >= PF_SRC_WATCH && state <= PF_SRC_UNDO) ||
           (state >= PF_CMS_WATCH && state <= PF_CMS_BACK);
}

static gboolean is_ended(PfState state)
{
    return pf_state_info(state)->ended;
}

/* Every event in every state has an entry, and it leads to a state of the same daemon. */
static void test_total(void)
{
    guint pairs = 0;
    for (PfState s = PF_STATE_INVALID + 1; s < PF_N_STATES; s++) {
        for (guint e = 0; e < PF_N_EVENTS; e++) {
            PfState to = pf_handover_next(s, (PfEvent)e);
            g_assert_cmpint(to, >, PF_STATE_INVALID);
            g_assert_cmpint(to, <, PF_N_STATES);
            if (!is_ended(s) && !is_ended(to)) {
                g_assert_cmpint(is_source(s), ==, is_source(to));
            }
            if (is_ended(s)) {
                g_assert_cmpint(to, ==, s);
            }
            /* There is one way to a CMS's states, and none back. */
            if (!is_ended(to) && pf_state_info(s)->cms != pf_state_info(to)->cms) {
                g_assert_cmpint(s, ==, PF_DST_PREPLUG);
                g_assert_cmpint(e, ==, PF_EV_LEFT_TO_CMS);
            }
            pairs++;
        }
    }
    g_assert_cmpuint(pairs, ==, (PF_N_STATES - 1) * PF_N_EVENTS);
}

static void test_info(void)
{
    for (PfState s = PF_STATE_INVALID + 1; s < PF_N_STATES; s++) {
        const PfStateInfo *info = pf_state_info(s);
        g_assert_nonnull(info->phase);
        g_assert_cmpstr(pf_state_name(s), !=, "invalid");
        if (!info->ended) {
            g_assert_cmpint(info->role, ==, is_source(s) ? PF_ROLE_SOURCE : PF_ROLE_DESTINATION);
        } else {
            g_assert_cmpuint(info->goals, ==, 0);
            g_assert_cmpint(info->limit, ==, PF_LIMIT_NONE);
        }
        /* What a CMS runs is never written northbound, nor let go of here. */
        g_assert_cmpint(info->cms, ==, s >= PF_CMS_LISTS && s <= PF_CMS_BACK);
        if (info->cms) {
            g_assert_cmpuint(info->goals & ~(guint)(PF_GOAL_OPEN | PF_GOAL_CLOSE), ==, 0);
            g_assert_true(info->limit != PF_LIMIT_NONE || s == PF_CMS_SHUT); /* work to do */
        }
        /* Goals that contradict each other. */
        g_assert_false((info->goals & PF_GOAL_OPEN) && (info->goals & PF_GOAL_CLOSE));
        g_assert_false((info->goals & PF_GOAL_TURN) && (info->goals & PF_GOAL_TURN_BACK));
        g_assert_false((info->goals & PF_GOAL_RELEASE) && (info->goals & PF_GOAL_RECLAIM));
        g_assert_false((info->goals & PF_GOAL_COLLAPSE) && (info->goals & PF_GOAL_ROLL_BACK));
        g_assert_false((info->goals & PF_GOAL_FOLLOW) && (info->goals & PF_GOAL_PUT_BACK));
        /* Only the side of the interface touches it. */
        if (info->goals & (PF_GOAL_RELEASE | PF_GOAL_RECLAIM)) {
            g_assert_cmpint(info->role, ==, PF_ROLE_SOURCE);
        }
    }
    for (guint e = 0; e < PF_N_EVENTS; e++) {
        g_assert_nonnull(pf_event_name((PfEvent)e));
    }
}

static void test_names_are_unique(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (PfState s = PF_STATE_INVALID; s < PF_N_STATES; s++) {
        g_assert_true(g_hash_table_add(seen, (gpointer)pf_state_name(s)));
    }
    for (guint e = 0; e < PF_N_EVENTS; e++) {
        g_assert_true(g_hash_table_add(seen, (gpointer)pf_event_name((PfEvent)e)));
    }
}

/* No state is a trap: the end can be reached from everywhere; and none is dead code. */
static void test_reachable(void)
{
    gboolean from[PF_N_STATES] = {FALSE}, to_end[PF_N_STATES] = {FALSE};

    from[pf_handover_first(PF_ROLE_DESTINATION, PF_ORIGIN_HOOK)] = TRUE;
    from[pf_handover_first(PF_ROLE_DESTINATION, PF_ORIGIN_MARKER)] = TRUE;
    from[pf_handover_first(PF_ROLE_SOURCE, PF_ORIGIN_MARKER)] = TRUE;
    from[pf_handover_first(PF_ROLE_SOURCE, PF_ORIGIN_INTERFACE)] = TRUE;
    from[pf_handover_first(PF_ROLE_DESTINATION, PF_ORIGIN_HOOK_CMS)] = TRUE;
    from[pf_handover_first(PF_ROLE_DESTINATION, PF_ORIGIN_LISTS)] = TRUE;
    from[pf_handover_first(PF_ROLE_SOURCE, PF_ORIGIN_LISTS)] = TRUE;
    to_end[PF_ENDED_DONE] = to_end[PF_ENDED_UNDONE] = to_end[PF_ENDED_UNFINISHED] = TRUE;
    for (guint round = 0; round < PF_N_STATES; round++) {
        for (PfState s = PF_STATE_INVALID + 1; s < PF_N_STATES; s++) {
            for (guint e = 0; e < PF_N_EVENTS; e++) {
                PfState to = pf_handover_next(s, (PfEvent)e);
                from[to] = from[to] || from[s];
                to_end[s] = to_end[s] || to_end[to];
            }
        }
    }
    for (PfState s = PF_STATE_INVALID + 1; s < PF_N_STATES; s++) {
        g_test_message("%s", pf_state_name(s));
        g_assert_true(from[s]);
        g_assert_true(to_end[s]);
    }
}

static gboolean plausible(guint64 facts)
{
    static const PfEvent lists[] = {PF_EV_LIST_DST,    PF_EV_LIST_SRC,    PF_EV_LIST_FOREIGN,
                                    PF_EV_MARKER_LOST, PF_EV_MARKER_GONE, PF_EV_LIST_BOTH};
    guint n = 0;
    for (guint i = 0; i < G_N_ELEMENTS(lists); i++) {
        n += (facts & FACT(lists[i])) != 0;
    }
    return n <= 1 && (!(facts & FACT(PF_EV_LIST_RESUMED)) || (facts & FACT(PF_EV_LIST_BOTH))) &&
           (!(facts & FACT(PF_EV_LIST_TURNED)) || (facts & FACT(PF_EV_LIST_BOTH))) &&
           !((facts & FACT(PF_EV_PORTS_OPEN)) && (facts & FACT(PF_EV_PORTS_SHUT))) &&
           !((facts & FACT(PF_EV_LIST_TURNED)) && (facts & FACT(PF_EV_PORTS_SHUT))) &&
           (!(facts & FACT(PF_EV_ONLY_SRC)) || (facts & FACT(PF_EV_LIST_SRC))) &&
           (!(facts & FACT(PF_EV_ONLY_DST)) || (facts & FACT(PF_EV_LIST_DST)));
}

static void count_visit(PfState from, PfState to, PfEvent why, gpointer data)
{
    guint *n = data;
    g_assert_cmpint(from, !=, to);
    g_assert_cmpint(pf_handover_next(from, why), ==, to);
    g_assert_cmpuint(++*n, <, PF_N_STATES); /* no circle */
}

/* Whatever holds at the same time, the machine comes to rest, and stays there. */
static void test_settles(void)
{
    static const PfEvent facts_events[] = {
        PF_EV_LIST_BOTH,   PF_EV_LIST_TURNED,  PF_EV_LIST_RESUMED, PF_EV_LIST_DST,
        PF_EV_LIST_SRC,    PF_EV_LIST_FOREIGN, PF_EV_MARKER_LOST,  PF_EV_MARKER_GONE,
        PF_EV_PORTS_READY, PF_EV_PORTS_OPEN,   PF_EV_PORTS_SHUT,   PF_EV_SOURCE_FREE,
        PF_EV_ONLY_DST,    PF_EV_ONLY_SRC,     PF_EV_IFACE_GONE,
    };
    guint cases = 0;
    for (guint bits = 0; bits < 1u << G_N_ELEMENTS(facts_events); bits++) {
        guint64 facts = 0;
        for (guint i = 0; i < G_N_ELEMENTS(facts_events); i++) {
            facts |= bits & 1u << i ? FACT(facts_events[i]) : 0;
        }
        if (!plausible(facts)) {
            continue;
        }
        for (guint guest = PF_EV_GUEST_HERE; guest <= PF_EV_GUEST_STOPPED + 1; guest++) {
            PfEvent said = guest > PF_EV_GUEST_STOPPED ? PF_N_EVENTS : (PfEvent)guest;
            for (PfState s = PF_STATE_INVALID + 1; s < PF_N_STATES; s++) {
                guint n = 0;
                PfState end = pf_settle(s, facts, said, count_visit, &n);
                g_assert_cmpint(pf_settle(end, facts, said, NULL, NULL), ==, end);
                cases++;
            }
        }
    }
    g_assert_cmpuint(cases, >, 10000);
}

typedef struct {
    PfEvent event;
    PfState state;
} Step;

static void walk(PfState state, const Step *steps, guint n)
{
    for (guint i = 0; i < n; i++) {
        state = pf_handover_next(state, steps[i].event);
        g_test_message("%s -> %s", pf_event_name(steps[i].event), pf_state_name(state));
        g_assert_cmpint(state, ==, steps[i].state);
    }
}

static void test_usual_destination(void)
{
    const Step steps[] = {
        {PF_EV_LIST_BOTH, PF_DST_BINDING},    {PF_EV_PORTS_READY, PF_DST_READY},
        {PF_EV_PORTS_OPEN, PF_DST_OPEN},      {PF_EV_GUEST_HERE, PF_DST_RUNNING},
        {PF_EV_SOURCE_FREE, PF_DST_COLLAPSE}, {PF_EV_LIST_DST, PF_DST_COLLAPSE},
        {PF_EV_ONLY_DST, PF_DST_ACTIVE},      {PF_EV_MARKER_GONE, PF_ENDED_DONE},
    };
    walk(pf_handover_first(PF_ROLE_DESTINATION, PF_ORIGIN_HOOK), steps, G_N_ELEMENTS(steps));
}

static void test_usual_source(void)
{
    const Step steps[] = {
        {PF_EV_LIST_BOTH, PF_SRC_WATCH},   {PF_EV_GUEST_PAUSED, PF_SRC_OPEN},
        {PF_EV_GUEST_LEFT, PF_SRC_LEFT},   {PF_EV_ONLY_DST, PF_SRC_CLEAR},
        {PF_EV_IFACE_GONE, PF_SRC_FINISH}, {PF_EV_MARKER_GONE, PF_ENDED_DONE},
    };
    walk(pf_handover_first(PF_ROLE_SOURCE, PF_ORIGIN_MARKER), steps, G_N_ELEMENTS(steps));
}

static void test_postcopy(void)
{
    /* The source's QEMU stays for as long as memory follows: it is asked to let go. */
    const Step destination[] = {
        {PF_EV_GUEST_HERE, PF_DST_RUNNING},
        {PF_EV_DEADLINE, PF_DST_ASK},
        {PF_EV_SOURCE_FREE, PF_DST_COLLAPSE},
    };
    const Step source[] = {
        {PF_EV_GUEST_PAUSED, PF_SRC_OPEN},
        {PF_EV_LIST_RESUMED, PF_SRC_RELEASE},
        {PF_EV_GUEST_LEFT, PF_SRC_LEFT},
    };
    walk(PF_DST_OPEN, destination, G_N_ELEMENTS(destination));
    walk(PF_SRC_WATCH, source, G_N_ELEMENTS(source));
}

static void test_cancelled(void)
{
    const Step destination[] = {
        {PF_EV_GUEST_FAILED, PF_DST_ROLLBACK}, {PF_EV_LIST_SRC, PF_DST_ROLLBACK},
        {PF_EV_ONLY_SRC, PF_DST_DRAIN},        {PF_EV_IFACE_GONE, PF_DST_UNDO},
        {PF_EV_MARKER_GONE, PF_ENDED_UNDONE},
    };
    const Step source[] = {
        {PF_EV_GUEST_PAUSED, PF_SRC_OPEN},
        {PF_EV_GUEST_BACK, PF_SRC_ROLLBACK},
        {PF_EV_ONLY_SRC, PF_SRC_UNDO_WAIT},
        {PF_EV_MARKER_GONE, PF_ENDED_UNDONE},
    };
    walk(PF_DST_READY, destination, G_N_ELEMENTS(destination));
    walk(PF_SRC_WATCH, source, G_N_ELEMENTS(source));
}

/* An operator has activated the destination, and then the migration is cancelled. */
static void test_activated_too_early(void)
{
    const Step source[] = {
        {PF_EV_ACTIVATE, PF_SRC_COLLAPSE},   {PF_EV_ONLY_DST, PF_SRC_CLEAR},
        {PF_EV_IFACE_GONE, PF_SRC_FINISH},   {PF_EV_MARKER_LOST, PF_SRC_FINISH},
        {PF_EV_GUEST_BACK, PF_SRC_ROLLBACK}, {PF_EV_MARKER_GONE, PF_ENDED_UNDONE},
    };
    walk(PF_SRC_WATCH, source, G_N_ELEMENTS(source));
}

/* libvirt's word was lost, and the guest runs on both hosts: the handover stays open. */
static void test_twice(void)
{
    const PfPortFacts src_too = {.nb_src_too = TRUE}, dst_too = {.nb_dst_too = TRUE};

    g_assert_true(pf_handover_goals(PF_DST_DRAIN, PF_EV_GUEST_HERE) & PF_GOAL_TWICE);
    g_assert_true(pf_handover_goals(PF_SRC_RELEASE, PF_EV_GUEST_BACK) & PF_GOAL_TWICE);
    g_assert_false(pf_handover_goals(PF_DST_DRAIN, PF_EV_GUEST_FAILED) & PF_GOAL_TWICE);
    g_assert_false(pf_handover_goals(PF_SRC_RELEASE, PF_N_EVENTS) & PF_GOAL_TWICE);
    g_assert_true(pf_runs_twice(PF_DST_DRAIN, PF_EV_GUEST_HERE, &src_too, 0));
    g_assert_true(pf_runs_twice(PF_DST_ACTIVE, PF_EV_GUEST_HERE, &src_too, 1));
    g_assert_false(pf_runs_twice(PF_DST_ACTIVE, PF_EV_GUEST_HERE, &dst_too, 1));
    g_assert_true(pf_runs_twice(PF_SRC_UNDO_WAIT, PF_EV_GUEST_BACK, &dst_too, 1));
    g_assert_false(pf_runs_twice(PF_SRC_UNDO_WAIT, PF_EV_GUEST_BACK, &src_too, 1));
    g_assert_false(pf_runs_twice(PF_SRC_UNDO_WAIT, PF_EV_GUEST_LEFT, &dst_too, 1));
}

/* Somebody resumes the guest at the source in the middle of it all: what has been given to the
 * destination comes back first, and a source that finds it given away asks where the guest is. */
static void test_turned(void)
{
    const Step back[] = {
        {PF_EV_GUEST_PAUSED, PF_SRC_OPEN},    {PF_EV_LIST_TURNED, PF_SRC_OPEN},
        {PF_EV_GUEST_UNPAUSED, PF_SRC_CLOSE}, {PF_EV_PORTS_SHUT, PF_SRC_WATCH},
        {PF_EV_LIST_TURNED, PF_SRC_OPEN},
    };
    walk(PF_SRC_WATCH, back, G_N_ELEMENTS(back));
    g_assert_true(pf_state_info(PF_SRC_OPEN)->goals & PF_GOAL_TURN);
    g_assert_true(pf_state_info(PF_SRC_CLOSE)->goals & PF_GOAL_TURN_BACK);
    g_assert_true(pf_state_info(PF_DST_RUNNING)->goals & PF_GOAL_TURN);
    /* As long as nobody has said that it is gone for good, it can come back. */
    g_assert_false(pf_state_info(PF_SRC_WATCH)->goals & PF_GOAL_TURN);
    g_assert_false(pf_state_info(PF_DST_READY)->goals & PF_GOAL_TURN);
    g_assert_false(pf_state_info(PF_DST_OPEN)->goals & PF_GOAL_TURN);
}

static void test_refused(void)
{
    const Step steps[] = {{PF_EV_REFUSED, PF_DST_ROLLBACK}, {PF_EV_MARKER_GONE, PF_ENDED_UNDONE}};
    walk(PF_DST_PREPLUG, steps, G_N_ELEMENTS(steps));
    walk(PF_DST_BINDING, steps, G_N_ELEMENTS(steps));
    g_assert_cmpint(pf_state_info(PF_DST_BINDING)->gate, ==, PF_GATE_WAIT);
    g_assert_cmpint(pf_state_info(PF_DST_READY)->gate, ==, PF_GATE_PASS);
    g_assert_cmpint(pf_state_info(PF_DST_ROLLBACK)->gate, ==, PF_GATE_REFUSE);
}

static void test_cms(void)
{
    const Step destination[] = {
        {PF_EV_LEFT_TO_CMS, PF_CMS_LISTS},  {PF_EV_LIST_BOTH, PF_CMS_BINDING},
        {PF_EV_PORTS_READY, PF_CMS_READY},  {PF_EV_PORTS_OPEN, PF_CMS_OPEN},
        {PF_EV_GUEST_HERE, PF_CMS_RUNNING}, {PF_EV_PORTS_OPEN, PF_CMS_ACTIVATE},
        {PF_EV_LIST_DST, PF_CMS_ACTIVATE},  {PF_EV_ONLY_DST, PF_ENDED_DONE},
    };
    const Step source[] = {
        {PF_EV_LIST_BOTH, PF_CMS_WATCH},
        {PF_EV_GUEST_PAUSED, PF_CMS_PAUSE},
        {PF_EV_GUEST_LEFT, PF_CMS_LEFT},
        {PF_EV_ONLY_DST, PF_ENDED_DONE},
    };
    walk(PF_DST_PREPLUG, destination, G_N_ELEMENTS(destination));
    walk(PF_CMS_WATCH, source, G_N_ELEMENTS(source));
    g_assert_cmpint(pf_handover_first(PF_ROLE_DESTINATION, PF_ORIGIN_HOOK_CMS), ==, PF_CMS_LISTS);
}

static void test_cms_back(void)
{
    const Step destination[] = {
        {PF_EV_GUEST_FAILED, PF_CMS_ROLLBACK},
        {PF_EV_LIST_SRC, PF_CMS_ROLLBACK},
        {PF_EV_ONLY_SRC, PF_ENDED_UNDONE},
    };
    const Step source[] = {
        {PF_EV_GUEST_PAUSED, PF_CMS_PAUSE},
        {PF_EV_GUEST_BACK, PF_CMS_SHUT},
        {PF_EV_PORTS_SHUT, PF_CMS_BACK},
        {PF_EV_ONLY_SRC, PF_ENDED_UNDONE},
    };
    walk(PF_CMS_READY, destination, G_N_ELEMENTS(destination));
    walk(PF_CMS_WATCH, source, G_N_ELEMENTS(source));
}

/* A CMS that does nothing when it is its turn keeps nobody for ever. */
static void test_cms_silent(void)
{
    static const PfState waiting[] = {PF_CMS_ACTIVATE, PF_CMS_ROLLBACK, PF_CMS_LEFT, PF_CMS_BACK};

    for (guint i = 0; i < G_N_ELEMENTS(waiting); i++) {
        g_assert_cmpint(pf_state_info(waiting[i])->limit, ==, PF_LIMIT_CMS);
        g_assert_cmpint(pf_handover_next(waiting[i], PF_EV_DEADLINE), ==, PF_ENDED_UNFINISHED);
        g_assert_cmpint(pf_handover_next(waiting[i], PF_EV_AGAIN), ==, PF_ENDED_UNFINISHED);
    }
    g_assert_cmpint(pf_handover_next(PF_CMS_LISTS, PF_EV_DEADLINE), ==, PF_ENDED_UNDONE);
    g_assert_cmpint(pf_state_info(PF_ENDED_UNDONE)->gate, ==, PF_GATE_REFUSE);
}

/* ---- facts ---- */

static const PfWorld all_live = {TRUE, TRUE, TRUE, TRUE};

static const PfPortFacts preplugged = {
    .nb_marked = TRUE,
    .nb_list = PF_LIST_BOTH,
    .sb_marked = TRUE,
    .sb_on_src = TRUE,
    .sb_any_added = TRUE,
    .sb_dst_requested = TRUE,
};

static void test_facts_of_dead_databases(void)
{
    /* Nothing is known of a database that is not there, not even that a row is gone. */
    const PfWorld dead = {FALSE, FALSE, FALSE, TRUE};
    for (guint role = 0; role <= PF_ROLE_DESTINATION; role++) {
        g_assert_cmpuint(pf_facts((PfRole)role, &dead, &preplugged, 1), ==, 0);
        PfPortFacts nothing = {0};
        g_assert_cmpuint(pf_facts((PfRole)role, &dead, &nothing, 1), ==, 0);
    }
}

static void test_facts_of_all_ports(void)
{
    PfPortFacts ports[2] = {preplugged, preplugged};
    ports[0].sb_dst_added = ports[0].ovs_claimed = ports[0].ovs_installed = TRUE;
    g_assert_false(pf_facts(PF_ROLE_DESTINATION, &all_live, ports, 2) & FACT(PF_EV_PORTS_READY));
    ports[1].sb_dst_added = ports[1].ovs_claimed = ports[1].ovs_installed = TRUE;
    guint64 facts = pf_facts(PF_ROLE_DESTINATION, &all_live, ports, 2);
    g_assert_true(facts & FACT(PF_EV_PORTS_READY));
    g_assert_true(facts & FACT(PF_EV_PORTS_SHUT));
    g_assert_false(facts & FACT(PF_EV_IFACE_GONE));
    /* A source is never "ready", and flows that are not in keep a destination from it. */
    g_assert_false(pf_facts(PF_ROLE_SOURCE, &all_live, ports, 2) & FACT(PF_EV_PORTS_READY));
    PfWorld no_flows = all_live;
    no_flows.flows_in = FALSE;
    g_assert_false(pf_facts(PF_ROLE_DESTINATION, &no_flows, ports, 2) & FACT(PF_EV_PORTS_READY));

    ports[0].sb_dst_opened = TRUE;
    facts = pf_facts(PF_ROLE_DESTINATION, &all_live, ports, 2);
    g_assert_false(facts & (FACT(PF_EV_PORTS_OPEN) | FACT(PF_EV_PORTS_SHUT)));

    /* One port deleted under way has no say; one that a CMS changes has. */
    ports[0].nb_marked = FALSE;
    ports[1].nb_list = PF_LIST_DST;
    g_assert_true(pf_facts(PF_ROLE_SOURCE, &all_live, ports, 2) & FACT(PF_EV_LIST_DST));
    ports[0].nb_marked = TRUE;
    facts = pf_facts(PF_ROLE_SOURCE, &all_live, ports, 2);
    g_assert_false(facts & (FACT(PF_EV_LIST_DST) | FACT(PF_EV_LIST_BOTH)));
    ports[0].nb_list = PF_LIST_FOREIGN;
    g_assert_true(pf_facts(PF_ROLE_SOURCE, &all_live, ports, 2) & FACT(PF_EV_LIST_FOREIGN));
}

static void test_facts_of_one_chassis(void)
{
    PfPortFacts port = {
        .nb_marked = TRUE, .nb_list = PF_LIST_DST, .sb_marked = TRUE, .sb_on_dst = TRUE};
    g_assert_true(pf_facts(PF_ROLE_SOURCE, &all_live, &port, 1) & FACT(PF_EV_ONLY_DST));
    port.sb_any_added = TRUE;
    g_assert_false(pf_facts(PF_ROLE_SOURCE, &all_live, &port, 1) & FACT(PF_EV_ONLY_DST));

    port = (PfPortFacts){
        .nb_marked = TRUE, .nb_list = PF_LIST_SRC, .sb_marked = TRUE, .sb_on_src = TRUE};
    g_assert_true(pf_facts(PF_ROLE_DESTINATION, &all_live, &port, 1) & FACT(PF_EV_ONLY_SRC));
    /* A flag that stays would open the next attempt at once. */
    port.sb_dst_opened = TRUE;
    g_assert_false(pf_facts(PF_ROLE_DESTINATION, &all_live, &port, 1) & FACT(PF_EV_ONLY_SRC));
    port.sb_dst_opened = FALSE;
    /* The source is not back before its own interface is. */
    port.ovs_released = TRUE;
    g_assert_false(pf_facts(PF_ROLE_SOURCE, &all_live, &port, 1) & FACT(PF_EV_ONLY_SRC));
    port.ovs_released = FALSE;
    /* What the southbound database shows counts only when it is meant. */
    port.nb_list = PF_LIST_BOTH;
    g_assert_false(pf_facts(PF_ROLE_SOURCE, &all_live, &port, 1) & FACT(PF_EV_ONLY_SRC));
}

static void test_facts_of_turned_ports(void)
{
    PfPortFacts port = preplugged;
    port.nb_list = PF_LIST_TURNED;
    guint64 facts = pf_facts(PF_ROLE_SOURCE, &all_live, &port, 1);
    g_assert_true(facts & FACT(PF_EV_LIST_BOTH));
    g_assert_true(facts & FACT(PF_EV_LIST_TURNED));
    /* Not yet in the southbound database, but it will be. */
    g_assert_false(facts & FACT(PF_EV_PORTS_SHUT));

    port.sb_on_src = FALSE;
    port.sb_on_dst = port.sb_src_added = TRUE;
    port.nb_resumed = TRUE;
    facts = pf_facts(PF_ROLE_SOURCE, &all_live, &port, 1);
    g_assert_true(facts & FACT(PF_EV_LIST_RESUMED));
    /* The source has it as an additional chassis still. */
    g_assert_false(facts & FACT(PF_EV_SOURCE_FREE));
    port.sb_src_added = FALSE;
    facts = pf_facts(PF_ROLE_SOURCE, &all_live, &port, 1);
    g_assert_true(facts & FACT(PF_EV_SOURCE_FREE));
    /* Turned back: shut only when the destination is no longer the main one. */
    port.nb_list = PF_LIST_BOTH;
    g_assert_false(pf_facts(PF_ROLE_SOURCE, &all_live, &port, 1) & FACT(PF_EV_PORTS_SHUT));
    port.sb_on_dst = FALSE;
    g_assert_true(pf_facts(PF_ROLE_SOURCE, &all_live, &port, 1) & FACT(PF_EV_PORTS_SHUT));
}

static void test_facts_without_marker(void)
{
    PfPortFacts port = {0};
    g_assert_true(pf_facts(PF_ROLE_SOURCE, &all_live, &port, 1) & FACT(PF_EV_MARKER_GONE));
    port.ovs_released = TRUE;
    guint64 facts = pf_facts(PF_ROLE_SOURCE, &all_live, &port, 1);
    g_assert_true(facts & FACT(PF_EV_MARKER_LOST));
    g_assert_false(facts & FACT(PF_EV_MARKER_GONE));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/handover/total", test_total);
    g_test_add_func("/handover/info", test_info);
    g_test_add_func("/handover/names", test_names_are_unique);
    g_test_add_func("/handover/reachable", test_reachable);
    g_test_add_func("/handover/settles", test_settles);
    g_test_add_func("/handover/usual/destination", test_usual_destination);
    g_test_add_func("/handover/usual/source", test_usual_source);
    g_test_add_func("/handover/post-copy", test_postcopy);
    g_test_add_func("/handover/cancelled", test_cancelled);
    g_test_add_func("/handover/activated-too-early", test_activated_too_early);
    g_test_add_func("/handover/twice", test_twice);
    g_test_add_func("/handover/refused", test_refused);
    g_test_add_func("/handover/cms", test_cms);
    g_test_add_func("/handover/cms-back", test_cms_back);
    g_test_add_func("/handover/cms-silent", test_cms_silent);
    g_test_add_func("/handover/turned", test_turned);
    g_test_add_func("/facts/dead-databases", test_facts_of_dead_databases);
    g_test_add_func("/facts/all-ports", test_facts_of_all_ports);
    g_test_add_func("/facts/one-chassis", test_facts_of_one_chassis);
    g_test_add_func("/facts/turned-ports", test_facts_of_turned_ports);
    g_test_add_func("/facts/no-marker", test_facts_without_marker);
    return g_test_run();
}
