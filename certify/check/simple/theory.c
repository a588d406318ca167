// What two rows are to each other; levels, thresholds and margins; whether a divergence is below its threshold, with
// the known identities settled first. theory.md §1-§4, §8. p is a->p, q is a->q; A is the first k of p's order, S the
// next m. A p on the draft's vocabulary (§4) is a row like any other.
#include "parts.h"

static real one(void) { return r_number(1); }
static real p_of(const struct ask *a, size_t j) { return &a->p->p[a->p->order[j]]; }
static bool q_lacks(const struct ask *a, size_t i) { return isinf(a->q->logit[i]); }
static bool same(const struct ask *a) { return sc_same_law(a->p, a->q); }

real q_lse(const struct ask *a) {
    return r_add(r_mul(r_number(a->p->logit[a->p->order[0]]), r_rational(a->p->inverse)), &a->p->log_sum);
}

real q_regret(const struct ask *a) { return r_negative(sc_z(a->p, a->token)); }
TERM(surprise) { return r_mul(p_of(a, j), r_negative(sc_log_p(a->p, i))); }
real q_entropy(const struct ask *a) { return r_positive(sc_sum(surprise, a, 0, a->p->finite)); }

static real log_ratio(const struct ask *a, size_t i) { // ln(p/q)
    return q_lacks(a, i) ? r_number(INFINITY) : r_sub(sc_log_p(a->p, i), sc_log_p(a->q, i));
}

TERM(kl_term) { return r_mul(p_of(a, j), log_ratio(a, i)); }
TERM(excess) { return r_positive(r_sub(p_of(a, j), &a->q->p[i])); }
TERM(lesser) { return r_min(p_of(a, j), &a->q->p[i]); }
real q_kl_pq(const struct ask *a) { return same(a) ? r_number(0) : r_positive(sc_sum(kl_term, a, 0, a->p->finite)); }
real q_kl_qp(const struct ask *a) { return q_kl_pq(&(struct ask){.p = a->q, .q = a->p}); }
real q_tv(const struct ask *a) { return same(a) ? r_number(0) : r_min(one(), sc_sum(excess, a, 0, a->p->finite)); }

real q_standard_accept(const struct ask *a) {
    return same(a) ? one() : r_min(one(), sc_sum(lesser, a, 0, a->p->finite));
}

TERM(product) { // p^a q^(1 - a)
    real order = r_rational(a->divergence->order), rest = r_sub(one(), order);
    if (q_lacks(a, i)) return r_number(mpfr_sgn(rest->hi) < 0 ? INFINITY : 0);
    return r_exp(r_add(r_mul(order, sc_log_p(a->p, i)), r_mul(rest, sc_log_p(a->q, i))));
}

static real extreme(const struct ask *a, bool least, bool raw) { // of ln(p/q), or of T ln(p/q) and a constant
    struct real *best = r_zero();
    r_copy(best, r_number(least ? INFINITY : -INFINITY));
    struct mark mark = r_mark();
    for (size_t j = 0; j < a->p->count; j++, r_release(mark)) {
        size_t i = a->p->order[j];
        if (j >= a->p->finite && q_lacks(a, i)) continue;
        real gap = r_sub(r_number(a->p->logit[i]), r_number(a->q->logit[i]));
        r_copy(best, (least ? r_min : r_max)(best, raw || isinf(a->p->logit[i]) ? gap : log_ratio(a, i)));
    }
    return best;
}

// A divergence from the sum of p^a q^(1 - a), or its threshold from the least such sum, Z^a.
static real from_sum(const struct divergence *d, real sum) {
    if (d->form == LOGARITHM) return r_mul(r_rational(d->scale), r_log(sum));
    return d->form == ONE_LESS ? r_sub(one(), sum) : r_sub(sum, one());
}

real q_divergence(const struct ask *a) { // raw: the spread is not divided by T, so that it is exact
    const struct divergence *d = a->divergence;
    if (same(a)) return r_number(0);
    if (d->form == LARGEST) return extreme(a, false, false);
    real spread = d->form == SPREAD ? r_sub(extreme(a, false, true), extreme(a, true, true)) : NULL;
    if (spread) return a->raw ? spread : r_mul(spread, r_rational(a->p->inverse));
    for (size_t j = a->p->finite; j < a->p->count && mpq_sgn(d->order) < 0; j++)
        if (!q_lacks(a, a->p->order[j])) return r_number(INFINITY);
    return r_positive(from_sum(d, sc_sum(product, a, 0, a->p->finite)));
}

