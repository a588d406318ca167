// Reading a certificate log (docs/log.md) one record at a time, in memory that does not grow with the log.
//
// Every line is checked as it is read: JSON with limits, the fields this page needs with their types and ranges, and
// the order of records (header first, sequences and steps without gaps, node numbers inside their round). What the
// reader does not do is prove anything: enclosures, verdicts, the walk and the hash chain are the checker's business.
//
// Errors read "FILE: line 7: claims[0].klf: expected ..., found ...". A log cut short by a crash is not an error: it
// ends early, and hm_log_reader_state says so.
#ifndef HM_CERTIFY_LOG_READER_H
#define HM_CERTIFY_LOG_READER_H

#include "base/error.h"
#include "base/sha256.h"
#include "bounds/ival.h"
#include "certify/certificate.h"
#include "certify/law.h"
#include "certify/stamp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HM_LOG_LONGEST_LINE = 16 << 20, // bytes; a step takes about 1 KB, a prompt of a million tokens 8 MB
    HM_LOG_MOST_RULES = 64,
    HM_LOG_MOST_M = 16,
    HM_LOG_MOST_DIVERGENCES = 16,
    HM_LOG_LAWS = 2                 // enum hm_proposal
};

struct hm_log_reader;

// A model as line 1 names it; absent models have name == NULL.
struct hm_record_model {
    const char *name, *sha256, *architecture;
    int64_t vocab;
};

// Line 1. Rationals and rules stay text, already known to be well-formed numbers and non-empty rule names.
struct hm_record_header {
    const char *claims[HM_LOG_MOST_RULES]; // rule strings [claim_count]
    size_t claim_count;
    int64_t m[HM_LOG_MOST_M];              // HM_M_TREE (0) or a fixed number [m_count]
    size_t m_count;
    bool margin, universal, all_nodes;
    const char *divergences[HM_LOG_MOST_DIVERGENCES]; // [divergence_count]
    size_t divergence_count;
    bool law[HM_LOG_LAWS];                 // by enum hm_proposal: claims carry this output law
    bool audit;                            // `decoder` is null: row records, no sequences
    const char *acceptance;                // "match", "standard" or a rule
    const char *budget_kind, *budget_limit; // "tv" or "regret" and a rational; NULL without a budget
    const char *temperature, *certify_temperature, *top_p; // rationals
    int64_t top_k, top;
    const char *proposal, *rng;
    struct hm_record_model target, draft;
    const char *tokenizer_sha256;          // NULL when the log has none
    const char *drafter, *selection, *traversal; // of `decoder`: NULL and 0 in an audit
    const char *score;                     // likewise; NULL when absent
    int64_t width, depth, budget;
    const char *weights, *accumulate, *backend, *row_source; // each NULL when absent
    bool has_rows, rows_hashed;            // rows kept in shards; rows at least hashed
    const char *target_rows, *draft_rows;  // file name patterns of the shards, not yet checked; NULL when not kept
    const char *version, *date, *host;     // of `run`; NULL when absent. Nothing in `run` is a claim
};

struct hm_record_sequence {
    int64_t sequence, turn;
    const char *id;                        // decimal digits when the log has an integer
    const char *category;                  // "" when absent
    const char *seed;                      // decimal digits
    const int32_t *prompt;                 // [prompt_length]
    size_t prompt_length;
    int64_t max_tokens;
};

struct hm_record_round {
    int64_t sequence, round, t, pool;
    size_t nodes;                          // root included, >= 1
    size_t scored;                         // of these, the last so many were only scored
    int64_t first;                         // token drawn before the tree was chosen; -1: none
    const int64_t *parent, *token;         // [nodes]; parent[0] = -1, parent[i] < i
    const int64_t *depth;                  // [nodes], from the parents; the root has 0
    const double *logq;                    // [nodes], -inf when unknown
    bool has_expected_accept;
    struct hm_ival expected_accept;
    double draft_seconds, verify_seconds;  // of `run`; -1 when absent
};

struct hm_record_logit {
    bool present;                          // an edge may have no token on one side
    int64_t id;
    double logit;
};

// A row reference: hashed and kept (shard >= 0), hashed only, or neither. `why` is NULL for kept rows.
struct hm_record_row {
    int64_t shard, index;                  // -1 when not kept
    const char *sha256, *why;              // NULL when absent
};

struct hm_record_claim {
    const char *rule;
    int64_t m, k;
    bool m_tree;                           // m is the number of children of the node; it may be 0
    bool has_accepts;                      // steps, and row records with a token
    enum hm_verdict accepts;
    struct hm_record_logit edge[2];        // last accepted, first rejected
    bool has_distances;                    // level.klf, .klr, .tv are set (false for m = 0)
    bool has_level;                        // level_f, level_r and the tied sets too
    struct hm_level level;
    bool has_margin, has_radius;
    struct hm_margin margin;
    struct hm_ival radius;                 // in logits; an upper end of +inf: only a lower bound is known
    bool has_universal;
    struct hm_universal universal;
    enum hm_active active;
    bool has_restricted;
    struct hm_restricted restricted;       // its level.level_f and so on only unless no_mass, k = 0 or vacuous
    struct hm_record_divergence {
        struct hm_ival star;
        bool has_verdict;
        enum hm_certified certified;
    } divergence[HM_LOG_MOST_DIVERGENCES]; // as the header lists them; set when has_divergences
    bool has_divergences;
    bool has_law[HM_LOG_LAWS];
    struct hm_law law[HM_LOG_LAWS];
    bool has_verdicts;                     // `covered` and `certified` are set; else `why`
    enum hm_verdict covered;
    enum hm_certified certified[3];        // forward, reverse, TV
    const char *why;
};

