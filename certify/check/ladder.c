// What independent proposals from q leave of p, one rejection after the other: theory.md §5, "Several proposals"; see
// math.h.
//
// After j rejections the target is (p - c_j q)^+ / Z_j, where c_0 = 0, Z_0 = 1, Z_j = sum (p - c_j q)^+ and
// c_(j+1) = c_j + Z_j, as ((p - c q)^+ / Z - q)^+ is in proportion to (p - (c + Z) q)^+. For x outside A the rejected
// (q - (p - c_j q)^+ / Z_j)^+ is [(c_(j+1) q - p)^+ - (c_j q - p)^+] / Z_j, so with Y_j = sum over those x of
// (c_j q - p)^+ the next proposal is rejected with probability (Y_(j+1) - Y_j) / Z_j. All of the first j are with
// P_j <= Z_j, which is what standard sampling rejects.
//
// At level 0 the tokens are sorted by p/q, so that each of these sums is a difference of two that are kept.
#include "certify/check/math.h"

#include <stdlib.h>
#include <string.h>

static const ck_i128 FAR = (ck_i128)1 << 120;

// How much likelier p makes a token than q does, but for a constant: its depth in q less that in p.
static ck_i128 gap_of(const struct ck_row *p, const struct ck_row *q, size_t token)
{
    size_t c = p->class_of[token], d = q->class_of[token];
    if (d >= q->classes) return FAR;
    return c >= p->classes ? -FAR : (ck_i128)q->depth[d] - (ck_i128)p->depth[c];
}

static void *room_for(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p) abort(); // as MPFR does without memory
    return p;
}

struct keyed { // 86 bits that fall as the gap grows
    uint64_t high;
    uint32_t low, token; // low: 22 bits
};

static size_t digit(const struct keyed *k, int pass)
{
    return pass < 2 ? k->low >> 11 * pass & 2047 : k->high >> 11 * (pass - 2) & 2047;
}

// Eight stable passes of eleven bits; a digit that all have needs none, and most rows have few others.
static struct keyed *sort_keys(struct keyed *from, struct keyed *to, size_t count)
{
    for (int pass = 0; pass < 8; pass++) {
        size_t at[2049] = {0};
        for (size_t i = 0; i < count; i++) at[digit(&from[i], pass) + 1]++;
        if (count > 0 && at[digit(&from[0], pass) + 1] == count) continue;
        for (int i = 0; i < 2048; i++) at[i + 1] += at[i];
        for (size_t i = 0; i < count; i++) to[at[digit(&from[i], pass)]++] = from[i];
        struct keyed *t = from;
        from = to;
        to = t;
    }
    return from;
}

// By falling p/q; the first are those that only p has. The same for every k and temperature.
static void sort_tokens(struct ck_math *m)
{
    struct ck_ladder *l = &m->ladder;
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    struct keyed *list = room_for(2 * m->vocab, sizeof *list);
    l->present = 0;
    for (size_t i = 0; i < m->vocab; i++) {
        if (p->class_of[i] >= p->classes && q->class_of[i] >= q->classes) continue;
        ck_i128 gap = gap_of(p, q, i); // of two depths below 2^82
        ck_u128 key = gap == FAR ? 0 : gap == -FAR ? (ck_u128)1 << 85 : (ck_u128)(((ck_i128)1 << 83) - gap);
        list[l->present++] = (struct keyed){(uint64_t)(key >> 22), (uint32_t)key & 0x3fffff, (uint32_t)i};
    }
    const struct keyed *sorted = sort_keys(list, list + m->vocab, l->present);
    if (!l->by_ratio) l->by_ratio = room_for(m->room, sizeof *l->by_ratio);
    for (size_t i = 0; i < l->present; i++) l->by_ratio[i] = sorted[i].token;
    free(list);
    l->sorted = true;
    l->split = false;
}

// Sums of weights over A, and over the others.
static void split(struct ck_math *m, size_t k)
{
    struct ck_ladder *l = &m->ladder;
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    const struct ck_dist *d[2] = {ck_dist(m, CK_TARGET, 0), ck_dist(m, CK_DRAFT, 0)};
    if (!l->sorted) sort_tokens(m);
    if (l->split && l->split_k == k) return;
    if (!l->sums) l->sums = room_for(m->room + 2, sizeof *l->sums);
    l->inside = 0;
    for (size_t i = 0; i < l->present; i++) l->inside += p->rank[l->by_ratio[i]] < k;
    size_t at[2] = {l->inside + 1, 0}; // the others; A
    struct ck_sums sum[2] = {{0}};
    for (size_t i = 0; i < l->present; i++) {
        size_t token = l->by_ratio[i], in = p->rank[token] < k;
        sum[in].gap = gap_of(p, q, token);
        l->sums[at[in]++] = sum[in];
        sum[in].p += d[0]->weight[p->class_of[token]];
        sum[in].q += d[1]->weight[q->class_of[token]];
    }
    l->sums[at[0]] = sum[0];
    l->sums[at[1]] = sum[1];
    l->split = true;
    l->split_k = k;
}

