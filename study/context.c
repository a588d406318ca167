// One recorded round: see context.h. What "better" means is asked of the pool itself (decode/pool.h), so the study
// orders candidates exactly as a decode does.
#include "study/context.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static hm_status make_room(struct hm_context *c, size_t count, struct hm_error *err)
{
    if (c->room > count) return HM_OK;
    size_t room = count + 1;
    const struct hm_array arrays[] = {{(void **)&c->depth, sizeof *c->depth}, {(void **)&c->first, sizeof *c->first},
                  {(void **)&c->factor, sizeof *c->factor}, {(void **)&c->reach, sizeof *c->reach},
                  {(void **)&c->draft, sizeof *c->draft}, {(void **)&c->root, sizeof *c->root},
                  {(void **)&c->oracle, sizeof *c->oracle}, {(void **)&c->order, sizeof *c->order},
                  {(void **)&c->substitute, sizeof *c->substitute}, {(void **)&c->proposed, sizeof *c->proposed},
                  {(void **)&c->children, sizeof *c->children}, {(void **)&c->pool.candidate, sizeof *c->pool.candidate}};
    if (!hm_grow_together(arrays, sizeof arrays / sizeof *arrays, room))
        return hm_fail(err, HM_MEMORY, "out of memory for a pool of %zu candidates", count);
    c->room = room;
    return HM_OK;
}

void hm_context_clear(struct hm_context *c)
{
    free(c->depth);
    free(c->first);
    free(c->factor);
    free(c->reach);
    free(c->draft);
    free(c->root);
    free(c->oracle);
    free(c->order);
    free(c->substitute);
    free(c->proposed);
    free(c->children);
    free(c->pool.candidate);
    *c = (struct hm_context){0};
}

hm_status hm_context_load(struct hm_context *c, const struct hm_recording_round *round, enum hm_choice choice,
                          struct hm_error *err)
{
    hm_status rc = make_room(c, round->count, err);
    if (rc) return rc;
    c->round = round;
    c->choice = choice;
    c->count = c->pool.count = round->count;
    for (size_t i = 0; i < round->count; i++) {
        int32_t parent = round->parent[i];
        c->depth[i] = parent < 0 ? 1 : c->depth[parent] + 1;
        c->first[i] = parent < 0 ? (uint32_t)i : c->first[parent];
        c->factor[i] = choice == HM_CHOICE_GREEDY ? round->argmax[parent + 1] == round->token[i] : round->p[i];
        c->proposed[i] = isfinite(round->logq[i]) && (parent < 0 || c->proposed[parent]);
        c->reach[i] = (parent < 0 ? 1.0 : c->reach[parent]) * c->factor[i];
        c->pool.candidate[i] = (struct hm_candidate){.token = round->token[i], .parent = parent, .row = -1,
                                                     .depth = c->depth[i], .logq = round->logq[i]};
    }
    c->draft_count = hm_context_order(c, 0, c->draft);
    c->root_count = hm_context_order(c, 1, c->root);
    c->oracle_count = hm_context_order(c, HM_EVERY_FACTOR, c->oracle);
    return HM_OK;
}

// ---- orders

// A candidate's score: its parent's, plus the logarithm of its own factor.
static void score(struct hm_context *c, size_t i, double step)
{
    struct hm_candidate *candidate = &c->pool.candidate[i];
    double parent = candidate->parent < 0 ? 0.0 : c->pool.candidate[candidate->parent].score;
    candidate->score = c->proposed[i] ? parent + step : -INFINITY;
}

size_t hm_context_order(struct hm_context *c, uint32_t exact, size_t *order)
{
    for (size_t i = 0; i < c->count; i++)
        score(c, i, c->depth[i] <= exact ? log(c->factor[i]) : (double)c->round->logq[i]);
    return hm_pool_best(&c->pool, c->count, order);
}

