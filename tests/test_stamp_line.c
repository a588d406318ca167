// JSON pieces of a log: numbers against printf and strtod, strings against cJSON and a UTF-8 decoder of our own.
#include "base/json.h"
#include "certify/log_json.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t state = 20261129;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void check_real(double value)
{
    char ours[HM_REAL_TEXT], theirs[64];
    hm_real_text(value, ours);
    snprintf(theirs, sizeof theirs, "%a", value == 0 ? 0.0 : value);
    assert_string_equal(ours, theirs);
    assert_true(strtod(ours, NULL) == value);
}

static void reals_are_those_of_printf(void **unused)
{
    (void)unused;
    const double special[] = {0,
                              -0.0,
                              1,
                              -1,
                              3,
                              0.1,
                              1.0 / 3,
                              0x1p-1074,
                              -0x1p-1074,
                              0x1.8p-1073,
                              0x0.fffffffffffffp-1022,
                              0x1p-1022,
                              0x1.fffffffffffffp+1023,
                              -0x1.fffffffffffffp+1023,
                              INFINITY,
                              -INFINITY,
                              0x1.00000000000fp5};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) check_real(special[i]);
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = next();
        if (i % 3 == 0) bits &= ~0ull << (next() % 52); // short fractions
        if (i % 7 == 0) bits &= ~(0x7FFull << 52);      // subnormal
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isnan(value)) check_real(value);
        float logit = (float)value;
        if (isfinite(logit)) check_real(logit);
    }
}

static void reals_ignore_the_locale(void **unused)
{
    (void)unused;
    const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8", "ru_RU.UTF-8"};
    const char *found = NULL;
    for (size_t i = 0; i < 5 && !found; i++) found = setlocale(LC_ALL, commas[i]);
    char text[HM_REAL_TEXT];
    struct hm_line line = {0};
    hm_real_text(1.5, text);
    hm_line_seconds(&line, 1.25);
    setlocale(LC_ALL, "C");
    if (!found) print_message("no locale with a decimal comma is installed here\n");
    assert_string_equal(text, "0x1.8p+0");
    assert_int_equal(line.size, 8);
    assert_memory_equal(line.text, "1.250000", 8);
    hm_line_free(&line);
}

static void zero_has_no_sign_and_infinities_have_names(void **unused)
{
    (void)unused;
    struct hm_line line = {0};
    hm_line_ival(&line, (struct hm_ival){-INFINITY, INFINITY});
    hm_line_real(&line, -0.0);
    const char expected[] = "[\"-inf\",\"inf\"]\"0x0p+0\"";
    assert_int_equal(line.size, sizeof expected - 1);
    assert_memory_equal(line.text, expected, sizeof expected - 1);
    hm_line_free(&line);
}

static void a_nan_spoils_the_line(void **unused)
{
    (void)unused;
    struct hm_line line = {0};
    struct hm_error err;
    hm_line_format(&line, "{");
    hm_line_real(&line, NAN);
    size_t size = line.size;
    hm_line_format(&line, "more");
    assert_int_equal(line.size, size);
    assert_int_equal(hm_line_check(&line, "step 4", &err), HM_RANGE);
    assert_string_equal(err.message, "step 4: expected real numbers, found one that is not a number");
    hm_line_free(&line);
    assert_int_equal(hm_line_check(&line, "step 4", &err), HM_OK);
}

static void check_string(const char *in, size_t size, const char *expected)
{
    struct hm_line line = {0};
    hm_line_string(&line, in, size);
    assert_int_equal(line.size, strlen(expected));
    assert_memory_equal(line.text, expected, line.size);
    hm_line_free(&line);
}

static void strings_are_escaped(void **unused)
{
    (void)unused;
    check_string("", 0, "\"\"");
    check_string("a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\"");
    check_string("\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"");
    check_string("\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\x7f\"");
    check_string("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9, "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"");
#define BAD "\xEF\xBF\xBD"
    check_string("\xFF"
                 "a",
                 2, "\"" BAD "a\"");
    check_string("\xC3", 1, "\"" BAD "\""); // cut
    check_string("\xE2\x82"
                 "x",
                 3, "\"" BAD BAD "x\"");                            // cut by another character
    check_string("\xED\xA0\x80", 3, "\"" BAD BAD BAD "\"");         // a surrogate
    check_string("\xC0\xAF", 2, "\"" BAD BAD "\"");                 // overlong
    check_string("\xF4\x90\x80\x80", 4, "\"" BAD BAD BAD BAD "\""); // beyond Unicode
}

// Random bytes always give a document that our own reader accepts and reads back with only bad bytes replaced.
static void any_bytes_give_json(void **unused)
{
    (void)unused;
    for (int i = 0; i < 20000; i++) {
        char in[24];
        size_t size = next() % sizeof in;
        struct hm_line line = {0};
        struct hm_error err;
        cJSON *document;
        for (size_t j = 0; j < size; j++) in[j] = (char)(next() % 4 ? 1 + next() % 0x7F : 1 + next() % 0xFF);
        hm_line_string(&line, in, size);
        assert_int_equal(hm_json_parse("line", line.text, line.size, &document, &err), HM_OK);
        size_t out = strlen(document->valuestring);
        assert_true(out >= size);
        for (size_t a = 0, b = 0; a < size; a++) {
            if (document->valuestring[b] == in[a] && memcmp(document->valuestring + b, BAD, 3) != 0) b++;
            else assert_memory_equal(document->valuestring + b, BAD, 3), b += 3;
            if (a + 1 == size) assert_int_equal(b, out);
        }
        cJSON_Delete(document);
        hm_line_free(&line);
    }
}

static void long_pieces_are_not_cut(void **unused)
{
    (void)unused;
    char text[1000];
    struct hm_line line = {0};
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    for (int i = 0; i < 50; i++) hm_line_format(&line, "%s,%d;", text, i);
    size_t size = 0;
    for (int i = 0; i < 50; i++) {
        char number[8];
        size_t n = (size_t)snprintf(number, sizeof number, ",%d;", i);
        assert_memory_equal(line.text + size, text, sizeof text - 1);
        assert_memory_equal(line.text + size + sizeof text - 1, number, n);
        size += sizeof text - 1 + n;
    }
    assert_int_equal(line.size, size);
    hm_line_free(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reals_are_those_of_printf),
        cmocka_unit_test(reals_ignore_the_locale),
        cmocka_unit_test(zero_has_no_sign_and_infinities_have_names),
        cmocka_unit_test(a_nan_spoils_the_line),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(any_bytes_give_json),
        cmocka_unit_test(long_pieces_are_not_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
