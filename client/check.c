/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "terminal.h"

typedef struct {
    PfFindingLevel level;
    char *id, *text, *advice;
} Finding;

static const char *const level_names[PF_N_FINDINGS] = {
    [PF_FINDING_OK] = "ok",
    [PF_FINDING_UNKNOWN] = "unknown",
    [PF_FINDING_WARNING] = "warning",
    [PF_FINDING_PROBLEM] = "problem",
};

static char *config_file, *to_host;

static const GOptionEntry check_options[] = {
    {"to", 0, 0, G_OPTION_ARG_STRING, &to_host,
     N_("Where DOMAIN is to be migrated: a chassis or host name"), N_("HOST")},
    {"config", 0, 0, G_OPTION_ARG_FILENAME, &config_file,
     N_("Configuration file (default: /etc/portferry/portferry.conf)"), N_("FILE")},
    {NULL},
};

static void clear_finding(gpointer data)
{
    Finding *finding = data;

    g_free(finding->id);
    g_free(finding->text);
    g_free(finding->advice);
}

void pf_check_add(PfCheck *check, PfFindingLevel level, const char *id, const char *advice,
                  const char *format, ...)
{
    Finding finding = {.level = level, .id = g_strdup(id), .advice = g_strdup(advice)};
    va_list args;

    va_start(args, format);
    finding.text = g_strdup_vprintf(format, args);
    va_end(args);
    g_array_append_val(check->findings, finding);
    /* cppcheck-suppress memleak ; the array owns the strings now */
}

void pf_check_add_unknown(PfCheck *check, const char *id, const char *what, const PfRun *run)
{
    if (run->result == PF_RUN_MISSING) {
        pf_check_add(check, PF_FINDING_UNKNOWN, id, NULL,
                     _("%s: the program to ask with is not installed (%s)"), what, run->error);
    } else if (run->result == PF_RUN_TIMEOUT) {
        pf_check_add(check, PF_FINDING_UNKNOWN, id, NULL, _("%s: no answer in time"), what);
    } else {
        pf_check_add(check, PF_FINDING_UNKNOWN, id, NULL, "%s: %s", what,
                     *run->error ? run->error : _("the answer makes no sense"));
    }
}

void pf_check_add_unreadable(PfCheck *check, const char *id, const char *path, int error)
{
    g_autofree char *safe = pf_safe(path);

    pf_check_add(check, PF_FINDING_UNKNOWN, id, error == EACCES ? _("run this as root") : NULL,
                 _("%s could not be looked at: %s"), safe, g_strerror(error));
}

/* The first word of an id is the part's name. */
static bool same_part(const char *a, const char *b)
{
    gsize length = strcspn(a, ".");

    return length == strcspn(b, ".") && strncmp(a, b, length) == 0;
}

static const char *part_title(const char *id)
{
    static const struct {
        const char *part, *title;
    } titles[] = {
        {"hook.", N_("Hook")},
        {"libvirt.", N_("libvirt")},
        {"configuration.", N_("Configuration")},
        {"daemon.", N_("portferryd")},
        {"switch.", N_("Open vSwitch and ovn-controller")},
        {"southbound.", N_("Southbound database")},
        {"northbound.", N_("Northbound database")},
        {"tls.", N_("Certificates")},
        {"mtu.", N_("Size of packets")},
        {"domain.", N_("The migration")},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(titles); i++) {
        if (g_str_has_prefix(id, titles[i].part)) {
            return _(titles[i].title);
        }
    }
    return id;
}

static void print_finding(const Finding *finding)
{
    static const struct {
        const char *utf8, *ascii;
        PfStyle style;
    } marks[PF_N_FINDINGS] = {
        [PF_FINDING_OK] = {"✓", "ok", PF_STYLE_GOOD},
        [PF_FINDING_UNKNOWN] = {"?", "? ", PF_STYLE_DIM},
        [PF_FINDING_WARNING] = {"!", "! ", PF_STYLE_WARN},
        [PF_FINDING_PROBLEM] = {"✗", "X ", PF_STYLE_BAD},
    };
    PfStyle style = marks[finding->level].style;

    const char *mark = pf_glyph(marks[finding->level].utf8, marks[finding->level].ascii);
    guint indent = 3 + pf_text_width(mark);

    printf("  %s%s%s ", pf_style_on(style), mark, pf_style_off(style));
    pf_print_wrapped(finding->text, indent, indent);
    if (finding->advice) {
        const char *arrow = pf_glyph("→", "->");

        indent += 1 + pf_text_width(arrow);
        printf("%*s%s ", (int)indent - 1 - (int)pf_text_width(arrow), "", arrow);
        pf_print_wrapped(finding->advice, indent, indent);
    }
}

static void print_findings(const PfCheck *check, const guint *counts)
{
    const char *last = NULL;

    for (guint i = 0; i < check->findings->len; i++) {
        const Finding *finding = &g_array_index(check->findings, Finding, i);

        if (!last || !same_part(last, finding->id)) {
            printf("%s%s%s%s\n", last ? "\n" : "", pf_style_on(PF_STYLE_BOLD),
                   part_title(finding->id), pf_style_off(PF_STYLE_BOLD));
        }
        print_finding(finding);
        last = finding->id;
    }

    /* Three sentences, as no language agrees with another on how to count in one. */
    putchar('\n');
    if (counts[PF_FINDING_PROBLEM] > 0) {
        guint n = counts[PF_FINDING_PROBLEM];

        printf("%s", pf_style_on(PF_STYLE_BAD));
        printf(ngettext("%u problem.", "%u problems.", n), n);
        printf("%s", pf_style_off(PF_STYLE_BAD));
    } else {
        printf("%s%s%s", pf_style_on(PF_STYLE_GOOD), _("No problem."), pf_style_off(PF_STYLE_GOOD));
    }
    if (counts[PF_FINDING_WARNING] > 0) {
        putchar(' ');
        printf(ngettext("%u warning.", "%u warnings.", counts[PF_FINDING_WARNING]),
               counts[PF_FINDING_WARNING]);
    }
    if (counts[PF_FINDING_UNKNOWN] > 0) {
        putchar(' ');
        printf(ngettext("%u thing could not be looked at.", "%u things could not be looked at.",
                        counts[PF_FINDING_UNKNOWN]),
               counts[PF_FINDING_UNKNOWN]);
    }
    putchar('\n');
}

