/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tells ThreadSanitizer where GLib puts threads in order.
 *
 * GLib is not built with it, and synchronizes by futexes of its own, so that
 * ThreadSanitizer takes everything that is handed over through a GThreadPool or
 * a GMainContext for a race. This library is preloaded and says which of GLib's
 * calls come before which: nothing but what GLib documents. A race that remains
 * is one.
 */
#include <dlfcn.h>
#include <glib.h>

/* Weak: the programs that a test starts are not sanitized. */
extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

static void before(void *address)
{
    if (__tsan_release) {
        __tsan_release(address);
    }
}

static void after(void *address)
{
    if (__tsan_acquire) {
        __tsan_acquire(address);
    }
}

#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

/* What is pushed to a pool comes before its function's call. */
typedef struct {
    GFunc func;
    gpointer data;
} Pool;

static void run_pooled(gpointer job, gpointer data)
{
    Pool *pool = data;
    after(job);
    pool->func(job, pool->data);
}

GThreadPool *g_thread_pool_new(GFunc func, gpointer data, gint max_threads, gboolean exclusive,
                               GError **error)
{
    if (!__tsan_release) {
        return NEXT(g_thread_pool_new)(func, data, max_threads, exclusive, error);
    }
    Pool *pool = g_new(Pool, 1); /* for ever: threads may outlive the pool */
    *pool = (Pool){func, data};
    before(pool);
    return NEXT(g_thread_pool_new)(run_pooled, pool, max_threads, exclusive, error);
}

gboolean g_thread_pool_push(GThreadPool *pool, gpointer job, GError **error)
{
    before(job);
    return NEXT(g_thread_pool_push)(pool, job, error);
}

/* Attaching a source comes before its callback, and that before the data's end. */
typedef struct {
    GSourceFunc func;
    gpointer data;
    GDestroyNotify destroy;
} Callback;

static gboolean run_callback(gpointer data)
{
    Callback *callback = data;
    after(callback);
    gboolean again = callback->func(callback->data);
    before(callback);
    return again;
}

static void destroy_callback(gpointer data)
{
    Callback *callback = data;
    after(callback);
    if (callback->destroy) {
        callback->destroy(callback->data);
    }
    g_free(callback);
}

void g_source_set_callback(GSource *source, GSourceFunc func, gpointer data, GDestroyNotify destroy)
{
    /* Callbacks of other sources have other arguments. */
    if (!__tsan_release || !func || source->source_funcs != &g_idle_funcs) {
        NEXT(g_source_set_callback)(source, func, data, destroy);
        return;
    }
    Callback *callback = g_new(Callback, 1);
    *callback = (Callback){func, data, destroy};
    before(callback);
    NEXT(g_source_set_callback)(source, run_callback, callback, destroy_callback);
}

/* Every use comes before the end. */
gboolean(g_atomic_ref_count_dec)(gatomicrefcount *count)
{
    before(count);
    gboolean last = NEXT(g_atomic_ref_count_dec)(count);
    after(count);
    return last;
}
