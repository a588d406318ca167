// The synthetic decode: see test_stamp_fixture.h.
#include "tests/test_stamp_fixture.h"

#include "certify/philox.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tree {
    size_t nodes;
    int32_t parent[FIXTURE_NODES], token[FIXTURE_NODES];
    size_t depth[FIXTURE_NODES];
    float logq[FIXTURE_NODES];
    uint64_t context[FIXTURE_NODES];
};

struct run {
    const struct decode *decode;
    struct hm_stamper *stamper;
    struct hm_rational temperature, certify_temperature, top_p;
    struct hm_rule rules[4], acceptance;
    struct hm_divergence divergences[4];
    size_t divergence_count;
    size_t rule_count;
    uint32_t sequence, t, round;
    uint64_t seed, context; // of the sequence; of the tokens so far
    int32_t last;           // newest token
    size_t steps;           // over all sequences
    bool finished, abandoned;
    float target[FIXTURE_VOCAB], draft[FIXTURE_VOCAB];
};

static uint64_t mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static double uniform(uint64_t x)
{
    return (double)(mix(x) >> 11) * 0x1p-53;
}

// Rows of a context. Logits stand on a grid of 1/8, so that ties are frequent; now and then one is -inf or -0.
static void make_rows(struct run *r, uint64_t context)
{
    double noise = uniform(context * 3 + 1) * 2;
    for (size_t i = 0; i < r->decode->vocab; i++) {
        uint64_t key = mix(context ^ mix(i + 1));
        double logit = 6 * uniform(key) * uniform(key + 1) * (uniform(key + 2) < 0.2 ? 2 : 1) - 1;
        r->target[i] = (float)(round(logit * 8) / 8);
        r->draft[i] = (float)(round((logit + noise * (uniform(key + 3) - 0.5)) * 8) / 8);
        if (i > 6 && uniform(key + 4) < 0.05) r->target[i] = -INFINITY;
        if (i > 6 && uniform(key + 5) < 0.03) r->draft[i] = -INFINITY;
    }
}

static uint64_t follow(uint64_t context, int32_t token)
{
    return mix(context ^ mix((uint64_t)token + 1000));
}

// Every node down to the depth proposes the first `width` tokens of its draft row, while the budget lasts.
static void grow(struct run *r, struct tree *tree)
{
    const struct decode *d = r->decode;
    struct hm_rational one;
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    *tree = (struct tree){.nodes = 1, .parent = {-1}, .token = {r->last}, .context = {r->context}};
    for (size_t node = 0; node < tree->nodes; node++) {
        struct hm_row *row;
        struct hm_ival p;
        if (tree->depth[node] == d->depth || tree->nodes + d->width > d->budget + 1) continue;
        make_rows(r, tree->context[node]);
        if (hm_row_open(r->draft, d->vocab, &one, &row, NULL)) abort();
        for (size_t rank = 0; rank < d->width; rank++) {
            size_t child = tree->nodes++;
            tree->parent[child] = (int32_t)node;
            tree->token[child] = hm_row_token(row, rank);
            tree->depth[child] = tree->depth[node] + 1;
            tree->context[child] = follow(tree->context[node], tree->token[child]);
            if (hm_row_probability(row, tree->token[child], &p, NULL)) abort();
            tree->logq[child] = logf((float)p.lo);
        }
        hm_row_close(row);
    }
    hm_rational_clear(&one);
}

static size_t children_of(const struct tree *tree, size_t node, int32_t *index, int32_t *token)
{
    size_t count = 0;
    for (size_t i = node + 1; i < tree->nodes; i++)
        if (tree->parent[i] == (int32_t)node) {
            index[count] = (int32_t)i;
            token[count++] = tree->token[i];
        }
    return count;
}

// The draw of docs/log.md at output position t from r->target.
static int32_t draw(struct run *r, uint32_t t, size_t *support)
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

struct decision {
    int32_t token, child; // child: node index or -1
    size_t support;
};

static struct decision decide(struct run *r, uint32_t t, const int32_t *index, const int32_t *token, size_t count,
                              bool capped)
{
    struct decision d = {.child = -1};
    int32_t drawn = draw(r, t, &d.support);
    int child = -1;
    if (r->decode->acceptance) {
        child = relaxed_child(r, token, count);
    } else {
        for (size_t i = 0; i < count; i++)
            if (token[i] == drawn) child = (int)i;
    }
    d.token = child >= 0 && !capped ? token[child] : drawn;
    if (child >= 0 && !capped) d.child = index[child];
    return d;
}

