// Lines of JSON under construction: see log_json.h. Numbers are formatted here rather than by printf("%a") because
// that follows the locale's decimal point, and a log must not.
#include "certify/log_json.h"

#include "base/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

void hm_line_free(struct hm_line *line)
{
    free(line->text);
    *line = (struct hm_line){0};
}

hm_status hm_line_check(const struct hm_line *line, const char *what, struct hm_error *err)
{
    if (line->status == HM_OK) return HM_OK;
    if (line->status == HM_RANGE)
        return hm_fail(err, HM_RANGE, "%s: expected real numbers, found one that is not a number", what);
    return hm_fail(err, line->status, "%s: out of memory", what);
}

// Room for `more` bytes after the end.
static char *reserve(struct hm_line *line, size_t more)
{
    size_t need;
    void *text = line->text;
    if (line->status) return NULL;
    if (!hm_add_size(line->size, more, &need) || !hm_grow(&text, &line->capacity, need, 1)) {
        line->status = HM_MEMORY;
        return NULL;
    }
    line->text = text;
    return line->text + line->size;
}

void hm_line_bytes(struct hm_line *line, const char *bytes, size_t size)
{
    char *end = size ? reserve(line, size) : NULL;
    if (!end) return;
    memcpy(end, bytes, size);
    line->size += size;
}

void hm_line_format(struct hm_line *line, const char *format, ...)
{
    char small[256]; // nearly every piece fits; longer ones are formatted again in place
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(small, sizeof small, format, args);
    if (n < 0) {
        line->status = line->status ? line->status : HM_MEMORY;
    } else if ((size_t)n < sizeof small) {
        hm_line_bytes(line, small, (size_t)n);
    } else {
        char *end = reserve(line, (size_t)n + 1);
        if (end) line->size += (size_t)vsnprintf(end, (size_t)n + 1, format, again);
    }
    va_end(again);
    va_end(args);
}

static void escape(struct hm_line *line, unsigned char c)
{
    static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt"; // a character, then its letter
    for (const char *l = letters; *l; l += 2)
        if ((unsigned char)*l == c) {
            hm_line_bytes(line, (const char[]){'\\', l[1]}, 2);
            return;
        }
    hm_line_format(line, "\\u%04x", c);
}

void hm_line_string(struct hm_line *line, const char *text, size_t size)
{
    hm_line_bytes(line, "\"", 1);
    for (size_t i = 0; i < size;) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x80) {
            if (c < 0x20 || c == '"' || c == '\\') escape(line, c);
            else hm_line_bytes(line, text + i, 1);
            i++;
            continue;
        }
        size_t left = size - i < 4 ? size - i : 4; // no character is longer
        utf8proc_int32_t point;
        utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text + i, (utf8proc_ssize_t)left, &point);
        if (n > 0) hm_line_bytes(line, text + i, (size_t)n);
        else hm_line_bytes(line, "\xEF\xBF\xBD", 3);
        i += n > 0 ? (size_t)n : 1;
    }
    hm_line_bytes(line, "\"", 1);
}

void hm_line_text(struct hm_line *line, const char *text)
{
    if (text) hm_line_string(line, text, strlen(text));
    else hm_line_bytes(line, "null", 4);
}

static char *put(char *out, const char *text)
{
    while (*text) *out++ = *text++;
    return out;
}

// The exponent of two with its sign; at most four digits.
static char *put_exponent(char *out, int exponent)
{
    unsigned left = (unsigned)(exponent < 0 ? -exponent : exponent), unit = 1000;
    *out++ = exponent < 0 ? '-' : '+';
    while (unit > 1 && left < unit) unit /= 10;
    for (; unit > 0; unit /= 10) *out++ = (char)('0' + left / unit % 10);
    return out;
}

// Writes the text and returns its end.
static char *put_real(char *out, double value)
{
    if (isnan(value)) return put(out, "nan");
    if (value == 0) return put(out, "0x0p+0"); // a real number has no negative zero
    if (value < 0) *out++ = '-';
    if (isinf(value)) return put(out, "inf");
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7FF);
    out = put(out, exponent ? "0x1" : "0x0"); // exponent field 0: a subnormal, 0.fraction times the least normal power
    uint64_t fraction = bits << 12;
    if (fraction) *out++ = '.';
    for (; fraction; fraction <<= 4) *out++ = "0123456789abcdef"[fraction >> 60];
    *out++ = 'p';
    return put_exponent(out, exponent ? exponent - 1023 : -1022);
}

void hm_real_text(double value, char out[HM_REAL_TEXT])
{
    *put_real(out, value) = 0;
}

void hm_line_real(struct hm_line *line, double value)
{
    if (isnan(value)) {
        line->status = line->status ? line->status : HM_RANGE;
        return;
    }
    char *start = reserve(line, HM_REAL_TEXT + 2), *end = start;
    if (!start) return;
    *end++ = '"';
    end = put_real(end, value);
    *end++ = '"';
    line->size += (size_t)(end - start);
}

void hm_line_ival(struct hm_line *line, struct hm_ival value)
{
    hm_line_bytes(line, "[", 1);
    hm_line_real(line, value.lo);
    hm_line_bytes(line, ",", 1);
    hm_line_real(line, value.hi);
    hm_line_bytes(line, "]", 1);
}

void hm_line_key(struct hm_line *line, const char *key)
{
    hm_line_bytes(line, ",\"", 2);
    hm_line_bytes(line, key, strlen(key));
    hm_line_bytes(line, "\":", 2);
}

void hm_line_member(struct hm_line *line, const char *key, struct hm_ival value)
{
    hm_line_key(line, key);
    hm_line_ival(line, value);
}

void hm_line_seconds(struct hm_line *line, double seconds)
{
    bool known = seconds > 0 && seconds < 1e12;
    uint64_t micro = known ? (uint64_t)(seconds * 1e6 + 0.5) : 0;
    hm_line_format(line, "%llu.%06u", (unsigned long long)(micro / 1000000), (unsigned)(micro % 1000000));
}
