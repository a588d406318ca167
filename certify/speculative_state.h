// The inside of hm_speculate: what rejections leave of p, in doubles and by MPFR (docs/filter.md, "Coins and
// residuals"). Not part of the interface.
#ifndef HM_CERTIFY_SPECULATIVE_STATE_H
#define HM_CERTIFY_SPECULATIVE_STATE_H

#include "certify/philox.h"
#include "certify/row_state.h"
#include "certify/speculative.h"

// Where the random numbers of a step come from: 53 bits for a purpose and a child.
struct hm_numbers {
    uint64_t (*bits)(const void *source, enum hm_purpose purpose, uint32_t child);
    const void *source;
};
hm_status hm_speculate_with(struct hm_row *p, struct hm_row *q, const struct hm_proposals *proposals,
                            const struct hm_numbers *numbers, int64_t *accepted, int32_t *token, struct hm_error *err);

// Are these proposals that p and q can have?
hm_status hm_proposals_check(const struct hm_row *p, const struct hm_row *q, const struct hm_proposals *proposals,
                             struct hm_error *err);

// What is left of p after `rejected` rejections, unnormalised, in units of p's weights w: (w_i - a v_i)^+ with
// a = c W_p/W_q and v the weights of q (iid), or w_i without the tokens tried (point masses).
struct hm_remainder {
    struct hm_row *p, *q;         // q NULL: point masses
    const int32_t *tried;         // point masses: the first `rejected` tokens of this have no weight
    size_t rejected;
    struct hm_ival scale, total;  // a, and the sum of all terms after a rejection; only where the filter is ready
};

bool hm_remainder_has_tried(const struct hm_remainder *left, int32_t token);

// One more rejection. It costs a pass over the rows.
void hm_remainder_reject(struct hm_remainder *left);

// Is u q_x < p^j_x, u = bits 2^-53 and p^j what is left, normalised; q_x = 1 for a point mass? Of a token that is left.
enum hm_verdict hm_filter_coin(const struct hm_remainder *left, size_t token, uint64_t bits);
// The least id i at which the running sum of what is left passes u times the whole.
bool hm_filter_residual(const struct hm_remainder *left, uint64_t bits, int32_t *token);

// What share the token has of what point masses left, however wide.
struct hm_ival hm_filter_share(const struct hm_remainder *left, size_t token);

// The same by MPFR: rejected, and not passed, is what 4096 bits leave open.
hm_status hm_exact_coin(const struct hm_remainder *left, size_t token, uint64_t bits, bool *accepted, struct hm_error *err);
hm_status hm_exact_residual(const struct hm_remainder *left, uint64_t bits, int32_t *token, struct hm_error *err);
hm_status hm_exact_share(const struct hm_remainder *left, size_t token, struct hm_ival *out, struct hm_error *err); // narrow

#endif
