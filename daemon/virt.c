/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "virt.h"

#include <libvirt-glib/libvirt-glib.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <stdlib.h>

/* libvirtd's main loop answers these.  Three missed in a row: 15 to 20 s until a frozen libvirtd is
 * noticed.  Its end is noticed at once. */
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_COUNT 3

#define RETRY_FIRST_MS 200
#define RETRY_MAX_MS 5000

/* An attempt that takes longer than this is shown as such; libvirtd may be frozen. */
#define SLOW_MS 1000

#define N_EVENT_IDS 3

/* libvirt's own VIR_DOMAIN_EVENT_CALLBACK(), by way of the type that GCC lets pass. */
#define EVENT_CALLBACK(f) ((virConnectDomainEventGenericCallback)(void (*)(void))(f))

/*
 * One connection, from the attempt to its end.  libvirt's callbacks hold references, so it outlives
 * the connection itself.  The worker thread fills 'conn' and 'ids' in before it posts that it is
 * connected; from then until the closing job only the main thread reads them.
 */
typedef struct {
    gatomicrefcount refs;
    PfVirt *virt; /* a reference */
    virConnectPtr conn;
    int ids[N_EVENT_IDS]; /* -1: not registered */
    gboolean close_registered;
} PfVirtLink;

/* All questions about one domain.  At most one job a domain is under way, so that a domain that is
 * locked holds up one thread only. */
typedef struct {
    char *uuid;
    gboolean busy;
    GQueue running; /* Ask: the job that is under way will answer them */
    GQueue waiting; /* Ask: came after it had begun */
} Question;

typedef struct {
    PfVirt *virt;
    Question *question;
    guint64 id;
    PfVirtAskFlags flags;
    guint timer_id;
    PfVirtAnswer answer;
    gpointer userdata;
} Ask;

struct PfVirt {
    gatomicrefcount refs; /* the owner, and each link, job and posted result */
    char *uri;
    const PfVirtCallbacks *callbacks;
    gpointer userdata;

    PfVirtState state;
    gboolean freed;
    PfVirtLink *link; /* the connection, or the attempt; NULL while waiting for the next one */
    guint attempts;   /* since domains were last listed */
    guint retry_id;
    guint slow_id; /* will say that the attempt takes long */

    GThreadPool *connector; /* one thread: connects, lists, closes */
    GThreadPool *askers;

    GHashTable *questions; /* UUID -> Question */
    GHashTable *asks;      /* id -> Ask */
    guint64 last_id;
};

static void link_failed(PfVirtLink *link, const char *why);

/* Memory, and the way back to the main thread */

static PfVirt *virt_ref(PfVirt *self)
{
    g_atomic_ref_count_inc(&self->refs);
    return self;
}

static void virt_unref(PfVirt *self)
{
    if (!g_atomic_ref_count_dec(&self->refs))
        return;

    g_free(self->uri);
    g_free(self);
}

static PfVirtLink *link_new(PfVirt *virt)
{
    PfVirtLink *link = g_new0(PfVirtLink, 1);

    g_atomic_ref_count_init(&link->refs);
    link->virt = virt_ref(virt);
    for (guint i = 0; i < N_EVENT_IDS; i++)
        link->ids[i] = -1;
    return link;
}

static PfVirtLink *link_ref(PfVirtLink *link)
{
    g_atomic_ref_count_inc(&link->refs);
    return link;
}

static void link_unref(gpointer data)
{
    PfVirtLink *link = data;

    if (!g_atomic_ref_count_dec(&link->refs))
        return;

    virt_unref(link->virt);
    g_free(link);
}

static void guest_free(gpointer data)
{
    PfVirtGuest *guest = data;

    if (guest == NULL)
        return;
    g_free(guest->uuid);
    g_free(guest->name);
    g_free(guest->error);
    g_free(guest);
}

/* g_main_context_invoke() would call 'func' at once if this is the main thread, which must not
 * happen in libvirt's close callback. */
static void post(GSourceFunc func, gpointer data, GDestroyNotify destroy)
{
    GSource *source = g_idle_source_new();

    g_source_set_priority(source, G_PRIORITY_HIGH);
    g_source_set_callback(source, func, data, destroy);
    g_source_attach(source, NULL);
    g_source_unref(source);
}

static char *last_error(void)
{
    const char *message = virGetLastErrorMessage();

    return g_strdup(message != NULL && *message != '\0' ? message : "unknown error");
}

/* libvirt prints every error to standard error unless it is told not to. */
static void ignore_error(void *userdata, virErrorPtr error)
{
}

