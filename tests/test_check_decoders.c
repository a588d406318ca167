// Headers, rounds and steps of stochastic acceptance, budgets, selections and scored nodes that say what they must not:
// each is refused, by the check that is meant for it, and never proved.
#include "tests/test_check_support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// The first record of a kind that has a field; "header" is line 1.
static size_t having(const struct test_log *log, const char *kind, const char *key)
{
    for (size_t i = 0; i < log->count; i++) {
        const cJSON *k = cJSON_GetObjectItemCaseSensitive(log->line[i], "kind");
        if (strcmp(k->valuestring, kind) == 0 && (!key || cJSON_GetObjectItemCaseSensitive(log->line[i], key)))
            return i;
    }
    fail_msg("%s: no %s has %s", log->name, kind, key ? key : "any field");
    return 0;
}

static void judge(struct test_log *log, size_t line, int code, const char *message, const char *what)
{
    struct hm_check_result result;
    test_log_refresh(log, line);
    test_log_write(log, test_path("hostile.jsonl"), -1);
    hm_check_log(test_path("hostile.jsonl"), NULL, &result);
    if (result.exit_code != code || !strstr(result.message, message))
        fail_msg("%s: %s: expected %d and \"%s\", found %d and \"%s\"", log->name, what, code, message,
                 result.exit_code, result.message);
    test_log_free(log);
}

