// What commands print the same way.
#ifndef HM_CLI_PRINT_H
#define HM_CLI_PRINT_H

#include "bounds/ival.h"
#include "evidence/finding.h"

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>

// "" for one, "s" otherwise.
const char *hm_plural(uint64_t count);

// Lines of at most 79 characters behind an indent, folded at spaces; a word that does not fit is cut.
void hm_print_folded(FILE *to, int indent, const char *text);

// Members of JSON objects: a text made printable (base/text.h), cut at 255 bytes; an enclosure as [lower, upper], rounded
// outward, and a count, whose digits cJSON would shorten.
void hm_json_add_text(cJSON *object, const char *key, const char *text);
void hm_json_add_ival(cJSON *object, const char *key, struct hm_ival value);
void hm_json_add_count(cJSON *object, const char *key, uint64_t count);

// The members that a finding has in every command: finding, side, sequence, t, where, message (docs/evidence.md).
void hm_json_add_finding(cJSON *object, const struct hm_finding *finding, const char *side);

#endif
