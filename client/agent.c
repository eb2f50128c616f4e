/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent.h"

#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGENT "pkttyagent"

/* How long it may take to register. */
#define START_TIMEOUT_MS 5000

struct PfAgent {
    pid_t pid;
};

static bool spawn(const char *path, int notify_fd, pid_t *pid)
{
    g_autofree char *notify = g_strdup_printf("%d", notify_fd);
    /* --fallback: an agent of the desktop session, if there is one, comes first. */
    char *argv[] = {(char *)AGENT, (char *)"--notify-fd", notify, (char *)"--fallback", NULL};

    return posix_spawn(pid, path, NULL, NULL, argv, environ) == 0;
}

PfAgent *pf_agent_start(void)
{
    g_autofree char *path = NULL;
    PfAgent *agent;
    int fds[2];
    pid_t pid;

    if (geteuid() == 0 || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        return NULL;
    }
    path = g_find_program_in_path(AGENT);
    if (!path || pipe(fds) < 0) {
        return NULL;
    }
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);

    bool spawned = spawn(path, fds[1], &pid);

    close(fds[1]);
    if (spawned) {
        /* It closes its end once it is registered. */
        struct pollfd ready = {.fd = fds[0], .events = POLLHUP};

        while (poll(&ready, 1, START_TIMEOUT_MS) < 0) {
            /* a signal: there are few, and the next wait is as good */
        }
    }
    close(fds[0]);
    if (!spawned) {
        return NULL;
    }
    agent = g_new0(PfAgent, 1);
    agent->pid = pid;
    return agent;
}

void pf_agent_stop(PfAgent *agent)
{
    if (!agent) {
        return;
    }
    kill(agent->pid, SIGTERM);
    kill(agent->pid, SIGCONT);
    waitpid(agent->pid, NULL, 0);
    g_free(agent);
}
