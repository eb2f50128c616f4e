/* SPDX-License-Identifier: LGPL-2.1-or-later */

#pragma once

#include <glib.h>
#include <systemd/sd-bus.h>

/*
 * Asks polkit whether somebody on the bus may do something.  polkit may ask that person for a
 * password first, or be stopped, or not be installed: each question has a deadline and nothing
 * waits for it.
 */

typedef enum {
    PF_POLKIT_ALLOWED,
    PF_POLKIT_DENIED,
    PF_POLKIT_CHALLENGE, /* a password would help, but the caller said not to ask for one */
    PF_POLKIT_SILENT,    /* no answer in time */
    PF_POLKIT_ABSENT,    /* there is no polkit to be asked */
} PfPolkitAnswer;

/* How long polkit itself may take, and how long if there is a person to be asked. */
#define PF_POLKIT_TIMEOUT_US (10 * G_USEC_PER_SEC)
#define PF_POLKIT_PERSON_TIMEOUT_US (120 * G_USEC_PER_SEC)

/* A question under way. */
typedef struct PfPolkitCheck PfPolkitCheck;

/* 'why' is one line about an answer other than yes.  The check ends when this returns. */
typedef void (*PfPolkitDone)(PfPolkitAnswer answer, const char *why, gpointer userdata);

/*
 * Asks whether the connection 'sender' (a unique name) may do 'action'.  'details' are pairs of
 * names and values, NULL-terminated, which the messages of the action can name.  'interactive': a
 * person may be asked for a password meanwhile.
 *
 * 'done' is called exactly once and later, unless the check is cancelled or 'bus' is closed.  NULL
 * if the question can't even be put.
 */
PfPolkitCheck *pf_polkit_check(sd_bus *bus, const char *sender, const char *action,
                               const char *const *details, gboolean interactive, PfPolkitDone done,
                               gpointer userdata);

/* Drops the question, and takes the dialogue from the person's screen.  NULL is fine. */
void pf_polkit_cancel(PfPolkitCheck *check);
