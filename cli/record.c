// Recording pools: see record.h. Probabilities are midpoints of enclosures (certify/sampling.h) that are narrower than
// a double can tell apart for all but the least likely tokens.
#include "cli/record.h"

#include "base/memory.h"
#include "base/sha256.h"
#include "certify/sampling.h"
#include "cli/kept_rows.h"
#include "study/recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_BYTES = 256 << 20 };

// The rows of the round before: addresses and hashes, to see whether the next root's row is the same again.
struct seen {
    int32_t *path;       // tokens after that round's root, [count][stride]
    size_t *depth;       // [count]
    uint8_t (*digest)[HM_SHA256_BYTES]; // of each candidate's row [count]
    size_t count, stride, root_length;
};

struct hm_record {
    struct hm_recording_writer *writer;
    size_t vocab, top_k;
    struct hm_rational probability, top_p;
    bool has_top_p, greedy;
    struct hm_kept_rows kept;
    struct seen seen;
    float *preceding;    // the row that gave the newest token [vocab]
    bool has_preceding;
    // The round at hand, written when its outcome is known.
    bool pending;
    struct hm_recording_round round;
    int32_t *token, *parent, *argmax;
    float *logq;
    double *p, *cached_p, *preceding_p;
    struct hm_ival *ival;
    int32_t *sibling;    // tokens and indices of one parent's children [room]
    size_t *index;
    size_t room;
};

// ---- opening

hm_status hm_record_open(const char *path, const struct hm_record_options *o, struct hm_record **out, struct hm_error *err)
{
    struct hm_record *r = hm_calloc(1, sizeof *r);
    *out = NULL;
    if (!r) return hm_fail(err, HM_MEMORY, "out of memory for a recording");
    hm_rational_init(&r->probability);
    hm_rational_init(&r->top_p);
    r->vocab = r->kept.vocab = o->vocab;
    r->greedy = hm_rational_sign(o->temperature) == 0;
    hm_rational_set(&r->probability, r->greedy ? o->probability_temperature : o->temperature);
    r->top_k = r->greedy ? 0 : o->top_k;
    r->has_top_p = !r->greedy && o->top_p;
    if (r->has_top_p) hm_rational_set(&r->top_p, o->top_p);
    r->kept.most = (o->kept_bytes ? o->kept_bytes : KEPT_BYTES) / (o->vocab * sizeof(float));
    r->preceding = hm_calloc(o->vocab, sizeof *r->preceding);
    char *temperature = hm_rational_text(o->temperature), *probability = hm_rational_text(&r->probability);
    char *top_p = r->has_top_p ? hm_rational_text(&r->top_p) : strdup("");
    hm_status rc = HM_OK;
    if (!r->preceding || !temperature || !probability || !top_p) rc = hm_fail(err, HM_MEMORY, "out of memory for a recording");
    if (!rc) {
        struct hm_recording_header header = {
            .target = o->target, .drafter = o->drafter, .task = o->task, .temperature = temperature,
            .probability_temperature = probability, .top_p = top_p, .top_k = (uint32_t)r->top_k,
            .vocab = (uint32_t)o->vocab, .width = (uint32_t)o->width, .depth = (uint32_t)o->depth,
            .budget = (uint32_t)o->budget, .seed = o->seed};
        rc = hm_recording_create(path, &header, &r->writer, err);
    }
    free(temperature);
    free(probability);
    free(top_p);
    if (rc) hm_record_close(r, NULL);
    else *out = r;
    return rc;
}

static hm_status flush(struct hm_record *r, struct hm_error *err)
{
    if (!r->pending) return HM_OK;
    r->pending = false;
    return hm_recording_add_round(r->writer, &r->round, err);
}