/* Reading a domain's state; in a worker thread */

static PfVirtJob read_job(virDomainPtr domain)
{
    virTypedParameterPtr params = NULL;
    int n_params = 0;
    int type = VIR_DOMAIN_JOB_NONE;
    int operation = VIR_DOMAIN_JOB_OPERATION_UNKNOWN;

    if (virDomainGetJobStats(domain, &type, &params, &n_params, 0) < 0)
        return virGetLastErrorCode() == VIR_ERR_OPERATION_UNSUPPORTED ? PF_VIRT_JOB_MIGRATION_IN
                                                                      : PF_VIRT_JOB_UNKNOWN;

    virTypedParamsGetInt(params, n_params, VIR_DOMAIN_JOB_OPERATION, &operation);
    virTypedParamsFree(params, n_params);

    return type == VIR_DOMAIN_JOB_NONE ? PF_VIRT_JOB_NONE : pf_virt_job_from_operation(operation);
}

/* Fills in all of 'guest' but the UUID, which it has. */
static void read_guest(virDomainPtr domain, PfVirtAskFlags flags, PfVirtGuest *guest)
{
    int state = VIR_DOMAIN_NOSTATE;
    gboolean want_job;

    guest->name = g_strdup(virDomainGetName(domain));
    guest->read_us = g_get_monotonic_time();
    if (virDomainGetState(domain, &state, &guest->reason, 0) < 0) {
        if (virGetLastErrorCode() == VIR_ERR_NO_DOMAIN) {
            guest->state = PF_VIRT_GUEST_ABSENT;
        } else {
            guest->state = PF_VIRT_GUEST_UNREACHABLE;
            guest->error = last_error();
        }
        return;
    }

    /* Never while QEMU is being started: that would wait for the query job, 30 s at worst. */
    want_job = state == VIR_DOMAIN_PAUSED && guest->reason == VIR_DOMAIN_PAUSED_MIGRATION;
    if (flags & PF_VIRT_ASK_JOB)
        want_job = want_job || state == VIR_DOMAIN_RUNNING ||
                   (state == VIR_DOMAIN_PAUSED && guest->reason != VIR_DOMAIN_PAUSED_STARTING_UP);
    if (want_job)
        guest->job = read_job(domain);

    guest->state = pf_virt_guest_from_state(state, guest->reason, guest->job);
    if (guest->state == PF_VIRT_GUEST_UNREACHABLE)
        guest->error = g_strdup_printf("libvirt reports state %d", state);
}

/* Events; in the main thread */

static void deliver(PfVirtLink *link, virDomainPtr domain, PfVirtEvent *event)
{
    char uuid[VIR_UUID_STRING_BUFLEN] = "";
    PfVirt *self = link->virt;

    event->monotonic_us = g_get_monotonic_time();
    event->realtime_us = g_get_real_time();

    /* A connection that has been given up may have had some left. */
    if (self->freed || self->link != link)
        return;

    virDomainGetUUIDString(domain, uuid);
    event->uuid = uuid;
    event->name = virDomainGetName(domain);
    self->callbacks->event(event, self->userdata);
}

static int on_lifecycle(virConnectPtr conn, virDomainPtr domain, int event, int detail,
                        void *opaque)
{
    PfVirtEvent e = {
        .type = pf_virt_event_from_lifecycle(event, detail),
        .event = event,
        .detail = detail,
        .downtime_us = -1,
    };

    deliver(opaque, domain, &e);
    return 0;
}

static void on_iteration(virConnectPtr conn, virDomainPtr domain, int iteration, void *opaque)
{
    PfVirtEvent e = {
        .type = PF_VIRT_EVENT_MIGRATION_ITERATION,
        .event = -1,
        .detail = -1,
        .iteration = iteration,
        .downtime_us = -1,
    };

    deliver(opaque, domain, &e);
}

static void on_job_completed(virConnectPtr conn, virDomainPtr domain, virTypedParameterPtr params,
                             int n_params, void *opaque)
{
    PfVirtEvent e = {
        .type = PF_VIRT_EVENT_JOB_COMPLETED,
        .event = -1,
        .detail = -1,
        .downtime_us = -1,
    };
    int operation = VIR_DOMAIN_JOB_OPERATION_UNKNOWN;
    unsigned long long downtime_ms;

    virTypedParamsGetInt(params, n_params, VIR_DOMAIN_JOB_OPERATION, &operation);
    e.job = pf_virt_job_from_operation(operation);
    if (e.job == PF_VIRT_JOB_MIGRATION_OUT &&
        virTypedParamsGetULLong(params, n_params, VIR_DOMAIN_JOB_DOWNTIME, &downtime_ms) == 1)
        e.downtime_us = (gint64)MIN(downtime_ms, G_MAXINT64 / 1000) * 1000;

    deliver(opaque, domain, &e);
}

