// Stability radii from evidence (docs/theory.md §6), in units of the row's values before the temperature.
//
// Those of greedy, top-m and multiplicative are differences inside the row; absolute and regret need only p_x against the
// others' weight; additive has a closed form when it accepts. The others are bounded from below or left open.
#include "evidence/known_state.h"

#include "bounds/ival_math.h"

#include <math.h>

static const struct hm_ival zero = {0, 0}, open_end = {0, INFINITY};

static struct hm_ival half(struct hm_ival x)
{
    x = hm_ival_mul(x, hm_ival_point(0.5));
    return (struct hm_ival){fmax(x.lo, 0), fmax(x.hi, 0)};
}

// a - b, where two values of -inf do not move: +inf.
static struct hm_ival difference(struct hm_ival a, struct hm_ival b)
{
    struct hm_ival out;
    out.lo = a.lo == -INFINITY ? -INFINITY : hm_ival_sub(hm_ival_point(a.lo), hm_ival_point(b.hi)).lo;
    out.hi = b.lo == -INFINITY ? INFINITY : hm_ival_sub(hm_ival_point(a.hi), hm_ival_point(b.lo)).hi;
    if (a.hi == -INFINITY && b.hi == -INFINITY) out.lo = out.hi = INFINITY;
    return out;
}

// The x-th against the m-th best of the others: who is ahead is known.
static struct hm_ival among(const struct hm_known *known, size_t entry, const struct hm_known_token *x, size_t m, bool accepted)
{
    struct hm_ival other = hm_known_ranked_but(known, entry, x, m - 1);
    if (!accepted && x->value.hi == -INFINITY) return hm_ival_point(INFINITY); // it does not move
    return half(accepted ? difference(x->value, other) : difference(other, x->value));
}

static struct hm_ival multiplicative(const struct hm_known *known, const struct hm_rule *rule, size_t entry,
                                     const struct hm_known_token *x, bool accepted)
{
    struct hm_ival other = hm_known_ranked_but(known, entry, x, 0), reach = zero;
    if (x->value.hi == -INFINITY) return hm_ival_point(INFINITY);
    if (mpq_cmp_ui(rule->a.value, 1, 1) != 0)
        reach = hm_ival_mul(hm_ival_rational(known->temperature.value),
                            hm_ival_neg(hm_ival_log(hm_ival_rational(rule->a.value))));
    if (accepted) return half(hm_ival_add(difference(x->value, other), reach));
    return half(hm_ival_sub(difference(other, x->value), reach));
}

// (T/2) ln(above/below) for bounds of both, as far as it is positive.
static struct hm_ival scaled_log(const struct hm_known *known, struct hm_ival above, struct hm_ival below)
{
    struct hm_ival out = open_end, t = hm_ival_rational(known->temperature.value);
    if (above.lo > 0) out.lo = hm_ival_mul(t, hm_ival_log(hm_ival_div(hm_ival_point(above.lo), hm_ival_point(below.hi)))).lo;
    if (below.lo > 0) out.hi = hm_ival_mul(t, hm_ival_log(hm_ival_div(hm_ival_point(above.hi), hm_ival_point(below.lo)))).hi;
    return half(out);
}

// Accepted: ln[ (x + eps (all but y)) / ((1 - eps) y) ], y the best other one. Rejected, a lower bound: raising x and the
// others and lowering the first by s turns it at the earliest where e^2s (x + eps (all but the first)) reaches
// (1 - eps) of the first, for no sum under the same perturbation is larger.
static struct hm_ival additive(const struct hm_known *known, const struct hm_rule *rule, size_t entry,
                               const struct hm_known_token *x, bool accepted)
{
    struct hm_ival y = hm_ival_exp(hm_known_log(known, hm_known_ranked_but(known, entry, x, 0)));
    struct hm_ival eps = hm_ival_rational(rule->a.value), one = hm_ival_point(1), others = hm_known_others(known, entry, x);
    double lo = hm_ival_sub(hm_ival_point(others.lo), hm_ival_point(y.hi)).lo;
    double hi = others.hi == INFINITY ? INFINITY : hm_ival_sub(hm_ival_point(others.hi), hm_ival_point(y.lo)).hi;
    struct hm_ival without = hm_ival_add(x->weight, (struct hm_ival){fmax(lo, 0), fmax(hi, 0)}); // all but y
    struct hm_ival raised = hm_ival_add(x->weight, hm_ival_mul(eps, without)), lowered = hm_ival_mul(hm_ival_sub(one, eps), y);
    if (accepted) return scaled_log(known, raised, lowered);
    return (struct hm_ival){scaled_log(known, lowered, raised).lo, INFINITY};
}

