// Reading .npy files (NumPy's format, versions 1 to 3): a magic string, a header that is a Python dictionary in text, then one
// array.
//
// The file is mapped; nothing is copied. Refused unless the header is at most 64 KiB and inside the file, has exactly the keys
// `descr`, `fortran_order` and `shape`, the array is little-endian numbers in C order, and its bytes fill the rest of the
// file. Errors name the file, what was expected and what was found.
#ifndef HM_DECODE_NPY_H
#define HM_DECODE_NPY_H

#include "base/error.h"
#include "base/file.h"
#include "decode/safetensors.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HM_NPY_MAGIC_BYTES = 6 };

struct hm_npy {
    struct hm_map map;
    char kind;             // 'f' float, 'i' signed, 'u' unsigned, 'b' bool
    size_t item;           // bytes of one number: 1, 2, 4 or 8
    size_t rank;
    size_t shape[HM_TENSOR_RANK_MOST];
    const uint8_t *data;   // little-endian, last index fastest, at any alignment
    size_t bytes;
};

// Does a file that begins with these bytes say that it is one?
bool hm_npy_begins(const uint8_t *data, size_t size);

hm_status hm_npy_open(const char *path, struct hm_npy *out, struct hm_error *err);
void hm_npy_close(struct hm_npy *npy);

#ifdef __cplusplus
}
#endif

#endif
