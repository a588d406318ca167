// Certificates by other divergences: see power.h. theory.md §2, §8.
#include "certify/check/power.h"

#include <math.h>

// Is q uniform on a tied set that is the whole support?  Then it is the clipped p.
static bool is_flat_witness(struct ck_math *m, const struct ck_ask *ask)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    size_t n = ask->k + ask->m, accepted = ask->k < p->finite ? ask->k : p->finite;
    if (!ck_uniform(q) || p->finite > n || q->finite != accepted + ask->m) return false;
    for (size_t j = 0; j < n; j++)
        if ((j < accepted || j >= ask->k) && isinf(q->logit[p->order[j]])) return false;
    const struct ck_dist *d = ck_dist(m, CK_TARGET, m->first_level);
    struct iv t[3]; // the level, the last of A, the first of S
    iv_inits(t, 3, ck_precision(m->first_level));
    bool ok = ck_power_level(m, m->first_level, ask, &t[0]);
    ck_weight(d, p->order[accepted - 1], &t[1]);
    ck_weight(d, p->order[ask->k], &t[2]);
    ok = ok && mpfr_greater_p(t[1].lo, t[0].hi) && mpfr_less_p(t[2].hi, t[0].lo);
    iv_clears(t, 3);
    return ok;
}

// W_q e^E = W_p + m w_(1) - W_S, E the largest l_p - l_q, only if both sides have the same exponents: those of q, and
// m times the first of p with p but for S. Where they are, E is the difference of the first logits.
static bool is_max_tie(struct ck_math *m, const struct ck_ask *ask)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    size_t past = ask->k + ask->m, lost = p->finite < past ? (p->finite > ask->k ? p->finite - ask->k : 0) : ask->m;
    if (m->first_level > 0 || q->finite != p->finite - lost + ask->m) return false;
    mpfr_t least, most;
    mpfr_inits2(CK_EXACT, least, most, (mpfr_ptr)0);
    ck_power_extremes(m, least, most);
    bool same = mpfr_zero_p(most) != 0;
    mpfr_clears(least, most, (mpfr_ptr)0);
    for (size_t j = 0; j < q->finite && same; j++) { // the j-th of both in order
        size_t at = j < ask->m ? 0 : j - ask->m;
        if (at >= ask->k) at += ask->m;
        same = q->depth[q->class_of[q->order[j]]] == p->depth[p->class_of[p->order[at]]];
    }
    return same;
}

// The exact root of a rational, where there is one.
static bool root(mpq_t r, mpq_srcptr of, unsigned long degree)
{
    return mpz_root(mpq_numref(r), mpq_numref(of), degree) != 0 && mpz_root(mpq_denref(r), mpq_denref(of), degree) != 0;
}

static void power(mpq_t r, mpq_srcptr of, unsigned long n)
{
    mpz_pow_ui(mpq_numref(r), mpq_numref(of), n);
    mpz_pow_ui(mpq_denref(r), mpq_denref(of), n);
}

// Two uniform rows, a > 0: the sum of p^a q^(1-a) is Z^a if  common Q^(a-1) = [b + c x^(1/a)]^a,  with P and Q the
// sizes of the supports, b the tokens of p outside the tied set, c those in it and x the share of A in c. With a = u/v
// that is  b + c (x^v)^(1/u) = (common^v Q^(u-v))^(1/u): a rational and a root of one add up to a root of a rational
// only where both roots are rational (§8).
static bool is_uniform_tie(const struct ck_uniform *u, mpq_srcptr order)
{
    enum { LARGEST = 256 };
    if (mpz_cmp_ui(mpq_numref(order), LARGEST) > 0 || mpz_cmp_ui(mpq_denref(order), LARGEST) > 0) return false;
    unsigned long up = mpz_get_ui(mpq_numref(order)), down = mpz_get_ui(mpq_denref(order)), b = u->p - u->a;
    if (u->common == 0 || (up > down && u->common < u->p)) return false;
    mpq_t x, y, t;
    mpq_inits(x, y, t, NULL);
    mpq_set_ui(t, u->a, u->a + u->s);
    mpq_canonicalize(t);
    power(x, t, down);
    mpq_set_ui(t, u->common, 1);
    power(y, t, down);
    mpq_set_ui(t, u->q, 1);
    power(t, t, up > down ? up - down : down - up);
    if (up < down) mpq_inv(t, t);
    mpq_mul(y, y, t);
    bool tie = true;
    if (b == 0) { // of the powers themselves
        mpq_set_ui(t, u->a + u->s, 1);
        power(t, t, up);
        mpq_mul(x, x, t);
    } else {
        tie = root(x, x, up) && root(y, y, up);
        mpq_set_ui(t, u->a + u->s, 1);
        mpq_mul(x, x, t);
        mpq_set_ui(t, b, 1);
        mpq_add(x, x, t);
    }
    tie = tie && mpq_equal(x, y) != 0;
    mpq_clears(x, y, t, NULL);
    return tie;
}

// Equalities between a divergence and its threshold (theory.md §8).
static bool is_tie(struct ck_math *m, const struct ck_ask *ask)
{
    const struct ck_power *d = ask->power;
    struct ck_uniform u;
    if (d->kind == CK_SPREAD || ck_level_row(m, ask)) return false;
    bool down = mpq_sgn(d->order) < 0, most = d->kind == CK_MAX, flat = ck_uniform_pair(m, ask, &u);
    if (down && m->row[0].finite < ask->k + ask->m) return ck_is_geometric_witness(m, ask);
    if (most) return is_max_tie(m, ask);
    if (flat && u.common == u.p && u.q == u.p + u.s && u.p <= ask->k) return true;
    if (flat && !down && is_uniform_tie(&u, d->order)) return true;
    return is_flat_witness(m, ask);
}

// The spread is a matter of exact rationals; the others of intervals.
enum answer ck_power_certifies(struct ck_math *m, const struct ck_ask *ask)
{
    enum answer less = OPEN;
    struct ck_supports s = ck_compare_supports(m);
    if (is_tie(m, ask)) return NO;
    if (ask->power->kind == CK_SPREAD && !s.only_p && !s.only_q) {
        const struct ck_row *r = &m->row[0];
        size_t n = ask->k + ask->m;
        if (n > r->finite) return YES;
        mpfr_t least, most;
        mpfr_inits2(CK_EXACT, least, most, (mpfr_ptr)0);
        ck_power_extremes(m, least, most);
        mpfr_sub(most, most, least, MPFR_RNDN);
        mpfr_set_flt(least, r->logit[r->order[0]], MPFR_RNDN);
        mpfr_sub_d(least, least, r->logit[r->order[n - 1]], MPFR_RNDN);
        less = mpfr_less_p(most, least) ? YES : NO;
        mpfr_clears(least, most, (mpfr_ptr)0);
    }
    for (int level = m->first_level; level < CK_LEVELS && less == OPEN; level++) {
        struct iv v[2];
        iv_inits(v, 2, ck_precision(level));
        bool ok = ck_power_value(m, level, ask, &v[0]) && ck_power_star(m, level, ask, &v[1]);
        less = ok ? iv_less(&v[0], &v[1]) : OPEN;
        iv_clears(v, 2);
    }
    return less;
}
