// Oniguruma patterns for PCRE2: see pretokenize_regex.h. The translation copies what is known to agree, rewrites what
// differs (\s: PCRE2 adds U+180E; \w, \v, \u), and refuses the rest by name, so that no pattern is silently misread.
#include "decode/pretokenize_regex.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// White_Space and its complement, as the inside of a bracket expression. Ends with a range: a hyphen after it is then
// a hyphen.
#define SPACES "\\x09-\\x0d\\x20\\x85\\xa0\\x{1680}\\x{202f}\\x{205f}\\x{3000}\\x{2028}\\x{2029}\\x{2000}-\\x{200a}"
#define NOT_SPACES                                                                                                     \
    "\\x00-\\x08\\x0e-\\x1f\\x21-\\x84\\x86-\\x9f\\xa1-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}"                \
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"

// Letters and numbers of Unicode 15 and 16. A newer PCRE2 has them already.
#define LETTERS                                                                                                        \
    "\\p{L}\\x{1c89}\\x{1c8a}\\x{a7cb}-\\x{a7cd}\\x{a7da}-\\x{a7dc}\\x{105c0}-\\x{105f3}\\x{10d4a}-\\x{10d65}"         \
    "\\x{10d6f}-\\x{10d85}\\x{10ec2}-\\x{10ec4}\\x{1123f}\\x{11240}\\x{11380}-\\x{11389}\\x{1138b}\\x{1138e}"          \
    "\\x{11390}-\\x{113b5}\\x{113b7}\\x{113d1}\\x{113d3}\\x{11bc0}-\\x{11be0}\\x{11f02}\\x{11f04}-\\x{11f10}"          \
    "\\x{11f12}-\\x{11f33}\\x{1342f}\\x{13441}-\\x{13446}\\x{13460}-\\x{143fa}\\x{16100}-\\x{1611d}"                   \
    "\\x{16d40}-\\x{16d6c}\\x{18cff}\\x{1b132}\\x{1b155}\\x{1df25}-\\x{1df2a}\\x{1e030}-\\x{1e06d}"                    \
    "\\x{1e4d0}-\\x{1e4eb}\\x{1e5d0}-\\x{1e5ed}\\x{1e5f0}\\x{2b739}\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}"
#define NUMBERS                                                                                                        \
    "\\p{N}\\x{10d40}-\\x{10d49}\\x{116d0}-\\x{116e3}\\x{11bf0}-\\x{11bf9}\\x{11f50}-\\x{11f59}"                       \
    "\\x{16130}-\\x{16139}\\x{16d70}-\\x{16d79}\\x{1ccf0}-\\x{1ccf9}\\x{1d2c0}-\\x{1d2d3}\\x{1e4f0}-\\x{1e4f9}"        \
    "\\x{1e5f1}-\\x{1e5fa}"

struct translation {
    const char *where, *pattern;
    size_t at;     // the next character to read
    bool in_class; // between [ and ]
    struct hm_bytes out;
    struct hm_error *err;
};

static hm_status refuse(struct translation *t, const char *what)
{
    return hm_fail(t->err, HM_UNSUPPORTED, "%s: pattern %s: character %zu: %s is not supported", t->where,
                   hm_text_quote(t->pattern).text, t->at, what);
}

static hm_status put(struct translation *t, const char *text)
{
    return hm_bytes_add(&t->out, text, strlen(text)) ? HM_OK
                                                     : hm_fail(t->err, HM_MEMORY, "%s: out of memory", t->where);
}

static hm_status copy(struct translation *t, size_t size)
{
    if (!hm_bytes_add(&t->out, t->pattern + t->at, size))
        return hm_fail(t->err, HM_MEMORY, "%s: out of memory", t->where);
    t->at += size;
    return HM_OK;
}

// A set given as the inside of brackets, put into the brackets we are in, or into new ones.
static hm_status put_set(struct translation *t, const char *open, const char *inside)
{
    if (t->in_class && t->out.data[t->out.count - 1] == '-') return refuse(t, "a set after a hyphen");
    hm_status rc = t->in_class ? HM_OK : put(t, open);
    if (!rc) rc = put(t, inside);
    if (!rc && !t->in_class) rc = put(t, "]");
    return rc;
}

