/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "chassis-list.h"

#include <string.h>

#include "error.h"
#include "text.h"

#define CHASSIS_NAME_MAX 255

PfChassisList *pf_chassis_list_parse(const char *value)
{
    PfChassisList *list = g_new0(PfChassisList, 1);
    g_autoptr(GPtrArray) entries = g_ptr_array_new();
    g_auto(GStrv) pieces = g_strsplit(value ? value : "", ",", -1);

    for (char **piece = pieces; *piece; piece++) {
        if (**piece) {
            g_ptr_array_add(entries, g_strdup(*piece));
            list->any_padded |= pf_chassis_entry_is_padded(*piece);
        }
    }

    list->n_entries = entries->len;
    g_ptr_array_add(entries, NULL);
    list->entries = (char **)g_ptr_array_steal(entries, NULL);

    if (!value) {
        list->kind = PF_CHASSIS_LIST_ABSENT;
    } else if (!*value) {
        list->kind = PF_CHASSIS_LIST_EMPTY;
    } else if (list->n_entries == 0) {
        list->kind = PF_CHASSIS_LIST_NONE;
    } else if (list->n_entries == 1) {
        list->kind = PF_CHASSIS_LIST_ONE;
    } else {
        list->kind = PF_CHASSIS_LIST_MANY;
    }
    return list;
}

void pf_chassis_list_free(PfChassisList *list)
{
    if (list) {
        g_strfreev(list->entries);
        g_free(list);
    }
}

bool pf_chassis_entry_is_padded(const char *entry)
{
    return *entry && (g_ascii_isspace(entry[0]) || g_ascii_isspace(entry[strlen(entry) - 1]));
}

static bool is_hostname_of(const char *entry, const PfChassis *chassis)
{
    return chassis->hostname && *chassis->hostname && strcmp(entry, chassis->hostname) == 0;
}

bool pf_chassis_entry_names(const char *entry, const PfChassis *chassis)
{
    return strcmp(entry, chassis->name) == 0 || is_hostname_of(entry, chassis);
}

/* Whether 'entry' names 'chassis' for certain, given that 'other' exists as well. */
static bool names_rather_than(const char *entry, const PfChassis *chassis, const PfChassis *other)
{
    if (strcmp(entry, chassis->name) == 0) {
        return true;
    }
    return is_hostname_of(entry, chassis) && !pf_chassis_entry_names(entry, other);
}

bool pf_chassis_list_contains(const PfChassisList *list, const PfChassis *chassis)
{
    for (guint i = 0; i < list->n_entries; i++) {
        if (pf_chassis_entry_names(list->entries[i], chassis)) {
            return true;
        }
    }
    return false;
}

bool pf_chassis_list_is_one(const PfChassisList *list, const PfChassis *chassis)
{
    return list->n_entries == 1 && pf_chassis_entry_names(list->entries[0], chassis);
}

bool pf_chassis_list_is_pair(const PfChassisList *list, const PfChassis *first,
                             const PfChassis *second)
{
    return list->n_entries == 2 && names_rather_than(list->entries[0], first, second) &&
           names_rather_than(list->entries[1], second, first);
}

bool pf_chassis_name_check(const char *name, const char *what, GError **error)
{
    const char *wrong = NULL;

    if (!name || !*name) {
        wrong = "is empty";
    } else if (strchr(name, ',')) {
        wrong = "has a comma, which requested-chassis can't express";
    } else if (strnlen(name, CHASSIS_NAME_MAX + 1) > CHASSIS_NAME_MAX) {
        wrong = "is longer than 255 bytes";
    } else if (!pf_text_is_clean(name, CHASSIS_NAME_MAX)) {
        wrong = "has control characters or isn't UTF-8";
    }
    if (!wrong) {
        return true;
    }

    g_autofree char *safe = pf_printable(name);

    pf_error_set(error, PF_ERROR_INVALID_ARGUMENT, NULL, NULL, "the chassis name '%s' (%s) %s",
                 safe, what, wrong);
    return false;
}

char *pf_chassis_list_compose(const char *first, const char *second, GError **error)
{
    if (!pf_chassis_name_check(first, "main", error) ||
        (second && !pf_chassis_name_check(second, "additional", error))) {
        return NULL;
    }
    if (!second) {
        return g_strdup(first);
    }
    if (strcmp(first, second) == 0) {
        g_autofree char *safe = pf_printable(first);

        pf_error_set(error, PF_ERROR_INVALID_ARGUMENT, NULL, NULL,
                     "the main and the additional chassis are the same, '%s'", safe);
        return NULL;
    }
    return g_strdup_printf("%s,%s", first, second);
}

/* Whether 'entry' is one of the handover's two chassis, no matter which. */
static bool names_either(const char *entry, const PfChassis *source, const PfChassis *destination)
{
    return pf_chassis_entry_names(entry, source) || pf_chassis_entry_names(entry, destination);
}

char *pf_chassis_list_follow(const char *prior, const PfChassis *source,
                             const PfChassis *destination)
{
    if (!prior) {
        return NULL;
    }

    g_autoptr(PfChassisList) list = pf_chassis_list_parse(prior);
    bool names_source = false;

    for (guint i = 0; i < list->n_entries; i++) {
        /* A name comes before a hostname: the source may have the destination's name for its
         * hostname. */
        names_source |= pf_chassis_entry_names(list->entries[i], source) &&
                        strcmp(list->entries[i], destination->name) != 0;
    }
    if (!names_source) {
        return g_strdup(prior);
    }

    g_autoptr(GString) followed = g_string_new(NULL);
    bool placed = false;

    for (guint i = 0; i < list->n_entries; i++) {
        const char *entry = list->entries[i];
        g_autofree char *stripped = g_strstrip(g_strdup(entry));

        if (names_either(entry, source, destination)) {
            if (placed) {
                continue;
            }
            placed = true;
            entry = destination->name;
        } else if (names_either(stripped, source, destination)) {
            continue;
        }
        g_string_append_printf(followed, "%s%s", followed->len ? "," : "", entry);
    }
    return g_strdup(followed->str);
}
