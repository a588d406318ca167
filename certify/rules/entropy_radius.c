// How far logits may move before the DELTA branch of the entropy rule turns: a lower bound, theory.md §6.
//
// At a candidate eta the branch holds (fails) on the whole box when one sum has a sign. The sum is taken in double
// intervals over three classes of tokens by their distance t below the top, of which only the number of tokens, their
// weight and the weighted sum of t matter; a bracketing search finds the largest eta it can, and every eta it keeps was
// proved. A sum that does not tell counts as a failure, so the bound errs on the low side only.
#include "certify/rules/rules.h"

#include "base/memory.h"
#include "bounds/ival_math.h"

#include <math.h>
#include <stdlib.h>

// The first ranks of a row with running sums; what lies behind them is known in total.
struct profile {
    struct hm_row *row;
    size_t count;
    struct hm_ival *distance, *weight, *moment; // [count], [count + 1], [count + 1]
};

// The weight and the moment of some tokens, and how many they are.
struct part {
    size_t count;
    struct hm_ival weight, moment;
};

static void profile_clear(struct profile *p)
{
    free(p->distance);
    free(p->weight);
    free(p->moment);
    *p = (struct profile){.row = p->row};
}

static bool profile_fill(struct profile *p, size_t count)
{
    struct hm_row *row = p->row;
    profile_clear(p);
    p->distance = hm_calloc(count, sizeof *p->distance);
    p->weight = hm_calloc(count + 1, sizeof *p->weight);
    p->moment = hm_calloc(count + 1, sizeof *p->moment);
    if (!p->distance || !p->weight || !p->moment) return false;
    p->count = count;
    for (size_t r = 0; r < count; r++) { // count is at most the support: all distances are finite
        size_t token = (size_t)hm_row_token(row, r);
        struct hm_ival w = hm_filter_weight(row, token), t = hm_filter_distance(row, token);
        p->distance[r] = t;
        p->weight[r + 1] = hm_ival_add(p->weight[r], w);
        p->moment[r + 1] = hm_ival_add(p->moment[r], hm_ival_mul(w, t));
    }
    return true;
}

// How many of the tokens have a distance of at most `cut`: those surely, or those perhaps. Fills the profile that far.
enum which { SURELY, PERHAPS };
static bool within(struct profile *p, double cut, enum which which, size_t *out)
{
    for (;;) {
        size_t low = 0, high = p->count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if ((which == SURELY ? p->distance[middle].hi : p->distance[middle].lo) <= cut) low = middle + 1;
            else high = middle;
        }
        *out = low;
        if (low < p->count || p->count == p->row->support) return true;
        size_t more = p->count > p->row->support / 8 ? p->row->support : 8 * p->count;
        if (!profile_fill(p, more)) return false;
    }
}

// The tokens of ranks [from, to) but x; `to` may be the support.
static struct part take(const struct profile *p, const struct hm_steps *q, size_t from, size_t to)
{
    struct part out = {.count = to - from};
    struct hm_ival head[2] = {p->weight[from], p->moment[from]};
    if (to <= p->count) {
        out.weight = hm_ival_sub(p->weight[to], head[0]);
        out.moment = hm_ival_sub(p->moment[to], head[1]);
    } else {
        out.weight = hm_ival_sub(p->row->filter.total, head[0]);
        out.moment = hm_ival_sub(p->row->filter.moment, head[1]);
    }
    if (q->rank >= from && q->rank < to) {
        struct hm_ival w = hm_filter_weight(p->row, q->token);
        out.count--;
        out.weight = hm_ival_sub(out.weight, w);
        out.moment = hm_ival_sub(out.moment, hm_ival_mul(w, hm_filter_distance(p->row, q->token)));
    }
    if (out.weight.lo < 0) out.weight.lo = 0;
    if (out.moment.lo < 0) out.moment.lo = 0;
    return out;
}

// The numbers of one candidate: s = eta/T, e^s, e^-s, and c with v_i = c - t_i.
struct candidate {
    struct hm_ival s, rise, fall, c, own;
};

static struct candidate candidate_make(const struct hm_steps *q, double eta, struct hm_ival lambda)
{
    struct candidate k;
    struct hm_ival t = hm_filter_distance(q->row, q->token), low, high;
    k.s = hm_ival_div(hm_ival_point(eta), hm_ival_rational(q->row->temperature.value));
    k.rise = hm_ival_exp(k.s);
    k.fall = hm_ival_exp(hm_ival_neg(k.s));
    k.c = hm_ival_add(hm_ival_add(t, q->accepted ? k.s : hm_ival_neg(k.s)), lambda);
    low = hm_ival_mul(k.fall, lambda);
    high = hm_ival_mul(k.rise, lambda);
    k.own = hm_ival_mul(hm_filter_weight(q->row, q->token), q->accepted ? hm_ival_max(low, high) : hm_ival_min(low, high));
    return k;
}

// factor * sum of w (v + shift), v = c - t.
static struct hm_ival weighed(const struct part *part, struct hm_ival factor, struct hm_ival c, struct hm_ival shift)
{
    return hm_ival_mul(factor, hm_ival_sub(hm_ival_mul(hm_ival_add(c, shift), part->weight), part->moment));
}

