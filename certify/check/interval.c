// Interval arithmetic on MPFR: see interval.h.
#include "certify/check/interval.h"

#include <stdbool.h>

void iv_inits(struct iv *x, size_t count, mpfr_prec_t precision)
{
    for (size_t i = 0; i < count; i++) {
        mpfr_init2(x[i].lo, precision);
        mpfr_init2(x[i].hi, precision);
        iv_point(&x[i], 0);
    }
}

void iv_clears(struct iv *x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        mpfr_clear(x[i].lo);
        mpfr_clear(x[i].hi);
    }
}

// inf - inf and 0 * inf say nothing about the value.
static void no_nan(struct iv *r)
{
    if (mpfr_nan_p(r->lo)) mpfr_set_inf(r->lo, -1);
    if (mpfr_nan_p(r->hi)) mpfr_set_inf(r->hi, 1);
}

void iv_set(struct iv *r, const struct iv *x)
{
    mpfr_set(r->lo, x->lo, MPFR_RNDD);
    mpfr_set(r->hi, x->hi, MPFR_RNDU);
}

void iv_point(struct iv *r, double x)
{
    mpfr_set_d(r->lo, x, MPFR_RNDD);
    mpfr_set_d(r->hi, x, MPFR_RNDU);
}

void iv_add(struct iv *r, const struct iv *a, const struct iv *b)
{
    mpfr_add(r->lo, a->lo, b->lo, MPFR_RNDD);
    mpfr_add(r->hi, a->hi, b->hi, MPFR_RNDU);
    no_nan(r);
}

void iv_sub(struct iv *r, const struct iv *a, const struct iv *b)
{
    mpfr_t lo; // r may be a or b
    mpfr_init2(lo, mpfr_get_prec(r->lo));
    mpfr_sub(lo, a->lo, b->hi, MPFR_RNDD);
    mpfr_sub(r->hi, a->hi, b->lo, MPFR_RNDU);
    mpfr_swap(r->lo, lo);
    mpfr_clear(lo);
    no_nan(r);
}

// The extreme of the four products of ends, or NaN when one of them is.
static void extreme(mpfr_t r, const struct iv *a, const struct iv *b, mpfr_rnd_t round)
{
    mpfr_t t;
    mpfr_init2(t, mpfr_get_prec(r));
    mpfr_mul(r, a->lo, b->lo, round);
    for (int i = 1; i < 4; i++) {
        mpfr_mul(t, i & 1 ? a->hi : a->lo, i & 2 ? b->hi : b->lo, round);
        if (mpfr_nan_p(t) || (round == MPFR_RNDD ? mpfr_less_p(t, r) : mpfr_greater_p(t, r))) mpfr_set(r, t, round);
        if (mpfr_nan_p(r)) break;
    }
    mpfr_clear(t);
}

void iv_mul(struct iv *r, const struct iv *a, const struct iv *b)
{
    struct iv t;
    iv_inits(&t, 1, mpfr_get_prec(r->lo));
    if (mpfr_sgn(a->lo) >= 0 && mpfr_sgn(b->lo) >= 0) { // the common case
        mpfr_mul(t.lo, a->lo, b->lo, MPFR_RNDD);
        mpfr_mul(t.hi, a->hi, b->hi, MPFR_RNDU);
    } else {
        extreme(t.lo, a, b, MPFR_RNDD);
        extreme(t.hi, a, b, MPFR_RNDU);
    }
    mpfr_swap(r->lo, t.lo);
    mpfr_swap(r->hi, t.hi);
    iv_clears(&t, 1);
    no_nan(r);
}

void iv_div(struct iv *r, const struct iv *a, const struct iv *b)
{
    struct iv inverse;
    iv_inits(&inverse, 1, mpfr_get_prec(r->lo) + 8);
    mpfr_ui_div(inverse.lo, 1, b->hi, MPFR_RNDD);
    mpfr_ui_div(inverse.hi, 1, b->lo, MPFR_RNDU);
    // A quotient of points is one rounding from the truth, so that 1/4 stays the point 1/4.
    if (mpfr_equal_p(a->lo, a->hi) && mpfr_equal_p(b->lo, b->hi)) {
        mpfr_div(inverse.lo, a->lo, b->lo, MPFR_RNDD);
        mpfr_div(inverse.hi, a->hi, b->hi, MPFR_RNDU);
        iv_set(r, &inverse);
    } else {
        iv_mul(r, a, &inverse);
    }
    iv_clears(&inverse, 1);
    no_nan(r);
}

