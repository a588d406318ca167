// What two rows are to each other; levels, thresholds and margins; whether a divergence is below its threshold, with
// the known identities settled first. theory.md §1-§4, §8. p is a->p, q is a->q; A is the first k of p's order, S the
// next m. A p on the draft's vocabulary (§4) is a row like any other.
#include "rule.h"

static real one(void) { return r_number(1); }
static real p_of(const struct ask *a, size_t j) { return &a->p->p[a->p->order[j]]; }
static bool q_lacks(const struct ask *a, size_t i) { return isinf(a->q->logit[i]); }

static real extreme(const struct ask *a, bool least) { // of T ln(p/q), but for a constant
    struct real *best = r_zero();
    r_copy(best, r_number(least ? INFINITY : -INFINITY));
    size_t used = run->used;
    for (size_t j = 0; j < a->p->count; j++, run->used = used) {
        size_t i = a->p->order[j];
        real distance = r_sub(r_number(a->p->logit[i]), r_number(a->q->logit[i]));
        if (j < a->p->finite || !q_lacks(a, i)) r_copy(best, (least ? r_min : r_max)(best, distance));
    }
    return best;
}

static bool same(const struct ask *a) { // is it the same law, as the logits differ by a constant?
    size_t used = run->used;
    mpfr_prec_t precision = run->precision;
    run->precision = EXACT;
    bool constant = r_same(extreme(a, false), extreme(a, true));
    run->precision = precision;
    run->used = used;
    return constant;
}

static real q_lse(const struct ask *a) {
    real first = over_t(a->p, r_number(a->p->logit[a->p->order[0]]));
    return r_add(first, &a->p->p[run->vocab]);
}

TERM(surprise) { return r_mul(&a->p->p[i], r_negative(log_p(a->p, i))); }
TERM(excess) { return r_positive(r_sub(&a->p->p[i], &a->q->p[i])); }
TERM(lesser) { return r_min(&a->p->p[i], &a->q->p[i]); }

static real log_ratio(const struct ask *a, size_t i) { // ln(p/q)
    return q_lacks(a, i) ? r_number(INFINITY) : r_sub(log_p(a->p, i), log_p(a->q, i));
}

TERM(kl_term) { return r_mul(&a->p->p[i], log_ratio(a, i)); }
static real over_support(term *value, const struct ask *a) { return r_positive(sum_of(value, a, 0, a->p->finite)); }
static real q_regret(const struct ask *a) { return r_negative(z_of(a->p, a->token)); }
static real q_entropy(const struct ask *a) { return over_support(surprise, a); }
static real q_kl_pq(const struct ask *a) { return same(a) ? r_number(0) : over_support(kl_term, a); }
static real q_kl_qp(const struct ask *a) { return q_kl_pq(&(struct ask){.p = a->q, .q = a->p}); }
static real q_tv(const struct ask *a) { return same(a) ? r_number(0) : r_min(one(), over_support(excess, a)); }
static real q_standard_accept(const struct ask *a) { return same(a) ? one() : r_min(one(), over_support(lesser, a)); }

TERM(product) { // p^a q^(1 - a)
    real order = r_rational(a->divergence->order), rest = r_sub(one(), order);
    if (q_lacks(a, i)) return r_number(mpfr_sgn(rest->hi) < 0 ? INFINITY : 0);
    return r_exp(r_add(r_mul(order, log_p(a->p, i)), r_mul(rest, log_p(a->q, i))));
}

// A divergence from the sum of p^a q^(1 - a), or its threshold from the least such sum, Z^a.
static real from_sum(const struct divergence *d, real sum) {
    if (d->form == LOGARITHM) return r_mul(r_rational(d->scale), r_log(sum));
    return d->form == ONE_LESS ? r_sub(one(), sum) : r_sub(sum, one());
}

// flag: the spread is not divided by T, so that it is exact.
static real spread(const struct ask *a, real x) { return a->flag ? x : over_t(a->p, x); }

static real q_divergence(const struct ask *a) {
    const struct divergence *d = a->divergence;
    if (same(a)) return r_number(0);
    real most = r_mul(extreme(a, false), r_rational(a->p->inverse)), lse = q_lse(&(struct ask){.p = a->q});
    if (d->form == LARGEST) return r_add(r_sub(most, q_lse(a)), lse);
    if (d->form == SPREAD) return spread(a, r_sub(extreme(a, false), extreme(a, true)));
    for (size_t j = a->p->finite; j < a->p->count && mpq_sgn(d->order) < 0; j++)
        if (!q_lacks(a, a->p->order[j])) return r_number(INFINITY);
    return r_positive(from_sum(d, sum_of(product, a, 0, a->p->finite)));
}

