// Rounds: their trees, and what they expect. docs/log.md "round"; theory.md §7.
#include "certify/check/state.h"

#include <stdlib.h>

struct ck_tree *ck_tree_keep(struct ck_tree *tree)
{
    if (tree) tree->references++;
    return tree;
}

void ck_tree_release(struct ck_tree *tree)
{
    if (!tree || --tree->references > 0) return;
    if (tree->probability) iv_clears(tree->probability, (size_t)tree->count);
    free(tree->probability);
    free(tree->parent);
    free(tree->depth);
    free(tree->children);
    free(tree->eldest);
    free(tree->token);
    free(tree->choice);
    free(tree->known);
    free(tree->visited);
    free(tree);
}

static bool tree_make(struct ck_tree *tree, size_t count)
{
    tree->parent = calloc(count, sizeof *tree->parent);
    tree->depth = calloc(count, sizeof *tree->depth);
    tree->children = calloc(count, sizeof *tree->children);
    tree->eldest = calloc(count, sizeof *tree->eldest);
    tree->token = calloc(count, sizeof *tree->token);
    tree->choice = calloc(count, sizeof *tree->choice);
    tree->known = calloc(count, sizeof *tree->known);
    tree->visited = calloc(count, sizeof *tree->visited);
    tree->probability = calloc(count, sizeof *tree->probability);
    if (tree->probability) iv_inits(tree->probability, count, 128);
    tree->count = tree->probability ? (int)count : 0;
    return tree->parent && tree->depth && tree->children && tree->eldest && tree->token && tree->choice &&
           tree->known && tree->visited && tree->probability;
}

// How many nodes there are, and how many of them were only scored.
static int count_nodes(struct ck *c, const cJSON *line, struct ck_tree *tree)
{
    const cJSON *parent = ck_array(c, line, "parent"), *token = ck_array(c, line, "token"),
                *logq = ck_array(c, line, "logq");
    int count = cJSON_GetArraySize(parent);
    int64_t scored = ck_has(line, "scored") ? ck_int(c, line, "scored", 0) : 0;
    if (c->out.failed) return 0;
    if (count < 1 || cJSON_GetArraySize(token) != count)
        ck_refute(c, "token", "expected one for each of %d parents, found %d", count, cJSON_GetArraySize(token));
    if (cJSON_GetArraySize(logq) != count)
        ck_refute(c, "logq", "expected one for each of %d nodes, found %d", count, cJSON_GetArraySize(logq));
    if (scored > 0 && !c->header->score)
        ck_refute(c, "scored", "expected 0 (the decoder has no score), found %lld", (long long)scored);
    if (scored >= count)
        ck_refute(c, "scored", "expected fewer than the %d nodes, found %lld", count, (long long)scored);
    int64_t verified = count - 1 - scored;
    if (verified > c->header->budget)
        ck_refute(c, "parent", "expected at most %lld nodes besides the root, found %lld", (long long)c->header->budget,
                  (long long)verified);
    if (count > 1 && c->header->no_proposal) ck_refute(c, "parent", "expected the root alone: nothing was proposed");
    if (count > CK_NODES) ck_unreadable(c, "parent", "expected at most %d nodes", CK_NODES);
    tree->walked = count - (int)scored;
    return count;
}

// A node's place among its siblings: they differ, unless they were drawn; of drawn ones only the first has children.
static void check_siblings(struct ck *c, struct ck_tree *tree, int i)
{
    int parent = tree->parent[i];
    for (int j = 1; j < i && !c->header->iid && !c->out.failed; j++)
        if (tree->parent[j] == parent && tree->token[j] == tree->token[i])
            ck_refute(c, "token", "expected siblings with different tokens, found %lld at nodes %d and %d",
                      (long long)tree->token[i], j, i);
    if (c->header->iid && parent > 0 && tree->eldest[tree->parent[parent]] != parent)
        ck_refute(c, "parent", "expected no children of node %d: of draws only the first has some", parent);
    if (i >= tree->walked) return;
    if (tree->children[parent]++ == 0) tree->eldest[parent] = i;
}

// The token that was drawn before the tree was chosen.
static void read_first(struct ck *c, const cJSON *line, struct ck_tree *tree)
{
    enum ck_first when = c->header->first;
    bool may = when == CK_ALWAYS_FIRST || (when == CK_SOMETIMES_FIRST && c->at.round > 0);
    tree->first = -1;
    if (!may)
        ck_expect_absent(c, line, "first",
                         when == CK_NEVER_FIRST ? "the tree was chosen before a draw" : "a sequence's first round");
    if (!may || (when == CK_SOMETIMES_FIRST && !ck_has(line, "first"))) return;
    tree->first = ck_int(c, line, "first", 0);
    if (c->out.failed) return;
    if (tree->children[0] != 1 || tree->eldest[0] != 1)
        ck_refute(c, "first", "expected node 1 as the root's only child, found %d children", tree->children[0]);
    else if (tree->token[1] != tree->first)
        ck_refute(c, "first", "expected the token %lld of node 1, found %lld", (long long)tree->token[1],
                  (long long)tree->first);
}