// Sets a field, "decoder.score" for one inside another, to a value in JSON; "" removes it.
static void set(cJSON *object, const char *path, const char *value)
{
    const char *dot = strchr(path, '.');
    if (dot) {
        char outer[32];
        snprintf(outer, sizeof outer, "%.*s", (int)(dot - path), path);
        object = cJSON_GetObjectItemCaseSensitive(object, outer);
        path = dot + 1;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(object, path);
    if (*value) cJSON_AddItemToObject(object, path, cJSON_Parse(value));
}

struct lie {
    const char *log, *kind, *needs; // the first record of the kind that has this field
    const char *field, *value;
    int code;
    const char *message;
};

static const struct lie lies[] = {
    // words that the page does not have
    {"standard", "header", NULL, "acceptance", "\"standards\"", 2, "line 1: acceptance: expected match, standard or"},
    {"standard", "header", NULL, "proposal", "\"draws\"", 2, "line 1: proposal: expected topk, iid or none"},
    {"standard", "header", NULL, "proposal", "", 2, "line 1: proposal: expected a value"},
    {"standard", "header", NULL, "decoder.selection", "\"order\"", 2, "line 1: selection: expected draft, root"},
    {"standard", "header", NULL, "decoder.traversal", "\"leaf\"", 2,
     "line 1: traversal: expected exhaustive, cap:N or"},
    {"standard", "header", NULL, "decoder.traversal", "\"cap:-1\"", 2, "line 1: traversal: expected exhaustive"},
    {"standard", "header", NULL, "decoder.traversal", "\"cap:99999999999999999999\"", 2, "line 1: traversal: expected"},
    {"scored", "header", NULL, "decoder.score", "\"top:\"", 2, "line 1: score: expected top:M or frontier:E"},
    {"scored", "header", NULL, "decoder.score", "\"frontier:-2\"", 2, "line 1: score: expected top:M"},
    {"scored", "header", NULL, "decoder.score", "null", 2, "line 1: score: expected a string"},
    {"tv-budget", "header", NULL, "budget", "\"tv\"", 2, "line 1: budget: expected an object"},
    {"tv-budget", "header", NULL, "budget.kind", "\"kl\"", 2, "line 1: kind: expected tv or regret"},
    {"tv-budget", "header", NULL, "budget.kind", "", 2, "line 1: kind: expected a value"},
    {"tv-budget", "header", NULL, "budget.limit", "\"-1/2\"", 2, "line 1: limit: expected a rational"},
    {"tv-budget", "header", NULL, "budget.limit", "\"1/0\"", 2, "line 1: limit: expected a rational"},
    {"tv-budget", "header", NULL, "budget.limit", "\"inf\"", 2, "line 1: limit: expected a rational"},
    {"tv-budget", "header", NULL, "budget.limit", "0.5", 2, "line 1: limit: expected a string"},
    {"tv-budget", "header", NULL, "budget.limit", "", 2, "line 1: limit: expected a value"},
    // combinations that the page does not define
    {"standard", "header", NULL, "temperature", "\"0\"", 1, "line 1: temperature: expected more than 0"},
    {"nucleus", "header", NULL, "temperature", "\"0\"", 1, "line 1: temperature: expected more than 0"},
    {"standard", "header", NULL, "certify_temperature", "\"2\"", 1, "line 1: certify_temperature: expected the temp"},
    {"nucleus", "header", NULL, "processors.top_k", "5", 1, "line 1: processors: expected none"},
    {"nucleus", "header", NULL, "processors.top_p", "\"1/2\"", 1, "line 1: processors: expected none"},
    {"sampled", "header", NULL, "proposal", "\"iid\"", 1, "line 1: proposal: expected iid with standard and nucleus"},
    {"relaxed", "header", NULL, "proposal", "\"iid\"", 1, "line 1: proposal: expected iid with standard and nucleus"},
    {"standard-iid", "header", NULL, "draft", "null", 1, "line 1: proposal: expected iid with a draft only"},
    {"standard", "header", NULL, "proposal", "\"none\"", 1, "parent: expected the root alone"},
    {"standard", "header", NULL, "decoder.selection", "\"root\"", 1, "line 1: selection: expected draft"},
    {"relaxed", "header", NULL, "decoder.selection", "\"root-draw\"", 1, "line 1: selection: expected draft"},
    {"relaxed", "header", NULL, "decoder.traversal", "\"leaf-stop\"", 1, "line 1: traversal: expected exhaustive or"},
    {"nucleus", "header", NULL, "decoder.score", "\"top:9\"", 1, "line 1: score: expected none"},
    {"covering", "header", NULL, "decoder.traversal", "\"exhaustive\"", 1, "line 1: traversal: expected leaf-stop"},
    {"standard", "header", NULL, "budget", "{\"kind\":\"tv\",\"limit\":\"1\"}", 1, "line 1: budget: expected tv with"},
    {"relaxed", "header", NULL, "budget", "{\"kind\":\"tv\",\"limit\":\"1\"}", 1, "line 1: budget: expected tv with"},
    {"nucleus", "header", NULL, "budget", "{\"kind\":\"regret\",\"limit\":\"1\"}", 1,
     "line 1: budget: expected regret"},
    {"greedy", "header", NULL, "budget", "{\"kind\":\"regret\",\"limit\":\"1\"}", 1, "line 1: budget: expected regret"},
    {"lenient", "header", NULL, "budget", "{\"kind\":\"regret\",\"limit\":\"1\"}", 1,
     "line 1: budget: expected regret"},
    {"audit", "header", NULL, "budget", "{\"kind\":\"tv\",\"limit\":\"1\"}", 1, "line 1: budget: expected tv with"},
    {"audit", "header", NULL, "acceptance", "\"standard\"", 1, "line 1: acceptance: expected match in an audit"},
    // rounds
    {"scored", "round", NULL, "scored", "9007199254740991", 1, "scored: expected fewer than the"},
    {"scored", "round", NULL, "scored", "1e300", 2, "scored: expected an integer"},
    {"scored", "round", NULL, "scored", "-1", 2, "scored: expected an integer from 0"},
    {"scored", "round", NULL, "scored", "null", 2, "scored: expected an integer"},
    {"scored", "round", NULL, "scored", "\"1\"", 2, "scored: expected an integer"},
    {"greedy", "round", NULL, "scored", "1", 1, "scored: expected 0 (the decoder has no score)"},
    {"greedy", "round", NULL, "scored", "0", 0, "PROVED"},
    {"root-draw", "round", NULL, "first", "", 2, "first: expected a value"},
    {"root-draw", "round", NULL, "first", "-1", 2, "first: expected an integer from 0"},
    {"root-draw", "round", NULL, "first", "9007199254740991", 1, "first: expected the token"},
    {"root-draw", "round", NULL, "first", "4294967296", 1, "first: expected the token"},
    {"greedy", "round", NULL, "first", "0", 1, "first: expected nothing: the tree was chosen before a draw"},
    {"covering", "round", NULL, "first", "0", 1, "first: expected nothing: a sequence's first round"},
    {"covering", "round", "first", "first", "77", 1, "first: expected the token"},
    {"standard", "round", NULL, "expected_accept", "[\"0x1p+0\",\"0x1p+0\"]", 1, "expected_accept: expected null"},
    // steps
    {"nucleus", "step", "accept", "relaxed", "true", 1, "relaxed: expected nothing: the header has no budget"},
    {"nucleus", "step", NULL, "spent", "\"0x0p+0\"", 1, "spent: expected nothing: the header has no budget"},
    {"nucleus", "step", "accept", "charge", "[\"0x0p+0\",\"0x0p+0\"]", 1, "charge: expected nothing: the header has"},
    {"tv-budget", "step", NULL, "charge", "[\"0x0p+0\",\"0x0p+0\"]", 1, "charge: expected nothing: the relaxation"},
    {"tv-budget", "step", NULL, "relaxed", "true", 1, "relaxed: expected nothing: the relaxation"},
    {"tv-budget", "step", NULL, "spent", "\"nan\"", 2, "spent: expected a hexadecimal float"},
    {"tv-budget", "step", NULL, "spent", "0", 2, "spent: expected a hexadecimal float"},
    {"tv-budget", "step", NULL, "spent", "\"inf\"", 1, "spent: expected 0x0p+0"},
    {"tv-budget", "step", NULL, "spent", "\"-0x1p-1074\"", 1, "spent: expected 0x0p+0"},
    {"tv-budget", "step", NULL, "spent", "", 2, "spent: expected a value"},
    {"tv-budget", "step", "charge", "charge", "[\"nan\",\"nan\"]", 2, "charge: expected a hexadecimal float"},
    {"tv-budget", "step", "charge", "charge", "[\"-0x1p-70\",\"-0x1p-80\"]", 1, "charge: expected an enclosure"},
    {"tv-budget", "step", "charge", "charge", "", 2, "charge: expected a value"},
    {"tv-budget", "step", "charge", "relaxed", "", 2, "relaxed: expected a value"},
    {"tv-budget", "step", "charge", "relaxed", "1", 2, "relaxed: expected true or false"},
    {"tv-budget", "step", "charge", "e", "", 2, "e: expected a value"},
    {"regret-budget", "step", "charge", "charge", "[\"inf\",\"inf\"]", 1, "charge: expected an enclosure"},
    {"regret-budget", "step", "charge", "charge", "", 2, "charge: expected a value"},
    {"standard", "step", NULL, "regret", "[\"0x0p+0\",\"0x0p+0\"]", 1, "regret: expected nothing: acceptance is stand"},
    {"standard", "step", NULL, "accept", "[\"0x1p-1\",\"0x1p-1\"]", 1,
     "accept: expected nothing: the walk looks at no"},
    {"standard", "step", "accept", "accept_standard", "[\"0x1p-1\",\"0x1p-1\"]", 1,
     "accept_standard: expected nothing"},
    {"standard", "step", "accept", "nucleus_excess", "[\"0x0p+0\",\"0x0p+0\"]", 1, "nucleus_excess: expected nothing"},
    {"sampled", "step", NULL, "accept", "[\"0x1p-1\",\"0x1p-1\"]", 1, "accept: expected nothing: acceptance is det"},
    {"standard", "step", "accept", "e", "[\"0x1p-60\",\"0x1p-60\"]", 1, "e: expected exactly 0"},
    {"standard", "step", "accept", "e", "[\"0x0p+0\",\"0x0p+0\"]", 0, "PROVED"},
    {"standard", "step", "accept", "ratio", "[\"0x1p+0\",\"0x1p+0\"]", 0, "PROVED"},
    {"nucleus-iid", "step", "accept", "ratio", "[\"0x1p+0\",\"0x1p+0\"]", 1, "ratio: expected an enclosure"},
    {"standard-iid", "node", NULL, "accept", "[\"0x1p-1\",\"0x1p-1\"]", 1, "accept: expected nothing: a node emits"},
    {"standard-iid", "node", NULL, "spent", "\"0x0p+0\"", 1, "spent: expected nothing: a node emits"},
    {"audit", "row", NULL, "spent", "\"0x0p+0\"", 1, "spent: expected nothing: a row is no step"},
};

static void lies_are_refused(void **state)
{
    (void)state;
    test_copy_rows();
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        char what[128];
        struct test_log *log = test_log_read(lies[i].log);
        size_t line = having(log, lies[i].kind, lies[i].needs);
        set(log->line[line], lies[i].field, lies[i].value);
        snprintf(what, sizeof what, "%s %s", lies[i].field, lies[i].value);
        judge(log, line, lies[i].code, lies[i].message, what);
    }
}

