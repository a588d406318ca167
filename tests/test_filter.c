// The filter against the truth: every sum within its proved error, and every decision the one MPFR makes, on rows and
// parameters built to sit on borders. docs/filter.md is the derivation, test_row_pass.c the test of single weights.
#include "certify/row_state.h"
#include "tests/certify_rows.h"
#include "tests/seed.h"

#include <fenv.h>
#include <string.h>

enum { SMALL = 40, WIDE = 2048 };

static const char *const temperatures[] = {"1", "1/2", "7/10", "2", "1/1000", "100"};
enum { TEMPERATURES = sizeof temperatures / sizeof *temperatures };

static struct hm_row *open_unfiltered(const float *l, size_t vocab, const char *temperature)
{
    struct hm_row *row = open_row(l, vocab, temperature);
    row->filter.state = HM_FILTER_OFF;
    return row;
}

static float to_bf16(float l)
{
    uint32_t bits;
    memcpy(&bits, &l, sizeof bits);
    bits &= UINT32_C(0xffff0000);
    memcpy(&l, &bits, sizeof bits);
    return l;
}

// Rows of the kinds that hurt: ties, neighbours one float apart, bf16, -inf, spreads of 1000 nats, flat, one peak.
static void random_row(struct random *r, float *l, size_t vocab)
{
    size_t kind = below(r, 8);
    double scale = kind == 5 ? 300 : kind == 6 ? 1e-4 : 3;
    for (size_t i = 0; i < vocab; i++) {
        l[i] = (float)(scale * gauss(r));
        if (kind == 1) l[i] = (float)below(r, 3);
        if (kind == 2 && i > 0) l[i] = nextafterf(l[below(r, i)], below(r, 2) ? INFINITY : -INFINITY);
        if (kind == 3) l[i] = to_bf16(l[i] + 20);
        if (kind == 4 && below(r, 2)) l[i] = -INFINITY;
    }
    if (kind == 7) l[below(r, vocab)] = 60;
    size_t kept = below(r, vocab);
    if (l[kept] == -INFINITY) l[kept] = 1;
}

static void assert_within(struct hm_ival v, const struct hm_mpi *truth, const char *what)
{
    if (mpfr_cmp_d(truth->lo, v.lo) < 0 || mpfr_cmp_d(truth->hi, v.hi) > 0)
        fail_msg("%s: [%.20g, %.20g] does not hold %.20g", what, v.lo, v.hi, mpfr_get_d(truth->lo, MPFR_RNDN));
}

// What a weight relative to the top is in the scale of the filter: exp(top/T) 2^-shift, at 400 bits.
static void filter_unit(const struct hm_row *row, struct hm_mpi *unit)
{
    mpq_t top;
    mpq_init(top);
    mpq_set_d(top, row->top);
    mpq_div(top, top, row->temperature.value);
    hm_mpi_init(unit, 400);
    hm_mpi_set_q(unit, top);
    hm_mpi_exp(unit, unit);
    long shift = (long)(row->filter.scale.shifted - 0x1.8p52);
    mpfr_mul_2si(unit->lo, unit->lo, -shift, MPFR_RNDD);
    mpfr_mul_2si(unit->hi, unit->hi, -shift, MPFR_RNDU);
    mpq_clear(top);
}

// An enclosure holds the truth, given in units of the top, and is as sharp as promised. The truth is itself an enclosure.
static void assert_encloses_scaled(struct hm_ival v, const struct hm_mpi *truth, const struct hm_mpi *unit, const char *what)
{
    struct hm_mpi scaled;
    hm_mpi_init(&scaled, 400);
    hm_mpi_mul(&scaled, truth, unit);
    assert_within(v, &scaled, what);
    if (!(v.hi - v.lo <= 0x1p-40 * v.hi + 0x1p-900)) fail_msg("%s: [%.20g, %.20g] is wide", what, v.lo, v.hi);
    hm_mpi_clear(&scaled);
}

