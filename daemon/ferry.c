/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ferry.h"

#include <string.h>
#include <syslog.h>

#include "crash.h"
#include "error.h"
#include "facts.h"
#include "guest.h"
#include "log.h"
#include "message-ids.h"
#include "residence.h"
#include "tap.h"
#include "text.h"
#include "waiting.h"

/* How often an open handover is looked at even if nothing seems to happen, and how long one write
 * or one question may take.  A goal that failed is tried again at that pace. */
#define CHECK_INTERVAL_S 1
#define CHECKS_PER_QUESTION 5
#define WRITE_TIMEOUT_MS 5000
#define QUESTION_TIMEOUT_US (5 * G_USEC_PER_SEC)

/* How many packets may wait for the guest in the destination's tap: a second and a half at 10,000
 * a second.  The kernel's own 1,000, to which it goes back afterwards, are over after a tenth. */
#define QUEUE_SWITCHOVER 16384
#define QUEUE_USUAL 1000

/* How long the switch may go on with flows that have been replaced: its revalidators look at their
 * cache at least twice a second; most often they are done after some milliseconds. */
#define STALE_FLOWS_MS 500
#define STALE_FLOWS_FIRST_MS 10

/* Beside the goals of the state machine. */
#define HASTENING (1u << 31)

typedef enum {
    BARRIER_NOT_NEEDED,
    BARRIER_NEEDED,
    BARRIER_ASKED,
    BARRIER_WAITING,
} Barrier;

struct PfFerry {
    const PfFerryEnv *env; /* NULL: forgotten; only answers that are still under way hold it */
    PfRole role;
    PfState state;
    PfMarker marker; /* strings owned; 'resumed' and the prior values are the row's business */
    char *domain;
    char **ports;
    char **macs; /* as many as ports */
    guint n_ports;
    PfPortFacts *facts;

    gboolean chassis_known;
    gboolean chassis_missing; /* ... that one of them doesn't exist */
    gboolean chassis_asked;
    PfSbChassis source, destination;

    PfEvent guest; /* the last word about the guest; PF_N_EVENTS: none */
    gint64 guest_at;
    PfEvent override; /* PF_EV_ACTIVATE, PF_EV_ROLLBACK, or PF_N_EVENTS */
    guint in_flight;  /* goals that an adapter is at work on, and HASTENING */
    gboolean preplug_tried;
    gboolean cms;      /* a CMS runs the handover */
    gboolean watching; /* ... and the southbound rows of its ports are replicated */

    Barrier barrier;
    gint64 barrier_cfg;

    PfResidence *residence;
    gboolean hasten_refused;

    PfDomainPolicy policy; /* the domain's own */

    guint deadline_id, check_id, gate_id, hold_id, taps_id;
    /* When their time is over, for people (CLOCK_REALTIME); 0: not armed. */
    gint64 deadline_ends, gate_ends, hold_ends;
    gint64 gate_until; /* monotonic: the hook need not give up before; 0: as its limit says */
    gint64 entered;    /* monotonic: the state */
    gboolean held;
    gboolean gate_passed;
    gboolean left_behind, clearing; /* an interface, by libvirt; it is being removed */
    guint checks;
    guint64 question;
    gboolean question_ends; /* the state's time is over if the answer brings no news */

    PfBusCall *begin_call, *gate_call;

    GArray *phases; /* of PfPhaseView */
    PfPortView *port_views;
    char *last_error;
    GHashTable *said; /* errors that the journal has, of this state */
    char *waiting;
    PfMeasures measures;
    PfHandoverView view;
};

static void pursue(PfFerry *f);

static void ferry_clear(gpointer data)
{
    PfFerry *f = data;
    g_free(f->marker.source);
    g_free(f->marker.destination);
    g_free(f->marker.domain);
    g_free(f->marker.handover);
    g_free(f->domain);
    g_strfreev(f->ports);
    g_strfreev(f->macs);
    g_free(f->facts);
    pf_sb_chassis_clear(&f->source);
    pf_sb_chassis_clear(&f->destination);
    g_array_unref(f->phases);
    g_free(f->port_views);
    g_free(f->last_error);
    g_hash_table_unref(f->said);
    g_free(f->waiting);
    pf_domain_policy_clear(&f->policy);
}

/* Whatever is under way holds the ferry until its answer has come. */
static PfFerry *hold(PfFerry *f)
{
    return g_rc_box_acquire(f);
}

static void let_go(PfFerry *f)
{
    g_rc_box_release_full(f, ferry_clear);
}

/* ---- the domain's own policy, or the configuration's ---- */

static gint64 ready_timeout(const PfFerry *f)
{
    return f->policy.ready_timeout ? f->policy.ready_timeout : f->env->config->ready_timeout;
}

static PfPolicy on_not_ready(const PfFerry *f)
{
    return f->policy.has_on_not_ready ? f->policy.on_not_ready : f->env->config->on_not_ready;
}

/* ---- what people see ---- */

static void say(PfFerry *f, int priority, const char *message_id, const char *text)
{
    g_autofree char *ports = g_strjoinv(",", f->ports);
    const PfLogFields fields = {
        .message_id = message_id,
        .domain = f->domain,
        .domain_uuid = f->marker.domain,
        .handover = f->marker.handover,
        .port = ports,
        .phase = f->view.phase,
        .role = f->view.role,
        .source = f->marker.source,
        .destination = f->marker.destination,
    };
    g_autofree char *name = pf_printable(f->domain ? f->domain : f->marker.domain);
    pf_log(priority, &fields, "domain '%s', port %s: %s", name, ports, text);
}

/* Keeps an error for people to see.  The same one again is not news, nor is it worth an entry in
 * the journal each time when several take turns, once a second. */
static void set_error_text(PfFerry *f, const char *text)
{
    if (g_strcmp0(text, f->last_error) == 0) {
        return;
    }
    g_free(f->last_error);
    f->last_error = g_strdup(text);
    f->view.last_error = f->last_error;
    if (g_hash_table_add(f->said, g_strdup(text))) {
        say(f, LOG_WARNING, PF_MESSAGE_HANDOVER_FAILED, text);
    }
    f->env->changed(f, PF_HANDOVER_ERROR, f->env->data);
}

static void set_error(PfFerry *f, const char *what, const GError *error)
{
    g_autofree char *story = pf_error_describe(error);
    g_autofree char *text = g_strdup_printf("%s: %s", what, story);

    set_error_text(f, text);
}

/* Where it stands, for words about it. */
static PfWaiting where(const PfFerry *f)
{
    const PfFerryEnv *env = f->env;
    return (PfWaiting){
        .state = f->state,
        .held = f->held,
        .by_hand = f->marker.by_hand,
        .gate_passed = f->gate_passed,
        .cms = f->cms,
        .source = f->marker.source,
        .destination = f->marker.destination,
        .nb_live = env->nb && pf_nb_get_state(env->nb) == PF_OVSDB_SYNCED,
        .sb_live = env->sb && pf_sb_get_state(env->sb) == PF_OVSDB_SYNCED,
        .ovs_live = env->ovs && pf_ovs_get_state(env->ovs) == PF_OVSDB_SYNCED,
        .ports = (const char *const *)f->ports,
        .facts = f->facts,
        .n_ports = f->n_ports,
    };
}

static gint64 earlier(gint64 a, gint64 b)
{
    return !a ? b : !b ? a : MIN(a, b);
}

