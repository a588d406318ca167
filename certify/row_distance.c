// How two rows differ: see row.h. The filter is asked first (row_distance_filter.h); what follows it is the whole truth.
// Divergences need no logarithm per token: with e_i = (l_i - l_max) - (d_i - d_max),
//
//     KL(p||q) = (sum_i p_i e_i)/T + ln(W_q / W_p),
//
// e_i exact in 288 bits. What cancels is paid for by precision, which doubles until the enclosure is narrow.
#include "base/memory.h"
#include "certify/row_distance_filter.h"
#include "certify/row_pair.h"

#include <math.h>
#include <stdlib.h>

enum { EXACT = 288 };

void hm_distance_values_init(struct hm_distance_values *v, mpfr_prec_t precision)
{
    struct hm_mpi *all[] = {&v->kl_pq, &v->kl_qp, &v->tv, &v->standard_accept};
    for (size_t i = 0; i < 4; i++) hm_mpi_init(all[i], precision);
}

void hm_distance_values_clear(struct hm_distance_values *v)
{
    struct hm_mpi *all[] = {&v->kl_pq, &v->kl_qp, &v->tv, &v->standard_accept};
    for (size_t i = 0; i < 4; i++) hm_mpi_clear(all[i]);
}

// sum of w_i e_i, positive and negative terms apart so that each has one rounding direction per end. The upper ends
// still lack the weights' factor; `specks` is what remote tokens may add to either side.
struct tilt {
    const struct hm_weights *weights;
    struct hm_mpi rise, fall;
    mpfr_t specks, term;
    bool infinite; // a token with p_i > 0 has q_i = 0
};

static void tilt_init(struct tilt *t, const struct hm_weights *w)
{
    t->weights = w;
    t->infinite = false;
    hm_mpi_init(&t->rise, w->precision);
    hm_mpi_init(&t->fall, w->precision);
    mpfr_init2(t->specks, w->precision);
    mpfr_init2(t->term, w->precision);
    mpfr_set_zero(t->specks, 1);
}

static void tilt_clear(struct tilt *t)
{
    hm_mpi_clear(&t->rise);
    hm_mpi_clear(&t->fall);
    mpfr_clear(t->specks);
    mpfr_clear(t->term);
}

// size = |e_i|, exact.
static void tilt_add(struct tilt *t, size_t i, mpfr_srcptr size, bool rises)
{
    mpfr_srcptr low = t->weights->low[i];
    struct hm_mpi *side = rises ? &t->rise : &t->fall;
    if (mpfr_zero_p(low)) {
        mpfr_mul(t->term, t->weights->speck, size, MPFR_RNDU);
        mpfr_add(t->specks, t->specks, t->term, MPFR_RNDU);
        return;
    }
    mpfr_mul(t->term, low, size, MPFR_RNDD);
    mpfr_add(side->lo, side->lo, t->term, MPFR_RNDD);
    mpfr_mul(t->term, low, size, MPFR_RNDU);
    mpfr_add(side->hi, side->hi, t->term, MPFR_RNDU);
}

// The divergence from its tilt: ((rise - fall) / W)/T + ln(W_other / W), which is >= 0.
static void tilt_finish(struct tilt *t, const struct hm_row *row, const struct hm_row *other, struct hm_mpi *out)
{
    if (t->infinite) {
        mpfr_set_inf(out->lo, 1);
        mpfr_set_inf(out->hi, 1);
        return;
    }
    struct hm_mpi share;
    hm_mpi_init(&share, t->weights->precision);
    mpfr_mul(t->rise.hi, t->rise.hi, t->weights->factor, MPFR_RNDU);
    mpfr_mul(t->fall.hi, t->fall.hi, t->weights->factor, MPFR_RNDU);
    hm_mpi_sub(&t->rise, &t->rise, &t->fall);
    mpfr_sub(t->rise.lo, t->rise.lo, t->specks, MPFR_RNDD);
    mpfr_add(t->rise.hi, t->rise.hi, t->specks, MPFR_RNDU);
    hm_mpi_div(&share, &t->rise, &row->total);
    mpfr_div_q(share.lo, share.lo, row->temperature.value, MPFR_RNDD);
    mpfr_div_q(share.hi, share.hi, row->temperature.value, MPFR_RNDU);
    hm_mpi_div(out, &other->total, &row->total);
    hm_mpi_log(out, out);
    hm_mpi_add(out, out, &share);
    hm_mpi_clip_low(out, 0);
    hm_mpi_clear(&share);
}

