// One pass over a log: every record adds to the figures (figures.h) and is forgotten.
#include "reports/gather.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t band_of(const double edges[HM_REPORT_BANDS], double value)
{
    size_t band = HM_REPORT_BANDS - 1;
    while (band > 0 && !(value >= edges[band])) band--;
    return band;
}

// A closed round enters the figures; one whose rest a truncated log has lost does not.
static hm_status close_round(struct hm_gather *g)
{
    struct hm_acceptance *a = &g->report->acceptance;
    if (!g->in_round) return HM_OK;
    g->in_round = false;
    if (!g->round_ended) {
        a->cut++;
        return HM_OK;
    }
    a->by_count[g->accepted < HM_REPORT_DEPTHS ? g->accepted : HM_REPORT_DEPTHS - 1]++;
    a->rounds++;
    a->ended += g->emitted == g->accepted; // no token of the target closes it
    a->accepted += g->accepted;
    a->emitted += g->emitted;
    a->verified += g->round.nodes - 1 - g->round.scored;
    a->pool += (uint64_t)g->round.pool;
    if (g->tree_depth > 0) {
        a->with_tree++;
        a->full += g->accepted == g->tree_depth;
    }
    for (size_t d = 0; d < HM_REPORT_DEPTHS; d++) {
        a->reach[d] += g->accepted >= d;
        a->offered[d] += g->tree_depth >= d;
        a->nodes[d] += g->at_depth[d];
    }
    if (g->round.has_expected_accept) {
        hm_sum_add(&a->expected, g->round.expected_accept);
        a->expected_accepted += g->accepted;
    }
    if (g->round.draft_seconds >= 0 && g->round.verify_seconds >= 0) {
        a->timed++;
        a->draft_seconds += g->round.draft_seconds;
        a->verify_seconds += g->round.verify_seconds;
    }
    struct hm_report_group *groups[] = {g->category, &g->report->by_log[g->log]};
    for (size_t i = 0; i < 2; i++) {
        groups[i]->rounds++;
        groups[i]->accepted += g->accepted;
        groups[i]->emitted += g->emitted;
    }
    return hm_rounds_end(&g->report->rounds, g->accepted, g->emitted, g->err);
}

static hm_status close_sequence(struct hm_gather *g)
{
    struct hm_report *r = g->report;
    hm_status rc = close_round(g);
    if (!g->finished) r->logs[g->log].unfinished++;
    hm_theory_sequence_end(&r->theory, g->finished);
    hm_speculative_sequence_end(&r->speculative);
    struct hm_course course =
        hm_course_end(&r->course, g->finished, g->category ? &g->category->course : NULL, &r->by_log[g->log].course);
    if (g->kept) g->kept->course = course;
    g->finished = true;
    return rc;
}

static hm_status add_sequence(struct hm_gather *g, const struct hm_record_sequence *sequence)
{
    struct hm_report *r = g->report;
    hm_status rc = close_sequence(g);
    if (rc) return rc;
    g->category = hm_report_category(r, sequence->category);
    if (!g->category) return hm_fail(g->err, HM_MEMORY, "out of memory for a category");
    g->finished = false;
    g->category->sequences++;
    r->by_log[g->log].sequences++;
    r->logs[g->log].sequences++;
    r->sequences++;
    hm_speculative_sequence(&r->speculative, sequence, &r->logs[g->log].header);
    return hm_keep_sequence(g, sequence);
}

static hm_status add_round(struct hm_gather *g, const struct hm_record_round *round, size_t line)
{
    hm_status rc = close_round(g);
    if (rc) return rc;
    size_t n = round->nodes;
    void *tree = g->tree;
    bool grown = hm_grow(&tree, &g->tree_capacity, 3 * n, sizeof *g->tree);
    g->tree = tree;
    if (!grown) return hm_fail(g->err, HM_MEMORY, "out of memory for a tree of %zu nodes", n);
    memcpy(g->tree, round->parent, n * sizeof *g->tree);
    memcpy(g->tree + n, round->token, n * sizeof *g->tree);
    memset(g->tree + 2 * n, 0, n * sizeof *g->tree);
    for (size_t i = 1; i < n - round->scored; i++) g->tree[2 * n + (size_t)round->parent[i]]++;
    g->in_round = true;
    g->round = *round;
    g->accepted = g->emitted = g->tree_depth = 0;
    g->round_ended = false;
    memset(g->at_depth, 0, sizeof g->at_depth);
    for (size_t i = 1; i < round->nodes - round->scored; i++) {
        uint64_t depth = (uint64_t)round->depth[i];
        if (depth > g->tree_depth) g->tree_depth = depth;
        g->at_depth[depth < HM_REPORT_DEPTHS ? depth : HM_REPORT_DEPTHS - 1]++;
    }
    hm_speculative_round(&g->report->speculative, round);
    return hm_rounds_begin(&g->report->rounds, round, g->log, line, g->err);
}

