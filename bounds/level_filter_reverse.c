// The geometric water level in double intervals: see level_filter.h, theory.md §2, docs/filter.md "Levels".
#include "bounds/ival_math.h"
#include "bounds/level_filter_terms.h"

#include <math.h>

static const struct hm_ival zero = {0, 0}, one = {1, 1};

// -ln Z, given what is lost or what is kept of the total: the former where it is little, the latter elsewhere.
static struct hm_ival minus_log1p(struct hm_ival lost)
{
    return hm_ival_max(hm_ival_neg(hm_ival_log1p(hm_ival_neg(lost))), zero);
}

static struct hm_ival minus_log(const struct hm_level_row *row, struct hm_ival kept)
{
    return hm_ival_max(hm_ival_neg(hm_ival_log(hm_ival_min(hm_ival_div(kept, row->total), one))), zero);
}

// Some p_s = 0 in S: the level is 0, A is given up whole.
static void no_level(const struct hm_level_row *row, struct hm_level_ivals *out)
{
    size_t kept = row->k < row->support ? row->k : row->support, n = row->k + row->m;
    out->tied_r[0] = kept;
    out->tied_r[1] = n - (row->k > row->support ? row->k : row->support);
    out->level_r = hm_ival_point(-INFINITY);
    out->klr = hm_ival_point(INFINITY);
    if (kept == row->support) return; // decided by support, not by subtraction
    struct hm_ival lost = hm_ival_div(row->head(row->order, kept), row->total);
    out->klr = lost.hi < 0.5 ? minus_log1p(lost) : minus_log(row, row->tail(row->order, kept));
}

// The tied set, in exact arithmetic: distances of logits from the top and their sums are doubles unless exponents lie
// far apart, and interval operations that are exact keep points. *sum is that of the tied distances.
static bool decide_set(struct hm_terms *t, size_t tied[2], struct hm_ival *sum)
{
    size_t k = t->row->k, n = k + t->row->m, r = 0;
    *sum = zero;
    for (size_t s = k; s < n; s++) *sum = hm_ival_add(*sum, hm_term(t, s).far);
    for (; r < n; r++) { // the first rank whose logit, taken as the level, leaves the balance non-negative (level.c)
        struct hm_ival far = hm_term(t, r).far;
        tied[0] = r < k ? r : k;
        tied[1] = n - (r < k ? k : r);
        struct hm_ival all = hm_ival_mul(hm_ival_count(tied[0] + tied[1]), far);
        if (all.lo > sum->hi) return true;
        if (!(all.hi < sum->lo)) {
            if (all.lo != all.hi || sum->lo != sum->hi) return false;
            break;
        }
        *sum = r < k ? hm_ival_add(*sum, far) : hm_ival_sub(*sum, far);
    }
    if (r == n) return false;
    // The level is the logit of rank r exactly: tokens of S equal to it are not below it.
    for (float level = hm_term(t, r).logit; tied[1] > 0 && hm_term(t, n - tied[1]).logit == level; tied[1]--)
        *sum = hm_ival_sub(*sum, hm_term(t, n - tied[1]).far);
    return true;
}

// 1 - Z = g sum (e^-u - 1 + u) over T' where it is small; else Z itself: the ranks from A's first untied one on, with
// the level in the place of S's tied tokens, which lie below it.
static struct hm_ival from_level(struct hm_terms *t, size_t a, size_t s, struct hm_ival sum, struct hm_ival g)
{
    const struct hm_level_row *row = t->row;
    size_t n = row->k + row->m;
    struct hm_ival all = hm_ival_count(a + s), scale = hm_ival_div(t->inverse, all), excess = zero, below = zero;
    for (size_t i = 0; i < n; i = i + 1 == a ? n - s : i + 1) {
        struct hm_term x = hm_term(t, i);
        struct hm_ival u = hm_ival_mul(hm_ival_sub(hm_ival_mul(all, x.far), sum), scale); // level less logit, over T
        excess = hm_ival_add(excess, hm_ival_exp_excess(u));
        if (i >= a) below = hm_ival_add(below, x.weight);
    }
    struct hm_ival lost = hm_ival_div(hm_ival_mul(g, excess), row->total);
    if (lost.hi < 0.5) return minus_log1p(lost);
    return minus_log(row, hm_ival_add(hm_ival_sub(row->tail(row->order, a), below), hm_ival_mul(all, g)));
}

bool hm_level_filter_reverse(struct hm_terms *t, struct hm_level_ivals *out)
{
    const struct hm_level_row *row = t->row;
    float last = row->logit(row->order, row->k + row->m - 1);
    struct hm_ival log_total = hm_ival_log(row->total), sum;
    out->tied_r[0] = out->tied_r[1] = 0;
    if (last == -INFINITY) {
        no_level(row, out);
        return true;
    }
    if (last == row->top) { // all tied: ln g = ln p_(1)
        out->klr = zero;
        out->level_r = hm_ival_neg(log_total);
        return true;
    }
    if (!decide_set(t, out->tied_r, &sum)) return false;
    size_t a = out->tied_r[0], s = out->tied_r[1];
    struct hm_ival level = hm_ival_neg(hm_ival_mul(hm_ival_div(sum, hm_ival_count(a + s)), t->inverse));
    out->level_r = hm_ival_sub(level, log_total);
    out->klr = from_level(t, a, s, sum, hm_ival_exp(level));
    return true;
}
