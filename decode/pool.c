// The pool of draft candidates: see pool.h.
#include "decode/pool.h"

#include "base/memory.h"
#include "certify/philox.h"
#include "certify/row.h"
#include "decode/topk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

hm_status hm_pool_init(struct hm_pool *pool, const struct hm_pool_options *options, struct hm_error *err)
{
    size_t width = options->width;
    *pool = (struct hm_pool){.options = *options, .width = width, .vocab = options->vocab};
    pool->beam = hm_calloc(width, sizeof *pool->beam);
    pool->token = hm_calloc(width, sizeof *pool->token);
    pool->logq = hm_calloc(width, sizeof *pool->logq);
    if (pool->beam && pool->token && pool->logq) return HM_OK;
    hm_pool_clear(pool);
    return hm_fail(err, HM_MEMORY, "out of memory for a draft pool of width %zu", width);
}

void hm_pool_clear(struct hm_pool *pool)
{
    free(pool->candidate);
    free(pool->beam);
    free(pool->rows);
    free(pool->token);
    free(pool->logq);
    *pool = (struct hm_pool){0};
}

void hm_pool_reset(struct hm_pool *pool)
{
    pool->count = pool->level = pool->beam_count = pool->row_count = 0;
}

float *hm_pool_reserve_rows(struct hm_pool *pool, size_t count, struct hm_error *err)
{
    size_t rows, floats;
    void *grown = pool->rows;
    if (!hm_add_size(pool->row_count, count, &rows) || !hm_mul_size(rows, pool->vocab, &floats) ||
        !hm_grow(&grown, &pool->row_capacity, floats, sizeof *pool->rows)) {
        hm_fail(err, HM_MEMORY, "out of memory for %zu draft rows of %zu logits", count, pool->vocab);
        return NULL;
    }
    pool->rows = grown;
    return pool->rows + pool->row_count * pool->vocab;
}

hm_status hm_pool_add(struct hm_pool *pool, int32_t parent, const int32_t *token, const float *logq, size_t count,
                      struct hm_error *err)
{
    void *grown = pool->candidate;
    if (!hm_grow(&grown, &pool->capacity, pool->count + count, sizeof *pool->candidate))
        return hm_fail(err, HM_MEMORY, "out of memory for a draft pool of %zu candidates", pool->count + count);
    pool->candidate = grown;
    double base = parent < 0 ? 0.0 : pool->candidate[parent].score;
    uint32_t depth = parent < 0 ? 1 : pool->candidate[parent].depth + 1;
    for (size_t i = 0; i < count; i++) {
        float step = isnan(logq[i]) ? -INFINITY : logq[i];
        pool->candidate[pool->count++] = (struct hm_candidate){
            .token = token[i], .parent = parent, .row = -1, .depth = depth, .logq = step, .score = base + step};
    }
    return HM_OK;
}

// Draws `width` entries of a row for the children of a node at that depth (docs/log.md, "The walk"): each is indexed by its
// output position and its number, so a draw does not depend on what else is in the tree.
static hm_status draw_children(struct hm_pool *pool, const float *logits, uint32_t depth, struct hm_error *err)
{
    const struct hm_pool_options *o = &pool->options;
    struct hm_row *row = NULL;
    hm_status rc = hm_row_open(logits, o->usable, o->temperature, &row, err);
    for (size_t j = 0; j < o->width && !rc; j++) {
        uint64_t bits = hm_philox_bits(o->seed, pool->sequence, pool->t + depth, HM_DRAW_DRAFT, (uint32_t)j);
        rc = hm_row_draw(row, o->usable, bits, &pool->token[j], err);
    }
    hm_row_close(row);
    if (rc) return hm_fail_prefix(err, "draft row");
    hm_log_softmax(logits, o->usable, pool->token, o->width, pool->logq);
    return HM_OK;
}

hm_status hm_pool_expand(struct hm_pool *pool, int32_t parent, struct hm_error *err)
{
    const struct hm_pool_options *o = &pool->options;
    const float *row = pool->rows + pool->row_count * pool->vocab;
    size_t count = o->width;
    if (o->proposal == HM_PROPOSAL_IID) {
        hm_status rc = draw_children(pool, row, parent < 0 ? 0 : pool->candidate[parent].depth, err);
        if (rc) return rc;
    } else {
        count = hm_topk(row, o->usable, o->width, pool->token, pool->logq);
    }
    if (parent >= 0) pool->candidate[parent].row = (int32_t)pool->row_count;
    pool->row_count++;
    for (size_t i = 0; i < count && o->ids; i++) pool->token[i] = o->ids[pool->token[i]];
    return hm_pool_add(pool, parent, pool->token, pool->logq, count, err);
}

// Is candidate a before candidate b in the pool's order?
static int before(const struct hm_pool *pool, size_t a, size_t b)
{
    double x = pool->candidate[a].score, y = pool->candidate[b].score;
    return x > y || (x == y && a < b);
}

// Keeps the `most` best of the candidates first .. count-1 in best[], by insertion: most is small.
static size_t keep_best(const struct hm_pool *pool, size_t first, size_t most, size_t *best)
{
    size_t kept = 0;
    for (size_t i = first; i < pool->count; i++) {
        if (!isfinite(pool->candidate[i].score)) continue;
        size_t at = kept;
        while (at > 0 && before(pool, i, best[at - 1])) at--;
        if (at >= most) continue;
        size_t last = kept < most ? kept++ : most - 1;
        memmove(best + at + 1, best + at, (last - at) * sizeof *best);
        best[at] = i;
    }
    return kept;
}

void hm_pool_advance(struct hm_pool *pool)
{
    if (pool->options.proposal == HM_PROPOSAL_IID) {
        pool->beam_count = pool->level < pool->count;
        pool->beam[0] = pool->level;
    } else {
        pool->beam_count = keep_best(pool, pool->level, pool->width, pool->beam);
    }
    pool->level = pool->count;
}

hm_status hm_pool_deepen(struct hm_pool *pool, size_t depth,
                         hm_status (*expand)(void *drafter, struct hm_pool *pool, struct hm_error *err), void *drafter,
                         struct hm_error *err)
{
    for (size_t level = 0; level < depth; level++) {
        hm_pool_advance(pool);
        if (pool->beam_count == 0) break;
        hm_status rc = expand(drafter, pool, err);
        if (rc) return rc;
    }
    return HM_OK;
}

size_t hm_pool_best(const struct hm_pool *pool, size_t most, size_t *best)
{
    if (pool->options.proposal != HM_PROPOSAL_IID) return keep_best(pool, 0, most, best);
    size_t count = most < pool->count ? most : pool->count;
    for (size_t i = 0; i < count; i++) best[i] = i;
    return count;
}
