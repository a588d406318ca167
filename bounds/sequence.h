// Bounds on whole sequences and whole runs from figures of single steps (docs/theory.md §5 "Sequence level", §2 "What a
// drafter must reach"). All enclosures; sums are accumulated with outward rounding.
#ifndef HM_BOUNDS_SEQUENCE_H
#define HM_BOUNDS_SEQUENCE_H

#include "bounds/ival.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// One sequence as its steps come. Starts as HM_SEQUENCE_START.
struct hm_sequence_sum {
    struct hm_ival s;     // sum of e_t: never clipped
    struct hm_ival log_w; // sum of ln(p_t(x_t)/o_t(x_t)); -inf once a ratio is 0
    uint64_t steps;
};
#define HM_SEQUENCE_START ((struct hm_sequence_sum){{0, 0}, {0, 0}, 0})
void hm_sequence_add(struct hm_sequence_sum *sum, struct hm_ival e, struct hm_ival ratio);

// Many independent sequences of one decoder. Starts as zeros.
struct hm_fidelity_sum {
    uint64_t sequences;
    struct hm_ival s;                  // sum of S
    struct hm_ival shortfall, squares; // sums of (1 - w)^+ and of its square
};
void hm_fidelity_add(struct hm_fidelity_sum *sum, const struct hm_sequence_sum *sequence);

// What can be said of TV(law of the decoder's sequences, the target's law), averaged over the prompts.
struct hm_fidelity {
    struct hm_ival mean_shortfall; // mean of (1 - w)^+: an unbiased estimate of an upper bound, in [0, 1]
    double hoeffding, bernstein;   // the same plus a finite-sample margin, at most 1: upper bounds with probability
                                   // 1 - risk each, and 1 - 2 risk both (whoever picks the smaller asks for half the risk)
    struct hm_ival mean_s;         // mean of S: an unbiased estimate of a weaker upper bound; may exceed 1
    bool vacuous_s, vacuous;       // mean S >= 1; the better of the two finite-sample bounds >= 1
};
// risk in (0, 1). Hoeffding for a range of [0, 1]; empirical Bernstein by Maurer and Pontil (2009, theorem 4), which needs
// two sequences. No sequences, or a risk outside (0, 1): vacuous, bounds of 1.
void hm_fidelity_bound(const struct hm_fidelity_sum *sum, double risk, struct hm_fidelity *out);

// What a drafter must reach: failure at a step implies D >= D*. Starts as zeros.
struct hm_failure_sum {
    uint64_t steps, failures;     // failures: steps that were not covered
    struct hm_ival bound;         // sum of min(1, D/D*); D* = 0 adds 1, D* = +inf adds 0 (1 where D is infinite too, which
                                  // may fail; where coverage cannot, give D = 0)
};
void hm_failure_add(struct hm_failure_sum *sum, struct hm_ival divergence, struct hm_ival level, bool covered);

// P(fail) <= inf over s of P(D* < s) + E[D]/s, over the empirical law of levels [count], sorted ascending by this
// function, given the mean divergence over the same steps: an upper end, at most 1, and the s that gives it (+inf where
// it is 1). Lower ends of levels and an upper end of the mean give a bound; a level that is not > 0 counts as 0.
double hm_failure_markov(double *levels, size_t count, double mean_divergence, double *at);

// If every step of every prefix has e <= `e`: TV of sequences of `length` tokens is at most 1 - (1-e)^length.
struct hm_ival hm_sequence_uniform(struct hm_ival e, uint64_t length);

#ifdef __cplusplus
}
#endif

#endif
