// What a drafter must reach, over every row of the box: docs/theory.md §2 "From enclosures".
//
// The levels depend on the sorted values only, rise with each accepted one and fall with each rejected one. The value at a
// rank is enclosed without knowing which token holds it (known_order.c), so two corners of the box bound all of it.
#include "evidence/known_state.h"

#include "base/memory.h"
#include "bounds/ival_math.h"
#include "evidence/known_water.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_K = 64 }; // so many values of k, at most, are tried where it is open

static const struct hm_ival zero = {0, 0}, open_end = {0, INFINITY};

// The first ranks, and what lies behind them.
struct ranks {
    const struct hm_known *known;
    double *high, *low;         // [count]: ends of log weights
    double *high_sum, *low_sum; // [count + 1]: upper bounds of the first ends' weights, lower bounds
    struct hm_ival *behind;     // [count + 1]: of the listed ends at ranks from here on
    size_t count;
};

static void ranks_free(struct ranks *r)
{
    free(r->high);
    free(r->low);
    free(r->high_sum);
    free(r->low_sum);
    free(r->behind);
}

static struct hm_ival between(double lo, double hi) // ends of equal ranks are in order, but for rounding
{
    return (struct hm_ival){fmin(lo, hi), hi};
}

static bool ranks_make(const struct hm_known *known, size_t count, struct ranks *r)
{
    *r = (struct ranks){.known = known, .count = count};
    r->high = hm_calloc(count, sizeof *r->high);
    r->low = hm_calloc(count, sizeof *r->low);
    r->high_sum = hm_calloc(count + 1, sizeof *r->high_sum);
    r->low_sum = hm_calloc(count + 1, sizeof *r->low_sum);
    r->behind = hm_calloc(count + 1, sizeof *r->behind);
    if (!r->high || !r->low || !r->high_sum || !r->low_sum || !r->behind) return false;
    for (size_t i = 0; i < count; i++) {
        struct hm_ival log = hm_known_log(known, hm_known_ranked(known, i));
        r->high[i] = log.hi;
        r->low[i] = log.lo;
        struct hm_ival w = hm_ival_exp(log);
        r->high_sum[i + 1] = hm_ival_add(hm_ival_point(r->high_sum[i]), hm_ival_point(w.hi)).hi;
        r->low_sum[i + 1] = hm_ival_add(hm_ival_point(r->low_sum[i]), hm_ival_point(w.lo)).lo;
    }
    struct hm_ival sum = zero;
    for (size_t i = known->count; i-- > 0;) {
        sum = hm_ival_add(sum, between(known->low[i].weight, known->high[i].weight));
        if (i <= count) r->behind[i] = sum;
    }
    return true;
}

// Sum of the weights at ranks n and later: all less the first, or the listed behind them and the unseen, of which it is
// the smallest that are left.
static struct hm_ival rest_of(const struct ranks *r, size_t n)
{
    const struct hm_known *known = r->known;
    struct hm_ival out = {0, known->rest.hi};
    if (n <= known->count) {
        out = hm_ival_add(r->behind[n], (struct hm_ival){0, known->rest.hi});
        bool listed = known->positive == 0 || known->each.value.hi <= known->low[n - 1].value; // are all of the first listed?
        if (listed) out.lo = hm_ival_add(hm_ival_point(out.lo), hm_ival_point(known->rest.lo)).lo;
    }
    double most = hm_ival_sub(hm_ival_point(known->total.hi), hm_ival_point(r->low_sum[n])).hi;
    double least = hm_ival_sub(hm_ival_point(known->total.lo), hm_ival_point(r->high_sum[n])).lo;
    return (struct hm_ival){fmax(fmax(out.lo, least), 0), fmax(fmin(out.hi, most), 0)};
}

// KLr* = ln(total/Z) = ln(1 + G/Z), with Z what is kept of the total: both are sums of what does not cancel.
static struct hm_ival reverse(struct hm_ival lost, struct hm_ival kept)
{
    struct hm_ival out = zero;
    if (lost.lo > 0)
        out.lo = kept.hi <= 0 ? INFINITY : hm_ival_log1p(hm_ival_div(hm_ival_point(lost.lo), hm_ival_point(kept.hi))).lo;
    if (lost.hi > 0)
        out.hi = kept.lo <= 0 ? INFINITY : hm_ival_log1p(hm_ival_div(hm_ival_point(lost.hi), hm_ival_point(kept.lo))).hi;
    return (struct hm_ival){fmax(out.lo, 0), fmax(out.hi, 0)};
}

