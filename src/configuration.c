/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "configuration.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "text.h"

#define SECONDS(s) ((gint64)((s) * (double)G_USEC_PER_SEC))

static const char *check_strategy(const char *value);
static const char *check_uri(const char *value);
static const char *check_remote(const char *value);
static const char *check_remote_or_none(const char *value);
bool pf_remote_is_none(const char *remote)
{
    return remote && g_str_equal(remote, "none");
}

static const char *check_remote_or_none(const char *value)
{
    return pf_remote_is_none(value) ? NULL : check_remote(value);
}

static const char *check_bridge(const char *value);
static const char *check_path(const char *value);
static const char *check_metrics(const char *value);

/* clang-format off */
static const PfConfigKey keys[] = {
    {"on-daemon-missing", PF_CONFIG_POLICY, "proceed", 0, 0,
     G_STRUCT_OFFSET(PfConfig, on_daemon_missing), NULL,
     "What the hook does with a migration when portferryd doesn't answer: proceed or refuse"},
    {"on-not-ready", PF_CONFIG_POLICY, "refuse", 0, 0,
     G_STRUCT_OFFSET(PfConfig, on_not_ready), NULL,
     "What happens to a migration whose destination isn't ready in time: refuse or proceed"},

    /* The upper limits of the first two are short because libvirt waits in its hook meanwhile, with
     * the domain locked. */
    {"preplug-timeout", PF_CONFIG_DURATION, "5", SECONDS(0.1), SECONDS(60),
     G_STRUCT_OFFSET(PfConfig, preplug_timeout), NULL,
     "Seconds that the pre-plug may take: one transaction in the northbound database"},
    {"ready-timeout", PF_CONFIG_DURATION, "10", SECONDS(0.1), SECONDS(300),
     G_STRUCT_OFFSET(PfConfig, ready_timeout), NULL,
     "Seconds that the destination may take to have every port's flows installed"},
    {"hold-timeout", PF_CONFIG_DURATION, "300", SECONDS(1), SECONDS(3600),
     G_STRUCT_OFFSET(PfConfig, hold_timeout), NULL,
     "Seconds that an operator may hold a handover at the gate; then on-not-ready decides"},
    {"release-timeout", PF_CONFIG_DURATION, "3", SECONDS(0), SECONDS(60),
     G_STRUCT_OFFSET(PfConfig, release_timeout), NULL,
     "Seconds that the destination waits for the source to let go of a port; 0: not at all"},
    {"teardown-timeout", PF_CONFIG_DURATION, "30", SECONDS(1), SECONDS(3600),
     G_STRUCT_OFFSET(PfConfig, teardown_timeout), NULL,
     "Seconds until the source must be clean once the guest runs at the destination"},
    {"incoming-timeout", PF_CONFIG_DURATION, "60", SECONDS(1), SECONDS(3600),
     G_STRUCT_OFFSET(PfConfig, incoming_timeout), NULL,
     "Seconds from the pre-plug until the guest must exist here, else it is rolled back"},
    {"cms-timeout", PF_CONFIG_DURATION, "60", SECONDS(1), SECONDS(3600),
     G_STRUCT_OFFSET(PfConfig, cms_timeout), NULL,
     "Seconds that a CMS which owns requested-chassis may take to follow the guest"},

    {"activation-strategy", PF_CONFIG_STRING, "rarp", 0, 0,
     G_STRUCT_OFFSET(PfConfig, activation_strategy), check_strategy,
     "OVN's activation-strategy during a handover: rarp; from OVN 25.09 a list of rarp, garp, na"},
    {"libvirt-uri", PF_CONFIG_STRING, "qemu:///system", 0, 0,
     G_STRUCT_OFFSET(PfConfig, libvirt_uri), check_uri,
     "Which libvirt to listen to"},
    {"ovs-db", PF_CONFIG_STRING, "unix:/run/openvswitch/db.sock", 0, 0,
     G_STRUCT_OFFSET(PfConfig, ovs_db), check_remote,
     "This host's Open vSwitch database"},
    {"ovn-nb", PF_CONFIG_OPTIONAL, "", 0, 0,
     G_STRUCT_OFFSET(PfConfig, ovn_nb), check_remote_or_none,
     "OVN's northbound database; none: left to a CMS; unset: from the host's Open_vSwitch row"},
    {"ovn-sb", PF_CONFIG_OPTIONAL, "", 0, 0,
     G_STRUCT_OFFSET(PfConfig, ovn_sb), check_remote,
     "OVN's southbound database; unset: ovn-remote of the host's own Open_vSwitch row"},
    {"integration-bridge", PF_CONFIG_STRING, "br-int", 0, 0,
     G_STRUCT_OFFSET(PfConfig, integration_bridge), check_bridge,
     "The bridge that ovn-controller works on"},
    {"ssl-private-key", PF_CONFIG_OPTIONAL, "", 0, 0,
     G_STRUCT_OFFSET(PfConfig, ssl_private_key), check_path,
     "File with this host's private key, for databases reached by ssl:"},
    {"ssl-certificate", PF_CONFIG_OPTIONAL, "", 0, 0,
     G_STRUCT_OFFSET(PfConfig, ssl_certificate), check_path,
     "File with the certificate that goes with the private key"},
    {"ssl-ca-cert", PF_CONFIG_OPTIONAL, "", 0, 0,
     G_STRUCT_OFFSET(PfConfig, ssl_ca_cert), check_path,
     "File with the certificate authority that signed the databases' certificates"},

    {"history", PF_CONFIG_COUNT, "100", 0, 100000,
     G_STRUCT_OFFSET(PfConfig, history), NULL,
     "How many ended handovers portferryd remembers"},
    {"metrics-file", PF_CONFIG_OPTIONAL, "", 0, 0,
     G_STRUCT_OFFSET(PfConfig, metrics_file), check_metrics,
     "File with metrics, for node_exporter's textfile collector"},
};
/* clang-format on */

