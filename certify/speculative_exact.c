// Coins and residual draws by MPFR, from 128 bits on: see speculative_state.h.
#include "certify/speculative_state.h"

#include "certify/row_pair.h"

#include <math.h>

// What is left, at one precision.
struct exact {
    const struct hm_remainder *left;
    struct hm_mpi scale, total;
    struct hm_mpi term, other; // room
};

static void exact_init(struct exact *x, const struct hm_remainder *left)
{
    struct hm_mpi *all[] = {&x->scale, &x->total, &x->term, &x->other};
    x->left = left;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hm_mpi_init(all[i], left->p->weights->precision);
}

static void exact_clear(struct exact *x)
{
    struct hm_mpi *all[] = {&x->scale, &x->total, &x->term, &x->other};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hm_mpi_clear(all[i]);
}

// The term of one token, in x->term.
static void weigh(struct exact *x, size_t token)
{
    const struct hm_remainder *left = x->left;
    if (hm_remainder_has_tried(left, (int32_t)token)) {
        hm_mpi_set_ui(&x->term, 0);
        return;
    }
    hm_weight(left->p->weights, token, &x->term);
    if (!left->q || mpfr_zero_p(x->scale.hi)) return;
    hm_weight(left->q->weights, token, &x->other);
    mpfr_mul(x->other.lo, x->other.lo, x->scale.lo, MPFR_RNDD); // both are >= 0
    mpfr_mul(x->other.hi, x->other.hi, x->scale.hi, MPFR_RNDU);
    hm_mpi_sub(&x->term, &x->term, &x->other);
    hm_mpi_clip_low(&x->term, 0);
}

static void add_up(struct exact *x)
{
    hm_mpi_set_ui(&x->total, 0);
    for (size_t i = 0; i < x->left->p->vocab; i++) {
        if (x->left->p->logits[i] == -INFINITY) continue;
        weigh(x, i);
        hm_mpi_add(&x->total, &x->total, &x->term);
    }
}

static hm_status exact_set(struct exact *x, const struct hm_remainder *left, mpfr_prec_t precision, struct hm_error *err)
{
    hm_status status = hm_row_sums(left->p, precision, err);
    if (!status && left->q) status = hm_row_sums(left->q, precision, err);
    if (status) return status;
    exact_init(x, left);
    hm_mpi_set(&x->total, &left->p->total);
    for (size_t j = 0; j < left->rejected && left->q; j++) {
        hm_mpi_div(&x->other, &x->total, &left->q->total);
        hm_mpi_add(&x->scale, &x->scale, &x->other);
        add_up(x);
    }
    if (left->rejected && !left->q) add_up(x);
    return HM_OK;
}

// u times all that is left.
static void share(const struct exact *x, uint64_t bits, struct hm_mpi *out)
{
    hm_mpi_mul_ui(out, &x->total, bits);
    mpfr_mul_2si(out->lo, out->lo, -53, MPFR_RNDD);
    mpfr_mul_2si(out->hi, out->hi, -53, MPFR_RNDU);
}

// (a + u total/W_q) v_x < w_x, or u total < w_x.
static enum hm_verdict coin_at(struct exact *x, size_t token, uint64_t bits)
{
    share(x, bits, &x->term);
    if (x->left->q) {
        hm_mpi_div(&x->term, &x->term, &x->left->q->total);
        hm_mpi_add(&x->term, &x->term, &x->scale);
        hm_weight(x->left->q->weights, token, &x->other);
        hm_mpi_mul(&x->term, &x->term, &x->other);
    }
    hm_weight(x->left->p->weights, token, &x->other);
    return hm_mpi_less(&x->term, &x->other);
}

hm_status hm_exact_coin(const struct hm_remainder *left, size_t token, uint64_t bits, bool *accepted, struct hm_error *err)
{
    enum hm_verdict answer = HM_UNDECIDED;
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && answer == HM_UNDECIDED; precision *= 2) {
        struct exact x;
        hm_status status = exact_set(&x, left, precision, err);
        if (status) return status;
        answer = coin_at(&x, token, bits);
        exact_clear(&x);
    }
    *accepted = answer == HM_YES;
    return HM_OK;
}

// The first ids at which the running sum may pass and surely passes the target; the vocabulary's size: nowhere.
static struct hm_crossing cross(struct exact *x, uint64_t bits)
{
    size_t vocab = x->left->p->vocab;
    struct hm_crossing at = {vocab, vocab};
    struct hm_mpi sum, target;
    hm_mpi_init(&sum, mpfr_get_prec(x->total.lo));
    hm_mpi_init(&target, mpfr_get_prec(x->total.lo));
    share(x, bits, &target);
    for (size_t i = 0; i < vocab && at.most == vocab; i++) {
        if (x->left->p->logits[i] == -INFINITY) continue;
        weigh(x, i);
        hm_mpi_add(&sum, &sum, &x->term);
        if (at.least == vocab && mpfr_greater_p(sum.hi, target.lo)) at.least = i;
        if (mpfr_greater_p(sum.lo, target.hi)) at.most = i;
    }
    hm_mpi_clear(&sum);
    hm_mpi_clear(&target);
    return at;
}

hm_status hm_exact_residual(const struct hm_remainder *left, uint64_t bits, int32_t *token, struct hm_error *err)
{
    struct hm_crossing at = {0, left->p->vocab};
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && at.least != at.most; precision *= 2) {
        struct exact x;
        hm_status status = exact_set(&x, left, precision, err);
        if (status) return status;
        at = cross(&x, bits);
        exact_clear(&x);
    }
    *token = (int32_t)at.most; // a sum that equals the target does not pass it, and an open one counts as equal
    return at.most < left->p->vocab ? HM_OK : hm_fail(err, HM_RANGE, "residual draw: nothing is left at %d bits", HM_PRECISION_LAST);
}

hm_status hm_exact_share(const struct hm_remainder *left, size_t token, struct hm_ival *out, struct hm_error *err)
{
    bool done = false;
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && !done; precision *= 2) {
        struct exact x;
        hm_status status = exact_set(&x, left, precision, err);
        if (status) return status;
        hm_weight(left->p->weights, token, &x.term);
        hm_mpi_div(&x.term, &x.term, &x.total);
        hm_mpi_clip_high(&x.term, 1);
        *out = hm_mpi_ival(&x.term);
        done = hm_mpi_narrow(&x.term);
        exact_clear(&x);
    }
    return HM_OK;
}
