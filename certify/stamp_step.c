// Step and node records: the certificates of one target row, computed and written as JSON. See stamp_record.h.
#include "certify/stamp_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// What the functions below share about one step.
struct scene {
    struct hm_line *line;
    const struct hm_stamp_config *config;
    const struct hm_log_step *step;
    struct hm_row *target, *draft; // draft: NULL when there is none
    struct hm_row_distance distance;
    struct hm_error *err;
};

static bool is_node(const struct hm_log_step *step)
{
    return step->token < 0;
}

static void add_ival(struct hm_line *line, const char *key, struct hm_ival value)
{
    hm_line_format(line, "\"%s\":", key);
    hm_line_ival(line, value);
}

static const char *verdict_text(enum hm_verdict verdict)
{
    return verdict == HM_YES ? "yes" : verdict == HM_NO ? "no" : "undecided";
}

static const char *certified_text(enum hm_certified certified)
{
    static const char *const text[] = {[HM_CERT_NO] = "no",
                                       [HM_CERT_YES] = "yes",
                                       [HM_CERT_VACUOUS] = "vacuous",
                                       [HM_CERT_INAPPLICABLE] = "inapplicable",
                                       [HM_CERT_UNDECIDED] = "undecided"};
    return text[certified];
}

// The row reference of one side; row NULL: there is none, and `why` says why.
static hm_status add_row(struct scene *s, const char *key, const float *row, const char *why, uint64_t place)
{
    const struct hm_stamp_config *config = s->config;
    uint8_t digest[HM_SHA256_BYTES];
    char hex[HM_SHA256_HEX];
    hm_line_format(s->line, ",\"%s\":{", key);
    if (row && config->keep_rows) {
        hm_line_format(s->line, "\"shard\":%" PRIu64 ",\"index\":%" PRIu64, place / config->capacity,
                       place % config->capacity);
    } else {
        hm_line_bytes(s->line, "\"why\":", 6);
        hm_line_text(s->line, row ? "not kept" : why);
    }
    if (row && config->hash_rows) {
        hm_status rc = hm_sha256(row, config->vocab * sizeof *row, digest, s->err);
        if (rc) return rc;
        hm_sha256_hex(digest, hex);
        hm_line_format(s->line, ",\"sha256\":\"%s\"", hex);
    }
    hm_line_bytes(s->line, "}", 1);
    return HM_OK;
}

// [id,logit]
static void add_entry(struct scene *s, int32_t token)
{
    hm_line_format(s->line, "[%" PRId32 ",", token);
    hm_line_real(s->line, (double)hm_row_logits(s->target)[token]);
    hm_line_bytes(s->line, "]", 1);
}

static void add_edge(struct scene *s, const int32_t edge[2])
{
    hm_line_bytes(s->line, ",\"edge\":[", 9);
    for (int i = 0; i < 2; i++) {
        if (i) hm_line_bytes(s->line, ",", 1);
        if (edge[i] >= 0) add_entry(s, edge[i]);
        else hm_line_bytes(s->line, "null", 4);
    }
    hm_line_bytes(s->line, "]", 1);
}

static hm_status add_figures(struct scene *s)
{
    struct hm_ival lse, entropy, regret;
    size_t top = s->config->top < s->config->vocab ? s->config->top : s->config->vocab;
    hm_line_bytes(s->line, ",\"top\":[", 8);
    for (size_t rank = 0; rank < top; rank++) {
        if (rank) hm_line_bytes(s->line, ",", 1);
        add_entry(s, hm_row_token(s->target, rank));
    }
    hm_line_format(s->line, "],\"support\":%zu,", s->step->support);
    hm_status rc = hm_row_lse(s->target, &lse, s->err);
    if (!rc) rc = hm_row_entropy(s->target, &entropy, s->err);
    if (rc) return rc;
    add_ival(s->line, "lse", lse);
    hm_line_bytes(s->line, ",", 1);
    add_ival(s->line, "entropy", entropy);
    if (s->draft) {
        rc = hm_row_distance(s->target, s->draft, &s->distance, s->err);
        if (rc) return rc;
        hm_line_bytes(s->line, ",", 1);
        add_ival(s->line, "kl_pq", s->distance.kl_pq);
        hm_line_bytes(s->line, ",", 1);
        add_ival(s->line, "kl_qp", s->distance.kl_qp);
        hm_line_bytes(s->line, ",", 1);
        add_ival(s->line, "tv", s->distance.tv);
    }
    if (!s->config->relaxed || is_node(s->step)) return HM_OK;
    rc = hm_row_regret(s->target, s->step->token, &regret, s->err);
    if (rc) return rc;
    hm_line_bytes(s->line, ",", 1);
    add_ival(s->line, "regret", regret);
    return HM_OK;
}