// The power-mean level of an order is a value of p for the root x of sum_A (v - x)^+ = sum_S (x - v)^+, v being p, ln p
// (order 0) or p^order, with its sign turned below 0. The root is the mean of v over a guessed set, widened, and proved
// by the signs of the balance at both ends.
TERM(height) {
    int sign = mpq_sgn(a->order);
    if (sign == 0) return r_number(a->p->logit[i]); // T ln p, but for a constant
    if (mpq_cmp_ui(a->order, 1, 1) == 0 || j >= a->p->finite) return &a->p->p[i];
    real v = r_exp(r_mul(r_rational(a->order), log_p(a->p, i)));
    return sign < 0 ? r_negative(v) : v;
}

static real height_at(const struct ask *a, size_t j) { return height(a, j, a->p->order[j]); }

TERM(balance_term) {
    real d = r_sub(height(a, j, i), a->x);
    return j < a->k ? r_positive(d) : r_min(d, r_number(0));
}

static real sum_at(real x, term *value, const struct ask *ask, size_t from, size_t to) { // with a level
    struct ask a = *ask;
    a.x = x;
    return sum_of(value, &a, from, to);
}

static real balance(const struct ask *a, real x) { return sum_at(x, balance_term, a, 0, a->k + a->m); }

// The tied set is the places before *first and from *last to k + m: bisects for the first place whose balance is >= 0.
static void split(const struct ask *a, size_t *first, size_t *last) {
    size_t low = 0, high = a->k + a->m - 1;
    while (low < high) {
        size_t j = low + (high - low) / 2;
        real b = balance(a, height_at(a, j));
        if (mpfr_sgn(b->lo) + mpfr_sgn(b->hi) >= 0) high = j;
        else low = j + 1;
    }
    *first = low < a->k ? low : a->k;
    *last = low > a->k ? low : a->k;
}

static real level(const struct ask *a, mpq_srcptr order) {
    struct ask b = *a;
    size_t n = a->k + a->m, first, last;
    int sign = mpq_sgn(b.order = order);
    if (sign <= 0 && a->p->finite < n) return r_number(0);
    split(&b, &first, &last);
    real sum = r_add(sum_of(height, &b, 0, first), sum_of(height, &b, last, n)), high = height_at(&b, 0);
    real size = r_max(r_max(high, r_negative(high)), r_negative(height_at(&b, n - 1)));
    real error = r_scaled(r_times(size, n), 20 - run->precision); // of the sum, generously
    real x = r_add(r_over(sum, first + n - last), r_hull(error, r_negative(error)));
    bool proved = mpfr_sgn(balance(&b, r_low(x))->lo) >= 0 && mpfr_sgn(balance(&b, r_high(x))->hi) <= 0;
    if (!proved) return r_number(NAN); // at this precision
    if (mpq_cmp_ui(order, 1, 1) == 0) return x;
    if (sign == 0) { // from T ln p and a constant to p
        real z = r_mul(r_sub(x, r_number(a->p->logit[a->p->order[0]])), r_rational(a->p->inverse));
        return r_exp(r_sub(z, &a->p->p[run->vocab]));
    }
    real log = r_log(sign < 0 ? r_negative(x) : x), power = r_rational(order);
    return r_exp(sign < 0 ? r_negative(r_div(log, r_negative(power))) : r_div(log, power));
}

static bool level_row(const struct ask *a) { return tied(a->p, 0, a->k + a->m); } // then every threshold is 0
static real q_level_f(const struct ask *a) { return level(a, run->one); }
static real q_level_r(const struct ask *a) { return r_log(level(a, run->zero)); }

TERM(clipped) { return j >= a->k + a->m ? &a->p->p[i] : (j < a->k ? r_min : r_max)(&a->p->p[i], a->x); }
TERM(above) { return r_positive(r_sub(&a->whole->p[i], a->x)); }
TERM(below) { return r_positive(r_sub(a->x, &a->whole->p[i])); }

TERM(klf_term) { // p ln(p/t), p moved to t by the level
    if (j >= a->p->finite) return r_number(0);
    return r_mul(&a->p->p[i], r_sub(log_p(a->p, i), r_log(clipped(a, j, i))));
}

static real log_z(const struct ask *a, mpq_srcptr order) {
    return r_log(sum_at(level(a, order), clipped, a, 0, a->p->count));
}

static real q_klf(const struct ask *a) {
    return level_row(a) ? r_number(0) : r_positive(sum_at(level(a, run->one), klf_term, a, 0, a->k + a->m));
}

