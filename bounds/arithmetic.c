// See arithmetic.h. Each operand is volatile, so that the compiler computes nothing ahead.
#include "bounds/arithmetic.h"

bool hm_arithmetic_is_ieee(void)
{
    volatile double tiny = 0x1p-1022, half = 0.5, one = 1, unit = 0x1p-53, more = 0x1.8p-53, near = 1 + 0x1p-52;
    if (tiny * half != 0x1p-1023) return false;              // flushed result
    volatile double subnormal = 0x1p-1023;
    if (subnormal + subnormal != 0x1p-1022) return false;    // flushed operand
    if (one + unit != 1 || one + more != 1 + 0x1p-52) return false; // not to nearest, ties to even
    if (-one - unit != -1) return false;
    double product = near * near; // 1 + 2^-51 + 2^-104: a contraction would show the last term
    if (product - (1 + 0x1p-51) != 0) return false;
    return __builtin_fma(near, near, -(1 + 0x1p-51)) == 0x1p-104;
}
