// The water levels for one vector of log weights: see known_water.h, docs/theory.md §2.
//
// Levels are logarithms x. A bracket [lo, hi] is proved by the sign of the balance at its two ends; where the guess comes
// from does not matter. At the level the accepted tokens' terms, which fall with x, are at least their values at `hi`, the
// rejected ones', which rise, at least theirs at `lo`; any x gives an upper bound. With d = |ln p - x| nothing cancels:
//     f(p, e^x) = p (e^-d - 1 + d) above the level, h = e^x (e^d - 1 - d); below it with d and -d exchanged.
#include "evidence/known_water.h"

#include "base/memory.h"
#include "bounds/ival_math.h"

#include <math.h>
#include <stdlib.h>

static const struct hm_ival zero = {0, 0};

struct work {
    const struct hm_water *w;
    struct hm_ival *a, *s; // weights
    double *sums;          // prefix sums for guesses: [k + 1] of the accepted, [m + 1] of the rejected from the last on
    double *room;          // [k + m] for the numbers guessed from
};

struct bracket {
    double lo, at, hi; // at: the guess inside
};

static struct hm_ival distance(double high, double low)
{
    return hm_ival_sub(hm_ival_point(high), hm_ival_point(low));
}

// ---- The two balances: what the accepted stand out above x, and what the rejected lack below it

static struct hm_ival mass_above(const struct work *k, double x)
{
    struct hm_ival sum = zero;
    for (size_t i = 0; i < k->w->k && k->w->accepted[i] > x; i++)
        sum = hm_ival_add(sum, hm_ival_mul(k->a[i], hm_ival_drop(distance(k->w->accepted[i], x))));
    return sum;
}

static struct hm_ival mass_below(const struct work *k, double x)
{
    struct hm_ival sum = zero;
    for (size_t i = k->w->m; i > 0 && k->w->rejected[i - 1] < x; i--)
        sum = hm_ival_add(sum, hm_ival_drop(distance(x, k->w->rejected[i - 1])));
    return sum.hi == 0 ? zero : hm_ival_mul(sum, hm_ival_exp(hm_ival_point(x)));
}

static struct hm_ival nats_above(const struct work *k, double x)
{
    struct hm_ival sum = zero;
    for (size_t i = 0; i < k->w->k && k->w->accepted[i] > x; i++) sum = hm_ival_add(sum, distance(k->w->accepted[i], x));
    return sum;
}

static struct hm_ival nats_below(const struct work *k, double x)
{
    struct hm_ival sum = zero;
    for (size_t i = k->w->m; i > 0 && k->w->rejected[i - 1] < x; i--) sum = hm_ival_add(sum, distance(x, k->w->rejected[i - 1]));
    return sum;
}

typedef struct hm_ival (*side)(const struct work *k, double x);

// ---- Brackets

// How many of a descending list are above x.
static size_t above(const double *list, size_t n, double x)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle] > x) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Widens around the guess until both signs are proved. The ends of all values are a bracket in any case.
static struct bracket prove(const struct work *k, double guess, side up, side down)
{
    const struct hm_water *w = k->w;
    double least = fmin(w->accepted[w->k - 1], w->rejected[w->m - 1]), most = fmax(w->accepted[0], w->rejected[0]);
    struct bracket out = {least, fmin(fmax(guess, least), most), most};
    if (!isfinite(guess)) {
        out.at = most;
        return out;
    }
    bool low = false, high = false;
    double step = fmax(fabs(guess), 1) * 0x1p-52;
    for (int i = 0; i < 18 && !(low && high); i++, step *= 8) {
        if (!low && guess - step > least && up(k, guess - step).lo >= down(k, guess - step).hi) {
            out.lo = guess - step;
            low = true;
        }
        if (!high && guess + step < most && up(k, guess + step).hi <= down(k, guess + step).lo) {
            out.hi = guess + step;
            high = true;
        }
    }
    return out;
}

