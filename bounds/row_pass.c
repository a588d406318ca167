// Which instruction set the passes run on, and what a row's weights share: see row_pass.h.
#include "bounds/row_pass.h"

#include <math.h>
#include <mpfr.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

extern const struct hm_row_passes hm_row_passes_portable;
#ifdef HM_ROW_PASS_X86
extern const struct hm_row_passes hm_row_passes_avx2, hm_row_passes_avx512;
#endif

static const struct hm_row_passes *widest(void)
{
#ifdef HM_ROW_PASS_X86
    if (hm_row_passes_named("avx512")) return &hm_row_passes_avx512;
    if (hm_row_passes_named("avx2")) return &hm_row_passes_avx2;
#endif
    return &hm_row_passes_portable;
}

const struct hm_row_passes *hm_row_passes_named(const char *name)
{
#ifdef HM_ROW_PASS_X86
    bool fma = __builtin_cpu_supports("fma");
    if (fma && !strcmp(name, "avx512") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return &hm_row_passes_avx512;
    if (fma && !strcmp(name, "avx2") && __builtin_cpu_supports("avx2")) return &hm_row_passes_avx2;
#endif
    return strcmp(name, "portable") ? NULL : &hm_row_passes_portable;
}

// The variable is the kernels' (kernels/kernels.h), which refuse a wrong value; the bits are the same in any case.
const struct hm_row_passes *hm_row_passes(void)
{
    static _Atomic(const struct hm_row_passes *) chosen;
    const struct hm_row_passes *passes = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (passes) return passes;
    const char *wish = getenv("HALLMARK_ISA");
    passes = wish ? hm_row_passes_named(wish) : NULL;
    if (!passes) passes = widest();
    atomic_store_explicit(&chosen, passes, memory_order_relaxed);
    return passes;
}

double hm_lanes_fold(const struct hm_lanes *lanes)
{
    double sum[HM_LANES];
    memcpy(sum, lanes->at, sizeof sum);
    for (int width = HM_LANES / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++) sum[j] += sum[j + width];
    return sum[0];
}

// 1/T as a sum of two doubles: within 2^-106 of it, relative.
static void invert(mpq_srcptr temperature, double *high, double *low)
{
    mpfr_t value;
    mpfr_init2(value, 160);
    mpfr_set_q(value, temperature, MPFR_RNDN);
    mpfr_ui_div(value, 1, value, MPFR_RNDN);
    *high = mpfr_get_d(value, MPFR_RNDN);
    mpfr_sub_d(value, value, *high, MPFR_RNDN);
    *low = mpfr_get_d(value, MPFR_RNDN);
    mpfr_clear(value);
}

bool hm_weight_scale_set(struct hm_weight_scale *s, mpq_srcptr temperature, float top)
{
    invert(temperature, &s->inverse, &s->inverse_low);
    if (!(s->inverse >= 0x1p-64 && s->inverse <= 0x1p64)) return false;
    double far = (double)top * s->inverse;
    if (!(fabs(far) <= 0x1p25)) return false;
    s->log2 = s->inverse * 0x1.71547652b82fep+0;
    s->top = top;
    s->shifted = far * 0x1.71547652b82fep+0 + 0x1.8p52;
    double shift = s->shifted - 0x1.8p52;
    s->floor = (shift - 990) * 0x1.62e42fefa39efp-1 / s->inverse; // k is at least shift - 991 from here on
    return true;
}

bool hm_spreads_exact(struct hm_spread a, struct hm_spread b)
{
    uint32_t largest = a.largest > b.largest ? a.largest : b.largest, least = a.least < b.least ? a.least : b.least;
    if (least == UINT32_MAX) return true; // zeros only
    int high = (int)(largest >> 23), low = (int)((least + 1) >> 23);
    return high - (low > 0 ? low : 1) <= 28; // a difference is below 2^(high + 2), a multiple of 2^(low - 23)
}
