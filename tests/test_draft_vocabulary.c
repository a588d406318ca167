// Ids of a draft's columns: the three forms say the same, and every way in which one can be wrong has its message.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/draft_vocabulary.h"
#include "tests/seed.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static void write_file(const void *head, size_t head_size, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(head, 1, head_size, f);
    fwrite(data, 1, size, f);
    assert_int_equal(fclose(f), 0);
}

static void write_text(const char *text)
{
    write_file(text, strlen(text), "", 0);
}

static void write_npy(const char *type, const char *shape, const void *data, size_t size)
{
    char head[200];
    int n = snprintf(head + 10, sizeof head - 10, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    memcpy(head, "\x93NUMPY\x01\0", 8);
    head[8] = (char)n;
    head[9] = 0;
    write_file(head, 10 + (size_t)n, data, size);
}

static void write_tensor(const char *name, const char *type, const char *shape, const void *data, size_t size)
{
    char head[300];
    int n = snprintf(head + 8, sizeof head - 8, "{\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[0,%zu]}}", name, type,
                     shape, size);
    uint64_t length = (uint64_t)n;
    memcpy(head, &length, 8);
    write_file(head, 8 + (size_t)n, data, size);
}

// 3 columns of a vocabulary of 10; F in a message stands for the path.
static void assert_refused(hm_status status, const char *message)
{
    int32_t *ids;
    struct hm_error err = {.message = ""};
    char expected[1200];
    snprintf(expected, sizeof expected, "%s%s", path, message + 1);
    assert_int_equal(hm_draft_vocabulary_read(path, 3, 10, &ids, &err), status);
    assert_null(ids);
    assert_string_equal(err.message, expected);
}

static void test_json(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        hm_status status;
    } bad[] = {
        {"", "F: byte 0: not valid JSON", HM_FORMAT},
        {"{}", "F: expected an array of ids, found an object", HM_FORMAT},
        {"[1,2]", "F: expected 3 ids, one for each column of the draft's rows, found 2", HM_SHAPE},
        {"[1,2,3,4]", "F: expected 3 ids, one for each column of the draft's rows, found 4", HM_SHAPE},
        {"[1,2,10]", "F: column 2: expected a target id below 10, found 10", HM_RANGE},
        {"[1,-2,3]", "F: column 1: expected a target id below 10, found -2", HM_RANGE},
        {"[1,2,1]", "F: column 2: expected an id of its own, found 1, which column 0 has", HM_RANGE},
        {"[1,2.5,3]", "F: column 1: expected an id, found another number", HM_FORMAT},
        {"[1,1e300,3]", "F: column 1: expected an id, found another number", HM_FORMAT},
        {"[1,\"2\",3]", "F: column 1: expected an id, found a string", HM_FORMAT},
        {"[1,2,3] 4", "F: byte 8: expected the end of the document, found 0x34", HM_FORMAT},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text(bad[i].text);
        assert_refused(bad[i].status, bad[i].message);
    }
    unlink(path);
    assert_refused(HM_IO, "F: cannot open: No such file or directory");
}

static void test_npy(void **state)
{
    (void)state;
    int64_t good[4] = {7, 0, 3, 1}, low[3] = {7, 0, -1};
    uint64_t large[3] = {7, UINT64_MAX, 0};
    float floats[3] = {0, 1, 2};
    write_npy("<i8", "(4,)", good, 32);
    assert_refused(HM_SHAPE, "F: expected 3 ids, one for each column of the draft's rows, found 4");
    write_npy("<i8", "(3,)", low, 24);
    assert_refused(HM_RANGE, "F: column 2: expected a target id below 10, found -1");
    write_npy("<u8", "(3,)", large, 24);
    assert_refused(HM_RANGE, "F: column 1: expected a target id below 10, found -1");
    write_npy("<f4", "(3,)", floats, 12);
    assert_refused(HM_SHAPE, "F: expected integers in one dimension, found 1 dimensions of type '<f4'");
    write_npy("<i8", "(1, 3)", good, 24);
    assert_refused(HM_SHAPE, "F: expected integers in one dimension, found 2 dimensions of type '<i8'");
    write_npy("<i8", "(3,)", good, 23);
    assert_refused(HM_FORMAT, "F: expected 24 bytes of data for shape [3] of 8-byte numbers, found 23");
}

