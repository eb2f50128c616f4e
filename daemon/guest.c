/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "guest.h"

PfEvent pf_guest_event(PfRole role, PfVirtEventType type)
{
    gboolean here = role == PF_ROLE_DESTINATION;

    switch (type) {
    case PF_VIRT_EVENT_RESUMED_MIGRATED:
    case PF_VIRT_EVENT_RESUMED_POSTCOPY:
    case PF_VIRT_EVENT_RESUMED_POSTCOPY_FAILED:
        return here ? PF_EV_GUEST_HERE : PF_EV_GUEST_BACK;
    case PF_VIRT_EVENT_RESUMED_UNPAUSED:
        return here ? PF_EV_GUEST_HERE : PF_EV_GUEST_UNPAUSED;
    case PF_VIRT_EVENT_SUSPENDED_PAUSED: /* a paused guest has arrived: no RESUMED comes */
        return here ? PF_EV_GUEST_HERE : PF_N_EVENTS;
    case PF_VIRT_EVENT_SUSPENDED_MIGRATED:
    case PF_VIRT_EVENT_SUSPENDED_POSTCOPY:
    case PF_VIRT_EVENT_SUSPENDED_POSTCOPY_FAILED:
        return here ? PF_N_EVENTS : PF_EV_GUEST_PAUSED;
    case PF_VIRT_EVENT_STOPPED_MIGRATED:
        /* At the destination: it has arrived, and been sent on already. */
        return here ? PF_EV_GUEST_STOPPED : PF_EV_GUEST_LEFT;
    case PF_VIRT_EVENT_STOPPED_FAILED:
    case PF_VIRT_EVENT_STOPPED_DESTROYED:
        return PF_EV_GUEST_FAILED;
    case PF_VIRT_EVENT_STOPPED_CRASHED:
    case PF_VIRT_EVENT_STOPPED_SHUTDOWN:
    case PF_VIRT_EVENT_STOPPED_OTHER:
        return PF_EV_GUEST_STOPPED;
    case PF_VIRT_EVENT_STARTED_MIGRATED:
    case PF_VIRT_EVENT_STARTED_OTHER:
    case PF_VIRT_EVENT_SUSPENDED_OTHER:
    case PF_VIRT_EVENT_RESUMED_OTHER:
    case PF_VIRT_EVENT_MIGRATION_ITERATION:
    case PF_VIRT_EVENT_JOB_COMPLETED:
    case PF_VIRT_EVENT_OTHER:
    case PF_VIRT_N_EVENTS:
        break;
    }
    return PF_N_EVENTS;
}

PfEvent pf_guest_answer(PfRole role, PfState state, const PfVirtGuest *guest)
{
    gboolean here = role == PF_ROLE_DESTINATION;
    gboolean open = state == PF_SRC_OPEN || state == PF_CMS_PAUSE;
    gboolean was_stopped =
        open || state == PF_SRC_RELEASE || state == PF_SRC_ORPHAN || state == PF_SRC_FINISH;

    switch (guest->state) {
    case PF_VIRT_GUEST_ABSENT:
    case PF_VIRT_GUEST_SHUTOFF:
        return here ? PF_EV_GUEST_FAILED : PF_EV_GUEST_LEFT;
    case PF_VIRT_GUEST_RUNNING:
    case PF_VIRT_GUEST_PAUSED:
        if (here) {
            return PF_EV_GUEST_HERE;
        }
        if (guest->job == PF_VIRT_JOB_NONE && was_stopped) {
            return PF_EV_GUEST_BACK;
        }
        return guest->job == PF_VIRT_JOB_MIGRATION_OUT && guest->state == PF_VIRT_GUEST_RUNNING &&
                       open
                   ? PF_EV_GUEST_UNPAUSED
                   : PF_N_EVENTS;
    case PF_VIRT_GUEST_RUNNING_POSTCOPY:
        return here ? PF_EV_GUEST_HERE : PF_N_EVENTS;
    case PF_VIRT_GUEST_OUTGOING:
    case PF_VIRT_GUEST_LEFT_BEHIND:
        return here ? PF_EV_GUEST_HERE : PF_EV_GUEST_PAUSED;
    case PF_VIRT_GUEST_UNREACHABLE:
    case PF_VIRT_GUEST_STARTING:
    case PF_VIRT_GUEST_INCOMING:
    case PF_VIRT_GUEST_ORPHANED:
    case PF_VIRT_GUEST_IN_MIGRATION:
    case PF_VIRT_N_GUESTS:
        break;
    }
    return PF_N_EVENTS;
}

gboolean pf_guest_goes_on(const PfVirtGuest *guest)
{
    switch (guest->state) {
    case PF_VIRT_GUEST_UNREACHABLE:
    case PF_VIRT_GUEST_STARTING:
    case PF_VIRT_GUEST_INCOMING:
    case PF_VIRT_GUEST_OUTGOING:
    case PF_VIRT_GUEST_LEFT_BEHIND:
    case PF_VIRT_GUEST_IN_MIGRATION:
    case PF_VIRT_GUEST_RUNNING_POSTCOPY:
        return TRUE;
    case PF_VIRT_GUEST_RUNNING:
    case PF_VIRT_GUEST_PAUSED:
        return guest->job == PF_VIRT_JOB_MIGRATION_OUT;
    case PF_VIRT_GUEST_ABSENT:
    case PF_VIRT_GUEST_SHUTOFF:
    case PF_VIRT_GUEST_ORPHANED:
    case PF_VIRT_N_GUESTS:
        break;
    }
    return FALSE;
}
