// The independent checkers prove what the stamper writes: synthetic decodes of every kind, with their rows.
#include "certify/check/check.h"
#include "certify/check/simple/simple.h"
#include "tests/seed.h"
#include "tests/test_stamp_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void judge(const char *checker, const char *expected, int exit_code, const char *found, int code, uint64_t line)
{
    if (code == exit_code && strncmp(found, expected, strlen(expected)) == 0) return;
    struct log_text text = log_read(log_path);
    if (line && line <= text.lines) print_error("%.3000s\n", text.start[line - 1]);
    log_free(&text);
    fail_msg("%s: expected \"%s...\" and exit code %d, found \"%s\" and %d", checker, expected, exit_code, found, code);
}

static void check_as(const char *expected, int exit_code)
{
    struct hm_check_result result;
    int code = hm_check_log(log_path, NULL, &result);
    judge("fast", expected, exit_code, result.message, code, result.line);
}

// The naive one as well, which takes its time.
static void check_twice(const char *expected, int exit_code)
{
    struct hm_simple_result simple;
    hm_check_simple(log_path, false, false, &simple);
    judge("simple", expected, exit_code, simple.message, simple.exit_code, simple.line);
    check_as(expected, exit_code);
}

static void prove(const struct decode *decode)
{
    log_run(decode, &(struct hm_stamp_options){.path = log_path, .keep_rows = true, .threads = 2}, NULL);
    if (test_count(0, 0, 1))
        check_twice("PROVED ", 0);
    else
        check_as("PROVED ", 0);
}

static void prove_twice(const struct decode *decode)
{
    log_run(decode, &(struct hm_stamp_options){.path = log_path, .keep_rows = true, .threads = 2}, NULL);
    check_twice("PROVED ", 0);
}

static void the_plain_decode(void **unused)
{
    (void)unused;
    prove_twice(&decode_plain);
}

static void the_rich_decode(void **unused)
{
    (void)unused;
    prove(&decode_rich);
}

