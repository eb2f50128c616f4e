/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * portferry-hook: libvirt's QEMU hook (https://libvirt.org/hooks.html).
 *
 *     portferry-hook DOMAIN OPERATION SUBOPERATION EXTRA   < domain XML
 *
 *     migrate begin   portferryd binds the domain's ports to this host as well; an error stops the
 *                     migration before it begins
 *     started begin   waits until this host's network is ready for them, if portferryd expects the
 *                     domain; an error stops the migration before memory is copied.  portferryd
 *                     says how long that may take, and may say so anew (an operator holds the
 *                     gate), in the file by which it expects the domain.  If portferryd is
 *                     restarted meanwhile, the new one is asked
 *     release end     tells portferryd, if it expects the domain; always succeeds
 *     anything else   succeeds at once
 *
 * libvirt gives hooks no timeout and holds the domain's lock meanwhile, at times while its main
 * loop stands still.  So there is one deadline over everything, by a timer whose handler ends the
 * process by itself: nothing in here, no library, no bus, no disk can keep libvirt longer.
 *
 * Nothing is ever written to standard output: libvirt would take it for another domain XML.  What
 * goes to standard error is shown to whoever started the migration when the hook fails, and nobody
 * sees it otherwise; therefore warnings go to the journal.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libintl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include <systemd/sd-bus.h>

#include "configuration.h"
#include "domain-xml.h"
#include "message-ids.h"
#include "runtime.h"
#include "text.h"

#define BUS_NAME "org.portferry1"
#define BUS_PATH "/org/portferry1"
#define BUS_INTERFACE "org.portferry1.Manager"
#define BUS_ERROR_PREFIX "org.portferry1.Error."

/* Translates; xgettext looks for it. */
#define _(text) gettext(text)

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* What the hook adds to portferryd's own limits, so that portferryd's answer comes first. */
#define MIGRATE_GRACE_US (1 * G_USEC_PER_SEC)
#define STARTED_GRACE_US (2 * G_USEC_PER_SEC)

/* How long portferryd's name may be without an owner while the hook waits at the gate.  A unit that
 * fails is started again after half a second. */
#define RESTART_LIMIT_US (5 * G_USEC_PER_SEC)

#define RELEASE_LIMIT_US (G_USEC_PER_SEC / 2)
#define CONFIG_LIMIT_US (2 * G_USEC_PER_SEC)

/* Whatever the file of an expected domain says: somewhat more than the longest ready-timeout and
 * the longest hold-timeout one after the other. */
#define STARTED_LIMIT_MAX_US (G_GINT64_CONSTANT(2) * 60 * 60 * G_USEC_PER_SEC)

typedef enum {
    OP_NONE,
    OP_MIGRATE_BEGIN,
    OP_STARTED_BEGIN,
    OP_RELEASE_END,
} Operation;

/*
 * How the process ends when portferryd can't be asked, in time or at all.  The timer's handler
 * reads it, so it is only written while SIGALRM is blocked.
 */
static struct {
    int status;
    char error[1024]; /* for standard error */
    size_t error_length;
    char entry[1536]; /* for the journal, in its native protocol */
    size_t entry_length;
} verdict;

static int journal_fd = -1;
static struct sockaddr_un journal_address = {.sun_family = AF_UNIX};
static const char *domain_name; /* printable */
static gint64 started_us;
static gint64 deadline_us;

/* The file by which portferryd expects the domain, once it is known to: see extend(). */
static char *expected_path;
static volatile sig_atomic_t may_extend = TRUE;

static void journal_send(const char *entry, size_t length)
{
    ssize_t n;

    if (journal_fd < 0 || length == 0)
        return;
    n = sendto(journal_fd, entry, length, MSG_DONTWAIT | MSG_NOSIGNAL,
               (const struct sockaddr *)&journal_address, sizeof(journal_address));
    (void)n; /* there is nobody else to tell */
}