static void divergences(struct hm_row *p, struct hm_row *q, struct hm_distance_values *out)
{
    struct tilt forward, backward;
    mpfr_t e, f;
    mpfr_init2(e, EXACT);
    mpfr_init2(f, EXACT);
    tilt_init(&forward, p->weights);
    tilt_init(&backward, q->weights);
    for (size_t i = 0; i < p->vocab; i++) {
        float l = p->logits[i], d = q->logits[i];
        if (l == -INFINITY || d == -INFINITY) {
            forward.infinite = forward.infinite || l != -INFINITY;
            backward.infinite = backward.infinite || d != -INFINITY;
            continue;
        }
        mpfr_set_flt(e, l, MPFR_RNDN); // every sum of four floats fits EXACT bits
        mpfr_sub_d(e, e, p->top, MPFR_RNDN);
        mpfr_set_flt(f, d, MPFR_RNDN);
        mpfr_sub_d(f, f, q->top, MPFR_RNDN);
        mpfr_sub(e, e, f, MPFR_RNDN);
        int sign = mpfr_sgn(e);
        if (sign == 0) continue;
        mpfr_abs(e, e, MPFR_RNDN);
        tilt_add(&forward, i, e, sign > 0);
        tilt_add(&backward, i, e, sign < 0);
    }
    tilt_finish(&forward, p, q, &out->kl_pq);
    tilt_finish(&backward, q, p, &out->kl_qp);
    tilt_clear(&forward);
    tilt_clear(&backward);
    mpfr_clear(e);
    mpfr_clear(f);
}

// One token's p_i and q_i in units of 1/(W_p W_q).
struct pair {
    struct hm_mpi p, q;
    mpfr_t term;
};

static void pair_init(struct pair *x, mpfr_prec_t precision)
{
    hm_mpi_init(&x->p, precision);
    hm_mpi_init(&x->q, precision);
    mpfr_init2(x->term, precision);
}

static void pair_clear(struct pair *x)
{
    hm_mpi_clear(&x->p);
    hm_mpi_clear(&x->q);
    mpfr_clear(x->term);
}

static void pair_set(struct pair *x, const struct hm_row *p, const struct hm_row *q, size_t i)
{
    hm_weight(p->weights, i, &x->p); // all factors are >= 0
    mpfr_mul(x->p.lo, x->p.lo, q->total.lo, MPFR_RNDD);
    mpfr_mul(x->p.hi, x->p.hi, q->total.hi, MPFR_RNDU);
    hm_weight(q->weights, i, &x->q);
    mpfr_mul(x->q.lo, x->q.lo, p->total.lo, MPFR_RNDD);
    mpfr_mul(x->q.hi, x->q.hi, p->total.hi, MPFR_RNDU);
}

// sum += (a - b)^+
static void add_surplus(struct hm_mpi *sum, const struct hm_mpi *a, const struct hm_mpi *b, mpfr_ptr term)
{
    mpfr_sub(term, a->lo, b->hi, MPFR_RNDD);
    if (mpfr_sgn(term) > 0) mpfr_add(sum->lo, sum->lo, term, MPFR_RNDD);
    mpfr_sub(term, a->hi, b->lo, MPFR_RNDU);
    if (mpfr_sgn(term) > 0) mpfr_add(sum->hi, sum->hi, term, MPFR_RNDU);
}

static void to_share(const struct hm_row *p, const struct hm_row *q, struct hm_mpi *sum)
{
    hm_mpi_div(sum, sum, &p->total);
    hm_mpi_div(sum, sum, &q->total);
    hm_mpi_clip_low(sum, 0);
    hm_mpi_clip_high(sum, 1);
}

// TV = sum (p - q)^+, and sum min(p, q) = 1 - TV: summed itself only where the subtraction would leave too little.
static void variation(struct hm_row *p, struct hm_row *q, struct hm_distance_values *out)
{
    struct pair x;
    pair_init(&x, p->weights->precision);
    hm_mpi_set_ui(&out->tv, 0);
    for (size_t i = 0; i < p->vocab; i++) {
        pair_set(&x, p, q, i);
        add_surplus(&out->tv, &x.p, &x.q, x.term);
    }
    to_share(p, q, &out->tv);
    hm_mpi_set_ui(&out->standard_accept, 1);
    hm_mpi_sub(&out->standard_accept, &out->standard_accept, &out->tv);
    if (mpfr_cmp_d(out->standard_accept.lo, 0x1p-20) < 0) {
        struct hm_mpi common;
        hm_mpi_init(&common, p->weights->precision);
        for (size_t i = 0; i < p->vocab; i++) {
            pair_set(&x, p, q, i);
            mpfr_add(common.lo, common.lo, mpfr_less_p(x.p.lo, x.q.lo) ? x.p.lo : x.q.lo, MPFR_RNDD);
            mpfr_add(common.hi, common.hi, mpfr_less_p(x.p.hi, x.q.hi) ? x.p.hi : x.q.hi, MPFR_RNDU);
        }
        to_share(p, q, &common);
        hm_mpi_meet(&out->standard_accept, &common);
        hm_mpi_clear(&common);
    }
    pair_clear(&x);
}

