/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configuration.h"
#include "error.h"
#include "text.h"

#define GROUP "[portferry]\n"

static char *directory;
static char *path;

static PfConfig *load(const char *text, gssize size, GError **error)
{
    g_assert_true(g_file_set_contents(path, text, size, NULL));
    return pf_config_load(path, error);
}

static PfConfig *load_good(const char *text)
{
    g_autoptr(GError) error = NULL;
    PfConfig *config = load(text, -1, &error);

    g_assert_no_error(error);
    g_assert_nonnull(config);
    g_assert_true(config->from_file);
    return config;
}

static void assert_error(GError *error, const char *wanted)
{
    g_assert_error(error, PF_ERROR, PF_ERROR_BAD_CONFIG);
    if (!strstr(error->message, wanted)) {
        g_test_message("'%s' is not in '%s'", wanted, error->message);
        g_test_fail();
    }
    g_assert_true(pf_text_is_clean(error->message, 4096));
}

static void assert_bad(const char *text, const char *wanted)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(load(text, -1, &error));
    assert_error(error, wanted);
    g_assert_nonnull(strstr(error->message, path));
    g_assert_null(pf_config_load(path, NULL));
}

static void assert_defaults(const PfConfig *config)
{
    gsize n = 0;
    const PfConfigKey *keys = pf_config_keys(&n);

    for (gsize i = 0; i < n; i++) {
        g_autofree char *value = pf_config_get(config, &keys[i]);

        g_assert_cmpstr(value, ==, keys[i].dflt);
    }
}

static void test_defaults(void)
{
    g_autoptr(PfConfig) config = pf_config_new();

    g_assert_false(config->from_file);
    g_assert_cmpint(config->on_daemon_missing, ==, PF_POLICY_PROCEED);
    g_assert_cmpint(config->on_not_ready, ==, PF_POLICY_REFUSE);
    g_assert_cmpint(config->preplug_timeout, ==, 5 * G_USEC_PER_SEC);
    g_assert_cmpint(config->ready_timeout, ==, 10 * G_USEC_PER_SEC);
    g_assert_cmpint(config->hold_timeout, ==, 300 * G_USEC_PER_SEC);
    g_assert_cmpint(config->release_timeout, ==, 3 * G_USEC_PER_SEC);
    g_assert_cmpint(config->teardown_timeout, ==, 30 * G_USEC_PER_SEC);
    g_assert_cmpint(config->incoming_timeout, ==, 60 * G_USEC_PER_SEC);
    g_assert_cmpint(config->cms_timeout, ==, 60 * G_USEC_PER_SEC);
    g_assert_cmpstr(config->activation_strategy, ==, "rarp");
    g_assert_cmpstr(config->libvirt_uri, ==, "qemu:///system");
    g_assert_cmpstr(config->ovs_db, ==, "unix:/run/openvswitch/db.sock");
    g_assert_null(config->ovn_nb);
    g_assert_null(config->ovn_sb);
    g_assert_cmpstr(config->integration_bridge, ==, "br-int");
    g_assert_null(config->ssl_private_key);
    g_assert_null(config->ssl_certificate);
    g_assert_null(config->ssl_ca_cert);
    g_assert_cmpint(config->history, ==, 100);
    assert_defaults(config);
    pf_config_free(NULL);
}

