/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Two daemons, explored exhaustively.
 *
 * The daemons are not modelled: their transitions, facts and verdicts are the very functions that
 * the daemon links (pf_settle, pf_facts, pf_state_info, pf_plan_decide).  Modelled is the world
 * around them: libvirt with its successes, failures and lost events, northd, two ovn-controllers,
 * two databases that each daemon sees with delay, local switches, and crashes of the daemons at any
 * moment.
 *
 * Every state that can be reached is visited, and of each it is asked:
 *  - is it possible from here to come to rest (no livelock, no dead end), and
 *  - if it is at rest: does the promise hold?  One chassis answers for the port, the one where the
 *    guest runs; the row is what it was (or follows the guest); no marker, no flag, no second
 * chassis.
 *
 * And the same with a CMS that owns the lists: it binds the ports to both hosts, and at the end to
 * one, or forgets to.  Then the promise is less: nothing is written in its place, the ports are
 * open where the guest runs and nowhere else, and no daemon waits for ever.
 *
 * northd is taken to look at a port only when the northbound row has changed, as its later versions
 * do: what a daemon writes in its stead must not outlive the handover, however old the copy was
 * that it was written from.
 */

#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "facts.h"
#include "handover.h"
#include "plan.h"

typedef enum { AT_NOBODY, AT_SRC, AT_DST } Where;

/* `requested-chassis` as an abstract value.  OLD: what was there before the handover. */
typedef enum { LIST_OLD, LIST_BOTH, LIST_TURNED, LIST_SRC, LIST_DST, LIST_FOLLOWED } List;

typedef struct {
    guint8 list;    /* List */
    guint8 marked;  /* carries the marker */
    guint8 resumed; /* ... with the destination's mark */
    guint8 twice;   /* Where: a side says that the guest runs there as well */
} Nb;

typedef struct {
    guint8 list;      /* List, as northd (or a daemon in its stead) has resolved it */
    guint8 marked;    /* northd copies external_ids */
    guint8 main;      /* Where: Port_Binding.chassis */
    guint8 dst_added; /* additional_chassis */
    guint8 src_added;
    guint8 opened; /* options:additional-chassis-activated */
} Sb;

typedef struct {
    guint8 up;      /* the process runs */
    guint8 state;   /* PfState, PF_STATE_INVALID: no handover */
    guint8 guest;   /* the last event about the guest, PF_N_EVENTS: none */
    guint8 settled; /* of a CMS: ended, and the lists are as they were */
    Nb nb;          /* its copies of the databases */
    Sb sb;
} Daemon;

/* The migration, as libvirt goes through it. */
typedef enum {
    M_PREPARE, /* the `migrate` hook waits */
    M_GATE,    /* QEMU has started at the destination, the `started` hook waits */
    M_COPY,    /* the guest runs at the source */
    M_PAUSED,  /* the guest stands still */
    M_RUNS,    /* it runs at the destination; the source doesn't know yet */
    M_LEFT,    /* the source is gone: a success */
    M_FAILING, /* given up; the destination's QEMU is still there */
    M_FAILED,  /* it is gone too, the guest runs at the source */
    M_SPLIT,   /* the finish reply was lost: it runs at both */
    M_DEAD,    /* the guest died before it ran at the destination */
} Phase;

typedef struct {
    Nb nb;
    Sb sb;
    Daemon src, dst;
    guint8 phase;      /* Phase */
    guint8 src_iface;  /* the source's interface exists */
    guint8 src_claims; /* ... and has its iface-id */
    guint8 dst_iface;
    guint8 old_is_pin; /* requested-chassis was the source; else absent */
    guint8 began;      /* the pre-plug has been committed */
    guint8 crashes;    /* still allowed */
    guint8 cms;        /* Cms */
    guint8 northd_due; /* the northbound row has changed since northd looked at it */
    guint8 plug_due;   /* the southbound half of the pre-plug is under way */
} World;

/* Who owns the lists. */
typedef enum {
    CMS_NONE,    /* portferry */
    CMS_FIRST,   /* a CMS, which has bound the port to both hosts before the migration */
    CMS_NOT_YET, /* a CMS that is slow; and the daemons have no northbound database */
} Cms;

G_STATIC_ASSERT(sizeof(World) < 64);

/* ---- the graph ---- */

static GHashTable *index_of; /* World* -> position + 1 */
static GPtrArray *worlds;
static GArray *edges_from; /* guint pairs: to, from */
static GArray *how_came;   /* per world: predecessor position and a static string */

typedef struct {
    guint to, from;
} Edge;

typedef struct {
    guint from;
    const char *step;
} Came;

static guint hash_world(gconstpointer p)
{
    const guint8 *b = p;
    guint64 h = G_GUINT64_CONSTANT(14695981039346656037);
    for (gsize i = 0; i < sizeof(World); i++) {
        h = (h ^ b[i]) * G_GUINT64_CONSTANT(1099511628211);
    }
    return (guint)(h ^ (h >> 32));
}

static gboolean equal_world(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(World)) == 0;
}

static guint current;

/* What is explored at a time: a port with a floating IP has many more states, and not all copies
 * are late at the same time then. */
static struct {
    gboolean floats;                 /* the port has a floating IP */
    gboolean nb_late[2], sb_late[2]; /* the copies of the daemon in a role */
} scope;

