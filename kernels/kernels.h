// Arithmetic on arrays: the one interface between the transformer and the machine that runs it.
//
// A device owns memory (opaque buffers the host may not read) and carries out operations in the order they are
// submitted. The CPU device computes at once; a CUDA device may queue. Only hm_device_download waits.
//
// Bits. Activations and accumulation are float32; weights stay in the dtype of the checkpoint and are widened exactly.
// Each output element is one documented chain of fused multiply-adds whose order depends on nothing but the shape of
// that one output: not on the number of rows, the number of threads, the instruction set or where a cache slot lies.
// Rows computed alone, in a prefill or in a tree are therefore equal bit for bit (docs/architecture.md).
#ifndef HM_KERNELS_KERNELS_H
#define HM_KERNELS_KERNELS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hm_dtype { HM_F32, HM_F16, HM_BF16 };
size_t hm_dtype_bytes(enum hm_dtype dtype);
const char *hm_dtype_name(enum hm_dtype dtype); // "F32", "F16", "BF16" as in safetensors

// Widest instruction set a CPU device may use; each one gives the same bits.
enum hm_isa { HM_ISA_PORTABLE, HM_ISA_AVX2, HM_ISA_AVX512, HM_ISA_BEST };

struct hm_device;
struct hm_buffer; // float32 array on a device
struct hm_weight; // a matrix [outputs, inputs] on a device, in whatever layout the device likes

// A part of a buffer, in floats from its start.
struct hm_view {
    struct hm_buffer *buffer;
    size_t offset;
};

// Rows of a key/value cache that one query row may see: cache slots 0 .. prefix-1, which hold logical positions
// 0 .. prefix-1, then `tail_length` further slots at the following logical positions. A causal prefill row at position p
// has prefix p + 1 and no tail; a tree node has the committed length as prefix and its ancestors and itself, by depth,
// as tail.
struct hm_visible {
    uint32_t prefix;
    uint32_t tail_length;
    const uint32_t *tail; // host memory, read before the call returns
};

// Shape of one attention call.
struct hm_attention_shape {
    size_t rows;       // query rows
    size_t heads;      // query heads
    size_t kv_heads;   // divides heads
    size_t head_dim;   // at most 256
    float scale;       // multiplies each score, usually 1/sqrt(head_dim)
};

// Rotary embedding tables: cosine and sine of position * frequency, [positions, head_dim / 2] each, made by the caller.
struct hm_rope {
    const float *cosine, *sine; // host memory that outlives the device calls
    size_t positions;           // rows of the tables
    size_t head_dim;
};

// The operations of a device. All shapes are row-major, last index fastest. Views must not overlap unless the comment
// says so. Sizes come from our own code and have been checked: operations cannot fail once buffers exist.
struct hm_device_ops {
    // Memory. alloc returns zeroed floats, reserved lazily, or NULL.
    struct hm_buffer *(*alloc)(struct hm_device *, size_t floats);
    void (*release)(struct hm_device *, struct hm_buffer *);
    void (*upload)(struct hm_device *, struct hm_view to, const float *from, size_t floats);
    void (*download)(struct hm_device *, float *to, struct hm_view from, size_t floats); // waits for all earlier work

    // Weights. load reads host memory [outputs, inputs] of the dtype (it may be an unaligned file mapping) and repacks
    // it for the device; NULL when memory is short. Several matrices with the same inputs can be stacked by load_parts,
    // their outputs following each other.
    struct hm_weight *(*load)(struct hm_device *, const void *from, enum hm_dtype, size_t outputs, size_t inputs);
    struct hm_weight *(*load_parts)(struct hm_device *, const void *const *from, const size_t *outputs, size_t parts,
                                    enum hm_dtype, size_t inputs);
    void (*unload)(struct hm_device *, struct hm_weight *);

    // y[r][o] = sum_i x[r][i] w[o][i].  Order: i in blocks of 256 from 0; inside a block one chain of fma from +0 in
    // ascending i; block sums added in ascending order to +0.  Moves outputs*inputs*dtype bytes, 2*rows*outputs*inputs
    // flops.
    void (*matmul)(struct hm_device *, const struct hm_weight *, struct hm_view x, struct hm_view y, size_t rows);
    // y[r][o] += the sum above (added to y last, one rounding): the residual connection.
    void (*matmul_add)(struct hm_device *, const struct hm_weight *, struct hm_view x, struct hm_view y, size_t rows);
    // y[r] = bias + y[r], bias [width].
    void (*add_bias)(struct hm_device *, struct hm_view bias, struct hm_view y, size_t rows, size_t width);

