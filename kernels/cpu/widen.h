// Exact widening of stored weights to float32. Reads through memcpy: a file mapping need not be aligned.
#ifndef HM_KERNELS_CPU_WIDEN_H
#define HM_KERNELS_CPU_WIDEN_H

#include "kernels/kernels.h"

#include <string.h>

static inline float hm_float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t hm_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float hm_widen_bf16(uint16_t half)
{
    return hm_float_from_bits((uint32_t)half << 16);
}

// IEEE binary16. A subnormal is its integer fraction times 2^-24, which float32 holds exactly.
static inline float hm_widen_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = (half >> 10) & 31u, fraction = half & 0x3FFu;
    if (exponent == 31) {
        uint32_t quiet = fraction ? 0x400000u : 0; // as VCVTPH2PS does to a signalling NaN
        return hm_float_from_bits(sign | 0x7F800000u | quiet | fraction << 13);
    }
    if (exponent == 0) return hm_float_from_bits(sign | hm_float_bits((float)fraction * 0x1p-24f));
    return hm_float_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

// Element `index` of an array of the dtype.
static inline float hm_widen(enum hm_dtype dtype, const void *from, size_t index)
{
    const unsigned char *bytes = from;
    if (dtype == HM_F32) {
        float value;
        memcpy(&value, bytes + 4 * index, sizeof value);
        return value;
    }
    uint16_t half;
    memcpy(&half, bytes + 2 * index, sizeof half);
    return dtype == HM_BF16 ? hm_widen_bf16(half) : hm_widen_f16(half);
}

#endif
