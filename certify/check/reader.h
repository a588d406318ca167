// The thread that reads the log: check.c and replay.c.
#ifndef HM_CERTIFY_CHECK_READER_H
#define HM_CERTIFY_CHECK_READER_H

#include "certify/check/state.h"

// replay.c: errors are those of the line at hand, except for rows, which carry theirs to their record.
void ck_replay_header(struct ck *c, const struct hm_check_replay *r);
void ck_replay_sequence(struct ck *c, const struct hm_check_replay *r, const cJSON *prompt);
void ck_replay_round(struct ck *c, const struct hm_check_replay *r);
void ck_replay_rows(const struct ck *c, const struct hm_check_replay *r, const cJSON *line, int64_t node,
                    struct ck_replayed rows[2]);
bool ck_replay_emitted(struct ck *c, const struct hm_check_replay *r, int64_t token, int64_t child);

#endif
