// The radius of a decision, where it has a closed form: how much noise in the logits leaves it as it is. theory.md §6;
// see math.h.
#include "certify/check/noise.h"

#include <math.h>

bool ck_radius_is_bound(const struct ck_ask *ask, size_t rank)
{
    enum ck_rule_kind kind = ask->rule->kind;
    return kind == CK_ENTROPY || ((kind == CK_TOPK_DELTA || kind == CK_TOPK_RATIO) && rank >= ask->k);
}

bool ck_radius_is_closed(const struct ck_ask *ask, size_t rank)
{
    enum ck_rule_kind kind = ask->rule->kind;
    return kind == CK_GREEDY || kind == CK_TOPM || kind == CK_MULTIPLICATIVE || kind == CK_ABSOLUTE ||
           kind == CK_REGRET || kind == CK_TOPK_RATIO || (kind == CK_ADDITIVE && mpq_sgn(ask->rule->a) == 0) ||
           ((kind == CK_ADDITIVE || kind == CK_TOPK_DELTA) && rank < ask->k);
}

// Half the distance between the logits at two positions; infinite when either is out of reach of noise.
void ck_half_gap(const struct ck_math *m, size_t upper, size_t lower, struct iv *out)
{
    iv_point(out, INFINITY);
    if (lower >= m->row[0].finite) return;
    ck_logit_gap(&m->row[0], upper, lower, out);
    iv_divide(out, out, 2);
}

// (T/2) times a logarithm of a ratio of odds.
static void half_temperature(const struct ck_math *m, struct iv *out)
{
    mpq_t temperature;
    mpq_init(temperature);
    mpq_inv(temperature, m->inverse_claim);
    iv_mul_q(out, out, temperature);
    iv_divide(out, out, 2);
    mpq_clear(temperature);
}

// (T/2) ln[ (p_x + eps(1 - p_j)) / ((1 - eps) p_j) ], j the best other token.
static void additive_radius(struct ck_math *m, int level, const struct ck_ask *ask, size_t rank, struct iv *out)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    size_t other = rank == 0 ? 1 : 0;
    struct iv t[2];
    mpq_t q;
    iv_point(out, INFINITY);
    if (other >= d->row->finite) return;
    mpq_init(q);
    iv_inits(t, 2, ck_precision(level));
    ck_sum_order(d, 0, other, &t[0]);
    ck_sum_order(d, other + 1, d->row->finite, &t[1]);
    iv_add(&t[0], &t[0], &t[1]);
    iv_mul_q(&t[0], &t[0], ask->rule->a);
    ck_weight(d, ask->token, &t[1]);
    iv_add(&t[0], &t[0], &t[1]);
    mpq_set_ui(q, 1, 1);
    mpq_sub(q, q, ask->rule->a);
    ck_weight(d, d->row->order[other], &t[1]);
    iv_mul_q(&t[1], &t[1], q);
    iv_div(out, &t[0], &t[1]);
    iv_log(out, out);
    half_temperature(m, out);
    iv_positive(out);
    iv_clears(t, 2);
    mpq_clear(q);
}

// The gap to the best other token against T ln alpha; negative when the decision is the other one.
void ck_ratio_radius(struct ck_math *m, int level, const struct ck_ask *ask, bool in, struct iv *out)
{
    size_t rank = m->row[0].rank[ask->token];
    struct iv t;
    if (in)
        ck_half_gap(m, rank, rank == 0 ? 1 : 0, out);
    else
        ck_half_gap(m, 0, rank, out);
    if (in && m->vocab == 1) iv_point(out, INFINITY);
    if (in && rank > 0) { // the other is above: the distance is negative or 0
        ck_logit_gap(&m->row[0], rank, 0, out);
        iv_divide(out, out, 2);
    }
    iv_inits(&t, 1, ck_precision(level));
    iv_set_q(&t, ask->rule->a);
    iv_log(&t, &t);
    half_temperature(m, &t);
    if (in)
        iv_sub(out, out, &t);
    else
        iv_add(out, out, &t);
    iv_clears(&t, 1);
}

// (T/2) ln[ p_x (1 - t) / (t (1 - p_x)) ] with t the rule's, or e^-r: positive where x is accepted.
void ck_odds_radius(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    const struct ck_row *r = d->row;
    const struct ck_rule *rule = ask->rule;
    size_t rank = r->rank[ask->token];
    bool regret = rule->kind == CK_REGRET;
    bool whole = regret ? mpq_sgn(rule->a) == 0 : mpq_cmp_ui(rule->a, 1, 1) >= 0; // t = 1
    iv_point(out, -INFINITY);
    if (rank < r->finite && r->finite == 1 && (regret || mpq_cmp_ui(rule->a, 1, 1) <= 0)) iv_point(out, INFINITY);
    if (rank >= r->finite || r->finite == 1 || whole) return;
    iv_point(out, 0);
    if (!regret && ck_uniform(r) && ck_compare_product(r->finite, rule->a, 1) == 0) return;
    struct iv t[2];
    iv_inits(t, 2, ck_precision(level));
    ck_sum_order(d, 0, rank, &t[0]);
    ck_sum_order(d, rank + 1, r->finite, &t[1]);
    iv_add(&t[0], &t[0], &t[1]);
    iv_log(&t[0], &t[0]);
    ck_class_z(d, r->class_of[ask->token], out);
    iv_sub(out, out, &t[0]);
    iv_set_q(&t[0], rule->a);
    if (regret) { // (1 - t)/t = e^r - 1
        iv_expm1(&t[0], &t[0]);
    } else {
        mpq_t q;
        mpq_init(q);
        mpq_set_ui(q, 1, 1);
        mpq_sub(q, q, rule->a);
        mpq_div(q, q, rule->a);
        iv_set_q(&t[0], q);
        mpq_clear(q);
    }
    iv_log(&t[0], &t[0]);
    iv_add(out, out, &t[0]);
    half_temperature(m, out);
    iv_clears(t, 2);
}

bool ck_radius(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    size_t rank = m->row[0].rank[ask->token];
    bool in = rank < ask->k;
    struct iv t;
    switch (ask->rule->kind) {
    case CK_TOPM:
    case CK_GREEDY:
        if (in && ask->k >= m->vocab)
            iv_point(out, INFINITY);
        else
            ck_half_gap(m, in ? rank : ask->k - 1, in ? ask->k : rank, out);
        return true;
    case CK_ABSOLUTE:
    case CK_REGRET:
        ck_odds_radius(m, level, ask, out);
        if (!in) iv_negate(out);
        iv_positive(out);
        return true;
    case CK_MULTIPLICATIVE:
        ck_ratio_radius(m, level, ask, in, out);
        iv_positive(out);
        return true;
    case CK_TOPK_RATIO:
    case CK_TOPK_DELTA:
    case CK_ADDITIVE:
        if (ask->rule->kind == CK_TOPK_RATIO)
            ck_ratio_radius(m, level, ask, true, out);
        else if (!in) // additive with eps = 0
            ck_half_gap(m, 0, rank, out);
        else
            additive_radius(m, level, ask, rank, out);
        iv_positive(out);
        if (ask->rule->kind == CK_ADDITIVE || ask->rule->count >= m->vocab) return true;
        iv_inits(&t, 1, ck_precision(level));
        ck_half_gap(m, rank, ask->rule->count, &t);
        iv_min(out, &t);
        iv_clears(&t, 1);
        return true;
    default: return false;
    }
}