/* Each field belongs to one key, and each key can be set, got, and set back. */
static void test_table(void)
{
    gsize n = 0;
    const PfConfigKey *keys = pf_config_keys(&n);
    static const char *const texts[] = {"garp", "unix:/a", "/a", "/a.prom"};

    g_assert_cmpuint(n, >, 0);
    for (gsize i = 0; i < n; i++) {
        g_autoptr(PfConfig) config = pf_config_new();
        g_autoptr(GError) error = NULL;
        const char *other = NULL;

        for (gsize j = 0; j < i; j++) {
            g_assert_cmpstr(keys[i].name, !=, keys[j].name);
            g_assert_cmpuint(keys[i].offset, !=, keys[j].offset);
        }
        g_assert_cmpuint(strlen(keys[i].summary), >, 10);
        g_assert_true(keys[i].type != PF_CONFIG_OPTIONAL || !*keys[i].dflt);

        switch (keys[i].type) {
        case PF_CONFIG_POLICY:
            other = strcmp(keys[i].dflt, "refuse") == 0 ? "proceed" : "refuse";
            break;
        case PF_CONFIG_DURATION:
            other = "1.25";
            break;
        case PF_CONFIG_COUNT:
            other = "7";
            break;
        case PF_CONFIG_STRING:
        case PF_CONFIG_OPTIONAL:
            for (gsize j = 0; j < G_N_ELEMENTS(texts) && !other; j++) {
                other = keys[i].check && keys[i].check(texts[j]) ? NULL : texts[j];
            }
            break;
        }
        g_assert_true(pf_config_set(config, keys[i].name, other, &error));
        g_assert_no_error(error);

        g_autofree char *value = pf_config_get(config, &keys[i]);

        g_assert_cmpstr(value, ==, other);
        for (gsize j = 0; j < n; j++) {
            g_autofree char *untouched = pf_config_get(config, &keys[j]);

            g_assert_true(i == j || strcmp(untouched, keys[j].dflt) == 0);
        }
        g_assert_true(pf_config_set(config, keys[i].name, keys[i].dflt, &error));
        g_assert_no_error(error);
        assert_defaults(config);
    }
}

static void test_absent(void)
{
    g_autofree char *nowhere = g_build_filename(directory, "nowhere", NULL);
    g_autofree char *deeper = g_build_filename(directory, "nowhere", "deeper", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(PfConfig) config = pf_config_load(nowhere, &error);

    g_assert_no_error(error);
    g_assert_false(config->from_file);
    assert_defaults(config);

    g_autoptr(PfConfig) second = pf_config_load(deeper, &error);

    g_assert_no_error(error);
    assert_defaults(second);
}

static void test_unreadable(void)
{
    g_autofree char *inside = g_build_filename(path, "inside", NULL);
    g_autofree char *fifo = g_build_filename(directory, "fifo", NULL);
    g_autofree char *loop = g_build_filename(directory, "loop", NULL);
    g_autoptr(GError) error = NULL;

    g_assert_null(pf_config_load(directory, &error));
    assert_error(error, "can't be read");
    g_clear_error(&error);

    g_assert_true(g_file_set_contents(path, "", 0, NULL));
    g_assert_null(pf_config_load(inside, &error));
    assert_error(error, "can't be read");
    g_clear_error(&error);

    g_assert_cmpint(symlink("loop", loop), ==, 0);
    g_assert_null(pf_config_load(loop, &error));
    assert_error(error, "can't be read");
    g_clear_error(&error);

    g_assert_null(pf_config_load("/dev/zero", &error));
    assert_error(error, "/dev/zero can't be read");
    g_clear_error(&error);

    /* Neither blocks; both are empty. */
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);

    g_autoptr(PfConfig) from_fifo = pf_config_load(fifo, &error);

    g_assert_no_error(error);
    assert_defaults(from_fifo);

    g_autoptr(PfConfig) from_null = pf_config_load("/dev/null", &error);

    g_assert_no_error(error);
    assert_defaults(from_null);

    if (geteuid() != 0) {
        g_assert_cmpint(g_chmod(path, 0), ==, 0);
        g_assert_null(pf_config_load(path, &error));
        assert_error(error, "can't be read");
        g_assert_cmpint(g_chmod(path, 0600), ==, 0);
    }
    g_unlink(fifo);
    g_unlink(loop);
}

static void test_empty(void)
{
    static const char *const files[] = {"",
                                        "\n\n",
                                        "# comment\n",
                                        GROUP,
                                        GROUP "\n# x\n",
                                        "[portferry]",
                                        GROUP "#history=5\n",
                                        GROUP GROUP};

    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autoptr(PfConfig) config = load_good(files[i]);

        assert_defaults(config);
    }
}

