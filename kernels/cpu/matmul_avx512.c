// Matrix product of one panel with AVX-512 (order: kernels.h).
//
// A tile of 64 outputs x up to 6 rows keeps its chains in 24 registers; the weights of one input are widened once for
// all rows of the tile. A block of 256 inputs of a panel (32 KiB in BF16) stays in the first cache for all tiles, while
// they ask for the block after it, each for its part: memory is busy all the time, not only during the first tile.
//
// Moves 64 * inputs * dtype bytes of weights per call and 4 * rows * inputs of activations, does 128 * rows * inputs
// flops: 24 fma, 6 broadcasts and 2 to 4 weight loads per input and tile.
#if defined(__x86_64__)

#include "kernels/cpu/cpu.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

enum { VECTORS = HM_PANEL / 16, TILE_ROWS = 6 };

// The 64 weights of one input, in order of output.
INLINE void widen(enum hm_dtype dtype, const unsigned char *from, __m512 to[VECTORS])
{
    switch (dtype) {
    case HM_F32:
        for (int v = 0; v < VECTORS; v++) to[v] = _mm512_loadu_ps((const float *)(const void *)(from + 64 * v));
        break;
    case HM_F16:
        for (int v = 0; v < VECTORS; v++)
            to[v] = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(from + 32 * v)));
        break;
    case HM_BF16: // cpu.h, hm_panel_place
        for (int v = 0; v < VECTORS; v += 2) {
            __m512i words = _mm512_loadu_si512(from + 32 * v);
            to[v] = _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
            to[v + 1] = _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32((int)0xFFFF0000u)));
        }
        break;
    }
}

// What a tile asks to have in the second cache: `step` bytes from `from` on for each input. Behind the last panel this
// asks for memory that is not ours, which is harmless: a prefetch never faults.
struct ahead {
    const unsigned char *from;
    size_t step;
};

// Adds one block's chains to total[row][output].
INLINE void tile(enum hm_dtype dtype, const unsigned char *weights, const float *x, size_t stride, size_t inputs,
                 float (*total)[HM_PANEL], struct ahead ahead, const int rows)
{
    const size_t step = dtype == HM_F32 ? 4 * HM_PANEL : 2 * HM_PANEL;
    __m512 sum[TILE_ROWS][VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++) sum[r][v] = _mm512_setzero_ps();
    for (size_t i = 0; i < inputs; i++) {
        __m512 w[VECTORS];
        widen(dtype, weights + i * step, w);
        if (rows > 1) { // a single row is one stream, which the machine follows by itself
            _mm_prefetch((const char *)ahead.from + i * ahead.step, _MM_HINT_T1);
            _mm_prefetch((const char *)ahead.from + i * ahead.step + ahead.step / 2, _MM_HINT_T1);
        }
        for (int r = 0; r < rows; r++) {
            __m512 xi = _mm512_set1_ps(x[(size_t)r * stride + i]);
            for (int v = 0; v < VECTORS; v++) sum[r][v] = _mm512_fmadd_ps(xi, w[v], sum[r][v]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++)
            _mm512_store_ps(total[r] + 16 * v, _mm512_add_ps(_mm512_load_ps(total[r] + 16 * v), sum[r][v]));
}

INLINE void tile_of(enum hm_dtype dtype, const unsigned char *weights, const float *x, size_t stride, size_t inputs,
                    float (*total)[HM_PANEL], struct ahead ahead, size_t rows)
{
    switch (rows) {
    case 1: tile(dtype, weights, x, stride, inputs, total, ahead, 1); break;
    case 2: tile(dtype, weights, x, stride, inputs, total, ahead, 2); break;
    case 3: tile(dtype, weights, x, stride, inputs, total, ahead, 3); break;
    case 4: tile(dtype, weights, x, stride, inputs, total, ahead, 4); break;
    case 5: tile(dtype, weights, x, stride, inputs, total, ahead, 5); break;
    default: tile(dtype, weights, x, stride, inputs, total, ahead, 6); break;
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

static void write_totals(float (*total)[HM_PANEL], float *y, size_t stride, size_t rows, size_t width,
                         enum hm_store store)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t first = 0; first < width; first += 16) {
            __mmask16 lanes = width - first < 16 ? (__mmask16)((1u << (width - first)) - 1) : (__mmask16)0xFFFF;
            float *to = y + r * stride + first;
            __m512 sum = _mm512_load_ps(total[r] + first);
            if (store == HM_STORE_ADD) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, to), sum);
            _mm512_mask_storeu_ps(to, lanes, sum);
        }
}

void hm_matmul_panel_avx512(const struct hm_weight *weight, size_t panel, const float *x, float *y, size_t rows,
                            enum hm_store store)
{
    const unsigned char *weights = hm_panel_data(weight, panel);
    size_t inputs = weight->inputs, step = HM_PANEL * hm_dtype_bytes(weight->dtype);
    size_t first = panel * HM_PANEL, width = weight->outputs - first < HM_PANEL ? weight->outputs - first : HM_PANEL;
    _Alignas(64) float total[HM_ROWS_MOST][HM_PANEL];
    for (size_t r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++) _mm512_store_ps(total[r] + 16 * v, _mm512_setzero_ps());

    for (size_t start = 0; start < inputs; start += HM_BLOCK) {
        size_t count = inputs - start < HM_BLOCK ? inputs - start : HM_BLOCK;
        const unsigned char *from = weights + start * step;
        switch (weight->dtype) {
        case HM_F32: block_f32(from, x + start, inputs, count, total, rows); break;
        case HM_F16: block_f16(from, x + start, inputs, count, total, rows); break;
        case HM_BF16: block_bf16(from, x + start, inputs, count, total, rows); break;
        }
    }
    write_totals(total, y + first, weight->outputs, rows, width, store);
}

#else
typedef int hm_no_matmul_avx512; // ISO C wants a declaration
#endif