// k, the emitted token's membership and the edge alone: what is left of a claim when nothing was proposed.
static hm_status make_childless(struct scene *s, const struct hm_rule *rule, struct hm_claim *claim)
{
    enum hm_verdict decided;
    *claim = (struct hm_claim){.edge = {-1, -1}};
    hm_status rc = hm_rule_count(rule, s->target, &claim->k, &decided, s->err);
    if (!rc && !is_node(s->step)) rc = hm_rule_accepts(rule, s->target, s->step->token, &claim->accepts, s->err);
    if (rc) return rc;
    if (claim->k > 0) claim->edge[0] = hm_row_token(s->target, claim->k - 1);
    if (claim->k < s->config->vocab) claim->edge[1] = hm_row_token(s->target, claim->k);
    return HM_OK;
}

static void add_tied(struct hm_line *line, const char *key, const uint32_t tied[2])
{
    hm_line_format(line, ",\"%s\":[%" PRIu32 ",%" PRIu32 "],", key, tied[0], tied[1]);
}

static void add_levels(struct scene *s, const struct hm_claim *claim)
{
    struct hm_line *line = s->line;
    const struct hm_level *level = &claim->level;
    struct hm_ival klf = level->klf, klr = level->klr, tv = level->tv;
    hm_line_bytes(line, ",", 1);
    if (claim->nothing) {
        klf = klr = tv = (struct hm_ival){0, 0};
    } else if (claim->vacuous) {
        klf = klr = tv = (struct hm_ival){1.0 / 0.0, 1.0 / 0.0};
    } else {
        add_ival(line, "level_f", level->level_f);
        add_tied(line, "tied_f", level->tied_f);
        add_ival(line, "level_r", level->level_r);
        add_tied(line, "tied_r", level->tied_r);
    }
    add_ival(line, "klf", klf);
    hm_line_bytes(line, ",", 1);
    add_ival(line, "klr", klr);
    hm_line_bytes(line, ",", 1);
    add_ival(line, "tv", tv);
    if (claim->has_margin) {
        hm_line_bytes(line, ",\"margin\":{", 11);
        add_ival(line, "gap", claim->margin.gap);
        hm_line_bytes(line, ",", 1);
        add_ival(line, "klf", claim->margin.klf);
        hm_line_bytes(line, ",", 1);
        add_ival(line, "klr", claim->margin.klr);
        hm_line_bytes(line, ",", 1);
        add_ival(line, "tv", claim->margin.tv);
        hm_line_bytes(line, "}", 1);
    }
    if (claim->has_radius && !is_node(s->step)) {
        hm_line_bytes(line, ",", 1);
        add_ival(line, "radius", claim->radius);
    }
}

static const char *why_not_certified(const struct hm_log_step *step, size_t m)
{
    if (step->source == HM_SOURCE_PREFILL && !is_node(step)) return "prefill";
    return m == 0 ? "no children" : step->draft_why;
}

static void add_certified(struct scene *s, const struct hm_claim *claim, size_t m)
{
    if (m == 0 || !claim->has_draft) {
        hm_line_bytes(s->line, ",\"certified\":null,\"why\":", 24);
        hm_line_text(s->line, why_not_certified(s->step, m));
        return;
    }
    hm_line_format(s->line, ",\"covered\":\"%s\",\"certified\":{\"klf\":\"%s\",\"klr\":\"%s\",\"tv\":\"%s\"}",
                   verdict_text(claim->covered), certified_text(claim->certified[0]),
                   certified_text(claim->certified[1]), certified_text(claim->certified[2]));
}

static void tally(struct hm_stamp_tally *out, const struct hm_claim *claim, size_t m, bool node)
{
    *out = (struct hm_stamp_tally){.m = m, .has_draft = m > 0 && claim->has_draft};
    if (!node) out->undecided += claim->accepts == HM_UNDECIDED;
    if (!out->has_draft) return;
    out->covered = claim->covered == HM_YES;
    out->certified = hm_claim_certified(claim);
    out->undecided += claim->covered == HM_UNDECIDED;
    for (int i = 0; i < 3; i++) {
        out->verdict[i] = claim->certified[i];
        out->undecided += claim->certified[i] == HM_CERT_UNDECIDED;
    }
}

