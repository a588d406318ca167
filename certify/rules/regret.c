// regret:R: -ln p_i <= R, that is t_i <= R - ln W, W the sum of the weights over that of the top.
#include "certify/rules/rules.h"

#include "bounds/ival_math.h"

#include <math.h>

// e^R is transcendental for a rational R but 0, so only a support of one token ties; R = 0 accepts nothing else, which no
// precision would tell where the other tokens weigh e^-5000.
static enum hm_verdict settle(const struct hm_rule *rule, const struct hm_row *row, size_t token)
{
    if (row->logits[token] == -INFINITY) return HM_NO;
    if (row->support == 1) return HM_YES;
    return mpq_sgn(rule->a.value) == 0 ? HM_NO : HM_UNDECIDED;
}

static struct hm_ival reach(const struct hm_rule *rule, struct hm_row *row)
{
    return hm_ival_sub(hm_ival_rational(rule->a.value), hm_filter_log_total(row));
}

static hm_status reach_exact(const struct hm_rule *rule, struct hm_row *row, mpfr_prec_t precision, struct hm_mpi *out,
                             struct hm_error *err)
{
    struct hm_mpi most;
    hm_mpi_init(&most, precision);
    hm_mpi_set_q(&most, rule->a.value);
    hm_status status = hm_reach_log_total_exact(row, precision, out, err);
    hm_mpi_sub(out, &most, out);
    hm_mpi_clear(&most);
    return status;
}

static const struct hm_threshold threshold = {settle, reach, reach_exact, .of_sums = true};

// As absolute with t = e^-R: p_x (1 - t) / (t (1 - p_x)) = (e^R - 1) p_x / (1 - p_x).
static void turn(const struct hm_steps *s, size_t j, struct hm_ratio *out)
{
    (void)j;
    bool fixed = s->row->support == 1 || s->rank >= s->row->support || mpq_sgn(s->rule->a.value) == 0;
    if (fixed) {
        out->kind = HM_RATIO_NEVER;
        return;
    }
    hm_ratio_above(out, s->rank, s->rank + 1);
    hm_term_also(hm_ratio_below(out, 0, s->rank), s->rank + 1, s->row->vocab);
    out->growth = s->rule->a.value;
    out->negate = !s->accepted;
}

static void radius(struct hm_steps *s)
{
    s->value = turn;
}

const struct hm_rule_ops hm_rule_regret = {
    .kind = HM_RULE_REGRET,
    .name = "regret",
    .usage = "regret:R with R >= 0",
    .rationals = 1,
    .zero = HM_END_CLOSED,
    .threshold = &threshold,
    .radius = radius,
    .bound = HM_BOUND_LEVEL,
};
