// Stamping: certificates for the steps of a decode, computed beside it and written as a log (docs/log.md).
//
// The producer hands over records in log order, with copies of the rows it needs to keep nothing alive; worker threads
// compute claims behind a bounded queue, and lines come out in order. The caller waits only when the queue is full. A
// failure (disk full, a NaN logit) is kept and returned by the next call, and by hm_stamper_close.
#ifndef HM_CERTIFY_STAMP_H
#define HM_CERTIFY_STAMP_H

#include "base/error.h"
#include "base/rational.h"
#include "base/sha256.h"
#include "certify/certificate.h"
#include "certify/divergence.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hm_stamper;

// A model as the header names it.
struct hm_log_model {
    const char *name;         // usually the folder's name
    char sha256[HM_SHA256_HEX]; // of the weight files in index order
    size_t vocab;
    const char *architecture; // "Qwen3ForCausalLM"
};

enum { HM_M_TREE = 0 }; // an entry of hm_log_header.m: the number of children at the step's node

// What a log claims and how its tokens were made: line 1. Everything is borrowed during hm_stamper_open only.
struct hm_log_header {
    const struct hm_rule *rules; // claimed at each step [rule_count >= 1]
    size_t rule_count;
    const uint32_t *m;           // HM_M_TREE or a fixed number [m_count >= 1]
    size_t m_count;
    bool margin;                 // add margin-only claims
    bool universal;              // add rule-universal bounds
    const struct hm_divergence *divergences; // further divergences [divergence_count <= 16]
    size_t divergence_count;
    bool law_iid, law_topk;      // add the output laws of these proposals
    bool audit;                  // row records instead of sequences: no "tree" in m, no acceptance, temperature 0
    const struct hm_rule *acceptance; // a rule (a nucleus means nucleus speculative decoding); NULL: match, or
    bool standard;               // standard speculative sampling
    bool proposal_iid;           // children are draws from the draft; else its likeliest tokens
    enum { HM_LOG_NO_BUDGET, HM_LOG_TV_BUDGET, HM_LOG_REGRET_BUDGET } budget_kind; // fidelity budget of each sequence
    const struct hm_rational *budget_limit; // NULL without one
    const struct hm_rational *temperature, *certify_temperature;
    size_t top_k;                // 0: off
    const struct hm_rational *top_p; // NULL: off
    size_t top;                  // leading entries listed per step
    bool all_nodes;              // node records for unvisited verified nodes
    const struct hm_log_model *target, *draft; // draft NULL: no draft model
    const char *tokenizer_sha256;
    const char *drafter;         // "standalone", "ngram", "none"
    size_t width, depth, budget;
    const char *selection;       // "draft", "root", "root-draw", "pearl", "covering"
    const char *traversal;       // "exhaustive", "cap:N" or "leaf-stop"
    const char *score;           // "top:M", "frontier:E"; NULL: none
    const char *proposal;        // "topk", "iid" or "none"
    const char *weights_dtype, *backend, *row_source; // "BF16", "cpu-fma256", "verify"
    const char *accumulate;      // the type sums are kept in; NULL: "F32"
};

struct hm_stamp_options {
    const char *path;      // the log file, replaced if it exists; NULL: certify and count only
    bool keep_rows;        // write row shards beside the log (implies hashing; needs a path)
    bool hash_rows;        // hash rows without keeping them
    unsigned threads;      // workers; 0: one
    // Called with each record that is written, in order, as JSON without its chain: "{...}" [size], no newline. From
    // hm_stamper_open and hm_stamper_close for the header and the end, between them from a thread of the stamper. Also
    // without a path. A failure stops the stamper like a full disk. NULL: nobody listens.
    hm_status (*line)(void *user, const char *json, size_t size, struct hm_error *err);
    void *line_user;
    size_t queue_rows;     // rows that may wait; 0: a default bounded by memory (at most 256 MiB of rows)
    uint64_t shard_bytes;  // size of a full row shard; 0: 1 GiB. A shard always holds at least one row
};

struct hm_log_sequence {
    uint32_t sequence, turn;
    const char *id, *category;     // id of the prompt; may be ""
    const int32_t *prompt;         // ids before the first step [prompt_length]
    size_t prompt_length;
    uint64_t seed;
    const int32_t *eos;            // [eos_count]
    size_t eos_count, max_tokens;
    const char *const *stop;       // stop strings [stop_count]
    size_t stop_count;
};

struct hm_log_round {
    uint32_t sequence, round, t;   // t: index of the first token the round emits
    size_t nodes;                  // root included
    const int32_t *parent, *token; // [nodes]; parent[0] = -1
    const float *logq;             // [nodes]; -INFINITY when unknown
    size_t pool;                   // candidates the selection chose from
    size_t scored;                 // of the nodes, the last so many were only scored
    bool first_drawn;              // a token was drawn before the tree was chosen:
    int32_t first;                 // this one, carried by node 1
    size_t accepted;               // draft tokens accepted before any cut (expected_accept at temperature 0)
    const float *target_rows;      // [nodes][target vocab], for expected_accept under match at temperature > 0 with all
                                   // nodes in the log (docs/theory.md §7); NULL: it is null. Rows that it needs, those
                                   // of nodes with children, are copied
    double draft_seconds, verify_seconds; // into `run`
};

