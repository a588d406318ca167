// Rows, weights, divergences, levels and thresholds: see math.h. theory.md §1, §2, §3, §8.
#include "certify/check/math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT = 512 }; // bits that hold any difference of float logits exactly

mpfr_prec_t ck_precision(int level)
{
    return 128L << level;
}

bool ck_math_init(struct ck_math *m, size_t vocab)
{
    m->vocab = vocab;
    mpq_inits(m->inverse_claim, m->inverse_draw, NULL);
    for (int i = 0; i < 2; i++) {
        struct ck_row *r = &m->row[i];
        r->logit = calloc(vocab, sizeof *r->logit);
        r->order = calloc(vocab, sizeof *r->order);
        r->rank = calloc(vocab, sizeof *r->rank);
        if (!r->logit || !r->order || !r->rank) return false;
    }
    return true;
}

static void forget(struct ck_math *m, struct ck_dist *d)
{
    if (!d->e) return;
    iv_clears(d->e, m->vocab);
    iv_clears(&d->sum, 1);
    iv_clears(&d->log_sum, 1);
    iv_clears(&d->moment, 1);
    free(d->e);
    memset(d, 0, sizeof *d);
}

void ck_math_clear(struct ck_math *m)
{
    if (!m->vocab) return;
    for (int w = 0; w < 3; w++)
        for (int i = 0; i < CK_LEVELS; i++) forget(m, &m->dist[w][i]);
    for (int i = 0; i < CK_LEVELS; i++)
        if (m->pair[i].ready) iv_clears(m->pair[i].v, 3);
    for (int i = 0; i < 2; i++) {
        free(m->row[i].logit);
        free(m->row[i].order);
        free(m->row[i].rank);
    }
    mpq_clears(m->inverse_claim, m->inverse_draw, NULL);
    memset(m, 0, sizeof *m);
}

static int by_order(const void *a, const void *b, void *logit)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    float x = ((const float *)logit)[i], y = ((const float *)logit)[j];
    return x != y ? (x < y) - (x > y) : (i > j) - (i < j);
}

void ck_math_new_row(struct ck_math *m, enum ck_which which)
{
    struct ck_row *r = &m->row[which];
    for (size_t i = 0; i < m->vocab; i++) r->order[i] = (uint32_t)i;
    qsort_r(r->order, m->vocab, sizeof *r->order, by_order, r->logit);
    for (size_t i = 0; i < m->vocab; i++) r->rank[r->order[i]] = (uint32_t)i;
    for (r->finite = m->vocab; r->finite > 0 && isinf(r->logit[r->order[r->finite - 1]]); r->finite--) {
    }
    for (int i = 0; i < CK_LEVELS; i++) {
        for (int w = 0; w < 3; w++) {
            if ((w == CK_DRAFT) != (which == CK_DRAFT)) continue;
            m->dist[w][i].ready = false;
            if (i > 1) forget(m, &m->dist[w][i]); // high precisions are rare and large
        }
        if (m->pair[i].ready) iv_clears(m->pair[i].v, 3);
        m->pair[i].ready = false;
    }
}

void ck_z(const struct ck_math *m, enum ck_which which, size_t token, struct iv *z)
{
    const struct ck_row *r = &m->row[which == CK_DRAFT];
    const mpq_t *inverse = which == CK_DRAW ? &m->inverse_draw : &m->inverse_claim;
    double first = r->logit[r->order[0]];
    iv_point(z, r->logit[token]);
    mpfr_sub_d(z->lo, z->lo, first, MPFR_RNDD);
    mpfr_sub_d(z->hi, z->hi, first, MPFR_RNDU);
    if (mpq_cmp_ui(*inverse, 1, 1) != 0) iv_mul_q(z, z, *inverse);
}

const struct ck_dist *ck_dist(struct ck_math *m, enum ck_which which, int level)
{
    if (which == CK_DRAW && m->same_temperature) which = CK_TARGET;
    struct ck_dist *d = &m->dist[which][level];
    const struct ck_row *r = &m->row[which == CK_DRAFT];
    mpfr_prec_t precision = ck_precision(level);
    if (d->ready) return d;
    if (!d->e) {
        d->e = calloc(m->vocab, sizeof *d->e);
        if (!d->e) abort(); // as MPFR does without memory
        iv_inits(d->e, m->vocab, precision);
        iv_inits(&d->sum, 1, precision);
        iv_inits(&d->log_sum, 1, precision);
        iv_inits(&d->moment, 1, precision);
    }
    iv_point(&d->sum, 0);
    iv_point(&d->moment, 0);
    struct iv t[2];
    iv_inits(t, 2, precision);
    for (size_t i = 0; i < m->vocab; i++) {
        iv_point(&d->e[i], 0);
        if (isinf(r->logit[i])) continue;
        ck_z(m, which, i, &t[0]);
        iv_exp(&d->e[i], &t[0]);
        iv_add(&d->sum, &d->sum, &d->e[i]);
        iv_mul(&t[1], &d->e[i], &t[0]);
        iv_add(&d->moment, &d->moment, &t[1]);
    }
    iv_log(&d->log_sum, &d->sum);
    iv_clears(t, 2);
    d->ready = true;
    return d;
}

