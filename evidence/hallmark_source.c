// Certificate logs (docs/log.md) as a source: sequences with their prompts, tokens with the rows that were kept.
//
// A step whose row lies in a shard gives that row, whole, and the draft's beside it where that is kept too. Of other steps
// the `top` logits are known, exactly, and `lse`. At a certify temperature of 1 they become log-probabilities, l - lse: that
// tells masses, at the price that equal logits can no longer be told from nearly equal ones. At other temperatures they stay
// logits, of which differences are known. Audits (records of rows) are one sequence. Nothing is checked beyond what the log
// reader checks: whether a row has its hash is `hallmark verify`'s question.
#include "evidence/source_state.h"

#include "base/memory.h"
#include "base/rational.h"
#include "certify/log_reader.h"
#include "decode/row_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The shards of one side, one of them open. Steps name rows in ascending order, so one is enough.
struct shards {
    const char *pattern;      // with one %05d; NULL: rows were not kept
    struct hm_row_file *file; // NULL: none open, or `shard` is missing
    int64_t shard;            // the last one looked at; -1: none
    float *row;               // [vocab]
};

struct hallmark {
    char *path;
    struct hm_log_reader *log;
    const struct hm_record_header *header;
    size_t vocab, told;
    bool plain;                 // the certify temperature is 1
    struct shards target, draft;
    int64_t nodes;              // of the last round
    bool began;                 // an audit's sequence was given
    bool ended;
    struct hm_evidence_entry *entry; // [most entries of a step]
    size_t entries;
    struct hm_source_sequence sequence;
    struct hm_source_token token;
    struct hm_finding finding[4]; // to be told after the event that was given last
    size_t findings, told_findings;
    char where[80];
};

static struct hm_finding *add_finding(struct hallmark *h)
{
    return &h->finding[h->findings++];
}

// ---- Shards ----

// The name of a shard beside the log, in fresh memory. Patterns are names only: a log must not lead out of its folder.
static hm_status shard_path(const struct hallmark *h, const char *pattern, int64_t shard, char **out, struct hm_error *err)
{
    const char *percent = strchr(pattern, '%'), *slash = strrchr(h->path, '/');
    if (!percent || strncmp(percent, "%05d", 4) != 0 || strchr(percent + 1, '%') || strchr(pattern, '/'))
        return hm_fail(err, HM_FORMAT, "%s: line 1: rows: expected file names with one %%05d, found \"%.100s\"", h->path,
                       pattern);
    int folder = slash ? (int)(slash + 1 - h->path) : 0;
    int n = asprintf(out, "%.*s%.*s%05lld%s", folder, h->path, (int)(percent - pattern), pattern, (long long)shard, percent + 4);
    return n < 0 ? hm_fail(err, HM_MEMORY, "%s: out of memory", h->path) : HM_OK;
}

// Opens a shard; one that does not exist leaves s->file NULL.
static hm_status open_shard(const struct hallmark *h, struct shards *s, int64_t shard, struct hm_error *err)
{
    char *path;
    hm_row_file_close(s->file);
    s->file = NULL;
    s->shard = shard;
    hm_status rc = shard_path(h, s->pattern, shard, &path, err);
    if (rc) return rc;
    if (access(path, F_OK) == 0) rc = hm_row_file_open(path, NULL, &s->file, err);
    if (!rc && s->file && hm_row_file_info(s->file).vocab != h->vocab)
        rc = hm_fail(err, HM_SHAPE, "%s: expected rows of %zu logits as the log says, found %zu", path, h->vocab,
                     hm_row_file_info(s->file).vocab);
    free(path);
    return rc;
}

// *out is the row, or NULL when it is not at hand.
static hm_status read_row(struct hallmark *h, struct shards *s, const struct hm_record_row *row, const float **out,
                          struct hm_error *err)
{
    *out = NULL;
    if (row->shard < 0 || !s->pattern) return HM_OK;
    hm_status rc = row->shard == s->shard ? HM_OK : open_shard(h, s, row->shard, err);
    if (rc || !s->file) return rc;
    size_t rows = hm_row_file_info(s->file).rows;
    if ((uint64_t)row->index >= rows) {
        hm_finding_set(add_finding(h), HM_FINDING_LENGTH, h->token.sequence, h->token.t, h->where,
                       "expected row %lld in shard %lld, found %zu rows", (long long)row->index, (long long)row->shard, rows);
        return HM_OK;
    }
    if (!s->row) s->row = hm_calloc(h->vocab, sizeof *s->row);
    if (!s->row) return hm_fail(err, HM_MEMORY, "%s: out of memory for rows of %zu logits", h->path, h->vocab);
    hm_row_file_read(s->file, (size_t)row->index, s->row);
    *out = s->row;
    return HM_OK;
}

