// Divergences on request at two precisions and in double: the enclosures hold one number.
#include "tests/divergence_support.h"

#include <mpfr.h>
#include <string.h>

enum { LARGEST = 8 };

static void two_precisions_overlap(void **state)
{
    (void)state;
    struct random r = seeded("precisions");
    for (size_t n = 0; n < rounds(60); n++) {
        float l[LARGEST], o[LARGEST];
        size_t vocab = 3 + below(&r, LARGEST - 3), k = 1 + below(&r, vocab - 1), m = 1 + below(&r, vocab - k);
        double spread = n % 3 ? 2 : 300;
        for (size_t i = 0; i < vocab; i++) l[i] = (float)(gauss(&r) * spread);
        for (size_t i = 0; i < vocab; i++) o[i] = (float)(gauss(&r) * spread);
        struct hm_row *rows[2][2];
        for (int i = 0; i < 2; i++) rows[i][0] = open_row(l, vocab, "7/10"), rows[i][1] = open_row(o, vocab, "7/10");
        for (size_t kind = 0; kind < KINDS; kind++) {
            struct hm_divergence d = parse(kinds[kind]);
            struct hm_error err;
            struct hm_mpi v[2], s[2];
            for (int i = 0; i < 2; i++) {
                bool good;
                hm_mpi_init(&v[i], i ? 512 : 128);
                hm_mpi_init(&s[i], i ? 512 : 128);
                assert_int_equal(hm_divergence_between_at(&d, rows[i][0], rows[i][1], i ? 512 : 128, &v[i], &err), HM_OK);
                assert_int_equal(hm_divergence_level_at(&d, rows[i][0], k, m, i ? 512 : 128, &s[i], NULL, &good, &err), HM_OK);
                assert_true(good);
            }
            assert_true(mpfr_lessequal_p(v[0].lo, v[1].hi) && mpfr_lessequal_p(v[1].lo, v[0].hi));
            assert_true(mpfr_lessequal_p(s[0].lo, s[1].hi) && mpfr_lessequal_p(s[1].lo, s[0].hi));
            for (int i = 0; i < 2; i++) {
                hm_mpi_clear(&v[i]);
                hm_mpi_clear(&s[i]);
            }
            hm_divergence_clear(&d);
        }
        for (int i = 0; i < 4; i++) hm_row_close(rows[i / 2][i % 2]);
    }
}

// The filter's enclosures hold what MPFR's hold, and answer most of the time.
static void the_filter_agrees(void **state)
{
    (void)state;
    struct random r = seeded("filter");
    size_t asked = 0, answered[2] = {0, 0};
    for (size_t n = 0; n < rounds(150); n++) {
        enum { WIDE = 700 };
        float l[WIDE], d[WIDE];
        size_t vocab = n % 3 ? 2 + below(&r, 20) : 500 + below(&r, 200), k = 1 + below(&r, vocab < 9 ? vocab - 1 : 8), m = 1;
        double spread = n % 4 ? 2 : n % 8 ? 40 : 300, noise = n % 5 ? 0.5 : 1e-3;
        for (size_t i = 0; i < vocab; i++) {
            l[i] = i && below(&r, 9) == 0 ? -INFINITY : (float)(spread * gauss(&r));
            d[i] = i && below(&r, 30) == 0 ? -INFINITY : l[i] == -INFINITY ? (float)gauss(&r) : l[i] + (float)(noise * gauss(&r));
            if (n % 2 && l[i] == -INFINITY) d[i] = l[i];
        }
        if (n % 7 == 0) l[1] = l[0];
        if (k < vocab) m = 1 + below(&r, vocab - k < 8 ? vocab - k : 8);
        struct hm_row *p = open_row(l, vocab, "7/10"), *q = open_row(d, vocab, "7/10");
        for (size_t i = 0; i < KINDS; i++) {
            struct hm_divergence divergence = parse(kinds[i]);
            struct hm_ival found;
            struct hm_error err;
            struct hm_mpi exact;
            bool good;
            hm_mpi_init(&exact, 256);
            asked++;
            if (hm_divergence_between_filter(&divergence, p, q, &found)) {
                assert_int_equal(hm_divergence_between_at(&divergence, p, q, 256, &exact, &err), HM_OK);
                assert_true(mpfr_cmp_d(exact.hi, found.lo) >= 0 && mpfr_cmp_d(exact.lo, found.hi) <= 0);
                answered[0] += is_narrow(found);
            }
            if (hm_divergence_level_filter(&divergence, p, k, m, &found)) {
                assert_int_equal(hm_divergence_level_at(&divergence, p, k, m, 256, &exact, NULL, &good, &err), HM_OK);
                assert_true(good && mpfr_cmp_d(exact.hi, found.lo) >= 0 && mpfr_cmp_d(exact.lo, found.hi) <= 0);
                answered[1] += is_narrow(found);
            }
            hm_mpi_clear(&exact);
            hm_divergence_clear(&divergence);
        }
        hm_row_close(p);
        hm_row_close(q);
    }
    print_message("answered %zu and %zu of %zu\n", answered[0], answered[1], asked);
    assert_true(2 * answered[0] > asked && 2 * answered[1] > asked);
}

