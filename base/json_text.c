// JSON as text, walked in place: see json_text.h.
//
// The check is one pass with a bit for each open container. Everything else trusts it: a value's end is found by counting
// brackets outside strings.
#include "base/json_text.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = 64 };

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && is_space(*at)) at++;
    return at;
}

// ---- The check ----

struct check {
    const char *text, *at, *end;
    struct hm_error *err;
};

static hm_status expected(struct check *c, const char *what)
{
    char found[32] = "the end";
    if (c->at < c->end) {
        unsigned char byte = (unsigned char)*c->at;
        if (byte > 0x20 && byte < 0x7f) snprintf(found, sizeof found, "'%c'", byte);
        else snprintf(found, sizeof found, "byte 0x%02x", byte);
    }
    return hm_fail(c->err, HM_FORMAT, "byte %zu: expected %s, found %s", (size_t)(c->at - c->text), what, found);
}

// Bytes of the UTF-8 character at `at`, 0 when there is none: overlong forms, surrogates and what lies beyond U+10FFFF are
// refused (Unicode 15, table 3-7).
static size_t utf8_length(const char *at, const char *end)
{
    const unsigned char *s = (const unsigned char *)at;
    size_t left = (size_t)(end - at);
    if (s[0] < 0x80) return 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || left < n) return 0;
    unsigned char least = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80, most = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < least || s[1] > most) return 0;
    for (size_t i = 2; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    return n;
}

static int hex_digit(char c)
{
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static hm_status check_escape(struct check *c)
{
    if (++c->at == c->end || !memchr("\"\\/bfnrtu", *c->at, 9)) return expected(c, "an escape");
    if (*c->at++ != 'u') return HM_OK;
    for (int i = 0; i < 4; i++, c->at++)
        if (c->at == c->end || hex_digit(*c->at) < 0) return expected(c, "four hexadecimal digits");
    return HM_OK;
}

// Skips bytes of a string that need no look, eight at a time: ASCII from 0x20 on but for '"' and '\'. A borrow may stop
// it too early, never too late.
static const char *skip_plain(const char *at, const char *end)
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

static hm_status check_string(struct check *c)
{
    for (c->at++;;) {
        c->at = skip_plain(c->at, c->end);
        if (c->at == c->end) return expected(c, "'\"'");
        if (*c->at == '"') break;
        if (*c->at == '\\') {
            hm_status rc = check_escape(c);
            if (rc) return rc;
            continue;
        }
        if ((unsigned char)*c->at < 0x20) return expected(c, "a string without control characters");
        size_t n = utf8_length(c->at, c->end);
        if (n == 0) return expected(c, "UTF-8");
        c->at += n;
    }
    c->at++;
    return HM_OK;
}

static bool take_word(struct check *c, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) return false;
    c->at += n;
    return true;
}

static hm_status check_digits(struct check *c)
{
    if (c->at == c->end || !is_digit(*c->at)) return expected(c, "a digit");
    while (c->at < c->end && is_digit(*c->at)) c->at++;
    return HM_OK;
}

static hm_status check_number(struct check *c)
{
    if (*c->at == '-') {
        c->at++;
        if (take_word(c, "Infinity")) return HM_OK;
    }
    hm_status rc = HM_OK;
    if (c->at < c->end && *c->at == '0') c->at++; // and no digit after it
    else rc = check_digits(c);
    if (!rc && c->at < c->end && *c->at == '.') {
        c->at++;
        rc = check_digits(c);
    }
    if (!rc && c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        if (c->at < c->end && (*c->at == '+' || *c->at == '-')) c->at++;
        rc = check_digits(c);
    }
    return rc;
}

// A value that is no container.
static hm_status check_scalar(struct check *c)
{
    if (c->at == c->end) return expected(c, "a value");
    if (*c->at == '"') return check_string(c);
    if (*c->at == '-' || is_digit(*c->at)) return check_number(c);
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (take_word(c, words[i])) return HM_OK;
    return expected(c, "a value");
}

