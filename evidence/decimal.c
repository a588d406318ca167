// What a printed number stands for: see evidence.h, docs/evidence.md "What a printed number stands for".
//
// A decimal is an integer times a power of ten. Both stay integers until one division, rounded outward, gives each end: in
// doubles where both integers are exact there (nearly always), otherwise by GMP and MPFR.
#include "evidence/evidence.h"

#include "bounds/ival_math.h"

#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <string.h>
#include <strings.h>

enum { LONGEST = 400, FARTHEST = 800 }; // characters; decimal exponents beyond which no double reaches

// digits x 10^exponent, before the sign.
struct decimal {
    char digits[LONGEST + 1]; // significant digits as printed, the point left out
    size_t count;
    bool negative, zero;
    long exponent;            // of the last digit, clipped far outside the range of doubles
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(const char *text, size_t size, const char *word)
{
    return size == strlen(word) && strncasecmp(text, word, size) == 0;
}

// Words for what is no finite number; false when it is none of them.
static bool read_word(const char *text, size_t size, bool negative, enum hm_decimal_kind *kind)
{
    if (is_word(text, size, "nan")) *kind = HM_DECIMAL_NAN;
    else if (is_word(text, size, "inf") || is_word(text, size, "infinity"))
        *kind = negative ? HM_DECIMAL_MINUS_INFINITE : HM_DECIMAL_INFINITE;
    else return false;
    return true;
}

// An exponent, clipped: more digits than a long holds are not more than "too far".
static bool read_exponent(const char *text, size_t size, long *out)
{
    size_t i = size > 0 && (text[0] == '+' || text[0] == '-');
    long value = 0;
    if (i == size) return false;
    for (size_t j = i; j < size; j++) {
        if (!is_digit(text[j])) return false;
        if (value < 1000000) value = value * 10 + (text[j] - '0');
    }
    *out = text[0] == '-' ? -value : value;
    return true;
}

static bool read_digits(const char *text, size_t size, struct decimal *out)
{
    size_t i = 0, written = 0;
    bool point = false;
    long after = 0, exponent = 0;
    out->count = 0;
    out->zero = true;
    for (; i < size && (is_digit(text[i]) || (text[i] == '.' && !point)); i++) {
        if (text[i] == '.') {
            point = true;
            continue;
        }
        written++;
        after += point;
        if (text[i] != '0') out->zero = false;
        if (!out->zero || out->count > 0) out->digits[out->count++] = text[i];
    }
    if (written == 0) return false;
    if (i < size) {
        if ((text[i] != 'e' && text[i] != 'E') || !read_exponent(text + i + 1, size - i - 1, &exponent)) return false;
    }
    out->digits[out->count] = 0;
    out->exponent = exponent - after;
    return true;
}

// The enclosure of (twice the digits + odd) / 2 x 10^exponent, for odd in {-1, 0, 1}: exact halves of units.
static struct hm_ival half_units_exact(const struct decimal *d, int odd)
{
    mpz_t digits, power;
    mpq_t value;
    mpz_inits(digits, power, NULL);
    mpq_init(value);
    if (d->count > 0) mpz_set_str(digits, d->digits, 10);
    mpz_mul_ui(digits, digits, 2);
    if (odd < 0) mpz_sub_ui(digits, digits, 1);
    if (odd > 0) mpz_add_ui(digits, digits, 1);
    mpz_ui_pow_ui(power, 10, (unsigned long)(d->exponent < 0 ? -d->exponent : d->exponent));
    if (d->exponent > 0) mpz_mul(digits, digits, power);
    mpq_set_z(value, digits);
    if (d->exponent <= 0) mpz_set(mpq_denref(value), power);
    mpz_mul_ui(mpq_denref(value), mpq_denref(value), 2);
    mpq_canonicalize(value);
    struct hm_ival out = hm_ival_rational(value);
    mpq_clear(value);
    mpz_clears(digits, power, NULL);
    return out;
}

static struct hm_ival half_units(const struct decimal *d, int odd)
{
    static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21};
    if (d->count > 15 || d->exponent > 0 || d->exponent < -21) return half_units_exact(d, odd);
    double digits = 0; // an integer below 10^15: exact, and so is twice it plus 1, and twice a power of ten up to 10^21
    for (size_t i = 0; i < d->count; i++) digits = digits * 10 + (d->digits[i] - '0');
    return hm_ival_div(hm_ival_point(2 * digits + odd), hm_ival_point(2 * powers[-d->exponent]));
}

