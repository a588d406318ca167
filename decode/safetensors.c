// Reading safetensors files: see safetensors.h. The header is checked entry by entry, then as a whole: sorted by their
// ranges, the tensors must tile the buffer.
#include "decode/safetensors.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors are read as little-endian numbers"
#endif

enum { LENGTH_BYTES = 8, NAME_MOST = 512 };
static const size_t HEADER_MOST = 100 * 1000 * 1000;

struct hm_safetensors {
    char *path;
    struct hm_map map;
    cJSON *header;            // owns the names
    struct hm_tensor *tensor; // [count], sorted by name
    size_t count;
};

// Types of the format and their sizes; the kernels compute with three of them, the others are measured only.
static const struct {
    const char *name;
    unsigned bits;
} types[] = {
    {"F32", 32},    {"F16", 16},    {"BF16", 16},   {"F64", 64},    {"I64", 64}, {"I32", 32}, {"I16", 16},
    {"I8", 8},      {"U64", 64},    {"U32", 32},    {"U16", 16},    {"U8", 8},   {"BOOL", 8}, {"F8_E4M3", 8},
    {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},   {"C64", 64},
};

void hm_shape_text(size_t rank, const size_t *shape, char text[HM_TENSOR_SHAPE_TEXT])
{
    size_t at = (size_t)snprintf(text, HM_TENSOR_SHAPE_TEXT, "[");
    for (size_t i = 0; i < rank && i < HM_TENSOR_RANK_MOST; i++)
        at += (size_t)snprintf(text + at, HM_TENSOR_SHAPE_TEXT - at, i ? ", %zu" : "%zu", shape[i]);
    snprintf(text + at, HM_TENSOR_SHAPE_TEXT - at, "]");
}

hm_status hm_tensor_dtype(const struct hm_tensor *tensor, const char *path, enum hm_dtype *out, struct hm_error *err)
{
    for (int d = HM_F32; d <= HM_BF16; d++)
        if (strcmp(tensor->type, hm_dtype_name((enum hm_dtype)d)) == 0) {
            *out = (enum hm_dtype)d;
            return HM_OK;
        }
    return hm_fail(err, HM_UNSUPPORTED, "%s: tensor \"%s\": expected type F32, F16 or BF16, found %s", path,
                   tensor->name, tensor->type);
}

static float widen_half(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023, wide;
    if (exponent == 0) {
        float small = (float)fraction * 0x1p-24f;
        return sign ? -small : small;
    }
    wide = sign | (exponent == 31 ? 0x7F800000u : (exponent + 112) << 23) | fraction << 13;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

void hm_widen_values(const uint8_t *from, enum hm_dtype dtype, float *to, size_t count)
{
    if (dtype == HM_F32) {
        memcpy(to, from, count * sizeof *to);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, from + 2 * i, sizeof bits);
        uint32_t wide = (uint32_t)bits << 16;
        if (dtype == HM_F16)
            to[i] = widen_half(bits);
        else
            memcpy(&to[i], &wide, sizeof wide);
    }
}

// A JSON number as a size; false for anything that is not an integer in [0, 2^53].
static bool number_size(const cJSON *value, size_t *out)
{
    if (!cJSON_IsNumber(value)) return false;
    double d = value->valuedouble;
    if (!(d >= 0 && d <= 0x1p53) || d != (double)(uint64_t)d) return false;
    *out = (size_t)d;
    return true;
}

static hm_status read_shape(const char *path, const cJSON *entry, struct hm_tensor *t, struct hm_error *err)
{
    const cJSON *shape = hm_json_find(entry, "shape");
    if (!cJSON_IsArray(shape))
        return hm_fail(err, HM_FORMAT, "%s: tensor \"%s\": expected an array at \"shape\", found %s", path, t->name,
                       hm_json_kind(shape));
    for (const cJSON *item = shape->child; item; item = item->next) {
        if (t->rank == HM_TENSOR_RANK_MOST)
            return hm_fail(err, HM_UNSUPPORTED, "%s: tensor \"%s\": expected at most %d dimensions, found more", path,
                           t->name, HM_TENSOR_RANK_MOST);
        if (!number_size(item, &t->shape[t->rank]))
            return hm_fail(err, HM_FORMAT, "%s: tensor \"%s\": expected sizes in \"shape\", found %s at place %zu",
                           path, t->name, cJSON_IsNumber(item) ? "another number" : hm_json_kind(item), t->rank);
        t->rank++;
    }
    return HM_OK;
}

