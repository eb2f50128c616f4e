/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the guest sends at a fixed rate, and what it counts.
 *
 * All numbers are big-endian; 'token' tells those who ask apart, and is chosen by them.
 *
 *   to port 5001    token 8, rate 4, seconds 4, size 4: stream to the sender for so long; rate 0
 *                   ends it. The stream: token 8, sequence 8, and 4 for how often there was no
 *                   room to send.
 *   to port 9       token 8, sequence 8: is counted
 *   to port 19      token 8: is answered with token 8, and 4 each for what came to port 9: counted
 *                   once, counted again, too late to tell, and the longest time without any in
 *                   microseconds of the guest's own clock, which stands still when the guest does
 */
#include "bare.h"

#define MAX_STREAMS 16
#define MAX_SINKS 16
#define WINDOW 16384U /* sequence numbers */
#define STREAM_HEADER 20U
#define MAX_SIZE 1400U

struct stream {
    path_t path;
    bool resolved;
    uint8_t token[8];
    uint32_t rate; /* 0: not used */
    uint32_t size;
    uint64_t sequence;
    uint32_t refused;
    uint64_t until; /* 0: for ever */
    uint64_t last;
    int64_t debt; /* datagrams that are due, times CLOCK_HZ */
};

struct sink {
    bool used;
    uint8_t token[8];
    uint64_t highest;
    uint32_t once;
    uint32_t again;
    uint32_t late;
    uint64_t last;
    uint32_t longest;
    uint32_t window[WINDOW / 32];
};

static struct stream streams[MAX_STREAMS];
static struct sink *sinks;
static int next_sink;

static uint64_t get64(const uint8_t *from)
{
    return (uint64_t)get32(from) << 32 | get32(from + 4);
}

static void put64(uint8_t *to, uint64_t value)
{
    put32(to, (uint32_t)(value >> 32));
    put32(to + 4, (uint32_t)value);
}

/* --- out --- */

static struct stream *find_stream(const uint8_t *token)
{
    struct stream *unused = NULL;

    for (int i = 0; i < MAX_STREAMS; i++) {
        if (streams[i].rate == 0) {
            unused = unused ? unused : &streams[i];
        } else if (memcmp(streams[i].token, token, 8) == 0) {
            return &streams[i];
        }
    }
    if (unused) {
        memset(unused, 0, sizeof *unused);
        memcpy(unused->token, token, 8);
        unused->last = clock_now();
    }
    return unused;
}

static uint32_t limit_size(uint32_t size)
{
    return size < STREAM_HEADER ? STREAM_HEADER : size > MAX_SIZE ? MAX_SIZE : size;
}

void stream_configure(const char *text)
{
    static const uint8_t token[8] = "boot";
    struct stream *stream = find_stream(token);
    uint32_t port, rate, size = 64;

    if (!parse_address(&text, &stream->path.peer) || *text++ != ',' ||
        !parse_number(&text, &port) || *text++ != ',' || !parse_number(&text, &rate) ||
        (*text == ',' && (text++, !parse_number(&text, &size)))) {
        panic("pf.run=stream takes ADDRESS,PORT,RATE[,SIZE]");
    }
    if (!net_route(&stream->path)) {
        panic("no way to where pf.run=stream is to go");
    }
    stream->path.own_port = PORT_STREAM;
    stream->path.peer_port = (uint16_t)port;
    stream->rate = rate;
    stream->size = limit_size(size);
}

void stream_command(const path_t *from, const uint8_t *payload, size_t length)
{
    struct stream *stream = length >= 20 ? find_stream(payload) : NULL;

    if (!stream) {
        return;
    }
    stream->path = *from;
    stream->resolved = true;
    stream->rate = get32(payload + 8);
    stream->until = clock_now() + (uint64_t)get32(payload + 12) * CLOCK_HZ;
    stream->size = limit_size(get32(payload + 16));
}

static void send_due(struct stream *stream)
{
    static uint8_t payload[MAX_SIZE];

    memcpy(payload, stream->token, 8);
    put64(payload + 8, stream->sequence);
    put32(payload + 16, stream->refused);
    if (!nic_is_busy(stream->path.nic) && net_send_udp(&stream->path, payload, stream->size)) {
        stream->sequence++;
    } else {
        stream->refused++;
    }
}

