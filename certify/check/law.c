// The law of the token when a proposal in A is accepted surely and another one as standard speculative sampling would:
// theory.md §5; see math.h.
//
// iid: m draws from q, one after the other. After j rejections the target is (p - c_j q)^+ / Z_j, where c_0 = 0, Z_0 =
// 1, Z_j = sum (p - c_j q)^+ and c_(j+1) = c_j + Z_j, as ((p - c q)^+ / Z - q)^+ is in proportion to (p - (c + Z) q)^+.
// For x outside A the rejected (q - (p - c_j q)^+ / Z_j)^+ is [(c_(j+1) q - p)^+ - (c_j q - p)^+] / Z_j, so with Y_j =
// sum over those x of (c_j q - p)^+ the j-th proposal is rejected with probability (Y_(j+1) - Y_j) / Z_j. Let R_j be
// the chance that all of the first j are. R_j <= Z_j (Z_j is what standard sampling rejects), so outside A the law
// never exceeds p: its terms telescope below p. In A it is sigma q + R_m (p - c_m q)^+ / Z_m with
// sigma = sum_(j<m) R_j <= c_m, which exceeds p where sigma q does and only there.
// Hence TV(law, p) = sum over A of (sigma q - p)^+.
//
// topk: a point mass at each child in turn. The residual is p without the children already refused, so that they all go
// as sampling from p would until the first child in A, which takes whatever is left.
#include "certify/check/math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct token { // of a set, by falling p/q
    ck_i128 gap;
    ck_u128 p, q; // weights of the tokens before it
};

struct set {             // A, or what is outside
    struct token *token; // [count + 1] at level 0
    size_t count, from, to;
};

struct law {
    struct ck_math *m;
    const struct ck_dist *p, *q;
    int level;
    struct set set[2]; // outside A; A
    struct iv t[4];
    struct ck_cut cut;
};

static int by_gap(const void *a, const void *b)
{
    ck_i128 x = ((const struct token *)a)->gap, y = ((const struct token *)b)->gap;
    return (x < y) - (x > y);
}

static const ck_i128 FAR = (ck_i128)1 << 120;

// Sorts a set by p/q and sums the weights before each token.
static void sort_set(struct law *l, struct set *s)
{
    const struct ck_row *p = l->p->row, *q = l->q->row;
    s->token = calloc(s->to - s->from + 1, sizeof *s->token);
    if (!s->token) abort(); // as MPFR does without memory
    for (size_t j = s->from; j < s->to; j++) {
        size_t id = p->order[j], c = p->class_of[id], d = q->class_of[id];
        bool in_p = c < p->classes, in_q = d < q->classes;
        if (!in_p && !in_q) continue;
        ck_i128 gap = !in_q ? FAR : !in_p ? -FAR : (ck_i128)q->depth[d] - (ck_i128)p->depth[c];
        s->token[s->count++] = (struct token){gap, l->p->weight[c], l->q->weight[d]};
    }
    qsort(s->token, s->count, sizeof *s->token, by_gap);
    ck_u128 sum_p = 0, sum_q = 0;
    for (size_t i = 0; i <= s->count; i++) {
        ck_u128 own_p = i < s->count ? s->token[i].p : 0, own_q = i < s->count ? s->token[i].q : 0;
        s->token[i].p = sum_p;
        s->token[i].q = sum_q;
        sum_p += own_p;
        sum_q += own_q;
    }
}

static void law_close(struct law *l)
{
    free(l->set[0].token);
    free(l->set[1].token);
    mpfr_clear(l->cut.width);
    iv_clears(l->t, 4);
}

static void law_open(struct law *l, struct ck_math *m, int level, size_t k)
{
    memset(l, 0, sizeof *l);
    l->m = m;
    l->level = level;
    l->p = ck_dist(m, CK_TARGET, level);
    l->q = ck_dist(m, CK_DRAFT, level);
    l->set[0].from = k;
    l->set[0].to = m->vocab;
    l->set[1].to = k;
    mpfr_init2(l->cut.width, 64);
    iv_inits(l->t, 4, ck_precision(level));
    if (level > 0) return;
    sort_set(l, &l->set[0]);
    sort_set(l, &l->set[1]);
}

