/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Virtio network devices (Virtual I/O Device specification 1.1, 2.6 "Split Virtqueues" and what it
 * says of legacy devices), on the first PCI bus.
 */
#include "bare.h"

#define PCI_ADDRESS 0xcf8
#define PCI_DATA 0xcfc
#define PCI_ID_VIRTIO_NET 0x10001af4U

/* Registers of a legacy device. */
#define HOST_FEATURES 0
#define GUEST_FEATURES 4
#define QUEUE_PAGE 8
#define QUEUE_SIZE 12
#define QUEUE_SELECT 14
#define QUEUE_NOTIFY 16
#define STATUS 18
#define ISR 19
#define CONFIGURATION 20

#define STATUS_ACKNOWLEDGE 1
#define STATUS_DRIVER 2
#define STATUS_DRIVER_OK 4
#define FEATURE_MAC (1U << 5)
#define FEATURE_MERGE_BUFFERS (1U << 15)
#define FEATURE_ANY_LAYOUT (1U << 27)

#define DESCRIPTOR_WRITE 2 /* by the device */
#define NO_INTERRUPT 1
#define NO_NOTIFY 1

#define PAGE 4096U
#define BUFFER 2048U
#define BUFFERS_OF_ALL 1024U
#define MAX_BUFFERS 128U

enum { RECEIVE, SEND, N_QUEUES };

struct descriptor {
    uint64_t address;
    uint32_t length;
    uint16_t flags;
    uint16_t next;
};

struct available {
    uint16_t flags;
    uint16_t index;
    uint16_t ring[];
};

struct used {
    uint16_t flags;
    uint16_t index;
    struct {
        uint32_t descriptor;
        uint32_t length;
    } ring[];
};

/* Before every frame. */
struct header {
    uint8_t flags;
    uint8_t kind;
    uint16_t header_length;
    uint16_t segment_size;
    uint16_t checksum_start;
    uint16_t checksum_offset;
    uint16_t buffers;
};

struct queue {
    uint16_t size;
    uint16_t buffers; /* so many of the descriptors are used, each for a buffer of its own */
    uint16_t seen;    /* of the used ring */
    uint16_t free;    /* sending: how many are not under way */
    bool news;        /* the device has not been told yet */
    volatile struct descriptor *descriptors;
    volatile struct available *available;
    volatile struct used *used;
    uint8_t *memory;
};

struct nic {
    uint16_t port;
    uint8_t line;
    uint8_t mac[6];
    uint16_t frame; /* which buffer nic_frame() gave */
    struct queue queues[N_QUEUES];
};

static nic_t nics[MAX_NICS];
static int n_nics;

static inline void order(void)
{
    /* What the other side reads must be there before it is told, and the other way round. */
    __asm__ volatile("lock; addl $0, (%%esp)" : : : "memory", "cc");
}

/* --- PCI --- */

static uint32_t pci_read(uint32_t device, uint32_t offset)
{
    out32(PCI_ADDRESS, 0x80000000U | device << 8 | offset);
    return in32(PCI_DATA);
}

static void pci_write(uint32_t device, uint32_t offset, uint32_t value)
{
    out32(PCI_ADDRESS, 0x80000000U | device << 8 | offset);
    out32(PCI_DATA, value);
}

/* --- starting --- */

static void queue_start(nic_t *nic, int number, uint16_t buffers)
{
    struct queue *queue = &nic->queues[number];
    size_t first;
    uint8_t *memory;

    out16(nic->port + QUEUE_SELECT, (uint16_t)number);
    queue->size = in16(nic->port + QUEUE_SIZE);
    if (queue->size == 0) {
        panic("a network device without a queue");
    }
    queue->buffers = buffers < queue->size ? buffers : queue->size;
    /* The used ring begins on a page of its own. */
    first = sizeof(struct descriptor) * queue->size + sizeof(uint16_t) * (3 + queue->size);
    first = (first + PAGE - 1) & ~(PAGE - 1);
    memory = pages_allocate(first + sizeof(uint16_t) * 3 + 8U * queue->size);
    queue->descriptors = (volatile struct descriptor *)memory;
    queue->available =
        (volatile struct available *)(memory + sizeof(struct descriptor) * queue->size);
    queue->used = (volatile struct used *)(memory + first);
    queue->memory = pages_allocate((size_t)queue->buffers * BUFFER);
    for (uint16_t i = 0; i < queue->buffers; i++) {
        queue->descriptors[i].address = (uint32_t)(queue->memory + (size_t)i * BUFFER);
        queue->descriptors[i].length = BUFFER;
        queue->descriptors[i].flags = number == RECEIVE ? DESCRIPTOR_WRITE : 0;
    }
    if (number == RECEIVE) {
        for (uint16_t i = 0; i < queue->buffers; i++) {
            queue->available->ring[i] = i;
        }
        queue->available->index = queue->buffers;
    } else {
        /* What is sent is looked after when the next frame wants a buffer. */
        queue->available->flags = NO_INTERRUPT;
        queue->free = queue->buffers;
    }
    out32(nic->port + QUEUE_PAGE, (uint32_t)memory / PAGE);
}

