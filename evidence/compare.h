// Two runs of the same prompts: noise or bug (docs/compare.md; docs/theory.md §6).
//
// Everything here streams; what it keeps is histograms and, per prompt, one fork.
#ifndef HM_EVIDENCE_COMPARE_H
#define HM_EVIDENCE_COMPARE_H

#include "base/histogram.h"
#include "evidence/evidence.h"
#include "evidence/source.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- One position (evidence/noise.c) ----

// How much two rows of one context differ: half the range of l_A - l_B over the tokens finite in both, so that a constant
// offset cancels and logits compare with log-probabilities. Enclosures: what was printed is rounded.
struct hm_noise {
    size_t shared;             // tokens in both with finite values; below 2 there is no noise
    struct hm_ival nats;       // >= 0
    struct hm_ival ulps;       // the same in units in the last place at the largest magnitude of the shared values; of the
                               // narrower type of the two sides
    int32_t most, least;       // ids of the tokens at the ends of the range, -1: told by text only
};
enum hm_number_type { HM_TYPE_F32, HM_TYPE_BF16, HM_TYPE_F16 };
// p and q of one context; matched by id, else by text. type: what the rows' arithmetic is said to be.
hm_status hm_noise_measure(const struct hm_evidence *a, const struct hm_evidence *b, enum hm_number_type type,
                           struct hm_noise *out, struct hm_error *err);

// ---- The noise of a run (evidence/level.c) ----

enum { HM_LEVEL_LEAST_POSITIONS = 200 };

// Noise of all positions, by its lower and upper ends.
struct hm_noise_run {
    struct hm_histogram lower, upper;
};
void hm_noise_run_add(struct hm_noise_run *run, struct hm_ival noise);
// The 99.9 % quantile over the other positions: `without` (of a position that was added) is taken out. False when fewer than
// HM_LEVEL_LEAST_POSITIONS are left.
bool hm_noise_run_level(const struct hm_noise_run *run, struct hm_ival without, struct hm_ival *level);

// ---- The first fork of a prompt (evidence/fork.c) ----

enum hm_fork_class { HM_FORK_NONE, HM_FORK_TIE, HM_FORK_EXPLAINED, HM_FORK_UNEXPLAINED, HM_FORK_UNDECIDED, HM_FORK_CLASSES };
const char *hm_fork_class_name(enum hm_fork_class c);

// One side at the fork.
struct hm_fork_side {
    int32_t token, first, second;            // ids, -1: told by text only, or unknown
    char token_text[48], first_text[48], second_text[48];
    struct hm_ival gap;                      // first - second
    struct hm_ival radius;                   // of "the emitted token is first": half the distance to the other's best
    struct hm_ival lead;                     // own token - the other side's token, in this side's row
    bool has_row;
};

struct hm_fork {
    enum hm_fork_class kind;
    const char *why;                         // static text: what decided it, or what is missing
    uint32_t sequence, t;
    struct hm_fork_side a, b;
    struct hm_ival needs;                    // noise that the fork needs: half the sum of the two leads
    struct hm_ival noise, level;             // noise measured here, and the level it is judged by
    bool has_noise, has_level;
};

// What a fork is, before the level is known: fills both sides and `needs`.
hm_status hm_fork_look(const struct hm_source_token *a, const struct hm_source_token *b, struct hm_fork *out,
                       struct hm_error *err);
// Classes it, given the level.
void hm_fork_judge(struct hm_fork *fork);

// ---- A claimed temperature (evidence/likelihood.c) ----

// Refutes "these tokens were sampled at temperature T" when all are their rows' first: under that claim the product of the
// probabilities of first tokens bounds the chance of it (Markov's inequality for a martingale: rows may depend on
// earlier tokens, tokens without a row are left out).
struct hm_likelihood {
    uint64_t tokens, first, open; // with a row; emitted tokens that are their row's first; undecided
    double log_p;                 // upper bound of ln of the p-value, <= 0
};
hm_status hm_likelihood_add(struct hm_likelihood *l, const struct hm_evidence *row, const struct hm_rational *temperature,
                            struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
