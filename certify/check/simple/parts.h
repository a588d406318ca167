// What the files of this checker share; simple.h says in which order to read them.
// clang-format off
#ifndef HM_CERTIFY_CHECK_SIMPLE_PARTS_H
#define HM_CERTIFY_CHECK_SIMPLE_PARTS_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "simple.h"
#pragma GCC diagnostic ignored "-Wunused-parameter" // terms of a sum use what they need

#include <cjson/cJSON.h>
#include <gmp.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpfr.h>

#define CHUNK ((size_t)1 << 20) // bytes of the first chunk of the stack
enum { RULES = 32, DIVERGENCES = 16, NODES = 1 << 14, CHANCE_BITS = 256, ROWS = 4, CHUNKS = 24, RATIONALS = 128 };
enum { CHAIN_TAIL = 76, ANY = 0xff }; // length of ,"chain":"..."}; every JSON type
enum answer { NO, YES, OPEN };
enum which { TARGET, DRAFT, DRAW, RESTRICTED }; // p, q, p as it is drawn from, p on the draft's vocabulary
enum threshold { KLF, KLR, TV, DIVERGENCE, OTHER };
enum verdict { V_YES, V_NO, V_VACUOUS, V_INAPPLICABLE, V_UNDECIDED, VERDICTS };
enum where { AT_SEQUENCE, AT_PREFILL, AT_ROUND, IN_ROUND, AFTER_END };
enum form { LOGARITHM, ONE_LESS, LESS_ONE, LARGEST, SPREAD }; // of a divergence

struct mark { int chunk; size_t used; };
struct ends { double lo, hi; }; // a logged enclosure
struct real { mpfr_t lo, hi; };
typedef const struct real *real; // an enclosure, on the stack of interval.c
struct ask;
typedef real quantity(const struct ask *a);                 // what is claimed, at the precision of the attempt
typedef real term(const struct ask *a, size_t j, size_t i); // of a sum: token i at place j of the order of p
#define TERM(name) static real name(const struct ask *a, size_t j, size_t i)

struct row {
    float *logit;            // [vocab] finite or -inf
    uint32_t *order, *rank;  // the order, and where a token is in it
    size_t count, finite;    // length of the order; tokens of positive probability, the first of it
    mpq_ptr inverse;         // 1/T
    struct real *p, log_sum; // [vocab] probabilities by token, ln sum exp((l - l_first)/T); both at `precision`
    mpfr_prec_t precision;
    bool here;
};

struct rule_kind {
    const char *name;
    int counts, rationals, range;
    enum answer (*member)(const struct ask *a);
    quantity *radius;
    char universal;
};
struct rule { const struct rule_kind *kind; size_t count; bool counted; mpq_ptr a, b; char text[112]; };
struct divergence { enum form form; mpq_ptr order, scale; char text[112]; };

struct ask { // the arguments of a quantity; each uses what it needs
    const struct row *p, *q, *whole; // whole: p, when p is restricted
    const struct rule *rule;
    const struct divergence *divergence;
    size_t k, m, size, token, at; // size: of the vocabulary or the support; at: a place in the order
    const uint32_t *proposed;     // tokens
    size_t proposals;
    bool tree, first, draft, rows; // m from the tree; its children are the first m of q; rows that are there
    mpq_srcptr order;              // of a power mean
    real x, z;                     // its level, or other numbers
    double eta;                    // noise
    bool flag, raw;
    int part;
    quantity *value, *star;
    char *tried;
};

struct node { // what a record says of its node
    int index, carrier; // -1 for prefill; the child that carries the token
    int64_t token;      // -1: none
    size_t children;
    uint32_t proposed[NODES]; // their tokens
    bool target, draft, draft_known, counted;
    const char *why;
    const cJSON *top;
    struct ends divergence[DIVERGENCES];
};

struct tree { // the round at hand
    int count, next, next_record, parent[NODES], depth[NODES];
    int choice[NODES]; // child to take, -1 none, -2 unknown
    int64_t token[NODES], number, accepted;
    bool visited[NODES], known[NODES], drawable[NODES], cut, open, absent, has_expected;
    struct real chance[NODES]; // of the draw landing here, given the parent
    mp_limb_t limbs[NODES][2][CHANCE_BITS / GMP_NUMB_BITS];
    struct ends expected;
    uint64_t line;
};

