// What the checker carries from line to line, and the helpers that read fields and say what is wrong with them.
//
// The main thread reads lines, follows the walk by what they say and hands each record with rows, as a job, to workers
// that check it; outcomes are merged in the order of lines. A job has all that is known before its line.
//
// Errors are sticky: the first call of ck_refute or ck_unreadable decides, later ones are ignored, and every reader
// returns a harmless value, so that checks can be written one after the other and tested at the end of a block.
#ifndef HM_CERTIFY_CHECK_STATE_H
#define HM_CERTIFY_CHECK_STATE_H

#include "certify/check/check.h"
#include "certify/check/power.h"

#include <cjson/cJSON.h>
#include <stdio.h>

enum { CK_RULES = 32, CK_MS = 32, CK_POWERS = 16, CK_NODES = 1 << 14 }; // most of each; nodes of a round
enum ck_verdict { CK_YES, CK_NO, CK_VACUOUS, CK_INAPPLICABLE, CK_UNDECIDED, CK_VERDICTS };
enum ck_where { CK_AT_SEQUENCE, CK_AT_PREFILL, CK_AT_ROUND, CK_IN_ROUND, CK_AFTER_END };
extern const char *const ck_words[CK_VERDICTS];

struct ck_shard { // one open row file
    FILE *file;
    int64_t number;      // -1: none
    uint64_t rows, data; // rows declared; offset of the first byte
    bool absent;
};

struct ck_header { // never changed after line 1
    struct ck_rule rules[CK_RULES], acceptance;
    struct ck_power powers[CK_POWERS];
    int rule_count, rules_made, power_count, powers_made; // read; allocated
    int64_t m[CK_MS];                                     // 0 stands for "tree"
    int m_count;
    // Acceptance: none of the first three is a deterministic rule; standard and nucleus are stochastic.
    bool match, standard, nucleus, stochastic;
    bool greedy, margin, universal, laws[2], all_nodes, has_draft, hashed, audit;
    bool same_temperature, iid, no_proposal, by_draft, leaf_stop, score;
    enum ck_first { CK_NEVER_FIRST, CK_ALWAYS_FIRST, CK_SOMETIMES_FIRST } first; // rounds whose first token came first
    enum ck_budget_kind { CK_NO_BUDGET, CK_TV_BUDGET, CK_REGRET_BUDGET } budget_kind;
    mpq_t top_p, inverse_claim, inverse_draw, limit; // limit: of the fidelity budget
    int64_t top_k, top, cap, budget, vocab;          // cap -1: none; budget: nodes of a tree
    char pattern[2][256];                            // row shards of target and draft; empty when absent
    char sha256[2][65];                              // of the models, for a replay
    bool ready, acceptance_made;                     // rationals, acceptance own memory
};

struct ck_sequence {
    int references; // touched by the main thread only
    int64_t *eos, max_tokens;
    int eos_count;
    uint64_t seed;
    bool has_stop_strings;
};

struct ck_tree { // a round
    int references;
    int count, walked; // nodes; of these, not only scored: the first ones
    int64_t number, t; // t: of the first token
    int64_t first;     // token drawn before the tree was chosen, -1: none
    int *parent, *depth;
    int *children, *eldest; // of a node, among those walked: how many, and the first (0: none)
    int64_t *token;
    int *choice;            // the child the decoder must take at a node: -1 none, -2 not known
    bool *known;            // probabilities of its children are known
    bool *visited;          // a step's node; the main thread's
    struct iv *probability; // of the draw landing on a node, given its parent
    double expected[2];
    bool has_expected, cut, open_question, absent;
    int64_t accepted;
    unsigned long line;
};

struct ck_place { // where a line stands
    enum ck_where where;
    int64_t sequence, t, round, last_token, last_t, accepted, index; // last_t: of the sequence before; index: last row
    int node, next_record; // whose row decides the next token, -1 when over; next node record
    double spent;          // of the fidelity budget, before this step
    bool finished;
    struct ck_sequence *of;
    struct ck_tree *tree;
};

struct ck_outcome { // of a line, or of all so far
    bool failed, row_absent, round_absent, round_open;
    enum hm_check_kind kind;
    unsigned long line;
    uint64_t claims, undecided, said_undecided, open_questions;
    char message[1024], open_reason[320];
};

struct ck_replayed { // a row that was computed again
    float *logit;
    bool asked, known, failed, refuted;
    char field[64], reason[256];
};

enum ck_record { CK_STEP, CK_NODE, CK_ROW_RECORD };

