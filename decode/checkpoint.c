// The weight files of a checkpoint folder: see checkpoint.h.
#include "decode/checkpoint.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t INDEX_MOST = 64u << 20;
enum { SHARDS_MOST = 4096, SHARD_NAME_MOST = 255 };

// One line of the index: which file holds a tensor.
struct placement {
    const char *name;
    const char *shard; // file name, owned by the index document
    const struct hm_safetensors *file;
    const struct hm_tensor *tensor;
};

struct hm_checkpoint {
    char *source;                 // path that says what is in the checkpoint: the single file or the index
    struct hm_safetensors **file; // [files], by name
    size_t files;
    cJSON *index;            // NULL for a single file
    struct placement *place; // [places], by tensor name; with an index only
    size_t places;
};

static int by_tensor(const void *a, const void *b)
{
    return strcmp(((const struct placement *)a)->name, ((const struct placement *)b)->name);
}

static int by_shard(const void *a, const void *b)
{
    return strcmp(((const struct placement *)a)->shard, ((const struct placement *)b)->shard);
}

static hm_status out_of_memory(const char *where, struct hm_error *err)
{
    return hm_fail(err, HM_MEMORY, "%s: out of memory", where);
}

// A shard is a file of the same folder, never hidden, never elsewhere.
static bool shard_name_ok(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n > SHARD_NAME_MOST || name[0] == '.' || strchr(name, '/') || strstr(name, "..")) return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f) return false;
    return true;
}

static hm_status read_map(struct hm_checkpoint *c, struct hm_error *err)
{
    const cJSON *map;
    hm_status rc = hm_json_object(c->source, c->index, "weight_map", &map, err);
    if (rc) return rc;
    size_t count = 0;
    for (const cJSON *e = map->child; e; e = e->next) count++;
    if (count == 0) return hm_fail(err, HM_FORMAT, "%s: key \"weight_map\": expected tensors, found none", c->source);
    c->place = hm_calloc(count, sizeof *c->place);
    if (!c->place) return out_of_memory(c->source, err);
    for (const cJSON *e = map->child; e; e = e->next) {
        if (!cJSON_IsString(e))
            return hm_fail(err, HM_FORMAT, "%s: tensor \"%.200s\": expected a file name, found %s", c->source,
                           e->string, hm_json_kind(e));
        if (!shard_name_ok(e->valuestring))
            return hm_fail(err, HM_FORMAT,
                           "%s: tensor \"%.200s\": expected the name of a file in the same folder, found \"%.300s\"",
                           c->source, e->string, e->valuestring);
        c->place[c->places++] = (struct placement){.name = e->string, .shard = e->valuestring};
    }
    return HM_OK;
}

// Opens every shard once, in order of names, and points the tensors at it.
static hm_status open_shards(struct hm_checkpoint *c, const char *dir, struct hm_error *err)
{
    qsort(c->place, c->places, sizeof *c->place, by_shard);
    size_t shards = 0;
    for (size_t i = 0; i < c->places; i++)
        if (i == 0 || strcmp(c->place[i].shard, c->place[i - 1].shard) != 0) shards++;
    if (shards > SHARDS_MOST)
        return hm_fail(err, HM_RANGE, "%s: expected at most %d files, found %zu", c->source, SHARDS_MOST, shards);
    c->file = hm_calloc(shards, sizeof *c->file);
    if (!c->file) return out_of_memory(c->source, err);
    for (size_t i = 0; i < c->places; i++) {
        struct placement *p = &c->place[i];
        if (i == 0 || strcmp(p->shard, c->place[i - 1].shard) != 0) {
            char *path = hm_path_join(dir, p->shard);
            if (!path) return out_of_memory(c->source, err);
            hm_status rc = hm_safetensors_open(path, &c->file[c->files], err);
            free(path);
            if (rc) return rc;
            c->files++;
        }
        p->file = c->file[c->files - 1];
        p->tensor = hm_safetensors_find(p->file, p->name);
        if (!p->tensor)
            return hm_fail(err, HM_SHAPE, "%s: tensor \"%s\": expected as %s says, found nothing",
                           hm_safetensors_path(p->file), p->name, c->source);
    }
    qsort(c->place, c->places, sizeof *c->place, by_tensor);
    return HM_OK;
}

