/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints every configuration key and its default, a line each, for the tests of what is written. */

#include <stdio.h>

#include "configuration.h"

int main(void)
{
    gsize n;
    const PfConfigKey *keys = pf_config_keys(&n);

    for (gsize i = 0; i < n; i++) {
        printf("%s %s\n", keys[i].name, keys[i].dflt);
    }
    return 0;
}
