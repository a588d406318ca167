// The tokens of a tokenizer: id to bytes, bytes to id.
#ifndef HM_DECODE_TOKENIZER_VOCABULARY_H
#define HM_DECODE_TOKENIZER_VOCABULARY_H

#include "decode/tokenizer_text.h"

enum {
    HM_TOKEN_PRESENT = 1, // the id has text (zero-filled slots are gaps)
    HM_TOKEN_SPELLED = 2, // from the model's vocabulary, spelled in the byte alphabet: what BPE can produce
    HM_TOKEN_MODEL = 4,   // from the model's vocabulary
    HM_TOKEN_ADDED = 8,   // listed in added_tokens
    HM_TOKEN_SPECIAL = 16 // ... and marked special
};

struct hm_token {
    uint32_t offset, size; // its bytes, in hm_vocabulary.bytes
    uint8_t flags;
};

struct hm_vocabulary {
    struct hm_token *tokens; // count of them, by id
    int32_t count;           // one past the largest id
    struct hm_bytes bytes;   // of all tokens
    int32_t *table;          // open addressing, -1 when free: the model's tokens by their bytes
    size_t table_mask;       // table size - 1; the size is a power of two, at least twice the entries
    int32_t byte_ids[256];   // the token of each single byte, or -1
};

// Room for ids below `count` and `entries` tokens of the model. Starts from a zeroed struct.
bool hm_vocabulary_init(struct hm_vocabulary *v, int32_t count, size_t entries);
void hm_vocabulary_clear(struct hm_vocabulary *v);

// Makes id known, which must be in [0, count) and free; false when memory is short.
bool hm_vocabulary_set(struct hm_vocabulary *v, int32_t id, const uint8_t *bytes, size_t size, uint8_t flags);

// The flags of an id; 0 for an id without text or out of range.
uint8_t hm_vocabulary_flags(const struct hm_vocabulary *v, int32_t id);

// The model's token with these bytes: spelled in the byte alphabet (SPELLED) or as it is (0). -1 when absent.
int32_t hm_vocabulary_find(const struct hm_vocabulary *v, const uint8_t *bytes, size_t size, uint8_t spelled);

#endif
