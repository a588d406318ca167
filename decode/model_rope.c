// Rotary embedding tables: see model_rope.h.
#include "decode/model_rope.h"

#include <math.h>
#include <mpfr.h>

static const double TWO_PI = 6.283185307179586;

// theta^(-2i/head_dim), correctly rounded but for a tie no input reaches.
static double plain_frequency(double theta, size_t i, size_t head_dim)
{
    mpfr_t base, power;
    mpfr_init2(base, 256);
    mpfr_init2(power, 256);
    mpfr_set_d(base, theta, MPFR_RNDN);
    mpfr_set_ui(power, 2 * (unsigned long)i, MPFR_RNDN);
    mpfr_div_ui(power, power, (unsigned long)head_dim, MPFR_RNDN);
    mpfr_neg(power, power, MPFR_RNDN);
    mpfr_pow(base, base, power, MPFR_RNDN);
    double frequency = mpfr_get_d(base, MPFR_RNDN);
    mpfr_clear(base);
    mpfr_clear(power);
    return frequency;
}

// Llama 3.1: long wavelengths are stretched by the factor, short ones kept, those between blended.
static double stretch(const struct hm_rope_config *c, double frequency)
{
    double wavelength = TWO_PI / frequency;
    if (wavelength < c->original_positions / c->high_frequency) return frequency;
    if (wavelength > c->original_positions / c->low_frequency) return frequency / c->factor;
    double smooth = (c->original_positions / wavelength - c->low_frequency) / (c->high_frequency - c->low_frequency);
    return (1 - smooth) * (frequency / c->factor) + smooth * frequency;
}

void hm_rope_frequencies(const struct hm_rope_config *config, size_t head_dim, double *frequency)
{
    for (size_t i = 0; i < head_dim / 2; i++) {
        frequency[i] = plain_frequency(config->theta, i, head_dim);
        if (config->kind == HM_ROPE_LLAMA3) frequency[i] = stretch(config, frequency[i]);
    }
}

// sin and cos of an angle in [0, 2^24]. Reduction to |r| <= pi/4 with pi/2 in two parts (the first fma is exact, since
// the angle and the product are multiples of 2^-53 that nearly cancel), then Taylor polynomials, whose first omitted
// terms are below 5e-17.
static void sine_cosine(double angle, double *sine, double *cosine)
{
    static const double HALF_PI = 0x1.921fb54442d18p+0, HALF_PI_REST = 0x1.1a62633145c07p-54;
    double quarter = floor(angle * 0.6366197723675814 + 0.5);
    double r = fma(-quarter, HALF_PI, angle);
    r = fma(-quarter, HALF_PI_REST, r);
    double q = r * r;
    double s = -1.0 / 1307674368000;
    s = fma(s, q, 1.0 / 6227020800);
    s = fma(s, q, -1.0 / 39916800);
    s = fma(s, q, 1.0 / 362880);
    s = fma(s, q, -1.0 / 5040);
    s = fma(s, q, 1.0 / 120);
    s = fma(s, q, -1.0 / 6);
    s = fma(s * q, r, r);
    double c = 1.0 / 20922789888000;
    c = fma(c, q, -1.0 / 87178291200);
    c = fma(c, q, 1.0 / 479001600);
    c = fma(c, q, -1.0 / 3628800);
    c = fma(c, q, 1.0 / 40320);
    c = fma(c, q, -1.0 / 720);
    c = fma(c, q, 1.0 / 24);
    c = fma(c, q, -1.0 / 2);
    c = fma(c, q, 1.0);
    switch ((long long)quarter & 3) {
    case 0: *sine = s, *cosine = c; break;
    case 1: *sine = c, *cosine = -s; break;
    case 2: *sine = -s, *cosine = -c; break;
    default: *sine = -c, *cosine = s; break;
    }
}

void hm_rope_fill(const double *frequency, size_t pairs, size_t first, size_t count, float *cosine, float *sine)
{
    for (size_t n = first; n < first + count; n++)
        for (size_t i = 0; i < pairs; i++) {
            double s, c;
            sine_cosine((double)n * frequency[i], &s, &c);
            cosine[n * pairs + i] = (float)c;
            sine[n * pairs + i] = (float)s;
        }
}
