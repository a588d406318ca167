// Margin-only certificates: see math.h. theory.md §3.
#include "certify/check/math.h"

bool ck_margin_gap(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    const struct ck_row *r = &m->row[0];
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    size_t last = r->order[ask->k - 1], next = r->order[ask->k];
    iv_point(out, 0);
    if (r->class_of[last] == r->class_of[next]) return true;
    struct iv t;
    iv_inits(&t, 1, ck_precision(level));
    ck_weight(d, last, out);
    ck_weight(d, next, &t);
    iv_sub(out, out, &t);
    iv_div(out, out, &d->total);
    iv_clears(&t, 1);
    return true;
}

// 1 - k y without cancellation (exactly 0 when it is 0), and 1 + m y.
static void margin_factors(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *minus, struct iv *plus)
{
    const struct ck_row *r = &m->row[0];
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    struct iv t[2];
    iv_inits(t, 2, ck_precision(level));
    ck_sum_order(d, ask->k, m->vocab, minus);
    ck_weight(d, r->order[ask->k], &t[0]);
    iv_scale(&t[0], &t[0], ask->k);
    iv_add(minus, minus, &t[0]);
    size_t last = r->class_of[r->order[ask->k - 1]];
    ck_class_weight(d, last, &t[1]);
    for (struct ck_run run = {0}; ck_next_run(r, ask->k, &run) && run.class != last;) {
        ck_class_weight(d, run.class, &t[0]);
        iv_sub(&t[0], &t[0], &t[1]);
        iv_positive(&t[0]);
        iv_scale(&t[0], &t[0], run.count);
        iv_add(minus, minus, &t[0]);
    }
    iv_div(minus, minus, &d->total);
    ck_margin_gap(m, level, ask, plus);
    iv_scale(plus, plus, ask->m);
    iv_point(&t[0], 1);
    iv_add(plus, plus, &t[0]);
    iv_clears(t, 2);
}

// k f(1 + m y) + m f(1 - k y), over k + m, with f(x) = weight x ln x or -ln x.
static bool margin(struct ck_math *m, int level, const struct ck_ask *ask, bool forward, struct iv *out)
{
    const struct ck_row *r = &m->row[0];
    struct iv t[4];
    iv_point(out, 0);
    if (r->class_of[r->order[ask->k - 1]] == r->class_of[r->order[ask->k]]) return true;
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
