// Acceptance rules: spelling, the ties of theory.md §8 on both sides, parameters 2^-400 away from a border, and the two
// arithmetics against each other.
#include "certify/row_state.h"
#include "tests/certify_rows.h"
#include "tests/seed.h"

#include <gmp.h>
#include <mpfr.h>
#include <string.h>

enum { REFERENCE = 1200, FINE = 400 };

static void spellings_are_canonical(void **state)
{
    static const char *const pairs[][2] = {
        {"greedy", "greedy"},
        {"additive:0.1", "additive:1/10"},
        {"additive:0", "additive:0"},
        {"multiplicative:3/6", "multiplicative:1/2"},
        {"multiplicative:1", "multiplicative:1"},
        {"topm:3", "topm:3"},
        {"entropy:0.09,0.3", "entropy:9/100,3/10"},
        {"entropy:2,0x1p1", "entropy:2,2"},
        {"nucleus:0.95", "nucleus:19/20"},
        {"nucleus:1.0", "nucleus:1"},
        {"topk-delta:5,0.1", "topk-delta:5,1/10"},
        {"topk-ratio:5,1.0", "topk-ratio:5,1"},
        {"absolute:5e-1", "absolute:1/2"},
        {"regret:0", "regret:0"},
        {"regret:2.5", "regret:5/2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct hm_rule rule = parse_rule(pairs[i][0]);
        char *text = hm_rule_text(&rule);
        assert_string_equal(text, pairs[i][1]);
        struct hm_rule again = parse_rule(text);
        assert_int_equal(again.kind, rule.kind);
        assert_int_equal(again.count, rule.count);
        assert_true(mpq_equal(again.a.value, rule.a.value) && mpq_equal(again.b.value, rule.b.value));
        free(text);
        hm_rule_clear(&rule);
        hm_rule_clear(&again);
    }
}

static void bad_spellings_are_refused(void **state)
{
    static const char *const additive = "additive:EPS with 0 <= EPS < 1", *const topm = "topm:M with 1 <= M < 2^31";
    const char *const bad[][2] = {
        {"additive", additive},       {"additive:", additive},       {"additive:1", additive},
        {"additive:-1/10", additive}, {"additive:1/10,1", additive}, {"additive:nan", additive},
        {"additive:1/0", additive},   {"topm:0", topm},              {"topm:-1", topm},
        {"topm:1.5", topm},           {"topm:99999999999", topm},    {"topm:3,", topm},
        {"greedy:1", "greedy"},       {"greedy:", "greedy"},
        {"multiplicative:0", "multiplicative:ALPHA with 0 < ALPHA <= 1"},
        {"multiplicative:1.01", "multiplicative:ALPHA with 0 < ALPHA <= 1"},
        {"entropy:0,1", "entropy:EPS,DELTA with EPS > 0 and DELTA > 0"},
        {"entropy:1", "entropy:EPS,DELTA with EPS > 0 and DELTA > 0"},
        {"nucleus:0", "nucleus:P with 0 < P <= 1"},
        {"nucleus:1.1", "nucleus:P with 0 < P <= 1"},
        {"topk-delta:3", "topk-delta:K,DELTA with 1 <= K < 2^31 and 0 <= DELTA < 1"},
        {"topk-delta:0,1/2", "topk-delta:K,DELTA with 1 <= K < 2^31 and 0 <= DELTA < 1"},
        {"topk-delta:1/2,1/2", "topk-delta:K,DELTA with 1 <= K < 2^31 and 0 <= DELTA < 1"},
        {"topk-ratio:3,0", "topk-ratio:K,R with 1 <= K < 2^31 and 0 < R <= 1"},
        {"topk-ratio:3,1.5", "topk-ratio:K,R with 1 <= K < 2^31 and 0 < R <= 1"},
        {"topk-ratio:1/2", "topk-ratio:K,R with 1 <= K < 2^31 and 0 < R <= 1"},
        {"absolute:0", "absolute:T with 0 < T <= 1"},
        {"absolute:1.001", "absolute:T with 0 < T <= 1"},
        {"absolute", "absolute:T with 0 < T <= 1"},
        {"regret:-1/5", "regret:R with R >= 0"},
        {"regret:inf", "regret:R with R >= 0"},
        {"regret:1,1", "regret:R with R >= 0"},
    };
    (void)state;
    struct hm_error err;
    struct hm_rule rule;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char message[256];
        snprintf(message, sizeof message, "rule \"%s\": expected %s", bad[i][0], bad[i][1]);
        assert_int_equal(hm_rule_parse(bad[i][0], &rule, &err), HM_USAGE);
        assert_string_equal(err.message, message);
    }
    assert_int_equal(hm_rule_parse("greedier", &rule, &err), HM_USAGE);
    assert_string_equal(err.message, "rule \"greedier\": expected greedy, additive:EPS, multiplicative:ALPHA, topm:M, "
                        "entropy:EPS,DELTA, nucleus:P, topk-delta:K,DELTA, topk-ratio:K,R, absolute:T or regret:R");
    assert_int_equal(hm_rule_parse("", &rule, &err), HM_USAGE);
}

