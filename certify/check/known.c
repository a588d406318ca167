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

// Is every token of D in the tied set, with q uniform there?  Then q is the clipped p itself. OPEN: not so, as far as
// known.
static enum answer all_tied(struct ck_math *m, const struct ck_ask *ask)
{
    int level = m->first_level > ask->outer->first_level ? m->first_level : ask->outer->first_level;
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    struct iv t[3]; // 1/|D| in weights of p_D, p(D) on D; a weight
    iv_inits(t, 3, ck_precision(level));
    sums(ask->outer, level, &t[0], &t[1]);
    iv_add(&t[1], &t[1], &t[0]);
    iv_div(&t[0], &t[1], &t[0]);
    iv_mul(&t[0], &t[0], &d->total);
    iv_divide(&t[0], &t[0], m->vocab);
    ck_weight(d, d->row->order[ask->k - 1], &t[1]);
    ck_weight(d, d->row->order[ask->k], &t[2]);
    bool tied = mpfr_greaterequal_p(t[1].lo, t[0].hi) && mpfr_lessequal_p(t[2].hi, t[0].lo);
    iv_clears(t, 3);
    return tied ? YES : OPEN;
}

enum answer ck_known_never(struct ck_math *m, const struct ck_ask *ask)
{
    enum answer never = OPEN;
    size_t n = ask->k + ask->m;
    if (ck_uniform(&m->row[1]) && m->vocab == n) never = all_tied(m, ask);
    for (int level = m->first_level; level < CK_LEVELS && never == OPEN; level++) {
        const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
        struct iv t[3]; // sum_S (p_(1) - p_s) and 1 - p(D), in weights of p_D
        if (level < ask->outer->first_level) continue;
        iv_inits(t, 3, ck_precision(level));
        sums(ask->outer, level, &t[0], &t[1]);
        iv_div(&t[1], &t[1], &t[0]);
        iv_mul(&t[1], &t[1], &d->total);
        iv_point(&t[2], (double)ask->m);
        ck_sum_order(d, ask->k, n, &t[0]);
        iv_sub(&t[2], &t[2], &t[0]);
        never = iv_at_least(&t[1], &t[2]);
        iv_clears(t, 3);
    }
    return never;
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
