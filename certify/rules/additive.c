// additive:EPS: p_i >= p_(1) - EPS, that is t_i <= -ln(1 - EPS W), W the sum of the weights over that of the top.
#include "certify/rules/rules.h"

#include "bounds/ival_math.h"

#include <math.h>

// n * share against 1 (n equally likely tokens).
static int against_one(size_t n, mpq_srcptr share)
{
    mpz_t product;
    mpz_init(product);
    mpz_mul_ui(product, mpq_numref(share), n);
    int result = mpz_cmp(product, mpq_denref(share));
    mpz_clear(product);
    return result;
}

static enum hm_verdict settle(const struct hm_rule *rule, const struct hm_row *row, size_t token)
{
    float l = row->logits[token];
    if (l == row->top) return HM_YES;
    if (mpq_sgn(rule->a.value) == 0) return HM_NO;
    if (l == -INFINITY && row->uniform) return against_one(row->support, rule->a.value) >= 0 ? HM_YES : HM_NO;
    return HM_UNDECIDED;
}

static struct hm_ival reach(const struct hm_rule *rule, struct hm_row *row)
{
    struct hm_ival share = hm_ival_div(row->filter.total, hm_filter_top(row));
    struct hm_ival least = hm_ival_sub(hm_ival_point(1), hm_ival_mul(hm_ival_rational(rule->a.value), share));
    if (least.hi <= 0) return hm_ival_point(INFINITY);
    if (least.lo < 0) least.lo = 0;
    return hm_ival_neg(hm_ival_log(least));
}

static hm_status reach_exact(const struct hm_rule *rule, struct hm_row *row, mpfr_prec_t precision, struct hm_mpi *out,
                             struct hm_error *err)
{
    hm_status status = hm_row_sums(row, precision, err);
    if (status) return status;
    struct hm_mpi slack;
    hm_mpi_init(&slack, precision);
    hm_mpi_mul_q(&slack, &row->total, rule->a.value);
    hm_mpi_set_ui(out, 1);
    hm_mpi_sub(out, out, &slack);
    hm_mpi_log(out, out); // ends <= 0 give -inf: then every token is accepted
    hm_mpi_neg(out, out);
    hm_mpi_clear(&slack);
    return HM_OK;
}

const struct hm_threshold hm_additive_threshold = {settle, reach, reach_exact, .of_sums = true};

// x in A: the best other token j rises, all others sink: (p_x + eps (1 - p_j)) / ((1 - eps) p_j).
static void turn_inside(const struct hm_steps *s, size_t j, struct hm_ratio *out)
{
    size_t other = s->rank == 0 ? 1 : 0;
    (void)j;
    if (hm_steps_logit(s, other) == -INFINITY) {
        out->kind = HM_RATIO_NEVER;
        return;
    }
    hm_ratio_above(out, s->rank, s->rank + 1);
    struct hm_term *rest = hm_ratio_above(out, other + 1, s->row->vocab), *best = hm_ratio_below(out, other, other + 1);
    if (other == 1) hm_term_also(rest, 0, 1);
    mpq_set(rest->times, s->rule->a.value);
    mpq_sub(best->times, best->times, s->rule->a.value);
}

// x out, with z = e^(2 eta/T): 1 - w_x z <= eps (w_x z + sum of min(w_i z, 1)) over the others, of which the first j
// have reached the sinking top: z >= (1 - j eps) / (w_x + eps (w_x + the others' weights)).
static void turn_outside(const struct hm_steps *s, size_t j, struct hm_ratio *out)
{
    if (against_one(j, s->rule->a.value) >= 0) {
        out->kind = HM_RATIO_AT_ONCE;
        return;
    }
    struct hm_term *top = hm_ratio_above(out, 0, 1);
    mpq_t lost;
    mpq_init(lost);
    mpq_set_ui(lost, j, 1);
    mpq_mul(lost, lost, s->rule->a.value);
    mpq_sub(top->times, top->times, lost);
    mpq_clear(lost);
    if (s->rank < s->row->support) hm_ratio_below(out, s->rank, s->rank + 1);
    mpq_set(hm_ratio_below(out, j, s->row->vocab)->times, s->rule->a.value);
}

static struct hm_gap border(const struct hm_steps *s, size_t j)
{
    return (struct hm_gap){s->row->top, hm_steps_logit(s, j - 1)};
}

static void distance_to_top(const struct hm_steps *s, size_t j, struct hm_ratio *out)
{
    (void)j;
    hm_ratio_gap(out, s->row->top, hm_steps_logit(s, s->rank));
}

static void radius(struct hm_steps *s)
{
    bool finite = s->rank < s->row->support;
    s->border = border;
    if (s->accepted) s->value = turn_inside;
    else if (mpq_sgn(s->rule->a.value) == 0) s->value = distance_to_top;
    else if (!finite && against_one(s->row->support, s->rule->a.value) < 0) s->value = hm_steps_never;
    else {
        s->value = turn_outside;
        s->first = 1;
        s->last = finite ? s->rank : s->row->support;
    }
}

const struct hm_rule_ops hm_rule_additive = {
    .kind = HM_RULE_ADDITIVE,
    .name = "additive",
    .usage = "additive:EPS with 0 <= EPS < 1",
    .rationals = 1,
    .zero = HM_END_CLOSED,
    .one = HM_END_OPEN,
    .threshold = &hm_additive_threshold,
    .radius = radius,
    .bound = HM_BOUND_DIFFERENCE,
};

const struct hm_rule_ops hm_rule_topk_delta = {
    .kind = HM_RULE_TOPK_DELTA,
    .name = "topk-delta",
    .usage = "topk-delta:K,DELTA with 1 <= K < 2^31 and 0 <= DELTA < 1",
    .counted = true,
    .rationals = 1,
    .zero = HM_END_CLOSED,
    .one = HM_END_OPEN,
    .threshold = &hm_additive_threshold,
    .radius = radius,
};
