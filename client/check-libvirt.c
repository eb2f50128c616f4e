/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* libvirt's daemon, AppArmor around it, and the settings that a migration depends on. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "terminal.h"

/* Of a minute or more, it is a guest's network that waits. */
#define KEEPALIVE_LONG_S 60
#define OVS_TIMEOUT_DEFAULT 5
#define OVS_TIMEOUT_LONG 10

/* When a process began; 0 if that isn't known. */
static gint64 process_start(const char *pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%s/stat", pid);
    g_autofree char *stat = pf_host_read(path);
    /* The second field is the name, in brackets, and may hold anything. */
    const char *rest = stat ? strrchr(stat, ')') : NULL;
    g_auto(GStrv) fields = rest && rest[1] ? g_strsplit(rest + 2, " ", -1) : NULL;
    long ticks = sysconf(_SC_CLK_TCK);
    struct timespec now;

    /* The 22nd field, in ticks since boot; the third one is the first after the bracket. */
    if (!fields || g_strv_length(fields) < 20 || ticks <= 0 ||
        clock_gettime(CLOCK_BOOTTIME, &now) < 0) {
        return 0;
    }

    gint64 up = (gint64)now.tv_sec * G_USEC_PER_SEC + now.tv_nsec / 1000;
    gint64 start = g_ascii_strtoll(fields[19], NULL, 10) * G_USEC_PER_SEC / ticks;

    /* Not by btime of /proc/stat, which is in whole seconds: a hook is often installed right before
     * libvirtd starts. */
    return g_get_real_time() - (up - start);
}

/* Whether the process sees the same files as we: a container's libvirtd is none of ours. */
static bool same_namespace(const char *pid)
{
    g_autofree char *theirs = g_strdup_printf("/proc/%s/ns/mnt", pid);
    g_autofree char *path = pf_host_path(theirs);
    g_autofree char *ours = pf_host_path("/proc/self/ns/mnt");
    struct stat a, b;

    return stat(path, &a) < 0 || stat(ours, &b) < 0 || a.st_ino == b.st_ino;
}

bool pf_libvirtd_find(PfLibvirtd *libvirtd)
{
    static const char *const names[] = {"libvirtd", "virtqemud", NULL};
    g_autofree char *proc = pf_host_path("/proc");
    DIR *dir = opendir(proc);
    struct dirent *entry;

    *libvirtd = (PfLibvirtd){0};
    while (dir && (entry = readdir(dir))) {
        g_autofree char *comm_path = g_strdup_printf("/proc/%s/comm", entry->d_name);
        g_autofree char *comm = NULL;
        struct stat st;

        if (!g_ascii_isdigit(entry->d_name[0]) || !(comm = pf_host_read(comm_path)) ||
            !g_strv_contains(names, comm) || !same_namespace(entry->d_name)) {
            continue;
        }
        /* One of a user's session has no migrations. */
        if (fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 || st.st_uid != 0) {
            continue;
        }
        libvirtd->pid = (int)g_ascii_strtoll(entry->d_name, NULL, 10);
        g_strlcpy(libvirtd->name, comm, sizeof libvirtd->name);
        libvirtd->started_us = process_start(entry->d_name);
        break;
    }
    if (dir) {
        closedir(dir);
    }
    return libvirtd->pid > 0;
}

static void check_apparmor(PfCheck *check, const PfLibvirtd *libvirtd)
{
    g_autofree char *enabled = pf_host_read("/sys/module/apparmor/parameters/enabled");
    g_autofree char *path = g_strdup_printf("/proc/%d/attr/current", libvirtd->pid);
    g_autofree char *profile = NULL;

    if (!enabled || !g_str_equal(enabled, "Y")) {
        pf_check_add(check, PF_FINDING_OK, "libvirt.apparmor-off", NULL,
                     _("AppArmor is not in use"));
        return;
    }
    if (libvirtd->pid == 0) {
        pf_check_add(check, PF_FINDING_OK, "libvirt.apparmor", NULL,
                     _("AppArmor is in use; libvirt's profile lets it run the hook where it is"));
        return;
    }
    profile = pf_host_read(path);
    if (!profile) {
        pf_check_add_unreadable(check, "libvirt.apparmor-unknown", path, errno);
    } else {
        g_autofree char *safe = pf_safe(profile);

        pf_check_add(check, PF_FINDING_OK, "libvirt.apparmor", NULL,
                     _("AppArmor: %s runs as '%s'; the hook must be a file of its own, which it "
                       "inherits"),
                     libvirtd->name, safe);
    }
}

