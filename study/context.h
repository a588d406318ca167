// One recorded round as the study sees it: how likely the target's own walk is to reach each candidate, and in which
// order a rule takes the candidates (docs/theory.md §7, docs/study.md).
//
// Every rule takes a prefix of an order, so what it gains at every budget is a running sum.
#ifndef HM_STUDY_CONTEXT_H
#define HM_STUDY_CONTEXT_H

#include "decode/pool.h"
#include "study/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

// How the target chooses: by its recorded probabilities, or its likeliest token (factors 0 and 1).
enum hm_choice { HM_CHOICE_DRAWN, HM_CHOICE_GREEDY };

struct hm_context {
    const struct hm_recording_round *round; // borrowed
    enum hm_choice choice;
    size_t count, room;
    uint32_t *depth;       // 1 for children of the root [count]
    uint32_t *first;       // the ancestor at depth 1, or the candidate itself [count]
    double *factor;        // target's probability given the parent [count]
    double *reach;         // product of the factors from the root: P(accepted) in any tree that holds it [count]
    size_t *draft, *root, *oracle; // candidates in the order of these rules, those without a finite score left out
    size_t draft_count, root_count, oracle_count;
    bool *proposed;        // has the draft given every token of its path some probability? No tree holds the others [count]
    double *substitute;    // scratch for first factors [count]
    struct hm_pool pool;   // candidates with the scores of the order last asked for
    size_t *order;         // scratch for one more order [count]
    uint32_t *children;    // scratch [count]
};

enum { HM_EVERY_FACTOR = 1 << 30 };

// Takes a round, which must outlive the use; a context may be loaded again and again.
hm_status hm_context_load(struct hm_context *context, const struct hm_recording_round *round, enum hm_choice choice,
                          struct hm_error *err);
void hm_context_clear(struct hm_context *context);

// Writes the candidates in the order of a rule that takes the first `exact` factors from the target and the others from
// the draft (0: draft, 1: root, HM_EVERY_FACTOR: oracle); returns how many have a finite score.
size_t hm_context_order(struct hm_context *context, uint32_t exact, size_t *order);

// Likewise with the first factors of another row: first[i] for candidate i of level 1 (elsewhere unused).
size_t hm_context_order_first(struct hm_context *context, const double *first, size_t *order);

// First factors that a substitute row gives, by candidate; NULL where there is no such row. Good until the next call.
const double *hm_context_first_factors(struct hm_context *context, const struct hm_substitute *row);

// E[A] of the first `budget` candidates of an order under exhaustive traversal.
double hm_context_expected(const struct hm_context *context, const size_t *order, size_t count, size_t budget);

// The same at every budget: curve[i] = E[A] of the first i candidates, i < length.
void hm_context_curve(const struct hm_context *context, const size_t *order, size_t count, double *curve, size_t length);

// Pearl at every cap: E[A] and the mean number of verified nodes, y1 included, of a preselection of i candidates.
void hm_context_pearl(const struct hm_context *context, double *expected, double *size, size_t length);

// What a traversal of the draft tree with this budget gives.
struct hm_traversal_figures {
    double expected;    // E[L_T]: exhaustive E[A]
    double one, two;    // Pr(L_T >= 1), Pr(L_T >= 2)
    double leaf;        // probability that the exhaustive path ends in a leaf of the tree
};
struct hm_traversal_figures hm_context_traverse(struct hm_context *context, size_t budget);

// Pr(C) of exhaustive traversal of the draft tree when the candidates up to rank `top` are scored too, or the first
// `frontier` candidates outside the tree whose parents are in it (the other is 0).
double hm_context_covered(struct hm_context *context, size_t budget, size_t top, size_t frontier);

// Root-draw: E[A] over the union of the trees T(y1), and the mean number of verified nodes, y1 included.
struct hm_draw_figures {
    double expected, size;
};
struct hm_draw_figures hm_context_root_draw(struct hm_context *context, size_t budget);

#ifdef __cplusplus
}
#endif

#endif
