// "Is the divergence of these rows below the least that lets coverage fail?": see divergence.h, theory.md §2 and §8.
//
// `spread` is a comparison of exact numbers. `max` compares sums of exponentials of rationals with whole coefficients,
// which are equal only if they are so term by term: always decided, too. For a power of order a, equality is known
// where q attains the bound, which floats can only do if the tied set is the whole support of p (any q uniform on as
// many tokens), or, for a < 0, if an empty token makes the level 0; and it is decided for uniform p and q. Whether it
// occurs elsewhere is not known; then 4096 bits may leave the verdict undecided.
#include "bounds/ival_math.h"
#include "certify/certificate_state.h"
#include "certify/divergence.h"
#include "certify/divergence_state.h"

#include <math.h>

enum { LARGEST_ORDER = 256, EXACT = 320 };

// value = base^exponent for a small exponent of either sign; base > 0.
static void power_of(mpq_t value, mpq_srcptr base, long exponent)
{
    unsigned long size = (unsigned long)(exponent < 0 ? -exponent : exponent);
    mpz_pow_ui(mpq_numref(value), mpq_numref(base), size);
    mpz_pow_ui(mpq_denref(value), mpq_denref(base), size);
    if (exponent < 0) mpq_inv(value, value);
}

static void fraction(mpq_t out, size_t above, size_t under)
{
    mpz_set_ui(mpq_numref(out), above);
    mpz_set_ui(mpq_denref(out), under);
    mpq_canonicalize(out);
}

// p uniform on n tokens, b of them in A, z empty tokens in S; q uniform on N tokens, `common` of them p's; a = e/f > 0.
// Z = (n-b)/n + (b+z)/n (b/(b+z))^(1/a) against Z^a = common/n (N/n)^(a-1). An irrational root cannot cancel: all
// conjugates of Z would have to be as large as Z, unless b = n.
static bool uniform_pair(const struct hm_row *p, const struct hm_row *q, size_t k, size_t m, mpq_srcptr a)
{
    size_t n = p->support, b = k < n ? k : n, start = k < n ? n : k, z = k + m > start ? k + m - start : 0, common = 0;
    if (z == 0 || mpq_sgn(a) < 0 || mpz_cmp_ui(mpq_numref(a), LARGEST_ORDER) > 0 ||
        mpz_cmp_ui(mpq_denref(a), LARGEST_ORDER) > 0)
        return false;
    long e = mpz_get_si(mpq_numref(a)), f = mpz_get_si(mpq_denref(a));
    for (size_t i = 0; i < p->vocab; i++) common += p->logits[i] != -INFINITY && q->logits[i] != -INFINITY;
    if (common == 0 || (e > f && common < n)) return false; // infinite
    mpq_t left, right, root, part;
    mpq_inits(left, right, root, part, NULL);
    fraction(root, b, b + z);
    bool rational = true;
    if (b == n) { // Z^e = ((n+z)/n)^(e-f)
        mpq_inv(root, root);
        power_of(left, root, e - f);
    } else {
        rational = mpz_root(mpq_numref(root), mpq_numref(root), (unsigned long)e) != 0;
        rational = mpz_root(mpq_denref(root), mpq_denref(root), (unsigned long)e) != 0 && rational;
        if (rational) {
            power_of(part, root, f);
            fraction(left, b + z, n);
            mpq_mul(left, left, part);
            fraction(part, n - b, n);
            mpq_add(root, left, part);
            power_of(left, root, e);
        }
    }
    fraction(root, common, n);
    power_of(right, root, f);
    fraction(root, q->support, n);
    power_of(part, root, e - f);
    mpq_mul(right, right, part);
    bool equal = rational && mpq_equal(left, right);
    mpq_clears(left, right, root, part, NULL);
    return equal;
}

// q uniform on as many tokens as are tied, p's support among them and all of it off the level.
static hm_status uniform_witness(const struct hm_divergence *d, struct hm_row *p, struct hm_row *q, size_t k, size_t m,
                                 bool *out, struct hm_error *err)
{
    size_t kept = k < p->support ? k : p->support, tied[2];
    if (p->support > k + m || q->support != kept + m) return HM_OK;
    for (size_t i = 0; i < p->vocab; i++)
        if (p->logits[i] != -INFINITY && q->logits[i] == -INFINITY) return HM_OK;
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= 4 * HM_PRECISION_FIRST && !*out; precision *= 2) {
        struct hm_mpi value;
        bool good = false;
        hm_mpi_init(&value, precision);
        hm_status status = hm_divergence_level_at(d, p, k, m, precision, &value, tied, &good, err);
        *out = status == HM_OK && good && tied[0] == kept && tied[1] == m;
        hm_mpi_clear(&value);
        if (status) return status;
    }
    return HM_OK;
}

static hm_status power_attains(const struct hm_divergence *d, mpq_srcptr a, struct hm_row *p, struct hm_row *q, size_t k,
                               size_t m, bool *out, struct hm_error *err)
{
    bool empty = p->logits[hm_row_token(p, k + m - 1)] == -INFINITY;
    if (mpq_sgn(a) < 0 && empty) return hm_claim_attains(p, q, k, m, HM_REVERSE, out, err); // one witness for all of them
    if (p->uniform && q->uniform && uniform_pair(p, q, k, m, a)) {
        *out = true;
        return HM_OK;
    }
    return q->uniform ? uniform_witness(d, p, q, k, m, out, err) : HM_OK;
}