// (T/2) |ln[ p_x (1-t) / (t (1-p_x)) ]|, given ln[ t/(1-t) ] for 0 < t < 1.
static struct hm_ival from_odds(const struct hm_known *known, size_t entry, const struct hm_known_token *x, struct hm_ival odds,
                                bool accepted)
{
    struct hm_ival others = hm_known_others(known, entry, x), t = hm_ival_rational(known->temperature.value), log_x = x->log;
    struct hm_ival own = hm_ival_sub(log_x, hm_ival_log(others));
    if (log_x.hi == -INFINITY) return hm_ival_point(INFINITY); // it does not move
    if (others.hi == 0) return hm_ival_point(INFINITY);        // alone: its probability is 1 whatever moves
    if (others.lo == 0) own.hi = INFINITY;
    struct hm_ival away = accepted ? hm_ival_sub(own, odds) : hm_ival_sub(odds, own);
    return half(hm_ival_mul(t, (struct hm_ival){fmax(away.lo, 0), fmax(away.hi, 0)}));
}

static struct hm_ival absolute(const struct hm_known *known, mpq_srcptr t, size_t entry, const struct hm_known_token *x,
                               bool accepted)
{
    if (mpq_cmp_ui(t, 1, 1) >= 0) return hm_ival_point(INFINITY);
    struct hm_ival p = hm_ival_rational(t), odds;
    odds = hm_ival_sub(hm_ival_log(p), hm_ival_log1p(hm_ival_neg(p)));
    return from_odds(known, entry, x, odds, accepted);
}

static struct hm_ival regret(const struct hm_known *known, mpq_srcptr r, size_t entry, const struct hm_known_token *x,
                             bool accepted)
{
    if (mpq_sgn(r) == 0) return hm_ival_point(INFINITY);
    struct hm_ival nats = hm_ival_rational(r), odds = hm_ival_neg(hm_ival_add(nats, hm_ival_log(hm_ival_drop(nats))));
    return from_odds(known, entry, x, odds, accepted);
}

// Among the first, and within the threshold: accepted, the first of the two to turn; rejected, both may have to.
static struct hm_ival both(const struct hm_known *known, const struct hm_rule *rule, size_t entry,
                           const struct hm_known_token *x, bool accepted)
{
    struct hm_rule threshold = *rule;
    threshold.kind = rule->kind == HM_RULE_TOPK_DELTA ? HM_RULE_ADDITIVE : HM_RULE_MULTIPLICATIVE;
    threshold.count = 0;
    struct hm_count_range before = hm_known_before(known, entry, x);
    enum hm_verdict within = hm_known_accepts(known, &threshold, entry);
    struct hm_ival rank = zero, level = zero;
    bool additive_rule = threshold.kind == HM_RULE_ADDITIVE;
    if (accepted || before.least >= rule->count) rank = among(known, entry, x, rule->count, accepted);
    if (accepted || within == HM_NO)
        level = additive_rule ? additive(known, &threshold, entry, x, accepted)
                              : multiplicative(known, &threshold, entry, x, accepted);
    if (accepted) return hm_ival_min(rank, level);
    return (struct hm_ival){fmax(rank.lo, level.lo), INFINITY};
}

// ---- Nucleus, lower bounds: for every j the radius is at least the smaller of a border and of a value (theory.md §6)

// (T/2) ln( share of the others against the share of these ), at least.
static double turns_at(const struct hm_known *known, mpq_srcptr limit, double above, double below, bool accepted)
{
    struct hm_ival p = hm_ival_rational(limit), q = hm_ival_sub(hm_ival_point(1), p);
    struct hm_ival up = hm_ival_mul(hm_ival_point(above), accepted ? p : q);
    struct hm_ival down = hm_ival_mul(hm_ival_point(below), accepted ? q : p);
    if (!(up.lo > 0)) return 0;
    return down.hi == 0 ? INFINITY : scaled_log(known, up, down).lo;
}

static double half_gap(double high, double low)
{
    return low == -INFINITY ? INFINITY : half(hm_ival_sub(hm_ival_point(high), hm_ival_point(low))).lo;
}

