/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* libvirt's numbers in the words of virt.h, and those words as text.  Pure. */

#include "virt.h"

#include <libvirt/libvirt.h>

static const char *const state_names[] = {
    [PF_VIRT_DISCONNECTED] = "disconnected",
    [PF_VIRT_CONNECTING] = "connecting",
    [PF_VIRT_CONNECTED] = "connected",
};
G_STATIC_ASSERT(G_N_ELEMENTS(state_names) == PF_VIRT_N_STATES);

static const char *const event_names[] = {
    [PF_VIRT_EVENT_STARTED_MIGRATED] = "started-migrated",
    [PF_VIRT_EVENT_STARTED_OTHER] = "started-other",
    [PF_VIRT_EVENT_SUSPENDED_PAUSED] = "suspended-paused",
    [PF_VIRT_EVENT_SUSPENDED_MIGRATED] = "suspended-migrated",
    [PF_VIRT_EVENT_SUSPENDED_POSTCOPY] = "suspended-postcopy",
    [PF_VIRT_EVENT_SUSPENDED_POSTCOPY_FAILED] = "suspended-postcopy-failed",
    [PF_VIRT_EVENT_SUSPENDED_OTHER] = "suspended-other",
    [PF_VIRT_EVENT_RESUMED_UNPAUSED] = "resumed-unpaused",
    [PF_VIRT_EVENT_RESUMED_MIGRATED] = "resumed-migrated",
    [PF_VIRT_EVENT_RESUMED_POSTCOPY] = "resumed-postcopy",
    [PF_VIRT_EVENT_RESUMED_POSTCOPY_FAILED] = "resumed-postcopy-failed",
    [PF_VIRT_EVENT_RESUMED_OTHER] = "resumed-other",
    [PF_VIRT_EVENT_STOPPED_MIGRATED] = "stopped-migrated",
    [PF_VIRT_EVENT_STOPPED_FAILED] = "stopped-failed",
    [PF_VIRT_EVENT_STOPPED_DESTROYED] = "stopped-destroyed",
    [PF_VIRT_EVENT_STOPPED_CRASHED] = "stopped-crashed",
    [PF_VIRT_EVENT_STOPPED_SHUTDOWN] = "stopped-shutdown",
    [PF_VIRT_EVENT_STOPPED_OTHER] = "stopped-other",
    [PF_VIRT_EVENT_MIGRATION_ITERATION] = "migration-iteration",
    [PF_VIRT_EVENT_JOB_COMPLETED] = "job-completed",
    [PF_VIRT_EVENT_OTHER] = "other",
};
G_STATIC_ASSERT(G_N_ELEMENTS(event_names) == PF_VIRT_N_EVENTS);

static const char *const job_names[] = {
    [PF_VIRT_JOB_UNKNOWN] = "unknown",
    [PF_VIRT_JOB_NONE] = "none",
    [PF_VIRT_JOB_MIGRATION_OUT] = "migration-out",
    [PF_VIRT_JOB_MIGRATION_IN] = "migration-in",
    [PF_VIRT_JOB_OTHER] = "other",
};
G_STATIC_ASSERT(G_N_ELEMENTS(job_names) == PF_VIRT_N_JOBS);

static const char *const guest_names[] = {
    [PF_VIRT_GUEST_UNREACHABLE] = "unreachable",
    [PF_VIRT_GUEST_ABSENT] = "absent",
    [PF_VIRT_GUEST_SHUTOFF] = "shutoff",
    [PF_VIRT_GUEST_STARTING] = "starting",
    [PF_VIRT_GUEST_INCOMING] = "incoming",
    [PF_VIRT_GUEST_OUTGOING] = "outgoing",
    [PF_VIRT_GUEST_LEFT_BEHIND] = "left-behind",
    [PF_VIRT_GUEST_ORPHANED] = "orphaned",
    [PF_VIRT_GUEST_IN_MIGRATION] = "in-migration",
    [PF_VIRT_GUEST_RUNNING] = "running",
    [PF_VIRT_GUEST_RUNNING_POSTCOPY] = "running-postcopy",
    [PF_VIRT_GUEST_PAUSED] = "paused",
};
G_STATIC_ASSERT(G_N_ELEMENTS(guest_names) == PF_VIRT_N_GUESTS);

const char *pf_virt_state_to_string(PfVirtState state)
{
    return (guint)state < PF_VIRT_N_STATES ? state_names[state] : "invalid";
}

const char *pf_virt_event_to_string(PfVirtEventType type)
{
    return (guint)type < PF_VIRT_N_EVENTS ? event_names[type] : "invalid";
}

const char *pf_virt_job_to_string(PfVirtJob job)
{
    return (guint)job < PF_VIRT_N_JOBS ? job_names[job] : "invalid";
}

const char *pf_virt_guest_to_string(PfVirtGuestState state)
{
    return (guint)state < PF_VIRT_N_GUESTS ? guest_names[state] : "invalid";
}

