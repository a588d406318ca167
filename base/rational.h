// Exact rational parameters: temperatures and rule parameters, as written by a person or a log.
//
// Accepted spellings: decimals ("0.3", "1e-3"), fractions ("1/10"), hexadecimal floats ("0x1.8p-1"). 0.1 means 1/10,
// not the nearest double.
#ifndef HM_BASE_RATIONAL_H
#define HM_BASE_RATIONAL_H

#include "base/error.h"

#include <gmp.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hm_rational {
    mpq_t value; // canonical form
};

// Every rational is initialised before use and cleared after it; init sets 0.
void hm_rational_init(struct hm_rational *r);
void hm_rational_clear(struct hm_rational *r);
void hm_rational_set(struct hm_rational *r, const struct hm_rational *from);
void hm_rational_set_int(struct hm_rational *r, long numerator, unsigned long denominator);

// Parses the whole of text. HM_FORMAT when it is not one of the spellings above or its exponent is beyond +-4096
// (decimal: +-1200) or it is longer than 4,096 characters.
hm_status hm_rational_parse(const char *text, struct hm_rational *out, struct hm_error *err);

// "3/10" or "2", in fresh memory (the caller frees it); NULL when memory is short.
char *hm_rational_text(const struct hm_rational *r);

double hm_rational_double(const struct hm_rational *r); // rounded toward zero, for display only
int hm_rational_sign(const struct hm_rational *r);

#ifdef __cplusplus
}
#endif

#endif
