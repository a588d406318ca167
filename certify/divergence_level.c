// The least divergence at which coverage can fail, at one precision: see divergence_state.h, theory.md §2 "Other
// divergences".
//
// p^a is proportional to the weights at temperature T/a, so the level of order a is the arithmetic level of those
// (bounds/level.h). For a < 0 the order turns round: the logits are negated, S becomes the accepted set and A the
// rejected one. The sums A and S lose to the level need no membership: min and max clip.
#include "certify/divergence_state.h"

#include "base/memory.h"
#include "bounds/ival_math.h"
#include "bounds/level.h"

#include <math.h>
#include <stdlib.h>

// The first k + m tokens alone, as a row at temperature T/|a|.
struct head {
    size_t k, m;
    int32_t *tokens, *places; // [k + m] tokens of p; which entry of `logits` plays each rank
    float *logits;            // [k + m], negated for a < 0
    mpq_t temperature;
};

static void head_clear(struct head *h)
{
    mpq_clear(h->temperature);
    free(h->tokens);
    free(h->places);
    free(h->logits);
}

static hm_status head_make(struct hm_row *p, size_t k, size_t m, mpq_srcptr a, struct head *h, struct hm_error *err)
{
    size_t n = k + m;
    bool turned = mpq_sgn(a) < 0;
    *h = (struct head){.k = turned ? m : k, .m = turned ? k : m};
    mpq_init(h->temperature);
    mpq_div(h->temperature, p->temperature.value, a);
    mpq_abs(h->temperature, h->temperature);
    h->tokens = hm_row_first(p, n);
    h->places = hm_calloc(n, sizeof *h->places);
    h->logits = hm_calloc(n, sizeof *h->logits);
    if (!h->tokens || !h->places || !h->logits) return hm_fail(err, HM_MEMORY, "order of %zu logits: out of memory", n);
    for (size_t i = 0; i < n; i++) {
        float l = p->logits[h->tokens[i]];
        h->places[i] = (int32_t)(turned ? n - 1 - i : i);
        h->logits[i] = turned ? -l : l;
    }
    return HM_OK;
}

// ln(u/p_(1)), and the tokens surely off the level. No logit is -inf when a < 0.
static bool log_level(const struct head *h, const struct hm_row *p, mpq_srcptr a, struct hm_mpi *out, size_t tied[2])
{
    size_t n = h->k + h->m, support = 0;
    mpfr_prec_t precision = mpfr_get_prec(out->lo);
    float top = h->logits[h->places[0]];
    for (size_t i = 0; i < n; i++) support += h->logits[i] != -INFINITY;
    struct hm_weights *weights = hm_weights_make(h->logits, n, top, h->temperature, precision);
    if (!weights) return false;
    struct hm_level_values v;
    struct hm_mpi one, none;
    hm_level_values_init(&v, precision);
    hm_mpi_init(&one, precision);
    hm_mpi_init(&none, precision);
    hm_mpi_set_ui(&one, 1);
    struct hm_level_problem problem = {.weights = weights, .tokens = h->places, .k = h->k, .m = h->m, .support = support,
                                       .top = top, .temperature = h->temperature, .total = &one, .tail = &none};
    bool good = hm_level_forward(&problem, &v), turned = mpq_sgn(a) < 0;
    hm_mpi_log(out, &v.level_f);
    if (turned) mpfr_swap(out->lo, out->hi);
    mpfr_div_q(out->lo, out->lo, a, MPFR_RNDD);
    mpfr_div_q(out->hi, out->hi, a, MPFR_RNDU);
    if (turned) { // so far relative to p_(k+m)
        mpfr_t exact;
        mpfr_init2(exact, 288);
        mpfr_set_flt(exact, -top, MPFR_RNDN);
        mpfr_sub_d(exact, exact, p->top, MPFR_RNDN);
        mpfr_div_q(one.lo, exact, p->temperature.value, MPFR_RNDD);
        mpfr_div_q(one.hi, exact, p->temperature.value, MPFR_RNDU);
        hm_mpi_add(out, out, &one);
        mpfr_clear(exact);
    }
    if (tied) {
        tied[0] = v.tied_f[turned];
        tied[1] = v.tied_f[!turned];
    }
    hm_mpi_clear(&one);
    hm_mpi_clear(&none);
    hm_level_values_clear(&v);
    hm_weights_free(weights);
    return good;
}

