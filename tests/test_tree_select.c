// Selection against a naive one: candidates are taken one by one, each time the best that is allowed, on random pools with
// ties, NaN, -inf and nothing at all; and the properties that every tree must have.
#include "decode/tree.h"
#include "tests/seed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 200, VOCAB = 23 };

// ---- pools

// Children of one parent with distinct tokens and coarse log-probabilities, best first; sometimes broken ones.
static void add_children(struct hm_pool *pool, int32_t parent, size_t width, uint64_t *random)
{
    int32_t token[8];
    float logq[8];
    int32_t first = (int32_t)test_below(random, VOCAB);
    float level = 0;
    for (size_t i = 0; i < width; i++) {
        token[i] = (int32_t)((size_t)(first + 5 * (int)i) % VOCAB); // 5 and 23 are coprime
        level -= 0.5f * (float)test_below(random, 3);
        logq[i] = level;
        if (test_below(random, 40) == 0) logq[i] = NAN;
        if (test_below(random, 25) == 0) logq[i] = -INFINITY;
    }
    assert_int_equal(hm_pool_add(pool, parent, token, logq, width, NULL), HM_OK);
}

static void random_pool(struct hm_pool *pool, uint64_t *random)
{
    size_t width = 1 + test_below(random, 6), depth = test_below(random, 5);
    struct hm_pool_options options = {.width = width, .proposal = HM_PROPOSAL_TOPK};
    assert_int_equal(hm_pool_init(pool, &options, NULL), HM_OK);
    hm_pool_reset(pool);
    if (test_below(random, 12) == 0) return; // empty
    add_children(pool, -1, width, random);
    for (size_t level = 0; level < depth; level++) {
        hm_pool_advance(pool);
        for (size_t i = 0; i < pool->beam_count; i++) add_children(pool, (int32_t)pool->beam[i], width, random);
    }
    assert_true(pool->count <= MOST);
}

static int32_t ancestor(const struct hm_pool *pool, size_t c)
{
    while (pool->candidate[c].parent >= 0) c = (size_t)pool->candidate[c].parent;
    return (int32_t)c;
}

// ---- the naive selection

struct naive {
    bool verified[MOST], scored[MOST];
    bool lacks; // the drawn token stands alone
};

// The value that the definition in docs/decoders.md gives a candidate: a product over its path, as a sum from the root.
static double value(const struct hm_pool *pool, const struct hm_selection_request *request, size_t c)
{
    const struct hm_candidate *x = &pool->candidate[c];
    if (x->parent >= 0) return value(pool, request, (size_t)x->parent) + (double)x->logq;
    return request->how == HM_SELECT_ROOT ? request->first_logp[c] : (double)x->logq;
}

static double draft_value(const struct hm_pool *pool, size_t c)
{
    const struct hm_candidate *x = &pool->candidate[c];
    double v = (x->parent >= 0 ? draft_value(pool, (size_t)x->parent) : 0) + (double)x->logq;
    return isfinite(v) ? v : -INFINITY;
}

// The best candidate that is not taken and that `allowed` lets in, by value and then by index; -1: none.
static int64_t best_left(const struct hm_pool *pool, const double *of, const bool *taken, const bool *allowed)
{
    int64_t best = -1;
    for (size_t c = 0; c < pool->count; c++)
        if (!taken[c] && allowed[c] && isfinite(of[c]) && (best < 0 || of[c] > of[best])) best = (int64_t)c;
    return best;
}

static void select_naively(const struct hm_pool *pool, const struct hm_selection_request *request, struct naive *out)
{
    double of[MOST], draft[MOST];
    bool allowed[MOST], taken[MOST] = {0}, reachable[MOST];
    bool drawn = request->how == HM_SELECT_ROOT_DRAW || request->how == HM_SELECT_PEARL;
    *out = (struct naive){.lacks = drawn};
    for (size_t c = 0; c < pool->count; c++) {
        draft[c] = draft_value(pool, c);
        of[c] = request->how == HM_SELECT_ROOT && isfinite(draft[c]) ? value(pool, request, c) : draft[c];
        bool below = pool->candidate[ancestor(pool, c)].token == request->drawn;
        allowed[c] = request->how != HM_SELECT_ROOT_DRAW || below;
        reachable[c] = drawn ? below : isfinite(of[c]);
    }
    size_t count = 0;
    for (int64_t c; count < request->budget && (c = best_left(pool, of, taken, allowed)) >= 0; count++) taken[c] = true;
    for (size_t c = 0; c < pool->count; c++) {
        bool below = pool->candidate[ancestor(pool, c)].token == request->drawn;
        out->verified[c] = taken[c] && (!drawn || below);
        if (drawn && pool->candidate[c].parent < 0 && below) {
            out->verified[c] = true;
            out->lacks = false;
        }
    }
    memcpy(taken, out->verified, sizeof taken);
    count = 0;
    for (size_t c = 0; c < pool->count; c++) count += taken[c];
    for (int64_t c; count < request->score_top && (c = best_left(pool, draft, taken, reachable)) >= 0; count++)
        taken[c] = out->scored[c] = true;
    bool frontier[MOST];
    for (size_t c = 0; c < pool->count; c++) {
        int32_t parent = pool->candidate[c].parent;
        frontier[c] = reachable[c] && (parent < 0 || out->verified[parent]);
    }
    count = 0;
    for (int64_t c; count < request->score_frontier && (c = best_left(pool, draft, taken, frontier)) >= 0; count++)
        taken[c] = out->scored[c] = true;
}

