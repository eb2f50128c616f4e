/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "manager.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <syslog.h>

#include "build-config.h"
#include "bus.h"
#include "chassis-list.h"
#include "cms.h"
#include "domain-xml.h"
#include "early.h"
#include "error.h"
#include "ferry.h"
#include "log.h"
#include "message-ids.h"
#include "metrics.h"
#include "notify.h"
#include "runtime.h"
#include "text.h"

/* external_ids of the local Open_vSwitch row.  The first two are ovn-controller's own; the third is
 * portferry's, for a host whose configuration file shall not differ from the others'. */
#define KEY_SYSTEM_ID "system-id"
#define KEY_OVN_REMOTE "ovn-remote"
#define KEY_OVN_NB_REMOTE "ovn-nb-remote"

typedef enum {
    COUNT_STARTED,
    COUNT_DONE,
    COUNT_UNDONE,
    COUNT_UNFINISHED,
    COUNT_REFUSED,
    COUNT_OVERRIDDEN,
    N_COUNTS,
} Count;

struct PfManager {
    PfConfig *config;
    PfManagerLoad load;
    PfManagerFatal fatal;
    gpointer data;  /* of load and fatal */
    gboolean ready; /* systemd has been told */
    gboolean switch_live;

    PfOvsdbLoop *loop;
    PfBus *bus;
    PfFerryEnv env; /* the adapters */
    char *chassis;  /* this host's system-id; NULL while unknown */
    char *nb_remote, *sb_remote;
    char *tls[3]; /* key, certificate and CA that the host's own row gives; NULL: in no use */

    GHashTable *ferries;     /* handover id -> PfFerry, open and ended */
    GQueue ended;            /* ids, oldest first; owned */
    GPtrArray *begins;       /* of Begin: pre-plugs that are under way or wait their turn */
    gboolean informed;       /* what the databases know has been taken up */
    PfEarly *early;          /* hooks at the gate until then */
    GHashTable *bad_markers; /* ports whose marker was complained about */
    GHashTable *forgotten;   /* ids of open handovers that an operator gave up */
    PfCms *cms;
    guint look_id;

    PfManagerView view;
    PfCounterView counters[N_COUNTS];
    PfMetrics *metrics;
    gint64 started; /* CLOCK_REALTIME */
};

/* A call of the hook `migrate begin`, or of an operator, that is not a handover yet. */
typedef struct {
    PfManager *manager;
    PfBusCall *call;
    gboolean by_hand; /* an operator's */
    char *name;       /* the domain's; NULL by hand */
    char *uuid;
    char **ports;               /* iface-ids */
    char **macs;                /* of the ports, "" for none; NULL by hand */
    PfDomainPolicy policy;      /* the domain's own */
    char *source;               /* the chassis, if an operator names it */
    PfSbChassis source_chassis; /* its row, once it is known */
    gboolean looking;           /* the southbound database is being asked */
    guint deadline_id;
} Begin;

static void look(PfManager *m);

/* ---- status ---- */

static void notify(PfManager *m)
{
    guint open = g_hash_table_size(m->ferries) - m->ended.length;
    pf_metrics_set_open(m->metrics, open);
    pf_notify_status("%u handover%s, libvirt %s, northbound %s, southbound %s, switch %s", open,
                     open == 1 ? "" : "s", m->view.libvirt_state, m->view.northbound_state,
                     m->view.southbound_state, m->view.switch_state);
}

static gboolean set_state(PfManager *m, const char **where, const char *state, const char *what,
                          PfManagerChange change)
{
    if (g_strcmp0(*where, state) == 0) {
        return FALSE;
    }
    gboolean was_in = g_strcmp0(*where, pf_ovsdb_state_to_string(PF_OVSDB_SYNCED)) == 0;
    gboolean is_in = g_strcmp0(state, pf_ovsdb_state_to_string(PF_OVSDB_SYNCED)) == 0;
    *where = state;
    if (was_in != is_in) {
        const PfLogFields fields = {.message_id = is_in ? PF_MESSAGE_DATABASE_CONNECTED
                                                        : PF_MESSAGE_DATABASE_LOST};
        pf_log(is_in ? LOG_INFO : LOG_WARNING, &fields, "%s database: %s", what, state);
    }
    if (m->bus) {
        pf_bus_manager_changed(m->bus, change);
    }
    return TRUE;
}

static void show_states(PfManager *m)
{
    const PfFerryEnv *env = &m->env;
    PfOvsdbState nb = env->nb ? pf_nb_get_state(env->nb) : PF_OVSDB_DISCONNECTED;
    const char *northbound = env->nb_is_none ? "none" : pf_ovsdb_state_to_string(nb);
    PfOvsdbState sb = env->sb ? pf_sb_get_state(env->sb) : PF_OVSDB_DISCONNECTED;
    PfOvsdbState ovs = env->ovs ? pf_ovs_get_state(env->ovs) : PF_OVSDB_DISCONNECTED;
    gboolean changed = FALSE;

    changed |=
        set_state(m, &m->view.northbound_state, northbound, "northbound", PF_MANAGER_NORTHBOUND);
    changed |= set_state(m, &m->view.southbound_state, pf_ovsdb_state_to_string(sb), "southbound",
                         PF_MANAGER_SOUTHBOUND);
    changed |= set_state(m, &m->view.switch_state, pf_ovsdb_state_to_string(ovs), "Open vSwitch",
                         PF_MANAGER_SWITCH);
    if (changed) {
        notify(m);
    }
}

/* ---- ferries ---- */

static PfFerry *find_open_ferry(PfManager *m, const char *uuid)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, m->ferries);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        if (!pf_ferry_is_ended(value) && g_str_equal(pf_ferry_get_view(value)->uuid, uuid)) {
            return value;
        }
    }
    return NULL;
}

/* The open ferries, held in an array because each may end, or others begin, in a call. */
static GPtrArray *open_ferries(PfManager *m)
{
    GPtrArray *open = g_ptr_array_new();
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, m->ferries);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        if (!pf_ferry_is_ended(value)) {
            g_ptr_array_add(open, value);
        }
    }
    return open;
}

static void forget_ferry(PfManager *m, const char *id)
{
    PfFerry *ferry = g_hash_table_lookup(m->ferries, id);
    if (ferry) {
        pf_bus_handover_removed(m->bus, pf_ferry_get_view(ferry));
        g_hash_table_remove(m->ferries, id); /* frees it */
    }
}

