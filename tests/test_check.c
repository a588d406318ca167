// The checker on whole logs: golden logs are proved, cut and damaged ones end as check.h says, bad shards and records
// that lie in particular ways are refused by the check that is meant for them.
#include "tests/test_check_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct hm_check_result result;

static void expect(const char *path, const struct hm_check_options *options, int code, const char *message)
{
    hm_check_log(path, options, &result);
    if (result.exit_code != code || !strstr(result.message, message))
        fail_msg("%s: expected %d and \"%s\", found %d and \"%s\"", path, code, message, result.exit_code,
                 result.message);
}

static void golden_logs_are_proved(void **state)
{
    (void)state;
    char path[256];
    uint64_t claims = 0;
    for (int i = 0; i < test_log_count; i++) {
        bool rows = strcmp(test_logs[i], "hashed") != 0;
        snprintf(path, sizeof path, "tests/data/logs/good/%s.jsonl", test_logs[i]);
        expect(path, NULL, rows ? 0 : 3, rows ? "PROVED " : "CONSISTENT ");
        claims += result.claims;
    }
    printf("%llu claims\n", (unsigned long long)claims);
    assert_true(claims > 2000);
}

static void a_log_may_stop_at_any_byte(void **state)
{
    (void)state;
    size_t size;
    char *bytes = test_read("tests/data/logs/good/greedy.jsonl", &size);
    const struct hm_check_options allow = {.allow_truncated = true};
    const char *header_end = memchr(bytes, '\n', size);
    test_copy_rows();
    for (size_t cut = 0; cut < size; cut += 37) {
        test_write(test_path("cut.jsonl"), bytes, cut);
        bool header = cut > (size_t)(header_end - bytes);
        expect(test_path("cut.jsonl"), NULL, header ? 3 : 2, header ? "UNDECIDED 0 of " : "UNREADABLE line 1: ");
        if (header) assert_non_null(strstr(result.message, "(truncated "));
        if (header) expect(test_path("cut.jsonl"), &allow, 0, "PROVED ");
    }
    test_write(test_path("cut.jsonl"), bytes, size - 1);
    expect(test_path("cut.jsonl"), NULL, 3, "truncated");
    free(bytes);
}

static void a_changed_byte_is_found(void **state)
{
    (void)state;
    size_t size;
    char *bytes = test_read("tests/data/logs/good/greedy.jsonl", &size);
    test_copy_rows();
    for (size_t at = 0; at < size; at += 11) {
        char was = bytes[at];
        bytes[at] = was == '1' ? '2' : '1';
        test_write(test_path("byte.jsonl"), bytes, size);
        bytes[at] = was;
        hm_check_log(test_path("byte.jsonl"), NULL, &result);
        if (result.exit_code != 1 && result.exit_code != 2 && !(result.truncated && was == '\n'))
            fail_msg("byte %zu ('%c'): %s", at, was, result.message);
    }
    char *token = strstr(strstr(bytes, "\"kind\":\"step\""), "\"token\":") + 8; // valid JSON: the chain tells
    *token = *token == '1' ? '2' : '1';
    test_write(test_path("byte.jsonl"), bytes, size);
    expect(test_path("byte.jsonl"), NULL, 1, "REFUTED line 3: chain: ");
    *token = '}'; // not JSON
    test_write(test_path("byte.jsonl"), bytes, size);
    expect(test_path("byte.jsonl"), NULL, 2, "UNREADABLE line 3: JSON: ");
    free(bytes);
}

static void rows_may_be_absent(void **state)
{
    (void)state;
    const struct hm_check_options allow = {.allow_absent_rows = true};
    for (int i = 0; i < test_log_count; i++) {
        struct test_log *log = test_log_read(test_logs[i]);
        test_drop_rows();
        test_log_write(log, test_path("absent.jsonl"), -1);
        expect(test_path("absent.jsonl"), NULL, 3, "CONSISTENT ");
        expect(test_path("absent.jsonl"), &allow, 0, " claims (rows absent)");
        test_log_free(log);
    }
}

