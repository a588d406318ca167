// One decode: see session.h.
#include "decode/session.h"

#include "base/clock.h"
#include "base/memory.h"
#include "decode/stop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hm_session {
    struct hm_session_options options;
    size_t vocab;
    struct hm_cache *cache;
    struct hm_pool pool;
    struct hm_tree tree;
    float *rows;                 // target rows of a round [budget + 1][vocab]; row 0 also serves the prefill
    float *draft_row;            // a draft row fitted to the target's vocabulary [vocab]; only when the widths differ
    uint32_t *every;             // 0, 1, ... : the rows of a pass that need logits [budget + 1]
    uint32_t *path;              // visited nodes, root first [budget + 1]
    int32_t *children;           // [budget + 1]
    struct hm_decision *decision; // one per visited node [budget + 1]
    char *piece;                 // text of one token
    size_t piece_capacity;
    // The sequence at hand.
    uint32_t sequence;
    int32_t *context;            // prompt and emitted tokens [length]
    size_t length, context_capacity, prompt;
    size_t max_tokens;
    struct hm_utf8_stream utf8;
    struct hm_stop stop;
    const struct hm_listener *listener;
    struct hm_session_counts *counts;
};

// ---- opening

static hm_status allocate(struct hm_session *s, struct hm_error *err)
{
    size_t n = s->options.budget + 1, floats;
    if (!hm_mul_size(n, s->vocab, &floats)) return hm_fail(err, HM_MEMORY, "out of memory for %zu rows", n);
    s->rows = hm_calloc(floats, sizeof *s->rows);
    s->every = hm_calloc(n, sizeof *s->every);
    s->path = hm_calloc(n, sizeof *s->path);
    s->children = hm_calloc(n, sizeof *s->children);
    s->decision = hm_calloc(n, sizeof *s->decision);
    bool fit = s->options.drafter && s->options.drafter->vocab && s->options.drafter->vocab != s->vocab;
    if (fit) s->draft_row = hm_calloc(s->vocab, sizeof *s->draft_row);
    if (!s->rows || !s->every || !s->path || !s->children || !s->decision || (fit && !s->draft_row))
        return hm_fail(err, HM_MEMORY, "out of memory for %zu rows of %zu logits", n, s->vocab);
    for (size_t i = 0; i < n; i++) s->every[i] = (uint32_t)i;
    return HM_OK;
}

hm_status hm_session_open(const struct hm_session_options *options, struct hm_session **out, struct hm_error *err)
{
    struct hm_session *s = hm_calloc(1, sizeof *s);
    *out = NULL;
    if (!s) return hm_fail(err, HM_MEMORY, "out of memory for a decode");
    s->options = *options;
    if (!options->drafter) s->options.budget = 0;
    s->vocab = hm_model_info(options->target)->vocab;
    const struct hm_drafter *drafter = options->drafter;
    struct hm_pool_options pool = {.width = options->width, .vocab = drafter ? drafter->vocab : 0,
                                   .usable = drafter ? drafter->usable : 0, .ids = drafter ? drafter->ids : NULL,
                                   .proposal = HM_PROPOSAL_TOPK};
    hm_status rc = allocate(s, err);
    if (!rc) rc = hm_cache_open(options->target, options->positions + s->options.budget + 1, &s->cache, err);
    if (!rc) rc = hm_pool_init(&s->pool, &pool, err);
    if (!rc) rc = hm_tree_init(&s->tree, s->options.budget, err);
    if (rc) hm_session_close(s);
    else *out = s;
    return rc;
}

void hm_session_close(struct hm_session *s)
{
    if (!s) return;
    hm_cache_close(s->cache);
    hm_pool_clear(&s->pool);
    hm_tree_clear(&s->tree);
    free(s->rows);
    free(s->draft_row);
    free(s->every);
    free(s->path);
    free(s->children);
    free(s->decision);
    free(s->piece);
    free(s->context);
    free(s);
}

// ---- rows

