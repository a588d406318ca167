// entropy:EPS,DELTA: p_i >= EPS or p_i >= DELTA exp(-H), that is t_i <= -ln EPS - ln W or t_i <= M - ln DELTA, with W the
// sum of the weights over that of the top and M the mean of t (ln W cancels). The smaller threshold is the one in force.
#include "certify/rules/rules.h"

#include "bounds/ival_math.h"

#include <math.h>

// All n finite logits equal: p_i = exp(-H) = 1/n. A logit of -inf reaches neither EPS > 0 nor DELTA exp(-H) > 0.
static enum hm_verdict settle(const struct hm_rule *rule, const struct hm_row *row, size_t token)
{
    if (row->logits[token] == -INFINITY) return HM_NO;
    if (!row->uniform) return HM_UNDECIDED;
    bool likely = mpq_cmp_ui(rule->a.value, 1, row->support) <= 0, typical = mpq_cmp_ui(rule->b.value, 1, 1) <= 0;
    return likely || typical ? HM_YES : HM_NO;
}

// Two tokens of the support keep both below 1, by however little.
static bool eps_is_out_of_reach(const struct hm_rule *rule, const struct hm_row *row)
{
    return mpq_cmp_ui(rule->a.value, 1, 1) >= 0 && row->support > 1;
}

static struct hm_ival reach_eps(const struct hm_rule *rule, struct hm_row *row)
{
    return hm_ival_neg(hm_ival_add(hm_ival_log(hm_ival_rational(rule->a.value)), hm_filter_log_total(row)));
}

static struct hm_ival reach_delta(const struct hm_rule *rule, struct hm_row *row)
{
    struct hm_ival mean = hm_ival_div(row->filter.moment, row->filter.total);
    return hm_ival_sub(mean, hm_ival_log(hm_ival_rational(rule->b.value)));
}

static struct hm_ival reach(const struct hm_rule *rule, struct hm_row *row)
{
    struct hm_ival delta = reach_delta(rule, row);
    return eps_is_out_of_reach(rule, row) ? delta : hm_ival_max(reach_eps(rule, row), delta);
}

static hm_status reach_eps_exact(const struct hm_rule *rule, struct hm_row *row, mpfr_prec_t precision,
                                 struct hm_mpi *out, struct hm_error *err)
{
    struct hm_mpi eps;
    hm_mpi_init(&eps, precision);
    hm_mpi_set_q(&eps, rule->a.value);
    hm_mpi_log(&eps, &eps);
    hm_status status = hm_reach_log_total_exact(row, precision, out, err);
    hm_mpi_add(out, out, &eps);
    hm_mpi_neg(out, out);
    hm_mpi_clear(&eps);
    return status;
}

static hm_status reach_delta_exact(const struct hm_rule *rule, struct hm_row *row, mpfr_prec_t precision,
                                   struct hm_mpi *out, struct hm_error *err)
{
    hm_status status = hm_row_sums(row, precision, err);
    if (status) return status;
    struct hm_mpi delta;
    hm_mpi_init(&delta, precision);
    hm_mpi_set_q(&delta, rule->b.value);
    hm_mpi_log(&delta, &delta);
    hm_mpi_div(out, &row->moment, &row->total);
    hm_mpi_sub(out, out, &delta);
    hm_mpi_clear(&delta);
    return HM_OK;
}

static hm_status reach_exact(const struct hm_rule *rule, struct hm_row *row, mpfr_prec_t precision, struct hm_mpi *out,
                             struct hm_error *err)
{
    struct hm_mpi eps;
    hm_status status = reach_delta_exact(rule, row, precision, out, err);
    if (status || eps_is_out_of_reach(rule, row)) return status;
    hm_mpi_init(&eps, precision);
    status = reach_eps_exact(rule, row, precision, &eps, err);
    if (mpfr_greater_p(eps.lo, out->lo)) mpfr_set(out->lo, eps.lo, MPFR_RNDD);
    if (mpfr_greater_p(eps.hi, out->hi)) mpfr_set(out->hi, eps.hi, MPFR_RNDU);
    hm_mpi_clear(&eps);
    return status;
}

static const struct hm_threshold threshold = {settle, reach, reach_exact, .of_sums = true};

// EPS <= DELTA exp(-H)?  The smaller threshold has the farther reach.
hm_status hm_entropy_least_is_eps(const struct hm_rule *rule, struct hm_row *row, enum hm_verdict *out, struct hm_error *err)
{
    if (row->uniform) { // EPS against DELTA/n
        mpq_t share;
        mpq_init(share);
        mpq_set_ui(share, row->support, 1);
        mpq_mul(share, share, rule->a.value);
        *out = mpq_cmp(share, rule->b.value) <= 0 ? HM_YES : HM_NO;
        mpq_clear(share);
        return HM_OK;
    }
    hm_status status = HM_OK;
    *out = HM_UNDECIDED;
    if (hm_filter_ready(row)) *out = hm_ival_nonnegative(hm_ival_sub(reach_eps(rule, row), reach_delta(rule, row)));
    for (mpfr_prec_t p = HM_PRECISION_FIRST; p <= HM_PRECISION_LAST && *out == HM_UNDECIDED && status == HM_OK; p *= 2) {
        struct hm_mpi eps, delta;
        hm_mpi_init(&eps, p);
        hm_mpi_init(&delta, p);
        status = reach_eps_exact(rule, row, p, &eps, err);
        if (status == HM_OK) status = reach_delta_exact(rule, row, p, &delta, err);
        hm_mpi_sub(&eps, &eps, &delta);
        if (status == HM_OK) *out = hm_mpi_nonnegative(&eps);
        hm_mpi_clear(&eps);
        hm_mpi_clear(&delta);
    }
    return status;
}

static void turn_eps(const struct hm_steps *s, size_t j, struct hm_ratio *out)
{
    (void)j;
    hm_ratio_share(s, s->rule->a.value, out);
}

// Accepted: the better of the branches that accept. Rejected: the worse of the two (theory.md §6).
static hm_status radius_least(const struct hm_steps *query, double *out, struct hm_error *err)
{
    struct hm_steps eps = *query;
    double likely, typical;
    eps.value = turn_eps; // asked from the side of the decision, a branch on the other side has radius 0
    hm_status status = hm_steps_least(&eps, &likely, err);
    if (status) return status;
    if (query->accepted && eps_is_out_of_reach(query->rule, query->row)) likely = 0; // it never accepts
    hm_entropy_radius_delta(query, &typical);
    *out = query->accepted == (likely > typical) ? likely : typical;
    return HM_OK;
}

const struct hm_rule_ops hm_rule_entropy = {
    .kind = HM_RULE_ENTROPY,
    .name = "entropy",
    .usage = "entropy:EPS,DELTA with EPS > 0 and DELTA > 0",
    .rationals = 2,
    .zero = HM_END_OPEN,
    .threshold = &threshold,
    .radius_least = radius_least,
    .bound = HM_BOUND_LEVEL,
};
