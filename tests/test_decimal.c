// What printed numbers stand for (docs/evidence.md "What a printed number stands for"): enclosures against exact rationals.
#include "evidence/evidence.h"
#include "tests/certify_rows.h"
#include "tests/seed.h"

#include <float.h>
#include <string.h>

static hm_status read(const char *text, enum hm_printing printing, enum hm_decimal_kind *kind, struct hm_ival *out)
{
    struct hm_error err = {.message = ""};
    return hm_decimal_read(text, strlen(text), printing, kind, out, &err);
}

static struct hm_ival number(const char *text, enum hm_printing printing)
{
    enum hm_decimal_kind kind;
    struct hm_ival out;
    if (read(text, printing, &kind, &out)) fail_msg("\"%s\" is not read", text);
    assert_int_equal(kind, HM_DECIMAL_FINITE);
    return out;
}

// The nearest doubles on both sides of two rationals.
static void assert_ends(const char *text, struct hm_ival found, mpq_srcptr lo, mpq_srcptr hi)
{
    mpfr_t end;
    mpfr_init2(end, 53);
    mpfr_set_q(end, lo, MPFR_RNDD);
    double want_lo = mpfr_get_d(end, MPFR_RNDD);
    mpfr_set_q(end, hi, MPFR_RNDU);
    double want_hi = mpfr_get_d(end, MPFR_RNDU);
    mpfr_clear(end);
    if (found.lo != want_lo || found.hi != want_hi)
        fail_msg("\"%s\": [%a, %a] instead of [%a, %a]", text, found.lo, found.hi, want_lo, want_hi);
}

static void reads_a_table(void **state)
{
    (void)state;
    static const struct { const char *text, *lo, *hi; } rows[] = {
        {"-0.2231", "-22315/100000", "-22305/100000"}, {"0.5", "45/100", "55/100"},      {"-1", "-3/2", "-1/2"},
        {"0", "-1/2", "1/2"},                          {"-0.0", "-5/100", "5/100"},      {"1e-05", "5/1000000", "15/1000000"},
        {"-1.50E+2", "-1505/10", "-1495/10"},          {"+2.", "3/2", "5/2"},            {".25", "245/1000", "255/1000"},
        {"12e3", "11500", "12500"},                    {"000.10", "95/1000", "105/1000"}, {"9007199254740993", "18014398509481985/2", "18014398509481987/2"},
        {"-9999.0", "-999905/100", "-999895/100"},     {"0e1", "-5", "5"},                {"123456789012345678e-18", "246913578024691355/2000000000000000000", "246913578024691357/2000000000000000000"}};
    mpq_t lo, hi;
    mpq_inits(lo, hi, (mpq_ptr)0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mpq_set_str(lo, rows[i].lo, 10);
        mpq_set_str(hi, rows[i].hi, 10);
        mpq_canonicalize(lo);
        mpq_canonicalize(hi);
        assert_ends(rows[i].text, number(rows[i].text, HM_PRINTING_ROUNDED), lo, hi);
    }
    mpq_clears(lo, hi, (mpq_ptr)0);
}

static void reads_what_is_out_of_range(void **state)
{
    (void)state;
    static const struct { const char *text; double lo, hi; } rows[] = {
        {"1e400", DBL_MAX, INFINITY}, {"-1e999999999999999999999", -INFINITY, -DBL_MAX}, {"1e-400", 0, 0x1p-1074},
        {"-1e-99999999999999999999", -0x1p-1074, 0}, {"0e-5000", -0x1p-1074, 0x1p-1074}, {"0e5000", -INFINITY, INFINITY},
        {"0e400", -INFINITY, INFINITY}, {"1e308", 5e307, 0x1.ab362d6d17c05p+1023}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hm_ival x = number(rows[i].text, HM_PRINTING_ROUNDED);
        if (!(x.lo <= rows[i].lo && x.hi >= rows[i].hi)) fail_msg("\"%s\": [%a, %a]", rows[i].text, x.lo, x.hi);
        if (i < 7) assert_true(x.lo == rows[i].lo && x.hi == rows[i].hi);
    }
    struct hm_ival x = number("1e-900", HM_PRINTING_ROUND_TRIP);
    assert_true(x.lo <= 0 && x.hi >= 0x1p-150 && x.hi < 0x1p-148);
    x = number("-1e900", HM_PRINTING_ROUND_TRIP);
    assert_true(x.lo == -INFINITY && x.hi == -DBL_MAX);
}

