// Passes of the target in a round: the root's own, beside drafting where it can be; the tree's; a whole pool's; and what of
// them is committed. Once the root's row is known the root is in the cache, and passes hold only what hangs below it.
#include "decode/session_parts.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

// ---- drafting and the root

// A draft in either thread.
struct drafting {
    struct hm_session *s;
    size_t depth;
    bool beside; // the target runs at the same time
    double seconds;
    hm_status rc;
    struct hm_error err;
};

// While both run, each has its share of the threads; who is done first leaves its own to the other.
static void share_threads(const struct hm_session *s)
{
    struct hm_device *target = hm_model_device(s->options.target), *drafter = s->options.drafter->device;
    unsigned all = hm_device_threads(target), drafting = s->options.draft_threads;
    if (!drafting) drafting = all / 2;
    if (drafting >= all) drafting = all - 1;
    if (drafting < 1) drafting = 1;
    drafter->ops->limit(drafter, drafting);
    target->ops->limit(target, all > drafting ? all - drafting : 1);
}

static void take_all_threads(struct hm_device *device)
{
    device->ops->limit(device, hm_device_threads(device));
}

static void draft(void *context)
{
    struct drafting *d = context;
    struct hm_session *s = d->s;
    struct hm_drafter *drafter = s->options.drafter;
    double start = hm_now();
    d->rc = drafter->ops->propose(drafter, s->context, s->length, d->depth, &s->pool, &d->err);
    d->seconds = hm_now() - start;
    if (d->beside) take_all_threads(hm_model_device(s->options.target));
}

// Near the end of the models' positions the pool is shallower, and at the very end there is none (*drafts false): the
// deepest candidate, at depth + 1, takes position length + depth.
static size_t depth_left(const struct hm_session *s, bool *drafts)
{
    const struct hm_drafter *drafter = s->options.drafter;
    size_t most = hm_model_info(s->options.target)->max_positions;
    if (drafter && drafter->positions < most) most = drafter->positions;
    *drafts = drafter && s->length < most;
    if (!*drafts) return 0;
    return s->options.depth < most - s->length - 1 ? s->options.depth : most - s->length - 1;
}

static hm_status root_pass(struct hm_session *s, double *seconds, struct hm_error *err)
{
    static const int32_t parent = -1;
    static const uint32_t row = 0;
    double start = hm_now();
    struct hm_pass pass = {.token = &s->context[s->length - 1], .parent = &parent, .rows = 1, .logits_for = &row,
                           .logits_count = 1, .taps = s->taps.count ? &s->taps : NULL};
    hm_status rc = hm_model_forward(s->options.target, s->cache, &pass, s->rows, err);
    if (!rc) rc = hm_cache_commit(s->cache, &row, 1, err);
    *seconds = hm_now() - start;
    return rc;
}

bool hm_session_wants_root(const struct hm_session *s)
{
    return s->options.selection != HM_SELECT_DRAFT && !s->options.covering;
}

hm_status hm_session_draft_and_root(struct hm_session *s, struct hm_round_event *event, struct hm_error *err)
{
    bool drafts, wanted = hm_session_wants_root(s) && !s->root_known;
    struct drafting d = {.s = s, .depth = depth_left(s, &drafts)};
    bool beside = d.beside = wanted && drafts && s->beside;
    hm_status rc = HM_OK;
    double start = hm_now();
    hm_pool_reset(&s->pool);
    s->pool.sequence = s->sequence;
    s->pool.t = event->t;
    if (beside) {
        share_threads(s);
        hm_beside_start(s->beside, draft, &d);
    } else if (drafts) {
        draft(&d);
    }
    if (wanted && (beside || !d.rc)) rc = root_pass(s, &event->root_seconds, err);
    if (beside) {
        take_all_threads(s->options.drafter->device);
        hm_beside_wait(s->beside);
    }
    event->together_seconds = hm_now() - start;
    event->draft_seconds = d.seconds;
    event->pool = s->pool.count;
    if (d.rc) {
        if (err) *err = d.err;
        return d.rc;
    }
    if (rc || !wanted) return rc;
    s->root_known = true;
    s->counts->root_passes++;
    static const uint32_t row = 0;
    return hm_session_observe(s, &row, 1, err);
}

// ---- passes over nodes

// Room for the taps of `rows` rows.
static hm_status tap_room(struct hm_session *s, size_t rows, struct hm_error *err)
{
    const struct hm_model_info *info = hm_model_info(s->options.target);
    struct hm_device *device = hm_model_device(s->options.target);
    if (!s->taps.count) return HM_OK;
    size_t floats;
    struct hm_buffer *larger = NULL;
    if (hm_mul_size(rows, s->taps.count * info->hidden, &floats)) larger = device->ops->alloc(device, floats);
    if (!larger) return hm_fail(err, HM_MEMORY, "out of memory for %zu hidden states", rows);
    if (s->taps.to.buffer) device->ops->release(device, s->taps.to.buffer);
    s->taps.to = (struct hm_view){.buffer = larger};
    return HM_OK;
}

