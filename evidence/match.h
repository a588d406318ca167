// Tokens of one row of evidence, found by id or by text. Not part of the interface.
#ifndef HM_EVIDENCE_MATCH_H
#define HM_EVIDENCE_MATCH_H

#include "evidence/evidence.h"

#include <stdbool.h>

// The token as a log names it: an id, or -1 and its text; text NULL: none.
struct hm_token_name {
    int32_t id;
    const char *text;
    size_t text_size;
};

// May a text stand for one token only? Not when it is empty or has a U+FFFD in it, which replaces parts of characters.
bool hm_text_names_token(const char *text, size_t size);

// The entry of a list for a token, by id where both have one, else by text; HM_UNSEEN: not listed. *sure: then it is
// surely none of the entries (all of them have ids, and so has the token); an entry found is always sure.
size_t hm_evidence_find(const struct hm_evidence *row, const struct hm_token_name *token, bool *sure);

// Calls `visit` for each token that is in both rows, of which at least one is a list, with its values there (those of a full
// row are points).
struct hm_shared_token {
    struct hm_ival a, b;
    int32_t id; // -1: matched by text, and neither side has an id
    size_t a_entry, b_entry; // of lists; a full row's is the id
};
hm_status hm_evidence_match(const struct hm_evidence *a, const struct hm_evidence *b,
                            void (*visit)(void *user, const struct hm_shared_token *token), void *user,
                            struct hm_error *err);

#endif
