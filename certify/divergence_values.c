// Divergences between two rows, at one precision: see divergence_state.h. Logits are exact, so what a precision cannot
// hold is lost in three places only: exponentials, their sum, and the logarithms of three sums. Precision pays for all.
#include "certify/divergence_state.h"

#include <math.h>

enum { EXACT = 320, GUARD = 64, REMOTE = 28 };

static void set_infinite(struct hm_mpi *out)
{
    mpfr_set_inf(out->lo, 1);
    mpfr_set_inf(out->hi, 1);
}

bool hm_row_pair_range(const struct hm_row *p, const struct hm_row *q, struct hm_exact range[2], size_t *most)
{
    bool any = false;
    for (size_t i = 0; i < p->vocab; i++) {
        if (p->logits[i] == -INFINITY || q->logits[i] == -INFINITY) continue;
        struct hm_exact rise = hm_exact_difference(p->logits[i], q->logits[i]);
        if (!any || hm_exact_compare(rise, range[0]) > 0) {
            range[0] = rise;
            *most = i;
        }
        if (!any || hm_exact_compare(rise, range[1]) < 0) range[1] = rise;
        any = true;
    }
    return any;
}

bool hm_row_leaves(const struct hm_row *of, const struct hm_row *in)
{
    for (size_t i = 0; i < of->vocab; i++)
        if (of->logits[i] != -INFINITY && in->logits[i] == -INFINITY) return true;
    return false;
}

static void over_temperature(struct hm_mpi *x, const struct hm_row *row)
{
    mpfr_div_q(x->lo, x->lo, row->temperature.value, MPFR_RNDD);
    mpfr_div_q(x->hi, x->hi, row->temperature.value, MPFR_RNDU);
}

// ln(W_q/W_p) + shift
static void add_log_ratio(struct hm_mpi *out, const struct hm_row *p, const struct hm_row *q)
{
    struct hm_mpi ratio;
    hm_mpi_init(&ratio, mpfr_get_prec(out->lo));
    hm_mpi_div(&ratio, &q->total, &p->total);
    hm_mpi_log(&ratio, &ratio);
    hm_mpi_add(out, out, &ratio);
    hm_mpi_clear(&ratio);
}

// max ln(p/q) = max (l - d - l_top + d_top)/T + ln(W_q/W_p).
static void largest_ratio(const struct hm_row *p, const struct hm_row *q, struct hm_mpi *out)
{
    struct hm_exact range[2];
    size_t most;
    if (hm_row_leaves(p, q) || !hm_row_pair_range(p, q, range, &most)) {
        set_infinite(out);
        return;
    }
    mpfr_t exact;
    mpfr_init2(exact, EXACT);
    mpfr_set_flt(exact, p->logits[most], MPFR_RNDN); // sums of four floats fit EXACT bits
    mpfr_sub_d(exact, exact, q->logits[most], MPFR_RNDN);
    mpfr_sub_d(exact, exact, p->top, MPFR_RNDN);
    mpfr_add_d(exact, exact, q->top, MPFR_RNDN);
    hm_mpi_set_exact(out, exact);
    over_temperature(out, p);
    add_log_ratio(out, p, q);
    mpfr_clear(exact);
}

static void ratio_spread(const struct hm_row *p, const struct hm_row *q, struct hm_mpi *out)
{
    struct hm_exact range[2];
    size_t most;
    if (hm_row_leaves(p, q) || hm_row_leaves(q, p) || !hm_row_pair_range(p, q, range, &most)) {
        set_infinite(out);
        return;
    }
    mpfr_t exact;
    mpfr_init2(exact, EXACT);
    mpfr_set_d(exact, range[0].high, MPFR_RNDN);
    mpfr_add_d(exact, exact, range[0].low, MPFR_RNDN);
    mpfr_sub_d(exact, exact, range[1].high, MPFR_RNDN);
    mpfr_sub_d(exact, exact, range[1].low, MPFR_RNDN);
    hm_mpi_set_exact(out, exact);
    over_temperature(out, p);
    mpfr_clear(exact);
}

