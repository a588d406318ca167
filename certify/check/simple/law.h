// The law of an emitted token when m proposals are tried one after the other, each accepted surely in A (the first k of
// p's order; k = 0: nowhere) and elsewhere as standard speculative sampling accepts it (theory.md §5 "Several
// proposals"). Written down from the definition, token by token, not from the closed forms:
//
//     p^1 = p,  p^(j+1) = norm((p^j - Q_j)^+),  a_j(x) = 1 in A, else min(1, p^j_x / Q_j(x)),
//     o(x) = sum_j P_(j-1) Q_j(x) a_j(x) + P_m p^(m+1)_x,  P_j = P_(j-1) sum_x Q_j(x) (1 - a_j(x)),  e = 1/2 sum |o -
//     p|.
//
// Q_j, the law of proposal j, is q for `iid` and all on one token for `topk`: then (p^j - Q_j)^+ is p^j without that
// token.
#include "theory.h"

static bool is_of(const struct vector *v, const struct ask *a) { // does it answer this question?
    return v->line == run->line && v->precision == run->precision && v->m == a->m && v->iid == a->iid &&
           v->tree == a->tree;
}

static void begin(struct vector *v, const struct ask *a) {
    place_all(v->x, &v->limbs);
    v->line = run->line;
    v->precision = run->precision;
    v->k = a->k;
    v->m = a->m;
    v->iid = a->iid;
    v->tree = a->tree;
    v->step = 0;
    v->changed = false;
}

// p_x = q_x exactly if, and only if, the logits of the two rows are the same in order but for a constant, and these two
// differ by it: exponentials of different rationals are independent, so the sums of e^(l_x + d_i) and e^(d_x + l_i)
// agree only when their terms do.
static real place_distance(const struct ask *a, size_t i, size_t j) {
    if (isinf(a->p->logit[i]) && isinf(a->q->logit[j])) return NULL; // of no weight in either
    return r_sub(r_number(a->p->logit[i]), r_number(a->q->logit[j]));
}

static bool are_equal(const struct ask *a, size_t i, size_t j) { // is l_i - d_j that constant?
    mpfr_prec_t precision = run->precision;
    size_t used = run->used;
    run->precision = EXACT;
    real first = place_distance(a, a->p->order[0], a->q->order[0]), own = place_distance(a, i, j);
    bool equal = !own || r_same(own, first);
    run->used = used;
    run->precision = precision;
    return equal;
}

static bool permuted(const struct ask *a) {
    bool is = a->p->count == a->q->count;
    for (size_t j = 0; j < a->p->count && is; j++) is = are_equal(a, a->p->order[j], a->q->order[j]);
    return is;
}

static real proposal(const struct ask *a, size_t j, size_t i) { // Q_(j+1) of token i
    return a->iid ? &a->q->p[i] : r_number(a->proposed[j] == i);
}

static real left(const struct ask *a, size_t j, size_t i) { // p^(j+1) - Q_(j+1), once residual(a, j) was called
    const struct vector *r = &run->residual;
    if (a->iid && j == 0 && r->permuted && are_equal(a, i, i)) return r_number(0);
    return r_sub(&r->x[i], proposal(a, j, i));
}

// The numbers p^(j+1), after j rejections.
static const struct real *residual(const struct ask *a, size_t j) {
    struct vector *r = &run->residual;
    size_t vocab = run->vocab, used = run->used;
    if (!is_of(r, a) || r->step > j) {
        begin(r, a);
        r->permuted = a->iid && permuted(a);
        for (size_t i = 0; i < vocab; i++) r_copy(&r->x[i], &a->p->p[i]);
    }
    for (; r->step < j; r->step++, run->used = used) {
        struct real *sum = r_zero();
        size_t inner = run->used, some = 0; // tokens that may have a share
        for (size_t i = 0; i < vocab; i++, run->used = inner) {
            r_copy(&r->x[i], r_positive(left(a, r->step, i)));
            r_copy(sum, r_add(sum, &r->x[i]));
            some += !r_is(&r->x[i], 0);
        }
        for (size_t i = 0; i < vocab; i++, run->used = inner)
            if (!r_is(&r->x[i], 0)) r_copy(&r->x[i], some == 1 ? one() : r_min(one(), r_div(&r->x[i], sum)));
    }
    return r->x;
}

// The law o. Its last number is the probability that a proposal is accepted. `changed` stays false when no proposal in
// A is more likely than standard sampling accepts: then o is p.
static const struct vector *output(const struct ask *a) {
    struct vector *o = &run->output;
    size_t vocab = run->vocab, used = run->used, m = a->iid ? a->m : a->proposals;
    if (is_of(o, a) && o->k == a->k) return o;
    begin(o, a);
    struct real *accept = &o->x[vocab], *reach = r_zero(), *taken = r_zero(), *lost = r_zero();
    r_copy(reach, one());
    size_t inner = run->used;
    for (size_t j = 0; j < m && !r_is(reach, 0); j++, run->used = inner) {
        const struct real *p = residual(a, j);
        r_copy(taken, r_number(0));
        r_copy(lost, r_number(0));
        for (size_t i = 0; i < vocab; i++, run->used = inner) {
            bool surely = a->p->rank[i] < a->k;
            real q = proposal(a, j, i), more = left(a, j, i), given = surely ? q : r_min(q, &p[i]);
            if (surely && mpfr_sgn(more->lo) < 0) o->changed = true;
            if (!surely) r_copy(lost, r_add(lost, r_positive(r_negative(more))));
            r_copy(taken, r_add(taken, given));
            r_copy(&o->x[i], r_add(&o->x[i], r_mul(reach, given)));
        }
        r_copy(accept, r_add(accept, r_mul(reach, taken)));
        r_copy(reach, r_mul(reach, lost));
    }
    if (r_is(reach, 0)) r_copy(accept, one());
    else residual(a, m);
    for (size_t i = 0; i < vocab && !r_is(reach, 0); i++, run->used = inner)
        r_copy(&o->x[i], r_add(&o->x[i], r_mul(reach, &run->residual.x[i])));
    run->used = used;
    return o;
}

static real q_accept(const struct ask *a) { return r_min(one(), &output(a)->x[run->vocab]); }

TERM(apart) {
    real d = r_sub(&run->output.x[i], &a->p->p[i]);
    return r_max(d, r_negative(d));
}

static real q_e(const struct ask *a) { // the total variation between o and p
    if (!output(a)->changed) return r_number(0);
    return r_min(one(), r_scaled(sum_of(apart, a, 0, a->p->count), -1));
}

static bool before_relaxed(const struct ask *a) { // is the token a point mass tried before the first in A?
    for (size_t j = 0; !a->iid && j < a->proposals && a->p->rank[a->proposed[j]] >= a->k; j++)
        if (a->proposed[j] == a->token) return true;
    return false;
}

static real q_ratio(const struct ask *a) { // p/o
    const struct vector *o = output(a);
    return !o->changed || before_relaxed(a) ? one() : r_div(&a->p->p[a->token], &o->x[a->token]);
}

TERM(gained) { return r_positive(r_negative(left(a, 0, i))); }
static real q_nucleus_excess(const struct ask *a) { // E_N
    residual(a, 0);
    return r_min(one(), sum_of(gained, a, 0, a->k));
}
