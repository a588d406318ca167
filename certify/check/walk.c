// The replay of a step: draws, acceptance. docs/log.md "Random numbers" and "The walk".
#include "certify/check/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

// Purposes of random numbers.
enum { TARGET, DRAFT, COIN, RESIDUAL };

static uint64_t number(const struct ck *c, int64_t t, uint32_t purpose, size_t child)
{
    const uint32_t counter[4] = {(uint32_t)c->at.sequence, (uint32_t)t, purpose, (uint32_t)child};
    return ck_random(c->at.of->seed, counter);
}

// Is the token the draw at t?
static enum answer is_draw(struct ck *c, int64_t token, int64_t support)
{
    const struct ck_row *r = &c->math.row[0];
    const struct ck_part part = {(size_t)support, NULL, 0};
    if (c->header->greedy) return r->order[0] == token ? YES : NO;
    return ck_is_draw(&c->math, CK_DRAW, (size_t)token, &part, number(c, c->at.t, TARGET, 0));
}

int ck_carrier(const struct ck_tree *tree, int node, int64_t token)
{
    for (int i = 1; i < tree->walked; i++)
        if (tree->parent[i] == node && tree->token[i] == token) return i;
    return -1;
}

// More children than MPFR can try in sensible time, each a pass over the row.
static bool too_many(const struct ck *c, const struct ck_node *node)
{
    return node->child_count > ((size_t)1 << 28) / c->math.vocab;
}

void ck_proposals(struct ck *c, const struct ck_node *node)
{
    const struct ck_tree *tree = c->at.tree;
    const struct ck_part all = {c->math.vocab, NULL, 0};
    if (!c->header->iid || node->node < 0) return;
    if (node->child_count > 0 && !node->draft) c->out.round_absent = true;
    if (node->draft && c->math.first_level > 0 && too_many(c, node)) {
        c->out.round_open = true;
        return;
    }
    for (size_t j = 0; node->draft && j < node->child_count && !c->out.failed; j++) {
        uint64_t bits = number(c, tree->t + tree->depth[node->node], DRAFT, j);
        enum answer drawn = ck_is_draw(&c->math, CK_DRAFT, node->children[j], &all, bits);
        if (drawn == NO)
            ck_refute(c, "child", "expected the draw of the draft at node %d, found %u", node->child[j],
                      node->children[j]);
        else if (drawn == OPEN)
            c->out.round_open = true;
    }
}

// The chance of each child of a node; false when one is not known to 60 bits.
static bool child_chances(struct ck *c, const struct ck_node *node, int level, size_t support)
{
    struct ck_tree *tree = c->at.tree;
    const struct ck_dist *d = ck_dist(&c->math, CK_DRAW, level);
    struct iv t[2];
    bool sharp = true;
    iv_inits(t, 2, ck_precision(level));
    ck_sum_order(d, 0, support, &t[0]);
    for (size_t j = 0; j < node->child_count; j++) {
        size_t token = node->children[j];
        int i = node->child[j];
        if (d->row->rank[token] >= support) continue;
        ck_weight(d, token, &t[1]);
        iv_div(&tree->probability[i], &t[1], &t[0]);
        mpfr_sub(t[1].lo, tree->probability[i].hi, tree->probability[i].lo, MPFR_RNDU);
        mpfr_mul_2si(t[1].lo, t[1].lo, 60, MPFR_RNDU);
        sharp = sharp && mpfr_lessequal_p(t[1].lo, tree->probability[i].hi);
    }
    iv_clears(t, 2);
    return sharp;
}

void ck_best(struct ck *c, struct ck_node *node)
{
    const struct ck_tree *tree = c->at.tree;
    const struct ck_row *r = &c->math.row[0];
    int best = -1;
    node->best = node->node >= 0 && !node->target ? -2 : -1;
    if (node->node < 0 || !node->target || c->header->stochastic) return;
    for (size_t j = 0; j < node->child_count; j++)
        if (best < 0 || r->rank[node->children[j]] < r->rank[tree->token[best]]) best = node->child[j];
    if (best >= 0 && c->header->match && r->rank[tree->token[best]] > 0) best = -1; // at temperature 0
    if (best >= 0 && c->header->leaf_stop && tree->children[best] == 0) best = -1;
    if (best >= 0 && !c->header->match) {
        enum answer in = ck_member(&c->math, &c->header->acceptance, r->rank[tree->token[best]]);
        if (in != YES) best = -1; // undecided counts as not accepted
    }
    node->best = best;
}

// The child that is accepted, -1: none, -2: not known. Children are tried in their order.
static int try_children(struct ck *c, struct ck_node *node)
{
    bool sure = c->header->nucleus && node->relaxed;
    if (sure && !ck_size_nucleus(c, node)) c->out.round_open = true;
    if (c->math.first_level > 0 && too_many(c, node)) {
        c->out.round_open = true;
        return -2;
    }
    for (size_t j = 0; j < node->child_count; j++) {
        size_t token = node->children[j];
        uint64_t bits = number(c, c->at.t, COIN, j);
        enum answer taken;
        if (sure && c->math.row[0].rank[token] < node->sure) return node->child[j];
        if (!c->header->iid)
            taken = ck_coin_point(&c->math, node->children, j, token, bits);
        else if (node->draft)
            taken = ck_coin_draw(&c->math, node->child_count, j, token, bits);
        else
            return -2;
        if (taken == YES) return node->child[j];
        if (taken == OPEN) c->out.round_open = true; // it counts as a rejection, where nothing was left out
        if (taken == OPEN && too_many(c, node)) return -2;
    }
    return -1;
}