void iv_scale(struct iv *r, const struct iv *a, unsigned long n)
{
    mpfr_mul_ui(r->lo, a->lo, n, MPFR_RNDD);
    mpfr_mul_ui(r->hi, a->hi, n, MPFR_RNDU);
    no_nan(r);
}

void iv_divide(struct iv *r, const struct iv *a, unsigned long n)
{
    mpfr_div_ui(r->lo, a->lo, n, MPFR_RNDD);
    mpfr_div_ui(r->hi, a->hi, n, MPFR_RNDU);
}

void iv_mul_q(struct iv *r, const struct iv *a, mpq_srcptr q)
{
    mpfr_mul_q(r->lo, a->lo, q, MPFR_RNDD);
    mpfr_mul_q(r->hi, a->hi, q, MPFR_RNDU);
    no_nan(r);
}

void iv_set_q(struct iv *r, mpq_srcptr q)
{
    mpfr_set_q(r->lo, q, MPFR_RNDD);
    mpfr_set_q(r->hi, q, MPFR_RNDU);
}

void iv_exp(struct iv *r, const struct iv *a)
{
    if (!mpfr_equal_p(a->lo, a->hi)) {
        mpfr_exp(r->lo, a->lo, MPFR_RNDD);
        mpfr_exp(r->hi, a->hi, MPFR_RNDU);
        return;
    }
    int inexact = mpfr_exp(r->lo, a->lo, MPFR_RNDD); // correctly rounded, so the other end is the next number
    mpfr_set(r->hi, r->lo, MPFR_RNDU);
    if (inexact) mpfr_nextabove(r->hi);
}

void iv_log(struct iv *r, const struct iv *a)
{
    if (mpfr_sgn(a->lo) > 0)
        mpfr_log(r->lo, a->lo, MPFR_RNDD);
    else
        mpfr_set_inf(r->lo, -1);
    mpfr_log(r->hi, a->hi, MPFR_RNDU);
    no_nan(r);
}

void iv_positive(struct iv *r)
{
    if (!(mpfr_sgn(r->lo) > 0)) mpfr_set_zero(r->lo, 1);
    if (!(mpfr_sgn(r->hi) > 0)) mpfr_set_zero(r->hi, 1);
}

void iv_at_most_one(struct iv *r)
{
    if (mpfr_cmp_ui(r->hi, 1) > 0) mpfr_set_ui(r->hi, 1, MPFR_RNDU);
}

enum answer iv_less(const struct iv *a, const struct iv *b)
{
    if (mpfr_less_p(a->hi, b->lo)) return YES;
    return mpfr_greaterequal_p(a->lo, b->hi) ? NO : OPEN;
}

enum answer iv_at_least(const struct iv *a, const struct iv *b)
{
    enum answer less = iv_less(a, b);
    return less == OPEN ? OPEN : less == YES ? NO : YES;
}

void iv_min(struct iv *r, const struct iv *a)
{
    mpfr_min(r->lo, r->lo, a->lo, MPFR_RNDD);
    mpfr_min(r->hi, r->hi, a->hi, MPFR_RNDU);
}

void iv_expm1(struct iv *r, const struct iv *a)
{
    mpfr_expm1(r->lo, a->lo, MPFR_RNDD);
    mpfr_expm1(r->hi, a->hi, MPFR_RNDU);
}

void iv_negate(struct iv *r)
{
    mpfr_neg(r->lo, r->lo, MPFR_RNDU);
    mpfr_neg(r->hi, r->hi, MPFR_RNDD);
    mpfr_swap(r->lo, r->hi);
}

void iv_scale_q(struct iv *r, const struct iv *a, mpq_srcptr q)
{
    bool negative = mpq_sgn(q) < 0;
    mpfr_t lo; // r may be a
    mpfr_init2(lo, mpfr_get_prec(r->lo));
    mpfr_mul_q(lo, negative ? a->hi : a->lo, q, MPFR_RNDD);
    mpfr_mul_q(r->hi, negative ? a->lo : a->hi, q, MPFR_RNDU);
    mpfr_swap(r->lo, lo);
    mpfr_clear(lo);
    no_nan(r);
}
