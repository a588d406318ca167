// What a drafter must reach: see requirement.h.
#include "reports/requirement.h"

#include <math.h>

void hm_known_add(struct hm_known *known, const struct hm_record_step *step, const struct hm_record_claim *claim)
{
    const struct hm_margin *gap = &claim->margin;
    const struct hm_universal *rule = &claim->universal;
    const bool certified[HM_KNOWN_FROM][HM_REQUIREMENTS] = {
        [HM_FROM_ROW] = {claim->certified[0] == HM_CERT_YES, claim->certified[1] == HM_CERT_YES,
                         claim->certified[2] == HM_CERT_YES},
        [HM_FROM_GAP] = {step->kl_pq.hi < gap->klf.lo, step->kl_qp.hi < gap->klr.lo, step->tv.hi < gap->tv.lo},
        [HM_FROM_RULE] = {step->kl_pq.hi < rule->klf.lo, step->kl_qp.hi < rule->klr.lo, false}};
    const bool with[HM_KNOWN_FROM] = {true, claim->has_margin, claim->has_universal};
    known->steps++;
    for (int from = 0; from < HM_KNOWN_FROM; from++) {
        bool any = false;
        if (!with[from]) continue;
        known->with[from]++;
        for (int by = 0; by < HM_REQUIREMENTS; by++) {
            known->yes[from][by] += certified[from][by];
            any |= certified[from][by];
        }
        known->yes[from][HM_BY_ANY] += any;
    }
}

double hm_requirement_at(const struct hm_histogram *level, unsigned percent)
{
    uint64_t whole = level->count / 100, rest = level->count % 100;
    uint64_t needed = whole * percent + (rest * percent + 99) / 100; // ceil(count * percent / 100)
    return hm_histogram_lower(level, level->count - (needed ? needed : 1));
}

// The first bin whose lower edge is at least x.
static size_t bin_from(double x)
{
    size_t bin = 0;
    while (bin < HM_HISTOGRAM_BINS && hm_histogram_edge(bin) < x) bin++;
    return bin;
}

static struct hm_curve between_bins(size_t first, size_t last)
{
    size_t stride = (last - first + HM_CURVE_POINTS - 2) / (HM_CURVE_POINTS - 1);
    return (struct hm_curve){first, last, stride ? stride : 1};
}

struct hm_curve hm_curve_between(double from, double to)
{
    size_t first = bin_from(from), last = first;
    while (last < HM_HISTOGRAM_BINS && hm_histogram_edge(last + 1) <= to) last++;
    return between_bins(first, last);
}

size_t hm_curve_next(const struct hm_curve *curve, size_t bin)
{
    return curve->last - bin > curve->stride ? bin + curve->stride : curve->last;
}

uint64_t hm_curve_count(const struct hm_histogram *h, size_t bin, uint64_t count, size_t later)
{
    while (bin < later) count -= h->bin[bin++];
    return count;
}

struct hm_curve hm_curve_over(const struct hm_histogram *level, const struct hm_histogram *draft)
{
    const struct hm_histogram *both[] = {level, draft};
    size_t first = HM_HISTOGRAM_BINS, last = 0;
    for (int i = 0; i < 2; i++)
        for (size_t bin = 0; bin < HM_HISTOGRAM_BINS; bin++) {
            if (!both[i]->bin[bin]) continue;
            if (bin < first) first = bin;
            if (bin + 1 > last) last = bin + 1;
        }
    return last > first ? between_bins(first, last) : (struct hm_curve){0, 0, 1};
}
