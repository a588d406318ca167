// The stamper: see stamp.h. The caller's thread copies records into jobs, workers turn them into lines, one writer
// thread stores rows and lines in order (queue.h). Row numbers are given out with the jobs, so a line can name its rows
// before they are stored, and the same records give the same bytes for any number of threads.
#include "certify/stamp.h"

#include "base/clock.h"
#include "base/memory.h"
#include "certify/log_writer.h"
#include "certify/queue.h"
#include "certify/shard.h"
#include "certify/stamp_record.h"

#include <mpfr.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 256, MOST_JOBS = 65536, DEFAULT_ROWS = 1024, TARGET = 0, DRAFT = 1 };
static const uint64_t DEFAULT_ROW_BYTES = 256u << 20, DEFAULT_SHARD_BYTES = 1u << 30;

struct hm_stamper {
    struct hm_stamp_config config;
    struct hm_log_writer *log;         // NULL: certify and count only
    hm_status (*line)(void *user, const char *json, size_t size, struct hm_error *err); // NULL: nobody listens
    void *line_user;
    struct hm_shard_writer *shards[2]; // target, draft; NULL: not kept
    struct hm_queue *queue;
    struct hm_stamp_order order;
    uint64_t rows[2];                // rows handed out so far, per side
    struct hm_stamp_summary summary; // the writer thread's until the queue is closed
    double opened;
    hm_status rc; // the first failure the caller was told of
    struct hm_error error;
};

// ---- on a worker

