// The water levels of theory.md §2 and the margins of §3, as intervals at one precision.
#ifndef HM_BOUNDS_LEVEL_H
#define HM_BOUNDS_LEVEL_H

#include "bounds/mpi.h"
#include "bounds/weights.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The part of a row that the levels depend on. 1 <= k, 1 <= m, k + m <= the row's length; everything is borrowed.
struct hm_level_problem {
    const struct hm_weights *weights;
    const int32_t *tokens;      // the first k + m tokens of the order
    size_t k, m;
    size_t support;             // how many logits of the row are finite
    float top;                  // the largest logit
    mpq_srcptr temperature;
    const struct hm_mpi *total; // sum of all weights
    const struct hm_mpi *tail;  // sum of the weights of ranks k + m and later
};

// KLf*, TV*, c and KLr*, ln g. A tied set is the first [0] tokens of A and the last [1] of S.
struct hm_level_values {
    struct hm_mpi klf, klr, tv, level_f, level_r;
    size_t tied_f[2], tied_r[2];
};
void hm_level_values_init(struct hm_level_values *v, mpfr_prec_t precision);
void hm_level_values_clear(struct hm_level_values *v);

// Arithmetic level, KLf* and TV*. The enclosure of c is proved by the signs of the balance at its ends; false when
// the precision does not suffice for that (the values are then meaningless).
bool hm_level_forward(const struct hm_level_problem *problem, struct hm_level_values *out);

// Geometric level and KLr*. The tied set is decided in exact arithmetic, so this always succeeds.
void hm_level_reverse(const struct hm_level_problem *problem, struct hm_level_values *out);

// The margin-only bounds for the gap y = p_(k) - p_(k+1); all 0 when the two logits are equal.
struct hm_margin_values {
    struct hm_mpi gap, klf, klr, tv;
};
void hm_margin_values_init(struct hm_margin_values *v, mpfr_prec_t precision);
void hm_margin_values_clear(struct hm_margin_values *v);
void hm_margin_bounds(const struct hm_level_problem *problem, struct hm_margin_values *out);

#ifdef __cplusplus
}
#endif

#endif
