// The plain version of every kernel: scalar C, one obvious loop per line of the contract in kernels.h. Tests compare
// every instruction set with these, bit for bit. Weights are row-major here, caches are plain arrays.
#ifndef HM_KERNELS_CPU_REFERENCE_H
#define HM_KERNELS_CPU_REFERENCE_H

#include "kernels/kernels.h"

// Our exp (exp.h), and the sum of 16 lanes folded in halves: i with i + 8, then + 4, + 2, + 1.
float hm_reference_exp(float x);
float hm_reference_fold(const float lanes[16]);

// weights: [outputs, inputs] of the dtype, as in a checkpoint.  Cost: 2*rows*outputs*inputs flops.
void hm_reference_matmul(const void *weights, enum hm_dtype dtype, size_t outputs, size_t inputs, const float *x,
                         float *y, size_t rows);
void hm_reference_matmul_add(const void *weights, enum hm_dtype dtype, size_t outputs, size_t inputs, const float *x,
                             float *y, size_t rows);

void hm_reference_rms_norm(const float *x, const float *gain, float *y, size_t width, float eps); // one row
void hm_reference_rope(const float *cosine, const float *sine, float *head, size_t half);         // one head
void hm_reference_silu_mul(const float *gate, const float *up, float *y, size_t width);           // one row

// One row, all heads.  score: at least prefix + tail_length floats of the caller's.
void hm_reference_attention(const struct hm_attention_shape *shape, const struct hm_visible *visible, const float *q,
                            const float *keys, const float *values, float *out, float *score);

#endif
