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
    bool misaligned; // it does not list every token, as a finding said: from somewhere on, t is not a token's place
    int32_t *prompt; // ids [prompt_length]
    size_t prompt_length, prompt_room;
};

struct hm_stored_sequence; // compare_store.h

struct hm_compare_side {
    char letter;              // 'A' or 'B'
    const char *path;         // both borrowed
    struct hm_source_options options;
    enum hm_format format;
    const char *decided_by;
    struct hm_source_file *source;
    struct hm_event event;    // the next one, when `held`
    bool held, any;           // any: the source is in a sequence, of the number `at`
    bool unread;              // whose tokens none was read of
    uint32_t at, told;        // findings of sequences below `told` were told
    struct hm_side_sequence now;           // the sequence at hand
    struct hm_stored_sequence *serving;    // not NULL: it comes from the store
    struct hm_stored_sequence **stored;    // [stored_count]
    size_t stored_count, stored_room, stored_bytes;
    // Told of each finding, once.
    void (*finding)(void *user, char side, const struct hm_finding *finding);
    void *user;
};

// path, options and letter are set; the rest is zeros.
hm_status hm_side_open(struct hm_compare_side *side, struct hm_error *err);
void hm_side_close(struct hm_compare_side *side);

// Did both see the same prompt?  Only where both tell.
bool hm_side_same_prompt(const struct hm_side_sequence *a, const struct hm_side_sequence *b);

void hm_side_sequence_clear(struct hm_side_sequence *sequence);

// Goes to the next sequence, over the rest of this one; *there false at the end of the file.
hm_status hm_side_next(struct hm_compare_side *side, bool *there, struct hm_error *err);
// Goes to the sequence of this number, which the file has. Those on the way are stored as far as there is room; what is not
// stored any more is read again from the start of the file.
hm_status hm_side_seek(struct hm_compare_side *side, uint32_t number, struct hm_error *err);
// The next token of the sequence, good until the next call for this side; NULL after the last.
hm_status hm_side_token(struct hm_compare_side *side, const struct hm_source_token **token, struct hm_error *err);

#endif