static void settle(World *w, PfRole role, int extra);

/* Gives the daemons what is not late. */
static void catch_up(World *w)
{
    for (PfRole role = PF_ROLE_SOURCE; role <= PF_ROLE_DESTINATION; role++) {
        Daemon *d = role == PF_ROLE_SOURCE ? &w->src : &w->dst;
        if (!scope.nb_late[role]) {
            d->nb = w->nb;
        }
        if (!scope.sb_late[role]) {
            d->sb = w->sb;
        }
        settle(w, role, -1);
    }
}

static void reach(const World *reached, const char *step)
{
    World caught_up = *reached;
    const World *w = &caught_up;
    guint to;

    if (scope.floats) {
        catch_up(&caught_up);
    }
    gpointer found = g_hash_table_lookup(index_of, w);

    if (found) {
        to = GPOINTER_TO_UINT(found) - 1;
    } else {
        World *copy = g_memdup2(w, sizeof *w);
        to = worlds->len;
        g_ptr_array_add(worlds, copy);
        g_hash_table_insert(index_of, copy, GUINT_TO_POINTER(to + 1));
        Came came = {current, step};
        g_array_append_val(how_came, came);
    }
    if (to != current) {
        Edge e = {to, current};
        g_array_append_val(edges_from, e);
    }
}

/* ---- the daemons ---- */

static PfListKind kind_of(const World *w, guint8 list)
{
    switch ((List)list) {
    case LIST_BOTH:
        return PF_LIST_BOTH;
    case LIST_TURNED:
        return PF_LIST_TURNED;
    case LIST_SRC:
        return PF_LIST_SRC;
    case LIST_DST:
        return PF_LIST_DST;
    case LIST_OLD:
        return w->old_is_pin ? PF_LIST_SRC : PF_LIST_FOREIGN;
    default:
        return w->old_is_pin ? PF_LIST_DST : PF_LIST_FOREIGN;
    }
}

static gboolean names_both(guint8 list)
{
    return list == LIST_BOTH || list == LIST_TURNED;
}

static Daemon *daemon_of(World *w, PfRole role)
{
    return role == PF_ROLE_SOURCE ? &w->src : &w->dst;
}

static void settle(World *w, PfRole role, int extra)
{
    Daemon *d = daemon_of(w, role);
    if (!d->up || d->state == PF_STATE_INVALID) {
        return;
    }
    PfPortFacts port = {
        .nb_marked = d->nb.marked,
        .nb_list = kind_of(w, d->nb.list),
        .nb_resumed = d->nb.resumed,
        .nb_src_too = d->nb.twice == AT_SRC,
        .nb_dst_too = d->nb.twice == AT_DST,
        .sb_marked = d->sb.marked,
        .sb_on_src = d->sb.main == AT_SRC,
        .sb_on_dst = d->sb.main == AT_DST,
        .sb_dst_added = d->sb.dst_added,
        .sb_src_added = d->sb.src_added,
        .sb_any_added = d->sb.dst_added || d->sb.src_added || names_both(d->sb.list),
        .sb_list = kind_of(w, d->sb.list),
        .sb_dst_opened = d->sb.opened,
        .ovs_claimed = role == PF_ROLE_SOURCE ? w->src_claims : w->dst_iface,
        .ovs_released = role == PF_ROLE_SOURCE && w->src_iface && !w->src_claims,
        .ovs_installed = role == PF_ROLE_DESTINATION && w->dst_iface && d->sb.dst_added,
    };
    if (w->cms && pf_state_info((PfState)d->state)->cms) {
        port.nb_marked = port.sb_marked = TRUE;
        port.nb_list = kind_of(w, d->sb.list);
        port.nb_resumed = FALSE;
    }
    PfWorld live = {TRUE, TRUE, TRUE, TRUE};
    guint64 facts = pf_facts(role, &live, &port, 1);
    if (extra >= 0) {
        d->state = (guint8)pf_handover_next((PfState)d->state, (PfEvent)extra);
    }
    d->state = (guint8)pf_settle((PfState)d->state, facts, (PfEvent)d->guest, NULL, NULL);
    if (pf_state_info((PfState)d->state)->ended) {
        d->guest = PF_N_EVENTS;
        d->settled = w->cms && d->sb.list == LIST_BOTH;
    }
}

/* Tells 'event' about the guest to the daemon in 'role'; and, as another possibility, loses it. */
static void tell(const World *w, PfRole role, PfEvent event, const char *step)
{
    World n = *w;
    Daemon *d = daemon_of(&n, role);
    if (d->up && d->state != PF_STATE_INVALID && !pf_state_info((PfState)d->state)->ended) {
        d->guest = (guint8)event;
        settle(&n, role, -1);
        reach(&n, step);
    }
    reach(w, step);
}

static void tell_both(const World *w, PfEvent to_src, PfEvent to_dst, const char *step)
{
    World n = *w;
    Daemon *s = &n.src;
    if (s->up && s->state != PF_STATE_INVALID && !pf_state_info((PfState)s->state)->ended) {
        s->guest = (guint8)to_src;
        settle(&n, PF_ROLE_SOURCE, -1);
        tell(&n, PF_ROLE_DESTINATION, to_dst, step);
    }
    tell(w, PF_ROLE_DESTINATION, to_dst, step);
}

