// Probabilities of draws: enclosures against plain MPFR at 300 bits, with and without the filter.
#include "certify/sampling.h"
#include "certify/row_state.h"
#include "tests/certify_rows.h"

#include <mpfr.h>
#include <string.h>

enum { BITS = 300, VOCAB = 700 };

// The weight of one token, exp(l/T), or its sum over the first `support` tokens of the order without one of them.
static void add_weight(mpfr_t sum, struct hm_row *row, int32_t token)
{
    mpfr_t w;
    mpfr_init2(w, BITS);
    mpfr_set_flt(w, row->logits[token], MPFR_RNDN);
    mpfr_div_q(w, w, row->temperature.value, MPFR_RNDN);
    mpfr_exp(w, w, MPFR_RNDN);
    mpfr_add(sum, sum, w, MPFR_RNDN);
    mpfr_clear(w);
}

// A value with 300 bits must lie inside; its own error is far below the widths that are allowed.
static void check(const char *what, struct hm_ival v, mpfr_srcptr part, mpfr_srcptr whole)
{
    mpfr_t x;
    mpfr_init2(x, BITS);
    mpfr_div(x, part, whole, MPFR_RNDN);
    if (mpfr_cmp_d(x, v.lo) < 0 || mpfr_cmp_d(x, v.hi) > 0) fail_msg("%s: %.17g not in [%a, %a]", what, mpfr_get_d(x, MPFR_RNDN), v.lo, v.hi);
    if (v.hi - v.lo > 0x1p-34 * v.hi && v.hi - v.lo > 0x1p-62) fail_msg("%s: [%a, %a] is wide", what, v.lo, v.hi);
    assert_true(v.lo >= 0 && v.hi <= 1 + 0x1p-52);
    mpfr_clear(x);
}

static void check_row(struct random *r, const float *logits, size_t vocab, const char *temperature, bool filtered)
{
    struct hm_row *row = open_row(logits, vocab, temperature);
    if (!filtered) row->filter.state = HM_FILTER_OFF;
    size_t support = below(r, 2) ? vocab : 1 + below(r, vocab);
    int32_t tokens[4] = {hm_row_token(row, 0), hm_row_token(row, support - 1), (int32_t)below(r, vocab), (int32_t)below(r, vocab)};
    struct hm_ival p[4], rest;
    mpfr_t whole, part;
    mpfr_inits2(BITS, whole, part, (mpfr_ptr)0);
    mpfr_set_zero(whole, 1);
    for (size_t rank = 0; rank < support; rank++) add_weight(whole, row, hm_row_token(row, rank));
    assert_int_equal(hm_sampling_probability(row, support, tokens, 4, p, NULL), HM_OK);
    for (int i = 0; i < 4; i++) {
        bool in = hm_row_rank(row, tokens[i]) < support;
        mpfr_set_zero(part, 1);
        if (in) add_weight(part, row, tokens[i]);
        check("p", p[i], part, whole);
        if (!in) assert_true(p[i].hi == 0);
        mpfr_set_zero(part, 1);
        for (size_t rank = 0; rank < support; rank++)
            if (hm_row_token(row, rank) != tokens[i]) add_weight(part, row, hm_row_token(row, rank));
        assert_int_equal(hm_sampling_complement(row, support, tokens[i], &rest, NULL), HM_OK);
        check("1 - p", rest, part, whole);
    }
    mpfr_clears(whole, part, (mpfr_ptr)0);
    hm_row_close(row);
}

static void enclosures_hold_and_are_narrow(void **state)
{
    (void)state;
    static const char *const temperatures[] = {"1", "7/10", "1/100", "2", "1/100000"};
    struct random r = seeded("enclosures_hold_and_are_narrow");
    for (size_t n = 0; n < rounds(60); n++) {
        float logits[VOCAB];
        size_t vocab = 2 + below(&r, n % 4 ? 40 : VOCAB - 2);
        double scale = n % 3 == 0 ? 1 : n % 3 == 1 ? 8 : 60;
        for (size_t i = 0; i < vocab; i++) {
            logits[i] = (float)(scale * gauss(&r));
            if (n % 5 == 0) logits[i] = roundf(logits[i]);
            if (i && below(&r, 10) == 0) logits[i] = -INFINITY;
        }
        check_row(&r, logits, vocab, temperatures[n % 5], n % 2);
    }
}

static void certain_draws_are_exact(void **state)
{
    (void)state;
    const float logits[] = {1, 3, -INFINITY, 2};
    struct hm_row *row = open_row(logits, 4, "1");
    struct hm_ival p[3], rest;
    assert_int_equal(hm_sampling_probability(row, 1, (int32_t[]){1, 3, 2}, 3, p, NULL), HM_OK);
    assert_true(p[0].lo == 1 && p[0].hi == 1 && p[1].hi == 0 && p[2].hi == 0);
    assert_int_equal(hm_sampling_complement(row, 1, 1, &rest, NULL), HM_OK);
    assert_true(rest.lo == 0 && rest.hi == 0);
    assert_int_equal(hm_sampling_complement(row, 2, 0, &rest, NULL), HM_OK); // not in the support
    assert_true(rest.lo == 1 && rest.hi == 1);
    hm_row_close(row);
    const float alone[] = {-INFINITY, 0};
    row = open_row(alone, 2, "1");
    assert_int_equal(hm_sampling_complement(row, 2, 1, &rest, NULL), HM_OK);
    assert_true(rest.lo == 0 && rest.hi == 0);
    hm_row_close(row);
}

static void wrong_questions_are_refused(void **state)
{
    (void)state;
    const float logits[] = {1, 3, 2};
    struct hm_row *row = open_row(logits, 3, "1");
    struct hm_ival p;
    struct hm_error err;
    assert_int_equal(hm_sampling_probability(row, 0, (int32_t[]){1}, 1, &p, &err), HM_RANGE);
    assert_string_equal(err.message, "support: expected 1 to 3, found 0");
    assert_int_equal(hm_sampling_complement(row, 4, 1, &p, &err), HM_RANGE);
    assert_int_equal(hm_sampling_probability(row, 3, (int32_t[]){3}, 1, &p, &err), HM_RANGE);
    assert_string_equal(err.message, "token: expected an id from 0 to 2, found 3");
    assert_int_equal(hm_sampling_complement(row, 3, -1, &p, &err), HM_RANGE);
    hm_row_close(row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(enclosures_hold_and_are_narrow),
        cmocka_unit_test(certain_draws_are_exact),
        cmocka_unit_test(wrong_questions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
