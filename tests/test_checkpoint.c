// Checkpoint folders: single files, shards, what an index may not say, and the hash of the weights with its cache.
#include "tests/checkpoint_support.h"

#include "base/file.h"
#include "base/sha256.h"
#include "decode/checkpoint.h"

#include <time.h>

#define ONE "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]}}"
#define TWO "{\"b\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[0,8]}}"
static const char INDEX[] = "model.safetensors.index.json";
static const char SHARDED[] = "tests/data/checkpoints/llama-sharded-bf16";

static struct hm_checkpoint *opened(const char *dir)
{
    struct hm_checkpoint *c;
    struct hm_error err = {0};
    if (hm_checkpoint_open(dir, &c, &err)) fail_msg("%s", err.message);
    return c;
}

static void test_single_file(void **state)
{
    (void)state;
    struct hm_error err = {0};
    const struct hm_tensor *tensor;
    const char *path = NULL;
    enum hm_dtype dtype;
    empty_folder();
    write_tensors("model.safetensors", ONE, 8);
    write_text(INDEX, "not even JSON: the single file goes first");
    struct hm_checkpoint *c = opened(folder);
    assert_int_equal(hm_checkpoint_files(c), 1);
    assert_non_null(hm_checkpoint_find(c, "a", &path));
    assert_string_equal(path, in_folder("model.safetensors"));
    assert_null(hm_checkpoint_find(c, "b", NULL));
    assert_int_equal(hm_checkpoint_need(c, "a", 2, (size_t[]){2, 1}, &tensor, &dtype, &err), HM_OK);
    assert_int_equal(dtype, HM_F32);
    assert_int_equal(hm_checkpoint_need(c, "a", 2, (size_t[]){1, 2}, &tensor, &dtype, &err), HM_SHAPE);
    expect_message("shape", &err, "DIR/model.safetensors: tensor \"a\": expected [1, 2], found [2, 1]");
    assert_int_equal(hm_checkpoint_need(c, "a", 1, (size_t[]){2}, &tensor, &dtype, &err), HM_SHAPE);
    expect_message("rank", &err, "DIR/model.safetensors: tensor \"a\": expected [2], found [2, 1]");
    assert_int_equal(hm_checkpoint_need(c, "b", 1, (size_t[]){7}, &tensor, &dtype, &err), HM_SHAPE);
    expect_message("missing", &err, "DIR/model.safetensors: tensor \"b\": expected [7], found nothing");
    hm_checkpoint_close(c);
    hm_checkpoint_close(NULL);
}

static void test_shards(void **state)
{
    (void)state;
    struct hm_error err = {0};
    const struct hm_tensor *tensor;
    const char *path = NULL;
    enum hm_dtype dtype;
    empty_folder();
    write_tensors("x-2.safetensors", ONE, 8);
    write_tensors("x-1.safetensors", TWO, 8);
    write_text(
        INDEX,
        "{\"metadata\":{\"total_size\":16},\"weight_map\":{\"a\":\"x-2.safetensors\",\"b\":\"x-1.safetensors\"}}");
    struct hm_checkpoint *c = opened(folder);
    assert_int_equal(hm_checkpoint_files(c), 2);
    assert_string_equal(hm_safetensors_path(hm_checkpoint_file(c, 0)), in_folder("x-1.safetensors"));
    assert_null(hm_checkpoint_file(c, 2));
    assert_non_null(hm_checkpoint_find(c, "a", &path));
    assert_string_equal(path, in_folder("x-2.safetensors"));
    assert_int_equal(hm_checkpoint_need(c, "b", 1, (size_t[]){2}, &tensor, &dtype, &err), HM_UNSUPPORTED);
    expect_message("type", &err, "DIR/x-1.safetensors: tensor \"b\": expected type F32, F16 or BF16, found I32");
    assert_int_equal(hm_checkpoint_need(c, "c", 2, (size_t[]){7, 8}, &tensor, &dtype, &err), HM_SHAPE);
    expect_message("missing", &err, "DIR/model.safetensors.index.json: tensor \"c\": expected [7, 8], found nothing");
    hm_checkpoint_close(c);
}

