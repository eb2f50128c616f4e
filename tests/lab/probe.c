/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Packets at a fixed rate, with the time of every one that comes back.
 *
 * Unlike ping, it keeps its rate when replies stay away: requests go out on a
 * schedule of absolute times. The receive times are the kernel's, so that a
 * busy machine does not turn a late wake-up of this process into a gap.
 *
 * Of what kind, by --kind:
 *
 *   icmp    echoes
 *   udp     the same by UDP, port 7
 *   sink    UDP to port 9 of the lab's bare guest, which counts and does not
 *           answer; it is asked for the counts at the end
 *   stream  the bare guest is asked to send at that rate; only what comes is
 *           written
 *
 * The result is written at the end, one line per packet, all times being
 * CLOCK_REALTIME in nanoseconds:
 *
 *   s,SEQUENCE,TIME    a request that was sent
 *   e,SEQUENCE,TIME    a request that the kernel refused to send
 *   r,SEQUENCE,TIME    a reply, in the order of their arrival
 *   c,ONCE,AGAIN       sink: what was counted, and what was a second time
 *   g,LATE,LONGEST     sink: what came too late to tell; the longest time
 *                      without any, in us of the guest's own clock, which
 *                      stands still when the guest does
 *   f,REFUSED,0        stream: how often the guest had no room to send
 *   x,0,TIME           stream: when the guest was asked to end it
 */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <linux/icmp.h>
#include <netinet/icmp6.h>
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

#define PORT_ECHO 7
#define PORT_SINK 9
#define PORT_REPORT 19
#define PORT_STREAM 5001

/* The sequence number in the ICMP header has 16 bits and comes round after a
 * minute; the payload carries the whole one, and a token that tells the
 * probes of a host apart. ICMP and ICMPv6 have the same header. */
struct payload {
    uint64_t token;
    uint64_t sequence;
    uint8_t padding[40];
};

struct request {
    struct icmphdr header;
    struct payload payload;
} __attribute__((packed));

/* To and from the bare guest, see guest/bare/stream.c; big-endian but for the
 * token. */
struct command {
    uint64_t token;
    uint32_t rate;
    uint32_t seconds;
    uint32_t size;
} __attribute__((packed));

struct report {
    uint64_t token;
    uint32_t once;
    uint32_t again;
    uint32_t late;
    uint32_t longest;
} __attribute__((packed));

enum kind { ICMP, UDP, SINK, STREAM };

struct probe {
    enum kind kind;
    int fd;
    int family;
    uint16_t id;
    uint64_t token;
    long rate;
    long duration;
    uint32_t size;
};

struct record {
    uint64_t sequence;
    int64_t time;
    char kind;
};

static struct record *records;
static size_t n_records, max_records, n_replies;
static uint32_t refused;
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

static void send_request(const struct probe *probe, uint64_t sequence)
{
    struct request request = {
        .header = {.type = probe->family == AF_INET ? ICMP_ECHO : ICMP6_ECHO_REQUEST,
                   .un.echo = {.id = probe->id, .sequence = htons((uint16_t)sequence)}},
        .payload = {.token = probe->token, .sequence = htobe64(sequence)},
    };
    const void *data = probe->kind == ICMP ? (const void *)&request : &request.payload;
    size_t size = probe->kind == ICMP ? sizeof request : sizeof request.payload;
    int64_t time = now(CLOCK_REALTIME);

    /* That of ICMPv6 is the kernel's business. */
    if (probe->family == AF_INET) {
        request.header.checksum = checksum(&request, sizeof request);
    }
    record(send(probe->fd, data, size, MSG_DONTWAIT) == (ssize_t)size ? 's' : 'e', sequence, time);
}