// Whole sums, moments, weights, heads and tails at every kind of rank, sums of prefixes in id order.
static void sums_are_enclosed(void **state)
{
    (void)state;
    struct random r = seeded("sums");
    float *l = calloc(WIDE, sizeof *l);
    struct hm_error err;
    size_t count = test_count(10, 150, 5000);
    for (size_t n = 0; n < count; n++) {
        size_t vocab = n % 4 == 0 ? WIDE - below(&r, 300) : 2 + below(&r, 300);
        random_row(&r, l, vocab);
        struct hm_row *row = open_row(l, vocab, temperatures[below(&r, TEMPERATURES)]);
        assert_int_equal(hm_row_sums(row, 400, &err), HM_OK);
        assert_true(hm_filter_ready(row));
        struct hm_mpi unit, truth;
        struct hm_weight_sum sum;
        filter_unit(row, &unit);
        hm_mpi_init(&truth, 400);
        assert_encloses_scaled(row->filter.total, &row->total, &unit, "total");
        assert_encloses_scaled(row->filter.moment, &row->moment, &unit, "moment");
        for (size_t k = 0; k < 20; k++) {
            size_t rank = k < 3 ? k : below(&r, k < 10 && vocab > 70 ? 70 : vocab), token = below(&r, vocab);
            assert_int_equal(hm_row_tail(row, rank, 400, &truth, &err), HM_OK);
            assert_encloses_scaled(hm_filter_tail(row, rank), &truth, &unit, "tail");
            hm_weight(row->weights, token, &truth);
            assert_encloses_scaled(hm_filter_weight(row, token), &truth, &unit, "weight");
            hm_weight_sum_init(&sum, row->weights);
            for (size_t i = 0; i < rank; i++) hm_weight_sum_add(&sum, row->weights, (size_t)hm_row_token(row, i));
            hm_weight_sum_get(&sum, row->weights, &truth);
            assert_encloses_scaled(hm_filter_head(row, rank), &truth, &unit, "head");
            hm_weight_sum_clear(&sum);
        }
        hm_weight_sum_init(&sum, row->weights);
        double running = 0;
        for (size_t i = 0; i < vocab; i++) {
            running += row->filter.weights[i];
            hm_weight_sum_add(&sum, row->weights, i);
            if (i >= HM_FILTER_BLOCK || i % 7) continue;
            hm_weight_sum_get(&sum, row->weights, &truth);
            assert_encloses_scaled(hm_filter_enclose(running, i + 1), &truth, &unit, "prefix");
        }
        hm_weight_sum_clear(&sum);
        hm_mpi_clear(&truth);
        hm_mpi_clear(&unit);
        hm_row_close(row);
    }
    free(l);
}

static unsigned long answered, undecided;

static void tally(const struct hm_row *row)
{
    answered += row->filter.answered;
    undecided += row->filter.undecided;
}

// 53 bits that lie anywhere, or within 3 * 2^-53 of the cumulative share of a token among the first `support`.
static uint64_t draw_bits(struct random *r, struct hm_row *exact, size_t support)
{
    if (below(r, 2)) return next_word(r) >> 11 >> (below(r, 4) ? 0 : below(r, 50));
    double below_id = 0, all = 0;
    int32_t id = (int32_t)below(r, exact->vocab);
    double scale = mpq_get_d(exact->temperature.value);
    for (size_t k = 0; k < support; k++) {
        int32_t token = hm_row_token(exact, k);
        double w = exp(((double)exact->logits[token] - exact->top) / scale);
        all += w;
        if (token <= id) below_id += w;
    }
    int64_t bits = (int64_t)(below_id / all * 0x1p53) + (int64_t)below(r, 7) - 3;
    return bits < 0 ? 0 : bits >= INT64_C(1) << 53 ? (UINT64_C(1) << 53) - 1 : (uint64_t)bits;
}