/* The connection: results of the connector's jobs, in the main thread */

static void set_state(PfVirt *self, PfVirtState state, const char *why)
{
    if (self->state == state)
        return;

    self->state = state;
    if (!self->freed)
        self->callbacks->state_changed(state, why, self->userdata);
}

typedef struct {
    PfVirtLink *link; /* a reference */
    char *why;
    GPtrArray *guests;
} LinkResult;

static LinkResult *link_result_new(PfVirtLink *link, const char *why)
{
    LinkResult *result = g_new0(LinkResult, 1);

    result->link = link_ref(link);
    result->why = g_strdup(why);
    return result;
}

static void link_result_free(gpointer data)
{
    LinkResult *result = data;

    link_unref(result->link);
    g_free(result->why);
    g_clear_pointer(&result->guests, g_ptr_array_unref);
    g_free(result);
}

static gboolean on_link_failed(gpointer data)
{
    LinkResult *result = data;

    link_failed(result->link, result->why);
    return G_SOURCE_REMOVE;
}

static gboolean on_link_connected(gpointer data)
{
    LinkResult *result = data;
    PfVirt *self = result->link->virt;

    if (self->link == result->link) {
        g_clear_handle_id(&self->slow_id, g_source_remove);
        set_state(self, PF_VIRT_CONNECTED, self->uri);
    }
    return G_SOURCE_REMOVE;
}

static gboolean on_link_listed(gpointer data)
{
    LinkResult *result = data;
    PfVirt *self = result->link->virt;

    if (self->link != result->link || self->freed)
        return G_SOURCE_REMOVE;

    self->attempts = 0;
    self->callbacks->snapshot(result->guests, self->userdata);
    return G_SOURCE_REMOVE;
}

/* libvirt holds a lock of the connection here, and this may be any thread: only say it. */
static void on_close(virConnectPtr conn, int reason, void *opaque)
{
    static const char *const reasons[] = {
        [VIR_CONNECT_CLOSE_REASON_ERROR] = "an I/O error",
        [VIR_CONNECT_CLOSE_REASON_EOF] = "libvirt closed the connection",
        [VIR_CONNECT_CLOSE_REASON_KEEPALIVE] = "libvirt does not answer",
        [VIR_CONNECT_CLOSE_REASON_CLIENT] = "closed",
    };
    const char *why = "closed";

    if (reason >= 0 && reason < (int)G_N_ELEMENTS(reasons))
        why = reasons[reason];
    post(on_link_failed, link_result_new(opaque, why), link_result_free);
}

/* The connector's jobs, in its thread */

typedef enum { LINK_OPEN, LINK_CLOSE } LinkJobKind;

typedef struct {
    LinkJobKind kind;
    PfVirtLink *link; /* a reference */
} LinkJob;

static gboolean link_register(PfVirtLink *link)
{
    static const struct {
        int event;
        virConnectDomainEventGenericCallback callback;
    } events[N_EVENT_IDS] = {
        {VIR_DOMAIN_EVENT_ID_LIFECYCLE, EVENT_CALLBACK(on_lifecycle)},
        {VIR_DOMAIN_EVENT_ID_MIGRATION_ITERATION, EVENT_CALLBACK(on_iteration)},
        {VIR_DOMAIN_EVENT_ID_JOB_COMPLETED, EVENT_CALLBACK(on_job_completed)},
    };

    for (guint i = 0; i < N_EVENT_IDS; i++) {
        link->ids[i] = virConnectDomainEventRegisterAny(
            link->conn, NULL, events[i].event, events[i].callback, link_ref(link), link_unref);
        if (link->ids[i] < 0) {
            link_unref(link); /* libvirt did not keep the reference */
            return FALSE;
        }
    }
    return TRUE;
}

