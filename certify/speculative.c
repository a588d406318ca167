// Stochastic acceptance at one node: see speculative.h. Each coin and the residual draw is an exact question (theory.md
// §8): settled on the logits where that is possible, then asked of the filter, then of MPFR. A tie is a rejection, and so
// is a coin that stays open: the two cannot be told apart by what they do.
#include "certify/speculative.h"

#include "certify/row_pair.h"
#include "certify/speculative_state.h"

#include <math.h>

hm_status hm_proposals_check(const struct hm_row *p, const struct hm_row *q, const struct hm_proposals *proposals,
                             struct hm_error *err)
{
    bool iid = proposals->kind == HM_PROPOSAL_IID;
    if (proposals->count < 1 || proposals->count > INT32_MAX)
        return hm_fail(err, HM_USAGE, "proposals: expected at least one, found %zu", proposals->count);
    if (iid && !q) return hm_fail(err, HM_USAGE, "iid proposals: expected the draft's row, found none");
    hm_status status = iid ? hm_row_pair_check(p, q, err) : HM_OK;
    for (size_t j = 0; j < proposals->count && !status; j++) {
        int32_t token = proposals->token[j];
        if (token < 0 || (size_t)token >= p->vocab)
            status = hm_fail(err, HM_RANGE, "proposal %zu: expected an id from 0 to %zu, found %ld", j, p->vocab - 1, (long)token);
        else if (iid && q->logits[token] == -INFINITY)
            status = hm_fail(err, HM_RANGE, "proposal %zu: token %ld has probability 0 under the draft", j, (long)token);
    }
    return status;
}

bool hm_remainder_has_tried(const struct hm_remainder *left, int32_t token)
{
    bool found = false;
    for (size_t j = 0; j < left->rejected && !left->q && !found; j++) found = left->tried[j] == token;
    return found;
}

// When all tokens left have the proposal's logit, how many they are; else 0. The only case in which a point mass can tie
// (Lindemann-Weierstrass), and the only one in which it is accepted whatever the coin.
static size_t equals_left(const struct hm_remainder *left, size_t token)
{
    size_t count = 0;
    float logit = left->p->logits[token];
    for (size_t i = 0; i < left->p->vocab; i++) {
        float l = left->p->logits[i];
        if (l == -INFINITY || (l != logit && hm_remainder_has_tried(left, (int32_t)i))) continue;
        if (l != logit) return 0;
        count += !hm_remainder_has_tried(left, (int32_t)i);
    }
    return count;
}

// Is u q_x < p^j_x?
static hm_status flip(const struct hm_remainder *left, int32_t token, uint64_t bits, bool *accepted, struct hm_error *err)
{
    size_t equals;
    bool whole = left->rejected == 0 || !left->q; // nothing was taken from the tokens that are left
    *accepted = false;
    if (left->p->logits[token] == -INFINITY || hm_remainder_has_tried(left, token)) return HM_OK;
    *accepted = whole && bits == 0;
    if (*accepted) return HM_OK;
    enum hm_verdict quick = hm_filter_coin(left, (size_t)token, bits);
    *accepted = quick == HM_YES;
    if (quick != HM_UNDECIDED) return HM_OK;
    if (left->q) {
        *accepted = left->rejected == 0 && hm_row_same(left->p, left->q);
    } else if ((equals = equals_left(left, (size_t)token)) > 0) {
        *accepted = bits <= ((UINT64_C(1) << 53) - 1) / equals; // u equals < 1
        return HM_OK;
    }
    return *accepted ? HM_OK : hm_exact_coin(left, (size_t)token, bits, accepted, err);
}

static hm_status draw(const struct hm_remainder *left, uint64_t bits, int32_t *token, struct hm_error *err)
{
    if (bits == 0 && !left->q) { // the first that has any weight, however small
        int32_t i = 0, vocab = (int32_t)left->p->vocab;
        while (i < vocab && (left->p->logits[i] == -INFINITY || hm_remainder_has_tried(left, i))) i++;
        *token = i;
        return i < vocab ? HM_OK : hm_fail(err, HM_RANGE, "residual draw: no token is left");
    }
    if (hm_filter_residual(left, bits, token)) return HM_OK;
    return hm_exact_residual(left, bits, token, err);
}

hm_status hm_speculate_with(struct hm_row *p, struct hm_row *q, const struct hm_proposals *proposals,
                            const struct hm_numbers *numbers, int64_t *accepted, int32_t *token, struct hm_error *err)
{
    *accepted = -1;
    *token = -1;
    hm_status status = hm_proposals_check(p, q, proposals, err);
    struct hm_remainder left = {.p = p, .tried = proposals->token};
    if (proposals->kind == HM_PROPOSAL_IID) left.q = q;
    for (size_t j = 0; j < proposals->count && !status && *accepted < 0; j++) {
        int32_t x = proposals->token[j];
        bool taken = proposals->sure > 0 && hm_row_rank(p, x) < proposals->sure;
        if (!taken) status = flip(&left, x, numbers->bits(numbers->source, HM_COIN, (uint32_t)j), &taken, err);
        if (taken) *accepted = (int64_t)j;
        else if (!status) hm_remainder_reject(&left);
    }
    if (*accepted >= 0) *token = proposals->token[*accepted];
    if (status || *accepted >= 0) return status;
    return draw(&left, numbers->bits(numbers->source, HM_DRAW_RESIDUAL, 0), token, err);
}

static uint64_t drawn_bits(const void *source, enum hm_purpose purpose, uint32_t child)
{
    const struct hm_speculative_draws *at = source;
    return hm_philox_bits(at->seed, at->sequence, at->t, purpose, child);
}

hm_status hm_speculate(struct hm_row *p, struct hm_row *q, const struct hm_proposals *proposals,
                       const struct hm_speculative_draws *draws, int64_t *accepted, int32_t *token, struct hm_error *err)
{
    return hm_speculate_with(p, q, proposals, &(struct hm_numbers){drawn_bits, draws}, accepted, token, err);
}