static void show_waiting(PfFerry *f)
{
    PfWaiting now = where(f);
    g_autofree char *waiting = pf_waiting_describe(&now);
    gint64 deadline = f->held ? f->hold_ends : earlier(f->deadline_ends, f->gate_ends);
    guint what = 0;

    if (g_strcmp0(waiting, f->waiting) != 0) {
        g_free(f->waiting);
        f->waiting = g_steal_pointer(&waiting);
        f->view.waiting = f->waiting;
        what |= PF_HANDOVER_WAITING;
    }
    if (deadline != f->view.deadline_us) {
        f->view.deadline_us = deadline;
        what |= PF_HANDOVER_DEADLINE;
    }
    if (what) {
        f->env->changed(f, (PfHandoverChange)what, f->env->data);
    }
}

static const char *phase_message(PfState state)
{
    static const char *const noteworthy[PF_N_STATES] = {
        [PF_DST_READY] = PF_MESSAGE_HANDOVER_READY,
        [PF_DST_OPEN] = PF_MESSAGE_HANDOVER_OPENED,
        [PF_SRC_OPEN] = PF_MESSAGE_HANDOVER_OPENED,
        [PF_CMS_READY] = PF_MESSAGE_HANDOVER_READY,
        [PF_CMS_OPEN] = PF_MESSAGE_HANDOVER_OPENED,
        [PF_CMS_PAUSE] = PF_MESSAGE_HANDOVER_OPENED,
        [PF_DST_ACTIVE] = PF_MESSAGE_HANDOVER_ACTIVATED,
        [PF_ENDED_DONE] = PF_MESSAGE_HANDOVER_FINISHED,
        [PF_ENDED_UNDONE] = PF_MESSAGE_HANDOVER_ROLLED_BACK,
        [PF_ENDED_UNFINISHED] = PF_MESSAGE_HANDOVER_UNFINISHED,
    };
    return noteworthy[state] ? noteworthy[state] : PF_MESSAGE_PHASE_CHANGED;
}

static void enter_phase(PfFerry *f, PfState from, PfEvent why)
{
    gint64 now = g_get_real_time();
    gint64 before =
        f->phases->len ? g_array_index(f->phases, PfPhaseView, f->phases->len - 1).time_us : now;
    PfPhaseView phase = {.phase = pf_state_info(f->state)->phase, .time_us = now};
    const char *old = f->view.phase;

    g_array_append_val(f->phases, phase);
    f->view.phase = phase.phase;
    f->view.phases = (const PfPhaseView *)(gpointer)f->phases->data;
    f->view.n_phases = f->phases->len;
    f->entered = g_get_monotonic_time();
    g_hash_table_remove_all(f->said);
    if (pf_ferry_is_ended(f)) {
        f->view.ended_us = now;
        f->view.outcome = f->view.phase;
    }

    g_autofree char *ports = g_strjoinv(",", f->ports);
    g_autofree char *name = pf_printable(f->domain ? f->domain : f->marker.domain);
    const PfLogFields fields = {
        .message_id = phase_message(f->state),
        .domain = f->domain,
        .domain_uuid = f->marker.domain,
        .handover = f->marker.handover,
        .port = ports,
        .phase = phase.phase,
        .phase_old = old,
        .role = f->view.role,
        .source = f->marker.source,
        .destination = f->marker.destination,
        .duration_us = now - before,
    };
    pf_log(LOG_INFO, &fields, "domain '%s', port %s: %s%s%s (%s, handover %s from %s to %s)", name,
           ports, phase.phase, from != PF_STATE_INVALID ? " by " : "",
           from != PF_STATE_INVALID ? pf_event_name(why) : "", f->view.role, f->marker.handover,
           f->marker.source, f->marker.destination);
    pf_crash_at_state(f->state);
}

static const char *port_state(const PfFerry *f, const PfPortFacts *p)
{
    if (!p->sb_marked) {
        return pf_ferry_is_ended(f) ? "released" : "unknown";
    }
    if (p->sb_on_dst) {
        return "active";
    }
    if (p->sb_dst_opened) {
        return "open";
    }
    if (p->sb_dst_added) {
        return f->role == PF_ROLE_SOURCE || p->ovs_installed ? "ready" : "bound";
    }
    return p->sb_on_src ? "at-source" : "unbound";
}

static void show_ports(PfFerry *f)
{
    gboolean changed = FALSE;
    for (guint i = 0; i < f->n_ports; i++) {
        const char *state = port_state(f, &f->facts[i]);
        if (g_strcmp0(state, f->port_views[i].state) != 0) {
            f->port_views[i].state = state;
            changed = TRUE;
        }
    }
    if (changed) {
        f->env->changed(f, PF_HANDOVER_PORTS, f->env->data);
    }
}

/* ---- calls that wait ---- */

static void begin_call_gone(PfBusCall *call, gpointer data)
{
    PfFerry *f = data;
    if (f->begin_call == call) {
        f->begin_call = NULL;
        pf_bus_call_reply(call);
    }
}

static void gate_call_gone(PfBusCall *call, gpointer data)
{
    PfFerry *f = data;
    if (f->gate_call == call) {
        f->gate_call = NULL;
        pf_bus_call_reply(call);
    }
}

static void answer(PfFerry *f, PfBusCall **call, const GError *error)
{
    PfBusCall *c = g_steal_pointer(call);
    pf_bus_call_set_gone(c, NULL, NULL);
    if (error) {
        pf_bus_call_fail(c, error);
    } else {
        pf_bus_call_reply(c);
    }
    if (error) {
        say(f, LOG_WARNING, PF_MESSAGE_MIGRATION_REFUSED, error->message);
    }
}

static GError *refusal(const PfFerry *f)
{
    GError *error = NULL;
    g_autofree char *ports = g_strjoinv(", ", f->ports);
    pf_error_set(&error, PF_ERROR_NOT_READY, f->domain, ports, "%s",
                 f->last_error ? f->last_error : "the handover was rolled back");
    return error;
}

static void answer_calls(PfFerry *f)
{
    PfGate gate = pf_state_info(f->state)->gate;
    gboolean proceed = !f->marker.by_hand && on_not_ready(f) == PF_POLICY_PROCEED;
    g_autoptr(GError) error = gate == PF_GATE_REFUSE && !proceed ? refusal(f) : NULL;

    /* The row may be here before the answer to what follows it southbound. */
    gboolean preplugs = f->in_flight & PF_GOAL_PREPLUG && gate == PF_GATE_WAIT;
    if (f->begin_call && pf_state_info(f->state)->limit != PF_LIMIT_PREPLUG && !preplugs) {
        answer(f, &f->begin_call, error);
    }
    if (f->gate_call && gate != PF_GATE_WAIT && !f->held) {
        g_clear_handle_id(&f->gate_id, g_source_remove);
        f->gate_ends = 0;
        pf_measures_gate(&f->measures, FALSE);
        f->gate_passed = !error;
        answer(f, &f->gate_call, error);
    }
}

/* ---- time ---- */

static void ask(PfFerry *f, gboolean ends);
static void tell(PfFerry *f, PfEvent event);
static void arm_deadline(PfFerry *f);
static void find_chassis(PfFerry *f);

static guint arm(gint64 us, GSourceFunc function, PfFerry *f, gint64 *ret_ends)
{
    *ret_ends = g_get_real_time() + us;
    return g_timeout_add((guint)(us / 1000), function, f);
}

