// Step, node and audit records: the certificates of one target row, computed and written as JSON. See stamp_record.h;
// claims are in stamp_claim.c.
#include "certify/stamp_step.h"
#include "base/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

bool hm_stamp_has_token(const struct hm_stamp_scene *s)
{
    return s->step->token >= 0;
}

void hm_stamp_add_entry(struct hm_stamp_scene *s, int32_t token)
{
    hm_line_format(s->line, "[%" PRId32 ",", token);
    hm_line_real(s->line, (double)hm_row_logits(s->target)[token]);
    hm_line_bytes(s->line, "]", 1);
}

struct hm_ival hm_stamp_provable(struct hm_ival value)
{
    if (value.lo != value.hi || value.lo == 0 || isinf(value.lo)) return value;
    return (struct hm_ival){nextafter(value.lo, -INFINITY), nextafter(value.hi, INFINITY)};
}

// ---- row references

static hm_status add_hash(struct hm_stamp_scene *s, const float *row, double *seconds)
{
    uint8_t digest[HM_SHA256_BYTES];
    char hex[HM_SHA256_HEX];
    double start = hm_thread_seconds();
    hm_status rc = hm_sha256(row, s->config->vocab * sizeof *row, digest, s->err);
    *seconds += hm_thread_seconds() - start;
    if (rc) return rc;
    hm_sha256_hex(digest, hex);
    hm_line_format(s->line, ",\"sha256\":\"%s\"", hex);
    return HM_OK;
}

// The row reference of one side; row NULL: there is none, and `why` says why.
static hm_status add_row(struct hm_stamp_scene *s, const char *key, const float *row, const char *why, uint64_t place,
                         double *seconds)
{
    const struct hm_stamp_config *config = s->config;
    hm_status rc = HM_OK;
    hm_line_key(s->line, key);
    if (row && config->keep_rows) {
        hm_line_format(s->line, "{\"shard\":%" PRIu64 ",\"index\":%" PRIu64, place / config->capacity,
                       place % config->capacity);
    } else {
        hm_line_bytes(s->line, "{\"why\":", 7);
        hm_line_text(s->line, row ? "not kept" : why);
    }
    if (row && config->hash_rows) rc = add_hash(s, row, seconds);
    hm_line_bytes(s->line, "}", 1);
    return rc;
}

// ---- figures

static void add_top(struct hm_stamp_scene *s)
{
    size_t top = s->config->top < s->config->vocab ? s->config->top : s->config->vocab;
    hm_line_bytes(s->line, ",\"top\":[", 8);
    for (size_t rank = 0; rank < top; rank++) {
        if (rank) hm_line_bytes(s->line, ",", 1);
        hm_stamp_add_entry(s, hm_row_token(s->target, rank));
    }
    hm_line_bytes(s->line, "]", 1);
}

static hm_status add_distances(struct hm_stamp_scene *s)
{
    hm_status rc = hm_row_distance(s->target, s->draft, &s->distance, s->err);
    if (rc) return rc;
    hm_line_member(s->line, "kl_pq", s->distance.kl_pq);
    hm_line_member(s->line, "kl_qp", s->distance.kl_qp);
    hm_line_member(s->line, "tv", s->distance.tv);
    return HM_OK;
}

static hm_status add_divergences(struct hm_stamp_scene *s)
{
    const struct hm_stamp_config *config = s->config;
    for (size_t i = 0; i < config->divergence_count; i++) {
        struct hm_ival value;
        hm_status rc = hm_divergence_between(&config->divergences[i], s->target, s->draft, &value, s->err);
        if (rc) return rc;
        hm_line_format(s->line, "%s\"%s\":", i ? "," : ",\"divergences\":{", config->divergence_text[i]);
        hm_line_ival(s->line, hm_stamp_provable(value));
    }
    if (config->divergence_count) hm_line_bytes(s->line, "}", 1);
    return HM_OK;
}

static hm_status add_figures(struct hm_stamp_scene *s)
{
    struct hm_ival lse, entropy, regret;
    hm_status rc = hm_row_lse(s->target, &lse, s->err);
    if (!rc) rc = hm_row_entropy(s->target, &entropy, s->err);
    if (rc) return rc;
    hm_line_member(s->line, "lse", lse);
    hm_line_member(s->line, "entropy", entropy);
    if (s->draft) rc = add_distances(s);
    bool regretted = s->config->has_rule && s->kind == HM_STAMP_STEP;
    if (!rc && regretted) rc = hm_row_regret(s->target, s->step->token, &regret, s->err);
    if (!rc && regretted) hm_line_member(s->line, "regret", hm_stamp_provable(regret));
    bool proposals = s->config->law[0] || s->config->law[1] || s->config->acceptance == HM_STAMP_STANDARD ||
                     s->config->acceptance == HM_STAMP_NUCLEUS;
    if (!rc && s->draft && proposals) hm_line_member(s->line, "standard_accept", s->distance.standard_accept);
    if (!rc) rc = hm_stamp_add_acceptance(s);
    if (!rc && s->draft) rc = add_divergences(s);
    if (!rc) rc = hm_stamp_add_law_of_token(s);
    return rc;
}

