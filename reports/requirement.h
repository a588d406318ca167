// What a drafter must reach, and what knowing less than the whole target row would have certified: counts gathered step by
// step (requirement.c), drawn and listed by html_requirement.c, html_known.c, markdown_requirement.c, json_requirement.c.
#ifndef HM_REPORTS_REQUIREMENT_H
#define HM_REPORTS_REQUIREMENT_H

#include "base/histogram.h"
#include "certify/log_reader.h"

#include <stddef.h>
#include <stdint.h>

// What a certificate may be made from: the whole target row (docs/theory.md §2), the gap p_(k) - p_(k+1) alone, the
// rule's parameter and p_(1) alone (§3). Neither of the last two certifies what the first does not.
enum hm_known_from { HM_FROM_ROW, HM_FROM_GAP, HM_FROM_RULE, HM_KNOWN_FROM };

// By which distance of the draft: KL(p||q), KL(q||p), TV, at least one of the three.
enum { HM_BY_KLF, HM_BY_KLR, HM_BY_TV, HM_BY_ANY, HM_KNOWN_BY };

struct hm_known {
    uint64_t steps;                           // with verdicts, levels and a draft row
    uint64_t with[HM_KNOWN_FROM];             // of these, those whose log has such a bound; [HM_FROM_ROW] = steps
    uint64_t yes[HM_KNOWN_FROM][HM_KNOWN_BY]; // of these, certified
};

// Adds a step whose claim has verdicts and levels, and which has a draft row. From the row: the log's verdicts. From
// less: D < D*, decided from the log's enclosures on the safe side.
void hm_known_add(struct hm_known *known, const struct hm_record_step *step, const struct hm_record_claim *claim);

// The three distances of the draft at the steps with verdicts, against which a requirement is held.
enum { HM_REQUIREMENTS = 3 }; // HM_BY_KLF, HM_BY_KLR, HM_BY_TV
struct hm_requirement {
    const struct hm_histogram *level; // lower ends of D*, all steps with levels
    const struct hm_histogram *draft; // upper ends of D, steps with verdicts
};

// The largest number x, among 0, the least value and the bin edges, such that at least `percent` % of the values are x or
// more: a draft below x everywhere is certified at that share of the steps. +inf when so many are. count > 0.
double hm_requirement_at(const struct hm_histogram *level, unsigned percent);

// A curve "how many are at least x" in at most HM_CURVE_POINTS points, exact at each: x runs over bin edges from `first` to
// `last`. Between two points at least as many as at the right one are at least x.
enum { HM_CURVE_POINTS = 128 };
struct hm_curve {
    size_t first, last, stride; // bins
};
size_t hm_curve_next(const struct hm_curve *curve, size_t bin); // the point after this one; `last` after `last`
// Of `count` values that are at least the edge of a bin, how many are at least that of a later one.
uint64_t hm_curve_count(const struct hm_histogram *h, size_t bin, uint64_t count, size_t later);

// The bin edges between two numbers.
struct hm_curve hm_curve_between(double from, double to);

// The whole range in which either count changes, for a listing: from the edge below the least positive value to the
// first one at which nothing more is counted, or the last there is.
struct hm_curve hm_curve_over(const struct hm_histogram *level, const struct hm_histogram *draft);

#endif
