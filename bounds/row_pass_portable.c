// The passes of row_pass.h for the instructions that every machine has (fused multiply-adds may be calls).
#define HM_PASS_NAME portable
#include "bounds/row_pass_lanes.h"
