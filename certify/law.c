// The law of the emitted token: see law.h; the identities used here are proved in theory.md §5, "Several proposals".
//
// iid: with N(c, B) = sum over B of (c q - p)^+, the ladder c_0 = 0, c_j = 1 + N(c_(j-1), all), Z_j = 1 - c_j + N(c_j, all)
// gives the probability that the first j proposals are all rejected,
//
//     P_j = P_(j-1) (N(c_j, not A) - N(c_(j-1), not A)) / Z_(j-1),
//
// and with H = P_0 + ... + P_(m-1), the expected number of proposals looked at, e = sum over A of (H q - p)^+.
// c only rises, so in the order of p/q tokens fall behind it from one end: a rung costs no pass over the row.
#include "certify/law.h"

#include "base/memory.h"
#include "bounds/ival_math.h"
#include "certify/law_filter.h"
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
enum { LONGEST = 1000000 }; // docs/log.md, "Header"

// The ladder at one precision.
struct ladder {
    struct hm_row *p, *q;
    const struct proposal *order; // [count], ascending
    size_t count, end;            // p < c q surely from `end` on
    struct hm_mpi over_p, over_q; // 1/W of both rows
    struct hm_mpi sum_p[2], sum_q[2], shortfall[2]; // of the tokens from `end` on; N(c, .)
    struct hm_mpi c, rest, missed, looked;          // c_j, Z_j, P_j, H
    struct hm_mpi share_p, share_q, term;           // room
};

enum { PARTS = 15 };

static void list_parts(struct ladder *l, struct hm_mpi *all[PARTS])
{
    struct hm_mpi *parts[PARTS] = {&l->over_p, &l->over_q, &l->sum_p[0], &l->sum_p[1], &l->sum_q[0], &l->sum_q[1],
                                   &l->shortfall[0], &l->shortfall[1], &l->c, &l->rest, &l->missed, &l->looked,
                                   &l->share_p, &l->share_q, &l->term};
    for (size_t i = 0; i < PARTS; i++) all[i] = parts[i];
}

static void ladder_init(struct ladder *l, struct hm_row *p, struct hm_row *q, const struct proposal *order, size_t count)
{
    struct hm_mpi *all[PARTS];
    *l = (struct ladder){.p = p, .q = q, .order = order, .count = count, .end = count};
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

// From rung j - 1 to rung j.
static void climb(struct ladder *l)
{
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
            break;
        }
        climb(l);
    }
    mpfr_clear(left);
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

static hm_status law_iid(struct hm_row *p, struct hm_row *q, size_t m, size_t k, struct hm_law *out, struct hm_error *err)
{
    struct proposal *order = list_proposals(p, q, k);
    if (!order) return hm_fail(err, HM_MEMORY, "proposals from %zu logits: out of memory", q->vocab);
    hm_status status = HM_OK;
    bool done = false;
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && !done; precision *= 2) {
        status = hm_row_pair_sums(p, q, precision, err);
        if (status) break;
        struct ladder l;
        struct hm_mpi e, accept;
        ladder_init(&l, p, q, order, q->support);
        hm_mpi_init(&e, precision);
        hm_mpi_init(&accept, precision);
        climb_to(&l, m);
        excess(&l, &e);
        hm_mpi_set_ui(&accept, 1);
        hm_mpi_sub(&accept, &accept, &l.missed);
        *out = (struct hm_law){hm_mpi_ival(&accept), hm_mpi_ival(&e)};
        done = hm_mpi_narrow(&accept) && hm_mpi_narrow(&e);
        hm_mpi_clear(&e);
        hm_mpi_clear(&accept);
        ladder_clear(&l);
    }
    free(order);
    return status;
}

// One proposal: what is gained over standard acceptance is what is lost of the law.
static hm_status law_once(struct hm_row *p, struct hm_row *q, size_t k, struct hm_law *out, struct hm_error *err)
{
    struct hm_row_distance distance;
    hm_status status = hm_row_distance(p, q, &distance, err);
    if (status == HM_OK) status = hm_row_excess(p, q, k, &out->e, err);
    if (status == HM_OK) out->accept = hm_ival_min(hm_ival_add(distance.standard_accept, out->e), hm_ival_point(1));
    return status;
}

// Point masses: those before the first in A are emitted exactly as often as p would emit them, that one takes all the
// rest; without one in A the law is p's.
struct points {
    bool *tried; // [vocab]: the children up to and with the first in A
    bool sure;   // there is one
};

