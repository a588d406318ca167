// How two rows differ, as double enclosures that are narrow enough for a log, or not at all (theory.md §8,
// docs/filter.md "Two rows"). Not part of the interface.
#ifndef HM_CERTIFY_ROW_DISTANCE_FILTER_H
#define HM_CERTIFY_ROW_DISTANCE_FILTER_H

#include "certify/row_state.h"

// Rows of one vocabulary and temperature that are not the same distribution. False: ask MPFR.
bool hm_filter_row_distance(struct hm_row *p, struct hm_row *q, struct hm_row_distance *out);

// Sum of (q_i - p_i)^+ over tokens [count].
bool hm_filter_row_excess(struct hm_row *p, struct hm_row *q, const int32_t *tokens, size_t count, struct hm_ival *out);

// Differences token by token. With units of W_p: gaps[i] is p_i - q_i and shares[i] is q_i, each within its relative error;
// and a sum over any set of tokens may be off by `absolute` times W_p more (and the sum of its own p_i and q_i, at most).
struct hm_pair_gaps {
    double size; // sum of |p_i - q_i|, as a share of W_p: twice the variation
    double gap_error, share_error, absolute;
};
// gaps, shares: [vocab]. Rows of one vocabulary and temperature that are not the same distribution.
bool hm_filter_gaps(struct hm_row *p, struct hm_row *q, double *gaps, double *shares, struct hm_pair_gaps *out);

#endif
