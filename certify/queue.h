// An ordered, bounded queue of jobs: worker threads prepare jobs in any order, one writer thread finishes them in the
// order they were pushed. The thread that closes it lends a hand with what is left.
//
// One thread pushes. The first failure, in push order, is kept: jobs before it are all finished, jobs after it are only
// released, nobody waits for ever, and every later call returns it.
#ifndef HM_CERTIFY_QUEUE_H
#define HM_CERTIFY_QUEUE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct hm_queue;

struct hm_queue_options {
    unsigned threads;    // workers, >= 1
    bool background;     // workers leave the processor to other threads where it is short
    size_t jobs;         // most jobs in the queue, >= 1
    size_t weight;       // most weight in the queue; one heavier job is let in alone
    void *context;       // handed to the functions below
    hm_status (*work)(void *context, void *job, struct hm_error *err);   // on a worker or in the close, several at a time
    hm_status (*finish)(void *context, void *job, struct hm_error *err); // on the writer, one at a time, in order
    void (*release)(void *job);                                          // frees a job, whatever became of it
    void (*leave)(void);                                                 // on each such thread as it ends its work; NULL: nothing
};

struct hm_queue_statistics {
    size_t most_jobs, most_weight; // the most that was in the queue at one time
    double seconds;                // processor time of the work
    double writer_seconds;         // and of the writer
};

hm_status hm_queue_open(const struct hm_queue_options *options, struct hm_queue **out, struct hm_error *err);

// Waits until a job of this weight fits, so that its memory need not exist before. Returns the kept failure, if any.
hm_status hm_queue_reserve(struct hm_queue *queue, size_t weight, struct hm_error *err);

// Adds a job after a hm_queue_reserve of its weight; never waits. The job belongs to the queue, also on failure.
hm_status hm_queue_push(struct hm_queue *queue, void *job, size_t weight, struct hm_error *err);

// Waits for all jobs, ends the threads, frees the queue (NULL is allowed). Returns the kept failure; statistics may be
// NULL.
hm_status hm_queue_close(struct hm_queue *queue, struct hm_queue_statistics *statistics, struct hm_error *err);

#endif
