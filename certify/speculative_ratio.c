// How much likelier a token is under the target than under stochastic acceptance: see speculative.h; theory.md §5, "Several
// proposals". Whether the two laws are one is asked first: then the ratio is exactly 1.
#include "certify/speculative.h"

#include "bounds/ival_math.h"
#include "certify/law_filter.h"
#include "certify/speculative_state.h"

#include <math.h>

static hm_status impossible(int32_t token, struct hm_error *err)
{
    return hm_fail(err, HM_RANGE, "ratio: expected a token that can be emitted, found %ld of probability 0", (long)token);
}

// In doubles: the law and the ratio from one pass. False when either is open: e may be 0 or not, or the ratio is too wide.
static bool ratio_filter(struct hm_row *p, struct hm_row *q, size_t m, size_t k, int32_t token, struct hm_ival *out)
{
    struct hm_law law;
    struct hm_ival o;
    if (!hm_filter_emission(p, q, m, k, token, &law, &o)) return false;
    *out = law.e.hi == 0 ? hm_ival_point(1) : hm_ival_div(hm_filter_probability(p, (size_t)token), o);
    return hm_filter_count(p, (law.e.hi == 0 || law.e.lo > 0) && hm_ival_narrow(*out));
}

static hm_status ratio_iid(struct hm_row *p, struct hm_row *q, const struct hm_proposals *proposals, int32_t token,
                           struct hm_ival *out, struct hm_error *err)
{
    struct hm_law law = {{0, 1}, {0, 0}};
    size_t m = proposals->count, k = proposals->sure;
    bool absent = p->logits[token] == -INFINITY;
    if (absent && !(hm_row_rank(p, token) < k && q->logits[token] != -INFINITY)) return impossible(token, err);
    *out = absent ? hm_ival_point(0) : hm_ival_point(1);
    if (absent || k == 0 || hm_row_same(p, q) || ratio_filter(p, q, m, k, token, out)) return HM_OK;
    hm_status status = hm_law_make(p, q, HM_PROPOSAL_IID, NULL, m, k, &law, err);
    *out = hm_ival_point(1);
    if (status || law.e.hi == 0) return status;
    return hm_exact_iid_ratio(p, q, m, k, token, out, err);
}

// The tokens before the first in A are emitted as often as p would emit them, and that one takes all the rest.
static hm_status ratio_topk(struct hm_row *p, const struct hm_proposals *proposals, int32_t token, struct hm_ival *out,
                            struct hm_error *err)
{
    size_t first = 0, tried = 0, others = p->support;
    for (; first < proposals->count; first++)
        if (proposals->sure > 0 && hm_row_rank(p, proposals->token[first]) < proposals->sure) break;
    while (tried < first && proposals->token[tried] != token) tried++;
    bool taken = first < proposals->count; // all other tokens are never emitted
    bool last = taken && tried == first && proposals->token[first] == token, absent = p->logits[token] == -INFINITY;
    if ((absent && !last) || (taken && tried == first && !last)) return impossible(token, err);
    *out = (struct hm_ival){1, 1};
    if (!last) return HM_OK;
    for (size_t j = 0; j <= first; j++) others -= p->logits[proposals->token[j]] != -INFINITY;
    if (others == 0 && !absent) return HM_OK;
    *out = (struct hm_ival){0, 0};
    if (absent) return HM_OK;
    struct hm_remainder left = {.p = p, .tried = proposals->token};
    while (left.rejected < first) hm_remainder_reject(&left);
    *out = hm_filter_share(&left, (size_t)token);
    if (hm_filter_count(p, hm_ival_narrow(*out))) return HM_OK;
    return hm_exact_share(&left, (size_t)token, out, err);
}

hm_status hm_speculative_ratio(struct hm_row *p, struct hm_row *q, const struct hm_proposals *proposals, int32_t token,
                               struct hm_ival *out, struct hm_error *err)
{
    *out = (struct hm_ival){0, INFINITY};
    hm_status status = hm_proposals_check(p, q, proposals, err);
    if (status) return status;
    if (token < 0 || (size_t)token >= p->vocab)
        return hm_fail(err, HM_RANGE, "token: expected an id from 0 to %zu, found %ld", p->vocab - 1, (long)token);
    return proposals->kind == HM_PROPOSAL_IID ? ratio_iid(p, q, proposals, token, out, err)
                                              : ratio_topk(p, proposals, token, out, err);
}
