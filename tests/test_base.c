// The small helpers everything stands on: errors, sizes, rationals, JSON, hashes, files.
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/rational.h"
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void messages_are_cut_between_characters(void **state)
{
    (void)state;
    struct hm_error err;
    char text[2000];
    memset(text, 'a', sizeof text);
    for (int shift = 0; shift < 4; shift++) { // a three-byte character over the end of the buffer
        memset(text, 'a', sizeof text);
        memcpy(text + sizeof err.message - 4 + shift, "\xe2\x82\xac", 3);
        text[sizeof err.message + 100] = 0;
        assert_int_equal(hm_fail(&err, HM_SHAPE, "%s", text), HM_SHAPE);
        size_t n = strlen(err.message);
        size_t whole = shift == 0 ? sizeof err.message - 1 : sizeof err.message - 4 + (size_t)shift;
        assert_int_equal(n, whole);
        for (size_t i = 0; i < n; i++) assert_true(err.message[i] == text[i]);
    }
    assert_int_equal(hm_fail(NULL, HM_IO, "nobody listens"), HM_IO);
    hm_fail(&err, HM_RANGE, "inner");
    assert_int_equal(hm_fail_prefix(&err, "outer"), HM_RANGE);
    assert_string_equal(err.message, "outer: inner");
    hm_fail(&err, HM_RANGE, "a\nb\x1b[31m\x7f");
    assert_string_equal(err.message, "a?b?[31m?");
}

static void sizes_do_not_overflow(void **state)
{
    (void)state;
    size_t out = 7;
    assert_true(hm_mul_size(1u << 20, 1u << 20, &out) && out == (size_t)1 << 40);
    assert_false(hm_mul_size(SIZE_MAX / 2, 3, &out));
    assert_false(hm_add_size(SIZE_MAX, 1, &out));
    assert_int_equal(out, (size_t)1 << 40);
    void *array = NULL;
    size_t capacity = 0;
    assert_true(hm_grow(&array, &capacity, 17, 8));
    assert_true(capacity >= 17);
    size_t before = capacity;
    assert_false(hm_grow(&array, &capacity, SIZE_MAX / 2, 8));
    assert_int_equal(capacity, before);
    free(array);
}

static void rationals_are_exact(void **state)
{
    (void)state;
    static const struct { const char *text, *canonical; } good[] = {
        {"0.1", "1/10"}, {"3/10", "3/10"}, {"6/20", "3/10"}, {"2", "2"}, {"-1.50", "-3/2"}, {"1e-3", "1/1000"},
        {"2.5e2", "250"}, {"0x1.8p+1", "3"}, {"0x1p-4", "1/16"}, {"0x.8", "1/2"}, {"0", "0"}, {".5", "1/2"}, {"5.", "5"},
        {"0.30000000000000000000000000000000000000001", "30000000000000000000000000000000000000001/"
                                                       "100000000000000000000000000000000000000000"}};
    static const char *const bad[] = {"", "a", "1/0", "1/", "/2", "1//2", "1e", "0x", "nan", "inf", "1.2.3", "1 ", " 1",
                                      "1/2/3", "0x1p", "1e99999", "0x1p99999", "--1", "1/-2", "+", ".", "1,5"};
    struct hm_rational r;
    struct hm_error err;
    hm_rational_init(&r);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(hm_rational_parse(good[i].text, &r, &err), HM_OK);
        char *text = hm_rational_text(&r);
        assert_string_equal(text, good[i].canonical);
        free(text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hm_rational_set_int(&r, 7, 1);
        assert_int_equal(hm_rational_parse(bad[i], &r, &err), HM_FORMAT);
        assert_true(hm_rational_double(&r) == 7); // untouched
    }
    hm_rational_clear(&r);
}

static void json_is_strict(void **state)
{
    (void)state;
    static const struct { const char *text, *message; } bad[] = {
        {"{\"a\":1,\"a\":2}", "t: key \"a\" appears twice in one object"},
        {"[{\"x\":{\"b\":1,\"c\":1,\"b\":1}}]", "t: key \"b\" appears twice in one object"},
        {"[\"a\\u0000b\"]", "t: byte 3: expected a string without \\u0000"},
        {"{} x", "t: byte 3: expected the end of the document, found 0x78"},
        {"\xff", "t: byte 0: expected UTF-8, found byte 0xff"},
        {"{\"a\": tru}", "t: byte 6: not valid JSON"}};
    struct hm_error err;
    cJSON *value;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(hm_json_parse("t", bad[i].text, strlen(bad[i].text), &value, &err), HM_FORMAT);
        assert_string_equal(err.message, bad[i].message);
        assert_null(value);
    }
    char deep[200];
    memset(deep, '[', 100);
    memset(deep + 100, ']', 100);
    assert_int_equal(hm_json_parse("t", deep, 200, &value, &err), HM_FORMAT);
    assert_string_equal(err.message, "t: byte 64: expected at most 64 nested values");
    static const char quoted[] = "{\"s\": \"[[[[ \\\" ]\"}";
    assert_int_equal(hm_json_parse("t", quoted, sizeof quoted - 1, &value, &err), HM_OK);
    cJSON_Delete(value);
}

