// What a .safetensors file of rows may tell besides its rows: the token emitted at each row, where sequences begin, prompts.
//
//   tokens         I64 or I32 [rows]: the token that was emitted from row i
//   first          [sequences]: the first row of each sequence, ascending from 0; absent: one sequence
//   prompt         ids of all prompts, one after the other; prompt_first [sequences]: where each begins; absent: one sequence
//
// The other three count only beside `tokens`. docs/evidence.md "Rows and their tokens".
#ifndef HM_EVIDENCE_ROWS_TOKENS_H
#define HM_EVIDENCE_ROWS_TOKENS_H

#include "base/error.h"
#include "base/file.h"

#include <stddef.h>
#include <stdint.h>

struct hm_rows_tokens {
    int32_t *token;                   // [rows]; NULL: the file has no tensor `tokens`
    size_t *first;                    // [sequences + 1]: the last is `rows`
    size_t sequences;
    int32_t *prompt;                  // NULL: no prompts
    size_t *prompt_first;             // [sequences + 1]
};

// For every other file, .npy included, all fields are zero. Errors name the path, the tensor, what was expected and found.
hm_status hm_rows_tokens_read(const char *path, const struct hm_map *map, size_t rows, size_t vocab,
                              struct hm_rows_tokens *out, struct hm_error *err);
void hm_rows_tokens_free(struct hm_rows_tokens *tokens);

#endif
