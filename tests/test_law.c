// Output laws of stochastic acceptance: against enumeration of every draw and coin on small alphabets, in 256 bits.
#include "certify/law_filter.h"
#include "certify/row_pair.h"
#include "tests/certify_rows.h"

#include <mpfr.h>

enum { LARGEST = 40, BITS = 256 };

// The definition (theory.md §5), unrounded but for 256 bits: p and q, what has been emitted, what was accepted.
struct trial {
    size_t vocab, m;
    bool kept[LARGEST]; // in A
    mpfr_t p[LARGEST], q[LARGEST], emitted[LARGEST], accepted;
};

static void fill(mpfr_t *out, const float *logits, size_t vocab, double temperature)
{
    mpfr_t sum;
    mpfr_init2(sum, BITS);
    mpfr_set_zero(sum, 1);
    for (size_t i = 0; i < vocab; i++) {
        mpfr_init2(out[i], BITS);
        mpfr_set_flt(out[i], logits[i], MPFR_RNDN);
        mpfr_div_d(out[i], out[i], temperature, MPFR_RNDN);
        mpfr_exp(out[i], out[i], MPFR_RNDN);
        mpfr_add(sum, sum, out[i], MPFR_RNDN);
    }
    for (size_t i = 0; i < vocab; i++) mpfr_div(out[i], out[i], sum, MPFR_RNDN);
    mpfr_clear(sum);
}

static void trial_init(struct trial *t, const float *l, const float *d, size_t vocab, double temperature)
{
    *t = (struct trial){.vocab = vocab};
    fill(t->p, l, vocab, temperature);
    fill(t->q, d, vocab, temperature);
    for (size_t i = 0; i < vocab; i++) mpfr_init2(t->emitted[i], BITS);
    for (size_t i = 0; i < vocab; i++) mpfr_set_zero(t->emitted[i], 1);
    mpfr_init2(t->accepted, BITS);
    mpfr_set_zero(t->accepted, 1);
}

static void trial_clear(struct trial *t)
{
    for (size_t i = 0; i < t->vocab; i++) mpfr_clears(t->p[i], t->q[i], t->emitted[i], (mpfr_ptr)0);
    mpfr_clear(t->accepted);
}

// (from - proposal)^+, normalised; false when nothing is left.
static bool residual(const struct trial *t, mpfr_t *from, mpfr_t *proposal, mpfr_t *to)
{
    mpfr_t sum;
    mpfr_init2(sum, BITS);
    mpfr_set_zero(sum, 1);
    for (size_t i = 0; i < t->vocab; i++) {
        mpfr_init2(to[i], BITS);
        mpfr_sub(to[i], from[i], proposal[i], MPFR_RNDN);
        if (mpfr_sgn(to[i]) < 0) mpfr_set_zero(to[i], 1);
        mpfr_add(sum, sum, to[i], MPFR_RNDN);
    }
    bool left = mpfr_cmp_d(sum, 0x1p-200) > 0; // below it is the rounding of an exact match
    for (size_t i = 0; i < t->vocab && left; i++) mpfr_div(to[i], to[i], sum, MPFR_RNDN);
    mpfr_clear(sum);
    return left;
}

// All that can happen from proposal number j on, reached with probability `reach`: every token drawn, both coins.
// A child (>= 0) stands for a point mass there.
static void enumerate(struct trial *t, mpfr_t *current, const int32_t *children, size_t j, mpfr_srcptr reach)
{
    mpfr_t point[LARGEST], next[LARGEST], chance, turn;
    mpfr_t *proposal = children ? point : t->q;
    mpfr_inits2(BITS, chance, turn, (mpfr_ptr)0);
    for (size_t i = 0; i < t->vocab; i++) {
        mpfr_init2(point[i], BITS);
        mpfr_set_ui(point[i], children && j < t->m && children[j] == (int32_t)i, MPFR_RNDN);
        if (j < t->m) continue;
        mpfr_mul(turn, reach, current[i], MPFR_RNDN); // the bonus token
        mpfr_add(t->emitted[i], t->emitted[i], turn, MPFR_RNDN);
    }
    bool left = j < t->m && residual(t, current, proposal, next);
    for (size_t x = 0; x < t->vocab && j < t->m; x++) {
        if (mpfr_zero_p(proposal[x])) continue;
        mpfr_div(chance, current[x], proposal[x], MPFR_RNDN);
        if (t->kept[x] || mpfr_cmp_ui(chance, 1) > 0) mpfr_set_ui(chance, 1, MPFR_RNDN);
        mpfr_mul(turn, reach, proposal[x], MPFR_RNDN);
        mpfr_mul(turn, turn, chance, MPFR_RNDN);
        mpfr_add(t->emitted[x], t->emitted[x], turn, MPFR_RNDN);
        mpfr_add(t->accepted, t->accepted, turn, MPFR_RNDN);
        mpfr_ui_sub(chance, 1, chance, MPFR_RNDN);
        mpfr_mul(turn, reach, proposal[x], MPFR_RNDN);
        mpfr_mul(turn, turn, chance, MPFR_RNDN);
        if (left && mpfr_cmp_d(turn, 0x1p-200) > 0) enumerate(t, next, children, j + 1, turn);
    }
    for (size_t i = 0; i < t->vocab; i++) mpfr_clear(point[i]);
    for (size_t i = 0; i < t->vocab && j < t->m; i++) mpfr_clear(next[i]);
    mpfr_clears(chance, turn, (mpfr_ptr)0);
}