// ln sum p^a q^(1-a) at 1024 bits, all exponents shifted by the top's: written anew, from the definition.
static void reference(const float *l, const float *d, size_t n, mpq_srcptr order, bool reversed, mpfr_ptr out)
{
    enum { BITS = 1024 };
    const float *first = reversed ? d : l, *second = reversed ? l : d;
    mpfr_t sum[3], term, part;
    mpq_t rest;
    for (int i = 0; i < 3; i++) mpfr_init2(sum[i], BITS), mpfr_set_zero(sum[i], 1);
    mpfr_inits2(BITS, term, part, (mpfr_ptr)0);
    mpq_init(rest);
    mpq_set_ui(rest, 1, 1);
    mpq_sub(rest, rest, order);
    for (size_t i = 0; i < n; i++) {
        mpfr_set_flt(term, first[i], MPFR_RNDN);
        mpfr_exp(part, term, MPFR_RNDN);
        mpfr_add(sum[0], sum[0], part, MPFR_RNDN);
        mpfr_mul_q(term, term, order, MPFR_RNDN);
        mpfr_set_flt(part, second[i], MPFR_RNDN);
        mpfr_mul_q(part, part, rest, MPFR_RNDN);
        mpfr_add(term, term, part, MPFR_RNDN);
        mpfr_set_flt(part, second[i], MPFR_RNDN);
        mpfr_exp(part, part, MPFR_RNDN);
        mpfr_add(sum[1], sum[1], part, MPFR_RNDN);
        if (i == 0 || mpfr_greater_p(term, out)) mpfr_set(out, term, MPFR_RNDN); // the largest exponent
    }
    for (size_t i = 0; i < n; i++) {
        mpfr_set_flt(term, first[i], MPFR_RNDN);
        mpfr_mul_q(term, term, order, MPFR_RNDN);
        mpfr_set_flt(part, second[i], MPFR_RNDN);
        mpfr_mul_q(part, part, rest, MPFR_RNDN);
        mpfr_add(term, term, part, MPFR_RNDN);
        mpfr_sub(term, term, out, MPFR_RNDN);
        mpfr_exp(term, term, MPFR_RNDN);
        mpfr_add(sum[2], sum[2], term, MPFR_RNDN);
    }
    mpfr_log(term, sum[2], MPFR_RNDN);
    mpfr_add(out, out, term, MPFR_RNDN);
    mpfr_log(term, sum[0], MPFR_RNDN);
    mpfr_mul_q(term, term, order, MPFR_RNDN);
    mpfr_sub(out, out, term, MPFR_RNDN);
    mpfr_log(term, sum[1], MPFR_RNDN);
    mpfr_mul_q(term, term, rest, MPFR_RNDN);
    mpfr_sub(out, out, term, MPFR_RNDN);
    mpfr_div_q(out, out, rest, MPFR_RNDN);
    mpfr_neg(out, out, MPFR_RNDN);
    for (int i = 0; i < 3; i++) mpfr_clear(sum[i]);
    mpfr_clears(term, part, (mpfr_ptr)0);
    mpq_clear(rest);
}

