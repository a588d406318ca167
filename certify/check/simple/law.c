// The law of an emitted token when each of m proposals is accepted surely in A, and elsewhere as standard speculative
// sampling accepts it (theory.md §5; docs/log.md "laws").
#include "parts.h"

// iid draws from q. After j - 1 rejections the target is p^j = (p - c q)^+ / z, with c = 0, z = 1 at first; then c
// grows by z, and z is what is left of (p - c q)^+.
struct iid { real *c, *z, *reach; size_t j; }; // [m + 2] of attempts 1, 2, ...; reach: its probability
enum { TAKEN, LOST, EXTRA, LEFT, SUMS };

static real residual(const struct ask *a, const struct iid *l, size_t j, size_t i) {
    return r_div(r_positive(r_sub(&a->p->p[i], r_mul(l->c[j], &a->q->p[i]))), l->z[j]);
}

TERM(attempt_term) { // part: which of the sums
    real q = &a->q->p[i], target = residual(a, a->iid, a->iid->j, i), over = r_positive(r_sub(q, target));
    real c = r_add(a->iid->c[a->iid->j], a->iid->z[a->iid->j]);
    bool in = j < a->k;
    if (a->part == TAKEN) return in ? q : r_min(q, target);
    if (a->part == LEFT) return r_positive(r_sub(&a->p->p[i], r_mul(c, q)));
    return in == (a->part == EXTRA) ? over : r_number(0);
}

TERM(surplus) { // (output - p)^+
    const struct iid *l = a->iid;
    real output = r_number(0);
    for (size_t n = 1; n <= l->j; n++) {
        real target = residual(a, l, n, i), q = &a->q->p[i], taken = j < a->k ? q : r_min(q, target);
        output = r_add(output, r_mul(l->reach[n], n == a->m + 1 ? target : taken));
    }
    return r_positive(r_sub(output, &a->p->p[i]));
}

real q_law_iid(const struct ask *ask) { // flag: e, else accept
    size_t room = (ask->m + 2) * sizeof(real);
    struct iid l = {.c = sc_alloc(room), .z = sc_alloc(room), .reach = sc_alloc(room)};
    struct ask a = *ask;
    a.iid = &l;
    if (sc_same_law(a.p, a.q)) return r_number(!a.flag);
    real accept = r_number(0), extra = r_number(0), sum[SUMS];
    l.c[1] = r_number(0);
    l.z[1] = l.reach[1] = r_number(1);
    for (l.j = 1; l.j <= a.m && !r_is(l.reach[l.j], 0); l.j++) {
        for (a.part = 0; a.part < SUMS; a.part++) sum[a.part] = sc_sum(attempt_term, &a, 0, run->vocab);
        accept = r_add(accept, r_mul(l.reach[l.j], sum[TAKEN]));
        extra = r_add(extra, r_mul(l.reach[l.j], sum[EXTRA]));
        l.reach[l.j + 1] = r_mul(l.reach[l.j], sum[LOST]);
        l.c[l.j + 1] = r_add(l.c[l.j], l.z[l.j]);
        l.z[l.j + 1] = sum[LEFT];
    }
    bool over = r_is(l.reach[l.j], 0); // one of the proposals so far is accepted surely
    if (!a.flag) return over ? r_number(1) : r_min(accept, r_number(1));
    l.j -= over;
    return r_is(extra, 0) ? extra : r_min(sc_sum(surplus, &a, 0, run->vocab), r_number(1));
}

// Point masses, one after the other: as far as the first in A each has its probability, and that one all the rest.
TERM(tried) { return a->tried[i] ? &a->p->p[i] : r_number(0); }
TERM(untried) { return a->tried[i] ? r_number(0) : &a->p->p[i]; }

real q_law_topk(const struct ask *ask) { // flag: e, else accept
    struct ask a = *ask;
    bool sure = false;
    a.tried = memset(sc_alloc(run->vocab), 0, run->vocab);
    for (size_t n = 0; n < a.proposals && !sure; n++) {
        a.tried[a.proposed[n]] = 1;
        sure = a.p->rank[a.proposed[n]] < a.k;
    }
    real rest = sc_sum(untried, &a, 0, run->vocab);
    if (a.flag) return sure ? rest : r_number(0);
    return sure || r_is(rest, 0) ? r_number(1) : sc_sum(tried, &a, 0, run->vocab);
}
