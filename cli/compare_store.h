// Sequences of a side that were passed over on the way to another one, kept in memory up to a limit: logs are often in the
// order of completion.
#ifndef HM_CLI_COMPARE_STORE_H
#define HM_CLI_COMPARE_STORE_H

#include "cli/compare_side.h"

enum { HM_STORE_BYTES = 256 << 20 }; // for the sequences of a side

// Reads all tokens of the sequence at hand into the store. When there is no room they are read and dropped, and the
// sequence can only be had by reading the file again.
hm_status hm_store_add(struct hm_compare_side *side, struct hm_error *err);

// Takes a sequence out of the store and puts it at hand; false when it is not there.
bool hm_store_take(struct hm_compare_side *side, uint32_t number);

// The next token of the sequence that was taken; NULL after the last.
const struct hm_source_token *hm_store_token(struct hm_compare_side *side);

void hm_store_clear(struct hm_compare_side *side);

#endif
