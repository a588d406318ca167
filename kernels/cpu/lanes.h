// Sixteen float32 lanes: one AVX-512 register, two AVX2 registers or an array, whatever the file is compiled for.
// Each operation is elementwise and correctly rounded, so code written with it gives the same bits everywhere.
// Included by lane_kernels.h alone; each of its files has its own copy of these static functions.
#ifndef HM_KERNELS_CPU_LANES_H
#define HM_KERNELS_CPU_LANES_H

#include "kernels/cpu/exp.h"

#include <stddef.h>
#include <stdint.h>

#if defined(HM_LANES_AVX512) || defined(HM_LANES_AVX2)
#define INLINE static inline __attribute__((always_inline)) // accumulators must stay in registers
#else
#define INLINE static inline
#endif

#if defined(HM_LANES_AVX512)

#include <immintrin.h>

typedef __m512 lanes;

// clang-format off
INLINE lanes lanes_set(float x) { return _mm512_set1_ps(x); }
INLINE lanes lanes_load(const float *x) { return _mm512_loadu_ps(x); }
INLINE void lanes_store(float *y, lanes x) { _mm512_storeu_ps(y, x); }
INLINE lanes lanes_add(lanes a, lanes b) { return _mm512_add_ps(a, b); }
INLINE lanes lanes_sub(lanes a, lanes b) { return _mm512_sub_ps(a, b); }
INLINE lanes lanes_mul(lanes a, lanes b) { return _mm512_mul_ps(a, b); }
INLINE lanes lanes_div(lanes a, lanes b) { return _mm512_div_ps(a, b); }
INLINE lanes lanes_max(lanes a, lanes b) { return _mm512_max_ps(a, b); } // a > b ? a : b
INLINE lanes lanes_min(lanes a, lanes b) { return _mm512_min_ps(a, b); } // a < b ? a : b
INLINE lanes lanes_fma(lanes a, lanes b, lanes c) { return _mm512_fmadd_ps(a, b, c); }
// clang-format on

// p * 2^n for t = n + HM_EXP_MAGIC, in two steps (exp.h).
INLINE lanes lanes_scale(lanes p, lanes t)
{
    __m512i power = _mm512_sub_epi32(_mm512_castps_si512(t), _mm512_castps_si512(_mm512_set1_ps(HM_EXP_MAGIC)));
    __m512i first = _mm512_srai_epi32(power, 1), second = _mm512_sub_epi32(power, first), bias = _mm512_set1_epi32(127);
    p = _mm512_mul_ps(p, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(first, bias), 23)));
    return _mm512_mul_ps(p, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(second, bias), 23)));
}

// Lane p of the result is lanes p of `of` folded in halves. Each step adds halves of two vectors at once.
INLINE lanes lanes_fold16(const lanes of[16])
{
    __m512 half[8], quarter[4], pair[2];
    for (int i = 0; i < 8; i++) { // i: m of the pair (m, 4 + m), or of (8 + m, 12 + m) for odd i
        int m = i / 2 + i % 2 * 8;
        half[i] =
            _mm512_add_ps(_mm512_shuffle_f32x4(of[m], of[m + 4], 0x44), _mm512_shuffle_f32x4(of[m], of[m + 4], 0xEE));
    }
    for (int m = 0; m < 4; m++)
        quarter[m] = _mm512_add_ps(_mm512_shuffle_f32x4(half[2 * m], half[2 * m + 1], 0x88),
                                   _mm512_shuffle_f32x4(half[2 * m], half[2 * m + 1], 0xDD));
    for (int i = 0; i < 2; i++)
        pair[i] = _mm512_add_ps(_mm512_shuffle_ps(quarter[2 * i], quarter[2 * i + 1], 0x44),
                                _mm512_shuffle_ps(quarter[2 * i], quarter[2 * i + 1], 0xEE));
    return _mm512_add_ps(_mm512_shuffle_ps(pair[0], pair[1], 0x88), _mm512_shuffle_ps(pair[0], pair[1], 0xDD));
}

#elif defined(HM_LANES_AVX2)

#include <immintrin.h>

typedef struct {
    __m256 low, high;
} lanes;

