// Matrix product of one panel with AVX2, FMA and F16C (order: kernels.h).
//
// Sixteen registers hold at most 12 chains: tiles of 16 outputs x up to 6 rows, of 32 x 2, or, for a single row, all 64
// outputs, so that the latency of the chains is hidden as well as may be. A block of 256 inputs of a panel stays in
// the first cache for all tiles, while they ask for the block after it, each for its part.
//
// Moves 64 * inputs * dtype bytes of weights per call and 4 * rows * inputs of activations, does 128 * rows * inputs
// flops.
#if defined(__x86_64__)

#include "kernels/cpu/cpu.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

enum { QUARTERS = 4, TILE_ROWS = 6 };

// A quarter of a panel is 16 outputs in two vectors. With BF16 one load of words holds outputs j .. j+7 in its low
// halves and j+16 .. j+23 in its high halves (cpu.h, hm_panel_place); otherwise the outputs simply follow each other.
INLINE size_t quarter_output(enum hm_dtype dtype, int quarter, int vector)
{
    if (dtype == HM_BF16) return (size_t)(quarter / 2 * 32 + quarter % 2 * 8 + vector * 16);
    return (size_t)(quarter * 16 + vector * 8);
}

INLINE void widen(enum hm_dtype dtype, const unsigned char *from, int quarter, __m256 to[2])
{
    if (dtype == HM_BF16) {
        __m256i words = _mm256_loadu_si256((const __m256i *)(const void *)(from + 32 * quarter));
        to[0] = _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
        to[1] = _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32((int)0xFFFF0000u)));
        return;
    }
    for (int v = 0; v < 2; v++)
        to[v] = dtype == HM_F16
                    ? _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + 32 * quarter + 16 * v)))
                    : _mm256_loadu_ps((const float *)(const void *)(from + 64 * quarter + 32 * v));
}

// What a tile asks to have in the second cache: `step` bytes from `from` on for each input. Behind the last panel this
// asks for memory that is not ours, which is harmless: a prefetch never faults.
struct ahead {
    const unsigned char *from;
    size_t step;
};

// Adds one block's chains to total[row][output] for quarters first .. first + quarters - 1.
INLINE void tile(enum hm_dtype dtype, const unsigned char *weights, const float *x, size_t stride, size_t inputs,
                 float (*total)[HM_PANEL], struct ahead ahead, int first, const int quarters, const int rows)
{
    const size_t step = dtype == HM_F32 ? 4 * HM_PANEL : 2 * HM_PANEL;
    __m256 sum[TILE_ROWS][QUARTERS][2];
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < quarters; q++) sum[r][q][0] = sum[r][q][1] = _mm256_setzero_ps();
    ahead.from += inputs * ahead.step / QUARTERS * (size_t)first;
    for (size_t i = 0; i < inputs; i++) {
        if (rows > 1) // a single row is one stream, which the machine follows by itself
            _mm_prefetch((const char *)ahead.from + i * ahead.step / QUARTERS * (size_t)quarters, _MM_HINT_T1);
        for (int q = 0; q < quarters; q++) {
            __m256 w[2];
            widen(dtype, weights + i * step, first + q, w);
            for (int r = 0; r < rows; r++) {
                __m256 xi = _mm256_set1_ps(x[(size_t)r * stride + i]);
                for (int v = 0; v < 2; v++) sum[r][q][v] = _mm256_fmadd_ps(xi, w[v], sum[r][q][v]);
            }
        }
    }
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < quarters; q++)
            for (int v = 0; v < 2; v++) {
                float *to = total[r] + quarter_output(dtype, first + q, v);
                _mm256_store_ps(to, _mm256_add_ps(_mm256_load_ps(to), sum[r][q][v]));
            }
}

INLINE void tile_of(enum hm_dtype dtype, const unsigned char *weights, const float *x, size_t stride, size_t inputs,
                    float (*total)[HM_PANEL], struct ahead ahead, size_t rows)
{
    switch (rows) {
    case 1: tile(dtype, weights, x, stride, inputs, total, ahead, 0, 4, 1); return;
    case 2:
        for (int half = 0; half < 4; half += 2) tile(dtype, weights, x, stride, inputs, total, ahead, half, 2, 2);
        return;
    case 3:
        for (int q = 0; q < QUARTERS; q++) tile(dtype, weights, x, stride, inputs, total, ahead, q, 1, 3);
        return;
    case 4:
        for (int q = 0; q < QUARTERS; q++) tile(dtype, weights, x, stride, inputs, total, ahead, q, 1, 4);
        return;
    case 5:
        for (int q = 0; q < QUARTERS; q++) tile(dtype, weights, x, stride, inputs, total, ahead, q, 1, 5);
        return;
    default:
        for (int q = 0; q < QUARTERS; q++) tile(dtype, weights, x, stride, inputs, total, ahead, q, 1, 6);
        return;
    }
}

// One block of inputs for all rows, in tiles of nearly equal height.
#define DEFINE_BLOCK(name, dtype)                                                                                      \
    static void name(const unsigned char *weights, const float *x, size_t stride, size_t inputs,                       \
                     float(*total)[HM_PANEL], size_t rows)                                                             \
    {                                                                                                                  \
        size_t step = HM_PANEL * hm_dtype_bytes(dtype), tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;                    \
        struct ahead ahead = {weights + inputs * step, step / tiles};                                                  \
        for (; tiles > 0; tiles--) {                                                                                   \
            size_t height = rows / tiles;                                                                              \
            tile_of(dtype, weights, x, stride, inputs, total, ahead, height);                                          \
            x += height * stride, total += height, rows -= height;                                                     \
            ahead.from += inputs * ahead.step;                                                                         \
        }                                                                                                              \
    }

DEFINE_BLOCK(block_f32, HM_F32)
DEFINE_BLOCK(block_f16, HM_F16)
DEFINE_BLOCK(block_bf16, HM_BF16)

void hm_matmul_panel_avx2(const struct hm_weight *weight, size_t panel, const float *x, float *y, size_t rows,
                          enum hm_store store)
{
    const unsigned char *weights = hm_panel_data(weight, panel);
    size_t inputs = weight->inputs, step = HM_PANEL * hm_dtype_bytes(weight->dtype);
    size_t first = panel * HM_PANEL, width = weight->outputs - first < HM_PANEL ? weight->outputs - first : HM_PANEL;
    _Alignas(32) float total[HM_ROWS_MOST][HM_PANEL];
    for (size_t r = 0; r < rows; r++)
        for (int lane = 0; lane < HM_PANEL; lane++) total[r][lane] = 0;

    for (size_t start = 0; start < inputs; start += HM_BLOCK) {
        size_t count = inputs - start < HM_BLOCK ? inputs - start : HM_BLOCK;
        const unsigned char *from = weights + start * step;
        switch (weight->dtype) {
        case HM_F32: block_f32(from, x + start, inputs, count, total, rows); break;
        case HM_F16: block_f16(from, x + start, inputs, count, total, rows); break;
        case HM_BF16: block_bf16(from, x + start, inputs, count, total, rows); break;
        }
    }
    for (size_t r = 0; r < rows; r++) {
        float *to = y + r * weight->outputs + first;
        if (store == HM_STORE_ADD)
            for (size_t lane = 0; lane < width; lane++) to[lane] = to[lane] + total[r][lane];
        else
            for (size_t lane = 0; lane < width; lane++) to[lane] = total[r][lane];
    }
}

#else
typedef int hm_no_matmul_avx2; // ISO C wants a declaration
#endif
