// Numbers as a report prints them: see number.h. MPFR gives the digits, so every direction is exact and no locale
// enters.
#include "reports/number.h"

#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <string.h>

// digits * 10^(exponent - number of digits), as a person would write it.
static struct hm_number place_point(const char *digits, long exponent, const char *sign)
{
    struct hm_number out;
    size_t n = strlen(digits);
    while (n > 1 && digits[n - 1] == '0') n--; // trailing zeros say nothing about a directed rounding
    if (exponent > -4 && exponent <= 0) {
        snprintf(out.text, sizeof out.text, "%s0.%.*s%.*s", sign, (int)-exponent, "0000", (int)n, digits);
    } else if (exponent > 0 && exponent <= 7 && (size_t)exponent >= n) {
        snprintf(out.text, sizeof out.text, "%s%.*s%.*s", sign, (int)n, digits, (int)((size_t)exponent - n), "0000000");
    } else if (exponent > 0 && exponent <= 7) {
        snprintf(out.text, sizeof out.text, "%s%.*s.%.*s", sign, (int)exponent, digits, (int)(n - (size_t)exponent),
                 digits + exponent);
    } else {
        snprintf(out.text, sizeof out.text, "%s%.1s%s%.*se%ld", sign, digits, n > 1 ? "." : "", (int)(n - 1),
                 digits + 1, exponent - 1);
    }
    return out;
}

static struct hm_number format(double x, int digits, mpfr_rnd_t direction)
{
    struct hm_number out;
    if (isnan(x) || isinf(x) || x == 0) {
        snprintf(out.text, sizeof out.text, "%s", isnan(x) ? "n/a" : x == 0 ? "0" : x > 0 ? "inf" : "-inf");
        return out;
    }
    char text[32];
    mpfr_exp_t exponent;
    mpfr_t value;
    if (digits < 1) digits = 1;
    if (digits > 20) digits = 20;
    mpfr_init2(value, 53);
    mpfr_set_d(value, x, MPFR_RNDN);
    mpfr_get_str(text, &exponent, 10, (size_t)digits, value, direction);
    mpfr_clear(value);
    return text[0] == '-' ? place_point(text + 1, exponent, "-") : place_point(text, exponent, "");
}

struct hm_number hm_number_down(double x, int digits)
{
    return format(x, digits, MPFR_RNDD);
}

struct hm_number hm_number_up(double x, int digits)
{
    return format(x, digits, MPFR_RNDU);
}

struct hm_number hm_number_near(double x, int digits)
{
    return format(x, digits, MPFR_RNDN);
}

// round(scale * numerator / denominator) without overflow for counts below 2^53.
static uint64_t scaled(uint64_t numerator, uint64_t denominator, uint64_t scale)
{
    uint64_t whole = numerator / denominator, rest = numerator % denominator;
    long double part = (long double)rest * (long double)scale / (long double)denominator;
    return whole * scale + (uint64_t)(part + 0.5L);
}

struct hm_number hm_number_ratio(uint64_t numerator, uint64_t denominator, int decimals)
{
    struct hm_number out = {"n/a"};
    uint64_t scale = 1;
    for (int i = 0; i < decimals; i++) scale *= 10;
    if (denominator == 0) return out;
    uint64_t value = scaled(numerator, denominator, scale);
    if (decimals == 0)
        snprintf(out.text, sizeof out.text, "%llu", (unsigned long long)value);
    else
        snprintf(out.text, sizeof out.text, "%llu.%0*llu", (unsigned long long)(value / scale), decimals,
                 (unsigned long long)(value % scale));
    return out;
}

struct hm_number hm_number_percent(uint64_t numerator, uint64_t denominator)
{
    struct hm_number out = {"n/a"};
    if (denominator == 0) return out;
    uint64_t tenths = scaled(numerator, denominator, 1000);
    if (tenths >= 1000 && numerator < denominator) tenths = 999;
    if (tenths == 0 && numerator > 0) tenths = 1;
    snprintf(out.text, sizeof out.text, "%llu.%llu%%", (unsigned long long)(tenths / 10),
             (unsigned long long)(tenths % 10));
    return out;
}

struct hm_number hm_number_share(uint64_t numerator, uint64_t denominator, uint64_t vacuous)
{
    if (denominator > 0 && vacuous == denominator) return (struct hm_number){"all vacuous"};
    return hm_number_percent(numerator, denominator);
}

struct hm_number hm_number_of(uint64_t count, const char *noun)
{
    struct hm_number out = hm_number_count(count);
    size_t used = strlen(out.text);
    snprintf(out.text + used, sizeof out.text - used, " %.20s%s", noun, count == 1 ? "" : "s");
    return out;
}

struct hm_number hm_number_count(uint64_t count)
{
    struct hm_number out;
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count), used = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) out.text[used++] = ',';
        out.text[used++] = digits[i];
    }
    out.text[used] = 0;
    return out;
}

static struct hm_number as_json(double x, mpfr_rnd_t direction)
{
    struct hm_number out;
    if (isnan(x))
        snprintf(out.text, sizeof out.text, "null");
    else if (isinf(x))
        snprintf(out.text, sizeof out.text, "\"%s\"", x > 0 ? "inf" : "-inf");
    else
        out = format(x, 17, direction);
    return out;
}

struct hm_number hm_number_json_down(double x)
{
    return as_json(x, MPFR_RNDD);
}

struct hm_number hm_number_json_up(double x)
{
    return as_json(x, MPFR_RNDU);
}
