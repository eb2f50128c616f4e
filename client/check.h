/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "client.h"
#include "configuration.h"
#include "ovsdb-tool.h"

/*
 * portferry check: each part looks at one thing and adds what it found.  What can't be looked at is
 * a finding too; nothing is guessed.
 */

typedef enum {
    PF_FINDING_OK,
    PF_FINDING_UNKNOWN, /* it could not be looked at */
    PF_FINDING_WARNING,
    PF_FINDING_PROBLEM,
    PF_N_FINDINGS,
} PfFindingLevel;

typedef struct PfCheck PfCheck;

/* What more than one part needs to know. */
struct PfCheck {
    PfClient *client;
    GArray *findings;            /* of Finding, see check.c */
    PfConfig *config;            /* never NULL: the defaults if the file is wrong */
    PfJson *host_rows;           /* of the local Open vSwitch database, or NULL; see check-ovn.c */
    PfJson *chassis;             /* of the southbound database: Chassis, Encap; or NULL */
    char *system_id;             /* or NULL */
    char *nb_remote, *sb_remote; /* or NULL */
    gint64 tunnel_room; /* the largest packet of a guest that a tunnel carries whole; 0: unknown */
    GHashTable *handovers; /* open ones that portferryd knows; NULL if it was not asked */
    bool hook_called;      /* portferryd has handovers that the hook told it of */
    bool nb_connected;     /* portferryd is, to the northbound database */
    bool nb_is_none;       /* there is no such database for this host, only a CMS that writes it */
    bool tls_from_switch;  /* the files in 'config' are ovn-controller's */
};

/* 'id' never changes its meaning ("hook.missing"); its first word is the part's name.  'advice'
 * says what to do, NULL if there is nothing. */
void pf_check_add(PfCheck *check, PfFindingLevel level, const char *id, const char *advice,
                  const char *format, ...) G_GNUC_PRINTF(5, 6);

/* Adds that a program or database could not be asked. */
void pf_check_add_unknown(PfCheck *check, const char *id, const char *what, const PfRun *run);

/* Adds PF_FINDING_UNKNOWN for a file: 'error' is an errno. */
void pf_check_add_unreadable(PfCheck *check, const char *id, const char *path, int error);

void pf_check_hook(PfCheck *check);
void pf_check_libvirt(PfCheck *check);
void pf_check_configuration(PfCheck *check, const char *path);
void pf_check_daemon(PfCheck *check);
void pf_check_tls(PfCheck *check);
/* Puts ovn-controller's files into 'config', if that has none of its own, as portferryd does. */
void pf_check_tls_find(PfCheck *check);

/* In this order: each needs what the one before has learnt. */
void pf_check_switch(PfCheck *check);
void pf_check_southbound(PfCheck *check);
void pf_check_northbound(PfCheck *check);
void pf_check_mtu(PfCheck *check);

/* Whether the domain's migration to the host 'to' would work. */
void pf_check_domain(PfCheck *check, const char *domain, const char *to);

/* The hook that libvirtd runs, and the folder that it is in. */
#define PF_HOOK_FOLDER "/etc/libvirt/hooks/qemu.d"
#define PF_HOOK_FILE PF_HOOK_FOLDER "/portferry"
#define PF_HOOK_MAIN "/etc/libvirt/hooks/qemu"

/* The daemon that runs the hooks: its process and when it began (CLOCK_REALTIME), 0 if that
 * can't be told. */
typedef struct {
    int pid;
    char name[16]; /* "libvirtd" or "virtqemud" */
    gint64 started_us;
} PfLibvirtd;

bool pf_libvirtd_find(PfLibvirtd *libvirtd);