// W_q e^E = W_p + m - W_S, E the largest l_i - d_i (at token `most`): both sides sorted, term by term, in exact differences.
static bool max_attains(struct hm_row *p, struct hm_row *q, size_t k, size_t m)
{
    struct hm_exact range[2];
    size_t most, after = k + m;
    if (!hm_row_pair_range(p, q, range, &most)) return false;
    size_t kept = k < p->support ? k : p->support, rest = after < p->support ? p->support - after : 0;
    if (q->support != m + kept + rest) return false;
    for (size_t r = 0; r < q->support; r++) {
        float mine = r < m ? p->top : p->logits[hm_row_token(p, r - m < kept ? r - m : after + (r - m - kept))];
        struct hm_exact right = hm_exact_difference(mine, p->logits[most]);
        struct hm_exact left = hm_exact_difference(q->logits[hm_row_token(q, r)], q->logits[most]);
        if (hm_exact_compare(left, right) != 0) return false;
    }
    return true;
}

// Both sides are exact numbers over T; for finite spreads only.
static enum hm_verdict spread_below(struct hm_row *p, struct hm_row *q, size_t k, size_t m)
{
    struct hm_exact range[2];
    size_t most;
    float last = p->logits[hm_row_token(p, k + m - 1)];
    if (last == -INFINITY) return HM_YES;
    if (!hm_row_pair_range(p, q, range, &most)) return HM_UNDECIDED;
    mpfr_t gap;
    mpfr_init2(gap, 2 * EXACT);
    mpfr_set_flt(gap, p->top, MPFR_RNDN); // sums of six floats are exact
    mpfr_sub_d(gap, gap, last, MPFR_RNDN);
    mpfr_sub_d(gap, gap, range[0].high, MPFR_RNDN);
    mpfr_sub_d(gap, gap, range[0].low, MPFR_RNDN);
    mpfr_add_d(gap, gap, range[1].high, MPFR_RNDN);
    mpfr_add_d(gap, gap, range[1].low, MPFR_RNDN);
    enum hm_verdict below = mpfr_sgn(gap) > 0 ? HM_YES : HM_NO;
    mpfr_clear(gap);
    return below;
}

// Equality that no precision would show.
static hm_status attains(const struct hm_divergence *d, struct hm_row *p, struct hm_row *q, size_t k, size_t m, bool *out,
                         struct hm_error *err)
{
    struct hm_power power;
    *out = d->kind == HM_DIVERGENCE_MAX && max_attains(p, q, k, m);
    if (!hm_divergence_power(d, &power)) return HM_OK;
    hm_status status = power_attains(d, power.a, p, q, k, m, out, err);
    mpq_clear(power.a);
    return status;
}

static hm_status below_at(const struct hm_divergence *d, struct hm_row *p, struct hm_row *q, size_t k, size_t m,
                          mpfr_prec_t precision, enum hm_verdict *out, struct hm_error *err)
{
    struct hm_mpi value, level;
    bool good = false;
    hm_mpi_init(&value, precision);
    hm_mpi_init(&level, precision);
    hm_status status = hm_divergence_between_at(d, p, q, precision, &value, err);
    if (status == HM_OK) status = hm_divergence_level_at(d, p, k, m, precision, &level, NULL, &good, err);
    if (status == HM_OK) {
        // An infinite divergence certifies nothing, not even against an infinite level; a finite one lies below it.
        if (mpfr_inf_p(value.lo)) *out = HM_NO;
        else if (!good) *out = HM_UNDECIDED;
        else if (d->kind == HM_DIVERGENCE_SPREAD) *out = spread_below(p, q, k, m);
        else *out = mpfr_inf_p(level.lo) && !mpfr_inf_p(value.hi) ? HM_YES : hm_mpi_less(&value, &level);
    }
    hm_mpi_clear(&value);
    hm_mpi_clear(&level);
    return status;
}

static enum hm_verdict filtered(const struct hm_divergence *d, struct hm_row *p, struct hm_row *q, size_t k, size_t m)
{
    struct hm_ival value, level;
    bool known = hm_divergence_level_filter(d, p, k, m, &level) && hm_divergence_between_filter(d, p, q, &value);
    enum hm_verdict below = known ? hm_ival_less(value, level) : HM_UNDECIDED;
    if (d->kind != HM_DIVERGENCE_SPREAD) hm_filter_count(p, below != HM_UNDECIDED); // spread is exact, and cheap
    return below;
}

hm_status hm_divergence_certified(const struct hm_divergence *d, struct hm_row *p, struct hm_row *q, size_t k, size_t m,
                                  enum hm_certified *out, struct hm_error *err)
{
    *out = HM_CERT_UNDECIDED;
    hm_status status = hm_row_pair_check(p, q, err);
    if (status) return status;
    if (k > p->vocab) return hm_fail(err, HM_RANGE, "accepted tokens: expected at most %zu, found %zu", p->vocab, k);
    if (m < 1) return hm_fail(err, HM_USAGE, "divergence: expected m of at least 1, found 0");
    if (k == 0 || m > p->vocab - k) {
        *out = k == 0 ? HM_CERT_NO : HM_CERT_VACUOUS;
        return HM_OK;
    }
    enum hm_verdict verdict = filtered(d, p, q, k, m);
    bool equal = false;
    for (mpfr_prec_t precision = HM_PRECISION_FIRST;
         precision <= HM_PRECISION_LAST && verdict == HM_UNDECIDED && status == HM_OK && !equal; precision *= 2) {
        status = below_at(d, p, q, k, m, precision, &verdict, err);
        if (status == HM_OK && verdict == HM_UNDECIDED && precision == HM_PRECISION_FIRST)
            status = attains(d, p, q, k, m, &equal, err);
    }
    if (verdict == HM_NO || equal) *out = HM_CERT_NO;
    if (verdict == HM_YES) *out = HM_CERT_YES;
    return status;
}
