// What two rows say of each other, and a row of itself: see math.h. theory.md §1, §2, §5.
#include "certify/check/math.h"

#include <math.h>
#include <stdlib.h>

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
    ck_sum_moment(d, 0, d->row->finite, out);
    iv_div(out, out, &d->total);
    iv_sub(out, &d->log_sum, out);
    iv_positive(out);
    return true;
}

bool ck_regret(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    (void)level;
    const struct ck_row *r = &m->row[0];
    iv_point(out, INFINITY);
    if (isinf(r->logit[ask->token])) return true;
    ck_logit_gap(r, 0, r->rank[ask->token], out);
    iv_mul_q(out, out, m->inverse_claim);
    return true;
}

// p(token) under the draw: the first k of the order at the sampling temperature.
bool ck_chosen(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    const struct ck_dist *d = ck_dist(m, CK_DRAW, level);
    struct iv all;
    iv_inits(&all, 1, ck_precision(level));
    iv_point(out, 0);
    if (d->row->rank[ask->token] < ask->k) ck_weight(d, ask->token, out);
    ck_sum_order(d, 0, ask->k, &all);
    iv_div(out, out, &all);
    iv_at_most_one(out);
    iv_clears(&all, 1);
    return true;
}

// 1 - p(token), as a sum.
bool ck_not_chosen(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    const struct ck_dist *d = ck_dist(m, CK_DRAW, level);
    size_t rank = d->row->rank[ask->token];
    struct iv t;
    iv_inits(&t, 1, ck_precision(level));
    ck_sum_order(d, 0, rank < ask->k ? rank : ask->k, out);
    ck_sum_order(d, rank + 1, ask->k, &t);
    iv_add(out, out, &t);
    ck_sum_order(d, 0, ask->k, &t);
    iv_div(out, out, &t);
    iv_at_most_one(out);
    if (rank >= ask->k || isinf(d->row->logit[ask->token])) iv_point(out, 1);
    iv_clears(&t, 1);
    return true;
}

// Have both the same sorted logits, up to a constant?  Differences of floats are exact at 512 bits.
static bool rearranged(const struct ck_row *p, const struct ck_row *q)
{
    bool same = p->finite == q->finite && p->classes == q->classes;
    mpfr_t first, d;
    for (size_t c = 0; c < p->classes && same; c++) same = p->first[c] == q->first[c];
    if (!same) return false;
    mpfr_inits2(CK_EXACT, first, d, (mpfr_ptr)0);
    for (size_t c = 0; c < p->classes && same; c++) {
        mpfr_set_flt(d, p->logit[p->order[p->first[c]]], MPFR_RNDN);
        mpfr_sub_d(d, d, q->logit[q->order[q->first[c]]], MPFR_RNDN);
        if (c > 0)
            same = mpfr_equal_p(first, d) != 0;
        else
            mpfr_set(first, d, MPFR_RNDN);
    }
    mpfr_clears(first, d, (mpfr_ptr)0);
    return same;
}

static void compare_laws(struct ck_math *m)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    if (m->same_known) return;
    m->rearranged = m->same = rearranged(p, q);
    for (size_t i = 0; i < m->vocab && m->same; i++) m->same = p->class_of[i] == q->class_of[i];
    m->same_known = true;
}

bool ck_same_law(struct ck_math *m)
{
    compare_laws(m);
    return m->same;
}

bool ck_rearranged(struct ck_math *m)
{
    compare_laws(m);
    return m->rearranged;
}

bool ck_find_cut(struct ck_math *m, const struct iv *log_c, struct ck_cut *out)
{
    const struct ck_dist *p = ck_dist(m, CK_TARGET, 0), *q = ck_dist(m, CK_DRAFT, 0);
    if ((!log_c || (mpfr_zero_p(log_c->lo) && mpfr_zero_p(log_c->hi))) && ck_rearranged(m)) {
        out->under = out->over = 0;
        mpfr_set_zero(out->width, 1);
        return true;
    }
    mpz_t n;
    mpq_t t;
    mpz_init(n);
    mpq_init(t);
    mpq_inv(t, p->inverse);
    mpq_mul_2exp(t, t, CK_DEPTH);
    struct iv cut;
    iv_inits(&cut, 1, 160);
    iv_sub(&cut, &p->log_sum, &q->log_sum);
    if (log_c) iv_add(&cut, &cut, log_c);
    mpfr_sub(out->width, cut.hi, cut.lo, MPFR_RNDU);
    mpfr_mul_2ui(out->width, out->width, 1, MPFR_RNDU);
    mpfr_mul_q(cut.lo, cut.lo, t, MPFR_RNDD);
    mpfr_mul_q(cut.hi, cut.hi, t, MPFR_RNDU);
    bool fits = mpfr_cmp_d(cut.lo, -0x1p100) > 0 && mpfr_cmp_d(cut.hi, 0x1p100) < 0;
    for (int end = 0; end < 2 && fits; end++) {
        if (end)
            mpfr_get_z(n, cut.hi, MPFR_RNDD);
        else
            mpfr_get_z(n, cut.lo, MPFR_RNDU);
        bool negative = mpz_sgn(n) < 0;
        mpz_abs(n, n);
        ck_i128 value = (ck_i128)mpz_get_ui(n);
        mpz_fdiv_q_2exp(n, n, 64);
        value |= (ck_i128)mpz_get_ui(n) << 64;
        *(end ? &out->over : &out->under) = negative ? -value : value;
    }
    iv_clears(&cut, 1);
    mpz_clear(n);
    mpq_clear(t);
    return fits;
}