// Each rule as claim and as acceptance, greedy and sampled, over several seeds.
static void every_rule(void **unused)
{
    (void)unused;
    static const char *const rules[] = {
        "greedy",           "additive:1/10", "additive:0", "multiplicative:0.3", "topm:4",
        "entropy:0.09,0.3", "nucleus:0.9",   "nucleus:1",  "topk-delta:5,0.2",   "multiplicative:1",
        "topk-ratio:4,0.3", "absolute:0.05", "regret:2"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (uint64_t seed = 1; seed <= 2; seed++) {
            struct decode decode = decode_plain;
            decode.rules[0] = rules[i];
            decode.acceptance = rules[i];
            decode.m[1] = 3;
            decode.m_count = 2;
            decode.margin = decode.universal = true;
            decode.laws = seed == 1;
            decode.all_nodes = seed == 1;
            decode.temperature = seed == 1 ? NULL : "7/10";
            if (strncmp(rules[i], "nucleus", 7) == 0) { // speculative: one temperature, not 0
                decode.temperature = decode.certify_temperature = "7/10";
            }
            decode.vocab = 10 + 3 * i;
            decode.tokens = 8;
            decode.seed = seed * 100 + i;
            prove(&decode);
        }
}

static void processors_and_temperatures(void **unused)
{
    (void)unused;
    static const char *const temperatures[] = {"1", "1/3", "2", "0.05"};
    for (size_t i = 0; i < 8; i++) {
        struct decode decode = decode_plain;
        decode.temperature = temperatures[i % 4];
        decode.certify_temperature = temperatures[(i + 1) % 4];
        decode.top_k = i & 1 ? 6 : 0;
        decode.top_p = i & 2 ? "0.85" : NULL;
        decode.cap = i & 4 ? 1 : 0;
        decode.seed = 50 + i;
        prove(&decode);
    }
}

// What a round expects to be accepted under match, and the law of a token under a rule, at every kind of temperature;
// about 3 % of the draft's logits are -inf, so that most steps have restricted certificates as well.
static void laws_and_expectations(void **unused)
{
    (void)unused;
    static const char *const temperatures[] = {NULL, "7/10", "1"};
    static const char *const acceptances[] = {NULL, "additive:0.3", "nucleus:0.8"};
    for (size_t i = 0; i < 9; i++) {
        struct decode decode = decode_rich;
        decode.acceptance = acceptances[i / 3];
        decode.temperature = temperatures[i % 3];
        decode.certify_temperature = i & 1 ? "1" : "7/10";
        decode.rules[0] = "nucleus:0.8";
        decode.m_count = 3;
        decode.universal = decode.laws = true;
        if (i / 3 == 2) decode.certify_temperature = decode.temperature = temperatures[1 + i % 2];
        decode.top_k = decode.temperature && i & 1 && i / 3 < 2 ? 9 : 0;
        decode.top_p = decode.temperature && i % 4 == 2 && i / 3 < 2 ? "0.9" : NULL;
        decode.cap = i % 4 == 3 ? 1 : 0;
        decode.sequences = 1;
        decode.tokens = 6;
        decode.seed = 900 + i;
        prove_twice(&decode);
    }
}

// Standard and nucleus acceptance, point masses and draws, capped and not, wide and narrow.
static void speculative_sampling(void **unused)
{
    (void)unused;
    static const char *const acceptances[] = {"standard", "nucleus:0.9", "nucleus:1/2", "nucleus:1"};
    uint64_t base = test_seed("speculative_sampling") % 1000;
    for (size_t i = 0, n = test_count(4, 12, 80); i < n; i++) {
        struct decode decode = i % 5 == 4 ? decode_rich : decode_plain;
        decode.acceptance = acceptances[i / 2 % 4];
        decode.iid = i & 1;
        decode.temperature = decode.certify_temperature = i % 3 ? "1" : "7/10";
        decode.top_k = 0, decode.top_p = NULL;
        decode.cap = i % 4 == 3 ? 1 : 0;
        decode.width = 1 + i % 3;
        decode.depth = 3;
        decode.budget = 9;
        decode.laws = i % 4 == 1;
        decode.all_nodes = i % 4 == 2;
        decode.vocab = 9 + i % 7;
        decode.tokens = 8;
        decode.seed = 2000 + base + i;
        if (i % 4 == 0)
            prove_twice(&decode);
        else
            prove(&decode);
    }
}

static void fidelity_budgets(void **unused)
{
    (void)unused;
    static const char *const limits[] = {"1/2", "0", "0.05", "2"};
    uint64_t base = test_seed("fidelity_budgets") % 1000;
    for (size_t i = 0, n = test_count(4, 12, 80); i < n; i++) {
        struct decode decode = decode_plain;
        bool regret = i % 4 == 3;
        decode.acceptance = regret ? "additive:0.4" : "nucleus:0.8";
        decode.temperature = regret ? NULL : "1";
        decode.certify_temperature = regret && i & 4 ? "7/10" : "1";
        decode.iid = !regret && i & 1;
        decode.fidelity = limits[i / 2 % 4];
        decode.width = 1 + i % 2;
        decode.depth = 3;
        decode.budget = 8;
        decode.cap = i % 5 == 4 ? 2 : 0;
        decode.vocab = 8 + i % 5;
        decode.tokens = 10;
        decode.all_nodes = i % 4 == 0;
        decode.seed = 4000 + base + i;
        if (i % 4 == 0)
            prove_twice(&decode);
        else
            prove(&decode);
    }
}

// First tokens drawn before the tree is chosen, walks that stop before leaves, nodes only scored.
static void selections(void **unused)
{
    (void)unused;
    static const char *const names[] = {"root-draw", "pearl", "covering", "root", "draft"};
    uint64_t base = test_seed("selections") % 1000;
    for (size_t i = 0, n = test_count(5, 15, 80); i < n; i++) {
        struct decode decode = decode_plain;
        decode.selection = names[i % 5];
        decode.leaf_stop = i % 5 == 2 || i % 3 == 1;
        decode.cap = !decode.leaf_stop && i % 4 == 0 ? 1 : 0;
        decode.scored = i % 2 ? 1 + i % 4 : 0;
        decode.temperature = i % 3 == 2 ? NULL : "1";
        decode.top_k = i % 6 == 1 ? 5 : 0;
        decode.all_nodes = i % 4 != 3;
        decode.vocab = 8 + i % 4;
        decode.tokens = 10;
        decode.seed = 6000 + base + i;
        if (i % 4 == 0)
            prove_twice(&decode);
        else
            prove(&decode);
    }
}

static void no_draft_model(void **unused)
{
    (void)unused;
    struct decode decode = decode_plain;
    decode.no_draft = true;
    decode.m[1] = 2;
    decode.m_count = 2;
    prove(&decode);
}

static void rows_that_are_absent(void **unused)
{
    (void)unused;
    log_run(&decode_rich, &(struct hm_stamp_options){.path = log_path, .hash_rows = true}, NULL);
    check_as("CONSISTENT ", 3);
    log_run(&decode_rich, &(struct hm_stamp_options){.path = log_path}, NULL);
    check_as("CONSISTENT ", 3);
}

static void logs_that_stop_early(void **unused)
{
    (void)unused;
    struct decode decode = decode_plain;
    decode.abandon = 7;
    log_run(&decode, &(struct hm_stamp_options){.path = log_path, .keep_rows = true}, NULL);
    check_as("UNDECIDED 0 of ", 3);
    struct hm_check_result result;
    hm_check_log(log_path, NULL, &result);
    assert_non_null(strstr(result.message, "(truncated after step 6 of sequence 0)"));
    struct hm_error err;
    decode = decode_rich;
    decode.spoil = 9;
    struct hm_stamp_options options = {.path = log_path, .keep_rows = true};
    assert_int_equal(decode_run(&decode, &options, NULL, &err), HM_RANGE);
    check_as("UNDECIDED 0 of ", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plain_decode),
        cmocka_unit_test(the_rich_decode),
        cmocka_unit_test(every_rule),
        cmocka_unit_test(processors_and_temperatures),
        cmocka_unit_test(laws_and_expectations),
        cmocka_unit_test(speculative_sampling),
        cmocka_unit_test(fidelity_budgets),
        cmocka_unit_test(selections),
        cmocka_unit_test(no_draft_model),
        cmocka_unit_test(rows_that_are_absent),
        cmocka_unit_test(logs_that_stop_early),
    };
    return cmocka_run_group_tests(tests, log_set_up, log_tear_down);
}
