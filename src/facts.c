/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "facts.h"

#define FACT(event) (G_GUINT64_CONSTANT(1) << (event))

static guint64 northbound_facts(const PfPortFacts *ports, guint n, gboolean released)
{
    guint marked = 0, both = 0, turned = 0, resumed = 0, src = 0, dst = 0, foreign = 0;

    for (guint i = 0; i < n; i++) {
        if (!ports[i].nb_marked) {
            continue;
        }
        marked++;
        gboolean is_both = ports[i].nb_list == PF_LIST_BOTH || ports[i].nb_list == PF_LIST_TURNED;
        both += is_both;
        turned += ports[i].nb_list == PF_LIST_TURNED;
        resumed += is_both && ports[i].nb_resumed;
        src += ports[i].nb_list == PF_LIST_SRC;
        dst += ports[i].nb_list == PF_LIST_DST;
        foreign += ports[i].nb_list == PF_LIST_FOREIGN;
    }
    /* A port that was deleted under way has no say about the others. */
    if (marked == 0) {
        return FACT(released ? PF_EV_MARKER_LOST : PF_EV_MARKER_GONE);
    }
    if (foreign > 0) {
        return FACT(PF_EV_LIST_FOREIGN);
    }
    /* A mixture is a CMS at work on one port after the other: nothing is certain until it ends. */
    return (both == marked ? FACT(PF_EV_LIST_BOTH) : 0) |
           (turned == marked ? FACT(PF_EV_LIST_TURNED) : 0) |
           (resumed == marked ? FACT(PF_EV_LIST_RESUMED) : 0) |
           (src == marked ? FACT(PF_EV_LIST_SRC) : 0) | (dst == marked ? FACT(PF_EV_LIST_DST) : 0);
}

static guint64 southbound_facts(const PfPortFacts *ports, guint n)
{
    guint marked = 0, open = 0, shut = 0, free_of_src = 0, only_dst = 0, only_src = 0;

    for (guint i = 0; i < n; i++) {
        const PfPortFacts *p = &ports[i];
        if (!p->sb_marked) {
            continue;
        }
        marked++;
        open += p->sb_dst_opened;
        shut += !p->sb_dst_opened && !p->sb_on_dst;
        free_of_src += !p->sb_on_src && !p->sb_src_added;
        only_dst += p->sb_on_dst && !p->sb_any_added;
        only_src += !p->sb_on_dst && !p->sb_any_added && !p->sb_dst_opened;
    }
    guint64 facts = 0;
    /* No row: northd has not seen the marker yet, or has seen its removal.  Either way nothing of
     * the handover is left there to be rolled back, and nothing else is known. */
    facts |= only_src == marked ? FACT(PF_EV_ONLY_SRC) : 0;
    if (marked == 0) {
        return facts;
    }
    facts |= open == marked ? FACT(PF_EV_PORTS_OPEN) : 0;
    facts |= shut == marked ? FACT(PF_EV_PORTS_SHUT) : 0;
    facts |= free_of_src == marked ? FACT(PF_EV_SOURCE_FREE) : 0;
    facts |= only_dst == marked ? FACT(PF_EV_ONLY_DST) : 0;
    return facts;
}

guint64 pf_facts(PfRole role, const PfWorld *world, const PfPortFacts *ports, guint n_ports)
{
    guint64 facts = 0;
    gboolean ready = world->sb_live && world->ovs_live && world->flows_in && n_ports > 0;
    gboolean claimed = FALSE, released = FALSE;

    for (guint i = 0; i < n_ports; i++) {
        const PfPortFacts *p = &ports[i];
        ready = ready && p->sb_marked && (p->sb_dst_added || p->sb_on_dst) && p->ovs_installed;
        claimed = claimed || p->ovs_claimed;
        released = released || p->ovs_released;
    }
    if (world->nb_live) {
        facts |= northbound_facts(ports, n_ports, released);
    }
    if (world->sb_live) {
        facts |= southbound_facts(ports, n_ports);
    }
    /* The southbound database may not have caught up: that a chassis is the only one counts when
     * it is meant to be. */
    if (!(facts & FACT(PF_EV_LIST_SRC))) {
        facts &= ~FACT(PF_EV_ONLY_SRC);
    }
    /* A destination that the list has first is open whatever the flags say. */
    if (facts & FACT(PF_EV_LIST_TURNED)) {
        facts &= ~FACT(PF_EV_PORTS_SHUT);
    }
    /* Nor is the source back as long as its own interface has not been given the port again. */
    if (role == PF_ROLE_SOURCE && (!world->ovs_live || released)) {
        facts &= ~FACT(PF_EV_ONLY_SRC);
    }
    if (!(facts & FACT(PF_EV_LIST_DST))) {
        facts &= ~FACT(PF_EV_ONLY_DST);
    }
    if (world->ovs_live && !claimed) {
        facts |= FACT(PF_EV_IFACE_GONE);
    }
    if (role == PF_ROLE_DESTINATION && ready) {
        facts |= FACT(PF_EV_PORTS_READY);
    }
    return facts;
}

gboolean pf_runs_twice(PfState state, PfEvent guest, const PfPortFacts *ports, guint n_ports)
{
    if (pf_handover_goals(state, guest) & PF_GOAL_TWICE) {
        return TRUE;
    }
    if (guest == PF_EV_GUEST_LEFT || guest == PF_EV_GUEST_FAILED || guest == PF_EV_GUEST_STOPPED) {
        return FALSE; /* only there, whatever was decided */
    }
    for (guint i = 0; i < n_ports; i++) {
        if ((state == PF_DST_ACTIVE && ports[i].nb_src_too) ||
            (state == PF_SRC_UNDO_WAIT && ports[i].nb_dst_too)) {
            return TRUE;
        }
    }
    return FALSE;
}

PfState pf_settle(PfState state, guint64 facts, PfEvent guest,
                  void (*visit)(PfState from, PfState to, PfEvent why, gpointer data),
                  gpointer data)
{
    if (guest < PF_N_EVENTS) {
        facts |= FACT(guest);
    }
    for (gboolean moved = TRUE; moved;) {
        moved = FALSE;
        for (guint event = 0; event < PF_N_EVENTS; event++) {
            if (!(facts & FACT(event))) {
                continue;
            }
            PfState next = pf_handover_next(state, (PfEvent)event);
            if (next != state) {
                if (visit) {
                    visit(state, next, (PfEvent)event, data);
                }
                state = next;
                moved = TRUE;
            }
        }
    }
    return state;
}
