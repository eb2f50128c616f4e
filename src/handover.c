/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "handover.h"

/*
 * How to read the tables: a row is an event, a column a state; the cell is the next state, and "_"
 * says that the event changes nothing there.  An event from the databases is a *fact*: it is told
 * again for as long as it holds, after every change of state, so none is lost by coming too early.
 * An event about the guest is kept and told again in the same way.
 *
 * Rules that the cells follow:
 *  - Whoever says first where the guest runs is right.  It is said by a northbound transaction that
 *    verifies what it was computed from: the destination's mark (LIST_RESUMED) or a list of one
 *    chassis.  The other side obeys.
 *  - Before the guest has run here, the destination takes any doubt as failure: rolling back to a
 *    source that runs is right, and to one that doesn't does no harm.
 *  - A source whose guest is gone without a trace waits for the destination, which knows better.
 *  - A list that has been turned says that the guest stands still: a source that finds it so (it
 * has been restarted) asks libvirt about that, and turns it back if the guest runs there.
 *  - The side from which the guest has gone ends the handover, since only that side sees that its
 *    own interfaces are gone; the other does it when that takes too long.
 *
 * A handover that a CMS runs has columns of its own, in the second table, since none of the first
 * two rules is portferry's then.  There:
 *  - The lists are the CMS's: what it decides is followed, never contradicted, and never made.
 *  - Only the source closes the destination.  The destination opens itself until it has seen itself
 *    open, and not again: the two sides can't fight over the flag.
 *  - When it is the CMS's turn and it does nothing, the handover ends with the ports where they
 * are.
 */

/* clang-format off */

enum { STAY = -1 };

typedef struct {
    gint8 to[PF_N_STATES];
} Row;

#define D(preplug, binding, ready, open, running, ask, collapse, active, finish, rollback, drain, undo)    \
    [PF_DST_PREPLUG] = preplug, [PF_DST_BINDING] = binding, [PF_DST_READY] = ready,                 \
    [PF_DST_OPEN] = open, [PF_DST_RUNNING] = running, [PF_DST_ASK] = ask,                           \
    [PF_DST_COLLAPSE] = collapse, [PF_DST_ACTIVE] = active, [PF_DST_FINISH] = finish,               \
    [PF_DST_ROLLBACK] = rollback, [PF_DST_DRAIN] = drain, [PF_DST_UNDO] = undo

#define S(watch, open, close, release, orphan, left, collapse, clear, finish, rollback, undo_wait, undo)    \
    [PF_SRC_WATCH] = watch, [PF_SRC_OPEN] = open, [PF_SRC_CLOSE] = close,                           \
    [PF_SRC_RELEASE] = release, [PF_SRC_ORPHAN] = orphan, [PF_SRC_LEFT] = left,                     \
    [PF_SRC_COLLAPSE] = collapse, [PF_SRC_CLEAR] = clear, [PF_SRC_FINISH] = finish,                 \
    [PF_SRC_ROLLBACK] = rollback, [PF_SRC_UNDO_WAIT] = undo_wait, [PF_SRC_UNDO] = undo

#define ENDED [PF_ENDED_DONE] = STAY, [PF_ENDED_UNDONE] = STAY, [PF_ENDED_UNFINISHED] = STAY

#define C(lists, binding, ready, open, running, activate, rollback, watch, pause, close, left, shut, back)    \
    [PF_CMS_LISTS] = lists, [PF_CMS_BINDING] = binding, [PF_CMS_READY] = ready,                     \
    [PF_CMS_OPEN] = open, [PF_CMS_RUNNING] = running, [PF_CMS_ACTIVATE] = activate,                 \
    [PF_CMS_ROLLBACK] = rollback, [PF_CMS_WATCH] = watch, [PF_CMS_PAUSE] = pause,                   \
    [PF_CMS_CLOSE] = close, [PF_CMS_LEFT] = left, [PF_CMS_SHUT] = shut, [PF_CMS_BACK] = back

