// The ids of a draft's columns: see draft_vocabulary.h.
#include "cli/draft_vocabulary.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "decode/npy.h"
#include "decode/safetensors.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const size_t JSON_MOST = 64 << 20;

struct reading {
    const char *path;
    size_t columns, vocab;
    int32_t *ids;       // [columns]
    uint32_t *column;   // [vocab]: 1 + the column that has this id, 0: none
    struct hm_error *err;
};

static hm_status set_count(const struct reading *r, size_t found)
{
    if (found == r->columns) return HM_OK;
    return hm_fail(r->err, HM_SHAPE, "%s: expected %zu ids, one for each column of the draft's rows, found %zu", r->path,
                   r->columns, found);
}

static hm_status set_id(struct reading *r, size_t i, int64_t id)
{
    if (id < 0 || (uint64_t)id >= r->vocab)
        return hm_fail(r->err, HM_RANGE, "%s: column %zu: expected a target id below %zu, found %lld", r->path, i, r->vocab,
                       (long long)id);
    if (r->column[id])
        return hm_fail(r->err, HM_RANGE, "%s: column %zu: expected an id of its own, found %lld, which column %u has",
                       r->path, i, (long long)id, r->column[id] - 1);
    r->column[id] = (uint32_t)i + 1;
    r->ids[i] = (int32_t)id;
    return HM_OK;
}

static hm_status read_json(struct reading *r)
{
    cJSON *array;
    size_t count = 0;
    hm_status rc = hm_json_read(r->path, JSON_MOST, &array, r->err);
    if (rc) return rc;
    if (!cJSON_IsArray(array))
        rc = hm_fail(r->err, HM_FORMAT, "%s: expected an array of ids, found %s", r->path, hm_json_kind(array));
    else
        rc = set_count(r, (size_t)cJSON_GetArraySize(array));
    for (const cJSON *v = rc ? NULL : array->child; v && !rc; v = v->next, count++) {
        double d = cJSON_IsNumber(v) ? v->valuedouble : 0.5;
        if (!(d >= -0x1p53 && d <= 0x1p53) || d != (double)(int64_t)d)
            rc = hm_fail(r->err, HM_FORMAT, "%s: column %zu: expected an id, found %s", r->path, count,
                         cJSON_IsNumber(v) ? "another number" : hm_json_kind(v));
        else
            rc = set_id(r, count, (int64_t)d);
    }
    cJSON_Delete(array);
    return rc;
}

// Number i of little-endian integers of 1, 2, 4 or 8 bytes; an unsigned one beyond int64 becomes -1, which is no id.
static int64_t integer_at(const uint8_t *data, size_t item, bool is_signed, size_t i)
{
    uint64_t bits = 0;
    memcpy(&bits, data + i * item, item);
    if (!is_signed) return bits > INT64_MAX ? -1 : (int64_t)bits;
    uint64_t sign = UINT64_C(1) << (8 * item - 1);
    return (int64_t)((bits ^ sign) - sign);
}

static hm_status read_npy(struct reading *r)
{
    struct hm_npy npy;
    hm_status rc = hm_npy_open(r->path, &npy, r->err);
    if (rc) return rc;
    if (npy.rank != 1 || (npy.kind != 'i' && npy.kind != 'u'))
        rc = hm_fail(r->err, HM_SHAPE, "%s: expected integers in one dimension, found %zu dimensions of type '<%c%zu'",
                     r->path, npy.rank, npy.kind, npy.item);
    else
        rc = set_count(r, npy.shape[0]);
    for (size_t i = 0; i < r->columns && !rc; i++) rc = set_id(r, i, integer_at(npy.data, npy.item, npy.kind == 'i', i));
    hm_npy_close(&npy);
    return rc;
}

static hm_status read_safetensors(struct reading *r)
{
    struct hm_safetensors *file;
    hm_status rc = hm_safetensors_open(r->path, &file, r->err);
    if (rc) return rc;
    const struct hm_tensor *t = hm_safetensors_find(file, "d2t");
    size_t item = t && strcmp(t->type, "I64") == 0 ? 8 : t && strcmp(t->type, "I32") == 0 ? 4 : 0;
    if (!t)
        rc = hm_fail(r->err, HM_FORMAT, "%s: expected a tensor \"d2t\", found none", r->path);
    else if (!item || t->rank != 1)
        rc = hm_fail(r->err, HM_SHAPE, "%s: tensor \"d2t\": expected I64 or I32 in one dimension, found %s in %zu", r->path,
                     t->type, t->rank);
    else
        rc = set_count(r, t->shape[0]);
    for (size_t i = 0; i < r->columns && !rc; i++) {
        int64_t offset = integer_at(t->data, item, true, i);
        bool sane = offset > -(INT64_C(1) << 53) && offset < INT64_C(1) << 53;
        rc = set_id(r, i, sane ? (int64_t)i + offset : offset);
    }
    hm_safetensors_close(file);
    return rc;
}

// The first bytes say what a file is: a safetensors header begins with '{' after its length, where no array of ids does.
static hm_status read_ids(struct reading *r)
{
    struct hm_map map;
    hm_status rc = hm_map_open(r->path, &map, r->err);
    if (rc) return rc;
    bool npy = hm_npy_begins(map.data, map.size), safetensors = map.size > 8 && map.data[8] == '{';
    hm_map_close(&map);
    return npy ? read_npy(r) : safetensors ? read_safetensors(r) : read_json(r);
}

hm_status hm_draft_vocabulary_read(const char *path, size_t columns, size_t vocab, int32_t **ids, struct hm_error *err)
{
    struct reading r = {.path = path, .columns = columns, .vocab = vocab, .err = err};
    r.ids = hm_calloc(columns, sizeof *r.ids);
    r.column = hm_calloc(vocab, sizeof *r.column);
    hm_status rc = r.ids && r.column ? read_ids(&r)
                                     : hm_fail(err, HM_MEMORY, "%s: out of memory for %zu ids", path, columns);
    free(r.column);
    if (rc) free(r.ids);
    *ids = rc ? NULL : r.ids;
    return rc;
}
