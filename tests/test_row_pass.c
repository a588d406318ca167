// The passes over rows: the error of a weight, on every float32 in range against a reference of 77 bits and at other
// temperatures against MPFR; the series' remainder; and the same bits from every instruction set.
#define HM_PASS_NAME test // the series itself, from a copy of the portable pass
#include "bounds/row_pass_lanes.h"
#include "tests/certify_rows.h"
#include "tests/seed.h"

#include <mpfr.h>

static struct hm_weight_scale scale_of(const char *temperature, float top)
{
    struct hm_weight_scale scale;
    struct hm_rational t;
    hm_rational_init(&t);
    assert_int_equal(hm_rational_parse(temperature, &t, NULL), HM_OK);
    assert_true(hm_weight_scale_set(&scale, t.value, top));
    hm_rational_clear(&t);
    return scale;
}

// exp of a float as high + low, high of 26 bits, low a double: 2^-78 relative.
struct split {
    double high, low;
};

static struct split split_exp(double x, mpfr_ptr work)
{
    struct split s;
    mpfr_set_d(work, x, MPFR_RNDN);
    mpfr_exp(work, work, MPFR_RNDN);
    double whole = mpfr_get_d(work, MPFR_RNDN);
    uint64_t bits;
    memcpy(&bits, &whole, sizeof bits);
    bits &= ~((UINT64_C(1) << 27) - 1);
    memcpy(&s.high, &bits, sizeof bits);
    mpfr_sub_d(work, work, s.high, MPFR_RNDN);
    s.low = mpfr_get_d(work, MPFR_RNDN);
    return s;
}

enum { LOW_BITS = 12, LOWS = 1 << LOW_BITS };

// The floats whose bits are `high` followed by any LOW_BITS: exp(a + b) = exp(a) exp(b), where the product of the high
// parts is exact and the difference from it too. Returns the worst error in units of 2^-53 of the value, within a
// fifth.
static double block_error(uint32_t high, const struct split *low, mpfr_ptr work, const struct hm_weight_scale *scale)
{
    static float x[LOWS];
    static double v[LOWS];
    struct hm_lanes sum = {{0}}, moment = {{0}};
    for (uint32_t i = 0; i < LOWS; i++) {
        uint32_t bits = high | i;
        memcpy(&x[i], &bits, sizeof bits);
    }
    struct split a = split_exp(x[0], work);
    hm_row_passes()->weigh(x, LOWS, scale, v, &sum, &moment);
    double worst = 0, least = INFINITY;
    for (int i = 0; i < LOWS; i++) {
        double rest = a.high * low[i].low + a.low * low[i].high + a.low * low[i].low;
        double error = fabs((v[i] - a.high * low[i].high) - rest);
        worst = error > worst ? error : worst;
        least = v[i] < least ? v[i] : least;
    }
    return worst / least * 0x1p53;
}

// Every float32 from -686 to 690, which are all inputs of a row at T = 1 whose top is in range: 2.29 x 10^9 of them.
// HM_REDUCED takes one block in 97.
static void every_float(void **state)
{
    (void)state;
    struct hm_weight_scale scale = scale_of("1", 0);
    struct split *low = calloc(LOWS, sizeof *low);
    mpfr_t work;
    mpfr_init2(work, 120);
    double worst = 0;
    size_t step = test_count(97, 1, 1), blocks = 0;
    for (uint32_t sign = 0; sign < 2; sign++) {
        float limit = sign ? 686 : 690;
        for (uint32_t exponent = 0; exponent < 137; exponent++) {
            for (uint32_t i = 0; i < LOWS; i++) {
                double unit = ldexp(1, (int)(exponent ? exponent : 1) - 150);
                low[i] = split_exp((sign ? -1.0 : 1.0) * i * unit, work);
            }
            for (size_t top = blocks % step; top < 1u << (23 - LOW_BITS); top += step) {
                uint32_t bits = sign << 31 | exponent << 23 | (uint32_t)top << LOW_BITS, last = bits | (LOWS - 1);
                float end;
                memcpy(&end, &last, sizeof end);
                if (fabsf(end) > limit) break;
                double error = block_error(bits, low, work, &scale);
                if (!(error <= 2)) fail_msg("near %a: wrong by %g units of 2^-53", (double)end, error);
                if (error > worst) worst = error;
                blocks++;
            }
        }
    }
    print_message("exp: %zu floats, at most %.3f units of 2^-53\n", blocks * LOWS, worst);
    assert_true(worst > 1 && blocks > 5000);
    mpfr_clear(work);
    free(low);
}

