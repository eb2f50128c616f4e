/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "residence.h"

#include "announce.h"
#include "floating.h"

#define TIMEOUT_MS 5000

/* Whether this host is the main chassis of all ports: it alone serves their floating IPs. */
typedef enum {
    PLACE_UNKNOWN,
    PLACE_AWAY,
    PLACE_HERE,
} Place;

struct PfResidence {
    char **ports;
    PfResidenceEvents events;
    gboolean freed;      /* only answers that are still under way hold it */
    GPtrArray *floating; /* PfFloating; NULL: not known yet */
    gboolean asked;
    Place place;
    char *socket; /* for OpenFlow */
    PfAnnouncement *announcement;
};

static void residence_clear(gpointer data)
{
    PfResidence *r = data;
    g_strfreev(r->ports);
    g_clear_pointer(&r->floating, g_ptr_array_unref);
    g_free(r->socket);
}

static PfResidence *hold(PfResidence *r)
{
    return g_rc_box_acquire(r);
}

static void let_go(PfResidence *r)
{
    g_rc_box_release_full(r, residence_clear);
}

PfResidence *pf_residence_new(const char *const *ports, const PfResidenceEvents *events)
{
    PfResidence *r = g_rc_box_new0(PfResidence);
    r->ports = g_strdupv((char **)ports);
    r->events = *events;
    return r;
}

void pf_residence_free(PfResidence *r)
{
    if (r) {
        r->freed = TRUE;
        g_clear_pointer(&r->announcement, pf_announcement_free);
        let_go(r);
    }
}

gboolean pf_residence_has_floating(const PfResidence *r)
{
    return r->floating && r->floating->len > 0;
}

static void have_floating(const GPtrArray *found, const GError *error, gpointer data)
{
    PfResidence *r = data;

    r->asked = FALSE;
    if (!r->freed && error) {
        r->events.failed("looking for the ports' floating IPs", error, r->events.data);
    } else if (!r->freed) {
        r->floating = pf_floating_copy(found);
        r->events.found(r->events.data);
    }
    let_go(r);
}

static void announcement_failed(const GError *error, gpointer data)
{
    PfResidence *r = data;
    r->events.failed("announcing the floating IPs (ovn-controller does it a second later)", error,
                     r->events.data);
}

static void announce(const GPtrArray *found, const GError *error, gpointer data)
{
    PfResidence *r = data;

    if (!r->freed && error) {
        r->events.failed("looking at the ports' floating IPs again", error, r->events.data);
    } else if (!r->freed && r->place == PLACE_HERE && found->len > 0) {
        g_clear_pointer(&r->announcement, pf_announcement_free);
        r->announcement = pf_announcement_new(r->socket, found, announcement_failed, r);
    }
    let_go(r);
}

void pf_residence_look(PfResidence *r, PfNb *nb, PfSb *sb, PfOvs *ovs, PfRole role,
                       const PfPortFacts *facts)
{
    gboolean known = nb && sb && ovs && r->ports[0], here = TRUE;

    for (guint i = 0; known && r->ports[i]; i++) {
        known = facts[i].sb_marked;
        here = here && (role == PF_ROLE_SOURCE ? facts[i].sb_on_src : facts[i].sb_on_dst);
    }
    if (!known) {
        return;
    }
    if (!r->floating && !r->asked && facts[0].nb_marked) {
        r->asked = TRUE;
        pf_floating_find(nb, sb, (const char *const *)r->ports, TIMEOUT_MS, have_floating, hold(r));
    }
    gboolean has_come = here && r->place == PLACE_AWAY;
    r->place = here ? PLACE_HERE : PLACE_AWAY;
    if (has_come && pf_residence_has_floating(r)) {
        g_free(r->socket);
        r->socket = pf_ovs_get_openflow_socket(ovs);
        /* They may have been given to others since they were found. */
        pf_floating_check(nb, r->floating, TIMEOUT_MS, announce, hold(r));
    }
}
