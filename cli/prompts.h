// The prompts of a decode: one text, one file, or a JSONL file of questions (MT-bench, Spec-Bench).
#ifndef HM_CLI_PROMPTS_H
#define HM_CLI_PROMPTS_H

#include "base/error.h"

#include <stddef.h>

struct hm_prompt {
    char *id, *category; // "" when there is none
    char **turn;         // texts, the second to follow the first answer [turns >= 1]
    size_t turns;
};

struct hm_prompts {
    struct hm_prompt *prompt; // [count]
    size_t count;
};

// One prompt of one turn.
hm_status hm_prompts_from_text(const char *text, struct hm_prompts *out, struct hm_error *err);
// The whole file is the prompt, at most 64 MiB without zero bytes; bytes that are not UTF-8 become byte tokens.
hm_status hm_prompts_from_file(const char *path, struct hm_prompts *out, struct hm_error *err);
// One JSON object a line: "turns" (array of texts), "question_id" (number or text) and "category" optional. `limit` > 0 takes
// the first so many. Errors name the file and the line.
hm_status hm_prompts_from_jsonl(const char *path, size_t limit, struct hm_prompts *out, struct hm_error *err);

void hm_prompts_clear(struct hm_prompts *prompts);

#endif
