/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* requested-chassis: three lines, the source, the destination and the list. */

#include <string.h>

#include "chassis-list.h"
#include "error.h"
#include "fuzz.h"

static void check_list(const PfChassisList *list, const char *value)
{
    bool padded = false;

    g_assert_cmpuint(g_strv_length(list->entries), ==, list->n_entries);
    for (guint i = 0; i < list->n_entries; i++) {
        g_assert_true(*list->entries[i]);
        g_assert_null(strchr(list->entries[i], ','));
        g_assert_nonnull(strstr(value, list->entries[i]));
        padded = padded || pf_chassis_entry_is_padded(list->entries[i]);
    }
    g_assert_true(padded == list->any_padded);
    g_assert_true((list->kind == PF_CHASSIS_LIST_ONE) == (list->n_entries == 1));
    g_assert_true((list->kind == PF_CHASSIS_LIST_MANY) == (list->n_entries > 1));
}

/* Where the guest has gone, nothing names its old place any more; and following again changes
 * nothing. */
static void check_followed(const char *value, const PfChassis *source, const PfChassis *destination)
{
    g_autofree char *followed = pf_chassis_list_follow(value, source, destination);
    g_autofree char *twice = pf_chassis_list_follow(followed, source, destination);
    g_autoptr(PfChassisList) list = pf_chassis_list_parse(followed);

    g_assert_nonnull(followed);
    g_assert_cmpstr(twice, ==, followed);
    if (strcmp(followed, value) != 0) {
        g_assert_true(pf_chassis_list_contains(list, destination));
        g_assert_false(pf_chassis_list_contains(list, source));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", 3);

    if (g_strv_length(lines) < 3) {
        return 0;
    }

    const PfChassis source = {.name = lines[0], .hostname = NULL};
    const PfChassis destination = {.name = lines[1], .hostname = NULL};
    g_autoptr(PfChassisList) list = pf_chassis_list_parse(lines[2]);
    g_autoptr(GError) error = NULL;
    g_autofree char *both = pf_chassis_list_compose(source.name, destination.name, &error);

    check_list(list, lines[2]);
    if (!both) {
        check_error(error);
        g_assert_error(error, PF_ERROR, PF_ERROR_INVALID_ARGUMENT);
        return 0;
    }

    g_autoptr(PfChassisList) pair = pf_chassis_list_parse(both);

    g_assert_true(pf_chassis_list_is_pair(pair, &source, &destination));
    g_assert_false(pf_chassis_list_is_pair(pair, &destination, &source));
    g_assert_false(pf_chassis_list_is_one(pair, &source));
    check_list(pair, both);
    check_followed(lines[2], &source, &destination);
    return 0;
}