// The power-mean level of an order is a value of p for the root x of sum_A (v - x)^+ = sum_S (x - v)^+, v being p, ln p
// (order 0) or p^order, with its sign turned below 0. The root is the mean of v over a guessed set, widened, and proved
// by the signs of the balance at both ends.
static real height(const struct ask *a, size_t j) {
    int sign = mpq_sgn(a->order);
    if (sign == 0) return r_number(a->p->logit[a->p->order[j]]); // T ln p, but for a constant
    if (mpq_cmp_ui(a->order, 1, 1) == 0 || j >= a->p->finite) return p_of(a, j);
    real v = r_exp(r_mul(r_rational(a->order), sc_log_p(a->p, a->p->order[j])));
    return sign < 0 ? r_negative(v) : v;
}

TERM(height_term) { return height(a, j); }

TERM(balance_term) {
    real d = r_sub(height(a, j), a->x);
    return j < a->k ? r_positive(d) : r_negative(r_positive(r_negative(d)));
}

static real balance(struct ask a, real x) {
    a.x = x;
    return sc_sum(balance_term, &a, 0, a.k + a.m);
}

// The tied set is the places before *first and from *last to k + m: bisects for the first place whose balance is >= 0.
static void split(const struct ask *a, size_t *first, size_t *last) {
    size_t low = 0, high = a->k + a->m - 1;
    while (low < high) {
        size_t j = low + (high - low) / 2;
        real b = balance(*a, height(a, j));
        bool up = mpfr_sgn(b->lo) + mpfr_sgn(b->hi) >= 0;
        *(up ? &high : &low) = up ? j : j + 1;
    }
    *first = low < a->k ? low : a->k;
    *last = low > a->k ? low : a->k;
}

static real level(const struct ask *a) {
    size_t n = a->k + a->m, first, last;
    if (mpq_sgn(a->order) <= 0 && a->p->finite < n) return r_number(0);
    split(a, &first, &last);
    real sum = r_add(sc_sum(height_term, a, 0, first), sc_sum(height_term, a, last, n));
    real size = r_max(r_max(height(a, 0), r_negative(height(a, 0))), r_negative(height(a, n - 1)));
    real x = r_widen(r_div(sum, r_number((double)(first + n - last))), r_times(size, n));
    if (mpfr_sgn(balance(*a, r_end(x, false))->lo) < 0 || mpfr_sgn(balance(*a, r_end(x, true))->hi) > 0)
        return r_number(NAN); // not proved at this precision
    int sign = mpq_sgn(a->order);
    real z = r_mul(r_sub(x, r_number(a->p->logit[a->p->order[0]])), r_rational(a->p->inverse));
    if (sign == 0) return r_exp(r_sub(z, &a->p->log_sum));
    if (mpq_cmp_ui(a->order, 1, 1) == 0) return x;
    real order = r_rational(a->order), log = r_log(sign < 0 ? r_negative(x) : x);
    return r_exp(sign < 0 ? r_negative(r_div(log, r_negative(order))) : r_div(log, order));
}

static struct ask at_level(const struct ask *ask, mpq_srcptr order) {
    struct ask a = *ask;
    a.order = order;
    a.x = level(&a);
    return a;
}

static bool flat(const struct ask *a) { return sc_level(a->p, 0, a->k + a->m); } // then every threshold is 0
real q_level_f(const struct ask *a) { return at_level(a, run->one).x; }
real q_level_r(const struct ask *a) { return r_log(at_level(a, run->zero).x); }

TERM(klf_term) { // p ln(p/t) - p + t >= 0, p moved to t by the level
    real p = p_of(a, j), t = (j < a->k ? r_min : r_max)(p, a->x);
    return j >= a->p->finite ? t : r_positive(r_add(r_sub(r_mul(p, r_sub(sc_log_p(a->p, i), r_log(t))), p), t));
}

