// Row files: what good .npy and .safetensors files yield, bit for bit, and every way in which one can be bad, with the
// exact message.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/npy.h"
#include "decode/row_file.h"
#include "tests/seed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static void begin_file(FILE **f)
{
    *f = fopen(path, "wb");
    assert_non_null(*f);
}

// A .npy file of the given version whose header is this text, without padding.
static void write_npy(int version, const char *header, const void *data, size_t size)
{
    FILE *f;
    size_t n = strlen(header);
    begin_file(&f);
    fwrite("\x93NUMPY", 1, 6, f);
    fputc(version, f);
    fputc(0, f);
    for (int i = 0; i < (version == 1 ? 2 : 4); i++) fputc((int)(n >> 8 * i & 255), f);
    fwrite(header, 1, n, f);
    fwrite(data, 1, size, f);
    assert_int_equal(fclose(f), 0);
}

static void write_safetensors(const char *header, const void *data, size_t size)
{
    FILE *f;
    uint64_t n = strlen(header);
    begin_file(&f);
    fwrite(&n, 1, sizeof n, f);
    fwrite(header, 1, (size_t)n, f);
    fwrite(data, 1, size, f);
    assert_int_equal(fclose(f), 0);
}

static struct hm_row_file *open_good(const char *tensor)
{
    struct hm_row_file *file;
    struct hm_error err = {.message = ""};
    if (hm_row_file_open(path, tensor, &file, &err)) fail_msg("%s", err.message);
    return file;
}

// F in a message stands for the path.
static void assert_refused(const char *tensor, hm_status status, const char *message)
{
    struct hm_row_file *file;
    struct hm_error err = {.message = ""};
    char expected[1200] = "";
    const char *rest = message;
    if (strncmp(message, "F:", 2) == 0) {
        snprintf(expected, sizeof expected, "%s", path);
        rest++;
    }
    strcat(expected, rest);
    assert_int_equal(hm_row_file_open(path, tensor, &file, &err), status);
    assert_null(file);
    assert_string_equal(err.message, expected);
}

#define NPY(type, shape) "{'descr': '" type "', 'fortran_order': False, 'shape': " shape ", }     \n"

