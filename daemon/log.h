/* SPDX-License-Identifier: LGPL-2.1-or-later */

#pragma once

#include <glib.h>

/*
 * Structured logging.  Each entry is one datagram in the journal's native protocol
 * (https://systemd.io/JOURNAL_NATIVE_PROTOCOL/), and a readable line on standard error when that
 * isn't the journal itself.  Priorities are those of syslog(3).
 *
 * sd_journal_send() would do the same, but it waits when journald doesn't read.  The switchover
 * must not depend on that, so an entry that can't be delivered at once is dropped and counted; the
 * next one that gets through is preceded by the count.
 *
 * Every function may be called in any thread.
 */

/* The fields of an entry.  NULL and 0 stand for "not given"; the strings are only read. */
typedef struct {
    const char *message_id;  /* PF_MESSAGE_*: 32 hexadecimal digits, see message-ids.h */
    const char *domain;      /* DOMAIN: the domain's name on this host */
    const char *domain_uuid; /* DOMAIN_UUID */
    const char *handover;    /* HANDOVER: the handover's id */
    const char *port;        /* PORT: the port's iface-id */
    const char *phase;       /* PHASE: the one just entered */
    const char *phase_old;   /* PHASE_OLD: the one just left */
    const char *role;        /* ROLE: source or destination */
    const char *source;      /* SOURCE: the source's chassis */
    const char *destination; /* DESTINATION: the destination's chassis */
    gint64 duration_us;      /* DURATION_USEC */
} PfLogFields;

/*
 * Starts logging under 'identifier' (a static string; SYSLOG_IDENTIFIER), up to LOG_INFO, and
 * takes over GLib's own messages.  Call it once, before any thread starts.
 */
void pf_log_init(const char *identifier);

/* Entries of a greater (less important) priority than 'priority' are dropped. */
void pf_log_set_max_priority(int priority);
int pf_log_get_max_priority(void);

/*
 * Writes one entry.  'fields' may be NULL.  The message and every value are made safe for one line
 * (pf_log_one_line()), so nothing that a guest's name or an error text holds can forge an entry.
 */
void pf_log(int priority, const PfLogFields *fields, const char *format, ...) G_GNUC_PRINTF(3, 4);

/*
 * Returns 'text' (NULL counts as empty) as valid UTF-8 of one line: control characters become
 * blanks, and what exceeds 'max_bytes' is cut off at a character.  Free with g_free().
 */
char *pf_log_one_line(const char *text, gsize max_bytes);

/* How many entries were dropped so far because the journal didn't take them at once. */
guint64 pf_log_get_lost(void);