// The sum of `holds`: the tokens with v >= -s coth s rise, the others fall. A token on the wrong side by at most r makes
// the sum too small by at most 2 r sinh(s) of its weight, which is added.
static bool holds(struct profile *p, const struct hm_steps *q, const struct candidate *k, struct hm_ival *sum)
{
    struct hm_ival twice = hm_ival_sub(k->rise, k->fall), coth = hm_ival_div(hm_ival_add(k->rise, k->fall), twice);
    struct hm_ival cut = hm_ival_add(k->c, hm_ival_mul(k->s, coth));
    size_t near, far;
    if (!isfinite(cut.lo) || !isfinite(cut.hi)) return false;
    if (!within(p, cut.lo, SURELY, &near) || !within(p, cut.hi, PERHAPS, &far)) return false;
    struct part rising = take(p, q, 0, near), falling = take(p, q, near, q->row->support);
    *sum = hm_ival_add(weighed(&rising, k->rise, k->c, k->s), weighed(&falling, k->fall, k->c, hm_ival_neg(k->s)));
    if (far > near) { // only those between can be on the wrong side; each is at most this far from the cut
        struct hm_ival off = hm_ival_sub(hm_ival_point(p->distance[far - 1].hi), hm_ival_point(cut.lo));
        struct hm_ival width = hm_ival_sub(cut, hm_ival_point(p->distance[near].lo));
        double worst = fmax(fabs(off.hi), fabs(width.hi));
        struct part between = take(p, q, near, far);
        *sum = hm_ival_add(*sum, hm_ival_mul(hm_ival_mul(twice, between.weight), hm_ival_point(worst)));
    }
    *sum = hm_ival_add(*sum, k->own);
    return true;
}

// The sum of `fails`: v >= s - 1 falls, v <= -s - 1 rises, and between them a term is -w e^(-1-v) = -e^(-1-c), the weight
// of the top being 1. Any choice of classes overestimates no minimum that it calls "between", so doubtful tokens go there.
static bool fails(struct profile *p, const struct hm_steps *q, const struct candidate *k, struct hm_ival *sum)
{
    struct hm_ival one = hm_ival_point(1), first = hm_ival_add(hm_ival_sub(k->c, k->s), one);
    struct hm_ival last = hm_ival_add(hm_ival_add(k->c, k->s), one);
    size_t near, far;
    if (!isfinite(first.lo) || !isfinite(last.hi)) return false;
    if (!within(p, first.lo, SURELY, &near) || !within(p, last.hi, PERHAPS, &far)) return false;
    if (far < near) far = near;
    struct part falling = take(p, q, 0, near), between = take(p, q, near, far), rising = take(p, q, far, q->row->support);
    *sum = hm_ival_add(weighed(&falling, k->fall, k->c, hm_ival_neg(k->s)), weighed(&rising, k->rise, k->c, k->s));
    struct hm_ival each = hm_ival_mul(hm_filter_top(q->row), hm_ival_exp(hm_ival_neg(hm_ival_add(one, k->c))));
    *sum = hm_ival_sub(*sum, hm_ival_mul(hm_ival_point((double)between.count), each));
    *sum = hm_ival_add(*sum, k->own);
    return true;
}

// Is the decision of the branch proved for the whole box of eta?
static bool proved(struct profile *p, const struct hm_steps *q, struct hm_ival lambda, double eta)
{
    struct candidate k = candidate_make(q, eta, lambda);
    struct hm_ival sum;
    if (!(q->accepted ? holds(p, q, &k, &sum) : fails(p, q, &k, &sum))) return false;
    return q->accepted ? sum.hi <= 0 : sum.lo > 0;
}

void hm_entropy_radius_delta(const struct hm_steps *q, double *out)
{
    enum { TRIES = 48 };
    struct profile p = {.row = q->row};
    *out = 0;
    if (!hm_filter_ready(q->row)) return;
    struct hm_ival lambda = hm_ival_log(hm_ival_rational(q->rule->b.value));
    if (q->row->support == 1) { // the entropy stays 0, and so does the decision
        if (q->accepted == (mpq_cmp_ui(q->rule->b.value, 1, 1) <= 0)) *out = INFINITY;
        return;
    }
    size_t start = q->row->support < HM_ROW_HEAD ? q->row->support : HM_ROW_HEAD;
    double scale = hm_rational_double(&q->row->temperature), good = 0, bad = 0;
    if (profile_fill(&p, start)) {
        // Powers of two first, up or down from a quarter of T; then halving, until the bracket is narrow.
        double eta = scale / 4;
        for (int i = 0; i < TRIES && !(good > 0 && bad > 0 && bad - good <= bad * 0x1p-16); i++) {
            if (proved(&p, q, lambda, eta)) good = eta;
            else bad = eta;
            if (bad == 0) eta = good * 2;
            else if (good == 0) eta = bad / 8;
            else eta = good + (bad - good) / 2;
            if (!(eta < scale * 256)) break;
        }
    }
    profile_clear(&p);
    *out = good;
}