// The remainder of the series on |r| <= 0.34658: at the points of a grid with MPFR, and between them by a bound of the
// slope.
static void the_series_is_near_exp(void **state)
{
    (void)state;
    enum { PRECISION = 160 };
    double reach = 0.34658, slope = 0, worst = 0, factorial = 1, power = 1;
    size_t points = test_count(20000, 400000, 400000);
    for (int k = 0; k <= 20; k++) { // |P' - exp'| term by term; what follows the 20th is below 2^-90
        double c = k < EXP_TERMS ? exp_series[EXP_TERMS - 1 - k] : 0;
        if (k > 0) slope += k * (fabs(c - 1 / factorial) + 0x1p-53 * c) * power * (1 + 0x1p-40);
        if (k > 0) power *= reach;
        factorial *= k + 1;
    }
    mpfr_t r, p, e;
    mpfr_inits2(PRECISION, r, p, e, (mpfr_ptr)0);
    for (size_t i = 0; i <= points; i++) {
        mpfr_set_d(r, reach * (2 * (double)i / (double)points - 1), MPFR_RNDN);
        mpfr_set_d(p, exp_series[0], MPFR_RNDN);
        for (int k = 1; k < EXP_TERMS; k++) {
            mpfr_mul(p, p, r, MPFR_RNDN);
            mpfr_add_d(p, p, exp_series[k], MPFR_RNDN);
        }
        mpfr_exp(e, r, MPFR_RNDN);
        mpfr_sub(p, p, e, MPFR_RNDN);
        mpfr_div(p, p, e, MPFR_RNDN);
        worst = fmax(worst, fabs(mpfr_get_d(p, MPFR_RNDA)));
    }
    mpfr_clears(r, p, e, (mpfr_ptr)0);
    double between = slope * reach / (double)points * 1.5 /* over e^-0.347 */;
    print_message("series: %.3f at %zu points, %.3f between, in units of 2^-53\n", worst * 0x1p53, points,
                  between * 0x1p53);
    assert_true((worst + between) * 0x1p53 <= (points < 400000 ? 1 : 0.25));
}

// |v - exp(l/T) 2^-shift| in units of what is promised, against 200 bits.
static double error_share(double v, float logit, mpq_srcptr temperature, const struct hm_weight_scale *scale)
{
    mpfr_t w;
    mpfr_init2(w, 400);
    mpfr_set_flt(w, logit, MPFR_RNDN);
    mpfr_div_q(w, w, temperature, MPFR_RNDN);
    mpfr_exp(w, w, MPFR_RNDN);
    mpfr_mul_2si(w, w, -(long)(scale->shifted - 0x1.8p52), MPFR_RNDN);
    mpfr_sub_d(w, w, v, MPFR_RNDN);
    double found = fabs(mpfr_get_d(w, MPFR_RNDA));
    mpfr_clear(w);
    return found / (v * HM_WEIGHT_ERROR + (v <= 0x1p-988 ? HM_WEIGHT_REMOTE : 0));
}

