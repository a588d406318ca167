// What the parts of the synthetic decode share: its rows and trees (test_stamp_tree.c), its walk
// (test_stamp_fixture.c).
#ifndef HM_TEST_STAMP_TREE_H
#define HM_TEST_STAMP_TREE_H

#include "decode/accept.h"
#include "tests/test_stamp_fixture.h"

struct tree {
    size_t nodes, scored; // the last `scored` nodes are only scored
    int32_t first;        // drawn before the tree was chosen, carried by node 1; -1: none
    int32_t parent[FIXTURE_NODES], token[FIXTURE_NODES];
    size_t depth[FIXTURE_NODES];
    float logq[FIXTURE_NODES];
    uint64_t context[FIXTURE_NODES];
};

struct run {
    const struct decode *decode;
    struct hm_stamper *stamper;
    struct hm_rational temperature, certify_temperature, top_p;
    struct hm_rule rules[4], acceptance;
    struct hm_divergence divergences[4];
    size_t divergence_count;
    size_t rule_count;
    uint32_t sequence, t, round;
    uint64_t seed, context; // of the sequence; of the tokens so far
    int32_t last;           // newest token
    size_t steps;           // over all sequences
    bool finished, abandoned;
    bool covered; // the newest context is that of a node of the last round
    enum hm_acceptance_kind kind;
    struct hm_budget budget;
    float target[FIXTURE_VOCAB], draft[FIXTURE_VOCAB];
};

uint64_t fixture_mix(uint64_t x);

// r->target and r->draft of a context, and the context that a token leads to.
void fixture_rows(struct run *r, uint64_t context);
uint64_t fixture_follow(uint64_t context, int32_t token);

// The tree of a round.
void fixture_grow(struct run *r, struct tree *tree);

// A node's children: their number, nodes and tokens (both may be NULL).
size_t fixture_children(const struct tree *tree, size_t node, int32_t *index, int32_t *token);

// The draw of docs/log.md at output position t from r->target.
int32_t fixture_draw(struct run *r, uint32_t t, size_t *support);

#endif
