// The radius of a decision: how much noise in the logits leaves it as it is. theory.md §6; see math.h.
#include "certify/check/math.h"

#include <math.h>

// Radii with a closed form, in logits: those of greedy, topm and multiplicative, and of an accepted token under
// additive.
bool ck_radius_is_closed(const struct ck_ask *ask, size_t rank)
{
    enum ck_rule_kind kind = ask->rule->kind;
    return kind == CK_GREEDY || kind == CK_TOPM || kind == CK_MULTIPLICATIVE ||
           ((kind == CK_ADDITIVE || kind == CK_TOPK_DELTA) && rank < ask->k);
}

// Half the distance between the logits at two positions; infinite when either is out of reach of noise.
static void half_gap(const struct ck_math *m, size_t upper, size_t lower, struct iv *out)
{
    const struct ck_row *r = &m->row[0];
    iv_point(out, INFINITY);
    if (lower >= r->finite) return;
    iv_point(out, r->logit[r->order[upper]]);
    mpfr_sub_d(out->lo, out->lo, r->logit[r->order[lower]], MPFR_RNDD);
    mpfr_sub_d(out->hi, out->hi, r->logit[r->order[lower]], MPFR_RNDU);
    iv_divide(out, out, 2);
}

// (T/2) ln[ (p_x + eps(1 - p_j)) / ((1 - eps) p_j) ], j the best other token.
static void additive_radius(struct ck_math *m, int level, const struct ck_ask *ask, size_t rank, struct iv *out)
{
    const struct ck_row *r = &m->row[0];
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    size_t other = rank == 0 ? 1 : 0;
    struct iv t[2];
    mpq_t q;
    iv_point(out, INFINITY);
    if (other >= r->finite) return;
    mpq_init(q);
    iv_inits(t, 2, ck_precision(level));
    iv_sub(&t[0], &d->sum, &d->e[r->order[other]]);
    iv_mul_q(&t[0], &t[0], ask->rule->a);
    iv_add(&t[0], &t[0], &d->e[ask->token]);
    mpq_set_ui(q, 1, 1);
    mpq_sub(q, q, ask->rule->a);
    iv_mul_q(&t[1], &d->e[r->order[other]], q);
    iv_div(&t[0], &t[0], &t[1]);
    iv_log(&t[0], &t[0]);
    mpq_inv(q, m->inverse_claim);
    iv_mul_q(out, &t[0], q);
    iv_divide(out, out, 2);
    iv_positive(out);
    iv_clears(t, 2);
    mpq_clear(q);
}

bool ck_radius(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    const struct ck_row *r = &m->row[0];
    size_t rank = r->rank[ask->token];
    bool in = rank < ask->k;
    struct iv t;
    mpq_t temperature;
    switch (ask->rule->kind) {
    case CK_TOPM:
    case CK_GREEDY:
        if (in && ask->k >= m->vocab)
            iv_point(out, INFINITY);
        else
            half_gap(m, in ? rank : ask->k - 1, in ? ask->k : rank, out);
        return true;
    case CK_MULTIPLICATIVE: // the gap to the best other token moves against T ln alpha
        if (in)
            half_gap(m, rank, rank == 0 ? 1 : 0, out);
        else
            half_gap(m, 0, rank, out);
        if (in && m->vocab == 1) iv_point(out, INFINITY);
        iv_inits(&t, 1, ck_precision(level));
        mpq_init(temperature);
        mpq_inv(temperature, m->inverse_claim);
        iv_set_q(&t, ask->rule->a);
        iv_log(&t, &t);
        mpfr_mul_q(t.lo, t.lo, temperature, MPFR_RNDD);
        mpfr_mul_q(t.hi, t.hi, temperature, MPFR_RNDU);
        iv_divide(&t, &t, 2);
        if (in)
            iv_sub(out, out, &t);
        else
            iv_add(out, out, &t);
        iv_positive(out);
        iv_clears(&t, 1);
        mpq_clear(temperature);
        return true;
    case CK_TOPK_DELTA:
    case CK_ADDITIVE:
        additive_radius(m, level, ask, rank, out);
        if (ask->rule->kind == CK_ADDITIVE || ask->rule->count >= m->vocab) return true;
        iv_inits(&t, 1, ck_precision(level));
        half_gap(m, rank, ask->rule->count, &t);
        mpfr_min(out->lo, out->lo, t.lo, MPFR_RNDD);
        mpfr_min(out->hi, out->hi, t.hi, MPFR_RNDU);
        iv_clears(&t, 1);
        return true;
    default: return false;
    }
}

// exp((logit - first + shift)/T) of a finite logit, in the units of the weights.
static void noisy(const struct ck_math *m, double logit, double shift, struct iv *out)
{
    double first = m->row[0].logit[m->row[0].order[0]];
    iv_point(out, logit);
    mpfr_sub_d(out->lo, out->lo, first, MPFR_RNDD);
    mpfr_sub_d(out->hi, out->hi, first, MPFR_RNDU);
    mpfr_add_d(out->lo, out->lo, shift, MPFR_RNDD);
    mpfr_add_d(out->hi, out->hi, shift, MPFR_RNDU);
    iv_mul_q(out, out, m->inverse_claim);
    iv_exp(out, out);
}