// A unit in the last place of a float32 at x, and of the smallest normal number below that: half of it for what the float was
// rounded from, half for the digits.
static double one_ulp(double x)
{
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
}

static struct hm_ival enclose(const struct decimal *d, enum hm_printing printing)
{
    long leading = d->exponent + (long)d->count; // the value is below 10^leading, and at least a tenth of that if not 0
    bool short_digits = printing == HM_PRINTING_ROUND_TRIP;
    if (short_digits && d->zero) return hm_ival_point(0);
    if (leading > FARTHEST) {
        if (d->zero) return (struct hm_ival){-INFINITY, INFINITY}; // half a unit of a digit out there
        return (struct hm_ival){DBL_MAX, INFINITY};
    }
    if (leading < -FARTHEST) {
        const double least = 0x1p-1074;
        return (struct hm_ival){d->zero ? -least : 0, short_digits ? one_ulp(0x1p-1000) : least};
    }
    if (short_digits) {
        struct hm_ival v = half_units(d, 0);
        double ulp = v.hi == INFINITY ? INFINITY : one_ulp(v.hi);
        return hm_ival_add(v, (struct hm_ival){-ulp, ulp});
    }
    return (struct hm_ival){half_units(d, -1).lo, half_units(d, 1).hi};
}

hm_status hm_decimal_read(const char *text, size_t size, enum hm_printing printing, enum hm_decimal_kind *kind,
                          struct hm_ival *out, struct hm_error *err)
{
    struct decimal d = {.negative = false};
    *kind = HM_DECIMAL_FINITE;
    *out = (struct hm_ival){-INFINITY, INFINITY};
    if (size > LONGEST) return hm_fail(err, HM_RANGE, "a number: expected at most %d characters, found %zu", LONGEST, size);
    if (size == 0) return hm_fail(err, HM_FORMAT, "expected a number, found nothing");
    size_t sign = text[0] == '-' || text[0] == '+';
    d.negative = sign && text[0] == '-';
    if (read_word(text + sign, size - sign, d.negative, kind)) {
        if (*kind == HM_DECIMAL_MINUS_INFINITE) out->hi = -INFINITY;
        if (*kind == HM_DECIMAL_INFINITE) out->lo = INFINITY;
        return HM_OK;
    }
    if (!read_digits(text + sign, size - sign, &d))
        return hm_fail(err, HM_FORMAT, "expected a number, found \"%.*s\"", (int)(size > 60 ? 60 : size), text);
    *out = enclose(&d, printing);
    if (d.negative) *out = hm_ival_neg(*out);
    return HM_OK;
}

struct hm_ival hm_decimal_log(struct hm_ival p)
{
    if (!(p.lo <= p.hi)) return (struct hm_ival){-INFINITY, INFINITY};
    return hm_ival_log((struct hm_ival){p.lo > 0 ? p.lo : 0, p.hi > 0 ? p.hi : 0});
}

// allowance * (1 + |end| / 8), rounded up.
static double slack(double end, double allowance)
{
    struct hm_ival size = hm_ival_point(fabs(end) / 8); // exact but for subnormals, where 1 + it rounds up all the same
    return hm_ival_mul(hm_ival_point(allowance), hm_ival_add(hm_ival_point(1), size)).hi;
}

struct hm_ival hm_decimal_widen(struct hm_ival value, double allowance)
{
    struct hm_ival out = value;
    if (!(value.lo <= value.hi) || !(allowance >= 0)) return (struct hm_ival){-INFINITY, INFINITY};
    if (allowance == 0) return value;
    // From 8 on, the widened ends no longer rise with the value: the larger magnitude then serves for both.
    double lo = value.lo, hi = value.hi;
    if (allowance >= 8) lo = hi = fmax(isfinite(lo) ? fabs(lo) : DBL_MAX, isfinite(hi) ? fabs(hi) : DBL_MAX);
    if (isfinite(value.lo)) out.lo = hm_ival_sub(hm_ival_point(value.lo), hm_ival_point(slack(lo, allowance))).lo;
    if (isfinite(value.hi)) out.hi = hm_ival_add(hm_ival_point(value.hi), hm_ival_point(slack(hi, allowance))).hi;
    return out;
}
