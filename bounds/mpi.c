// Interval arithmetic with MPFR ends: see mpi.h. RNDD makes lower ends, RNDU upper ends, everywhere below.
#include "bounds/mpi.h"

#include <math.h>

void hm_mpi_init(struct hm_mpi *x, mpfr_prec_t precision)
{
    mpfr_init2(x->lo, precision);
    mpfr_init2(x->hi, precision);
    mpfr_set_zero(x->lo, 1);
    mpfr_set_zero(x->hi, 1);
}

void hm_mpi_clear(struct hm_mpi *x)
{
    mpfr_clear(x->lo);
    mpfr_clear(x->hi);
}

void hm_mpi_set(struct hm_mpi *x, const struct hm_mpi *from)
{
    mpfr_set(x->lo, from->lo, MPFR_RNDD);
    mpfr_set(x->hi, from->hi, MPFR_RNDU);
}

void hm_mpi_set_ui(struct hm_mpi *x, unsigned long value)
{
    mpfr_set_ui(x->lo, value, MPFR_RNDD);
    mpfr_set_ui(x->hi, value, MPFR_RNDU);
}

void hm_mpi_set_q(struct hm_mpi *x, mpq_srcptr value)
{
    mpfr_set_q(x->lo, value, MPFR_RNDD);
    mpfr_set_q(x->hi, value, MPFR_RNDU);
}

void hm_mpi_set_exact(struct hm_mpi *x, mpfr_srcptr value)
{
    mpfr_set(x->lo, value, MPFR_RNDD);
    mpfr_set(x->hi, value, MPFR_RNDU);
}

// A NaN end (0 * inf, inf - inf) means nothing is known.
static void mend(struct hm_mpi *x)
{
    if (mpfr_nan_p(x->lo)) mpfr_set_inf(x->lo, -1);
    if (mpfr_nan_p(x->hi)) mpfr_set_inf(x->hi, 1);
}

void hm_mpi_neg(struct hm_mpi *out, const struct hm_mpi *a)
{
    mpfr_t old_low;
    mpfr_init2(old_low, mpfr_get_prec(a->lo));
    mpfr_set(old_low, a->lo, MPFR_RNDD);
    mpfr_neg(out->lo, a->hi, MPFR_RNDD);
    mpfr_neg(out->hi, old_low, MPFR_RNDU);
    mpfr_clear(old_low);
}

void hm_mpi_add(struct hm_mpi *out, const struct hm_mpi *a, const struct hm_mpi *b)
{
    mpfr_add(out->lo, a->lo, b->lo, MPFR_RNDD);
    mpfr_add(out->hi, a->hi, b->hi, MPFR_RNDU);
    mend(out);
}

void hm_mpi_sub(struct hm_mpi *out, const struct hm_mpi *a, const struct hm_mpi *b)
{
    mpfr_t low;
    mpfr_init2(low, mpfr_get_prec(out->lo));
    mpfr_sub(low, a->lo, b->hi, MPFR_RNDD);
    mpfr_sub(out->hi, a->hi, b->lo, MPFR_RNDU);
    mpfr_swap(out->lo, low);
    mpfr_clear(low);
    mend(out);
}

void hm_mpi_mul(struct hm_mpi *out, const struct hm_mpi *a, const struct hm_mpi *b)
{
    mpfr_srcptr x[2] = {a->lo, a->hi}, y[2] = {b->lo, b->hi};
    mpfr_t low, high, product;
    mpfr_init2(low, mpfr_get_prec(out->lo));
    mpfr_init2(high, mpfr_get_prec(out->hi));
    mpfr_init2(product, mpfr_get_prec(out->lo));
    bool nan = false;
    for (int i = 0; i < 4; i++) {
        mpfr_mul(product, x[i & 1], y[i >> 1], MPFR_RNDD);
        nan = nan || mpfr_nan_p(product);
        if (i == 0 || mpfr_less_p(product, low)) mpfr_set(low, product, MPFR_RNDD);
    }
    mpfr_set_prec(product, mpfr_get_prec(out->hi));
    for (int i = 0; i < 4; i++) {
        mpfr_mul(product, x[i & 1], y[i >> 1], MPFR_RNDU);
        if (i == 0 || mpfr_greater_p(product, high)) mpfr_set(high, product, MPFR_RNDU);
    }
    if (nan) {
        mpfr_set_inf(low, -1);
        mpfr_set_inf(high, 1);
    }
    mpfr_swap(out->lo, low);
    mpfr_swap(out->hi, high);
    mpfr_clears(low, high, product, (mpfr_ptr)0);
}

