/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

/*
 * libvirt, by its C API.  Events arrive in the main loop, as soon as they are read from libvirt's
 * socket.  Everything that may block runs in worker threads: one that connects and lists, and up to
 * PF_VIRT_MAX_ASKERS that answer questions, so that one domain that libvirt holds locked (it does
 * so for as long as a hook runs) does not keep the daemon from learning about another.  The threads
 * share nothing with the main loop: they get a job and post its result.
 *
 * The connections are read-only, which is all this needs: one for events, and one for each
 * question. When the first is lost, it is made again after 0.2 s at first and 5 s at most.
 *
 * All functions and callbacks: main thread only.
 */

#define PF_VIRT_MAX_ASKERS 4

typedef struct PfVirt PfVirt;

typedef enum {
    PF_VIRT_DISCONNECTED, /* libvirt isn't there; it is tried again soon */
    PF_VIRT_CONNECTING,   /* libvirt has not answered for a second; it is waited for */
    PF_VIRT_CONNECTED,    /* events arrive */
    PF_VIRT_N_STATES,
} PfVirtState;

/* What happened.  What it means depends on this host's role: libvirt emits "resumed-migrated" at
 * the destination when the guest has arrived, and at the source when the migration has failed. */
typedef enum {
    PF_VIRT_EVENT_STARTED_MIGRATED,
    PF_VIRT_EVENT_STARTED_OTHER,      /* booted, restored, ... */
    PF_VIRT_EVENT_SUSPENDED_PAUSED,   /* by a user; at the destination also: a guest that was paused
                                       * before has arrived */
    PF_VIRT_EVENT_SUSPENDED_MIGRATED, /* any stop while a migration from here is under way */
    PF_VIRT_EVENT_SUSPENDED_POSTCOPY,
    PF_VIRT_EVENT_SUSPENDED_POSTCOPY_FAILED,
    PF_VIRT_EVENT_SUSPENDED_OTHER,  /* I/O error, watchdog, ... */
    PF_VIRT_EVENT_RESUMED_UNPAUSED, /* by a user */
    PF_VIRT_EVENT_RESUMED_MIGRATED, /* arrived (a second time at the end of post-copy); or failed */
    PF_VIRT_EVENT_RESUMED_POSTCOPY, /* arrived; its memory follows */
    PF_VIRT_EVENT_RESUMED_POSTCOPY_FAILED, /* runs here, but its memory doesn't come any more */
    PF_VIRT_EVENT_RESUMED_OTHER,
    PF_VIRT_EVENT_STOPPED_MIGRATED, /* the source's end */
    PF_VIRT_EVENT_STOPPED_FAILED,   /* QEMU ended by itself, or an incoming migration failed */
    PF_VIRT_EVENT_STOPPED_DESTROYED,
    PF_VIRT_EVENT_STOPPED_CRASHED,
    PF_VIRT_EVENT_STOPPED_SHUTDOWN,
    PF_VIRT_EVENT_STOPPED_OTHER,       /* saved, from a snapshot */
    PF_VIRT_EVENT_MIGRATION_ITERATION, /* source; also while a domain is saved */
    PF_VIRT_EVENT_JOB_COMPLETED,       /* source; 'job' tells which */
    PF_VIRT_EVENT_OTHER, /* defined, undefined, crashed, and what a newer libvirt invents */
    PF_VIRT_N_EVENTS,
} PfVirtEventType;

/* A job that libvirt has under way on a domain. */
typedef enum {
    PF_VIRT_JOB_UNKNOWN, /* not asked for, or no answer */
    PF_VIRT_JOB_NONE,
    PF_VIRT_JOB_MIGRATION_OUT, /* this host is the source */
    PF_VIRT_JOB_MIGRATION_IN,  /* this host is the destination */
    PF_VIRT_JOB_OTHER,         /* save, dump, snapshot, backup */
    PF_VIRT_N_JOBS,
} PfVirtJob;

/* Valid during the callback only. */
typedef struct {
    PfVirtEventType type;
    const char *uuid;    /* lower case, with hyphens */
    const char *name;    /* on this host */
    int event, detail;   /* libvirt's own numbers of a lifecycle event, for the log; else -1 */
    int iteration;       /* MIGRATION_ITERATION: from 1 */
    PfVirtJob job;       /* JOB_COMPLETED */
    gint64 downtime_us;  /* JOB_COMPLETED of a migration: how long the guest stood still, as libvirt
                          * says (it counts whole milliseconds); -1 if it doesn't */
    gint64 monotonic_us; /* when it arrived here: g_get_monotonic_time() */
    gint64 realtime_us;  /* the same moment: g_get_real_time() */
} PfVirtEvent;