static const struct {
    const char *header, *message;
    size_t data;
    hm_status status;
} bad_npy[] = {
    {"", "F: header, byte 0: expected '{', found its end", 0, HM_FORMAT},
    {"[1]", "F: header, byte 0: expected '{', found '['", 0, HM_FORMAT},
    {"{", "F: header, byte 1: expected a string, found its end", 0, HM_FORMAT},
    {"{}", "F: header: expected the key \"descr\", found none", 0, HM_FORMAT},
    {"{'descr': '<f4', 'fortran_order': False}", "F: header: expected the key \"shape\", found none", 0, HM_FORMAT},
    {"{'descr': '<f4', 'descr': '<f4'}",
     "F: header: expected the keys descr, fortran_order and shape once each, found \"descr\" twice", 0, HM_FORMAT},
    {"{'type': '<f4'}", "F: header: expected the keys descr, fortran_order and shape once each, found \"type\"", 0,
     HM_FORMAT},
    {"{'descr' '<f4'}", "F: header, byte 9: expected ':', found '''", 0, HM_FORMAT},
    {"{'descr': '<f4' 'shape': (2,)}", "F: header, byte 16: expected '}', found '''", 0, HM_FORMAT},
    {"{'descr': '<f4\x01', }", "F: header, byte 10: expected a short string, found '''", 0, HM_FORMAT},
    {"{'descr': '<f4", "F: header, byte 10: expected a short string, found '''", 0, HM_FORMAT},
    {"{'descr': [('a', '<f4')], }", "F: expected an array of numbers, found an array of records", 0, HM_UNSUPPORTED},
    {NPY(">f4", "(1, 2)"), "F: expected little-endian numbers, found type '>f4'", 8, HM_UNSUPPORTED},
    {NPY("|V2", "(1, 2)"), "F: expected numbers, such as type '<f4' or '<i8', found type '|V2'", 4, HM_UNSUPPORTED},
    {NPY("<f16", "(1, 2)"), "F: expected numbers, such as type '<f4' or '<i8', found type '<f16'", 32, HM_UNSUPPORTED},
    {NPY("<c8", "(1, 2)"), "F: expected numbers, such as type '<f4' or '<i8', found type '<c8'", 16, HM_UNSUPPORTED},
    {NPY("", "(1, 2)"), "F: expected numbers, such as type '<f4' or '<i8', found type ''", 8, HM_UNSUPPORTED},
    {NPY("<i4", "(1, 2)"), "F: expected floats of 16 or 32 bits, found type '<i4'", 8, HM_UNSUPPORTED},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2)}",
     "F: expected C order, found Fortran order (save numpy.ascontiguousarray(x))", 8, HM_UNSUPPORTED},
    {"{'descr': '<f4', 'fortran_order': 0}", "F: header, byte 34: expected True or False, found '0'", 0, HM_FORMAT},
    {NPY("<f4", "(2)"), "F: header, byte 52: expected ',', found ')'", 8, HM_FORMAT},
    {NPY("<f4", "2"), "F: header, byte 50: expected '(', found '2'", 8, HM_FORMAT},
    {NPY("<f4", "(-1, 2)"), "F: header, byte 51: expected a size, found '-'", 8, HM_FORMAT},
    {NPY("<f4", "(1, 2 3)"), "F: header, byte 56: expected ')', found '3'", 8, HM_FORMAT},
    {NPY("<f4", "(99999999999999999999, 2)"), "F: header: expected sizes below 2^64 in \"shape\"", 8, HM_FORMAT},
    {NPY("<f4", "(1,1,1,1,1,1,1,1,2)"), "F: header: expected at most 8 dimensions, found more", 8, HM_UNSUPPORTED},
    {NPY("<f4", "(9223372036854775807, 9223372036854775807)"),
     "F: expected a shape that fits in memory, found [9223372036854775807, 9223372036854775807]", 8, HM_FORMAT},
    {NPY("<f4", "(2, 2)"), "F: expected 16 bytes of data for shape [2, 2] of 4-byte numbers, found 12", 12, HM_FORMAT},
    {NPY("<f4", "(1, 2)"), "F: expected 8 bytes of data for shape [1, 2] of 4-byte numbers, found 12", 12, HM_FORMAT},
    {NPY("<f4", "(0, 2)"), "F: expected 0 bytes of data for shape [0, 2] of 4-byte numbers, found 4", 4, HM_FORMAT},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)} x",
     "F: header, byte 58: expected nothing after the dictionary, found 'x'", 8, HM_FORMAT},
    {NPY("<f4", "()"), "F: expected shape [rows, vocabulary], found []", 4, HM_SHAPE},
    {NPY("<f4", "(2, 1, 2)"), "F: expected shape [rows, vocabulary], found [2, 1, 2]", 16, HM_SHAPE},
    {NPY("<f4", "(3, 1)"), "F: expected a vocabulary of at least 2, found [3, 1]", 12, HM_SHAPE},
    {NPY("<f4", "(3, 0)"), "F: expected a vocabulary of at least 2, found [3, 0]", 0, HM_SHAPE},
};

static void test_bad_npy(void **state)
{
    (void)state;
    uint8_t data[64] = {0};
    for (size_t i = 0; i < sizeof bad_npy / sizeof *bad_npy; i++)
        for (int version = 1; version <= 3; version++) {
            write_npy(version, bad_npy[i].header, data, bad_npy[i].data);
            assert_refused(NULL, bad_npy[i].status, bad_npy[i].message);
        }
    write_npy(4, NPY("<f4", "(1, 2)"), data, 8);
    assert_refused(NULL, HM_UNSUPPORTED, "F: expected version 1, 2 or 3 of the format, found 4");
    write_npy(0, NPY("<f4", "(1, 2)"), data, 8);
    assert_refused(NULL, HM_UNSUPPORTED, "F: expected version 1, 2 or 3 of the format, found 0");
}

// Every shorter piece of a good file is refused.
static void test_truncated(void **state)
{
    (void)state;
    uint8_t whole[256];
    float data[4] = {1, 2, 3, 4};
    for (int version = 1; version <= 2; version++) {
        write_npy(version, NPY("<f4", "(2, 2)"), data, sizeof data);
        FILE *f = fopen(path, "rb");
        size_t size = fread(whole, 1, sizeof whole, f);
        fclose(f);
        for (size_t cut = 0; cut < size; cut++) {
            struct hm_row_file *file;
            struct hm_error err = {.message = ""};
            begin_file(&f);
            fwrite(whole, 1, cut, f);
            fclose(f);
            assert_int_equal(hm_row_file_open(path, NULL, &file, &err), HM_FORMAT);
            assert_true(strlen(err.message) > strlen(path));
        }
    }
}