static void not_logs(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } table[] = {
        {"", "UNREADABLE line 1: JSON: expected a header"},
        {"hello\n", "UNREADABLE line 1: JSON: "},
        {"{}\n", "UNREADABLE line 1: hallmark: "},
        {"[1]\n", "UNREADABLE line 1: JSON: "},
        {"{\"hallmark\":2,\"kind\":\"header\"}\n", "UNREADABLE line 1: hallmark: "},
        {"{\"hallmark\":1,\"hallmark\":1}\n", "found a key twice"},
        {"{\"hallmark\":01}\n", "leading zero"},
        {"{\"a\":\"\xff\"}\n", "not UTF-8"},
        {"{\"a\":\"\\u0000\"}\n", "zero character"},
        {"{\"a\":1} x\n", "UNREADABLE line 1: JSON: "},
        {"{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}\n",
         "nested too deeply"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        test_write(test_path("bad.jsonl"), table[i].text, strlen(table[i].text));
        expect(test_path("bad.jsonl"), NULL, 2, table[i].message);
    }
    expect(test_path("nowhere.jsonl"), NULL, 2, "UNREADABLE line 0: file: cannot open it: No such file");
}

// Changes the first shard of the greedy log's target and checks.
static void with_shard(size_t at, const void *bytes, size_t size, size_t cut, int code, const char *message)
{
    size_t whole;
    char *shard = test_read("tests/data/logs/good/greedy-target-00000.safetensors", &whole);
    memcpy(shard + at, bytes, size);
    test_write(test_path("greedy-target-00000.safetensors"), shard, cut ? cut : whole);
    expect(test_path("greedy.jsonl"), NULL, code, message);
    free(shard);
}

static void shards_are_not_trusted(void **state)
{
    (void)state;
    struct test_log *log = test_log_read("greedy");
    size_t size;
    char *shard = test_read("tests/data/logs/good/greedy-target-00000.safetensors", &size);
    size_t shape = (size_t)(strstr(shard + 8, "shape") - shard), data = 8 + (size_t)(unsigned char)shard[0];
    test_copy_rows();
    test_log_write(log, test_path("greedy.jsonl"), -1);
    with_shard(0, "", 0, 0, 0, "PROVED ");
    with_shard(data, "\1", 1, 0, 1, "REFUTED line 3: row: expected the row's bytes to hash");
    with_shard(0, "\xff\xff\xff\xff\xff\xff\xff\x7f", 8, 0, 2, "UNREADABLE line 3: row: shard");
    with_shard(0, "", 0, 5, 2, "expected a safetensors header");
    with_shard(8, "X", 1, 0, 2, "UNREADABLE line 3: row: shard");
    with_shard(shape, "shopE", 5, 0, 2, "UNREADABLE line 3: row: shard");
    with_shard(0, "", 0, data + 20, 1, "REFUTED line 3: row: expected row 0 in shard 0");
    test_log_free(log);
    free(shard);
}

static cJSON *member(cJSON *object, const char *key)
{
    cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_non_null(v);
    return v;
}

static void set_text(cJSON *object, const char *key, const char *text)
{
    cJSON_ReplaceItemInObjectCaseSensitive(object, key, cJSON_CreateString(text));
}

// The first step whose first claim says `yes` for klf, and was covered.
static size_t certified_step(const struct test_log *log, cJSON **claim)
{
    for (size_t i = 0; i < log->count; i++) {
        cJSON *claims = cJSON_GetObjectItemCaseSensitive(log->line[i], "claims");
        *claim = cJSON_GetArrayItem(claims, 0);
        cJSON *certified = cJSON_GetObjectItemCaseSensitive(*claim, "certified");
        if (i && cJSON_IsObject(certified) && strcmp(member(certified, "klf")->valuestring, "yes") == 0) return i;
    }
    fail_msg("no certified step");
    return 0;
}

static void certified_implies_covered(void **state)
{
    (void)state;
    cJSON *claim;
    struct test_log *log = test_log_read("greedy");
    size_t i = certified_step(log, &claim);
    set_text(claim, "covered", "no");
    test_log_refresh(log, i);
    test_log_write(log, test_path("lie.jsonl"), -1);
    test_drop_rows();
    expect(test_path("lie.jsonl"), NULL, 1, "covered: expected yes");
    test_copy_rows();
    expect(test_path("lie.jsonl"), NULL, 1, "covered: expected yes");
    test_log_free(log);
}

