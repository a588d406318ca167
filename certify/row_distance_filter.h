// How two rows differ, as double enclosures that are narrow enough for a log, or not at all (theory.md §8,
// docs/filter.md "Two rows"). Not part of the interface.
#ifndef HM_CERTIFY_ROW_DISTANCE_FILTER_H
#define HM_CERTIFY_ROW_DISTANCE_FILTER_H

#include "certify/row_state.h"

// Rows of one vocabulary and temperature that are not the same distribution. False: ask MPFR.
bool hm_filter_row_distance(struct hm_row *p, struct hm_row *q, struct hm_row_distance *out);

// Sum of (q_i - p_i)^+ over tokens [count].
bool hm_filter_row_excess(struct hm_row *p, struct hm_row *q, const int32_t *tokens, size_t count, struct hm_ival *out);

#endif