// The same in double, weights in units of the top's.
static struct hm_ival log_normaliser_ival(struct hm_row *p, const struct head *h, size_t k, struct hm_ival level)
{
    struct hm_ival top = hm_filter_top(p), total = hm_ival_div(p->filter.total, top), change = {0, 0};
    struct hm_ival left = hm_ival_div(hm_filter_tail(p, h->k + h->m), top);
    for (size_t i = 0; i < h->k + h->m; i++) {
        struct hm_ival weight = hm_ival_div(hm_filter_weight(p, (size_t)h->tokens[i]), top);
        if (p->logits[h->tokens[i]] == p->top) weight = hm_ival_point(1);
        struct hm_ival kept = i < k ? hm_ival_min(weight, level) : hm_ival_max(weight, level);
        left = hm_ival_add(left, kept);
        change = hm_ival_add(change, hm_ival_sub(kept, weight));
    }
    return hm_ival_meet(hm_ival_log1p(hm_ival_div(change, total)), hm_ival_log(hm_ival_div(left, total)));
}

static void log_share(struct hm_mpi *x, const struct hm_row *p)
{
    hm_mpi_div(x, x, &p->total);
    hm_mpi_log(x, x);
}

// What token i leaves to Z, as an exponent: of min(w, U) in A, max(w, U) in S, w behind them; without U nothing in A.
static void left_exponent(const struct hm_row *p, size_t i, const uint64_t border[2], const struct hm_mpi *log_level,
                          mpfr_ptr exact, struct hm_mpi *e)
{
    uint64_t key = hm_row_key(p, i);
    mpfr_set_flt(exact, p->logits[i], MPFR_RNDN);
    mpfr_sub_d(exact, exact, p->top, MPFR_RNDN);
    mpfr_div_q(e->lo, exact, p->temperature.value, MPFR_RNDD);
    mpfr_div_q(e->hi, exact, p->temperature.value, MPFR_RNDU);
    if (key >= border[1]) return;
    if (!log_level) {
        mpfr_set_inf(e->lo, -1);
        mpfr_set_inf(e->hi, -1);
    } else if (key < border[0]) {
        mpfr_min(e->lo, e->lo, log_level->lo, MPFR_RNDD);
        mpfr_min(e->hi, e->hi, log_level->hi, MPFR_RNDU);
    } else {
        mpfr_max(e->lo, e->lo, log_level->lo, MPFR_RNDD);
        mpfr_max(e->hi, e->hi, log_level->hi, MPFR_RNDU);
    }
}

// ln Z where all that is left is 2^28 nats and more below the top, so that weights do not show it: relative to the largest.
static void log_left_remote(struct hm_row *p, size_t k, size_t n, const struct hm_mpi *log_level, struct hm_mpi *out)
{
    uint64_t border[2] = {hm_row_key(p, (size_t)hm_row_token(p, k)), UINT64_MAX};
    if (n < p->vocab) border[1] = hm_row_key(p, (size_t)hm_row_token(p, n));
    mpfr_prec_t precision = mpfr_get_prec(out->lo);
    struct hm_mpi e, most, sum;
    mpfr_t exact;
    mpfr_init2(exact, 288);
    hm_mpi_init(&e, precision);
    hm_mpi_init(&most, precision);
    hm_mpi_init(&sum, precision);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < p->vocab; i++) {
            left_exponent(p, i, border, log_level, exact, &e);
            if (pass == 0 && (i == 0 || mpfr_greater_p(e.hi, most.hi))) hm_mpi_set_exact(&most, e.hi);
            if (pass == 0) continue;
            hm_mpi_sub(&e, &e, &most);
            hm_mpi_exp(&e, &e);
            hm_mpi_add(&sum, &sum, &e);
        }
    }
    hm_mpi_div(&sum, &sum, &p->total);
    hm_mpi_log(&sum, &sum);
    hm_mpi_add(&sum, &sum, &most);
    hm_mpi_meet(out, &sum);
    mpfr_clear(exact);
    hm_mpi_clear(&e);
    hm_mpi_clear(&most);
    hm_mpi_clear(&sum);
}

static bool remote(const struct hm_mpi *log_left)
{
    return !hm_mpi_narrow(log_left) && mpfr_cmp_si(log_left->hi, -1) < 0;
}