static void undecided_stays_undecided(void **state)
{
    (void)state;
    cJSON *claim;
    struct test_log *log = test_log_read("greedy");
    size_t i = certified_step(log, &claim), end = log->count - 1;
    cJSON *counts = member(cJSON_GetArrayItem(member(log->line[end], "verdicts"), 0), "klf");
    set_text(member(claim, "certified"), "klf", "undecided");
    cJSON_SetNumberValue(member(counts, "undecided"), 1);
    cJSON_SetNumberValue(member(counts, "yes"), member(counts, "yes")->valuedouble - 1);
    test_log_refresh(log, i);
    test_log_refresh(log, end);
    test_log_write(log, test_path("open.jsonl"), -1);
    test_copy_rows();
    expect(test_path("open.jsonl"), NULL, 1, "undecided: expected at least the 1"); // the end record says 0
    cJSON_SetNumberValue(member(log->line[end], "undecided"), 1);
    test_log_refresh(log, end);
    test_log_write(log, test_path("open.jsonl"), -1);
    expect(test_path("open.jsonl"), NULL, 3, "UNDECIDED 1 of 14 claims");
    test_log_free(log);
}

// A decoder that skips its rule once: a child in A(p) is passed over for the draw, or one outside it is taken.
static void a_skipped_rule_is_found(void **state)
{
    (void)state;
    struct test_log *log = test_log_read("relaxed");
    size_t tried = 0;
    test_copy_rows();
    for (size_t i = 0; i < log->count; i++) {
        const cJSON *source = cJSON_GetObjectItemCaseSensitive(log->line[i], "source");
        if (!source || strcmp(source->valuestring, "accepted") != 0) continue;
        cJSON *copy = cJSON_Duplicate(log->line[i], 1), *whole = log->line[i];
        set_text(copy, "source", "continuation");
        cJSON_ReplaceItemInObjectCaseSensitive(copy, "child", cJSON_CreateNull());
        log->line[i] = copy;
        test_log_refresh(log, i);
        test_log_write(log, test_path("skip.jsonl"), -1);
        expect(test_path("skip.jsonl"), NULL, 1, "source: expected acceptance of node");
        log->line[i] = whole;
        test_log_refresh(log, i);
        cJSON_Delete(copy);
        tried++;
    }
    assert_true(tried > 0);
    test_log_free(log);
}

// Every other token in place of a first draw, in a log that claims nothing: only the random number can tell.
static size_t wrong_draws(const char *name)
{
    struct test_log *log = test_log_read(name);
    size_t tried = 0;
    for (size_t i = 0; i < log->count; i++) {
        if (!cJSON_HasObjectItem(log->line[i], "claims")) continue;
        cJSON_ReplaceItemInObjectCaseSensitive(log->line[i], "claims", cJSON_CreateArray());
        test_log_refresh(log, i);
    }
    for (size_t i = 0; i < log->count; i++) {
        const cJSON *source = cJSON_GetObjectItemCaseSensitive(log->line[i], "source");
        if (!source || strcmp(source->valuestring, "prefill") != 0) continue;
        cJSON *token = member(log->line[i], "token");
        double was = token->valuedouble;
        for (int other = 0; other < 12; other++, tried++) {
            cJSON_SetNumberValue(token, other);
            test_log_refresh(log, i);
            test_log_write(log, test_path("draw.jsonl"), -1);
            if (other != was) expect(test_path("draw.jsonl"), NULL, 1, ": token: expected the draw at t 0");
        }
        cJSON_SetNumberValue(token, was);
        test_log_refresh(log, i);
    }
    test_log_free(log);
    return tried;
}

static void a_wrong_draw_is_found(void **state)
{
    (void)state;
    test_copy_rows();
    assert_int_equal(wrong_draws("sampled"), 24);
    assert_int_equal(wrong_draws("processed"), 12);
}

