// The replay of rounds: trees, draws, acceptance. docs/log.md "round", "Random numbers" and "The walk".
#include "parts.h"

static uint64_t philox_bits(uint64_t seed, uint32_t sequence, uint32_t t) { // 53 of them; purpose and child are 0
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, x[4] = {sequence, t, 0, 0};
    for (int i = 0; i < 10; i++) {
        uint64_t a = UINT64_C(0xD2511F53) * x[0], b = UINT64_C(0xCD9E8D57) * x[2];
        uint32_t y[4] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b, (uint32_t)(a >> 32) ^ x[3] ^ key[1],
                         (uint32_t)a};
        memcpy(x, y, sizeof x);
        key[0] += UINT32_C(0x9E3779B9);
        key[1] += UINT32_C(0xBB67AE85);
    }
    return ((uint64_t)x[0] << 32 | x[1]) >> 11;
}

static real short_of_share(const struct ask *a) { // mass of the first `at`, less top_p of that of the first `size`
    return r_sub(sc_mass(a->p, 0, a->at), r_mul(sc_mass(a->p, 0, a->size), r_rational(run->top_p)));
}

static enum answer reaches(size_t n, size_t left) { // does the mass of the first n of the order reach top_p?
    struct ask a = {.p = &run->row[DRAW], .at = n, .size = left};
    size_t positive = left < a.p->finite ? left : a.p->finite;
    if (n >= positive) return YES;
    if (sc_level(a.p, 0, positive)) return sc_compare(positive, run->top_p, n) <= 0 ? YES : NO;
    return sc_decide(short_of_share, &a);
}

static size_t check_support(const cJSON *line, const struct node *n) {
    size_t vocab = run->vocab,
           left = !run->greedy && run->top_k && (size_t)run->top_k < vocab ? (size_t)run->top_k : vocab;
    bool top_p = mpq_cmp_ui(run->top_p, 1, 1) < 0 && !run->greedy;
    size_t support = (size_t)sc_int(line, "support", 1);
    sc_must(support == left || (top_p && support < left), "support", "the tokens that the processors leave");
    if (!top_p || !n->target) return support;
    enum answer enough = reaches(support, left), fewer = support == 1 ? NO : reaches(support - 1, left);
    sc_must(enough != NO && fewer != YES, "support", "the shortest prefix that has top_p");
    sc_open(enough == OPEN || fewer == OPEN, "support");
    return support;
}

TERM(kept_below) { return i < a->token ? &a->p->p[i] : r_number(0); }

static real past_u(const struct ask *a) { // the mass of the ids below `token` in the support, less u of all of it
    return r_sub(sc_sum(kept_below, a, 0, a->size), r_mul(r_rational(run->u), sc_mass(a->p, 0, a->size)));
}

static bool is_tie(const struct ask *a) { // do the ids below hold the share u of every class of equal logits?
    size_t low = 0, all = 0;
    for (size_t j = 0; j < a->size && j < a->p->finite; j++) {
        low += a->p->order[j] < a->token;
        all++;
        bool end = j + 1 == a->size || j + 1 == a->p->finite || !sc_level(a->p, j, j + 2);
        if (end && sc_compare(all, run->u, low) != 0) return false;
        if (end) low = all = 0;
    }
    return true;
}

// Is the token the draw?  The mass of the ids below it must not pass u, and its own must.
static enum answer is_draw(size_t token, size_t support) {
    struct ask a = {.p = &run->row[DRAW], .token = token, .size = support};
    if (run->greedy) return run->row[TARGET].order[0] == token ? YES : NO;
    if (a.p->rank[token] >= support || isinf(a.p->logit[token])) return NO;
    mpq_set_ui(run->u, philox_bits(run->seed, (uint32_t)run->sequence, (uint32_t)run->t), 1);
    mpq_div_2exp(run->u, run->u, 53);
    enum answer earlier = is_tie(&a) ? NO : sc_decide(past_u, &a);
    a.token++;
    enum answer passes = is_tie(&a) ? NO : sc_decide(past_u, &a);
    return earlier == YES || passes == NO ? NO : earlier == NO && passes == YES ? YES : OPEN;
}

