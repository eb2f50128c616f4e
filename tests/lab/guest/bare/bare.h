/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A guest without an operating system, for measurements.
 *
 * Under emulation, whatever a guest executes for the first time after a migration is translated
 * anew. That keeps Linux from its first reply for tens of milliseconds, and whoever watches takes
 * it for the network's fault. This guest executes next to nothing.
 *
 *   main.c    memory, interrupts, clock, command line
 *   virtio.c  network devices
 *   net.c     ARP, IPv4, IPv6, ICMP, UDP
 *   stream.c  UDP streams to and from the guest
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_NICS 16
#define MAX_FRAME 1514

/* --- main.c --- */

void *memset(void *to, int byte, size_t length);
void *memcpy(void *to, const void *from, size_t length);
int memcmp(const void *one, const void *other, size_t length);

/* Memory that begins on a page boundary, zeroed; never given back. Ends the guest if there is no
 * more. */
void *pages_allocate(size_t length);

/* Writes to the console. Slow: a port access for each byte. */
void say(const char *text);
void say_number(uint32_t number);

/* Stops for good, where it can be looked at. */
void panic(const char *why) __attribute__((noreturn));

/* Time in ticks of the ACPI timer; stands still while the guest does. Only true if called at least
 * once in four seconds. */
#define CLOCK_HZ 3579545U
uint64_t clock_now(void);

/* Calls stream_tick() and the like at least so often; 0: not at all. */
void tick_set_rate(uint32_t hz);

static inline void out8(uint16_t port, uint8_t value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port) : "memory");
}

static inline void out16(uint16_t port, uint16_t value)
{
    __asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port) : "memory");
}

static inline void out32(uint16_t port, uint32_t value)
{
    __asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port) : "memory");
}

static inline uint8_t in8(uint16_t port)
{
    uint8_t value;

    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port) : "memory");
    return value;
}

static inline uint16_t in16(uint16_t port)
{
    uint16_t value;

    __asm__ volatile("inw %1, %0" : "=a"(value) : "Nd"(port) : "memory");
    return value;
}

static inline uint32_t in32(uint16_t port)
{
    uint32_t value;

    __asm__ volatile("inl %1, %0" : "=a"(value) : "Nd"(port) : "memory");
    return value;
}

/* --- virtio.c --- */

typedef struct nic nic_t;

/* Finds the devices and makes them ready; returns how many there are. */
int nics_start(void);
nic_t *nic_get(int index);
const uint8_t *nic_mac(const nic_t *nic);

/* Takes back an interrupt of any device at this line. */
void nics_interrupt(uint8_t line);
/* A bit for each line that has a device. */
uint16_t nics_lines(void);

/* Handles all frames that have come; what is sent meanwhile goes out at the end. */
void nics_run(void);

/* Whether so much is under way that what need not be sent should not be: answers come first, since
 * what has come waits until there is room for one. */
bool nic_is_busy(nic_t *nic);
/* A buffer of MAX_FRAME bytes for one frame, or NULL if too many are under way. */
uint8_t *nic_frame(nic_t *nic);
/* Sends the frame that nic_frame() gave last; it goes out with the next nics_flush(). */
void nic_send(nic_t *nic, size_t length);
void nics_flush(void);

/* --- net.c --- */

typedef struct {
    uint8_t bytes[16];
    uint8_t length; /* 4, 16, or 0 for none */
} address_t;

/* Where a datagram goes to, or comes from. */
typedef struct {
    nic_t *nic;
    uint8_t mac[6];
    address_t own;
    address_t peer;
    uint16_t own_port;
    uint16_t peer_port;
} path_t;

/* Takes "MAC,ADDRESS/LENGTH[,GATEWAY]", up to a blank; several for a device are possible. */
void net_configure(const char *text);
void net_receive(nic_t *nic, const uint8_t *frame, size_t length);
/* Finds device and own address for 'peer'; the neighbour's MAC may not be known yet. False if no
 * device leads there. */
bool net_route(path_t *path);
/* Whether the neighbour's MAC is known; if not, asks for it. */
bool net_resolve(path_t *path);
bool net_send_udp(const path_t *path, const void *payload, size_t length);

/* Both take a text and go behind what they have read; false if it is none. */
bool parse_address(const char **text, address_t *address);
bool parse_number(const char **text, uint32_t *number);

static inline uint16_t get16(const uint8_t *from)
{
    return (uint16_t)(from[0] << 8 | from[1]);
}

static inline void put16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

static inline uint32_t get32(const uint8_t *from)
{
    return (uint32_t)get16(from) << 16 | get16(from + 2);
}

static inline void put32(uint8_t *to, uint32_t value)
{
    put16(to, value >> 16);
    put16(to + 2, value);
}

/* --- stream.c --- */

/* Takes "ADDRESS,PORT,RATE[,SIZE]", up to a blank: streams there from now on. */
void stream_configure(const char *text);
/* A datagram to one of the ports below. */
void stream_command(const path_t *from, const uint8_t *payload, size_t length);
void stream_sink(const uint8_t *payload, size_t length);
void stream_report(const path_t *from, const uint8_t *payload, size_t length);
/* Sends what is due. */
void stream_tick(void);
/* How often it wants to be called, per second; 0 for not at all. */
uint32_t stream_rate(void);

#define PORT_ECHO 7
#define PORT_SINK 9
#define PORT_REPORT 19
#define PORT_STREAM 5001