static real q_klr(const struct ask *a) {
    return level_row(a) ? r_number(0) : r_positive(r_negative(log_z(a, run->zero)));
}

static real q_tv_star(const struct ask *a) {
    return level_row(a) ? r_number(0) : r_min(one(), sum_at(level(a, run->one), above, a, 0, a->k));
}

static real q_divergence_star(const struct ask *a) {
    const struct divergence *d = a->divergence;
    size_t n = a->k + a->m;
    if (level_row(a)) return r_number(0);
    if (d->form == LARGEST) return r_log(r_add(one(), sum_at(p_of(a, 0), below, a, a->k, n)));
    if (d->form == SPREAD) return spread(a, gap(a->p, a->p->order[0], a->p->order[n - 1]));
    return r_positive(from_sum(d, r_exp(r_mul(r_rational(d->order), log_z(a, d->order)))));
}

// p on the draft's vocabulary D: its mass under the whole p, and the thresholds that say how far q may be from that
// one. The least over t of the larger of a rising and a falling function lies between their values at any t: bisects
// for a t where they are close.
TERM(lost) { return q_lacks(a, i) ? &a->p->p[i] : r_number(0); }
TERM(whole_p) { return &a->whole->p[i]; }
static bool loses_nothing(const struct ask *a) { return a->whole->finite == a->p->finite; }
static real q_mass(const struct ask *a) { return loses_nothing(a) ? one() : sum_of(whole_p, a, 0, a->p->finite); }
static real q_klr_restricted(const struct ask *a) { return r_sub(q_klr(a), r_log(q_mass(a))); }
static real q_tv_whole(const struct ask *a) { return q_tv(&(struct ask){.p = a->whole, .q = a->q}); }
static real outside(const struct ask *a) { return over_support(lost, &(struct ask){.p = a->whole, .q = a->q}); }

static real q_tv_restricted(const struct ask *a) {
    if (loses_nothing(a)) return q_tv_star(a);
    real up = r_number(0), down = up, low = up, high = r_number(2), missing = outside(a);
    for (long bits = 0; bits < run->precision; bits++) {
        real x = r_low(r_over(r_add(low, high), 2));
        up = sum_at(x, below, a, a->k, a->k + a->m);
        down = r_add(missing, sum_at(x, above, a, 0, a->k));
        if (mpfr_less_p(up->lo, down->lo)) low = x;
        else high = x;
    }
    return r_hull(up, down);
}

// The thresholds of a row with k tokens of u, m of v and `rest` elsewhere. Parts, here and below: 1 klf, 2 klr, 3 tv.
static real of_two(size_t k, size_t m, real u, real v, real rest, int part) {
    size_t n = k + m;
    real c = r_over(r_add(r_times(u, k), r_times(v, m)), n), tail = r_number(0), g = tail;
    if (part == 3) return r_times(r_sub(u, c), k);
    if (!r_is(v, 0)) tail = r_mul(r_times(v, m), r_log(r_div(v, c)));
    if (part == 1) return r_positive(r_add(r_mul(r_times(u, k), r_log(r_div(u, c))), tail));
    if (!r_is(v, 0)) g = r_exp(r_over(r_add(r_times(r_log(u), k), r_times(r_log(v), m)), n));
    return r_positive(r_negative(r_log(r_add(rest, r_times(g, n)))));
}

TERM(over_last) { // p - p_(k), exactly 0 for equal logits
    return tied(a->p, j, a->k) ? r_number(0) : r_sub(&a->p->p[i], p_of(a, a->k - 1));
}

static real q_margin(const struct ask *a) { // part 0: the gap y. theory.md §3
    size_t k = a->k, n = a->k + a->m;
    if (tied(a->p, k - 1, k + 1)) return r_number(0);
    real y = r_sub(p_of(a, k - 1), p_of(a, k)), u = r_add(one(), r_times(y, a->m));
    if (a->part == 0) return y;
    real v = r_add(sum_of(over_last, a, 0, k), r_add(mass(a->p, k, a->p->finite), r_times(p_of(a, k), k)));
    return of_two(k, a->m, r_over(u, n), r_over(v, n), r_number(0), a->part);
}

static real threshold(const struct ask *a) { // below which all rejected tokens lie
    real x = r_rational(a->rule->a);
    char kind = a->rule->kind->universal;
    if (kind == 'm') return r_mul(x, p_of(a, 0));
    if (kind == 'e') return r_min(x, r_mul(r_rational(a->rule->b), r_exp(r_negative(q_entropy(a)))));
    return kind == 'r' ? r_exp(r_negative(x)) : x;
}

