// Recording pools: a listener that turns a decode's events into a recording (study/recording.h, docs/study.md).
//
// The decode is a plain one: draft selection, exhaustive traversal, match. Give the session hm_record_pool as
// listener.pool and call hm_record_round and hm_record_step from listener.round and listener.step.
#ifndef HM_CLI_RECORD_H
#define HM_CLI_RECORD_H

#include "base/error.h"
#include "base/rational.h"
#include "decode/session.h"

#include <stddef.h>
#include <stdint.h>

struct hm_record;

struct hm_record_options {
    const char *target, *drafter; // names; drafter of models with the model's name: "standalone tiny-qwen3-draft"
    const char *task;             // what the prompts have in common
    const struct hm_rational *temperature;             // of decoding, 0 allowed
    const struct hm_rational *probability_temperature; // > 0: of recorded probabilities, the same unless decoding is greedy
    size_t top_k;                 // 0: off
    const struct hm_rational *top_p; // NULL: off
    uint64_t seed;
    size_t vocab, width, depth, budget; // of the target's rows; of pool and tree
    size_t kept_bytes;            // most memory for kept rows; 0: 256 MiB. Beyond it the least recently computed go
};

// Creates or replaces the file. Texts longer than a recording takes are an error.
hm_status hm_record_open(const char *path, const struct hm_record_options *options, struct hm_record **out,
                         struct hm_error *err);

// Before the first event of each sequence.
hm_status hm_record_sequence(struct hm_record *record, uint32_t sequence, const char *id, const char *category,
                             uint32_t turn, struct hm_error *err);

// The session's events; user is the record.
hm_status hm_record_pool(void *user, const struct hm_pool_event *event, struct hm_error *err);
hm_status hm_record_round(void *user, const struct hm_round_event *event, struct hm_error *err);
hm_status hm_record_step(void *user, const struct hm_step_event *event, struct hm_error *err);

// Writes what is pending and closes. Frees the record in any case; NULL is allowed.
hm_status hm_record_close(struct hm_record *record, struct hm_error *err);

// The name of a file of prompts without folder and ending, at most size - 1 bytes: what its prompts have in common.
void hm_record_task(const char *path, char *out, size_t size);

#endif
