// "Is D(p, q) < D*?": see certificate_state.h, theory.md §2 and §8. The identities are in certificate_identity.c.
#include "certify/certificate_state.h"

#include <math.h>
#include <stdlib.h>

static hm_status below_at(struct hm_row *p, struct hm_row *q, size_t k, size_t m, enum hm_which which,
                          mpfr_prec_t precision, enum hm_verdict *out, struct hm_error *err)
{
    struct hm_level_values level;
    struct hm_distance_values distance;
    bool good = false;
    hm_level_values_init(&level, precision);
    hm_distance_values_init(&distance, precision);
    hm_status status = hm_level_at(p, k, m, precision, &level, NULL, &good, err);
    if (status == HM_OK) status = hm_row_distance_at(p, q, precision, &distance, err);
    if (status == HM_OK) {
        const struct hm_mpi *d[] = {&distance.kl_pq, &distance.kl_qp, &distance.tv};
        const struct hm_mpi *bound[] = {&level.klf, &level.klr, &level.tv};
        *out = good || which == HM_REVERSE ? hm_mpi_less(d[which], bound[which]) : HM_UNDECIDED;
    }
    hm_level_values_clear(&level);
    hm_distance_values_clear(&distance);
    return status;
}

static enum hm_certified as_certified(enum hm_verdict verdict)
{
    return verdict == HM_YES ? HM_CERT_YES : verdict == HM_NO ? HM_CERT_NO : HM_CERT_UNDECIDED;
}

hm_status hm_claim_below(struct hm_row *p, struct hm_row *q, size_t k, size_t m, enum hm_which which,
                         struct hm_ival divergence, const struct hm_level *level, enum hm_certified *out,
                         struct hm_error *err)
{
    struct hm_ival bound = which == HM_FORWARD ? level->klf : which == HM_REVERSE ? level->klr : level->tv;
    // Infinite divergences certify nothing, not even against an infinite level; finite ones lie below it.
    if (divergence.lo == INFINITY || divergence.lo >= bound.hi) *out = HM_CERT_NO;
    else if (bound.lo == INFINITY || divergence.hi < bound.lo) *out = HM_CERT_YES;
    else *out = HM_CERT_UNDECIDED;
    if (*out != HM_CERT_UNDECIDED) {
        p->filter.answered++;
        return HM_OK;
    }
    p->filter.undecided++;
    bool attained;
    hm_status status = hm_claim_attains(p, q, k, m, which, &attained, err);
    if (status) return status;
    if (attained) {
        *out = HM_CERT_NO;
        return HM_OK;
    }
    enum hm_verdict verdict = HM_UNDECIDED;
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && verdict == HM_UNDECIDED; precision *= 2) {
        status = below_at(p, q, k, m, which, precision, &verdict, err);
        if (status) return status;
    }
    *out = as_certified(verdict);
    return HM_OK;
}
