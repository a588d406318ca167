// The EAGLE-3 drafter: see drafter.h and docs/models.md, "EAGLE-3 heads".
//
// Slot i pairs the target's feature at position i with the embedding of token i + 1 and predicts token i + 2; it is
// rotated for position i. A context of L tokens has L - 1 such slots, the stable ones: they are computed once, as
// features and tokens come in. The tree hangs below the last of them: a candidate's slot pairs what its parent's slot
// handed on with the candidate's own token. Tree slots are scratch and dropped after each proposal.
#include "decode/eagle3.h"

#include "base/memory.h"

#include <stdlib.h>

struct eagle3_drafter {
    struct hm_drafter base;
    struct hm_eagle3 *head;
    struct hm_cache *cache; // its length is the number of stable slots
    size_t width, depth;
    size_t seen; // features taken in since the last restart
    size_t from; // the slot whose feature lies at row 0 of pending

    // On the device; rows of one chunk unless it says otherwise.
    struct hm_buffer *taken;    // taps side by side
    struct hm_buffer *pending;  // [positions]: fused features that wait for their tokens
    struct hm_buffer *embedded; // embeddings
    struct hm_buffer *pairs;    // embedding and feature side by side, normed
    struct hm_buffer *last;     // [1]: output of the last stable slot
    struct hm_buffer
        *handed; // [1 + width * depth]: features handed on, by row of the pool; row 0 by the last stable slot
    // On the host, for one chunk.
    int32_t token[HM_CHUNK_ROWS], parent[HM_CHUNK_ROWS];
    uint32_t index[HM_CHUNK_ROWS];
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

// ---- features

// Features of `rows` taps, at row `to` of pending.
static void fuse(struct eagle3_drafter *d, struct hm_view taps, const uint32_t *row, size_t rows, size_t to)
{
    const struct hm_eagle3_config *c = &d->head->config;
    struct hm_device *device = d->base.device;
    size_t one = c->target_hidden, wide = c->tap_count * one;
    struct hm_view taken = hm_whole(d->taken), pending = {d->pending, to * c->layer.hidden};
    device->ops->gather(device, taps, row, taken, rows, wide);
    for (size_t i = 0; c->fc_norm && i < c->tap_count; i++) {
        struct hm_view x = {d->taken, i * one};
        device->ops->rms_norm(device, x, d->head->fc_norm[i], x, rows, one, wide, c->layer.rms_epsilon);
    }
    if (c->norm_before_fc)
        device->ops->rms_norm(device, taken, d->head->input_norm, taken, rows, wide, wide, c->layer.rms_epsilon);
    device->ops->matmul(device, d->head->fc, taken, pending, rows);
}

static hm_status observe(struct hm_drafter *base, struct hm_view taps, const uint32_t *row, size_t count,
                         struct hm_error *err)
{
    struct eagle3_drafter *d = (struct eagle3_drafter *)base;
    if (count > base->positions - d->seen)
        return hm_fail(err, HM_RANGE,
                       "EAGLE-3 draft: expected features of at most %zu tokens, found %zu more after %zu",
                       base->positions, count, d->seen);
    for (size_t done = 0; done < count; done += HM_CHUNK_ROWS)
        fuse(d, taps, row + done, smaller(count - done, HM_CHUNK_ROWS), d->seen + done - d->from);
    d->seen += count;
    // The taps may be overwritten now, so they must have been read; only a download waits.
    float last;
    if (count) base->device->ops->download(base->device, &last, hm_whole(d->taken), 1);
    return HM_OK;
}

// Moves what still waits to the front of pending, so that its first rows are used again.
static void settle(struct eagle3_drafter *d)
{
    struct hm_device *device = d->base.device;
    size_t stable = hm_cache_length(d->cache), waiting = d->seen - stable, first = stable - d->from;
    if (waiting > first || waiting > HM_CHUNK_ROWS) return; // it would lie over itself; there is room to go on as it is
    for (size_t i = 0; i < waiting; i++) d->index[i] = (uint32_t)(first + i);
    if (waiting)
        device->ops->gather(device, hm_whole(d->pending), d->index, hm_whole(d->pending), waiting,
                            d->head->config.layer.hidden);
    d->from = stable;
}

// ---- slots

// Runs up to HM_CHUNK_ROWS slots into the scratch rows of the cache: d->token and d->parent, with rows d->index of
// `features`. Their outputs are then the cache's stream.
static hm_status run_slots(struct eagle3_drafter *d, struct hm_view features, size_t rows, struct hm_error *err)
{
    const struct hm_eagle3 *head = d->head;
    const struct hm_config *c = &head->config.layer;
    struct hm_device *device = d->base.device;
    struct hm_cache *cache = d->cache;
    struct hm_view left = hm_whole(d->pairs), right = {d->pairs, c->hidden}, stream = hm_whole(cache->stream);
    struct hm_pass pass = {.token = d->token, .parent = d->parent, .rows = rows};
    struct hm_chunk chunk = {.rows = rows};
    uint32_t even[HM_CHUNK_ROWS];
    for (size_t r = 0; r < rows; r++) even[r] = 2 * (uint32_t)r;
    hm_status rc = hm_cache_place(cache, &pass, err);
    if (!rc) rc = hm_cache_see(cache, &chunk, err);
    if (rc) return rc;
    device->ops->gather(device, features, d->index, stream, rows, c->hidden);
    device->ops->embed(device, head->layer.embedding, d->token, hm_whole(d->embedded), rows);
    device->ops->scatter(device, hm_whole(d->embedded), even, left, rows, c->hidden);
    device->ops->scatter(device, stream, even, right, rows, c->hidden);
    device->ops->rms_norm(device, left, head->layer.layer[0].attention_norm, left, rows, c->hidden, 2 * c->hidden,
                          c->rms_epsilon);
    device->ops->rms_norm(device, right, head->hidden_norm, right, rows, c->hidden, 2 * c->hidden, c->rms_epsilon);
    if (head->config.norm_before_residual) device->ops->gather(device, right, even, stream, rows, c->hidden);
    hm_layer_attend(cache, &chunk, 0, left);
    hm_layer_mlp(cache, rows, 0);
    cache->scratch += rows;
    return HM_OK;
}

// Rows first .. first + rows - 1 of handed, from outputs.
static void hand_on(struct eagle3_drafter *d, struct hm_view outputs, size_t first, size_t rows)
{
    const struct hm_eagle3_config *c = &d->head->config;
    struct hm_device *device = d->base.device;
    struct hm_view to = {d->handed, first * c->layer.hidden};
    for (size_t r = 0; r < rows; r++) d->index[r] = (uint32_t)r;
    if (c->norm_output)
        device->ops->rms_norm(device, outputs, d->head->layer.final_norm, to, rows, c->layer.hidden, c->layer.hidden,
                              c->layer.rms_epsilon);
    else
        device->ops->gather(device, outputs, d->index, to, rows, c->layer.hidden);
}

static void logits_of(struct eagle3_drafter *d, struct hm_view outputs, size_t rows, float *logits)
{
    const struct hm_config *c = &d->head->config.layer;
    struct hm_device *device = d->base.device;
    struct hm_view normed = hm_whole(d->cache->normed), wide = hm_whole(d->cache->logits);
    device->ops->rms_norm(device, outputs, d->head->layer.final_norm, normed, rows, c->hidden, c->hidden,
                          c->rms_epsilon);
    device->ops->matmul(device, d->head->layer.head, normed, wide, rows);
    device->ops->download(device, logits, wide, rows * d->base.vocab);
}

// ---- proposing

static hm_status check_call(const struct eagle3_drafter *d, size_t length, size_t depth, const struct hm_pool *pool,
                            struct hm_error *err)
{
    if (pool->vocab != d->base.vocab || pool->width > d->width || depth > d->depth)
        return hm_fail(
            err, HM_USAGE,
            "EAGLE-3 draft: expected a pool of rows of %zu, width up to %zu and depth up to %zu, found %zu, %zu, %zu",
            d->base.vocab, d->width, d->depth, pool->vocab, pool->width, depth);
    if (length == 0 || length - 1 < hm_cache_length(d->cache))
        return hm_fail(err, HM_USAGE, "EAGLE-3 draft: expected a context that grows beyond %zu tokens, found %zu",
                       hm_cache_length(d->cache), length);
    // The root's own feature may be known already; anything else would pair features with other tokens' neighbours.
    if (d->seen + 1 < length || d->seen > length)
        return hm_fail(err, HM_USAGE, "EAGLE-3 draft: expected features of %zu tokens before the root, found %zu",
                       length - 1, d->seen);
    return HM_OK;
}

// Computes the stable slots that the context has gained.
static hm_status catch_up(struct eagle3_drafter *d, const int32_t *context, size_t length, struct hm_error *err)
{
    const size_t hidden = d->head->config.layer.hidden;
    struct hm_device *device = d->base.device;
    while (hm_cache_length(d->cache) < length - 1) {
        size_t slot = hm_cache_length(d->cache), rows = smaller(length - 1 - slot, HM_CHUNK_ROWS);
        for (size_t r = 0; r < rows; r++) {
            d->token[r] = context[slot + r + 1];
            d->parent[r] = (int32_t)r - 1;
            d->index[r] = (uint32_t)(slot + r - d->from);
        }
        hm_status rc = run_slots(d, hm_whole(d->pending), rows, err);
        if (rc) return rc;
        d->cache->length += rows; // a straight chain lies where it belongs
        d->cache->scratch = 0;
        uint32_t final = (uint32_t)rows - 1;
        device->ops->gather(device, hm_whole(d->cache->stream), &final, hm_whole(d->last), 1, hidden);
    }
    settle(d);
    return HM_OK;
}

static hm_status expand_root(struct eagle3_drafter *d, struct hm_pool *pool, struct hm_error *err)
{
    float *row = hm_pool_reserve_rows(pool, 1, err);
    if (!row) return HM_MEMORY;
    hand_on(d, hm_whole(d->last), 0, 1);
    logits_of(d, hm_whole(d->last), 1, row);
    return hm_pool_expand(pool, -1, err);
}

// One pass over the beam; rows and children of each member are added in beam order.
static hm_status expand_beam(void *drafter, struct hm_pool *pool, struct hm_error *err)
{
    struct eagle3_drafter *d = drafter;
    size_t n = pool->beam_count;
    float *rows = hm_pool_reserve_rows(pool, n, err);
    if (!rows) return HM_MEMORY;
    for (size_t done = 0; done < n; done += HM_CHUNK_ROWS) {
        size_t some = smaller(n - done, HM_CHUNK_ROWS);
        for (size_t i = 0; i < some; i++) {
            const struct hm_candidate *c = &pool->candidate[pool->beam[done + i]];
            // Row r >= 1 of the pool was made by scratch row r - 1: both count expanded candidates in order.
            int32_t row = c->parent < 0 ? 0 : pool->candidate[c->parent].row;
            d->token[i] = c->token;
            d->parent[i] = row - 1;
            d->index[i] = (uint32_t)row;
        }
        hm_status rc = run_slots(d, hm_whole(d->handed), some, err);
        if (rc) return rc;
        hand_on(d, hm_whole(d->cache->stream), pool->row_count + done, some);
        logits_of(d, hm_whole(d->cache->stream), some, rows + done * d->base.vocab);
    }
    hm_status rc = HM_OK;
    for (size_t i = 0; i < n && !rc; i++) rc = hm_pool_expand(pool, (int32_t)pool->beam[i], err);
    return rc;
}

static hm_status propose(struct hm_drafter *base, const int32_t *context, size_t length, size_t depth,
                         struct hm_pool *pool, struct hm_error *err)
{
    struct eagle3_drafter *d = (struct eagle3_drafter *)base;
    hm_pool_reset(pool);
    hm_status rc = check_call(d, length, depth, pool, err);
    if (rc || length == 1) return rc; // the first token has no slot: nothing to draft from
    rc = catch_up(d, context, length, err);
    if (!rc) rc = expand_root(d, pool, err);
    if (!rc) rc = hm_pool_deepen(pool, depth, expand_beam, d, err);
    hm_cache_drop_scratch(d->cache);
    return rc;
}

static void restart(struct hm_drafter *base)
{
    struct eagle3_drafter *d = (struct eagle3_drafter *)base;
    hm_cache_truncate(d->cache, 0);
    d->seen = d->from = 0;
}

// ---- opening

static void close_eagle3(struct hm_drafter *base)
{
    struct eagle3_drafter *d = (struct eagle3_drafter *)base;
    struct hm_buffer *list[] = {d->taken, d->pending, d->embedded, d->pairs, d->last, d->handed};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i]) base->device->ops->release(base->device, list[i]);
    hm_cache_close(d->cache);
    hm_eagle3_close(d->head);
    free(d);
}