// The root of a piecewise linear balance in t, given prefix sums, by bisection over how many tokens take part.
static double guess_from(const struct work *k, const double *accepted, const double *rejected, double low, double high)
{
    const struct hm_water *w = k->w;
    const double *sum_a = k->sums, *sum_s = k->sums + w->k + 1;
    double t = low;
    for (int i = 0; i < 64 && low < high; i++) {
        t = low + (high - low) / 2;
        size_t n = above(accepted, w->k, t), s = w->m - above(rejected, w->m, t);
        double balance = (sum_a[n] - (double)n * t) - ((double)s * t - sum_s[s]);
        double mean = n + s > 0 ? (sum_a[n] + sum_s[s]) / (double)(n + s) : t;
        if (balance >= 0) low = t;
        else high = t;
        if (mean > low && mean < high && above(accepted, w->k, mean) == n && w->m - above(rejected, w->m, mean) == s) return mean;
    }
    return t;
}

static double guess(const struct work *k, const double *accepted, const double *rejected)
{
    const struct hm_water *w = k->w;
    double *sum_a = k->sums, *sum_s = k->sums + w->k + 1;
    sum_a[0] = sum_s[0] = 0;
    for (size_t i = 0; i < w->k; i++) sum_a[i + 1] = sum_a[i] + accepted[i];
    for (size_t i = 0; i < w->m; i++) sum_s[i + 1] = sum_s[i] + rejected[w->m - 1 - i];
    double low = fmin(accepted[w->k - 1], rejected[w->m - 1]), high = fmax(accepted[0], rejected[0]);
    return guess_from(k, accepted, rejected, low, high);
}

// A plain guess of the arithmetic level, and then the mean over its tied set once more, from differences.
static struct bracket arithmetic(const struct work *k)
{
    const struct hm_water *w = k->w;
    double top = fmax(w->accepted[0], w->rejected[0]), *accepted = k->room, *rejected = k->room + w->k, lack = 0;
    for (size_t i = 0; i < w->k; i++) accepted[i] = k->a[i].lo;
    for (size_t i = 0; i < w->m; i++) rejected[i] = k->s[i].lo;
    double t = guess(k, accepted, rejected);
    size_t n = above(accepted, w->k, t), s = w->m - above(rejected, w->m, t);
    if (n + s == 0) return prove(k, hm_ival_log(hm_ival_point(t)).lo, mass_above, mass_below);
    for (size_t i = 0; i < n; i++) lack += hm_ival_drop(distance(top, w->accepted[i])).lo;
    for (size_t i = w->m - s; i < w->m; i++) lack += hm_ival_drop(distance(top, w->rejected[i])).lo;
    double x = top + hm_ival_log1p(hm_ival_point(-lack / (double)(n + s))).lo;
    return prove(k, x, mass_above, mass_below);
}

static struct bracket geometric(const struct work *k)
{
    const struct hm_water *w = k->w;
    double last = w->rejected[w->m - 1], *accepted = k->room;
    if (last == -INFINITY) return (struct bracket){-INFINITY, -INFINITY, -INFINITY}; // no root: the level is 0
    for (size_t i = 0; i < w->k; i++) accepted[i] = fmax(w->accepted[i], last); // what is below takes no part
    return prove(k, guess(k, accepted, w->rejected), nats_above, nats_below);
}

// ---- The values

// f of an accepted token above the level x, and of a rejected one below it.
static struct hm_ival forward_above(struct hm_ival p, struct hm_ival d)
{
    return hm_ival_mul(p, hm_ival_exp_excess(d));
}

static struct hm_ival forward_below(struct hm_ival p, struct hm_ival d, double x)
{
    if (d.hi <= 1) return hm_ival_mul(p, hm_ival_exp_excess(hm_ival_neg(d)));
    struct hm_ival t = hm_ival_exp(hm_ival_point(x));
    if (p.hi == 0) return t;
    return hm_ival_sub(hm_ival_mul(t, hm_ival_drop(d)), hm_ival_mul(p, d));
}

static struct hm_ival reverse_above(struct hm_ival p, struct hm_ival d, double x)
{
    struct hm_ival t = hm_ival_exp(hm_ival_point(x));
    if (d.hi <= 1) return hm_ival_mul(t, hm_ival_exp_excess(hm_ival_neg(d)));
    if (t.hi == 0) return p;
    return hm_ival_sub(hm_ival_mul(p, hm_ival_drop(d)), hm_ival_mul(t, d));
}

