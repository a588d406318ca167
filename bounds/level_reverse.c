// The geometric water level: see level.h, theory.md §2. The level x and the tied set T' are decided exactly: logits are
// binary floats, and 384 bits hold every sum of 2^31 of them. T only scales logits, so x is found before dividing by T.
#include "bounds/level.h"

#include <math.h>

enum { EXACT = 384, STEEP = 20 };

// The tied set and the sum of its logits; x = sum / count.
struct tied {
    size_t a, s;
    mpfr_t sum;
};

// Scans the ranks as level.c does, without rounding. On return T' holds A's first a and S's last s tokens, strictly
// above and below x.
static void scan(const struct hm_level_problem *p, struct tied *out)
{
    const float *logits = p->weights->logits;
    size_t n = p->k + p->m, r = 0;
    mpfr_t balance;
    mpfr_init2(balance, EXACT);
    mpfr_init2(out->sum, EXACT);
    mpfr_set_zero(out->sum, 1);
    for (size_t s = p->k; s < n; s++) mpfr_add_d(out->sum, out->sum, logits[p->tokens[s]], MPFR_RNDN);
    int sign = 1;
    for (; r < n; r++) { // the sum holds A's logits of rank < r and S's of rank >= r
        float l = logits[p->tokens[r]];
        out->a = r < p->k ? r : p->k;
        out->s = n - (r < p->k ? p->k : r);
        mpfr_set_flt(balance, l, MPFR_RNDN);
        mpfr_mul_ui(balance, balance, out->a + out->s, MPFR_RNDN);
        mpfr_sub(balance, out->sum, balance, MPFR_RNDN);
        sign = mpfr_sgn(balance);
        if (sign >= 0) break;
        if (r < p->k) mpfr_add_d(out->sum, out->sum, l, MPFR_RNDN);
        else mpfr_sub_d(out->sum, out->sum, l, MPFR_RNDN);
    }
    if (sign == 0) { // x is the logit of rank r: tokens of S equal to it are not strictly below
        float x = logits[p->tokens[r]];
        while (out->s > 0 && logits[p->tokens[n - out->s]] == x) {
            mpfr_sub_d(out->sum, out->sum, x, MPFR_RNDN);
            out->s--;
        }
    }
    mpfr_clear(balance);
}

// (x - logit)/T enclosed; the numerator sum - count * logit is exact.
static void from_level(const struct hm_level_problem *p, const struct tied *t, float logit, struct hm_mpi *out)
{
    mpfr_t numerator;
    mpfr_init2(numerator, EXACT);
    mpfr_set_flt(numerator, logit, MPFR_RNDN);
    mpfr_mul_ui(numerator, numerator, t->a + t->s, MPFR_RNDN);
    mpfr_sub(numerator, t->sum, numerator, MPFR_RNDN);
    hm_mpi_set_exact(out, numerator);
    hm_mpi_div_ui(out, out, t->a + t->s);
    mpfr_div_q(out->lo, out->lo, p->temperature, MPFR_RNDD);
    mpfr_div_q(out->hi, out->hi, p->temperature, MPFR_RNDU);
    mpfr_clear(numerator);
}

static void add_weights(const struct hm_level_problem *p, size_t from, size_t to, struct hm_mpi *sum)
{
    struct hm_weight_sum s;
    struct hm_mpi part;
    hm_mpi_init(&part, p->weights->precision);
    hm_weight_sum_init(&s, p->weights);
    for (size_t i = from; i < to; i++) hm_weight_sum_add(&s, p->weights, (size_t)p->tokens[i]);
    hm_weight_sum_get(&s, p->weights, &part);
    hm_mpi_add(sum, sum, &part);
    hm_weight_sum_clear(&s);
    hm_mpi_clear(&part);
}

// -ln of a share of the total, the share known to be <= 1.
static void minus_log_share(const struct hm_level_problem *p, struct hm_mpi *share)
{
    hm_mpi_div(share, share, p->total);
    hm_mpi_clip_high(share, 1);
    hm_mpi_log(share, share);
    hm_mpi_neg(share, share);
    hm_mpi_clip_low(share, 0);
}

// -ln(1 - lost), given lost W: keeps its relative accuracy when little is lost.
static void minus_log_rest(const struct hm_level_problem *p, struct hm_mpi *lost)
{
    hm_mpi_div(lost, lost, p->total);
    hm_mpi_neg(lost, lost);
    hm_mpi_log1p(lost, lost);
    hm_mpi_neg(lost, lost);
    hm_mpi_clip_low(lost, 0);
}

// -ln of a share that weights do not show, all that is left being 2^28 nats and more below the top: ranks [from, to), `copies`
// at the level x, and what is behind, which no token of the first n is below. Exponents relative to the largest of them.
static void minus_log_remote(const struct hm_level_problem *p, const struct tied *t, size_t from, size_t to, size_t copies,
                             size_t behind, struct hm_mpi *klr)
{
    const float *logits = p->weights->logits;
    mpfr_prec_t precision = p->weights->precision;
    struct hm_mpi u, shift, sum; // u, shift: (x - logit)/T
    hm_mpi_init(&u, precision);
    hm_mpi_init(&shift, precision);
    hm_mpi_init(&sum, precision);
    if (from < to) from_level(p, t, logits[p->tokens[from]], &shift);
    if (mpfr_sgn(shift.lo) > 0) hm_mpi_set_ui(&shift, 0);
    hm_mpi_exp(&sum, &shift);
    hm_mpi_mul_ui(&sum, &sum, copies);
    for (size_t i = from; i < to + (behind > 0); i++) {
        float l = logits[p->tokens[i < to ? i : p->k + p->m - 1]];
        if (l == -INFINITY) continue;
        from_level(p, t, l, &u);
        hm_mpi_sub(&u, &shift, &u);
        if (i < to && l == logits[p->tokens[from]] && !mpfr_zero_p(shift.lo)) hm_mpi_set_ui(&u, 0);
        hm_mpi_exp(&u, &u);
        if (i == to) {
            hm_mpi_mul_ui(&u, &u, behind);
            mpfr_set_zero(u.lo, 1);
        }
        hm_mpi_add(&sum, &sum, &u);
    }
    hm_mpi_log(&sum, &sum);
    hm_mpi_sub(&shift, &shift, &sum);
    from_level(p, t, p->top, &u);
    hm_mpi_sub(&shift, &shift, &u);
    hm_mpi_log(&sum, p->total);
    hm_mpi_add(&shift, &shift, &sum);
    hm_mpi_meet(klr, &shift);
    hm_mpi_clear(&u);
    hm_mpi_clear(&shift);
    hm_mpi_clear(&sum);
}