void stream_tick(void)
{
    uint64_t now = clock_now();

    for (int i = 0; i < MAX_STREAMS; i++) {
        struct stream *stream = &streams[i];
        uint32_t elapsed;

        if (stream->rate == 0) {
            continue;
        }
        if (stream->until && now > stream->until) {
            stream->rate = 0;
            continue;
        }
        if (!stream->resolved && !(stream->resolved = net_resolve(&stream->path))) {
            stream->last = now;
            continue;
        }
        /* What an emulated guest missed for longer is not made up for at once. */
        elapsed = (uint32_t)(now - stream->last);
        elapsed = elapsed < CLOCK_HZ / 50 ? elapsed : CLOCK_HZ / 50;
        stream->last = now;
        stream->debt += (int64_t)((uint64_t)elapsed * stream->rate);
        /* Half a datagram early is as good as half a one late. */
        while (stream->debt >= CLOCK_HZ / 2) {
            stream->debt -= CLOCK_HZ;
            send_due(stream);
        }
    }
}

uint32_t stream_rate(void)
{
    uint32_t highest = 0;

    for (int i = 0; i < MAX_STREAMS; i++) {
        highest = streams[i].rate > highest ? streams[i].rate : highest;
    }
    /* More often than datagrams are due, where that is cheap: it keeps them evenly apart. */
    return highest > 2000 ? highest : 2 * highest;
}

/* --- in --- */

static struct sink *find_sink(const uint8_t *token, bool make)
{
    struct sink *sink;

    if (!sinks) {
        if (!make) {
            return NULL;
        }
        sinks = pages_allocate(sizeof *sinks * MAX_SINKS);
    }
    for (int i = 0; i < MAX_SINKS; i++) {
        if (sinks[i].used && memcmp(sinks[i].token, token, 8) == 0) {
            return &sinks[i];
        }
    }
    if (!make) {
        return NULL;
    }
    /* The oldest has to go. */
    sink = &sinks[next_sink++ % MAX_SINKS];
    memset(sink, 0, sizeof *sink);
    memcpy(sink->token, token, 8);
    sink->used = true;
    sink->last = clock_now();
    return sink;
}

static uint32_t *window_word(struct sink *sink, uint64_t sequence)
{
    return &sink->window[(uint32_t)sequence % WINDOW / 32];
}

void stream_sink(const uint8_t *payload, size_t length)
{
    struct sink *sink = length >= 16 ? find_sink(payload, true) : NULL;
    uint64_t sequence, now;
    uint32_t bit;

    if (!sink) {
        return;
    }
    now = clock_now();
    if (sink->once && now - sink->last > sink->longest) {
        sink->longest = (uint32_t)(now - sink->last);
    }
    sink->last = now;
    sequence = get64(payload + 8);
    if (sequence + WINDOW <= sink->highest) {
        sink->late++;
        return;
    }
    if (sequence > sink->highest + WINDOW) {
        memset(sink->window, 0, sizeof sink->window);
        sink->highest = sequence;
    }
    for (; sink->highest < sequence;) {
        sink->highest++;
        *window_word(sink, sink->highest) &= ~(1U << (uint32_t)sink->highest % 32);
    }
    bit = 1U << (uint32_t)sequence % 32;
    if (*window_word(sink, sequence) & bit) {
        sink->again++;
    } else {
        *window_word(sink, sequence) |= bit;
        sink->once++;
    }
}

void stream_report(const path_t *from, const uint8_t *payload, size_t length)
{
    struct sink *sink = length >= 8 ? find_sink(payload, false) : NULL;
    uint8_t report[24] = {0};

    if (length < 8) {
        return;
    }
    memcpy(report, payload, 8);
    if (sink) {
        put32(report + 8, sink->once);
        put32(report + 12, sink->again);
        put32(report + 16, sink->late);
        /* In units of 256 ticks, so that 32 bits are enough: 71.5 us. */
        put32(report + 20, (sink->longest >> 8) * 715 / 10);
    }
    net_send_udp(from, report, sizeof report);
}
