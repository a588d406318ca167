// Sequence-level bounds: see sequence.h. Sums of enclosures in double; the ends of everything else are taken one by one,
// since each formula is monotone in what it is given.
#include "bounds/sequence.h"

#include "bounds/ival_math.h"

#include <math.h>
#include <stdlib.h>

static const struct hm_ival zero = {0, 0}, one = {1, 1};

// An integer as an enclosure: above 2^53 a double may lie on either side.
static struct hm_ival count_of(uint64_t n)
{
    double d = (double)n;
    return n <= UINT64_C(1) << 53 ? hm_ival_point(d) : (struct hm_ival){d * (1 - 0x1p-52), d * (1 + 0x1p-52)};
}

static struct hm_ival clip(struct hm_ival x, double least, double most)
{
    return hm_ival_min(hm_ival_max(x, hm_ival_point(least)), hm_ival_point(most));
}

void hm_sequence_add(struct hm_sequence_sum *sum, struct hm_ival e, struct hm_ival ratio)
{
    sum->s = hm_ival_add(sum->s, e);
    sum->log_w = hm_ival_add(sum->log_w, hm_ival_log(ratio));
    sum->steps++;
}

void hm_fidelity_add(struct hm_fidelity_sum *sum, const struct hm_sequence_sum *sequence)
{
    struct hm_ival less = hm_ival_max(hm_ival_neg(sequence->log_w), zero); // w = e^-less where w <= 1
    struct hm_ival shortfall = clip(hm_ival_drop(less), 0, 1);
    sum->sequences++;
    sum->s = hm_ival_add(sum->s, sequence->s);
    sum->shortfall = hm_ival_add(sum->shortfall, shortfall);
    sum->squares = hm_ival_add(sum->squares, clip(hm_ival_mul(shortfall, shortfall), 0, 1));
}

// The square root of a number >= 0, from above: the processor rounds it to nearest.
static double root_up(double x)
{
    return x > 0 ? hm_ival_add(hm_ival_mul(hm_ival_point(sqrt(x)), (struct hm_ival){1, 1 + 0x1p-52}),
                               (struct hm_ival){0, 0x1p-1000}).hi : 0;
}

// A mean and what is added to it, as an upper bound of a number that is at most 1; 1 when either is unknown.
static double bound_of(struct hm_ival mean, double margin)
{
    double bound = hm_ival_add(mean, hm_ival_point(margin)).hi;
    return bound < 1 ? bound : 1;
}

// sqrt(ln(1/risk) / (2n))
static double hoeffding_margin(struct hm_ival log, uint64_t n)
{
    return root_up(hm_ival_div(log, hm_ival_mul(hm_ival_point(2), count_of(n))).hi);
}

// sqrt(2 V ln(2/risk) / n) + 7 ln(2/risk) / (3(n - 1)), V the sample variance.
static double bernstein_margin(const struct hm_fidelity_sum *sum, struct hm_ival log)
{
    struct hm_ival n = count_of(sum->sequences), less = count_of(sum->sequences - 1);
    struct hm_ival spread = hm_ival_sub(sum->squares, hm_ival_div(hm_ival_mul(sum->shortfall, sum->shortfall), n));
    struct hm_ival variance = hm_ival_max(hm_ival_div(spread, less), zero);
    log = hm_ival_add(log, hm_ival_log(hm_ival_point(2)));
    double first = root_up(hm_ival_div(hm_ival_mul(hm_ival_mul(hm_ival_point(2), variance), log), n).hi);
    struct hm_ival second = hm_ival_div(hm_ival_mul(hm_ival_point(7), log), hm_ival_mul(hm_ival_point(3), less));
    return hm_ival_add(hm_ival_point(first), second).hi;
}

void hm_fidelity_bound(const struct hm_fidelity_sum *sum, double risk, struct hm_fidelity *out)
{
    *out = (struct hm_fidelity){.mean_shortfall = {0, 1}, .hoeffding = 1, .bernstein = 1, .mean_s = {0, INFINITY},
                                .vacuous_s = true, .vacuous = true};
    uint64_t n = sum->sequences;
    if (n == 0) return;
    out->mean_shortfall = clip(hm_ival_div(sum->shortfall, count_of(n)), 0, 1);
    out->mean_s = hm_ival_max(hm_ival_div(sum->s, count_of(n)), zero);
    out->vacuous_s = !(out->mean_s.hi < 1);
    if (risk > 0 && risk < 1) {
        struct hm_ival log = hm_ival_neg(hm_ival_log(hm_ival_point(risk)));
        out->hoeffding = bound_of(out->mean_shortfall, hoeffding_margin(log, n));
        if (n > 1) out->bernstein = bound_of(out->mean_shortfall, bernstein_margin(sum, log));
    }
    out->vacuous = !(out->hoeffding < 1) && !(out->bernstein < 1);
}

// D/D* at one point: at a failure D >= D*, so 0/0 and inf/inf count as 1.
static struct hm_ival failure_share(double divergence, double level)
{
    if (level == 0 || divergence == INFINITY) return one;
    return level == INFINITY ? zero : hm_ival_div(hm_ival_point(divergence), hm_ival_point(level));
}

void hm_failure_add(struct hm_failure_sum *sum, struct hm_ival divergence, struct hm_ival level, bool covered)
{
    struct hm_ival share = {failure_share(divergence.lo, level.hi).lo, failure_share(divergence.hi, level.lo).hi};
    sum->steps++;
    sum->failures += !covered;
    sum->bound = hm_ival_add(sum->bound, clip(share, 0, 1));
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double hm_failure_markov(double *levels, size_t count, double mean_divergence, double *at)
{
    double best = 1;
    *at = INFINITY;
    if (count == 0 || !(mean_divergence < INFINITY)) return best;
    for (size_t i = 0; i < count; i++)
        if (!(levels[i] > 0)) levels[i] = 0; // an unknown level is none
    qsort(levels, count, sizeof *levels, ascending);
    if (mean_divergence < 0) mean_divergence = 0;
    // E[D]/s falls while P(D* < s) stays, so the best s are the levels themselves: the i levels before one are below it.
    for (size_t i = 0; i < count; i++) {
        if (levels[i] == 0 || (i > 0 && levels[i] == levels[i - 1])) continue;
        struct hm_ival share = hm_ival_div(count_of(i), count_of(count)), rest = zero;
        if (levels[i] < INFINITY) rest = hm_ival_div(hm_ival_point(mean_divergence), hm_ival_point(levels[i]));
        double bound = hm_ival_add(share, rest).hi;
        if (bound < best) {
            best = bound;
            *at = levels[i];
        }
    }
    return best;
}

// 1 - (1-e)^length = 1 - e^-u with u = -length ln(1-e).
static struct hm_ival uniform_at(double e, uint64_t length)
{
    if (!(e > 0) || length == 0) return zero;
    if (e >= 1) return one;
    struct hm_ival u = hm_ival_mul(hm_ival_neg(hm_ival_log1p(hm_ival_point(-e))), count_of(length));
    return clip(hm_ival_drop(u), 0, 1);
}

struct hm_ival hm_sequence_uniform(struct hm_ival e, uint64_t length)
{
    return (struct hm_ival){uniform_at(e.lo, length).lo, uniform_at(e.hi, length).hi};
}
