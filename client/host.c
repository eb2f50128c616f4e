/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <string.h>
#include <unistd.h>

#include "terminal.h"

#define MAX_FILE (64 * 1024)

char *pf_host_path(const char *path)
{
    const char *root = g_getenv("PORTFERRY_TEST_ROOT");

    return g_strconcat(root ? root : "", path, NULL);
}

char *pf_host_read(const char *path)
{
    g_autofree char *real = pf_host_path(path);
    g_autofree char *text = g_malloc(MAX_FILE + 1);
    gsize length = 0;
    ssize_t n = 0;
    int fd = open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        return NULL;
    }
    while (length < MAX_FILE && (n = read(fd, text + length, MAX_FILE - length)) > 0) {
        length += (gsize)n;
    }

    int saved = errno;

    close(fd);
    errno = saved;
    if (n < 0) {
        return NULL;
    }
    text[length] = '\0';
    return g_strchomp(g_steal_pointer(&text));
}

typedef struct {
    GMainLoop *loop;
    GSubprocess *process;
    PfRun *run;
    char *error;
    bool late;
} Job;

static gboolean on_late(gpointer data)
{
    Job *job = data;

    job->late = true;
    g_subprocess_force_exit(job->process);
    return G_SOURCE_CONTINUE; /* destroyed with its context */
}

static void on_ended(GObject *process, GAsyncResult *result, gpointer data)
{
    Job *job = data;

    g_subprocess_communicate_utf8_finish(G_SUBPROCESS(process), result, &job->run->output,
                                         &job->error, NULL);
    g_main_loop_quit(job->loop);
}

/* What a program complained with last is what ended it. */
static char *last_line(const char *text)
{
    g_autofree char *copy = g_strchomp(g_strdup(text ? text : ""));
    const char *newline = strrchr(copy, '\n');

    return pf_safe(newline ? newline + 1 : copy);
}

void pf_host_run(PfRun *run, guint timeout_s, const char *const *argv)
{
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_autoptr(GMainContext) context = g_main_context_new();
    g_autoptr(GMainLoop) loop = g_main_loop_new(context, FALSE);
    g_autoptr(GError) error = NULL;
    Job job = {.loop = loop, .run = run};

    *run = (PfRun){.result = PF_RUN_FAILED};
    g_subprocess_launcher_setenv(launcher, "LC_ALL", "C", TRUE);
    job.process = g_subprocess_launcher_spawnv(launcher, argv, &error);
    if (!job.process) {
        run->result = g_error_matches(error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT) ? PF_RUN_MISSING
                                                                                 : PF_RUN_FAILED;
        run->error = pf_safe(error->message);
        return;
    }

    GSource *timer = g_timeout_source_new_seconds(timeout_s);

    g_main_context_push_thread_default(context);
    g_source_set_callback(timer, on_late, &job, NULL);
    g_source_attach(timer, context);
    g_subprocess_communicate_utf8_async(job.process, NULL, NULL, on_ended, &job);
    g_main_loop_run(loop);
    g_main_context_pop_thread_default(context);
    g_source_destroy(timer);
    g_source_unref(timer);

    if (job.late) {
        run->result = PF_RUN_TIMEOUT;
        run->error = g_strdup("no answer in time");
    } else {
        run->error = last_line(job.error);
        if (g_subprocess_get_if_exited(job.process) &&
            g_subprocess_get_exit_status(job.process) == 0 && run->output) {
            run->result = PF_RUN_OK;
        }
    }
    g_free(job.error);
    g_object_unref(job.process);
}

void pf_run_clear(PfRun *run)
{
    g_clear_pointer(&run->output, g_free);
    g_clear_pointer(&run->error, g_free);
}
