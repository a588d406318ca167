// Two runs of the same prompts: noise or bug (docs/compare.md; docs/theory.md §6).
//
// Each function answers for one position, one fork or one token; none keeps anything. What a run is judged by is a pair of
// histograms.
#ifndef HM_EVIDENCE_COMPARE_H
#define HM_EVIDENCE_COMPARE_H

#include "base/histogram.h"
#include "evidence/evidence.h"
#include "evidence/source.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- One position (evidence/noise.c) ----

enum hm_number_type { HM_TYPE_F32, HM_TYPE_BF16, HM_TYPE_F16, HM_TYPES };
const char *hm_number_type_name(enum hm_number_type type); // "f32", "bf16", "f16"

// How much two rows of one context differ: half the range of l_A - l_B over the tokens finite in both, so that a constant
// offset cancels and logits compare with log-probabilities. Enclosures: what was printed is rounded.
struct hm_noise {
    size_t shared;             // tokens in both with finite values; below 2 there is no noise, and all else is 0
    struct hm_ival nats;       // >= 0, finite
    struct hm_ival unit;       // one unit in the last place at the largest magnitude of the shared values, in nats
    struct hm_ival ulps;       // nats in such units
    int32_t most, least;       // ids of the tokens at the ends of the range, -1: told by text only
};
// a and b of one context; tokens are matched by id, or by text where an id is missing (not by a text that is listed twice
// or has a U+FFFD in it, which stands for several tokens). type: the narrower one of what the rows were computed in.
// Values of a raw and a processed row do not compare: nothing is shared. HM_MEMORY for long lists.
hm_status hm_noise_measure(const struct hm_evidence *a, const struct hm_evidence *b, enum hm_number_type type,
                           struct hm_noise *out, struct hm_error *err);

// ---- The noise of a run (evidence/level.c) ----

enum { HM_LEVEL_LEAST_POSITIONS = 200, HM_OUTLIER_FACTOR = 10 };

// Noise of all positions, by its lower and upper ends. Starts as zeros.
struct hm_noise_run {
    struct hm_histogram lower, upper;
};
void hm_noise_run_add(struct hm_noise_run *run, struct hm_ival noise);
// The 99.9 % quantile over the other positions, but at most HM_OUTLIER_FACTOR times their 99 % quantile: below a thousand
// positions the former is the largest of all, and two faults would hide each other. `without`, which was added, is taken out
// (NULL: over all). A quantile q of n values is that of rank ceil(q n). False when fewer than HM_LEVEL_LEAST_POSITIONS are
// left.
bool hm_noise_run_level(const struct hm_noise_run *run, const struct hm_ival *without, struct hm_ival *level);
// The level of a position, and at least its unit: rounding to the type explains that much wherever it stands.
bool hm_noise_level(const struct hm_noise_run *run, const struct hm_noise *position, struct hm_ival *level);
// Do the rows differ by more than 1 nat at half of the positions? No rounding of these types does that: they are of other
// weights or contexts, and nothing is explained by it. False below HM_LEVEL_LEAST_POSITIONS.
bool hm_noise_is_foreign(const struct hm_noise_run *run);
// Is the noise more than HM_OUTLIER_FACTOR times the level?
enum hm_verdict hm_noise_outlier(struct hm_ival noise, struct hm_ival level);

// ---- The first fork of a prompt (evidence/fork.c) ----

enum hm_fork_class { HM_FORK_NONE, HM_FORK_TIE, HM_FORK_EXPLAINED, HM_FORK_UNEXPLAINED, HM_FORK_UNDECIDED, HM_FORK_CLASSES };
const char *hm_fork_class_name(enum hm_fork_class c); // "none", "tie", ...

enum { HM_FORK_TEXT = 48 };

// One side at the fork.
struct hm_fork_side {
    int32_t token, first, second;            // ids, -1: told by text only, or unknown
    char token_text[HM_FORK_TEXT], first_text[HM_FORK_TEXT], second_text[HM_FORK_TEXT]; // cut at a character border
    struct hm_ival gap;                      // first - second
    struct hm_ival radius;                   // of "the emitted token is (not) first": half the distance to the best other
    struct hm_ival lead;                     // own token - the other side's token, in this side's row
    struct hm_ival behind;                   // first - own token: 0 when the emitted token is first
    bool has_row;                            // without one the intervals are what greedy decoding says: [0, +inf]
    bool lacks;                              // something is not known, and `missing` says what
    enum hm_missing missing;
};

struct hm_fork {
    enum hm_fork_class kind;
    const char *why;                         // static text: what decided it, or what is missing
    uint32_t sequence, t;                    // A's
    struct hm_fork_side a, b;
    struct hm_ival needs;                    // noise that the fork needs: half the sum of the two leads
    struct hm_ival noise, level;             // noise measured here, and the level it is judged by
    bool has_noise, has_level;
};

// What a fork is, before the level is known: fills both sides, `needs` and the place, and the class where no level is
// needed for it. The caller adds noise and level.
void hm_fork_look(const struct hm_source_token *a, const struct hm_source_token *b, struct hm_fork *out);
// Classes what hm_fork_look left at HM_FORK_NONE, by the level; foreign: hm_noise_is_foreign.
void hm_fork_judge(struct hm_fork *fork, bool foreign);
// The same for tokens that were drawn: no radius tells how much noise a draw bears. same_draws: both used the same random
// numbers on the same law, so equal rows must give equal tokens.
void hm_fork_judge_drawn(const struct hm_source_token *a, const struct hm_source_token *b, bool same_draws,
                         struct hm_fork *fork);

// ---- A claimed temperature (evidence/likelihood.c) ----

// Refutes "these tokens were sampled at temperature T" when all are their rows' first: under that claim the product of the
// probabilities of first tokens bounds the chance of it (Markov's inequality for a martingale: rows may depend on earlier
// tokens). Which rows count is decided before their token is looked at: those whose ranked entries say for sure which
// token is the first; a token that surely is not counts in any case, as it can only take a refutation away. Starts as zeros.
struct hm_likelihood {
    uint64_t tokens, first; // with such a row; emitted tokens that are their row's first
    uint64_t open;          // rows that do not say which token is first
    uint64_t without;       // emitted tokens without evidence, counted by the caller: whether a log has it may depend on the
                            // token, so with any of them nothing is refuted (hm_likelihood_ln_p)
    double log_p;           // upper bound of ln of the p-value, <= 0; 0 once a token is not the first
};
// temperature > 0; of processed rows, whose probabilities are those drawn from, it does not matter.
// Upper bounds of the p-value and of its logarithm; 1 and 0 where nothing can be refuted.
double hm_likelihood_p_value(const struct hm_likelihood *likelihood);
double hm_likelihood_ln_p(const struct hm_likelihood *likelihood);
hm_status hm_likelihood_add(struct hm_likelihood *l, const struct hm_evidence *row, const struct hm_rational *temperature,
                            struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