static void print_json(const PfCheck *check, const guint *counts)
{
    PfJson *json = pf_json_object();
    PfJson *findings = pf_json_array();

    for (guint i = 0; i < check->findings->len; i++) {
        const Finding *finding = &g_array_index(check->findings, Finding, i);
        PfJson *item = pf_json_object();

        pf_json_set(item, "id", pf_json_string(finding->id));
        pf_json_set(item, "level", pf_json_string(level_names[finding->level]));
        pf_json_set(item, "text", pf_json_string(finding->text));
        pf_json_set(item, "advice", pf_json_string(finding->advice));
        pf_json_add(findings, item);
    }
    pf_json_set(json, "ok", pf_json_bool(counts[PF_FINDING_PROBLEM] == 0));
    pf_json_set(json, "problems", pf_json_integer(counts[PF_FINDING_PROBLEM]));
    pf_json_set(json, "warnings", pf_json_integer(counts[PF_FINDING_WARNING]));
    pf_json_set(json, "unknown", pf_json_integer(counts[PF_FINDING_UNKNOWN]));
    pf_json_set(json, "findings", findings);
    pf_client_print_json(json);
}

void pf_check_configuration(PfCheck *check, const char *path)
{
    g_autofree char *real = path ? g_strdup(path) : pf_host_path(PF_CONFIG_FILE);
    g_autofree char *safe = pf_safe(real);
    g_autoptr(GError) error = NULL;

    check->config = pf_config_load(real, &error);
    if (!check->config) {
        check->config = pf_config_new();
        pf_check_add(check, PF_FINDING_PROBLEM, "configuration.wrong",
                     _("correct it: portferryd does not start with it, and the hook goes by the "
                       "defaults"),
                     "%s", error->message);
    } else if (check->config->from_file) {
        pf_check_add(check, PF_FINDING_OK, "configuration.read", NULL, _("%s is in order"), safe);
    } else {
        pf_check_add(check, PF_FINDING_OK, "configuration.defaults", NULL,
                     _("there is no %s: the defaults hold"), safe);
    }
}

static void check_metrics_file(PfCheck *check)
{
    const char *file = check->config->metrics_file;
    g_autofree char *folder = file ? g_path_get_dirname(file) : NULL;
    g_autofree char *real = folder ? pf_host_path(folder) : NULL;
    g_autofree char *safe = pf_safe(folder);

    if (real && !g_file_test(real, G_FILE_TEST_IS_DIR)) {
        pf_check_add(check, PF_FINDING_WARNING, "configuration.metrics",
                     _("make it, or correct metrics-file in portferry.conf"),
                     _("metrics-file is in %s, and there is no such folder"), safe);
    }
}

static PfExit run_check(PfClient *client, char **arguments)
{
    PfCheck check = {.client = client};
    guint counts[PF_N_FINDINGS] = {0};

    if (!arguments[0] != !to_host) {
        return pf_client_fail(client, PF_EXIT_USAGE, NULL, _("see 'portferry check --help'"), "%s",
                              _("DOMAIN and --to HOST go together"));
    }
    check.findings = g_array_new(FALSE, FALSE, sizeof(Finding));
    g_array_set_clear_func(check.findings, clear_finding);
    client->quiet = true;
    pf_client_open(client); /* a failure is found again where portferryd is asked */

    pf_check_configuration(&check, config_file);
    check_metrics_file(&check);
    pf_check_daemon(&check);
    pf_check_hook(&check);
    pf_check_libvirt(&check);
    pf_check_switch(&check);
    pf_check_southbound(&check);
    pf_check_northbound(&check);
    pf_check_tls(&check);
    pf_check_mtu(&check);
    if (arguments[0]) {
        pf_check_domain(&check, arguments[0], to_host);
    }

    for (guint i = 0; i < check.findings->len; i++) {
        counts[g_array_index(check.findings, Finding, i).level]++;
    }
    if (client->json) {
        print_json(&check, counts);
    } else {
        print_findings(&check, counts);
    }

    client->quiet = false;
    g_clear_pointer(&client->failure, g_free);
    g_array_unref(check.findings);
    pf_config_free(check.config);
    pf_json_free(check.host_rows);
    pf_json_free(check.chassis);
    g_free(check.system_id);
    g_free(check.nb_remote);
    g_free(check.sb_remote);
    g_clear_pointer(&check.handovers, g_hash_table_unref);
    return counts[PF_FINDING_PROBLEM] > 0 ? PF_EXIT_FAILED : PF_EXIT_OK;
}

const PfCommand pf_command_check = {
    .name = "check",
    .parameters = N_("[DOMAIN --to HOST]"),
    .summary = N_("Say what is right on this host, what is not, and what to do about it"),
    .options = check_options,
    .max_arguments = 1,
    .run = run_check,
};
