// What the checker carries from line to line, and the helpers that read fields and say what is wrong with them.
//
// Errors are sticky: the first call of ck_refute or ck_unreadable decides, later ones are ignored, and every reader
// returns a harmless value, so that checks can be written one after the other and tested at the end of a block.
#ifndef HM_CERTIFY_CHECK_STATE_H
#define HM_CERTIFY_CHECK_STATE_H

#include "certify/check/check.h"
#include "certify/check/math.h"

#include <cjson/cJSON.h>
#include <stdio.h>

enum { CK_RULES = 32, CK_MS = 32 };
enum ck_verdict { CK_YES, CK_NO, CK_VACUOUS, CK_INAPPLICABLE, CK_UNDECIDED, CK_VERDICTS };
enum ck_where { CK_AT_SEQUENCE, CK_AT_PREFILL, CK_AT_ROUND, CK_IN_ROUND, CK_AFTER_END };

struct ck_shard { // one open row file
    FILE *file;
    int64_t number;      // -1: none
    uint64_t rows, data; // rows declared; offset of the first byte
    bool absent;
};

struct ck_header {
    struct ck_rule rules[CK_RULES], acceptance;
    int rule_count, rules_made; // read; allocated
    int64_t m[CK_MS];           // 0 stands for "tree"
    int m_count;
    bool match, greedy, margin, all_nodes, has_draft, hashed;
    mpq_t top_p;
    int64_t top_k, top, cap, budget; // cap -1: exhaustive
    char pattern[2][256];            // row shards of target and draft; empty when absent
    bool ready, acceptance_made;     // top_p, acceptance own memory
};

enum { CK_NODES = 1 << 14 }; // most nodes of a round

struct ck_tree {                  // the round at hand
    int count, next, next_record; // nodes; node whose row decides the next token, -1 when over; next node record
    int64_t number, first_t, accepted;
    int parent[CK_NODES], depth[CK_NODES];
    int choice[CK_NODES]; // the child the decoder must take at a node: -1 none, -2 not known
    int64_t token[CK_NODES];
    bool visited[CK_NODES], known[CK_NODES]; // a step's node; probabilities of its children are known
    struct iv *probability;                  // [count] of the draw landing on a node, given its parent, 128 bits
    double expected[2];
    bool has_expected, cut, open_question, absent;
    unsigned long line;
};

struct ck {
    struct hm_check_options options;
    struct hm_check_result *result;
    const char *log_path;
    bool failed, row_absent; // row_absent: somewhere
    char prefix[64];         // "claims[2]." before field names
    unsigned long line;
    char chain[65];
    struct ck_header header;
    struct ck_math math;
    struct ck_shard shard[2];
    enum ck_where where;
    struct ck_tree tree;
    // the sequence at hand
    int64_t sequence, t, round, max_tokens, last_token, last_t, *eos; // last_t: of the sequence before
    int eos_count;
    bool finished, has_stop_strings;
    uint64_t seed;
    // counts
    uint64_t rounds, steps, nodes, said_undecided, open_questions;
    uint64_t verdicts[CK_RULES][CK_MS][3][CK_VERDICTS];
    char open_reason[160];
};

// json.c: errors and fields. Every look-up names the field in its error.
void ck_refute(struct ck *c, const char *field, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ck_unreadable(struct ck *c, const char *field, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ck_open(struct ck *c, const char *field);                           // a question that 4096 bits leave open
cJSON *ck_parse(struct ck *c, const char *text, size_t size);            // NULL after an error
const cJSON *ck_get(struct ck *c, const cJSON *object, const char *key); // required, may be null
bool ck_has(const cJSON *object, const char *key);                       // in exactly these letters
const cJSON *ck_array(struct ck *c, const cJSON *object, const char *key);
const cJSON *ck_object(struct ck *c, const cJSON *object, const char *key);
const char *ck_text(struct ck *c, const cJSON *object, const char *key);                         // "" after an error
void ck_expect_absent(struct ck *c, const cJSON *object, const char *keys, const char *because); // keys: "a b c"
bool ck_bool(struct ck *c, const cJSON *object, const char *key);
int64_t ck_int(struct ck *c, const cJSON *object, const char *key, int64_t least);
int64_t ck_integer(struct ck *c, const cJSON *value, const char *field, int64_t least);
double ck_real(struct ck *c, const cJSON *value, const char *field);
bool ck_interval(struct ck *c, const cJSON *object, const char *key, double ends[2]); // checked for width and order
const char *ck_show(const cJSON *value);                                              // for messages; a static buffer
void ck_expect_int(struct ck *c, const cJSON *object, const char *key, int64_t expected);
bool ck_read_line(FILE *file, char **line, size_t *size, size_t *capacity, bool *complete); // false: end or too long

// rows.c: the row a reference names. Returns true when math.row[which] holds it; false when absent or after an error.
enum ck_reference { CK_NO_ROW, CK_ABSENT_ROW, CK_ROW };
enum ck_reference ck_load_row(struct ck *c, const cJSON *record, const char *key, enum ck_which which);
bool ck_pattern_ok(const char *pattern);
void ck_close_shards(struct ck *c);

// header.c, claims.c, walk.c: records
void ck_header(struct ck *c, const cJSON *line);
void ck_header_clear(struct ck *c);
struct ck_node {   // what a step or node record says of its node
    int node;      // index in the tree, -1 for prefill
    int64_t token; // -1 for node records
    size_t child_count;
    bool target, draft; // rows at hand
    bool draft_known;   // the draft scored this node, whether or not its row is at hand
    const char *why;    // why there is no draft row; "" when there is one
    const cJSON *top;
};
// check.c: the reason that a claim gives for `certified` null
void ck_not_certified(struct ck *c, const cJSON *claim, const struct ck_node *node, bool no_children);
void ck_claims(struct ck *c, const cJSON *record, struct ck_node *node);
void ck_prove(struct ck *c, const cJSON *record, const char *key, ck_quantity *quantity, const struct ck_ask *ask,
              bool rows, double ends[2]); // ends: the logged enclosure
bool ck_child_token(const struct ck *c, const struct ck_node *node, int child, int64_t *token); // is it one of node's?
void ck_round(struct ck *c, const cJSON *line);
void ck_step_place(struct ck *c, const cJSON *line, struct ck_node *node); // one step's place in its round
void ck_support(struct ck *c, const cJSON *line, const struct ck_node *node, int64_t *support);
void ck_choices(struct ck *c, const struct ck_node *node, int64_t support);                 // what may happen at a node
void ck_walk(struct ck *c, const cJSON *line, const struct ck_node *node, int64_t support); // replays one step
void ck_round_end(struct ck *c); // before the next record that is not of this round
void ck_tree_clear(struct ck *c);

#endif