static void read_tree(const cJSON *line) {
    struct tree *t = run->tree;
    const cJSON *parent = sc_get(line, "parent", cJSON_Array), *token = sc_get(line, "token", cJSON_Array);
    const cJSON *logq = sc_get(line, "logq", cJSON_Array);
    int count = cJSON_GetArraySize(parent);
    sc_must(count >= 1 && cJSON_GetArraySize(token) == count, "token", "one for each parent");
    sc_must(cJSON_GetArraySize(logq) == count, "logq", "one for each parent");
    sc_must(count - 1 <= run->budget, "parent", "at most the budget's nodes besides the root");
    sc_need(count <= NODES, "parent", "at most 16384 nodes");
    *t = (struct tree){.count = count, .next_record = 1, .line = run->line};
    parent = parent->child;
    token = token->child;
    logq = logq->child;
    for (int i = 0; i < count; i++, parent = parent->next, token = token->next, logq = logq->next) {
        int64_t before = sc_integer(parent, "parent", -1);
        t->token[i] = sc_integer(token, "token", 0);
        sc_must(i == 0 ? before == -1 : before >= 0 && before < i, "parent", "an earlier node, or -1 for the root");
        sc_must(t->token[i] < (int64_t)run->vocab, "token", "an id below the vocabulary");
        double q = sc_real(logq, "logq");
        sc_must(i == 0 ? q == 0 : q <= 0, "logq", "a logarithm <= 0, 0 at the root");
        t->parent[i] = (int)before;
        t->depth[i] = i ? t->depth[before] + 1 : 0;
        t->choice[i] = -2;
        for (int j = 1; j < i; j++)
            sc_must(t->parent[j] != t->parent[i] || t->token[j] != t->token[i], "token",
                    "siblings with different tokens");
    }
}

void sc_round(const cJSON *line) {
    struct tree *t = run->tree;
    sc_is_int(line, "sequence", run->sequence);
    sc_is_int(line, "round", run->round);
    sc_is_int(line, "t", run->t);
    read_tree(line);
    sc_must(t->token[0] == run->last_token, "token", "the root to carry the newest token");
    t->has_expected = !cJSON_IsNull(sc_get(line, "expected_accept", 0xff));
    if (t->has_expected) t->expected = sc_enclosure(line, "expected_accept", false);
    sc_get(line, "charges", cJSON_Array);
    t->number = run->round++;
    run->rounds++;
    run->where = IN_ROUND;
}

// The children of a node in node order: their tokens, how many, and which one carries a token (-1: none).
size_t sc_children(int node, uint32_t *tokens, int64_t wanted, int *carrier) {
    const struct tree *t = run->tree;
    size_t count = 0;
    *carrier = -1;
    for (int i = 1; i < t->count && node >= 0; i++) {
        if (t->parent[i] != node) continue;
        tokens[count++] = (uint32_t)t->token[i];
        if (t->token[i] == wanted) *carrier = i;
    }
    return count;
}

// What may happen at a node: the child that the decoder must take, or the chance of each under sample-and-match.
static void choices(const struct node *n, size_t support) {
    struct tree *t = run->tree;
    const struct row *p = &run->row[TARGET], *drawn = &run->row[DRAW];
    int best = -1;
    t->absent = t->absent || !n->target;
    if (!n->target) return;
    t->known[n->index] = true;
    for (int i = 1; i < t->count; i++)
        if (t->parent[i] == n->index && (best < 0 || p->rank[t->token[i]] < p->rank[t->token[best]])) best = i;
    struct ask a = {.p = p, .at = best < 0 ? 0 : p->rank[t->token[best]], .rule = &run->acceptance};
    if (best >= 0 && (run->match ? a.at > 0 : sc_member(a) != YES)) best = -1; // undecided counts as not accepted
    if (run->greedy || !run->match) t->choice[n->index] = best;
    if (!t->has_expected || run->greedy || !run->match) return;
    run->precision = CHANCE_BITS;
    sc_weigh(&run->row[DRAW]);
    struct mark mark = r_mark();
    real all = sc_mass(drawn, 0, support);
    for (int i = 1; i < t->count; i++) {
        if (t->parent[i] != n->index || drawn->rank[t->token[i]] >= support) continue;
        real chance = r_div(&drawn->p[t->token[i]], all);
        mpfr_custom_init_set(t->chance[i].lo, MPFR_ZERO_KIND, 0, CHANCE_BITS, t->limbs[i][0]);
        mpfr_custom_init_set(t->chance[i].hi, MPFR_ZERO_KIND, 0, CHANCE_BITS, t->limbs[i][1]);
        r_copy(&t->chance[i], chance);
        t->drawable[i] = true;
    }
    r_release(mark);
}

