/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "phases.h"

#include <string.h>

static const struct {
    const char *phase;
    PfPhaseKind kind;
    const char *at_destination, *at_source;
} phases[] = {
    {"preplug", PF_KIND_PREPARE, N_("the ports are being bound to this host as well"), NULL},
    {"cms-preplug", PF_KIND_PREPARE,
     N_("waits until the CMS has bound the ports to this host as well"), NULL},
    {"binding", PF_KIND_PREPARE, N_("waits until the flows of every port are installed here"),
     NULL},
    {"ready", PF_KIND_COPY, N_("the network is ready; libvirt copies the guest's memory"), NULL},
    {"watch", PF_KIND_COPY, NULL, N_("a migration has begun; the guest runs here")},
    {"open", PF_KIND_SWITCH, N_("the ports are open here; the guest does not run here yet"),
     N_("the guest stands still; its ports are opened at the destination")},
    {"close", PF_KIND_SWITCH, NULL,
     N_("the guest runs here again; its ports are closed at the destination")},
    {"running", PF_KIND_ACTIVATE,
     N_("the guest runs here; libvirt is about to end it at the source"), NULL},
    {"release", PF_KIND_ACTIVATE, N_("the source is asked to let go of the ports"),
     N_("the guest runs at the destination; this host lets go of the ports")},
    {"orphan", PF_KIND_ACTIVATE, NULL,
     N_("others ended the handover; looks whether the ports must be taken back")},
    {"left", PF_KIND_ACTIVATE, NULL,
     N_("the guest is gone from here; the destination becomes the ports' only chassis")},
    {"activate", PF_KIND_ACTIVATE, N_("this host becomes the ports' only chassis"),
     N_("the destination did not, so this host makes it the ports' only chassis")},
    {"cms-activate", PF_KIND_ACTIVATE,
     N_("the guest runs here; it is the CMS's turn to name this host alone"),
     N_("the guest is gone from here; it is the CMS's turn to name the destination alone")},
    {"active", PF_KIND_CLEAR, N_("this host alone answers for the ports; the source clears up"),
     NULL},
    {"clear", PF_KIND_CLEAR, NULL, N_("what is left of the ports on this host goes")},
    {"finish", PF_KIND_CLEAR, N_("this host ends the handover, since the source did not"),
     N_("the ports' options get back the meaning that they had before")},
    {"rollback", PF_KIND_BACK, N_("the source becomes the ports' only chassis again"),
     N_("this host becomes the ports' only chassis again")},
    {"cms-rollback", PF_KIND_BACK,
     N_("the guest does not come; it is the CMS's turn to name the source alone"),
     N_("the guest stays here; it is the CMS's turn to name this host alone")},
    {"drain", PF_KIND_BACK, N_("waits until libvirt has removed what it plugged in here"),
     N_("waits until the destination has cleared up")},
    {"undo", PF_KIND_BACK, N_("the ports' options are put back as they were"),
     N_("the ports' options are put back as they were")},
    {"done", PF_KIND_ENDED, N_("the ports have followed the guest"),
     N_("the ports have followed the guest")},
    {"undone", PF_KIND_ENDED, N_("the ports are where they were"),
     N_("the ports are where they were")},
    {"unfinished", PF_KIND_ENDED, N_("the ports are on both hosts, where the CMS has left them"),
     N_("the ports are on both hosts, where the CMS has left them")},
};

PfPhaseKind pf_phase_kind(const char *phase)
{
    for (gsize i = 0; i < G_N_ELEMENTS(phases); i++) {
        if (g_str_equal(phases[i].phase, phase)) {
            return phases[i].kind;
        }
    }
    return PF_KIND_UNKNOWN;
}

PfStyle pf_kind_style(PfPhaseKind kind)
{
    static const PfStyle styles[PF_N_KINDS] = {
        [PF_KIND_PREPARE] = PF_STYLE_BLUE,  [PF_KIND_COPY] = PF_STYLE_CYAN,
        [PF_KIND_SWITCH] = PF_STYLE_WARN,   [PF_KIND_ACTIVATE] = PF_STYLE_GOOD,
        [PF_KIND_CLEAR] = PF_STYLE_MAGENTA, [PF_KIND_BACK] = PF_STYLE_BAD,
        [PF_KIND_ENDED] = PF_STYLE_DIM,     [PF_KIND_UNKNOWN] = PF_STYLE_PLAIN,
    };

    return styles[kind];
}

const char *pf_phase_explain(const char *phase, const char *role)
{
    for (gsize i = 0; i < G_N_ELEMENTS(phases); i++) {
        if (g_str_equal(phases[i].phase, phase)) {
            const char *text =
                g_str_equal(role, "source") ? phases[i].at_source : phases[i].at_destination;

            return text ? _(text) : NULL;
        }
    }
    return NULL;
}

const char *pf_role_word(const char *role)
{
    if (g_str_equal(role, "source")) {
        return _("source");
    }
    if (g_str_equal(role, "destination")) {
        return _("destination");
    }
    return role;
}

const char *pf_outcome_word(const char *outcome)
{
    if (g_str_equal(outcome, "done")) {
        return _("done");
    }
    if (g_str_equal(outcome, "undone")) {
        return _("rolled back");
    }
    if (g_str_equal(outcome, "unfinished")) {
        return _("unfinished");
    }
    return outcome;
}

PfStyle pf_outcome_style(const char *outcome)
{
    return g_str_equal(outcome, "done") ? PF_STYLE_GOOD : PF_STYLE_WARN;
}

char *pf_domain_label(const PfRemoteHandover *h)
{
    return pf_safe(*h->domain ? h->domain : h->uuid);
}

char *pf_route_label(const PfRemoteHandover *h)
{
    g_autofree char *source = pf_safe(*h->source ? h->source : "?");
    g_autofree char *destination = pf_safe(*h->destination ? h->destination : "?");

    return g_strdup_printf("%s %s %s", source, pf_glyph("→", "->"), destination);
}
