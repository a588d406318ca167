// Double enclosures of a row's weights and sums: see row_filter.h. The bounds are derived in docs/filter.md.
#include "certify/row_filter.h"

#include "bounds/arithmetic.h"
#include "bounds/ival_math.h"
#include "certify/row_state.h"

#include <math.h>
#include <string.h>

// `additions` roundings of 2^-53 at most meet a term; the weights are good to HM_WEIGHT_ERROR; four roundings and
// second orders here (docs/filter.md, "One sum").
static struct hm_ival enclose(double sum, double terms, double additions)
{
    double relative = HM_WEIGHT_ERROR + (additions * 1.02 + 8) * 0x1p-53, remote = terms * 2 * HM_WEIGHT_REMOTE;
    double lo = sum * (1 - relative) - remote;
    return (struct hm_ival){lo > 0 ? lo : 0, sum * (1 + relative) + remote};
}

struct hm_ival hm_filter_enclose(double sum, size_t terms)
{
    size_t most = terms / HM_FILTER_BLOCK + HM_FILTER_BLOCK + 8;
    return enclose(sum, (double)terms, (double)most);
}

struct hm_ival hm_filter_enclose_pass(double sum, size_t terms)
{
    return enclose(sum, hm_pass_remote(terms), hm_pass_roundings(terms));
}

