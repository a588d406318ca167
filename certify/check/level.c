// Water levels: see math.h. theory.md §2.
#include "certify/check/math.h"

#include <math.h>
#include <stdlib.h>

// The balance sum_upper (v - t)^+ - sum_lower (t - v)^+ at t = v[j], roughly: it only steers.
static int rough_sign(const struct ck_group *g, size_t count, const struct iv *extra, size_t j, mpfr_t sum, mpfr_t t)
{
    mpfr_set_zero(sum, 1);
    if (extra) mpfr_set(sum, extra->lo, MPFR_RNDN);
    for (size_t i = 0; i < count; i++) {
        size_t n = i < j ? g[i].upper : i > j ? g[i].lower : 0;
        if (n == 0) continue;
        mpfr_sub(t, g[i].v.lo, g[j].v.lo, MPFR_RNDN); // positive before j; negative after
        mpfr_mul_ui(t, t, n, MPFR_RNDN);
        mpfr_add(sum, sum, t, MPFR_RNDN);
    }
    return mpfr_sgn(sum);
}

// Is the sign of the balance at t proved to be >= 0 (up) or <= 0 (down)?
static bool balance_proved(const struct ck_group *g, size_t count, const struct iv *extra, mpfr_t t, bool up)
{
    struct iv b[4];
    iv_inits(b, 4, mpfr_get_prec(t));
    if (extra) iv_set(&b[0], extra);
    mpfr_set(b[1].lo, t, MPFR_RNDD);
    mpfr_set(b[1].hi, t, MPFR_RNDU);
    for (size_t i = 0; i < count; i++) {
        if (g[i].upper) {
            iv_sub(&b[2], &g[i].v, &b[1]);
            iv_positive(&b[2]);
            iv_scale(&b[2], &b[2], g[i].upper);
            iv_add(&b[0], &b[0], &b[2]);
        }
        if (g[i].lower) {
            iv_sub(&b[3], &b[1], &g[i].v);
            iv_positive(&b[3]);
            iv_scale(&b[3], &b[3], g[i].lower);
            iv_sub(&b[0], &b[0], &b[3]);
        }
    }
    bool proved = up ? mpfr_sgn(b[0].lo) >= 0 : mpfr_sgn(b[0].hi) <= 0;
    iv_clears(b, 4);
    return proved;
}

// The mean over a guessed tied set, widened until both signs prove it. The balance falls as t rises, and v falls with
// its index: bisects for the first v[j] where it is not negative.
bool ck_balance(struct ck_group *g, size_t count, const struct iv *extra, struct iv *c)
{
    mpfr_prec_t precision = mpfr_get_prec(c->lo);
    size_t low = 0, high = count - 1, n = 0, all = 0;
    struct iv t;
    iv_inits(&t, 1, precision);
    while (low < high) {
        size_t j = low + (high - low) / 2;
        if (rough_sign(g, count, extra, j, t.lo, t.hi) >= 0)
            high = j;
        else
            low = j + 1;
    }
    iv_point(c, 0);
    for (size_t i = 0; i < count; i++) {
        size_t tied = i < low ? g[i].upper : g[i].lower;
        n += tied;
        all += g[i].upper + g[i].lower;
        iv_scale(&t, &g[i].v, tied);
        iv_add(c, c, &t);
    }
    if (extra) iv_add(c, c, extra);
    iv_divide(c, c, n ? n : 1);
    bool up = balance_proved(g, count, extra, c->lo, true), down = balance_proved(g, count, extra, c->hi, false);
    mpfr_set_ui_2exp(t.hi, all, 20 - precision, MPFR_RNDU);
    if (!up) {
        mpfr_sub(c->lo, c->lo, t.hi, MPFR_RNDD);
        up = balance_proved(g, count, extra, c->lo, true);
    }
    if (!down) {
        mpfr_add(c->hi, c->hi, t.hi, MPFR_RNDU);
        down = balance_proved(g, count, extra, c->hi, false);
    }
    iv_clears(&t, 1);
    return up && down && mpfr_sgn(c->lo) > 0;
}

