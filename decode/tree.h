// The draft tree of one round: the pool's nodes that the target verifies.
//
// Node 0 is the root, the newest committed token; parents precede children, siblings carry distinct tokens and stand in
// the draft's order of preference.
#ifndef HM_DECODE_TREE_H
#define HM_DECODE_TREE_H

#include "base/error.h"
#include "decode/pool.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hm_tree {
    size_t nodes;          // root included
    size_t capacity;       // room in each array, root included
    int32_t *parent;       // node index, -1 for the root
    int32_t *token;
    float *logq;           // draft log-probability given the parent, 0 for the root
    uint32_t *depth;       // 0 for the root
    int32_t *row;          // draft row in the pool after this node, -1: none
    size_t *order;         // scratch for selection [capacity]
};

hm_status hm_tree_init(struct hm_tree *tree, size_t budget, struct hm_error *err); // room for the root and budget nodes
void hm_tree_clear(struct hm_tree *tree);

// Selection `draft`: the root and the `budget` best candidates of the pool, numbered in pool order.
void hm_tree_select(struct hm_tree *tree, int32_t root, const struct hm_pool *pool);

// The child of `node` that carries `token`, or -1.
int64_t hm_tree_child(const struct hm_tree *tree, size_t node, int32_t token);

// Depth of the deepest node; 0 for a root alone.
size_t hm_tree_depth(const struct hm_tree *tree);

// Tokens of the children of `node`, in node order, into token[nodes]; returns how many.
size_t hm_tree_children(const struct hm_tree *tree, size_t node, int32_t *token);

#ifdef __cplusplus
}
#endif

#endif
