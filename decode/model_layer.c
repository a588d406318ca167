// What every pass over a cache is made of: placing its rows, what each of them sees, attention and MLP of one layer.
//
// A chunk's keys and values are in the cache before its attention runs, so rows see the earlier rows of their own chunk
// through the same lists as everything else. What a row sees is given to the device by logical position (kernels.h),
// which is why neither chunks nor slots show in the bits. Models (model_forward.c) and EAGLE-3 heads share this.
#include "decode/model_parts.h"

#include "base/memory.h"

hm_status hm_cache_place(struct hm_cache *cache, const struct hm_pass *pass, struct hm_error *err)
{
    const struct hm_config *c = &cache->model->config;
    size_t base = cache->scratch, used = cache->length + base, positions = 0, need;
    if (pass->rows > cache->positions - used)
        return hm_fail(err, HM_RANGE, "pass of %zu tokens: expected room in %zu positions of cache, found %zu in use",
                       pass->rows, cache->positions, used);
    if (!hm_add_size(base, pass->rows, &need) ||
        !hm_grow((void **)&cache->row, &cache->row_capacity, need, sizeof *cache->row))
        return hm_fail(err, HM_MEMORY, "pass of %zu tokens: out of memory", pass->rows);
    for (size_t r = 0; r < pass->rows; r++) {
        size_t s = base + r;
        int32_t token = pass->token[r], parent = pass->parent[r];
        if (token < 0 || (size_t)token >= c->vocab)
            return hm_fail(err, HM_RANGE, "token %zu: expected an id below %zu, found %d", r, c->vocab, token);
        if (parent < -1 || parent >= (int64_t)s)
            return hm_fail(err, HM_RANGE, "token %zu: expected a parent from -1 to %lld, found %d", r, (long long)s - 1,
                           parent);
        struct hm_scratch_row *row = &cache->row[s];
        row->parent = parent;
        row->depth = parent < 0 ? 0 : cache->row[parent].depth + 1;
        row->straight = row->depth == s; // depths grow by one a row at most, so all ancestors are straight too
        size_t position = cache->length + row->depth;
        if (position >= c->max_positions)
            return hm_fail(err, HM_RANGE, "token %zu: expected a position below %zu, the limit of the model, found %zu",
                           r, c->max_positions, position);
        if (position >= positions) positions = position + 1;
    }
    for (size_t j = 0; j < pass->logits_count; j++)
        if (pass->logits_for[j] >= pass->rows)
            return hm_fail(err, HM_RANGE, "logits %zu: expected a row below %zu, found %u", j, pass->rows,
                           pass->logits_for[j]);
    return hm_cache_rotate_to(cache, positions, err);
}

// A chunk of straight rows is causal: prefixes say it all. In any other every row has the committed tokens as prefix
// and its ancestors and itself as tail.
hm_status hm_cache_see(struct hm_cache *cache, struct hm_chunk *chunk, struct hm_error *err)
{
    size_t base = cache->scratch + chunk->first, tails = 0;
    bool causal = true;
    for (size_t r = 0; r < chunk->rows; r++) {
        const struct hm_scratch_row *row = &cache->row[base + r];
        chunk->slot[r] = (uint32_t)(cache->length + base + r);
        chunk->position[r] = (uint32_t)cache->length + row->depth;
        tails += (size_t)row->depth + 1;
        causal = causal && row->straight;
    }
    if (causal) {
        for (size_t r = 0; r < chunk->rows; r++)
            chunk->visible[r] = (struct hm_visible){.prefix = chunk->position[r] + 1};
        return HM_OK;
    }
    if (!hm_grow((void **)&cache->tail, &cache->tail_capacity, tails, sizeof *cache->tail))
        return hm_fail(err, HM_MEMORY, "pass: out of memory for %zu ancestors", tails);
    uint32_t *tail = cache->tail;
    for (size_t r = 0; r < chunk->rows; r++) {
        uint32_t length = cache->row[base + r].depth + 1, at = length;
        for (int32_t s = (int32_t)(base + r); s >= 0; s = cache->row[s].parent)
            tail[--at] = (uint32_t)(cache->length + (size_t)s);
        chunk->visible[r] = (struct hm_visible){.prefix = (uint32_t)cache->length, .tail_length = length, .tail = tail};
        tail += length;
    }
    return HM_OK;
}

