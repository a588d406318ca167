// The replay of rounds: whom the decoder takes at each node, and the law of what it emits. docs/log.md "The walk".
#include "budget.h"

// The child that a deterministic rule, or the draw at temperature 0, takes if it may: -1: none, -2: not known.
static int best_child(void) {
    const struct tree *t = run->tree;
    const struct node *n = run->node;
    const struct row *p = &run->row[TARGET];
    int best = -1;
    if (!n->target) return -2;
    for (int i = 1; i < t->verified; i++)
        if (t->parent[i] == n->index && (best < 0 || p->rank[t->token[i]] < p->rank[t->token[best]])) best = i;
    struct ask a = {.p = p, .at = best < 0 ? 0 : p->rank[t->token[best]], .rule = &run->acceptance};
    if (best >= 0 && (run->match ? a.at > 0 : member(a) != YES)) best = -1; // undecided counts as not accepted
    return best;
}

static int taken_at_node(void) { // the same under standard or nucleus acceptance
    const struct tree *t = run->tree;
    int *children = allocate(run->node->children * sizeof *children), n = 0;
    for (int i = 1; i < t->verified; i++)
        if (t->parent[i] == run->node->index) children[n++] = i;
    return at_hand() ? taken_child(children) : -2;
}

static void find_chances(size_t support) { // of each child, under sample-and-match
    struct tree *t = run->tree;
    const struct row *drawn = &run->row[DRAW];
    attempt(2 * LEAST_BITS);
    real all = mass(drawn, 0, support);
    for (int i = 1; i < t->verified; i++)
        if (t->parent[i] == run->node->index && drawn->rank[t->token[i]] < support)
            t->chance[i] = r_div(&drawn->p[t->token[i]], all);
    run->kept = run->used;
}

// What may happen at a node: the child that the decoder must take, or the chance of each. step: NULL in a node record.
static void find_choices(const cJSON *step, size_t support) {
    struct tree *t = run->tree;
    struct node *n = run->node;
    int *choice = &t->choice[n->index];
    t->absent = t->absent || !n->target;
    t->known[n->index] = n->target;
    if (run->standard || run->nucleus) {
        if (step) check_tv_budget(step);
        if (step) *choice = n->looks ? taken_at_node() : -1;
        return;
    }
    if (run->greedy || !run->match) *choice = best_child();
    if (run->limited == LIMIT_REGRET && step && !check_regret_budget(step, *choice)) *choice = -1;
    if (run->leaf_stop && *choice >= 0 && !t->inner[*choice]) *choice = -1;
    if (n->target && t->has_expected && !run->greedy && run->match) find_chances(support);
}

// The child a step goes to: checked against the tree alone, then against what the rows say must happen.
static int next_node(const cJSON *line) {
    struct tree *t = run->tree;
    const struct node *n = run->node;
    bool accepted = strcmp(text_of(line, "source"), "accepted") == 0;
    bool stops = !n->looks || (run->leaf_stop && n->carrier >= 0 && !t->inner[n->carrier]);
    int child = -1, choice = t->choice[n->index];
    if (!accepted) says(line, "source", "continuation");
    must(!accepted || !stops, "source");
    if (accepted) {
        int64_t said = integer(line, "child", 1);
        must(said < t->verified && t->parent[said] == n->index && t->token[said] == n->token, "child");
        child = (int)said;
    } else {
        must(is_null(line, "child"), "child");
    }
    must(!run->match || stops || child == n->carrier, "source"); // of several the first
    must(run->match || !n->looks || choice == -2 || choice == child, "source");
    t->accepted += accepted;
    return child;
}

