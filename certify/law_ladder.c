// The law of iid proposals by MPFR: see law.h; the identities used here are proved in theory.md §5, "Several proposals".
//
// With N(c, B) = sum over B of (c q - p)^+, the ladder c_0 = 0, c_j = 1 + N(c_(j-1), all), Z_j = 1 - c_j + N(c_j, all)
// gives the probability that the first j proposals are all rejected,
//
//     P_j = P_(j-1) (N(c_j, not A) - N(c_(j-1), not A)) / Z_(j-1),
//
// and with H = P_0 + ... + P_(m-1), the expected number of proposals looked at, e = sum over A of (H q - p)^+.
// c only rises, so in the order of p/q tokens fall behind it from one end: a rung costs no pass over the row.
#include "certify/law_filter.h"

#include "base/memory.h"
#include "certify/row_pair.h"

#include <math.h>
#include <stdlib.h>

// A token that q can propose; q_i/p_i grows with `rise`.
struct proposal {
    struct hm_exact rise;
    int32_t token;
    bool rejected; // not in A
};

enum { ALL, REJECTED };
// The ladder at one precision.
struct ladder {
    struct hm_row *p, *q;
    const struct proposal *order; // [count], ascending
    size_t count, end;            // p < c q surely from `end` on
    struct hm_mpi over_p, over_q; // 1/W of both rows
    struct hm_mpi sum_p[2], sum_q[2], shortfall[2]; // of the tokens from `end` on; N(c, .)
    struct hm_mpi c, rest, missed, looked;          // c_j, Z_j, P_j, H
    struct hm_mpi share_p, share_q, term;           // room
    int32_t token;                                  // whose emission is wanted; -1: nobody's
    bool kept;                                      // it is in A
    struct hm_mpi emitted;
};

enum { PARTS = 16 };

static void list_parts(struct ladder *l, struct hm_mpi *all[PARTS])
{
    struct hm_mpi *parts[PARTS] = {&l->over_p, &l->over_q, &l->sum_p[0], &l->sum_p[1], &l->sum_q[0], &l->sum_q[1],
                                   &l->shortfall[0], &l->shortfall[1], &l->c, &l->rest, &l->missed, &l->looked,
                                   &l->share_p, &l->share_q, &l->term, &l->emitted};
    for (size_t i = 0; i < PARTS; i++) all[i] = parts[i];
}

static void ladder_init(struct ladder *l, struct hm_row *p, struct hm_row *q, const struct proposal *order, size_t count)
{
    struct hm_mpi *all[PARTS];
    *l = (struct ladder){.p = p, .q = q, .order = order, .count = count, .end = count, .token = -1};
    list_parts(l, all);
    for (size_t i = 0; i < PARTS; i++) hm_mpi_init(all[i], p->weights->precision);
    hm_mpi_set_ui(&l->term, 1);
    hm_mpi_div(&l->over_p, &l->term, &p->total);
    hm_mpi_div(&l->over_q, &l->term, &q->total);
    hm_mpi_set_ui(&l->rest, 1);
    hm_mpi_set_ui(&l->missed, 1);
}

static void ladder_clear(struct ladder *l)
{
    struct hm_mpi *all[PARTS];
    list_parts(l, all);
    for (size_t i = 0; i < PARTS; i++) hm_mpi_clear(all[i]);
}

// p_i in share_p, q_i in share_q, factor q_i - p_i in term (all factors are >= 0).
static void weigh(struct ladder *l, size_t token, const struct hm_mpi *factor)
{
    hm_row_share(l->p, &l->over_p, token, &l->share_p);
    hm_row_share(l->q, &l->over_q, token, &l->share_q);
    mpfr_mul(l->term.lo, factor->lo, l->share_q.lo, MPFR_RNDD);
    mpfr_mul(l->term.hi, factor->hi, l->share_q.hi, MPFR_RNDU);
    hm_mpi_sub(&l->term, &l->term, &l->share_p);
}

