// Passes of tokens through the layers: see model.h. A pass is checked as a whole, then computed in chunks of rows
// (model_layer.c).
#include "decode/model_parts.h"

// Logits of wanted[0..count) (places in logits_for; rows in `index` of the chunk), copied to their places.
static void emit_logits(struct hm_cache *cache, const uint32_t *index, const size_t *wanted, size_t count,
                        float *logits)
{
    const struct hm_config *c = &cache->model->config;
    struct hm_device *d = cache->model->device;
    d->ops->gather(d, hm_whole(cache->stream), index, hm_whole(cache->normed), count, c->hidden);
    d->ops->rms_norm(d, hm_whole(cache->normed), cache->model->final_norm, hm_whole(cache->normed), count, c->hidden,
                     c->hidden, c->rms_epsilon);
    d->ops->matmul(d, cache->model->head, hm_whole(cache->normed), hm_whole(cache->logits), count);
    for (size_t j = 0, run; j < count; j += run) {
        for (run = 1; j + run < count && wanted[j + run] == wanted[j] + run;) run++;
        d->ops->download(d, logits + wanted[j] * c->vocab, (struct hm_view){cache->logits, j * c->vocab},
                         run * c->vocab);
    }
}

static void chunk_logits(struct hm_cache *cache, const struct hm_pass *pass, const struct hm_chunk *chunk, float *logits)
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

// The taps asked for must name layers of the model, in ascending order.
static hm_status check_taps(const struct hm_model *model, const struct hm_taps *taps, struct hm_error *err)
{
    for (size_t i = 0; taps && i < taps->count; i++)
        if (taps->layer[i] >= model->config.layers || (i && taps->layer[i] <= taps->layer[i - 1]))
            return hm_fail(err, HM_USAGE, "tap %zu: expected ascending layers below %zu, found %zu", i,
                           model->config.layers, taps->layer[i]);
    return HM_OK;
}

// Copies the chunk's residual stream at the input of a layer to its place among the taps.
static void keep_tap(struct hm_cache *cache, const struct hm_chunk *chunk, const struct hm_taps *taps, size_t layer)
{
    struct hm_device *d = cache->model->device;
    uint32_t to[HM_CHUNK_ROWS];
    size_t i = 0, width = cache->model->config.hidden;
    while (i < taps->count && taps->layer[i] != layer) i++;
    if (i == taps->count) return;
    for (size_t r = 0; r < chunk->rows; r++) to[r] = (uint32_t)(r * taps->count);
    struct hm_view first = {taps->to.buffer, taps->to.offset + (chunk->first * taps->count + i) * width};
    d->ops->scatter(d, hm_whole(cache->stream), to, first, chunk->rows, width);
}

hm_status hm_model_forward(struct hm_model *model, struct hm_cache *cache, const struct hm_pass *pass, float *logits,
                           struct hm_error *err)
{
    const struct hm_config *c = &model->config;
    if (cache->model != model) return hm_fail(err, HM_USAGE, "pass: expected a cache of this model, found another's");
    hm_status rc = check_taps(model, pass->taps, err);
    if (!rc) rc = hm_cache_place(cache, pass, err);
    if (rc) return rc;
    struct hm_device *d = model->device;
    struct hm_view x = hm_whole(cache->stream), h = hm_whole(cache->normed);
    for (size_t first = 0; first < pass->rows; first += HM_CHUNK_ROWS) {
        size_t left = pass->rows - first;
        struct hm_chunk chunk = {.first = first, .rows = left < HM_CHUNK_ROWS ? left : HM_CHUNK_ROWS};
        rc = hm_cache_see(cache, &chunk, err);
        if (rc) return rc;
        d->ops->embed(d, model->embedding, pass->token + first, x, chunk.rows);
        for (size_t i = 0; i < c->layers; i++) {
            if (pass->taps) keep_tap(cache, &chunk, pass->taps, i);
            d->ops->rms_norm(d, x, model->layer[i].attention_norm, h, chunk.rows, c->hidden, c->hidden, c->rms_epsilon);
            hm_layer_attend(cache, &chunk, i, h);
            hm_layer_mlp(cache, chunk.rows, i);
        }
        chunk_logits(cache, pass, &chunk, logits);
    }
    cache->scratch += pass->rows;
    // A peer may read the taps next: they must be there, and only a download waits.
    float last;
    if (pass->taps && pass->rows && pass->taps->count) d->ops->download(d, &last, pass->taps->to, 1);
    return HM_OK;
}

// One chunk of a prefill: a causal pass, committed at once.
static hm_status prefill_chunk(struct hm_model *model, struct hm_cache *cache, const int32_t *token, size_t rows,
                               float *logits, const struct hm_prefill_watch *watch, struct hm_error *err)
{
    int32_t parent[HM_CHUNK_ROWS];
    uint32_t last = (uint32_t)rows - 1;
    for (size_t r = 0; r < rows; r++) parent[r] = (int32_t)r - 1;
    struct hm_pass pass = {.token = token, .parent = parent, .rows = rows, .logits_for = &last,
                           .logits_count = logits != NULL, .taps = watch ? watch->taps : NULL};
    hm_status rc = hm_model_forward(model, cache, &pass, logits, err);
    if (rc) return rc;
    cache->length += rows; // a straight chain lies where it belongs
    cache->scratch = 0;
    return watch && watch->tapped ? watch->tapped(watch->user, rows, err) : HM_OK;
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
        hm_status rc = prefill_chunk(model, cache, token + done, rows, done + rows == count ? logits : NULL, watch, err);
        if (rc) {
            hm_cache_truncate(cache, former);
            return rc;
        }
        done += rows;
        if (watch && watch->progress) watch->progress(watch->user, done, count);
    }
    return HM_OK;
}
