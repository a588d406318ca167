// The synthetic decode: see test_stamp_fixture.h.
#include "tests/test_stamp_tree.h"

#include "certify/philox.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The draw of docs/log.md at output position t from r->target.
int32_t fixture_draw(struct run *r, uint32_t t, size_t *support)
{
    const struct decode *d = r->decode;
    struct hm_row *row;
    int32_t token;
    bool greedy = hm_rational_sign(&r->temperature) == 0;
    *support = d->vocab;
    if (hm_row_open(r->target, d->vocab, greedy ? &r->certify_temperature : &r->temperature, &row, NULL)) return 0;
    if (greedy) {
        token = hm_row_token(row, 0);
    } else {
        uint64_t bits = hm_philox_bits(r->seed, r->sequence, t, HM_DRAW_TARGET, 0);
        if (hm_row_support(row, d->top_k, d->top_p ? &r->top_p : NULL, support, NULL)) abort();
        if (hm_row_draw(row, *support, bits, &token, NULL)) abort();
    }
    hm_row_close(row);
    return token;
}

// The child the relaxed rule accepts: the first in the row's order that lies in A(p); -1 if there is none.
static int relaxed_child(struct run *r, const int32_t *token, size_t count)
{
    struct hm_row *row;
    int best = -1;
    if (hm_row_open(r->target, r->decode->vocab, &r->certify_temperature, &row, NULL)) return -1;
    for (size_t i = 0; i < count; i++) {
        enum hm_verdict in;
        if (hm_rule_accepts(&r->acceptance, row, token[i], &in, NULL)) abort();
        if (in == HM_YES && (best < 0 || hm_row_rank(row, token[i]) < hm_row_rank(row, token[best]))) best = (int)i;
    }
    hm_row_close(row);
    return best;
}

// What the decoder's own code decides under stochastic acceptance and budgets; the checkers must agree.
static hm_status accept_as(struct run *r, uint32_t t, const int32_t *token, size_t count, struct hm_decision *out)
{
    const struct decode *d = r->decode;
    struct hm_acceptance how = {.kind = r->kind,
                                .rule = r->kind == HM_ACCEPT_STANDARD ? NULL : &r->acceptance,
                                .proposal = d->iid ? HM_PROPOSAL_IID : HM_PROPOSAL_TOPK,
                                .temperature = &r->temperature,
                                .certify_temperature = &r->certify_temperature,
                                .seed = r->seed};
    struct hm_accept_node node = {r->target, d->no_draft ? NULL : r->draft, d->vocab, r->sequence, t, token, count};
    return hm_accept(&how, d->fidelity ? &r->budget : NULL, &node, out, NULL);
}

// child: node index or -1. The rows are those of the node.
static struct hm_decision decide(struct run *r, const struct tree *tree, uint32_t t, const int32_t *index, const int32_t *token,
                                 size_t count, bool capped)
{
    struct hm_decision d = {.child = -1, .spent = r->budget.spent};
    int64_t child = -1;
    if (r->kind == HM_ACCEPT_STANDARD || r->kind == HM_ACCEPT_NUCLEUS || r->decode->fidelity) {
        if (accept_as(r, t, token, capped ? 0 : count, &d)) d.token = 0; // a spoilt row: the stamper says so
        if (d.child >= 0) d.child = index[d.child];
        return d;
    }
    d.token = fixture_draw(r, t, &d.support);
    if (r->kind == HM_ACCEPT_RULE) child = relaxed_child(r, token, count);
    for (size_t i = 0; i < count && r->kind == HM_ACCEPT_MATCH; i++)
        if (token[i] == d.token) child = (int64_t)i;
    if (child < 0 || capped) return d;
    d.token = token[child];
    if (!r->decode->leaf_stop || fixture_children(tree, (size_t)index[child], NULL, NULL)) d.child = index[child];
    return d;
}

