// The records of a log as JSON (private to certify/): each function adds one record, "{..." without its chain and
// closing brace, to an empty line. docs/log.md is the specification; fields stand in the order of its tables.
#ifndef HM_CERTIFY_STAMP_RECORD_H
#define HM_CERTIFY_STAMP_RECORD_H

#include "certify/law.h"
#include "certify/log_json.h"
#include "certify/stamp.h"

enum hm_stamp_acceptance { HM_STAMP_MATCH, HM_STAMP_RULE, HM_STAMP_STANDARD, HM_STAMP_NUCLEUS };

// In which rounds the first token is drawn before the tree is chosen.
enum hm_stamp_first { HM_STAMP_FIRST_NEVER, HM_STAMP_FIRST_SOMETIMES, HM_STAMP_FIRST_ALWAYS };

// What steps need to know of the header, and copies of it: read-only once the stamper is open, so shared by threads.
struct hm_stamp_config {
    struct hm_rule *rules;   // [rule_count]
    char **rule_text;        // their canonical spelling
    size_t rule_count;
    uint32_t *m;             // [m_count]
    size_t m_count;
    struct hm_divergence *divergences; // [divergence_count]
    char **divergence_text;  // their canonical spelling
    size_t divergence_count;
    bool law[2];             // by enum hm_proposal
    struct hm_rational temperature, certify_temperature;
    size_t vocab, top;
    bool margin, universal, all_nodes, audit;
    enum hm_stamp_acceptance acceptance;
    bool has_rule;           // acceptance is `rule`: steps carry their regret
    struct hm_rule rule;
    enum hm_proposal proposal;
    int budget_kind;         // of the header
    bool greedy;             // temperature 0
    size_t top_k;            // processors: 0 is off
    struct hm_rational top_p; // 1 is off
    size_t cap;              // most tokens accepted in a round; 0: no limit
    bool leaf_stop;          // no walk goes to a node without children
    bool scores;             // nodes may be scored only
    enum hm_stamp_first draws_first;
    bool has_draft;
    bool keep_rows, hash_rows; // keep implies hash
    uint64_t capacity;       // rows per shard
};

// What a header must have, and which of its choices go together: HM_USAGE, HM_UNSUPPORTED.
hm_status hm_stamp_header_check(const struct hm_log_header *header, struct hm_error *err);
enum hm_stamp_acceptance hm_stamp_acceptance(const struct hm_log_header *header);

// The parts of a traversal; NULL is exhaustive. cap 0: none.
hm_status hm_stamp_traversal(const char *text, size_t *cap, bool *leaf_stop, struct hm_error *err);

// Checks the header and copies what steps need. hm_stamp_config_clear also after a failure.
hm_status hm_stamp_config_set(struct hm_stamp_config *config, const struct hm_stamp_options *options,
                              const struct hm_log_header *header, struct hm_error *err);
void hm_stamp_config_clear(struct hm_stamp_config *config);

// Where a log stands, for checking that records come in order (stamp_order.c). Starts as {0}.
struct hm_stamp_order {
    uint32_t sequences, t;   // sequences begun; steps of the current one
    int64_t rounds;          // rounds of the current sequence
    size_t nodes, verified;  // of the current round: all, and without those only scored
    double spent;            // of the current sequence's fidelity budget
    uint64_t next_row;       // of an audit: the least index that may come next
    bool open;               // the current sequence still lacks its finish
};

// Each says whether the record may come now (HM_USAGE, HM_RANGE if not) and moves on.
hm_status hm_stamp_order_sequence(struct hm_stamp_order *order, const struct hm_log_sequence *sequence,
                                  const struct hm_stamp_config *config, struct hm_error *err);
hm_status hm_stamp_order_round(struct hm_stamp_order *order, const struct hm_log_round *round,
                               const struct hm_stamp_config *config, struct hm_error *err);
hm_status hm_stamp_order_step(struct hm_stamp_order *order, const struct hm_log_step *step,
                              const struct hm_stamp_config *config, struct hm_error *err);
hm_status hm_stamp_order_row(struct hm_stamp_order *order, const struct hm_log_row *row,
                             const struct hm_stamp_config *config, struct hm_error *err);

// What the summary needs to know of one claim of one step.
struct hm_stamp_tally {
    size_t m;
    bool has_draft, covered, certified;
    enum hm_certified verdict[3];
    unsigned undecided;      // answers written as "undecided"
};

enum hm_stamp_kind { HM_STAMP_SEQUENCE, HM_STAMP_ROUND, HM_STAMP_STEP, HM_STAMP_NODE, HM_STAMP_ROW };

// One record on its way through the queue, with its own copies of everything it points to.
struct hm_stamp_job {
    enum hm_stamp_kind kind;
    struct hm_line line;           // of a sequence: complete; of the others: made by a worker
    union {
        struct hm_log_step step;   // STEP, NODE and ROW
        struct hm_log_round round; // ROUND
    } record;
    uint64_t index;                // of a ROW
    float *rows;                   // the target row, then the draft row if there is one; of a ROUND: the rows it needs
    const float **row_of;          // of a ROUND: [nodes] into `rows`, or NULL
    int32_t *tokens;               // children; of a ROUND: parents, then tokens
    float *logq;                   // of a ROUND
    char *text;
    uint64_t place[2];             // of the target row and of the draft row among the kept rows of their side, from 0
    struct hm_stamp_tally *tally;  // [rule_count * m_count], filled by hm_stamp_step_line
    uint64_t decisions, filter_undecided; // exact questions asked for this record, and those left to MPFR
    double hash_seconds;
};

void hm_stamp_job_free(void *job); // NULL is allowed

// Adds the questions that a row was asked; row NULL: none.
void hm_stamp_count_questions(struct hm_stamp_job *job, const struct hm_row *row);

// A job with a copy of a step, node or audit row (an audit's row is a node without a place). NULL: no memory.
struct hm_stamp_job *hm_stamp_job_step(enum hm_stamp_kind kind, const struct hm_log_step *step,
                                       const struct hm_stamp_config *config);

// A node of a round: its depth, and whether coming to it is an accepted token (docs/theory.md §7).
struct hm_stamp_place {
    size_t depth;
    bool counts;
};
void hm_stamp_places(const struct hm_log_round *round, const struct hm_stamp_config *config, struct hm_stamp_place *place);

// How many rows the job of a round keeps: those of docs/theory.md §7 that expected_accept needs, when it is wanted and
// the caller has them.
size_t hm_stamp_round_rows(const struct hm_log_round *round, const struct hm_stamp_config *config);
struct hm_stamp_job *hm_stamp_job_round(const struct hm_log_round *round, const struct hm_stamp_config *config);

// target_pattern NULL: rows are not kept.
void hm_stamp_header_line(struct hm_line *line, const struct hm_log_header *header,
                          const struct hm_stamp_config *config, const char *target_pattern, const char *draft_pattern);
void hm_stamp_sequence_line(struct hm_line *line, const struct hm_log_sequence *sequence);
void hm_stamp_end_line(struct hm_line *line, const struct hm_stamp_config *config,
                       const struct hm_stamp_summary *summary, double elapsed_seconds);

// Computes the certificates of a step, node or audit row into job->line. Errors name the record and the row.
hm_status hm_stamp_step_line(struct hm_stamp_job *job, const struct hm_stamp_config *config, struct hm_error *err);

// The line of a round, with what it expects to be accepted.
hm_status hm_stamp_round_line(struct hm_stamp_job *job, const struct hm_stamp_config *config, struct hm_error *err);

#endif
