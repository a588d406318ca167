// Copies of records, so that their producer may reuse its rows: see stamp_record.h.
#include "certify/stamp_record.h"

#include "base/memory.h"
#include "certify/row.h"

#include <stdlib.h>
#include <string.h>

void hm_stamp_job_free(void *pointer)
{
    struct hm_stamp_job *job = pointer;
    if (!job) return;
    hm_line_free(&job->line);
    free(job->rows);
    free(job->row_of);
    free(job->tokens);
    free(job->logq);
    free(job->text);
    free(job->tally);
    free(job);
}

static float *rows_new(size_t rows, const struct hm_stamp_config *config)
{
    size_t floats, bytes;
    if (!hm_mul_size(rows, config->vocab, &floats) || !hm_mul_size(floats, sizeof(float), &bytes)) return NULL;
    return malloc(bytes ? bytes : 1);
}

static bool copy_step(struct hm_stamp_job *job, const struct hm_log_step *from, const struct hm_stamp_config *config)
{
    struct hm_log_step *to = &job->record.step;
    size_t vocab = config->vocab;
    *to = *from;
    job->rows = rows_new(from->draft_row ? 2 : 1, config);
    job->tokens = hm_calloc(from->child_count, sizeof *job->tokens);
    job->text = hm_calloc(from->text_size, 1);
    job->tally = hm_calloc(config->rule_count * config->m_count, sizeof *job->tally);
    if (!job->rows || !job->tokens || !job->text || !job->tally) return false;
    memcpy(job->rows, from->target_row, vocab * sizeof(float));
    to->target_row = job->rows;
    if (from->draft_row) to->draft_row = memcpy(job->rows + vocab, from->draft_row, vocab * sizeof(float));
    if (from->child_count) memcpy(job->tokens, from->children, from->child_count * sizeof *job->tokens);
    if (from->text_size) memcpy(job->text, from->text, from->text_size);
    to->children = job->tokens;
    to->text = job->text;
    return true;
}

struct hm_stamp_job *hm_stamp_job_step(enum hm_stamp_kind kind, const struct hm_log_step *step,
                                       const struct hm_stamp_config *config)
{
    struct hm_stamp_job *job = hm_calloc(1, sizeof *job);
    if (!job) return NULL;
    job->kind = kind;
    if (copy_step(job, step, config)) return job;
    hm_stamp_job_free(job);
    return NULL;
}

// Marks the nodes whose rows matter: those from which the walk may come to a node that counts (docs/theory.md §7). With the
// first token drawn before, node 1 is reached without a draw.
static size_t mark(const struct hm_log_round *round, const struct hm_stamp_config *config, const float **row_of,
                   struct hm_stamp_place *place)
{
    size_t count = 0;
    hm_stamp_places(round, config, place);
    for (size_t i = round->first_drawn ? 2 : 1; i < round->nodes; i++) {
        size_t parent = (size_t)round->parent[i];
        if (!place[i].counts || row_of[parent]) continue;
        row_of[parent] = round->target_rows + parent * config->vocab;
        count++;
    }
    return count;
}

static bool wants_rows(const struct hm_log_round *round, const struct hm_stamp_config *config)
{
    return config->all_nodes && !config->greedy && config->acceptance == HM_STAMP_MATCH && round->target_rows;
}

size_t hm_stamp_round_rows(const struct hm_log_round *round, const struct hm_stamp_config *config)
{
    size_t count = 0;
    if (!wants_rows(round, config)) return 0;
    const float **row_of = hm_calloc(round->nodes, sizeof *row_of);
    struct hm_stamp_place *place = hm_calloc(round->nodes, sizeof *place);
    if (row_of && place) count = mark(round, config, row_of, place);
    free(row_of);
    free(place);
    return count;
}

static bool copy_rows(struct hm_stamp_job *job, const struct hm_log_round *from, const struct hm_stamp_config *config)
{
    struct hm_stamp_place *place = hm_calloc(from->nodes, sizeof *place);
    size_t vocab = config->vocab;
    job->row_of = hm_calloc(from->nodes, sizeof *job->row_of);
    if (place && job->row_of) job->rows = rows_new(mark(from, config, job->row_of, place), config);
    free(place);
    if (!job->rows) return false;
    float *next = job->rows;
    for (size_t i = 0; i < from->nodes; i++) {
        if (!job->row_of[i]) continue;
        job->row_of[i] = memcpy(next, job->row_of[i], vocab * sizeof(float));
        next += vocab;
    }
    return true;
}

static bool copy_round(struct hm_stamp_job *job, const struct hm_log_round *from, const struct hm_stamp_config *config)
{
    struct hm_log_round *to = &job->record.round;
    size_t n = from->nodes, ids;
    *to = *from;
    if (!hm_mul_size(n, 2, &ids)) return false;
    job->tokens = hm_calloc(ids, sizeof *job->tokens);
    job->logq = hm_calloc(n, sizeof *job->logq);
    if (!job->tokens || !job->logq) return false;
    to->parent = memcpy(job->tokens, from->parent, n * sizeof *job->tokens);
    to->token = memcpy(job->tokens + n, from->token, n * sizeof *job->tokens);
    to->logq = memcpy(job->logq, from->logq, n * sizeof *job->logq);
    to->target_rows = NULL;
    return !wants_rows(from, config) || copy_rows(job, from, config);
}

struct hm_stamp_job *hm_stamp_job_round(const struct hm_log_round *round, const struct hm_stamp_config *config)
{
    struct hm_stamp_job *job = hm_calloc(1, sizeof *job);
    if (!job) return NULL;
    job->kind = HM_STAMP_ROUND;
    if (copy_round(job, round, config)) return job;
    hm_stamp_job_free(job);
    return NULL;
}

void hm_stamp_count_questions(struct hm_stamp_job *job, const struct hm_row *row)
{
    if (!row) return;
    struct hm_row_questions questions = hm_row_questions(row);
    job->decisions += questions.answered + questions.undecided;
    job->filter_undecided += questions.undecided;
}