void ck_sum_order(const struct ck_dist *d, const struct ck_row *row, size_t from, size_t to, struct iv *sum)
{
    iv_point(sum, 0);
    for (size_t j = from; j < to; j++) iv_add(sum, sum, &d->e[row->order[j]]);
}

bool ck_lse(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    (void)ask;
    iv_point(out, m->row[0].logit[m->row[0].order[0]]);
    iv_mul_q(out, out, m->inverse_claim);
    iv_add(out, out, &ck_dist(m, CK_TARGET, level)->log_sum);
    return true;
}

bool ck_entropy(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    (void)ask;
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    iv_div(out, &d->moment, &d->sum);
    iv_sub(out, &d->log_sum, out);
    iv_positive(out);
    return true;
}

// The rows differ by a constant only, so that p = q. Float differences are exact at 512 bits.
static bool same_law(const struct ck_math *m)
{
    const float *p = m->row[0].logit, *q = m->row[1].logit;
    mpfr_t first, d;
    mpfr_inits2(EXACT, first, d, (mpfr_ptr)0);
    bool same = m->row[0].finite == m->row[1].finite, begun = false;
    for (size_t i = 0; i < m->vocab && same; i++) {
        if (isinf(p[i]) || isinf(q[i])) {
            same = isinf(p[i]) && isinf(q[i]);
            continue;
        }
        mpfr_set_flt(d, p[i], MPFR_RNDN);
        mpfr_sub_d(d, d, q[i], MPFR_RNDN);
        if (begun)
            same = mpfr_equal_p(first, d) != 0;
        else
            mpfr_set(first, d, MPFR_RNDN);
        begun = true;
    }
    mpfr_clears(first, d, (mpfr_ptr)0);
    return same;
}

static const struct ck_pair *pair(struct ck_math *m, int level)
{
    struct ck_pair *r = &m->pair[level];
    if (r->ready) return r;
    r->ready = true;
    iv_inits(r->v, 3, ck_precision(level));
    if (same_law(m)) return r;
    const struct ck_dist *p = ck_dist(m, CK_TARGET, level), *q = ck_dist(m, CK_DRAFT, level);
    const struct ck_dist *d[2] = {p, q};
    struct iv t[3];
    bool infinite[2] = {false, false};
    iv_inits(t, 3, ck_precision(level));
    for (size_t i = 0; i < m->vocab; i++) {
        bool in[2] = {!isinf(m->row[0].logit[i]), !isinf(m->row[1].logit[i])};
        ck_z(m, CK_TARGET, i, &t[0]);
        ck_z(m, CK_DRAFT, i, &t[1]);
        iv_sub(&t[0], &t[0], &t[1]); // ln(p_i/q_i) up to a constant
        for (int side = 0; side < 2; side++) {
            if (in[side] && !in[!side]) infinite[side] = true;
            if (!in[0] || !in[1]) continue;
            iv_mul(&t[1], &d[side]->e[i], &t[0]);
            if (side == 0)
                iv_add(&r->v[0], &r->v[0], &t[1]);
            else
                iv_sub(&r->v[1], &r->v[1], &t[1]);
        }
        iv_mul(&t[1], &p->e[i], &q->sum);
        iv_mul(&t[2], &q->e[i], &p->sum);
        iv_sub(&t[1], &t[1], &t[2]);
        iv_positive(&t[1]);
        iv_add(&r->v[2], &r->v[2], &t[1]);
    }
    iv_sub(&t[0], &q->log_sum, &p->log_sum);
    iv_div(&r->v[0], &r->v[0], &p->sum);
    iv_add(&r->v[0], &r->v[0], &t[0]);
    iv_div(&r->v[1], &r->v[1], &q->sum);
    iv_sub(&r->v[1], &r->v[1], &t[0]);
    iv_mul(&t[1], &p->sum, &q->sum);
    iv_div(&r->v[2], &r->v[2], &t[1]);
    iv_at_most_one(&r->v[2]);
    for (int side = 0; side < 2; side++) {
        iv_positive(&r->v[side]);
        if (infinite[side]) iv_point(&r->v[side], INFINITY);
    }
    iv_clears(t, 3);
    return r;
}

bool ck_kl_pq(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    (void)ask;
    iv_set(out, &pair(m, level)->v[CK_KLF]);
    return true;
}

bool ck_kl_qp(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    (void)ask;
    iv_set(out, &pair(m, level)->v[CK_KLR]);
    return true;
}

bool ck_tv_pq(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    (void)ask;
    iv_set(out, &pair(m, level)->v[CK_TV]);
    return true;
}

bool ck_regret(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    (void)level;
    struct iv zero;
    iv_inits(&zero, 1, 2);
    ck_z(m, CK_TARGET, ask->token, out);
    iv_sub(out, &zero, out);
    iv_clears(&zero, 1);
    return true;
}