// The same round with a token repeated among siblings: fine where they were drawn, and else not.
static void siblings_repeat_only_if_drawn(void **state)
{
    (void)state;
    test_copy_rows();
    struct test_log *log = test_log_read("standard");
    size_t line = having(log, "round", NULL);
    cJSON *token = cJSON_GetObjectItemCaseSensitive(log->line[line], "token");
    cJSON_SetNumberValue(cJSON_GetArrayItem(token, 2), cJSON_GetArrayItem(token, 1)->valuedouble);
    judge(log, line, 1, "token: expected siblings with different tokens", "topk");
    log = test_log_read("standard-iid");
    line = having(log, "round", NULL);
    token = cJSON_GetObjectItemCaseSensitive(log->line[line], "token");
    for (int i = 1; i < 3; i++)
        cJSON_SetNumberValue(cJSON_GetArrayItem(token, i), fmod(cJSON_GetArrayItem(token, i)->valuedouble + 1, 8));
    judge(log, line, 1, "child: expected the draw of the draft", "iid"); // some other draw
}

static void only_the_first_draw_has_children(void **state)
{
    (void)state;
    test_copy_rows();
    struct test_log *log = test_log_read("standard-iid");
    size_t line = having(log, "round", NULL);
    cJSON *parent = cJSON_GetObjectItemCaseSensitive(log->line[line], "parent");
    int last = cJSON_GetArraySize(parent) - 1;
    cJSON_SetNumberValue(cJSON_GetArrayItem(parent, last), 2);
    judge(log, line, 1, "parent: expected no children of node 2", "iid");
}