/* For the hook: libvirt's next call for this domain is about a migration, and may take so long. */
static void expect_domain(const PfFerry *ferry)
{
    const PfHandoverView *view = pf_ferry_get_view(ferry);
    const PfStateInfo *state = pf_state_info(pf_ferry_get_state(ferry));

    if (!view->by_hand && state->role == PF_ROLE_DESTINATION && state->limit == PF_LIMIT_INCOMING) {
        const PfIncoming incoming = pf_ferry_get_incoming(ferry);
        pf_runtime_set_incoming(view->uuid, &incoming);
    }
}

static void ferry_changed(PfFerry *ferry, PfHandoverChange what, gpointer data)
{
    PfManager *m = data;
    const PfHandoverView *view = pf_ferry_get_view(ferry);

    if (g_hash_table_lookup(m->ferries, view->id) != ferry) {
        return; /* not shown yet */
    }
    pf_bus_handover_changed(m->bus, view, what);
    PfState state = pf_ferry_get_state(ferry);
    gboolean binding = state == PF_DST_BINDING || state == PF_CMS_BINDING;
    if (what & PF_HANDOVER_HELD || (what & PF_HANDOVER_PHASE && binding)) {
        expect_domain(ferry);
    }
}

static gboolean on_look(gpointer data)
{
    PfManager *m = data;
    m->look_id = 0;
    look(m);
    return G_SOURCE_REMOVE;
}

static void schedule_look(PfManager *m)
{
    if (!m->look_id) {
        m->look_id = g_idle_add_full(G_PRIORITY_HIGH, on_look, m, NULL);
    }
}

static void ferry_ended(PfFerry *ferry, gpointer data)
{
    PfManager *m = data;
    const PfHandoverView *view = pf_ferry_get_view(ferry);

    PfState state = pf_ferry_get_state(ferry);
    m->counters[state == PF_ENDED_DONE     ? COUNT_DONE
                : state == PF_ENDED_UNDONE ? COUNT_UNDONE
                                           : COUNT_UNFINISHED]
        .value++;
    pf_metrics_ended(m->metrics, view, state, pf_ferry_get_measures(ferry));
    if (pf_ferry_get_role(ferry) == PF_ROLE_DESTINATION) {
        pf_runtime_set_incoming(view->uuid, NULL);
    }
    if (pf_ferry_is_cms(ferry)) {
        pf_cms_settle(m->cms, pf_ferry_get_role(ferry), view->uuid, view->peer);
    }
    g_queue_push_tail(&m->ended, g_strdup(view->id));
    notify(m);
    /* The next one may have waited for this; and we are inside of one of its functions. */
    schedule_look(m);
}

static PfFerry *add_ferry(PfManager *m, const PfFerryStart *start)
{
    const char *id = start->marker->handover;
    GList *old = g_queue_find_custom(&m->ended, id, (GCompareFunc)strcmp);
    if (old) { /* its marker has come back: a write that was thought lost has arrived */
        forget_ferry(m, id);
        g_free(old->data);
        g_queue_delete_link(&m->ended, old);
    }
    PfFerry *ferry = pf_ferry_new(&m->env, start);
    g_hash_table_insert(m->ferries, g_strdup(id), ferry);
    pf_bus_handover_added(m->bus, pf_ferry_get_view(ferry));
    m->counters[COUNT_STARTED].value++;
    notify(m);
    return ferry;
}

static void trim_history(PfManager *m)
{
    while (m->ended.length > (guint)m->config->history) {
        g_autofree char *id = g_queue_pop_head(&m->ended);
        forget_ferry(m, id);
    }
}

/* ---- handovers that a database tells of ---- */

typedef struct {
    PfMarker marker; /* strings owned */
    GPtrArray *ports;
} Found;

static void found_free(gpointer data)
{
    Found *found = data;
    g_free(found->marker.source);
    g_free(found->marker.destination);
    g_free(found->marker.domain);
    g_free(found->marker.handover);
    g_ptr_array_unref(found->ports);
    g_free(found);
}

static void note_found(GHashTable *all, const char *port, const PfMarker *marker)
{
    Found *found = g_hash_table_lookup(all, marker->handover);
    if (!found) {
        found = g_new0(Found, 1);
        found->marker = (PfMarker){.source = g_strdup(marker->source),
                                   .destination = g_strdup(marker->destination),
                                   .domain = g_strdup(marker->domain),
                                   .handover = g_strdup(marker->handover),
                                   .started = marker->started,
                                   .by_hand = marker->by_hand};
        found->ports = g_ptr_array_new_with_free_func(g_free);
        g_hash_table_insert(all, found->marker.handover, found);
    }
    g_ptr_array_add(found->ports, g_strdup(port));
}

typedef struct {
    PfManager *manager;
    GHashTable *all;  /* id -> Found: everything that is marked */
    GHashTable *lost; /* id -> Found: interfaces released for a handover that isn't */
} Search;

static void on_marked(const char *port, const PfMarker *marker, const GError *error, gpointer data)
{
    Search *search = data;
    PfManager *m = search->manager;

    if (marker) {
        note_found(search->all, port, marker);
    } else if (g_hash_table_add(m->bad_markers, g_strdup(port))) {
        const PfLogFields fields = {.message_id = PF_MESSAGE_HANDOVER_FAILED, .port = port};
        pf_log(LOG_WARNING, &fields,
               "port %s: ignoring its marker, which makes no sense: %s; remove the keys "
               "portferry-* from its external_ids if no migration is under way",
               port, error->message);
    }
}

static void on_released(const char *port, const char *domain, const char *id, gpointer data)
{
    Search *search = data;
    if (!g_hash_table_contains(search->all, id) && pf_handover_id_is_valid(id) &&
        pf_uuid_is_canonical(domain)) {
        const PfMarker marker = {.source = search->manager->chassis,
                                 .destination = (char *)"unknown",
                                 .domain = (char *)domain,
                                 .handover = (char *)id,
                                 .started = g_get_real_time()};
        note_found(search->lost, port, &marker);
    }
}

/* 'cms': what is known of it, if a CMS has begun it; else NULL. */
static void take_up(PfManager *m, PfRole role, PfOrigin origin, const PfMarker *marker,
                    const GPtrArray *with_ports, const PfCmsFound *cms)
{
    g_autoptr(GPtrArray) ports = g_ptr_array_new();
    for (guint i = 0; i < with_ports->len; i++) {
        g_ptr_array_add(ports, g_ptr_array_index(with_ports, i));
    }
    g_ptr_array_add(ports, NULL);

    const PfFerryStart start = {
        .role = role,
        .origin = origin,
        .marker = marker,
        .ports = (const char *const *)ports->pdata,
        .source = cms ? &cms->source : NULL,
        .destination = cms ? &cms->destination : NULL,
    };
    const PfLogFields fields = {
        .message_id = role == PF_ROLE_DESTINATION || marker->started < m->started
                          ? PF_MESSAGE_HANDOVER_RECOVERED
                          : PF_MESSAGE_HANDOVER_STARTED,
        .domain_uuid = marker->domain,
        .handover = marker->handover,
        .role = pf_role_name(role),
        .source = marker->source,
        .destination = marker->destination,
    };
    pf_log(LOG_INFO, &fields, "domain %s: takes part in handover %s from %s to %s as the %s",
           marker->domain, marker->handover, marker->source, marker->destination,
           pf_role_name(role));
    PfFerry *ferry = add_ferry(m, &start);
    expect_domain(ferry);
    pf_ferry_start(ferry);
}

