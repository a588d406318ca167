// Between a decode and its log: turns the session's events into the stamper's records.
#ifndef HM_CLI_STAMPING_H
#define HM_CLI_STAMPING_H

#include "certify/stamp.h"
#include "cli/decode_models.h"
#include "decode/session.h"

struct hm_stamping {
    struct hm_stamper *stamper;
    uint32_t sequence;
};

// Opens the stamper for a decode as asked.
hm_status hm_stamping_open(const struct hm_decode_options *options, const struct hm_decode_models *models,
                           struct hm_stamping *out, struct hm_error *err);

// Before anything is lost: refuses a log that would be standard output, or that would replace a file which is not a log.
hm_status hm_stamping_check_path(const char *path, struct hm_error *err);

// Records for the events of session.h.
hm_status hm_stamping_round(struct hm_stamping *s, const struct hm_round_event *event, struct hm_error *err);
hm_status hm_stamping_step(struct hm_stamping *s, const struct hm_step_event *event, struct hm_error *err);
hm_status hm_stamping_node(struct hm_stamping *s, const struct hm_node_event *event, struct hm_error *err);

#endif