// ---- comparing

static void check_properties(const struct hm_tree *tree, size_t budget)
{
    assert_true(tree->nodes >= 1 && tree->scored < tree->nodes);
    assert_true(tree->nodes - tree->scored - 1 <= budget);
    assert_int_equal(tree->parent[0], -1);
    for (size_t i = 1; i < tree->nodes; i++) {
        assert_in_range(tree->parent[i], 0, (int)i - 1);
        assert_int_equal(tree->depth[i], tree->depth[tree->parent[i]] + 1);
        for (size_t j = 1; j < i; j++)
            if (tree->parent[j] == tree->parent[i]) assert_int_not_equal(tree->token[j], tree->token[i]);
        // Whoever is verified hangs under something verified.
        if (i < tree->nodes - tree->scored) assert_true((size_t)tree->parent[i] < tree->nodes - tree->scored);
    }
}

static void check_same(const struct hm_tree *tree, const struct hm_pool *pool, const struct hm_selection_request *request,
                       const struct naive *naive)
{
    size_t node = 1, scored = 0;
    if (naive->lacks) {
        assert_int_equal(tree->candidate[node], -1);
        assert_int_equal(tree->token[node], request->drawn);
        assert_int_equal(tree->parent[node], 0);
        assert_true(isinf(tree->logq[node++]));
    }
    for (int pass = 0; pass < 2; pass++)
        for (size_t c = 0; c < pool->count; c++) {
            if (!(pass ? naive->scored : naive->verified)[c]) continue;
            assert_true(node < tree->nodes);
            assert_int_equal(tree->candidate[node], (int)c);
            assert_int_equal(tree->token[node], pool->candidate[c].token);
            int32_t parent = pool->candidate[c].parent;
            assert_int_equal(tree->candidate[tree->parent[node]], parent);
            node++;
            scored += pass == 1;
        }
    assert_int_equal(node, tree->nodes);
    assert_int_equal(scored, tree->scored);
}

static void check_lookups(const struct hm_tree *tree, uint64_t *random)
{
    size_t node = test_below(random, tree->nodes), all = 0;
    int32_t children[MOST + 2];
    size_t count = hm_tree_children(tree, node, children);
    for (size_t i = 0; i < count; i++) {
        int64_t child = hm_tree_child_at(tree, node, i);
        assert_int_equal(tree->parent[child], (int)node);
        assert_int_equal(tree->token[child], children[i]);
        assert_int_equal(hm_tree_address(tree, node, children[i]), child);
    }
    assert_int_equal(hm_tree_child_at(tree, node, count), -1);
    for (int32_t token = 0; token < VOCAB; token++) all += hm_tree_address(tree, node, token) >= 0;
    for (size_t i = 1; i < tree->nodes; i++) all -= tree->parent[i] == (int32_t)node;
    assert_int_equal(all, 0);
}

static void selection_equals_the_naive_one(void **state)
{
    (void)state;
    uint64_t random = test_seed("selection");
    struct hm_tree tree;
    assert_int_equal(hm_tree_init(&tree, 0, NULL), HM_OK); // grows and is used again and again
    for (size_t round = 0; round < test_count(2000, 30000, 1000000); round++) {
        struct hm_pool pool;
        double first[8];
        random_pool(&pool, &random);
        bool greedy = test_below(&random, 3) == 0;
        size_t likely = test_below(&random, 8);
        for (size_t i = 0; i < 8; i++) {
            first[i] = greedy ? (i == likely ? 0 : -INFINITY) : -0.5 * (double)test_below(&random, 9);
            if (!greedy && test_below(&random, 6) == 0) first[i] = -INFINITY; // cut by a processor
        }
        struct hm_selection_request request = {.how = (enum hm_selection)test_below(&random, 4), .first_logp = first,
                                               .drawn = (int32_t)test_below(&random, VOCAB)};
        if (pool.count && test_below(&random, 2)) request.drawn = pool.candidate[test_below(&random, pool.width)].token;
        request.budget = 1 + test_below(&random, 40);
        if (request.how <= HM_SELECT_ROOT && test_below(&random, 10) == 0) request.budget = 0;
        size_t scoring = test_below(&random, 3);
        if (scoring == 1) request.score_top = request.budget + 1 + test_below(&random, 60);
        if (scoring == 2) request.score_frontier = 1 + test_below(&random, 40);
        struct naive naive;
        select_naively(&pool, &request, &naive);
        assert_int_equal(hm_tree_select(&tree, 7, &pool, &request, NULL), HM_OK);
        check_properties(&tree, request.budget);
        check_same(&tree, &pool, &request, &naive);
        check_lookups(&tree, &random);
        hm_pool_clear(&pool);
    }
    hm_tree_clear(&tree);
}