static void draws_agree(void **state)
{
    (void)state;
    struct random r = seeded("draws");
    size_t count = test_count(100, 5000, 100000), asked = 0, beyond = 0;
    answered = undecided = 0;
    for (size_t n = 0; n < count; n++) {
        float l[SMALL];
        size_t vocab = 2 + below(&r, SMALL - 1);
        random_row(&r, l, vocab);
        const char *temperature = temperatures[below(&r, TEMPERATURES)];
        struct hm_row *row = open_row(l, vocab, temperature), *exact = open_unfiltered(l, vocab, temperature);
        for (size_t k = 0; k < 30; k++, asked++) {
            size_t support = below(&r, 2) ? vocab : 1 + below(&r, vocab);
            uint64_t bits = draw_bits(&r, exact, support);
            int32_t found = -1, expected = -2;
            struct hm_error err;
            // A share that differs from u by e^-7000 is out of reach of 4096 bits: an error from both.
            hm_status status = hm_row_draw(row, support, bits, &found, &err);
            assert_int_equal(hm_row_draw(exact, support, bits, &expected, &err), status);
            if (status) {
                assert_int_equal(status, HM_RANGE);
                beyond++;
                continue;
            }
            if (found != expected) fail_msg("draw %llx of %zu at T = %s: expected %d, found %d", (unsigned long long)bits,
                                            support, temperature, expected, found);
        }
        tally(row);
        assert_int_equal(exact->filter.answered, 0);
        hm_row_close(row);
        hm_row_close(exact);
    }
    print_message("draws: %zu, %lu answered, %lu left to MPFR, %zu beyond it\n", asked, answered, undecided, beyond);
    assert_true(answered > asked / 4 && undecided > 0 && beyond < asked / 1000 + 2);
}

// A parameter in (0, 1) from anywhere, or a few units in the last place from x.
static void near(struct random *r, double x, mpq_ptr out)
{
    if (below(r, 3) == 0 || !(x > 1e-300)) x = uniform(r) * (below(r, 2) ? 1 : 1e-6);
    else if (below(r, 2)) x *= 1 + ((double)below(r, 9) - 4) * 0x1p-52;
    else x = (double)(float)x; // the border itself where the row makes it rational
    mpq_set_d(out, x > 0x1p-900 && x < 1 ? x : 0.25);
}

// A rule whose border is near some token of the row.
static void random_rule(struct random *r, struct hm_row *exact, struct hm_rule *rule)
{
    static const enum hm_rule_kind kinds[] = {HM_RULE_ADDITIVE, HM_RULE_ENTROPY, HM_RULE_NUCLEUS, HM_RULE_TOPK_DELTA};
    struct hm_ival p, first, entropy;
    struct hm_error err;
    size_t rank = below(r, exact->vocab);
    rule->kind = kinds[below(r, 4)];
    rule->count = rule->kind == HM_RULE_TOPK_DELTA ? 1 + (uint32_t)below(r, exact->vocab) : 0;
    assert_int_equal(hm_row_probability(exact, hm_row_token(exact, rank), &p, &err), HM_OK);
    assert_int_equal(hm_row_probability(exact, hm_row_token(exact, 0), &first, &err), HM_OK);
    assert_int_equal(hm_row_entropy(exact, &entropy, &err), HM_OK);
    double border = first.lo - p.lo, mass = 0;
    for (size_t k = 0; k <= rank; k++) {
        struct hm_ival q;
        assert_int_equal(hm_row_probability(exact, hm_row_token(exact, k), &q, &err), HM_OK);
        mass += q.lo;
    }
    if (rule->kind == HM_RULE_ENTROPY) border = p.lo;
    if (rule->kind == HM_RULE_NUCLEUS) border = mass;
    near(r, border, rule->a.value);
    near(r, p.lo * exp(entropy.lo), rule->b.value);
}

