// Tied sets and certificates: see math.h. theory.md §2, the last part of §8.
#include "certify/check/math.h"

#include <math.h>

enum answer ck_tied(struct ck_math *m, const struct ck_ask *ask, bool reverse, size_t range[4])
{
    const struct ck_row *r = &m->row[0];
    struct ck_split tied;
    bool ok = false;
    for (int level = m->first_level; level < CK_LEVELS && !ok; level++) {
        const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
        struct iv c[3]; // the level; what may be taken for it; a weight
        iv_inits(c, 3, ck_precision(level));
        ok = true;
        if (!reverse)
            ok = ck_level_weight(m, level, ask, NULL, &c[0]);
        else if (ck_level_z(m, ask, &tied, &c[0]))
            iv_exp(&c[0], &c[0]);
        mpfr_mul_2si(c[1].lo, c[0].lo, -30, MPFR_RNDU);
        mpfr_sub(c[1].lo, c[0].lo, c[1].lo, MPFR_RNDD);
        mpfr_mul_2si(c[1].hi, c[0].hi, -30, MPFR_RNDU);
        mpfr_add(c[1].hi, c[0].hi, c[1].hi, MPFR_RNDU);
        for (int i = 0; i < 4; i++) range[i] = 0;
        for (int part = 0; part < 2; part++) {
            size_t to = part ? ask->k + ask->m : ask->k, *least = &range[2 * part];
            for (struct ck_run run = {.from = part ? ask->k : 0}; ck_next_run(r, to, &run);) {
                ck_class_weight(d, run.class, &c[2]);
                bool sure = part ? mpfr_less_p(c[2].hi, c[1].lo) : mpfr_greater_p(c[2].lo, c[1].hi);
                bool may = part ? mpfr_lessequal_p(c[2].lo, c[1].hi) : mpfr_greaterequal_p(c[2].hi, c[1].lo);
                if (sure) least[0] += run.count;
                if (may) least[1] += run.count;
            }
        }
        // Close weights are told apart before small ones are resolved: go on while the weights are wider than the
        // slack.
        mpfr_sub(c[2].lo, c[0].hi, c[0].lo, MPFR_RNDU);
        mpfr_mul_2si(c[2].lo, c[2].lo, 40, MPFR_RNDU);
        bool sharp = mpfr_lessequal_p(c[2].lo, c[0].hi) && (level > 0 || mpfr_cmp_d(c[0].lo, 0x1p-60) > 0);
        ok = ok && (sharp || level + 1 == CK_LEVELS);
        iv_clears(c, 3);
    }
    return ok ? YES : OPEN;
}

// Is q uniform on a tied set that holds the whole support of p?  Then it is the forward witness.
static bool is_uniform_witness(struct ck_math *m, const struct ck_ask *ask)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    size_t n = ask->k + ask->m, range[4];
    if (!ck_uniform(q) || p->finite > n) return false;
    if (ck_tied(m, ask, false, range) != YES || range[0] != range[1] || range[2] != range[3]) return false;
    if (q->finite != range[0] + range[2]) return false;
    for (size_t j = 0; j < n; j++) {
        bool inside = j < range[0] || j >= n - range[2];
        if (inside ? isinf(q->logit[p->order[j]]) : j < p->finite) return false;
    }
    return true;
}

// A tied set, and what its tokens have in the reverse witness, times their number: `mean`, less than p's first logit.
struct witness {
    struct ck_split tied;
    bool positive; // g > 0
    unsigned long count;
    mpfr_t mean, own, other, constant, q;
};

// Is q the witness up to this constant?  Equal tokens of p may have changed places.
static bool is_witness(const struct ck_math *m, size_t n, struct witness *w)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    for (struct ck_run run = {0}; ck_next_run(p, m->vocab, &run);) {
        size_t wanted = 0, inside = 0;
        bool empty = run.class == p->classes;
        if (!empty) {
            mpfr_set_flt(w->own, p->logit[p->order[run.from]], MPFR_RNDN);
            mpfr_sub_d(w->own, w->own, p->logit[p->order[0]], MPFR_RNDN);
            mpfr_mul_ui(w->own, w->own, w->count, MPFR_RNDN);
        }
        bool level = !empty && w->positive && mpfr_equal_p(w->own, w->mean);
        for (size_t j = run.from; j < run.from + run.count; j++) {
            bool none = isinf(q->logit[p->order[j]]);
            wanted += j < w->tied.a || (j >= n - w->tied.s && j < n);
            if (none) {
                if (w->positive && !empty) return false;
                inside++;
                continue;
            }
            mpfr_set_flt(w->q, q->logit[p->order[j]], MPFR_RNDN);
            mpfr_mul_ui(w->q, w->q, w->count, MPFR_RNDN);
            mpfr_add(w->q, w->q, w->constant, MPFR_RNDN);
            if (w->positive && mpfr_equal_p(w->q, w->mean))
                inside++;
            else if (empty || !mpfr_equal_p(w->q, w->own))
                return false;
        }
        if (!empty && !level && inside != wanted) return false;
        if (empty && inside != run.count) return false;
    }
    return true;
}

