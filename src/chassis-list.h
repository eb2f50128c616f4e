/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* The value of a logical switch port's options:requested-chassis: reading, asking, composing.
 *
 * Read as ovn-northd reads it (northd.c: strtok(",") in ovn_port_update_sbrec_chassis()): entries
 * lie between commas, empty ones don't exist, and nothing is trimmed: "hv1, hv2" has the second
 * entry " hv2", which names no chassis.  An entry is a chassis name or, if no chassis has that
 * name, a hostname.  The first entry *that names a chassis* is the main one; those that name none
 * are skipped, which only northd can know.  Pure. */

/* A chassis as the southbound database has it.  Borrowed strings. */
typedef struct {
    const char *name;     /* Chassis.name, the host's external_ids:system-id */
    const char *hostname; /* Chassis.hostname; NULL or "" if there is none */
} PfChassis;

typedef enum {
    PF_CHASSIS_LIST_ABSENT, /* no such option: any chassis may bind the port */
    PF_CHASSIS_LIST_EMPTY,  /* "": the same (lport_can_bind_on_this_chassis()) */
    PF_CHASSIS_LIST_NONE,   /* only commas: no chassis may bind the port */
    PF_CHASSIS_LIST_ONE,    /* a pin */
    PF_CHASSIS_LIST_MANY,   /* a main chassis and additional ones */
} PfChassisListKind;

typedef struct {
    PfChassisListKind kind;
    char **entries; /* NULL-terminated, as written; never NULL itself */
    guint n_entries;
    bool any_padded; /* some entry has white space at an end, so that it names no chassis: the
                      * operator meant another list than the one which is in force */
} PfChassisList;

/* Parses 'value', NULL for an absent option.  Every string is some list, so there are no errors.
 * Free with pf_chassis_list_free(). */
PfChassisList *pf_chassis_list_parse(const char *value);
void pf_chassis_list_free(PfChassisList *list);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfChassisList, pf_chassis_list_free)

/* Whether an entry has white space at its beginning or end. */
bool pf_chassis_entry_is_padded(const char *entry);

/* Whether 'entry' is the name or the hostname of 'chassis'.  Should it be the hostname of this and
 * the name of another chassis, northd takes the other; the functions below which know both chassis
 * of a handover see to that. */
bool pf_chassis_entry_names(const char *entry, const PfChassis *chassis);

/* Whether any entry names 'chassis'. */
bool pf_chassis_list_contains(const PfChassisList *list, const PfChassis *chassis);

/* Whether the list is exactly the one entry that names 'chassis'. */
bool pf_chassis_list_is_one(const PfChassisList *list, const PfChassis *chassis);

/* Whether the list is exactly 'first' and 'second', in this order.  An entry that is the hostname
 * of both names neither for certain, and makes this false. */
bool pf_chassis_list_is_pair(const PfChassisList *list, const PfChassis *first,
                             const PfChassis *second);

/* Composes a list of chassis names, "FIRST" or (second not NULL) "FIRST,SECOND".  Names it can't
 * express, or that no chassis has, are PF_ERROR_INVALID_ARGUMENT, as are two equal ones (northd
 * would make the same chassis main and additional).  Free with g_free(). */
char *pf_chassis_list_compose(const char *first, const char *second, GError **error);

/* Whether 'name' can be a chassis name in a list and a marker: not empty, at most 255 bytes, UTF-8,
 * no control characters, no comma.  PF_ERROR_INVALID_ARGUMENT if not, which calls the name 'what'
 * (such as "destination"). */
bool pf_chassis_name_check(const char *name, const char *what, GError **error);

/* Returns what requested-chassis should be once the guest runs on 'destination' for good, given
 * what it was ('prior', NULL if absent) before the handover from 'source'.  NULL: absent.  Free
 * with g_free().
 *
 * - Absent stays absent, and an empty list stays empty: anyone might bind the port before, and may
 *   now.
 * - A list that doesn't name the source is returned to the letter.  A pin to the destination is
 *   right already.  A pin to a third chassis isn't what held the guest's port where it was (northd
 *   would have released it there), so portferry doesn't know what is meant by it.
 * - Otherwise the list followed the guest, and does so again: the source's entry, by name or by
 *   hostname, becomes the destination's name, at the same place.  The destination stands in the
 *   list once, however often both were there: "src,dst" becomes "dst".  Third chassis keep their
 *   places (somebody mirrors a port, or has a standby); so do entries which name nothing that
 *   portferry knows.  The exception is an entry that only white space keeps from naming source or
 *   destination: it never had an effect, and would be nonsense afterwards. */
char *pf_chassis_list_follow(const char *prior, const PfChassis *source,
                             const PfChassis *destination);
