// The law of an emitted token when each of m proposals is accepted surely in A, and elsewhere as standard speculative
// sampling accepts it (theory.md §5 "Several proposals"). After some rejections of iid draws from q the target is (p -
// c q)^+ / z, with c = 0, z = 1 at first; then c grows by z, and z is what is left of (p - c q)^+.
#include "theory.h"

enum { TAKEN, LOST, LEFT, SUMS };

TERM(attempt_term) { // part: which of the sums
    real p = &a->p->p[i], q = &a->q->p[i], target = r_div(r_positive(r_sub(p, r_mul(a->x, q))), a->z);
    if (a->part == LEFT) return r_positive(r_sub(p, r_mul(r_add(a->x, a->z), q)));
    if (a->part == LOST) return j < a->k ? r_number(0) : r_positive(r_sub(q, target));
    return j < a->k ? q : r_min(q, target);
}

TERM(surplus) { return r_positive(r_sub(r_mul(a->x, &a->q->p[i]), &a->p->p[i])); }

static real q_law_iid(const struct ask *ask) { // flag: e, else accept
    struct ask a = *ask;
    real accept = r_number(0), looked = accept, reach = one(), sum[SUMS]; // looked: expected number of proposals tried
    a.x = accept;
    a.z = reach;
    if (same(&a)) return r_number(!a.flag);
    for (size_t j = 0; j < a.m && !r_is(reach, 0); j++) {
        for (a.part = 0; a.part < SUMS; a.part++) sum[a.part] = sum_of(attempt_term, &a, 0, a.p->count);
        looked = r_add(looked, reach);
        accept = r_add(accept, r_mul(reach, sum[TAKEN]));
        reach = r_mul(reach, sum[LOST]);
        a.x = r_add(a.x, a.z);
        a.z = sum[LEFT];
    }
    if (a.flag) return r_min(sum_at(looked, surplus, &a, 0, a.k), one());
    return r_is(reach, 0) ? one() : r_min(accept, one());
}

// Point masses, one after the other: as far as the first in A each has its probability, and that one all the rest.
static real q_law_topk(const struct ask *a) { // flag: e, else accept
    bool sure = false, *tried = memset(allocate(run->vocab), 0, run->vocab);
    struct real *mass[2] = {r_zero(), r_zero()}; // of the others, of those tried
    for (size_t n = 0; n < a->proposals && !sure; n++) {
        tried[a->proposed[n]] = true;
        sure = a->p->rank[a->proposed[n]] < a->k;
    }
    for (size_t i = 0; i < run->vocab; i++) r_copy(mass[tried[i]], r_add(mass[tried[i]], &a->p->p[i]));
    if (a->flag) return sure ? mass[0] : r_number(0);
    return sure || r_is(mass[0], 0) ? one() : mass[1];
}
