// How likely a draw is: the probability of a token under the distribution that docs/log.md "Random numbers" draws from,
// p at the sampling temperature, restricted to the support that the processors leave and renormalised.
//
// Enclosures from doubles where they are narrow enough for a log, else from MPFR.
#ifndef HM_CERTIFY_SAMPLING_H
#define HM_CERTIFY_SAMPLING_H

#include "certify/row.h"

#ifdef __cplusplus
extern "C" {
#endif

// p(token) for each of the tokens [count]; exactly 0 outside the first `support` (>= 1) tokens of the order, exactly 1
// for the only one of them that has any weight. The row's temperature is the sampling temperature.
hm_status hm_sampling_probability(struct hm_row *row, size_t support, const int32_t *tokens, size_t count,
                                  struct hm_ival *out, struct hm_error *err);

// 1 - p(token), without cancellation; exactly 0 when the token is all of the support that has any weight.
hm_status hm_sampling_complement(struct hm_row *row, size_t support, int32_t token, struct hm_ival *out,
                                 struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
