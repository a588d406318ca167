// Commands over many inputs: merged parts are, byte for byte, what one process prints; every damage to a part is found
// before the first byte is printed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "cli/parts.h"
#include "tests/seed.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

// ---- a command: the sum of its results, refused above 1000

struct sum {
    size_t inputs, total;
    char last[64];
};

static hm_status open_sum(char *const *arguments, size_t count, size_t inputs, void **out, struct hm_error *err)
{
    *out = calloc(1, sizeof(struct sum));
    ((struct sum *)*out)->inputs = inputs;
    return count > 0 && arguments[0][0] != '-'
               ? hm_fail(err, HM_USAGE, "sum: expected a flag, found \"%s\"", arguments[0])
               : HM_OK;
}

static hm_status add_sum(void *summary, const char *input, const cJSON *result, struct hm_error *err)
{
    struct sum *s = summary;
    const cJSON *value = cJSON_GetObjectItem(result, "value");
    if (!cJSON_IsNumber(value) || value->valueint > 1000)
        return hm_fail(err, HM_FORMAT, "value: expected at most 1000, found more");
    s->total += (size_t)value->valueint;
    snprintf(s->last, sizeof s->last, "%s", input);
    return HM_OK;
}

static int finish_sum(void *summary, FILE *to)
{
    const struct sum *s = summary;
    if (to) fprintf(to, "sum %zu of %zu inputs, the last %s\n", s->total, s->inputs, s->last);
    return (int)(s->total % 4);
}

static const struct hm_parts_summary sum = {"sum", open_sum, add_sum, finish_sum, free};
static const struct hm_parts_summary *const summaries[] = {&sum};

// ---- its inputs

enum { MOST = 300 };

struct scene {
    char *name[MOST], *text[MOST];
    size_t value[MOST], count;
    char *arguments[4];
    size_t argument_count;
};

static char *random_text(uint64_t *random, size_t size)
{
    char *text = calloc(size + 1, 1);
    bool ascii = test_below(random, 2);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)(ascii ? 32 + test_below(random, 95) : 1 + test_below(random, 255));
    return text;
}

static void make(struct scene *s, uint64_t *random, size_t count, size_t longest)
{
    *s = (struct scene){
        .count = count, .arguments = {"--flag", "a value\xff\n", ""}, .argument_count = test_below(random, 4)};
    for (size_t j = 0; j < count; j++) {
        s->name[j] = random_text(random, 1 + test_below(random, 20));
        s->text[j] = random_text(random, test_below(random, 4) == 0 ? 0 : test_below(random, longest));
        s->value[j] = test_below(random, 1000);
    }
}

static void release(struct scene *s)
{
    for (size_t j = 0; j < s->count; j++) free(s->name[j]), free(s->text[j]);
}

static struct hm_parts_setup setup_of(const struct scene *s, struct hm_shards shards)
{
    return (struct hm_parts_setup){.summary = &sum,
                                   .arguments = s->arguments,
                                   .argument_count = s->argument_count,
                                   .inputs = s->name,
                                   .input_count = s->count,
                                   .shards = shards,
                                   .folder = shards.count ? folder : NULL};
}

static cJSON *result_of(size_t value)
{
    cJSON *result = cJSON_CreateObject();
    cJSON_AddNumberToObject(result, "value", (double)value);
    return result;
}