static void read_tree(struct ck *c, const cJSON *line, struct ck_tree *tree)
{
    int count = count_nodes(c, line, tree);
    if (c->out.failed) return;
    if (!tree_make(tree, (size_t)count)) {
        ck_unreadable(c, "parent", "out of memory");
        return;
    }
    const cJSON *parent = ck_array(c, line, "parent")->child, *token = ck_array(c, line, "token")->child,
                *logq = ck_array(c, line, "logq")->child;
    for (int i = 0; i < count && !c->out.failed; i++, parent = parent->next, token = token->next, logq = logq->next) {
        int64_t before = ck_integer(c, parent, "parent", -1);
        tree->token[i] = ck_integer(c, token, "token", 0);
        if (!c->out.failed && (i == 0 ? before != -1 : before < 0 || before >= i))
            ck_refute(c, "parent", "expected %s as the parent of node %d, found %lld", i ? "an earlier node" : "-1", i,
                      (long long)before);
        if (c->out.failed) return;
        tree->parent[i] = (int)before;
        if (tree->token[i] >= c->header->vocab)
            ck_refute(c, "token", "expected an id below the vocabulary, found %lld", (long long)tree->token[i]);
        double q = ck_real(c, logq, "logq");
        if (i == 0 ? q != 0 : !(q <= 0))
            ck_refute(c, "logq", "expected %s, found %a", i ? "a logarithm <= 0" : "0 at the root", q);
        if (c->out.failed) return;
        if (i) check_siblings(c, tree, i);
        tree->depth[i] = i ? tree->depth[tree->parent[i]] + 1 : 0;
        tree->choice[i] = -2;
    }
    if (!c->out.failed) read_first(c, line, tree);
}

void ck_round(struct ck *c, const cJSON *line)
{
    struct ck_tree *tree = calloc(1, sizeof *tree);
    ck_tree_release(c->at.tree);
    c->at.tree = ck_tree_keep(tree);
    if (!tree) {
        ck_unreadable(c, "parent", "out of memory");
        return;
    }
    ck_expect_int(c, line, "sequence", c->at.sequence);
    ck_expect_int(c, line, "round", c->at.round);
    ck_expect_int(c, line, "t", c->at.t);
    read_tree(c, line, tree);
    if (!c->out.failed && tree->token[0] != c->at.last_token)
        ck_refute(c, "token", "expected the root to carry the newest token %lld, found %lld",
                  (long long)c->at.last_token, (long long)tree->token[0]);
    const cJSON *expected = ck_get(c, line, "expected_accept");
    tree->has_expected = expected && !cJSON_IsNull(expected);
    if (tree->has_expected && c->header->stochastic)
        ck_refute(c, "expected_accept", "expected null with standard and nucleus, found %s", ck_show(expected));
    if (tree->has_expected) ck_interval(c, line, "expected_accept", tree->expected);
    ck_array(c, line, "charges");
    tree->t = c->at.t;
    tree->number = c->at.round++;
    tree->line = c->line;
    c->at.node = 0;
    c->at.next_record = 1;
    c->at.accepted = 0;
    c->at.where = CK_IN_ROUND;
}

// Is there a row for every node that has children?  Then the expected number of accepted tokens is a sum of products.
static void expect_by_chance(struct ck *c, struct ck_tree *tree)
{
    struct iv *p = tree->probability, sum;
    for (int i = 1; i < tree->walked; i++)
        if (!tree->known[tree->parent[i]]) {
            if (!tree->absent && !c->header->all_nodes)
                ck_refute(c, "expected_accept", "expected null: node %d is not certified", tree->parent[i]);
            return;
        }
    iv_inits(&sum, 1, 128);
    iv_point(&p[0], 1);
    if (tree->first >= 0) iv_point(&p[1], 1); // given
    for (int i = 1; i < tree->walked; i++) {
        iv_mul(&p[i], &p[i], &p[tree->parent[i]]);
        bool counts = !c->header->leaf_stop || tree->children[i] > 0;
        if (counts && (c->header->cap < 0 || tree->depth[i] <= c->header->cap)) iv_add(&sum, &sum, &p[i]);
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
static void expect_by_walk(struct ck *c, struct ck_tree *tree)
{
    int64_t least = tree->accepted, most = least;
    if (tree->cut) {
        int at = 0;
        for (least = 0; tree->choice[at] >= 0 && (c->header->cap < 0 || least < c->header->cap); least++)
            at = tree->choice[at];
        most = least;
        if (least < tree->accepted) least = tree->accepted; // rows absent
        if (tree->choice[at] == -2)
            for (int i = 0; i < tree->walked; i++) most = tree->depth[i] > most ? tree->depth[i] : most;
    }
    if (tree->expected[0] > (double)most || tree->expected[1] < (double)least)
        ck_refute(c, "expected_accept", "expected %lld accepted tokens, found [%a, %a]", (long long)least,
                  tree->expected[0], tree->expected[1]);
}

void ck_round_expect(struct ck *c, struct ck_tree *tree)
{
    c->line = tree->line;
    if (tree->has_expected && (c->header->greedy || !c->header->match))
        expect_by_walk(c, tree);
    else if (tree->has_expected)
        expect_by_chance(c, tree);
    c->out.claims++;
    c->out.undecided += tree->open_question;
}