hm_status hm_record_close(struct hm_record *r, struct hm_error *err)
{
    if (!r) return HM_OK;
    hm_status rc = r->writer ? flush(r, err) : HM_OK;
    hm_status closed = hm_recording_finish(r->writer, rc ? NULL : err);
    hm_kept_rows_clear(&r->kept);
    hm_rational_clear(&r->probability);
    hm_rational_clear(&r->top_p);
    free(r->seen.path);
    free(r->seen.depth);
    free(r->seen.digest);
    free(r->preceding);
    free(r->token);
    free(r->parent);
    free(r->argmax);
    free(r->logq);
    free(r->p);
    free(r->cached_p);
    free(r->preceding_p);
    free(r->ival);
    free(r->sibling);
    free(r->index);
    free(r);
    return rc ? rc : closed;
}

hm_status hm_record_sequence(struct hm_record *r, uint32_t sequence, const char *id, const char *category, uint32_t turn,
                             struct hm_error *err)
{
    hm_status rc = flush(r, err);
    hm_kept_rows_reset(&r->kept);
    r->seen.count = 0;
    r->has_preceding = false;
    struct hm_recording_sequence record = {.sequence = sequence, .turn = turn, .id = id, .category = category};
    return rc ? rc : hm_recording_add_sequence(r->writer, &record, err);
}

// ---- one pool

static hm_status make_room(struct hm_record *r, size_t count, struct hm_error *err)
{
    if (count < r->room) return HM_OK;
    size_t room = count + 1;
    const struct hm_array arrays[] = {{(void **)&r->token, sizeof *r->token}, {(void **)&r->parent, sizeof *r->parent},
                  {(void **)&r->argmax, sizeof *r->argmax}, {(void **)&r->logq, sizeof *r->logq},
                  {(void **)&r->p, sizeof *r->p}, {(void **)&r->cached_p, sizeof *r->cached_p},
                  {(void **)&r->preceding_p, sizeof *r->preceding_p}, {(void **)&r->ival, sizeof *r->ival},
                  {(void **)&r->sibling, sizeof *r->sibling}, {(void **)&r->index, sizeof *r->index},
                  {(void **)&r->seen.depth, sizeof *r->seen.depth}, {(void **)&r->seen.digest, sizeof *r->seen.digest}};
    if (!hm_grow_together(arrays, sizeof arrays / sizeof *arrays, room))
        return hm_fail(err, HM_MEMORY, "out of memory for a recorded pool of %zu candidates", count);
    r->room = room;
    return HM_OK;
}

// The likeliest token in the order of docs/theory.md §1.
static hm_status argmax(const float *row, size_t vocab, int32_t *out, struct hm_error *err)
{
    size_t best = 0;
    for (size_t i = 0; i < vocab; i++) {
        if (isnan(row[i])) return hm_fail(err, HM_RANGE, "logit %zu: expected a number, found NaN", i);
        if (row[i] > row[best]) best = i;
    }
    *out = (int32_t)best;
    return HM_OK;
}

// The middle of an enclosure of a number in [0, 1].
static double middle(struct hm_ival x)
{
    return fmin(1, fmax(0, x.lo + (x.hi - x.lo) / 2));
}

// p(token) for tokens of one row: midpoints of enclosures at the temperature and support of the draws.
static hm_status probabilities(struct hm_record *r, struct hm_row *row, const int32_t *token, size_t count, double *p,
                               struct hm_error *err)
{
    size_t support = hm_row_vocab(row);
    hm_status rc = HM_OK;
    if (r->top_k || r->has_top_p) rc = hm_row_support(row, r->top_k, r->has_top_p ? &r->top_p : NULL, &support, err);
    if (!rc) rc = hm_sampling_probability(row, support, token, count, r->ival, err);
    for (size_t i = 0; i < count && !rc; i++) p[i] = middle(r->ival[i]);
    return rc;
}

// Probabilities of the children of one candidate (-1: the root), if it has any.
static hm_status add_children(struct hm_record *r, const struct hm_pool_event *event, int32_t parent, struct hm_row *row,
                              struct hm_error *err)
{
    const struct hm_pool *pool = event->pool;
    size_t n = 0;
    double *p = r->cached_p; // not in use yet
    for (size_t i = (size_t)(parent + 1); i < pool->count; i++)
        if (pool->candidate[i].parent == parent) {
            r->sibling[n] = pool->candidate[i].token;
            r->index[n++] = i;
        }
    hm_status rc = probabilities(r, row, r->sibling, n, p, err);
    for (size_t i = 0; i < n && !rc; i++) r->p[r->index[i]] = p[i];
    return rc;
}

