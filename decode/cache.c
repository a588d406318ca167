// Key/value caches: see cache.h. Deciding what is committed moves cache rows and nothing else: keys were rotated for
// the position they keep.
#include "decode/model_parts.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

// Buffers for one chunk. Those of the widest matrices are only touched as far as rows reach.
static bool open_buffers(struct hm_cache *cache)
{
    const struct hm_config *c = &cache->model->config;
    struct hm_device *d = cache->model->device;
    const struct {
        struct hm_buffer **buffer;
        size_t width;
    } list[] = {
        {&cache->stream, c->hidden},
        {&cache->normed, c->hidden},
        {&cache->qkv, hm_qkv_width(c)},
        {&cache->mixed, c->heads * c->head_dim},
        {&cache->gate_up, 2 * c->intermediate},
        {&cache->active, c->intermediate},
        {&cache->logits, c->vocab},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        *list[i].buffer = d->ops->alloc(d, HM_CHUNK_ROWS * list[i].width);
        if (!*list[i].buffer) return false;
    }
    return true;
}

hm_status hm_cache_open(struct hm_model *model, size_t positions, struct hm_cache **out, struct hm_error *err)
{
    *out = NULL;
    const struct hm_config *c = &model->config;
    struct hm_device *d = model->device;
    if (positions == 0 || positions > INT32_MAX)
        return hm_fail(err, HM_RANGE, "cache: expected 1 to %d positions, found %zu", INT32_MAX, positions);
    size_t floats;
    struct hm_cache *cache = hm_calloc(1, sizeof *cache);
    if (!cache || !hm_mul_size(c->layers * hm_kv_width(c), positions, &floats) || floats > SIZE_MAX / sizeof(float)) {
        free(cache);
        return hm_fail(err, HM_MEMORY, "cache: out of memory for %zu positions", positions);
    }
    cache->model = model;
    cache->positions = positions;
    cache->rope.head_dim = c->head_dim;
    cache->keys = d->ops->alloc(d, floats);
    cache->values = d->ops->alloc(d, floats);
    if (!cache->keys || !cache->values || !open_buffers(cache)) {
        hm_cache_close(cache);
        return hm_fail(err, HM_MEMORY, "cache: out of memory for %zu positions (%zu bytes)", positions,
                       2 * sizeof(float) * floats);
    }
    *out = cache;
    return HM_OK;
}

void hm_cache_close(struct hm_cache *cache)
{
    if (!cache) return;
    struct hm_device *d = cache->model->device;
    struct hm_buffer *list[] = {cache->keys,  cache->values,  cache->stream, cache->normed, cache->qkv,
                                cache->mixed, cache->gate_up, cache->active, cache->logits};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i]) d->ops->release(d, list[i]);
    free(cache->row);
    free(cache->rope_tables);
    free(cache->tail);
    free(cache);
}

size_t hm_cache_length(const struct hm_cache *cache)
{
    return cache->length;
}

size_t hm_cache_scratch(const struct hm_cache *cache)
{
    return cache->scratch;
}

size_t hm_cache_positions(const struct hm_cache *cache)
{
    return cache->positions;
}

hm_status hm_cache_rotate_to(struct hm_cache *cache, size_t positions, struct hm_error *err)
{
    size_t pairs = cache->rope.head_dim / 2, had = cache->rope.positions, floats;
    if (positions <= had) return HM_OK;
    size_t most = cache->model->config.max_positions, want = had < 256 ? 512 : 2 * had;
    if (want > most) want = most;
    if (want > cache->positions) want = cache->positions;
    if (want < positions) want = positions;
    float *tables = hm_mul_size(2 * pairs, want, &floats) ? malloc(floats * sizeof *tables) : NULL;
    if (!tables) return hm_fail(err, HM_MEMORY, "cache: out of memory rotating %zu positions", want);
    float *cosine = tables, *sine = tables + want * pairs;
    if (had) {
        memcpy(cosine, cache->rope.cosine, had * pairs * sizeof *tables);
        memcpy(sine, cache->rope.sine, had * pairs * sizeof *tables);
    }
    hm_rope_fill(cache->model->frequency, pairs, had, want - had, cosine, sine);
    free(cache->rope_tables);
    cache->rope_tables = tables;
    cache->rope.cosine = cosine;
    cache->rope.sine = sine;
    cache->rope.positions = want;
    return HM_OK;
}

hm_status hm_cache_commit(struct hm_cache *cache, const uint32_t *path, size_t n, struct hm_error *err)
{
    const struct hm_config *c = &cache->model->config;
    struct hm_device *d = cache->model->device;
    if (n > cache->scratch)
        return hm_fail(err, HM_USAGE, "commit: expected at most %zu scratch rows, found %zu", cache->scratch, n);
    for (size_t i = 0; i < n; i++) {
        int32_t parent = i ? (int32_t)path[i - 1] : -1;
        if (path[i] >= cache->scratch || cache->row[path[i]].parent != parent)
            return hm_fail(err, HM_USAGE, "commit: expected a child of scratch row %d at place %zu, found row %u",
                           parent, i, path[i]);
    }
    // Rows that already lie where they belong lead the path; the rest is moved, in this order safe in place.
    size_t settled = 0;
    while (settled < n && path[settled] == settled) settled++;
    size_t moved = n - settled;
    if (moved) {
        uint32_t *from = hm_calloc(2 * moved, sizeof *from), *to = from ? from + moved : NULL;
        if (!from) return hm_fail(err, HM_MEMORY, "commit: out of memory for %zu rows", n);
        for (size_t j = 0; j < moved; j++) {
            from[j] = (uint32_t)cache->length + path[settled + j];
            to[j] = (uint32_t)(cache->length + settled + j);
        }
        for (size_t i = 0; i < c->layers; i++) {
            size_t offset = i * cache->positions * hm_kv_width(c);
            d->ops->cache_move(d, (struct hm_view){cache->keys, offset}, from, to, moved, hm_kv_width(c));
            d->ops->cache_move(d, (struct hm_view){cache->values, offset}, from, to, moved, hm_kv_width(c));
        }
        free(from);
    }
    cache->length += n;
    cache->scratch = 0;
    return HM_OK;
}

void hm_cache_truncate(struct hm_cache *cache, size_t length)
{
    if (length < cache->length) cache->length = length;
    cache->scratch = 0;
}

void hm_cache_drop_scratch(struct hm_cache *cache)
{
    cache->scratch = 0;
}