// Orders with up to 40 digits: near 0, near 1 from both sides, huge, or any.
static void hard_order(struct random *r, char text[96])
{
    char above[48] = "1", under[48] = "1";
    size_t digits = 1 + below(r, 39), shape = below(r, 5);
    char *zeros = shape == 3 ? above : under;
    for (size_t i = 1; i <= digits; i++) zeros[i] = '0';
    zeros[digits + 1] = 0;
    if (shape == 1 || shape == 2) { // (10^n -+ 1)/10^n, or any in place of the 1
        memcpy(above, under, sizeof above);
        if (shape == 2) above[digits] = (char)('1' + below(r, 9));
        for (size_t i = 0; shape == 1 && i <= digits; i++) above[i] = '9';
        if (shape == 1) above[digits] = 0;
    }
    for (size_t i = 0; shape == 4 && i <= digits; i++) above[i] = (char)('1' + below(r, 9)), under[i] = (char)('1' + below(r, 9));
    snprintf(text, 96, "%s/%s", above, under);
}

static void hard_orders_are_enclosed(void **state)
{
    (void)state;
    struct random r = seeded("orders");
    for (size_t n = 0; n < rounds(400); n++) {
        float l[LARGEST], d[LARGEST];
        char text[128], order[96];
        size_t vocab = 2 + below(&r, LARGEST - 1), k = 1 + below(&r, vocab - 1), m = 1 + below(&r, vocab - k);
        double spread = n % 3 ? 2 : 30, noise = n % 2 ? 0.5 : 1e-4;
        for (size_t i = 0; i < vocab; i++) l[i] = (float)(spread * gauss(&r)), d[i] = l[i] + (float)(noise * gauss(&r));
        hard_order(&r, order);
        if (strcmp(order, "1/1") == 0) continue;
        snprintf(text, sizeof text, "%s:%s", n % 4 < 2 ? "renyi" : "renyi-reverse", order);
        struct hm_error err = {.message = ""};
        struct hm_divergence divergence;
        if (hm_divergence_parse(text, &divergence, &err)) continue; // equal to 1
        struct hm_row *p = open_row(l, vocab, "1"), *q = open_row(d, vocab, "1");
        struct hm_ival value, level;
        struct hm_mpi exact;
        mpfr_t truth;
        bool good;
        mpfr_init2(truth, 1024);
        hm_mpi_init(&exact, 1024);
        reference(l, d, vocab, divergence.order.value, divergence.kind == HM_DIVERGENCE_RENYI_REVERSE, truth);
        if (mpfr_sgn(truth) < 0) mpfr_set_zero(truth, 1);
        assert_int_equal(hm_divergence_between(&divergence, p, q, &value, &err), HM_OK);
        if (mpfr_cmp_d(truth, value.lo) < 0 || mpfr_cmp_d(truth, value.hi) > 0 || !is_narrow(value))
            fail_msg("%s: %.17g not in [%.17g, %.17g]", text, mpfr_get_d(truth, MPFR_RNDN), value.lo, value.hi);
        assert_int_equal(hm_divergence_level(&divergence, p, k, m, &level, &err), HM_OK);
        assert_int_equal(hm_divergence_level_at(&divergence, p, k, m, 1024, &exact, NULL, &good, &err), HM_OK);
        if (!good || mpfr_cmp_d(exact.hi, level.lo) < 0 || mpfr_cmp_d(exact.lo, level.hi) > 0 || !is_narrow(level))
            fail_msg("%s: level at k = %zu, m = %zu: %.17g not in [%.17g, %.17g]", text, k, m,
                     mpfr_get_d(exact.lo, MPFR_RNDN), level.lo, level.hi);
        mpfr_clear(truth);
        hm_mpi_clear(&exact);
        hm_divergence_clear(&divergence);
        hm_row_close(p);
        hm_row_close(q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_precisions_overlap),
        cmocka_unit_test(the_filter_agrees),
        cmocka_unit_test(hard_orders_are_enclosed),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
