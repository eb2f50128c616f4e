/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "runtime.h"

#include <errno.h>
#include <glib/gstdio.h>

#include "error.h"

gboolean pf_runtime_prepare(GError **error)
{
    const char *name;

    if (g_mkdir_with_parents(PF_RUNTIME_INCOMING_DIR, 0755) < 0) {
        g_set_error(error, PF_ERROR, PF_ERROR_FAILED, "can't make the folder %s: %s",
                    PF_RUNTIME_INCOMING_DIR, g_strerror(errno));
        return FALSE;
    }
    g_autoptr(GDir) dir = g_dir_open(PF_RUNTIME_INCOMING_DIR, 0, error);
    if (!dir) {
        return FALSE;
    }
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(PF_RUNTIME_INCOMING_DIR, name, NULL);
        if (g_unlink(path) < 0) {
            g_set_error(error, PF_ERROR, PF_ERROR_FAILED, "can't remove %s: %s", path,
                        g_strerror(errno));
            return FALSE;
        }
    }
    return TRUE;
}

void pf_runtime_set_incoming(const char *uuid, const PfIncoming *incoming)
{
    g_autofree char *path = g_build_filename(PF_RUNTIME_INCOMING_DIR, uuid, NULL);
    g_autoptr(GError) error = NULL;

    if (!incoming) {
        if (g_unlink(path) < 0 && errno != ENOENT) {
            g_warning("can't remove %s: %s", path, g_strerror(errno));
        }
        return;
    }
    g_autofree char *text =
        g_strdup_printf("%" G_GINT64_FORMAT " %" G_GINT64_FORMAT " %s\n", incoming->limit,
                        incoming->until, pf_policy_name(incoming->otherwise));
    /* By a rename, so that the hook sees the old or the new one. */
    if (!g_file_set_contents(path, text, -1, &error)) {
        g_warning("%s: libvirt will not wait for the network of domain %s", error->message, uuid);
    }
}

/* Takes digits and the blank after them. */
static gboolean take_number(const char **at, const char *end, gint64 *ret)
{
    const char *start = *at;
    gint64 value = 0;

    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
        if (value > (G_MAXINT64 - 9) / 10) {
            return FALSE;
        }
        value = value * 10 + (**at - '0');
    }
    *ret = value;
    return *at > start && *at < end && *(*at)++ == ' ';
}

static gboolean is_rest(const char *at, const char *end, const char *word)
{
    while (at < end && *word && *at == *word) {
        at++;
        word++;
    }
    return !*word && end - at == 1 && *at == '\n';
}

gboolean pf_incoming_parse(const char *text, gsize size, PfIncoming *incoming)
{
    const char *at = text, *end = text + size;

    if (!take_number(&at, end, &incoming->limit) || !take_number(&at, end, &incoming->until)) {
        return FALSE;
    }
    if (is_rest(at, end, "proceed")) {
        incoming->otherwise = PF_POLICY_PROCEED;
    } else if (is_rest(at, end, "refuse")) {
        incoming->otherwise = PF_POLICY_REFUSE;
    } else {
        return FALSE;
    }
    return TRUE;
}
