// Evidence for a row: what another engine's log lets one know of a target row, and what can be proved from it.
//
// Engines log the few largest log-probabilities of a row, as decimal numbers. Evidence keeps each as the enclosure of what
// was printed, and what is unseen as bounds. Every question has the answers yes, no and undecided, and every figure is an
// enclosure of its value over all rows that fit the evidence (docs/evidence.md). A full row is the special case in which
// nothing is unseen; exact questions about rows of floats are certify/row.h's.
#ifndef HM_EVIDENCE_EVIDENCE_H
#define HM_EVIDENCE_EVIDENCE_H

#include "base/error.h"
#include "base/rational.h"
#include "bounds/ival.h"
#include "certify/rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// What the numbers of a row are. Printed probabilities become enclosures of their logarithms when they are read.
enum hm_evidence_unit {
    HM_UNIT_LOG_PROBABILITY, // nats; exp of all tokens' values sums to 1
    HM_UNIT_LOGIT            // up to a constant of the row: without a full row only differences mean something
};

struct hm_evidence_entry {
    int32_t id;            // -1: only its text is known
    const char *text;      // bytes [text_size], not terminated; NULL: none
    size_t text_size;
    struct hm_ival value;  // of the unit; lo may be -inf, hi is finite or -inf
};

// Borrowed by everything below; made by a source (evidence/source.h) and valid until its next event.
struct hm_evidence {
    enum hm_evidence_unit unit;
    const struct hm_evidence_entry *entry; // [count], different tokens
    size_t count;
    size_t ranked;         // the first so many entries are the largest of the row, as the engine says: no unseen token
                           // is above any of them. The others are tokens listed besides (the emitted one)
    size_t emitted;        // the emitted token's entry; HM_UNSEEN: not listed
    size_t vocab;          // tokens in all, those without probability included; 0: unknown
    double shift;          // log-probabilities may all be off by one and the same number of at most this size, in nats: what
                           // an inexact sum over the vocabulary does to them (docs/evidence.md "The engine's own rounding")
    size_t support;        // of processed rows: how many tokens may have a probability (top-k); 0: not told
    bool processed;        // after temperature, penalties, top-k or top-p: then -inf is a filtered token
    const float *logits;   // a full row of floats [vocab]: entry is NULL, count and ranked are 0, emitted is a token id
};

#define HM_UNSEEN SIZE_MAX // in the place of an entry: some token that is not listed

// ---- What a printed number stands for (evidence/decimal.c) ----

enum hm_printing {
    HM_PRINTING_ROUNDED,   // half a unit of the last printed digit either side: true of every printer
    HM_PRINTING_ROUND_TRIP // the shortest digits that give the same double or float back (Python, JavaScript, nlohmann):
                           // a unit in the last place of a float32 either side
};

enum hm_decimal_kind { HM_DECIMAL_FINITE, HM_DECIMAL_NAN, HM_DECIMAL_INFINITE, HM_DECIMAL_MINUS_INFINITE };

// Reads "-0.2231", "1e-05", "-inf", "-Infinity", "NaN" [size] into an enclosure of what it stands for; the digits never
// pass through a double. HM_FORMAT when it is no number. 400 characters at most (HM_RANGE).
hm_status hm_decimal_read(const char *text, size_t size, enum hm_printing printing, enum hm_decimal_kind *kind,
                          struct hm_ival *out, struct hm_error *err);

// The enclosure of ln x for x in [p.lo, p.hi], p.lo < 0 counting as 0.
struct hm_ival hm_decimal_log(struct hm_ival p);

// What float32 arithmetic may have added to a log-probability, in nats (docs/evidence.md "The engine's own rounding"):
// value is widened on both sides by allowance * (1 + |value| / 8).
struct hm_ival hm_decimal_widen(struct hm_ival value, double allowance);
#define HM_ALLOWANCE_DEFAULT 0x1p-18

// ---- Questions (evidence/known*.c) ----

// Evidence prepared for questions at a temperature: probabilities are those of exp(value/T), normalised.
struct hm_known;

// Borrows *evidence. HM_RANGE when no distribution fits (the sanity findings of evidence/sanity.h say why, in words).
hm_status hm_known_open(const struct hm_evidence *evidence, const struct hm_rational *temperature, struct hm_known **out,
                        struct hm_error *err);
void hm_known_close(struct hm_known *known); // NULL is allowed

// Mass of the listed tokens, and of the others: [0, 0] when nothing is unseen, [0, 1] when nothing bounds it.
struct hm_ival hm_known_seen(const struct hm_known *known);
struct hm_ival hm_known_unseen(const struct hm_known *known);
// An upper bound of each unseen token's probability; 0 when there is none.
double hm_known_unseen_most(const struct hm_known *known);

struct hm_ival hm_known_probability(const struct hm_known *known, size_t entry); // HM_UNSEEN: [0, unseen_most]
struct hm_ival hm_known_entropy(const struct hm_known *known);                   // nats; hi may be +inf (vocab unknown)
// ln(p_(1)/p_x) and -ln p_x: regret of x, and KL(point mass at x || p). HM_UNSEEN: lower bounds, hi = +inf.
struct hm_ival hm_known_regret(const struct hm_known *known, size_t entry);
struct hm_ival hm_known_surprise(const struct hm_known *known, size_t entry);

// Is the token in A(p)?  (docs/theory.md §1.) HM_UNSEEN asks about a token that is known not to be listed.
enum hm_verdict hm_known_accepts(const struct hm_known *known, const struct hm_rule *rule, size_t entry);
// k = |A(p)| lies in [least, most]; most is SIZE_MAX when nothing bounds it.
struct hm_count_range {
    size_t least, most;
} hm_known_count(const struct hm_known *known, const struct hm_rule *rule);
// Stability radius of that decision (docs/theory.md §6), in units of the row's values before the temperature; [0, inf] when
// the decision is open or the rule has no radius from a truncated row.
struct hm_ival hm_known_radius(const struct hm_known *known, const struct hm_rule *rule, size_t entry);

// KLf*, KLr*, TV* of docs/theory.md §2 for m proposals: [0, inf] where k is open, 0 where k = 0, +inf where k + m > vocab.
struct hm_known_level {
    struct hm_ival klf, klr, tv;
};
struct hm_known_level hm_known_level(const struct hm_known *known, const struct hm_rule *rule, size_t m);

// How two rows at one context differ, tokens matched by id or, where one side has none, by text. KL without a floor under the
// other's unseen tokens has hi = +inf; TV is bounded on both sides (docs/evidence.md).
struct hm_known_distance {
    struct hm_ival kl_pq, kl_qp, tv;
};
struct hm_known_distance hm_known_distance(const struct hm_known *p, const struct hm_known *q);

#ifdef __cplusplus
}
#endif

#endif