// N(c, B) for both B: tokens surely behind c are summed once and for all, the few at c one by one.
static void fall_behind(struct ladder *l)
{
    for (; l->end > 0; l->end--) {
        const struct proposal *last = &l->order[l->end - 1];
        weigh(l, (size_t)last->token, &l->c);
        if (mpfr_sgn(l->term.lo) < 0) break;
        for (int set = ALL; set <= (int)last->rejected; set++) {
            hm_mpi_add(&l->sum_p[set], &l->sum_p[set], &l->share_p);
            hm_mpi_add(&l->sum_q[set], &l->sum_q[set], &l->share_q);
        }
    }
    for (int set = ALL; set <= REJECTED; set++) {
        hm_mpi_mul(&l->shortfall[set], &l->c, &l->sum_q[set]);
        hm_mpi_sub(&l->shortfall[set], &l->shortfall[set], &l->sum_p[set]);
        hm_mpi_clip_low(&l->shortfall[set], 0);
    }
    for (size_t at = l->end; at > 0; at--) {
        weigh(l, (size_t)l->order[at - 1].token, &l->c);
        if (mpfr_sgn(l->term.hi) <= 0) break;
        hm_mpi_clip_low(&l->term, 0);
        for (int set = ALL; set <= (int)l->order[at - 1].rejected; set++)
            hm_mpi_add(&l->shortfall[set], &l->shortfall[set], &l->term);
    }
}

// p^(j+1) of the token, (p - c q)^+/Z, in term; q of it in share_q.
static void weigh_left(struct ladder *l)
{
    weigh(l, (size_t)l->token, &l->c);
    hm_mpi_neg(&l->term, &l->term);
    hm_mpi_clip_low(&l->term, 0);
    hm_mpi_div(&l->term, &l->term, &l->rest);
    hm_mpi_clip_low(&l->term, 0);
    hm_mpi_clip_high(&l->term, 1);
}

// emitted += P_j times `chance`.
static void emit(struct ladder *l, struct hm_mpi *chance)
{
    hm_mpi_mul(chance, &l->missed, chance);
    hm_mpi_add(&l->emitted, &l->emitted, chance);
}

// What proposal j + 1 emits: P_j q_x in A, else P_j min(q_x, p^(j+1)_x).
static void emit_proposal(struct ladder *l)
{
    weigh_left(l);
    if (l->kept || mpfr_less_p(l->share_q.lo, l->term.lo)) mpfr_set(l->term.lo, l->share_q.lo, MPFR_RNDD);
    if (l->kept || mpfr_less_p(l->share_q.hi, l->term.hi)) mpfr_set(l->term.hi, l->share_q.hi, MPFR_RNDU);
    emit(l, &l->term);
}

// From rung j - 1 to rung j.
static void climb(struct ladder *l)
{
    if (l->token >= 0) emit_proposal(l);
    struct hm_mpi before;
    hm_mpi_init(&before, mpfr_get_prec(l->c.lo));
    hm_mpi_set(&before, &l->shortfall[REJECTED]);
    hm_mpi_add(&l->looked, &l->looked, &l->missed);
    hm_mpi_set_ui(&l->term, 1);
    hm_mpi_add(&l->c, &l->term, &l->shortfall[ALL]);
    fall_behind(l);
    hm_mpi_sub(&before, &l->shortfall[REJECTED], &before);
    hm_mpi_div(&before, &before, &l->rest);
    hm_mpi_clip_low(&before, 0); // a probability
    hm_mpi_clip_high(&before, 1);
    hm_mpi_mul(&l->missed, &l->missed, &before);
    hm_mpi_set_ui(&l->term, 1);
    hm_mpi_sub(&l->rest, &l->term, &l->c);
    hm_mpi_add(&l->rest, &l->rest, &l->shortfall[ALL]);
    hm_mpi_clip_low(&l->rest, 0);
    if (mpfr_greater_p(l->missed.hi, l->rest.hi)) mpfr_set(l->missed.hi, l->rest.hi, MPFR_RNDU); // P_j <= Z_j
    hm_mpi_clear(&before);
}

// The ladder to m, or to where what is left of it is below its own rounding.
static void climb_to(struct ladder *l, size_t m)
{
    mpfr_t left;
    mpfr_init2(left, 64);
    for (size_t j = 0; j < m; j++) {
        mpfr_mul_ui(left, l->missed.hi, m - j, MPFR_RNDU);
        if (mpfr_cmp_ui_2exp(left, 1, -mpfr_get_prec(l->c.lo)) < 0) {
            mpfr_set_zero(l->missed.lo, 1);
            mpfr_add(l->looked.hi, l->looked.hi, left, MPFR_RNDU);
            mpfr_add(l->emitted.hi, l->emitted.hi, left, MPFR_RNDU);
            break;
        }
        climb(l);
    }
    mpfr_clear(left);
    if (l->token < 0) return;
    weigh_left(l); // cut short: P_m p^(m+1)_x is at most P_j
    if (mpfr_zero_p(l->missed.lo)) {
        mpfr_set_zero(l->term.lo, 1);
        mpfr_set_ui(l->term.hi, 1, MPFR_RNDU);
    }
    emit(l, &l->term);
}

