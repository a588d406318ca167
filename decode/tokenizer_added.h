// Added tokens: texts that are found in the input before anything else looks at it.
#ifndef HM_DECODE_TOKENIZER_ADDED_H
#define HM_DECODE_TOKENIZER_ADDED_H

#include "decode/tokenizer_text.h"

enum { HM_ADDED_LONGEST = 512 }; // bytes of one added token: bounds the work at each place of the text

struct hm_added_token {
    uint8_t *text; // owned
    size_t size;   // 1 to HM_ADDED_LONGEST
    int32_t id;
    bool left_strip, right_strip; // the match takes the white space on that side with it
};

// Starts as {0}.
struct hm_added {
    struct hm_added_token *tokens;
    size_t count, capacity;
    bool first[256]; // bytes that some token begins with
};

void hm_added_clear(struct hm_added *added);
// Copies the text; false when memory is short. hm_added_sort before the first look-up.
bool hm_added_append(struct hm_added *added, const struct hm_added_token *token);
// Sorts by text; returns a token whose text appears twice, or NULL.
const struct hm_added_token *hm_added_sort(struct hm_added *added);
const struct hm_added_token *hm_added_find(const struct hm_added *added, const uint8_t *text, size_t size);

struct hm_added_match {
    size_t start, end; // with the white space that the token strips; nothing when the match before has stripped it all
    size_t next;       // where the search goes on
    int32_t id;
};

// The leftmost match at or after `from` (the longest one there); false when there is none. `taken` is the end of the
// match before it: what a match strips on its left begins there at the earliest.
bool hm_added_next(const struct hm_added *added, const uint8_t *text, size_t size, size_t from, size_t taken,
                   struct hm_added_match *match);

#endif