static void take_up_found(PfManager *m, const Found *found, PfOrigin origin)
{
    const PfMarker *marker = &found->marker;
    PfFerry *known = g_hash_table_lookup(m->ferries, marker->handover);
    if ((known && !pf_ferry_is_ended(known)) ||
        g_hash_table_contains(m->forgotten, marker->handover)) {
        return;
    }
    if (find_open_ferry(m, marker->domain)) {
        return; /* one after the other: this is looked at again when that ends */
    }
    gboolean source = g_str_equal(marker->source, m->chassis);
    take_up(m, source ? PF_ROLE_SOURCE : PF_ROLE_DESTINATION, origin, marker, found->ports, NULL);
}

static void take_up_cms(const PfCmsFound *found, gpointer data)
{
    PfManager *m = data;
    g_autofree char *id = found->id ? g_strdup(found->id) : pf_handover_id_new();
    const PfMarker marker = {
        .source = found->source.name,
        .destination = found->destination.name,
        .domain = found->domain,
        .handover = id,
        .started = g_get_real_time(),
    };

    if (!find_open_ferry(m, found->domain)) {
        take_up(m, found->role, PF_ORIGIN_LISTS, &marker, found->ports, found);
    }
}

/* FALSE: the northbound database is not there. */
static gboolean take_up_marked(PfManager *m)
{
    if (!m->env.nb || pf_nb_get_state(m->env.nb) != PF_OVSDB_SYNCED) {
        return FALSE;
    }
    g_autoptr(GHashTable) all = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, found_free);
    g_autoptr(GHashTable) lost = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, found_free);
    Search search = {.manager = m, .all = all, .lost = lost};
    GHashTableIter iter;
    gpointer value;

    pf_nb_foreach_marked(m->env.nb, on_marked, &search);
    g_hash_table_iter_init(&iter, all);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        take_up_found(m, value, PF_ORIGIN_MARKER);
    }
    if (!m->env.ovs || pf_ovs_get_state(m->env.ovs) != PF_OVSDB_SYNCED) {
        return TRUE;
    }
    pf_ovs_foreach_released(m->env.ovs, on_released, &search);
    g_hash_table_iter_init(&iter, lost);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        take_up_found(m, value, PF_ORIGIN_INTERFACE);
    }
    return TRUE;
}

static void take_up_all(PfManager *m)
{
    if (!m->chassis) {
        return;
    }
    gboolean marked = m->env.nb_is_none || take_up_marked(m);
    gboolean listed =
        pf_cms_search(m->cms, m->env.sb, m->env.ovs, m->env.nb_is_none, take_up_cms, m);
    m->informed = m->informed || (marked && listed);
}

/* ---- handovers that libvirt begins ---- */

static void begin_free(gpointer data)
{
    Begin *begin = data;
    g_clear_handle_id(&begin->deadline_id, g_source_remove);
    g_free(begin->name);
    g_free(begin->uuid);
    g_strfreev(begin->ports);
    g_strfreev(begin->macs);
    pf_domain_policy_clear(&begin->policy);
    g_free(begin->source);
    pf_sb_chassis_clear(&begin->source_chassis);
    g_free(begin);
}

/* Ends a call without a handover.  'error' NULL: the domain is none of our business. */
static void begin_end(Begin *begin, const GError *error)
{
    PfManager *m = begin->manager;
    PfBusCall *call = g_steal_pointer(&begin->call);
    PfPolicy policy =
        begin->policy.has_on_not_ready ? begin->policy.on_not_ready : m->config->on_not_ready;

    if (!error) {
        pf_bus_call_reply(call);
    } else if (begin->by_hand) {
        pf_bus_call_fail(call, error);
    } else {
        gboolean refuse = policy == PF_POLICY_REFUSE;
        const PfLogFields fields = {.message_id = refuse ? PF_MESSAGE_MIGRATION_REFUSED
                                                         : PF_MESSAGE_NOT_READY_IN_TIME,
                                    .domain = begin->name,
                                    .domain_uuid = begin->uuid};
        pf_log(LOG_WARNING, &fields, "%s: %s",
               refuse ? "migration refused" : "migration goes on without portferry",
               error->message);
        if (refuse) {
            m->counters[COUNT_REFUSED].value++;
            pf_bus_call_fail(call, error);
        } else {
            pf_bus_call_reply(call);
        }
    }
    g_ptr_array_remove_fast(m->begins, begin);
}

static void begin_fail(Begin *begin, const char *port, PfError code, const char *text)
{
    g_autoptr(GError) error = NULL;
    pf_error_set(&error, code, begin->name ? begin->name : begin->uuid, port, "%s", text);
    begin_end(begin, error);
}

/* It is shut off (virsh migrate --offline), or takes other ports from here on (--xml). */
static void say_uncarried(const Begin *begin)
{
    g_autofree char *ports = g_strjoinv(",", begin->ports);
    g_autofree char *safe = pf_printable(begin->name ? begin->name : begin->uuid);
    const PfLogFields fields = {.domain = begin->name, .domain_uuid = begin->uuid, .port = ports};

    pf_log(LOG_INFO, &fields,
           "domain '%s' comes without a handover, since no chassis has its ports", safe);
}