struct side { // sums over sets of tokens of the weights of p and of q
    ck_u128 weight[2];
    size_t count[2];
};

static void add_token(struct side *s, const ck_u128 weight[2], const bool in[2])
{
    for (int i = 0; i < 2; i++) {
        s->weight[i] += weight[i];
        s->count[i] += in[i];
    }
}

static void share(const struct side *s, int which, const struct ck_dist *d, struct iv *out)
{
    ck_between(s->weight[which], s->count[which], out);
    iv_div(out, out, &d->total);
}

static bool pair_fixed(struct ck_math *m, struct ck_pair *r)
{
    const struct ck_dist *d[2] = {ck_dist(m, CK_TARGET, 0), ck_dist(m, CK_DRAFT, 0)};
    const struct ck_row *row[2] = {&m->row[0], &m->row[1]};
    struct side more = {0}, close = {0}, less = {0}; // p > q; too close to say; p <= q
    struct ck_wide product[2][2] = {{{0}}};          // weight of side i times depth of side j
    ck_u128 depths[2] = {0, 0};
    bool infinite[2] = {false, false};
    struct ck_cut cut;
    struct iv t[4];
    iv_inits(t, 4, 128);
    mpfr_init2(cut.width, 64);
    iv_sub(&t[0], &d[0]->log_sum, &d[1]->log_sum);
    bool fits = ck_find_cut(m, NULL, &cut);
    for (size_t i = 0; fits && i < m->vocab; i++) {
        size_t c[2] = {row[0]->class_of[i], row[1]->class_of[i]};
        bool in[2] = {c[0] < row[0]->classes, c[1] < row[1]->classes};
        ck_u128 weight[2] = {d[0]->weight[c[0]], d[1]->weight[c[1]]};
        ck_u128 depth[2] = {row[0]->depth[c[0]], row[1]->depth[c[1]]};
        for (int side = 0; side < 2; side++) infinite[side] |= in[side] && !in[!side];
        if (in[0] && in[1]) {
            for (int side = 0; side < 2; side++) {
                ck_wide_add_product(&product[side][side], weight[side], depth[side]);
                ck_wide_add_product(&product[side][!side], weight[side], depth[!side]);
                depths[side] += depth[side];
            }
        }
        ck_i128 gap = (ck_i128)depth[1] - (ck_i128)depth[0];
        bool above = in[0] && (!in[1] || gap > cut.over), doubt = in[0] && in[1] && !above && gap >= cut.under;
        add_token(above ? &more : doubt ? &close : &less, weight, in);
    }
    for (int side = 0; fits && side < 2; side++) { // sum p (ln p - ln q), ln p = -depth/T - ln sum
        for (int j = 0; j < 2; j++) {
            ck_set_wide(t[1 + j].lo, product[side][j], -CK_UNIT - CK_DEPTH, MPFR_RNDD);
            ck_set_wide(t[1 + j].hi, product[side][j], -CK_UNIT - CK_DEPTH, MPFR_RNDU);
            ck_set_unsigned(t[3].hi, depths[j], 1 - CK_UNIT - CK_DEPTH, MPFR_RNDU);
            mpfr_add(t[1 + j].hi, t[1 + j].hi, t[3].hi, MPFR_RNDU);
        }
        iv_sub(&t[1], &t[2 - side], &t[1 + side]);
        iv_mul_q(&t[1], &t[1], d[0]->inverse);
        iv_div(&t[1], &t[1], &d[side]->total);
        if (side == 0)
            iv_sub(&r->v[CK_KLF], &t[1], &t[0]);
        else
            iv_add(&r->v[CK_KLR], &t[1], &t[0]);
        iv_positive(&r->v[side]);
        if (infinite[side]) iv_point(&r->v[side], INFINITY);
    }
    if (fits) {
        mpfr_set(t[3].hi, cut.width, MPFR_RNDU);
        mpfr_set_zero(t[3].lo, 1);
        share(&more, 0, d[0], &r->v[CK_TV]);
        share(&more, 1, d[1], &r->v[CK_ACCEPT]);
        iv_sub(&r->v[CK_TV], &r->v[CK_TV], &r->v[CK_ACCEPT]);
        share(&close, 0, d[0], &t[1]);
        iv_mul(&t[1], &t[1], &t[3]);
        iv_add(&r->v[CK_TV], &r->v[CK_TV], &t[1]);
        share(&less, 0, d[0], &t[1]);
        iv_add(&r->v[CK_ACCEPT], &r->v[CK_ACCEPT], &t[1]);
        share(&close, 1, d[1], &t[1]);
        iv_add(&r->v[CK_ACCEPT], &r->v[CK_ACCEPT], &t[1]);
        iv_mul(&t[1], &t[1], &t[3]);
        mpfr_sub(r->v[CK_ACCEPT].lo, r->v[CK_ACCEPT].lo, t[1].hi, MPFR_RNDD);
    }
    iv_clears(t, 4);
    mpfr_clear(cut.width);
    return fits;
}