    // y[r] = row token[r] of the table as loaded, widened; width = inputs of the table.  token: host memory.
    void (*embed)(struct hm_device *, const struct hm_weight *table, const int32_t *token, struct hm_view y, size_t rows);

    // y[r][i] = x[r][i] / sqrt(mean(x[r]^2) + eps) * gain[i], for rows of `width` floats that lie `stride` floats apart
    // in x and in y (x == y allowed).  The mean is a sum over 16 interleaved lanes, chains of fma in ascending order,
    // lanes folded in halves.  gain: [width].
    void (*rms_norm)(struct hm_device *, struct hm_view x, struct hm_view gain, struct hm_view y, size_t rows,
                     size_t width, size_t stride, float eps);

    // Rotates in place the heads of each row by its position (rotate-half: pairs i, i + head_dim/2). Row r starts at
    // x + r*stride and holds `heads` heads of head_dim.  position: host memory, each below rope->positions.
    void (*rope)(struct hm_device *, const struct hm_rope *, const uint32_t *position, struct hm_view x, size_t rows,
                 size_t heads, size_t stride);

    // Copies key and value rows ([kv_heads*head_dim], `stride` floats apart) into cache slots.  slot: host memory.
    // cache layout: [slots, kv_heads*head_dim] for keys, the same for values.
    void (*cache_store)(struct hm_device *, struct hm_view keys, struct hm_view values, size_t stride, struct hm_view key_cache,
                        struct hm_view value_cache, const uint32_t *slot, size_t rows, size_t width);
    // Moves cache rows from[j] to to[j] in order j = 0..count-1 (to[j] <= from[j]): compaction after acceptance.
    void (*cache_move)(struct hm_device *, struct hm_view cache, const uint32_t *from, const uint32_t *to, size_t count,
                       size_t width);

    // out[r][heads*head_dim] = softmax(scale * q[r] . keys) values over the visible slots of row r.  q rows lie
    // q_stride floats apart; out rows are dense.  Scores: 16 interleaved lanes over head_dim folded in halves.  The
    // softmax subtracts the exact maximum; sums and value products run in ascending logical position in blocks of 64
    // aligned to position 0, block sums added in order: where a slot lies and how rows are grouped never shows.
    void (*attention)(struct hm_device *, const struct hm_attention_shape *, const struct hm_visible *visible, struct hm_view q,
                      size_t q_stride, struct hm_view key_cache, struct hm_view value_cache, struct hm_view out);

    // y[r][i] = silu(g) * u with g = x[r][i], u = x[r][width + i]; x rows hold 2*width floats, y rows width.
    void (*silu_mul)(struct hm_device *, struct hm_view x, struct hm_view y, size_t rows, size_t width);
    // Copies `rows` rows of `width` floats from row index[r] of x to row r of y.  index: host memory.
    void (*gather)(struct hm_device *, struct hm_view x, const uint32_t *index, struct hm_view y, size_t rows, size_t width);
    // The other way: row r of x to row index[r] of y; distinct indices.
    void (*scatter)(struct hm_device *, struct hm_view x, const uint32_t *index, struct hm_view y, size_t rows, size_t width);

    // How many threads operations may use that begin from now on, 1 .. those the device was opened with; bits do not
    // depend on it. May be called from another thread while operations run.
    void (*limit)(struct hm_device *, unsigned threads);
    void (*close)(struct hm_device *);
};

// Every device structure begins with this.
struct hm_device {
    const struct hm_device_ops *ops;
    const char *backend; // names the family whose rows are comparable bit for bit, e.g. "cpu-fma256"
    const char *detail;  // what runs it, for people: "avx512, 2 threads"
};

// Opens a CPU device. threads 0 = one per usable core; isa HM_ISA_BEST = the widest this machine has (the environment
// variable HALLMARK_ISA=portable|avx2|avx512 narrows it). HM_UNSUPPORTED when the machine lacks the ISA asked for.
hm_status hm_device_open_cpu(unsigned threads, enum hm_isa isa, struct hm_device **out, struct hm_error *err);

// A second queue of work on the machine of `device` (another group of threads; on a GPU another stream), a device of its
// own in every other respect. The two share memory: buffers and weights of either may be used in operations of both, and
// two threads may use the two at the same time, as long as neither writes what the other reads. threads 0: as many as
// `device` has. Close the peer first.
hm_status hm_device_open_peer(struct hm_device *device, unsigned threads, struct hm_device **out, struct hm_error *err);
unsigned hm_device_threads(const struct hm_device *device); // that it was opened with; 1 where there is no such thing
void hm_device_close(struct hm_device *device);             // NULL is allowed

#ifdef __cplusplus
}
#endif

#endif
