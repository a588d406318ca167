// The kernels for AVX2 with FMA and F16C. Compiled with -mavx2 -mfma -mf16c, run only where device.c has found them.
#if defined(__x86_64__)
#define HM_LANES_AVX2
#define VECTOR_REGISTERS 16
#include "kernels/cpu/lane_kernels.h"

const struct hm_cpu_kernels hm_cpu_avx2 = HM_CPU_KERNELS("avx2", hm_matmul_panel_avx2);
#else
typedef int hm_no_avx2; // ISO C wants a declaration
#endif
