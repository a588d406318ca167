// Inside of the CPU device: its structures, and the table of kernels that each instruction set fills.
//
// Kernels work on plain arrays and do one thread's share; device.c divides a call among the threads. Every table gives
// the same bits as reference.c.
#ifndef HM_KERNELS_CPU_CPU_H
#define HM_KERNELS_CPU_CPU_H

#include "kernels/cpu/threads.h"
#include "kernels/kernels.h"

// Weights are kept in panels of 64 outputs: all inputs of a panel in ascending order, 64 weights for each, in the dtype
// of the checkpoint. SIMD lanes run across the outputs. The last panel is padded with zeros.
enum {
    HM_PANEL = 64,
    HM_BLOCK = 256,         // inputs of one chain (kernels.h, matmul)
    HM_ROWS_MOST = 96,      // rows of one matmul unit
    HM_POSITIONS = 64,      // logical positions of one attention block
    HM_HEAD_DIM_MOST = 256, // kernels.h, hm_attention_shape
    HM_BLOCK_FLOATS = HM_POSITIONS * HM_HEAD_DIM_MOST
};

struct hm_buffer {
    float *data;
    size_t bytes; // of the mapping
};

struct hm_weight {
    enum hm_dtype dtype;
    size_t outputs, inputs, panels;
    size_t bytes; // of the mapping
    void *data;   // [panels][inputs][HM_PANEL]
};

// Place of output `lane` (0 .. 63) among the 64 weights of an input. BF16 keeps outputs j and j + 16 in one 32-bit word
// (low half first), so that a shift and a mask widen a whole vector of words at any vector length.
static inline size_t hm_panel_place(enum hm_dtype dtype, size_t lane)
{
    return dtype == HM_BF16 ? (lane & 32) | (lane & 15) << 1 | (lane >> 4 & 1) : lane;
}

static inline const unsigned char *hm_panel_data(const struct hm_weight *weight, size_t panel)
{
    return (const unsigned char *)weight->data + panel * weight->inputs * HM_PANEL * hm_dtype_bytes(weight->dtype);
}

enum hm_store { HM_STORE_NEW, HM_STORE_ADD }; // y = sum, or y = y + sum

// The share of one thread in an attention call: some rows, and some query heads that share one key/value head.
struct hm_attention_share {
    const struct hm_attention_shape *shape;
    const struct hm_visible *visible; // of all rows
    const float *q;
    size_t q_stride;
    const float *keys, *values; // whole caches
    float *out;
    size_t first_row, rows, first_head, heads;
    float *block;   // room for 64 rows of one head
    float *scratch; // at least 2 floats per query (rows * heads); what is left keeps scores for the second pass
    size_t scratch_floats;
};

struct hm_cpu_kernels {
    const char *name; // "portable", "avx2", "avx512"
    // y[r][outputs of the panel] for `rows` rows, at most HM_ROWS_MOST; x rows are `inputs` apart, y rows `outputs`.
    void (*matmul_panel)(const struct hm_weight *, size_t panel, const float *x, float *y, size_t rows, enum hm_store);
    void (*attention)(const struct hm_attention_share *);
    void (*rms_norm)(const float *x, const float *gain, float *y, size_t width, float eps);
    void (*rope)(const float *cosine, const float *sine, float *head, size_t half);
    void (*silu_mul)(const float *gate, const float *up, float *y, size_t width);
    void (*exp)(const float *x, float *y, size_t count);
    // For bench.c: a sum that reads `floats` floats (a multiple of 128), and a burst of fma; *flops gets their number.
    float (*read)(const float *from, size_t floats);
    float (*burst)(size_t repeats, double *flops);
};

extern const struct hm_cpu_kernels hm_cpu_portable;
extern const struct hm_cpu_kernels hm_cpu_avx2;   // x86-64 only
extern const struct hm_cpu_kernels hm_cpu_avx512; // x86-64 only

// matmul_panel of each table: one file each.
void hm_matmul_panel_portable(const struct hm_weight *, size_t panel, const float *x, float *y, size_t rows,
                              enum hm_store);
void hm_matmul_panel_avx2(const struct hm_weight *, size_t panel, const float *x, float *y, size_t rows, enum hm_store);
void hm_matmul_panel_avx512(const struct hm_weight *, size_t panel, const float *x, float *y, size_t rows,
                            enum hm_store);

struct hm_cpu_device {
    struct hm_device base; // first: the public handle points here
    struct hm_pool *pool;
    enum hm_isa isa; // asked for, of peers as well
    const struct hm_cpu_kernels *kernels;
    float **scratch;       // per worker, for attention: one block, then scores
    size_t scratch_floats; // of the scores; tests lower it
    char detail[64];
};

static inline struct hm_cpu_device *hm_cpu_device(struct hm_device *device)
{
    return (struct hm_cpu_device *)device;
}

extern const struct hm_device_ops hm_cpu_ops; // operations.c
void hm_cpu_close(struct hm_device *);        // device.c

// Zeroed pages, reserved now and backed when first touched; large ones on huge pages where the system offers them.
// NULL when memory is short or the size is 0 or overflows.
void *hm_pages_reserve(size_t bytes);
void hm_pages_release(void *pages, size_t bytes);

// pack.c: the weight operations of the device table.
struct hm_weight *hm_weight_load(struct hm_device *, const void *from, enum hm_dtype dtype, size_t outputs,
                                 size_t inputs);
struct hm_weight *hm_weight_load_parts(struct hm_device *, const void *const *from, const size_t *outputs, size_t parts,
                                       enum hm_dtype dtype, size_t inputs);
void hm_weight_unload(struct hm_device *, struct hm_weight *weight);
void hm_weight_row(const struct hm_weight *weight, size_t output, float *y); // y[inputs], widened

#endif
