// The loops of row_pass.h, written once over 32 lanes; each row_pass_*.c compiles them for its instruction set and gives
// them its name. Derivations: docs/filter.md. Sums are two-level: 64 steps per lane, then one addition to the lane.
#ifndef HM_PASS_NAME
#error "the file that includes this names its instruction set"
#endif

#include "bounds/row_pass.h"
#include "bounds/row_pass_pack.h"

#include <float.h>
#include <math.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0 && DBL_MANT_DIG == 53, "the error bounds are those of IEEE doubles");

// ln 2 = LN2_HIGH + LN2_LOW to 2^-81; LN2_HIGH has 27 bits, so that its multiples by up to 2^26 are exact.
#define LN2_HIGH 0x1.62e42fcp-1
#define LN2_LOW 0x1.7d1cf79abc9e4p-28
// A loop whose body the compiler writes out, so that arrays indexed by it are registers.
#if defined(__clang__)
#define EACH(i, n) _Pragma("unroll") for (int i = 0; i < (n); i++) // NOLINT(bugprone-macro-parentheses)
#else
#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++) // NOLINT(bugprone-macro-parentheses)
#endif
#define ROUNDER 0x1.8p52 // adding it rounds to an integer and leaves that in the low bits

struct weigher {
    pack inverse, inverse_low, log2, top, floor, shifted;
    bool plain; // T = 1
};

INLINE struct weigher weigher_of(const struct hm_weight_scale *s, bool plain)
{
    return (struct weigher){pack_set(s->inverse), pack_set(s->inverse_low), pack_set(s->log2), pack_set(s->top),
                            pack_set(s->floor),   pack_set(s->shifted),     plain};
}

// e^r = 1 + r + r^2 (...): within 0.15 * 2^-53 of it for |r| <= 0.34658.
static const double exp_series[] = {
    0x1.af38a0d2d962p-26,  0x1.28917e2c43a66p-22, 0x1.71de0db21e27fp-19, 0x1.a019b9133a48ap-16,
    0x1.a01a01a7c327ap-13, 0x1.6c16c1788a49bp-10, 0x1.11111111109b4p-7,  0x1.5555555553d67p-5,
    0x1.5555555555556p-3,  0x1.0000000000001p-1,  1.0,                   1.0};
enum { EXP_TERMS = sizeof exp_series / sizeof *exp_series };

// HM_LANES logits: their weights, added to one lane each. AT_ONCE packs go side by side: a single chain of dependent
// operations would wait for each.
INLINE void weigh_step(const float *l, const struct weigher *s, double *w, struct hm_lanes *sum,
                       struct hm_lanes *moment)
{
    enum { AT_ONCE = 4 };
    for (int start = 0; start < HM_LANES; start += AT_ONCE * PACK) {
        pack x[AT_ONCE], shifted[AT_ONCE], r[AT_ONCE], y[AT_ONCE];
        EACH(i, AT_ONCE)
        {
            x[i] = pack_max(pack_widen(l + start + i * PACK), s->floor);
            shifted[i] = pack_fma(x[i], s->log2, pack_set(ROUNDER));
            pack k = pack_sub(shifted[i], pack_set(ROUNDER));
            if (s->plain) { // T = 1
                r[i] = pack_fnma(k, pack_set(LN2_LOW), pack_fnma(k, pack_set(LN2_HIGH), x[i]));
            } else {
                r[i] = pack_fms(x[i], s->inverse, pack_mul(k, pack_set(LN2_HIGH))); // the product with k is exact
                r[i] = pack_add(r[i], pack_fms(x[i], s->inverse_low, pack_mul(k, pack_set(LN2_LOW))));
            }
            y[i] = pack_set(exp_series[0]);
        }
        EACH(term, EXP_TERMS - 1)
        EACH(i, AT_ONCE) y[i] = pack_fma(y[i], r[i], pack_set(exp_series[term + 1]));
        EACH(i, AT_ONCE)
        {
            int j = start + i * PACK;
            pack v = pack_scale(y[i], shifted[i], s->shifted);
            pack_store(w + j, v);
            pack_store(sum->at + j, pack_add(pack_load(sum->at + j), v));
            pack_store(moment->at + j, pack_fma(v, pack_sub(s->top, x[i]), pack_load(moment->at + j)));
        }
    }
}

INLINE void lanes_add(struct hm_lanes *restrict to, const struct hm_lanes *restrict from)
{
    for (int j = 0; j < HM_LANES; j++) to->at[j] += from->at[j];
}