static void test_other_files(void **state)
{
    (void)state;
    uint8_t data[64] = {0};
    FILE *f;
    begin_file(&f);
    fputs("PK\3\4 and more", f);
    fclose(f);
    assert_refused(NULL, HM_UNSUPPORTED,
                   "F: expected a .npy or a .safetensors file, found a zip archive (.npz, .pt): save one array with numpy.save");
    begin_file(&f);
    fclose(f);
    assert_refused(NULL, HM_FORMAT, "F: expected a .npy or a .safetensors file, found an empty file");
    begin_file(&f);
    fputs("row,logit\n0,1.5\n", f);
    fclose(f);
    assert_refused(NULL, HM_FORMAT, "F: expected a .npy or a .safetensors file, found another kind of file");
    write_safetensors("{\"l\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}", data, 8);
    assert_refused(NULL, HM_FORMAT, "F: expected a tensor \"logits\", found 1 others, the first \"l\" (--tensor NAME)");
    write_safetensors("{\"logits\":{\"dtype\":\"I64\",\"shape\":[1,2],\"data_offsets\":[0,16]}}", data, 16);
    assert_refused(NULL, HM_UNSUPPORTED, "F: tensor \"logits\": expected type F32, F16 or BF16, found I64");
    write_safetensors("{\"l\":{\"dtype\":\"F32\",\"shape\":[2,1,2],\"data_offsets\":[0,16]}}", data, 16);
    assert_refused("l", HM_SHAPE, "F: tensor \"l\": expected shape [rows, vocabulary], found [2, 1, 2]");
    unlink(path);
    assert_refused(NULL, HM_IO, "F: cannot open: No such file or directory");
}

static void assert_row(struct hm_row_file *file, size_t row, const float *expected)
{
    struct hm_row_file_info info = hm_row_file_info(file);
    float *found = calloc(info.vocab, sizeof *found);
    hm_row_file_read(file, row, found);
    assert_memory_equal(found, expected, info.vocab * sizeof *found);
    free(found);
}

// Random rows in each type and shape that means [rows, vocab], read in a random order.
static void test_round_trip(void **state)
{
    (void)state;
    static const char *const shape[] = {"(%zu, %zu)", "(1, %zu, %zu)", "(1, 1, %zu, %zu)", "(%zuL, %zuL)", "(%zu,%zu,)"};
    uint64_t r = test_seed("round_trip");
    for (size_t n = 0; n < test_count(50, 300, 30000); n++) {
        size_t rows = 1 + test_below(&r, 5), vocab = 2 + test_below(&r, 40), kind = test_below(&r, 3), count = rows * vocab;
        char sizes[80], header[200];
        float *values = calloc(count, sizeof *values);
        uint16_t *halves = calloc(count, sizeof *halves);
        double *doubles = calloc(count, sizeof *doubles);
        for (size_t i = 0; i < count; i++) {
            uint32_t bits = (uint32_t)test_random(&r);
            if (kind == 1) { // a bf16 pattern: the float is its upper half
                halves[i] = (uint16_t)bits;
                bits = (uint32_t)halves[i] << 16;
            }
            memcpy(&values[i], &bits, sizeof bits);
            if (isnan(values[i]) && kind == 2) values[i] = -INFINITY;
            doubles[i] = (double)values[i];
        }
        if (kind == 1) {
            snprintf(header, sizeof header, "{\"x\":{\"dtype\":\"BF16\",\"shape\":[%zu,%zu],\"data_offsets\":[0,%zu]}}", rows,
                     vocab, 2 * count);
            write_safetensors(header, halves, 2 * count);
        } else {
            snprintf(sizes, sizeof sizes, shape[test_below(&r, 5)], rows, vocab);
            snprintf(header, sizeof header, "{\"shape\": %s, 'fortran_order': False, 'descr':'<f%d'}", sizes, kind ? 8 : 4);
            write_npy(1 + (int)test_below(&r, 3), header, kind ? (void *)doubles : (void *)values, count * (kind ? 8 : 4));
        }
        struct hm_row_file *file = open_good("x");
        struct hm_row_file_info info = hm_row_file_info(file);
        assert_int_equal(info.rows, rows);
        assert_int_equal(info.vocab, vocab);
        assert_string_equal(info.type, kind == 0 ? "F32" : kind == 1 ? "BF16" : "F64");
        assert_string_equal(info.name, strrchr(path, '/') + 1);
        for (size_t i = 0; i < 2 * rows; i++) {
            size_t row = test_below(&r, rows);
            assert_row(file, row, values + row * vocab);
        }
        hm_row_file_close(file);
        free(values);
        free(halves);
        free(doubles);
    }
    hm_row_file_close(NULL);
}

