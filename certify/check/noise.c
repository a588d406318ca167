// The radius of a decision, where it has no closed form: a sum at the noise that the log claims tells on which side of
// it the decision turns. theory.md §6; see math.h.
#include "certify/check/noise.h"

#include <math.h>

// exp(noise / T).
static void growth(const struct ck_math *m, double noise, struct iv *out)
{
    iv_point(out, noise);
    iv_mul_q(out, out, m->inverse_claim);
    iv_exp(out, out);
}

// The sign of the distance between two logits, a - b, less another, exactly.
static int compare_gap(double a, double b, double distance)
{
    mpfr_t d;
    mpfr_init2(d, CK_EXACT); // holds any difference of floats
    mpfr_set_d(d, a, MPFR_RNDN);
    mpfr_sub_d(d, d, b, MPFR_RNDN);
    int sign = mpfr_cmp_d(d, distance);
    mpfr_clear(d);
    return sign;
}

// How many tokens lie above `logit` by more than a distance, or by as much when `equal`: the first ones of the order.
static size_t tokens_above(const struct ck_row *r, double logit, double distance, bool equal)
{
    size_t low = 0, high = r->classes;
    while (low < high) {
        size_t c = low + (high - low) / 2;
        int sign = compare_gap(r->logit[r->order[r->first[c]]], logit, distance);
        if (sign > 0 || (sign == 0 && equal))
            low = c + 1;
        else
            high = c;
    }
    return r->first[low];
}

// Sum of the weights from one position to another, without that of the token at `but`.
static void sum_without(const struct ck_dist *d, size_t from, size_t to, size_t but, struct iv *sum)
{
    struct iv t;
    if (but < from || but >= to) {
        ck_sum_order(d, from, to, sum);
        return;
    }
    iv_inits(&t, 1, mpfr_get_prec(sum->lo));
    ck_sum_order(d, from, but, sum);
    ck_sum_order(d, but + 1, to, &t);
    iv_add(sum, sum, &t);
    iv_clears(&t, 1);
}

// What is left, at noise eta, before the additive rule accepts x: p_1 - p_x - eps, times the noisy sum. Tokens near the
// first are raised no further than it is lowered.
static void additive_slack(struct ck_math *m, int level, const struct ck_ask *ask, double eta, struct iv *slack,
                           struct iv *t)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    const struct ck_row *r = d->row;
    size_t rank = r->rank[ask->token], near = tokens_above(r, r->logit[r->order[0]], -2 * eta, true);
    growth(m, -eta, slack); // the first
    growth(m, eta, &t[2]);
    sum_without(d, near, r->finite, rank, &t[0]);
    iv_mul(&t[0], &t[0], &t[2]);
    iv_scale(&t[1], slack, near - (rank < near));
    iv_add(&t[1], &t[1], &t[0]);
    ck_weight(d, ask->token, &t[0]);
    iv_mul(&t[0], &t[0], &t[2]);
    iv_add(&t[1], &t[1], &t[0]);
    iv_mul_q(&t[1], &t[1], ask->rule->a);
    iv_sub(slack, slack, &t[0]);
    iv_sub(slack, slack, &t[1]);
}

// What is left, at noise eta, before the nucleus turns its mind about x: tokens that may stand before x are raised (x
// in) or those that must are lowered (x out), and their mass is held against P times all. Jumps sit where a token
// changes sides; `after` looks just past eta, else just before it.
static void nucleus_slack(struct ck_math *m, int level, const struct ck_ask *ask, double eta, bool after,
                          struct iv *slack, struct iv *t)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    const struct ck_row *r = d->row;
    size_t rank = r->rank[ask->token];
    bool in = rank < ask->k;
    size_t before = tokens_above(r, r->logit[ask->token], in ? -2 * eta : 2 * eta, in == after);
    size_t above = r->first[r->class_of[ask->token]]; // tokens likelier than x
    mpq_t rest;
    growth(m, in ? eta : -eta, &t[0]);
    sum_without(d, 0, before, rank, &t[1]);
    iv_mul(&t[1], &t[1], &t[0]);
    ck_weight(d, ask->token, &t[2]);
    if (!in && above > before) { // the others come no higher than x
        iv_scale(&t[2], &t[2], above - before + 1);
        before = above;
    }
    sum_without(d, before, r->finite, rank, slack);
    iv_add(&t[2], &t[2], slack);
    growth(m, in ? -eta : eta, &t[0]);
    iv_mul(&t[2], &t[2], &t[0]);
    mpq_init(rest);
    mpq_set_ui(rest, 1, 1);
    mpq_sub(rest, rest, ask->rule->a);
    iv_mul_q(&t[1], &t[1], rest);
    iv_mul_q(&t[2], &t[2], ask->rule->a);
    iv_sub(slack, in ? &t[2] : &t[1], in ? &t[1] : &t[2]);
    mpq_clear(rest);
}

