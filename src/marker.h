/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* The marker: what stands in the external_ids of a port's northbound row while a handover is open,
 * so that any daemon can finish or undo it after a crash.  It is portferry's only journal, written
 * in the same transaction as what it describes.  Here it's put into keys and read back.  Pure. */

#define PF_MARKER_PREFIX "portferry-"

#define PF_MARKER_SOURCE PF_MARKER_PREFIX "source"
#define PF_MARKER_DESTINATION PF_MARKER_PREFIX "destination"
#define PF_MARKER_DOMAIN PF_MARKER_PREFIX "domain"
#define PF_MARKER_HANDOVER PF_MARKER_PREFIX "handover"
#define PF_MARKER_STARTED PF_MARKER_PREFIX "started"
#define PF_MARKER_REQUESTED_CHASSIS PF_MARKER_PREFIX "requested-chassis"
#define PF_MARKER_ACTIVATION_STRATEGY PF_MARKER_PREFIX "activation-strategy"
#define PF_MARKER_RESUMED PF_MARKER_PREFIX "resumed"
#define PF_MARKER_BY_HAND PF_MARKER_PREFIX "by-hand"
/* Whose guest runs though the handover was decided for the other side: "source", "destination". */
#define PF_MARKER_TWICE PF_MARKER_PREFIX "twice"

/* The longest value, in bytes.  A prior requested-chassis is a list that isn't portferry's, and may
 * well be longer: a list of eight UUIDs is 295 bytes. */
#define PF_MARKER_VALUE_MAX 255
#define PF_MARKER_PRIOR_MAX 4096

/* How far ahead of this host's clock a marker's times may be. */
#define PF_MARKER_FUTURE_MAX (G_GINT64_CONSTANT(24) * 60 * 60 * G_USEC_PER_SEC)

typedef struct {
    char *source;              /* chassis name */
    char *destination;         /* chassis name, another one */
    char *domain;              /* UUID, canonical */
    char *handover;            /* as pf_handover_id_new() makes it */
    gint64 started;            /* UTC, microseconds since the epoch, at the destination */
    char *requested_chassis;   /* the option's value before the handover; NULL: it was absent */
    char *activation_strategy; /* likewise */
    gint64 resumed; /* when the guest ran at the destination, in the same unit; 0: not yet */
    bool by_hand;   /* begun by PrePlug: libvirt's word about the guest doesn't count */
} PfMarker;

/* Every key of a marker, NULL-terminated: what to delete to take one away. */
extern const char *const pf_marker_keys[];

/* Whether portferry owns the external_ids key 'key', be it of this version or not. */
bool pf_marker_is_key(const char *key);

/* Returns a new marker's empty shell, or frees one with its strings.  NULL is fine. */
PfMarker *pf_marker_new(void);
void pf_marker_free(PfMarker *marker);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PfMarker, pf_marker_free)

/* Returns the keys and values of 'marker', both owned by the table (see g_hash_table_unref()).
 * Keys of what is absent or not yet are not in it: when a row is written, delete every other one of
 * pf_marker_keys.  A marker that pf_marker_decode() would not read back is PF_ERROR_BAD_MARKER:
 * better no handover than one which can't be undone.  Times are checked against 'now' (UTC,
 * microseconds). */
GHashTable *pf_marker_encode(const PfMarker *marker, gint64 now, GError **error);

/* Returns the value of 'key' or NULL; the string need live only until the next call. */
typedef const char *(*PfMarkerLookup)(const char *key, gpointer user_data);

/* Reads a marker from what 'lookup' finds.  'now' as above.
 * PF_ERROR_NOT_FOUND: there is none, not one of the keys.
 * PF_ERROR_BAD_MARKER: something is there that portferry would not have written: a key is missing,
 * a value isn't what it should be, source and destination are the same, a time lies more than a day
 * ahead. */
PfMarker *pf_marker_decode(PfMarkerLookup lookup, gpointer user_data, gint64 now, GError **error);

/* The same from a table of strings. */
PfMarker *pf_marker_decode_table(GHashTable *table, gint64 now, GError **error);

/* Returns a new handover id: 16 lower-case hexadecimal digits, random, valid as an element of a
 * D-Bus object path.  It's a name, not a secret.  Free with g_free(). */
char *pf_handover_id_new(void);
bool pf_handover_id_is_valid(const char *id);