static void begin_handover(Begin *begin, const PfSbFound *found, guint n, const PfSbChassis *self)
{
    PfManager *m = begin->manager;
    g_autoptr(GPtrArray) ports = g_ptr_array_new();
    g_autoptr(GPtrArray) macs = g_ptr_array_new();
    const PfSbChassis *source = begin->source ? &begin->source_chassis : NULL;
    const char *unbound = NULL;
    gboolean cold = FALSE;

    for (guint i = 0; i < n; i++) {
        if (!found[i].exists || !found[i].vif) {
            if (begin->by_hand) {
                begin_fail(begin, found[i].name, PF_ERROR_NOT_FOUND,
                           "the southbound database has no such port of a guest");
                return;
            }
            continue; /* not OVN's, or nothing that an interface can claim */
        }
        g_ptr_array_add(ports, begin->ports[i]);
        g_ptr_array_add(macs, begin->macs ? begin->macs[i] : (gpointer) "");
        cold = cold || found[i].cold;
        if (!found[i].bound && begin->source) {
            continue; /* an operator says where it belongs */
        }
        if (!found[i].bound && begin->by_hand) {
            begin_fail(begin, found[i].name, PF_ERROR_NOT_READY,
                       "no chassis has the port, so it can't be carried from anywhere: name the "
                       "source");
            return;
        }
        if (!found[i].bound && found[i].pinned) {
            begin_fail(begin, found[i].name, PF_ERROR_NOT_READY,
                       "no chassis has the port, and its requested-chassis is another host: set it "
                       "to this one first, or see to ovn-controller where the guest runs");
            return;
        }
        if (!found[i].bound) {
            unbound = found[i].name;
            continue;
        }
        if (g_str_equal(found[i].chassis.name, m->chassis)) {
            begin_fail(begin, found[i].name, PF_ERROR_CONFLICT,
                       "this host has the port already, though the guest runs elsewhere: look for "
                       "an old interface with its iface-id here");
            return;
        }
        if (source && !uuid_equals(&source->uuid, &found[i].chassis.uuid)) {
            begin_fail(begin, found[i].name, PF_ERROR_CONFLICT,
                       begin->source ? "another chassis than the source that was named has the port"
                                     : "the domain's ports are bound to different chassis");
            return;
        }
        source = &found[i].chassis;
    }
    if (source && unbound && !begin->source) {
        begin_fail(begin, unbound, PF_ERROR_NOT_READY,
                   "no chassis has the port, unlike the domain's others: see ovn-controller where "
                   "the guest runs");
        return;
    }
    if (!source) { /* none of the ports is OVN's, or nobody has them: there is nothing to carry */
        if (unbound) {
            say_uncarried(begin);
        }
        begin_end(begin, NULL);
        return;
    }
    if (!self) {
        begin_fail(begin, NULL, PF_ERROR_NOT_READY,
                   "the southbound database has no chassis of this host's system-id: is "
                   "ovn-controller running?");
        return;
    }
    g_ptr_array_add(ports, NULL);
    g_ptr_array_add(macs, NULL);

    g_autofree char *id = pf_handover_id_new();
    PfMarker marker = {
        .source = source->name,
        .destination = m->chassis,
        .domain = begin->uuid,
        .handover = id,
        .started = g_get_real_time(),
        .by_hand = begin->by_hand,
    };
    const PfFerryStart start = {
        .role = PF_ROLE_DESTINATION,
        .origin = m->env.nb_is_none ? PF_ORIGIN_HOOK_CMS : PF_ORIGIN_HOOK,
        .marker = &marker,
        .domain = begin->name,
        .ports = (const char *const *)ports->pdata,
        .macs = (const char *const *)macs->pdata,
        .source = source,
        .destination = self,
        .cold = cold,
        .policy = &begin->policy,
    };
    PfFerry *ferry = add_ferry(m, &start);
    pf_bus_call_set_handover(begin->call, id);
    pf_ferry_wait_begin(ferry, g_steal_pointer(&begin->call));
    g_ptr_array_remove_fast(m->begins, begin);
    pf_ferry_start(ferry);
}

static void lookup_done(const PfSbFound *found, guint n, const PfSbChassis *self,
                        const GError *error, gpointer data)
{
    Begin *begin = data;

    begin->looking = FALSE;
    if (pf_bus_call_is_gone(begin->call)) {
        begin_end(begin, NULL); /* the hook has given up, and so has libvirt */
    } else if (error) {
        begin_fail(begin, NULL, PF_ERROR_UNREACHABLE, error->message);
    } else if (find_open_ferry(begin->manager, begin->uuid)) {
        look(begin->manager); /* waits its turn */
    } else {
        begin_handover(begin, found, n, self);
    }
}

static void begin_try(Begin *begin);

static void source_found(const PfSbChassis *source, const PfSbChassis *destination G_GNUC_UNUSED,
                         const GError *error, gpointer data)
{
    Begin *begin = data;

    begin->looking = FALSE;
    if (pf_bus_call_is_gone(begin->call)) {
        begin_end(begin, NULL);
    } else if (error) {
        begin_fail(begin, NULL, PF_ERROR_UNREACHABLE, error->message);
    } else if (!source->name) {
        g_autofree char *text =
            g_strdup_printf("the southbound database has no chassis '%s'", begin->source);
        begin_fail(begin, NULL, PF_ERROR_NOT_FOUND, text);
    } else {
        pf_sb_chassis_copy(&begin->source_chassis, source);
        begin_try(begin);
    }
}

/* Starts a pre-plug, if nothing else goes on with its domain. */
static void begin_try(Begin *begin)
{
    PfManager *m = begin->manager;

    PfFerry *earlier = find_open_ferry(m, begin->uuid);
    gboolean no_nb = !m->env.nb && !m->env.nb_is_none;

    if (begin->looking || (earlier && !pf_ferry_give_way(earlier))) {
        return;
    }
    if (begin->by_hand && m->env.nb_is_none) {
        begin_fail(begin, NULL, PF_ERROR_DENIED,
                   "this host has no northbound database (ovn-nb=none): only the CMS can bind a "
                   "port to two hosts");
        return;
    }
    if (no_nb || !m->env.sb) {
        begin_fail(begin, NULL, PF_ERROR_UNREACHABLE,
                   !m->chassis ? "the local Open vSwitch database has not told this host's "
                                 "external_ids:system-id yet"
                   : no_nb     ? "no northbound database is known: set ovn-nb in " PF_CONFIG_FILE
                             ", to none where a CMS owns requested-chassis"
                           : "no southbound database is known: see external_ids:ovn-remote");
        return;
    }
    guint timeout_ms = (guint)(m->config->preplug_timeout / 1000);
    if (begin->source && g_str_equal(begin->source, m->chassis)) {
        begin_fail(begin, NULL, PF_ERROR_INVALID_ARGUMENT,
                   "the source that was named is this host; it is called on the destination");
        return;
    }
    begin->looking = TRUE;
    if (begin->source && !begin->source_chassis.name) {
        pf_sb_find_chassis(m->env.sb, begin->source, m->chassis, timeout_ms, source_found, begin);
    } else {
        pf_sb_lookup(m->env.sb, (const char *const *)begin->ports, timeout_ms, lookup_done, begin);
    }
}

