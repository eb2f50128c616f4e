/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * org.freedesktop.LogControl1 (https://www.freedesktop.org/software/systemd/man/latest/
 * org.freedesktop.LogControl1.html), for "systemctl service-log-level portferryd".
 *
 * Setting is for root: the bus sees to that (org.portferry1.conf).  sd-bus would ask the bus once
 * more, and wait for the answer, hence UNPRIVILEGED.
 */

#include <string.h>
#include <syslog.h>

#include "bus-internal.h"
#include "log.h"

static const char *const level_names[] = {
    "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug",
};

G_STATIC_ASSERT(G_N_ELEMENTS(level_names) == LOG_DEBUG + 1);

static int get_level(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    return sd_bus_message_append(reply, "s", level_names[pf_log_get_max_priority()]);
}

static int set_level(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *value, void *userdata, sd_bus_error *error)
{
    const char *name;
    int r = sd_bus_message_read(value, "s", &name);

    if (r < 0)
        return r;
    for (gsize i = 0; i < G_N_ELEMENTS(level_names); i++) {
        if (strcmp(level_names[i], name) == 0) {
            pf_log_set_max_priority((int)i);
            return 0;
        }
    }
    return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "No such log level");
}

static int get_target(sd_bus *bus, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    return sd_bus_message_append(reply, "s", "journal");
}

static int set_target(sd_bus *bus, const char *path, const char *interface, const char *property,
                      sd_bus_message *value, void *userdata, sd_bus_error *error)
{
    const char *name;
    int r = sd_bus_message_read(value, "s", &name);

    if (r < 0)
        return r;
    if (strcmp(name, "journal") == 0 || strcmp(name, "auto") == 0)
        return 0;
    return sd_bus_error_setf(error, SD_BUS_ERROR_NOT_SUPPORTED,
                             "portferryd logs to the journal, and nowhere else");
}

static int get_identifier(sd_bus *bus, const char *path, const char *interface,
                          const char *property, sd_bus_message *reply, void *userdata,
                          sd_bus_error *error)
{
    return sd_bus_message_append(reply, "s", "portferryd");
}

static const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", get_level, set_level, 0, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_WRITABLE_PROPERTY("LogTarget", "s", get_target, set_target, 0,
                             SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_PROPERTY("SyslogIdentifier", "s", get_identifier, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_VTABLE_END,
};

int pf_bus_add_log_control(sd_bus *bus)
{
    return sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/LogControl1",
                                    "org.freedesktop.LogControl1", vtable, NULL);
}
