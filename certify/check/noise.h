// Parts of the radius: radius.c and noise.c share them. theory.md §6.
#ifndef HM_CERTIFY_CHECK_NOISE_H
#define HM_CERTIFY_CHECK_NOISE_H

#include "certify/check/math.h"

void ck_half_gap(const struct ck_math *m, size_t upper, size_t lower, struct iv *out);
// Positive where the decision is `in`.
void ck_ratio_radius(struct ck_math *m, int level, const struct ck_ask *ask, bool in, struct iv *out);
// Positive where x is accepted. Of absolute, regret and the eps of entropy.
void ck_odds_radius(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out);

#endif
