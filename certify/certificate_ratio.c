// The value of a radius formula (rules/rules.h) for a row: in double enclosures, or at a precision with MPFR.
#include "certify/rules/rules.h"

#include "bounds/ival_math.h"

#include <math.h>

// ---- writing a formula

void hm_ratio_init(struct hm_ratio *r)
{
    *r = (struct hm_ratio){.kind = HM_RATIO};
    for (int i = 0; i < 2; i++) {
        mpq_init(r->above[i].times);
        mpq_init(r->below[i].times);
    }
}

void hm_ratio_clear(struct hm_ratio *r)
{
    for (int i = 0; i < 2; i++) {
        mpq_clear(r->above[i].times);
        mpq_clear(r->below[i].times);
    }
}

void hm_ratio_reset(struct hm_ratio *r)
{
    r->kind = HM_RATIO;
    r->negate = false;
    r->gap = (struct hm_gap){0, 0};
    r->aboves = r->belows = 0;
    r->growth = NULL;
}

void hm_ratio_gap(struct hm_ratio *r, float high, float low)
{
    if (low == -INFINITY || high == -INFINITY) r->kind = HM_RATIO_NEVER;
    r->gap = (struct hm_gap){high, low};
}

static struct hm_term *fresh(struct hm_term *term, size_t from, size_t to)
{
    mpq_set_ui(term->times, 1, 1);
    term->ranges = 0;
    hm_term_also(term, from, to);
    return term;
}

struct hm_term *hm_ratio_above(struct hm_ratio *r, size_t from, size_t to)
{
    return fresh(&r->above[r->aboves++], from, to);
}

struct hm_term *hm_ratio_below(struct hm_ratio *r, size_t from, size_t to)
{
    return fresh(&r->below[r->belows++], from, to);
}

void hm_term_also(struct hm_term *term, size_t from, size_t to)
{
    if (from >= to) return;
    term->from[term->ranges] = from;
    term->to[term->ranges++] = to;
}

float hm_steps_logit(const struct hm_steps *steps, size_t rank)
{
    if (rank == steps->rank) return steps->row->logits[steps->token];
    return steps->row->logits[hm_row_token(steps->row, rank)];
}

void hm_steps_never(const struct hm_steps *steps, size_t j, struct hm_ratio *out)
{
    (void)steps, (void)j;
    out->kind = HM_RATIO_NEVER;
}

// p_x against a fixed share: x moves one way and all others the other, so the turn is at
// e^(2 eta/T) = p_x (1 - share) / (share (1 - p_x)) or its inverse.
void hm_ratio_share(const struct hm_steps *s, mpq_srcptr share, struct hm_ratio *out)
{
    bool fixed = s->row->support == 1 || s->rank >= s->row->support || mpq_cmp_ui(share, 1, 1) >= 0;
    if (fixed) {
        out->kind = HM_RATIO_NEVER;
        return;
    }
    struct hm_term *x = hm_ratio_above(out, s->rank, s->rank + 1), *rest = hm_ratio_below(out, 0, s->rank);
    hm_term_also(rest, s->rank + 1, s->row->vocab);
    mpq_sub(x->times, x->times, share);
    mpq_set(rest->times, share);
    out->negate = !s->accepted;
}

// ---- in doubles

static struct hm_ival term_mass(struct hm_masses *masses, const struct hm_term *t)
{
    bool but_one = t->ranges == 2 && t->from[0] == 0 && t->from[1] == t->to[0] + 1 && t->to[1] >= masses->row->support;
    if (but_one) return hm_mass_but_one(masses, t->to[0]);
    struct hm_ival sum = {0, 0};
    for (int k = 0; k < t->ranges; k++) sum = hm_ival_add(sum, hm_mass(masses, t->from[k], t->to[k]));
    return sum;
}

static struct hm_ival side(struct hm_masses *masses, const struct hm_term *terms, int count)
{
    struct hm_ival sum = {0, 0};
    for (int i = 0; i < count; i++) {
        struct hm_ival part = term_mass(masses, &terms[i]);
        if (mpq_cmp_ui(terms[i].times, 1, 1) != 0) part = hm_ival_mul(part, hm_ival_rational(terms[i].times));
        sum = hm_ival_add(sum, part);
    }
    return sum;
}

