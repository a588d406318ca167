// One input of `hallmark audit`: rows of floats go through the stamper (audit_rows.c), everything else through evidence
// (audit_evidence.c).
#ifndef HM_CLI_AUDIT_H
#define HM_CLI_AUDIT_H

#include "cli/audit_options.h"
#include "cli/audit_result.h"
#include "evidence/compare.h"
#include "evidence/source.h"

struct hm_audit_run {
    const struct hm_audit_options *options; // target and draft are this input's
    size_t number;                          // of the input, from 1
    FILE *to;                               // where its text goes
    bool shows_progress;
    struct hm_audit_result result;
};

// Each prints what the input says, fills run->result and closes the source. Errors: what cannot be read.
hm_status hm_audit_rows(struct hm_audit_run *run, struct hm_source_file *source, struct hm_error *err);
hm_status hm_audit_evidence(struct hm_audit_run *run, struct hm_source_file *source, struct hm_error *err);

// What a source of this audit is opened with.
struct hm_source_options hm_audit_source_options(const struct hm_audit_options *options);

// One line of JSON; deletes the object (NULL: memory ran out while it was made).
hm_status hm_audit_print_json(struct hm_audit_run *run, cJSON *object, struct hm_error *err);

// {"kind":"input", ...}: what is read, and what decided that.
hm_status hm_audit_print_input(struct hm_audit_run *run, enum hm_format format, const char *decided_by, struct hm_error *err);

// With --claim-temperature, what the tokens say of it, as {"kind":"temperature", ...} or text; and is the claim refuted, at a
// p-value of 1/1000?  (docs/compare.md "A claimed temperature")
hm_status hm_audit_print_temperature(struct hm_audit_run *run, const struct hm_likelihood *likelihood, struct hm_error *err);
bool hm_audit_temperature_refuted(const struct hm_likelihood *likelihood);

// {"kind":"finding", ...} or lines of text: the first few of a kind. Counts it. side "draft" for the draft's file.
hm_status hm_audit_print_finding(struct hm_audit_run *run, const struct hm_finding *finding, const char *side,
                                 uint64_t shown_of_kind, struct hm_error *err);
enum { HM_AUDIT_FINDINGS_SHOWN = 4 }; // of a kind, as text

#endif
