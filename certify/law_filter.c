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
    bool *kept;           // [vocab]: in A
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

// Sum over A of (H q_i - p_i)^+. Tokens that are surely likelier in p add nothing at all, so that the sum is exactly 0 where
// no other is left, and keeps its relative accuracy where few are.
static struct hm_ival excess(const struct rows *x, struct hm_ival looked)
{
    struct hm_ival scale = hm_ival_mul(looked, x->ratio);
    double u = scale.lo / 2 + scale.hi / 2, unsure = (scale.hi - scale.lo) / scale.lo + 0x1p-49, sum = 0, error = 0;
    bool none = true;
    for (size_t start = 0; start < x->p->vocab; start += HM_FILTER_BLOCK) {
        size_t n = x->p->vocab - start < HM_FILTER_BLOCK ? x->p->vocab - start : HM_FILTER_BLOCK;
        double terms = 0, errors = 0;
        for (size_t i = start; i < start + n; i++) {
            if (!x->kept[i] || x->q->logits[i] == -INFINITY) continue;
            double w = x->p->filter.weights[i], v = u * x->q->filter.weights[i];
            double off = (w + v) * unsure + (1 + u) * 0x1p-980;
            if (v - w + off < 0) continue;
            none = false;
            terms += v > w ? v - w : 0;
            errors += off;
        }
        sum += terms;
        error += errors;
    }
    if (none) return (struct hm_ival){0, 0};
    struct hm_ival slack = {-error * 1.01, error * 1.01}, s = hm_ival_add(hm_filter_enclose(sum, x->p->vocab), slack);
    return hm_ival_max(hm_ival_div(s, x->p->filter.total), hm_ival_point(0));
}

// A token whose share of the emitted law is wanted (theory.md §5).
struct emission {
    struct hm_ival p, q, o;
    bool kept; // in A
};

// p^(j+1) = (p - c q)^+ / Z.
static struct hm_ival left_of(const struct emission *e, struct hm_ival c, struct hm_ival rest)
{
    struct hm_ival surplus = hm_ival_max(hm_ival_sub(e->p, hm_ival_mul(c, e->q)), hm_ival_point(0));
    return clip(hm_ival_div(surplus, rest));
}

// e: NULL, or whose emission is wanted.
static void climb(const struct rows *x, size_t m, struct hm_law *out, struct emission *e)
{
    const struct hm_ival one = {1, 1};
    struct hm_ival kept = {0, 0}, rejected = kept, c = kept, rest = one, missed = one, looked = kept;
    for (size_t j = 0; j < m; j++) {
        struct hm_ival before = rejected;
        if (e) e->o = hm_ival_add(e->o, hm_ival_mul(missed, e->kept ? e->q : hm_ival_min(e->q, left_of(e, c, rest))));
        looked = hm_ival_add(looked, missed);
        c = hm_ival_add(one, hm_ival_add(kept, rejected));
        shortfalls(x, c, &kept, &rejected);
        missed = hm_ival_mul(missed, clip(hm_ival_div(hm_ival_sub(rejected, before), rest)));
        rest = clip(hm_ival_add(hm_ival_sub(one, c), hm_ival_add(kept, rejected)));
        if (rest.hi < missed.hi) missed.hi = rest.hi; // P_j <= Z_j
        if (!(missed.lo <= missed.hi)) missed.lo = 0;
    }
    if (e) e->o = hm_ival_add(e->o, hm_ival_mul(missed, left_of(e, c, rest)));
    *out = (struct hm_law){clip(hm_ival_sub(one, missed)), clip(excess(x, looked))};
}

static bool open_rows(struct hm_row *p, struct hm_row *q, size_t m, size_t k, struct rows *x)
{
    if (m > LONGEST || !hm_filter_ready(p) || !hm_filter_ready(q)) return false;
    bool *in = hm_calloc(p->vocab, sizeof *in);
    if (!in) return false;
    for (size_t rank = 0; rank < k; rank++) in[hm_row_token(p, rank)] = true;
    *x = (struct rows){p, q, in, hm_ival_div(p->filter.total, q->filter.total)};
    return true;
}

bool hm_filter_law(struct hm_row *p, struct hm_row *q, size_t m, size_t k, struct hm_law *out)
{
    struct rows x;
    if (!open_rows(p, q, m, k, &x)) return false;
    climb(&x, m, out, NULL);
    free(x.kept);
    return hm_filter_count(p, hm_ival_narrow(out->accept) && hm_ival_narrow(out->e));
}

struct hm_ival hm_filter_emission(struct hm_row *p, struct hm_row *q, size_t m, size_t k, int32_t token)
{
    struct rows x;
    struct hm_law unused;
    if (!open_rows(p, q, m, k, &x)) return (struct hm_ival){0, 1};
    struct emission e = {hm_filter_probability(p, (size_t)token), hm_filter_probability(q, (size_t)token), {0, 0}, x.kept[token]};
    climb(&x, m, &unused, &e);
    free(x.kept);
    return e.o;
}
