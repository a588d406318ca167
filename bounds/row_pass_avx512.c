// The passes of row_pass.h for AVX-512.
#define HM_PACK_AVX512
#define HM_PASS_NAME avx512
#include "bounds/row_pass_lanes.h"
