// Exact rational parameters: see rational.h.
#include "base/rational.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 4096, DECIMAL_EXPONENT = 1200, BINARY_EXPONENT = 4096 };

void hm_rational_init(struct hm_rational *r)
{
    mpq_init(r->value);
}

void hm_rational_clear(struct hm_rational *r)
{
    mpq_clear(r->value);
}

void hm_rational_set(struct hm_rational *r, const struct hm_rational *from)
{
    mpq_set(r->value, from->value);
}

void hm_rational_set_int(struct hm_rational *r, long numerator, unsigned long denominator)
{
    mpq_set_si(r->value, numerator, denominator);
    mpq_canonicalize(r->value);
}

// The parts of "[+-]digits[.digits][e[+-]digits]" (or the hexadecimal form with p), found by scan_number.
struct spelling {
    bool negative;
    char *digits;       // all significant digits without the point, zero-terminated
    long point;         // how many digits follow the point
    long exponent;      // of ten, or of two for hexadecimal
    int base;           // 10 or 16
};

static bool is_digit(char c, int base)
{
    if (c >= '0' && c <= '9') return true;
    return base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'));
}

static bool scan_exponent(const char *s, long *out)
{
    bool negative = *s == '-';
    if (*s == '+' || *s == '-') s++;
    if (!*s) return false;
    long value = 0;
    for (; *s; s++) {
        if (!is_digit(*s, 10)) return false;
        if (value < 100000) value = value * 10 + (*s - '0');
    }
    *out = negative ? -value : value;
    return true;
}

static bool scan_number(const char *s, struct spelling *out)
{
    size_t n = 0;
    bool seen_point = false;
    *out = (struct spelling){.negative = *s == '-', .base = 10, .digits = malloc(strlen(s) + 1)};
    if (!out->digits) return false;
    if (*s == '+' || *s == '-') s++;
    if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
        out->base = 16;
        s += 2;
    }
    for (; is_digit(*s, out->base) || (*s == '.' && !seen_point); s++) {
        if (*s == '.') {
            seen_point = true;
            continue;
        }
        out->digits[n++] = *s;
        out->point += seen_point;
    }
    out->digits[n] = 0;
    if (n == 0) return false;
    if (!*s) return true;
    bool marked = out->base == 16 ? *s == 'p' || *s == 'P' : *s == 'e' || *s == 'E';
    return marked && scan_exponent(s + 1, &out->exponent);
}

// value = digits * scale^(exponent - point) with scale 10, or digits * 2^(exponent - 4 point) for hexadecimal.
static bool assemble(const struct spelling *n, mpq_t value)
{
    long limit = n->base == 16 ? BINARY_EXPONENT : DECIMAL_EXPONENT;
    if (n->exponent > limit || n->exponent < -limit) return false;
    long power = n->exponent - (n->base == 16 ? 4 * n->point : n->point);
    mpz_t scale;
    mpz_init(scale);
    mpz_ui_pow_ui(scale, n->base == 16 ? 2 : 10, (unsigned long)labs(power));
    mpq_set_ui(value, 0, 1);
    mpz_set_str(mpq_numref(value), n->digits, n->base);
    if (power >= 0) mpz_mul(mpq_numref(value), mpq_numref(value), scale);
    else mpz_set(mpq_denref(value), scale);
    if (n->negative) mpq_neg(value, value);
    mpq_canonicalize(value);
    mpz_clear(scale);
    return true;
}

static bool parse_fraction(const char *text, const char *slash, mpq_t value)
{
    for (const char *s = text + (*text == '-'); *s; s++)
        if (s != slash && !is_digit(*s, 10)) return false;
    if (slash == text + (*text == '-') || !slash[1] || mpq_set_str(value, text, 10) != 0) return false;
    if (mpz_sgn(mpq_denref(value)) == 0) return false;
    mpq_canonicalize(value);
    return true;
}

hm_status hm_rational_parse(const char *text, struct hm_rational *out, struct hm_error *err)
{
    bool good = false;
    size_t length = strlen(text);
    const char *slash = strchr(text, '/');
    mpq_t value;
    mpq_init(value);
    if (length > 0 && length <= LONGEST) {
        if (slash) {
            good = parse_fraction(text, slash, value);
        } else {
            struct spelling number;
            good = scan_number(text, &number) && assemble(&number, value);
            free(number.digits);
        }
    }
    if (good) mpq_set(out->value, value);
    mpq_clear(value);
    if (good) return HM_OK;
    return hm_fail(err, HM_FORMAT, "expected a number such as 0.3, 3/10 or 0x1.8p-1, found \"%.80s\"", text);
}

char *hm_rational_text(const struct hm_rational *r)
{
    size_t size = mpz_sizeinbase(mpq_numref(r->value), 10) + mpz_sizeinbase(mpq_denref(r->value), 10) + 3;
    char *text = malloc(size);
    return text ? mpq_get_str(text, 10, r->value) : NULL;
}

double hm_rational_double(const struct hm_rational *r)
{
    return mpq_get_d(r->value);
}

int hm_rational_sign(const struct hm_rational *r)
{
    return mpq_sgn(r->value);
}