static const char *const policy_names[] = {
    [PF_POLICY_PROCEED] = "proceed",
    [PF_POLICY_REFUSE] = "refuse",
};

const char *pf_policy_name(PfPolicy policy)
{
    return policy_names[policy];
}

const PfConfigKey *pf_config_keys(gsize *n_keys)
{
    *n_keys = G_N_ELEMENTS(keys);
    return keys;
}

static bool is_one_of(const char *word, const char *const *words)
{
    return g_strv_contains(words, word);
}

static const char *check_strategy(const char *value)
{
    static const char *const strategies[] = {"rarp", "garp", "na", NULL};
    g_auto(GStrv) pieces = g_strsplit(value, ",", -1);

    for (guint i = 0; pieces[i]; i++) {
        /* OVN doesn't trim here either. */
        if (!is_one_of(pieces[i], strategies)) {
            return "is not a list of rarp, garp and na, with commas and no spaces";
        }
        for (guint j = 0; j < i; j++) {
            if (strcmp(pieces[i], pieces[j]) == 0) {
                return "has the same strategy twice";
            }
        }
    }
    return NULL;
}

static const char *check_uri(const char *value)
{
    const char *colon = strchr(value, ':');

    if (!colon || colon == value || strpbrk(value, " \t")) {
        return "is not a URI such as qemu:///system";
    }
    return NULL;
}

/* A list is what a client of a clustered database is given. */
static const char *check_remote(const char *value)
{
    static const char *const methods[] = {"unix:", "tcp:", "ssl:"};
    g_auto(GStrv) pieces = g_strsplit(value, ",", -1);

    for (char **piece = pieces; *piece; piece++) {
        bool known = false;

        for (gsize i = 0; i < G_N_ELEMENTS(methods); i++) {
            known |= g_str_has_prefix(*piece, methods[i]) && (*piece)[strlen(methods[i])];
        }
        if (!known || strpbrk(*piece, " \t")) {
            return "is not a list of unix:FILE, tcp:IP:PORT or ssl:IP:PORT, with commas and no"
                   " spaces";
        }
    }
    return NULL;
}

static const char *check_bridge(const char *value)
{
    return strpbrk(value, " \t/") ? "is not the name of a bridge" : NULL;
}

static const char *check_path(const char *value)
{
    return *value == '/' ? NULL : "is not an absolute path";
}

/* node_exporter takes no file of another ending. */
static const char *check_metrics(const char *value)
{
    return *value == '/' && g_str_has_suffix(value, ".prom")
               ? NULL
               : "is not an absolute path that ends with .prom";
}