static bool is_infinite(const struct ck_math *m, const struct ck_ask *ask)
{
    const struct ck_row *r = &m->row[0];
    size_t rank = r->rank[ask->token];
    if (ask->rule->kind == CK_NUCLEUS && rank < ask->k) return r->finite == 1 || mpq_cmp_ui(ask->rule->a, 1, 1) == 0;
    if (rank < r->finite) return false;
    if (ask->rule->kind == CK_NUCLEUS || (ask->rule->kind == CK_TOPK_DELTA && rank >= ask->rule->count)) return true;
    return ck_compare_product(r->finite, ask->rule->a, 1) < 0; // even equal logits leave p_1 above eps
}

enum answer ck_radius_between(struct ck_math *m, const struct ck_ask *ask, double lo, double hi)
{
    if (isinf(lo) || isinf(hi) || is_infinite(m, ask)) return isinf(lo) && is_infinite(m, ask) ? YES : NO;
    for (int level = m->first_level; level < CK_LEVELS; level++) {
        struct iv t[5]; // three temporaries, slack at lo and hi
        iv_inits(t, 5, ck_precision(level));
        for (int end = 0; end < 2; end++) {
            if (ask->rule->kind == CK_NUCLEUS)
                nucleus_slack(m, level, ask, end ? hi : lo, end, &t[3 + end], t);
            else
                additive_slack(m, level, ask, end ? hi : lo, &t[3 + end], t);
        }
        bool lo_holds = mpfr_sgn(t[3].lo) >= 0, lo_fails = mpfr_sgn(t[3].hi) < 0;
        bool hi_holds = mpfr_sgn(t[4].hi) <= 0, hi_fails = mpfr_sgn(t[4].lo) > 0;
        iv_clears(t, 5);
        if (lo_fails || hi_fails) return NO;
        if (lo_holds && hi_holds) return YES;
    }
    return OPEN;
}

// The least or the largest, over the noise of one token and of x, of e^d (v + d) with v = z - z_x + lambda +- s: an end
// of the range, or for the least the bottom of the curve. t: s, lambda, e^s, e^-s, z_x, then two temporaries.
static void extreme_term(const struct iv *z, bool least, struct iv *t, struct iv *out)
{
    iv_sub(&t[5], z, &t[4]);
    iv_add(&t[5], &t[5], &t[1]);
    if (least)
        iv_sub(&t[5], &t[5], &t[0]);
    else
        iv_add(&t[5], &t[5], &t[0]);
    iv_add(out, &t[5], &t[0]); // e^s (v + s)
    iv_mul(out, out, &t[2]);
    iv_sub(&t[6], &t[5], &t[0]); // e^-s (v - s)
    iv_mul(&t[6], &t[6], &t[3]);
    if (!least) {
        mpfr_max(out->lo, out->lo, t[6].lo, MPFR_RNDD);
        mpfr_max(out->hi, out->hi, t[6].hi, MPFR_RNDU);
        return;
    }
    iv_min(out, &t[6]);
    // The bottom -e^(-1-v) lies within the range when |1 + v| <= s, and below both ends wherever it lies.
    iv_point(&t[6], 1);
    iv_add(&t[6], &t[6], &t[5]);
    mpfr_t far;
    mpfr_init2(far, mpfr_get_prec(out->lo));
    mpfr_neg(far, t[0].hi, MPFR_RNDN);
    bool outside = mpfr_greaterequal_p(t[6].lo, t[0].hi) || mpfr_lessequal_p(t[6].hi, far);
    mpfr_neg(far, t[0].lo, MPFR_RNDN);
    bool inside = mpfr_lessequal_p(t[6].hi, t[0].lo) && mpfr_greaterequal_p(t[6].lo, far);
    mpfr_clear(far);
    if (outside) return;
    iv_negate(&t[6]);
    iv_exp(&t[6], &t[6]);
    iv_negate(&t[6]);
    mpfr_min(out->lo, out->lo, t[6].lo, MPFR_RNDD);
    if (inside) mpfr_min(out->hi, out->hi, t[6].hi, MPFR_RNDU);
}

