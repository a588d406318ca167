// Logs that lie and recompute the chain: each must be refused, by the check that is meant for it.
#include "certify/check/math.h"
#include "tests/test_check_support.h"

#include <math.h>
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

static void top_has_a_limit(void **state)
{
    (void)state;
    struct test_log *log = test_log_read("greedy");
    cJSON_SetNumberValue(member(log->line[0], "top"), 4097);
    expect(log, 0, 2, "line 1: top: expected at most 4096");
}

static void a_pipe_for_a_shard_is_refused(void **state)
{
    (void)state;
    struct hm_check_result result;
    struct test_log *log = test_log_read("greedy");
    test_copy_rows();
    test_log_write(log, test_path("pipe.jsonl"), -1);
    unlink(test_path("greedy-target-00000.safetensors"));
    assert_int_equal(mkfifo(test_path("greedy-target-00000.safetensors"), 0600), 0);
    alarm(20); // a checker that waits for a writer ends the test
    hm_check_log(test_path("pipe.jsonl"), NULL, &result);
    alarm(0);
    unlink(test_path("greedy-target-00000.safetensors"));
    assert_int_equal(result.exit_code, 2);
    assert_non_null(strstr(result.message, "expected a regular file"));
    test_log_free(log);
}

static void a_line_has_a_limit(void **state)
{
    (void)state;
    struct hm_check_result result;
    for (size_t over = 0; over < 2; over++) {
        test_write_long(test_path("long.jsonl"), ((size_t)1 << 24) + over);
        hm_check_log(test_path("long.jsonl"), NULL, &result);
        assert_int_equal(result.exit_code, 2);
        assert_non_null(strstr(result.message, over ? "at most 16 MiB" : "line 1: hallmark: "));
    }
}

// p and q on different tokens: TV is 1 but for what the smallest floats leave, and no enclosure may pass 1.
static void tv_ends_at_one(void **state)
{
    (void)state;
    struct ck_math m = {0};
    struct iv tv;
    struct ck_ask ask = {0};
    assert_true(ck_math_init(&m, 3));
    mpq_set_ui(m.inverse_claim, 3, 1);
    mpq_set_ui(m.inverse_draw, 1, 1);
    const float p[3] = {0.3f, 0.1f, -200}, q[3] = {-300, -300, 0.7f};
    memcpy(m.row[0].logit, p, sizeof p);
    memcpy(m.row[1].logit, q, sizeof q);
    ck_math_new_row(&m, CK_TARGET);
    ck_math_new_row(&m, CK_DRAFT);
    iv_inits(&tv, 1, ck_precision(0));
    for (int level = 0; level < 2; level++) {
        assert_true(ck_tv_pq(&m, level, &ask, &tv));
        assert_true(mpfr_cmp_ui(tv.hi, 1) <= 0);
        assert_true(mpfr_cmp_d(tv.lo, 1 - 0x1p-53) > 0);
    }
    iv_clears(&tv, 1);
    ck_math_clear(&m);
}

// A certified step whose verdicts are taken back: no draft row, no divergences, `certified` null.
static void hide_verdicts(const char *reason, const char *told, const char *message)
{
    static const char *const divergences[4] = {"kl_pq", "kl_qp", "tv", "standard_accept"};
    struct test_log *log = test_log_read("greedy");
    size_t i = having(log, "kl_pq");
    cJSON *step = log->line[i], *row = cJSON_CreateObject(), *claim;
    cJSON_AddStringToObject(row, "why", reason);
    cJSON_ReplaceItemInObjectCaseSensitive(step, "draft_row", row);
    for (int d = 0; d < 4; d++) cJSON_DeleteItemFromObjectCaseSensitive(step, divergences[d]);
    cJSON_ArrayForEach(claim, member(step, "claims"))
    {
        cJSON_DeleteItemFromObjectCaseSensitive(claim, "covered");
        cJSON_ReplaceItemInObjectCaseSensitive(claim, "certified", cJSON_CreateNull());
        cJSON_AddStringToObject(claim, "why", told);
    }
    expect(log, i, 1, message);
}

