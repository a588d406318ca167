// Rows of logits that another program saved: a tensor of a .safetensors file or the array of a .npy file.
//
// Shape [rows, vocab], with any number of leading dimensions of 1; a single dimension is one row. Types F32, F16 and BF16 are
// widened exactly; 64-bit floats of a .npy file are taken when every one of them is a float32. The file is mapped and read
// row by row: memory does not grow with the number of rows.
#ifndef HM_DECODE_ROW_FILE_H
#define HM_DECODE_ROW_FILE_H

#include "base/error.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hm_row_file;

struct hm_row_file_info {
    const char *name; // the file's, without its folder
    const char *type; // as stored: "F32", "F16", "BF16" or "F64"
    size_t rows;      // may be 0
    size_t vocab;     // logits of a row, >= 2
};

// tensor: the name in a .safetensors file, NULL for "logits"; a .npy file holds one array and has no names. What a file is,
// its first bytes say. HM_SHAPE, HM_UNSUPPORTED, HM_FORMAT, HM_IO with the path.
hm_status hm_row_file_open(const char *path, const char *tensor, struct hm_row_file **out, struct hm_error *err);
void hm_row_file_close(struct hm_row_file *file); // NULL is allowed
struct hm_row_file_info hm_row_file_info(const struct hm_row_file *file);

// Copies row `index` < rows into out [vocab]. Values are as stored: they may be NaN or infinite.
void hm_row_file_read(struct hm_row_file *file, size_t index, float *out);

// What says that a file beginning with these bytes is such a file: "the magic \x93NUMPY", or "the header of .safetensors", which
// is its length (below 2^40) and a brace. NULL: it is none. Then the same of a file; false where it cannot be read.
const char *hm_row_file_magic(const uint8_t *data, size_t size);
bool hm_row_file_begins(const char *path);

// SHA-256 of the whole file, in hexadecimal.
hm_status hm_row_file_hash(const struct hm_row_file *file, char hex[HM_SHA256_HEX], struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