// The terms of sum w^a v^(1-a), relative to the largest: e_i = (d_i - d_top + a (l_i - l_top - d_i + d_top))/T.
struct power_sum {
    const struct hm_row *p, *q;
    mpq_t scale;        // a/T
    mpq_t inverse;      // 1/T
    struct hm_mpi e, work;
    mpfr_t exact, most; // most: an upper bound of the e_i, or close to it
    struct hm_mpi sum;
};

static void power_sum_init(struct power_sum *s, const struct hm_row *p, const struct hm_row *q, mpq_srcptr a,
                           mpfr_prec_t precision)
{
    s->p = p;
    s->q = q;
    mpq_inits(s->scale, s->inverse, NULL);
    mpq_inv(s->inverse, p->temperature.value);
    mpq_mul(s->scale, a, s->inverse);
    hm_mpi_init(&s->e, precision + GUARD);
    hm_mpi_init(&s->work, precision + GUARD);
    hm_mpi_init(&s->sum, precision);
    mpfr_init2(s->exact, EXACT);
    mpfr_init2(s->most, precision + GUARD);
}

static void power_sum_clear(struct power_sum *s)
{
    mpq_clears(s->scale, s->inverse, NULL);
    hm_mpi_clear(&s->e);
    hm_mpi_clear(&s->work);
    hm_mpi_clear(&s->sum);
    mpfr_clears(s->exact, s->most, (mpfr_ptr)0);
}

static void times(struct hm_mpi *out, mpfr_srcptr exact, mpq_srcptr factor)
{
    mpfr_mul_q(out->lo, exact, factor, MPFR_RNDD);
    mpfr_mul_q(out->hi, exact, factor, MPFR_RNDU);
}

static void term_exponent(struct power_sum *s, size_t i)
{
    mpfr_set_flt(s->exact, s->q->logits[i], MPFR_RNDN);
    mpfr_sub_d(s->exact, s->exact, s->q->top, MPFR_RNDN);
    times(&s->e, s->exact, s->inverse);
    mpfr_neg(s->exact, s->exact, MPFR_RNDN);
    mpfr_add_d(s->exact, s->exact, s->p->logits[i], MPFR_RNDN);
    mpfr_sub_d(s->exact, s->exact, s->p->top, MPFR_RNDN);
    times(&s->work, s->exact, s->scale);
    hm_mpi_add(&s->e, &s->e, &s->work);
}

// Adds e^e. One exponential rounded down does for both ends where e is known well: then e^hi <= low (1 + 2^(3-precision)).
static void add_exponential(struct power_sum *s, mpfr_ptr term)
{
    mpfr_prec_t precision = mpfr_get_prec(term);
    mpfr_sub(s->e.lo, s->e.lo, s->most, MPFR_RNDD);
    mpfr_sub(s->e.hi, s->e.hi, s->most, MPFR_RNDU);
    mpfr_exp(term, s->e.lo, MPFR_RNDD);
    mpfr_add(s->sum.lo, s->sum.lo, term, MPFR_RNDD);
    mpfr_sub(s->work.hi, s->e.hi, s->e.lo, MPFR_RNDU);
    if (mpfr_zero_p(term) || mpfr_cmp_ui_2exp(s->work.hi, 1, -precision) > 0) {
        mpfr_exp(term, s->e.hi, MPFR_RNDU);
    } else {
        mpfr_mul_2si(s->work.hi, term, 3 - precision, MPFR_RNDU);
        mpfr_add(term, term, s->work.hi, MPFR_RNDU);
    }
    mpfr_add(s->sum.hi, s->sum.hi, term, MPFR_RNDU);
}

