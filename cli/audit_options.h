// What `hallmark audit` was asked to do.
#ifndef HM_CLI_AUDIT_OPTIONS_H
#define HM_CLI_AUDIT_OPTIONS_H

#include "cli/flags.h"
#include "cli/shards.h"
#include "evidence/source.h"

struct hm_audit_options {
    char **inputs, **drafts;        // [input_count], of argv; drafts NULL: none
    size_t input_count, draft_count, draft_room;
    const char *target, *draft;     // the input at hand: one of each; draft NULL: none
    const char *format;             // NULL: decided by the file
    const char *tensor;             // NULL: "logits"
    size_t vocab;                   // of lists; 0: not told
    enum hm_printing printing;
    double allowance;               // hm_decimal_widen's
    bool processed;                 // lists are of processed rows
    bool claims_temperature;        // --claim-temperature was given:
    struct hm_rational claimed;     // this one
    struct hm_shards shards;
    const char *parts;              // folder; NULL: one process
    const char *vocabulary;         // --draft-vocab, or NULL
    struct hm_rule rule[HM_MOST_RULES];
    size_t rule_count;
    uint32_t m[HM_MOST_M];
    size_t m_count;
    struct hm_divergence divergence[HM_MOST_DIVERGENCES];
    size_t divergence_count;
    struct hm_rational temperature; // of p and q
    bool margin;                    // margin-only and rule-universal bounds
    bool law_iid, law_topk;
    const char *log;
    bool keep_rows, json;
    size_t threads;                 // 0: one per core
};

extern const char hm_audit_help[];

// Reads the command line into *out, which hm_audit_options_clear releases whatever this returns; *help when it asks for
// that. HM_USAGE names the flag.
hm_status hm_audit_options_parse(int argc, char **argv, struct hm_audit_options *out, bool *help, struct hm_error *err);
void hm_audit_options_clear(struct hm_audit_options *options);

#endif
