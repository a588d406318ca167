// Sources of rows: files of logits, and certificate logs with and without their shards.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/seed.h"
#include "tests/source_dump.h"

#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "tests/data/evidence/"
#define LOGS "tests/data/logs/good/"

static void files_of_rows_give_their_events(void **state)
{
    (void)state;
    static const struct {
        const char *name, *tensor, *expected;
        size_t vocab;
    } samples[] = {{"good.npy", NULL, "good.npy", 0},
                   {"good.npy", NULL, "good.npy.vocab-2", 2},
                   {"half.npy", NULL, "half.npy.vocab-4", 4},
                   {"good.safetensors", NULL, "good.safetensors", 0},
                   {"named.safetensors", NULL, "named.safetensors", 0},
                   {"named.safetensors", "target", "named.safetensors.target", 0},
                   {"none.npy", NULL, "none.npy", 0},
                   {"cut.npy", NULL, "cut.npy", 0},
                   {"cube.npy", NULL, "cube.npy", 0}};
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        struct hm_source_options options = test_source_options();
        char path[256], expected[256];
        options.tensor = samples[i].tensor;
        options.vocab = samples[i].vocab;
        snprintf(path, sizeof path, FOLDER "rows/%s", samples[i].name);
        snprintf(expected, sizeof expected, FOLDER "rows/%s.txt", samples[i].expected);
        test_source_compare(path, expected, &options);
    }
}

// Logs with rows in shards, with none, an audit with a draft and one of a target only, and one that ended by a stop string.
static void logs_give_their_events(void **state)
{
    (void)state;
    static const char *const logs[] = {"greedy", "hashed", "audit", "audit-target", "stopped", "covering"};
    struct hm_source_options options = test_source_options();
    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++) {
        char path[256], expected[256];
        snprintf(path, sizeof path, LOGS "%s.jsonl", logs[i]);
        snprintf(expected, sizeof expected, FOLDER "hallmark/%s.txt", logs[i]);
        test_source_compare(path, expected, &options);
    }
}

// ---- Logs with something wrong ----

static char folder[] = "/tmp/test-source-rows-XXXXXX";

static char *load(const char *path, size_t *size)
{
    char *text;
    assert_int_equal(hm_file_read(path, 1 << 24, &text, size, NULL), HM_OK);
    return text;
}

