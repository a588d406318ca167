// A claimed temperature held against greedy tokens: see compare.h and docs/compare.md "A claimed temperature".
//
// With f_t the first token of row t and p_t its probability, M = product of 1{x_t = f_t}/p_t over the rows that count is a
// martingale of mean 1 under the claim, whatever later rows owe to earlier tokens: P(M >= 1/a) <= a. If all x_t = f_t, then
// 1/M is the product of the p_t, and upper bounds of the p_t bound the p-value. Which rows count must not depend on their own
// token: only ranked entries are asked which token is first. Readers do not rank an emitted token that is the least of its
// list, which may leave a row open that would count with its first token emitted: such a token counts as not first.
#include "evidence/compare.h"

#include "bounds/ival_math.h"
#include "certify/row.h"
#include "evidence/leading.h"

#include <gmp.h>
#include <math.h>

// ln of an upper bound of the first token's probability at T: it has its share against the listed ones alone.
static double bound_from_list(const struct hm_evidence *row, size_t first, const struct hm_rational *temperature)
{
    struct hm_ival t = hm_ival_rational(temperature->value), sum = hm_ival_point(1);
    struct hm_ival top = hm_ival_point(row->entry[first].value.hi);
    bool plain = row->processed || mpq_cmp_ui(temperature->value, 1, 1) == 0;
    if (plain) t = hm_ival_point(1);
    for (size_t i = 0; i < row->ranked; i++) {
        double low = row->entry[i].value.lo;
        if (i == first || !(low > -INFINITY)) continue;
        sum = hm_ival_add(sum, hm_ival_exp(hm_ival_div(hm_ival_sub(hm_ival_point(low), top), t)));
    }
    double bound = sum.lo >= 1 ? hm_ival_neg(hm_ival_log(hm_ival_point(sum.lo))).hi : 0;
    if (plain && row->unit == HM_UNIT_LOG_PROBABILITY) // the printed one may be off by the row's shift
        bound = fmin(bound, hm_ival_add(top, hm_ival_point(row->shift)).hi);
    return fmin(bound, 0);
}

// Is the emitted token below another listed one? An entry that readers do not rank because it was emitted counts, too.
static bool surely_not_first(const struct hm_evidence *row)
{
    if (row->logits || row->emitted >= row->count) return false;
    for (size_t i = 0; i < row->count; i++)
        if (row->entry[i].value.lo > row->entry[row->emitted].value.hi) return true;
    return false;
}

static hm_status bound_from_row(const struct hm_evidence *row, size_t first, const struct hm_rational *temperature,
                                double *out, struct hm_error *err)
{
    struct hm_rational one;
    struct hm_ival p;
    struct hm_row *exact;
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    hm_status rc = hm_row_open(row->logits, row->vocab, row->processed ? &one : temperature, &exact, err);
    hm_rational_clear(&one);
    if (rc) return rc;
    rc = hm_row_probability(exact, (int32_t)first, &p, err);
    hm_row_close(exact);
    if (!rc) *out = fmin(hm_ival_log(hm_ival_point(p.hi)).hi, 0);
    return rc;
}

hm_status hm_likelihood_add(struct hm_likelihood *l, const struct hm_evidence *row, const struct hm_rational *temperature,
                            struct hm_error *err)
{
    double bound = 0;
    struct hm_leading leading = hm_evidence_leading(row, HM_LEADING_RANKED, HM_UNSEEN);
    bool known = leading.first != HM_UNSEEN && leading.first_value.lo > leading.second_value.hi;
    if (!known) {
        if (surely_not_first(row)) {
            l->tokens++;
            l->log_p = 0;
        } else l->open++;
        return HM_OK;
    }
    hm_status rc = HM_OK;
    if (row->logits) rc = bound_from_row(row, leading.first, temperature, &bound, err);
    else bound = bound_from_list(row, leading.first, temperature);
    if (rc) return rc;
    bool all = l->first == l->tokens, is_first = row->emitted == leading.first;
    l->tokens++;
    l->first += is_first;
    l->log_p = all && is_first ? hm_ival_add(hm_ival_point(l->log_p), hm_ival_point(bound)).hi : 0;
    return HM_OK;
}

double hm_likelihood_ln_p(const struct hm_likelihood *l)
{
    return l->tokens > 0 && l->first == l->tokens && l->without == 0 ? l->log_p : 0;
}

double hm_likelihood_p_value(const struct hm_likelihood *l)
{
    return fmin(hm_ival_exp(hm_ival_point(hm_likelihood_ln_p(l))).hi, 1);
}
