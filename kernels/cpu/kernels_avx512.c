// The kernels for AVX-512 (F, BW, DQ, VL). Compiled with those options, run only where device.c has found them.
#if defined(__x86_64__)
#define HM_LANES_AVX512
#define VECTOR_REGISTERS 32
#include "kernels/cpu/lane_kernels.h"

const struct hm_cpu_kernels hm_cpu_avx512 = HM_CPU_KERNELS("avx512", hm_matmul_panel_avx512);
#else
typedef int hm_no_avx512; // ISO C wants a declaration
#endif