// Random and structured arguments: near the top, near the floor, at multiples of T ln 2 / 2 where the reduction changes
// k, tops up to the largest that is allowed.
static void weights_are_as_near_as_promised(void **state)
{
    (void)state;
    static const char *const temperatures[] = {"1",     "1/2",  "7/10",       "2",      "1/1000",
                                               "1/100", "1000", "1234567/89", "0x1p60", "0x1p-60"};
    struct random r = seeded("weights");
    size_t rows = test_count(3, 300, 10000);
    double worst = 0;
    for (size_t n = 0; n < rows * 10; n++) {
        enum { COUNT = 255 };
        struct hm_rational t;
        hm_rational_init(&t);
        assert_int_equal(hm_rational_parse(temperatures[n % 10], &t, NULL), HM_OK);
        double unit = mpq_get_d(t.value), w[COUNT];
        float l[COUNT],
            top = (float)(unit * (below(&r, 2) ? 20 * gauss(&r) : ldexp(2 * uniform(&r) - 1, (int)below(&r, 26))));
        struct hm_weight_scale scale = scale_of(temperatures[n % 10], top);
        struct hm_lanes sum = {{0}}, moment = {{0}};
        for (size_t i = 0; i < COUNT; i++) {
            double far = 700 * uniform(&r);
            if (i % 4 == 1) far = 990 * log(2) + gauss(&r);
            if (i % 4 == 2) far = 0.5 * log(2) * (double)below(&r, 1990) * (1 + gauss(&r) * 0x1p-24);
            if (i % 4 == 3) far = ldexp(uniform(&r), -(int)below(&r, 60));
            l[i] = (float)(top - far * unit);
            if (i == 0 || l[i] > top) l[i] = top;
            if (i == 5 && n % 3 == 0) l[i] = -INFINITY;
        }
        hm_row_passes()->weigh(l, COUNT, &scale, w, &sum, &moment);
        assert_true(w[0] > 0.7 && w[0] < 1.5);
        for (size_t i = 0; i < COUNT; i++) {
            double share = error_share(w[i], l[i], t.value, &scale);
            if (!(share <= 1))
                fail_msg("exp(%a / %s): %a is wrong by %g of the bound", (double)l[i], temperatures[n % 10], w[i],
                         share);
            if (w[i] > 0x1p-988 && share > worst) worst = share;
        }
        hm_rational_clear(&t);
    }
    print_message("weights: at most %.3f of the bound\n", worst);
    assert_true(worst > 0.25); // a bound far too wide would be a slip as well
}

