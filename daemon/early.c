/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "early.h"

#include <syslog.h>

#include "error.h"
#include "log.h"
#include "message-ids.h"

struct PfEarly {
    GPtrArray *guests; /* of Guest */
};

typedef struct {
    PfEarly *early;
    PfBusCall *call; /* NULL once it is answered or handed on */
    char *name;
    char *uuid;
    PfDomainPolicy policy;
    gint64 timeout;
    PfPolicy otherwise;
    guint deadline_id;
} Guest;

static void guest_free(gpointer data)
{
    Guest *guest = data;

    g_clear_handle_id(&guest->deadline_id, g_source_remove);
    if (guest->call) {
        pf_bus_call_drop(guest->call);
    }
    g_free(guest->name);
    g_free(guest->uuid);
    pf_domain_policy_clear(&guest->policy);
    g_free(guest);
}

static PfBusCall *take_call(Guest *guest)
{
    PfBusCall *call = g_steal_pointer(&guest->call);

    pf_bus_call_set_gone(call, NULL, NULL);
    return call;
}

static void on_gone(PfBusCall *call G_GNUC_UNUSED, gpointer data)
{
    Guest *guest = data;

    g_ptr_array_remove_fast(guest->early->guests, guest);
}

static gboolean on_deadline(gpointer data)
{
    Guest *guest = data;
    gboolean refuse = guest->otherwise == PF_POLICY_REFUSE;
    PfBusCall *call = take_call(guest);
    g_autoptr(GError) error = NULL;
    const PfLogFields fields = {.message_id = refuse ? PF_MESSAGE_MIGRATION_REFUSED
                                                     : PF_MESSAGE_NOT_READY_IN_TIME,
                                .domain = guest->name,
                                .domain_uuid = guest->uuid};

    guest->deadline_id = 0;
    pf_error_set(&error, PF_ERROR_UNREACHABLE, guest->name, NULL,
                 "portferryd has been started anew, and in %.1f s it has not learnt from OVN's "
                 "northbound database whether it expects the domain",
                 (double)guest->timeout / G_USEC_PER_SEC);
    pf_log(LOG_WARNING, &fields, "%s: %s",
           refuse ? "migration refused" : "migration goes on without portferry", error->message);
    if (refuse) {
        pf_bus_call_fail(call, error);
    } else {
        pf_bus_call_reply(call);
    }
    g_ptr_array_remove_fast(guest->early->guests, guest);
    return G_SOURCE_REMOVE;
}

PfEarly *pf_early_new(void)
{
    PfEarly *early = g_new0(PfEarly, 1);

    early->guests = g_ptr_array_new_with_free_func(guest_free);
    return early;
}

void pf_early_free(PfEarly *early)
{
    if (!early) {
        return;
    }
    g_ptr_array_unref(early->guests);
    g_free(early);
}

void pf_early_add(PfEarly *early, PfBusCall *call, const PfDomain *domain, gint64 timeout,
                  PfPolicy otherwise)
{
    Guest *guest = g_new0(Guest, 1);

    guest->early = early;
    guest->call = call;
    guest->name = g_strdup(domain->name);
    guest->uuid = g_strdup(domain->uuid);
    pf_domain_policy_copy(&guest->policy, &domain->policy);
    guest->timeout = timeout;
    guest->otherwise = otherwise;
    guest->deadline_id = g_timeout_add((guint)(timeout / 1000), on_deadline, guest);
    pf_bus_call_set_gone(call, on_gone, guest);
    g_ptr_array_add(early->guests, guest);
}

void pf_early_hand_on(PfEarly *early, PfEarlyFunc function, gpointer data)
{
    while (early->guests->len > 0) {
        Guest *guest = g_ptr_array_steal_index_fast(early->guests, early->guests->len - 1);

        function(take_call(guest), guest->uuid, &guest->policy, data);
        guest_free(guest);
    }
}
