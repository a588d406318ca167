// Walking JSON that was checked: see json_text.h. A value's end is found by counting brackets outside strings.
#include "base/json_text.h"

#include "base/json_text_bytes.h"

#include <string.h>

enum hm_json_text_kind hm_json_text_kind(struct hm_json_text value)
{
    if (!value.at) return HM_JSON_NONE;
    switch (*value.at) {
    case '{': return HM_JSON_OBJECT;
    case '[': return HM_JSON_ARRAY;
    case '"': return HM_JSON_STRING;
    case 't': return HM_JSON_TRUE;
    case 'f': return HM_JSON_FALSE;
    case 'n': return HM_JSON_NULL;
    default: return HM_JSON_NUMBER;
    }
}

const char *hm_json_text_kind_name(struct hm_json_text value)
{
    static const char *const names[] = {
        [HM_JSON_NONE] = "nothing",    [HM_JSON_OBJECT] = "an object", [HM_JSON_ARRAY] = "an array",
        [HM_JSON_STRING] = "a string", [HM_JSON_NUMBER] = "a number",  [HM_JSON_TRUE] = "a boolean",
        [HM_JSON_FALSE] = "a boolean", [HM_JSON_NULL] = "null",
    };
    return names[hm_json_text_kind(value)];
}

// Behind the string that begins at `at`.
static const char *string_end(const char *at, const char *end)
{
    at = skip_plain(at + 1, end);
    for (;;) {
        for (int i = 0; i < 8; i++) {
            if (*at == '"') return at + 1;
            at += *at == '\\' ? 2 : 1;
        }
        at = skip_plain(at, end);
    }
}

// Behind the value that begins at `at`. Only brackets and strings matter inside a container.
static const char *value_end(const char *at, const char *end)
{
    if (*at == '"') return string_end(at, end);
    if (*at != '{' && *at != '[') {
        while (at < end && !is_space(*at) && *at != ',' && *at != ']' && *at != '}') at++;
        return at;
    }
    static const signed char change[256] = {['"'] = 2, ['{'] = 1, ['['] = 1, ['}'] = -1, [']'] = -1};
    for (int depth = 0;;) {
        int c;
        while ((c = change[(unsigned char)*at]) == 0) at++;
        if (c == 2) {
            at = string_end(at, end);
            continue;
        }
        depth += c;
        at++;
        if (depth == 0) return at;
    }
}

// The element that begins at `at`, behind white space; no value when the container ends there.
static struct hm_json_text element_at(struct hm_json_text container, const char *at, struct hm_json_text *key)
{
    at = skip_space(at, container.end);
    struct hm_json_text name = {0}, none = {0};
    if (*at == ']' || *at == '}') {
        at = NULL;
    } else if (*container.at == '{') {
        name = (struct hm_json_text){at, string_end(at, container.end)};
        at = skip_space(skip_space(name.end, container.end) + 1, container.end);
    }
    if (key) *key = name;
    return at ? (struct hm_json_text){at, value_end(at, container.end)} : none;
}

static bool is_container(struct hm_json_text value)
{
    return value.at && (*value.at == '{' || *value.at == '[');
}

struct hm_json_text hm_json_text_first(struct hm_json_text container, struct hm_json_text *key)
{
    if (key) *key = (struct hm_json_text){0};
    if (!is_container(container)) return (struct hm_json_text){0};
    return element_at(container, container.at + 1, key);
}

struct hm_json_text hm_json_text_next(struct hm_json_text container, struct hm_json_text element,
                                      struct hm_json_text *key)
{
    if (key) *key = (struct hm_json_text){0};
    if (!is_container(container) || !element.at) return (struct hm_json_text){0};
    const char *at = skip_space(element.end, container.end);
    return element_at(container, *at == ',' ? at + 1 : at, key);
}

struct hm_json_text hm_json_text_find(struct hm_json_text object, const char *key)
{
    struct hm_json_text name, value = {0};
    if (hm_json_text_kind(object) != HM_JSON_OBJECT) return value;
    for (value = hm_json_text_first(object, &name); value.at; value = hm_json_text_next(object, value, &name))
        if (hm_json_text_equals(name, key)) break;
    return value;
}