/* Async-signal-safe. */
static void __attribute__((noreturn)) execute_verdict(void)
{
    ssize_t n = 0;

    if (verdict.error_length > 0)
        n = write(STDERR_FILENO, verdict.error, verdict.error_length);
    (void)n;
    journal_send(verdict.entry, verdict.entry_length);
    _exit(verdict.status);
}

/* Sets the deadline, in the clock of g_get_monotonic_time().  setitimer() can't fail like this, and
 * its clock isn't the one that gets set.  Async-signal-safe. */
static void set_deadline_at(gint64 at_us)
{
    gint64 left_us = MAX(at_us - g_get_monotonic_time(), 1000);
    struct itimerval timer = {
        .it_value = {.tv_sec = left_us / G_USEC_PER_SEC, .tv_usec = left_us % G_USEC_PER_SEC},
    };

    deadline_us = at_us;
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* The same, counted from the start of the process. */
static void set_deadline(gint64 limit_us)
{
    set_deadline_at(started_us + limit_us);
}

/* Reads the file by which portferryd expects the domain.  Async-signal-safe. */
static gboolean read_expected(PfIncoming *incoming)
{
    char text[PF_INCOMING_MAX + 1];
    int fd = open(expected_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = -1;

    if (fd >= 0) {
        n = read(fd, text, sizeof(text));
        close(fd);
    }
    return n > 0 && n <= PF_INCOMING_MAX && pf_incoming_parse(text, (gsize)n, incoming);
}

/* Until when portferryd will have answered at the gate. */
static gint64 expected_deadline(const PfIncoming *incoming)
{
    gint64 limit = MIN(incoming->limit, STARTED_LIMIT_MAX_US);

    return MIN(MAX(started_us + limit, incoming->until), started_us + STARTED_LIMIT_MAX_US) +
           STARTED_GRACE_US;
}

/* Whether portferryd has said meanwhile that it takes longer.  Async-signal-safe. */
static gboolean extend(void)
{
    PfIncoming incoming;
    gint64 deadline;

    if (!may_extend || expected_path == NULL || !read_expected(&incoming))
        return FALSE;
    deadline = expected_deadline(&incoming);
    if (deadline <= g_get_monotonic_time())
        return FALSE;
    set_deadline_at(deadline);
    return TRUE;
}

static void on_alarm(int signal_number)
{
    int saved = errno;

    if (!extend())
        execute_verdict();
    errno = saved;
}

static void block_alarm(int how)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(how, &set, NULL);
}

/* The journal takes one line a field; 'text' is printable. */
static size_t format_entry(char *buffer, size_t size, const char *message_id, const char *text)
{
    int length = snprintf(buffer, size,
                          "PRIORITY=%d\nSYSLOG_IDENTIFIER=portferry-hook\nMESSAGE_ID=%s\n"
                          "DOMAIN=%s\nMESSAGE=%s",
                          LOG_WARNING, message_id, domain_name, text);

    return (size_t)CLAMP(length, 0, (int)size - 1);
}

/* Decides how the process ends if portferryd can't be asked.  'why' must be printable. */
static void set_verdict(PfPolicy policy, const char *why)
{
    int length;

    block_alarm(SIG_BLOCK);
    verdict.error_length = 0;
    verdict.entry_length = 0;
    if (policy == PF_POLICY_REFUSE) {
        length = snprintf(verdict.error, sizeof(verdict.error),
                          _("portferry: cannot take care of the network of domain '%s': %s\n"),
                          domain_name, why);
        verdict.error_length = (size_t)CLAMP(length, 0, (int)sizeof(verdict.error) - 1);
        verdict.status = EXIT_FAILURE;
    } else {
        char text[1024];

        snprintf(text, sizeof(text),
                 _("The migration of domain '%s' goes on without portferry: %s"), domain_name, why);
        verdict.entry_length =
            format_entry(verdict.entry, sizeof(verdict.entry), PF_MESSAGE_DAEMON_MISSING, text);
        verdict.status = EXIT_SUCCESS;
    }
    block_alarm(SIG_UNBLOCK);
}

static void __attribute__((noreturn)) give_up(PfPolicy policy, const char *why)
{
    g_autofree char *line = pf_printable(why);

    set_verdict(policy, line);
    block_alarm(SIG_BLOCK);
    execute_verdict();
}

static void handle_alarm(void)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    block_alarm(SIG_UNBLOCK);

    /* A bus that closes the connection is an error like another. */
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
}

