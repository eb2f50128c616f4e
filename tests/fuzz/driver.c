/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Feeds the files of a folder to a fuzz target: PROGRAM FOLDER */

#include "fuzz.h"

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GDir) dir = argc == 2 ? g_dir_open(argv[1], 0, &error) : NULL;
    const char *name;
    guint n = 0;

    if (!dir) {
        g_printerr("%s\n", error ? error->message : "no folder is named");
        return 2;
    }
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(argv[1], name, NULL);
        g_autofree char *text = NULL;
        g_autofree void *exact = NULL;
        gsize size;

        g_print("# %s\n", name);
        if (!g_file_get_contents(path, &text, &size, &error)) {
            g_printerr("%s\n", error->message);
            return 2;
        }
        exact = g_memdup2(text, size); /* without a NUL, so that reading beyond it shows */
        LLVMFuzzerTestOneInput(exact, size);
        n++;
    }
    g_print("%s 1 - %u inputs\n1..1\n", n > 0 ? "ok" : "not ok", n);
    return n > 0 ? 0 : 1;
}
