// Water levels, thresholds and certificates: see math.h. theory.md §2, §3 and the last part of §8.
#include "certify/check/math.h"

#include <math.h>
#include <stdlib.h>

enum { EXACT = 512 }; // bits that hold any sum of 2^20 float logits, times 2^20, exactly

struct split {
    size_t a, s;
}; // tied set: the first a of A, the last s of S

// The balance sum_A (v - t)^+ - sum_S (t - v)^+ at t = v[j], roughly: it only steers.
static int balance_sign(mpfr_t *v, size_t k, size_t m, size_t j, mpfr_t sum, mpfr_t t)
{
    mpfr_set_zero(sum, 1);
    for (size_t i = 0; i < k + m; i++) {
        if (i < k ? i >= j : i <= j) continue;
        mpfr_sub(t, v[i], v[j], MPFR_RNDN); // positive in A; negative in S
        mpfr_add(sum, sum, t, MPFR_RNDN);
    }
    return mpfr_sgn(sum);
}

// The balance falls as t rises, and v falls with its index: bisects for the first v[j] where it is not negative.
static struct split find_split(mpfr_t *v, size_t k, size_t m, mpfr_prec_t precision)
{
    size_t low = 0, high = k + m - 1;
    mpfr_t sum, t;
    mpfr_inits2(precision, sum, t, (mpfr_ptr)0);
    while (low < high) {
        size_t j = low + (high - low) / 2;
        if (balance_sign(v, k, m, j, sum, t) >= 0)
            high = j;
        else
            low = j + 1;
    }
    mpfr_clears(sum, t, (mpfr_ptr)0);
    return (struct split){low < k ? low : k, k + m - (low > k ? low : k)};
}

static mpfr_t *values(size_t count, mpfr_prec_t precision)
{
    mpfr_t *v = malloc(count * sizeof *v);
    if (!v) abort(); // as MPFR does without memory
    for (size_t i = 0; i < count; i++) mpfr_init2(v[i], precision);
    return v;
}

static void values_free(mpfr_t *v, size_t count)
{
    for (size_t i = 0; i < count; i++) mpfr_clear(v[i]);
    free(v);
}

// Is the sign of the balance at t proved to be >= 0 (up) or <= 0 (down)?
static bool balance_proved(const struct ck_dist *d, const struct ck_row *r, size_t k, size_t m, mpfr_t t, bool up)
{
    struct iv b[3];
    mpfr_prec_t precision = mpfr_get_prec(t);
    iv_inits(b, 3, precision);
    mpfr_set(b[1].lo, t, MPFR_RNDD);
    mpfr_set(b[1].hi, t, MPFR_RNDU);
    for (size_t j = 0; j < k + m; j++) {
        const struct iv *e = &d->e[r->order[j]];
        iv_sub(&b[2], j < k ? e : &b[1], j < k ? &b[1] : e);
        iv_positive(&b[2]);
        if (j < k)
            iv_add(&b[0], &b[0], &b[2]);
        else
            iv_sub(&b[0], &b[0], &b[2]);
    }
    bool proved = up ? mpfr_sgn(b[0].lo) >= 0 : mpfr_sgn(b[0].hi) <= 0;
    iv_clears(b, 3);
    return proved;
}

// The forward level in units of weights: the mean over a guessed tied set, widened until both signs prove it.
static bool level_weight(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *c)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    const struct ck_row *r = &m->row[0];
    size_t n = ask->k + ask->m;
    mpfr_prec_t precision = ck_precision(level);
    mpfr_t *v = values(n, precision);
    for (size_t j = 0; j < n; j++) mpfr_set(v[j], d->e[r->order[j]].lo, MPFR_RNDN);
    struct split tied = find_split(v, ask->k, ask->m, precision);
    values_free(v, n);
    struct iv s;
    iv_inits(&s, 1, precision);
    ck_sum_order(d, r, 0, tied.a, c);
    ck_sum_order(d, r, n - tied.s, n, &s);
    iv_add(c, c, &s);
    iv_divide(c, c, tied.a + tied.s);
    bool up = balance_proved(d, r, ask->k, ask->m, c->lo, true),
         down = balance_proved(d, r, ask->k, ask->m, c->hi, false);
    mpfr_set_ui_2exp(s.hi, n, 20 - precision, MPFR_RNDU);
    if (!up) {
        mpfr_sub(c->lo, c->lo, s.hi, MPFR_RNDD);
        up = balance_proved(d, r, ask->k, ask->m, c->lo, true);
    }
    if (!down) {
        mpfr_add(c->hi, c->hi, s.hi, MPFR_RNDU);
        down = balance_proved(d, r, ask->k, ask->m, c->hi, false);
    }
    iv_clears(&s, 1);
    return up && down && mpfr_sgn(c->lo) > 0;
}

