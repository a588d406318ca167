// Equalities D(p, q) = D* that no precision would show, tested exactly: see certificate_state.h, theory.md §8.
//
// A divergence does not change when q is permuted among tokens of equal p, so each test counts within such classes
// instead of naming tokens.
#include "certify/certificate_state.h"

#include <math.h>
#include <stdlib.h>

enum { EXACT = 384, LARGEST_POWER = 4096 }; // EXACT bits hold every sum of 2^31 floats

static bool nested(const struct hm_row *inner, const struct hm_row *outer)
{
    for (size_t i = 0; i < inner->vocab; i++)
        if (inner->logits[i] != -INFINITY && outer->logits[i] == -INFINITY) return false;
    return true;
}

static size_t common_support(const struct hm_row *p, const struct hm_row *q)
{
    size_t common = 0;
    for (size_t i = 0; i < p->vocab; i++) common += p->logits[i] != -INFINITY && q->logits[i] != -INFINITY;
    return common;
}

// (u/v)^e = (x/y)^f ?  Exactly, for exponents up to LARGEST_POWER.
static bool equal_powers(size_t u, size_t v, size_t e, size_t x, size_t y, size_t f)
{
    if (e > LARGEST_POWER || f > LARGEST_POWER) return false;
    mpz_t left, right, factor;
    mpz_inits(left, right, factor, NULL);
    mpz_ui_pow_ui(left, u, e);
    mpz_ui_pow_ui(factor, y, f);
    mpz_mul(left, left, factor);
    mpz_ui_pow_ui(right, x, f);
    mpz_ui_pow_ui(factor, v, e);
    mpz_mul(right, right, factor);
    bool equal = mpz_cmp(left, right) == 0;
    mpz_clears(left, right, factor, NULL);
    return equal;
}

// b/n z/(b+z) = 1 - common/most ?
static bool equal_shares(size_t b, size_t n, size_t z, size_t common, size_t most)
{
    mpq_t left, right;
    mpq_inits(left, right, NULL);
    mpq_set_ui(left, b, n);
    mpq_set_ui(right, z, b + z);
    mpq_canonicalize(left);
    mpq_canonicalize(right);
    mpq_mul(left, left, right);
    mpq_set_ui(right, most - common, most);
    mpq_canonicalize(right);
    bool equal = mpq_equal(left, right) != 0;
    mpq_clears(left, right, NULL);
    return equal;
}

// p uniform on n tokens, b of them in A, z zeros in S; q uniform on N tokens. Every value is then a logarithm of a
// rational, or rational: KLf* = (b/n) ln((b+z)/b) against ln(N/n), KLr* = -ln(1 - b/n) against ln(n/N),
// TV* = b z / (n (b+z)) against 1 - |common support| / max(n, N).
static bool uniform_pair(const struct hm_row *p, const struct hm_row *q, size_t k, size_t m, enum hm_which which)
{
    size_t n = p->support, b = k < n ? k : n, start = k < n ? n : k, z = k + m > start ? k + m - start : 0;
    if (z == 0) return false; // D* = 0: an enclosure that is a point decides that
    if (which == HM_FORWARD) return nested(p, q) && equal_powers(q->support, n, n, b + z, b, b);
    if (which == HM_REVERSE) return nested(q, p) && q->support + b == n;
    size_t most = n > q->support ? n : q->support;
    return equal_shares(b, n, z, common_support(p, q), most);
}

// q uniform on a set as large as the tied set, and the tied set holds the whole support of p: then the level is that
// law's share, and both KL(p||q) = ln N - H(p) and TV reach their bounds.
static hm_status uniform_witness(struct hm_row *p, struct hm_row *q, size_t k, size_t m, bool *out, struct hm_error *err)
{
    size_t kept = k < p->support ? k : p->support;
    if (p->support > k + m || q->support != kept + m || !nested(p, q)) return HM_OK;
    struct hm_level level;
    if (hm_level_filtered(p, k, m, &level, NULL)) { // its tied sets are settled
        *out = level.tied_f[0] == kept && level.tied_f[1] == m;
        return HM_OK;
    }
    // Strictly above or below the level: equality would make p uniform, which is the other test.
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= 4 * HM_PRECISION_FIRST && !*out; precision *= 2) {
        struct hm_level_values v;
        bool good = false;
        hm_level_values_init(&v, precision);
        hm_status status = hm_level_at(p, k, m, precision, &v, NULL, &good, err);
        *out = status == HM_OK && good && v.tied_f[0] == kept && v.tied_f[1] == m;
        hm_level_values_clear(&v);
        if (status) return status;
    }
    return HM_OK;
}

