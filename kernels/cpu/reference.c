// The plain version of every kernel: see reference.h.
#include "kernels/cpu/reference.h"

#include "kernels/cpu/exp.h"
#include "kernels/cpu/widen.h"

#include <math.h>

float hm_reference_exp(float x)
{
    x = HM_EXP_LEAST > x ? HM_EXP_LEAST : x; // in this form a NaN stays
    x = HM_EXP_MOST < x ? HM_EXP_MOST : x;
    float t = fmaf(x, HM_EXP_LOG2E, HM_EXP_MAGIC);
    float n = t - HM_EXP_MAGIC;
    float r = fmaf(n, -HM_EXP_LN2_LOW, fmaf(n, -HM_EXP_LN2_HIGH, x));
    float p = fmaf(HM_EXP_C4, r, HM_EXP_C3);
    p = fmaf(p, r, HM_EXP_C2);
    p = fmaf(p, r, HM_EXP_C1);
    p = fmaf(p, r, HM_EXP_C0);
    p = fmaf(p, r * r, r) + 1.0f;
    int32_t power = (int32_t)(hm_float_bits(t) - hm_float_bits(HM_EXP_MAGIC)); // n, as an integer
    int32_t first = power >> 1, second = power - first;
    return p * hm_float_from_bits((uint32_t)(first + 127) << 23) * hm_float_from_bits((uint32_t)(second + 127) << 23);
}

float hm_reference_fold(const float lanes[16])
{
    float sum[16];
    memcpy(sum, lanes, sizeof sum);
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) sum[i] = sum[i] + sum[i + half];
    return sum[0];
}

// One output: blocks of 256, each one chain from +0, added in order to +0.
static float dot(const void *weights, enum hm_dtype dtype, size_t output, size_t inputs, const float *x)
{
    float total = 0;
    for (size_t start = 0; start < inputs; start += 256) {
        size_t end = inputs - start < 256 ? inputs : start + 256;
        float block = 0;
        for (size_t i = start; i < end; i++) block = fmaf(x[i], hm_widen(dtype, weights, output * inputs + i), block);
        total = total + block;
    }
    return total;
}

void hm_reference_matmul(const void *weights, enum hm_dtype dtype, size_t outputs, size_t inputs, const float *x,
                         float *y, size_t rows)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < outputs; o++) y[r * outputs + o] = dot(weights, dtype, o, inputs, x + r * inputs);
}

void hm_reference_matmul_add(const void *weights, enum hm_dtype dtype, size_t outputs, size_t inputs, const float *x,
                             float *y, size_t rows)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < outputs; o++)
            y[r * outputs + o] = y[r * outputs + o] + dot(weights, dtype, o, inputs, x + r * inputs);
}

void hm_reference_rms_norm(const float *x, const float *gain, float *y, size_t width, float eps)
{
    float lanes[16] = {0};
    for (size_t i = 0; i < width; i++) lanes[i % 16] = fmaf(x[i], x[i], lanes[i % 16]);
    float mean = hm_reference_fold(lanes) / (float)width;
    float scale = 1.0f / sqrtf(mean + eps);
    for (size_t i = 0; i < width; i++) y[i] = x[i] * scale * gain[i];
}

void hm_reference_rope(const float *cosine, const float *sine, float *head, size_t half)
{
    for (size_t i = 0; i < half; i++) {
        float a = head[i], b = head[half + i];
        head[i] = fmaf(-b, sine[i], a * cosine[i]);
        head[half + i] = fmaf(a, sine[i], b * cosine[i]);
    }
}

void hm_reference_silu_mul(const float *gate, const float *up, float *y, size_t width)
{
    for (size_t i = 0; i < width; i++) y[i] = gate[i] / (1.0f + hm_reference_exp(-gate[i])) * up[i];
}

static size_t slot_of(const struct hm_visible *visible, size_t position)
{
    return position < visible->prefix ? position : visible->tail[position - visible->prefix];
}

// scale * (q . key): 16 lanes over the head, each one chain from +0, folded in halves.
static float score_of(const float *q, const float *key, size_t head_dim, float scale)
{
    float lanes[16] = {0};
    for (size_t i = 0; i < head_dim; i++) lanes[i % 16] = fmaf(q[i], key[i], lanes[i % 16]);
    return hm_reference_fold(lanes) * scale;
}

void hm_reference_attention(const struct hm_attention_shape *shape, const struct hm_visible *visible, const float *q,
                            const float *keys, const float *values, float *out, float *score)
{
    size_t d = shape->head_dim, width = shape->kv_heads * d, length = (size_t)visible->prefix + visible->tail_length;
    for (size_t h = 0; h < shape->heads; h++) {
        size_t column = h / (shape->heads / shape->kv_heads) * d;
        float most = -INFINITY;
        for (size_t j = 0; j < length; j++) {
            score[j] = score_of(q + h * d, keys + slot_of(visible, j) * width + column, d, shape->scale);
            most = score[j] > most ? score[j] : most;
        }
        float sum = 0, *total = out + h * d;
        for (size_t i = 0; i < d; i++) total[i] = 0;
        for (size_t start = 0; start < length; start += 64) {
            size_t end = length - start < 64 ? length : start + 64;
            float block_sum = 0, block[256] = {0};
            for (size_t j = start; j < end; j++) {
                float weight = hm_reference_exp(score[j] - most);
                const float *value = values + slot_of(visible, j) * width + column;
                block_sum = block_sum + weight;
                for (size_t i = 0; i < d; i++) block[i] = fmaf(weight, value[i], block[i]);
            }
            sum = sum + block_sum;
            for (size_t i = 0; i < d; i++) total[i] = total[i] + block[i];
        }
        for (size_t i = 0; i < d; i++) total[i] = total[i] / sum;
    }
}
