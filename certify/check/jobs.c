// Jobs: what is done with lines, on all cores, with outcomes taken in the order of lines. See state.h.
//
// One thread reads the log and submits; workers take records off a queue; the reader commits the oldest job once it is
// done. At most WINDOW jobs a worker, and BYTES of lines, are under way, so memory does not grow with the log. With one
// thread there are no workers and every job is done when it is submitted.
#include "certify/check/state.h"

#include <mpfr.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS = 256, WINDOW = 3, BYTES = 1 << 26 };

struct ck_jobs {
    struct ck_commit commit;
    unsigned threads;
    struct ck *worker; // [threads]
    pthread_t *thread; // [started]
    unsigned started;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    struct ck_job *first, *last, *todo; // oldest not yet committed; newest; the next for a worker
    size_t waiting, bytes;
    bool stop, decided;
};

void ck_sequence_release(struct ck_sequence *s)
{
    if (!s || --s->references > 0) return;
    free(s->eos);
    free(s);
}

struct ck_job *ck_job_make(const struct ck *c, enum ck_task task, size_t verdicts)
{
    struct ck_job *job = calloc(1, sizeof *job);
    if (!job) return NULL;
    job->task = task;
    job->line = c->line;
    job->at = c->at;
    if (job->at.of) job->at.of->references++;
    ck_tree_keep(job->at.tree);
    job->verdicts = verdicts ? calloc(verdicts, sizeof *job->verdicts) : NULL;
    if (job->verdicts) memset(job->verdicts, 0xff, verdicts * sizeof *job->verdicts);
    if (!verdicts || job->verdicts) return job;
    ck_tree_release(job->at.tree);
    ck_sequence_release(job->at.of);
    free(job);
    return NULL;
}

static void job_free(struct ck_job *job)
{
    cJSON_Delete(job->json);
    ck_tree_release(job->at.tree);
    ck_sequence_release(job->at.of);
    free(job->replayed[0].logit);
    free(job->replayed[1].logit);
    free(job->verdicts);
    free(job);
}

static void run(struct ck *c, struct ck_job *job)
{
    c->at = job->at;
    c->line = job->line;
    c->prefix[0] = '\0';
    c->verdicts = job->verdicts;
    if (c->replayed) c->replayed = job->replayed;
    memset(&c->out, 0, sizeof c->out);
    ck_check_record(c, job->json, job->record);
    job->out = c->out;
}

struct seat { // a worker's place
    struct ck_jobs *jobs;
    struct ck *worker;
};

static void *work(void *user)
{
    struct seat seat = *(struct seat *)user;
    struct ck_jobs *jobs = seat.jobs;
    free(user);
    pthread_mutex_lock(&jobs->lock);
    for (;;) {
        while (!jobs->stop && !jobs->todo) pthread_cond_wait(&jobs->work, &jobs->lock);
        if (jobs->stop) break;
        struct ck_job *job = jobs->todo;
        for (jobs->todo = job->next; jobs->todo && jobs->todo->task != CK_RECORD;) jobs->todo = jobs->todo->next;
        pthread_mutex_unlock(&jobs->lock);
        run(seat.worker, job);
        pthread_mutex_lock(&jobs->lock);
        job->done = true;
        pthread_cond_signal(&jobs->done);
    }
    pthread_mutex_unlock(&jobs->lock);
    mpfr_free_cache();
    return NULL;
}

static bool worker_make(struct ck *w, const struct ck *main)
{
    size_t vocab = (size_t)main->header->vocab;
    w->log_path = main->log_path;
    w->header = main->header;
    w->replayed = main->replayed;
    w->reads_draft = main->reads_draft;
    w->shard[0].number = w->shard[1].number = -1;
    if (!ck_math_init(&w->math, vocab) || !ck_math_init(&w->inner, vocab)) return false;
    mpq_set(w->math.inverse_claim, w->header->inverse_claim);
    mpq_set(w->math.inverse_draw, w->header->inverse_draw);
    w->math.same_temperature = w->header->same_temperature;
    return true;
}

