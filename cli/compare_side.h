// One side of a comparison: a source (evidence/source.h), read sequence by sequence and token by token.
#ifndef HM_CLI_COMPARE_SIDE_H
#define HM_CLI_COMPARE_SIDE_H

#include "base/error.h"
#include "evidence/source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What is known of the sequence at hand, kept while its tokens are read. Texts are owned; NULL: not told.
struct hm_side_sequence {
    uint32_t number;
    char *id, *category;                    // "" when there is none
    char *temperature, *seed, *acceptance;
    bool told_prompt;
    int32_t *prompt; // ids [prompt_length]
    size_t prompt_length, prompt_room;
};

struct hm_compare_side {
    char letter;              // 'A' or 'B'
    const char *path;         // both borrowed
    struct hm_source_options options;
    enum hm_format format;
    const char *decided_by;
    struct hm_source_file *source;
    struct hm_event event;    // the next one, when `held`
    bool held, any;           // any: there is a sequence at hand
    struct hm_side_sequence now;
    // Told of each finding; not of those met while seeking.
    void (*finding)(void *user, char side, const struct hm_finding *finding);
    void *user;
};

// path, options and letter are set; the rest is zeros.
hm_status hm_side_open(struct hm_compare_side *side, struct hm_error *err);
void hm_side_close(struct hm_compare_side *side);

// Goes to the next sequence, over the rest of this one; *there false at the end of the file.
hm_status hm_side_next(struct hm_compare_side *side, bool *there, struct hm_error *err);
// Goes to the sequence of this number, which the file has; back to the start of the file first where need be.
hm_status hm_side_seek(struct hm_compare_side *side, uint32_t number, struct hm_error *err);
// The next token of the sequence, good until the next call for this side; NULL after the last.
hm_status hm_side_token(struct hm_compare_side *side, const struct hm_source_token **token, struct hm_error *err);

#endif
