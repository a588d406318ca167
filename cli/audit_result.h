// What an audit of one input comes to, and the summary over inputs (cli/parts.h).
#ifndef HM_CLI_AUDIT_RESULT_H
#define HM_CLI_AUDIT_RESULT_H

#include "cli/audit_options.h"
#include "cli/parts.h"

// Counts of one rule and m over the tokens (rows) with evidence.
struct hm_audit_counts {
    uint64_t yes, no, open;               // the emitted token is accepted, is not, undecided
    uint64_t judged, certified, uncertain; // with a draft; certified by any divergence; by none surely, by none refuted
};

struct hm_audit_result {
    int exit;                             // enum of cli/command.h, so far
    uint64_t sequences, tokens, with_row; // tokens: rows where there are no tokens
    uint64_t findings, undecided;         // undecided: answers that are, of the claims
    struct hm_audit_counts claim[HM_MOST_RULES * HM_MOST_M]; // rules outer
};

// The worse of two exit codes: unreadable, findings, undecided, fine.
int hm_audit_worse(int a, int b);

// The result as an object; NULL when memory is short.
cJSON *hm_audit_result_json(const struct hm_audit_result *result, size_t claims);

// For hm_parts_setup.arguments: fresh strings [*count] in fresh memory, freed by hm_audit_arguments_free, also on failure.
hm_status hm_audit_arguments(const struct hm_audit_options *options, char ***out, size_t *count, struct hm_error *err);
void hm_audit_arguments_free(char **arguments, size_t count);

extern const struct hm_parts_summary hm_audit_summary;

#endif
