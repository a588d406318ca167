// What the unseen tokens can add to a sum: docs/evidence.md "The unseen tokens".
//
// n numbers in [0, c] of a given sum r. A convex symmetric function of them is least when all are equal and largest when
// floor(r/c) of them are c, one is the remainder and the others are 0, which majorises all other choices; a concave one
// the other way round (Karamata's inequality). Power sums are convex for an exponent 1/T > 1 and concave below; u (-ln u)
// is concave. Both extremes rise with r, as one sees by adding the difference to a number below c.
#include "evidence/known_state.h"

#include "bounds/ival_math.h"

#include <math.h>

static const struct hm_ival zero = {0, 0};

static struct hm_ival less(double r, double whole, double c)
{
    return hm_ival_sub(hm_ival_point(r), hm_ival_mul(hm_ival_point(whole), hm_ival_point(c)));
}

// r as `whole` numbers c and a remainder in [0, c] or just above; c > 0, r <= 2^50 c. Near a multiple the remainder is
// about c and not about 0: both stand for the same sum, and the formulas below then err outward.
static double pack(double r, double c, struct hm_ival *remainder)
{
    double whole = floor(r / c);
    *remainder = less(r, whole, c);
    if (remainder->lo < 0 && whole > 0) *remainder = less(r, --whole, c);
    return whole;
}

static bool packs(double r, double c)
{
    return c > 0 && r / c <= 0x1p50;
}

// ---- Power sums

// e^(x/T - reference/T) for x in an interval of logarithms.
static struct hm_ival power(const struct hm_known *known, struct hm_ival x)
{
    return hm_ival_exp(hm_known_log(known, x));
}

// All equal: n (r/n)^(1/T), in weights.
static struct hm_ival even_powers(const struct hm_known *known, double r, double n)
{
    if (r == 0) return zero;
    struct hm_ival count = hm_ival_point(n);
    return hm_ival_mul(count, power(known, hm_ival_log(hm_ival_div(hm_ival_point(r), count))));
}

// As few as c allows: floor(r/c) c^(1/T) + (the remainder)^(1/T).
static struct hm_ival packed_powers(const struct hm_known *known, double r, double c)
{
    if (r == 0 || c == 0) return zero;
    struct hm_ival all = power(known, hm_ival_log(hm_ival_point(c))), remainder;
    if (!packs(r, c)) { // between floor and ceiling of r/c, both next to it
        struct hm_ival ratio = hm_ival_div(hm_ival_point(r), hm_ival_point(c));
        return hm_ival_mul(hm_ival_add(ratio, (struct hm_ival){-1, 1}), all);
    }
    double whole = pack(r, c, &remainder);
    return hm_ival_add(hm_ival_mul(hm_ival_point(whole), all), power(known, hm_ival_log(remainder)));
}

struct hm_ival hm_tail_power(const struct hm_known *known, struct hm_ival r, double cap)
{
    // The largest possible probability of one token serves as c: a larger c allows more.
    double n = hm_known_number(known->positive), c = hm_ival_exp(hm_ival_point(cap)).hi;
    struct hm_ival out = {0, INFINITY};
    if (mpq_cmp_ui(known->temperature.value, 1, 1) < 0) { // convex
        out.hi = packed_powers(known, r.hi, c).hi;
        if (n < INFINITY) out.lo = even_powers(known, r.lo, n).lo;
    } else {
        if (n < INFINITY) out.hi = even_powers(known, r.hi, n).hi;
        out.lo = packed_powers(known, r.lo, c).lo;
    }
    return (struct hm_ival){fmax(out.lo, 0), fmax(out.hi, 0)};
}

// ---- The entropy's terms

static struct hm_ival term_at(double log)
{
    if (log == -INFINITY) return zero;
    return hm_ival_mul(hm_ival_exp(hm_ival_point(log)), hm_ival_point(-log));
}

// Rises up to x = 1/e and falls behind it.
static struct hm_ival term_of_log(struct hm_ival log)
{
    struct hm_ival a = term_at(log.lo), b = log.lo == log.hi ? a : term_at(log.hi);
    struct hm_ival out = {fmin(a.lo, b.lo), fmax(a.hi, b.hi)};
    if (log.lo < -1 && log.hi > -1) out.hi = term_at(-1).hi;
    return out;
}

static struct hm_ival term(struct hm_ival x)
{
    return term_of_log(hm_ival_log(x));
}

struct hm_ival hm_tail_term(const struct hm_known_token *token)
{
    const struct hm_ival log = token->log, w = token->weight;
    if (!(log.hi <= -1)) return term_of_log(log);
    struct hm_ival out = zero; // it rises, and both ends are known
    if (log.lo > -INFINITY) out.lo = hm_ival_mul(hm_ival_point(w.lo), hm_ival_point(-log.lo)).lo;
    if (log.hi > -INFINITY) out.hi = hm_ival_mul(hm_ival_point(w.hi), hm_ival_point(-log.hi)).hi;
    return out;
}

// The least of the sum for a given r: floor(r/c) terms of c, and the remainder's.
static double packed_terms(double r, double c)
{
    struct hm_ival remainder, all = term(hm_ival_point(c));
    if (r == 0 || c == 0) return 0;
    if (!packs(r, c)) {
        struct hm_ival ratio = hm_ival_sub(hm_ival_div(hm_ival_point(r), hm_ival_point(c)), hm_ival_point(1));
        return hm_ival_mul(ratio, all).lo;
    }
    double whole = pack(r, c, &remainder);
    if (remainder.hi > c) remainder.hi = c; // a sum just above a multiple has at least the multiple's terms
    if (remainder.lo > c) remainder.lo = c;
    return hm_ival_add(hm_ival_mul(hm_ival_point(whole), all), term(remainder)).lo;
}

// The largest for sums up to r: r ln(n/r), which rises up to r = n/e.
static double even_terms(struct hm_ival r, double n)
{
    struct hm_ival share = hm_ival_div(r, hm_ival_point(n)); // n equal terms of it
    return hm_ival_mul(hm_ival_point(n), term(share)).hi;
}

struct hm_ival hm_tail_moment(const struct hm_known *known)
{
    double n = hm_known_number(known->positive), c = known->each.weight.hi;
    struct hm_ival r = known->rest, out = {0, INFINITY};
    if (known->positive == 0 || r.hi == 0) return zero;
    if (n < INFINITY && r.hi < INFINITY) out.hi = even_terms(r, n);
    if (c == INFINITY || r.lo == 0) return out;
    // In r the least is concave between multiples of c, where it rises: so it is attained at an end of r or at the first
    // multiple inside.
    out.lo = packed_terms(r.lo, c);
    if (c > 0.36 && r.hi < INFINITY) { // below 1/e every term rises, and so does the sum
        out.lo = fmin(out.lo, packed_terms(r.hi, c));
        struct hm_ival multiple = hm_ival_point(ceil(r.lo / c)); // or one below, which is as good a bound
        bool inside = hm_ival_mul(multiple, hm_ival_point(c)).lo <= r.hi;
        if (inside) out.lo = fmin(out.lo, hm_ival_mul(multiple, term(hm_ival_point(c))).lo);
    }
    return (struct hm_ival){fmax(out.lo, 0), fmax(out.hi, 0)};
}
