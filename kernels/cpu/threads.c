// A pool of threads that share one loop at a time: see threads.h.
//
// Each thread has a range of consecutive units, and `left` counts those that nobody has taken: who lowers it from l to
// l - 1 owns the unit l before the end of the range. A thread empties its own range in order, which keeps it on one
// stream of memory, then helps with the others. The remaining fields of the loop are read only by owners of a unit, and
// the caller does not touch them before every owner has reported in `finished`.
// Waiting threads spin for about ten microseconds, because the next loop of a forward pass is never far, then sleep;
// with more threads than cores they sleep at once. Threads beyond the limit sleep apart from the others until it is raised,
// so that their cores are free for another pool.
#include "kernels/cpu/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SPINS = 500, CACHE_LINE = 64 };

struct worker {
    _Alignas(CACHE_LINE) atomic_size_t left; // units of its range that nobody has taken
    struct hm_pool *pool;
    pthread_t thread;
    unsigned index;
};

struct hm_pool {
    // The loop in progress.
    hm_pool_task *task;
    void *context;
    size_t units;
    unsigned ranges; // the first so many threads have one: the limit when the loop began
    _Alignas(CACHE_LINE) atomic_uint loops;      // loops begun; workers wait for it to change
    _Alignas(CACHE_LINE) atomic_size_t finished; // units done

    _Alignas(CACHE_LINE) atomic_uint sleepers; // workers in, or about to enter, wait(work)
    atomic_bool caller_sleeps;
    atomic_bool stop;
    pthread_mutex_t mutex;
    pthread_cond_t work, done, raised;

    unsigned threads;
    atomic_uint active; // the limit
    unsigned spins;
    struct worker *workers; // [threads]; the first stands for the caller
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

static size_t range_end(size_t units, unsigned threads, unsigned index)
{
    return units / threads * (index + 1) + (index + 1 < threads ? 0 : units % threads);
}

// Does units of `range` until none is left to take.
static void empty_range(struct hm_pool *pool, unsigned range, unsigned index)
{
    atomic_size_t *counter = &pool->workers[range].left;
    size_t left = atomic_load_explicit(counter, memory_order_relaxed);
    while (left > 0) {
        if (!atomic_compare_exchange_weak_explicit(counter, &left, left - 1, memory_order_acquire,
                                                   memory_order_relaxed))
            continue;
        size_t units = pool->units;
        pool->task(pool->context, range_end(units, pool->ranges, range) - left, index);
        // From here on the loop may be over and the next one may be set up: units was read before.
        if (atomic_fetch_add(&pool->finished, 1) + 1 == units && atomic_load(&pool->caller_sleeps)) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->mutex);
        }
        left = atomic_load_explicit(counter, memory_order_relaxed);
    }
}

static void take_units(struct hm_pool *pool, unsigned index)
{
    for (unsigned i = 0; i < pool->threads; i++) empty_range(pool, (index + i) % pool->threads, index);
}

// Sleeps while the thread is beyond the limit.
static void wait_for_limit(struct hm_pool *pool, unsigned index)
{
    if (index < atomic_load(&pool->active)) return;
    pthread_mutex_lock(&pool->mutex);
    while (index >= atomic_load(&pool->active) && !atomic_load(&pool->stop)) pthread_cond_wait(&pool->raised, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

static void wait_for_loop(struct hm_pool *pool, unsigned seen)
{
    for (unsigned i = 0; i < pool->spins; i++) {
        if (atomic_load_explicit(&pool->loops, memory_order_relaxed) != seen) return;
        relax();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->loops) == seen) pthread_cond_wait(&pool->work, &pool->mutex);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct hm_pool *pool = worker->pool;
    unsigned seen = 0;
    for (;;) {
        wait_for_limit(pool, worker->index);
        wait_for_loop(pool, seen);
        seen = atomic_load(&pool->loops);
        if (atomic_load(&pool->stop)) return NULL;
        if (worker->index < atomic_load(&pool->active)) take_units(pool, worker->index);
    }
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
    unsigned active = atomic_load(&pool->active);
    if (active == 1 || units == 1) {
        for (size_t unit = 0; unit < units; unit++) task(context, unit, 0);
        return;
    }
    if (units == 0) return;
    pool->task = task;
    pool->context = context;
    pool->units = units;
    pool->ranges = active;
    atomic_store_explicit(&pool->finished, 0, memory_order_relaxed);
    size_t begin = 0;
    for (unsigned i = 0; i < active; i++) {
        size_t end = range_end(units, active, i);
        atomic_store_explicit(&pool->workers[i].left, end - begin, memory_order_release);
        begin = end;
    }
    atomic_fetch_add(&pool->loops, 1);
    // A worker that is about to sleep raised `sleepers` before it looked at `loops` for the last time.
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

void hm_pool_limit(struct hm_pool *pool, unsigned threads)
{
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->active, threads < 1 ? 1 : threads < pool->threads ? threads : pool->threads);
    pthread_cond_broadcast(&pool->raised);
    pthread_mutex_unlock(&pool->mutex);
}

// Stops and joins workers 1 .. started - 1 and frees the pool.
static void destroy(struct hm_pool *pool, unsigned started)
{
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->stop, true);
    atomic_fetch_add(&pool->loops, 1);
    pthread_cond_broadcast(&pool->work);
    pthread_cond_broadcast(&pool->raised);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 1; i < started; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->raised);
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
    struct worker *workers = aligned_alloc(CACHE_LINE, threads * sizeof *workers);
    if (!pool || !workers) {
        free(pool);
        free(workers);
        return hm_fail(err, HM_MEMORY, "threads: out of memory");
    }
    memset(pool, 0, sizeof *pool);
    atomic_init(&pool->loops, 0);
    atomic_init(&pool->finished, 0);
    atomic_init(&pool->sleepers, 0);
    atomic_init(&pool->caller_sleeps, false);
    atomic_init(&pool->stop, false);
    atomic_init(&pool->active, threads);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    pthread_cond_init(&pool->raised, NULL);
    pool->threads = threads;
    pool->spins = threads <= hm_pool_usable_cores() ? SPINS : 0;
    pool->workers = workers;
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (struct worker){.pool = pool, .index = i};
        atomic_init(&workers[i].left, 0);
    }
    for (unsigned i = 1; i < threads; i++) {
        int failure = pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
        if (failure) {
            destroy(pool, i);
            return hm_fail(err, HM_IO, "threads: cannot start thread %u of %u: %s", i + 1, threads, strerror(failure));
        }
    }
    *out = pool;
    return HM_OK;
}

void hm_pool_close(struct hm_pool *pool)
{
    if (pool) destroy(pool, pool->threads);
}
