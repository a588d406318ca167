// Where steps stand, and distances of distributions on three tokens: see region.h. All ends are rounded outward.
#include "reports/region.h"

#include "base/rational.h"
#include "base/text.h"
#include "bounds/ival_math.h"

#include <math.h>
#include <string.h>

// e^(l/T - lse), for a finite logit; 0 for -inf.
static bool probability(double logit, const struct hm_ival *temperature, struct hm_ival lse, struct hm_ival *out)
{
    *out = (struct hm_ival){0, 0};
    if (logit == -INFINITY) return true;
    if (!isfinite(logit)) return false;
    *out = hm_ival_exp(hm_ival_sub(hm_ival_div(hm_ival_point(logit), *temperature), lse));
    *out = hm_ival_meet(*out, (struct hm_ival){0, 1});
    return out->lo <= out->hi; // else the log contradicts itself
}

static bool temperature_of(const char *text, struct hm_ival *out)
{
    struct hm_rational t;
    struct hm_error err;
    hm_rational_init(&t);
    bool good = text && hm_rational_parse(text, &t, &err) == HM_OK && hm_rational_sign(&t) > 0;
    if (good) *out = hm_ival_rational(t.value);
    hm_rational_clear(&t);
    return good;
}

static double nearness_of(double distance, double level)
{
    return distance > 0 && distance < INFINITY ? fabs(log(distance) - log(level)) : INFINITY;
}

// Fills what the log says; false where its numbers do not fit each other.
static bool fill(struct hm_region *g, const struct hm_record_step *step, const struct hm_record_claim *claim,
                 const char *certify_temperature)
{
    struct hm_ival temperature;
    if (!temperature_of(certify_temperature, &temperature)) return false;
    for (int i = 0; i < 2; i++)
        if (!claim->edge[i].present || !probability(claim->edge[i].logit, &temperature, step->lse, &g->edge[i]))
            return false;
    g->gap = claim->has_margin ? claim->margin.gap : hm_ival_sub(g->edge[0], g->edge[1]);
    g->gap = hm_ival_meet(g->gap, (struct hm_ival){0, 1});
    return g->gap.lo <= g->gap.hi;
}

void hm_regions_add(struct hm_regions *regions, const struct hm_record_step *step, const struct hm_record_claim *claim,
                    const char *certify_temperature, size_t log, size_t line)
{
    bool certified = claim->has_verdicts && claim->certified[0] == HM_CERT_YES;
    if (!claim->has_verdicts || (!certified && claim->certified[0] != HM_CERT_NO)) return;
    if (!claim->has_level || !step->has_draft || claim->k < 1 || claim->m < 1) return;
    const struct hm_level *l = &claim->level;
    if (!(l->klf.lo > 0) || isinf(l->klf.lo)) return;
    double nearness = nearness_of(step->kl_pq.hi, l->klf.lo);
    struct hm_region *near = regions->near[certified];
    size_t *count = &regions->count[certified], at = *count;
    while (at > 0 && nearness < near[at - 1].nearness) at--;
    if (at == HM_REGION_STEPS) return;
    struct hm_region g = {.log = log,
                          .line = line,
                          .sequence = step->sequence,
                          .t = step->t,
                          .index = step->index,
                          .k = claim->k,
                          .m = claim->m,
                          .certified = certified,
                          .nearness = nearness,
                          .distance = {step->kl_pq, step->kl_qp, step->tv},
                          .level = {l->klf, l->klr, l->tv},
                          .water = {l->level_f, l->level_r}};
    if (!fill(&g, step, claim, certify_temperature)) return;
    hm_text_copy(g.text, sizeof g.text, step->text, strlen(step->text));
    if (*count < HM_REGION_STEPS) ++*count;
    for (size_t i = *count - 1; i > at; i--) near[i] = near[i - 1];
    near[at] = g;
}

// psi(v) = (1+v) ln(1+v) - v, v >= -1: it falls from psi(-1) = 1 to psi(0) = 0 and rises from there. For small v
// absolutely exact to a few units of 2^-52 |v|, which is plenty for a picture.
static struct hm_ival psi_at(double v)
{
    struct hm_ival x = hm_ival_point(v), one = hm_ival_add(hm_ival_point(1), x);
    if (!(one.lo > 0)) return (struct hm_ival){v <= -1 ? 1 : 0, 1}; // psi(-1) = 1, its largest below 0
    struct hm_ival value = hm_ival_sub(hm_ival_mul(one, hm_ival_log1p(x)), x);
    return (struct hm_ival){fmax(value.lo, 0), fmax(value.hi, 0)};
}