// ln Z from what is lost, Z = 1 - (sum_A (w - U)^+ - sum_S (U - w)^+)/W, and from what is left, to which the tail and all
// of min(w, U) and max(w, U) belong: the first is good near Z = 1, the second near 0.
static hm_status log_normaliser(struct hm_row *p, const struct head *h, size_t k, mpfr_prec_t precision,
                                const struct hm_mpi *level, const struct hm_mpi *log_level, struct hm_mpi *out,
                                struct hm_error *err)
{
    struct hm_mpi weight, change, left;
    struct hm_mpi *work[] = {&weight, &change, &left};
    for (size_t i = 0; i < 3; i++) hm_mpi_init(work[i], precision);
    hm_status status = hm_row_tail(p, h->k + h->m, precision, &left, err);
    hm_mpi_set_ui(&change, 0);
    for (size_t i = 0; i < h->k + h->m && status == HM_OK; i++) {
        hm_weight(p->weights, (size_t)h->tokens[i], &weight);
        struct hm_mpi *kept = out; // room: min or max of the two
        bool low = i < k ? mpfr_less_p(weight.lo, level->lo) : mpfr_greater_p(weight.lo, level->lo);
        bool high = i < k ? mpfr_less_p(weight.hi, level->hi) : mpfr_greater_p(weight.hi, level->hi);
        mpfr_set(kept->lo, low ? weight.lo : level->lo, MPFR_RNDD);
        mpfr_set(kept->hi, high ? weight.hi : level->hi, MPFR_RNDU);
        hm_mpi_add(&left, &left, kept);
        hm_mpi_sub(&weight, level, &weight); // negative in A, positive in S, else clipped
        if (i < k) hm_mpi_clip_high(&weight, 0);
        else hm_mpi_clip_low(&weight, 0);
        hm_mpi_add(&change, &change, &weight);
    }
    if (status == HM_OK) {
        log_share(&left, p);
        hm_mpi_div(out, &change, &p->total);
        hm_mpi_log1p(out, out);
        hm_mpi_meet(out, &left);
        if (remote(out)) log_left_remote(p, k, h->k + h->m, log_level, out);
    }
    for (size_t i = 0; i < 3; i++) hm_mpi_clear(work[i]);
    return status;
}

// From ln Z to the divergence: a/(a-1) ln Z, or -ln Z the other way round.
static void finish(const struct hm_power *power, struct hm_mpi *x)
{
    mpq_t factor;
    mpq_init(factor);
    mpq_set_si(factor, -1, 1);
    if (!power->reversed) {
        mpq_add(factor, power->a, factor);
        mpq_div(factor, power->a, factor);
    }
    if (mpq_sgn(factor) < 0) {
        mpq_neg(factor, factor);
        hm_mpi_neg(x, x);
    }
    hm_mpi_clip_low(x, 0);
    hm_mpi_mul_q(x, x, factor);
    mpq_clear(factor);
}

// a < 0 with an empty token in S: the level is 0 and A is given up whole.
static hm_status give_up(struct hm_row *p, size_t k, mpfr_prec_t precision, struct hm_mpi *out, struct hm_error *err)
{
    if (p->support <= k) { // by support, not by subtraction
        mpfr_set_inf(out->lo, -1);
        mpfr_set_inf(out->hi, -1);
        return HM_OK;
    }
    hm_status status = hm_row_tail(p, k, precision, out, err);
    if (status == HM_OK) log_share(out, p);
    if (status == HM_OK && remote(out)) log_left_remote(p, k, k, NULL, out);
    return status;
}

static hm_status power_level(const struct hm_power *power, struct hm_row *p, size_t k, size_t m, mpfr_prec_t precision,
                             struct hm_mpi *out, size_t tied[2], bool *good, struct hm_error *err)
{
    bool empty = p->logits[hm_row_token(p, k + m - 1)] == -INFINITY;
    struct head head;
    hm_status status;
    if (empty && mpq_sgn(power->a) < 0) {
        status = give_up(p, k, precision, out, err);
        finish(power, out);
        return status;
    }
    status = head_make(p, k, m, power->a, &head, err);
    if (status == HM_OK) {
        struct hm_mpi level, log;
        hm_mpi_init(&level, precision);
        hm_mpi_init(&log, precision);
        *good = log_level(&head, p, power->a, &log, tied);
        hm_mpi_exp(&level, &log);
        if (*good) status = log_normaliser(p, &head, k, precision, &level, &log, out, err);
        hm_mpi_clear(&level);
        hm_mpi_clear(&log);
    }
    head_clear(&head);
    finish(power, out);
    return status;
}

// ln(1 + sum_S (p_(1) - p_s)); the largest weight is 1.
static void max_level(struct hm_row *p, size_t k, size_t m, struct hm_mpi *out)
{
    struct hm_mpi weight, one;
    hm_mpi_init(&weight, mpfr_get_prec(out->lo));
    hm_mpi_init(&one, mpfr_get_prec(out->lo));
    hm_mpi_set_ui(&one, 1);
    hm_mpi_set_ui(out, 0);
    for (size_t i = k; i < k + m; i++) {
        hm_weight(p->weights, (size_t)hm_row_token(p, i), &weight);
        hm_mpi_sub(&weight, &one, &weight);
        hm_mpi_clip_low(&weight, 0);
        hm_mpi_add(out, out, &weight);
    }
    hm_mpi_div(out, out, &p->total);
    hm_mpi_log1p(out, out);
    hm_mpi_clear(&weight);
    hm_mpi_clear(&one);
}

