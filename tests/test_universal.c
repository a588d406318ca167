// Rule-universal bounds (theory.md §3): never above the exact level, above 0 where the theory says so, the same in both
// arithmetics, and equal to the formulas written out naively with many bits.
#include "certify/certificate_state.h"
#include "tests/certify_rows.h"
#include "tests/seed.h"

#include <mpfr.h>

enum { BITS = 600 };

// x ln(x/y), 0 at x = 0, into x.
static void times_log(mpfr_ptr x, mpfr_srcptr y)
{
    if (mpfr_zero_p(x)) return;
    mpfr_t ratio;
    mpfr_init2(ratio, BITS);
    mpfr_div(ratio, x, y, MPFR_RNDN);
    mpfr_log(ratio, ratio, MPFR_RNDN);
    mpfr_mul(x, x, ratio, MPFR_RNDN);
    mpfr_clear(ratio);
}

// KLf >= p1 ln(p1/c) + m s ln(s/c) and KLr >= -ln(1 - p1 - m s + (1+m)(p1 s^m)^(1/(1+m))), as the page writes them.
static void by_the_page(mpfr_srcptr p1, mpfr_srcptr tau, unsigned long m, mpfr_ptr klf, mpfr_ptr klr)
{
    mpfr_t s, c, term;
    mpfr_inits2(BITS, s, c, term, (mpfr_ptr)0);
    mpfr_ui_sub(s, 1, p1, MPFR_RNDN);
    mpfr_div_ui(s, s, m, MPFR_RNDN);
    if (mpfr_less_p(tau, s)) mpfr_set(s, tau, MPFR_RNDN);
    mpfr_mul_ui(c, s, m, MPFR_RNDN);
    mpfr_add(c, c, p1, MPFR_RNDN);
    mpfr_ui_sub(klr, 1, c, MPFR_RNDN); // 1 - p1 - m s
    mpfr_div_ui(c, c, m + 1, MPFR_RNDN);
    mpfr_set(klf, p1, MPFR_RNDN);
    times_log(klf, c);
    mpfr_set(term, s, MPFR_RNDN);
    times_log(term, c);
    mpfr_mul_ui(term, term, m, MPFR_RNDN);
    mpfr_add(klf, klf, term, MPFR_RNDN);
    mpfr_pow_ui(term, s, m, MPFR_RNDN);
    mpfr_mul(term, term, p1, MPFR_RNDN);
    mpfr_rootn_ui(term, term, m + 1, MPFR_RNDN);
    mpfr_mul_ui(term, term, m + 1, MPFR_RNDN);
    mpfr_add(klr, klr, term, MPFR_RNDN);
    mpfr_log(klr, klr, MPFR_RNDN);
    mpfr_neg(klr, klr, MPFR_RNDN);
    mpfr_clears(s, c, term, (mpfr_ptr)0);
}

// The threshold tau of a rule, for logits that are exact in BITS bits; false for additive, which has a formula of its own.
static bool threshold(const struct hm_rule *rule, const float *l, size_t vocab, mpfr_ptr p1, mpfr_ptr tau)
{
    mpfr_t sum, term, entropy;
    mpfr_inits2(BITS, sum, term, entropy, (mpfr_ptr)0);
    float top = l[0];
    for (size_t i = 0; i < vocab; i++) top = l[i] > top ? l[i] : top;
    mpfr_set_zero(sum, 1);
    mpfr_set_zero(entropy, 1);
    for (size_t i = 0; i < vocab; i++) {
        if (l[i] == -INFINITY) continue;
        mpfr_set_flt(term, l[i], MPFR_RNDN);
        mpfr_sub_d(term, term, top, MPFR_RNDN);
        mpfr_set(tau, term, MPFR_RNDN);
        mpfr_exp(term, term, MPFR_RNDN);
        mpfr_add(sum, sum, term, MPFR_RNDN);
        mpfr_mul(tau, tau, term, MPFR_RNDN);
        mpfr_sub(entropy, entropy, tau, MPFR_RNDN);
    }
    mpfr_ui_div(p1, 1, sum, MPFR_RNDN);
    mpfr_div(entropy, entropy, sum, MPFR_RNDN);
    mpfr_log(sum, sum, MPFR_RNDN);
    mpfr_add(entropy, entropy, sum, MPFR_RNDN);
    bool has = true;
    switch (rule->kind) {
    case HM_RULE_MULTIPLICATIVE: mpfr_mul_q(tau, p1, rule->a.value, MPFR_RNDN); break;
    case HM_RULE_ABSOLUTE: mpfr_set_q(tau, rule->a.value, MPFR_RNDN); break;
    case HM_RULE_REGRET:
        mpfr_set_q(tau, rule->a.value, MPFR_RNDN);
        mpfr_neg(tau, tau, MPFR_RNDN);
        mpfr_exp(tau, tau, MPFR_RNDN);
        break;
    case HM_RULE_ENTROPY:
        mpfr_neg(entropy, entropy, MPFR_RNDN);
        mpfr_exp(entropy, entropy, MPFR_RNDN);
        mpfr_mul_q(entropy, entropy, rule->b.value, MPFR_RNDN);
        mpfr_set_q(tau, rule->a.value, MPFR_RNDN);
        if (mpfr_less_p(entropy, tau)) mpfr_set(tau, entropy, MPFR_RNDN);
        break;
    default: has = false;
    }
    mpfr_clears(sum, term, entropy, (mpfr_ptr)0);
    return has;
}