// ---- Evidence ----

// logit - lse, rounded outward.
static struct hm_ival subtract(double logit, struct hm_ival lse)
{
    if (!(logit > -INFINITY)) return (struct hm_ival){-INFINITY, -INFINITY};
    return (struct hm_ival){nextafter(logit - lse.hi, -INFINITY), nextafter(logit - lse.lo, INFINITY)};
}

// What the entries of `top` tell.
static hm_status use_top(struct hallmark *h, const struct hm_record_step *step, struct hm_error *err)
{
    void *grown = h->entry;
    bool difference = h->plain && isfinite(step->lse.lo) && isfinite(step->lse.hi);
    h->token.has_row = step->top_count > 0;
    h->token.missing = HM_MISSING_TOP;
    if (!h->token.has_row) return HM_OK;
    if (!hm_grow(&grown, &h->entries, step->top_count, sizeof *h->entry))
        return hm_fail(err, HM_MEMORY, "%s: out of memory for %zu entries", h->path, step->top_count);
    h->entry = grown;
    struct hm_evidence *row = &h->token.row;
    *row = (struct hm_evidence){.unit = difference ? HM_UNIT_LOG_PROBABILITY : HM_UNIT_LOGIT, .entry = h->entry,
                                .count = step->top_count, .ranked = step->top_count, .emitted = HM_UNSEEN, .vocab = h->vocab};
    for (size_t i = 0; i < step->top_count; i++) {
        double logit = step->top[i].logit;
        struct hm_ival point = {logit, logit};
        h->entry[i] = (struct hm_evidence_entry){.id = (int32_t)step->top[i].id,
                                                 .value = difference ? subtract(logit, step->lse) : point};
        if (row->emitted == HM_UNSEEN && step->top[i].id == step->token) row->emitted = i;
        if (h->entry[i].value.hi < INFINITY) continue;
        h->token.has_row = false;
        h->token.missing = HM_MISSING_LOGPROBS;
        hm_finding_set(add_finding(h), HM_FINDING_NOT_A_NUMBER, h->token.sequence, h->token.t, h->where,
                       "expected an lse near the logits, found %g for a logit of %g", step->lse.lo, logit);
        break;
    }
    return HM_OK;
}

static hm_status give_step(struct hallmark *h, const struct hm_record_step *step, size_t line, struct hm_event *out,
                           struct hm_error *err)
{
    bool audit = h->header->audit;
    int64_t t = audit ? step->index : step->t;
    const float *logits;
    if (t > UINT32_MAX)
        return hm_fail(err, HM_RANGE, "%s: line %zu: expected fewer than 2^32 tokens of a sequence, found number %lld", h->path,
                       line, (long long)t);
    snprintf(h->where, sizeof h->where, audit ? "line %zu: row %lld" : "line %zu", line, (long long)t);
    h->token = (struct hm_source_token){.sequence = audit ? 0 : (uint32_t)step->sequence, .t = (uint32_t)t,
                                        .token = (int32_t)step->token, .where = h->where,
                                        .width = audit || step->round < 0 ? 0 : (int32_t)h->nodes};
    if (step->text && step->text[0]) h->token.text = step->text, h->token.text_size = strlen(step->text);
    hm_status rc = read_row(h, &h->target, &step->row, &logits, err);
    if (!rc && logits) {
        h->token.has_row = true;
        h->token.row = (struct hm_evidence){.unit = HM_UNIT_LOGIT, .vocab = h->vocab, .logits = logits,
                                            .emitted = step->token < 0 ? HM_UNSEEN : (size_t)step->token};
    } else if (!rc) {
        rc = use_top(h, step, err);
    }
    if (!rc) rc = read_row(h, &h->draft, &step->draft_row, &h->token.draft_logits, err);
    *out = (struct hm_event){.kind = HM_EVENT_TOKEN, .token = &h->token};
    return rc;
}

// ---- Records ----