// How many children the step's node has, and whether the continuation leads to a node, one only scored included. Only the
// first continuation of a round is followed: a log that has more is none that the walk can prove.
static void add_speculation(struct hm_gather *g, const struct hm_record_step *step)
{
    size_t n = g->in_round && step->round >= 0 ? g->round.nodes : 0;
    uint64_t children = n ? (uint64_t)g->tree[2 * n + (size_t)step->node] : 0;
    bool covered = false;
    if (step->source == HM_SOURCE_CONTINUATION && !g->round_ended)
        for (size_t i = 1; i < n && !covered; i++) covered = g->tree[i] == step->node && g->tree[n + i] == step->token;
    hm_speculative_step(&g->report->speculative, step, &g->report->logs[g->log].header, children, covered);
}

// Bands hold steps that could have been certified or not: with verdicts, a last accepted and a first rejected token.
static void add_bands(struct hm_claim_figures *f, const struct hm_record_step *step, const struct hm_record_claim *claim,
                      enum hm_token_status status)
{
    bool speaks = status == HM_TOKEN_CERTIFIED || status == HM_TOKEN_COVERED || status == HM_TOKEN_UNCOVERED;
    if (!speaks || !claim->has_level || !step->has_draft) return;
    if (claim->has_margin) {
        hm_known_add(&f->gap[band_of(HM_GAP_EDGES, claim->margin.gap.lo)], step, claim);
        f->gap_steps++;
    }
    if (claim->edge[0].present && claim->edge[1].present)
        hm_known_add(&f->logit[band_of(HM_LOGIT_EDGES, claim->edge[0].logit - claim->edge[1].logit)], step, claim);
}

static void add_claim(struct hm_claim_figures *f, const struct hm_record_step *step,
                      const struct hm_record_claim *claim, enum hm_token_status status)
{
    f->status[status]++;
    if (claim->has_accepts) f->accepts[claim->accepts]++;
    if (claim->has_radius) hm_histogram_add(&f->radius, claim->radius.lo);
    if (claim->has_distances) {
        hm_histogram_add(&f->klf, claim->level.klf.lo);
        hm_histogram_add(&f->klr, claim->level.klr.lo);
        hm_histogram_add(&f->tv, claim->level.tv.lo);
    }
    if (!claim->has_verdicts) return;
    f->with_draft++;
    f->certified_any += status == HM_TOKEN_CERTIFIED;
    f->covered[claim->covered]++;
    for (int i = 0; i < 3; i++) f->verdict[i][claim->certified[i]]++;
    if (claim->has_distances && step->has_draft) {
        hm_histogram_add(&f->draft, step->kl_pq.hi);
        hm_histogram_add(&f->draft_klr, step->kl_qp.hi);
        hm_histogram_add(&f->draft_tv, step->tv.hi);
    }
    if (claim->certified[0] != HM_CERT_INAPPLICABLE && claim->has_level && step->has_draft)
        hm_known_add(&f->known, step, claim);
    add_bands(f, step, claim, status);
}

static uint64_t undecided_answers(const struct hm_record_claim *claim)
{
    uint64_t count = claim->has_accepts && claim->accepts == HM_UNDECIDED;
    if (!claim->has_verdicts) return count;
    for (int i = 0; i < 3; i++) count += claim->certified[i] == HM_CERT_UNDECIDED;
    return count + (claim->covered == HM_UNDECIDED);
}

static void add_distances(struct hm_report *r, const struct hm_record_step *step)
{
    hm_histogram_add(&r->entropy, step->entropy.hi);
    if (step->has_regret) {
        hm_sum_add(&r->regret, step->regret);
        r->regret_most = fmax(r->regret_most, step->regret.hi);
    }
    if (!step->has_draft) return;
    hm_histogram_add(&r->kl_pq, step->kl_pq.hi);
    hm_histogram_add(&r->kl_qp, step->kl_qp.hi);
    hm_histogram_add(&r->tv, step->tv.hi);
    hm_sum_add(&r->sum_kl_pq, step->kl_pq);
    hm_sum_add(&r->sum_kl_qp, step->kl_qp);
    hm_sum_add(&r->sum_tv, step->tv);
}

static void add_claims(struct hm_gather *g, const struct hm_record_step *step)
{
    struct hm_report *r = g->report;
    for (size_t i = 0; i < r->claim_count; i++) {
        enum hm_token_status status = hm_token_status(&step->claims[i]);
        g->status[i] = (uint8_t)status;
        add_claim(&r->claims[i], step, &step->claims[i], status);
        hm_theory_claim(&r->claims[i].theory, step, &step->claims[i], &r->logs[g->log].header);
        hm_regions_add(&r->claims[i].regions, step, &step->claims[i], r->logs[g->log].header.certify_temperature, g->log,
                       r->logs[g->log].lines);
        g->undecided += undecided_answers(&step->claims[i]);
    }
    add_distances(r, step);
    hm_theory_step(&r->theory, step);
}

