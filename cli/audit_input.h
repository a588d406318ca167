// The rows of an audit: files of the target and of the draft opened together, and what is wrong with them.
#ifndef HM_CLI_AUDIT_INPUT_H
#define HM_CLI_AUDIT_INPUT_H

#include "base/error.h"
#include "cli/audit_options.h"
#include "decode/row_file.h"
#include "evidence/finding.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HM_AUDIT_WHAT = 160 };

// Something in readable files that keeps rows from being certified.
struct hm_audit_finding {
    enum hm_finding_kind kind;
    int64_t row;      // -1: the files as a whole
    const char *side; // "target" or "draft"
    int64_t logit;    // index in the row as the file has it, or -1
    char what[HM_AUDIT_WHAT]; // "expected a number or -inf, found nan"
};

struct hm_audit_input {
    struct hm_row_file *target, *draft;  // draft NULL: none was given
    bool has_draft;                      // a draft whose vocabulary fits (else a finding)
    struct hm_row_file_info target_info, draft_info;
    size_t rows;                         // that both files have
    float *target_row, *draft_row;       // [target vocab], of the row at hand; draft_row NULL without draft
    int32_t *ids;                        // target ids of the draft's columns [draft vocab]; NULL: the same vocabulary
    float *columns;                      // the draft's row as stored [draft vocab]; only with ids
    struct hm_audit_finding finding[2];  // about the files as a whole
    size_t findings;
};

// Opens the files. Errors are those of row_file.h and draft_vocabulary.h; shapes that do not fit are findings.
// hm_audit_input_close in any case.
hm_status hm_audit_input_open(const struct hm_audit_options *options, struct hm_audit_input *out, struct hm_error *err);
void hm_audit_input_close(struct hm_audit_input *input);

// Reads row `index` < rows of both files. False with a finding when one of them is no row of logits: NaN, +inf or
// only -inf. Draft logits of tokens that the draft does not have are -inf.
bool hm_audit_input_read(struct hm_audit_input *input, size_t index, struct hm_audit_finding *finding);

#endif
