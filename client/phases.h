/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "remote.h"
#include "terminal.h"

/* What people read about phases: daemon/ names them, org.portferry1(5) lists them.  A phase that
 * isn't known here (of a newer portferryd) is shown by its name alone. */

typedef enum {
    PF_KIND_PREPARE,  /* the destination is being prepared */
    PF_KIND_COPY,     /* memory is copied, the guest runs at the source */
    PF_KIND_SWITCH,   /* the guest stands still, or may */
    PF_KIND_ACTIVATE, /* it runs at the destination, the ports follow */
    PF_KIND_CLEAR,    /* what is left at the source goes */
    PF_KIND_BACK,     /* the ports go back to the source */
    PF_KIND_ENDED,
    PF_KIND_UNKNOWN,
    PF_N_KINDS,
} PfPhaseKind;

PfPhaseKind pf_phase_kind(const char *phase);
PfStyle pf_kind_style(PfPhaseKind kind);

/* Says what happens in the phase, in one translated clause; NULL if it isn't known.  Static. */
const char *pf_phase_explain(const char *phase, const char *role);

/* "source" and the like, translated.  Static, or 'role' itself. */
const char *pf_role_word(const char *role);
const char *pf_outcome_word(const char *outcome);
PfStyle pf_outcome_style(const char *outcome);

/* What stands for the domain: its name, or its UUID while nobody knows the name.  Safe to print. */
char *pf_domain_label(const PfRemoteHandover *handover);

/* "chassis-a -> chassis-b", safe to print. */
char *pf_route_label(const PfRemoteHandover *handover);
