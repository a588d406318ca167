// The order of a row beyond its head: see row.h, theory.md §1. Most questions that leave the head stay near it, so a
// longer prefix is sorted first, and the whole row only when somebody asks beyond that.
#include "certify/row_state.h"

#include "base/memory.h"
#include "bounds/row_pass.h"

#include <stdlib.h>
#include <string.h>

// Radix sort of keys[0, count), least significant digit of the logit halves first; it is stable, and ids ascend.
static void sort_keys(struct hm_row *row, size_t count)
{
    enum { DIGIT = 11, BUCKETS = 1 << DIGIT };
    for (int shift = 32; shift < 64; shift += DIGIT) {
        size_t start[BUCKETS + 1] = {0};
        for (size_t i = 0; i < count; i++) start[(row->keys[i] >> shift & (BUCKETS - 1)) + 1]++;
        for (int b = 0; b < BUCKETS; b++) start[b + 1] += start[b];
        for (size_t i = 0; i < count; i++) row->spare[start[row->keys[i] >> shift & (BUCKETS - 1)]++] = row->keys[i];
        uint64_t *swap = row->keys;
        row->keys = row->spare;
        row->spare = swap;
    }
    row->sorted = count;
}

// The value of the given rank from above among the values [count], which it reorders (Hoare's selection).
static float select_largest(float *value, size_t count, size_t rank)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        float pivot = value[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;; i++, j--) {
            while (value[i] > pivot) i++;
            while (value[j] < pivot) j--;
            if (i >= j) break;
            float swap = value[i];
            value[i] = value[j];
            value[j] = swap;
        }
        if (rank <= j) high = j;
        else low = j + 1;
    }
    return value[rank];
}

// The largest logits are those not below the `count`-th largest of the blocks' maxima: `count` blocks have one as large, so
// there are at least as many tokens, and only blocks with such a maximum hold any. Fills keys; returns how many, or 0
// when memory is short.
static size_t gather_largest(struct hm_row *row, const float *maxima, size_t blocks, size_t count)
{
    float *copy = malloc(blocks * sizeof *copy);
    size_t n = 0;
    if (!copy) return 0;
    memcpy(copy, maxima, blocks * sizeof *copy);
    float least = select_largest(copy, blocks, count - 1);
    free(copy);
    for (size_t b = 0; b < blocks; b++) {
        if (maxima[b] < least) continue;
        size_t start = b * HM_LOOK_BLOCK, end = start + HM_LOOK_BLOCK < row->vocab ? start + HM_LOOK_BLOCK : row->vocab;
        for (size_t i = start; i < end; i++)
            if (row->logits[i] >= least) row->keys[n++] = hm_row_key(row, i);
    }
    return n;
}

// A longer prefix, from a count of the keys by their first bits: all buckets up to the one that makes it long enough.
static size_t gather_buckets(struct hm_row *row, size_t wanted)
{
    enum { BITS = 12, BUCKETS = 1 << BITS };
    uint32_t held[BUCKETS] = {0};
    size_t n = 0, bucket = 0, sum;
    for (size_t i = 0; i < row->vocab; i++) held[hm_row_key(row, i) >> (64 - BITS)]++;
    for (sum = held[0]; sum < wanted; sum += held[bucket]) bucket++;
    for (size_t i = 0; i < row->vocab; i++) {
        row->keys[n] = hm_row_key(row, i);
        n += row->keys[n] >> (64 - BITS) <= bucket;
    }
    return n;
}

void hm_row_order(struct hm_row *row, size_t rank)
{
    enum { PREFIX = 512, LONGER = 8192 };
    size_t blocks = (row->vocab + HM_LOOK_BLOCK - 1) / HM_LOOK_BLOCK, wanted = blocks / 2 < PREFIX ? blocks / 2 : PREFIX;
    size_t count = 0;
    if (row->sorted == 0 && rank < wanted) // the maxima are still there
        count = gather_largest(row, (const float *)row->spare, blocks, wanted);
    else if (rank < LONGER && row->vocab > 4 * LONGER) count = gather_buckets(row, LONGER);
    if (count <= rank)
        for (count = 0; count < row->vocab; count++) row->keys[count] = hm_row_key(row, count);
    sort_keys(row, count);
}

int32_t hm_row_token(struct hm_row *row, size_t rank)
{
    if (rank >= row->vocab) return -1;
    if (rank < HM_ROW_HEAD) return (int32_t)(uint32_t)row->head[rank];
    if (rank >= row->sorted) hm_row_order(row, rank);
    return (int32_t)(uint32_t)row->keys[rank];
}
