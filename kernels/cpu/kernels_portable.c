// The kernels in plain C, for machines and compilers without the vector forms, and for comparison.
#define VECTOR_REGISTERS 16
#include "kernels/cpu/lane_kernels.h"

const struct hm_cpu_kernels hm_cpu_portable = HM_CPU_KERNELS("portable", hm_matmul_panel_portable);
