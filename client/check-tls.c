/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The files for databases that are reached by ssl: readable, fitting each other, in date. */

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "terminal.h"

#define EXPIRY_WARNING_DAYS 30

static FILE *open_file(PfCheck *check, const char *id, const char *key, const char *path)
{
    FILE *file = fopen(path, "re");

    if (!file && errno == EACCES) {
        pf_check_add_unreadable(check, id, path, errno);
    } else if (!file) {
        g_autofree char *safe = pf_safe(path);

        pf_check_add(check, PF_FINDING_PROBLEM, id, _("correct the path in portferry.conf"),
                     _("%s: %s can't be read: %s"), key, safe, g_strerror(errno));
    }
    return file;
}

static void check_dates(PfCheck *check, const char *id, const char *key, X509 *certificate)
{
    int days = 0, seconds = 0;
    const ASN1_TIME *until = X509_get0_notAfter(certificate);
    g_autofree char *date = NULL;
    struct tm tm;

    if (!ASN1_TIME_diff(&days, &seconds, NULL, until) || !ASN1_TIME_to_tm(until, &tm)) {
        pf_check_add(check, PF_FINDING_UNKNOWN, id, NULL, _("%s: its dates can't be read"), key);
        return;
    }
    date = g_strdup_printf("%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
    if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
        pf_check_add(check, PF_FINDING_PROBLEM, id, _("check this host's clock"),
                     _("%s: the certificate is not valid yet"), key);
    } else if (days < 0 || seconds < 0) {
        pf_check_add(check, PF_FINDING_PROBLEM, id,
                     _("renew it, then 'systemctl reload portferryd'"),
                     _("%s: the certificate expired on %s"), key, date);
    } else if (days < EXPIRY_WARNING_DAYS) {
        pf_check_add(check, PF_FINDING_WARNING, id,
                     _("renew it, then 'systemctl reload portferryd'"),
                     ngettext("%s: the certificate expires in %d day, on %s",
                              "%s: the certificate expires in %d days, on %s", (gulong)days),
                     key, days, date);
    } else {
        pf_check_add(check, PF_FINDING_OK, id, NULL, _("%s: valid until %s"), key, date);
    }
}

/* All certificates in a file: the one whose date comes first is shown.  The first one of the file
 * is the caller's. */
static X509 *check_certificates(PfCheck *check, const char *id, const char *key, const char *path)
{
    FILE *file = open_file(check, id, key, path);
    X509 *first = NULL, *worst = NULL, *certificate;

    if (!file) {
        return NULL;
    }
    while ((certificate = PEM_read_X509(file, NULL, NULL, NULL))) {
        if (!worst ||
            ASN1_TIME_compare(X509_get0_notAfter(certificate), X509_get0_notAfter(worst)) < 0) {
            X509_free(worst);
            X509_up_ref(certificate);
            worst = certificate;
        }
        if (first) {
            X509_free(certificate);
        } else {
            first = certificate;
        }
    }
    ERR_clear_error();
    fclose(file);
    if (!first) {
        g_autofree char *safe = pf_safe(path);

        pf_check_add(check, PF_FINDING_PROBLEM, id, _("correct the path in portferry.conf"),
                     _("%s: there is no certificate in %s"), key, safe);
    } else {
        check_dates(check, id, key, worst);
    }
    X509_free(worst);
    return first;
}

/* No question on the terminal: a key with a password is of no use to a daemon. */
static int no_password(char *buffer, int size, int writing, void *data)
{
    return -1;
}

static void check_key(PfCheck *check, X509 *certificate)
{
    const char *path = check->config->ssl_private_key;
    FILE *file = open_file(check, "tls.key", "ssl-private-key", path);
    struct stat st;
    EVP_PKEY *key;

    if (!file) {
        return;
    }
    key = PEM_read_PrivateKey(file, NULL, no_password, NULL);
    ERR_clear_error();
    if (!key) {
        g_autofree char *safe = pf_safe(path);

        pf_check_add(check, PF_FINDING_PROBLEM, "tls.key", _("correct the path in portferry.conf"),
                     _("ssl-private-key: there is no key without a password in %s"), safe);
    } else if (certificate && !X509_check_private_key(certificate, key)) {
        pf_check_add(check, PF_FINDING_PROBLEM, "tls.key-mismatch",
                     _("correct ssl-private-key or ssl-certificate in portferry.conf"),
                     _("ssl-private-key does not belong to ssl-certificate"));
    } else if (fstat(fileno(file), &st) == 0 && (st.st_mode & S_IROTH)) {
        g_autofree char *safe = pf_safe(path);
        g_autofree char *advice = g_strdup_printf("chmod o-r '%s'", safe);

        pf_check_add(check, PF_FINDING_WARNING, "tls.key-open", advice,
                     _("ssl-private-key: every user of this host can read %s"), safe);
    } else if (certificate) {
        pf_check_add(check, PF_FINDING_OK, "tls.key", NULL,
                     _("ssl-private-key belongs to ssl-certificate"));
    }
    ERR_clear_error();
    EVP_PKEY_free(key);
    fclose(file);
}