// The draft's row after a node on the target's ids: ids the draft does not have are never proposed (-inf), ids the target
// does not have are left out.
static const float *draft_row(struct hm_session *s, size_t node, const char **why)
{
    *why = NULL;
    if (!s->options.drafter) *why = "no drafter";
    else if (s->pool.vocab == 0) *why = "no draft model";
    else if (s->tree.row[node] < 0) *why = "not expanded";
    if (*why) return NULL;
    const float *row = s->pool.rows + (size_t)s->tree.row[node] * s->pool.vocab;
    if (!s->draft_row) return row;
    for (size_t i = 0; i < s->vocab; i++) s->draft_row[i] = i < s->pool.vocab ? row[i] : -INFINITY;
    return s->draft_row;
}

// ---- emitting

static hm_status show(struct hm_session *s, struct hm_error *err)
{
    if (!s->stop.show || !s->listener->text) return HM_OK;
    return s->listener->text(s->listener->user, s->stop.held, s->stop.show, err);
}

// The text that a token completes, into event->text; *stopped when a stop string completes with it.
static hm_status complete_text(struct hm_session *s, struct hm_step_event *event, bool *stopped, struct hm_error *err)
{
    size_t size = 0;
    const uint8_t *bytes = NULL;
    *stopped = false;
    if (!s->options.tokenizer) return HM_OK;
    bool special = hm_tokenizer_is_special(s->options.tokenizer, event->token);
    if (!special) bytes = hm_tokenizer_bytes(s->options.tokenizer, event->token, &size);
    void *grown = s->piece;
    if (!hm_grow(&grown, &s->piece_capacity, HM_UTF8_ROOM(size), 1))
        return hm_fail(err, HM_MEMORY, "out of memory for the text of a token");
    s->piece = grown;
    event->text = s->piece;
    event->text_size = bytes ? hm_utf8_push(&s->utf8, bytes, size, s->piece) : 0;
    hm_status rc = hm_stop_push(&s->stop, event->text, event->text_size, stopped, err);
    return rc ? rc : show(s, err);
}

static bool is_eos(const struct hm_session *s, int32_t token)
{
    for (size_t i = 0; i < s->options.eos_count; i++)
        if (s->options.eos[i] == token) return true;
    return false;
}

static hm_status append(struct hm_session *s, int32_t token, struct hm_error *err)
{
    void *grown = s->context;
    if (!hm_grow(&grown, &s->context_capacity, s->length + 1, sizeof *s->context))
        return hm_fail(err, HM_MEMORY, "out of memory for a context of %zu tokens", s->length + 1);
    s->context = grown;
    s->context[s->length++] = token;
    return HM_OK;
}

// Emits one token: context, text, stop conditions, the listener. event->stop says whether the sequence has ended.
static hm_status emit(struct hm_session *s, struct hm_step_event *event, struct hm_error *err)
{
    bool stopped;
    hm_status rc = append(s, event->token, err);
    if (!rc) rc = complete_text(s, event, &stopped, err);
    if (rc) return rc;
    s->counts->tokens++;
    if (is_eos(s, event->token)) event->stop = HM_STOP_EOS;
    else if (stopped) event->stop = HM_STOP_STRING;
    else if (event->t + 1 == s->max_tokens) event->stop = HM_STOP_LENGTH;
    return s->listener->step ? s->listener->step(s->listener->user, event, err) : HM_OK;
}

// ---- one round

static hm_status decide(struct hm_session *s, const float *row, uint32_t t, const int32_t *children, size_t child_count,
                        struct hm_decision *out, struct hm_error *err)
{
    struct hm_accept_node node = {.target = row, .vocab = s->vocab, .sequence = s->sequence, .t = t,
                                  .children = children, .child_count = child_count};
    hm_status rc = hm_accept(&s->options.acceptance, NULL, &node, out, err);
    char where[256];
    if (rc) {
        snprintf(where, sizeof where, "%.150s: row of token %u of sequence %u", hm_model_info(s->options.target)->name, t,
                 s->sequence);
        hm_fail_prefix(err, where);
    }
    return rc;
}