static struct hm_ival per_total(const struct hm_known *known, struct hm_ival x)
{
    struct hm_ival out = hm_ival_div(x, known->total);
    return (struct hm_ival){fmax(out.lo, 0), fmax(out.hi, 0)};
}

static bool solve(const struct ranks *r, size_t k, size_t m, struct hm_known_level *out)
{
    const struct hm_known *known = r->known;
    struct hm_water_values least, most;
    struct hm_ival highest, lowest;
    bool fits = hm_water_solve(&(struct hm_water){r->low, r->high + k, k, m}, &least) &&
                hm_water_solve(&(struct hm_water){r->high, r->low + k, k, m}, &most) &&
                hm_water_kept(&(struct hm_water){r->high, r->high + k, k, m}, &highest) &&
                hm_water_kept(&(struct hm_water){r->low, r->low + k, k, m}, &lowest);
    if (!fits) return false;
    struct hm_ival rest = rest_of(r, k + m), lost = {least.reverse.lo, most.reverse.hi};
    struct hm_ival kept = {hm_ival_add(lowest, rest).lo, hm_ival_add(highest, rest).hi};
    kept.lo = fmax(kept.lo, hm_ival_sub(hm_ival_point(known->total.lo), hm_ival_point(lost.hi)).lo);
    kept.hi = fmin(kept.hi, hm_ival_sub(hm_ival_point(known->total.hi), hm_ival_point(lost.lo)).hi);
    out->klf = per_total(known, (struct hm_ival){least.forward.lo, most.forward.hi});
    out->klr = reverse(lost, kept);
    out->tv = per_total(known, (struct hm_ival){least.variation.lo, most.variation.hi});
    out->tv.hi = fmin(out->tv.hi, 1);
    return true;
}

static struct hm_ival hull(struct hm_ival a, struct hm_ival b)
{
    return (struct hm_ival){fmin(a.lo, b.lo), fmax(a.hi, b.hi)};
}

static void join(struct hm_known_level *all, const struct hm_known_level *one, bool first)
{
    all->klf = first ? one->klf : hull(all->klf, one->klf);
    all->klr = first ? one->klr : hull(all->klr, one->klr);
    all->tv = first ? one->tv : hull(all->tv, one->tv);
}

static bool level_at(const struct ranks *r, size_t k, size_t m, struct hm_known_level *out)
{
    const struct hm_known *known = r->known;
    const struct hm_ival never = {INFINITY, INFINITY};
    size_t vocab = known->evidence->vocab;
    if (k == 0) *out = (struct hm_known_level){zero, zero, zero};
    else if (vocab > 0 && (k > vocab || m > vocab - k)) *out = (struct hm_known_level){never, never, never};
    else if (!solve(r, k, m, out)) return false;
    else if (vocab == 0 && k + m > known->count) out->klf.hi = out->klr.hi = out->tv.hi = INFINITY; // may be all there is
    return true;
}

struct hm_known_level hm_known_level(const struct hm_known *known, const struct hm_rule *rule, size_t m)
{
    struct hm_known_level out = {open_end, open_end, open_end}, all = out, one;
    if (known->row) return hm_exact_level(known, rule, m);
    struct hm_count_range k = hm_known_count(known, rule);
    size_t vocab = known->evidence->vocab;
    if (vocab > 0 && k.most > vocab) k.most = vocab;
    if (m == 0 || k.most == SIZE_MAX || k.most - k.least > MOST_K) return out;
    size_t count = k.most;
    if (!hm_add_size(count, vocab > 0 && m > vocab ? vocab : m, &count) || count > HM_KNOWN_MOST_RANKS) return out;
    struct ranks r;
    bool fits = ranks_make(known, count, &r);
    for (size_t n = k.least; n <= k.most && fits; n++) {
        fits = level_at(&r, n, m, &one);
        if (fits) join(&all, &one, n == k.least);
    }
    ranks_free(&r);
    return fits ? all : out;
}
