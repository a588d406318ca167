// One decode: see session.h. This file opens sessions and runs sequences; a round is in session_round.c, the passes of the
// models in session_pass.c, what listeners are told in session_emit.c.
#include "decode/session_parts.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

// ---- opening

// The options as they are used: a plain decode has no tree, covering is a leaf-stop, and no token lies beyond the model.
static hm_status settle(struct hm_session *s, const struct hm_session_options *options, struct hm_error *err)
{
    struct hm_session_options *o = &s->options;
    size_t most = hm_model_info(options->target)->max_positions;
    *o = *options;
    if (o->positions > most) o->positions = most;
    if (!o->drafter) {
        o->width = 1;
        o->depth = o->budget = o->score_top = o->score_frontier = 0;
        o->selection = HM_SELECT_DRAFT;
        o->covering = o->leaf_stop = false;
    }
    hm_status rc = hm_session_legal(o, err);
    if (!rc && o->width == 0) rc = hm_fail(err, HM_USAGE, "--tree-width: expected at least 1, found 0");
    o->leaf_stop = o->leaf_stop || o->covering;
    return rc;
}

// The largest pool, width + depth * width^2, and the largest tree: verified and scored nodes are candidates of the pool, or
// the drawn token alone.
static hm_status measure(struct hm_session *s, struct hm_error *err)
{
    const struct hm_session_options *o = &s->options;
    size_t below, whole, beyond = o->score_top > o->score_frontier ? o->score_top : o->score_frontier, wanted;
    if (!hm_mul_size(o->width, o->width, &below) || !hm_mul_size(below, o->depth, &below) ||
        !hm_add_size(o->width, below, &s->pool_most) || !hm_add_size(s->pool_most, 1, &whole))
        return hm_fail(err, HM_RANGE, "a tree of width %zu and depth %zu: expected a pool that fits in memory", o->width, o->depth);
    bool fits = hm_add_size(o->budget, beyond, &wanted) && wanted < s->pool_most;
    s->nodes_most = fits ? wanted + 1 : whole;
    return HM_OK;
}

static hm_status allocate(struct hm_session *s, struct hm_error *err)
{
    size_t n = s->nodes_most, width = s->options.width, floats;
    const struct hm_drafter *drafter = s->options.drafter;
    if (!hm_mul_size(n, s->vocab, &floats)) return hm_fail(err, HM_MEMORY, "out of memory for %zu rows", n);
    s->rows = hm_calloc(floats, sizeof *s->rows);
    s->path = hm_calloc(n, sizeof *s->path);
    s->children = hm_calloc(n > width ? n : width, sizeof *s->children);
    s->decision = hm_calloc(n, sizeof *s->decision);
    s->first_share = hm_calloc(width, sizeof *s->first_share);
    s->first_logp = hm_calloc(width, sizeof *s->first_logp);
    bool fit = drafter && drafter->vocab && (drafter->vocab != s->vocab || drafter->ids);
    if (fit) s->draft_row = hm_calloc(s->vocab, sizeof *s->draft_row);
    if (!s->rows || !s->path || !s->children || !s->decision || !s->first_share || !s->first_logp || (fit && !s->draft_row))
        return hm_fail(err, HM_MEMORY, "out of memory for %zu rows of %zu logits", n, s->vocab);
    return HM_OK;
}

static void open_budget(struct hm_session *s)
{
    hm_budget_init(&s->fidelity);
    s->fidelity.kind = s->options.fidelity;
    if (s->options.fidelity_limit) hm_rational_set(&s->fidelity.limit, s->options.fidelity_limit);
}

// A cache with room for the context and one round's scratch rows.
static hm_status open_cache(struct hm_session *s, size_t scratch, struct hm_error *err)
{
    size_t positions;
    if (!hm_add_size(s->options.positions, scratch, &positions))
        return hm_fail(err, HM_RANGE, "cache: expected positions that fit in memory, found %zu and %zu", s->options.positions,
                       scratch);
    if (s->cache && hm_cache_positions(s->cache) >= positions) return HM_OK;
    hm_cache_close(s->cache);
    s->cache = NULL;
    return hm_cache_open(s->options.target, positions, &s->cache, err);
}

hm_status hm_session_open(const struct hm_session_options *options, struct hm_session **out, struct hm_error *err)
{
    struct hm_session *s = hm_calloc(1, sizeof *s);
    *out = NULL;
    if (!s) return hm_fail(err, HM_MEMORY, "out of memory for a decode");
    s->vocab = hm_model_info(options->target)->vocab;
    const struct hm_drafter *drafter = options->drafter;
    const struct hm_acceptance *how = &options->acceptance;
    hm_status rc = settle(s, options, err);
    open_budget(s);
    struct hm_pool_options pool = {.width = s->options.width, .vocab = drafter ? drafter->vocab : 0,
                                   .usable = drafter ? drafter->usable : 0, .ids = drafter ? drafter->ids : NULL,
                                   .proposal = how->kind >= HM_ACCEPT_STANDARD ? how->proposal : HM_PROPOSAL_TOPK,
                                   .temperature = how->certify_temperature, .seed = how->seed};
    if (drafter && drafter->tap_count) s->taps = (struct hm_taps){.layer = drafter->tap, .count = drafter->tap_count};
    if (!rc) rc = measure(s, err);
    if (!rc) rc = allocate(s, err);
    if (!rc) rc = open_cache(s, s->nodes_most, err);
    if (!rc) rc = hm_pool_init(&s->pool, &pool, err);
    if (!rc) rc = hm_tree_init(&s->tree, s->nodes_most - 1, err);
    bool own_device = drafter && drafter->device && drafter->device != hm_model_device(options->target);
    if (!rc && own_device && hm_session_wants_root(s) && !s->options.serial) rc = hm_beside_open(&s->beside, err);
    if (rc) hm_session_close(s);
    else *out = s;
    return rc;
}

