// The likeliest tokens of a row with their log-probabilities, as a drafter proposes them.
//
// These are floats for ranking candidates, not claims: the certificate computes its own enclosures from the row.
#ifndef HM_DECODE_TOPK_H
#define HM_DECODE_TOPK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Writes the `most` first tokens of the row's order (larger logit first, equal logits by smaller id; NaN last) with
// their log-softmax values, all NaN when the row holds a NaN or +inf or only -inf; returns how many (most, or fewer when
// the row is shorter). The same bits on every machine:
// plain float arithmetic in a fixed order. Reads the row three times: 12 bytes and about 20 operations a logit.
size_t hm_topk(const float *logits, size_t vocab, size_t most, int32_t *token, float *logq);

// The log-softmax values of given tokens [count]: the floats that hm_topk writes.
void hm_log_softmax(const float *logits, size_t vocab, const int32_t *token, size_t count, float *logq);

#ifdef __cplusplus
}
#endif

#endif
