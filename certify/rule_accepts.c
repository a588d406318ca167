// Membership in A(p): see rule.h, theory.md §1 and §8. What logits and parameters settle is settled first; then the
// rule's reach is compared with a token's distance below the top, in double enclosures or else in MPFR intervals at 128
// bits, doubling to 4096.
#include "certify/rules/rules.h"

#include "bounds/ival_math.h"

#include <math.h>

// ---- what thresholds share

hm_status hm_reach_log_total_exact(struct hm_row *row, mpfr_prec_t precision, struct hm_mpi *out, struct hm_error *err)
{
    hm_status status = hm_row_sums(row, precision, err);
    if (status == HM_OK) hm_mpi_log(out, &row->total);
    return status;
}

// The reach of a rule for a row, as far as it was needed so far.
struct reach {
    const struct hm_rule *rule;
    const struct hm_threshold *threshold;
    struct hm_row *row;
    bool quick;               // is `about` an enclosure of the reach?
    struct hm_ival about;
    mpfr_prec_t precision;    // of `exact`; 0: not computed
    struct hm_mpi exact;
};

static void reach_open(struct reach *r, const struct hm_rule *rule, const struct hm_threshold *threshold, struct hm_row *row)
{
    *r = (struct reach){.rule = rule, .threshold = threshold, .row = row};
    // A reach that needs no sum is cheaper in MPFR than the weights of a row that nothing else asks for.
    r->quick = threshold->of_sums ? hm_filter_ready(row) : row->filter.state == HM_FILTER_READY;
    if (r->quick) r->about = threshold->reach(rule, row);
}

static void reach_close(struct reach *r)
{
    if (r->precision) hm_mpi_clear(&r->exact);
}

static hm_status reach_raise(struct reach *r, mpfr_prec_t precision, struct hm_error *err)
{
    if (r->precision >= precision) return HM_OK;
    reach_close(r);
    hm_mpi_init(&r->exact, precision);
    r->precision = precision;
    return r->threshold->reach_exact(r->rule, r->row, precision, &r->exact, err);
}

// t_i <= reach, with t_i from the exact difference of two floats.
static enum hm_verdict compare_exact(const struct reach *r, size_t token)
{
    float l = r->row->logits[token];
    mpfr_t difference;
    struct hm_mpi t;
    hm_mpi_init(&t, r->precision);
    mpfr_init2(difference, 288); // every difference of floats
    mpfr_set_flt(difference, r->row->top, MPFR_RNDN);
    mpfr_sub_d(difference, difference, l, MPFR_RNDN); // +inf for a logit of -inf
    mpfr_div_q(t.lo, difference, r->row->temperature.value, MPFR_RNDD);
    mpfr_div_q(t.hi, difference, r->row->temperature.value, MPFR_RNDU);
    enum hm_verdict out = HM_UNDECIDED;
    if (mpfr_lessequal_p(t.hi, r->exact.lo)) out = HM_YES;
    else if (mpfr_greater_p(t.lo, r->exact.hi)) out = HM_NO;
    mpfr_clear(difference);
    hm_mpi_clear(&t);
    return out;
}

static hm_status reaches(struct reach *r, size_t token, enum hm_verdict *out, struct hm_error *err)
{
    *out = r->threshold->settle(r->rule, r->row, token);
    if (*out != HM_UNDECIDED) return HM_OK;
    if (r->quick) {
        struct hm_ival t = {INFINITY, INFINITY};
        if (r->row->logits[token] != -INFINITY) t = hm_filter_distance(r->row, token);
        if (t.hi <= r->about.lo) *out = HM_YES;
        else if (t.lo > r->about.hi) *out = HM_NO;
        if (*out == HM_UNDECIDED) r->row->filter.undecided++;
        else r->row->filter.answered++;
    }
    hm_status status = HM_OK;
    for (mpfr_prec_t p = HM_PRECISION_FIRST; p <= HM_PRECISION_LAST && *out == HM_UNDECIDED && status == HM_OK; p *= 2) {
        status = reach_raise(r, p, err);
        if (status == HM_OK) *out = compare_exact(r, token);
    }
    return status;
}

hm_status hm_rule_reaches(const struct hm_rule *rule, struct hm_row *row, size_t token, enum hm_verdict *out,
                          struct hm_error *err)
{
    struct reach r;
    reach_open(&r, rule, hm_rule_ops_of(rule->kind)->threshold, row);
    hm_status status = reaches(&r, token, out, err);
    reach_close(&r);
    return status;
}

// ---- the two questions

hm_status hm_rule_accepts(const struct hm_rule *rule, struct hm_row *row, int32_t token, enum hm_verdict *out,
                          struct hm_error *err)
{
    const struct hm_rule_ops *ops = hm_rule_ops_of(rule->kind);
    *out = HM_NO;
    if (!ops) return hm_fail(err, HM_UNSUPPORTED, "rule of kind %d", (int)rule->kind);
    if (token < 0 || (size_t)token >= row->vocab)
        return hm_fail(err, HM_RANGE, "token: expected an id from 0 to %zu, found %ld", row->vocab - 1, (long)token);
    if (ops->threshold) {
        if (ops->counted && hm_row_rank(row, token) >= rule->count) return HM_OK;
        return hm_rule_reaches(rule, row, (size_t)token, out, err);
    }
    struct hm_crossing k;
    hm_status status = ops->prefix(rule, row, &k, err);
    if (status) return status;
    size_t rank = hm_row_rank(row, token);
    *out = rank < k.least ? HM_YES : rank >= k.most ? HM_NO : HM_UNDECIDED;
    return HM_OK;
}

// The first rank below `limit` that is not surely accepted: acceptance falls along the order, so gallop and bisect.
static hm_status first_refused(struct reach *r, size_t limit, size_t *k, enum hm_verdict *decided, struct hm_error *err)
{
    size_t low = 0, high = limit, step = 1; // ranks below low are accepted, rank high is not (or is the limit)
    *decided = HM_YES;
    while (low < high) {
        size_t probe = step ? low + step - 1 : low + (high - low) / 2;
        if (probe >= high) {
            step = 0;
            continue;
        }
        enum hm_verdict verdict;
        hm_status status = reaches(r, (size_t)hm_row_token(r->row, probe), &verdict, err);
        if (status) return status;
        if (verdict == HM_YES) {
            low = probe + 1;
            step *= 2;
        } else {
            high = probe;
            step = 0;
            *decided = verdict == HM_NO ? HM_YES : HM_UNDECIDED;
        }
    }
    *k = low;
    return HM_OK;
}

hm_status hm_rule_count(const struct hm_rule *rule, struct hm_row *row, size_t *k, enum hm_verdict *decided,
                        struct hm_error *err)
{
    const struct hm_rule_ops *ops = hm_rule_ops_of(rule->kind);
    if (!ops) return hm_fail(err, HM_UNSUPPORTED, "rule of kind %d", (int)rule->kind);
    if (ops->threshold) {
        size_t limit = ops->counted && rule->count < row->vocab ? rule->count : row->vocab;
        struct reach r;
        reach_open(&r, rule, ops->threshold, row);
        hm_status status = first_refused(&r, limit, k, decided, err);
        reach_close(&r);
        return status;
    }
    struct hm_crossing range = {0, 0};
    hm_status status = ops->prefix(rule, row, &range, err);
    *k = range.least;
    *decided = range.least == range.most ? HM_YES : HM_UNDECIDED;
    return status;
}
