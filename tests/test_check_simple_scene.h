// A small simulated decoder that writes certificate logs without claims, from the closed forms of docs/log.md in long
// double, and on request tells one lie: everything else in the log stays as if the lie were true.
#ifndef HM_TESTS_TEST_CHECK_SIMPLE_SCENE_H
#define HM_TESTS_TEST_CHECK_SIMPLE_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "certify/philox.h"

enum lie {
    NO_LIE,
    LIE_COIN,        // a coin turned round
    LIE_SURE,        // a child in A rejected
    LIE_SKIP,        // the child that is taken not looked at
    LIE_RESIDUAL,    // another token than the residual draw
    LIE_DRAW,        // another token than the draw
    LIE_PROPOSAL,    // a child that is not the draft's draw
    LIE_OVERSPENT,   // relaxed although the budget forbids it
    LIE_NOT_RELAXED, // not relaxed although the budget allows it
    LIE_CHARGE,      // half of what it is
    LIE_SPENT,       // less than was charged
    LIE_E,           // zero
    LIE_RATIO,       // a little more than it is
    LIE_ACCEPT,      // likewise
    LIE_STANDARD,    // likewise, accept_standard
    LIE_EXCESS,      // likewise, nucleus_excess
    LIE_FIRST,       // not the token that was drawn
    LIE_SCORED,      // a node only scored accepted
    LIE_LEAF,        // accepted where leaf-stop stops
    LIE_EXPECTED,    // one accepted token more
    LIES
};

struct scene {
    const char *acceptance; // "match", "standard", "nucleus:7/10", or a rule additive:X/10
    int share;              // tenths: P of nucleus, eps of additive
    bool iid, sampled;      // sampled: temperature 3/2, else 0
    const char *selection, *traversal;
    int cap, scored;    // cap < 0: none
    const char *budget; // NULL, "tv", "regret"
    uint64_t limit;     // in units of 2^-60
};

struct told {
    size_t line;          // where the lie stands; 0: there was no occasion
    uint64_t first_spent; // of the first charge that was spent, in units of 2^-60, if it is a multiple of that; else 0
    size_t steps, relaxed, taken[4]; // taken: accepted surely, by a coin, after a rejection; residual draws
};

// How it is made.
enum { VOCAB = 8, NODES = 32, STEPS = 8, WIDTH = 3, DEPTH = 3, TREE_BUDGET = 12, ROWS = 512 };
typedef long double num;

struct law { // of a node's token
    num e, excess, accept, standard, o[VOCAB], left[VOCAB];
    int k, order[VOCAB], rank[VOCAB];
};

struct maker {
    const struct scene *scene;
    enum lie lie;
    int nth;
    struct told *told;
    uint64_t random, seed;
    bool bad; // a value too near 0
    float rows[2][ROWS][VOCAB];
    int count[2];
    FILE *file;
    size_t lines;
    char chain[65];
    // a round's tree
    int nodes, verified, parent[NODES], token[NODES], depth[NODES], row[NODES], draft[NODES]; // rows; draft -1: a leaf
    num p[NODES][VOCAB], q[NODES][VOCAB];
    int t, round, last, first; // first: -1, or drawn before the tree was chosen
    double spent;
};

bool lies(struct maker *m, enum lie lie);                                      // is this the occasion?
num uniform(const struct maker *m, int t, enum hm_purpose purpose, int child); // in [0, 1)
int draw(const num *p, num u); // the least id whose mass with those below is more than the share u
void order_of(const num *p, int *order, int *rank);
int children_of(const struct maker *m, int node, int *child);
int add_node(struct maker *m, int parent, int token); // with rows
void make_tree(struct maker *m);
struct law law_of(const struct maker *m, int node, const int *child, int count);

// Writes folder/scene.jsonl and its rows. The lie is told at the occasion number `nth`. False: this seed leaves a value
// too near zero to be written from long double.
bool scene_write(const char *folder, const struct scene *scene, uint64_t seed, enum lie lie, int nth,
                 struct told *told);

#endif
