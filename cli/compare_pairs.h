// Prompts of two sides, matched by their token ids where both sides tell them, else by id where those fit, else by their
// order (docs/compare.md).
#ifndef HM_CLI_COMPARE_PAIRS_H
#define HM_CLI_COMPARE_PAIRS_H

#include "cli/compare_side.h"

// The sequences of a file by what names them: a hash of their prompt's ids, or their id.
struct hm_id_list {
    struct hm_id_entry {
        char *id, *key;  // owned; both the same for ids
        uint32_t number;
        bool paired;
    } *entry;            // [count], sorted by key once it was read
    size_t count, room;
};

struct hm_compare_pairs {
    struct hm_compare_side *a, *b;                         // b NULL: A alone
    enum hm_pairs_by { HM_PAIRS_EQUAL, HM_PAIRS_PROMPTS, HM_PAIRS_IDS, HM_PAIRS_ORDER } by; // EQUAL: in order, and equal so far
    struct hm_id_list list;                                // B's, with PROMPTS and IDS
    uint64_t alone;                                        // prompts without a partner, told as findings
    size_t told;                                           // of B's, at the end
};

// Goes to the next pair: both sides stand at its sequence. *there false at the end. Prompts that only one side has are
// told through the sides' `finding`.
hm_status hm_pairs_next(struct hm_compare_pairs *pairs, bool *there, struct hm_error *err);
void hm_pairs_clear(struct hm_compare_pairs *pairs);

#endif
