// Two rows in double against 768 bits: every enclosure of the filter holds the truth, on pairs made to hurt (nearly
// equal rows, one float apart, mass on one token, ties, masks, spreads of 1000 nats, subnormals, offsets whose
// differences are inexact, disjoint rows), and on rows like those of models it nearly always answers.
#include "certify/row_distance_filter.h"
#include "tests/certify_rows.h"
#include "tests/seed.h"

#include <mpfr.h>
#include <string.h>

enum { REFERENCE = 768, MOST = 400 };

static const char *const temperatures[] = {"1", "7/10", "1/100", "1000"};

struct truth {
    mpfr_t p[MOST], q[MOST], kl_pq, kl_qp, tv, accept, entropy, lse, term;
};

static void law(const struct hm_row *row, mpfr_t *p, mpfr_ptr lse)
{
    mpfr_set_zero(lse, 1);
    for (size_t i = 0; i < row->vocab; i++) {
        mpfr_set_flt(p[i], row->logits[i], MPFR_RNDN);
        mpfr_div_q(p[i], p[i], row->temperature.value, MPFR_RNDN);
        mpfr_exp(p[i], p[i], MPFR_RNDN);
        mpfr_add(lse, lse, p[i], MPFR_RNDN);
    }
    for (size_t i = 0; i < row->vocab; i++) mpfr_div(p[i], p[i], lse, MPFR_RNDN);
    mpfr_log(lse, lse, MPFR_RNDN);
}

// sum += a ln(a/b)
static void add_relative(mpfr_ptr sum, mpfr_srcptr a, mpfr_srcptr b, mpfr_ptr term)
{
    if (mpfr_zero_p(a)) return;
    if (mpfr_zero_p(b)) {
        mpfr_set_inf(sum, 1);
        return;
    }
    mpfr_div(term, a, b, MPFR_RNDN);
    mpfr_log(term, term, MPFR_RNDN);
    mpfr_mul(term, term, a, MPFR_RNDN);
    mpfr_add(sum, sum, term, MPFR_RNDN);
}

static void truth_init(struct truth *t)
{
    mpfr_inits2(REFERENCE, t->kl_pq, t->kl_qp, t->tv, t->accept, t->entropy, t->lse, t->term, (mpfr_ptr)0);
    for (size_t i = 0; i < MOST; i++) mpfr_inits2(REFERENCE, t->p[i], t->q[i], (mpfr_ptr)0);
}

static void truth_clear(struct truth *t)
{
    mpfr_clears(t->kl_pq, t->kl_qp, t->tv, t->accept, t->entropy, t->lse, t->term, (mpfr_ptr)0);
    for (size_t i = 0; i < MOST; i++) mpfr_clears(t->p[i], t->q[i], (mpfr_ptr)0);
}

static void truth_fill(struct truth *t, const struct hm_row *p, const struct hm_row *q)
{
    mpfr_ptr zero[] = {t->kl_pq, t->kl_qp, t->tv, t->accept, t->entropy};
    for (size_t i = 0; i < 5; i++) mpfr_set_zero(zero[i], 1);
    law(q, t->q, t->lse);
    law(p, t->p, t->lse);
    for (size_t i = 0; i < p->vocab; i++) {
        add_relative(t->kl_pq, t->p[i], t->q[i], t->term);
        add_relative(t->kl_qp, t->q[i], t->p[i], t->term);
        mpfr_sub(t->term, t->p[i], t->q[i], MPFR_RNDN);
        if (mpfr_sgn(t->term) > 0) mpfr_add(t->tv, t->tv, t->term, MPFR_RNDN);
        mpfr_min(t->term, t->p[i], t->q[i], MPFR_RNDN);
        mpfr_add(t->accept, t->accept, t->term, MPFR_RNDN);
        if (mpfr_zero_p(t->p[i])) continue;
        mpfr_log(t->term, t->p[i], MPFR_RNDN);
        mpfr_mul(t->term, t->term, t->p[i], MPFR_RNDN);
        mpfr_sub(t->entropy, t->entropy, t->term, MPFR_RNDN);
    }
}

