// The water levels of docs/theory.md §2 for one vector of weights that need not sum to 1. Private to evidence/.
#ifndef HM_EVIDENCE_KNOWN_WATER_H
#define HM_EVIDENCE_KNOWN_WATER_H

#include "bounds/ival.h"

#include <stdbool.h>
#include <stddef.h>

// Log weights of the accepted tokens and of the rejected ones next in order, each descending; -inf: no weight.
struct hm_water {
    const double *accepted, *rejected; // [k], [m]
    size_t k, m;
};

struct hm_water_values {
    struct hm_ival forward;   // min over t of F(t)
    struct hm_ival variation; // sum_A (a - c)^+ at its place c
    struct hm_ival reverse;   // min over t of G(t)
};

// Both are false when memory is short. The second: sum_A min(a, g) + sum_S max(s, g) at the place g of the least G.
bool hm_water_solve(const struct hm_water *water, struct hm_water_values *out);
bool hm_water_kept(const struct hm_water *water, struct hm_ival *out);

#endif
