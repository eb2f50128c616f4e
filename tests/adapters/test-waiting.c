/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <string.h>

#include "waiting.h"

static PfWaiting where(PfState state)
{
    return (PfWaiting){.state = state, .nb_live = TRUE, .sb_live = TRUE, .ovs_live = TRUE};
}

static void assert_says(const PfWaiting *waiting, const char *wanted)
{
    g_autofree char *text = pf_waiting_describe(waiting);

    if (!strstr(text, wanted)) {
        g_test_message("'%s' is not in '%s'", wanted, text);
        g_test_fail();
    }
}

/* In every state, however it got there, there is something to say, in a form of its own. */
static void test_every_state(void)
{
    for (int state = PF_STATE_INVALID + 1; state < PF_N_STATES; state++) {
        for (guint bits = 0; bits < 64; bits++) {
            const PfWaiting waiting = {
                .state = (PfState)state,
                .held = bits & 1,
                .by_hand = bits >> 1 & 1,
                .gate_passed = bits >> 2 & 1,
                .nb_live = bits >> 3 & 1,
                .sb_live = bits >> 4 & 1,
                .ovs_live = bits >> 5 & 1,
            };
            g_autofree char *text = pf_waiting_describe(&waiting);

            if (pf_state_info((PfState)state)->ended) {
                g_assert_cmpstr(text, ==, "");
                continue;
            }
            g_assert_cmpuint(strlen(text), >, 10);
            g_assert_false(g_str_has_suffix(text, "."));
            g_assert_true(g_ascii_islower(text[0]) || g_str_has_prefix(text, "OVN"));
        }
    }
}

static void test_connections(void)
{
    PfWaiting waiting = where(PF_DST_PREPLUG);

    assert_says(&waiting, "to take the pre-plug");
    waiting.nb_live = FALSE;
    assert_says(&waiting, "OVN's northbound database, which is not connected");
    waiting.state = PF_DST_BINDING; /* doesn't need it */
    assert_says(&waiting, "the flows");
    waiting.sb_live = FALSE;
    assert_says(&waiting, "southbound database, which is not connected");
    waiting.sb_live = TRUE;
    waiting.ovs_live = FALSE;
    assert_says(&waiting, "this host's Open vSwitch database, which is not connected");
}

static void test_missing(void)
{
    static const char *const ports[] = {"a", "b", NULL};
    PfPortFacts facts[2] = {0};
    PfWaiting waiting = where(PF_DST_BINDING);

    waiting.ports = ports;
    waiting.facts = facts;
    waiting.n_ports = 2;
    assert_says(&waiting, "this host's network: a: northd has not seen the pre-plug; b: northd");
    facts[0].sb_marked = facts[1].sb_marked = TRUE;
    assert_says(&waiting, "a: no interface here has its iface-id; b: no interface");
    facts[0].ovs_claimed = TRUE;
    assert_says(&waiting, "a: ovn-controller has not bound it here; b: no interface");
    facts[0].sb_dst_added = TRUE;
    assert_says(&waiting, "a: ovn-controller has not installed its flows; b: no interface");
    facts[0].ovs_installed = TRUE;
    assert_says(&waiting, "network: b: no interface");
    facts[1] = facts[0];
    g_assert_null(pf_waiting_missing(&waiting));
    assert_says(&waiting, "the flows of the ports' switch");
}

/* Whose turn it is, and what ends it. */
static void test_cms(void)
{
    static const char *const ports[] = {"a", NULL};
    PfPortFacts facts[1] = {0};
    PfWaiting waiting = where(PF_CMS_LISTS);

    waiting.cms = TRUE;
    waiting.source = "here";
    waiting.destination = "there";
    waiting.ports = ports;
    waiting.facts = facts;
    waiting.n_ports = 1;
    assert_says(&waiting, "the CMS to bind the ports to this host as well");
    g_autofree char *none = pf_waiting_missing(&waiting);
    g_assert_cmpstr(none, ==, "a: there is no such port in OVN");
    facts[0].sb_marked = facts[0].nb_marked = TRUE;
    facts[0].nb_list = PF_LIST_SRC;
    g_autofree char *one = pf_waiting_missing(&waiting);
    g_assert_cmpstr(one, ==, "a: its requested-chassis doesn't name both hosts");
    facts[0].nb_list = PF_LIST_BOTH;
    g_assert_null(pf_waiting_missing(&waiting));
    waiting.state = PF_CMS_BINDING;
    assert_says(&waiting, "a: no interface here has its iface-id");

    waiting.state = PF_CMS_ACTIVATE;
    assert_says(&waiting, "the CMS to set requested-chassis of the ports to there alone");
    waiting.state = PF_CMS_LEFT;
    assert_says(&waiting, "take activation-strategy away");
    waiting.state = PF_CMS_BACK;
    assert_says(&waiting, "the CMS to set requested-chassis of the ports to here alone");
    waiting.sb_live = FALSE;
    assert_says(&waiting, "southbound database, which is not connected");
}

static void test_abandoned(void)
{
    const char *const ports[] = {"p1"};
    PfPortFacts facts = {.nb_list = PF_LIST_SRC, .sb_dst_added = TRUE, .sb_dst_requested = TRUE};
    PfWaiting waiting = where(PF_SRC_ROLLBACK);

    waiting.ports = ports;
    waiting.facts = &facts;
    waiting.n_ports = 1;
    assert_says(&waiting, "this host the ports' only chassis");
    facts.sb_dst_requested = FALSE;
    assert_says(&waiting,
                "the ports' only chassis: the destination's ovn-controller has to let go");
    waiting.state = PF_DST_ROLLBACK;
    assert_says(&waiting, "clear additional_chassis");
}

static void test_people(void)
{
    PfWaiting waiting = where(PF_DST_READY);

    assert_says(&waiting, "libvirt to start the guest's QEMU here");
    waiting.held = TRUE;
    assert_says(&waiting, "Release lets the migration go on");
    waiting.held = FALSE;
    waiting.gate_passed = TRUE;
    assert_says(&waiting, "the guest's memory to be copied");
    waiting.gate_passed = FALSE;
    waiting.by_hand = TRUE;
    assert_says(&waiting, "whoever began it to say where the guest runs: Activate or Rollback");
    waiting.held = TRUE;
    assert_says(&waiting, "an operator, who holds it: Activate, Rollback or Release");
    waiting.held = FALSE;
    waiting.state = PF_SRC_WATCH;
    assert_says(&waiting, "Activate or Rollback");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/waiting/every-state", test_every_state);
    g_test_add_func("/waiting/connections", test_connections);
    g_test_add_func("/waiting/missing", test_missing);
    g_test_add_func("/waiting/cms", test_cms);
    g_test_add_func("/waiting/people", test_people);
    g_test_add_func("/waiting/abandoned", test_abandoned);
    return g_test_run();
}