struct hm_ival hm_ratio_double(struct hm_masses *masses, const struct hm_ratio *r)
{
    if (r->kind != HM_RATIO) return hm_ival_point(r->kind == HM_RATIO_NEVER ? INFINITY : -INFINITY);
    struct hm_ival value = {0, 0};
    if (r->aboves) {
        struct hm_ival ratio = hm_ival_div(side(masses, r->above, r->aboves), side(masses, r->below, r->belows));
        if (ratio.lo < 0) ratio.lo = 0;
        value = hm_ival_log(ratio);
        if (r->growth) { // ln(e^g - 1) = g + ln(1 - e^-g)
            struct hm_ival g = hm_ival_rational(r->growth);
            value = hm_ival_add(value, hm_ival_add(g, hm_ival_log(hm_ival_drop(g))));
        }
        value = hm_ival_mul(value, hm_ival_rational(masses->row->temperature.value));
    }
    if (r->gap.high != r->gap.low)
        value = hm_ival_add(value, hm_ival_sub(hm_ival_point(r->gap.high), hm_ival_point(r->gap.low)));
    value = hm_ival_mul(value, hm_ival_point(0.5));
    return r->negate ? hm_ival_neg(value) : value;
}

// ---- with MPFR

static hm_status add_range(struct hm_row *row, size_t from, size_t to, mpfr_prec_t precision, struct hm_mpi *sum,
                           struct hm_error *err)
{
    struct hm_mpi part;
    hm_mpi_init(&part, precision);
    hm_status status = HM_OK;
    if (from == 0 && to == 1) { // the top weighs 1: no other weight is needed
        hm_mpi_set_ui(&part, 1);
    } else if (to >= row->support && from > 0) {
        status = hm_row_tail(row, from, precision, &part, err);
    } else {
        const struct hm_weights *w;
        status = hm_row_weights(row, precision, &w, err);
        if (status == HM_OK) {
            struct hm_weight_sum s;
            hm_weight_sum_init(&s, w);
            for (size_t r = from; r < to; r++) hm_weight_sum_add(&s, w, (size_t)hm_row_token(row, r));
            hm_weight_sum_get(&s, w, &part);
            hm_weight_sum_clear(&s);
        }
    }
    hm_mpi_add(sum, sum, &part);
    hm_mpi_clear(&part);
    return status;
}

static hm_status side_exact(struct hm_row *row, const struct hm_term *terms, int count, mpfr_prec_t precision,
                            struct hm_mpi *out, struct hm_error *err)
{
    hm_status status = HM_OK;
    hm_mpi_set_ui(out, 0);
    for (int i = 0; i < count && status == HM_OK; i++) {
        struct hm_mpi part;
        hm_mpi_init(&part, precision);
        for (int k = 0; k < terms[i].ranges && status == HM_OK; k++)
            status = add_range(row, terms[i].from[k], terms[i].to[k], precision, &part, err);
        hm_mpi_mul_q(&part, &part, terms[i].times);
        hm_mpi_add(out, out, &part);
        hm_mpi_clear(&part);
    }
    return status;
}

static void add_growth(mpq_srcptr growth, struct hm_mpi *value)
{
    struct hm_mpi g;
    hm_mpi_init(&g, mpfr_get_prec(value->lo));
    hm_mpi_set_q(&g, growth);
    hm_mpi_expm1(&g, &g);
    hm_mpi_log(&g, &g);
    hm_mpi_add(value, value, &g);
    hm_mpi_clear(&g);
}

static void add_gap(struct hm_gap gap, struct hm_mpi *value)
{
    struct hm_mpi term;
    mpfr_t difference;
    hm_mpi_init(&term, mpfr_get_prec(value->lo));
    mpfr_init2(difference, 288); // every difference of floats
    mpfr_set_flt(difference, gap.high, MPFR_RNDN);
    mpfr_sub_d(difference, difference, gap.low, MPFR_RNDN);
    hm_mpi_set_exact(&term, difference);
    hm_mpi_add(value, value, &term);
    mpfr_clear(difference);
    hm_mpi_clear(&term);
}

hm_status hm_ratio_exact(struct hm_row *row, const struct hm_ratio *r, mpfr_prec_t precision, struct hm_ival *out,
                         struct hm_error *err)
{
    *out = hm_ival_point(r->kind == HM_RATIO_NEVER ? INFINITY : -INFINITY);
    if (r->kind != HM_RATIO) return HM_OK;
    struct hm_mpi value, below;
    hm_status status = HM_OK;
    hm_mpi_init(&value, precision);
    hm_mpi_init(&below, precision);
    if (r->aboves) {
        status = side_exact(row, r->above, r->aboves, precision, &value, err);
        if (status == HM_OK) status = side_exact(row, r->below, r->belows, precision, &below, err);
        hm_mpi_div(&value, &value, &below);
        hm_mpi_clip_low(&value, 0);
        hm_mpi_log(&value, &value);
        if (r->growth) add_growth(r->growth, &value);
        hm_mpi_mul_q(&value, &value, row->temperature.value);
    }
    if (r->gap.high != r->gap.low) add_gap(r->gap, &value);
    hm_mpi_div_ui(&value, &value, 2);
    if (r->negate) hm_mpi_neg(&value, &value);
    *out = hm_mpi_ival(&value);
    hm_mpi_clear(&value);
    hm_mpi_clear(&below);
    return status;
}
