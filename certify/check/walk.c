// The replay of a step: draws, acceptance. docs/log.md "Random numbers" and "The walk".
#include "certify/check/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void philox(uint64_t seed, uint32_t sequence, uint32_t t, uint32_t out[4])
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, x[4] = {sequence, t, 0, 0};
    for (int i = 0; i < 10; i++) {
        uint64_t a = UINT64_C(0xD2511F53) * x[0], b = UINT64_C(0xCD9E8D57) * x[2];
        uint32_t y[4] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b, (uint32_t)(a >> 32) ^ x[3] ^ key[1],
                         (uint32_t)a};
        memcpy(x, y, sizeof x);
        key[0] += UINT32_C(0x9E3779B9);
        key[1] += UINT32_C(0xBB67AE85);
    }
    memcpy(out, x, sizeof x);
}

// Is the mass of the first n of the order at least top_p of that of the first `left`?
static enum answer reaches(struct ck *c, size_t n, size_t left)
{
    const struct ck_row *r = &c->math.row[0];
    enum answer answer = OPEN;
    if (n >= left || n >= r->finite) return YES;
    size_t positive = left < r->finite ? left : r->finite;
    if (r->class_of[r->order[positive - 1]] == 0) { // equal tokens: n >= top_p * positive, exactly
        mpq_t share;
        mpq_init(share);
        mpq_set_ui(share, positive, 1);
        mpq_mul(share, share, c->header->top_p);
        answer = mpq_cmp_ui(share, n, 1) <= 0 ? YES : NO;
        mpq_clear(share);
    }
    for (int level = c->math.first_level; level < CK_LEVELS && answer == OPEN; level++) {
        struct iv sum[2];
        iv_inits(sum, 2, ck_precision(level));
        const struct ck_dist *d = ck_dist(&c->math, CK_DRAW, level);
        ck_sum_order(d, 0, n, &sum[0]);
        ck_sum_order(d, 0, left, &sum[1]);
        iv_mul_q(&sum[1], &sum[1], c->header->top_p);
        answer = iv_at_least(&sum[0], &sum[1]);
        iv_clears(sum, 2);
    }
    return answer;
}

void ck_support(struct ck *c, const cJSON *line, const struct ck_node *node, int64_t *support)
{
    int64_t vocab = c->header->vocab,
            left = c->header->top_k > 0 && c->header->top_k < vocab ? c->header->top_k : vocab;
    bool top_p = mpq_cmp_ui(c->header->top_p, 1, 1) < 0 && !c->header->greedy;
    *support = ck_int(c, line, "support", 1);
    if (c->out.failed) return;
    if (c->header->greedy) left = vocab;
    if (*support > left || (!top_p && *support != left)) {
        ck_refute(c, "support", "expected %lld, found %lld", (long long)left, (long long)*support);
        return;
    }
    if (!top_p || !node->target) return;
    enum answer enough = reaches(c, (size_t)*support, (size_t)left);
    enum answer fewer = *support == 1 ? NO : reaches(c, (size_t)*support - 1, (size_t)left);
    if (enough == NO || fewer == YES)
        ck_refute(c, "support", "expected %s tokens, found %lld", enough == NO ? "more" : "fewer", (long long)*support);
    else if (enough == OPEN || fewer == OPEN)
        ck_open(c, "support");
}

// Do the tokens below an id hold just the share bits / 2^53 of every class in the support?  Then their sum is that
// share of the whole, exactly.
static bool is_share(const struct ck_row *r, size_t ids, size_t support, uint64_t bits)
{
    size_t end = support < r->finite ? support : r->finite;
    uint64_t *below = calloc(r->classes, sizeof *below);
    bool same = below != NULL;
    for (size_t i = 0; same && i < ids; i++)
        if (r->rank[i] < end) below[r->class_of[i]]++;
    for (struct ck_run run = {0}; same && ck_next_run(r, end, &run);) // counts are below 2^21
        same = (__extension__(unsigned __int128) below[run.class] << 53) ==
               __extension__(unsigned __int128) run.count * bits;
    free(below);
    return same;
}

