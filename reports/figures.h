// Everything a report says, as numbers and kept texts, gathered from logs in one pass (reports/aggregate.c) and read by
// the writers. Its size is bounded whatever the length of the logs.
#ifndef HM_REPORTS_FIGURES_H
#define HM_REPORTS_FIGURES_H

#include "base/sha256.h"
#include "bounds/ival.h"
#include "certify/log_reader.h"
#include "base/histogram.h"
#include "reports/course.h"
#include "reports/example.h"
#include "reports/findings.h"
#include "reports/number.h"
#include "reports/region.h"
#include "reports/rounds.h"
#include "reports/requirement.h"
#include "reports/speculative.h"
#include "reports/theory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HM_REPORT_MOST_TOKENS = 12000,    // tokens shown one by one, the newest
    HM_REPORT_MOST_CLAIMS = 48000,    // claims of these tokens: with many rules fewer tokens are shown
    HM_REPORT_BLOCK = 64,             // tokens of a block: what is forgotten together, and then summarised
    HM_REPORT_MOST_BLOCKS = 6000,     // above twice the sequences: what is too many is joined in pairs
    HM_REPORT_MOST_SEQUENCES = 2000,  // sequences listed
    HM_REPORT_MOST_GROUPS = 64,       // categories told apart; later ones count as "other"
    HM_REPORT_MOST_TEXT = 1 << 20,    // bytes of token text shown
    HM_REPORT_LONGEST_TOKEN = 400,    // bytes kept of one token's text
    HM_REPORT_LONGEST_NAME = 160,     // bytes kept of a name, an id, a rule
    HM_REPORT_DEPTHS = 65,            // depths told apart; deeper ones count as the last
    HM_REPORT_BANDS = 8,
    HM_REPORT_CLOSEST = 12,
    HM_REPORT_MISSED = 40             // uncertified steps listed, of each status
};

// What one claim says about one token. Each step has exactly one of these, so their counts add up to the steps.
enum hm_token_status {
    HM_TOKEN_CERTIFIED,    // at least one of the three divergences certifies it
    HM_TOKEN_COVERED,      // a proposed token lies in A, but none of the three certifies it
    HM_TOKEN_UNCOVERED,    // no proposed token lies in A
    HM_TOKEN_NO_DRAFT,     // no draft row here: prefill, leaf, a drafter without a distribution
    HM_TOKEN_VACUOUS,      // coverage cannot fail, whatever the draft: not counted as certified
    HM_TOKEN_INAPPLICABLE, // the children are not the first m of the draft's order
    HM_TOKEN_UNDECIDED,    // exact arithmetic gave up
    HM_TOKEN_STATUSES
};

struct hm_claim_figures {
    char *rule;
    int64_t m;                                    // HM_M_TREE or a fixed number
    uint64_t status[HM_TOKEN_STATUSES];
    uint64_t with_draft;                          // steps with verdicts
    uint64_t certified_any;                       // of these, `yes` for at least one divergence
    uint64_t covered[3];                          // [enum hm_verdict]
    uint64_t accepts[3];                          // [enum hm_verdict], of all steps
    uint64_t verdict[3][5];                       // [forward, reverse, TV][enum hm_certified]
    struct hm_known known;                        // steps to which the claim applies
    struct hm_known gap[HM_REPORT_BANDS], logit[HM_REPORT_BANDS]; // by p_(k) - p_(k+1); by the edge logits' difference
    uint64_t gap_steps;                           // steps in `gap`: when 0, only `logit` is known
    struct hm_histogram klf, klr, tv;             // lower ends of KLf*, KLr*, TV* of all steps, draft row or not
    struct hm_histogram draft, draft_klr, draft_tv; // upper ends of KL(p||q), KL(q||p), TV at the steps with verdicts
    struct hm_histogram radius;                   // lower ends
    struct hm_regions regions;                    // the steps nearest to the line between certified and not
    struct hm_claim_theory theory;
};

