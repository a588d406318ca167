// The forward pass of EAGLE-3 heads: against PyTorch in float32 (tests/data/eagle3, tools/eagle3_goldens.py) for every
// variant of the configuration; the same bits however contexts, passes and trees are cut; nothing left behind by a
// proposal; refusals where features and tokens cannot be paired.
#include "tests/eagle3_support.h"

#include <math.h>
#include <pthread.h>

static const char *const variants[] = {"plain",          "norm_output",        "fc_norm",  "norm_before_residual",
                                       "norm_before_fc", "target_hidden_size", "five_taps"};

// A golden file, its head and a target for it.
struct golden {
    struct hm_safetensors *file;
    struct hm_device *device, *peer; // of the target; of the drafter, where it has one of its own
    struct hm_model *target;
    struct hm_drafter *drafter;
    size_t length, tap_width, vocab;
    int32_t token[64];
    float *taps;
};

static const struct hm_tensor *tensor(const struct golden *g, const char *name)
{
    const struct hm_tensor *t = hm_safetensors_find(g->file, name);
    if (!t) fail_msg("no tensor %s", name);
    return t;
}

static float *floats_of(const struct hm_tensor *t)
{
    float *copy = malloc(t->bytes);
    memcpy(copy, t->data, t->bytes);
    return copy;
}

static void tokens_of(const struct golden *g, const char *name, int32_t *token)
{
    const struct hm_tensor *t = tensor(g, name);
    for (size_t i = 0; i < t->shape[0]; i++) {
        int64_t wide;
        memcpy(&wide, t->data + i * sizeof wide, sizeof wide);
        token[i] = (int32_t)wide;
    }
}

static struct hm_drafter *open_drafter(struct golden *g, const char *dir, size_t width, size_t depth)
{
    struct hm_error err = {0};
    struct hm_drafter *drafter = NULL;
    struct hm_eagle3_options options = {.positions = 64, .width = width, .depth = depth};
    struct hm_device *device = g->peer ? g->peer : g->device;
    expect_ok(hm_drafter_open_eagle3(dir, g->target, device, &options, &drafter, &err), &err);
    return drafter;
}

enum place { SAME_DEVICE, PEER };

static void open_golden(struct golden *g, const char *name, size_t width, size_t depth, enum place place)
{
    char dir[128], path[160];
    bool tiny = strcmp(name, "tiny") == 0;
    struct hm_error err = {0};
    *g = (struct golden){.device = open_device(1, HM_ISA_BEST)};
    if (place == PEER) expect_ok(hm_device_open_peer(g->device, 2, &g->peer, &err), &err);
    snprintf(dir, sizeof dir, tiny ? "models/tiny-eagle3" : "tests/data/eagle3/%s", name);
    snprintf(path, sizeof path, "tests/data/eagle3/%s/golden.safetensors", name);
    g->file = open_tensors(path);
    const struct hm_tensor *taps = tensor(g, "taps"), *table = hm_safetensors_find(g->file, "target.embed_tokens"),
                           *head = hm_safetensors_find(g->file, "target.lm_head");
    g->taps = floats_of(taps);
    g->tap_width = taps->shape[1];
    g->length = tensor(g, "tokens")->shape[0];
    tokens_of(g, "tokens", g->token);
    if (tiny)
        expect_ok(hm_model_open("models/tiny-qwen3", g->device, &g->target, &err), &err);
    else // the head that brings a table of its own is for a wider target
        g->target = zero_target(g->device, 48, table ? table->shape[1] : 40, 36, table ? table->data : NULL,
                                head ? head->data : NULL);
    g->drafter = open_drafter(g, dir, width, depth);
    g->vocab = g->drafter->vocab;
}

static void close_golden(struct golden *g)
{
    hm_drafter_close(g->drafter);
    hm_model_close(g->target);
    hm_device_close(g->peer);
    hm_device_close(g->device);
    hm_safetensors_close(g->file);
    free(g->taps);
}