void hm_mpi_div(struct hm_mpi *out, const struct hm_mpi *a, const struct hm_mpi *b)
{
    if (mpfr_sgn(b->lo) <= 0) {
        mpfr_set_inf(out->lo, -1);
        mpfr_set_inf(out->hi, 1);
        return;
    }
    mpfr_t low;
    mpfr_init2(low, mpfr_get_prec(out->lo));
    mpfr_div(low, a->lo, mpfr_sgn(a->lo) >= 0 ? b->hi : b->lo, MPFR_RNDD);
    mpfr_div(out->hi, a->hi, mpfr_sgn(a->hi) >= 0 ? b->lo : b->hi, MPFR_RNDU);
    mpfr_swap(out->lo, low);
    mpfr_clear(low);
    mend(out);
}

void hm_mpi_mul_q(struct hm_mpi *out, const struct hm_mpi *a, mpq_srcptr q)
{
    mpfr_mul_q(out->lo, a->lo, q, MPFR_RNDD);
    mpfr_mul_q(out->hi, a->hi, q, MPFR_RNDU);
    mend(out);
}

void hm_mpi_mul_ui(struct hm_mpi *out, const struct hm_mpi *a, unsigned long n)
{
    mpfr_mul_ui(out->lo, a->lo, n, MPFR_RNDD);
    mpfr_mul_ui(out->hi, a->hi, n, MPFR_RNDU);
    mend(out);
}

void hm_mpi_div_ui(struct hm_mpi *out, const struct hm_mpi *a, unsigned long n)
{
    mpfr_div_ui(out->lo, a->lo, n, MPFR_RNDD);
    mpfr_div_ui(out->hi, a->hi, n, MPFR_RNDU);
}

void hm_mpi_exp(struct hm_mpi *out, const struct hm_mpi *a)
{
    mpfr_exp(out->lo, a->lo, MPFR_RNDD);
    mpfr_exp(out->hi, a->hi, MPFR_RNDU);
}

static void log_end(mpfr_ptr out, mpfr_srcptr a, mpfr_rnd_t direction)
{
    if (mpfr_sgn(a) <= 0) mpfr_set_inf(out, -1);
    else mpfr_log(out, a, direction);
}

void hm_mpi_log(struct hm_mpi *out, const struct hm_mpi *a)
{
    log_end(out->lo, a->lo, MPFR_RNDD);
    log_end(out->hi, a->hi, MPFR_RNDU);
}

static void log1p_end(mpfr_ptr out, mpfr_srcptr a, mpfr_rnd_t direction)
{
    if (mpfr_cmp_si(a, -1) <= 0) mpfr_set_inf(out, -1);
    else mpfr_log1p(out, a, direction);
}

void hm_mpi_log1p(struct hm_mpi *out, const struct hm_mpi *a)
{
    log1p_end(out->lo, a->lo, MPFR_RNDD);
    log1p_end(out->hi, a->hi, MPFR_RNDU);
}

void hm_mpi_expm1(struct hm_mpi *out, const struct hm_mpi *a)
{
    mpfr_expm1(out->lo, a->lo, MPFR_RNDD);
    mpfr_expm1(out->hi, a->hi, MPFR_RNDU);
}

void hm_mpi_clip_low(struct hm_mpi *x, long least)
{
    if (mpfr_cmp_si(x->lo, least) < 0) mpfr_set_si(x->lo, least, MPFR_RNDD);
    if (mpfr_cmp_si(x->hi, least) < 0) mpfr_set_si(x->hi, least, MPFR_RNDU);
}

void hm_mpi_clip_high(struct hm_mpi *x, long most)
{
    if (mpfr_cmp_si(x->hi, most) > 0) mpfr_set_si(x->hi, most, MPFR_RNDU);
    if (mpfr_cmp_si(x->lo, most) > 0) mpfr_set_si(x->lo, most, MPFR_RNDD);
}

void hm_mpi_meet(struct hm_mpi *x, const struct hm_mpi *y)
{
    if (mpfr_greater_p(y->lo, x->lo)) mpfr_set(x->lo, y->lo, MPFR_RNDD);
    if (mpfr_less_p(y->hi, x->hi)) mpfr_set(x->hi, y->hi, MPFR_RNDU);
}