static hm_status prepare(struct hm_row *p, struct hm_row *q, mpfr_prec_t precision, struct hm_error *err)
{
    hm_status status = hm_row_pair_check(p, q, err);
    return status ? status : hm_row_pair_sums(p, q, precision, err);
}

hm_status hm_row_distance_at(struct hm_row *p, struct hm_row *q, mpfr_prec_t precision, struct hm_distance_values *out,
                             struct hm_error *err)
{
    hm_status status = prepare(p, q, precision, err);
    if (status) return status;
    if (hm_row_same(p, q)) {
        hm_mpi_set_ui(&out->kl_pq, 0);
        hm_mpi_set_ui(&out->kl_qp, 0);
        hm_mpi_set_ui(&out->tv, 0);
        hm_mpi_set_ui(&out->standard_accept, 1);
        return HM_OK;
    }
    divergences(p, q, out);
    variation(p, q, out);
    return HM_OK;
}

hm_status hm_row_distance(struct hm_row *p, struct hm_row *q, struct hm_row_distance *out, struct hm_error *err)
{
    hm_status status = hm_row_pair_check(p, q, err);
    if (status) return status;
    if (hm_row_same(p, q)) {
        *out = (struct hm_row_distance){.standard_accept = {1, 1}};
        return HM_OK;
    }
    if (hm_filter_row_distance(p, q, out)) return HM_OK;
    bool done = false;
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && !done; precision *= 2) {
        struct hm_distance_values v;
        hm_distance_values_init(&v, precision);
        status = hm_row_distance_at(p, q, precision, &v, err);
        if (status == HM_OK) {
            *out = (struct hm_row_distance){hm_mpi_ival(&v.kl_pq), hm_mpi_ival(&v.kl_qp), hm_mpi_ival(&v.tv),
                                            hm_mpi_ival(&v.standard_accept)};
            done = hm_mpi_narrow(&v.kl_pq) && hm_mpi_narrow(&v.kl_qp) && hm_mpi_narrow(&v.tv) &&
                   hm_mpi_narrow(&v.standard_accept);
        }
        done = done || status != HM_OK;
        hm_distance_values_clear(&v);
    }
    return status;
}

static void excess_at(struct hm_row *p, struct hm_row *q, const int32_t *tokens, size_t k, struct hm_mpi *out)
{
    struct pair x;
    pair_init(&x, p->weights->precision);
    for (size_t r = 0; r < k; r++) {
        pair_set(&x, p, q, (size_t)tokens[r]);
        add_surplus(out, &x.q, &x.p, x.term);
    }
    to_share(p, q, out);
    pair_clear(&x);
}

hm_status hm_row_excess(struct hm_row *p, struct hm_row *q, size_t k, struct hm_ival *out, struct hm_error *err)
{
    if (k > p->vocab) return hm_fail(err, HM_RANGE, "accepted tokens: expected at most %zu, found %zu", p->vocab, k);
    *out = (struct hm_ival){0, 0};
    hm_status status = hm_row_pair_check(p, q, err);
    if (status || k == 0 || hm_row_same(p, q)) return status;
    int32_t *tokens = hm_row_first(p, k);
    if (!tokens) return hm_fail(err, HM_MEMORY, "order of %zu logits: out of memory", k);
    bool done = hm_filter_row_excess(p, q, tokens, k, out);
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && !done; precision *= 2) {
        struct hm_mpi sum;
        hm_mpi_init(&sum, precision);
        status = prepare(p, q, precision, err);
        if (status == HM_OK) {
            excess_at(p, q, tokens, k, &sum);
            *out = hm_mpi_ival(&sum);
        }
        done = status != HM_OK || hm_mpi_narrow(&sum);
        hm_mpi_clear(&sum);
    }
    free(tokens);
    return status;
}
