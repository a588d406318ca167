// The ordered, bounded queue: see queue.h. A ring of slots with three positions, finished <= taken <= pushed: workers
// take at `taken`, the writer waits for the slot at `finished` to be prepared. The thread that closes a queue works on
// what is left itself: it has nothing else to do, and a worker in the background could not raise its priority again.
#include "certify/queue.h"

#include "base/clock.h"
#include "base/memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct slot {
    void *job;
    size_t weight;
    bool prepared;
    hm_status rc;           // of the work
    struct hm_error *error; // when rc; NULL if memory was short. Owned
};

struct hm_queue {
    struct hm_queue_options options;
    pthread_mutex_t mutex;   // guards everything below
    pthread_cond_t room;     // a job was finished: the producer may push
    pthread_cond_t work;     // a job was pushed
    pthread_cond_t prepared; // the slot at `finished` is prepared
    struct slot *slots;      // [options.jobs]
    uint64_t pushed, taken, finished;
    size_t weight; // in the queue
    bool closing;
    hm_status rc; // the kept failure
    struct hm_error error;
    struct hm_queue_statistics statistics;
    pthread_t *workers; // [options.threads]
    unsigned workers_started;
    pthread_t writer;
    bool writer_started;
};

static struct slot *slot_of(struct hm_queue *queue, uint64_t position)
{
    return &queue->slots[position % queue->options.jobs];
}

static hm_status kept(const struct hm_queue *queue, struct hm_error *err)
{
    if (queue->rc && err) *err = queue->error;
    return queue->rc;
}

// Prepares one slot; called and returns with the mutex held. Once a failure is kept, work is pointless and skipped.
static void prepare(struct hm_queue *queue, uint64_t position)
{
    struct slot *slot = slot_of(queue, position);
    hm_status rc = queue->rc;
    struct hm_error error = {0}, *copy = NULL;
    pthread_mutex_unlock(&queue->mutex);
    if (rc == HM_OK) {
        rc = queue->options.work(queue->options.context, slot->job, &error);
        if (rc && (copy = hm_calloc(1, sizeof *copy))) *copy = error;
    }
    pthread_mutex_lock(&queue->mutex);
    slot->rc = rc;
    slot->error = copy;
    slot->prepared = true;
    if (position == queue->finished) pthread_cond_signal(&queue->prepared);
}

enum { BACKGROUND = 10 }; // nice value: about a tenth of a processor that somebody else wants

// On Linux a nice value belongs to a thread. Where it cannot be set, things are only slower.
static void step_back(void)
{
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), BACKGROUND);
}

static void *worker_main(void *argument)
{
    struct hm_queue *queue = argument;
    if (queue->options.background) step_back();
    pthread_mutex_lock(&queue->mutex);
    for (;;) {
        while (queue->taken == queue->pushed && !queue->closing) pthread_cond_wait(&queue->work, &queue->mutex);
        if (queue->taken == queue->pushed) break;
        prepare(queue, queue->taken++);
    }
    queue->statistics.seconds += hm_thread_seconds();
    pthread_mutex_unlock(&queue->mutex);
    if (queue->options.leave) queue->options.leave();
    return NULL;
}

// Works on the jobs that no worker has taken, at the caller's own priority; called and returns with the mutex held.
static void work_off(struct hm_queue *queue)
{
    if (queue->taken == queue->pushed) return;
    double before = hm_thread_seconds();
    while (queue->taken < queue->pushed) prepare(queue, queue->taken++);
    queue->statistics.seconds += hm_thread_seconds() - before;
    pthread_mutex_unlock(&queue->mutex);
    if (queue->options.leave) queue->options.leave();
    pthread_mutex_lock(&queue->mutex);
}

// Finishes the slot at `finished`; called and returns with the mutex held. Its job stays in the count until it is
// freed.
static void finish(struct hm_queue *queue)
{
    struct slot *slot = slot_of(queue, queue->finished);
    hm_status failed = queue->rc, rc = slot->rc;
    struct hm_error error = {.code = rc, .message = "out of memory"};
    pthread_mutex_unlock(&queue->mutex);
    if (slot->error) error = *slot->error;
    if (!failed && !rc) rc = queue->options.finish(queue->options.context, slot->job, &error);
    queue->options.release(slot->job);
    free(slot->error);
    pthread_mutex_lock(&queue->mutex);
    if (!queue->rc && rc) {
        queue->rc = rc;
        queue->error = error;
    }
    queue->weight -= slot->weight;
    *slot = (struct slot){0};
    queue->finished++;
    pthread_cond_signal(&queue->room);
}

