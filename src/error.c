/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "error.h"

#include <string.h>

#include "text.h"

/* clang-format off */
static const struct {
    const char *dbus_name;
    const char *hint;
} errors[] = {
    [PF_ERROR_FAILED] = {
        "org.portferry1.Error.Failed",
        "see what portferryd logged: journalctl -u portferryd",
    },
    [PF_ERROR_BAD_XML] = {
        "org.portferry1.Error.BadXml",
        "compare with what 'virsh dumpxml' prints for the domain, and check that no other hook"
        " rewrites it",
    },
    [PF_ERROR_BAD_CONFIG] = {
        "org.portferry1.Error.BadConfig",
        "correct the configuration, then restart portferryd",
    },
    [PF_ERROR_BAD_MARKER] = {
        "org.portferry1.Error.BadMarker",
        "portferry leaves the port alone; once no migration of its guest is under way, remove the"
        " external_ids keys that begin with \"portferry-\" from its Logical_Switch_Port row",
    },
    [PF_ERROR_INVALID_ARGUMENT] = {
        "org.portferry1.Error.InvalidArgument",
        "correct the request",
    },
    [PF_ERROR_NOT_FOUND] = {
        "org.portferry1.Error.NotFound",
        "check the name, and that OVN's northbound database has a Logical_Switch_Port for it",
    },
    [PF_ERROR_NOT_READY] = {
        "org.portferry1.Error.NotReady",
        "check that ovs-vswitchd and ovn-controller run on the destination and reach the southbound"
        " database, then migrate again",
    },
    [PF_ERROR_BUSY] = {
        "org.portferry1.Error.Busy",
        "wait until the other handover of this domain ends, or cancel its migration",
    },
    [PF_ERROR_CONFLICT] = {
        "org.portferry1.Error.Conflict",
        "find out what else writes the port's requested-chassis, then migrate again",
    },
    [PF_ERROR_TIMEOUT] = {
        "org.portferry1.Error.Timeout",
        "look for an overloaded database or host; if it's only a large network, raise the timeout"
        " in portferry.conf",
    },
    [PF_ERROR_UNREACHABLE] = {
        "org.portferry1.Error.Unreachable",
        "check that the service runs and the network to it; portferryd reconnects by itself",
    },
    [PF_ERROR_DENIED] = {
        "org.portferry1.Error.Denied",
        "run it as a user whom polkit allows this, and check the database's own access rules",
    },
    [PF_ERROR_WRONG_PHASE] = {
        "org.portferry1.Error.WrongPhase",
        "see the handover's properties Phase and Waiting for where it stands",
    },
};
/* clang-format on */

G_STATIC_ASSERT(G_N_ELEMENTS(errors) == PF_N_ERRORS);

/* clang-format off */
G_DEFINE_QUARK(pf-error-quark, pf_error)
/* clang-format on */

void pf_error_set(GError **error, PfError code, const char *domain, const char *port,
                  const char *format, ...)
{
    va_list args;

    if (!error) {
        return;
    }

    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);

    if (!domain && !port) {
        g_set_error_literal(error, PF_ERROR, code, text);
        return;
    }

    g_autofree char *safe_domain = domain ? pf_printable(domain) : NULL;
    g_autofree char *safe_port = port ? pf_printable(port) : NULL;

    g_set_error(error, PF_ERROR, code, "%s%s%s%s%s%s%s: %s", domain ? "domain '" : "",
                domain ? safe_domain : "", domain ? "'" : "", domain && port ? ", " : "",
                port ? "port '" : "", port ? safe_port : "", port ? "'" : "", text);
}

/* Any number can come in a GError, so that the table is never indexed unchecked. */
static PfError known_code(int code)
{
    return code >= 0 && code < PF_N_ERRORS ? (PfError)code : PF_ERROR_FAILED;
}

const char *pf_error_hint(PfError code)
{
    return errors[known_code((int)code)].hint;
}

char *pf_error_describe(const GError *error)
{
    if (error->domain != PF_ERROR) {
        return g_strdup(error->message);
    }
    return g_strdup_printf("%s; %s", error->message, pf_error_hint((PfError)error->code));
}

const char *pf_error_code_to_dbus_name(PfError code)
{
    return errors[known_code((int)code)].dbus_name;
}

const char *pf_error_to_dbus_name(const GError *error)
{
    return pf_error_code_to_dbus_name(error->domain == PF_ERROR ? (PfError)error->code
                                                                : PF_ERROR_FAILED);
}

bool pf_error_from_dbus_name(const char *name, PfError *code)
{
    for (int i = 0; i < PF_N_ERRORS; i++) {
        if (g_strcmp0(name, errors[i].dbus_name) == 0) {
            *code = (PfError)i;
            return true;
        }
    }
    *code = PF_ERROR_FAILED;
    return false;
}