// Is it the distance that makes it wide, not its being small?
static bool remote(const struct hm_mpi *klr)
{
    return !hm_mpi_narrow(klr) && mpfr_cmp_ui(klr->lo, 1) > 0;
}

// Some p_s = 0 in S: the level is 0, A is given up whole.
static void no_level(const struct hm_level_problem *p, struct hm_level_values *out)
{
    size_t kept = p->k < p->support ? p->k : p->support, n = p->k + p->m;
    out->tied_r[0] = kept;
    out->tied_r[1] = n - (p->k > p->support ? p->k : p->support);
    mpfr_set_inf(out->level_r.lo, -1);
    mpfr_set_inf(out->level_r.hi, -1);
    if (kept == p->support) { // decided by support, not by subtraction
        mpfr_set_inf(out->klr.lo, 1);
        mpfr_set_inf(out->klr.hi, 1);
        return;
    }
    struct hm_mpi lost;
    hm_mpi_init(&lost, p->weights->precision);
    hm_mpi_set_ui(&out->klr, 0);
    add_weights(p, kept, n, &out->klr);
    hm_mpi_add(&out->klr, &out->klr, p->tail);
    minus_log_share(p, &out->klr);
    add_weights(p, 0, kept, &lost);
    minus_log_rest(p, &lost);
    hm_mpi_meet(&out->klr, &lost);
    hm_mpi_clear(&lost);
    if (!remote(&out->klr)) return;
    struct tied first = {.a = 1};
    mpfr_init2(first.sum, EXACT);
    mpfr_set_flt(first.sum, p->weights->logits[p->tokens[kept]], MPFR_RNDN);
    minus_log_remote(p, &first, kept, n, 0, 0, &out->klr);
    mpfr_clear(first.sum);
}

// (1 - Z) W = G sum over T' of (e^-u - 1 + u), for when -ln Z is too small to be read off Z. Tokens farther than 2^20
// from the level would overflow: nothing is then improved, and nothing needs to be.
static void improve(const struct hm_level_problem *p, const struct tied *t, const struct hm_mpi *g, struct hm_mpi *klr)
{
    const float *logits = p->weights->logits;
    size_t n = p->k + p->m;
    struct hm_mpi sum, u;
    hm_mpi_init(&sum, p->weights->precision);
    hm_mpi_init(&u, p->weights->precision);
    bool steep = false;
    for (size_t i = 0; i < n && !steep; i++) {
        if (i >= t->a && i < n - t->s) continue;
        from_level(p, t, logits[p->tokens[i]], &u);
        steep = mpfr_cmp_si_2exp(u.lo, -1, STEEP) < 0 || mpfr_cmp_si_2exp(u.hi, 1, STEEP) > 0;
        hm_mpi_exp_excess(&u, &u);
        hm_mpi_add(&sum, &sum, &u);
    }
    if (!steep) {
        hm_mpi_mul(&sum, &sum, g);
        minus_log_rest(p, &sum);
        hm_mpi_meet(klr, &sum);
    }
    hm_mpi_clear(&sum);
    hm_mpi_clear(&u);
}

void hm_level_reverse(const struct hm_level_problem *p, struct hm_level_values *out)
{
    const float *logits = p->weights->logits;
    size_t n = p->k + p->m;
    float last = logits[p->tokens[n - 1]];
    if (last == -INFINITY) {
        no_level(p, out);
        return;
    }
    if (last == p->top) { // all tied: p itself fails weakly, and ln g = ln p_(1)
        hm_mpi_set_ui(&out->klr, 0);
        hm_mpi_log(&out->level_r, p->total);
        hm_mpi_neg(&out->level_r, &out->level_r);
        out->tied_r[0] = out->tied_r[1] = 0;
        return;
    }
    struct tied t;
    struct hm_mpi g, log_total;
    hm_mpi_init(&g, p->weights->precision);
    hm_mpi_init(&log_total, p->weights->precision);
    scan(p, &t);
    out->tied_r[0] = t.a;
    out->tied_r[1] = t.s;
    from_level(p, &t, p->top, &g);
    hm_mpi_log(&log_total, p->total);
    hm_mpi_sub(&out->level_r, &g, &log_total);
    hm_mpi_exp(&g, &g);
    hm_mpi_mul_ui(&out->klr, &g, t.a + t.s);
    add_weights(p, t.a, n - t.s, &out->klr);
    hm_mpi_add(&out->klr, &out->klr, p->tail);
    minus_log_share(p, &out->klr);
    if (remote(&out->klr)) minus_log_remote(p, &t, t.a, n - t.s, t.a + t.s, p->support - n, &out->klr);
    else if (!hm_mpi_narrow(&out->klr)) improve(p, &t, &g, &out->klr);
    mpfr_clear(t.sum);
    hm_mpi_clear(&g);
    hm_mpi_clear(&log_total);
}