// ln sum w^a v^(1-a); false when no term is left (disjoint supports).
static bool log_power_sum(struct power_sum *s, struct hm_mpi *out)
{
    mpfr_t term;
    bool any = false;
    mpfr_init2(term, mpfr_get_prec(out->lo));
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < s->p->vocab; i++) {
            if (s->p->logits[i] == -INFINITY || s->q->logits[i] == -INFINITY) continue;
            term_exponent(s, i);
            if (pass == 1) add_exponential(s, term);
            else if (!any || mpfr_greater_p(s->e.hi, s->most)) mpfr_set(s->most, s->e.hi, MPFR_RNDN);
            any = true;
        }
    }
    mpfr_clear(term);
    hm_mpi_log(out, &s->sum);
    mpfr_add(out->lo, out->lo, s->most, MPFR_RNDD);
    mpfr_add(out->hi, out->hi, s->most, MPFR_RNDU);
    return any;
}

// x / r for a rational of either sign.
static void divide(struct hm_mpi *x, mpq_srcptr r)
{
    if (mpq_sgn(r) < 0) mpfr_swap(x->lo, x->hi);
    mpfr_div_q(x->lo, x->lo, r, MPFR_RNDD);
    mpfr_div_q(x->hi, x->hi, r, MPFR_RNDU);
}

// With L = ln sum w^a v^(1-a):  D_a(p||q) = (L - ln W_p)/(a-1) + ln(W_q/W_p),  D_(1-a)(q||p) = (L - ln W_q)/(-a) + ln(W_p/W_q).
static void power(const struct hm_row *p, const struct hm_row *q, const struct hm_power *power, struct hm_mpi *out)
{
    struct power_sum sum;
    struct hm_mpi log;
    mpq_t divisor;
    const struct hm_row *first = power->reversed ? q : p, *second = power->reversed ? p : q;
    bool above = mpq_cmp_ui(power->a, 1, 1) > 0, below = mpq_sgn(power->a) < 0;
    mpfr_prec_t precision = mpfr_get_prec(out->lo);
    hm_mpi_init(&log, precision);
    mpq_init(divisor);
    power_sum_init(&sum, p, q, power->a, precision);
    if ((above && hm_row_leaves(p, q)) || (below && hm_row_leaves(q, p)) || !log_power_sum(&sum, out)) {
        set_infinite(out);
    } else {
        hm_mpi_log(&log, &first->total);
        hm_mpi_sub(out, out, &log);
        mpq_neg(divisor, power->a);
        if (!power->reversed) {
            mpq_set_si(divisor, -1, 1);
            mpq_add(divisor, power->a, divisor);
        }
        divide(out, divisor);
        add_log_ratio(out, first, second);
    }
    power_sum_clear(&sum);
    mpq_clear(divisor);
    hm_mpi_clear(&log);
}

hm_status hm_divergence_between_at(const struct hm_divergence *d, struct hm_row *p, struct hm_row *q, mpfr_prec_t precision,
                                   struct hm_mpi *out, struct hm_error *err)
{
    struct hm_power order;
    hm_mpi_set_ui(out, 0);
    if (hm_row_same(p, q)) return HM_OK;
    if (d->kind == HM_DIVERGENCE_SPREAD) {
        ratio_spread(p, q, out);
        return HM_OK;
    }
    hm_status status = hm_row_pair_sums(p, q, precision, err);
    if (status) return status;
    if (d->kind == HM_DIVERGENCE_MAX) {
        largest_ratio(p, q, out);
    } else {
        hm_divergence_power(d, &order);
        power(p, q, &order, out);
        mpq_clear(order.a);
    }
    hm_mpi_clip_low(out, 0);
    return HM_OK;
}

void hm_divergence_unit(const struct hm_divergence *d, struct hm_mpi *x)
{
    if (d->kind == HM_DIVERGENCE_HELLINGER) { // 1 - e^(-D/2)
        hm_mpi_div_ui(x, x, 2);
        hm_mpi_neg(x, x);
        hm_mpi_expm1(x, x);
        hm_mpi_neg(x, x);
    }
    if (d->kind == HM_DIVERGENCE_CHI2 || d->kind == HM_DIVERGENCE_CHI2_REVERSE) hm_mpi_expm1(x, x); // e^D - 1
    hm_mpi_clip_low(x, 0);
}
