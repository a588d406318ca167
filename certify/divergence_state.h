// Parts of certify/divergence.h at one precision. Not part of the interface.
//
// Five of the seven kinds are functions of one sum, sum p^a q^(1-a): they are computed and compared on the scale of
// Renyi's divergence (D_a(p||q), or D_(1-a)(q||p)) and put into their own unit at the very end.
#ifndef HM_CERTIFY_DIVERGENCE_STATE_H
#define HM_CERTIFY_DIVERGENCE_STATE_H

#include "bounds/mpi.h"
#include "certify/divergence.h"
#include "certify/row_pair.h"

// The exponent a of a kind, and which way round its divergence is; false for `max` and `spread`. a is initialised.
struct hm_power {
    mpq_t a;
    bool reversed;
};
bool hm_divergence_power(const struct hm_divergence *d, struct hm_power *out);

// The divergence of two rows on the common scale, at one precision.
hm_status hm_divergence_between_at(const struct hm_divergence *d, struct hm_row *p, struct hm_row *q, mpfr_prec_t precision,
                                   struct hm_mpi *out, struct hm_error *err);

// The least one at which coverage can fail, on the same scale; 1 <= k, k + m <= vocab. *good is false when the precision
// does not prove the level. tied (may be NULL): the first [0] of A and the last [1] of S surely off the level, of a power.
hm_status hm_divergence_level_at(const struct hm_divergence *d, struct hm_row *p, size_t k, size_t m, mpfr_prec_t precision,
                                 struct hm_mpi *out, size_t tied[2], bool *good, struct hm_error *err);

// From the common scale to the kind's own unit.
void hm_divergence_unit(const struct hm_divergence *d, struct hm_mpi *x);
struct hm_ival hm_divergence_unit_ival(const struct hm_divergence *d, struct hm_ival x);

// The filter's enclosures of both on the common scale, wide or narrow; false: nothing is known. For the level as above.
bool hm_divergence_between_filter(const struct hm_divergence *d, struct hm_row *p, struct hm_row *q, struct hm_ival *out);
bool hm_divergence_level_filter(const struct hm_divergence *d, struct hm_row *p, size_t k, size_t m, struct hm_ival *out);

// Does a token have probability under `of` and none under `in`?
bool hm_row_leaves(const struct hm_row *of, const struct hm_row *in);

// The largest and the least l_i - d_i over the tokens where both are finite, which *most attains; false: there is none.
bool hm_row_pair_range(const struct hm_row *p, const struct hm_row *q, struct hm_exact range[2], size_t *most);

#endif
