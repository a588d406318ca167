// Weights of a row in MPFR: see weights.h.
//
// Error of one weight. t = (l_max - l_i)/T is rounded up in three steps at precision + 64 bits, so t is too large by at
// most 3 t 2^-(precision+63) <= 2^-(precision+33) for t <= 2^28; exp(-t) is rounded down once, relative 2^(1-precision).
// Together w_i <= low (1 + 2^(1-precision)) e^(2^-(precision+33)) <= low (1 + 2^(2-precision)).
#include "bounds/weights.h"

#include "base/memory.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, REMOTE = 28 };

// What the loop over a row needs besides the row: T as a fraction, room for t, and the last logits seen with their
// weight (bf16 rows repeat few values many times).
enum { MEMORY = 4096 };
struct worker {
    mpq_srcptr temperature;
    bool unit;              // T = 1
    mpfr_t top, t, remote;
    uint32_t key[MEMORY];
    size_t where[MEMORY];
};

static void distance_up(struct worker *k, float logit)
{
    mpfr_sub_d(k->t, k->top, logit, MPFR_RNDU);
    if (k->unit) return;
    mpfr_mul_z(k->t, k->t, mpq_denref(k->temperature), MPFR_RNDU);
    mpfr_div_z(k->t, k->t, mpq_numref(k->temperature), MPFR_RNDU);
}

static void make_weight(struct hm_weights *w, struct worker *k, size_t i)
{
    float logit = w->logits[i];
    if (logit == -INFINITY) {
        mpfr_set_zero(w->low[i], 1);
        return;
    }
    uint32_t bits;
    memcpy(&bits, &logit, sizeof bits);
    size_t slot = (bits * UINT32_C(2654435761)) >> 20;
    if (k->where[slot] > 0 && k->key[slot] == bits) {
        mpfr_set(w->low[i], w->low[k->where[slot] - 1], MPFR_RNDD);
        return;
    }
    distance_up(k, logit);
    if (mpfr_greaterequal_p(k->t, k->remote)) {
        mpfr_set_zero(w->low[i], 1);
        w->remote++;
        return;
    }
    mpfr_neg(k->t, k->t, MPFR_RNDD);
    mpfr_exp(w->low[i], k->t, MPFR_RNDD);
    k->key[slot] = bits;
    k->where[slot] = i + 1;
}

static bool allocate(struct hm_weights *w)
{
    size_t limbs = mpfr_custom_get_size(w->precision) / sizeof *w->limbs, all;
    w->low = hm_calloc(w->count, sizeof *w->low);
    if (!w->low || !hm_mul_size(w->count, limbs, &all)) return false;
    w->limbs = hm_calloc(all, sizeof *w->limbs);
    if (!w->limbs) return false;
    for (size_t i = 0; i < w->count; i++)
        mpfr_custom_init_set(w->low[i], MPFR_ZERO_KIND, 0, w->precision, w->limbs + i * limbs);
    return true;
}

struct hm_weights *hm_weights_make(const float *logits, size_t count, float top, mpq_srcptr temperature,
                                   mpfr_prec_t precision)
{
    struct hm_weights *w = hm_calloc(1, sizeof *w);
    struct worker *k = hm_calloc(1, sizeof *k);
    if (w) {
        *w = (struct hm_weights){.count = count, .precision = precision, .logits = logits};
        mpfr_init2(w->factor, precision);
        mpfr_init2(w->speck, precision);
        mpfr_set_ui_2exp(w->factor, 1, 2 - precision, MPFR_RNDU);
        mpfr_add_ui(w->factor, w->factor, 1, MPFR_RNDU);
        mpfr_set_ui_2exp(w->speck, 1, -(1L << REMOTE), MPFR_RNDU);
    }
    if (!w || !k || !allocate(w)) {
        hm_weights_free(w);
        free(k);
        return NULL;
    }
    k->temperature = temperature;
    k->unit = mpq_cmp_ui(temperature, 1, 1) == 0;
    mpfr_inits2(precision + GUARD, k->top, k->t, k->remote, (mpfr_ptr)0);
    mpfr_set_flt(k->top, top, MPFR_RNDU);
    mpfr_set_ui_2exp(k->remote, 1, REMOTE, MPFR_RNDU);
    for (size_t i = 0; i < count; i++) make_weight(w, k, i);
    mpfr_clears(k->top, k->t, k->remote, (mpfr_ptr)0);
    free(k);
    return w;
}

