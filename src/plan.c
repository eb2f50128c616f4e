/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan.h"

#include "error.h"
#include "text.h"

/* Keys of a logical switch port's options, as ovn-nb(5) has them. */
#define REQUESTED_CHASSIS "requested-chassis"
#define ACTIVATION_STRATEGY "activation-strategy"

PfVerdict pf_plan_decide(PfWrite write, PfRole role, PfListKind kind, gboolean resumed,
                         gboolean overridden)
{
    gboolean both = kind == PF_LIST_BOTH || kind == PF_LIST_TURNED;

    switch (write) {
    case PF_WRITE_MARK:
        if (both) {
            return resumed ? PF_VERDICT_NOTHING : PF_VERDICT_CHANGE;
        }
        return kind == PF_LIST_DST ? PF_VERDICT_NOTHING : PF_VERDICT_CONFLICT;

    case PF_WRITE_TURN:
        if (kind == PF_LIST_BOTH) {
            return PF_VERDICT_CHANGE;
        }
        return kind == PF_LIST_TURNED || kind == PF_LIST_DST ? PF_VERDICT_NOTHING
                                                             : PF_VERDICT_CONFLICT;

    case PF_WRITE_TURN_BACK:
        if (kind == PF_LIST_TURNED && !resumed) {
            return PF_VERDICT_CHANGE;
        }
        return kind == PF_LIST_BOTH ? PF_VERDICT_NOTHING : PF_VERDICT_CONFLICT;

    case PF_WRITE_COLLAPSE:
        if (both || (kind == PF_LIST_SRC && overridden)) {
            return PF_VERDICT_CHANGE;
        }
        return kind == PF_LIST_DST ? PF_VERDICT_NOTHING : PF_VERDICT_CONFLICT;

    case PF_WRITE_ROLL_BACK:
        if (kind == PF_LIST_SRC) {
            return PF_VERDICT_NOTHING;
        }
        if (kind == PF_LIST_FOREIGN) {
            return PF_VERDICT_CONFLICT;
        }
        /* Where the guest runs is said first by the destination's mark or by its list: only the
         * destination itself takes that back. */
        if (role == PF_ROLE_SOURCE && !overridden && (resumed || kind == PF_LIST_DST)) {
            return PF_VERDICT_CONFLICT;
        }
        return PF_VERDICT_CHANGE;

    case PF_WRITE_FOLLOW:
        if (kind == PF_LIST_DST) {
            return PF_VERDICT_CHANGE;
        }
        return kind == PF_LIST_SRC ? PF_VERDICT_CONFLICT : PF_VERDICT_MARKER_ONLY;

    case PF_WRITE_PUT_BACK:
        if (both) {
            return PF_VERDICT_CONFLICT; /* must go through the source alone, or a flag stays */
        }
        return kind == PF_LIST_SRC ? PF_VERDICT_CHANGE : PF_VERDICT_MARKER_ONLY;

    case PF_WRITE_TWICE:
        if (role == PF_ROLE_DESTINATION) {
            return kind == PF_LIST_SRC ? PF_VERDICT_CHANGE : PF_VERDICT_CONFLICT;
        }
        return kind == PF_LIST_DST || (both && resumed) ? PF_VERDICT_CHANGE : PF_VERDICT_CONFLICT;

    case PF_N_WRITES:
        break;
    }
    g_return_val_if_reached(PF_VERDICT_CONFLICT);
}

static void change_clear(gpointer data)
{
    PfChange *change = data;
    g_free(change->key);
    g_free(change->value);
}

static GArray *changes_new(void)
{
    GArray *changes = g_array_new(FALSE, FALSE, sizeof(PfChange));
    g_array_set_clear_func(changes, change_clear);
    return changes;
}

static void add_change(GArray *changes, gboolean external_id, const char *key, const char *value)
{
    PfChange change = {external_id, g_strdup(key), g_strdup(value)};
    g_array_append_val(changes, change);
}