// Every binary16, against its definition.
static void test_every_half(void **state)
{
    (void)state;
    uint16_t *halves = calloc(65536, sizeof *halves);
    float *found = calloc(65536, sizeof *found);
    for (size_t i = 0; i < 65536; i++) halves[i] = (uint16_t)i;
    write_npy(1, NPY("<f2", "(65536,)"), halves, 131072);
    struct hm_row_file *file = open_good(NULL);
    assert_int_equal(hm_row_file_info(file).rows, 1);
    assert_string_equal(hm_row_file_info(file).type, "F16");
    hm_row_file_read(file, 0, found);
    for (unsigned i = 0; i < 65536; i++) {
        int exponent = (int)(i >> 10 & 31), fraction = (int)(i & 1023);
        double value = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
        if (exponent == 31) value = fraction ? (double)NAN : (double)INFINITY;
        if (i & 0x8000) value = -value;
        if (isnan(value)) assert_true(isnan(found[i]));
        else assert_true((double)found[i] == value && !signbit(found[i]) == !(i & 0x8000));
    }
    hm_row_file_close(file);
    free(halves);
    free(found);
}

static void test_doubles(void **state)
{
    (void)state;
    double good[4] = {(double)0.1f, -INFINITY, NAN, 0x1p-149}, bad[4] = {1, 2, 0.1, 4}, large[2] = {1, 1e300};
    float row[2];
    write_npy(1, NPY("<f8", "(2, 2)"), good, sizeof good);
    struct hm_row_file *file = open_good(NULL);
    hm_row_file_read(file, 1, row);
    assert_true(isnan(row[0]) && row[1] == 0x1p-149f);
    hm_row_file_close(file);
    write_npy(1, NPY("<f8", "(2, 2)"), bad, sizeof bad);
    assert_refused(NULL, HM_UNSUPPORTED,
                   "F: row 1, logit 0: expected float32 values in an array of float64, found 0.10000000000000001 (save "
                   "x.astype('float32'), and certify what that rounds to)");
    write_npy(1, NPY("<f8", "(1, 2)"), large, sizeof large);
    assert_refused(NULL, HM_UNSUPPORTED,
                   "F: row 0, logit 1: expected float32 values in an array of float64, found 1.0000000000000001e+300 (save "
                   "x.astype('float32'), and certify what that rounds to)");
}

static void test_hash_and_empty(void **state)
{
    (void)state;
    char hex[HM_SHA256_HEX];
    struct hm_error err;
    write_npy(1, NPY("<f4", "(0, 5)"), "", 0);
    struct hm_row_file *file = open_good(NULL);
    assert_int_equal(hm_row_file_info(file).rows, 0);
    assert_int_equal(hm_row_file_info(file).vocab, 5);
    assert_int_equal(hm_row_file_hash(file, hex, &err), HM_OK);
    hm_row_file_close(file);
    char command[200], expected[80] = "";
    snprintf(command, sizeof command, "sha256sum %s", path);
    FILE *f = popen(command, "r");
    assert_int_equal(fscanf(f, "%64s", expected), 1);
    pclose(f);
    assert_string_equal(hex, expected);
}

// Reading a file of 96 MiB twice keeps little of it in memory.
static void test_memory(void **state)
{
    (void)state;
    enum { VOCAB = 1 << 20, ROWS = 24 };
    size_t size = (size_t)VOCAB * ROWS * sizeof(float), most = 0;
    char header[200];
    snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", ROWS, VOCAB);
    write_npy(1, header, "", 0);
    struct hm_error err;
    struct hm_row_file *file;
    assert_int_equal(hm_row_file_open(path, NULL, &file, &err), HM_FORMAT); // not there yet
    assert_int_equal(truncate(path, (off_t)(10 + strlen(header) + size)), 0);
    file = open_good(NULL);
    float *row = calloc(VOCAB, sizeof *row);
    for (size_t i = 0; i < 2 * ROWS; i++) {
        size_t total, resident = 0;
        hm_row_file_read(file, i % ROWS, row);
        FILE *f = fopen("/proc/self/statm", "r");
        assert_int_equal(fscanf(f, "%zu %zu %zu", &total, &total, &resident), 3); // the third: pages of files
        fclose(f);
        if (resident > most) most = resident;
    }
    print_message("at most %zu MiB of files in memory\n", most * (size_t)sysconf(_SC_PAGESIZE) >> 20);
    assert_true(most * (size_t)sysconf(_SC_PAGESIZE) < size / 2);
    free(row);
    hm_row_file_close(file);
}

static int make_path(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/hallmark-rows-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    (void)unlink(path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_npy),    cmocka_unit_test(test_truncated), cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_every_half), cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_hash_and_empty), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
