// Real intervals, rounded outward: the result of each function holds its every value on its arguments' points, at the
// precision of the attempt at hand. What cannot be said is the whole line; NaN never leaves this file. Intervals live
// on a stack of chunks, each twice the one before, and are forgotten by r_release.
#include "parts.h"

void *sc_alloc(size_t size) {
    struct mark *top = &run->top;
    size = (size + 15) & ~(size_t)15;
    while (size > (CHUNK << top->chunk) - top->used) *top = (struct mark){top->chunk + 1, 0};
    sc_need(top->chunk < CHUNKS, "memory", "a smaller row");
    char **chunk = &run->chunk[top->chunk];
    if (!*chunk) *chunk = malloc(CHUNK << top->chunk);
    sc_need(*chunk != NULL, "memory", "more of it");
    top->used += size;
    return *chunk + top->used - size;
}

struct mark r_mark(void) {
    return run->top;
}

void r_release(struct mark mark) { run->top = mark; }

struct real *r_zero(void) {
    size_t size = mpfr_custom_get_size(run->precision);
    struct real *x = sc_alloc(sizeof *x + 2 * size);
    mpfr_custom_init_set(x->lo, MPFR_ZERO_KIND, 0, run->precision, x + 1);
    mpfr_custom_init_set(x->hi, MPFR_ZERO_KIND, 0, run->precision, (char *)(x + 1) + size);
    return x;
}

typedef int binary(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

static real ends(binary *f, mpfr_srcptr a, mpfr_srcptr b, mpfr_srcptr c, mpfr_srcptr d) { // [f(a, b), f(c, d)]
    struct real *x = r_zero();
    f(x->lo, a, b, MPFR_RNDD);
    f(x->hi, c, d, MPFR_RNDU);
    if (!mpfr_nan_p(x->lo) && !mpfr_nan_p(x->hi)) return x;
    mpfr_set_inf(x->lo, -1);
    mpfr_set_inf(x->hi, 1);
    return x;
}

typedef int unary(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

static real rising(unary *f, real a) {
    struct real *x = r_zero();
    f(x->lo, a->lo, MPFR_RNDD);
    f(x->hi, a->hi, MPFR_RNDU);
    return x;
}

real r_rational(mpq_srcptr q) {
    struct real *x = r_zero();
    mpfr_set_q(x->lo, q, MPFR_RNDD);
    mpfr_set_q(x->hi, q, MPFR_RNDU);
    return x;
}

real r_number(double number) {
    struct real *x = r_zero();
    mpfr_set_d(x->lo, number, MPFR_RNDD);
    mpfr_set_d(x->hi, number, MPFR_RNDU);
    return x;
}

void r_copy(struct real *to, real x) {
    mpfr_set(to->lo, x->lo, MPFR_RNDD);
    mpfr_set(to->hi, x->hi, MPFR_RNDU);
}

real r_add(real a, real b) { return ends(mpfr_add, a->lo, b->lo, a->hi, b->hi); }
real r_sub(real a, real b) { return ends(mpfr_sub, a->lo, b->hi, a->hi, b->lo); }
real r_min(real a, real b) { return ends(mpfr_min, a->lo, b->lo, a->hi, b->hi); }
real r_max(real a, real b) { return ends(mpfr_max, a->lo, b->lo, a->hi, b->hi); }
real r_negative(real a) { return r_sub(r_number(0), a); }
real r_positive(real a) { return r_max(a, r_number(0)); } // x^+, and for what is known to be >= 0
real r_times(real a, size_t n) { return r_mul(a, r_number((double)n)); }
real r_exp(real a) { return rising(mpfr_exp, a); }
real r_log(real a) { return rising(mpfr_log, r_positive(a)); } // of what is known to be >= 0
bool r_is(real a, double x) { return mpfr_cmp_d(a->lo, x) == 0 && mpfr_cmp_d(a->hi, x) == 0; } // exactly
void r_into(struct real *sum, real x) { r_copy(sum, r_add(sum, x)); }

real r_hull(real a, real b) {
    struct real *x = r_zero();
    mpfr_min(x->lo, a->lo, b->lo, MPFR_RNDD);
    mpfr_max(x->hi, a->hi, b->hi, MPFR_RNDU);
    return x;
}

real r_mul(real a, real b) {
    if (mpfr_sgn(a->lo) >= 0 && mpfr_sgn(b->lo) >= 0) return ends(mpfr_mul, a->lo, b->lo, a->hi, b->hi);
    real ll = ends(mpfr_mul, a->lo, b->lo, a->lo, b->lo), lh = ends(mpfr_mul, a->lo, b->hi, a->lo, b->hi);
    real hl = ends(mpfr_mul, a->hi, b->lo, a->hi, b->lo), hh = ends(mpfr_mul, a->hi, b->hi, a->hi, b->hi);
    return r_hull(r_hull(ll, lh), r_hull(hl, hh));
}

real r_div(real a, real b) { // by what is known to be > 0
    if (mpfr_sgn(b->lo) <= 0) return r_hull(r_number(-INFINITY), r_number(INFINITY));
    return ends(mpfr_div, a->lo, mpfr_sgn(a->lo) >= 0 ? b->hi : b->lo, a->hi, mpfr_sgn(a->hi) < 0 ? b->hi : b->lo);
}

real r_widen(real x, real by) { // by a share of `by` that is small at this precision
    struct real *d = r_zero();
    mpfr_mul_2si(d->hi, by->hi, 20 - run->precision, MPFR_RNDU);
    mpfr_neg(d->lo, d->hi, MPFR_RNDD);
    return r_add(x, d);
}

real r_end(real x, bool upper) {
    mpfr_srcptr end = upper ? x->hi : x->lo;
    return ends(mpfr_max, end, end, end, end);
}
