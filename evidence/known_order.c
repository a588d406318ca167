// The order of the tokens, as far as it is known: which token precedes which, and the values at its ranks.
//
// The value at a rank rises with every token's value. So its ends are the values at that rank among all upper ends and
// among all lower ends, and no two tokens' order need be known for it.
#include "evidence/known_state.h"

#include "base/memory.h"
#include "bounds/ival_math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- Sorting

static int descending(const void *a, const void *b)
{
    double x = ((const struct hm_known_end *)a)->value, y = ((const struct hm_known_end *)b)->value;
    return (x < y) - (x > y);
}

// An integer that falls as the number rises.
static uint64_t key(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? bits : ~bits & UINT64_C(0x7fffffffffffffff);
}

enum { DIGIT = 11, DIGITS = 6, BUCKETS = 1 << DIGIT, FEW = 1000 };

// By digits, the last one first; rows of a whole vocabulary need it.
static bool sort(struct hm_known_end *list, size_t n)
{
    if (n < FEW) {
        qsort(list, n, sizeof *list, descending);
        return true;
    }
    struct hm_known_end *spare = hm_calloc(n, sizeof *spare), *from = list, *to = spare;
    if (!spare) return false;
    for (int digit = 0; digit < DIGITS; digit++) {
        size_t start[BUCKETS] = {0}, sum = 0;
        int shift = digit * DIGIT;
        for (size_t i = 0; i < n; i++) start[key(from[i].value) >> shift & (BUCKETS - 1)]++;
        for (size_t i = 0; i < BUCKETS; i++) {
            size_t here = start[i];
            start[i] = sum;
            sum += here;
        }
        for (size_t i = 0; i < n; i++) to[start[key(from[i].value) >> shift & (BUCKETS - 1)]++] = from[i];
        struct hm_known_end *swap = from;
        from = to;
        to = swap;
    }
    free(spare); // an even number of passes: the list is in its own place again
    return true;
}

bool hm_known_sort(struct hm_known *known)
{
    bool sorted = true; // as engines list them, nearly always
    for (size_t i = 0; i < known->count; i++) {
        const struct hm_known_token *t = &known->token[i];
        known->low[i] = (struct hm_known_end){t->value.lo + 0.0, t->weight.lo}; // no -0: its key would lie elsewhere
        known->high[i] = (struct hm_known_end){t->value.hi + 0.0, t->weight.hi};
        sorted = sorted && (i == 0 || (t->value.lo <= t[-1].value.lo && t->value.hi <= t[-1].value.hi));
    }
    return sorted || (sort(known->low, known->count) && sort(known->high, known->count));
}

// ---- Ranks

// The value at a rank of a descending list and n copies of another.
static double merged(const struct hm_known_end *list, size_t count, double other, size_t n, size_t rank)
{
    size_t low = 0, high = count; // how many of the list come first
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].value >= other) low = middle + 1;
        else high = middle;
    }
    if (rank < low) return list[rank].value;
    if (rank - low < n) return other;
    return rank - n < count ? list[rank - n].value : -INFINITY;
}

// Among the upper ends there are all unseen tokens that may have a probability; among the lower ends those that are sure.
static double upper(const struct hm_known *known, size_t unseen, size_t rank)
{
    return merged(known->high, known->count, known->each.value.hi, unseen, rank);
}

static double lower(const struct hm_known *known, size_t unseen, size_t rank)
{
    double low = merged(known->low, known->count, known->each.value.lo, known->each.value.lo > -INFINITY ? unseen : 0, rank);
    return rank == 0 && unseen > 0 ? fmax(low, known->largest) : low;
}

static struct hm_ival between(double lo, double hi)
{
    return (struct hm_ival){fmin(lo, hi), hi};
}

struct hm_ival hm_known_ranked(const struct hm_known *known, size_t rank)
{
    return between(lower(known, known->positive, rank), upper(known, known->positive, rank));
}

struct hm_ival hm_known_ranked_but(const struct hm_known *known, size_t entry, const struct hm_known_token *token, size_t rank)
{
    size_t unseen = known->positive;
    if (entry == HM_UNSEEN) { // the other unseen tokens; the largest may be this one
        if (unseen > 0 && unseen < SIZE_MAX) unseen--;
        double low = merged(known->low, known->count, known->each.value.lo, known->each.value.lo > -INFINITY ? unseen : 0, rank);
        return between(low, upper(known, unseen, rank));
    }
    double hi = upper(known, unseen, rank), lo = lower(known, unseen, rank);
    if (token->value.hi >= hi) hi = upper(known, unseen, rank + 1);
    if (token->value.lo >= merged(known->low, known->count, known->each.value.lo,
                                  known->each.value.lo > -INFINITY ? unseen : 0, rank)) {
        lo = lower(known, unseen, rank + 1);
        if (rank == 0 && unseen > 0) lo = fmax(lo, known->largest);
    }
    return between(lo, hi);
}

// ---- Who precedes whom

enum hm_verdict hm_known_precedes(const struct hm_known *known, size_t listed, size_t entry,
                                  const struct hm_known_token *token)
{
    const struct hm_ival y = known->token[listed].value, x = token->value;
    if (y.lo > x.hi) return HM_YES;
    if (y.hi < x.lo) return HM_NO;
    if (entry == HM_UNSEEN || y.lo != y.hi || x.lo != x.hi) return HM_UNDECIDED;
    int32_t a = known->evidence->entry[listed].id, b = known->evidence->entry[entry].id; // equal: the smaller id
    if (a < 0 || b < 0) return HM_UNDECIDED;
    return a < b ? HM_YES : HM_NO;
}

// How many of the unseen: those above x outweigh it, and the others cannot make up more than n x.
static struct hm_count_range unseen_before(const struct hm_known *known, size_t entry, const struct hm_known_token *x)
{
    struct hm_count_range out = {0, known->unseen};
    if (entry == HM_UNSEEN && out.most != SIZE_MAX && out.most > 0) out.most--;
    if (x->value.lo > -INFINITY && known->positive < out.most) out.most = known->positive;
    if (known->each.value.hi < x->value.lo) out.most = 0;
    if (out.most == 0 || entry == HM_UNSEEN) return out;
    if (known->each.value.lo > x->value.hi) return (struct hm_count_range){known->unseen, known->unseen};
    double most = floor(hm_ival_div(hm_ival_point(known->rest.hi), hm_ival_point(x->weight.lo)).hi);
    if (x->weight.lo > 0) out.most = hm_known_size(most, out.most);
    struct hm_ival most_x = hm_ival_point(x->weight.hi);
    double n = hm_known_number(known->positive), above = hm_ival_sub(hm_ival_point(known->each.weight.hi), most_x).hi;
    if (n == INFINITY || !(above > 0) || above == INFINITY) return out;
    struct hm_ival more = hm_ival_sub(hm_ival_point(known->rest.lo), hm_ival_mul(hm_ival_point(n), most_x));
    double least = more.lo > 0 ? ceil(hm_ival_div(more, hm_ival_point(above)).lo) : 0;
    out.least = hm_known_size(least, out.most);
    return out;
}

struct hm_count_range hm_known_before(const struct hm_known *known, size_t entry, const struct hm_known_token *token)
{
    struct hm_count_range out = unseen_before(known, entry, token);
    for (size_t i = 0; i < known->count; i++) {
        if (i == entry) continue;
        enum hm_verdict before = hm_known_precedes(known, i, entry, token);
        out.least += before == HM_YES;
        if (before != HM_NO && out.most != SIZE_MAX) out.most++;
    }
    return out;
}
