// Draft pools and trees: the beam against a brute-force search, and the properties every tree must have.
#include "decode/drafter.h"
#include "decode/pool.h"
#include "decode/topk.h"
#include "decode/tree.h"
#include "tests/seed.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 37, MOST_WIDTH = 5, MOST_DEPTH = 4 };

// A toy draft: the row after a path is a function of the path, coarse so that ties are common.
static const struct hm_selection_request everything = {.budget = SIZE_MAX};

static void toy_row(uint64_t seed, const int32_t *path, size_t length, float row[VOCAB])
{
    uint64_t state = seed;
    for (size_t i = 0; i < length; i++) state = state * 31 + (uint64_t)path[i] + 1;
    for (int i = 0; i < VOCAB; i++) row[i] = (float)(int)(3 * test_signed(&state) + 3 * test_signed(&state)) * 0.5f;
    if (test_below(&state, 5) == 0) row[test_below(&state, VOCAB)] = 60; // a certain token: log q rounds to 0
    if (test_below(&state, 29) == 0) row[3] = NAN;
}

static size_t path_of(const struct hm_pool *pool, int32_t candidate, int32_t *path)
{
    size_t depth = candidate < 0 ? 0 : pool->candidate[candidate].depth;
    for (size_t i = depth; i-- > 0; candidate = pool->candidate[candidate].parent) path[i] = pool->candidate[candidate].token;
    return depth;
}

static void expand(struct hm_pool *pool, uint64_t seed, int32_t parent)
{
    int32_t path[MOST_DEPTH + 2], token[MOST_WIDTH];
    float row[VOCAB], logq[MOST_WIDTH];
    toy_row(seed, path, path_of(pool, parent, path), row);
    size_t n = hm_topk(row, VOCAB, pool->width, token, logq);
    assert_int_equal(hm_pool_add(pool, parent, token, logq, n, NULL), HM_OK);
}

static void fill(struct hm_pool *pool, uint64_t seed, size_t depth)
{
    hm_pool_reset(pool);
    expand(pool, seed, -1);
    for (size_t level = 0; level < depth; level++) {
        hm_pool_advance(pool);
        for (size_t i = 0; i < pool->beam_count; i++) expand(pool, seed, (int32_t)pool->beam[i]);
    }
}

static void check_tree(const struct hm_tree *tree, const struct hm_pool *pool, size_t budget)
{
    assert_true(tree->nodes <= budget + 1);
    assert_int_equal(tree->parent[0], -1);
    for (size_t i = 1; i < tree->nodes; i++) {
        assert_in_range(tree->parent[i], 0, (int)i - 1); // parents precede children
        assert_int_equal(tree->depth[i], tree->depth[tree->parent[i]] + 1);
        assert_true(tree->logq[i] <= 0);
        for (size_t j = 1; j < i; j++)
            if (tree->parent[j] == tree->parent[i]) assert_int_not_equal(tree->token[j], tree->token[i]);
    }
    size_t finite = 0;
    for (size_t i = 0; i < pool->count; i++) finite += isfinite(pool->candidate[i].score) != 0;
    assert_int_equal(tree->nodes - 1, finite < budget ? finite : budget);
}

// Sum of log q from the root to a node.
static double score_of(const struct hm_tree *tree, size_t node)
{
    return node == 0 ? 0 : score_of(tree, (size_t)tree->parent[node]) + (double)tree->logq[node];
}

static void trees_are_closed_and_best(void **state)
{
    (void)state;
    uint64_t random = test_seed("trees");
    for (size_t round = 0; round < test_count(300, 3000, 100000); round++) {
        struct hm_pool pool;
        struct hm_tree tree;
        size_t width = 1 + test_below(&random, MOST_WIDTH), depth = test_below(&random, MOST_DEPTH + 1);
        size_t budget = test_below(&random, 40);
        assert_int_equal(hm_pool_init(&pool, &(struct hm_pool_options){.width = width, .proposal = HM_PROPOSAL_TOPK}, NULL), HM_OK);
        assert_int_equal(hm_tree_init(&tree, 0, NULL), HM_OK); // it grows
        fill(&pool, test_random(&random), depth);
        assert_true(pool.count <= width + depth * width * width);
        struct hm_selection_request best = {.budget = budget};
        assert_int_equal(hm_tree_select(&tree, 5, &pool, &best, NULL), HM_OK);
        check_tree(&tree, &pool, budget);
        // No candidate left out scores above one that was taken.
        double worst = 0;
        for (size_t i = 1; i < tree.nodes; i++) worst = fmin(worst, score_of(&tree, i));
        size_t better = 0;
        for (size_t i = 0; i < pool.count; i++) better += pool.candidate[i].score > worst;
        assert_true(better <= tree.nodes - 1);
        hm_tree_clear(&tree);
        hm_pool_clear(&pool);
    }
}

static void width_one_is_a_chain(void **state)
{
    (void)state;
    struct hm_pool pool;
    struct hm_tree tree;
    assert_int_equal(hm_pool_init(&pool, &(struct hm_pool_options){.width = 1, .proposal = HM_PROPOSAL_TOPK}, NULL), HM_OK);
    assert_int_equal(hm_tree_init(&tree, 3, NULL), HM_OK);
    fill(&pool, 14, 4);
    assert_int_equal(pool.count, 5);
    assert_int_equal(hm_tree_select(&tree, 9, &pool, &(struct hm_selection_request){.budget = 3}, NULL), HM_OK);
    assert_int_equal(tree.nodes, 4);
    for (size_t i = 0; i < 4; i++) assert_int_equal(tree.parent[i], (int)i - 1);
    assert_int_equal(hm_tree_address(&tree, 0, tree.token[1]), 1);
    assert_int_equal(hm_tree_address(&tree, 0, -7), -1);
    hm_tree_clear(&tree);
    hm_pool_clear(&pool);
}

