// What counts as accepted at a node: see accept.h.
#include "decode/accept.h"

#include "certify/philox.h"
#include "certify/row.h"
#include "certify/speculative.h"

#include <stdbool.h>

static bool is_stochastic(const struct hm_acceptance *how)
{
    return how->kind == HM_ACCEPT_STANDARD || how->kind == HM_ACCEPT_NUCLEUS;
}

// ---- deterministic rules and match

// Among the children in A(p), the first in the row's order; -1 when there is none.
static hm_status best_accepted(const struct hm_acceptance *how, struct hm_row *row, const struct hm_accept_node *node,
                               int64_t *best, struct hm_error *err)
{
    hm_status rc = HM_OK;
    *best = -1;
    for (size_t i = 0; i < node->child_count && !rc; i++) {
        enum hm_verdict accepted;
        int32_t a = node->children[i], b = *best < 0 ? -1 : node->children[*best];
        if (b >= 0 && (node->target[b] > node->target[a] || (node->target[b] == node->target[a] && b < a))) continue;
        rc = hm_rule_accepts(how->rule, row, a, &accepted, err);
        if (!rc && accepted == HM_YES) *best = (int64_t)i;
    }
    return rc;
}

// The rule's child, if the budget allows what it regrets. The first of the order regrets nothing.
static hm_status accept_by_rule(const struct hm_acceptance *how, struct hm_budget *budget, const struct hm_accept_node *node,
                                struct hm_decision *out, struct hm_error *err)
{
    struct hm_row *row = NULL;
    int64_t best = -1;
    hm_status rc = hm_row_open(node->target, node->vocab, how->certify_temperature, &row, err);
    if (!rc) rc = best_accepted(how, row, node, &best, err);
    if (!rc && best >= 0 && budget) {
        out->charged = true;
        rc = hm_row_regret(row, node->children[best], &out->charge, err);
        out->relaxed = !rc && hm_budget_charge(budget, out->charge.hi);
        if (!out->relaxed) best = -1;
    }
    out->child = best;
    hm_row_close(row);
    return rc;
}

// The support after the processors and, if wanted, the draw at (sequence, t) from it; the argmax at temperature 0.
static hm_status draw(const struct hm_acceptance *how, const struct hm_accept_node *node, bool wanted,
                      struct hm_decision *out, struct hm_error *err)
{
    bool sampled = hm_rational_sign(how->temperature) > 0;
    struct hm_row *row = NULL;
    hm_status rc = hm_row_open(node->target, node->vocab, sampled ? how->temperature : how->certify_temperature, &row, err);
    if (!rc && sampled) rc = hm_row_support(row, how->top_k, how->top_p, &out->support, err);
    if (!rc && wanted) {
        if (sampled) {
            uint64_t bits = hm_philox_bits(how->seed, node->sequence, node->t, HM_DRAW_TARGET, 0);
            rc = hm_row_draw(row, out->support, bits, &out->token, err);
        } else {
            out->token = hm_row_token(row, 0);
        }
    }
    hm_row_close(row);
    return rc;
}

// ---- speculative sampling

// How many tokens of p's order are accepted surely: A(p), unless the budget forbids it.
static hm_status relax(const struct hm_acceptance *how, struct hm_budget *budget, struct hm_row *p, struct hm_row *q,
                       const struct hm_accept_node *node, size_t *sure, struct hm_decision *out, struct hm_error *err)
{
    enum hm_verdict decided; // tokens whose membership is open do not count
    struct hm_law law;
    *sure = 0;
    if (how->kind != HM_ACCEPT_NUCLEUS) return HM_OK;
    hm_status rc = hm_rule_count(how->rule, p, sure, &decided, err);
    if (rc || !budget) return rc;
    rc = hm_law_make(p, q, how->proposal, node->children, node->child_count, *sure, &law, err);
    if (rc) return rc;
    out->charged = true;
    out->charge = law.e;
    out->relaxed = hm_budget_charge(budget, law.e.hi);
    if (!out->relaxed) *sure = 0;
    return HM_OK;
}

static hm_status speculate(const struct hm_acceptance *how, struct hm_budget *budget, const struct hm_accept_node *node,
                           struct hm_decision *out, struct hm_error *err)
{
    struct hm_row *p = NULL, *q = NULL;
    struct hm_proposals proposals = {.kind = how->proposal, .token = node->children, .count = node->child_count};
    struct hm_speculative_draws draws = {how->seed, node->sequence, node->t};
    hm_status rc = hm_row_open(node->target, node->vocab, how->certify_temperature, &p, err);
    if (!rc && how->proposal == HM_PROPOSAL_IID) {
        if (node->draft) rc = hm_row_open(node->draft, node->vocab, how->certify_temperature, &q, err);
        else rc = hm_fail(err, HM_USAGE, "iid proposals: expected the draft's row, found none");
    }
    if (!rc) rc = relax(how, budget, p, q, node, &proposals.sure, out, err);
    if (!rc) rc = hm_speculate(p, q, &proposals, &draws, &out->child, &out->token, err);
    hm_row_close(p);
    hm_row_close(q);
    return rc;
}

