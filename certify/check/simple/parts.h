// What the parts of this checker share: their types, the state of the run, and its three ways to complain.
#ifndef HM_CERTIFY_CHECK_SIMPLE_PARTS_H
#define HM_CERTIFY_CHECK_SIMPLE_PARTS_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "simple.h"
#pragma GCC diagnostic ignored "-Wunused-parameter" // terms of a sum use what they need

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <openssl/sha.h>
#include <regex.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <mpfr.h>

// clang-format off
enum { RULES = 32, DIVERGENCES = 16, NODES = 1 << 14, RATIONALS = 128, LINE_LIMIT = 1 << 24, ANY = 0xff }; // every type
enum { LEAST_BITS = 128, MOST_BITS = 4096, EXACT = 1024 }; // EXACT: bits that hold sums and means of logits
#define ROOM ((size_t)1 << 36)                             // of the stack of numbers; memory is taken as it is used
enum answer { NO, YES, OPEN };
enum which { TARGET, DRAFT, DRAW, RESTRICTED, NOISY, ROWS }; // p, q; p as drawn from, on the draft's ids, disturbed
enum threshold { KLF, KLR, TV, DIVERGENCE, OTHER };
enum verdict { V_YES, V_NO, V_VACUOUS, V_INAPPLICABLE, V_UNDECIDED, VERDICTS };
enum where { AT_SEQUENCE, AT_PREFILL, AT_ROUND, IN_ROUND, AFTER_END };
enum form { LOGARITHM, ONE_LESS, LESS_ONE, LARGEST, SPREAD }; // of a divergence
enum limit { UNLIMITED, LIMIT_TV, LIMIT_REGRET };             // what a fidelity budget is about
enum selection { BY_DRAFT, BY_ROOT, ROOT_DRAW, PEARL, COVERING };
enum proposal { TOPK, IID, NONE };
enum purpose { OF_TARGET, OF_DRAFT, COIN, RESIDUAL };         // of a random number

struct ends { double lo, hi; }; // a logged enclosure
struct real { mpfr_t lo, hi; };
typedef const struct real *real; // an enclosure, on the stack
struct ask;
typedef real quantity(const struct ask *a);                 // what is claimed, at the precision of the attempt
typedef real term(const struct ask *a, size_t j, size_t i); // of a sum: token i at place j of the order of p
#define TERM(name) static real name(const struct ask *a, size_t j, size_t i)

struct row {
    float *logit;           // [vocab] finite or -inf
    signed char *shift;     // [vocab] times `noise` is added to the logit
    double noise;
    uint32_t *order, *rank; // place 0 of the order is the likeliest token; where a token is in it
    size_t count, finite;   // length of the order; tokens of positive probability, the first of it
    mpq_ptr inverse;        // 1/T
    struct real *p;         // [vocab + 1] probabilities by token, then ln sum exp((l - l_first)/T); all at `precision`
    void *limbs;            // of p
    mpfr_prec_t precision;
    bool here;
};

struct rule_kind { const char *name; int counts, rationals; char range; quantity *slack; char universal; };
struct rule { const struct rule_kind *kind; size_t count; mpq_ptr a, b; char text[112]; };
struct divergence { enum form form; mpq_ptr order, scale; char text[112]; };

struct ask { // the arguments of a quantity; each uses what it needs
    const struct row *p, *q, *whole; // whole: p, when p is restricted, or undisturbed
    const struct rule *rule;
    const struct divergence *divergence;
    size_t k, m, size, token, at, rival, proposals; // size: of vocabulary or support; at, rival: places in the order
    const uint32_t *proposed;                       // tokens
    bool tree, first, draft, rows, flag; // m from the tree; its children are the first m of q; rows that are there
    bool iid;                            // proposals are draws from q, else the point masses `proposed`
    mpq_srcptr order;                    // of a power mean
    real x, z, up, down;                 // its level, or other numbers
    int part;
    quantity *value, *star;
};

// Numbers by token, and which question they answer. Of a law: those of the emitted token, the probability that a
// proposal is accepted, and whether the relaxation may have changed one. Of a residual: what is left after `step`.
struct vector {
    struct real *x; // [vocab + 1]
    void *limbs;
    uint64_t line;
    mpfr_prec_t precision;
    size_t k, m, step;
    bool iid, tree, changed, permuted;
};

