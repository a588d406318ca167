// A row of logits at a temperature, prepared for exact questions (docs/theory.md §1).
//
// The distribution p_i = exp(l_i/T) / sum_j exp(l_j/T) is an exact real object; a row computes its order and its
// enclosures when they are first asked for and keeps them. One thread at a time may use a row.
#ifndef HM_CERTIFY_ROW_H
#define HM_CERTIFY_ROW_H

#include "base/error.h"
#include "base/rational.h"
#include "bounds/ival.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hm_row;

// Borrows logits [vocab] until hm_row_close; vocab >= 2, temperature > 0. HM_RANGE "logit 17: ..." for NaN, +inf, or a
// row of only -inf.
hm_status hm_row_open(const float *logits, size_t vocab, const struct hm_rational *temperature, struct hm_row **out,
                      struct hm_error *err);
void hm_row_close(struct hm_row *row); // NULL is allowed

const float *hm_row_logits(const struct hm_row *row);
size_t hm_row_vocab(const struct hm_row *row);

// Token at a rank of the order: larger logit first, equal logits by smaller id; rank 0 is the argmax. Cost: the first
// call for ranks below 64 selects, later ones may sort.
int32_t hm_row_token(struct hm_row *row, size_t rank);
size_t hm_row_rank(struct hm_row *row, int32_t token); // its inverse

// Sampling support: how many leading tokens of the order survive top-k (0 = off), then top-p on what is left,
// renormalised (NULL or >= 1 = off): the shortest prefix whose share is >= top_p.
hm_status hm_row_support(struct hm_row *row, size_t top_k, const struct hm_rational *top_p, size_t *support,
                         struct hm_error *err);

// The token drawn by u = bits * 2^-53 (bits < 2^53) from the first `support` tokens of the order, renormalised: the
// least id i, among them, with sum_{j <= i} p_j > u * sum_j p_j (docs/log.md, "Random numbers"). Decided exactly.
hm_status hm_row_draw(struct hm_row *row, size_t support, uint64_t bits, int32_t *token, struct hm_error *err);

// Enclosures, wide by at most 2^-34 of the larger end, or 2^-64 (hm_ival_narrow); most are far narrower.
hm_status hm_row_lse(struct hm_row *row, struct hm_ival *out, struct hm_error *err);     // ln sum exp(l_i/T), nats
hm_status hm_row_entropy(struct hm_row *row, struct hm_ival *out, struct hm_error *err); // nats
hm_status hm_row_probability(struct hm_row *row, int32_t token, struct hm_ival *out, struct hm_error *err);
// -ln(p_token / p_(1)): the regret of emitting the token instead of the first (>= 0, +inf when p_token = 0).
hm_status hm_row_regret(struct hm_row *row, int32_t token, struct hm_ival *out, struct hm_error *err);

// How two rows of the same vocabulary differ: p is the first, q the second.
struct hm_row_distance {
    struct hm_ival kl_pq, kl_qp, tv; // KL(p||q), KL(q||p) in nats (may be +inf), total variation
    struct hm_ival standard_accept;  // sum_i min(p_i, q_i)
};
// Rows of one temperature. The same distribution up to a constant gives exact zeros (and exactly 1).
hm_status hm_row_distance(struct hm_row *p, struct hm_row *q, struct hm_row_distance *out, struct hm_error *err);

// E = sum of (q_i - p_i)^+ over the first k tokens of p's order: with k = |A(p)| of a nucleus, what nucleus speculative
// decoding adds to standard acceptance and to TV (docs/theory.md §5).
hm_status hm_row_excess(struct hm_row *p, struct hm_row *q, size_t k, struct hm_ival *out, struct hm_error *err);

// How many exact questions, enclosures included, double intervals answered for this row, and how many they left to MPFR
// (docs/filter.md).
struct hm_row_questions {
    uint64_t answered, undecided;
};
struct hm_row_questions hm_row_questions(const struct hm_row *row);

// From now on MPFR answers everything about this row: the slow truth, for tests and measurements. Call it before the
// first question.
void hm_row_exact_only(struct hm_row *row);

#ifdef __cplusplus
}
#endif

#endif