struct ck { // one thread's
    const char *log_path;
    const struct ck_header *header;
    struct ck_place at;
    unsigned long line;
    struct ck_outcome out;
    char prefix[192];                   // "claims[2]." before field names; the longest names a divergence
    unsigned char (*verdicts)[3];       // of the line at hand, for each rule and m; 0xff: none
    const struct ck_replayed *replayed; // [2] in a replay, else NULL
    bool reads_draft;                   // in a replay: but not of the draft
    struct ck_math math, inner;         // inner: the tokens that the draft knows (theory.md §4),
    unsigned long inner_line;           // of the record at this line;
    bool massless;                      // p gives them nothing, and inner is not made
    struct ck_shard shard[2];
};

// jobs.c: what is done with a line, in the order of lines. See there.
struct ck_job {
    struct ck_job *next;
    enum ck_task { CK_RECORD, CK_ROUND_END, CK_OUTCOME } task; // check a record; expected_accept; just report `out`
    enum ck_record record;
    unsigned long line;
    size_t size;     // of the line
    uint64_t offset; // of its end in the log
    cJSON *json;
    struct ck_place at;
    struct ck_replayed replayed[2];
    struct ck_outcome out;
    unsigned char (*verdicts)[3];
    bool done;
};
struct ck_jobs;
struct ck_commit { // called in the order of lines by the thread that submits; false: stop, the log is decided
    bool (*call)(void *user, struct ck_job *job);
    void *user;
};
struct ck_jobs *ck_jobs_start(const struct ck *main, unsigned threads, struct ck_commit commit); // NULL: no memory
bool ck_jobs_submit(struct ck_jobs *jobs, struct ck_job *job); // owns the job; false once a commit was false
bool ck_jobs_drain(struct ck_jobs *jobs);
void ck_jobs_stop(struct ck_jobs *jobs);
struct ck_job *ck_job_make(const struct ck *c, enum ck_task task, size_t verdicts);
void ck_sequence_release(struct ck_sequence *sequence);