static void no_finite_score_gives_a_root_only_tree(void **state)
{
    (void)state;
    struct hm_pool pool;
    struct hm_tree tree;
    float row[VOCAB], logq[4];
    int32_t token[4];
    for (int i = 0; i < VOCAB; i++) row[i] = i == 7 ? NAN : 1;
    assert_int_equal(hm_pool_init(&pool, &(struct hm_pool_options){.width = 4, .proposal = HM_PROPOSAL_TOPK}, NULL), HM_OK);
    assert_int_equal(hm_tree_init(&tree, 8, NULL), HM_OK);
    size_t n = hm_topk(row, VOCAB, 4, token, logq);
    assert_int_equal(hm_pool_add(&pool, -1, token, logq, n, NULL), HM_OK);
    hm_pool_advance(&pool);
    assert_int_equal(pool.beam_count, 0);
    assert_int_equal(hm_tree_select(&tree, 3, &pool, &everything, NULL), HM_OK);
    assert_int_equal(tree.nodes, 1);
    hm_tree_clear(&tree);
    hm_pool_clear(&pool);
}

// Against a full sort and double-precision logarithms.
static void topk_is_the_head_of_the_order(void **state)
{
    (void)state;
    uint64_t random = test_seed("topk");
    for (size_t round = 0; round < test_count(200, 2000, 50000); round++) {
        float row[200], logq[12];
        int32_t token[12];
        size_t vocab = 1 + test_below(&random, 200), most = 1 + test_below(&random, 12);
        for (size_t i = 0; i < vocab; i++) row[i] = (float)(int)(40 * test_signed(&random)) * 0.25f;
        if (test_below(&random, 3) == 0) row[test_below(&random, vocab)] = -INFINITY;
        size_t n = hm_topk(row, vocab, most, token, logq);
        assert_int_equal(n, most < vocab ? most : vocab);
        double sum = 0, largest = -INFINITY;
        for (size_t i = 0; i < vocab; i++) largest = fmax(largest, (double)row[i]);
        if (!isfinite(largest)) continue;
        for (size_t i = 0; i < vocab; i++) sum += exp((double)row[i] - largest);
        for (size_t k = 0; k < n; k++) {
            size_t ahead = 0, t = (size_t)token[k];
            for (size_t i = 0; i < vocab; i++) ahead += row[i] > row[t] || (row[i] == row[t] && i < t);
            assert_int_equal(ahead, k);
            double exact = (double)row[t] - largest - log(sum);
            if (isfinite(exact)) assert_true(fabs((double)logq[k] - exact) <= 4e-6 * (1 + fabs(exact)));
            assert_true(logq[k] <= 0);
        }
    }
}

static void ngram_follows_the_longest_match(void **state)
{
    (void)state;
    // "1 2 3 4" was followed by 5; "4" alone most often by 9; the newest suffix is "1 2 3 4".
    static const int32_t context[] = {1, 2, 3, 4, 5, 4, 9, 4, 9, 8, 1, 2, 3, 4};
    struct hm_drafter *drafter;
    struct hm_pool pool;
    struct hm_tree tree;
    assert_int_equal(hm_drafter_open_ngram(&drafter, NULL), HM_OK);
    assert_int_equal(hm_pool_init(&pool, &(struct hm_pool_options){.width = 2, .proposal = HM_PROPOSAL_TOPK}, NULL), HM_OK);
    assert_int_equal(hm_tree_init(&tree, 8, NULL), HM_OK);
    assert_int_equal(drafter->ops->propose(drafter, context, 14, 2, &pool, NULL), HM_OK);
    assert_int_equal(pool.candidate[0].token, 5);
    assert_true(pool.candidate[0].logq == 0); // the only follower
    assert_int_equal(hm_tree_select(&tree, 4, &pool, &everything, NULL), HM_OK);
    assert_int_equal(tree.token[1], 5);
    assert_int_equal(tree.token[2], 4); // 5 was followed by 4
    assert_int_equal(tree.parent[2], 1);
    // A token never seen before has no continuation: a root-only tree.
    static const int32_t fresh[] = {1, 2, 3};
    assert_int_equal(drafter->ops->propose(drafter, fresh, 3, 2, &pool, NULL), HM_OK);
    assert_int_equal(hm_tree_select(&tree, 3, &pool, &everything, NULL), HM_OK);
    assert_int_equal(tree.nodes, 1);
    // Two followers of 4: 9 twice, 5 once.
    static const int32_t twice[] = {4, 9, 7, 4, 5, 6, 4, 9, 2, 4};
    assert_int_equal(drafter->ops->propose(drafter, twice, 10, 0, &pool, NULL), HM_OK);
    assert_int_equal(pool.count, 2);
    assert_int_equal(pool.candidate[0].token, 9);
    assert_true(fabs((double)pool.candidate[0].logq - log(2.0 / 3)) < 1e-6);
    hm_drafter_close(drafter);
    hm_tree_clear(&tree);
    hm_pool_clear(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_are_closed_and_best),
        cmocka_unit_test(width_one_is_a_chain),
        cmocka_unit_test(no_finite_score_gives_a_root_only_tree),
        cmocka_unit_test(topk_is_the_head_of_the_order),
        cmocka_unit_test(ngram_follows_the_longest_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