static void link_list(PfVirtLink *link)
{
    LinkResult *result;
    virDomainPtr *domains = NULL;
    int n;

    n = virConnectListAllDomains(link->conn, &domains, 0);
    if (n < 0) {
        g_autofree char *error = last_error();

        post(on_link_failed, link_result_new(link, error), link_result_free);
        return;
    }

    result = link_result_new(link, NULL);
    result->guests = g_ptr_array_new_with_free_func(guest_free);
    for (int i = 0; i < n; i++) {
        char uuid[VIR_UUID_STRING_BUFLEN] = "";
        PfVirtGuest *guest = g_new0(PfVirtGuest, 1);

        virDomainGetUUIDString(domains[i], uuid);
        guest->uuid = g_strdup(uuid);
        read_guest(domains[i], PF_VIRT_ASK_STATE, guest);
        virDomainFree(domains[i]);
        g_ptr_array_add(result->guests, guest);
    }
    free(domains); /* libvirt documents free(3) for this array */
    post(on_link_listed, result, link_result_free);
}

static void link_open(PfVirtLink *link)
{
    link->conn = virConnectOpenReadOnly(link->virt->uri);
    if (link->conn == NULL) {
        g_autofree char *error = last_error();

        post(on_link_failed, link_result_new(link, error), link_result_free);
        return;
    }

    if (virConnectRegisterCloseCallback(link->conn, on_close, link_ref(link), link_unref) == 0)
        link->close_registered = TRUE;
    else
        link_unref(link);

    /* A libvirtd without keepalive (1) is as good; one that just ended (-1) is noticed below. */
    virConnectSetKeepAlive(link->conn, KEEPALIVE_INTERVAL_S, KEEPALIVE_COUNT);

    /* Events first: what happens while the domains are listed must not be missed. */
    if (!link_register(link)) {
        g_autofree char *error = last_error();

        post(on_link_failed, link_result_new(link, error), link_result_free);
        return;
    }

    post(on_link_connected, link_result_new(link, NULL), link_result_free);
    link_list(link);
}

/* Each registered callback holds a reference to the connection, a dead one as well. */
static void link_close(PfVirtLink *link)
{
    if (link->conn == NULL)
        return;

    for (guint i = 0; i < N_EVENT_IDS; i++) {
        if (link->ids[i] >= 0)
            virConnectDomainEventDeregisterAny(link->conn, link->ids[i]);
        link->ids[i] = -1;
    }
    if (link->close_registered)
        virConnectUnregisterCloseCallback(link->conn, on_close);
    link->close_registered = FALSE;
    virConnectClose(link->conn);
    link->conn = NULL;
}

static void connector_run(gpointer data, gpointer userdata)
{
    LinkJob *job = data;

    switch (job->kind) {
    case LINK_OPEN:
        link_open(job->link);
        break;
    case LINK_CLOSE:
        link_close(job->link);
        break;
    }
    link_unref(job->link);
    g_free(job);
}

static void connector_push(PfVirt *self, LinkJobKind kind, PfVirtLink *link)
{
    LinkJob *job = g_new0(LinkJob, 1);

    job->kind = kind;
    job->link = link_ref(link);
    g_thread_pool_push(self->connector, job, NULL);
    /* cppcheck-suppress memleak ; the pool's function frees it */
}

/* Connecting again; in the main thread */

static gboolean on_slow(gpointer userdata)
{
    PfVirt *self = userdata;

    self->slow_id = 0;
    set_state(self, PF_VIRT_CONNECTING, "libvirt does not answer yet");
    return G_SOURCE_REMOVE;
}

static gboolean on_retry(gpointer userdata)
{
    PfVirt *self = userdata;

    self->retry_id = 0;
    self->attempts++;
    self->link = link_new(self);
    self->slow_id = g_timeout_add(SLOW_MS, on_slow, self);
    connector_push(self, LINK_OPEN, self->link);
    return G_SOURCE_REMOVE;
}

static void link_failed(PfVirtLink *link, const char *why)
{
    PfVirt *self = link->virt;
    guint delay;

    if (self->link != link)
        return; /* reported twice, or after pf_virt_free() */

    self->link = NULL;
    g_clear_handle_id(&self->slow_id, g_source_remove);
    connector_push(self, LINK_CLOSE, link);
    link_unref(link);

    /* The guests of many hosts may wait for one storage: spread the hosts' retries. */
    delay = MIN(RETRY_FIRST_MS << MIN(self->attempts, 5), RETRY_MAX_MS);
    delay = delay * 3 / 4 + (guint)g_random_int_range(0, (gint32)delay / 2);
    self->retry_id = g_timeout_add(delay, on_retry, self);
    set_state(self, PF_VIRT_DISCONNECTED, why);
}

/* Questions */

typedef struct {
    PfVirt *virt; /* a reference */
    PfVirtAskFlags flags;
    PfVirtGuest *guest;
} AskJob;

