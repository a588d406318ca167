// Divergences beside KL(p||q), KL(q||p) and TV, on request: what they are between two rows, and how large they must be
// before coverage can fail (docs/theory.md §2, "Other divergences"; names: docs/log.md "Header").
#ifndef HM_CERTIFY_DIVERGENCE_H
#define HM_CERTIFY_DIVERGENCE_H

#include "certify/certificate.h"

#ifdef __cplusplus
extern "C" {
#endif

enum hm_divergence_kind {
    HM_DIVERGENCE_RENYI,         // renyi:A           D_A(p||q), A > 0, A != 1
    HM_DIVERGENCE_RENYI_REVERSE, // renyi-reverse:A   D_A(q||p)
    HM_DIVERGENCE_HELLINGER,     // hellinger         1 - sum sqrt(p q)
    HM_DIVERGENCE_CHI2,          // chi2              sum p^2/q - 1
    HM_DIVERGENCE_CHI2_REVERSE,  // chi2-reverse      sum q^2/p - 1
    HM_DIVERGENCE_MAX,           // max               D_inf(p||q) = max ln(p/q)
    HM_DIVERGENCE_SPREAD         // spread            max ln(p/q) - min ln(p/q) over the tokens where either is positive
};

struct hm_divergence {
    enum hm_divergence_kind kind;
    struct hm_rational order; // A of the two Renyi divergences, else 0
};

hm_status hm_divergence_parse(const char *text, struct hm_divergence *out, struct hm_error *err); // like hm_rule_parse
void hm_divergence_clear(struct hm_divergence *d);
char *hm_divergence_text(const struct hm_divergence *d); // canonical spelling in fresh memory

// The divergence of two rows of one vocabulary and temperature; exact zeros for the same distribution, +inf where a
// support is missing (Renyi below order 1, Hellinger's 1: only where no token is common). Narrow as docs/log.md asks, except that
// chi2 and chi2-reverse beyond the doubles are [largest double, inf]. Cost at 151,936 tokens: 0.05 s for the five kinds that
// are sums (MPFR where that is too wide, 1.5 s), 0.002 s for max and spread.
hm_status hm_divergence_between(const struct hm_divergence *d, struct hm_row *p, struct hm_row *q, struct hm_ival *out,
                                struct hm_error *err);

// The least divergence at which the first m of q can all miss A, |A| = k: 0 for k = 0, +inf for k + m > V. Otherwise
// +inf for `spread` where the (k+m)-th of the order is empty, and for renyi-reverse of order above 1 and chi2-reverse where
// A holds the whole support besides. Tokens 2^28 nats and more below the top may leave
// an upper end at +inf (docs/log.md, "Numbers").
hm_status hm_divergence_level(const struct hm_divergence *d, struct hm_row *p, size_t k, size_t m, struct hm_ival *out,
                              struct hm_error *err);

// Is the divergence of these rows below that?  Decided exactly as hm_claim_make decides KL and TV; equality is NO.
// Precedence and words as there, except that it is for the caller to know whether the claim applies and k is decided.
// `spread` and `max` are always decided; which equalities of the others are known: certify/divergence_verdict.c. What 4096
// bits do not decide beyond those is UNDECIDED.
hm_status hm_divergence_certified(const struct hm_divergence *d, struct hm_row *p, struct hm_row *q, size_t k, size_t m,
                                  enum hm_certified *out, struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
