/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The namespaces that make a lab host.
 *
 *   hostns hold HOSTNAME
 *       Creates a network, mount, UTS, IPC and PID namespace and stays as
 *       process 1 of the latter. Writes the process id of that one, as seen
 *       from outside, to standard output once everything is ready. Standard
 *       input is the lifeline: when it ends, so does the host with all that
 *       runs on it, even when its owner was killed without warning. A line
 *       "keep" on it says that the host shall outlive its owner.
 *
 *   hostns enter PID COMMAND [ARGUMENT...]
 *       Runs a command on a host. Signals go to the command, the command's
 *       end is reported as its own, and it does not outlive this process.
 *       (nsenter forwards no signals.)
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const int forwarded[] = {
    SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT,
};

static void wait_for_the_end(void)
{
    char line[8];
    ssize_t n;

    do {
        n = read(STDIN_FILENO, line, sizeof line);
    } while (n < 0 && errno == EINTR);

    if (n >= 4 && memcmp(line, "keep", 4) == 0) {
        for (;;) {
            pause();
        }
    }
}

/* The owner's output may be a pipe that somebody reads to its end, and a host
 * that is kept must not hold it open. */
static void let_go_of_the_output(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0) {
        err(1, "/dev/null");
    }
    close(null);
}

/* Process 1 of the new PID namespace: the kernel ends everything in it when
 * this process ends. */
static int be_init(int ready)
{
    /* Orphans end up here, and none of them shall stay a zombie. */
    signal(SIGCHLD, SIG_IGN);
    /* What a terminal sends to its foreground group is not meant for hosts. */
    if (setsid() < 0) {
        err(1, "setsid");
    }

    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
        err(1, "mount /proc");
    }
    /* Shows the network interfaces of this namespace, not of the machine. */
    if (mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
        err(1, "mount /sys");
    }

    if (write(ready, "r", 1) != 1) {
        err(1, "report readiness");
    }
    close(ready);
    let_go_of_the_output();

    wait_for_the_end();
    return 0;
}

static int hold(const char *hostname)
{
    int ready[2];
    char byte;
    pid_t child;

    if (pipe2(ready, O_CLOEXEC) < 0) {
        err(1, "pipe");
    }
    if (unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID) < 0) {
        err(1, "unshare");
    }
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        err(1, "make the mounts private");
    }
    if (sethostname(hostname, strlen(hostname)) < 0) {
        err(1, "sethostname");
    }

    child = fork();
    if (child < 0) {
        err(1, "fork");
    }
    if (child == 0) {
        close(ready[0]);
        exit(be_init(ready[1]));
    }

    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1) {
        errx(1, "the host %s did not come up", hostname);
    }
    printf("%d\n", (int)child);
    fflush(stdout);
    let_go_of_the_output();

    /* Somebody must collect the child, and not every machine has a process 1
     * that does. */
    signal(SIGTERM, SIG_IGN);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
        continue;
    }
    return 0;
}

static void join(int proc, const char *name)
{
    char path[32];
    int fd;

    snprintf(path, sizeof path, "ns/%s", name);
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, 0) < 0) {
        err(125, "enter the %s namespace", name);
    }
    close(fd);
}

static int enter(const char *pid, char **command)
{
    static const char *const names[] = {"uts", "ipc", "net", "pid", "mnt"};
    char path[32];
    sigset_t set, old;
    int proc;
    pid_t child;

    snprintf(path, sizeof path, "/proc/%s", pid);
    proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0) {
        err(125, "no host with process %s", pid);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        join(proc, names[i]);
    }
    close(proc);
    if (chdir("/") < 0) {
        err(125, "chdir");
    }

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++) {
        sigaddset(&set, forwarded[i]);
    }
    sigprocmask(SIG_BLOCK, &set, &old);

    child = fork();
    if (child < 0) {
        err(125, "fork");
    }
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &old, NULL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(command[0], command);
        warn("%s", command[0]);
        _exit(errno == ENOENT ? 127 : 126);
    }

    for (;;) {
        int signal_number, status;

        if (sigwait(&set, &signal_number) != 0) {
            continue;
        }
        if (signal_number != SIGCHLD) {
            kill(child, signal_number);
            continue;
        }
        if (waitpid(child, &status, WNOHANG) != child) {
            continue;
        }
        if (WIFEXITED(status)) {
            return WEXITSTATUS(status);
        }
        if (WIFSIGNALED(status)) {
            /* Die of the same cause, without a core file of our own. */
            struct rlimit none = {0, 0};

            setrlimit(RLIMIT_CORE, &none);
            signal(WTERMSIG(status), SIG_DFL);
            sigprocmask(SIG_SETMASK, &old, NULL);
            raise(WTERMSIG(status));
            return 128 + WTERMSIG(status);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "hold") == 0) {
        return hold(argv[2]);
    }
    if (argc >= 4 && strcmp(argv[1], "enter") == 0) {
        return enter(argv[2], argv + 3);
    }
    fprintf(stderr, "usage: hostns hold HOSTNAME | hostns enter PID COMMAND...\n");
    return 2;
}