// Are the logits of q those of p, with the mean inside the tied set, up to a constant?  Then it is the reverse witness.
bool ck_is_geometric_witness(struct ck_math *m, const struct ck_ask *ask)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    struct witness w;
    bool same = false;
    mpfr_inits2(CK_EXACT, w.mean, w.own, w.other, w.constant, w.q, (mpfr_ptr)0);
    w.positive = ck_mean_depth(m, ask, &w.tied, w.mean);
    mpfr_neg(w.mean, w.mean, MPFR_RNDN);
    w.count = w.positive ? w.tied.a + w.tied.s : 1;
    // The likeliest token of q is the likeliest of the witness: at the mean, or the first outside the tied set.
    size_t first = w.tied.a;
    mpfr_set_flt(w.q, q->logit[q->order[0]], MPFR_RNDN);
    mpfr_mul_ui(w.q, w.q, w.count, MPFR_RNDN);
    mpfr_set_inf(w.other, -1);
    if (first < p->finite) {
        mpfr_set_flt(w.other, p->logit[p->order[first]], MPFR_RNDN);
        mpfr_sub_d(w.other, w.other, p->logit[p->order[0]], MPFR_RNDN);
        mpfr_mul_ui(w.other, w.other, w.count, MPFR_RNDN);
    }
    if (w.positive && mpfr_greater_p(w.mean, w.other)) mpfr_set(w.other, w.mean, MPFR_RNDN);
    if (!mpfr_inf_p(w.other)) {
        mpfr_sub(w.constant, w.other, w.q, MPFR_RNDN);
        same = is_witness(m, ask->k + ask->m, &w);
    }
    mpfr_clears(w.mean, w.own, w.other, w.constant, w.q, (mpfr_ptr)0);
    return same;
}

bool ck_uniform_pair(const struct ck_math *m, const struct ck_ask *ask, struct ck_uniform *u)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    size_t n = ask->k + ask->m;
    if (!ck_uniform(p) || !ck_uniform(q) || p->finite >= n) return false;
    *u = (struct ck_uniform){.p = p->finite, .q = q->finite};
    u->a = ask->k < p->finite ? ask->k : p->finite;
    u->s = n - (ask->k > p->finite ? ask->k : p->finite);
    for (size_t j = 0; j < p->finite; j++) u->common += !isinf(q->logit[p->order[j]]);
    return true;
}

// Two uniform rows and a tied set with empty tokens: both sides are rationals or logarithms of some. Are they equal?
static bool uniform_tie(const struct ck_math *m, const struct ck_ask *ask, enum ck_divergence which)
{
    struct ck_uniform u;
    if (!ck_uniform_pair(m, ask, &u)) return false;
    if (which == CK_KLR) return u.common == u.q && u.q == u.p - u.a; // ln(p/q) and ln(p/(p - a))
    bool tie = false;
    if (which == CK_KLF && u.common == u.p) { // ln(q/p) and (a/p) ln((a + s)/a), as integer powers
        mpz_t left, right, t;
        mpz_inits(left, right, t, NULL);
        mpz_ui_pow_ui(left, u.q, u.p);
        mpz_ui_pow_ui(t, u.a, u.a);
        mpz_mul(left, left, t);
        mpz_ui_pow_ui(right, u.p, u.p);
        mpz_ui_pow_ui(t, u.a + u.s, u.a);
        mpz_mul(right, right, t);
        tie = mpz_cmp(left, right) == 0;
        mpz_clears(left, right, t, NULL);
    } else if (which == CK_TV) { // common (1/p - 1/q)^+ + (p - common)/p and a s / (p (a + s)), times p q (a + s)
        mpz_t left, right;
        mpz_inits(left, right, NULL);
        mpz_set_ui(left, u.q > u.p ? u.common * (u.q - u.p) : 0);
        mpz_set_ui(right, u.p - u.common);
        mpz_mul_ui(right, right, u.q);
        mpz_add(left, left, right);
        mpz_mul_ui(left, left, u.a + u.s);
        mpz_set_ui(right, u.a);
        mpz_mul_ui(right, right, u.s);
        mpz_mul_ui(right, right, u.q);
        tie = mpz_cmp(left, right) == 0;
        mpz_clears(left, right, NULL);
    }
    return tie;
}

enum answer ck_certifies(struct ck_math *m, const struct ck_ask *ask, enum ck_divergence which)
{
    static ck_quantity *const threshold[3] = {ck_klf, ck_klr, ck_tv};
    static ck_quantity *const divergence[3] = {ck_kl_pq, ck_kl_qp, ck_tv_pq};
    if (which == CK_KLR ? ck_is_geometric_witness(m, ask) : is_uniform_witness(m, ask)) return NO;
    if (uniform_tie(m, ask, which)) return NO;
    for (int level = m->first_level; level < CK_LEVELS; level++) {
        struct iv v[2];
        iv_inits(v, 2, ck_precision(level));
        bool ok = divergence[which](m, level, ask, &v[0]) && threshold[which](m, level, ask, &v[1]);
        enum answer less = ok ? iv_less(&v[0], &v[1]) : OPEN;
        iv_clears(v, 2);
        if (less != OPEN) return less;
    }
    return OPEN;
}