static const char *path_of(const char *variable, const char *path)
{
#ifdef PF_HOOK_TEST
    const char *value = getenv(variable);

    if (value != NULL)
        return value;
#endif
    return path;
}

/* That of the host, which libvirtd has from systemd.  Costs a look at files; therefore after the
 * deadline is set, and not for the calls that end at once. */
static void speak_language(void)
{
    setlocale(LC_ALL, "");
    bindtextdomain(PF_GETTEXT_DOMAIN, path_of("PF_HOOK_LOCALE", PF_LOCALEDIR));
    textdomain(PF_GETTEXT_DOMAIN);
}

/* libvirt of an unprivileged user ("session") runs the same hooks. */
static gboolean is_system_libvirt(void)
{
#ifdef PF_HOOK_TEST
    if (getenv("PF_HOOK_NO_ROOT") != NULL)
        return TRUE;
#endif
    return geteuid() == 0;
}

/* A broken file must not stop migrations: it is most likely a slip in an edit, and the daemon,
 * which doesn't start with such a file, tells the administrator.  The defaults are what's
 * documented. */
static PfConfig *read_config(void)
{
    g_autoptr(GError) error = NULL;
    PfConfig *config;
    g_autofree char *line = NULL;
    char text[1024];
    char entry[1536];

    config = pf_config_load(path_of("PF_HOOK_CONFIG", PF_CONFIG_FILE), &error);
    if (config != NULL)
        return config;

    line = pf_printable(error->message);
    snprintf(text, sizeof(text), _("Using the default configuration: %s"), line);
    journal_send(entry, format_entry(entry, sizeof(entry), PF_MESSAGE_BAD_CONFIGURATION, text));
    return pf_config_new();
}

/* Reads standard input to its end.  Returns FALSE, with errno, when it can't or it's too much. */
static gboolean read_xml(GByteArray *xml)
{
    guint8 buffer[64 * 1024];

    for (;;) {
        ssize_t n = read(STDIN_FILENO, buffer, sizeof(buffer));

        if (n == 0)
            return TRUE;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return FALSE;
        if (xml->len + (gsize)n > PF_DOMAIN_XML_MAX) {
            errno = EFBIG;
            return FALSE;
        }
        g_byte_array_append(xml, buffer, (guint)n);
    }
}

/*
 * Finds the domain's UUID.  libvirt (virDomainDefFormatInternal()) writes <name> and <uuid> before
 * everything else, and escapes what stands in <name>, so the first <uuid> is the domain's.  A
 * parser would cost more than all the rest of this program: loading libxml2 alone takes 2 ms, for
 * each hook of each domain.
 */
static char *find_uuid(const GByteArray *xml)
{
    static const char open[] = "<uuid>";
    static const char close[] = "</uuid>";
    const char *start;
    const char *end;
    g_autofree char *text = NULL;

    if (xml->len == 0)
        return NULL;
    start = memmem(xml->data, xml->len, open, strlen(open));
    if (start == NULL)
        return NULL;
    start += strlen(open);
    end = memmem(start, (gsize)((const char *)xml->data + xml->len - start), close, strlen(close));
    if (end == NULL)
        return NULL;

    text = g_strndup(start, (gsize)(end - start));
    return pf_uuid_canonical(g_strstrip(text));
}