// Bytes that the shape and type need; false when they overflow or end inside a byte.
static bool shape_bytes(const struct hm_tensor *t, unsigned bits, size_t *out)
{
    size_t total = bits;
    for (size_t i = 0; i < t->rank; i++)
        if (t->shape[i] == 0) return *out = 0, true;
    for (size_t i = 0; i < t->rank; i++)
        if (!hm_mul_size(total, t->shape[i], &total)) return false;
    *out = total / 8;
    return total % 8 == 0;
}

static hm_status read_range(const char *path, const cJSON *entry, const uint8_t *buffer, size_t size,
                            struct hm_tensor *t, struct hm_error *err)
{
    const cJSON *offsets = hm_json_find(entry, "data_offsets");
    size_t begin = 0, end = 0;
    if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 || !number_size(offsets->child, &begin) ||
        !number_size(offsets->child->next, &end))
        return hm_fail(err, HM_FORMAT, "%s: tensor \"%s\": expected two sizes at \"data_offsets\", found %s", path,
                       t->name, cJSON_IsArray(offsets) ? "another array" : hm_json_kind(offsets));
    if (begin > end || end > size)
        return hm_fail(err, HM_FORMAT,
                       "%s: tensor \"%s\": expected data_offsets inside %zu bytes of data, found [%zu, %zu]", path,
                       t->name, size, begin, end);
    t->data = buffer + begin;
    t->bytes = end - begin;
    return HM_OK;
}

static hm_status read_tensor(const char *path, const cJSON *entry, const uint8_t *buffer, size_t size,
                             struct hm_tensor *t, struct hm_error *err)
{
    t->name = entry->string;
    if (!cJSON_IsObject(entry))
        return hm_fail(err, HM_FORMAT, "%s: tensor \"%s\": expected an object, found %s", path, t->name,
                       hm_json_kind(entry));
    const cJSON *type = hm_json_find(entry, "dtype");
    if (!cJSON_IsString(type))
        return hm_fail(err, HM_FORMAT, "%s: tensor \"%s\": expected a string at \"dtype\", found %s", path, t->name,
                       hm_json_kind(type));
    unsigned bits = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, type->valuestring) == 0) {
            t->type = types[i].name;
            bits = types[i].bits;
        }
    if (!bits)
        return hm_fail(err, HM_FORMAT, "%s: tensor \"%s\": expected a type of the format, found \"%.32s\"", path,
                       t->name, type->valuestring);
    hm_status rc = read_shape(path, entry, t, err);
    if (!rc) rc = read_range(path, entry, buffer, size, t, err);
    if (rc) return rc;
    char shape[HM_TENSOR_SHAPE_TEXT];
    size_t need;
    hm_shape_text(t->rank, t->shape, shape);
    if (!shape_bytes(t, bits, &need))
        return hm_fail(err, HM_FORMAT,
                       "%s: tensor \"%s\": expected a shape of whole bytes that fits in memory, found %s %s", path,
                       t->name, t->type, shape);
    if (need != t->bytes)
        return hm_fail(err, HM_FORMAT, "%s: tensor \"%s\": expected %zu bytes for %s %s, found %zu", path, t->name,
                       need, t->type, shape, t->bytes);
    return HM_OK;
}

// Names go into messages of one line.
static hm_status check_name(const char *path, const char *name, struct hm_error *err)
{
    size_t n = strlen(name);
    if (n == 0 || n > NAME_MOST)
        return hm_fail(err, HM_FORMAT, "%s: expected tensor names of 1 to %d bytes, found %zu", path, NAME_MOST, n);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return hm_fail(err, HM_FORMAT, "%s: expected printable tensor names, found byte 0x%02x", path,
                           (unsigned char)name[i]);
    return HM_OK;
}

static hm_status check_metadata(const char *path, const cJSON *entry, struct hm_error *err)
{
    if (!cJSON_IsObject(entry))
        return hm_fail(err, HM_FORMAT, "%s: key \"__metadata__\": expected an object, found %s", path,
                       hm_json_kind(entry));
    for (const cJSON *item = entry->child; item; item = item->next)
        if (!cJSON_IsString(item))
            return hm_fail(err, HM_FORMAT, "%s: key \"__metadata__\": expected strings, found %s", path,
                           hm_json_kind(item));
    return HM_OK;
}

static int by_range(const void *a, const void *b)
{
    const struct hm_tensor *x = a, *y = b;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct hm_tensor *)a)->name, ((const struct hm_tensor *)b)->name);
}

