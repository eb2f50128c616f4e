/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the CPU forget its address translations, some hundred times a second.
 *
 *   flush [PERIOD-US]
 *
 * QEMU before 9.0 loses memory in a migration under emulation: when it takes
 * over the list of changed pages, it forgets to tell the emulated CPU, whose
 * translations still say that a page is known to be changed. Writes to it go
 * unnoticed from then on, until the translation is dropped, and the guest goes
 * on at its destination with old pages. (QEMU commit "physmem: Fix migration
 * dirty bitmap coherency with TCG memory access".) A guest that is idle except
 * for its network drops them almost never. One that switches between two
 * address spaces does so every time.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
    long period = argc > 1 ? atol(argv[1]) : 2000;
    struct timespec pause = {0, period * 1000};

    if (fork() < 0) {
        return 1;
    }
    for (;;) {
        nanosleep(&pause, NULL);
    }
}
