/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "ovsdb.h"

#include <gio/gio.h>
#include <unistd.h>

#include "openvswitch/poll-loop.h"
#include "ovsdb-idl.h"
#include "stream-ssl.h"
#include "util.h"

struct PfOvsdb {
    PfOvsdbLoop *loop;
    char *name;
    PfOvsdbChanged changed;
    gpointer data;

    struct ovsdb_idl *idl; /* NULL once freed by its owner. */
    char *remote;          /* NULL if none. */
    guint probe_interval_ms;

    PfOvsdbState state;
    bool connected;
    guint64 session;          /* Counts connections gained and lost. */
    unsigned int stale_seqno; /* The contents of before the present connection. */

    /* What 'changed' has been told. */
    PfOvsdbState told_state;
    unsigned int told_seqno;
    unsigned int told_condition_seqno;

    GQueue txns; /* Of PfOvsdbTxn, oldest first. */
    guint64 next_serial;
    bool building; /* A build function is running: the IDL bears only one at a time. */
};

struct PfOvsdbTxn {
    PfOvsdb *db;
    char *comment;
    PfOvsdbBuild build;
    PfOvsdbDone done;
    gpointer data;
    guint64 serial; /* Tells old transactions from those that a callback adds. */
    guint timeout_ms;
    GSource *deadline;

    guint attempts;
    struct ovsdb_idl_txn *idl_txn; /* The attempt that waits for its answer, or NULL. */
    unsigned int seqno;            /* The contents that the last attempt was built from. */
    guint64 session;               /* The connection that it was sent on. */
    bool unknown;                  /* An earlier attempt may have been committed. */

    bool finished;
    GError *error;
};

G_DEFINE_QUARK(pf - ovsdb - error - quark, pf_ovsdb_error)

static const char *const state_names[] = {
    [PF_OVSDB_DISCONNECTED] = "disconnected",
    [PF_OVSDB_CONNECTING] = "connecting",
    [PF_OVSDB_CONNECTED] = "connected",
    [PF_OVSDB_SYNCED] = "synced",
};
G_STATIC_ASSERT(G_N_ELEMENTS(state_names) == PF_OVSDB_N_STATES);

const char *pf_ovsdb_state_to_string(PfOvsdbState state)
{
    g_return_val_if_fail((guint)state < PF_OVSDB_N_STATES, NULL);
    return state_names[state];
}

/*
 * Remotes
 */

static bool check_port(const char *port)
{
    guint64 number;

    return g_ascii_string_to_unsigned(port, 10, 1, G_MAXUINT16, &number, NULL);
}

/* HOST:PORT, where an IPv6 address stands in brackets. */
static bool check_host_port(const char *target, const char **reason)
{
    const char *colon = strrchr(target, ':');
    g_autofree char *host = NULL;
    bool bracketed;

    if (!colon || colon == target) {
        *reason = "HOST:PORT expected";
        return false;
    }
    if (!check_port(colon + 1)) {
        *reason = "a port between 1 and 65535 expected";
        return false;
    }

    host = g_strndup(target, (gsize)(colon - target));
    bracketed = host[0] == '[' && g_str_has_suffix(host, "]");
    if (bracketed) {
        host[strlen(host) - 1] = '\0';
        memmove(host, host + 1, strlen(host));
    }
    if (bracketed || strchr(host, ':')) {
        g_autofree char *address = g_strndup(host, strcspn(host, "%"));

        if (!bracketed || !strchr(address, ':') || !g_hostname_is_ip_address(address)) {
            *reason = "an IPv6 address in brackets expected";
            return false;
        }
        return true;
    }
    if (g_hostname_is_ip_address(host)) {
        return true;
    }
    if (strspn(host, "0123456789.") == strlen(host)) {
        *reason = "not an IPv4 address";
        return false;
    }
#ifndef HAVE_UNBOUND
    *reason = "an address expected: this program was built without support for host names";
    return false;
#else
    return true;
#endif
}

