/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Calls portferryd as the hook does, with a file as the domain XML, and prints the error:
 *
 *     caller BUS-ADDRESS call METHOD DOMAIN FILE
 *
 * Or sends messages that nobody needs:
 *
 *     caller BUS-ADDRESS flood UID KIND RATE SECONDS
 *
 *     read      what everybody may read, of all handovers
 *     refused   an operator's call, for which UID has no right
 *     hook      the hook's call, with a domain that has no ports
 *     nonsense  methods, objects and arguments that don't exist
 *     signal    signals to portferryd
 *
 * Then it doesn't wait for replies, and prints how many messages it has sent.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <systemd/sd-bus.h>

#define NAME "org.portferry1"
#define PATH "/org/portferry1"
#define MANAGER "org.portferry1.Manager"

static const char xml[] = "<domain><name>vm1</name>"
                          "<uuid>5d3c6b4e-1111-4000-8000-000000000001</uuid></domain>";

static int new_message(sd_bus *bus, const char *kind, uint64_t number, sd_bus_message **m)
{
    int r;

    if (strcmp(kind, "read") == 0)
        return sd_bus_message_new_method_call(
            bus, m, NAME, PATH, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects");
    if (strcmp(kind, "refused") == 0) {
        r = sd_bus_message_new_method_call(bus, m, NAME, PATH, MANAGER, "PrePlug");
        return r < 0 ? r : sd_bus_message_append(*m, "sass", "vm1", 1, "port", "");
    }
    if (strcmp(kind, "hook") == 0) {
        r = sd_bus_message_new_method_call(bus, m, NAME, PATH, MANAGER, "MigrateBegin");
        if (r >= 0)
            r = sd_bus_message_append(*m, "s", "vm1");
        return r < 0 ? r : sd_bus_message_append_array(*m, 'y', xml, sizeof(xml) - 1);
    }
    if (strcmp(kind, "signal") == 0) {
        r = sd_bus_message_new_signal(bus, m, PATH, "org.freedesktop.DBus", "NameOwnerChanged");
        if (r >= 0)
            r = sd_bus_message_set_destination(*m, NAME);
        return r < 0 ? r : sd_bus_message_append(*m, "sss", ":1.1", ":1.1", "");
    }
    switch (number % 4) {
    case 0:
        return sd_bus_message_new_method_call(bus, m, NAME, PATH, MANAGER, "NoSuchMethod");
    case 1:
        return sd_bus_message_new_method_call(bus, m, NAME, PATH "/handover/none",
                                              "org.portferry1.Handover", "Activate");
    case 2:
        r = sd_bus_message_new_method_call(bus, m, NAME, PATH, MANAGER, "MigrateBegin");
        return r < 0 ? r : sd_bus_message_append(*m, "ai", 3, 1, 2, 3);
    default:
        r = sd_bus_message_new_method_call(bus, m, NAME, PATH, MANAGER, "PrePlug");
        return r < 0 ? r : sd_bus_message_append(*m, "v", "s", "x");
    }
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static sd_bus *connect_to(const char *address)
{
    sd_bus *bus = NULL;

    if (sd_bus_new(&bus) < 0 || sd_bus_set_address(bus, address) < 0 ||
        sd_bus_set_bus_client(bus, 1) < 0 || sd_bus_start(bus) < 0)
        exit(2);
    return bus;
}

static int flood(sd_bus *bus, const char *kind, double rate, double seconds)
{
    double began = now();
    uint64_t sent = 0;

    while (now() - began < seconds) {
        /* On a machine that is slower than the rate, it ends in time all the same. */
        while ((double)sent < (now() - began) * rate && now() - began < seconds) {
            sd_bus_message *m = NULL;

            if (new_message(bus, kind, sent, &m) < 0)
                return 2;
            sd_bus_message_set_expect_reply(m, 0);
            if (sd_bus_send(bus, m, NULL) < 0 || sd_bus_flush(bus) < 0)
                return 2;
            sd_bus_message_unref(m);
            sent++;
        }
        while (sd_bus_process(bus, NULL) > 0)
            continue;
        usleep(1000);
    }
    printf("%lu\n", (unsigned long)sent);
    return 0;
}

static int call(sd_bus *bus, const char *method, const char *domain, const char *path)
{
    static char text[32 * 1024 * 1024];
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *m = NULL;
    FILE *file = fopen(path, "r");
    size_t size;

    if (file == NULL)
        return 2;
    size = fread(text, 1, sizeof(text), file);
    fclose(file);
    if (sd_bus_message_new_method_call(bus, &m, NAME, PATH, MANAGER, method) < 0 ||
        sd_bus_message_append(m, "s", domain) < 0 ||
        sd_bus_message_append_array(m, 'y', text, size) < 0)
        return 2;
    if (sd_bus_call(bus, m, 0, &error, NULL) < 0) {
        fprintf(stderr, "%s: %s", error.name, error.message);
        return 1;
    }
    return 0;
}

int main(int argc, char *argv[])
{
    if (argc == 7 && strcmp(argv[2], "flood") == 0)
        return setuid((uid_t)atoi(argv[3])) < 0
                   ? 2
                   : flood(connect_to(argv[1]), argv[4], atof(argv[5]), atof(argv[6]));
    if (argc == 6 && strcmp(argv[2], "call") == 0)
        return call(connect_to(argv[1]), argv[3], argv[4], argv[5]);
    return 2;
}
