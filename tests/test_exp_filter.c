// The filter's exp against MPFR: the error that docs/filter.md proves, on structured arguments at every temperature and
// on float32 differences at T = 1 (HM_LONG=1 takes all of them, a minute).
#include "bounds/exp_filter.h"
#include "tests/certify_rows.h"
#include "tests/seed.h"

#include <mpfr.h>
#include <string.h>

static const char *const temperatures[] = {"1", "1/2", "7/10", "2", "1/1000", "100"};
enum { TEMPERATURES = sizeof temperatures / sizeof *temperatures };

// |v - exp(-far/T)| in units of the promised error, with the reference at 200 bits; *remote: whose error is absolute.
static double error_share(double v, float top, float logit, mpq_srcptr temperature, bool *remote)
{
    mpfr_t t, w, error;
    mpfr_init2(t, 400);
    mpfr_inits2(200, w, error, (mpfr_ptr)0);
    mpfr_set_flt(t, top, MPFR_RNDN);
    mpfr_sub_d(t, t, (double)logit, MPFR_RNDN);
    mpfr_div_q(t, t, temperature, MPFR_RNDN);
    *remote = mpfr_cmp_d(t, HM_EXP_FILTER_REACH * (1 - 0x1p-50)) >= 0;
    mpfr_neg(t, t, MPFR_RNDN);
    mpfr_exp(w, t, MPFR_RNDN);
    mpfr_sub_d(error, w, v, MPFR_RNDN);
    double found = fabs(mpfr_get_d(error, MPFR_RNDA));
    mpfr_clears(t, w, error, (mpfr_ptr)0);
    return found / (v * HM_EXP_FILTER_ERROR + (*remote ? HM_EXP_FILTER_REMOTE : 0));
}

// Random and structured arguments at every temperature: close to the top, at the reach, at multiples of T ln 2 / 2
// (where the reduction changes k), and anywhere.
static void weights_are_as_near_as_promised(void **state)
{
    (void)state;
    struct random r = seeded("weights");
    size_t rows = test_count(2, 40, 4000);
    double worst[2] = {0, 0};
    for (size_t n = 0; n < rows * TEMPERATURES; n++) {
        enum { COUNT = 256 };
        float l[COUNT], top = (float)(below(&r, 3) ? 20 * gauss(&r) : 3e38 * uniform(&r));
        double w[COUNT], inverse, unit;
        struct hm_rational t;
        hm_rational_init(&t);
        assert_int_equal(hm_rational_parse(temperatures[n % TEMPERATURES], &t, NULL), HM_OK);
        unit = mpq_get_d(t.value);
        for (size_t i = 0; i < COUNT; i++) {
            double far = 80 * uniform(&r);
            if (i % 4 == 1) far = 64 * (1 + (double)((long)below(&r, 9) - 4) * 0x1p-24);
            if (i % 4 == 2) far = 0.5 * log(2) * (double)below(&r, 190) * (1 + gauss(&r) * 0x1p-24);
            if (i % 4 == 3) far = ldexp(uniform(&r), -(int)below(&r, 60));
            l[i] = (float)(top - far * unit);
            if (i == 0) l[i] = top;
            if (l[i] > top || (i == 5 && n % 3 == 0)) l[i] = -INFINITY;
        }
        assert_true(hm_exp_filter_inverse(t.value, &inverse));
        hm_exp_filter(l, COUNT, top, inverse, w);
        assert_true(w[0] == 1);
        for (size_t i = 0; i < COUNT; i++) {
            bool remote;
            double share = error_share(w[i], top, l[i], t.value, &remote);
            if (!(share <= 1)) fail_msg("(%a - %a) / %s: %a is wrong by %g of the bound", (double)top, (double)l[i],
                                        temperatures[n % TEMPERATURES], w[i], share);
            if (share > worst[remote]) worst[remote] = share;
        }
        hm_rational_clear(&t);
    }
    print_message("weights: at most %.3f of the bound, remote ones %.3f\n", worst[0], worst[1]);
    assert_true(worst[0] > 1e-2 && worst[1] > 0.5); // a bound far too wide would be a slip as well
}

// All float32 differences up to the reach at T = 1 (HM_LONG; otherwise every 1009th). libm's exp, good to 2^-50, is the
// reference; MPFR checks it on a sample.
static void every_difference(void **state)
{
    (void)state;
    enum { BATCH = 4096, SAMPLE = 100003 };
    size_t step = test_count(100003, 1009, 1), seen = 0;
    uint32_t last;
    float reach = 64, l[BATCH];
    double w[BATCH], worst = 0;
    mpq_t one;
    mpq_init(one);
    mpq_set_ui(one, 1, 1);
    memcpy(&last, &reach, sizeof last);
    for (uint64_t bits = 0; bits < last;) {
        size_t n = 0;
        for (; n < BATCH && bits < last; n++, bits += step) {
            uint32_t low = (uint32_t)bits;
            memcpy(&l[n], &low, sizeof low);
            l[n] = -l[n];
        }
        hm_exp_filter(l, n, 0, 1, w);
        for (size_t i = 0; i < n; i++) {
            double share = fabs(w[i] - exp((double)l[i])) / (w[i] * (HM_EXP_FILTER_ERROR - 0x1p-50));
            if (share > worst) worst = share;
            bool remote;
            if (++seen % SAMPLE == 0) assert_true(error_share(w[i], 0, l[i], one, &remote) <= 1);
            if (!(share <= 1)) fail_msg("exp(%a): found %a, %g of the bound", (double)l[i], w[i], share);
        }
    }
    mpq_clear(one);
    print_message("differences: %zu, at most %.3f of the bound\n", seen, worst);
}

static void inverse_has_a_range(void **state)
{
    (void)state;
    static const struct {
        const char *temperature;
        bool usable;
    } cases[] = {{"0x1p500", true}, {"0x1p501", false}, {"0x1p-500", true}, {"0x1p-501", false}, {"0x1p2000", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hm_rational t;
        double inverse;
        hm_rational_init(&t);
        assert_int_equal(hm_rational_parse(cases[i].temperature, &t, NULL), HM_OK);
        assert_int_equal(hm_exp_filter_inverse(t.value, &inverse), cases[i].usable);
        hm_rational_clear(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_as_near_as_promised),
        cmocka_unit_test(every_difference),
        cmocka_unit_test(inverse_has_a_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
