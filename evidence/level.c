// What noise is usual in a run: see compare.h and docs/compare.md "The noise".
//
// Nothing is copied to leave one position out. Its bin is known, and one value less in a bin moves all values behind it by
// one place: the value of rank r among the others has rank r or r + 1 among all.
#include "evidence/compare.h"

#include <math.h>

void hm_noise_run_add(struct hm_noise_run *run, struct hm_ival noise)
{
    hm_histogram_add(&run->lower, noise.lo);
    hm_histogram_add(&run->upper, noise.hi);
}

// How many values lie in bins before that of `value`, which is finite.
static uint64_t count_before(const struct hm_histogram *h, double value)
{
    if (!(value >= hm_histogram_edge(0))) return 0;
    size_t low = 0, high = HM_HISTOGRAM_BINS; // edge(low) <= value; the last edge is that of the values beyond all bins
    while (low < high) {
        size_t middle = (low + high + 1) / 2;
        if (hm_histogram_edge(middle) <= value) low = middle;
        else high = middle - 1;
    }
    return h->count - hm_histogram_at_least(h, low);
}

// The rank among all values of a quantile, in thousandths, of the others.
static uint64_t rank_of(const struct hm_histogram *h, unsigned thousandths, const double *without)
{
    struct hm_histogram others = {.count = h->count - (without ? 1 : 0)}; // ranks depend on the count alone
    uint64_t rank = hm_histogram_rank(&others, thousandths, 1000);
    return without && rank >= count_before(h, *without) ? rank + 1 : rank;
}

static struct hm_ival quantile(const struct hm_noise_run *run, unsigned thousandths, const struct hm_ival *without)
{
    uint64_t low = rank_of(&run->lower, thousandths, without ? &without->lo : NULL);
    uint64_t high = rank_of(&run->upper, thousandths, without ? &without->hi : NULL);
    return (struct hm_ival){hm_histogram_lower(&run->lower, low), hm_histogram_upper(&run->upper, high)};
}

bool hm_noise_run_level(const struct hm_noise_run *run, const struct hm_ival *without, struct hm_ival *level)
{
    uint64_t others = run->lower.count - (without && run->lower.count > 0 ? 1 : 0);
    *level = (struct hm_ival){0, INFINITY};
    if (others < HM_LEVEL_LEAST_POSITIONS) return false;
    struct hm_ival most = quantile(run, 999, without), cap = quantile(run, 990, without);
    level->lo = fmin(most.lo, fmax(nextafter(HM_OUTLIER_FACTOR * cap.lo, -INFINITY), 0));
    level->hi = fmin(most.hi, cap.hi > 0 ? nextafter(HM_OUTLIER_FACTOR * cap.hi, INFINITY) : 0);
    return true;
}

bool hm_noise_level(const struct hm_noise_run *run, const struct hm_noise *position, struct hm_ival *level)
{
    bool measured = position->shared >= 2;
    if (!hm_noise_run_level(run, measured ? &position->nats : NULL, level)) return false;
    if (!measured) return true;
    level->lo = fmax(level->lo, position->unit.lo);
    level->hi = fmax(level->hi, position->unit.hi);
    return true;
}

bool hm_noise_is_foreign(const struct hm_noise_run *run)
{
    return run->lower.count >= HM_LEVEL_LEAST_POSITIONS && quantile(run, 500, NULL).lo > 1;
}

enum hm_verdict hm_noise_outlier(struct hm_ival noise, struct hm_ival level)
{
    // Ten times a double, rounded, and one unit more on the side that claims less.
    if (noise.lo > nextafter(HM_OUTLIER_FACTOR * level.hi, INFINITY)) return HM_YES;
    if (noise.hi <= nextafter(HM_OUTLIER_FACTOR * level.lo, -INFINITY) || noise.hi == 0) return HM_NO;
    return HM_UNDECIDED;
}