// The child a step goes to: checked against the tree alone, then against what the row says must happen.
static int next_node(const cJSON *line, const struct node *n) {
    struct tree *t = run->tree;
    const char *source = sc_text(line, "source");
    bool accepted = strcmp(source, "accepted") == 0, capped = run->cap >= 0 && t->accepted >= run->cap;
    sc_must(accepted || strcmp(source, "continuation") == 0, "source", "accepted or continuation");
    sc_must(!accepted || !capped, "source", "a continuation: the cap is reached");
    if (accepted)
        sc_must(n->carrier >= 0 && sc_int(line, "child", 0) == n->carrier, "child", "the child that carries the token");
    else sc_must(cJSON_IsNull(sc_get(line, "child", 0xff)), "child", "null at a continuation");
    sc_must(!run->match || accepted || n->carrier < 0 || capped, "source", "accepted: a child carries the token");
    if (!run->match && n->target && !capped)
        sc_must(t->choice[n->index] == (accepted ? n->carrier : -1), "source", "what the acceptance rule takes");
    t->accepted += accepted;
    return accepted ? n->carrier : -1;
}

static real chance_of_token(const struct ask *a) { // flag: of any other one. An accepted token was certain.
    if (a->at >= a->size || a->at >= a->p->finite) return r_number(a->flag);
    real rest = r_add(sc_mass(a->p, 0, a->at), sc_mass(a->p, a->at + 1, a->size));
    return r_div(a->flag ? rest : &a->p->p[a->token], sc_mass(a->p, 0, a->size));
}

static void check_law(const cJSON *line, const struct node *n, size_t support, bool accepted) { // e and ratio
    struct ask a = {.p = &run->row[DRAW], .token = (size_t)n->token, .size = support};
    if (run->match || run->greedy) sc_absent(line, "e ratio", "nothing: every token is drawn from the target");
    for (int i = 0; i < 2; i++) {
        const char *key = i ? "ratio" : "e";
        if (!sc_find(line, key)) continue;
        a.flag = !i;
        a.at = n->target ? a.p->rank[n->token] : 0;
        struct ends e = accepted ? sc_prove(line, key, chance_of_token, &a, n->target) : sc_enclosure(line, key, false);
        sc_must(accepted || (e.lo == i && e.hi == i), key, i ? "exactly 1" : "exactly 0");
        sc_must(e.hi >= 0 && e.lo <= 1, key, "a share");
    }
}

// One step: its place in the walk, its claims, and what the row says must be emitted.
void sc_walk(const cJSON *line, struct node *n) {
    struct tree *t = run->tree;
    bool prefill = run->where == AT_PREFILL, accepted = false, drawn = true;
    sc_is_int(line, "sequence", run->sequence);
    sc_is_int(line, "t", run->t);
    if (prefill)
        sc_must(cJSON_IsNull(sc_get(line, "round", 0xff)), "round", "null for the token of the prompt's last row");
    else sc_is_int(line, "round", t->number);
    sc_must(prefill == (strcmp(sc_text(line, "source"), "prefill") == 0), "source",
            prefill ? "prefill" : "another source");
    sc_is_int(line, "node", prefill ? 0 : t->next);
    sc_is_int(line, "depth", prefill ? 0 : t->depth[t->next]);
    n->index = prefill ? -1 : t->next;
    n->token = sc_int(line, "token", 0);
    sc_must(n->token < (int64_t)run->vocab, "token", "an id below the vocabulary");
    n->children = sc_children(n->index, n->proposed, n->token, &n->carrier);
    sc_claims(line, n);
    size_t support = check_support(line, n);
    if (!prefill) choices(n, support);
    if (prefill) sc_must(cJSON_IsNull(sc_get(line, "child", 0xff)), "child", "null");
    int next = prefill ? -1 : next_node(line, n);
    accepted = next >= 0;
    if (!prefill && !run->match) drawn = !accepted; // an accepted token was chosen, not drawn
    if (drawn && n->target) {
        enum answer draw = is_draw((size_t)n->token, support);
        sc_must(draw != NO, "token", "the draw at t");
        if (prefill) sc_open(draw == OPEN, "token");
        t->open = t->open || (draw == OPEN && !prefill);
    } else if (drawn && run->greedy && n->top->child) {
        sc_must(n->top->child->child->valuedouble == (double)n->token, "token", "the first of top");
    }
    check_law(line, n, support, accepted);
    if (!prefill) t->visited[n->index] = true;
    t->next = next;
}

