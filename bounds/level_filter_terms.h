// What the parts of the level filter share: the numbers of one token, computed when they are first asked for. Not part
// of the interface.
#ifndef HM_BOUNDS_LEVEL_FILTER_TERMS_H
#define HM_BOUNDS_LEVEL_FILTER_TERMS_H

#include "bounds/level_filter.h"

#include <stdint.h>

enum { HM_TERMS = 64 }; // ranks that are kept; others are computed again each time

struct hm_term {
    float logit;
    struct hm_ival far;      // top - logit, >= 0; a point unless the exponents lie far apart
    struct hm_ival distance; // far/T
    struct hm_ival weight;   // e^-distance
    struct hm_ival drop;     // 1 - weight, sharp near 0 too
};

struct hm_terms {
    const struct hm_level_row *row;
    struct hm_ival inverse;  // 1/T
    bool unit;               // T = 1
    uint64_t filled;
    struct hm_term kept[HM_TERMS];
};
void hm_terms_start(struct hm_terms *t, const struct hm_level_row *row);
struct hm_term hm_term(struct hm_terms *t, size_t rank);

struct hm_ival hm_ival_count(size_t n); // below 2^53

// KLr* and ln g into *out; false when the tied set is not decided here.
bool hm_level_filter_reverse(struct hm_terms *t, struct hm_level_ivals *out);
void hm_level_filter_margin(struct hm_terms *t, struct hm_margin_ivals *out);

#endif
