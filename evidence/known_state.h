// The inside of evidence that was prepared for questions, shared by the files known*.c. Not part of the interface.
//
// The box: every listed token's value lies in its interval, every unseen token's in `each`, and the unseen weights sum to
// `rest`. Figures are enclosures over the whole box, so they hold for every row that fits the evidence.
#ifndef HM_EVIDENCE_KNOWN_STATE_H
#define HM_EVIDENCE_KNOWN_STATE_H

#include "certify/row.h"
#include "evidence/evidence.h"

// One token, listed or unseen. Weights are e^log; log is (value - reference)/T, at most about 0.
struct hm_known_token {
    struct hm_ival value; // of the unit
    struct hm_ival log, weight;
};

// One end of a listed token's interval.
struct hm_known_end {
    double value, weight; // the weight rounded away from the token's
};

struct hm_known {
    const struct hm_evidence *evidence; // borrowed
    struct hm_rational temperature;
    struct hm_row *row;           // of a full row of floats, which answers everything; nothing below is set then
    struct hm_known_token *token; // [count], the listed
    size_t count, first;          // first: an entry whose value may be the largest
    struct hm_known_end *high, *low; // [count] each: upper and lower ends, descending
    struct hm_ival inverse;       // 1/T
    double reference;             // the value that weighs 1
    bool unit;                    // log-probabilities at T = 1: weights are probabilities, and reference is 0
    struct hm_ival whole;         // of log-probabilities: what e^value of all tokens sum to, 1 without a shift
    size_t unseen;                // how many tokens are not listed; SIZE_MAX: unknown
    size_t positive;              // at most so many of them have a probability; SIZE_MAX: nothing bounds it
    struct hm_known_token each;   // bounds of every unseen one that may have a probability
    double largest;               // a value that the largest unseen one reaches at least
    struct hm_ival rest;          // sum of the unseen weights
    struct hm_ival others;        // sum of the listed ones but `first`
    struct hm_ival total;         // sum of all
    struct hm_ival moment;        // sum of w (-ln w), unseen ones included
};

// "No value" in place of a log-probability: -9999, JSON having no -inf.
bool hm_known_sentinel(const struct hm_evidence *evidence, size_t entry);

double hm_known_number(size_t n);             // as a double; SIZE_MAX: +inf
size_t hm_known_size(double n, size_t most);  // an integer as a size, at most so much; NaN is `most` too

enum { HM_KNOWN_MOST_RANKS = 1 << 24 }; // levels that need more of the order are left open

// ---- known.c

// Log-probabilities at T = 1: the mass of the listed, and the most that the unseen may have. Nothing is narrowed yet.
struct hm_known_mass {
    struct hm_ival seen, whole;
    double unseen;
};
bool hm_known_mass(const struct hm_evidence *evidence, struct hm_known_mass *out); // false: memory is short

// The token an entry stands for: listed, or with HM_UNSEEN any unseen one. False when there is no such token.
bool hm_known_token(const struct hm_known *known, size_t entry, struct hm_known_token *out);
// Sum of the weights of all other tokens.
struct hm_ival hm_known_others(const struct hm_known *known, size_t entry, const struct hm_known_token *token);
// Log weight of values between the two ends.
struct hm_ival hm_known_log(const struct hm_known *known, struct hm_ival value);
// a / (a + b) for weights a, b >= 0, not both 0: a share in [0, 1].
struct hm_ival hm_known_share(struct hm_ival a, struct hm_ival b);

// ---- known_tail.c

// Bounds of the unseen weights' sum at the temperature, from that of their probabilities, r, and the largest, e^cap.
struct hm_ival hm_tail_power(const struct hm_known *known, struct hm_ival r, double cap);
// Bounds of the sum of u (-ln u) over the unseen weights u.
struct hm_ival hm_tail_moment(const struct hm_known *known);
// x (-ln x) for a token's weight.
struct hm_ival hm_tail_term(const struct hm_known_token *token);

// ---- known_order.c

// Fills high and low from the tokens; false: memory is short.
bool hm_known_sort(struct hm_known *known);
// The value at a rank (from 0) of the order of all tokens, or of all but one; -inf behind the last.
struct hm_ival hm_known_ranked(const struct hm_known *known, size_t rank);
struct hm_ival hm_known_ranked_but(const struct hm_known *known, size_t entry, const struct hm_known_token *token, size_t rank);
// Does a listed token precede another token?  entry and token: the other one's.
enum hm_verdict hm_known_precedes(const struct hm_known *known, size_t listed, size_t entry,
                                  const struct hm_known_token *token);
// How many tokens precede this one.
struct hm_count_range hm_known_before(const struct hm_known *known, size_t entry, const struct hm_known_token *token);

// ---- known_exact.c: the same questions about a full row of floats; entry is a token id

struct hm_ival hm_exact_probability(const struct hm_known *known, size_t entry);
struct hm_ival hm_exact_entropy(const struct hm_known *known);
struct hm_ival hm_exact_regret(const struct hm_known *known, size_t entry);
struct hm_ival hm_exact_surprise(const struct hm_known *known, size_t entry);
enum hm_verdict hm_exact_accepts(const struct hm_known *known, const struct hm_rule *rule, size_t entry);
struct hm_count_range hm_exact_count(const struct hm_known *known, const struct hm_rule *rule);
struct hm_ival hm_exact_radius(const struct hm_known *known, const struct hm_rule *rule, size_t entry);
struct hm_known_level hm_exact_level(const struct hm_known *known, const struct hm_rule *rule, size_t m);

#endif
