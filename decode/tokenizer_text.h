// Text helpers of the tokenizer: UTF-8, character classes, NFC, the byte alphabet of byte-level BPE, growing arrays.
#ifndef HM_DECODE_TOKENIZER_TEXT_H
#define HM_DECODE_TOKENIZER_TEXT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A growing array of bytes. Starts as {0}; free(data) ends it.
struct hm_bytes {
    uint8_t *data;
    size_t count, capacity;
};

// A growing array of token ids. Starts as {0}; free(data) ends it.
struct hm_ids {
    int32_t *data;
    size_t count, capacity;
};

bool hm_bytes_add(struct hm_bytes *bytes, const void *data, size_t size); // false when memory is short
bool hm_ids_add(struct hm_ids *ids, int32_t id);                          // false when memory is short

// The length of the well-formed character at text (1 to 4) and its code point; 0 when there is none.
size_t hm_text_next(const uint8_t *text, size_t size, int32_t *point);
// Bytes of the longest well-formed UTF-8 prefix.
size_t hm_text_valid(const uint8_t *text, size_t size);

bool hm_text_is_space(int32_t point);   // the Unicode property White_Space
bool hm_text_is_numeric(int32_t point); // general category N

// How many bytes of white space the well-formed text begins or ends with.
size_t hm_text_leading_space(const uint8_t *text, size_t size);
size_t hm_text_trailing_space(const uint8_t *text, size_t size);

// Replaces *out by the canonical composition of well-formed text. O(n log n) whatever the text.
hm_status hm_text_nfc(const uint8_t *text, size_t size, struct hm_bytes *out, struct hm_error *err);

// Byte-level BPE spells each byte as one printable character. The byte of a character, or -1.
int hm_text_alphabet(int32_t point);
// Translates a spelled token into its bytes (at most size of them); false when a character is not in the alphabet.
bool hm_text_unspell(const char *text, size_t size, uint8_t *out, size_t *out_size);

// A token for an error message: quoted, cut at 40 bytes, control characters and ill-formed bytes as \xNN.
enum { HM_TEXT_SHOWN = 176 };
const char *hm_text_show(const void *text, size_t size, char out[HM_TEXT_SHOWN]);

// The same for a zero-terminated string, by value: `hm_text_quote(name).text` lives to the end of the statement.
struct hm_shown {
    char text[HM_TEXT_SHOWN];
};
struct hm_shown hm_text_quote(const char *text);

uint64_t hm_text_hash(const uint8_t *text, size_t size);

#endif
