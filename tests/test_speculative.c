// Decisions of stochastic acceptance: the exact threshold of every coin and every border of the residual draw, found by
// bisection over all 53-bit numbers, against the definition in 300 bits; ties; the filter against MPFR.
#include "tests/speculative_support.h"

static void check_borders(const struct question *x, struct truth *t, struct given *g)
{
    mpfr_t sum;
    mpfr_init2(sum, BITS);
    mpfr_set_zero(sum, 1);
    for (size_t i = 0; i < t->vocab; i++) {
        mpfr_add(sum, sum, t->now[i], MPFR_RNDN);
        uint64_t found = residual_border(x, g, (int32_t)i), expected = numbers_below(t, sum);
        if (found != expected)
            fail_msg("residual up to %zu of %zu: %llu instead of %llu", i, t->vocab, (unsigned long long)found, (unsigned long long)expected);
    }
    mpfr_clear(sum);
}

// Every coin in turn, then the residual draw if it can be reached.
static size_t check_thresholds(const struct question *x, struct truth *t)
{
    struct given g = {{0}, 0};
    size_t asked = 0;
    for (size_t j = 0; j < x->proposals.count; j++, asked++) {
        int32_t token = x->proposals.token[j];
        uint64_t found = coin_threshold(x, &g, j), expected = END;
        if (!x->proposals.sure || hm_row_rank(x->p, token) >= x->proposals.sure) expected = true_threshold(t, &x->proposals, token);
        if (found != expected)
            fail_msg("coin %zu of token %ld: %llu instead of %llu", j, (long)token, (unsigned long long)found, (unsigned long long)expected);
        if (found == END) return asked; // always accepted: nothing comes after it
        true_residual(t, &x->proposals, token);
        g.coin[j] = END - 1;
    }
    check_borders(x, t, &g);
    return asked + t->vocab;
}

static void every_threshold_is_exact(void **state)
{
    (void)state;
    struct random r = seeded("thresholds");
    size_t asked = 0;
    for (size_t n = 0; n < rounds(250); n++) {
        float l[MOST], d[MOST];
        int32_t tokens[MOST];
        struct truth t;
        size_t vocab = 2 + below(&r, MOST - 1);
        struct question x = {.proposals.kind = n % 2 ? HM_PROPOSAL_IID : HM_PROPOSAL_TOPK};
        random_rows(&r, l, d, vocab);
        choose_proposals(&r, d, vocab, &x.proposals, tokens);
        x.p = open_row(l, vocab, "1/2");
        x.q = open_row(d, vocab, "1/2");
        if (n % 5 == 0) hm_row_exact_only(x.p); // MPFR alone
        truth_init(&t, l, d, vocab, 0.5);
        asked += check_thresholds(&x, &t);
        truth_clear(&t);
        hm_row_close(x.p);
        hm_row_close(x.q);
    }
    print_message("%zu thresholds\n", asked);
}

// ---- ties and ends

static void symbolic_cases(void **state)
{
    (void)state;
    const float same[] = {1, 2.5f, 1, 2.5f}, shifted[] = {2, 3.5f, 2, 3.5f}, uniform[] = {3, 3, -INFINITY, 3};
    int32_t tokens[] = {1, 1, 1}, token;
    struct question x = {open_row(same, 4, "1/3"), open_row(shifted, 4, "1/3"), {HM_PROPOSAL_IID, tokens, 3, 0}};
    struct given g = {{END - 1, END - 1, END - 1}, 0};
    assert_int_equal(ask(&x, &g, &token), 0); // p = q: every draw is accepted, at u < 1 however near
    hm_row_close(x.p);
    hm_row_close(x.q);

    // three equal tokens as point masses: accepted below 1/3, then below 1/2, then always; the empty one never
    int32_t points[] = {3, 2, 0, 1};
    x = (struct question){open_row(uniform, 4, "1"), NULL, {HM_PROPOSAL_TOPK, points, 4, 0}};
    g = (struct given){{END / 3 + 1, 0, END / 2, END - 1}, 0};
    assert_int_equal(ask(&x, &g, &token), 3);
    assert_int_equal(token, 1);
    g.coin[2]--; // u < 1/2
    assert_int_equal(ask(&x, &g, &token), 2);
    g.coin[0]--;
    assert_int_equal(ask(&x, &g, &token), 0);
    x.proposals.count = 1; // the residual draw of u = 1/2 from tokens 0 and 1: the sum has to pass
    g = (struct given){{END - 1}, END / 2};
    assert_int_equal(ask(&x, &g, &token), -1);
    assert_int_equal(token, 1);
    g.residual--;
    ask(&x, &g, &token);
    assert_int_equal(token, 0);
    hm_row_close(x.p);

    // classes that are divided in one proportion: 1, 2.5, 1, 2.5 and u = 1/2 after an empty proposal
    const float classes[] = {1, 2.5f, 1, 2.5f, -INFINITY};
    x = (struct question){open_row(classes, 5, "1"), NULL, {HM_PROPOSAL_TOPK, (int32_t[]){4}, 1, 0}};
    g = (struct given){{0}, END / 2};
    assert_int_equal(ask(&x, &g, &token), -1);
    assert_int_equal(token, 2);
    hm_row_close(x.p);

    // far tokens: weights that no double has
    const float far[] = {-INFINITY, -3e30f, 0, -5000, -3e30f};
    x = (struct question){open_row(far, 5, "1"), NULL, {HM_PROPOSAL_TOPK, (int32_t[]){1, 3, 2}, 3, 0}};
    g = (struct given){{1, 1, END - 1}, 0};
    assert_int_equal(ask(&x, &g, &token), 2); // nearly all of the weight: accepted whatever the coin
    g.coin[1] = 0; // u = 0 accepts what has any weight
    assert_int_equal(ask(&x, &g, &token), 1);
    g.coin[0] = 0;
    assert_int_equal(ask(&x, &g, &token), 0);
    x.proposals.count = 2; // u = 0 draws the first token left that has any weight
    g = (struct given){{1, 1}, 0};
    assert_int_equal(ask(&x, &g, &token), -1);
    assert_int_equal(token, 2);
    hm_row_close(x.p);
}

