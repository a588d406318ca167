// Is double arithmetic what the proofs of docs/filter.md assume?
#ifndef HM_BOUNDS_ARITHMETIC_H
#define HM_BOUNDS_ARITHMETIC_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// IEEE doubles, rounded to nearest, with subnormal numbers, an exact fused multiply-add, and no contraction of a product
// and a sum that the source does not fuse. One object built with -ffast-math is enough to lose subnormals for a whole
// thread, so the filter asks for each row. Cost: a few nanoseconds.
bool hm_arithmetic_is_ieee(void);

#ifdef __cplusplus
}
#endif

#endif