// The sign of a - b - distance, exactly.
static int compare_gap(double a, double b, double distance)
{
    mpfr_t d;
    mpfr_init2(d, 512); // holds any difference of floats
    mpfr_set_d(d, a, MPFR_RNDN);
    mpfr_sub_d(d, d, b, MPFR_RNDN);
    int sign = mpfr_cmp_d(d, distance);
    mpfr_clear(d);
    return sign;
}

// What is left, at noise eta, before the additive rule accepts x: p_1 - p_x - eps, times the noisy sum.
static void additive_slack(struct ck_math *m, const struct ck_ask *ask, double eta, struct iv *slack, struct iv *t)
{
    const struct ck_row *r = &m->row[0];
    double x = r->logit[ask->token], first = r->logit[r->order[0]];
    iv_point(&t[1], 0);
    iv_point(slack, 0);
    for (size_t j = 0; j < r->finite; j++) {
        double own = r->logit[r->order[j]];
        if (r->order[j] == ask->token)
            noisy(m, x, eta, &t[0]);
        else if (compare_gap(first, own, 2 * eta) <= 0)
            noisy(m, first, -eta, &t[0]);
        else
            noisy(m, own, eta, &t[0]);
        iv_add(&t[1], &t[1], &t[0]);
        if (r->order[j] == ask->token) iv_sub(slack, slack, &t[0]);
    }
    iv_mul_q(&t[1], &t[1], ask->rule->a);
    noisy(m, first, -eta, &t[0]);
    iv_add(slack, slack, &t[0]);
    iv_sub(slack, slack, &t[1]);
}

// What is left, at noise eta, before the nucleus turns its mind about x: tokens that may stand before x are raised (x
// in) or those that must are lowered (x out), and their mass is held against P times all. Jumps sit where a token
// changes sides; `after` looks just past eta, else just before it.
static void nucleus_slack(struct ck_math *m, const struct ck_ask *ask, double eta, bool after, struct iv *slack,
                          struct iv *t)
{
    const struct ck_row *r = &m->row[0];
    bool in = r->rank[ask->token] < ask->k;
    double x = r->logit[ask->token];
    mpq_t rest;
    iv_point(&t[1], 0); // before x
    iv_point(&t[2], 0); // the others
    for (size_t j = 0; j < r->finite; j++) {
        double own = r->logit[r->order[j]];
        int side = compare_gap(own, x, 2 * (in ? -eta : eta));
        bool before = r->order[j] != ask->token && (side > 0 || (side == 0 && in == after));
        if (in)
            noisy(m, own, before ? eta : -eta, &t[0]);
        else
            noisy(m, !before && own > x ? x : own, before ? -eta : eta, &t[0]);
        iv_add(&t[before ? 1 : 2], &t[before ? 1 : 2], &t[0]);
    }
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
    mpq_t n;
    if (ask->rule->kind == CK_NUCLEUS && r->rank[ask->token] < ask->k)
        return r->finite == 1 || mpq_cmp_ui(ask->rule->a, 1, 1) == 0;
    if (!isinf(r->logit[ask->token])) return false;
    if (ask->rule->kind != CK_ADDITIVE) return true; // topk-delta: it is beyond the first k0 or cannot be moved
    mpq_init(n);
    mpq_set_ui(n, r->finite, 1);
    mpq_mul(n, n, ask->rule->a);
    bool never = mpq_cmp_ui(n, 1, 1) < 0; // even equal logits leave p_1 above eps
    mpq_clear(n);
    return never;
}

enum answer ck_radius_between(struct ck_math *m, const struct ck_ask *ask, double lo, double hi)
{
    const struct ck_row *r = &m->row[0];
    size_t rank = r->rank[ask->token];
    if (isinf(lo) || isinf(hi)) return is_infinite(m, ask) ? YES : NO;
    for (int level = 0; level < CK_LEVELS; level++) {
        struct iv t[6]; // three temporaries, slack at lo and hi, the radius of topk-delta's count
        iv_inits(t, 6, ck_precision(level));
        for (int end = 0; end < 2; end++) {
            if (ask->rule->kind == CK_NUCLEUS)
                nucleus_slack(m, ask, end ? hi : lo, end, &t[3 + end], t);
            else
                additive_slack(m, ask, end ? hi : lo, &t[3 + end], t);
        }
        bool lo_holds = mpfr_sgn(t[3].lo) >= 0, lo_fails = mpfr_sgn(t[3].hi) < 0;
        bool hi_holds = mpfr_sgn(t[4].hi) <= 0, hi_fails = mpfr_sgn(t[4].lo) > 0;
        if (ask->rule->kind == CK_TOPK_DELTA && rank >= ask->rule->count) { // the larger of two, or the count's alone
            bool near = ck_member(m, &(struct ck_rule){.kind = CK_ADDITIVE, .a = {ask->rule->a[0]}}, rank) == YES;
            half_gap(m, ask->rule->count - 1, rank, &t[5]);
            bool lo_count = mpfr_cmp_d(t[5].lo, lo) >= 0, hi_count = mpfr_cmp_d(t[5].hi, hi) <= 0;
            lo_holds = (lo_holds && !near) || lo_count;
            lo_fails = (lo_fails || near) && mpfr_cmp_d(t[5].hi, lo) < 0;
            hi_holds = (hi_holds || near) && hi_count;
            hi_fails = (hi_fails && !near) || mpfr_cmp_d(t[5].lo, hi) > 0;
        }
        iv_clears(t, 6);
        if (lo_fails || hi_fails) return NO;
        if (lo_holds && hi_holds) return YES;
    }
    return OPEN;
}
