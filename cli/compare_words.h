// Tokens, places and numbers as the printers of a comparison say them.
#ifndef HM_CLI_COMPARE_WORDS_H
#define HM_CLI_COMPARE_WORDS_H

#include "cli/compare_run.h"

enum { HM_WORDS = 240 };

struct hm_words {
    char text[64];
};

// "0.0125", or both ends, rounded outward, where three digits tell them apart: "0.4 to 0.6"; "at least 0.4".
struct hm_words hm_words_ival(struct hm_ival x);
struct hm_words hm_words_percent(const char *quantile); // "99.9 %"

// 523 " the", "a text", ?; without control characters.
void hm_words_token(int32_t id, const char *text, char out[HM_WORDS]);
// prompt 3 "q17", token 41, width 5
void hm_words_place(const struct hm_spool_prompt *prompt, uint32_t t, int32_t width, char out[HM_WORDS]);
void hm_words_group(const struct hm_compare_group *group, char out[HM_WORDS]); // category coding, width 4

#endif