static hm_status work(void *context, void *pointer, struct hm_error *err)
{
    const struct hm_stamper *s = context;
    struct hm_stamp_job *job = pointer;
    if (job->kind == HM_STAMP_SEQUENCE) return HM_OK;
    return job->kind == HM_STAMP_ROUND ? hm_stamp_round_line(job, &s->config, err) : hm_stamp_step_line(job, &s->config, err);
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

static void count_job(struct hm_stamp_summary *summary, const struct hm_stamp_job *job)
{
    summary->sequences += job->kind == HM_STAMP_SEQUENCE;
    summary->rounds += job->kind == HM_STAMP_ROUND;
    summary->steps += job->kind == HM_STAMP_STEP;
    summary->nodes += job->kind == HM_STAMP_NODE;
    summary->rows += job->kind == HM_STAMP_ROW;
    summary->decisions += job->decisions;
    summary->filter_undecided += job->filter_undecided;
    summary->hash_seconds += job->hash_seconds;
    for (size_t i = 0; i < summary->counts && job->tally; i++) {
        summary->undecided += job->tally[i].undecided;
        if (job->kind != HM_STAMP_NODE) count_claim(&summary->count[i], &job->tally[i]);
    }
}

// Writes a line and shows it to who listens: once it is written, and without its chain.
static hm_status deliver(struct hm_stamper *s, struct hm_line *line, struct hm_error *err)
{
    size_t size = line->size;
    hm_status rc = HM_OK;
    if (s->log) rc = hm_log_writer_append(s->log, line, err);
    if (rc || !s->line) return rc;
    if (!s->log) hm_line_bytes(line, "}", 1);
    rc = hm_line_check(line, "record", err);
    if (rc) return rc;
    line->text[size] = '}'; // where the chain began
    return s->line(s->line_user, line->text, size + 1, err);
}

// A row is stored before the line that names it (docs/log.md, "Row shards").
static hm_status store_rows(struct hm_stamper *s, const struct hm_stamp_job *job, struct hm_error *err)
{
    const struct hm_log_step *step = &job->record.step;
    if (!s->config.keep_rows || job->kind < HM_STAMP_STEP) return HM_OK;
    hm_status rc = hm_shard_append(s->shards[TARGET], step->target_row, err);
    if (!rc && step->draft_row) rc = hm_shard_append(s->shards[DRAFT], step->draft_row, err);
    return rc;
}

static hm_status finish(void *context, void *pointer, struct hm_error *err)
{
    struct hm_stamper *s = context;
    struct hm_stamp_job *job = pointer;
    hm_status rc = store_rows(s, job, err);
    if (!rc) rc = deliver(s, &job->line, err);
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
    hm_status rc = HM_OK;
    if (options->path) {
        // The lock comes first: the shards of a log that another process is writing must not be touched.
        rc = hm_log_writer_open(options->path, &s->log, err);
        if (!rc) rc = hm_shard_remove(options->path, "target", err);
        if (!rc) rc = hm_shard_remove(options->path, "draft", err);
        if (rc) return rc;
    }
    hm_stamp_header_line(&line, header, &s->config, s->shards[TARGET] ? hm_shard_pattern(s->shards[TARGET]) : NULL,
                         s->shards[DRAFT] ? hm_shard_pattern(s->shards[DRAFT]) : NULL);
    rc = hm_line_check(&line, "header", err);
    if (!rc) rc = deliver(s, &line, err);
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
                                     .background = !s->config.audit, // a decode beside it comes first
                                     .jobs = rows < MOST_JOBS / 2 ? 2 * rows : MOST_JOBS,
                                     .weight = rows,
                                     .context = s,
                                     .work = work,
                                     .finish = finish,
                                     .release = hm_stamp_job_free,
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
    s->opened = hm_now();
    s->line = options->line;
    s->line_user = options->line_user;
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

static hm_status push_sequence(struct hm_stamper *s, const struct hm_log_sequence *sequence, struct hm_error *err)
{
    hm_status rc = hm_queue_reserve(s->queue, 0, err);
    if (rc) return rc;
    struct hm_stamp_job *job = hm_calloc(1, sizeof *job);
    if (!job) return hm_fail(err, HM_MEMORY, "sequence %u: out of memory", sequence->sequence);
    job->kind = HM_STAMP_SEQUENCE;
    hm_stamp_sequence_line(&job->line, sequence);
    rc = hm_line_check(&job->line, "sequence", err);
    if (!rc) return hm_queue_push(s->queue, job, 0, err);
    hm_stamp_job_free(job);
    return rc;
}

hm_status hm_stamper_sequence(struct hm_stamper *s, const struct hm_log_sequence *sequence, struct hm_error *err)
{
    struct hm_error error;
    hm_status rc = s->rc ? s->rc : hm_stamp_order_sequence(&s->order, sequence, &s->config, &error);
    if (!rc) rc = push_sequence(s, sequence, &error);
    return keep(s, rc, &error, err);
}

static hm_status push_round(struct hm_stamper *s, const struct hm_log_round *round, struct hm_error *err)
{
    size_t rows = hm_stamp_round_rows(round, &s->config);
    hm_status rc = hm_queue_reserve(s->queue, rows, err); // before the copy: the bound is on memory
    if (rc) return rc;
    struct hm_stamp_job *job = hm_stamp_job_round(round, &s->config);
    if (!job)
        return hm_fail(err, HM_MEMORY, "sequence %u, round %u: out of memory for %zu nodes and %zu rows", round->sequence,
                       round->round, round->nodes, rows);
    return hm_queue_push(s->queue, job, rows, err);
}

hm_status hm_stamper_round(struct hm_stamper *s, const struct hm_log_round *round, struct hm_error *err)
{
    struct hm_error error;
    hm_status rc = s->rc ? s->rc : hm_stamp_order_round(&s->order, round, &s->config, &error);
    if (!rc) rc = push_round(s, round, &error);
    return keep(s, rc, &error, err);
}

static hm_status push_step(struct hm_stamper *s, enum hm_stamp_kind kind, const struct hm_log_step *step, uint64_t index,
                           struct hm_error *err)
{
    size_t rows = step->draft_row ? 2 : 1;
    hm_status rc = hm_queue_reserve(s->queue, rows, err); // before the copy: the bound is on memory
    if (rc) return rc;
    struct hm_stamp_job *job = hm_stamp_job_step(kind, step, &s->config);
    if (!job) return hm_fail(err, HM_MEMORY, "sequence %u, step %u: out of memory for %zu rows", step->sequence, step->t, rows);
    job->index = index;
    job->place[TARGET] = s->rows[TARGET]++;
    if (step->draft_row) job->place[DRAFT] = s->rows[DRAFT]++;
    return hm_queue_push(s->queue, job, rows, err);
}

hm_status hm_stamper_step(struct hm_stamper *s, const struct hm_log_step *step, struct hm_error *err)
{
    struct hm_error error;
    hm_status rc = s->rc ? s->rc : hm_stamp_order_step(&s->order, step, &s->config, &error);
    if (!rc) rc = push_step(s, step->token < 0 ? HM_STAMP_NODE : HM_STAMP_STEP, step, 0, &error);
    return keep(s, rc, &error, err);
}

// Is this a row of logits?  Found out before anything is queued, as an audit goes on without it.
static hm_status check_logits(const struct hm_stamper *s, const float *logits, const char *which, struct hm_error *err)
{
    struct hm_row *row;
    hm_status rc = logits ? hm_row_open(logits, s->config.vocab, &s->config.certify_temperature, &row, err) : HM_OK;
    if (rc) return hm_fail_prefix(err, which);
    if (logits) hm_row_close(row);
    return HM_OK;
}

hm_status hm_stamper_row(struct hm_stamper *s, const struct hm_log_row *row, struct hm_error *err)
{
    struct hm_error error;
    hm_status rc = s->rc ? s->rc : hm_stamp_order_row(&s->order, row, &s->config, &error);
    if (rc) return keep(s, rc, &error, err);
    rc = check_logits(s, row->target_row, "target row", &error);
    if (!rc) rc = check_logits(s, row->draft_row, "draft row", &error);
    if (rc) {
        if (err) *err = error;
        return rc;
    }
    const struct hm_log_step step = {.round = -1,
                                     .token = row->token,
                                     .child = -1,
                                     .support = s->config.vocab,
                                     .target_row = row->target_row,
                                     .draft_row = row->draft_row,
                                     .draft_why = row->draft_row ? NULL : "no draft model"};
    rc = push_step(s, HM_STAMP_ROW, &step, row->index, &error);
    return keep(s, rc, &error, err);
}

// ---- closing

static hm_status write_end(struct hm_stamper *s, struct hm_error *err)
{
    struct hm_line line = {0};
    hm_stamp_end_line(&line, &s->config, &s->summary, hm_now() - s->opened);
    hm_status rc = hm_line_check(&line, "end", err);
    if (!rc) rc = deliver(s, &line, err);
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
    s->summary.seconds = statistics.seconds - s->summary.hash_seconds;
    s->summary.write_seconds = statistics.writer_seconds;
    s->summary.most_rows = statistics.most_weight;
    for (int side = TARGET; side <= DRAFT; side++) keep(s, hm_shard_close(s->shards[side], &error), &error, NULL);
    if (!s->rc && !s->order.open) keep(s, write_end(s, &error), &error, NULL);
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
