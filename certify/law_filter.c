// The law of iid proposals in double: the ladder of law_ladder.c, one pass over the rows a rung. Everything is made of the
// differences p - q and of d = c - 1, which are known relative to themselves: where p and q are near each other, so are all
// distances here, and nothing is lost. See law_filter.h, docs/filter.md "Laws".
#include "certify/law_filter.h"

#include "base/memory.h"
#include "bounds/ival_math.h"
#include "certify/row_distance_filter.h"

#include <math.h>
#include <stdlib.h>

enum { LONGEST = 64 }; // rungs; beyond, law_ladder.c's ladder costs less

// p - q and q of some tokens, in units of W_p.
struct list {
    double *gaps, *shares;
    size_t count;
};

struct rows {
    struct hm_row *p;
    struct list all, kept; // all tokens; those of A
    struct hm_pair_gaps pair;
};

static const struct hm_ival zero = {0, 0}, one = {1, 1};

static struct hm_ival clip(struct hm_ival x)
{
    return hm_ival_min(hm_ival_max(x, zero), one);
}

static struct hm_ival around(double sum, size_t terms, double error, struct hm_ival unit)
{
    struct hm_ival share = hm_ival_div(hm_filter_enclose(sum, terms), unit);
    return hm_ival_max(hm_ival_add(share, (struct hm_ival){-error, error}), zero);
}

enum side { SHORTFALL, SURPLUS }; // (c q - p)^+ and (p - c q)^+, c = 1 + d

// The sum over a list, at the middle u of d: each term is off by what its parts are, and another u changes the sum by at most
// its distance times the sum of q, 1.
static struct hm_ival sum_side(const struct rows *x, const struct list *tokens, struct hm_ival d, enum side side)
{
    double u = d.lo / 2 + d.hi / 2, sum = 0, terms[HM_FILTER_BLOCK], sign = side == SURPLUS ? -1 : 1;
    for (size_t start = 0; start < tokens->count; start += HM_FILTER_BLOCK) {
        size_t n = tokens->count - start < HM_FILTER_BLOCK ? tokens->count - start : HM_FILTER_BLOCK;
        const double *gaps = tokens->gaps + start, *shares = tokens->shares + start;
        for (size_t i = 0; i < n; i++) {
            double term = sign * (u * shares[i] - gaps[i]);
            terms[i] = term > 0 ? term : 0;
        }
        sum += hm_filter_block(terms, n);
    }
    double error = x->pair.size * (x->pair.gap_error + 0x1p-50) + u * (x->pair.share_error + 0x1p-50);
    double far = fmax(d.hi - u, u - d.lo) + u * 0x1p-50;
    return around(sum, tokens->count, (error + far + (1 + u) * x->pair.absolute) * 1.01, x->p->filter.total);
}

// Sum over A of (H q - p)^+, H = 1 + h. Tokens that are surely likelier in p add nothing at all, so that the sum is exactly 0
// where no other is left, and keeps its relative accuracy where few are.
static struct hm_ival excess(const struct rows *x, struct hm_ival h)
{
    double u = h.lo / 2 + h.hi / 2, far = (fmax(h.hi - u, u - h.lo) + u * 0x1p-50) * 1.01, sum = 0, error = 0;
    bool none = true;
    for (size_t start = 0; start < x->kept.count; start += HM_FILTER_BLOCK) {
        double terms = 0, errors = 0;
        for (size_t i = start; i < x->kept.count && i < start + HM_FILTER_BLOCK; i++) {
            double gap = x->kept.gaps[i], share = x->kept.shares[i], term = u * share - gap;
            double off = fabs(gap) * (x->pair.gap_error + 0x1p-50) + u * share * (x->pair.share_error + 0x1p-50) + far * share +
                         (1 + u) * x->pair.absolute * (share + fabs(share + gap)) + 0x1p-980;
            if (term + off < 0) continue;
            none = false;
            terms += term > 0 ? term : 0;
            errors += off;
        }
        sum += terms;
        error += errors;
    }
    if (none) return zero;
    struct hm_ival total = x->p->filter.total;
    return around(sum, x->kept.count, error * 1.01 / total.lo, total);
}

// A token whose share of the emitted law is wanted (theory.md §5).
struct emission {
    struct hm_ival p, q, gap, o; // gap: p - q
    bool kept;                   // in A
};

