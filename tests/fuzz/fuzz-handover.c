/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * One daemon's state machine, with any events and facts in any order, be they possible or not: the
 * model (tests/model) has the possible ones, all of them.  The first byte says how it begins; then
 * there are steps, of a byte that says which and the bytes that it needs.
 */

#include <string.h>

#include "facts.h"
#include "fuzz.h"
#include "handover.h"
#include "plan.h"

#define MAX_PORTS 3

/* More states than these in one go would be a circle. */
#define MAX_VISITS PF_N_STATES

typedef struct {
    const uint8_t *data;
    size_t size;
} Input;

static guint8 next_byte(Input *in)
{
    guint8 byte = in->size > 0 ? *in->data : 0;

    if (in->size > 0) {
        in->data++;
        in->size--;
    }
    return byte;
}

static void visit(PfState from, PfState to, PfEvent why, gpointer data)
{
    guint *n = data;

    g_assert_cmpint(pf_handover_next(from, why), ==, to);
    g_assert_cmpuint(++*n, <=, MAX_VISITS);
}

static PfPortFacts port_facts(Input *in)
{
    guint8 a = next_byte(in), b = next_byte(in);

    return (PfPortFacts){
        .nb_marked = a & 1,
        .nb_list = (PfListKind)(a >> 1 & 3),
        .nb_resumed = a >> 3 & 1,
        .sb_marked = a >> 4 & 1,
        .sb_on_src = a >> 5 & 1,
        .sb_on_dst = a >> 6 & 1,
        .sb_dst_added = a >> 7,
        .sb_dst_requested = b & 1,
        .sb_any_added = b >> 1 & 1,
        .sb_dst_opened = b >> 2 & 1,
        .ovs_claimed = b >> 3 & 1,
        .ovs_released = b >> 4 & 1,
        .ovs_installed = b >> 5 & 1,
    };
}

static PfState settle(PfState state, PfRole role, Input *in)
{
    guint8 how = next_byte(in);
    PfPortFacts ports[MAX_PORTS];
    guint n_ports = how % MAX_PORTS + 1;
    PfWorld world = {.nb_live = how >> 2 & 1,
                     .sb_live = how >> 3 & 1,
                     .ovs_live = how >> 4 & 1,
                     .flows_in = how >> 5 & 1};
    PfEvent guest = (PfEvent)(next_byte(in) % (PF_EV_GUEST_STOPPED + 2));
    guint visits = 0;

    if (guest > PF_EV_GUEST_STOPPED) {
        guest = PF_N_EVENTS;
    }
    for (guint i = 0; i < n_ports; i++) {
        ports[i] = port_facts(in);
    }

    guint64 facts = pf_facts(role, &world, ports, n_ports);
    PfState after = pf_settle(state, facts, guest, visit, &visits);

    g_assert_true((visits == 0) == (after == state));
    /* Settled is settled. */
    visits = 0;
    g_assert_cmpint(pf_settle(after, facts, guest, visit, &visits), ==, after);
    return after;
}

/* What the state wants to write is decided by the row as it is; and never against what the other
 * side has said, unless an operator has. */
static void check_goals(const PfStateInfo *info, PfListKind kind, gboolean resumed)
{
    static const struct {
        PfGoal goal;
        PfWrite write;
    } goals[] = {{PF_GOAL_MARK, PF_WRITE_MARK},
                 {PF_GOAL_COLLAPSE, PF_WRITE_COLLAPSE},
                 {PF_GOAL_ROLL_BACK, PF_WRITE_ROLL_BACK},
                 {PF_GOAL_FOLLOW, PF_WRITE_FOLLOW},
                 {PF_GOAL_PUT_BACK, PF_WRITE_PUT_BACK}};

    for (guint i = 0; i < G_N_ELEMENTS(goals); i++) {
        if (!(info->goals & (guint)goals[i].goal)) {
            continue;
        }
        PfVerdict verdict = pf_plan_decide(goals[i].write, info->role, kind, resumed, FALSE);

        if (kind == PF_LIST_FOREIGN) {
            g_assert_cmpint(verdict, !=, PF_VERDICT_CHANGE);
        }
        if (goals[i].write == PF_WRITE_ROLL_BACK && info->role == PF_ROLE_SOURCE &&
            (kind == PF_LIST_DST || (kind == PF_LIST_BOTH && resumed))) {
            g_assert_cmpint(verdict, ==, PF_VERDICT_CONFLICT);
        }
        if (goals[i].write == PF_WRITE_COLLAPSE && kind == PF_LIST_SRC) {
            g_assert_cmpint(verdict, ==, PF_VERDICT_CONFLICT);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input in = {data, size};
    guint8 first = next_byte(&in);
    PfRole role = first & 1 ? PF_ROLE_SOURCE : PF_ROLE_DESTINATION;
    PfOrigin origin = role == PF_ROLE_SOURCE ? (first & 2 ? PF_ORIGIN_MARKER : PF_ORIGIN_INTERFACE)
                                             : (first & 2 ? PF_ORIGIN_MARKER : PF_ORIGIN_HOOK);
    PfState state = pf_handover_first(role, origin);

    while (in.size > 0) {
        const PfStateInfo *before = pf_state_info(state);
        guint8 step = next_byte(&in);
        PfState after = step & 1 ? pf_handover_next(state, (PfEvent)(step / 2 % PF_N_EVENTS))
                                 : settle(state, role, &in);
        const PfStateInfo *info = pf_state_info(after);

        g_assert_cmpint(after, >, PF_STATE_INVALID);
        g_assert_cmpint(after, <, PF_N_STATES);
        if (before->ended) {
            g_assert_cmpint(after, ==, state);
        } else if (!info->ended) {
            g_assert_cmpint(info->role, ==, role);
        }
        check_goals(info, (PfListKind)(step >> 1 & 3), step >> 3 & 1);
        state = after;
    }
    return 0;
}
