// The naive checker (certify/check/simple/) against the golden logs and against the fast one: on logs that hold, on
// logs with one value changed (of every field, in the first and the last record that has it) and the chain made good,
// on logs without rows, cut logs and hostile ones, both must come to the same verdict and count the same claims.
#include "certify/check/simple/simple.h"
#include "tests/seed.h"
#include "tests/test_check_support.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LOGS = 64, PATHS = 4096 };
static char *logs[LOGS];
static int log_count;
static struct tally {
    size_t made, refuted, differ, open,
        survived; // open: a question that the fast checker leaves open, and this one not
} tally;

static size_t size_of(const char *name)
{
    char path[256];
    size_t size;
    snprintf(path, sizeof path, "tests/data/logs/good/%s.jsonl", name);
    free(test_read(path, &size));
    return size;
}

static int by_size(const void *a, const void *b) // small logs first: they show most fields
{
    size_t x = size_of(*(char *const *)a), y = size_of(*(char *const *)b);
    return (x > y) - (x < y);
}

static void list_logs(void)
{
    struct dirent *entry;
    DIR *folder = opendir("tests/data/logs/good");
    assert_non_null(folder);
    while ((entry = readdir(folder)) && log_count < LOGS) {
        char *dot = strstr(entry->d_name, ".jsonl");
        if (dot) logs[log_count++] = strndup(entry->d_name, (size_t)(dot - entry->d_name));
    }
    closedir(folder);
    qsort(logs, (size_t)log_count, sizeof *logs, by_size);
    assert_true(log_count >= 17);
}

// Checks with both; complains where they differ. Returns the naive checker's kind.
static enum hm_simple_kind judge(const char *path, const char *what)
{
    struct hm_simple_result naive;
    struct hm_check_result fast;
    hm_check_simple(path, false, false, &naive);
    hm_check_log(path, NULL, &fast);
    tally.made++;
    bool refused = naive.kind == HM_SIMPLE_REFUTED || naive.kind == HM_SIMPLE_UNREADABLE;
    bool open = fast.kind == HM_CHECK_UNDECIDED && !fast.truncated && naive.kind != HM_SIMPLE_UNDECIDED;
    bool differ = (int)naive.kind != (int)fast.kind || (!refused && naive.claims != fast.claims);
    tally.open += open;
    tally.differ += differ && !open;
    if (differ) printf("%s\n  naive: %s\n  fast:  %s\n", what, naive.message, fast.message);
    tally.refuted += refused;
    return naive.kind;
}

static void golden_logs(void **state)
{
    (void)state;
    for (int i = 0; i < log_count; i++) {
        struct hm_simple_result r;
        char path[256];
        snprintf(path, sizeof path, "tests/data/logs/good/%s.jsonl", logs[i]);
        hm_check_simple(path, false, false, &r);
        enum hm_simple_kind expected = strcmp(logs[i], "hashed") == 0 ? HM_SIMPLE_CONSISTENT : HM_SIMPLE_PROVED;
        if (r.kind != expected) fail_msg("%s: %s", logs[i], r.message);
        judge(path, logs[i]);
    }
    assert_int_equal(tally.differ, 0);
}

static void rows_absent(void **state)
{
    (void)state;
    tally = (struct tally){0};
    test_drop_rows();
    for (int i = 0; i < log_count; i++) {
        struct test_log *log = test_log_read(logs[i]);
        test_log_write(log, test_path("absent.jsonl"), -1);
        assert_int_equal(judge(test_path("absent.jsonl"), logs[i]), HM_SIMPLE_CONSISTENT);
        test_log_free(log);
    }
    assert_int_equal(tally.differ, 0);
}

static void cut_logs(void **state)
{
    (void)state;
    size_t size;
    char *bytes = test_read("tests/data/logs/good/levels.jsonl", &size), what[64];
    tally = (struct tally){0};
    test_copy_rows();
    for (size_t cut = 0; cut < size; cut += 4099) {
        snprintf(what, sizeof what, "cut at %zu", cut);
        test_write(test_path("cut.jsonl"), bytes, cut);
        judge(test_path("cut.jsonl"), what);
    }
    free(bytes);
    assert_int_equal(tally.differ, 0);
}

static const char *const hostile[] = {
    "",
    "hello\n",
    "{}\n",
    "[1]\n",
    "{\"hallmark\":2,\"kind\":\"header\"}\n",
    "{\"hallmark\":1,\"hallmark\":1}\n",
    "{\"hallmark\":01}\n",
    "{\"a\":\"\xff\"}\n",
    "{\"a\":\"\\u0000\"}\n",
    "{\"a\":1} x\n",
    "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}\n"};