// Walks the tree from the root; fills path and decision, one entry per visited node. Returns how many in *visited.
static hm_status traverse(struct hm_session *s, uint32_t t, size_t *visited, struct hm_error *err)
{
    size_t node = 0, n = 0;
    for (;;) {
        bool capped = s->options.cap && n >= s->options.cap;
        size_t child_count = capped ? 0 : hm_tree_children(&s->tree, node, s->children);
        struct hm_decision *d = &s->decision[n];
        hm_status rc = decide(s, s->rows + node * s->vocab, t + (uint32_t)n, s->children, child_count, d, err);
        if (rc) return rc;
        s->path[n++] = (uint32_t)node;
        if (d->child < 0) break;
        d->child = hm_tree_child(&s->tree, node, d->token); // from an index among the children to a node index
        node = (size_t)d->child;
    }
    *visited = n;
    return HM_OK;
}

// Drafts a pool; near the end of the models' positions a shallower one, and at the very end none.
static hm_status propose(struct hm_session *s, struct hm_error *err)
{
    struct hm_drafter *drafter = s->options.drafter;
    hm_pool_reset(&s->pool);
    size_t most = hm_model_info(s->options.target)->max_positions;
    if (drafter && drafter->positions < most) most = drafter->positions;
    if (drafter && s->length < most) { // the deepest node, at depth + 1, takes position length + depth
        size_t depth = s->options.depth < most - s->length - 1 ? s->options.depth : most - s->length - 1;
        hm_status rc = drafter->ops->propose(drafter, s->context, s->length, depth, &s->pool, err);
        if (rc) return rc;
    }
    struct hm_selection_request request = {.how = s->options.selection, .budget = s->options.budget};
    return hm_tree_select(&s->tree, s->context[s->length - 1], &s->pool, &request, err);
}

static hm_status verify(struct hm_session *s, struct hm_error *err)
{
    struct hm_pass pass = {.token = s->tree.token, .parent = s->tree.parent, .rows = s->tree.nodes,
                           .logits_for = s->every, .logits_count = s->tree.nodes};
    return hm_model_forward(s->options.target, s->cache, &pass, s->rows, err);
}

static hm_status emit_step(struct hm_session *s, uint32_t round, size_t i, struct hm_step_event *event,
                           struct hm_error *err)
{
    size_t node = s->path[i];
    const struct hm_decision *d = &s->decision[i];
    *event = (struct hm_step_event){
        .t = (uint32_t)(s->length - s->prompt),
        .round = round,
        .token = d->token,
        .source = d->child >= 0 ? HM_TOKEN_ACCEPTED : HM_TOKEN_CONTINUATION,
        .node = node,
        .depth = s->tree.depth[node],
        .child = d->child,
        .support = d->support,
        .children = s->children,
        .child_count = hm_tree_children(&s->tree, node, s->children),
        .target_row = s->rows + node * s->vocab,
    };
    event->draft_row = draft_row(s, node, &event->draft_why);
    return emit(s, event, err);
}

// Reports the verified nodes that no emitted token was decided at; `emitted` of the visited ones were.
static hm_status report_nodes(struct hm_session *s, uint32_t round, size_t emitted, struct hm_error *err)
{
    hm_status rc = HM_OK;
    for (size_t node = 0; node < s->tree.nodes && !rc; node++) {
        size_t at = 0;
        while (at < emitted && s->path[at] != node) at++;
        if (at < emitted) continue;
        struct hm_node_event event = {.round = round, .node = node, .depth = s->tree.depth[node],
                                      .children = s->children, .target_row = s->rows + node * s->vocab};
        rc = hm_accept_support(&s->options.acceptance, event.target_row, s->vocab, &event.support, err);
        event.child_count = hm_tree_children(&s->tree, node, s->children);
        event.draft_row = draft_row(s, node, &event.draft_why);
        if (!rc) rc = s->listener->node(s->listener->user, &event, err);
    }
    return rc;
}

// Counts what a round emitted: tokens beyond a cut are not there.
static void count_round(struct hm_session *s, size_t emitted, size_t visited, const struct hm_round_event *event)
{
    struct hm_session_counts *c = s->counts;
    size_t accepted = emitted < visited ? emitted : visited - 1; // the last visited node gives the continuation
    c->rounds++;
    c->accepted += accepted;
    c->drafted += s->pool.count;
    c->verified += s->tree.nodes - 1;
    c->trees += s->tree.nodes > 1;
    c->full += s->tree.nodes > 1 && accepted == hm_tree_depth(&s->tree);
    size_t most = sizeof c->reached / sizeof c->reached[0];
    for (size_t i = 0; i < accepted && i < most; i++) c->reached[i]++;
    c->draft_seconds += event->draft_seconds;
    c->verify_seconds += event->verify_seconds;
}

