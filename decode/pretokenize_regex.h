// Regular expressions of tokenizer.json, written for Oniguruma, translated for PCRE2.
//
// Only what means the same in both, or can be rewritten so that it does, is accepted: classes, \p{..}, \s, \d, \w,
// groups, look-around, (?i:..), greedy, lazy and possessive quantifiers. \p{L} and \p{N} gain the characters up to
// Unicode 16 that an older PCRE2 does not know.
#ifndef HM_DECODE_PRETOKENIZE_REGEX_H
#define HM_DECODE_PRETOKENIZE_REGEX_H

#include "decode/tokenizer_text.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

// Compiles a pattern (a zero-terminated string). Free with pcre2_code_free. HM_UNSUPPORTED names the construct and
// its place; HM_FORMAT when PCRE2 finds the pattern malformed.
hm_status hm_regex_compile(const char *where, const char *pattern, pcre2_code **out, struct hm_error *err);

// Compiles a pattern that matches exactly this text.
hm_status hm_regex_literal(const char *where, const char *text, pcre2_code **out, struct hm_error *err);

#endif