TERM(z_term) { return j < a->k ? r_min(p_of(a, j), a->x) : j < a->k + a->m ? r_max(p_of(a, j), a->x) : p_of(a, j); }
TERM(above) { return r_positive(r_sub(p_of(a, j), a->x)); }
TERM(below) { return r_positive(r_sub(a->x, p_of(a, j))); }

real q_klf(const struct ask *ask) {
    struct ask a = at_level(ask, run->one);
    return flat(&a) ? r_number(0) : sc_sum(klf_term, &a, 0, a.k + a.m);
}

static real z_star(const struct ask *ask, mpq_srcptr order) {
    struct ask a = at_level(ask, order);
    return sc_sum(z_term, &a, 0, a.p->count);
}

real q_klr(const struct ask *a) { return flat(a) ? r_number(0) : r_positive(r_negative(r_log(z_star(a, run->zero)))); }

real q_tv_star(const struct ask *ask) {
    struct ask a = at_level(ask, run->one);
    return flat(&a) ? r_number(0) : r_min(one(), sc_sum(above, &a, 0, a.k));
}

real q_divergence_star(const struct ask *a) {
    const struct divergence *d = a->divergence;
    size_t n = a->k + a->m, first = a->p->order[0];
    if (flat(a)) return r_number(0);
    if (d->form == LARGEST) {
        struct ask b = *a;
        b.x = p_of(a, 0);
        return r_log(r_add(one(), sc_sum(below, &b, a->k, n)));
    }
    if (d->form == SPREAD) {
        real gap = r_sub(r_number(a->p->logit[first]), r_number(a->p->logit[a->p->order[n - 1]]));
        return a->raw ? gap : r_mul(gap, r_rational(a->p->inverse));
    }
    real log = r_log(z_star(a, d->order));
    return r_positive(from_sum(d, r_exp(r_mul(r_rational(d->order), log))));
}

// p on the draft's vocabulary D: its mass under the whole p, and the thresholds that say how far q may be from that
// one.
TERM(whole_p) { return &a->whole->p[i]; }
static bool loses_nothing(const struct ask *a) { return a->whole->finite == a->p->finite; }
real q_mass(const struct ask *a) { return loses_nothing(a) ? one() : sc_sum(whole_p, a, 0, a->p->finite); }
real q_klr_restricted(const struct ask *a) { return r_sub(q_klr(a), r_log(q_mass(a))); }
real q_tv_whole(const struct ask *a) { return q_tv(&(struct ask){.p = a->whole, .q = a->q}); }
TERM(above_whole) { return r_positive(r_sub(&a->whole->p[i], a->x)); }
TERM(below_whole) { return r_positive(r_sub(a->x, &a->whole->p[i])); }
TERM(lost) { return isinf(a->q->logit[i]) ? p_of(a, j) : r_number(0); }

// The least over t of the larger of a rising and a falling function lies between their values at any t: bisects for a
// t where they are close.
real q_tv_restricted(const struct ask *ask) {
    struct ask a = *ask;
    if (loses_nothing(ask)) return q_tv_star(ask);
    real outside = sc_sum(lost, &(struct ask){.p = a.whole, .q = a.q}, 0, a.whole->finite);
    real up = r_number(0), down = up, low = up, high = r_number(2);
    for (long bits = 0; bits < run->precision; bits++) {
        a.x = r_end(r_mul(r_add(low, high), r_number(0.5)), false);
        up = sc_sum(below_whole, &a, a.k, a.k + a.m);
        down = r_add(outside, sc_sum(above_whole, &a, 0, a.k));
        if (mpfr_less_p(up->lo, down->lo)) low = a.x;
        else high = a.x;
    }
    return r_hull(up, down);
}

// theory.md §3: (k u ln u + m v ln v)/(k + m) and -(k ln u + m ln v)/(k + m), for u = 1 + m y and v = 1 - k y.
static real sharp(size_t k, size_t m, real u, real v, int part) {
    real log_u = r_times(r_log(u), k), log_v = r_times(r_log(v), m), sum = r_negative(r_add(log_u, log_v));
    if (part == 1) sum = r_add(r_mul(u, log_u), r_is(v, 0) ? r_number(0) : r_mul(v, log_v));
    return r_positive(r_div(sum, r_number((double)(k + m))));
}

