// Exponentials in fixed point, for whole rows at a time: 2^-x to 106 bits after the point in some 30 ns, with a proved
// error, where MPFR takes microseconds.
//
// A *weight* w stands for the reals in [w, w + 2) 2^-106; a *depth* is a distance between logits, an exact multiple of
// 2^-60. Sums of weights are exact sums of integers: n of them are short by less than 2n units.
#ifndef HM_CERTIFY_CHECK_FIXED_H
#define HM_CERTIFY_CHECK_FIXED_H

#include <gmp.h>
#include <mpfr.h>
#include <stdbool.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 ck_u128;
__extension__ typedef __int128 ck_i128;

enum { CK_UNIT = 106, CK_DEPTH = 60 }; // bits after the point of weights and depths

struct ck_wide { // 256 bits
    ck_u128 low, high;
};

// exp(-depth * factor) for rational factors: what multiplies a depth, prepared once.
struct ck_scale {
    ck_u128 mantissa; // log2(e) * factor, rounded up
    int shift;        // bits to drop from depth * mantissa to have 108 after the point
};

void ck_scale_set(struct ck_scale *scale, mpq_srcptr factor); // factor > 0
ck_u128 ck_weight_at(const struct ck_scale *scale, ck_u128 depth);
bool ck_is_regular(float logit); // finite, below 2^20 and a multiple of 2^-60
ck_i128 ck_exact(float logit);   // a regular logit times 2^60
void ck_wide_add_product(struct ck_wide *sum, ck_u128 a, ck_u128 b);
void ck_set_unsigned(mpfr_t r, ck_u128 n, long exponent, mpfr_rnd_t round); // n 2^exponent
void ck_set_signed(mpfr_t r, ck_i128 n, long exponent, mpfr_rnd_t round);
void ck_set_wide(mpfr_t r, struct ck_wide n, long exponent, mpfr_rnd_t round);

#endif
