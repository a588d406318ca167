// Divergences beside KL and TV: see power.h. theory.md §2.
#include "certify/check/power.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool ck_power_parse(const char *text, struct ck_power *d)
{
    static const char *const names[CK_POWER_KINDS] = {"renyi",        "renyi-reverse", "hellinger", "chi2",
                                                      "chi2-reverse", "max",           "spread"};
    static const int orders[CK_POWER_KINDS][2] = {{0, 1}, {0, 1}, {1, 2}, {2, 1}, {-1, 1}, {0, 1}, {0, 1}};
    mpq_init(d->order);
    size_t length = strcspn(text, ":"), i = 0;
    while (i < CK_POWER_KINDS && (strlen(names[i]) != length || strncmp(names[i], text, length) != 0)) i++;
    if (i == CK_POWER_KINDS || strlen(text) >= sizeof d->text) return false;
    d->kind = (enum ck_power_kind)i;
    strcpy(d->text, text);
    mpq_set_si(d->order, orders[i][0], (unsigned long)orders[i][1]);
    if (d->kind > CK_RENYI_REVERSE) return text[length] == '\0';
    if (text[length] == '\0' || !ck_rational(text + length + 1, d->order)) return false;
    if (mpq_sgn(d->order) == 0 || mpq_cmp_ui(d->order, 1, 1) == 0) return false;
    if (d->kind == CK_RENYI_REVERSE) { // sum q^A p^(1-A)
        mpq_t one;
        mpq_init(one);
        mpq_set_ui(one, 1, 1);
        mpq_sub(d->order, one, d->order);
        mpq_clear(one);
    }
    return true;
}

void ck_power_clear(struct ck_power *d)
{
    mpq_clear(d->order);
}

struct ck_supports ck_compare_supports(const struct ck_math *m)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    struct ck_supports s = {false, false, false};
    for (size_t i = 0; i < m->vocab; i++) {
        bool in_p = p->class_of[i] < p->classes, in_q = q->class_of[i] < q->classes;
        s.common |= in_p && in_q;
        s.only_p |= in_p && !in_q;
        s.only_q |= in_q && !in_p;
    }
    return s;
}

// ln of sum exp(a z_p + (1 - a) z_q) over the common tokens, in fixed point around the largest term.
static bool log_sum_fixed(struct ck_math *m, mpq_srcptr a, struct iv *out)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    const mpz_t *num = (const mpz_t *)&mpq_numref(a)[0], *den = (const mpz_t *)&mpq_denref(a)[0];
    if (mpz_cmpabs_ui(*num, 1UL << 40) >= 0 || mpz_cmpabs_ui(*den, 1UL << 40) >= 0) return false;
    ck_i128 of_p = mpz_get_si(*num), of_q = mpz_get_si(*den) - mpz_get_si(*num), least = 0;
    bool any = false;
    for (size_t i = 0; i < m->vocab; i++) {
        size_t c = p->class_of[i], d = q->class_of[i];
        if (c == p->classes || d == q->classes) continue;
        ck_i128 depth = of_p * (ck_i128)p->depth[c] + of_q * (ck_i128)q->depth[d];
        if (!any || depth < least) least = depth;
        any = true;
    }
    struct ck_scale scale;
    mpq_t factor;
    mpq_init(factor);
    mpq_set_z(factor, *den);
    mpq_div(factor, m->inverse_claim, factor);
    ck_scale_set(&scale, factor);
    ck_u128 sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < m->vocab; i++) {
        size_t c = p->class_of[i], d = q->class_of[i];
        if (c == p->classes || d == q->classes) continue;
        ck_i128 depth = of_p * (ck_i128)p->depth[c] + of_q * (ck_i128)q->depth[d];
        sum += ck_weight_at(&scale, (ck_u128)(depth - least));
        count++;
    }
    struct iv t;
    iv_inits(&t, 1, 128);
    ck_between(sum, count, &t);
    iv_log(out, &t);
    ck_set_signed(t.lo, least, -CK_DEPTH, MPFR_RNDD);
    ck_set_signed(t.hi, least, -CK_DEPTH, MPFR_RNDU);
    iv_mul_q(&t, &t, factor);
    iv_sub(out, out, &t);
    iv_clears(&t, 1);
    mpq_clear(factor);
    return true;
}

static bool log_sum(struct ck_math *m, int level, mpq_srcptr a, struct iv *out)
{
    const struct ck_dist *p = ck_dist(m, CK_TARGET, level), *q = ck_dist(m, CK_DRAFT, level);
    struct iv t[3];
    mpq_t rest;
    mpq_init(rest);
    mpq_set_ui(rest, 1, 1);
    mpq_sub(rest, rest, a);
    iv_inits(t, 3, ck_precision(level));
    bool ok = true;
    if (level == 0) {
        ok = log_sum_fixed(m, a, out);
    } else {
        for (size_t i = 0; i < m->vocab; i++) {
            size_t c = p->row->class_of[i], d = q->row->class_of[i];
            if (c == p->row->classes || d == q->row->classes) continue;
            ck_class_z(p, c, &t[0]);
            ck_class_z(q, d, &t[1]);
            iv_scale_q(&t[0], &t[0], a);
            iv_scale_q(&t[1], &t[1], rest);
            iv_add(&t[0], &t[0], &t[1]);
            iv_exp(&t[0], &t[0]);
            iv_add(&t[2], &t[2], &t[0]);
        }
        iv_log(out, &t[2]);
    }
    iv_set(&t[0], &p->log_sum);
    iv_set(&t[1], &q->log_sum);
    iv_scale_q(&t[0], &t[0], a);
    iv_scale_q(&t[1], &t[1], rest);
    iv_sub(out, out, &t[0]);
    iv_sub(out, out, &t[1]);
    iv_clears(t, 3);
    mpq_clear(rest);
    return ok;
}