struct node { // what a record says of its node
    int index, carrier; // -1 for prefill; the first child that carries the token
    int64_t token;      // -1: none
    size_t children, k; // k: of the acceptance, if that is `nucleus`
    uint32_t proposed[NODES]; // the children's tokens
    bool target, draft, draft_known, counted;
    bool repeats, looks, relaxed; // two children carry the same; the walk looks at them; the relaxation is in force
    const char *why;
    const cJSON *top;
    struct ends distance[3], divergence[DIVERGENCES];
};

struct tree { // the round at hand
    int count, verified, next, next_record, parent[NODES], depth[NODES]; // the others were only scored
    int choice[NODES]; // child to take, -1 none, -2 unknown
    int64_t token[NODES], number, accepted, t, first; // first: -1, or drawn before the tree was chosen
    bool visited[NODES], known[NODES], inner[NODES], cut, open, absent, has_expected; // inner: with children
    real chance[NODES]; // of the draw landing here, given the parent; NULL: none
    struct ends expected;
    uint64_t line;
};

struct run {
    jmp_buf failed;
    struct hm_simple_result *result;
    const char *path;
    char prefix[64], chain[65], reason[256], pattern[2][256], *stack;
    size_t vocab, used, base, kept; // used: of the stack; base, kept: without and with what lasts as long as a round
    uint64_t line, open, said_undecided;
    mpfr_prec_t precision;
    cJSON *line_json, *sequence_json, *shard_json;
    const float *sorting; // the logits by which a row is being put in order
    mpq_t rationals[RATIONALS];
    // header
    struct rule rule[RULES], acceptance;
    struct divergence divergence[DIVERGENCES];
    int rules, ms, divergences, rational_count;
    int64_t m[RULES], top_k, top_count, cap, budget; // m 0: from the tree; cap -1: none
    bool match, standard, nucleus, greedy, margin, universal, all_nodes, has_draft, hashed, audit, law[2];
    bool iid, leaf_stop, scores;
    enum selection selection;
    enum proposal proposal;
    enum limit limited;
    mpq_ptr top_p, zero, one, u, limit, reserve, sum; // u: a random number; reserve: R of the page
    struct vector output, residual;
    struct row row[ROWS];
    struct shard { FILE *file; int64_t number; uint64_t rows, data; } shard[2];
    // where the log is
    enum where where;
    struct tree tree[1]; // of the round
    struct node node[1]; // of the record
    int64_t sequence, t, round, last_token, last_sequence, last_t, index;
    uint64_t seed, rounds, nodes, rows, verdicts[RULES][RULES][3][VERDICTS];
    double spent;
    bool finished, row_absent;
};
// clang-format on
static _Thread_local struct run *run;

static void fail(enum hm_simple_kind kind, const char *field, const char *text) {
    struct hm_simple_result *r = run->result;
    const char *word = kind == HM_SIMPLE_REFUTED ? "REFUTED" : "UNREADABLE";
    unsigned long long line = r->line = run->line;
    r->kind = kind;
    snprintf(r->message, sizeof r->message, "%s line %llu: %s%s: %s", word, line, run->prefix, field, text);
    for (char *p = r->message; *p; p++)
        if (*p < ' ' || *p > '~') *p = '?'; // what a log says must not move a terminal
    longjmp(run->failed, 1);
}

// The first error ends the run: `need` says that a line cannot be read, `must` that it is wrong.
static void need(bool holds, const char *field) {
    if (!holds) fail(HM_SIMPLE_UNREADABLE, field, "not what docs/log.md says");
}

static void must(bool holds, const char *field) {
    if (!holds) fail(HM_SIMPLE_REFUTED, field, "not what the rows and the other fields say");
}

static void leave_open(bool open, const char *field) { // a question that stays open at the highest precision
    unsigned long long line = run->line;
    if (open && run->open++ == 0)
        snprintf(run->reason, sizeof run->reason, "line %llu: %s%s", line, run->prefix, field);
}
#endif