// Norms every query head or every key head in place. Heads of one row lie head_dim apart, rows lie qkv_width apart;
// whichever gives fewer calls is walked inside the call.
static void norm_heads(const struct hm_cache *cache, struct hm_view gain, size_t offset, size_t heads, size_t rows)
{
    const struct hm_config *c = &cache->model->config;
    struct hm_device *d = cache->model->device;
    size_t width = hm_qkv_width(c);
    bool by_row = rows < heads;
    for (size_t i = 0; i < (by_row ? rows : heads); i++) {
        struct hm_view x = {cache->qkv, offset + i * (by_row ? width : c->head_dim)};
        d->ops->rms_norm(d, x, gain, x, by_row ? heads : rows, c->head_dim, by_row ? c->head_dim : width,
                         c->rms_epsilon);
    }
}

void hm_layer_attend(struct hm_cache *cache, const struct hm_chunk *chunk, size_t i, struct hm_view input)
{
    const struct hm_config *c = &cache->model->config;
    const struct hm_layer *layer = &cache->model->layer[i];
    struct hm_device *d = cache->model->device;
    size_t rows = chunk->rows, width = hm_qkv_width(c), kv = hm_kv_width(c), query = c->heads * c->head_dim;
    struct hm_view x = hm_whole(cache->stream), qkv = hm_whole(cache->qkv), mixed = hm_whole(cache->mixed);
    struct hm_view k = {cache->qkv, query}, v = {cache->qkv, query + kv};
    struct hm_view keys = {cache->keys, i * cache->positions * kv}, values = {cache->values, i * cache->positions * kv};
    struct hm_attention_shape shape = {.rows = rows,
                                       .heads = c->heads,
                                       .kv_heads = c->kv_heads,
                                       .head_dim = c->head_dim,
                                       .scale = cache->model->score_scale};

    d->ops->matmul(d, layer->qkv, input, qkv, rows);
    if (layer->qkv_bias.buffer) d->ops->add_bias(d, layer->qkv_bias, qkv, rows, width);
    if (layer->query_norm.buffer) norm_heads(cache, layer->query_norm, 0, c->heads, rows);
    if (layer->key_norm.buffer) norm_heads(cache, layer->key_norm, query, c->kv_heads, rows);
    d->ops->rope(d, &cache->rope, chunk->position, qkv, rows, c->heads + c->kv_heads, width); // keys follow the queries
    d->ops->cache_store(d, k, v, width, keys, values, chunk->slot, rows, kv);
    d->ops->attention(d, &shape, chunk->visible, qkv, width, keys, values, mixed);
    d->ops->matmul_add(d, layer->out, mixed, x, rows);
    if (layer->out_bias.buffer) d->ops->add_bias(d, layer->out_bias, x, rows, c->hidden);
}

void hm_layer_mlp(struct hm_cache *cache, size_t rows, size_t i)
{
    const struct hm_config *c = &cache->model->config;
    const struct hm_layer *layer = &cache->model->layer[i];
    struct hm_device *d = cache->model->device;
    struct hm_view x = hm_whole(cache->stream), h = hm_whole(cache->normed), wide = hm_whole(cache->gate_up);
    d->ops->rms_norm(d, x, layer->mlp_norm, h, rows, c->hidden, c->hidden, c->rms_epsilon);
    d->ops->matmul(d, layer->gate_up, h, wide, rows);
    if (layer->gate_up_bias.buffer) d->ops->add_bias(d, layer->gate_up_bias, wide, rows, 2 * c->intermediate);
    d->ops->silu_mul(d, wide, hm_whole(cache->active), rows, c->intermediate);
    d->ops->matmul_add(d, layer->down, hm_whole(cache->active), x, rows);
    if (layer->down_bias.buffer) d->ops->add_bias(d, layer->down_bias, x, rows, c->hidden);
}