/* Where a domain is, as far as this host's libvirt knows. */
typedef enum {
    PF_VIRT_GUEST_UNREACHABLE,  /* libvirt does not answer, or not in time: nothing is known */
    PF_VIRT_GUEST_ABSENT,       /* libvirt does not know the domain */
    PF_VIRT_GUEST_SHUTOFF,      /* it knows it, but there is no QEMU */
    PF_VIRT_GUEST_STARTING,     /* QEMU is being started, for a boot or an incoming migration */
    PF_VIRT_GUEST_INCOMING,     /* QEMU waits for the guest to arrive: the destination */
    PF_VIRT_GUEST_OUTGOING,     /* stopped by a migration that is under way: the source */
    PF_VIRT_GUEST_LEFT_BEHIND,  /* source after the switch to post-copy: the guest runs elsewhere */
    PF_VIRT_GUEST_ORPHANED,     /* stopped by a migration that nobody drives any longer */
    PF_VIRT_GUEST_IN_MIGRATION, /* stopped by a migration; libvirt did not say on which side */
    PF_VIRT_GUEST_RUNNING,
    PF_VIRT_GUEST_RUNNING_POSTCOPY, /* destination after the switch: memory is still missing */
    PF_VIRT_GUEST_PAUSED, /* here, and nowhere else, but stopped for a reason of its own */
    PF_VIRT_N_GUESTS,
} PfVirtGuestState;

typedef struct {
    char *uuid;
    char *name; /* NULL unless the domain was found */
    PfVirtGuestState state;
    PfVirtJob job;
    int reason;     /* libvirt's own number, for the log */
    gint64 read_us; /* monotonic, just before the state was read: an event with a later time is
                     * newer than this answer */
    char *error;    /* UNREACHABLE: why; else NULL */
} PfVirtGuest;

typedef struct {
    /* The connection changed.  'why' is one line, for the log; not NULL. */
    void (*state_changed)(PfVirtState state, const char *why, gpointer userdata);

    /* May come before the snapshot, and even a moment before CONNECTED. */
    void (*event)(const PfVirtEvent *event, gpointer userdata);

    /* After each connection: all domains (PfVirtGuest, active or not), read after events had begun
     * to arrive.  Compare 'read_us' with what events have told meanwhile.  May come much later
     * than CONNECTED while a hook of some domain is running. */
    void (*snapshot)(const GPtrArray *guests, gpointer userdata);
} PfVirtCallbacks;

/* The answer to a question; 'guest' is valid during the callback only. */
typedef void (*PfVirtAnswer)(const PfVirtGuest *guest, gpointer userdata);

typedef enum {
    PF_VIRT_ASK_STATE = 0,
    /* Also find out the job of a domain that is running or paused by a user.  libvirt takes the
     * domain's query job for that: don't, while a guest may be just about to switch over. */
    PF_VIRT_ASK_JOB = 1 << 0,
} PfVirtAskFlags;

/*
 * Registers libvirt-glib's event loop with the default main context (once a process, for good).
 * 'callbacks' is not copied.  Free with pf_virt_free().
 */
PfVirt *pf_virt_new(const char *uri, const PfVirtCallbacks *callbacks, gpointer userdata);

/* Connects, and stays connected. */
void pf_virt_start(PfVirt *virt);

/* No callback is called any more, open questions are forgotten.  Doesn't wait for a thread that
 * libvirt holds up. */
void pf_virt_free(PfVirt *virt);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfVirt, pf_virt_free)

PfVirtState pf_virt_get_state(const PfVirt *virt);

/*
 * Asks where the domain 'uuid' is.  'answer' is called exactly once, never from within this
 * function, after 'timeout_us' at the latest, even if libvirt never answers.  The state it reports
 * was read after this call.  Returns an id for pf_virt_ask_cancel(); never 0.
 *
 * Must not be asked about a domain whose hook waits for the answer: libvirt keeps that domain
 * locked meanwhile, so the answer would be UNREACHABLE, and one thread be lost until the hook ends.
 *
 * libvirt: virDomainGetState() takes no job.  virDomainGetJobStats() fails at once with
 * VIR_ERR_OPERATION_UNSUPPORTED on the destination, before it takes one (libvirt 9.0,
 * qemuDomainGetJobStatsInternal()).  virDomainGetXMLDesc() is never called: from 11.0 to 11.4 it
 * waits 30 s for an incoming domain.
 */
guint64 pf_virt_ask(PfVirt *virt, const char *uuid, PfVirtAskFlags flags, gint64 timeout_us,
                    PfVirtAnswer answer, gpointer userdata);

/* Forgets a question.  An id that has been answered already does no harm. */
void pf_virt_ask_cancel(PfVirt *virt, guint64 id);

/* Names for the log and the bus.  Static. */
const char *pf_virt_state_to_string(PfVirtState state);
const char *pf_virt_event_to_string(PfVirtEventType type);
const char *pf_virt_job_to_string(PfVirtJob job);
const char *pf_virt_guest_to_string(PfVirtGuestState state);

/* The mappings from libvirt's numbers (virDomainEventType and its details; virDomainState and its
 * reasons; virDomainJobOperation).  Pure; whatever isn't known becomes the nearest "other". */
PfVirtEventType pf_virt_event_from_lifecycle(int event, int detail);
PfVirtGuestState pf_virt_guest_from_state(int state, int reason, PfVirtJob job);
PfVirtJob pf_virt_job_from_operation(int operation);