static hm_status emit(struct run *r, struct hm_log_step *step, struct hm_error *err)
{
    static const char *const texts[] = {"a", " \"b\\\n",         "\xC3\xA9",    "\xFF\xFE",
                                        "",  "\xE2\x82\xAC\x01", "\xED\xA0\x80"};
    const struct decode *d = r->decode;
    step->sequence = r->sequence;
    step->t = r->t;
    step->text = texts[mix(r->steps) % (sizeof texts / sizeof *texts)];
    step->text_size = strlen(step->text);
    if (step->token == 0) step->finish = HM_FINISH_EOS;
    else if (r->t + 1 == d->tokens) step->finish = HM_FINISH_LENGTH;
    if (d->spoil == r->steps + 1) r->target[3] = NAN;
    hm_status rc = hm_stamper_step(r->stamper, step, err);
    r->finished = step->finish != HM_FINISH_NONE;
    r->context = follow(r->context, step->token);
    r->last = step->token;
    r->t++;
    r->steps++;
    r->abandoned = r->steps == d->abandon;
    return rc;
}

static void describe(struct run *r, const struct tree *tree, size_t node, struct hm_log_step *step, int32_t *index,
                     int32_t *token)
{
    make_rows(r, tree->context[node]);
    *step = (struct hm_log_step){.round = r->round,
                                 .node = node,
                                 .depth = tree->depth[node],
                                 .child = -1,
                                 .target_row = r->target,
                                 .children = token};
    step->child_count = children_of(tree, node, index, token);
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
        draw(r, t + (uint32_t)tree->depth[node], &step.support);
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
    struct decision decision[FIXTURE_NODES];
    float rows[FIXTURE_NODES * FIXTURE_VOCAB];
    struct hm_log_step step;
    uint32_t t = r->t;
    grow(r, &tree);
    for (int32_t node = 0; node >= 0; node = decision[length - 1].child) {
        describe(r, &tree, (size_t)node, &step, index, token);
        bool capped = r->decode->cap && length >= r->decode->cap;
        decision[length] = decide(r, t + (uint32_t)length, index, token, step.child_count, capped);
        path[length++] = (size_t)node;
    }
    for (size_t node = 0; node < tree.nodes; node++) {
        make_rows(r, tree.context[node]);
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
        step.source = step.child >= 0 ? HM_SOURCE_ACCEPTED : HM_SOURCE_CONTINUATION;
        visited[path[i]] = true;
        rc = emit(r, &step, err);
    }
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
    r->context = mix(r->decode->seed + r->sequence);
    r->t = r->round = 0;
    r->finished = false;
    make_rows(r, r->context);
    struct hm_log_step step = {
        .round = -1, .source = HM_SOURCE_PREFILL, .child = -1, .target_row = r->target, .draft_why = "prefill"};
    step.token = draw(r, 0, &step.support);
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
    if (d->cap) snprintf(traversal, sizeof traversal, "cap:%zu", d->cap);
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
                                   .acceptance = d->acceptance ? &r->acceptance : NULL,
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
                                   .selection = "draft",
                                   .traversal = traversal,
                                   .proposal = "topk",
                                   .weights_dtype = "F32",
                                   .backend = "none",
                                   .row_source = "foreign"};
    return hm_stamper_open(options, &header, &r->stamper, err);
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
    if (decode->acceptance && hm_rule_parse(decode->acceptance, &r.acceptance, NULL)) abort();
    hm_status rc = open_stamper(&r, options, err);
    if (!rc) {
        hm_status ran = HM_OK;
        for (; r.sequence < decode->sequences && !ran && !r.abandoned; r.sequence++) ran = run_sequence(&r, err);
        rc = hm_stamper_close(r.stamper, summary, err);
        if (ran) rc = ran;
    }
    for (size_t i = 0; i < r.rule_count; i++) hm_rule_clear(&r.rules[i]);
    for (size_t i = 0; i < r.divergence_count; i++) hm_divergence_clear(&r.divergences[i]);
    if (decode->acceptance) hm_rule_clear(&r.acceptance);
    hm_rational_clear(&r.temperature);
    hm_rational_clear(&r.certify_temperature);
    hm_rational_clear(&r.top_p);
    return rc;
}