static void tokens_outside_the_row_are_errors(void **state)
{
    (void)state;
    struct hm_row *row = open_row((float[]){0, 1}, 2, "1");
    struct hm_rule rule = parse_rule("greedy");
    struct hm_error err;
    enum hm_verdict v;
    assert_int_equal(hm_rule_accepts(&rule, row, 2, &v, &err), HM_RANGE);
    assert_int_equal(hm_rule_accepts(&rule, row, -1, &v, &err), HM_RANGE);
    hm_rule_clear(&rule);
    hm_row_close(row);
}

// One row per tie of theory.md §8, with the parameter or the logit on each side of it.
static void ties_of_the_theory(void **state)
{
    const float none = -INFINITY, next = 1 + 0x1p-23f;
    const struct {
        const char *rule;
        float logits[6];
        size_t vocab, k;
    } ties[] = {
        {"greedy", {1, 1, 1}, 3, 1},
        {"topm:2", {1, 1, 1}, 3, 2},
        {"topm:7", {1, 1, 1}, 3, 3},
        {"multiplicative:1", {1, 1, 0.5f}, 3, 2},
        {"multiplicative:1", {next, 1, 1}, 3, 1},
        {"multiplicative:999999999999/1000000000000", {1, 1, 0.5f}, 3, 2},
        {"multiplicative:1/1000000", {1, 1, none}, 3, 2},
        {"additive:0", {1, 1, 0.5f}, 3, 2},
        {"additive:0", {next, 1, 1}, 3, 1},
        {"additive:1/2", {3, 3, none, none}, 4, 4},        // p - eps = 0, and 0 >= 0
        {"additive:499999/1000000", {3, 3, none, none}, 4, 2},
        {"additive:500001/1000000", {3, 3, none, none}, 4, 4},
        {"additive:1/2", {3, 3, -100, none}, 4, 4},        // p1 < 1/2 by e^-103
        {"additive:1/2", {3, 2.9999998f, -900, none}, 4, 2}, // p1 > 1/2
        {"topk-delta:3,1/2", {3, 3, none, none}, 4, 3},
        {"topk-delta:3,499999/1000000", {3, 3, none, none}, 4, 2},
        {"topk-delta:3,0", {3, 3, 3, 3}, 4, 3},
        {"topk-delta:3,0", {3, 2, 3, 3}, 4, 3},
        {"topk-delta:3,0", {3, 2, 1, 1}, 4, 1},
        {"nucleus:3/4", {2, 2, 2, 2, none}, 5, 3},         // n P an integer: reached exactly
        {"nucleus:750001/1000000", {2, 2, 2, 2, none}, 5, 4},
        {"nucleus:749999/1000000", {2, 2, 2, 2, none}, 5, 3},
        {"nucleus:1/2", {2, 2, -100}, 3, 2},               // the first token misses a half by e^-102
        {"nucleus:1/2", {2.0000002f, 2, -900}, 3, 1},
        {"nucleus:1", {0, -3000, none, -5000}, 4, 3},      // the tail is not 0, whatever its size
        {"nucleus:999999999999/1000000000000", {0, -3000, none, -5000}, 4, 1},
        {"entropy:1/3,1000", {2, 2, 2, none}, 4, 3},
        {"entropy:333334/1000000,1000", {2, 2, 2, none}, 4, 0},
        {"entropy:333333/1000000,1000", {2, 2, 2, none}, 4, 3},
        {"entropy:1,1", {2, 2, 2, none}, 4, 3},            // p = exp(-H)
        {"entropy:1,1000001/1000000", {2, 2, 2, none}, 4, 0},
        {"entropy:1,999999/1000000", {2, 2, 2, none}, 4, 3},
        {"entropy:1,1", {next, 1, 1, none}, 4, 1},         // almost uniform: only what exceeds the mean
        {"entropy:1,1", {1, next, next, none}, 4, 2},
        {"entropy:1/1000000,1/1000000", {2, 2, 2, none}, 4, 3}, // 0 is never accepted
        {"entropy:1,1", {2, none, none, none}, 4, 1},
        {"entropy:1,1000", {2, -6000, none, none}, 4, 0},  // p_1 < 1 by e^-11000
        {"entropy:1,1000", {2, none, none, none}, 4, 1},
        {"absolute:1/3", {2, 2, 2, none}, 4, 3},
        {"absolute:333334/1000000", {2, 2, 2, none}, 4, 0},
        {"absolute:333333/1000000", {2, 2, 2, none}, 4, 3},
        {"absolute:1/3", {next, 1, 1, none}, 4, 1},
        {"absolute:1", {2, none, none, none}, 4, 1},
        {"absolute:1", {2, -6000, none, none}, 4, 0},
        {"absolute:1/2", {2, -6000, none, none}, 4, 1},
        {"absolute:1/1000000000000", {2, 2, none, none}, 4, 2}, // 0 is never accepted
        {"regret:0", {2, none, none, none}, 4, 1},
        {"regret:0", {2, -6000, none, none}, 4, 0},
        {"regret:1/1000000000000", {2, -6000, none, none}, 4, 1},
        {"regret:693147/1000000", {2, 2, none, none}, 4, 0},    // ln 2 = 0.693147180...
        {"regret:693148/1000000", {2, 2, none, none}, 4, 2},
        {"regret:1000000", {2, 2, none, none}, 4, 2},
        {"topk-ratio:3,1", {3, 3, 3, 3}, 4, 3},
        {"topk-ratio:3,1", {next, 1, 1, 1}, 4, 1},
        {"topk-ratio:3,999999/1000000", {next, 1, 1, 1}, 4, 3},
        {"topk-ratio:1,1/2", {3, 3, 3, 3}, 4, 1},
        {"topk-ratio:4,1/1000000000", {3, 3, none, none}, 4, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ties / sizeof *ties; i++) {
        struct hm_row *row = open_row(ties[i].logits, ties[i].vocab, "7/10");
        size_t k = count_accepted(ties[i].rule, row);
        if (k != ties[i].k) fail_msg("tie %zu, %s: k = %zu, expected %zu", i, ties[i].rule, k, ties[i].k);
        hm_row_close(row);
    }
}

// The first token misses one half by e^-5000: 4096 bits cannot see it, the tail's existence settles it.
static void a_miss_beyond_precision_is_a_miss(void **state)
{
    (void)state;
    float l[] = {0, 0, -5000, -6000};
    struct hm_row *row = open_row(l, 4, "1");
    assert_int_equal(count_accepted("additive:1/2", row), 4); // w + W/2 >= 1 needs no digit of w
    assert_int_equal(count_accepted("nucleus:1/2", row), 2);
    hm_row_close(row);
}

// A rule whose parameter is the border rounded down to 2^-FINE, or one step above it: k must differ as expected.
static void assert_turns(struct hm_row *row, const char *before, const char *after, mpfr_srcptr border, size_t k_below,
                         size_t k_above)
{
    mpz_t steps;
    mpfr_t scaled;
    char rule[1024];
    mpz_init(steps);
    mpfr_init2(scaled, REFERENCE);
    mpfr_mul_2si(scaled, border, FINE, MPFR_RNDN); // exact
    mpfr_get_z(steps, scaled, MPFR_RNDD);
    for (int side = 0; side < 2; side++, mpz_add_ui(steps, steps, 1)) {
        mpz_t one;
        mpz_init_set_ui(one, 1);
        mpz_mul_2exp(one, one, FINE);
        gmp_snprintf(rule, sizeof rule, "%s%Zd/%Zd%s", before, steps, one, after);
        mpz_clear(one);
        size_t k = count_accepted(rule, row), expected = side ? k_above : k_below;
        if (k != expected) fail_msg("%s, side %d: k = %zu, expected %zu", rule, side, k, expected);
    }
    mpz_clear(steps);
    mpfr_clear(scaled);
}

// Distinct logits, every rank: the parameter at which its token comes in, to 2^-400, on both sides.
// Uniform but for tokens 10^4 nats below: their mass is beyond every precision, and decides.
static void a_tail_beyond_precision_decides(void **state)
{
    (void)state;
    float two[] = {0, 0, -1e4f}, four[] = {1, 1, 1, -1e4f, 1, -1e4f};
    struct hm_row *row = open_row(two, 3, "1");
    assert_int_equal(count_accepted("nucleus:1/2", row), 2); // the first holds a little less than half
    assert_int_equal(count_accepted("nucleus:499/1000", row), 1);
    assert_int_equal(count_accepted("nucleus:501/1000", row), 2);
    hm_row_close(row);
    row = open_row(four, 6, "1");
    assert_int_equal(count_accepted("nucleus:1/4", row), 2);
    assert_int_equal(count_accepted("nucleus:3/4", row), 4);
    assert_int_equal(count_accepted("nucleus:1/5", row), 1);
    hm_row_close(row);
    two[2] = -INFINITY; // without a tail the share is reached
    row = open_row(two, 3, "1");
    assert_int_equal(count_accepted("nucleus:1/2", row), 1);
    hm_row_close(row);
}

static void parameters_turn_at_the_border(void **state)
{
    (void)state;
    enum { VOCAB = 7 };
    struct random r = seeded("borders");
    mpfr_t p[VOCAB], sum, mass, entropy, border;
    mpfr_inits2(REFERENCE, sum, mass, entropy, border, (mpfr_ptr)0);
    for (int i = 0; i < VOCAB; i++) mpfr_init2(p[i], REFERENCE);
    for (size_t n = 0; n < rounds(6); n++) {
        float l[VOCAB];
        for (int i = 0; i < VOCAB; i++) l[i] = (float)(2 * gauss(&r) + (i == 0 && n % 2 ? 12 : 0));
        struct hm_row *row = open_row(l, VOCAB, "1");
        mpfr_set_zero(sum, 1);
        for (int i = 0; i < VOCAB; i++) { // in order
            mpfr_set_flt(p[i], l[hm_row_token(row, (size_t)i)], MPFR_RNDN);
            mpfr_exp(p[i], p[i], MPFR_RNDN);
            mpfr_add(sum, sum, p[i], MPFR_RNDN);
        }
        mpfr_set_zero(entropy, 1);
        for (int i = 0; i < VOCAB; i++) {
            mpfr_div(p[i], p[i], sum, MPFR_RNDN);
            mpfr_log(border, p[i], MPFR_RNDN);
            mpfr_mul(border, border, p[i], MPFR_RNDN);
            mpfr_sub(entropy, entropy, border, MPFR_RNDN);
        }
        mpfr_exp(entropy, entropy, MPFR_RNDN);
        mpfr_set_zero(mass, 1);
        for (size_t i = 0; i < VOCAB; i++) {
            mpfr_add(mass, mass, p[i], MPFR_RNDN);
            if (i + 1 < VOCAB) assert_turns(row, "nucleus:", "", mass, i + 1, i + 2);
            assert_turns(row, "entropy:", ",1000000000", p[i], i + 1, i);
            assert_turns(row, "absolute:", "", p[i], i + 1, i);
            mpfr_log(border, p[i], MPFR_RNDN);
            mpfr_neg(border, border, MPFR_RNDN);
            assert_turns(row, "regret:", "", border, i, i + 1);
            mpfr_mul(border, p[i], entropy, MPFR_RNDN);
            assert_turns(row, "entropy:1,", "", border, i + 1, i);
            if (i == 0) continue;
            mpfr_sub(border, p[0], p[i], MPFR_RNDN);
            assert_turns(row, "additive:", "", border, i, i + 1);
            assert_turns(row, "topk-delta:4,", "", border, i < 4 ? i : 4, i < 3 ? i + 1 : 4);
            mpfr_div(border, p[i], p[0], MPFR_RNDN);
            assert_turns(row, "multiplicative:", "", border, i + 1, i);
            assert_turns(row, "topk-ratio:4,", "", border, i < 3 ? i + 1 : 4, i < 4 ? i : 4);
        }
        hm_row_close(row);
    }
    for (int i = 0; i < VOCAB; i++) mpfr_clear(p[i]);
    mpfr_clears(sum, mass, entropy, border, (mpfr_ptr)0);
}

static void swapped_parameters_are_noticed(void **state)
{
    static const struct {
        const char *text;
        bool swapped;
    } rules[] = {{"entropy:0.09,0.3", false}, {"entropy:0.3,0.09", true}, {"entropy:0.3,0.3", false}, {"additive:0.3", false}};
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct hm_rule rule = parse_rule(rules[i].text);
        assert_int_equal(hm_rule_looks_swapped(&rule), rules[i].swapped);
        hm_rule_clear(&rule);
    }
}

