// One thread beside its owner: see beside.h.
#include "decode/beside.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct hm_beside {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    void (*task)(void *context); // NULL: there is nothing to do
    void *context;
    bool stop;
};

static void *run(void *argument)
{
    struct hm_beside *beside = argument;
    pthread_mutex_lock(&beside->mutex);
    for (;;) {
        while (!beside->task && !beside->stop) pthread_cond_wait(&beside->changed, &beside->mutex);
        if (beside->stop) break;
        void (*task)(void *) = beside->task;
        void *context = beside->context;
        pthread_mutex_unlock(&beside->mutex);
        task(context);
        pthread_mutex_lock(&beside->mutex);
        beside->task = NULL;
        pthread_cond_broadcast(&beside->changed);
    }
    pthread_mutex_unlock(&beside->mutex);
    return NULL;
}

hm_status hm_beside_open(struct hm_beside **out, struct hm_error *err)
{
    struct hm_beside *beside = hm_calloc(1, sizeof *beside);
    *out = NULL;
    if (!beside) return hm_fail(err, HM_MEMORY, "out of memory for a thread");
    pthread_mutex_init(&beside->mutex, NULL);
    pthread_cond_init(&beside->changed, NULL);
    int failure = pthread_create(&beside->thread, NULL, run, beside);
    if (failure) {
        pthread_cond_destroy(&beside->changed);
        pthread_mutex_destroy(&beside->mutex);
        free(beside);
        return hm_fail(err, HM_IO, "cannot start a thread for drafting: %s", strerror(failure));
    }
    *out = beside;
    return HM_OK;
}

void hm_beside_close(struct hm_beside *beside)
{
    if (!beside) return;
    pthread_mutex_lock(&beside->mutex);
    beside->stop = true;
    pthread_cond_broadcast(&beside->changed);
    pthread_mutex_unlock(&beside->mutex);
    pthread_join(beside->thread, NULL);
    pthread_cond_destroy(&beside->changed);
    pthread_mutex_destroy(&beside->mutex);
    free(beside);
}

void hm_beside_start(struct hm_beside *beside, void (*task)(void *context), void *context)
{
    pthread_mutex_lock(&beside->mutex);
    beside->task = task;
    beside->context = context;
    pthread_cond_broadcast(&beside->changed);
    pthread_mutex_unlock(&beside->mutex);
}

void hm_beside_wait(struct hm_beside *beside)
{
    pthread_mutex_lock(&beside->mutex);
    while (beside->task) pthread_cond_wait(&beside->changed, &beside->mutex);
    pthread_mutex_unlock(&beside->mutex);
}
