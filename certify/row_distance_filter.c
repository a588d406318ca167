// Differences of two rows in double: see row_distance_filter.h. With r_i = ln(p_i/q_i) every divergence is a sum of
// non-negative terms in which nothing cancels,
//
//     KL(p||q) = sum p_i (e^-r_i - 1 + r_i),    2 TV = sum |p_i - q_i| = sum p_i |1 - e^-r_i|.
//
// r_i needs D = ln(Z_p/Z_q). An error eta in it changes KL by e^eta - 1 - eta only, a second order; TV by eta at most,
// but the signed sum of p_i - q_i, which has to be 0, tells eta. If that is still too much the sums are taken again
// with the better D. docs/filter.md, "Two rows".
#include "certify/row_distance_filter.h"

#include "base/memory.h"
#include "bounds/ival_math.h"

#include <math.h>
#include <stdlib.h>

struct pair {
    struct hm_row *p, *q;
    struct hm_pair_known known;
    double mass; // W_p and every sum of the pass are good to this, relative
};

// Sums of the pass and what they are worth.
struct sums {
    double forward, backward, gap, size; // shares: divided by W_p
};

// x + y = sum + *low exactly.
static double two_sum(double x, double y, double *low)
{
    double sum = x + y, part = sum - x;
    *low = (x - (sum - part)) + (y - part);
    return sum;
}

// D += the enclosed number; returns its middle. Four roundings of the low part.
static double shift(struct pair *x, struct hm_ival by)
{
    double middle = by.lo / 2 + by.hi / 2, low;
    x->known.scale.log_ratio = two_sum(x->known.scale.log_ratio, middle, &low);
    x->known.scale.log_ratio_low += low;
    x->known.eta =
        fmax(by.hi - middle, middle - by.lo) * (1 + 0x1p-40) + fabs(x->known.scale.log_ratio_low) * 0x1p-50 + 0x1p-1000;
    return middle;
}

// D = (top_p - top_q)/T + ln(W_p/w_top) - ln(W_q/w_top), where the first part is a sum of two doubles and the rest
// comes from log1p of what the others weigh. The ratio of the weights is that of the tops times e^rest, so that p_i,
// q_i and r_i belong to one and the same D.
static bool pair_open(struct pair *x, struct hm_row *p, struct hm_row *q)
{
    if (!hm_filter_ready(p) || !hm_filter_ready(q)) return false;
    x->p = p;
    x->q = q;
    x->mass = (hm_pass_roundings(p->vocab) * 2.1 + 40) * 0x1p-53;
    x->known = p->filter.pair;
    if (x->known.other == q->serial) return true;
    const struct hm_weight_scale *s = &p->filter.scale;
    struct hm_ival logs = hm_ival_sub(hm_filter_log_total(p), hm_filter_log_total(q));
    double low, tops = two_sum(p->top, -(double)q->top, &low), high = tops * s->inverse;
    low = __builtin_fma(tops, s->inverse, -high) + (tops * s->inverse_low + low * s->inverse);
    x->known.other = q->serial;
    x->known.scale = (struct hm_pair_scale){s->inverse, s->inverse_low, high, low, 0};
    struct hm_ival rest = hm_ival_exp(hm_ival_point(shift(x, logs)));
    x->known.eta += fabs(high) * 0x1p-98;
    x->known.scale.ratio = p->filter.heads[0] / q->filter.heads[0] * (rest.lo / 2 + rest.hi / 2);
    x->known.twist = (rest.hi - rest.lo) / rest.lo + 3 * HM_WEIGHT_ERROR + 0x1p-50;
    x->known.exact = false;
    return fabs(x->known.scale.log_ratio) <= 0x1p16 && x->known.eta <= 0x1p-31 && x->known.twist <= 0x1p-40;
}

static void find_exact(struct pair *x)
{
    struct hm_spread a, b;
    const struct hm_row_passes *passes = hm_row_passes();
    passes->spread(x->p->logits, x->p->vocab, (float)x->p->filter.scale.floor, &a);
    passes->spread(x->q->logits, x->q->vocab, (float)x->q->filter.scale.floor, &b);
    x->known.exact = hm_spreads_exact(a, b);
}

// What r_i is off by beyond a few roundings of itself.
static double slack(const struct pair *x)
{
    return fabs(x->known.scale.log_ratio) * (x->known.exact ? 0x1p-100 : 0x1p-51) + 0x1p-300;
}