// Rounds: what speculation achieved. Rounds cut off by the end of a truncated log are left out.
struct hm_acceptance {
    uint64_t rounds, cut;          // counted; left out
    uint64_t ended;                // rounds whose last tokens the end of a sequence cut off
    uint64_t accepted, emitted;    // tokens
    uint64_t verified, pool;       // nodes
    uint64_t with_tree, full;      // rounds with at least one node; of these, accepted down to the deepest node
    uint64_t reach[HM_REPORT_DEPTHS];   // rounds with at least d accepted
    uint64_t offered[HM_REPORT_DEPTHS]; // rounds with a node at depth d
    uint64_t nodes[HM_REPORT_DEPTHS];   // verified nodes at depth d
    uint64_t by_count[HM_REPORT_DEPTHS]; // rounds with exactly that many accepted
    struct hm_sum expected;        // expected_accept where logged: before the end of a sequence cuts a round
    uint64_t expected_accepted;    // accepted and emitted in the same rounds
    double draft_seconds, verify_seconds;
    uint64_t timed;                // rounds with both times
};

// One row of a breakdown: by category, by log.
struct hm_report_group {
    char *name;
    uint64_t sequences, steps, rounds, accepted, emitted;
    uint64_t with_draft, certified, vacuous, undecided; // of the lead claim
    struct hm_course_group course;                      // its finished sequences
};

// A token kept for display, with its claims at claim .. claim + claim_count of the report.
struct hm_kept_token {
    uint32_t text, text_size;      // in the text of its block
    uint32_t id, t;
    int32_t round;                 // -1: prefill
    uint16_t depth;
    uint8_t source, finish;        // enum hm_source, enum hm_finish
    bool has_draft, has_regret;
    struct hm_ival entropy, kl_pq, kl_qp, tv, regret;
};

struct hm_kept_claim {
    uint32_t m, k;
    uint8_t status;                // enum hm_token_status
    uint8_t accepts, covered;      // enum hm_verdict
    bool has_verdicts, has_distances, has_radius;
    uint8_t certified[3];          // enum hm_certified
    struct hm_ival klf, klr, tv, radius;
};

// Consecutive tokens of one sequence. The newest blocks have their tokens; of the older ones only this is left.
struct hm_kept_block {
    uint32_t sequence;             // into hm_report.kept
    uint32_t t, tokens;            // its first token, and how many
    uint32_t status[HM_TOKEN_STATUSES]; // of the lead claim
    uint32_t closest;              // t of the least noise that could turn a step, where `radius` is finite
    double radius;                 // that noise, as in hm_close_step; +inf where no step has one
    double regret;                 // the largest, upper end; -1 where none is logged
    struct hm_kept_token *token;   // [tokens], with its claims [tokens * claim_count] and text; NULL: summarised
    struct hm_kept_claim *claim;
    char *text;
    size_t token_capacity, claim_capacity, text_size, text_capacity;
};

struct hm_kept_sequence {
    size_t log;                    // into hm_report.logs
    char *id, *category;
    uint32_t sequence, turn;
    uint64_t steps, status[HM_TOKEN_STATUSES]; // of the lead claim
    size_t block, blocks;          // in hm_report.block
    enum hm_finish finish;         // HM_FINISH_NONE: cut off
    struct hm_course course;       // what relaxation cost it
};

// A step whose decision the least noise would turn.
struct hm_close_step {
    size_t log, line;
    uint32_t sequence, t, token;
    char text[64];
    double radius;                 // lower end, in logits
    struct hm_record_logit top[2];
    uint8_t status;                // of the lead claim
};

// A step or an audit's row that the lead claim does not certify, and by how much it fails to.
struct hm_missed_step {
    size_t log, line;
    int64_t index;                 // of a row; -1: a step
    int64_t sequence, t, token;
    char text[64];
    uint8_t status;                // enum hm_token_status
    uint8_t certified[3];          // enum hm_certified
    int64_t k, m;
    bool has_draft, has_limits;
    double distance[3], limit[3];  // upper ends of KLf, KLr, TV; lower ends of KLf*, KLr*, TV*
};

struct hm_report_log {
    char *path;
    enum hm_log_state state;
    size_t lines;                  // whole lines
    char chain[HM_SHA256_HEX];     // of the last whole line
    struct hm_record_header header; // strings owned by the report
    bool has_end;
    struct hm_record_end end;
    uint64_t unfinished;           // sequences without a finishing step
    uint64_t steps, sequences;
};

