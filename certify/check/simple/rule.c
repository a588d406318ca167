// Acceptance rules: their names, membership in A(p) with its ties settled first, and the radius of a decision.
// theory.md §1, §6, §8. Places are those of the order: place 0 is the likeliest token.
#include "parts.h"

#include <ctype.h>

enum range { POSITIVE, BELOW_ONE, FRACTION }; // x >= 0; 0 <= x < 1; 0 < x <= 1
static real within(const struct ask *a) {     // p - p_1 + eps
    return r_add(r_sub(&a->p->p[a->p->order[a->at]], &a->p->p[a->p->order[0]]), r_rational(a->rule->a));
}

static real ratio(const struct ask *a) { return r_sub(sc_z(a->p, a->p->order[a->at]), r_log(r_rational(a->rule->a))); }
static real mass(const struct ask *a) { return r_sub(&a->p->p[a->p->order[a->at]], r_rational(a->rule->a)); }

static real surprise(const struct ask *a) { // ln p + r
    return r_add(sc_log_p(a->p, a->p->order[a->at]), r_rational(a->rule->a));
}

static real typical(const struct ask *a) { // ln p + H - ln delta
    real log_p = sc_log_p(a->p, a->p->order[a->at]);
    return r_sub(r_add(log_p, q_entropy(a)), r_log(r_rational(a->rule->b)));
}

static real share(const struct ask *a) { // the mass before this place, less P
    return r_sub(sc_mass(a->p, 0, a->at), r_rational(a->rule->a));
}

int sc_compare(size_t n, mpq_srcptr q, size_t with) { // n q against an integer
    mpq_t x;
    mpq_init(x);
    mpq_set_ui(x, n, 1);
    mpq_mul(x, x, q);
    int sign = mpq_cmp_ui(x, with, 1);
    mpq_clear(x);
    return sign;
}

static bool ties_first(const struct ask *a) { return sc_level(a->p, 0, a->at + 1); }
static bool flat(const struct ask *a) { return sc_level(a->p, 0, a->p->finite); } // uniform on its support
static enum answer not(enum answer x) { return x == OPEN ? OPEN : x == YES ? NO : YES; }
static enum answer is_any(const struct ask *a) { return a->at < a->p->count ? YES : NO; }

static enum answer is_near(const struct ask *a) {
    if (ties_first(a)) return YES;
    if (mpq_sgn(a->rule->a) == 0) return NO;
    if (a->at >= a->p->finite && flat(a)) return sc_compare(a->p->finite, a->rule->a, 1) >= 0 ? YES : NO;
    return sc_decide(within, a);
}

static enum answer is_likely(const struct ask *a) {
    if (ties_first(a)) return YES;
    return a->at >= a->p->finite || mpq_cmp_ui(a->rule->a, 1, 1) == 0 ? NO : sc_decide(ratio, a);
}

static enum answer is_above(const struct ask *a) {
    if (a->at >= a->p->finite) return NO;
    if (flat(a)) return sc_compare(a->p->finite, a->rule->a, 1) <= 0 ? YES : NO;
    return mpq_cmp_ui(a->rule->a, 1, 1) >= 0 ? NO : sc_decide(mass, a);
}

static enum answer is_bearable(const struct ask *a) {
    if (a->at >= a->p->finite) return NO;
    return a->p->finite == 1 ? YES : mpq_sgn(a->rule->a) == 0 ? NO : sc_decide(surprise, a);
}

static enum answer is_typical(const struct ask *a) {
    if (mpq_sgn(a->rule->a) == 0 || mpq_sgn(a->rule->b) == 0) return YES; // p >= 0
    enum answer first = is_above(a);
    if (first == YES || a->at >= a->p->finite) return first;
    enum answer second = !flat(a) ? sc_decide(typical, a) : mpq_cmp_ui(a->rule->b, 1, 1) <= 0 ? YES : NO;
    return second == NO ? first : second;
}

