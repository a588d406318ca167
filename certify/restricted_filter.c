// p(D) and the bound of TV on a draft vocabulary, in double: see restricted.h, theory.md §4, docs/filter.md.
#include "bounds/ival_math.h"
#include "certify/restricted.h"

#include <math.h>

// The weights inside D or outside, in id order and in blocks.
static struct hm_ival weigh(const struct hm_restriction *r, bool inside)
{
    const struct hm_row *p = r->whole;
    double sum = 0, chosen[HM_FILTER_BLOCK];
    for (size_t start = 0, n = 0; start < p->vocab; start += HM_FILTER_BLOCK) {
        size_t count = p->vocab - start < HM_FILTER_BLOCK ? p->vocab - start : HM_FILTER_BLOCK;
        for (size_t i = 0; i < count; i++) {
            bool in = n < r->size && r->ids[n] == (int32_t)(start + i);
            n += in;
            chosen[i] = in == inside && p->logits[start + i] != -INFINITY ? p->filter.weights[start + i] : 0;
        }
        sum += hm_filter_block(chosen, count);
    }
    return sum > 0 ? hm_filter_enclose(sum, p->vocab) : (struct hm_ival){0, 0};
}

// What S gains and what A and the rest lose at t, in the row's own weights.
static void two_sides(const struct hm_restriction *r, struct hm_ival outside, struct hm_ival t, struct hm_ival *gained,
                      struct hm_ival *lost)
{
    const struct hm_ival none = {0, 0};
    *gained = none;
    *lost = outside;
    for (size_t i = 0; i < r->k + r->m; i++) {
        struct hm_ival weight = hm_filter_weight(r->whole, (size_t)r->first[i]);
        if (i < r->k) *lost = hm_ival_add(*lost, hm_ival_max(hm_ival_sub(weight, t), none));
        else *gained = hm_ival_add(*gained, hm_ival_max(hm_ival_sub(t, weight), none));
    }
}

// A point near the crossing of the two sides, as in restricted_values.c.
static double crossing(const struct hm_restriction *r, double outside)
{
    const double *w = r->whole->filter.weights;
    size_t n = r->k + r->m;
    double mass = outside;
    for (size_t i = r->k; i < n; i++) mass += w[r->first[i]];
    for (size_t rank = 0;; rank++) {
        double tied = (double)((rank < r->k ? rank : r->k) + n - (rank < r->k ? r->k : rank));
        if (rank + 1 == n || mass >= w[r->first[rank]] * tied) return mass / tied;
        mass += rank < r->k ? w[r->first[rank]] : -w[r->first[rank]];
    }
}

static void variation(const struct hm_restriction *r, struct hm_ival outside, struct hm_restricted_figures *out)
{
    struct hm_ival gained, lost;
    two_sides(r, outside, hm_filter_weight(r->whole, (size_t)r->first[0]), &gained, &lost);
    out->least = gained.hi <= outside.lo;
    two_sides(r, outside, hm_ival_point(crossing(r, outside.hi)), &gained, &lost);
    struct hm_ival least = hm_ival_min(gained, lost), most = hm_ival_max(gained, lost);
    out->tv = hm_ival_div((struct hm_ival){least.lo, most.hi}, r->whole->filter.total);
    out->tv = hm_ival_min(hm_ival_max(out->tv, hm_ival_point(0)), hm_ival_point(1));
}

bool hm_restricted_filter(const struct hm_restriction *r, struct hm_restricted_figures *out)
{
    *out = (struct hm_restricted_figures){{1, 1}, {0, 0}, {0, 0}, false};
    if (!hm_filter_ready(r->whole)) return false;
    struct hm_ival total = r->whole->filter.total, outside = weigh(r, false);
    bool all = true; // of p lies in D
    for (size_t i = 0, n = 0; i < r->whole->vocab && all; i++) {
        bool in = n < r->size && r->ids[n] == (int32_t)i;
        n += in;
        all = in || r->whole->logits[i] == -INFINITY;
    }
    if (all) outside = (struct hm_ival){0, 0};
    else {
        struct hm_ival one = hm_ival_point(1), share = hm_ival_min(hm_ival_div(outside, total), one);
        out->mass = hm_ival_min(hm_ival_div(weigh(r, true), total), one);
        out->loss = hm_ival_meet(hm_ival_log(out->mass), hm_ival_log1p(hm_ival_neg(share)));
        out->loss = hm_ival_max(hm_ival_neg(out->loss), hm_ival_point(0));
    }
    if (r->first) variation(r, outside, out);
    return out->mass.lo > 0;
}
