// Keeps rounds.h's rounds.
#include "reports/rounds.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

hm_status hm_rounds_begin(struct hm_report_rounds *r, const struct hm_record_round *round, size_t log, size_t line,
                          struct hm_error *err)
{
    size_t n = round->nodes;
    if (n > r->open.capacity) {
        size_t room = 2 * n;
        const struct hm_array arrays[] = {{(void **)&r->open.parent, sizeof *r->open.parent},
                                          {(void **)&r->open.token, sizeof *r->open.token},
                                          {(void **)&r->open.depth, sizeof *r->open.depth},
                                          {(void **)&r->open.logq, sizeof *r->open.logq},
                                          {(void **)&r->open.on_path, sizeof *r->open.on_path}};
        if (!hm_grow_together(arrays, sizeof arrays / sizeof *arrays, room))
            return hm_fail(err, HM_MEMORY, "out of memory for a tree of %zu nodes", n);
        r->open.capacity = room;
    }
    memcpy(r->open.parent, round->parent, n * sizeof *r->open.parent);
    memcpy(r->open.token, round->token, n * sizeof *r->open.token);
    memcpy(r->open.depth, round->depth, n * sizeof *r->open.depth);
    memcpy(r->open.logq, round->logq, n * sizeof *r->open.logq);
    memset(r->open.on_path, 0, n);
    r->open.nodes = n;
    r->open.scored = round->scored;
    r->open.line = line;
    r->open.log = log;
    r->open.sequence = round->sequence;
    r->open.round = round->round;
    r->open.t = round->t;
    r->open.has_continuation = false;
    return HM_OK;
}

// Texts that could be part of a character, or that a table cannot hold, teach nothing.
static bool plain(const char *text)
{
    size_t size = strlen(text);
    if (size == 0 || size >= HM_ROUNDS_TEXT) return false;
    for (size_t i = 0; i < size; i++)
        if ((text[i] < 0x20 && text[i] != '\n') || text[i] > 0x7e) return false;
    return true;
}

static struct hm_token_text *place_of(const struct hm_report_rounds *r, int64_t token)
{
    return &r->texts[(uint64_t)token % HM_ROUNDS_TEXTS];
}

const char *hm_rounds_text(const struct hm_report_rounds *r, int64_t token)
{
    if (!r->texts || token < 0) return NULL;
    const struct hm_token_text *place = place_of(r, token);
    return place->id == token ? place->text : NULL;
}

static hm_status learn(struct hm_report_rounds *r, const struct hm_record_step *step, struct hm_error *err)
{
    if (!plain(step->text)) return HM_OK;
    if (!r->texts) {
        r->texts = hm_calloc(HM_ROUNDS_TEXTS, sizeof *r->texts);
        if (!r->texts) return hm_fail(err, HM_MEMORY, "out of memory for the texts of tokens");
        for (size_t i = 0; i < HM_ROUNDS_TEXTS; i++) r->texts[i].id = -1;
    }
    struct hm_token_text *place = place_of(r, step->token);
    if (place->id >= 0) return HM_OK;
    place->id = step->token;
    memcpy(place->text, step->text, strlen(step->text));
    return HM_OK;
}

hm_status hm_rounds_step(struct hm_report_rounds *r, const struct hm_record_step *step, struct hm_error *err)
{
    if (step->round >= 0 && r->open.nodes) {
        if (step->source == HM_SOURCE_ACCEPTED && step->child >= 0 && (size_t)step->child < r->open.nodes)
            r->open.on_path[step->child] = 1;
        if (step->source == HM_SOURCE_CONTINUATION && !r->open.has_continuation) {
            r->open.has_continuation = true;
            r->open.continuation = step->token;
            r->open.leaves_from = step->node;
        }
    }
    return learn(r, step, err);
}

// A node in line to be kept: on the accepted path, or else by its draft's log-probability from the root.
struct candidate {
    int64_t node;
    double logq;
    bool on_path;
};

static int likelier(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->on_path != y->on_path) return x->on_path ? -1 : 1;
    if (x->logq != y->logq) return x->logq > y->logq ? -1 : 1;
    return x->node < y->node ? -1 : 1; // parents before children
}

static int earlier(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->node < y->node ? -1 : 1;
}

