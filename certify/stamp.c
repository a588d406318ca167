// The stamper: see stamp.h. The caller's thread copies records into jobs, workers turn them into lines, one writer
// thread stores rows and lines in order (queue.h). Row numbers are given out with the jobs, so a line can name its rows
// before they are stored, and the same records give the same bytes for any number of threads.
#include "certify/stamp.h"

#include "base/memory.h"
#include "certify/log_writer.h"
#include "certify/queue.h"
#include "certify/shard.h"
#include "certify/stamp_record.h"

#include <mpfr.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_THREADS = 256, MOST_JOBS = 65536, DEFAULT_ROWS = 1024, TARGET = 0, DRAFT = 1 };
static const uint64_t DEFAULT_ROW_BYTES = 256u << 20, DEFAULT_SHARD_BYTES = 1u << 30;

enum record { RECORD_SEQUENCE, RECORD_ROUND, RECORD_STEP };

struct job {
    enum record kind;
    struct hm_line line; // complete for sequences and rounds, made by a worker for steps
    struct hm_stamp_step step;
};

struct hm_stamper {
    struct hm_stamp_config config;
    struct hm_log_writer *log;         // NULL: certify and count only
    struct hm_shard_writer *shards[2]; // target, draft; NULL: not kept
    struct hm_queue *queue;
    struct hm_stamp_order order;
    uint64_t rows[2];                // rows handed out so far, per side
    struct hm_stamp_summary summary; // the writer thread's until the queue is closed
    double opened;
    hm_status rc; // the first failure the caller was told of
    struct hm_error error;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void free_job(void *pointer)
{
    struct job *job = pointer;
    hm_line_free(&job->line);
    free(job->step.rows);
    free(job->step.children);
    free(job->step.text);
    free(job->step.tally);
    free(job);
}

// ---- on a worker

static hm_status work(void *context, void *pointer, struct hm_error *err)
{
    const struct hm_stamper *s = context;
    struct job *job = pointer;
    return job->kind == RECORD_STEP ? hm_stamp_step_line(&job->line, &job->step, &s->config, err) : HM_OK;
}

// MPFR keeps constants per thread.
static void leave(void)
{
    mpfr_free_cache();
}

// ---- on the writer

static void count_claim(struct hm_stamp_count *count, const struct hm_stamp_tally *tally)
{
    count->claims += tally->m > 0;
    if (!tally->has_draft) return;
    for (int i = 0; i < 3; i++) count->verdict[i][tally->verdict[i]]++;
    count->certified += tally->certified;
    count->covered += tally->covered;
}

static void count_job(struct hm_stamp_summary *summary, const struct job *job)
{
    bool node = job->step.record.token < 0;
    summary->sequences += job->kind == RECORD_SEQUENCE;
    summary->rounds += job->kind == RECORD_ROUND;
    if (job->kind != RECORD_STEP) return;
    summary->nodes += node;
    summary->steps += !node;
    for (size_t i = 0; i < summary->counts; i++) {
        summary->undecided += job->step.tally[i].undecided;
        if (!node) count_claim(&summary->count[i], &job->step.tally[i]);
    }
}

// A row is stored before the line that names it (docs/log.md, "Row shards").
static hm_status finish(void *context, void *pointer, struct hm_error *err)
{
    struct hm_stamper *s = context;
    struct job *job = pointer;
    hm_status rc = HM_OK;
    if (job->kind == RECORD_STEP && s->config.keep_rows) {
        rc = hm_shard_append(s->shards[TARGET], job->step.record.target_row, err);
        if (!rc && job->step.record.draft_row) rc = hm_shard_append(s->shards[DRAFT], job->step.record.draft_row, err);
    }
    if (!rc && s->log) rc = hm_log_writer_append(s->log, &job->line, err);
    if (!rc) count_job(&s->summary, job);
    return rc;
}

// ---- opening

static hm_status open_shards(struct hm_stamper *s, const struct hm_stamp_options *options, struct hm_error *err)
{
    uint64_t limit = options->shard_bytes ? options->shard_bytes : DEFAULT_SHARD_BYTES;
    if (limit > INT64_MAX) limit = INT64_MAX;
    if (!s->config.keep_rows) return HM_OK;
    hm_status rc = hm_shard_open(options->path, "target", s->config.vocab, limit, &s->shards[TARGET], err);
    if (!rc && s->config.has_draft)
        rc = hm_shard_open(options->path, "draft", s->config.vocab, limit, &s->shards[DRAFT], err);
    if (!rc) s->config.capacity = hm_shard_capacity(s->shards[TARGET]);
    return rc;
}

static hm_status start_log(struct hm_stamper *s, const struct hm_stamp_options *options,
                           const struct hm_log_header *header, struct hm_error *err)
{
    struct hm_line line = {0};
    if (!options->path) return HM_OK;
    // The lock comes first: the shards of a log that another process is writing must not be touched.
    hm_status rc = hm_log_writer_open(options->path, &s->log, err);
    if (!rc) rc = hm_shard_remove(options->path, "target", err);
    if (!rc) rc = hm_shard_remove(options->path, "draft", err);
    if (rc) return rc;
    hm_stamp_header_line(&line, header, &s->config, s->shards[TARGET] ? hm_shard_pattern(s->shards[TARGET]) : NULL,
                         s->shards[DRAFT] ? hm_shard_pattern(s->shards[DRAFT]) : NULL);
    rc = hm_log_writer_append(s->log, &line, err);
    hm_line_free(&line);
    return rc;
}

static hm_status start_queue(struct hm_stamper *s, const struct hm_stamp_options *options, struct hm_error *err)
{
    size_t rows = options->queue_rows;
    unsigned threads = options->threads ? options->threads : 1;
    if (rows == 0) {
        uint64_t fit = DEFAULT_ROW_BYTES / (s->config.vocab * sizeof(float));
        rows = fit < 2 ? 2 : fit > DEFAULT_ROWS ? DEFAULT_ROWS : (size_t)fit;
    }
    // Sequences and rounds carry no rows; twice the rows leaves room for one round per step.
    struct hm_queue_options queue = {.threads = threads < MOST_THREADS ? threads : MOST_THREADS,
                                     .jobs = rows < MOST_JOBS / 2 ? 2 * rows : MOST_JOBS,
                                     .weight = rows,
                                     .context = s,
                                     .work = work,
                                     .finish = finish,
                                     .release = free_job,
                                     .leave = leave};
    return hm_queue_open(&queue, &s->queue, err);
}

static void free_stamper(struct hm_stamper *s)
{
    hm_stamp_config_clear(&s->config);
    hm_stamp_summary_clear(&s->summary);
    free(s);
}

hm_status hm_stamper_open(const struct hm_stamp_options *options, const struct hm_log_header *header,
                          struct hm_stamper **out, struct hm_error *err)
{
    *out = NULL;
    struct hm_stamper *s = hm_calloc(1, sizeof *s);
    if (!s) return hm_fail(err, HM_MEMORY, "out of memory for the certificate log");
    s->opened = now();
    hm_status rc = hm_stamp_config_set(&s->config, options, header, err);
    if (!rc && !hm_mul_size(s->config.rule_count, s->config.m_count, &s->summary.counts))
        rc = hm_fail(err, HM_MEMORY, "out of memory for the certificate log");
    if (!rc && !(s->summary.count = hm_calloc(s->summary.counts, sizeof *s->summary.count)))
        rc = hm_fail(err, HM_MEMORY, "out of memory for the certificate log");
    if (!rc) rc = open_shards(s, options, err);
    if (!rc) rc = start_log(s, options, header, err);
    if (!rc) rc = start_queue(s, options, err);
    if (rc) {
        hm_shard_close(s->shards[TARGET], NULL);
        hm_shard_close(s->shards[DRAFT], NULL);
        hm_log_writer_close(s->log, NULL);
        free_stamper(s);
    } else {
        *out = s;
    }
    return rc;
}

// ---- records

// Keeps the first failure, so that every later call returns it.
static hm_status keep(struct hm_stamper *s, hm_status rc, const struct hm_error *error, struct hm_error *err)
{
    if (rc && !s->rc) {
        s->rc = rc;
        s->error = *error;
    }
    if (s->rc && err) *err = s->error;
    return s->rc;
}

// Hands a finished line to the queue.
static hm_status push_line(struct hm_stamper *s, enum record kind, struct hm_line *line, struct hm_error *err)
{
    hm_status rc = hm_line_check(line, kind == RECORD_ROUND ? "round" : "sequence", err);
    if (!rc) rc = hm_queue_reserve(s->queue, 0, err);
    struct job *job = rc ? NULL : hm_calloc(1, sizeof *job);
    if (!job) {
        hm_line_free(line);
        return rc ? rc : hm_fail(err, HM_MEMORY, "out of memory for the certificate log");
    }
    job->kind = kind;
    job->line = *line;
    return hm_queue_push(s->queue, job, 0, err);
}

hm_status hm_stamper_sequence(struct hm_stamper *s, const struct hm_log_sequence *sequence, struct hm_error *err)
{
    struct hm_error error;
    struct hm_line line = {0};
    hm_status rc = s->rc ? s->rc : hm_stamp_order_sequence(&s->order, sequence, &error);
    if (!rc) {
        hm_stamp_sequence_line(&line, sequence);
        rc = push_line(s, RECORD_SEQUENCE, &line, &error);
    }
    return keep(s, rc, &error, err);
}

hm_status hm_stamper_round(struct hm_stamper *s, const struct hm_log_round *round, struct hm_error *err)
{
    struct hm_error error;
    struct hm_line line = {0};
    hm_status rc = s->rc ? s->rc : hm_stamp_order_round(&s->order, round, s->config.vocab, &error);
    if (!rc) {
        hm_stamp_round_line(&line, round, &s->config);
        rc = push_line(s, RECORD_ROUND, &line, &error);
    }
    return keep(s, rc, &error, err);
}

// Copies what the record points to, so that the caller may reuse its rows.
static bool copy_step(const struct hm_stamper *s, struct hm_stamp_step *to, const struct hm_log_step *from)
{
    size_t vocab = s->config.vocab, rows = from->draft_row ? 2 : 1, bytes;
    to->record = *from;
    if (!hm_mul_size(rows, vocab * sizeof(float), &bytes)) return false;
    to->rows = malloc(bytes);
    to->children = hm_calloc(from->child_count, sizeof *to->children);
    to->text = hm_calloc(from->text_size, 1);
    to->tally = hm_calloc(s->summary.counts, sizeof *to->tally);
    if (!to->rows || !to->children || !to->text || !to->tally) return false;
    memcpy(to->rows, from->target_row, vocab * sizeof(float));
    to->record.target_row = to->rows;
    if (from->draft_row) {
        memcpy(to->rows + vocab, from->draft_row, vocab * sizeof(float));
        to->record.draft_row = to->rows + vocab;
    }
    if (from->child_count) memcpy(to->children, from->children, from->child_count * sizeof *to->children);
    if (from->text_size) memcpy(to->text, from->text, from->text_size);
    to->record.children = to->children;
    to->record.text = to->text;
    return true;
}

static hm_status push_step(struct hm_stamper *s, const struct hm_log_step *step, struct hm_error *err)
{
    size_t weight = step->draft_row ? 2 : 1;
    hm_status rc = hm_queue_reserve(s->queue, weight, err); // before the copy: the bound is on memory
    if (rc) return rc;
    struct job *job = hm_calloc(1, sizeof *job);
    if (!job || !copy_step(s, &job->step, step)) {
        if (job) free_job(job);
        return hm_fail(err, HM_MEMORY, "sequence %u, step %u: out of memory for %zu rows", step->sequence, step->t,
                       weight);
    }
    job->kind = RECORD_STEP;
    job->step.place[TARGET] = s->rows[TARGET]++;
    if (step->draft_row) job->step.place[DRAFT] = s->rows[DRAFT]++;
    return hm_queue_push(s->queue, job, weight, err);
}

hm_status hm_stamper_step(struct hm_stamper *s, const struct hm_log_step *step, struct hm_error *err)
{
    struct hm_error error;
    hm_status rc = s->rc ? s->rc : hm_stamp_order_step(&s->order, step, &s->config, &error);
    if (!rc) rc = push_step(s, step, &error);
    return keep(s, rc, &error, err);
}

// ---- closing

static hm_status write_end(struct hm_stamper *s, struct hm_error *err)
{
    struct hm_line line = {0};
    hm_stamp_end_line(&line, &s->config, &s->summary, now() - s->opened);
    hm_status rc = hm_log_writer_append(s->log, &line, err);
    hm_line_free(&line);
    return rc;
}

// Each part is closed whatever became of the others; keep() remembers the first failure.
hm_status hm_stamper_close(struct hm_stamper *s, struct hm_stamp_summary *summary, struct hm_error *err)
{
    struct hm_error error;
    struct hm_queue_statistics statistics;
    if (summary) *summary = (struct hm_stamp_summary){0};
    if (!s) return HM_OK;
    keep(s, hm_queue_close(s->queue, &statistics, &error), &error, NULL);
    s->summary.seconds = statistics.seconds;
    s->summary.most_rows = statistics.most_weight;
    for (int side = TARGET; side <= DRAFT; side++) keep(s, hm_shard_close(s->shards[side], &error), &error, NULL);
    if (!s->rc && s->log && !s->order.open) keep(s, write_end(s, &error), &error, NULL);
    hm_status rc = keep(s, hm_log_writer_close(s->log, &error), &error, err);
    if (summary) {
        *summary = s->summary;
        s->summary.count = NULL;
    }
    free_stamper(s);
    return rc;
}

void hm_stamp_summary_clear(struct hm_stamp_summary *summary)
{
    free(summary->count);
    summary->count = NULL;
}