// The reverse level is a mean of logits, an exact rational: numerator / count. False when g = 0 (a zero in S).
static bool mean_logit(const struct ck_math *m, const struct ck_ask *ask, struct split *tied, mpfr_t numerator)
{
    const struct ck_row *r = &m->row[0];
    size_t n = ask->k + ask->m;
    if (r->finite < n) {
        *tied = (struct split){ask->k, n - (r->finite > ask->k ? r->finite : ask->k)};
        return false;
    }
    mpfr_t *v = values(n, EXACT);
    for (size_t j = 0; j < n; j++) mpfr_set_flt(v[j], r->logit[r->order[j]], MPFR_RNDN);
    *tied = find_split(v, ask->k, ask->m, EXACT);
    mpfr_set_zero(numerator, 1);
    for (size_t j = 0; j < n; j++)
        if (j < tied->a || j >= n - tied->s) mpfr_add(numerator, numerator, v[j], MPFR_RNDN);
    values_free(v, n);
    return true;
}

// z of the reverse level, (mean - l_first)/T; false when g = 0.
static bool level_z(struct ck_math *m, const struct ck_ask *ask, struct split *tied, struct iv *z)
{
    mpfr_t numerator, first;
    mpfr_inits2(EXACT, numerator, first, (mpfr_ptr)0);
    bool positive = mean_logit(m, ask, tied, numerator);
    if (positive) {
        mpfr_set_flt(first, m->row[0].logit[m->row[0].order[0]], MPFR_RNDN);
        mpfr_mul_ui(first, first, tied->a + tied->s, MPFR_RNDN);
        mpfr_sub(numerator, numerator, first, MPFR_RNDN);
        mpfr_div_ui(z->lo, numerator, tied->a + tied->s, MPFR_RNDD);
        mpfr_div_ui(z->hi, numerator, tied->a + tied->s, MPFR_RNDU);
        iv_mul_q(z, z, m->inverse_claim);
    }
    mpfr_clears(numerator, first, (mpfr_ptr)0);
    return positive;
}

bool ck_level_f(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    if (!level_weight(m, level, ask, out)) return false;
    iv_div(out, out, &ck_dist(m, CK_TARGET, level)->sum);
    return true;
}

bool ck_level_r(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    struct split tied;
    if (!level_z(m, ask, &tied, out))
        iv_point(out, -INFINITY);
    else
        iv_sub(out, out, &ck_dist(m, CK_TARGET, level)->log_sum);
    return true;
}

// All k + m tokens are equally likely: every threshold is 0.
static bool level_row(const struct ck_math *m, const struct ck_ask *ask)
{
    const struct ck_row *r = &m->row[0];
    return !(r->logit[r->order[0]] > r->logit[r->order[ask->k + ask->m - 1]]);
}

bool ck_klf(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    iv_point(out, 0);
    if (level_row(m, ask)) return true;
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    struct iv t[3]; // level, its logarithm, a term
    iv_inits(t, 3, ck_precision(level));
    bool ok = level_weight(m, level, ask, &t[0]);
    iv_log(&t[1], &t[0]);
    for (size_t j = 0; ok && j < ask->k + ask->m; j++) {
        size_t token = m->row[0].order[j];
        const struct iv *e = &d->e[token];
        bool accepted = j < ask->k;
        if (accepted ? mpfr_lessequal_p(e->hi, t[0].lo) : mpfr_greaterequal_p(e->lo, t[0].hi)) continue;
        iv_point(&t[2], 0);
        if (!isinf(m->row[0].logit[token])) {
            ck_z(m, CK_TARGET, token, &t[2]);
            iv_sub(&t[2], &t[2], &t[1]);
            iv_mul(&t[2], &t[2], e);
        }
        iv_sub(&t[2], &t[2], e);
        iv_add(&t[2], &t[2], &t[0]); // f(e, c) = e ln(e/c) - e + c >= 0
        iv_positive(&t[2]);
        if (accepted ? !mpfr_greater_p(e->lo, t[0].hi) : !mpfr_less_p(e->hi, t[0].lo)) mpfr_set_zero(t[2].lo, 1);
        iv_add(out, out, &t[2]);
    }
    iv_clears(t, 3);
    iv_div(out, out, &d->sum);
    return ok;
}