// What is spent follows from the lines alone: a sum, a limit, flags that agree with the walk.
static void budgets_without_rows(void **state)
{
    (void)state;
    static const struct lie wrong[] = {
        {"tv-budget", "step", "charge", "relaxed", "true", 1, "relaxed: expected false"},
        {"tv-budget", "step", "charge", "spent", "\"0x1p-3\"", 1, "spent: expected "},
        {"tv-budget", "step", "charge", "charge", "[\"-0x1p-2\",\"-0x1p-2\"]", 1, "charge: expected a probability"},
        {"tv-budget", "step", "charge", "charge", "[\"0x1.8p+0\",\"0x1.8p+0\"]", 1, "charge: expected a probability"},
        {"tv-budget", "header", NULL, "budget.limit", "\"0\"", 1, "relaxed: expected false"},
        {"regret-budget", "header", NULL, "budget.limit", "\"0\"", 1, "relaxed: expected false"},
        {"regret-budget", "step", "charge", "charge", "[\"-0x1p-2\",\"-0x1p-2\"]", 1, "charge: expected a value >= 0"},
        {"regret-budget", "step", "charge", "spent", "\"0x1p+9\"", 1, "spent: expected "},
        {"nucleus", "step", "accept", "accept", "[\"0x1.1p+0\",\"0x1.1p+0\"]", 1, "accept: expected a probability"},
        {"nucleus", "step", "ratio", "ratio", "[\"0x1p-1\",\"0x1p-1\"]", 1, "ratio: expected exactly 1"},
        {"root-draw", "round", NULL, "first", "1", 1, "first: expected the token"},
        {"leaf-stop", "header", NULL, "decoder.traversal", "\"exhaustive\"", 1, "source: expected accepted"},
        {"standard", "header", NULL, "decoder.traversal", "\"cap:0\"", 1, "accept: expected nothing"},
    };
    test_drop_rows();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct test_log *log = test_log_read(wrong[i].log);
        size_t line = having(log, wrong[i].kind, wrong[i].needs);
        set(log->line[line], wrong[i].field, wrong[i].value);
        judge(log, line, wrong[i].code, wrong[i].message, wrong[i].field);
    }
}

