// A parser of JSON written from the grammar (RFC 8259), with Python's three words and at most 64 nested values: what
// the check of base/json_text.h is compared with.
#ifndef HM_TESTS_JSON_GRAMMAR_H
#define HM_TESTS_JSON_GRAMMAR_H

#include <stddef.h>
#include <string.h>

// Behind the value at `at`, or NULL.
static const char *grammar_value(const char *at, const char *end, int depth);

static const char *blank(const char *at, const char *end)
{
    while (at < end && strchr(" \n\r\t", *at) && *at) at++;
    return at;
}

static size_t in_range(const char *at, const char *end, size_t i, unsigned low, unsigned high)
{
    return (size_t)(end - at) > i && (unsigned char)at[i] >= low && (unsigned char)at[i] <= high;
}

// The ranges of RFC 3629, section 4.
static const char *grammar_character(const char *at, const char *end)
{
    static const unsigned char form[][9] = {
        {1, 0x20, 0x7f},
        {2, 0xc2, 0xdf, 0x80, 0xbf},
        {3, 0xe0, 0xe0, 0xa0, 0xbf, 0x80, 0xbf},
        {3, 0xe1, 0xec, 0x80, 0xbf, 0x80, 0xbf},
        {3, 0xed, 0xed, 0x80, 0x9f, 0x80, 0xbf},
        {3, 0xee, 0xef, 0x80, 0xbf, 0x80, 0xbf},
        {4, 0xf0, 0xf0, 0x90, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
        {4, 0xf1, 0xf3, 0x80, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
        {4, 0xf4, 0xf4, 0x80, 0x8f, 0x80, 0xbf, 0x80, 0xbf},
    };
    for (size_t f = 0; f < sizeof form / sizeof form[0]; f++) {
        size_t i = 0;
        while (i < form[f][0] && in_range(at, end, i, form[f][1 + 2 * i], form[f][2 + 2 * i])) i++;
        if (i == form[f][0]) return at + i;
    }
    return NULL;
}

static const char *grammar_string(const char *at, const char *end)
{
    if (at >= end || *at++ != '"') return NULL;
    while (at && at < end && *at != '"') {
        if (*at != '\\') {
            at = grammar_character(at, end);
            continue;
        }
        at++;
        if (at == end || !*at || !strchr("\"\\/bfnrtu", *at)) return NULL;
        if (*at++ != 'u') continue;
        for (int i = 0; i < 4; i++, at++)
            if (at == end || !*at || !strchr("0123456789abcdefABCDEF", *at)) return NULL;
    }
    return at && at < end ? at + 1 : NULL;
}

static const char *grammar_digits(const char *at, const char *end)
{
    const char *start = at;
    while (at && at < end && *at >= '0' && *at <= '9') at++;
    return at == start ? NULL : at;
}

static const char *grammar_number(const char *at, const char *end)
{
    if (at < end && *at == '-') at++;
    at = at < end && *at == '0' ? at + 1 : grammar_digits(at, end);
    if (at && at < end && *at == '.') at = grammar_digits(at + 1, end);
    if (at && at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-')) at++;
        at = grammar_digits(at, end);
    }
    return at;
}

static const char *grammar_list(const char *at, const char *end, int depth, char close)
{
    at = blank(at, end);
    if (at < end && *at == close) return at + 1;
    while (at) {
        if (close == '}') {
            at = grammar_string(blank(at, end), end);
            if (!at || (at = blank(at, end)) == end || *at++ != ':') return NULL;
        }
        at = grammar_value(at, end, depth);
        if (!at || (at = blank(at, end)) == end) return NULL;
        if (*at == close) return at + 1;
        if (*at++ != ',') return NULL;
    }
    return NULL;
}

static const char *grammar_value(const char *at, const char *end, int depth)
{
    static const char *const words[] = {"null", "true", "false", "NaN", "Infinity", "-Infinity"};
    at = blank(at, end);
    for (size_t i = 0; i < 6; i++)
        if ((size_t)(end - at) >= strlen(words[i]) && memcmp(at, words[i], strlen(words[i])) == 0)
            return at + strlen(words[i]);
    if (at == end) return NULL;
    if (*at == '"') return grammar_string(at, end);
    if (*at == '{' || *at == '[')
        return depth == 64 ? NULL : grammar_list(at + 1, end, depth + 1, *at == '{' ? '}' : ']');
    return grammar_number(at, end);
}

#endif
