// Random numbers and what they choose: supports, draws, coins, residual draws. docs/log.md "Random numbers", "The
// walk".
#include "claim.h"

static uint64_t philox_bits(uint64_t seed, uint32_t sequence, uint32_t t, uint32_t purpose, uint32_t child) { // 53
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, x[4] = {sequence, t, purpose, child};
    for (int i = 0; i < 10; i++) {
        uint64_t a = UINT64_C(0xD2511F53) * x[0], b = UINT64_C(0xCD9E8D57) * x[2];
        uint32_t left = (uint32_t)(b >> 32) ^ x[1] ^ key[0], right = (uint32_t)(a >> 32) ^ x[3] ^ key[1];
        memcpy(x, (uint32_t[4]){left, (uint32_t)b, right, (uint32_t)a}, sizeof x);
        key[0] += UINT32_C(0x9E3779B9);
        key[1] += UINT32_C(0xBB67AE85);
    }
    return ((uint64_t)x[0] << 32 | x[1]) >> 11;
}

static void throw(int64_t t, enum purpose purpose, size_t child) { // sets run->u
    uint64_t bits = philox_bits(run->seed, (uint32_t)run->sequence, (uint32_t)t, purpose, (uint32_t)child);
    mpq_set_ui(run->u, bits, 1);
    mpq_div_2exp(run->u, run->u, 53);
}

static real share_reached(const struct ask *a) { // mass of the first `at`, less top_p of that of the first `size`
    size_t positive = a->size < a->p->finite ? a->size : a->p->finite;
    if (a->at >= positive) return one();
    if (tied(a->p, 0, positive)) return r_number(-compare(positive, run->top_p, a->at, run->one));
    return r_sub(mass(a->p, 0, a->at), r_mul(mass(a->p, 0, a->size), r_rational(run->top_p)));
}

static size_t check_support(const cJSON *line) {
    size_t vocab = run->vocab, top_k = (size_t)run->top_k, support = (size_t)integer(line, "support", 1);
    struct ask a = {
        .p = &run->row[DRAW], .size = !run->greedy && top_k && top_k < vocab ? top_k : vocab, .at = support};
    bool top_p = mpq_cmp_ui(run->top_p, 1, 1) < 0 && !run->greedy;
    must(support == a.size || (top_p && support < a.size), "support");
    if (!top_p || !run->node->target) return support;
    settle(decide(share_reached, &a), "support");
    a.at--; // one less must not do
    settle(opposite(decide(share_reached, &a)), "support");
    return support;
}

TERM(kept_below) { return i < a->token ? &a->p->p[i] : r_number(0); }

// The mass of the ids below `token` in the support, less u of all of it. A tie (the ids below hold the share u of every
// class of equal logits) does not pass u.
static real past_u(const struct ask *a) {
    size_t low = 0, all = 0, size = a->size < a->p->finite ? a->size : a->p->finite;
    bool tie = true;
    for (size_t j = 0; j < size && tie; j++) {
        bool end = j + 1 == size || !tied(a->p, j, j + 2);
        low += a->p->order[j] < a->token;
        all++;
        if (!end) continue;
        tie = compare(all, run->u, low, run->one) == 0;
        low = all = 0;
    }
    if (tie) return r_number(-1);
    return r_sub(sum_of(kept_below, a, 0, a->size), r_mul(r_rational(run->u), mass(a->p, 0, a->size)));
}

// Is the token the draw of u from a row?  The mass of the ids below it must not pass u, and its own must.
static enum answer is_draw(enum which which, size_t token, size_t support) {
    struct ask a = {.p = &run->row[which], .token = token, .size = support};
    if (a.p->rank[token] >= support || isinf(a.p->logit[token])) return NO;
    enum answer earlier = decide(past_u, &a);
    a.token++;
    enum answer passes = decide(past_u, &a);
    return earlier == YES || passes == NO ? NO : earlier == NO && passes == YES ? YES : OPEN;
}

static enum answer is_target_draw(size_t token, size_t support) {
    if (run->greedy) return run->row[TARGET].order[0] == token ? YES : NO;
    throw(run->t, OF_TARGET, 0);
    return is_draw(DRAW, token, support);
}

// The children of the record's node as proposals.
static struct ask at_node(void) {
    const struct node *n = run->node;
    struct ask a = {.p = &run->row[TARGET], .q = &run->row[DRAFT], .proposed = n->proposed, .proposals = n->children};
    a.m = n->children;
    a.k = n->relaxed ? n->k : 0;
    a.iid = run->iid;
    a.tree = true;
    a.token = (size_t)(n->token < 0 ? 0 : n->token);
    return a;
}

static bool at_hand(void) { return run->node->target && (run->node->draft || !run->iid); } // what the law needs

static real heads(const struct ask *a) { // u Q - p^j, of child `at`, j - 1 of which were rejected
    size_t x = a->proposed[a->at];
    real p = &residual(a, a->at)[x];
    return r_sub(r_mul(r_rational(run->u), proposal(a, a->at, x)), p);
}

// The child that standard or nucleus acceptance takes, of `children` in node order; -1: all are rejected.
static int taken_child(const int *children) {
    struct ask a = at_node();
    for (a.at = 0; a.at < a.proposals; a.at++) {
        if (a.p->rank[a.proposed[a.at]] < a.k) return children[a.at];
        throw(run->t, COIN, a.at);
        if (decide(heads, &a) == NO) return children[a.at]; // undecided counts as a rejection
    }
    return -1;
}

static real left_of_u(const struct ask *a) { // u less the mass of the ids below `token` after m rejections
    const struct real *p = residual(a, a->proposals);
    struct real *sum = r_zero();
    size_t used = run->used;
    for (size_t i = 0; i < a->token; i++, run->used = used) r_copy(sum, r_add(sum, &p[i]));
    return r_sub(r_rational(run->u), sum);
}

static enum answer is_residual_draw(void) {
    struct ask a = at_node();
    throw(run->t, RESIDUAL, 0);
    enum answer later = decide(left_of_u, &a);
    a.token++;
    enum answer reached = opposite(decide(left_of_u, &a));
    return later == NO || reached == NO ? NO : later == YES && reached == YES ? YES : OPEN;
}