static void excess(struct ladder *l, struct hm_mpi *e)
{
    hm_mpi_set_ui(e, 0);
    for (size_t i = 0; i < l->count; i++) {
        if (l->order[i].rejected) continue;
        weigh(l, (size_t)l->order[i].token, &l->looked);
        hm_mpi_clip_low(&l->term, 0);
        hm_mpi_add(e, e, &l->term);
    }
    hm_mpi_clip_high(e, 1);
}

static int by_rise(const void *a, const void *b)
{
    const struct proposal *x = a, *y = b;
    return hm_exact_compare(x->rise, y->rise);
}

static struct proposal *list_proposals(struct hm_row *p, struct hm_row *q, size_t k)
{
    struct proposal *order = hm_calloc(q->support, sizeof *order);
    uint64_t last = k ? hm_row_key(p, (size_t)hm_row_token(p, k - 1)) : 0;
    size_t n = 0;
    for (size_t i = 0; order && i < q->vocab; i++) {
        if (q->logits[i] == -INFINITY) continue;
        struct hm_exact rise = {INFINITY, 0}; // p_i = 0
        if (p->logits[i] != -INFINITY) rise = hm_exact_difference(q->logits[i], p->logits[i]);
        order[n++] = (struct proposal){rise, (int32_t)i, k == 0 || hm_row_key(p, i) > last};
    }
    if (order) qsort(order, n, sizeof *order, by_rise);
    return order;
}

// A ladder climbed to m at one precision.
static hm_status ladder_make(struct ladder *l, struct hm_row *p, struct hm_row *q, const struct proposal *order, size_t m,
                             mpfr_prec_t precision, int32_t token, struct hm_error *err)
{
    hm_status status = hm_row_pair_sums(p, q, precision, err);
    if (status) return status;
    ladder_init(l, p, q, order, q->support);
    l->token = token;
    for (size_t i = 0; i < l->count && token >= 0; i++)
        if (order[i].token == token) l->kept = !order[i].rejected;
    climb_to(l, m);
    return HM_OK;
}

static bool law_of(struct ladder *l, void *law)
{
    struct hm_law *out = law;
    struct hm_mpi e, accept;
    hm_mpi_init(&e, mpfr_get_prec(l->c.lo));
    hm_mpi_init(&accept, mpfr_get_prec(l->c.lo));
    excess(l, &e);
    hm_mpi_set_ui(&accept, 1);
    hm_mpi_sub(&accept, &accept, &l->missed);
    *out = (struct hm_law){hm_mpi_ival(&accept), hm_mpi_ival(&e)};
    bool narrow = hm_mpi_narrow(&accept) && hm_mpi_narrow(&e);
    hm_mpi_clear(&e);
    hm_mpi_clear(&accept);
    return narrow;
}

// What is asked of a ladder; false while it is too wide.
typedef bool ask(struct ladder *l, void *out);

// Raises the precision until `question` is answered narrowly, or to the last. token: that a ratio is about, or -1.
static hm_status answer(struct hm_row *p, struct hm_row *q, size_t m, size_t k, int32_t token, ask *question, void *out,
                       struct hm_error *err)
{
    struct proposal *order = list_proposals(p, q, k);
    if (!order) return hm_fail(err, HM_MEMORY, "proposals from %zu logits: out of memory", q->vocab);
    hm_status status = HM_OK;
    bool done = false;
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && !done && !status; precision *= 2) {
        struct ladder l;
        status = ladder_make(&l, p, q, order, m, precision, token, err);
        if (status) break;
        done = question(&l, out);
        ladder_clear(&l);
    }
    free(order);
    return status;
}

hm_status hm_exact_law(struct hm_row *p, struct hm_row *q, size_t m, size_t k, struct hm_law *out, struct hm_error *err)
{
    return answer(p, q, m, k, -1, law_of, out, err);
}

static bool ratio_of(struct ladder *l, void *out)
{
    hm_row_share(l->p, &l->over_p, (size_t)l->token, &l->share_p);
    hm_mpi_div(&l->share_p, &l->share_p, &l->emitted);
    *(struct hm_ival *)out = hm_mpi_ival(&l->share_p);
    return hm_mpi_narrow(&l->share_p);
}

hm_status hm_exact_iid_ratio(struct hm_row *p, struct hm_row *q, size_t m, size_t k, int32_t token, struct hm_ival *out,
                             struct hm_error *err)
{
    hm_status status = answer(p, q, m, k, token, ratio_of, out, err);
    if (!status && !(out->hi < INFINITY))
        status = hm_fail(err, HM_RANGE, "ratio: expected a token that can be emitted, found %ld of probability 0", (long)token);
    return status;
}
