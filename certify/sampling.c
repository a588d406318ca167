// Probabilities of a draw: see sampling.h. A sum over the support is a sum of weights of the row (bounds/weights.h), in
// id order; the filter's weights are tried first (docs/filter.md).
#include "certify/sampling.h"

#include "bounds/ival_math.h"
#include "certify/row_state.h"

#include <math.h>

// Which tokens are summed: those not after `last` in the order, without `except` (-1: none).
struct selection {
    uint64_t last;
    int64_t except;
};

static bool is_in(const struct hm_row *row, const struct selection *s, size_t i)
{
    return row->logits[i] != -INFINITY && (int64_t)i != s->except && hm_row_key(row, i) <= s->last;
}

static struct selection select_first(struct hm_row *row, size_t support, int64_t except)
{
    if (support >= row->support) return (struct selection){UINT64_MAX, except};
    return (struct selection){hm_row_key(row, (size_t)hm_row_token(row, support - 1)), except};
}

// ---- in doubles

// A share is at most 1, but a checker that meets e^-5000 below 1 comes down to it from both sides.
static struct hm_ival clip(struct hm_ival x)
{
    return (struct hm_ival){x.lo > 0 ? x.lo : 0, x.hi < 1 ? x.hi : 1 + 0x1p-52};
}

static struct hm_ival share(struct hm_ival a, struct hm_ival b)
{
    return clip(hm_ival_div(a, b));
}

// The weights selected are summed in blocks of up to 256 tokens of the row, as hm_filter_enclose expects.
static struct hm_ival filter_sum(struct hm_row *row, const struct selection *s)
{
    double sum = 0;
    if (s->last == UINT64_MAX && s->except < 0) return row->filter.total;
    for (size_t start = 0; start < row->vocab; start += HM_FILTER_BLOCK) {
        size_t end = row->vocab - start < HM_FILTER_BLOCK ? row->vocab : start + HM_FILTER_BLOCK;
        double block = 0;
        for (size_t i = start; i < end; i++)
            if (is_in(row, s, i)) block += row->filter.weights[i];
        sum += block;
    }
    return hm_filter_enclose(sum, row->vocab);
}

// Narrow enough for a log with room for products of many (docs/log.md, "Numbers").
static bool is_narrow(struct hm_ival x)
{
    double width = x.hi - x.lo;
    return width <= x.hi * 0x1p-36 || width <= 0x1p-64;
}

// ---- by MPFR

static void exact_sum(struct hm_row *row, const struct selection *s, const struct hm_weights *weights, struct hm_mpi *out)
{
    struct hm_weight_sum sum;
    hm_weight_sum_init(&sum, weights);
    for (size_t i = 0; i < row->vocab; i++)
        if (is_in(row, s, i)) hm_weight_sum_add(&sum, weights, i);
    hm_weight_sum_get(&sum, weights, out);
    hm_weight_sum_clear(&sum);
}

// The share of the selection `part`, or of one token when part is NULL, in the selection `whole`.
static hm_status exact_share(struct hm_row *row, const struct selection *whole, const struct selection *part, int32_t token,
                             struct hm_ival *out, struct hm_error *err)
{
    bool done = false;
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && !done; precision *= 2) {
        const struct hm_weights *weights;
        hm_status status = hm_row_weights(row, precision, &weights, err);
        if (status) return status;
        struct hm_mpi sum, value;
        hm_mpi_init(&sum, precision);
        hm_mpi_init(&value, precision);
        exact_sum(row, whole, weights, &sum);
        if (part) exact_sum(row, part, weights, &value);
        else hm_weight(weights, (size_t)token, &value);
        hm_mpi_div(&value, &value, &sum);
        *out = clip(hm_mpi_ival(&value));
        done = hm_mpi_narrow(&value);
        hm_mpi_clear(&sum);
        hm_mpi_clear(&value);
    }
    return HM_OK;
}

// ---- the two questions

// Only one token can be drawn.
static bool is_certain(const struct hm_row *row, size_t support)
{
    return support == 1 || row->support == 1;
}

static hm_status check(const struct hm_row *row, size_t support, int32_t token, struct hm_error *err)
{
    if (support < 1 || support > row->vocab)
        return hm_fail(err, HM_RANGE, "support: expected 1 to %zu, found %zu", row->vocab, support);
    if (token < 0 || (size_t)token >= row->vocab)
        return hm_fail(err, HM_RANGE, "token: expected an id from 0 to %zu, found %ld", row->vocab - 1, (long)token);
    return HM_OK;
}

hm_status hm_sampling_probability(struct hm_row *row, size_t support, const int32_t *tokens, size_t count,
                                  struct hm_ival *out, struct hm_error *err)
{
    struct hm_ival sum = {0, 0};
    for (size_t i = 0; i < count; i++) {
        hm_status status = check(row, support, tokens[i], err);
        if (status) return status;
    }
    struct selection whole = select_first(row, support, -1);
    bool filtered = hm_filter_ready(row);
    if (filtered) sum = filter_sum(row, &whole);
    for (size_t i = 0; i < count; i++) {
        size_t token = (size_t)tokens[i];
        out[i] = (struct hm_ival){0, 0};
        if (!is_in(row, &whole, token)) continue;
        if (is_certain(row, support)) {
            out[i] = (struct hm_ival){1, 1};
            continue;
        }
        if (filtered) out[i] = share(hm_filter_weight(row, token), sum);
        if (filtered && is_narrow(out[i])) continue;
        hm_status status = exact_share(row, &whole, NULL, tokens[i], &out[i], err);
        if (status) return status;
    }
    return HM_OK;
}

hm_status hm_sampling_complement(struct hm_row *row, size_t support, int32_t token, struct hm_ival *out,
                                 struct hm_error *err)
{
    *out = (struct hm_ival){0, 0};
    hm_status status = check(row, support, token, err);
    if (status) return status;
    struct selection whole = select_first(row, support, -1), others = select_first(row, support, token);
    if (!is_in(row, &whole, (size_t)token)) {
        *out = (struct hm_ival){1, 1};
        return HM_OK;
    }
    if (is_certain(row, support)) return HM_OK;
    if (hm_filter_ready(row)) {
        *out = share(filter_sum(row, &others), filter_sum(row, &whole));
        if (is_narrow(*out)) return HM_OK;
    }
    return exact_share(row, &whole, &others, token, out, err);
}
