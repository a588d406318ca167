// UTF-8 texts that must fit, cut at a character's border, and those that must be UTF-8.
#ifndef HM_BASE_TEXT_H
#define HM_BASE_TEXT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// How many of the bytes text [size] to keep when at most `most` fit.
size_t hm_text_cut(const char *text, size_t size, size_t most);

// Copies as much of text [length] as fits into out [size], size >= 1, with a terminating zero.
void hm_text_copy(char *out, size_t size, const char *text, size_t length);

// Makes a text printable on one line and UTF-8: control characters and bytes that are no UTF-8 become '?'.
void hm_text_clean(char *text);

#ifdef __cplusplus
}
#endif

#endif