static double largest(const float *row, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs((double)row[i]));
    return most;
}

static double difference(const float *a, const float *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

static size_t argmax(const float *row, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

static void propose(struct golden *g, const int32_t *context, size_t length, size_t depth, struct hm_pool *pool)
{
    struct hm_error err = {0};
    expect_ok(g->drafter->ops->propose(g->drafter, context, length, depth, pool, &err), &err);
}

// ---- against PyTorch

// Largest share of the largest logit by which stable rows differ when contexts grow token by token. `shift` moves the
// tokens against the features: 0 is right.
static double stable_difference(struct golden *g, struct hm_pool *pool, size_t shift, uint64_t *seed)
{
    const struct hm_tensor *t = tensor(g, "stable.logits");
    float *want = floats_of(t);
    double most = 0;
    int32_t context[65];
    for (size_t i = 0; i < g->length; i++) context[i] = g->token[(i + shift) % g->length];
    g->drafter->ops->restart(g->drafter);
    for (size_t length = 2; length <= g->length; length++) {
        show_taps(g->drafter, g->device, g->taps, g->tap_width, length - 2, 1, seed);
        propose(g, context, length, 0, pool);
        if (length + t->shape[0] <= g->length) continue; // slots whose rows are not in the file
        const float *row = want + (length - 1 + t->shape[0] - g->length) * g->vocab;
        most = fmax(most, difference(row, row_after(pool, -1), g->vocab) / largest(row, g->vocab));
    }
    free(want);
    return most;
}

// Rows of both steps, found in a wide tree by their paths.
static double tree_difference(struct golden *g, struct hm_pool *pool, uint64_t *seed)
{
    double most = 0;
    int32_t first[2], second[2], from[2];
    tokens_of(g, "step1.tokens", first);
    tokens_of(g, "step2.tokens", second);
    tokens_of(g, "step2.parents", from);
    g->drafter->ops->restart(g->drafter);
    show_taps(g->drafter, g->device, g->taps, g->tap_width, 0, g->length - 1, seed);
    propose(g, g->token, g->length, 2, pool);
    float *one = floats_of(tensor(g, "step1.logits")), *two = floats_of(tensor(g, "step2.logits"));
    for (size_t i = 0; i < 2; i++) {
        const float *row = row_after(pool, find_path(pool, (int32_t[]){first[i]}, 1));
        assert_non_null(row);
        most = fmax(most, difference(one + i * g->vocab, row, g->vocab) / largest(one + i * g->vocab, g->vocab));
        int32_t at = find_path(pool, (int32_t[]){first[from[i]], second[i]}, 2);
        assert_true(at >= 0);
        row = row_after(pool, at);
        assert_non_null(row);
        most = fmax(most, difference(two + i * g->vocab, row, g->vocab) / largest(two + i * g->vocab, g->vocab));
    }
    free(one);
    free(two);
    return most;
}

static void agrees(const char *name, size_t width, uint64_t *seed)
{
    struct golden g;
    struct hm_pool pool;
    open_golden(&g, name, width, 2, SAME_DEVICE);
    open_pool(&pool, g.drafter, width);
    double stable = stable_difference(&g, &pool, 0, seed), tree = tree_difference(&g, &pool, seed),
           shifted = stable_difference(&g, &pool, 1, seed);
    print_message(
        "%s: differences of %.3g (stable) and %.3g (tree) of the largest logit; tokens shifted by one: %.3g\n", name,
        stable, tree, shifted);
    assert_true(stable <= 1e-4);
    assert_true(tree <= 1e-4);
    assert_true(shifted > 1e-2); // the wrong pairing must show
    hm_pool_clear(&pool);
    close_golden(&g);
}

static void test_variants(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) agrees(variants[i], 20, &seed);
}

static void test_trained(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    agrees("tiny", 16, &seed);
}

// ---- bits

static void same_row(const float *want, const float *have, size_t vocab, const char *what)
{
    assert_non_null(want);
    assert_non_null(have);
    if (memcmp(want, have, vocab * sizeof *want) != 0) fail_msg("%s: rows differ in %zu", what, argmax(have, vocab));
}

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

// ---- a trained head on its target's own text

// Greedy text of the target with the taps of every token, one token a pass.
static void greedy_text(struct golden *g, int32_t *token, size_t prompt, size_t length, float *taps)
{
    struct hm_error err = {0};
    size_t vocab = hm_model_info(g->target)->vocab;
    struct hm_cache *cache = open_cache(g->target, length + 1);
    struct hm_buffer *buffer = g->device->ops->alloc(g->device, g->tap_width);
    struct hm_taps wanted = {g->drafter->tap, g->drafter->tap_count, {buffer, 0}};
    float *row = malloc(vocab * sizeof *row);
    uint32_t only = 0;
    int32_t parent = -1;
    for (size_t i = 0; i + 1 < length; i++) {
        struct hm_pass pass = {token + i, &parent, 1, &only, 1, &wanted};
        expect_ok(hm_model_forward(g->target, cache, &pass, row, &err), &err);
        expect_ok(hm_cache_commit(cache, &only, 1, &err), &err);
        g->device->ops->download(g->device, taps + i * g->tap_width, (struct hm_view){buffer, 0}, g->tap_width);
        if (i + 1 >= prompt) token[i + 1] = (int32_t)argmax(row, vocab);
    }
    g->device->ops->release(g->device, buffer);
    hm_cache_close(cache);
    free(row);
}

static void test_teacher_forced(void **state)
{
    (void)state;
    enum { LENGTH = 160 };
    uint64_t seed = test_seed();
    struct golden g;
    struct hm_pool pool;
    struct hm_error err = {0};
    open_golden(&g, "tiny", 1, 0, SAME_DEVICE);
    hm_drafter_close(g.drafter);
    struct hm_eagle3_options options = {.positions = LENGTH, .width = 1, .depth = 0};
    expect_ok(hm_drafter_open_eagle3("models/tiny-eagle3", g.target, g.device, &options, &g.drafter, &err), &err);
    open_pool(&pool, g.drafter, 1);
    int32_t token[LENGTH];
    float *taps = malloc(LENGTH * g.tap_width * sizeof *taps);
    memcpy(token, g.token, g.length * sizeof *token);
    greedy_text(&g, token, g.length, LENGTH, taps);
    size_t slots = 0, agreed = 0;
    for (size_t length = 2; length < LENGTH; length++) {
        show_taps(g.drafter, g.device, taps, g.tap_width, length - 2, 1, &seed);
        propose(&g, token, length, 0, &pool);
        if (length < g.length) continue; // the next token is the prompt's
        slots++;
        agreed += pool.candidate[0].token == token[length];
    }
    print_message("teacher-forced: %zu of %zu slots name the next token\n", agreed, slots);
    assert_true(100 * agreed >= 45 * slots);
    // All at once, in more than one chunk of taps and of slots: the same last row.
    float *last = malloc(g.vocab * sizeof *last);
    memcpy(last, row_after(&pool, -1), g.vocab * sizeof *last);
    g.drafter->ops->restart(g.drafter);
    show_taps(g.drafter, g.device, taps, g.tap_width, 0, LENGTH - 2, &seed);
    propose(&g, token, LENGTH - 1, 0, &pool);
    same_row(last, row_after(&pool, -1), g.vocab, "all at once");
    free(last);
    free(taps);
    hm_pool_clear(&pool);
    close_golden(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_variants, make_folder, remove_folder),
        cmocka_unit_test(test_trained),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_beside),
        cmocka_unit_test_setup_teardown(test_pairing, make_folder, remove_folder),
        cmocka_unit_test(test_teacher_forced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
