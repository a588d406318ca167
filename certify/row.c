// Rows and their order: see row.h, theory.md §1. No arithmetic beyond comparing floats happens here.
#include "certify/row_state.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static hm_status inspect(struct hm_row *row, struct hm_error *err)
{
    float top = -INFINITY;
    for (size_t i = 0; i < row->vocab; i++) {
        float l = row->logits[i];
        if (isnan(l) || l == INFINITY)
            return hm_fail(err, HM_RANGE, "logit %zu: expected a finite number or -inf, found %s", i, isnan(l) ? "NaN" : "+inf");
        if (l > top) top = l;
        if (l != -INFINITY) row->support++;
    }
    if (row->support == 0)
        return hm_fail(err, HM_RANGE, "row of %zu logits: expected a finite one, found only -inf", row->vocab);
    row->top = top;
    row->uniform = true;
    for (size_t i = 0; i < row->vocab && row->uniform; i++)
        row->uniform = row->logits[i] == top || row->logits[i] == -INFINITY;
    return HM_OK;
}

hm_status hm_row_open(const float *logits, size_t vocab, const struct hm_rational *temperature, struct hm_row **out,
                      struct hm_error *err)
{
    *out = NULL;
    if (vocab < 2 || vocab > INT32_MAX)
        return hm_fail(err, HM_RANGE, "row: expected between 2 and %ld logits, found %zu", (long)INT32_MAX, vocab);
    if (hm_rational_sign(temperature) <= 0)
        return hm_fail(err, HM_RANGE, "temperature of a row: expected more than 0, found %g", hm_rational_double(temperature));
    struct hm_row *row = hm_calloc(1, sizeof *row);
    if (!row) return hm_fail(err, HM_MEMORY, "row of %zu logits: out of memory", vocab);
    hm_rational_init(&row->temperature);
    hm_rational_set(&row->temperature, temperature);
    row->logits = logits;
    row->vocab = vocab;
    hm_mpi_init(&row->total, HM_PRECISION_FIRST);
    hm_mpi_init(&row->moment, HM_PRECISION_FIRST);
    // Taken now, so that asking for a token cannot fail; the pages stay untouched until the row is sorted.
    row->keys = hm_calloc(vocab, sizeof *row->keys);
    row->spare = hm_calloc(vocab, sizeof *row->spare);
    hm_status status = row->keys && row->spare ? inspect(row, err)
                                               : hm_fail(err, HM_MEMORY, "row of %zu logits: out of memory", vocab);
    if (status) hm_row_close(row);
    else *out = row;
    return status;
}

void hm_row_close(struct hm_row *row)
{
    if (!row) return;
    hm_rational_clear(&row->temperature);
    hm_mpi_clear(&row->total);
    hm_mpi_clear(&row->moment);
    hm_weights_free(row->weights);
    free(row->filter.weights);
    free(row->keys);
    free(row->spare);
    free(row);
}

const float *hm_row_logits(const struct hm_row *row)
{
    return row->logits;
}

size_t hm_row_vocab(const struct hm_row *row)
{
    return row->vocab;
}

// Floats in IEEE order become unsigned integers in the same order when negatives are complemented and positives get
// the top bit; the complement of that puts larger logits first. -0 and +0 are the same logit.
uint64_t hm_row_key(const struct hm_row *row, size_t token)
{
    uint32_t bits = 0;
    float l = row->logits[token];
    if (l != 0) memcpy(&bits, &l, sizeof bits);
    uint32_t ascending = bits & UINT32_C(0x80000000) ? ~bits : bits | UINT32_C(0x80000000);
    return (uint64_t)(uint32_t)~ascending << 32 | (uint64_t)token;
}