// The level in units of weights; extra: what A has above the level beside its tokens (theory.md §4), or NULL.
bool ck_level_weight(struct ck_math *m, int level, const struct ck_ask *ask, const struct iv *extra, struct iv *c)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    size_t n = ask->k + ask->m, count = 0, last = m->row[0].class_of[m->row[0].order[n - 1]];
    struct ck_group *g = calloc(last + 1, sizeof *g);
    if (!g) abort(); // as MPFR does without memory
    for (struct ck_run run = {0}; ck_next_run(&m->row[0], n, &run); count++) {
        size_t before = run.from < ask->k ? ask->k - run.from : 0;
        iv_inits(&g[count].v, 1, ck_precision(level));
        ck_class_weight(d, run.class, &g[count].v);
        g[count].upper = before < run.count ? before : run.count;
        g[count].lower = run.count - g[count].upper;
    }
    bool ok = ck_balance(g, count, extra, c);
    for (size_t i = 0; i < count; i++) iv_clears(&g[i].v, 1);
    free(g);
    return ok;
}

// Sum of the depths of the first tokens of the order, exactly.
static ck_u128 depths_before(const struct ck_row *r, size_t position)
{
    size_t c = position < r->finite ? r->class_of[r->order[position]] : r->classes;
    return c == r->classes ? r->depths[c] : r->depths[c] + r->depth[c] * (position - r->first[c]);
}

// The same for the tokens from one position to another less as many times the depth of a class, as a real number.
static void depths_over(const struct ck_row *r, size_t from, size_t to, size_t c, mpfr_t out)
{
    if (r->regular) {
        ck_i128 sum = (ck_i128)(depths_before(r, to) - depths_before(r, from));
        ck_set_signed(out, sum - (ck_i128)(r->depth[c] * (to - from)), -CK_DEPTH, MPFR_RNDN);
        return;
    }
    mpfr_t t;
    mpfr_init2(t, CK_EXACT);
    mpfr_set_zero(out, 1);
    float own = r->logit[r->order[r->first[c]]];
    for (struct ck_run run = {.from = from}; ck_next_run(r, to, &run);) {
        mpfr_set_flt(t, own, MPFR_RNDN);
        mpfr_sub_d(t, t, r->logit[r->order[run.from]], MPFR_RNDN);
        mpfr_mul_ui(t, t, run.count, MPFR_RNDN);
        mpfr_add(out, out, t, MPFR_RNDN);
    }
    mpfr_clear(t);
}

// The reverse level is a mean of logits: the sum of depths over the tied set, exactly. False when g = 0 (a zero in S).
bool ck_mean_depth(const struct ck_math *m, const struct ck_ask *ask, struct ck_split *tied, mpfr_t numerator)
{
    const struct ck_row *r = &m->row[0];
    size_t n = ask->k + ask->m, k = ask->k;
    if (r->finite < n) {
        *tied = (struct ck_split){k, n - (r->finite > k ? r->finite : k)};
        return false;
    }
    size_t low = 0, high = r->class_of[r->order[n - 1]];
    mpfr_t t;
    mpfr_init2(t, CK_EXACT);
    while (low < high) { // the first class where the balance at its logit is not negative
        size_t c = low + (high - low) / 2, from = r->first[c], past = r->first[c + 1];
        depths_over(r, 0, from < k ? from : k, c, numerator);
        depths_over(r, past > k ? past : k, past > n ? past : n, c, t);
        mpfr_add(numerator, numerator, t, MPFR_RNDN);
        if (mpfr_sgn(numerator) <= 0)
            high = c;
        else
            low = c + 1;
    }
    size_t at = r->first[low];
    *tied = (struct ck_split){at < k ? at : k, n - (at > k ? at : k)};
    depths_over(r, 0, tied->a, 0, numerator);
    depths_over(r, n - tied->s, n, 0, t);
    mpfr_add(numerator, numerator, t, MPFR_RNDN);
    mpfr_clear(t);
    return true;
}

// z of the reverse level, (mean - l_first)/T; false when g = 0.
bool ck_level_z(struct ck_math *m, const struct ck_ask *ask, struct ck_split *tied, struct iv *z)
{
    mpfr_t numerator;
    mpfr_init2(numerator, CK_EXACT);
    bool positive = ck_mean_depth(m, ask, tied, numerator);
    if (positive) {
        mpfr_neg(numerator, numerator, MPFR_RNDN);
        mpfr_div_ui(z->lo, numerator, tied->a + tied->s, MPFR_RNDD);
        mpfr_div_ui(z->hi, numerator, tied->a + tied->s, MPFR_RNDU);
        iv_mul_q(z, z, m->inverse_claim);
    }
    mpfr_clear(numerator);
    return positive;
}

