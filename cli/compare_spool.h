// What the first walk over both sides found, kept in a temporary file until the level of noise is known: memory does not
// grow with the input, and no file is read or model run twice.
#ifndef HM_CLI_COMPARE_SPOOL_H
#define HM_CLI_COMPARE_SPOOL_H

#include "base/error.h"
#include "evidence/compare.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum hm_spool_kind { HM_SPOOL_PROMPT, HM_SPOOL_POSITION, HM_SPOOL_FORK, HM_SPOOL_FINDING, HM_SPOOL_KINDS };

enum { HM_SPOOL_ID = 64, HM_SPOOL_CATEGORY = 48 };

struct hm_spool_prompt {
    uint32_t number;                   // A's
    char id[HM_SPOOL_ID], category[HM_SPOOL_CATEGORY]; // cut at a character border
};

// A position at which both rows are known; of a token that was given or emitted.
struct hm_spool_position {
    uint32_t t;
    int32_t width;                     // 0: not told
    bool of_prompt;
    struct hm_noise noise;
};

struct hm_spool_fork {
    int32_t width;
    struct hm_fork fork;
    struct hm_noise noise;             // shared < 2: not measured
};

struct hm_spool_finding {
    char side;
    struct hm_finding finding;
};

struct hm_spool_record {
    enum hm_spool_kind kind;
    union {
        struct hm_spool_prompt prompt;
        struct hm_spool_position position;
        struct hm_spool_fork fork;
        struct hm_spool_finding finding;
    };
};

struct hm_spool {
    FILE *file;
};

hm_status hm_spool_open(struct hm_spool *spool, struct hm_error *err);
void hm_spool_close(struct hm_spool *spool);
hm_status hm_spool_write(struct hm_spool *spool, const struct hm_spool_record *record, struct hm_error *err);
// Back to the first record; then each in its order, *there false at the end.
hm_status hm_spool_rewind(struct hm_spool *spool, struct hm_error *err);
hm_status hm_spool_read(struct hm_spool *spool, struct hm_spool_record *record, bool *there, struct hm_error *err);

#endif
