// The inside of a row, shared by the files of certify/ that answer questions about it. Not part of the interface.
#ifndef HM_CERTIFY_ROW_STATE_H
#define HM_CERTIFY_ROW_STATE_H

#include "bounds/mpi.h"
#include "bounds/weights.h"
#include "certify/row.h"
#include "certify/row_filter.h"

#include <stdbool.h>

struct hm_row {
    const float *logits;            // [vocab], borrowed
    size_t vocab, support;          // support: how many logits are finite
    uint64_t serial;                // no other row of the process has it
    struct hm_rational temperature;
    float top;                      // the largest logit
    bool uniform;                   // all finite logits are equal
    void *memory;                   // of keys, spare and filter.weights
    uint64_t *keys, *spare;         // [vocab] each, filled when the whole order is first needed
    uint64_t head[HM_ROW_HEAD];     // the first keys of the order
    size_t heads;                   // how many: HM_ROW_HEAD or vocab
    size_t sorted;                  // the first so many keys are in order and final (row_order.c)
    struct hm_row_filter filter;    // asked before weights and sums are computed
    struct hm_weights *weights;     // at the highest precision asked for so far, or NULL
    mpfr_prec_t sums_precision;     // of total and moment; 0: not computed
    struct hm_mpi total, moment;    // sum of w_i, sum of w_i (l_top - l_i)/T
    struct hm_level_memory *levels; // those asked for last (certificate_level.c), or NULL
};

// The row's weights at a precision of at least `precision` bits, computed once and kept.
hm_status hm_row_weights(struct hm_row *row, mpfr_prec_t precision, const struct hm_weights **out, struct hm_error *err);

// Total and moment at that precision, in row->total and row->moment.
hm_status hm_row_sums(struct hm_row *row, mpfr_prec_t precision, struct hm_error *err);

// The tokens of the first `count` ranks [count], for the solvers of bounds/; the caller frees it. NULL: no memory.
int32_t *hm_row_first(struct hm_row *row, size_t count);

// Sum of the weights of all tokens whose rank is at least `rank` (a sum, not a difference: nothing cancels).
hm_status hm_row_tail(struct hm_row *row, size_t rank, mpfr_prec_t precision, struct hm_mpi *out, struct hm_error *err);

// The shortest prefix of the order whose share of the first `limit` tokens is at least `share` (0 < share < 1), as a
// range of lengths; decided when both ends agree, which only 4096 bits failing prevents.
hm_status hm_row_prefix(struct hm_row *row, size_t limit, mpq_srcptr share, struct hm_crossing *out, struct hm_error *err);

// The figures of hm_row_distance at one precision.
struct hm_distance_values {
    struct hm_mpi kl_pq, kl_qp, tv, standard_accept;
};
void hm_distance_values_init(struct hm_distance_values *v, mpfr_prec_t precision);
void hm_distance_values_clear(struct hm_distance_values *v);
hm_status hm_row_distance_at(struct hm_row *p, struct hm_row *q, mpfr_prec_t precision, struct hm_distance_values *out,
                             struct hm_error *err);

// Makes row->keys hold the order at least up to that rank.
void hm_row_order(struct hm_row *row, size_t rank);

// The sort key of a token: ascending keys are the order of theory.md §1, and the low half is the token.
uint64_t hm_row_key(const struct hm_row *row, size_t token);

// All finite logits equal and all supports the same up to a constant shift: p and q are one distribution.
bool hm_row_same(const struct hm_row *p, const struct hm_row *q);

#endif
