// Stochastic decoding in exact rational arithmetic, on alphabets of at most five tokens: an independent model of the rules
// of docs/log.md, "The walk", written from the page. Residuals are vectors here, normalised after every rejection: nothing
// of the closed forms of theory.md §5 is used.
#ifndef HM_TESTS_EXACT_LAW_H
#define HM_TESTS_EXACT_LAW_H

#include "certify/law.h"

#include <gmp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_TOKENS = 5 };

// A distribution on a small alphabet.
struct exact_law {
    size_t vocab;
    mpq_t at[MOST_TOKENS];
};

static inline void law_init(struct exact_law *x, size_t vocab)
{
    x->vocab = vocab;
    for (size_t i = 0; i < MOST_TOKENS; i++) mpq_init(x->at[i]);
}

static inline void law_clear(struct exact_law *x)
{
    for (size_t i = 0; i < MOST_TOKENS; i++) mpq_clear(x->at[i]);
}

// counts / their sum
static inline void law_set(struct exact_law *x, const unsigned *counts)
{
    unsigned long sum = 0;
    for (size_t i = 0; i < x->vocab; i++) sum += counts[i];
    for (size_t i = 0; i < x->vocab; i++) {
        mpq_set_ui(x->at[i], counts[i], sum);
        mpq_canonicalize(x->at[i]);
    }
}

static inline void law_copy(struct exact_law *x, const struct exact_law *from)
{
    x->vocab = from->vocab;
    for (size_t i = 0; i < x->vocab; i++) mpq_set(x->at[i], from->at[i]);
}

// norm((x - y)^+); false when nothing is left.
static inline bool law_residual(struct exact_law *x, const struct exact_law *y)
{
    mpq_t sum;
    mpq_init(sum);
    for (size_t i = 0; i < x->vocab; i++) {
        mpq_sub(x->at[i], x->at[i], y->at[i]);
        if (mpq_sgn(x->at[i]) < 0) mpq_set_ui(x->at[i], 0, 1);
        mpq_add(sum, sum, x->at[i]);
    }
    bool left = mpq_sgn(sum) > 0;
    for (size_t i = 0; i < x->vocab && left; i++) mpq_div(x->at[i], x->at[i], sum);
    mpq_clear(sum);
    return left;
}

// What happens at one position, with its probability: `child` is the accepted proposal or -1; rescued: only the relaxation
// accepted it.
struct exact_event {
    int32_t token;
    int child;
    bool rescued;
};
typedef void exact_outcome(void *user, const struct exact_event *event, mpq_srcptr chance);

// One position: both laws and the tokens that a relaxed rule accepts surely.
struct exact_position {
    struct exact_law p, q;
    bool kept[MOST_TOKENS];
};

static inline void position_init(struct exact_position *x, size_t vocab)
{
    memset(x->kept, 0, sizeof x->kept);
    law_init(&x->p, vocab);
    law_init(&x->q, vocab);
}

static inline void position_clear(struct exact_position *x)
{
    law_clear(&x->p);
    law_clear(&x->q);
}

static inline void report(exact_outcome *f, void *user, int32_t token, int child, bool rescued, mpq_srcptr reach,
                          mpq_srcptr chance)
{
    struct exact_event event = {token, child, rescued};
    mpq_t both;
    mpq_init(both);
    mpq_mul(both, reach, chance);
    if (mpq_sgn(both) > 0) f(user, &event, both);
    mpq_clear(both);
}

// Tries the given proposals [m] one after the other: every coin, then every residual draw. start: the chance of being here.
static inline void try_proposals(const struct exact_position *x, enum hm_proposal kind, const int32_t *tokens, size_t m,
                                 bool relaxed, mpq_srcptr start, exact_outcome *f, void *user)
{
    struct exact_law now, point;
    mpq_t reach, accept, rest;
    mpq_inits(reach, accept, rest, NULL);
    law_init(&now, x->p.vocab);
    law_init(&point, x->p.vocab);
    law_copy(&now, &x->p);
    mpq_set(reach, start);
    for (size_t j = 0; j < m && mpq_sgn(reach) > 0; j++) {
        int32_t t = tokens[j];
        for (size_t i = 0; i < point.vocab; i++) mpq_set_ui(point.at[i], i == (size_t)t, 1);
        const struct exact_law *proposal = kind == HM_PROPOSAL_IID ? &x->q : &point;
        mpq_div(accept, now.at[t], proposal->at[t]);
        if (mpq_cmp_ui(accept, 1, 1) > 0) mpq_set_ui(accept, 1, 1);
        mpq_set_ui(rest, 1, 1);
        mpq_sub(rest, rest, accept);
        report(f, user, t, (int)j, false, reach, accept);
        if (relaxed && x->kept[t]) {
            report(f, user, t, (int)j, true, reach, rest);
            mpq_set_ui(reach, 0, 1);
            break;
        }
        mpq_mul(reach, reach, rest);
        if (mpq_sgn(reach) > 0) assert_true(law_residual(&now, proposal));
    }
    for (size_t i = 0; i < now.vocab && mpq_sgn(reach) > 0; i++) report(f, user, (int32_t)i, -1, false, reach, now.at[i]);
    law_clear(&now);
    law_clear(&point);
    mpq_clears(reach, accept, rest, NULL);
}

// The same over every draw of m iid proposals.
static inline void draw_proposals(const struct exact_position *x, size_t m, bool relaxed, mpq_srcptr start, exact_outcome *f,
                                  void *user)
{
    int32_t tokens[8] = {0};
    size_t all = 1, vocab = x->p.vocab;
    mpq_t chance;
    mpq_init(chance);
    for (size_t j = 0; j < m; j++) all *= vocab;
    for (size_t code = 0; code < all; code++) {
        size_t rest = code;
        mpq_set(chance, start);
        for (size_t j = 0; j < m; j++, rest /= vocab) {
            tokens[j] = (int32_t)(rest % vocab);
            mpq_mul(chance, chance, x->q.at[tokens[j]]);
        }
        if (mpq_sgn(chance) > 0) try_proposals(x, HM_PROPOSAL_IID, tokens, m, relaxed, chance, f, user);
    }
    mpq_clear(chance);
}

// out = half the sum of |a_i - b_i|
static inline void total_variation(mpq_t out, mpq_t *a, mpq_t *b, size_t count)
{
    mpq_t difference;
    mpq_init(difference);
    mpq_set_ui(out, 0, 1);
    for (size_t i = 0; i < count; i++) {
        mpq_sub(difference, a[i], b[i]);
        mpq_abs(difference, difference);
        mpq_add(out, out, difference);
    }
    mpq_div_2exp(out, out, 1);
    mpq_clear(difference);
}

#endif
