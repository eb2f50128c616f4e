/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One handover, carried: feeds the state machine (src/handover.h) with what the adapters see, and
 * pursues the goals of its state until the databases show that they are reached.
 */

#include <glib.h>

#include "bus.h"
#include "configuration.h"
#include "handover.h"
#include "marker.h"
#include "nb.h"
#include "ovs.h"
#include "sb.h"
#include "view.h"
#include "virt.h"

typedef struct PfFerry PfFerry;

/* What ferries work with and whom they tell.  The manager's; the adapters may be NULL as long as
 * this host doesn't say where its databases are. */
typedef struct {
    const PfConfig *config;
    PfNb *nb;
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
} PfFerryStart;

PfFerry *pf_ferry_new(const PfFerryEnv *env, const PfFerryStart *start);

/* Forgets the handover; in the databases it stays as it is.  Calls that wait are answered with an
 * error. */
void pf_ferry_free(PfFerry *ferry);

/* Sets it going; may call 'changed' and 'ended'. */
void pf_ferry_start(PfFerry *ferry);

/* Something in a database or its connection has changed: looks again. */
void pf_ferry_look(PfFerry *ferry);

/* libvirt has said something about the guest. */
void pf_ferry_virt_event(PfFerry *ferry, const PfVirtEvent *event);
/* libvirt is there again, and may have said something that we have missed: asks. */
void pf_ferry_resync(PfFerry *ferry);
/* The `release` hook has run at the destination. */
void pf_ferry_released(PfFerry *ferry);

/* An operator decides, PF_EV_ACTIVATE or PF_EV_ROLLBACK.  FALSE with PF_ERROR_CONFLICT where the
 * state doesn't allow it. */
gboolean pf_ferry_override(PfFerry *ferry, PfEvent event, GError **error);

/* The hook `migrate begin` waits for the pre-plug; answered as soon as it is committed. */
void pf_ferry_wait_begin(PfFerry *ferry, PfBusCall *call);
/* The hook `started begin` waits at the gate; answered when all ports are ready, or in time. */
void pf_ferry_wait_gate(PfFerry *ferry, PfBusCall *call);

const PfHandoverView *pf_ferry_get_view(const PfFerry *ferry);
PfState pf_ferry_get_state(const PfFerry *ferry);
PfRole pf_ferry_get_role(const PfFerry *ferry);
gboolean pf_ferry_is_ended(const PfFerry *ferry);