// The largest and the least of (l_p - l_q) over the common tokens, exactly, relative to the first logits.
void ck_power_extremes(const struct ck_math *m, mpfr_t least, mpfr_t most)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    ck_i128 low = 0, high = 0;
    bool any = false, regular = m->first_level == 0;
    mpfr_t t;
    mpfr_init2(t, CK_EXACT);
    for (size_t i = 0; i < m->vocab; i++) {
        size_t c = p->class_of[i], d = q->class_of[i];
        if (c == p->classes || d == q->classes) continue;
        if (regular) {
            ck_i128 gap = (ck_i128)q->depth[d] - (ck_i128)p->depth[c];
            if (!any || gap < low) low = gap;
            if (!any || gap > high) high = gap;
        } else {
            mpfr_set_flt(t, p->logit[i], MPFR_RNDN);
            mpfr_sub_d(t, t, p->logit[p->order[0]], MPFR_RNDN);
            mpfr_sub_d(t, t, q->logit[i], MPFR_RNDN);
            mpfr_add_d(t, t, q->logit[q->order[0]], MPFR_RNDN);
            if (!any || mpfr_less_p(t, least)) mpfr_set(least, t, MPFR_RNDN);
            if (!any || mpfr_greater_p(t, most)) mpfr_set(most, t, MPFR_RNDN);
        }
        any = true;
    }
    if (regular) {
        ck_set_signed(least, low, -CK_DEPTH, MPFR_RNDN);
        ck_set_signed(most, high, -CK_DEPTH, MPFR_RNDN);
    }
    mpfr_clear(t);
}

static void value_of_ratios(struct ck_math *m, int level, enum ck_power_kind kind, struct iv *out)
{
    mpfr_t least, most;
    struct iv t;
    mpfr_inits2(CK_EXACT, least, most, (mpfr_ptr)0);
    iv_inits(&t, 1, ck_precision(level));
    ck_power_extremes(m, least, most);
    if (kind == CK_SPREAD) mpfr_sub(most, most, least, MPFR_RNDN);
    mpfr_set(out->lo, most, MPFR_RNDD);
    mpfr_set(out->hi, most, MPFR_RNDU);
    iv_mul_q(out, out, m->inverse_claim);
    if (kind == CK_MAX) {
        iv_add(out, out, &ck_dist(m, CK_DRAFT, level)->log_sum);
        iv_sub(out, out, &ck_dist(m, CK_TARGET, level)->log_sum);
    }
    iv_clears(&t, 1);
    mpfr_clears(least, most, (mpfr_ptr)0);
}

bool ck_power_value(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    const struct ck_power *d = ask->power;
    iv_point(out, 0);
    if (ck_same_law(m)) return true;
    struct ck_supports s = ck_compare_supports(m);
    bool of_ratios = d->kind == CK_MAX || d->kind == CK_SPREAD, up = mpq_cmp_ui(d->order, 1, 1) > 0;
    bool infinite = of_ratios ? s.only_p || (d->kind == CK_SPREAD && s.only_q)
                              : (up && s.only_p) || (mpq_sgn(d->order) < 0 && s.only_q);
    if (infinite || !s.common) {
        iv_point(out, d->kind == CK_HELLINGER ? 1 : INFINITY);
        return true;
    }
    if (of_ratios) {
        value_of_ratios(m, level, d->kind, out);
    } else {
        if (!log_sum(m, level, d->order, out)) return false;
        mpq_t q;
        mpq_init(q);
        mpq_set_ui(q, 1, 1);
        if (d->kind == CK_RENYI) { // L / (a - 1)
            mpq_sub(q, d->order, q);
            mpq_inv(q, q);
            iv_scale_q(out, out, q);
        } else if (d->kind == CK_RENYI_REVERSE) { // L / (A - 1) with A = 1 - a
            mpq_neg(q, d->order);
            mpq_inv(q, q);
            iv_scale_q(out, out, q);
        } else {
            iv_expm1(out, out);
            if (d->kind == CK_HELLINGER) iv_negate(out);
        }
        mpq_clear(q);
    }
    iv_positive(out);
    if (d->kind == CK_HELLINGER) iv_at_most_one(out);
    return true;
}

