// A pack of doubles: one register of the instruction set that the including file is compiled for, or a single double.
// Every operation is elementwise and correctly rounded, so code written with packs gives the same bits whatever their
// width.
#ifndef HM_BOUNDS_ROW_PASS_PACK_H
#define HM_BOUNDS_ROW_PASS_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// clang-format off
#if defined(HM_PACK_AVX512)
#include <immintrin.h>
enum { PACK = 8 };
typedef __m512d pack;
#define INLINE static inline __attribute__((always_inline))
INLINE pack pack_set(double x) { return _mm512_set1_pd(x); }
INLINE pack pack_load(const double *x) { return _mm512_loadu_pd(x); }
INLINE pack pack_widen(const float *x) { return _mm512_cvtps_pd(_mm256_loadu_ps(x)); }
INLINE void pack_store(double *y, pack x) { _mm512_storeu_pd(y, x); }
INLINE pack pack_add(pack a, pack b) { return _mm512_add_pd(a, b); }
INLINE pack pack_sub(pack a, pack b) { return _mm512_sub_pd(a, b); }
INLINE pack pack_mul(pack a, pack b) { return _mm512_mul_pd(a, b); }
INLINE pack pack_max(pack a, pack b) { return _mm512_max_pd(a, b); }
INLINE pack pack_abs(pack a) { return _mm512_abs_pd(a); }
INLINE pack pack_fma(pack a, pack b, pack c) { return _mm512_fmadd_pd(a, b, c); }
INLINE pack pack_fms(pack a, pack b, pack c) { return _mm512_fmsub_pd(a, b, c); }
INLINE pack pack_fnma(pack a, pack b, pack c) { return _mm512_fnmadd_pd(a, b, c); }
INLINE pack pack_choose(pack a, pack b, pack yes, pack no)
{
    return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_LE_OQ), no, yes);
}
INLINE pack pack_scale(pack x, pack power, pack base)
{
    __m512i n = _mm512_sub_epi64(_mm512_castpd_si512(power), _mm512_castpd_si512(base));
    return _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(x), _mm512_slli_epi64(n, 52)));
}
INLINE size_t look_block(const float *l, float *most, bool *bad)
{
    __m512 best = _mm512_loadu_ps(l), top = _mm512_set1_ps(__builtin_inff()), bottom = _mm512_set1_ps(-__builtin_inff());
    size_t finite = 0;
    unsigned good = 0xffff;
    for (int i = 0; i < 64; i += 16) {
        __m512 x = _mm512_loadu_ps(l + i);
        best = _mm512_max_ps(x, best);
        good &= _mm512_cmp_ps_mask(x, top, _CMP_LT_OQ);
        finite += (size_t)__builtin_popcount(_mm512_cmp_ps_mask(x, bottom, _CMP_GT_OQ));
    }
    *most = _mm512_reduce_max_ps(best);
    *bad |= good != 0xffff;
    return finite;
}
#elif defined(HM_PACK_AVX2)
#include <immintrin.h>
enum { PACK = 4 };
typedef __m256d pack;
#define INLINE static inline __attribute__((always_inline))
INLINE pack pack_set(double x) { return _mm256_set1_pd(x); }
INLINE pack pack_load(const double *x) { return _mm256_loadu_pd(x); }
INLINE pack pack_widen(const float *x) { return _mm256_cvtps_pd(_mm_loadu_ps(x)); }
INLINE void pack_store(double *y, pack x) { _mm256_storeu_pd(y, x); }
INLINE pack pack_add(pack a, pack b) { return _mm256_add_pd(a, b); }
INLINE pack pack_sub(pack a, pack b) { return _mm256_sub_pd(a, b); }
INLINE pack pack_mul(pack a, pack b) { return _mm256_mul_pd(a, b); }
INLINE pack pack_max(pack a, pack b) { return _mm256_max_pd(a, b); }
INLINE pack pack_abs(pack a) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), a); }
INLINE pack pack_fma(pack a, pack b, pack c) { return _mm256_fmadd_pd(a, b, c); }
INLINE pack pack_fms(pack a, pack b, pack c) { return _mm256_fmsub_pd(a, b, c); }
INLINE pack pack_fnma(pack a, pack b, pack c) { return _mm256_fnmadd_pd(a, b, c); }
INLINE pack pack_choose(pack a, pack b, pack yes, pack no)
{
    return _mm256_blendv_pd(no, yes, _mm256_cmp_pd(a, b, _CMP_LE_OQ));
}
INLINE pack pack_scale(pack x, pack power, pack base)
{
    __m256i n = _mm256_sub_epi64(_mm256_castpd_si256(power), _mm256_castpd_si256(base));
    return _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(x), _mm256_slli_epi64(n, 52)));
}
INLINE size_t look_block(const float *l, float *most, bool *bad)
{
    __m256 best = _mm256_loadu_ps(l), top = _mm256_set1_ps(__builtin_inff()), bottom = _mm256_set1_ps(-__builtin_inff());
    __m256 good = _mm256_cmp_ps(bottom, top, _CMP_LT_OQ);
    __m256i finite = _mm256_setzero_si256();
    for (int i = 0; i < 64; i += 8) {
        __m256 x = _mm256_loadu_ps(l + i);
        best = _mm256_max_ps(x, best);
        good = _mm256_and_ps(good, _mm256_cmp_ps(x, top, _CMP_LT_OQ));
        finite = _mm256_sub_epi32(finite, _mm256_castps_si256(_mm256_cmp_ps(x, bottom, _CMP_GT_OQ)));
    }
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(best), _mm256_extractf128_ps(best, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    *most = _mm_cvtss_f32(_mm_max_ss(half, _mm_shuffle_ps(half, half, 1)));
    *bad |= _mm256_movemask_ps(good) != 0xff;
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(finite), _mm256_extracti128_si256(finite, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return (size_t)_mm_cvtsi128_si32(four) + (size_t)_mm_extract_epi32(four, 1);
}
#else
enum { PACK = 1 };
typedef double pack;
#define INLINE static inline
INLINE pack pack_set(double x) { return x; }
INLINE pack pack_load(const double *x) { return *x; }
INLINE pack pack_widen(const float *x) { return (double)*x; }
INLINE void pack_store(double *y, pack x) { *y = x; }
INLINE pack pack_add(pack a, pack b) { return a + b; }
INLINE pack pack_sub(pack a, pack b) { return a - b; }
INLINE pack pack_mul(pack a, pack b) { return a * b; }
INLINE pack pack_max(pack a, pack b) { return a > b ? a : b; }
INLINE pack pack_abs(pack a) { return __builtin_fabs(a); }
INLINE pack pack_fma(pack a, pack b, pack c) { return __builtin_fma(a, b, c); }  // a b + c, rounded once
INLINE pack pack_fms(pack a, pack b, pack c) { return __builtin_fma(a, b, -c); } // a b - c
INLINE pack pack_fnma(pack a, pack b, pack c) { return __builtin_fma(-a, b, c); } // c - a b
INLINE pack pack_choose(pack a, pack b, pack yes, pack no) { return a <= b ? yes : no; }
// x 2^n, where power - base = n are integers held as 1.5 * 2^52 + n; x and the result are normal.
INLINE pack pack_scale(pack x, pack power, pack base)
{
    uint64_t bits, p, b;
    memcpy(&bits, &x, sizeof bits);
    memcpy(&p, &power, sizeof p);
    memcpy(&b, &base, sizeof b);
    bits += (p - b) << 52;
    memcpy(&x, &bits, sizeof x);
    return x;
}
// Of 64 logits: the largest, how many are above -inf, and whether one is NaN or +inf (the rest is of no use then).
INLINE size_t look_block(const float *l, float *most, bool *bad)
{
    size_t finite = 0;
    *most = -__builtin_inff();
    for (int i = 0; i < 64; i++) {
        if (l[i] > *most) *most = l[i];
        finite += l[i] > -__builtin_inff();
        *bad |= !(l[i] < __builtin_inff());
    }
    return finite;
}
#endif
// clang-format on

#endif