#define MAP(text) "{\"weight_map\":{" text "}}"
static const struct {
    const char *index, *message;
    hm_status status;
} bad[] = {
    {"{", "DIR/model.safetensors.index.json: byte 0: not valid JSON", HM_FORMAT},
    {"[]", "DIR/model.safetensors.index.json: key \"weight_map\": expected an object, found nothing", HM_FORMAT},
    {"{\"weight_map\":[]}", "DIR/model.safetensors.index.json: key \"weight_map\": expected an object, found an array",
     HM_FORMAT},
    {MAP(""), "DIR/model.safetensors.index.json: key \"weight_map\": expected tensors, found none", HM_FORMAT},
    {MAP("\"a\":1"), "DIR/model.safetensors.index.json: tensor \"a\": expected a file name, found a number", HM_FORMAT},
    {MAP("\"a\":\"\""),
     "DIR/model.safetensors.index.json: tensor \"a\": expected the name of a file in the same folder, found \"\"",
     HM_FORMAT},
    {MAP("\"a\":\"../x\""),
     "DIR/model.safetensors.index.json: tensor \"a\": expected the name of a file in the same folder, found \"../x\"",
     HM_FORMAT},
    {MAP("\"a\":\"/etc/passwd\""),
     "DIR/model.safetensors.index.json: tensor \"a\": expected the name of a file in the same folder, found "
     "\"/etc/passwd\"",
     HM_FORMAT},
    {MAP("\"a\":\"x..y\""),
     "DIR/model.safetensors.index.json: tensor \"a\": expected the name of a file in the same folder, found \"x..y\"",
     HM_FORMAT},
    {MAP("\"a\":\"x\\n\""),
     "DIR/model.safetensors.index.json: tensor \"a\": expected the name of a file in the same folder, found \"x?\"",
     HM_FORMAT},
    {MAP("\"a\":\".x\""),
     "DIR/model.safetensors.index.json: tensor \"a\": expected the name of a file in the same folder, found \".x\"",
     HM_FORMAT},
    {MAP("\"a\":\"absent\""), "DIR/absent: cannot open: No such file or directory", HM_IO},
    {MAP("\"a\":\"two\""), "DIR/two: tensor \"a\": expected as DIR/model.safetensors.index.json says, found nothing",
     HM_SHAPE},
    {MAP("\"b\":\"two\",\"c\":\"two\""),
     "DIR/two: tensor \"c\": expected as DIR/model.safetensors.index.json says, found nothing", HM_SHAPE},
    {MAP("\"b\":\"two\",\"b\":\"one\""), "DIR/model.safetensors.index.json: key \"b\" appears twice in one object",
     HM_FORMAT},
    {MAP("\"b\":\"model.safetensors.index.json\""),
     "DIR/model.safetensors.index.json: expected a header of at most 43 bytes, found a length of 8388068008349082235",
     HM_FORMAT},
};

static void test_bad_indexes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hm_checkpoint *c;
        struct hm_error err = {0};
        empty_folder();
        write_tensors("one", ONE, 8);
        write_tensors("two", TWO, 8);
        write_text(INDEX, bad[i].index);
        assert_int_equal(hm_checkpoint_open(folder, &c, &err), bad[i].status);
        expect_message(bad[i].index, &err, bad[i].message);
        assert_null(c);
    }
}

static void test_nothing_there(void **state)
{
    (void)state;
    struct hm_checkpoint *c;
    struct hm_error err = {0};
    empty_folder();
    assert_int_equal(hm_checkpoint_open(folder, &c, &err), HM_IO);
    expect_message("empty", &err, "DIR/model.safetensors: cannot open: No such file or directory");
}

