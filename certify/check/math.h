// The mathematics of docs/theory.md over one target row p and one draft row q, at any precision.
//
// Everything is computed from unnormalised weights E_i = exp((l_i - l_first)/T), which keeps equal logits equal and the
// first weight exactly 1. Tokens of equal logits form a class and share one weight. `level` below is a step of
// precision: level 0 has weights in fixed point (fixed.h), where the rows allow it; level n has MPFR intervals of
// 128 << (n - 1) bits. Quantities return false when a level cannot answer; the caller then tries the next one.
#ifndef HM_CERTIFY_CHECK_MATH_H
#define HM_CERTIFY_CHECK_MATH_H

#include "certify/check/fixed.h"
#include "certify/check/interval.h"

#include <stdbool.h>
#include <stdint.h>

enum { CK_LEVELS = 7 };                         // fixed point; 128, 256, 512, 1024, 2048, 4096 bits
enum { CK_EXACT = 512 };                        // bits that hold any sum of 2^20 float logits, times 2^20, exactly
enum ck_which { CK_TARGET, CK_DRAFT, CK_DRAW }; // CK_DRAW: the target row at the sampling temperature
enum ck_divergence { CK_KLF, CK_KLR, CK_TV, CK_ACCEPT, CK_PAIRS }; // CK_ACCEPT: sum min(p, q)

struct ck_row {
    float *logit;           // [vocab]; finite or -inf, at least one finite
    uint32_t *order, *rank; // [vocab] token at a position of the order, and the inverse
    uint32_t *class_of;     // [vocab] by token; the number of classes where the logit is -inf
    uint32_t *first;        // [vocab + 1] first position of a class; of the last and past it, `finite`
    ck_u128 *depth;         // [vocab + 1] of a class: first logit less its own, in units of 2^-60, where regular
    ck_u128 *depths;        // [vocab + 1] sum of the depths of the tokens before a class
    size_t finite, classes; // tokens of positive probability: the first ones of the order; distinct logits
    bool regular;           // fixed point can hold its logits
};

struct ck_dist { // one row at one temperature and level
    bool ready;
    const struct ck_row *row;
    mpq_srcptr inverse;      // 1/T
    ck_u128 *weight, *sum;   // [classes + 1] level 0: of a class; of the tokens before it
    struct ck_wide *product; // [classes + 1] level 0: sum weight * depth of the tokens before it
    struct iv *e;            // [made] other levels: weight of a class
    size_t room, made;
    struct iv total, log_sum; // sum E, its logarithm
};

struct ck_pair { // what two rows say of each other
    bool ready;
    struct iv v[CK_PAIRS]; // KL(p||q), KL(q||p), TV(p,q), sum min(p,q)
};

struct ck_sums { // of some tokens by falling p/q: the weights of p and of q before one
    ck_i128 gap; // its depth in q less that in p
    ck_u128 p, q;
};
struct ck_rung { // after some rejections (theory.md §5): the residual is (p - c q)^+ / z; none was accepted with
    struct iv c, z, left, looked; // probability `left`; `looked` at so many, on average, before
};
struct ck_ladder { // what m independent proposals leave, the first k of the order accepted surely
    bool ready, known, sorted, split;
    int level;
    size_t k, m, made, split_k;
    struct ck_rung *rung; // [made], m + 1 in use
    bool exact;           // e of uniform rows
    struct iv e;
    size_t inside, present; // level 0: tokens of A, and all, that p or q has
    uint32_t *by_ratio;     // [present] by falling p/q
    struct ck_sums *sums;   // [present + 2] of A, then of the others, each closed by a total
};

struct ck_math {
    size_t vocab, room;                // tokens; what the arrays hold
    mpq_t inverse_claim, inverse_draw; // 1/T for claims, 1/temperature for draws
    bool same_temperature, same_known; // known once asked:
    bool same, rearranged;             // p = q; p is q with its tokens in another order, or q
    struct ck_row row[2];
    int first_level; // 0 where fixed point can hold both rows
    struct ck_dist dist[3][CK_LEVELS];
    struct ck_pair pair[CK_LEVELS];
    struct ck_ladder ladder;
    uint32_t *scratch; // [6 vocab]
};

// One acceptance rule.
enum ck_rule_kind {
    CK_GREEDY,
    CK_ADDITIVE,
    CK_MULTIPLICATIVE,
    CK_TOPM,
    CK_ENTROPY,
    CK_NUCLEUS,
    CK_TOPK_DELTA,
    CK_TOPK_RATIO,
    CK_ABSOLUTE,
    CK_REGRET,
    CK_RULE_KINDS
};
struct ck_rule {
    enum ck_rule_kind kind;
    unsigned long count; // topm, topk-delta, topk-ratio
    mpq_t a, b;          // eps, alpha, P, d, r or t; entropy: eps, delta
    char text[96];
};