#define _         STAY
#define BINDING   PF_DST_BINDING
#define READY     PF_DST_READY
#define DOPEN     PF_DST_OPEN
#define RUNNING   PF_DST_RUNNING
#define ASK       PF_DST_ASK
#define DCOLLAPSE PF_DST_COLLAPSE
#define ACTIVE    PF_DST_ACTIVE
#define DFINISH   PF_DST_FINISH
#define DROLLBACK PF_DST_ROLLBACK
#define DRAIN     PF_DST_DRAIN
#define DUNDO     PF_DST_UNDO
#define WATCH     PF_SRC_WATCH
#define SOPEN     PF_SRC_OPEN
#define CLOSE     PF_SRC_CLOSE
#define RELEASE   PF_SRC_RELEASE
#define ORPHAN    PF_SRC_ORPHAN
#define LEFT      PF_SRC_LEFT
#define SCOLLAPSE PF_SRC_COLLAPSE
#define CLEAR     PF_SRC_CLEAR
#define SFINISH   PF_SRC_FINISH
#define SROLLBACK PF_SRC_ROLLBACK
#define UNDOWAIT  PF_SRC_UNDO_WAIT
#define SUNDO     PF_SRC_UNDO
#define LISTS     PF_CMS_LISTS
#define CBINDING  PF_CMS_BINDING
#define CREADY    PF_CMS_READY
#define COPEN     PF_CMS_OPEN
#define CRUNNING  PF_CMS_RUNNING
#define CACTIVATE PF_CMS_ACTIVATE
#define CROLLBACK PF_CMS_ROLLBACK
#define CWATCH    PF_CMS_WATCH
#define CPAUSE    PF_CMS_PAUSE
#define CCLOSE    PF_CMS_CLOSE
#define CLEFT     PF_CMS_LEFT
#define SHUT      PF_CMS_SHUT
#define BACK      PF_CMS_BACK
#define DONE      PF_ENDED_DONE
#define UNDONE    PF_ENDED_UNDONE
#define UNFINISHD PF_ENDED_UNFINISHED

