// Records that come out of place, and values a log cannot hold: each is refused by name, and the refusal is kept.
#include "certify/stamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct hm_stamper *open_small(struct hm_rational number[2], struct hm_rule *rule)
{
    static const struct hm_log_model model = {.name = "x", .vocab = 8, .architecture = "x"};
    struct hm_stamper *s;
    struct hm_error err;
    struct hm_log_header header = {.rules = rule,
                                   .rule_count = 1,
                                   .m = (uint32_t[]){1},
                                   .m_count = 1,
                                   .temperature = &number[0],
                                   .certify_temperature = &number[1],
                                   .target = &model,
                                   .draft = &model,
                                   .tokenizer_sha256 = "",
                                   .drafter = "none",
                                   .selection = "draft",
                                   .traversal = "exhaustive",
                                   .proposal = "none",
                                   .weights_dtype = "F32",
                                   .backend = "none",
                                   .row_source = "verify"};
    for (int i = 0; i < 2; i++) {
        hm_rational_init(&number[i]);
        hm_rational_set_int(&number[i], i, 1);
    }
    *rule = (struct hm_rule){.kind = HM_RULE_GREEDY};
    hm_rational_init(&rule->a);
    hm_rational_init(&rule->b);
    assert_int_equal(hm_stamper_open(&(struct hm_stamp_options){0}, &header, &s, &err), HM_OK);
    return s;
}

static void records_must_come_in_order(void **unused)
{
    (void)unused;
    static const float row[8] = {3, 2, 1, 0, 0, 0, 0, 0};
    const int32_t parent[] = {-1, 0}, token[] = {0, 1}, late[] = {-1, 1}, children[] = {8};
    const float logq[] = {0, -1}, bad[] = {0, 0.0f / 0.0f};
    const struct hm_log_sequence sequence = {.max_tokens = 9};
    const struct hm_log_step first = {
        .round = -1, .child = -1, .support = 8, .target_row = row, .draft_why = "prefill"};
    const struct hm_log_round round = {.t = 1, .nodes = 2, .parent = parent, .token = token, .logq = logq};
    const struct hm_log_step second = {.t = 1,
                                       .source = HM_SOURCE_ACCEPTED,
                                       .token = 1,
                                       .child = 1,
                                       .support = 8,
                                       .target_row = row,
                                       .draft_why = "leaf"};
    struct hm_log_step bad_step[] = {second, second, second, second, second, second, second, second};
    const char *const step_error[] = {"step: t: expected 1, found 2",
                                      "step: token: expected a token below 8, found 8",
                                      "step 1: child: expected below 2, found 2",
                                      "step: node: expected below 2, found 2",
                                      "step: support: expected 1 to 8, found 0",
                                      "step: child: expected a token below 8, found 8",
                                      "step: expected a draft row or why there is none",
                                      "node: a node record, though the header has none"};
    bad_step[0].t = 2;
    bad_step[1].token = 8;
    bad_step[2].child = 2;
    bad_step[3].node = 2;
    bad_step[4].support = 0;
    bad_step[5].children = children, bad_step[5].child_count = 1;
    bad_step[6].draft_why = NULL;
    bad_step[7].token = -1;
    struct hm_log_round bad_round[] = {round, round, round, round};
    const char *const round_error[] = {"round: number: expected 0, found 1", "round: t: expected 1, found 0",
                                       "round: parent of node 1: expected an earlier node, found 1",
                                       "round: logq of node 1: expected a number or -inf, found "};
    bad_round[0].round = 1;
    bad_round[1].t = 0;
    bad_round[2].parent = late;
    bad_round[3].logq = bad;
    for (size_t i = 0; i < 12; i++) {
        struct hm_rational number[2];
        struct hm_rule rule;
        struct hm_error err = {0}, again = {0};
        struct hm_stamper *s = open_small(number, &rule);
        assert_int_equal(hm_stamper_sequence(s, &sequence, &err), HM_OK);
        assert_int_equal(hm_stamper_step(s, &first, &err), HM_OK);
        if (i < 8) {
            assert_int_equal(hm_stamper_round(s, &round, &err), HM_OK);
            assert_int_not_equal(hm_stamper_step(s, &bad_step[i], &err), HM_OK);
            assert_string_equal(err.message, step_error[i]);
        } else {
            assert_int_not_equal(hm_stamper_round(s, &bad_round[i - 8], &err), HM_OK);
            assert_memory_equal(err.message, round_error[i - 8], strlen(round_error[i - 8]));
        }
        // The failure is kept.
        assert_int_equal(hm_stamper_step(s, &second, &again), err.code);
        assert_string_equal(again.message, err.message);
        again.message[0] = 0;
        assert_int_equal(hm_stamper_close(s, NULL, &again), err.code);
        assert_string_equal(again.message, err.message);
        for (int j = 0; j < 2; j++) hm_rational_clear(&number[j]);
        hm_rule_clear(&rule);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(records_must_come_in_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
