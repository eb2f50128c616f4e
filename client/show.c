/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* portferry status, show and history: what portferryd knows, as it is now. */

#include <stdio.h>
#include <string.h>

#include "phases.h"
#include "remote.h"
#include "terminal.h"

/* A connection as portferryd calls it, for people. */
static void print_connection(const char *name, const char *state, bool last)
{
    PfStyle style = PF_STYLE_BAD;
    g_autofree char *word = NULL;

    if (g_str_equal(state, "connected") || g_str_equal(state, "synced")) {
        word = g_strdup(_("connected"));
        style = PF_STYLE_GOOD;
    } else if (g_str_equal(state, "connecting")) {
        word = g_strdup(_("connecting"));
        style = PF_STYLE_WARN;
    } else if (g_str_equal(state, "none")) {
        word = g_strdup(_("left to a CMS"));
        style = PF_STYLE_PLAIN;
    } else if (g_str_equal(state, "disconnected") || !*state) {
        word = g_strdup(_("not connected"));
    } else {
        word = pf_safe(state);
    }
    printf("%s %s%s%s%s", name, pf_style_on(style), word, pf_style_off(style), last ? "\n" : ", ");
}

static void print_manager(const PfRemoteManager *manager)
{
    g_autofree char *version = pf_safe(manager->version);
    g_autofree char *hostname = pf_safe(manager->hostname);
    g_autofree char *chassis = pf_safe(manager->chassis);

    if (*chassis) {
        printf(_("portferryd %s on %s, chassis %s"), version, hostname, chassis);
    } else {
        printf(_("portferryd %s on %s, chassis not known yet"), version, hostname);
    }
    putchar('\n');
    print_connection("libvirt", manager->libvirt_state, false);
    print_connection(_("northbound"), manager->northbound_state, false);
    print_connection(_("southbound"), manager->southbound_state, false);
    print_connection(_("switch"), manager->switch_state, true);
}

/* What is out of the ordinary about an open handover, in a few words. */
static char *note_of(const PfRemoteHandover *h)
{
    if (*h->last_error) {
        return pf_safe(h->last_error);
    }
    if (h->held) {
        return g_strdup(_("held by an operator"));
    }
    if (!*h->waiting) {
        return g_strdup(h->by_hand ? _("begun by hand") : "");
    }

    g_autofree char *waiting = pf_safe(h->waiting);
    g_autofree char *until = pf_format_time(h->deadline_us, false);

    /* TRANSLATORS: what a handover waits for, in English, and a time */
    return h->deadline_us > 0 ? g_strdup_printf(_("waits for %s (until %s)"), waiting, until)
                              : g_strdup_printf(_("waits for %s"), waiting);
}

static void print_open(GPtrArray *handovers)
{
    const char *const heads[] = {_("HANDOVER"), _("DOMAIN"), _("ROLE"), _("PHASE"), _("FOR"),
                                 _("ROUTE"),    _("PORTS"),  _("NOTE"), NULL};
    g_autoptr(PfTable) table = pf_table_new(heads);
    gint64 now = g_get_real_time();

    for (guint i = 0; i < handovers->len; i++) {
        const PfRemoteHandover *h = g_ptr_array_index(handovers, i);
        gint64 since = h->started_us;

        if (pf_remote_is_ended(h)) {
            continue;
        }
        if (h->phases->len > 0) {
            since = g_array_index(h->phases, PfRemotePhase, h->phases->len - 1).time_us;
        }
        pf_table_add(table, pf_safe(h->id), PF_STYLE_PLAIN);
        pf_table_add(table, pf_domain_label(h), PF_STYLE_BOLD);
        pf_table_add(table, g_strdup(pf_role_word(h->role)), PF_STYLE_PLAIN);
        pf_table_add(table, pf_safe(h->phase), pf_kind_style(pf_phase_kind(h->phase)));
        pf_table_add(table, pf_format_duration(now - since), PF_STYLE_PLAIN);
        pf_table_add(table, pf_route_label(h), PF_STYLE_PLAIN);
        pf_table_add(table, g_strdup_printf("%u", h->ports->len), PF_STYLE_PLAIN);
        pf_table_add(table, note_of(h), *h->last_error ? PF_STYLE_BAD : PF_STYLE_WARN);
    }
    pf_table_print(table);
}

