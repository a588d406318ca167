// Responses of servers: documents whose choices are sequences, whole or in chunks that may interleave.
//
// What the OpenAI shapes and llama.cpp's server share: finding the sequence a choice or chunk belongs to, the sequence's own
// facts, its prompt, and its end. A format says how a choice's tokens are read.
#ifndef HM_EVIDENCE_RESPONSES_H
#define HM_EVIDENCE_RESPONSES_H

#include "evidence/documents.h"
#include "evidence/entries.h"
#include "evidence/source_state.h"

struct hm_responses;

struct hm_responses_format {
    size_t state;      // bytes of a format's own state
    bool has_choices;  // false: the response is its own only choice
    // Sets the state to the first token of responses->choice.
    hm_status (*begin)(struct hm_responses *responses, struct hm_error *err);
    // Gives the next token; *more is false when there was none.
    hm_status (*token)(struct hm_responses *responses, bool *more, struct hm_error *err);
    void (*clear)(void *state); // frees what the state owns; NULL: nothing
};

// A sequence whose end was not seen.
struct hm_open_sequence {
    struct hm_json_text id; // of the response, as written; no value: it has none
    int64_t index;          // of the choice
    bool finished;          // the last chunk was read; counters may follow
    struct hm_track track;
};

// Members of a response and of a choice, found in one pass each. Without choices the response is the choice.
enum hm_response_member {
    HM_RESPONSE_ID, HM_RESPONSE_MODEL, HM_RESPONSE_CATEGORY, HM_RESPONSE_CHOICES, HM_RESPONSE_TIMINGS, HM_RESPONSE_USAGE,
    HM_RESPONSE_ERROR, HM_RESPONSE_TEMPERATURE, HM_RESPONSE_SETTINGS, HM_RESPONSE_PROMPT_IDS, HM_RESPONSE_PROMPT_LOGPROBS,
    HM_RESPONSE_RESPONSE, HM_RESPONSE_MEMBERS
};
enum hm_choice_member {
    HM_CHOICE_INDEX, HM_CHOICE_MESSAGE, HM_CHOICE_DELTA, HM_CHOICE_TEXT, HM_CHOICE_LOGPROBS, HM_CHOICE_FINISH_REASON,
    HM_CHOICE_PROMPT_IDS, HM_CHOICE_PROMPT_LOGPROBS, HM_CHOICE_TOKEN_IDS, HM_CHOICE_STOP, HM_CHOICE_CONTENT, HM_CHOICE_TOKENS,
    HM_CHOICE_PROBABILITIES, HM_CHOICE_PROBS, HM_CHOICE_PREDICTED, HM_CHOICE_MEMBERS
};

struct hm_responses {
    const struct hm_responses_format *format;
    struct hm_source_options options;
    struct hm_documents documents;
    struct hm_document document;
    struct hm_json_text response[HM_RESPONSE_MEMBERS];
    struct hm_json_text choice;            // what is read
    struct hm_json_text member[HM_CHOICE_MEMBERS]; // its members
    size_t number;                         // of the choice in its array
    enum { HM_NEXT_DOCUMENT, HM_CLOSE_FINISHED, HM_NEXT_CHOICE, HM_PROMPT, HM_TOKENS, HM_CLOSE_ALL, HM_ENDED } stage;
    struct hm_open_sequence *open;         // [count]
    size_t count, room, current;           // current: the one that is read
    bool whole;                            // the choice is no chunk
    uint32_t sequences;                    // begun so far
    struct hm_json_text prompt_list, prompt_at;
    size_t prompt_index;
    int32_t *prompt;                       // [prompt_length]
    size_t prompt_length, prompt_room;
    char id[256], model[256], category[128], temperature[64];
    struct hm_entries entries;
    struct hm_events events;
    void *state;                           // the format's
};

hm_status hm_responses_open(const char *path, const struct hm_map *map, const struct hm_source_options *options,
                            const struct hm_responses_format *format, struct hm_reader *out, struct hm_error *err);

// The track of the sequence that is read.
struct hm_track *hm_responses_track(struct hm_responses *responses);

// The place of what is read, for findings: "line 3: choices[0].LIST[7]". list "": the choice itself.
void hm_responses_place(struct hm_responses *responses, const char *list, size_t index);
// Puts "FILE: PLACE: " before an error that has no place.
hm_status hm_responses_fail(struct hm_responses *responses, struct hm_error *err);
// A member that must be an array when it is there; no value for null.
hm_status hm_responses_array(struct hm_responses *responses, const char *key, struct hm_json_text value,
                             struct hm_json_text *out, struct hm_error *err);

// A token without log-probabilities: its text, its id, or both. missing: LOGPROBS or MEASURED.
hm_status hm_responses_bare_token(struct hm_responses *responses, struct hm_json_text id, struct hm_json_text text,
                                  enum hm_missing missing, struct hm_error *err);

// An item {"token", "bytes", "logprob", "top_logprobs": [...]} as chat answers list them; with "id" where the engine gives it,
// "prob" and "top_probs" for probabilities, and llama.cpp's older {"content", "probs": [{"tok_str", "prob"}]}. id: the
// token's id from elsewhere, or no value.
hm_status hm_responses_listed_token(struct hm_responses *responses, struct hm_json_text item, struct hm_json_text id,
                                    struct hm_error *err);

#endif
