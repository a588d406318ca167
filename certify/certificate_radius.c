// Stability radii with a closed form (theory.md §6): greedy, top-m, multiplicative, and acceptance under additive. The
// others are not computed, and the claim says so.
#include "certify/certificate_state.h"

#include <math.h>

// (high - low)/2 + slack/2 for two logits, high >= low; a decision against a -inf logit cannot turn.
static void half_difference(float high, float low, const struct hm_mpi *slack, struct hm_mpi *out)
{
    if (low == -INFINITY) {
        mpfr_set_inf(out->lo, 1);
        mpfr_set_inf(out->hi, 1);
        return;
    }
    mpfr_t difference;
    mpfr_init2(difference, 288);
    mpfr_set_flt(difference, high, MPFR_RNDN);
    mpfr_sub_d(difference, difference, low, MPFR_RNDN); // exact
    hm_mpi_set_exact(out, difference);
    if (slack) hm_mpi_add(out, out, slack);
    hm_mpi_div_ui(out, out, 2);
    mpfr_clear(difference);
}

// The largest logit of the other tokens: the first of the order, or the second when x is the first.
static int32_t best_other(struct hm_row *row, int32_t x)
{
    return hm_row_token(row, hm_row_token(row, 0) == x ? 1 : 0);
}

// l_x - max others - T ln alpha inside, l_(1) + T ln alpha - l_x outside, halved.
static void multiplicative(const struct hm_rule *rule, struct hm_row *row, int32_t x, bool accepted, struct hm_mpi *out)
{
    struct hm_mpi slack;
    float l = row->logits[x];
    hm_mpi_init(&slack, mpfr_get_prec(out->lo));
    hm_mpi_set_q(&slack, rule->a.value);
    hm_mpi_log(&slack, &slack);
    hm_mpi_mul_q(&slack, &slack, row->temperature.value);
    if (accepted) {
        hm_mpi_neg(&slack, &slack);
        half_difference(l, row->logits[best_other(row, x)], &slack, out);
    } else {
        half_difference(row->top, l, &slack, out);
    }
    hm_mpi_clip_low(out, 0);
    hm_mpi_clear(&slack);
}

// x in A: (T/2) ln[ (p_x + eps (1 - p_j)) / ((1 - eps) p_j) ], j the best other token; 1 - p_j is a sum, not a
// difference, when j is the first of the order, and keeps half its bits otherwise.
static hm_status additive_inside(const struct hm_rule *rule, struct hm_row *row, int32_t x, mpfr_prec_t precision,
                                 struct hm_mpi *out, struct hm_error *err)
{
    int32_t j = best_other(row, x);
    if (row->logits[j] == -INFINITY) {
        mpfr_set_inf(out->lo, 1);
        mpfr_set_inf(out->hi, 1);
        return HM_OK;
    }
    hm_status status = hm_row_sums(row, precision, err);
    if (status) return status;
    struct hm_mpi rest, other;
    mpq_t keep;
    mpq_init(keep);
    mpq_set_ui(keep, 1, 1);
    mpq_sub(keep, keep, rule->a.value);
    hm_mpi_init(&rest, precision);
    hm_mpi_init(&other, precision);
    hm_weight(row->weights, (size_t)j, &other);
    if (j == hm_row_token(row, 0)) status = hm_row_tail(row, 1, precision, &rest, err);
    else hm_mpi_sub(&rest, &row->total, &other);
    hm_mpi_mul_q(&rest, &rest, rule->a.value);
    hm_weight(row->weights, (size_t)x, out);
    hm_mpi_add(out, out, &rest);
    hm_mpi_mul_q(&other, &other, keep);
    hm_mpi_div(out, out, &other);
    hm_mpi_log(out, out);
    hm_mpi_mul_q(out, out, row->temperature.value);
    hm_mpi_div_ui(out, out, 2);
    hm_mpi_clip_low(out, 0);
    mpq_clear(keep);
    hm_mpi_clear(&rest);
    hm_mpi_clear(&other);
    return status;
}

static void topm(const struct hm_rule *rule, struct hm_row *row, int32_t x, bool accepted, struct hm_mpi *out)
{
    float l = row->logits[x];
    if (!accepted) {
        half_difference(row->logits[hm_row_token(row, rule->count - 1)], l, NULL, out);
    } else if (rule->count >= row->vocab) {
        mpfr_set_inf(out->lo, 1);
        mpfr_set_inf(out->hi, 1);
    } else {
        half_difference(l, row->logits[hm_row_token(row, rule->count)], NULL, out);
    }
}

static hm_status radius_at(const struct hm_rule *rule, struct hm_row *row, int32_t x, bool accepted,
                           mpfr_prec_t precision, struct hm_mpi *out, bool *known, struct hm_error *err)
{
    float l = row->logits[x];
    switch (rule->kind) {
    case HM_RULE_GREEDY:
        if (accepted) half_difference(l, row->logits[hm_row_token(row, 1)], NULL, out);
        else half_difference(row->top, l, NULL, out);
        return HM_OK;
    case HM_RULE_TOPM:
        topm(rule, row, x, accepted, out);
        return HM_OK;
    case HM_RULE_MULTIPLICATIVE:
        multiplicative(rule, row, x, accepted, out);
        return HM_OK;
    case HM_RULE_ADDITIVE:
        if (accepted) return additive_inside(rule, row, x, precision, out, err);
        break;
    default:
        break;
    }
    *known = false;
    return HM_OK;
}

hm_status hm_claim_radius(const struct hm_rule *rule, struct hm_row *row, int32_t token, bool accepted,
                          struct hm_ival *out, bool *known, struct hm_error *err)
{
    hm_status status = HM_OK;
    bool done = false;
    *known = true;
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && !done; precision *= 2) {
        struct hm_mpi value;
        hm_mpi_init(&value, precision);
        status = radius_at(rule, row, token, accepted, precision, &value, known, err);
        if (status == HM_OK && *known) *out = hm_mpi_ival(&value);
        done = status != HM_OK || !*known || hm_mpi_narrow(&value);
        hm_mpi_clear(&value);
    }
    return status;
}
