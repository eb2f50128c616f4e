/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One handover, carried: feeds the state machine (src/handover.h) with what the adapters see, and
 * pursues the goals of its state until the databases show that they are reached.
 */

#include <glib.h>

#include "bus.h"
#include "configuration.h"
#include "domain-xml.h"
#include "handover.h"
#include "marker.h"
#include "metrics.h"
#include "nb.h"
#include "ovs.h"
#include "runtime.h"
#include "sb.h"
#include "view.h"
#include "virt.h"

typedef struct PfFerry PfFerry;

/* What ferries work with and whom they tell.  The manager's; the adapters may be NULL as long as
 * this host doesn't say where its databases are. */
typedef struct {
    const PfConfig *config;
    PfNb *nb;
    gboolean nb_is_none; /* there is no northbound database for this host: a CMS writes it */
    PfSb *sb;
    PfOvs *ovs;
    PfVirt *virt;

    /* 'ferry''s view has changed. */
    void (*changed)(PfFerry *ferry, PfHandoverChange what, gpointer data);
    /* The handover is over; no goal and no timer is left.  Called once. */
    void (*ended)(PfFerry *ferry, gpointer data);
    gpointer data;
} PfFerryEnv;

/* What a handover starts with.  Copied. */
typedef struct {
    PfRole role;
    PfOrigin origin;
    const PfMarker *marker;         /* of an orphan (PF_ORIGIN_INTERFACE): what is known of it */
    const char *domain;             /* name, or NULL while it isn't known */
    const char *const *ports;       /* iface-ids, NULL-terminated */
    const char *const *macs;        /* of the ports, or NULL */
    const PfSbChassis *source;      /* NULL: to be found by name */
    const PfSbChassis *destination; /* likewise */
    gboolean cold;                  /* a barrier is needed after ovn-installed */
    const PfDomainPolicy *policy;   /* the domain's own, or NULL */
} PfFerryStart;

PfFerry *pf_ferry_new(const PfFerryEnv *env, const PfFerryStart *start);

/* Forgets the handover; in the databases it stays as it is.  Calls that wait are answered with an
 * error. */
void pf_ferry_free(PfFerry *ferry);

/* This process ends, and another one will take the handover up: a hook that waits at the gate is
 * left without an answer, and asks that one. */
void pf_ferry_leave_gate(PfFerry *ferry);

/* Sets it going; may call 'changed' and 'ended'. */
void pf_ferry_start(PfFerry *ferry);

/* Something in a database or its connection has changed: looks again. */
void pf_ferry_look(PfFerry *ferry);

/* libvirt has said something about the guest. */
void pf_ferry_virt_event(PfFerry *ferry, const PfVirtEvent *event);
/* libvirt is there again, and may have said something that we have missed: asks. */
void pf_ferry_resync(PfFerry *ferry);
/* libvirt prepares another migration of the domain to this host, so that this one may be over
 * without a word: asks.  Nothing happens to one that goes on. */
void pf_ferry_superseded(PfFerry *ferry);
/* The switch's database was away, and libvirt could not take anything out of it: what is left there
 * of a guest that is gone is removed, also when the handover has ended meanwhile. */
void pf_ferry_switch_is_back(PfFerry *ferry);
/* The `release` hook has run at the destination. */
void pf_ferry_released(PfFerry *ferry);

/* An operator decides, PF_EV_ACTIVATE or PF_EV_ROLLBACK.  FALSE with PF_ERROR_WRONG_PHASE where the
 * state doesn't allow it. */
gboolean pf_ferry_override(PfFerry *ferry, PfEvent event, GError **error);

/* An operator holds the handover at the gate (once more: for another hold-timeout), and lets it go
 * on.  A handover that was begun by hand has no gate, and is not rolled back while it is held.
 * FALSE with PF_ERROR_WRONG_PHASE: not the destination, or the gate is passed; or not held. */
gboolean pf_ferry_hold(PfFerry *ferry, GError **error);
gboolean pf_ferry_release(PfFerry *ferry, GError **error);

/* Another migration of the guest begins: a handover that only waits for its CMS ends.  FALSE: it is
 * another one, or not there yet, and goes on. */
gboolean pf_ferry_give_way(PfFerry *ferry);

/* Whether an open handover has been without progress, in a phase without a time limit, for longer
 * than teardown-timeout. */
gboolean pf_ferry_is_stuck(const PfFerry *ferry);

/* The domain's own policy, if it is read only now. */
void pf_ferry_set_policy(PfFerry *ferry, const PfDomainPolicy *policy);

/* What the hook that may come for the domain must know; changes with PF_HANDOVER_HELD. */
PfIncoming pf_ferry_get_incoming(const PfFerry *ferry);

/* The hook `migrate begin` waits for the pre-plug; answered as soon as it is committed. */
void pf_ferry_wait_begin(PfFerry *ferry, PfBusCall *call);
/* The hook `started begin` waits at the gate; answered when all ports are ready, or in time. */
void pf_ferry_wait_gate(PfFerry *ferry, PfBusCall *call);

const PfHandoverView *pf_ferry_get_view(const PfFerry *ferry);
const PfMeasures *pf_ferry_get_measures(const PfFerry *ferry);
PfState pf_ferry_get_state(const PfFerry *ferry);
PfRole pf_ferry_get_role(const PfFerry *ferry);
/* Whether a CMS runs it, which no marker tells of. */
gboolean pf_ferry_is_cms(const PfFerry *ferry);
gboolean pf_ferry_is_ended(const PfFerry *ferry);