enum hm_source { HM_SOURCE_PREFILL, HM_SOURCE_ACCEPTED, HM_SOURCE_CONTINUATION };
enum hm_finish { HM_FINISH_NONE, HM_FINISH_EOS, HM_FINISH_LENGTH, HM_FINISH_STOP };

struct hm_log_step {
    uint32_t sequence, t;
    int64_t round;                 // -1: prefill
    int32_t token;                 // -1: a node record
    enum hm_source source;
    size_t node, depth;
    int64_t child;                 // accepted child's node index, or -1
    size_t support;                // tokens left after the processors (vocab when off or at temperature 0)
    const int32_t *children;       // tokens of the node's children in node order, without those only scored [child_count]
    size_t child_count;
    const float *target_row;       // [target vocab], copied
    const float *draft_row;        // [draft vocab], copied; NULL: none, and draft_why says why
    const char *draft_why;         // "prefill", "leaf", "not expanded", "no draft model" (static storage)
    bool capped;                   // the traversal's cap was reached: the walk looked at no child
    bool charged, relaxed;         // with a budget: `charge` is set; it was spent
    struct hm_ival charge;
    double spent;                  // with a budget: by the sequence, this step included
    enum hm_finish finish;
    const char *text;              // characters this token completed, UTF-8 (copied)
    size_t text_size;
};

// One row of an audit (docs/log.md "row: an audit").
struct hm_log_row {
    uint64_t index;                // place in the file, ascending
    int32_t token;                 // whose decision the claims speak of, or -1
    const float *target_row;       // [target vocab], copied
    const float *draft_row;        // likewise; exactly when the header has a draft model
};

// Counts over the steps so far, per rule and m in header order (rules outer).
struct hm_stamp_count {
    uint64_t claims;               // steps whose claim speaks of proposed tokens: m >= 1 (from the tree it may be 0)
    uint64_t verdict[3][5];        // [forward, reverse, TV][enum hm_certified]
    uint64_t certified;            // steps certified by any of the three
    uint64_t covered;
};

struct hm_stamp_summary {
    struct hm_stamp_count *count;  // [rule_count * m_count], freed by hm_stamp_summary_clear
    size_t counts;
    uint64_t sequences, rounds, steps, nodes, rows; // records written
    uint64_t decisions, filter_undecided; // exact questions asked, and those that double enclosures left to MPFR
    uint64_t undecided;            // answers written as "undecided", in steps and nodes
    double seconds;                // processor time of the workers, hashing of rows apart
    double hash_seconds;           // processor time of hashing rows
    double write_seconds;          // processor time of the thread that writes lines and rows
    size_t most_rows;              // the most rows that waited at one time
};

// Replaces the log and removes the row shards of an older log of the same name. One thread at a time may use a stamper.
// HM_IO when another process writes this log; HM_USAGE or HM_UNSUPPORTED when the header makes no sense: no rule, a
// draft vocabulary unlike the target's, choices that docs/log.md does not put together, a '%' in the name of a log that
// keeps rows (it would spoil the pattern of the shards' names).
hm_status hm_stamper_open(const struct hm_stamp_options *options, const struct hm_log_header *header,
                          struct hm_stamper **out, struct hm_error *err);

// Records come in the order of docs/log.md and are checked for it: HM_USAGE or HM_RANGE names the first that is out of
// place (a gap in t, a child beyond the vocabulary). After any failure the stamper writes nothing more.
hm_status hm_stamper_sequence(struct hm_stamper *s, const struct hm_log_sequence *sequence, struct hm_error *err);
hm_status hm_stamper_round(struct hm_stamper *s, const struct hm_log_round *round, struct hm_error *err);
hm_status hm_stamper_step(struct hm_stamper *s, const struct hm_log_step *step, struct hm_error *err);

// Audits only. HM_RANGE "target row: logit 17: ..." when the row or its draft row is no row of logits (NaN, +inf, only
// -inf): then there is no record, and, unlike after other failures, the stamper goes on.
hm_status hm_stamper_row(struct hm_stamper *s, const struct hm_log_row *row, struct hm_error *err);

// Waits for the queue, finishes the shards, writes the end record and frees s (NULL is allowed). There is no end record
// when an earlier call failed (the failure is returned again) or when the last sequence has no step with a `finish` (an
// interrupted decode, no failure): the log then stays truncated, which readers recognise. The summary may be NULL; it
// is filled also on failure, with what was written, and cleared by hm_stamp_summary_clear in any case.
hm_status hm_stamper_close(struct hm_stamper *s, struct hm_stamp_summary *summary, struct hm_error *err);
void hm_stamp_summary_clear(struct hm_stamp_summary *summary);

#ifdef __cplusplus
}
#endif

#endif