static void verdicts_are_not_hidden(void **state)
{
    (void)state;
    static const char *const impossible[] = {"prefill", "leaf", "not expanded", "no draft model", "no drafter"};
    for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++)
        hide_verdicts(impossible[i], impossible[i], "draft_row: expected another reason");
    hide_verdicts("tired", "tired", "draft_row: expected a reason that");
    hide_verdicts("not kept", "no children", "why: expected \"not kept\"");
}

static void a_claim_gives_the_reason_of_its_row(void **state)
{
    (void)state;
    struct test_log *log = test_log_read("greedy");
    size_t i = having(log, "source"); // the prefill
    cJSON_ReplaceItemInObjectCaseSensitive(cJSON_GetArrayItem(member(log->line[i], "claims"), 0), "why",
                                           cJSON_CreateString("leaf"));
    expect(log, i, 1, "why: expected \"prefill\"");
}

// A field where the page says that there is none, in the first record or claim of a kind.
static void misplaced(const char *name, const char *kind, int claim, const char *key)
{
    char message[64];
    struct test_log *log = test_log_read(name);
    size_t i = 0;
    while (i < log->count && strcmp(member(log->line[i], "kind")->valuestring, kind) != 0) i++;
    assert_true(i < log->count);
    cJSON *at = claim < 0 ? log->line[i] : cJSON_GetArrayItem(member(log->line[i], "claims"), claim);
    cJSON_AddStringToObject(at, key, "0x0p+0");
    snprintf(message, sizeof message, "%s: expected nothing: ", key);
    expect(log, i, 1, message);
}

static void nothing_stands_where_nothing_should(void **state)
{
    (void)state;
    static const char *const stopped[] = {"level_f", "level_r", "tied_f", "tied_r", "klf",
                                          "klr",     "tv",      "margin", "radius", "covered"};
    static const char *const emitted[] = {"t", "token", "regret", "finish", "text"};
    for (size_t i = 0; i < sizeof stopped / sizeof stopped[0]; i++) misplaced("greedy", "step", 0, stopped[i]);
    for (size_t i = 0; i < sizeof emitted / sizeof emitted[0]; i++) misplaced("sampled", "node", -1, emitted[i]);
    misplaced("greedy", "step", -1, "regret");
    misplaced("sampled", "node", 0, "accepts");
    misplaced("sampled", "node", 0, "radius");
}

static void no_level_without_a_level(void **state)
{
    (void)state;
    static const char *const keys[] = {"level_f", "level_r", "tied_f", "tied_r", "margin"};
    for (size_t j = 0; j < sizeof keys / sizeof keys[0]; j++) {
        struct test_log *log = test_log_read("special");
        size_t i = 0;
        cJSON *claim = NULL;
        for (; i < log->count && !claim; i += !claim) {
            cJSON_ArrayForEach(claim, cJSON_GetObjectItemCaseSensitive(log->line[i], "claims"))
            {
                if (cJSON_GetObjectItemCaseSensitive(claim, "klf") &&
                    !cJSON_GetObjectItemCaseSensitive(claim, "level_f"))
                    break;
            }
        }
        assert_non_null(claim);
        cJSON_AddNullToObject(claim, keys[j]);
        expect(log, i, 1, "expected nothing: k is 0 or k + m");
    }
}

static void numbers_are_those_of_json(void **state)
{
    (void)state;
    static const char *const good[] = {"0",        "-0",    "1e-05",    "1E-05",  "-1e05",
                                       "1.5e+007", "0.001", "-0.0e-00", "\"-01\""};
    static const char *const bad[] = {"01", "-01", "00", "-00.5", "01e5"};
    static const char *const forms[] = {"%s", "[%s]", "{\"a\":%s}", "[1,%s]", "[1, %s]"};
    char text[64];
    for (size_t j = 0; j < sizeof forms / sizeof forms[0]; j++) {
        for (size_t i = 0; i < sizeof good / sizeof good[0] + sizeof bad / sizeof bad[0]; i++) {
            bool fine = i < sizeof good / sizeof good[0];
            struct test_log *log = test_log_read("greedy");
            snprintf(text, sizeof text, forms[j], fine ? good[i] : bad[i - sizeof good / sizeof good[0]]);
            cJSON_DeleteItemFromObjectCaseSensitive(log->line[0], "run");
            cJSON_AddRawToObject(log->line[0], "run", text);
            expect(log, 0, fine ? 0 : 2, fine ? "PROVED " : "leading zero");
        }
    }
    struct test_log *log = test_log_read("greedy");
    cJSON_DeleteItemFromObjectCaseSensitive(log->line[0], "hallmark");
    cJSON_AddRawToObject(log->line[0], "hallmark", "1e00");
    expect(log, 0, 0, "PROVED ");
}

