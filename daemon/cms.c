/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cms.h"

#include "marker.h"
#include "text.h"

struct PfCms {
    GHashTable *settled; /* keys, see key_of() */
};

PfCms *pf_cms_new(void)
{
    PfCms *cms = g_new0(PfCms, 1);
    cms->settled = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return cms;
}

void pf_cms_free(PfCms *cms)
{
    if (cms) {
        g_hash_table_unref(cms->settled);
        g_free(cms);
    }
}

static char *key_of(PfRole role, const char *domain, const char *peer)
{
    return g_strdup_printf("%s %s %s", domain, pf_role_name(role), peer);
}

void pf_cms_settle(PfCms *cms, PfRole role, const char *domain, const char *peer)
{
    g_hash_table_add(cms->settled, key_of(role, domain, peer));
}

static void found_free(gpointer data)
{
    PfCmsFound *found = data;
    g_free(found->domain);
    g_free(found->id);
    pf_sb_chassis_clear(&found->source);
    pf_sb_chassis_clear(&found->destination);
    g_ptr_array_unref(found->ports);
    g_free(found);
}

typedef struct {
    const PfSb *sb;
    const PfOvs *ovs;
    gboolean marked;
    GHashTable *all; /* key -> PfCmsFound */
} Search;

static void on_pair(const char *port, const PfSbChassis *source, const PfSbChassis *destination,
                    const char *id, gpointer data)
{
    const Search *search = data;
    const char *domain = pf_ovs_get_domain(search->ovs, port);

    if (!domain || !pf_uuid_is_canonical(domain) || (id && !search->marked)) {
        return;
    }
    PfRole role = pf_sb_is_self(search->sb, source) ? PF_ROLE_SOURCE : PF_ROLE_DESTINATION;
    g_autofree char *key =
        key_of(role, domain, role == PF_ROLE_SOURCE ? destination->name : source->name);
    PfCmsFound *found = g_hash_table_lookup(search->all, key);
    if (!found) {
        found = g_new0(PfCmsFound, 1);
        found->role = role;
        found->domain = g_strdup(domain);
        found->id = id && pf_handover_id_is_valid(id) ? g_strdup(id) : NULL;
        pf_sb_chassis_copy(&found->source, source);
        pf_sb_chassis_copy(&found->destination, destination);
        found->ports = g_ptr_array_new_with_free_func(g_free);
        g_hash_table_insert(search->all, g_steal_pointer(&key), found);
    }
    g_ptr_array_add(found->ports, g_strdup(port));
}

/* A CMS may write the ports of a guest one after the other.  One that this host has, but has not
 * been bound to the other one, is still to come; one that OVN doesn't know never comes. */
static gboolean is_complete(const PfCmsFound *found, const Search *search)
{
    g_auto(GStrv) ports = pf_ovs_get_domain_ports(search->ovs, found->domain);

    for (char **port = ports; *port; port++) {
        gboolean among = g_ptr_array_find_with_equal_func(found->ports, *port, g_str_equal, NULL);
        if (!among && pf_sb_is_here(search->sb, *port)) {
            return FALSE;
        }
    }
    return TRUE;
}

/* Returns key -> PfCmsFound, or NULL while nothing can be known. */
static GHashTable *find_all(const PfSb *sb, const PfOvs *ovs, gboolean marked)
{
    if (!sb || !pf_sb_is_current(sb) || !ovs || pf_ovs_get_state(ovs) != PF_OVSDB_SYNCED) {
        return NULL;
    }
    GHashTable *all = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, found_free);
    Search search = {.sb = sb, .ovs = ovs, .marked = marked, .all = all};
    GHashTableIter iter;
    gpointer value;

    pf_sb_foreach_pair(sb, on_pair, &search);
    g_hash_table_iter_init(&iter, all);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        if (!is_complete(value, &search)) {
            g_hash_table_iter_remove(&iter);
        }
    }
    return all;
}

static gboolean is_absent(gpointer key, gpointer value G_GNUC_UNUSED, gpointer data)
{
    return !g_hash_table_contains(data, key);
}

gboolean pf_cms_search(PfCms *cms, const PfSb *sb, const PfOvs *ovs, gboolean marked,
                       PfCmsTake take, gpointer data)
{
    g_autoptr(GHashTable) all = find_all(sb, ovs, marked);
    GHashTableIter iter;
    gpointer key, value;

    if (!all) {
        return FALSE;
    }
    g_hash_table_foreach_remove(cms->settled, is_absent, all);
    g_hash_table_iter_init(&iter, all);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        if (!g_hash_table_contains(cms->settled, key)) {
            take(value, data);
        }
    }
    return TRUE;
}

gboolean pf_cms_wake(PfCms *cms, const PfSb *sb, const PfOvs *ovs, gboolean marked,
                     const char *domain)
{
    g_autoptr(GHashTable) all = find_all(sb, ovs, marked);
    GHashTableIter iter;
    gpointer key, value;
    gboolean leaving = FALSE;

    if (!all) {
        return FALSE;
    }
    g_hash_table_iter_init(&iter, all);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        const PfCmsFound *found = value;
        if (found->role == PF_ROLE_SOURCE && g_str_equal(found->domain, domain)) {
            g_hash_table_remove(cms->settled, key);
            leaving = TRUE;
        }
    }
    return leaving;
}