static gboolean on_deadline(gpointer data)
{
    PfFerry *f = data;
    PfLimit limit = pf_state_info(f->state)->limit;

    f->deadline_id = 0;
    if (f->state == PF_CMS_LISTS) {
        PfWaiting now = where(f);
        g_autofree char *missing = pf_waiting_missing(&now);
        g_autofree char *text = g_strdup_printf("the CMS has not bound the port to both hosts in "
                                                "time: %s",
                                                !now.sb_live ? "the southbound database is away"
                                                : missing    ? missing
                                                             : "it has just done so");
        set_error_text(f, text);
        tell(f, PF_EV_DEADLINE);
    } else if (limit == PF_LIMIT_PREPLUG) {
        g_autoptr(GError) error = NULL;
        g_set_error(&error, PF_ERROR, PF_ERROR_TIMEOUT,
                    "the northbound database has not taken the pre-plug in time");
        set_error(f, "pre-plug", error);
        tell(f, PF_EV_DEADLINE);
    } else if (limit == PF_LIMIT_RELEASE) {
        if (f->state == PF_DST_ASK) {
            say(f, LOG_NOTICE, PF_MESSAGE_PEER_SILENT,
                "the source has not let go of the port in time; going on without it");
        }
        tell(f, PF_EV_DEADLINE);
    } else if (f->held || f->gate_call || (f->cms && !where(f).sb_live)) {
        /* Others keep the time, and libvirt holds its lock on the domain; or nobody can know what
         * the CMS has done. */
        arm_deadline(f);
        show_waiting(f);
    } else if (f->marker.by_hand) {
        if (limit == PF_LIMIT_INCOMING) {
            set_error_text(f,
                           "nobody has said in time where the guest runs, nor held the handover");
        }
        tell(f, PF_EV_DEADLINE);
    } else {
        ask(f, TRUE); /* a long time is over only when libvirt has no news */
    }
    return G_SOURCE_REMOVE;
}

static void arm_deadline(PfFerry *f)
{
    const PfConfig *config = f->env->config;
    gint64 us = 0;

    g_clear_handle_id(&f->deadline_id, g_source_remove);
    f->deadline_ends = 0;
    switch (pf_state_info(f->state)->limit) {
    case PF_LIMIT_NONE:
        return;
    case PF_LIMIT_PREPLUG:
        us = config->preplug_timeout;
        break;
    case PF_LIMIT_INCOMING:
        if (f->marker.by_hand && f->role == PF_ROLE_SOURCE) {
            return; /* the destination keeps the time, and may be held */
        }
        us = config->incoming_timeout;
        break;
    case PF_LIMIT_RELEASE:
        us = config->release_timeout;
        break;
    case PF_LIMIT_TEARDOWN:
        us = config->teardown_timeout;
        break;
    case PF_LIMIT_CMS:
        us = config->cms_timeout;
        break;
    }
    f->deadline_id = arm(us, on_deadline, f, &f->deadline_ends);
}

/* ---- what libvirt should have cleared away ---- */

static void clear_away_done(const GError *error, gpointer data)
{
    PfFerry *f = data;

    f->clearing = FALSE;
    if (error && f->env) {
        set_error(f, "removing an interface without a device", error);
    }
    let_go(f);
}

/* libvirt takes away what it has plugged before it says that the guest is gone, unless it has died
 * meanwhile.  What it leaves would claim the port again when the handover has ended. */
static void remove_dead(PfFerry *f)
{
    f->clearing = TRUE;
    pf_ovs_remove_dead(f->env->ovs, (const char *const *)f->ports, f->marker.domain,
                       WRITE_TIMEOUT_MS, clear_away_done, hold(f));
}

static gboolean is_guest_gone(const PfFerry *f)
{
    return f->guest == PF_EV_GUEST_FAILED || f->guest == PF_EV_GUEST_LEFT ||
           f->guest == PF_EV_GUEST_STOPPED;
}

static gboolean has_interface(const PfFerry *f)
{
    gboolean has = FALSE;

    for (guint i = 0; i < f->n_ports; i++) {
        has = has || f->facts[i].ovs_claimed || f->facts[i].ovs_released;
    }
    return has;
}

static void clear_away(PfFerry *f)
{
    if (!has_interface(f) || f->clearing || !is_guest_gone(f)) {
        return;
    }
    if (!f->left_behind) {
        say(f, LOG_NOTICE, PF_MESSAGE_LEFT_BEHIND,
            "libvirt has left an interface of the guest behind; removing it if its device is gone");
    }
    f->left_behind = TRUE;
    remove_dead(f);
}

static void on_answer_afterwards(const PfVirtGuest *guest, gpointer data)
{
    PfFerry *f = data;

    f->question = 0;
    /* A libvirtd that was killed just then keeps a domain that is "starting up", without a QEMU,
     * until somebody destroys it.  Its interface goes only if it has no device, so nobody misses
     * it. */
    if (guest->state == PF_VIRT_GUEST_ABSENT || guest->state == PF_VIRT_GUEST_SHUTOFF ||
        guest->state == PF_VIRT_GUEST_STARTING) {
        f->guest = PF_EV_GUEST_FAILED;
        clear_away(f);
    }
}

/* The other side may end the handover before libvirt has said here that the guest is gone. */
static void clear_away_afterwards(PfFerry *f)
{
    gboolean here =
        f->role == PF_ROLE_DESTINATION ? f->state == PF_ENDED_DONE : f->state == PF_ENDED_UNDONE;

    clear_away(f);
    if (!here && has_interface(f) && !is_guest_gone(f) && !f->question && f->env->virt) {
        f->question = pf_virt_ask(f->env->virt, f->marker.domain, PF_VIRT_ASK_STATE,
                                  QUESTION_TIMEOUT_US, on_answer_afterwards, f);
    }
}

void pf_ferry_switch_is_back(PfFerry *f)
{
    /* While the handover is open, clear_away() sees to it. */
    if (pf_ferry_is_ended(f) && !f->clearing && is_guest_gone(f)) {
        remove_dead(f);
    }
}

static gboolean on_check(gpointer data)
{
    PfFerry *f = data;

    /* The hook of a domain that is being prepared may hold libvirt's lock on it: don't ask then. */
    if (++f->checks % CHECKS_PER_QUESTION == 0 && pf_state_info(f->state)->gate != PF_GATE_WAIT &&
        !f->gate_call) {
        ask(f, FALSE);
    }
    if (f->chassis_missing) {
        find_chassis(f);
    }
    if (!pf_ferry_is_ended(f)) {
        clear_away(f);
        pf_ferry_look(f);
    }
    return pf_ferry_is_ended(f) ? G_SOURCE_REMOVE : G_SOURCE_CONTINUE;
}

static gboolean on_gate_deadline(gpointer data)
{
    PfFerry *f = data;
    PfWaiting now = where(f);
    g_autofree char *missing = pf_waiting_missing(&now);

    f->gate_id = 0;
    f->gate_ends = 0;
    g_autoptr(GError) error = NULL;
    g_set_error(&error, PF_ERROR, PF_ERROR_NOT_READY, "not ready within %.1f s: %s",
                (double)ready_timeout(f) / G_USEC_PER_SEC,
                missing ? missing : "the flows of its switch are not all installed");
    set_error(f, "gate", error);
    say(f, LOG_WARNING, PF_MESSAGE_NOT_READY_IN_TIME, error->message);
    tell(f, on_not_ready(f) == PF_POLICY_REFUSE ? PF_EV_REFUSED : PF_EV_PROCEED);
    return G_SOURCE_REMOVE;
}

/* ---- the operator's hold ---- */

/* Whether there still is a gate ahead, or, of a handover by hand, a decision. */
static gboolean is_holdable(const PfFerry *f)
{
    PfLimit limit = pf_state_info(f->state)->limit;
    return f->role == PF_ROLE_DESTINATION && (f->marker.by_hand || !f->gate_passed) &&
           (limit == PF_LIMIT_PREPLUG || limit == PF_LIMIT_INCOMING);
}

static void end_hold(PfFerry *f, gint64 until)
{
    g_clear_handle_id(&f->hold_id, g_source_remove);
    f->hold_ends = 0;
    f->held = FALSE;
    f->view.held = FALSE;
    f->gate_until = until;
    f->env->changed(f, PF_HANDOVER_HELD, f->env->data);
}