static struct hm_ival reverse_below(struct hm_ival d, double x)
{
    return hm_ival_mul(hm_ival_exp(hm_ival_point(x)), hm_ival_exp_excess(d));
}

// The sum of terms at the level: accepted ones at `high`, rejected ones at `low`.
static struct hm_ival forward_at(const struct work *k, double high, double low)
{
    const struct hm_water *w = k->w;
    struct hm_ival sum = zero;
    for (size_t i = 0; i < w->k && w->accepted[i] > high; i++)
        sum = hm_ival_add(sum, forward_above(k->a[i], distance(w->accepted[i], high)));
    for (size_t i = w->m; i > 0 && w->rejected[i - 1] < low; i--)
        sum = hm_ival_add(sum, forward_below(k->s[i - 1], distance(low, w->rejected[i - 1]), low));
    return sum;
}

static struct hm_ival reverse_at(const struct work *k, double high, double low)
{
    const struct hm_water *w = k->w;
    struct hm_ival sum = zero;
    for (size_t i = 0; i < w->k && w->accepted[i] > high; i++)
        sum = hm_ival_add(sum, high == -INFINITY ? k->a[i] : reverse_above(k->a[i], distance(w->accepted[i], high), high));
    for (size_t i = w->m; i > 0 && w->rejected[i - 1] < low; i--)
        sum = hm_ival_add(sum, reverse_below(distance(low, w->rejected[i - 1]), low));
    return sum;
}

static struct hm_ival kept_at(const struct work *k, double x)
{
    const struct hm_water *w = k->w;
    struct hm_ival sum = zero, level = hm_ival_exp(hm_ival_point(x));
    for (size_t i = 0; i < w->k; i++) sum = hm_ival_add(sum, w->accepted[i] > x ? level : k->a[i]);
    for (size_t i = 0; i < w->m; i++) sum = hm_ival_add(sum, w->rejected[i] < x ? level : k->s[i]);
    return sum;
}

static double positive(double x)
{
    return x > 0 ? x : 0;
}

static bool work_make(const struct hm_water *water, struct work *k)
{
    size_t n = water->k + water->m;
    *k = (struct work){.w = water, .a = hm_calloc(n, sizeof *k->a), .sums = hm_calloc(2 * n + 2, sizeof *k->sums)};
    if (!k->a || !k->sums) return false;
    k->s = k->a + water->k;
    k->room = k->sums + n + 2;
    for (size_t i = 0; i < water->k; i++) k->a[i] = hm_ival_exp(hm_ival_point(water->accepted[i]));
    for (size_t i = 0; i < water->m; i++) k->s[i] = hm_ival_exp(hm_ival_point(water->rejected[i]));
    return true;
}

static void work_free(struct work *k)
{
    free(k->a);
    free(k->sums);
}

bool hm_water_solve(const struct hm_water *water, struct hm_water_values *out)
{
    struct work k;
    bool fits = work_make(water, &k);
    if (fits) {
        struct bracket c = arithmetic(&k), g = geometric(&k);
        out->forward = (struct hm_ival){positive(forward_at(&k, c.hi, c.lo).lo), positive(forward_at(&k, c.at, c.at).hi)};
        out->variation.lo = positive(fmax(mass_above(&k, c.hi).lo, mass_below(&k, c.lo).lo));
        out->variation.hi = positive(fmax(mass_above(&k, c.at).hi, mass_below(&k, c.at).hi));
        out->reverse = (struct hm_ival){positive(reverse_at(&k, g.hi, g.lo).lo), positive(reverse_at(&k, g.at, g.at).hi)};
    }
    work_free(&k);
    return fits;
}

bool hm_water_kept(const struct hm_water *water, struct hm_ival *out)
{
    struct work k;
    bool fits = work_make(water, &k);
    if (fits) {
        struct bracket g = geometric(&k);
        *out = (struct hm_ival){positive(kept_at(&k, g.lo).lo), kept_at(&k, g.hi).hi};
    }
    work_free(&k);
    return fits;
}
