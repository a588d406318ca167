// How much two rows of one context differ: see compare.h; docs/theory.md §6.
//
// Two full rows are one pass over floats. The difference of two floats, computed in double, is finite exactly where both
// are; rounding is monotone, so the largest rounded difference is the largest difference rounded; and whether any was
// rounded at all is seen by taking it back: of d = x - y, x - d = y and d + y = x hold both exactly when d is exact, as the
// one with the larger of x and y is computed without error. Conditions are written as arithmetic on lanes, which compilers
// turn into vectors without leave to change values.
#include "evidence/compare.h"

#include "bounds/ival_math.h"
#include "evidence/match.h"

#include <float.h>
#include <math.h>
#include <string.h>

const char *hm_number_type_name(enum hm_number_type type)
{
    static const char *const names[HM_TYPES] = {"f32", "bf16", "f16"};
    return (unsigned)type < HM_TYPES ? names[type] : "unknown";
}

// ---- units in the last place

// Of a number of the type with this magnitude.
static double unit_of(double magnitude, enum hm_number_type type)
{
    static const struct { int digits, least; } types[HM_TYPES] = {{24, -149}, {8, -133}, {11, -24}};
    int exponent;
    if (!(magnitude > 0)) return ldexp(1, types[type].least);
    frexp(magnitude, &exponent);
    int unit = exponent - types[type].digits;
    return ldexp(1, unit > types[type].least ? unit : types[type].least);
}

// most and least: enclosures of the ends of the range; magnitude: of the largest |value|.
static void finish(struct hm_ival most, struct hm_ival least, struct hm_ival magnitude, enum hm_number_type type,
                   struct hm_noise *out)
{
    struct hm_ival range = hm_ival_sub(most, least);
    out->nats = (struct hm_ival){range.lo > 0 ? range.lo / 2 : 0, range.hi > 0 ? range.hi / 2 : 0}; // a double's halves
    out->unit = (struct hm_ival){unit_of(magnitude.lo, type), unit_of(magnitude.hi, type)};
    out->ulps = hm_ival_div(out->nats, out->unit);
    if (!(out->ulps.lo > 0)) out->ulps.lo = 0;
}

// ---- two full rows

enum { LANES = 32 };

struct lanes {
    double most[LANES], least[LANES], largest[LANES]; // largest: magnitude
    double shared[LANES];                             // how many
    double error[LANES];                              // the largest that a difference was rounded by
};

static void pass(const float *a, const float *b, size_t blocks, struct lanes *lanes)
{
    struct lanes l = *lanes;
    for (size_t i = 0; i < blocks; i++)
        for (int j = 0; j < LANES; j++) {
            double x = a[i * LANES + j], y = b[i * LANES + j], d = x - y;
            double size_x = fabs(x), size_y = fabs(y), size = size_x > size_y ? size_x : size_y;
            double one = fabs((x - d) - y), other = fabs((d + y) - x), error = one > other ? one : other;
            double gone = d - d; // 0, or NaN where a token is missing; then nothing below is taken
            double above = gone == 0 ? d : -INFINITY, below = gone == 0 ? d : INFINITY;
            size = gone == 0 ? size : 0.0;
            l.most[j] = above > l.most[j] ? above : l.most[j];
            l.least[j] = below < l.least[j] ? below : l.least[j];
            l.largest[j] = size > l.largest[j] ? size : l.largest[j];
            l.error[j] = error > l.error[j] ? error : l.error[j];
            l.shared[j] += gone == 0 ? 1.0 : 0.0;
        }
    *lanes = l;
}

static int32_t find_difference(const float *a, const float *b, size_t n, double d)
{
    for (size_t i = 0; i < n; i++)
        if ((double)a[i] - (double)b[i] == d) return (int32_t)i;
    return -1;
}