static gboolean on_hold_over(gpointer data)
{
    PfFerry *f = data;
    gboolean refuse = f->marker.by_hand || on_not_ready(f) == PF_POLICY_REFUSE;
    g_autofree char *text =
        g_strdup_printf("an operator has held it for longer than hold-timeout: %s",
                        refuse ? "rolling back" : "the migration goes on");

    f->hold_id = 0;
    end_hold(f, 0);
    set_error_text(f, text);
    say(f, LOG_WARNING, PF_MESSAGE_NOT_READY_IN_TIME, text);
    if (refuse) {
        tell(f, PF_EV_DEADLINE);
    } else if (f->gate_call) {
        tell(f, PF_EV_PROCEED);
    } else {
        pf_ferry_look(f);
    }
    return G_SOURCE_REMOVE;
}

/* ---- the taps ---- */

static void renew_queue(const char *name, gpointer data)
{
    g_autoptr(GError) error = NULL;
    if (!pf_tap_renew_queue(name, QUEUE_SWITCHOVER, NULL, &error)) {
        set_error(data, "preparing the tap", error);
    }
}

static void restore_queue(const char *name, gpointer data)
{
    g_autoptr(GError) error = NULL;
    if (!pf_tap_set_queue(name, QUEUE_USUAL, &error)) {
        set_error(data, "giving the tap its usual queue", error);
    }
}

static void tend_taps(PfFerry *f, PfOvsInterface tend)
{
    for (guint i = 0; f->env->ovs && i < f->n_ports; i++) {
        pf_ovs_foreach_claiming(f->env->ovs, f->ports[i], tend, f);
    }
}

/* While ovn-controller binds the port, there is a moment in which the flows that deliver to it are
 * there, and those that block it are not; and the switch's own cache of flows may keep to the old
 * ones for a while longer.  What came in then has been delivered at the source as well, and must
 * not wait here for the guest, which may pause at any time: so the taps are emptied often at first.
 */
static gboolean empty_taps(gpointer data)
{
    PfFerry *f = data;
    gint64 since = (g_get_monotonic_time() - f->entered) / 1000;

    f->taps_id = 0;
    if (f->state != PF_DST_READY && f->state != PF_CMS_READY) {
        return G_SOURCE_REMOVE; /* what waits has been let in on purpose */
    }
    tend_taps(f, renew_queue);
    if (since < STALE_FLOWS_MS) {
        f->taps_id = g_timeout_add((guint)MAX(STALE_FLOWS_FIRST_MS, since), empty_taps, f);
    }
    return G_SOURCE_REMOVE;
}

/* ---- floating IPs ---- */

static void on_floating_found(gpointer data)
{
    PfFerry *f = data;
    if (!pf_ferry_is_ended(f)) {
        pf_ferry_look(f);
    }
}

static void on_residence_failed(const char *what, const GError *error, gpointer data)
{
    set_error(data, what, error);
}

/* ---- the machine ---- */

/* The rows of a handover without a marker are known by their ports' names. */
static void follow_rows(PfFerry *f)
{
    f->cms = f->cms || pf_state_info(f->state)->cms;
    gboolean wanted = f->cms && !pf_ferry_is_ended(f);

    if (wanted == f->watching) {
        return;
    }
    f->watching = wanted;
    for (guint i = 0; i < f->n_ports; i++) {
        if (wanted) {
            pf_sb_watch(f->env->sb, f->ports[i]);
        } else {
            pf_sb_unwatch(f->env->sb, f->ports[i]);
        }
    }
}

static void on_visit(PfState from, PfState to, PfEvent why, gpointer data)
{
    PfFerry *f = data;
    f->state = to;
    pf_measures_visit(&f->measures, to, why);
    follow_rows(f);
    enter_phase(f, from, why);
    if ((to == PF_DST_READY && from == PF_DST_BINDING) ||
        (to == PF_CMS_READY && from == PF_CMS_BINDING)) {
        g_clear_handle_id(&f->taps_id, g_source_remove);
        empty_taps(f);
    } else if (to == PF_DST_ACTIVE || from == PF_CMS_ACTIVATE) {
        tend_taps(f, restore_queue);
    }
    f->env->changed(f, PF_HANDOVER_PHASE, f->env->data);
}

static void find_chassis_done(const PfSbChassis *source, const PfSbChassis *destination,
                              const GError *error, gpointer data)
{
    PfFerry *f = data;

    f->chassis_asked = FALSE;
    if (f->env && !pf_ferry_is_ended(f)) {
        g_autoptr(GError) problem = NULL;
        if (!error && (!source->name || !destination->name)) {
            g_set_error(&problem, PF_ERROR, PF_ERROR_NOT_FOUND,
                        "the southbound database has no chassis '%s'",
                        source->name ? f->marker.destination : f->marker.source);
        }
        if (error || problem) {
            set_error(f, "looking for the two chassis", error ? error : problem);
        }
        /* One that doesn't exist has no port: that is known, too.  It may come back as another. */
        if (!error && (!f->chassis_known || !problem)) {
            pf_sb_chassis_copy(&f->source, source);
            pf_sb_chassis_copy(&f->destination, destination);
            f->chassis_known = TRUE;
            f->chassis_missing = problem != NULL;
            pf_ferry_look(f);
        }
    }
    let_go(f);
}

static void find_chassis(PfFerry *f)
{
    if (!f->chassis_asked && f->env->sb) {
        f->chassis_asked = TRUE;
        pf_sb_find_chassis(f->env->sb, f->marker.source, f->marker.destination, WRITE_TIMEOUT_MS,
                           find_chassis_done, hold(f));
    }
}

static void barrier_done(gint64 nb_cfg, const GError *error, gpointer data)
{
    PfFerry *f = data;

    pf_crash_at_answered(PF_CRASH_BARRIER);
    if (f->env && !pf_ferry_is_ended(f)) {
        if (error) {
            f->barrier = BARRIER_NEEDED;
            set_error(f, "waiting for the flows", error);
        } else {
            f->barrier = BARRIER_WAITING;
            f->barrier_cfg = nb_cfg;
            pf_ferry_look(f);
        }
    }
    let_go(f);
}

/* Whether the flows of a datapath that is new here are in the switch. */
static gboolean flows_are_in(PfFerry *f, const PfWorld *world)
{
    gboolean binding = f->state == PF_DST_BINDING || f->state == PF_CMS_BINDING;
    if (f->barrier == BARRIER_NEEDED && binding && f->env->nb_is_none) {
        say(f, LOG_NOTICE, NULL,
            "no guest of its switch is here yet, and without a northbound database nobody can "
            "confirm that all flows are installed: going by ovn-controller's word alone");
        f->barrier = BARRIER_NOT_NEEDED;
    }
    if (f->barrier == BARRIER_NEEDED && binding && f->env->nb) {
        PfWorld if_they_were = *world;
        if_they_were.flows_in = TRUE;
        guint64 facts = pf_facts(f->role, &if_they_were, f->facts, f->n_ports);
        if (facts & (G_GUINT64_CONSTANT(1) << PF_EV_PORTS_READY)) {
            f->barrier = BARRIER_ASKED;
            pf_nb_barrier(f->env->nb, WRITE_TIMEOUT_MS, barrier_done, hold(f));
            pf_crash_at_sent(PF_CRASH_BARRIER);
        }
    }
    return f->barrier == BARRIER_NOT_NEEDED ||
           (f->barrier == BARRIER_WAITING && f->env->ovs &&
            pf_ovs_get_flows_cfg(f->env->ovs) >= f->barrier_cfg);
}

/* By which the southbound adapter knows the handover's rows. */
static const char *row_id(const PfFerry *f)
{
    return f->cms ? NULL : f->marker.handover;
}

