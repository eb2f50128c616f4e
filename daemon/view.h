/* SPDX-License-Identifier: LGPL-2.1-or-later */

#pragma once

#include <glib.h>

/*
 * What D-Bus shows of the daemon and of a handover.  The manager owns these structs and everything
 * in them, changes them as it likes, and then tells the bus what it changed (pf_bus_*_changed()).
 * A string may be NULL, which is shown as the empty string.  Times are CLOCK_REALTIME, in
 * microseconds since 1970.
 */

typedef struct {
    const char *iface_id; /* the logical switch port's name */
    const char *mac;      /* as in the domain's XML */
    const char *state;    /* one word, such as "bound" or "ready" */
} PfPortView;

typedef struct {
    const char *phase;
    gint64 time_us; /* when it was entered */
} PfPhaseView;

typedef struct {
    const char *id;      /* unique on this host, for as long as the handover is shown; constant */
    const char *domain;  /* the domain's name on this host; NULL until libvirt has told it */
    const char *uuid;    /* the domain's UUID; constant */
    const char *role;    /* "source" or "destination": this host's part; constant */
    gint64 started_us;   /* constant */
    gboolean by_hand;    /* begun by PrePlug; constant */
    gint64 ended_us;     /* 0: it is open */
    const char *outcome; /* "done" or "undone" once it has ended */
    const char *phase;
    gint64 deadline_us;      /* when the time of what it waits for is over; 0: it has no limit */
    const char *waiting;     /* what it waits for, one sentence; empty once it has ended */
    gboolean held;           /* by an operator, at the gate */
    const char *source;      /* chassis name */
    const char *destination; /* chassis name */
    const char *peer;        /* the other host's name, if it is known */
    const PfPortView *ports;
    gsize n_ports;
    const PfPhaseView *phases; /* every phase entered so far, oldest first */
    gsize n_phases;
    const char *last_error; /* one line for the operator; empty when all is well */
} PfHandoverView;

typedef struct {
    const char *name;
    guint64 value;
} PfCounterView;

struct PfMetrics;

typedef struct {
    const char *version;  /* constant */
    const char *hostname; /* constant */
    const char *chassis;
    const char *libvirt_state;
    const char *northbound_state;
    const char *southbound_state;
    const char *switch_state; /* the local Open vSwitch database */
    const PfCounterView *counters;
    gsize n_counters;
    const struct PfMetrics *metrics; /* or NULL */
} PfManagerView;

/* Which of a handover's properties have changed. */
typedef enum {
    PF_HANDOVER_PHASE = 1 << 0, /* phase and phases; also sends PhaseChanged; of an ended one also
                                 * ended_us and outcome */
    PF_HANDOVER_PORTS = 1 << 1,
    PF_HANDOVER_HOSTS = 1 << 2, /* source, destination, peer */
    PF_HANDOVER_ERROR = 1 << 3,
    PF_HANDOVER_DOMAIN = 1 << 4,
    PF_HANDOVER_HELD = 1 << 5,
    PF_HANDOVER_DEADLINE = 1 << 6,
    PF_HANDOVER_WAITING = 1 << 7,
} PfHandoverChange;

/* Which of the manager's properties have changed.  Counters are not announced, only read. */
typedef enum {
    PF_MANAGER_CHASSIS = 1 << 0,
    PF_MANAGER_LIBVIRT = 1 << 1,
    PF_MANAGER_NORTHBOUND = 1 << 2,
    PF_MANAGER_SOUTHBOUND = 1 << 3,
    PF_MANAGER_SWITCH = 1 << 4,
} PfManagerChange;