void hm_json_text_find_all(struct hm_json_text object, const char *const *keys, size_t count, struct hm_json_text *out)
{
    struct hm_json_text name;
    for (size_t i = 0; i < count; i++) out[i] = (struct hm_json_text){0};
    if (hm_json_text_kind(object) != HM_JSON_OBJECT) return;
    for (struct hm_json_text v = hm_json_text_first(object, &name); v.at; v = hm_json_text_next(object, v, &name))
        for (size_t i = 0; i < count; i++)
            if (!out[i].at && hm_json_text_equals(name, keys[i])) {
                out[i] = v;
                break;
            }
}

size_t hm_json_text_count(struct hm_json_text container)
{
    size_t count = 0;
    for (struct hm_json_text e = hm_json_text_first(container, NULL); e.at; e = hm_json_text_next(container, e, NULL))
        count++;
    return count;
}

// ---- Strings and numbers ----

static unsigned four_digits(const char *at)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) value = value << 4 | (unsigned)hex_digit(at[i]);
    return value;
}

static size_t put_utf8(unsigned point, char out[4])
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; point >>= 6) out[i] = (char)(0x80 | (point & 0x3f));
    out[0] = (char)((n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0) | point);
    return n;
}

// The escape at `at`, a backslash: its bytes into out, *size of them; returns what is behind it.
static const char *take_escape(const char *at, const char *end, char out[4], size_t *size)
{
    static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    *size = 1;
    if (at[1] != 'u') {
        out[0] = bytes[strchr(letters, at[1]) - letters];
        return at + 2;
    }
    unsigned point = four_digits(at + 2);
    at += 6;
    if (point >= 0xd800 && point < 0xe000) {
        unsigned low = end - at >= 6 && at[0] == '\\' && at[1] == 'u' ? four_digits(at + 2) : 0;
        bool pair = point < 0xdc00 && low >= 0xdc00 && low < 0xe000;
        point = pair ? 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
        if (pair) at += 6;
    }
    *size = put_utf8(point, out);
    return at;
}

// The character at `at`, which is not the closing quote.
static const char *take_character(const char *at, const char *end, char out[4], size_t *size)
{
    if (*at == '\\') return take_escape(at, end, out, size);
    *size = utf8_length(at, end);
    memcpy(out, at, *size);
    return at + *size;
}

size_t hm_json_text_string(struct hm_json_text string, char *out, size_t size)
{
    size_t all = 0, n;
    bool fits = true;
    char bytes[4];
    if (hm_json_text_kind(string) != HM_JSON_STRING) return 0;
    for (const char *at = string.at + 1, *end = string.end - 1; at < end; all += n) {
        at = take_character(at, end, bytes, &n);
        fits = fits && n <= size - all;
        if (fits) memcpy(out + all, bytes, n);
    }
    return all;
}

bool hm_json_text_equals(struct hm_json_text string, const char *text)
{
    size_t size = strlen(text), done = 0, n;
    char bytes[4];
    if (hm_json_text_kind(string) != HM_JSON_STRING) return false;
    for (const char *at = string.at + 1, *end = string.end - 1; at < end; done += n) {
        at = take_character(at, end, bytes, &n);
        if (n > size - done || memcmp(text + done, bytes, n) != 0) return false;
    }
    return done == size;
}

bool hm_json_text_integer(struct hm_json_text number, int64_t *out)
{
    if (hm_json_text_kind(number) != HM_JSON_NUMBER) return false;
    const int64_t most = (int64_t)1 << 53;
    const char *at = number.at;
    bool negative = *at == '-';
    int64_t value = 0;
    for (at += negative; at < number.end; at++) {
        if (!is_digit(*at)) return false;
        value = 10 * value + (*at - '0');
        if (value > most) return false;
    }
    *out = negative ? -value : value;
    return true;
}