static void json_lookups_name_the_key(void **state)
{
    (void)state;
    static const char text[] = "{\"n\": 3, \"f\": 1.5, \"s\": \"x\", \"z\": null, \"big\": 1e300, \"b\": true}";
    struct hm_error err;
    cJSON *value;
    const char *string;
    int64_t n;
    bool flag;
    assert_int_equal(hm_json_parse("c.json", text, sizeof text - 1, &value, &err), HM_OK);
    assert_int_equal(hm_json_integer("c.json", value, "n", 0, 9, &n, &err), HM_OK);
    assert_int_equal(n, 3);
    assert_int_equal(hm_json_integer("c.json", value, "n", 4, 9, &n, &err), HM_RANGE);
    assert_string_equal(err.message, "c.json: key \"n\": expected 4 to 9, found 3");
    assert_int_equal(hm_json_integer("c.json", value, "f", 0, 9, &n, &err), HM_FORMAT);
    assert_int_equal(hm_json_integer("c.json", value, "big", 0, 9, &n, &err), HM_FORMAT);
    assert_int_equal(hm_json_string("c.json", value, "n", &string, &err), HM_FORMAT);
    assert_string_equal(err.message, "c.json: key \"n\": expected a string, found a number");
    assert_int_equal(hm_json_bool("c.json", value, "missing", &flag, &err), HM_FORMAT);
    assert_string_equal(err.message, "c.json: key \"missing\": expected a boolean, found nothing");
    assert_null(hm_json_find(value, "z"));
    cJSON_Delete(value);
}

static void sha256_matches_fips_180(void **state)
{
    (void)state;
    uint8_t digest[HM_SHA256_BYTES];
    char hex[HM_SHA256_HEX];
    struct hm_sha256 *hash;
    assert_int_equal(hm_sha256("abc", 3, digest, NULL), HM_OK);
    hm_sha256_hex(digest, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(hm_sha256_open(&hash, NULL), HM_OK);
    assert_int_equal(hm_sha256_add(hash, "a", 1, NULL), HM_OK);
    assert_int_equal(hm_sha256_add(hash, "bc", 2, NULL), HM_OK);
    assert_int_equal(hm_sha256_finish(hash, digest, NULL), HM_OK);
    hm_sha256_close(hash);
    hm_sha256_hex(digest, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void files_are_read_whole_or_not_at_all(void **state)
{
    (void)state;
    struct hm_error err;
    struct hm_map map;
    char path[] = "/tmp/hallmark-base-XXXXXX", *text;
    size_t size;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(hm_map_open(path, &map, &err), HM_OK); // empty
    assert_true(map.data == NULL && map.size == 0);
    hm_map_close(&map);
    assert_int_equal(write(fd, "hello", 5), 5);
    close(fd);
    assert_int_equal(hm_file_read(path, 5, &text, &size, &err), HM_OK);
    assert_string_equal(text, "hello");
    assert_int_equal(size, 5);
    free(text);
    assert_int_equal(hm_file_read(path, 4, &text, &size, &err), HM_RANGE);
    assert_int_equal(hm_map_open(path, &map, &err), HM_OK);
    assert_memory_equal(map.data, "hello", 5);
    hm_map_close(&map);
    assert_true(hm_file_may_replace(path, "hell", 4));
    assert_false(hm_file_may_replace(path, "help", 4));
    assert_false(hm_file_may_replace(path, "hello you", 9)); // shorter than what it should begin with
    assert_int_equal(truncate(path, 0), 0);
    assert_true(hm_file_may_replace(path, "help", 4));
    assert_true(hm_file_may_replace("/tmp", "help", 4)); // refused when it is opened
    unlink(path);
    assert_true(hm_file_may_replace(path, "help", 4));
    assert_int_equal(hm_map_open(path, &map, &err), HM_IO);
    assert_int_equal(hm_file_read("/tmp", 5, &text, &size, &err), HM_IO);
    assert_string_equal(err.message, "/tmp: not a regular file but a folder");
    char *joined = hm_path_join("dir//", "name");
    assert_string_equal(joined, "dir/name");
    free(joined);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_cut_between_characters),
        cmocka_unit_test(sizes_do_not_overflow),
        cmocka_unit_test(rationals_are_exact),
        cmocka_unit_test(json_is_strict),
        cmocka_unit_test(json_lookups_name_the_key),
        cmocka_unit_test(sha256_matches_fips_180),
        cmocka_unit_test(files_are_read_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
