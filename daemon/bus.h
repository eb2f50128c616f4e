/* SPDX-License-Identifier: LGPL-2.1-or-later */

#pragma once

#include <glib.h>
#include <systemd/sd-event.h>

#include "view.h"

/*
 * The D-Bus interface org.portferry1 (data/org.portferry1.xml) by sd-bus, in the main loop.  The
 * adapter only translates: it shows the manager's views, and hands method calls to the manager,
 * which replies when it is done.  Nothing here waits: even the caller's credentials are asked for
 * asynchronously, because the bus itself may be stopped, and so may polkit (polkit.h), which
 * decides about the calls of others than root.
 *
 * A bus that goes away is connected to again, after 0.2 s at first and 5 s at most; everything
 * shown is put back there.
 */

#define PF_BUS_NAME "org.portferry1"

typedef struct PfBus PfBus;

/*
 * A method call that awaits its reply.  It is the receiver's until pf_bus_call_reply(),
 * pf_bus_call_fail() or pf_bus_call_drop(), one of which must be called exactly once, also when the
 * caller has left or the bus is gone (then it only frees the call).
 */
typedef struct PfBusCall PfBusCall;

/* The caller has left the bus, or the bus is gone: nobody waits for the reply any longer. */
typedef void (*PfBusCallGone)(PfBusCall *call, gpointer userdata);

typedef struct {
    /* The name is ours: the hook can reach us.  Called again after each reconnection. */
    void (*acquired)(gpointer userdata);

    /* The bus is gone.  All calls that were pending have been reported gone before. */
    void (*lost)(const char *why, gpointer userdata);

    /* The name can't be had, for good: report it (PF_MESSAGE_ANOTHER_DAEMON) and end.
     * PF_ERROR_BUSY: another portferryd has it.  PF_ERROR_DENIED: the bus policy forbids it. */
    void (*fatal)(const GError *error, gpointer userdata);

    /* The hook's calls, from root or the daemon's own user.  'xml' is what libvirt gave to the
     * hook, unchecked; take a reference to keep it. */
    void (*migrate_begin)(PfBusCall *call, const char *domain, GBytes *xml, gpointer userdata);
    void (*started_begin)(PfBusCall *call, const char *domain, GBytes *xml, gpointer userdata);

    /* libvirt has released the domain's resources.  It is acknowledged already. */
    void (*released)(const char *domain, GBytes *xml, gpointer userdata);

    /* The operator's calls, from root, the daemon's own user, or whom polkit allows it.  The first
     * four and the last are about the handover 'id', which may be gone meanwhile. */
    void (*activate)(PfBusCall *call, const char *id, gpointer userdata);
    void (*rollback)(PfBusCall *call, const char *id, gpointer userdata);
    void (*hold)(PfBusCall *call, const char *id, gpointer userdata);
    void (*release)(PfBusCall *call, const char *id, gpointer userdata);
    /* 'ports' is NULL-terminated.  Nothing has been checked.  Before it replies, the receiver says
     * by pf_bus_call_set_handover() what has begun. */
    void (*preplug)(PfBusCall *call, const char *uuid, const char *const *ports, const char *source,
                    gpointer userdata);
    /* Before it replies, the receiver may name keys by pf_bus_call_set_strings(). */
    void (*reload)(PfBusCall *call, gpointer userdata);
    void (*forget)(PfBusCall *call, const char *id, gpointer userdata);
} PfBusOps;

/*
 * 'address' is a D-Bus address; NULL means DBUS_SYSTEM_BUS_ADDRESS, or else the system bus.
 * 'view' must outlive the bus.  'ops' is not copied; every function must be set, and none is called
 * before pf_bus_start() has returned.  Free with pf_bus_free().
 */
PfBus *pf_bus_new(sd_event *event, const char *address, const PfManagerView *view,
                  const PfBusOps *ops, gpointer userdata);

/* Connects, and stays connected.  A bus that isn't there yet is no error. */
void pf_bus_start(PfBus *bus);

/* Closes the connection.  Calls that are still pending are not reported, but may be replied to. */
void pf_bus_free(PfBus *bus);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfBus, pf_bus_free)

void pf_bus_manager_changed(PfBus *bus, PfManagerChange what);

/* Shows a handover.  'view' must stay where it is until pf_bus_handover_removed(). */
void pf_bus_handover_added(PfBus *bus, const PfHandoverView *view);

/*
 * Announces what has changed in 'view'.  Call it for each change of phase: PhaseChanged carries the
 * phase that was announced last, and the time of the last element of 'phases'.
 */
void pf_bus_handover_changed(PfBus *bus, const PfHandoverView *view, PfHandoverChange what);
void pf_bus_handover_removed(PfBus *bus, const PfHandoverView *view);

/* What the reply to a call carries if it succeeds: the handover 'id', or some strings
 * (NULL-terminated).  Copied. */
void pf_bus_call_set_handover(PfBusCall *call, const char *id);
void pf_bus_call_set_strings(PfBusCall *call, const char *const *strings);

/* Ends a call with success. */
void pf_bus_call_reply(PfBusCall *call);

/* Ends a call with 'error', which keeps belonging to the caller.  PF_ERROR codes become
 * org.portferry1.Error.* (src/error.h), everything else org.portferry1.Error.Failed. */
void pf_bus_call_fail(PfBusCall *call, const GError *error);

/* Ends a call without an answer, because this process ends: the caller learns of it from the bus,
 * and may ask the next one. */
void pf_bus_call_drop(PfBusCall *call);

/* Asks to be told when nobody waits any longer; NULL to stop.  At most one function a call. */
void pf_bus_call_set_gone(PfBusCall *call, PfBusCallGone gone, gpointer userdata);

gboolean pf_bus_call_is_gone(const PfBusCall *call);
