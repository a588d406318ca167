// The mathematics of docs/theory.md over one target row p and one draft row q, naively and at any precision.
//
// Everything is computed from unnormalised weights E_i = exp((l_i - l_first)/T), which keeps equal logits equal and the
// first weight exactly 1. `level` below is a step of precision: 128 << level bits. Quantities return false when that
// precision cannot answer; the caller then tries the next one.
#ifndef HM_CERTIFY_CHECK_MATH_H
#define HM_CERTIFY_CHECK_MATH_H

#include "certify/check/interval.h"

#include <stdbool.h>
#include <stdint.h>

enum { CK_LEVELS = 6 };                         // 128, 256, 512, 1024, 2048, 4096 bits
enum ck_which { CK_TARGET, CK_DRAFT, CK_DRAW }; // CK_DRAW: the target row at the sampling temperature
enum ck_divergence { CK_KLF, CK_KLR, CK_TV };

struct ck_row {
    float *logit;           // [vocab]; finite or -inf, at least one finite
    uint32_t *order, *rank; // [vocab] token at a position of the order, and the inverse
    size_t finite;          // tokens of positive probability: the first ones of the order
};

struct ck_dist { // one row at one temperature and precision
    bool ready;
    struct iv *e;                   // [vocab] weights by token
    struct iv sum, log_sum, moment; // sum E, its logarithm, sum E ln E
};

struct ck_pair { // what two rows say of each other
    bool ready;
    struct iv v[3]; // KL(p||q), KL(q||p), TV(p,q)
};

struct ck_math {
    size_t vocab;
    mpq_t inverse_claim, inverse_draw; // 1/T for claims, 1/temperature for draws
    bool same_temperature;
    struct ck_row row[2];
    struct ck_dist dist[3][CK_LEVELS];
    struct ck_pair pair[CK_LEVELS];
};

// One acceptance rule.
enum ck_rule_kind { CK_GREEDY, CK_ADDITIVE, CK_MULTIPLICATIVE, CK_TOPM, CK_ENTROPY, CK_NUCLEUS, CK_TOPK_DELTA };
struct ck_rule {
    enum ck_rule_kind kind;
    unsigned long count; // topm, topk-delta
    mpq_t a, b;          // eps, alpha, P or d; entropy: eps, delta
    char text[96];
};

struct ck_ask { // the arguments of a quantity; each uses what it needs
    size_t k, m, token;
    const struct ck_rule *rule;
};
typedef bool ck_quantity(struct ck_math *math, int level, const struct ck_ask *ask, struct iv *out);

bool ck_math_init(struct ck_math *math, size_t vocab); // false: no memory. Temperatures are set by the caller.
void ck_math_clear(struct ck_math *math);
void ck_math_new_row(struct ck_math *math, enum ck_which which); // after row[which].logit was filled
mpfr_prec_t ck_precision(int level);
const struct ck_dist *ck_dist(struct ck_math *math, enum ck_which which, int level);
void ck_sum_order(const struct ck_dist *d, const struct ck_row *row, size_t from, size_t to, struct iv *sum);
void ck_z(const struct ck_math *math, enum ck_which which, size_t token, struct iv *z); // (l - l_first)/T

ck_quantity ck_lse, ck_entropy, ck_kl_pq, ck_kl_qp, ck_tv_pq, ck_regret; // theory.md §1
ck_quantity ck_level_f, ck_level_r, ck_klf, ck_klr, ck_tv;               // §2; 1 <= k and k + m <= vocab
ck_quantity ck_margin_gap, ck_margin_klf, ck_margin_klr, ck_margin_tv;   // §3
ck_quantity ck_radius;                                                   // §6, closed forms

// The sizes [a, s] a tied set may have: tokens within 2^-30 of the level may fall either way. range: a from [0] to [1],
// s from [2] to [3]. OPEN when no precision separates the level.
enum answer ck_tied(struct ck_math *math, const struct ck_ask *ask, bool reverse, size_t range[4]);
// Is the divergence between p and q below its threshold?  (§8, identities first)
enum answer ck_certifies(struct ck_math *math, const struct ck_ask *ask, enum ck_divergence which);

bool ck_rule_parse(const char *text, struct ck_rule *rule); // the caller clears it either way
void ck_rule_clear(struct ck_rule *rule);
bool ck_rational(const char *text, mpq_t out); // "3/10", "2"; false when malformed
// Is the token at this position of the target's order in A(p)?  (§1, §8)
enum answer ck_member(struct ck_math *math, const struct ck_rule *rule, size_t position);
// Does the logged radius [lo, hi] of a decision about a token enclose the true one?  Kinds without a closed form (§6).
enum answer ck_radius_between(struct ck_math *math, const struct ck_ask *ask, double lo, double hi);
bool ck_radius_is_closed(const struct ck_ask *ask, size_t rank);

#endif