// A point of one of the excess functions, rounded in one direction and never below 0. The subtraction loses as many
// bits as v is small; the ladder of precisions pays for that, so no series is needed.
static void log_excess_end(mpfr_ptr out, mpfr_srcptr v, mpfr_rnd_t direction)
{
    if (mpfr_cmp_si(v, -1) <= 0) {
        mpfr_set_inf(out, 1);
        return;
    }
    mpfr_log1p(out, v, direction == MPFR_RNDD ? MPFR_RNDU : MPFR_RNDD);
    mpfr_sub(out, v, out, direction);
    if (mpfr_nan_p(out)) mpfr_set_inf(out, 1);
    if (mpfr_sgn(out) < 0) mpfr_set_zero(out, 1);
}

static void exp_excess_end(mpfr_ptr out, mpfr_srcptr u, mpfr_rnd_t direction)
{
    mpfr_t minus;
    mpfr_init2(minus, mpfr_get_prec(u));
    mpfr_neg(minus, u, MPFR_RNDN); // same precision: exact
    mpfr_expm1(out, minus, direction);
    mpfr_add(out, out, u, direction);
    if (mpfr_nan_p(out)) mpfr_set_inf(out, 1);
    if (mpfr_sgn(out) < 0) mpfr_set_zero(out, 1);
    mpfr_clear(minus);
}

// Both functions fall to 0 at 0 and then rise: the extremes over an interval are at its ends, or 0 inside.
static void valley(struct hm_mpi *out, const struct hm_mpi *x, void (*end)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t))
{
    struct hm_mpi result;
    mpfr_t other;
    hm_mpi_init(&result, mpfr_get_prec(out->lo));
    mpfr_init2(other, mpfr_get_prec(out->hi));
    if (mpfr_sgn(x->lo) > 0) end(result.lo, x->lo, MPFR_RNDD);
    else if (mpfr_sgn(x->hi) < 0) end(result.lo, x->hi, MPFR_RNDD);
    end(result.hi, x->lo, MPFR_RNDU);
    end(other, x->hi, MPFR_RNDU);
    if (mpfr_greater_p(other, result.hi)) mpfr_swap(result.hi, other);
    mpfr_swap(out->lo, result.lo);
    mpfr_swap(out->hi, result.hi);
    mpfr_clear(other);
    hm_mpi_clear(&result);
}

void hm_mpi_log_excess(struct hm_mpi *out, const struct hm_mpi *v)
{
    valley(out, v, log_excess_end);
}

void hm_mpi_exp_excess(struct hm_mpi *out, const struct hm_mpi *u)
{
    valley(out, u, exp_excess_end);
}

enum hm_verdict hm_mpi_less(const struct hm_mpi *a, const struct hm_mpi *b)
{
    if (mpfr_less_p(a->hi, b->lo)) return HM_YES;
    if (mpfr_greaterequal_p(a->lo, b->hi)) return HM_NO;
    return HM_UNDECIDED;
}

enum hm_verdict hm_mpi_nonnegative(const struct hm_mpi *x)
{
    if (mpfr_sgn(x->lo) >= 0) return HM_YES;
    return mpfr_sgn(x->hi) < 0 ? HM_NO : HM_UNDECIDED;
}

struct hm_ival hm_mpi_ival(const struct hm_mpi *x)
{
    double lo = mpfr_get_d(x->lo, MPFR_RNDD), hi = mpfr_get_d(x->hi, MPFR_RNDU);
    return (struct hm_ival){lo == 0 ? 0 : lo, hi == 0 ? 0 : hi}; // no negative zeros in logs
}

struct hm_ival hm_mpi_ival_wide(const struct hm_mpi *x)
{
    struct hm_ival v = hm_mpi_ival(x);
    if (isfinite(v.lo)) v.lo = nextafter(v.lo, -INFINITY);
    if (isfinite(v.hi)) v.hi = nextafter(v.hi, INFINITY);
    return v;
}

bool hm_mpi_narrow(const struct hm_mpi *x)
{
    if (mpfr_equal_p(x->lo, x->hi)) return true;
    if (mpfr_inf_p(x->lo) || mpfr_inf_p(x->hi)) return false;
    mpfr_t width, most;
    mpfr_init2(width, 64);
    mpfr_init2(most, 64);
    mpfr_sub(width, x->hi, x->lo, MPFR_RNDU);
    mpfr_set(most, mpfr_cmpabs(x->lo, x->hi) > 0 ? x->lo : x->hi, MPFR_RNDZ);
    mpfr_abs(most, most, MPFR_RNDZ);
    mpfr_mul_2si(most, most, -48, MPFR_RNDZ);
    bool narrow = mpfr_lessequal_p(width, most) || mpfr_cmp_si_2exp(width, 1, -80) <= 0;
    mpfr_clear(width);
    mpfr_clear(most);
    return narrow;
}