static void test_good_values(void)
{
    g_autoptr(PfConfig) config =
        load_good("# comment\n\n" GROUP "on-daemon-missing = refuse  \n"
                  "on-not-ready=proceed\n"
                  "preplug-timeout=\t0.1\n"
                  "ready-timeout=300\n"
                  "hold-timeout=3600\n"
                  "release-timeout=0\n"
                  "teardown-timeout=3600.000\n"
                  "incoming-timeout=1.0000019\n"
                  "activation-strategy=rarp,garp,na\n"
                  "libvirt-uri=qemu+unix:///system?socket=/run/x,y&mode=direct\n"
                  "ovs-db=tcp:127.0.0.1:6640\n"
                  "ovn-nb=ssl:192.0.2.1:6641,ssl:[2001:db8::2]:6641\n"
                  "ovn-sb=unix:/run/sb.sock\n"
                  "integration-bridge=br-ü\n"
                  "ssl-private-key=/etc/a b.pem\n"
                  "ssl-certificate=/etc/cert.pem\n"
                  "ssl-ca-cert=/etc/ca.pem\n"
                  "history=0\n");

    g_assert_cmpint(config->on_daemon_missing, ==, PF_POLICY_REFUSE);
    g_assert_cmpint(config->on_not_ready, ==, PF_POLICY_PROCEED);
    g_assert_cmpint(config->preplug_timeout, ==, 100000);
    g_assert_cmpint(config->ready_timeout, ==, 300 * G_USEC_PER_SEC);
    g_assert_cmpint(config->hold_timeout, ==, 3600 * (gint64)G_USEC_PER_SEC);
    g_assert_cmpint(config->release_timeout, ==, 0);
    g_assert_cmpint(config->teardown_timeout, ==, 3600 * (gint64)G_USEC_PER_SEC);
    g_assert_cmpint(config->incoming_timeout, ==, 1000001);
    g_assert_cmpstr(config->activation_strategy, ==, "rarp,garp,na");
    g_assert_cmpstr(config->libvirt_uri, ==, "qemu+unix:///system?socket=/run/x,y&mode=direct");
    g_assert_cmpstr(config->ovs_db, ==, "tcp:127.0.0.1:6640");
    g_assert_cmpstr(config->ovn_nb, ==, "ssl:192.0.2.1:6641,ssl:[2001:db8::2]:6641");
    g_assert_cmpstr(config->ovn_sb, ==, "unix:/run/sb.sock");
    g_assert_cmpstr(config->integration_bridge, ==, "br-ü");
    g_assert_cmpstr(config->ssl_private_key, ==, "/etc/a b.pem");
    g_assert_cmpstr(config->ssl_certificate, ==, "/etc/cert.pem");
    g_assert_cmpstr(config->ssl_ca_cert, ==, "/etc/ca.pem");
    g_assert_cmpint(config->history, ==, 0);

    g_autoptr(PfConfig) unset = load_good(GROUP "ovn-nb=\novn-sb=  \nhistory=1\nhistory=2\n");

    g_assert_null(unset->ovn_nb);
    g_assert_null(unset->ovn_sb);
    g_assert_cmpint(unset->history, ==, 2);
}

