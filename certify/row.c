// Rows and their order: see row.h, theory.md §1. No arithmetic beyond comparing floats happens here.
#include "certify/row_state.h"

#include "base/memory.h"
#include "bounds/row_pass.h"
#include "certify/row_pair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Floats in IEEE order become unsigned integers in the same order when negatives are complemented and positives get
// the top bit; the complement of that puts larger logits first. -0 and +0 are the same logit.
static uint64_t key_of(float logit, size_t index)
{
    uint32_t bits = 0;
    if (logit != 0) memcpy(&bits, &logit, sizeof bits);
    uint32_t ascending = bits & UINT32_C(0x80000000) ? ~bits : bits | UINT32_C(0x80000000);
    return (uint64_t)(uint32_t)~ascending << 32 | (uint64_t)index;
}

uint64_t hm_row_key(const struct hm_row *row, size_t token)
{
    return key_of(row->logits[token], token);
}

// The place of what the pass has seen to be bad.
static hm_status refuse(const struct hm_row *row, struct hm_error *err)
{
    size_t i = 0;
    while (i + 1 < row->vocab && row->logits[i] < INFINITY) i++;
    return hm_fail(err, HM_RANGE, "logit %zu: expected a finite number or -inf, found %s", i,
                   isnan(row->logits[i]) ? "NaN" : "+inf");
}

// A list of the HM_ROW_HEAD smallest keys seen so far, ascending.
struct smallest {
    uint64_t *keys;
    size_t count;
    float last; // once the list is full: only a larger logit enters, because its index is later
};

static void offer(struct smallest *list, float logit, size_t index)
{
    if (list->count == HM_ROW_HEAD && logit <= list->last) return;
    uint64_t key = key_of(logit, index);
    size_t at = list->count < HM_ROW_HEAD ? list->count++ : list->count - 1;
    for (; at > 0 && list->keys[at - 1] > key; at--) list->keys[at] = list->keys[at - 1];
    list->keys[at] = key;
}

// The HM_ROW_HEAD smallest keys, from the blocks that can hold them: HM_ROW_HEAD blocks have a logit as large as the
// smallest of the HM_ROW_HEAD largest maxima, so no smaller logit is in the head.
static void select_head(struct hm_row *row, const float *maxima, size_t blocks)
{
    uint64_t best[HM_ROW_HEAD];
    struct smallest largest = {best, 0, -INFINITY}, head = {row->head, 0, -INFINITY};
    for (size_t b = 0; b < blocks; b++) {
        offer(&largest, maxima[b], b);
        if (largest.count == HM_ROW_HEAD) largest.last = maxima[(uint32_t)best[HM_ROW_HEAD - 1]];
    }
    for (size_t b = 0; b < blocks; b++) {
        bool full = head.count == HM_ROW_HEAD;
        if (maxima[b] < largest.last || (full && maxima[b] <= head.last)) continue;
        size_t start = b * HM_LOOK_BLOCK, end = start + HM_LOOK_BLOCK < row->vocab ? start + HM_LOOK_BLOCK : row->vocab;
        for (size_t i = start; i < end; i++) {
            float l = row->logits[i];
            if (l < largest.last || (head.count == HM_ROW_HEAD && l <= head.last)) continue;
            offer(&head, l, i);
            if (head.count == HM_ROW_HEAD) head.last = row->logits[(uint32_t)row->head[HM_ROW_HEAD - 1]];
        }
    }
    row->heads = head.count;
}

// All finite logits are equal; they all stand in the head, or its last is smaller than the top, or all must be looked at.
static bool is_uniform(const struct hm_row *row)
{
    size_t known = row->support < row->heads ? row->support : row->heads;
    bool same = row->logits[(uint32_t)row->head[known - 1]] == row->top;
    if (known == row->support) return same;
    for (size_t i = 0; i < row->vocab && same; i++) same = row->logits[i] == row->top || row->logits[i] == -INFINITY;
    return same;
}

// One pass over the logits: what is wrong with them, how many are finite, and the head of the order.
static hm_status inspect(struct hm_row *row, struct hm_error *err)
{
    float *maxima = (float *)row->spare; // idle until the row is sorted
    struct hm_look seen;
    hm_row_passes()->look(row->logits, row->vocab, maxima, &seen);
    if (seen.bad) return refuse(row, err);
    row->support = seen.finite;
    if (row->support == 0)
        return hm_fail(err, HM_RANGE, "row of %zu logits: expected a finite one, found only -inf", row->vocab);
    select_head(row, maxima, (row->vocab + HM_LOOK_BLOCK - 1) / HM_LOOK_BLOCK);
    row->top = row->logits[(uint32_t)row->head[0]];
    row->uniform = is_uniform(row);
    return HM_OK;
}

// One block holds the keys, the spare keys and the filter's weights. It is taken now, so that asking for a token cannot
// fail; what is never used is never touched.
static bool take_memory(struct hm_row *row)
{
    size_t bytes;
    if (!hm_mul_size(row->vocab, 2 * sizeof *row->keys + sizeof *row->filter.weights, &bytes)) return false;
    row->memory = malloc(bytes); // not cleared: what is read is written first
    if (!row->memory) return false;
    row->keys = row->memory;
    row->spare = row->keys + row->vocab;
    row->filter.weights = (double *)(row->spare + row->vocab);
    return true;
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
    static _Atomic uint64_t serial;
    row->serial = ++serial;
    row->logits = logits;
    row->vocab = vocab;
    hm_mpi_init(&row->total, HM_PRECISION_FIRST);
    hm_mpi_init(&row->moment, HM_PRECISION_FIRST);
    hm_status status = take_memory(row) ? inspect(row, err)
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
    free(row->levels);
    free(row->memory);
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

size_t hm_row_rank(struct hm_row *row, int32_t token)
{
    if (token < 0 || (size_t)token >= row->vocab) return row->vocab;
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
    if (!memcmp(p->logits, q->logits, p->vocab * sizeof *p->logits)) return true;
    for (size_t i = 0; i < p->vocab; i++) { // the shift of each token against the shift of the tops, exactly
        float l = p->logits[i], d = q->logits[i];
        if (l == -INFINITY || d == -INFINITY ? l != d : hm_exact_compare(hm_exact_difference(l, p->top),
                                                                         hm_exact_difference(d, q->top)) != 0)
            return false;
    }
    return true;
}
