// Entries of one row, collected from JSON: texts decoded, numbers enclosed, the emitted token found among them.
//
//     hm_entries_begin; hm_entries_add for each listed token; hm_entries_emitted; hm_entries_finish
//
// finish fills events->token.row, pushes the token and what is wrong with its list.
#ifndef HM_EVIDENCE_ENTRIES_H
#define HM_EVIDENCE_ENTRIES_H

#include "base/json_text.h"
#include "evidence/events.h"

// A token as a log names it.
struct hm_name {
    int32_t id;       // -1: not told
    const char *text; // bytes [size], NULL: not told
    size_t size;
    bool exact;       // its bytes were told, not only characters
};

struct hm_entry_note {
    struct hm_ival printed; // before the allowance
    int64_t rank;           // from 1; 0: not told
    size_t order;           // as listed
    bool sentinel, exact;
};

enum hm_entry_unit { HM_ENTRY_LOG_PROBABILITY, HM_ENTRY_PROBABILITY };

struct hm_entries {
    const struct hm_source_options *options; // borrowed
    struct hm_evidence_entry *entry;         // [count]
    struct hm_entry_note *note;              // [count]
    size_t count, capacity;
    char *text;                              // decoded texts
    size_t text_size, text_room;
    size_t sentinels;                        // of this row
    bool not_a_number, bad_id;
    char bad_number[16], bad[48];            // what stands where a number or an id should
    struct hm_name emitted;
    bool has_emitted, has_own, own_sentinel; // the emitted token; its own log-probability
    bool unmeasured;                         // the engine did not measure it
    struct hm_ival own, own_printed;
};

// How the listed tokens relate to the largest ones of the row.
enum hm_entries_order {
    HM_ORDER_TOP,     // they are the largest, in order (llama.cpp, SGLang); the emitted one may be missing
    HM_ORDER_CHAT,    // the same, but the emitted one may have been put there, in place of the last or one more
    HM_ORDER_MAP,     // the order means nothing, and the emitted token may be one more than the largest
    HM_ORDER_RANKS    // each has its rank
};

void hm_entries_init(struct hm_entries *entries, const struct hm_source_options *options);
void hm_entries_clear(struct hm_entries *entries);

// Forgets the last row. bytes: of the JSON text whose strings will be decoded, or more.
hm_status hm_entries_begin(struct hm_entries *entries, size_t bytes, struct hm_error *err);

// Decodes a name; each of the three may be no value or null. `bytes` (an array of numbers 0..255) wins over `text`; a text
// "token_id:9" is the id 9, and bytes that spell it are none. Call between begin and finish; lives until the next begin. No
// more text than begin was told of is decoded.
struct hm_name hm_entries_name(struct hm_entries *entries, struct hm_json_text id, struct hm_json_text text,
                               struct hm_json_text bytes);

// A token's id, or -1. A number that is none of the vocabulary's ids gives the row a finding ID_RANGE.
int32_t hm_entries_id(struct hm_entries *entries, struct hm_json_text id);

// A listed token. value: a number, or a string or null that stands for one; HM_FORMAT, without place, for anything else.
// rank: 0 when not told.
hm_status hm_entries_add(struct hm_entries *entries, struct hm_name name, enum hm_entry_unit unit, struct hm_json_text value,
                         int64_t rank, struct hm_error *err);

// The emitted token and its own number, which may be no value. Matched by id, else by text.
hm_status hm_entries_emitted(struct hm_entries *entries, struct hm_name name, enum hm_entry_unit unit,
                             struct hm_json_text value, struct hm_error *err);

// For readers that have the number already.
hm_status hm_entries_push(struct hm_entries *entries, struct hm_evidence_entry entry, struct hm_entry_note note,
                          struct hm_error *err);

// vLLM's {"374":{"logprob":-0.41,"rank":1,"decoded_token":" is"}}: adds all of them. A key that is no id is HM_FORMAT.
hm_status hm_entries_add_ids(struct hm_entries *entries, struct hm_json_text object, struct hm_error *err);

// Ends the row: fills events->token (its token, text, row, has_row and missing), gives it through hm_track_token, and its
// findings TOKEN_ABSENT, TOKEN_DIFFERS, NOT_A_NUMBER. Sentinels are left out and counted in the track, unless all but a
// first 0 are: those stay as -9999, for hm_sanity_check to see that only the argmax was logged. For of_prompt tokens the
// caller has set events->token.t.
//
// A number that contains 0 beside an empty list is no number: engines write it for tokens that they did not measure.
//
// ranked: a token may be listed although it is not among the largest, because it was emitted; then it comes last and is not
// ranked. Where that cannot be told apart (an emitted token that is the least of its list), it is not ranked. Nothing is ranked
// when a token without id or bytes has a text that several tokens may have ("", U+FFFD): lists that are keyed by text keep one
// of those, and the others may be anywhere.
hm_status hm_entries_finish(struct hm_entries *entries, enum hm_entries_order order, struct hm_track *track,
                            struct hm_events *events, struct hm_error *err);

#endif
