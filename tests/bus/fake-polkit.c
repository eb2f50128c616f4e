/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What portferryd may find behind polkit's name: fake-polkit BUS-ADDRESS MODE
 *
 *     yes        allows everything
 *     no         allows nothing
 *     challenge  wants a password, which nobody gives
 *     person     wants a password, and somebody gives it after 0.5 s if asked
 *     silent     never answers
 *     error      answers with an error of its own
 *     garbage    answers with a result that nobody expects
 *
 * Prints "ready", then one line for each question and each cancellation.  test_bus.py drives it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <systemd/sd-bus.h>

static const char *mode;

static int answer(sd_bus_message *m, int authorized, int challenge)
{
    return sd_bus_reply_method_return(m, "(bba{ss})", authorized, challenge, 0);
}

static int on_check(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    const char *kind, *key, *name, *action, *cancellation;
    char details[512] = "";
    unsigned flags;
    int r;

    if ((r = sd_bus_message_read(m, "(sa{sv})s", &kind, 1, &key, "s", &name, &action)) < 0 ||
        (r = sd_bus_message_enter_container(m, 'a', "{ss}")) < 0)
        return r;
    for (;;) {
        const char *detail, *value;
        size_t length = strlen(details);

        r = sd_bus_message_read(m, "{ss}", &detail, &value);
        if (r < 0)
            return r;
        if (r == 0)
            break;
        snprintf(details + length, sizeof(details) - length, " %s=%s", detail, value);
    }
    if ((r = sd_bus_message_exit_container(m)) < 0 ||
        (r = sd_bus_message_read(m, "us", &flags, &cancellation)) < 0)
        return r;
    printf("check %s %s=%s %s%s flags=%u cancellation='%s'\n", kind, key, name, action, details,
           flags, cancellation);
    fflush(stdout);

    if (strcmp(mode, "silent") == 0)
        return 1;
    if (strcmp(mode, "error") == 0)
        return sd_bus_error_setf(error, "org.freedesktop.PolicyKit1.Error.Failed",
                                 "Action %s is not registered", action);
    if (strcmp(mode, "garbage") == 0)
        return sd_bus_reply_method_return(m, "s", "perhaps");
    if (strcmp(mode, "person") == 0 && (flags & 1)) {
        usleep(500 * 1000);
        return answer(m, 1, 0);
    }
    return answer(m, strcmp(mode, "yes") == 0, strcmp(mode, "no") != 0);
}

static int on_cancel(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    const char *cancellation;
    int r = sd_bus_message_read(m, "s", &cancellation);

    if (r < 0)
        return r;
    printf("cancel '%s'\n", cancellation);
    fflush(stdout);
    return sd_bus_reply_method_return(m, NULL);
}

static const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us", "(bba{ss})", on_check,
                  SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("CancelCheckAuthorization", "s", NULL, on_cancel, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

/* sd-bus holds a service to the signatures that it has declared. */
static const sd_bus_vtable garbage_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us", "s", on_check,
                  SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

int main(int argc, char *argv[])
{
    sd_bus *bus = NULL;
    int r;

    if (argc != 3)
        return EXIT_FAILURE;
    mode = argv[2];

    if (sd_bus_new(&bus) < 0 || sd_bus_set_address(bus, argv[1]) < 0 ||
        sd_bus_set_bus_client(bus, 1) < 0 || sd_bus_start(bus) < 0 ||
        sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/PolicyKit1/Authority",
                                 "org.freedesktop.PolicyKit1.Authority",
                                 strcmp(mode, "garbage") == 0 ? garbage_vtable : vtable,
                                 NULL) < 0 ||
        sd_bus_request_name(bus, "org.freedesktop.PolicyKit1", 0) < 0)
        return EXIT_FAILURE;
    puts("ready");
    fflush(stdout);

    for (;;) {
        r = sd_bus_process(bus, NULL);
        if (r == 0)
            r = sd_bus_wait(bus, UINT64_MAX);
        if (r < 0)
            break;
    }
    /* The bus has left: what is still queued for it holds it. */
    sd_bus_close_unref(bus);
    return EXIT_FAILURE;
}