// The same for iid proposals without branching: all rejections at one stage lead to one residual.
static void chain(struct trial *t, mpfr_ptr reach)
{
    mpfr_t now[LARGEST], next[LARGEST], part, rejected;
    mpfr_inits2(BITS, part, rejected, (mpfr_ptr)0);
    for (size_t i = 0; i < t->vocab; i++) {
        mpfr_init2(now[i], BITS);
        mpfr_set(now[i], t->p[i], MPFR_RNDN);
    }
    bool left = true;
    for (size_t j = 0; j < t->m && left; j++) {
        left = residual(t, now, t->q, next);
        mpfr_set_zero(rejected, 1);
        for (size_t i = 0; i < t->vocab; i++) {
            bool sure = t->kept[i] || mpfr_lessequal_p(t->q[i], now[i]);
            mpfr_mul(part, reach, sure ? t->q[i] : now[i], MPFR_RNDN);
            mpfr_add(t->emitted[i], t->emitted[i], part, MPFR_RNDN);
            mpfr_add(t->accepted, t->accepted, part, MPFR_RNDN);
            if (sure) continue;
            mpfr_sub(part, t->q[i], now[i], MPFR_RNDN);
            mpfr_add(rejected, rejected, part, MPFR_RNDN);
        }
        mpfr_mul(reach, reach, rejected, MPFR_RNDN);
        for (size_t i = 0; i < t->vocab; i++) mpfr_swap(now[i], next[i]);
        for (size_t i = 0; i < t->vocab; i++) mpfr_clear(next[i]);
    }
    for (size_t i = 0; i < t->vocab && left; i++) {
        mpfr_mul(part, reach, now[i], MPFR_RNDN);
        mpfr_add(t->emitted[i], t->emitted[i], part, MPFR_RNDN);
    }
    for (size_t i = 0; i < t->vocab; i++) mpfr_clear(now[i]);
    mpfr_clears(part, rejected, (mpfr_ptr)0);
}

static void assert_holds(const char *what, struct hm_ival v, mpfr_ptr x)
{
    mpfr_t near;
    mpfr_init2(near, BITS);
    mpfr_add_d(near, x, 0x1p-160, MPFR_RNDN);
    int good = mpfr_cmp_d(near, v.lo) >= 0;
    mpfr_sub_d(near, x, 0x1p-160, MPFR_RNDN);
    good = good && mpfr_cmp_d(near, v.hi) <= 0 && is_narrow(v);
    mpfr_clear(near);
    if (!good) fail_msg("%s: %.17g not in [%.17g, %.17g]", what, mpfr_get_d(x, MPFR_RNDN), v.lo, v.hi);
}

static void compare(struct trial *t, const struct hm_law *law)
{
    mpfr_t e, part;
    mpfr_inits2(BITS, e, part, (mpfr_ptr)0);
    mpfr_set_zero(e, 1);
    for (size_t i = 0; i < t->vocab; i++) {
        mpfr_sub(part, t->emitted[i], t->p[i], MPFR_RNDN);
        mpfr_abs(part, part, MPFR_RNDN);
        mpfr_add(e, e, part, MPFR_RNDN);
    }
    mpfr_div_ui(e, e, 2, MPFR_RNDN);
    assert_holds("e", law->e, e);
    assert_holds("accept", law->accept, t->accepted);
    mpfr_clears(e, part, (mpfr_ptr)0);
}