static void assert_near(const char *text, struct hm_ival v, mpfr_srcptr x)
{
    double value = mpfr_get_d(x, MPFR_RNDN), hair = 1e-100 + fabs(value) * 0x1p-50;
    bool wide = v.hi - v.lo > 0x1p-30 * v.hi && v.hi - v.lo > 0x1p-60;
    if (value == INFINITY ? v.lo != INFINITY : !(v.lo <= value + hair && value - hair <= v.hi) || wide)
        fail_msg("%s: [%a, %a] for %a", text, v.lo, v.hi, value);
}

static struct hm_claim claim_of(const char *text, struct hm_row *row, size_t m)
{
    struct hm_rule rule = parse_rule(text);
    struct hm_claim claim;
    struct hm_error err = {.message = ""};
    struct hm_claim_query query = {.rule = &rule, .target = row, .token = -1, .m = m, .margin = true, .universal = true};
    if (hm_claim_make(&query, &claim, &err)) fail_msg("%s", err.message);
    hm_rule_clear(&rule);
    return claim;
}

static void random_row(struct random *r, float *l, size_t vocab)
{
    size_t style = below(r, 7);
    for (size_t i = 0; i < vocab; i++) {
        l[i] = (float)(2 * gauss(r));
        if (style == 6 && i > 0) l[i] = -INFINITY; // p_(1) = 1
        if (style == 1) l[i] = (float)(int)(2 * l[i]) / 2;
        if (style == 2) l[i] = 1 + (float)below(r, 4) * 0x1p-23f;
        if (style == 3 && i > 0 && below(r, 3) == 0) l[i] = -INFINITY;
        if (style == 4) l[i] *= 10;
    }
    if (style == 5) l[below(r, vocab)] = 25;
}

static void random_rule(struct random *r, char *text, size_t size)
{
    unsigned share = 1 + (unsigned)below(r, 999), small = 1 + (unsigned)below(r, 60);
    switch (below(r, 8)) {
    case 0: snprintf(text, size, "additive:%u/1000", share); break;
    case 1: snprintf(text, size, "additive:%u/1000000", small - 1); break;
    case 2: snprintf(text, size, "multiplicative:%u/1000", share + 1); break;
    case 3: snprintf(text, size, "absolute:%u/1000", share); break;
    case 4: snprintf(text, size, "absolute:%u/100000", small); break;
    case 5: snprintf(text, size, "regret:%u/100", share); break;
    case 6: snprintf(text, size, "entropy:%u/1000,%u/600", share, share); break;
    default: snprintf(text, size, "entropy:9/100,3/10"); break;
    }
}

