// One claim, put together: see certificate.h.
#include "certify/certificate.h"

#include "base/memory.h"
#include "certify/certificate_state.h"
#include "certify/rules/rules.h"

#include <math.h>
#include <stdlib.h>

const char *const hm_certified_names[HM_CERT_VERDICTS] = {[HM_CERT_NO] = "no",
                                                          [HM_CERT_YES] = "yes",
                                                          [HM_CERT_VACUOUS] = "vacuous",
                                                          [HM_CERT_INAPPLICABLE] = "inapplicable",
                                                          [HM_CERT_UNDECIDED] = "undecided"};
const char *const hm_verdict_names[HM_VERDICTS] = {[HM_NO] = "no", [HM_YES] = "yes", [HM_UNDECIDED] = "undecided"};

static hm_status check_query(const struct hm_claim_query *query, struct hm_error *err)
{
    size_t vocab = query->target->vocab;
    if (query->m < 1) return hm_fail(err, HM_USAGE, "claim: expected m of at least 1, found 0");
    if (query->token >= 0 && (size_t)query->token >= vocab)
        return hm_fail(err, HM_RANGE, "token: expected an id from 0 to %zu, found %ld", vocab - 1, (long)query->token);
    if (query->draft && query->draft->vocab != vocab)
        return hm_fail(err, HM_SHAPE, "draft row: expected %zu logits like the target's, found %zu", vocab, query->draft->vocab);
    if (query->draft && !query->distance) return hm_fail(err, HM_USAGE, "claim: expected the distance of the two rows");
    for (size_t i = 0; query->children && i < query->m; i++)
        if (query->children[i] < 0 || (size_t)query->children[i] >= vocab)
            return hm_fail(err, HM_RANGE, "child %zu: expected an id from 0 to %zu, found %ld", i, vocab - 1,
                           (long)query->children[i]);
    return HM_OK;
}

// Is a token certainly among the first k?
static bool among_first(struct hm_row *row, size_t k, int32_t token)
{
    return k > 0 && hm_row_key(row, (size_t)token) <= hm_row_key(row, (size_t)hm_row_token(row, k - 1));
}

// A's size, its border, and the emitted token's place. When k is undecided, claims speak of the tokens surely in A.
static hm_status place(const struct hm_claim_query *query, struct hm_claim *out, enum hm_verdict *decided,
                       struct hm_error *err)
{
    struct hm_row *p = query->target;
    hm_status status = hm_rule_count(query->rule, p, &out->k, decided, err);
    if (status) return status;
    out->m = query->m;
    out->counted = *decided != HM_UNDECIDED;
    out->edge[0] = out->k > 0 ? hm_row_token(p, out->k - 1) : -1;
    out->edge[1] = out->k < p->vocab ? hm_row_token(p, out->k) : -1;
    out->nothing = out->k == 0;
    out->vacuous = !out->nothing && query->m > p->vocab - out->k;
    out->accepts = HM_UNDECIDED;
    if (query->token < 0) return HM_OK;
    if (*decided == HM_UNDECIDED) return hm_rule_accepts(query->rule, p, query->token, &out->accepts, err);
    out->accepts = among_first(p, out->k, query->token) ? HM_YES : HM_NO;
    return HM_OK;
}

// Are the children the first m of q, in any order?  Those are distinct; draws may repeat.
static bool proposes_first(const struct hm_claim_query *query)
{
    if (!query->children) return true;
    if (query->m > query->draft->vocab) return false;
    for (size_t i = 0; i < query->m; i++)
        if (!among_first(query->draft, query->m, query->children[i])) return false;
    for (size_t i = 1; i < query->m; i++)
        for (size_t j = 0; j < i; j++)
            if (query->children[i] == query->children[j]) return false;
    return true;
}

// Does a proposed token lie in A?  With an undecided k, tokens beyond the certain ones are asked about one by one.
static hm_status cover(const struct hm_claim_query *query, struct hm_claim *out, enum hm_verdict decided,
                       struct hm_error *err)
{
    size_t m = query->children || query->m < query->draft->vocab ? query->m : query->draft->vocab;
    out->covered = HM_NO;
    for (size_t i = 0; i < m && out->covered != HM_YES; i++) {
        int32_t token = query->children ? query->children[i] : hm_row_token(query->draft, i);
        enum hm_verdict in = among_first(query->target, out->k, token) ? HM_YES : HM_NO;
        if (in == HM_NO && decided == HM_UNDECIDED) {
            hm_status status = hm_rule_accepts(query->rule, query->target, token, &in, err);
            if (status) return status;
        }
        if (in != HM_NO) out->covered = in;
    }
    return HM_OK;
}

