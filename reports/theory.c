// Gathers theory.h's figures, record by record.
#include "reports/theory.h"

#include "bounds/ival_math.h"

#include <math.h>

void hm_sum_add(struct hm_sum *sum, struct hm_ival value)
{
    struct hm_ival now = sum->count ? hm_ival_add((struct hm_ival){sum->lo, sum->hi}, value) : value;
    sum->lo = now.lo;
    sum->hi = now.hi;
    sum->count++;
}

// Counts are far below 2^53.
static struct hm_ival mean(const struct hm_sum *sum)
{
    return hm_ival_div((struct hm_ival){sum->lo, sum->hi}, hm_ival_point((double)sum->count));
}

double hm_sum_mean_lower(const struct hm_sum *sum)
{
    return mean(sum).lo;
}

double hm_sum_mean_upper(const struct hm_sum *sum)
{
    return mean(sum).hi;
}

static void add_judged(struct hm_claim_theory *t, const struct hm_record_step *step,
                       const struct hm_record_claim *claim)
{
    const struct hm_ival distance[3] = {step->kl_pq, step->kl_qp, step->tv};
    const struct hm_ival level[3] = {claim->level.klf, claim->level.klr, claim->level.tv};
    t->judged++;
    for (int i = 0; i < 3; i++)
        if (claim->covered != HM_UNDECIDED)
            hm_failure_add(&t->failure[i], distance[i], level[i], claim->covered == HM_YES);
    t->judged_vacuous += claim->certified[0] == HM_CERT_VACUOUS;
    hm_histogram_add(&t->klf, claim->level.klf.lo);
    hm_sum_add(&t->kl_pq, step->kl_pq);
}

static void add_restricted(struct hm_claim_theory *t, const struct hm_restricted *r)
{
    bool yes = false;
    t->restricted++;
    t->no_mass += r->no_mass;
    for (int i = 0; i < 3; i++) yes |= r->certified[i] == HM_CERT_YES;
    t->restricted_yes += yes;
    t->restricted_vacuous += r->certified[0] == HM_CERT_VACUOUS;
    hm_sum_add(&t->mass, r->no_mass ? (struct hm_ival){0, 0} : r->mass);
}

void hm_theory_claim(struct hm_claim_theory *t, const struct hm_record_step *step, const struct hm_record_claim *claim,
                     const struct hm_record_header *header)
{
    t->active[claim->active]++;
    bool applies = claim->has_verdicts && claim->certified[0] != HM_CERT_INAPPLICABLE;
    if (applies && claim->has_level && step->has_draft) add_judged(t, step, claim);
    if (claim->has_restricted) add_restricted(t, &claim->restricted);
    for (size_t i = 0; claim->has_divergences && i < header->divergence_count; i++) {
        struct hm_claim_divergence *d = &t->divergence[i];
        if (d->thresholds++ == 0) d->least = INFINITY;
        d->least = fmin(d->least, claim->divergence[i].star.lo);
        d->verdicts += claim->divergence[i].has_verdict;
        d->vacuous += claim->divergence[i].has_verdict && claim->divergence[i].certified == HM_CERT_VACUOUS;
        d->yes += claim->divergence[i].has_verdict && claim->divergence[i].certified == HM_CERT_YES;
    }
    for (size_t i = 0; i < HM_LOG_LAWS; i++) {
        if (!claim->has_law[i]) continue;
        hm_sum_add(&t->accept[i], claim->law[i].accept);
        hm_sum_add(&t->e[i], claim->law[i].e);
    }
}

void hm_theory_step(struct hm_report_theory *r, const struct hm_record_step *step)
{
    if (step->has_standard_accept) hm_sum_add(&r->standard_accept, step->standard_accept);
    for (size_t i = 0; step->has_divergences && i < HM_LOG_MOST_DIVERGENCES; i++)
        hm_sum_add(&r->divergence[i], step->divergence[i]);
    if (!step->has_e) return;
    if (!r->open_has_e) r->open = HM_SEQUENCE_START;
    r->open_has_e = true;
    hm_sequence_add(&r->open, step->e, step->ratio);
}

void hm_theory_sequence_end(struct hm_report_theory *r, bool finished)
{
    if (!r->open_has_e) return;
    if (finished)
        hm_fidelity_add(&r->fidelity, &r->open);
    else
        r->unfinished++;
    r->open_has_e = false;
}

double hm_theory_markov(const struct hm_claim_theory *t, double *at)
{
    double best = 1, n = (double)t->klf.count;
    *at = 0;
    if (!t->kl_pq.count) return best;
    double most = hm_sum_mean_upper(&t->kl_pq);
    uint64_t under = t->klf.below;
    for (size_t bin = 0; bin <= HM_HISTOGRAM_BINS; bin++) {
        double s = hm_histogram_edge(bin), share = nextafter((double)under / n, INFINITY);
        double bound = nextafter(share + nextafter(most / s, INFINITY), INFINITY);
        if (bound < best) best = bound, *at = s;
        if (bin < HM_HISTOGRAM_BINS) under += t->klf.bin[bin];
    }
    return best;
}