static hm_status add_step(struct hm_gather *g, const struct hm_record_step *step, size_t line)
{
    struct hm_report *r = g->report;
    add_claims(g, step);
    add_speculation(g, step);
    hm_course_step(&r->course, step);
    if (step->has_regret && step->source == HM_SOURCE_ACCEPTED) hm_sum_add(&r->regret_accepted, step->regret);
    hm_status rc = hm_rounds_step(&r->rounds, step, g->err);
    if (rc) return rc;
    if (step->source == HM_SOURCE_ACCEPTED && step->top_count > 0) {
        r->accepted_known++;
        r->accepted_not_first += step->token != step->top[0].id;
    }
    struct hm_report_group *groups[] = {g->category, &r->by_log[g->log]};
    for (size_t i = 0; i < 2; i++) {
        groups[i]->steps++;
        groups[i]->with_draft += step->claims[r->lead].has_verdicts;
        groups[i]->certified += g->status[r->lead] == HM_TOKEN_CERTIFIED;
        groups[i]->vacuous += g->status[r->lead] == HM_TOKEN_VACUOUS;
        groups[i]->undecided += g->status[r->lead] == HM_TOKEN_UNDECIDED;
    }
    r->steps++;
    r->logs[g->log].steps++;
    r->prefill += step->source == HM_SOURCE_PREFILL;
    r->continuations += step->source == HM_SOURCE_CONTINUATION;
    if (g->in_round && step->source != HM_SOURCE_PREFILL) {
        g->emitted++;
        g->accepted += step->source == HM_SOURCE_ACCEPTED;
        g->round_ended = step->source == HM_SOURCE_CONTINUATION || step->finish != HM_FINISH_NONE;
    }
    g->finished = step->finish != HM_FINISH_NONE;
    return hm_keep_step(g, step, line);
}

// A row of an audit is a step without a sequence: it has claims and no place in a text.
static hm_status add_row(struct hm_gather *g, const struct hm_record_step *row, size_t line)
{
    struct hm_report *r = g->report;
    struct hm_report_group *group = &r->by_log[g->log];
    add_claims(g, row);
    group->steps++;
    group->with_draft += row->claims[r->lead].has_verdicts;
    group->certified += g->status[r->lead] == HM_TOKEN_CERTIFIED;
    group->vacuous += g->status[r->lead] == HM_TOKEN_VACUOUS;
    group->undecided += g->status[r->lead] == HM_TOKEN_UNDECIDED;
    r->steps++;
    r->rows++;
    r->logs[g->log].steps++;
    return hm_keep_missed(g, row, line);
}

static void add_node(struct hm_gather *g, const struct hm_record_step *node)
{
    g->report->nodes++;
    for (size_t i = 0; i < node->claim_count; i++) g->undecided += undecided_answers(&node->claims[i]);
}

static void add_end(struct hm_gather *g, const struct hm_record_end *end)
{
    struct hm_report_log *log = &g->report->logs[g->log];
    log->has_end = true;
    log->end = *end;
    g->report->undecided += (uint64_t)end->undecided;
    if (end->decisions >= 0) {
        g->report->theory.filter_logs++;
        g->report->theory.decisions += (uint64_t)end->decisions;
        g->report->theory.filter_undecided += (uint64_t)end->filter_undecided;
    }
    if (end->certify_seconds >= 0)
        g->report->certify_seconds = fmax(g->report->certify_seconds, 0) + end->certify_seconds;
}

static hm_status add_records(struct hm_gather *g)
{
    struct hm_record record;
    for (;;) {
        hm_status rc = hm_log_reader_next(g->reader, &record, g->err);
        if (rc || record.kind == HM_RECORD_NONE) return rc;
        g->report->logs[g->log].lines = record.line;
        if (record.kind == HM_RECORD_SEQUENCE) rc = add_sequence(g, record.sequence);
        if (record.kind == HM_RECORD_ROUND) rc = add_round(g, record.round, record.line);
        if (record.kind == HM_RECORD_STEP) rc = add_step(g, record.step, record.line);
        if (record.kind == HM_RECORD_NODE) add_node(g, record.step);
        if (record.kind == HM_RECORD_ROW) rc = add_row(g, record.step, record.line);
        if (record.kind == HM_RECORD_END) add_end(g, record.end);
        if (rc) return rc;
    }
}

hm_status hm_report_add(struct hm_report *report, const char *log_path, struct hm_error *err)
{
    struct hm_gather g = {.report = report, .err = err, .finished = true};
    hm_status rc = hm_log_reader_open(log_path, &g.reader, err);
    if (rc) return rc;
    rc = hm_report_begin_log(&g, log_path);
    if (rc) goto out;
    g.status = hm_calloc(report->claim_count, 1);
    if (!g.status) {
        rc = hm_fail(err, HM_MEMORY, "%s: out of memory", log_path);
        goto out;
    }
    rc = add_records(&g);
    if (rc) goto out;
    rc = close_sequence(&g);
    if (rc) goto out;
    struct hm_report_log *log = &report->logs[g.log];
    log->state = hm_log_reader_state(g.reader);
    if (!log->has_end) report->undecided += g.undecided; // a whole log says it itself, for questions of every kind
    if (log->lines == 0) log->lines = 1;
    for (int i = 0; i < HM_SHA256_HEX; i++) log->chain[i] = hm_log_reader_chain(g.reader)[i];
out:
    free(g.status);
    free(g.tree);
    hm_log_reader_close(g.reader);
    return rc;
}
