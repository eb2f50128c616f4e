/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "notify.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define RETRY_MS 100

static GQueue waiting = G_QUEUE_INIT; /* owned strings, oldest first */
static guint retry_id, watchdog_id;

static gboolean is_status(const char *state)
{
    return g_str_has_prefix(state, "STATUS=");
}

/* FALSE: not now; what can't ever be sent counts as sent. */
static gboolean send_now(const char *state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = g_getenv("NOTIFY_SOCKET");
    gboolean sent = TRUE;

    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof address.sun_path) {
        return TRUE;
    }
    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@') {
        address.sun_path[0] = '\0';
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        ssize_t n = sendto(fd, state, strlen(state), MSG_DONTWAIT | MSG_NOSIGNAL,
                           (const struct sockaddr *)&address,
                           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
        sent = n >= 0 || (errno != EAGAIN && errno != ENOBUFS);
        close(fd);
    }
    return sent;
}

static gboolean on_retry(gpointer data G_GNUC_UNUSED)
{
    while (!g_queue_is_empty(&waiting) && send_now(g_queue_peek_head(&waiting))) {
        g_free(g_queue_pop_head(&waiting));
    }
    if (!g_queue_is_empty(&waiting)) {
        return G_SOURCE_CONTINUE;
    }
    retry_id = 0;
    return G_SOURCE_REMOVE;
}

static gint compare_status(gconstpointer state, gconstpointer unused G_GNUC_UNUSED)
{
    return is_status(state) ? 0 : 1;
}

void pf_notify(const char *state)
{
    if (g_queue_is_empty(&waiting) && send_now(state)) {
        return;
    }
    if (is_status(state)) {
        GList *old = g_queue_find_custom(&waiting, NULL, compare_status);
        if (old) {
            g_free(old->data);
            g_queue_delete_link(&waiting, old);
        }
    }
    g_queue_push_tail(&waiting, g_strdup(state));
    if (!retry_id) {
        retry_id = g_timeout_add(RETRY_MS, on_retry, NULL);
    }
}

void pf_notify_status(const char *format, ...)
{
    g_autofree char *text = NULL;
    g_autofree char *state = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    state = g_strconcat("STATUS=", text, NULL);
    pf_notify(state);
}

static gboolean on_watchdog(gpointer data G_GNUC_UNUSED)
{
    /* A sign that can't be sent is not worth sending later: the next one comes in time. */
    send_now("WATCHDOG=1");
    return G_SOURCE_CONTINUE;
}

void pf_notify_watchdog(void)
{
    uint64_t usec;

    if (!watchdog_id && sd_watchdog_enabled(0, &usec) > 0) {
        watchdog_id = g_timeout_add((guint)MAX(usec / 4000, 1), on_watchdog, NULL);
        on_watchdog(NULL);
    }
}

void pf_notify_end(void)
{
    g_clear_handle_id(&retry_id, g_source_remove);
    g_clear_handle_id(&watchdog_id, g_source_remove);
    g_queue_clear_full(&waiting, g_free);
}