static void ask_job_free(gpointer data)
{
    AskJob *job = data;

    guest_free(job->guest);
    virt_unref(job->virt);
    g_free(job);
}

static void ask_free(Ask *ask)
{
    g_clear_handle_id(&ask->timer_id, g_source_remove);
    g_hash_table_remove(ask->virt->asks, &ask->id);
    g_free(ask);
}

static void question_free(gpointer data)
{
    Question *question = data;

    g_free(question->uuid);
    g_free(question);
}

static void question_drop_if_idle(PfVirt *self, Question *question)
{
    if (!question->busy && question->running.length == 0 && question->waiting.length == 0)
        g_hash_table_remove(self->questions, question->uuid);
}

/* Takes 'ask' off its question and calls back.  The question stays. */
static void ask_finish(Ask *ask, const PfVirtGuest *guest)
{
    PfVirtAnswer answer = ask->answer;
    gpointer userdata = ask->userdata;

    if (!g_queue_remove(&ask->question->running, ask))
        g_queue_remove(&ask->question->waiting, ask);
    ask_free(ask);
    answer(guest, userdata);
}

static void question_start(PfVirt *self, Question *question);

static gboolean on_ask_deadline(gpointer data)
{
    Ask *ask = data;
    PfVirt *self = ask->virt;
    Question *question = ask->question;
    gboolean was_busy = question->busy;
    PfVirtGuest guest = {
        .uuid = question->uuid,
        .state = PF_VIRT_GUEST_UNREACHABLE,
        .read_us = g_get_monotonic_time(),
        .error = (char *)(was_busy ? "libvirt did not answer in time" : "not connected to libvirt"),
    };

    ask->timer_id = 0;
    question->busy = TRUE; /* it must outlive the callback, which may ask again */
    virt_ref(self);
    ask_finish(ask, &guest);
    if (!self->freed) {
        question->busy = was_busy;
        if (!was_busy && question->waiting.length > 0)
            question_start(self, question);
        else
            question_drop_if_idle(self, question);
    }
    virt_unref(self);
    return G_SOURCE_REMOVE;
}

/* Starts a job for all that wait; or, without a connection, lets their timers answer at once. */
static void question_start(PfVirt *self, Question *question)
{
    AskJob *job;
    Ask *ask;

    if (self->state != PF_VIRT_CONNECTED) {
        for (GList *l = question->waiting.head; l != NULL; l = l->next) {
            ask = l->data;
            g_source_remove(ask->timer_id);
            ask->timer_id = g_idle_add_full(G_PRIORITY_DEFAULT, on_ask_deadline, ask, NULL);
        }
        return;
    }

    job = g_new0(AskJob, 1);
    job->virt = virt_ref(self);
    job->guest = g_new0(PfVirtGuest, 1);
    job->guest->uuid = g_strdup(question->uuid);
    while ((ask = g_queue_pop_head(&question->waiting)) != NULL) {
        job->flags |= ask->flags;
        g_queue_push_tail(&question->running, ask);
    }
    question->busy = TRUE;
    g_thread_pool_push(self->askers, job, NULL);
}

static gboolean on_answer(gpointer data)
{
    AskJob *job = data;
    PfVirt *self = job->virt;
    Question *question;
    Ask *ask;

    if (self->freed)
        return G_SOURCE_REMOVE;

    question = g_hash_table_lookup(self->questions, job->guest->uuid);
    g_return_val_if_fail(question != NULL && question->busy, G_SOURCE_REMOVE);

    /* A callback may ask again (which then waits), cancel others, or free everything. */
    while (!self->freed && (ask = g_queue_peek_head(&question->running)) != NULL)
        ask_finish(ask, job->guest);
    if (self->freed)
        return G_SOURCE_REMOVE;

    question->busy = FALSE;
    if (question->waiting.length > 0)
        question_start(self, question);
    else
        question_drop_if_idle(self, question);
    return G_SOURCE_REMOVE;
}

/* In one of the askers' threads.  A connection for each question: where several threads share one,
 * the thread that reads for all of them can miss that another has something to send, and that one
 * then waits until libvirtd says something by itself.  Seen with libvirt 9.0 while a hook kept the
 * first thread waiting: half of the second's questions stood still. */
