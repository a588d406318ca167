// Passes over rows of float32 logits in double, at the speed of the machine: what the filter needs of a whole row or of
// two (docs/filter.md). Not part of the interface.
//
// The loops of row_pass_lanes.h are compiled for three instruction sets and give the same bits on each: +, -, x,
// comparisons and spelled-out fused multiply-adds on 32 lanes in a written order. Nothing here rounds outward;
// docs/filter.md proves what the results are good for, and the constants below are its promises.
#ifndef HM_BOUNDS_ROW_PASS_H
#define HM_BOUNDS_ROW_PASS_H

#include <gmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A weight is w = exp(l/T) 2^-shift, its double v: |v - w| <= v HM_WEIGHT_ERROR + HM_WEIGHT_REMOTE. The second part is
// for tokens 990 ln 2 nats or more below the top, -inf among them, which all have v near 2^-990.
#define HM_WEIGHT_ERROR 0x1p-51
#define HM_WEIGHT_REMOTE 0x1p-989

enum { HM_LANES = 32, HM_PASS_STEPS = 64, HM_PASS_CALLS = 65 };

// At most so many additions of 2^-53 relative meet a term that goes into a sum of `terms` non-negative terms, by up to
// HM_PASS_CALLS calls on one set of lanes, the fold of the lanes and HM_PASS_CALLS further terms in one chain.
static inline double hm_pass_roundings(size_t terms)
{
    size_t most = terms / (HM_LANES * HM_PASS_STEPS) + 320;
    return (double)most;
}

// So many remote tokens can have gone into the sum: the last lanes of a call are filled up with them.
static inline double hm_pass_remote(size_t terms)
{
    return (double)terms + HM_LANES * HM_PASS_CALLS;
}

// What all weights of a row share.
struct hm_weight_scale {
    double inverse, inverse_low; // 1/T to nearest, and what is left of it
    double log2;                 // inverse / ln 2, rounded
    double top;                  // the largest logit
    double floor;                // lower logits weigh as much as this one, about 2^-990
    double shifted;              // 1.5 * 2^52 + shift, where shift is the integer nearest to top/T/ln 2
};
// False, and there is no filter, when 1/T is not in [2^-64, 2^64] or |top/T| exceeds 2^25.
bool hm_weight_scale_set(struct hm_weight_scale *scale, mpq_srcptr temperature, float top);

// Running sums, one per lane. Start from zeros; fold at the end.
struct hm_lanes {
    double at[HM_LANES];
};
double hm_lanes_fold(const struct hm_lanes *lanes);

struct hm_look {
    size_t finite; // how many logits are above -inf
    bool bad;      // there is a NaN or +inf
};
enum { HM_LOOK_BLOCK = 64 };

// What two rows share: r_i = (l_i - d_i)/T - ln(Z_p/Z_q) is ln(p_i/q_i).
struct hm_pair_scale {
    double inverse, inverse_low;     // as above
    double log_ratio, log_ratio_low; // near ln(Z_p/Z_q), a sum of two doubles
    double ratio;                    // W_p / W_q, rounded: weights of q times it are in units of p's
};
#define HM_PAIR_EDGE 0.25 // up to this |r|, terms come from series; beyond, from p - q
struct hm_pair_lanes {
    struct hm_lanes forward, backward; // sum p (r - 1 + e^-r), sum q (-r - 1 + e^r): terms >= 0
    struct hm_lanes gap, size;         // sum p - q, sum |p - q|; all four in units of 1/W_p
};

struct hm_spread {
    uint32_t largest, least; // bit patterns of |l|: the largest, and the least but zero less one (UINT32_MAX: none)
};

struct hm_row_passes {
    const char *name;
    // maxima[i] is the largest of logits [64 i, 64 i + 64); NaN does not count.
    void (*look)(const float *logits, size_t count, float *maxima, struct hm_look *out);
    // weights [count] of logits below or at the top; sum += weights, moment += weight * (top - logit).
    void (*weigh)(const float *logits, size_t count, const struct hm_weight_scale *scale, double *weights,
                  struct hm_lanes *sum, struct hm_lanes *moment);
    // Two rows' differences, from their logits and weights.
    void (*compare)(const float *p, const float *q, const double *weights_p, const double *weights_q, size_t count,
                    const struct hm_pair_scale *scale, struct hm_pair_lanes *out);
    // gaps [count]: p_i - q_i, in units of 1/W_p.
    void (*gaps)(const float *p, const float *q, const double *weights_p, const double *weights_q, size_t count,
                 const struct hm_pair_scale *scale, double *gaps);
    // sum += min(p_i, q_i), in units of 1/W_p
    void (*overlap)(const double *weights_p, const double *weights_q, size_t count, double ratio, struct hm_lanes *sum);
    // Of the logits at or above `floor`.
    void (*spread)(const float *logits, size_t count, float floor, struct hm_spread *out);
};

// The widest that the machine has; HALLMARK_ISA=portable|avx2|avx512 narrows it.
const struct hm_row_passes *hm_row_passes(void);
// By name, or NULL where the machine or the build lacks it.
const struct hm_row_passes *hm_row_passes_named(const char *name);

// Every logit at or above its row's floor is a multiple of one power of two, and all their differences are exact
// doubles.
bool hm_spreads_exact(struct hm_spread a, struct hm_spread b);

#endif