static void spread_level(struct hm_row *p, size_t rank, struct hm_mpi *out)
{
    float last = p->logits[hm_row_token(p, rank)];
    mpfr_t exact;
    mpfr_init2(exact, 288);
    mpfr_set_flt(exact, p->top, MPFR_RNDN);
    mpfr_sub_d(exact, exact, last, MPFR_RNDN); // +inf where the last is empty
    mpfr_div_q(out->lo, exact, p->temperature.value, MPFR_RNDD);
    mpfr_div_q(out->hi, exact, p->temperature.value, MPFR_RNDU);
    mpfr_clear(exact);
}

hm_status hm_divergence_level_at(const struct hm_divergence *d, struct hm_row *p, size_t k, size_t m, mpfr_prec_t precision,
                                 struct hm_mpi *out, size_t tied[2], bool *good, struct hm_error *err)
{
    struct hm_power power;
    if (tied) tied[0] = tied[1] = 0;
    *good = true;
    hm_mpi_set_ui(out, 0);
    if (p->logits[hm_row_token(p, k + m - 1)] == p->top) return HM_OK; // all tied: p itself fails weakly
    if (d->kind == HM_DIVERGENCE_SPREAD) {
        spread_level(p, k + m - 1, out);
        return HM_OK;
    }
    hm_status status = hm_row_sums(p, precision, err);
    if (status) return status;
    if (d->kind == HM_DIVERGENCE_MAX) {
        max_level(p, k, m, out);
    } else {
        hm_divergence_power(d, &power);
        status = power_level(&power, p, k, m, precision, out, tied, good, err);
        mpq_clear(power.a);
    }
    return status;
}

// The level is MPFR's, of the first k + m tokens alone; the rest of the row is the filter's.
static bool power_level_filter(const struct hm_power *power, struct hm_row *p, size_t k, size_t m, struct hm_ival *out)
{
    struct head head;
    struct hm_mpi level;
    if (mpq_sgn(power->a) < 0 && p->logits[hm_row_token(p, k + m - 1)] == -INFINITY) {
        if (p->support <= k) return false;
        *out = hm_ival_log(hm_ival_div(hm_filter_tail(p, k), p->filter.total));
        return true;
    }
    hm_mpi_init(&level, HM_PRECISION_FIRST);
    bool good = head_make(p, k, m, power->a, &head, NULL) == HM_OK && log_level(&head, p, power->a, &level, NULL);
    if (good) {
        hm_mpi_exp(&level, &level);
        *out = log_normaliser_ival(p, &head, k, hm_mpi_ival(&level));
    }
    head_clear(&head);
    hm_mpi_clear(&level);
    return good;
}

static struct hm_ival max_level_ival(struct hm_row *p, size_t k, size_t m)
{
    struct hm_ival top = hm_filter_top(p), gap = {0, 0};
    for (size_t i = k; i < k + m; i++) {
        size_t token = (size_t)hm_row_token(p, i);
        if (p->logits[token] != p->top) gap = hm_ival_add(gap, hm_ival_sub(top, hm_filter_weight(p, token)));
    }
    return hm_ival_log1p(hm_ival_div(gap, p->filter.total));
}

bool hm_divergence_level_filter(const struct hm_divergence *d, struct hm_row *p, size_t k, size_t m, struct hm_ival *out)
{
    struct hm_power power;
    if (d->kind == HM_DIVERGENCE_SPREAD || p->logits[hm_row_token(p, k + m - 1)] == p->top) return false; // exact, and cheap
    if (!hm_filter_ready(p)) return false;
    if (!hm_divergence_power(d, &power)) {
        *out = max_level_ival(p, k, m);
    } else {
        bool good = power_level_filter(&power, p, k, m, out);
        struct hm_ival a = hm_ival_rational(power.a), factor = {-1, -1};
        if (!power.reversed) {
            mpq_t rest;
            mpq_init(rest);
            mpq_set_si(rest, 1, 1);
            mpq_sub(rest, power.a, rest);
            factor = hm_ival_div(a, hm_ival_rational(rest));
            mpq_clear(rest);
        }
        mpq_clear(power.a);
        if (!good) return false;
        *out = hm_ival_mul(*out, factor);
    }
    *out = hm_ival_max(*out, hm_ival_point(0));
    return out->hi < INFINITY;
}