// General categories; any other name must be a script, where \p{Han} would mean script extensions to PCRE2.
static hm_status translate_property(struct translation *t, bool negated)
{
    static const char *const categories[] = {"C",  "Cc", "Cf", "Cn", "Co", "Cs", "L",  "Ll", "Lm", "Lo",
                                             "Lt", "Lu", "M",  "Mc", "Me", "Mn", "N",  "Nd", "Nl", "No",
                                             "P",  "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S",  "Sc",
                                             "Sk", "Sm", "So", "Z",  "Zl", "Zp", "Zs"};
    const char *name = t->pattern + t->at + 2;
    if (*name != '{') return refuse(t, "a property without braces");
    name++;
    if (*name == '^') {
        negated = !negated;
        name++;
    }
    size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_");
    if (length == 0 || length > 40 || name[length] != '}') return refuse(t, "this property");
    bool is_letter = length == 1 && *name == 'L', is_number = length == 1 && *name == 'N';
    if ((is_letter || is_number) && negated && t->in_class) return refuse(t, "\\P{L} or \\P{N} inside brackets");
    hm_status rc;
    if (is_letter || is_number) {
        rc = put_set(t, negated ? "[^" : "[", is_letter ? LETTERS : NUMBERS);
    } else {
        bool is_category = false;
        for (size_t i = 0; i < sizeof categories / sizeof categories[0]; i++)
            is_category |= strlen(categories[i]) == length && strncmp(categories[i], name, length) == 0;
        char property[64];
        snprintf(property, sizeof property, "\\%c{%s%.*s}", negated ? 'P' : 'p', is_category ? "" : "sc:", (int)length,
                 name);
        rc = put(t, property);
    }
    t->at = (size_t)(name + length + 1 - t->pattern);
    return rc;
}

// \xHH (ASCII only: above that it would be a byte to one and a character to the other), \x{H..}, \uHHHH.
static hm_status translate_hex(struct translation *t)
{
    const char *digits = t->pattern + t->at + 2;
    bool braces = t->pattern[t->at + 1] == 'x' && *digits == '{';
    size_t least = t->pattern[t->at + 1] == 'u' ? 4 : braces ? 1 : 2, most = braces ? 6 : least, length = 0;
    if (braces) digits++;
    while (length < most && isxdigit((unsigned char)digits[length])) length++;
    if (length < least || (braces && digits[length] != '}')) return refuse(t, "this hexadecimal escape");
    char number[8] = {0}, escape[32];
    memcpy(number, digits, length);
    unsigned long point = strtoul(number, NULL, 16);
    if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000) || (least == 2 && point > 0x7f))
        return refuse(t, "this code point");
    snprintf(escape, sizeof escape, "\\x{%lx}", point);
    t->at = (size_t)(digits + length + (braces ? 1 : 0) - t->pattern);
    return put(t, escape);
}

static hm_status translate_escape(struct translation *t)
{
    char c = t->pattern[t->at + 1];
    if (c == 'p' || c == 'P') return translate_property(t, c == 'P');
    if (c == 'x' || c == 'u') return translate_hex(t);
    if (ispunct((unsigned char)c) || c == ' ' || strchr("rnftae", c))
        return c ? copy(t, 2) : refuse(t, "a final backslash");
    hm_status rc;
    switch (c) {
    case 's': rc = put_set(t, "[", SPACES); break;
    case 'S': rc = put_set(t, "[", NOT_SPACES); break;
    case 'd': rc = put(t, "\\p{Nd}"); break;
    case 'D': rc = put(t, "\\P{Nd}"); break;
    case 'v': rc = put(t, "\\x0b"); break;
    case 'w': rc = put_set(t, "[", "\\p{L}\\p{M}\\p{Nd}\\p{Pc}"); break;
    default: return refuse(t, "this escape");
    }
    t->at += 2;
    return rc;
}