// The geometric witness: q's logits are p's, shifted by one constant outside T', and x plus that constant inside.
struct witness {
    struct hm_row *p, *q;
    size_t a, s, n;       // T' is ranks below a and ranks n - s to n - 1, n = k + m
    bool fixed;           // the constant is known
    float inside;         // what q has inside
    mpfr_t shift, term;   // (a + s) times the constant
};

// d_i - l_i equals the constant; the first pair fixes it when the level is -inf and does not.
static bool shifted(struct witness *w, int32_t i)
{
    float l = w->p->logits[i], d = w->q->logits[i];
    if (l == -INFINITY || d == -INFINITY) return l == d;
    mpfr_set_flt(w->term, d, MPFR_RNDN);
    mpfr_sub_d(w->term, w->term, l, MPFR_RNDN);
    mpfr_mul_ui(w->term, w->term, w->a + w->s, MPFR_RNDN);
    if (!w->fixed) {
        mpfr_set(w->shift, w->term, MPFR_RNDN);
        w->fixed = true;
    }
    return mpfr_equal_p(w->term, w->shift);
}

static bool is_witness(struct witness *w)
{
    for (size_t r = 0; r < w->p->vocab;) { // one class of equal logits at a time
        float l = w->p->logits[hm_row_token(w->p, r)];
        size_t wanted = 0, found = 0;
        for (; r < w->p->vocab && w->p->logits[hm_row_token(w->p, r)] == l; r++) {
            wanted += r < w->a || (r >= w->n - w->s && r < w->n);
            int32_t i = hm_row_token(w->p, r);
            if (shifted(w, i)) continue;
            if (w->q->logits[i] != w->inside) return false;
            found++;
        }
        if (wanted != found && l != -INFINITY) return false; // an empty token is inside and unshifted at once
    }
    return true;
}

// With a level, inside values are lower than shifted ones among p's likeliest tokens, which are tied: their minimum
// in q is the inside value, and (a + s) * constant = (a + s) * inside - (sum of T').
static void fix_constant(struct witness *w)
{
    float top = w->p->top;
    w->inside = INFINITY;
    for (size_t i = 0; i < w->p->vocab; i++)
        if (w->p->logits[i] == top && w->q->logits[i] < w->inside) w->inside = w->q->logits[i];
    if (w->inside == -INFINITY) return;
    w->fixed = true;
    mpfr_set_flt(w->shift, w->inside, MPFR_RNDN);
    mpfr_mul_ui(w->shift, w->shift, w->a + w->s, MPFR_RNDN);
    for (size_t r = 0; r < w->n; r++)
        if (r < w->a || r >= w->n - w->s) mpfr_sub_d(w->shift, w->shift, w->p->logits[hm_row_token(w->p, r)], MPFR_RNDN);
}

static hm_status geometric_witness(struct hm_row *p, struct hm_row *q, size_t k, size_t m, bool *out, struct hm_error *err)
{
    struct hm_level level;
    hm_status status = hm_level_make(p, k, m, &level, NULL, err); // T' is exact whoever answers
    if (status) return status;
    struct witness w = {.p = p, .q = q, .n = k + m, .inside = -INFINITY, .a = level.tied_r[0], .s = level.tied_r[1]};
    if (w.a + w.s == 0) return HM_OK;
    mpfr_init2(w.shift, EXACT);
    mpfr_init2(w.term, EXACT);
    bool empty = level.level_r.lo == -INFINITY; // some p_s = 0: there is no level
    if (!empty) fix_constant(&w);
    *out = (empty || w.fixed) && is_witness(&w);
    mpfr_clear(w.shift);
    mpfr_clear(w.term);
    return HM_OK;
}

hm_status hm_claim_attains(struct hm_row *p, struct hm_row *q, size_t k, size_t m, enum hm_which which, bool *out,
                           struct hm_error *err)
{
    *out = p->uniform && q->uniform && uniform_pair(p, q, k, m, which);
    if (*out) return HM_OK;
    if (which == HM_REVERSE) return geometric_witness(p, q, k, m, out, err);
    return q->uniform && !p->uniform ? uniform_witness(p, q, k, m, out, err) : HM_OK;
}