// Is the token the draw at t?  Its cumulated weight must pass u times the total, and that of the ids below must not.
static enum answer is_draw(struct ck *c, int64_t token, int64_t support)
{
    const struct ck_row *r = &c->math.row[0];
    if (c->header->greedy) return r->order[0] == token ? YES : NO;
    if (r->rank[token] >= support || isinf(r->logit[token])) return NO;
    uint32_t x[4];
    philox(c->at.of->seed, (uint32_t)c->at.sequence, (uint32_t)c->at.t, x);
    uint64_t bits = ((uint64_t)x[0] << 32 | x[1]) >> 11;
    enum answer answer = OPEN;
    for (int level = c->math.first_level; level < CK_LEVELS && answer == OPEN; level++) {
        struct iv sum[3]; // below the token, through it, all
        iv_inits(sum, 3, ck_precision(level));
        const struct ck_dist *d = ck_dist(&c->math, CK_DRAW, level);
        ck_sum_ids(d, (size_t)token, (size_t)support, &sum[0]);
        ck_weight(d, (size_t)token, &sum[1]);
        iv_add(&sum[1], &sum[1], &sum[0]);
        ck_sum_order(d, 0, (size_t)support, &sum[2]);
        iv_scale(&sum[2], &sum[2], bits); // bits < 2^53
        mpfr_div_2ui(sum[2].lo, sum[2].lo, 53, MPFR_RNDD);
        mpfr_div_2ui(sum[2].hi, sum[2].hi, 53, MPFR_RNDU);
        enum answer passes = iv_less(&sum[2], &sum[1]), earlier = iv_less(&sum[2], &sum[0]);
        if (passes == OPEN && is_share(r, (size_t)token + 1, (size_t)support, bits)) passes = NO;
        if (earlier == OPEN && is_share(r, (size_t)token, (size_t)support, bits)) earlier = NO;
        answer = passes == NO || earlier == YES ? NO : passes == YES && earlier == NO ? YES : OPEN;
        iv_clears(sum, 3);
    }
    return answer;
}

bool ck_child_token(const struct ck *c, const struct ck_node *node, int child, int64_t *token)
{
    if (node->node < 0 || c->at.tree->parent[child] != node->node || child == 0) return false;
    *token = c->at.tree->token[child];
    return true;
}

// The chance of each child of a node; false when one is not known to 60 bits.
static bool child_chances(struct ck *c, const struct ck_node *node, int level, size_t support)
{
    struct ck_tree *tree = c->at.tree;
    const struct ck_dist *d = ck_dist(&c->math, CK_DRAW, level);
    struct iv t[2];
    int64_t token;
    bool sharp = true;
    iv_inits(t, 2, ck_precision(level));
    ck_sum_order(d, 0, support, &t[0]);
    for (int i = 1; i < tree->count; i++) {
        if (!ck_child_token(c, node, i, &token) || d->row->rank[token] >= support) continue;
        ck_weight(d, (size_t)token, &t[1]);
        iv_div(&tree->probability[i], &t[1], &t[0]);
        mpfr_sub(t[1].lo, tree->probability[i].hi, tree->probability[i].lo, MPFR_RNDU);
        mpfr_mul_2si(t[1].lo, t[1].lo, 60, MPFR_RNDU);
        sharp = sharp && mpfr_lessequal_p(t[1].lo, tree->probability[i].hi);
    }
    iv_clears(t, 2);
    return sharp;
}

// What the children of a node may do: their chances under sample-and-match, or the one the rule takes.
void ck_choices(struct ck *c, const struct ck_node *node, int64_t support)
{
    struct ck_tree *tree = c->at.tree;
    const struct ck_row *r = &c->math.row[0];
    if (node->node < 0) return;
    if (!node->target) {
        c->out.round_absent = true;
        return;
    }
    int64_t token;
    int best = -1;
    for (int i = 1; i < tree->count; i++)
        if (ck_child_token(c, node, i, &token) && (best < 0 || r->rank[token] < r->rank[tree->token[best]])) best = i;
    if (best >= 0 && c->header->match && r->rank[tree->token[best]] > 0) best = -1; // at temperature 0
    if (best >= 0 && !c->header->match) {
        enum answer in = ck_member(&c->math, &c->header->acceptance, r->rank[tree->token[best]]);
        if (in != YES) best = -1; // undecided counts as not accepted
    }
    if (c->header->greedy || !c->header->match) tree->choice[node->node] = best;
    tree->known[node->node] = true;
    if (!tree->has_expected || c->header->greedy || !c->header->match) return;
    for (int level = c->math.first_level; level < CK_LEVELS; level++)
        if (child_chances(c, node, level, (size_t)support)) return;
}

