// What an audit found, for people: gathered from its row records, in memory that does not grow with their number.
#ifndef HM_CLI_AUDIT_TABLE_H
#define HM_CLI_AUDIT_TABLE_H

#include "base/error.h"
#include "certify/certificate.h"
#include "cli/audit_options.h"
#include "cli/audit_result.h"

#include <stddef.h>
#include <stdio.h>

struct hm_audit_table;

// The options are borrowed, and so are the words: what the table is over, "row" or "token", and what its tokens are,
// "emitted token" or "token of the text".
hm_status hm_audit_table_open(const struct hm_audit_options *options, const char *noun, const char *tokens,
                              struct hm_audit_table **out, struct hm_error *err);
void hm_audit_table_close(struct hm_audit_table *table); // NULL is allowed

// Adds one row record (docs/log.md "row: an audit").
hm_status hm_audit_table_add(struct hm_audit_table *table, const char *json, size_t size, struct hm_error *err);

// What evidence says of one token under one rule and m.
struct hm_audit_claim {
    bool asked;                     // there is an emitted token:
    enum hm_verdict accepts;
    struct hm_count_range k;
    struct hm_ival radius;
    struct hm_known_level level;
    bool judged;                    // there is a draft:
    enum hm_certified certified[3]; // forward, reverse, TV
};
// Adds one token, with a claim for each rule and m, rules outer.
void hm_audit_table_add_token(struct hm_audit_table *table, const struct hm_audit_claim *claims);

// The counts of each rule and m.
void hm_audit_table_counts(const struct hm_audit_table *table, struct hm_audit_counts *out);

// Prints a section for each rule and m, at most 79 columns wide.
void hm_audit_table_print(const struct hm_audit_table *table, FILE *to);

#endif