static void scales_have_a_range(void **state)
{
    (void)state;
    static const struct {
        const char *temperature;
        float top;
        bool usable;
    } cases[] = {{"0x1p64", 3, true},    {"0x1p65", 3, false},         {"0x1p-64", 0x1p-50f, true},
                 {"0x1p-65", 0, false},  {"0x1p2000", 1, false},       {"0x1p-2000", 1, false},
                 {"1", 0x1p25f, true},   {"1", 0x1.000002p25f, false}, {"1", -0x1p25f, true},
                 {"1", -0x1p26f, false}, {"1/1000", 33554, true},      {"1/1000", 33555, false},
                 {"1", 3e38f, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hm_rational t;
        struct hm_weight_scale scale;
        hm_rational_init(&t);
        assert_int_equal(hm_rational_parse(cases[i].temperature, &t, NULL), HM_OK);
        assert_int_equal(hm_weight_scale_set(&scale, t.value, cases[i].top), cases[i].usable);
        hm_rational_clear(&t);
    }
}

// Everything that the passes of one instruction set return for two rows.
struct results {
    double weights[2][700], gaps[700];
    float maxima[12];
    struct hm_lanes sum[2], moment[2], overlap;
    struct hm_pair_lanes pair;
    size_t finite, bad; // fields without padding, to be compared as bytes
    struct hm_spread spread;
};

static void run_passes(const struct hm_row_passes *passes, const float *p, const float *q, size_t count,
                       const char *temperature, struct results *out)
{
    memset(out, 0, sizeof *out);
    struct hm_look seen;
    passes->look(p, count, out->maxima, &seen);
    out->finite = seen.finite;
    out->bad = seen.bad;
    struct hm_weight_scale a = scale_of(temperature, 5), b = scale_of(temperature, 6);
    passes->weigh(p, count, &a, out->weights[0], &out->sum[0], &out->moment[0]);
    passes->weigh(q, count, &b, out->weights[1], &out->sum[1], &out->moment[1]);
    struct hm_pair_scale pair = {a.inverse, a.inverse_low, 0.3 * a.inverse, 1e-18, 1.25};
    passes->compare(p, q, out->weights[0], out->weights[1], count, &pair, &out->pair);
    passes->gaps(p, q, out->weights[0], out->weights[1], count, &pair, out->gaps);
    passes->overlap(out->weights[0], out->weights[1], count, 1.25, &out->overlap);
    passes->spread(p, count, (float)a.floor, &out->spread);
}

static void bits_are_the_same_everywhere(void **state)
{
    (void)state;
    static const char *const names[] = {"avx2", "avx512"}, *const temperatures[] = {"1", "7/10", "1/100", "1000"};
    struct random r = seeded("bits");
    struct results *portable = calloc(1, sizeof *portable), *other = calloc(1, sizeof *other);
    for (size_t name = 0; name < 2; name++) {
        const struct hm_row_passes *passes = hm_row_passes_named(names[name]);
        if (!passes) {
            print_message("%s: not on this machine\n", names[name]);
            continue;
        }
        assert_string_equal(passes->name, names[name]);
        for (size_t n = 0; n < test_count(50, 2000, 50000); n++) {
            float p[700], q[700];
            size_t count = 1 + below(&r, n % 10 ? 100 : 700);
            for (size_t i = 0; i < count; i++) {
                p[i] = (float)fmin(5, 2 * gauss(&r)) - (below(&r, 9) ? 0 : 300 * (float)uniform(&r));
                q[i] = below(&r, 3) ? p[i] + (float)(0.1 * gauss(&r)) : (float)gauss(&r);
                q[i] = fminf(q[i], 6);
                if (below(&r, 40) == 0) p[i] = below(&r, 2) ? -INFINITY : -3e38f;
                if (below(&r, 40) == 0) q[i] = below(&r, 2) ? -INFINITY : 3e-42f;
            }
            const char *temperature = temperatures[below(&r, 4)];
            run_passes(hm_row_passes_named("portable"), p, q, count, temperature, portable);
            run_passes(passes, p, q, count, temperature, other);
            assert_memory_equal(portable, other, sizeof *portable);
        }
    }
    assert_null(hm_row_passes_named("sse9"));
    free(portable);
    free(other);
}

static void look_finds_maxima_and_what_is_bad(void **state)
{
    (void)state;
    static const char *const names[] = {"portable", "avx2", "avx512"};
    struct random r = seeded("look");
    for (size_t name = 0; name < 3; name++) {
        const struct hm_row_passes *passes = hm_row_passes_named(names[name]);
        for (size_t n = 0; passes && n < test_count(100, 3000, 3000); n++) {
            float l[300], maxima[5];
            size_t count = 1 + below(&r, 300), finite = 0;
            struct hm_look seen;
            for (size_t i = 0; i < count; i++) {
                l[i] = below(&r, 4) ? (float)gauss(&r) : -INFINITY;
                finite += l[i] != -INFINITY;
            }
            passes->look(l, count, maxima, &seen);
            assert_true(!seen.bad && seen.finite == finite);
            for (size_t b = 0; b * HM_LOOK_BLOCK < count; b++) {
                float most = -INFINITY;
                for (size_t i = b * HM_LOOK_BLOCK; i < count && i < (b + 1) * HM_LOOK_BLOCK; i++)
                    most = fmaxf(most, l[i]);
                assert_true(maxima[b] == most);
            }
            l[below(&r, count)] = below(&r, 2) ? NAN : INFINITY;
            passes->look(l, count, maxima, &seen);
            assert_true(seen.bad);
        }
    }
}

// Exactness of differences is claimed only where it holds: compared with the two-sum of every pair.
static void exact_differences_are_exact(void **state)
{
    (void)state;
    struct random r = seeded("spread");
    size_t claimed = 0, rounds_run = test_count(200, 20000, 200000);
    for (size_t n = 0; n < rounds_run; n++) {
        float l[40], d[40];
        struct hm_spread a, b;
        int range = (int)below(&r, 40);
        for (size_t i = 0; i < 40; i++) {
            l[i] = (float)ldexp(2 * uniform(&r) - 1, (int)below(&r, (size_t)range + 1) - (below(&r, 50) ? 0 : 140));
            d[i] = (float)ldexp(2 * uniform(&r) - 1, (int)below(&r, (size_t)range + 1));
        }
        hm_row_passes()->spread(l, 40, -FLT_MAX, &a);
        hm_row_passes()->spread(d, 40, -FLT_MAX, &b);
        if (!hm_spreads_exact(a, b)) continue;
        claimed++;
        for (size_t i = 0; i < 40; i++) {
            double x = l[i], y = -(double)d[i], sum = x + y, part = sum - x;
            assert_true((x - (sum - part)) + (y - part) == 0);
        }
    }
    print_message("differences: %zu of %zu rows known to be exact\n", claimed, rounds_run);
    assert_true(claimed > rounds_run / 20 && claimed < rounds_run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_float),
        cmocka_unit_test(the_series_is_near_exp),
        cmocka_unit_test(weights_are_as_near_as_promised),
        cmocka_unit_test(scales_have_a_range),
        cmocka_unit_test(bits_are_the_same_everywhere),
        cmocka_unit_test(look_finds_maxima_and_what_is_bad),
        cmocka_unit_test(exact_differences_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