// The first token of a set whose gap is at most, or below, a bound.
static size_t place(const struct set *s, ck_i128 bound, bool below)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t i = low + (high - low) / 2;
        if (s->token[i].gap > bound || (below && s->token[i].gap == bound))
            low = i + 1;
        else
            high = i;
    }
    return low;
}

static void part(const struct set *s, size_t from, size_t to, bool of_q, const struct ck_dist *d, struct iv *out)
{
    const struct token *a = &s->token[from], *b = &s->token[to];
    ck_between(of_q ? b->q - a->q : b->p - a->p, to - from, out);
    iv_div(out, out, &d->total);
}

static bool excess_fixed(struct law *l, const struct set *s, const struct iv *c, bool of_p, struct iv *out)
{
    size_t sure, doubt, from, to;
    iv_log(&l->t[0], c);
    if (!ck_find_cut(l->p, l->q, &l->t[0], &l->cut)) return false;
    sure = place(s, l->cut.over, false);
    doubt = place(s, l->cut.under, true);
    if (doubt < sure) doubt = sure;
    from = of_p ? 0 : doubt;
    to = of_p ? sure : s->count;
    if (from == to)
        iv_point(out, 0);
    else {
        part(s, from, to, !of_p, of_p ? l->p : l->q, out);
        part(s, from, to, of_p, of_p ? l->q : l->p, &l->t[1]);
        if (of_p)
            iv_mul(&l->t[1], &l->t[1], c);
        else
            iv_mul(out, out, c);
        iv_sub(out, out, &l->t[1]);
        iv_positive(out);
    }
    if (doubt == sure) return true;
    part(s, sure, doubt, false, l->p, &l->t[1]); // p and c q differ there by a share of p at most
    mpfr_set_zero(l->t[0].lo, 1);
    mpfr_set(l->t[0].hi, l->cut.width, MPFR_RNDU);
    iv_mul(&l->t[1], &l->t[1], &l->t[0]);
    iv_add(out, out, &l->t[1]);
    return true;
}

