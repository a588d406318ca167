// The law of iid proposals in double: the ladder of law.c, one pass over the rows a rung. See law_filter.h, docs/filter.md
// "Laws".
#include "certify/law_filter.h"

#include "base/memory.h"
#include "bounds/ival_math.h"

#include <math.h>
#include <stdlib.h>

enum { LONGEST = 64 }; // rungs; beyond, law.c's ladder costs less

struct rows {
    struct hm_row *p, *q;
    const bool *kept; // [vocab]: in A
    struct hm_ival ratio; // W_p/W_q
};

// Sum over A and over the rest of (c q_i - p_i)^+. At the middle u of c W_p/W_q each term u v - w is off by less than
// (u v + w) 2^-49 (and by what weights near 2^-990 stand for), the sums by their roundings, and another u changes them by at
// most its distance times W_q.
static void shortfalls(const struct rows *x, struct hm_ival c, struct hm_ival *kept, struct hm_ival *rejected)
{
    const double *w = x->p->filter.weights, *v = x->q->filter.weights;
    struct hm_ival scale = hm_ival_mul(c, x->ratio), total_p = x->p->filter.total, total_q = x->q->filter.total;
    double u = scale.lo / 2 + scale.hi / 2, sum[2] = {0, 0}, terms[2][HM_FILTER_BLOCK];
    for (size_t start = 0; start < x->p->vocab; start += HM_FILTER_BLOCK) {
        size_t n = x->p->vocab - start < HM_FILTER_BLOCK ? x->p->vocab - start : HM_FILTER_BLOCK;
        for (size_t i = 0; i < n; i++) {
            double term = u * v[start + i] - w[start + i];
            term = term > 0 ? term : 0;
            terms[0][i] = x->kept[start + i] ? term : 0;
            terms[1][i] = x->kept[start + i] ? 0 : term;
        }
        for (int set = 0; set < 2; set++) sum[set] += hm_filter_block(terms[set], n);
    }
    double far = fmax(scale.hi - u, u - scale.lo) * (1 + 0x1p-50) * total_q.hi;
    double error = (u * total_q.hi + total_p.hi) * 0x1p-49 + far + (1 + u) * (double)x->p->vocab * 0x1p-980;
    struct hm_ival slack = {-error, error}, *out[2] = {kept, rejected};
    for (int set = 0; set < 2; set++) {
        struct hm_ival s = hm_ival_add(sum[set] > 0 ? hm_filter_enclose(sum[set], x->p->vocab) : (struct hm_ival){0, 0}, slack);
        *out[set] = hm_ival_max(hm_ival_div(s, total_p), hm_ival_point(0));
    }
}

static struct hm_ival clip(struct hm_ival x)
{
    return hm_ival_min(hm_ival_max(x, hm_ival_point(0)), hm_ival_point(1));
}

static void climb(const struct rows *x, size_t m, struct hm_law *out)
{
    const struct hm_ival one = {1, 1};
    struct hm_ival kept = {0, 0}, rejected = kept, c, rest = one, missed = one, looked = kept;
    for (size_t j = 0; j < m; j++) {
        struct hm_ival before = rejected;
        looked = hm_ival_add(looked, missed);
        c = hm_ival_add(one, hm_ival_add(kept, rejected));
        shortfalls(x, c, &kept, &rejected);
        missed = hm_ival_mul(missed, clip(hm_ival_div(hm_ival_sub(rejected, before), rest)));
        rest = clip(hm_ival_add(hm_ival_sub(one, c), hm_ival_add(kept, rejected)));
        if (rest.hi < missed.hi) missed.hi = rest.hi; // P_j <= Z_j
        if (!(missed.lo <= missed.hi)) missed.lo = 0;
    }
    shortfalls(x, looked, &kept, &rejected);
    *out = (struct hm_law){clip(hm_ival_sub(one, missed)), clip(kept)};
}

bool hm_filter_law(struct hm_row *p, struct hm_row *q, size_t m, size_t k, struct hm_law *out)
{
    if (m > LONGEST || !hm_filter_ready(p) || !hm_filter_ready(q)) return false;
    bool *in = hm_calloc(p->vocab, sizeof *in);
    if (!in) return false;
    for (size_t rank = 0; rank < k; rank++) in[hm_row_token(p, rank)] = true;
    struct rows x = {p, q, in, hm_ival_div(p->filter.total, q->filter.total)};
    climb(&x, m, out);
    if (k == 0) out->e = (struct hm_ival){0, 0};
    free(in);
    return hm_filter_count(p, hm_ival_narrow(out->accept) && hm_ival_narrow(out->e));
}