static void *writer_main(void *argument)
{
    struct hm_queue *queue = argument;
    pthread_mutex_lock(&queue->mutex);
    for (;;) {
        bool empty = queue->finished == queue->pushed;
        if (empty && queue->closing) break;
        if (empty || !slot_of(queue, queue->finished)->prepared) pthread_cond_wait(&queue->prepared, &queue->mutex);
        else finish(queue);
    }
    queue->statistics.writer_seconds = hm_thread_seconds();
    pthread_mutex_unlock(&queue->mutex);
    return NULL;
}

static hm_status start_threads(struct hm_queue *queue)
{
    for (; queue->workers_started < queue->options.threads; queue->workers_started++)
        if (pthread_create(&queue->workers[queue->workers_started], NULL, worker_main, queue) != 0) return HM_MEMORY;
    if (pthread_create(&queue->writer, NULL, writer_main, queue) != 0) return HM_MEMORY;
    queue->writer_started = true;
    return HM_OK;
}

hm_status hm_queue_open(const struct hm_queue_options *options, struct hm_queue **out, struct hm_error *err)
{
    *out = NULL;
    struct hm_queue *queue = hm_calloc(1, sizeof *queue);
    if (!queue) return hm_fail(err, HM_MEMORY, "out of memory for the queue of rows");
    queue->options = *options;
    pthread_mutex_init(&queue->mutex, NULL); // these do not fail on Linux with default attributes
    pthread_cond_init(&queue->room, NULL);
    pthread_cond_init(&queue->work, NULL);
    pthread_cond_init(&queue->prepared, NULL);
    queue->slots = hm_calloc(options->jobs, sizeof *queue->slots);
    queue->workers = hm_calloc(options->threads, sizeof *queue->workers);
    if (!queue->slots || !queue->workers || start_threads(queue) != HM_OK) {
        hm_queue_close(queue, NULL, NULL);
        return hm_fail(err, HM_MEMORY, "cannot start %u threads for certificates", options->threads);
    }
    *out = queue;
    return HM_OK;
}

static bool fits(const struct hm_queue *queue, size_t weight)
{
    if (queue->pushed - queue->finished >= queue->options.jobs) return false;
    if (queue->weight == 0) return true;
    return queue->weight <= queue->options.weight && weight <= queue->options.weight - queue->weight;
}

hm_status hm_queue_reserve(struct hm_queue *queue, size_t weight, struct hm_error *err)
{
    pthread_mutex_lock(&queue->mutex);
    while (!queue->rc && !fits(queue, weight)) pthread_cond_wait(&queue->room, &queue->mutex);
    hm_status rc = kept(queue, err);
    pthread_mutex_unlock(&queue->mutex);
    return rc;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

hm_status hm_queue_push(struct hm_queue *queue, void *job, size_t weight, struct hm_error *err)
{
    pthread_mutex_lock(&queue->mutex);
    hm_status rc = kept(queue, err);
    if (!rc) {
        *slot_of(queue, queue->pushed++) = (struct slot){.job = job, .weight = weight};
        queue->weight += weight;
        struct hm_queue_statistics *most = &queue->statistics;
        most->most_jobs = larger(most->most_jobs, (size_t)(queue->pushed - queue->finished));
        most->most_weight = larger(most->most_weight, queue->weight);
        pthread_cond_signal(&queue->work);
    }
    pthread_mutex_unlock(&queue->mutex);
    if (rc) queue->options.release(job);
    return rc;
}

hm_status hm_queue_close(struct hm_queue *queue, struct hm_queue_statistics *statistics, struct hm_error *err)
{
    if (!queue) return HM_OK;
    pthread_mutex_lock(&queue->mutex);
    queue->closing = true;
    pthread_cond_broadcast(&queue->work);
    pthread_cond_broadcast(&queue->prepared);
    work_off(queue);
    pthread_mutex_unlock(&queue->mutex);
    for (unsigned i = 0; i < queue->workers_started; i++) pthread_join(queue->workers[i], NULL);
    if (queue->writer_started) pthread_join(queue->writer, NULL);
    hm_status rc = kept(queue, err);
    if (statistics) *statistics = queue->statistics;
    pthread_cond_destroy(&queue->room);
    pthread_cond_destroy(&queue->work);
    pthread_cond_destroy(&queue->prepared);
    pthread_mutex_destroy(&queue->mutex);
    free(queue->slots);
    free(queue->workers);
    free(queue);
    return rc;
}
