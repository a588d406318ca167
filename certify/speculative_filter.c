// Coins and residual draws in double: see speculative_state.h; docs/filter.md, "Coins and residuals".
#include "certify/speculative_state.h"

#include "bounds/ival_math.h"

#include <math.h>
#include <string.h>

static struct hm_ival fraction(uint64_t bits)
{
    return hm_ival_point((double)bits * 0x1p-53);
}

static double middle(struct hm_ival x)
{
    return x.lo / 2 + x.hi / 2;
}

// The terms of tokens start .. start + n, at the middle of a.
static void list_terms(const struct hm_remainder *left, size_t start, size_t n, double *out)
{
    const double *w = left->p->filter.weights + start;
    if (left->q && left->rejected > 0) {
        const double *v = left->q->filter.weights + start, a = middle(left->scale);
        for (size_t i = 0; i < n; i++) {
            double term = w[i] - a * v[i];
            out[i] = term > 0 ? term : 0;
        }
        return;
    }
    memcpy(out, w, n * sizeof *out);
    for (size_t j = 0; j < left->rejected; j++) {
        size_t token = (size_t)left->tried[j];
        if (token >= start && token - start < n) out[token - start] = 0;
    }
}

static size_t block_size(const struct hm_remainder *left, size_t start)
{
    return left->p->vocab - start < HM_FILTER_BLOCK ? left->p->vocab - start : HM_FILTER_BLOCK;
}

// What any sum of terms is off by beyond its own roundings: two weights, a product and a difference in each term, and a,
// another value of which changes the sum by at most its distance times W_q.
static double term_error(const struct hm_remainder *left)
{
    if (!left->q || left->rejected == 0) return 0;
    double total_p = left->p->filter.total.hi, total_q = left->q->filter.total.hi, a = middle(left->scale);
    double far = fmax(left->scale.hi - a, a - left->scale.lo) * (1 + 0x1p-50) * total_q;
    return (a * total_q + total_p) * 0x1p-49 + far + (1 + a) * (double)left->p->vocab * 0x1p-980;
}

static struct hm_ival enclose(double sum, size_t terms, double error)
{
    struct hm_ival s = hm_ival_add(hm_filter_enclose(sum, terms), (struct hm_ival){-error, error});
    return hm_ival_max(s, hm_ival_point(0));
}

static struct hm_ival sum_of_terms(const struct hm_remainder *left)
{
    double sum = 0, terms[HM_FILTER_BLOCK];
    for (size_t start = 0; start < left->p->vocab; start += HM_FILTER_BLOCK) {
        size_t n = block_size(left, start);
        list_terms(left, start, n, terms);
        sum += hm_filter_block(terms, n);
    }
    return enclose(sum, left->p->vocab, term_error(left));
}

static bool is_ready(const struct hm_remainder *left)
{
    return hm_filter_ready(left->p) && (!left->q || hm_filter_ready(left->q));
}

void hm_remainder_reject(struct hm_remainder *left)
{
    if (is_ready(left)) {
        if (left->rejected == 0) left->total = left->p->filter.total;
        if (left->q) left->scale = hm_ival_add(left->scale, hm_ival_div(left->total, left->q->filter.total));
        left->rejected++;
        left->total = sum_of_terms(left);
    } else {
        left->rejected++;
    }
}

// (a + u total/W_q) v_x < w_x, or u total < w_x.
enum hm_verdict hm_filter_coin(const struct hm_remainder *left, size_t token, uint64_t bits)
{
    if (!is_ready(left)) return HM_UNDECIDED;
    struct hm_ival whole = left->rejected ? left->total : left->p->filter.total;
    struct hm_ival needed = hm_ival_mul(fraction(bits), whole);
    if (left->q) {
        needed = hm_ival_add(left->scale, hm_ival_div(needed, left->q->filter.total));
        needed = hm_ival_mul(needed, hm_filter_weight(left->q, token));
    }
    enum hm_verdict answer = hm_ival_less(needed, hm_filter_weight(left->p, token));
    hm_filter_count(left->p, answer != HM_UNDECIDED);
    return answer;
}

// The sum before the token is surely below the target and the sum with it surely above.
static bool passes(const struct hm_remainder *left, struct hm_ival target, size_t *position)
{
    double before = 0, sum = 0, terms[HM_FILTER_BLOCK], aim = middle(target), error = term_error(left);
    size_t start = 0, vocab = left->p->vocab, n = 0, i = 0;
    for (; start < vocab; start += HM_FILTER_BLOCK) {
        n = block_size(left, start);
        list_terms(left, start, n, terms);
        double next = before + hm_filter_block(terms, n);
        if (next > aim) break;
        before = next;
    }
    if (start >= vocab) return false;
    for (; i < n && before + (sum + terms[i]) <= aim; i++) sum += terms[i];
    if (i == n) return false; // only in one of the two roundings of the block's sum
    *position = start + i;
    return enclose(before + sum, start + i, error).hi < target.lo &&
           enclose(before + (sum + terms[i]), start + i + 1, error).lo > target.hi;
}

bool hm_filter_residual(const struct hm_remainder *left, uint64_t bits, int32_t *token)
{
    if (!is_ready(left) || bits == 0) return false;
    size_t position;
    struct hm_ival whole = left->rejected ? left->total : left->p->filter.total;
    bool found = passes(left, hm_ival_mul(fraction(bits), whole), &position);
    if (found) *token = (int32_t)position;
    return hm_filter_count(left->p, found);
}

struct hm_ival hm_filter_share(const struct hm_remainder *left, size_t token)
{
    if (!is_ready(left)) return (struct hm_ival){0, 1};
    struct hm_ival whole = left->rejected ? left->total : left->p->filter.total;
    return hm_ival_min(hm_ival_div(hm_filter_weight(left->p, token), whole), hm_ival_point(1));
}