static hm_status add_candidates(struct hm_record *r, const struct hm_pool_event *event, struct hm_row *root,
                                struct hm_error *err)
{
    const struct hm_pool *pool = event->pool;
    hm_status rc = argmax(event->rows, r->vocab, &r->argmax[0], err);
    for (size_t i = 0; i < pool->count && !rc; i++) {
        const struct hm_candidate *c = &pool->candidate[i];
        r->token[i] = c->token;
        r->parent[i] = c->parent;
        r->logq[i] = c->logq;
        rc = argmax(event->rows + (i + 1) * r->vocab, r->vocab, &r->argmax[i + 1], err);
    }
    if (!rc) rc = add_children(r, event, -1, root, err);
    // Children of one parent stand together (decode/pool.h: each expansion adds all of one parent's).
    for (size_t i = 0; i < pool->count && !rc; i++) {
        int32_t parent = pool->candidate[i].parent;
        if (parent < 0 || (i > 0 && pool->candidate[i - 1].parent == parent)) continue;
        struct hm_row *row = NULL;
        rc = hm_row_open(event->rows + ((size_t)parent + 1) * r->vocab, r->vocab, &r->probability, &row, err);
        if (!rc) rc = add_children(r, event, parent, row, err);
        hm_row_close(row);
    }
    return rc;
}

// ---- rows at other addresses

static hm_status add_substitute(struct hm_record *r, const float *logits, enum hm_address_class address, uint32_t age,
                                struct hm_row *root, double *p, struct hm_substitute *out, struct hm_error *err)
{
    struct hm_row *row = NULL;
    struct hm_row_distance distance;
    *out = (struct hm_substitute){.address = address, .age = age, .p = p};
    size_t n = 0;
    for (size_t i = 0; i < r->round.count; i++)
        if (r->parent[i] < 0) r->sibling[n++] = r->token[i];
    hm_status rc = argmax(logits, r->vocab, &out->argmax, err);
    if (!rc) rc = hm_row_open(logits, r->vocab, &r->probability, &row, err);
    if (!rc) rc = probabilities(r, row, r->sibling, n, p, err);
    if (!rc) rc = hm_row_distance(root, row, &distance, err);
    if (!rc) out->tv = middle(distance.tv);
    hm_row_close(row);
    return rc;
}

static hm_status add_substitutes(struct hm_record *r, const struct hm_pool_event *event, struct hm_row *root,
                                 struct hm_error *err)
{
    bool same = false;
    hm_status rc = HM_OK;
    const struct hm_kept_row *kept = hm_kept_rows_find(&r->kept, event, &same);
    r->round.cached = r->round.preceding = (struct hm_substitute){.address = HM_ADDRESS_NONE};
    if (kept) {
        uint32_t age = event->round - kept->round;
        enum hm_address_class address = same ? HM_ADDRESS_SAME : age == 1 ? HM_ADDRESS_PREVIOUS : HM_ADDRESS_EARLIER;
        rc = add_substitute(r, kept->row, address, age, root, r->cached_p, &r->round.cached, err);
    }
    if (!rc && r->has_preceding)
        rc = add_substitute(r, r->preceding, HM_ADDRESS_PRECEDING, 1, root, r->preceding_p, &r->round.preceding, err);
    return rc;
}

// ---- one address, computed twice

static enum hm_matched compare(const struct seen *seen, const struct hm_pool_event *event, const uint8_t *digest)
{
    for (size_t i = 0; i < seen->count; i++) {
        const int32_t *path = seen->path + i * seen->stride;
        if (seen->root_length + seen->depth[i] != event->length) continue;
        if (memcmp(path, event->context + seen->root_length, seen->depth[i] * sizeof *path) != 0) continue;
        return memcmp(seen->digest[i], digest, HM_SHA256_BYTES) == 0 ? HM_MATCHED_EQUAL : HM_MATCHED_DIFFERENT;
    }
    return HM_MATCHED_ABSENT;
}

