// The weights of a row and their sums, computed once per precision: see row_state.h.
#include "certify/row_state.h"

#include <math.h>

hm_status hm_row_weights(struct hm_row *row, mpfr_prec_t precision, const struct hm_weights **out, struct hm_error *err)
{
    if (!row->weights || row->weights->precision < precision) {
        struct hm_weights *made = hm_weights_make(row->logits, row->vocab, row->top, row->temperature.value, precision);
        if (!made)
            return hm_fail(err, HM_MEMORY, "row of %zu logits at %ld bits: out of memory", row->vocab, (long)precision);
        hm_weights_free(row->weights);
        row->weights = made;
    }
    *out = row->weights;
    return HM_OK;
}

// sum of w_i (l_top - l_i) in both directions: differences of floats are exact in 288 bits, all terms are >= 0.
static void add_moment(const struct hm_row *row, const struct hm_weights *w, struct hm_mpi *moment)
{
    mpfr_t top, difference, term;
    mpfr_init2(top, 24);
    mpfr_init2(difference, 288);
    mpfr_init2(term, w->precision);
    mpfr_set_flt(top, row->top, MPFR_RNDN); // exact
    for (size_t i = 0; i < row->vocab; i++) {
        if (mpfr_zero_p(w->low[i]) || row->logits[i] == row->top) continue;
        mpfr_sub_d(difference, top, row->logits[i], MPFR_RNDN); // exact
        mpfr_mul(term, w->low[i], difference, MPFR_RNDD);
        mpfr_add(moment->lo, moment->lo, term, MPFR_RNDD);
        mpfr_mul(term, w->low[i], difference, MPFR_RNDU);
        mpfr_add(moment->hi, moment->hi, term, MPFR_RNDU);
    }
    mpfr_mul(moment->hi, moment->hi, w->factor, MPFR_RNDU);
    mpfr_clears(top, difference, term, (mpfr_ptr)0);
}

// From logits to nats, and what the remote tokens may add: t e^-t <= 2^28 e^-(2^28) < 2^-(2^28) for t >= 2^28.
static void finish_moment(const struct hm_row *row, const struct hm_weights *w, struct hm_mpi *moment)
{
    mpfr_div_q(moment->lo, moment->lo, row->temperature.value, MPFR_RNDD);
    mpfr_div_q(moment->hi, moment->hi, row->temperature.value, MPFR_RNDU);
    if (w->remote == 0) return;
    mpfr_t specks;
    mpfr_init2(specks, w->precision);
    mpfr_mul_ui(specks, w->speck, w->remote, MPFR_RNDU);
    mpfr_add(moment->hi, moment->hi, specks, MPFR_RNDU);
    mpfr_clear(specks);
}

hm_status hm_row_sums(struct hm_row *row, mpfr_prec_t precision, struct hm_error *err)
{
    if (row->sums_precision >= precision) return HM_OK;
    const struct hm_weights *w;
    hm_status status = hm_row_weights(row, precision, &w, err);
    if (status) return status;
    struct hm_weight_sum sum;
    hm_weight_sum_init(&sum, w);
    for (size_t i = 0; i < row->vocab; i++) hm_weight_sum_add(&sum, w, i);
    hm_mpi_clear(&row->total);
    hm_mpi_clear(&row->moment);
    hm_mpi_init(&row->total, w->precision);
    hm_mpi_init(&row->moment, w->precision);
    hm_weight_sum_get(&sum, w, &row->total);
    add_moment(row, w, &row->moment);
    finish_moment(row, w, &row->moment);
    hm_weight_sum_clear(&sum);
    row->sums_precision = w->precision;
    return HM_OK;
}

hm_status hm_row_tail(struct hm_row *row, size_t rank, mpfr_prec_t precision, struct hm_mpi *out, struct hm_error *err)
{
    hm_mpi_set_ui(out, 0);
    if (rank >= row->vocab) return HM_OK;
    const struct hm_weights *w;
    hm_status status = hm_row_weights(row, precision, &w, err);
    if (status) return status;
    uint64_t first = hm_row_key(row, (size_t)hm_row_token(row, rank));
    struct hm_weight_sum sum;
    hm_weight_sum_init(&sum, w);
    for (size_t i = 0; i < row->vocab; i++)
        if (hm_row_key(row, i) >= first) hm_weight_sum_add(&sum, w, i);
    hm_weight_sum_get(&sum, w, out);
    hm_weight_sum_clear(&sum);
    return HM_OK;
}