/* Whether portferryd expects any domain at all: an ordinary boot ends here. */
static gboolean expects_any(void)
{
    DIR *dir = opendir(path_of("PF_HOOK_INCOMING", PF_RUNTIME_INCOMING_DIR));
    const struct dirent *entry;
    gboolean found = FALSE;

    if (dir == NULL)
        return FALSE;
    while (!found && (entry = readdir(dir)) != NULL)
        found = entry->d_name[0] != '.';
    closedir(dir);
    return found;
}

/* Returns the path of the file by which portferryd expects the domain, or NULL if it doesn't. */
static char *find_expected(const char *uuid)
{
    g_autofree char *path = NULL;

    if (uuid == NULL)
        return NULL;
    path = g_build_filename(path_of("PF_HOOK_INCOMING", PF_RUNTIME_INCOMING_DIR), uuid, NULL);
    return access(path, F_OK) == 0 ? g_steal_pointer(&path) : NULL;
}

typedef struct {
    gboolean over;
    int result;
    sd_bus_error *error;
} Reply;

static int on_reply(sd_bus_message *message, void *userdata, sd_bus_error *unused)
{
    Reply *reply = userdata;

    reply->over = TRUE;
    if (sd_bus_message_is_method_error(message, NULL)) {
        sd_bus_error_copy(reply->error, sd_bus_message_get_error(message));
        reply->result = -sd_bus_message_get_errno(message);
    }
    return 0;
}

/* Until '*over', or an error.  The timer bounds it, sd-bus need not; and sd_bus_call() would give
 * up (before systemd 250) when the timer's handler returns. */
static int run_until(sd_bus *bus, const gboolean *over)
{
    while (!*over) {
        int r = sd_bus_process(bus, NULL);

        if (r == 0 && !*over)
            r = sd_bus_wait(bus, UINT64_MAX);
        if (r < 0 && r != -EINTR)
            return r;
    }
    return 0;
}

/* One method call, reply included. */
static int call(sd_bus *bus, const char *member, const GByteArray *xml, sd_bus_error *error)
{
    sd_bus_message *message = NULL;
    Reply reply = {.error = error};
    int r;

    r = sd_bus_message_new_method_call(bus, &message, BUS_NAME, BUS_PATH, BUS_INTERFACE, member);
    if (r < 0)
        return r;

    /* A daemon that was stopped on purpose stays stopped. */
    sd_bus_message_set_auto_start(message, 0);
    if ((r = sd_bus_message_append(message, "s", domain_name)) < 0 ||
        (r = sd_bus_message_append_array(message, 'y', xml->data, xml->len)) < 0 ||
        (r = sd_bus_call_async(bus, NULL, message, on_reply, &reply, UINT64_MAX)) < 0 ||
        (r = run_until(bus, &reply.over)) < 0)
        return r;

    /* The process ends soon after; freeing bus and message would only take time. */
    return reply.result;
}

/* Whether portferryd has ended, or had ended before. */
static gboolean is_gone(const sd_bus_error *error)
{
    return sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) ||
           sd_bus_error_has_name(error, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
           sd_bus_error_has_name(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER);
}

static int on_owner(sd_bus_message *message, void *userdata, sd_bus_error *unused)
{
    gboolean *there = userdata;
    const char *name;
    const char *before;
    const char *after;

    if (sd_bus_message_read(message, "sss", &name, &before, &after) >= 0 && *after != '\0')
        *there = TRUE;
    return 0;
}

static int on_owned(sd_bus_message *message, void *userdata, sd_bus_error *unused)
{
    gboolean *there = userdata;
    int owned = 0;

    if (sd_bus_message_read(message, "b", &owned) >= 0 && owned)
        *there = TRUE;
    return 0;
}

/* Waits until somebody has portferryd's name, for as long as a restart may take and no longer than
 * the deadline. */
