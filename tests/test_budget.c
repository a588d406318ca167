// Fidelity budgets (docs/log.md): the sums of hm_budget and what hm_accept charges.
#include "certify/row_state.h"
#include "decode/accept.h"
#include "tests/certify_rows.h"

// ---- sums

static void set_limit(struct hm_budget *b, enum hm_budget_kind kind, const char *limit)
{
    struct hm_error err = {.message = ""};
    hm_budget_init(b);
    b->kind = kind;
    if (hm_rational_parse(limit, &b->limit, &err)) fail_msg("%s", err.message);
}

static void sums_round_upward_and_limits_are_exact(void **state)
{
    (void)state;
    struct hm_budget b;
    set_limit(&b, HM_BUDGET_REGRET, "1/10"); // less than the double next to it
    hm_budget_begin(&b, 100, 16, 151936);
    assert_false(hm_budget_charge(&b, 0.1));
    assert_true(b.spent == 0);
    assert_true(hm_budget_charge(&b, nextafter(0.1, 0)));
    assert_true(hm_budget_charge(&b, 0)); // nothing more is always allowed
    assert_false(hm_budget_charge(&b, 0x1p-1074));
    assert_false(hm_budget_charge(&b, INFINITY));
    assert_true(b.spent == nextafter(0.1, 0));
    hm_budget_begin(&b, 100, 16, 151936);
    assert_true(b.spent == 0);
    hm_budget_clear(&b);

    set_limit(&b, HM_BUDGET_REGRET, "2");
    hm_budget_begin(&b, 1, 1, 2);
    assert_true(hm_budget_charge(&b, 1));
    assert_true(hm_budget_charge(&b, 0x1p-60));
    assert_true(b.spent == 1 + 0x1p-52);
    hm_budget_clear(&b);
}

// R = max_tokens ((B + 1) V + B) 2^-53, to the last digit.
static void the_reserve_is_exact(void **state)
{
    (void)state;
    struct hm_budget b;
    mpq_t expected;
    mpq_init(expected);
    set_limit(&b, HM_BUDGET_TV, "0x1p-53");
    mpq_set_d(expected, 0x1p-53);
    hm_budget_begin(&b, 1, 0, 2); // R = 2^-52: more than the limit, so nothing is ever allowed
    mpq_mul_2exp(expected, expected, 1);
    assert_true(mpq_equal(expected, b.reserve.value));
    assert_false(hm_budget_charge(&b, 0));
    hm_rational_set_int(&b.limit, 1, 1UL << 52); // equality is allowed
    assert_true(hm_budget_charge(&b, 0));
    assert_false(hm_budget_charge(&b, 0x1p-1074));
    hm_budget_begin(&b, 4096, 59, 151936);
    mpq_set_ui(expected, 4096UL * (60UL * 151936UL + 59UL), 1);
    mpq_div_2exp(expected, expected, 53);
    assert_true(mpq_equal(expected, b.reserve.value));
    hm_budget_begin(&b, SIZE_MAX, SIZE_MAX, SIZE_MAX); // larger than any machine word
    assert_true(mpq_cmp_ui(b.reserve.value, 1UL << 63, 1) > 0);
    mpq_clear(expected);
    hm_budget_clear(&b);
}

// ---- what hm_accept charges

static void random_row(struct random *r, float *row, size_t vocab)
{
    for (size_t i = 0; i < vocab; i++) row[i] = (float)gauss(r);
}