// Where a step stands: its node must be where the walk is, its depth that of the node.
void ck_step_place(struct ck *c, const cJSON *line, struct ck_node *node)
{
    struct ck_tree *tree = c->at.tree;
    bool prefill = c->at.where == CK_AT_PREFILL;
    const char *source = ck_text(c, line, "source");
    const cJSON *round = ck_get(c, line, "round");
    ck_expect_int(c, line, "sequence", c->at.sequence);
    ck_expect_int(c, line, "t", c->at.t);
    if (prefill && !cJSON_IsNull(round))
        ck_refute(c, "round", "expected null for the token of the prompt's last row, found %s", ck_show(round));
    if (!prefill) ck_expect_int(c, line, "round", tree->number);
    if (prefill != (strcmp(source, "prefill") == 0))
        ck_refute(c, "source", "expected %s, found \"%.20s\"", prefill ? "prefill" : "accepted or continuation",
                  source);
    ck_expect_int(c, line, "node", prefill ? 0 : c->at.node);
    ck_expect_int(c, line, "depth", prefill ? 0 : tree->depth[c->at.node]);
    node->node = prefill ? -1 : c->at.node;
    node->token = ck_int(c, line, "token", 0);
    if (node->token >= c->header->vocab)
        ck_refute(c, "token", "expected an id below the vocabulary, found %lld", (long long)node->token);
}

// The child a step goes to: checked against the tree alone, then against what the row says must happen.
static int next_node(struct ck *c, const cJSON *line, const struct ck_node *node)
{
    struct ck_tree *tree = c->at.tree;
    const char *source = ck_text(c, line, "source");
    const cJSON *child = ck_get(c, line, "child");
    bool accepted = strcmp(source, "accepted") == 0, capped = c->header->cap >= 0 && c->at.accepted >= c->header->cap;
    int carrier = -1;
    int64_t token;
    for (int i = 1; i < tree->count; i++)
        if (ck_child_token(c, node, i, &token) && token == node->token) carrier = i;
    if (!accepted && strcmp(source, "continuation") != 0)
        ck_refute(c, "source", "expected accepted or continuation, found \"%.20s\"", source);
    if (accepted) {
        if (capped)
            ck_refute(c, "source", "expected a continuation after %lld accepted tokens, found accepted",
                      (long long)c->at.accepted);
        int64_t to = ck_int(c, line, "child", 0);
        if (!c->out.failed && (carrier < 0 || to != carrier))
            ck_refute(c, "child", "expected a child of node %d that carries token %lld, found %lld", node->node,
                      (long long)node->token, (long long)to);
    } else if (!cJSON_IsNull(child)) {
        ck_refute(c, "child", "expected null at a continuation, found %s", ck_show(child));
    }
    if (c->header->match && !accepted && carrier >= 0 && !capped)
        ck_refute(c, "source", "expected accepted (node %d carries the token), found continuation", carrier);
    if (!c->header->match && node->target && !capped && tree->choice[node->node] != (accepted ? carrier : -1))
        ck_refute(c, "source", "expected %s of node %d, found %s of %lld",
                  tree->choice[node->node] >= 0 ? "acceptance" : "a continuation", tree->choice[node->node], source,
                  (long long)node->token);
    return accepted ? carrier : -1;
}

void ck_walk(struct ck *c, const cJSON *line, const struct ck_node *node, int64_t support)
{
    bool prefill = node->node < 0, drawn = true;
    if (prefill && !cJSON_IsNull(ck_get(c, line, "child")))
        ck_refute(c, "child", "expected null, found %s", ck_show(cJSON_GetObjectItemCaseSensitive(line, "child")));
    int next = prefill ? -1 : next_node(c, line, node);
    if (!prefill && !c->header->match) drawn = next < 0; // an accepted token was chosen, not drawn
    if (!c->out.failed && drawn && node->target) {
        enum answer draw = is_draw(c, node->token, support);
        if (draw == NO)
            ck_refute(c, "token", "expected the draw at t %lld, found %lld", (long long)c->at.t,
                      (long long)node->token);
        else if (draw == OPEN && prefill)
            ck_open(c, "token");
        else if (draw == OPEN)
            c->out.round_open = true;
    } else if (!c->out.failed && drawn && c->header->greedy) { // the first of the order, as far as `top` tells
        const cJSON *first = cJSON_GetArrayItem(cJSON_GetArrayItem(node->top, 0), 0);
        if (first && first->valuedouble != (double)node->token)
            ck_refute(c, "token", "expected the first of top, found %lld", (long long)node->token);
    }
}
