// Private to base/json_text*.c: what bytes of JSON are.
#ifndef HM_BASE_JSON_TEXT_BYTES_H
#define HM_BASE_JSON_TEXT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline const char *skip_space(const char *at, const char *end)
{
    while (at < end && is_space(*at)) at++;
    return at;
}

// Bytes of the UTF-8 character at `at`, 0 when there is none: overlong forms, surrogates and what lies beyond U+10FFFF
// are refused (Unicode 15, table 3-7).
static inline size_t utf8_length(const char *at, const char *end)
{
    const unsigned char *s = (const unsigned char *)at;
    size_t left = (size_t)(end - at);
    if (s[0] < 0x80) return 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || left < n) return 0;
    unsigned char least = s[0] == 0xe0   ? 0xa0
                          : s[0] == 0xf0 ? 0x90
                                         : 0x80,
                  most = s[0] == 0xed   ? 0x9f
                         : s[0] == 0xf4 ? 0x8f
                                        : 0xbf;
    if (s[1] < least || s[1] > most) return 0;
    for (size_t i = 2; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    return n;
}

static inline int hex_digit(char c)
{
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// Skips bytes of a string that need no look, eight at a time: ASCII from 0x20 on but for '"' and '\'. A borrow may stop
// it too early, never too late.
static inline const char *skip_plain(const char *at, const char *end)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    while (end - at >= 8) {
        uint64_t w;
        memcpy(&w, at, 8);
        uint64_t quote = w ^ (ones * '"'), back = w ^ (ones * '\\');
        if ((w | (w - ones * 0x20) | (quote - ones) | (back - ones)) & tops) break;
        at += 8;
    }
    return at;
}

#endif
