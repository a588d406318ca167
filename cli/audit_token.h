// What evidence answers about one emitted token (docs/evidence.md).
#ifndef HM_CLI_AUDIT_TOKEN_H
#define HM_CLI_AUDIT_TOKEN_H

#include "cli/audit_table.h"

#include <cjson/cJSON.h>

struct hm_audit_answers {
    struct hm_ival seen, unseen, entropy, surprise, regret; // the latter two only where a token is asked about
    struct hm_known_distance distance;                      // with a draft
    bool asked;
    uint64_t undecided; // claims whose k or acceptance is open, and their verdicts that are
    bool missing[HM_MISSINGS];                              // what would have decided them
};

// Asks everything about the token's row. draft: NULL without one. Fills claims [rule_count * m_count] and *out.
hm_status hm_audit_ask(const struct hm_audit_options *options, const struct hm_source_token *token,
                       const struct hm_evidence *draft, struct hm_audit_claim *claims, struct hm_audit_answers *out,
                       struct hm_error *err);

// {"kind":"token", ...}; NULL when memory is short.
cJSON *hm_audit_token_json(const struct hm_audit_options *options, size_t input, const struct hm_source_token *token,
                           const struct hm_evidence *draft, const struct hm_audit_claim *claims,
                           const struct hm_audit_answers *answers);

#endif
