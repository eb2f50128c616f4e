/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "log.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* Well under the smallest datagram that every kernel takes, and under PIPE_BUF for stderr. */
#define MAX_MESSAGE 2048
#define MAX_VALUE 256

static const char *log_identifier = "portferry";
static int log_journal_fd = -1;
static gboolean log_to_stderr = TRUE;
static int log_max_priority = LOG_INFO;
static gint log_lost;     /* atomic: not yet reported */
static gint log_lost_all; /* atomic: since the start */

static const char *const priority_names[] = {
    "emergency", "alert", "critical", "error", "warning", "notice", "info", "debug",
};

G_STATIC_ASSERT(G_N_ELEMENTS(priority_names) == LOG_DEBUG + 1);

/* systemd names the stream's device and inode in JOURNAL_STREAM; systemd.exec(5). */
static gboolean stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device;
    unsigned long long inode;
    struct stat st;

    if (stream == NULL || sscanf(stream, "%llu:%llu", &device, &inode) != 2)
        return FALSE;

    return fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

char *pf_log_one_line(const char *text, gsize max_bytes)
{
    g_autofree char *valid = g_utf8_make_valid(text != NULL ? text : "", -1);
    GString *line = g_string_sized_new(MIN(strlen(valid), max_bytes) + 1);

    for (const char *p = valid; *p != '\0'; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);
        gsize length = (gsize)(g_utf8_next_char(p) - p);

        /* U+2028 and U+2029 break lines as well; U+202A to U+202E and U+2066 to U+2069 reorder
         * what a terminal shows. */
        if (g_unichar_iscntrl(c) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069)) {
            c = ' ';
            length = 1;
        }
        if (line->len + length > max_bytes)
            break;
        g_string_append_unichar(line, c);
    }

    return g_string_free(line, FALSE);
}

static void append_field(GString *entry, GString *suffix, const char *name, const char *value)
{
    g_autofree char *line = NULL;

    if (value == NULL || *value == '\0')
        return;

    line = pf_log_one_line(value, MAX_VALUE);
    g_string_append_printf(entry, "%s=%s\n", name, line);
    if (suffix != NULL)
        g_string_append_printf(suffix, " %s=%s", name, line);
}

static gboolean send_to_journal(const GString *entry)
{
    static const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET};
    ssize_t n;

    if (log_journal_fd < 0)
        return FALSE;

    n = sendto(log_journal_fd, entry->str, entry->len, MSG_DONTWAIT | MSG_NOSIGNAL,
               (const struct sockaddr *)&address, sizeof(address));
    return n >= 0;
}

static void write_to_stderr(int priority, const char *message, const char *suffix)
{
    struct pollfd pollfd = {.fd = STDERR_FILENO, .events = POLLOUT};
    gint64 now = g_get_real_time();
    time_t seconds = (time_t)(now / G_USEC_PER_SEC);
    struct tm tm;
    char line[4096];
    char stamp[16];
    int length;

    /* A pipe that nobody reads would stop the loop.  Once POLLOUT is set, PIPE_BUF bytes fit. */
    if (poll(&pollfd, 1, 0) != 1 || !(pollfd.revents & POLLOUT)) {
        g_atomic_int_inc(&log_lost_all);
        return;
    }

    localtime_r(&seconds, &tm);
    strftime(stamp, sizeof(stamp), "%H:%M:%S", &tm);
    length =
        snprintf(line, sizeof(line), "%s.%06d %s: %s: %s%s\n", stamp, (int)(now % G_USEC_PER_SEC),
                 log_identifier, priority_names[priority], message, suffix);
    if (length >= (int)sizeof(line)) {
        length = sizeof(line) - 1;
        line[length - 1] = '\n';
    }
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
        g_atomic_int_inc(&log_lost_all);
}

