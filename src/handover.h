/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The handover state machine: (state, event) -> state, and for each state what is to be true.
 *
 * A handover is one migration of one domain with all its ports, as one daemon sees it.  Each of the
 * two daemons runs its own machine: the one on the destination from the hook on, the one on the
 * source from the moment when it sees the marker.  They talk through the databases alone.
 *
 * It is a Moore machine on purpose: a state carries *goals*, which are wanted for as long as the
 * state lasts and are tried again until the databases show them.  A lost reply, a reconnection or a
 * restart of the daemon therefore needs no code of its own: the facts are looked at again, and the
 * machine goes on from there.
 *
 * No I/O, no clock, no allocation here.
 */

#include <glib.h>

typedef enum {
    PF_ROLE_SOURCE,
    PF_ROLE_DESTINATION,
} PfRole;

typedef enum {
    PF_STATE_INVALID, /* so that a hole in the table is found by the tests */

    /* Destination. */
    PF_DST_PREPLUG,  /* the northbound transaction is under way; the `migrate` hook waits */
    PF_DST_BINDING,  /* pre-plugged; the ports are not ready yet; the `started` hook waits */
    PF_DST_READY,    /* flows installed; memory is copied */
    PF_DST_OPEN,     /* ports are open here, the guest doesn't run yet */
    PF_DST_RUNNING,  /* the guest runs here; libvirt is about to end it at the source */
    PF_DST_ASK,      /* it takes its time (post-copy): the source is asked to let go of the ports */
    PF_DST_COLLAPSE, /* this chassis becomes the ports' only one */
    PF_DST_ACTIVE,   /* it is; the source tears down */
    PF_DST_FINISH,   /* the source did not: the destination ends the handover itself */
    PF_DST_ROLLBACK, /* the source becomes the ports' only chassis again */
    PF_DST_DRAIN,    /* it is; what libvirt plugged here must go first */
    PF_DST_UNDO,     /* what was there before is put back */

    /* Source. */
    PF_SRC_WATCH,     /* a handover has begun; the guest runs here */
    PF_SRC_OPEN,      /* the guest stands still: let the destination carry traffic */
    PF_SRC_CLOSE,     /* ... but it runs here again, and the copy goes on */
    PF_SRC_RELEASE,   /* the guest runs at the destination: let go of the ports */
    PF_SRC_ORPHAN,    /* ... and the handover was ended by others: do we have to take them back? */
    PF_SRC_LEFT,      /* the guest is gone from here; the destination activates */
    PF_SRC_COLLAPSE,  /* it did not: the source does it */
    PF_SRC_CLEAR,     /* the destination is the only chassis; our interfaces must be gone */
    PF_SRC_FINISH,    /* requested-chassis gets its old meaning back, the marker goes */
    PF_SRC_ROLLBACK,  /* the guest stays: the source becomes the only chassis again */
    PF_SRC_UNDO_WAIT, /* it is; the destination cleans up and ends the handover */
    PF_SRC_UNDO,      /* it did not: the source ends the handover itself */

    /* A handover that a CMS runs: requested-chassis is the CMS's, and nothing is written
     * northbound. Destination. */
    PF_CMS_LISTS,    /* the CMS has not named both hosts yet; the `migrate` hook waits */
    PF_CMS_BINDING,  /* as PF_DST_BINDING */
    PF_CMS_READY,    /* as PF_DST_READY */
    PF_CMS_OPEN,     /* as PF_DST_OPEN */
    PF_CMS_RUNNING,  /* as PF_DST_RUNNING, until the ports are open */
    PF_CMS_ACTIVATE, /* they are: the CMS's turn to name this host alone */
    PF_CMS_ROLLBACK, /* it doesn't, and won't: the CMS's turn to name the source alone */

    /* Source. */
    PF_CMS_WATCH, /* as PF_SRC_WATCH */
    PF_CMS_PAUSE, /* as PF_SRC_OPEN */
    PF_CMS_CLOSE, /* as PF_SRC_CLOSE */
    PF_CMS_LEFT,  /* the guest is gone from here: the CMS's turn to name the destination alone */
    PF_CMS_SHUT,  /* the guest stays: the destination must not be open */
    PF_CMS_BACK,  /* it isn't: the CMS's turn to name this host alone */

    /* Both. */
    PF_ENDED_DONE,       /* the ports have followed the guest */
    PF_ENDED_UNDONE,     /* the ports are where they were */
    PF_ENDED_UNFINISHED, /* the ports are on both hosts, where the CMS has left them */
    PF_N_STATES,
} PfState;

