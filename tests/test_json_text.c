// JSON walked as text: documents made at random are found again, faults have their places, and on damaged ones the
// check agrees with a parser that is written from the grammar.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json_text.h"
#include "tests/json_grammar.h"
#include "tests/seed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A copy without anything behind it, so that a sanitizer sees a read beyond the end.
static char *exact_copy(const char *text, size_t size)
{
    char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, text, size);
    return copy;
}

static struct hm_json_text good(const char *text)
{
    struct hm_json_text out;
    struct hm_error err;
    size_t used;
    if (hm_json_text_check(text, strlen(text), &out, &used, &err)) fail_msg("%s: %s", text, err.message);
    assert_int_equal(used, strlen(text));
    return out;
}

// ---- Faults ----

static void faults_have_their_places(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "byte 0: expected a value, found the end"},
        {"  ", "byte 2: expected a value, found the end"},
        {"{", "byte 1: expected a key, found the end"},
        {"{,}", "byte 1: expected a key, found ','"},
        {"{\"a\"}", "byte 4: expected ':', found '}'"},
        {"{\"a\":}", "byte 5: expected a value, found '}'"},
        {"{\"a\":1,}", "byte 7: expected a key, found '}'"},
        {"{\"a\":1]", "byte 6: expected ',' or '}', found ']'"},
        {"[1}", "byte 2: expected ',' or ']', found '}'"},
        {"[1 2]", "byte 3: expected ',' or ']', found '2'"},
        {"[1,]", "byte 3: expected a value, found ']'"},
        {"[", "byte 1: expected a value, found the end"},
        {"[[],", "byte 4: expected a value, found the end"},
        {"\"abc", "byte 4: expected '\"', found the end"},
        {"\"abcdefghijkl", "byte 13: expected '\"', found the end"},
        {"\"\\", "byte 2: expected an escape, found the end"},
        {"\"\\x\"", "byte 2: expected an escape, found 'x'"},
        {"\"\\u12g4\"", "byte 5: expected four hexadecimal digits, found 'g'"},
        {"\"\\u12", "byte 5: expected four hexadecimal digits, found the end"},
        {"\"a\tb\"", "byte 2: expected a string without control characters, found byte 0x09"},
        {"\"\xc0\x80\"", "byte 1: expected UTF-8, found byte 0xc0"},
        {"\"\xed\xa0\x80\"", "byte 1: expected UTF-8, found byte 0xed"},
        {"\"\xf4\x90\x80\x80\"", "byte 1: expected UTF-8, found byte 0xf4"},
        {"\"\xe2\x82\"", "byte 1: expected UTF-8, found byte 0xe2"},
        {"-", "byte 1: expected a digit, found the end"},
        {"-x", "byte 1: expected a digit, found 'x'"},
        {"1.", "byte 2: expected a digit, found the end"},
        {"1.e3", "byte 2: expected a digit, found 'e'"},
        {"1e", "byte 2: expected a digit, found the end"},
        {"1e+", "byte 3: expected a digit, found the end"},
        {".5", "byte 0: expected a value, found '.'"},
        {"+1", "byte 0: expected a value, found '+'"},
        {"nul", "byte 0: expected a value, found 'n'"},
        {"-Inf", "byte 1: expected a digit, found 'I'"},
        {"'a'", "byte 0: expected a value, found '''"},
        {"\x01", "byte 0: expected a value, found byte 0x01"},
        {"[01]", "byte 2: expected ',' or ']', found '1'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hm_json_text out = {"", ""};
        struct hm_error err = {.message = ""};
        size_t size = strlen(bad[i].text), used, place;
        char *text = exact_copy(bad[i].text, size);
        assert_int_equal(hm_json_text_check(text, size, &out, &used, &err), HM_FORMAT);
        assert_string_equal(err.message, bad[i].message);
        assert_int_equal(sscanf(err.message, "byte %zu", &place), 1);
        assert_int_equal(used, place);
        assert_null(out.at);
        assert_int_equal(hm_json_text_check(text, size, &out, &used, NULL), HM_FORMAT);
        free(text);
    }
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    for (int depth = 60; depth < 70; depth++) {
        char text[256] = "";
        struct hm_json_text out;
        size_t used;
        struct hm_error err;
        for (int i = 0; i < depth; i++) strcat(text, i % 2 ? "[" : "{\"\":");
        strcat(text, "0");
        for (int i = depth; i-- > 0;) strcat(text, i % 2 ? "]" : "}");
        assert_int_equal(hm_json_text_check(text, strlen(text), &out, &used, &err), depth > 64 ? HM_FORMAT : HM_OK);
        if (depth > 64) assert_non_null(strstr(err.message, ": expected at most 64 nested values"));
    }
}

