// One pair of prompts while it is walked: what is done at each of its positions. See compare_run.h.
#ifndef HM_CLI_COMPARE_POSITION_H
#define HM_CLI_COMPARE_POSITION_H

#include "cli/compare_run.h"

// What is known of the pair at hand.
struct hm_compare_pair {
    struct hm_compare_run *run;
    struct hm_compare_side *ahead;         // --model: A once more, to know a path before it is walked
    struct hm_rational temperature[2];
    bool claims[2];                        // the side says that its tokens are drawn at `temperature`
    bool weighs[2];                        // which is one that probabilities can be computed at
    bool drawn, same_draws, relaxed;       // of any side; relaxed: its acceptance may emit others than the first
    bool parted, forked;                   // nothing more is compared; the first fork was met
    bool scored;                           // --model: the path could be given to it
    uint32_t prefix, tokens[2];            // tokens: emitted
    const char *category;
    bool holds;                            // the fork that ended it, not written yet
    struct hm_spool_record fork;
};

// What a side of the pair claims of its sampling.
hm_status hm_pair_read_claims(struct hm_compare_pair *pair, struct hm_error *err);
// Counts the prompt in its groups, and with noise not NULL a position.
hm_status hm_pair_group(struct hm_compare_pair *pair, int32_t width, const struct hm_noise *noise, struct hm_error *err);
// A finding of the comparison's own about a side.
void hm_pair_fault(struct hm_compare_run *run, int side, enum hm_finding_kind kind, int64_t t, const char *where,
                   const char *what);
// Nothing more of the pair is compared, for another reason than a fork.
void hm_pair_part(struct hm_compare_pair *pair);

// The token with its row, unless that is no row. Findings about rows as distributions are `hallmark audit`'s.
void hm_pair_examine(struct hm_compare_pair *pair, int side, const struct hm_source_token *from, struct hm_source_token *out);
// Makes the row's first token the emitted one.
void hm_pair_take_first(struct hm_source_token *token);
// Holds a token against what its side claims.
hm_status hm_pair_weigh(struct hm_compare_pair *pair, int side, const struct hm_source_token *token, struct hm_error *err);
// Both sides have a token at one place.
hm_status hm_pair_look(struct hm_compare_pair *pair, struct hm_source_token *a, struct hm_source_token *b, struct hm_error *err);
// Writes the fork that ended the pair, when all of both sides was read.
hm_status hm_pair_finish(struct hm_compare_pair *pair, struct hm_error *err);
// One side's text ends where the other's goes on.
void hm_pair_end_early(struct hm_compare_pair *pair, int ended, const struct hm_source_token *other);

#endif
