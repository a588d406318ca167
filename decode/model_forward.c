// Passes of tokens through the layers: see model.h.
//
// A pass is checked as a whole, then computed in chunks of rows. A chunk's keys and values are in the cache before its
// attention runs, so rows see the earlier rows of their own chunk through the same lists as everything else. What a row
// sees is given to the device by logical position (kernels.h), which is why neither chunks nor slots show in the bits.
#include "decode/model_parts.h"

#include "base/memory.h"

#include <string.h>

// What one chunk is made of, in host memory.
struct chunk {
    size_t first, rows; // rows of the pass
    uint32_t position[HM_CHUNK_ROWS], slot[HM_CHUNK_ROWS];
    struct hm_visible visible[HM_CHUNK_ROWS];
};

static struct hm_view whole(struct hm_buffer *buffer)
{
    return (struct hm_view){.buffer = buffer};
}

// Checks the rows of a pass and writes them behind the scratch rows, which are not yet counted. *positions becomes the
// largest logical position + 1.
static hm_status place_rows(struct hm_cache *cache, const struct hm_pass *pass, size_t *positions, struct hm_error *err)
{
    const struct hm_config *c = &cache->model->config;
    size_t base = cache->scratch, used = cache->length + base, need;
    if (pass->rows > cache->positions - used)
        return hm_fail(err, HM_RANGE, "pass of %zu tokens: expected room in %zu positions of cache, found %zu in use",
                       pass->rows, cache->positions, used);
    if (!hm_add_size(base, pass->rows, &need) ||
        !hm_grow((void **)&cache->row, &cache->row_capacity, need, sizeof *cache->row))
        return hm_fail(err, HM_MEMORY, "pass of %zu tokens: out of memory", pass->rows);
    *positions = 0;
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
        if (position >= *positions) *positions = position + 1;
    }
    for (size_t j = 0; j < pass->logits_count; j++)
        if (pass->logits_for[j] >= pass->rows)
            return hm_fail(err, HM_RANGE, "logits %zu: expected a row below %zu, found %u", j, pass->rows,
                           pass->logits_for[j]);
    return HM_OK;
}

// Fills in slots, positions and what each row sees. A chunk of straight rows is causal: prefixes say it all. In any
// other every row has the committed tokens as prefix and its ancestors and itself as tail.
static hm_status see(struct hm_cache *cache, struct chunk *chunk, struct hm_error *err)
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

static void attention_block(struct hm_cache *cache, const struct chunk *chunk, size_t i)
{
    const struct hm_config *c = &cache->model->config;
    const struct hm_layer *layer = &cache->model->layer[i];
    struct hm_device *d = cache->model->device;
    size_t rows = chunk->rows, width = hm_qkv_width(c), kv = hm_kv_width(c), query = c->heads * c->head_dim;
    struct hm_view x = whole(cache->stream), h = whole(cache->normed), qkv = whole(cache->qkv),
                   mixed = whole(cache->mixed);
    struct hm_view k = {cache->qkv, query}, v = {cache->qkv, query + kv};
    struct hm_view keys = {cache->keys, i * cache->positions * kv}, values = {cache->values, i * cache->positions * kv};
    struct hm_attention_shape shape = {.rows = rows,
                                       .heads = c->heads,
                                       .kv_heads = c->kv_heads,
                                       .head_dim = c->head_dim,
                                       .scale = cache->model->score_scale};

    d->ops->rms_norm(d, x, layer->attention_norm, h, rows, c->hidden, c->hidden, c->rms_epsilon);
    d->ops->matmul(d, layer->qkv, h, qkv, rows);
    if (layer->qkv_bias.buffer) d->ops->add_bias(d, layer->qkv_bias, qkv, rows, width);
    if (layer->query_norm.buffer) norm_heads(cache, layer->query_norm, 0, c->heads, rows);
    if (layer->key_norm.buffer) norm_heads(cache, layer->key_norm, query, c->kv_heads, rows);
    d->ops->rope(d, &cache->rope, chunk->position, qkv, rows, c->heads + c->kv_heads, width); // keys follow the queries
    d->ops->cache_store(d, k, v, width, keys, values, chunk->slot, rows, kv);
    d->ops->attention(d, &shape, chunk->visible, qkv, width, keys, values, mixed);
    d->ops->matmul_add(d, layer->out, mixed, x, rows);
    if (layer->out_bias.buffer) d->ops->add_bias(d, layer->out_bias, x, rows, c->hidden);
}

static void mlp_block(struct hm_cache *cache, size_t rows, size_t i)
{
    const struct hm_config *c = &cache->model->config;
    const struct hm_layer *layer = &cache->model->layer[i];
    struct hm_device *d = cache->model->device;
    struct hm_view x = whole(cache->stream), h = whole(cache->normed), wide = whole(cache->gate_up);
    d->ops->rms_norm(d, x, layer->mlp_norm, h, rows, c->hidden, c->hidden, c->rms_epsilon);
    d->ops->matmul(d, layer->gate_up, h, wide, rows);
    if (layer->gate_up_bias.buffer) d->ops->add_bias(d, layer->gate_up_bias, wide, rows, 2 * c->intermediate);
    d->ops->silu_mul(d, wide, whole(cache->active), rows, c->intermediate);
    d->ops->matmul_add(d, layer->down, whole(cache->active), x, rows);
    if (layer->down_bias.buffer) d->ops->add_bias(d, layer->down_bias, x, rows, c->hidden);
}

