// Texts that must fit or be UTF-8: see text.h.
#include "base/text.h"

#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

size_t hm_text_cut(const char *text, size_t size, size_t most)
{
    if (size <= most) return size;
    while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80) most--; // inside a character
    return most;
}

void hm_text_copy(char *out, size_t size, const char *text, size_t length)
{
    size_t n = hm_text_cut(text, length, size - 1);
    if (n) memcpy(out, text, n);
    out[n] = 0;
}

void hm_text_clean(char *text)
{
    utf8proc_int32_t c;
    while (*text) {
        utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &c);
        bool good = n > 0 && c >= 0x20 && (c < 0x7f || c > 0x9f);
        if (!good) *text = '?';
        text += good ? n : 1;
    }
}