struct run {
    jmp_buf failed;
    struct hm_simple_result *result;
    const char *path;
    char prefix[64], chain[65], reason[256];
    uint64_t line, open, said_undecided;
    bool row_absent;
    char *chunk[CHUNKS];
    struct mark top, base; // base: what lasts as long as the run
    mpfr_prec_t precision;
    cJSON *line_json, *sequence_json, *shard_json;
    const float *sorting;
    mpq_t rationals[RATIONALS];
    int rational_count;
    // header
    struct rule rule[RULES], acceptance;
    struct divergence divergence[DIVERGENCES];
    int rules, ms, divergences;
    int64_t m[RULES], top_k, top_count, cap, budget; // m 0: from the tree; cap -1: none
    bool match, greedy, margin, universal, all_nodes, has_draft, hashed, audit, law[2];
    mpq_ptr top_p, zero, one, u; // u: the random number of a draw
    char pattern[2][256];
    size_t vocab;
    struct row row[ROWS];
    struct shard { FILE *file; int64_t number; uint64_t rows, data; } shard[2];
    // where the log is
    enum where where;
    struct tree tree[1];
    struct node node[1];
    int64_t sequence, t, round, last_token, last_t, index;
    uint64_t seed, rounds, nodes, rows, verdicts[RULES][RULES][3][VERDICTS];
    bool finished;
};
extern _Thread_local struct run *run;

// interval.c
void *sc_alloc(size_t size), r_release(struct mark mark);
void r_copy(struct real *to, real x), r_into(struct real *sum, real x);
struct mark r_mark(void);
struct real *r_zero(void);
real r_number(double x), r_rational(mpq_srcptr q), r_add(real a, real b), r_sub(real a, real b), r_mul(real a, real b);
real r_div(real a, real b), r_times(real a, size_t n), r_min(real a, real b), r_max(real a, real b);
real r_hull(real a, real b), r_negative(real a), r_positive(real a), r_exp(real a), r_log(real a);
real r_widen(real x, real by), r_end(real x, bool upper);
bool r_is(real a, double x);
// log.c
void sc_need(bool holds, const char *field, const char *expected);
void sc_must(bool holds, const char *field, const char *expected);
void sc_open(bool open, const char *field);
bool sc_like(const char *text, const char *pattern), sc_encloses(struct ends e, real x, const char *key);
const cJSON *sc_parse(cJSON **keep, const char *text, size_t size, const char *field);
const cJSON *sc_find(const cJSON *object, const char *key), *sc_get(const cJSON *object, const char *key, int type);
const char *sc_text(const cJSON *object, const char *key);
int64_t sc_integer(const cJSON *v, const char *key, int64_t least);
int64_t sc_int(const cJSON *object, const char *key, int64_t least);
void sc_is_int(const cJSON *object, const char *key, int64_t expected);
void sc_is_text(const cJSON *object, const char *key, const char *expected);
void sc_absent(const cJSON *object, const char *keys, const char *because);
int sc_word(const cJSON *object, const char *key, const char *const *words);
double sc_real(const cJSON *v, const char *key);
struct ends sc_enclosure(const cJSON *object, const char *key, bool bound);
struct ends sc_prove(const cJSON *object, const char *key, quantity *value, const struct ask *ask, bool rows);
enum answer sc_decide(quantity *value, const struct ask *ask);
void sc_hash(const char *before, const void *bytes, size_t size, char hex[65]);
void sc_chain(const char *text, size_t size, const cJSON *line);
bool sc_read_line(FILE *file, char *text, size_t *size);
// row.c
bool sc_load(const cJSON *record, const char *key, enum which which, bool *absent);
void sc_order(struct row *r, const struct row *draft), sc_weigh(struct row *r);
real sc_z(const struct row *r, size_t token), sc_log_p(const struct row *r, size_t token);
real sc_sum(term *value, const struct ask *a, size_t from, size_t to);
real sc_mass(const struct row *p, size_t from, size_t to);
bool sc_level(const struct row *r, size_t from, size_t to), sc_same_law(const struct row *p, const struct row *q);
// rule.c, theory.c, law.c
mpq_ptr sc_rational(const char *text, const char *field);
void sc_rule(struct rule *r, const char *text, const char *field);
void sc_divergence(struct divergence *d, const char *text);
int sc_compare(size_t n, mpq_srcptr q, size_t with);
enum answer sc_member(struct ask a), sc_eps_is_active(const struct ask *a);
void sc_radius(const cJSON *claim, struct ask a, bool rows);
quantity q_lse, q_entropy, q_regret, q_kl_pq, q_kl_qp, q_tv, q_standard_accept, q_divergence, q_divergence_star;
quantity q_level_f, q_level_r, q_klf, q_klr, q_tv_star, q_mass, q_klr_restricted, q_tv_restricted, q_tv_whole;
quantity q_margin, q_universal, q_below_threshold, q_law_iid, q_law_topk;
void sc_tied(const struct ask *ask, mpq_srcptr order, size_t range[4]);
enum answer sc_certifies(struct ask a, enum threshold which, quantity *value, quantity *star);
// claim.c, walk.c
extern const char *const sc_verdicts[], *const sc_thresholds[];
void sc_claims(const cJSON *record, struct node *n), sc_walk(const cJSON *line, struct node *n);
void sc_node(const cJSON *line, struct node *n), sc_round(const cJSON *line), sc_round_end(void);
#endif
