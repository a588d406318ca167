// Rotary embedding tables, the same bits on every machine.
//
// Frequencies are rounded correctly (MPFR); angles, sines and cosines are computed in double with IEEE operations and
// fma alone, no libm, and rounded to float once: at position n the angle is off by at most n * 2^-52, the table by that
// and half a float ulp. (float32 angles, as in the usual Python code, are off by up to n * 2^-24.)
#ifndef HM_DECODE_MODEL_ROPE_H
#define HM_DECODE_MODEL_ROPE_H

#include "base/error.h"
#include "decode/config.h"

#include <stddef.h>

// frequency [head_dim / 2], rescaled as the configuration says.
void hm_rope_frequencies(const struct hm_rope_config *config, size_t head_dim, double *frequency);

// Rows first .. first + count - 1 of the tables cosine and sine, [positions, pairs] both.
void hm_rope_fill(const double *frequency, size_t pairs, size_t first, size_t count, float *cosine, float *sine);

#endif