// ---- all of them

hm_status hm_accept(const struct hm_acceptance *how, struct hm_budget *budget, const struct hm_accept_node *node,
                    struct hm_decision *out, struct hm_error *err)
{
    hm_status rc = HM_OK;
    if (budget && budget->kind == HM_BUDGET_NONE) budget = NULL;
    *out = (struct hm_decision){.token = -1, .child = -1, .support = node->vocab};
    if (is_stochastic(how) && node->child_count > 0) {
        rc = speculate(how, budget, node, out, err);
    } else {
        if (how->kind == HM_ACCEPT_RULE) rc = accept_by_rule(how, budget, node, out, err);
        if (!rc) rc = draw(how, node, out->child < 0, out, err);
        if (!rc && out->child >= 0) out->token = node->children[out->child];
    }
    for (size_t i = 0; i < node->child_count && how->kind == HM_ACCEPT_MATCH && !rc; i++)
        if (node->children[i] == out->token) out->child = (int64_t)i;
    if (budget) out->spent = budget->spent;
    return rc;
}

hm_status hm_accept_support(const struct hm_acceptance *how, const float *logits, size_t vocab, size_t *support,
                            struct hm_error *err)
{
    struct hm_row *row = NULL;
    *support = vocab;
    if (hm_rational_sign(how->temperature) == 0 || (how->top_k == 0 && !how->top_p)) return HM_OK;
    hm_status rc = hm_row_open(logits, vocab, how->temperature, &row, err);
    if (!rc) rc = hm_row_support(row, how->top_k, how->top_p, support, err);
    hm_row_close(row);
    return rc;
}

// ---- legal combinations

static hm_status check_stochastic(const struct hm_acceptance *how, struct hm_error *err)
{
    const char *name = how->kind == HM_ACCEPT_NUCLEUS ? "nucleus" : "standard";
    if (how->kind == HM_ACCEPT_NUCLEUS && (!how->rule || how->rule->kind != HM_RULE_NUCLEUS))
        return hm_fail(err, HM_USAGE, "--accept nucleus: expected a share, as in nucleus:9/10");
    if (hm_rational_sign(how->temperature) <= 0)
        return hm_fail(err, HM_USAGE, "--accept %s draws: expected --temperature above 0, found %g", name,
                       hm_rational_double(how->temperature));
    if (how->top_k > 0 || (how->top_p && mpq_cmp_ui(how->top_p->value, 1, 1) < 0))
        return hm_fail(err, HM_USAGE, "--accept %s compares whole distributions: expected none, found %s", name,
                       how->top_k > 0 ? "--top-k" : "--top-p");
    if (!mpq_equal(how->temperature->value, how->certify_temperature->value))
        return hm_fail(err, HM_USAGE, "--accept %s: expected --certify-temperature to be --temperature, %g, found %g", name,
                       hm_rational_double(how->temperature), hm_rational_double(how->certify_temperature));
    return HM_OK;
}

static hm_status check_budget(const struct hm_acceptance *how, const struct hm_budget *budget, struct hm_error *err)
{
    if (!budget || budget->kind == HM_BUDGET_NONE) return HM_OK;
    if (hm_rational_sign(&budget->limit) < 0)
        return hm_fail(err, HM_USAGE, "fidelity budget: expected a limit of at least 0, found %g", hm_rational_double(&budget->limit));
    if (budget->kind == HM_BUDGET_TV && how->kind != HM_ACCEPT_NUCLEUS)
        return hm_fail(err, HM_USAGE, "--tv-budget bounds what nucleus speculative decoding costs: expected --accept nucleus:P");
    if (budget->kind == HM_BUDGET_REGRET && how->kind != HM_ACCEPT_RULE)
        return hm_fail(err, HM_USAGE, "--regret-budget bounds what a deterministic rule costs: expected --accept with such a rule");
    if (budget->kind == HM_BUDGET_REGRET && hm_rational_sign(how->temperature) != 0)
        return hm_fail(err, HM_USAGE, "--regret-budget is for greedy decoding: expected --temperature 0, found %g",
                       hm_rational_double(how->temperature));
    return HM_OK;
}

hm_status hm_acceptance_check(const struct hm_acceptance *how, const struct hm_budget *budget, struct hm_error *err)
{
    if (how->kind == HM_ACCEPT_RULE && how->rule->kind == HM_RULE_NUCLEUS)
        return hm_fail(err, HM_USAGE, "--accept nucleus:P is nucleus speculative decoding, not a deterministic rule");
    if (!is_stochastic(how) && how->proposal == HM_PROPOSAL_IID)
        return hm_fail(err, HM_USAGE, "--proposal iid: expected --accept standard or nucleus:P; others want distinct children");
    hm_status rc = is_stochastic(how) ? check_stochastic(how, err) : HM_OK;
    return rc ? rc : check_budget(how, budget, err);
}
