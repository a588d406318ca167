// What counts as accepted at a node: the decisions of docs/log.md, "The walk".
#ifndef HM_DECODE_ACCEPT_H
#define HM_DECODE_ACCEPT_H

#include "base/error.h"
#include "base/rational.h"
#include "certify/rule.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// How tokens are chosen. Borrowed parts outlive the decode.
struct hm_acceptance {
    const struct hm_rule *rule;                   // NULL: match
    const struct hm_rational *temperature;        // sampling; 0: greedy
    const struct hm_rational *certify_temperature; // of p in the rule; > 0
    size_t top_k;                                 // 0: off
    const struct hm_rational *top_p;              // NULL: off
    uint64_t seed;
};

// The decision at one node.
struct hm_decision {
    int32_t token;    // emitted
    int64_t child;    // index into the children of the accepted one, -1: the token is the continuation
    size_t support;   // tokens left after the processors; vocab when off or at temperature 0
};

// Decides output position (sequence, t) from the target's row at a node with the given children (tokens in the draft's
// order; none at the traversal's cap). HM_RANGE for a row that is not a distribution, naming the logit.
hm_status hm_accept(const struct hm_acceptance *how, const float *row, size_t vocab, uint32_t sequence, uint32_t t,
                    const int32_t *children, size_t child_count, struct hm_decision *out, struct hm_error *err);

// The support alone: how many tokens the processors leave (vocab when they are off, or at temperature 0).
hm_status hm_accept_support(const struct hm_acceptance *how, const float *row, size_t vocab, size_t *support,
                            struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