static struct sums measure(const struct pair *x, const float *l, const float *d, const double *a, const double *b,
                           size_t count)
{
    struct hm_pair_lanes lanes = {0};
    hm_row_passes()->compare(l, d, a, b, count, &x->known.scale, &lanes);
    double unit = 1 / x->p->filter.mass;
    return (struct sums){hm_lanes_fold(&lanes.forward) * unit, hm_lanes_fold(&lanes.backward) * unit,
                         hm_lanes_fold(&lanes.gap) * unit, hm_lanes_fold(&lanes.size) * unit};
}

static struct sums measure_all(const struct pair *x)
{
    return measure(x, x->p->logits, x->q->logits, x->p->filter.weights, x->q->filter.weights, x->p->vocab);
}

// A sum of terms >= 0 that is good to a relative and an absolute error.
static struct hm_ival around(double sum, double relative, double absolute)
{
    double lo = sum * (1 - relative) - absolute;
    return (struct hm_ival){lo > 0 ? lo : 0, sum * (1 + relative) + absolute};
}

static const double remote = 0x1p-150; // what tokens 990 ln 2 nats below the top can add, in all

// Of sums of |p_i - q_i|, relative: q_i <= 4.6 |p_i - q_i| where |r_i| > 1/4; series and roundings elsewhere.
static double gap_error(const struct pair *x)
{
    return x->mass + 5 * x->known.twist + 0x1p-46;
}

static struct hm_ival variation(const struct pair *x, const struct sums *s)
{
    struct hm_ival tv = around(s->size / 2, gap_error(x), (x->known.eta + slack(x)) * 1.01 + remote);
    if (tv.hi > 1) tv.hi = 1;
    return tv;
}

// An error of r_i changes its term by |p_i - q_i| times it and its square: where r_i is smaller than that, size is of
// no use.
static struct hm_ival divergence(const struct pair *x, double sum, double size)
{
    // q_i (1 + |r_i|) is at most 44 terms, and so is p_i (1 + |r_i|), which is good to 10 * 2^-53
    struct hm_ival kl =
        around(sum, x->mass + 44 * x->known.twist + 0x1p-44, 8 * (size + 2 * slack(x)) * slack(x) + remote);
    kl.lo = kl.lo > x->known.eta * x->known.eta ? kl.lo - 2 * x->known.eta * x->known.eta : 0;
    if (kl.lo < 0) kl.lo = 0;
    return kl;
}

// p_i > 0 and q_i = 0 somewhere?
static bool escapes(const struct hm_row *p, const struct hm_row *q)
{
    if (q->support == q->vocab) return false;
    if (p->support > q->support) return true;
    for (size_t i = 0; i < p->vocab; i++)
        if (q->logits[i] == -INFINITY && p->logits[i] != -INFINITY) return true;
    return false;
}

// sum of min(p_i, q_i): 1 - TV, or the sum itself where the subtraction would leave too little.
static struct hm_ival standard_accept(const struct pair *x, struct hm_ival tv)
{
    if (tv.hi < 0.9375) return hm_ival_sub(hm_ival_point(1), tv);
    struct hm_lanes lanes = {{0}};
    hm_row_passes()->overlap(x->p->filter.weights, x->q->filter.weights, x->p->vocab, x->known.scale.ratio, &lanes);
    return around(hm_lanes_fold(&lanes) / x->p->filter.mass, x->mass + x->known.twist + x->known.eta * 1.01, remote);
}

static bool conclude(const struct pair *x, const struct sums *s, struct hm_row_distance *out)
{
    static const struct hm_ival infinite = {INFINITY, INFINITY};
    out->kl_pq = escapes(x->p, x->q) ? infinite : divergence(x, s->forward, s->size);
    out->kl_qp = escapes(x->q, x->p) ? infinite : divergence(x, s->backward, s->size);
    out->tv = variation(x, s);
    out->standard_accept = standard_accept(x, out->tv);
    return hm_ival_narrow(out->kl_pq) && hm_ival_narrow(out->kl_qp) && hm_ival_narrow(out->tv) &&
           hm_ival_narrow(out->standard_accept);
}

// The signed sum of p_i - q_i e^eta, which is 1 - e^eta.
static struct hm_ival signed_gap(const struct pair *x, const struct sums *s)
{
    double error = s->size * gap_error(x) + slack(x) * 1.01 + remote;
    return (struct hm_ival){s->gap - error, s->gap + error};
}

// What it says of the D in use; |eta| <= 2^-31 is known, and |eta| <= |1 - e^eta| (1 + |eta|).
static void learn(struct pair *x, const struct sums *s)
{
    struct hm_ival gap = signed_gap(x, s);
    double most = fmax(fabs(gap.lo), fabs(gap.hi)) * (1 + 0x1p-30);
    if (most < x->known.eta) x->known.eta = most;
}

