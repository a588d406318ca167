// Draft vocabularies smaller than the target's: see math.h. theory.md §4. D is the support of q.
#include "certify/check/math.h"

#include <math.h>
#include <stdlib.h>

bool ck_known_make(struct ck_math *inner, const struct ck_math *outer)
{
    size_t n = 0;
    bool any = false;
    for (size_t i = 0; i < outer->vocab; i++) {
        if (isinf(outer->row[1].logit[i])) continue;
        inner->row[0].logit[n] = outer->row[0].logit[i];
        inner->row[1].logit[n] = outer->row[1].logit[i];
        any = any || !isinf(inner->row[0].logit[n]);
        n++;
    }
    if (!any) return false;
    inner->vocab = n;
    mpq_set(inner->inverse_claim, outer->inverse_claim);
    ck_math_new_row(inner, CK_TARGET);
    ck_math_new_row(inner, CK_DRAFT);
    return true;
}

// Sums of p's weights on D and outside.
static void sums(struct ck_math *m, int level, struct iv *inside, struct iv *outside)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    const struct ck_row *r = d->row;
    uint32_t *n = calloc(r->classes + 1, sizeof *n);
    struct iv t[2];
    if (!n) abort(); // as MPFR does without memory
    iv_inits(t, 2, ck_precision(level));
    for (size_t i = 0; i < m->vocab; i++) n[r->class_of[i]] += !isinf(m->row[1].logit[i]);
    iv_point(inside, 0);
    iv_point(outside, 0);
    for (size_t c = 0; c < r->classes; c++) {
        ck_class_weight(d, c, &t[0]);
        iv_scale(&t[1], &t[0], n[c]);
        iv_add(inside, inside, &t[1]);
        iv_scale(&t[1], &t[0], r->first[c + 1] - r->first[c] - n[c]);
        iv_add(outside, outside, &t[1]);
    }
    iv_clears(t, 2);
    free(n);
}

bool ck_known_mass(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    (void)ask;
    struct iv t[2];
    iv_inits(t, 2, ck_precision(level));
    sums(m, level, &t[0], &t[1]);
    if (mpfr_zero_p(t[1].hi))
        iv_point(out, 1);
    else
        iv_div(out, &t[0], &ck_dist(m, CK_TARGET, level)->total);
    iv_at_most_one(out);
    iv_clears(t, 2);
    return true;
}

bool ck_known_klr(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    struct iv mass;
    iv_inits(&mass, 1, ck_precision(level));
    ck_known_mass(ask->outer, level, ask, &mass);
    iv_log(&mass, &mass);
    bool ok = ck_klr(m, level, ask, out);
    iv_sub(out, out, &mass);
    iv_positive(out);
    iv_clears(&mass, 1);
    return ok;
}

// min_t max( sum_S (t - p_s)^+ , 1 - p(D) + sum_(A cap D) (p_a - t)^+ ): both are equal at the level t whose balance
// has 1 - p(D) on the side of A. In weights of p_D, whose sum stands for p(D).
bool ck_known_tv(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    struct iv t[5]; // inside; outside; outside in weights of p_D; the level; a term
    iv_inits(t, 5, ck_precision(level));
    sums(ask->outer, level, &t[0], &t[1]);
    iv_div(&t[2], &t[1], &t[0]);
    iv_mul(&t[2], &t[2], &d->total);
    iv_point(out, 0);
    bool flat = mpfr_zero_p(t[1].hi) && ck_level_row(m, ask);
    bool ok = flat || ck_level_weight(m, level, ask, &t[2], &t[3]);
    for (struct ck_run run = {.from = ask->k}; !flat && ok && ck_next_run(d->row, ask->k + ask->m, &run);) {
        ck_class_weight(d, run.class, &t[4]);
        iv_sub(&t[4], &t[3], &t[4]);
        iv_positive(&t[4]);
        iv_scale(&t[4], &t[4], run.count);
        iv_add(out, out, &t[4]);
    }
    iv_div(out, out, &d->total);
    iv_mul(out, out, &t[0]);
    iv_div(out, out, &ck_dist(ask->outer, CK_TARGET, level)->total);
    iv_at_most_one(out);
    iv_clears(t, 5);
    return ok;
}
