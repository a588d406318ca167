// Membership in A(p): see rule.h, theory.md §1 and §8. Ties are settled on logits and parameters first; what is left
// is decided by the double enclosures of row_filter.h or else by MPFR intervals at 128 bits, doubling to 4096.
#include "certify/row_state.h"
#include "certify/rule.h"

#include <math.h>

// (l_top - l_i) exactly; 288 bits hold every difference of floats.
static void below_top(const struct hm_row *row, size_t token, mpfr_ptr out)
{
    mpfr_set_flt(out, row->top, MPFR_RNDN);
    mpfr_sub_d(out, out, row->logits[token], MPFR_RNDN);
}

// n * x >= 1?  (n tied tokens against a rational share)
static bool covers_one(size_t n, mpq_srcptr x)
{
    mpz_t product;
    mpz_init(product);
    mpz_mul_ui(product, mpq_numref(x), n);
    bool result = mpz_cmp(product, mpq_denref(x)) >= 0;
    mpz_clear(product);
    return result;
}

// p_i >= p_(1) - eps, that is w_i + eps W - 1 >= 0.
static hm_status additive_at(struct hm_row *row, size_t token, mpq_srcptr eps, mpfr_prec_t precision,
                             enum hm_verdict *out, struct hm_error *err)
{
    hm_status status = hm_row_sums(row, precision, err);
    if (status) return status;
    struct hm_mpi weight, slack, one;
    hm_mpi_init(&weight, precision);
    hm_mpi_init(&slack, precision);
    hm_mpi_init(&one, precision);
    hm_mpi_set_ui(&one, 1);
    hm_weight(row->weights, token, &weight);
    hm_mpi_mul_q(&slack, &row->total, eps);
    hm_mpi_add(&slack, &slack, &weight);
    hm_mpi_sub(&slack, &slack, &one);
    *out = hm_mpi_nonnegative(&slack);
    hm_mpi_clear(&weight);
    hm_mpi_clear(&slack);
    hm_mpi_clear(&one);
    return HM_OK;
}

static hm_status additive(struct hm_row *row, size_t token, mpq_srcptr eps, enum hm_verdict *out, struct hm_error *err)
{
    float l = row->logits[token];
    *out = HM_YES;
    if (l == row->top) return HM_OK;
    *out = HM_NO;
    if (mpq_sgn(eps) == 0) return HM_OK;
    if (l == -INFINITY && row->uniform) {
        *out = covers_one(row->support, eps) ? HM_YES : HM_NO;
        return HM_OK;
    }
    hm_status status = HM_OK;
    *out = hm_filter_additive(row, token, eps);
    for (mpfr_prec_t p = HM_PRECISION_FIRST; p <= HM_PRECISION_LAST && *out == HM_UNDECIDED && status == HM_OK; p *= 2)
        status = additive_at(row, token, eps, p, out, err);
    return status;
}

// l_i >= l_(1) + T ln alpha, that is -T ln alpha - (l_(1) - l_i) >= 0: one logarithm, no sum over the row.
static enum hm_verdict multiplicative(struct hm_row *row, size_t token, mpq_srcptr alpha)
{
    float l = row->logits[token];
    if (l == row->top) return HM_YES;
    if (l == -INFINITY || mpq_cmp_ui(alpha, 1, 1) == 0) return HM_NO;
    enum hm_verdict verdict = HM_UNDECIDED;
    struct hm_mpi reach, drop;
    mpfr_t difference;
    mpfr_init2(difference, 288);
    below_top(row, token, difference);
    for (mpfr_prec_t p = HM_PRECISION_FIRST; p <= HM_PRECISION_LAST && verdict == HM_UNDECIDED; p *= 2) {
        hm_mpi_init(&reach, p + 288);
        hm_mpi_init(&drop, 288);
        hm_mpi_set_exact(&drop, difference);
        hm_mpi_set_q(&reach, alpha);
        hm_mpi_log(&reach, &reach);
        hm_mpi_neg(&reach, &reach);
        hm_mpi_mul_q(&reach, &reach, row->temperature.value);
        hm_mpi_sub(&reach, &reach, &drop);
        verdict = hm_mpi_nonnegative(&reach);
        hm_mpi_clear(&reach);
        hm_mpi_clear(&drop);
    }
    mpfr_clear(difference);
    return verdict;
}

// The eps branch: w_i - eps W >= 0.
static enum hm_verdict likely_at(struct hm_row *row, size_t token, mpq_srcptr eps, mpfr_prec_t precision)
{
    struct hm_mpi weight, least;
    hm_mpi_init(&weight, precision);
    hm_mpi_init(&least, precision);
    hm_weight(row->weights, token, &weight);
    hm_mpi_mul_q(&least, &row->total, eps);
    hm_mpi_sub(&weight, &weight, &least);
    enum hm_verdict verdict = hm_mpi_nonnegative(&weight);
    hm_mpi_clear(&weight);
    hm_mpi_clear(&least);
    return verdict;
}