static bool uses_ssl(const char *remote)
{
    return remote && strstr(remote, "ssl:");
}

void pf_check_tls_find(PfCheck *check)
{
    PfConfig *config = check->config;
    const PfJson *row = pf_json_at(pf_ovsdb_tool_rows(check->host_rows, 3), 0);

    if (row && !config->ssl_certificate && !config->ssl_ca_cert) {
        config->ssl_private_key = g_strdup(pf_ovsdb_tool_get(row, "private_key"));
        config->ssl_certificate = g_strdup(pf_ovsdb_tool_get(row, "certificate"));
        config->ssl_ca_cert = g_strdup(pf_ovsdb_tool_get(row, "ca_cert"));
        check->tls_from_switch = true;
    }
}

/* By the name in it, the southbound database's role-based access control knows a chassis. */
static void check_name(PfCheck *check, X509 *certificate)
{
    char name[256];
    int length = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name,
                                           sizeof name);

    if (!uses_ssl(check->sb_remote) || !check->system_id) {
        return;
    }
    if (length > 0 && g_str_equal(name, check->system_id)) {
        pf_check_add(check, PF_FINDING_OK, "tls.name", NULL,
                     _("the certificate is in this host's name: it will do for a southbound "
                       "database with role-based access control"));
    } else {
        g_autofree char *safe = pf_safe(length > 0 ? name : "");

        pf_check_add(check, PF_FINDING_WARNING, "tls.name",
                     _("a certificate whose common name is this host's system-id; no hurry if that "
                       "database has no role-based access control"),
                     _("the certificate is in the name of '%s', not of this host's system-id"),
                     safe);
    }
}

void pf_check_tls(PfCheck *check)
{
    const PfConfig *config = check->config;
    bool needed = uses_ssl(check->nb_remote) || uses_ssl(check->sb_remote);
    X509 *certificate = NULL;

    if (!config->ssl_certificate && !config->ssl_ca_cert) {
        if (needed) {
            pf_check_add(check, PF_FINDING_PROBLEM, "tls.unset",
                         _("set ssl-private-key, ssl-certificate and ssl-ca-cert in "
                           "portferry.conf, or for ovn-controller too: ovs-vsctl set-ssl"),
                         _("a database is reached by ssl:, but no certificate is configured"));
        } else {
            pf_check_add(check, PF_FINDING_OK, "tls.unused", NULL,
                         _("no database is reached by ssl:, and no certificate is configured"));
        }
        return;
    }
    if (check->tls_from_switch && !needed) {
        pf_check_add(check, PF_FINDING_OK, "tls.unused", NULL,
                     _("no database is reached by ssl:, and no certificate is configured"));
        return;
    }
    if (check->tls_from_switch) {
        pf_check_add(check, PF_FINDING_OK, "tls.switch", NULL,
                     _("portferryd shows the databases ovn-controller's certificate (ovs-vsctl "
                       "get-ssl)"));
    }
    if (config->ssl_certificate) {
        certificate = check_certificates(check, "tls.certificate", "ssl-certificate",
                                         config->ssl_certificate);
        check_key(check, certificate);
        if (certificate) {
            check_name(check, certificate);
        }
        X509_free(certificate);
    }
    if (config->ssl_ca_cert) {
        X509_free(check_certificates(check, "tls.ca", "ssl-ca-cert", config->ssl_ca_cert));
    } else if (needed) {
        pf_check_add(check, PF_FINDING_PROBLEM, "tls.ca", _("set ssl-ca-cert in portferry.conf"),
                     _("a database is reached by ssl:, but ssl-ca-cert is not configured"));
    }
}
