// Rows of logits in a file: see row_file.h.
#include "decode/row_file.h"

#include "base/file.h"
#include "base/memory.h"
#include "decode/npy.h"
#include "decode/safetensors.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hm_row_file {
    char *path;
    struct hm_safetensors *safetensors; // NULL: a .npy file
    struct hm_npy npy;
    struct hm_row_file_info info;
    enum hm_dtype dtype; // when the values are not doubles
    bool doubles;
    const uint8_t *data;
    const uint8_t *released; // pages of the mapping before this one have been given back
};

// Rows and vocabulary of a shape; leading dimensions of 1 do not count.
static hm_status read_shape(struct hm_row_file *f, const char *thing, size_t rank, const size_t *shape, struct hm_error *err)
{
    char text[HM_TENSOR_SHAPE_TEXT];
    size_t skip = 0;
    hm_shape_text(rank, shape, text);
    while (rank - skip > 2 && shape[skip] == 1) skip++;
    if (rank == 0 || rank - skip > 2)
        return hm_fail(err, HM_SHAPE, "%s: %sexpected shape [rows, vocabulary], found %s", f->path, thing, text);
    f->info.vocab = shape[rank - 1];
    f->info.rows = rank - skip == 2 ? shape[skip] : 1;
    if (f->info.vocab < 2)
        return hm_fail(err, HM_SHAPE, "%s: %sexpected a vocabulary of at least 2, found %s", f->path, thing, text);
    return HM_OK;
}

static hm_status open_safetensors(struct hm_row_file *f, const char *name, struct hm_error *err)
{
    char thing[HM_TENSOR_SHAPE_TEXT];
    hm_status rc = hm_safetensors_open(f->path, &f->safetensors, err);
    if (rc) return rc;
    const struct hm_tensor *tensor = hm_safetensors_find(f->safetensors, name ? name : "logits");
    if (!tensor) {
        const struct hm_tensor *first = hm_safetensors_at(f->safetensors, 0);
        return hm_fail(err, HM_FORMAT, "%s: expected a tensor \"%s\", found %zu others%s%.100s%s (--tensor NAME)",
                       f->path, name ? name : "logits", hm_safetensors_count(f->safetensors),
                       first ? ", the first \"" : "", first ? first->name : "", first ? "\"" : "");
    }
    snprintf(thing, sizeof thing, "tensor \"%.150s\": ", tensor->name);
    rc = hm_tensor_dtype(tensor, f->path, &f->dtype, err);
    if (!rc) rc = read_shape(f, thing, tensor->rank, tensor->shape, err);
    f->info.type = hm_dtype_name(f->dtype);
    f->data = tensor->data;
    return rc;
}

static double double_at(const uint8_t *data, size_t i)
{
    double value;
    memcpy(&value, data + i * sizeof value, sizeof value);
    return value;
}

// NaN is a finding for whoever reads the row, not a number that a float32 lacks.
static hm_status check_doubles(const struct hm_row_file *f, struct hm_error *err)
{
    size_t count = f->npy.bytes / sizeof(double);
    for (size_t i = 0; i < count; i++) {
        double value = double_at(f->data, i);
        if (isnan(value) || value == (double)(float)value) continue;
        return hm_fail(err, HM_UNSUPPORTED,
                       "%s: row %zu, logit %zu: expected float32 values in an array of float64, found %.17g (save "
                       "x.astype('float32'), and certify what that rounds to)",
                       f->path, i / f->info.vocab, i % f->info.vocab, value);
    }
    return HM_OK;
}

static hm_status open_npy(struct hm_row_file *f, struct hm_error *err)
{
    hm_status rc = hm_npy_open(f->path, &f->npy, err);
    if (rc) return rc;
    if (f->npy.kind != 'f')
        return hm_fail(err, HM_UNSUPPORTED, "%s: expected floats of 16 or 32 bits, found type '<%c%zu'", f->path,
                       f->npy.kind, f->npy.item);
    f->doubles = f->npy.item == 8;
    f->dtype = f->npy.item == 2 ? HM_F16 : HM_F32;
    f->info.type = f->doubles ? "F64" : hm_dtype_name(f->dtype);
    f->data = f->npy.data;
    rc = read_shape(f, "", f->npy.rank, f->npy.shape, err);
    return rc || !f->doubles ? rc : check_doubles(f, err);
}