static void reads_words(void **state)
{
    (void)state;
    static const struct { const char *text; enum hm_decimal_kind kind; } words[] = {
        {"nan", HM_DECIMAL_NAN}, {"NaN", HM_DECIMAL_NAN}, {"-nan", HM_DECIMAL_NAN}, {"inf", HM_DECIMAL_INFINITE},
        {"+Infinity", HM_DECIMAL_INFINITE}, {"-inf", HM_DECIMAL_MINUS_INFINITE}, {"-Infinity", HM_DECIMAL_MINUS_INFINITE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        enum hm_decimal_kind kind;
        struct hm_ival x;
        assert_int_equal(read(words[i].text, HM_PRINTING_ROUNDED, &kind, &x), HM_OK);
        assert_int_equal(kind, words[i].kind);
        if (kind == HM_DECIMAL_MINUS_INFINITE) assert_true(x.lo == -INFINITY && x.hi == -INFINITY);
        if (kind == HM_DECIMAL_NAN) assert_true(x.lo == -INFINITY && x.hi == INFINITY); // decides nothing
    }
}

static void refuses_what_is_no_number(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "-", "+", ".", "e5", "1e", "1e+", "1.2.3", "--1", "+-1", "0x1p3", "1,5", " 1", "1 ", "infx",
                                      "in", "na", "-.e1", "1e5.0", "1e--5", "\xff", "1\n", "١"};
    enum hm_decimal_kind kind;
    struct hm_ival x;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (read(bad[i], HM_PRINTING_ROUNDED, &kind, &x) != HM_FORMAT) fail_msg("\"%s\" is read", bad[i]);
    assert_int_equal(hm_decimal_read(NULL, 0, HM_PRINTING_ROUNDED, &kind, &x, NULL), HM_FORMAT);
    assert_int_equal(hm_decimal_read("1\0002", 3, HM_PRINTING_ROUNDED, &kind, &x, NULL), HM_FORMAT);
    char digits[402];
    memset(digits, '7', sizeof digits);
    digits[401] = 0;
    assert_int_equal(read(digits, HM_PRINTING_ROUNDED, &kind, &x), HM_RANGE);
    digits[400] = 0;
    x = number(digits, HM_PRINTING_ROUNDED); // 7.8e399
    assert_true(x.lo == DBL_MAX && x.hi == INFINITY);
    digits[1] = '.';
    x = number(digits, HM_PRINTING_ROUNDED);
    assert_true(x.lo < x.hi && nextafter(x.lo, 10) == x.hi); // 398 decimals: one step of doubles
    memcpy(digits, "-0.", 3);
    x = number(digits, HM_PRINTING_ROUND_TRIP);
    assert_true(x.lo < -0.7777 && x.hi > -0.7778 && x.hi - x.lo < 0x1p-22);
}

// Random digits at random places: both ends are the nearest doubles of exact rationals, on the short way and on the long.
static void encloses_exact_halves(void **state)
{
    (void)state;
    uint64_t r = test_seed("encloses_exact_halves");
    mpq_t lo, hi, power;
    mpz_t n;
    mpq_inits(lo, hi, power, (mpq_ptr)0);
    mpz_init(n);
    for (size_t i = 0; i < test_count(2000, 50000, 2000000); i++) {
        char text[80];
        size_t digits = 1 + test_below(&r, test_below(&r, 4) ? 17 : 50), point = test_below(&r, digits + 1);
        long exponent = (long)test_below(&r, 600) - 300;
        bool negative = test_below(&r, 2), plain = test_below(&r, 2);
        size_t at = 0;
        mpz_set_ui(n, 0);
        if (negative) text[at++] = '-';
        for (size_t d = 0; d < digits; d++) {
            if (d == point) text[at++] = '.';
            unsigned long digit = (unsigned long)test_below(&r, 10);
            text[at++] = (char)('0' + digit);
            mpz_mul_ui(n, n, 10);
            mpz_add_ui(n, n, digit);
        }
        text[at] = 0;
        if (!plain) snprintf(text + at, sizeof text - at, "%c%ld", test_below(&r, 2) ? 'e' : 'E', exponent);
        long last = (plain ? 0 : exponent) - (long)(digits - point);
        mpz_mul_ui(n, n, 2);
        mpz_sub_ui(mpq_numref(lo), n, 1);
        mpz_add_ui(mpq_numref(hi), n, 1);
        mpz_set_ui(mpq_denref(lo), 2);
        mpz_set_ui(mpq_denref(hi), 2);
        mpz_ui_pow_ui(mpq_numref(power), 10, (unsigned long)labs(last));
        mpz_set_ui(mpq_denref(power), 1);
        mpq_canonicalize(lo);
        mpq_canonicalize(hi);
        if (last < 0) mpq_inv(power, power);
        mpq_mul(lo, lo, power);
        mpq_mul(hi, hi, power);
        if (negative) {
            mpq_neg(lo, lo);
            mpq_neg(hi, hi);
            mpq_swap(lo, hi);
        }
        assert_ends(text, number(text, HM_PRINTING_ROUNDED), lo, hi);
    }
    mpz_clear(n);
    mpq_clears(lo, hi, power, (mpq_ptr)0);
}