// A better D from it.
static bool refine(struct pair *x, const struct sums *s)
{
    struct hm_ival gap = signed_gap(x, s);
    x->known.scale.ratio *=
        1 + shift(x, hm_ival_neg(hm_ival_log1p(hm_ival_neg(gap)))); // within eta^2 of the exponential
    x->known.twist += 0x1p-51;
    return x->known.eta <= 0x1p-31;
}

bool hm_filter_row_distance(struct hm_row *p, struct hm_row *q, struct hm_row_distance *out)
{
    struct pair x;
    if (!pair_open(&x, p, q)) return hm_filter_count(p, false);
    struct sums s = measure_all(&x);
    learn(&x, &s);
    bool found = conclude(&x, &s, out);
    if (!found) {
        find_exact(&x);
        learn(&x, &s);
        found = conclude(&x, &s, out);
    }
    if (!found && refine(&x, &s)) {
        s = measure_all(&x);
        learn(&x, &s);
        found = conclude(&x, &s, out);
    }
    p->filter.pair = x.known;
    return hm_filter_count(p, found);
}

// The tokens at which q may exceed p, side by side.
struct gathered {
    float *l, *d;
    double *a, *b;
    size_t count;
};

static bool gather(const struct pair *x, const int32_t *tokens, size_t count, struct gathered *g)
{
    g->count = 0;
    g->a = hm_calloc(count, 2 * (sizeof *g->a + sizeof *g->l));
    if (!g->a) return false;
    g->b = g->a + count;
    g->l = (float *)(g->b + count);
    g->d = g->l + count;
    for (size_t i = 0; i < count; i++) {
        float l = x->p->logits[tokens[i]], d = x->q->logits[tokens[i]];
        double e = (double)l - (double)d;
        if (d == -INFINITY || e * x->known.scale.inverse - x->known.scale.log_ratio > 0x1p-16)
            continue; // surely p_i > q_i, or both 0
        g->l[g->count] = l;
        g->d[g->count] = d;
        g->a[g->count] = x->p->filter.weights[tokens[i]];
        g->b[g->count++] = x->q->filter.weights[tokens[i]];
    }
    return true;
}

// sum of (q_i - p_i)^+ = (size - gap)/2 over the gathered tokens, of which those with p_i > q_i have |r_i| <= 2^-16.
static struct hm_ival excess(const struct pair *x, const struct gathered *g)
{
    if (g->count == 0) return (struct hm_ival){0, 0};
    struct sums s = measure(x, g->l, g->d, g->a, g->b, g->count);
    struct hm_ival e =
        around((s.size - s.gap) / 2, 0x1p-50, s.size * gap_error(x) + (x->known.eta + slack(x)) * 1.01 + remote);
    if (e.hi > 1) e.hi = 1;
    return e;
}

bool hm_filter_row_excess(struct hm_row *p, struct hm_row *q, const int32_t *tokens, size_t count, struct hm_ival *out)
{
    struct pair x;
    struct gathered g;
    if (!pair_open(&x, p, q) || !gather(&x, tokens, count, &g)) return hm_filter_count(p, false);
    *out = excess(&x, &g);
    if (!hm_ival_narrow(*out)) {
        find_exact(&x);
        *out = excess(&x, &g);
    }
    if (!hm_ival_narrow(*out)) {
        struct sums s = measure_all(&x);
        learn(&x, &s);
        *out = excess(&x, &g);
        if (!hm_ival_narrow(*out) && refine(&x, &s)) *out = excess(&x, &g);
    }
    free(g.a);
    return hm_filter_count(p, hm_ival_narrow(*out));
}

bool hm_filter_gaps(struct hm_row *p, struct hm_row *q, double *gaps, double *shares, struct hm_pair_gaps *out)
{
    struct pair x;
    if (!pair_open(&x, p, q)) return false;
    struct sums s = measure_all(&x);
    if (!x.known.exact && slack(&x) > s.size * 0x1p-46) find_exact(&x);
    learn(&x, &s);
    if (x.known.eta > s.size * 0x1p-42 && refine(&x, &s)) {
        s = measure_all(&x);
        learn(&x, &s);
    }
    p->filter.pair = x.known;
    hm_row_passes()->gaps(p->logits, q->logits, p->filter.weights, q->filter.weights, p->vocab, &x.known.scale, gaps);
    for (size_t i = 0; i < p->vocab; i++) shares[i] = q->filter.weights[i] * x.known.scale.ratio;
    *out = (struct hm_pair_gaps){s.size, gap_error(&x), x.known.twist + 0x1p-50, (x.known.eta + slack(&x)) * 1.01 + remote};
    return true;
}