static void laws_have_a_limit(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        struct test_log *log = test_log_read("greedy");
        cJSON *laws = cJSON_AddArrayToObject(log->line[0], "laws");
        cJSON_AddItemToArray(laws, cJSON_CreateString(which ? "topk" : "iid"));
        cJSON_AddItemToArray(member(log->line[0], "m"), cJSON_CreateNumber(1025));
        expect(log, 0, 2, "line 1: m: expected at most 1024 where there are laws, found 1025");
    }
}

// Gives the first of an object's divergences, if it has some, another name.
static cJSON *rename_first(cJSON *object, const char *name)
{
    cJSON *all = cJSON_GetObjectItemCaseSensitive(object, "divergences");
    if (all) cJSON_AddItemToObject(all, name, cJSON_DetachItemViaPointer(all, all->child));
    return all;
}

static void long_names_are_not_cut(void **state)
{
    (void)state;
    const char *name = "renyi:1000000000000000000000000000000000000001/1000000000000000000000000000000000000003";
    char message[256];
    struct hm_check_result result;
    struct test_log *log = test_log_read("divergences");
    cJSON *header = member(log->line[0], "divergences"), *claim, *wrong = NULL;
    cJSON_DeleteItemFromArray(header, 0);
    cJSON_AddItemToArray(header, cJSON_CreateString(name));
    test_log_refresh(log, 0);
    for (size_t i = 1; i < log->count; i++) {
        rename_first(log->line[i], name);
        cJSON_ArrayForEach(claim, cJSON_GetObjectItemCaseSensitive(log->line[i], "claims"))
        {
            cJSON *all = rename_first(claim, name);
            if (!all || wrong) continue;
            wrong = member(all, name);
            cJSON_ReplaceItemInObjectCaseSensitive(wrong, "star", cJSON_CreateString("wrong"));
        }
        test_log_refresh(log, i);
    }
    test_drop_rows();
    test_log_write(log, test_path("hostile.jsonl"), -1);
    hm_check_log(test_path("hostile.jsonl"), NULL, &result);
    snprintf(message, sizeof message, "divergences.%s.star: expected an array", name);
    if (result.exit_code != 2 || !strstr(result.message, message))
        fail_msg("expected \"%s\", found \"%s\"", message, result.message);
    test_log_free(log);
}

// Twice the lower bound of a radius is more than its construction proves.
static void a_larger_radius_is_refuted(void **state)
{
    (void)state;
    int changed = 0;
    for (int which = 0; which < test_log_count && changed < 30; which++) {
        struct test_log *log = test_log_read(test_logs[which]);
        size_t count = log->count;
        test_log_free(log);
        for (size_t i = 1; i < count && changed < 30; i++)
            for (int j = 0;; j++) {
                log = test_log_read(test_logs[which]);
                cJSON *claim = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(log->line[i], "claims"), j);
                cJSON *radius = cJSON_GetObjectItemCaseSensitive(claim, "radius"),
                      *lower = cJSON_GetArrayItem(radius, 0);
                bool bound = radius && strcmp(cJSON_GetArrayItem(radius, 1)->valuestring, "inf") == 0;
                double value = bound ? strtod(lower->valuestring, NULL) : 0;
                bool done = !claim;
                if (value > 0 && value < HUGE_VAL) {
                    char text[64];
                    snprintf(text, sizeof text, "%a", 2 * value);
                    cJSON_ReplaceItemInArray(radius, 0, cJSON_CreateString(text));
                    changed++;
                    expect(log, i, 1, "radius: expected a lower bound of the decision's radius");
                } else {
                    test_log_free(log);
                }
                if (done) break;
            }
    }
    assert_true(changed > 10);
}

