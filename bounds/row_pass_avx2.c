// The passes of row_pass.h for AVX2 and FMA.
#define HM_PACK_AVX2
#define HM_PASS_NAME avx2
#include "bounds/row_pass_lanes.h"