// Shortest digits of a float, and of it as a double: what the float was rounded from is inside, and little else.
static void round_trips_give_the_float_back(void **state)
{
    (void)state;
    uint64_t r = test_seed("round_trips_give_the_float_back");
    for (size_t i = 0; i < test_count(5000, 200000, 10000000); i++) {
        uint32_t bits = (uint32_t)test_random(&r);
        float f;
        memcpy(&f, &bits, sizeof f);
        if (!isfinite(f)) continue;
        char text[64];
        int digits = 1;
        do snprintf(text, sizeof text, "%.*g", digits, (double)f);
        while (digits++ < 9 && strtof(text, NULL) != f);
        if (test_below(&r, 2)) snprintf(text, sizeof text, "%.17g", (double)f);
        struct hm_ival x = number(text, HM_PRINTING_ROUND_TRIP);
        double ulp = (double)(nextafterf(fabsf(f), INFINITY) - fabsf(f));
        if (isfinite(ulp) && f != 0 && !(x.lo <= f - ulp / 2 && f + ulp / 2 <= x.hi)) fail_msg("%s: %a not in [%a, %a]", text, (double)f, x.lo, x.hi);
        if (f == 0) assert_true(x.lo == 0 && x.hi == 0);
        else if (isfinite(ulp)) assert_true(x.hi - x.lo <= 2 * ulp * 1.0001 && x.hi - x.lo >= ulp * 0.99);
    }
    struct hm_ival x = number("-1.5", HM_PRINTING_ROUND_TRIP);
    assert_true(x.lo == -1.5 - 0x1p-23 && x.hi == -1.5 + 0x1p-23);
}

static void logarithms_and_allowances_enclose(void **state)
{
    (void)state;
    uint64_t r = test_seed("logarithms_and_allowances_enclose");
    struct hm_ival x = hm_decimal_log((struct hm_ival){-0.05, 0.05});
    assert_true(x.lo == -INFINITY && x.hi >= -2.9957322736 && x.hi < -2.9957);
    x = hm_decimal_log((struct hm_ival){-1, 0});
    assert_true(x.lo == -INFINITY && x.hi == -INFINITY);
    x = hm_decimal_log((struct hm_ival){NAN, 1});
    assert_true(x.lo == -INFINITY && x.hi == INFINITY);
    x = hm_decimal_widen((struct hm_ival){-INFINITY, -INFINITY}, 0x1p-18);
    assert_true(x.lo == -INFINITY && x.hi == -INFINITY); // a filtered token stays one
    x = hm_decimal_widen((struct hm_ival){-8, -8}, HM_ALLOWANCE_DEFAULT);
    assert_true(x.lo == -8 - 0x1p-17 && x.hi == -8 + 0x1p-17);
    x = hm_decimal_widen((struct hm_ival){-1, -1}, NAN);
    assert_true(x.lo == -INFINITY && x.hi == INFINITY);
    mpq_t lo, hi, a, v;
    mpq_inits(lo, hi, a, v, (mpq_ptr)0);
    for (size_t i = 0; i < test_count(1000, 20000, 1000000); i++) {
        double value = test_signed(&r) * pow(2, (double)test_below(&r, 20)), allowance = fabs(test_signed(&r)) * pow(2, (double)test_below(&r, 30) - 26);
        x = hm_decimal_widen((struct hm_ival){value, value}, allowance);
        mpq_set_d(v, fabs(value) / 8);
        mpq_set_ui(a, 1, 1);
        mpq_add(v, v, a);
        mpq_set_d(a, allowance);
        mpq_mul(a, a, v);
        mpq_set_d(v, value);
        mpq_sub(lo, v, a);
        mpq_add(hi, v, a);
        mpq_set_d(v, x.lo);
        assert_true(mpq_cmp(v, lo) <= 0);
        mpq_set_d(v, x.hi);
        assert_true(mpq_cmp(v, hi) >= 0);
        if (allowance < 1) assert_true(x.hi - x.lo <= 2.000001 * allowance * (1 + fabs(value) / 8) + 1e-15 * fabs(value));
    }
    mpq_clears(lo, hi, a, v, (mpq_ptr)0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_table),
        cmocka_unit_test(reads_what_is_out_of_range),
        cmocka_unit_test(reads_words),
        cmocka_unit_test(refuses_what_is_no_number),
        cmocka_unit_test(encloses_exact_halves),
        cmocka_unit_test(round_trips_give_the_float_back),
        cmocka_unit_test(logarithms_and_allowances_enclose),
    };
    return cmocka_run_group_tests_name("decimal", tests, NULL, release_caches);
}