/* Reads an integer setting as libvirt does: "name = 5", the last one holds.  Returns whether the
 * file could be read. */
static bool read_setting(const char *path, const char *name, gint64 *value)
{
    g_autofree char *text = pf_host_read(path);
    g_auto(GStrv) lines = text ? g_strsplit(text, "\n", -1) : NULL;

    if (!text) {
        return false;
    }
    for (char **line = lines; *line; line++) {
        const char *at = g_strchug(*line);

        if (!g_str_has_prefix(at, name)) {
            continue;
        }
        at += strlen(name);
        at += strspn(at, " \t");
        if (*at != '=') {
            continue;
        }
        at += 1 + strspn(at + 1, " \t\"");
        *value = g_ascii_strtoll(at, NULL, 10);
    }
    return true;
}

static void check_keepalive(PfCheck *check, const char *path)
{
    gint64 interval = 5, count = 5;

    if (!read_setting(path, "keepalive_interval", &interval)) {
        if (errno != ENOENT) {
            pf_check_add_unreadable(check, "libvirt.settings-unknown", path, errno);
        }
        return;
    }
    read_setting(path, "keepalive_count", &count);
    if (interval <= 0) {
        pf_check_add(
            check, PF_FINDING_WARNING, "libvirt.keepalive-off",
            _("leave keepalive_interval at 5, then restart libvirt's daemon"),
            _("%s turns keepalive off: a host that dies in a migration is not noticed, and "
              "its handovers stay open"),
            path);
    } else if (interval * (count + 1) > KEEPALIVE_LONG_S) {
        pf_check_add(check, PF_FINDING_WARNING, "libvirt.keepalive-long",
                     _("lower keepalive_interval and keepalive_count, then restart libvirt's "
                       "daemon"),
                     _("%s: a host that dies in a migration is noticed only after %d seconds"),
                     path, (int)MIN(interval * (count + 1), G_MAXINT));
    } else {
        pf_check_add(check, PF_FINDING_OK, "libvirt.keepalive", NULL,
                     _("%s: a host that dies in a migration is noticed after %d seconds"), path,
                     (int)(interval * (count + 1)));
    }
}

static void check_ovs_timeout(PfCheck *check, const char *path)
{
    gint64 timeout = OVS_TIMEOUT_DEFAULT;

    if (!read_setting(path, "ovs_timeout", &timeout)) {
        return; /* reported with the other settings */
    }
    if (timeout > OVS_TIMEOUT_LONG || timeout <= 0) {
        pf_check_add(check, PF_FINDING_WARNING, "libvirt.ovs-timeout",
                     _("leave ovs_timeout at 5, then restart libvirt's daemon"),
                     _("%s: ovs_timeout is %d: an Open vSwitch that hangs keeps a migrating guest "
                       "still for as long"),
                     path, (int)CLAMP(timeout, G_MININT, G_MAXINT));
    } else if (timeout < 2) {
        pf_check_add(check, PF_FINDING_WARNING, "libvirt.ovs-timeout",
                     _("leave ovs_timeout at 5, then restart libvirt's daemon"),
                     _("%s: ovs_timeout is %d: on a busy host migrations fail because plugging in "
                       "takes longer"),
                     path, (int)timeout);
    } else {
        pf_check_add(check, PF_FINDING_OK, "libvirt.ovs-timeout", NULL, _("%s: ovs_timeout is %d"),
                     path, (int)timeout);
    }
}

void pf_check_libvirt(PfCheck *check)
{
    PfLibvirtd libvirtd;
    const char *settings;

    if (pf_libvirtd_find(&libvirtd)) {
        pf_check_add(check, PF_FINDING_OK, "libvirt.running", NULL, _("%s runs"), libvirtd.name);
    } else {
        pf_check_add(check, PF_FINDING_OK, "libvirt.not-running", NULL,
                     _("neither libvirtd nor virtqemud runs at the moment, as far as can be seen; "
                       "it looks for the hook when it starts"));
    }
    check_apparmor(check, &libvirtd);

    settings = g_str_equal(libvirtd.name, "virtqemud") ? "/etc/libvirt/virtqemud.conf"
                                                       : "/etc/libvirt/libvirtd.conf";
    check_keepalive(check, settings);
    check_keepalive(check, "/etc/libvirt/qemu.conf");
    check_ovs_timeout(check, settings);
}
