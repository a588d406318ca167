// Byte-level BPE tokenizers, read from a Hugging Face `tokenizer.json`: the GPT-2, Qwen2/3, Llama-3 and SmolLM2
// families.
//
// Ids and decoded text equal those of the `tokenizers` library; what is not supported is refused when the file is
// opened, never approximated. docs/tokenizer.md has the details. A tokenizer is immutable once open, so any number of
// threads may use it.
#ifndef HM_DECODE_TOKENIZER_H
#define HM_DECODE_TOKENIZER_H

#include "base/error.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hm_tokenizer;

// What encoding does with the text of an added token ("<|im_end|>") inside the text.
enum hm_special {
    HM_SPECIAL_PARSE, // it becomes that token's id: for prompts written by the person who runs the program
    HM_SPECIAL_PLAIN  // it is text like any other: for content that must not be able to inject control tokens
};

enum { HM_TOKENIZER_MOST_IDS = 1 << 24 }; // ids are in [0, 2^24)

// Opens DIR/tokenizer.json, or the file itself. HM_IO, HM_FORMAT (malformed, inconsistent), HM_RANGE (an id out of
// range, a file above 128 MiB), HM_UNSUPPORTED (a part of the file asks for something hallmark does not do).
hm_status hm_tokenizer_open(const char *dir_or_file, struct hm_tokenizer **out, struct hm_error *err);
// The same from bytes in memory; `where` names them in errors.
hm_status hm_tokenizer_parse(const char *where, const char *json, size_t size, struct hm_tokenizer **out,
                             struct hm_error *err);
void hm_tokenizer_close(struct hm_tokenizer *tokenizer); // NULL is allowed

// The ids of size bytes of text, without the tokens of hm_tokenizer_prefix. The caller frees *ids (never NULL on
// success). Bytes that are not UTF-8 become their single-byte tokens, so that nothing is lost. HM_RANGE when the
// vocabulary lacks a byte that the text needs, or a pattern of the file runs past its limit of steps.
hm_status hm_tokenizer_encode(const struct hm_tokenizer *tokenizer, const char *text, size_t size,
                              enum hm_special specials, int32_t **ids, size_t *count, struct hm_error *err);

// The tokens that the file's post-processor puts before a text (Llama-3: "<|begin_of_text|>"). NULL with *count == 0
// when there are none. Owned by the tokenizer.
const int32_t *hm_tokenizer_prefix(const struct hm_tokenizer *tokenizer, size_t *count);

// The bytes that a token stands for, owned by the tokenizer; NULL for ids without text (gaps, padding rows, ids out
// of range).
const uint8_t *hm_tokenizer_bytes(const struct hm_tokenizer *tokenizer, int32_t id, size_t *size);

// The id of an added token's text ("<|im_end|>"), else of a vocabulary entry as the file spells it ("Ġthe"); -1 when
// absent.
int32_t hm_tokenizer_find(const struct hm_tokenizer *tokenizer, const char *token);
bool hm_tokenizer_is_special(const struct hm_tokenizer *tokenizer, int32_t id); // marked "special" in the file
int32_t hm_tokenizer_size(const struct hm_tokenizer *tokenizer);                // one past the largest id
const uint8_t *hm_tokenizer_sha256(const struct hm_tokenizer *tokenizer);       // of the file: HM_SHA256_BYTES bytes

// The text of ids: their bytes in order, each maximal ill-formed part replaced by U+FFFD. Ids without text add
// nothing. The caller frees *text, which is followed by a zero byte that *size does not count.
hm_status hm_tokenizer_decode(const struct hm_tokenizer *tokenizer, const int32_t *ids, size_t count, char **text,
                              size_t *size, struct hm_error *err);

// Decoding while tokens arrive: push each token's bytes, print what comes back, flush at the end. All pieces together
// equal the decoding of all tokens at once. Starts as {0}; needs no clean-up.
struct hm_utf8_stream {
    uint8_t held[4]; // the beginning of a character whose other bytes have not come yet
    size_t count;    // bytes held, at most 3
};

// Room that hm_utf8_push needs for `size` bytes.
#define HM_UTF8_ROOM(size) (3 * ((size_t)(size) + 1))

// Writes the complete characters to out (no terminating zero) and returns how many bytes it wrote.
size_t hm_utf8_push(struct hm_utf8_stream *stream, const uint8_t *bytes, size_t size, char *out);
// Writes U+FFFD (3 bytes) when a character was left incomplete; returns 3 or 0.
size_t hm_utf8_flush(struct hm_utf8_stream *stream, char *out);

// May `draft` (rows of draft_rows logits) propose tokens to `target`? HM_OK when every id that has text in both has
// the same text. Padding is legal: ids at or beyond one tokenizer's size. HM_SHAPE names the first id that differs,
// or a tokenizer with more ids than its model has rows.
hm_status hm_tokenizer_same_text(const struct hm_tokenizer *target, int32_t target_rows,
                                 const struct hm_tokenizer *draft, int32_t draft_rows, struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