static void memberships_agree(void **state)
{
    (void)state;
    struct random r = seeded("memberships");
    size_t count = test_count(50, 1500, 20000), asked = 0;
    struct hm_rule rule = parse_rule("additive:1/2");
    answered = undecided = 0;
    for (size_t n = 0; n < count; n++) {
        float l[SMALL];
        size_t vocab = 2 + below(&r, SMALL - 1);
        random_row(&r, l, vocab);
        const char *temperature = temperatures[below(&r, TEMPERATURES)];
        struct hm_row *row = open_row(l, vocab, temperature), *exact = open_unfiltered(l, vocab, temperature);
        for (size_t k = 0; k < 5; k++) {
            struct hm_error err = {.message = ""};
            enum hm_verdict found, expected;
            size_t size, size_exact;
            random_rule(&r, exact, &rule);
            if (hm_rule_count(&rule, row, &size, &found, &err)) fail_msg("%s", err.message);
            if (hm_rule_count(&rule, exact, &size_exact, &expected, &err)) fail_msg("%s", err.message);
            if (size != size_exact || found != expected) fail_msg("kind %d: k = %zu, found %zu", (int)rule.kind, size_exact, size);
            for (size_t i = 0; i < vocab; i++, asked++) {
                if (hm_rule_accepts(&rule, row, (int32_t)i, &found, &err)) fail_msg("%s", err.message);
                if (hm_rule_accepts(&rule, exact, (int32_t)i, &expected, &err)) fail_msg("%s", err.message);
                if (found != expected) fail_msg("kind %d at T = %s, token %zu: expected %d, found %d", (int)rule.kind,
                                                temperature, i, (int)expected, (int)found);
            }
        }
        tally(row);
        hm_row_close(row);
        hm_row_close(exact);
    }
    hm_rule_clear(&rule);
    print_message("memberships: %zu, %lu answered, %lu left to MPFR\n", asked, answered, undecided);
    assert_true(answered > asked / 4 && undecided > 0);
}

// Top-p after top-k: the same support with and without the filter, beyond the head as well.
static void supports_agree(void **state)
{
    (void)state;
    struct random r = seeded("supports");
    float l[400];
    struct hm_rational p;
    hm_rational_init(&p);
    size_t count = test_count(50, 3000, 50000);
    answered = undecided = 0;
    for (size_t n = 0; n < count; n++) {
        size_t vocab = 2 + below(&r, 399), top_k = below(&r, 2) ? 0 : 1 + below(&r, vocab), found, expected;
        random_row(&r, l, vocab);
        const char *temperature = temperatures[below(&r, TEMPERATURES)];
        struct hm_row *row = open_row(l, vocab, temperature), *exact = open_unfiltered(l, vocab, temperature);
        struct hm_error err = {.message = ""};
        near(&r, (double)(1 + below(&r, 8)) / 8, p.value); // shares that tied groups can hold exactly
        if (hm_row_support(row, top_k, &p, &found, &err)) fail_msg("%s", err.message);
        if (hm_row_support(exact, top_k, &p, &expected, &err)) fail_msg("%s", err.message);
        if (found != expected) fail_msg("top-p %g of %zu: expected %zu, found %zu", mpq_get_d(p.value), top_k, expected, found);
        tally(row);
        hm_row_close(row);
        hm_row_close(exact);
    }
    hm_rational_clear(&p);
    print_message("supports: %zu, %lu answered, %lu left to MPFR\n", count, answered, undecided);
}

// What the filter is for: on random rows it nearly always answers.
static void random_rows_are_answered(void **state)
{
    (void)state;
    struct random r = seeded("rate");
    float *l = calloc(WIDE, sizeof *l);
    struct hm_rule rules[] = {parse_rule("additive:0.1"), parse_rule("entropy:0.09,0.3"), parse_rule("nucleus:0.9"),
                              parse_rule("topk-delta:10,0.6")};
    size_t rows = test_count(20, 100, 5000);
    answered = undecided = 0;
    for (size_t n = 0; n < rows; n++) {
        for (size_t i = 0; i < WIDE; i++) l[i] = n % 2 ? (float)(3 * gauss(&r)) : to_bf16((float)(3 * gauss(&r)));
        struct hm_row *row = open_row(l, WIDE, temperatures[n % TEMPERATURES]);
        struct hm_error err;
        for (size_t k = 0; k < 1000; k++) {
            int32_t token;
            enum hm_verdict verdict;
            size_t support = k % 3 == 0 ? WIDE : k % 3 == 1 ? 50 : 300;
            assert_int_equal(hm_row_draw(row, support, next_word(&r) >> 11, &token, &err), HM_OK);
            int32_t near_top = hm_row_token(row, below(&r, 100));
            assert_int_equal(hm_rule_accepts(&rules[k % 4], row, near_top, &verdict, &err), HM_OK);
        }
        tally(row);
        hm_row_close(row);
    }
    double rate = (double)undecided / (double)(answered + undecided);
    print_message("random rows of %d: %lu answered, %lu left to MPFR\n", WIDE, answered, undecided);
    assert_true(rate < 1e-4 && answered > 1000 * rows);
    for (size_t i = 0; i < 4; i++) hm_rule_clear(&rules[i]);
    free(l);
}

