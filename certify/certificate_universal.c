// Rule-universal bounds (theory.md §3): what the rule's parameter and p_(1) alone say of KLf* and KLr*, in the forms in
// which nothing cancels: in double intervals, or with MPFR where those are too wide.
//
// For rules whose rejected tokens all lie below p_(1) e^-reach: with weights over the top's, W their sum, s = min(e^-reach,
// (W - 1)/m) and c = (1 + m s)/(1 + m), KLf* >= (f(1, c) + m f(s, c))/W with f(p, t) = p E(t/p - 1), E(v) = v - ln(1+v);
// KLr* >= -ln(1 - Q/W), Q = g (X(-m b) + m X(b)) with b = -ln(s)/(1 + m), g = e^(-m b) and X(u) = e^-u - 1 + u.
#include "certify/certificate_state.h"

#include "bounds/ival_math.h"
#include "certify/rules/rules.h"

#include <math.h>

// ---- additive: the k = 1 bound at y = eps

// psi(v) = (1+v) ln(1+v) - v = (1+v) E(-v/(1+v)).
static struct hm_ival psi(struct hm_ival v)
{
    struct hm_ival sum = hm_ival_add(hm_ival_point(1), v);
    return hm_ival_mul(sum, hm_ival_log_excess(hm_ival_neg(hm_ival_div(v, sum))));
}

static void difference(mpq_srcptr eps, size_t m, struct hm_universal *out)
{
    struct hm_ival y = hm_ival_rational(eps), n = hm_ival_point((double)m), all = hm_ival_add(n, hm_ival_point(1));
    struct hm_ival up = hm_ival_mul(n, y), down = hm_ival_neg(y);
    out->klf = hm_ival_div(hm_ival_add(psi(up), hm_ival_mul(n, psi(down))), all);
    out->klr = hm_ival_div(hm_ival_add(hm_ival_log_excess(up), hm_ival_mul(n, hm_ival_log_excess(down))), all);
}

static void psi_exact(const struct hm_mpi *v, struct hm_mpi *out)
{
    struct hm_mpi sum;
    hm_mpi_init(&sum, mpfr_get_prec(out->lo));
    hm_mpi_set_ui(&sum, 1);
    hm_mpi_add(&sum, &sum, v);
    hm_mpi_div(out, v, &sum);
    hm_mpi_neg(out, out);
    hm_mpi_log_excess(out, out);
    hm_mpi_mul(out, out, &sum);
    hm_mpi_clear(&sum);
}

static bool difference_exact(mpq_srcptr eps, size_t m, mpfr_prec_t precision, struct hm_universal *out)
{
    struct hm_mpi up, down, klf, klr, term;
    struct hm_mpi *all[] = {&up, &down, &klf, &klr, &term};
    for (int i = 0; i < 5; i++) hm_mpi_init(all[i], precision);
    hm_mpi_set_q(&down, eps);
    hm_mpi_mul_ui(&up, &down, m);
    hm_mpi_neg(&down, &down);
    psi_exact(&down, &term);
    hm_mpi_mul_ui(&term, &term, m);
    psi_exact(&up, &klf);
    hm_mpi_add(&klf, &klf, &term);
    hm_mpi_div_ui(&klf, &klf, m + 1);
    hm_mpi_log_excess(&term, &down);
    hm_mpi_mul_ui(&term, &term, m);
    hm_mpi_log_excess(&klr, &up);
    hm_mpi_add(&klr, &klr, &term);
    hm_mpi_div_ui(&klr, &klr, m + 1);
    bool narrow = hm_mpi_narrow(&klf) && hm_mpi_narrow(&klr);
    *out = (struct hm_universal){hm_mpi_ival(&klf), hm_mpi_ival(&klr)};
    for (int i = 0; i < 5; i++) hm_mpi_clear(all[i]);
    return narrow;
}

// ---- rules with a reach

