/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The configuration file, and the file by which the hook knows of an expected domain. */

#include <sys/mman.h>
#include <unistd.h>

#include "configuration.h"
#include "error.h"
#include "fuzz.h"
#include "runtime.h"

/* What has been read can be written, and read again. */
static void check_config(const PfConfig *config)
{
    g_autoptr(PfConfig) again = pf_config_new();
    gsize n;
    const PfConfigKey *keys = pf_config_keys(&n);

    for (gsize i = 0; i < n; i++) {
        g_autofree char *value = pf_config_get(config, &keys[i]);
        g_autoptr(GError) error = NULL;

        g_assert_true(pf_config_set(again, keys[i].name, value, &error));
        g_assert_no_error(error);

        g_autofree char *same = pf_config_get(again, &keys[i]);

        g_assert_cmpstr(same, ==, value);
        g_assert_true(pf_text_is_clean(value, PF_CONFIG_MAX));
        if (keys[i].type == PF_CONFIG_DURATION || keys[i].type == PF_CONFIG_COUNT) {
            gint64 number = G_STRUCT_MEMBER(gint64, config, keys[i].offset);

            g_assert_cmpint(number, >=, keys[i].min);
            g_assert_cmpint(number, <=, keys[i].max);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("portferry.conf", MFD_CLOEXEC);
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
    g_autoptr(GError) error = NULL;
    g_autoptr(PfConfig) config = NULL;
    PfIncoming incoming;

    g_assert_cmpint(write(fd, data, size), ==, (gssize)size);
    config = pf_config_load(path, &error);
    close(fd);
    if (config) {
        g_assert_no_error(error);
        check_config(config);
    } else {
        check_error(error);
        g_assert_error(error, PF_ERROR, PF_ERROR_BAD_CONFIG);
    }

    if (pf_incoming_parse((const char *)data, size, &incoming)) {
        g_assert_cmpint(incoming.limit, >=, 0);
        g_assert_cmpint(incoming.until, >=, 0);
        g_assert_true(incoming.otherwise == PF_POLICY_PROCEED ||
                      incoming.otherwise == PF_POLICY_REFUSE);
    }
    return 0;
}