void hm_session_close(struct hm_session *s)
{
    if (!s) return;
    hm_beside_close(s->beside);
    hm_cache_close(s->cache);
    hm_pool_clear(&s->pool);
    hm_tree_clear(&s->tree);
    hm_budget_clear(&s->fidelity);
    struct hm_device *device = hm_model_device(s->options.target);
    if (s->taps.to.buffer) device->ops->release(device, s->taps.to.buffer);
    free(s->rows);
    free(s->draft_row);
    free(s->first_share);
    free(s->first_logp);
    free(s->every);
    free(s->token);
    free(s->parent);
    free(s->path);
    free(s->children);
    free(s->decision);
    free(s->pool_rows);
    free(s->piece);
    free(s->context);
    free(s);
}

// ---- one sequence

hm_status hm_session_check(const struct hm_session *s, size_t length, size_t max_tokens, struct hm_error *err)
{
    if (length == 0) return hm_fail(err, HM_USAGE, "expected a prompt of at least one token, found none");
    if (max_tokens == 0) return hm_fail(err, HM_USAGE, "expected at least one token to decode, found 0");
    if (length > s->options.positions || max_tokens > s->options.positions - length)
        return hm_fail(err, HM_RANGE, "a prompt of %zu tokens and %zu to decode: expected at most %zu together, the context", length,
                       max_tokens, s->options.positions);
    return HM_OK;
}

static hm_status begin(struct hm_session *s, uint32_t sequence, const int32_t *prompt, size_t length, size_t max_tokens,
                       struct hm_error *err)
{
    hm_status rc = hm_session_check(s, length, max_tokens, err);
    if (!rc && s->listener->pool) rc = open_cache(s, s->pool_most + 1, err); // a pass over whole pools wants more of it
    if (rc) return rc;
    s->sequence = sequence;
    s->length = 0;
    s->prompt = length;
    s->max_tokens = max_tokens;
    s->root_known = false;
    s->utf8 = (struct hm_utf8_stream){0};
    s->stop = (struct hm_stop){.strings = s->options.stop, .count = s->options.stop_count};
    if (s->fidelity.kind) hm_budget_begin(&s->fidelity, max_tokens, s->options.budget, s->vocab);
    hm_cache_truncate(s->cache, 0);
    if (s->options.drafter) s->options.drafter->ops->restart(s->options.drafter);
    for (size_t i = 0; i < length && !rc; i++) rc = hm_session_append(s, prompt[i], err);
    return rc;
}

static void on_progress(void *user, size_t done, size_t total)
{
    const struct hm_listener *l = ((struct hm_session *)user)->listener;
    if (l->prefill) l->prefill(l->user, done, total);
}

static hm_status on_taps(void *user, size_t rows, struct hm_error *err)
{
    struct hm_session *s = user;
    return hm_session_observe(s, s->every, rows, err);
}

static hm_status prefill(struct hm_session *s, struct hm_error *err)
{
    struct hm_prefill_watch watch = {.progress = on_progress, .user = s};
    hm_status rc = hm_session_pass_room(s, s->nodes_most > HM_PREFILL_ROWS ? s->nodes_most : HM_PREFILL_ROWS, err);
    if (!rc && s->taps.count) {
        watch.taps = &s->taps;
        watch.tapped = on_taps;
    }
    return rc ? rc : hm_model_prefill(s->options.target, s->cache, s->context, s->prompt, s->rows, &watch, err);
}

static hm_status emit_first(struct hm_session *s, enum hm_stop_reason *stop, struct hm_error *err)
{
    struct hm_decision d;
    hm_status rc = hm_session_decide(s, -1, 0, NULL, 0, &d, err);
    if (rc) return rc;
    struct hm_step_event event = {.round = -1, .token = d.token, .source = HM_TOKEN_PREFILL, .child = -1,
                                  .support = d.support, .target_row = s->rows, .draft_why = "prefill", .spent = d.spent};
    s->counts->prefills++;
    rc = hm_session_emit(s, &event, err);
    *stop = event.stop;
    return rc;
}

static hm_status run_sequence(struct hm_session *s, struct hm_error *err)
{
    enum hm_stop_reason stop = HM_STOP_NONE;
    const struct hm_listener *l = s->listener;
    double start = hm_now();
    hm_status rc = prefill(s, err);
    s->counts->prefill_seconds += hm_now() - start;
    start = hm_now();
    if (!rc) rc = emit_first(s, &stop, err);
    for (uint32_t round = 0; !rc && stop == HM_STOP_NONE && !(l->interrupted && *l->interrupted); round++)
        rc = hm_session_round(s, round, &stop, err);
    if (!rc && stop != HM_STOP_STRING) rc = hm_session_finish_text(s, err);
    s->counts->seconds += hm_now() - start;
    return rc;
}

hm_status hm_session_run(struct hm_session *s, uint32_t sequence, const int32_t *prompt, size_t length,
                         size_t max_tokens, const struct hm_listener *listener, struct hm_session_counts *counts,
                         int32_t **token, size_t *count, struct hm_error *err)
{
    *token = NULL;
    *count = 0;
    s->listener = listener;
    s->counts = counts;
    hm_status rc = begin(s, sequence, prompt, length, max_tokens, err);
    if (!rc) rc = run_sequence(s, err);
    hm_stop_clear(&s->stop);
    if (rc) return rc;
    size_t n = s->length - s->prompt;
    *token = hm_calloc(n, sizeof **token);
    if (!*token) return hm_fail(err, HM_MEMORY, "out of memory for %zu tokens", n);
    memcpy(*token, s->context + s->prompt, n * sizeof **token);
    *count = n;
    return HM_OK;
}