static hm_status emit(struct run *r, struct hm_log_step *step, struct hm_error *err)
{
    static const char *const texts[] = {"a", " \"b\\\n",         "\xC3\xA9",    "\xFF\xFE",
                                        "",  "\xE2\x82\xAC\x01", "\xED\xA0\x80"};
    const struct decode *d = r->decode;
    step->sequence = r->sequence;
    step->t = r->t;
    step->text = texts[fixture_mix(r->steps) % (sizeof texts / sizeof *texts)];
    step->text_size = strlen(step->text);
    if (step->token == 0) step->finish = HM_FINISH_EOS;
    else if (r->t + 1 == d->tokens) step->finish = HM_FINISH_LENGTH;
    if (d->spoil == r->steps + 1) r->target[3] = NAN;
    hm_status rc = hm_stamper_step(r->stamper, step, err);
    r->finished = step->finish != HM_FINISH_NONE;
    r->context = fixture_follow(r->context, step->token);
    r->last = step->token;
    r->t++;
    r->steps++;
    r->abandoned = r->steps == d->abandon;
    return rc;
}

static void describe(struct run *r, const struct tree *tree, size_t node, struct hm_log_step *step, int32_t *index,
                     int32_t *token)
{
    fixture_rows(r, tree->context[node]);
    *step = (struct hm_log_step){.round = r->round,
                                 .node = node,
                                 .depth = tree->depth[node],
                                 .child = -1,
                                 .target_row = r->target,
                                 .children = token};
    step->child_count = fixture_children(tree, node, index, token);
    if (r->decode->no_draft) step->draft_why = "no draft model";
    else if (step->child_count) step->draft_row = r->draft;
    else step->draft_why = "leaf";
}

static hm_status run_nodes(struct run *r, const struct tree *tree, const bool *visited, uint32_t t,
                           struct hm_error *err)
{
    hm_status rc = HM_OK;
    int32_t index[FIXTURE_NODES], token[FIXTURE_NODES];
    for (size_t node = 0; node < tree->nodes && !rc; node++) {
        struct hm_log_step step;
        if (visited[node]) continue;
        describe(r, tree, node, &step, index, token);
        fixture_draw(r, t + (uint32_t)tree->depth[node], &step.support);
        step.sequence = r->sequence;
        step.token = -1;
        rc = hm_stamper_step(r->stamper, &step, err);
    }
    return rc;
}

// Where the walk leads before any cut; then the same path again, emitting.
static hm_status run_round(struct run *r, struct hm_error *err)
{
    struct tree tree;
    int32_t index[FIXTURE_NODES], token[FIXTURE_NODES];
    bool visited[FIXTURE_NODES] = {false};
    size_t path[FIXTURE_NODES], length = 0;
    bool limited[FIXTURE_NODES];
    struct hm_decision decision[FIXTURE_NODES];
    float rows[FIXTURE_NODES * FIXTURE_VOCAB];
    struct hm_log_step step;
    uint32_t t = r->t;
    fixture_grow(r, &tree);
    for (int64_t node = 0; node >= 0; node = decision[length - 1].child) {
        describe(r, &tree, (size_t)node, &step, index, token);
        bool capped = r->decode->cap && length >= r->decode->cap;
        decision[length] = decide(r, &tree, t + (uint32_t)length, index, token, step.child_count, capped);
        limited[length] = capped;
        path[length++] = (size_t)node;
    }
    for (size_t node = 0; node < tree.nodes; node++) {
        fixture_rows(r, tree.context[node]);
        memcpy(rows + node * r->decode->vocab, r->target, r->decode->vocab * sizeof *rows);
    }
    struct hm_log_round round = {.sequence = r->sequence,
                                 .round = r->round,
                                 .t = t,
                                 .nodes = tree.nodes,
                                 .parent = tree.parent,
                                 .token = tree.token,
                                 .logq = tree.logq,
                                 .pool = tree.nodes - 1,
                                 .scored = tree.scored,
                                 .first_drawn = tree.first >= 0,
                                 .first = tree.first,
                                 .accepted = length - 1,
                                 .target_rows = rows,
                                 .draft_seconds = 0.25,
                                 .verify_seconds = 1e-6};
    hm_status rc = hm_stamper_round(r->stamper, &round, err);
    for (size_t i = 0; i < length && !rc && !r->finished && !r->abandoned; i++) {
        describe(r, &tree, path[i], &step, index, token);
        step.token = decision[i].token;
        step.support = decision[i].support;
        step.child = decision[i].child;
        step.capped = limited[i];
        step.charged = decision[i].charged;
        step.relaxed = decision[i].relaxed;
        step.charge = decision[i].charge;
        step.spent = decision[i].spent;
        step.source = step.child >= 0 ? HM_SOURCE_ACCEPTED : HM_SOURCE_CONTINUATION;
        visited[path[i]] = true;
        rc = emit(r, &step, err);
    }
    r->covered = false; // is the context the address of a node?
    for (size_t node = 0; node < tree.nodes; node++) r->covered = r->covered || tree.context[node] == r->context;
    if (!rc && r->decode->all_nodes && !r->abandoned) rc = run_nodes(r, &tree, visited, t, err);
    r->round++;
    return rc;
}