static int wait_for_daemon(sd_bus *bus, PfPolicy policy)
{
    gint64 saved_us = deadline_us;
    gint64 limit_us = g_get_monotonic_time() + RESTART_LIMIT_US;
    sd_bus_slot *watch = NULL;
    sd_bus_slot *question = NULL;
    gboolean there = FALSE;
    int r;

    set_verdict(policy, _("portferryd has ended, and did not come back in time"));
    block_alarm(SIG_BLOCK);
    may_extend = FALSE;
    set_deadline_at(MIN(saved_us, limit_us));
    block_alarm(SIG_UNBLOCK);

    r = sd_bus_add_match_async(bus, &watch,
                               "type='signal',sender='org.freedesktop.DBus',"
                               "interface='org.freedesktop.DBus',"
                               "member='NameOwnerChanged',arg0='" BUS_NAME "'",
                               on_owner, NULL, &there);
    if (r >= 0)
        r = sd_bus_call_method_async(bus, &question, "org.freedesktop.DBus",
                                     "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                     "NameHasOwner", on_owned, &there, "s", BUS_NAME);
    if (r >= 0)
        r = run_until(bus, &there);
    sd_bus_slot_unref(question);
    sd_bus_slot_unref(watch);

    set_verdict(policy, _("portferryd did not answer in time"));
    block_alarm(SIG_BLOCK);
    may_extend = TRUE;
    set_deadline_at(saved_us);
    block_alarm(SIG_UNBLOCK);
    return r;
}

/* Asks portferryd for its verdict, and ends with it: its refusal is final, 'policy' is for when it
 * can't be asked.  'again': if it ends while it is asked, so is the next one. */
static void __attribute__((noreturn))
ask(const char *member, PfPolicy policy, const GByteArray *xml, gboolean again)
{
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus *bus = NULL;
    int r;

    /* DBUS_SYSTEM_BUS_ADDRESS, or the system bus. */
    r = sd_bus_open_system(&bus);
    if (r >= 0)
        r = call(bus, member, xml, &error);
    while (r < 0 && again && is_gone(&error)) {
        sd_bus_error_free(&error);
        r = wait_for_daemon(bus, policy);
        if (r >= 0)
            r = call(bus, member, xml, &error);
    }

    block_alarm(SIG_BLOCK);
    if (r >= 0)
        _exit(EXIT_SUCCESS);

    if (error.name != NULL && g_str_has_prefix(error.name, BUS_ERROR_PREFIX)) {
        fprintf(stderr, "portferry: %s\n", error.message != NULL ? error.message : error.name);
        fflush(stderr);
        _exit(EXIT_FAILURE);
    }

    /* Everything else, an unknown method included, means that no portferryd (of this version)
     * answered: no owner of the name, no reply before it died, no bus. */
    if (error.message != NULL) {
        give_up(policy, error.message);
    } else {
        g_autofree char *why = g_strdup_printf(_("no connection to the bus: %s"), g_strerror(-r));

        give_up(policy, why);
    }
}

static void __attribute__((noreturn)) migrate_begin(void)
{
    g_autoptr(GByteArray) xml = g_byte_array_new();
    PfConfig *config;

    set_verdict(PF_POLICY_PROCEED, _("the configuration could not be read in time"));
    set_deadline(CONFIG_LIMIT_US);
    speak_language();
    config = read_config();

    set_verdict(config->on_daemon_missing, _("portferryd did not answer in time"));
    set_deadline(config->preplug_timeout + MIGRATE_GRACE_US);
    if (!read_xml(xml)) {
        g_autofree char *why = g_strdup_printf(_("libvirt's domain XML: %s"), g_strerror(errno));

        give_up(config->on_daemon_missing, why);
    }
    ask("MigrateBegin", config->on_daemon_missing, xml, FALSE);
}

static void __attribute__((noreturn)) started_begin(void)
{
    g_autoptr(GByteArray) xml = g_byte_array_new();
    g_autofree char *uuid = NULL;
    g_autofree char *path = NULL;
    PfIncoming incoming = {0};
    PfPolicy otherwise;
    PfConfig *config;

    if (!expects_any())
        _exit(EXIT_SUCCESS);

    set_verdict(PF_POLICY_PROCEED, _("the configuration could not be read in time"));
    set_deadline(CONFIG_LIMIT_US);
    speak_language();
    config = read_config();

    /* Until it is known whether this is a domain that portferryd expects, nothing may stop it. */
    set_verdict(PF_POLICY_PROCEED, _("libvirt's domain XML did not come in time"));
    set_deadline(config->ready_timeout + STARTED_GRACE_US);
    if (!read_xml(xml)) {
        g_autofree char *why = g_strdup_printf(_("libvirt's domain XML: %s"), g_strerror(errno));

        give_up(PF_POLICY_PROCEED, why);
    }
    uuid = find_uuid(xml);
    path = find_expected(uuid);
    if (path == NULL)
        _exit(EXIT_SUCCESS);

    /* What portferryd says goes for this domain and this moment; the configuration is for when it
     * says nothing. */
    otherwise = config->on_not_ready;
    block_alarm(SIG_BLOCK);
    expected_path = g_steal_pointer(&path);
    if (read_expected(&incoming)) {
        otherwise = incoming.otherwise;
        set_deadline_at(expected_deadline(&incoming));
    }
    block_alarm(SIG_UNBLOCK);
    set_verdict(otherwise, _("portferryd did not answer in time"));
    ask("StartedBegin", otherwise, xml, TRUE);
}

static void __attribute__((noreturn)) release_end(void)
{
    g_autoptr(GByteArray) xml = g_byte_array_new();
    g_autofree char *uuid = NULL;
    g_autofree char *path = NULL;

    if (!expects_any())
        _exit(EXIT_SUCCESS);

    /* The verdict is empty: success, without a word. */
    set_deadline(RELEASE_LIMIT_US);
    if (!read_xml(xml))
        _exit(EXIT_SUCCESS);
    uuid = find_uuid(xml);
    path = find_expected(uuid);
    if (path != NULL) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus *bus = NULL;

        /* portferryd acknowledges at once.  Leaving earlier would lose the message: portferryd asks
         * the bus who sent it, and the bus only knows who is still there. */
        if (sd_bus_open_system(&bus) >= 0)
            call(bus, "Released", xml, &error);
    }
    _exit(EXIT_SUCCESS);
}

