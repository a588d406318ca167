// multiplicative:ALPHA: p_i >= ALPHA p_(1), that is t_i <= -ln ALPHA. One logarithm, no sum over the row.
#include "certify/rules/rules.h"

#include "bounds/ival_math.h"

#include <math.h>

static enum hm_verdict settle(const struct hm_rule *rule, const struct hm_row *row, size_t token)
{
    float l = row->logits[token];
    if (l == row->top) return HM_YES;
    return l == -INFINITY || mpq_cmp_ui(rule->a.value, 1, 1) == 0 ? HM_NO : HM_UNDECIDED;
}

static struct hm_ival reach(const struct hm_rule *rule, struct hm_row *row)
{
    (void)row;
    return hm_ival_neg(hm_ival_log(hm_ival_rational(rule->a.value)));
}

static hm_status reach_exact(const struct hm_rule *rule, struct hm_row *row, mpfr_prec_t precision, struct hm_mpi *out,
                             struct hm_error *err)
{
    (void)row, (void)precision, (void)err;
    hm_mpi_set_q(out, rule->a.value);
    hm_mpi_log(out, out);
    hm_mpi_neg(out, out);
    return HM_OK;
}

const struct hm_threshold hm_multiplicative_threshold = {settle, reach, reach_exact, .of_sums = false};

// The best other token comes up to p_x/ALPHA; or x comes up to ALPHA p_(1).
static void turn(const struct hm_steps *s, size_t j, struct hm_ratio *out)
{
    (void)j;
    float l = hm_steps_logit(s, s->rank);
    if (s->accepted) hm_ratio_gap(out, l, hm_steps_logit(s, s->rank == 0 ? 1 : 0));
    else hm_ratio_gap(out, s->row->top, l);
    struct hm_term *factor = s->accepted ? hm_ratio_below(out, 0, 1) : hm_ratio_above(out, 0, 1);
    mpq_set(factor->times, s->rule->a.value);
    if (s->accepted) hm_ratio_above(out, 0, 1);
    else hm_ratio_below(out, 0, 1);
}

static void radius(struct hm_steps *s)
{
    s->value = turn;
}

const struct hm_rule_ops hm_rule_multiplicative = {
    .kind = HM_RULE_MULTIPLICATIVE,
    .name = "multiplicative",
    .usage = "multiplicative:ALPHA with 0 < ALPHA <= 1",
    .rationals = 1,
    .zero = HM_END_OPEN,
    .one = HM_END_CLOSED,
    .threshold = &hm_multiplicative_threshold,
    .radius = radius,
    .bound = HM_BOUND_LEVEL,
};

const struct hm_rule_ops hm_rule_topk_ratio = {
    .kind = HM_RULE_TOPK_RATIO,
    .name = "topk-ratio",
    .usage = "topk-ratio:K,R with 1 <= K < 2^31 and 0 < R <= 1",
    .counted = true,
    .rationals = 1,
    .zero = HM_END_OPEN,
    .one = HM_END_CLOSED,
    .threshold = &hm_multiplicative_threshold,
    .radius = radius,
};