static void set_option(GArray *changes, const PfRow *row, const char *key, const char *value)
{
    if (value || g_hash_table_contains(row->options, key)) {
        add_change(changes, FALSE, key, value);
    }
}

static void take_marker_away(GArray *changes, const PfRow *row)
{
    GHashTableIter iter;
    gpointer key;

    /* By prefix, not by list: a later version may have added keys. */
    g_hash_table_iter_init(&iter, row->external_ids);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        if (pf_marker_is_key(key)) {
            add_change(changes, TRUE, key, NULL);
        }
    }
}

/* A new decision: who is on its losing side now will say so again. */
static void forget_twice(GArray *changes, const PfRow *row)
{
    if (g_hash_table_contains(row->external_ids, PF_MARKER_TWICE)) {
        add_change(changes, TRUE, PF_MARKER_TWICE, NULL);
    }
}

PfListKind pf_plan_kind(const PfRow *row, const PfEnds *ends)
{
    g_autoptr(PfChassisList) list =
        pf_chassis_list_parse(g_hash_table_lookup(row->options, REQUESTED_CHASSIS));

    if (pf_chassis_list_is_pair(list, &ends->source, &ends->destination)) {
        return PF_LIST_BOTH;
    }
    if (pf_chassis_list_is_pair(list, &ends->destination, &ends->source)) {
        return PF_LIST_TURNED;
    }
    if (pf_chassis_list_is_one(list, &ends->source)) {
        return PF_LIST_SRC;
    }
    if (pf_chassis_list_is_one(list, &ends->destination)) {
        return PF_LIST_DST;
    }
    return PF_LIST_FOREIGN;
}

char *pf_plan_list(PfListKind kind, const PfEnds *ends)
{
    const char *source = ends->source.name, *destination = ends->destination.name;

    switch (kind) {
    case PF_LIST_BOTH:
        return g_strjoin(",", source, destination, NULL);
    case PF_LIST_TURNED:
        return g_strjoin(",", destination, source, NULL);
    case PF_LIST_SRC:
        return g_strdup(source);
    case PF_LIST_DST:
        return g_strdup(destination);
    case PF_LIST_FOREIGN:
    case PF_N_LISTS:
        break;
    }
    return NULL;
}

gboolean pf_plan_hastens(guint goals, PfListKind from, PfListKind to)
{
    switch (to) {
    case PF_LIST_TURNED:
        return (goals & PF_GOAL_TURN) && from == PF_LIST_BOTH;
    case PF_LIST_BOTH:
        return (goals & PF_GOAL_TURN_BACK) && from == PF_LIST_TURNED;
    case PF_LIST_SRC:
        return (goals & PF_GOAL_ROLL_BACK) && from == PF_LIST_TURNED;
    case PF_LIST_DST: /* the destination has them already */
    case PF_LIST_FOREIGN:
    case PF_N_LISTS:
        break;
    }
    return FALSE;
}

gboolean pf_plan_is_marked(const PfRow *row, const char *id)
{
    const char *marked = g_hash_table_lookup(row->external_ids, PF_MARKER_HANDOVER);
    return marked && g_str_equal(marked, id);
}

