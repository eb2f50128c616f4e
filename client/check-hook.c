/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The hook, by which libvirt calls portferry. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "terminal.h"

/* How exactly the kernel tells when a process began, at least; twice over. */
#define CLOCK_TICK_US (20 * 1000)

static gint64 timespec_us(const struct timespec *t)
{
    return (gint64)t->tv_sec * G_USEC_PER_SEC + t->tv_nsec / 1000;
}

/* What an editor or a package manager leaves behind, and libvirt runs. */
static bool is_leftover(const char *name)
{
    static const char *const endings[] = {"~",         ".bak",       ".orig",     ".old",
                                          ".save",     ".swp",       ".rej",      ".dpkg-old",
                                          ".dpkg-new", ".dpkg-dist", ".dpkg-tmp", ".rpmsave",
                                          ".rpmnew",   ".rpmorig",   ".ucf-old",  ".ucf-dist"};

    for (gsize i = 0; i < G_N_ELEMENTS(endings); i++) {
        if (g_str_has_suffix(name, endings[i])) {
            return true;
        }
    }
    return name[0] == '.' || name[0] == '#';
}

/* An update that forgot the copy, or a copy that somebody changed. */
static void check_version(PfCheck *check, const char *path)
{
    g_autofree char *original = pf_host_path(PF_HOOK_ORIGINAL);
    g_autofree char *ours = NULL;
    g_autofree char *theirs = NULL;
    gsize our_size, their_size;

    if (!g_file_get_contents(original, &theirs, &their_size, NULL) ||
        !g_file_get_contents(path, &ours, &our_size, NULL)) {
        return; /* nothing to compare with */
    }
    if (our_size == their_size && memcmp(ours, theirs, our_size) == 0) {
        pf_check_add(check, PF_FINDING_OK, "hook.packaged", NULL,
                     _("the hook is the one that portferry was installed with"));
    } else {
        pf_check_add(check, PF_FINDING_WARNING, "hook.changed",
                     "cp --remove-destination " PF_HOOK_ORIGINAL " " PF_HOOK_FILE,
                     _("the hook is not the one that portferry was installed with"));
    }
}

/* Returns whether libvirt can run it. */
static bool check_file(PfCheck *check, const char *path)
{
    struct stat st;

    if (lstat(path, &st) < 0) {
        if (errno == ENOENT || errno == ENOTDIR) {
            pf_check_add(check, PF_FINDING_PROBLEM, "hook.missing",
                         _("install it there; without it libvirt migrates without portferry"),
                         _("the hook %s is missing"), PF_HOOK_FILE);
        } else {
            pf_check_add_unreadable(check, "hook.unknown", path, errno);
        }
        return false;
    }
    if (S_ISLNK(st.st_mode)) {
        pf_check_add(check, PF_FINDING_PROBLEM, "hook.symlink",
                     _("copy the program there: AppArmor lets libvirtd run nothing that lies "
                       "elsewhere, and then no guest starts"),
                     _("the hook %s is a symbolic link"), PF_HOOK_FILE);
        return false;
    }
    if (!S_ISREG(st.st_mode)) {
        pf_check_add(check, PF_FINDING_PROBLEM, "hook.no-file", _("put the hook there"),
                     _("%s is not a regular file"), PF_HOOK_FILE);
        return false;
    }
    if (!(st.st_mode & S_IXUSR)) {
        pf_check_add(check, PF_FINDING_PROBLEM, "hook.not-executable", "chmod 0755 " PF_HOOK_FILE,
                     _("the hook %s is not executable, so libvirt passes it by"), PF_HOOK_FILE);
        return false;
    }
    if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH))) {
        pf_check_add(check, PF_FINDING_PROBLEM, "hook.writable",
                     "chown root:root " PF_HOOK_FILE "; chmod 0755 " PF_HOOK_FILE,
                     _("others than root may change the hook %s, which runs as root"),
                     PF_HOOK_FILE);
    }
    pf_check_add(check, PF_FINDING_OK, "hook.installed", NULL,
                 _("%s is a regular file, and executable"), PF_HOOK_FILE);
    return true;
}