struct hm_ival hm_region_margin(int64_t k, int64_t m, struct hm_ival gap)
{
    struct hm_ival kk = hm_ival_point((double)k), mm = hm_ival_point((double)m);
    struct hm_ival up = hm_ival_mul(mm, gap), down = hm_ival_neg(hm_ival_mul(kk, gap));
    double low = fmax(-1, down.hi), high = fmax(-1, down.lo); // of -k y: the smaller and the larger distance from 0
    struct hm_ival a = {psi_at(fmax(0, up.lo)).lo, psi_at(fmax(0, up.hi)).hi}, b = {psi_at(low).lo, psi_at(high).hi};
    struct hm_ival sum = hm_ival_add(hm_ival_mul(kk, a), hm_ival_mul(mm, b));
    return hm_ival_div(sum, hm_ival_add(kk, mm));
}

struct hm_three hm_three_of(struct hm_ival first, struct hm_ival second)
{
    struct hm_ival rest = hm_ival_sub(hm_ival_sub(hm_ival_point(1), first), second);
    return (struct hm_three){{first, second, {fmax(rest.lo, 0), fmax(rest.hi, 0)}}};
}

// a ln(a/b) for a, b >= 0: 0 for a = 0, and +inf for b = 0.
static struct hm_ival term(struct hm_ival a, struct hm_ival b)
{
    static const double least = -0.36787944117144239; // below -1/e, the least value of x ln x
    if (a.hi <= 0) return (struct hm_ival){0, 0};
    if (b.hi <= 0) return (struct hm_ival){a.lo > 0 ? INFINITY : 0, INFINITY};
    struct hm_ival own = a.lo > 0 ? hm_ival_mul(a, hm_ival_log(a)) : (struct hm_ival){least, 0};
    if (a.lo <= 0) {
        struct hm_ival top = hm_ival_mul(hm_ival_point(a.hi), hm_ival_log(hm_ival_point(a.hi)));
        own = (struct hm_ival){fmax(least, a.hi < 0.25 ? top.lo : least), fmax(0, top.hi)};
    }
    if (b.lo <= 0) return (struct hm_ival){own.lo, INFINITY};
    return hm_ival_add(own, hm_ival_neg(hm_ival_mul(a, hm_ival_log(b))));
}

struct hm_ival hm_three_distance(const struct hm_three *p, double q1, double q2, int kind)
{
    struct hm_three q = hm_three_of(hm_ival_point(q1), hm_ival_point(q2));
    struct hm_ival sum = {0, 0};
    int tokens = p->share[2].hi > 0 ? 3 : 2;
    for (int i = 0; i < tokens; i++) {
        struct hm_ival a = p->share[i], b = q.share[i], part;
        if (kind == 2) {
            struct hm_ival d = hm_ival_sub(a, b), e = hm_ival_neg(d);
            part = hm_ival_div(hm_ival_max(d, e), hm_ival_point(2));
            part.lo = fmax(part.lo, 0);
        } else
            part = kind == 0 ? term(a, b) : term(b, a);
        sum = hm_ival_add(sum, part);
    }
    return (struct hm_ival){fmax(sum.lo, 0), fmax(sum.hi, 0)};
}

double hm_three_reach(const struct hm_three *p, const double from[2], double d1, double d2, int kind,
                      struct hm_ival level, enum hm_side side)
{
    double d[3] = {d1, d2, -d1 - d2}, at[3] = {from[0], from[1], 1 - from[0] - from[1]}, border = INFINITY;
    for (int i = 0; i < 3; i++)
        if (d[i] < 0) border = fmin(border, fmax(at[i], 0) / -d[i]);
    if (isinf(border)) return 0; // no direction
    double low = 0, high = border;
    for (int i = 0; i < 40; i++) {
        double middle = low + (high - low) / 2;
        struct hm_ival value =
            hm_three_distance(p, fmax(from[0] + middle * d1, 0), fmax(from[1] + middle * d2, 0), kind);
        bool within = side == HM_INSIDE ? value.hi <= level.lo : value.lo < level.hi;
        if (within)
            low = middle;
        else
            high = middle;
    }
    return side == HM_INSIDE ? low : high;
}
