/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a goal means for one northbound row as it stands: which keys to change, or that the row
 * forbids it.  Pure.  The caller puts the changes into one transaction for all ports and verifies
 * the columns they were computed from, so that a verdict never outlives the row that it is about.
 */

#include <glib.h>

#include "chassis-list.h"
#include "facts.h"
#include "marker.h"

typedef enum {
    PF_WRITE_MARK,
    PF_WRITE_TURN,
    PF_WRITE_TURN_BACK,
    PF_WRITE_COLLAPSE,
    PF_WRITE_ROLL_BACK,
    PF_WRITE_FOLLOW,
    PF_WRITE_PUT_BACK,
    PF_WRITE_TWICE,
    PF_N_WRITES,
} PfWrite;

typedef enum {
    PF_VERDICT_NOTHING,     /* the row is already so */
    PF_VERDICT_CHANGE,      /* change it */
    PF_VERDICT_MARKER_ONLY, /* a CMS has taken over: take our marker away, nothing else */
    PF_VERDICT_CONFLICT,    /* somebody has decided otherwise: change nothing, look again */
} PfVerdict;

/* Decides about 'write' by the daemon in 'role' on a row that carries the handover's marker, with
 * the list 'kind' and, if 'resumed', the destination's word that the guest runs there.
 * 'overridden': an operator has said where the guest runs, which is stronger than the row. */
PfVerdict pf_plan_decide(PfWrite write, PfRole role, PfListKind kind, gboolean resumed,
                         gboolean overridden);

/* One key of a row's `options` or `external_ids`. */
typedef struct {
    gboolean external_id; /* in external_ids, else in options */
    char *key;            /* owned */
    char *value;          /* owned; NULL: delete the key */
} PfChange;

/* The columns of a row that matter, as the database has them.  Not owned. */
typedef struct {
    GHashTable *options;      /* string to string */
    GHashTable *external_ids; /* string to string */
} PfRow;

/* The two chassis of a handover, and what is known about them beyond the marker. */
typedef struct {
    PfChassis source;
    PfChassis destination;
} PfEnds;

/* What `requested-chassis` of 'row' is, seen from a handover between 'ends'. */
PfListKind pf_plan_kind(const PfRow *row, const PfEnds *ends);

/* `requested-chassis` that is 'kind', as portferry writes it; NULL for FOREIGN.  g_free(). */
char *pf_plan_list(PfListKind kind, const PfEnds *ends);

/* Whether a daemon with these goals (PfGoal) does northd's work southbound, where
 * `requested-chassis` still is 'from' and northbound has become 'to'.  Only what a floating IP
 * waits for; and only what the goals mean, since the copy that shows 'to' may be an old one. */
gboolean pf_plan_hastens(guint goals, PfListKind from, PfListKind to);

/* Whether 'row' carries the marker of handover 'id'. */
gboolean pf_plan_is_marked(const PfRow *row, const char *id);

/* The changes that begin a handover on 'row': both chassis, 'strategy', and 'marker' with the
 * values that the row has now in place of its 'requested_chassis' and 'activation_strategy'.
 * 'now': UTC, microseconds.  Returns an array of PfChange (g_array_unref()), or NULL with
 * PF_ERROR_BUSY when the row carries the marker of another handover, or PF_ERROR_BAD_MARKER or
 * PF_ERROR_INVALID_ARGUMENT when something can't be expressed. */
GArray *pf_plan_preplug(const PfRow *row, const PfMarker *marker, const char *strategy, gint64 now,
                        GError **error);

/* What 'write' means for 'row', which carries 'marker': the changes are stored in '*ret_changes'
 * (g_array_unref()) when the verdict is CHANGE or MARKER_ONLY, else NULL.  'now' as above. */
PfVerdict pf_plan_write(PfWrite write, PfRole role, const PfRow *row, const PfMarker *marker,
                        const PfEnds *ends, gboolean overridden, gint64 now, GArray **ret_changes);
