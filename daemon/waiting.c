/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "waiting.h"

typedef enum {
    NEEDS_NB = 1 << 0,
    NEEDS_SB = 1 << 1,
    NEEDS_OVS = 1 << 2,
} Needs;

/* The databases that a state's goals are written to, or its end is seen in.  (The guest's own part,
 * which libvirt tells, needs none.) */
static const struct {
    guint needs;
    const char *text;
} states[PF_N_STATES] = {
    [PF_DST_PREPLUG] = {NEEDS_NB, "the northbound database to take the pre-plug"},
    [PF_DST_BINDING] = {NEEDS_SB | NEEDS_OVS, "the flows of the ports' switch to be installed"},
    [PF_DST_READY] = {0, "the guest's memory to be copied"},
    [PF_DST_OPEN] = {0, "the guest to go on here"},
    [PF_DST_RUNNING] = {NEEDS_SB, "the source to let go of the ports"},
    [PF_DST_ASK] = {NEEDS_NB | NEEDS_SB, "the source to let go of the ports, as it was asked to"},
    [PF_DST_COLLAPSE] = {NEEDS_NB | NEEDS_SB, "OVN to make this host the ports' only chassis"},
    [PF_DST_ACTIVE] = {NEEDS_NB, "the source to clear away what is left there"},
    [PF_DST_FINISH] = {NEEDS_NB, "the northbound database to end the handover"},
    [PF_DST_ROLLBACK] = {NEEDS_NB | NEEDS_SB, "OVN to make the source the ports' only chassis"},
    [PF_DST_DRAIN] = {NEEDS_OVS, "the guest's interfaces here to be removed"},
    [PF_DST_UNDO] = {NEEDS_NB, "the northbound database to put back what was there before"},

    [PF_SRC_WATCH] = {0, "the guest's memory to be copied"},
    [PF_SRC_OPEN] = {0, "the guest to go on at the destination"},
    [PF_SRC_CLOSE] = {NEEDS_SB, "the destination to be closed again, since the guest goes on here"},
    [PF_SRC_RELEASE] = {NEEDS_OVS, "the guest to end here, since it runs at the destination"},
    [PF_SRC_ORPHAN] = {NEEDS_OVS, "libvirt to say whether the guest runs here"},
    [PF_SRC_LEFT] = {NEEDS_NB, "the destination to say that the guest runs there"},
    [PF_SRC_COLLAPSE] = {NEEDS_NB | NEEDS_SB,
                         "OVN to make the destination the ports' only chassis"},
    [PF_SRC_CLEAR] = {NEEDS_OVS, "the guest's interfaces here to be removed"},
    [PF_SRC_FINISH] = {NEEDS_NB, "the northbound database to end the handover"},
    [PF_SRC_ROLLBACK] = {NEEDS_NB | NEEDS_SB, "OVN to make this host the ports' only chassis"},
    [PF_SRC_UNDO_WAIT] = {NEEDS_NB, "the destination to clear away what is left there"},
    [PF_SRC_UNDO] = {NEEDS_NB, "the northbound database to put back what was there before"},

    [PF_CMS_LISTS] = {NEEDS_SB, "the CMS to bind the ports to this host as well"},
    [PF_CMS_BINDING] = {NEEDS_SB | NEEDS_OVS, "the flows of the ports' switch to be installed"},
    [PF_CMS_READY] = {0, "the guest's memory to be copied"},
    [PF_CMS_OPEN] = {0, "the guest to go on here"},
    [PF_CMS_RUNNING] = {NEEDS_SB, "the ports to be open here"},
    [PF_CMS_ACTIVATE] = {NEEDS_SB, NULL},
    [PF_CMS_ROLLBACK] = {NEEDS_SB, NULL},
    [PF_CMS_WATCH] = {0, "the guest's memory to be copied"},
    [PF_CMS_PAUSE] = {0, "the guest to go on at the destination"},
    [PF_CMS_CLOSE] = {NEEDS_SB, "the destination to be closed again, since the guest goes on here"},
    [PF_CMS_LEFT] = {NEEDS_SB, NULL},
    [PF_CMS_SHUT] = {NEEDS_SB, "the destination to be closed again, since the guest stays here"},
    [PF_CMS_BACK] = {NEEDS_SB, NULL},

    [PF_ENDED_DONE] = {0, ""},
    [PF_ENDED_UNDONE] = {0, ""},
    [PF_ENDED_UNFINISHED] = {0, ""},
};

