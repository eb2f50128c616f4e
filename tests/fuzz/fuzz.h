/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Fuzz targets: each feeds what it is given to one reader, and asserts what must be true of every
 * input.  With -Dfuzzers=true (and clang) libFuzzer makes the inputs up; otherwise driver.c reads
 * those of the corpus, so that whatever was found once is tested everywhere.
 */

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An error's text is for people: one line, and not without end. */
static inline void check_error(const GError *error)
{
    g_assert_nonnull(error);
    g_assert_true(pf_text_is_clean(error->message, 4096));
}
