// EAGLE-3 heads draft the same bits however contexts, passes and trees are cut, beside a pass of the target, and after
// any proposal before; and they refuse where features and tokens cannot be paired.
#include "tests/eagle3_golden.h"

#include <pthread.h>

// Every row of one pool stands in the other under the same path, with the same bits.
static void same_rows(const struct hm_pool *some, const struct hm_pool *all, const char *what)
{
    same_row(row_after(some, -1), row_after(all, -1), some->vocab, what);
    for (size_t i = 0; i < some->count; i++) {
        int32_t path[16];
        if (some->candidate[i].row < 0) continue;
        size_t n = some->candidate[i].depth;
        for (int32_t at = (int32_t)i, k = (int32_t)n; at >= 0; at = some->candidate[at].parent)
            path[--k] = some->candidate[at].token;
        int32_t other = find_path(all, path, n);
        assert_true(other >= 0);
        same_row(row_after(some, (int32_t)i), row_after(all, other), some->vocab, what);
    }
}

// A chain is a causal pass: its slots lie in order behind the stable ones and see prefixes. The same path in trees,
// with rows of more than one chunk, with other threads and after contexts that grew in pieces gives the same bits.
static void test_bits(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    enum { WIDE = 130, DEPTH = 4 };
    struct golden plain, other;
    struct hm_pool chain, tree, grown;
    open_golden(&plain, "tiny", WIDE, DEPTH, SAME_DEVICE);
    open_golden(&other, "tiny", WIDE, DEPTH, PEER);
    open_pool(&chain, plain.drafter, 1);
    show_taps(plain.drafter, plain.device, plain.taps, plain.tap_width, 0, plain.length - 1, &seed);
    propose(&plain, plain.token, plain.length, DEPTH, &chain);
    assert_int_equal(chain.row_count, DEPTH + 1);
    for (size_t round = 0; round < 3; round++) {
        size_t width = round == 0 ? 2 : round == 1 ? 7 : WIDE;
        open_pool(&tree, plain.drafter, width);
        open_pool(&grown, other.drafter, width);
        propose(&plain, plain.token, plain.length, DEPTH, &tree);
        // The greedy chain need not stay in a beam; level by level its rows must be there as far as it does.
        same_row(row_after(&chain, -1), row_after(&tree, -1), chain.vocab, "root");
        size_t met = 0;
        for (size_t n = 1; n <= DEPTH; n++) {
            int32_t path[DEPTH];
            for (size_t i = 0; i < n; i++) path[i] = chain.candidate[i].token;
            int32_t at = find_path(&tree, path, n);
            if (at < 0 || tree.candidate[at].row < 0) break;
            same_row(row_after(&chain, (int32_t)n - 1), row_after(&tree, at), chain.vocab, "chain in tree");
            met++;
        }
        assert_true(met > 0);
        // The same, reached in pieces with proposals between them.
        other.drafter->ops->restart(other.drafter);
        for (size_t seen = 0; seen < other.length - 1;) {
            size_t more = 1 + draw(&seed, (uint32_t)(other.length - 1 - seen));
            show_taps(other.drafter, other.device, other.taps, other.tap_width, seen, more, &seed);
            seen += more;
            if (draw(&seed, 2) || seen == other.length - 1)
                propose(&other, other.token, seen + 1, draw(&seed, DEPTH + 1), &grown);
        }
        propose(&other, other.token, other.length, DEPTH, &grown); // once more: nothing is left of the last one
        same_rows(&tree, &grown, "grown in pieces");
        assert_int_equal(tree.row_count, grown.row_count);
        print_message("width %zu: %zu rows; the chain met to depth %zu\n", width, tree.row_count, met);
        hm_pool_clear(&tree);
        hm_pool_clear(&grown);
    }
    hm_pool_clear(&chain);
    close_golden(&plain);
    close_golden(&other);
}

// A proposal in one thread, a pass of the target in another: both as if alone.
struct proposal {
    struct golden *g;
    struct hm_pool *pool;
    hm_status rc;
};

static void *propose_there(void *user)
{
    struct proposal *p = user;
    p->rc = p->g->drafter->ops->propose(p->g->drafter, p->g->token, p->g->length, 4, p->pool, NULL);
    return NULL;
}

