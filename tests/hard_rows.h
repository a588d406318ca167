// Rows made to hurt: ties, ties broken by one unit, all mass on one token, flat rows, spreads of 10^3 nats and more,
// masks, subnormal and bf16 logits.
#ifndef HM_TESTS_HARD_ROWS_H
#define HM_TESTS_HARD_ROWS_H

#include "tests/certify_rows.h"

#include <string.h>

enum hard_kind {
    HARD_PLAIN, HARD_TIES, HARD_NEAR_TIES, HARD_PEAK, HARD_FLAT, HARD_SPREAD, HARD_MASKED, HARD_SUBNORMAL, HARD_BF16, HARD_HUGE,
    HARD_KINDS
};
static const char *const hard_names[HARD_KINDS] = {"plain", "ties", "near ties", "peak", "flat", "spread", "masked", "subnormal",
                                                   "bf16", "huge"};
enum { HARD_ORDINARY = 5, HARD_TEMPERATURES = 9 }; // the first HARD_ORDINARY are what people decode with
static const char *const hard_temperatures[HARD_TEMPERATURES] = {"1", "1", "1", "7/10", "3", "1/100", "123456789/1000000",
                                                                "1/1000000000000000000000000000000",
                                                                "1000000000000000000000000000000"};

static inline float as_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= UINT32_C(0xffff0000);
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float hard_logit(struct random *r, enum hard_kind kind)
{
    float plain = (float)(2 * gauss(r));
    switch (kind) {
    case HARD_TIES: return (float)below(r, 3);
    case HARD_PEAK: return plain - 20;
    case HARD_FLAT: return (float)(1 + 1e-6 * gauss(r));
    case HARD_SPREAD: return (float)(500 * gauss(r));
    case HARD_MASKED: return below(r, 3) ? plain : -INFINITY;
    case HARD_SUBNORMAL: return (float)(uniform(r) - 0.5) * 0x1p-126f;
    case HARD_BF16: return as_bf16(plain * 4);
    case HARD_HUGE: return (float)((uniform(r) - 0.5) * 6e38);
    default: return plain;
    }
}

// Fills l [vocab]; at least one logit is finite.
static inline void hard_row(struct random *r, enum hard_kind kind, float *l, size_t vocab)
{
    for (size_t i = 0; i < vocab; i++) l[i] = hard_logit(r, kind);
    if (kind == HARD_PEAK) l[below(r, vocab)] = (float)(10 * uniform(r));
    for (size_t i = 1; i < vocab && kind == HARD_NEAR_TIES; i++)
        if (below(r, 2)) l[i] = nextafterf(l[below(r, i)], below(r, 2) ? 100 : -100);
    size_t finite = below(r, vocab);
    if (l[finite] == -INFINITY) l[finite] = 0.25f;
}

#endif
