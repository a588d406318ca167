// Parts of theory.md §4 that have files of their own: p(D) and the bound of TV. Not part of the interface.
#ifndef HM_CERTIFY_RESTRICTED_H
#define HM_CERTIFY_RESTRICTED_H

#include "certify/certificate_state.h"

// p_D and q as rows: ids ascend in D, so ties keep their order.
struct hm_restriction {
    struct hm_row *whole;  // p
    int32_t *ids;          // [size], ascending
    float *target, *draft; // [size]
    size_t size, k, m;
    struct hm_row *p, *q;  // NULL for a D of one token
    int32_t *first;        // ids of the first k + m tokens of D in p's order, when there are so many
};

// p(D), -ln p(D), and the bound of TV with what is known of it, at one precision.
struct hm_restricted_values {
    struct hm_mpi mass, loss, tv;
    struct hm_mpi outside; // weight outside D
    bool least;            // the bound is 1 - p(D), which no TV(p, q) is below
};
void hm_restricted_values_init(struct hm_restricted_values *v, mpfr_prec_t precision);
void hm_restricted_values_clear(struct hm_restricted_values *v);
hm_status hm_restricted_values_at(const struct hm_restriction *r, mpfr_prec_t precision, struct hm_restricted_values *v,
                                  struct hm_error *err);

// The same as enclosures in double; false: the filter is off.
struct hm_restricted_figures {
    struct hm_ival mass, loss, tv;
    bool least;
};
bool hm_restricted_filter(const struct hm_restriction *r, struct hm_restricted_figures *out);

#endif