static void random_rows(struct random *r, float *l, float *d, size_t vocab)
{
    size_t kind = below(r, 4);
    for (size_t i = 0; i < vocab; i++) {
        l[i] = kind == 3 ? 0 : below(r, 4) ? (float)(2 * gauss(r)) : (float)below(r, 3);
        d[i] = kind == 0 ? (float)(2 * gauss(r)) : kind == 1 ? l[i] + (float)(0.3 * gauss(r)) : (float)below(r, 3);
        if (kind == 3) d[i] = 0;
        if (kind >= 2 && below(r, 3) == 0) l[i] = -INFINITY;
        if (kind >= 2 && below(r, 3) == 0) d[i] = -INFINITY;
    }
    if (l[0] == -INFINITY) l[0] = 0.5f * (kind != 3);
    if (d[vocab - 1] == -INFINITY) d[vocab - 1] = 0;
}

static struct hm_law make(struct hm_row *p, struct hm_row *q, enum hm_proposal proposal, const int32_t *children, size_t m, size_t k)
{
    struct hm_law law;
    struct hm_error err = {.message = ""};
    if (hm_law_make(p, q, proposal, children, m, k, &law, &err)) fail_msg("%s", err.message);
    assert_true(law.accept.lo >= 0 && law.accept.hi <= 1 && law.e.lo >= 0 && law.e.hi <= 1);
    return law;
}

static void keep_first(struct trial *t, struct hm_row *p, size_t k, size_t m)
{
    t->m = m;
    for (size_t i = 0; i < k; i++) t->kept[hm_row_token(p, i)] = true;
}

static void every_draw_and_coin(void **state)
{
    (void)state;
    struct random r = seeded("enumeration");
    size_t most_kept = 0;
    for (size_t n = 0; n < rounds(400); n++) {
        float l[5], d[5];
        size_t vocab = 2 + below(&r, 4), m = 1 + below(&r, 3), k = below(&r, vocab + 1);
        random_rows(&r, l, d, vocab);
        for (int points = 0; points < 2; points++) {
            struct hm_row *p = open_row(l, vocab, "1/2"), *q = open_row(d, vocab, "1/2");
            struct trial t;
            int32_t children[5];
            mpfr_t one;
            size_t tried = points && m > vocab ? vocab : m;
            if (n % 2) p->filter.state = HM_FILTER_OFF; // MPFR alone
            trial_init(&t, l, d, vocab, 0.5);
            keep_first(&t, p, k, tried);
            for (size_t i = 0; i < vocab; i++) children[i] = hm_row_token(q, i);
            if (below(&r, 2))
                for (size_t i = 0; i < vocab; i++) { // any order, any tokens
                    size_t j = i + below(&r, vocab - i);
                    int32_t swap = children[i];
                    children[i] = children[j];
                    children[j] = swap;
                }
            mpfr_init_set_ui(one, 1, MPFR_RNDN);
            enumerate(&t, t.p, points ? children : NULL, 0, one);
            struct hm_law law = make(p, q, points ? HM_PROPOSAL_TOPK : HM_PROPOSAL_IID, children, tried, k);
            compare(&t, &law);
            if (k == 0) assert_true(law.e.lo == 0 && law.e.hi == 0); // standard speculative sampling is lossless
            most_kept += law.e.lo > 0;
            mpfr_clear(one);
            trial_clear(&t);
            hm_row_close(p);
            hm_row_close(q);
        }
    }
    assert_true(most_kept > 50);
}

static void long_ladders(void **state)
{
    (void)state;
    struct random r = seeded("ladders");
    static const size_t lengths[] = {1, 2, 4, 9, 60, 300};
    for (size_t n = 0; n < rounds(40); n++) {
        float l[LARGEST], d[LARGEST];
        size_t vocab = 2 + below(&r, LARGEST - 1), k = below(&r, 3) ? below(&r, vocab + 1) : 0;
        random_rows(&r, l, d, vocab);
        for (size_t i = 0; i < 6; i++) {
            struct hm_row *p = open_row(l, vocab, "2"), *q = open_row(d, vocab, "2");
            struct trial t;
            mpfr_t one;
            mpfr_init2(one, BITS);
            mpfr_set_ui(one, 1, MPFR_RNDN);
            if (n % 2) p->filter.state = HM_FILTER_OFF;
            trial_init(&t, l, d, vocab, 2);
            keep_first(&t, p, k, lengths[i]);
            chain(&t, one);
            struct hm_law law = make(p, q, HM_PROPOSAL_IID, NULL, lengths[i], k);
            compare(&t, &law);
            mpfr_clear(one);
            trial_clear(&t);
            hm_row_close(p);
            hm_row_close(q);
        }
    }
}

