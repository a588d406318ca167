// Two rows of one alphabet side by side. Not part of the interface.
#ifndef HM_CERTIFY_ROW_PAIR_H
#define HM_CERTIFY_ROW_PAIR_H

#include "certify/row_state.h"

// An error unless they have one vocabulary and one temperature.
hm_status hm_row_pair_check(const struct hm_row *p, const struct hm_row *q, struct hm_error *err);

// Sums of both rows at that precision.
hm_status hm_row_pair_sums(struct hm_row *p, struct hm_row *q, mpfr_prec_t precision, struct hm_error *err);

// The probability of one token, given 1/total of its row; nothing here divides per token.
void hm_row_share(const struct hm_row *row, const struct hm_mpi *inverse, size_t token, struct hm_mpi *out);

// d_i - l_i of two finite logits, exactly: high is the sum rounded, low what is left. Compare high, then low.
struct hm_exact {
    double high, low;
};
struct hm_exact hm_exact_difference(float d, float l);
int hm_exact_compare(struct hm_exact a, struct hm_exact b); // < 0, 0, > 0

#endif
