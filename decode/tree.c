// The draft tree of one round: see tree.h.
#include "decode/tree.h"

#include "base/memory.h"

#include <stdlib.h>

hm_status hm_tree_init(struct hm_tree *tree, size_t budget, struct hm_error *err)
{
    *tree = (struct hm_tree){.capacity = budget + 1};
    size_t n = tree->capacity;
    tree->parent = hm_calloc(n, sizeof *tree->parent);
    tree->token = hm_calloc(n, sizeof *tree->token);
    tree->logq = hm_calloc(n, sizeof *tree->logq);
    tree->depth = hm_calloc(n, sizeof *tree->depth);
    tree->row = hm_calloc(n, sizeof *tree->row);
    tree->candidate = hm_calloc(n, sizeof *tree->candidate);
    tree->order = hm_calloc(n, sizeof *tree->order);
    if (tree->parent && tree->token && tree->logq && tree->depth && tree->row && tree->candidate && tree->order) return HM_OK;
    hm_tree_clear(tree);
    return hm_fail(err, HM_MEMORY, "out of memory for a draft tree of %zu nodes", n);
}

void hm_tree_clear(struct hm_tree *tree)
{
    free(tree->parent);
    free(tree->token);
    free(tree->logq);
    free(tree->depth);
    free(tree->row);
    free(tree->candidate);
    free(tree->order);
    *tree = (struct hm_tree){0};
}

static int ascending(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

// Node of the candidate with this pool index among the first `kept` of order, which ascend.
static int32_t node_of(const struct hm_tree *tree, size_t kept, int32_t candidate)
{
    size_t low = 0, high = kept;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (tree->order[middle] < (size_t)candidate) low = middle + 1;
        else high = middle;
    }
    return (int32_t)low + 1;
}

hm_status hm_tree_select(struct hm_tree *tree, int32_t root, const struct hm_pool *pool,
                         const struct hm_selection_request *request, struct hm_error *err)
{
    if (request->how != HM_SELECT_DRAFT) return hm_fail(err, HM_UNSUPPORTED, "selection: expected draft");
    tree->nodes = 1;
    tree->scored = 0;
    tree->candidate[0] = -1;
    tree->parent[0] = -1;
    tree->token[0] = root;
    tree->logq[0] = 0;
    tree->depth[0] = 0;
    tree->row[0] = pool->row_count ? 0 : -1;
    size_t most = request->budget < tree->capacity - 1 ? request->budget : tree->capacity - 1;
    size_t kept = hm_pool_best(pool, most, tree->order);
    qsort(tree->order, kept, sizeof *tree->order, ascending);
    for (size_t i = 0; i < kept; i++) {
        const struct hm_candidate *c = &pool->candidate[tree->order[i]];
        size_t node = tree->nodes++;
        tree->parent[node] = c->parent < 0 ? 0 : node_of(tree, kept, c->parent);
        tree->token[node] = c->token;
        tree->logq[node] = c->logq;
        tree->depth[node] = c->depth;
        tree->row[node] = c->row;
        tree->candidate[node] = (int32_t)tree->order[i];
    }
    return HM_OK;
}

int64_t hm_tree_child(const struct hm_tree *tree, size_t node, int32_t token)
{
    for (size_t i = node + 1; i < tree->nodes; i++)
        if (tree->parent[i] == (int32_t)node && tree->token[i] == token) return (int64_t)i;
    return -1;
}

size_t hm_tree_depth(const struct hm_tree *tree)
{
    size_t deepest = 0;
    for (size_t i = 1; i < tree->nodes; i++)
        if (tree->depth[i] > deepest) deepest = tree->depth[i];
    return deepest;
}

size_t hm_tree_children(const struct hm_tree *tree, size_t node, int32_t *token)
{
    size_t count = 0;
    for (size_t i = node + 1; i < tree->nodes; i++)
        if (tree->parent[i] == (int32_t)node) token[count++] = tree->token[i];
    return count;
}