// The filter answers where nothing is tiny, and then says what MPFR says.
static void the_filter_agrees(void **state)
{
    (void)state;
    struct random r = seeded("filter");
    size_t answered = 0, sharp = 0, asked = 0;
    for (size_t n = 0; n < rounds(60); n++) {
        enum { WIDE = 900 };
        float l[WIDE], d[WIDE];
        size_t vocab = n % 3 ? 3 + below(&r, 30) : 500 + below(&r, 400), m = 2 + below(&r, 8), k = below(&r, vocab / 2 + 1);
        for (size_t i = 0; i < vocab; i++) {
            l[i] = i && below(&r, 9) == 0 ? -INFINITY : (float)((n % 4 ? 2 : 30) * gauss(&r));
            d[i] = i && below(&r, 9) == 0 ? -INFINITY : (float)((l[i] == -INFINITY ? 0 : l[i]) + gauss(&r));
        }
        struct hm_row *p = open_row(l, vocab, "1"), *q = open_row(d, vocab, "1");
        struct hm_law law, exact;
        struct hm_law points = make(p, q, HM_PROPOSAL_TOPK, NULL, m, k), exact_points;
        sharp += p->filter.answered == 1 && p->filter.undecided == 0; // one question, counted
        bool found = hm_filter_law(p, q, m, k, &law);
        p->filter.state = HM_FILTER_OFF;
        exact_points = make(p, q, HM_PROPOSAL_TOPK, NULL, m, k);
        assert_true(points.e.lo <= exact_points.e.hi && exact_points.e.lo <= points.e.hi);
        assert_true(points.accept.lo <= exact_points.accept.hi && exact_points.accept.lo <= points.accept.hi);
        exact = make(p, q, HM_PROPOSAL_IID, NULL, m, k);
        asked++;
        if (found) {
            answered++;
            assert_true(law.e.lo <= exact.e.hi && exact.e.lo <= law.e.hi);
            assert_true(law.accept.lo <= exact.accept.hi && exact.accept.lo <= law.accept.hi);
        }
        hm_row_close(p);
        hm_row_close(q);
    }
    print_message("answered %zu of %zu, point masses %zu\n", answered, asked, sharp);
    assert_true(2 * answered > asked && 10 * sharp > 9 * asked);
}

// Rows that are nearly one, as drafts of a certain text are: all distances are tiny, and doubles still know them.
static void near_rows_are_answered_in_doubles(void **state)
{
    (void)state;
    struct random r = seeded("near rows");
    size_t answered = 0, asked = rounds(40);
    for (size_t n = 0; n < asked; n++) {
        enum { WIDE = 600 };
        float l[WIDE], d[WIDE];
        size_t vocab = 100 + below(&r, WIDE - 100), m = 2 + below(&r, 5), k = 1 + below(&r, n % 2 ? 3 : vocab);
        double apart = pow(10, -1 - (double)below(&r, 6));
        for (size_t i = 0; i < vocab; i++) {
            l[i] = (float)(4 * gauss(&r)) + (n % 4 < 2 && i == 7 ? 30 : 0); // a token with nearly all of the weight
            d[i] = l[i] + (float)(apart * gauss(&r));
        }
        struct hm_row *p = open_row(l, vocab, "1"), *q = open_row(d, vocab, "1");
        struct hm_law law, exact;
        assert_int_equal(hm_exact_law(p, q, m, k, &exact, NULL), HM_OK);
        answered += hm_filter_law(p, q, m, k, &law);
        assert_true(law.e.lo <= exact.e.hi && exact.e.lo <= law.e.hi);
        assert_true(law.accept.lo <= exact.accept.hi && exact.accept.lo <= law.accept.hi);
        hm_row_close(p);
        hm_row_close(q);
    }
    print_message("answered %zu of %zu\n", answered, asked);
    assert_true(10 * answered >= 9 * asked);
}

static void one_proposal_is_nucleus_speculation(void **state)
{
    (void)state;
    struct random r = seeded("one proposal");
    for (size_t n = 0; n < rounds(100); n++) {
        float l[LARGEST], d[LARGEST];
        size_t vocab = 2 + below(&r, LARGEST - 1), k = below(&r, vocab + 1);
        random_rows(&r, l, d, vocab);
        struct hm_row *p = open_row(l, vocab, "1"), *q = open_row(d, vocab, "1");
        struct hm_law law = make(p, q, HM_PROPOSAL_IID, NULL, 1, k);
        struct hm_ival excess;
        struct hm_row_distance distance;
        struct hm_error err;
        assert_int_equal(hm_row_excess(p, q, k, &excess, &err), HM_OK);
        assert_int_equal(hm_row_distance(p, q, &distance, &err), HM_OK);
        assert_true(law.e.lo <= excess.hi && excess.lo <= law.e.hi);
        if (k == 0) assert_true(law.accept.lo <= distance.standard_accept.hi && distance.standard_accept.lo <= law.accept.hi);
        // what is gained over standard acceptance is what is lost of the law
        assert_true(law.accept.lo - distance.standard_accept.hi <= excess.hi + 1e-15);
        assert_true(law.accept.hi - distance.standard_accept.lo >= excess.lo - 1e-15);
        hm_row_close(p);
        hm_row_close(q);
    }
}

