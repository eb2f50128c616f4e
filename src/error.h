/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* portferry's errors: one quark, one table from code to D-Bus name to what an operator does next.
 *
 * A function that takes a GError sets it when it fails and only then.  Whoever passes it on may put
 * context in front (g_prefix_error()); whoever ends its journey logs it or answers with it, not
 * both. */

#define PF_ERROR (pf_error_quark())

typedef enum {
    PF_ERROR_FAILED,           /* anything that no other code fits */
    PF_ERROR_BAD_XML,          /* not the domain XML that libvirt produces */
    PF_ERROR_BAD_CONFIG,       /* the configuration file, or a value meant for it */
    PF_ERROR_BAD_MARKER,       /* a port carries a marker that makes no sense */
    PF_ERROR_INVALID_ARGUMENT, /* a request that no state of the world would make valid */
    PF_ERROR_NOT_FOUND,        /* no such port, domain, handover, marker */
    PF_ERROR_NOT_READY,        /* the destination's network isn't there yet */
    PF_ERROR_BUSY,             /* another handover of the same domain is under way */
    PF_ERROR_CONFLICT,         /* somebody else changed the same row */
    PF_ERROR_TIMEOUT,          /* a deadline passed */
    PF_ERROR_UNREACHABLE,      /* a database or libvirt can't be reached */
    PF_ERROR_DENIED,           /* the caller, or portferry itself, may not do that */
    PF_ERROR_WRONG_PHASE,      /* a handover is in a phase in which that can't be done */
} PfError;

/* The number of codes: 0 to PF_N_ERRORS - 1. */
#define PF_N_ERRORS (PF_ERROR_WRONG_PHASE + 1)

GQuark pf_error_quark(void);

/* Sets 'error' (which may be NULL) to 'code' with the text "domain 'D', port 'P': FORMAT".
 * 'domain' (a name) and 'port' (an iface-id) may be NULL, and are made printable here; what goes
 * into 'format' is the caller's to make printable.  The text says what failed; what to do about it
 * is pf_error_hint(). */
void pf_error_set(GError **error, PfError code, const char *domain, const char *port,
                  const char *format, ...) G_GNUC_PRINTF(5, 6);

/* Returns what an operator does next about 'code': a clause without a final stop.  Static. */
const char *pf_error_hint(PfError code);

/* Returns the whole story for an operator: the error's text, then the hint of its code.  'error' of
 * a foreign domain gets the text alone.  Free with g_free(). */
char *pf_error_describe(const GError *error);

/* Returns the D-Bus error name of 'code', such as "org.portferry1.Error.NotReady".  Static. */
const char *pf_error_code_to_dbus_name(PfError code);

/* The same for an error that may be of a foreign domain, which becomes "...Failed".  Static. */
const char *pf_error_to_dbus_name(const GError *error);

/* Finds the code of a D-Bus error name.  Returns false and PF_ERROR_FAILED for a name that isn't
 * portferry's (the bus itself answers with names of its own). */
bool pf_error_from_dbus_name(const char *name, PfError *code);
