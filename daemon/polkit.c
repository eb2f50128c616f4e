/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "polkit.h"

#include <string.h>

/* https://www.freedesktop.org/software/polkit/docs/latest/eggdbus-interface-org.freedesktop.PolicyKit1.Authority.html
 */
#define POLKIT_NAME "org.freedesktop.PolicyKit1"
#define POLKIT_PATH "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE "org.freedesktop.PolicyKit1.Authority"
#define POLKIT_ERROR_PREFIX "org.freedesktop.PolicyKit1.Error."
#define POLKIT_ALLOW_USER_INTERACTION 1u

struct PfPolkitCheck {
    sd_bus *bus;
    sd_bus_slot *slot;
    char *cancellation; /* names the question if a person may be asked; else empty */
    PfPolkitDone done;
    gpointer userdata;
};

static void check_free(PfPolkitCheck *check)
{
    sd_bus_slot_unref(check->slot);
    sd_bus_unref(check->bus);
    g_free(check->cancellation);
    g_free(check);
}

/* Nobody waits for an answer. */
static void take_back(PfPolkitCheck *check)
{
    sd_bus_message *m = NULL;

    if (*check->cancellation == '\0' ||
        sd_bus_message_new_method_call(check->bus, &m, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE,
                                       "CancelCheckAuthorization") < 0)
        return;
    sd_bus_message_set_auto_start(m, 0);
    sd_bus_message_set_expect_reply(m, 0);
    if (sd_bus_message_append(m, "s", check->cancellation) >= 0)
        sd_bus_send(check->bus, m, NULL);
    sd_bus_message_unref(m);
}

static PfPolkitAnswer read_answer(sd_bus_message *reply)
{
    int authorized = 0, challenge = 0;

    if (sd_bus_message_enter_container(reply, 'r', "bba{ss}") < 0 ||
        sd_bus_message_read(reply, "bb", &authorized, &challenge) < 0)
        return PF_POLKIT_DENIED;
    return authorized ? PF_POLKIT_ALLOWED : challenge ? PF_POLKIT_CHALLENGE : PF_POLKIT_DENIED;
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *unused)
{
    PfPolkitCheck *check = userdata;
    const sd_bus_error *error = sd_bus_message_get_error(reply);

    if (error == NULL) {
        PfPolkitAnswer answer = read_answer(reply);

        check->done(answer,
                    answer == PF_POLKIT_CHALLENGE ? "polkit wants a password for it"
                                                  : "polkit does not allow it",
                    check->userdata);
    } else if (sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) ||
               sd_bus_error_has_name(error, SD_BUS_ERROR_TIMEOUT)) {
        take_back(check);
        check->done(PF_POLKIT_SILENT, "polkit has not answered in time", check->userdata);
    } else if (g_str_has_prefix(error->name, POLKIT_ERROR_PREFIX)) {
        /* Most likely an action that it doesn't know, since its file isn't installed. */
        g_autofree char *why = g_strdup_printf("polkit: %s", error->message);

        check->done(PF_POLKIT_DENIED, why, check->userdata);
    } else {
        g_autofree char *why = g_strdup_printf("polkit can't be asked: %s", error->message);

        check->done(PF_POLKIT_ABSENT, why, check->userdata);
    }
    check_free(check);
    return 0;
}

static int append_question(sd_bus_message *m, const PfPolkitCheck *check, const char *sender,
                           const char *action, const char *const *details)
{
    int r;

    if ((r = sd_bus_message_append(m, "(sa{sv})s", "system-bus-name", 1, "name", "s", sender,
                                   action)) < 0 ||
        (r = sd_bus_message_open_container(m, 'a', "{ss}")) < 0)
        return r;
    for (; *details != NULL; details += 2) {
        if ((r = sd_bus_message_append(m, "{ss}", details[0], details[1])) < 0)
            return r;
    }
    if ((r = sd_bus_message_close_container(m)) < 0)
        return r;
    return sd_bus_message_append(m, "us",
                                 *check->cancellation != '\0' ? POLKIT_ALLOW_USER_INTERACTION : 0,
                                 check->cancellation);
}

PfPolkitCheck *pf_polkit_check(sd_bus *bus, const char *sender, const char *action,
                               const char *const *details, gboolean interactive, PfPolkitDone done,
                               gpointer userdata)
{
    static guint64 last;
    PfPolkitCheck *check = g_new0(PfPolkitCheck, 1);
    sd_bus_message *m = NULL;
    int r;

    check->bus = sd_bus_ref(bus);
    check->done = done;
    check->userdata = userdata;
    check->cancellation =
        interactive ? g_strdup_printf("portferry-%" G_GUINT64_FORMAT, ++last) : g_strdup("");

    r = sd_bus_message_new_method_call(bus, &m, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE,
                                       "CheckAuthorization");
    if (r >= 0)
        r = append_question(m, check, sender, action, details);
    if (r >= 0)
        r = sd_bus_call_async(bus, &check->slot, m, on_answer, check,
                              interactive ? PF_POLKIT_PERSON_TIMEOUT_US : PF_POLKIT_TIMEOUT_US);
    sd_bus_message_unref(m);
    if (r < 0) {
        check_free(check);
        return NULL;
    }
    return check;
}

void pf_polkit_cancel(PfPolkitCheck *check)
{
    if (check == NULL)
        return;
    take_back(check);
    check_free(check);
}
