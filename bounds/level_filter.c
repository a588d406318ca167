// The arithmetic water level in double intervals: see level_filter.h, theory.md §2, docs/filter.md "Levels".
//
// Everything is in units of the largest weight. The tied set is guessed by a scan; that every token then lies surely on
// its own side of the mean over the set proves that the set is the tied set, and the mean the level.
#include "bounds/level_filter.h"

#include "bounds/ival_math.h"
#include "bounds/level_filter_terms.h"

// The first rank whose weight, taken as the level, leaves the balance non-negative (level.c), in plain doubles. A's
// tokens of lower rank are above the root and S's of rank >= r are not.
static size_t guess(struct hm_terms *t)
{
    size_t k = t->row->k, n = k + t->row->m, r = 0;
    double sum = 0; // of the tied tokens' drops
    for (size_t s = k; s < n; s++) sum += hm_term(t, s).drop.lo;
    for (; r + 1 < n; r++) {
        double drop = hm_term(t, r).drop.lo, tied = (double)(r < k ? r + n - k : k + n - r);
        if (tied * drop >= sum) break;
        sum += r < k ? drop : -drop;
    }
    return r;
}

// The level's drop 1 - C and the proof of the tied set. Drops rise with the rank, so the four tokens next to the two
// borders speak for all.
static bool prove_level(struct hm_terms *t, size_t tied[2], struct hm_ival *drop)
{
    size_t k = t->row->k, n = k + t->row->m, r = guess(t);
    size_t a = tied[0] = r < k ? r : k, s = tied[1] = n - (r < k ? k : r);
    if (a == 0 || s == 0) return false;
    struct hm_ival sum = {0, 0};
    for (size_t i = 0; i < n; i = i + 1 == a ? n - s : i + 1) sum = hm_ival_add(sum, hm_term(t, i).drop);
    *drop = hm_ival_div(sum, hm_ival_count(a + s));
    bool inside = hm_term(t, a - 1).drop.hi < drop->lo && hm_term(t, n - s).drop.lo > drop->hi;
    bool outside = (a == k || hm_term(t, a).drop.lo > drop->hi) && (n - s == k || hm_term(t, n - s - 1).drop.hi < drop->lo);
    return inside && outside;
}

// w ln(w/C) - w + C at a tied token: w (v - ln(1+v)), v = (C - w)/w. Far below the level v might overflow, and nothing
// cancels in the form as it stands.
static struct hm_ival excess(const struct hm_term *x, struct hm_ival drop, struct hm_ival level)
{
    struct hm_ival step = hm_ival_sub(x->drop, drop); // C - w
    if (x->weight.hi >= level.lo / 8) return hm_ival_mul(x->weight, hm_ival_log_excess(hm_ival_div(step, x->weight)));
    if (x->weight.hi == 0) return step; // 0 ln 0 = 0
    return hm_ival_sub(step, hm_ival_mul(x->weight, hm_ival_add(hm_ival_log(level), x->distance)));
}

static bool forward(struct hm_terms *t, struct hm_level_ivals *out)
{
    const struct hm_level_row *row = t->row;
    const struct hm_ival zero = {0, 0}, one = {1, 1};
    size_t n = row->k + row->m;
    if (row->logit(row->order, n - 1) == row->top) { // all tied: p itself fails weakly
        out->klf = out->tv = zero;
        out->tied_f[0] = out->tied_f[1] = 0;
        out->level_f = hm_ival_div(one, row->total);
        return true;
    }
    struct hm_ival drop, klf = zero, tv = zero;
    if (!prove_level(t, out->tied_f, &drop)) return false;
    struct hm_ival level = hm_ival_sub(one, drop);
    size_t a = out->tied_f[0];
    for (size_t i = 0; i < n; i = i + 1 == a ? n - out->tied_f[1] : i + 1) {
        struct hm_term x = hm_term(t, i);
        klf = hm_ival_add(klf, excess(&x, drop, level));
        if (i < a) tv = hm_ival_add(tv, hm_ival_sub(drop, x.drop));
    }
    out->klf = hm_ival_max(hm_ival_div(klf, row->total), zero);
    out->tv = hm_ival_min(hm_ival_max(hm_ival_div(tv, row->total), zero), one);
    out->level_f = hm_ival_div(level, row->total);
    return true;
}

bool hm_level_filter(const struct hm_level_row *row, struct hm_level_ivals *level, struct hm_margin_ivals *margin)
{
    struct hm_terms t;
    hm_terms_start(&t, row);
    if (!forward(&t, level)) return false;
    bool narrow = hm_ival_narrow(level->klf) && hm_ival_narrow(level->tv) && hm_ival_narrow(level->level_f);
    if (!narrow || !hm_level_filter_reverse(&t, level)) return false;
    if (!hm_ival_narrow(level->klr) || !hm_ival_narrow(level->level_r)) return false;
    if (!margin) return true;
    hm_level_filter_margin(&t, margin);
    return hm_ival_narrow(margin->gap) && hm_ival_narrow(margin->klf) && hm_ival_narrow(margin->klr) && hm_ival_narrow(margin->tv);
}
