// Rounds kept to be drawn: for every number of accepted tokens the first round that had it, with a bounded part of its
// tree, and token texts learned from the log's own steps. Gathered by rounds.c, drawn by html_trees.c.
#ifndef HM_REPORTS_ROUNDS_H
#define HM_REPORTS_ROUNDS_H

#include "base/error.h"
#include "certify/log_reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HM_ROUNDS_KEPT = 33,       // one for each number of accepted tokens; those with more share the last place
    HM_ROUNDS_NODES = 72,      // nodes kept of a tree: the accepted path, then the draft's likeliest
    HM_ROUNDS_TEXTS = 1 << 14, // places for token texts
    HM_ROUNDS_TEXT = 20        // bytes of one, with its zero
};

enum hm_node_part { HM_NODE_ROOT, HM_NODE_VERIFIED, HM_NODE_ACCEPTED, HM_NODE_SCORED };

struct hm_kept_node {
    int32_t parent; // in this array; -1: the root
    int32_t node;   // in the log's round
    int32_t depth;
    int64_t token;
    double logq;
    uint8_t part;   // enum hm_node_part
};

struct hm_kept_round {
    bool has;
    size_t log, line;
    int64_t sequence, round, t;
    int64_t nodes, scored, depth;      // of the whole tree, root included
    uint64_t accepted, emitted;
    bool has_continuation;
    int64_t continuation, leaves_from; // the target's token, and the node (of the log) whose row gave it
    size_t count;
    struct hm_kept_node node[HM_ROUNDS_NODES];
};

struct hm_report_rounds {
    struct hm_kept_round *kept; // [HM_ROUNDS_KEPT], by accepted tokens; NULL before the first
    struct hm_token_text {
        int64_t id; // -1: free
        char text[HM_ROUNDS_TEXT];
    } *texts; // [HM_ROUNDS_TEXTS]; NULL before the first

    // The round at hand [capacity]: 0 or 1 in `on_path` for the accepted nodes.
    struct {
        int64_t *parent, *token, *depth;
        double *logq;
        uint8_t *on_path;
        size_t capacity, nodes, scored, line, log;
        int64_t sequence, round, t, continuation, leaves_from;
        bool has_continuation;
    } open;
};

hm_status hm_rounds_begin(struct hm_report_rounds *r, const struct hm_record_round *round, size_t log, size_t line,
                          struct hm_error *err);
hm_status hm_rounds_step(struct hm_report_rounds *r, const struct hm_record_step *step, struct hm_error *err);
hm_status hm_rounds_end(struct hm_report_rounds *r, uint64_t accepted, uint64_t emitted, struct hm_error *err);
void hm_rounds_clear(struct hm_report_rounds *r);

// The text of a token as some step of the log has it, where that is printable ASCII; else NULL.
const char *hm_rounds_text(const struct hm_report_rounds *r, int64_t token);

// The rounds to show, the most telling first: longest accepted, a typical one (the median of by_count[0 .. counts - 1]),
// a total miss, then the others from few to many. `why` says which. Returns how many.
struct hm_shown_round {
    const struct hm_kept_round *round;
    const char *why;
};
size_t hm_rounds_chosen(const struct hm_report_rounds *r, const uint64_t *by_count, size_t counts,
                        struct hm_shown_round out[HM_ROUNDS_KEPT]);

#endif