static void write_entry(int priority, const PfLogFields *fields, const char *glib_domain,
                        const char *message)
{
    g_autofree char *line = pf_log_one_line(message, MAX_MESSAGE);
    g_autoptr(GString) entry = g_string_sized_new(512);
    g_autoptr(GString) suffix = log_to_stderr ? g_string_new(NULL) : NULL;
    gboolean sent;

    g_string_append_printf(entry, "MESSAGE=%s\nPRIORITY=%d\nSYSLOG_IDENTIFIER=%s\n", line, priority,
                           log_identifier);
    append_field(entry, NULL, "GLIB_DOMAIN", glib_domain);

    if (fields != NULL) {
        append_field(entry, NULL, "MESSAGE_ID", fields->message_id);
        append_field(entry, suffix, "DOMAIN", fields->domain);
        append_field(entry, suffix, "DOMAIN_UUID", fields->domain_uuid);
        append_field(entry, suffix, "HANDOVER", fields->handover);
        append_field(entry, suffix, "PORT", fields->port);
        append_field(entry, suffix, "PHASE_OLD", fields->phase_old);
        append_field(entry, suffix, "PHASE", fields->phase);
        append_field(entry, suffix, "ROLE", fields->role);
        append_field(entry, suffix, "SOURCE", fields->source);
        append_field(entry, suffix, "DESTINATION", fields->destination);
        if (fields->duration_us != 0) {
            g_autofree char *duration = g_strdup_printf("%" G_GINT64_FORMAT, fields->duration_us);

            append_field(entry, suffix, "DURATION_USEC", duration);
        }
    }

    sent = send_to_journal(entry);
    if (!sent && (errno == EAGAIN || errno == ENOBUFS)) {
        g_atomic_int_inc(&log_lost);
        g_atomic_int_inc(&log_lost_all);
    }

    /* Without a journal, standard error is all there is. */
    if (suffix != NULL)
        write_to_stderr(priority, line, suffix->str);
    else if (!sent)
        write_to_stderr(priority, line, "");
}

static void report_lost(void)
{
    gint lost = g_atomic_int_get(&log_lost);
    g_autofree char *message = NULL;

    if (lost == 0 || !g_atomic_int_compare_and_exchange(&log_lost, lost, 0))
        return;

    message = g_strdup_printf("%d log entries were lost: the journal did not take them", lost);
    write_entry(LOG_WARNING, NULL, NULL, message);

    /* If this one was lost as well, it counted itself; the others still have to be reported. */
    if (g_atomic_int_get(&log_lost) > 0)
        g_atomic_int_add(&log_lost, lost - 1);
}

void pf_log(int priority, const PfLogFields *fields, const char *format, ...)
{
    g_autofree char *message = NULL;
    int saved_errno = errno;
    va_list args;

    if (priority > log_max_priority)
        return;

    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);

    report_lost();
    write_entry(CLAMP(priority, LOG_EMERG, LOG_DEBUG), fields, NULL, message);
    errno = saved_errno;
}

static int priority_from_glib(GLogLevelFlags level)
{
    if (level & G_LOG_LEVEL_ERROR)
        return LOG_CRIT;
    if (level & G_LOG_LEVEL_CRITICAL)
        return LOG_ERR;
    if (level & G_LOG_LEVEL_WARNING)
        return LOG_WARNING;
    if (level & G_LOG_LEVEL_MESSAGE)
        return LOG_NOTICE;
    if (level & G_LOG_LEVEL_INFO)
        return LOG_INFO;
    return LOG_DEBUG;
}

/* Libraries chatter: libvirt-glib tells of each wakeup.  G_MESSAGES_DEBUG lets them, as elsewhere.
 */
static gboolean is_chatter(GLogLevelFlags level, const char *domain)
{
    return domain != NULL && (level & (G_LOG_LEVEL_DEBUG | G_LOG_LEVEL_INFO)) &&
           g_log_writer_default_would_drop(level, domain);
}

static GLogWriterOutput glib_writer(GLogLevelFlags level, const GLogField *fields, gsize n_fields,
                                    gpointer userdata)
{
    g_autofree char *message = NULL;
    g_autofree char *domain = NULL;
    int priority = priority_from_glib(level);

    if (priority > log_max_priority)
        return G_LOG_WRITER_HANDLED;

    for (gsize i = 0; i < n_fields; i++) {
        char **target = NULL;

        if (g_str_equal(fields[i].key, "MESSAGE"))
            target = &message;
        else if (g_str_equal(fields[i].key, "GLIB_DOMAIN"))
            target = &domain;
        if (target == NULL || *target != NULL || fields[i].value == NULL)
            continue;
        *target = fields[i].length < 0 ? g_strdup(fields[i].value)
                                       : g_strndup(fields[i].value, (gsize)fields[i].length);
    }

    if (is_chatter(level, domain))
        return G_LOG_WRITER_HANDLED;

    report_lost();
    write_entry(priority, NULL, domain, message);
    return G_LOG_WRITER_HANDLED;
}

void pf_log_init(const char *identifier)
{
    log_identifier = identifier;
    log_to_stderr = !stderr_is_journal();
    log_journal_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    g_log_set_writer_func(glib_writer, NULL, NULL);
}

void pf_log_set_max_priority(int priority)
{
    log_max_priority = CLAMP(priority, LOG_EMERG, LOG_DEBUG);
}

int pf_log_get_max_priority(void)
{
    return log_max_priority;
}

guint64 pf_log_get_lost(void)
{
    return (guint)g_atomic_int_get(&log_lost_all);
}