// A size of A(p) one too small or too large, with the edge that goes with it.
static void a_wrong_k_is_found(void **state)
{
    (void)state;
    struct test_log *log = test_log_read("rules");
    size_t tried = 0;
    test_copy_rows();
    for (size_t i = 1; i < log->count; i++) {
        cJSON *claim, *claims = cJSON_GetObjectItemCaseSensitive(log->line[i], "claims");
        const cJSON *top = cJSON_GetObjectItemCaseSensitive(log->line[i], "top");
        cJSON_ArrayForEach(claim, claims)
        {
            double k = member(claim, "k")->valuedouble;
            cJSON *edge = cJSON_Duplicate(member(claim, "edge"), 1);
            for (int step = -1; step <= 1; step += 2) {
                int at = (int)k + step; // the claimed size
                if (at < 1 || at >= cJSON_GetArraySize(top)) continue;
                cJSON *forged = cJSON_CreateArray();
                cJSON_AddItemToArray(forged, cJSON_Duplicate(cJSON_GetArrayItem(top, at - 1), 1));
                cJSON_AddItemToArray(forged, cJSON_Duplicate(cJSON_GetArrayItem(top, at), 1));
                cJSON_SetNumberValue(member(claim, "k"), at);
                cJSON_ReplaceItemInObjectCaseSensitive(claim, "edge", forged);
                test_log_refresh(log, i);
                test_log_write(log, test_path("k.jsonl"), -1);
                expect(test_path("k.jsonl"), NULL, 1, "].k: expected");
                tried++;
            }
            cJSON_SetNumberValue(member(claim, "k"), k);
            cJSON_ReplaceItemInObjectCaseSensitive(claim, "edge", edge);
            test_log_refresh(log, i);
        }
    }
    assert_true(tried > 20);
    test_log_free(log);
}

// Every line in turn spoiled: workers find the same first fault, in the same words, as one thread does.
static void threads_agree(void **state)
{
    (void)state;
    test_copy_rows();
    for (int i = 0; i < 4; i++) {
        struct test_log *log = test_log_read(test_logs[i]);
        for (size_t line = 0; line <= log->count; line += 3) {
            struct hm_check_result other;
            struct hm_check_options options = {.threads = 1};
            char *body = line < log->count ? log->body[line] : NULL, *digit = body;
            while (digit && *digit && !(strchr("012345678", *digit) && digit[1] == 'p')) digit++; // of a real number
            if (digit && *digit) ++*digit;
            test_log_write(log, test_path("threads.jsonl"), -1);
            if (digit && *digit) --*digit;
            hm_check_log(test_path("threads.jsonl"), &options, &result);
            options.threads = 5;
            hm_check_log(test_path("threads.jsonl"), &options, &other);
            assert_string_equal(result.message, other.message);
            assert_int_equal(result.exit_code, other.exit_code);
            assert_int_equal(result.claims, other.claims);
            assert_int_equal(result.steps, other.steps);
            assert_int_equal(result.line, other.line);
        }
        test_log_free(log);
    }
}

// Logs that are true but for one thing, each with the line where it is false: it shows there, or where a row is looked
// at next.
static void one_false_thing_is_found(void **state)
{
    (void)state;
    char name[64], path[128];
    unsigned line, count = 0;
    FILE *list = fopen("tests/data/logs/bad/lines.txt", "r");
    assert_non_null(list);
    while (fscanf(list, "%63s line %u", name, &line) == 2) {
        snprintf(path, sizeof path, "tests/data/logs/bad/%s.jsonl", name);
        expect(path, NULL, 1, "REFUTED ");
        if (result.line < line || result.line > line + 1)
            fail_msg("%s: expected line %u: %s", path, line, result.message);
        count++;
    }
    fclose(list);
    assert_true(count >= 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(golden_logs_are_proved),
                                       cmocka_unit_test(a_log_may_stop_at_any_byte),
                                       cmocka_unit_test(a_changed_byte_is_found),
                                       cmocka_unit_test(rows_may_be_absent),
                                       cmocka_unit_test(not_logs),
                                       cmocka_unit_test(shards_are_not_trusted),
                                       cmocka_unit_test(certified_implies_covered),
                                       cmocka_unit_test(undecided_stays_undecided),
                                       cmocka_unit_test(a_skipped_rule_is_found),
                                       cmocka_unit_test(a_wrong_draw_is_found),
                                       cmocka_unit_test(a_wrong_k_is_found),
                                       cmocka_unit_test(one_false_thing_is_found),
                                       cmocka_unit_test(threads_agree)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    test_drop_folder();
    return rc;
}