void hm_weights_free(struct hm_weights *w)
{
    if (!w) return;
    mpfr_clear(w->factor);
    mpfr_clear(w->speck);
    free(w->low);
    free(w->limbs);
    free(w);
}

void hm_weight(const struct hm_weights *w, size_t i, struct hm_mpi *out)
{
    mpfr_set(out->lo, w->low[i], MPFR_RNDD);
    if (mpfr_zero_p(w->low[i])) {
        if (w->logits[i] == -INFINITY) mpfr_set_zero(out->hi, 1);
        else mpfr_set(out->hi, w->speck, MPFR_RNDU);
    } else if (mpfr_cmp_ui(w->low[i], 1) == 0) {
        mpfr_set(out->hi, w->low[i], MPFR_RNDU);
    } else {
        mpfr_mul(out->hi, w->low[i], w->factor, MPFR_RNDU);
    }
}

void hm_weight_sum_init(struct hm_weight_sum *s, const struct hm_weights *w)
{
    mpfr_init2(s->down, w->precision);
    mpfr_init2(s->raw_up, w->precision);
    mpfr_set_zero(s->down, 1);
    mpfr_set_zero(s->raw_up, 1);
    s->remote = s->ones = 0;
}

void hm_weight_sum_clear(struct hm_weight_sum *s)
{
    mpfr_clear(s->down);
    mpfr_clear(s->raw_up);
}

void hm_weight_sum_add(struct hm_weight_sum *s, const struct hm_weights *w, size_t i)
{
    if (mpfr_zero_p(w->low[i])) {
        s->remote += w->logits[i] != -INFINITY;
    } else if (mpfr_cmp_ui(w->low[i], 1) == 0) {
        s->ones++;
    } else {
        mpfr_add(s->down, s->down, w->low[i], MPFR_RNDD);
        mpfr_add(s->raw_up, s->raw_up, w->low[i], MPFR_RNDU);
    }
}

void hm_weight_sum_get(const struct hm_weight_sum *s, const struct hm_weights *w, struct hm_mpi *out)
{
    mpfr_t specks;
    mpfr_init2(specks, w->precision);
    mpfr_mul_ui(specks, w->speck, s->remote, MPFR_RNDU);
    mpfr_add_ui(out->lo, s->down, s->ones, MPFR_RNDD);
    mpfr_mul(out->hi, s->raw_up, w->factor, MPFR_RNDU);
    mpfr_add(out->hi, out->hi, specks, MPFR_RNDU);
    mpfr_add_ui(out->hi, out->hi, s->ones, MPFR_RNDU);
    mpfr_clear(specks);
}

struct hm_crossing hm_weights_cross(const struct hm_weights *w, const int32_t *tokens, size_t count,
                                    const struct hm_mpi *target, enum hm_crossing_kind kind)
{
    struct hm_crossing at = {0, count + 1};
    mpfr_t down, up, not_yet;
    mpfr_inits2(w->precision, down, up, not_yet, (mpfr_ptr)0);
    mpfr_set_zero(down, 1);
    mpfr_set_zero(up, 1);
    // The true sum is at most up * factor + remote * speck, so it cannot have crossed while up is below this.
    mpfr_mul_ui(not_yet, w->speck, w->remote, MPFR_RNDU);
    mpfr_sub(not_yet, target->lo, not_yet, MPFR_RNDD);
    mpfr_div(not_yet, not_yet, w->factor, MPFR_RNDD);
    for (size_t i = 0; i < count && at.most > count; i++) {
        mpfr_srcptr low = w->low[tokens[i]];
        mpfr_add(down, down, low, MPFR_RNDD);
        mpfr_add(up, up, low, MPFR_RNDU);
        bool may = kind == HM_REACHES ? mpfr_greaterequal_p(up, not_yet) : mpfr_greater_p(up, not_yet);
        if (may && at.least == 0) at.least = i + 1;
        if (kind == HM_REACHES ? mpfr_greaterequal_p(down, target->hi) : mpfr_greater_p(down, target->hi)) at.most = i + 1;
    }
    if (at.least == 0) at.least = at.most;
    mpfr_clears(down, up, not_yet, (mpfr_ptr)0);
    return at;
}
