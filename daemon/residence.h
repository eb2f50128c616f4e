/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Where the floating IPs of a handover's ports live: finds out whether there are any, and announces
 * them outside when they have come to this host.
 */

#include <glib.h>

#include "nb.h"
#include "ovs.h"
#include "sb.h"

typedef struct PfResidence PfResidence;

typedef struct {
    void (*found)(gpointer data); /* it is known now whether there are any */
    void (*failed)(const char *what, const GError *error, gpointer data);
    gpointer data;
} PfResidenceEvents;

/* For 'ports' (NULL-terminated, copied).  'events' is copied; they come later, never from within a
 * call, and not after pf_residence_free(). */
PfResidence *pf_residence_new(const char *const *ports, const PfResidenceEvents *events);
void pf_residence_free(PfResidence *residence);

/* Looks at the ports as the southbound database has them: as seen by the daemon in 'role'.  The
 * first time that both databases know the handover it asks for floating IPs; later, whenever this
 * host has become the main chassis of all ports, it announces them. */
void pf_residence_look(PfResidence *residence, PfNb *nb, PfSb *sb, PfOvs *ovs, PfRole role,
                       const PfPortFacts *facts);

/* Whether there are any; FALSE as long as it isn't known. */
gboolean pf_residence_has_floating(const PfResidence *residence);
