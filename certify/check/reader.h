// The thread that reads the log: check.c, order.c and replay.c.
#ifndef HM_CERTIFY_CHECK_READER_H
#define HM_CERTIFY_CHECK_READER_H

#include "certify/check/state.h"

struct ck_reader {
    struct ck c; // its errors are those of lines, its math is not used
    struct hm_check_options options;
    struct ck_header header;
    struct ck_jobs *jobs;
    char chain[65];
    bool decided; // the outcome is known: nothing more is read
    bool truncated;
    struct ck_outcome total;
    // counts of what was read; of what was checked
    uint64_t sequences, rounds, steps, nodes, rows, steps_done, bytes_read, bytes;
    int64_t done_t, done_sequence;
    uint64_t (*verdicts)[3][CK_VERDICTS]; // [rules * m]
};

// replay.c: errors are those of the line at hand, except for rows, which carry theirs to their record.
void ck_replay_header(struct ck *c, const struct hm_check_replay *r);
void ck_replay_sequence(struct ck *c, const struct hm_check_replay *r, const cJSON *prompt);
void ck_replay_round(struct ck *c, const struct hm_check_replay *r);
void ck_replay_rows(const struct ck *c, const struct hm_check_replay *r, const cJSON *line, int64_t node,
                    struct ck_replayed rows[2]);
bool ck_replay_emitted(struct ck *c, const struct hm_check_replay *r, int64_t token, int64_t child);

void ck_merge(struct ck_outcome *total, const struct ck_outcome *of); // check.c
// order.c: a record, with the line's JSON, which it takes over.
void ck_read_record(struct ck_reader *r, cJSON *line, size_t size);
// Hands on a job, or what this thread found at a line; the job may be NULL for want of memory.
void ck_submit(struct ck_reader *r, struct ck_job *job);

#endif
