// The standalone drafter: see drafter.h. Slots: the committed context, then every expanded candidate in the order it
// was fed; they are dropped after each proposal, so what the target accepts is simply fed again with the next one.
#include "decode/drafter.h"

#include "base/memory.h"
#include "decode/model.h"
#include "decode/topk.h"

#include <stdlib.h>

struct standalone_drafter {
    struct hm_drafter base;
    struct hm_model *model;
    struct hm_cache *cache;
    size_t width;         // most children of one expansion
    int32_t *feed;        // tokens to feed; an id that the draft does not have is fed as 0: it only guesses
    size_t feed_capacity;
    // Scratch for one level, [width] each.
    int32_t *token, *parent;
    uint32_t *index;
};

// The root's row: feeds what the cache does not hold yet, at least the root itself.
static hm_status expand_root(struct standalone_drafter *d, const int32_t *context, size_t length, struct hm_pool *pool,
                             struct hm_error *err)
{
    float *row = hm_pool_reserve_rows(pool, 1, err);
    if (!row) return HM_MEMORY;
    if (hm_cache_length(d->cache) >= length) hm_cache_truncate(d->cache, length - 1);
    size_t known = hm_cache_length(d->cache), fresh = length - known;
    void *feed = d->feed;
    if (!hm_grow(&feed, &d->feed_capacity, fresh, sizeof *d->feed))
        return hm_fail(err, HM_MEMORY, "out of memory for %zu tokens of a draft", fresh);
    d->feed = feed;
    for (size_t i = 0; i < fresh; i++) {
        int32_t token = context[known + i];
        d->feed[i] = (size_t)token < d->base.vocab ? token : 0;
    }
    hm_status rc = hm_model_prefill(d->model, d->cache, d->feed, fresh, row, NULL, err);
    return rc ? rc : hm_pool_expand(pool, -1, err);
}

// One pass over the beam; rows and children of each member are added in beam order.
static hm_status expand_beam(void *drafter, struct hm_pool *pool, struct hm_error *err)
{
    struct standalone_drafter *d = drafter;
    size_t n = pool->beam_count;
    float *rows = hm_pool_reserve_rows(pool, n, err);
    if (!rows) return HM_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const struct hm_candidate *c = &pool->candidate[pool->beam[i]];
        d->token[i] = c->token;
        // Row r >= 1 of the pool was made by scratch row r - 1: both count expanded candidates in order.
        d->parent[i] = c->parent < 0 ? -1 : pool->candidate[c->parent].row - 1;
        d->index[i] = (uint32_t)i;
    }
    struct hm_pass pass = {
        .token = d->token, .parent = d->parent, .rows = n, .logits_for = d->index, .logits_count = n};
    hm_status rc = hm_model_forward(d->model, d->cache, &pass, rows, err);
    for (size_t i = 0; i < n && !rc; i++) rc = hm_pool_expand(pool, (int32_t)pool->beam[i], err);
    return rc;
}

static hm_status propose(struct hm_drafter *base, const int32_t *context, size_t length, size_t depth,
                         struct hm_pool *pool, struct hm_error *err)
{
    struct standalone_drafter *d = (struct standalone_drafter *)base;
    hm_pool_reset(pool);
    if (pool->vocab != base->vocab || pool->width > d->width)
        return hm_fail(err, HM_USAGE, "draft: expected a pool of rows of %zu and width up to %zu, found %zu, %zu", base->vocab,
                       d->width, pool->vocab, pool->width);
    hm_status rc = expand_root(d, context, length, pool, err);
    if (!rc) rc = hm_pool_deepen(pool, depth, expand_beam, d, err);
    hm_cache_drop_scratch(d->cache);
    return rc;
}

static void restart(struct hm_drafter *base)
{
    hm_cache_truncate(((struct standalone_drafter *)base)->cache, 0);
}

static void close_standalone(struct hm_drafter *base)
{
    struct standalone_drafter *d = (struct standalone_drafter *)base;
    hm_cache_close(d->cache);
    free(d->feed);
    free(d->token);
    free(d->parent);
    free(d->index);
    free(d);
}

hm_status hm_drafter_open_standalone(struct hm_model *model, size_t usable, size_t positions, size_t width,
                                     size_t depth, struct hm_drafter **out, struct hm_error *err)
{
    static const struct hm_drafter_ops ops = {.propose = propose, .restart = restart, .close = close_standalone};
    *out = NULL;
    size_t nodes, slots;
    if (!hm_mul_size(width, depth, &nodes) || !hm_add_size(nodes, positions, &slots))
        return hm_fail(err, HM_RANGE, "draft: expected room for positions and a tree, found %zu, width %zu, depth %zu", positions,
                       width, depth);
    struct standalone_drafter *d = hm_calloc(1, sizeof *d);
    if (!d) return hm_fail(err, HM_MEMORY, "out of memory for a drafter");
    const struct hm_model_info *info = hm_model_info(model);
    d->base = (struct hm_drafter){.ops = &ops, .name = "standalone", .vocab = info->vocab,
                                  .usable = usable < info->vocab ? usable : info->vocab, .device = hm_model_device(model),
                                  .positions = positions < info->max_positions ? positions : info->max_positions};
    d->model = model;
    d->width = width;
    d->token = hm_calloc(width, sizeof *d->token);
    d->parent = hm_calloc(width, sizeof *d->parent);
    d->index = hm_calloc(width, sizeof *d->index);
    hm_status rc = HM_OK;
    if (!d->token || !d->parent || !d->index)
        rc = hm_fail(err, HM_MEMORY, "out of memory for a drafter of width %zu", width);
    if (!rc) rc = hm_cache_open(model, slots, &d->cache, err);
    if (rc) close_standalone(&d->base);
    else *out = &d->base;
    return rc;
}