// json.c: errors and fields. Every look-up names the field in its error.
void ck_refute(struct ck *c, const char *field, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ck_unreadable(struct ck *c, const char *field, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ck_open(struct ck *c, const char *field); // a question that 4096 bits leave open
size_t ck_enter(struct ck *c, const char *format, ...) __attribute__((format(printf, 2, 3))); // lengthens the prefix
void ck_leave(struct ck *c, size_t before);                              // back to it; kept after an error
cJSON *ck_parse(struct ck *c, const char *text, size_t size);            // NULL after an error
const cJSON *ck_get(struct ck *c, const cJSON *object, const char *key); // required, may be null
bool ck_has(const cJSON *object, const char *key);                       // in exactly these letters
const cJSON *ck_array(struct ck *c, const cJSON *object, const char *key);
const cJSON *ck_object(struct ck *c, const cJSON *object, const char *key);
const char *ck_text(struct ck *c, const cJSON *object, const char *key);                         // "" after an error
void ck_expect_absent(struct ck *c, const cJSON *object, const char *keys, const char *because); // keys: "a b c"
bool ck_bool(struct ck *c, const cJSON *object, const char *key);
int64_t ck_int(struct ck *c, const cJSON *object, const char *key, int64_t least);
int64_t ck_peek(const cJSON *object, const char *key);     // without errors: -1 when it is no integer from 0
double ck_peek_real(const cJSON *object, const char *key); // without errors: 0 when it is none
int64_t ck_integer(struct ck *c, const cJSON *value, const char *field, int64_t least);
double ck_real(struct ck *c, const cJSON *value, const char *field);
bool ck_interval(struct ck *c, const cJSON *object, const char *key, double ends[2]); // checked for width and order
bool ck_enclosure(struct ck *c, const cJSON *object, const char *key, bool bound,
                  double ends[2]);                                                 // bound: [x, "inf"] too
bool ck_bound(struct ck *c, const cJSON *object, const char *key, double ends[2]); // [lower, "inf"]
const char *ck_show(const cJSON *value);                                           // for messages; a static buffer
void ck_expect_int(struct ck *c, const cJSON *object, const char *key, int64_t expected);
bool ck_read_line(FILE *file, char **line, size_t *size, size_t *capacity, bool *complete); // false: end or too long

// rows.c: the row a reference names. Returns true when math.row[which] holds it; false when absent or after an error.
enum ck_reference { CK_NO_ROW, CK_ABSENT_ROW, CK_ROW };
enum ck_reference ck_load_row(struct ck *c, const cJSON *record, const char *key, enum ck_which which);
bool ck_pattern_ok(const char *pattern);
void ck_close_shards(struct ck *c);
bool ck_names_row(const cJSON *reference); // there is a row, kept or not

// header.c
void ck_header(struct ck *c, struct ck_header *header, const cJSON *line);
void ck_header_clear(struct ck_header *header);

struct ck_node { // what a step, node or row record says of its node
    enum ck_record record;
    int node;      // index in the tree, -1 for prefill and rows
    int64_t token; // whose decision claims are about, -1 when there is none
    size_t child_count;
    uint32_t *children;    // [child_count] their tokens
    int *child;            // [child_count] their places in the tree
    bool looked;           // a step at which the walk looks at the children: there are some, and the cap is not reached
    int best;              // under a deterministic rule: the child it would take, -1: none, -2: not known
    int sized;             // is `sure` known?  0: not asked yet, -1: it is open
    size_t sure;           // under nucleus: |A(p)|
    bool charged, relaxed; // there is a charge; the relaxation is in force
    double charge[2];
    bool target, draft; // rows at hand
    bool draft_known;   // the draft scored this node, whether or not its row is at hand
    const char *why;    // why there is no draft row; "" when there is one
    const cJSON *top;
    double pair[3][2]; // kl_pq, kl_qp, tv as logged
    double powers[CK_POWERS][2];
};
// record.c: a step, node or row record, in the order that check.h names
void ck_check_record(struct ck *c, const cJSON *line, enum ck_record record);
void ck_not_certified(struct ck *c, const cJSON *claim, const struct ck_node *node, bool no_children);
void ck_prove(struct ck *c, const cJSON *record, const char *key, ck_quantity *quantity, const struct ck_ask *ask,
              bool rows, double ends[2]); // ends: the logged enclosure
void ck_prove_share(struct ck *c, const cJSON *record, const char *key, ck_quantity *quantity, const struct ck_ask *ask,
                    bool rows, double ends[2]); // of a probability, or of a total variation
void ck_prove_in(struct ck *c, struct ck_math *math, const cJSON *record, const char *key, ck_quantity *quantity,
                 const struct ck_ask *ask, bool rows, double ends[2]);
int64_t ck_entry(struct ck *c, const cJSON *v, const char *field, bool rows, size_t position, float *logit);
enum answer ck_among(struct ck *c, const struct ck_node *node, int64_t token, int64_t k); // is it one of the first k?

// claim.c, threshold.c, verdict.c, restricted.c
void ck_claims(struct ck *c, const cJSON *record, const struct ck_node *node);
void ck_thresholds(struct ck *c, const cJSON *claim, const struct ck_node *node, const struct ck_ask *ask,
                   double star[3][2]);
// Levels and thresholds in a claim or its `restricted`. constant: of the thresholds where there is no level, else NaN.
void ck_levels(struct ck *c, struct ck_math *math, const cJSON *claim, const struct ck_ask *ask, bool rows,
               double constant, ck_quantity *const exact[3], double star[3][2]);
struct ck_case { // what a claim's verdicts depend on
    const struct ck_node *node;
    const struct ck_ask *ask;
    bool tree, first;    // m is the tree's; the proposed tokens are the first m of q
    bool vacuous, never; // k + m exceeds the alphabet; coverage always fails
};
void ck_certified(struct ck *c, const cJSON *claim, const struct ck_node *node, const struct ck_ask *ask, bool tree,
                  bool decided, double star[3][2], unsigned char counts[3]);
typedef enum answer ck_decide(struct ck *c, const struct ck_ask *ask, const void *user);
// One verdict, by `decide` where rows are at hand, else by the logged enclosures.
enum ck_verdict ck_verdict(struct ck *c, const cJSON *certified, const char *field, const struct ck_case *of,
                           const double value[2], const double star[2], ck_decide *decide, const void *user);
void ck_restricted(struct ck *c, const cJSON *claim, const struct ck_case *of);

// emitted.c: the law of the token, and what it costs. docs/log.md "The walk", "Fidelity budgets"
bool ck_size_nucleus(struct ck *c, struct ck_node *node); // node->sure; false when it is open
void ck_budget(struct ck *c, const cJSON *line, struct ck_node *node);
void ck_emitted(struct ck *c, const cJSON *line, struct ck_node *node, int64_t support);

// walk.c, round.c
int ck_carrier(const struct ck_tree *tree, int node, int64_t token); // the first child that carries the token, or -1
void ck_step_place(struct ck *c, const cJSON *line, struct ck_node *node); // one step's place in its round
void ck_support(struct ck *c, const cJSON *line, const struct ck_node *node, int64_t *support);
void ck_best(struct ck *c, struct ck_node *node);                     // node->best
void ck_proposals(struct ck *c, const struct ck_node *node);          // are the children what the draft drew?
void ck_choices(struct ck *c, struct ck_node *node, int64_t support); // what may happen at a node
void ck_walk(struct ck *c, const cJSON *line, const struct ck_node *node, int64_t support); // replays one step
void ck_round(struct ck *c, const cJSON *line);                                             // a new c->at.tree
void ck_round_expect(struct ck *c, struct ck_tree *tree); // expected_accept, once the round's records are checked
struct ck_tree *ck_tree_keep(struct ck_tree *tree);
void ck_tree_release(struct ck_tree *tree);

#endif