// Sum over a set of (p - c q)^+ (of_p), or of (c q - p)^+.
static bool excess(struct law *l, int which, const struct iv *c, bool of_p, struct iv *out)
{
    const struct set *s = &l->set[which];
    if (l->level == 0 && mpfr_sgn(c->lo) > 0) return excess_fixed(l, s, c, of_p, out);
    iv_point(out, 0);
    if (mpfr_zero_p(c->hi)) { // (p - 0)^+
        if (of_p) ck_sum_order(l->p, s->from, s->to, out);
        iv_div(out, out, &l->p->total);
        return true;
    }
    if (l->level == 0) return false;
    for (size_t j = s->from; j < s->to; j++) {
        size_t id = l->p->row->order[j];
        ck_weight(l->p, id, &l->t[0]);
        iv_div(&l->t[0], &l->t[0], &l->p->total);
        ck_weight(l->q, id, &l->t[1]);
        iv_div(&l->t[1], &l->t[1], &l->q->total);
        iv_mul(&l->t[1], &l->t[1], c);
        iv_sub(&l->t[0], of_p ? &l->t[0] : &l->t[1], of_p ? &l->t[1] : &l->t[0]);
        iv_positive(&l->t[0]);
        iv_add(out, out, &l->t[0]);
    }
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

// Two uniform rows: how many tokens outside A, and in A, have p alone, q alone, both; and the law in rationals.
struct flat {
    size_t p[2], q[2], both[2];
    mpq_t per_p, per_q; // what a token has
    mpq_t c, z, y, r, sum, t[2];
};

// Sum over a set of (p - c q)^+, or of (c q - p)^+, is added to out.
static void flat_excess(struct flat *f, int which, mpq_srcptr c, bool of_p, mpq_t out)
{
    mpq_mul(f->t[0], c, f->per_q);
    mpq_set_ui(f->t[1], of_p ? f->p[which] : f->q[which], 1);
    mpq_mul(f->t[1], f->t[1], of_p ? f->per_p : f->t[0]);
    mpq_add(out, out, f->t[1]);
    mpq_sub(f->t[0], of_p ? f->per_p : f->t[0], of_p ? f->t[0] : f->per_p);
    if (mpq_sgn(f->t[0]) <= 0) return;
    mpq_set_ui(f->t[1], f->both[which], 1);
    mpq_mul(f->t[0], f->t[0], f->t[1]);
    mpq_add(out, out, f->t[0]);
}

// False when a rational grows too long to be one of few bits, as one must be that intervals cannot prove.
static bool flat_law(struct flat *f, size_t m, bool within)
{
    enum { LONGEST = 1 << 14 };
    mpq_set_ui(f->z, 1, 1);
    mpq_set_ui(f->r, 1, 1);
    if (within) mpq_set_ui(f->sum, 1, 1);
    for (size_t j = 0; j < m && !within && mpq_sgn(f->r) > 0; j++) {
        mpq_add(f->sum, f->sum, f->r);
        mpq_add(f->c, f->c, f->z);
        mpq_div(f->r, f->r, f->z);
        mpq_set_ui(f->z, 0, 1);
        for (int which = 0; which < 2; which++) flat_excess(f, which, f->c, true, f->z);
        mpq_neg(f->y, f->y); // the one before
        flat_excess(f, 0, f->c, false, f->y);
        mpq_mul(f->r, f->r, f->y);
        mpq_set_ui(f->y, 0, 1);
        flat_excess(f, 0, f->c, false, f->y);
        if (mpz_sizeinbase(mpq_denref(f->r), 2) > LONGEST || mpz_sizeinbase(mpq_denref(f->c), 2) > LONGEST)
            return false;
    }
    mpq_set_ui(f->t[0], 1, 1);
    mpq_sub(f->t[0], f->t[0], f->r);
    mpq_swap(f->t[0], f->r); // accept
    if (within) mpq_set_ui(f->r, 1, 1);
    mpq_set_ui(f->y, 0, 1);
    flat_excess(f, 1, f->sum, false, f->y); // e
    return true;
}

// Exact where both rows are uniform (theory.md §8).
static bool find_flat(struct ck_math *m, const struct ck_ask *ask, bool within, struct iv *accept, struct iv *e)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    struct flat f = {0};
    if (!ck_uniform(p) || !ck_uniform(q)) return false;
    for (size_t j = 0; j < m->vocab; j++) {
        bool in_p = j < p->finite, in_q = q->class_of[p->order[j]] < q->classes;
        (in_p && in_q ? f.both : in_p ? f.p : f.q)[j < ask->k] += in_p || in_q;
    }
    mpq_inits(f.per_p, f.per_q, f.c, f.z, f.y, f.r, f.sum, f.t[0], f.t[1], NULL);
    mpq_set_ui(f.per_p, 1, p->finite);
    mpq_set_ui(f.per_q, 1, q->finite);
    bool known = flat_law(&f, ask->m, within);
    if (known) {
        iv_set_q(accept, f.r);
        iv_set_q(e, f.y);
    }
    mpq_clears(f.per_p, f.per_q, f.c, f.z, f.y, f.r, f.sum, f.t[0], f.t[1], NULL);
    return known;
}

