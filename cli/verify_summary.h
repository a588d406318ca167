// What `hallmark verify` says when all logs are checked, from one result for each (cli/parts.h).
#ifndef HM_CLI_VERIFY_SUMMARY_H
#define HM_CLI_VERIFY_SUMMARY_H

#include "certify/check/check.h"
#include "cli/parts.h"

// The result of a log. audit: it is one of an audit. reads_draft: its draft's rows were read although it was replayed.
// NULL: out of memory.
cJSON *hm_verify_result(const struct hm_check_result *check, bool audit, bool reads_draft);

extern const struct hm_parts_summary hm_verify_summary;

#endif
