// The rows that a model of ours gives to a path of tokens: `hallmark compare A --model DIR`.
#ifndef HM_CLI_COMPARE_RESCORE_H
#define HM_CLI_COMPARE_RESCORE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct hm_rescore;

// threads 0: one per core.
hm_status hm_rescore_open(const char *dir, unsigned threads, struct hm_rescore **out, struct hm_error *err);
void hm_rescore_close(struct hm_rescore *rescore); // NULL is allowed
size_t hm_rescore_vocab(const struct hm_rescore *rescore);

// Begins a path: path [length] is copied, its first `prompt` >= 1 ids are given and the others emitted. HM_RANGE for an id that
// the model does not have and for a path beyond its positions.
hm_status hm_rescore_begin(struct hm_rescore *rescore, const int32_t *path, size_t prompt, size_t length, struct hm_error *err);

// The row [vocab] of emitted token t, after all tokens before it; t does not decrease. Good until the next call.
hm_status hm_rescore_row(struct hm_rescore *rescore, size_t t, const float **row, struct hm_error *err);

#endif