static void documents_may_follow_each_other(void **state)
{
    (void)state;
    static const char text[] = " {\"a\":1}\n[2]3 \"4\"null\r\n";
    static const char *const kinds[] = {"an object", "an array", "a number", "a string", "null"};
    size_t at = 0, used;
    for (size_t i = 0; i < 5; i++) {
        struct hm_json_text out;
        assert_int_equal(hm_json_text_check(text + at, sizeof text - 1 - at, &out, &used, NULL), HM_OK);
        assert_string_equal(hm_json_text_kind_name(out), kinds[i]);
        at += used;
    }
    assert_int_equal(at, sizeof text - 1);
}

// ---- Values ----

static void members_are_found(void **state)
{
    (void)state;
    struct hm_json_text
        o = good(" { \"a\" : [ 1 , {\"b\":\"]}\\\"\"} ] , \"\\u0062\" : null, \"b\": 2, \"\":true, \"c\\\\\\\"\":NaN}"),
        key;
    static const char *const keys[] = {"c\\\"", "b", "missing", "a", "a"};
    struct hm_json_text found[5];
    assert_int_equal(hm_json_text_count(o), 5);
    assert_int_equal(hm_json_text_kind(hm_json_text_find(o, "a")), HM_JSON_ARRAY);
    assert_int_equal(hm_json_text_kind(hm_json_text_find(o, "b")), HM_JSON_NULL); // the first of two
    assert_int_equal(hm_json_text_kind(hm_json_text_find(o, "")), HM_JSON_TRUE);
    assert_int_equal(hm_json_text_kind(hm_json_text_find(o, "missing")), HM_JSON_NONE);
    assert_string_equal(hm_json_text_kind_name(hm_json_text_find(o, "missing")), "nothing");
    hm_json_text_find_all(o, keys, 5, found);
    assert_int_equal(hm_json_text_kind(found[0]), HM_JSON_NUMBER);
    assert_int_equal(hm_json_text_kind(found[1]), HM_JSON_NULL);
    assert_null(found[2].at);
    assert_int_equal(hm_json_text_kind(found[3]), HM_JSON_ARRAY);
    assert_null(found[4].at); // each member is of one key
    struct hm_json_text inner = hm_json_text_next(found[3], hm_json_text_first(found[3], NULL), &key);
    assert_null(key.at);
    assert_true(hm_json_text_equals(hm_json_text_find(inner, "b"), "]}\""));
    assert_null(hm_json_text_next(found[3], inner, NULL).at);
    // What is no container has no elements, what is no object no members.
    assert_null(hm_json_text_first(found[0], &key).at);
    assert_null(hm_json_text_find(found[3], "a").at);
    assert_null(hm_json_text_find((struct hm_json_text){0}, "a").at);
    assert_int_equal(hm_json_text_count(found[1]), 0);
    assert_int_equal(hm_json_text_string(found[0], NULL, 0), 0);
    assert_false(hm_json_text_equals(found[0], "NaN"));
    hm_json_text_find_all(found[3], keys, 5, found);
    assert_null(found[0].at);
}

static void integers_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is;
        int64_t value;
    } numbers[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"17", true, 17},
        {"-17", true, -17},
        {"9007199254740992", true, (int64_t)1 << 53},
        {"-9007199254740992", true, -((int64_t)1 << 53)},
        {"9007199254740993", false, 0},
        {"99999999999999999999999999", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"NaN", false, 0},
        {"Infinity", false, 0},
        {"-Infinity", false, 0},
        {"\"1\"", false, 0},
        {"null", false, 0},
        {"[1]", false, 0},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int64_t value = 4711;
        assert_int_equal(hm_json_text_integer(good(numbers[i].text), &value), numbers[i].is);
        assert_int_equal(value, numbers[i].is ? numbers[i].value : 4711);
    }
}

// ---- Strings made at random ----

