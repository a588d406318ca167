// The ordered queue: order, bounds, and that nothing hangs or leaks when work fails.
#include "certify/queue.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

struct scene {
    int fail_work, fail_finish; // job numbers, -1: none
    int finished;               // so far; the next one must be this
    bool disordered;
};

struct job {
    int number;
    unsigned nanoseconds; // of work
    bool prepared;
};

static atomic_int alive; // jobs not yet released

static hm_status work(void *context, void *pointer, struct hm_error *err)
{
    const struct scene *scene = context;
    struct job *job = pointer;
    nanosleep(&(struct timespec){.tv_nsec = job->nanoseconds}, NULL);
    job->prepared = true;
    if (job->number == scene->fail_work) return hm_fail(err, HM_RANGE, "work on job %d", job->number);
    return HM_OK;
}

static hm_status finish(void *context, void *pointer, struct hm_error *err)
{
    struct scene *scene = context;
    const struct job *job = pointer;
    if (job->number != scene->finished || !job->prepared) scene->disordered = true;
    if (job->number == scene->fail_finish) return hm_fail(err, HM_IO, "finish of job %d", job->number);
    scene->finished++;
    return HM_OK;
}

static void release(void *pointer)
{
    atomic_fetch_sub(&alive, 1);
    free(pointer);
}

// Pushes `count` jobs of the given weight until a call fails; returns the status of the close.
static hm_status run(struct scene *scene, unsigned threads, size_t jobs, size_t weight, int count, size_t each,
                     struct hm_queue_statistics *statistics, struct hm_error *err)
{
    struct hm_queue *queue;
    struct hm_queue_options options = {.threads = threads,
                                       .jobs = jobs,
                                       .weight = weight,
                                       .context = scene,
                                       .work = work,
                                       .finish = finish,
                                       .release = release};
    assert_int_equal(hm_queue_open(&options, &queue, err), HM_OK);
    for (int i = 0; i < count; i++) {
        struct hm_error error;
        if (hm_queue_reserve(queue, each, &error)) break;
        struct job *job = calloc(1, sizeof *job);
        assert_non_null(job);
        *job = (struct job){.number = i, .nanoseconds = (unsigned)(i * 7919 % 5) * 20000};
        atomic_fetch_add(&alive, 1);
        if (hm_queue_push(queue, job, each, &error)) break;
    }
    hm_status rc = hm_queue_close(queue, statistics, err);
    assert_int_equal(atomic_load(&alive), 0);
    assert_false(scene->disordered);
    return rc;
}

static void jobs_are_finished_in_order(void **unused)
{
    (void)unused;
    for (unsigned threads = 1; threads <= 8; threads *= 2) {
        struct scene scene = {.fail_work = -1, .fail_finish = -1};
        struct hm_queue_statistics statistics;
        struct hm_error err;
        assert_int_equal(run(&scene, threads, 16, 1000, 400, 3, &statistics, &err), HM_OK);
        assert_int_equal(scene.finished, 400);
        assert_true(statistics.most_jobs <= 16);
        assert_true(statistics.most_jobs >= 2);
    }
}

static void weight_is_bounded(void **unused)
{
    (void)unused;
    struct scene scene = {.fail_work = -1, .fail_finish = -1};
    struct hm_queue_statistics statistics;
    struct hm_error err;
    assert_int_equal(run(&scene, 4, 100, 7, 300, 2, &statistics, &err), HM_OK);
    assert_int_equal(scene.finished, 300);
    assert_int_equal(statistics.most_weight, 6);
    // A job heavier than the bound is let in alone.
    scene.finished = 0;
    assert_int_equal(run(&scene, 4, 100, 1, 50, 5, &statistics, &err), HM_OK);
    assert_int_equal(scene.finished, 50);
    assert_int_equal(statistics.most_weight, 5);
    // Without weight the number of jobs is the bound.
    scene.finished = 0;
    assert_int_equal(run(&scene, 2, 3, 1, 50, 0, &statistics, &err), HM_OK);
    assert_int_equal(scene.finished, 50);
    assert_true(statistics.most_jobs <= 3);
}

// A failure stops what comes after it, keeps what came before it, and wakes a producer that waits for room.
static void failures_are_kept(void **unused)
{
    (void)unused;
    for (int at = 0; at < 40; at += 13)
        for (int in_work = 0; in_work < 2; in_work++) {
            struct scene scene = {.fail_work = in_work ? at : -1, .fail_finish = in_work ? -1 : at};
            struct hm_error err;
            assert_int_equal(run(&scene, 3, 4, 4, 1000, 2, NULL, &err), in_work ? HM_RANGE : HM_IO);
            assert_int_equal(scene.finished, at);
            char expected[32];
            snprintf(expected, sizeof expected, in_work ? "work on job %d" : "finish of job %d", at);
            assert_string_equal(err.message, expected);
        }
}

static void an_empty_queue_closes(void **unused)
{
    (void)unused;
    struct scene scene = {.fail_work = -1, .fail_finish = -1};
    struct hm_error err;
    assert_int_equal(run(&scene, 4, 1, 1, 0, 0, NULL, &err), HM_OK);
    assert_int_equal(hm_queue_close(NULL, NULL, &err), HM_OK);
}

static pthread_t closer;
static atomic_bool helped;

// Job 0 is not done until the closing thread has done another one; gives up after half a minute.
static hm_status wait_for_help(void *context, void *pointer, struct hm_error *err)
{
    struct job *job = pointer;
    (void)context;
    job->prepared = true;
    if (pthread_equal(pthread_self(), closer)) atomic_store(&helped, true);
    if (job->number > 0) return HM_OK;
    for (int i = 0; i < 3000 && !atomic_load(&helped); i++) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return atomic_load(&helped) ? HM_OK : hm_fail(err, HM_RANGE, "nobody helped");
}

// Jobs of a worker in the background do not keep the one who closes waiting for its low priority.
static void closing_works_off_what_is_left(void **unused)
{
    (void)unused;
    struct scene scene = {.fail_work = -1, .fail_finish = -1};
    struct hm_error err = {.message = ""};
    struct hm_queue *queue;
    struct hm_queue_options options = {.threads = 1,
                                       .background = true,
                                       .jobs = 8,
                                       .weight = 1,
                                       .context = &scene,
                                       .work = wait_for_help,
                                       .finish = finish,
                                       .release = release};
    closer = pthread_self();
    assert_int_equal(hm_queue_open(&options, &queue, &err), HM_OK);
    for (int i = 0; i < 8; i++) {
        struct job *job = calloc(1, sizeof *job);
        assert_non_null(job);
        job->number = i;
        atomic_fetch_add(&alive, 1);
        assert_int_equal(hm_queue_push(queue, job, 0, &err), HM_OK);
    }
    if (hm_queue_close(queue, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(scene.finished, 8);
    assert_false(scene.disordered);
    assert_int_equal(atomic_load(&alive), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_are_finished_in_order),
        cmocka_unit_test(weight_is_bounded),
        cmocka_unit_test(failures_are_kept),
        cmocka_unit_test(an_empty_queue_closes),
        cmocka_unit_test(closing_works_off_what_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
