/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An ICMP echo at a fixed rate, with the time of every reply.
 *
 * Unlike ping, it keeps its rate when replies stay away: requests go out on a
 * schedule of absolute times. The receive times are the kernel's, so that a
 * busy machine does not turn a late wake-up of this process into a gap.
 *
 * The result is written at the end, one line per packet, all times being
 * CLOCK_REALTIME in nanoseconds:
 *
 *   s,SEQUENCE,TIME    a request that was sent
 *   e,SEQUENCE,TIME    a request that the kernel refused to send
 *   r,SEQUENCE,TIME    a reply, in the order of their arrival
 */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <linux/icmp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL

/* The sequence number in the ICMP header has 16 bits and comes round after a
 * minute; the payload carries the whole one, and a token that tells the
 * probes of a host apart. */
struct payload {
    uint64_t token;
    uint64_t sequence;
    uint8_t padding[40];
};

struct request {
    struct icmphdr header;
    struct payload payload;
} __attribute__((packed));

struct record {
    uint64_t sequence;
    int64_t time;
    char kind;
};

static struct record *records;
static size_t n_records, max_records;
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
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static void record(char kind, uint64_t sequence, int64_t time)
{
    if (n_records < max_records) {
        records[n_records++] = (struct record){sequence, time, kind};
    }
}

static uint16_t checksum(const void *data, size_t length)
{
    const uint16_t *words = data;
    uint32_t sum = 0;

    for (size_t i = 0; i < length / 2; i++) {
        sum += words[i];
    }
    sum = (sum >> 16) + (sum & 0xffff);
    sum += sum >> 16;
    return (uint16_t)~sum;
}

static void send_request(int fd, uint16_t id, uint64_t token, uint64_t sequence)
{
    struct request request = {
        .header = {.type = ICMP_ECHO, .un.echo = {.id = id, .sequence = htons((uint16_t)sequence)}},
        .payload = {.token = token, .sequence = htobe64(sequence)},
    };
    int64_t time = now(CLOCK_REALTIME);
    ssize_t n;

    request.header.checksum = checksum(&request, sizeof request);
    n = send(fd, &request, sizeof request, MSG_DONTWAIT);
    record(n == sizeof request ? 's' : 'e', sequence, time);
}

static int64_t arrival_time(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec ts;

            memcpy(&ts, CMSG_DATA(c), sizeof ts);
            return ts.tv_sec * NS_PER_S + ts.tv_nsec;
        }
    }
    return now(CLOCK_REALTIME);
}

static void receive_replies(int fd, uint16_t id, uint64_t token)
{
    for (;;) {
        uint8_t packet[256];
        uint8_t control[128];
        struct iovec iov = {packet, sizeof packet};
        struct msghdr message = {
            .msg_iov = &iov,
            .msg_iovlen = 1,
            .msg_control = control,
            .msg_controllen = sizeof control,
        };
        struct request reply;
        size_t ip_length;
        ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT);

        if (n < 0) {
            /* An ICMP error about an earlier request is reported here, once. */
            if (errno == EINTR || errno == EHOSTUNREACH || errno == ENETUNREACH) {
                continue;
            }
            return;
        }
        ip_length = (packet[0] & 0x0f) * 4;
        if ((size_t)n < ip_length + sizeof reply) {
            continue;
        }
        memcpy(&reply, packet + ip_length, sizeof reply);
        if (reply.header.type == ICMP_ECHOREPLY && reply.header.un.echo.id == id &&
            reply.payload.token == token) {
            record('r', be64toh(reply.payload.sequence), arrival_time(&message));
        }
    }
}

static int open_socket(const char *interface, const struct sockaddr_in *target)
{
    struct icmp_filter filter = {.data = ~(1U << ICMP_ECHOREPLY)};
    int on = 1, buffer = 4 * 1024 * 1024;
    int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);

    if (fd < 0) {
        err(1, "raw socket");
    }
    if (setsockopt(fd, SOL_RAW, ICMP_FILTER, &filter, sizeof filter) < 0) {
        err(1, "ICMP_FILTER");
    }
    if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) < 0) {
        err(1, "SO_TIMESTAMPNS");
    }
    /* Room for several seconds of replies, should this process be kept off
     * the CPU. */
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
    if (interface &&
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface)) < 0) {
        err(1, "bind to %s", interface);
    }
    if (connect(fd, (const struct sockaddr *)target, sizeof *target) < 0) {
        err(1, "connect");
    }
    return fd;
}

