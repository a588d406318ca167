// The checker's exponentials in fixed point: each encloses the true one, as promised in certify/check/fixed.h, for any
// depth and temperature; and a row's sums, moments and divergences enclose those of 256 bits.
#include "certify/check/power.h"
#include "tests/seed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint64_t state;

static uint64_t next(void)
{
    return test_random(&state);
}

// exp(-depth factor) lies in [w, w + 2) 2^-106.
static void expect_weight(const mpq_t factor, ck_u128 depth)
{
    struct ck_scale scale;
    mpfr_t x, lo, hi;
    mpfr_inits2(512, x, lo, hi, (mpfr_ptr)0);
    ck_scale_set(&scale, factor);
    ck_u128 w = ck_weight_at(&scale, depth);
    ck_set_unsigned(x, depth, -CK_DEPTH, MPFR_RNDN);
    mpfr_mul_q(x, x, factor, MPFR_RNDN);
    mpfr_neg(x, x, MPFR_RNDN);
    mpfr_exp(x, x, MPFR_RNDN);
    ck_set_unsigned(lo, w, -CK_UNIT, MPFR_RNDN);
    ck_set_unsigned(hi, w + 2, -CK_UNIT, MPFR_RNDN);
    if (!mpfr_lessequal_p(lo, x) || !mpfr_less_p(x, hi))
        fail_msg("depth %a: [%a, %a] does not hold %a", (double)depth * 0x1p-60, mpfr_get_d(lo, MPFR_RNDN),
                 mpfr_get_d(hi, MPFR_RNDN), mpfr_get_d(x, MPFR_RNDN));
    mpfr_clears(x, lo, hi, (mpfr_ptr)0);
}

static void weights_enclose(void **unused)
{
    (void)unused;
    mpq_t factor;
    mpq_init(factor);
    for (size_t i = 0, n = test_count(2000, 20000, 1000000); i < n; i++) {
        mpq_set_ui(factor, 1 + next() % 1000, 1 + next() % 1000);
        if (i % 4 == 0) mpq_set_ui(factor, 1, 1);
        if (i % 50 == 0) mpq_set_str(factor, "100000", 10);
        if (i % 50 == 1) mpq_set_str(factor, "1/1000000000000000000000000000000000000001", 10);
        mpq_canonicalize(factor);
        ck_u128 depth = ((ck_u128)next() << 64 | next()) >> (46 + next() % 80);
        expect_weight(factor, depth);
        expect_weight(factor, depth >> 64 << 60);
    }
    mpq_clear(factor);
}

// Whether an interval at level 0 overlaps, and is as narrow as promised against, one at level 2.
static void same(struct ck_math *m, const char *name, ck_quantity *quantity, const struct ck_ask *ask)
{
    struct iv coarse, fine;
    iv_inits(&coarse, 1, ck_precision(0));
    iv_inits(&fine, 1, ck_precision(2));
    if (quantity(m, 0, ask, &coarse)) {
        assert_true(quantity(m, 2, ask, &fine));
        if (mpfr_greater_p(coarse.lo, fine.hi) || mpfr_less_p(coarse.hi, fine.lo))
            fail_msg("%s: [%a, %a] and %a", name, mpfr_get_d(coarse.lo, MPFR_RNDD), mpfr_get_d(coarse.hi, MPFR_RNDU),
                     mpfr_get_d(fine.lo, MPFR_RNDN));
        double lo = mpfr_get_d(coarse.lo, MPFR_RNDD), hi = mpfr_get_d(coarse.hi, MPFR_RNDU);
        if (lo < hi && !(hi - lo <= 0x1p-50 * (1 + fabs(hi)))) fail_msg("%s: [%a, %a] is wide", name, lo, hi);
    }
    iv_clears(&coarse, 1);
    iv_clears(&fine, 1);
}