static void hostile_lines(void **state)
{
    (void)state;
    tally = (struct tally){0};
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        test_write(test_path("bad.jsonl"), hostile[i], strlen(hostile[i]));
        assert_int_equal(judge(test_path("bad.jsonl"), hostile[i]), HM_SIMPLE_UNREADABLE);
    }
    for (size_t over = 0; over < 2; over++) {
        test_write_long(test_path("bad.jsonl"), ((size_t)1 << 24) + over);
        assert_int_equal(judge(test_path("bad.jsonl"), "a long line"), HM_SIMPLE_UNREADABLE);
    }
    assert_int_equal(judge(test_path("nowhere.jsonl"), "no file"), HM_SIMPLE_UNREADABLE);
    assert_int_equal(tally.differ, 0);
}

// Fields that are asserted, or may be left out, or whose change can leave a log that is still true: these may survive.
static const char *const free_paths[] = {".run",
                                         ".text",
                                         ".proposal",
                                         ".tokenizer_sha256",
                                         ".numerics",
                                         ".name",
                                         "target.sha256",
                                         "draft.sha256",
                                         ".architecture",
                                         ".drafter",
                                         ".width",
                                         ".depth",
                                         ".selection",
                                         "sequence.id",
                                         ".category",
                                         ".turn",
                                         ".prompt",
                                         ".strings",
                                         ".logq",
                                         ".pool",
                                         ".charges",
                                         ".why",
                                         "header.",
                                         ".seed",
                                         ".stop",
                                         ".expected_accept",
                                         ".radius",
                                         ".draft_row",
                                         ".shard",
                                         "round.",
                                         ".tied_",
                                         ".active",
                                         ".e",
                                         ".ratio",
                                         ".standard_accept",
                                         ".nucleus_excess",
                                         "step.accept",
                                         ".restricted",
                                         "row.token",
                                         "row.index"};

static bool is_free(const char *path)
{
    for (size_t i = 0; i < sizeof free_paths / sizeof free_paths[0]; i++)
        if (strstr(path, free_paths[i])) return true;
    return false;
}

static bool is_float(const cJSON *v)
{
    return cJSON_IsString(v) && (strncmp(v->valuestring, "0x", 2) == 0 || strncmp(v->valuestring, "-0x", 3) == 0 ||
                                 strstr(v->valuestring, "inf"));
}

static void set_text(cJSON *v, const char *text)
{
    free(v->valuestring);
    v->valuestring = strdup(text);
}

static void nudge(cJSON *v, double factor)
{
    double x = strtod(v->valuestring, NULL), step = fmax(fabs(x), 1e-3) * 0x1p-20;
    char text[64];
    snprintf(text, sizeof text, "%a", isinf(x) ? 1 : x + factor * step);
    set_text(v, text);
}

// One of some ways to change a value; false when it does not apply, *sure when the result cannot be true.
static bool change(cJSON *parent, cJSON *v, int how, bool *sure)
{
    bool pair = cJSON_GetArraySize(v) == 2 && is_float(v->child) && is_float(v->child->next);
    *sure = true;
    if (how < 2 && pair) {
        bool bound = strstr(v->child->next->valuestring, "inf") && !strstr(v->child->valuestring, "inf");
        *sure = !bound || how == 0;
        nudge(v->child, bound ? 0x1p22 : how ? -1 : 1);
        if (!bound) nudge(v->child->next, how ? -1 : 1);
        return true;
    }
    if (how == 2 && cJSON_IsNumber(v)) return cJSON_SetNumberHelper(v, v->valuedouble + 1), true;
    if (how == 3 && cJSON_IsNumber(v)) return cJSON_SetNumberHelper(v, v->valuedouble - 1), true;
    if (how == 4 && cJSON_IsString(v) && !is_float(v)) {
        static const char *const turns[][2] = {
            {"yes", "no"},    {"no", "yes"},    {"vacuous", "yes"},          {"inapplicable", "no"},
            {"eps", "delta"}, {"delta", "eps"}, {"accepted", "continuation"}};
        for (size_t i = 0; i < 7; i++)
            if (strcmp(v->valuestring, turns[i][0]) == 0) return set_text(v, turns[i][1]), true;
        return set_text(v, "other"), true;
    }
    if (how == 5 && cJSON_IsObject(parent)) return cJSON_Delete(cJSON_DetachItemViaPointer(parent, v)), true;
    if (how == 6 && !cJSON_IsNull(v)) return cJSON_ReplaceItemViaPointer(parent, v, cJSON_CreateNull()) != 0;
    if (how == 7 && cJSON_IsBool(v)) return v->type = cJSON_IsTrue(v) ? cJSON_False : cJSON_True, true;
    return false;
}

