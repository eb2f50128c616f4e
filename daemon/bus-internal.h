/* SPDX-License-Identifier: LGPL-2.1-or-later */

#pragma once

/* Shared by bus.c and bus-handover.c alone. */

#include <systemd/sd-bus.h>

#include "bus.h"

#define PF_BUS_PATH "/org/portferry1"
#define PF_BUS_HANDOVER_PREFIX "/org/portferry1/handover"
#define PF_BUS_MANAGER_INTERFACE "org.portferry1.Manager"
#define PF_BUS_HANDOVER_INTERFACE "org.portferry1.Handover"

typedef enum {
    PF_BUS_CALL_MIGRATE_BEGIN,
    PF_BUS_CALL_STARTED_BEGIN,
    PF_BUS_CALL_RELEASED,
    PF_BUS_CALL_ACTIVATE,
    PF_BUS_CALL_ROLLBACK,
    PF_BUS_CALL_HOLD,
    PF_BUS_CALL_RELEASE,
    PF_BUS_CALL_PREPLUG,
    PF_BUS_CALL_RELOAD,
    PF_BUS_CALL_FORGET,
    PF_BUS_N_CALLS,
} PfBusCallKind;

/* A handover as it is shown. */
typedef struct {
    PfBus *bus;
    const PfHandoverView *view;
    char *path;
    char *phase;       /* as announced last */
    sd_bus_slot *slot; /* NULL while there is no bus */
} PfBusHandover;

struct PfBus {
    sd_event *event;
    char *address;
    const PfManagerView *view;
    const PfBusOps *ops;
    gpointer userdata;

    sd_bus *bus; /* NULL between two connections */
    gboolean acquired;
    gboolean loss_logged;
    guint attempts;     /* since the name was last acquired */
    guint idle_id;      /* drops a dead connection */
    guint retry_id;     /* makes the next one */
    char *why;          /* what ended the last one */
    GPtrArray *records; /* PfBusHandover */
    GPtrArray *calls;   /* PfBusCall that are neither replied to nor gone; not owned */
};

/* Takes over the method call 'm': checks who sent it, then hands it on.  'id' is the handover's. */
int pf_bus_call_begin(PfBus *bus, sd_bus_message *m, PfBusCallKind kind, const char *id);

/* The view of the handover 'id', or NULL. */
const PfHandoverView *pf_bus_find_handover(const PfBus *bus, const char *id);

/* TRUE while messages can be sent. */
gboolean pf_bus_is_open(const PfBus *bus);

/* Puts 'record' on the present connection; and off it again. */
void pf_bus_handover_attach(PfBusHandover *record);
void pf_bus_handover_detach(PfBusHandover *record);
void pf_bus_handover_free(PfBusHandover *record);

/* The object by which systemd sets the log level. */
int pf_bus_add_log_control(sd_bus *bus);

/* Handlers of the manager's vtable that read the records. */
int pf_bus_list_handovers(sd_bus_message *m, void *userdata, sd_bus_error *error);
int pf_bus_list_history(sd_bus_message *m, void *userdata, sd_bus_error *error);
int pf_bus_get_handover_by_domain(sd_bus_message *m, void *userdata, sd_bus_error *error);
