// What a rule is made of: one file of this folder per rule, one line of rules.c each. Not part of the interface.
//
// A rule says how it is written, which prefix A(p) of the order it accepts (docs/theory.md §1), how far logits may move
// before a decision turns (§6) and which bounds follow from its parameters (§3). Formulas are written once, as data:
// the code around them evaluates them in double enclosures first and with MPFR where those do not tell.
#ifndef HM_CERTIFY_RULES_RULES_H
#define HM_CERTIFY_RULES_RULES_H

#include "certify/row_state.h"
#include "certify/rule.h"

// ---- membership

// A lower level set: token i is accepted when t_i <= reach, t_i = (l_(1) - l_i)/T, its distance below the top in nats.
// Distances of floats are exact, so nothing cancels; a reach of +inf accepts logits of -inf too, one of -inf nothing.
struct hm_threshold {
    // What logits and parameters alone settle: the ties of theory.md §8 and what no precision would. UNDECIDED: go on.
    enum hm_verdict (*settle)(const struct hm_rule *rule, const struct hm_row *row, size_t token);
    // The reach in doubles, for a row whose filter is ready; the whole line when that is all one knows.
    struct hm_ival (*reach)(const struct hm_rule *rule, struct hm_row *row);
    hm_status (*reach_exact)(const struct hm_rule *rule, struct hm_row *row, mpfr_prec_t precision, struct hm_mpi *out,
                             struct hm_error *err);
    bool of_sums;         // does the reach depend on sums over the row?
};

extern const struct hm_threshold hm_additive_threshold, hm_multiplicative_threshold;

// Does the token satisfy the rule's threshold, whatever its rank?
hm_status hm_rule_reaches(const struct hm_rule *rule, struct hm_row *row, size_t token, enum hm_verdict *out,
                          struct hm_error *err);

// ln(W/w_top) at that precision; in doubles it is hm_filter_log_total.
hm_status hm_reach_log_total_exact(struct hm_row *row, mpfr_prec_t precision, struct hm_mpi *out, struct hm_error *err);

// ---- radii

// Weights of ranges of ranks, for a row whose filter is ready, in the filter's scale.
struct hm_masses {
    struct hm_row *row;
    size_t rank, token; // one token whose rank is known: asking for its weight does not sort the row
    double *forward;    // [count + 1], NULL until a rank behind the head is asked for
    size_t count;
};
struct hm_ival hm_mass(struct hm_masses *masses, size_t from, size_t to);
struct hm_ival hm_mass_but_one(struct hm_masses *masses, size_t rank); // all ranks but this one
void hm_masses_clear(struct hm_masses *masses);

// Two finite logits, whose gap is high - low; a border is half of it.
struct hm_gap {
    float high, low;
};

// A share of the weights of up to two ranges of ranks [from, to).
struct hm_term {
    mpq_t times;
    size_t from[2], to[2];
    int ranges;
};

// gap/2 + (T/2) ln( (e^growth - 1) above / below ), or its negative: what a radius is between two borders.
enum hm_ratio_kind { HM_RATIO, HM_RATIO_NEVER, HM_RATIO_AT_ONCE }; // the formula, +inf, -inf
struct hm_ratio {
    enum hm_ratio_kind kind;
    bool negate;
    struct hm_gap gap;
    struct hm_term above[2], below[2]; // sums of terms; both empty: no logarithm
    int aboves, belows;
    mpq_srcptr growth;                 // NULL: no such factor
};
void hm_ratio_init(struct hm_ratio *r); // init makes room once, reset the constant 0
void hm_ratio_reset(struct hm_ratio *r);
void hm_ratio_clear(struct hm_ratio *r);
struct hm_ival hm_ratio_double(struct hm_masses *masses, const struct hm_ratio *r);
hm_status hm_ratio_exact(struct hm_row *row, const struct hm_ratio *r, mpfr_prec_t precision, struct hm_ival *out,
                         struct hm_error *err);

// What a rule's value function writes.
void hm_ratio_gap(struct hm_ratio *r, float high, float low); // NEVER when one is -inf: it does not move
struct hm_term *hm_ratio_above(struct hm_ratio *r, size_t from, size_t to); // appends; its times is 1
struct hm_term *hm_ratio_below(struct hm_ratio *r, size_t from, size_t to);
void hm_term_also(struct hm_term *term, size_t from, size_t to);            // its second range

