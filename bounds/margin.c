// Margin-only bounds: see level.h, theory.md §3, in the forms in which nothing cancels.
#include "bounds/level.h"

#include <math.h>

void hm_margin_values_init(struct hm_margin_values *v, mpfr_prec_t precision)
{
    struct hm_mpi *all[] = {&v->gap, &v->klf, &v->klr, &v->tv};
    for (size_t i = 0; i < 4; i++) hm_mpi_init(all[i], precision);
}

void hm_margin_values_clear(struct hm_margin_values *v)
{
    struct hm_mpi *all[] = {&v->gap, &v->klf, &v->klr, &v->tv};
    for (size_t i = 0; i < 4; i++) hm_mpi_clear(all[i]);
}

// w_i - w_j for logits l_i >= l_j as w_i (1 - e^-(l_i - l_j)/T): relative accuracy however close they are.
static void weight_drop(const struct hm_level_problem *p, size_t i, size_t j, struct hm_mpi *out)
{
    const float *logits = p->weights->logits;
    if (logits[i] == logits[j]) {
        hm_mpi_set_ui(out, 0);
        return;
    }
    hm_weight(p->weights, i, out);
    if (logits[j] == -INFINITY) return;
    struct hm_mpi factor;
    mpfr_t difference;
    hm_mpi_init(&factor, p->weights->precision);
    mpfr_init2(difference, 288);
    mpfr_set_flt(difference, logits[j], MPFR_RNDN);
    mpfr_sub_d(difference, difference, logits[i], MPFR_RNDN); // exact, negative
    mpfr_div_q(factor.lo, difference, p->temperature, MPFR_RNDD);
    mpfr_div_q(factor.hi, difference, p->temperature, MPFR_RNDU);
    hm_mpi_expm1(&factor, &factor);
    hm_mpi_neg(&factor, &factor);
    hm_mpi_mul(out, out, &factor);
    mpfr_clear(difference);
    hm_mpi_clear(&factor);
}

// (1 - k y) W = sum_{i<=k} (w_i - w_k) + sum_{i>k} w_i + k w_(k+1).
static void kept_mass(const struct hm_level_problem *p, struct hm_mpi *out)
{
    struct hm_mpi term;
    size_t last = (size_t)p->tokens[p->k - 1];
    hm_mpi_init(&term, p->weights->precision);
    hm_weight(p->weights, (size_t)p->tokens[p->k], out);
    hm_mpi_mul_ui(out, out, p->k);
    for (size_t i = 0; i < p->k; i++) {
        if (p->weights->logits[p->tokens[i]] == p->weights->logits[last]) break; // the rest equals the last
        weight_drop(p, (size_t)p->tokens[i], last, &term);
        hm_mpi_add(out, out, &term);
    }
    for (size_t i = p->k; i < p->k + p->m; i++) {
        hm_weight(p->weights, (size_t)p->tokens[i], &term);
        hm_mpi_add(out, out, &term);
    }
    hm_mpi_add(out, out, p->tail);
    hm_mpi_clear(&term);
}

// ln of the same share where all but the k tied tokens of the top are remote: w_(k+1) (k + sum of e^(l_i - l_(k+1))/T over
// the tokens behind the k), relative to w_(k+1).
static void log_kept_remote(const struct hm_level_problem *p, struct hm_mpi *out)
{
    const float *logits = p->weights->logits;
    float next = logits[p->tokens[p->k]];
    mpfr_prec_t precision = p->weights->precision;
    struct hm_mpi sum, term;
    mpfr_t difference;
    mpfr_init2(difference, 288);
    hm_mpi_init(&sum, precision);
    hm_mpi_init(&term, precision);
    hm_mpi_set_ui(&sum, p->k);
    for (size_t i = 0; i < p->weights->count; i++) {
        if (logits[i] > next || logits[i] == -INFINITY) continue;
        mpfr_set_flt(difference, logits[i], MPFR_RNDN);
        mpfr_sub_d(difference, difference, next, MPFR_RNDN); // exact
        mpfr_div_q(term.lo, difference, p->temperature, MPFR_RNDD);
        mpfr_div_q(term.hi, difference, p->temperature, MPFR_RNDU);
        hm_mpi_exp(&term, &term);
        hm_mpi_add(&sum, &sum, &term);
    }
    hm_mpi_div(&sum, &sum, p->total);
    hm_mpi_log(&sum, &sum);
    mpfr_set_flt(difference, next, MPFR_RNDN);
    mpfr_sub_d(difference, difference, p->top, MPFR_RNDN);
    mpfr_div_q(term.lo, difference, p->temperature, MPFR_RNDD);
    mpfr_div_q(term.hi, difference, p->temperature, MPFR_RNDU);
    hm_mpi_add(out, &sum, &term);
    mpfr_clear(difference);
    hm_mpi_clear(&sum);
    hm_mpi_clear(&term);
}

