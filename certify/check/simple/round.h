// Rounds: their trees, and how many tokens they were expected to accept. docs/log.md "round"; theory.md §7.
#include "draw.h"

// Where the tree was chosen after the first token had been drawn, it hangs under that token.
static void check_first(const cJSON *line) {
    struct tree *t = run->tree;
    t->first = -1;
    bool may = run->selection == COVERING && t->number > 0 && find(line, "first");
    if (run->selection == ROOT_DRAW || run->selection == PEARL || may) t->first = integer(line, "first", 0);
    else absent(line, "first");
    if (t->first < 0) return;
    must(t->verified > 1 && t->token[1] == t->first, "first");
    for (int i = 2; i < t->verified; i++) must(t->parent[i] != 0, "first");
}

// Draws may repeat, and only the first child of a node has children; else siblings carry different tokens.
static void check_siblings(int i) {
    const struct tree *t = run->tree;
    int before = t->parent[i];
    for (int j = 1; j < i && !run->iid; j++) must(t->parent[j] != before || t->token[j] != t->token[i], "token");
    for (int j = 1; j < before && run->iid && i < t->verified; j++) must(t->parent[j] != t->parent[before], "parent");
}

static void check_round(const cJSON *line) {
    struct tree *t = run->tree;
    int count = cJSON_GetArraySize(get(line, "parent", cJSON_Array));
    const cJSON *parent = find(line, "parent")->child, *token = array(line, "token", count);
    const cJSON *logq = array(line, "logq", count);
    int64_t scored = find(line, "scored") ? integer(line, "scored", 0) : 0;
    counts(line, "sequence", run->sequence);
    counts(line, "round", run->round);
    counts(line, "t", run->t);
    must(scored == 0 || (run->scores && scored < count), "scored");
    must(run->proposal != NONE || count == 1, "parent");
    must(count >= 1 && count - 1 - scored <= run->budget, "parent");
    need(count <= NODES, "parent");
    *t = (struct tree){.count = count, .next_record = 1, .line = run->line, .number = run->round++, .t = run->t};
    t->verified = count - (int)scored;
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
        if (i > 0) check_siblings(i);
        if (i > 0 && i < t->verified) t->inner[before] = true;
    }
    must(t->token[0] == run->last_token, "token");
    check_first(line);
    t->has_expected = !is_null(line, "expected_accept");
    must(!t->has_expected || !(run->standard || run->nucleus), "expected_accept");
    if (t->has_expected) t->expected = enclosure(line, "expected_accept", NARROW);
    array(line, "charges", 0);
    run->rounds++;
    run->where = IN_ROUND;
}

// Takes a record to be of a node (-1: prefill), whose children it lists in node order: their tokens, how many, and
// which one first carries the emitted token (-1: none).
static void begin_node(const cJSON *line, int index, int64_t token) {
    const struct tree *t = run->tree;
    struct node *n = run->node;
    counts(line, "sequence", run->sequence);
    counts(line, "node", index < 0 ? 0 : index);
    counts(line, "depth", index < 0 ? 0 : t->depth[index]);
    n->index = index;
    n->token = token;
    n->carrier = -1;
    for (int i = 1; i < t->verified && index >= 0; i++) {
        if (t->parent[i] != index) continue;
        for (size_t j = 0; j < n->children; j++) n->repeats = n->repeats || n->proposed[j] == t->token[i];
        n->proposed[n->children++] = (uint32_t)t->token[i];
        if (t->token[i] == token && n->carrier < 0) n->carrier = i;
    }
}

// With `iid` each child carries the draft's draw.
static void check_proposals(void) {
    const struct node *n = run->node;
    for (size_t j = 0; j < n->children && run->iid && n->draft; j++) {
        throw(run->tree->t + run->tree->depth[n->index], OF_DRAFT, j);
        enum answer draw = is_draw(DRAFT, n->proposed[j], run->vocab);
        must(draw != NO, "draft_row");
        run->tree->open = run->tree->open || draw == OPEN;
    }
}

// Is there a row for every node that has children?  Then the expected number of accepted tokens is a sum of products.
static void expect_by_chance(struct tree *t) {
    real *reach = allocate((size_t)t->count * sizeof *reach), sum;
    for (int i = 1; i < t->verified; i++) {
        bool known = t->known[t->parent[i]];
        must(known || t->absent || run->all_nodes, "expected_accept");
        if (!known) return;
    }
    run->precision = 2 * LEAST_BITS;
    reach[0] = one();
    sum = r_number(0);
    for (int i = 1; i < t->verified; i++) {
        bool goes = run->leaf_stop ? t->inner[i] : run->cap < 0 || t->depth[i] <= run->cap;
        reach[i] = t->chance[i] ? r_mul(t->chance[i], reach[t->parent[i]]) : r_number(0);
        if (t->first >= 0 && i == 1) reach[i] = one();
        if (goes) sum = r_add(sum, reach[i]);
    }
    leave_open(!encloses(t->expected, sum, "expected_accept"), "expected_accept");
}

// Deterministic acceptance: the number that the walk accepts, followed past a cut as far as rows were recorded (and not
// where a budget decides).
static void expect_by_walk(struct tree *t) {
    int64_t least = t->accepted, most = least;
    if (t->cut) {
        int at = 0;
        if (run->limited != UNLIMITED) t->choice[0] = -2;
        for (least = 0; t->choice[at] >= 0 && (run->cap < 0 || least < run->cap); least++) at = t->choice[at];
        most = least;
        if (least < t->accepted) least = t->accepted; // rows absent
        for (int i = 0; i < t->verified && t->choice[at] == -2; i++) most = t->depth[i] > most ? t->depth[i] : most;
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
