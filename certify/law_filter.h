// The law of iid proposals in double and by MPFR. Not part of the interface.
#ifndef HM_CERTIFY_LAW_FILTER_H
#define HM_CERTIFY_LAW_FILTER_H

#include "certify/law.h"
#include "certify/row_state.h"

// Rows of one vocabulary and temperature that are not the same distribution. True: both enclosures are narrow.
bool hm_filter_law(struct hm_row *p, struct hm_row *q, size_t m, size_t k, struct hm_law *out);

// The law and the probability o that it gives to one token, however wide. False: nothing is known.
bool hm_filter_emission(struct hm_row *p, struct hm_row *q, size_t m, size_t k, int32_t token, struct hm_law *law,
                        struct hm_ival *o);

// The law by MPFR, at rising precision until both enclosures are narrow.
hm_status hm_exact_law(struct hm_row *p, struct hm_row *q, size_t m, size_t k, struct hm_law *out, struct hm_error *err);

// p(token)/o(token), o the law, by MPFR: narrow, or HM_RANGE when o(token) is 0 as far as 4096 bits tell.
hm_status hm_exact_iid_ratio(struct hm_row *p, struct hm_row *q, size_t m, size_t k, int32_t token, struct hm_ival *out,
                             struct hm_error *err);

#endif