// No width of enclosure decides these: the filter must say so, and the answer is the exact one.
static void ties_are_left_to_the_exact_path(void **state)
{
    (void)state;
    float halves[] = {1, 2.5f, 1, 2.5f};
    struct hm_row *row = open_row(halves, 4, "1");
    struct hm_error err;
    int32_t token;
    assert_int_equal(hm_row_draw(row, 4, UINT64_C(1) << 52, &token, &err), HM_OK);
    assert_int_equal(token, 2);
    assert_int_equal(row->filter.undecided, 1);
    assert_int_equal(hm_row_draw(row, 4, (UINT64_C(1) << 52) - 1, &token, &err), HM_OK);
    assert_int_equal(token, 1);
    assert_int_equal(hm_row_draw(row, 4, (UINT64_C(1) << 52) + (UINT64_C(1) << 20), &token, &err), HM_OK);
    assert_int_equal(token, 2);
    assert_int_equal(row->filter.undecided, 2);
    assert_int_equal(row->filter.answered, 1);
    hm_row_close(row);
}

static void a_temperature_beyond_double_turns_it_off(void **state)
{
    (void)state;
    static const char *const extreme[] = {"0x1p600", "0x1p-600", "0x1p2000", "0x1p-2000"};
    float l[] = {1, 2, 3, 2};
    for (size_t i = 0; i < 4; i++) {
        struct hm_row *row = open_row(l, 4, extreme[i]);
        struct hm_error err;
        int32_t token;
        assert_int_equal(hm_row_draw(row, 4, (UINT64_C(1) << 53) - 1, &token, &err), HM_OK);
        assert_int_equal(token, i % 2 ? 2 : 3); // a huge T is a uniform law, a tiny one the argmax
        assert_int_equal(row->filter.state, HM_FILTER_OFF);
        hm_row_close(row);
    }
}

// A thread whose rounding mode somebody has changed gets MPFR's answers, the same to the last bit.
static void another_rounding_mode_turns_it_off(void **state)
{
    (void)state;
    float l[] = {1, 2.5f, 3, 2, -4};
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    struct hm_row *exact = open_unfiltered(l, 5, "7/10");
    struct hm_ival expected, found;
    struct hm_error err;
    assert_int_equal(hm_row_entropy(exact, &expected, &err), HM_OK);
    for (size_t i = 0; i < 3; i++) {
        struct hm_row *row = open_row(l, 5, "7/10");
        fesetround(modes[i]);
        hm_status status = hm_row_entropy(row, &found, &err);
        fesetround(FE_TONEAREST);
        assert_int_equal(status, HM_OK);
        assert_int_equal(row->filter.state, HM_FILTER_OFF);
        assert_true(found.lo == expected.lo && found.hi == expected.hi);
        hm_row_close(row);
    }
    hm_row_close(exact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_enclosed),
        cmocka_unit_test(draws_agree),
        cmocka_unit_test(memberships_agree),
        cmocka_unit_test(supports_agree),
        cmocka_unit_test(random_rows_are_answered),
        cmocka_unit_test(ties_are_left_to_the_exact_path),
        cmocka_unit_test(a_temperature_beyond_double_turns_it_off),
        cmocka_unit_test(another_rounding_mode_turns_it_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
