// The law of iid proposals in double. Not part of the interface.
#ifndef HM_CERTIFY_LAW_FILTER_H
#define HM_CERTIFY_LAW_FILTER_H

#include "certify/law.h"
#include "certify/row_state.h"

// Rows of one vocabulary and temperature that are not the same distribution. True: both enclosures are narrow.
bool hm_filter_law(struct hm_row *p, struct hm_row *q, size_t m, size_t k, struct hm_law *out);

#endif