// The reference is good to 2^-700 of itself or of 1.
static void assert_truth(struct hm_ival v, mpfr_srcptr x, const char *what, const struct hm_row *p)
{
    mpfr_t end;
    mpfr_init2(end, REFERENCE);
    bool inside = !isnan(v.lo) && !isnan(v.hi);
    if (mpfr_inf_p(x)) {
        inside = inside && v.hi == INFINITY;
    } else {
        mpfr_set_d(end, 0x1p-690, MPFR_RNDN);
        mpfr_add(end, end, x, MPFR_RNDU);
        inside = inside && mpfr_cmp_d(end, v.lo) >= 0;
        mpfr_set_d(end, -0x1p-690, MPFR_RNDN);
        mpfr_add(end, end, x, MPFR_RNDD);
        inside = inside && mpfr_cmp_d(end, v.hi) <= 0;
    }
    mpfr_clear(end);
    if (!inside)
        fail_msg("%s of %zu tokens at T = %g: %.20g is not in [%.20g, %.20g]", what, p->vocab,
                 mpq_get_d(p->temperature.value), mpfr_get_d(x, MPFR_RNDN), v.lo, v.hi);
}

static float to_bf16(float l)
{
    uint32_t bits;
    memcpy(&bits, &l, sizeof bits);
    bits &= UINT32_C(0xffff0000);
    memcpy(&l, &bits, sizeof bits);
    return l;
}

static const double noises[] = {1, 1e-2, 1e-4, 1e-6, 10};

// A row and one near it or far from it.
static void random_pair(struct random *r, float *l, float *d, size_t vocab)
{
    size_t kind = below(r, 14);
    double noise = noises[below(r, 5)], scale = kind == 5 ? 300 : kind == 6 ? 1e-40 : kind == 7 ? 1e-3 : 3;
    for (size_t i = 0; i < vocab; i++) {
        l[i] = (float)(scale * gauss(r));
        if (kind == 1) l[i] = (float)below(r, 3);
        if (kind == 3) l[i] = to_bf16(l[i] + 20);
        if (kind == 10) l[i] = (float)ldexp(l[i], -(int)below(r, 100));
        d[i] = l[i] + (float)(noise * gauss(r));
        if (kind == 2) d[i] = below(r, 8) ? l[i] : nextafterf(l[i], below(r, 2) ? INFINITY : -INFINITY);
        if (kind == 3) d[i] = to_bf16(d[i]);
        if (kind == 8) d[i] = (float)(scale * gauss(r));
        if (kind == 9) d[i] = l[i] + 12345.678f;
        if (kind == 10) d[i] = below(r, 9) ? 12.3f : 12.3f + l[i]; // a difference may need 100 bits
        if (kind == 11) l[i] = i % 2 ? 500 : -500, d[i] = -l[i] + (float)gauss(r);
        if (kind == 4 && below(r, 3) == 0) l[i] = -INFINITY;
        if (kind == 4 && below(r, 2)) d[i] = l[i];
    }
    size_t one = below(r, vocab), other = kind == 13 ? below(r, vocab) : one;
    if (kind >= 12) { // nearly everything on one token
        l[one] = (float)(20 + 60 * uniform(r));
        d[other] = below(r, 2) ? l[one] : (float)(20 + 60 * uniform(r));
    }
    if (l[one] == -INFINITY) l[one] = 1;
    if (d[one] == -INFINITY) d[one] = 1;
}

static void check_excess(struct truth *t, struct hm_row *p, struct hm_row *q, size_t k)
{
    int32_t tokens[MOST];
    struct hm_ival e;
    mpfr_t sum;
    mpfr_init2(sum, REFERENCE);
    mpfr_set_zero(sum, 1);
    for (size_t r = 0; r < k; r++) {
        tokens[r] = hm_row_token(p, r);
        mpfr_sub(t->term, t->q[tokens[r]], t->p[tokens[r]], MPFR_RNDN);
        if (mpfr_sgn(t->term) > 0) mpfr_add(sum, sum, t->term, MPFR_RNDN);
    }
    e = (struct hm_ival){0, INFINITY}; // where the filter does not apply at all
    hm_filter_row_excess(p, q, tokens, k, &e);
    assert_truth(e, sum, "excess", p);
    mpfr_clear(sum);
}