// SHA-256 of the shards of the sharded checkpoint, file after file.
static void hash_by_hand(char hex[65])
{
    struct hm_sha256 *hash;
    uint8_t digest[HM_SHA256_BYTES];
    assert_int_equal(hm_sha256_open(&hash, NULL), HM_OK);
    for (int i = 1; i <= 3; i++) {
        char path[256], *text;
        size_t size;
        snprintf(path, sizeof path, "%s/model-%05d-of-00003.safetensors", SHARDED, i);
        assert_int_equal(hm_file_read(path, 1 << 20, &text, &size, NULL), HM_OK);
        assert_int_equal(hm_sha256_add(hash, text, size, NULL), HM_OK);
        free(text);
    }
    assert_int_equal(hm_sha256_finish(hash, digest, NULL), HM_OK);
    hm_sha256_hex(digest, hex);
    hm_sha256_close(hash);
}

static void hash_is(const char *expected)
{
    struct hm_checkpoint *c = opened(SHARDED);
    struct hm_error err = {0};
    char hex[65];
    assert_int_equal(hm_checkpoint_hash(c, hex, &err), HM_OK);
    assert_string_equal(hex, expected);
    hm_checkpoint_close(c);
}

// The only file in the folder, or NULL.
static const char *only_file(void)
{
    static char name[256];
    size_t count = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        if (e->d_name[0] != '.') {
            snprintf(name, sizeof name, "%.255s", e->d_name);
            count++;
        }
    closedir(d);
    assert_true(count <= 1);
    return count ? name : NULL;
}

static void test_hash_is_remembered(void **state)
{
    (void)state;
    char right[65], wrong[66];
    struct stat st;
    hash_by_hand(right);
    memset(wrong, 'a', 64);
    memcpy(wrong + 64, "\n", 2);
    empty_folder();
    setenv("HALLMARK_CACHE", "off", 1);
    hash_is(right);
    // Files changed a moment ago are not remembered, so this waits for a fresh checkout to age.
    assert_int_equal(stat("tests/data/checkpoints/llama-sharded-bf16/model-00001-of-00003.safetensors", &st), 0);
    for (int i = 0; i < 15 && time(NULL) - st.st_ctim.tv_sec <= 11; i++) sleep(1);
    setenv("HALLMARK_CACHE", folder, 1);
    hash_is(right);
    const char *name = only_file();
    assert_non_null(name);
    write_text(name, wrong); // found again, not computed: the lie is believed
    wrong[64] = 0;
    hash_is(wrong);
    write_text(name, "aaaa\n"); // not a hash: computed and written again
    hash_is(right);
    wrong[64] = '\n';
    char *longer = malloc(80);
    snprintf(longer, 80, "%sand more\n", wrong);
    write_text(name, longer); // not a hash either
    free(longer);
    hash_is(right);
    hash_is(right);
    assert_non_null(only_file());
    setenv("HALLMARK_CACHE", "/proc/no/such/folder", 1); // cannot be written: no error
    hash_is(right);
    setenv("HALLMARK_CACHE", "off", 1);
}

static void test_changed_weights_are_hashed_again(void **state)
{
    (void)state;
    char first[65], second[65];
    empty_folder();
    write_tensors("model.safetensors", ONE, 8);
    char *cache = strdup(in_folder("cache"));
    setenv("HALLMARK_CACHE", cache, 1);
    struct hm_checkpoint *c = opened(folder);
    assert_int_equal(hm_checkpoint_hash(c, first, NULL), HM_OK);
    hm_checkpoint_close(c);
    assert_int_not_equal(access(cache, F_OK), 0); // too fresh to be remembered
    write_tensors("model.safetensors", TWO, 8);
    c = opened(folder);
    assert_int_equal(hm_checkpoint_hash(c, second, NULL), HM_OK);
    hm_checkpoint_close(c);
    assert_string_not_equal(first, second);
    setenv("HALLMARK_CACHE", "off", 1);
    free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_file),        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_bad_indexes),        cmocka_unit_test(test_nothing_there),
        cmocka_unit_test(test_hash_is_remembered), cmocka_unit_test(test_changed_weights_are_hashed_again),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
