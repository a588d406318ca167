// Rows: order, enclosures against a 2,500-bit reference, and draws on both sides of every border.
#include "certify/row_state.h"
#include "tests/certify_rows.h"

#include <mpfr.h>

enum { REFERENCE = 2500, LARGEST = 80 };

static hm_status try_open(const float *logits, size_t vocab, struct hm_error *err)
{
    struct hm_rational one;
    struct hm_row *row = NULL;
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    hm_status status = hm_row_open(logits, vocab, &one, &row, err);
    hm_row_close(row);
    hm_rational_clear(&one);
    return status;
}

static void refuses_what_is_no_row(void **state)
{
    static const struct {
        float logits[4];
        size_t vocab;
        const char *message;
    } bad[] = {
        {{0, NAN, 1, 2}, 4, "logit 1: expected a finite number or -inf, found NaN"},
        {{0, 1, 2, INFINITY}, 4, "logit 3: expected a finite number or -inf, found +inf"},
        {{-INFINITY, -INFINITY, -INFINITY}, 3, "row of 3 logits: expected a finite one, found only -inf"},
        {{0}, 1, "row: expected between 2 and 2147483647 logits, found 1"},
        {{0}, 0, "row: expected between 2 and 2147483647 logits, found 0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hm_error err;
        assert_int_equal(try_open(bad[i].logits, bad[i].vocab, &err), HM_RANGE);
        assert_string_equal(err.message, bad[i].message);
    }
    struct hm_rational zero;
    struct hm_row *row;
    struct hm_error err;
    hm_rational_init(&zero);
    assert_int_equal(hm_row_open((float[]){0, 1}, 2, &zero, &row, &err), HM_RANGE);
    assert_null(row);
    hm_rational_clear(&zero);
}

static void tokens_and_counts_out_of_range_are_errors(void **state)
{
    (void)state;
    struct hm_row *row = open_row((float[]){0, 1, 2}, 3, "1");
    struct hm_ival v;
    struct hm_error err;
    int32_t token;
    size_t support;
    struct hm_rational p;
    hm_rational_init(&p);
    assert_int_equal(hm_row_token(row, 3), -1);
    assert_int_equal(hm_row_probability(row, 3, &v, &err), HM_RANGE);
    assert_int_equal(hm_row_probability(row, -1, &v, &err), HM_RANGE);
    assert_int_equal(hm_row_regret(row, 3, &v, &err), HM_RANGE);
    assert_int_equal(hm_row_draw(row, 0, 0, &token, &err), HM_RANGE);
    assert_int_equal(hm_row_draw(row, 4, 0, &token, &err), HM_RANGE);
    assert_int_equal(hm_row_draw(row, 3, UINT64_C(1) << 53, &token, &err), HM_RANGE);
    assert_int_equal(hm_row_support(row, 0, &p, &support, &err), HM_RANGE);
    hm_rational_clear(&p);
    hm_row_close(row);
}

// Larger logits first, equal ones by id, -0 and +0 equal, -inf last: against insertion, below and beyond the head.
static void order_is_by_logit_then_id(void **state)
{
    (void)state;
    struct random r = seeded("order");
    for (size_t n = 0; n < rounds(200); n++) {
        size_t vocab = 2 + below(&r, n % 10 == 0 ? 400 : 70);
        float *l = calloc(vocab, sizeof *l);
        int32_t *order = calloc(vocab, sizeof *order);
        for (size_t i = 0; i < vocab; i++) {
            static const float few[] = {0.0f, -0.0f, 1, -1, -INFINITY, 3e-45f, -3e-45f, 3e38f, -3e38f};
            l[i] = i == 0 ? 1.5f : below(&r, 2) ? few[below(&r, 9)] : (float)gauss(&r);
            size_t at = i;
            for (; at > 0 && l[order[at - 1]] < l[i]; at--) order[at] = order[at - 1];
            order[at] = (int32_t)i;
        }
        struct hm_row *row = open_row(l, vocab, "1");
        for (size_t k = 0; k < vocab; k++) {
            assert_int_equal(hm_row_token(row, k), order[k]);
            assert_int_equal(hm_row_rank(row, order[k]), k);
        }
        hm_row_close(row);
        free(l);
        free(order);
    }
}

// Reference probabilities at REFERENCE bits.
static void reference(const float *l, size_t vocab, const char *temperature, mpfr_t *p)
{
    mpq_t t;
    mpfr_t sum;
    mpq_init(t);
    mpq_set_str(t, temperature, 10);
    mpfr_init2(sum, REFERENCE);
    mpfr_set_zero(sum, 1);
    for (size_t i = 0; i < vocab; i++) {
        mpfr_init2(p[i], REFERENCE);
        mpfr_set_flt(p[i], l[i], MPFR_RNDN);
        mpfr_div_q(p[i], p[i], t, MPFR_RNDN);
        mpfr_exp(p[i], p[i], MPFR_RNDN);
        mpfr_add(sum, sum, p[i], MPFR_RNDN);
    }
    for (size_t i = 0; i < vocab; i++) mpfr_div(p[i], p[i], sum, MPFR_RNDN);
    mpfr_clear(sum);
    mpq_clear(t);
}

static void release(mpfr_t *p, size_t vocab)
{
    for (size_t i = 0; i < vocab; i++) mpfr_clear(p[i]);
}

// The reference is itself rounded: it stands for a number within 2^-2300, relative or absolute, of it.
static void assert_holds(struct hm_ival v, mpfr_srcptr x)
{
    mpfr_t slack, end;
    mpfr_inits2(REFERENCE, slack, end, (mpfr_ptr)0);
    mpfr_abs(slack, x, MPFR_RNDU);
    mpfr_add_ui(slack, slack, 1, MPFR_RNDU);
    mpfr_mul_2si(slack, slack, -2300, MPFR_RNDU);
    mpfr_add(end, x, slack, MPFR_RNDU);
    bool inside = mpfr_cmp_d(end, v.lo) >= 0;
    mpfr_sub(end, x, slack, MPFR_RNDD);
    inside = inside && (mpfr_cmp_d(end, v.hi) <= 0 || (mpfr_inf_p(x) && v.lo == INFINITY));
    mpfr_clears(slack, end, (mpfr_ptr)0);
    if (!inside) fail_msg("about %.17g is not in [%.17g, %.17g]", mpfr_get_d(x, MPFR_RNDN), v.lo, v.hi);
    assert_true(is_narrow(v));
}

static size_t random_logits(struct random *r, float *l)
{
    size_t vocab = 2 + below(r, LARGEST - 2), kind = below(r, 6);
    double scale = kind == 0 ? 1e-3 : kind == 1 ? 300 : 3;
    for (size_t i = 0; i < vocab; i++) {
        l[i] = (float)(scale * gauss(r) + (kind == 2 ? 1000 : 0));
        if (kind == 3 && below(r, 2)) l[i] = -INFINITY;
        if (kind == 4 && i > 0 && below(r, 2)) l[i] = l[below(r, i)];
    }
    l[below(r, vocab)] = (float)(kind == 5 ? 40 : 1);
    return vocab;
}

static const char *random_temperature(struct random *r)
{
    static const char *const all[] = {"1", "1", "1/2", "7/10", "3"};
    return all[below(r, 5)];
}

static void figures_enclose_the_reference(void **state)
{
    (void)state;
    struct random r = seeded("figures");
    float l[LARGEST];
    mpfr_t p[LARGEST], sum, term;
    struct hm_error err;
    struct hm_ival v;
    mpfr_init2(sum, REFERENCE);
    mpfr_init2(term, REFERENCE);
    for (size_t n = 0; n < rounds(60); n++) {
        size_t vocab = random_logits(&r, l);
        const char *temperature = random_temperature(&r);
        struct hm_row *row = open_row(l, vocab, temperature);
        reference(l, vocab, temperature, p);
        mpfr_set_zero(sum, 1);
        for (size_t i = 0; i < vocab; i++) {
            assert_int_equal(hm_row_probability(row, (int32_t)i, &v, &err), HM_OK);
            assert_holds(v, p[i]);
            assert_int_equal(hm_row_regret(row, (int32_t)i, &v, &err), HM_OK);
            if (l[i] == -INFINITY) {
                assert_true(v.lo == INFINITY);
                continue;
            }
            mpfr_div(term, p[hm_row_token(row, 0)], p[i], MPFR_RNDN);
            mpfr_log(term, term, MPFR_RNDN);
            assert_holds(v, term);
            mpfr_log(term, p[i], MPFR_RNDN);
            mpfr_mul(term, term, p[i], MPFR_RNDN);
            mpfr_sub(sum, sum, term, MPFR_RNDN);
        }
        assert_int_equal(hm_row_entropy(row, &v, &err), HM_OK);
        assert_holds(v, sum);
        int32_t first = hm_row_token(row, 0); // lse = l_first/T - ln p_first
        mpq_t t;
        mpq_init(t);
        mpq_set_str(t, temperature, 10);
        mpfr_set_flt(sum, l[first], MPFR_RNDN);
        mpfr_div_q(sum, sum, t, MPFR_RNDN);
        mpfr_log(term, p[first], MPFR_RNDN);
        mpfr_sub(sum, sum, term, MPFR_RNDN);
        mpq_clear(t);
        assert_int_equal(hm_row_lse(row, &v, &err), HM_OK);
        assert_holds(v, sum);
        release(p, vocab);
        hm_row_close(row);
    }
    mpfr_clear(sum);
    mpfr_clear(term);
}

static void reference_kl(mpfr_t *p, mpfr_t *q, size_t vocab, mpfr_ptr out)
{
    mpfr_t term;
    mpfr_init2(term, REFERENCE);
    mpfr_set_zero(out, 1);
    for (size_t i = 0; i < vocab; i++) {
        if (mpfr_zero_p(p[i])) continue;
        mpfr_div(term, p[i], q[i], MPFR_RNDN); // +inf where q is 0
        mpfr_log(term, term, MPFR_RNDN);
        mpfr_mul(term, term, p[i], MPFR_RNDN);
        mpfr_add(out, out, term, MPFR_RNDN);
    }
    mpfr_clear(term);
}

static void distances_enclose_the_reference(void **state)
{
    (void)state;
    struct random r = seeded("distances");
    float l[LARGEST], d[LARGEST];
    mpfr_t p[LARGEST], q[LARGEST], sum, common;
    struct hm_error err;
    mpfr_init2(sum, REFERENCE);
    mpfr_init2(common, REFERENCE);
    for (size_t n = 0; n < rounds(60); n++) {
        size_t vocab = random_logits(&r, l);
        static const double noises[] = {1e-7, 1e-3, 0.3, 5};
        double noise = noises[below(&r, 4)];
        for (size_t i = 0; i < vocab; i++) d[i] = (float)(l[i] + noise * gauss(&r));
        if (n % 7 == 0) d[below(&r, vocab - 1) + 1] = -INFINITY;
        d[0] = isinf(d[0]) ? 0 : d[0];
        const char *temperature = random_temperature(&r);
        struct hm_row *a = open_row(l, vocab, temperature), *b = open_row(d, vocab, temperature);
        struct hm_row_distance v;
        assert_int_equal(hm_row_distance(a, b, &v, &err), HM_OK);
        reference(l, vocab, temperature, p);
        reference(d, vocab, temperature, q);
        reference_kl(p, q, vocab, sum);
        assert_holds(v.kl_pq, sum);
        reference_kl(q, p, vocab, sum);
        assert_holds(v.kl_qp, sum);
        mpfr_set_zero(common, 1);
        for (size_t i = 0; i < vocab; i++) {
            mpfr_min(sum, p[i], q[i], MPFR_RNDN);
            mpfr_add(common, common, sum, MPFR_RNDN);
        }
        assert_holds(v.standard_accept, common);
        mpfr_ui_sub(common, 1, common, MPFR_RNDN);
        assert_holds(v.tv, common);
        release(p, vocab);
        release(q, vocab);
        hm_row_close(a);
        hm_row_close(b);
    }
    mpfr_clear(sum);
    mpfr_clear(common);
}

static void a_constant_shift_is_no_distance(void **state)
{
    (void)state;
    float l[] = {1, 2, -INFINITY, 0.5f}, d[] = {1025, 1026, -INFINITY, 1024.5f}, off[] = {1025, 1026.0001f, -INFINITY, 1024.5f};
    struct hm_row *p = open_row(l, 4, "7/10"), *q = open_row(d, 4, "7/10"), *o = open_row(off, 4, "7/10");
    struct hm_row_distance v;
    struct hm_error err;
    assert_int_equal(hm_row_distance(p, q, &v, &err), HM_OK);
    assert_true(v.kl_pq.lo == 0 && v.kl_pq.hi == 0 && v.kl_qp.hi == 0 && v.tv.hi == 0);
    assert_true(v.standard_accept.lo == 1 && v.standard_accept.hi == 1);
    assert_int_equal(hm_row_distance(p, o, &v, &err), HM_OK);
    assert_true(v.kl_pq.lo > 0 && v.kl_qp.lo > 0 && v.tv.lo > 0 && v.standard_accept.hi < 1);
    struct hm_row *other = open_row(d, 4, "1"), *shorter = open_row(d, 2, "7/10");
    assert_int_equal(hm_row_distance(p, other, &v, &err), HM_USAGE);
    assert_int_equal(hm_row_distance(p, shorter, &v, &err), HM_SHAPE);
    hm_row_close(p);
    hm_row_close(q);
    hm_row_close(o);
    hm_row_close(other);
    hm_row_close(shorter);
}

// Intervals at 128 and 512 bits enclose the same number: they overlap, and the finer is not the wider.
static void two_precisions_overlap(void **state)
{
    (void)state;
    struct random r = seeded("precisions");
    float l[LARGEST];
    struct hm_mpi a, b;
    hm_mpi_init(&a, 600);
    hm_mpi_init(&b, 600);
    for (size_t n = 0; n < rounds(60); n++) {
        size_t vocab = random_logits(&r, l);
        struct hm_row *row = open_row(l, vocab, random_temperature(&r));
        struct hm_weights *coarse = hm_weights_make(l, vocab, row->top, row->temperature.value, 128);
        struct hm_weights *fine = hm_weights_make(l, vocab, row->top, row->temperature.value, 512);
        for (size_t i = 0; i < vocab; i++) {
            hm_weight(coarse, i, &a);
            hm_weight(fine, i, &b);
            assert_true(mpfr_lessequal_p(a.lo, b.hi) && mpfr_lessequal_p(b.lo, a.hi));
            assert_true(mpfr_lessequal_p(a.lo, b.lo) && mpfr_greaterequal_p(a.hi, b.hi));
        }
        hm_weights_free(coarse);
        hm_weights_free(fine);
        hm_row_close(row);
    }
    hm_mpi_clear(&a);
    hm_mpi_clear(&b);
}

// Weights beyond any exponent range, and logits at the ends of the floats.
static void extreme_rows_stay_enclosed(void **state)
{
    (void)state;
    float l[] = {3e38f, -3e38f, 1e-45f, 3e38f, -INFINITY}, d[] = {0, 1, 2, 3, 4};
    struct hm_row *row = open_row(l, 5, "1"), *other = open_row(d, 5, "1");
    struct hm_ival v;
    struct hm_row_distance distance;
    struct hm_error err;
    int32_t token;
    assert_int_equal(hm_row_probability(row, 0, &v, &err), HM_OK);
    assert_encloses(v, 0.5);
    assert_int_equal(hm_row_probability(row, 1, &v, &err), HM_OK);
    assert_true(v.lo == 0 && v.hi > 0 && v.hi < 1e-300);
    assert_int_equal(hm_row_probability(row, 4, &v, &err), HM_OK);
    assert_true(v.lo == 0 && v.hi == 0);
    assert_int_equal(hm_row_entropy(row, &v, &err), HM_OK);
    assert_encloses(v, log(2));
    // e^-(3e38) tips the scales at exactly one half: no precision can tell, and no token is guessed
    assert_int_equal(hm_row_draw(row, 5, UINT64_C(1) << 52, &token, &err), HM_RANGE);
    assert_string_equal(err.message, "draw: undecided at 4096 bits");
    assert_int_equal(hm_row_draw(row, 5, (UINT64_C(1) << 52) + 1, &token, &err), HM_OK);
    assert_int_equal(token, 3);
    hm_row_distance(row, other, &distance, &err);
    assert_true(distance.kl_pq.lo > 0 && distance.kl_qp.lo == INFINITY && is_narrow(distance.kl_pq) && is_narrow(distance.tv));
    hm_row_close(row);
    hm_row_close(other);
}

static int32_t draw(struct hm_row *row, size_t support, uint64_t bits)
{
    struct hm_error err = {.message = ""};
    int32_t token = -1;
    if (hm_row_draw(row, support, bits, &token, &err)) fail_msg("%s", err.message);
    return token;
}

// The draw from reference probabilities, or -1 where a tie is too close for the reference (another test's business).
static int32_t reference_draw(struct hm_row *row, mpfr_t *p, size_t support, uint64_t bits, mpfr_srcptr sum)
{
    mpfr_t passed, target;
    int32_t token = -1;
    mpfr_inits2(REFERENCE, passed, target, (mpfr_ptr)0);
    mpfr_set_zero(passed, 1);
    mpfr_set_ui_2exp(target, bits, -53, MPFR_RNDN);
    mpfr_mul(target, target, sum, MPFR_RNDN);
    for (size_t i = 0; i < hm_row_vocab(row) && token < 0; i++) {
        if (hm_row_rank(row, (int32_t)i) >= support) continue;
        mpfr_add(passed, passed, p[i], MPFR_RNDN);
        if (mpfr_greater_p(passed, target)) token = (int32_t)i;
    }
    mpfr_sub(passed, passed, target, MPFR_RNDN);
    if (mpfr_zero_p(passed) || mpfr_get_exp(passed) < -2200) token = -1;
    mpfr_clears(passed, target, (mpfr_ptr)0);
    return token;
}

// Every border of the cumulative sums: the last random number before it and the first after it.
static void draws_turn_at_the_reference_borders(void **state)
{
    (void)state;
    struct random r = seeded("draws");
    float l[LARGEST];
    mpfr_t p[LARGEST], sum, part, border;
    size_t compared = 0;
    mpfr_inits2(REFERENCE, sum, part, border, (mpfr_ptr)0);
    for (size_t n = 0; n < rounds(40); n++) {
        size_t vocab = random_logits(&r, l), support = 1 + below(&r, vocab);
        const char *temperature = random_temperature(&r);
        struct hm_row *row = open_row(l, vocab, temperature);
        reference(l, vocab, temperature, p);
        mpfr_set_zero(sum, 1);
        for (size_t i = 0; i < support; i++) mpfr_add(sum, sum, p[hm_row_token(row, i)], MPFR_RNDN);
        mpfr_set_zero(part, 1);
        for (size_t i = 0; i < vocab; i++) {
            if (hm_row_rank(row, (int32_t)i) >= support) continue;
            mpfr_add(part, part, p[i], MPFR_RNDN);
            mpfr_div(border, part, sum, MPFR_RNDN);
            mpfr_mul_2si(border, border, 53, MPFR_RNDN);
            uint64_t bits = mpfr_get_ui(border, MPFR_RNDD);
            for (uint64_t b = bits; b <= bits + 1 && b < UINT64_C(1) << 53; b++) {
                int32_t expected = reference_draw(row, p, support, b, sum);
                if (expected < 0) continue;
                assert_int_equal(draw(row, support, b), expected);
                compared++;
            }
        }
        release(p, vocab);
        hm_row_close(row);
    }
    mpfr_clears(sum, part, border, (mpfr_ptr)0);
    assert_true(compared > 1000);
}

static void tied_draws_are_exact(void **state)
{
    (void)state;
    const uint64_t half = UINT64_C(1) << 52, quarter = half / 2, all = half * 2;
    float four[] = {2, 2, 2, 2}, masked[] = {-INFINITY, 5, -INFINITY, 5, 5, -INFINITY}, pairs[] = {1, 2.5f, 1, 2.5f};
    struct hm_row *row = open_row(four, 4, "1");
    for (uint64_t i = 0; i < 4; i++) { // u = i/4: the sum up to token i - 1 equals it and does not pass it
        assert_int_equal(draw(row, 4, i * quarter), i);
        if (i > 0) assert_int_equal(draw(row, 4, i * quarter - 1), i - 1);
        assert_int_equal(draw(row, 4, i * quarter + 1), i);
    }
    assert_int_equal(draw(row, 4, all - 1), 3);
    assert_int_equal(draw(row, 2, half), 1);
    assert_int_equal(draw(row, 2, half - 1), 0);
    hm_row_close(row);
    row = open_row(masked, 6, "1");
    assert_int_equal(draw(row, 6, 0), 1);
    assert_int_equal(draw(row, 6, all / 3), 1);     // 2^53/3 rounded down
    assert_int_equal(draw(row, 6, all / 3 + 1), 3);
    assert_int_equal(draw(row, 6, all - 1), 4);
    hm_row_close(row);
    row = open_row(pairs, 4, "7/10"); // unequal logits, each pair divided in half at token 1
    assert_int_equal(draw(row, 4, half), 2);
    assert_int_equal(draw(row, 4, half - 1), 1);
    assert_int_equal(draw(row, 4, half + 1), 2);
    hm_row_close(row);
}

static size_t support_of(struct hm_row *row, size_t top_k, const char *top_p)
{
    struct hm_rational p;
    struct hm_error err = {.message = ""};
    size_t support = 0;
    hm_rational_init(&p);
    if (top_p) assert_int_equal(hm_rational_parse(top_p, &p, &err), HM_OK);
    if (hm_row_support(row, top_k, top_p ? &p : NULL, &support, &err)) fail_msg("%s", err.message);
    hm_rational_clear(&p);
    return support;
}

static void supports(void **state)
{
    (void)state;
    float l[] = {0, (float)log(2), (float)log(4), -INFINITY, -INFINITY}; // about 1/7, 2/7, 4/7
    struct hm_row *row = open_row(l, 5, "1");
    assert_int_equal(support_of(row, 0, NULL), 5);
    assert_int_equal(support_of(row, 0, "1"), 5);
    assert_int_equal(support_of(row, 2, NULL), 2);
    assert_int_equal(support_of(row, 9, NULL), 5);
    assert_int_equal(support_of(row, 0, "1/2"), 1);
    assert_int_equal(support_of(row, 0, "6/10"), 2);
    assert_int_equal(support_of(row, 2, "6/10"), 1); // 4/6 of what top-k leaves
    assert_int_equal(support_of(row, 2, "7/10"), 2);
    assert_int_equal(support_of(row, 0, "9/10"), 3);
    assert_int_equal(support_of(row, 0, "1/1000000"), 1);
    hm_row_close(row);
    float tied[] = {1, 1, 1, 1, -INFINITY, 1};
    row = open_row(tied, 6, "1");
    assert_int_equal(support_of(row, 0, "2/5"), 2); // reached exactly
    assert_int_equal(support_of(row, 0, "400001/1000000"), 3);
    assert_int_equal(support_of(row, 0, "399999/1000000"), 2);
    assert_int_equal(support_of(row, 4, "1/2"), 2);
    assert_int_equal(support_of(row, 4, "51/100"), 3);
    hm_row_close(row);
    float long_row[300];
    for (int i = 0; i < 300; i++) long_row[i] = (float)(-i) * 1e-3f;
    row = open_row(long_row, 300, "1");
    size_t n = support_of(row, 0, "9/10"); // beyond the head: the border must satisfy its definition
    double mass = 0, total = 0;
    for (int i = 0; i < 300; i++) total += exp(long_row[i]);
    for (size_t i = 0; i + 1 < n; i++) mass += exp(long_row[i]);
    assert_true(n > HM_ROW_HEAD && mass < 0.9 * total && mass + exp(long_row[n - 1]) >= 0.9 * total);
    hm_row_close(row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_is_no_row),
        cmocka_unit_test(tokens_and_counts_out_of_range_are_errors),
        cmocka_unit_test(order_is_by_logit_then_id),
        cmocka_unit_test(figures_enclose_the_reference),
        cmocka_unit_test(distances_enclose_the_reference),
        cmocka_unit_test(a_constant_shift_is_no_distance),
        cmocka_unit_test(two_precisions_overlap),
        cmocka_unit_test(extreme_rows_stay_enclosed),
        cmocka_unit_test(draws_turn_at_the_reference_borders),
        cmocka_unit_test(tied_draws_are_exact),
        cmocka_unit_test(supports),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