struct ck_power; // power.h: one further divergence
struct ck_ask {  // the arguments of a quantity; each uses what it needs
    size_t k, m, token;
    const struct ck_rule *rule;
    const struct ck_power *power;
    struct ck_math *outer;    // known.c: the rows on the whole vocabulary
    const uint32_t *children; // [m] the tokens of a proposal, in order; NULL: the first m of q
};
typedef bool ck_quantity(struct ck_math *math, int level, const struct ck_ask *ask, struct iv *out);

bool ck_math_init(struct ck_math *math, size_t vocab); // false: no memory. Temperatures are set by the caller.
void ck_math_clear(struct ck_math *math);
void ck_math_new_row(struct ck_math *math, enum ck_which which); // after row[which].logit was filled
mpfr_prec_t ck_precision(int level);

// dist.c: weights and their sums
const struct ck_dist *ck_dist(struct ck_math *math, enum ck_which which, int level);
void ck_between(ck_u128 sum, size_t n, struct iv *out); // what n weights stand for that add up to sum
void ck_weight(const struct ck_dist *d, size_t token, struct iv *e);
void ck_class_weight(const struct ck_dist *d, size_t class, struct iv *e);
void ck_class_z(const struct ck_dist *d, size_t class, struct iv *z);                // (l - l_first)/T, finite logits
void ck_sum_order(const struct ck_dist *d, size_t from, size_t to, struct iv *sum);  // over positions
void ck_sum_moment(const struct ck_dist *d, size_t from, size_t to, struct iv *sum); // of E ln E
struct ck_part { // tokens: the first `support` of the order, but for `without`, which are different
    size_t support;
    const uint32_t *without; // [count]
    size_t count;
};
void ck_sum_ids(const struct ck_dist *d, size_t ids, const struct ck_part *part, struct iv *sum); // those below an id
struct ck_run { // tokens of one class among positions
    size_t from, count, class;
};
bool ck_next_run(const struct ck_row *row, size_t to, struct ck_run *run);               // begin with count 0 at `from`
bool ck_uniform(const struct ck_row *row);                                               // all finite logits equal
int ck_compare_product(size_t n, mpq_srcptr q, unsigned long with);                      // the sign of n q - with
void ck_logit_gap(const struct ck_row *row, size_t upper, size_t lower, struct iv *out); // between positions, rounded

// pair.c
bool ck_same_law(struct ck_math *math); // p = q
// Are the sorted probabilities the same?  Then p_x = q_x exactly where the classes of x are; in every other pair of
// rows nowhere but where both are 0 (§8).
bool ck_rearranged(struct ck_math *math);
ck_quantity ck_lse, ck_entropy, ck_kl_pq, ck_kl_qp, ck_tv_pq, ck_min_pq, ck_regret, ck_chosen, ck_not_chosen; // §1, §5
// At level 0: where p_i = c q_i, as a difference of depths (q's less p's). Above `over` p_i > c q_i, below `under` it
// is less; between, the two differ by at most `width` of either. False when fixed point cannot say. log_c: NULL is c
// = 1.
struct ck_cut {
    ck_i128 under, over;
    mpfr_t width;
};
bool ck_find_cut(struct ck_math *math, const struct iv *log_c, struct ck_cut *out);

// ladder.c: §5. NULL: this level cannot say.
const struct ck_ladder *ck_ladder(struct ck_math *math, int level, size_t k, size_t m);
const struct ck_ladder *ck_any_ladder(struct ck_math *math, int level, size_t m); // for c and z: k is all one to them
bool ck_excess(struct ck_math *math, int level, bool inside, size_t k, const struct iv *c, bool of_p,
               struct iv *out); // sum over A, or the others, of (p - c q)^+ (of_p) or of (c q - p)^+
void ck_ladder_clear(struct ck_ladder *ladder);
// flat.c: two uniform rows in rationals. c and z after j rejections; false when the rows are not uniform.
bool ck_flat_rung(struct ck_math *math, size_t j, mpq_t c, mpq_t z);
bool ck_flat_ladder(struct ck_math *math, struct ck_ladder *ladder, bool within); // rungs and e

// law.c: §5. The chance that a proposal is accepted, the total variation between the law of the token and p, and
// p(token) over that law's.
ck_quantity ck_iid_accept, ck_iid_e, ck_iid_ratio, ck_topk_accept, ck_topk_e, ck_topk_ratio;

