// What `hallmark decode` prints: an answer as JSON, and the summary.
#ifndef HM_CLI_DECODE_SUMMARY_H
#define HM_CLI_DECODE_SUMMARY_H

#include "certify/stamp.h"
#include "cli/decode_check.h"
#include "cli/decode_models.h"
#include "cli/prompts.h"
#include "decode/session.h"

// One JSON object on a line of standard output.
hm_status hm_print_answer(const struct hm_answer *answer, struct hm_error *err);

// The summary on standard error, or with --json as a last object on standard output; nothing with --quiet and no --json.
// waited: seconds from the last token until everything was certified.
hm_status hm_print_summary(const struct hm_decode_options *options, const struct hm_decode_models *models,
                           const struct hm_session_counts *counts,
                           const struct hm_stamp_summary *stamps, double waited, const struct hm_check_result *check,
                           bool interrupted, struct hm_error *err);

#endif
