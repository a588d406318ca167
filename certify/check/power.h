// Divergences beside KL and TV: theory.md §2 "Other divergences"; their names: docs/log.md "Header".
#ifndef HM_CERTIFY_CHECK_POWER_H
#define HM_CERTIFY_CHECK_POWER_H

#include "certify/check/math.h"

enum ck_power_kind {
    CK_RENYI,
    CK_RENYI_REVERSE,
    CK_HELLINGER,
    CK_CHI2,
    CK_CHI2_REVERSE,
    CK_MAX,
    CK_SPREAD,
    CK_POWER_KINDS
};

struct ck_power {
    enum ck_power_kind kind;
    mpq_t order; // a: the sum over p^a q^(1-a), also where the divergence is that of q from p; 0 for max and spread
    char text[96];
};

bool ck_power_parse(const char *text, struct ck_power *power); // the caller clears it either way
void ck_power_clear(struct ck_power *power);
ck_quantity ck_power_value; // between p and q
ck_quantity ck_power_star;  // the least at which coverage can fail; 1 <= k and k + m <= vocab
// What the supports say: both rows have tokens in common; p or q has one that the other lacks.
struct ck_supports {
    bool common, only_p, only_q;
};
struct ck_supports ck_compare_supports(const struct ck_math *math);
void ck_power_extremes(const struct ck_math *math, mpfr_t least, mpfr_t most); // of l_p - l_q, less that of the firsts
bool ck_power_level(struct ck_math *math, int level, const struct ck_ask *ask, struct iv *u); // in units of weights
// power_certify.c: is the divergence below its threshold?
enum answer ck_power_certifies(struct ck_math *math, const struct ck_ask *ask);

#endif
