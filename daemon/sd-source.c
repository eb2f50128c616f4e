/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "sd-source.h"

typedef struct {
    GSource source;
    sd_event *event;
} PfSdSource;

static gboolean sd_source_prepare(GSource *source, gint *timeout)
{
    sd_event *event = ((PfSdSource *)source)->event;

    /* Timers are descriptors to sd-event, so the descriptor alone wakes us. */
    *timeout = -1;

    /*
     * GLib skips check() of a source when one of a higher priority is ready.  Then the event loop
     * is still armed from the last turn; arm it anew, since a message may have been queued on the
     * bus meanwhile, and only preparation makes sd-bus ask for a writable socket.
     */
    if (sd_event_get_state(event) == SD_EVENT_ARMED && sd_event_wait(event, 0) > 0)
        return TRUE;

    switch (sd_event_get_state(event)) {
    case SD_EVENT_INITIAL:
        return sd_event_prepare(event) > 0;
    case SD_EVENT_PENDING:
    case SD_EVENT_FINISHED:
        return TRUE;
    default:
        return FALSE;
    }
}

static gboolean sd_source_check(GSource *source)
{
    sd_event *event = ((PfSdSource *)source)->event;

    if (sd_event_get_state(event) == SD_EVENT_ARMED)
        return sd_event_wait(event, 0) > 0;

    return sd_event_get_state(event) == SD_EVENT_PENDING;
}

static gboolean sd_source_dispatch(GSource *source, GSourceFunc callback, gpointer userdata)
{
    sd_event *event = ((PfSdSource *)source)->event;

    if (sd_event_get_state(event) == SD_EVENT_FINISHED)
        return G_SOURCE_REMOVE;

    /* A handler's error disables that handler; it is no reason to stop the others. */
    sd_event_dispatch(event);

    return sd_event_get_state(event) == SD_EVENT_FINISHED ? G_SOURCE_REMOVE : G_SOURCE_CONTINUE;
}

static void sd_source_finalize(GSource *source)
{
    sd_event_unref(((PfSdSource *)source)->event);
}

guint pf_sd_source_add(sd_event *event, gint priority)
{
    static GSourceFuncs funcs = {
        .prepare = sd_source_prepare,
        .check = sd_source_check,
        .dispatch = sd_source_dispatch,
        .finalize = sd_source_finalize,
    };
    GSource *source = g_source_new(&funcs, sizeof(PfSdSource));
    guint id;

    ((PfSdSource *)source)->event = sd_event_ref(event);
    g_source_set_name(source, "sd-event");
    g_source_set_priority(source, priority);
    g_source_add_unix_fd(source, sd_event_get_fd(event), G_IO_IN | G_IO_HUP | G_IO_ERR);

    id = g_source_attach(source, NULL);
    g_source_unref(source);
    return id;
}