static real q_below_threshold(const struct ask *a) { return r_sub(threshold(a), p_of(a, 0)); } // of the first token

static real q_universal(const struct ask *a) {
    size_t m = a->m;
    char kind = a->rule->kind->universal;
    real p = p_of(a, 0), x = r_rational(a->rule->a), rest = mass(a->p, 1, a->p->finite);
    real u = r_over(r_add(one(), r_times(x, m)), m + 1);
    if (kind == 'a' && r_is(x, 0)) return r_number(0); // nothing but ties is accepted
    if (kind == 'a') return of_two(1, m, u, r_over(r_sub(one(), x), m + 1), r_number(0), a->part);
    bool all = r_is(x, 1) && kind == 'm' && mpfr_less_p(r_times(p, m)->hi, rest->lo);
    if (all) return r_number(0); // alpha = 1: the rejected may be as likely as the first
    real s = r_min(threshold(a), r_over(rest, m));
    return of_two(1, m, p, s, r_positive(r_sub(rest, r_times(s, m))), a->part);
}

// Is a place in the tied set of an order (flag), or not?  Within 2^-30 of the level it can fall either way.
static real is_tied(const struct ask *a) {
    real x = level(a, a->order), above_it = r_sub(p_of(a, a->at), x);
    if ((a->at < a->k) != a->flag) above_it = r_negative(above_it);
    return r_add(above_it, r_mul(x, r_number(0x1p-30)));
}

// p uniform on n tokens, b of them in A, with z zeros in S; q on N, with o in common: rationals, or powers of them.
static bool equal_if_uniform(const struct ask *a, enum threshold which) {
    size_t n = a->p->finite, N = a->q->finite, o = 0, most = n > N ? n : N, b = a->k < n ? a->k : n;
    size_t z = a->k + a->m - (a->k > n ? a->k : n);
    if (!flat(a->p) || !flat(a->q)) return false;
    for (size_t j = 0; j < n; j++) o += !q_lacks(a, a->p->order[j]);
    if (which == TV) return (uint64_t)(most - o) * n * (b + z) == (uint64_t)b * z * most;
    if (which != KLF || o != n || n > 4096) return false;
    run->precision = 1 << 18; // which holds them; ln(N/n) against b/n ln((b + z)/b)
    size_t used = run->used;
    bool equal = r_same(r_mul(r_power(N, n), r_power(b, b)), r_mul(r_power(n, n), r_power(b + z, b)));
    run->used = used;
    return equal;
}

// Does the tied set of an order hold the whole support, and is q uniform on it?
static real over_level(const struct ask *a) {
    real x = level(a, a->order), in_a = r_sub(p_of(a, (a->k < a->p->finite ? a->k : a->p->finite) - 1), x);
    return a->k < a->p->finite ? r_min(in_a, r_sub(x, p_of(a, a->k))) : in_a;
}

static bool is_even_witness(struct ask a, mpq_srcptr order) {
    size_t finite = a.p->finite, in_a = a.k < finite ? a.k : finite;
    a.order = order;
    if (!flat(a.q) || finite > a.k + a.m || a.q->finite != in_a + a.m) return false;
    for (size_t j = 0; j < finite; j++)
        if (q_lacks(&a, a.p->order[j])) return false;
    return decide(over_level, &a) == YES;
}

// Is q the witness of order 0, or of one below when S has an empty token, up to swaps of tokens that are equal in p?
// Then its logits are those of p and a constant outside the tied set, and inside their mean, or -inf with an empty
// token.
static bool is_geometric_witness(struct ask a) {
    size_t n = a.k + a.m, finite = a.p->finite, first = a.k, last = a.k > finite ? a.k : finite;
    bool mean = finite >= n, same = true;
    run->precision = EXACT;
    a.order = run->zero;
    size_t outer = run->used;
    if (mean) split(&a, &first, &last);
    size_t count = mean ? first + n - last : 1, untied = first < last ? first : n;
    real at = r_number(-INFINITY), top; // the level, times count
    if (mean) at = r_add(sum_of(height, &a, 0, first), sum_of(height, &a, last, n));
    top = untied < finite ? r_max(at, r_times(height_at(&a, untied), count)) : at;
    real shift = r_sub(r_times(r_number(a.q->logit[a.q->order[0]]), count), top);
    int64_t tally = r_is(top, -INFINITY); // tied tokens of a class of equal ones, less those at the level
    size_t inner = run->used;
    for (size_t j = 0; j < a.p->count && same; j++, run->used = inner) {
        size_t i = a.p->order[j];
        real found = r_sub(r_times(r_number(a.q->logit[i]), count), shift), own = r_times(height_at(&a, j), count);
        bool at_level = r_same(found, at), end = j + 1 == a.p->count || !tied(a.p, j, j + 2);
        if (!r_same(own, at)) tally += (j < first || (j >= last && j < n)) - at_level;
        same = (at_level || r_same(found, own)) && (!end || tally == 0);
    }
    run->used = outer;
    return same;
}

