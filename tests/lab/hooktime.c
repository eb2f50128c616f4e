/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stands in the place of a libvirt hook, runs the one of the same name in /run/lab/hooks, and
 * writes down how long it took: name, operation, suboperation, begin and end in CLOCK_REALTIME
 * nanoseconds, status; a line for each in /var/log/hooks.log.
 */
#include <err.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int64_t now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

int main(int argc, char **argv)
{
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    int64_t begin = now(), end;
    char path[256], line[256];
    int status, fd, length, code;
    pid_t pid;

    snprintf(path, sizeof path, "/run/lab/hooks/%s", name);
    if (posix_spawn(&pid, path, NULL, NULL, argv, environ) != 0) {
        err(1, "%s", path);
    }
    if (waitpid(pid, &status, 0) < 0) {
        err(1, "waitpid");
    }
    end = now();
    code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    length = snprintf(line, sizeof line, "%s %s %s %lld %lld %d\n", name, argc > 2 ? argv[2] : "-",
                      argc > 3 ? argv[3] : "-", (long long)begin, (long long)end, code);
    /* In one piece: several may be at it. */
    fd = open("/var/log/hooks.log", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, line, (size_t)length) != length) {
        warn("/var/log/hooks.log");
    }
    return code;
}
