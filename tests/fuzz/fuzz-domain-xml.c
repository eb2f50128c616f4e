/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The domain XML: a domain that makes sense, or an error. */

#include <string.h>

#include "domain-xml.h"
#include "error.h"
#include "fuzz.h"

static void check_port(const PfDomainPort *port, GHashTable *seen)
{
    g_assert_true(pf_uuid_is_canonical(port->iface_id));
    g_assert_true(g_hash_table_add(seen, port->iface_id));
    g_assert_nonnull(port->type);
    if (port->mac) {
        g_assert_cmpuint(strlen(port->mac), ==, 17);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(PfDomain) domain = pf_domain_parse(data, size, &error);

    if (!domain) {
        check_error(error);
        g_assert_error(error, PF_ERROR, PF_ERROR_BAD_XML);
        return 0;
    }
    g_assert_no_error(error);
    g_assert_true(*domain->name && g_utf8_validate(domain->name, -1, NULL));
    g_assert_true(pf_uuid_is_canonical(domain->uuid));
    g_assert_cmpuint(domain->ports->len, <=, PF_DOMAIN_PORTS_MAX);
    for (guint i = 0; i < domain->ports->len; i++) {
        check_port(g_ptr_array_index(domain->ports, i), seen);
    }
    g_assert_cmpint(domain->policy.ready_timeout, >=, 0);
    g_assert_true(!domain->policy.activation_strategy || *domain->policy.activation_strategy);
    return 0;
}