// accept and e of m independent proposals.
static bool find_iid(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *accept, struct iv *e)
{
    bool within, never, ok = true;
    iv_point(e, 0);
    iv_point(accept, 1);
    if (ck_same_law(m)) return true;
    supports(m, ask->k, &within, &never);
    iv_point(accept, within);
    if (!never && find_flat(m, ask, within, accept, e)) return true;
    if (never || (!within && level > 0 && ask->m > ((size_t)1 << 28) / m->vocab)) return never;
    struct law l;
    struct iv v[7]; // c, Z, Y, next Z and Y, R, sigma
    law_open(&l, m, level, ask->k);
    iv_inits(v, 7, ck_precision(level));
    iv_point(&v[1], 1);
    iv_point(&v[5], 1);
    iv_point(&v[6], within);
    for (size_t j = 0; ok && !within && j < ask->m; j++) {
        iv_add(&v[6], &v[6], &v[5]);
        iv_add(&v[0], &v[0], &v[1]);
        ok = excess(&l, 0, &v[0], true, &v[3]) && excess(&l, 1, &v[0], true, &v[4]);
        iv_add(&v[3], &v[3], &v[4]);
        ok = ok && excess(&l, 0, &v[0], false, &v[4]);
        iv_sub(&v[2], &v[4], &v[2]);
        iv_div(&v[2], &v[2], &v[1]);
        iv_positive(&v[2]);
        iv_mul(&v[5], &v[5], &v[2]);
        iv_set(&v[1], &v[3]);
        iv_set(&v[2], &v[4]);
        if (!(mpfr_sgn(v[1].lo) > 0)) { // Z is positive, but nothing is divided by it: R only falls from here on
            mpfr_set_zero(v[5].lo, 1);
            iv_scale(&v[2], &v[5], ask->m - j - 1);
            iv_add(&v[6], &v[6], &v[2]);
            break;
        }
    }
    if (!within) {
        iv_point(accept, 1);
        iv_sub(accept, accept, &v[5]);
    }
    iv_positive(accept);
    iv_at_most_one(accept);
    ok = ok && excess(&l, 1, &v[6], false, e);
    iv_at_most_one(e);
    iv_clears(v, 7);
    law_close(&l);
    return ok;
}

// Both at once, remembered: they are asked for one after the other, by claims that often agree in k.
static bool iid(struct ck_math *m, int level, const struct ck_ask *ask, int which, struct iv *out)
{
    struct ck_law *l = &m->law;
    if (!l->ready || l->level != level || l->k != ask->k || l->m != ask->m) {
        if (l->made) iv_clears(l->v, 2);
        iv_inits(l->v, 2, ck_precision(level));
        l->known = find_iid(m, level, ask, &l->v[0], &l->v[1]);
        l->ready = l->made = true;
        l->level = level;
        l->k = ask->k;
        l->m = ask->m;
    }
    iv_set(out, &l->v[which]);
    return l->known;
}

bool ck_iid_accept(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    return iid(m, level, ask, 0, out);
}

bool ck_iid_e(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    return iid(m, level, ask, 1, out);
}

// Children up to and with the first in A, all if none is; true when one is.
static bool until_taken(const struct ck_math *m, const struct ck_ask *ask, size_t *count)
{
    size_t most = ask->children || ask->m < m->vocab ? ask->m : m->vocab;
    for (*count = 0; *count < most;) {
        size_t token = ask->children ? ask->children[*count] : m->row[1].order[*count];
        ++*count;
        if (m->row[0].rank[token] < ask->k) return true;
    }
    return false;
}

// p of the first children, or of all other tokens.
static void mass(struct ck_math *m, int level, const struct ck_ask *ask, size_t count, bool others, struct iv *out)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    const struct ck_row *r = d->row;
    uint32_t *n = calloc(r->classes + 1, sizeof *n);
    struct iv t;
    bool all = true;
    if (!n) abort(); // as MPFR does without memory
    iv_inits(&t, 1, ck_precision(level));
    for (size_t i = 0; i < count; i++) n[r->class_of[ask->children ? ask->children[i] : m->row[1].order[i]]]++;
    iv_point(out, 0);
    for (size_t c = 0; c < r->classes; c++) {
        size_t size = r->first[c + 1] - r->first[c], own = others ? size - n[c] : n[c];
        all = all && own == size;
        if (own == 0) continue;
        ck_class_weight(d, c, &t);
        iv_scale(&t, &t, own);
        iv_add(out, out, &t);
    }
    iv_div(out, out, &d->total);
    iv_at_most_one(out);
    if (all) iv_point(out, 1);
    iv_clears(&t, 1);
    free(n);
}

bool ck_topk_accept(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    size_t count;
    iv_point(out, 1);
    if (!until_taken(m, ask, &count)) mass(m, level, ask, count, false, out);
    return true;
}

bool ck_topk_e(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    size_t count;
    iv_point(out, 0);
    if (until_taken(m, ask, &count)) mass(m, level, ask, count, true, out);
    return true;
}
