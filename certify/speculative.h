// One step of stochastic acceptance, decided exactly: standard speculative sampling and nucleus speculative decoding over
// the children of a node (docs/log.md, "The walk"; docs/theory.md §5), and the law of the token it emits.
#ifndef HM_CERTIFY_SPECULATIVE_H
#define HM_CERTIFY_SPECULATIVE_H

#include "certify/law.h"
#include "certify/row.h"

#ifdef __cplusplus
extern "C" {
#endif

// The proposals at a node: `count` >= 1 tokens in the order in which they are tried (they repeat only when iid), of which
// those among the first `sure` of p's order are accepted surely (0: standard).
struct hm_proposals {
    enum hm_proposal kind;
    const int32_t *token; // [count]
    size_t count, sure;
};

// Random numbers of one output position, as bits of 53: the coin of each proposal and the residual draw.
struct hm_speculative_draws {
    uint64_t seed;
    uint32_t sequence, t;
};

// The index of the accepted proposal, or -1 and the residual draw in *token. q: NULL allowed for topk. Rows of one
// vocabulary and temperature. A coin that 4096 bits leave open counts as a rejection. Cost at 151,936 tokens: 0.4 ms for what
// two rows need once, then 0.1 ms a rejection.
hm_status hm_speculate(struct hm_row *p, struct hm_row *q, const struct hm_proposals *proposals,
                       const struct hm_speculative_draws *draws, int64_t *accepted, int32_t *token, struct hm_error *err);

// p(token)/o(token), o the law of the emitted token: iid before the proposals are drawn, topk given them (docs/log.md,
// "The walk"). Exactly 1 where the law is p's. Narrow as docs/log.md asks. HM_RANGE for a token of probability 0 under o.
hm_status hm_speculative_ratio(struct hm_row *p, struct hm_row *q, const struct hm_proposals *proposals, int32_t token,
                               struct hm_ival *out, struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