// psi(v) = (1+v) ln(1+v) - v = v^2/2 - ..., written (1+v) ln(1+v) - v with ln(1+v) given; >= 0.
static void psi(const struct hm_mpi *v, const struct hm_mpi *one_plus, const struct hm_mpi *log, struct hm_mpi *out)
{
    bool maybe_none = mpfr_sgn(one_plus->lo) <= 0 && mpfr_cmp_d(one_plus->hi, 0.25) < 0;
    if (maybe_none) { // x ln x falls from 0 up to x = 1/e; the product of the two enclosures would be the whole line
        mpfr_log(out->lo, one_plus->hi, MPFR_RNDD);
        mpfr_mul(out->lo, out->lo, one_plus->hi, MPFR_RNDD);
        mpfr_set_zero(out->hi, 1);
    } else {
        hm_mpi_mul(out, one_plus, log);
    }
    hm_mpi_sub(out, out, v);
    hm_mpi_clip_low(out, 0);
}

void hm_margin_bounds(const struct hm_level_problem *p, struct hm_margin_values *out)
{
    const float *logits = p->weights->logits;
    size_t k = p->k, m = p->m, last = (size_t)p->tokens[k - 1], next = (size_t)p->tokens[k];
    struct hm_mpi *all[] = {&out->gap, &out->klf, &out->klr, &out->tv};
    if (logits[last] == logits[next]) {
        for (size_t i = 0; i < 4; i++) hm_mpi_set_ui(all[i], 0);
        return;
    }
    struct hm_mpi up, one_up, log_up, down, kept, log_kept, term;
    struct hm_mpi *work[] = {&up, &one_up, &log_up, &down, &kept, &log_kept, &term};
    for (size_t i = 0; i < 7; i++) hm_mpi_init(work[i], p->weights->precision);
    weight_drop(p, last, next, &out->gap);
    hm_mpi_div(&out->gap, &out->gap, p->total);
    hm_mpi_mul_ui(&up, &out->gap, m);   // m y
    hm_mpi_mul_ui(&down, &out->gap, k); // k y
    hm_mpi_mul_ui(&out->tv, &up, k);
    hm_mpi_div_ui(&out->tv, &out->tv, k + m);
    hm_mpi_set_ui(&one_up, 1);
    hm_mpi_add(&one_up, &one_up, &up);
    hm_mpi_log1p(&log_up, &up);
    psi(&up, &one_up, &log_up, &out->klf); // k psi(m y)
    hm_mpi_mul_ui(&out->klf, &out->klf, k);
    hm_mpi_sub(&out->klr, &up, &log_up);   // k (m y - ln(1 + m y))
    hm_mpi_clip_low(&out->klr, 0);
    hm_mpi_mul_ui(&out->klr, &out->klr, k);
    hm_mpi_neg(&down, &down);
    bool nothing_kept = logits[next] == -INFINITY && logits[last] == p->top; // 1 - k y = 0 exactly
    if (nothing_kept) {
        hm_mpi_set_ui(&term, m); // psi(-1) = 1
        hm_mpi_add(&out->klf, &out->klf, &term);
        mpfr_set_inf(out->klr.lo, 1);
        mpfr_set_inf(out->klr.hi, 1);
    } else {
        kept_mass(p, &kept);
        hm_mpi_div(&kept, &kept, p->total);
        if (mpfr_cmp_d(down.lo, -0.5) > 0) hm_mpi_log1p(&log_kept, &down);
        else hm_mpi_log(&log_kept, &kept);
        bool tied = logits[last] == p->top && logits[next] != -INFINITY;
        if (tied && !hm_mpi_narrow(&log_kept)) log_kept_remote(p, &log_kept);
        psi(&down, &kept, &log_kept, &term); // m psi(-k y)
        hm_mpi_mul_ui(&term, &term, m);
        hm_mpi_add(&out->klf, &out->klf, &term);
        hm_mpi_sub(&term, &down, &log_kept); // m (-k y - ln(1 - k y))
        hm_mpi_clip_low(&term, 0);
        hm_mpi_mul_ui(&term, &term, m);
        hm_mpi_add(&out->klr, &out->klr, &term);
        hm_mpi_div_ui(&out->klr, &out->klr, k + m);
    }
    hm_mpi_div_ui(&out->klf, &out->klf, k + m);
    for (size_t i = 0; i < 7; i++) hm_mpi_clear(work[i]);
}