/* What libvirt answers when the daemon asks where the guest is. */
static PfEvent answer(const World *w, PfRole role)
{
    if (role == PF_ROLE_DESTINATION) {
        switch ((Phase)w->phase) {
        case M_RUNS:
        case M_LEFT:
        case M_SPLIT:
            return PF_EV_GUEST_HERE;
        case M_FAILED:
        case M_DEAD:
            return PF_EV_GUEST_FAILED;
        default:
            return PF_N_EVENTS;
        }
    }
    switch ((Phase)w->phase) {
    case M_COPY:
        return w->src.state == PF_SRC_OPEN ? PF_EV_GUEST_UNPAUSED : PF_N_EVENTS;
    case M_PAUSED:
    case M_RUNS:
        return PF_EV_GUEST_PAUSED;
    case M_LEFT:
    case M_DEAD:
        return PF_EV_GUEST_LEFT;
    case M_FAILED:
    case M_FAILING:
    case M_SPLIT:
        return w->src.state == PF_SRC_OPEN || w->src.state == PF_SRC_RELEASE ||
                       w->src.state == PF_SRC_ORPHAN || w->src.state == PF_SRC_FINISH ||
                       w->src.state == PF_CMS_PAUSE
                   ? PF_EV_GUEST_BACK
                   : PF_N_EVENTS;
    default:
        return PF_N_EVENTS;
    }
}

static gboolean copy_goes_on(const World *w)
{
    return w->phase == M_PREPARE || w->phase == M_GATE || w->phase == M_COPY ||
           w->phase == M_PAUSED || w->phase == M_RUNS;
}

/* A write to the row that carries the marker; the verdict is the daemon's own. */
static void nb_write(const World *w, PfRole role, PfWrite write)
{
    if (!w->nb.marked) {
        return;
    }
    PfVerdict v = pf_plan_decide(write, role, kind_of(w, w->nb.list), w->nb.resumed, FALSE);
    World n = *w;
    if (v == PF_VERDICT_MARKER_ONLY) {
        n.nb.marked = n.nb.resumed = n.nb.twice = 0;
    } else if (v == PF_VERDICT_CHANGE) {
        switch (write) {
        case PF_WRITE_MARK:
            n.nb.resumed = 1;
            break;
        case PF_WRITE_TURN:
            n.nb.list = LIST_TURNED;
            break;
        case PF_WRITE_TURN_BACK:
            n.nb.list = LIST_BOTH;
            break;
        case PF_WRITE_COLLAPSE:
            n.nb.list = LIST_DST;
            n.nb.twice = 0;
            break;
        case PF_WRITE_ROLL_BACK:
            n.nb.list = LIST_SRC;
            n.nb.resumed = n.nb.twice = 0;
            break;
        case PF_WRITE_FOLLOW:
            n.nb = (Nb){.list = LIST_FOLLOWED};
            break;
        case PF_WRITE_PUT_BACK:
            n.nb = (Nb){.list = LIST_OLD};
            break;
        case PF_WRITE_TWICE:
            n.nb.twice = role == PF_ROLE_SOURCE ? AT_SRC : AT_DST;
            break;
        default:
            g_assert_not_reached();
        }
    } else {
        return;
    }
    n.northd_due |= n.nb.list != w->nb.list || n.nb.marked != w->nb.marked;
    reach(&n, "northbound write");
}

/* A daemon does northd's work, by its copies of both rows; the southbound one is verified. */
static void hasten(const World *w, const Daemon *d, guint goals)
{
    PfListKind list = kind_of(w, d->nb.list), now = kind_of(w, d->sb.list);
    gboolean dst_first = list == PF_LIST_TURNED;
    Where first = dst_first ? AT_DST : AT_SRC, second = dst_first ? AT_SRC : AT_DST;
    gboolean bound = d->sb.main == first || (dst_first ? d->sb.dst_added : d->sb.src_added);

    if (!d->nb.marked || !d->sb.marked || memcmp(&d->sb, &w->sb, sizeof w->sb) != 0 ||
        !pf_plan_hastens(goals, now, list) || !bound) {
        return;
    }
    World n = *w;
    n.sb.list = d->nb.list;
    if (names_both(d->nb.list) && n.sb.main == second) {
        n.sb.main = AT_NOBODY;
    }
    if (list != PF_LIST_TURNED) {
        n.sb.opened = 0;
    }
    reach(&n, "hasten");
}

/* The southbound half of the pre-plug comes to its end: it is written if it still fits, or not. */
static void plug_southbound(const World *w)
{
    World n = *w;

    n.plug_due = 0;
    reach(&n, "the southbound half of the pre-plug fails");
    if (w->sb.list == LIST_OLD && w->sb.main == AT_SRC) {
        n.sb.list = LIST_BOTH;
        n.sb.marked = 1;
        reach(&n, "the southbound half of the pre-plug");
    }
}