// The first of some tokens whose gap is at most, or below, a bound.
static size_t place(const struct ck_sums *s, size_t count, ck_i128 bound, bool below)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t i = low + (high - low) / 2;
        if (s[i].gap > bound || (below && s[i].gap == bound))
            low = i + 1;
        else
            high = i;
    }
    return low;
}

static void part(const struct ck_sums *s, size_t from, size_t to, bool of_q, const struct ck_dist *d, struct iv *out)
{
    ck_between(of_q ? s[to].q - s[from].q : s[to].p - s[from].p, to - from, out);
    iv_div(out, out, &d->total);
}

static bool excess_fixed(struct ck_math *m, bool inside, size_t k, const struct iv *c, bool of_p, struct iv *out)
{
    const struct ck_dist *p = ck_dist(m, CK_TARGET, 0), *q = ck_dist(m, CK_DRAFT, 0);
    struct ck_ladder *l = &m->ladder;
    struct ck_cut cut;
    struct iv t[2];
    split(m, k);
    const struct ck_sums *s = inside ? l->sums : l->sums + l->inside + 1;
    size_t count = inside ? l->inside : l->present - l->inside;
    mpfr_init2(cut.width, 64);
    iv_inits(t, 2, ck_precision(0));
    iv_log(&t[0], c);
    bool ok = ck_find_cut(m, &t[0], &cut);
    if (ok) {
        size_t sure = place(s, count, cut.over, false), doubt = place(s, count, cut.under, true);
        if (doubt < sure) doubt = sure;
        size_t from = of_p ? 0 : doubt, to = of_p ? sure : count;
        iv_point(out, 0);
        if (from < to) {
            part(s, from, to, !of_p, of_p ? p : q, out);
            part(s, from, to, of_p, of_p ? q : p, &t[1]);
            iv_mul(of_p ? &t[1] : out, of_p ? &t[1] : out, c);
            iv_sub(out, out, &t[1]);
            iv_positive(out);
        }
        if (doubt > sure) { // p and c q differ there by a share of p at most
            part(s, sure, doubt, false, p, &t[1]);
            mpfr_set_zero(t[0].lo, 1);
            mpfr_set(t[0].hi, cut.width, MPFR_RNDU);
            iv_mul(&t[1], &t[1], &t[0]);
            iv_add(out, out, &t[1]);
        }
    }
    mpfr_clear(cut.width);
    iv_clears(t, 2);
    return ok;
}

bool ck_excess(struct ck_math *m, int level, bool inside, size_t k, const struct iv *c, bool of_p, struct iv *out)
{
    const struct ck_dist *p = ck_dist(m, CK_TARGET, level), *q = ck_dist(m, CK_DRAFT, level);
    size_t from = inside ? 0 : k, to = inside ? k : m->vocab;
    if (level == 0 && mpfr_sgn(c->lo) > 0) return excess_fixed(m, inside, k, c, of_p, out);
    iv_point(out, 0);
    if (mpfr_zero_p(c->hi)) { // (p - 0)^+
        if (of_p) ck_sum_order(p, from, to, out);
        iv_div(out, out, &p->total);
        return true;
    }
    if (level == 0) return false;
    // p_x = c q_x, which no precision tells: excess_fixed knows it of its cut
    bool ties = mpfr_cmp_ui(c->lo, 1) == 0 && mpfr_cmp_ui(c->hi, 1) == 0 && ck_rearranged(m);
    struct iv t[2];
    iv_inits(t, 2, ck_precision(level));
    for (size_t j = from; j < to; j++) {
        size_t id = p->row->order[j];
        if (ties && p->row->class_of[id] == q->row->class_of[id]) continue;
        ck_weight(p, id, &t[0]);
        iv_div(&t[0], &t[0], &p->total);
        ck_weight(q, id, &t[1]);
        iv_div(&t[1], &t[1], &q->total);
        iv_mul(&t[1], &t[1], c);
        iv_sub(&t[0], of_p ? &t[0] : &t[1], of_p ? &t[1] : &t[0]);
        iv_positive(&t[0]);
        iv_add(out, out, &t[0]);
    }
    iv_clears(t, 2);
    return true;
}

// What the supports alone say: does q lie within A; is a proposal never accepted?
static void supports(const struct ck_math *m, size_t k, bool *within, bool *never)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    *within = *never = true;
    for (size_t j = 0; j < q->finite; j++) {
        size_t rank = p->rank[q->order[j]];
        *within = *within && rank < k;
        *never = *never && rank >= k && rank >= p->finite;
    }
}