static enum answer is_needed(const struct ask *a) { // by the nucleus: what comes before is less than P
    if (a->at == 0) return YES;
    if (a->at >= a->p->finite) return NO;
    if (mpq_cmp_ui(a->rule->a, 1, 1) == 0) return YES;
    return flat(a) ? (sc_compare(a->p->finite, a->rule->a, a->at) > 0 ? YES : NO) : not(sc_decide(share, a));
}

static real half_gap(const struct row *p, size_t upper, size_t lower) { // inf where noise does not reach
    if (lower >= p->finite) return r_number(INFINITY);
    real gap = r_sub(r_number(p->logit[p->order[upper]]), r_number(p->logit[p->order[lower]]));
    return r_mul(gap, r_number(0.5));
}

static real half_t(const struct ask *a, real x) { return r_div(r_mul(x, r_number(0.5)), r_rational(a->p->inverse)); }

static real ratio_radius(const struct ask *a) {
    bool in = a->at < a->k;
    real shift = half_t(a, r_log(r_rational(a->rule->a)));
    real gap = in ? half_gap(a->p, a->at, a->at == 0) : half_gap(a->p, 0, a->at);
    return r_positive(in ? r_sub(gap, shift) : r_add(gap, shift));
}

static real near_radius(const struct ask *a) { // of an accepted token
    size_t other = a->at == 0;
    if (other >= a->p->finite || mpq_sgn(a->rule->a) == 0) return half_gap(a->p, a->at, other);
    real eps = r_rational(a->rule->a), best = &a->p->p[a->p->order[other]];
    real rest = other ? r_add(sc_mass(a->p, 0, 1), sc_mass(a->p, 2, a->p->finite)) : sc_mass(a->p, 1, a->p->finite);
    real upper = r_add(&a->p->p[a->p->order[a->at]], r_mul(eps, rest));
    return r_positive(half_t(a, r_log(r_div(upper, r_mul(r_sub(r_number(1), eps), best)))));
}

static real level_radius(const struct ask *a) { // of absolute, of regret with t = e^-r, of the eps branch of entropy
    real given = r_rational(a->rule->a);
    bool is_regret = a->rule->kind->member == is_bearable, zero = mpq_sgn(a->rule->a) == 0;
    bool never = is_regret ? zero : zero || mpq_cmp_ui(a->rule->a, 1, 1) >= 0;
    if (a->at >= a->p->finite || a->p->finite == 1 || never) return r_number(INFINITY);
    if (!is_regret && flat(a) && sc_compare(a->p->finite, a->rule->a, 1) == 0) return r_number(0);
    real t = is_regret ? r_exp(r_negative(given)) : given;
    real rest = r_add(sc_mass(a->p, 0, a->at), sc_mass(a->p, a->at + 1, a->p->finite));
    real odds = r_div(r_mul(&a->p->p[a->p->order[a->at]], r_sub(r_number(1), t)), r_mul(t, rest));
    real x = half_t(a, r_log(odds));
    return r_positive(r_max(x, r_negative(x)));
}

static real noisy(const struct ask *a, double logit, double shift) { // exp((logit - l_first + shift)/T)
    real distance = r_sub(r_number(logit), r_number(a->p->logit[a->p->order[0]]));
    return r_exp(r_mul(r_add(distance, r_number(shift)), r_rational(a->p->inverse)));
}

static int compare_gap(double upper, double lower, double distance) { // the sign of upper - lower - distance, exactly
    mpfr_t d;
    mpfr_init2(d, 512); // holds any difference of floats
    mpfr_set_d(d, upper, MPFR_RNDN);
    mpfr_sub_d(d, d, lower, MPFR_RNDN);
    int sign = mpfr_cmp_d(d, distance);
    mpfr_clear(d);
    return sign;
}

// At noise eta, what keeps a rejected token out of reach of p_1 - eps.
TERM(raised) {
    double l = a->p->logit[i], first = a->p->logit[a->p->order[0]];
    bool below = j == a->at || compare_gap(first, l, 2 * a->eta) > 0;
    return below ? noisy(a, l, a->eta) : noisy(a, first, -a->eta);
}