static void goals(const World *w, PfRole role)
{
    const Daemon *d = role == PF_ROLE_SOURCE ? &w->src : &w->dst;
    guint g = pf_handover_goals((PfState)d->state, (PfEvent)d->guest);
    World n = *w;

    if ((g & PF_GOAL_PREPLUG) && w->cms) {
        settle(&n, role, PF_EV_LEFT_TO_CMS);
        reach(&n, "left to the CMS");
    } else if ((g & PF_GOAL_PREPLUG) && !w->nb.marked && w->nb.list == LIST_OLD) {
        n.nb = (Nb){.list = LIST_BOTH, .marked = 1};
        n.began = n.northd_due = n.plug_due = 1;
        reach(&n, "pre-plug");
    }
    /* Both only while northd has the destination as an additional chassis. */
    n = *w;
    if ((g & PF_GOAL_OPEN) && (d->sb.marked || w->cms) && w->sb.list == LIST_BOTH &&
        !w->sb.opened) {
        n.sb.opened = 1;
        reach(&n, "open");
    }
    n = *w;
    if ((g & PF_GOAL_CLOSE) && w->sb.opened) {
        n.sb.opened = 0;
        reach(&n, "close");
    }
    n = *w;
    if ((g & PF_GOAL_RELEASE) && w->src_claims) {
        n.src_claims = 0;
        settle(&n, PF_ROLE_SOURCE, -1);
        reach(&n, "release");
    }
    n = *w;
    if ((g & PF_GOAL_RECLAIM) && w->src_iface && !w->src_claims) {
        n.src_claims = 1;
        settle(&n, PF_ROLE_SOURCE, -1);
        reach(&n, "reclaim");
    }
    hasten(w, d, g);
    if (scope.floats && (g & PF_GOAL_TURN) &&
        (d->sb.main == AT_DST || (d->sb.dst_added && d->sb.opened))) {
        nb_write(w, role, PF_WRITE_TURN);
    }
    if (g & PF_GOAL_TURN_BACK) {
        nb_write(w, role, PF_WRITE_TURN_BACK);
    }
    if (g & PF_GOAL_MARK) {
        nb_write(w, role, PF_WRITE_MARK);
    }
    if (g & PF_GOAL_COLLAPSE) {
        nb_write(w, role, PF_WRITE_COLLAPSE);
    }
    if (g & PF_GOAL_ROLL_BACK) {
        nb_write(w, role, PF_WRITE_ROLL_BACK);
    }
    if (g & PF_GOAL_FOLLOW) {
        nb_write(w, role, PF_WRITE_FOLLOW);
    }
    if (g & PF_GOAL_PUT_BACK) {
        nb_write(w, role, PF_WRITE_PUT_BACK);
    }
    if ((g & PF_GOAL_TWICE) && d->nb.twice != (role == PF_ROLE_SOURCE ? AT_SRC : AT_DST)) {
        nb_write(w, role, PF_WRITE_TWICE);
    }
}

/* Whether a daemon finds a handover that a CMS has begun, in what it sees. */
static gboolean cms_has_begun(const World *w, PfRole role)
{
    const Daemon *d = role == PF_ROLE_SOURCE ? &w->src : &w->dst;
    gboolean plugged = role == PF_ROLE_SOURCE ? w->src_claims : w->dst_iface;
    return w->cms && d->sb.list == LIST_BOTH && plugged && !d->settled;
}

/* Whether the other side is about to open the ports, which takes no time beside a CMS's. */
static gboolean is_opening(const World *w, PfRole role)
{
    const Daemon *other = role == PF_ROLE_SOURCE ? &w->dst : &w->src;
    return other->up && other->state != PF_STATE_INVALID &&
           pf_state_info((PfState)other->state)->goals & PF_GOAL_OPEN && w->sb.list == LIST_BOTH &&
           !w->sb.opened;
}