TERM(over_last) { // p - p_(k), exactly 0 for equal logits
    return sc_level(a->p, j, a->k) ? r_number(0) : r_sub(p_of(a, j), p_of(a, a->k - 1));
}

real q_margin(const struct ask *a) { // part 0: the gap y, 1: klf, 2: klr, 3: tv
    size_t k = a->k, m = a->m;
    if (sc_level(a->p, k - 1, k + 1)) return r_number(0);
    real y = r_sub(p_of(a, k - 1), p_of(a, k));
    if (a->part == 0) return y;
    if (a->part == 3) return r_div(r_times(r_times(y, k), m), r_number((double)(k + m)));
    real v = r_add(sc_sum(over_last, a, 0, k), r_add(sc_mass(a->p, k, a->p->finite), r_times(p_of(a, k), k)));
    return sharp(k, m, r_add(one(), r_times(y, m)), v, a->part);
}

static real threshold(const struct ask *a) { // below which all rejected tokens lie
    real x = r_rational(a->rule->a);
    switch (a->rule->kind->universal) {
    case 'm':
        return r_mul(x, p_of(a, 0));
    case 'e':
        return r_min(x, r_mul(r_rational(a->rule->b), r_exp(r_negative(q_entropy(a)))));
    case 'r':
        return r_exp(r_negative(x));
    default:
        return x;
    }
}

real q_below_threshold(const struct ask *a) { return r_sub(threshold(a), p_of(a, 0)); } // of the first token
real q_universal(const struct ask *a) {                                                 // part 1: klf, 2: klr
    size_t m = a->m;
    real p = p_of(a, 0), x = r_rational(a->rule->a), rest = sc_mass(a->p, 1, a->p->finite),
         n = r_number((double)(m + 1));
    if (a->rule->kind->universal == 'a') return sharp(1, m, r_add(one(), r_times(x, m)), r_sub(one(), x), a->part);
    bool all = r_is(x, 1) && a->rule->kind->universal == 'm' && mpfr_less_p(r_times(p, m)->hi, rest->lo);
    if (all) return r_number(0); // alpha = 1: the rejected may be as likely as the first
    real s = r_min(threshold(a), r_div(rest, r_number((double)m))), ms = r_times(s, m), c = r_div(r_add(p, ms), n);
    bool none = r_is(s, 0);
    if (a->part == 1) {
        real tail = none ? s : r_mul(ms, r_log(r_div(s, c)));
        return r_positive(r_add(r_mul(p, r_log(r_div(p, c))), tail));
    }
    real root = none ? s : r_exp(r_div(r_add(r_log(p), r_times(r_log(s), m)), n));
    return r_positive(r_negative(r_log(r_add(r_positive(r_sub(rest, ms)), r_mul(n, root)))));
}

// The places that the tied set of an order must hold and may hold: a token within 2^-30 of the level can fall either
// way.
void sc_tied(const struct ask *ask, mpq_srcptr order, size_t range[4]) {
    run->precision = 256;
    sc_weigh(&run->row[ask->p - run->row]);
    struct mark mark = r_mark();
    struct ask a = at_level(ask, order);
    real slack = r_mul(a.x, r_number(0x1p-30)), low = r_sub(a.x, slack), high = r_add(a.x, slack);
    memset(range, 0, 4 * sizeof *range); // least and most of A, least and most of S
    for (size_t j = 0; j < a.k + a.m; j++) {
        real p = p_of(&a, j);
        size_t *least = range + (j < a.k ? 0 : 2);
        least[0] += j < a.k ? mpfr_greater_p(p->lo, high->hi) : mpfr_less_p(p->hi, low->lo);
        least[1] += j < a.k ? mpfr_greaterequal_p(p->hi, low->lo) : mpfr_lessequal_p(p->lo, high->hi);
    }
    r_release(mark);
}

static bool uniform(const struct row *r) { return sc_level(r, 0, r->finite); }

static size_t common(const struct ask *a) { // tokens of both supports
    size_t count = 0;
    for (size_t j = 0; j < a->p->finite; j++) count += !q_lacks(a, a->p->order[j]);
    return count;
}