// clang-format off
INLINE lanes lanes_set(float x) { return (lanes){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
INLINE lanes lanes_load(const float *x) { return (lanes){_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8)}; }
INLINE void lanes_store(float *y, lanes x)
{
    _mm256_storeu_ps(y, x.low);
    _mm256_storeu_ps(y + 8, x.high);
}
INLINE lanes lanes_add(lanes a, lanes b) { return (lanes){_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
INLINE lanes lanes_sub(lanes a, lanes b) { return (lanes){_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
INLINE lanes lanes_mul(lanes a, lanes b) { return (lanes){_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
INLINE lanes lanes_div(lanes a, lanes b) { return (lanes){_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
INLINE lanes lanes_max(lanes a, lanes b) { return (lanes){_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
INLINE lanes lanes_min(lanes a, lanes b) { return (lanes){_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)}; }
INLINE lanes lanes_fma(lanes a, lanes b, lanes c)
{
    return (lanes){_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
// clang-format on

INLINE __m256 scale_half(__m256 p, __m256 t)
{
    __m256i power = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_castps_si256(_mm256_set1_ps(HM_EXP_MAGIC)));
    __m256i first = _mm256_srai_epi32(power, 1), second = _mm256_sub_epi32(power, first), bias = _mm256_set1_epi32(127);
    p = _mm256_mul_ps(p, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(first, bias), 23)));
    return _mm256_mul_ps(p, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(second, bias), 23)));
}

// p * 2^n for t = n + HM_EXP_MAGIC, in two steps (exp.h).
INLINE lanes lanes_scale(lanes p, lanes t)
{
    return (lanes){scale_half(p.low, t.low), scale_half(p.high, t.high)};
}

// Folds eight vectors whose halves have been added: lane p of the result is vector p of `of`, folded.
INLINE __m256 fold8(const lanes *of)
{
    __m256 quarter[4], pair[2];
    for (int m = 0; m < 4; m++) {
        __m256 a = _mm256_add_ps(of[m].low, of[m].high), b = _mm256_add_ps(of[m + 4].low, of[m + 4].high);
        quarter[m] = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    }
    for (int i = 0; i < 2; i++)
        pair[i] = _mm256_add_ps(_mm256_shuffle_ps(quarter[2 * i], quarter[2 * i + 1], 0x44),
                                _mm256_shuffle_ps(quarter[2 * i], quarter[2 * i + 1], 0xEE));
    return _mm256_add_ps(_mm256_shuffle_ps(pair[0], pair[1], 0x88), _mm256_shuffle_ps(pair[0], pair[1], 0xDD));
}

INLINE lanes lanes_fold16(const lanes of[16])
{
    return (lanes){fold8(of), fold8(of + 8)};
}

#else

#include "kernels/cpu/widen.h"

#include <math.h>

typedef struct {
    float at[16];
} lanes;

#define EACH_LANE(expression)                                                                                          \
    lanes result;                                                                                                      \
    for (int i = 0; i < 16; i++) result.at[i] = (expression);                                                          \
    return result

// clang-format off
INLINE lanes lanes_set(float x) { EACH_LANE(x); }
INLINE lanes lanes_load(const float *x) { EACH_LANE(x[i]); }
INLINE void lanes_store(float *y, lanes x)
{
    for (int i = 0; i < 16; i++) y[i] = x.at[i];
}
INLINE lanes lanes_add(lanes a, lanes b) { EACH_LANE(a.at[i] + b.at[i]); }
INLINE lanes lanes_sub(lanes a, lanes b) { EACH_LANE(a.at[i] - b.at[i]); }
INLINE lanes lanes_mul(lanes a, lanes b) { EACH_LANE(a.at[i] * b.at[i]); }
INLINE lanes lanes_div(lanes a, lanes b) { EACH_LANE(a.at[i] / b.at[i]); }
INLINE lanes lanes_max(lanes a, lanes b) { EACH_LANE(a.at[i] > b.at[i] ? a.at[i] : b.at[i]); }
INLINE lanes lanes_min(lanes a, lanes b) { EACH_LANE(a.at[i] < b.at[i] ? a.at[i] : b.at[i]); }
INLINE lanes lanes_fma(lanes a, lanes b, lanes c) { EACH_LANE(fmaf(a.at[i], b.at[i], c.at[i])); }
// clang-format on

// p * 2^n for t = n + HM_EXP_MAGIC, in two steps (exp.h).
INLINE lanes lanes_scale(lanes p, lanes t)
{
    for (int i = 0; i < 16; i++) {
        int32_t power = (int32_t)(hm_float_bits(t.at[i]) - hm_float_bits(HM_EXP_MAGIC));
        int32_t first = power >> 1, second = power - first;
        p.at[i] *= hm_float_from_bits((uint32_t)(first + 127) << 23);
        p.at[i] *= hm_float_from_bits((uint32_t)(second + 127) << 23);
    }
    return p;
}

// Lane p of the result is lanes p of `of` folded in halves.
INLINE lanes lanes_fold16(const lanes of[16])
{
    lanes result;
    for (int p = 0; p < 16; p++) {
        lanes sum = of[p];
        for (int half = 8; half > 0; half /= 2)
            for (int i = 0; i < half; i++) sum.at[i] = sum.at[i] + sum.at[i + half];
        result.at[p] = sum.at[0];
    }
    return result;
}

#endif

// exp of each lane (exp.h): ten fused multiply-adds and six other operations.
INLINE lanes lanes_exp(lanes x)
{
    x = lanes_min(lanes_set(HM_EXP_MOST), lanes_max(lanes_set(HM_EXP_LEAST), x)); // in this order a NaN stays
    lanes t = lanes_fma(x, lanes_set(HM_EXP_LOG2E), lanes_set(HM_EXP_MAGIC));
    lanes n = lanes_sub(t, lanes_set(HM_EXP_MAGIC));
    lanes r = lanes_fma(n, lanes_set(-HM_EXP_LN2_LOW), lanes_fma(n, lanes_set(-HM_EXP_LN2_HIGH), x));
    lanes p = lanes_fma(lanes_set(HM_EXP_C4), r, lanes_set(HM_EXP_C3));
    p = lanes_fma(p, r, lanes_set(HM_EXP_C2));
    p = lanes_fma(p, r, lanes_set(HM_EXP_C1));
    p = lanes_fma(p, r, lanes_set(HM_EXP_C0));
    p = lanes_add(lanes_fma(p, lanes_mul(r, r), r), lanes_set(1.0f));
    return lanes_scale(p, t);
}

// The sum of the lanes, folded in halves.
INLINE float lanes_fold(lanes x)
{
    float sum[16];
    lanes_store(sum, x);
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) sum[i] = sum[i] + sum[i + half];
    return sum[0];
}

#endif