static void step_daemon(const World *w, PfRole role)
{
    World n = *w;
    Daemon *d = daemon_of(&n, role);

    if (!d->up) {
        d->up = 1;
        reach(&n, "daemon starts");
        return;
    }
    if (w->crashes > 0) {
        d->up = 0;
        d->state = PF_STATE_INVALID;
        d->guest = PF_N_EVENTS;
        d->settled = 0;
        n.crashes--;
        reach(&n, "daemon crashes");
        if (role == PF_ROLE_DESTINATION && w->plug_due) {
            plug_southbound(&n); /* nothing of it is left when the daemon is back */
        }
    }

    /* The copies of the databases catch up; the two do it independently of each other. */
    n = *w;
    if (memcmp(&d->nb, &w->nb, sizeof w->nb) != 0) {
        d->nb = w->nb;
        settle(&n, role, -1);
        reach(&n, "sees northbound");
    }
    n = *w;
    if (memcmp(&d->sb, &w->sb, sizeof w->sb) != 0) {
        d->sb = w->sb;
        d->settled = d->settled && w->sb.list == LIST_BOTH;
        settle(&n, role, -1);
        reach(&n, "sees southbound");
    }

    /* A marker that names us, and no handover of ours: taken up. */
    n = *w;
    gboolean idle = d->state == PF_STATE_INVALID || pf_state_info((PfState)d->state)->ended;
    if (idle) {
        gboolean released = role == PF_ROLE_SOURCE && w->src_iface && !w->src_claims;
        if (d->nb.marked || released) {
            d->state = (guint8)pf_handover_first(role, d->nb.marked ? PF_ORIGIN_MARKER
                                                                    : PF_ORIGIN_INTERFACE);
            d->guest = PF_N_EVENTS;
            settle(&n, role, -1);
            reach(&n, "takes up");
        }
        if (cms_has_begun(w, role)) {
            d->state = (guint8)pf_handover_first(role, PF_ORIGIN_LISTS);
            d->guest = PF_N_EVENTS;
            settle(&n, role, -1);
            reach(&n, "takes up what the CMS has begun");
        }
        return;
    }

    /* libvirt is asked. */
    n = *w;
    PfEvent said = answer(w, role);
    if (said != PF_N_EVENTS && said != (PfEvent)d->guest) {
        d->guest = (guint8)said;
        settle(&n, role, -1);
        reach(&n, "asks libvirt");
    }

    /* Time passes; a long time is over only when libvirt has been asked and had no news. */
    n = *w;
    PfLimit limit = pf_state_info((PfState)d->state)->limit;
    gboolean no_news = said == PF_N_EVENTS || said == (PfEvent)d->guest;
    /* Beside a CMS's time, no copy of a database is old, and no opening of the other side's late.
     */
    gboolean calm = !w->cms || (memcmp(&d->sb, &w->sb, sizeof w->sb) == 0 && !is_opening(w, role));
    const PfPortFacts port = {.nb_src_too = d->nb.twice == AT_SRC,
                              .nb_dst_too = d->nb.twice == AT_DST};
    gboolean twice = pf_runs_twice((PfState)d->state, (PfEvent)d->guest, &port, 1);
    gboolean may_end = limit == PF_LIMIT_PREPLUG || limit == PF_LIMIT_RELEASE ||
                       (limit == PF_LIMIT_TEARDOWN && w->phase != M_RUNS && no_news && !twice) ||
                       (limit == PF_LIMIT_CMS && w->phase != M_RUNS && no_news && calm) ||
                       (limit == PF_LIMIT_INCOMING && !copy_goes_on(w) && no_news && calm);
    /* The southbound half of the pre-plug has been answered, or given up, long before. */
    may_end = may_end && !(role == PF_ROLE_SOURCE && w->plug_due);
    if (may_end) {
        settle(&n, role, PF_EV_DEADLINE);
        reach(&n, "deadline");
    }
    if (role == PF_ROLE_DESTINATION && w->plug_due) {
        plug_southbound(w);
    } else {
        goals(w, role);
    }
}

/* ---- libvirt ---- */

static void dst_is_stopped(World *n)
{
    n->dst_iface = 0;
}

static void fail(const World *w, gboolean src_was_paused, const char *step)
{
    World n = *w;
    n.phase = M_FAILING;
    if (src_was_paused) {
        tell(&n, PF_ROLE_SOURCE, PF_EV_GUEST_BACK, step);
    } else {
        reach(&n, step);
    }
}

static void step_libvirt(const World *w)
{
    World n = *w;
    const Daemon *d = &w->dst;
    PfGate gate = d->up && d->state != PF_STATE_INVALID ? pf_state_info((PfState)d->state)->gate
                                                        : PF_GATE_PASS;

    switch ((Phase)w->phase) {
    case M_PREPARE:
        /* The hook returns when the pre-plug is committed (or when there is no daemon). */
        if (!d->up || (d->state != PF_STATE_INVALID && !w->plug_due &&
                       pf_state_info((PfState)d->state)->limit != PF_LIMIT_PREPLUG)) {
            if (gate == PF_GATE_REFUSE) {
                n.phase = M_FAILED;
                reach(&n, "migrate hook refuses");
                return;
            }
            n.phase = M_GATE;
            n.dst_iface = 1;
            settle(&n, PF_ROLE_DESTINATION, -1);
            reach(&n, "QEMU starts");
        }
        /* Nothing ever tells the daemon of this one. */
        n = *w;
        n.phase = M_FAILED;
        reach(&n, "prepare fails silently");
        break;
    case M_GATE:
        if (gate == PF_GATE_PASS) {
            n.phase = M_COPY;
            reach(&n, "gate passed");
        }
        n = *w;
        n.phase = M_FAILED;
        dst_is_stopped(&n);
        tell(&n, PF_ROLE_DESTINATION, PF_EV_GUEST_FAILED, "start fails");
        break;
    case M_COPY:
        n.phase = M_PAUSED;
        tell(&n, PF_ROLE_SOURCE, PF_EV_GUEST_PAUSED, "guest pauses");
        fail(w, FALSE, "cancelled in the copy");
        n = *w;
        n.phase = M_DEAD;
        n.src_iface = n.src_claims = 0;
        dst_is_stopped(&n);
        tell_both(&n, PF_EV_GUEST_FAILED, PF_EV_GUEST_FAILED, "QEMU at the source dies");
        break;
    case M_PAUSED:
        n.phase = M_RUNS;
        tell(&n, PF_ROLE_DESTINATION, PF_EV_GUEST_HERE, "guest runs at the destination");
        fail(w, TRUE, "fails while paused");
        n = *w;
        n.phase = M_COPY;
        tell(&n, PF_ROLE_SOURCE, PF_EV_GUEST_UNPAUSED, "somebody resumes it at the source");
        break;
    case M_RUNS:
        n.phase = M_LEFT;
        n.src_iface = n.src_claims = 0;
        tell(&n, PF_ROLE_SOURCE, PF_EV_GUEST_LEFT, "source ends");
        n = *w;
        n.phase = M_SPLIT;
        tell(&n, PF_ROLE_SOURCE, PF_EV_GUEST_BACK, "finish reply lost");
        /* The destination fails after it ran, and the source takes the guest back. */
        n = *w;
        n.phase = M_FAILED;
        dst_is_stopped(&n);
        tell_both(&n, PF_EV_GUEST_BACK, PF_EV_GUEST_FAILED, "destination dies in finish");
        break;
    case M_FAILING:
        n.phase = M_FAILED;
        dst_is_stopped(&n);
        tell(&n, PF_ROLE_DESTINATION, PF_EV_GUEST_FAILED, "destination is stopped");
        break;
    case M_SPLIT:
        /* Somebody ends it where it does not have the port. */
        if (w->sb.main == AT_SRC && w->sb.list == LIST_SRC) {
            n.phase = M_FAILED;
            dst_is_stopped(&n);
            tell(&n, PF_ROLE_DESTINATION, PF_EV_GUEST_FAILED, "destroyed at the destination");
        } else if (w->sb.main == AT_DST && w->sb.list == LIST_DST) {
            n.phase = M_LEFT;
            n.src_iface = n.src_claims = 0;
            tell(&n, PF_ROLE_SOURCE, PF_EV_GUEST_FAILED, "destroyed at the source");
        }
        break;
    default:
        break;
    }
}