static gboolean on_begin_deadline(gpointer data)
{
    Begin *begin = data;
    begin->deadline_id = 0;
    if (!begin->looking) { /* the question has a deadline of its own */
        begin_fail(begin, NULL, PF_ERROR_BUSY,
                   "an earlier handover of this domain has not ended yet: see portferry's status");
    }
    return G_SOURCE_REMOVE;
}

static Begin *begin_new(PfManager *m, PfBusCall *call, const char *uuid)
{
    Begin *begin = g_new0(Begin, 1);
    begin->manager = m;
    begin->call = call;
    begin->uuid = g_strdup(uuid);
    begin->deadline_id =
        g_timeout_add((guint)(m->config->preplug_timeout / 1000), on_begin_deadline, begin);
    g_ptr_array_add(m->begins, begin);
    return begin;
}

static void on_migrate_begin(PfBusCall *call, const char *name G_GNUC_UNUSED, GBytes *xml,
                             gpointer data)
{
    PfManager *m = data;
    g_autoptr(GError) error = NULL;
    gsize size;
    const void *text = g_bytes_get_data(xml, &size);
    g_autoptr(PfDomain) domain = pf_domain_parse(text, size, &error);

    if (!domain) {
        pf_bus_call_fail(call, error);
        return;
    }
    if (domain->policy.off) {
        const PfLogFields fields = {.domain = domain->name, .domain_uuid = domain->uuid};
        g_autofree char *safe = pf_printable(domain->name);
        pf_log(LOG_INFO, &fields, "domain '%s' comes without portferry, as its metadata says",
               safe);
        pf_bus_call_reply(call);
        return;
    }
    if (domain->ports->len == 0) {
        pf_bus_call_reply(call);
        return;
    }
    Begin *begin = begin_new(m, call, domain->uuid);
    begin->name = g_strdup(domain->name);
    begin->ports = g_new0(char *, domain->ports->len + 1);
    begin->macs = g_new0(char *, domain->ports->len + 1);
    for (guint i = 0; i < domain->ports->len; i++) {
        const PfDomainPort *port = g_ptr_array_index(domain->ports, i);
        begin->ports[i] = g_strdup(port->iface_id);
        begin->macs[i] = g_strdup(port->mac ? port->mac : "");
    }
    pf_domain_policy_copy(&begin->policy, &domain->policy);
    PfFerry *earlier = find_open_ferry(m, begin->uuid);
    if (earlier) {
        pf_ferry_superseded(earlier);
    }
    begin_try(begin);
}

/* ---- handovers that an operator begins ---- */

/* The longest name of a port by hand; libvirt's are UUIDs. */
#define PORT_NAME_MAX 255

static gboolean check_ports(const char *const *ports, GError **error)
{
    if (!*ports) {
        g_set_error(error, PF_ERROR, PF_ERROR_INVALID_ARGUMENT, "no port is named");
        return FALSE;
    }
    if (g_strv_length((char **)ports) > PF_DOMAIN_PORTS_MAX) {
        g_set_error(error, PF_ERROR, PF_ERROR_INVALID_ARGUMENT, "more than %d ports are named",
                    PF_DOMAIN_PORTS_MAX);
        return FALSE;
    }
    for (guint i = 0; ports[i]; i++) {
        g_autofree char *safe = pf_printable(ports[i]);
        if (!*ports[i] || !pf_text_is_clean(ports[i], PORT_NAME_MAX)) {
            g_set_error(error, PF_ERROR, PF_ERROR_INVALID_ARGUMENT, "'%s' is not a port's name",
                        safe);
            return FALSE;
        }
        for (guint j = 0; j < i; j++) {
            if (g_str_equal(ports[i], ports[j])) {
                g_set_error(error, PF_ERROR, PF_ERROR_INVALID_ARGUMENT, "port '%s' is named twice",
                            safe);
                return FALSE;
            }
        }
    }
    return TRUE;
}

static void on_preplug(PfBusCall *call, const char *uuid, const char *const *ports,
                       const char *source, gpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *canonical = pf_uuid_canonical(uuid);

    if (!canonical) {
        g_autofree char *safe = pf_printable(uuid);
        g_set_error(&error, PF_ERROR, PF_ERROR_INVALID_ARGUMENT, "'%s' is not a domain's UUID",
                    safe);
    } else if (check_ports(ports, &error) && *source) {
        pf_chassis_name_check(source, "source", &error);
    }
    if (error) {
        pf_bus_call_fail(call, error);
        return;
    }
    Begin *begin = begin_new(data, call, canonical);
    begin->by_hand = TRUE;
    begin->ports = g_strdupv((char **)ports);
    begin->source = *source ? g_strdup(source) : NULL;
    g_autofree char *joined = g_strjoinv(",", begin->ports);
    const PfLogFields fields = {
        .message_id = PF_MESSAGE_OPERATOR_PREPLUG, .domain_uuid = canonical, .port = joined};
    pf_log(LOG_NOTICE, &fields, "an operator begins a handover of domain %s to this host",
           canonical);
    begin_try(begin);
}

/* ---- the bus's other calls ---- */

static PfFerry *ferry_of_xml(PfManager *m, GBytes *xml, GError **error)
{
    gsize size;
    const void *text = g_bytes_get_data(xml, &size);
    g_autoptr(PfDomain) domain = pf_domain_parse(text, size, error);
    return domain ? find_open_ferry(m, domain->uuid) : NULL;
}

static void enter_gate(PfBusCall *call, const char *uuid, const PfDomainPolicy *policy,
                       gpointer data)
{
    PfFerry *ferry = find_open_ferry(data, uuid);

    if (!ferry || pf_ferry_get_role(ferry) != PF_ROLE_DESTINATION ||
        pf_ferry_get_view(ferry)->by_hand) {
        pf_bus_call_reply(call);
    } else {
        /* A daemon that was restarted meanwhile doesn't know it. */
        pf_ferry_set_policy(ferry, policy);
        pf_ferry_wait_gate(ferry, call);
    }
}

static void on_started_begin(PfBusCall *call, const char *name G_GNUC_UNUSED, GBytes *xml,
                             gpointer data)
{
    PfManager *m = data;
    g_autoptr(GError) error = NULL;
    gsize size;
    const void *text = g_bytes_get_data(xml, &size);
    g_autoptr(PfDomain) domain = pf_domain_parse(text, size, &error);

    if (error) {
        pf_bus_call_fail(call, error);
    } else if (!m->informed && !find_open_ferry(m, domain->uuid)) {
        const PfDomainPolicy *own = &domain->policy;
        pf_early_add(m->early, call, domain,
                     own->ready_timeout ? own->ready_timeout : m->config->ready_timeout,
                     own->has_on_not_ready ? own->on_not_ready : m->config->on_not_ready);
    } else {
        enter_gate(call, domain->uuid, &domain->policy, m);
    }
}

