// Parts of hm_claim_make that have files of their own. Not part of the interface.
#ifndef HM_CERTIFY_CERTIFICATE_STATE_H
#define HM_CERTIFY_CERTIFICATE_STATE_H

#include "bounds/level.h"
#include "certify/certificate.h"
#include "certify/row_state.h"

// Levels (and margins, unless NULL) of a row for 1 <= k, 1 <= m, k + m <= vocab at one precision. *good is false when
// the precision does not prove the level.
hm_status hm_level_at(struct hm_row *row, size_t k, size_t m, mpfr_prec_t precision, struct hm_level_values *level,
                      struct hm_margin_values *margin, bool *good, struct hm_error *err);

// The same in double intervals, counted as a question to the row's filter; false: ask MPFR. margin may be NULL.
bool hm_level_filtered(struct hm_row *row, size_t k, size_t m, struct hm_level *level, struct hm_margin *margin);

// The same in doubles from the filter, else at the first precision that makes every enclosure narrow.
hm_status hm_level_make(struct hm_row *row, size_t k, size_t m, struct hm_level *level, struct hm_margin *margin,
                        struct hm_error *err);

// All three values 0 (nothing accepted) or +inf (vacuous); no level.
void hm_level_constant(struct hm_level *level, double value);

enum hm_which { HM_FORWARD, HM_REVERSE, HM_VARIATION };

// Is the divergence of q from p below its level?  From the enclosures if they tell, then by the identities of theory.md
// §8, then at rising precision. 1 <= k, k + m <= vocab.
hm_status hm_claim_below(struct hm_row *p, struct hm_row *q, size_t k, size_t m, enum hm_which which,
                         struct hm_ival divergence, const struct hm_level *level, enum hm_certified *out,
                         struct hm_error *err);

// Equality D(p, q) = D* known symbolically: q attains the bound although no precision would show it.
hm_status hm_claim_attains(struct hm_row *p, struct hm_row *q, size_t k, size_t m, enum hm_which which, bool *out,
                           struct hm_error *err);

// theory.md §4: the certificates on the support of q. k: |A| on the whole vocabulary; before: INAPPLICABLE or UNDECIDED
// where that is the answer whatever the figures are, else YES.
hm_status hm_claim_restrict(const struct hm_claim_query *query, size_t k, enum hm_certified before,
                            struct hm_restricted *out, struct hm_error *err);

// theory.md §3: the rule-universal bounds for m proposed tokens; *known is false where the rule has none, or not here.
hm_status hm_claim_universal(const struct hm_rule *rule, struct hm_row *row, size_t m, struct hm_universal *out,
                             bool *known, struct hm_error *err);

// theory.md §6: the stability radius of the decision about a token (`accepted` or not), narrow or with an infinite upper
// end; *known is false when 4096 bits do not enclose it.
hm_status hm_claim_radius(const struct hm_rule *rule, struct hm_row *row, int32_t token, bool accepted,
                          struct hm_ival *out, bool *known, struct hm_error *err);

#endif