bool ck_klr(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    iv_point(out, 0);
    if (level_row(m, ask)) return true;
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    const struct ck_row *r = &m->row[0];
    struct split tied;
    struct iv g;
    iv_inits(&g, 1, ck_precision(level));
    if (level_z(m, ask, &tied, &g)) {
        iv_exp(&g, &g);
        iv_scale(&g, &g, tied.a + tied.s);
    } else {
        iv_point(&g, 0);
    }
    // Z is a sum of positive terms: what is outside the tied set, and the level for each inside.
    ck_sum_order(d, r, tied.a, ask->k + ask->m - tied.s, out);
    iv_add(&g, &g, out);
    ck_sum_order(d, r, ask->k + ask->m, m->vocab, out);
    iv_add(out, out, &g);
    if (r->finite < ask->k + ask->m && r->finite <= ask->k) {
        iv_point(out, INFINITY); // A holds the whole support and g = 0
    } else {
        iv_div(&g, out, &d->sum);
        iv_log(&g, &g);
        iv_point(out, 0);
        iv_sub(out, out, &g);
        iv_positive(out);
    }
    iv_clears(&g, 1);
    return true;
}

bool ck_tv(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    iv_point(out, 0);
    if (level_row(m, ask)) return true;
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    struct iv t[2];
    iv_inits(t, 2, ck_precision(level));
    bool ok = level_weight(m, level, ask, &t[0]);
    for (size_t j = 0; ok && j < ask->k; j++) {
        iv_sub(&t[1], &d->e[m->row[0].order[j]], &t[0]);
        iv_positive(&t[1]);
        iv_add(out, out, &t[1]);
    }
    iv_clears(t, 2);
    iv_div(out, out, &d->sum);
    iv_at_most_one(out);
    return ok;
}

bool ck_margin_gap(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    const struct ck_row *r = &m->row[0];
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    size_t last = r->order[ask->k - 1], next = r->order[ask->k];
    iv_point(out, 0);
    if (r->logit[last] == r->logit[next]) return true;
    iv_sub(out, &d->e[last], &d->e[next]);
    iv_div(out, out, &d->sum);
    return true;
}

// 1 - k y without cancellation (exactly 0 when it is 0), and 1 + m y.
static void margin_factors(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *minus, struct iv *plus)
{
    const struct ck_row *r = &m->row[0];
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    size_t last = r->order[ask->k - 1], next = r->order[ask->k];
    struct iv t;
    iv_inits(&t, 1, ck_precision(level));
    ck_sum_order(d, r, ask->k, m->vocab, minus);
    iv_scale(&t, &d->e[next], ask->k);
    iv_add(minus, minus, &t);
    for (size_t j = 0; j < ask->k && r->logit[r->order[j]] != r->logit[last]; j++) {
        iv_sub(&t, &d->e[r->order[j]], &d->e[last]);
        iv_positive(&t);
        iv_add(minus, minus, &t);
    }
    iv_div(minus, minus, &d->sum);
    ck_margin_gap(m, level, ask, plus);
    iv_scale(plus, plus, ask->m);
    iv_point(&t, 1);
    iv_add(plus, plus, &t);
    iv_clears(&t, 1);
}

// k f(1 + m y) + m f(1 - k y), over k + m, with f(x) = weight x ln x or -ln x.
static bool margin(struct ck_math *m, int level, const struct ck_ask *ask, bool forward, struct iv *out)
{
    const struct ck_row *r = &m->row[0];
    struct iv t[4];
    iv_point(out, 0);
    if (r->logit[r->order[ask->k - 1]] == r->logit[r->order[ask->k]]) return true;
    iv_inits(t, 4, ck_precision(level));
    margin_factors(m, level, ask, &t[0], &t[1]);
    for (int i = 0; i < 2; i++) {
        bool zero = mpfr_zero_p(t[i].hi) != 0;
        if (zero && forward) continue; // 0 ln 0
        iv_log(&t[2], &t[i]);
        if (forward) iv_mul(&t[2], &t[2], &t[i]);
        iv_scale(&t[2], &t[2], i ? ask->k : ask->m);
        iv_add(&t[3], &t[3], &t[2]);
    }
    if (forward)
        iv_set(out, &t[3]);
    else
        iv_sub(out, out, &t[3]);
    iv_divide(out, out, ask->k + ask->m);
    iv_positive(out);
    iv_clears(t, 4);
    return true;
}

bool ck_margin_klf(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    return margin(m, level, ask, true, out);
}

bool ck_margin_klr(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    return margin(m, level, ask, false, out);
}

bool ck_margin_tv(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    ck_margin_gap(m, level, ask, out);
    iv_scale(out, out, ask->k);
    iv_scale(out, out, ask->m);
    iv_divide(out, out, ask->k + ask->m);
    return true;
}

