// The rows of EAGLE-3 heads against PyTorch in float32 (tests/data/eagle3, tools/eagle3_goldens.py) for every variant
// of the configuration, and what a trained head says about its target's own text.
#include "tests/eagle3_golden.h"

#include <math.h>

static const char *const variants[] = {"plain",          "norm_output",        "fc_norm",  "norm_before_residual",
                                       "norm_before_fc", "target_hidden_size", "five_taps"};

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
        cmocka_unit_test(test_teacher_forced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