// A member's key and its colon.
static hm_status check_key(struct check *c)
{
    c->at = skip_space(c->at, c->end);
    if (c->at == c->end || *c->at != '"') return expected(c, "a key");
    hm_status rc = check_string(c);
    if (rc) return rc;
    c->at = skip_space(c->at, c->end);
    if (c->at == c->end || *c->at != ':') return expected(c, "':'");
    c->at++;
    return HM_OK;
}

// What is open around the place that is looked at: bit i of `objects` tells whether container i is an object.
struct nesting {
    uint64_t objects;
    int depth;
};

// At the first byte of a value: opens containers until one has a scalar as its first value or is empty.
static hm_status check_opening(struct check *c, struct nesting *open)
{
    for (;;) {
        c->at = skip_space(c->at, c->end);
        if (c->at == c->end || (*c->at != '{' && *c->at != '[')) return check_scalar(c);
        bool object = *c->at == '{';
        if (open->depth == DEEPEST) return hm_fail(c->err, HM_FORMAT, "byte %zu: expected at most %d nested values", (size_t)(c->at - c->text), DEEPEST);
        c->at = skip_space(c->at + 1, c->end);
        if (c->at < c->end && *c->at == (object ? '}' : ']')) {
            c->at++;
            return HM_OK;
        }
        uint64_t bit = (uint64_t)1 << open->depth++;
        open->objects = object ? open->objects | bit : open->objects & ~bit;
        hm_status rc = object ? check_key(c) : HM_OK;
        if (rc) return rc;
    }
}

// Behind a value: closes the containers that end here. What follows is a comma, which is taken, or nothing is open.
static hm_status check_closing(struct check *c, struct nesting *open)
{
    while (open->depth > 0) {
        bool object = open->objects >> (open->depth - 1) & 1;
        c->at = skip_space(c->at, c->end);
        if (c->at == c->end || (*c->at != ',' && *c->at != (object ? '}' : ']'))) return expected(c, object ? "',' or '}'" : "',' or ']'");
        if (*c->at++ == ',') return object ? check_key(c) : HM_OK;
        open->depth--;
    }
    return HM_OK;
}

hm_status hm_json_text_check(const char *text, size_t size, struct hm_json_text *out, size_t *used, struct hm_error *err)
{
    struct check c = {.text = text, .at = text, .end = text + size, .err = err};
    struct nesting open = {0};
    *out = (struct hm_json_text){0};
    const char *start = c.at = skip_space(c.at, c.end);
    hm_status rc;
    do {
        rc = check_opening(&c, &open);
        if (!rc) rc = check_closing(&c, &open);
    } while (!rc && open.depth > 0);
    if (!rc) *out = (struct hm_json_text){start, c.at};
    *used = (size_t)((rc ? c.at : skip_space(c.at, c.end)) - text);
    return rc;
}

// ---- Walking what was checked ----

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
        [HM_JSON_NONE] = "nothing",     [HM_JSON_OBJECT] = "an object", [HM_JSON_ARRAY] = "an array",
        [HM_JSON_STRING] = "a string",  [HM_JSON_NUMBER] = "a number",  [HM_JSON_TRUE] = "a boolean",
        [HM_JSON_FALSE] = "a boolean",  [HM_JSON_NULL] = "null",
    };
    return names[hm_json_text_kind(value)];
}

// Behind the string that begins at `at`.
static const char *string_end(const char *at, const char *end)
{
    for (at++;; at++) {
        at = skip_plain(at, end);
        if (*at == '\\') at++;
        else if (*at == '"') return at + 1;
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
    int depth = 0;
    for (;;) {
        switch (*at) {
        case '"': at = string_end(at, end); continue;
        case '{': case '[': depth++; break;
        case '}': case ']':
            if (--depth == 0) return at + 1;
            break;
        default: break;
        }
        at++;
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

struct hm_json_text hm_json_text_next(struct hm_json_text container, struct hm_json_text element, struct hm_json_text *key)
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
    for (struct hm_json_text e = hm_json_text_first(container, NULL); e.at; e = hm_json_text_next(container, e, NULL)) count++;
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