static guint64 observe(PfFerry *f)
{
    const PfFerryEnv *env = f->env;
    const PfEnds ends = {
        .source = {.name = f->marker.source, .hostname = f->source.hostname},
        .destination = {.name = f->marker.destination, .hostname = f->destination.hostname},
    };
    PfWorld world = {
        .nb_live = env->nb && pf_nb_get_state(env->nb) == PF_OVSDB_SYNCED,
        .sb_live = env->sb && f->chassis_known && pf_sb_get_state(env->sb) == PF_OVSDB_SYNCED,
        .ovs_live = env->ovs && pf_ovs_get_state(env->ovs) == PF_OVSDB_SYNCED,
    };
    if (f->cms) {
        world.nb_live = world.sb_live = world.sb_live && pf_sb_is_current(env->sb);
    }

    for (guint i = 0; i < f->n_ports; i++) {
        PfPortFacts *p = &f->facts[i];
        memset(p, 0, sizeof *p);
        if (world.nb_live && !f->cms) {
            pf_nb_get_port(env->nb, f->ports[i], f->marker.handover, &ends, p);
        }
        if (world.sb_live) {
            pf_sb_get_port(env->sb, f->ports[i], row_id(f), &f->source, &f->destination, p);
        }
        if (world.ovs_live) {
            pf_ovs_get_port(env->ovs, f->ports[i], p);
        }
    }
    world.flows_in = flows_are_in(f, &world);

    guint64 facts = pf_facts(f->role, &world, f->facts, f->n_ports);
    /* An operator's word is stronger than what the other side has written. */
    if (f->override == PF_EV_ACTIVATE) {
        facts &= ~(G_GUINT64_CONSTANT(1) << PF_EV_LIST_SRC);
    } else if (f->override == PF_EV_ROLLBACK) {
        facts &= ~((G_GUINT64_CONSTANT(1) << PF_EV_LIST_RESUMED) |
                   (G_GUINT64_CONSTANT(1) << PF_EV_LIST_DST));
    }
    return facts;
}

/* What is to be measured of what 'observe' has seen. */
static void measure(PfFerry *f)
{
    gboolean open = f->n_ports > 0;

    for (guint i = 0; i < f->n_ports; i++) {
        open = open && (f->facts[i].sb_dst_opened || f->facts[i].sb_on_dst);
    }
    if (f->role == PF_ROLE_DESTINATION) {
        pf_measures_look(&f->measures, open, f->guest == PF_EV_GUEST_HERE ? f->guest_at : 0);
    }
}

static void stop(PfFerry *f)
{
    g_clear_handle_id(&f->deadline_id, g_source_remove);
    g_clear_handle_id(&f->check_id, g_source_remove);
    g_clear_handle_id(&f->gate_id, g_source_remove);
    g_clear_handle_id(&f->hold_id, g_source_remove);
    g_clear_handle_id(&f->taps_id, g_source_remove);
    f->deadline_ends = f->gate_ends = f->hold_ends = 0;
    if (f->question) {
        pf_virt_ask_cancel(f->env->virt, f->question);
        f->question = 0;
    }
}

/* Goes on from 'before', the state that the last look ended in. */
static void go_on(PfFerry *f, PfState before)
{
    if (!f->chassis_known) {
        find_chassis(f);
    }
    guint64 facts = observe(f);
    measure(f);
    pf_settle(f->state, facts, f->guest, on_visit, f);
    show_ports(f);
    if (f->state != before) {
        arm_deadline(f);
    }
    if (f->held && !is_holdable(f)) {
        end_hold(f, 0);
    }
    pf_residence_look(f->residence, f->env->nb, f->env->sb, f->env->ovs, f->role, f->facts);
    answer_calls(f);
    if (pf_ferry_is_ended(f)) {
        stop(f);
        show_waiting(f);
        clear_away_afterwards(f);
        f->env->ended(f, f->env->data);
    } else {
        pursue(f);
        show_waiting(f);
    }
}

void pf_ferry_look(PfFerry *f)
{
    if (!pf_ferry_is_ended(f)) {
        go_on(f, f->state);
    }
}

/* An event that happens once. */
static void tell(PfFerry *f, PfEvent event)
{
    PfState before = f->state;
    PfState next = pf_handover_next(before, event);

    if (pf_ferry_is_ended(f)) {
        return;
    }
    if (next != before) {
        on_visit(before, next, event, f);
    }
    go_on(f, before);
}

/* ---- goals ---- */

typedef struct {
    PfFerry *ferry;
    PfGoal goal;
} Pursuit;

static const char *goal_text(PfGoal goal)
{
    switch (goal) {
    case PF_GOAL_PREPLUG:
        return "pre-plug";
    case PF_GOAL_OPEN:
        return "opening the port at the destination";
    case PF_GOAL_CLOSE:
        return "closing the port at the destination";
    case PF_GOAL_TURN:
        return "giving the floating IPs to the destination";
    case PF_GOAL_TURN_BACK:
        return "giving the floating IPs back to the source";
    case PF_GOAL_MARK:
        return "telling the source that the guest has arrived";
    case PF_GOAL_RELEASE:
        return "letting go of the interface";
    case PF_GOAL_RECLAIM:
        return "taking the interface back";
    case PF_GOAL_COLLAPSE:
        return "activating the destination";
    case PF_GOAL_ROLL_BACK:
        return "rolling back to the source";
    case PF_GOAL_FOLLOW:
    case PF_GOAL_PUT_BACK:
        return "ending the handover";
    case PF_GOAL_TWICE:
        return "telling the other side that the guest runs here as well";
    }
    return "?";
}

static void pursuit_done(const GError *error, gpointer data)
{
    g_autofree Pursuit *pursuit = data;
    PfFerry *f = pursuit->ferry;

    pf_crash_at_answered(pursuit->goal);
    f->in_flight &= ~(guint)pursuit->goal;
    if (f->env && !pf_ferry_is_ended(f)) {
        gboolean left = error && pursuit->goal == PF_GOAL_PREPLUG && !f->marker.by_hand &&
                        g_error_matches(error, PF_ERROR, PF_ERROR_DENIED);
        if (left) {
            say(f, LOG_NOTICE, PF_MESSAGE_CMS_IN_CHARGE, error->message);
        } else if (error) {
            set_error(f, goal_text(pursuit->goal), error);
        }
        if (left) {
            tell(f, PF_EV_LEFT_TO_CMS);
        } else if (error && pursuit->goal == PF_GOAL_PREPLUG) {
            tell(f, PF_EV_REFUSED);
        } else if (!error) {
            if (pursuit->goal == PF_GOAL_OPEN) {
                pf_measures_opened(&f->measures, f->guest == PF_N_EVENTS ? 0 : f->guest_at);
            }
            pf_ferry_look(f);
        }
        /* A goal that failed is tried again at the next check, or when a database changes. */
    }
    let_go(f);
}

static Pursuit *pursuit_new(PfFerry *f, PfGoal goal)
{
    Pursuit *pursuit = g_new(Pursuit, 1);
    *pursuit = (Pursuit){.ferry = hold(f), .goal = goal};
    f->in_flight |= (guint)goal;
    return pursuit;
}

static PfEnds ends_of(const PfFerry *f)
{
    return (PfEnds){
        .source = {.name = f->marker.source, .hostname = f->source.hostname},
        .destination = {.name = f->marker.destination, .hostname = f->destination.hostname},
    };
}

