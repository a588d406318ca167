// The check of a JSON document: see json_text.h. One pass with a bit for each open container; nothing recurses.
#include "base/json_text.h"

#include "base/json_text_bytes.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = 64 };

struct check {
    const char *text, *at, *end;
    struct hm_error *err;
};

static hm_status expected(struct check *c, const char *what)
{
    char found[32] = "the end";
    if (c->at < c->end) {
        unsigned char byte = (unsigned char)*c->at;
        if (byte > 0x20 && byte < 0x7f)
            snprintf(found, sizeof found, "'%c'", byte);
        else
            snprintf(found, sizeof found, "byte 0x%02x", byte);
    }
    return hm_fail(c->err, HM_FORMAT, "byte %zu: expected %s, found %s", (size_t)(c->at - c->text), what, found);
}

static hm_status check_escape(struct check *c)
{
    if (++c->at == c->end || !memchr("\"\\/bfnrtu", *c->at, 9)) return expected(c, "an escape");
    if (*c->at++ != 'u') return HM_OK;
    for (int i = 0; i < 4; i++, c->at++)
        if (c->at == c->end || hex_digit(*c->at) < 0) return expected(c, "four hexadecimal digits");
    return HM_OK;
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
    if (c->at < c->end && *c->at == '0')
        c->at++; // and no digit after it
    else
        rc = check_digits(c);
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
        if (open->depth == DEEPEST)
            return hm_fail(c->err, HM_FORMAT, "byte %zu: expected at most %d nested values", (size_t)(c->at - c->text),
                           DEEPEST);
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
        if (c->at == c->end || (*c->at != ',' && *c->at != (object ? '}' : ']')))
            return expected(c, object ? "',' or '}'" : "',' or ']'");
        if (*c->at++ == ',') return object ? check_key(c) : HM_OK;
        open->depth--;
    }
    return HM_OK;
}

hm_status hm_json_text_check(const char *text, size_t size, struct hm_json_text *out, size_t *used,
                             struct hm_error *err)
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
