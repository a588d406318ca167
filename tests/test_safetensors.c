// Reading safetensors files: what a good one yields, and every way in which one can be bad with the exact message.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/safetensors.h"
#include "tests/temporary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Writes a file of a header, given length field and `data` bytes of data 0, 1, 2, ...
static void write_file(uint64_t length, const char *header, size_t header_size, size_t data)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(&length, 1, sizeof length, f);
    fwrite(header, 1, header_size, f);
    for (size_t i = 0; i < data; i++) fputc((int)(i & 255), f);
    assert_int_equal(fclose(f), 0);
}

static void test_good_file(void **state)
{
    (void)state;
    const char *header = "{\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[8,20]},"
                         "\"__metadata__\":{\"format\":\"pt\"},"
                         "\"a\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
                         "\"none\":{\"dtype\":\"F32\",\"shape\":[4,0],\"data_offsets\":[20,20]},"
                         "\"packed\":{\"dtype\":\"F4\",\"shape\":[2,2],\"data_offsets\":[20,22]}}   ";
    struct hm_safetensors *file;
    struct hm_error err = {0};
    enum hm_dtype dtype;
    write_file(strlen(header), header, strlen(header), 22);
    assert_int_equal(hm_safetensors_open(path, &file, &err), HM_OK);
    assert_string_equal(hm_safetensors_path(file), path);
    assert_int_equal(hm_safetensors_count(file), 4);
    assert_string_equal(hm_safetensors_at(file, 0)->name, "a");
    assert_string_equal(hm_safetensors_at(file, 3)->name, "packed");
    assert_null(hm_safetensors_at(file, 4));
    assert_null(hm_safetensors_find(file, "c"));
    const struct hm_tensor *b = hm_safetensors_find(file, "b");
    assert_non_null(b);
    assert_int_equal(b->rank, 2);
    assert_int_equal(b->shape[1], 3);
    assert_int_equal(b->bytes, 12);
    assert_int_equal(b->data[0], 8);
    assert_int_equal(hm_tensor_dtype(b, path, &dtype, &err), HM_OK);
    assert_int_equal(dtype, HM_BF16);
    assert_int_equal(hm_safetensors_find(file, "none")->bytes, 0);
    assert_int_equal(hm_tensor_dtype(hm_safetensors_find(file, "a"), "F", &dtype, &err), HM_UNSUPPORTED);
    assert_string_equal(err.message, "F: tensor \"a\": expected type F32, F16 or BF16, found I64");
    hm_safetensors_close(file);
    hm_safetensors_close(NULL);
}

