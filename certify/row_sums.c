// Enclosures of one row's own figures: see row.h. Each comes from the filter if that is narrow; or else it is tried at 128
// bits, and these are doubled until it is narrow.
#include "bounds/ival_math.h"
#include "certify/row_state.h"

// A figure of a row at one precision, into *out.
typedef hm_status figure(struct hm_row *row, int32_t token, mpfr_prec_t precision, struct hm_mpi *out, struct hm_error *err);

static hm_status climb(struct hm_row *row, int32_t token, figure *f, struct hm_ival *out, struct hm_error *err)
{
    hm_status status = HM_OK;
    bool done = false;
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && !done; precision *= 2) {
        struct hm_mpi value;
        hm_mpi_init(&value, precision);
        status = f(row, token, precision, &value, err);
        if (status == HM_OK) *out = hm_mpi_ival(&value);
        done = status != HM_OK || hm_mpi_narrow(&value);
        hm_mpi_clear(&value);
    }
    return status;
}

static hm_status lse(struct hm_row *row, int32_t token, mpfr_prec_t precision, struct hm_mpi *out, struct hm_error *err)
{
    (void)token;
    hm_status status = hm_row_sums(row, precision, err);
    if (status) return status;
    struct hm_mpi top;
    hm_mpi_init(&top, precision);
    mpfr_set_flt(top.lo, row->top, MPFR_RNDD);
    mpfr_set_flt(top.hi, row->top, MPFR_RNDU);
    mpfr_div_q(top.lo, top.lo, row->temperature.value, MPFR_RNDD);
    mpfr_div_q(top.hi, top.hi, row->temperature.value, MPFR_RNDU);
    hm_mpi_log(out, &row->total);
    hm_mpi_add(out, out, &top);
    hm_mpi_clear(&top);
    return HM_OK;
}

// H = ln W + (sum of w_i t_i) / W with t_i = (l_max - l_i)/T: both terms are >= 0.
static hm_status entropy(struct hm_row *row, int32_t token, mpfr_prec_t precision, struct hm_mpi *out, struct hm_error *err)
{
    (void)token;
    hm_status status = hm_row_sums(row, precision, err);
    if (status) return status;
    struct hm_mpi mean;
    hm_mpi_init(&mean, precision);
    hm_mpi_div(&mean, &row->moment, &row->total);
    hm_mpi_log(out, &row->total);
    hm_mpi_add(out, out, &mean);
    hm_mpi_clip_low(out, 0);
    hm_mpi_clear(&mean);
    return HM_OK;
}

static hm_status probability(struct hm_row *row, int32_t token, mpfr_prec_t precision, struct hm_mpi *out,
                             struct hm_error *err)
{
    hm_status status = hm_row_sums(row, precision, err);
    if (status) return status;
    hm_weight(row->weights, (size_t)token, out);
    hm_mpi_div(out, out, &row->total);
    hm_mpi_clip_high(out, 1);
    return HM_OK;
}

static hm_status regret(struct hm_row *row, int32_t token, mpfr_prec_t precision, struct hm_mpi *out, struct hm_error *err)
{
    (void)precision, (void)err;
    mpfr_t top, difference;
    mpfr_init2(top, 24);
    mpfr_init2(difference, 288);
    mpfr_set_flt(top, row->top, MPFR_RNDN);
    mpfr_sub_d(difference, top, row->logits[token], MPFR_RNDN); // exact
    mpfr_div_q(out->lo, difference, row->temperature.value, MPFR_RNDD);
    mpfr_div_q(out->hi, difference, row->temperature.value, MPFR_RNDU);
    mpfr_clear(top);
    mpfr_clear(difference);
    return HM_OK;
}

static hm_status check_token(const struct hm_row *row, int32_t token, struct hm_error *err)
{
    if (token >= 0 && (size_t)token < row->vocab) return HM_OK;
    return hm_fail(err, HM_RANGE, "token: expected an id from 0 to %zu, found %ld", row->vocab - 1, (long)token);
}

// Is the filter's answer good enough?
static bool quick(struct hm_row *row, struct hm_ival found, struct hm_ival *out)
{
    bool narrow = hm_ival_narrow(found);
    if (narrow) *out = found;
    return hm_filter_count(row, narrow);
}

hm_status hm_row_lse(struct hm_row *row, struct hm_ival *out, struct hm_error *err)
{
    if (hm_filter_ready(row) && quick(row, hm_filter_lse(row), out)) return HM_OK;
    return climb(row, 0, lse, out, err);
}

hm_status hm_row_entropy(struct hm_row *row, struct hm_ival *out, struct hm_error *err)
{
    if (hm_filter_ready(row) && quick(row, hm_filter_row_entropy(row), out)) return HM_OK;
    return climb(row, 0, entropy, out, err);
}

hm_status hm_row_probability(struct hm_row *row, int32_t token, struct hm_ival *out, struct hm_error *err)
{
    hm_status status = check_token(row, token, err);
    if (status) return status;
    if (hm_filter_ready(row) && quick(row, hm_filter_probability(row, (size_t)token), out)) return HM_OK;
    return climb(row, token, probability, out, err);
}

hm_status hm_row_regret(struct hm_row *row, int32_t token, struct hm_ival *out, struct hm_error *err)
{
    hm_status status = check_token(row, token, err);
    return status ? status : climb(row, token, regret, out, err);
}