static void on_released_call(const char *name G_GNUC_UNUSED, GBytes *xml, gpointer data)
{
    PfFerry *ferry = ferry_of_xml(data, xml, NULL);
    if (ferry) {
        pf_ferry_released(ferry);
    }
}

static PfFerry *find_ferry(PfManager *m, const char *id, GError **error)
{
    PfFerry *ferry = g_hash_table_lookup(m->ferries, id);
    if (!ferry) {
        g_set_error(error, PF_ERROR, PF_ERROR_NOT_FOUND, "there is no handover '%s'", id);
    }
    return ferry;
}

static void end_call(PfBusCall *call, const GError *error)
{
    if (error) {
        pf_bus_call_fail(call, error);
    } else {
        pf_bus_call_reply(call);
    }
}

static void override(PfManager *m, PfBusCall *call, const char *id, PfEvent event)
{
    g_autoptr(GError) error = NULL;
    PfFerry *ferry = find_ferry(m, id, &error);

    if (ferry && pf_ferry_override(ferry, event, &error)) {
        m->counters[COUNT_OVERRIDDEN].value++;
    }
    end_call(call, error);
}

static void on_activate(PfBusCall *call, const char *id, gpointer data)
{
    override(data, call, id, PF_EV_ACTIVATE);
}

static void on_rollback(PfBusCall *call, const char *id, gpointer data)
{
    override(data, call, id, PF_EV_ROLLBACK);
}

static void on_hold(PfBusCall *call, const char *id, gpointer data)
{
    g_autoptr(GError) error = NULL;
    PfFerry *ferry = find_ferry(data, id, &error);

    if (ferry) {
        pf_ferry_hold(ferry, &error);
    }
    end_call(call, error);
}

static void on_release(PfBusCall *call, const char *id, gpointer data)
{
    g_autoptr(GError) error = NULL;
    PfFerry *ferry = find_ferry(data, id, &error);

    if (ferry) {
        pf_ferry_release(ferry, &error);
    }
    end_call(call, error);
}

/* Gives up an open handover: nothing in the databases is touched, and what is there is not taken up
 * again. */
static void give_up(PfManager *m, PfFerry *ferry)
{
    const PfHandoverView *view = pf_ferry_get_view(ferry);
    const PfLogFields fields = {.message_id = PF_MESSAGE_OPERATOR_FORGET,
                                .domain = view->domain,
                                .domain_uuid = view->uuid,
                                .handover = view->id,
                                .phase = view->phase,
                                .role = view->role,
                                .source = view->source,
                                .destination = view->destination};
    pf_log(LOG_WARNING, &fields,
           "an operator gives up handover %s of domain %s in phase '%s'; its marker stays in the "
           "northbound database",
           view->id, view->uuid, view->phase);
    g_hash_table_add(m->forgotten, g_strdup(view->id));
    if (pf_ferry_is_cms(ferry)) {
        pf_cms_settle(m->cms, pf_ferry_get_role(ferry), view->uuid, view->peer);
    }
    if (pf_ferry_get_role(ferry) == PF_ROLE_DESTINATION) {
        pf_runtime_set_incoming(view->uuid, NULL);
    }
}

static void on_forget(PfBusCall *call, const char *id, gpointer data)
{
    PfManager *m = data;
    g_autoptr(GError) error = NULL;
    PfFerry *ferry = find_ferry(m, id, &error);

    if (ferry && !pf_ferry_is_ended(ferry) && !pf_ferry_is_stuck(ferry)) {
        g_set_error(&error, PF_ERROR, PF_ERROR_WRONG_PHASE,
                    "handover '%s' is open and not stuck: only one that has stood in a phase "
                    "without a time limit for longer than teardown-timeout can be given up",
                    id);
    } else if (ferry) {
        GList *ended = g_queue_find_custom(&m->ended, id, (GCompareFunc)strcmp);
        if (ended) {
            g_free(ended->data);
            g_queue_delete_link(&m->ended, ended);
        } else {
            give_up(m, ferry);
        }
        forget_ferry(m, id);
        notify(m);
        schedule_look(m);
    }
    end_call(call, error);
}

static void on_reload(PfBusCall *call, gpointer data)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) need_restart = pf_manager_reload(data, &error);

    pf_bus_call_set_strings(call, (const char *const *)need_restart);
    end_call(call, error);
}

static void on_bus_acquired(gpointer data)
{
    PfManager *m = data;
    m->ready = TRUE;
    pf_notify("READY=1");
    notify(m);
}

static void on_bus_lost(const char *why, gpointer data G_GNUC_UNUSED)
{
    const PfLogFields fields = {.message_id = PF_MESSAGE_BUS_LOST};
    pf_log(LOG_WARNING, &fields, "the bus is gone (%s); connecting again", why);
}

static void on_bus_fatal(const GError *error, gpointer data)
{
    PfManager *m = data;
    m->fatal(error, m->data);
}

static const PfBusOps bus_ops = {
    .acquired = on_bus_acquired,
    .lost = on_bus_lost,
    .fatal = on_bus_fatal,
    .migrate_begin = on_migrate_begin,
    .started_begin = on_started_begin,
    .released = on_released_call,
    .activate = on_activate,
    .rollback = on_rollback,
    .hold = on_hold,
    .release = on_release,
    .preplug = on_preplug,
    .reload = on_reload,
    .forget = on_forget,
};

/* ---- libvirt ---- */

static void on_virt_state(PfVirtState state, const char *why, gpointer data)
{
    PfManager *m = data;
    gboolean connected = state == PF_VIRT_CONNECTED;

    m->view.libvirt_state = pf_virt_state_to_string(state);
    pf_bus_manager_changed(m->bus, PF_MANAGER_LIBVIRT);
    notify(m);
    if (state != PF_VIRT_CONNECTING) {
        const PfLogFields fields = {.message_id = connected ? PF_MESSAGE_LIBVIRT_CONNECTED
                                                            : PF_MESSAGE_LIBVIRT_LOST};
        pf_log(connected ? LOG_INFO : LOG_WARNING, &fields, "libvirt %s: %s", m->view.libvirt_state,
               why);
    }
}

