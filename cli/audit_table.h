// What an audit found, for people: gathered from its row records, in memory that does not grow with their number.
#ifndef HM_CLI_AUDIT_TABLE_H
#define HM_CLI_AUDIT_TABLE_H

#include "base/error.h"
#include "cli/audit_options.h"

#include <stddef.h>
#include <stdio.h>

struct hm_audit_table;

// The options are borrowed.
hm_status hm_audit_table_open(const struct hm_audit_options *options, struct hm_audit_table **out, struct hm_error *err);
void hm_audit_table_close(struct hm_audit_table *table); // NULL is allowed

// Adds one row record (docs/log.md "row: an audit").
hm_status hm_audit_table_add(struct hm_audit_table *table, const char *json, size_t size, struct hm_error *err);

// Prints a section for each rule and m, at most 79 columns wide.
void hm_audit_table_print(const struct hm_audit_table *table, FILE *to);

#endif