// A radius in steps: with j0 the first j in [first, last] whose value is at most border(j + 1) (`last` if none is), the
// radius is the larger of value(j0), border(j0) and 0, and at least the smaller of value(j) and border(j + 1) for every j.
// The set of tokens that matter changes at the borders, half distances of logits, which ascend. A closed form has one step.
struct hm_steps {
    const struct hm_rule *rule;
    struct hm_row *row;
    size_t token, rank;   // the token asked about and its place in the order
    bool accepted;
    size_t first, last;   // 0 and 0 when the rule's function is called
    void (*value)(const struct hm_steps *steps, size_t j, struct hm_ratio *out); // *out is the constant 0
    struct hm_gap (*border)(const struct hm_steps *steps, size_t j);             // for first < j <= last
    size_t larger;        // nucleus: how many logits are larger than x's
};
float hm_steps_logit(const struct hm_steps *steps, size_t rank);
void hm_steps_never(const struct hm_steps *steps, size_t j, struct hm_ratio *out); // the value of what cannot turn
void hm_ratio_share(const struct hm_steps *steps, mpq_srcptr share, struct hm_ratio *out); // the turn of p_x >= share

// The radius as an enclosure narrow enough for a log; *known is false when 4096 bits do not give one.
hm_status hm_steps_solve(struct hm_steps *steps, struct hm_ival *out, bool *known, struct hm_error *err);
hm_status hm_steps_least(struct hm_steps *steps, double *out, struct hm_error *err); // a lower bound of it

// ---- a rule

enum hm_rule_end { HM_END_NONE, HM_END_OPEN, HM_END_CLOSED }; // is a number a bound of a parameter, and may it be attained?
enum hm_rule_bound { HM_BOUND_NONE, HM_BOUND_LEVEL, HM_BOUND_DIFFERENCE }; // rule-universal bounds: none; every rejected
                                     // token lies below p_(1) e^-reach; at least `a` below p_(1)

struct hm_rule_ops {
    enum hm_rule_kind kind;
    const char *name, *usage;        // what errors show; the usage's part before " with" stands in the list of all rules
    bool counted;                    // the first parameter is an integer >= 1
    int rationals;                   // how many rational parameters follow
    enum hm_rule_end zero, one;      // the range of the rationals
    const struct hm_threshold *threshold; // with `counted`: among the first `count` tokens only
    hm_status (*prefix)(const struct hm_rule *rule, struct hm_row *row, struct hm_crossing *k, struct hm_error *err);
                                     // instead of a threshold: k itself, as a range where it is undecided
    void (*radius)(struct hm_steps *steps); // of the prefix or of the threshold; NULL: radius_least instead
    hm_status (*radius_least)(const struct hm_steps *query, double *out, struct hm_error *err); // a lower bound
    enum hm_rule_bound bound;
};

extern const struct hm_rule_ops hm_rule_greedy, hm_rule_additive, hm_rule_multiplicative, hm_rule_topm, hm_rule_entropy,
    hm_rule_nucleus, hm_rule_topk_delta, hm_rule_topk_ratio, hm_rule_absolute, hm_rule_regret;

extern const struct hm_rule_ops *const hm_rules[]; // in the order in which errors list them
extern const size_t hm_rules_count;
const struct hm_rule_ops *hm_rule_ops_of(enum hm_rule_kind kind); // NULL: not a rule

// The radius of "among the first `count`", which topm and the counted thresholds share.
void hm_topm_radius(struct hm_steps *steps);

// Which of the entropy rule's thresholds is in force (certificate.h): UNDECIDED only when 4096 bits do not tell.
hm_status hm_entropy_least_is_eps(const struct hm_rule *rule, struct hm_row *row, enum hm_verdict *out, struct hm_error *err);
// A lower bound of its DELTA branch's radius (0 when the branch is on the other side), in entropy_radius.c.
void hm_entropy_radius_delta(const struct hm_steps *query, double *out);

#endif