static void on_virt_event(const PfVirtEvent *event, gpointer data)
{
    PfManager *m = data;
    PfFerry *ferry = find_open_ferry(m, event->uuid);

    if ((event->type == PF_VIRT_EVENT_SUSPENDED_MIGRATED ||
         event->type == PF_VIRT_EVENT_SUSPENDED_POSTCOPY) &&
        (!ferry || pf_ferry_is_cms(ferry)) &&
        pf_cms_wake(m->cms, m->env.sb, m->env.ovs, m->env.nb_is_none, event->uuid)) {
        /* Of an earlier migration, whose lists the CMS has left as they are, or used again. */
        if (ferry) {
            pf_ferry_give_way(ferry);
        }
        pf_cms_wake(m->cms, m->env.sb, m->env.ovs, m->env.nb_is_none, event->uuid);
        take_up_all(m);
        ferry = find_open_ferry(m, event->uuid);
    }
    if (ferry) {
        pf_ferry_virt_event(ferry, event);
    }
}

static void on_virt_snapshot(const GPtrArray *guests G_GNUC_UNUSED, gpointer data)
{
    PfManager *m = data;
    GHashTableIter iter;
    gpointer value;

    /* The snapshot says that libvirt can answer; each handover asks for what it needs.  One that
     * has ended only asks where no other speaks for its domain. */
    g_hash_table_iter_init(&iter, m->ferries);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        if (!pf_ferry_is_ended(value) || !find_open_ferry(m, pf_ferry_get_view(value)->uuid)) {
            pf_ferry_resync(value);
        }
    }
}

static const PfVirtCallbacks virt_callbacks = {
    .state_changed = on_virt_state,
    .event = on_virt_event,
    .snapshot = on_virt_snapshot,
};

/* ---- databases ---- */

static void look(PfManager *m)
{
    g_autoptr(GPtrArray) open = open_ferries(m);
    for (guint i = 0; i < open->len; i++) {
        pf_ferry_look(g_ptr_array_index(open, i));
    }
    take_up_all(m);
    if (m->informed) {
        pf_early_hand_on(m->early, enter_gate, m);
    }
    for (guint i = m->begins->len; i > 0; i--) {
        if (i <= m->begins->len) {
            begin_try(g_ptr_array_index(m->begins, i - 1));
        }
    }
    trim_history(m);
}

static void on_db_changed(gpointer data)
{
    PfManager *m = data;
    show_states(m);
    look(m);
}

static gboolean follow_remote(char **known, const char *now)
{
    if (g_strcmp0(*known, now) == 0) {
        return FALSE;
    }
    g_free(*known);
    *known = g_strdup(now);
    return TRUE;
}

static void complain(const char *what, GError *error)
{
    const PfLogFields fields = {.message_id = PF_MESSAGE_BAD_CONFIGURATION};
    pf_log(LOG_ERR, &fields, "%s: %s", what, error->message);
    g_error_free(error);
}

/* Without files of its own, portferry shows the databases those of ovn-controller. */
static void follow_host_tls(PfManager *m)
{
    const char *files[G_N_ELEMENTS(m->tls)];
    gboolean changed = FALSE;
    GError *error = NULL;

    if (m->config->ssl_certificate || m->config->ssl_ca_cert ||
        !pf_ovs_get_tls(m->env.ovs, &files[0], &files[1], &files[2])) {
        return;
    }
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        changed |= follow_remote(&m->tls[i], files[i]);
    }
    if (changed && !pf_ovsdb_set_tls(files[0], files[1], files[2], &error)) {
        complain("the certificate of this host's SSL row (ovs-vsctl get-ssl)", error);
    }
}

static void note_switch(PfManager *m)
{
    gboolean live = pf_ovs_get_state(m->env.ovs) == PF_OVSDB_SYNCED;
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, m->ferries);
    while (live && !m->switch_live && g_hash_table_iter_next(&iter, NULL, &value)) {
        pf_ferry_switch_is_back(value);
    }
    m->switch_live = live;
}

/* The host's own row says who it is and where its databases are, as it does to ovn-controller. */
static void on_ovs_changed(gpointer data)
{
    PfManager *m = data;
    GError *error = NULL;

    note_switch(m);
    if (pf_ovs_get_state(m->env.ovs) == PF_OVSDB_SYNCED) {
        const char *chassis = pf_ovs_get_external_id(m->env.ovs, KEY_SYSTEM_ID);
        if (chassis && g_strcmp0(chassis, m->chassis) != 0) {
            if (m->chassis) {
                g_set_error(&error, PF_ERROR, PF_ERROR_FAILED,
                            "this host's system-id has changed from %s to %s; starting anew",
                            m->chassis, chassis);
                m->fatal(error, m->data);
                g_error_free(error);
                return;
            }
            m->chassis = g_strdup(chassis);
            m->view.chassis = m->chassis;
            pf_bus_manager_changed(m->bus, PF_MANAGER_CHASSIS);
        }
        const char *nb = m->config->ovn_nb ? m->config->ovn_nb
                                           : pf_ovs_get_external_id(m->env.ovs, KEY_OVN_NB_REMOTE);
        const char *sb = m->config->ovn_sb ? m->config->ovn_sb
                                           : pf_ovs_get_external_id(m->env.ovs, KEY_OVN_REMOTE);
        follow_host_tls(m);
        m->env.nb_is_none = pf_remote_is_none(nb);
        if (m->chassis && nb && follow_remote(&m->nb_remote, nb)) {
            if (m->env.nb) {
                pf_nb_set_remote(m->env.nb, m->env.nb_is_none ? NULL : nb, &error);
            } else if (!m->env.nb_is_none) {
                m->env.nb = pf_nb_new(m->loop, nb, m->chassis, on_db_changed, m, &error);
            }
            if (error) {
                complain("northbound database", g_steal_pointer(&error));
            }
        }
        if (m->chassis && sb && follow_remote(&m->sb_remote, sb)) {
            if (m->env.sb) {
                pf_sb_set_remote(m->env.sb, sb, &error);
            } else {
                m->env.sb = pf_sb_new(m->loop, sb, m->chassis, on_db_changed, m, &error);
            }
            if (error) {
                complain("southbound database", g_steal_pointer(&error));
            }
        }
    }
    on_db_changed(m);
}

/* ---- configuration ---- */

static gboolean set_tls(const PfConfig *config, GError **error)
{
    return (!config->ssl_certificate && !config->ssl_ca_cert) ||
           pf_ovsdb_set_tls(config->ssl_private_key, config->ssl_certificate, config->ssl_ca_cert,
                            error);
}

/* Whether 'remote' (NULL: none) is one that can be connected to. */
static gboolean check_remote(const char *key, const char *remote, GError **error)
{
    gboolean given = remote && !pf_remote_is_none(remote);
    g_autofree char *checked = given ? pf_ovsdb_check_remote(remote, error) : NULL;
    if (given && !checked) {
        g_prefix_error(error, "%s: ", key);
        return FALSE;
    }
    return TRUE;
}