// The part of the tree that is kept: no node without its parent, since none is likelier from the root than its parent.
static bool keep_nodes(const struct hm_report_rounds *r, struct hm_kept_round *kept)
{
    size_t n = r->open.nodes;
    struct candidate *all = hm_calloc(n, sizeof *all);
    int32_t *place = hm_calloc(n, sizeof *place);
    if (all && place) {
        for (size_t i = 0; i < n; i++) {
            double own = r->open.logq[i];
            all[i] = (struct candidate){(int64_t)i, 0, i == 0 || r->open.on_path[i]};
            if (i) all[i].logq = all[r->open.parent[i]].logq + (own <= 0 ? own : 0);
        }
        qsort(all, n, sizeof *all, likelier);
        kept->count = n < HM_ROUNDS_NODES ? n : HM_ROUNDS_NODES;
        qsort(all, kept->count, sizeof *all, earlier);
        memset(place, -1, n * sizeof *place);
        size_t count = 0;
        for (size_t i = 0; i < kept->count; i++) {
            size_t node = (size_t)all[i].node;
            int32_t parent = node ? place[r->open.parent[node]] : -1;
            if (node && parent < 0) continue; // a path of more nodes than are kept
            place[node] = (int32_t)count;
            kept->node[count++] = (struct hm_kept_node){
                .parent = parent,
                .node = (int32_t)node,
                .depth = (int32_t)r->open.depth[node],
                .token = r->open.token[node],
                .logq = r->open.logq[node],
                .part = (uint8_t)(node == 0                          ? HM_NODE_ROOT
                                  : r->open.on_path[node]            ? HM_NODE_ACCEPTED
                                  : node >= n - r->open.scored       ? HM_NODE_SCORED
                                                                     : HM_NODE_VERIFIED)};
        }
        kept->count = count;
    }
    bool good = all && place;
    free(all);
    free(place);
    return good;
}

hm_status hm_rounds_end(struct hm_report_rounds *r, uint64_t accepted, uint64_t emitted, struct hm_error *err)
{
    size_t place = accepted < HM_ROUNDS_KEPT ? (size_t)accepted : HM_ROUNDS_KEPT - 1;
    if (r->open.nodes < 2) return HM_OK; // nothing to draw
    if (!r->kept) r->kept = hm_calloc(HM_ROUNDS_KEPT, sizeof *r->kept);
    if (!r->kept) return hm_fail(err, HM_MEMORY, "out of memory for the rounds of a report");
    struct hm_kept_round *kept = &r->kept[place];
    if (kept->has && kept->accepted >= accepted) return HM_OK;
    *kept = (struct hm_kept_round){.has = true,
                                   .log = r->open.log,
                                   .line = r->open.line,
                                   .sequence = r->open.sequence,
                                   .round = r->open.round,
                                   .t = r->open.t,
                                   .nodes = (int64_t)r->open.nodes,
                                   .scored = (int64_t)r->open.scored,
                                   .accepted = accepted,
                                   .emitted = emitted,
                                   .has_continuation = r->open.has_continuation,
                                   .continuation = r->open.continuation,
                                   .leaves_from = r->open.leaves_from};
    for (size_t i = 0; i < r->open.nodes; i++)
        if (r->open.depth[i] > kept->depth) kept->depth = r->open.depth[i];
    return keep_nodes(r, kept) ? HM_OK : hm_fail(err, HM_MEMORY, "out of memory for the rounds of a report");
}

void hm_rounds_clear(struct hm_report_rounds *r)
{
    free(r->kept);
    free(r->texts);
    free(r->open.parent);
    free(r->open.token);
    free(r->open.depth);
    free(r->open.logq);
    free(r->open.on_path);
}

// The place of the median number of accepted tokens, or of the nearest with a round to draw.
static size_t typical(const struct hm_report_rounds *r, const uint64_t *by_count, size_t counts)
{
    uint64_t all = 0, seen = 0;
    size_t median = 0, best = HM_ROUNDS_KEPT;
    for (size_t i = 0; i < counts; i++) all += by_count[i];
    for (size_t i = 0; i < counts; i++) {
        seen += by_count[i];
        median = i;
        if (2 * seen >= all) break;
    }
    for (size_t i = 0; i < HM_ROUNDS_KEPT; i++) {
        size_t far = i > median ? i - median : median - i, near = best > median ? best - median : median - best;
        if (r->kept[i].has && (best == HM_ROUNDS_KEPT || far < near)) best = i;
    }
    return best;
}

size_t hm_rounds_chosen(const struct hm_report_rounds *r, const uint64_t *by_count, size_t counts,
                        struct hm_shown_round out[HM_ROUNDS_KEPT])
{
    size_t n = 0, longest = HM_ROUNDS_KEPT;
    bool taken[HM_ROUNDS_KEPT] = {false};
    if (!r->kept) return 0;
    for (size_t i = 0; i < HM_ROUNDS_KEPT; i++)
        if (r->kept[i].has) longest = i;
    if (longest == HM_ROUNDS_KEPT) return 0;
    const size_t first[] = {longest, typical(r, by_count, counts), 0};
    static const char *const why[] = {"most accepted", "typical", "total miss"};
    for (size_t i = 0; i < 3; i++) {
        if (!r->kept[first[i]].has || taken[first[i]]) continue;
        if (first[i] == 0 && i == 0) continue; // nothing was ever accepted: a miss, no success
        taken[first[i]] = true;
        out[n++] = (struct hm_shown_round){&r->kept[first[i]], first[i] ? why[i] : why[2]};
    }
    for (size_t i = 0; i < HM_ROUNDS_KEPT; i++)
        if (r->kept[i].has && !taken[i]) out[n++] = (struct hm_shown_round){&r->kept[i], ""};
    return n;
}