// Replaces an enclosure by a lower bound: its lower end times `factor`.
static void make_bound(cJSON *enclosure, double factor)
{
    char text[64];
    assert_non_null(enclosure);
    snprintf(text, sizeof text, "%a", factor * strtod(cJSON_GetArrayItem(enclosure, 0)->valuestring, NULL));
    cJSON_ReplaceItemInArray(enclosure, 0, cJSON_CreateString(text));
    cJSON_ReplaceItemInArray(enclosure, 1, cJSON_CreateString("inf"));
}

// The first enclosure of this kind that is finite and above 0.
static cJSON *find_finite(cJSON *object, const char *key, const char *inner)
{
    cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    if (v && inner) v = cJSON_GetObjectItemCaseSensitive(v, inner);
    if (cJSON_IsObject(v)) v = cJSON_GetObjectItemCaseSensitive(v, "star");
    double x = v ? strtod(cJSON_GetArrayItem(v, 0)->valuestring, NULL) : 0;
    return x > 0 && x < HUGE_VAL ? v : NULL;
}

static void lower_bounds_stand_where_they_may(void **state)
{
    (void)state;
    static const struct {
        const char *log, *key, *inner;
        bool record, may;
    } table[] = {
        {"restricted", "restricted", "klr", false, true},
        {"restricted", "restricted", "klf", false, false},
        {"restricted", "restricted", "kl", false, false},
        {"restricted", "klr", NULL, false, false},
        {"divergences", "divergences", "chi2", true, true},
        {"divergences", "divergences", "max", true, true},
        {"divergences", "divergences", "renyi:3", false, true},
        {"divergences", "divergences", "spread", false, true},
        {"divergences", "kl_pq", NULL, true, false},
        {"divergences", "entropy", NULL, true, false},
        {"audit", "margin", "klr", false, false},
    };
    static const double factors[] = {1, 0.5, 2};
    for (size_t j = 0; j < sizeof table / sizeof table[0]; j++)
        for (int f = 0; f < 3; f++) {
            struct test_log *log = test_log_read(table[j].log);
            cJSON *v = NULL, *claim;
            size_t i = 0;
            while (!v && ++i < log->count) {
                if (table[j].record) v = find_finite(log->line[i], table[j].key, table[j].inner);
                if (table[j].record) continue;
                cJSON_ArrayForEach(claim, cJSON_GetObjectItemCaseSensitive(log->line[i], "claims")) if (!v) v =
                    find_finite(claim, table[j].key, table[j].inner);
            }
            make_bound(v, factors[f]);
            bool fine = table[j].may && factors[f] <= 1;
            expect(log, i, fine ? 0 : 1,
                   fine            ? "PROVED "
                   : !table[j].may ? "within 2^-30"
                                   : "expected an enclosure of");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_json),
        cmocka_unit_test(laws_have_a_limit),
        cmocka_unit_test(long_names_are_not_cut),
        cmocka_unit_test(a_larger_radius_is_refuted),
        cmocka_unit_test(lower_bounds_stand_where_they_may),
        cmocka_unit_test(m_has_a_limit),
        cmocka_unit_test(a_parent_is_not_cut_to_an_int),
        cmocka_unit_test(names_are_told_apart_by_case),
        cmocka_unit_test(absent_is_no_finish),
        cmocka_unit_test(top_has_a_limit),
        cmocka_unit_test(a_pipe_for_a_shard_is_refused),
        cmocka_unit_test(a_line_has_a_limit),
        cmocka_unit_test(tv_ends_at_one),
        cmocka_unit_test(verdicts_are_not_hidden),
        cmocka_unit_test(a_claim_gives_the_reason_of_its_row),
        cmocka_unit_test(nothing_stands_where_nothing_should),
        cmocka_unit_test(no_level_without_a_level),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    test_drop_folder();
    return rc;
}
