/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "crash.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define VARIABLE "PORTFERRY_CRASH"

/* Without a default, so that the compiler misses a goal that is new.  NULL: no such goal. */
static const char *goal_name(PfGoal goal)
{
    if (goal == PF_CRASH_BARRIER) {
        return "barrier";
    }
    switch (goal) {
    case PF_GOAL_PREPLUG:
        return "preplug";
    case PF_GOAL_OPEN:
        return "open";
    case PF_GOAL_CLOSE:
        return "close";
    case PF_GOAL_MARK:
        return "mark";
    case PF_GOAL_RELEASE:
        return "release";
    case PF_GOAL_RECLAIM:
        return "reclaim";
    case PF_GOAL_COLLAPSE:
        return "collapse";
    case PF_GOAL_ROLL_BACK:
        return "roll-back";
    case PF_GOAL_FOLLOW:
        return "follow";
    case PF_GOAL_PUT_BACK:
        return "put-back";
    case PF_GOAL_TWICE:
        return "twice";
    case PF_GOAL_TURN:
        return "turn";
    case PF_GOAL_TURN_BACK:
        return "turn-back";
    }
    return NULL;
}

static int number_of(const char *name)
{
    return g_str_equal(name, "KILL") ? SIGKILL : g_str_equal(name, "STOP") ? SIGSTOP : 0;
}

static void reach(const char *moment, const char *what)
{
    const char *path = getenv(VARIABLE);
    g_autofree char *text = NULL;

    if (!path || !g_file_get_contents(path, &text, NULL, NULL)) {
        return;
    }
    g_autofree char *name = g_strdup_printf("%s-%s", moment, what);
    g_auto(GStrv) words = g_strsplit(g_strstrip(text), " ", 2);
    if (g_strv_length(words) != 2 || !g_str_equal(words[1], name)) {
        return;
    }
    /* A daemon that can't remove it would die again and again. */
    if (unlink(path) != 0) {
        g_error("%s: %s", path, g_strerror(errno));
    }
    raise(number_of(words[0]));
}

void pf_crash_at_state(PfState state)
{
    reach("enter", pf_state_name(state));
}

void pf_crash_at_sent(PfGoal goal)
{
    reach("sent", goal_name(goal));
}

void pf_crash_at_answered(PfGoal goal)
{
    reach("answered", goal_name(goal));
}

void pf_crash_list(FILE *to)
{
    for (guint state = PF_STATE_INVALID + 1; state < PF_N_STATES; state++) {
        fprintf(to, "enter-%s\n", pf_state_name((PfState)state));
    }
    fprintf(to, "sent-barrier\nanswered-barrier\n");
    for (guint goal = 1; goal_name((PfGoal)goal); goal <<= 1) {
        fprintf(to, "sent-%s\nanswered-%s\n", goal_name((PfGoal)goal), goal_name((PfGoal)goal));
    }
}