static hm_status try_children(struct hm_row *p, struct hm_row *q, const int32_t *children, size_t m, size_t k,
                              struct points *out, struct hm_error *err)
{
    out->sure = false;
    out->tried = hm_calloc(p->vocab, sizeof *out->tried);
    if (!out->tried) return hm_fail(err, HM_MEMORY, "children among %zu tokens: out of memory", p->vocab);
    uint64_t last = k ? hm_row_key(p, (size_t)hm_row_token(p, k - 1)) : 0;
    for (size_t i = 0; i < m && !out->sure; i++) {
        int32_t token = children ? children[i] : hm_row_token(q, i);
        if (token < 0 || (size_t)token >= p->vocab)
            return hm_fail(err, HM_RANGE, "child %zu: expected an id from 0 to %zu, found %ld", i, p->vocab - 1, (long)token);
        out->tried[token] = true;
        out->sure = k > 0 && hm_row_key(p, (size_t)token) <= last;
    }
    return HM_OK;
}

static void share_of(const struct hm_row *p, const bool *tried, bool which, struct hm_mpi *out)
{
    struct hm_weight_sum sum;
    bool whole = true; // all of the support: the share is 1
    hm_weight_sum_init(&sum, p->weights);
    for (size_t i = 0; i < p->vocab; i++) {
        if (tried[i] == which) hm_weight_sum_add(&sum, p->weights, i);
        else whole = whole && p->logits[i] == -INFINITY;
    }
    hm_weight_sum_get(&sum, p->weights, out);
    hm_weight_sum_clear(&sum);
    hm_mpi_div(out, out, &p->total);
    hm_mpi_clip_high(out, 1);
    if (whole) hm_mpi_set_ui(out, 1);
}

// The same in double. What nothing or everything belongs to is exact, as there.
static bool share_of_filter(struct hm_row *p, const bool *tried, bool which, struct hm_ival *out)
{
    double sum = 0, chosen[HM_FILTER_BLOCK];
    bool none = true, whole = true;
    if (!hm_filter_ready(p)) return false;
    for (size_t start = 0; start < p->vocab; start += HM_FILTER_BLOCK) {
        size_t n = p->vocab - start < HM_FILTER_BLOCK ? p->vocab - start : HM_FILTER_BLOCK;
        for (size_t i = 0; i < n; i++) {
            bool in = tried[start + i] == which, empty = p->logits[start + i] == -INFINITY;
            chosen[i] = in ? p->filter.weights[start + i] : 0;
            none = none && (!in || empty);
            whole = whole && (in || empty);
        }
        sum += hm_filter_block(chosen, n);
    }
    *out = hm_ival_min(hm_ival_div(hm_filter_enclose(sum, p->vocab), p->filter.total), hm_ival_point(1));
    if (none || whole) *out = hm_ival_point(whole);
    return hm_filter_count(p, hm_ival_narrow(*out));
}

static struct hm_law of_points(const struct points *points, struct hm_ival share)
{
    return points->sure ? (struct hm_law){{1, 1}, share} : (struct hm_law){share, {0, 0}};
}

static hm_status law_topk(struct hm_row *p, struct hm_row *q, const int32_t *children, size_t m, size_t k,
                          struct hm_law *out, struct hm_error *err)
{
    struct points points;
    hm_status status = try_children(p, q, children, !children && m > p->vocab ? p->vocab : m, k, &points, err);
    struct hm_ival value;
    bool done = status != HM_OK || share_of_filter(p, points.tried, !points.sure, &value);
    if (status == HM_OK && done) *out = of_points(&points, value);
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && !done; precision *= 2) {
        status = hm_row_sums(p, precision, err);
        if (status) break;
        struct hm_mpi share;
        hm_mpi_init(&share, precision);
        share_of(p, points.tried, !points.sure, &share);
        *out = of_points(&points, hm_mpi_ival(&share));
        done = hm_mpi_narrow(&share);
        hm_mpi_clear(&share);
    }
    free(points.tried);
    return status;
}

hm_status hm_law_make(struct hm_row *p, struct hm_row *q, enum hm_proposal proposal, const int32_t *children, size_t m,
                      size_t k, struct hm_law *out, struct hm_error *err)
{
    *out = (struct hm_law){{0, 1}, {0, 1}};
    if (m < 1 || m > LONGEST) return hm_fail(err, HM_USAGE, "law: expected m from 1 to %d, found %zu", LONGEST, m);
    if (k > p->vocab) return hm_fail(err, HM_RANGE, "accepted tokens: expected at most %zu, found %zu", p->vocab, k);
    hm_status status = hm_row_pair_check(p, q, err);
    if (status) return status;
    if (proposal == HM_PROPOSAL_TOPK) return law_topk(p, q, children, m, k, out, err);
    if (hm_row_same(p, q)) {
        *out = (struct hm_law){{1, 1}, {0, 0}};
        return HM_OK;
    }
    if (m == 1) return law_once(p, q, k, out, err);
    return hm_filter_law(p, q, m, k, out) ? HM_OK : law_iid(p, q, m, k, out, err);
}