static void send_command(const struct probe *probe, long rate)
{
    struct command command = {
        .token = probe->token,
        .rate = htonl((uint32_t)rate),
        .seconds = htonl((uint32_t)probe->duration),
        .size = htonl(probe->size),
    };

    send(probe->fd, &command, sizeof command, MSG_DONTWAIT);
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

/* The sequence number of a reply to 'probe', or false if it is something else. */
static bool parse_reply(const struct probe *probe, const uint8_t *packet, size_t length,
                        uint64_t *sequence)
{
    struct payload payload;

    if (probe->kind == ICMP) {
        struct icmphdr header;
        /* A raw socket of IPv4 gives the IP header too, one of IPv6 does not. */
        size_t skipped = probe->family == AF_INET ? (packet[0] & 0x0fU) * 4 : 0;

        if (length < skipped + sizeof(struct request)) {
            return false;
        }
        memcpy(&header, packet + skipped, sizeof header);
        if (header.type != (probe->family == AF_INET ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY) ||
            header.un.echo.id != probe->id) {
            return false;
        }
        packet += skipped + sizeof header;
        length -= skipped + sizeof header;
    }
    if (length < 20) {
        return false;
    }
    memcpy(&payload, packet, length < sizeof payload ? length : sizeof payload);
    *sequence = be64toh(payload.sequence);
    if (probe->kind == STREAM) {
        uint32_t number;

        memcpy(&number, payload.padding, sizeof number);
        refused = ntohl(number);
    }
    return payload.token == probe->token;
}

static void receive_replies(const struct probe *probe)
{
    for (;;) {
        uint8_t packet[2048];
        uint8_t control[128];
        struct iovec iov = {packet, sizeof packet};
        struct msghdr message = {
            .msg_iov = &iov,
            .msg_iovlen = 1,
            .msg_control = control,
            .msg_controllen = sizeof control,
        };
        uint64_t sequence;
        ssize_t n = recvmsg(probe->fd, &message, MSG_DONTWAIT);

        if (n < 0) {
            /* An ICMP error about an earlier request is reported here, once. */
            if (errno == EINTR || errno == EHOSTUNREACH || errno == ENETUNREACH ||
                errno == ECONNREFUSED) {
                continue;
            }
            return;
        }
        if (parse_reply(probe, packet, (size_t)n, &sequence)) {
            record('r', sequence, arrival_time(&message));
            n_replies++;
        }
    }
}

static int open_socket(const struct probe *probe, const char *interface,
                       const struct sockaddr *target, socklen_t target_size)
{
    struct icmp_filter filter = {.data = ~(1U << ICMP_ECHOREPLY)};
    struct icmp6_filter filter6;
    bool old = probe->family == AF_INET;
    int on = 1, buffer = 16 * 1024 * 1024;
    int fd;

    if (probe->kind == ICMP) {
        fd = socket(probe->family, SOCK_RAW | SOCK_CLOEXEC, old ? IPPROTO_ICMP : IPPROTO_ICMPV6);
    } else {
        fd = socket(probe->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    }
    if (fd < 0) {
        err(1, "socket");
    }
    ICMP6_FILTER_SETBLOCKALL(&filter6);
    ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter6);
    if (probe->kind == ICMP &&
        (old ? setsockopt(fd, SOL_RAW, ICMP_FILTER, &filter, sizeof filter)
             : setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter6, sizeof filter6)) < 0) {
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
    if (connect(fd, target, target_size) < 0) {
        err(1, "connect");
    }
    return fd;
}

/* Asks the guest for what it has counted. */
static void ask_for_report(const struct probe *probe, const char *interface,
                           struct sockaddr_in6 *target, socklen_t target_size)
{
    struct pollfd fds = {.events = POLLIN};
    struct report report;

    /* Both kinds of address have the port at the same place. */
    target->sin6_port = htons(PORT_REPORT);
    fds.fd = open_socket(probe, interface, (struct sockaddr *)target, target_size);
    for (int i = 0; i < 100; i++) {
        send(fds.fd, &probe->token, sizeof probe->token, MSG_DONTWAIT);
        while (poll(&fds, 1, 100) > 0) {
            if (recv(fds.fd, &report, sizeof report, MSG_DONTWAIT) == sizeof report &&
                report.token == probe->token) {
                record('c', ntohl(report.once), ntohl(report.again));
                record('g', ntohl(report.late), ntohl(report.longest));
                close(fds.fd);
                return;
            }
        }
    }
    close(fds.fd);
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
          "  --kind KIND        icmp, udp, sink or stream (icmp)\n"
          "  --interface NAME   send from this interface\n"
          "  --rate N           requests a second (1000)\n"
          "  --size N           stream: bytes of each (64)\n"
          "  --duration S       stop sending after S seconds (120)\n"
          "  --linger MS        wait for late replies at the end (300)\n"
          "  --priority N       real-time priority, 0 for none (20)\n"
          "SIGTERM ends it early. Prints a line when the first reply is there, or\n"
          "the first of a sink is sent.\n",
          f);
}

static enum kind parse_kind(const char *name)
{
    static const char *const names[] = {"icmp", "udp", "sink", "stream"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            return (enum kind)i;
        }
    }
    usage(stderr);
    exit(2);
}