static void pursue_northbound(PfFerry *f, PfGoal goal, PfWrite write)
{
    gboolean needed = FALSE;

    if (!f->env->nb || pf_nb_get_state(f->env->nb) != PF_OVSDB_SYNCED) {
        return;
    }
    for (guint i = 0; i < f->n_ports; i++) {
        const PfPortFacts *p = &f->facts[i];
        if (p->nb_marked) {
            PfVerdict verdict = pf_plan_decide(write, f->role, p->nb_list, p->nb_resumed,
                                               f->override != PF_N_EVENTS);
            if (verdict == PF_VERDICT_CONFLICT) {
                return; /* somebody has decided otherwise; the facts will say what follows */
            }
            needed = needed || verdict != PF_VERDICT_NOTHING;
        }
    }
    if (needed) {
        PfEnds ends = ends_of(f);
        pf_nb_write(f->env->nb, write, f->role, (const char *const *)f->ports, f->marker.handover,
                    &ends, f->override != PF_N_EVENTS, WRITE_TIMEOUT_MS, pursuit_done,
                    pursuit_new(f, goal));
        pf_crash_at_sent(goal);
    }
}

static void pursue_opening(PfFerry *f, PfGoal goal)
{
    gboolean open = goal == PF_GOAL_OPEN, needed = FALSE;

    for (guint i = 0; i < f->n_ports; i++) {
        const PfPortFacts *p = &f->facts[i];
        needed =
            needed || (p->sb_marked && p->sb_dst_opened != open && (!open || p->sb_dst_requested));
    }
    if (needed && f->env->sb) {
        pf_sb_set_open(f->env->sb, (const char *const *)f->ports, row_id(f), &f->destination, open,
                       WRITE_TIMEOUT_MS, pursuit_done, pursuit_new(f, goal));
        pf_crash_at_sent(goal);
    }
}

/* Only when the destination is open: what the guest is sent by others doesn't wait for this. */
static void pursue_turn(PfFerry *f)
{
    for (guint i = 0; i < f->n_ports; i++) {
        const PfPortFacts *p = &f->facts[i];
        gboolean open = p->sb_on_dst || (p->sb_dst_added && p->sb_dst_opened);
        if (p->nb_marked && !(p->sb_marked && open)) {
            return;
        }
    }
    if (pf_residence_has_floating(f->residence)) {
        pursue_northbound(f, PF_GOAL_TURN, PF_WRITE_TURN);
    }
}

/* No harm done: northd does it. */
static void leave_to_northd(PfFerry *f, const GError *error)
{
    f->hasten_refused = g_error_matches(error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_REFUSED);
    pf_log(LOG_DEBUG, NULL, "not faster than northd: %s", error->message);
}

static void hastening_done(const GError *error, gpointer data)
{
    PfFerry *f = data;

    f->in_flight &= ~HASTENING;
    if (f->env && !pf_ferry_is_ended(f)) {
        if (error) {
            leave_to_northd(f, error);
        } else {
            pf_ferry_look(f);
        }
    }
    let_go(f);
}

/* In northd's stead, where a floating IP would have to wait for its turn. */
static void pursue_hastening(PfFerry *f, guint goals)
{
    PfListKind from = PF_LIST_FOREIGN, to = PF_LIST_FOREIGN;

    if (!f->env->sb || f->hasten_refused || f->in_flight & HASTENING) {
        return;
    }
    for (guint i = 0; i < f->n_ports; i++) {
        const PfPortFacts *p = &f->facts[i];
        gboolean dst_first = p->nb_list == PF_LIST_TURNED;
        gboolean bound =
            dst_first ? p->sb_on_dst || p->sb_dst_added : p->sb_on_src || p->sb_src_added;
        if (!p->nb_marked) {
            continue;
        }
        if (to != PF_LIST_FOREIGN && p->nb_list != to) {
            return; /* a CMS is at work */
        }
        to = p->nb_list;
        if (p->sb_marked && bound && pf_plan_hastens(goals, p->sb_list, to)) {
            from = p->sb_list;
        }
    }
    if (from != PF_LIST_FOREIGN) {
        pf_sb_hasten(f->env->sb, (const char *const *)f->ports, f->marker.handover, &f->source,
                     &f->destination, from, to, WRITE_TIMEOUT_MS, hastening_done, hold(f));
        f->in_flight |= HASTENING;
    }
}

static void pursue_claim(PfFerry *f, PfGoal goal)
{
    gboolean needed = FALSE;

    for (guint i = 0; i < f->n_ports; i++) {
        const PfPortFacts *p = &f->facts[i];
        needed = needed || (goal == PF_GOAL_RELEASE ? p->ovs_claimed : p->ovs_released);
    }
    if (!needed || !f->env->ovs) {
        return;
    }
    if (goal == PF_GOAL_RELEASE) {
        pf_ovs_release(f->env->ovs, (const char *const *)f->ports, f->marker.handover,
                       WRITE_TIMEOUT_MS, pursuit_done, pursuit_new(f, goal));
    } else {
        pf_ovs_reclaim(f->env->ovs, (const char *const *)f->ports, WRITE_TIMEOUT_MS, pursuit_done,
                       pursuit_new(f, goal));
    }
    pf_crash_at_sent(goal);
}

static void preplugged(const struct json *result G_GNUC_UNUSED, const GError *error, gpointer data)
{
    const Pursuit *pursuit = data;

    if (error) {
        leave_to_northd(pursuit->ferry, error);
    }
    pursuit_done(NULL, data);
}

/* The hook waits for this, too: with libvirt's next step the destination may claim the port. */
static void preplug_northbound(const GPtrArray *mutations, const GError *error, gpointer data)
{
    const Pursuit *pursuit = data;
    const PfFerry *f = pursuit->ferry;

    if (error || !f->env || !f->env->sb || !f->chassis_known) {
        pursuit_done(error, data);
    } else {
        pf_sb_preplug(f->env->sb, (const char *const *)f->ports, mutations, &f->source,
                      &f->destination, WRITE_TIMEOUT_MS, preplugged, data);
    }
}

static void pursue_preplug(PfFerry *f)
{
    if (f->preplug_tried || !f->env->nb) {
        return;
    }
    f->preplug_tried = TRUE;
    PfEnds ends = ends_of(f);
    pf_nb_preplug(f->env->nb, (const char *const *)f->ports, &f->marker, &ends,
                  f->policy.activation_strategy ? f->policy.activation_strategy
                                                : f->env->config->activation_strategy,
                  (guint)(f->env->config->preplug_timeout / 1000), preplug_northbound,
                  pursuit_new(f, PF_GOAL_PREPLUG));
}

static void say_twice(PfFerry *f)
{
    set_error_text(f, "the guest runs on both hosts: destroy it where it does not have the port "
                      "(portferry shows who does), or the port stays with one of the two");
}

static gboolean has_said_twice(const PfFerry *f)
{
    for (guint i = 0; i < f->n_ports; i++) {
        const PfPortFacts *p = &f->facts[i];
        if (p->nb_marked && !(f->role == PF_ROLE_SOURCE ? p->nb_src_too : p->nb_dst_too)) {
            return FALSE;
        }
    }
    return TRUE;
}