// On long rows the filter answers, and says what MPFR says.
static void the_filter_agrees(void **state)
{
    (void)state;
    enum { WIDE = 1500 };
    struct random r = seeded("filter");
    static float l[WIDE], d[WIDE];
    uint64_t answered = 0, undecided = 0;
    for (size_t n = 0; n < rounds(40); n++) {
        int32_t tokens[PROPOSALS];
        size_t vocab = 300 + below(&r, WIDE - 300);
        for (size_t i = 0; i < vocab; i++) {
            l[i] = i && below(&r, 9) == 0 ? -INFINITY : (float)((n % 4 ? 2 : 30) * gauss(&r));
            d[i] = i && below(&r, 9) == 0 ? -INFINITY : (float)((l[i] == -INFINITY ? 0 : l[i]) + (n % 3 ? 1 : 0.01) * gauss(&r));
        }
        struct question x = {open_row(l, vocab, "1"), open_row(d, vocab, "1"), {n % 2 ? HM_PROPOSAL_IID : HM_PROPOSAL_TOPK, tokens, PROPOSALS, 0}}, slow = x;
        slow.p = open_row(l, vocab, "1");
        hm_row_exact_only(slow.p);
        for (size_t j = 0; j < PROPOSALS; j++) {
            tokens[j] = hm_row_token(x.q, j);
            if (n % 2) hm_row_draw(x.q, vocab, next_word(&r) >> 11, &tokens[j], NULL);
        }
        for (size_t i = 0; i < 8; i++) {
            struct given g;
            int32_t a, b;
            for (size_t j = 0; j < PROPOSALS; j++) g.coin[j] = END - 1 - (next_word(&r) >> (11 + below(&r, 20)));
            g.residual = next_word(&r) >> 11;
            assert_int_equal(ask(&x, &g, &a), ask(&slow, &g, &b));
            assert_int_equal(a, b);
        }
        answered += hm_row_questions(x.p).answered;
        undecided += hm_row_questions(x.p).undecided;
        hm_row_close(x.p);
        hm_row_close(x.q);
        hm_row_close(slow.p);
    }
    print_message("answered %llu, left to MPFR %llu\n", (unsigned long long)answered, (unsigned long long)undecided);
    assert_true(undecided * 50 < answered);
}

static void bad_questions(void **state)
{
    (void)state;
    const float l[] = {1, 2, 3}, d[] = {1, -INFINITY, 0};
    struct hm_row *p = open_row(l, 3, "1"), *q = open_row(d, 3, "1"), *other = open_row(l, 3, "2");
    struct hm_speculative_draws draws = {1, 0, 0};
    struct hm_error err;
    struct hm_ival ratio;
    int64_t accepted;
    int32_t token, one[] = {1}, out[] = {3};
    struct hm_proposals x = {HM_PROPOSAL_IID, one, 1, 0};
    assert_int_equal(hm_speculate(p, NULL, &x, &draws, &accepted, &token, &err), HM_USAGE);
    assert_string_equal(err.message, "iid proposals: expected the draft's row, found none");
    assert_int_equal(hm_speculate(p, other, &x, &draws, &accepted, &token, &err), HM_USAGE);
    assert_int_equal(hm_speculate(p, q, &x, &draws, &accepted, &token, &err), HM_RANGE);
    assert_string_equal(err.message, "proposal 0: token 1 has probability 0 under the draft");
    x = (struct hm_proposals){HM_PROPOSAL_TOPK, out, 1, 0};
    assert_int_equal(hm_speculate(p, NULL, &x, &draws, &accepted, &token, &err), HM_RANGE);
    assert_string_equal(err.message, "proposal 0: expected an id from 0 to 2, found 3");
    x.count = 0;
    assert_int_equal(hm_speculate(p, NULL, &x, &draws, &accepted, &token, &err), HM_USAGE);
    x = (struct hm_proposals){HM_PROPOSAL_TOPK, one, 1, 2}; // token 1 is in A: it alone is emitted
    assert_int_equal(hm_speculative_ratio(p, NULL, &x, 2, &ratio, &err), HM_RANGE);
    assert_string_equal(err.message, "ratio: expected a token that can be emitted, found 2 of probability 0");
    assert_int_equal(hm_speculative_ratio(p, NULL, &x, 5, &ratio, &err), HM_RANGE);
    hm_row_close(p);
    hm_row_close(q);
    hm_row_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_threshold_is_exact),
        cmocka_unit_test(symbolic_cases),
        cmocka_unit_test(the_filter_agrees),
        cmocka_unit_test(bad_questions),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
