// The water levels and margins of level.h in double intervals: the filter before MPFR (docs/filter.md "Levels").
//
// Only the tokens that matter are asked for: the first few of A, those above a level, and the m of S.
#ifndef HM_BOUNDS_LEVEL_FILTER_H
#define HM_BOUNDS_LEVEL_FILTER_H

#include "bounds/ival.h"

#include <gmp.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// What the levels depend on. 1 <= k, 1 <= m, k + m <= the row's length. Sums of weights are in units of the largest.
struct hm_level_row {
    void *order;                                       // given to the three functions
    float (*logit)(void *order, size_t rank);          // of a rank of the order
    struct hm_ival (*head)(void *order, size_t rank);  // sum of the weights of the ranks below `rank`
    struct hm_ival (*tail)(void *order, size_t rank);  // and of the others: not a difference of larger sums
    struct hm_ival total;
    size_t k, m, support;                              // support: how many logits of the row are finite
    float top;                                         // the largest logit
    mpq_srcptr temperature;
};

// The figures of struct hm_level_values and struct hm_margin_values (level.h).
struct hm_level_ivals {
    struct hm_ival klf, klr, tv, level_f, level_r;
    size_t tied_f[2], tied_r[2];
};
struct hm_margin_ivals {
    struct hm_ival gap, klf, klr, tv;
};

// False, and the values are meaningless, unless every enclosure is narrow (hm_ival_narrow), no token may be on either
// side of the arithmetic level, and the geometric level's tied set is decided exactly. margin may be NULL.
bool hm_level_filter(const struct hm_level_row *row, struct hm_level_ivals *level, struct hm_margin_ivals *margin);

#ifdef __cplusplus
}
#endif

#endif
