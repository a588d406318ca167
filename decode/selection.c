// Which candidates of a pool become the tree: see tree.h and docs/decoders.md, "Selection" and "Coverage".
//
// Every candidate gets a key, candidates are ranked by it, places are given out (tree->place), and the tree is written in
// pool order. No key exceeds its parent's, so what ranks first is closed under parents.
#include "decode/tree.h"

#include "base/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

struct hm_ranked {
    double key;
    size_t candidate;
};

enum place { OUTSIDE = -1, VERIFIED = -2, SCORED = -3 }; // in tree->place until the node's number stands there

static int by_rank(const void *a, const void *b)
{
    const struct hm_ranked *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return (x->candidate > y->candidate) - (x->candidate < y->candidate);
}

// Candidates whose score is finite, in the order of the keys given by `of` (NULL: of their scores); returns how many.
static size_t rank(struct hm_tree *tree, const struct hm_pool *pool, const double *of)
{
    size_t count = 0;
    for (size_t c = 0; c < pool->count; c++) {
        double key = of ? of[c] : pool->candidate[c].score;
        if (isfinite(key)) tree->ranked[count++] = (struct hm_ranked){key, c};
    }
    if (count) qsort(tree->ranked, count, sizeof *tree->ranked, by_rank);
    return count;
}

// The candidate of level 1 that carries the token; -1: there is none.
static int64_t first_level(const struct hm_pool *pool, int32_t token)
{
    for (size_t c = 0; c < pool->count; c++)
        if (pool->candidate[c].parent < 0 && pool->candidate[c].token == token) return (int64_t)c;
    return -1;
}

// Keys: -inf where the selection rules the candidate out. Along a path they are sums in path order, so that rounding
// cannot lift a child above its parent.
static void make_keys(struct hm_tree *tree, const struct hm_pool *pool, const struct hm_selection_request *request,
                      int64_t drawn)
{
    for (size_t c = 0; c < pool->count; c++) {
        const struct hm_candidate *x = &pool->candidate[c];
        double parent = x->parent < 0 ? 0 : tree->key[x->parent];
        switch (request->how) {
        case HM_SELECT_DRAFT: tree->key[c] = x->score; break;
        case HM_SELECT_ROOT: tree->key[c] = x->parent < 0 ? request->first_logp[c] : parent + (double)x->logq; break;
        case HM_SELECT_ROOT_DRAW:
        case HM_SELECT_PEARL:
            tree->key[c] = x->parent < 0 ? ((int64_t)c == drawn ? x->score : -INFINITY) : parent + (double)x->logq;
            break;
        }
        if (!isfinite(x->score) || isnan(tree->key[c])) tree->key[c] = -INFINITY;
    }
}

// Gives the verified nodes their places.
static void choose(struct hm_tree *tree, const struct hm_pool *pool, const struct hm_selection_request *request,
                   int64_t drawn)
{
    if (pool->options.proposal == HM_PROPOSAL_IID) {
        for (size_t c = 0; c < pool->count && c < request->budget; c++) tree->place[c] = VERIFIED;
        return;
    }
    size_t count = rank(tree, pool, request->how == HM_SELECT_PEARL ? NULL : tree->key);
    for (size_t i = 0; i < count && i < request->budget; i++)
        if (isfinite(tree->key[tree->ranked[i].candidate])) tree->place[tree->ranked[i].candidate] = VERIFIED;
    // Where the drawn token is not among the best, nothing below it is: it takes the place of one of them.
    if (drawn >= 0) tree->place[drawn] = VERIFIED;
}

// Gives the nodes that are only scored their places, in the draft's order; `verified`: how many are.
static void choose_scored(struct hm_tree *tree, const struct hm_pool *pool, const struct hm_selection_request *request,
                          size_t verified)
{
    if (pool->options.proposal == HM_PROPOSAL_IID || (!request->score_top && !request->score_frontier)) return;
    size_t count = rank(tree, pool, NULL), top = request->score_top, frontier = request->score_frontier;
    top = top > verified ? top - verified : 0;
    size_t room = HM_TREE_NODES_MOST > 2 + verified ? HM_TREE_NODES_MOST - 2 - verified : 0; // root, a drawn token
    for (size_t i = 0; i < count && room; i++) {
        size_t c = tree->ranked[i].candidate;
        int32_t parent = pool->candidate[c].parent;
        if (tree->place[c] != OUTSIDE || !isfinite(tree->key[c])) continue;
        if (top) top--;
        else if (frontier && (parent < 0 || tree->place[parent] == VERIFIED)) frontier--;
        else continue;
        tree->place[c] = SCORED;
        room--;
    }
}

