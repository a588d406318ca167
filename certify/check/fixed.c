// Exponentials in fixed point: see fixed.h.
//
// 2^-x with x = n + f: f is cut into three digits of eight bits, each with a table, and a rest r below 2^-24, for which
// five terms of the exponential series leave less than 2^-126. Numbers are multiples of 2^-127 here; each product and
// table entry is short by at most a unit, the series by a few, and 64 are taken off at the end, so that the result is
// never too large and short by less than 128 units, which is nothing in units of 2^-106.
#include "certify/check/fixed.h"

#include <math.h>
#include <pthread.h>

static ck_u128 table[3][256], ln2;
static const ck_u128 one = (ck_u128)1 << 127;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// A number in [0, 1] as a multiple of 2^-127, rounded down.
static ck_u128 units(mpfr_t x)
{
    mpz_t n;
    mpz_init(n);
    mpfr_mul_2ui(x, x, 127, MPFR_RNDN);
    mpfr_get_z(n, x, MPFR_RNDD);
    ck_u128 high = 0;
    mpz_t part;
    mpz_init(part);
    mpz_fdiv_q_2exp(part, n, 64);
    high = mpz_get_ui(part);
    mpz_fdiv_r_2exp(part, n, 64);
    high = high << 64 | mpz_get_ui(part);
    mpz_clears(n, part, NULL);
    return high;
}

static void make_tables(void)
{
    mpfr_t x;
    mpfr_init2(x, 256);
    for (int digit = 0; digit < 3; digit++)
        for (unsigned long i = 0; i < 256; i++) {
            mpfr_set_ui_2exp(x, i, -8 * (digit + 1), MPFR_RNDN);
            mpfr_neg(x, x, MPFR_RNDN);
            mpfr_exp2(x, x, MPFR_RNDD);
            table[digit][i] = units(x);
        }
    mpfr_const_log2(x, MPFR_RNDD);
    ln2 = units(x);
    mpfr_clear(x);
}

static void multiply(ck_u128 a, ck_u128 b, ck_u128 *high, ck_u128 *low)
{
    uint64_t a0 = (uint64_t)a, a1 = (uint64_t)(a >> 64), b0 = (uint64_t)b, b1 = (uint64_t)(b >> 64);
    ck_u128 p00 = (ck_u128)a0 * b0, p01 = (ck_u128)a0 * b1, p10 = (ck_u128)a1 * b0, p11 = (ck_u128)a1 * b1;
    ck_u128 middle = (p00 >> 64) + (uint64_t)p01 + (uint64_t)p10;
    *low = middle << 64 | (uint64_t)p00;
    *high = p11 + (p01 >> 64) + (p10 >> 64) + (middle >> 64);
}

static ck_u128 times(ck_u128 a, ck_u128 b) // of multiples of 2^-127, rounded down
{
    ck_u128 high, low;
    multiply(a, b, &high, &low);
    return high << 1 | low >> 127;
}

// x has 108 bits after the point.
static ck_u128 power(ck_u128 x)
{
    unsigned n = (unsigned)(x >> 108);
    uint32_t digits = (uint32_t)(x >> 84) & 0xffffff;
    ck_u128 rest = x & (((ck_u128)1 << 84) - 1);
    ck_u128 t = times(rest << 19, ln2), t2 = times(t, t), t3 = times(t2, t), t4 = times(t2, t2);
    ck_u128 v = one - t + t2 / 2 - t3 / 6 + t4 / 24;
    v = times(v, times(table[0][digits >> 16], times(table[1][digits >> 8 & 255], table[2][digits & 255])));
    n += 127 - CK_UNIT;
    return n >= 128 ? 0 : (v - 64) >> n;
}

void ck_scale_set(struct ck_scale *scale, mpq_srcptr factor)
{
    mpfr_t x, ln;
    mpz_t mantissa, part;
    pthread_once(&once, make_tables);
    mpfr_inits2(128, x, ln, (mpfr_ptr)0);
    mpz_inits(mantissa, part, NULL);
    mpfr_const_log2(ln, MPFR_RNDD);
    mpfr_set_q(x, factor, MPFR_RNDU);
    mpfr_div(x, x, ln, MPFR_RNDU);
    long exponent = mpfr_get_z_2exp(mantissa, x); // x = mantissa 2^exponent, 128 bits
    mpz_fdiv_q_2exp(part, mantissa, 64);
    scale->mantissa = (ck_u128)mpz_get_ui(part) << 64;
    mpz_fdiv_r_2exp(part, mantissa, 64);
    scale->mantissa |= mpz_get_ui(part);
    long shift = CK_DEPTH - 108 - exponent;
    scale->shift = shift > 255 ? 255 : shift < -200 ? -200 : (int)shift;
    mpfr_clears(x, ln, (mpfr_ptr)0);
    mpz_clears(mantissa, part, NULL);
}

ck_u128 ck_weight_at(const struct ck_scale *scale, ck_u128 depth)
{
    ck_u128 high, low, x;
    if (depth == 0) return (ck_u128)1 << CK_UNIT;
    multiply(depth, scale->mantissa, &high, &low);
    int s = scale->shift;
    if (s <= 0) return 0; // beyond any weight: 2^-x with x of 2^19 at least
    if (s >= 128)
        x = s == 128 ? high : high >> (s - 128);
    else if (high >> (s - 1))
        return 0;
    else
        x = high << (128 - s) | low >> s;
    if (x >> 127) return 0;
    return power(x + 1); // up, as the mantissa: the weight may only be short
}

bool ck_is_regular(float logit)
{
    double x = ldexp(logit, CK_DEPTH);
    return fabsf(logit) < 0x1p20f && x == floor(x);
}

ck_i128 ck_exact(float logit)
{
    return (ck_i128)ldexp(logit, CK_DEPTH);
}

void ck_wide_add_product(struct ck_wide *sum, ck_u128 a, ck_u128 b)
{
    ck_u128 high, low;
    multiply(a, b, &high, &low);
    sum->low += low;
    sum->high += high + (sum->low < low);
}

void ck_set_unsigned(mpfr_t r, ck_u128 n, long exponent, mpfr_rnd_t round)
{
    mpfr_t t;
    mpfr_init2(t, 128);
    mpfr_set_ui_2exp(t, (uint64_t)(n >> 64), 64, MPFR_RNDN);
    mpfr_add_ui(t, t, (uint64_t)n, MPFR_RNDN);
    mpfr_mul_2si(r, t, exponent, round);
    mpfr_clear(t);
}

void ck_set_signed(mpfr_t r, ck_i128 n, long exponent, mpfr_rnd_t round)
{
    bool negative = n < 0;
    mpfr_rnd_t other = round == MPFR_RNDD ? MPFR_RNDU : round == MPFR_RNDU ? MPFR_RNDD : round;
    ck_set_unsigned(r, negative ? -(ck_u128)n : (ck_u128)n, exponent, negative ? other : round);
    if (negative) mpfr_neg(r, r, round);
}

void ck_set_wide(mpfr_t r, struct ck_wide n, long exponent, mpfr_rnd_t round)
{
    mpfr_t high, low;
    mpfr_init2(high, 256);
    mpfr_init2(low, 128);
    ck_set_unsigned(high, n.high, 128, MPFR_RNDN);
    ck_set_unsigned(low, n.low, 0, MPFR_RNDN);
    mpfr_add(high, high, low, MPFR_RNDN);
    mpfr_mul_2si(r, high, exponent, round);
    mpfr_clears(high, low, (mpfr_ptr)0);
}