// Runs the command; what it prints goes to `output`, where that is no NULL, else nowhere.
static hm_status run_to(const struct scene *s, struct hm_shards shards, const char *output, int *code,
                        struct hm_error *err)
{
    const struct hm_parts_setup setup = setup_of(s, shards);
    struct hm_parts_run *run;
    fflush(stdout);
    int kept = dup(1), to = open(output ? output : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(kept >= 0 && to >= 0 && dup2(to, 1) == 1);
    hm_status rc = hm_parts_open(&setup, &run, err);
    for (size_t j = 0; j < s->count && !rc; j++) {
        if (!hm_parts_take(run, j)) continue;
        size_t size = strlen(s->text[j]), half = size / 3;
        fwrite(s->text[j], 1, half, hm_parts_text(run));
        fputs(s->text[j] + half, hm_parts_text(run));
        rc = hm_parts_result(run, j, result_of(s->value[j]), err);
    }
    if (!rc) rc = hm_parts_finish(run, code, err);
    hm_parts_close(run);
    fflush(stdout);
    dup2(kept, 1);
    close(kept);
    close(to);
    return rc;
}

static void run_shards(const struct scene *s, size_t count)
{
    int code;
    struct hm_error err;
    for (size_t i = 1; i <= count; i++)
        if (run_to(s, (struct hm_shards){i, count}, NULL, &code, &err)) fail_msg("%s", err.message);
}

static char *part(size_t i, size_t n)
{
    char name[64];
    snprintf(name, sizeof name, "part-%05zu-of-%05zu.jsonl", i, n);
    return hm_path_join(folder, name);
}

// Removes everything in the folder; returns how many files there were.
static size_t clean(void)
{
    DIR *dir = opendir(folder);
    size_t count = 0;
    for (const struct dirent *e; dir && (e = readdir(dir));) count += unlinkat(dirfd(dir), e->d_name, 0) == 0;
    if (dir) closedir(dir);
    return count;
}

// The bytes of a merge, to be freed; NULL and err after a failure, when nothing may have been printed.
static char *merge(char *const *paths, size_t count, size_t *size, int *code, struct hm_error *err)
{
    char *bytes;
    FILE *to = open_memstream(&bytes, size);
    hm_status rc = hm_parts_merge(paths, count, summaries, 1, to, code, err);
    fclose(to);
    if (!rc) return bytes;
    assert_int_equal(*size, 0);
    free(bytes);
    return NULL;
}

static void compare(const struct scene *s, char *const *paths, size_t count)
{
    char *alone = part(0, 0), *expected;
    struct hm_error err = {0};
    size_t expected_size, size;
    int expected_code, code;
    assert_int_equal(run_to(s, (struct hm_shards){0}, alone, &expected_code, &err), HM_OK);
    assert_int_equal(hm_file_read(alone, 1 << 28, &expected, &expected_size, &err), HM_OK);
    unlink(alone);
    char *found = merge(paths, count, &size, &code, &err);
    if (!found) fail_msg("%s", err.message);
    assert_int_equal(size, expected_size);
    assert_memory_equal(found, expected, size);
    assert_int_equal(code, expected_code);
    free(found);
    free(expected);
    free(alone);
}

// ---- tests

static void merged_is_one_process(void **state)
{
    (void)state;
    uint64_t random = test_seed("parts");
    for (size_t turn = 0; turn < test_count(5, 60, 1000); turn++) {
        struct scene s;
        make(&s, &random, test_below(&random, 40), turn % 10 ? 200 : 200000);
        size_t shards = 1 + test_below(&random, 8);
        run_shards(&s, shards);
        char *paths[8], *all = folder;
        for (size_t i = 0; i < shards; i++) paths[i] = part(shards - i, shards); // in any order
        compare(&s, paths, shards);
        compare(&s, &all, 1);
        for (size_t i = 0; i < shards; i++) free(paths[i]);
        release(&s);
        assert_int_equal(clean(), shards);
    }
}

// More parts than are held open at a time.
static void many_parts(void **state)
{
    (void)state;
    uint64_t random = test_seed("many parts");
    struct scene s;
    char *all = folder;
    make(&s, &random, MOST, 100);
    run_shards(&s, 130);
    compare(&s, &all, 1);
    release(&s);
    clean();
}

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

// One bit of a part changed, a part cut anywhere, a byte too many: always an error, and nothing printed.
static void damage_is_found(void **state)
{
    (void)state;
    uint64_t random = test_seed("damage");
    struct scene s;
    struct hm_error err;
    char *all = folder, *path = part(2, 3), *bytes;
    size_t size, none;
    int code;
    make(&s, &random, 5, 60);
    run_shards(&s, 3);
    assert_int_equal(hm_file_read(path, 1 << 20, &bytes, &size, &err), HM_OK);
    for (size_t i = 0; i < size; i++) {
        char kept = bytes[i];
        bytes[i] = (char)(kept ^ 1 << test_below(&random, 8));
        write_file(path, bytes, size);
        if (merge(&all, 1, &none, &code, &err)) fail_msg("byte %zu of %s changed: not found", i, path);
        bytes[i] = kept;
        write_file(path, bytes, i);
        if (merge(&all, 1, &none, &code, &err)) fail_msg("%s cut after %zu bytes: not found", path, i);
    }
    write_file(path, bytes, size + 1); // with its terminating zero
    assert_null(merge(&all, 1, &none, &code, &err));
    write_file(path, bytes, size);
    compare(&s, &all, 1);
    free(bytes);
    free(path);
    release(&s);
    clean();
}

static void refuses(char *const *paths, size_t count, const char *message)
{
    struct hm_error err = {0};
    size_t size;
    int code;
    char *found = merge(paths, count, &size, &code, &err);
    if (found || !strstr(err.message, message))
        fail_msg("expected \"%s\", found \"%s\"", message, found ? "no error" : err.message);
}

static void sets_that_are_none(void **state)
{
    (void)state;
    uint64_t random = test_seed("sets");
    struct scene s, other;
    char *all = folder, *two[2];
    refuses(&all, 1, "expected parts (part-00001-of-00004.jsonl and so on), found none");
    make(&s, &random, 7, 50);
    s.argument_count = 1;
    run_shards(&s, 4);
    char *third = part(3, 4), *fourth = part(4, 4), *first = part(1, 4);

    unlink(third);
    refuses(&all, 1, "expected 4 parts, missing shard 3 of 4 (part-00003-of-00004.jsonl)");
    unlink(fourth);
    refuses(&all, 1, "expected 4 parts, missing shards 3, 4 of 4 (part-00003-of-00004.jsonl, ...)");
    two[0] = two[1] = first;
    refuses(two, 2, "shard 1 of 4 is there twice: also in");

    other = s;
    other.arguments[0] = "--other";
    run_to(&other, (struct hm_shards){3, 4}, NULL, &(int){0}, NULL);
    refuses(&all, 1, "00001-of-00004.jsonl; arguments: expected --flag, found --other");
    other.argument_count = 0;
    run_to(&other, (struct hm_shards){3, 4}, NULL, &(int){0}, NULL);
    refuses(&all, 1, "arguments: expected --flag, found none");
    other = s;
    other.count = 6;
    run_to(&other, (struct hm_shards){3, 4}, NULL, &(int){0}, NULL);
    refuses(&all, 1, "inputs: expected 7, found 6");
    other = s;
    other.name[2] = "another";
    run_to(&other, (struct hm_shards){3, 4}, NULL, &(int){0}, NULL);
    refuses(&all, 1, "list of inputs: expected SHA-256 ");
    run_to(&s, (struct hm_shards){3, 5}, NULL, &(int){0}, NULL);
    unlink(third);
    refuses(&all, 1, "shards: expected 4, found 5");
    clean();

    run_shards(&s, 4);
    write_file(third, "{}\n", 3);
    two[0] = third;
    refuses(two, 1, "line 1: expected a header with hallmark_part, found no such key");
    write_file(third, "", 0);
    refuses(two, 1, "line 1: expected a header, found the end of the file");
    write_file(third, "logits", 6);
    refuses(two, 1, "line 1: expected a whole line, found one that is cut");
    write_file(third, "logits\n", 7);
    refuses(two, 1, "line 1: byte");
    const char *header = "{\"hallmark_part\":2}\n";
    write_file(third, header, strlen(header));
    refuses(two, 1, "hallmark_part: expected a whole number from 1 to 1, found 2");
    header = "{\"hallmark_part\":1,\"version\":\"9\",\"command\":\"sum\",\"arguments\":[],\"shard\":1,\"shards\":1,"
             "\"inputs\":0,"
             "\"inputs_sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"}\n";
    write_file(third, header, strlen(header));
    refuses(two, 1, "expected a part that hallmark " HM_VERSION " wrote, which this is, found 9");
    header = "{\"hallmark_part\":1,\"version\":\"9\",\"command\":\"dance\",\"arguments\":[],\"shard\":1,\"shards\":1,"
             "\"inputs\":0,"
             "\"inputs_sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"}\n";
    write_file(third, header, strlen(header));
    refuses(two, 1, "command: expected one that has parts, found \"dance\"");
    unlink(third);
    assert_int_equal(mkfifo(third, 0600), 0);
    refuses(two, 1, "expected a regular file");
    two[0] = "/no/such/part";
    refuses(two, 1, "/no/such/part: cannot open: No such file or directory");
    free(first), free(third), free(fourth);
    release(&s);
    clean();
}