/* Other scripts: the oldest time at which one of them was as it is now is returned, 0 for none. */
static gint64 check_others(PfCheck *check)
{
    g_autofree char *folder = pf_host_path(PF_HOOK_FOLDER);
    g_autofree char *main_hook = pf_host_path(PF_HOOK_MAIN);
    DIR *dir = opendir(folder);
    struct dirent *entry;
    struct stat st;
    gint64 oldest = 0;
    guint n = 0;

    if (!dir && errno != ENOENT && errno != ENOTDIR) {
        pf_check_add_unreadable(check, "hook.others-unknown", folder, errno);
    }
    while (dir && (entry = readdir(dir))) {
        g_autofree char *name = pf_safe(entry->d_name);

        if (g_str_equal(entry->d_name, "portferry") ||
            fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode) ||
            !(st.st_mode & S_IXUSR)) {
            continue; /* libvirt passes by what isn't an executable file */
        }
        if (oldest == 0 || timespec_us(&st.st_ctim) < oldest) {
            oldest = timespec_us(&st.st_ctim);
        }
        n++;
        if (is_leftover(entry->d_name)) {
            g_autofree char *advice =
                g_strdup_printf(_("move it away: rm '%s/%s'"), PF_HOOK_FOLDER, name);
            bool ours = strstr(entry->d_name, "portferry") != NULL;

            pf_check_add(check, ours ? PF_FINDING_PROBLEM : PF_FINDING_WARNING, "hook.leftover",
                         advice, _("libvirt also runs %s/%s, which looks like a backup"),
                         PF_HOOK_FOLDER, name);
        } else {
            pf_check_add(check, PF_FINDING_OK, "hook.other", NULL,
                         _("libvirt also runs %s/%s; if it fails, a migration is refused"),
                         PF_HOOK_FOLDER, name);
        }
    }
    if (dir) {
        closedir(dir);
    }

    if (stat(main_hook, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IXUSR)) {
        oldest = oldest == 0 ? timespec_us(&st.st_ctim) : MIN(oldest, timespec_us(&st.st_ctim));
        n++;
        pf_check_add(check, PF_FINDING_OK, "hook.main", NULL,
                     _("libvirt also runs %s, before all others; if it fails, a migration is "
                       "refused"),
                     PF_HOOK_MAIN);
    }
    if (n == 0 && dir) {
        pf_check_add(check, PF_FINDING_OK, "hook.alone", NULL,
                     _("there is no other hook for QEMU"));
    }
    return oldest;
}

/* When systemd last reloaded the unit; 0 if it did not, or can't be asked. */
static gint64 last_reload(PfCheck *check, const char *name)
{
    g_autofree char *unit = g_strconcat(name, ".service", NULL);
    sd_bus_message *reply = NULL, *property = NULL;
    const char *path;
    guint64 started = 0;

    /* Not reported here: that the bus can't be reached is found where portferryd is asked. */
    if (!check->client->bus) {
        return 0;
    }
    if (sd_bus_call_method(check->client->bus, "org.freedesktop.systemd1",
                           "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
                           "GetUnit", NULL, &reply, "s", unit) >= 0 &&
        sd_bus_message_read(reply, "o", &path) >= 0 &&
        sd_bus_get_property(check->client->bus, "org.freedesktop.systemd1", path,
                            "org.freedesktop.systemd1.Service", "ExecReload", NULL, &property,
                            "a(sasbttttuii)") >= 0 &&
        sd_bus_message_enter_container(property, 'a', "(sasbttttuii)") >= 0) {
        /* path, arguments, whether a failure is ignored, start, ... */
        while (sd_bus_message_enter_container(property, 'r', "sasbttttuii") > 0) {
            guint64 time;

            if (sd_bus_message_skip(property, "sasb") < 0 ||
                sd_bus_message_read(property, "t", &time) < 0 ||
                sd_bus_message_skip(property, "tttuii") < 0 ||
                sd_bus_message_exit_container(property) < 0) {
                break;
            }
            started = MAX(started, time);
        }
    }
    sd_bus_message_unref(reply);
    sd_bus_message_unref(property);
    return (gint64)started;
}

/* libvirt looks whether there are hooks when it starts and on SIGHUP.  If there was one then, it
 * runs whatever is there later. */
static void check_seen(PfCheck *check, const char *path, gint64 oldest_other)
{
    PfLibvirtd libvirtd;
    struct stat st;
    gint64 looked, since;

    if (check->hook_called) {
        pf_check_add(check, PF_FINDING_OK, "hook.called", NULL, _("libvirt has called the hook"));
        return;
    }
    if (!pf_libvirtd_find(&libvirtd) || stat(path, &st) < 0) {
        return; /* it looks when it starts */
    }
    looked = MAX(libvirtd.started_us, last_reload(check, libvirtd.name));
    since = timespec_us(&st.st_ctim);
    if (oldest_other > 0) {
        since = MIN(since, oldest_other);
    }
    if (looked == 0) {
        pf_check_add(check, PF_FINDING_UNKNOWN, "hook.seen-unknown", NULL,
                     _("it can't be told when %s was started, and so whether it knows of the hook"),
                     libvirtd.name);
    } else if (looked + CLOCK_TICK_US >= since) {
        pf_check_add(check, PF_FINDING_OK, "hook.seen", NULL,
                     _("%s has looked for hooks since there is one"), libvirtd.name);
    } else {
        g_autofree char *advice = g_strdup_printf(
            _("systemctl reload %s; it does no harm if it was done already"), libvirtd.name);

        pf_check_add(check, PF_FINDING_WARNING, "hook.not-seen", advice,
                     _("the hook is younger than %s, which looks for hooks only when it is started "
                       "or reloaded"),
                     libvirtd.name);
    }
}

void pf_check_hook(PfCheck *check)
{
    g_autofree char *path = pf_host_path(PF_HOOK_FILE);
    bool usable = check_file(check, path);
    gint64 oldest_other;

    if (usable) {
        check_version(check, path);
    }
    oldest_other = check_others(check);
    if (usable) {
        check_seen(check, path, oldest_other);
    }
}