INLINE void weigh_all(const float *logits, size_t count, const struct hm_weight_scale *scale, bool plain,
                      double *weights, struct hm_lanes *sum, struct hm_lanes *moment)
{
    const struct weigher s = weigher_of(scale, plain);
    size_t i = 0;
    while (count - i >= HM_LANES) {
        struct hm_lanes a = {{0}}, b = {{0}};
        for (int step = 0; step < HM_PASS_STEPS && count - i >= HM_LANES; step++, i += HM_LANES)
            weigh_step(logits + i, &s, weights + i, &a, &b);
        lanes_add(sum, &a);
        lanes_add(moment, &b);
    }
    if (i == count) return;
    float rest[HM_LANES];
    double w[HM_LANES];
    struct hm_lanes a = {{0}}, b = {{0}};
    for (size_t j = 0; j < HM_LANES; j++) rest[j] = j < count - i ? logits[i + j] : -INFINITY;
    weigh_step(rest, &s, w, &a, &b);
    memcpy(weights + i, w, (count - i) * sizeof *w);
    lanes_add(sum, &a);
    lanes_add(moment, &b);
}

struct comparer {
    pack inverse, inverse_low, log_ratio, log_ratio_low, ratio;
};

INLINE struct comparer comparer_of(const struct hm_pair_scale *s)
{
    return (struct comparer){pack_set(s->inverse), pack_set(s->inverse_low), pack_set(s->log_ratio),
                             pack_set(s->log_ratio_low), pack_set(s->ratio)};
}

// cosh r - 1 = r^2 (...) and sinh r - r = r^3 (...), both series in r^2, for |r| <= 1/4: Taylor to r^10 and r^11.
static const double even_series[] = {1.0 / 3628800, 1.0 / 40320, 1.0 / 720, 1.0 / 24, 0.5};
static const double odd_series[] = {1.0 / 39916800, 1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6};
enum { PAIR_TERMS = sizeof even_series / sizeof *even_series };

INLINE void lanes_add_pack(struct hm_lanes *lanes, int j, pack x)
{
    pack_store(lanes->at + j, pack_add(pack_load(lanes->at + j), x));
}

// HM_LANES tokens: the four terms of each, from the series where |r| <= 1/4 and from p - q elsewhere. gaps: NULL, or where
// each p - q goes as well.
INLINE void compare_step(const float *l, const float *d, const double *a, const double *b, const struct comparer *s,
                         struct hm_pair_lanes *out, double *gaps)
{
    enum { AT_ONCE = 4 };
    const pack least = pack_set(-FLT_MAX), edge = pack_set(HM_PAIR_EDGE);
    for (int start = 0; start < HM_LANES; start += AT_ONCE * PACK) {
        pack r[AT_ONCE], r2[AT_ONCE], even[AT_ONCE], odd[AT_ONCE];
        EACH(i, AT_ONCE)
        {
            int j = start + i * PACK;
            pack e = pack_sub(pack_max(pack_widen(l + j), least), pack_max(pack_widen(d + j), least));
            r[i] = pack_fms(e, s->inverse, s->log_ratio);
            r[i] = pack_add(r[i], pack_fms(e, s->inverse_low, s->log_ratio_low));
            r2[i] = pack_mul(r[i], r[i]);
            even[i] = pack_set(even_series[0]);
            odd[i] = pack_set(odd_series[0]);
        }
        EACH(term, PAIR_TERMS - 1)
        EACH(i, AT_ONCE)
        {
            even[i] = pack_fma(even[i], r2[i], pack_set(even_series[term + 1]));
            odd[i] = pack_fma(odd[i], r2[i], pack_set(odd_series[term + 1]));
        }
        EACH(i, AT_ONCE)
        {
            int j = start + i * PACK;
            pack p = pack_load(a + j), q = pack_mul(pack_load(b + j), s->ratio), size = pack_abs(r[i]);
            pack gap = pack_sub(p, q);
            pack down = pack_mul(pack_mul(p, r2[i]), pack_fnma(odd[i], r[i], even[i])); // p (e^-r - 1 + r)
            pack up = pack_mul(pack_mul(q, r2[i]), pack_fma(odd[i], r[i], even[i]));    // q (e^r - 1 - r)
            // p r = down + gap: each follows from the other, and the better of the two depends on r
            pack known = pack_choose(size, edge, down, gap), other = pack_fms(p, r[i], known);
            lanes_add_pack(&out->forward, j, pack_choose(size, edge, known, other));
            lanes_add_pack(&out->backward, j, pack_choose(size, edge, up, pack_fnma(q, r[i], gap)));
            gap = pack_choose(size, edge, other, known);
            lanes_add_pack(&out->gap, j, gap);
            lanes_add_pack(&out->size, j, pack_abs(gap));
            if (gaps) pack_store(gaps + j, gap);
        }
    }
}

INLINE void pair_add(struct hm_pair_lanes *to, const struct hm_pair_lanes *from)
{
    lanes_add(&to->forward, &from->forward);
    lanes_add(&to->backward, &from->backward);
    lanes_add(&to->gap, &from->gap);
    lanes_add(&to->size, &from->size);
}

static void weigh(const float *logits, size_t count, const struct hm_weight_scale *scale, double *weights,
                  struct hm_lanes *sum, struct hm_lanes *moment)
{
    if (scale->inverse == 1 && scale->inverse_low == 0) weigh_all(logits, count, scale, true, weights, sum, moment);
    else weigh_all(logits, count, scale, false, weights, sum, moment);
}