static void nic_start(uint32_t device, uint16_t buffers)
{
    nic_t *nic = &nics[n_nics++];
    uint32_t wanted = FEATURE_MAC | FEATURE_MERGE_BUFFERS | FEATURE_ANY_LAYOUT;
    uint32_t features;

    /* Port access, memory access, and leave to read and write our memory. */
    pci_write(device, 4, (pci_read(device, 4) & 0xffff) | 7);
    nic->port = (uint16_t)(pci_read(device, 16) & ~3U);
    nic->line = (uint8_t)pci_read(device, 60);
    out8(nic->port + STATUS, 0);
    out8(nic->port + STATUS, STATUS_ACKNOWLEDGE);
    out8(nic->port + STATUS, STATUS_ACKNOWLEDGE | STATUS_DRIVER);
    features = in32(nic->port + HOST_FEATURES);
    if ((features & wanted) != wanted) {
        panic("a network device that lacks a feature");
    }
    out32(nic->port + GUEST_FEATURES, wanted);
    for (int i = 0; i < 6; i++) {
        nic->mac[i] = in8((uint16_t)(nic->port + CONFIGURATION + i));
    }
    queue_start(nic, RECEIVE, buffers);
    queue_start(nic, SEND, buffers);
    out8(nic->port + STATUS, STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_DRIVER_OK);
    out16(nic->port + QUEUE_NOTIFY, RECEIVE);
}

int nics_start(void)
{
    uint32_t found[MAX_NICS];
    uint32_t n = 0, buffers;

    for (uint32_t device = 0; device < 32 * 8 && n < MAX_NICS; device++) {
        if (pci_read(device, 0) == PCI_ID_VIRTIO_NET) {
            found[n++] = device;
        }
    }
    /* A power of two, like the counters that go round over them. */
    for (buffers = MAX_BUFFERS; buffers * N_QUEUES * n > BUFFERS_OF_ALL; buffers /= 2) {
    }
    for (uint32_t i = 0; i < n; i++) {
        nic_start(found[i], (uint16_t)buffers);
    }
    return n_nics;
}

nic_t *nic_get(int index)
{
    return index < n_nics ? &nics[index] : NULL;
}

const uint8_t *nic_mac(const nic_t *nic)
{
    return nic->mac;
}

uint16_t nics_lines(void)
{
    uint16_t lines = 0;

    for (int i = 0; i < n_nics; i++) {
        lines |= (uint16_t)(1U << nics[i].line);
    }
    return lines;
}

void nics_interrupt(uint8_t line)
{
    /* Reading takes it back. Who of them it was shows in the rings. */
    for (int i = 0; i < n_nics; i++) {
        if (nics[i].line == line) {
            in8(nics[i].port + ISR);
        }
    }
}

/* --- frames --- */

/* Takes back what has been sent; they come in the order in which they were sent, so they need no
 * list. */
static bool has_room(nic_t *nic)
{
    struct queue *queue = &nic->queues[SEND];

    while (queue->seen != queue->used->index) {
        queue->seen++;
        queue->free++;
    }
    return queue->free > 0;
}

/* Whether an answer could be sent. If not, the device says when: what has come waits so long. */
static bool may_answer(nic_t *nic)
{
    struct queue *queue = &nic->queues[SEND];

    if (!has_room(nic)) {
        queue->available->flags = 0;
        order();
        if (!has_room(nic)) {
            return false;
        }
    }
    queue->available->flags = NO_INTERRUPT;
    return true;
}

static void nic_receive(nic_t *nic)
{
    struct queue *queue = &nic->queues[RECEIVE];

    while (queue->seen != queue->used->index && may_answer(nic)) {
        uint16_t slot, buffer;
        uint32_t length;
        const uint8_t *memory;

        order();
        slot = queue->seen++ % queue->size;
        buffer = (uint16_t)queue->used->ring[slot].descriptor;
        length = queue->used->ring[slot].length;
        memory = queue->memory + (size_t)buffer * BUFFER;
        if (length > sizeof(struct header) && length <= BUFFER &&
            ((const struct header *)memory)->buffers == 1) {
            net_receive(nic, memory + sizeof(struct header), length - sizeof(struct header));
        }
        queue->available->ring[queue->available->index % queue->size] = buffer;
        order();
        queue->available->index++;
        queue->news = true;
    }
}

void nics_run(void)
{
    for (int i = 0; i < n_nics; i++) {
        nic_receive(&nics[i]);
    }
}

void nics_flush(void)
{
    order();
    for (int i = 0; i < n_nics; i++) {
        for (uint16_t number = 0; number < N_QUEUES; number++) {
            struct queue *queue = &nics[i].queues[number];

            if (queue->news && !(queue->used->flags & NO_NOTIFY)) {
                out16(nics[i].port + QUEUE_NOTIFY, number);
            }
            queue->news = false;
        }
    }
}

bool nic_is_busy(nic_t *nic)
{
    return !has_room(nic) || nic->queues[SEND].free < nic->queues[SEND].buffers / 4;
}

uint8_t *nic_frame(nic_t *nic)
{
    struct queue *queue = &nic->queues[SEND];

    if (!has_room(nic)) {
        return NULL;
    }
    nic->frame = (uint16_t)(queue->available->index % queue->buffers);
    return queue->memory + (size_t)nic->frame * BUFFER + sizeof(struct header);
}

void nic_send(nic_t *nic, size_t length)
{
    struct queue *queue = &nic->queues[SEND];

    memset(queue->memory + (size_t)nic->frame * BUFFER, 0, sizeof(struct header));
    queue->descriptors[nic->frame].length = (uint32_t)(sizeof(struct header) + length);
    queue->available->ring[queue->available->index % queue->size] = nic->frame;
    order();
    queue->available->index++;
    queue->free--;
    queue->news = true;
}