char *pf_waiting_missing(const PfWaiting *w)
{
    g_autoptr(GString) missing = g_string_new(NULL);

    for (guint i = 0; i < w->n_ports; i++) {
        const PfPortFacts *p = &w->facts[i];
        const char *what =
            !p->sb_marked
                ? w->cms ? "there is no such port in OVN" : "northd has not seen the pre-plug"
            : w->cms && p->nb_list != PF_LIST_BOTH && p->nb_list != PF_LIST_DST
                ? "its requested-chassis doesn't name both hosts"
            : w->state == PF_CMS_LISTS          ? NULL
            : !p->ovs_claimed                   ? "no interface here has its iface-id"
            : !p->sb_dst_added && !p->sb_on_dst ? "ovn-controller has not bound it here"
            : !p->ovs_installed                 ? "ovn-controller has not installed its flows"
                                                : NULL;
        if (what) {
            g_string_append_printf(missing, "%s%s: %s", missing->len ? "; " : "", w->ports[i],
                                   what);
        }
    }
    return missing->len ? g_string_free(g_steal_pointer(&missing), FALSE) : NULL;
}

static char *describe_connection(const PfWaiting *w)
{
    guint needs = states[w->state].needs;
    const char *which = needs & NEEDS_NB && !w->nb_live     ? "OVN's northbound database"
                        : needs & NEEDS_SB && !w->sb_live   ? "OVN's southbound database"
                        : needs & NEEDS_OVS && !w->ovs_live ? "this host's Open vSwitch database"
                                                            : NULL;

    return which ? g_strdup_printf("%s, which is not connected", which) : NULL;
}

/* Whose turn it is, and what would end the turn. */
static char *describe_turn(const PfWaiting *w)
{
    gboolean there = w->state == PF_CMS_ACTIVATE || w->state == PF_CMS_LEFT;

    return g_strdup_printf("the CMS to set requested-chassis of the ports to %s alone%s",
                           there ? w->destination : w->source,
                           there ? ", where the guest is now, and take activation-strategy away"
                                 : ", where the guest stays");
}

/* northd has taken the destination back, and its ovn-controller has not: it is dead, or was when
 * the interface went, and then never sees to it again. */
static gboolean is_abandoned(const PfWaiting *w)
{
    for (guint i = 0; i < w->n_ports; i++) {
        const PfPortFacts *p = &w->facts[i];
        if (p->nb_list == PF_LIST_SRC && p->sb_dst_added && !p->sb_dst_requested) {
            return w->state == PF_DST_ROLLBACK || w->state == PF_SRC_ROLLBACK;
        }
    }
    return FALSE;
}

char *pf_waiting_describe(const PfWaiting *w)
{
    g_return_val_if_fail(w->state > PF_STATE_INVALID && w->state < PF_N_STATES, g_strdup(""));

    gboolean at_gate = w->state == PF_DST_BINDING || w->state == PF_DST_READY ||
                       w->state == PF_DST_OPEN || w->state == PF_CMS_BINDING ||
                       w->state == PF_CMS_READY || w->state == PF_CMS_OPEN;
    g_autofree char *connection = describe_connection(w);

    if (connection) {
        return g_steal_pointer(&connection);
    }
    if (w->state == PF_DST_BINDING || w->state == PF_CMS_BINDING) {
        g_autofree char *missing = pf_waiting_missing(w);

        if (missing) {
            return g_strdup_printf("this host's network: %s", missing);
        }
    }
    if (w->held && at_gate) {
        return g_strdup(w->by_hand ? "an operator, who holds it: Activate, Rollback or Release"
                                   : "an operator, who holds it: Release lets the migration go on");
    }
    if (w->by_hand &&
        (w->state == PF_DST_READY || w->state == PF_DST_OPEN || w->state == PF_SRC_WATCH ||
         w->state == PF_SRC_OPEN || w->state == PF_SRC_CLOSE)) {
        return g_strdup("whoever began it to say where the guest runs: Activate or Rollback");
    }
    if (w->by_hand && (w->state == PF_SRC_RELEASE || w->state == PF_SRC_ORPHAN)) {
        return g_strdup("the guest's interfaces here to be removed");
    }
    if (is_abandoned(w)) {
        return g_strdup("OVN to make the source the ports' only chassis: the destination's "
                        "ovn-controller has to let go; if it does not, clear additional_chassis "
                        "and additional_encap of the Port_Binding");
    }
    if ((w->state == PF_DST_READY || w->state == PF_CMS_READY) && !w->gate_passed) {
        return g_strdup("libvirt to start the guest's QEMU here");
    }
    return states[w->state].text ? g_strdup(states[w->state].text) : describe_turn(w);
}