// Room for `nodes` nodes in every array.
static hm_status grow(struct hm_tree *tree, size_t nodes, struct hm_error *err)
{
    if (nodes <= tree->capacity) return HM_OK;
    struct hm_tree larger;
    hm_status rc = hm_tree_init(&larger, nodes - 1, err);
    if (rc) return rc;
    larger.ranked = tree->ranked;
    larger.key = tree->key;
    larger.place = tree->place;
    larger.scratch = tree->scratch;
    tree->ranked = NULL;
    tree->key = NULL;
    tree->place = NULL;
    hm_tree_clear(tree);
    *tree = larger;
    return HM_OK;
}

static hm_status make_scratch(struct hm_tree *tree, size_t candidates, struct hm_error *err)
{
    void *ranked = tree->ranked, *key = tree->key, *place = tree->place;
    size_t a = tree->scratch, b = a, c = a;
    bool room = hm_grow(&ranked, &a, candidates, sizeof *tree->ranked);
    tree->ranked = ranked;
    room = room && hm_grow(&key, &b, candidates, sizeof *tree->key);
    tree->key = key;
    room = room && hm_grow(&place, &c, candidates, sizeof *tree->place);
    tree->place = place;
    if (!room) return hm_fail(err, HM_MEMORY, "out of memory for a choice among %zu candidates", candidates);
    tree->scratch = a;
    return HM_OK;
}

// Writes the candidates with this place behind the nodes, in pool order.
static void append(struct hm_tree *tree, const struct hm_pool *pool, enum place place)
{
    for (size_t i = 0; i < pool->count; i++) {
        const struct hm_candidate *c = &pool->candidate[i];
        if (tree->place[i] != (int32_t)place) continue;
        size_t node = tree->nodes++;
        tree->place[i] = (int32_t)node;
        tree->parent[node] = c->parent < 0 ? 0 : tree->place[c->parent];
        tree->token[node] = c->token;
        tree->logq[node] = c->logq;
        tree->depth[node] = c->depth;
        tree->row[node] = c->row;
        tree->candidate[node] = (int32_t)i;
        tree->scored += place == SCORED;
    }
}

static void append_alone(struct hm_tree *tree, int32_t parent, int32_t token, float logq, int32_t row)
{
    size_t node = tree->nodes++;
    tree->parent[node] = parent;
    tree->token[node] = token;
    tree->logq[node] = logq;
    tree->depth[node] = parent < 0 ? 0 : 1;
    tree->row[node] = row;
    tree->candidate[node] = -1;
}

hm_status hm_tree_select(struct hm_tree *tree, int32_t root, const struct hm_pool *pool,
                         const struct hm_selection_request *request, struct hm_error *err)
{
    bool is_drawn = request->how == HM_SELECT_ROOT_DRAW || request->how == HM_SELECT_PEARL;
    if (is_drawn && request->budget == 0)
        return hm_fail(err, HM_USAGE, "selection of a drawn token: expected a budget of at least 1, found 0");
    hm_status rc = make_scratch(tree, pool->count, err);
    if (rc) return rc;
    int64_t drawn = is_drawn ? first_level(pool, request->drawn) : -1;
    size_t verified = 0, scored = 0;
    for (size_t c = 0; c < pool->count; c++) tree->place[c] = OUTSIDE;
    make_keys(tree, pool, request, drawn);
    choose(tree, pool, request, drawn);
    for (size_t c = 0; c < pool->count; c++) verified += tree->place[c] == VERIFIED;
    choose_scored(tree, pool, request, verified);
    for (size_t c = 0; c < pool->count; c++) scored += tree->place[c] == SCORED;
    rc = grow(tree, 2 + verified + scored, err);
    if (rc) return rc;

    tree->nodes = tree->scored = 0;
    append_alone(tree, -1, root, 0, pool->row_count ? 0 : -1);
    if (is_drawn && drawn < 0) append_alone(tree, 0, request->drawn, -INFINITY, -1);
    append(tree, pool, VERIFIED);
    append(tree, pool, SCORED);
    return HM_OK;
}
