// The certificate of one step: what the draft's distribution would have to be for coverage to fail (docs/theory.md §2-§4, §6).
//
// All numbers are enclosures that a checker proves again from the same rows (docs/log.md). p is the target row, q the
// draft row, A = A(p) the accepted prefix, k = |A|, and the draft proposes the first m tokens of q.
#ifndef HM_CERTIFY_CERTIFICATE_H
#define HM_CERTIFY_CERTIFICATE_H

#include "base/error.h"
#include "bounds/ival.h"
#include "certify/row.h"
#include "certify/rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// KLf*, KLr* and TV* of docs/theory.md §2 with their witness: p outside the tied set, the level inside.
struct hm_level {
    struct hm_ival klf, klr, tv;   // nats, nats, share; +inf when coverage cannot fail (k + m > V)
    struct hm_ival level_f;        // c, the arithmetic water level
    struct hm_ival level_r;        // ln g, the logarithm of the geometric water level; -inf when some p_s = 0 in S
    uint32_t tied_f[2], tied_r[2]; // the tied set: the first [0] tokens of A and the last [1] of S, in order
};

// A verdict on a certificate. VACUOUS: coverage cannot fail. INAPPLICABLE: the claim does not speak of these children.
enum hm_certified { HM_CERT_NO, HM_CERT_YES, HM_CERT_VACUOUS, HM_CERT_INAPPLICABLE, HM_CERT_UNDECIDED, HM_CERT_VERDICTS };

enum { HM_VERDICTS = HM_UNDECIDED + 1 };

// Their words in logs and reports: "no", "yes", "vacuous", "inapplicable", "undecided"; and of answers.
extern const char *const hm_certified_names[HM_CERT_VERDICTS];
extern const char *const hm_verdict_names[HM_VERDICTS];

struct hm_margin { // docs/theory.md §3
    struct hm_ival gap, klf, klr, tv;
};

struct hm_universal { // docs/theory.md §3, from the rule's parameter and p_(1) only
    struct hm_ival klf, klr;
};

struct hm_restricted { // docs/theory.md §4, on D, the tokens with a finite draft logit
    size_t k;          // |A cap D|
    bool no_mass;      // p(D) = 0: nothing below is set but the verdicts, all NO
    struct hm_ival mass; // p(D)
    struct hm_ival kl; // KL(p_D || q)
    bool vacuous;      // k + m > |D|, and k >= 1
    struct hm_level level; // of p_D; its klr includes - ln p(D) and its tv is the min-max of theory.md §4
    enum hm_certified certified[3]; // of kl, KL(q||p) and TV(p,q)
};

// Which of the entropy rule's thresholds is in force: the smaller, eps when they are equal.
enum hm_active { HM_ACTIVE_NONE, HM_ACTIVE_EPS, HM_ACTIVE_DELTA };

// One claim: a rule and an m at one step.
struct hm_claim {
    size_t m, k;
    bool counted;                    // k is decided; otherwise it counts the tokens surely in A
    enum hm_verdict accepts;         // is the emitted token in A?
    int32_t edge[2];                 // last accepted, first rejected token; -1 where there is none
    struct hm_level level;           // set when k >= 1 and k + m <= V (see `vacuous`, `nothing`)
    bool vacuous;                    // k + m > V: all three are +inf
    bool nothing;                    // k = 0: all three are 0, nothing is ever certified
    struct hm_margin margin;         // filled when asked for and k >= 1 and k + m <= V
    bool has_margin;
    struct hm_universal universal;   // likewise, and only for rules that have one
    bool has_universal;
    struct hm_ival radius;           // stability radius of `accepts` in logits (docs/theory.md §6); [lower bound, inf]
                                     // for entropy, and for topk-delta and topk-ratio when they reject
    bool has_radius;                 // false when the decision is open, or no token is asked about
    enum hm_active active;           // of `entropy`; NONE for other rules and where it is open
    bool has_draft;                  // the fields below are set only with a draft row
    enum hm_verdict covered;         // at least one proposed token lies in A
    bool applies;                    // false: the children are not the first m of q, the claim is INAPPLICABLE
    enum hm_certified certified[3];  // forward, reverse, TV
    bool has_restricted;             // some draft logit is -inf
    struct hm_restricted restricted;
};

// What a claim is asked about.
struct hm_claim_query {
    const struct hm_rule *rule;
    struct hm_row *target;
    struct hm_row *draft;      // NULL: target-only figures
    const struct hm_row_distance *distance; // of target and draft; NULL with draft == NULL
    int32_t token;             // the emitted token, or -1 (a node without a token: `accepts` and radius are skipped)
    size_t m;                  // how many tokens the draft proposes, >= 1
    const int32_t *children;   // the verified children's tokens [m] for m taken from the tree, else NULL
    bool margin, universal;    // fill these
};

// Computes one claim. Both rows have the target's vocabulary; a draft of a smaller one has -inf outside. The first of
// these that holds decides all three verdicts: the children are not the first m of q (INAPPLICABLE), k is undecided
// (UNDECIDED; k then counts the tokens surely in A), k = 0 (NO), k + m > V (VACUOUS). Otherwise D < D* is decided
// exactly: an infinite divergence is never below, a finite one is below an infinite level, equality is NO.
hm_status hm_claim_make(const struct hm_claim_query *query, struct hm_claim *out, struct hm_error *err);

// Certified by this claim's verdicts? (`yes` for any divergence)
bool hm_claim_certified(const struct hm_claim *claim);

#ifdef __cplusplus
}
#endif

#endif
