// The likeliest tokens of a row: see topk.h.
#include "decode/topk.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { LANES = 16 };

// exp(x) for x <= 0 in plain float operations (no fma, no libm), so that every compiler and instruction set returns the
// same bits: x = n ln2 + r, a degree-6 polynomial in r, scaled by 2^n. Relative error below 3e-7; 0 under -87; not for NaN.
static inline float exp_nonpositive(float x)
{
    float clamped = x < -87.0f ? -87.0f : x;
    float n = (clamped * 1.44269504f + 12582912.0f) - 12582912.0f; // nearest integer, by the usual shift
    float r = (clamped - n * 0.693145752f) - n * 1.42860677e-6f;
    float p = 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    int32_t bits = ((int32_t)n + 127) * (1 << 23);
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return x < -87.0f ? 0.0f : p * scale;
}

// NaN for a row without a finite largest logit.
static float log_sum_exp(const float *logits, size_t vocab, float largest)
{
    if (!isfinite(largest)) return NAN;
    float lane[LANES] = {0};
    size_t whole = vocab - vocab % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t j = 0; j < LANES; j++) lane[j] += exp_nonpositive(logits[i + j] - largest);
    for (size_t i = whole; i < vocab; i++) lane[i - whole] += exp_nonpositive(logits[i] - largest);
    double sum = 0;
    for (size_t j = 0; j < LANES; j++) sum += (double)lane[j];
    return largest + (float)log(sum);
}

size_t hm_topk(const float *logits, size_t vocab, size_t most, int32_t *token, float *logq)
{
    size_t kept = 0;
    bool broken = false;
    if (most == 0 || vocab == 0) return 0;
    for (size_t i = 0; i < vocab; i++) {
        float x = logits[i];
        if (isnan(x)) {
            broken = true;
            x = -INFINITY;
        }
        if (kept == most && !(x > logq[kept - 1])) continue; // an equal logit has a larger id: it comes later
        size_t at = kept < most ? kept : most - 1;
        while (at > 0 && x > logq[at - 1]) {
            logq[at] = logq[at - 1];
            token[at] = token[at - 1];
            at--;
        }
        logq[at] = x;
        token[at] = (int32_t)i;
        if (kept < most) kept++;
    }
    float lse = log_sum_exp(logits, vocab, broken ? NAN : logq[0]);
    // lse >= largest, since the sum counts the largest as exactly 1: no child scores above its parent (pool.h).
    for (size_t i = 0; i < kept; i++) logq[i] = logq[i] - lse;
    return kept;
}

void hm_log_softmax(const float *logits, size_t vocab, const int32_t *token, size_t count, float *logq)
{
    float largest = -INFINITY;
    bool broken = false;
    for (size_t i = 0; i < vocab; i++) {
        broken = broken || isnan(logits[i]);
        largest = logits[i] > largest ? logits[i] : largest;
    }
    float lse = log_sum_exp(logits, vocab, broken ? NAN : largest);
    for (size_t i = 0; i < count; i++) logq[i] = logits[token[i]] - lse;
}
