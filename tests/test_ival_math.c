// Interval arithmetic in double: containment against MPFR at 300 bits and the promised widths, on arguments chosen to
// hurt: near 0 and 1, at the switch points of every series, subnormal, huge, infinite, and NaN.
#include "bounds/ival_math.h"
#include "tests/seed.h"

#include <math.h>
#include <mpfr.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { BITS = 300 };

static size_t count(size_t usual)
{
    return test_count(usual / 20, usual, usual * 100);
}

static double any_bits(uint64_t *r)
{
    uint64_t bits = test_random(r);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// A positive number: any magnitude, ordinary, next to a special one, or a few units from it.
static double positive(uint64_t *r)
{
    static const double special[] = {1, 2, 0.5, 0.29289, 0.41421, 0.70711, 1.41421, 0.34657359, 0.69314718, 0.7071067811865476,
                                     1.4142135623730951, 708, 709.79, 745.2, 0x1p-500, 0x1p-60, 0x1p-1022, 0x1p-1074, 0x1p-969,
                                     0x1p-960, 0x1p54, 36.7, 64, 1.7976931348623157e308};
    double x;
    switch (test_below(r, 8)) {
    case 0: return fabs(any_bits(r));
    case 1: return exp(test_signed(r) * 40);
    case 2: return 1 + test_signed(r) * exp2(-(double)test_below(r, 60));
    case 3: return fabs(test_signed(r));
    case 4: return fabs(test_signed(r)) * 0x1p-1030;
    case 5: return fabs(test_signed(r)) * 720;
    default:
        x = special[test_below(r, sizeof special / sizeof *special)];
        for (size_t n = test_below(r, 4); n > 0; n--) x = nextafter(x, test_below(r, 2) ? INFINITY : 0);
        return x;
    }
}

static double signed_number(uint64_t *r)
{
    double x = positive(r);
    return test_below(r, 2) ? x : -x;
}

// Two ends around a number, now and then the same.
static struct hm_ival around(uint64_t *r, double x)
{
    double y = x;
    switch (test_below(r, 3)) {
    case 0: break;
    case 1: y = x * (1 + fabs(test_signed(r)) * 0x1p-40); break;
    default: y = signed_number(r);
    }
    if (!(x <= y || y <= x)) return (struct hm_ival){x, x};
    return x <= y ? (struct hm_ival){x, y} : (struct hm_ival){y, x};
}

static double inside(uint64_t *r, struct hm_ival v)
{
    double x;
    switch (test_below(r, 3)) {
    case 0: return v.lo;
    case 1: return v.hi;
    default: x = v.lo + (v.hi - v.lo) * fabs(test_signed(r)); return x >= v.lo && x <= v.hi ? x : v.lo;
    }
}

static void assert_holds(const char *name, struct hm_ival v, mpfr_srcptr exact, double x, double y)
{
    if (v.lo != v.lo || v.hi != v.hi || !(v.lo <= v.hi)) fail_msg("%s(%a, %a) is no interval", name, x, y);
    if (mpfr_nan_p(exact)) return; // 0 times an infinite end and the like: nothing to contain
    if (mpfr_cmp_d(exact, v.lo) < 0 || mpfr_cmp_d(exact, v.hi) > 0)
        fail_msg("%s(%a, %a): %a not in [%a, %a]", name, x, y, mpfr_get_d(exact, MPFR_RNDN), v.lo, v.hi);
}

struct operation {
    const char *name;
    struct hm_ival (*ours)(struct hm_ival, struct hm_ival);
    int (*exact)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);
};
static const struct operation operations[] = {
    {"add", hm_ival_add, mpfr_add}, {"sub", hm_ival_sub, mpfr_sub}, {"mul", hm_ival_mul, mpfr_mul},
    {"div", hm_ival_div, mpfr_div}, {"min", hm_ival_min, mpfr_min}, {"max", hm_ival_max, mpfr_max},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

// Every point of the operands is contained; on points the ends are the two nearest doubles, or one that is exact.
static void arithmetic_encloses_and_is_tight(void **state)
{
    (void)state;
    uint64_t r = test_seed("arithmetic");
    mpfr_t x, y, exact;
    mpfr_inits2(2200, x, y, exact, (mpfr_ptr)0);
    for (size_t n = 0; n < count(300000); n++) {
        struct hm_ival a = around(&r, signed_number(&r)), b = around(&r, signed_number(&r));
        const struct operation *o = &operations[n % OPERATIONS];
        double p = inside(&r, a), q = inside(&r, b);
        mpfr_set_d(x, p, MPFR_RNDN);
        mpfr_set_d(y, q, MPFR_RNDN);
        if (o->ours == hm_ival_div && q == 0) continue;
        o->exact(exact, x, y, MPFR_RNDN); // 2,200 bits: only quotients round
        assert_holds(o->name, o->ours(a, b), exact, p, q);
        struct hm_ival v = o->ours(hm_ival_point(p), hm_ival_point(q));
        assert_holds(o->name, v, exact, p, q);
        if (!isfinite(p) || !isfinite(q) || v.lo == v.hi) continue;
        double size = fabs(v.lo) > fabs(v.hi) ? fabs(v.hi) : fabs(v.lo);
        if ((o->ours == hm_ival_div && fabs(p) < 0x1p-960) || fabs(p) > 0x1p1022 || fabs(q) > 0x1p1022) continue;
        if (size > 0x1p-960 && nextafter(v.lo, INFINITY) != v.hi) fail_msg("%s(%a, %a): [%a, %a]", o->name, p, q, v.lo, v.hi);
        if (size > 0x1p-960 && (o->ours == hm_ival_add || o->ours == hm_ival_mul))
            assert_true(mpfr_cmp_d(exact, v.lo) != 0 && mpfr_cmp_d(exact, v.hi) != 0); // exact results stay points
    }
    mpfr_clears(x, y, exact, (mpfr_ptr)0);
}

static int exact_log_excess(mpfr_ptr out, mpfr_srcptr v, mpfr_rnd_t rounding)
{
    mpfr_t log;
    mpfr_init2(log, 4 * BITS + 2200);
    mpfr_log1p(log, v, MPFR_RNDN);
    int inexact = mpfr_sub(out, v, log, rounding);
    mpfr_clear(log);
    return inexact;
}

static int exact_exp_excess(mpfr_ptr out, mpfr_srcptr u, mpfr_rnd_t rounding)
{
    mpfr_t minus;
    mpfr_init2(minus, 4 * BITS + 2200);
    mpfr_neg(minus, u, MPFR_RNDN);
    mpfr_expm1(minus, minus, MPFR_RNDN);
    int inexact = mpfr_add(out, minus, u, rounding);
    mpfr_clear(minus);
    return inexact;
}

static int exact_drop(mpfr_ptr out, mpfr_srcptr u, mpfr_rnd_t rounding)
{
    mpfr_neg(out, u, MPFR_RNDN);
    mpfr_expm1(out, out, MPFR_RNDN);
    return mpfr_neg(out, out, rounding);
}

struct function {
    const char *name;
    struct hm_ival (*ours)(struct hm_ival);
    int (*exact)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
    double least;             // of the domain
    double smallest, largest; // magnitudes of results whose width is promised
    double steep;             // MPFR's own cost grows with the argument: none beyond this
};
static const struct function functions[] = {
    {"log", hm_ival_log, mpfr_log, 0, 0, INFINITY, INFINITY},
    {"log1p", hm_ival_log1p, mpfr_log1p, -1, 0x1p-1000, INFINITY, INFINITY},
    {"exp", hm_ival_exp, mpfr_exp, -INFINITY, 0x1p-1021, 0x1p1021, 1e6},
    {"log_excess", hm_ival_log_excess, exact_log_excess, -1, 0x1p-999, 0x1p1021, INFINITY},
    {"exp_excess", hm_ival_exp_excess, exact_exp_excess, -INFINITY, 0x1p-999, 0x1p1021, 1e6},
    {"drop", hm_ival_drop, exact_drop, 0, 0x1p-1000, INFINITY, INFINITY},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static void elementary_functions_enclose_and_are_narrow(void **state)
{
    (void)state;
    uint64_t r = test_seed("functions");
    mpfr_t x, exact;
    mpfr_init2(x, 53);
    mpfr_init2(exact, BITS);
    double widest[FUNCTIONS] = {0};
    for (size_t n = 0; n < count(240000); n++) {
        const struct function *f = &functions[n % FUNCTIONS];
        double at = signed_number(&r);
        if (f->least == 0) at = fabs(at);
        if (!(at >= f->least) || fabs(at) > f->steep || !isfinite(at)) continue;
        mpfr_set_d(x, at, MPFR_RNDN);
        f->exact(exact, x, MPFR_RNDN);
        struct hm_ival v = f->ours(hm_ival_point(at));
        assert_holds(f->name, v, exact, at, at);
        struct hm_ival a = around(&r, at);
        if (a.lo >= f->least) assert_holds(f->name, f->ours(a), exact, at, at); // `at` is one of its ends
        double size = fabs(v.lo) > fabs(v.hi) ? fabs(v.lo) : fabs(v.hi);
        if (!(size >= f->smallest && size <= f->largest) || v.lo == v.hi) continue;
        double width = (v.hi - v.lo) / size;
        if (width > widest[n % FUNCTIONS]) widest[n % FUNCTIONS] = width;
        if (!(width <= HM_IVAL_ELEMENTARY)) fail_msg("%s(%a): relative width 2^%g", f->name, at, log2(width));
    }
    for (size_t i = 0; i < FUNCTIONS; i++) print_message("%s: relative width at most 2^%.2f\n", functions[i].name, log2(widest[i]));
    mpfr_clear(x);
    mpfr_clear(exact);
}

// The error of the value in the middle stays well inside the widening (docs/filter.md: 6 units, the widening has 8).
static void the_middle_is_as_close_as_derived(void **state)
{
    (void)state;
    uint64_t r = test_seed("middle");
    mpfr_t x, exact, error;
    mpfr_init2(x, 53);
    mpfr_inits2(BITS, exact, error, (mpfr_ptr)0);
    double worst[FUNCTIONS] = {0};
    for (size_t n = 0; n < count(120000); n++) {
        const struct function *f = &functions[n % FUNCTIONS];
        double at = test_signed(&r) * (n % 3 ? 1.2 : 30);
        if (f->least == 0) at = fabs(at);
        if (!(at > f->least)) continue;
        struct hm_ival v = f->ours(hm_ival_point(at));
        mpfr_set_d(x, at, MPFR_RNDN);
        f->exact(exact, x, MPFR_RNDN);
        mpfr_sub_d(error, exact, v.lo + (v.hi - v.lo) / 2, MPFR_RNDN);
        mpfr_div(error, error, exact, MPFR_RNDN);
        double e = fabs(mpfr_get_d(error, MPFR_RNDN)) * 0x1p53;
        if (e > worst[n % FUNCTIONS]) worst[n % FUNCTIONS] = e;
    }
    for (size_t i = 0; i < FUNCTIONS; i++) {
        print_message("%s: %.2f units\n", functions[i].name, worst[i]);
        assert_true(worst[i] < 6);
    }
    mpfr_clears(x, exact, error, (mpfr_ptr)0);
}

static bool is(struct hm_ival v, double lo, double hi)
{
    return v.lo == lo && v.hi == hi && !(v.lo == 0 && signbit(v.lo)) && !(v.hi == 0 && signbit(v.hi));
}

static void special_values(void **state)
{
    (void)state;
    const double inf = INFINITY;
    const struct hm_ival line = {-inf, inf}, zero = {0, 0}, nan = {NAN, NAN}, half_nan = {0, NAN}, all = {inf, inf};
    assert_true(is(hm_ival_point(NAN), -inf, inf));
    struct hm_ival (*const unary[])(struct hm_ival) = {hm_ival_neg, hm_ival_log, hm_ival_log1p, hm_ival_exp, hm_ival_log_excess,
                                                       hm_ival_exp_excess, hm_ival_drop};
    for (size_t i = 0; i < 7; i++) assert_true(is(unary[i](nan), -inf, inf) && is(unary[i](half_nan), -inf, inf));
    for (size_t i = 0; i < OPERATIONS; i++) {
        struct hm_ival a = operations[i].ours(nan, zero), b = operations[i].ours(zero, half_nan);
        assert_true(a.lo <= 0 && a.hi >= 0 && b.lo <= 0 && b.hi >= 0 && a.hi - a.lo == inf); // written so that NaN fails
    }
    assert_true(is(hm_ival_add(all, zero), inf, inf) && is(hm_ival_sub(all, all), -inf, inf));
    assert_true(is(hm_ival_mul(all, zero), -inf, inf) && is(hm_ival_div(zero, all), 0, 0));
    assert_true(is(hm_ival_add(hm_ival_point(1e308), hm_ival_point(1e308)), 1.7976931348623157e308, inf));
    assert_true(is(hm_ival_mul(hm_ival_point(1e308), hm_ival_point(-1e308)), -inf, -1.7976931348623157e308));
    assert_true(is(hm_ival_mul(hm_ival_point(1e-300), hm_ival_point(1e-300)), 0, 0x1p-1074));
    assert_true(is(hm_ival_mul(hm_ival_point(1e-300), hm_ival_point(-1e-300)), -0x1p-1074, 0));
    assert_true(is(hm_ival_div(hm_ival_point(1), (struct hm_ival){-1, 1}), -inf, inf));
    assert_true(is(hm_ival_div(hm_ival_point(1), zero), -inf, inf));
    assert_true(is(hm_ival_div(hm_ival_point(6), hm_ival_point(-3)), -2, -2));
    assert_true(is(hm_ival_neg(zero), 0, 0));
    assert_true(is(hm_ival_log(hm_ival_point(1)), 0, 0) && is(hm_ival_log(zero), -inf, -inf) && is(hm_ival_log(all), inf, inf));
    assert_true(is(hm_ival_log((struct hm_ival){-1, -0.5}), -inf, inf));
    assert_true(is(hm_ival_log1p(zero), 0, 0) && is(hm_ival_log1p(hm_ival_point(-1)), -inf, -inf));
    assert_true(is(hm_ival_exp(zero), 1, 1) && is(hm_ival_exp(hm_ival_point(-inf)), 0, 0) && is(hm_ival_exp(all), inf, inf));
    assert_true(is(hm_ival_drop(zero), 0, 0) && hm_ival_drop(all).hi == 1);
    assert_true(is(hm_ival_log_excess(zero), 0, 0) && is(hm_ival_log_excess(hm_ival_point(-1)), inf, inf));
    assert_true(is(hm_ival_exp_excess(zero), 0, 0) && is(hm_ival_exp_excess(line), 0, inf));
    assert_true(hm_ival_log_excess((struct hm_ival){-0.5, 0.5}).lo == 0 && hm_ival_exp_excess((struct hm_ival){-0.5, 1}).lo == 0);
    assert_int_equal(hm_ival_less(hm_ival_point(1), hm_ival_point(2)), HM_YES);
    assert_int_equal(hm_ival_less(all, all), HM_NO);
    assert_int_equal(hm_ival_less(zero, zero), HM_NO);
    assert_int_equal(hm_ival_less((struct hm_ival){0, 1}, hm_ival_point(1)), HM_UNDECIDED);
    assert_int_equal(hm_ival_less(nan, zero), HM_UNDECIDED);
    assert_int_equal(hm_ival_nonnegative(nan), HM_UNDECIDED);
    assert_int_equal(hm_ival_nonnegative((struct hm_ival){0, 1}), HM_YES);
    assert_int_equal(hm_ival_nonnegative((struct hm_ival){-1, -0x1p-1074}), HM_NO);
    assert_true(is(hm_ival_meet((struct hm_ival){0, 2}, (struct hm_ival){1, 3}), 1, 2));
}

static void narrow_means_narrow(void **state)
{
    (void)state;
    assert_true(hm_ival_narrow(hm_ival_point(INFINITY)) && hm_ival_narrow(hm_ival_point(0)));
    assert_true(hm_ival_narrow((struct hm_ival){1, 1 + 0x1p-35}) && !hm_ival_narrow((struct hm_ival){1, 1 + 0x1p-33}));
    assert_true(hm_ival_narrow((struct hm_ival){-1 - 0x1p-35, -1}) && hm_ival_narrow((struct hm_ival){0, 0x1p-64}));
    assert_false(hm_ival_narrow((struct hm_ival){0, 0x1p-63}) || hm_ival_narrow((struct hm_ival){0, INFINITY}));
    assert_false(hm_ival_narrow((struct hm_ival){-INFINITY, INFINITY}) || hm_ival_narrow((struct hm_ival){NAN, NAN}));
}

static void rationals_have_the_nearest_ends(void **state)
{
    (void)state;
    uint64_t r = test_seed("rationals");
    mpq_t q;
    mpfr_t end;
    mpq_init(q);
    mpfr_init2(end, 53);
    for (size_t n = 0; n < count(20000); n++) {
        mpz_set_ui(mpq_numref(q), test_random(&r) >> test_below(&r, 64));
        mpz_set_ui(mpq_denref(q), (test_random(&r) >> test_below(&r, 64)) | 1);
        if (n % 5 == 0) mpz_mul_2exp(mpq_denref(q), mpq_denref(q), test_below(&r, 200));
        if (n % 7 == 0) mpz_neg(mpq_numref(q), mpq_numref(q));
        mpq_canonicalize(q);
        struct hm_ival v = hm_ival_rational(q);
        mpfr_set_q(end, q, MPFR_RNDD);
        assert_true(v.lo == mpfr_get_d(end, MPFR_RNDD));
        mpfr_set_q(end, q, MPFR_RNDU);
        assert_true(v.hi == mpfr_get_d(end, MPFR_RNDU));
    }
    mpq_clear(q);
    mpfr_clear(end);
}

static void fold(uint64_t *digest, struct hm_ival v)
{
    double ends[2] = {v.lo, v.hi};
    unsigned char bytes[sizeof ends];
    memcpy(bytes, ends, sizeof ends);
    for (size_t i = 0; i < sizeof bytes; i++) *digest = (*digest ^ bytes[i]) * UINT64_C(0x100000001b3); // FNV-1a
}

// The same bits with every compiler, at every optimisation and on every little-endian machine: a digest of results.
static void results_are_the_same_bits_everywhere(void **state)
{
    (void)state;
    uint64_t r = 1, digest = UINT64_C(0xcbf29ce484222325);
    for (size_t n = 0; n < 20000; n++) {
        double x = test_signed(&r), y = test_signed(&r);
        struct hm_ival a = hm_ival_point(ldexp(x, (int)test_below(&r, 40) - 30)), b = hm_ival_point(y);
        for (size_t i = 0; i < OPERATIONS; i++) fold(&digest, operations[i].ours(a, b));
        for (size_t i = 0; i < FUNCTIONS; i++) fold(&digest, functions[i].ours(functions[i].least == 0 ? hm_ival_max(a, hm_ival_neg(a)) : a));
    }
    assert_true(digest == UINT64_C(0x94998be342f12c0d));
}

static int release_caches(void **state)
{
    (void)state;
    mpfr_free_cache();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_encloses_and_is_tight),
        cmocka_unit_test(elementary_functions_enclose_and_are_narrow),
        cmocka_unit_test(the_middle_is_as_close_as_derived),
        cmocka_unit_test(special_values),
        cmocka_unit_test(narrow_means_narrow),
        cmocka_unit_test(results_are_the_same_bits_everywhere),
        cmocka_unit_test(rationals_have_the_nearest_ends),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