/* ---- the CMS ---- */

static void step_cms(const World *w)
{
    gboolean ran = w->phase == M_LEFT || w->phase == M_SPLIT;
    gboolean failed = w->phase == M_FAILED || w->phase == M_DEAD;
    World n = *w;

    if (!w->cms) {
        return;
    }
    if (w->nb.list == LIST_OLD && w->phase == M_PREPARE) {
        n.nb.list = LIST_BOTH;
        n.began = n.northd_due = 1;
        reach(&n, "the CMS names both");
    }
    if (w->nb.list == LIST_BOTH && ran) {
        n.nb.list = LIST_DST;
        n.northd_due = 1;
        reach(&n, "the CMS names the destination alone");
    }
    if (w->nb.list == LIST_BOTH && failed) {
        n.nb.list = LIST_SRC;
        n.northd_due = 1;
        reach(&n, "the CMS names the source alone");
    }
}

/* ---- OVN ---- */

static gboolean may_bind(const World *w, Where who, gboolean *as_main)
{
    guint8 list = w->sb.list;
    gboolean open_to_all = (list == LIST_OLD || list == LIST_FOLLOWED) && !w->old_is_pin;
    Where first = AT_SRC;

    if (list == LIST_DST || list == LIST_TURNED || (list == LIST_FOLLOWED && w->old_is_pin)) {
        first = AT_DST;
    }
    *as_main = open_to_all || who == first;
    return *as_main || names_both(list);
}

static void step_ovn(const World *w)
{
    World n = *w;

    if (w->northd_due) {
        n.northd_due = 0;
        n.sb.list = w->nb.list;
        n.sb.marked = w->nb.marked;
        if (!names_both(n.sb.list)) {
            n.sb.opened = 0; /* northd keeps the flag only with an additional chassis */
        }
        reach(&n, "northd");
    }
    /* The guest's own RARP opens the port: ovn-controller at the destination writes the flag. */
    if ((w->phase == M_RUNS || w->phase == M_LEFT || w->phase == M_SPLIT) && w->sb.dst_added &&
        w->sb.list == LIST_BOTH && !w->sb.opened) {
        n = *w;
        n.sb.opened = 1;
        reach(&n, "RARP");
    }
    for (Where who = AT_SRC; who <= AT_DST; who++) {
        gboolean claims = who == AT_SRC ? w->src_claims : w->dst_iface;
        gboolean as_main;
        gboolean may = claims && may_bind(w, who, &as_main);
        n = *w;
        guint8 *added = who == AT_SRC ? &n.sb.src_added : &n.sb.dst_added;
        if (may && as_main) {
            /* An unpinned port is taken from the other: the tug of war of the baseline.  It ends
             * when one of the two interfaces goes; to keep the graph finite a chassis takes it
             * only when nobody has it. */
            if (w->sb.main == AT_NOBODY) {
                n.sb.main = (guint8)who;
            }
            *added = 0;
        } else {
            if (w->sb.main == who) {
                n.sb.main = AT_NOBODY;
            }
            *added = (guint8)may;
        }
        reach(&n,
              who == AT_SRC ? "ovn-controller at the source" : "ovn-controller at the destination");
    }
}

/* ---- the question ---- */

