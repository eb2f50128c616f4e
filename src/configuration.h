/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* The configuration file, /etc/portferry/portferry.conf: a GKeyFile with one group, [portferry].
 *
 * (The file's name is not config.h, since that is what Open vSwitch's headers include first.)
 *
 * Reading is strict: a key or group that doesn't exist, or a value that makes no sense, is an
 * error, never silently ignored, because a misspelt deadline would be noticed only in the migration
 * that needs it.  A key given twice has its last value, which is GKeyFile's own rule.  One table
 * describes every key, for the reader as well as for the documentation and the tests. */

#define PF_CONFIG_FILE "/etc/portferry/portferry.conf"
#define PF_CONFIG_GROUP "portferry"

/* The largest file that is read, in bytes. */
#define PF_CONFIG_MAX (1024 * 1024)

typedef enum {
    PF_POLICY_PROCEED, /* let the migration go on, with whatever the network does by itself */
    PF_POLICY_REFUSE,  /* make libvirt refuse the migration: the guest stays where it is */
} PfPolicy;

/* All times in microseconds; strings are never empty, and NULL only where noted. */
typedef struct {
    bool from_file; /* whether there was a file at all */

    PfPolicy on_daemon_missing;
    PfPolicy on_not_ready;

    gint64 preplug_timeout;  /* northbound transaction of the pre-plug */
    gint64 ready_timeout;    /* from the pre-plug to all ports ready, at the gate */
    gint64 hold_timeout;     /* how long an operator may hold the gate, from Hold on */
    gint64 release_timeout;  /* how long the destination waits for the source to let go */
    gint64 teardown_timeout; /* from the activation until the source must be clean */
    gint64 incoming_timeout; /* from the pre-plug until QEMU must exist */
    gint64 cms_timeout;      /* how long a CMS may take to end what it has begun */

    char *activation_strategy;
    char *libvirt_uri;
    char *ovs_db;
    char *ovn_nb; /* NULL: from the host's own Open_vSwitch row; see pf_remote_is_none() */
    char *ovn_sb; /* NULL: likewise */
    char *integration_bridge;
    char *ssl_private_key; /* NULL: none; with ssl_certificate or not at all */
    char *ssl_certificate; /* NULL: none */
    char *ssl_ca_cert;     /* NULL: none */

    gint64 history;     /* how many ended handovers to keep */
    char *metrics_file; /* NULL: none */
} PfConfig;

typedef enum {
    PF_CONFIG_POLICY,   /* "proceed" or "refuse"; a PfPolicy */
    PF_CONFIG_DURATION, /* seconds in the file, with a fraction; a gint64 of microseconds */
    PF_CONFIG_COUNT,    /* a whole number; a gint64 */
    PF_CONFIG_STRING,   /* a char *; empty is an error */
    PF_CONFIG_OPTIONAL, /* a char *; empty is the same as unset, NULL */
} PfConfigType;

typedef struct {
    const char *name;
    PfConfigType type;
    const char *dflt; /* as in the file; "" for an optional string */
    gint64 min, max;  /* of durations (microseconds) and counts, both included */
    gsize offset;     /* in PfConfig */
    /* Says what is wrong with a string, as the end of "'VALUE' ..."; NULL if nothing is.  The
     * pointer may be NULL: everything goes. */
    const char *(*check)(const char *value);
    const char *summary; /* one line, for documentation */
} PfConfigKey;

/* Returns the table, '*n_keys' entries in the order of the documentation.  Static. */
const PfConfigKey *pf_config_keys(gsize *n_keys);

/* Returns the defaults.  Free with pf_config_free(). */
PfConfig *pf_config_new(void);
void pf_config_free(PfConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfConfig, pf_config_free)

/* Reads 'path'.  No such file: the defaults, with 'from_file' false.  Everything else that is wrong
 * is PF_ERROR_BAD_CONFIG with the file, the key, and what would be right: unreadable, not UTF-8,
 * not a key file, an unknown group or key (with the nearest known one), a wrong value. */
PfConfig *pf_config_load(const char *path, GError **error);

/* Sets one key from its textual value, as in the file: for the options of a command line.
 * PF_ERROR_BAD_CONFIG as above, without the file's name; 'config' is then as it was. */
bool pf_config_set(PfConfig *config, const char *name, const char *value, GError **error);

/* Returns the value of 'key' as the file would have it; "" for an unset optional string.  Free with
 * g_free(). */
char *pf_config_get(const PfConfig *config, const PfConfigKey *key);

/* Whether 'remote' (NULL: unset) says that there is no such database for this host, only a CMS who
 * writes it. */
bool pf_remote_is_none(const char *remote);

/* Returns a policy's word, "proceed" or "refuse".  Static. */
const char *pf_policy_name(PfPolicy policy);
