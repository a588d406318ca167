// The lists that SGLang gives beside each other, and the row that they tell of a token. Private to evidence/.
//
// An entry is [logprob, id, text or null], sometimes without the text. output_token_logprobs has one for each token,
// output_top_logprobs the k largest of its row, in order, and output_token_ids_logprobs those that were asked for by id; of a
// prompt's tokens input_... likewise. Neither of the last two gains the emitted token: where they lack it, it is added, unranked.
#ifndef HM_EVIDENCE_SGLANG_ROW_H
#define HM_EVIDENCE_SGLANG_ROW_H

#include "evidence/cursor.h"
#include "evidence/entries.h"

struct hm_sglang_lists {
    struct hm_cursor own, top, chosen; // chosen: by id
    size_t index;
};

// Opens the lists of meta_info; absent and null ones are empty. Errors name the list, not the file.
hm_status hm_sglang_lists_open(struct hm_json_text meta, bool input, struct hm_sglang_lists *out, struct hm_error *err);
void hm_sglang_lists_next(struct hm_sglang_lists *lists);

// The id of an entry; errors without place.
hm_status hm_sglang_id(struct hm_json_text entry, struct hm_json_text *out, struct hm_error *err);

// Ids of a row's largest, sorted: memory that is kept from token to token.
struct hm_sglang_ids {
    int32_t *id;
    size_t room;
};

// Gives the token that the lists are at; its t and place are set. told: what output_ids says of it, or no value. Where the lists
// have no token, it is that one. Errors without place.
hm_status hm_sglang_give(const struct hm_sglang_lists *lists, struct hm_json_text told, struct hm_entries *entries,
                         struct hm_sglang_ids *ids, struct hm_track *track, struct hm_events *events, struct hm_error *err);

#endif
