// Out of memory at every place: the n-th allocation of opening a model, prefilling, running a tree and committing
// fails, for each n. The call that meets it says HM_MEMORY, nothing leaks (run under a sanitizer), and a cache that was
// refused something goes on as if nothing had happened. Linked with --wrap for the allocation functions.
#include "tests/failing_allocations.h"
#include "tests/model_support.h"

enum { PREFIX = 5, ROWS = 100, VOCAB = 192 };

// Prefill, a tree of more than one chunk, a commit that moves rows, one more token; each call repeated until it works.
// Returns the number of failures met; logits of the last token.
static int run(struct hm_model *model, struct hm_cache *cache, float *logits)
{
    int32_t token[ROWS], parent[ROWS];
    const uint32_t path[] = {1, 3};
    struct hm_error err = {0};
    int failures = 0;
    for (int i = 0; i < ROWS; i++) token[i] = i % VOCAB, parent[i] = i < 2 ? -1 : i / 2;
    struct hm_pass tree = {token, parent, ROWS, NULL, 0, NULL};
    for (hm_status rc = HM_MEMORY; rc; failures += rc == HM_MEMORY) {
        rc = hm_model_prefill(model, cache, token, PREFIX, NULL, NULL, &err);
        assert_true(rc == HM_OK || (rc == HM_MEMORY && hm_cache_length(cache) == 0));
    }
    for (hm_status rc = HM_MEMORY; rc; failures += rc == HM_MEMORY) {
        rc = hm_model_forward(model, cache, &tree, NULL, &err);
        assert_true(rc == HM_OK || (rc == HM_MEMORY && hm_cache_scratch(cache) == 0));
    }
    parent[3] = 1;
    for (hm_status rc = HM_MEMORY; rc; failures += rc == HM_MEMORY) {
        rc = hm_cache_commit(cache, path, 2, &err);
        assert_true(rc == HM_OK || (rc == HM_MEMORY && hm_cache_scratch(cache) == ROWS));
    }
    for (hm_status rc = HM_MEMORY; rc; failures += rc == HM_MEMORY)
        rc = hm_model_prefill(model, cache, token + 7, 1, logits, NULL, &err);
    return failures;
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    struct hm_device *device = open_device(1, HM_ISA_BEST);
    struct hm_error err = {0};
    float expected[VOCAB], found[VOCAB];
    struct hm_model *model = open_model("llama-sharded-bf16", device);
    struct hm_cache *cache = open_cache(model, 600);
    assert_int_equal(run(model, cache, expected), 0);
    hm_cache_close(cache);
    hm_model_close(model);
    long n = 0;
    for (hm_status rc = HM_MEMORY; rc; n++) { // opening
        countdown = n;
        rc = hm_model_open("tests/data/checkpoints/llama-sharded-bf16", device, &model, &err);
        countdown = -1;
        if (rc && (rc != HM_MEMORY || !strstr(err.message, "out of memory")))
            fail_msg("allocation %ld: %s", n, err.message);
        assert_true(rc == HM_OK || model == NULL);
    }
    print_message("%ld allocations to open a model\n", n - 1);
    long opened = n, met = 0;
    for (n = 0;; n++) {
        countdown = n;
        hm_status rc = hm_cache_open(model, 600, &cache, &err);
        assert_true(rc == HM_OK || rc == HM_MEMORY);
        if (rc) continue;
        int failures = run(model, cache, found);
        bool beyond = countdown >= 0; // nothing was left to fail
        countdown = -1;
        met += failures;
        assert_memory_equal(expected, found, sizeof expected);
        hm_cache_close(cache);
        if (beyond) break;
    }
    print_message("%ld to use a cache, %ld of them after it was open\n", n, met);
    assert_true(opened > 50 && n > 12 && met >= 3);
    hm_model_close(model);
    hm_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation_may_fail)};
    setenv("HALLMARK_CACHE", "off", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
