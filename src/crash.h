/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Crash points, for tests: moments in which a daemon may die that makes a difference to whoever
 * takes over.  They are every entry of a state, and every change of a database: when it has been
 * sent, and when the answer is there.
 *
 * Only a build with -Dcrash_points=true has them.  Its daemon looks for the file that is named by
 * PORTFERRY_CRASH in its environment, with the text "SIGNAL POINT", such as "KILL enter-dst-ready".
 * When it comes to that point it removes the file and sends itself that signal: KILL, or STOP for a
 * test that wants to do something to the rest of the world at that moment.
 */

#include <glib.h>
#include <stdio.h>

#include "handover.h"

/* The change that is no goal of the state machine: nb_cfg is raised, for the flows' barrier. */
#define PF_CRASH_BARRIER ((PfGoal)0)

#ifdef PF_CRASH_POINTS

void pf_crash_at_state(PfState state);
void pf_crash_at_sent(PfGoal goal);
void pf_crash_at_answered(PfGoal goal);

/* Prints the names of all points, one a line. */
void pf_crash_list(FILE *to);

#else

static inline void pf_crash_at_state(PfState state G_GNUC_UNUSED)
{
}

static inline void pf_crash_at_sent(PfGoal goal G_GNUC_UNUSED)
{
}

static inline void pf_crash_at_answered(PfGoal goal G_GNUC_UNUSED)
{
}

#endif
