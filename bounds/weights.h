// The weights of a row: w_i = exp((l_i - l_max)/T), enclosed with relative error 2^(2-precision), as one flat array.
//
// p_i = w_i / sum_j w_j. The largest weight is 1 exactly, so sums of weights never overflow or vanish.
#ifndef HM_BOUNDS_WEIGHTS_H
#define HM_BOUNDS_WEIGHTS_H

#include "bounds/mpi.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// low[i] <= w_i <= low[i] (1 + 2^(2-precision)); exact where low[i] is 1 or logit i is -inf. A "remote" token, finite
// but 2^28 nats or more below the top, has low[i] = 0 and w_i < 2^-(2^28).
struct hm_weights {
    size_t count;
    mpfr_prec_t precision;
    mpfr_t *low;            // [count], limbs in `limbs`
    mp_limb_t *limbs;
    const float *logits;    // [count], borrowed
    size_t remote;          // how many tokens are remote
    mpfr_t factor, speck;   // 1 + 2^(2-precision) and 2^-(2^28), for upper ends
};

// Computes the weights of finite or -inf logits [count] whose maximum is `top`. NULL when memory is short.
struct hm_weights *hm_weights_make(const float *logits, size_t count, float top, mpq_srcptr temperature,
                                   mpfr_prec_t precision);
void hm_weights_free(struct hm_weights *w); // NULL is allowed

void hm_weight(const struct hm_weights *w, size_t i, struct hm_mpi *out); // the enclosure of one weight

// A running sum of weights: the ones are counted, so that a uniform row sums exactly; of the others down is a lower
// bound and raw_up * factor an upper one; each remote token adds at most a speck. hm_weight_sum_get puts them together.
struct hm_weight_sum {
    mpfr_t down, raw_up;
    unsigned long ones, remote;
};
void hm_weight_sum_init(struct hm_weight_sum *s, const struct hm_weights *w);
void hm_weight_sum_clear(struct hm_weight_sum *s);
void hm_weight_sum_add(struct hm_weight_sum *s, const struct hm_weights *w, size_t i);
void hm_weight_sum_get(const struct hm_weight_sum *s, const struct hm_weights *w, struct hm_mpi *out);

// Where the running sum of the listed tokens [count] first reaches a target (sum >= target), or passes it (sum >
// target): 1-based positions between which the answer lies; equal when it is decided; count + 1: never.
enum hm_crossing_kind { HM_REACHES, HM_PASSES };
struct hm_crossing {
    size_t least, most;
};
struct hm_crossing hm_weights_cross(const struct hm_weights *w, const int32_t *tokens, size_t count,
                                    const struct hm_mpi *target, enum hm_crossing_kind kind);

#ifdef __cplusplus
}
#endif

#endif