static void trivial_laws_are_exact(void **state)
{
    (void)state;
    float l[] = {1, 2, 3, -INFINITY}, shifted[] = {2, 3, 4, -INFINITY}, apart[] = {-INFINITY, -INFINITY, -INFINITY, 0};
    struct hm_row *p = open_row(l, 4, "1"), *q = open_row(shifted, 4, "1"), *o = open_row(apart, 4, "1");
    struct hm_law law = make(p, q, HM_PROPOSAL_IID, NULL, 3, 2);
    assert_true(law.accept.lo == 1 && law.e.hi == 0);
    law = make(p, q, HM_PROPOSAL_TOPK, NULL, 1, 1); // the first is in A: 1 - p_x
    assert_true(law.accept.lo == 1);
    assert_true(is_narrow(law.e) && fabs(law.e.lo - (1 - 1 / (1 + exp(-1) + exp(-2)))) < 1e-12);
    law = make(p, q, HM_PROPOSAL_TOPK, NULL, 9, 0); // all of the support, and more children than tokens
    assert_true(law.accept.lo == 1 && law.e.hi == 0);
    law = make(p, o, HM_PROPOSAL_IID, NULL, 1000000, 3); // never accepted, and no hang
    assert_true(law.accept.hi < 1e-20 && law.e.hi == 0);
    law = make(p, o, HM_PROPOSAL_IID, NULL, 1000000, 4); // an empty token in A, always accepted
    assert_true(law.accept.lo == 1 && law.e.lo == 1);
    hm_row_close(p);
    hm_row_close(q);
    hm_row_close(o);
}

static void bad_questions(void **state)
{
    (void)state;
    struct hm_row *p = open_row((float[]){1, 2, 3}, 3, "1"), *q = open_row((float[]){1, 2}, 2, "1"), *h = open_row((float[]){1, 2, 3}, 3, "2");
    struct hm_law law;
    struct hm_error err;
    int32_t child = 3;
    assert_int_equal(hm_law_make(p, p, HM_PROPOSAL_IID, NULL, 0, 1, &law, &err), HM_USAGE);
    assert_string_equal(err.message, "law: expected m from 1 to 1000000, found 0");
    assert_int_equal(hm_law_make(p, p, HM_PROPOSAL_IID, NULL, 1, 4, &law, &err), HM_RANGE);
    assert_string_equal(err.message, "accepted tokens: expected at most 3, found 4");
    assert_int_equal(hm_law_make(p, q, HM_PROPOSAL_IID, NULL, 1, 1, &law, &err), HM_SHAPE);
    assert_int_equal(hm_law_make(p, h, HM_PROPOSAL_IID, NULL, 1, 1, &law, &err), HM_USAGE);
    assert_int_equal(hm_law_make(p, p, HM_PROPOSAL_TOPK, &child, 1, 1, &law, &err), HM_RANGE);
    assert_string_equal(err.message, "child 0: expected an id from 0 to 2, found 3");
    hm_row_close(p);
    hm_row_close(q);
    hm_row_close(h);
}

// l - d where doubles round: the order of p/q is exact.
static void ratios_are_ordered_exactly(void **state)
{
    (void)state;
    float tiny = 0x1p-140f;
    struct hm_exact a = hm_exact_difference(1e30f, tiny), b = hm_exact_difference(1e30f, 2 * tiny), c = hm_exact_difference(1e30f, tiny);
    assert_true(a.high == b.high && hm_exact_compare(a, b) > 0 && hm_exact_compare(b, a) < 0 && hm_exact_compare(a, c) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_draw_and_coin),
        cmocka_unit_test(long_ladders),
        cmocka_unit_test(the_filter_agrees),
        cmocka_unit_test(near_rows_are_answered_in_doubles),
        cmocka_unit_test(one_proposal_is_nucleus_speculation),
        cmocka_unit_test(trivial_laws_are_exact),
        cmocka_unit_test(bad_questions),
        cmocka_unit_test(ratios_are_ordered_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