static void test_beside(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    struct golden g;
    struct hm_pool alone, pool;
    struct hm_error err = {0};
    open_golden(&g, "tiny", 5, 4, PEER);
    open_pool(&alone, g.drafter, 5);
    open_pool(&pool, g.drafter, 5);
    size_t vocab = hm_model_info(g.target)->vocab;
    struct hm_cache *cache = open_cache(g.target, g.length);
    float *want = malloc(vocab * sizeof *want), *have = malloc(vocab * sizeof *have);
    show_taps(g.drafter, g.device, g.taps, g.tap_width, 0, g.length - 1, &seed);
    propose(&g, g.token, g.length, 4, &alone);
    expect_ok(hm_model_prefill(g.target, cache, g.token, g.length, want, NULL, &err), &err);
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        struct proposal there = {&g, &pool, HM_OK};
        g.drafter->ops->restart(g.drafter);
        show_taps(g.drafter, g.device, g.taps, g.tap_width, 0, g.length - 1, &seed);
        hm_cache_truncate(cache, 0);
        assert_int_equal(pthread_create(&thread, NULL, propose_there, &there), 0);
        expect_ok(hm_model_prefill(g.target, cache, g.token, g.length, have, NULL, &err), &err);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(there.rc, HM_OK);
        assert_memory_equal(want, have, vocab * sizeof *want);
        assert_int_equal(pool.row_count, alone.row_count);
        assert_memory_equal(pool.rows, alone.rows, pool.row_count * pool.vocab * sizeof *pool.rows);
    }
    free(want);
    free(have);
    hm_cache_close(cache);
    hm_pool_clear(&alone);
    hm_pool_clear(&pool);
    close_golden(&g);
}

// ---- pairing

static void refused(struct golden *g, size_t length, size_t depth, struct hm_pool *pool, const char *message)
{
    struct hm_error err = {0};
    hm_status rc = g->drafter->ops->propose(g->drafter, g->token, length, depth, pool, &err);
    assert_int_equal(rc, HM_USAGE);
    assert_string_equal(err.message, message);
    assert_int_equal(pool->count, 0);
}

static void test_pairing(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    struct golden g;
    struct hm_pool pool, wide;
    struct hm_error err = {0};
    open_golden(&g, "plain", 3, 2, SAME_DEVICE);
    open_pool(&pool, g.drafter, 3);
    open_pool(&wide, g.drafter, 4);
    propose(&g, g.token, 1, 2, &pool); // a single token has no slot: a round of the root alone
    assert_int_equal(pool.count, 0);
    show_taps(g.drafter, g.device, g.taps, g.tap_width, 0, 3, &seed);
    refused(&g, 5, 2, &pool, "EAGLE-3 draft: expected features of 4 tokens before the root, found 3");
    refused(&g, 2, 2, &pool, "EAGLE-3 draft: expected features of 1 tokens before the root, found 3");
    propose(&g, g.token, 4, 2, &pool);
    assert_int_equal(pool.row_count, 1 + 3 + 3);
    refused(&g, 2, 2, &pool, "EAGLE-3 draft: expected a context that grows beyond 3 tokens, found 2");
    refused(&g, 0, 2, &pool, "EAGLE-3 draft: expected a context that grows beyond 3 tokens, found 0");
    refused(&g, 4, 3, &pool,
            "EAGLE-3 draft: expected a pool of rows of 20, width up to 3 and depth up to 2, found 20, 3, 3");
    refused(&g, 4, 2, &wide,
            "EAGLE-3 draft: expected a pool of rows of 20, width up to 3 and depth up to 2, found 20, 4, 2");
    // The root's own feature known early waits for the token after it.
    float first[48];
    show_taps(g.drafter, g.device, g.taps, g.tap_width, 3, 2, &seed);
    propose(&g, g.token, 5, 2, &pool);
    propose(&g, g.token, 6, 2, &pool);
    memcpy(first, row_after(&pool, -1), g.vocab * sizeof *first);
    g.drafter->ops->restart(g.drafter);
    refused(&g, 6, 2, &pool, "EAGLE-3 draft: expected features of 5 tokens before the root, found 0");
    show_taps(g.drafter, g.device, g.taps, g.tap_width, 0, 5, &seed);
    propose(&g, g.token, 6, 2, &pool);
    same_row(first, row_after(&pool, -1), g.vocab, "early feature");
    // A token that the target does not have, and more tokens than the drafter was opened for.
    int32_t bad[7];
    memcpy(bad, g.token, sizeof bad);
    bad[6] = 48;
    show_taps(g.drafter, g.device, g.taps, g.tap_width, 5, 1, &seed);
    assert_int_equal(g.drafter->ops->propose(g.drafter, bad, 7, 2, &pool, &err), HM_RANGE);
    assert_string_equal(err.message, "token 0: expected an id below 48, found 48");
    propose(&g, g.token, 7, 2, &pool);
    uint32_t row[64] = {0};
    struct hm_buffer *one = g.device->ops->alloc(g.device, g.tap_width);
    assert_int_equal(g.drafter->ops->observe(g.drafter, (struct hm_view){one, 0}, row, 59, &err), HM_RANGE);
    assert_string_equal(err.message, "EAGLE-3 draft: expected features of at most 64 tokens, found 59 more after 6");
    g.device->ops->release(g.device, one);
    hm_pool_clear(&pool);
    hm_pool_clear(&wide);
    close_golden(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_beside),
        cmocka_unit_test_setup_teardown(test_pairing, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
