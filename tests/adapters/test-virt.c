/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How libvirt's numbers are understood: every event with every detail, every state with every
 * reason and job. */

#include <libvirt/libvirt.h>

#include "virt.h"

/* Beyond what libvirt knows today, on both sides. */
#define LOWEST (-1)
#define HIGHEST 40

static PfVirtEventType expected_event(int event, int detail)
{
    static const struct {
        int event, detail;
        PfVirtEventType type;
    } known[] = {
        {VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_MIGRATED,
         PF_VIRT_EVENT_STARTED_MIGRATED},
        {VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_PAUSED,
         PF_VIRT_EVENT_SUSPENDED_PAUSED},
        {VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_MIGRATED,
         PF_VIRT_EVENT_SUSPENDED_MIGRATED},
        {VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_POSTCOPY,
         PF_VIRT_EVENT_SUSPENDED_POSTCOPY},
        {VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_POSTCOPY_FAILED,
         PF_VIRT_EVENT_SUSPENDED_POSTCOPY_FAILED},
        {VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_RESUMED_UNPAUSED,
         PF_VIRT_EVENT_RESUMED_UNPAUSED},
        {VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_RESUMED_MIGRATED,
         PF_VIRT_EVENT_RESUMED_MIGRATED},
        {VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_RESUMED_POSTCOPY,
         PF_VIRT_EVENT_RESUMED_POSTCOPY},
        {VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_RESUMED_POSTCOPY_FAILED,
         PF_VIRT_EVENT_RESUMED_POSTCOPY_FAILED},
        {VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_MIGRATED,
         PF_VIRT_EVENT_STOPPED_MIGRATED},
        {VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_FAILED, PF_VIRT_EVENT_STOPPED_FAILED},
        {VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_DESTROYED,
         PF_VIRT_EVENT_STOPPED_DESTROYED},
        {VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_CRASHED, PF_VIRT_EVENT_STOPPED_CRASHED},
        {VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN,
         PF_VIRT_EVENT_STOPPED_SHUTDOWN},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(known); i++)
        if (known[i].event == event && known[i].detail == detail)
            return known[i].type;

    if (event == VIR_DOMAIN_EVENT_STARTED)
        return PF_VIRT_EVENT_STARTED_OTHER;
    if (event == VIR_DOMAIN_EVENT_SUSPENDED)
        return PF_VIRT_EVENT_SUSPENDED_OTHER;
    if (event == VIR_DOMAIN_EVENT_RESUMED)
        return PF_VIRT_EVENT_RESUMED_OTHER;
    if (event == VIR_DOMAIN_EVENT_STOPPED)
        return PF_VIRT_EVENT_STOPPED_OTHER;
    return PF_VIRT_EVENT_OTHER;
}

static void test_events(void)
{
    gboolean seen[PF_VIRT_N_EVENTS] = {FALSE};

    for (int event = LOWEST; event < HIGHEST; event++) {
        for (int detail = LOWEST; detail < HIGHEST; detail++) {
            PfVirtEventType type = pf_virt_event_from_lifecycle(event, detail);

            g_assert_cmpstr(pf_virt_event_to_string(type), ==,
                            pf_virt_event_to_string(expected_event(event, detail)));
            seen[type] = TRUE;
        }
    }

    /* The two that are no lifecycle events come from elsewhere; all others must be reachable. */
    for (int type = 0; type < PF_VIRT_N_EVENTS; type++)
        if (type != PF_VIRT_EVENT_MIGRATION_ITERATION && type != PF_VIRT_EVENT_JOB_COMPLETED)
            g_assert_true(seen[type]);
}