double hm_filter_block(const double *weights, size_t count)
{
    double lane[4] = {0, 0, 0, 0};
    size_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (size_t k = 0; k < 4; k++) lane[k] += weights[i + k];
    for (; i < count; i++) lane[0] += weights[i];
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

bool hm_filter_count(struct hm_row *row, bool answered)
{
    if (answered)
        row->filter.answered++;
    else
        row->filter.undecided++;
    return answered;
}

static int32_t head_token(const struct hm_row *row, size_t rank)
{
    return (int32_t)(uint32_t)row->head[rank];
}

// The tokens of the head by id.
static void sorted_heads(const struct hm_row *row, int32_t *ids)
{
    for (size_t r = 0; r < row->heads; r++) {
        int32_t id = head_token(row, r);
        size_t at = r;
        for (; at > 0 && ids[at - 1] > id; at--) ids[at] = ids[at - 1];
        ids[at] = id;
    }
}

// Weighs the tokens of the head apart from the others, so that the sum of the others is one of its own. Over a long row
// the passes run over the gaps between them, at most HM_PASS_CALLS; of a short one a copy without them is cheaper.
static void weigh(struct hm_row *row, struct hm_lanes *sum, struct hm_lanes *moment)
{
    enum { SHORT = 8192 };
    struct hm_row_filter *f = &row->filter;
    const struct hm_row_passes *passes = hm_row_passes();
    struct hm_lanes unused[2] = {{{0}}, {{0}}};
    float logits[HM_ROW_HEAD] = {0};
    for (size_t r = 0; r < row->heads; r++) logits[r] = row->logits[head_token(row, r)];
    passes->weigh(logits, row->heads, &f->scale, f->heads, &unused[0], &unused[1]);
    if (row->vocab <= SHORT) {
        float *copy = (float *)row->spare; // idle but while the row is sorted
        memcpy(copy, row->logits, row->vocab * sizeof *copy);
        for (size_t r = 0; r < row->heads; r++) copy[head_token(row, r)] = -INFINITY;
        passes->weigh(copy, row->vocab, &f->scale, f->weights, sum, moment);
    } else {
        int32_t ids[HM_ROW_HEAD] = {0};
        size_t start = 0;
        sorted_heads(row, ids);
        for (size_t k = 0; k <= row->heads; k++) {
            size_t end = k < row->heads ? (size_t)ids[k] : row->vocab;
            if (end > start)
                passes->weigh(row->logits + start, end - start, &f->scale, f->weights + start, sum, moment);
            start = end + 1;
        }
    }
    for (size_t r = 0; r < row->heads; r++) f->weights[head_token(row, r)] = f->heads[r];
}

// 1/T as an enclosure: inverse is the nearest double.
static struct hm_ival inverse_temperature(const struct hm_row *row)
{
    double c = row->filter.scale.inverse;
    return (struct hm_ival){c * (1 - 0x1p-52), c * (1 + 0x1p-52)};
}

bool hm_filter_ready(struct hm_row *row)
{
    struct hm_row_filter *f = &row->filter;
    if (f->state != HM_FILTER_UNUSED) return f->state == HM_FILTER_READY;
    f->state = HM_FILTER_OFF;
    if (!hm_arithmetic_is_ieee() || !hm_weight_scale_set(&f->scale, row->temperature.value, row->top)) return false;
    struct hm_lanes sum = {{0}}, moments = {{0}};
    weigh(row, &sum, &moments);
    double tail = hm_lanes_fold(&sum), moment = hm_lanes_fold(&moments);
    f->tails[row->heads] = tail;
    for (size_t r = row->heads; r-- > 0;) {
        f->tails[r] = tail += f->heads[r];
        double far = f->scale.top - fmax(row->logits[head_token(row, r)], f->scale.floor);
        moment += f->heads[r] * far;
    }
    f->mass = tail;
    f->total = hm_filter_enclose_pass(tail, row->vocab);
    // A remote token's term and its stand-in are both below 2^-979 nats.
    double relative = HM_WEIGHT_ERROR + (hm_pass_roundings(row->vocab) * 1.02 + 16) * 0x1p-53;
    f->moment =
        hm_ival_mul((struct hm_ival){moment * (1 - relative), moment * (1 + relative)}, inverse_temperature(row));
    double remote = hm_pass_remote(row->vocab) * 0x1p-970;
    f->moment.lo = f->moment.lo > 3 * remote ? f->moment.lo - 2 * remote : 0;
    f->moment.hi += 2 * remote;
    f->state = HM_FILTER_READY;
    return true;
}

struct hm_ival hm_filter_weight(const struct hm_row *row, size_t token)
{
    if (row->logits[token] == -INFINITY) return (struct hm_ival){0, 0};
    return enclose(row->filter.weights[token], 1, 0);
}

struct hm_ival hm_filter_top(const struct hm_row *row)
{
    return enclose(row->filter.heads[0], 1, 0);
}

// The weights of the tokens whose keys are below the limit, or of the others, in id order.
static struct hm_ival part(const struct hm_row *row, uint64_t limit, bool below)
{
    double sum = 0, chosen[HM_FILTER_BLOCK];
    for (size_t start = 0; start < row->vocab; start += HM_FILTER_BLOCK) {
        size_t n = row->vocab - start < HM_FILTER_BLOCK ? row->vocab - start : HM_FILTER_BLOCK;
        for (size_t i = 0; i < n; i++)
            chosen[i] = (hm_row_key(row, start + i) < limit) == below ? row->filter.weights[start + i] : 0;
        sum += hm_filter_block(chosen, n);
    }
    return hm_filter_enclose(sum, row->vocab);
}

struct hm_ival hm_filter_head(struct hm_row *row, size_t rank)
{
    if (rank >= row->support) return row->filter.total;
    if (rank > row->heads) return part(row, hm_row_key(row, (size_t)hm_row_token(row, rank)), true);
    double sum = 0;
    for (size_t r = 0; r < rank; r++) sum += row->filter.heads[r];
    return enclose(sum, (double)rank, (double)rank);
}

struct hm_ival hm_filter_tail(struct hm_row *row, size_t rank)
{
    if (rank >= row->support) return (struct hm_ival){0, 0};
    if (rank <= row->heads) return hm_filter_enclose_pass(row->filter.tails[rank], row->vocab);
    return part(row, hm_row_key(row, (size_t)hm_row_token(row, rank)), false);
}

// Three roundings, then one for each end.
struct hm_ival hm_filter_distance(const struct hm_row *row, size_t token)
{
    double t = (row->filter.scale.top - (double)row->logits[token]) * row->filter.scale.inverse;
    return (struct hm_ival){t * (1 - 0x1p-50), t * (1 + 0x1p-50)};
}

struct hm_ival hm_filter_log_total(struct hm_row *row)
{
    return hm_ival_log1p(hm_ival_div(hm_filter_tail(row, 1), hm_filter_top(row)));
}

struct hm_ival hm_filter_lse(struct hm_row *row)
{
    struct hm_ival top = hm_ival_div(hm_ival_point(row->top), hm_ival_rational(row->temperature.value));
    return hm_ival_add(top, hm_filter_log_total(row));
}

// H = ln W + (sum of w_i t_i)/W, weights in units of the top's: both terms are >= 0.
struct hm_ival hm_filter_row_entropy(struct hm_row *row)
{
    struct hm_ival h = hm_ival_add(hm_filter_log_total(row), hm_ival_div(row->filter.moment, row->filter.total));
    if (h.lo < 0) h.lo = 0;
    return h;
}

struct hm_ival hm_filter_probability(struct hm_row *row, size_t token)
{
    struct hm_ival p = hm_ival_div(hm_filter_weight(row, token), row->filter.total);
    if (p.lo < 0) p.lo = 0;
    if (p.hi > 1) p.hi = 1;
    return p;
}