static hm_status certify(const struct hm_claim_query *query, struct hm_claim *out, enum hm_verdict decided,
                         struct hm_error *err)
{
    const struct hm_row_distance *d = query->distance;
    const struct hm_ival divergence[3] = {d->kl_pq, d->kl_qp, d->tv};
    bool applies = out->applies = proposes_first(query);
    for (int which = HM_FORWARD; which <= HM_VARIATION; which++) {
        enum hm_certified *verdict = &out->certified[which];
        if (!applies) *verdict = HM_CERT_INAPPLICABLE;
        else if (decided == HM_UNDECIDED) *verdict = HM_CERT_UNDECIDED;
        else if (out->nothing) *verdict = HM_CERT_NO;
        else if (out->vacuous) *verdict = HM_CERT_VACUOUS;
        else {
            hm_status status = hm_claim_below(query->target, query->draft, out->k, out->m, (enum hm_which)which,
                                              divergence[which], &out->level, verdict, err);
            if (status) return status;
        }
    }
    return HM_OK;
}

static hm_status measure(const struct hm_claim_query *query, struct hm_claim *out, struct hm_error *err)
{
    if (out->nothing || out->vacuous) {
        hm_level_constant(&out->level, out->nothing ? 0 : INFINITY);
        return HM_OK;
    }
    out->has_margin = query->margin;
    return hm_level_make(query->target, out->k, out->m, &out->level, query->margin ? &out->margin : NULL, err);
}

// What the rule and the row say by themselves: the universal bounds, the threshold in force, the radius of `accepts`.
static hm_status describe(const struct hm_claim_query *query, struct hm_claim *out, struct hm_error *err)
{
    hm_status status = HM_OK;
    bool levels = !out->nothing && !out->vacuous;
    if (query->universal && levels)
        status = hm_claim_universal(query->rule, query->target, query->m, &out->universal, &out->has_universal, err);
    if (status == HM_OK && query->rule->kind == HM_RULE_ENTROPY) {
        enum hm_verdict eps = HM_UNDECIDED;
        status = hm_entropy_least_is_eps(query->rule, query->target, &eps, err);
        out->active = eps == HM_YES ? HM_ACTIVE_EPS : eps == HM_NO ? HM_ACTIVE_DELTA : HM_ACTIVE_NONE;
    }
    if (status || query->token < 0 || out->accepts == HM_UNDECIDED) return status;
    return hm_claim_radius(query->rule, query->target, query->token, out->accepts == HM_YES, &out->radius,
                           &out->has_radius, err);
}

hm_status hm_claim_make(const struct hm_claim_query *query, struct hm_claim *out, struct hm_error *err)
{
    enum hm_verdict decided = HM_YES;
    *out = (struct hm_claim){.edge = {-1, -1}};
    hm_status status = check_query(query, err);
    if (status == HM_OK) status = place(query, out, &decided, err);
    if (status == HM_OK) status = measure(query, out, err);
    if (status == HM_OK) status = describe(query, out, err);
    if (status || !query->draft) return status;
    out->has_draft = true;
    status = cover(query, out, decided, err);
    if (status == HM_OK) status = certify(query, out, decided, err);
    out->has_restricted = query->draft->support < query->draft->vocab;
    if (status || !out->has_restricted) return status;
    enum hm_certified before = !out->applies ? HM_CERT_INAPPLICABLE : decided == HM_UNDECIDED ? HM_CERT_UNDECIDED : HM_CERT_YES;
    return hm_claim_restrict(query, out->k, before, &out->restricted, err);
}

bool hm_claim_certified(const struct hm_claim *claim)
{
    return claim->has_draft && (claim->certified[0] == HM_CERT_YES || claim->certified[1] == HM_CERT_YES ||
                                claim->certified[2] == HM_CERT_YES);
}
