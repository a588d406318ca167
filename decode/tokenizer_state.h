// What an open tokenizer holds. Private to the tokenizer's own files.
#ifndef HM_DECODE_TOKENIZER_STATE_H
#define HM_DECODE_TOKENIZER_STATE_H

#include "decode/bpe.h"
#include "decode/pretokenize.h"
#include "decode/tokenizer.h"
#include "decode/tokenizer_added.h"
#include "decode/tokenizer_vocabulary.h"

struct hm_tokenizer {
    struct hm_vocabulary vocabulary;
    struct hm_bpe bpe;               // points to the vocabulary
    struct hm_added added;           // all added tokens as written, for look-ups by text
    struct hm_added raw, normalized; // those matched before, and those matched after, normalisation
    struct hm_pretokenizer *pretokenizer;
    bool nfc;             // the normaliser: NFC, or none
    struct hm_ids prefix; // what the post-processor puts first
    uint8_t sha256[HM_SHA256_BYTES];
};

// Fills a zeroed tokenizer from the bytes of a tokenizer.json; on failure the caller still closes it.
hm_status hm_tokenizer_load(const char *where, const char *json, size_t size, struct hm_tokenizer *t,
                            struct hm_error *err);

// Parts of the above. hm_load_model reads the vocabulary, with room for the ids of added tokens, and the merges.
hm_status hm_load_model(const char *where, const cJSON *root, struct hm_tokenizer *t, struct hm_error *err);
// A value that must be an id; `what` and `token` name it in errors.
hm_status hm_load_id(const char *where, const char *what, const char *token, const cJSON *value, int32_t *out,
                     struct hm_error *err);
// An optional boolean member, false when absent.
hm_status hm_load_flag(const char *where, const cJSON *in, const char *key, bool *out, struct hm_error *err);

#endif
