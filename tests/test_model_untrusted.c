// Damaged checkpoints: thousands of random mutations of config.json, of the index and of a weight file's header.
// Opening may succeed or fail, but a failure has a message of one line that names a file, and what opens can compute.
#include "tests/mutation.h"

#include "base/file.h"

enum { TRIALS = 3000 };

// Opens the folder; returns whether that went well. Models that are too large to try are not run.
static bool try_folder(struct hm_device *device)
{
    struct hm_model *model;
    struct hm_error err = {0};
    hm_status rc = hm_model_open(folder, device, &model, &err);
    if (rc) {
        assert_null(model);
        assert_int_equal(err.code, rc);
        assert_true(strncmp(err.message, folder, strlen(folder)) == 0);
        assert_null(strchr(err.message, '\n'));
        return false;
    }
    const struct hm_model_info *info = hm_model_info(model);
    struct hm_cache *cache = open_cache(model, 8);
    float *logits = malloc(info->vocab * sizeof *logits);
    size_t count = info->max_positions < 3 ? info->max_positions : 3;
    expect_ok(hm_model_prefill(model, cache, (int32_t[]){0, 1, 0}, count, logits, NULL, &err), &err);
    free(logits);
    hm_cache_close(cache);
    hm_model_close(model);
    return true;
}

static void link_all(const char *dir, const char *const *names)
{
    empty_folder();
    for (; *names; names++) link_file(dir, *names);
}

// Mutates one JSON text of a checkpoint, the weight file's own header included (then `skip` bytes go before it).
static void mutate_file(const char *dir, const char *const *names, const char *victim, size_t skip)
{
    static char text[SIZE_MOST];
    char path[256], *original;
    size_t size, opened = 0, text_size;
    uint64_t seed = test_seed();
    struct hm_device *device = open_device(1, HM_ISA_BEST);
    snprintf(path, sizeof path, "%s/%s", dir, victim);
    assert_int_equal(hm_file_read(path, 1 << 20, &original, &size, NULL), HM_OK);
    uint64_t length = size;
    if (skip) memcpy(&length, original, sizeof length);
    link_all(dir, names);
    for (int i = 0; i < TRIALS; i++) {
        text_size = (size_t)length;
        memcpy(text, original + skip, text_size);
        if (i > 0) text_size = mutate(text, text_size, &seed);
        uint64_t head = text_size;
        if (skip && i % 16 == 15)
            head = ((uint64_t)draw(&seed, UINT32_MAX) << 32 | draw(&seed, UINT32_MAX)) >> draw(&seed, 64);
        write_bytes(victim, &head, skip, text, text_size, original + skip + length, size - skip - (size_t)length);
        bool good = try_folder(device);
        if (i == 0) assert_true(good); // the checkpoint as it is
        opened += good;
    }
    print_message("%s: %zu of %d mutations open\n", victim, opened, (int)TRIALS);
    free(original);
    hm_device_close(device);
}

static void test_config(void **state)
{
    (void)state;
    mutate_file("tests/data/checkpoints/qwen3-bias-f32",
                (const char *const[]){"model.safetensors", "generation_config.json", NULL}, "config.json", 0);
}

static void test_generation_config(void **state)
{
    (void)state;
    mutate_file("tests/data/checkpoints/qwen3-bf16", (const char *const[]){"model.safetensors", "config.json", NULL},
                "generation_config.json", 0);
}

static void test_header(void **state)
{
    (void)state;
    mutate_file("tests/data/checkpoints/qwen3-bias-f32", (const char *const[]){"config.json", NULL},
                "model.safetensors", 8);
}

static void test_index(void **state)
{
    (void)state;
    mutate_file("tests/data/checkpoints/llama-sharded-bf16",
                (const char *const[]){"config.json", "model-00001-of-00003.safetensors",
                                      "model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors", NULL},
                "model.safetensors.index.json", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_generation_config),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_index),
    };
    setenv("HALLMARK_CACHE", "off", 1);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