// The delta branch: l_i/T - sum_j p_j l_j/T >= ln delta, with both sides measured from the top (ln Z cancels).
static enum hm_verdict typical_at(struct hm_row *row, size_t token, mpq_srcptr delta, mpfr_prec_t precision)
{
    struct hm_mpi mean, drop, least;
    mpfr_t difference;
    hm_mpi_init(&mean, precision);
    hm_mpi_init(&drop, precision);
    hm_mpi_init(&least, precision);
    mpfr_init2(difference, 288);
    below_top(row, token, difference);
    mpfr_div_q(drop.lo, difference, row->temperature.value, MPFR_RNDD);
    mpfr_div_q(drop.hi, difference, row->temperature.value, MPFR_RNDU);
    hm_mpi_div(&mean, &row->moment, &row->total);
    hm_mpi_set_q(&least, delta);
    hm_mpi_log(&least, &least);
    hm_mpi_sub(&mean, &mean, &drop);
    hm_mpi_sub(&mean, &mean, &least);
    enum hm_verdict verdict = hm_mpi_nonnegative(&mean);
    mpfr_clear(difference);
    hm_mpi_clear(&mean);
    hm_mpi_clear(&drop);
    hm_mpi_clear(&least);
    return verdict;
}

static hm_status entropy(struct hm_row *row, size_t token, mpq_srcptr eps, mpq_srcptr delta, enum hm_verdict *out,
                         struct hm_error *err)
{
    *out = HM_NO;
    if (row->logits[token] == -INFINITY) return HM_OK; // 0 reaches neither eps > 0 nor delta exp(-H) > 0
    if (row->uniform) { // p_i = exp(-H) = 1/n
        mpq_t share;
        mpq_init(share);
        mpq_set_ui(share, 1, row->support);
        *out = mpq_cmp(share, eps) >= 0 || mpq_cmp_ui(delta, 1, 1) <= 0 ? HM_YES : HM_NO;
        mpq_clear(share);
        return HM_OK;
    }
    *out = hm_filter_entropy(row, token, eps, delta);
    for (mpfr_prec_t p = HM_PRECISION_FIRST; p <= HM_PRECISION_LAST && *out == HM_UNDECIDED; p *= 2) {
        hm_status status = hm_row_sums(row, p, err);
        if (status) return status;
        enum hm_verdict likely = likely_at(row, token, eps, p);
        enum hm_verdict typical = likely == HM_YES ? HM_YES : typical_at(row, token, delta, p);
        if (likely == HM_YES || typical == HM_YES) *out = HM_YES;
        else if (likely == HM_NO && typical == HM_NO) *out = HM_NO;
    }
    return HM_OK;
}

// p_i >= t, that is w_i - t W >= 0.
static hm_status absolute(struct hm_row *row, size_t token, mpq_srcptr least, enum hm_verdict *out, struct hm_error *err)
{
    hm_status status = HM_OK;
    *out = HM_NO;
    if (row->logits[token] == -INFINITY) return HM_OK;
    if (row->uniform) {
        mpq_t share;
        mpq_init(share);
        mpq_set_ui(share, 1, row->support);
        *out = mpq_cmp(share, least) >= 0 ? HM_YES : HM_NO;
        mpq_clear(share);
        return HM_OK;
    }
    *out = HM_UNDECIDED;
    for (mpfr_prec_t p = HM_PRECISION_FIRST; p <= HM_PRECISION_LAST && *out == HM_UNDECIDED && status == HM_OK; p *= 2) {
        status = hm_row_sums(row, p, err);
        if (status == HM_OK) *out = likely_at(row, token, least, p);
    }
    return status;
}

// -ln p_i <= r, that is r - t_i - ln W >= 0.
static hm_status regret(struct hm_row *row, size_t token, mpq_srcptr most, enum hm_verdict *out, struct hm_error *err)
{
    hm_status status = HM_OK;
    *out = HM_NO;
    if (row->logits[token] == -INFINITY) return HM_OK;
    *out = HM_YES;
    if (row->support == 1) return HM_OK;
    *out = HM_UNDECIDED;
    mpfr_t difference;
    mpfr_init2(difference, 288);
    below_top(row, token, difference);
    for (mpfr_prec_t p = HM_PRECISION_FIRST; p <= HM_PRECISION_LAST && *out == HM_UNDECIDED && status == HM_OK; p *= 2) {
        struct hm_mpi slack, drop;
        hm_mpi_init(&slack, p);
        hm_mpi_init(&drop, p);
        status = hm_row_sums(row, p, err);
        if (status == HM_OK) {
            mpfr_div_q(drop.lo, difference, row->temperature.value, MPFR_RNDD);
            mpfr_div_q(drop.hi, difference, row->temperature.value, MPFR_RNDU);
            hm_mpi_log(&slack, &row->total);
            hm_mpi_add(&drop, &drop, &slack);
            hm_mpi_set_q(&slack, most);
            hm_mpi_sub(&slack, &slack, &drop);
            *out = hm_mpi_nonnegative(&slack);
        }
        hm_mpi_clear(&slack);
        hm_mpi_clear(&drop);
    }
    mpfr_clear(difference);
    return status;
}