static size_t put_point(char *out, unsigned point)
{
    if (point < 0x80) return (size_t)sprintf(out, "%c", (int)point);
    if (point < 0x800) return (size_t)sprintf(out, "%c%c", (int)(0xc0 | point >> 6), (int)(0x80 | (point & 63)));
    if (point < 0x10000)
        return (size_t)sprintf(out, "%c%c%c", (int)(0xe0 | point >> 12), (int)(0x80 | (point >> 6 & 63)),
                               (int)(0x80 | (point & 63)));
    return (size_t)sprintf(out, "%c%c%c%c", (int)(0xf0 | point >> 18), (int)(0x80 | (point >> 12 & 63)),
                           (int)(0x80 | (point >> 6 & 63)), (int)(0x80 | (point & 63)));
}

// A character, written one way or another, and its bytes.
static size_t random_character(uint64_t *seed, char *written, char bytes[8], size_t *size)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    unsigned point = 0;
    switch (test_below(seed, 8)) {
    case 0: {
        size_t i = test_below(seed, 8);
        bytes[0] = meant[i];
        *size = 1;
        return (size_t)sprintf(written, "\\%c", letters[i]);
    }
    case 1: // a lone surrogate
        *size = put_point(bytes, 0xfffd);
        return (size_t)sprintf(written, test_below(seed, 2) ? "\\ud9ab" : "\\uDCba");
    case 2:
        point = 0x10000 + (unsigned)test_below(seed, 0x100000);
        *size = put_point(bytes, point);
        if (test_below(seed, 2)) return put_point(written, point);
        return (size_t)sprintf(written, "\\u%04x\\u%04X", 0xd800 + ((point - 0x10000) >> 10), 0xdc00 + (point & 0x3ff));
    case 3: point = 0x80 + (unsigned)test_below(seed, 0x780); break;
    case 4:
        point = test_below(seed, 2) ? 0x800 + (unsigned)test_below(seed, 0xd000)
                                    : 0xe000 + (unsigned)test_below(seed, 0x2000);
        break;
    default: point = (unsigned)test_below(seed, 0x80);
    }
    *size = put_point(bytes, point);
    if (point < 0x20 || point == '"' || point == '\\' || test_below(seed, 4) == 0)
        return (size_t)sprintf(written, "\\u%04x", point);
    return put_point(written, point);
}

static void strings_are_decoded(void **state)
{
    (void)state;
    uint64_t seed = test_seed("strings");
    for (size_t round = 0, rounds = test_count(500, 5000, 200000); round < rounds; round++) {
        char text[600] = "\"", bytes[300], out[320];
        size_t at = 1, all = 0, used, count = test_below(&seed, 24);
        size_t border[32] = {0}; // bytes before each character
        for (size_t i = 0; i < count; i++) {
            size_t n;
            // A high surrogate must not meet a low one by chance: they would be a pair.
            if (at > 6 && memcmp(text + at - 6, "\\ud9ab", 6) == 0) text[at++] = '.', bytes[all++] = '.';
            border[i] = all;
            at += random_character(&seed, text + at, bytes + all, &n);
            all += n;
        }
        text[at++] = '"';
        struct hm_json_text string;
        char *copy = exact_copy(text, at);
        assert_int_equal(hm_json_text_check(copy, at, &string, &used, NULL), HM_OK);
        assert_int_equal(hm_json_text_string(string, out, sizeof out), all);
        assert_memory_equal(out, bytes, all);
        size_t room = test_below(&seed, all + 2), kept = 0;
        memset(out, '#', sizeof out);
        assert_int_equal(hm_json_text_string(string, out, room), all);
        while (kept < room && kept < all && out[kept] == bytes[kept]) kept++;
        bool on_border = kept == all;
        for (size_t i = 0; i < count; i++) on_border = on_border || border[i] == kept;
        if (kept < room && kept < all && out[kept] == '#') assert_true(on_border);
        assert_int_equal(out[room], '#');
        if (!memchr(bytes, 0, all)) {
            bytes[all] = '\0';
            assert_true(hm_json_text_equals(string, bytes));
            bytes[all] = 'x', bytes[all + 1] = '\0';
            assert_false(hm_json_text_equals(string, bytes));
            if (all > 0) {
                bytes[all - 1] = '\0';
                assert_false(hm_json_text_equals(string, bytes));
            }
        }
        free(copy);
    }
}

// ---- Documents made at random ----

// Writes a value and remembers it as a line of what a walk must find: '{' key value ... '}', '[', '"', and the digits.
struct made {
    char text[20000], walk[20000];
    size_t size, walked;
    uint64_t *seed;
};

static void space(struct made *m)
{
    while (test_below(m->seed, 4) == 0) m->text[m->size++] = " \n\r\t"[test_below(m->seed, 4)];
}