static void save(const char *name, const char *text, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

// Copies a shard of greedy.jsonl beside the log under test.
static void copy_shard(const char *side)
{
    char path[256], name[64];
    size_t size;
    snprintf(name, sizeof name, "greedy-%s-00000.safetensors", side);
    snprintf(path, sizeof path, LOGS "%s", name);
    char *data = load(path, &size);
    save(name, data, size);
    free(data);
}

static void replace(char **text, size_t *size, const char *from, const char *to)
{
    char *at = strstr(*text, from), *fresh;
    assert_non_null(at);
    size_t before = (size_t)(at - *text), n = strlen(from), m = strlen(to);
    fresh = malloc(*size - n + m + 1);
    assert_non_null(fresh);
    memcpy(fresh, *text, before);
    memcpy(fresh + before, to, m);
    memcpy(fresh + before + m, at + n, *size - before - n + 1);
    free(*text);
    *text = fresh;
    *size = *size - n + m;
}

// Another lse in the first step.
static void replace_lse(char **text, size_t *size, const char *to)
{
    char from[200], fresh[200], *at = strstr(*text, "\"lse\":[");
    assert_non_null(at);
    size_t n = strcspn(at, "]") + 1;
    assert_true(n < sizeof from);
    snprintf(from, sizeof from, "%.*s", (int)n, at);
    snprintf(fresh, sizeof fresh, "\"lse\":%s", to);
    replace(text, size, from, fresh);
}

static void compare(const char *expected)
{
    char path[256], name[256];
    struct hm_source_options options = test_source_options();
    snprintf(path, sizeof path, "%s/log.jsonl", folder);
    snprintf(name, sizeof name, FOLDER "hallmark/%s.txt", expected);
    test_source_compare(path, name, &options);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"log.jsonl", "greedy-target-00000.safetensors", "greedy-draft-00000.safetensors",
                                        "greedy-target-00001.safetensors"};
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

// Without its shards a log tells the leading logits and lse; one that was cut says so; a row that its shard lacks is a finding;
// a pattern that leads out of the folder, or a shard of another width, is refused.
static void faulty_logs_are_told(void **state)
{
    (void)state;
    size_t size, whole;
    char *text = load(LOGS "greedy.jsonl", &whole);
    save("log.jsonl", text, whole);
    compare("no-shards");
    save("log.jsonl", text, whole - 40);
    compare("cut-line");
    char *end = text + whole - 1;
    while (end > text && end[-1] != '\n') end--;
    save("log.jsonl", text, (size_t)(end - text));
    compare("no-end");
    free(text);

    copy_shard("draft");
    copy_shard("target");
    text = load(LOGS "greedy.jsonl", &size);
    replace(&text, &size, "\"row\":{\"shard\":0,\"index\":0", "\"row\":{\"shard\":0,\"index\":99");
    save("log.jsonl", text, size);
    compare("short-shard");
    free(text);

    text = load(LOGS "greedy.jsonl", &size);
    replace(&text, &size, "greedy-target-%05d", "../greedy-target-%05d");
    save("log.jsonl", text, size);
    compare("pattern");
    free(text);

    text = load(LOGS "greedy.jsonl", &size);
    replace(&text, &size, "greedy-target-%05d", "%s-%05d");
    save("log.jsonl", text, size);
    compare("pattern-directive");
    free(text);

    char *wide = load(FOLDER "rows/good.safetensors", &whole);
    save("greedy-target-00001.safetensors", wide, whole);
    free(wide);
    text = load(LOGS "greedy.jsonl", &size);
    replace(&text, &size, "\"row\":{\"shard\":0,\"index\":0", "\"row\":{\"shard\":1,\"index\":0");
    save("log.jsonl", text, size);
    compare("wide-shard");
    free(text);

    text = load(LOGS "greedy.jsonl", &size);
    replace(&text, &size, "\"certify_temperature\":\"1\"", "\"certify_temperature\":\"1/2\"");
    replace(&text, &size, "greedy-target-%05d", "gone-target-%05d");
    save("log.jsonl", text, size);
    compare("temperature");
    free(text);

    text = load(LOGS "greedy.jsonl", &size);
    replace(&text, &size, "greedy-target-%05d", "gone-target-%05d");
    replace_lse(&text, &size, "[\"0x1p+1\",\"0x1p+2\"]");
    save("log.jsonl", text, size);
    compare("wide-lse");
    free(text);

    text = load(LOGS "greedy.jsonl", &size);
    replace(&text, &size, "greedy-target-%05d", "gone-target-%05d");
    replace_lse(&text, &size, "[\"0x1p+1\",\"inf\"]");
    save("log.jsonl", text, size);
    compare("infinite-lse");
    free(text);

    text = load(LOGS "greedy.jsonl", &size);
    replace(&text, &size, "greedy-target-%05d", "gone-target-%05d");
    replace_lse(&text, &size, "[\"-0x1.fffffffffffffp+1023\",\"-0x1p+1023\"]");
    save("log.jsonl", text, size);
    compare("huge-lse");
    free(text);
}

// What is known from the leading entries holds the row that was kept.
static void leading_entries_enclose_the_row(void **state)
{
    (void)state;
    struct hm_source_options options = test_source_options();
    struct hm_source_file *with, *without;
    struct hm_event a = {.kind = HM_EVENT_TOKEN}, b;
    char path[256];
    size_t size, compared = 0;
    mpfr_t log_sum, exact;
    mpfr_inits2(200, log_sum, exact, (mpfr_ptr)0);
    char *text = load(LOGS "greedy.jsonl", &size);
    replace(&text, &size, "greedy-target-%05d", "gone-target-%05d");
    save("log.jsonl", text, size);
    free(text);
    snprintf(path, sizeof path, "%s/log.jsonl", folder);
    assert_int_equal(hm_source_open(LOGS "greedy.jsonl", &options, &with, NULL), HM_OK);
    assert_int_equal(hm_source_open(path, &options, &without, NULL), HM_OK);
    while (a.kind != HM_EVENT_END) {
        assert_int_equal(hm_source_next(with, &a, NULL), HM_OK);
        assert_int_equal(hm_source_next(without, &b, NULL), HM_OK);
        assert_int_equal(a.kind, b.kind);
        if (a.kind != HM_EVENT_TOKEN) continue;
        const struct hm_evidence *row = &a.token->row, *few = &b.token->row;
        assert_non_null(row->logits);
        assert_true(few->count > 0 && few->ranked == few->count && few->unit == HM_UNIT_LOG_PROBABILITY);
        mpfr_set_zero(log_sum, 1);
        for (size_t i = 0; i < row->vocab; i++) {
            mpfr_set_flt(exact, row->logits[i], MPFR_RNDN);
            mpfr_exp(exact, exact, MPFR_RNDN);
            mpfr_add(log_sum, log_sum, exact, MPFR_RNDN);
        }
        mpfr_log(log_sum, log_sum, MPFR_RNDN);
        for (size_t i = 0; i < few->count; i++) {
            struct hm_ival v = few->entry[i].value;
            mpfr_set_flt(exact, row->logits[few->entry[i].id], MPFR_RNDN);
            mpfr_sub(exact, exact, log_sum, MPFR_RNDN);
            assert_true(mpfr_cmp_d(exact, v.lo) >= 0 && mpfr_cmp_d(exact, v.hi) <= 0);
            assert_true(v.hi - v.lo < 1e-12);
            compared++;
        }
    }
    assert_true(compared > 10);
    mpfr_clears(log_sum, exact, (mpfr_ptr)0);
    hm_source_close(with);
    hm_source_close(without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_rows_give_their_events),
        cmocka_unit_test(logs_give_their_events),
        cmocka_unit_test(faulty_logs_are_told),
        cmocka_unit_test(leading_entries_enclose_the_row),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