static bool check_one_remote(const char *remote, const char **reason)
{
    if (g_str_has_prefix(remote, "unix:")) {
        /* OVS would take a relative path for one in its run directory. */
        *reason = "an absolute path expected";
        return remote[strlen("unix:")] == '/';
    }
    if (g_str_has_prefix(remote, "ssl:") && !stream_ssl_is_configured()) {
        *reason = "no private key, certificate and CA certificate are set";
        return false;
    }
    if (g_str_has_prefix(remote, "ssl:") || g_str_has_prefix(remote, "tcp:")) {
        return check_host_port(remote + strlen("tcp:"), reason);
    }
    *reason = "tcp:HOST:PORT, ssl:HOST:PORT or unix:/PATH expected";
    return false;
}

char *pf_ovsdb_check_remote(const char *remote, GError **error)
{
    g_auto(GStrv) remotes = NULL;

    if (!remote || !*remote) {
        return g_strdup("");
    }
    remotes = g_strsplit(remote, ",", -1);
    for (char **r = remotes; *r; r++) {
        const char *reason = NULL;

        if (!check_one_remote(g_strstrip(*r), &reason)) {
            g_set_error(error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_INVALID,
                        "invalid database remote \"%s\": %s", *r, reason);
            return NULL;
        }
    }
    return g_strjoinv(",", remotes);
}

int pf_ovsdb_fit_probe_interval(const char *remote, guint interval_ms)
{
    bool network = remote && (strstr(remote, "tcp:") || strstr(remote, "ssl:"));

    return network ? (int)MIN(interval_ms, G_MAXINT) : 0;
}

bool pf_ovsdb_set_tls(const char *private_key, const char *certificate, const char *ca_certificate,
                      GError **error)
{
    const char *const files[] = {private_key, certificate, ca_certificate};

    /* OVS would only log it, and fail to connect. */
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        if (!files[i] || access(files[i], R_OK) != 0) {
            g_set_error(error, PF_OVSDB_ERROR, PF_OVSDB_ERROR_INVALID, "cannot read %s: %s",
                        files[i] ? files[i] : "a TLS file",
                        files[i] ? g_strerror(errno) : "no name given");
            return false;
        }
    }
    stream_ssl_set_key_and_cert(private_key, certificate);
    stream_ssl_set_ca_cert_file(ca_certificate, false);
    return true;
}

/*
 * The connection
 */

/* Takes note of where the connection stands; 'seqno' is that of the contents before the last call
 * of ovsdb_idl_run().  The monitor reply always changes the sequence number, so the contents are
 * those of the present connection as soon as it differs. */
static void refresh_state(PfOvsdb *db, unsigned int seqno)
{
    bool connected = ovsdb_idl_is_connected(db->idl);

    if (connected != db->connected) {
        db->connected = connected;
        db->session++;
        db->stale_seqno = seqno;
    }
    db->state = !db->remote                                       ? PF_OVSDB_DISCONNECTED
                : !connected                                      ? PF_OVSDB_CONNECTING
                : ovsdb_idl_get_seqno(db->idl) == db->stale_seqno ? PF_OVSDB_CONNECTED
                                                                  : PF_OVSDB_SYNCED;
}

/* Whether the owner has something to hear. */
static bool has_changed(const PfOvsdb *db)
{
    return db->state != db->told_state || ovsdb_idl_get_seqno(db->idl) != db->told_seqno ||
           ovsdb_idl_get_condition_seqno(db->idl) != db->told_condition_seqno;
}

/* The interval belongs to a session, and each new remote begins one. */
static void apply_probe_interval(PfOvsdb *db)
{
    ovsdb_idl_set_probe_interval(db->idl,
                                 pf_ovsdb_fit_probe_interval(db->remote, db->probe_interval_ms));
}