static gboolean at_rest(const World *w)
{
    gboolean over =
        w->phase == M_LEFT || w->phase == M_FAILED || w->phase == M_SPLIT || w->phase == M_DEAD;
    gboolean taken_up = !w->src_iface || w->src_claims; /* or the source has work to do */

    if (w->cms && (memcmp(&w->src.sb, &w->sb, sizeof(Sb)) != 0 ||
                   memcmp(&w->dst.sb, &w->sb, sizeof(Sb)) != 0 ||
                   cms_has_begun(w, PF_ROLE_SOURCE) || cms_has_begun(w, PF_ROLE_DESTINATION))) {
        return FALSE;
    }
    return over && taken_up && !w->nb.marked && !w->sb.marked && !w->northd_due && w->src.up &&
           w->dst.up && memcmp(&w->src.nb, &w->nb, sizeof(Nb)) == 0 &&
           memcmp(&w->dst.nb, &w->nb, sizeof(Nb)) == 0 &&
           (w->src.state == PF_STATE_INVALID || pf_state_info((PfState)w->src.state)->ended) &&
           (w->dst.state == PF_STATE_INVALID || pf_state_info((PfState)w->dst.state)->ended);
}

/* The promise where the lists are a CMS's. */
static gboolean cms_promise_holds(const World *w)
{
    gboolean asleep = w->nb.list == LIST_BOTH;

    if (w->nb.marked || w->nb.resumed || (w->src_iface && !w->src_claims)) {
        return FALSE; /* nothing of ours */
    }
    if (!asleep && (w->sb.dst_added || w->sb.opened)) {
        return FALSE;
    }
    switch ((Phase)w->phase) {
    case M_LEFT:
        /* Its turn is over: it has, or has not; the guest's network is there in either case. */
        return asleep ? w->sb.dst_added && w->sb.opened
                      : w->sb.main == AT_DST || w->nb.list == LIST_OLD;
    case M_FAILED:
        return w->sb.main == AT_SRC && !w->sb.opened && !w->sb.dst_added;
    case M_DEAD:
        return w->sb.main == AT_NOBODY;
    default:
        return w->sb.main != AT_NOBODY || w->sb.opened;
    }
}

/* The promise, for a world at rest in which OVN has caught up. */
static gboolean promise_holds(const World *w)
{
    if (w->cms && w->began) {
        return cms_promise_holds(w);
    }
    if (!w->began) {
        return TRUE; /* no daemon when libvirt called: what happens then is libvirt's and OVN's */
    }
    if (w->sb.list != w->nb.list || w->sb.dst_added || w->sb.src_added || w->sb.opened ||
        w->nb.resumed) {
        return FALSE;
    }
    if (w->src_iface && !w->src_claims && w->phase != M_SPLIT) {
        return FALSE; /* the guest at the source has lost its port */
    }
    switch ((Phase)w->phase) {
    case M_LEFT:
        return w->sb.main == AT_DST &&
               (w->nb.list == LIST_FOLLOWED || (w->nb.list == LIST_OLD && !w->old_is_pin));
    case M_FAILED:
        return w->sb.main == AT_SRC &&
               (w->nb.list == LIST_OLD || (w->nb.list == LIST_FOLLOWED && !w->old_is_pin));
    case M_DEAD:
        return w->sb.main == AT_NOBODY;
    default:
        return w->sb.main != AT_NOBODY; /* it runs twice: one of the two has the port */
    }
}

static gboolean ovn_is_quiet(const World *w)
{
    guint before = edges_from->len, known = worlds->len;
    step_ovn(w);
    gboolean quiet = edges_from->len == before && worlds->len == known;
    g_array_set_size(edges_from, before);
    g_assert(worlds->len == known); /* explored before */
    return quiet;
}

static void print_world(guint at)
{
    const World *w = g_ptr_array_index(worlds, at);
    const Came *c = &g_array_index(how_came, Came, at);
    static const char *const where[] = {"-", "src", "dst"};
    static const char *const lists[] = {"old", "both", "turned", "src", "dst", "followed"};
    static const char *const phases[] = {"prepare", "gate",    "copy",   "paused", "runs",
                                         "left",    "failing", "failed", "split",  "dead"};
    g_printerr("%-36s migration=%s nb=%s%s%s sb=%s%s main=%s%s%s%s src=%s%s dst=%s%s src-if=%d%d "
               "dst-if=%d\n",
               c->step, phases[w->phase], lists[w->nb.list], w->nb.marked ? "+marker" : "",
               w->nb.resumed ? "+resumed" : "", lists[w->sb.list], w->sb.marked ? "+marker" : "",
               where[w->sb.main], w->sb.dst_added ? "+dst" : "", w->sb.src_added ? "+src" : "",
               w->sb.opened ? "+open" : "", w->src.up ? "" : "down:", pf_state_name(w->src.state),
               w->dst.up ? "" : "down:", pf_state_name(w->dst.state), w->src_iface, w->src_claims,
               w->dst_iface);
}

static void print_path(guint at)
{
    g_autoptr(GArray) path = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint i = at;; i = g_array_index(how_came, Came, i).from) {
        g_array_append_val(path, i);
        if (i == 0) {
            break;
        }
    }
    for (guint i = path->len; i > 0; i--) {
        print_world(g_array_index(path, guint, i - 1));
    }
}