// Headers with 8 bytes of data behind them; F in a message stands for the path.
static const struct {
    const char *header, *message;
    hm_status status;
} bad[] = {
    {"", "F: expected a header that begins with '{', found nothing", HM_FORMAT},
    {" {}", "F: expected a header that begins with '{', found another byte", HM_FORMAT},
    {"[]", "F: expected a header that begins with '{', found another byte", HM_FORMAT},
    {"{", "F: byte 0: not valid JSON", HM_FORMAT},
    {"{}", "F: expected 0 bytes of data as the header says, found 8", HM_FORMAT},
    {"{} x", "F: byte 3: expected the end of the document, found 0x78", HM_FORMAT},
    {"{\"a\":3}", "F: tensor \"a\": expected an object, found a number", HM_FORMAT},
    {"{\"a\":{}}", "F: tensor \"a\": expected a string at \"dtype\", found nothing", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"F33\"}}", "F: tensor \"a\": expected a type of the format, found \"F33\"", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"F32\"}}", "F: tensor \"a\": expected an array at \"shape\", found nothing", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.5],\"data_offsets\":[0,8]}}",
     "F: tensor \"a\": expected sizes in \"shape\", found another number at place 0", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,-2],\"data_offsets\":[0,8]}}",
     "F: tensor \"a\": expected sizes in \"shape\", found another number at place 1", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1e300],\"data_offsets\":[0,8]}}",
     "F: tensor \"a\": expected sizes in \"shape\", found another number at place 0", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[\"2\"],\"data_offsets\":[0,8]}}",
     "F: tensor \"a\": expected sizes in \"shape\", found a string at place 0", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}",
     "F: tensor \"a\": expected at most 8 dimensions, found more", HM_UNSUPPORTED},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}",
     "F: tensor \"a\": expected two sizes at \"data_offsets\", found nothing", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,9]}}",
     "F: tensor \"a\": expected two sizes at \"data_offsets\", found another array", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}",
     "F: tensor \"a\": expected data_offsets inside 8 bytes of data, found [8, 0]", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,9]}}",
     "F: tensor \"a\": expected data_offsets inside 8 bytes of data, found [0, 9]", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}",
     "F: tensor \"a\": expected 12 bytes for F32 [3], found 8", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,8]}}",
     "F: tensor \"a\": expected 4 bytes for F32 [], found 8", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
     "F: tensor \"a\": expected a shape of whole bytes that fits in memory, found F32 [4294967296, 4294967296]",
     HM_FORMAT},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}",
     "F: tensor \"a\": expected a shape of whole bytes that fits in memory, found F4 [3]", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
     "F: expected 4 bytes of data as the header says, found 8", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
     "F: tensor \"a\": expected data from byte 0 on (a hole), found from 4", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[0,6]},\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_"
     "offsets\":[5,8]}}",
     "F: tensor \"b\": expected data from byte 6 on (ranges overlap), found from 5", HM_FORMAT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_"
     "offsets\":[8,8]}}",
     "F: key \"a\" appears twice in one object", HM_FORMAT},
    {"{\"\":{}}", "F: expected tensor names of 1 to 512 bytes, found 0", HM_FORMAT},
    {"{\"a\\n\":{}}", "F: expected printable tensor names, found byte 0x0a", HM_FORMAT},
    {"{\"__metadata__\":[]}", "F: key \"__metadata__\": expected an object, found an array", HM_FORMAT},
    {"{\"__metadata__\":{\"a\":1}}", "F: key \"__metadata__\": expected strings, found a number", HM_FORMAT},
};

static void refused(const char *header, hm_status status, const char *message)
{
    struct hm_safetensors *file;
    struct hm_error err = {0};
    char expected[1100];
    snprintf(expected, sizeof expected, "%s%s", path, message + 1);
    assert_int_equal(hm_safetensors_open(path, &file, &err), status);
    if (strcmp(err.message, expected) != 0) fail_msg("%s\nexpected: %s\nfound:    %s", header, expected, err.message);
    assert_null(file);
}

static void test_bad_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(strlen(bad[i].header), bad[i].header, strlen(bad[i].header), 8);
        refused(bad[i].header, bad[i].status, bad[i].message);
    }
}

static void test_bad_lengths(void **state)
{
    (void)state;
    struct hm_safetensors *file;
    struct hm_error err = {0};
    write_file(11, "{}", 2, 8);
    refused("length beyond the file", HM_FORMAT, "F: expected a header of at most 10 bytes, found a length of 11");
    write_file(UINT64_MAX, "{}", 2, 8);
    refused("length that overflows", HM_FORMAT,
            "F: expected a header of at most 10 bytes, found a length of 18446744073709551615");
    assert_int_equal(truncate(path, 7), 0);
    refused("seven bytes", HM_FORMAT, "F: expected at least 8 bytes, found 7");
    assert_int_equal(truncate(path, 0), 0);
    refused("nothing", HM_FORMAT, "F: expected at least 8 bytes, found 0");
    write_file(100000001, "{", 1, 8);
    assert_int_equal(truncate(path, 200000000), 0); // sparse
    refused("100 MB and one", HM_FORMAT,
            "F: expected a header of at most 100000000 bytes, found a length of 100000001");
    assert_int_equal(hm_safetensors_open("tests/data", &file, &err), HM_IO);
    assert_string_equal(err.message, "tests/data: not a regular file but a folder");
    assert_int_equal(hm_safetensors_open("tests/data/absent", &file, &err), HM_IO);
    assert_string_equal(err.message, "tests/data/absent: cannot open: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_file),
        cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_bad_lengths),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