static void give_sequence(struct hallmark *h, const struct hm_record_sequence *s, struct hm_event *out)
{
    const struct hm_record_header *header = h->header;
    h->sequence = (struct hm_source_sequence){.id = "", .model = header->target.name, .category = "", .draft_tokens = -1,
                                              .accepted_tokens = -1};
    if (s) { // not an audit
        h->sequence.number = (uint32_t)s->sequence;
        h->sequence.id = s->id;
        h->sequence.category = s->category;
        h->sequence.prompt = s->prompt;
        h->sequence.prompt_length = s->prompt_length;
        h->sequence.temperature = header->temperature;
        h->sequence.seed = s->seed;
        h->sequence.acceptance = header->acceptance;
    }
    *out = (struct hm_event){.kind = HM_EVENT_SEQUENCE, .sequence = &h->sequence};
    if ((s && s->sequence > 0) || h->told == 0 || h->told == h->vocab) return;
    hm_finding_set(add_finding(h), HM_FINDING_LENGTH, -1, -1, "line 1", "expected a vocabulary of %zu, found %zu", h->told,
                   h->vocab);
}

static void give_end(struct hallmark *h, struct hm_event *out)
{
    bool whole = hm_log_reader_state(h->log) == HM_LOG_COMPLETE;
    h->ended = true;
    *out = (struct hm_event){.kind = HM_EVENT_END};
    if (whole) return;
    hm_finding_set(add_finding(h), HM_FINDING_LENGTH, -1, -1, "end of file",
                   "expected an end record, found the end of the file%s",
                   hm_log_reader_state(h->log) == HM_LOG_CUT_LINE ? ", inside a line" : "");
    *out = (struct hm_event){.kind = HM_EVENT_FINDING, .finding = &h->finding[h->told_findings++]};
}

static hm_status next_event(void *state, struct hm_event *out, struct hm_error *err)
{
    struct hallmark *h = state;
    struct hm_record record;
    if (h->told_findings < h->findings) {
        *out = (struct hm_event){.kind = HM_EVENT_FINDING, .finding = &h->finding[h->told_findings++]};
        return HM_OK;
    }
    h->findings = h->told_findings = 0;
    if (h->header->audit && !h->began) {
        h->began = true;
        give_sequence(h, NULL, out);
        return HM_OK;
    }
    for (;;) {
        *out = (struct hm_event){.kind = HM_EVENT_END};
        if (h->ended) return HM_OK;
        hm_status rc = hm_log_reader_next(h->log, &record, err);
        if (rc) return rc;
        switch (record.kind) {
        case HM_RECORD_SEQUENCE: give_sequence(h, record.sequence, out); return HM_OK;
        case HM_RECORD_ROUND: h->nodes = (int64_t)record.round->nodes; break;
        case HM_RECORD_STEP:
        case HM_RECORD_ROW: return give_step(h, record.step, record.line, out, err);
        case HM_RECORD_NONE: give_end(h, out); return HM_OK;
        case HM_RECORD_NODE: // rows of nodes that no token came from
        case HM_RECORD_END: break;
        }
    }
}

static void close_shards(struct shards *s)
{
    hm_row_file_close(s->file);
    free(s->row);
}

static void close_reader(void *state)
{
    struct hallmark *h = state;
    close_shards(&h->target);
    close_shards(&h->draft);
    hm_log_reader_close(h->log);
    free(h->entry);
    free(h->path);
    free(h);
}

static bool is_one(const char *text)
{
    struct hm_rational value, one;
    hm_rational_init(&value);
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    bool equal = hm_rational_parse(text, &value, NULL) == HM_OK && mpq_equal(value.value, one.value);
    hm_rational_clear(&value);
    hm_rational_clear(&one);
    return equal;
}

hm_status hm_hallmark_open(const char *path, const struct hm_map *map, const struct hm_source_options *options,
                           struct hm_reader *out, struct hm_error *err)
{
    (void)map;
    struct hallmark *h = hm_calloc(1, sizeof *h);
    if (h) h->path = strdup(path);
    if (!h || !h->path) {
        free(h);
        return hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    }
    hm_status rc = hm_log_reader_open(path, &h->log, err);
    if (rc) {
        close_reader(h);
        return rc;
    }
    h->header = hm_log_reader_header(h->log);
    h->vocab = (size_t)h->header->target.vocab;
    h->told = options->vocab;
    h->plain = is_one(h->header->certify_temperature);
    h->target = (struct shards){.pattern = h->header->target_rows, .shard = -1};
    h->draft = (struct shards){.pattern = h->header->draft_rows, .shard = -1};
    *out = (struct hm_reader){.state = h, .next = next_event, .close = close_reader};
    return HM_OK;
}
