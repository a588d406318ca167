// The filter of theory.md §8: questions about a row answered from double enclosures, or not at all. Not part of the
// interface.
//
// Every enclosure is proved (docs/filter.md), so an answer is never wrong; HM_UNDECIDED, or false, sends the caller to
// MPFR. Ties are the caller's: it settles them on the logits before it asks.
#ifndef HM_CERTIFY_ROW_FILTER_H
#define HM_CERTIFY_ROW_FILTER_H

#include "bounds/ival.h"
#include "bounds/weights.h"

#include <gmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hm_row;

enum hm_filter_state {
    HM_FILTER_UNUSED, // nothing asked yet
    HM_FILTER_READY,  // inverse, weights and mass are filled
    HM_FILTER_OFF     // no memory, or 1/T is beyond double; tests set it to ask MPFR alone
};

struct hm_row_filter {
    enum hm_filter_state state;
    double inverse;                    // 1/T, rounded
    double *weights;                   // [vocab], see bounds/exp_filter.h
    double mass;                       // their sum, rounded
    struct hm_ival total, moment;      // sum of w_i, sum of w_i (l_top - l_i)/T; the latter if has_moment
    bool has_moment;
    unsigned long answered, undecided; // how many questions were, and were not, answered here
};

// Fills the row's filter when it is first needed. False: it is off.
bool hm_filter_ready(struct hm_row *row);

// The sum of `terms` weights (at most INT32_MAX), given their sum in double by at most terms/256 + 256 additions in
// a row (hm_filter_block sums blocks of HM_FILTER_BLOCK weights so).
enum { HM_FILTER_BLOCK = 256 };
struct hm_ival hm_filter_enclose(double sum, size_t terms);
double hm_filter_block(const double *weights, size_t count); // count <= HM_FILTER_BLOCK

struct hm_ival hm_filter_rational(mpq_srcptr value); // nearest doubles on both sides

// w_i + eps W - 1 >= 0, for a token below the top.
enum hm_verdict hm_filter_additive(struct hm_row *row, size_t token, mpq_srcptr eps);

// Membership by either branch of the entropy rule, for a token with a finite logit.
enum hm_verdict hm_filter_entropy(struct hm_row *row, size_t token, mpq_srcptr eps, mpq_srcptr delta);

// The token drawn by bits > 0 from the first `support` tokens of the order.
bool hm_filter_draw(struct hm_row *row, size_t support, uint64_t bits, int32_t *token);

// The length of the shortest prefix of the order whose share of the first n tokens is at least `share`; n at most
// the row's support.
bool hm_filter_prefix(struct hm_row *row, size_t n, mpq_srcptr share, size_t *length);

#endif
