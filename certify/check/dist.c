// Weights of a row at a temperature, and their sums: see math.h.
#include "certify/check/math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *room_for(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p) abort(); // as MPFR does without memory
    return p;
}

static void weigh_fixed(struct ck_dist *d, size_t room)
{
    const struct ck_row *r = d->row;
    struct ck_scale scale;
    if (!d->weight) {
        d->weight = room_for(room + 1, sizeof *d->weight);
        d->sum = room_for(room + 1, sizeof *d->sum);
        d->product = room_for(room + 1, sizeof *d->product);
    }
    ck_scale_set(&scale, d->inverse);
    for (size_t c = 0; c < r->classes; c++) {
        size_t count = r->first[c + 1] - r->first[c];
        d->weight[c] = ck_weight_at(&scale, r->depth[c]);
        d->sum[c + 1] = d->sum[c] + d->weight[c] * count;
        d->product[c + 1] = d->product[c];
        ck_wide_add_product(&d->product[c + 1], d->weight[c] * count, r->depth[c]);
    }
    d->weight[r->classes] = 0;
}

static void weigh(struct ck_dist *d, int level)
{
    const struct ck_row *r = d->row;
    struct iv z;
    d->e = room_for(r->classes, sizeof *d->e);
    d->made = r->classes;
    iv_inits(d->e, r->classes, ck_precision(level));
    iv_inits(&z, 1, ck_precision(level));
    for (size_t c = 0; c < r->classes; c++) {
        ck_class_z(d, c, &z);
        iv_exp(&d->e[c], &z);
    }
    iv_clears(&z, 1);
}

const struct ck_dist *ck_dist(struct ck_math *m, enum ck_which which, int level)
{
    if (which == CK_DRAW && m->same_temperature) which = CK_TARGET;
    struct ck_dist *d = &m->dist[which][level];
    if (d->ready) return d;
    if (!d->room) {
        iv_inits(&d->total, 1, ck_precision(level));
        iv_inits(&d->log_sum, 1, ck_precision(level));
        d->room = 1;
    }
    d->row = &m->row[which == CK_DRAFT];
    d->inverse = which == CK_DRAW ? m->inverse_draw : m->inverse_claim;
    if (level == 0)
        weigh_fixed(d, m->room);
    else
        weigh(d, level);
    ck_sum_order(d, 0, d->row->finite, &d->total);
    iv_log(&d->log_sum, &d->total);
    d->ready = true;
    return d;
}

void ck_between(ck_u128 sum, size_t n, struct iv *out)
{
    ck_set_unsigned(out->lo, sum, -CK_UNIT, MPFR_RNDD);
    ck_set_unsigned(out->hi, sum + 2 * (ck_u128)n, -CK_UNIT, MPFR_RNDU);
}

void ck_class_weight(const struct ck_dist *d, size_t c, struct iv *e)
{
    if (c >= d->row->classes || c == 0)
        iv_point(e, c == 0);
    else if (d->weight)
        ck_between(d->weight[c], 1, e);
    else
        iv_set(e, &d->e[c]);
}

void ck_weight(const struct ck_dist *d, size_t token, struct iv *e)
{
    ck_class_weight(d, d->row->class_of[token], e);
}

void ck_class_z(const struct ck_dist *d, size_t c, struct iv *z)
{
    ck_logit_gap(d->row, d->row->first[c], 0, z);
    if (mpq_cmp_ui(d->inverse, 1, 1) != 0) iv_mul_q(z, z, d->inverse);
}

static size_t class_at(const struct ck_row *r, size_t position)
{
    return position < r->finite ? r->class_of[r->order[position]] : r->classes;
}

void ck_sum_order(const struct ck_dist *d, size_t from, size_t to, struct iv *sum)
{
    const struct ck_row *r = d->row;
    iv_point(sum, 0);
    if (to > r->finite) to = r->finite;
    if (from >= to) return;
    if (d->weight) {
        size_t a = class_at(r, from), b = class_at(r, to);
        ck_u128 below = d->sum[a] + d->weight[a] * (from - r->first[a]);
        ck_u128 through = d->sum[b] + (b < r->classes ? d->weight[b] * (to - r->first[b]) : 0);
        size_t exact = from >= r->first[1] ? 0 : (to < r->first[1] ? to : r->first[1]) - from; // the first class is 1
        ck_between(through - below, to - from - exact, sum);
        return;
    }
    struct iv t;
    iv_inits(&t, 1, mpfr_get_prec(sum->lo));
    for (struct ck_run run = {.from = from}; ck_next_run(r, to, &run);) {
        iv_scale(&t, &d->e[run.class], run.count);
        iv_add(sum, sum, &t);
    }
    iv_clears(&t, 1);
}