static Operation operation_of(const char *name, const char *suboperation)
{
    if (strcmp(name, "migrate") == 0 && strcmp(suboperation, "begin") == 0)
        return OP_MIGRATE_BEGIN;
    if (strcmp(name, "started") == 0 && strcmp(suboperation, "begin") == 0)
        return OP_STARTED_BEGIN;
    if (strcmp(name, "release") == 0 && strcmp(suboperation, "end") == 0)
        return OP_RELEASE_END;
    return OP_NONE;
}

int main(int argc, char *argv[])
{
    Operation operation = argc >= 4 ? operation_of(argv[2], argv[3]) : OP_NONE;

    /* Boots, stops, libvirtd's restarts: most calls end here. */
    if (operation == OP_NONE || !is_system_libvirt())
        return EXIT_SUCCESS;

    started_us = g_get_monotonic_time();
    domain_name = pf_printable(argv[1]);
    g_strlcpy(journal_address.sun_path, path_of("PF_HOOK_JOURNAL", JOURNAL_SOCKET),
              sizeof(journal_address.sun_path));
    journal_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    handle_alarm();

    switch (operation) {
    case OP_MIGRATE_BEGIN:
        migrate_begin();
    case OP_STARTED_BEGIN:
        started_begin();
    case OP_RELEASE_END:
        release_end();
    case OP_NONE:
        break;
    }
    return EXIT_SUCCESS;
}