// The threshold in force is the smaller one, EPS where they are equal.
static void the_active_threshold_is_the_smaller(void **state)
{
    static const struct {
        const char *rule;
        float logits[3];
        enum hm_active active;
    } cases[] = {
        {"entropy:1/3,1", {2, 2, 2}, HM_ACTIVE_EPS}, // exp(-H) = 1/3
        {"entropy:333334/1000000,1", {2, 2, 2}, HM_ACTIVE_DELTA},
        {"entropy:333333/1000000,1", {2, 2, 2}, HM_ACTIVE_EPS},
        {"entropy:1/10,2/10", {2, 2, -INFINITY}, HM_ACTIVE_EPS},
        {"entropy:1/10,19/100", {2, 2, -INFINITY}, HM_ACTIVE_DELTA},
        {"entropy:9/100,3/10", {5, 0, 0}, HM_ACTIVE_EPS},
        {"entropy:9/100,3/10", {0, 0.5f, 0}, HM_ACTIVE_EPS},
        {"entropy:3/10,3/10", {0, 0.5f, 0}, HM_ACTIVE_DELTA},
        {"greedy", {5, 0, 0}, HM_ACTIVE_NONE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int off = 0; off < 2; off++) {
            struct hm_row *row = open_row(cases[i].logits, 3, "1");
            if (off) row->filter.state = HM_FILTER_OFF;
            struct hm_claim claim = make_claim(cases[i].rule, row, NULL, 1);
            if (claim.active != cases[i].active) fail_msg("%s: %d", cases[i].rule, (int)claim.active);
            hm_row_close(row);
        }
}

// Decisions from double enclosures against MPFR alone, on rows and parameters made to lie on the border (HM_LONG: about an
// hour).
static void filter_and_mpfr_agree(void **state)
{
    static const char *const names[] = {"additive:", "multiplicative:", "absolute:", "regret:", "entropy:1,", "topk-ratio:9,"};
    (void)state;
    struct random r = seeded("filter");
    size_t decisions = 0, target = test_count(20000, 1000000, 400000000), left = 0;
    while (decisions < target) {
        float l[40];
        size_t vocab = 2 + below(&r, 39), style = below(&r, 4);
        for (size_t i = 0; i < vocab; i++) {
            l[i] = (float)(3 * gauss(&r));
            if (style == 1) l[i] = (float)(int)l[i];
            if (style == 2) l[i] = 4 + (float)below(&r, 8) * 0x1p-21f;
            if (style == 3 && i > 0 && below(&r, 3) == 0) l[i] = -INFINITY;
        }
        struct hm_row *row = open_row(l, vocab, "1"), *exact = open_row(l, vocab, "1");
        exact->filter.state = HM_FILTER_OFF;
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            struct hm_ival p, first, entropy;
            char text[80];
            int32_t at = hm_row_token(row, below(&r, row->support));
            assert_int_equal(hm_row_probability(exact, at, &p, NULL), HM_OK);
            assert_int_equal(hm_row_probability(exact, hm_row_token(row, 0), &first, NULL), HM_OK);
            assert_int_equal(hm_row_entropy(exact, &entropy, NULL), HM_OK);
            double border[] = {first.lo - p.lo, p.lo / first.lo, p.lo, -log(p.lo), p.lo * exp(entropy.lo), p.lo / first.lo};
            double value = border[n] + (below(&r, 3) ? 0 : (double)below(&r, 5) * 0x1p-45);
            snprintf(text, sizeof text, "%s%a", names[n], value < 1e-9 ? 1e-9 : value >= 1 && n != 3 && n != 4 ? 0.5 : value);
            struct hm_rule rule = parse_rule(text);
            for (size_t i = 0; i < vocab; i++, decisions++) {
                enum hm_verdict a, b;
                assert_int_equal(hm_rule_accepts(&rule, row, (int32_t)i, &a, NULL), HM_OK);
                assert_int_equal(hm_rule_accepts(&rule, exact, (int32_t)i, &b, NULL), HM_OK);
                if (a != b || a == HM_UNDECIDED) fail_msg("%s, token %zu: %d and %d", text, i, (int)a, (int)b);
            }
            hm_rule_clear(&rule);
        }
        left += row->filter.undecided;
        hm_row_close(row);
        hm_row_close(exact);
    }
    print_message("%zu decisions, %zu left to MPFR\n", decisions, left);
    assert_true(left > 0 && left < decisions / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings_are_canonical),
        cmocka_unit_test(bad_spellings_are_refused),
        cmocka_unit_test(tokens_outside_the_row_are_errors),
        cmocka_unit_test(ties_of_the_theory),
        cmocka_unit_test(a_miss_beyond_precision_is_a_miss),
        cmocka_unit_test(a_tail_beyond_precision_decides),
        cmocka_unit_test(parameters_turn_at_the_border),
        cmocka_unit_test(swapped_parameters_are_noticed),
        cmocka_unit_test(the_active_threshold_is_the_smaller),
        cmocka_unit_test(filter_and_mpfr_agree),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