/* Returns how far the misspelt 'a' is from 'b', without regard to case.  Characters that are wrong,
 * too many, or swapped with their neighbour count thrice as much as those left out, because people
 * leave out whole words ("timeout", "bridge"). */
static guint edit_distance(const char *a, const char *b)
{
    enum { LEFT_OUT = 1, WRONG = 3 };
    gsize length = strlen(b);
    g_autofree guint *before = g_new(guint, length + 1);
    g_autofree guint *last = g_new(guint, length + 1);
    g_autofree guint *now = g_new(guint, length + 1);

    for (gsize j = 0; j <= length; j++) {
        last[j] = (guint)j * LEFT_OUT;
    }
    for (gsize i = 1; a[i - 1]; i++) {
        now[0] = (guint)i * WRONG;
        for (gsize j = 1; j <= length; j++) {
            char x = g_ascii_tolower(a[i - 1]);
            char y = g_ascii_tolower(b[j - 1]);

            now[j] = MIN(last[j] + WRONG, now[j - 1] + LEFT_OUT);
            now[j] = MIN(now[j], last[j - 1] + (x == y ? 0 : WRONG));
            if (i > 1 && j > 1 && x == g_ascii_tolower(b[j - 2]) &&
                y == g_ascii_tolower(a[i - 2])) {
                now[j] = MIN(now[j], before[j - 2] + WRONG);
            }
        }

        guint *spare = before;

        before = last;
        last = now;
        now = spare;
    }
    return last[length];
}

static const char *nearest_key(const char *name)
{
    const char *nearest = NULL;
    guint least = G_MAXUINT;

    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        guint distance = edit_distance(name, keys[i].name);

        if (distance < least) {
            least = distance;
            nearest = keys[i].name;
        }
    }
    return nearest;
}

/* Returns seconds as a decimal number without needless zeros.  Free with g_free(). */
static char *format_seconds(gint64 usec)
{
    char *text = g_strdup_printf("%" G_GINT64_FORMAT ".%06d", usec / G_USEC_PER_SEC,
                                 (int)(usec % G_USEC_PER_SEC));
    gsize length = strlen(text);

    while (text[length - 1] == '0') {
        length--;
    }
    if (text[length - 1] == '.') {
        length--;
    }
    text[length] = '\0';
    return text;
}

/* Parses digits, optionally a point and more digits, as microseconds.  By hand: strtod() would take
 * "1e3", "inf" and "0x5" too, none of which anybody means here. */
static bool parse_seconds(const char *text, gint64 *usec)
{
    gint64 value = 0;
    gint64 unit = G_USEC_PER_SEC;
    bool digits = false;

    for (; g_ascii_isdigit(*text); text++) {
        digits = true;
        /* Far beyond every limit, and far from overflow. */
        value = MIN(value * 10 + g_ascii_digit_value(*text), G_MAXINT32);
    }
    value *= G_USEC_PER_SEC;
    if (*text == '.') {
        text++;
        digits &= g_ascii_isdigit(*text);
        for (; g_ascii_isdigit(*text); text++) {
            unit /= 10;
            value += unit * g_ascii_digit_value(*text);
        }
    }
    *usec = value;
    return digits && !*text;
}

static bool bad_value(GError **error, const char *name, const char *value, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

static bool bad_value(GError **error, const char *name, const char *value, const char *format, ...)
{
    g_autofree char *safe = pf_printable(value);
    va_list args;

    va_start(args, format);
    g_autofree char *wrong = g_strdup_vprintf(format, args);
    va_end(args);

    pf_error_set(error, PF_ERROR_BAD_CONFIG, NULL, NULL, "%s: '%s' %s", name, safe, wrong);
    return false;
}

static bool set_policy(PfPolicy *field, const PfConfigKey *key, const char *value, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(policy_names); i++) {
        if (strcmp(value, policy_names[i]) == 0) {
            *field = (PfPolicy)i;
            return true;
        }
    }
    return bad_value(error, key->name, value, "is neither 'proceed' nor 'refuse'");
}

