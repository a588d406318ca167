// The law of the token when a proposal in A is accepted surely and another one as standard speculative sampling would:
// theory.md §5; see math.h.
//
// iid: m draws from q, one after the other (ladder.c). Outside A the law never exceeds p, as its terms telescope below
// p. In A it is H q + P_m (p - c_m q)^+ / Z_m with H = sum_(j<m) P_j <= c_m, which exceeds p where H q does and only
// there. Hence TV(law, p) = sum over A of (H q - p)^+.
//
// topk: a point mass at each child in turn. The residual is p without the children already refused, so that they all go
// as sampling from p would until the first child in A, which takes whatever is left.
#include "certify/check/math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool ck_iid_accept(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    bool standard = ask->k == 0; // P = Z, of any ladder
    const struct ck_ladder *l = standard ? ck_any_ladder(m, level, ask->m) : ck_ladder(m, level, ask->k, ask->m);
    if (!l) return false;
    iv_point(out, 1);
    iv_sub(out, out, standard ? &l->rung[ask->m].z : &l->rung[ask->m].left);
    iv_positive(out);
    iv_at_most_one(out);
    return true;
}

bool ck_iid_e(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    const struct ck_ladder *l = ck_ladder(m, level, ask->k, ask->m);
    if (!l) return false;
    iv_point(out, 0);
    if (ck_same_law(m)) return true;
    if (l->exact)
        iv_set(out, &l->e);
    else if (!ck_excess(m, level, true, ask->k, &l->rung[ask->m].looked, false, out))
        return false;
    iv_at_most_one(out);
    return true;
}

// What the residual after m rejections gives a token, P_m (p - c_m q)^+ / Z_m.
static void leftover(const struct ck_rung *r, const struct iv *p, const struct iv *q, struct iv *out)
{
    iv_mul(out, q, &r->c);
    iv_sub(out, p, out);
    iv_positive(out);
    if (mpfr_sgn(r->z.lo) > 0) {
        iv_mul(out, out, &r->left);
        iv_div(out, out, &r->z);
    } else { // P <= Z
        mpfr_set_zero(out->lo, 1);
    }
}

// The probability of a token under the law.
static void law_of(const struct ck_ladder *l, const struct iv *p, const struct iv *q, bool inside, struct iv *out)
{
    const struct ck_rung *last = &l->rung[l->m];
    struct iv t;
    iv_inits(&t, 1, mpfr_get_prec(out->lo));
    leftover(last, p, q, out);
    if (inside) {
        iv_mul(&t, q, &last->looked);
        iv_add(out, out, &t);
    }
    for (const struct ck_rung *r = l->rung; !inside && r < last; r++) { // each proposal: min(q, p^j)
        iv_mul(&t, q, &r->c);
        iv_sub(&t, p, &t);
        iv_positive(&t);
        if (mpfr_sgn(r->z.lo) > 0)
            iv_div(&t, &t, &r->z);
        else if (!mpfr_zero_p(t.hi))
            mpfr_set_inf(t.hi, 1);
        iv_min(&t, q);
        iv_mul(&t, &t, &r->left);
        iv_add(out, out, &t);
    }
    iv_clears(&t, 1);
}

bool ck_iid_ratio(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    if (!ck_iid_e(m, level, ask, out)) return false;
    bool same = mpfr_zero_p(out->hi) != 0; // TV 0: the law is p
    iv_point(out, 1);
    if (same) return true;
    const struct ck_ladder *l = ck_ladder(m, level, ask->k, ask->m);
    const struct ck_dist *p = ck_dist(m, CK_TARGET, level), *q = ck_dist(m, CK_DRAFT, level);
    struct iv t[3];
    iv_inits(t, 3, ck_precision(level));
    ck_weight(p, ask->token, &t[0]);
    iv_div(&t[0], &t[0], &p->total);
    ck_weight(q, ask->token, &t[1]);
    iv_div(&t[1], &t[1], &q->total);
    law_of(l, &t[0], &t[1], p->row->rank[ask->token] < ask->k, &t[2]);
    bool ok = mpfr_sgn(t[2].lo) > 0;
    if (ok) iv_div(out, &t[0], &t[2]);
    iv_clears(t, 3);
    return ok;
}

// The children, or the first of q, that differ from those before them, up to and with the first in A, all if none is;
// *taken when one is. A child that was refused has nothing left to be accepted by.
static uint32_t *until_taken(const struct ck_math *m, const struct ck_ask *ask, size_t *count, bool *taken)
{
    size_t most = ask->children || ask->m < m->vocab ? ask->m : m->vocab;
    uint32_t *list = calloc(most + 1, sizeof *list);
    unsigned char *seen = calloc(m->vocab / 8 + 1, 1);
    if (!list || !seen) abort(); // as MPFR does without memory
    *count = 0;
    *taken = false;
    for (size_t i = 0; i < most && !*taken; i++) {
        uint32_t token = ask->children ? ask->children[i] : m->row[1].order[i];
        if (seen[token / 8] >> token % 8 & 1) continue;
        seen[token / 8] |= (unsigned char)(1 << token % 8);
        list[(*count)++] = token;
        *taken = m->row[0].rank[token] < ask->k;
    }
    free(seen);
    return list;
}

// p of these tokens, or of all others.
static void mass(struct ck_math *m, int level, const uint32_t *token, size_t count, bool others, struct iv *out)
{
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    size_t finite = 0, all = d->row->finite;
    for (size_t i = 0; i < count; i++) finite += d->row->rank[token[i]] < all;
    iv_point(out, others ? finite == 0 : finite == all);
    if (finite == 0 || finite == all) return;
    struct iv t;
    iv_inits(&t, 1, ck_precision(level));
    if (others) {
        ck_sum_ids(d, m->vocab, &(struct ck_part){m->vocab, token, count}, out);
    } else {
        for (size_t i = 0; i < count; i++) {
            ck_weight(d, token[i], &t);
            iv_add(out, out, &t);
        }
    }
    iv_div(out, out, &d->total);
    iv_at_most_one(out);
    iv_clears(&t, 1);
}

bool ck_topk_accept(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    size_t count;
    bool taken;
    uint32_t *list = until_taken(m, ask, &count, &taken);
    iv_point(out, 1);
    if (!taken) mass(m, level, list, count, false, out);
    free(list);
    return true;
}

bool ck_topk_e(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    size_t count;
    bool taken;
    uint32_t *list = until_taken(m, ask, &count, &taken);
    iv_point(out, 0);
    if (taken) mass(m, level, list, count, true, out);
    free(list);
    return true;
}

// The first child in A takes what those before it leave; they, and every token where e is 0, have p.
bool ck_topk_ratio(struct ck_math *m, int level, const struct ck_ask *ask, struct iv *out)
{
    size_t count;
    bool taken, ok = true;
    uint32_t *list = until_taken(m, ask, &count, &taken);
    struct iv t[2];
    iv_inits(t, 2, ck_precision(level));
    iv_point(out, 1);
    if (taken) mass(m, level, list, count, true, &t[0]);
    if (taken && !mpfr_zero_p(t[0].hi)) {
        bool listed = false;
        for (size_t i = 0; i < count; i++) listed = listed || list[i] == ask->token;
        ok = listed; // no other token can be emitted
        mass(m, level, list, count - 1, true, &t[0]);
        mass(m, level, &list[count - 1], 1, false, &t[1]);
        ok = ok && mpfr_sgn(t[0].lo) > 0;
        if (ok && ask->token == list[count - 1]) iv_div(out, &t[1], &t[0]);
    }
    iv_clears(t, 2);
    free(list);
    return ok;
}
