// Double enclosures of a row's weights and sums: see row_filter.h. The bounds are derived in docs/filter.md.
#include "certify/row_filter.h"

#include "base/memory.h"
#include "bounds/exp_filter.h"
#include "certify/row_state.h"

#include <math.h>

static double up(double x)
{
    return x + (fabs(x) * 0x1p-52 + 0x1p-1000);
}

static double down(double x)
{
    return x - (fabs(x) * 0x1p-52 + 0x1p-1000);
}

struct hm_ival hm_filter_rational(mpq_srcptr value)
{
    struct hm_ival out;
    mpfr_t end;
    mpfr_init2(end, 53);
    mpfr_set_q(end, value, MPFR_RNDD);
    out.lo = mpfr_get_d(end, MPFR_RNDD);
    mpfr_set_q(end, value, MPFR_RNDU);
    out.hi = mpfr_get_d(end, MPFR_RNDU);
    mpfr_clear(end);
    return out;
}

// At most 256 + terms/256 roundings of 2^-53 each, counted twice: the second half pays for the products of errors and
// for the roundings of this function.
struct hm_ival hm_filter_enclose(double sum, size_t terms)
{
    double relative = HM_EXP_FILTER_ERROR + (double)(terms / HM_FILTER_BLOCK + HM_FILTER_BLOCK + 8) * 0x1p-52;
    double remote = (double)terms * HM_EXP_FILTER_REMOTE;
    double lo = sum * (1 - relative) - remote;
    return (struct hm_ival){lo > 0 ? lo : 0, sum * (1 + relative) + remote};
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

struct hm_ival hm_filter_weight(const struct hm_row *row, size_t token)
{
    return hm_filter_enclose(row->filter.weights[token], 1);
}

struct hm_ival hm_filter_top(const struct hm_row *row)
{
    (void)row;
    return (struct hm_ival){1, 1};
}

static struct hm_ival part(struct hm_row *row, size_t from, size_t to)
{
    double sum = 0;
    for (size_t r = from; r < to; r++) sum += row->filter.weights[hm_row_token(row, r)];
    return hm_filter_enclose(sum, to - from < 1u << 30 ? 256 * (to - from) : to - from);
}

struct hm_ival hm_filter_head(struct hm_row *row, size_t rank)
{
    return part(row, 0, rank < row->vocab ? rank : row->vocab);
}

struct hm_ival hm_filter_tail(struct hm_row *row, size_t rank)
{
    return part(row, rank < row->vocab ? rank : row->vocab, row->vocab);
}

// (l_top - l_i)/T: three roundings of 2^-53 (docs/filter.md, "One weight"), within 2^-51 of the result.
struct hm_ival hm_filter_distance(const struct hm_row *row, size_t token)
{
    double t = ((double)row->top - (double)row->logits[token]) * row->filter.inverse;
    return (struct hm_ival){down(t * (1 - 0x1p-51)), up(t * (1 + 0x1p-51))};
}

// sum of w_i t_i. A remote token's term and its stand-in, both at most t e^-t at t = 64 less three roundings, differ by
// less than 2^-86.
static void fill_moment(struct hm_row *row)
{
    struct hm_row_filter *f = &row->filter;
    double sum = 0;
    for (size_t start = 0; start < row->vocab; start += HM_FILTER_BLOCK) {
        size_t n = row->vocab - start < HM_FILTER_BLOCK ? row->vocab - start : HM_FILTER_BLOCK;
        double terms[HM_FILTER_BLOCK];
        for (size_t i = 0; i < n; i++) {
            double far = ((double)row->top - (double)row->logits[start + i]) * f->inverse;
            double t = far > HM_EXP_FILTER_REACH ? HM_EXP_FILTER_REACH : far;
            terms[i] = t * f->weights[start + i];
        }
        sum += hm_filter_block(terms, n);
    }
    struct hm_ival e = hm_filter_enclose(sum, row->vocab);
    double remote = (double)row->vocab * 0x1p-86;
    f->moment = (struct hm_ival){down(e.lo - remote), up(e.hi + remote)};
    if (f->moment.lo < 0) f->moment.lo = 0;
    f->has_moment = true;
}

bool hm_filter_ready(struct hm_row *row)
{
    struct hm_row_filter *f = &row->filter;
    if (f->state != HM_FILTER_UNUSED) return f->state == HM_FILTER_READY;
    f->state = HM_FILTER_OFF;
    if (!hm_exp_filter_inverse(row->temperature.value, &f->inverse)) return false;
    f->weights = hm_calloc(row->vocab, sizeof *f->weights);
    if (!f->weights) return false;
    f->mass = 0;
    for (size_t start = 0; start < row->vocab; start += HM_FILTER_BLOCK) { // while the block is in the cache
        size_t n = row->vocab - start < HM_FILTER_BLOCK ? row->vocab - start : HM_FILTER_BLOCK;
        hm_exp_filter(row->logits + start, n, row->top, f->inverse, f->weights + start);
        f->mass += hm_filter_block(f->weights + start, n);
    }
    f->total = hm_filter_enclose(f->mass, row->vocab);
    f->state = HM_FILTER_READY;
    fill_moment(row);
    return true;
}
