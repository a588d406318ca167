// Logs that lie and recompute the chain: each must be refused, by the check that is meant for it.
#include "tests/test_check_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static cJSON *member(cJSON *object, const char *key)
{
    cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!v) fail_msg("no %s", key);
    return v;
}

// The first record that has the field, or -1.
static size_t having(const struct test_log *log, const char *key)
{
    for (size_t i = 0; i < log->count; i++)
        if (cJSON_GetObjectItemCaseSensitive(log->line[i], key)) return i;
    fail_msg("%s: no record has %s", log->name, key);
    return 0;
}

// Writes the log with line `changed` as it now is, checks it, and forgets the log.
static void expect(struct test_log *log, size_t changed, int code, const char *message)
{
    struct hm_check_result result;
    test_copy_rows();
    test_log_refresh(log, changed);
    test_log_write(log, test_path("hostile.jsonl"), -1);
    hm_check_log(test_path("hostile.jsonl"), NULL, &result);
    if (result.exit_code != code || !strstr(result.message, message))
        fail_msg("expected %d and \"%s\", found %d and \"%s\"", code, message, result.exit_code, result.message);
    test_log_free(log);
}

static void m_has_a_limit(void **state)
{
    (void)state;
    struct test_log *log = test_log_read("greedy");
    cJSON_AddItemToArray(member(log->line[0], "m"), cJSON_CreateNumber(2147483648.0));
    expect(log, 0, 2, "line 1: m: expected at most 1000000");
}

static void a_parent_is_not_cut_to_an_int(void **state)
{
    (void)state;
    for (int node = 0; node < 2; node++) {
        struct test_log *log = test_log_read("greedy");
        size_t i = having(log, "parent");
        cJSON *parent = cJSON_GetArrayItem(member(log->line[i], "parent"), node);
        cJSON_SetNumberValue(parent, parent->valuedouble + 8589934592.0);
        expect(log, i, 1, "parent: expected");
    }
}

static void names_are_told_apart_by_case(void **state)
{
    (void)state;
    struct test_log *log = test_log_read("greedy");
    size_t i = having(log, "source");
    cJSON_AddStringToObject(log->line[i], "Finish", "a field that no reader knows");
    expect(log, i, 0, "PROVED ");
}

static void absent_is_no_finish(void **state)
{
    (void)state;
    struct test_log *log = test_log_read("greedy");
    size_t i = having(log, "source");
    cJSON_AddStringToObject(log->line[i], "finish", "absent");
    expect(log, i, 1, "finish: expected absent, found the text absent");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(m_has_a_limit),
        cmocka_unit_test(a_parent_is_not_cut_to_an_int),
        cmocka_unit_test(names_are_told_apart_by_case),
        cmocka_unit_test(absent_is_no_finish),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    test_drop_folder();
    return rc;
}