INLINE void compare_all(const float *p, const float *q, const double *weights_p, const double *weights_q, size_t count,
                        const struct hm_pair_scale *scale, struct hm_pair_lanes *out, double *gaps)
{
    const struct comparer s = comparer_of(scale);
    size_t i = 0;
    while (count - i >= HM_LANES) {
        struct hm_pair_lanes sums = {0};
        for (int step = 0; step < HM_PASS_STEPS && count - i >= HM_LANES; step++, i += HM_LANES)
            compare_step(p + i, q + i, weights_p + i, weights_q + i, &s, &sums, gaps ? gaps + i : NULL);
        pair_add(out, &sums);
    }
    if (i == count) return;
    float l[HM_LANES] = {0}, d[HM_LANES] = {0};
    double a[HM_LANES] = {0}, b[HM_LANES] = {0}, rest[HM_LANES];
    struct hm_pair_lanes sums = {0};
    memcpy(l, p + i, (count - i) * sizeof *l);
    memcpy(d, q + i, (count - i) * sizeof *d);
    memcpy(a, weights_p + i, (count - i) * sizeof *a);
    memcpy(b, weights_q + i, (count - i) * sizeof *b);
    compare_step(l, d, a, b, &s, &sums, gaps ? rest : NULL);
    pair_add(out, &sums);
    if (gaps) memcpy(gaps + i, rest, (count - i) * sizeof *gaps);
}

static void compare(const float *p, const float *q, const double *weights_p, const double *weights_q, size_t count,
                    const struct hm_pair_scale *scale, struct hm_pair_lanes *out)
{
    compare_all(p, q, weights_p, weights_q, count, scale, out, NULL);
}

static void list_gaps(const float *p, const float *q, const double *weights_p, const double *weights_q, size_t count,
                      const struct hm_pair_scale *scale, double *gaps)
{
    struct hm_pair_lanes unused = {0};
    compare_all(p, q, weights_p, weights_q, count, scale, &unused, gaps);
}

static void overlap(const double *weights_p, const double *weights_q, size_t count, double ratio, struct hm_lanes *sum)
{
    for (size_t i = 0; i < count;) {
        struct hm_lanes lanes = {{0}};
        for (int step = 0; step < HM_PASS_STEPS && i < count; step++, i += HM_LANES) {
            size_t n = count - i < HM_LANES ? count - i : HM_LANES;
            for (size_t j = 0; j < n; j++) {
                double p = weights_p[i + j], q = weights_q[i + j] * ratio;
                lanes.at[j] += p < q ? p : q;
            }
        }
        lanes_add(sum, &lanes);
    }
}

static void look(const float *logits, size_t count, float *maxima, struct hm_look *out)
{
    *out = (struct hm_look){0, false};
    for (size_t i = 0; i < count; i += HM_LOOK_BLOCK) {
        float block[HM_LOOK_BLOCK];
        const float *l = logits + i;
        if (count - i < HM_LOOK_BLOCK) {
            for (size_t j = 0; j < HM_LOOK_BLOCK; j++) block[j] = j < count - i ? l[j] : -INFINITY;
            l = block;
        }
        out->finite += look_block(l, &maxima[i / HM_LOOK_BLOCK], &out->bad);
    }
}

INLINE void spread_step(const float *restrict l, float floor, uint32_t *restrict largest, uint32_t *restrict least)
{
    for (int j = 0; j < HM_LANES; j++) {
        uint32_t bits;
        memcpy(&bits, &l[j], sizeof bits);
        bits &= UINT32_C(0x7fffffff) & -(uint32_t)(l[j] >= floor); // no branch: compilers make vectors of this
        largest[j] = bits > largest[j] ? bits : largest[j];
        least[j] = bits - 1 < least[j] ? bits - 1 : least[j]; // zero wraps to the largest
    }
}

static void spread(const float *logits, size_t count, float floor, struct hm_spread *out)
{
    uint32_t largest[HM_LANES] = {0}, least[HM_LANES];
    float rest[HM_LANES] = {0};
    size_t i = 0;
    for (int j = 0; j < HM_LANES; j++) least[j] = UINT32_MAX;
    for (; count - i >= HM_LANES; i += HM_LANES) spread_step(logits + i, floor, largest, least);
    memcpy(rest, logits + i, (count - i) * sizeof *rest);
    spread_step(rest, floor, largest, least);
    *out = (struct hm_spread){0, UINT32_MAX};
    for (int j = 0; j < HM_LANES; j++) {
        if (largest[j] > out->largest) out->largest = largest[j];
        if (least[j] < out->least) out->least = least[j];
    }
}

#define HM_PASS_STRING_(name) #name
#define HM_PASS_STRING(name) HM_PASS_STRING_(name)
#define HM_PASS_JOIN_(name) hm_row_passes_##name
#define HM_PASS_JOIN(name) HM_PASS_JOIN_(name)

const struct hm_row_passes HM_PASS_JOIN(HM_PASS_NAME) = {
    HM_PASS_STRING(HM_PASS_NAME), look, weigh, compare, list_gaps, overlap, spread};