// p uniform on n tokens, b of them in A, with z zeros in S; q on N, with o in common: rationals, or powers of them.
static bool equal_if_uniform(const struct ask *a, enum threshold which) {
    size_t n = a->p->finite, N = a->q->finite, o = common(a), most = n > N ? n : N, b = a->k < n ? a->k : n;
    size_t z = a->k + a->m - (a->k > n ? a->k : n);
    if (!uniform(a->p) || !uniform(a->q)) return false;
    if (which == KLR) return o == N && N == n - b;
    if (which == TV) return (uint64_t)(most - o) * n * (b + z) == (uint64_t)b * z * most;
    if (which != KLF || o != n || n > 4096) return false;
    mpz_t x[4];
    for (int i = 0; i < 4; i++) mpz_init(x[i]);
    mpz_ui_pow_ui(x[0], N, n);
    mpz_ui_pow_ui(x[1], b, b);
    mpz_ui_pow_ui(x[2], n, n);
    mpz_ui_pow_ui(x[3], b + z, b);
    mpz_mul(x[0], x[0], x[1]);
    mpz_mul(x[2], x[2], x[3]);
    bool equal = mpz_cmp(x[0], x[2]) == 0;
    for (int i = 0; i < 4; i++) mpz_clear(x[i]);
    return equal;
}

// Is q the witness of a power mean, uniform on a tied set that holds the whole support?
static bool is_uniform_witness(const struct ask *a, mpq_srcptr order) {
    size_t range[4];
    if (!uniform(a->q) || common(a) != a->p->finite || a->p->finite > a->k + a->m) return false;
    sc_tied(a, order, range);
    size_t in_a = a->k < a->p->finite ? a->k : a->p->finite;
    bool sure = range[0] == range[1] && range[2] == range[3];
    bool all = sure && range[0] == in_a && (a->p->finite <= a->k || range[2] == a->m);
    return all && a->q->finite == range[0] + range[2];
}

static bool equal(real a, real b) { return mpfr_equal_p(a->lo, b->lo) && mpfr_equal_p(a->hi, b->hi); }

// Is q the witness of order 0, or of one below when S has an empty token, up to swaps of tokens that are equal in p?
// Then its logits are those of p and a constant outside the tied set, and inside their mean, or -inf with an empty
// token.
static bool is_geometric_witness(const struct ask *ask) {
    struct ask a = *ask;
    size_t n = a.k + a.m, first = a.k, last = a.k > a.p->finite ? a.k : a.p->finite;
    bool zero = a.p->finite < n, same = true;
    run->precision = 1024; // these sums are exact
    struct mark mark = r_mark();
    a.order = run->zero;
    if (!zero) split(&a, &first, &last);
    size_t count = zero ? 1 : first + n - last, untied = first < last ? first : n;
    real sum = r_add(sc_sum(height_term, &a, 0, first), sc_sum(height_term, &a, last, n)); // count means
    real level = zero ? r_number(-INFINITY) : sum, top = level;
    if (untied < a.p->finite) top = r_max(top, r_times(height(&a, untied), count));
    real shift = r_sub(r_times(r_number(a.q->logit[a.q->order[0]]), count), top);
    struct mark inner = r_mark();
    int64_t tally = r_is(top, -INFINITY); // tied tokens of a class of equal ones, less those at the level
    for (size_t j = 0; j < a.p->count && same; j++, r_release(inner)) {
        size_t i = a.p->order[j];
        real found = r_sub(r_times(r_number(a.q->logit[i]), count), shift), own = r_times(height(&a, j), count);
        bool at_level = equal(found, level), end = j + 1 == a.p->count || !sc_level(a.p, j, j + 2);
        if (!equal(own, level)) tally += (j < first || (j >= last && j < n)) - at_level;
        same = (at_level || equal(found, own)) && (!end || tally == 0);
    }
    r_release(mark);
    return same;
}

