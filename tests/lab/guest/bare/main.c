/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Takes its command line, as the guest's Linux would, and then does nothing but what interrupts
 * ask for:
 *
 *   pf.nic=MAC,ADDRESS/LENGTH[,GATEWAY]        any number of times
 *   pf.run=dirty,KIB-PER-SECOND[,KIB]          keep memory changing, see ../dirty.c
 *   pf.run=stream,ADDRESS,PORT,RATE[,SIZE]     send datagrams, see stream.c
 */
#include "bare.h"

#define SERIAL 0x3f8
#define PIC1 0x20
#define PIC2 0xa0
#define PIT 0x40
#define PIT_HZ 1193182U
#define ACPI_TIMER 0x608 /* where the machine's BIOS puts it */
#define PAGE 4096U
#define MAX_TICK_HZ 20000U
/* The loader's block of facts: flags, then lengths of memory in KiB, then more. */
#define MULTIBOOT_HAS_MEMORY 0x1U
#define MULTIBOOT_HAS_COMMAND_LINE 0x4U

extern uint8_t memory_free[];

static uint8_t *next_page = memory_free;
static uint8_t *memory_end;
static volatile bool ticked;

/* --- what a compiler takes for granted --- */

void *memset(void *to, int byte, size_t length)
{
    void *start = to;

    __asm__ volatile("rep stosb" : "+D"(to), "+c"(length) : "a"(byte) : "memory");
    return start;
}

