// The replay of rounds: trees, draws, acceptance. docs/log.md "round", "Random numbers" and "The walk".
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
    if (r->logit[r->order[0]] == r->logit[r->order[positive - 1]]) { // equal tokens: n >= top_p * positive, exactly
        mpq_t share;
        mpq_init(share);
        mpq_set_ui(share, positive, 1);
        mpq_mul(share, share, c->header.top_p);
        answer = mpq_cmp_ui(share, n, 1) <= 0 ? YES : NO;
        mpq_clear(share);
    }
    for (int level = 0; level < CK_LEVELS && answer == OPEN; level++) {
        struct iv sum[2];
        iv_inits(sum, 2, ck_precision(level));
        const struct ck_dist *d = ck_dist(&c->math, CK_DRAW, level);
        ck_sum_order(d, r, 0, n, &sum[0]);
        ck_sum_order(d, r, 0, left, &sum[1]);
        iv_mul_q(&sum[1], &sum[1], c->header.top_p);
        answer = iv_at_least(&sum[0], &sum[1]);
        iv_clears(sum, 2);
    }
    return answer;
}

void ck_support(struct ck *c, const cJSON *line, const struct ck_node *node, int64_t *support)
{
    int64_t vocab = (int64_t)c->math.vocab,
            left = c->header.top_k > 0 && c->header.top_k < vocab ? c->header.top_k : vocab;
    bool top_p = mpq_cmp_ui(c->header.top_p, 1, 1) < 0 && !c->header.greedy;
    *support = ck_int(c, line, "support", 1);
    if (c->failed) return;
    if (c->header.greedy) left = vocab;
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

// Is the token the draw at t?  Its cumulated weight must pass u times the total, and that of the ids below must not.
static enum answer is_draw(struct ck *c, int64_t token, int64_t support)
{
    const struct ck_row *r = &c->math.row[0];
    if (c->header.greedy) return r->order[0] == token ? YES : NO;
    if (r->rank[token] >= support || isinf(r->logit[token])) return NO;
    uint32_t x[4];
    philox(c->seed, (uint32_t)c->sequence, (uint32_t)c->t, x);
    uint64_t bits = ((uint64_t)x[0] << 32 | x[1]) >> 11;
    enum answer answer = OPEN;
    for (int level = 0; level < CK_LEVELS && answer == OPEN; level++) {
        struct iv sum[3]; // below the token, through it, all
        iv_inits(sum, 3, ck_precision(level));
        const struct ck_dist *d = ck_dist(&c->math, CK_DRAW, level);
        for (size_t i = 0; i < c->math.vocab; i++) {
            if (r->rank[i] >= support) continue;
            if ((int64_t)i < token) iv_add(&sum[0], &sum[0], &d->e[i]);
            if ((int64_t)i <= token) iv_add(&sum[1], &sum[1], &d->e[i]);
            iv_add(&sum[2], &sum[2], &d->e[i]);
        }
        iv_scale(&sum[2], &sum[2], bits); // bits < 2^53
        mpfr_div_2ui(sum[2].lo, sum[2].lo, 53, MPFR_RNDD);
        mpfr_div_2ui(sum[2].hi, sum[2].hi, 53, MPFR_RNDU);
        enum answer passes = iv_less(&sum[2], &sum[1]), earlier = iv_less(&sum[2], &sum[0]);
        answer = passes == NO || earlier == YES ? NO : passes == YES && earlier == NO ? YES : OPEN;
        iv_clears(sum, 3);
    }
    return answer;
}

void ck_tree_clear(struct ck *c)
{
    struct ck_tree *tree = &c->tree;
    if (tree->probability) iv_clears(tree->probability, (size_t)tree->count);
    free(tree->probability);
    tree->probability = NULL;
    tree->count = 0;
}

bool ck_child_token(const struct ck *c, const struct ck_node *node, int child, int64_t *token)
{
    if (node->node < 0 || c->tree.parent[child] != node->node || child == 0) return false;
    *token = c->tree.token[child];
    return true;
}

static void read_tree(struct ck *c, const cJSON *line)
{
    struct ck_tree *tree = &c->tree;
    const cJSON *parent = ck_array(c, line, "parent"), *token = ck_array(c, line, "token"),
                *logq = ck_array(c, line, "logq");
    int count = cJSON_GetArraySize(parent);
    if (c->failed) return;
    if (count < 1 || cJSON_GetArraySize(token) != count)
        ck_refute(c, "token", "expected one for each of %d parents, found %d", count, cJSON_GetArraySize(token));
    if (cJSON_GetArraySize(logq) != count)
        ck_refute(c, "logq", "expected one for each of %d nodes, found %d", count, cJSON_GetArraySize(logq));
    if (count - 1 > c->header.budget)
        ck_refute(c, "parent", "expected at most %lld nodes besides the root, found %d", (long long)c->header.budget,
                  count - 1);
    if (count > CK_NODES) ck_unreadable(c, "parent", "expected at most %d nodes", CK_NODES);
    if (c->failed) return;
    tree->probability = calloc((size_t)count, sizeof *tree->probability);
    if (!tree->probability) {
        ck_unreadable(c, "parent", "out of memory");
        return;
    }
    iv_inits(tree->probability, (size_t)count, 128);
    tree->count = count;
    parent = parent->child;
    token = token->child;
    logq = logq->child;
    for (int i = 0; i < count && !c->failed; i++, parent = parent->next, token = token->next, logq = logq->next) {
        int64_t before = ck_integer(c, parent, "parent", -1);
        tree->token[i] = ck_integer(c, token, "token", 0);
        if (!c->failed && (i == 0 ? before != -1 : before < 0 || before >= i))
            ck_refute(c, "parent", "expected %s as the parent of node %d, found %lld", i ? "an earlier node" : "-1", i,
                      (long long)before);
        if (c->failed) return;
        tree->parent[i] = (int)before;
        if (tree->token[i] >= (int64_t)c->math.vocab)
            ck_refute(c, "token", "expected an id below the vocabulary, found %lld", (long long)tree->token[i]);
        double q = ck_real(c, logq, "logq");
        if (i == 0 ? q != 0 : !(q <= 0))
            ck_refute(c, "logq", "expected %s, found %a", i ? "a logarithm <= 0" : "0 at the root", q);
        for (int j = 1; j < i && !c->failed; j++)
            if (tree->parent[j] == tree->parent[i] && tree->token[j] == tree->token[i])
                ck_refute(c, "token", "expected siblings with different tokens, found %lld at nodes %d and %d",
                          (long long)tree->token[i], j, i);
        if (c->failed) return;
        tree->depth[i] = i ? tree->depth[tree->parent[i]] + 1 : 0;
        tree->choice[i] = -2;
        tree->visited[i] = tree->known[i] = false;
    }
}

void ck_round(struct ck *c, const cJSON *line)
{
    struct ck_tree *tree = &c->tree;
    ck_tree_clear(c);
    ck_expect_int(c, line, "sequence", c->sequence);
    ck_expect_int(c, line, "round", c->round);
    ck_expect_int(c, line, "t", c->t);
    read_tree(c, line);
    if (!c->failed && tree->token[0] != c->last_token)
        ck_refute(c, "token", "expected the root to carry the newest token %lld, found %lld", (long long)c->last_token,
                  (long long)tree->token[0]);
    const cJSON *expected = ck_get(c, line, "expected_accept");
    tree->has_expected = expected && !cJSON_IsNull(expected);
    if (tree->has_expected) ck_interval(c, line, "expected_accept", tree->expected);
    ck_array(c, line, "charges");
    tree->number = c->round++;
    tree->next = 0;
    tree->next_record = 1;
    tree->accepted = 0;
    tree->cut = tree->open_question = tree->absent = false;
    tree->line = c->line;
    c->rounds++;
    c->where = CK_IN_ROUND;
}

// What the children of a node may do: their chances under sample-and-match, or the one the rule takes.
void ck_choices(struct ck *c, const struct ck_node *node, int64_t support)
{
    struct ck_tree *tree = &c->tree;
    const struct ck_row *r = &c->math.row[0];
    if (node->node < 0) return;
    if (!node->target) {
        tree->absent = true;
        return;
    }
    int64_t token;
    int best = -1;
    for (int i = 1; i < tree->count; i++)
        if (ck_child_token(c, node, i, &token) && (best < 0 || r->rank[token] < r->rank[tree->token[best]])) best = i;
    if (best >= 0 && c->header.match && r->rank[tree->token[best]] > 0) best = -1; // at temperature 0
    if (best >= 0 && !c->header.match) {
        enum answer in = ck_member(&c->math, &c->header.acceptance, r->rank[tree->token[best]]);
        if (in != YES) best = -1; // undecided counts as not accepted
    }
    if (c->header.greedy || !c->header.match) tree->choice[node->node] = best;
    tree->known[node->node] = true;
    if (!tree->has_expected || c->header.greedy || !c->header.match) return;
    struct iv mass;
    iv_inits(&mass, 1, 128);
    const struct ck_dist *d = ck_dist(&c->math, CK_DRAW, 0);
    ck_sum_order(d, r, 0, (size_t)support, &mass);
    for (int i = 1; i < tree->count; i++)
        if (ck_child_token(c, node, i, &token) && r->rank[token] < support)
            iv_div(&tree->probability[i], &d->e[token], &mass);
    iv_clears(&mass, 1);
}

// Where a step stands: its node must be where the walk is, its depth that of the node.
void ck_step_place(struct ck *c, const cJSON *line, struct ck_node *node)
{
    struct ck_tree *tree = &c->tree;
    bool prefill = c->where == CK_AT_PREFILL;
    const char *source = ck_text(c, line, "source");
    const cJSON *round = ck_get(c, line, "round");
    ck_expect_int(c, line, "sequence", c->sequence);
    ck_expect_int(c, line, "t", c->t);
    if (prefill && !cJSON_IsNull(round))
        ck_refute(c, "round", "expected null for the token of the prompt's last row, found %s", ck_show(round));
    if (!prefill) ck_expect_int(c, line, "round", tree->number);
    if (prefill != (strcmp(source, "prefill") == 0))
        ck_refute(c, "source", "expected %s, found \"%.20s\"", prefill ? "prefill" : "accepted or continuation",
                  source);
    ck_expect_int(c, line, "node", prefill ? 0 : tree->next);
    ck_expect_int(c, line, "depth", prefill ? 0 : tree->depth[tree->next]);
    node->node = prefill ? -1 : tree->next;
    node->token = ck_int(c, line, "token", 0);
    if (node->token >= (int64_t)c->math.vocab)
        ck_refute(c, "token", "expected an id below the vocabulary, found %lld", (long long)node->token);
}

// The child a step goes to: checked against the tree alone, then against what the row says must happen.
static int next_node(struct ck *c, const cJSON *line, const struct ck_node *node)
{
    struct ck_tree *tree = &c->tree;
    const char *source = ck_text(c, line, "source");
    const cJSON *child = ck_get(c, line, "child");
    bool accepted = strcmp(source, "accepted") == 0, capped = c->header.cap >= 0 && tree->accepted >= c->header.cap;
    int carrier = -1;
    int64_t token;
    for (int i = 1; i < tree->count; i++)
        if (ck_child_token(c, node, i, &token) && token == node->token) carrier = i;
    if (!accepted && strcmp(source, "continuation") != 0)
        ck_refute(c, "source", "expected accepted or continuation, found \"%.20s\"", source);
    if (accepted) {
        if (capped)
            ck_refute(c, "source", "expected a continuation after %lld accepted tokens, found accepted",
                      (long long)tree->accepted);
        int64_t to = ck_int(c, line, "child", 0);
        if (!c->failed && (carrier < 0 || to != carrier))
            ck_refute(c, "child", "expected a child of node %d that carries token %lld, found %lld", node->node,
                      (long long)node->token, (long long)to);
    } else if (!cJSON_IsNull(child)) {
        ck_refute(c, "child", "expected null at a continuation, found %s", ck_show(child));
    }
    if (c->header.match && !accepted && carrier >= 0 && !capped)
        ck_refute(c, "source", "expected accepted (node %d carries the token), found continuation", carrier);
    if (!c->header.match && node->target && !capped && tree->choice[node->node] != (accepted ? carrier : -1))
        ck_refute(c, "source", "expected %s of node %d, found %s of %lld",
                  tree->choice[node->node] >= 0 ? "acceptance" : "a continuation", tree->choice[node->node], source,
                  (long long)node->token);
    if (accepted) tree->accepted++;
    return accepted ? carrier : -1;
}

void ck_walk(struct ck *c, const cJSON *line, const struct ck_node *node, int64_t support)
{
    bool prefill = node->node < 0, drawn = true;
    if (prefill && !cJSON_IsNull(ck_get(c, line, "child")))
        ck_refute(c, "child", "expected null, found %s", ck_show(cJSON_GetObjectItemCaseSensitive(line, "child")));
    int next = prefill ? -1 : next_node(c, line, node);
    if (!prefill && !c->header.match) drawn = next < 0; // an accepted token was chosen, not drawn
    if (!c->failed && drawn && node->target) {
        enum answer draw = is_draw(c, node->token, support);
        if (draw == NO)
            ck_refute(c, "token", "expected the draw at t %lld, found %lld", (long long)c->t, (long long)node->token);
        else if (draw == OPEN && prefill)
            ck_open(c, "token");
        else if (draw == OPEN)
            c->tree.open_question = true;
    } else if (!c->failed && drawn && c->header.greedy) { // the first of the order, as far as `top` tells
        const cJSON *first = cJSON_GetArrayItem(cJSON_GetArrayItem(node->top, 0), 0);
        if (first && first->valuedouble != (double)node->token)
            ck_refute(c, "token", "expected the first of top, found %lld", (long long)node->token);
    }
    if (c->failed || prefill) return;
    c->tree.visited[node->node] = true;
    c->tree.next = next;
}

// Is there a row for every node that has children?  Then the expected number of accepted tokens is a sum of products.
static void expect_by_chance(struct ck *c)
{
    struct ck_tree *tree = &c->tree;
    struct iv *p = tree->probability, sum;
    for (int i = 1; i < tree->count; i++)
        if (!tree->known[tree->parent[i]]) {
            if (!tree->absent && !c->header.all_nodes)
                ck_refute(c, "expected_accept", "expected null: node %d is not certified", tree->parent[i]);
            return;
        }
    iv_inits(&sum, 1, 128);
    iv_point(&p[0], 1);
    for (int i = 1; i < tree->count; i++) {
        iv_mul(&p[i], &p[i], &p[tree->parent[i]]);
        if (c->header.cap < 0 || tree->depth[i] <= c->header.cap) iv_add(&sum, &sum, &p[i]);
    }
    bool inside = mpfr_cmp_d(sum.lo, tree->expected[0]) >= 0 && mpfr_cmp_d(sum.hi, tree->expected[1]) <= 0;
    bool apart = mpfr_cmp_d(sum.hi, tree->expected[0]) < 0 || mpfr_cmp_d(sum.lo, tree->expected[1]) > 0;
    if (apart)
        ck_refute(c, "expected_accept", "expected an enclosure of %a, found [%a, %a]", mpfr_get_d(sum.lo, MPFR_RNDN),
                  tree->expected[0], tree->expected[1]);
    else if (!inside)
        ck_open(c, "expected_accept");
    iv_clears(&sum, 1);
}

// Deterministic acceptance: the number the walk accepts, followed past a cut as far as rows were recorded.
static void expect_by_walk(struct ck *c)
{
    struct ck_tree *tree = &c->tree;
    int64_t least = tree->accepted, most = least;
    if (tree->cut) {
        int at = 0;
        for (least = 0; tree->choice[at] >= 0 && (c->header.cap < 0 || least < c->header.cap); least++)
            at = tree->choice[at];
        most = least;
        if (least < tree->accepted) least = tree->accepted; // rows absent
        if (tree->choice[at] == -2)
            for (int i = 0; i < tree->count; i++) most = tree->depth[i] > most ? tree->depth[i] : most;
    }
    if (tree->expected[0] > (double)most || tree->expected[1] < (double)least)
        ck_refute(c, "expected_accept", "expected %lld accepted tokens, found [%a, %a]", (long long)least,
                  tree->expected[0], tree->expected[1]);
}

void ck_round_end(struct ck *c)
{
    struct ck_tree *tree = &c->tree;
    if (c->where != CK_IN_ROUND || c->failed) return;
    if (tree->next >= 0) {
        ck_refute(c, "kind", "expected a step at node %d: the round has no continuation", tree->next);
        return;
    }
    for (int i = tree->next_record; c->header.all_nodes && i < tree->count; i++)
        if (!tree->visited[i]) {
            ck_refute(c, "kind", "expected the node record of node %d", i);
            return;
        }
    unsigned long line = c->line;
    c->line = tree->line;
    if (tree->has_expected && (c->header.greedy || !c->header.match))
        expect_by_walk(c);
    else if (tree->has_expected)
        expect_by_chance(c);
    c->result->claims++;
    c->result->undecided += tree->open_question;
    if (!c->failed) c->line = line;
    c->where = CK_AT_ROUND;
}
