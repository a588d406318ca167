// Counts of numbers by size: see histogram.h.
#include "base/histogram.h"

#include <math.h>

void hm_histogram_add(struct hm_histogram *h, double value)
{
    if (!(value > 0)) value = 0;
    if (h->count == 0 || value < h->least) h->least = value;
    if (h->count == 0 || value > h->most) h->most = value;
    h->count++;
    h->infinite += value == INFINITY;
    int exponent;
    double fraction =
        value < INFINITY ? frexp(value, &exponent) : 0; // value = fraction * 2^exponent, 1/2 <= fraction < 1
    if (value == INFINITY || (fraction > 0 && exponent > HM_HISTOGRAM_MOST))
        h->above++;
    else if (fraction == 0 || exponent <= HM_HISTOGRAM_LEAST)
        h->below++;
    else {
        int part = (int)((fraction - 0.5) * 2 * HM_HISTOGRAM_PER_OCTAVE); // exact: powers of two
        h->bin[(exponent - 1 - HM_HISTOGRAM_LEAST) * HM_HISTOGRAM_PER_OCTAVE + part]++;
    }
}

double hm_histogram_edge(size_t bin)
{
    int octave = (int)(bin / HM_HISTOGRAM_PER_OCTAVE), part = (int)(bin % HM_HISTOGRAM_PER_OCTAVE);
    return ldexp(1.0 + (double)part / HM_HISTOGRAM_PER_OCTAVE, octave + HM_HISTOGRAM_LEAST);
}

uint64_t hm_histogram_at_least(const struct hm_histogram *h, size_t bin)
{
    uint64_t count = h->above;
    for (size_t i = bin; i < HM_HISTOGRAM_BINS; i++) count += h->bin[i];
    return count;
}

// The bin that holds a rank; -1 below the first, BINS above the last.
static int find_bin(const struct hm_histogram *h, uint64_t rank)
{
    uint64_t seen = h->below;
    if (rank < seen) return -1;
    for (int i = 0; i < HM_HISTOGRAM_BINS; i++) {
        seen += h->bin[i];
        if (rank < seen) return i;
    }
    return HM_HISTOGRAM_BINS;
}

double hm_histogram_lower(const struct hm_histogram *h, uint64_t rank)
{
    int bin = find_bin(h, rank);
    if (h->count == 0) return 0;
    if (h->least == h->most) return h->least;
    if (rank >= h->count - h->infinite) return INFINITY;
    return bin < 0 ? h->least : fmax(hm_histogram_edge((size_t)bin), h->least);
}

double hm_histogram_upper(const struct hm_histogram *h, uint64_t rank)
{
    int bin = find_bin(h, rank);
    if (h->count == 0) return 0;
    if (bin >= HM_HISTOGRAM_BINS) return h->most;
    return fmin(hm_histogram_edge((size_t)(bin + 1)), h->most);
}

uint64_t hm_histogram_rank(const struct hm_histogram *h, unsigned numerator, unsigned denominator)
{
    uint64_t whole = h->count / denominator, rest = h->count % denominator;
    uint64_t at = whole * numerator + (rest * numerator + denominator - 1) / denominator;
    return at > 0 ? at - 1 : 0;
}
