// Rules on rows of real logits, straight from theory.md §1 in naive MPFR: for perturbed rows, whose logits are no floats.
#ifndef HM_TESTS_RULE_ORACLE_H
#define HM_TESTS_RULE_ORACLE_H

#include "certify/rule.h"

#include <mpfr.h>
#include <stdbool.h>
#include <stddef.h>

enum { BITS = 240, MOST = 400 };

struct reals {
    size_t vocab;
    mpfr_t l[MOST], p[MOST], entropy, work, other; // logits; probabilities; -inf is allowed
};

static inline void reals_init(struct reals *r)
{
    for (size_t i = 0; i < MOST; i++) mpfr_inits2(BITS, r->l[i], r->p[i], (mpfr_ptr)0);
    mpfr_inits2(BITS, r->entropy, r->work, r->other, (mpfr_ptr)0);
}

static inline void reals_clear(struct reals *r)
{
    for (size_t i = 0; i < MOST; i++) mpfr_clears(r->l[i], r->p[i], (mpfr_ptr)0);
    mpfr_clears(r->entropy, r->work, r->other, (mpfr_ptr)0);
}

static inline bool precedes(const struct reals *r, size_t a, size_t b)
{
    int order = mpfr_cmp(r->l[a], r->l[b]);
    return order > 0 || (order == 0 && a < b);
}

static inline void normalise(struct reals *r, mpq_srcptr temperature)
{
    size_t first = 0;
    for (size_t i = 1; i < r->vocab; i++)
        if (precedes(r, i, first)) first = i;
    mpfr_set_zero(r->work, 1);
    for (size_t i = 0; i < r->vocab; i++) {
        mpfr_sub(r->p[i], r->l[i], r->l[first], MPFR_RNDN);
        mpfr_div_q(r->p[i], r->p[i], temperature, MPFR_RNDN);
        mpfr_exp(r->p[i], r->p[i], MPFR_RNDN);
        mpfr_add(r->work, r->work, r->p[i], MPFR_RNDN);
    }
    mpfr_set_zero(r->entropy, 1);
    for (size_t i = 0; i < r->vocab; i++) {
        mpfr_div(r->p[i], r->p[i], r->work, MPFR_RNDN);
        if (mpfr_zero_p(r->p[i])) continue;
        mpfr_log(r->other, r->p[i], MPFR_RNDN);
        mpfr_mul(r->other, r->other, r->p[i], MPFR_RNDN);
        mpfr_sub(r->entropy, r->entropy, r->other, MPFR_RNDN);
    }
}

static inline bool accepts(struct reals *r, const struct hm_rule *rule, mpq_srcptr temperature, size_t x)
{
    normalise(r, temperature);
    size_t rank = 0, first = 0;
    mpfr_set_zero(r->work, 1); // mass before x
    for (size_t i = 0; i < r->vocab; i++) {
        if (precedes(r, i, first)) first = i;
        if (i == x || !precedes(r, i, x)) continue;
        rank++;
        mpfr_add(r->work, r->work, r->p[i], MPFR_RNDN);
    }
    bool listed = rule->count == 0 || rank < rule->count;
    switch (rule->kind) {
    case HM_RULE_GREEDY:
        return rank == 0;
    case HM_RULE_TOPM:
        return listed;
    case HM_RULE_ADDITIVE:
    case HM_RULE_TOPK_DELTA:
        mpfr_sub_q(r->other, r->p[first], rule->a.value, MPFR_RNDN);
        return listed && mpfr_greaterequal_p(r->p[x], r->other);
    case HM_RULE_MULTIPLICATIVE:
    case HM_RULE_TOPK_RATIO:
        mpfr_mul_q(r->other, r->p[first], rule->a.value, MPFR_RNDN);
        return listed && mpfr_greaterequal_p(r->p[x], r->other);
    case HM_RULE_NUCLEUS:
        if (mpq_cmp_ui(rule->a.value, 1, 1) >= 0) return !mpfr_zero_p(r->p[x]);
        return mpfr_cmp_q(r->work, rule->a.value) < 0;
    case HM_RULE_ABSOLUTE:
        return mpfr_cmp_q(r->p[x], rule->a.value) >= 0;
    case HM_RULE_REGRET:
        mpfr_log(r->other, r->p[x], MPFR_RNDN);
        mpfr_neg(r->other, r->other, MPFR_RNDN);
        return mpfr_cmp_q(r->other, rule->a.value) <= 0;
    case HM_RULE_ENTROPY:
        mpfr_neg(r->other, r->entropy, MPFR_RNDN);
        mpfr_exp(r->other, r->other, MPFR_RNDN);
        mpfr_mul_q(r->other, r->other, rule->b.value, MPFR_RNDN);
        return mpfr_cmp_q(r->p[x], rule->a.value) >= 0 || mpfr_greaterequal_p(r->p[x], r->other);
    }
    return false;
}

#endif