static struct iv *depths_of(const struct ck_dist *d, int level)
{
    size_t n = d->row->classes;
    struct iv *z = calloc(n, sizeof *z);
    if (!z) abort(); // as MPFR does without memory
    iv_inits(z, n, ck_precision(level));
    for (size_t c = 0; c < n; c++) ck_class_z(d, c, &z[c]);
    return z;
}

static void pair_intervals(struct ck_math *m, int level, struct ck_pair *r)
{
    const struct ck_dist *d[2] = {ck_dist(m, CK_TARGET, level), ck_dist(m, CK_DRAFT, level)};
    struct iv t[5], *z[2] = {depths_of(d[0], level), depths_of(d[1], level)};
    bool infinite[2] = {false, false};
    iv_inits(t, 5, ck_precision(level));
    for (size_t i = 0; i < m->vocab; i++) {
        size_t c[2] = {d[0]->row->class_of[i], d[1]->row->class_of[i]};
        bool in[2] = {c[0] < d[0]->row->classes, c[1] < d[1]->row->classes};
        if (!in[0] && !in[1]) continue;
        for (int side = 0; side < 2; side++) {
            infinite[side] |= in[side] && !in[!side];
            iv_point(&t[1 + side], 0);
            if (in[side]) iv_mul(&t[1 + side], &d[side]->e[c[side]], &d[!side]->total);
        }
        iv_sub(&t[3], &t[1], &t[2]);
        iv_positive(&t[3]);
        iv_add(&r->v[CK_TV], &r->v[CK_TV], &t[3]);
        mpfr_min(t[1].lo, t[1].lo, t[2].lo, MPFR_RNDD);
        mpfr_min(t[1].hi, t[1].hi, t[2].hi, MPFR_RNDU);
        iv_add(&r->v[CK_ACCEPT], &r->v[CK_ACCEPT], &t[1]);
        if (!in[0] || !in[1]) continue;
        for (int side = 0; side < 2; side++) { // ln(p_i/q_i) up to a constant
            iv_sub(&t[0], &z[side][c[side]], &z[!side][c[!side]]);
            iv_mul(&t[1], &d[side]->e[c[side]], &t[0]);
            iv_add(&r->v[side], &r->v[side], &t[1]);
        }
    }
    iv_sub(&t[0], &d[1]->log_sum, &d[0]->log_sum);
    iv_div(&r->v[0], &r->v[0], &d[0]->total);
    iv_add(&r->v[0], &r->v[0], &t[0]);
    iv_div(&r->v[1], &r->v[1], &d[1]->total);
    iv_sub(&r->v[1], &r->v[1], &t[0]);
    iv_mul(&t[1], &d[0]->total, &d[1]->total);
    iv_div(&r->v[CK_TV], &r->v[CK_TV], &t[1]);
    iv_div(&r->v[CK_ACCEPT], &r->v[CK_ACCEPT], &t[1]);
    for (int side = 0; side < 2; side++) {
        iv_positive(&r->v[side]);
        if (infinite[side]) iv_point(&r->v[side], INFINITY);
        iv_clears(z[side], d[side]->row->classes);
        free(z[side]);
    }
    iv_clears(t, 5);
}

// Whole quantities: they are cheaper together.
static bool of_pair(struct ck_math *m, int level, enum ck_divergence which, struct iv *out)
{
    struct ck_pair *r = &m->pair[level];
    if (!r->ready) {
        iv_inits(r->v, CK_PAIRS, ck_precision(level));
        r->ready = true;
        if (ck_same_law(m)) {
            iv_point(&r->v[CK_ACCEPT], 1);
        } else if (level > 0) {
            pair_intervals(m, level, r);
        } else if (!pair_fixed(m, r)) {
            iv_point(&r->v[CK_ACCEPT], -1);
        }
        iv_positive(&r->v[CK_TV]);
        iv_at_most_one(&r->v[CK_TV]);
        iv_at_most_one(&r->v[CK_ACCEPT]);
    }
    iv_set(out, &r->v[which]);
    return mpfr_cmp_si(r->v[CK_ACCEPT].hi, -1) > 0;
}

bool ck_kl_pq(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    (void)ask;
    return of_pair(m, level, CK_KLF, out);
}

bool ck_kl_qp(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    (void)ask;
    return of_pair(m, level, CK_KLR, out);
}

bool ck_tv_pq(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    (void)ask;
    return of_pair(m, level, CK_TV, out);
}

bool ck_min_pq(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    (void)ask;
    return of_pair(m, level, CK_ACCEPT, out);
}
