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

void pf_runtime_set_incoming(const char *uuid, gboolean incoming)
{
    g_autofree char *path = g_build_filename(PF_RUNTIME_INCOMING_DIR, uuid, NULL);
    g_autoptr(GError) error = NULL;

    if (!incoming) {
        if (g_unlink(path) < 0 && errno != ENOENT) {
            g_warning("can't remove %s: %s", path, g_strerror(errno));
        }
    } else if (!g_file_set_contents(path, "", 0, &error)) {
        g_warning("%s: libvirt will not wait for the network of domain %s", error->message, uuid);
    }
}