static void enclosures_hold_the_truth(void **state)
{
    (void)state;
    struct random r = seeded("pairs");
    struct truth *t = calloc(1, sizeof *t);
    size_t count = test_count(60, 3000, 100000);
    unsigned long answered = 0, undecided = 0;
    truth_init(t);
    for (size_t n = 0; n < count; n++) {
        float l[MOST], d[MOST];
        size_t vocab = 2 + below(&r, n % 50 == 0 ? MOST - 1 : 40);
        const char *temperature = temperatures[below(&r, 4)];
        random_pair(&r, l, d, vocab);
        struct hm_row *p = open_row(l, vocab, temperature), *q = open_row(d, vocab, temperature);
        truth_fill(t, p, q);
        if (!hm_filter_ready(p) || !hm_filter_ready(q)) fail_msg("a row that the filter refuses");
        assert_truth(hm_filter_row_entropy(p), t->entropy, "entropy", p);
        assert_truth(hm_filter_lse(p), t->lse, "lse", p);
        size_t token = below(&r, vocab);
        assert_truth(hm_filter_probability(p, token), t->p[token], "probability", p);
        struct hm_row_distance v = {{0, INFINITY}, {0, INFINITY}, {0, 1}, {0, 1}};
        if (below(&r, 2)) check_excess(t, p, q, 1 + below(&r, vocab)); // before the row knows the other, and after
        if (!hm_row_same(p, q)) {
            bool found = hm_filter_row_distance(p, q, &v);
            assert_truth(v.kl_pq, t->kl_pq, "KL(p||q)", p);
            assert_truth(v.kl_qp, t->kl_qp, "KL(q||p)", p);
            assert_truth(v.tv, t->tv, "TV", p);
            assert_truth(v.standard_accept, t->accept, "standard acceptance", p);
            if (found)
                assert_true(is_narrow(v.kl_pq) && is_narrow(v.kl_qp) && is_narrow(v.tv) &&
                            is_narrow(v.standard_accept));
        }
        check_excess(t, p, q, 1 + below(&r, vocab));
        answered += p->filter.answered;
        undecided += p->filter.undecided;
        hm_row_close(p);
        hm_row_close(q);
    }
    print_message("pairs: %zu, %lu answered, %lu left to MPFR\n", count, answered, undecided);
    assert_true(answered > 4 * undecided);
    truth_clear(t);
    free(t);
}

// Rows like those of models, of every peak from flat to one token with all but 10^-16, and drafts from another model to
// a rounded copy: everything is answered in double.
static void rows_of_models_are_answered(void **state)
{
    (void)state;
    enum { WIDE = 20000 };
    struct random r = seeded("models");
    float *l = calloc(WIDE, sizeof *l), *d = calloc(WIDE, sizeof *d);
    unsigned long answered = 0, undecided = 0;
    for (size_t n = 0; n < test_count(10, 150, 3000); n++) {
        double noise = noises[1 + n % 2] * (n % 3 ? 100 : 1), offset = 10 * gauss(&r);
        for (size_t i = 0; i < WIDE; i++) {
            l[i] = (float)(2.5 * gauss(&r));
            d[i] = (float)(l[i] + (n % 5 == 4 ? 0 : offset) + noise * gauss(&r));
            if (n % 7 == 0) l[i] = to_bf16(l[i]), d[i] = to_bf16(d[i]);
        }
        float peak = (float)(10 + 40 * uniform(&r));
        l[WIDE / 3] = peak;
        d[WIDE / 3] = (float)(peak + offset);
        struct hm_row *p = open_row(l, WIDE, temperatures[n % 2]), *q = open_row(d, WIDE, temperatures[n % 2]);
        struct hm_row_distance v;
        struct hm_ival x;
        struct hm_error err;
        assert_int_equal(hm_row_distance(p, q, &v, &err), HM_OK);
        assert_int_equal(hm_row_entropy(p, &x, &err), HM_OK);
        assert_int_equal(hm_row_lse(p, &x, &err), HM_OK);
        assert_int_equal(hm_row_probability(p, hm_row_token(p, n), &x, &err), HM_OK);
        assert_int_equal(hm_row_excess(p, q, 1 + n, &x, &err), HM_OK);
        assert_true(p->weights == NULL || p->filter.undecided > 0); // MPFR was not asked
        answered += p->filter.answered;
        undecided += p->filter.undecided;
        hm_row_close(p);
        hm_row_close(q);
    }
    print_message("rows of models: %lu answered, %lu left to MPFR\n", answered, undecided);
    assert_true(undecided * 100 <= answered);
    free(l);
    free(d);
}