static bool set_duration(gint64 *field, const PfConfigKey *key, const char *value, GError **error)
{
    gint64 usec = 0;

    if (!parse_seconds(value, &usec)) {
        return bad_value(error, key->name, value,
                         "is not a number of seconds, such as 5 or 0.5, without a unit");
    }
    if (usec < key->min || usec > key->max) {
        g_autofree char *min = format_seconds(key->min);
        g_autofree char *max = format_seconds(key->max);

        return bad_value(error, key->name, value, "is not between %s and %s seconds", min, max);
    }
    *field = usec;
    return true;
}

static bool set_count(gint64 *field, const PfConfigKey *key, const char *value, GError **error)
{
    g_autoptr(GError) wrong = NULL;
    gint64 count = 0;

    if (!g_ascii_isdigit(*value) ||
        !g_ascii_string_to_signed(value, 10, key->min, key->max, &count, &wrong)) {
        return bad_value(error, key->name, value,
                         "is not a whole number between %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                         key->min, key->max);
    }
    *field = count;
    return true;
}

static bool set_string(char **field, const PfConfigKey *key, const char *value, GError **error)
{
    const char *wrong = NULL;

    if (!*value) {
        if (key->type == PF_CONFIG_OPTIONAL) {
            g_clear_pointer(field, g_free);
            return true;
        }
        pf_error_set(error, PF_ERROR_BAD_CONFIG, NULL, NULL,
                     "%s is empty; leave it out for the default, '%s'", key->name, key->dflt);
        return false;
    }
    if (!pf_text_is_clean(value, PF_CONFIG_MAX)) {
        wrong = "has control characters or isn't UTF-8";
    } else if (key->check) {
        wrong = key->check(value);
    }
    if (wrong) {
        return bad_value(error, key->name, value, "%s", wrong);
    }
    g_free(*field);
    *field = g_strdup(value);
    return true;
}

static bool set_key(PfConfig *config, const PfConfigKey *key, const char *value, GError **error)
{
    g_autofree char *stripped = g_strstrip(g_strdup(value));
    gpointer field = G_STRUCT_MEMBER_P(config, key->offset);

    switch (key->type) {
    case PF_CONFIG_POLICY:
        return set_policy(field, key, stripped, error);
    case PF_CONFIG_DURATION:
        return set_duration(field, key, stripped, error);
    case PF_CONFIG_COUNT:
        return set_count(field, key, stripped, error);
    case PF_CONFIG_STRING:
    case PF_CONFIG_OPTIONAL:
        return set_string(field, key, stripped, error);
    }
    g_assert_not_reached();
}

bool pf_config_set(PfConfig *config, const char *name, const char *value, GError **error)
{
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (strcmp(name, keys[i].name) == 0) {
            return set_key(config, &keys[i], value, error);
        }
    }

    g_autofree char *safe = pf_printable(name);

    /* What has been cut for printing is near to nothing, and comparing it takes no time. */
    pf_error_set(error, PF_ERROR_BAD_CONFIG, NULL, NULL,
                 "there is no key '%s'; the nearest is '%s'", safe, nearest_key(safe));
    return false;
}

char *pf_config_get(const PfConfig *config, const PfConfigKey *key)
{
    gconstpointer field = (const char *)config + key->offset;

    switch (key->type) {
    case PF_CONFIG_POLICY:
        return g_strdup(policy_names[*(const PfPolicy *)field]);
    case PF_CONFIG_DURATION:
        return format_seconds(*(const gint64 *)field);
    case PF_CONFIG_COUNT:
        return g_strdup_printf("%" G_GINT64_FORMAT, *(const gint64 *)field);
    case PF_CONFIG_STRING:
    case PF_CONFIG_OPTIONAL:
        return g_strdup(*(char *const *)field ? *(char *const *)field : "");
    }
    g_assert_not_reached();
}

PfConfig *pf_config_new(void)
{
    PfConfig *config = g_new0(PfConfig, 1);

    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autoptr(GError) error = NULL;

        if (!set_key(config, &keys[i], keys[i].dflt, &error)) {
            g_error("the default of a configuration key is wrong: %s", error->message);
        }
    }
    return config;
}

void pf_config_free(PfConfig *config)
{
    if (!config) {
        return;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (keys[i].type == PF_CONFIG_STRING || keys[i].type == PF_CONFIG_OPTIONAL) {
            g_free(G_STRUCT_MEMBER(char *, config, keys[i].offset));
        }
    }
    g_free(config);
}