static hm_status run_sequence(struct run *r, struct hm_error *err)
{
    const int32_t prompt[] = {5, 1, 2}, eos[] = {0};
    const char *const stop[] = {"\n\n", "\"end\""};
    struct hm_log_sequence record = {.sequence = r->sequence,
                                     .turn = r->sequence & 1,
                                     .id = "p\xFF"
                                           "7",
                                     .category = "code",
                                     .prompt = prompt,
                                     .prompt_length = 3,
                                     .seed = r->decode->seed * 0x9E3779B97F4A7C15u,
                                     .eos = eos,
                                     .eos_count = 1,
                                     .max_tokens = r->decode->tokens,
                                     .stop = stop,
                                     .stop_count = 2};
    hm_status rc = hm_stamper_sequence(r->stamper, &record, err);
    r->seed = record.seed;
    r->context = fixture_mix(r->decode->seed + r->sequence);
    r->t = r->round = 0;
    r->finished = r->covered = false;
    hm_budget_begin(&r->budget, r->decode->tokens, r->decode->budget, r->decode->vocab);
    fixture_rows(r, r->context);
    struct hm_log_step step = {
        .round = -1, .source = HM_SOURCE_PREFILL, .child = -1, .target_row = r->target, .draft_why = "prefill"};
    step.token = fixture_draw(r, 0, &step.support);
    if (!rc) rc = emit(r, &step, err);
    while (!rc && !r->finished && !r->abandoned) rc = run_round(r, err);
    return rc;
}

static void parse(const char *text, struct hm_rational *out)
{
    hm_rational_init(out);
    if (hm_rational_parse(text, out, NULL)) abort();
}

static hm_status open_stamper(struct run *r, const struct hm_stamp_options *options, struct hm_error *err)
{
    const struct decode *d = r->decode;
    char traversal[32] = "exhaustive";
    struct hm_log_model target = {.name = "made \"up\"", .vocab = d->vocab, .architecture = "Synthetic"};
    memset(target.sha256, 'a', sizeof target.sha256 - 1);
    struct hm_log_model draft = target;
    char score[32];
    if (d->cap) snprintf(traversal, sizeof traversal, "cap:%zu", d->cap);
    if (d->leaf_stop) snprintf(traversal, sizeof traversal, "leaf-stop");
    snprintf(score, sizeof score, "frontier:%zu", d->scored);
    struct hm_log_header header = {.rules = r->rules,
                                   .rule_count = r->rule_count,
                                   .m = d->m,
                                   .m_count = d->m_count,
                                   .margin = d->margin,
                                   .universal = d->universal,
                                   .divergences = r->divergences,
                                   .divergence_count = r->divergence_count,
                                   .law_iid = d->laws,
                                   .law_topk = d->laws,
                                   .acceptance = r->kind == HM_ACCEPT_RULE || r->kind == HM_ACCEPT_NUCLEUS ? &r->acceptance : NULL,
                                   .standard = r->kind == HM_ACCEPT_STANDARD,
                                   .proposal_iid = d->iid,
                                   .budget_kind = !d->fidelity                 ? HM_LOG_NO_BUDGET
                                                  : r->budget.kind == HM_BUDGET_TV ? HM_LOG_TV_BUDGET
                                                                                   : HM_LOG_REGRET_BUDGET,
                                   .budget_limit = &r->budget.limit,
                                   .temperature = &r->temperature,
                                   .certify_temperature = &r->certify_temperature,
                                   .top_k = d->top_k,
                                   .top_p = d->top_p ? &r->top_p : NULL,
                                   .top = 8,
                                   .all_nodes = d->all_nodes,
                                   .target = &target,
                                   .draft = d->no_draft ? NULL : &draft,
                                   .tokenizer_sha256 = target.sha256,
                                   .drafter = "standalone",
                                   .width = d->width,
                                   .depth = d->depth,
                                   .budget = d->budget,
                                   .selection = d->selection ? d->selection : "draft",
                                   .traversal = traversal,
                                   .score = d->scored ? score : NULL,
                                   .proposal = d->iid ? "iid" : "topk",
                                   .weights_dtype = "F32",
                                   .backend = "none",
                                   .row_source = "foreign"};
    return hm_stamper_open(options, &header, &r->stamper, err);
}