bool pf_ovsdb_set_remote(PfOvsdb *db, const char *remote, GError **error)
{
    g_autofree char *checked = pf_ovsdb_check_remote(remote, error);

    if (!checked) {
        return false;
    }
    g_free(db->remote);
    db->remote = *checked ? g_steal_pointer(&checked) : NULL;
    ovsdb_idl_set_remote(db->idl, db->remote, true);
    apply_probe_interval(db);
    refresh_state(db, ovsdb_idl_get_seqno(db->idl));
    return true;
}

void pf_ovsdb_set_leader_only(PfOvsdb *db, bool leader_only)
{
    ovsdb_idl_set_leader_only(db->idl, leader_only);
}

void pf_ovsdb_set_probe_interval(PfOvsdb *db, guint interval_ms)
{
    db->probe_interval_ms = interval_ms;
    apply_probe_interval(db);
}

PfOvsdbState pf_ovsdb_get_state(const PfOvsdb *db)
{
    return db->state;
}

struct ovsdb_idl *pf_ovsdb_get_idl(const PfOvsdb *db)
{
    return db->idl;
}

/*
 * Transactions
 */

static void txn_destroy_attempt(PfOvsdbTxn *txn)
{
    g_clear_pointer(&txn->idl_txn, ovsdb_idl_txn_destroy);
}

static void txn_free(PfOvsdbTxn *txn)
{
    txn_destroy_attempt(txn);
    g_queue_remove(&txn->db->txns, txn);
    g_source_destroy(txn->deadline);
    g_source_unref(txn->deadline);
    g_clear_error(&txn->error);
    g_free(txn->comment);
    g_free(txn);
}

static void txn_deliver(PfOvsdbTxn *txn)
{
    PfOvsdbDone done = txn->done;
    gpointer data = txn->data;
    g_autoptr(GError) error = g_steal_pointer(&txn->error);

    /* First, for 'done' may free everything. */
    txn_free(txn);
    done(error, data);
}

static void txn_finish(PfOvsdbTxn *txn, GError *error)
{
    txn_destroy_attempt(txn);
    txn->finished = true;
    txn->error = error;
}

/* Draws the conclusion from the status of an attempt. */
static void txn_advance(PfOvsdbTxn *txn, enum ovsdb_idl_txn_status status)
{
    PfOvsdb *db = txn->db;
    const char *reason;

    switch (status) {
    case TXN_INCOMPLETE:
        break;

    case TXN_SUCCESS:
    case TXN_UNCHANGED:
        txn_finish(txn, NULL);
        break;

    case TXN_TRY_AGAIN:
        /* Refused because somebody else was faster, or cut off on its way to the server or back. */
        txn->unknown = txn->unknown || txn->session != db->session;
        txn_destroy_attempt(txn);
        break;

    case TXN_ERROR:
        reason = ovsdb_idl_txn_get_error(txn->idl_txn);
        /* A cluster that loses its leader may still carry out what it has accepted. */
        txn_finish(txn, g_error_new(PF_OVSDB_ERROR,
                                    strstr(reason, "cluster error") ? PF_OVSDB_ERROR_UNKNOWN
                                                                    : PF_OVSDB_ERROR_REFUSED,
                                    "%s database: %s", db->name, reason));
        break;

    case TXN_UNCOMMITTED:
    case TXN_ABORTED:
    case TXN_NOT_LOCKED:
    default:
        txn_finish(txn, g_error_new(PF_OVSDB_ERROR, PF_OVSDB_ERROR_REFUSED,
                                    "%s database: unexpected transaction status: %s", db->name,
                                    ovsdb_idl_txn_status_to_string(status)));
        break;
    }
}

static bool txn_may_attempt(const PfOvsdbTxn *txn)
{
    const PfOvsdb *db = txn->db;

    /* The contents that an attempt failed with are no good for another one. */
    return db->state == PF_OVSDB_SYNCED && !db->building &&
           (txn->attempts == 0 || txn->seqno != ovsdb_idl_get_seqno(db->idl));
}