// Sum of weight times depth before a position, and of depths alone.
static void products(const struct ck_dist *d, size_t position, struct ck_wide *product, ck_u128 *depths)
{
    const struct ck_row *r = d->row;
    size_t c = class_at(r, position);
    *product = d->product[c];
    *depths = r->depths[c];
    if (c == r->classes) return;
    ck_wide_add_product(product, d->weight[c] * (position - r->first[c]), r->depth[c]);
    *depths += r->depth[c] * (position - r->first[c]);
}

void ck_sum_moment(const struct ck_dist *d, size_t from, size_t to, struct iv *sum)
{
    const struct ck_row *r = d->row;
    iv_point(sum, 0);
    if (to > r->finite) to = r->finite;
    if (from >= to) return;
    struct iv t[2];
    iv_inits(t, 2, mpfr_get_prec(sum->lo));
    if (d->weight) { // -z = depth / T
        struct ck_wide product[2];
        ck_u128 depths[2];
        products(d, from, &product[0], &depths[0]);
        products(d, to, &product[1], &depths[1]);
        product[1].high -= product[0].high + (product[1].low < product[0].low);
        product[1].low -= product[0].low;
        ck_set_wide(t[0].lo, product[1], -CK_UNIT - CK_DEPTH, MPFR_RNDD);
        ck_set_wide(t[0].hi, product[1], -CK_UNIT - CK_DEPTH, MPFR_RNDU);
        ck_set_unsigned(t[1].hi, depths[1] - depths[0], 1 - CK_UNIT - CK_DEPTH, MPFR_RNDU);
        mpfr_add(t[0].hi, t[0].hi, t[1].hi, MPFR_RNDU);
        iv_mul_q(&t[0], &t[0], d->inverse);
        iv_sub(sum, sum, &t[0]);
    } else {
        for (struct ck_run run = {.from = from}; ck_next_run(r, to, &run);) {
            ck_class_z(d, run.class, &t[0]);
            iv_mul(&t[0], &t[0], &d->e[run.class]);
            iv_scale(&t[0], &t[0], run.count);
            iv_add(sum, sum, &t[0]);
        }
    }
    iv_clears(t, 2);
}

void ck_sum_ids(const struct ck_dist *d, size_t ids, const struct ck_part *part, struct iv *sum)
{
    const struct ck_row *r = d->row;
    size_t end = part->support < r->finite ? part->support : r->finite, n = 0;
    iv_point(sum, 0);
    if (d->weight) {
        ck_u128 total = 0;
        for (size_t i = 0; i < ids; i++) {
            if (r->rank[i] >= end) continue;
            total += d->weight[r->class_of[i]];
            n += r->class_of[i] > 0; // the first class is exactly 1
        }
        for (size_t j = 0; j < part->count; j++) {
            size_t i = part->without[j];
            if (i >= ids || r->rank[i] >= end) continue;
            total -= d->weight[r->class_of[i]];
            n -= r->class_of[i] > 0;
        }
        ck_between(total, n, sum);
        return;
    }
    uint32_t *counts = room_for(r->classes + 1, sizeof *counts);
    for (size_t i = 0; i < ids; i++)
        if (r->rank[i] < end) counts[r->class_of[i]]++;
    for (size_t j = 0; j < part->count; j++)
        if (part->without[j] < ids && r->rank[part->without[j]] < end) counts[r->class_of[part->without[j]]]--;
    struct iv t;
    iv_inits(&t, 1, mpfr_get_prec(sum->lo));
    for (size_t c = 0; c < r->classes; c++) {
        if (!counts[c]) continue;
        iv_scale(&t, &d->e[c], counts[c]);
        iv_add(sum, sum, &t);
    }
    iv_clears(&t, 1);
    free(counts);
}