static void bounds_hold_and_are_the_pages(void **state)
{
    (void)state;
    struct random r = seeded("universal");
    size_t rows = test_count(200, 15000, 3000000), have = 0, positive = 0;
    mpfr_t p1, tau, klf, klr;
    mpfr_inits2(BITS, p1, tau, klf, klr, (mpfr_ptr)0);
    for (size_t n = 0; n < rows; n++) {
        float l[24];
        char text[64];
        size_t vocab = 2 + below(&r, 23), m = 1 + below(&r, below(&r, 3) ? 4 : vocab);
        random_row(&r, l, vocab);
        random_rule(&r, text, sizeof text);
        struct hm_row *row = open_row(l, vocab, "1"), *exact = open_row(l, vocab, "1");
        exact->filter.state = HM_FILTER_OFF;
        struct hm_claim a = claim_of(text, row, m), b = claim_of(text, exact, m);
        struct hm_rule rule = parse_rule(text);
        bool leveled = threshold(&rule, l, vocab, p1, tau);
        if (a.has_universal != b.has_universal) fail_msg("%s: present in one arithmetic only", text);
        if ((a.nothing || a.vacuous) && a.has_universal) fail_msg("%s: present without levels", text);
        if (!a.nothing && !a.vacuous && rule.kind != HM_RULE_REGRET && !row->uniform) {
            bool expected = !leveled || rule.kind == HM_RULE_MULTIPLICATIVE || mpfr_greater_p(p1, tau);
            if (a.has_universal != expected) fail_msg("%s: presence %d, expected %d", text, a.has_universal, expected);
        }
        if (a.has_universal) {
            have++;
            positive += a.universal.klf.lo > 0 && a.universal.klr.lo > 0;
            const struct hm_ival *bound[] = {&a.universal.klf, &a.universal.klr, &b.universal.klf, &b.universal.klr};
            const struct hm_ival *level[] = {&a.level.klf, &a.level.klr};
            for (int i = 0; i < 4; i++)
                if (!(bound[i]->lo >= 0) || bound[i]->lo > level[i % 2]->hi)
                    fail_msg("%s, m = %zu: bound %a above the level %a", text, m, bound[i]->lo, level[i % 2]->hi);
            if (a.has_margin && (a.margin.klf.lo > a.level.klf.hi || a.margin.klr.lo > a.level.klr.hi))
                fail_msg("%s: margin above the level", text);
            if (leveled) {
                by_the_page(p1, tau, m, klf, klr);
                for (int i = 0; i < 4; i++) assert_near(text, *bound[i], i % 2 ? klr : klf);
            } else { // the k = 1 bound at y = eps: klf = (psi(my) + m psi(-y))/(1+m), and 0 at eps = 0
                double y = mpq_get_d(rule.a.value), c = (double)m;
                double f = ((1 + c * y) * log1p(c * y) + c * (1 - y) * log1p(-y)) / (1 + c);
                double g = -(log1p(c * y) + c * log1p(-y)) / (1 + c);
                for (int i = 0; i < 4; i++) {
                    double expected = i % 2 ? g : f, hair = 1e-9 * fabs(expected) + 1e-15;
                    if (fabs(bound[i]->lo - expected) > hair) fail_msg("%s: %a, expected %a", text, bound[i]->lo, expected);
                    if (y == 0 && (bound[i]->lo != 0 || bound[i]->hi != 0)) fail_msg("%s: not 0", text);
                }
            }
        }
        hm_rule_clear(&rule);
        hm_row_close(row);
        hm_row_close(exact);
    }
    mpfr_clears(p1, tau, klf, klr, (mpfr_ptr)0);
    print_message("%zu bounds, %zu positive\n", have, positive);
    assert_true(have > rows / 4 && positive > have / 2);
}

// Rules without a bound, and claims that did not ask.
static void only_where_there_is_one(void **state)
{
    static const char *const without[] = {"greedy", "topm:2", "nucleus:1/2", "topk-delta:2,1/10", "topk-ratio:2,1/2"};
    (void)state;
    struct hm_row *row = open_row((float[]){3, 2, 1, 0}, 4, "1");
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) assert_false(claim_of(without[i], row, 1).has_universal);
    assert_true(claim_of("multiplicative:1", row, 1).has_universal);
    assert_true(claim_of("absolute:1/10", row, 1).has_universal);
    assert_false(claim_of("absolute:9/10", row, 1).has_universal); // nothing accepted
    struct hm_claim unasked = make_claim("additive:1/10", row, NULL, 1);
    assert_false(unasked.has_universal);
    hm_row_close(row);
    row = open_row((float[]){2, 2, -INFINITY, -INFINITY}, 4, "1");
    assert_false(claim_of("absolute:1/2", row, 1).has_universal); // p_(1) is the threshold, not above it
    assert_true(claim_of("absolute:49/100", row, 1).has_universal);
    hm_row_close(row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_hold_and_are_the_pages),
        cmocka_unit_test(only_where_there_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