// A difference that may have been rounded to nearest.
static struct hm_ival widen(double d, bool rounded)
{
    return rounded ? (struct hm_ival){nextafter(d, -INFINITY), nextafter(d, INFINITY)} : hm_ival_point(d);
}

static void measure_rows(const float *a, const float *b, size_t n, enum hm_number_type type, struct hm_noise *out)
{
    struct lanes l = {0};
    float tail[2][LANES];
    for (int j = 0; j < LANES; j++) {
        l.most[j] = -INFINITY;
        l.least[j] = INFINITY;
        tail[0][j] = tail[1][j] = NAN;
    }
    size_t blocks = n / LANES, rest = n % LANES;
    memcpy(tail[0], a + blocks * LANES, rest * sizeof *a);
    memcpy(tail[1], b + blocks * LANES, rest * sizeof *b);
    pass(a, b, blocks, &l);
    pass(tail[0], tail[1], 1, &l);
    double most = -INFINITY, least = INFINITY, largest = 0, shared = 0, error = 0;
    for (int j = 0; j < LANES; j++) {
        most = fmax(most, l.most[j]);
        least = fmin(least, l.least[j]);
        largest = fmax(largest, l.largest[j]);
        shared += l.shared[j];
        error = fmax(error, l.error[j]);
    }
    out->shared = (size_t)shared;
    if (out->shared < 2) return;
    finish(widen(most, error > 0), widen(least, error > 0), hm_ival_point(largest), type, out);
    out->most = find_difference(a, b, n, most);
    out->least = find_difference(a, b, n, least);
}

// ---- lists

struct spread {
    size_t shared;
    struct hm_ival most, least, magnitude;
    double best, worst; // middles of the differences at the ends, for their names only
    int32_t most_id, least_id;
};

static bool is_finite(struct hm_ival x)
{
    return fabs(x.lo) <= DBL_MAX && fabs(x.hi) <= DBL_MAX;
}

static double magnitude_low(struct hm_ival x)
{
    return x.lo > 0 ? x.lo : x.hi < 0 ? -x.hi : 0;
}

static double magnitude_high(struct hm_ival x)
{
    return fmax(fabs(x.lo), fabs(x.hi));
}

static void add_token(void *user, const struct hm_shared_token *token)
{
    struct spread *s = user;
    if (!is_finite(token->a) || !is_finite(token->b)) return;
    struct hm_ival d = hm_ival_sub(token->a, token->b);
    double middle = d.lo / 2 + d.hi / 2;
    s->magnitude.lo = fmax(s->magnitude.lo, fmax(magnitude_low(token->a), magnitude_low(token->b)));
    s->magnitude.hi = fmax(s->magnitude.hi, fmax(magnitude_high(token->a), magnitude_high(token->b)));
    s->most = s->shared ? hm_ival_max(s->most, d) : d;
    s->least = s->shared ? hm_ival_min(s->least, d) : d;
    if (!s->shared || middle > s->best) {
        s->best = middle;
        s->most_id = token->id;
    }
    if (!s->shared || middle < s->worst) {
        s->worst = middle;
        s->least_id = token->id;
    }
    s->shared++;
}

hm_status hm_noise_measure(const struct hm_evidence *a, const struct hm_evidence *b, enum hm_number_type type,
                           struct hm_noise *out, struct hm_error *err)
{
    struct spread s = {.most_id = -1, .least_id = -1};
    *out = (struct hm_noise){.most = -1, .least = -1};
    if (a->processed != b->processed) return HM_OK;
    if (a->logits && b->logits) {
        measure_rows(a->logits, b->logits, a->vocab < b->vocab ? a->vocab : b->vocab, type, out);
        return HM_OK;
    }
    hm_status rc = hm_evidence_match(a, b, add_token, &s, err);
    out->shared = s.shared;
    if (rc || s.shared < 2) return rc;
    finish(s.most, s.least, s.magnitude, type, out);
    out->most = s.most_id;
    out->least = s.least_id;
    return HM_OK;
}
