/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* portferryd and its connections, as it tells them on the bus. */

#include <string.h>

#include "build-config.h"
#include "check.h"
#include "phases.h"
#include "remote.h"
#include "terminal.h"

static bool is_connected(const char *state)
{
    return g_str_equal(state, "connected") || g_str_equal(state, "synced");
}

static void check_connection(PfCheck *check, const char *id, const char *name, const char *state,
                             PfFindingLevel otherwise, const char *advice)
{
    if (is_connected(state)) {
        pf_check_add(check, PF_FINDING_OK, id, NULL, _("portferryd is connected to %s"), name);
    } else {
        g_autofree char *safe = pf_safe(*state ? state : "disconnected");

        pf_check_add(check, otherwise, id, advice, _("portferryd is not connected to %s (%s)"),
                     name, safe);
    }
}

static void check_handovers(PfCheck *check, GPtrArray *handovers)
{
    check->handovers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < handovers->len; i++) {
        const PfRemoteHandover *h = g_ptr_array_index(handovers, i);

        check->hook_called |= g_str_equal(h->role, "destination") && !h->by_hand;
        if (pf_remote_is_ended(h)) {
            continue;
        }
        g_hash_table_add(check->handovers, g_strdup(h->id));
        if (*h->last_error) {
            g_autofree char *domain = pf_domain_label(h);
            g_autofree char *error = pf_safe(h->last_error);
            g_autofree char *id = pf_safe(h->id);
            g_autofree char *advice =
                g_strdup_printf(_("see 'portferry show %s' and journalctl -u portferryd"), id);

            pf_check_add(check, PF_FINDING_WARNING, "daemon.handover", advice,
                         _("the open handover of domain '%s' has trouble: %s"), domain, error);
        }
    }
}

void pf_check_daemon(PfCheck *check)
{
    g_autoptr(PfRemoteManager) manager = NULL;
    g_autoptr(GPtrArray) handovers = NULL;
    g_autofree char *version = NULL;
    PfExit result = pf_remote_get_manager(check->client, &manager);

    if (result == PF_EXIT_DENIED) {
        pf_check_add(check, PF_FINDING_UNKNOWN, "daemon.denied", _("run this as root"),
                     _("portferryd could not be asked: %s"), check->client->failure);
        return;
    }
    if (result != PF_EXIT_OK) {
        pf_check_add(check, PF_FINDING_PROBLEM, "daemon.missing",
                     _("systemctl enable --now portferryd; if it ends, journalctl -u portferryd "
                       "says why"),
                     "%s", check->client->failure);
        return;
    }

    version = pf_safe(manager->version);
    if (g_str_equal(manager->version, PF_VERSION)) {
        pf_check_add(check, PF_FINDING_OK, "daemon.running", NULL, _("portferryd %s runs"),
                     version);
    } else {
        pf_check_add(check, PF_FINDING_WARNING, "daemon.version",
                     _("systemctl restart portferryd; open handovers are taken up again"),
                     _("portferryd %s runs, but %s is installed"), version, PF_VERSION);
    }
    check_connection(check, "daemon.libvirt", "libvirt", manager->libvirt_state, PF_FINDING_PROBLEM,
                     _("check that libvirt's daemon runs, and libvirt-uri in portferry.conf"));
    check_connection(check, "daemon.switch", "Open vSwitch", manager->switch_state,
                     PF_FINDING_PROBLEM,
                     _("check that ovsdb-server runs, and ovs-db in portferry.conf"));
    check_connection(check, "daemon.southbound", _("the southbound database"),
                     manager->southbound_state, PF_FINDING_PROBLEM,
                     _("see what is said of that database below"));
    if (g_str_equal(manager->northbound_state, "none")) {
        pf_check_add(check, PF_FINDING_OK, "daemon.northbound", NULL,
                     _("portferryd writes no northbound database: it leaves that to a CMS"));
    } else {
        check_connection(check, "daemon.northbound", _("the northbound database"),
                         manager->northbound_state, PF_FINDING_WARNING,
                         _("see what is said of that database below"));
    }

    check->nb_connected = is_connected(manager->northbound_state);

    if (pf_remote_get_handovers(check->client, &handovers) == PF_EXIT_OK) {
        check_handovers(check, handovers);
    }
}