static void pursue(PfFerry *f)
{
    guint goals = pf_handover_goals(f->state, f->guest) & ~f->in_flight;

    if (f->in_flight & PF_GOAL_PREPLUG) {
        return; /* its southbound half must not come after what takes it back */
    }
    if (goals & PF_GOAL_PREPLUG) {
        pursue_preplug(f);
    }
    /* First what the guest waits for. */
    if (goals & PF_GOAL_OPEN) {
        pursue_opening(f, PF_GOAL_OPEN);
    }
    if (goals & PF_GOAL_CLOSE) {
        pursue_opening(f, PF_GOAL_CLOSE);
    }
    pursue_hastening(f, pf_state_info(f->state)->goals);
    if (goals & PF_GOAL_TURN) {
        pursue_turn(f);
    }
    if (goals & PF_GOAL_TURN_BACK) {
        pursue_northbound(f, PF_GOAL_TURN_BACK, PF_WRITE_TURN_BACK);
    }
    if (goals & PF_GOAL_RECLAIM) {
        pursue_claim(f, PF_GOAL_RECLAIM);
    }
    if (goals & PF_GOAL_RELEASE) {
        pursue_claim(f, PF_GOAL_RELEASE);
    }
    if (goals & PF_GOAL_MARK) {
        pursue_northbound(f, PF_GOAL_MARK, PF_WRITE_MARK);
    }
    if (goals & PF_GOAL_COLLAPSE) {
        pursue_northbound(f, PF_GOAL_COLLAPSE, PF_WRITE_COLLAPSE);
    }
    if (goals & PF_GOAL_ROLL_BACK) {
        pursue_northbound(f, PF_GOAL_ROLL_BACK, PF_WRITE_ROLL_BACK);
    }
    if (goals & PF_GOAL_FOLLOW) {
        pursue_northbound(f, PF_GOAL_FOLLOW, PF_WRITE_FOLLOW);
    }
    if (goals & PF_GOAL_PUT_BACK) {
        pursue_northbound(f, PF_GOAL_PUT_BACK, PF_WRITE_PUT_BACK);
    }
    if (goals & PF_GOAL_TWICE) {
        say_twice(f);
        if (!has_said_twice(f)) {
            pursue_northbound(f, PF_GOAL_TWICE, PF_WRITE_TWICE);
        }
    }
}

/* ---- the guest ---- */

/* The marker knows the domain's UUID alone; its name may differ between the hosts. */
static void learn_name(PfFerry *f, const char *name)
{
    if (name && !f->domain) {
        f->domain = g_strdup(name);
        f->view.domain = f->domain;
        f->env->changed(f, PF_HANDOVER_DOMAIN, f->env->data);
    }
}

static void set_guest(PfFerry *f, PfEvent event, gint64 at)
{
    if (event == PF_N_EVENTS || pf_ferry_is_ended(f)) {
        return;
    }
    f->guest = event;
    f->guest_at = at;
    pf_ferry_look(f);
}

void pf_ferry_virt_event(PfFerry *f, const PfVirtEvent *event)
{
    learn_name(f, event->name);
    if (f->marker.by_hand) {
        return; /* libvirt may not even know the guest that it is about */
    }
    set_guest(f, pf_guest_event(f->role, event->type), event->monotonic_us);
}

void pf_ferry_released(PfFerry *f)
{
    if (f->role == PF_ROLE_DESTINATION && !f->marker.by_hand) {
        set_guest(f, PF_EV_GUEST_FAILED, g_get_monotonic_time());
    }
}

/* Takes an answer in.  'final': the state's time is over. */
static void take_answer(PfFerry *f, const PfVirtGuest *guest, gboolean final)
{
    learn_name(f, guest->name);
    PfEvent event = pf_guest_answer(f->role, f->state, guest);
    /* Until QEMU has been started, it is no news that libvirt doesn't know the domain. */
    gint64 age = g_get_real_time() - f->marker.started;
    gboolean starting =
        f->gate_call || pf_state_info(f->state)->limit == PF_LIMIT_PREPLUG ||
        (pf_state_info(f->state)->gate == PF_GATE_WAIT && age < f->env->config->incoming_timeout);
    if (event == PF_EV_GUEST_FAILED && starting && !final) {
        return;
    }
    if (guest->read_us > f->guest_at) {
        set_guest(f, event, guest->read_us);
    }
}

static void on_answer(const PfVirtGuest *guest, gpointer data)
{
    PfFerry *f = data;
    gboolean final = f->question_ends;
    PfState before = f->state;

    f->question = 0;
    f->question_ends = FALSE;
    if (f->marker.by_hand) {
        learn_name(f, guest->name);
        return;
    }
    take_answer(f, guest, final);
    if (!final || f->state != before || pf_ferry_is_ended(f)) {
        return;
    }
    if (guest->state == PF_VIRT_GUEST_UNREACHABLE) {
        g_autoptr(GError) error = NULL;
        g_set_error(&error, PF_ERROR, PF_ERROR_UNREACHABLE, "%s",
                    guest->error ? guest->error : "libvirt does not answer");
        set_error(f, "asking where the guest is", error);
    }
    PfLimit limit = pf_state_info(f->state)->limit;
    gboolean unknown = guest->state == PF_VIRT_GUEST_UNREACHABLE;
    gboolean twice = pf_runs_twice(f->state, f->guest, f->facts, f->n_ports);
    if (twice) {
        say_twice(f);
    }
    if (twice || (pf_guest_goes_on(guest) && !(limit == PF_LIMIT_CMS && unknown))) {
        arm_deadline(f);
        show_waiting(f);
        return;
    }
    if (limit == PF_LIMIT_CMS) {
        g_autofree char *text = g_strdup_printf(
            "waited for %.0f s in vain for %s; portferry leaves the ports as they are",
            (double)f->env->config->cms_timeout / G_USEC_PER_SEC, f->waiting);
        set_error_text(f, text);
    }
    tell(f, PF_EV_DEADLINE);
}

static void ask(PfFerry *f, gboolean ends)
{
    f->question_ends = f->question_ends || ends;
    if (f->question || !f->env->virt) {
        if (!f->env->virt && ends) {
            arm_deadline(f);
        }
        return;
    }
    /* A job costs libvirt's lock on the domain, and in the copy the switchover may be near. */
    gboolean watch = f->state == PF_SRC_WATCH || f->state == PF_CMS_WATCH;
    gboolean job = f->role == PF_ROLE_SOURCE && (ends || !watch);
    f->question =
        pf_virt_ask(f->env->virt, f->marker.domain, job ? PF_VIRT_ASK_JOB : PF_VIRT_ASK_STATE,
                    QUESTION_TIMEOUT_US, on_answer, f);
}

void pf_ferry_resync(PfFerry *f)
{
    if (pf_ferry_is_ended(f)) {
        clear_away_afterwards(f);
    } else {
        ask(f, FALSE);
    }
}

void pf_ferry_superseded(PfFerry *f)
{
    if (f->role == PF_ROLE_DESTINATION && !f->marker.by_hand && !f->gate_call && !f->held &&
        pf_state_info(f->state)->limit == PF_LIMIT_INCOMING) {
        ask(f, TRUE);
    }
}

/* ---- operators and hooks ---- */

gboolean pf_ferry_override(PfFerry *f, PfEvent event, GError **error)
{
    g_return_val_if_fail(event == PF_EV_ACTIVATE || event == PF_EV_ROLLBACK, FALSE);

    if (pf_handover_next(f->state, event) == f->state) {
        g_autofree char *ports = g_strjoinv(", ", f->ports);
        pf_error_set(error, PF_ERROR_WRONG_PHASE, f->domain, ports,
                     "the handover is in phase '%s', in which there is nothing to override",
                     f->view.phase);
        return FALSE;
    }
    say(f, LOG_NOTICE,
        event == PF_EV_ACTIVATE ? PF_MESSAGE_OPERATOR_ACTIVATE : PF_MESSAGE_OPERATOR_ROLLBACK,
        event == PF_EV_ACTIVATE ? "an operator activates the destination"
                                : "an operator rolls back to the source");
    f->override = event;
    tell(f, event);
    return TRUE;
}

gboolean pf_ferry_hold(PfFerry *f, GError **error)
{
    if (!is_holdable(f)) {
        g_autofree char *ports = g_strjoinv(", ", f->ports);
        pf_error_set(error, PF_ERROR_WRONG_PHASE, f->domain, ports,
                     "a handover is held at its destination, before memory is copied; this is the "
                     "%s, in phase '%s'",
                     f->view.role, f->view.phase);
        return FALSE;
    }
    gint64 us = f->env->config->hold_timeout;
    g_clear_handle_id(&f->gate_id, g_source_remove);
    f->gate_ends = 0;
    g_clear_handle_id(&f->hold_id, g_source_remove);
    f->hold_id = arm(us, on_hold_over, f, &f->hold_ends);
    f->gate_until = g_get_monotonic_time() + us;
    f->held = TRUE;
    f->view.held = TRUE;
    say(f, LOG_NOTICE, PF_MESSAGE_OPERATOR_HOLD, "an operator holds the handover");
    f->env->changed(f, PF_HANDOVER_HELD, f->env->data);
    pf_ferry_look(f);
    return TRUE;
}