/* What only several keys together can get wrong. */
static bool check_together(const PfConfig *config, GError **error)
{
    if (!config->ssl_private_key != !config->ssl_certificate) {
        pf_error_set(error, PF_ERROR_BAD_CONFIG, NULL, NULL,
                     "ssl-private-key and ssl-certificate go together, and %s is not set",
                     config->ssl_private_key ? "ssl-certificate" : "ssl-private-key");
        return false;
    }
    return true;
}

static bool parse(PfConfig *config, const char *text, gsize size, GError **error)
{
    g_autoptr(GKeyFile) file = g_key_file_new();

    /* Without the flag, a key with a language in brackets would vanish unseen. */
    if (!g_key_file_load_from_data(file, text, size, G_KEY_FILE_KEEP_TRANSLATIONS, error)) {
        return false;
    }

    g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);

    for (char **group = groups; *group; group++) {
        if (strcmp(*group, PF_CONFIG_GROUP) != 0) {
            g_autofree char *safe = pf_printable(*group);

            pf_error_set(error, PF_ERROR_BAD_CONFIG, NULL, NULL,
                         "there is no group [%s]; all keys belong into [%s]", safe,
                         PF_CONFIG_GROUP);
            return false;
        }
    }
    if (!groups[0]) {
        return true;
    }

    g_auto(GStrv) names = g_key_file_get_keys(file, PF_CONFIG_GROUP, NULL, NULL);

    for (char **name = names; name && *name; name++) {
        g_autoptr(GError) wrong = NULL;
        g_autofree char *value = g_key_file_get_string(file, PF_CONFIG_GROUP, *name, &wrong);

        /* A wrong escape sequence sets the error, and returns a value all the same. */
        if (wrong) {
            g_propagate_error(error, g_steal_pointer(&wrong));
            return false;
        }
        if (!pf_config_set(config, *name, value, error)) {
            return false;
        }
    }
    return check_together(config, error);
}

/* Reads the whole file into 'text'.  Returns false with errno set; EFBIG if it's too large.
 * Whatever is not a plain file must not block a hook, for which libvirt waits: a FIFO without a
 * writer is empty, an endless device too large. */
static bool read_file(const char *path, GString *text)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int saved = 0;

    if (fd < 0) {
        return false;
    }
    for (;;) {
        char block[4096];
        ssize_t n = read(fd, block, sizeof block);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            saved = errno;
        } else if (text->len + (gsize)n > PF_CONFIG_MAX) {
            saved = EFBIG;
        } else if (n > 0) {
            g_string_append_len(text, block, n);
            continue;
        }
        break;
    }
    close(fd);
    errno = saved;
    return saved == 0;
}

PfConfig *pf_config_load(const char *path, GError **error)
{
    g_autofree char *safe = pf_printable(path);
    g_autoptr(PfConfig) config = pf_config_new();
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) wrong = NULL;
    const char *invalid = NULL;

    if (!read_file(path, text)) {
        if (errno == ENOENT) {
            return g_steal_pointer(&config);
        }
        pf_error_set(error, PF_ERROR_BAD_CONFIG, NULL, NULL, "%s can't be read: %s", safe,
                     g_strerror(errno));
        return NULL;
    }
    if (!g_utf8_validate(text->str, (gssize)text->len, &invalid)) {
        guint line = 1;

        for (const char *p = text->str; p < invalid; p++) {
            line += *p == '\n';
        }
        pf_error_set(error, PF_ERROR_BAD_CONFIG, NULL, NULL,
                     "%s, line %u: neither NUL bytes nor anything but UTF-8 may be in it", safe,
                     line);
        return NULL;
    }
    if (!parse(config, text->str, text->len, &wrong)) {
        /* GKeyFile's own errors get our code too, and quote the file as it is. */
        g_autofree char *quoted =
            wrong->domain == G_KEY_FILE_ERROR ? pf_printable(wrong->message) : NULL;

        pf_error_set(error, PF_ERROR_BAD_CONFIG, NULL, NULL, "%s: %s", safe,
                     quoted ? quoted : wrong->message);
        return NULL;
    }
    config->from_file = true;
    return g_steal_pointer(&config);
}
