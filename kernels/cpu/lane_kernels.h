// Norm, rotation, activation and attention, written once on sixteen lanes (lanes.h) and compiled for each instruction
// set: kernels_portable.c, kernels_avx2.c and kernels_avx512.c include this file and name their table.
//
// Costs, per row: rms_norm moves 12 width bytes (x twice from cache) and does 4 width flops; rope 16 half bytes and
// 8 half flops; silu_mul 12 width bytes and about 25 width flops.
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/lanes.h"

#include <math.h>
#include <string.h>

static void rms_norm(const float *x, const float *gain, float *y, size_t width, float eps)
{
    size_t whole = width / 16 * 16;
    lanes squares = lanes_set(0);
    for (size_t i = 0; i < whole; i += 16) squares = lanes_fma(lanes_load(x + i), lanes_load(x + i), squares);
    float sum[16];
    lanes_store(sum, squares);
    for (size_t i = whole; i < width; i++) sum[i - whole] = fmaf(x[i], x[i], sum[i - whole]);
    float scale = 1.0f / sqrtf(lanes_fold(lanes_load(sum)) / (float)width + eps);
    for (size_t i = 0; i < whole; i += 16)
        lanes_store(y + i, lanes_mul(lanes_mul(lanes_load(x + i), lanes_set(scale)), lanes_load(gain + i)));
    for (size_t i = whole; i < width; i++) y[i] = x[i] * scale * gain[i];
}

static void rope(const float *cosine, const float *sine, float *head, size_t half)
{
    size_t i = 0;
    for (; i + 16 <= half; i += 16) {
        lanes a = lanes_load(head + i), b = lanes_load(head + half + i);
        lanes c = lanes_load(cosine + i), s = lanes_load(sine + i);
        lanes minus_b = lanes_mul(b, lanes_set(-1.0f));
        lanes_store(head + i, lanes_fma(minus_b, s, lanes_mul(a, c)));
        lanes_store(head + half + i, lanes_fma(a, s, lanes_mul(b, c)));
    }
    for (; i < half; i++) {
        float a = head[i], b = head[half + i];
        head[i] = fmaf(-b, sine[i], a * cosine[i]);
        head[half + i] = fmaf(a, sine[i], b * cosine[i]);
    }
}

// Sixteen values of silu(gate) * up.
INLINE lanes silu_mul_lanes(lanes gate, lanes up)
{
    lanes below = lanes_add(lanes_set(1.0f), lanes_exp(lanes_mul(gate, lanes_set(-1.0f))));
    return lanes_mul(lanes_div(gate, below), up);
}

static void silu_mul(const float *gate, const float *up, float *y, size_t width)
{
    size_t i = 0;
    for (; i + 16 <= width; i += 16) lanes_store(y + i, silu_mul_lanes(lanes_load(gate + i), lanes_load(up + i)));
    if (i == width) return;
    float last_gate[16] = {0}, last_up[16] = {0}, last[16];
    memcpy(last_gate, gate + i, (width - i) * sizeof *gate);
    memcpy(last_up, up + i, (width - i) * sizeof *up);
    lanes_store(last, silu_mul_lanes(lanes_load(last_gate), lanes_load(last_up)));
    memcpy(y + i, last, (width - i) * sizeof *y);
}

static void exp_all(const float *x, float *y, size_t count)
{
    size_t i = 0;
    for (; i + 16 <= count; i += 16) lanes_store(y + i, lanes_exp(lanes_load(x + i)));
    if (i == count) return;
    float last[16] = {0};
    memcpy(last, x + i, (count - i) * sizeof *x);
    lanes_store(last, lanes_exp(lanes_load(last)));
    memcpy(y + i, last, (count - i) * sizeof *y);
}

// Reads whole cache lines and nothing else; the sum keeps the compiler from leaving it out.
static float read_all(const float *from, size_t floats)
{
    lanes sum[4] = {lanes_set(0), lanes_set(0), lanes_set(0), lanes_set(0)};
    for (size_t i = 0; i < floats; i += 64)
        for (int j = 0; j < 4; j++) sum[j] = lanes_max(sum[j], lanes_load(from + i + 16 * (size_t)j));
    return lanes_fold(lanes_max(lanes_max(sum[0], sum[1]), lanes_max(sum[2], sum[3])));
}

// Independent chains of fma in registers: enough of them to hide the latency, few enough to stay there.
enum { BURST_CHAINS = VECTOR_REGISTERS == 32 ? 12 : 6 };

static float burst(size_t repeats, double *flops)
{
    lanes chain[BURST_CHAINS], factor = lanes_set(0.999f), term = lanes_set(1e-3f);
    for (int j = 0; j < BURST_CHAINS; j++) chain[j] = lanes_set((float)j);
    for (size_t i = 0; i < repeats; i++)
        for (int j = 0; j < BURST_CHAINS; j++) chain[j] = lanes_fma(chain[j], factor, term);
    lanes sum = chain[0];
    for (int j = 1; j < BURST_CHAINS; j++) sum = lanes_add(sum, chain[j]);
    *flops = 2.0 * 16 * BURST_CHAINS * (double)repeats;
    return lanes_fold(sum);
}

#include "kernels/cpu/lane_attention.h"

#define HM_CPU_KERNELS(label, panel)                                                                                   \
    {                                                                                                                  \
        .name = label, .matmul_panel = panel, .attention = attention, .rms_norm = rms_norm, .rope = rope,              \
        .silu_mul = silu_mul, .exp = exp_all, .read = read_all, .burst = burst                                         \
    }
