// absolute:T: p_i >= T, that is t_i <= -ln T - ln W, W the sum of the weights over that of the top.
//
// This is the file to copy for a new lower level set (CONTRIBUTING.md).
#include "certify/rules/rules.h"

#include "bounds/ival_math.h"

#include <math.h>

// Ties: all n finite logits equal and n T = 1. At T = 1 only a support of one token is accepted, and no precision would
// tell it from a row whose other tokens weigh e^-5000.
static enum hm_verdict settle(const struct hm_rule *rule, const struct hm_row *row, size_t token)
{
    if (row->logits[token] == -INFINITY) return HM_NO;
    if (!row->uniform) return mpq_cmp_ui(rule->a.value, 1, 1) >= 0 ? HM_NO : HM_UNDECIDED;
    return mpq_cmp_ui(rule->a.value, 1, row->support) <= 0 ? HM_YES : HM_NO;
}

static struct hm_ival reach(const struct hm_rule *rule, struct hm_row *row)
{
    return hm_ival_neg(hm_ival_add(hm_ival_log(hm_ival_rational(rule->a.value)), hm_filter_log_total(row)));
}

static hm_status reach_exact(const struct hm_rule *rule, struct hm_row *row, mpfr_prec_t precision, struct hm_mpi *out,
                             struct hm_error *err)
{
    struct hm_mpi share;
    hm_mpi_init(&share, precision);
    hm_mpi_set_q(&share, rule->a.value);
    hm_mpi_log(&share, &share);
    hm_status status = hm_reach_log_total_exact(row, precision, out, err);
    hm_mpi_add(out, out, &share);
    hm_mpi_neg(out, out);
    hm_mpi_clear(&share);
    return status;
}

static const struct hm_threshold threshold = {settle, reach, reach_exact, .of_sums = true};

static void turn(const struct hm_steps *s, size_t j, struct hm_ratio *out)
{
    (void)j;
    hm_ratio_share(s, s->rule->a.value, out);
}

static void radius(struct hm_steps *s)
{
    s->value = turn;
}

const struct hm_rule_ops hm_rule_absolute = {
    .kind = HM_RULE_ABSOLUTE,
    .name = "absolute",
    .usage = "absolute:T with 0 < T <= 1",
    .rationals = 1,
    .zero = HM_END_OPEN,
    .one = HM_END_CLOSED,
    .threshold = &threshold,
    .radius = radius,
    .bound = HM_BOUND_LEVEL,
};
