// Intervals with MPFR ends, rounded outward: the truth that every enclosure and every verdict rests on.
//
// Each function encloses the exact result for every choice of points in its operands; the precision of a result is
// the precision its ends were made with. Operands may be the result. Functions that need a sign say so in their name
// or their comment; they are right whatever the numbers are, only wide where the comment says the case is excluded.
// Nothing here changes MPFR's exponent range, which is per thread and wide enough (2^30 binary digits).
#ifndef HM_BOUNDS_MPI_H
#define HM_BOUNDS_MPI_H

#include "bounds/ival.h"

#include <gmp.h>
#include <mpfr.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HM_PRECISION_FIRST = 128, HM_PRECISION_LAST = 4096 }; // the ladder of theory.md §8: doubling

struct hm_mpi {
    mpfr_t lo, hi; // lo <= value <= hi; never NaN
};

void hm_mpi_init(struct hm_mpi *x, mpfr_prec_t precision); // [0, 0]
void hm_mpi_clear(struct hm_mpi *x);
void hm_mpi_set(struct hm_mpi *x, const struct hm_mpi *from);
void hm_mpi_set_ui(struct hm_mpi *x, unsigned long value);
void hm_mpi_set_q(struct hm_mpi *x, mpq_srcptr value);
void hm_mpi_set_exact(struct hm_mpi *x, mpfr_srcptr value);  // the ends round it if they are shorter

void hm_mpi_neg(struct hm_mpi *out, const struct hm_mpi *a);
void hm_mpi_add(struct hm_mpi *out, const struct hm_mpi *a, const struct hm_mpi *b);
void hm_mpi_sub(struct hm_mpi *out, const struct hm_mpi *a, const struct hm_mpi *b);
void hm_mpi_mul(struct hm_mpi *out, const struct hm_mpi *a, const struct hm_mpi *b); // any signs, finite
void hm_mpi_div(struct hm_mpi *out, const struct hm_mpi *a, const struct hm_mpi *b); // b > 0, else the whole line
void hm_mpi_mul_q(struct hm_mpi *out, const struct hm_mpi *a, mpq_srcptr q);         // q >= 0
void hm_mpi_mul_ui(struct hm_mpi *out, const struct hm_mpi *a, unsigned long n);
void hm_mpi_div_ui(struct hm_mpi *out, const struct hm_mpi *a, unsigned long n);     // n >= 1
void hm_mpi_exp(struct hm_mpi *out, const struct hm_mpi *a);
void hm_mpi_log(struct hm_mpi *out, const struct hm_mpi *a);   // ends <= 0 give -inf
void hm_mpi_log1p(struct hm_mpi *out, const struct hm_mpi *a); // ends <= -1 give -inf
void hm_mpi_expm1(struct hm_mpi *out, const struct hm_mpi *a);
void hm_mpi_clip_low(struct hm_mpi *x, long least); // the value is known to be >= least
void hm_mpi_clip_high(struct hm_mpi *x, long most); // the value is known to be <= most
void hm_mpi_meet(struct hm_mpi *x, const struct hm_mpi *y); // both enclose the same number: keep the better ends

// v - ln(1+v) for v >= -1 (>= 0, decreasing then increasing, 0 at 0), and e^{-u} - 1 + u (>= 0, likewise).
void hm_mpi_log_excess(struct hm_mpi *out, const struct hm_mpi *v);
void hm_mpi_exp_excess(struct hm_mpi *out, const struct hm_mpi *u);

// YES when a < b for all points, NO when a >= b for all, else UNDECIDED.
enum hm_verdict hm_mpi_less(const struct hm_mpi *a, const struct hm_mpi *b);
// Sign of a number: YES when x >= 0 surely, NO when x < 0 surely.
enum hm_verdict hm_mpi_nonnegative(const struct hm_mpi *x);

struct hm_ival hm_mpi_ival(const struct hm_mpi *x);      // rounded outward to doubles
struct hm_ival hm_mpi_ival_wide(const struct hm_mpi *x); // and one more unit outward at each finite end
// Narrow enough to hand out: the width is at most 2^-48 of the larger end, or 2^-80.
bool hm_mpi_narrow(const struct hm_mpi *x);

#ifdef __cplusplus
}
#endif

#endif