void ck_choices(struct ck *c, struct ck_node *node, int64_t support)
{
    struct ck_tree *tree = c->at.tree;
    const struct ck_header *h = c->header;
    if (node->node < 0) return;
    if (!node->target) {
        c->out.round_absent = true;
        return;
    }
    int *choice = &tree->choice[node->node];
    if (h->stochastic)
        *choice = node->looked ? try_children(c, node) : -1;
    else if (h->greedy || !h->match)
        *choice = node->best;
    bool first = node->best < 0 || c->math.row[0].rank[tree->token[node->best]] == 0;
    if (h->budget_kind == CK_REGRET_BUDGET && !first && node->record != CK_STEP) *choice = -2; // past a cut
    if (h->budget_kind == CK_REGRET_BUDGET && !first && node->charged && !node->relaxed) *choice = -1;
    tree->known[node->node] = true;
    if (!tree->has_expected || h->greedy || !h->match) return;
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

// What the tree and the words of a step say against the child it goes to, whatever the rows are.
static void check_structure(struct ck *c, const cJSON *line, const struct ck_node *node, bool accepted, int carrier)
{
    const struct ck_tree *tree = c->at.tree;
    const struct ck_header *h = c->header;
    const cJSON *child = ck_get(c, line, "child");
    bool capped = h->cap >= 0 && c->at.accepted >= h->cap;
    bool leaf = h->leaf_stop && carrier >= 0 && tree->children[carrier] == 0;
    if (accepted && capped)
        ck_refute(c, "source", "expected a continuation after %lld accepted tokens, found accepted",
                  (long long)c->at.accepted);
    if (accepted && leaf)
        ck_refute(c, "source", "expected a continuation (node %d has no children), found accepted", carrier);
    int64_t to = accepted ? ck_int(c, line, "child", 0) : -1;
    if (accepted && !c->out.failed && (carrier < 0 || to != carrier))
        ck_refute(c, "child", "expected a child of node %d that carries token %lld, found %lld", node->node,
                  (long long)node->token, (long long)to);
    if (!accepted && !cJSON_IsNull(child))
        ck_refute(c, "child", "expected null at a continuation, found %s", ck_show(child));
    // A refused proposal has nothing left in the residual.
    if ((h->match || h->stochastic) && !accepted && carrier >= 0 && !capped && !leaf)
        ck_refute(c, "source", "expected accepted (node %d carries the token), found continuation", carrier);
    if (h->budget_kind == CK_REGRET_BUDGET && node->charged &&
        (accepted ? !node->relaxed && node->charge[0] > 0 : node->relaxed))
        ck_refute(c, "source", "expected %s (relaxed is %s), found %s", accepted ? "a continuation" : "acceptance",
                  accepted ? "false" : "true", accepted ? "accepted" : "continuation");
    if (node->node == 0 && tree->first >= 0 && node->token != tree->first)
        ck_refute(c, "token", "expected the round's first %lld, found %lld", (long long)tree->first,
                  (long long)node->token);
}

// The child a step goes to: checked against the tree alone, then against what the row says must happen.
static int next_node(struct ck *c, const cJSON *line, const struct ck_node *node)
{
    const struct ck_tree *tree = c->at.tree;
    const char *source = ck_text(c, line, "source");
    bool accepted = strcmp(source, "accepted") == 0, capped = c->header->cap >= 0 && c->at.accepted >= c->header->cap;
    int carrier = ck_carrier(tree, node->node, node->token), choice = tree->choice[node->node];
    if (!accepted && strcmp(source, "continuation") != 0)
        ck_refute(c, "source", "expected accepted or continuation, found \"%.20s\"", source);
    if (!c->out.failed) check_structure(c, line, node, accepted, carrier);
    bool wrong = !c->header->match && choice != -2 && !capped && choice != (accepted ? carrier : -1);
    if (wrong && choice >= 0)
        ck_refute(c, "source", "expected acceptance of node %d, found %s of %lld", choice, source,
                  (long long)node->token);
    else if (wrong)
        ck_refute(c, "source", "expected a continuation, found %s of %lld", source, (long long)node->token);
    return accepted ? carrier : -1;
}

// Is the token of a step what its random number gives?
static enum answer is_right_draw(struct ck *c, const struct ck_node *node, int64_t support)
{
    if (!c->header->stochastic || !node->looked) return is_draw(c, node->token, support);
    uint64_t bits = number(c, c->at.t, RESIDUAL, 0);
    const struct ck_part rest = {c->math.vocab, node->children, node->child_count};
    if (!c->header->iid) return ck_is_draw(&c->math, CK_TARGET, (size_t)node->token, &rest, bits);
    return ck_is_residual(&c->math, node->child_count, (size_t)node->token, bits);
}

void ck_walk(struct ck *c, const cJSON *line, const struct ck_node *node, int64_t support)
{
    bool prefill = node->node < 0, drawn = true;
    if (prefill && !cJSON_IsNull(ck_get(c, line, "child")))
        ck_refute(c, "child", "expected null, found %s", ck_show(cJSON_GetObjectItemCaseSensitive(line, "child")));
    int next = prefill ? -1 : next_node(c, line, node);
    if (!prefill && !c->header->match) drawn = next < 0; // an accepted token was chosen, not drawn
    bool rows = node->target && (node->draft || !c->header->iid || !node->looked);
    if (!c->out.failed && drawn && rows) {
        enum answer draw = is_right_draw(c, node, support);
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