// coin.c: docs/log.md "Random numbers", "The walk". Numbers are of 53 bits. Counter: sequence, t, purpose, child.
uint64_t ck_random(uint64_t seed, const uint32_t counter[4]);
// Proposal j + 1 at this token: is it accepted?  Of point
// masses, `tried` were refused before; of draws, j were.
enum answer ck_coin_point(struct ck_math *math, const uint32_t *tried, size_t j, size_t token, uint64_t bits);
enum answer ck_coin_draw(struct ck_math *math, size_t m, size_t j, size_t token, uint64_t bits);
// Is the token the draw from these tokens of a row; from what m draws, all refused, leave of p?
enum answer ck_is_draw(struct ck_math *math, enum ck_which which, size_t token, const struct ck_part *part,
                       uint64_t bits);
enum answer ck_is_residual(struct ck_math *math, size_t m, size_t token, uint64_t bits);

// level.c; 1 <= k and k + m <= vocab
ck_quantity ck_level_f, ck_level_r, ck_klf, ck_klr, ck_tv; // §2
struct ck_split {
    size_t a, s;
};                // tied set: the first a of A, the last s of S
struct ck_group { // equal tokens among A and S
    struct iv v;
    size_t upper, lower; // how many in the set with the larger values, and in the other
};
// The level of values that fall with their index: where sum_upper (v - c)^+ + extra = sum_lower (c - v)^+.
bool ck_balance(struct ck_group *group, size_t count, const struct iv *extra, struct iv *c);
bool ck_level_row(const struct ck_math *math, const struct ck_ask *ask); // all k + m equally likely
bool ck_level_weight(struct ck_math *math, int level, const struct ck_ask *ask, const struct iv *extra, struct iv *c);
bool ck_level_z(struct ck_math *math, const struct ck_ask *ask, struct ck_split *tied, struct iv *z); // false: g = 0
bool ck_mean_depth(const struct ck_math *m, const struct ck_ask *ask, struct ck_split *tied, mpfr_t numerator);

// known.c: §4, on p_D, the target on the tokens that the draft knows; ask->outer is p itself. False: p(D) = 0.
bool ck_known_make(struct ck_math *inner, const struct ck_math *outer);
enum answer ck_known_never(struct ck_math *inner,
                           const struct ck_ask *ask); // TV cannot be below its bound, for p alone
ck_quantity ck_known_mass, ck_known_klr, ck_known_tv; // p(D), of the outer; KLr*(p_D) - ln p(D); the min-max

// margin.c, universal.c: §3
ck_quantity ck_margin_gap, ck_margin_klf, ck_margin_klr, ck_margin_tv;
ck_quantity ck_universal_klf, ck_universal_klr;
enum answer ck_has_universal(struct ck_math *math, const struct ck_rule *rule);

// certify.c. The sizes [a, s] a tied set may have: tokens within 2^-30 of the level may fall either way. range: a from
// [0] to [1], s from [2] to [3]. OPEN when no precision separates the level.
enum answer ck_tied(struct ck_math *math, const struct ck_ask *ask, bool reverse, size_t range[4]);
bool ck_is_geometric_witness(struct ck_math *math, const struct ck_ask *ask); // is q the p of the reverse level?
struct ck_uniform {      // two uniform rows, and a tied set of equal tokens of A and empty ones of S
    size_t p, q, common; // sizes of the supports
    size_t a, s;         // tokens of the tied set
};
bool ck_uniform_pair(const struct ck_math *math, const struct ck_ask *ask, struct ck_uniform *u); // false: not so
// Is the divergence between p and q below its threshold?  (§8, identities first)
enum answer ck_certifies(struct ck_math *math, const struct ck_ask *ask, enum ck_divergence which);

// rule.c
bool ck_rule_parse(const char *text, struct ck_rule *rule); // the caller clears it either way
void ck_rule_clear(struct ck_rule *rule);
bool ck_rational(const char *text, mpq_t out); // "3/10", "2"; false when malformed
// Is the token at this position of the target's order in A(p)?  (§1, §8)
enum answer ck_member(struct ck_math *math, const struct ck_rule *rule, size_t position);
// Is eps the threshold in force of entropy?
enum answer ck_eps_in_force(struct ck_math *math, const struct ck_rule *rule);

// radius.c, noise.c: §6
ck_quantity ck_radius; // closed forms
bool ck_radius_is_closed(const struct ck_ask *ask, size_t rank);
// Does the logged radius [lo, hi] of a decision about a token enclose the true one?  Kinds without a closed form.
enum answer ck_radius_between(struct ck_math *math, const struct ck_ask *ask, double lo, double hi);
bool ck_radius_is_bound(const struct ck_ask *ask, size_t rank); // §6 has a lower bound only
enum answer ck_radius_at_least(struct ck_math *math, const struct ck_ask *ask, double lo);

#endif
