// The pool of draft candidates: a beam expansion over token paths (docs/decoders.md, "Pool").
//
// Level 1 holds the `width` likeliest tokens after the root; each of `depth` expansions gives `width` children to the
// `width` best candidates of the newest level. A candidate's score is the sum of the draft's log-probabilities along its
// path. Candidates are compared by (score descending, index ascending); parents precede children and never score less,
// so every prefix of that order is closed under parents.
#ifndef HM_DECODE_POOL_H
#define HM_DECODE_POOL_H

#include "base/error.h"
#include "base/rational.h"
#include "certify/law.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hm_candidate {
    int32_t token;
    int32_t parent;  // index in the pool, -1: child of the root
    int32_t row;     // index into hm_pool.rows of the draft's row after this candidate, -1: not expanded or no rows
    uint32_t depth;  // 1 for children of the root
    float logq;      // log-probability given the parent
    double score;    // sum of logq along the path; -inf for NaN
};

// How children are chosen from a draft row.
struct hm_pool_options {
    size_t width;                   // children per expansion, >= 1
    size_t vocab;                   // width of draft rows; 0: the drafter has none
    size_t usable;                  // entries of a row below this may be proposed
    const int32_t *ids;             // token of each entry, ascending [vocab]; NULL: the entry's index. Borrowed
    enum hm_proposal proposal;      // TOPK: the likeliest. IID: draws (docs/log.md, "The walk"), duplicates included, and only
                                    // the first child of each level is expanded, so the shape never depends on the draws
    const struct hm_rational *temperature; // of the draws. Borrowed
    uint64_t seed;
};

struct hm_pool {
    struct hm_pool_options options;
    uint32_t sequence, t;           // of the first token of the round, for draws; set before each round
    struct hm_candidate *candidate; // [count]
    size_t count, capacity;
    size_t width;                   // options.width
    size_t level;                   // first candidate of the newest level
    size_t *beam;                   // the candidates to expand next [beam_count <= width], best first
    size_t beam_count;
    float *rows;                    // draft rows [row_count][vocab]; row 0 is the root's when there are rows
    size_t row_count, row_capacity; // row_capacity in floats
    size_t vocab;                   // options.vocab
    int32_t *token;                 // scratch of one expansion [width]
    float *logq;                    // likewise
};

hm_status hm_pool_init(struct hm_pool *pool, const struct hm_pool_options *options, struct hm_error *err);
void hm_pool_clear(struct hm_pool *pool);
void hm_pool_reset(struct hm_pool *pool); // forgets all candidates and rows, not sequence and t

// Room for `count` further rows of vocab floats, not yet counted; NULL with err filled when memory is short. The pointer
// is good until the next call.
float *hm_pool_reserve_rows(struct hm_pool *pool, size_t count, struct hm_error *err);

// Adds the children of one parent (-1: the root) in the order given, best first.
hm_status hm_pool_add(struct hm_pool *pool, int32_t parent, const int32_t *token, const float *logq, size_t count,
                      struct hm_error *err);

// Takes the first reserved row as the row after candidate `parent` (-1: the root), counts it and adds the children that
// it proposes. HM_RANGE for a row that cannot be drawn from (IID only; a NaN row proposes nothing finite under TOPK).
hm_status hm_pool_expand(struct hm_pool *pool, int32_t parent, struct hm_error *err);

// Ends a level: chooses the best candidates of the newest level with a finite score as the next beam; under IID its first
// candidate, whatever was drawn.
void hm_pool_advance(struct hm_pool *pool);

// The beam's levels after the first, at most `depth`: each is ended and, unless nothing is left, expanded by `expand`, which
// gives each member of the beam its row (hm_pool_expand).
hm_status hm_pool_deepen(struct hm_pool *pool, size_t depth,
                         hm_status (*expand)(void *drafter, struct hm_pool *pool, struct hm_error *err), void *drafter,
                         struct hm_error *err);

// Writes the indices of the best candidates with a finite score, best first; returns how many (at most `most`). Under IID
// those of the first candidates: a choice by score would look at what was drawn, and `standard` would not be lossless.
size_t hm_pool_best(const struct hm_pool *pool, size_t most, size_t *best);

#ifdef __cplusplus
}
#endif

#endif