static void both(struct made *m, const char *text)
{
    m->size += (size_t)sprintf(m->text + m->size, "%s", text);
    m->walked += (size_t)sprintf(m->walk + m->walked, "%s", text);
}

static void make_string(struct made *m)
{
    char text[32] = "\"";
    for (size_t i = test_below(m->seed, 12); i-- > 0;) {
        static const char *const pieces[] = {"a", "{", "]", ",", "\\\"", "\\\\", "\xc3\xa9", ":", " ", "}"};
        if (strlen(text) < 28) strcat(text, pieces[test_below(m->seed, 10)]);
    }
    strcat(text, "\"");
    both(m, text);
}

static void make_value(struct made *m, int depth)
{
    static const char *const scalars[] = {"null",  "true", "false",     "0",        "-0.25",
                                          "12e-3", "NaN",  "-Infinity", "Infinity", "1.5E+300"};
    size_t kind = test_below(m->seed, depth > 5 || m->size > 10000 ? 2 : 4);
    if (kind == 0) both(m, scalars[test_below(m->seed, 10)]);
    if (kind == 1) make_string(m);
    if (kind < 2) return;
    both(m, kind == 2 ? "{" : "[");
    space(m);
    for (size_t i = 0, n = test_below(m->seed, 5); i < n; i++) {
        if (i > 0) m->text[m->size++] = ',', space(m);
        if (kind == 2) {
            make_string(m);
            space(m), m->text[m->size++] = ':', space(m);
        }
        make_value(m, depth + 1);
        space(m);
    }
    both(m, kind == 2 ? "}" : "]");
}

static size_t walk(struct hm_json_text value, char *out)
{
    enum hm_json_text_kind kind = hm_json_text_kind(value);
    size_t size = 0;
    struct hm_json_text key;
    if (kind != HM_JSON_OBJECT && kind != HM_JSON_ARRAY)
        return (size_t)sprintf(out, "%.*s", (int)(value.end - value.at), value.at);
    out[size++] = kind == HM_JSON_OBJECT ? '{' : '[';
    for (struct hm_json_text v = hm_json_text_first(value, &key); v.at; v = hm_json_text_next(value, v, &key)) {
        assert_int_equal(key.at != NULL, kind == HM_JSON_OBJECT);
        if (key.at) size += walk(key, out + size);
        size += walk(v, out + size);
    }
    out[size++] = kind == HM_JSON_OBJECT ? '}' : ']';
    out[size] = '\0';
    return size;
}

// ---- And damaged ----

static void documents_are_walked(void **state)
{
    (void)state;
    uint64_t seed = test_seed("documents");
    static struct made m;
    static char found[40000];
    static const char letters[] = "[]{},:\"0123456789.-eEntfN I\\u\n\x01\xc3\xa9\xff";
    size_t accepted = 0, rounds = test_count(1000, 20000, 500000);
    for (size_t round = 0; round < rounds; round++) {
        struct hm_json_text value;
        size_t used;
        m.size = m.walked = 0;
        m.seed = &seed;
        space(&m);
        make_value(&m, 0);
        space(&m);
        char *copy = exact_copy(m.text, m.size);
        assert_int_equal(hm_json_text_check(copy, m.size, &value, &used, NULL), HM_OK);
        assert_int_equal(used, m.size);
        walk(value, found);
        assert_string_equal(found, m.walk);
        // And damaged.
        for (size_t changes = 1 + test_below(&seed, 2); changes-- > 0;)
            copy[test_below(&seed, m.size)] = letters[test_below(&seed, sizeof letters - 1)];
        size_t size = test_below(&seed, 4) ? m.size : test_below(&seed, m.size + 1);
        char *damaged = exact_copy(copy, size);
        const char *end = grammar_value(damaged, damaged + size, 0);
        hm_status rc = hm_json_text_check(damaged, size, &value, &used, NULL);
        assert_int_equal(rc == HM_OK, end != NULL);
        if (!rc) {
            assert_ptr_equal(value.end, end);
            walk(value, found);
            accepted++;
        }
        free(damaged);
        free(copy);
    }
    printf("%zu of %zu damaged documents are still JSON\n", accepted, rounds);
    assert_true(accepted > rounds / 20 && accepted < rounds * 19 / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_have_their_places),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(documents_may_follow_each_other),
        cmocka_unit_test(members_are_found),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(strings_are_decoded),
        cmocka_unit_test(documents_are_walked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