void sc_node(const cJSON *line, struct node *n) { // a node record
    struct tree *t = run->tree;
    sc_must(run->all_nodes && run->where == IN_ROUND && t->next < 0, "kind", "no node record here");
    while (t->next_record < t->count && t->visited[t->next_record]) t->next_record++;
    sc_must(t->next_record < t->count, "kind", "no node record: every node has one, or a step");
    n->index = t->next_record++;
    sc_is_int(line, "sequence", run->sequence);
    sc_is_int(line, "round", t->number);
    sc_is_int(line, "node", n->index);
    sc_is_int(line, "depth", t->depth[n->index]);
    sc_absent(line, "t token source child regret finish text e ratio", "nothing: a node emits no token");
    n->children = sc_children(n->index, n->proposed, -1, &n->carrier);
    sc_claims(line, n);
    choices(n, check_support(line, n));
    run->nodes++;
}

// Is there a row for every node that has children?  Then the expected number of accepted tokens is a sum of products.
static void expect_by_chance(struct tree *t) {
    for (int i = 1; i < t->count; i++) {
        bool known = t->known[t->parent[i]];
        sc_must(known || t->absent || run->all_nodes, "expected_accept", "null: not every node has a record");
        if (!known) return;
    }
    run->precision = CHANCE_BITS;
    real *reach = sc_alloc((size_t)t->count * sizeof *reach), sum = r_number(0);
    reach[0] = r_number(1);
    for (int i = 1; i < t->count; i++) {
        reach[i] = t->drawable[i] ? r_mul(&t->chance[i], reach[t->parent[i]]) : r_number(0);
        if (run->cap < 0 || t->depth[i] <= run->cap) sum = r_add(sum, reach[i]);
    }
    bool apart = mpfr_cmp_d(sum->hi, t->expected.lo) < 0 || mpfr_cmp_d(sum->lo, t->expected.hi) > 0;
    sc_must(!apart, "expected_accept", "an enclosure of the expectation");
    sc_open(mpfr_cmp_d(sum->lo, t->expected.lo) < 0 || mpfr_cmp_d(sum->hi, t->expected.hi) > 0, "expected_accept");
}

// Deterministic acceptance: the number that the walk accepts, followed past a cut as far as rows were recorded.
static void expect_by_walk(struct tree *t) {
    int64_t least = t->accepted, most = least;
    if (t->cut) {
        int at = 0;
        for (least = 0; t->choice[at] >= 0 && (run->cap < 0 || least < run->cap); least++) at = t->choice[at];
        most = least;
        if (least < t->accepted) least = t->accepted; // rows absent
        for (int i = 0; i < t->count && t->choice[at] == -2; i++) most = t->depth[i] > most ? t->depth[i] : most;
    }
    sc_must(t->expected.lo <= (double)most && t->expected.hi >= (double)least, "expected_accept",
            "what the walk accepts");
}

void sc_round_end(void) { // before the next record that is not of this round
    struct tree *t = run->tree;
    uint64_t line = run->line;
    if (run->where != IN_ROUND) return;
    sc_must(t->next < 0, "kind", "a step: the round has no continuation");
    for (int i = t->next_record; run->all_nodes && i < t->count; i++)
        sc_must(t->visited[i], "kind", "the record of a node");
    run->line = t->line;
    if (t->has_expected && (run->greedy || !run->match)) expect_by_walk(t);
    else if (t->has_expected) expect_by_chance(t);
    run->line = line;
    run->result->claims++;
    run->result->undecided += t->open;
    run->where = AT_ROUND;
}