static void quantities_agree(void **unused)
{
    (void)unused;
    enum { VOCAB = 200 };
    struct ck_math m = {0};
    assert_true(ck_math_init(&m, VOCAB));
    for (size_t i = 0, n = test_count(20, 200, 5000); i < n; i++) {
        mpq_set_ui(m.inverse_claim, 1 + next() % 8, 1 + next() % 8);
        mpq_canonicalize(m.inverse_claim);
        for (size_t j = 0; j < VOCAB; j++) {
            float p = (float)(next() % 4096) / (i % 2 ? 200 : 4096), d = (float)(next() % 512) / 512;
            m.row[0].logit[j] = next() % 10 == 0 && i % 3 == 0 ? -INFINITY : p;
            m.row[1].logit[j] = next() % 10 == 0 && i % 5 == 0 ? -INFINITY : p + (i % 7 ? d : 0);
        }
        m.row[0].logit[7] = m.row[1].logit[7] = 1;
        ck_math_new_row(&m, CK_TARGET);
        ck_math_new_row(&m, CK_DRAFT);
        assert_int_equal(m.first_level, 0);
        struct ck_ask ask = {.k = 1 + next() % 5, .m = 1 + next() % 4};
        const struct {
            const char *name;
            ck_quantity *quantity;
        } all[] = {{"lse", ck_lse},       {"entropy", ck_entropy},   {"kl_pq", ck_kl_pq},     {"kl_qp", ck_kl_qp},
                   {"tv_pq", ck_tv_pq},   {"min_pq", ck_min_pq},     {"level_f", ck_level_f}, {"level_r", ck_level_r},
                   {"klf", ck_klf},       {"klr", ck_klr},           {"tv", ck_tv},           {"gap", ck_margin_gap},
                   {"e", ck_iid_e},       {"accept", ck_iid_accept}, {"topk e", ck_topk_e},   {"mass", ck_topk_accept},
                   {"mk", ck_margin_klf}, {"mr", ck_margin_klr}};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++) same(&m, all[j].name, all[j].quantity, &ask);
    }
    ck_math_clear(&m);
}

// Equalities of theory.md §8: no precision tells, and equality does not certify.
static void ties_are_no(void **unused)
{
    (void)unused;
    struct ck_math m = {0};
    struct ck_power power = {0};
    const float none = -INFINITY;
    assert_true(ck_math_init(&m, 5));
    mpq_set_ui(m.inverse_claim, 1, 3);
    const float p[5] = {1, 1, none, none, none}, q[5] = {2, 2, none, 2, 2}, half[5] = {none, 0.5, none, none, none};
    memcpy(m.row[0].logit, p, sizeof p);
    memcpy(m.row[1].logit, q, sizeof q);
    ck_math_new_row(&m, CK_TARGET);
    ck_math_new_row(&m, CK_DRAFT);
    struct ck_ask ask = {.k = 1, .m = 4, .power = &power}; // KL = KLf* = ln 2, and q is no witness
    assert_int_equal(ck_certifies(&m, &ask, CK_KLF), NO);
    memcpy(m.row[1].logit, half, sizeof half);
    ck_math_new_row(&m, CK_DRAFT);
    assert_int_equal(ck_certifies(&m, &ask, CK_KLR), NO); // p without A
    assert_true(ck_power_parse("renyi-reverse:3", &power));
    assert_int_equal(ck_power_certifies(&m, &ask), NO);
    ck_power_clear(&power);
    const float all[5] = {2, 2, 2, 2, none}; // two accepted tokens, two empty ones
    memcpy(m.row[1].logit, all, sizeof all);
    ck_math_new_row(&m, CK_DRAFT);
    ask.k = ask.m = 2;
    static const char *const names[] = {"renyi:3", "renyi:1/2", "hellinger", "chi2", "max"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_true(ck_power_parse(names[i], &power));
        assert_int_equal(ck_power_certifies(&m, &ask), NO);
        ck_power_clear(&power);
    }
    for (int i = 0; i < 3; i++) assert_int_equal(ck_certifies(&m, &ask, (enum ck_divergence)i), NO);
    ck_math_clear(&m);
}

int main(void)
{
    state = test_seed("check_fixed");
    const struct CMUnitTest tests[] = {cmocka_unit_test(weights_enclose), cmocka_unit_test(quantities_agree),
                                       cmocka_unit_test(ties_are_no)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
