// A pool of threads that share one loop at a time: see threads.h.
//
// `remaining` is the whole protocol: a thread that lowers it from r to r - 1 owns unit units - r. The other fields of
// the loop are read only by owners, and the caller does not touch them before every owner has reported in `finished`.
// Waiting threads spin for some tens of microseconds, because the next loop of a forward pass is never far, then sleep;
// with more threads than cores they sleep at once.
#include "kernels/cpu/threads.h"

#include "base/memory.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SPINS = 3000, CACHE_LINE = 64 };

struct worker {
    struct hm_pool *pool;
    pthread_t thread;
    unsigned index;
};

struct hm_pool {
    // The loop in progress.
    hm_pool_task *task;
    void *context;
    size_t units;
    _Alignas(CACHE_LINE) atomic_size_t remaining; // units nobody has taken
    _Alignas(CACHE_LINE) atomic_size_t finished;  // units done

    _Alignas(CACHE_LINE) atomic_uint sleepers; // workers in, or about to enter, wait(work)
    atomic_bool caller_sleeps;
    atomic_bool stop;
    pthread_mutex_t mutex;
    pthread_cond_t work, done;

    unsigned threads;
    unsigned spins;
    struct worker *workers; // threads - 1 of them
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

unsigned hm_pool_usable_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? (unsigned)count : 1;
}

// Does units until none is left to take.
static void take_units(struct hm_pool *pool, unsigned index)
{
    size_t left = atomic_load_explicit(&pool->remaining, memory_order_relaxed);
    while (left > 0) {
        if (!atomic_compare_exchange_weak_explicit(&pool->remaining, &left, left - 1, memory_order_acquire,
                                                   memory_order_relaxed))
            continue;
        size_t units = pool->units;
        pool->task(pool->context, units - left, index);
        // From here on the loop may be over and the next one may be set up: units was read before.
        if (atomic_fetch_add(&pool->finished, 1) + 1 == units && atomic_load(&pool->caller_sleeps)) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->mutex);
        }
        left = atomic_load_explicit(&pool->remaining, memory_order_relaxed);
    }
}

static void wait_for_work(struct hm_pool *pool)
{
    for (unsigned i = 0; i < pool->spins; i++) {
        if (atomic_load_explicit(&pool->remaining, memory_order_relaxed) > 0 || atomic_load(&pool->stop)) return;
        relax();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->remaining) == 0 && !atomic_load(&pool->stop)) pthread_cond_wait(&pool->work, &pool->mutex);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    while (!atomic_load(&worker->pool->stop)) {
        take_units(worker->pool, worker->index);
        wait_for_work(worker->pool);
    }
    return NULL;
}

static void wait_for_others(struct hm_pool *pool, size_t units)
{
    for (unsigned i = 0; i < pool->spins; i++) {
        if (atomic_load_explicit(&pool->finished, memory_order_acquire) == units) return;
        relax();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->caller_sleeps, true);
    while (atomic_load(&pool->finished) != units) pthread_cond_wait(&pool->done, &pool->mutex);
    atomic_store(&pool->caller_sleeps, false);
    pthread_mutex_unlock(&pool->mutex);
}

void hm_pool_run(struct hm_pool *pool, hm_pool_task *task, void *context, size_t units)
{
    if (pool->threads == 1 || units == 1) {
        for (size_t unit = 0; unit < units; unit++) task(context, unit, 0);
        return;
    }
    if (units == 0) return;
    pool->task = task;
    pool->context = context;
    pool->units = units;
    atomic_store_explicit(&pool->finished, 0, memory_order_relaxed);
    atomic_store(&pool->remaining, units);
    // A worker that is about to sleep raised `sleepers` before it looked at `remaining` for the last time.
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->mutex);
        pthread_cond_broadcast(&pool->work);
        pthread_mutex_unlock(&pool->mutex);
    }
    take_units(pool, 0);
    wait_for_others(pool, units);
}

unsigned hm_pool_threads(const struct hm_pool *pool)
{
    return pool->threads;
}

// Stops and joins the first `started` workers and frees the pool.
static void destroy(struct hm_pool *pool, unsigned started)
{
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->stop, true);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < started; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->workers);
    free(pool);
}

hm_status hm_pool_open(unsigned threads, struct hm_pool **out, struct hm_error *err)
{
    *out = NULL;
    if (threads < 1 || threads > HM_POOL_MOST)
        return hm_fail(err, HM_USAGE, "threads: expected 1 to %d, found %u", HM_POOL_MOST, threads);
    struct hm_pool *pool = aligned_alloc(CACHE_LINE, sizeof *pool);
    struct worker *workers = hm_calloc(threads, sizeof *workers);
    if (!pool || !workers) {
        free(pool);
        free(workers);
        return hm_fail(err, HM_MEMORY, "threads: out of memory");
    }
    memset(pool, 0, sizeof *pool);
    atomic_init(&pool->remaining, 0);
    atomic_init(&pool->finished, 0);
    atomic_init(&pool->sleepers, 0);
    atomic_init(&pool->caller_sleeps, false);
    atomic_init(&pool->stop, false);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->threads = threads;
    pool->spins = threads <= hm_pool_usable_cores() ? SPINS : 0;
    pool->workers = workers;
    for (unsigned i = 0; i + 1 < threads; i++) {
        workers[i] = (struct worker){.pool = pool, .index = i + 1};
        int failure = pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
        if (failure) {
            destroy(pool, i);
            return hm_fail(err, HM_IO, "threads: cannot start thread %u of %u: %s", i + 2, threads, strerror(failure));
        }
    }
    *out = pool;
    return HM_OK;
}

void hm_pool_close(struct hm_pool *pool)
{
    if (pool) destroy(pool, pool->threads - 1);
}