// Is the emitted token, if nobody chose it, the draw that it must be?
static void check_draw(size_t support, int next) {
    const struct node *n = run->node;
    bool prefill = n->index < 0, rejected = n->looks && (run->standard || run->nucleus);
    enum answer draw = YES;
    if (n->index == 0 && run->tree->first >= 0 && n->token != run->tree->first) {
        run->line = run->tree->line; // which says what was not drawn
        must(false, "first");
    }
    if (next >= 0 && !run->match) return;
    if (rejected) draw = at_hand() ? is_residual_draw() : YES;
    else if (n->target) draw = is_target_draw((size_t)n->token, support);
    else if (run->greedy && n->top->child) draw = n->top->child->child->valuedouble == (double)n->token ? YES : NO;
    must(draw != NO, "token");
    leave_open(prefill && draw == OPEN, "token");
    run->tree->open = run->tree->open || (draw == OPEN && !prefill);
}

static real chance_of_token(const struct ask *a) { // flag: of any other one. An accepted token was certain.
    if (a->at >= a->size || empty(a)) return r_number(a->flag);
    real rest = r_add(mass(a->p, 0, a->at), mass(a->p, a->at + 1, a->size));
    return r_div(a->flag ? rest : &a->p->p[a->token], mass(a->p, 0, a->size));
}

// e and ratio. A draw has the law of the target, and what is chosen for certain is alone in its own; nucleus acceptance
// is between them.
static void check_law(const cJSON *line, size_t support, bool accepted) {
    const struct node *n = run->node;
    bool mixed = n->relaxed && run->nucleus, rows = mixed ? at_hand() : n->target;
    struct ask a = {.p = &run->row[DRAW], .token = (size_t)n->token, .size = support};
    a.at = n->target ? a.p->rank[n->token] : 0;
    if (mixed) a = at_node();
    quantity *const values[2] = {mixed ? q_e : chance_of_token, mixed ? q_ratio : chance_of_token};
    if (run->match || run->greedy) absent(line, "e ratio"); // every token is drawn from the target
    if (run->limited == LIMIT_TV) get(line, "e", ANY);
    for (int i = 0; i < 2; i++) {
        const char *key = i ? "ratio" : "e";
        a.flag = !i;
        if (!find(line, key)) continue;
        if (mixed || (accepted && !run->standard && !run->nucleus))
            within(prove(line, key, values[i], &a, rows), key, 0, i && mixed ? INFINITY : 1);
        else exactly(line, key, i);
    }
    if (!mixed || run->limited != LIMIT_TV) return;
    struct ends e = enclosure(line, "e", NARROW), charge = enclosure(line, "charge", NARROW);
    must(e.lo == charge.lo && e.hi == charge.hi, "e");
}

static void check_accept(const cJSON *line) { // the probability that a child is accepted
    const struct node *n = run->node;
    struct ask a = at_node();
    if (!n->looks || !(run->standard || run->nucleus)) absent(line, "accept");
    if (!n->looks || !run->nucleus) absent(line, "accept_standard");
    if (find(line, "accept")) within(prove(line, "accept", q_accept, &a, at_hand()), "accept", 0, 1);
    a.k = 0;
    if (find(line, "accept_standard"))
        within(prove(line, "accept_standard", q_accept, &a, at_hand()), "accept_standard", 0, 1);
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

// One step: its place in the walk, its claims, and what the rows say must be emitted.
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
    n->looks = n->children > 0 && (run->cap < 0 || t->accepted < run->cap);
    check_record(line);
    check_proposals();
    size_t support = check_support(line);
    if (prefill || run->limited == UNLIMITED) absent(line, "charge relaxed");
    if (!prefill) find_choices(line, support);
    if (run->limited == UNLIMITED) absent(line, "spent");
    else must(number(get(line, "spent", ANY), "spent") == run->spent, "spent");
    int next = prefill ? -1 : next_node(line);
    check_draw(support, next);
    check_law(line, support, next >= 0);
    check_accept(line);
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
    absent(line, "t token source child regret finish text e ratio accept accept_standard charge relaxed spent");
    begin_node(line, t->next_record++, -1);
    check_record(line);
    check_proposals();
    find_choices(NULL, check_support(line));
    run->nodes++;
}
