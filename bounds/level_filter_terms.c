// The numbers of one token: see level_filter_terms.h.
#include "bounds/level_filter_terms.h"

#include "bounds/ival_math.h"

struct hm_ival hm_ival_count(size_t n)
{
    return hm_ival_point((double)n);
}

void hm_terms_start(struct hm_terms *t, const struct hm_level_row *row)
{
    t->row = row;
    t->inverse = hm_ival_div(hm_ival_count(1), hm_ival_rational(row->temperature));
    t->unit = t->inverse.lo == 1 && t->inverse.hi == 1;
    t->filled = 0;
}

static struct hm_term make(const struct hm_terms *t, size_t rank)
{
    struct hm_term x = {.logit = t->row->logit(t->row->order, rank)};
    const struct hm_ival one = {1, 1};
    x.far = hm_ival_sub(hm_ival_point(t->row->top), hm_ival_point(x.logit));
    x.distance = t->unit ? x.far : hm_ival_mul(x.far, t->inverse);
    if (x.distance.hi <= 1) { // the function that keeps its digits, and 1 less its result
        x.drop = hm_ival_drop(x.distance);
        x.weight = hm_ival_sub(one, x.drop);
    } else {
        x.weight = hm_ival_exp(hm_ival_neg(x.distance));
        x.drop = hm_ival_sub(one, x.weight);
    }
    return x;
}

struct hm_term hm_term(struct hm_terms *t, size_t rank)
{
    if (rank >= HM_TERMS) return make(t, rank);
    if (!(t->filled >> rank & 1)) {
        t->kept[rank] = make(t, rank);
        t->filled |= UINT64_C(1) << rank;
    }
    return t->kept[rank];
}
