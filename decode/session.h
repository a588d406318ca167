// One decode: rounds of drafting, one target pass over the tree, traversal and commit, until the sequence ends.
//
// The session emits events in the order of the log (docs/log.md): the round, then its steps. It knows nothing of
// certificates; whoever listens makes them.
#ifndef HM_DECODE_SESSION_H
#define HM_DECODE_SESSION_H

#include "base/error.h"
#include "decode/accept.h"
#include "decode/drafter.h"
#include "decode/model.h"
#include "decode/tokenizer.h"
#include "decode/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hm_session;

enum hm_token_source { HM_TOKEN_PREFILL, HM_TOKEN_ACCEPTED, HM_TOKEN_CONTINUATION };
enum hm_stop_reason { HM_STOP_NONE, HM_STOP_EOS, HM_STOP_LENGTH, HM_STOP_STRING };

// A round before its steps. Pointers are good during the call.
struct hm_round_event {
    uint32_t round, t;        // t: index of the first token it emits
    const struct hm_tree *tree;
    int32_t first;            // the token drawn before the tree was chosen (root-draw, pearl); -1: none
    bool covered;             // the next root's row is among this round's rows (docs/decoders.md, "Coverage")
    size_t pool;              // candidates drafted
    size_t accepted;          // draft tokens accepted, before any cut
    const float *rows;        // target rows [tree->nodes][vocab]
    double draft_seconds, verify_seconds; // drafting; the target's pass over the tree
    double root_seconds;      // the separate pass for the root's row; 0: there was none
    double together_seconds;  // from the start of drafting and root pass to the end of both
};

// Every candidate of a pool scored by the target, before selection (only when asked for: a pass of its own).
struct hm_pool_event {
    uint32_t sequence, round, t;
    const int32_t *context;   // [length], the root last
    size_t length;
    const struct hm_pool *pool;
    const float *rows;        // [1 + pool->count][vocab]: the root's row, then the row after each candidate
};

// One emitted token. Pointers are good during the call.
struct hm_step_event {
    uint32_t t;
    int64_t round;            // -1: from the prompt's last row
    int32_t token;
    enum hm_token_source source;
    size_t node, depth;       // whose row decided it
    int64_t child;            // node index of the accepted child, -1
    size_t support;
    const int32_t *children;  // tokens of the node's children [child_count]
    size_t child_count;
    const float *target_row;  // [vocab]
    const float *draft_row;   // [vocab], or NULL: draft_why
    const char *draft_why;
    bool capped;              // no child was looked at: the traversal's cap
    bool charged, relaxed;    // with a fidelity budget, as in hm_decision
    struct hm_ival charge;
    double spent;
    enum hm_stop_reason stop; // not NONE: this is the last token
    const char *text;         // characters completed by the token [text_size]
    size_t text_size;
};

// A verified node, visited or not, after the steps of its round (only when asked for).
struct hm_node_event {
    uint32_t round;
    size_t node, depth;
    size_t support;
    const int32_t *children;
    size_t child_count;
    const float *target_row, *draft_row;
    const char *draft_why;
};

struct hm_listener {
    void *user;
    hm_status (*round)(void *user, const struct hm_round_event *event, struct hm_error *err);
    hm_status (*step)(void *user, const struct hm_step_event *event, struct hm_error *err);
    hm_status (*node)(void *user, const struct hm_node_event *event, struct hm_error *err); // NULL: not wanted
    hm_status (*pool)(void *user, const struct hm_pool_event *event, struct hm_error *err); // NULL: not wanted
    hm_status (*text)(void *user, const char *text, size_t size, struct hm_error *err); // to show: stop strings cut off
    void (*prefill)(void *user, size_t done, size_t total);                                // NULL: no progress
    const volatile bool *interrupted; // NULL, or a flag: the decode stops cleanly after the round in which it turns true
};

struct hm_session_options {
    struct hm_model *target;          // all borrowed for the session's life
    struct hm_drafter *drafter;       // NULL: plain decoding
    const struct hm_tokenizer *tokenizer; // NULL: no text, no stop strings
    struct hm_acceptance acceptance;
    enum hm_budget_kind fidelity;     // a fidelity budget for each sequence
    const struct hm_rational *fidelity_limit; // NULL without one
    size_t width, depth, budget;      // of the tree
    enum hm_selection selection;      // ROOT, ROOT_DRAW and PEARL need the root's row first: a pass of its own, which runs
                                      // at the same time as drafting when the drafter has a device of its own
    bool covering;                    // the covering decoder: leaf-stop; ROOT_DRAW after a covered round, else DRAFT
    size_t cap;                       // traversal cap:N; 0: exhaustive
    bool leaf_stop;                   // traversal leaf-stop
    size_t score_top;                 // score the best M candidates of the pool in all; 0: off
    size_t score_frontier;            // score the first E candidates outside the tree whose parents are in it; 0: off
    bool serial;                      // the root's pass after drafting, not beside it (to measure the difference)
    unsigned draft_threads;           // of the target device's threads, how many drafting takes while both run; 0: half
    size_t positions;                 // longest context, prompt included; at most the target's
    const int32_t *eos;               // [eos_count]
    size_t eos_count;
    const char *const *stop;          // stop strings [stop_count], none empty
    size_t stop_count;
};

// What a decode did, for summaries. Tokens beyond a cut (end of text, token limit, stop string) are not counted.
struct hm_session_counts {
    uint64_t tokens, rounds;
    uint64_t accepted;                // draft tokens emitted
    uint64_t drafted, verified;       // pool candidates; nodes besides the root
    uint64_t trees, full;             // rounds whose tree has more than a root; of these, accepted to its full depth
    uint64_t prefills;                // tokens that come from a prompt's last row
    uint64_t reached[64];             // rounds whose accepted path has at least i + 1 tokens
    uint64_t covered;                 // rounds after which the next root's row was at hand
    uint64_t scored;                  // nodes that were only scored
    uint64_t root_passes;             // separate passes for a root's row
    uint64_t charged, relaxed;        // steps with a charge; of these, with the relaxation in force
    double most_spent;                // by one sequence, of its fidelity budget
    double prefill_seconds, draft_seconds, verify_seconds, seconds;
    double root_seconds, together_seconds; // as in hm_round_event, summed
};

// Is this combination of acceptance, selection, traversal and budget legal (docs/decoders.md, "Legal combinations")?
// HM_USAGE with the reason, in the words of the command line. Needs no model.
hm_status hm_session_legal(const struct hm_session_options *options, struct hm_error *err);

hm_status hm_session_open(const struct hm_session_options *options, struct hm_session **out, struct hm_error *err);
void hm_session_close(struct hm_session *session); // NULL is allowed

// Would a prompt of `length` ids with max_tokens more fit?  HM_USAGE for none of either, HM_RANGE beyond the context.
hm_status hm_session_check(const struct hm_session *session, size_t length, size_t max_tokens, struct hm_error *err);

// Decodes one sequence: `prompt` [length >= 1] ids, at most max_tokens >= 1 tokens; emits at least one.
// Appends to *counts. *token receives the emitted ids in fresh memory (the caller frees it), also after an interrupt.
hm_status hm_session_run(struct hm_session *session, uint32_t sequence, const int32_t *prompt, size_t length,
                         size_t max_tokens, const struct hm_listener *listener, struct hm_session_counts *counts,
                         int32_t **token, size_t *count, struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
