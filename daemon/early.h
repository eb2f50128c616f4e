/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Hooks that come to the gate before this daemon has seen the databases, and so can't know whether
 * it expects their domain: most likely they have waited for the daemon before it, which has ended.
 * They wait here until it knows, or for as long as the gate may take.
 */

#include <glib.h>

#include "bus.h"
#include "domain-xml.h"

typedef struct PfEarly PfEarly;

PfEarly *pf_early_new(void);

/* Who still waits is left without an answer: a hook asks the next daemon then. */
void pf_early_free(PfEarly *early);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfEarly, pf_early_free)

/* 'call' waits, for 'timeout' (microseconds) at most; then it is answered as 'otherwise' says. */
void pf_early_add(PfEarly *early, PfBusCall *call, const PfDomain *domain, gint64 timeout,
                  PfPolicy otherwise);

/* Takes 'call' over.  'uuid' and 'policy' are the domain's. */
typedef void (*PfEarlyFunc)(PfBusCall *call, const char *uuid, const PfDomainPolicy *policy,
                            gpointer data);

/* Hands on everybody who waits. */
void pf_early_hand_on(PfEarly *early, PfEarlyFunc function, gpointer data);
