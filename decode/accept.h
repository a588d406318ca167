// What counts as accepted at a node: the decisions of docs/log.md, "The walk".
#ifndef HM_DECODE_ACCEPT_H
#define HM_DECODE_ACCEPT_H

#include "base/error.h"
#include "base/rational.h"
#include "certify/law.h"
#include "certify/rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hm_acceptance_kind {
    HM_ACCEPT_MATCH,    // the target's own draw
    HM_ACCEPT_RULE,     // deterministic: the best child in A(p)
    HM_ACCEPT_STANDARD, // speculative sampling
    HM_ACCEPT_NUCLEUS   // nucleus speculative decoding
};

// How tokens are chosen. Borrowed parts outlive the decode.
struct hm_acceptance {
    enum hm_acceptance_kind kind;
    const struct hm_rule *rule;                   // of RULE and NUCLEUS, else NULL
    enum hm_proposal proposal;                    // what the children are; TOPK unless STANDARD or NUCLEUS
    const struct hm_rational *temperature;        // sampling; 0: greedy
    const struct hm_rational *certify_temperature; // of p in the rule and of p and q in STANDARD, NUCLEUS; > 0
    size_t top_k;                                 // 0: off
    const struct hm_rational *top_p;              // NULL: off
    uint64_t seed;
};

// A fidelity budget (docs/log.md, "Fidelity budgets"): one sequence at a time. Initialise before use, clear after it.
enum hm_budget_kind { HM_BUDGET_NONE, HM_BUDGET_TV, HM_BUDGET_REGRET };
struct hm_budget {
    enum hm_budget_kind kind;
    struct hm_rational limit;  // owned
    struct hm_rational reserve; // R of the page, for TV. Owned
    double spent;
};
void hm_budget_init(struct hm_budget *budget); // none, nothing spent, a limit of 0
void hm_budget_clear(struct hm_budget *budget);

// Starts a sequence of at most max_tokens tokens: nothing spent. tree_budget: B, vocab: the target's.
void hm_budget_begin(struct hm_budget *budget, size_t max_tokens, size_t tree_budget, size_t vocab);

// Charges `charge` if the limit allows it; false, and nothing is spent, if not. Decided exactly on s, the sum rounded upward.
bool hm_budget_charge(struct hm_budget *budget, double charge);

// Is this combination legal (docs/decoders.md, "Legal combinations")?  HM_USAGE with the reason, in the words of the
// command line.
hm_status hm_acceptance_check(const struct hm_acceptance *how, const struct hm_budget *budget, struct hm_error *err);

// A node where a token is decided.
struct hm_accept_node {
    const float *target;    // the target's row [vocab]
    const float *draft;     // the draft's row on the target's ids [vocab]; NULL: none. Needed for IID proposals
    size_t vocab;
    uint32_t sequence, t;   // output position
    const int32_t *children; // tokens in the draft's order [child_count]; none at the traversal's cap
    size_t child_count;
};

// The decision at one node.
struct hm_decision {
    int32_t token;    // emitted
    int64_t child;    // index into the children of the accepted one, -1: the token is the continuation
    size_t support;   // tokens left after the processors; vocab when off or at temperature 0
    bool charged;     // there is a budget and `charge` is set: what the relaxation costs here
    bool relaxed;     // it was in force, and charge.hi was added to spent
    struct hm_ival charge;
    double spent;     // after this decision; 0 without a budget
};

// Decides output position (sequence, t). budget: NULL, or what the sequence may still spend; it is charged here.
// HM_RANGE for a row that is not a distribution, naming the logit.
hm_status hm_accept(const struct hm_acceptance *how, struct hm_budget *budget, const struct hm_accept_node *node,
                    struct hm_decision *out, struct hm_error *err);

// The support alone: how many tokens the processors leave (vocab when they are off, or at temperature 0).
hm_status hm_accept_support(const struct hm_acceptance *how, const float *row, size_t vocab, size_t *support,
                            struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