// A part stands there whole or not at all, and replaces nothing but an older part.
static void parts_are_whole(void **state)
{
    (void)state;
    uint64_t random = test_seed("whole");
    struct scene s;
    struct hm_error err = {0};
    struct hm_parts_run *run;
    int code;
    make(&s, &random, 3, 50);
    const struct hm_parts_setup setup = setup_of(&s, (struct hm_shards){2, 2});
    assert_int_equal(hm_parts_open(&setup, &run, &err), HM_OK);
    assert_int_equal(hm_parts_finish(run, &code, &err), HM_USAGE);
    assert_string_equal(err.message, "sum: expected the result of input 2, found none");
    assert_int_equal(hm_parts_result(run, 2, result_of(1), &err), HM_USAGE);
    assert_string_equal(err.message, "sum: expected the result of input 2, found that of 3");
    hm_parts_close(run);
    assert_int_equal(clean(), 0);

    assert_int_equal(hm_parts_open(&setup, &run, &err), HM_OK);
    fwrite("a\0b", 1, 3, hm_parts_text(run));
    assert_int_equal(hm_parts_result(run, 1, result_of(1), &err), HM_RANGE);
    assert_non_null(strstr(err.message, "expected text, found a zero byte"));
    hm_parts_close(run);
    assert_int_equal(clean(), 0);

    char *path = part(2, 2);
    write_file(path, "{\"precious\":1}\n", 15);
    assert_int_equal(hm_parts_open(&setup, &run, &err), HM_USAGE);
    assert_non_null(strstr(err.message, "expected no file or an older part to replace, found another kind of file"));
    write_file(path, "{\"hallmark_part\":0,\"stale\":1}\n", 30);
    run_shards(&s, 2);
    assert_int_equal(clean(), 2);
    free(path);
    release(&s);
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/hallmark-parts-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    clean();
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(merged_is_one_process), cmocka_unit_test(many_parts),
                                       cmocka_unit_test(damage_is_found), cmocka_unit_test(sets_that_are_none),
                                       cmocka_unit_test(parts_are_whole)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
