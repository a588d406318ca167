// Reading safetensors files: eight bytes of header length, a JSON header, then one buffer that the tensors cover
// exactly.
//
// The file is mapped; nothing is copied but the header. A file is refused unless its header is at most 100 MB and
// inside the file, every tensor's byte range equals its shape times its type, and the ranges cover the buffer without
// holes or overlaps. A zero in a shape is legal. Errors name the file, the tensor, what was expected and what was
// found.
#ifndef HM_DECODE_SAFETENSORS_H
#define HM_DECODE_SAFETENSORS_H

#include "base/error.h"
#include "kernels/kernels.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HM_TENSOR_RANK_MOST = 8, HM_TENSOR_SHAPE_TEXT = 200 };

// One tensor of a file; name and data belong to the file and live until it is closed.
struct hm_tensor {
    const char *name;
    const char *type; // as the format spells it: "F32", "BF16", "I64", ...
    size_t rank;
    size_t shape[HM_TENSOR_RANK_MOST];
    const uint8_t *data; // little-endian, row-major, at any alignment
    size_t bytes;
};

struct hm_safetensors;

hm_status hm_safetensors_open(const char *path, struct hm_safetensors **out, struct hm_error *err);
void hm_safetensors_close(struct hm_safetensors *file); // NULL is allowed

const char *hm_safetensors_path(const struct hm_safetensors *file);
size_t hm_safetensors_count(const struct hm_safetensors *file);
const struct hm_tensor *hm_safetensors_at(const struct hm_safetensors *file, size_t index);       // in order of names
const struct hm_tensor *hm_safetensors_find(const struct hm_safetensors *file, const char *name); // or NULL
const uint8_t *hm_safetensors_bytes(const struct hm_safetensors *file, size_t *size);             // the whole file

// "[151936, 1024]" for messages.
void hm_shape_text(size_t rank, const size_t *shape, char text[HM_TENSOR_SHAPE_TEXT]);

// The type as one the kernels compute with: HM_UNSUPPORTED, naming path and tensor, unless it is F32, F16 or BF16.
hm_status hm_tensor_dtype(const struct hm_tensor *tensor, const char *path, enum hm_dtype *out, struct hm_error *err);

// Copies `count` stored values, at any alignment, as float32: exact.
void hm_widen_values(const uint8_t *from, enum hm_dtype dtype, float *to, size_t count);

#ifdef __cplusplus
}
#endif

#endif