// The bound in doubles, given W over the top's weight, W - 1 likewise and the reach.
static void level(struct hm_ival total, struct hm_ival rest, struct hm_ival reach, size_t m, struct hm_universal *out)
{
    struct hm_ival one = hm_ival_point(1), n = hm_ival_point((double)m), all = hm_ival_add(n, one);
    struct hm_ival share = hm_ival_div(rest, n); // (W - 1)/m
    struct hm_ival s = hm_ival_min(hm_ival_exp(hm_ival_neg(reach)), share);
    struct hm_ival r = hm_ival_max(reach, hm_ival_neg(hm_ival_log(share))); // -ln s
    if (r.lo < 0) r.lo = 0;                                                 // s <= 1
    struct hm_ival lost = hm_ival_drop(r);                                  // 1 - s
    struct hm_ival top = hm_ival_log_excess(hm_ival_neg(hm_ival_mul(hm_ival_div(n, all), lost)));
    struct hm_ival low = hm_ival_mul(s, hm_ival_log_excess(hm_ival_div(lost, hm_ival_mul(all, s))));
    out->klf = hm_ival_div(hm_ival_add(top, hm_ival_mul(n, low)), total);
    struct hm_ival b = hm_ival_div(r, all), a = hm_ival_mul(n, b), g = hm_ival_exp(hm_ival_neg(a));
    struct hm_ival q = hm_ival_add(hm_ival_exp_excess(hm_ival_neg(a)), hm_ival_mul(n, hm_ival_exp_excess(b)));
    struct hm_ival near = hm_ival_neg(hm_ival_log1p(hm_ival_neg(hm_ival_div(hm_ival_mul(g, q), total))));
    // W - Q = (W - 1 - m s) + (1 + m) g, both terms >= 0
    struct hm_ival kept = hm_ival_sub(rest, hm_ival_mul(n, s));
    if (kept.lo < 0) kept.lo = 0;
    if (kept.hi < 0) kept.hi = 0;
    kept = hm_ival_add(kept, hm_ival_mul(all, g));
    struct hm_ival far = hm_ival_neg(hm_ival_log(hm_ival_div(kept, total)));
    out->klr = hm_ival_meet(near, far);
    if (out->klf.lo < 0) out->klf.lo = 0;
    if (out->klr.lo < 0) out->klr.lo = 0;
}

// The same with MPFR; -ln s and 1 - s from the reach or from (W - 1)/m, whichever is smaller.
static bool level_exact(const struct hm_mpi *total, const struct hm_mpi *rest, const struct hm_mpi *reach, size_t m,
                        struct hm_universal *out)
{
    mpfr_prec_t precision = mpfr_get_prec(reach->lo);
    struct hm_mpi s, r, lost, klf, klr, a, b, g, kept, term;
    struct hm_mpi *all[] = {&s, &r, &lost, &klf, &klr, &a, &b, &g, &kept, &term};
    for (int i = 0; i < 10; i++) hm_mpi_init(all[i], precision);
    hm_mpi_div_ui(&s, rest, m);
    hm_mpi_log(&r, &s);
    hm_mpi_neg(&r, &r);
    if (mpfr_greater_p(reach->lo, r.lo)) mpfr_set(r.lo, reach->lo, MPFR_RNDD);
    if (mpfr_greater_p(reach->hi, r.hi)) mpfr_set(r.hi, reach->hi, MPFR_RNDU);
    hm_mpi_clip_low(&r, 0);
    hm_mpi_neg(&s, &r);
    hm_mpi_expm1(&lost, &s);
    hm_mpi_neg(&lost, &lost);
    hm_mpi_exp(&s, &s);
    hm_mpi_mul_ui(&term, &lost, m); // f(1, c)
    hm_mpi_div_ui(&term, &term, m + 1);
    hm_mpi_neg(&term, &term);
    hm_mpi_log_excess(&klf, &term);
    if (mpfr_sgn(s.hi) > 0) { // m f(s, c); m c where s = 0
        hm_mpi_mul_ui(&a, &s, m + 1);
        hm_mpi_div(&term, &lost, &a);
        hm_mpi_log_excess(&term, &term);
        hm_mpi_mul(&term, &term, &s);
    } else {
        hm_mpi_div_ui(&term, &lost, m + 1);
    }
    hm_mpi_mul_ui(&term, &term, m);
    hm_mpi_add(&klf, &klf, &term);
    hm_mpi_div(&klf, &klf, total);
    hm_mpi_div_ui(&b, &r, m + 1);
    hm_mpi_mul_ui(&a, &b, m);
    hm_mpi_neg(&a, &a);
    hm_mpi_exp(&g, &a);
    hm_mpi_exp_excess(&klr, &a);
    hm_mpi_exp_excess(&term, &b);
    hm_mpi_mul_ui(&term, &term, m);
    hm_mpi_add(&klr, &klr, &term);
    hm_mpi_mul(&klr, &klr, &g);
    hm_mpi_div(&klr, &klr, total);
    bool far = !(mpfr_cmp_d(klr.hi, 0.5) < 0);
    if (far) {
        hm_mpi_mul_ui(&term, &s, m);
        hm_mpi_sub(&kept, rest, &term);
        hm_mpi_clip_low(&kept, 0);
        hm_mpi_mul_ui(&term, &g, m + 1);
        hm_mpi_add(&kept, &kept, &term);
        hm_mpi_div(&klr, &kept, total);
        hm_mpi_log(&klr, &klr);
    } else {
        hm_mpi_neg(&klr, &klr);
        hm_mpi_log1p(&klr, &klr);
    }
    hm_mpi_neg(&klr, &klr);
    hm_mpi_clip_low(&klf, 0);
    hm_mpi_clip_low(&klr, 0);
    bool narrow = hm_mpi_narrow(&klf) && hm_mpi_narrow(&klr);
    *out = (struct hm_universal){hm_mpi_ival(&klf), hm_mpi_ival(&klr)};
    for (int i = 0; i < 10; i++) hm_mpi_clear(all[i]);
    return narrow;
}

