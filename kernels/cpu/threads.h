// A pool of threads that share one loop at a time. Work is divided by output, so which thread does a unit never shows
// in the bits. A thread that has no core at the moment holds up one unit at most: the others do the rest of its range.
#ifndef HM_KERNELS_CPU_THREADS_H
#define HM_KERNELS_CPU_THREADS_H

#include "base/error.h"

#include <stddef.h>

enum { HM_POOL_MOST = 256 };

struct hm_pool;

// One unit of the loop.  worker: 0 .. threads-1, never the same in two calls at once; 0 is the calling thread.
typedef void hm_pool_task(void *context, size_t unit, unsigned worker);

unsigned hm_pool_usable_cores(void); // cores this process may run on, at least 1

// threads 1 .. HM_POOL_MOST, counting the caller; 1 starts none.
hm_status hm_pool_open(unsigned threads, struct hm_pool **out, struct hm_error *err);
void hm_pool_close(struct hm_pool *pool); // NULL is allowed

unsigned hm_pool_threads(const struct hm_pool *pool);

// Loops that begin from now on use only the first `threads` of them (at least 1, at most all); one of the others that is
// just looking for work may still help. From any thread, also while a loop runs.
void hm_pool_limit(struct hm_pool *pool, unsigned threads);

// Calls task for each unit 0 .. units-1 and returns when all are done. One caller at a time; tasks must not call it.
void hm_pool_run(struct hm_pool *pool, hm_pool_task *task, void *context, size_t units);

#endif
