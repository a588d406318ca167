// What the tests of stochastic acceptance share: decisions with random numbers given one by one, thresholds by bisection, and
// the definition of what they must be in 300 bits.
#ifndef HM_TESTS_SPECULATIVE_SUPPORT_H
#define HM_TESTS_SPECULATIVE_SUPPORT_H

#include "certify/speculative_state.h"
#include "tests/certify_rows.h"

enum { BITS = 300, MOST = 6, PROPOSALS = 4 };
static const uint64_t END = UINT64_C(1) << 53;

// ---- random numbers given one by one

struct given {
    uint64_t coin[PROPOSALS], residual;
};

static inline uint64_t given_bits(const void *source, enum hm_purpose purpose, uint32_t child)
{
    const struct given *g = source;
    return purpose == HM_COIN ? g->coin[child] : g->residual;
}

struct question {
    struct hm_row *p, *q;
    struct hm_proposals proposals;
};

static inline int64_t ask(const struct question *x, const struct given *g, int32_t *token)
{
    int64_t accepted;
    struct hm_error err = {.message = ""};
    if (hm_speculate_with(x->p, x->q, &x->proposals, &(struct hm_numbers){given_bits, g}, &accepted, token, &err))
        fail_msg("%s", err.message);
    return accepted;
}

// How many numbers of coin j accept proposal j, all coins before it being set to reject.
static inline uint64_t coin_threshold(const struct question *x, struct given *g, size_t j)
{
    uint64_t low = 0, high = END; // accepted below low, rejected from high on
    int32_t token;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        g->coin[j] = middle;
        if (ask(x, g, &token) == (int64_t)j) low = middle + 1;
        else high = middle;
    }
    return low;
}

// How many numbers of the residual draw give a token of at most this id.
static inline uint64_t residual_border(const struct question *x, struct given *g, int32_t id)
{
    uint64_t low = 0, high = END;
    int32_t token;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        g->residual = middle;
        assert_int_equal(ask(x, g, &token), -1);
        if (token <= id) low = middle + 1;
        else high = middle;
    }
    return low;
}

// ---- the definition

struct truth {
    size_t vocab;
    mpfr_t p[MOST], q[MOST], now[MOST], sum, term;
};

static inline void fill(mpfr_t *out, const float *logits, size_t vocab, double temperature)
{
    mpfr_t sum;
    mpfr_init2(sum, BITS);
    mpfr_set_zero(sum, 1);
    for (size_t i = 0; i < vocab; i++) {
        mpfr_set_flt(out[i], logits[i], MPFR_RNDN);
        mpfr_div_d(out[i], out[i], temperature, MPFR_RNDN);
        mpfr_exp(out[i], out[i], MPFR_RNDN);
        mpfr_add(sum, sum, out[i], MPFR_RNDN);
    }
    for (size_t i = 0; i < vocab; i++) mpfr_div(out[i], out[i], sum, MPFR_RNDN);
    mpfr_clear(sum);
}

static inline void truth_init(struct truth *t, const float *l, const float *d, size_t vocab, double temperature)
{
    t->vocab = vocab;
    for (size_t i = 0; i < vocab; i++) mpfr_inits2(BITS, t->p[i], t->q[i], t->now[i], (mpfr_ptr)0);
    mpfr_inits2(BITS, t->sum, t->term, (mpfr_ptr)0);
    fill(t->p, l, vocab, temperature);
    fill(t->q, d, vocab, temperature);
    for (size_t i = 0; i < vocab; i++) mpfr_set(t->now[i], t->p[i], MPFR_RNDN);
}

static inline void truth_clear(struct truth *t)
{
    for (size_t i = 0; i < t->vocab; i++) mpfr_clears(t->p[i], t->q[i], t->now[i], (mpfr_ptr)0);
    mpfr_clears(t->sum, t->term, (mpfr_ptr)0);
}

// How many numbers lie below x 2^53; one that is equal to it but for rounding does not.
static inline uint64_t numbers_below(struct truth *t, mpfr_srcptr x)
{
    mpfr_mul_2ui(t->term, x, 53, MPFR_RNDN);
    mpfr_sub_d(t->term, t->term, 0x1p-120, MPFR_RNDN);
    mpfr_ceil(t->term, t->term);
    if (mpfr_sgn(t->term) <= 0) return 0;
    uint64_t count = mpfr_get_uj(t->term, MPFR_RNDN);
    return count < END ? count : END;
}

static inline uint64_t true_threshold(struct truth *t, const struct hm_proposals *x, int32_t token)
{
    mpfr_set(t->sum, t->now[token], MPFR_RNDN);
    if (x->kind == HM_PROPOSAL_IID) mpfr_div(t->sum, t->sum, t->q[token], MPFR_RNDN);
    return numbers_below(t, t->sum);
}

// now = norm((now - proposal)^+)
static inline void true_residual(struct truth *t, const struct hm_proposals *x, int32_t token)
{
    mpfr_set_zero(t->sum, 1);
    for (size_t i = 0; i < t->vocab; i++) {
        if (x->kind == HM_PROPOSAL_IID) mpfr_sub(t->now[i], t->now[i], t->q[i], MPFR_RNDN);
        else if ((int32_t)i == token) mpfr_set_zero(t->now[i], 1);
        if (mpfr_cmp_d(t->now[i], 0x1p-200) < 0) mpfr_set_zero(t->now[i], 1); // an exact match, rounded
        mpfr_add(t->sum, t->sum, t->now[i], MPFR_RNDN);
    }
    for (size_t i = 0; i < t->vocab; i++) mpfr_div(t->now[i], t->now[i], t->sum, MPFR_RNDN);
}

// ---- questions

static inline void random_rows(struct random *r, float *l, float *d, size_t vocab)
{
    size_t kind = below(r, 5);
    for (size_t i = 0; i < vocab; i++) {
        l[i] = kind == 3 ? 0 : below(r, 4) ? (float)(2 * gauss(r)) : (float)below(r, 3);
        d[i] = kind == 0 ? (float)(2 * gauss(r)) : kind == 1 ? l[i] + (float)(0.3 * gauss(r)) : (float)below(r, 3);
        if (kind == 3) d[i] = 0;
        if (kind == 4) d[i] = below(r, 2) ? l[i] : l[i] + 1e-6f * (float)gauss(r);
        if (kind >= 2 && below(r, 3) == 0) l[i] = -INFINITY;
        if (kind >= 2 && below(r, 3) == 0) d[i] = -INFINITY;
    }
    if (l[0] == -INFINITY) l[0] = 0.5f * (kind != 3);
    if (d[vocab - 1] == -INFINITY) d[vocab - 1] = 0;
}

static inline void choose_proposals(struct random *r, const float *d, size_t vocab, struct hm_proposals *x, int32_t *tokens)
{
    x->token = tokens;
    x->sure = below(r, 3) ? 0 : below(r, vocab + 1);
    if (x->kind == HM_PROPOSAL_IID) {
        x->count = 1 + below(r, PROPOSALS);
        for (size_t j = 0; j < x->count; j++)
            do tokens[j] = (int32_t)below(r, vocab);
            while (d[tokens[j]] == -INFINITY);
        return;
    }
    x->count = 1 + below(r, vocab < PROPOSALS ? vocab : PROPOSALS);
    for (size_t j = 0; j < vocab; j++) tokens[j] = (int32_t)j;
    for (size_t j = 0; j < vocab; j++) {
        size_t k = j + below(r, vocab - j);
        int32_t other = tokens[k];
        tokens[k] = tokens[j];
        tokens[j] = other;
    }
}

#endif