static hm_status run_round(struct hm_session *s, uint32_t round, enum hm_stop_reason *stop, struct hm_error *err)
{
    uint32_t t = (uint32_t)(s->length - s->prompt);
    size_t visited = 0, emitted = 0;
    double start = hm_now();
    hm_status rc = propose(s, err);
    double drafted = hm_now();
    if (!rc) rc = verify(s, err);
    double verified = hm_now();
    if (!rc) rc = traverse(s, t, &visited, err);
    if (rc) return rc;

    struct hm_round_event event = {
        .round = round, .t = t, .tree = &s->tree, .pool = s->pool.count, .first = -1, .accepted = visited - 1, .rows = s->rows,
        .draft_seconds = drafted - start, .verify_seconds = verified - drafted};
    if (s->listener->round) rc = s->listener->round(s->listener->user, &event, err);
    struct hm_step_event step = {.stop = HM_STOP_NONE};
    for (size_t i = 0; i < visited && !rc && step.stop == HM_STOP_NONE; i++, emitted++)
        rc = emit_step(s, round, i, &step, err);
    count_round(s, emitted, visited, &event);
    if (!rc && s->listener->node) rc = report_nodes(s, round, emitted, err);
    if (!rc) rc = hm_cache_commit(s->cache, s->path, visited, err);
    *stop = step.stop;
    return rc;
}

// ---- one sequence

static hm_status emit_first(struct hm_session *s, enum hm_stop_reason *stop, struct hm_error *err)
{
    struct hm_decision d;
    hm_status rc = decide(s, s->rows, 0, NULL, 0, &d, err);
    if (rc) return rc;
    struct hm_step_event event = {.round = -1, .token = d.token, .source = HM_TOKEN_PREFILL, .child = -1,
                                  .support = d.support, .target_row = s->rows, .draft_why = "prefill"};
    s->counts->prefills++;
    rc = emit(s, &event, err);
    *stop = event.stop;
    return rc;
}

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
    if (rc) return rc;
    s->sequence = sequence;
    s->length = 0;
    s->prompt = length;
    s->max_tokens = max_tokens;
    s->utf8 = (struct hm_utf8_stream){0};
    s->stop = (struct hm_stop){.strings = s->options.stop, .count = s->options.stop_count};
    hm_cache_truncate(s->cache, 0);
    if (s->options.drafter) s->options.drafter->ops->restart(s->options.drafter);
    for (size_t i = 0; i < length && !rc; i++) rc = append(s, prompt[i], err);
    return rc;
}

// Shows what the end of the text still held back.
static hm_status finish_text(struct hm_session *s, struct hm_error *err)
{
    char rest[4];
    bool found = false;
    size_t n = hm_utf8_flush(&s->utf8, rest);
    hm_status rc = hm_stop_push(&s->stop, rest, n, &found, err);
    if (!rc) rc = show(s, err);
    if (!rc && !found) {
        hm_stop_flush(&s->stop);
        rc = show(s, err);
    }
    return rc;
}

static hm_status run_sequence(struct hm_session *s, struct hm_error *err)
{
    enum hm_stop_reason stop = HM_STOP_NONE;
    const struct hm_listener *l = s->listener;
    double start = hm_now();
    struct hm_prefill_watch watch = {.progress = l->prefill, .user = l->user};
    hm_status rc = hm_model_prefill(s->options.target, s->cache, s->context, s->prompt, s->rows, &watch, err);
    s->counts->prefill_seconds += hm_now() - start;
    start = hm_now();
    if (!rc) rc = emit_first(s, &stop, err);
    for (uint32_t round = 0; !rc && stop == HM_STOP_NONE && !(l->interrupted && *l->interrupted); round++)
        rc = run_round(s, round, &stop, err);
    if (!rc && stop != HM_STOP_STRING) rc = finish_text(s, err);
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
