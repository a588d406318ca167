// Real intervals, rounded outward: the result of each function holds its every value on its arguments' points, at the
// precision of the attempt at hand. What cannot be said is the whole line; NaN never leaves this file. Intervals live
// on a stack and are forgotten by setting run->used back.
#include "parts.h"

static void *allocate(size_t size) {
    need(size < ROOM - run->used - 16, "memory");
    run->used += (size + 15) & ~(size_t)15;
    return run->stack + run->used - ((size + 15) & ~(size_t)15);
}

static void place(struct real *x, char *limbs) { // gives a number its limbs: two of these sizes
    mpfr_custom_init_set(x->lo, MPFR_ZERO_KIND, 0, run->precision, limbs);
    mpfr_custom_init_set(x->hi, MPFR_ZERO_KIND, 0, run->precision, limbs + mpfr_custom_get_size(run->precision));
}

static struct real *r_zero(void) {
    struct real *x = allocate(sizeof *x + 2 * mpfr_custom_get_size(run->precision));
    place(x, (char *)(x + 1));
    return x;
}

static real known(struct real *x) {
    if (!mpfr_nan_p(x->lo) && !mpfr_nan_p(x->hi)) return x;
    mpfr_set_inf(x->lo, -1);
    mpfr_set_inf(x->hi, 1);
    return x;
}

// Defines a function of intervals by the lower end and the upper end of its result.
// clang-format off
#define DOWN MPFR_RNDD
#define UP MPFR_RNDU
#define REAL(head, lower, upper) static real head { struct real *x = r_zero(); lower; upper; return known(x); }
REAL(r_rational(mpq_srcptr q), mpfr_set_q(x->lo, q, DOWN), mpfr_set_q(x->hi, q, UP))
REAL(r_integer(mpz_srcptr z), mpfr_set_z(x->lo, z, DOWN), mpfr_set_z(x->hi, z, UP))
REAL(r_number(double d), mpfr_set_d(x->lo, d, DOWN), mpfr_set_d(x->hi, d, UP)) // a double is exact at every precision
REAL(r_power(size_t n, size_t m), mpfr_ui_pow_ui(x->lo, n, m, DOWN), mpfr_ui_pow_ui(x->hi, n, m, UP))
REAL(r_add(real a, real b), mpfr_add(x->lo, a->lo, b->lo, DOWN), mpfr_add(x->hi, a->hi, b->hi, UP))
REAL(r_sub(real a, real b), mpfr_sub(x->lo, a->lo, b->hi, DOWN), mpfr_sub(x->hi, a->hi, b->lo, UP))
REAL(r_min(real a, real b), mpfr_min(x->lo, a->lo, b->lo, DOWN), mpfr_min(x->hi, a->hi, b->hi, UP))
REAL(r_max(real a, real b), mpfr_max(x->lo, a->lo, b->lo, DOWN), mpfr_max(x->hi, a->hi, b->hi, UP))
REAL(r_hull(real a, real b), mpfr_min(x->lo, a->lo, b->lo, DOWN), mpfr_max(x->hi, a->hi, b->hi, UP))
REAL(r_scaled(real a, long n), mpfr_mul_2si(x->lo, a->lo, n, DOWN), mpfr_mul_2si(x->hi, a->hi, n, UP)) // by 2^n
REAL(r_exp(real a), mpfr_exp(x->lo, a->lo, DOWN), mpfr_exp(x->hi, a->hi, UP))
REAL(r_log_of(real a), mpfr_log(x->lo, a->lo, DOWN), mpfr_log(x->hi, a->hi, UP))
REAL(r_ends(mpfr_srcptr a, mpfr_srcptr b), mpfr_set(x->lo, a, DOWN), mpfr_set(x->hi, b, UP))
REAL(r_corner(mpfr_srcptr a, mpfr_srcptr b), mpfr_mul(x->lo, a, b, DOWN), mpfr_mul(x->hi, a, b, UP))
REAL(r_product(real a, real b), mpfr_mul(x->lo, a->lo, b->lo, DOWN), mpfr_mul(x->hi, a->hi, b->hi, UP)) // both >= 0
REAL(r_quotient(real a, mpfr_srcptr b, mpfr_srcptr c), mpfr_div(x->lo, a->lo, b, DOWN), mpfr_div(x->hi, a->hi, c, UP))
// clang-format on

static real r_mul(real a, real b) {
    if (mpfr_sgn(a->lo) >= 0 && mpfr_sgn(b->lo) >= 0) return r_product(a, b);
    real one = r_hull(r_corner(a->lo, b->lo), r_corner(a->lo, b->hi));
    return r_hull(one, r_hull(r_corner(a->hi, b->lo), r_corner(a->hi, b->hi)));
}

static real r_div(real a, real b) { // by what is known to be > 0
    if (mpfr_sgn(b->lo) <= 0) return r_hull(r_number(-INFINITY), r_number(INFINITY));
    return r_quotient(a, mpfr_sgn(a->lo) >= 0 ? b->hi : b->lo, mpfr_sgn(a->hi) < 0 ? b->hi : b->lo);
}

static void r_copy(struct real *to, real x) {
    mpfr_set(to->lo, x->lo, MPFR_RNDD);
    mpfr_set(to->hi, x->hi, MPFR_RNDU);
}

static real r_negative(real a) { return r_sub(r_number(0), a); }
static real r_positive(real a) { return r_max(a, r_number(0)); } // x^+, and for what is known to be >= 0
static real r_log(real a) { return r_log_of(r_positive(a)); }    // of what is known to be >= 0
static real r_times(real a, size_t n) { return r_mul(a, r_number((double)n)); }
static real r_over(real a, size_t n) { return r_div(a, r_number((double)n)); }
static real r_low(real x) { return r_ends(x->lo, x->lo); }
static real r_high(real x) { return r_ends(x->hi, x->hi); }
static bool r_same(real a, real b) { return mpfr_equal_p(a->lo, b->lo) && mpfr_equal_p(a->hi, b->hi); }
static bool r_is(real a, double x) { return r_same(a, r_number(x)); } // exactly
