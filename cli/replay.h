// `hallmark verify --replay`: rows of a log computed again from its models (docs/log.md "Checking").
//
// The models see what the log says they saw: the prompt, each round's tree as one pass, the emitted tokens. As rows do
// not depend on batching (docs/architecture.md), they are the rows of the decode, bit for bit, if it was made by these
// weights on these contexts.
#ifndef HM_CLI_REPLAY_H
#define HM_CLI_REPLAY_H

#include "base/error.h"
#include "certify/check/check.h"

struct hm_replay;

// Loads the models; draft NULL: none. threads 0: one per core.
hm_status hm_replay_open(const char *target, const char *draft, unsigned threads, struct hm_replay **out,
                         struct hm_error *err);
void hm_replay_close(struct hm_replay *replay); // NULL is allowed

// What the checker calls, for one log after the other.
const struct hm_check_replay *hm_replay_source(const struct hm_replay *replay);

#endif