static void asker_run(gpointer data, gpointer userdata)
{
    AskJob *job = data;
    PfVirtGuest *guest = job->guest;
    virConnectPtr conn = virConnectOpenReadOnly(job->virt->uri);
    virDomainPtr domain = NULL;

    guest->read_us = g_get_monotonic_time();
    if (conn != NULL)
        domain = virDomainLookupByUUIDString(conn, guest->uuid);
    if (domain != NULL) {
        read_guest(domain, job->flags, guest);
        virDomainFree(domain);
    } else if (conn != NULL && virGetLastErrorCode() == VIR_ERR_NO_DOMAIN) {
        guest->state = PF_VIRT_GUEST_ABSENT;
    } else {
        guest->state = PF_VIRT_GUEST_UNREACHABLE;
        guest->error = last_error();
    }

    if (conn != NULL)
        virConnectClose(conn);
    post(on_answer, job, ask_job_free);
}

guint64 pf_virt_ask(PfVirt *self, const char *uuid, PfVirtAskFlags flags, gint64 timeout_us,
                    PfVirtAnswer answer, gpointer userdata)
{
    g_autofree char *key = g_ascii_strdown(uuid, -1);
    Question *question = g_hash_table_lookup(self->questions, key);
    Ask *ask = g_new0(Ask, 1);

    if (question == NULL) {
        question = g_new0(Question, 1);
        question->uuid = g_steal_pointer(&key);
        g_hash_table_insert(self->questions, question->uuid, question);
    }

    ask->virt = self;
    ask->question = question;
    ask->id = ++self->last_id;
    ask->flags = flags;
    ask->answer = answer;
    ask->userdata = userdata;
    ask->timer_id =
        g_timeout_add((guint)CLAMP(timeout_us / 1000, 1, G_MAXINT), on_ask_deadline, ask);
    g_hash_table_insert(self->asks, &ask->id, ask);
    g_queue_push_tail(&question->waiting, ask);

    if (!question->busy)
        question_start(self, question);
    return ask->id;
}

void pf_virt_ask_cancel(PfVirt *self, guint64 id)
{
    Ask *ask = g_hash_table_lookup(self->asks, &id);
    Question *question;

    if (ask == NULL)
        return;

    question = ask->question;
    if (!g_queue_remove(&question->running, ask))
        g_queue_remove(&question->waiting, ask);
    ask_free(ask);
    question_drop_if_idle(self, question);
}

/* The object */

PfVirt *pf_virt_new(const char *uri, const PfVirtCallbacks *callbacks, gpointer userdata)
{
    static gboolean registered;
    PfVirt *self = g_new0(PfVirt, 1);

    if (!registered) {
        virInitialize();
        virSetErrorFunc(NULL, ignore_error);
        gvir_event_register();
        registered = TRUE;
    }

    g_atomic_ref_count_init(&self->refs);
    self->uri = g_strdup(uri);
    self->callbacks = callbacks;
    self->userdata = userdata;
    self->questions = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, question_free);
    self->asks = g_hash_table_new(g_int64_hash, g_int64_equal);
    self->connector = g_thread_pool_new(connector_run, NULL, 1, FALSE, NULL);
    self->askers = g_thread_pool_new(asker_run, NULL, PF_VIRT_MAX_ASKERS, FALSE, NULL);
    return self;
}

void pf_virt_start(PfVirt *self)
{
    if (self->link == NULL && self->retry_id == 0)
        on_retry(self);
}

void pf_virt_free(PfVirt *self)
{
    GHashTableIter iter;
    gpointer value;

    if (self == NULL)
        return;

    self->freed = TRUE;
    g_clear_handle_id(&self->retry_id, g_source_remove);
    g_clear_handle_id(&self->slow_id, g_source_remove);

    g_hash_table_iter_init(&iter, self->asks);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        Ask *ask = value;

        g_hash_table_iter_remove(&iter);
        g_clear_handle_id(&ask->timer_id, g_source_remove);
        g_queue_clear(&ask->question->running);
        g_queue_clear(&ask->question->waiting);
        g_free(ask);
    }
    g_clear_pointer(&self->asks, g_hash_table_unref);
    g_clear_pointer(&self->questions, g_hash_table_unref);

    if (self->link != NULL) {
        PfVirtLink *link = g_steal_pointer(&self->link);

        connector_push(self, LINK_CLOSE, link);
        link_unref(link);
    }

    /* Jobs that have been pushed are still done; nobody waits for them. */
    g_thread_pool_free(self->connector, FALSE, FALSE);
    g_thread_pool_free(self->askers, FALSE, FALSE);
    virt_unref(self);
}

PfVirtState pf_virt_get_state(const PfVirt *self)
{
    return self->state;
}
