// The two ceilings of the machine, for stating speeds as shares of them. Measure them in the same run as the speeds:
// on a shared machine both move from minute to minute.
#ifndef HM_KERNELS_BENCH_H
#define HM_KERNELS_BENCH_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

// All threads of the device together, best of several short runs (about half a second in all):
// read_bytes_per_second: reading a buffer many times the size of a second-level cache, once from end to end;
// flops_per_second: float32 fused multiply-adds in registers with the device's instruction set, counted as two each.
// Either is 0 when memory for the buffer is short.
void hm_bench_ceilings(struct hm_device *cpu, double *read_bytes_per_second, double *flops_per_second);

#ifdef __cplusplus
}
#endif

#endif