static real near_slack(const struct ask *a) {
    real first = noisy(a, a->p->logit[a->p->order[0]], -a->eta), x = noisy(a, a->p->logit[a->p->order[a->at]], a->eta);
    real slack = r_sub(r_sub(first, x), r_mul(sc_sum(raised, a, 0, a->p->finite), r_rational(a->rule->a)));
    return a->flag ? r_negative(slack) : slack;
}

// At noise eta, what keeps a token in the nucleus (tokens that can be before it are raised), or out of it (tokens that
// must be before it are lowered). It jumps where a token changes sides: flag looks just past eta, and turns the sign.
TERM(shifted) {
    bool in = a->at < a->k;
    double l = a->p->logit[i], x = a->p->logit[a->p->order[a->at]];
    int side = compare_gap(l, x, 2 * (in ? -a->eta : a->eta));
    bool first = j != a->at && (side > 0 || (side == 0 && in == a->flag));
    real w = noisy(a, !in && !first && l > x ? x : l, first == in ? a->eta : -a->eta), P = r_rational(a->rule->a);
    return r_mul(w, first ? r_sub(r_number(1), P) : r_negative(P)); // sums to the mass of the first, less P
}

static real nucleus_slack(const struct ask *a) {
    real slack = sc_sum(shifted, a, 0, a->p->finite);
    return (a->at < a->k) == a->flag ? slack : r_negative(slack);
}

// Does the delta branch of entropy hold (flag: fail) everywhere in the box of noise eta?  theory.md §6.
TERM(extremal) {
    real s = r_mul(r_number(a->eta), r_rational(a->p->inverse)), lambda = r_log(r_rational(a->rule->b));
    real up = r_exp(s), down = r_exp(r_negative(s)), one = r_number(1);
    real v = r_add(r_sub(sc_z(a->p, i), sc_z(a->p, a->p->order[a->at])), r_add(a->flag ? r_negative(s) : s, lambda));
    real high = r_mul(up, r_add(v, s)), low = r_mul(down, r_sub(v, s)), x = r_max(high, low);
    if (j == a->at) x = (a->flag ? r_min : r_max)(r_mul(up, lambda), r_mul(down, lambda));
    if (j != a->at && a->flag) { // the least of e^d (v + d): which form holds depends on v, or on where v may be
        real above = r_sub(v, r_sub(s, one)), below = r_add(v, r_add(s, one));
        x = mpfr_sgn(above->lo) >= 0   ? low
            : mpfr_sgn(below->hi) <= 0 ? high
                                       : r_negative(r_exp(r_negative(r_add(one, v))));
        if (mpfr_sgn(above->lo) < 0 && mpfr_sgn(above->hi) >= 0) x = r_hull(x, low);
        if (mpfr_sgn(below->hi) > 0 && mpfr_sgn(below->lo) <= 0) x = r_hull(x, high);
    }
    return r_mul(&a->p->p[i], x);
}

static real typical_slack(const struct ask *a) {
    real sum = sc_sum(extremal, a, 0, a->p->finite);
    return a->flag ? sum : r_negative(sum);
}

static const struct rule_kind kinds[] = {
    // name, counts and rationals, their range, membership beside the count, its radius where it has a closed form, and
    // which universal bound
    {"greedy", 0, 0, POSITIVE, is_any, NULL, 0},
    {"topm", 1, 0, POSITIVE, is_any, NULL, 0},
    {"additive", 0, 1, BELOW_ONE, is_near, near_radius, 'a'},
    {"topk-delta", 1, 1, BELOW_ONE, is_near, near_radius, 0},
    {"multiplicative", 0, 1, FRACTION, is_likely, ratio_radius, 'm'},
    {"topk-ratio", 1, 1, FRACTION, is_likely, ratio_radius, 0},
    {"entropy", 0, 2, POSITIVE, is_typical, level_radius, 'e'},
    {"nucleus", 0, 1, FRACTION, is_needed, NULL, 0},
    {"absolute", 0, 1, FRACTION, is_above, level_radius, 't'},
    {"regret", 0, 1, POSITIVE, is_bearable, level_radius, 'r'},
};

