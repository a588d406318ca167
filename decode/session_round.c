// One round: draft, select, verify, walk, emit, commit (docs/decoders.md; docs/log.md, "The walk").
#include "decode/session_parts.h"

#include "base/clock.h"
#include "certify/row.h"
#include "certify/sampling.h"

#include <math.h>
#include <stdio.h>

// ---- decisions

// What is wrong with a row is said of the token it was to decide.
static hm_status of_token(const struct hm_session *s, uint32_t t, hm_status rc, struct hm_error *err)
{
    char where[256];
    if (!rc) return HM_OK;
    snprintf(where, sizeof where, "%.150s: row of token %u of sequence %u", hm_model_info(s->options.target)->name, t,
             s->sequence);
    return hm_fail_prefix(err, where), rc;
}

hm_status hm_session_decide(struct hm_session *s, int64_t node, uint32_t t, const int32_t *children, size_t child_count,
                            struct hm_decision *out, struct hm_error *err)
{
    const char *why;
    struct hm_accept_node at = {.target = s->rows, .vocab = s->vocab, .sequence = s->sequence, .t = t,
                                .children = children, .child_count = child_count};
    if (node >= 0) at.target += (size_t)node * s->vocab;
    if (child_count && s->options.acceptance.kind >= HM_ACCEPT_STANDARD)
        at.draft = hm_session_draft_row(s, (size_t)node, &why);
    struct hm_budget *budget = s->fidelity.kind ? &s->fidelity : NULL;
    return of_token(s, t, hm_accept(&s->options.acceptance, budget, &at, out, err), err);
}

// The token that the target's row at the root decides on.
static hm_status draw_first(struct hm_session *s, uint32_t t, int32_t *token, struct hm_error *err)
{
    struct hm_acceptance how = s->options.acceptance;
    struct hm_accept_node at = {.target = s->rows, .vocab = s->vocab, .sequence = s->sequence, .t = t};
    struct hm_decision d;
    how.kind = HM_ACCEPT_MATCH;
    how.rule = NULL;
    hm_status rc = of_token(s, t, hm_accept(&how, NULL, &at, &d, err), err);
    *token = rc ? -1 : d.token;
    return rc;
}

// ln p(y | root) of the candidates of level 1 under the distribution that the target draws from. These doubles only rank
// candidates, so the middle of an enclosure will do; whatever they are, the tokens emitted are the same.
static hm_status first_factors(struct hm_session *s, uint32_t t, struct hm_error *err)
{
    const struct hm_acceptance *how = &s->options.acceptance;
    bool sampled = hm_rational_sign(how->temperature) > 0;
    struct hm_row *row = NULL;
    size_t support, count = 0;
    for (; count < s->pool.count && s->pool.candidate[count].parent < 0; count++)
        s->children[count] = s->pool.candidate[count].token;
    hm_status rc = hm_row_open(s->rows, s->vocab, sampled ? how->temperature : how->certify_temperature, &row, err);
    if (!rc && sampled) rc = hm_row_support(row, how->top_k, how->top_p, &support, err);
    if (!rc && sampled) rc = hm_sampling_probability(row, support, s->children, count, s->first_share, err);
    for (size_t c = 0; c < count && !rc; c++) {
        if (sampled) s->first_logp[c] = log(0.5 * s->first_share[c].lo + 0.5 * s->first_share[c].hi);
        else s->first_logp[c] = hm_row_token(row, 0) == s->children[c] ? 0 : -INFINITY;
    }
    hm_row_close(row);
    return of_token(s, t, rc, err);
}

// ---- the tree

static hm_status select_tree(struct hm_session *s, struct hm_round_event *event, struct hm_error *err)
{
    const struct hm_session_options *o = &s->options;
    struct hm_selection_request request = {.how = o->selection, .budget = o->budget, .first_logp = s->first_logp,
                                           .score_top = o->score_top, .score_frontier = o->score_frontier};
    hm_status rc = HM_OK;
    if (o->covering) request.how = s->root_known ? HM_SELECT_ROOT_DRAW : HM_SELECT_DRAFT;
    if (request.how == HM_SELECT_ROOT) rc = first_factors(s, event->t, err);
    if (request.how == HM_SELECT_ROOT_DRAW || request.how == HM_SELECT_PEARL) {
        rc = draw_first(s, event->t, &request.drawn, err);
        event->first = request.drawn;
    }
    return rc ? rc : hm_tree_select(&s->tree, s->context[s->length - 1], &s->pool, &request, err);
}