// ---- records

static void add_place(struct hm_stamp_scene *s, const struct hm_stamp_job *job)
{
    static const char *const source[] = {
        [HM_SOURCE_PREFILL] = "prefill", [HM_SOURCE_ACCEPTED] = "accepted", [HM_SOURCE_CONTINUATION] = "continuation"};
    const struct hm_log_step *step = s->step;
    struct hm_line *line = s->line;
    if (s->kind == HM_STAMP_ROW) {
        hm_line_format(line, "{\"kind\":\"row\",\"index\":%" PRIu64, job->index);
        if (hm_stamp_has_token(s)) hm_line_format(line, ",\"token\":%" PRId32, step->token);
        return;
    }
    bool node = s->kind == HM_STAMP_NODE;
    hm_line_format(line, "{\"kind\":\"%s\",\"sequence\":%" PRIu32, node ? "node" : "step", step->sequence);
    if (!node) hm_line_format(line, ",\"t\":%" PRIu32, step->t);
    if (step->round >= 0) hm_line_format(line, ",\"round\":%" PRId64, step->round);
    else hm_line_bytes(line, ",\"round\":null", 13);
    if (!node) hm_line_format(line, ",\"token\":%" PRId32 ",\"source\":\"%s\"", step->token, source[step->source]);
    hm_line_format(line, ",\"node\":%zu,\"depth\":%zu", step->node, step->depth);
    if (node) return;
    if (step->child >= 0) hm_line_format(line, ",\"child\":%" PRId64, step->child);
    else hm_line_bytes(line, ",\"child\":null", 13);
}

static void add_end(struct hm_stamp_scene *s)
{
    static const char *const finish[] = {
        [HM_FINISH_EOS] = "eos", [HM_FINISH_LENGTH] = "length", [HM_FINISH_STOP] = "stop"};
    const struct hm_log_step *step = s->step;
    if (step->finish != HM_FINISH_NONE) hm_line_format(s->line, ",\"finish\":\"%s\"", finish[step->finish]);
    hm_line_bytes(s->line, ",\"text\":", 8);
    hm_line_string(s->line, step->text ? step->text : "", step->text_size);
}

static hm_status add_body(struct hm_stamp_scene *s, struct hm_stamp_job *job)
{
    const struct hm_log_step *step = s->step;
    size_t count = 0;
    add_place(s, job);
    hm_status rc = add_row(s, "row", step->target_row, NULL, job->place[0], &job->hash_seconds);
    if (!rc) rc = add_row(s, "draft_row", step->draft_row, step->draft_why, job->place[1], &job->hash_seconds);
    if (rc) return rc;
    add_top(s);
    if (s->kind != HM_STAMP_ROW) hm_line_format(s->line, ",\"support\":%zu", step->support);
    rc = add_figures(s);
    hm_line_bytes(s->line, ",\"claims\":[", 11);
    for (size_t rule = 0; rule < s->config->rule_count && !rc; rule++)
        for (size_t m = 0; m < s->config->m_count && !rc; m++) {
            if (count) hm_line_bytes(s->line, ",", 1);
            rc = hm_stamp_add_claim(s, rule, s->config->m[m], &job->tally[count++]);
        }
    hm_line_bytes(s->line, "]", 1);
    if (!rc && s->kind == HM_STAMP_STEP) add_end(s);
    return rc;
}

static void name_place(const struct hm_stamp_job *job, char *place, size_t size)
{
    const struct hm_log_step *step = &job->record.step;
    if (job->kind == HM_STAMP_ROW) snprintf(place, size, "row %" PRIu64, job->index);
    else if (job->kind == HM_STAMP_NODE)
        snprintf(place, size, "sequence %" PRIu32 ", round %" PRId64 ", node %zu", step->sequence, step->round, step->node);
    else snprintf(place, size, "sequence %" PRIu32 ", step %" PRIu32, step->sequence, step->t);
}

static hm_status open_row(const struct hm_stamp_config *config, const float *logits, const char *which, struct hm_row **out,
                          struct hm_error *err)
{
    hm_status rc = logits ? hm_row_open(logits, config->vocab, &config->certify_temperature, out, err) : HM_OK;
    if (rc) hm_fail_prefix(err, which);
    return rc;
}

hm_status hm_stamp_step_line(struct hm_stamp_job *job, const struct hm_stamp_config *config, struct hm_error *err)
{
    const struct hm_log_step *step = &job->record.step;
    struct hm_stamp_scene s = {.line = &job->line, .config = config, .kind = job->kind, .step = step, .err = err};
    hm_status rc = open_row(config, step->target_row, "target row", &s.target, err);
    if (!rc) rc = open_row(config, step->draft_row, "draft row", &s.draft, err);
    if (!rc) rc = add_body(&s, job);
    if (!rc) rc = hm_line_check(&job->line, "certificate", err);
    if (rc) {
        char place[96];
        name_place(job, place, sizeof place);
        hm_fail_prefix(err, place);
    }
    hm_stamp_count_questions(job, s.target);
    hm_stamp_count_questions(job, s.draft);
    hm_row_close(s.draft);
    hm_row_close(s.target);
    return rc;
}