struct hm_report {
    struct hm_report_log *logs;
    size_t log_count, log_capacity;
    struct hm_claim_figures *claims; // rules outer, m inner, as in every header
    size_t claim_count, lead;        // lead: the claim whose rule is the acceptance rule, else the first
    struct hm_acceptance acceptance;
    uint64_t sequences, steps, nodes, prefill, continuations, undecided; // steps: an audit's rows too
    uint64_t rows;                   // of these, audited rows
    struct hm_report_theory theory;
    struct hm_report_speculative speculative;
    struct hm_histogram kl_pq, kl_qp, tv, entropy; // upper ends of the draft's distances; upper ends of the entropy
    struct hm_sum sum_kl_pq, sum_kl_qp, sum_tv, regret;
    double regret_most;              // upper end
    uint64_t accepted_not_first;     // accepted tokens that are not the row's first
    uint64_t accepted_known;         // accepted tokens whose row lists its first
    struct hm_report_group categories[HM_REPORT_MOST_GROUPS], *by_log;
    size_t category_count;
    struct hm_close_step closest[HM_REPORT_CLOSEST]; // ascending
    size_t closest_count;
    bool closest_by_radius;          // else by half the difference of the two largest logits
    struct hm_missed_step *missed[HM_TOKEN_STATUSES]; // the first of each status that is not certified
    size_t missed_count[HM_TOKEN_STATUSES];
    struct hm_report_course course;  // cumulative means over finished sequences
    struct hm_report_rounds rounds;  // trees to show
    struct hm_sum regret_accepted;   // of accepted tokens alone
    double certify_seconds;          // -1: no log says
    struct hm_example example[2];    // on two and three tokens, for teaching

    struct hm_findings findings;     // of comparisons and audits, beside the logs or alone

    struct hm_kept_sequence *kept;
    size_t kept_count, kept_capacity;
    struct hm_kept_block *block;     // in the order of the sequences
    size_t block_count, block_capacity, block_tokens; // block_tokens: of a block, doubled when there are too many
    size_t block_old;                // the first so many are summarised
    size_t token_count, token_limit; // tokens with details
    size_t text_size;                // bytes of their texts
};

// Lower edges of the bands; the first is 0.
extern const double HM_GAP_EDGES[HM_REPORT_BANDS], HM_LOGIT_EDGES[HM_REPORT_BANDS];

// What one claim says about its token.
enum hm_token_status hm_token_status(const struct hm_record_claim *claim);

// Whether some claim has verdicts: false for plain decoding and for drafters without a distribution.
bool hm_report_has_draft_rows(const struct hm_report *report);

// Whether all logs are audits: rows alone, without a decoder, text, rounds or acceptance.
bool hm_report_audit(const struct hm_report *report);

// Whether some claim is also certified on a reduced draft vocabulary.
bool hm_report_has_restricted(const struct hm_report *report);

// "all 12 steps" or "3 of 12 steps": where KL(p||q) is infinite since the draft's vocabulary is reduced. "" when nowhere.
struct hm_number hm_report_infinite(const struct hm_report *report);

// What one step of the report is called, for hm_number_of: "token", or "row" in an audit.
const char *hm_report_noun(const struct hm_report *report);

// The first header with a fidelity budget, or NULL.
const struct hm_record_header *hm_report_budget(const struct hm_report *report);

// Do trees differ from what the draft alone would choose and an exhaustive walk would use: first tokens drawn before, nodes
// only scored, walks that stop early? Then coverage is worth a line.
bool hm_report_has_coverage(const struct hm_report *report);

// "tree" or the number, in the caller's buffer; and "accepted", ... for an enum hm_source.
const char *hm_m_text(int64_t m, char buffer[24]);
const char *hm_source_text(unsigned source);

// The parts of theory.h and speculative.h in two other languages (markdown_*.c, json_*.c).
struct hm_output;
void hm_markdown_theory(struct hm_output *o, const struct hm_report *r);
void hm_json_sum(struct hm_output *o, const char *key, const struct hm_sum *sum, const char *after); // report_json.c
void hm_json_theory(struct hm_output *o, const struct hm_report *r);           // an object
void hm_markdown_speculative(struct hm_output *o, const struct hm_report *r);
void hm_json_speculative(struct hm_output *o, const struct hm_report *r);      // two members
void hm_json_claim_theory(struct hm_output *o, const struct hm_report *r, const struct hm_claim_figures *f); // likewise
void hm_markdown_requirement(struct hm_output *o, const struct hm_report *r);
void hm_json_known(struct hm_output *o, const struct hm_known *known);                       // three members
void hm_json_claim_requirement(struct hm_output *o, const struct hm_claim_figures *f);       // three members
void hm_json_examples(struct hm_output *o, const struct hm_report *r);                       // an object

#endif