static PfExit run_status(PfClient *client, char **arguments G_GNUC_UNUSED)
{
    g_autoptr(PfRemoteManager) manager = NULL;
    g_autoptr(GPtrArray) handovers = NULL;
    guint n_open = 0;
    PfExit result;

    if ((result = pf_remote_get_manager(client, &manager)) != PF_EXIT_OK ||
        (result = pf_remote_get_handovers(client, &handovers)) != PF_EXIT_OK) {
        return result;
    }
    for (guint i = 0; i < handovers->len; i++) {
        n_open += !pf_remote_is_ended(g_ptr_array_index(handovers, i));
    }

    if (client->json) {
        PfJson *json = pf_remote_manager_to_json(manager);
        PfJson *open = pf_json_array();

        for (guint i = 0; i < handovers->len; i++) {
            const PfRemoteHandover *h = g_ptr_array_index(handovers, i);

            if (!pf_remote_is_ended(h)) {
                pf_json_add(open, pf_remote_handover_to_json(h));
            }
        }
        pf_json_set(json, "handovers", open);
        pf_json_set(json, "ended", pf_json_integer(handovers->len - n_open));
        pf_client_print_json(json);
        return PF_EXIT_OK;
    }

    print_manager(manager);
    putchar('\n');
    if (n_open > 0) {
        print_open(handovers);
    } else {
        guint n_ended = handovers->len;

        printf("%s\n", _("No handover is under way."));
        if (n_ended > 0) {
            printf(ngettext("%u has ended: 'portferry history' lists it.",
                            "%u have ended: 'portferry history' lists them.", n_ended),
                   n_ended);
            putchar('\n');
        }
    }
    return PF_EXIT_OK;
}

const PfCommand pf_command_status = {
    .name = "status",
    .parameters = "",
    .summary = N_("Show portferryd's connections and the handovers under way"),
    .run = run_status,
};

/* show */

static guint label_width;

static void print_field(const char *label, const char *value, PfStyle style)
{
    printf("%s%*s%s%s%s\n", label, (int)(label_width - pf_text_width(label)), "",
           pf_style_on(style), value, pf_style_off(style));
}

static void print_ports(const PfRemoteHandover *h)
{
    const char *const heads[] = {_("PORT"), _("MAC"), _("STATE"), NULL};
    g_autoptr(PfTable) table = pf_table_new(heads);

    for (guint i = 0; i < h->ports->len; i++) {
        const PfRemotePort *port = &g_array_index(h->ports, PfRemotePort, i);

        pf_table_add(table, pf_safe(port->iface_id), PF_STYLE_PLAIN);
        pf_table_add(table, pf_safe(*port->mac ? port->mac : "-"), PF_STYLE_PLAIN);
        pf_table_add(table, pf_safe(port->state), PF_STYLE_PLAIN);
    }
    pf_table_print(table);
}

static void print_phases(const PfRemoteHandover *h)
{
    const char *const heads[] = {_("PHASE"), _("BEGAN"), _("LASTED"), _("WHAT HAPPENS"), NULL};
    g_autoptr(PfTable) table = pf_table_new(heads);
    bool ended = pf_remote_is_ended(h);

    for (guint i = 0; i < h->phases->len; i++) {
        const PfRemotePhase *phase = &g_array_index(h->phases, PfRemotePhase, i);
        const char *explanation = pf_phase_explain(phase->phase, h->role);
        bool last = i + 1 == h->phases->len;
        gint64 end = last ? g_get_real_time() : phase[1].time_us;

        pf_table_add(table, pf_safe(phase->phase), pf_kind_style(pf_phase_kind(phase->phase)));
        pf_table_add(table, pf_format_time(phase->time_us, true), PF_STYLE_PLAIN);
        pf_table_add(table, last && ended ? g_strdup("") : pf_format_duration(end - phase->time_us),
                     PF_STYLE_PLAIN);
        pf_table_add(table, g_strdup(explanation ? explanation : ""), PF_STYLE_DIM);
    }
    pf_table_print(table);
}

static void print_times(const PfRemoteHandover *h)
{
    g_autofree char *started = pf_format_date_time(h->started_us);
    gint64 end = pf_remote_end(h);
    g_autofree char *took = pf_format_duration(end - h->started_us);
    const char *outcome = pf_remote_outcome(h);

    print_field(_("Began"), started, PF_STYLE_PLAIN);
    if (h->by_hand) {
        print_field(_("By hand"),
                    _("'portferry preplug' began it; an operator says where the guest "
                      "runs"),
                    PF_STYLE_PLAIN);
    }
    if (outcome) {
        g_autofree char *ended = pf_format_date_time(end);
        g_autofree char *safe = pf_safe(pf_outcome_word(outcome));
        g_autofree char *text = g_strdup_printf(_("%s, %s after %s"), ended, safe, took);

        print_field(_("Ended"), text, pf_outcome_style(outcome));
    } else {
        g_autofree char *phase = pf_safe(h->phase);
        g_autofree char *text = g_strdup_printf(_("%s, open for %s"), phase, took);

        print_field(_("Phase"), text, pf_kind_style(pf_phase_kind(h->phase)));
        if (h->deadline_us > 0) {
            g_autofree char *deadline = pf_format_time(h->deadline_us, false);

            print_field(_("Deadline"), deadline, PF_STYLE_PLAIN);
        }
        if (*h->waiting) {
            g_autofree char *waiting = pf_safe(h->waiting);

            print_field(_("Waits for"), waiting, PF_STYLE_PLAIN);
        }
        if (h->held) {
            print_field(_("Held"), _("by an operator, until 'portferry release'"), PF_STYLE_WARN);
        }
    }
}

