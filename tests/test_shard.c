// Row shards: what a reader finds at every moment, and errors that name the file.
#include "certify/shard.h"

#include "base/file.h"
#include "base/json.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { VOCAB = 10 };

static char folder[] = "/tmp/hm-shard-XXXXXX", path[256];

static const char *in_folder(const char *name)
{
    static char text[512];
    snprintf(text, sizeof text, "%s/%s", folder, name);
    return text;
}

static int set_up(void **unused)
{
    (void)unused;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/run.jsonl", folder);
    return 0;
}

static int tear_down(void **unused)
{
    char command[128];
    (void)unused;
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command) == 0 ? 0 : -1;
}

static void fill(float row[VOCAB], int number)
{
    for (int i = 0; i < VOCAB; i++) row[i] = (float)(number * 100 + i) / 8;
}

// Reads a shard as any safetensors reader would; returns how many rows its header declares.
static size_t check_shard(const char *name, int first, size_t written)
{
    struct hm_map map;
    struct hm_error err;
    cJSON *header;
    uint64_t length;
    const cJSON *logits, *shape, *offsets;
    assert_int_equal(hm_map_open(in_folder(name), &map, &err), HM_OK);
    assert_true(map.size >= 8);
    memcpy(&length, map.data, 8);
    assert_true(8 + length <= map.size);
    assert_int_equal(map.data[8], '{');
    assert_int_equal(hm_json_parse(name, (const char *)map.data + 8, length, &header, &err), HM_OK);
    assert_int_equal(cJSON_GetArraySize(header), 1);
    assert_int_equal(hm_json_object(name, header, "logits", &logits, &err), HM_OK);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(logits, "dtype")->valuestring, "F32");
    assert_int_equal(hm_json_array(name, logits, "shape", &shape, &err), HM_OK);
    assert_int_equal(hm_json_array(name, logits, "data_offsets", &offsets, &err), HM_OK);
    size_t rows = (size_t)shape->child->valuedouble;
    assert_int_equal((int)shape->child->next->valuedouble, VOCAB);
    assert_int_equal((int)offsets->child->valuedouble, 0);
    assert_true(offsets->child->next->valuedouble == (double)(rows * VOCAB * 4));
    assert_int_equal(map.size, 8 + length + rows * VOCAB * 4);
    assert_true(written <= rows);
    for (size_t i = 0; i < written; i++) {
        float row[VOCAB];
        fill(row, first + (int)i);
        assert_memory_equal(map.data + 8 + length + i * sizeof row, row, sizeof row);
    }
    cJSON_Delete(header);
    hm_map_close(&map);
    return rows;
}

static struct hm_shard_writer *open_writer(uint64_t limit)
{
    struct hm_shard_writer *writer;
    struct hm_error err;
    assert_int_equal(hm_shard_open(path, "target", VOCAB, limit, &writer, &err), HM_OK);
    return writer;
}

static void append(struct hm_shard_writer *writer, int number)
{
    float row[VOCAB];
    struct hm_error err;
    fill(row, number);
    assert_int_equal(hm_shard_append(writer, row, &err), HM_OK);
}

// After every append, all rows so far can be read although the writer is still at work.
static void rows_are_readable_at_once(void **unused)
{
    (void)unused;
    struct hm_shard_writer *writer = open_writer(1 << 30);
    assert_string_equal(hm_shard_pattern(writer), "run.jsonl.target-%05d.safetensors");
    assert_int_equal(hm_shard_capacity(writer), ((1u << 30) - HM_SHARD_HEADER) / (VOCAB * 4));
    assert_int_not_equal(access(in_folder("run.jsonl.target-00000.safetensors"), F_OK), 0);
    for (int i = 0; i < 5; i++) {
        append(writer, i);
        assert_int_equal(check_shard("run.jsonl.target-00000.safetensors", 0, (size_t)i + 1),
                         hm_shard_capacity(writer));
    }
    struct stat st;
    assert_int_equal(stat(in_folder("run.jsonl.target-00000.safetensors"), &st), 0);
    assert_true(st.st_size > 1 << 29 && st.st_size <= 1 << 30);
    assert_true(st.st_blocks * 512 < 1 << 20); // sparse
    assert_int_equal(hm_shard_close(writer, NULL), HM_OK);
    assert_int_equal(check_shard("run.jsonl.target-00000.safetensors", 0, 5), 5);
}

static void full_shards_are_followed_by_new_ones(void **unused)
{
    (void)unused;
    struct hm_shard_writer *writer = open_writer(HM_SHARD_HEADER + 3 * VOCAB * 4 + 39);
    assert_int_equal(hm_shard_capacity(writer), 3);
    for (int i = 0; i < 7; i++) append(writer, i);
    assert_int_equal(hm_shard_close(writer, NULL), HM_OK);
    assert_int_equal(check_shard("run.jsonl.target-00000.safetensors", 0, 3), 3);
    assert_int_equal(check_shard("run.jsonl.target-00001.safetensors", 3, 3), 3);
    assert_int_equal(check_shard("run.jsonl.target-00002.safetensors", 6, 1), 1);
    assert_int_not_equal(access(in_folder("run.jsonl.target-00003.safetensors"), F_OK), 0);
}