// Does the delta branch of entropy hold (or fail) for every noise up to eta?  theory.md §6: one sum has a sign. NO: it
// has the other one, and so nothing is proved at this noise or above.
static enum answer branch_is_stable(struct ck_math *m, int level, const struct ck_ask *ask, double eta, bool holds)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    const struct ck_row *r = d->row;
    size_t own = r->class_of[ask->token];
    struct iv t[7], v[4]; // v: z of a class, a term, a weight, the sum
    iv_inits(t, 7, ck_precision(level));
    iv_inits(v, 4, ck_precision(level));
    iv_point(&t[0], eta);
    iv_mul_q(&t[0], &t[0], m->inverse_claim);
    iv_set_q(&t[1], ask->rule->b);
    iv_log(&t[1], &t[1]);
    growth(m, eta, &t[2]);
    growth(m, -eta, &t[3]);
    ck_class_z(d, own, &t[4]);
    for (size_t c = 0; c < r->classes; c++) {
        size_t others = r->first[c + 1] - r->first[c] - (c == own);
        if (others == 0) continue;
        ck_class_z(d, c, &v[0]);
        extreme_term(&v[0], !holds, t, &v[1]);
        ck_class_weight(d, c, &v[2]);
        iv_mul(&v[1], &v[1], &v[2]);
        iv_scale(&v[1], &v[1], others);
        iv_add(&v[3], &v[3], &v[1]);
    }
    iv_mul(&v[1], &t[1], &t[2]); // of x: lambda e^s or lambda e^-s
    iv_mul(&v[2], &t[1], &t[3]);
    if (holds) {
        mpfr_max(v[1].lo, v[1].lo, v[2].lo, MPFR_RNDD);
        mpfr_max(v[1].hi, v[1].hi, v[2].hi, MPFR_RNDU);
    } else {
        iv_min(&v[1], &v[2]);
    }
    ck_class_weight(d, own, &v[2]);
    iv_mul(&v[1], &v[1], &v[2]);
    iv_add(&v[3], &v[3], &v[1]);
    bool proved = holds ? mpfr_sgn(v[3].hi) <= 0 : mpfr_sgn(v[3].lo) > 0;
    bool not_so = holds ? mpfr_sgn(v[3].lo) > 0 : mpfr_sgn(v[3].hi) <= 0;
    iv_clears(t, 7);
    iv_clears(v, 4);
    return proved ? YES : not_so ? NO : OPEN;
}

// The branches of entropy: accepted, one that accepts must be stable; rejected, both. A bound that this construction
// does not prove is refused: docs/log.md `radius`.
static enum answer entropy_at_least(struct ck_math *m, int level, const struct ck_ask *ask, double lo, struct iv *t)
{
    const struct ck_row *r = &m->row[0];
    size_t rank = r->rank[ask->token];
    bool in = rank < ask->k;
    if (mpq_sgn(ask->rule->a) == 0 || mpq_sgn(ask->rule->b) == 0 || rank >= r->finite) return YES; // whatever the noise
    ck_odds_radius(m, level, ask, t);
    if (!in) iv_negate(t);
    enum answer eps = mpfr_cmp_d(t->lo, lo) >= 0 ? YES : mpfr_cmp_d(t->hi, lo) < 0 ? NO : OPEN;
    enum answer decided = in ? YES : NO; // by the branch at hand, whatever the other one does
    if (eps == decided) return decided;
    enum answer delta = branch_is_stable(m, level, ask, lo, in);
    if (delta == decided) return decided;
    return eps == OPEN || delta == OPEN ? OPEN : eps;
}

// Of the conditions that reject x, one alone must hold it for so long.
static enum answer topk_at_least(struct ck_math *m, int level, const struct ck_ask *ask, double lo, struct iv *t)
{
    const struct ck_row *r = &m->row[0];
    size_t rank = r->rank[ask->token];
    enum answer by_count = NO, by_mass;
    if (rank >= ask->rule->count) {
        ck_half_gap(m, ask->rule->count - 1, rank, &t[0]);
        by_count = mpfr_cmp_d(t[0].lo, lo) >= 0 ? YES : mpfr_cmp_d(t[0].hi, lo) < 0 ? NO : OPEN;
    }
    if (ask->rule->kind == CK_TOPK_RATIO || mpq_sgn(ask->rule->a) == 0) {
        if (ask->rule->kind == CK_TOPK_RATIO)
            ck_ratio_radius(m, level, ask, false, &t[0]);
        else
            ck_half_gap(m, 0, rank, &t[0]);
        by_mass = mpfr_cmp_d(t[0].lo, lo) >= 0 ? YES : mpfr_cmp_d(t[0].hi, lo) < 0 ? NO : OPEN;
    } else if (rank >= r->finite && ck_compare_product(r->finite, ask->rule->a, 1) < 0) {
        by_mass = YES;
    } else if (isinf(lo)) {
        by_mass = NO;
    } else {
        additive_slack(m, level, ask, lo, &t[3], t);
        by_mass = mpfr_sgn(t[3].lo) >= 0 ? YES : mpfr_sgn(t[3].hi) < 0 ? NO : OPEN;
    }
    if (by_count == YES || by_mass == YES) return YES;
    return by_count == OPEN || by_mass == OPEN ? OPEN : NO;
}

enum answer ck_radius_at_least(struct ck_math *m, const struct ck_ask *ask, double lo)
{
    enum answer answer = lo <= 0 ? YES : OPEN;
    for (int level = m->first_level; level < CK_LEVELS && answer == OPEN; level++) {
        struct iv t[4];
        iv_inits(t, 4, ck_precision(level));
        if (ask->rule->kind != CK_ENTROPY)
            answer = topk_at_least(m, level, ask, lo, t);
        else if (isinf(lo) && m->row[0].finite > 1 && mpq_sgn(ask->rule->a) != 0 && mpq_sgn(ask->rule->b) != 0 &&
                 m->row[0].rank[ask->token] < m->row[0].finite)
            answer = NO;
        else
            answer = entropy_at_least(m, level, ask, lo, t);
        iv_clears(t, 4);
    }
    return answer;
}
