// Weights of a row in double, with a proved error: the arithmetic of the filter (docs/theory.md §8, docs/filter.md).
//
// Plain multiplications and additions in a fixed order: the same bits on every instruction set, no C library.
#ifndef HM_BOUNDS_EXP_FILTER_H
#define HM_BOUNDS_EXP_FILTER_H

#include <gmp.h>
#include <stdbool.h>
#include <stddef.h>

// A weight w = exp(-(top - logit)/T) and what hm_exp_filter makes of it, v, differ by at most
// v * HM_EXP_FILTER_ERROR, or by HM_EXP_FILTER_REMOTE where the token is HM_EXP_FILTER_REACH nats or more below the top
// and v the weight at that distance, which is below 2^-92 (docs/filter.md, "One weight").
#define HM_EXP_FILTER_ERROR 0x1p-44
#define HM_EXP_FILTER_REMOTE 0x1p-92
#define HM_EXP_FILTER_REACH 64.0

// 1/T rounded to nearest, for T > 0. False, and the filter does not apply, when 1/T is not in [2^-500, 2^500].
bool hm_exp_filter_inverse(mpq_srcptr temperature, double *inverse);

// The weights [count] of logits, finite or -inf, none above top. Cost: about 3 ns a logit on SSE2.
void hm_exp_filter(const float *logits, size_t count, float top, double inverse, double *weights);

#endif