/* Either kind of address, with the port that the kind of probe takes. */
static socklen_t parse_target(struct probe *probe, const char *text, struct sockaddr_in6 *target)
{
    static const uint16_t ports[] = {0, PORT_ECHO, PORT_SINK, PORT_STREAM};
    struct sockaddr_in *old = (struct sockaddr_in *)target;

    memset(target, 0, sizeof *target);
    target->sin6_port = htons(ports[probe->kind]);
    if (inet_pton(AF_INET, text, &old->sin_addr) == 1) {
        old->sin_family = AF_INET;
        probe->family = AF_INET;
        return sizeof *old;
    }
    if (inet_pton(AF_INET6, text, &target->sin6_addr) == 1) {
        target->sin6_family = AF_INET6;
        probe->family = AF_INET6;
        return sizeof *target;
    }
    usage(stderr);
    exit(2);
}

/* Sends and receives until the end. */
static void run(const struct probe *probe, long linger)
{
    struct pollfd fds[2] = {
        {.fd = probe->fd, .events = POLLIN},
        {.fd = open_timer(NS_PER_S / probe->rate), .events = POLLIN},
    };
    uint64_t sequence = 0, limit = (uint64_t)probe->rate * (uint64_t)probe->duration;
    bool announced = false;
    int64_t last, asked = 0;

    while (!stopped && sequence < limit) {
        uint64_t due;

        if (poll(fds, 2, 1000) < 0) {
            continue;
        }
        /* Late by more than one: catch up, the schedule counts. */
        if (read(fds[1].fd, &due, sizeof due) == sizeof due) {
            for (; due > 0 && sequence < limit; due--) {
                if (probe->kind != STREAM) {
                    send_request(probe, sequence);
                } else if (!announced && now(CLOCK_MONOTONIC) - asked > NS_PER_S / 5) {
                    asked = now(CLOCK_MONOTONIC);
                    send_command(probe, probe->rate);
                }
                sequence++;
            }
        }
        receive_replies(probe);
        if (!announced && (n_replies > 0 || probe->kind == SINK)) {
            announced = true;
            puts("replies");
            fflush(stdout);
        }
    }
    if (probe->kind == STREAM) {
        send_command(probe, 0);
        record('x', 0, now(CLOCK_REALTIME));
    }
    last = now(CLOCK_MONOTONIC) + linger * 1000000LL;
    while (now(CLOCK_MONOTONIC) < last) {
        poll(fds, 1, 10);
        receive_replies(probe);
    }
    if (probe->kind == STREAM) {
        record('f', refused, 0);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"kind", required_argument, NULL, 'k'},
        {"interface", required_argument, NULL, 'i'},
        {"rate", required_argument, NULL, 'r'},
        {"size", required_argument, NULL, 's'},
        {"duration", required_argument, NULL, 'd'},
        {"linger", required_argument, NULL, 'l'},
        {"priority", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const char *interface = NULL;
    long linger = 300;
    int priority = 20;
    struct probe probe = {.rate = 1000, .duration = 120, .size = 64};
    struct sockaddr_in6 target;
    socklen_t target_size;
    struct sigaction action = {.sa_handler = on_signal};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'k':
            probe.kind = parse_kind(optarg);
            break;
        case 'i':
            interface = optarg;
            break;
        case 'r':
            probe.rate = atol(optarg);
            break;
        case 's':
            probe.size = (uint32_t)atol(optarg);
            break;
        case 'd':
            probe.duration = atol(optarg);
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
    if (argc - optind != 2 || probe.rate < 1 || probe.rate > 100000 || probe.duration < 1 ||
        probe.duration > 3600) {
        usage(stderr);
        return 2;
    }
    target_size = parse_target(&probe, argv[optind], &target);
    if (getrandom(&probe.token, sizeof probe.token, 0) != sizeof probe.token) {
        err(1, "getrandom");
    }
    probe.id = (uint16_t)probe.token;
    /* Every request once, and as many replies again, be they all doubled. */
    max_records = 3 * (size_t)probe.rate * (size_t)probe.duration + 8;
    records = calloc(max_records, sizeof *records);
    if (!records) {
        err(1, "memory");
    }

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    probe.fd = open_socket(&probe, interface, (struct sockaddr *)&target, target_size);
    if (priority > 0) {
        become_urgent(priority);
    }
    run(&probe, linger);
    if (probe.kind == SINK) {
        ask_for_report(&probe, interface, &target, target_size);
    }
    write_records(argv[optind + 1]);
    return 0;
}
