// exp in double for the filter: see exp_filter.h. Each step's error is bounded in docs/filter.md, "One weight".
#include "bounds/exp_filter.h"

#include <float.h>
#include <mpfr.h>
#include <stdint.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0 && DBL_MANT_DIG == 53, "the error bounds are those of IEEE doubles");

// ln 2 = ln2_high + ln2_low to 2^-85; ln2_high has 32 bits, so that its multiples by up to 2^21 are exact.
static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
static const double inverse_ln2 = 0x1.71547652b82fep+0;

// Adding 1.5 * 2^52 rounds to an integer and leaves it, in two's complement, in the low bits.
static const double rounder = 0x1.8p52;

bool hm_exp_filter_inverse(mpq_srcptr temperature, double *inverse)
{
    mpq_t q;
    mpfr_t value;
    mpq_init(q);
    mpq_inv(q, temperature);
    mpfr_init2(value, 53);
    mpfr_set_q(value, q, MPFR_RNDN);
    *inverse = mpfr_get_d(value, MPFR_RNDN);
    mpfr_clear(value);
    mpq_clear(q);
    return *inverse >= 0x1p-500 && *inverse <= 0x1p500;
}

// exp(-t) for 0 <= t <= HM_EXP_FILTER_REACH: 2^k times the Taylor polynomial of degree 12 at |r| <= 0.3467.
static inline double exp_negative(double t)
{
    double shifted = rounder - t * inverse_ln2;
    double k = shifted - rounder;
    double r = (-t - k * ln2_high) - k * ln2_low;
    double y = 1.0 / 479001600;
    y = y * r + 1.0 / 39916800;
    y = y * r + 1.0 / 3628800;
    y = y * r + 1.0 / 362880;
    y = y * r + 1.0 / 40320;
    y = y * r + 1.0 / 5040;
    y = y * r + 1.0 / 720;
    y = y * r + 1.0 / 120;
    y = y * r + 1.0 / 24;
    y = y * r + 1.0 / 6;
    y = y * r + 0.5;
    y = y * r + 1.0;
    y = y * r + 1.0;
    uint64_t bits, scale;
    memcpy(&bits, &y, sizeof bits);
    memcpy(&scale, &shifted, sizeof scale);
    bits += scale << 52;
    memcpy(&y, &bits, sizeof y);
    return y;
}

void hm_exp_filter(const float *logits, size_t count, float top, double inverse, double *weights)
{
    enum { BLOCK = 128 }; // two loops without a branch, which compilers vectorise; together gcc keeps the branch
    double t[BLOCK];
    for (size_t start = 0; start < count; start += BLOCK) {
        size_t n = count - start < BLOCK ? count - start : BLOCK;
        for (size_t i = 0; i < n; i++) {
            double far = ((double)top - (double)logits[start + i]) * inverse; // +inf for a logit of -inf
            t[i] = far > HM_EXP_FILTER_REACH ? HM_EXP_FILTER_REACH : far;
        }
        for (size_t i = 0; i < n; i++) weights[start + i] = exp_negative(t[i]);
    }
}
