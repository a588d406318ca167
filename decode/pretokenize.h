// Cuts text into the words that byte pair encoding works on: the "pre_tokenizer" of a tokenizer.json.
//
// A pipeline of steps (Split, Digits, ByteLevel), each cutting the pieces of the one before. ByteLevel comes last.
#ifndef HM_DECODE_PRETOKENIZE_H
#define HM_DECODE_PRETOKENIZE_H

#include "decode/tokenizer_text.h"

#include <cjson/cJSON.h>

struct hm_pretokenizer;
struct hm_pretokenizer_work; // scratch space of one encoding

// Reads the member "pre_tokenizer". HM_UNSUPPORTED names what is not known.
hm_status hm_pretokenizer_read(const char *where, const cJSON *value, struct hm_pretokenizer **out,
                               struct hm_error *err);
void hm_pretokenizer_free(struct hm_pretokenizer *p);

// For texts of `size` bytes in all, which is what the budget of steps is measured by. NULL when memory is short.
struct hm_pretokenizer_work *hm_pretokenizer_work_open(size_t size);
void hm_pretokenizer_work_close(struct hm_pretokenizer_work *work);

// Receives each word in order; a status other than HM_OK ends the run and is returned by it.
typedef hm_status hm_word_sink(void *context, const uint8_t *word, size_t size, struct hm_error *err);

// Cuts well-formed UTF-8. HM_RANGE when a pattern needs more steps than any sane one would.
hm_status hm_pretokenizer_run(const struct hm_pretokenizer *p, struct hm_pretokenizer_work *work, const uint8_t *text,
                              size_t size, hm_word_sink *sink, void *context, struct hm_error *err);

#endif
