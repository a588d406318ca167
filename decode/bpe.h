// Byte pair encoding of one word: bytes to ids by merges of falling priority.
//
// O(n log n) in the length of a word, so a megabyte without a space is as harmless as any other megabyte. A merge
// that could apply twice applies to the leftmost place first, as in the `tokenizers` library.
#ifndef HM_DECODE_BPE_H
#define HM_DECODE_BPE_H

#include "decode/tokenizer_vocabulary.h"

struct hm_bpe_slot {
    uint64_t pair; // (left << 24 | right) + 1; 0 when the slot is free
    uint32_t rank; // lower ranks merge first
};

// The merges of a model. Starts as {0}; immutable after the last hm_bpe_add.
struct hm_bpe {
    const struct hm_vocabulary *vocabulary; // not owned
    struct hm_bpe_slot *table;
    size_t table_mask;
    int32_t *results;   // by rank: the id that the merge makes
    size_t merges;      // merges added so far
    bool ignore_merges; // a word that is a token by itself is not merged step by step
};

bool hm_bpe_init(struct hm_bpe *bpe, const struct hm_vocabulary *vocabulary, size_t merges);
void hm_bpe_clear(struct hm_bpe *bpe);
// The next merge in order of priority, at most as many as hm_bpe_init was told. false when the pair has one already.
bool hm_bpe_add(struct hm_bpe *bpe, int32_t left, int32_t right, int32_t result);

// Scratch space of one encoding, with a cache of the words seen. Starts as {0}.
struct hm_bpe_work;
struct hm_bpe_work *hm_bpe_work_open(void); // NULL when memory is short
void hm_bpe_work_close(struct hm_bpe_work *work);

// Appends the ids of a word to out, which must be the same array for every word of one `work` (the cache points into
// it). HM_RANGE names a byte that the vocabulary lacks.
hm_status hm_bpe_word(const struct hm_bpe *bpe, struct hm_bpe_work *work, const uint8_t *word, size_t size,
                      struct hm_ids *out, struct hm_error *err);

#endif