// Is ln(p/q) largest where it must be, so that the exponents of both sides of `max` are the same, in order?
static bool is_max_witness(const struct ask *a) {
    bool equal = true;
    run->precision = EXACT;
    real most = extreme(a, false);
    size_t used = run->used;
    for (size_t t = 0; t < a->p->count && equal; t++, run->used = used) {
        size_t j = t < a->m ? 0 : t - a->m < a->k ? t - a->m : t; // p with S raised to the first
        real found = r_add(r_number(a->q->logit[a->q->order[t]]), most);
        equal = r_same(found, r_number(a->p->logit[a->p->order[j]]));
    }
    return equal;
}

// TV on the draft's vocabulary is never below its threshold when the mass outside is more than the level needs to pass
// all of A, and equals it when q is uniform on D, every token of which moves to the level.
static real q_reach(const struct ask *a) {
    real first = &a->whole->p[a->p->order[0]];
    return r_sub(outside(a), sum_at(first, below, a, a->k, a->k + a->m));
}

static real over_share(const struct ask *a) {
    real share = r_over(one(), a->p->count), next = &a->whole->p[a->p->order[a->k]];
    return r_min(r_sub(&a->whole->p[a->p->order[a->k - 1]], share), r_sub(share, next));
}

static bool is_even_draft(const struct ask *a) {
    bool even = a->k + a->m == a->p->count && a->q->finite == a->p->count && flat(a->q);
    return even && decide(over_share, a) == YES;
}

static real difference(const struct ask *a) {
    real value = a->value(a);
    return r_is(value, INFINITY) ? value : r_sub(value, a->star(a));
}

// Is the divergence of the rows below its threshold?
static enum answer certifies(struct ask a, enum threshold which, quantity *value, quantity *star) {
    mpq_srcptr order = which == DIVERGENCE ? a.divergence->order : which == KLR ? run->zero : run->one;
    bool restricted_tv = which == OTHER && star == q_tv_restricted;
    bool emptied = mpq_sgn(order) <= 0 && a.p->finite < a.k + a.m;
    a.value = value;
    a.star = star;
    a.flag = true;
    if (!restricted_tv && level_row(&a)) return NO;
    if (which != OTHER && (equal_if_uniform(&a, which) || (!emptied && is_even_witness(a, order)))) return NO;
    if (which != OTHER && (which == KLR || emptied) && is_geometric_witness(a)) return NO;
    if (star == q_divergence_star && a.divergence->form == LARGEST && is_max_witness(&a)) return NO;
    if (restricted_tv && (decide(q_reach, &a) == YES || is_even_draft(&a))) return NO;
    enum answer over = decide(difference, &a);
    return over == OPEN ? OPEN : over == YES ? NO : YES;
}

static void read_divergence(struct divergence *d, const char *text) {
    static const char *const names[] = {"hellinger", "chi2", "chi2-reverse", "max", "spread", NULL};
    static const char *const orders[] = {"1/2", "2", "1", "0", "0"};
    bool renyi = like(text, "^renyi(-reverse)?:"), reverse = strstr(text, "reverse") != NULL;
    int i = renyi ? 0 : among_words(text, "divergences", names);
    need(strlen(text) < sizeof d->text, "divergences");
    strcpy(d->text, text);
    d->order = rational(renyi ? strchr(text, ':') + 1 : orders[i], "divergences");
    d->form = renyi ? LOGARITHM : (const enum form[]){ONE_LESS, LESS_ONE, LESS_ONE, LARGEST, SPREAD}[i];
    if (!renyi && reverse) mpq_neg(d->order, d->order);
    if (!renyi) return;
    need(mpq_sgn(d->order) > 0 && mpq_cmp_ui(d->order, 1, 1) != 0, "divergences");
    d->scale = rational("0", "divergences");
    mpq_sub(d->scale, d->order, run->one);
    mpq_inv(d->scale, d->scale); // 1/(A - 1), which is -1/a for a = 1 - A as well
    if (reverse) mpq_sub(d->order, run->one, d->order);
}