// Is ln(p/q) largest where it must be, so that the exponents of both sides of `max` are the same, in order?
static bool is_max_witness(const struct ask *a) {
    bool same_exponents = true;
    run->precision = 1024; // sums of two floats are exact
    struct mark mark = r_mark();
    real most = extreme(a, false, true);
    struct mark inner = r_mark();
    for (size_t t = 0; t < a->p->count && same_exponents; t++, r_release(inner)) {
        size_t j = t < a->m ? 0 : t - a->m < a->k ? t - a->m : t; // p with S raised to the first
        real found = r_add(r_number(a->q->logit[a->q->order[t]]), most);
        same_exponents = equal(found, r_number(a->p->logit[a->p->order[j]]));
    }
    r_release(mark);
    return same_exponents;
}

// Is q uniform on D, every token of which moves to the level of the restricted TV?
TERM(over_share) { return r_sub(&a->whole->p[i], r_div(one(), r_number((double)a->p->count))); }
static real last_over(const struct ask *a) { return over_share(a, a->k - 1, a->p->order[a->k - 1]); }
static real next_over(const struct ask *a) { return over_share(a, a->k, a->p->order[a->k]); }

static bool is_even_draft(const struct ask *a) {
    if (a->k + a->m != a->p->count || a->q->finite != a->p->count || !uniform(a->q)) return false;
    return sc_decide(last_over, a) == YES && sc_decide(next_over, a) == NO;
}

static real difference(const struct ask *a) {
    real value = a->value(a);
    return r_is(value, INFINITY) ? value : r_sub(value, a->star(a));
}

// The mass outside D, less what the level needs to pass all of A: TV(p, q) is never below the threshold if it has that.
static real q_reach(const struct ask *ask) {
    struct ask a = *ask;
    a.x = &a.whole->p[a.p->order[0]];
    real outside = sc_sum(lost, &(struct ask){.p = a.whole, .q = a.q}, 0, a.whole->finite);
    return r_sub(outside, sc_sum(below_whole, &a, a.k, a.k + a.m));
}

// Is the divergence of the rows below its threshold?
enum answer sc_certifies(struct ask a, enum threshold which, quantity *value, quantity *star) {
    mpq_srcptr order = which == DIVERGENCE ? a.divergence->order : which == KLR ? run->zero : run->one;
    bool other = which == OTHER, emptied = mpq_sgn(order) < 0 && a.p->finite < a.k + a.m;
    a.value = value;
    a.star = star;
    a.raw = true;
    if ((star != q_tv_restricted || which == TV) && flat(&a)) return NO;
    if (!other && (equal_if_uniform(&a, which) || is_uniform_witness(&a, order))) return NO;
    if (!other && (which == KLR || emptied) && is_geometric_witness(&a)) return NO;
    if (star == q_divergence_star && a.divergence->form == LARGEST && is_max_witness(&a)) return NO;
    if (other && star == q_tv_restricted && (sc_decide(q_reach, &a) == YES || is_even_draft(&a))) return NO;
    enum answer above = sc_decide(difference, &a);
    return above == OPEN ? OPEN : above == YES ? NO : YES;
}

void sc_divergence(struct divergence *d, const char *text) {
    static const char *const names[] = {"hellinger", "chi2", "chi2-reverse", "max", "spread"};
    static const enum form forms[] = {ONE_LESS, LESS_ONE, LESS_ONE, LARGEST, SPREAD};
    static const char *const orders[] = {"1/2", "2", "1", "0", "0"};
    bool renyi = sc_like(text, "^renyi(-reverse)?:"), reverse = strncmp(text, "renyi-reverse", 13) == 0;
    int i = 0;
    while (!renyi && i < 5 && strcmp(names[i], text) != 0) i++;
    sc_need(i < 5 && strlen(text) < sizeof d->text, "divergences", "a divergence");
    strcpy(d->text, text);
    d->form = renyi ? LOGARITHM : forms[i];
    d->order = sc_rational(renyi ? strchr(text, ':') + 1 : orders[i], "divergences");
    if (!renyi && i == 2) mpq_neg(d->order, d->order);
    if (!renyi) return;
    sc_need(mpq_sgn(d->order) > 0 && mpq_cmp_ui(d->order, 1, 1) != 0, "divergences", "an order above 0, not 1");
    d->scale = sc_rational("0", "divergences");
    mpq_sub(d->scale, d->order, run->one);
    mpq_inv(d->scale, d->scale); // 1/(A - 1), which is -1/a for a = 1 - A as well
    if (reverse) mpq_sub(d->order, run->one, d->order);
}