static void test_offsets(void **state)
{
    (void)state;
    int64_t good[3] = {0, 4, 7}, same[3] = {1, 0, 0}, far[3] = {0, INT64_MAX, 0}, below[3] = {-1, 0, 0};
    write_tensor("d2t", "I64", "[2]", good, 16);
    assert_refused(HM_SHAPE, "F: expected 3 ids, one for each column of the draft's rows, found 2");
    write_tensor("d2t", "I64", "[3]", same, 24);
    assert_refused(HM_RANGE, "F: column 1: expected an id of its own, found 1, which column 0 has");
    write_tensor("d2t", "I64", "[3]", far, 24);
    assert_refused(HM_RANGE, "F: column 1: expected a target id below 10, found 9223372036854775807");
    write_tensor("d2t", "I64", "[3]", below, 24);
    assert_refused(HM_RANGE, "F: column 0: expected a target id below 10, found -1");
    write_tensor("t2d", "I64", "[3]", good, 24);
    assert_refused(HM_FORMAT, "F: expected a tensor \"d2t\", found none");
    write_tensor("d2t", "F32", "[6]", good, 24);
    assert_refused(HM_SHAPE, "F: tensor \"d2t\": expected I64 or I32 in one dimension, found F32 in 1");
    write_tensor("d2t", "I64", "[1,3]", good, 24);
    assert_refused(HM_SHAPE, "F: tensor \"d2t\": expected I64 or I32 in one dimension, found I64 in 2");
}

// Random subsets in every form and type give the same ids.
static void test_forms(void **state)
{
    (void)state;
    uint64_t r = test_seed("forms");
    for (size_t round = 0; round < test_count(20, 200, 5000); round++) {
        size_t vocab = 2 + test_below(&r, 120), n = 1 + test_below(&r, vocab);
        int32_t id[128], offset[128], *found;
        int64_t wide[128], wide_offset[128];
        uint8_t narrow[128];
        char text[1024] = "[", shape[32], list[32];
        for (size_t i = 0; i < vocab; i++) id[i] = (int32_t)i;
        for (size_t i = 0; i < n; i++) { // a random arrangement
            size_t j = i + test_below(&r, vocab - i);
            int32_t t = id[i];
            id[i] = id[j];
            id[j] = t;
            wide[i] = id[i];
            narrow[i] = (uint8_t)id[i];
            offset[i] = id[i] - (int32_t)i;
            wide_offset[i] = offset[i];
            sprintf(text + strlen(text), "%s%d", i ? " , " : "", id[i]);
        }
        strcat(text, "]\n");
        snprintf(shape, sizeof shape, "(%zu,)", n);
        snprintf(list, sizeof list, "[%zu]", n);
        for (int form = 0; form < 6; form++) {
            struct hm_error err = {.message = ""};
            if (form == 0) write_text(text);
            if (form == 1) write_npy("<i4", shape, id, 4 * n);
            if (form == 2) write_npy("<i8", shape, wide, 8 * n);
            if (form == 3) write_npy("|u1", shape, narrow, n);
            if (form == 4) write_tensor("d2t", "I64", list, wide_offset, 8 * n);
            if (form == 5) write_tensor("d2t", "I32", list, offset, 4 * n);
            if (hm_draft_vocabulary_read(path, n, vocab, &found, &err)) fail_msg("form %d: %s", form, err.message);
            assert_memory_equal(found, id, n * sizeof *id);
            free(found);
        }
    }
}

static int make_path(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/hallmark-ids-XXXXXX");
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_json), cmocka_unit_test(test_npy),
                                       cmocka_unit_test(test_offsets), cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