// What the first bytes say of a file: a safetensors header begins with '{' after its length.
static hm_status find_kind(const char *path, bool *npy, struct hm_error *err)
{
    enum { LENGTH_BYTES = 8 };
    struct hm_map map;
    hm_status rc = hm_map_open(path, &map, err);
    if (rc) return rc;
    *npy = hm_npy_begins(map.data, map.size);
    if (map.size >= 4 && memcmp(map.data, "PK\3\4", 4) == 0)
        rc = hm_fail(err, HM_UNSUPPORTED,
                     "%s: expected a .npy or a .safetensors file, found a zip archive (.npz, .pt): save one array with "
                     "numpy.save",
                     path);
    else if (!*npy && (map.size <= LENGTH_BYTES || map.data[LENGTH_BYTES] != '{'))
        rc = hm_fail(err, HM_FORMAT, "%s: expected a .npy or a .safetensors file, found %s", path,
                     map.size ? "another kind of file" : "an empty file");
    hm_map_close(&map);
    return rc;
}

const char *hm_row_file_magic(const uint8_t *data, size_t size)
{
    if (hm_npy_begins(data, size)) return "the magic \\x93NUMPY";
    bool header = size > 8 && data[5] == 0 && data[6] == 0 && data[7] == 0 && data[8] == '{';
    return header ? "the header of .safetensors" : NULL;
}

bool hm_row_file_begins(const char *path)
{
    struct hm_map map;
    if (hm_map_open(path, &map, NULL)) return false;
    bool begins = hm_row_file_magic(map.data, map.size) != NULL;
    hm_map_close(&map);
    return begins;
}

hm_status hm_row_file_open(const char *path, const char *tensor, struct hm_row_file **out, struct hm_error *err)
{
    bool npy;
    *out = NULL;
    hm_status rc = find_kind(path, &npy, err);
    if (rc) return rc;
    struct hm_row_file *f = hm_calloc(1, sizeof *f);
    if (f) f->path = strdup(path);
    if (!f || !f->path) {
        free(f);
        return hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    }
    const char *slash = strrchr(f->path, '/');
    f->info.name = slash ? slash + 1 : f->path;
    rc = npy ? open_npy(f, err) : open_safetensors(f, tensor, err);
    f->released = f->data;
    if (rc) hm_row_file_close(f);
    else *out = f;
    return rc;
}

void hm_row_file_close(struct hm_row_file *f)
{
    if (!f) return;
    hm_safetensors_close(f->safetensors);
    hm_npy_close(&f->npy);
    free(f->path);
    free(f);
}

struct hm_row_file_info hm_row_file_info(const struct hm_row_file *f)
{
    return f->info;
}

// Gives pages back that have been read, so that a long file does not fill memory; what is asked for again is mapped again.
static void release(struct hm_row_file *f, const uint8_t *until)
{
    enum { STEP = 16 << 20 };
    if (until < f->released) f->released = until;
    if (until - f->released < STEP) return;
    hm_map_release(f->released, (size_t)(until - f->released));
    f->released = until;
}

void hm_row_file_read(struct hm_row_file *f, size_t index, float *out)
{
    size_t vocab = f->info.vocab, item = f->doubles ? sizeof(double) : hm_dtype_bytes(f->dtype);
    const uint8_t *row = f->data + index * vocab * item; // inside the file: its shape was checked against its size
    release(f, row);
    if (!f->doubles) {
        hm_widen_values(row, f->dtype, out, vocab);
        return;
    }
    for (size_t i = 0; i < vocab; i++) out[i] = (float)double_at(row, i);
}

hm_status hm_row_file_hash(const struct hm_row_file *f, char hex[HM_SHA256_HEX], struct hm_error *err)
{
    uint8_t digest[HM_SHA256_BYTES];
    size_t size = f->npy.map.size;
    const uint8_t *bytes = f->safetensors ? hm_safetensors_bytes(f->safetensors, &size) : f->npy.map.data;
    hm_status rc = hm_sha256(bytes, size, digest, err);
    if (!rc) hm_sha256_hex(digest, hex);
    return rc;
}