hm_status hm_session_pass_room(struct hm_session *s, size_t rows, struct hm_error *err)
{
    if (rows <= s->pass_rows) return HM_OK;
    void *every = realloc(s->every, rows * sizeof *s->every);
    if (every) s->every = every;
    void *token = realloc(s->token, rows * sizeof *s->token);
    if (token) s->token = token;
    void *parent = realloc(s->parent, rows * sizeof *s->parent);
    if (parent) s->parent = parent;
    if (!every || !token || !parent) return hm_fail(err, HM_MEMORY, "out of memory for a pass of %zu rows", rows);
    for (size_t i = s->pass_rows; i < rows; i++) s->every[i] = (uint32_t)i;
    hm_status rc = tap_room(s, rows, err);
    if (!rc) s->pass_rows = rows;
    return rc;
}

// Rows [nodes][vocab] of nodes whose first is the root and whose parents are indices among them. The root's is left alone
// when it is known; the parents, which may be s->parent itself, are then counted from below it.
static hm_status rows_of(struct hm_session *s, const int32_t *token, const int32_t *parent, size_t nodes, float *rows,
                         const struct hm_taps *taps, struct hm_error *err)
{
    size_t known = s->root_known;
    if (nodes == known) return HM_OK;
    struct hm_pass pass = {.token = token + known, .parent = parent, .rows = nodes - known, .logits_for = s->every,
                           .logits_count = nodes - known, .taps = taps};
    if (known) {
        for (size_t i = 1; i < nodes; i++) s->parent[i - 1] = parent[i] - 1;
        pass.parent = s->parent;
    }
    return hm_model_forward(s->options.target, s->cache, &pass, rows + known * s->vocab, err);
}

hm_status hm_session_verify(struct hm_session *s, struct hm_error *err)
{
    hm_status rc = hm_session_pass_room(s, s->tree.nodes, err);
    if (rc) return rc;
    return rows_of(s, s->tree.token, s->tree.parent, s->tree.nodes, s->rows, s->taps.count ? &s->taps : NULL, err);
}

hm_status hm_session_record_pool(struct hm_session *s, uint32_t round, uint32_t t, struct hm_error *err)
{
    size_t nodes = s->pool.count + 1, floats;
    void *grown = s->pool_rows;
    if (!hm_mul_size(nodes, s->vocab, &floats) || !hm_grow(&grown, &s->pool_floats, floats, sizeof *s->pool_rows))
        return hm_fail(err, HM_MEMORY, "out of memory for the rows of %zu candidates", s->pool.count);
    s->pool_rows = grown;
    hm_status rc = hm_session_pass_room(s, nodes, err);
    if (rc) return rc;
    s->token[0] = s->context[s->length - 1];
    s->parent[0] = -1;
    for (size_t i = 1; i < nodes; i++) {
        s->token[i] = s->pool.candidate[i - 1].token;
        s->parent[i] = s->pool.candidate[i - 1].parent + 1;
    }
    if (s->root_known) memcpy(s->pool_rows, s->rows, s->vocab * sizeof *s->rows);
    rc = rows_of(s, s->token, s->parent, nodes, s->pool_rows, NULL, err);
    hm_cache_drop_scratch(s->cache);
    struct hm_pool_event event = {.sequence = s->sequence, .round = round, .t = t, .context = s->context,
                                  .length = s->length, .pool = &s->pool, .rows = s->pool_rows};
    return rc ? rc : s->listener->pool(s->listener->user, &event, err);
}

// ---- after the round

hm_status hm_session_observe(struct hm_session *s, const uint32_t *row, size_t count, struct hm_error *err)
{
    struct hm_drafter *drafter = s->options.drafter;
    if (!s->taps.count || count == 0 || s->length >= drafter->positions) return HM_OK; // it is not asked again
    return drafter->ops->observe(drafter, s->taps.to, row, count, err);
}

hm_status hm_session_commit(struct hm_session *s, size_t visited, int64_t next_root, struct hm_error *err)
{
    uint32_t *path = s->path, known = s->root_known;
    size_t count = visited;
    if (next_root >= 0) path[count++] = (uint32_t)next_root;
    if (known) { // the root is committed: rows of the pass are counted from the nodes below it
        path++;
        count--;
        for (size_t i = 0; i < count; i++) path[i]--;
    }
    hm_status rc = hm_cache_commit(s->cache, path, count, err);
    if (!rc) rc = hm_session_observe(s, path, count, err);
    s->root_known = next_root >= 0;
    if (next_root >= 0) memmove(s->rows, s->rows + (size_t)next_root * s->vocab, s->vocab * sizeof *s->rows);
    return rc;
}