// ---- the walk

// Walks the tree from the root; fills path and decision, one entry per visited node. Returns how many in *visited.
static hm_status traverse(struct hm_session *s, uint32_t t, size_t *visited, struct hm_error *err)
{
    size_t node = 0, n = 0;
    for (;;) {
        bool capped = s->options.cap && n >= s->options.cap;
        size_t child_count = capped ? 0 : hm_tree_children(&s->tree, node, s->children);
        struct hm_decision *d = &s->decision[n];
        hm_status rc = hm_session_decide(s, (int64_t)node, t + (uint32_t)n, s->children, child_count, d, err);
        if (rc) return rc;
        s->path[n++] = (uint32_t)node;
        if (d->child < 0) break;
        d->child = hm_tree_child_at(&s->tree, node, (size_t)d->child); // from a place among the children to a node
        if (s->options.leaf_stop && hm_tree_child_at(&s->tree, (size_t)d->child, 0) < 0) {
            d->child = -1; // the leaf's token is the continuation, and its row the next root's
            break;
        }
        node = (size_t)d->child;
    }
    *visited = n;
    return HM_OK;
}

// ---- the round

// Counts what a round emitted: tokens beyond a cut are not there.
static void count_round(struct hm_session *s, size_t emitted, size_t visited, const struct hm_round_event *event)
{
    struct hm_session_counts *c = s->counts;
    size_t accepted = emitted < visited ? emitted : visited - 1; // the last visited node gives the continuation
    c->rounds++;
    c->accepted += accepted;
    c->drafted += s->pool.count;
    c->verified += s->tree.nodes - s->tree.scored - 1;
    c->scored += s->tree.scored;
    c->covered += event->covered && emitted == visited;
    size_t depth = hm_tree_depth(&s->tree);
    c->trees += depth > 0;
    c->full += depth > 0 && accepted == depth;
    size_t most = sizeof c->reached / sizeof c->reached[0];
    for (size_t i = 0; i < accepted && i < most; i++) c->reached[i]++;
    c->draft_seconds += event->draft_seconds;
    c->verify_seconds += event->verify_seconds;
    c->root_seconds += event->root_seconds;
    c->together_seconds += event->together_seconds;
}

static hm_status emit_round(struct hm_session *s, const struct hm_round_event *event, size_t visited,
                            enum hm_stop_reason *stop, struct hm_error *err)
{
    hm_status rc = HM_OK;
    size_t emitted = 0;
    struct hm_step_event step = {.stop = HM_STOP_NONE};
    if (s->listener->round) rc = s->listener->round(s->listener->user, event, err);
    for (; emitted < visited && !rc && step.stop == HM_STOP_NONE; emitted++)
        rc = hm_session_emit_step(s, event->round, emitted, &step, err);
    count_round(s, emitted, visited, event);
    if (!rc && s->listener->node) rc = hm_session_report_nodes(s, event->round, emitted, err);
    *stop = step.stop;
    return rc;
}

hm_status hm_session_round(struct hm_session *s, uint32_t round, enum hm_stop_reason *stop, struct hm_error *err)
{
    struct hm_round_event event = {.round = round, .t = (uint32_t)(s->length - s->prompt), .tree = &s->tree, .first = -1,
                                   .rows = s->rows};
    size_t visited = 0;
    hm_status rc = hm_session_draft_and_root(s, &event, err);
    if (!rc && s->listener->pool) rc = hm_session_record_pool(s, round, event.t, err);
    if (!rc) rc = select_tree(s, &event, err);
    double start = hm_now();
    if (!rc) rc = hm_session_verify(s, err);
    event.verify_seconds = hm_now() - start;
    if (!rc) rc = traverse(s, event.t, &visited, err);
    if (rc) return rc;

    // Covered: the continuation leads to a node whose row is at hand. It is the next root.
    int64_t next_root = hm_tree_address(&s->tree, s->path[visited - 1], s->decision[visited - 1].token);
    event.covered = next_root >= 0;
    event.accepted = visited - 1;
    rc = emit_round(s, &event, visited, stop, err);
    if (!rc && *stop == HM_STOP_NONE) rc = hm_session_commit(s, visited, next_root, err);
    return rc;
}