static const struct hm_drafter_ops ops = {
    .propose = propose, .observe = observe, .restart = restart, .close = close_eagle3};

static hm_status open_buffers(struct eagle3_drafter *d, size_t nodes, struct hm_error *err)
{
    const struct hm_eagle3_config *c = &d->head->config;
    struct hm_device *device = d->base.device;
    const struct {
        struct hm_buffer **buffer;
        size_t rows, width;
    } list[] = {
        {&d->taken, HM_CHUNK_ROWS, c->tap_count * c->target_hidden},
        {&d->pending, d->base.positions, c->layer.hidden},
        {&d->embedded, HM_CHUNK_ROWS, c->layer.hidden},
        {&d->pairs, HM_CHUNK_ROWS, 2 * c->layer.hidden},
        {&d->last, 1, c->layer.hidden},
        {&d->handed, nodes + 1, c->layer.hidden},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        size_t floats;
        if (hm_mul_size(list[i].rows, list[i].width, &floats)) *list[i].buffer = device->ops->alloc(device, floats);
        if (!*list[i].buffer)
            return hm_fail(err, HM_MEMORY, "EAGLE-3 draft: out of memory for %zu rows of %zu", list[i].rows,
                           list[i].width);
    }
    return HM_OK;
}

hm_status hm_drafter_open_eagle3(const char *dir, struct hm_model *target, struct hm_device *device,
                                 const struct hm_eagle3_options *options, struct hm_drafter **out, struct hm_error *err)
{
    *out = NULL;
    size_t nodes, slots, positions;
    if (options->positions == 0 || options->width == 0 || !hm_mul_size(options->width, options->depth, &nodes) ||
        !hm_add_size(nodes, options->positions, &slots) || !hm_add_size(options->positions, options->depth, &positions))
        return hm_fail(err, HM_RANGE,
                       "EAGLE-3 draft: expected room for positions and a tree, found %zu, width %zu, depth %zu",
                       options->positions, options->width, options->depth);
    struct eagle3_drafter *d = hm_calloc(1, sizeof *d);
    if (!d) return hm_fail(err, HM_MEMORY, "out of memory for a drafter");
    d->base = (struct hm_drafter){.ops = &ops, .name = "eagle3", .positions = options->positions, .device = device};
    d->width = options->width;
    d->depth = options->depth;
    hm_status rc = hm_eagle3_open(dir, target, device, options->rope_theta, positions, &d->head, err);
    if (!rc) rc = hm_cache_open(&d->head->layer, slots, &d->cache, err);
    if (!rc) rc = open_buffers(d, nodes, err);
    if (rc) {
        close_eagle3(&d->base);
        return rc;
    }
    d->base.vocab = d->base.usable = d->head->config.draft_vocab;
    d->base.ids = d->head->ids;
    d->base.tap = d->head->config.tap;
    d->base.tap_count = d->head->config.tap_count;
    *out = &d->base;
    return HM_OK;
}

const struct hm_eagle3_info *hm_drafter_eagle3_info(const struct hm_drafter *drafter)
{
    return drafter->ops == &ops ? &((const struct eagle3_drafter *)drafter)->head->info : NULL;
}
