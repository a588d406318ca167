// The replay of rounds: trees, draws, acceptance. docs/log.md "round", "Random numbers" and "The walk".
#include "claim.h"

static uint64_t philox_bits(uint64_t seed, uint32_t sequence, uint32_t t) { // 53 of them; purpose and child are 0
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, x[4] = {sequence, t, 0, 0};
    for (int i = 0; i < 10; i++) {
        uint64_t a = UINT64_C(0xD2511F53) * x[0], b = UINT64_C(0xCD9E8D57) * x[2];
        uint32_t left = (uint32_t)(b >> 32) ^ x[1] ^ key[0], right = (uint32_t)(a >> 32) ^ x[3] ^ key[1];
        memcpy(x, (uint32_t[4]){left, (uint32_t)b, right, (uint32_t)a}, sizeof x);
        key[0] += UINT32_C(0x9E3779B9);
        key[1] += UINT32_C(0xBB67AE85);
    }
    return ((uint64_t)x[0] << 32 | x[1]) >> 11;
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

// Is the token the draw?  The mass of the ids below it must not pass u, and its own must.
static enum answer is_draw(size_t token, size_t support) {
    struct ask a = {.p = &run->row[DRAW], .token = token, .size = support};
    if (run->greedy) return run->row[TARGET].order[0] == token ? YES : NO;
    if (a.p->rank[token] >= support || isinf(a.p->logit[token])) return NO;
    mpq_set_ui(run->u, philox_bits(run->seed, (uint32_t)run->sequence, (uint32_t)run->t), 1);
    mpq_div_2exp(run->u, run->u, 53);
    enum answer earlier = decide(past_u, &a);
    a.token++;
    enum answer passes = decide(past_u, &a);
    return earlier == YES || passes == NO ? NO : earlier == NO && passes == YES ? YES : OPEN;
}

static void check_round(const cJSON *line) {
    struct tree *t = run->tree;
    int count = cJSON_GetArraySize(get(line, "parent", cJSON_Array));
    const cJSON *parent = find(line, "parent")->child, *token = array(line, "token", count);
    const cJSON *logq = array(line, "logq", count);
    counts(line, "sequence", run->sequence);
    counts(line, "round", run->round);
    counts(line, "t", run->t);
    must(count >= 1 && count - 1 <= run->budget, "parent");
    need(count <= NODES, "parent");
    *t = (struct tree){.count = count, .next_record = 1, .line = run->line, .number = run->round++};
    for (int i = 0; i < count; i++, parent = parent->next, token = token->next, logq = logq->next) {
        int64_t before = whole(parent, "parent", -1);
        t->token[i] = whole(token, "token", 0);
        must(i == 0 ? before == -1 : before >= 0 && before < i, "parent");
        must(t->token[i] < (int64_t)run->vocab, "token");
        double q = number(logq, "logq");
        must(i == 0 ? q == 0 : q <= 0, "logq");
        t->parent[i] = (int)before;
        t->depth[i] = i ? t->depth[before] + 1 : 0;
        t->choice[i] = -2;
        for (int j = 1; j < i; j++) must(t->parent[j] != before || t->token[j] != t->token[i], "token");
    }
    must(t->token[0] == run->last_token, "token");
    t->has_expected = !is_null(line, "expected_accept");
    if (t->has_expected) t->expected = enclosure(line, "expected_accept", NARROW);
    get(line, "charges", cJSON_Array);
    run->rounds++;
    run->where = IN_ROUND;
}

// Takes a record to be of a node (-1: prefill), whose children it lists in node order: their tokens, how many, and
// which one carries the emitted token (-1: none).
static void begin_node(const cJSON *line, int index, int64_t token) {
    const struct tree *t = run->tree;
    struct node *n = run->node;
    counts(line, "sequence", run->sequence);
    counts(line, "node", index < 0 ? 0 : index);
    counts(line, "depth", index < 0 ? 0 : t->depth[index]);
    n->index = index;
    n->token = token;
    n->carrier = -1;
    for (int i = 1; i < t->count && index >= 0; i++) {
        if (t->parent[i] != index) continue;
        n->proposed[n->children++] = (uint32_t)t->token[i];
        if (t->token[i] == token) n->carrier = i;
    }
}

// What may happen at a node: the child that the decoder must take, or the chance of each under sample-and-match.
static void find_choices(size_t support) {
    struct tree *t = run->tree;
    const struct node *n = run->node;
    const struct row *p = &run->row[TARGET], *drawn = &run->row[DRAW];
    int best = -1;
    t->absent = t->absent || !n->target;
    if (!n->target) return;
    t->known[n->index] = true;
    for (int i = 1; i < t->count; i++)
        if (t->parent[i] == n->index && (best < 0 || p->rank[t->token[i]] < p->rank[t->token[best]])) best = i;
    struct ask a = {.p = p, .at = best < 0 ? 0 : p->rank[t->token[best]], .rule = &run->acceptance};
    if (best >= 0 && (run->match ? a.at > 0 : member(a) != YES)) best = -1; // undecided counts as not accepted
    if (run->greedy || !run->match) t->choice[n->index] = best;
    if (!t->has_expected || run->greedy || !run->match) return;
    attempt(2 * LEAST_BITS);
    real all = mass(drawn, 0, support);
    for (int i = 1; i < t->count; i++)
        if (t->parent[i] == n->index && drawn->rank[t->token[i]] < support)
            t->chance[i] = r_div(&drawn->p[t->token[i]], all);
    run->kept = run->used;
}

// The child a step goes to: checked against the tree alone, then against what the row says must happen.
static int next_node(const cJSON *line) {
    struct tree *t = run->tree;
    const struct node *n = run->node;
    bool accepted = strcmp(text_of(line, "source"), "accepted") == 0, capped = run->cap >= 0 && t->accepted >= run->cap;
    if (!accepted) says(line, "source", "continuation");
    must(!accepted || !capped, "source");
    if (accepted) must(n->carrier >= 0 && integer(line, "child", 0) == n->carrier, "child");
    else must(is_null(line, "child"), "child");
    must(!run->match || accepted || n->carrier < 0 || capped, "source");
    bool chosen = run->match || !n->target || capped || t->choice[n->index] == (accepted ? n->carrier : -1);
    must(chosen, "source");
    t->accepted += accepted;
    return accepted ? n->carrier : -1;
}

static real chance_of_token(const struct ask *a) { // flag: of any other one. An accepted token was certain.
    if (a->at >= a->size || empty(a)) return r_number(a->flag);
    real rest = r_add(mass(a->p, 0, a->at), mass(a->p, a->at + 1, a->size));
    return r_div(a->flag ? rest : &a->p->p[a->token], mass(a->p, 0, a->size));
}

static void check_law(const cJSON *line, size_t support, bool accepted) { // e and ratio
    const struct node *n = run->node;
    struct ask a = {.p = &run->row[DRAW], .token = (size_t)n->token, .size = support};
    a.at = n->target ? a.p->rank[n->token] : 0;
    if (run->match || run->greedy) absent(line, "e ratio"); // every token is drawn from the target
    for (int i = 0; i < 2; i++) {
        const char *key = i ? "ratio" : "e";
        a.flag = !i;
        if (find(line, key) && !accepted) exactly(line, key, i);
        else if (find(line, key)) within(prove(line, key, chance_of_token, &a, n->target), key, 0, 1);
    }
}

static void check_finish(const cJSON *line, int64_t token) {
    const cJSON *stop = find(run->sequence_json, "stop"), *v, *found = find(line, "finish");
    const char *expected = NULL, *said = found ? text_of(line, "finish") : NULL;
    bool strings = cJSON_GetArraySize(find(stop, "strings")) > 0;
    cJSON_ArrayForEach (v, find(stop, "eos"))
        if (v->valuedouble == (double)token) expected = "eos";
    if (!expected && said && strcmp(said, "stop") == 0 && strings) expected = "stop";
    if (!expected && run->t + 1 == integer(stop, "max_tokens", 1)) expected = "length";
    must(expected && said ? strcmp(said, expected) == 0 : expected == said, "finish");
    run->finished = found != NULL;
}

// One step: its place in the walk, its claims, and what the row says must be emitted.
static void check_step(const cJSON *line) {
    struct tree *t = run->tree;
    struct node *n = run->node;
    bool prefill = run->where == AT_PREFILL;
    must(!run->audit && (prefill || (run->where == IN_ROUND && t->next >= 0)), "kind");
    counts(line, "t", run->t);
    if (prefill) must(is_null(line, "round") && is_null(line, "child"), "round");
    else counts(line, "round", t->number);
    must(prefill == (strcmp(text_of(line, "source"), "prefill") == 0), "source");
    begin_node(line, prefill ? -1 : t->next, integer(line, "token", 0));
    must(n->token < (int64_t)run->vocab, "token");
    n->counted = true;
    check_record(line);
    size_t support = check_support(line);
    if (!prefill) find_choices(support);
    int next = prefill ? -1 : next_node(line);
    bool drawn = next < 0 || run->match; // else it was chosen
    if (drawn && n->target) {
        enum answer draw = is_draw((size_t)n->token, support);
        must(draw != NO, "token");
        leave_open(prefill && draw == OPEN, "token");
        t->open = t->open || (draw == OPEN && !prefill);
    } else if (drawn && run->greedy && n->top->child) {
        must(n->top->child->child->valuedouble == (double)n->token, "token");
    }
    check_law(line, support, next >= 0);
    check_finish(line, n->token);
    if (!prefill) t->visited[n->index] = true;
    if (!prefill) t->cut = run->finished && next >= 0;
    t->next = run->finished ? -1 : next;
    if (prefill) run->where = AT_ROUND;
    run->last_token = n->token;
    run->last_sequence = run->sequence;
    run->last_t = run->t++;
    run->result->steps++;
}

static void check_node(const cJSON *line) { // a node record
    struct tree *t = run->tree;
    must(run->all_nodes && run->where == IN_ROUND && t->next < 0, "kind");
    while (t->next_record < t->count && t->visited[t->next_record]) t->next_record++;
    must(t->next_record < t->count, "kind");
    counts(line, "round", t->number);
    absent(line, "t token source child regret finish text e ratio");
    begin_node(line, t->next_record++, -1);
    check_record(line);
    find_choices(check_support(line));
    run->nodes++;
}

// Is there a row for every node that has children?  Then the expected number of accepted tokens is a sum of products.
static void expect_by_chance(struct tree *t) {
    real *reach = allocate((size_t)t->count * sizeof *reach), sum;
    for (int i = 1; i < t->count; i++) {
        bool known = t->known[t->parent[i]];
        must(known || t->absent || run->all_nodes, "expected_accept");
        if (!known) return;
    }
    run->precision = 2 * LEAST_BITS;
    reach[0] = one();
    sum = r_number(0);
    for (int i = 1; i < t->count; i++) {
        reach[i] = t->chance[i] ? r_mul(t->chance[i], reach[t->parent[i]]) : r_number(0);
        if (run->cap < 0 || t->depth[i] <= run->cap) sum = r_add(sum, reach[i]);
    }
    leave_open(!encloses(t->expected, sum, "expected_accept"), "expected_accept");
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
    must(t->expected.lo <= (double)most && t->expected.hi >= (double)least, "expected_accept");
}

static void end_round(void) { // before the next record that is not of this round
    struct tree *t = run->tree;
    uint64_t line = run->line;
    if (run->where != IN_ROUND) return;
    must(t->next < 0, "kind");
    for (int i = t->next_record; run->all_nodes && i < t->count; i++) must(t->visited[i], "kind");
    run->line = t->line;
    if (t->has_expected && (run->greedy || !run->match)) expect_by_walk(t);
    else if (t->has_expected) expect_by_chance(t);
    run->line = line;
    run->result->claims++;
    run->result->undecided += t->open;
    run->where = AT_ROUND;
    run->kept = run->base;
}