typedef enum {
    /* The guest on this host, by libvirt's events and hooks, or by asking libvirt. */
    PF_EV_GUEST_HERE,     /* destination: it runs here, or is owned here and paused */
    PF_EV_GUEST_PAUSED,   /* source: stopped by the migration */
    PF_EV_GUEST_UNPAUSED, /* source: somebody resumed it while the copy goes on */
    PF_EV_GUEST_BACK,     /* source: the migration failed or was cancelled, it runs on here */
    PF_EV_GUEST_LEFT,     /* source: gone, by a migration or unknown how */
    PF_EV_GUEST_FAILED,   /* gone by a failure: QEMU died or was killed, or never started */
    PF_EV_GUEST_STOPPED,  /* gone by somebody's wish: shutdown, save */

    /* The northbound rows of all ports (only while that database is connected).  In a handover that
     * a CMS runs, the lists are those that the southbound rows show, and MARKER_GONE says that
     * there is no row. */
    PF_EV_LIST_BOTH,    /* requested-chassis is both of them, in either order */
    PF_EV_LIST_TURNED,  /* it is destination,source */
    PF_EV_LIST_RESUMED, /* it is both, and the destination says that the guest runs there */
    PF_EV_LIST_DST,     /* it is the destination alone */
    PF_EV_LIST_SRC,     /* it is the source alone */
    PF_EV_LIST_FOREIGN, /* it is something else: a CMS has taken over */
    PF_EV_MARKER_LOST, /* no row carries this handover's marker, but interfaces here are released */
    PF_EV_MARKER_GONE, /* no row does, and none is */

    /* The southbound rows and the local switch. */
    PF_EV_PORTS_READY, /* destination: bound, flows installed */
    PF_EV_PORTS_OPEN,  /* the destination is flagged as activated */
    PF_EV_PORTS_SHUT,  /* it isn't */
    PF_EV_SOURCE_FREE, /* the source doesn't hold any of the ports */
    PF_EV_ONLY_DST,    /* the destination is the only chassis of all ports */
    PF_EV_ONLY_SRC,    /* no other than the source is, and no flag of the destination is left */
    PF_EV_IFACE_GONE,  /* no interface on this host claims one of the ports */

    /* People and time. */
    PF_EV_LEFT_TO_CMS, /* the pre-plug has found that a CMS names both hosts already */
    PF_EV_AGAIN,       /* another migration of the guest begins */
    PF_EV_REFUSED,     /* pre-plug refused, or a port is not ready in time */
    PF_EV_PROCEED,     /* a port is not ready in time, but the configuration says to go on */
    PF_EV_DEADLINE,    /* the state's own time is over */
    PF_EV_ACTIVATE,    /* an operator says that the guest runs at the destination */
    PF_EV_ROLLBACK,    /* an operator says that it runs at the source */
    PF_N_EVENTS,
} PfEvent;

/* What a state wants to be true; several at once are possible. */
typedef enum {
    PF_GOAL_PREPLUG = 1 << 0,   /* NB: both chassis, strategy and marker, in one transaction */
    PF_GOAL_OPEN = 1 << 1,      /* SB: the destination flagged as activated */
    PF_GOAL_CLOSE = 1 << 2,     /* SB: not flagged */
    PF_GOAL_MARK = 1 << 3,      /* NB: the marker says that the guest runs at the destination */
    PF_GOAL_RELEASE = 1 << 4,   /* OVS here: no interface claims the ports */
    PF_GOAL_RECLAIM = 1 << 5,   /* OVS here: the guest's interfaces claim the ports again */
    PF_GOAL_COLLAPSE = 1 << 6,  /* NB: the destination alone, no strategy, in one transaction */
    PF_GOAL_ROLL_BACK = 1 << 7, /* NB: the source alone */
    PF_GOAL_FOLLOW = 1 << 8,    /* NB: the old meaning, following the guest; no marker */
    PF_GOAL_PUT_BACK = 1 << 9,  /* NB: the old values; no marker */
    PF_GOAL_TWICE = 1 << 10,    /* NB: the marker says that the guest runs on this side as well */
    PF_GOAL_TURN = 1 << 11, /* NB: the destination is the main one of the two, if that matters */
    PF_GOAL_TURN_BACK = 1 << 12, /* NB: the source is */
} PfGoal;

/* What the hook that waits at the gate is told in this state. */
typedef enum {
    PF_GATE_WAIT,
    PF_GATE_PASS,
    PF_GATE_REFUSE,
} PfGate;

/* Which of the configured times limits the state. */
typedef enum {
    PF_LIMIT_NONE,
    PF_LIMIT_PREPLUG,  /* preplug-timeout */
    PF_LIMIT_INCOMING, /* incoming-timeout; not over while libvirt says that the copy goes on */
    PF_LIMIT_RELEASE,  /* release-timeout; twice: before the source is asked, and after */
    PF_LIMIT_TEARDOWN, /* teardown-timeout; not over while post-copy goes on */
    PF_LIMIT_CMS,      /* cms-timeout; likewise */
} PfLimit;

typedef struct {
    PfRole role;       /* for the two ended states: meaningless */
    const char *phase; /* the word for people: D-Bus, journal, client */
    guint goals;       /* PfGoal, or-ed */
    PfGate gate;
    PfLimit limit;
    gboolean ended;
    gboolean cms; /* a CMS runs the handover */
} PfStateInfo;

/* The state that follows 'state' on 'event'; 'state' itself where the event changes nothing.
 * Total: every pair is defined. */
PfState pf_handover_next(PfState state, PfEvent event);

/* What 'state' means and wants.  Static. */
const PfStateInfo *pf_state_info(PfState state);

/* What 'state' wants when 'guest' was the last event about the guest (PF_N_EVENTS: none).  That is
 * the state's own goals; and if libvirt lets the guest run where the handover has been decided
 * against, this side says so, that the other one keeps the handover open: without the port's pin
 * both hosts would claim it. */
guint pf_handover_goals(PfState state, PfEvent guest);

/* How a handover comes to a daemon. */
typedef enum {
    PF_ORIGIN_HOOK,      /* libvirt prepares an incoming migration */
    PF_ORIGIN_HOOK_CMS,  /* the same, where only a CMS may write northbound */
    PF_ORIGIN_MARKER,    /* a northbound row names this chassis */
    PF_ORIGIN_LISTS,     /* a CMS has named this chassis and another one */
    PF_ORIGIN_INTERFACE, /* an interface here was made to let go, and no row says why */
} PfOrigin;

/* The first state of a handover. */
PfState pf_handover_first(PfRole role, PfOrigin origin);

/* Stable names, for logs and tests ("dst-preplug", "guest-here").  Static. */
const char *pf_state_name(PfState state);
const char *pf_event_name(PfEvent event);
const char *pf_role_name(PfRole role);
