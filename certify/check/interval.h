// Real intervals on MPFR, rounded outward: every function's result encloses the true value for all points of its
// arguments. The precision is that of the result. Infinite ends are allowed; a NaN becomes the whole line.
#ifndef HM_CERTIFY_CHECK_INTERVAL_H
#define HM_CERTIFY_CHECK_INTERVAL_H

#include <gmp.h>
#include <mpfr.h>
#include <stddef.h>

struct iv {
    mpfr_t lo, hi;
};

enum answer { NO, YES, OPEN };

void iv_inits(struct iv *x, size_t count, mpfr_prec_t precision); // an array of intervals, all [0, 0]
void iv_clears(struct iv *x, size_t count);
void iv_set(struct iv *r, const struct iv *x);
void iv_point(struct iv *r, double x);
void iv_add(struct iv *r, const struct iv *a, const struct iv *b);
void iv_sub(struct iv *r, const struct iv *a, const struct iv *b);
void iv_mul(struct iv *r, const struct iv *a, const struct iv *b);
void iv_div(struct iv *r, const struct iv *a, const struct iv *b); // b must be positive
void iv_scale(struct iv *r, const struct iv *a, unsigned long n);
void iv_divide(struct iv *r, const struct iv *a, unsigned long n); // n > 0
void iv_mul_q(struct iv *r, const struct iv *a, mpq_srcptr q);     // any sign of a, q >= 0
void iv_scale_q(struct iv *r, const struct iv *a, mpq_srcptr q);   // q of any sign
void iv_set_q(struct iv *r, mpq_srcptr q);
void iv_exp(struct iv *r, const struct iv *a);
void iv_log(struct iv *r, const struct iv *a);   // of a value known to be >= 0
void iv_expm1(struct iv *r, const struct iv *a); // exp(a) - 1
void iv_negate(struct iv *r);
void iv_min(struct iv *r, const struct iv *a); // the smaller of r and a
void iv_positive(struct iv *r);                // intersects with [0, inf): for values known to be >= 0, and for x^+
void iv_at_most_one(struct iv *r);             // intersects with (-inf, 1]: for values known to be <= 1
enum answer iv_less(const struct iv *a, const struct iv *b);     // a < b
enum answer iv_at_least(const struct iv *a, const struct iv *b); // a >= b

#endif