// A step, or a node record (t = -1, token = -1), or an audit's row record (index, and sequence, t, round, node = -1; token may
// be -1).
struct hm_record_step {
    int64_t sequence, t, round;            // round -1: the token came from the prompt's last row
    int64_t index;                         // of a row record; -1 otherwise
    int64_t token, node, depth, child;     // child -1: none
    enum hm_source source;
    struct hm_record_row row, draft_row;
    const struct hm_record_logit *top;     // [top_count]
    size_t top_count;
    int64_t support;
    struct hm_ival lse, entropy;
    bool has_draft;                        // kl_pq, kl_qp and tv are set
    struct hm_ival kl_pq, kl_qp, tv;
    bool has_regret;
    struct hm_ival regret;
    bool has_standard_accept, has_e;       // `e` and `ratio` come together
    struct hm_ival standard_accept, e, ratio;
    bool has_nucleus_excess, has_accept, has_accept_standard;
    struct hm_ival nucleus_excess, accept, accept_standard;
    bool has_charge, relaxed;              // with a budget, where the relaxation was asked for
    struct hm_ival charge;
    bool has_spent;
    double spent;
    bool has_divergences;
    struct hm_ival divergence[HM_LOG_MOST_DIVERGENCES]; // as the header lists them
    const struct hm_record_claim *claims;  // [claim_count * m_count of the header], rules outer
    size_t claim_count;
    enum hm_finish finish;
    const char *text;                      // UTF-8; "" when absent
};

struct hm_record_end {
    int64_t sequences, rounds, steps, nodes, rows, undecided;
    int64_t decisions, filter_undecided;   // of `run.filter`; -1 when absent
    double certify_seconds, hash_seconds, seconds; // of `run`; -1 when absent
};

enum hm_record_kind {
    HM_RECORD_SEQUENCE,
    HM_RECORD_ROUND,
    HM_RECORD_STEP,
    HM_RECORD_NODE,
    HM_RECORD_ROW,
    HM_RECORD_END,
    HM_RECORD_NONE // nothing more to read: hm_log_reader_state says how the log ended
};

// One record; the pointer of its kind is set, the others are NULL. Everything in it is the reader's until its next call.
struct hm_record {
    enum hm_record_kind kind;
    size_t line; // from 1
    int64_t before; // t of the last step of the sequence before it, or index of the last row; -1: none. Also if passed over
    const struct hm_record_sequence *sequence;
    const struct hm_record_round *round;
    const struct hm_record_step *step; // STEP, NODE and ROW
    const struct hm_record_end *end;
};

enum hm_log_state {
    HM_LOG_OPEN,     // there may be more to read
    HM_LOG_COMPLETE, // the end record was read
    HM_LOG_NO_END,   // the file ends after a whole line that is not an end record
    HM_LOG_CUT_LINE  // the file ends inside a line
};

// Opens a log and reads its header. "-" reads standard input. Not a log, or one cut inside line 1: HM_FORMAT.
hm_status hm_log_reader_open(const char *path, struct hm_log_reader **out, struct hm_error *err);
void hm_log_reader_close(struct hm_log_reader *reader); // NULL is allowed

// Valid until the reader is closed.
const struct hm_record_header *hm_log_reader_header(const struct hm_log_reader *reader);

// The next record, or kind HM_RECORD_NONE. After an error the reader gives the same error again.
hm_status hm_log_reader_next(struct hm_log_reader *reader, struct hm_record *out, struct hm_error *err);

// From now on records before step t of a sequence may be passed over: rounds, steps and nodes whose lines begin as hallmark
// writes them are then counted and held to the order of records, and not read any further. The round of the first step that is
// not passed over is never. Ten times as fast; a mistake in a line that is passed over is not found. Sequences are not passed
// over. Rows of an audit: t is the index, sequence is -1.
void hm_log_reader_pass_until(struct hm_log_reader *reader, int64_t sequence, int64_t t);

enum hm_log_state hm_log_reader_state(const struct hm_log_reader *reader);

// The bytes of the last record's line as they stand in the file, without its newline; of line 1 after opening. Valid until
// the next call of hm_log_reader_next.
const char *hm_log_reader_line(const struct hm_log_reader *reader, size_t *size);

// The chain value of the last record (64 hexadecimal digits); it was read, not checked.
const char *hm_log_reader_chain(const struct hm_log_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