mpq_ptr sc_rational(const char *text, const char *field) { // which lasts as long as the run
    sc_need(run->rational_count < RATIONALS, field, "fewer rationals");
    mpq_ptr q = run->rationals[run->rational_count];
    mpq_init(q);
    run->rational_count++;
    bool like = sc_like(text, "^[0-9]{1,40}(/[0-9]{1,40})?$") && mpq_set_str(q, text, 10) == 0;
    sc_need(like && mpz_sgn(mpq_denref(q)) != 0, field, "a rational");
    mpq_canonicalize(q);
    return q;
}

// "name", or "name:parameter,parameter": a count first, if the rule has one.
void sc_rule(struct rule *r, const char *text, const char *field) {
    char copy[sizeof r->text];
    sc_need(strlen(text) < sizeof copy, field, "a shorter rule");
    strcpy(r->text, text);
    strcpy(copy, text);
    char *rest = copy, *name = strsep(&rest, ":");
    for (r->kind = kinds; r->kind < kinds + 10 && strcmp(r->kind->name, name) != 0;) r->kind++;
    sc_need(r->kind < kinds + 10, field, "a rule");
    mpq_ptr given[3] = {run->one, run->zero, run->zero};
    for (int i = !r->kind->counts; i < 1 + r->kind->rationals; i++) {
        char *word = rest ? strsep(&rest, ",:") : NULL;
        sc_need(word != NULL, field, "as many parameters as the rule has");
        given[i] = sc_rational(word, field);
    }
    sc_need(rest == NULL, field, "as many parameters as the rule has");
    bool whole =
        mpz_cmp_ui(mpq_denref(given[0]), 1) == 0 && mpq_sgn(given[0]) > 0 && mpq_cmp_ui(given[0], 1UL << 53, 1) < 0;
    sc_need(whole, field, "a count from 1");
    r->counted = r->kind->counts > 0 || r->kind == kinds;
    r->count = r->counted ? mpz_get_ui(mpq_numref(given[0])) : SIZE_MAX;
    r->a = given[1];
    r->b = given[2];
    bool fraction = r->kind->range == FRACTION, below = r->kind->range == BELOW_ONE;
    sc_need(!fraction || (mpq_sgn(r->a) > 0 && mpq_cmp_ui(r->a, 1, 1) <= 0), field, "a parameter above 0, at most 1");
    sc_need(!below || mpq_cmp_ui(r->a, 1, 1) < 0, field, "a parameter below 1");
}

enum answer sc_member(struct ask a) { // is the token at place a.at of the order in A(p)?
    return a.at >= a.p->count || a.at >= a.rule->count ? NO : a.rule->kind->member(&a);
}

static real less_eta(const struct ask *a) {
    real r = a->value(a);
    return r_is(r, INFINITY) ? r_number(1) : r_sub(r, r_number(a->eta));
}

static enum answer at_least(struct ask a, quantity *radius) { // eta
    a.value = radius;
    return sc_decide(less_eta, &a);
}

static real count_radius(const struct ask *a) {
    bool in = a->at < a->k;
    if (in && a->rule->count >= a->p->count) return r_number(INFINITY);
    return in ? half_gap(a->p, a->at, a->rule->count) : half_gap(a->p, a->rule->count - 1, a->at);
}

static real closed_radius(const struct ask *a) {
    if (!a->rule->kind->radius) return count_radius(a);
    return a->rule->counted ? r_min(count_radius(a), a->rule->kind->radius(a)) : a->rule->kind->radius(a);
}

static enum answer both(enum answer a, enum answer b) {
    return a == NO || b == NO ? NO : a == OPEN || b == OPEN ? OPEN : YES;
}