// k of the nucleus as a range: P = 1 is the support (a tail of e^-5000 would defeat any precision).
static hm_status nucleus(struct hm_row *row, mpq_srcptr share, struct hm_crossing *out, struct hm_error *err)
{
    out->least = out->most = row->support;
    return mpq_cmp_ui(share, 1, 1) >= 0 ? HM_OK : hm_row_prefix(row, row->support, share, out, err);
}

static hm_status in_nucleus(struct hm_row *row, int32_t token, mpq_srcptr share, enum hm_verdict *out, struct hm_error *err)
{
    struct hm_crossing k;
    hm_status status = nucleus(row, share, &k, err);
    if (status) return status;
    size_t rank = hm_row_rank(row, token);
    *out = rank < k.least ? HM_YES : rank >= k.most ? HM_NO : HM_UNDECIDED;
    return HM_OK;
}

hm_status hm_rule_accepts(const struct hm_rule *rule, struct hm_row *row, int32_t token, enum hm_verdict *out,
                          struct hm_error *err)
{
    *out = HM_NO;
    if (token < 0 || (size_t)token >= row->vocab)
        return hm_fail(err, HM_RANGE, "token: expected an id from 0 to %zu, found %ld", row->vocab - 1, (long)token);
    switch (rule->kind) {
    case HM_RULE_GREEDY:
        *out = token == hm_row_token(row, 0) ? HM_YES : HM_NO;
        return HM_OK;
    case HM_RULE_ADDITIVE:
        return additive(row, (size_t)token, rule->a.value, out, err);
    case HM_RULE_MULTIPLICATIVE:
        *out = multiplicative(row, (size_t)token, rule->a.value);
        return HM_OK;
    case HM_RULE_TOPM:
        *out = hm_row_rank(row, token) < rule->count ? HM_YES : HM_NO;
        return HM_OK;
    case HM_RULE_ENTROPY:
        return entropy(row, (size_t)token, rule->a.value, rule->b.value, out, err);
    case HM_RULE_NUCLEUS:
        return in_nucleus(row, token, rule->a.value, out, err);
    case HM_RULE_TOPK_DELTA:
        if (hm_row_rank(row, token) >= rule->count) return HM_OK;
        return additive(row, (size_t)token, rule->a.value, out, err);
    case HM_RULE_TOPK_RATIO:
        if (hm_row_rank(row, token) < rule->count) *out = multiplicative(row, (size_t)token, rule->a.value);
        return HM_OK;
    case HM_RULE_ABSOLUTE:
        return absolute(row, (size_t)token, rule->a.value, out, err);
    case HM_RULE_REGRET:
        return regret(row, (size_t)token, rule->a.value, out, err);
    }
    return hm_fail(err, HM_UNSUPPORTED, "rule of kind %d", (int)rule->kind);
}

// The first rank below `limit` that is not surely accepted: acceptance falls along the order, so gallop and bisect.
static hm_status first_refused(const struct hm_rule *rule, struct hm_row *row, size_t limit, size_t *k,
                               enum hm_verdict *decided, struct hm_error *err)
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
        hm_status status = hm_rule_accepts(rule, row, hm_row_token(row, probe), &verdict, err);
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
    size_t limit = row->vocab;
    struct hm_crossing range;
    hm_status status;
    *decided = HM_YES;
    switch (rule->kind) {
    case HM_RULE_GREEDY:
        *k = 1;
        return HM_OK;
    case HM_RULE_TOPM:
        *k = rule->count < limit ? rule->count : limit;
        return HM_OK;
    case HM_RULE_NUCLEUS:
        status = nucleus(row, rule->a.value, &range, err);
        if (status) return status;
        *k = range.least;
        *decided = range.least == range.most ? HM_YES : HM_UNDECIDED;
        return HM_OK;
    case HM_RULE_TOPK_DELTA:
    case HM_RULE_TOPK_RATIO:
        if (rule->count < limit) limit = rule->count;
        break;
    default:
        break;
    }
    return first_refused(rule, row, limit, k, decided, err);
}
