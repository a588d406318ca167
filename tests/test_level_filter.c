// Levels and margins at three arithmetics: MPFR at 128 and 512 bits and double intervals must enclose one number, on
// rows made to hurt; where the double formulas as written in theory.md §2 and §3 fail, these do not.
#include "tests/hard_rows.h"
#include "tests/level_support.h"
#include "tests/seed.h"

#include <mpfr.h>

enum { LARGEST = 32 };

static void three_arithmetics_enclose_one_number(void **state)
{
    (void)state;
    struct random r = seeded("arithmetics");
    size_t total[HARD_KINDS] = {0}, answered[HARD_KINDS] = {0};
    for (size_t n = 0; n < test_count(4000, 100000, 1000000); n++) {
        float l[LARGEST];
        enum hard_kind kind = (enum hard_kind)(n % HARD_KINDS);
        size_t vocab = 2 + below(&r, n % 8 ? 8 : LARGEST - 1), k = 1 + below(&r, vocab - 1), m = 1 + below(&r, vocab - k);
        if (n % 3 == 0) k = 1;
        hard_row(&r, kind, l, vocab);
        size_t t = below(&r, HARD_TEMPERATURES);
        struct case_of_row c = {open_row(l, vocab, hard_temperatures[t]), k, m, hard_names[kind]};
        bool here = compare(&c, n % 4 == n / 40 % 4);
        if (t < HARD_ORDINARY) total[kind]++;
        if (t < HARD_ORDINARY) answered[kind] += here;
        hm_row_close(c.row);
    }
    for (size_t i = 0; i < HARD_KINDS; i++) {
        double share = (double)answered[i] / (double)total[i];
        print_message("%s: %.2f %% of %zu at ordinary temperatures answered in doubles\n", hard_names[i], 100 * share, total[i]);
        if (i != HARD_SPREAD && i != HARD_HUGE) assert_true(share > 0.999); // those have weights beyond doubles
    }
}

// The formulas of theory.md §2 and §3 as they stand, in doubles, for k = m = 1.
struct naive {
    double klf, klr, margin_klf, margin_klr;
};

static struct naive naive_formulas(const float *l, size_t vocab)
{
    double w[LARGEST], sum = 0, top = -INFINITY;
    for (size_t i = 0; i < vocab; i++) top = fmax(top, (double)l[i]);
    for (size_t i = 0; i < vocab; i++) sum += w[i] = exp(l[i] - top);
    double a = 0, b = 0;
    for (size_t i = 0; i < vocab; i++) {
        double p = w[i] / sum;
        if (p > a) b = a, a = p;
        else if (p > b) b = p;
    }
    double y = a - b, g = exp((log(a) + log(b)) / 2);
    return (struct naive){a * log(2 * a / (a + b)) + b * log(2 * b / (a + b)), -log(1 - (a - g) - (b - g)),
                          ((1 + y) * log(1 + y) + (1 - y) * log(1 - y)) / 2, -log(1 - y * y) / 2};
}

static struct hm_level level_of(const float *l, size_t vocab, struct hm_margin *margin)
{
    struct hm_row *row = open_row(l, vocab, "1");
    struct hm_error err = {.message = ""};
    struct hm_level level;
    if (hm_level_make(row, 1, 1, &level, margin, &err)) fail_msg("%s", err.message);
    struct exact e;
    assert_true(exact_fill(row, 1, 1, 1024, &e));
    struct case_of_row c = {row, 1, 1, "naive"};
    assert_encloses_exact(&c, &level, margin, &e);
    exact_clear(&e);
    hm_row_close(row);
    return level;
}

static bool outside(double x, struct hm_ival v) // by more than rounding: NaN counts
{
    return !(x >= v.lo * (1 - 1e-6) && x <= v.hi * (1 + 1e-6));
}

static void formulas_as_written_lose_close_ties(void **state)
{
    (void)state;
    size_t negative = 0, wrong = 0, rows = 0;
    for (int n = 1; n <= 200; n++, rows++) { // gaps of about 1e-9
        float l[] = {1e-9f * (float)n, 0, -0.3f, -1};
        struct hm_margin g;
        struct hm_level v = level_of(l, 4, &g);
        struct naive x = naive_formulas(l, 4);
        negative += x.klf < 0 || x.margin_klf < 0;
        wrong += outside(x.klf, v.klf) && outside(x.klr, v.klr);
        assert_true(v.klf.lo > 0 && v.klr.lo > 0 && v.klf.hi >= g.klf.lo && v.klr.hi >= g.klr.lo);
        assert_true(v.klf.hi - v.klf.lo <= 1e-9 * v.klf.hi);
    }
    print_message("of %zu close ties: %zu negative, %zu with no digit\n", rows, negative, wrong);
    assert_true(negative > 0 && wrong > 100);
}