static hm_status open_single(struct hm_checkpoint *c, struct hm_error *err)
{
    c->file = hm_calloc(1, sizeof *c->file);
    if (!c->file) return out_of_memory(c->source, err);
    hm_status rc = hm_safetensors_open(c->source, &c->file[0], err);
    if (!rc) c->files = 1;
    return rc;
}

hm_status hm_checkpoint_open(const char *dir, struct hm_checkpoint **out, struct hm_error *err)
{
    *out = NULL;
    char *index = NULL;
    hm_status rc;
    struct hm_checkpoint *c = hm_calloc(1, sizeof *c);
    if (c) c->source = hm_path_join(dir, "model.safetensors");
    if (c) index = hm_path_join(dir, "model.safetensors.index.json");
    if (!c || !c->source || !index) {
        rc = out_of_memory(dir, err);
        goto cleanup;
    }
    if (access(c->source, F_OK) == 0 || access(index, F_OK) != 0) {
        rc = open_single(c, err);
        goto cleanup;
    }
    free(c->source);
    c->source = index;
    index = NULL;
    rc = hm_json_read(c->source, INDEX_MOST, &c->index, err);
    if (!rc) rc = read_map(c, err);
    if (!rc) rc = open_shards(c, dir, err);
cleanup:
    free(index);
    if (rc)
        hm_checkpoint_close(c);
    else
        *out = c;
    return rc;
}

void hm_checkpoint_close(struct hm_checkpoint *c)
{
    if (!c) return;
    for (size_t i = 0; i < c->files; i++) hm_safetensors_close(c->file[i]);
    free(c->file);
    free(c->place);
    cJSON_Delete(c->index);
    free(c->source);
    free(c);
}

size_t hm_checkpoint_files(const struct hm_checkpoint *c)
{
    return c->files;
}

const struct hm_safetensors *hm_checkpoint_file(const struct hm_checkpoint *c, size_t i)
{
    return i < c->files ? c->file[i] : NULL;
}

const struct hm_tensor *hm_checkpoint_find(const struct hm_checkpoint *c, const char *name, const char **path)
{
    const struct hm_safetensors *file = c->file[0];
    const struct hm_tensor *tensor;
    if (c->index) {
        struct placement key = {.name = name};
        const struct placement *p = bsearch(&key, c->place, c->places, sizeof key, by_tensor);
        if (!p) return NULL;
        file = p->file;
        tensor = p->tensor;
    } else {
        tensor = hm_safetensors_find(file, name);
    }
    if (path) *path = hm_safetensors_path(file);
    return tensor;
}

hm_status hm_checkpoint_need(const struct hm_checkpoint *c, const char *name, size_t rank, const size_t *shape,
                             const struct hm_tensor **tensor, enum hm_dtype *dtype, struct hm_error *err)
{
    char expected[HM_TENSOR_SHAPE_TEXT], found[HM_TENSOR_SHAPE_TEXT];
    const char *path;
    hm_shape_text(rank, shape, expected);
    *tensor = hm_checkpoint_find(c, name, &path);
    if (!*tensor)
        return hm_fail(err, HM_SHAPE, "%s: tensor \"%s\": expected %s, found nothing", c->source, name, expected);
    const struct hm_tensor *t = *tensor;
    if (t->rank != rank || memcmp(t->shape, shape, rank * sizeof *shape) != 0) {
        hm_shape_text(t->rank, t->shape, found);
        return hm_fail(err, HM_SHAPE, "%s: tensor \"%s\": expected %s, found %s", path, name, expected, found);
    }
    return hm_tensor_dtype(t, path, dtype, err);
}
