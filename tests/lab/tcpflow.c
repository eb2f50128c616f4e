/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A long TCP transfer at a steady rate, and when its peer said that it has got how much.
 *
 *   tcpflow [--interface NAME] ADDRESS PORT BYTES-PER-SECOND OUTPUT
 *
 * SIGTERM ends it. The result is written at the end, times being CLOCK_REALTIME in nanoseconds:
 *
 *   r,BYTES,TIME    so much is acknowledged in all; whenever it has grown, looked at every 0.5 ms
 *   f,COUNT,0       segments sent again
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define STEP_NS 500000L

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

static int64_t now(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"interface", required_argument, NULL, 'i'},
                                            {NULL, 0, NULL, 0}};
    static char block[16384];
    const char *interface = NULL;
    struct sigaction action = {.sa_handler = on_signal};
    struct sched_param urgent = {.sched_priority = 20};
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct tcp_info info = {0};
    int64_t start, next;
    uint64_t acked = 0, written = 0, rate;
    int fd, option, announced = 0;
    FILE *f;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option != 'i') {
            return 2;
        }
        interface = optarg;
    }
    if (argc - optind != 4 || inet_pton(AF_INET, argv[optind], &address.sin_addr) != 1) {
        fputs("usage: tcpflow [--interface NAME] ADDRESS PORT BYTES-PER-SECOND OUTPUT\n", stderr);
        return 2;
    }
    address.sin_port = htons((uint16_t)atoi(argv[optind + 1]));
    rate = strtoull(argv[optind + 2], NULL, 10);
    f = fopen(argv[optind + 3], "we");
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!f || fd < 0) {
        err(1, "%s", argv[optind + 3]);
    }
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    if (interface &&
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface)) < 0) {
        err(1, "bind to %s", interface);
    }
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        err(1, "connect");
    }
    if (sched_setscheduler(0, SCHED_FIFO, &urgent) < 0) {
        warn("no real-time priority");
    }
    start = next = now(CLOCK_MONOTONIC);
    while (!stopped) {
        struct timespec until = {next / 1000000000, next % 1000000000};
        uint64_t due = (uint64_t)(next - start) / 1000 * rate / 1000000;
        socklen_t size = sizeof info;

        while (written < due) {
            size_t length = due - written < sizeof block ? due - written : sizeof block;
            ssize_t n = send(fd, block, length, MSG_DONTWAIT | MSG_NOSIGNAL);

            if (n < 0) {
                if (errno != EAGAIN && errno != EINTR) {
                    err(1, "send");
                }
                /* What does not fit is not made up for: the rate is not to rise afterwards. */
                start += (int64_t)((due - written) * 1000000 / rate * 1000);
                break;
            }
            written += (uint64_t)n;
        }
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
            info.tcpi_bytes_acked > acked) {
            acked = info.tcpi_bytes_acked;
            fprintf(f, "r,%llu,%lld\n", (unsigned long long)acked, (long long)now(CLOCK_REALTIME));
            if (!announced) {
                announced = 1;
                puts("replies");
                fflush(stdout);
            }
        }
        next += STEP_NS;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    fprintf(f, "f,%u,0\n", info.tcpi_total_retrans);
    if (fclose(f) != 0) {
        err(1, "%s", argv[optind + 3]);
    }
    return 0;
}
