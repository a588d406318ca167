// Divergences of the power kind between two rows, in double: see divergence_state.h, docs/filter.md "Power sums".
//
// With r_i = ln(p_i/q_i), sum p^a q^(1-a) = 1 + sum p_i phi(r_i), phi(r) = X((1-a) r) - (1-a) X(r), X(u) = e^-u - 1 + u: terms of
// one sign that vanish with their slope at r = 0. So r_i may be off by a small common eta: q e^-eta in the place of q. From
// E, the sum with r_i + eta, follows sum p^a q^(1-a) = e^((1-a) eta) E + a e^((1-a) eta) + (1-a) e^(-a eta), exactly.
#include "bounds/ival_math.h"
#include "certify/divergence_state.h"

#include <math.h>

// What the loop needs: 1/T, 1 - a, C in r_i = (l_i - d_i)/T - C, and eta.
struct terms {
    struct hm_row *p, *q;
    struct hm_ival a, rest, inverse, middle, eta;
    bool between; // 0 < a < 1, which no double may show
};

static struct hm_ival exactly(float l, float d)
{
    struct hm_exact gap = hm_exact_difference(l, d);
    return hm_ival_add(hm_ival_point(gap.high), hm_ival_point(gap.low));
}

// ln(Z_p/Z_q), Z = sum exp(l/T).
static struct hm_ival log_ratio(struct hm_row *p, struct hm_row *q, struct hm_ival inverse)
{
    struct hm_ival tops = hm_ival_mul(exactly(p->top, q->top), inverse);
    return hm_ival_add(tops, hm_ival_sub(hm_filter_log_total(p), hm_filter_log_total(q)));
}

static struct hm_ival inverse_temperature(const struct hm_row *row)
{
    mpq_t inverse;
    mpq_init(inverse);
    mpq_inv(inverse, row->temperature.value);
    struct hm_ival out = hm_ival_rational(inverse);
    mpq_clear(inverse);
    return out;
}

static bool terms_set(struct terms *t, struct hm_row *p, struct hm_row *q, mpq_srcptr a)
{
    if (!hm_filter_ready(p) || !hm_filter_ready(q)) return false;
    mpq_t other;
    mpq_init(other);
    mpq_set_ui(other, 1, 1);
    mpq_sub(other, other, a);
    *t = (struct terms){.p = p, .q = q, .a = hm_ival_rational(a), .rest = hm_ival_rational(other),
                        .inverse = inverse_temperature(p), .between = mpq_sgn(a) > 0 && mpq_sgn(other) > 0};
    mpq_clear(other);
    struct hm_ival log = log_ratio(p, q, t->inverse);
    t->middle = hm_ival_point(log.lo / 2 + log.hi / 2);
    t->eta = hm_ival_sub(log, t->middle);
    return fabs(t->middle.lo) < INFINITY && t->eta.hi - t->eta.lo < 0x1p-20;
}

static struct hm_ival size_of(struct hm_ival x)
{
    return hm_ival_max(x, hm_ival_neg(x));
}

// |p_i phi(r_i)|: where q_i = 0 it is p_i |a|, where p_i = 0 it is q_i e^-eta |1-a|; neither where the sum is infinite.
static struct hm_ival term(const struct terms *t, size_t i, struct hm_ival weigh_q)
{
    float l = t->p->logits[i], d = t->q->logits[i];
    if (l == -INFINITY && d == -INFINITY) return (struct hm_ival){0, 0};
    if (l == -INFINITY) return hm_ival_mul(hm_filter_weight(t->q, i), weigh_q);
    struct hm_ival weight = hm_filter_weight(t->p, i);
    if (d == -INFINITY) return hm_ival_mul(weight, size_of(t->a));
    struct hm_ival r = hm_ival_sub(hm_ival_mul(exactly(l, d), t->inverse), t->middle);
    struct hm_ival first = hm_ival_exp_excess(hm_ival_mul(r, t->rest));
    struct hm_ival second = hm_ival_mul(hm_ival_exp_excess(r), t->rest);
    struct hm_ival phi = hm_ival_sub(first, second);
    if (t->between) phi = hm_ival_neg(phi);
    return hm_ival_mul(weight, hm_ival_max(phi, hm_ival_point(0)));
}

