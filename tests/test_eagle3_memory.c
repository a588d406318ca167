// Out of memory at every place: the n-th allocation of opening an EAGLE-3 head and of drafting with it fails, for each
// n. The call that meets it says HM_MEMORY, nothing leaks (run under a sanitizer), and a drafter that was refused
// something drafts the same rows when it is asked again.
#include "tests/eagle3_support.h"
#include "tests/failing_allocations.h"

enum { VOCAB = 48, DRAFT = 20, HIDDEN = 32, LENGTH = 8, ROWS = 1 + 3 + 3 };

static struct hm_device *device;
static struct hm_model *target;
static float *taps;

static hm_status open_head(struct hm_drafter **drafter, struct hm_error *err)
{
    struct hm_eagle3_options options = {.positions = 16, .width = 3, .depth = 2};
    return hm_drafter_open_eagle3("tests/data/eagle3/plain", target, device, &options, drafter, err);
}

// Drafts, each call repeated until it works; returns the number of failures met.
static int run(struct hm_drafter *drafter, float rows[ROWS * DRAFT])
{
    static const int32_t token[LENGTH] = {3, 1, 4, 15, 9, 26, 5, 35};
    struct hm_error err = {0};
    struct hm_pool pool;
    struct hm_pool_options options = {.width = 3,
                                      .vocab = drafter->vocab,
                                      .usable = drafter->usable,
                                      .ids = drafter->ids,
                                      .proposal = HM_PROPOSAL_TOPK};
    int failures = 0;
    uint64_t seed = 1;
    long left = countdown;
    countdown = -1; // what the test itself needs
    show_taps(drafter, device, taps, 3 * HIDDEN, 0, LENGTH - 1, &seed);
    countdown = left;
    for (hm_status rc = HM_MEMORY; rc; failures += rc == HM_MEMORY) rc = hm_pool_init(&pool, &options, &err);
    for (hm_status rc = HM_MEMORY; rc; failures += rc == HM_MEMORY) {
        rc = drafter->ops->propose(drafter, token, LENGTH, 2, &pool, &err);
        assert_true(rc == HM_OK || rc == HM_MEMORY);
    }
    assert_int_equal(pool.row_count, ROWS);
    memcpy(rows, pool.rows, ROWS * DRAFT * sizeof *rows);
    hm_pool_clear(&pool);
    return failures;
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    struct hm_error err = {0};
    struct hm_drafter *drafter;
    static float expected[ROWS * DRAFT], found[ROWS * DRAFT];
    struct hm_safetensors *golden = open_tensors("tests/data/eagle3/plain/golden.safetensors");
    device = open_device(1, HM_ISA_BEST);
    target = zero_target(device, VOCAB, HIDDEN, 36, hm_safetensors_find(golden, "target.embed_tokens")->data, NULL);
    taps = malloc(hm_safetensors_find(golden, "taps")->bytes);
    memcpy(taps, hm_safetensors_find(golden, "taps")->data, hm_safetensors_find(golden, "taps")->bytes);
    hm_safetensors_close(golden);
    expect_ok(open_head(&drafter, &err), &err);
    assert_int_equal(run(drafter, expected), 0);
    hm_drafter_close(drafter);
    long n = 0, met = 0;
    for (hm_status rc = HM_MEMORY; rc; n++) { // opening
        countdown = n;
        rc = open_head(&drafter, &err);
        countdown = -1;
        if (rc && (rc != HM_MEMORY || !strstr(err.message, "out of memory")))
            fail_msg("allocation %ld: %s", n, err.message);
        assert_true(rc == HM_OK || drafter == NULL);
    }
    print_message("%ld allocations to open a head\n", n - 1);
    assert_true(n > 50);
    for (n = 0;; n++) { // drafting, on a fresh drafter each time
        hm_drafter_close(drafter);
        expect_ok(open_head(&drafter, &err), &err);
        countdown = n;
        met += run(drafter, found);
        bool beyond = countdown >= 0; // nothing was left to fail
        countdown = -1;
        assert_memory_equal(expected, found, sizeof expected);
        if (beyond) break;
    }
    print_message("%ld to draft, %ld failures met\n", n, met);
    assert_true(met >= 5);
    hm_drafter_close(drafter);
    hm_model_close(target);
    hm_device_close(device);
    free(taps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_allocation_may_fail, make_folder, remove_folder)};
    setenv("HALLMARK_CACHE", "off", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
