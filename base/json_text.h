// JSON as text, walked in place: for documents of any length whose numbers must keep their digits.
//
// base/json.h (cJSON) turns numbers into doubles and holds the whole document; logs of other engines are long, and the
// decimal digits of their log-probabilities are the evidence. A document is checked once from end to end
// (hm_json_text_check); after that a cursor moves over it without failing. Nothing is copied or allocated.
#ifndef HM_BASE_JSON_TEXT_H
#define HM_BASE_JSON_TEXT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A value: its first byte and the byte behind it. at == NULL: no value.
struct hm_json_text {
    const char *at, *end;
};

enum hm_json_text_kind {
    HM_JSON_NONE, HM_JSON_OBJECT, HM_JSON_ARRAY, HM_JSON_STRING, HM_JSON_NUMBER, HM_JSON_TRUE, HM_JSON_FALSE, HM_JSON_NULL
};

// Checks one document at the start of text [size] and sets *out; *used is how many bytes it took with the white space
// around it, so that documents may follow each other (JSON Lines). Strict JSON, UTF-8, nesting at most 64, plus the words
// NaN, Infinity and -Infinity that Python writes, which count as numbers. HM_FORMAT "byte 17: expected ..., found ...".
hm_status hm_json_text_check(const char *text, size_t size, struct hm_json_text *out, size_t *used, struct hm_error *err);

enum hm_json_text_kind hm_json_text_kind(struct hm_json_text value);
const char *hm_json_text_kind_name(struct hm_json_text value); // "an object", "nothing", ...

// The member of an object, or no value when it is absent, null included as a value. The first of repeated keys.
struct hm_json_text hm_json_text_find(struct hm_json_text object, const char *key);

// The same for several keys in one pass over the object: out [count], in the order of keys [count].
void hm_json_text_find_all(struct hm_json_text object, const char *const *keys, size_t count, struct hm_json_text *out);

// Walks an array or object: the first element, then the next after one; no value at the end. In an object *key is the
// member's key (a string). Cost: the bytes walked over.
struct hm_json_text hm_json_text_first(struct hm_json_text container, struct hm_json_text *key);
struct hm_json_text hm_json_text_next(struct hm_json_text container, struct hm_json_text element, struct hm_json_text *key);
size_t hm_json_text_count(struct hm_json_text container);

// Decodes a string into out [size]; returns how many bytes it has in all (more than `size`: it did not fit and was cut at
// a character border). Lone surrogates become U+FFFD. NUL bytes may appear.
size_t hm_json_text_string(struct hm_json_text string, char *out, size_t size);
bool hm_json_text_equals(struct hm_json_text string, const char *text);

// A whole number of at most 2^53 in magnitude, written without point or exponent; false for everything else.
bool hm_json_text_integer(struct hm_json_text number, int64_t *out);

#ifdef __cplusplus
}
#endif

#endif
