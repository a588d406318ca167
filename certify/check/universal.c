// Rule-universal bounds: from the rule's parameter and p_(1) alone. theory.md §3; see math.h.
#include "certify/check/math.h"

#include <math.h>

// The k = 1 margin bound at y: [(1 + m y) ln(1 + m y) + m (1 - y) ln(1 - y)] / (1 + m), or the reverse.
static void additive(const struct ck_ask *ask, int level, bool forward, struct iv *out)
{
    struct iv t[2];
    mpq_t q, one;
    iv_point(out, 0);
    if (mpq_sgn(ask->rule->a) == 0) return;
    mpq_inits(q, one, NULL);
    iv_inits(t, 2, ck_precision(level));
    mpq_set_ui(one, 1, 1);
    for (int i = 0; i < 2; i++) { // 1 + m y, then 1 - y
        mpq_set_ui(q, i ? 1 : ask->m, 1);
        mpq_mul(q, q, ask->rule->a);
        if (i)
            mpq_sub(q, one, q);
        else
            mpq_add(q, one, q);
        iv_set_q(&t[0], q);
        iv_log(&t[1], &t[0]);
        if (forward) iv_mul(&t[1], &t[1], &t[0]);
        if (i) iv_scale(&t[1], &t[1], ask->m);
        iv_add(out, out, &t[1]);
    }
    if (!forward) iv_negate(out);
    iv_divide(out, out, ask->m + 1);
    iv_positive(out);
    iv_clears(t, 2);
    mpq_clears(q, one, NULL);
}

// The threshold below which every rejected token lies, in units of weights.
static void threshold(struct ck_math *m, int level, const struct ck_rule *rule, struct iv *tau)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    struct iv t;
    iv_inits(&t, 1, ck_precision(level));
    if (rule->kind == CK_MULTIPLICATIVE) {
        iv_set_q(tau, rule->a);
    } else if (rule->kind == CK_REGRET) {
        iv_set_q(&t, rule->a);
        iv_negate(&t);
        iv_exp(tau, &t);
        iv_mul(tau, tau, &d->total);
    } else {
        iv_mul_q(tau, &d->total, rule->a);
        if (rule->kind == CK_ENTROPY) {
            ck_entropy(m, level, NULL, &t);
            iv_negate(&t);
            iv_exp(&t, &t);
            iv_mul_q(&t, &t, rule->b);
            iv_mul(&t, &t, &d->total);
            iv_min(tau, &t);
        }
    }
    iv_clears(&t, 1);
}

enum answer ck_has_universal(struct ck_math *m, const struct ck_rule *rule)
{
    const struct ck_row *r = &m->row[0];
    switch (rule->kind) {
    case CK_ADDITIVE:
    case CK_MULTIPLICATIVE: return YES;
    case CK_ENTROPY:
        if (!ck_uniform(r) && mpq_cmp_ui(rule->b, 1, 1) <= 0) return YES; // p_(1) > exp(-H)
        if (!ck_uniform(r)) break;
        return ck_compare_product(r->finite, rule->a, 1) < 0 || mpq_cmp_ui(rule->b, 1, 1) < 0 ? YES : NO;
    case CK_ABSOLUTE: // of n equal tokens and a tail, p_(1) < 1/n
        if (!ck_uniform(r) && ck_compare_product(r->first[1], rule->a, 1) == 0) return NO;
        if (!ck_uniform(r)) break;
        return ck_compare_product(r->finite, rule->a, 1) < 0 ? YES : NO;
    case CK_REGRET:
        if (r->finite > 1) break;
        return mpq_sgn(rule->a) > 0 ? YES : NO;
    default: return NO;
    }
    enum answer below = OPEN; // p_(1) > tau
    for (int level = m->first_level; level < CK_LEVELS && below == OPEN; level++) {
        struct iv t[2];
        iv_inits(t, 2, ck_precision(level));
        iv_point(&t[1], 1);
        threshold(m, level, rule, &t[0]);
        below = iv_less(&t[0], &t[1]);
        iv_clears(t, 2);
    }
    return below;
}

// Weights: 1 for the first, s = min(tau, (total - 1)/m) for m more.
static bool spread(struct ck_math *m, int level, const struct ck_ask *ask, bool forward, struct iv *out)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    struct iv t[6]; // s; a temporary; the rest of the mass; what is left of it; the first weight; the level
    iv_inits(t, 6, ck_precision(level));
    iv_point(&t[4], 1);
    iv_point(out, 0);
    ck_sum_order(d, 1, d->row->finite, &t[2]);
    threshold(m, level, ask->rule, &t[0]);
    iv_scale(&t[1], &t[0], ask->m);
    iv_sub(&t[3], &t[2], &t[1]); // total - 1 - m tau, where that is positive
    iv_positive(&t[3]);
    iv_divide(&t[1], &t[2], ask->m);
    iv_min(&t[0], &t[1]);
    bool certain = mpq_cmp_ui(ask->rule->a, 1, 1) != 0 || ask->rule->kind != CK_MULTIPLICATIVE;
    if (!certain) { // alpha = 1: s is the first weight itself when the rest is m of it at least
        iv_scale(&t[5], &t[4], ask->m);
        enum answer enough = d->row->classes == 1 ? (d->row->finite > ask->m ? YES : NO) : iv_at_least(&t[2], &t[5]);
        if (enough != NO) {
            iv_clears(t, 6);
            return enough == YES;
        }
    }
    iv_scale(&t[5], &t[0], ask->m);
    iv_add(&t[5], &t[5], &t[4]);
    iv_divide(&t[5], &t[5], ask->m + 1);
    if (forward) { // ln(1/c) + m s ln(s/c)
        iv_log(&t[5], &t[5]);
        if (mpfr_sgn(t[0].hi) > 0) {
            iv_log(&t[1], &t[0]);
            iv_sub(&t[1], &t[1], &t[5]);
            iv_mul(&t[1], &t[1], &t[0]);
            iv_scale(&t[1], &t[1], ask->m);
        } else {
            iv_point(&t[1], 0);
        }
        iv_sub(out, &t[1], &t[5]);
        iv_div(out, out, &d->total);
    } else if (mpfr_sgn(t[0].hi) == 0) {
        iv_point(out, INFINITY);
    } else { // -ln of what is left and (1 + m) s^(m/(1 + m))
        iv_log(&t[1], &t[0]);
        iv_scale(&t[1], &t[1], ask->m);
        iv_divide(&t[1], &t[1], ask->m + 1);
        iv_exp(&t[1], &t[1]);
        iv_scale(&t[1], &t[1], ask->m + 1);
        iv_add(&t[1], &t[1], &t[3]);
        iv_div(&t[1], &t[1], &d->total);
        iv_log(out, &t[1]);
        iv_negate(out);
    }
    iv_positive(out);
    iv_clears(t, 6);
    return true;
}

bool ck_universal_klf(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    if (ask->rule->kind != CK_ADDITIVE) return spread(m, level, ask, true, out);
    additive(ask, level, true, out);
    return true;
}

bool ck_universal_klr(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    if (ask->rule->kind != CK_ADDITIVE) return spread(m, level, ask, false, out);
    additive(ask, level, false, out);
    return true;
}
