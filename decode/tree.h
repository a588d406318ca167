// The draft tree of one round: the pool's nodes that the target verifies.
//
// Node 0 is the root, the newest committed token; parents precede children, siblings stand in the draft's order of
// preference and carry distinct tokens, except where the pool holds draws (IID), which may repeat.
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
    size_t scored;         // of these, the last so many are only scored: nobody's children (docs/decoders.md)
    size_t capacity;       // room in each array, root included
    int32_t *parent;       // node index, -1 for the root
    int32_t *token;
    float *logq;           // draft log-probability given the parent, 0 for the root
    uint32_t *depth;       // 0 for the root
    int32_t *row;          // draft row in the pool after this node, -1: none
    int32_t *candidate;    // index in the pool, -1: the root, or a drawn token that the pool lacks
    // Scratch of selection, one entry for each candidate of the pool.
    struct hm_ranked *ranked;
    double *key;
    int32_t *place;
    size_t scratch;        // candidates there is room for
};

hm_status hm_tree_init(struct hm_tree *tree, size_t nodes, struct hm_error *err); // room for the root and `nodes` more
void hm_tree_clear(struct hm_tree *tree);

enum { HM_TREE_NODES_MOST = 1 << 14 }; // of a round in a log (docs/log.md); scoring stops there

// Which candidates are verified (docs/decoders.md, "Selection").
enum hm_selection { HM_SELECT_DRAFT, HM_SELECT_ROOT, HM_SELECT_ROOT_DRAW, HM_SELECT_PEARL };
struct hm_selection_request {
    enum hm_selection how;
    size_t budget;           // most nodes besides the root and those only scored
    const double *first_logp; // ROOT: ln of the target's probability of each candidate of level 1 [their count], -inf for 0
    int32_t drawn;           // ROOT_DRAW, PEARL: the token drawn from the root's row
    size_t score_top, score_frontier; // 0: off
};

// Chooses the tree: the root, the chosen candidates in pool order, then those only scored in pool order. It grows as needed.
// Candidates are compared by key (descending), then by index: a total order, and since no key exceeds its parent's, every
// prefix of it is closed under parents. The key is the pool's score, with the target's own factor first under ROOT; a
// candidate whose score or factor is 0 is neither chosen nor scored. ROOT_DRAW and PEARL want a budget of at least 1: node 1
// carries the drawn token even where the pool lacks it, and is then the only one. A pool of draws (IID) gives its first
// `budget` candidates, whatever they score: the tree's shape must not depend on what was drawn.
hm_status hm_tree_select(struct hm_tree *tree, int32_t root, const struct hm_pool *pool,
                         const struct hm_selection_request *request, struct hm_error *err);

// The node whose address is that of `node` and `token`, verified or only scored, the first of several; -1: there is none.
int64_t hm_tree_address(const struct hm_tree *tree, size_t node, int32_t token);

// The child at place `index` among the children of `node` (hm_tree_children); -1: it has fewer.
int64_t hm_tree_child_at(const struct hm_tree *tree, size_t node, size_t index);

// Depth of the deepest verified node; 0 for a root alone.
size_t hm_tree_depth(const struct hm_tree *tree);

// Tokens of the children of `node`, in node order, into token[nodes]; returns how many.
size_t hm_tree_children(const struct hm_tree *tree, size_t node, int32_t *token);

#ifdef __cplusplus
}
#endif

#endif
