// Log-probabilities of vLLM, position after position, in the two forms that they have as JSON. Private to evidence/.
//
// A list: each position is {"374":{"logprob":-0.41,"rank":1,"decoded_token":" is"}, ...}, the sampled token first, with its true
// rank, then the k largest, the sampled one once; or null. Flat lists (FlatLogprobs): position i has the places
// start_indices[i] up to end_indices[i] of token_ids, logprobs, ranks and decoded_tokens; there the sampled token comes twice
// when it is one of the k.
#ifndef HM_EVIDENCE_VLLM_POSITIONS_H
#define HM_EVIDENCE_VLLM_POSITIONS_H

#include "evidence/cursor.h"
#include "evidence/entries.h"

struct hm_positions {
    const char *name;                        // of the field: "logprobs"
    bool flat;
    struct hm_cursor row;                    // of a list
    struct hm_cursor start, end;             // of flat lists
    struct hm_cursor id, value, rank, text;  // at place `at`
    size_t at, index;                        // index: of the position
};

// What a position says of one token: its number and its text, no values where it is not listed.
struct hm_own {
    struct hm_json_text value, text;
};

// Errors of both name the field, not the file. value: a list, flat lists, or null.
hm_status hm_positions_open(const char *name, struct hm_json_text value, struct hm_positions *out, struct hm_error *err);

// Adds the entries of the position that is looked at. *own: what it says of the token `id`.
hm_status hm_positions_add(struct hm_positions *positions, int32_t id, struct hm_entries *entries, struct hm_own *own,
                           struct hm_error *err);

bool hm_positions_has(const struct hm_positions *positions);   // is there one to look at?
bool hm_positions_empty(const struct hm_positions *positions); // it is null
void hm_positions_next(struct hm_positions *positions);
size_t hm_positions_bytes(const struct hm_positions *positions); // of its texts, at most

#endif