static void parse_acceptance(struct run *r)
{
    const struct decode *d = r->decode;
    if (d->acceptance && strcmp(d->acceptance, "standard") == 0) {
        r->kind = HM_ACCEPT_STANDARD;
    } else if (d->acceptance) {
        if (hm_rule_parse(d->acceptance, &r->acceptance, NULL)) abort();
        r->kind = r->acceptance.kind == HM_RULE_NUCLEUS ? HM_ACCEPT_NUCLEUS : HM_ACCEPT_RULE;
    }
    hm_budget_init(&r->budget);
    if (!d->fidelity) return;
    r->budget.kind = r->kind == HM_ACCEPT_NUCLEUS ? HM_BUDGET_TV : HM_BUDGET_REGRET;
    if (hm_rational_parse(d->fidelity, &r->budget.limit, NULL)) abort();
}

hm_status decode_run(const struct decode *decode, const struct hm_stamp_options *options,
                     struct hm_stamp_summary *summary, struct hm_error *err)
{
    struct run r = {.decode = decode};
    parse(decode->temperature ? decode->temperature : "0", &r.temperature);
    parse(decode->certify_temperature ? decode->certify_temperature : "1", &r.certify_temperature);
    parse(decode->top_p ? decode->top_p : "1", &r.top_p);
    for (; r.rule_count < 4 && decode->rules[r.rule_count]; r.rule_count++)
        if (hm_rule_parse(decode->rules[r.rule_count], &r.rules[r.rule_count], NULL)) abort();
    for (; r.divergence_count < 4 && decode->divergences[r.divergence_count]; r.divergence_count++)
        if (hm_divergence_parse(decode->divergences[r.divergence_count], &r.divergences[r.divergence_count], NULL)) abort();
    parse_acceptance(&r);
    hm_status rc = open_stamper(&r, options, err);
    if (!rc) {
        hm_status ran = HM_OK;
        for (; r.sequence < decode->sequences && !ran && !r.abandoned; r.sequence++) ran = run_sequence(&r, err);
        rc = hm_stamper_close(r.stamper, summary, err);
        if (ran) rc = ran;
    }
    for (size_t i = 0; i < r.rule_count; i++) hm_rule_clear(&r.rules[i]);
    for (size_t i = 0; i < r.divergence_count; i++) hm_divergence_clear(&r.divergences[i]);
    if (r.kind == HM_ACCEPT_RULE || r.kind == HM_ACCEPT_NUCLEUS) hm_rule_clear(&r.acceptance);
    hm_budget_clear(&r.budget);
    hm_rational_clear(&r.temperature);
    hm_rational_clear(&r.certify_temperature);
    hm_rational_clear(&r.top_p);
    return rc;
}
