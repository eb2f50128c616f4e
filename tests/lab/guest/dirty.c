/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps memory changing, so that a migration of the guest has work to do.
 *
 *   dirty KIB-PER-SECOND [WORKING-SET-KIB]
 *
 * Writes to one page after the other, round and round in the working set
 * (32 MiB if not given), and looks whether the last round is still there: what
 * a migration loses is reported on the console.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE 4096L
#define TICK_NS 10000000L

int main(int argc, char **argv)
{
    long rate = argc > 1 ? atol(argv[1]) : 0;
    long size = argc > 2 ? atol(argv[2]) : 32 * 1024;
    long pages = size * 1024 / PAGE;
    long debt = 0, next = 0;
    volatile uint64_t *memory;
    uint64_t round = 0;

    if (rate <= 0 || pages <= 0) {
        fputs("usage: dirty KIB-PER-SECOND [WORKING-SET-KIB]\n", stderr);
        return 2;
    }
    memory = mmap(NULL, (size_t)(pages * PAGE), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    for (;;) {
        struct timespec pause = {0, TICK_NS};

        /* In bytes, so that slow rates are kept as well. */
        for (debt += rate * 1024 / 100; debt >= PAGE; debt -= PAGE) {
            volatile uint64_t *cell = &memory[next * (PAGE / (long)sizeof *memory)];

            if (*cell != round) {
                printf("dirty: page %ld has lost its content\n", next);
            }
            *cell = round + 1;
            if (++next == pages) {
                next = 0;
                round++;
            }
        }
        nanosleep(&pause, NULL);
    }
}