static int open_timer(int64_t interval)
{
    int64_t first = now(CLOCK_MONOTONIC) + interval;
    struct itimerspec spec = {
        .it_value = {first / NS_PER_S, first % NS_PER_S},
        .it_interval = {interval / NS_PER_S, interval % NS_PER_S},
    };
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

    if (fd < 0 || timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL) < 0) {
        err(1, "timerfd");
    }
    return fd;
}

/* On a machine with few CPUs, what is measured competes with the measuring. */
static void become_urgent(int priority)
{
    struct sched_param param = {.sched_priority = priority};

    if (sched_setscheduler(0, SCHED_FIFO, &param) < 0) {
        warn("no real-time priority");
    }
    if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0) {
        warn("mlockall");
    }
}

static void write_records(const char *path)
{
    FILE *f = fopen(path, "we");

    if (!f) {
        err(1, "%s", path);
    }
    for (size_t i = 0; i < n_records; i++) {
        fprintf(f, "%c,%llu,%lld\n", records[i].kind, (unsigned long long)records[i].sequence,
                (long long)records[i].time);
    }
    if (fclose(f) != 0) {
        err(1, "%s", path);
    }
}

static void usage(FILE *f)
{
    fputs("usage: probe [OPTION...] ADDRESS OUTPUT\n"
          "  --interface NAME   send from this interface\n"
          "  --rate N           requests a second (1000)\n"
          "  --duration S       stop sending after S seconds (120)\n"
          "  --linger MS        wait for late replies at the end (300)\n"
          "  --priority N       real-time priority, 0 for none (20)\n"
          "SIGTERM ends it early. Prints a line when the first reply is there.\n",
          f);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"interface", required_argument, NULL, 'i'},
        {"rate", required_argument, NULL, 'r'},
        {"duration", required_argument, NULL, 'd'},
        {"linger", required_argument, NULL, 'l'},
        {"priority", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const char *interface = NULL;
    long rate = 1000, duration = 120, linger = 300;
    int priority = 20;
    struct sockaddr_in target = {.sin_family = AF_INET};
    struct sigaction action = {.sa_handler = on_signal};
    struct pollfd fds[2];
    uint64_t token, sequence = 0, limit;
    uint16_t id;
    bool announced = false;
    int64_t last;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'i':
            interface = optarg;
            break;
        case 'r':
            rate = atol(optarg);
            break;
        case 'd':
            duration = atol(optarg);
            break;
        case 'l':
            linger = atol(optarg);
            break;
        case 'p':
            priority = atoi(optarg);
            break;
        case 'h':
            usage(stdout);
            return 0;
        default:
            usage(stderr);
            return 2;
        }
    }
    if (argc - optind != 2 || rate < 1 || rate > 100000 || duration < 1 || duration > 3600 ||
        inet_pton(AF_INET, argv[optind], &target.sin_addr) != 1) {
        usage(stderr);
        return 2;
    }

    if (getrandom(&token, sizeof token, 0) != sizeof token) {
        err(1, "getrandom");
    }
    id = (uint16_t)token;
    limit = (uint64_t)rate * (uint64_t)duration;
    /* Every request once, and as many replies again, be they all doubled. */
    max_records = 3 * limit;
    records = calloc(max_records, sizeof *records);
    if (!records) {
        err(1, "memory");
    }

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    fds[0] = (struct pollfd){.fd = open_socket(interface, &target), .events = POLLIN};
    fds[1] = (struct pollfd){.fd = open_timer(NS_PER_S / rate), .events = POLLIN};
    if (priority > 0) {
        become_urgent(priority);
    }

    while (!stopped && sequence < limit) {
        uint64_t due;

        if (poll(fds, 2, 1000) < 0) {
            continue;
        }
        /* Late by more than one: catch up, the schedule counts. */
        if (read(fds[1].fd, &due, sizeof due) == sizeof due) {
            for (; due > 0 && sequence < limit; due--) {
                send_request(fds[0].fd, id, token, sequence++);
            }
        }
        receive_replies(fds[0].fd, id, token);
        if (!announced && n_records > sequence) {
            announced = true;
            puts("replies");
            fflush(stdout);
        }
    }

    last = now(CLOCK_MONOTONIC) + linger * 1000000LL;
    while (now(CLOCK_MONOTONIC) < last) {
        poll(fds, 1, 10);
        receive_replies(fds[0].fd, id, token);
    }
    write_records(argv[optind + 1]);
    return 0;
}