GArray *pf_plan_preplug(const PfRow *row, const PfMarker *marker, const char *strategy, gint64 now,
                        GError **error)
{
    const char *other = g_hash_table_lookup(row->external_ids, PF_MARKER_HANDOVER);
    if (other) {
        const char *to = g_hash_table_lookup(row->external_ids, PF_MARKER_DESTINATION);
        g_autofree char *safe_other = pf_printable(other);
        g_autofree char *safe_to = pf_printable(to);
        g_set_error(error, PF_ERROR, PF_ERROR_BUSY,
                    "it carries the marker of handover %s to chassis %s", safe_other, safe_to);
        return NULL;
    }

    g_autofree char *list = pf_chassis_list_compose(marker->source, marker->destination, error);
    if (!list) {
        return NULL;
    }
    PfMarker with_prior = *marker;
    with_prior.requested_chassis = g_hash_table_lookup(row->options, REQUESTED_CHASSIS);
    with_prior.activation_strategy = g_hash_table_lookup(row->options, ACTIVATION_STRATEGY);
    g_autoptr(GHashTable) keys = pf_marker_encode(&with_prior, now, error);
    if (!keys) {
        return NULL;
    }

    GArray *changes = changes_new();
    GHashTableIter iter;
    gpointer key, value;
    take_marker_away(changes, row); /* remains of a marker that was half removed */
    g_hash_table_iter_init(&iter, keys);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        add_change(changes, TRUE, key, value);
    }
    set_option(changes, row, REQUESTED_CHASSIS, list);
    set_option(changes, row, ACTIVATION_STRATEGY, strategy);
    return changes;
}

PfVerdict pf_plan_write(PfWrite write, PfRole role, const PfRow *row, const PfMarker *marker,
                        const PfEnds *ends, gboolean overridden, gint64 now, GArray **ret_changes)
{
    PfVerdict verdict =
        pf_plan_decide(write, role, pf_plan_kind(row, ends), marker->resumed != 0, overridden);
    g_autoptr(GArray) changes = changes_new();

    *ret_changes = NULL;
    if (verdict == PF_VERDICT_MARKER_ONLY) {
        take_marker_away(changes, row);
        *ret_changes = g_steal_pointer(&changes);
        return verdict;
    }
    if (verdict != PF_VERDICT_CHANGE) {
        return verdict;
    }

    switch (write) {
    case PF_WRITE_MARK: {
        g_autofree char *when = g_strdup_printf("%" G_GINT64_FORMAT, now);
        add_change(changes, TRUE, PF_MARKER_RESUMED, when);
        break;
    }
    case PF_WRITE_TURN:
    case PF_WRITE_TURN_BACK: {
        g_autofree char *list =
            pf_plan_list(write == PF_WRITE_TURN ? PF_LIST_TURNED : PF_LIST_BOTH, ends);
        set_option(changes, row, REQUESTED_CHASSIS, list);
        break;
    }
    case PF_WRITE_COLLAPSE:
        set_option(changes, row, REQUESTED_CHASSIS, ends->destination.name);
        /* In the same transaction, or OVN >= 24.03 blocks the destination for a round trip. */
        set_option(changes, row, ACTIVATION_STRATEGY, NULL);
        forget_twice(changes, row);
        break;
    case PF_WRITE_ROLL_BACK:
        set_option(changes, row, REQUESTED_CHASSIS, ends->source.name);
        set_option(changes, row, ACTIVATION_STRATEGY, NULL);
        if (marker->resumed) {
            add_change(changes, TRUE, PF_MARKER_RESUMED, NULL);
        }
        forget_twice(changes, row);
        break;
    case PF_WRITE_FOLLOW: {
        g_autofree char *list =
            pf_chassis_list_follow(marker->requested_chassis, &ends->source, &ends->destination);
        set_option(changes, row, REQUESTED_CHASSIS, list);
        set_option(changes, row, ACTIVATION_STRATEGY, marker->activation_strategy);
        take_marker_away(changes, row);
        break;
    }
    case PF_WRITE_PUT_BACK:
        set_option(changes, row, REQUESTED_CHASSIS, marker->requested_chassis);
        set_option(changes, row, ACTIVATION_STRATEGY, marker->activation_strategy);
        take_marker_away(changes, row);
        break;
    case PF_WRITE_TWICE:
        add_change(changes, TRUE, PF_MARKER_TWICE, pf_role_name(role));
        break;
    case PF_N_WRITES:
        g_return_val_if_reached(PF_VERDICT_CONFLICT);
    }
    *ret_changes = g_steal_pointer(&changes);
    return verdict;
}
