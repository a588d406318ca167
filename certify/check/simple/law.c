// The law of an emitted token when each of m proposals is accepted surely in A, and elsewhere as standard speculative
// sampling accepts it (theory.md §5 "Several proposals"; docs/log.md "laws").
#include "parts.h"

enum { TAKEN, LOST, LEFT, SUMS };

// After some rejections of iid draws from q the target is (p - c q)^+ / z, with c = 0, z = 1 at first; then c grows by
// z, and z is what is left of (p - c q)^+.
TERM(attempt_term) { // part: which of the sums
    real p = &a->p->p[i], q = &a->q->p[i], target = r_div(r_positive(r_sub(p, r_mul(a->x, q))), a->z);
    if (a->part == LEFT) return r_positive(r_sub(p, r_mul(r_add(a->x, a->z), q)));
    if (a->part == LOST) return j < a->k ? r_number(0) : r_positive(r_sub(q, target));
    return j < a->k ? q : r_min(q, target);
}

TERM(surplus) { return r_positive(r_sub(r_mul(a->x, &a->q->p[i]), &a->p->p[i])); }

real q_law_iid(const struct ask *ask) { // flag: e, else accept
    struct ask a = *ask;
    real accept = r_number(0), looked = accept, reach = r_number(1), sum[SUMS];
    a.x = r_number(0);
    a.z = reach;
    if (sc_same_law(a.p, a.q)) return r_number(!a.flag);
    for (size_t j = 0; j < a.m && !r_is(reach, 0); j++) {
        for (a.part = 0; a.part < SUMS; a.part++) sum[a.part] = sc_sum(attempt_term, &a, 0, a.p->count);
        looked = r_add(looked, reach); // the expected number of proposals looked at
        accept = r_add(accept, r_mul(reach, sum[TAKEN]));
        reach = r_mul(reach, sum[LOST]);
        a.x = r_add(a.x, a.z);
        a.z = sum[LEFT];
    }
    a.x = looked;
    if (a.flag) return r_min(sc_sum(surplus, &a, 0, a.k), r_number(1));
    return r_is(reach, 0) ? r_number(1) : r_min(accept, r_number(1));
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
