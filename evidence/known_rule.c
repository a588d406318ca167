// Is a token in A(p), whatever row of the box p is?  Rules of docs/theory.md §1; each condition is written so that it rises
// with x's weight and falls with the others', and is then asked at the two corners. Equality accepts.
#include "evidence/known_state.h"

#include "bounds/ival_math.h"

#include <math.h>

// One question: the token, and what it is compared with.
struct question {
    const struct hm_known *known;
    const struct hm_rule *rule;
    size_t entry;
    struct hm_known_token x;
    struct hm_ival best;   // the largest value of the other tokens
    struct hm_ival others; // sum of their weights
};

static enum hm_verdict both(enum hm_verdict a, enum hm_verdict b)
{
    if (a == HM_NO || b == HM_NO) return HM_NO;
    return a == HM_YES && b == HM_YES ? HM_YES : HM_UNDECIDED;
}

static enum hm_verdict either(enum hm_verdict a, enum hm_verdict b)
{
    if (a == HM_YES || b == HM_YES) return HM_YES;
    return a == HM_NO && b == HM_NO ? HM_NO : HM_UNDECIDED;
}

static struct hm_ival share(const struct question *q)
{
    struct hm_ival p = hm_known_share(q->x.weight, q->others);
    if (!q->known->unit) return p;
    return (struct hm_ival){fmax(p.lo, q->x.weight.lo), fmin(p.hi, q->x.weight.hi)};
}

static enum hm_verdict among(const struct question *q, size_t m)
{
    struct hm_count_range before = hm_known_before(q->known, q->entry, &q->x);
    if (before.most < m) return HM_YES;
    return before.least >= m ? HM_NO : HM_UNDECIDED;
}

// No other token has a larger value.
static bool surely_largest(const struct question *q)
{
    return q->best.hi <= q->x.value.lo;
}

// y <= x + eps (x + y + the rest), y the best other token.
static enum hm_verdict additive(const struct question *q)
{
    const struct hm_known *known = q->known;
    struct hm_ival eps = hm_ival_rational(q->rule->a.value), x = q->x.weight;
    if (surely_largest(q)) return HM_YES;
    if (mpq_sgn(q->rule->a.value) == 0 && q->best.lo > q->x.value.hi) return HM_NO;
    struct hm_ival y = hm_ival_exp(hm_known_log(known, q->best));
    // Whichever listed token is the best other, the sum is at least its weight and the other lower ends. An unseen one is
    // part of a sum that is known as a whole.
    bool listed = known->positive == 0 || known->each.value.hi < q->best.lo;
    double rest = hm_ival_sub(hm_ival_point(q->others.lo), hm_ival_point(listed ? y.lo : y.hi)).lo;
    struct hm_ival all = hm_ival_add(hm_ival_add(hm_ival_point(x.lo), hm_ival_point(y.hi)), hm_ival_point(fmax(rest, 0)));
    struct hm_ival most = hm_ival_sub(hm_ival_point(y.hi), hm_ival_mul(eps, all));
    if (most.hi <= x.lo) return HM_YES;
    all = hm_ival_add(hm_ival_point(x.hi), hm_ival_point(q->others.hi));
    struct hm_ival least = hm_ival_sub(hm_ival_point(y.lo), hm_ival_mul(eps, all));
    if (least.lo > x.hi) return HM_NO;
    if (!known->unit) return HM_UNDECIDED;
    if (hm_ival_sub(hm_ival_point(y.hi), eps).hi <= x.lo) return HM_YES;
    return hm_ival_sub(hm_ival_point(y.lo), eps).lo > x.hi ? HM_NO : HM_UNDECIDED;
}

// value of x >= best + T ln alpha: a difference within the row, from which the normaliser is gone.
static enum hm_verdict multiplicative(const struct question *q)
{
    if (surely_largest(q)) return HM_YES;
    if (q->x.value.hi == -INFINITY) return HM_NO; // alpha > 0, and some token has a probability
    struct hm_ival reach = hm_ival_point(0);
    if (mpq_cmp_ui(q->rule->a.value, 1, 1) != 0)
        reach = hm_ival_mul(hm_ival_rational(q->known->temperature.value),
                            hm_ival_neg(hm_ival_log(hm_ival_rational(q->rule->a.value))));
    if (q->x.value.lo > -INFINITY && hm_ival_sub(hm_ival_point(q->best.hi), hm_ival_point(q->x.value.lo)).hi <= reach.lo)
        return HM_YES;
    if (q->best.lo == -INFINITY) return HM_UNDECIDED;
    return hm_ival_sub(hm_ival_point(q->best.lo), hm_ival_point(q->x.value.hi)).lo > reach.hi ? HM_NO : HM_UNDECIDED;
}

// Is another token sure to have a probability?  Then x has less than 1, however little the other's is.
static bool not_alone(const struct question *q)
{
    return q->best.lo > -INFINITY;
}

static enum hm_verdict absolute(const struct question *q, mpq_srcptr t)
{
    if (mpq_cmp_ui(t, 1, 1) >= 0 && not_alone(q)) return HM_NO;
    struct hm_ival p = share(q), least = hm_ival_rational(t);
    if (p.lo >= least.hi) return HM_YES;
    return p.hi < least.lo ? HM_NO : HM_UNDECIDED;
}

static enum hm_verdict regret(const struct question *q)
{
    if (mpq_sgn(q->rule->a.value) == 0 && not_alone(q)) return HM_NO;
    struct hm_ival r = hm_ival_rational(q->rule->a.value), surprise = hm_known_surprise(q->known, q->entry);
    if (surprise.hi <= r.lo) return HM_YES;
    return surprise.lo > r.hi ? HM_NO : HM_UNDECIDED;
}

