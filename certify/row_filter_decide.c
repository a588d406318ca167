// Draws and prefixes answered from double enclosures: see row_filter.h.
#include "certify/row_filter.h"

#include "base/memory.h"
#include "bounds/ival_math.h"
#include "certify/row_state.h"

#include <stdlib.h>

// A share of a sum: an enclosure, and a number inside it to look for.
struct target {
    struct hm_ival bounds;
    double middle;
};

static struct target share_of(struct hm_ival share, double sum, struct hm_ival enclosed)
{
    return (struct target){hm_ival_mul(share, enclosed), share.lo * sum};
}

static double whole(const double *weights, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i += HM_FILTER_BLOCK)
        sum += hm_filter_block(weights + i, count - i < HM_FILTER_BLOCK ? count - i : HM_FILTER_BLOCK);
    return sum;
}

// The position at which the running sum of weights [count] first reaches the target, if the sum before it is surely
// below and the sum with it surely above: then reaching and passing are the same.
static bool crosses(const double *weights, size_t count, const struct target *target, size_t *position)
{
    double before = 0, sum = 0;
    size_t start = 0, i;
    for (; start < count; start += HM_FILTER_BLOCK) {
        double next = before + hm_filter_block(weights + start, count - start < HM_FILTER_BLOCK ? count - start
                                                                                                : HM_FILTER_BLOCK);
        if (next > target->middle) break;
        before = next;
    }
    for (i = start; i < count && i < start + HM_FILTER_BLOCK; i++) {
        if (before + (sum + weights[i]) > target->middle) break;
        sum += weights[i];
    }
    // Not reached at all, or only in one of the two roundings of the block's sum.
    if (i >= count || i == start + HM_FILTER_BLOCK) return false;
    *position = i;
    return hm_filter_enclose(before + sum, i).hi < target->bounds.lo &&
           hm_filter_enclose(before + (sum + weights[i]), i + 1).lo > target->bounds.hi;
}

// The first `support` tokens of the order in id order, and their weights.
static size_t gather(const struct hm_row *row, size_t support, int32_t last, int32_t *ids, double *weights)
{
    float least = row->logits[last];
    size_t n = 0;
    for (size_t i = 0; i < row->vocab && n < support; i++) {
        float l = row->logits[i];
        if (l < least || (l == least && i > (size_t)last)) continue;
        ids[n] = (int32_t)i;
        weights[n++] = row->filter.weights[i];
    }
    return n;
}

static bool draw_some(struct hm_row *row, size_t support, struct hm_ival u, int32_t *token)
{
    int32_t *ids = hm_calloc(support, sizeof *ids);
    double *weights = hm_calloc(support, sizeof *weights);
    bool found = false;
    if (ids && weights) {
        size_t position, n = gather(row, support, hm_row_token(row, support - 1), ids, weights);
        double sum = whole(weights, n);
        struct target target = share_of(u, sum, hm_filter_enclose(sum, n));
        found = crosses(weights, n, &target, &position);
        if (found) *token = ids[position];
    }
    free(ids);
    free(weights);
    return found;
}

bool hm_filter_draw(struct hm_row *row, size_t support, uint64_t bits, int32_t *token)
{
    if (!hm_filter_ready(row)) return false;
    const struct hm_row_filter *f = &row->filter;
    double exact = (double)bits * 0x1p-53;
    struct hm_ival u = {exact, exact};
    bool found;
    if (support >= row->support) { // tokens of -inf are neighbours that add nothing: no list is needed
        struct target target = share_of(u, f->mass, f->total);
        size_t position;
        found = crosses(f->weights, row->vocab, &target, &position);
        if (found) *token = (int32_t)position;
    } else {
        found = draw_some(row, support, u, token);
    }
    return hm_filter_count(row, found);
}

static void list_weights(struct hm_row *row, size_t count, double *weights)
{
    for (size_t r = 0; r < count; r++) weights[r] = row->filter.weights[hm_row_token(row, r)];
}

bool hm_filter_prefix(struct hm_row *row, size_t n, mpq_srcptr share, size_t *length)
{
    if (!hm_filter_ready(row)) return false;
    double *weights = malloc(n * sizeof *weights);
    if (!weights) return false;
    struct hm_ival s = hm_ival_rational(share);
    struct target target;
    size_t position, listed = n;
    if (n == row->support) {
        target = share_of(s, row->filter.mass, row->filter.total);
        if (n > HM_ROW_HEAD) listed = HM_ROW_HEAD; // most prefixes are short: they need no sorted row
    }
    list_weights(row, listed, weights);
    if (n != row->support) {
        double sum = whole(weights, n);
        target = share_of(s, sum, hm_filter_enclose(sum, n));
    }
    bool found = crosses(weights, listed, &target, &position);
    while (!found && listed < n) {
        listed = listed > n / 8 ? n : listed * 8;
        list_weights(row, listed, weights);
        found = crosses(weights, listed, &target, &position);
    }
    if (found) *length = position + 1;
    free(weights);
    return hm_filter_count(row, found);
}