static struct {
    char path[160];
    size_t seen;
} paths[PATHS];
static size_t every; // of the occurrences of a path in all logs, the first and then one in so many

static bool chosen(const char *path)
{
    size_t i = 0;
    while (i < PATHS && paths[i].path[0] && strcmp(paths[i].path, path) != 0) i++;
    assert_true(i < PATHS);
    snprintf(paths[i].path, sizeof paths[i].path, "%s", path);
    return paths[i].seen++ % every == 0;
}

static void walk(struct test_log *log, size_t line, const cJSON *parent, const int *at, int depth, const char *path)
{
    int index = 0, here[16];
    const cJSON *v;
    char name[160], what[256];
    memcpy(here, at, (size_t)depth * sizeof *here);
    cJSON_ArrayForEach(v, parent)
    {
        here[depth] = index++;
        snprintf(name, sizeof name, v->string ? "%s.%s" : "%s[]", path, v->string ? v->string : "");
        bool take = chosen(name);
        for (int how = 0; take && how < 8; how++) {
            bool sure, rare = how == 3 || how > 5;
            if (rare && every > 1000) continue;
            cJSON *copy = cJSON_Duplicate(log->line[line], 1), *whole = log->line[line], *inside = copy;
            for (int i = 0; i < depth; i++) inside = cJSON_GetArrayItem(inside, here[i]);
            if (change(inside, cJSON_GetArrayItem(inside, here[depth]), how, &sure)) {
                log->line[line] = copy;
                test_log_refresh(log, line);
                test_log_write(log, test_path("mutant.jsonl"), -1);
                snprintf(what, sizeof what, "%s line %zu: %s (%d)", log->name, line + 1, name, how);
                enum hm_simple_kind kind = judge(test_path("mutant.jsonl"), what);
                bool refused = kind == HM_SIMPLE_REFUTED || kind == HM_SIMPLE_UNREADABLE;
                bool may = is_free(name) && (how > 1 || strstr(name, "header.") || strstr(name, ".expected"));
                may = may || strcmp(log->name, "hashed") == 0; // without rows much is only consistent
                if (!refused && !may && sure && !strstr(name, "undecided")) {
                    tally.survived++;
                    printf("survived: %s\n", what);
                }
                log->line[line] = whole;
                test_log_refresh(log, line);
            }
            cJSON_Delete(copy);
        }
        if (v->child) walk(log, line, v, here, depth + 1, name);
    }
}

static void changed_fields(void **state)
{
    (void)state;
    int at[16] = {0};
    tally = (struct tally){0};
    every = test_count(100000, 10000, 50);
    memset(paths, 0, sizeof paths);
    test_copy_rows();
    for (int i = 0; i < log_count; i++) {
        struct test_log *log = test_log_read(logs[i]);
        for (size_t j = 0; j < log->count; j++)
            walk(log, j, log->line[j], at, 0, cJSON_GetObjectItemCaseSensitive(log->line[j], "kind")->valuestring);
        test_log_free(log);
    }
    printf("%zu logs with a value changed: %zu refused, %zu survived, %zu judged differently, %zu left open by one\n",
           tally.made, tally.refuted, tally.survived, tally.differ, tally.open);
    assert_int_equal(tally.survived, 0);
    assert_int_equal(tally.differ, 0);
}

static void lines_lost(void **state)
{
    (void)state;
    tally = (struct tally){0};
    test_copy_rows();
    for (int i = 0; i < log_count; i++) {
        struct test_log *log = test_log_read(logs[i]);
        for (size_t j = 0; j + 1 < log->count; j += test_count(4, 3, 1)) {
            char what[128];
            snprintf(what, sizeof what, "%s without line %zu", logs[i], j + 1);
            test_log_write(log, test_path("lost.jsonl"), (long)j);
            enum hm_simple_kind kind = judge(test_path("lost.jsonl"), what);
            if (kind != HM_SIMPLE_REFUTED && kind != HM_SIMPLE_UNREADABLE) fail_msg("%s", what);
        }
        test_log_free(log);
    }
    assert_int_equal(tally.differ, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(golden_logs), cmocka_unit_test(rows_absent),
                                       cmocka_unit_test(cut_logs),    cmocka_unit_test(hostile_lines),
                                       cmocka_unit_test(lines_lost),  cmocka_unit_test(changed_fields)};
    list_logs();
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    test_drop_folder();
    return rc;
}