// One distribution with other logits is known without arithmetic; a row that takes the place of another is another.
static void rows_are_told_apart(void **state)
{
    (void)state;
    float a[] = {1, 2, 3, -INFINITY}, b[] = {2, 3, 4, -INFINITY}, c[] = {2, 3, 4.0000005f, -INFINITY};
    struct hm_row *p = open_row(a, 4, "1"), *q = open_row(b, 4, "1");
    struct hm_row_distance same, other;
    struct hm_error err;
    assert_int_equal(hm_row_distance(p, q, &same, &err), HM_OK);
    assert_true(same.kl_pq.hi == 0 && same.tv.hi == 0 && same.standard_accept.lo == 1);
    hm_row_close(q);
    q = open_row(c, 4, "1");
    assert_int_equal(hm_row_distance(p, q, &other, &err), HM_OK);
    hm_row_close(q);
    float far[] = {5, 3, 1, -INFINITY};
    q = open_row(far, 4, "1"); // may well lie where the other did
    struct hm_row_distance found, fresh;
    struct hm_row *again = open_row(a, 4, "1");
    assert_int_equal(hm_row_distance(p, q, &found, &err), HM_OK);
    assert_int_equal(hm_row_distance(again, q, &fresh, &err), HM_OK);
    assert_true(other.tv.hi < 1e-6 && found.tv.lo > 0.5 && found.tv.lo == fresh.tv.lo &&
                found.kl_pq.hi == fresh.kl_pq.hi);
    hm_row_close(p);
    hm_row_close(q);
    hm_row_close(again);
}

// Two tokens whose difference is 10^-20 in one row and 0 in the other, 12.3 higher: no double holds l_i - d_i, and the
// computed r_i are all 0. An enclosure that trusted them once lost the KL of 10^-40 / 8.
static void a_difference_below_doubles_is_allowed_for(void **state)
{
    (void)state;
    float l[] = {0, 1e-20f}, d[] = {12.3f, 12.3f};
    struct hm_row *p = open_row(l, 2, "1"), *q = open_row(d, 2, "1");
    struct hm_row_distance v;
    hm_filter_row_distance(p, q, &v);
    assert_true(v.kl_pq.lo <= 1.25e-41 && v.kl_pq.hi >= 1.25e-41 && v.kl_qp.hi >= 1.25e-41 && v.tv.hi >= 2.5e-21);
    struct hm_error err;
    assert_int_equal(hm_row_distance(p, q, &v, &err), HM_OK);
    assert_true(v.tv.lo > 2.4e-21 && v.tv.hi < 2.6e-21 && v.kl_pq.hi >= 1.25e-41);
    hm_row_close(p);
    hm_row_close(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(enclosures_hold_the_truth),
        cmocka_unit_test(rows_of_models_are_answered),
        cmocka_unit_test(rows_are_told_apart),
        cmocka_unit_test(a_difference_below_doubles_is_allowed_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