// Limits one unit of 2^-53 apart around what a log needs: compared exactly, room for uniforms included.
static void a_limit_is_exact(void **state)
{
    (void)state;
    test_copy_rows();
    for (int regret = 0; regret < 2; regret++) {
        const char *name = regret ? "regret-budget" : "tv-budget";
        struct test_log *log = test_log_read(name);
        const cJSON *decoder = cJSON_GetObjectItemCaseSensitive(log->line[0], "decoder"),
                    *stop = cJSON_GetObjectItemCaseSensitive(log->line[1], "stop");
        double budget = cJSON_GetObjectItemCaseSensitive(decoder, "budget")->valuedouble, spent = 0;
        double tokens = cJSON_GetObjectItemCaseSensitive(stop, "max_tokens")->valuedouble;
        for (size_t i = 0; i < log->count && !(spent > 0); i++) { // the first to spend: its limit is what it has spent
            const cJSON *v = cJSON_GetObjectItemCaseSensitive(log->line[i], "spent");
            spent = v ? strtod(v->valuestring, NULL) : 0;
        }
        double room = regret ? 0 : tokens * ((budget + 1) * 8 + budget); // in units of 2^-53; the vocabulary is 8
        test_log_free(log);
        for (int under = 0; under < 2; under++) {
            char limit[128];
            // spent is a double below 1: a whole number of units of 2^-80
            __extension__ unsigned __int128 units =
                (unsigned __int128)ldexp(spent, 80) + ((unsigned __int128)room << 27);
            units -= (unsigned)under;
            char digits[48];
            size_t at = sizeof digits - 1;
            digits[at] = '\0';
            for (; units > 0; units /= 10) digits[--at] = (char)('0' + (int)(units % 10));
            snprintf(limit, sizeof limit, "\"%s/1208925819614629174706176\"", &digits[at]); // 2^80
            log = test_log_read(name);
            set(log->line[0], "budget.limit", limit);
            struct hm_check_result result;
            test_log_refresh(log, 0);
            test_log_write(log, test_path("limit.jsonl"), -1);
            hm_check_log(test_path("limit.jsonl"), NULL, &result);
            size_t first = 0;
            while (!cJSON_GetObjectItemCaseSensitive(log->line[first], "spent") ||
                   !(strtod(cJSON_GetObjectItemCaseSensitive(log->line[first], "spent")->valuestring, NULL) > 0))
                first++;
            bool here = result.line == first + 1 && strstr(result.message, "relaxed: expected false");
            if (here != (under == 1)) fail_msg("%s, %s: %s", name, limit, result.message);
            test_log_free(log);
        }
    }
}

// Where the relaxation is in force, e is the charge with the same two ends: another enclosure of the same number is
// none. Both may have a lower end of their own, as only the upper one is spent.
static void e_has_the_ends_of_its_charge(void **state)
{
    (void)state;
    test_copy_rows();
    for (int which = 0; which < 3; which++) { // e alone; the charge alone; both
        struct test_log *log = test_log_read("tv-budget");
        size_t line = 0;
        double lower = 0;
        for (; line < log->count && !(lower > 0); line++) {
            const cJSON *charge = cJSON_GetObjectItemCaseSensitive(log->line[line], "charge");
            if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(log->line[line], "relaxed"))) continue;
            lower = strtod(cJSON_GetArrayItem(charge, 0)->valuestring, NULL);
        }
        assert_true(lower > 0);
        for (int field = 0; field < 2; field++) {
            char text[64];
            if (which == !field) continue;
            snprintf(text, sizeof text, "%a", nextafter(lower, 0));
            cJSON *ends = cJSON_GetObjectItemCaseSensitive(log->line[line - 1], field ? "charge" : "e");
            cJSON_ReplaceItemInArray(ends, 0, cJSON_CreateString(text));
        }
        judge(log, line - 1, which < 2, which < 2 ? "e: expected the charge [" : "PROVED", "ends of e");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(siblings_repeat_only_if_drawn),
        cmocka_unit_test(only_the_first_draw_has_children),
        cmocka_unit_test(a_limit_is_exact),
        cmocka_unit_test(budgets_without_rows),
        cmocka_unit_test(e_has_the_ends_of_its_charge),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    test_drop_folder();
    return rc;
}
