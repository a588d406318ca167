// The filter of theory.md §8: questions about a row answered from double enclosures, or not at all. Not part of the
// interface.
//
// Every enclosure is proved (docs/filter.md), so an answer is never wrong; HM_UNDECIDED, or false, sends the caller to
// MPFR. Ties are the caller's: it settles them on the logits before it asks.
#ifndef HM_CERTIFY_ROW_FILTER_H
#define HM_CERTIFY_ROW_FILTER_H

#include "bounds/ival.h"
#include "bounds/row_pass.h"
#include "bounds/weights.h"

#include <gmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hm_row;

enum { HM_ROW_HEAD = 64 }; // ranks that are known without sorting the row

enum hm_filter_state {
    HM_FILTER_UNUSED, // nothing asked yet
    HM_FILTER_READY,  // everything below is filled
    HM_FILTER_OFF     // T or the logits are beyond hm_weight_scale_set, arithmetic is not IEEE's, or MPFR alone is wanted
};

// What a row knows of the last one that it was compared with (row_distance_filter.c): D = ln(Z_p/Z_q).
struct hm_pair_known {
    uint64_t other; // its serial; 0: none
    struct hm_pair_scale scale;
    double eta;   // |log_ratio + log_ratio_low - D| is at most this
    double twist; // weights of q times scale.ratio are q_i e^(D' - D) W_p within this, relative; D' is the D in use
    bool exact;   // the differences of logits are known to be exact doubles
};

struct hm_row_filter {
    enum hm_filter_state state;
    struct hm_weight_scale scale;
    double *weights;               // [vocab], see bounds/row_pass.h; the row's memory
    double heads[HM_ROW_HEAD];     // the weights of the first ranks
    double tails[HM_ROW_HEAD + 1]; // tails[r]: the sum, rounded, of the weights of ranks from r on
    double mass;                   // tails[0]
    struct hm_ival total, moment;  // W = sum of w_i, sum of w_i (l_top - l_i)/T
    struct hm_pair_known pair;
    unsigned long answered, undecided; // how many questions and enclosures were, and were not, answered here
};

// Fills the row's filter when it is first needed: weights, total and moment. False: it is off, and nothing below
// applies.
bool hm_filter_ready(struct hm_row *row);

// Weights are w_i = exp(l_i/T) times a power of two of the row's own, which makes the top weight lie between 0.7
// and 1.5: it is not 1, so compare with hm_filter_top, and use shares w_i/W only across rows. All these need a filter
// that is ready.
struct hm_ival hm_filter_weight(const struct hm_row *row, size_t token); // of one token; equal logits, equal enclosures
struct hm_ival hm_filter_top(const struct hm_row *row);                  // of the first token of the order
// The weights of the ranks below `rank`, and of those from `rank` on: sums of non-negative terms, never a difference
// that cancels, so both are sharp to 2^-40 of themselves however small they are (down to 2^-900: below, absolute). The
// tail at rank 1 is what log1p wants where the top holds nearly everything. Ranks up to HM_ROW_HEAD cost nothing,
// others a pass (and the first of them sorts).
struct hm_ival hm_filter_head(struct hm_row *row, size_t rank);
struct hm_ival hm_filter_tail(struct hm_row *row, size_t rank);
// (l_top - l_i)/T of a finite token, in nats, within a few roundings: 0 exactly for the top.
struct hm_ival hm_filter_distance(const struct hm_row *row, size_t token);

// The sum of `terms` weights (at most INT32_MAX), given their sum in double by at most terms/256 + 256 additions in
// a row (hm_filter_block sums blocks of HM_FILTER_BLOCK weights so).
enum { HM_FILTER_BLOCK = 256 };
struct hm_ival hm_filter_enclose(double sum, size_t terms);
double hm_filter_block(const double *weights, size_t count); // count <= HM_FILTER_BLOCK

// The same for lanes: at most hm_pass_roundings(terms) additions in a row. Sharper.
struct hm_ival hm_filter_enclose_pass(double sum, size_t terms);

// Counts an answer, or the lack of one; returns `answered`.
bool hm_filter_count(struct hm_row *row, bool answered);

// ln(W/w_top), from log1p of what the others weigh: it stays sharp where the top holds nearly everything.
struct hm_ival hm_filter_log_total(struct hm_row *row);

// ln sum exp(l_i/T) and the entropy, in nats; p_token. Not narrow: ask MPFR.
struct hm_ival hm_filter_lse(struct hm_row *row);
struct hm_ival hm_filter_row_entropy(struct hm_row *row);
struct hm_ival hm_filter_probability(struct hm_row *row, size_t token);

// The token drawn by bits > 0 from the first `support` tokens of the order.
bool hm_filter_draw(struct hm_row *row, size_t support, uint64_t bits, int32_t *token);

// The length of the shortest prefix of the order whose share of the first n tokens is at least `share`; n at most
// the row's support.
bool hm_filter_prefix(struct hm_row *row, size_t n, mpq_srcptr share, size_t *length);

#endif