// The rungs where nothing is to be computed: p = q, or no proposal is ever accepted.
static void plain_rungs(struct ck_ladder *l, bool never)
{
    for (size_t j = 0; j <= l->m; j++) {
        struct ck_rung *r = &l->rung[j];
        iv_point(&r->c, never ? (double)j : j > 0);
        iv_point(&r->z, never || j == 0);
        iv_point(&r->left, never || j == 0);
        iv_point(&r->looked, never ? (double)j : j > 0);
    }
}

// Z may be 0 at this rung, and nothing is divided by it: the chances only fall from here on.
static void last_rungs(struct ck_ladder *l, size_t at)
{
    mpfr_set_zero(l->rung[at].left.lo, 1);
    for (size_t j = at + 1; j <= l->m; j++) {
        struct ck_rung *r = &l->rung[j], *before = r - 1;
        iv_add(&r->c, &before->c, &before->z);
        iv_add(&r->looked, &before->looked, &before->left);
        iv_set(&r->z, &before->z);
        iv_set(&r->left, &before->left);
        mpfr_set_zero(r->z.lo, 1);
    }
}

static bool climb(struct ck_math *m, struct ck_ladder *l, bool within)
{
    struct iv y[2], t;
    bool ok = true;
    iv_inits(y, 2, ck_precision(l->level));
    iv_inits(&t, 1, ck_precision(l->level));
    plain_rungs(l, false);
    for (size_t j = 1; ok && j <= l->m; j++) {
        struct ck_rung *r = &l->rung[j], *before = r - 1;
        iv_add(&r->c, &before->c, &before->z);
        iv_add(&r->looked, &before->looked, &before->left);
        ok = ck_excess(m, l->level, false, l->k, &r->c, true, &r->z) &&
             ck_excess(m, l->level, true, l->k, &r->c, true, &t) &&
             ck_excess(m, l->level, false, l->k, &r->c, false, &y[1]);
        iv_add(&r->z, &r->z, &t);
        iv_sub(&t, &y[1], &y[0]);
        iv_div(&t, &t, &before->z);
        iv_positive(&t);
        iv_mul(&r->left, &before->left, &t);
        iv_min(&r->left, &r->z); // P <= Z, which both ends may use
        if (within) iv_point(&r->left, 0);
        iv_set(&y[0], &y[1]);
        if (mpfr_sgn(r->z.lo) > 0) continue;
        last_rungs(l, j);
        break;
    }
    iv_clears(y, 2);
    iv_clears(&t, 1);
    return ok;
}

static void drop_rungs(struct ck_ladder *l)
{
    for (size_t i = 0; i < l->made; i++) {
        iv_clears(&l->rung[i].c, 1);
        iv_clears(&l->rung[i].z, 1);
        iv_clears(&l->rung[i].left, 1);
        iv_clears(&l->rung[i].looked, 1);
    }
    if (l->made) iv_clears(&l->e, 1);
    free(l->rung);
    l->made = 0;
}

static void make_room(struct ck_ladder *l, size_t count, mpfr_prec_t precision)
{
    drop_rungs(l);
    l->rung = room_for(count, sizeof *l->rung);
    l->made = count;
    for (size_t i = 0; i < count; i++) {
        iv_inits(&l->rung[i].c, 1, precision);
        iv_inits(&l->rung[i].z, 1, precision);
        iv_inits(&l->rung[i].left, 1, precision);
        iv_inits(&l->rung[i].looked, 1, precision);
    }
    iv_inits(&l->e, 1, precision);
}

const struct ck_ladder *ck_ladder(struct ck_math *m, int level, size_t k, size_t count)
{
    struct ck_ladder *l = &m->ladder;
    if (l->ready && l->level == level && l->k == k && l->m == count) return l->known ? l : NULL;
    bool within, never;
    make_room(l, count + 1, ck_precision(level));
    l->ready = l->known = true;
    l->exact = false;
    l->level = level;
    l->k = k;
    l->m = count;
    supports(m, k, &within, &never);
    if (ck_same_law(m) || never)
        plain_rungs(l, never && !ck_same_law(m));
    else if (ck_flat_ladder(m, l, within))
        l->exact = true;
    else if (level > 0 && count > ((size_t)1 << 28) / m->vocab)
        l->known = false;
    else
        l->known = climb(m, l, within);
    return l->known ? l : NULL;
}

const struct ck_ladder *ck_any_ladder(struct ck_math *m, int level, size_t count)
{
    const struct ck_ladder *l = &m->ladder;
    return l->ready && l->known && l->level == level && l->m == count ? l : ck_ladder(m, level, 0, count);
}

void ck_ladder_clear(struct ck_ladder *l)
{
    drop_rungs(l);
    free(l->by_ratio);
    free(l->sums);
    memset(l, 0, sizeof *l);
}