static void a_shard_holds_at_least_one_row(void **unused)
{
    (void)unused;
    struct hm_shard_writer *writer = open_writer(1);
    assert_int_equal(hm_shard_capacity(writer), 1);
    for (int i = 0; i < 2; i++) append(writer, i);
    assert_int_equal(hm_shard_close(writer, NULL), HM_OK);
    assert_int_equal(check_shard("run.jsonl.target-00000.safetensors", 0, 1), 1);
    assert_int_equal(check_shard("run.jsonl.target-00001.safetensors", 1, 1), 1);
}

static void touch(const char *name)
{
    int fd = open(in_folder(name), O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static void shards_of_an_older_log_go(void **unused)
{
    (void)unused;
    const char *const gone[] = {"run.jsonl.target-00000.safetensors", "run.jsonl.target-00001.safetensors"};
    const char *const kept[] = {"run.jsonl.target-00003.safetensors", "run.jsonl.draft-00000.safetensors",
                                "other.jsonl.target-00000.safetensors", "run.jsonl.target-0.safetensors"};
    struct hm_error err;
    assert_int_equal(hm_shard_remove(path, "target", &err), HM_OK);
    for (size_t i = 0; i < 2; i++) touch(gone[i]);
    for (size_t i = 0; i < 4; i++) touch(kept[i]);
    assert_int_equal(hm_shard_remove(path, "target", &err), HM_OK);
    for (size_t i = 0; i < 2; i++) assert_int_not_equal(access(in_folder(gone[i]), F_OK), 0);
    for (size_t i = 0; i < 4; i++) assert_int_equal(access(in_folder(kept[i]), F_OK), 0);
    assert_int_equal(mkdir(in_folder(gone[0]), 0700), 0);
    assert_int_equal(hm_shard_remove(path, "target", &err), HM_IO);
    assert_non_null(
        strstr(err.message, "run.jsonl.target-00000.safetensors: cannot remove the shard of an older log: "));
    assert_int_equal(rmdir(in_folder(gone[0])), 0);
}

static void names_that_spoil_the_pattern_are_refused(void **unused)
{
    (void)unused;
    struct hm_shard_writer *writer;
    struct hm_error err;
    assert_int_equal(hm_shard_open("x/50%.jsonl", "target", VOCAB, 1, &writer, &err), HM_USAGE);
    assert_string_equal(err.message, "x/50%.jsonl: a log that keeps its rows cannot have a '%' or '\\' in its name or begin with '.'");
    assert_int_equal(hm_shard_open("a\xFF", "target", VOCAB, 1, &writer, &err), HM_USAGE);
    assert_non_null(strstr(err.message, "must be UTF-8"));
    assert_int_equal(hm_shard_open("50%/run.jsonl", "target", VOCAB, 1, &writer, &err), HM_OK); // only the name counts
    hm_shard_close(writer, NULL);
    assert_int_equal(hm_shard_open(path, "target", SIZE_MAX / 2, 1, &writer, &err), HM_RANGE);
    assert_int_equal(hm_shard_open(path, "target", SIZE_MAX / 8, 1, &writer, &err), HM_RANGE);
}

static void errors_name_the_shard(void **unused)
{
    (void)unused;
    float row[VOCAB] = {0};
    struct hm_shard_writer *writer;
    struct hm_error err;
    assert_int_equal(hm_shard_open("/nowhere/run", "draft", VOCAB, 1, &writer, &err), HM_OK);
    assert_int_equal(hm_shard_append(writer, row, &err), HM_IO);
    assert_string_equal(err.message, "/nowhere/run.draft-00000.safetensors: cannot create: No such file or directory");
    hm_shard_close(writer, NULL);

    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    small = before;
    small.rlim_cur = 100000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    writer = open_writer(1 << 30);
    hm_status rc = hm_shard_append(writer, row, &err);
    hm_shard_close(writer, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(rc, HM_IO);
    assert_non_null(strstr(err.message, "run.jsonl.target-00000.safetensors: cannot set the size to 10737"));
    assert_int_equal(check_shard("run.jsonl.target-00000.safetensors", 0, 0), 0); // what is left is an empty shard
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_readable_at_once),
        cmocka_unit_test(full_shards_are_followed_by_new_ones),
        cmocka_unit_test(a_shard_holds_at_least_one_row),
        cmocka_unit_test(shards_of_an_older_log_go),
        cmocka_unit_test(names_that_spoil_the_pattern_are_refused),
        cmocka_unit_test(errors_name_the_shard),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