// Sorted by range, each tensor must begin where the one before it ends, and the last must end the file.
static hm_status check_cover(struct hm_safetensors *f, const uint8_t *buffer, size_t size, struct hm_error *err)
{
    size_t at = 0;
    qsort(f->tensor, f->count, sizeof *f->tensor, by_range);
    for (size_t i = 0; i < f->count; i++) {
        const struct hm_tensor *t = &f->tensor[i];
        size_t begin = (size_t)(t->data - buffer);
        if (begin != at)
            return hm_fail(err, HM_FORMAT, "%s: tensor \"%s\": expected data from byte %zu on (%s), found from %zu",
                           f->path, t->name, at, begin < at ? "ranges overlap" : "a hole", begin);
        at += t->bytes;
    }
    if (at != size)
        return hm_fail(err, HM_FORMAT, "%s: expected %zu bytes of data as the header says, found %zu", f->path, at,
                       size);
    qsort(f->tensor, f->count, sizeof *f->tensor, by_name);
    return HM_OK;
}

static hm_status read_header(struct hm_safetensors *f, struct hm_error *err)
{
    uint64_t length = 0;
    if (f->map.size < LENGTH_BYTES)
        return hm_fail(err, HM_FORMAT, "%s: expected at least %d bytes, found %zu", f->path, LENGTH_BYTES, f->map.size);
    memcpy(&length, f->map.data, LENGTH_BYTES);
    size_t rest = f->map.size - LENGTH_BYTES;
    if (length > HEADER_MOST || length > rest)
        return hm_fail(err, HM_FORMAT, "%s: expected a header of at most %zu bytes, found a length of %llu", f->path,
                       rest < HEADER_MOST ? rest : HEADER_MOST, (unsigned long long)length);
    const char *text = (const char *)f->map.data + LENGTH_BYTES;
    if (length == 0 || text[0] != '{')
        return hm_fail(err, HM_FORMAT, "%s: expected a header that begins with '{', found %s", f->path,
                       length ? "another byte" : "nothing");
    hm_status rc = hm_json_parse(f->path, text, (size_t)length, &f->header, err);
    if (rc) return rc;

    size_t entries = 0, size = rest - (size_t)length;
    const uint8_t *buffer = f->map.data + LENGTH_BYTES + length;
    for (const cJSON *e = f->header->child; e; e = e->next) entries++;
    f->tensor = hm_calloc(entries, sizeof *f->tensor);
    if (!f->tensor) return hm_fail(err, HM_MEMORY, "%s: out of memory for %zu tensors", f->path, entries);
    for (const cJSON *e = f->header->child; e; e = e->next) {
        if (strcmp(e->string, "__metadata__") == 0) {
            rc = check_metadata(f->path, e, err);
        } else {
            rc = check_name(f->path, e->string, err);
            if (!rc) rc = read_tensor(f->path, e, buffer, size, &f->tensor[f->count++], err);
        }
        if (rc) return rc;
    }
    return check_cover(f, buffer, size, err);
}

hm_status hm_safetensors_open(const char *path, struct hm_safetensors **out, struct hm_error *err)
{
    *out = NULL;
    struct hm_safetensors *f = hm_calloc(1, sizeof *f);
    if (f) f->path = strdup(path);
    if (!f || !f->path) {
        free(f);
        return hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    }
    hm_status rc = hm_map_open(path, &f->map, err);
    if (!rc) rc = read_header(f, err);
    if (rc)
        hm_safetensors_close(f);
    else
        *out = f;
    return rc;
}

void hm_safetensors_close(struct hm_safetensors *f)
{
    if (!f) return;
    free(f->tensor);
    cJSON_Delete(f->header);
    hm_map_close(&f->map);
    free(f->path);
    free(f);
}

const char *hm_safetensors_path(const struct hm_safetensors *f)
{
    return f->path;
}

size_t hm_safetensors_count(const struct hm_safetensors *f)
{
    return f->count;
}

const struct hm_tensor *hm_safetensors_at(const struct hm_safetensors *f, size_t index)
{
    return index < f->count ? &f->tensor[index] : NULL;
}

const struct hm_tensor *hm_safetensors_find(const struct hm_safetensors *f, const char *name)
{
    struct hm_tensor key = {.name = name};
    return bsearch(&key, f->tensor, f->count, sizeof key, by_name);
}

const uint8_t *hm_safetensors_bytes(const struct hm_safetensors *f, size_t *size)
{
    *size = f->map.size;
    return f->map.data;
}