static enum answer either(enum answer a, enum answer b) { return not(both(not(a), not(b))); }

static bool moves(const struct ask *a) { // can noise turn the decision at all?
    bool in = a->at < a->k, zero = a->at >= a->p->finite;
    if (a->rule->kind->member == is_needed)
        return mpq_cmp_ui(a->rule->a, 1, 1) < 0 && !zero && (!in || a->p->finite > 1);
    return !zero || sc_compare(a->p->finite, a->rule->a, 1) >= 0; // additive: equal logits may leave p_1 <= eps
}

// Is the radius of a decision, which changes sign at it, at least lo and at most hi?
static enum answer between(struct ask a, quantity *slack, double lo, double hi) {
    if (!moves(&a) || isinf(lo)) return !moves(&a) && (isinf(lo) || isinf(hi)) && hi > 0 && isinf(hi) ? YES : NO;
    a.eta = lo;
    a.flag = false;
    enum answer low = sc_decide(slack, &a);
    a.eta = hi;
    a.flag = true;
    return both(low, isinf(hi) ? YES : sc_decide(slack, &a));
}

// Is the radius at least eta, as far as theory.md §6 can tell?
static enum answer bound(struct ask a) {
    bool in = a.at < a.k, zero = a.at >= a.p->finite;
    if (a.rule->kind->member == is_typical) {
        if (zero && !in) return YES;
        a.flag = !in;
        enum answer eps = at_least(a, level_radius), delta = sc_decide(typical_slack, &a);
        return in ? either(both(is_above(&a), eps), delta) : both(eps, delta);
    }
    enum answer by_count = a.at < a.rule->count ? NO : at_least(a, count_radius),
                in_property = a.rule->kind->member(&a);
    enum answer by_property =
        a.rule->kind->member == is_near ? between(a, near_slack, a.eta, INFINITY) : at_least(a, ratio_radius);
    return either(by_count, both(not(in_property), by_property));
}

void sc_radius(const cJSON *claim, struct ask a, bool rows) { // of the decision about the token at place a.at
    const struct rule_kind *kind = a.rule->kind;
    bool in = a.at < a.k, half = kind->member == is_typical || (rows && !in && kind->counts && kind->rationals);
    if (!rows)
        half = half || (kind->counts && kind->rationals &&
                        isinf(sc_real(sc_get(claim, "radius", cJSON_Array)->child->next, "radius")));
    struct ends e = sc_enclosure(claim, "radius", half);
    sc_must(e.lo >= 0, "radius", "a value >= 0");
    if (!rows) return;
    enum answer truth = YES;
    a.eta = e.lo;
    if (half) truth = bound(a);
    else if (kind->member == is_needed || (kind->member == is_near && !in))
        truth = between(a, kind->member == is_needed ? nucleus_slack : near_slack, e.lo, e.hi);
    else sc_prove(claim, "radius", closed_radius, &a, true);
    sc_must(truth != NO, "radius", "the decision's radius");
    sc_open(truth == OPEN, "radius");
}

static real eps_or_delta(const struct ask *a) { // ln delta - H - ln eps
    return r_sub(r_sub(r_log(r_rational(a->rule->b)), q_entropy(a)), r_log(r_rational(a->rule->a)));
}

// Is eps the smaller threshold of the entropy rule, or equal?
enum answer sc_eps_is_active(const struct ask *a) {
    mpq_t n_eps;
    if (mpq_sgn(a->rule->a) == 0 || mpq_sgn(a->rule->b) == 0) return mpq_sgn(a->rule->a) == 0 ? YES : NO;
    if (!flat(a)) return sc_decide(eps_or_delta, a);
    mpq_init(n_eps);
    mpq_set_ui(n_eps, a->p->finite, 1);
    mpq_mul(n_eps, n_eps, a->rule->a);
    int sign = mpq_cmp(n_eps, a->rule->b);
    mpq_clear(n_eps);
    return sign <= 0 ? YES : NO;
}