static hm_status add_claim(struct scene *s, size_t rule, uint32_t m_asked, struct hm_stamp_tally *out)
{
    const struct hm_log_step *step = s->step;
    bool from_tree = m_asked == HM_M_TREE;
    struct hm_claim claim;
    struct hm_claim_query query = {.rule = &s->config->rules[rule],
                                   .target = s->target,
                                   .draft = s->draft,
                                   .distance = s->draft ? &s->distance : NULL,
                                   .token = step->token,
                                   .m = from_tree ? step->child_count : m_asked,
                                   .children = from_tree ? step->children : NULL,
                                   .margin = s->config->margin};
    hm_status rc = query.m > 0 ? hm_claim_make(&query, &claim, s->err) : make_childless(s, query.rule, &claim);
    if (rc) return rc;
    hm_line_bytes(s->line, "{\"rule\":", 8);
    hm_line_text(s->line, s->config->rule_text[rule]);
    hm_line_format(s->line, ",\"m\":%zu,\"m_from\":\"%s\",\"k\":%zu", query.m, from_tree ? "tree" : "fixed", claim.k);
    if (!is_node(step)) hm_line_format(s->line, ",\"accepts\":\"%s\"", verdict_text(claim.accepts));
    add_edge(s, claim.edge);
    if (query.m > 0) add_levels(s, &claim);
    add_certified(s, &claim, query.m);
    hm_line_bytes(s->line, "}", 1);
    tally(out, &claim, query.m, is_node(step));
    return HM_OK;
}

static void add_place(struct hm_line *line, const struct hm_log_step *step)
{
    static const char *const source[] = {
        [HM_SOURCE_PREFILL] = "prefill", [HM_SOURCE_ACCEPTED] = "accepted", [HM_SOURCE_CONTINUATION] = "continuation"};
    hm_line_format(line, "{\"kind\":\"%s\",\"sequence\":%" PRIu32, is_node(step) ? "node" : "step", step->sequence);
    if (!is_node(step)) hm_line_format(line, ",\"t\":%" PRIu32, step->t);
    if (step->round >= 0) hm_line_format(line, ",\"round\":%" PRId64, step->round);
    else hm_line_bytes(line, ",\"round\":null", 13);
    if (!is_node(step))
        hm_line_format(line, ",\"token\":%" PRId32 ",\"source\":\"%s\"", step->token, source[step->source]);
    hm_line_format(line, ",\"node\":%zu,\"depth\":%zu", step->node, step->depth);
    if (is_node(step)) return;
    if (step->child >= 0) hm_line_format(line, ",\"child\":%" PRId64, step->child);
    else hm_line_bytes(line, ",\"child\":null", 13);
}

static hm_status add_body(struct scene *s, struct hm_stamp_step *job)
{
    const struct hm_log_step *step = s->step;
    size_t count = 0;
    add_place(s->line, step);
    hm_status rc = add_row(s, "row", step->target_row, NULL, job->place[0]);
    if (!rc) rc = add_row(s, "draft_row", step->draft_row, step->draft_why, job->place[1]);
    if (!rc) rc = add_figures(s);
    hm_line_bytes(s->line, ",\"claims\":[", 11);
    for (size_t rule = 0; rule < s->config->rule_count && !rc; rule++)
        for (size_t m = 0; m < s->config->m_count && !rc; m++) {
            if (count) hm_line_bytes(s->line, ",", 1);
            rc = add_claim(s, rule, s->config->m[m], &job->tally[count++]);
        }
    hm_line_bytes(s->line, "]", 1);
    if (rc || is_node(step)) return rc;
    static const char *const finish[] = {
        [HM_FINISH_EOS] = "eos", [HM_FINISH_LENGTH] = "length", [HM_FINISH_STOP] = "stop"};
    if (step->finish != HM_FINISH_NONE) hm_line_format(s->line, ",\"finish\":\"%s\"", finish[step->finish]);
    hm_line_bytes(s->line, ",\"text\":", 8);
    hm_line_string(s->line, step->text ? step->text : "", step->text_size);
    return HM_OK;
}

hm_status hm_stamp_step_line(struct hm_line *line, struct hm_stamp_step *job, const struct hm_stamp_config *config,
                             struct hm_error *err)
{
    const struct hm_log_step *step = &job->record;
    struct scene s = {.line = line, .config = config, .step = step, .err = err};
    char place[96];
    if (is_node(step))
        snprintf(place, sizeof place, "sequence %" PRIu32 ", round %" PRId64 ", node %zu", step->sequence, step->round,
                 step->node);
    else snprintf(place, sizeof place, "sequence %" PRIu32 ", step %" PRIu32, step->sequence, step->t);
    hm_status rc = hm_row_open(step->target_row, config->vocab, &config->certify_temperature, &s.target, err);
    if (rc) {
        hm_fail_prefix(err, "target row");
        goto out;
    }
    if (step->draft_row) rc = hm_row_open(step->draft_row, config->vocab, &config->certify_temperature, &s.draft, err);
    if (rc) {
        hm_fail_prefix(err, "draft row");
        goto out;
    }
    rc = add_body(&s, job);
    if (!rc) rc = hm_line_check(line, "certificate", err);
out:
    if (rc) hm_fail_prefix(err, place);
    hm_row_close(s.draft);
    hm_row_close(s.target);
    return rc;
}
