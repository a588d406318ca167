// The insides of a session, shared by the files of the round loop; not for others.
#ifndef HM_DECODE_SESSION_PARTS_H
#define HM_DECODE_SESSION_PARTS_H

#include "decode/beside.h"
#include "decode/session.h"
#include "decode/stop.h"

struct hm_session {
    struct hm_session_options options; // as settled by hm_session_open
    size_t vocab;
    size_t nodes_most, pool_most;      // nodes of a tree, root and scored ones included; candidates of a pool
    struct hm_cache *cache;
    struct hm_pool pool;
    struct hm_tree tree;
    float *rows;                       // target rows of a round [nodes_most][vocab]; row 0 also serves the prefill
    float *draft_row;                  // a draft row on the target's ids [vocab]; NULL: the draft's rows are that already
    struct hm_ival *first_share;       // ROOT: the target's probability of each candidate of level 1 [width]
    double *first_logp;                // its logarithm, for ranking [width]
    uint32_t *every;                   // 0, 1, ...: the rows of a pass that need logits
    int32_t *token, *parent;           // of a pass that is not simply the tree's
    size_t pass_rows;                  // room in the three arrays above
    uint32_t *path;                    // visited nodes, root first [nodes_most]
    int32_t *children;                 // tokens of a node's children, or of level 1 [nodes_most or width]
    struct hm_decision *decision;      // one per visited node [nodes_most]
    float *pool_rows;                  // target rows of a whole pool, for a listener that wants them
    size_t pool_floats;
    char *piece;                       // text of one token
    size_t piece_capacity;
    struct hm_beside *beside;          // drafts at the same time as the root's pass; NULL: one after the other
    struct hm_taps taps;               // for the drafter, room for pass_rows rows; count 0: it wants none
    struct hm_budget fidelity;
    // The sequence at hand.
    uint32_t sequence;
    int32_t *context;                  // prompt and emitted tokens [length]
    size_t length, context_capacity, prompt;
    size_t max_tokens;
    bool root_known;                   // the root is committed in the cache, and rows[0] is its row
    struct hm_utf8_stream utf8;
    struct hm_stop stop;
    const struct hm_listener *listener;
    struct hm_session_counts *counts;
};

// session_emit.c: the draft's row after a node on the target's ids, or NULL with the reason. Good until the next call.
const float *hm_session_draft_row(struct hm_session *s, size_t node, const char **why);
// Emits one token: context, text, stop conditions, the listener. event->stop says whether the sequence has ended.
hm_status hm_session_emit(struct hm_session *s, struct hm_step_event *event, struct hm_error *err);
// Emits the decision at the i-th visited node of a round.
hm_status hm_session_emit_step(struct hm_session *s, uint32_t round, size_t i, struct hm_step_event *event, struct hm_error *err);
// Reports the nodes that no emitted token was decided at; `emitted` of the visited ones were.
hm_status hm_session_report_nodes(struct hm_session *s, uint32_t round, size_t emitted, struct hm_error *err);
hm_status hm_session_append(struct hm_session *s, int32_t token, struct hm_error *err); // to the context
hm_status hm_session_finish_text(struct hm_session *s, struct hm_error *err);           // shows what was still held back

// session_pass.c: passes of the target. draft_and_root drafts a pool and, where the selection asks for it, makes the
// root's row known, both at the same time if they can be; it fills pool, seconds.
hm_status hm_session_draft_and_root(struct hm_session *s, struct hm_round_event *event, struct hm_error *err);
hm_status hm_session_verify(struct hm_session *s, struct hm_error *err); // rows of all nodes of the tree
hm_status hm_session_record_pool(struct hm_session *s, uint32_t round, uint32_t t, struct hm_error *err);
// Room for passes of so many rows, their taps included.
hm_status hm_session_pass_room(struct hm_session *s, size_t rows, struct hm_error *err);
// Ends a round: commits the visited nodes and the node of the next root (-1: it has none), whose row becomes rows[0].
hm_status hm_session_commit(struct hm_session *s, size_t visited, int64_t next_root, struct hm_error *err);
// Gives the drafter the taps of `count` committed rows of the last pass.
hm_status hm_session_observe(struct hm_session *s, const uint32_t *row, size_t count, struct hm_error *err);
bool hm_session_wants_root(const struct hm_session *s); // does the selection start from the root's row?

// session_round.c: the decision at a row; node is the tree's, for its children and draft row; -1: the prompt's last row.
hm_status hm_session_decide(struct hm_session *s, int64_t node, uint32_t t, const int32_t *children, size_t child_count,
                            struct hm_decision *out, struct hm_error *err);
hm_status hm_session_round(struct hm_session *s, uint32_t round, enum hm_stop_reason *stop, struct hm_error *err);

#endif