// Compares the root's row with the round before, and remembers this round's rows.
static hm_status match_rows(struct hm_record *r, const struct hm_pool_event *event, struct hm_error *err)
{
    struct seen *seen = &r->seen;
    const struct hm_pool *pool = event->pool;
    size_t row_bytes = r->vocab * sizeof *event->rows, cells, stride = 0;
    uint8_t digest[HM_SHA256_BYTES];
    hm_status rc = hm_sha256(event->rows, row_bytes, digest, err);
    if (rc) return rc;
    r->round.matched = compare(seen, event, digest);
    for (size_t i = 0; i < pool->count; i++)
        if (pool->candidate[i].depth > stride) stride = pool->candidate[i].depth;
    int32_t *path = hm_mul_size(pool->count, stride, &cells) ? hm_calloc(cells, sizeof *path) : NULL;
    if (!path) return hm_fail(err, HM_MEMORY, "out of memory for the addresses of a pool");
    free(seen->path);
    *seen = (struct seen){.path = path, .depth = seen->depth, .digest = seen->digest, .stride = stride,
                          .root_length = event->length};
    for (size_t i = 0; i < pool->count && !rc; i++) {
        const struct hm_candidate *all = pool->candidate;
        seen->depth[i] = all[i].depth;
        for (int32_t j = (int32_t)i; j >= 0; j = all[j].parent) path[i * stride + all[j].depth - 1] = all[j].token;
        rc = hm_sha256(event->rows + (i + 1) * r->vocab, row_bytes, seen->digest[i], err);
    }
    if (!rc) seen->count = pool->count;
    return rc;
}

// ---- events

hm_status hm_record_pool(void *user, const struct hm_pool_event *event, struct hm_error *err)
{
    struct hm_record *r = user;
    struct hm_row *root = NULL;
    hm_status rc = flush(r, err);
    if (!rc) rc = make_room(r, event->pool->count, err);
    if (rc) return rc;
    r->round = (struct hm_recording_round){
        .sequence = event->sequence, .round = event->round, .t = event->t, .length = (uint32_t)event->length,
        .root = event->context[event->length - 1], .accepted = -1, .count = event->pool->count,
        .token = r->token, .parent = r->parent, .logq = r->logq, .p = r->p, .argmax = r->argmax};
    for (size_t i = 0; i < event->pool->count; i++) r->round.first_level += event->pool->candidate[i].parent < 0;
    rc = hm_row_open(event->rows, r->vocab, &r->probability, &root, err);
    if (!rc) rc = add_candidates(r, event, root, err);
    if (!rc) rc = add_substitutes(r, event, root, err);
    if (!rc) rc = match_rows(r, event, err);
    if (!rc) rc = hm_kept_rows_add(&r->kept, event, err);
    hm_row_close(root);
    char where[64];
    snprintf(where, sizeof where, "sequence %u, round %u", event->sequence, event->round);
    if (rc) hm_fail_prefix(err, where);
    else r->pending = true;
    return rc;
}

hm_status hm_record_round(void *user, const struct hm_round_event *event, struct hm_error *err)
{
    struct hm_record *r = user;
    if (r->pending && r->round.round == event->round) r->round.accepted = (int32_t)event->accepted;
    return flush(r, err);
}

hm_status hm_record_step(void *user, const struct hm_step_event *event, struct hm_error *err)
{
    struct hm_record *r = user;
    (void)err;
    memcpy(r->preceding, event->target_row, r->vocab * sizeof *r->preceding);
    r->has_preceding = true;
    return HM_OK;
}

void hm_record_task(const char *path, char *out, size_t size)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    const char *dot = strrchr(name, '.');
    snprintf(out, size, "%.*s", dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
}