// Draws keep their shape: the first B of the pool, repeated ones and impossible ones too.
static void draws_are_taken_in_pool_order(void **state)
{
    (void)state;
    struct hm_pool pool;
    struct hm_tree tree;
    static const int32_t token[] = {4, 9, 4}, below[] = {1, 1, 1};
    static const float logq[] = {-9, -1, -9}, low[] = {-3, -INFINITY, -2};
    struct hm_pool_options options = {.width = 3, .proposal = HM_PROPOSAL_IID};
    struct hm_selection_request request = {.budget = 5, .score_top = 6};
    assert_int_equal(hm_pool_init(&pool, &options, NULL), HM_OK);
    assert_int_equal(hm_tree_init(&tree, 1, NULL), HM_OK);
    assert_int_equal(hm_pool_add(&pool, -1, token, logq, 3, NULL), HM_OK);
    assert_int_equal(hm_pool_add(&pool, 0, below, low, 3, NULL), HM_OK);
    assert_int_equal(hm_tree_select(&tree, 7, &pool, &request, NULL), HM_OK);
    static const int32_t parent[] = {-1, 0, 0, 0, 1, 1}, carried[] = {7, 4, 9, 4, 1, 1};
    assert_int_equal(tree.nodes, 6);
    assert_int_equal(tree.scored, 0);
    assert_memory_equal(tree.parent, parent, sizeof parent);
    assert_memory_equal(tree.token, carried, sizeof carried);
    assert_int_equal(hm_tree_child_at(&tree, 0, 2), 3); // by place: the token stands at two
    assert_int_equal(hm_tree_address(&tree, 0, 4), 1);
    hm_tree_clear(&tree);
    hm_pool_clear(&pool);
}

// A log takes no larger tree, so scoring stops there.
static void trees_stay_within_a_log(void **state)
{
    (void)state;
    enum { CHILDREN = 200, PARENTS = 100 };
    struct hm_pool pool;
    struct hm_tree tree;
    int32_t token[CHILDREN];
    float logq[CHILDREN];
    struct hm_pool_options options = {.width = CHILDREN};
    for (int32_t i = 0; i < CHILDREN; i++) token[i] = i, logq[i] = (float)-i - 1;
    assert_int_equal(hm_pool_init(&pool, &options, NULL), HM_OK);
    assert_int_equal(hm_tree_init(&tree, 1, NULL), HM_OK);
    assert_int_equal(hm_pool_add(&pool, -1, token, logq, CHILDREN, NULL), HM_OK);
    for (int32_t i = 0; i < PARENTS; i++) assert_int_equal(hm_pool_add(&pool, i, token, logq, CHILDREN, NULL), HM_OK);
    assert_true(pool.count > HM_TREE_NODES_MOST);
    const struct hm_selection_request all[] = {{.budget = PARENTS, .score_top = SIZE_MAX},
                                               {.budget = PARENTS, .score_frontier = SIZE_MAX},
                                               {.budget = PARENTS, .score_top = 500}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(hm_tree_select(&tree, 7, &pool, &all[i], NULL), HM_OK);
        assert_true(tree.nodes <= HM_TREE_NODES_MOST);
        assert_int_equal(tree.nodes - tree.scored, PARENTS + 1);
    }
    assert_int_equal(tree.scored, 400);
    hm_tree_clear(&tree);
    hm_pool_clear(&pool);
}

static void a_drawn_token_wants_a_place(void **state)
{
    (void)state;
    struct hm_pool pool;
    struct hm_tree tree;
    struct hm_error err = {0};
    struct hm_pool_options options = {.width = 3, .proposal = HM_PROPOSAL_TOPK};
    struct hm_selection_request request = {.how = HM_SELECT_PEARL, .drawn = 5, .budget = 0};
    assert_int_equal(hm_pool_init(&pool, &options, NULL), HM_OK);
    assert_int_equal(hm_tree_init(&tree, 1, NULL), HM_OK);
    assert_int_equal(hm_tree_select(&tree, 7, &pool, &request, &err), HM_USAGE);
    request.budget = 1;
    assert_int_equal(hm_tree_select(&tree, 7, &pool, &request, &err), HM_OK);
    assert_int_equal(tree.nodes, 2);
    assert_int_equal(tree.token[1], 5);
    assert_int_equal(tree.row[1], -1);
    hm_tree_clear(&tree);
    hm_pool_clear(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selection_equals_the_naive_one),
        cmocka_unit_test(draws_are_taken_in_pool_order),
        cmocka_unit_test(trees_stay_within_a_log),
        cmocka_unit_test(a_drawn_token_wants_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
