// What a session tells its listener: tokens with the rows that decided them, their text, and the nodes nobody visited.
#include "decode/session_parts.h"

#include "base/memory.h"

#include <math.h>

// Ids the draft does not have are never proposed (-inf); ids the target does not have are left out.
const float *hm_session_draft_row(struct hm_session *s, size_t node, const char **why)
{
    *why = NULL;
    if (!s->options.drafter) *why = "no drafter";
    else if (s->pool.vocab == 0) *why = "no draft model";
    else if (s->tree.row[node] < 0) *why = "not expanded";
    if (*why) return NULL;
    const float *row = s->pool.rows + (size_t)s->tree.row[node] * s->pool.vocab;
    if (!s->draft_row) return row;
    const int32_t *ids = s->options.drafter->ids;
    for (size_t i = 0; i < s->vocab; i++) s->draft_row[i] = -INFINITY;
    for (size_t i = 0; i < s->pool.vocab; i++) {
        size_t id = ids ? (size_t)ids[i] : i;
        if (id < s->vocab) s->draft_row[id] = row[i];
    }
    return s->draft_row;
}

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

hm_status hm_session_finish_text(struct hm_session *s, struct hm_error *err)
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

static bool is_eos(const struct hm_session *s, int32_t token)
{
    for (size_t i = 0; i < s->options.eos_count; i++)
        if (s->options.eos[i] == token) return true;
    return false;
}

hm_status hm_session_append(struct hm_session *s, int32_t token, struct hm_error *err)
{
    void *grown = s->context;
    if (!hm_grow(&grown, &s->context_capacity, s->length + 1, sizeof *s->context))
        return hm_fail(err, HM_MEMORY, "out of memory for a context of %zu tokens", s->length + 1);
    s->context = grown;
    s->context[s->length++] = token;
    return HM_OK;
}

hm_status hm_session_emit(struct hm_session *s, struct hm_step_event *event, struct hm_error *err)
{
    bool stopped;
    hm_status rc = hm_session_append(s, event->token, err);
    if (!rc) rc = complete_text(s, event, &stopped, err);
    if (rc) return rc;
    s->counts->tokens++;
    s->counts->charged += event->charged;
    s->counts->relaxed += event->charged && event->relaxed;
    if (event->spent > s->counts->most_spent) s->counts->most_spent = event->spent;
    if (is_eos(s, event->token)) event->stop = HM_STOP_EOS;
    else if (stopped) event->stop = HM_STOP_STRING;
    else if (event->t + 1 == s->max_tokens) event->stop = HM_STOP_LENGTH;
    return s->listener->step ? s->listener->step(s->listener->user, event, err) : HM_OK;
}

hm_status hm_session_emit_step(struct hm_session *s, uint32_t round, size_t i, struct hm_step_event *event, struct hm_error *err)
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
        .capped = s->options.cap && i >= s->options.cap,
        .charged = d->charged,
        .relaxed = d->relaxed,
        .charge = d->charge,
        .spent = d->spent,
    };
    event->draft_row = hm_session_draft_row(s, node, &event->draft_why);
    return hm_session_emit(s, event, err);
}

hm_status hm_session_report_nodes(struct hm_session *s, uint32_t round, size_t emitted, struct hm_error *err)
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
        event.draft_row = hm_session_draft_row(s, node, &event.draft_why);
        if (!rc) rc = s->listener->node(s->listener->user, &event, err);
    }
    return rc;
}