static void explore(gboolean pin, guint crashes, Cms cms)
{
    index_of = g_hash_table_new(hash_world, equal_world);
    worlds = g_ptr_array_new_with_free_func(g_free);
    edges_from = g_array_new(FALSE, FALSE, sizeof(Edge));
    how_came = g_array_new(FALSE, FALSE, sizeof(Came));
    current = 0;

    World first;
    memset(&first, 0, sizeof first);
    first.old_is_pin = (guint8)pin;
    first.crashes = (guint8)crashes;
    first.sb.main = AT_SRC;
    first.src_iface = first.src_claims = 1;
    first.src.up = first.dst.up = 1;
    first.src.guest = first.dst.guest = PF_N_EVENTS;
    first.src.sb = first.dst.sb = first.sb;
    first.cms = (guint8)cms;
    if (cms == CMS_FIRST) {
        first.nb.list = LIST_BOTH;
        first.began = first.northd_due = 1;
    }
    first.dst.state = (guint8)pf_handover_first(
        PF_ROLE_DESTINATION, cms == CMS_NOT_YET ? PF_ORIGIN_HOOK_CMS : PF_ORIGIN_HOOK);
    reach(&first, "the hook calls");

    for (current = 0; current < worlds->len; current++) {
        World w = *(World *)g_ptr_array_index(worlds, current);
        step_daemon(&w, PF_ROLE_SOURCE);
        step_daemon(&w, PF_ROLE_DESTINATION);
        step_libvirt(&w);
        step_ovn(&w);
        step_cms(&w);
    }

    /* From the good worlds backwards: every world must be found. */
    g_autofree guint8 *good = g_new0(guint8, worlds->len);
    g_autoptr(GArray) todo = g_array_new(FALSE, FALSE, sizeof(guint));
    guint rests = 0;
    for (guint i = 0; i < worlds->len; i++) {
        const World *w = g_ptr_array_index(worlds, i);
        current = i;
        if (!at_rest(w) || !ovn_is_quiet(w)) {
            continue;
        }
        rests++;
        if (!promise_holds(w)) {
            print_path(i);
            g_error("the promise is broken at rest");
        }
        good[i] = 1;
        g_array_append_val(todo, i);
    }
    g_autofree guint *start = g_new0(guint, worlds->len + 1);
    for (guint i = 0; i < edges_from->len; i++) {
        start[g_array_index(edges_from, Edge, i).to + 1]++;
    }
    for (guint i = 0; i < worlds->len; i++) {
        start[i + 1] += start[i];
    }
    g_autofree guint *from = g_new(guint, edges_from->len + 1);
    g_autofree guint *fill = g_memdup2(start, sizeof(guint) * (worlds->len + 1));
    for (guint i = 0; i < edges_from->len; i++) {
        Edge e = g_array_index(edges_from, Edge, i);
        from[fill[e.to]++] = e.from;
    }
    for (guint k = 0; k < todo->len; k++) {
        guint at = g_array_index(todo, guint, k);
        for (guint j = start[at]; j < start[at + 1]; j++) {
            if (!good[from[j]]) {
                good[from[j]] = 1;
                g_array_append_val(todo, from[j]);
            }
        }
    }
    for (guint i = 0; i < worlds->len; i++) {
        if (!good[i]) {
            print_path(i);
            g_error("from here the handover can't come to rest");
        }
    }
    g_test_message("pin %d, crashes %u, CMS %d: %u worlds, %u steps, %u at rest, all good", pin,
                   crashes, (int)cms, worlds->len, edges_from->len, rests);

    g_hash_table_unref(index_of);
    g_ptr_array_unref(worlds);
    g_array_unref(edges_from);
    g_array_unref(how_came);
}

static void test_plain(gconstpointer pin)
{
    scope.floats = FALSE;
    scope.nb_late[0] = scope.nb_late[1] = scope.sb_late[0] = scope.sb_late[1] = TRUE;
    explore(pin != NULL, 0, CMS_NONE);
    explore(pin != NULL, 1, CMS_NONE);
}

static void test_floating(gconstpointer pin)
{
    scope.floats = TRUE;
    scope.nb_late[0] = scope.nb_late[1] = TRUE;
    scope.sb_late[0] = scope.sb_late[1] = FALSE;
    explore(pin != NULL, 0, CMS_NONE);
    explore(pin != NULL, 1, CMS_NONE);
    scope.nb_late[0] = scope.nb_late[1] = FALSE;
    for (PfRole late = PF_ROLE_SOURCE; late <= PF_ROLE_DESTINATION; late++) {
        scope.sb_late[late] = TRUE;
        explore(pin != NULL, 0, CMS_NONE);
        explore(pin != NULL, 1, CMS_NONE);
        scope.sb_late[late] = FALSE;
    }
}

static void test_cms(void)
{
    scope.floats = FALSE;
    scope.nb_late[0] = scope.nb_late[1] = scope.sb_late[0] = scope.sb_late[1] = TRUE;
    for (guint crashes = 0; crashes <= 2; crashes++) {
        explore(TRUE, crashes, CMS_FIRST);
        explore(TRUE, crashes, CMS_NOT_YET);
    }
}

int main(int argc, char **argv)
{
    static const int pinned = 1;

    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/model/port-not-pinned", NULL, test_plain);
    g_test_add_data_func("/model/port-pinned-to-the-source", &pinned, test_plain);
    g_test_add_data_func("/model/floating-ip/port-not-pinned", NULL, test_floating);
    g_test_add_data_func("/model/floating-ip/port-pinned-to-the-source", &pinned, test_floating);
    g_test_add_func("/model/lists-of-a-cms", test_cms);
    return g_test_run();
}