static PfVirtGuestState expected_guest(int state, int reason, PfVirtJob job)
{
    if (state == VIR_DOMAIN_SHUTOFF)
        return PF_VIRT_GUEST_SHUTOFF;
    if (state == VIR_DOMAIN_RUNNING &&
        (reason == VIR_DOMAIN_RUNNING_POSTCOPY || reason == VIR_DOMAIN_RUNNING_POSTCOPY_FAILED))
        return PF_VIRT_GUEST_RUNNING_POSTCOPY;
    if (state == VIR_DOMAIN_RUNNING || state == VIR_DOMAIN_BLOCKED || state == VIR_DOMAIN_SHUTDOWN)
        return PF_VIRT_GUEST_RUNNING;
    if (state == VIR_DOMAIN_CRASHED || state == VIR_DOMAIN_PMSUSPENDED)
        return PF_VIRT_GUEST_PAUSED;
    if (state != VIR_DOMAIN_PAUSED)
        return PF_VIRT_GUEST_UNREACHABLE;

    if (reason == VIR_DOMAIN_PAUSED_STARTING_UP)
        return PF_VIRT_GUEST_STARTING;
    if (reason == VIR_DOMAIN_PAUSED_POSTCOPY || reason == VIR_DOMAIN_PAUSED_POSTCOPY_FAILED)
        return PF_VIRT_GUEST_LEFT_BEHIND;
    if (reason != VIR_DOMAIN_PAUSED_MIGRATION)
        return PF_VIRT_GUEST_PAUSED;

    if (job == PF_VIRT_JOB_MIGRATION_IN)
        return PF_VIRT_GUEST_INCOMING;
    if (job == PF_VIRT_JOB_MIGRATION_OUT)
        return PF_VIRT_GUEST_OUTGOING;
    if (job == PF_VIRT_JOB_NONE)
        return PF_VIRT_GUEST_ORPHANED;
    return PF_VIRT_GUEST_IN_MIGRATION;
}

static void test_guests(void)
{
    gboolean seen[PF_VIRT_N_GUESTS] = {FALSE};

    for (int state = LOWEST; state < HIGHEST; state++) {
        for (int reason = LOWEST; reason < HIGHEST; reason++) {
            for (int job = 0; job < PF_VIRT_N_JOBS; job++) {
                PfVirtGuestState guest = pf_virt_guest_from_state(state, reason, (PfVirtJob)job);

                g_assert_cmpstr(
                    pf_virt_guest_to_string(guest), ==,
                    pf_virt_guest_to_string(expected_guest(state, reason, (PfVirtJob)job)));
                seen[guest] = TRUE;
            }
        }
    }

    /* "Absent" is no state of a domain. */
    for (int guest = 0; guest < PF_VIRT_N_GUESTS; guest++)
        if (guest != PF_VIRT_GUEST_ABSENT)
            g_assert_true(seen[guest]);
}

/* Nothing that claims that a guest is here may come from a number that nobody knows. */
static void test_unknown(void)
{
    g_assert_cmpint(pf_virt_guest_from_state(99, 0, PF_VIRT_JOB_UNKNOWN), ==,
                    PF_VIRT_GUEST_UNREACHABLE);
    g_assert_cmpint(pf_virt_event_from_lifecycle(99, 0), ==, PF_VIRT_EVENT_OTHER);
}

static void test_names(void)
{
    for (int i = 0; i < PF_VIRT_N_EVENTS; i++)
        for (int j = 0; j < i; j++)
            g_assert_cmpstr(pf_virt_event_to_string((PfVirtEventType)i), !=,
                            pf_virt_event_to_string((PfVirtEventType)j));
    g_assert_cmpstr(pf_virt_event_to_string(PF_VIRT_N_EVENTS), ==, "invalid");
    g_assert_cmpstr(pf_virt_guest_to_string(PF_VIRT_N_GUESTS), ==, "invalid");
    g_assert_cmpstr(pf_virt_job_to_string(PF_VIRT_N_JOBS), ==, "invalid");
    g_assert_cmpstr(pf_virt_state_to_string(PF_VIRT_CONNECTED), ==, "connected");
}

int main(int argc, char *argv[])
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/virt/events", test_events);
    g_test_add_func("/virt/guests", test_guests);
    g_test_add_func("/virt/unknown", test_unknown);
    g_test_add_func("/virt/names", test_names);
    return g_test_run();
}