// Logits of wanted[0..count) (places in logits_for; rows in `index` of the chunk), copied to their places.
static void emit_logits(struct hm_cache *cache, const uint32_t *index, const size_t *wanted, size_t count,
                        float *logits)
{
    const struct hm_config *c = &cache->model->config;
    struct hm_device *d = cache->model->device;
    d->ops->gather(d, whole(cache->stream), index, whole(cache->normed), count, c->hidden);
    d->ops->rms_norm(d, whole(cache->normed), cache->model->final_norm, whole(cache->normed), count, c->hidden,
                     c->hidden, c->rms_epsilon);
    d->ops->matmul(d, cache->model->head, whole(cache->normed), whole(cache->logits), count);
    for (size_t j = 0, run; j < count; j += run) {
        for (run = 1; j + run < count && wanted[j + run] == wanted[j] + run;) run++;
        d->ops->download(d, logits + wanted[j] * c->vocab, (struct hm_view){cache->logits, j * c->vocab},
                         run * c->vocab);
    }
}

static void chunk_logits(struct hm_cache *cache, const struct hm_pass *pass, const struct chunk *chunk, float *logits)
{
    uint32_t index[HM_CHUNK_ROWS];
    size_t wanted[HM_CHUNK_ROWS], count = 0;
    for (size_t j = 0; j < pass->logits_count; j++) {
        size_t row = pass->logits_for[j];
        if (row < chunk->first || row >= chunk->first + chunk->rows) continue;
        index[count] = (uint32_t)(row - chunk->first);
        wanted[count++] = j;
        if (count == HM_CHUNK_ROWS) { // a row may be asked for more than once
            emit_logits(cache, index, wanted, count, logits);
            count = 0;
        }
    }
    if (count) emit_logits(cache, index, wanted, count, logits);
}

hm_status hm_model_forward(struct hm_model *model, struct hm_cache *cache, const struct hm_pass *pass, float *logits,
                           struct hm_error *err)
{
    if (cache->model != model) return hm_fail(err, HM_USAGE, "pass: expected a cache of this model, found another's");
    size_t positions = 0;
    hm_status rc = place_rows(cache, pass, &positions, err);
    if (!rc) rc = hm_cache_rotate_to(cache, positions, err);
    if (rc) return rc;
    struct hm_device *d = model->device;
    for (size_t first = 0; first < pass->rows; first += HM_CHUNK_ROWS) {
        size_t left = pass->rows - first;
        struct chunk chunk = {.first = first, .rows = left < HM_CHUNK_ROWS ? left : HM_CHUNK_ROWS};
        rc = see(cache, &chunk, err);
        if (rc) return rc;
        d->ops->embed(d, model->embedding, pass->token + first, whole(cache->stream), chunk.rows);
        for (size_t i = 0; i < model->config.layers; i++) {
            attention_block(cache, &chunk, i);
            mlp_block(cache, chunk.rows, i);
        }
        chunk_logits(cache, pass, &chunk, logits);
    }
    cache->scratch += pass->rows;
    return HM_OK;
}

// One chunk of a prefill: a causal pass, committed at once.
static hm_status prefill_chunk(struct hm_model *model, struct hm_cache *cache, const int32_t *token, size_t rows,
                               float *logits, struct hm_error *err)
{
    int32_t parent[HM_CHUNK_ROWS];
    uint32_t last = (uint32_t)rows - 1;
    for (size_t r = 0; r < rows; r++) parent[r] = (int32_t)r - 1;
    struct hm_pass pass = {
        .token = token, .parent = parent, .rows = rows, .logits_for = &last, .logits_count = logits != NULL};
    hm_status rc = hm_model_forward(model, cache, &pass, logits, err);
    if (rc) return rc;
    cache->length += rows; // a straight chain lies where it belongs
    cache->scratch = 0;
    return HM_OK;
}

hm_status hm_model_prefill(struct hm_model *model, struct hm_cache *cache, const int32_t *token, size_t count,
                           float *logits, const struct hm_prefill_watch *watch, struct hm_error *err)
{
    const struct hm_config *c = &model->config;
    if (cache->model != model)
        return hm_fail(err, HM_USAGE, "prefill: expected a cache of this model, found another's");
    if (count == 0) return hm_fail(err, HM_USAGE, "prefill: expected tokens, found none");
    size_t former = cache->length, most = c->max_positions < cache->positions ? c->max_positions : cache->positions;
    cache->scratch = 0;
    if (former > most || count > most - former)
        return hm_fail(err, HM_RANGE, "prefill of %zu tokens after %zu: expected at most %zu positions in all (%s)",
                       count, former, most,
                       most == c->max_positions ? "the limit of the model" : "the size of the cache");
    for (size_t i = 0; i < count; i++)
        if (token[i] < 0 || (size_t)token[i] >= c->vocab)
            return hm_fail(err, HM_RANGE, "token %zu: expected an id below %zu, found %d", i, c->vocab, token[i]);
    for (size_t done = 0; done < count;) {
        size_t rows = count - done < HM_CHUNK_ROWS ? count - done : HM_CHUNK_ROWS;
        hm_status rc = prefill_chunk(model, cache, token + done, rows, done + rows == count ? logits : NULL, err);
        if (rc) {
            hm_cache_truncate(cache, former);
            return rc;
        }
        done += rows;
        if (watch && watch->progress) watch->progress(watch->user, done, count);
    }
    return HM_OK;
}
