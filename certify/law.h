// The law of the emitted token under stochastic acceptance, in closed form (docs/theory.md §5): how often one of m
// proposals is accepted, and how far the emitted token's law is from the target's.
//
// A proposal in A (the first k of p's order) is accepted surely; any other x is accepted with probability min(1, p^j_x/q_x),
// p^j the residual after j - 1 rejections: standard speculative sampling for k = 0, nucleus speculative decoding for
// k = |A(p)| of a nucleus.
//
// For iid proposals the residuals need no vectors, and e = sum over A of (H q - p)^+ with H the expected number of proposals
// looked at: theory.md §5, "Several proposals".
#ifndef HM_CERTIFY_LAW_H
#define HM_CERTIFY_LAW_H

#include "certify/row.h"

#ifdef __cplusplus
extern "C" {
#endif

enum hm_proposal {
    HM_PROPOSAL_TOPK, // point masses: given tokens in order
    HM_PROPOSAL_IID   // m independent draws from q, one after the other
};

struct hm_law {
    struct hm_ival accept; // probability that one of the m proposals is accepted
    struct hm_ival e;      // TV(law of the emitted token, p)
};

// children: the m tokens of a topk proposal in the order they are tried, distinct; NULL: the first m of q. Unused for
// iid. q: NULL allowed with children. 1 <= m <= 1,000,000; rows of one vocabulary and temperature. Exact zeros and ones where
// the law is trivially p's. Both enclosures are narrow as docs/log.md asks. Doubles first: 1.3 ms for four iid
// proposals at 151,936 tokens. What they leave open, few rows, takes MPFR seconds there.
hm_status hm_law_make(struct hm_row *p, struct hm_row *q, enum hm_proposal proposal, const int32_t *children, size_t m,
                      size_t k, struct hm_law *out, struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