// The HM_ROW_HEAD smallest keys by insertion: after the first few thousand tokens almost none is inserted.
static void select_head(struct hm_row *row)
{
    size_t n = 0;
    for (size_t i = 0; i < row->vocab; i++) {
        uint64_t key = hm_row_key(row, i);
        if (n == HM_ROW_HEAD && key > row->head[n - 1]) continue;
        size_t at = n < HM_ROW_HEAD ? n++ : n - 1;
        for (; at > 0 && row->head[at - 1] > key; at--) row->head[at] = row->head[at - 1];
        row->head[at] = key;
    }
    row->heads = n;
}

// Radix sort of the logit halves, least significant digit first; it is stable, and ids start out ascending.
static void sort_order(struct hm_row *row)
{
    enum { DIGIT = 11, BUCKETS = 1 << DIGIT };
    for (size_t i = 0; i < row->vocab; i++) row->keys[i] = hm_row_key(row, i);
    for (int shift = 32; shift < 64; shift += DIGIT) {
        size_t start[BUCKETS + 1] = {0};
        for (size_t i = 0; i < row->vocab; i++) start[(row->keys[i] >> shift & (BUCKETS - 1)) + 1]++;
        for (int b = 0; b < BUCKETS; b++) start[b + 1] += start[b];
        for (size_t i = 0; i < row->vocab; i++) row->spare[start[row->keys[i] >> shift & (BUCKETS - 1)]++] = row->keys[i];
        uint64_t *swap = row->keys;
        row->keys = row->spare;
        row->spare = swap;
    }
    row->sorted = true;
}

int32_t hm_row_token(struct hm_row *row, size_t rank)
{
    if (rank >= row->vocab) return -1;
    if (rank < HM_ROW_HEAD) {
        if (row->heads == 0) select_head(row);
        return (int32_t)(uint32_t)row->head[rank];
    }
    if (!row->sorted) sort_order(row);
    return (int32_t)(uint32_t)row->keys[rank];
}

size_t hm_row_rank(struct hm_row *row, int32_t token)
{
    if (token < 0 || (size_t)token >= row->vocab) return row->vocab;
    if (row->heads == 0) select_head(row);
    uint64_t key = hm_row_key(row, (size_t)token);
    if (key <= row->head[row->heads - 1]) { // most tokens that anybody asks about
        size_t rank = 0;
        while (row->head[rank] != key) rank++;
        return rank;
    }
    float l = row->logits[token];
    size_t before = 0;
    for (size_t i = 0; i < row->vocab; i++) before += row->logits[i] > l;
    for (size_t i = 0; i < (size_t)token; i++) before += row->logits[i] == l;
    return before;
}

int32_t *hm_row_first(struct hm_row *row, size_t count)
{
    int32_t *tokens = hm_calloc(count, sizeof *tokens);
    for (size_t r = 0; tokens && r < count; r++) tokens[r] = hm_row_token(row, r);
    return tokens;
}

bool hm_row_same(const struct hm_row *p, const struct hm_row *q)
{
    if (p->vocab != q->vocab || p->support != q->support) return false;
    // The shift of each token against the shift of the tops, in doubles: a sum of two floats need not fit, so the
    // comparison l_i - top_p = d_i - top_q is made on the rounded differences first and exactly only if they agree.
    mpfr_t a, b;
    mpfr_init2(a, 320);
    mpfr_init2(b, 320);
    bool same = true;
    for (size_t i = 0; i < p->vocab && same; i++) {
        float l = p->logits[i], d = q->logits[i];
        if (l == -INFINITY || d == -INFINITY) {
            same = l == d;
            continue;
        }
        if ((double)l - p->top != (double)d - q->top) {
            same = false;
            continue;
        }
        mpfr_set_flt(a, l, MPFR_RNDN); // 320 bits hold every sum of two floats exactly
        mpfr_sub_d(a, a, p->top, MPFR_RNDN);
        mpfr_set_flt(b, d, MPFR_RNDN);
        mpfr_sub_d(b, b, q->top, MPFR_RNDN);
        same = mpfr_equal_p(a, b);
    }
    mpfr_clear(a);
    mpfr_clear(b);
    return same;
}