bool ck_level_f(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    if (!ck_level_weight(m, level, ask, NULL, out)) return false;
    iv_div(out, out, &ck_dist(m, CK_TARGET, level)->total);
    return true;
}

bool ck_level_r(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    struct ck_split tied;
    if (!ck_level_z(m, ask, &tied, out))
        iv_point(out, -INFINITY);
    else
        iv_sub(out, out, &ck_dist(m, CK_TARGET, level)->log_sum);
    return true;
}

// All k + m tokens are equally likely: every threshold is 0.
bool ck_level_row(const struct ck_math *m, const struct ck_ask *ask)
{
    const struct ck_row *r = &m->row[0];
    return r->class_of[r->order[ask->k + ask->m - 1]] == 0;
}

bool ck_klf(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    iv_point(out, 0);
    if (ck_level_row(m, ask)) return true;
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    struct iv t[4]; // level, its logarithm, a term, a weight
    iv_inits(t, 4, ck_precision(level));
    bool ok = ck_level_weight(m, level, ask, NULL, &t[0]);
    iv_log(&t[1], &t[0]);
    for (int part = 0; ok && part < 2; part++) {
        size_t to = part ? ask->k + ask->m : ask->k;
        for (struct ck_run run = {.from = part ? ask->k : 0}; ck_next_run(d->row, to, &run);) {
            ck_class_weight(d, run.class, &t[3]);
            if (part ? mpfr_greaterequal_p(t[3].lo, t[0].hi) : mpfr_lessequal_p(t[3].hi, t[0].lo)) continue;
            iv_point(&t[2], 0);
            if (run.class < d->row->classes) {
                ck_class_z(d, run.class, &t[2]);
                iv_sub(&t[2], &t[2], &t[1]);
                iv_mul(&t[2], &t[2], &t[3]);
            }
            iv_sub(&t[2], &t[2], &t[3]);
            iv_add(&t[2], &t[2], &t[0]); // f(e, c) = e ln(e/c) - e + c >= 0
            iv_positive(&t[2]);
            if (part ? !mpfr_less_p(t[3].hi, t[0].lo) : !mpfr_greater_p(t[3].lo, t[0].hi)) mpfr_set_zero(t[2].lo, 1);
            iv_scale(&t[2], &t[2], run.count);
            iv_add(out, out, &t[2]);
        }
    }
    iv_clears(t, 4);
    iv_div(out, out, &d->total);
    return ok;
}

bool ck_klr(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    iv_point(out, 0);
    if (ck_level_row(m, ask)) return true;
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    size_t n = ask->k + ask->m;
    struct ck_split tied;
    struct iv g;
    iv_inits(&g, 1, ck_precision(level));
    if (ck_level_z(m, ask, &tied, &g)) {
        iv_exp(&g, &g);
        iv_scale(&g, &g, tied.a + tied.s);
    } else {
        iv_point(&g, 0);
    }
    // Z is a sum of positive terms: what is outside the tied set, and the level for each inside.
    ck_sum_order(d, tied.a, n - tied.s, out);
    iv_add(&g, &g, out);
    ck_sum_order(d, n, m->vocab, out);
    iv_add(out, out, &g);
    if (d->row->finite < n && d->row->finite <= ask->k) {
        iv_point(out, INFINITY); // A holds the whole support and g = 0
    } else {
        iv_div(&g, out, &d->total);
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
    if (ck_level_row(m, ask)) return true;
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    struct iv t[2];
    iv_inits(t, 2, ck_precision(level));
    bool ok = ck_level_weight(m, level, ask, NULL, &t[0]);
    for (struct ck_run run = {0}; ok && ck_next_run(d->row, ask->k, &run);) {
        ck_class_weight(d, run.class, &t[1]);
        iv_sub(&t[1], &t[1], &t[0]);
        iv_positive(&t[1]);
        iv_scale(&t[1], &t[1], run.count);
        iv_add(out, out, &t[1]);
    }
    iv_clears(t, 2);
    iv_div(out, out, &d->total);
    iv_at_most_one(out);
    return ok;
}