static void txn_attempt(PfOvsdbTxn *txn)
{
    PfOvsdb *db = txn->db;
    PfOvsdbBuildResult result;
    GError *error = NULL;

    txn->attempts++;
    txn->seqno = ovsdb_idl_get_seqno(db->idl);
    txn->session = db->session;
    txn->idl_txn = ovsdb_idl_txn_create(db->idl);
    ovsdb_idl_txn_add_comment(txn->idl_txn, "%s", txn->comment);

    db->building = true;
    result = txn->build(db->idl, txn->idl_txn, txn->data, &error);
    db->building = false;

    switch (result) {
    case PF_OVSDB_BUILD_COMMIT:
        txn_advance(txn, ovsdb_idl_txn_commit(txn->idl_txn));
        break;
    case PF_OVSDB_BUILD_NOTHING:
        txn_finish(txn, NULL);
        break;
    case PF_OVSDB_BUILD_ERROR:
    default:
        if (!error) {
            error = g_error_new(PF_OVSDB_ERROR, PF_OVSDB_ERROR_ABORTED,
                                "%s database: transaction given up", db->name);
        }
        txn_finish(txn, error);
        break;
    }
}

/* Whether txn_step() would do something. */
static bool txn_can_step(const PfOvsdbTxn *txn)
{
    if (txn->finished) {
        return true;
    }
    /* Of an attempt that was sent, this only returns the status. */
    return txn->idl_txn ? ovsdb_idl_txn_commit(txn->idl_txn) != TXN_INCOMPLETE
                        : txn_may_attempt(txn);
}

/* One step on; may call 'done', and free 'txn'. */
static void txn_step(PfOvsdbTxn *txn)
{
    if (txn->idl_txn && !txn->finished) {
        txn_advance(txn, ovsdb_idl_txn_commit(txn->idl_txn));
    } else if (!txn->finished) {
        txn_attempt(txn);
    }
    if (txn->finished) {
        txn_deliver(txn);
    }
}

static PfOvsdbTxn *find_steppable_txn(PfOvsdb *db, guint64 before)
{
    for (GList *l = db->txns.head; l; l = l->next) {
        PfOvsdbTxn *txn = l->data;

        if (txn->serial < before && txn_can_step(txn)) {
            return txn;
        }
    }
    return NULL;
}

static gboolean txn_deadline_passed(gpointer data)
{
    PfOvsdbTxn *txn = data;
    PfOvsdb *db = txn->db;

    if (txn->finished) {
        /* It was just in time. */
    } else if (txn->idl_txn || txn->unknown) {
        if (txn->idl_txn) {
            /* The server may be dead, and the probes are slow to tell: try the next one. */
            ovsdb_idl_force_reconnect(db->idl);
        }
        txn_finish(txn, g_error_new(PF_OVSDB_ERROR, PF_OVSDB_ERROR_UNKNOWN,
                                    "%s database: no answer within %u ms, the change may or may "
                                    "not have been made",
                                    db->name, txn->timeout_ms));
    } else if (db->state == PF_OVSDB_SYNCED) {
        txn_finish(txn, g_error_new(PF_OVSDB_ERROR, PF_OVSDB_ERROR_TIMEOUT,
                                    "%s database: %u attempts failed within %u ms because of "
                                    "changes by others",
                                    db->name, txn->attempts, txn->timeout_ms));
    } else {
        int reason = ovsdb_idl_get_last_error(db->idl);

        txn_finish(txn, g_error_new(PF_OVSDB_ERROR, PF_OVSDB_ERROR_TIMEOUT,
                                    "%s database: not connected within %u ms%s%s", db->name,
                                    txn->timeout_ms, reason ? ": " : "",
                                    reason ? ovs_retval_to_string(reason) : ""));
    }
    txn_deliver(txn);
    return G_SOURCE_REMOVE;
}