static void test_bad_values(void)
{
    static const struct {
        const char *key;
        const char *values[24];
    } cases[] = {
        {"on-not-ready",
         {"", "Refuse", "yes", "1", "refuse,proceed", "refused", "refuse # comment"}},
        {"ready-timeout",
         {"",     " ",          "0",  "0.09", "0.0999999", "300.000001", "301",
          "-5",   "+5",         "5s", "5 s",  "1e1",       "0x5",        "inf",
          "nan",  "5,5",        ".",  ".5",   "5.",        "5.5.5",      "99999999999999999999999",
          "five", "5 # comment"}},
        {"hold-timeout", {"", "0", "0.9", "3600.1", "1h"}},
        {"release-timeout", {"", "60.1", "-0", "-1"}},
        {"history", {"", "-1", "1.5", "100001", "+1", "0x10", "99999999999999999999", "many"}},
        {"activation-strategy",
         {"", "none", "RARP", "rarp,", ",rarp", "rarp, garp", "rarp,rarp", "rarp garp", ","}},
        {"libvirt-uri", {"", "system", ":///system", "qemu:/// system"}},
        {"ovs-db",
         {"", "/run/openvswitch/db.sock", "unix:", "punix:/x", "ptcp:6640", "tcp",
          "tcp:1.2.3.4:6640,", "tcp:1.2.3.4:6640, tcp:1.2.3.5:6640", "TCP:1.2.3.4:1"}},
        {"ovn-nb", {"http://x", "nine", ","}},
        {"integration-bridge", {"", "br int", "../br"}},
        {"ssl-ca-cert", {"ca.pem", "~/ca.pem", "file:///ca.pem", "/ca\\n.pem"}},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (gsize j = 0; cases[i].values[j]; j++) {
            g_autofree char *text =
                g_strdup_printf(GROUP "%s=%s\n", cases[i].key, cases[i].values[j]);

            assert_bad(text, cases[i].key);
        }
    }
    assert_bad(GROUP "ready-timeout=301\n", "ready-timeout: '301' is not between 0.1 and 300 sec");
    assert_bad(GROUP "history=x\n", "history: 'x' is not a whole number between 0 and 100000");
    assert_bad(GROUP "libvirt-uri=\\q\n", "libvirt-uri");
    assert_bad(GROUP "integration-bridge=\n", "leave it out for the default, 'br-int'");
    assert_bad(GROUP "ssl-private-key=/k\n", "ssl-certificate is not set");
    assert_bad(GROUP "ssl-certificate=/c\n", "ssl-private-key is not set");
}