enum answer ck_tied(struct ck_math *m, const struct ck_ask *ask, bool reverse, size_t range[4])
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, 1);
    const struct ck_row *r = &m->row[0];
    struct split tied;
    struct iv c, slack;
    iv_inits(&c, 1, ck_precision(1));
    iv_inits(&slack, 1, ck_precision(1));
    bool ok = true;
    if (!reverse)
        ok = level_weight(m, 1, ask, &c);
    else if (level_z(m, ask, &tied, &c))
        iv_exp(&c, &c);
    mpfr_mul_2si(slack.lo, c.lo, -30, MPFR_RNDU);
    mpfr_sub(c.lo, c.lo, slack.lo, MPFR_RNDD);
    mpfr_mul_2si(slack.hi, c.hi, -30, MPFR_RNDU);
    mpfr_add(c.hi, c.hi, slack.hi, MPFR_RNDU);
    for (int i = 0; i < 4; i++) range[i] = 0;
    for (size_t j = 0; j < ask->k + ask->m; j++) {
        const struct iv *e = &d->e[r->order[j]];
        size_t *least = j < ask->k ? &range[0] : &range[2];
        if (j < ask->k ? mpfr_greater_p(e->lo, c.hi) : mpfr_less_p(e->hi, c.lo)) least[0]++;
        if (j < ask->k ? mpfr_greaterequal_p(e->hi, c.lo) : mpfr_lessequal_p(e->lo, c.hi)) least[1]++;
    }
    iv_clears(&c, 1);
    iv_clears(&slack, 1);
    return ok ? YES : OPEN;
}

// Is q uniform on a tied set that holds the whole support of p?  Then it is the forward witness.
static bool is_uniform_witness(struct ck_math *m, const struct ck_ask *ask)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    size_t n = ask->k + ask->m, range[4];
    if (q->logit[q->order[0]] != q->logit[q->order[q->finite - 1]] || p->finite > n) return false;
    if (ck_tied(m, ask, false, range) != YES || range[0] != range[1] || range[2] != range[3]) return false;
    if (q->finite != range[0] + range[2]) return false;
    for (size_t j = 0; j < n; j++) {
        bool inside = j < range[0] || j >= n - range[2];
        if (inside ? isinf(q->logit[p->order[j]]) : j < p->finite) return false;
    }
    return true;
}

// Are the logits of q those of p, with the mean inside the tied set, up to a constant?  Then it is the reverse witness.
static bool is_geometric_witness(struct ck_math *m, const struct ck_ask *ask)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    size_t n = ask->k + ask->m;
    struct split tied;
    mpfr_t mean, constant, d, l;
    mpfr_inits2(EXACT, mean, constant, d, l, (mpfr_ptr)0);
    bool positive = mean_logit(m, ask, &tied, mean), same = true;
    unsigned long count = positive ? tied.a + tied.s : 1;
    mpfr_set_nan(constant);
    for (size_t j = 0; j < m->vocab && same; j++) {
        size_t token = p->order[j];
        bool inside = j < tied.a || (j >= n - tied.s && j < n), zero = inside ? !positive : j >= p->finite;
        if (zero || isinf(q->logit[token])) {
            same = zero && isinf(q->logit[token]);
            continue;
        }
        mpfr_set_flt(d, p->logit[token], MPFR_RNDN);
        mpfr_mul_ui(d, d, count, MPFR_RNDN);
        mpfr_set_flt(l, q->logit[token], MPFR_RNDN);
        mpfr_mul_ui(l, l, count, MPFR_RNDN);
        mpfr_sub(d, inside ? mean : d, l, MPFR_RNDN);
        if (mpfr_nan_p(constant)) mpfr_set(constant, d, MPFR_RNDN);
        same = mpfr_equal_p(constant, d) != 0;
    }
    mpfr_clears(mean, constant, d, l, (mpfr_ptr)0);
    return same;
}

enum answer ck_certifies(struct ck_math *m, const struct ck_ask *ask, enum ck_divergence which)
{
    static ck_quantity *const threshold[3] = {ck_klf, ck_klr, ck_tv};
    static ck_quantity *const divergence[3] = {ck_kl_pq, ck_kl_qp, ck_tv_pq};
    if (which == CK_KLR ? is_geometric_witness(m, ask) : is_uniform_witness(m, ask)) return NO;
    for (int level = 0; level < CK_LEVELS; level++) {
        struct iv v[2];
        iv_inits(v, 2, ck_precision(level));
        bool ok = divergence[which](m, level, ask, &v[0]) && threshold[which](m, level, ask, &v[1]);
        enum answer less = ok ? iv_less(&v[0], &v[1]) : OPEN;
        iv_clears(v, 2);
        if (less != OPEN) return less;
    }
    return OPEN;
}
