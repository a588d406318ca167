// The draft tree of one round: see tree.h. selection.c chooses its nodes.
#include "decode/tree.h"

#include "base/memory.h"

#include <stdlib.h>

hm_status hm_tree_init(struct hm_tree *tree, size_t nodes, struct hm_error *err)
{
    *tree = (struct hm_tree){0};
    size_t n;
    if (!hm_add_size(nodes, 1, &n)) return hm_fail(err, HM_MEMORY, "out of memory for a draft tree of %zu nodes", nodes);
    tree->parent = hm_calloc(n, sizeof *tree->parent);
    tree->token = hm_calloc(n, sizeof *tree->token);
    tree->logq = hm_calloc(n, sizeof *tree->logq);
    tree->depth = hm_calloc(n, sizeof *tree->depth);
    tree->row = hm_calloc(n, sizeof *tree->row);
    tree->candidate = hm_calloc(n, sizeof *tree->candidate);
    tree->capacity = n;
    if (tree->parent && tree->token && tree->logq && tree->depth && tree->row && tree->candidate) return HM_OK;
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
    free(tree->ranked);
    free(tree->key);
    free(tree->place);
    *tree = (struct hm_tree){0};
}

static size_t verified(const struct hm_tree *tree)
{
    return tree->nodes - tree->scored;
}

int64_t hm_tree_address(const struct hm_tree *tree, size_t node, int32_t token)
{
    for (size_t i = node + 1; i < tree->nodes; i++)
        if (tree->parent[i] == (int32_t)node && tree->token[i] == token) return (int64_t)i;
    return -1;
}

int64_t hm_tree_child_at(const struct hm_tree *tree, size_t node, size_t index)
{
    for (size_t i = node + 1; i < verified(tree); i++)
        if (tree->parent[i] == (int32_t)node && index-- == 0) return (int64_t)i;
    return -1;
}

size_t hm_tree_depth(const struct hm_tree *tree)
{
    size_t deepest = 0;
    for (size_t i = 1; i < verified(tree); i++)
        if (tree->depth[i] > deepest) deepest = tree->depth[i];
    return deepest;
}

size_t hm_tree_children(const struct hm_tree *tree, size_t node, int32_t *token)
{
    size_t count = 0;
    for (size_t i = node + 1; i < verified(tree); i++)
        if (tree->parent[i] == (int32_t)node) token[count++] = tree->token[i];
    return count;
}