void *memcpy(void *to, const void *from, size_t length)
{
    void *start = to;

    size_t words = length / 4;

    length %= 4;
    __asm__ volatile("rep movsl" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
    return start;
}

int memcmp(const void *one, const void *other, size_t length)
{
    const uint8_t *a = one, *b = other;

    for (size_t i = 0; i < length; i++) {
        if (a[i] != b[i]) {
            return a[i] - b[i];
        }
    }
    return 0;
}

/* --- console and memory --- */

void say(const char *text)
{
    for (; *text; text++) {
        while (!(in8(SERIAL + 5) & 0x20)) {
        }
        out8(SERIAL, (uint8_t)*text);
    }
}

void say_number(uint32_t number)
{
    char digits[11];
    int at = sizeof digits - 1;

    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    say(&digits[at]);
}

void panic(const char *why)
{
    say("bare: ");
    say(why);
    say("\r\n");
    for (;;) {
        __asm__ volatile("cli; hlt");
    }
}

void *pages_allocate(size_t length)
{
    uint8_t *start = next_page;

    length = (length + PAGE - 1) & ~(PAGE - 1);
    if (length > (size_t)(memory_end - next_page)) {
        panic("out of memory");
    }
    next_page += length;
    memset(start, 0, length);
    return start;
}

/* --- interrupts --- */

struct gate {
    uint16_t low;
    uint16_t selector;
    uint16_t type;
    uint16_t high;
} __attribute__((packed));

struct frame;

static struct gate gates[48];

/* The PICs' lines, after the 32 exceptions. */
#define LINE(n)                                                                                    \
    __attribute__((interrupt)) static void on_line_##n(struct frame *frame)                        \
    {                                                                                              \
        (void)frame;                                                                               \
        on_interrupt(n);                                                                           \
    }

static void on_interrupt(uint8_t line)
{
    if (line == 0) {
        ticked = true;
    } else {
        nics_interrupt(line);
    }
    if (line >= 8) {
        out8(PIC2, 0x20);
    }
    out8(PIC1, 0x20);
}

LINE(0)
LINE(1)
LINE(2)
LINE(3)
LINE(4)
LINE(5)
LINE(6)
LINE(7)
LINE(8)
LINE(9)
LINE(10)
LINE(11)
LINE(12)
LINE(13)
LINE(14)
LINE(15)

__attribute__((interrupt)) static void on_exception(struct frame *frame)
{
    (void)frame;
    panic("exception");
}

static void set_gate(int number, void (*handler)(struct frame *))
{
    uint32_t address = (uint32_t)handler;

    gates[number] = (struct gate){(uint16_t)address, 0x08, 0x8e00, (uint16_t)(address >> 16)};
}

static void set_mask(uint16_t enabled)
{
    /* Line 2 is where the second PIC is. */
    if (enabled & 0xff00) {
        enabled |= 1U << 2;
    }
    out8(PIC1 + 1, (uint8_t)~enabled);
    out8(PIC2 + 1, (uint8_t)(~enabled >> 8));
}

static void interrupts_start(void)
{
    static void (*const handlers[])(struct frame *) = {
        on_line_0,  on_line_1,  on_line_2,  on_line_3,  on_line_4,  on_line_5,
        on_line_6,  on_line_7,  on_line_8,  on_line_9,  on_line_10, on_line_11,
        on_line_12, on_line_13, on_line_14, on_line_15,
    };
    struct {
        uint16_t limit;
        uint32_t base;
    } __attribute__((packed)) pointer = {sizeof gates - 1, (uint32_t)gates};

    for (int i = 0; i < 32; i++) {
        set_gate(i, on_exception);
    }
    for (int i = 0; i < 16; i++) {
        set_gate(32 + i, handlers[i]);
    }
    __asm__ volatile("lidt %0" : : "m"(pointer));
    /* Both PICs: begin, first vector, where the other is, 8086 mode. */
    out8(PIC1, 0x11);
    out8(PIC2, 0x11);
    out8(PIC1 + 1, 32);
    out8(PIC2 + 1, 40);
    out8(PIC1 + 1, 4);
    out8(PIC2 + 1, 2);
    out8(PIC1 + 1, 1);
    out8(PIC2 + 1, 1);
    set_mask(0);
}

/* --- time --- */

uint64_t clock_now(void)
{
    static uint64_t now;
    static uint32_t last;
    /* 24 bits are true on every machine. */
    uint32_t read = in32(ACPI_TIMER) & 0xffffff;

    now += (read - last) & 0xffffff;
    last = read;
    return now;
}

void tick_set_rate(uint32_t hz)
{
    uint32_t divisor;

    set_mask((uint16_t)(nics_lines() | (hz > 0)));
    if (hz == 0) {
        return;
    }
    hz = hz < 100 ? 100 : hz > MAX_TICK_HZ ? MAX_TICK_HZ : hz;
    divisor = PIT_HZ / hz;
    out8(PIT + 3, 0x34); /* counter 0, both bytes, rate generator */
    out8(PIT, (uint8_t)divisor);
    out8(PIT, (uint8_t)(divisor >> 8));
}

/* --- memory that keeps changing --- */

static struct {
    uint32_t rate; /* KiB a second */
    uint32_t pages;
    uint32_t next;
    uint32_t round;
    uint32_t debt; /* in KiB, times CLOCK_HZ / 1024 */
    uint64_t last;
    volatile uint32_t *memory;
} dirty;

static void dirty_configure(const char *text)
{
    uint32_t size = 4096;

    if (!parse_number(&text, &dirty.rate) ||
        (*text == ',' && (text++, !parse_number(&text, &size))) || size < PAGE / 1024) {
        panic("pf.run=dirty takes KIB-PER-SECOND[,KIB]");
    }
    dirty.pages = size * 1024 / PAGE;
    dirty.memory = pages_allocate(dirty.pages * PAGE);
    dirty.last = clock_now();
}

static void dirty_tick(void)
{
    const uint32_t price = CLOCK_HZ / 1024 * (PAGE / 1024);
    uint64_t now = clock_now();
    uint32_t units = (uint32_t)(now - dirty.last) >> 10;

    dirty.last += (uint64_t)units << 10;
    units = units < CLOCK_HZ / 10 / 1024 ? units : CLOCK_HZ / 10 / 1024;
    for (dirty.debt += units * dirty.rate; dirty.debt >= price; dirty.debt -= price) {
        volatile uint32_t *cell = &dirty.memory[dirty.next * (PAGE / sizeof *dirty.memory)];

        if (*cell != dirty.round) {
            say("bare: page ");
            say_number(dirty.next);
            say(" has lost its content\r\n");
        }
        *cell = dirty.round + 1;
        if (++dirty.next == dirty.pages) {
            dirty.next = 0;
            dirty.round++;
        }
    }
}

/* --- command line --- */

static const char *after(const char *text, const char *prefix)
{
    for (; *prefix; text++, prefix++) {
        if (*text != *prefix) {
            return NULL;
        }
    }
    return text;
}

static void configure(const char *line)
{
    while (*line) {
        const char *rest;

        if ((rest = after(line, "pf.nic="))) {
            net_configure(rest);
        } else if ((rest = after(line, "pf.run=dirty,"))) {
            dirty_configure(rest);
        } else if ((rest = after(line, "pf.run=stream,"))) {
            stream_configure(rest);
        } else if (after(line, "pf.run=")) {
            panic("this guest has no such program");
        }
        while (*line && *line != ' ') {
            line++;
        }
        while (*line == ' ') {
            line++;
        }
    }
}

void bare_main(const uint32_t *facts)
{
    /* Copied, since the loader has put it where the first free page is. */
    static char command_line[4096];
    uint32_t rate = 0;

    if (!(facts[0] & MULTIBOOT_HAS_MEMORY) || !(facts[0] & MULTIBOOT_HAS_COMMAND_LINE)) {
        panic("the loader tells too little");
    }
    memory_end = (uint8_t *)(1024 * 1024 + facts[2] * 1024);
    for (size_t i = 0; i < sizeof command_line - 1 && ((const char *)facts[4])[i]; i++) {
        command_line[i] = ((const char *)facts[4])[i];
    }
    interrupts_start();
    if (nics_start() == 0) {
        say("bare: no network device\r\n");
    }
    configure(command_line);
    set_mask(nics_lines());
    say("portferry-lab: guest is up\r\n");

    for (;;) {
        uint32_t wanted = stream_rate();

        if (dirty.rate && wanted < 1000) {
            wanted = 1000;
        }
        if (wanted != rate) {
            rate = wanted;
            tick_set_rate(rate);
        }
        /* An interrupt between the two is not missed: the first takes effect after the second. */
        __asm__ volatile("sti; hlt; cli" : : : "memory");
        nics_run();
        if (ticked) {
            ticked = false;
            stream_tick();
            if (dirty.rate) {
                dirty_tick();
            }
        }
        nics_flush();
    }
}