// The size of E, in blocks so that rounding stays far below the terms' own.
static struct hm_ival add_terms(const struct terms *t)
{
    enum { BLOCK = 512 };
    struct hm_ival sum = {0, 0};
    // (1-a) e^-eta q_i in units of 1/W_p
    struct hm_ival weigh_q = hm_ival_mul(hm_ival_mul(size_of(t->rest), hm_ival_exp(hm_ival_neg(t->eta))),
                          hm_ival_div(t->p->filter.total, t->q->filter.total));
    for (size_t start = 0; start < t->p->vocab; start += BLOCK) {
        size_t end = t->p->vocab - start < BLOCK ? t->p->vocab : start + BLOCK;
        struct hm_ival block = {0, 0};
        for (size_t i = start; i < end; i++) block = hm_ival_add(block, term(t, i, weigh_q));
        sum = hm_ival_add(sum, block);
    }
    return hm_ival_div(sum, t->p->filter.total);
}

// a e^((1-a) eta) + (1-a) e^(-a eta) - 1, of second order in eta.
static struct hm_ival second_order(const struct terms *t)
{
    struct hm_ival first = hm_ival_exp_excess(hm_ival_neg(hm_ival_mul(t->rest, t->eta)));
    struct hm_ival second = hm_ival_exp_excess(hm_ival_mul(t->a, t->eta));
    return hm_ival_add(hm_ival_mul(t->a, first), hm_ival_mul(t->rest, second));
}

static bool power_between(struct hm_row *p, struct hm_row *q, const struct hm_power *power, struct hm_ival *out)
{
    struct terms t;
    if (!terms_set(&t, p, q, power->a)) return false;
    struct hm_ival e = hm_ival_mul(add_terms(&t), hm_ival_exp(hm_ival_mul(t.rest, t.eta)));
    struct hm_ival log = hm_ival_log1p(hm_ival_add(t.between ? hm_ival_neg(e) : e, second_order(&t)));
    *out = hm_ival_div(log, power->reversed ? hm_ival_neg(t.a) : hm_ival_neg(t.rest));
    return true;
}

static bool max_between(struct hm_row *p, struct hm_row *q, struct hm_ival *out)
{
    struct hm_exact range[2];
    size_t most;
    if (!hm_filter_ready(p) || !hm_filter_ready(q) || !hm_row_pair_range(p, q, range, &most)) return false;
    struct hm_ival inverse = inverse_temperature(p), gap = exactly(p->logits[most], q->logits[most]);
    *out = hm_ival_sub(hm_ival_mul(gap, inverse), log_ratio(p, q, inverse));
    return true;
}

bool hm_divergence_between_filter(const struct hm_divergence *d, struct hm_row *p, struct hm_row *q, struct hm_ival *out)
{
    struct hm_power power;
    if (d->kind == HM_DIVERGENCE_SPREAD || hm_row_same(p, q)) return false; // exact, and cheap
    bool found;
    if (!hm_divergence_power(d, &power)) {
        found = !hm_row_leaves(p, q) && max_between(p, q, out);
    } else {
        bool infinite = (mpq_cmp_ui(power.a, 1, 1) > 0 && hm_row_leaves(p, q)) || (mpq_sgn(power.a) < 0 && hm_row_leaves(q, p));
        found = !infinite && power_between(p, q, &power, out);
        mpq_clear(power.a);
    }
    if (found) *out = hm_ival_max(*out, hm_ival_point(0));
    return found && out->hi < INFINITY;
}

struct hm_ival hm_divergence_unit_ival(const struct hm_divergence *d, struct hm_ival x)
{
    if (d->kind == HM_DIVERGENCE_HELLINGER) return hm_ival_drop(hm_ival_mul(x, hm_ival_point(0.5)));
    if (d->kind == HM_DIVERGENCE_CHI2 || d->kind == HM_DIVERGENCE_CHI2_REVERSE)
        return hm_ival_add(x, hm_ival_exp_excess(hm_ival_neg(x))); // e^x - 1
    return x;
}