static hm_status translate_group(struct translation *t)
{
    static const char *const openings[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:"};
    const char *here = t->pattern + t->at;
    if (here[1] == '*') return refuse(t, "a verb");
    if (here[1] != '?') return copy(t, 1);
    for (size_t i = 0; i < sizeof openings / sizeof openings[0]; i++)
        if (strncmp(here, openings[i], strlen(openings[i])) == 0) return copy(t, strlen(openings[i]));
    return refuse(t, "this kind of group");
}

// {n}, {n,}, {n,m}. A suffix (+ or ?) would mean different things.
static hm_status translate_interval(struct translation *t)
{
    const char *here = t->pattern + t->at;
    size_t length = 1, digits = strspn(here + 1, "0123456789");
    length += digits;
    if (digits == 0 || digits > 4) return refuse(t, "this brace");
    if (here[length] == ',') {
        size_t more = strspn(here + length + 1, "0123456789");
        if (more > 4) return refuse(t, "this brace");
        length += 1 + more;
    }
    if (here[length] != '}') return refuse(t, "this brace");
    if (here[length + 1] == '+' || here[length + 1] == '?') return refuse(t, "a suffix after a counted repetition");
    return copy(t, length + 1);
}

static hm_status translate_next(struct translation *t)
{
    const char *here = t->pattern + t->at;
    if (*here == '\\') return translate_escape(t);
    if (t->in_class) {
        if (*here == '[') return refuse(t, "a bracket inside brackets");
        if (here[0] == '&' && here[1] == '&') return refuse(t, "an intersection of classes");
        if (*here == ']') t->in_class = false;
        return copy(t, 1);
    }
    switch (*here) {
    case '[':
        t->in_class = true;
        if (here[1] == ']' || (here[1] == '^' && here[2] == ']')) return refuse(t, "an empty class");
        return copy(t, here[1] == '^' ? 2 : 1);
    case '(': return translate_group(t);
    case '{': return translate_interval(t);
    case '^':
    case '$': return refuse(t, "an anchor");
    default: return copy(t, 1);
    }
}

static hm_status compile(const char *where, const char *shown, const struct hm_bytes *pattern, pcre2_code **out,
                         struct hm_error *err)
{
    int code;
    PCRE2_SIZE offset;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context) return hm_fail(err, HM_MEMORY, "%s: out of memory", where);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, 50);
    *out = pcre2_compile(pattern->data, pattern->count, PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &offset,
                         context);
    pcre2_compile_context_free(context);
    if (*out) return HM_OK;
    char reason[160];
    pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof reason);
    return hm_fail(err, HM_FORMAT, "%s: pattern %s: %s", where, hm_text_quote(shown).text, reason);
}

hm_status hm_regex_compile(const char *where, const char *pattern, pcre2_code **out, struct hm_error *err)
{
    enum { PATTERN_MOST = 8192 };
    *out = NULL;
    if (strlen(pattern) > PATTERN_MOST)
        return hm_fail(err, HM_RANGE, "%s: a pattern of %zu bytes: expected at most %d", where, strlen(pattern),
                       PATTERN_MOST);
    struct translation t = {.where = where, .pattern = pattern, .err = err};
    hm_status rc = put(&t, "");
    while (!rc && pattern[t.at]) rc = translate_next(&t);
    if (!rc) rc = compile(where, pattern, &t.out, out, err);
    free(t.out.data);
    return rc;
}

hm_status hm_regex_literal(const char *where, const char *text, pcre2_code **out, struct hm_error *err)
{
    struct hm_bytes pattern = {0};
    bool ok = hm_bytes_add(&pattern, "", 0);
    for (const char *c = text; ok && *c; c++) {
        bool plain = isalnum((unsigned char)*c) || (unsigned char)*c >= 0x80;
        ok = (plain || hm_bytes_add(&pattern, "\\", 1)) && hm_bytes_add(&pattern, c, 1);
    }
    *out = NULL;
    hm_status rc = ok ? compile(where, text, &pattern, out, err) : hm_fail(err, HM_MEMORY, "%s: out of memory", where);
    free(pattern.data);
    return rc;
}
