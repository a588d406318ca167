// Interval arithmetic in double: see ival_math.h; every error bound below is derived in docs/filter.md, "Elementary
// functions". An end moves outward only when its operation rounded: the sign of the rounding error is known exactly, so
// exact operations keep points and a sum of short numbers stays a point.
#include "bounds/ival_math.h"

#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <stdint.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0 && DBL_MANT_DIG == 53, "the error bounds are those of IEEE doubles");

static const struct hm_ival line = {-INFINITY, INFINITY};

// NaN or crossed ends say that nothing is known. Adding 0 turns -0 into 0: no negative zeros in logs.
static struct hm_ival ends(double lo, double hi)
{
    return lo <= hi ? (struct hm_ival){lo + 0.0, hi + 0.0} : line;
}

static double before(double x) // the next double below
{
    if (x == 0) return -0x1p-1074;
    if (!(x > -INFINITY)) return x; // -inf and NaN stay
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += x > 0 ? -1 : 1;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// The same for a finite x other than 0, or x itself: without a branch, for the sign of an error is a coin.
static double before_if(bool rounded_up, double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits -= (int64_t)rounded_up * (x > 0 ? 1 : -1);
    memcpy(&x, &bits, sizeof x);
    return x;
}

// The error of a sum is a double, found by six additions (Knuth); NaN when one of them overflows. A sum of 0 is exact.
static double add_down(double a, double b)
{
    double sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
    if (error - error == 0) return before_if(error < 0, sum);
    if (fabs(sum) == INFINITY && (fabs(a) == INFINITY || fabs(b) == INFINITY)) return sum;
    return before(sum);
}

static double add_up(double a, double b)
{
    return -add_down(-a, -b);
}

// Above this size of a product or a dividend the error of x and the remainder of / are doubles, so that a fused
// multiply-add gives them exactly.
static const double error_is_exact = 0x1p-960;

static double mul_down(double a, double b)
{
    double product = a * b;
    if (a == 0 || b == 0 || fabs(a) == INFINITY || fabs(b) == INFINITY) return product; // exact, or NaN
    if (product == 0) return (a < 0) != (b < 0) ? -0x1p-1074 : 0;
    if (fabs(product) < error_is_exact || fabs(product) == INFINITY) return before(product);
    return before_if(__builtin_fma(a, b, -product) < 0, product);
}

static double mul_up(double a, double b)
{
    return -mul_down(-a, b);
}

static double div_down(double a, double b) // b > 0
{
    double quotient = a / b;
    if (a == 0 || fabs(a) == INFINITY || b == INFINITY) return quotient;
    if (quotient == 0) return a < 0 ? -0x1p-1074 : 0;
    if (fabs(a) < error_is_exact || fabs(quotient) < DBL_MIN || fabs(quotient) == INFINITY) return before(quotient);
    return before_if(__builtin_fma(-quotient, b, a) < 0, quotient);
}

static double div_up(double a, double b)
{
    return -div_down(-a, b);
}

struct hm_ival hm_ival_point(double x)
{
    return ends(x, x);
}

struct hm_ival hm_ival_rational(mpq_srcptr value)
{
    const unsigned long most = 1UL << 53;
    mpz_srcptr above = mpq_numref(value), under = mpq_denref(value);
    if (mpz_cmpabs_ui(above, most) <= 0 && mpz_cmp_ui(under, most) <= 0)
        return (struct hm_ival){div_down(mpz_get_d(above), mpz_get_d(under)), div_up(mpz_get_d(above), mpz_get_d(under))};
    mpfr_t end;
    struct hm_ival out;
    mpfr_init2(end, 53);
    mpfr_set_q(end, value, MPFR_RNDD);
    out.lo = mpfr_get_d(end, MPFR_RNDD);
    mpfr_set_q(end, value, MPFR_RNDU);
    out.hi = mpfr_get_d(end, MPFR_RNDU);
    mpfr_clear(end);
    return out;
}

struct hm_ival hm_ival_neg(struct hm_ival a)
{
    return ends(-a.hi, -a.lo);
}

struct hm_ival hm_ival_add(struct hm_ival a, struct hm_ival b)
{
    return ends(add_down(a.lo, b.lo), add_up(a.hi, b.hi));
}

struct hm_ival hm_ival_sub(struct hm_ival a, struct hm_ival b)
{
    return ends(add_down(a.lo, -b.hi), add_up(a.hi, -b.lo));
}

static double least(double a, double b)
{
    return a <= b || a != a ? a : b; // NaN wins
}

struct hm_ival hm_ival_mul(struct hm_ival a, struct hm_ival b)
{
    if (a.lo >= 0 && b.lo >= 0) return ends(mul_down(a.lo, b.lo), mul_up(a.hi, b.hi));
    double lo = least(least(mul_down(a.lo, b.lo), mul_down(a.lo, b.hi)), least(mul_down(a.hi, b.lo), mul_down(a.hi, b.hi)));
    double hi = -least(least(-mul_up(a.lo, b.lo), -mul_up(a.lo, b.hi)), least(-mul_up(a.hi, b.lo), -mul_up(a.hi, b.hi)));
    return ends(lo, hi);
}

struct hm_ival hm_ival_div(struct hm_ival a, struct hm_ival b)
{
    if (b.hi < 0) return hm_ival_neg(hm_ival_div(a, hm_ival_neg(b)));
    if (!(b.lo > 0)) return line;
    return ends(div_down(a.lo, a.lo >= 0 ? b.hi : b.lo), div_up(a.hi, a.hi >= 0 ? b.lo : b.hi));
}

struct hm_ival hm_ival_min(struct hm_ival a, struct hm_ival b)
{
    return ends(least(a.lo, b.lo), least(a.hi, b.hi));
}

struct hm_ival hm_ival_max(struct hm_ival a, struct hm_ival b)
{
    return hm_ival_neg(hm_ival_min(hm_ival_neg(a), hm_ival_neg(b)));
}

struct hm_ival hm_ival_meet(struct hm_ival a, struct hm_ival b)
{
    return ends(-least(-a.lo, -b.lo), least(a.hi, b.hi));
}

// The functions below have a relative error of at most 6 x 2^-53; this widening, with its own rounding, covers it.
static double below(double y)
{
    return y - fabs(y) * 0x1p-50;
}

static double above(double y)
{
    return y + fabs(y) * 0x1p-50;
}

// A number as the sum of two doubles.
struct pair {
    double hi, lo;
};

static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33; // ln 2 to 2^-85, the first of 32 bits

// 1 / (2n + 1) from n = 1: atanh(s) = s + s z (1/3 + z/5 + ...), z = s^2.
static const double odd[] = {1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
enum { ODD = sizeof odd / sizeof *odd };

static double odd_series(double z)
{
    double y = odd[ODD - 1];
    for (int n = ODD - 2; n >= 0; n--) y = y * z + odd[n];
    return y;
}

// exponent ln 2 + ln(1 + f + rest), for f in [-0.2930, 0.4143] and a rest below an ulp of 1: relative error 0.2 x 2^-53.
static struct pair log_of(int exponent, double f, double rest)
{
    double d = 2 + f, d_low = f - (d - 2), s = f / d;
    double s_low = (__builtin_fma(-s, d, f) - s * d_low) / d; // f / (2 + f) = s + s_low
    double z = s * s;
    double low = 2 * s_low + 2 * (s * (z * odd_series(z)));
    if (rest != 0) low += rest / (1 + f);
    if (exponent == 0) return (struct pair){2 * s, low};
    double whole = exponent * ln2_high, sum = whole + 2 * s;
    return (struct pair){sum, ((whole - sum) + 2 * s) + (low + exponent * ln2_low)};
}

// ln(x + rest) for a finite x > 0 and a rest of at most half an ulp of x.
static struct pair log_pair(double x, double rest)
{
    int exponent = 0;
    if (x < DBL_MIN) {
        x *= 0x1p54;
        exponent = -54;
    }
    const uint64_t root = UINT64_C(0x3fe6a09e00000000); // a little less than the square root of 1/2
    uint64_t bits;
    double m;
    memcpy(&bits, &x, sizeof bits);
    bits += UINT64_C(0x3ff0000000000000) - root;
    int scale = (int)(bits >> 52) - 1023;
    bits = (bits & UINT64_C(0x000fffffffffffff)) + root;
    memcpy(&m, &bits, sizeof m);
    return log_of(exponent + scale, m - 1, rest != 0 ? rest * (m / x) : 0);
}

// 1 + v as a pair, for v > -1 where ln(1+v) is not near 0.
static struct pair log1p_far(double v)
{
    double y = 1 + v, rest = v > 1 ? 1 - (y - v) : v - (y - 1);
    return log_pair(y, rest);
}

static bool close_to_one(double v) // is 1 + v in the range of log_of as it is?
{
    return v >= -0.29289 && v <= 0.41421;
}

static struct hm_ival log_point(double x)
{
    if (!(x > 0)) return (struct hm_ival){-INFINITY, -INFINITY};
    if (x == INFINITY) return (struct hm_ival){INFINITY, INFINITY};
    if (x == 1) return (struct hm_ival){0, 0};
    struct pair y = log_pair(x, 0);
    return (struct hm_ival){below(y.hi + y.lo), above(y.hi + y.lo)};
}

static struct hm_ival log1p_point(double v)
{
    if (!(v > -1)) return (struct hm_ival){-INFINITY, -INFINITY};
    if (v == INFINITY || v == 0) return (struct hm_ival){v, v};
    if (fabs(v) < 0x1p-60) return (struct hm_ival){before(v), v}; // v - v^2 < ln(1+v) < v
    struct pair y = close_to_one(v) ? log_of(0, v, 0) : log1p_far(v);
    return (struct hm_ival){below(y.hi + y.lo), above(y.hi + y.lo)};
}

// s v (1 - s (1-s) (1/3 + z/5 + ...)) near 0, s = v/(2+v) (no term cancels); the difference itself elsewhere.
static struct hm_ival log_excess_point(double v)
{
    if (!(v > -1) || v == INFINITY) return (struct hm_ival){INFINITY, INFINITY};
    if (v == 0) return (struct hm_ival){0, 0};
    if (fabs(v) < 0x1p-500) return (struct hm_ival){0, 0x1p-1000};
    double y;
    if (close_to_one(v)) {
        double s = v / (2 + v);
        y = (s * v) * (1 - (s * (1 - s)) * odd_series(s * s));
    } else {
        struct pair log = log1p_far(v);
        double head = v - log.hi, part = head - v, error = (v - (head - part)) - (log.hi + part);
        y = head + (error - log.lo);
    }
    return (struct hm_ival){below(y), above(y)};
}

// 1 / (n + 2)!: (e^x - 1 - x) / x^2 = sum x^n / (n + 2)!.
static const double factorial[] = {
    1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
    1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200, 1.0 / 1307674368000, 1.0 / 20922789888000,
    1.0 / 355687428096000, 1.0 / 6402373705728000, 1.0 / 121645100408832000};
enum { SHORT = 12, LONG = sizeof factorial / sizeof *factorial }; // terms for abs(x) <= 0.3467 and for abs(x) <= 1

static double factorial_series(double x, int terms)
{
    double y = factorial[terms - 1];
    for (int n = terms - 2; n >= 0; n--) y = y * x + factorial[n];
    return y;
}

enum { FARTHEST = 708 }; // e^x is normal, and so is its inverse, for abs(x) up to here

// e^x for abs(x) <= FARTHEST, relative error 0.9 x 2^-53.
static struct pair exp_pair(double x)
{
    const double rounder = 0x1.8p52, inverse_ln2 = 0x1.71547652b82fep+0;
    double shifted = x * inverse_ln2 + rounder, k = shifted - rounder;
    double r = (x - k * ln2_high) - k * ln2_low;
    double p = r + (r * r) * factorial_series(r, SHORT);
    double hi = 1 + p, lo = p - (hi - 1), scale;
    uint64_t bits = (uint64_t)(1023 + (int64_t)k) << 52; // 2^k, abs(k) <= 1023
    memcpy(&scale, &bits, sizeof scale);
    return (struct pair){hi * scale, lo * scale};
}

static struct hm_ival exp_point(double x)
{
    if (x == 0) return (struct hm_ival){1, 1};
    if (fabs(x) == INFINITY) return x > 0 ? (struct hm_ival){INFINITY, INFINITY} : (struct hm_ival){0, 0};
    bool high = x > FARTHEST, low = x < -FARTHEST;
    struct pair y = exp_pair(high ? FARTHEST : low ? -FARTHEST : x);
    return (struct hm_ival){low ? 0 : below(y.hi), high ? INFINITY : above(y.hi)};
}

static struct hm_ival exp_excess_point(double u)
{
    if (u == 0) return (struct hm_ival){0, 0};
    if (fabs(u) == INFINITY) return (struct hm_ival){INFINITY, INFINITY};
    if (fabs(u) < 0x1p-500) return (struct hm_ival){0, 0x1p-1000};
    bool high = u < -FARTHEST;
    double y;
    if (fabs(u) <= 1) {
        y = (u * u) * factorial_series(-u, LONG);
    } else if (u > FARTHEST) {
        y = u - 1; // e^-708 is far below an ulp
    } else {
        struct pair e = exp_pair(high ? FARTHEST : -u);
        y = u > 0 ? (u - 1) + e.hi : ((e.hi - 1) - (high ? FARTHEST : -u)) + e.lo;
    }
    return (struct hm_ival){below(y), high ? INFINITY : above(y)};
}

// 1 - e^{-u} for u >= 0: u less the excess, which is at most 0.59 of the difference where u <= 1.
static struct hm_ival drop_point(double u)
{
    if (u == 0) return (struct hm_ival){0, 0};
    if (u > FARTHEST) return (struct hm_ival){before(1), 1};
    if (u < 0x1p-60) return (struct hm_ival){before(u), u}; // u - u^2/2 < 1 - e^-u < u
    double y;
    if (u <= 1) {
        y = u - (u * u) * factorial_series(-u, LONG);
    } else {
        struct pair e = exp_pair(-u);
        y = 1 - e.hi;
    }
    return (struct hm_ival){below(y), u > 1 ? least(above(y), 1) : above(y)};
}

static struct hm_ival rising(struct hm_ival a, struct hm_ival (*at)(double))
{
    if (!(a.lo <= a.hi)) return line;
    if (a.lo == a.hi) return at(a.lo);
    return ends(at(a.lo).lo, at(a.hi).hi);
}

struct hm_ival hm_ival_log(struct hm_ival a)
{
    return a.hi < 0 ? line : rising(a, log_point);
}

struct hm_ival hm_ival_log1p(struct hm_ival a)
{
    return a.hi < -1 ? line : rising(a, log1p_point);
}

struct hm_ival hm_ival_exp(struct hm_ival a)
{
    return rising(a, exp_point);
}

struct hm_ival hm_ival_drop(struct hm_ival u)
{
    if (u.hi < 0) return line;
    return rising((struct hm_ival){u.lo < 0 ? 0 : u.lo, u.hi}, drop_point);
}

// Both excesses fall to 0 at 0 and then rise.
static struct hm_ival valley(struct hm_ival x, struct hm_ival (*at)(double))
{
    if (!(x.lo <= x.hi)) return line;
    struct hm_ival left = at(x.lo), right = x.lo == x.hi ? left : at(x.hi);
    double lo = x.lo > 0 ? left.lo : x.hi < 0 ? right.lo : 0;
    return ends(lo, left.hi > right.hi ? left.hi : right.hi);
}

struct hm_ival hm_ival_log_excess(struct hm_ival v)
{
    return v.hi < -1 ? line : valley(v, log_excess_point);
}

struct hm_ival hm_ival_exp_excess(struct hm_ival u)
{
    return valley(u, exp_excess_point);
}

enum hm_verdict hm_ival_less(struct hm_ival a, struct hm_ival b)
{
    if (a.hi < b.lo) return HM_YES;
    return a.lo >= b.hi ? HM_NO : HM_UNDECIDED;
}

enum hm_verdict hm_ival_nonnegative(struct hm_ival x)
{
    if (x.lo >= 0) return HM_YES;
    return x.hi < 0 ? HM_NO : HM_UNDECIDED;
}

bool hm_ival_narrow(struct hm_ival x)
{
    if (x.lo == x.hi) return true;
    double width = x.hi - x.lo, size = fabs(x.lo) > fabs(x.hi) ? fabs(x.lo) : fabs(x.hi);
    return width < INFINITY && (width <= size * 0x1p-34 || width <= 0x1p-64);
}