size_t hm_context_order_first(struct hm_context *c, const double *first, size_t *order)
{
    for (size_t i = 0; i < c->count; i++) score(c, i, c->depth[i] == 1 ? log(first[i]) : (double)c->round->logq[i]);
    return hm_pool_best(&c->pool, c->count, order);
}

const double *hm_context_first_factors(struct hm_context *c, const struct hm_substitute *row)
{
    size_t level = 0;
    if (row->address == HM_ADDRESS_NONE) return NULL;
    for (size_t i = 0; i < c->count; i++) {
        if (c->depth[i] != 1) continue;
        c->substitute[i] = c->choice == HM_CHOICE_GREEDY ? row->argmax == c->round->token[i] : row->p[level];
        level++;
    }
    return c->substitute;
}

double hm_context_expected(const struct hm_context *c, const size_t *order, size_t count, size_t budget)
{
    double sum = 0;
    for (size_t i = 0; i < count && i < budget; i++) sum += c->reach[order[i]];
    return sum;
}

void hm_context_curve(const struct hm_context *c, const size_t *order, size_t count, double *curve, size_t length)
{
    double sum = 0;
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && i <= count) sum += c->reach[order[i - 1]];
        curve[i] = sum;
    }
}

// y1 counts as accepted and is verified whether or not the preselection holds it.
void hm_context_pearl(const struct hm_context *c, double *expected, double *size, size_t length)
{
    double accepted = 1, verified = 1;
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && i <= c->draft_count && c->depth[c->draft[i - 1]] > 1) {
            accepted += c->reach[c->draft[i - 1]];
            verified += c->factor[c->first[c->draft[i - 1]]];
        }
        expected[i] = accepted;
        size[i] = verified;
    }
}

// ---- the draft tree

// children[i]: how many children candidate i has in the tree of the first `budget` candidates; UINT32_MAX outside.
static size_t mark_tree(struct hm_context *c, size_t budget)
{
    size_t size = c->draft_count < budget ? c->draft_count : budget;
    memset(c->children, 0xff, c->count * sizeof *c->children);
    for (size_t i = 0; i < size; i++) {
        int32_t parent = c->round->parent[c->draft[i]]; // comes earlier in the order: its count has begun
        c->children[c->draft[i]] = 0;
        if (parent >= 0) c->children[parent]++;
    }
    return size;
}

struct hm_traversal_figures hm_context_traverse(struct hm_context *c, size_t budget)
{
    struct hm_traversal_figures f = {0};
    size_t size = mark_tree(c, budget);
    for (size_t i = 0; i < size; i++) {
        size_t node = c->draft[i];
        f.expected += c->reach[node];
        if (c->depth[node] == 1) f.one += c->reach[node];
        if (c->depth[node] == 2) f.two += c->reach[node];
        if (c->children[node] == 0) f.leaf += c->reach[node];
    }
    return f;
}

double hm_context_covered(struct hm_context *c, size_t budget, size_t top, size_t frontier)
{
    double covered = 0;
    size_t size = mark_tree(c, budget), taken = 0;
    for (size_t i = size; i < c->draft_count; i++) {
        if (top ? i >= top : taken >= frontier) break;
        int32_t parent = c->round->parent[c->draft[i]];
        if (parent >= 0 && c->children[parent] == UINT32_MAX) continue; // no walk through the tree ends at its parent
        covered += c->reach[c->draft[i]];
        taken++;
    }
    return covered;
}

struct hm_draw_figures hm_context_root_draw(struct hm_context *c, size_t budget)
{
    struct hm_draw_figures f = {.expected = 1, .size = 1}; // y1 itself, in the pool or not
    memset(c->children, 0, c->count * sizeof *c->children);  // here: nodes taken in each subtree besides its y1
    for (size_t i = 0; i < c->draft_count; i++) {
        size_t node = c->draft[i], first = c->first[node];
        if (node == first || c->children[first] + 1 >= budget) continue;
        c->children[first]++;
        f.expected += c->reach[node];
        f.size += c->factor[first];
    }
    return f;
}
