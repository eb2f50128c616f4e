/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What libvirt says about a guest, in the words of the state machine.  It means different things on
 * the two hosts: a guest that is resumed "by migration" has arrived at the destination, and has
 * been given back at the source.  Pure.
 */

#include "handover.h"
#include "virt.h"

/* What an event means for the side 'role'; PF_N_EVENTS: nothing. */
PfEvent pf_guest_event(PfRole role, PfVirtEventType type);

/* The same for an answer, to a side that is in 'state'. */
PfEvent pf_guest_answer(PfRole role, PfState state, const PfVirtGuest *guest);

/* Whether an answer says that the migration is still under way, or nothing at all: then a time
 * limit is not over. */
gboolean pf_guest_goes_on(const PfVirtGuest *guest);