// What a proposal looked at with probability P_(j-1) emits, and, if `last`, the residual draw: p^j = (p - q - d q)^+ / Z.
static void emit(struct emission *e, struct hm_ival missed, struct hm_ival left, bool last)
{
    struct hm_ival chance = last ? left : e->kept ? e->q : hm_ival_min(e->q, left);
    e->o = hm_ival_add(e->o, hm_ival_mul(missed, chance));
}

static struct hm_ival left_of(const struct emission *e, struct hm_ival d, struct hm_ival rest)
{
    struct hm_ival surplus = hm_ival_max(hm_ival_sub(e->gap, hm_ival_mul(d, e->q)), zero);
    return clip(hm_ival_div(surplus, rest));
}

// e: NULL, or whose emission is wanted.
static void climb(const struct rows *x, size_t m, struct hm_law *out, struct emission *e)
{
    struct hm_ival d = zero, rest = one, missed = one, before = zero, h = zero; // H - 1 = P_1 + ... + P_(m-1)
    if (e) emit(e, missed, e->p, false);
    for (size_t j = 1; j <= m; j++) {
        if (j > 1) d = hm_ival_add(d, rest);
        struct hm_ival rejected = sum_side(x, &x->all, d, SHORTFALL);
        if (x->kept.count) rejected = hm_ival_max(hm_ival_sub(rejected, sum_side(x, &x->kept, d, SHORTFALL)), zero);
        missed = hm_ival_mul(missed, clip(hm_ival_div(hm_ival_sub(rejected, before), rest)));
        before = rejected;
        rest = clip(sum_side(x, &x->all, d, SURPLUS));
        if (rest.hi < missed.hi) missed.hi = rest.hi; // P_j <= Z_j
        if (!(missed.lo <= missed.hi)) missed.lo = 0;
        if (e) emit(e, missed, left_of(e, d, rest), j == m);
        if (j < m) h = hm_ival_add(h, missed);
    }
    *out = (struct hm_law){clip(hm_ival_sub(one, missed)), clip(excess(x, h))};
}

// The lists are one block, freed by its first pointer.
static bool open_rows(struct hm_row *p, struct hm_row *q, size_t m, size_t k, struct rows *x)
{
    size_t both, doubles;
    if (m > LONGEST || !hm_filter_ready(p) || !hm_filter_ready(q)) return false;
    if (!hm_add_size(p->vocab, k, &both) || !hm_mul_size(both, 2 * sizeof(double), &doubles)) return false;
    double *memory = malloc(doubles);
    if (!memory) return false;
    *x = (struct rows){.p = p, .all = {memory, memory + p->vocab, p->vocab}};
    x->kept = (struct list){x->all.shares + p->vocab, x->all.shares + p->vocab + k, 0};
    if (!hm_filter_gaps(p, q, x->all.gaps, x->all.shares, &x->pair)) {
        free(memory);
        return false;
    }
    for (; x->kept.count < k; x->kept.count++) {
        size_t token = (size_t)hm_row_token(p, x->kept.count);
        x->kept.gaps[x->kept.count] = x->all.gaps[token];
        x->kept.shares[x->kept.count] = x->all.shares[token];
    }
    return true;
}

bool hm_filter_law(struct hm_row *p, struct hm_row *q, size_t m, size_t k, struct hm_law *out)
{
    struct rows x;
    if (!open_rows(p, q, m, k, &x)) return false;
    climb(&x, m, out, NULL);
    free(x.all.gaps);
    return hm_filter_count(p, hm_ival_narrow(out->accept) && hm_ival_narrow(out->e));
}

bool hm_filter_emission(struct hm_row *p, struct hm_row *q, size_t m, size_t k, int32_t token, struct hm_law *law,
                        struct hm_ival *o)
{
    struct rows x;
    if (!open_rows(p, q, m, k, &x)) return false;
    double gap = x.all.gaps[token], share = x.all.shares[token];
    double off = fabs(gap) * (x.pair.gap_error + 0x1p-50) + x.pair.absolute * (share + fabs(share + gap)) + 0x1p-980;
    struct emission e = {.p = hm_filter_probability(p, (size_t)token), .q = hm_filter_probability(q, (size_t)token),
                         .kept = hm_row_rank(p, token) < k};
    e.gap = hm_ival_div(hm_ival_add(hm_ival_point(gap), (struct hm_ival){-off, off}), p->filter.total);
    climb(&x, m, law, &e);
    free(x.all.gaps);
    *o = e.o;
    return true;
}