gboolean pf_ferry_release(PfFerry *f, GError **error)
{
    if (!f->held) {
        g_autofree char *ports = g_strjoinv(", ", f->ports);
        pf_error_set(error, PF_ERROR_WRONG_PHASE, f->domain, ports, "the handover is not held");
        return FALSE;
    }
    gint64 us = ready_timeout(f);
    say(f, LOG_NOTICE, PF_MESSAGE_OPERATOR_RELEASE, "an operator lets the handover go on");
    if (f->gate_call) { /* the ports may still not be ready */
        f->gate_id = arm(us, on_gate_deadline, f, &f->gate_ends);
    } else {
        arm_deadline(f);
    }
    end_hold(f, f->gate_call ? g_get_monotonic_time() + us : 0);
    pf_ferry_look(f);
    return TRUE;
}

gboolean pf_ferry_give_way(PfFerry *f)
{
    if (pf_handover_next(f->state, PF_EV_AGAIN) == f->state) {
        return FALSE;
    }
    set_error_text(f, "another migration of the guest has begun before the CMS has ended this one");
    tell(f, PF_EV_AGAIN);
    return TRUE;
}

gboolean pf_ferry_is_stuck(const PfFerry *f)
{
    return !pf_ferry_is_ended(f) && !f->deadline_ends && !f->held &&
           g_get_monotonic_time() - f->entered > f->env->config->teardown_timeout;
}

void pf_ferry_set_policy(PfFerry *f, const PfDomainPolicy *policy)
{
    pf_domain_policy_copy(&f->policy, policy);
}

PfIncoming pf_ferry_get_incoming(const PfFerry *f)
{
    return (PfIncoming){
        .limit = ready_timeout(f), .until = f->gate_until, .otherwise = on_not_ready(f)};
}

void pf_ferry_wait_begin(PfFerry *f, PfBusCall *call)
{
    f->begin_call = call;
    pf_bus_call_set_gone(call, begin_call_gone, f);
    answer_calls(f);
}

void pf_ferry_wait_gate(PfFerry *f, PfBusCall *call)
{
    if (f->gate_call) {
        answer(f, &f->gate_call, NULL); /* libvirt asks once; a second caller is somebody's test */
    }
    f->gate_call = call;
    pf_measures_gate(&f->measures, TRUE);
    pf_bus_call_set_gone(call, gate_call_gone, f);
    g_clear_handle_id(&f->gate_id, g_source_remove);
    if (!f->held) {
        f->gate_id = arm(ready_timeout(f), on_gate_deadline, f, &f->gate_ends);
    }
    pf_ferry_look(f);
}

/* ---- life ---- */

PfFerry *pf_ferry_new(const PfFerryEnv *env, const PfFerryStart *start)
{
    PfFerry *f = g_rc_box_new0(PfFerry);
    const PfMarker *m = start->marker;

    f->env = env;
    f->role = start->role;
    f->state = pf_handover_first(start->role, start->origin);
    f->marker.source = g_strdup(m->source);
    f->marker.destination = g_strdup(m->destination);
    f->marker.domain = g_strdup(m->domain);
    f->marker.handover = g_strdup(m->handover);
    f->marker.started = m->started;
    f->marker.by_hand = m->by_hand;
    f->domain = g_strdup(start->domain);
    f->ports = g_strdupv((char **)start->ports);
    f->n_ports = g_strv_length(f->ports);
    f->macs = start->macs ? g_strdupv((char **)start->macs) : NULL;
    f->facts = g_new0(PfPortFacts, f->n_ports);
    pf_measures_init(&f->measures);
    f->residence =
        pf_residence_new((const char *const *)f->ports,
                         &(PfResidenceEvents){on_floating_found, on_residence_failed, f});
    f->guest = PF_N_EVENTS;
    f->override = PF_N_EVENTS;
    if (start->policy) {
        pf_domain_policy_copy(&f->policy, start->policy);
    }
    f->barrier = start->cold ? BARRIER_NEEDED : BARRIER_NOT_NEEDED;
    f->chassis_asked = start->origin == PF_ORIGIN_INTERFACE; /* nobody knows where it went */
    if (start->source && start->destination) {
        pf_sb_chassis_copy(&f->source, start->source);
        pf_sb_chassis_copy(&f->destination, start->destination);
        f->chassis_known = TRUE;
    }
    f->said = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    f->phases = g_array_new(FALSE, FALSE, sizeof(PfPhaseView));
    f->port_views = g_new0(PfPortView, f->n_ports);
    for (guint i = 0; i < f->n_ports; i++) {
        f->port_views[i] = (PfPortView){
            .iface_id = f->ports[i], .mac = f->macs ? f->macs[i] : NULL, .state = "unknown"};
    }
    f->view = (PfHandoverView){
        .id = f->marker.handover,
        .domain = f->domain,
        .uuid = f->marker.domain,
        .role = pf_role_name(f->role),
        .started_us = f->marker.started,
        .by_hand = f->marker.by_hand,
        .source = f->marker.source,
        .destination = f->marker.destination,
        .peer = f->role == PF_ROLE_SOURCE ? f->marker.destination : f->marker.source,
        .ports = f->port_views,
        .n_ports = f->n_ports,
    };
    enter_phase(f, PF_STATE_INVALID, PF_N_EVENTS);
    follow_rows(f);
    return f;
}

void pf_ferry_start(PfFerry *f)
{
    arm_deadline(f);
    f->check_id = g_timeout_add_seconds(CHECK_INTERVAL_S, on_check, f);
    if (pf_state_info(f->state)->limit != PF_LIMIT_PREPLUG) {
        ask(f, FALSE);
    }
    pf_ferry_look(f);
}

void pf_ferry_leave_gate(PfFerry *f)
{
    if (f->gate_call) {
        PfBusCall *call = g_steal_pointer(&f->gate_call);
        pf_bus_call_set_gone(call, NULL, NULL);
        pf_bus_call_drop(call);
    }
}

void pf_ferry_free(PfFerry *f)
{
    if (!f) {
        return;
    }
    g_autoptr(GError) error = NULL;
    g_set_error(&error, PF_ERROR, PF_ERROR_FAILED, "portferryd gives the handover up");
    if (f->begin_call) {
        answer(f, &f->begin_call, error);
    }
    if (f->gate_call) {
        answer(f, &f->gate_call, error);
    }
    stop(f);
    for (guint i = 0; f->watching && i < f->n_ports; i++) {
        pf_sb_unwatch(f->env->sb, f->ports[i]);
    }
    g_clear_pointer(&f->residence, pf_residence_free);
    f->env = NULL;
    let_go(f);
}

const PfHandoverView *pf_ferry_get_view(const PfFerry *f)
{
    return &f->view;
}

const PfMeasures *pf_ferry_get_measures(const PfFerry *f)
{
    return &f->measures;
}

PfState pf_ferry_get_state(const PfFerry *f)
{
    return f->state;
}

PfRole pf_ferry_get_role(const PfFerry *f)
{
    return f->role;
}

gboolean pf_ferry_is_cms(const PfFerry *f)
{
    return f->cms;
}

gboolean pf_ferry_is_ended(const PfFerry *f)
{
    return pf_state_info(f->state)->ended;
}