struct ck_jobs *ck_jobs_start(const struct ck *main, unsigned threads, struct ck_commit commit)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct ck_jobs *jobs = calloc(1, sizeof *jobs);
    if (!jobs) return NULL;
    if (threads == 0) threads = cores > 0 ? (unsigned)cores : 1;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (!mpfr_buildopt_tls_p()) threads = 1;
    jobs->commit = commit;
    jobs->worker = calloc(threads, sizeof *jobs->worker);
    jobs->thread = calloc(threads, sizeof *jobs->thread);
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_cond_init(&jobs->work, NULL);
    pthread_cond_init(&jobs->done, NULL);
    bool ok = jobs->worker && jobs->thread;
    while (ok && jobs->threads < threads) ok = worker_make(&jobs->worker[jobs->threads++], main);
    for (unsigned i = 0; ok && threads > 1 && i < threads; i++) {
        struct seat *seat = malloc(sizeof *seat);
        if (seat) *seat = (struct seat){jobs, &jobs->worker[i]};
        ok = seat && pthread_create(&jobs->thread[i], NULL, work, seat) == 0;
        if (!ok) free(seat);
        jobs->started += ok;
    }
    if (ok || jobs->started > 0) return jobs; // fewer workers do as well
    ck_jobs_stop(jobs);
    return NULL;
}

// Commits the oldest job, waiting for it.
static void commit_first(struct ck_jobs *jobs)
{
    struct ck_job *job = jobs->first;
    pthread_mutex_lock(&jobs->lock);
    while (job->task == CK_RECORD && !job->done) pthread_cond_wait(&jobs->done, &jobs->lock);
    jobs->first = job->next;
    if (!jobs->first) jobs->last = NULL;
    pthread_mutex_unlock(&jobs->lock);
    jobs->waiting--;
    jobs->bytes -= job->size;
    jobs->decided = jobs->decided || !jobs->commit.call(jobs->commit.user, job);
    job_free(job);
}

// Is the oldest job done?  Then its outcome need not wait.
static bool first_is_done(struct ck_jobs *jobs)
{
    if (!jobs->first) return false;
    pthread_mutex_lock(&jobs->lock);
    bool done = jobs->first->task != CK_RECORD || jobs->first->done;
    pthread_mutex_unlock(&jobs->lock);
    return done;
}

bool ck_jobs_submit(struct ck_jobs *jobs, struct ck_job *job)
{
    bool record = job->task == CK_RECORD;
    if (record && jobs->started == 0) {
        run(&jobs->worker[0], job);
        job->done = true;
    }
    pthread_mutex_lock(&jobs->lock);
    if (jobs->last)
        jobs->last->next = job;
    else
        jobs->first = job;
    jobs->last = job;
    if (record && !job->done && !jobs->todo) jobs->todo = job;
    pthread_cond_signal(&jobs->work);
    pthread_mutex_unlock(&jobs->lock);
    jobs->waiting++;
    jobs->bytes += job->size;
    size_t most = (size_t)WINDOW * jobs->started;
    while (!jobs->decided && (jobs->waiting > most || jobs->bytes > BYTES || first_is_done(jobs)) && jobs->first)
        commit_first(jobs);
    return !jobs->decided;
}

bool ck_jobs_drain(struct ck_jobs *jobs)
{
    while (!jobs->decided && jobs->first) commit_first(jobs);
    return !jobs->decided;
}

void ck_jobs_stop(struct ck_jobs *jobs)
{
    if (!jobs) return;
    pthread_mutex_lock(&jobs->lock);
    jobs->stop = true;
    pthread_cond_broadcast(&jobs->work);
    pthread_mutex_unlock(&jobs->lock);
    for (unsigned i = 0; i < jobs->started; i++) pthread_join(jobs->thread[i], NULL);
    for (struct ck_job *job = jobs->first, *next; job; job = next) {
        next = job->next;
        job_free(job);
    }
    for (unsigned i = 0; i < jobs->threads; i++) {
        ck_close_shards(&jobs->worker[i]);
        ck_math_clear(&jobs->worker[i].math);
        ck_math_clear(&jobs->worker[i].inner);
    }
    pthread_cond_destroy(&jobs->work);
    pthread_cond_destroy(&jobs->done);
    pthread_mutex_destroy(&jobs->lock);
    free(jobs->worker);
    free(jobs->thread);
    free(jobs);
}