/* A setting that can't change while the daemon runs keeps its value. */
static void keep(char **now, char **next, const char *key, GStrvBuilder *need_restart)
{
    if (!g_str_equal(*now, *next)) {
        char *given = *next;
        *next = *now;
        *now = given;
        g_strv_builder_add(need_restart, key);
    }
}

static char **follow_config(PfManager *m, GError **error)
{
    g_autoptr(PfConfig) next = m->load(m->data, error);
    g_autoptr(GStrvBuilder) need_restart = g_strv_builder_new();

    if (!next || !check_remote("ovs-db", next->ovs_db, error) ||
        !check_remote("ovn-nb", next->ovn_nb, error) ||
        !check_remote("ovn-sb", next->ovn_sb, error) || !set_tls(next, error) ||
        !pf_ovs_set_remote(m->env.ovs, next->ovs_db, error)) {
        return NULL;
    }
    keep(&m->config->libvirt_uri, &next->libvirt_uri, "libvirt-uri", need_restart);
    keep(&m->config->integration_bridge, &next->integration_bridge, "integration-bridge",
         need_restart);

    PfConfig *old = m->config;
    m->config = g_steal_pointer(&next);
    m->env.config = m->config;
    pf_config_free(old);
    pf_metrics_set_file(m->metrics, m->config->metrics_file);

    g_autoptr(GPtrArray) open = open_ferries(m);
    for (guint i = 0; i < open->len; i++) {
        expect_domain(g_ptr_array_index(open, i)); /* its hook has limits by the configuration */
    }
    on_ovs_changed(m);
    schedule_look(m); /* the history may be shorter now */
    return g_strv_builder_end(need_restart);
}

char **pf_manager_reload(PfManager *m, GError **error)
{
    if (m->ready) {
        g_autofree char *state = g_strdup_printf("RELOADING=1\nMONOTONIC_USEC=%" G_GINT64_FORMAT,
                                                 g_get_monotonic_time());
        pf_notify(state);
    }
    char **need_restart = follow_config(m, error);
    if (need_restart) {
        const PfLogFields fields = {.message_id = PF_MESSAGE_RELOADED};
        g_autofree char *keys = g_strjoinv(", ", need_restart);
        pf_log(*keys ? LOG_WARNING : LOG_INFO, &fields, "the configuration was reloaded%s%s",
               *keys ? "; only a restart can follow " : "", keys);
    }
    if (m->ready) {
        pf_notify("READY=1");
        notify(m);
    }
    return need_restart;
}

/* ---- life ---- */

static void free_ferry(gpointer data)
{
    pf_ferry_free(data);
}

PfManager *pf_manager_new(PfConfig *config, PfManagerLoad load, sd_event *event,
                          const char *bus_address, PfManagerFatal fatal, gpointer data,
                          GError **error)
{
    static const char *const count_names[N_COUNTS] = {
        [COUNT_STARTED] = "handovers-started",       [COUNT_DONE] = "handovers-done",
        [COUNT_UNDONE] = "handovers-rolled-back",    [COUNT_REFUSED] = "migrations-refused",
        [COUNT_OVERRIDDEN] = "handovers-overridden", [COUNT_UNFINISHED] = "handovers-unfinished",
    };
    g_autoptr(PfManager) m = g_new0(PfManager, 1);

    m->config = config;
    m->load = load;
    m->fatal = fatal;
    m->data = data;
    m->started = g_get_real_time();
    m->ferries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_ferry);
    m->begins = g_ptr_array_new_with_free_func(begin_free);
    m->early = pf_early_new();
    m->bad_markers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    m->forgotten = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    m->cms = pf_cms_new();
    g_queue_init(&m->ended);
    for (guint i = 0; i < N_COUNTS; i++) {
        m->counters[i].name = count_names[i];
    }
    m->view = (PfManagerView){
        .version = PF_VERSION,
        .hostname = g_get_host_name(),
        .libvirt_state = pf_virt_state_to_string(PF_VIRT_DISCONNECTED),
        .counters = m->counters,
        .n_counters = N_COUNTS,
    };
    m->metrics = pf_metrics_new(&m->view);
    m->view.metrics = m->metrics;
    m->env.config = config;
    m->env.changed = ferry_changed;
    m->env.ended = ferry_ended;
    m->env.data = m;

    if (!pf_runtime_prepare(error)) {
        return NULL;
    }
    m->loop = pf_ovsdb_loop_new(NULL);
    if (!set_tls(config, error)) {
        return NULL;
    }
    show_states(m);
    m->bus = pf_bus_new(event, bus_address, &m->view, &bus_ops, m);
    m->env.virt = pf_virt_new(config->libvirt_uri, &virt_callbacks, m);
    m->env.ovs =
        pf_ovs_new(m->loop, config->ovs_db, config->integration_bridge, on_ovs_changed, m, error);
    if (!m->env.ovs) {
        return NULL;
    }
    pf_bus_start(m->bus);
    pf_virt_start(m->env.virt);
    pf_metrics_set_file(m->metrics, config->metrics_file);
    return g_steal_pointer(&m);
}

static void leave_gate(gpointer ferry, gpointer data G_GNUC_UNUSED)
{
    pf_ferry_leave_gate(ferry);
}

void pf_manager_free(PfManager *m)
{
    if (!m) {
        return;
    }
    g_clear_handle_id(&m->look_id, g_source_remove);
    g_autoptr(GError) stopping = NULL;
    g_set_error(&stopping, PF_ERROR, PF_ERROR_UNREACHABLE, "portferryd is stopping");
    for (guint i = 0; i < m->begins->len; i++) {
        Begin *begin = g_ptr_array_index(m->begins, i);
        pf_bus_call_fail(begin->call, stopping);
    }
    g_ptr_array_unref(m->begins);
    pf_early_free(m->early);
    g_autoptr(GPtrArray) open = open_ferries(m);
    g_ptr_array_foreach(open, leave_gate, NULL);
    g_hash_table_unref(m->ferries);
    g_queue_clear_full(&m->ended, g_free);
    pf_virt_free(m->env.virt);
    pf_sb_free(m->env.sb);
    pf_nb_free(m->env.nb);
    pf_ovs_free(m->env.ovs);
    pf_bus_free(m->bus);
    pf_ovsdb_loop_free(m->loop);
    g_hash_table_unref(m->bad_markers);
    g_hash_table_unref(m->forgotten);
    pf_cms_free(m->cms);
    for (guint i = 0; i < G_N_ELEMENTS(m->tls); i++) {
        g_free(m->tls[i]);
    }
    pf_metrics_free(m->metrics);
    pf_config_free(m->config);
    g_free(m->chassis);
    g_free(m->nb_remote);
    g_free(m->sb_remote);
    g_free(m);
}
