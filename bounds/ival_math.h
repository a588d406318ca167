// Interval arithmetic in double, rounded outward without touching the rounding mode: the filter's arithmetic on single
// numbers (docs/filter.md "Elementary functions"). Only +, -, x, /, fused multiply-add and comparisons in a written order:
// the same bits on every machine and with every compiler; no function of the C library is used.
//
// Each function encloses the exact result for every choice of points in its operands. An operation that meets a NaN or
// leaves its domain gives the whole line, which decides nothing. Relative width added by one operation: none where it is
// exact, at most 2^-52 for arithmetic, HM_IVAL_ELEMENTARY for the others. Results and arguments near the ends of the
// double range (excesses below 2^-999, e^x beyond e^708) are enclosed, but not so narrowly.
#ifndef HM_BOUNDS_IVAL_MATH_H
#define HM_BOUNDS_IVAL_MATH_H

#include "bounds/ival.h"

#include <gmp.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HM_IVAL_ELEMENTARY 0x1p-48 // relative width that log, log1p, exp and the two excesses add at most

struct hm_ival hm_ival_point(double x);
struct hm_ival hm_ival_rational(mpq_srcptr value); // nearest doubles on both sides

struct hm_ival hm_ival_neg(struct hm_ival a);
struct hm_ival hm_ival_add(struct hm_ival a, struct hm_ival b);
struct hm_ival hm_ival_sub(struct hm_ival a, struct hm_ival b);
struct hm_ival hm_ival_mul(struct hm_ival a, struct hm_ival b);
struct hm_ival hm_ival_div(struct hm_ival a, struct hm_ival b); // the whole line unless b is surely positive or negative
struct hm_ival hm_ival_min(struct hm_ival a, struct hm_ival b); // of the two numbers
struct hm_ival hm_ival_max(struct hm_ival a, struct hm_ival b);
struct hm_ival hm_ival_meet(struct hm_ival a, struct hm_ival b); // both enclose one number

struct hm_ival hm_ival_log(struct hm_ival a);   // of a number known to be >= 0; ends <= 0 give -inf
struct hm_ival hm_ival_log1p(struct hm_ival a); // of a number known to be >= -1
struct hm_ival hm_ival_exp(struct hm_ival a);
struct hm_ival hm_ival_drop(struct hm_ival u);  // 1 - e^{-u} of a number known to be >= 0

// v - ln(1+v) for v >= -1 and e^{-u} - 1 + u: both >= 0 and 0 only at 0, without cancellation.
struct hm_ival hm_ival_log_excess(struct hm_ival v);
struct hm_ival hm_ival_exp_excess(struct hm_ival u);

enum hm_verdict hm_ival_less(struct hm_ival a, struct hm_ival b);     // a < b
enum hm_verdict hm_ival_nonnegative(struct hm_ival x);                // x >= 0

// Narrow enough for a log (docs/log.md "Numbers"), with room to spare: the width is at most 2^-34 of the larger end in
// magnitude, or at most 2^-64; or both ends are the same infinity.
bool hm_ival_narrow(struct hm_ival x);

#ifdef __cplusplus
}
#endif

#endif