static const Row table[PF_N_EVENTS] = {
/* The destination:         PREPLUG    BINDING    READY      OPEN       RUNNING    ASK        COLLAPSE   ACTIVE     FINISH     ROLLBACK   DRAIN      UNDO */
/* The source:              WATCH      OPEN       CLOSE      RELEASE    ORPHAN     LEFT       COLLAPSE   CLEAR      FINISH     ROLLBACK   UNDO_WAIT  UNDO */

[PF_EV_GUEST_HERE]     = {{ ENDED,
                        D(_,         RUNNING,   RUNNING,   RUNNING,   _,         _,         _,         _,         _,         _,         _,         _),
                        S(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_GUEST_PAUSED]   = {{ ENDED,
                        D(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _),
                        S(SOPEN,     _,         SOPEN,     _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_GUEST_UNPAUSED] = {{ ENDED,
                        D(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _),
                        S(_,         CLOSE,     _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_GUEST_BACK]     = {{ ENDED,
                        D(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _),
                        S(SROLLBACK, SROLLBACK, SROLLBACK, _,         SROLLBACK, _,         _,         _,         SROLLBACK, _,         _,         _) }},
[PF_EV_GUEST_LEFT]     = {{ ENDED,
                        D(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _),
                        S(LEFT,      LEFT,      LEFT,      LEFT,      LEFT,      _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_GUEST_FAILED]   = {{ ENDED,
                        D(DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, _,         _,         _,         _),
                        S(SROLLBACK, LEFT,      SROLLBACK, LEFT,      LEFT,      _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_GUEST_STOPPED]  = {{ ENDED,
                        D(DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, _,         _,         _,         _,         _,         _,         _,         _),
                        S(SROLLBACK, LEFT,      SROLLBACK, LEFT,      LEFT,      _,         _,         _,         _,         _,         _,         _) }},

[PF_EV_LIST_BOTH]      = {{ ENDED,
                        D(BINDING,   _,         _,         _,         _,         _,         _,         _,         _,         _,         DROLLBACK, DROLLBACK),
                        S(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         SROLLBACK, SROLLBACK) }},
[PF_EV_LIST_TURNED]    = {{ ENDED,
                        D(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _),
                        S(SOPEN,     _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_LIST_RESUMED]   = {{ ENDED,
                        D(_,         ASK,       ASK,       ASK,       ASK,       _,         _,         _,         _,         _,         _,         _),
                        S(RELEASE,   RELEASE,   RELEASE,   _,         RELEASE,   _,         _,         _,         _,         RELEASE,   _,         _) }},
[PF_EV_LIST_DST]       = {{ ENDED,
                        D(_,         DCOLLAPSE, DCOLLAPSE, DCOLLAPSE, DCOLLAPSE, DCOLLAPSE, _,         _,         _,         _,         _,         _),
                        S(RELEASE,   RELEASE,   RELEASE,   _,         RELEASE,   _,         _,         _,         _,         RELEASE,   _,         _) }},
[PF_EV_LIST_SRC]       = {{ ENDED,
                        D(DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, _,         _,         _),
                        S(SROLLBACK, SROLLBACK, SROLLBACK, SROLLBACK, SROLLBACK, SROLLBACK, SROLLBACK, SROLLBACK, SROLLBACK, _,         _,         _) }},
[PF_EV_LIST_FOREIGN]   = {{ ENDED,
                        D(DUNDO,     DUNDO,     DUNDO,     DUNDO,     DFINISH,   DFINISH,   DFINISH,   DFINISH,   _,         DUNDO,     DUNDO,     _),
                        S(_,         _,         _,         _,         _,         _,         SFINISH,   _,         _,         UNDOWAIT,  _,         _) }},
[PF_EV_MARKER_LOST]    = {{ ENDED,
                        D(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _),
                        S(SROLLBACK, SROLLBACK, SROLLBACK, ORPHAN,    _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_MARKER_GONE]    = {{ ENDED,
                        D(_,         UNDONE,    UNDONE,    UNDONE,    UNDONE,    UNDONE,    DONE,      DONE,      DONE,      UNDONE,    UNDONE,    UNDONE),
                        S(UNDONE,    UNDONE,    UNDONE,    DONE,      DONE,      DONE,      DONE,      DONE,      DONE,      UNDONE,    UNDONE,    UNDONE) }},

[PF_EV_PORTS_READY]    = {{ ENDED,
                        D(_,         READY,     _,         _,         _,         _,         _,         _,         _,         _,         _,         _),
                        S(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_PORTS_OPEN]     = {{ ENDED,
                        D(_,         _,         DOPEN,     _,         _,         _,         _,         _,         _,         _,         _,         _),
                        S(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_PORTS_SHUT]     = {{ ENDED,
                        D(_,         _,         _,         READY,     _,         _,         _,         _,         _,         _,         _,         _),
                        S(_,         _,         WATCH,     _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_SOURCE_FREE]    = {{ ENDED,
                        D(_,         _,         _,         _,         DCOLLAPSE, DCOLLAPSE, _,         _,         _,         _,         _,         _),
                        S(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_ONLY_DST]       = {{ ENDED,
                        D(_,         _,         _,         _,         _,         _,         ACTIVE,    _,         _,         _,         _,         _),
                        S(_,         _,         _,         _,         _,         CLEAR,     CLEAR,     _,         _,         _,         _,         _) }},
[PF_EV_ONLY_SRC]       = {{ ENDED,
                        D(_,         _,         _,         _,         _,         _,         _,         _,         _,         DRAIN,     _,         _),
                        S(_,         _,         _,         _,         _,         _,         _,         _,         _,         UNDOWAIT,  _,         _) }},
[PF_EV_IFACE_GONE]     = {{ ENDED,
                        D(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         DUNDO,     _),
                        S(_,         _,         _,         _,         _,         _,         _,         SFINISH,   _,         _,         _,         _) }},

[PF_EV_LEFT_TO_CMS]    = {{ ENDED,
                        D(LISTS,     _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _),
                        S(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_AGAIN]          = {{ ENDED,
                        D(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _),
                        S(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_REFUSED]        = {{ ENDED,
                        D(DROLLBACK, DROLLBACK, _,         _,         _,         _,         _,         _,         _,         _,         _,         _),
                        S(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_PROCEED]        = {{ ENDED,
                        D(_,         READY,     _,         _,         _,         _,         _,         _,         _,         _,         _,         _),
                        S(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_DEADLINE]       = {{ ENDED,
                        D(DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, ASK,       DCOLLAPSE, _,         DFINISH,   _,         _,         DUNDO,     _),
                        S(SROLLBACK, SROLLBACK, SROLLBACK, _,         _,         SCOLLAPSE, _,         SFINISH,   _,         _,         SUNDO,     _) }},
[PF_EV_ACTIVATE]       = {{ ENDED,
                        D(_,         RUNNING,   RUNNING,   RUNNING,   DCOLLAPSE, DCOLLAPSE, _,         DFINISH,   _,         RUNNING,   RUNNING,   _),
                        S(SCOLLAPSE, SCOLLAPSE, SCOLLAPSE, SCOLLAPSE, LEFT,      SCOLLAPSE, _,         _,         _,         SCOLLAPSE, _,         _) }},
[PF_EV_ROLLBACK]       = {{ ENDED,
                        D(DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, DROLLBACK, _,         _,         _,         _),
                        S(SROLLBACK, SROLLBACK, SROLLBACK, SROLLBACK, SROLLBACK, SROLLBACK, SROLLBACK, SROLLBACK, _,         _,         SUNDO,     _) }},
};

static const Row cms_table[PF_N_EVENTS] = {
/* The destination, the source:      LISTS      BINDING    READY      OPEN       RUNNING    ACTIVATE   ROLLBACK   WATCH      PAUSE      CLOSE      LEFT       SHUT       BACK */
[PF_EV_GUEST_HERE]     = {{ ENDED, C(_,         CRUNNING,  CRUNNING,  CRUNNING,  _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_GUEST_PAUSED]   = {{ ENDED, C(_,         _,         _,         _,         _,         _,         _,         CPAUSE,    _,         CPAUSE,    _,         _,         _) }},
[PF_EV_GUEST_UNPAUSED] = {{ ENDED, C(_,         _,         _,         _,         _,         _,         _,         _,         CCLOSE,    _,         _,         _,         _) }},
[PF_EV_GUEST_BACK]     = {{ ENDED, C(_,         _,         _,         _,         _,         _,         _,         SHUT,      SHUT,      SHUT,      _,         _,         _) }},
[PF_EV_GUEST_LEFT]     = {{ ENDED, C(_,         _,         _,         _,         _,         _,         _,         CLEFT,     CLEFT,     CLEFT,     _,         _,         _) }},
[PF_EV_GUEST_FAILED]   = {{ ENDED, C(UNDONE,    CROLLBACK, CROLLBACK, CROLLBACK, CROLLBACK, CROLLBACK, _,         SHUT,      CLEFT,     SHUT,      _,         _,         _) }},
[PF_EV_GUEST_STOPPED]  = {{ ENDED, C(UNDONE,    CROLLBACK, CROLLBACK, CROLLBACK, _,         _,         _,         SHUT,      CLEFT,     SHUT,      _,         _,         _) }},

[PF_EV_LIST_BOTH]      = {{ ENDED, C(CBINDING,  _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_LIST_TURNED]    = {{ ENDED, C(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_LIST_RESUMED]   = {{ ENDED, C(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_LIST_DST]       = {{ ENDED, C(CBINDING,  _,         _,         _,         _,         _,         _,         CLEFT,     CLEFT,     CLEFT,     _,         CLEFT,     CLEFT) }},
[PF_EV_LIST_SRC]       = {{ ENDED, C(_,         CROLLBACK, CROLLBACK, CROLLBACK, _,         _,         _,         SHUT,      SHUT,      SHUT,      SHUT,      _,         _) }},
[PF_EV_LIST_FOREIGN]   = {{ ENDED, C(_,         UNDONE,    UNDONE,    UNDONE,    DONE,      DONE,      UNDONE,    UNDONE,    UNDONE,    UNDONE,    DONE,      UNDONE,    UNDONE) }},
[PF_EV_MARKER_LOST]    = {{ ENDED, C(_,         UNDONE,    UNDONE,    UNDONE,    DONE,      DONE,      UNDONE,    UNDONE,    UNDONE,    UNDONE,    DONE,      UNDONE,    UNDONE) }},
[PF_EV_MARKER_GONE]    = {{ ENDED, C(_,         UNDONE,    UNDONE,    UNDONE,    DONE,      DONE,      UNDONE,    UNDONE,    UNDONE,    UNDONE,    DONE,      UNDONE,    UNDONE) }},

[PF_EV_PORTS_READY]    = {{ ENDED, C(_,         CREADY,    _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_PORTS_OPEN]     = {{ ENDED, C(_,         _,         COPEN,     _,         CACTIVATE, _,         _,         CPAUSE,    _,         _,         _,         _,         SHUT) }},
[PF_EV_PORTS_SHUT]     = {{ ENDED, C(_,         _,         _,         CREADY,    _,         _,         _,         _,         _,         CWATCH,    _,         BACK,      _) }},
[PF_EV_SOURCE_FREE]    = {{ ENDED, C(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_ONLY_DST]       = {{ ENDED, C(_,         _,         _,         _,         DONE,      DONE,      _,         _,         _,         _,         DONE,      _,         _) }},
[PF_EV_ONLY_SRC]       = {{ ENDED, C(_,         _,         _,         _,         _,         _,         UNDONE,    _,         _,         _,         _,         _,         UNDONE) }},
[PF_EV_IFACE_GONE]     = {{ ENDED, C(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},

[PF_EV_LEFT_TO_CMS]    = {{ ENDED, C(_,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_AGAIN]          = {{ ENDED, C(_,         _,         _,         _,         _,         UNFINISHD, UNFINISHD, _,         _,         _,         UNFINISHD, UNFINISHD, UNFINISHD) }},
[PF_EV_REFUSED]        = {{ ENDED, C(UNDONE,    CROLLBACK, _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_PROCEED]        = {{ ENDED, C(_,         CREADY,    _,         _,         _,         _,         _,         _,         _,         _,         _,         _,         _) }},
[PF_EV_DEADLINE]       = {{ ENDED, C(UNDONE,    CROLLBACK, CROLLBACK, CROLLBACK, UNFINISHD, UNFINISHD, UNFINISHD, UNDONE,    SHUT,      SHUT,      UNFINISHD, UNFINISHD, UNFINISHD) }},
[PF_EV_ACTIVATE]       = {{ ENDED, C(_,         CRUNNING,  CRUNNING,  CRUNNING,  _,         _,         CRUNNING,  CLEFT,     CLEFT,     CLEFT,     _,         CLEFT,     CLEFT) }},
[PF_EV_ROLLBACK]       = {{ ENDED, C(UNDONE,    CROLLBACK, CROLLBACK, CROLLBACK, CROLLBACK, CROLLBACK, _,         SHUT,      SHUT,      SHUT,      SHUT,      _,         _) }},
};

static const PfStateInfo info[PF_N_STATES] = {
    /*                   role                 phase        goals                                       gate            limit              ended */
    [PF_DST_PREPLUG]   = {PF_ROLE_DESTINATION, "preplug",  PF_GOAL_PREPLUG,                            PF_GATE_WAIT,   PF_LIMIT_PREPLUG,  FALSE},
    [PF_DST_BINDING]   = {PF_ROLE_DESTINATION, "binding",  0,                                          PF_GATE_WAIT,   PF_LIMIT_INCOMING, FALSE},
    [PF_DST_READY]     = {PF_ROLE_DESTINATION, "ready",    0,                                          PF_GATE_PASS,   PF_LIMIT_INCOMING, FALSE},
    [PF_DST_OPEN]      = {PF_ROLE_DESTINATION, "open",     0,                                          PF_GATE_PASS,   PF_LIMIT_INCOMING, FALSE},
    [PF_DST_RUNNING]   = {PF_ROLE_DESTINATION, "running",  PF_GOAL_OPEN | PF_GOAL_TURN,                PF_GATE_PASS,   PF_LIMIT_RELEASE,  FALSE},
    [PF_DST_ASK]       = {PF_ROLE_DESTINATION, "release",  PF_GOAL_OPEN | PF_GOAL_TURN | PF_GOAL_MARK, PF_GATE_PASS,   PF_LIMIT_RELEASE,  FALSE},
    [PF_DST_COLLAPSE]  = {PF_ROLE_DESTINATION, "activate", PF_GOAL_OPEN | PF_GOAL_COLLAPSE,            PF_GATE_PASS,   PF_LIMIT_NONE,     FALSE},
    [PF_DST_ACTIVE]    = {PF_ROLE_DESTINATION, "active",   0,                                          PF_GATE_PASS,   PF_LIMIT_TEARDOWN, FALSE},
    [PF_DST_FINISH]    = {PF_ROLE_DESTINATION, "finish",   PF_GOAL_FOLLOW,                             PF_GATE_PASS,   PF_LIMIT_NONE,     FALSE},
    [PF_DST_ROLLBACK]  = {PF_ROLE_DESTINATION, "rollback", PF_GOAL_ROLL_BACK,                          PF_GATE_REFUSE, PF_LIMIT_NONE,     FALSE},
    [PF_DST_DRAIN]     = {PF_ROLE_DESTINATION, "drain",    0,                                          PF_GATE_REFUSE, PF_LIMIT_TEARDOWN, FALSE},
    [PF_DST_UNDO]      = {PF_ROLE_DESTINATION, "undo",     PF_GOAL_PUT_BACK,                           PF_GATE_REFUSE, PF_LIMIT_NONE,     FALSE},

    [PF_SRC_WATCH]     = {PF_ROLE_SOURCE,      "watch",    0,                                          PF_GATE_PASS,   PF_LIMIT_INCOMING, FALSE},
    [PF_SRC_OPEN]      = {PF_ROLE_SOURCE,      "open",     PF_GOAL_OPEN | PF_GOAL_TURN,                PF_GATE_PASS,   PF_LIMIT_INCOMING, FALSE},
    [PF_SRC_CLOSE]     = {PF_ROLE_SOURCE,      "close",    PF_GOAL_CLOSE | PF_GOAL_TURN_BACK,          PF_GATE_PASS,   PF_LIMIT_INCOMING, FALSE},
    [PF_SRC_RELEASE]   = {PF_ROLE_SOURCE,      "release",  PF_GOAL_OPEN | PF_GOAL_RELEASE,             PF_GATE_PASS,   PF_LIMIT_NONE,     FALSE},
    [PF_SRC_ORPHAN]    = {PF_ROLE_SOURCE,      "orphan",   0,                                          PF_GATE_PASS,   PF_LIMIT_NONE,     FALSE},
    [PF_SRC_LEFT]      = {PF_ROLE_SOURCE,      "left",     0,                                          PF_GATE_PASS,   PF_LIMIT_TEARDOWN, FALSE},
    [PF_SRC_COLLAPSE]  = {PF_ROLE_SOURCE,      "activate", PF_GOAL_RELEASE | PF_GOAL_COLLAPSE,         PF_GATE_PASS,   PF_LIMIT_NONE,     FALSE},
    [PF_SRC_CLEAR]     = {PF_ROLE_SOURCE,      "clear",    PF_GOAL_RELEASE,                            PF_GATE_PASS,   PF_LIMIT_TEARDOWN, FALSE},
    [PF_SRC_FINISH]    = {PF_ROLE_SOURCE,      "finish",   PF_GOAL_FOLLOW,                             PF_GATE_PASS,   PF_LIMIT_NONE,     FALSE},
    [PF_SRC_ROLLBACK]  = {PF_ROLE_SOURCE,      "rollback", PF_GOAL_RECLAIM | PF_GOAL_ROLL_BACK,        PF_GATE_REFUSE, PF_LIMIT_NONE,     FALSE},
    [PF_SRC_UNDO_WAIT] = {PF_ROLE_SOURCE,      "drain",    0,                                          PF_GATE_REFUSE, PF_LIMIT_TEARDOWN, FALSE},
    [PF_SRC_UNDO]      = {PF_ROLE_SOURCE,      "undo",     PF_GOAL_PUT_BACK,                           PF_GATE_REFUSE, PF_LIMIT_NONE,     FALSE},

    [PF_CMS_LISTS]     = {PF_ROLE_DESTINATION, "cms-preplug",  0,                                          PF_GATE_WAIT,   PF_LIMIT_PREPLUG,  FALSE, TRUE},
    [PF_CMS_BINDING]   = {PF_ROLE_DESTINATION, "binding",      0,                                          PF_GATE_WAIT,   PF_LIMIT_INCOMING, FALSE, TRUE},
    [PF_CMS_READY]     = {PF_ROLE_DESTINATION, "ready",        0,                                          PF_GATE_PASS,   PF_LIMIT_INCOMING, FALSE, TRUE},
    [PF_CMS_OPEN]      = {PF_ROLE_DESTINATION, "open",         0,                                          PF_GATE_PASS,   PF_LIMIT_INCOMING, FALSE, TRUE},
    [PF_CMS_RUNNING]   = {PF_ROLE_DESTINATION, "running",      PF_GOAL_OPEN,                               PF_GATE_PASS,   PF_LIMIT_CMS,      FALSE, TRUE},
    [PF_CMS_ACTIVATE]  = {PF_ROLE_DESTINATION, "cms-activate", 0,                                          PF_GATE_PASS,   PF_LIMIT_CMS,      FALSE, TRUE},
    [PF_CMS_ROLLBACK]  = {PF_ROLE_DESTINATION, "cms-rollback", 0,                                          PF_GATE_REFUSE, PF_LIMIT_CMS,      FALSE, TRUE},
    [PF_CMS_WATCH]     = {PF_ROLE_SOURCE,      "watch",        0,                                          PF_GATE_PASS,   PF_LIMIT_INCOMING, FALSE, TRUE},
    [PF_CMS_PAUSE]     = {PF_ROLE_SOURCE,      "open",         PF_GOAL_OPEN,                               PF_GATE_PASS,   PF_LIMIT_INCOMING, FALSE, TRUE},
    [PF_CMS_CLOSE]     = {PF_ROLE_SOURCE,      "close",        PF_GOAL_CLOSE,                              PF_GATE_PASS,   PF_LIMIT_INCOMING, FALSE, TRUE},
    [PF_CMS_LEFT]      = {PF_ROLE_SOURCE,      "cms-activate", PF_GOAL_OPEN,                               PF_GATE_PASS,   PF_LIMIT_CMS,      FALSE, TRUE},
    [PF_CMS_SHUT]      = {PF_ROLE_SOURCE,      "close",        PF_GOAL_CLOSE,                              PF_GATE_PASS,   PF_LIMIT_NONE,     FALSE, TRUE},
    [PF_CMS_BACK]      = {PF_ROLE_SOURCE,      "cms-rollback", 0,                                          PF_GATE_PASS,   PF_LIMIT_CMS,      FALSE, TRUE},

    [PF_ENDED_DONE]    = {PF_ROLE_DESTINATION, "done",     0,                                          PF_GATE_PASS,   PF_LIMIT_NONE,     TRUE},
    [PF_ENDED_UNDONE]  = {PF_ROLE_DESTINATION, "undone",   0,                                          PF_GATE_REFUSE, PF_LIMIT_NONE,     TRUE},
    [PF_ENDED_UNFINISHED] = {PF_ROLE_DESTINATION, "unfinished", 0,                                     PF_GATE_PASS,   PF_LIMIT_NONE,     TRUE},
};
/* clang-format on */

static const char *const state_names[PF_N_STATES] = {
    [PF_STATE_INVALID] = "invalid",
    [PF_DST_PREPLUG] = "dst-preplug",
    [PF_DST_BINDING] = "dst-binding",
    [PF_DST_READY] = "dst-ready",
    [PF_DST_OPEN] = "dst-open",
    [PF_DST_RUNNING] = "dst-running",
    [PF_DST_ASK] = "dst-ask",
    [PF_DST_COLLAPSE] = "dst-collapse",
    [PF_DST_ACTIVE] = "dst-active",
    [PF_DST_FINISH] = "dst-finish",
    [PF_DST_ROLLBACK] = "dst-rollback",
    [PF_DST_DRAIN] = "dst-drain",
    [PF_DST_UNDO] = "dst-undo",
    [PF_SRC_WATCH] = "src-watch",
    [PF_SRC_OPEN] = "src-open",
    [PF_SRC_CLOSE] = "src-close",
    [PF_SRC_RELEASE] = "src-release",
    [PF_SRC_ORPHAN] = "src-orphan",
    [PF_SRC_LEFT] = "src-left",
    [PF_SRC_COLLAPSE] = "src-collapse",
    [PF_SRC_CLEAR] = "src-clear",
    [PF_SRC_FINISH] = "src-finish",
    [PF_SRC_ROLLBACK] = "src-rollback",
    [PF_SRC_UNDO_WAIT] = "src-undo-wait",
    [PF_SRC_UNDO] = "src-undo",
    [PF_CMS_LISTS] = "cms-lists",
    [PF_CMS_BINDING] = "cms-binding",
    [PF_CMS_READY] = "cms-ready",
    [PF_CMS_OPEN] = "cms-open",
    [PF_CMS_RUNNING] = "cms-running",
    [PF_CMS_ACTIVATE] = "cms-activate",
    [PF_CMS_ROLLBACK] = "cms-rollback",
    [PF_CMS_WATCH] = "cms-watch",
    [PF_CMS_PAUSE] = "cms-pause",
    [PF_CMS_CLOSE] = "cms-close",
    [PF_CMS_LEFT] = "cms-left",
    [PF_CMS_SHUT] = "cms-shut",
    [PF_CMS_BACK] = "cms-back",
    [PF_ENDED_DONE] = "done",
    [PF_ENDED_UNDONE] = "undone",
    [PF_ENDED_UNFINISHED] = "unfinished",
};

static const char *const event_names[PF_N_EVENTS] = {
    [PF_EV_GUEST_HERE] = "guest-here",
    [PF_EV_GUEST_PAUSED] = "guest-paused",
    [PF_EV_GUEST_UNPAUSED] = "guest-unpaused",
    [PF_EV_GUEST_BACK] = "guest-back",
    [PF_EV_GUEST_LEFT] = "guest-left",
    [PF_EV_GUEST_FAILED] = "guest-failed",
    [PF_EV_GUEST_STOPPED] = "guest-stopped",
    [PF_EV_LIST_BOTH] = "list-both",
    [PF_EV_LIST_TURNED] = "list-turned",
    [PF_EV_LIST_RESUMED] = "list-resumed",
    [PF_EV_LIST_DST] = "list-dst",
    [PF_EV_LIST_SRC] = "list-src",
    [PF_EV_LIST_FOREIGN] = "list-foreign",
    [PF_EV_MARKER_LOST] = "marker-lost",
    [PF_EV_MARKER_GONE] = "marker-gone",
    [PF_EV_PORTS_READY] = "ports-ready",
    [PF_EV_PORTS_OPEN] = "ports-open",
    [PF_EV_PORTS_SHUT] = "ports-shut",
    [PF_EV_SOURCE_FREE] = "source-free",
    [PF_EV_ONLY_DST] = "only-dst",
    [PF_EV_ONLY_SRC] = "only-src",
    [PF_EV_IFACE_GONE] = "iface-gone",
    [PF_EV_LEFT_TO_CMS] = "left-to-cms",
    [PF_EV_AGAIN] = "again",
    [PF_EV_REFUSED] = "refused",
    [PF_EV_PROCEED] = "proceed",
    [PF_EV_DEADLINE] = "deadline",
    [PF_EV_ACTIVATE] = "activate",
    [PF_EV_ROLLBACK] = "rollback",
};

PfState pf_handover_next(PfState state, PfEvent event)
{
    g_return_val_if_fail(state > PF_STATE_INVALID && state < PF_N_STATES, state);
    g_return_val_if_fail(event < PF_N_EVENTS, state);
    gint8 to = (info[state].cms ? cms_table : table)[event].to[state];
    return to == STAY ? state : (PfState)to;
}

const PfStateInfo *pf_state_info(PfState state)
{
    g_return_val_if_fail(state > PF_STATE_INVALID && state < PF_N_STATES, NULL);
    return &info[state];
}

guint pf_handover_goals(PfState state, PfEvent guest)
{
    gboolean twice = (state == PF_DST_DRAIN && guest == PF_EV_GUEST_HERE) ||
                     (state == PF_SRC_RELEASE && guest == PF_EV_GUEST_BACK);
    return pf_state_info(state)->goals | (twice ? PF_GOAL_TWICE : 0);
}

PfState pf_handover_first(PfRole role, PfOrigin origin)
{
    gboolean source = role == PF_ROLE_SOURCE;

    switch (origin) {
    case PF_ORIGIN_HOOK:
        return source ? PF_SRC_WATCH : PF_DST_PREPLUG;
    case PF_ORIGIN_HOOK_CMS:
        return source ? PF_CMS_WATCH : PF_CMS_LISTS;
    case PF_ORIGIN_MARKER:
        return source ? PF_SRC_WATCH : PF_DST_BINDING;
    case PF_ORIGIN_LISTS:
        return source ? PF_CMS_WATCH : PF_CMS_BINDING;
    case PF_ORIGIN_INTERFACE:
        return source ? PF_SRC_ORPHAN : PF_DST_BINDING;
    }
    g_return_val_if_reached(PF_STATE_INVALID);
}

const char *pf_state_name(PfState state)
{
    return state < PF_N_STATES ? state_names[state] : state_names[PF_STATE_INVALID];
}

const char *pf_event_name(PfEvent event)
{
    return event < PF_N_EVENTS ? event_names[event] : "invalid";
}

const char *pf_role_name(PfRole role)
{
    return role == PF_ROLE_SOURCE ? "source" : "destination";
}