static PfExit run_show(PfClient *client, char **arguments)
{
    g_autoptr(PfRemoteHandover) h = NULL;
    PfExit result = pf_remote_find(client, arguments[0], &h);

    if (result != PF_EXIT_OK) {
        return result;
    }
    if (client->json) {
        pf_client_print_json(pf_remote_handover_to_json(h));
        return PF_EXIT_OK;
    }

    const char *const labels[] = {_("Handover"), _("Domain"),   _("Role"),    _("Route"),
                                  _("Began"),    _("Ended"),    _("Phase"),   _("Waits for"),
                                  _("Held"),     _("Deadline"), _("By hand"), _("Last error")};

    label_width = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(labels); i++) {
        label_width = MAX(label_width, pf_text_width(labels[i]) + 2);
    }

    g_autofree char *id = pf_safe(h->id);
    g_autofree char *name = pf_safe(*h->domain ? h->domain : "?");
    g_autofree char *uuid = pf_safe(h->uuid);
    g_autofree char *domain = g_strdup_printf("%s (%s)", name, uuid);
    g_autofree char *route = pf_route_label(h);

    print_field(_("Handover"), id, PF_STYLE_PLAIN);
    print_field(_("Domain"), domain, PF_STYLE_BOLD);
    print_field(_("Role"), pf_role_word(h->role), PF_STYLE_PLAIN);
    print_field(_("Route"), route, PF_STYLE_PLAIN);
    print_times(h);
    if (*h->last_error) {
        g_autofree char *error = pf_safe(h->last_error);

        print_field(_("Last error"), error, PF_STYLE_BAD);
    }
    if (h->ports->len > 0) {
        putchar('\n');
        print_ports(h);
    }
    if (h->phases->len > 0) {
        putchar('\n');
        print_phases(h);
    }
    return PF_EXIT_OK;
}

const PfCommand pf_command_show = {
    .name = "show",
    .parameters = N_("HANDOVER|DOMAIN"),
    .summary = N_("Show all about one handover"),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_show,
};

/* history */

static int history_limit;

static const GOptionEntry history_options[] = {
    {"limit", 'n', 0, G_OPTION_ARG_INT, &history_limit,
     N_("Show no more than the N youngest (default: all)"), N_("N")},
    {NULL},
};

static PfExit run_history(PfClient *client, char **arguments)
{
    g_autoptr(GPtrArray) handovers = NULL;
    g_autoptr(GPtrArray) ended = g_ptr_array_new();
    const char *domain = arguments[0];
    PfExit result;

    if (history_limit < 0) {
        return pf_client_fail(client, PF_EXIT_USAGE, NULL, NULL, _("--limit must not be negative"));
    }
    result = pf_remote_get_handovers(client, &handovers);
    if (result != PF_EXIT_OK) {
        return result;
    }
    for (guint i = handovers->len; i-- > 0;) {
        PfRemoteHandover *h = g_ptr_array_index(handovers, i);

        if (pf_remote_is_ended(h) &&
            (!domain || g_str_equal(h->domain, domain) ||
             g_ascii_strcasecmp(h->uuid, domain) == 0) &&
            (history_limit == 0 || ended->len < (guint)history_limit)) {
            g_ptr_array_add(ended, h);
        }
    }

    if (client->json) {
        PfJson *json = pf_json_object();
        PfJson *array = pf_json_array();

        for (guint i = 0; i < ended->len; i++) {
            pf_json_add(array, pf_remote_handover_to_json(g_ptr_array_index(ended, i)));
        }
        pf_json_set(json, "handovers", array);
        pf_client_print_json(json);
        return PF_EXIT_OK;
    }
    if (ended->len == 0) {
        printf("%s\n", _("No handover has ended."));
        return PF_EXIT_OK;
    }

    const char *const heads[] = {_("ENDED"), _("HANDOVER"), _("DOMAIN"), _("ROLE"), _("ROUTE"),
                                 _("TOOK"),  _("OUTCOME"),  _("NOTE"),   NULL};
    g_autoptr(PfTable) table = pf_table_new(heads);

    for (guint i = 0; i < ended->len; i++) {
        const PfRemoteHandover *h = g_ptr_array_index(ended, i);
        const char *outcome = pf_remote_outcome(h);
        gint64 end = pf_remote_end(h);

        pf_table_add(table, pf_format_time(end, false), PF_STYLE_PLAIN);
        pf_table_add(table, pf_safe(h->id), PF_STYLE_PLAIN);
        pf_table_add(table, pf_domain_label(h), PF_STYLE_BOLD);
        pf_table_add(table, g_strdup(pf_role_word(h->role)), PF_STYLE_PLAIN);
        pf_table_add(table, pf_route_label(h), PF_STYLE_PLAIN);
        pf_table_add(table, pf_format_duration(end - h->started_us), PF_STYLE_PLAIN);
        pf_table_add(table, pf_safe(pf_outcome_word(outcome)), pf_outcome_style(outcome));
        pf_table_add(table, pf_safe(h->last_error), PF_STYLE_PLAIN);
    }
    pf_table_print(table);
    return PF_EXIT_OK;
}

const PfCommand pf_command_history = {
    .name = "history",
    .parameters = N_("[DOMAIN]"),
    .summary = N_("List the handovers that have ended, the youngest first"),
    .options = history_options,
    .max_arguments = 1,
    .run = run_history,
};
