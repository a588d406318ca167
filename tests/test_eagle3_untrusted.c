// Damaged EAGLE-3 heads: thousands of random mutations of config.json and of the weight file's header, and weights of
// random bytes. Opening may succeed or fail, but a failure has a message of one line, and what opens can draft: NaN and
// infinite logits propose nothing that is not finite.
#include "tests/eagle3_support.h"
#include "tests/mutation.h"

#include "base/file.h"

#include <math.h>

enum { TRIALS = 3000, VOCAB = 48, HIDDEN = 32, LAYERS = 36, TAPS_MOST = 16, LENGTH = 6 };

struct bench {
    struct hm_device *device;
    struct hm_model *target;
    float *taps;
};

static void open_bench(struct bench *b, uint64_t *seed)
{
    struct hm_safetensors *golden = open_tensors("tests/data/eagle3/plain/golden.safetensors");
    b->device = open_device(1, HM_ISA_BEST);
    b->target =
        zero_target(b->device, VOCAB, HIDDEN, LAYERS, hm_safetensors_find(golden, "target.embed_tokens")->data, NULL);
    b->taps = malloc(LENGTH * TAPS_MOST * HIDDEN * sizeof *b->taps);
    for (size_t i = 0; i < LENGTH * TAPS_MOST * HIDDEN; i++) b->taps[i] = (float)draw(seed, 2000) / 1000 - 1;
    hm_safetensors_close(golden);
}

static void close_bench(struct bench *b)
{
    hm_model_close(b->target);
    hm_device_close(b->device);
    free(b->taps);
}

// Opens the folder and drafts; returns whether it opened.
static bool try_head(const struct bench *b, uint64_t *seed)
{
    struct hm_drafter *drafter;
    struct hm_error err = {0};
    struct hm_pool pool;
    struct hm_eagle3_options options = {.positions = LENGTH, .width = 3, .depth = 2};
    hm_status rc = hm_drafter_open_eagle3(folder, b->target, b->device, &options, &drafter, &err);
    if (rc) {
        assert_null(drafter);
        assert_int_equal(err.code, rc);
        assert_true(strlen(err.message) > 0);
        assert_null(strchr(err.message, '\n'));
        return false;
    }
    for (size_t i = 0; i < drafter->tap_count; i++) assert_true(drafter->tap[i] < LAYERS);
    for (size_t j = 0; drafter->ids && j < drafter->vocab; j++)
        assert_true(drafter->ids[j] >= 0 && drafter->ids[j] < VOCAB && (!j || drafter->ids[j] > drafter->ids[j - 1]));
    open_pool(&pool, drafter, 3);
    show_taps(drafter, b->device, b->taps, drafter->tap_count * HIDDEN, 0, LENGTH - 1, seed);
    expect_ok(drafter->ops->propose(drafter, (int32_t[]){1, 2, 3, 4, 5, 6}, LENGTH, 2, &pool, &err), &err);
    size_t best[64], kept = hm_pool_best(&pool, 64, best);
    for (size_t i = 0; i < kept; i++) assert_true(isfinite(pool.candidate[best[i]].score));
    hm_pool_clear(&pool);
    hm_drafter_close(drafter);
    return true;
}

static void mutated(const char *victim, size_t skip)
{
    static char text[SIZE_MOST];
    char path[256], *original;
    size_t size, opened = 0;
    uint64_t seed = test_seed();
    struct bench b;
    open_bench(&b, &seed);
    snprintf(path, sizeof path, "tests/data/eagle3/plain/%s", victim);
    assert_int_equal(hm_file_read(path, 1 << 20, &original, &size, NULL), HM_OK);
    uint64_t length = size;
    if (skip) memcpy(&length, original, sizeof length);
    link_file("tests/data/eagle3/plain", "config.json");
    link_file("tests/data/eagle3/plain", "model.safetensors");
    for (int i = 0; i < TRIALS; i++) {
        size_t text_size = (size_t)length;
        memcpy(text, original + skip, text_size);
        if (i > 0) text_size = mutate(text, text_size, &seed);
        uint64_t head = text_size;
        write_bytes(victim, &head, skip, text, text_size, original + skip + length, size - skip - (size_t)length);
        bool good = try_head(&b, &seed);
        if (i == 0) assert_true(good); // the head as it is
        opened += good;
    }
    print_message("%s: %zu of %d mutations open\n", victim, opened, (int)TRIALS);
    free(original);
    close_bench(&b);
}

static void test_config(void **state)
{
    (void)state;
    mutated("config.json", 0);
}

static void test_header(void **state)
{
    (void)state;
    mutated("model.safetensors", 8);
}

// Any bytes are weights; as a vocabulary they are refused, unless only its marks or nothing of it was hit.
static void test_contents(void **state)
{
    (void)state;
    char *original;
    size_t size, opened = 0;
    uint64_t seed = test_seed(), length;
    struct bench b;
    open_bench(&b, &seed);
    assert_int_equal(hm_file_read("tests/data/eagle3/plain/model.safetensors", 1 << 20, &original, &size, NULL), HM_OK);
    memcpy(&length, original, sizeof length);
    link_file("tests/data/eagle3/plain", "config.json");
    char *copy = malloc(size);
    for (int i = 0; i < TRIALS / 10; i++) {
        memcpy(copy, original, size);
        for (uint32_t changes = 1u << draw(&seed, 13); changes; changes--)
            copy[8 + length + draw(&seed, (uint32_t)(size - 8 - length))] = (char)draw(&seed, 256);
        write_bytes("model.safetensors", copy, size, "", 0, "", 0);
        opened += try_head(&b, &seed);
    }
    print_message("contents: %zu of %d mutations open\n", opened, (int)TRIALS / 10);
    assert_true(opened > 0);
    free(copy);
    free(original);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_config, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_header, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_contents, make_folder, remove_folder),
    };
    setenv("HALLMARK_CACHE", "off", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