// Charged is e at every position with children; the relaxation is in force as long as the sum allows, and else the decision is
// that of standard.
static void nucleus_is_charged_what_it_costs(void **state)
{
    (void)state;
    enum { VOCAB = 7 };
    struct random r = seeded("charges");
    struct hm_rational one;
    struct hm_rule rule = parse_rule("nucleus:4/5");
    size_t relaxed = 0, refused = 0, different = 0;
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    for (size_t n = 0; n < rounds(60); n++) {
        struct hm_budget b;
        double spent = 0;
        set_limit(&b, HM_BUDGET_TV, n % 3 ? "5/4" : "1/50");
        hm_budget_begin(&b, 50, 4, VOCAB);
        struct hm_acceptance how = {.kind = HM_ACCEPT_NUCLEUS, .rule = &rule, .temperature = &one, .certify_temperature = &one, .seed = n,
                                    .proposal = n % 2 ? HM_PROPOSAL_IID : HM_PROPOSAL_TOPK};
        struct hm_acceptance standard = how;
        standard.kind = HM_ACCEPT_STANDARD;
        for (uint32_t t = 0; t < 10; t++) {
            float l[VOCAB], d[VOCAB];
            int32_t children[4];
            struct hm_decision out, plain;
            struct hm_law law;
            size_t k;
            enum hm_verdict decided;
            random_row(&r, l, VOCAB);
            for (size_t i = 0; i < VOCAB; i++) d[i] = l[i] + 0.4f * (float)gauss(&r);
            struct hm_row *p = open_row(l, VOCAB, "1"), *q = open_row(d, VOCAB, "1");
            for (size_t j = 0; j < 4; j++) {
                children[j] = hm_row_token(q, j);
                if (n % 2) hm_row_draw(q, VOCAB, next_word(&r) >> 11, &children[j], NULL);
            }
            struct hm_accept_node node = {.target = l, .draft = d, .vocab = VOCAB, .t = t, .children = children, .child_count = below(&r, 5)};
            assert_int_equal(hm_accept(&how, &b, &node, &out, NULL), HM_OK);
            assert_int_equal(out.charged, node.child_count > 0);
            if (out.charged) {
                assert_int_equal(hm_rule_count(&rule, p, &k, &decided, NULL), HM_OK);
                assert_int_equal(hm_law_make(p, q, how.proposal, children, node.child_count, k, &law, NULL), HM_OK);
                assert_memory_equal(&law.e, &out.charge, sizeof law.e);
                double sum = spent + law.e.hi;
                assert_int_equal(out.relaxed, sum + 0x1p-40 < (n % 3 ? 1.25 : 0.02)); // nothing here is that near the limit
                if (out.relaxed) spent = sum;
                assert_true(fabs(out.spent - spent) < 1e-15);
                assert_int_equal(hm_accept(&standard, NULL, &node, &plain, NULL), HM_OK);
                if (!out.relaxed) assert_true(plain.token == out.token && plain.child == out.child);
                relaxed += out.relaxed;
                refused += !out.relaxed;
                different += plain.child != out.child;
            } else {
                assert_false(out.relaxed);
                assert_true(out.spent == b.spent);
            }
            hm_row_close(p);
            hm_row_close(q);
        }
        hm_budget_clear(&b);
    }
    print_message("relaxed %zu, refused %zu, accepted otherwise %zu\n", relaxed, refused, different);
    assert_true(relaxed > 50 && refused > 50 && different > 10);
    hm_rule_clear(&rule);
    hm_rational_clear(&one);
}

// The regrets of what is emitted sum to no more than the limit; where the rule's child is refused the first of the order comes.
static void regrets_stay_below_the_limit(void **state)
{
    (void)state;
    enum { VOCAB = 5 };
    struct random r = seeded("regrets");
    struct hm_rational zero, one;
    struct hm_rule rule = parse_rule("topm:3");
    size_t refused = 0, taken = 0;
    hm_rational_init(&zero);
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    struct hm_acceptance how = {.kind = HM_ACCEPT_RULE, .rule = &rule, .temperature = &zero, .certify_temperature = &one};
    for (size_t n = 0; n < rounds(60); n++) {
        struct hm_budget b;
        double regret = 0;
        set_limit(&b, HM_BUDGET_REGRET, "3/2");
        hm_budget_begin(&b, 20, 2, VOCAB);
        for (uint32_t t = 0; t < 20; t++) {
            float l[VOCAB];
            int32_t children[2] = {(int32_t)below(&r, 2), 2 + (int32_t)below(&r, 3)};
            struct hm_decision out;
            struct hm_ival cost;
            random_row(&r, l, VOCAB);
            struct hm_row *p = open_row(l, VOCAB, "1");
            struct hm_accept_node node = {.target = l, .vocab = VOCAB, .t = t, .children = children, .child_count = below(&r, 3)};
            assert_int_equal(hm_accept(&how, &b, &node, &out, NULL), HM_OK);
            assert_int_equal(hm_row_regret(p, out.token, &cost, NULL), HM_OK);
            regret += cost.lo;
            if (out.charged && !out.relaxed) {
                assert_true(out.child == -1 && out.token == hm_row_token(p, 0) && out.charge.lo + b.spent > 1.5 - 1e-9);
                refused++;
            }
            if (out.child >= 0) {
                assert_true(out.charged && out.relaxed && out.charge.hi >= cost.lo && out.spent == b.spent);
                taken += cost.lo > 0;
            }
            hm_row_close(p);
        }
        assert_true(regret <= 1.5 && b.spent <= 1.5 && b.spent >= regret - 1e-9);
        hm_budget_clear(&b);
    }
    assert_true(refused > 30 && taken > 30);
    // an infinite regret is never allowed: a rule may accept what the target never says
    struct hm_budget b;
    struct hm_decision out;
    set_limit(&b, HM_BUDGET_REGRET, "1000000");
    hm_budget_begin(&b, 20, 2, 2);
    struct hm_accept_node node = {.target = (float[]){0, -INFINITY}, .vocab = 2, .children = (int32_t[]){1}, .child_count = 1};
    assert_int_equal(hm_accept(&how, &b, &node, &out, NULL), HM_OK);
    assert_true(out.charged && !out.relaxed && out.token == 0 && isinf(out.charge.hi));
    hm_budget_clear(&b);
    hm_rule_clear(&rule);
    hm_rational_clear(&zero);
    hm_rational_clear(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_round_upward_and_limits_are_exact),
        cmocka_unit_test(the_reserve_is_exact),
        cmocka_unit_test(nucleus_is_charged_what_it_costs),
        cmocka_unit_test(regrets_stay_below_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