// Accepted: below the border (x - y)/2 of the j + 1st best other only j can come before x, the largest ones.
static double nucleus_in(const struct hm_known *known, const struct hm_rule *rule, size_t entry, const struct hm_known_token *x)
{
    struct hm_ival all = hm_ival_add(known->others, known->token[known->first].weight);
    double before = 0, left = all.lo, best = 0;
    bool own = entry == HM_UNSEEN, unseen = known->positive == 0; // passed already?
    for (size_t i = 0, j = 0, taken = 0; i <= known->count + 1; i++) {
        if (j < known->count && !own && known->high[j].value == x->value.hi) own = true, j++; // x itself
        double next = j < known->count ? known->high[j].value : -INFINITY;
        bool is_unseen = !unseen && known->each.value.hi >= next;
        if (is_unseen) next = known->each.value.hi;
        double rest = fmax(left, hm_ival_sub(hm_ival_point(known->total.lo), hm_ival_point(before)).lo);
        double border = half_gap(x->value.lo, next), value = turns_at(known, rule->a.value, rest, before, true);
        best = fmax(best, fmin(border, value));
        if (value <= border || (!is_unseen && j >= known->count)) break;
        before = hm_ival_add(hm_ival_point(before), hm_ival_point(is_unseen ? known->rest.hi : known->high[j].weight)).hi;
        if (is_unseen) {
            unseen = true;
            continue;
        }
        left = fmax(hm_ival_sub(hm_ival_point(left), hm_ival_point(known->low[taken++].weight)).lo, 0); // they have at most that
        j++;
    }
    return best;
}

// Rejected: below the border (y - x)/2 the j best stay before x.
static double nucleus_out(const struct hm_known *known, const struct hm_rule *rule, const struct hm_known_token *x)
{
    double before = 0, best = 0;
    for (size_t j = 0; j < known->count && known->low[j].value > x->value.hi; j++) {
        before = hm_ival_add(hm_ival_point(before), hm_ival_point(known->low[j].weight)).lo;
        double rest = fmax(hm_ival_sub(hm_ival_point(known->total.hi), hm_ival_point(before)).hi, 0);
        best = fmax(best, fmin(half_gap(known->low[j].value, x->value.hi), turns_at(known, rule->a.value, before, rest, false)));
    }
    return best;
}

struct hm_ival hm_known_radius(const struct hm_known *known, const struct hm_rule *rule, size_t entry)
{
    struct hm_known_token x;
    if (known->row) return hm_exact_radius(known, rule, entry);
    enum hm_verdict in = hm_known_accepts(known, rule, entry);
    if (in == HM_UNDECIDED || !hm_known_token(known, entry, &x)) return open_end;
    bool accepted = in == HM_YES;
    switch (rule->kind) {
    case HM_RULE_GREEDY: return among(known, entry, &x, 1, accepted);
    case HM_RULE_TOPM: return among(known, entry, &x, rule->count, accepted);
    case HM_RULE_MULTIPLICATIVE: return multiplicative(known, rule, entry, &x, accepted);
    case HM_RULE_ADDITIVE: return additive(known, rule, entry, &x, accepted);
    case HM_RULE_ABSOLUTE: return absolute(known, rule->a.value, entry, &x, accepted);
    case HM_RULE_REGRET: return regret(known, rule->a.value, entry, &x, accepted);
    case HM_RULE_TOPK_DELTA:
    case HM_RULE_TOPK_RATIO: return both(known, rule, entry, &x, accepted);
    case HM_RULE_ENTROPY:
        if (!accepted) break; // the other branch is open
        if (mpq_cmp_ui(rule->a.value, 1, 1) < 0) {
            struct hm_rule eps = *rule;
            eps.kind = HM_RULE_ABSOLUTE;
            if (hm_known_accepts(known, &eps, entry) == HM_YES)
                return (struct hm_ival){absolute(known, rule->a.value, entry, &x, true).lo, INFINITY};
        }
        break;
    case HM_RULE_NUCLEUS:
        if (mpq_cmp_ui(rule->a.value, 1, 1) >= 0 || x.value.hi == -INFINITY) return hm_ival_point(INFINITY);
        return (struct hm_ival){accepted ? nucleus_in(known, rule, entry, &x) : nucleus_out(known, rule, &x), INFINITY};
    }
    return open_end;
}
