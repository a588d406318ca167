// exp for softmax and SiLU: a fixed sequence of float32 operations, the same in scalar and vector code.
//
//   t = fma(x, 1/ln 2, 1.5 * 2^23)      its low bits are n, the nearest integer to x / ln 2
//   n = t - 1.5 * 2^23
//   r = fma(n, -low, fma(n, -high, x))  high + low = ln 2, n * high is exact: |r| < 0.347
//   p = 1 + (r + r^2 (c0 + c1 r + ... + c4 r^4))       Horner by fma
//   y = p * 2^(n >> 1) * 2^(n - (n >> 1))              exact, but for a subnormal result
//
// x is first brought into [-104, 89], where the result is already 0 and +inf. Error: below 1.01 ulp on every float32
// (measured on all of them by tests/test_kernels_exp.c).
#ifndef HM_KERNELS_CPU_EXP_H
#define HM_KERNELS_CPU_EXP_H

#define HM_EXP_LEAST (-104.0f)
#define HM_EXP_MOST 89.0f
#define HM_EXP_MAGIC 0x1.8p23f
#define HM_EXP_LOG2E 0x1.715476p+0f
#define HM_EXP_LN2_HIGH 0x1.62e4p-1f
#define HM_EXP_LN2_LOW 0x1.7f7d1cp-20f
// Minimax for (exp(r) - 1 - r) / r^2 on |r| <= 0.3468, relative error of exp 3.1e-9 before rounding.
#define HM_EXP_C0 0x1.fffffcp-2f
#define HM_EXP_C1 0x1.555492p-3f
#define HM_EXP_C2 0x1.5558f2p-5f
#define HM_EXP_C3 0x1.123a2p-7f
#define HM_EXP_C4 0x1.6a23dp-10f

#endif