// One try; precision 0: in doubles. *narrow: keep the answer; *above: is the first token above the threshold?
static hm_status reach_at(const struct hm_rule *rule, struct hm_row *row, size_t m, mpfr_prec_t precision,
                          struct hm_universal *out, enum hm_verdict *above, bool *narrow, struct hm_error *err)
{
    const struct hm_threshold *threshold = hm_rule_ops_of(rule->kind)->threshold;
    if (precision == 0) {
        struct hm_ival top = hm_filter_top(row), reach = threshold->reach(rule, row);
        *above = reach.lo > 0 ? HM_YES : reach.hi <= 0 ? HM_NO : HM_UNDECIDED;
        level(hm_ival_div(row->filter.total, top), hm_ival_div(hm_filter_tail(row, 1), top), reach, m, out);
        *narrow = hm_ival_narrow(out->klf) && hm_ival_narrow(out->klr);
        return HM_OK;
    }
    struct hm_mpi rest, reach;
    hm_mpi_init(&rest, precision);
    hm_mpi_init(&reach, precision);
    hm_status status = threshold->reach_exact(rule, row, precision, &reach, err);
    if (status == HM_OK) status = hm_row_sums(row, precision, err);
    if (status == HM_OK) status = hm_row_tail(row, 1, precision, &rest, err);
    if (status == HM_OK) {
        *above = mpfr_sgn(reach.lo) > 0 ? HM_YES : mpfr_sgn(reach.hi) <= 0 ? HM_NO : HM_UNDECIDED;
        *narrow = level_exact(&row->total, &rest, &reach, m, out);
    }
    hm_mpi_clear(&rest);
    hm_mpi_clear(&reach);
    return status;
}

static hm_status by_reach(const struct hm_rule *rule, struct hm_row *row, size_t m, struct hm_universal *out, bool *known,
                          struct hm_error *err)
{
    // At alpha = 1 the reach is 0, and the bound still holds: what is rejected lies below p_(1).
    bool always = rule->kind == HM_RULE_MULTIPLICATIVE;
    enum hm_verdict above = HM_UNDECIDED;
    hm_status status = HM_OK;
    *known = false;
    for (mpfr_prec_t p = hm_filter_ready(row) ? 0 : HM_PRECISION_FIRST; p <= HM_PRECISION_LAST; p = p ? 2 * p : HM_PRECISION_FIRST) {
        bool narrow = false;
        status = reach_at(rule, row, m, p, out, &above, &narrow, err);
        *known = status == HM_OK && narrow && (always || above == HM_YES);
        if (status || *known || (!always && above == HM_NO)) return status;
    }
    return status;
}

hm_status hm_claim_universal(const struct hm_rule *rule, struct hm_row *row, size_t m, struct hm_universal *out,
                             bool *known, struct hm_error *err)
{
    const struct hm_rule_ops *ops = hm_rule_ops_of(rule->kind);
    *known = false;
    if (!ops || ops->bound == HM_BOUND_NONE) return HM_OK;
    if (ops->bound == HM_BOUND_LEVEL) return by_reach(rule, row, m, out, known, err);
    difference(rule->a.value, m, out);
    *known = hm_ival_narrow(out->klf) && hm_ival_narrow(out->klr);
    for (mpfr_prec_t p = HM_PRECISION_FIRST; p <= HM_PRECISION_LAST && !*known; p *= 2)
        *known = difference_exact(rule->a.value, m, p, out);
    return HM_OK;
}
