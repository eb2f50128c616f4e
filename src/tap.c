/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tap.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "error.h"

/* One ioctl about the queue's length (netdevice(7)). */
static gboolean queue_ioctl(unsigned long request, const char *name, int *length, GError **error)
{
    struct ifreq ifr = {.ifr_qlen = *length};

    if (g_strlcpy(ifr.ifr_name, name, sizeof ifr.ifr_name) >= sizeof ifr.ifr_name) {
        g_set_error(error, PF_ERROR, PF_ERROR_INVALID_ARGUMENT, "'%s' is no interface name", name);
        return FALSE;
    }
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int result = fd < 0 ? -1 : ioctl(fd, request, &ifr);
    int failure = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (result < 0) {
        g_set_error(error, PF_ERROR, PF_ERROR_FAILED, "interface %s: can't %s its queue: %s", name,
                    request == SIOCGIFTXQLEN ? "look at" : "change", g_strerror(failure));
        return FALSE;
    }
    *length = ifr.ifr_qlen;
    return TRUE;
}

gboolean pf_tap_set_queue(const char *name, guint length, GError **error)
{
    int n = (int)length;
    return queue_ioctl(SIOCSIFTXQLEN, name, &n, error);
}

gboolean pf_tap_renew_queue(const char *name, guint length, guint *ret_before, GError **error)
{
    int before = 0;

    if (!queue_ioctl(SIOCGIFTXQLEN, name, &before, error) || !pf_tap_set_queue(name, 0, error) ||
        !pf_tap_set_queue(name, length, error)) {
        return FALSE;
    }
    if (ret_before) {
        *ret_before = (guint)before;
    }
    return TRUE;
}

gboolean pf_tap_exists(const char *name)
{
    return if_nametoindex(name) != 0 || errno != ENODEV;
}