// The power-mean level in units of weights: the arithmetic level of exp(a z). For a < 0 those rise along the order, so
// that A and S change places. Zero when a < 0 and S has a token of probability 0.
bool ck_power_level(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *u)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    const struct ck_row *r = d->row;
    size_t n = ask->k + ask->m, count = 0, last = r->class_of[r->order[n - 1]];
    bool down = mpq_sgn(ask->power->order) < 0;
    iv_point(u, 0);
    if (down && last == r->classes) return true;
    struct ck_group *g = calloc(last + 1, sizeof *g);
    struct iv reference;
    if (!g) abort(); // as MPFR does without memory
    iv_inits(&reference, 1, ck_precision(level));
    if (down) ck_class_z(d, last, &reference);
    for (struct ck_run run = {0}; ck_next_run(r, n, &run); count++) {
        struct ck_group *at = &g[down ? last - count : count];
        size_t before = run.from < ask->k ? ask->k - run.from : 0;
        size_t accepted = before < run.count ? before : run.count;
        iv_inits(&at->v, 1, ck_precision(level));
        at->upper = down ? run.count - accepted : accepted;
        at->lower = run.count - at->upper;
        if (run.class == r->classes) continue;
        ck_class_z(d, run.class, &at->v);
        iv_sub(&at->v, &at->v, &reference);
        iv_scale_q(&at->v, &at->v, ask->power->order);
        iv_exp(&at->v, &at->v);
    }
    bool ok = ck_balance(g, count, NULL, u);
    for (size_t i = 0; i < count; i++) iv_clears(&g[i].v, 1);
    free(g);
    mpq_t inverse;
    mpq_init(inverse);
    mpq_inv(inverse, ask->power->order);
    iv_log(u, u);
    iv_scale_q(u, u, inverse);
    iv_add(u, u, &reference);
    iv_exp(u, u);
    mpq_clear(inverse);
    iv_clears(&reference, 1);
    return ok;
}

// Z = 1 - sum_T (p - u): A clipped from above at the level, S from below.
static bool clipped_mass(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *z)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    struct iv t[2];
    iv_inits(t, 2, ck_precision(level));
    bool ok = ck_power_level(m, level, ask, &t[0]);
    ck_sum_order(d, ask->k + ask->m, m->vocab, z);
    for (int part = 0; ok && part < 2; part++)
        for (struct ck_run run = {.from = part ? ask->k : 0};
             ck_next_run(d->row, part ? ask->k + ask->m : ask->k, &run);) {
            ck_class_weight(d, run.class, &t[1]);
            if (part) {
                mpfr_max(t[1].lo, t[1].lo, t[0].lo, MPFR_RNDD);
                mpfr_max(t[1].hi, t[1].hi, t[0].hi, MPFR_RNDU);
            } else {
                iv_min(&t[1], &t[0]);
            }
            iv_scale(&t[1], &t[1], run.count);
            iv_add(z, z, &t[1]);
        }
    iv_div(z, z, &d->total);
    iv_clears(t, 2);
    return ok;
}

static void star_of_ratios(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    size_t n = ask->k + ask->m;
    if (ask->power->kind == CK_SPREAD) {
        iv_point(out, INFINITY);
        if (n > d->row->finite) return;
        ck_logit_gap(d->row, 0, n - 1, out);
        iv_mul_q(out, out, d->inverse);
        return;
    }
    struct iv t;
    iv_inits(&t, 1, ck_precision(level));
    iv_point(out, (double)ask->m); // ln(1 + sum_S (p_(1) - p_s))
    ck_sum_order(d, ask->k, n, &t);
    iv_sub(out, out, &t);
    iv_div(out, out, &d->total);
    mpfr_log1p(out->lo, out->lo, MPFR_RNDD);
    mpfr_log1p(out->hi, out->hi, MPFR_RNDU);
    iv_positive(out);
    iv_clears(&t, 1);
}

bool ck_power_star(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    const struct ck_power *d = ask->power;
    iv_point(out, 0);
    if (ck_level_row(m, ask)) return true;
    if (d->kind == CK_MAX || d->kind == CK_SPREAD) {
        star_of_ratios(m, level, ask, out);
        return true;
    }
    if (mpq_sgn(d->order) < 0 && m->row[0].finite <= ask->k) { // Z = 0: A holds the whole support, and the level is 0
        iv_point(out, INFINITY);
        return true;
    }
    if (!clipped_mass(m, level, ask, out)) return false;
    mpq_t factor, one;
    mpq_inits(factor, one, NULL);
    mpq_set_ui(one, 1, 1);
    iv_log(out, out);
    if (d->kind == CK_RENYI || d->kind == CK_RENYI_REVERSE) { // a/(a - 1) ln Z; -ln Z
        mpq_sub(factor, d->order, one);
        mpq_div(factor, d->order, factor);
        if (d->kind == CK_RENYI_REVERSE) mpq_neg(factor, one);
        iv_scale_q(out, out, factor);
    } else { // 1 - sqrt Z; Z^2 - 1; 1/Z - 1
        mpq_set(factor, d->order);
        iv_scale_q(out, out, factor);
        iv_expm1(out, out);
        if (d->kind == CK_HELLINGER) iv_negate(out);
    }
    iv_positive(out);
    if (d->kind == CK_HELLINGER) iv_at_most_one(out);
    mpq_clears(factor, one, NULL);
    return true;
}