PfVirtEventType pf_virt_event_from_lifecycle(int event, int detail)
{
    switch (event) {
    case VIR_DOMAIN_EVENT_STARTED:
        return detail == VIR_DOMAIN_EVENT_STARTED_MIGRATED ? PF_VIRT_EVENT_STARTED_MIGRATED
                                                           : PF_VIRT_EVENT_STARTED_OTHER;

    case VIR_DOMAIN_EVENT_SUSPENDED:
        switch (detail) {
        case VIR_DOMAIN_EVENT_SUSPENDED_PAUSED:
            return PF_VIRT_EVENT_SUSPENDED_PAUSED;
        case VIR_DOMAIN_EVENT_SUSPENDED_MIGRATED:
            return PF_VIRT_EVENT_SUSPENDED_MIGRATED;
        case VIR_DOMAIN_EVENT_SUSPENDED_POSTCOPY:
            return PF_VIRT_EVENT_SUSPENDED_POSTCOPY;
        case VIR_DOMAIN_EVENT_SUSPENDED_POSTCOPY_FAILED:
            return PF_VIRT_EVENT_SUSPENDED_POSTCOPY_FAILED;
        default:
            return PF_VIRT_EVENT_SUSPENDED_OTHER;
        }

    case VIR_DOMAIN_EVENT_RESUMED:
        switch (detail) {
        case VIR_DOMAIN_EVENT_RESUMED_UNPAUSED:
            return PF_VIRT_EVENT_RESUMED_UNPAUSED;
        case VIR_DOMAIN_EVENT_RESUMED_MIGRATED:
            return PF_VIRT_EVENT_RESUMED_MIGRATED;
        case VIR_DOMAIN_EVENT_RESUMED_POSTCOPY:
            return PF_VIRT_EVENT_RESUMED_POSTCOPY;
        case VIR_DOMAIN_EVENT_RESUMED_POSTCOPY_FAILED:
            return PF_VIRT_EVENT_RESUMED_POSTCOPY_FAILED;
        default:
            return PF_VIRT_EVENT_RESUMED_OTHER;
        }

    case VIR_DOMAIN_EVENT_STOPPED:
        switch (detail) {
        case VIR_DOMAIN_EVENT_STOPPED_MIGRATED:
            return PF_VIRT_EVENT_STOPPED_MIGRATED;
        case VIR_DOMAIN_EVENT_STOPPED_FAILED:
            return PF_VIRT_EVENT_STOPPED_FAILED;
        case VIR_DOMAIN_EVENT_STOPPED_DESTROYED:
            return PF_VIRT_EVENT_STOPPED_DESTROYED;
        case VIR_DOMAIN_EVENT_STOPPED_CRASHED:
            return PF_VIRT_EVENT_STOPPED_CRASHED;
        case VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN:
            return PF_VIRT_EVENT_STOPPED_SHUTDOWN;
        default:
            return PF_VIRT_EVENT_STOPPED_OTHER;
        }

    default:
        return PF_VIRT_EVENT_OTHER;
    }
}

static PfVirtGuestState paused_from_reason(int reason, PfVirtJob job)
{
    switch (reason) {
    case VIR_DOMAIN_PAUSED_STARTING_UP:
        return PF_VIRT_GUEST_STARTING;

    case VIR_DOMAIN_PAUSED_POSTCOPY:
    case VIR_DOMAIN_PAUSED_POSTCOPY_FAILED:
        /* Only a source gets these reasons; libvirt 9.0, qemuProcessHandleMigrationStatus(). */
        return PF_VIRT_GUEST_LEFT_BEHIND;

    case VIR_DOMAIN_PAUSED_MIGRATION:
        switch (job) {
        case PF_VIRT_JOB_MIGRATION_IN:
            return PF_VIRT_GUEST_INCOMING;
        case PF_VIRT_JOB_MIGRATION_OUT:
            return PF_VIRT_GUEST_OUTGOING;
        case PF_VIRT_JOB_NONE:
            /* The client that drove the migration died after the copy, or libvirtd was restarted
             * just then: libvirt leaves the guest as it is and tells nobody.  A destination in
             * that situation is killed instead. */
            return PF_VIRT_GUEST_ORPHANED;
        case PF_VIRT_JOB_UNKNOWN:
        case PF_VIRT_JOB_OTHER:
        case PF_VIRT_N_JOBS:
        default:
            return PF_VIRT_GUEST_IN_MIGRATION;
        }

    default:
        return PF_VIRT_GUEST_PAUSED;
    }
}

PfVirtGuestState pf_virt_guest_from_state(int state, int reason, PfVirtJob job)
{
    switch (state) {
    case VIR_DOMAIN_RUNNING:
        if (reason == VIR_DOMAIN_RUNNING_POSTCOPY || reason == VIR_DOMAIN_RUNNING_POSTCOPY_FAILED)
            return PF_VIRT_GUEST_RUNNING_POSTCOPY;
        return PF_VIRT_GUEST_RUNNING;

    case VIR_DOMAIN_BLOCKED:
    case VIR_DOMAIN_SHUTDOWN: /* QEMU is still there, and the guest in it */
        return PF_VIRT_GUEST_RUNNING;

    case VIR_DOMAIN_PAUSED:
        return paused_from_reason(reason, job);

    case VIR_DOMAIN_SHUTOFF:
        return PF_VIRT_GUEST_SHUTOFF;

    case VIR_DOMAIN_CRASHED: /* and kept by <on_crash>preserve: its QEMU is here */
    case VIR_DOMAIN_PMSUSPENDED:
        return PF_VIRT_GUEST_PAUSED;

    default: /* no state, or one that a newer libvirt invents */
        return PF_VIRT_GUEST_UNREACHABLE;
    }
}

PfVirtJob pf_virt_job_from_operation(int operation)
{
    switch (operation) {
    case VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT:
        return PF_VIRT_JOB_MIGRATION_OUT;
    case VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN:
        return PF_VIRT_JOB_MIGRATION_IN;
    case VIR_DOMAIN_JOB_OPERATION_UNKNOWN:
        return PF_VIRT_JOB_UNKNOWN;
    default:
        return PF_VIRT_JOB_OTHER;
    }
}
