// p(D) and the bound of TV on a draft vocabulary, at one precision: see restricted.h, theory.md §4.
#include "certify/restricted.h"

void hm_restricted_values_init(struct hm_restricted_values *v, mpfr_prec_t precision)
{
    struct hm_mpi *all[] = {&v->mass, &v->loss, &v->tv, &v->outside};
    for (size_t i = 0; i < 4; i++) hm_mpi_init(all[i], precision);
    v->least = false;
}

void hm_restricted_values_clear(struct hm_restricted_values *v)
{
    struct hm_mpi *all[] = {&v->mass, &v->loss, &v->tv, &v->outside};
    for (size_t i = 0; i < 4; i++) hm_mpi_clear(all[i]);
}

static void masses(const struct hm_restriction *r, struct hm_restricted_values *v)
{
    const struct hm_row *p = r->whole;
    struct hm_weight_sum sums[2]; // outside D, inside
    for (int i = 0; i < 2; i++) hm_weight_sum_init(&sums[i], p->weights);
    for (size_t i = 0, n = 0; i < p->vocab; i++) {
        bool inside = n < r->size && r->ids[n] == (int32_t)i;
        hm_weight_sum_add(&sums[inside], p->weights, i);
        n += inside;
    }
    hm_weight_sum_get(&sums[0], p->weights, &v->outside);
    hm_weight_sum_get(&sums[1], p->weights, &v->mass);
    for (int i = 0; i < 2; i++) hm_weight_sum_clear(&sums[i]);
    if (mpfr_zero_p(v->outside.hi)) { // all of p lies in D
        hm_mpi_set_ui(&v->mass, 1);
        hm_mpi_set_ui(&v->loss, 0);
        return;
    }
    struct hm_mpi log;
    hm_mpi_init(&log, p->weights->precision);
    hm_mpi_div(&v->mass, &v->mass, &p->total);
    hm_mpi_clip_high(&v->mass, 1);
    hm_mpi_log(&v->loss, &v->mass);
    hm_mpi_div(&log, &v->outside, &p->total); // ln(1 - outside) keeps its digits when little lies outside
    hm_mpi_neg(&log, &log);
    hm_mpi_log1p(&log, &log);
    hm_mpi_meet(&v->loss, &log);
    hm_mpi_neg(&v->loss, &v->loss);
    hm_mpi_clip_low(&v->loss, 0);
    hm_mpi_clear(&log);
}

// sum += (a - b)^+ with a = w_i and b = t, or the other way round.
static void add_surplus(struct hm_mpi *sum, const struct hm_mpi *a, const struct hm_mpi *b)
{
    struct hm_mpi term;
    hm_mpi_init(&term, mpfr_get_prec(sum->lo));
    hm_mpi_sub(&term, a, b);
    hm_mpi_clip_low(&term, 0);
    hm_mpi_add(sum, sum, &term);
    hm_mpi_clear(&term);
}

// sum_S (t - w_s)^+ and outside + sum_A (w_a - t)^+ at a point.
static void two_sides(const struct hm_restriction *r, const struct hm_restricted_values *v, const struct hm_mpi *t,
                      struct hm_mpi *gained, struct hm_mpi *lost)
{
    struct hm_mpi weight;
    hm_mpi_init(&weight, mpfr_get_prec(t->lo));
    hm_mpi_set_ui(gained, 0);
    hm_mpi_set(lost, &v->outside);
    for (size_t i = 0; i < r->k + r->m; i++) {
        hm_weight(r->whole->weights, (size_t)r->first[i], &weight);
        if (i < r->k) add_surplus(lost, &weight, t);
        else add_surplus(gained, t, &weight);
    }
    hm_mpi_clear(&weight);
}

// A point near the crossing of the two sides: scanned like a level (bounds/level.c), unproved.
static void crossing(const struct hm_restriction *r, const struct hm_restricted_values *v, mpfr_ptr t)
{
    const struct hm_weights *w = r->whole->weights;
    size_t n = r->k + r->m, a, s;
    mpfr_t mass, term;
    mpfr_inits2(w->precision, mass, term, (mpfr_ptr)0);
    mpfr_set(mass, v->outside.lo, MPFR_RNDN); // and A's weights above t and S's below it
    for (size_t i = r->k; i < n; i++) mpfr_add(mass, mass, w->low[r->first[i]], MPFR_RNDN);
    for (size_t rank = 0;; rank++) {
        mpfr_srcptr low = w->low[r->first[rank]];
        a = rank < r->k ? rank : r->k;
        s = n - (rank < r->k ? r->k : rank);
        mpfr_mul_ui(term, low, a + s, MPFR_RNDN);
        if (rank + 1 == n || mpfr_greaterequal_p(mass, term)) break;
        if (rank < r->k) mpfr_add(mass, mass, low, MPFR_RNDN);
        else mpfr_sub(mass, mass, low, MPFR_RNDN);
    }
    mpfr_div_ui(t, mass, a + s, MPFR_RNDN);
    mpfr_clears(mass, term, (mpfr_ptr)0);
}

// min_t max(gained, lost). One side rises and the other falls, so at whatever t the smaller is at most the bound and
// the larger at least: t needs no proof.
static void variation(const struct hm_restriction *r, struct hm_restricted_values *v)
{
    mpfr_prec_t precision = r->whole->weights->precision;
    struct hm_mpi t, gained, lost;
    struct hm_mpi *work[] = {&t, &gained, &lost};
    for (size_t i = 0; i < 3; i++) hm_mpi_init(work[i], precision);
    hm_weight(r->whole->weights, (size_t)r->first[0], &t);
    two_sides(r, v, &t, &gained, &lost);
    v->least = mpfr_lessequal_p(gained.hi, v->outside.lo);
    crossing(r, v, t.lo);
    mpfr_set(t.hi, t.lo, MPFR_RNDU);
    two_sides(r, v, &t, &gained, &lost);
    mpfr_set(v->tv.lo, mpfr_less_p(gained.lo, lost.lo) ? gained.lo : lost.lo, MPFR_RNDD);
    mpfr_set(v->tv.hi, mpfr_greater_p(gained.hi, lost.hi) ? gained.hi : lost.hi, MPFR_RNDU);
    hm_mpi_div(&v->tv, &v->tv, &r->whole->total);
    hm_mpi_clip_low(&v->tv, 0);
    hm_mpi_clip_high(&v->tv, 1);
    for (size_t i = 0; i < 3; i++) hm_mpi_clear(work[i]);
}

hm_status hm_restricted_values_at(const struct hm_restriction *r, mpfr_prec_t precision, struct hm_restricted_values *v,
                                  struct hm_error *err)
{
    hm_status status = hm_row_sums(r->whole, precision, err);
    if (status) return status;
    masses(r, v);
    if (r->first) variation(r, v);
    return HM_OK;
}