// p_x >= delta e^-H, as ln p_x + H >= ln delta: the normaliser cancels in ln p_x + H = moment/total + log x.
static enum hm_verdict against_entropy(const struct question *q)
{
    mpq_srcptr delta = q->rule->b.value;
    const struct hm_known *known = q->known;
    if (mpq_cmp_ui(delta, 1, 1) <= 0 && surely_largest(q)) return HM_YES; // e^-H is at most the largest probability
    if (q->x.value.hi == -INFINITY) return HM_NO;
    struct hm_ival mean = hm_ival_div(known->moment, known->total), least = hm_ival_log(hm_ival_rational(delta));
    struct hm_ival log_p = hm_ival_neg(hm_known_surprise(known, q->entry)), entropy = hm_known_entropy(known);
    struct hm_ival sum = hm_ival_add(mean, q->x.log), other = hm_ival_add(entropy, log_p);
    double lo = fmax(sum.lo, other.lo), hi = fmin(sum.hi, other.hi);
    if (lo >= least.hi) return HM_YES;
    return hi < least.lo ? HM_NO : HM_UNDECIDED;
}

// The mass before a token: weights of tokens that come before it and of the others, each at both ends. The sums need not
// belong to one row: a share rises with what is before and falls with the others.
struct split {
    struct hm_ival before, others;
};

static void put(struct split *s, struct hm_ival weight, enum hm_verdict before)
{
    const struct hm_ival maybe = {0, weight.hi};
    s->before = hm_ival_add(s->before, before == HM_YES ? weight : before == HM_NO ? hm_ival_point(0) : maybe);
    s->others = hm_ival_add(s->others, before == HM_NO ? weight : before == HM_YES ? hm_ival_point(0) : maybe);
}

static void put_unseen(struct split *s, const struct question *q)
{
    const struct hm_known *known = q->known;
    struct hm_ival rest = known->rest;
    if (q->entry == HM_UNSEEN) { // the other ones
        double lo = hm_ival_sub(hm_ival_point(rest.lo), hm_ival_point(q->x.weight.hi)).lo;
        put(s, (struct hm_ival){fmax(lo, 0), rest.hi}, known->unseen > 1 ? HM_UNDECIDED : HM_NO);
    } else if (known->positive == 0 || known->each.value.hi < q->x.value.lo) {
        put(s, rest, HM_NO);
    } else if (known->each.value.lo > q->x.value.hi) {
        put(s, rest, HM_YES);
    } else { // those not above x make up at most n x
        double n = hm_known_number(known->positive);
        struct hm_ival not_above = {0, rest.hi};
        if (n < INFINITY) not_above.hi = fmin(rest.hi, hm_ival_mul(hm_ival_point(n), hm_ival_point(q->x.weight.hi)).hi);
        double above = hm_ival_sub(hm_ival_point(rest.lo), hm_ival_point(not_above.hi)).lo;
        s->before = hm_ival_add(s->before, (struct hm_ival){fmax(above, 0), rest.hi});
        s->others = hm_ival_add(s->others, not_above);
    }
}

static enum hm_verdict nucleus(const struct question *q)
{
    const struct hm_known *known = q->known;
    struct hm_ival limit = hm_ival_rational(q->rule->a.value);
    if (q->x.value.hi == -INFINITY) return HM_NO;
    if (mpq_cmp_ui(q->rule->a.value, 1, 1) >= 0) return q->x.value.lo > -INFINITY ? HM_YES : HM_UNDECIDED;
    struct split s = {{0, 0}, {0, 0}};
    for (size_t i = 0; i < known->count; i++)
        if (i != q->entry) put(&s, known->token[i].weight, hm_known_precedes(known, i, q->entry, &q->x));
    put_unseen(&s, q);
    put(&s, q->x.weight, HM_NO);
    if (s.before.hi == 0) return HM_YES;
    struct hm_ival mass = hm_known_share(s.before, s.others);
    if (known->unit) {
        mass.lo = fmax(fmax(mass.lo, s.before.lo), hm_ival_sub(hm_ival_point(1), hm_ival_point(s.others.hi)).lo);
        mass.hi = fmin(fmin(mass.hi, s.before.hi), hm_ival_sub(hm_ival_point(1), hm_ival_point(s.others.lo)).hi);
    }
    if (mass.hi < limit.lo) return HM_YES;
    return mass.lo >= limit.hi ? HM_NO : HM_UNDECIDED;
}

enum hm_verdict hm_known_accepts(const struct hm_known *known, const struct hm_rule *rule, size_t entry)
{
    struct question q = {.known = known, .rule = rule, .entry = entry};
    if (known->row) return hm_exact_accepts(known, rule, entry);
    if (!hm_known_token(known, entry, &q.x)) return HM_UNDECIDED;
    q.best = hm_known_ranked_but(known, entry, &q.x, 0);
    q.others = hm_known_others(known, entry, &q.x);
    switch (rule->kind) {
    case HM_RULE_GREEDY: return among(&q, 1);
    case HM_RULE_TOPM: return among(&q, rule->count);
    case HM_RULE_ADDITIVE: return additive(&q);
    case HM_RULE_MULTIPLICATIVE: return multiplicative(&q);
    case HM_RULE_ENTROPY: return either(absolute(&q, rule->a.value), against_entropy(&q));
    case HM_RULE_NUCLEUS: return nucleus(&q);
    case HM_RULE_TOPK_DELTA: return both(among(&q, rule->count), additive(&q));
    case HM_RULE_TOPK_RATIO: return both(among(&q, rule->count), multiplicative(&q));
    case HM_RULE_ABSOLUTE: return absolute(&q, rule->a.value);
    case HM_RULE_REGRET: return regret(&q);
    }
    return HM_UNDECIDED;
}
