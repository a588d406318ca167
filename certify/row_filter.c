// Double enclosures of a row's weights and sums: see row_filter.h. The bounds are derived in docs/filter.md.
#include "certify/row_filter.h"

#include "base/memory.h"
#include "bounds/exp_filter.h"
#include "certify/row_state.h"

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
    return true;
}
