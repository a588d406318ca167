// `--check`: the same sequence decoded without a draft, and where the two part.
#ifndef HM_CLI_DECODE_CHECK_H
#define HM_CLI_DECODE_CHECK_H

#include "cli/prompts.h"
#include "decode/session.h"

// One decoded answer.
struct hm_answer {
    uint32_t sequence;
    size_t turn;
    const struct hm_prompt *prompt;
    size_t prompt_tokens;
    int32_t *token; // owned [count]
    size_t count;
    char *text;     // owned [size], without special tokens
    size_t size;
};

struct hm_check_result {
    uint64_t compared, different; // sequences
    uint64_t tokens;              // compared
    double seconds;               // of plain decoding, after the prompts
    // The first difference.
    uint32_t sequence, t;
    int32_t ours, plain;          // tokens; -1 where one text had ended
    float gap;                    // logit of `plain` minus logit of `ours` in the plain row
};

// Decodes `prompt` [answer->prompt_tokens] again in `plain`, a session without a drafter, and adds to *result.
hm_status hm_decode_check(struct hm_session *plain, const struct hm_answer *answer, const int32_t *prompt,
                          size_t max_tokens, struct hm_check_result *result, struct hm_error *err);

#endif