static void test_unknown(void)
{
    static const struct {
        const char *key, *nearest;
    } cases[] = {
        {"on-deamon-missing", "on-daemon-missing"},
        {"ON-NOT-READY", "on-not-ready"},
        {"ready_timeout", "ready-timeout"},
        {"readytimeout", "ready-timeout"},
        {"timeout", "cms-timeout"},
        {"histroy", "history"},
        {"history[de]", "history"},
        {"ovn-nd", "ovn-nb"},
        {"libvirt-url", "libvirt-uri"},
        {"ssl-ca-certs", "ssl-ca-cert"},
        {"bridge", "integration-bridge"},
        {"teardown", "teardown-timeout"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(GROUP "%s=5\n", cases[i].key);
        g_autofree char *wanted = g_strdup_printf("there is no key '%s'; the nearest is '%s'",
                                                  cases[i].key, cases[i].nearest);

        assert_bad(text, wanted);
    }

    assert_bad("[portfery]\n", "there is no group [portfery]; all keys belong into [portferry]");
    assert_bad(GROUP "history=5\n[Portferry]\n", "there is no group [Portferry]");
    assert_bad(GROUP "[ovn]\nnb=x\n", "there is no group [ovn]");
}

static void test_not_a_key_file(void)
{
    g_autofree char *long_key = g_strnfill(100000, 'k');
    g_autofree char *long_line = g_strconcat(GROUP, long_key, "=5\n", NULL);
    g_autofree char *huge = g_strnfill(PF_CONFIG_MAX + 1, '\n');
    g_autofree char *largest = g_strnfill(PF_CONFIG_MAX, '\n');
    g_autoptr(GError) error = NULL;

    assert_bad("history=5\n", "");
    assert_bad(GROUP "history\n", "");
    assert_bad(GROUP "history: 5\n", "");
    assert_bad("[portferry\n", "");
    assert_bad("; not a comment here\n", "");
    assert_bad(GROUP "=5\n", "");
    assert_bad(GROUP "history=5\n\xff\n", "line 3: neither NUL bytes nor anything but UTF-8");
    assert_bad(long_line, "there is no key 'kkkk");
    assert_bad(huge, "can't be read");

    g_assert_null(load(GROUP "history=5\0\n", strlen(GROUP) + 11, &error));
    assert_error(error, "line 2: neither NUL bytes");

    g_autoptr(PfConfig) config = load_good(largest);

    assert_defaults(config);
}

/* What fails changes nothing. */
static void test_set(void)
{
    g_autoptr(PfConfig) config = pf_config_new();
    g_autoptr(GError) error = NULL;

    g_assert_true(pf_config_set(config, "ovn-nb", "tcp:192.0.2.1:6641", &error));
    g_assert_true(pf_config_set(config, "ovn-nb", config->ovn_nb, &error));
    g_assert_no_error(error);
    g_assert_false(pf_config_set(config, "ovn-nb", "nonsense", &error));
    assert_error(error, "ovn-nb: 'nonsense' is not a list");
    g_assert_cmpstr(config->ovn_nb, ==, "tcp:192.0.2.1:6641");
    g_clear_error(&error);
    g_assert_false(pf_config_set(config, "ovn-n", "x", &error));
    assert_error(error, "the nearest is 'ovn-nb'");
    g_clear_error(&error);
    g_assert_false(pf_config_set(config, "", "x", &error));
    assert_error(error, "there is no key ''");
    g_assert_false(pf_config_set(config, "libvirt-uri", "a:\nb", NULL));
    g_assert_true(pf_config_set(config, "ovn-nb", "", NULL));
    assert_defaults(config);
}

/* Returns the example file with every key uncommented. */
static char *uncommented(const char *text)
{
    g_autoptr(GRegex) regex = g_regex_new("^#([a-z-]+=)", G_REGEX_MULTILINE, 0, NULL);

    return g_regex_replace(regex, text, -1, 0, "\\1", 0, NULL);
}

static void test_example(void)
{
    g_autofree char *example = g_test_build_filename(G_TEST_DIST, "data", "portferry.conf", NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    gsize n = 0;
    const PfConfigKey *keys = pf_config_keys(&n);
    const char *after = NULL;

    g_assert_true(g_file_get_contents(example, &text, NULL, &error));
    g_assert_no_error(error);

    /* As it is, it changes nothing. */
    g_autoptr(PfConfig) shipped = load_good(text);

    assert_defaults(shipped);

    /* Every key is there, commented out, with its default, in the table's order... */
    after = text;
    for (gsize i = 0; i < n; i++) {
        g_autofree char *line = g_strdup_printf("\n#%s=%s\n", keys[i].name, keys[i].dflt);

        after = strstr(after, line);
        if (!after) {
            g_test_message("not in the example, or not in order: %s", line);
            g_test_fail();
            return;
        }
        after += 1;
    }

    /* ... and no other key, which strict reading would find. */
    g_autofree char *active = uncommented(text);
    g_autoptr(PfConfig) config = load_good(active);
    g_autoptr(GKeyFile) file = g_key_file_new();
    gsize n_active = 0;

    assert_defaults(config);
    g_assert_true(g_key_file_load_from_data(file, active, (gsize)-1, G_KEY_FILE_NONE, NULL));

    g_auto(GStrv) names = g_key_file_get_keys(file, PF_CONFIG_GROUP, &n_active, NULL);

    g_assert_cmpuint(n_active, ==, n);
    g_assert_nonnull(names);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    directory = g_dir_make_tmp("portferry-test-XXXXXX", NULL);
    g_assert_nonnull(directory);
    path = g_build_filename(directory, "portferry.conf", NULL);

    g_test_add_func("/configuration/defaults", test_defaults);
    g_test_add_func("/configuration/table", test_table);
    g_test_add_func("/configuration/absent", test_absent);
    g_test_add_func("/configuration/unreadable", test_unreadable);
    g_test_add_func("/configuration/empty", test_empty);
    g_test_add_func("/configuration/good-values", test_good_values);
    g_test_add_func("/configuration/bad-values", test_bad_values);
    g_test_add_func("/configuration/unknown", test_unknown);
    g_test_add_func("/configuration/not-a-key-file", test_not_a_key_file);
    g_test_add_func("/configuration/set", test_set);
    g_test_add_func("/configuration/example", test_example);

    int status = g_test_run();

    g_unlink(path);
    g_rmdir(directory);
    g_free(path);
    g_free(directory);
    return status;
}
