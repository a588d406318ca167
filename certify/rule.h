// Acceptance rules: which tokens of a target row count as accepted (docs/theory.md §1).
//
// Each rule accepts a prefix A(p) of the row's order; "is token i in A(p)?" is answered exactly: the decoder and the
// certificate ask the same function, so a log cannot disagree with what the decoder did.
#ifndef HM_CERTIFY_RULE_H
#define HM_CERTIFY_RULE_H

#include "base/error.h"
#include "base/rational.h"
#include "bounds/ival.h"
#include "certify/row.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hm_rule_kind {
    HM_RULE_GREEDY,         // greedy
    HM_RULE_ADDITIVE,       // additive:EPS            0 <= EPS < 1
    HM_RULE_MULTIPLICATIVE, // multiplicative:ALPHA    0 < ALPHA <= 1
    HM_RULE_TOPM,           // topm:M                  M >= 1
    HM_RULE_ENTROPY,        // entropy:EPS,DELTA       EPS > 0, DELTA > 0
    HM_RULE_NUCLEUS,        // nucleus:P               0 < P <= 1
    HM_RULE_TOPK_DELTA,     // topk-delta:K,DELTA      K >= 1, 0 <= DELTA < 1
    HM_RULE_TOPK_RATIO,     // topk-ratio:K,R          K >= 1, 0 < R <= 1
    HM_RULE_ABSOLUTE,       // absolute:T              0 < T <= 1      p_i >= T
    HM_RULE_REGRET          // regret:R                R >= 0          -ln p_i <= R
};

// One rule with its parameters, e.g. "additive:1/10". Parsed once, then immutable.
struct hm_rule {
    enum hm_rule_kind kind;
    uint32_t count;          // M of topm, K of topk-delta, else 0
    struct hm_rational a, b; // the other parameters in the order written; 0 where there is none
};

// Parses "NAME[:PARAMETER[,PARAMETER]]". On failure the error says which rules exist or what the parameter's range is,
// and *out need not be cleared.
hm_status hm_rule_parse(const char *text, struct hm_rule *out, struct hm_error *err);
void hm_rule_clear(struct hm_rule *rule);

// Were the parameters of entropy written in the wrong order?  DELTA < EPS is legal, but hardly ever meant.
bool hm_rule_looks_swapped(const struct hm_rule *rule);

// The canonical spelling, parameters as fractions ("additive:1/10"), in fresh memory (the caller frees it).
char *hm_rule_text(const struct hm_rule *rule);

// Is the token in A(p)?  HM_UNDECIDED only when 4096 bits do not settle it.
hm_status hm_rule_accepts(const struct hm_rule *rule, struct hm_row *row, int32_t token, enum hm_verdict *out,
                          struct hm_error *err);

// k = |A(p)|, with *decided HM_UNDECIDED when some membership was (k then counts the certain ones).
hm_status hm_rule_count(const struct hm_rule *rule, struct hm_row *row, size_t *k, enum hm_verdict *decided,
                        struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
