/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the hook may find behind the name org.portferry1: fake-daemon BUS-ADDRESS MODE
 *
 *     ok       answers with success
 *     refuse   answers with org.portferry1.Error.NotReady
 *     slow     answers with success after 2 s
 *     later    the same after 4 s
 *     silent   never answers
 *     die      ends when it is asked
 *     garbage  answers with a result that nobody expects
 *     foreign  answers with an error that isn't portferry's
 *     nothing  has the name, but no such object
 *
 * Prints "ready", then one line for each call.  test_hook.py drives it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <systemd/sd-bus.h>

static const char *mode;

static int on_call(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    const char *domain;
    const void *xml;
    size_t size;
    int r;

    if ((r = sd_bus_message_read(m, "s", &domain)) < 0 ||
        (r = sd_bus_message_read_array(m, 'y', &xml, &size)) < 0)
        return r;
    printf("%s %s %zu\n", sd_bus_message_get_member(m), domain, size);
    fflush(stdout);

    if (strcmp(mode, "refuse") == 0)
        return sd_bus_error_set(error, "org.portferry1.Error.NotReady", "port X is not bound here");
    if (strcmp(mode, "foreign") == 0)
        return sd_bus_error_set(error, "org.example.Odd", "something odd");
    if (strcmp(mode, "garbage") == 0)
        return sd_bus_reply_method_return(m, "sut", "?", 1, (uint64_t)2);
    if (strcmp(mode, "die") == 0)
        _exit(1);
    if (strcmp(mode, "silent") == 0)
        return 1;
    if (strcmp(mode, "slow") == 0)
        sleep(2);
    if (strcmp(mode, "later") == 0)
        sleep(4);
    return sd_bus_reply_method_return(m, NULL);
}

static const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("MigrateBegin", "say", NULL, on_call, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("StartedBegin", "say", NULL, on_call, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Released", "say", NULL, on_call, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

int main(int argc, char *argv[])
{
    sd_bus *bus = NULL;

    if (argc != 3)
        return EXIT_FAILURE;
    mode = argv[2];

    if (sd_bus_new(&bus) < 0 || sd_bus_set_address(bus, argv[1]) < 0 ||
        sd_bus_set_bus_client(bus, 1) < 0 || sd_bus_start(bus) < 0)
        return EXIT_FAILURE;
    if (strcmp(mode, "nothing") != 0 &&
        sd_bus_add_object_vtable(bus, NULL, "/org/portferry1", "org.portferry1.Manager", vtable,
                                 NULL) < 0)
        return EXIT_FAILURE;
    if (sd_bus_request_name(bus, "org.portferry1", 0) < 0)
        return EXIT_FAILURE;
    puts("ready");
    fflush(stdout);

    for (;;) {
        int r = sd_bus_process(bus, NULL);

        if (r < 0)
            return EXIT_FAILURE;
        if (r == 0 && sd_bus_wait(bus, UINT64_MAX) < 0)
            return EXIT_FAILURE;
    }
}