static void formulas_as_written_fall_below_their_margin(void **state)
{
    (void)state;
    size_t below_margin = 0, infinite = 0;
    for (int n = 0; n < 200; n++) { // p1 = 1 - 1e-7 and beyond
        float l[] = {16.118095f + (float)n, 0}; // two tokens: the margin bound is the level
        struct hm_margin g;
        struct hm_level v = level_of(l, 2, &g);
        struct naive x = naive_formulas(l, 2);
        below_margin += x.klr < g.klr.lo;
        infinite += isinf(x.margin_klr) && g.klr.hi < 120;
        assert_true(v.klr.hi >= g.klr.lo && v.klf.hi >= g.klf.lo && isfinite(g.klr.hi));
    }
    print_message("of 200 peaks: %zu below their own margin bound, %zu infinite\n", below_margin, infinite);
    assert_true(below_margin > 0 && infinite > 0);
}

static void formulas_as_written_break_on_wide_rows(void **state)
{
    (void)state;
    size_t nan = 0, infinite = 0;
    for (int n = 0; n < 50; n++) { // spreads of 10^3 nats: the second probability is 0 in doubles, and 0 ln 0 is NaN
        float l[] = {1000, (float)(-10 * n), -1000};
        struct hm_margin g;
        struct hm_level v = level_of(l, 3, &g);
        struct naive x = naive_formulas(l, 3);
        nan += isnan(x.klf);
        infinite += isinf(x.klr) || isinf(x.margin_klr);
        assert_true(v.klf.lo > 0.6931 && v.klf.hi < 0.6932); // ln 2
        assert_true(v.klr.lo > 400 && v.klr.hi < 1000 && g.klr.lo > 400 && g.klr.hi <= v.klr.hi);
    }
    print_message("of 50 wide rows: %zu NaN, %zu infinite\n", nan, infinite);
    assert_true(nan == 50 && infinite == 50);
}

// Ends that a log carries: the balance is strictly positive at the lower end of c and strictly negative at the upper.
static void logged_levels_have_the_balance_on_both_sides(void **state)
{
    (void)state;
    struct random r = seeded("balance");
    mpfr_t p, balance, sum;
    mpfr_inits2(256, p, balance, sum, (mpfr_ptr)0);
    for (size_t n = 0; n < test_count(200, 2000, 20000); n++) {
        float l[LARGEST];
        size_t vocab = 3 + below(&r, 10), k = 1 + below(&r, vocab - 1), m = 1 + below(&r, vocab - k);
        hard_row(&r, n % 2 ? HARD_PLAIN : HARD_BF16, l, vocab);
        struct hm_row *row = open_row(l, vocab, "1");
        struct hm_error err;
        struct hm_level v;
        assert_int_equal(hm_level_make(row, k, m, &v, NULL, &err), HM_OK);
        mpfr_set_zero(sum, 1);
        for (size_t i = 0; i < vocab; i++) {
            mpfr_set_flt(p, l[i], MPFR_RNDN);
            mpfr_exp(p, p, MPFR_RNDN);
            mpfr_add(sum, sum, p, MPFR_RNDN);
        }
        for (int upper = 0; upper < 2; upper++) {
            mpfr_set_zero(balance, 1);
            for (size_t i = 0; i < k + m; i++) {
                mpfr_set_flt(p, l[hm_row_token(row, i)], MPFR_RNDN);
                mpfr_exp(p, p, MPFR_RNDN);
                mpfr_div(p, p, sum, MPFR_RNDN);
                mpfr_sub_d(p, p, upper ? v.level_f.hi : v.level_f.lo, MPFR_RNDN);
                if (i < k ? mpfr_sgn(p) > 0 : mpfr_sgn(p) < 0) mpfr_add(balance, balance, p, MPFR_RNDN);
            }
            if (v.tied_f[0] > 0) assert_true(upper ? mpfr_sgn(balance) < 0 : mpfr_sgn(balance) > 0);
        }
        hm_row_close(row);
    }
    mpfr_clears(p, balance, sum, (mpfr_ptr)0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_arithmetics_enclose_one_number),
        cmocka_unit_test(formulas_as_written_lose_close_ties),
        cmocka_unit_test(formulas_as_written_fall_below_their_margin),
        cmocka_unit_test(formulas_as_written_break_on_wide_rows),
        cmocka_unit_test(logged_levels_have_the_balance_on_both_sides),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
