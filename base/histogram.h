// Counts of non-negative numbers by size, in bounded memory: what quantiles and "share of steps above x" come from.
//
// A bin is 1/32 of an octave (at most 3.2 % wide) and its edges are doubles, so "how many are at least this edge" is
// exact, and a quantile is given by the edge on the honest side.
#ifndef HM_BASE_HISTOGRAM_H
#define HM_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { HM_HISTOGRAM_PER_OCTAVE = 32, HM_HISTOGRAM_LEAST = -48, HM_HISTOGRAM_MOST = 16 };
enum { HM_HISTOGRAM_BINS = (HM_HISTOGRAM_MOST - HM_HISTOGRAM_LEAST) * HM_HISTOGRAM_PER_OCTAVE };

struct hm_histogram {
    uint64_t count;      // all values added
    uint64_t below;      // values under 2^LEAST, zeros among them
    uint64_t above;      // values of 2^MOST and more, infinities among them
    uint64_t infinite;   // infinities
    uint64_t bin[HM_HISTOGRAM_BINS];
    double least, most;  // of the values themselves; 0 when there are none
};

void hm_histogram_add(struct hm_histogram *h, double value); // NaN counts as 0, negative values too

// The lower edge of a bin, 0 <= bin <= BINS (the last is 2^MOST).
double hm_histogram_edge(size_t bin);

// How many values are at least the lower edge of the bin: exact.
uint64_t hm_histogram_at_least(const struct hm_histogram *h, size_t bin);

// The bin of the value of the given rank from below; ranks run from 0 to count - 1. Lower: an edge that value reaches;
// upper: an edge it does not exceed (never above `most`). 0 when there are no values.
double hm_histogram_lower(const struct hm_histogram *h, uint64_t rank);
double hm_histogram_upper(const struct hm_histogram *h, uint64_t rank);

// The rank of the quantile numerator/denominator: ceil(count * q) - 1, at least 0.
uint64_t hm_histogram_rank(const struct hm_histogram *h, unsigned numerator, unsigned denominator);

#endif