PfOvsdbTxn *pf_ovsdb_txn(PfOvsdb *db, const char *comment, PfOvsdbBuild build, gpointer data,
                         guint timeout_ms, PfOvsdbDone done)
{
    PfOvsdbTxn *txn = g_new0(PfOvsdbTxn, 1);

    txn->db = db;
    txn->comment = g_strdup(comment);
    txn->build = build;
    txn->done = done;
    txn->data = data;
    txn->serial = db->next_serial++;
    txn->timeout_ms = timeout_ms;

    txn->deadline = g_timeout_source_new(timeout_ms);
    g_source_set_callback(txn->deadline, txn_deadline_passed, txn, NULL);
    g_source_attach(txn->deadline, pf_ovsdb_loop_get_context(db->loop));

    g_queue_push_tail(&db->txns, txn);
    if (txn_may_attempt(txn)) {
        txn_attempt(txn);
    }
    return txn;
}

void pf_ovsdb_txn_cancel(PfOvsdbTxn *txn)
{
    txn_free(txn);
}

/*
 * In the loop
 */

static bool ovsdb_run(gpointer member)
{
    PfOvsdb *db = member;
    unsigned int seqno = ovsdb_idl_get_seqno(db->idl);

    ovsdb_idl_run(db->idl);
    refresh_state(db, seqno);
    return has_changed(db) || find_steppable_txn(db, db->next_serial);
}

static void ovsdb_wait(gpointer member)
{
    PfOvsdb *db = member;

    ovsdb_idl_wait(db->idl);
    if (has_changed(db) || find_steppable_txn(db, db->next_serial)) {
        poll_immediate_wake();
    }
}

static void ovsdb_dispatch(gpointer member)
{
    PfOvsdb *db = g_rc_box_acquire(member);
    guint64 before = db->next_serial;
    PfOvsdbTxn *txn;

    if (has_changed(db)) {
        db->told_state = db->state;
        db->told_seqno = ovsdb_idl_get_seqno(db->idl);
        db->told_condition_seqno = ovsdb_idl_get_condition_seqno(db->idl);
        if (db->changed) {
            db->changed(db, db->data);
        }
    }
    while (db->idl && (txn = find_steppable_txn(db, before))) {
        txn_step(txn);
    }
    g_rc_box_release(db);
}

static const PfOvsdbLoopOps ovsdb_loop_ops = {
    .run = ovsdb_run,
    .wait = ovsdb_wait,
    .dispatch = ovsdb_dispatch,
};

PfOvsdb *pf_ovsdb_new(PfOvsdbLoop *loop, const struct ovsdb_idl_class *class, const char *name,
                      PfOvsdbConfigure configure, PfOvsdbChanged changed, gpointer data)
{
    PfOvsdb *db = g_rc_box_new0(PfOvsdb);

    db->loop = loop;
    db->name = g_strdup(name);
    db->changed = changed;
    db->data = data;
    db->probe_interval_ms = PF_OVSDB_PROBE_INTERVAL_MS;
    g_queue_init(&db->txns);

    db->idl = ovsdb_idl_create_unconnected(class, false);
    if (configure) {
        configure(db->idl, data);
    }
    db->told_condition_seqno = ovsdb_idl_get_condition_seqno(db->idl);
    pf_ovsdb_loop_add(loop, &ovsdb_loop_ops, db);
    return db;
}

void pf_ovsdb_free(PfOvsdb *db)
{
    if (!db) {
        return;
    }
    g_assert(!db->building);
    pf_ovsdb_loop_remove(db->loop, db);
    while (!g_queue_is_empty(&db->txns)) {
        txn_free(g_queue_peek_head(&db->txns));
    }
    g_clear_pointer(&db->idl, ovsdb_idl_destroy);
    g_clear_pointer(&db->remote, g_free);
    g_clear_pointer(&db->name, g_free);
    g_rc_box_release(db);
}
