// What random numbers decide about proposals, and the law of the token: against whole vectors in long doubles, proposal
// by proposal, at every level of precision; and equalities that no precision tells, against rationals.
#include "certify/check/math.h"
#include "tests/seed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 7, MOST = 5 };
static const uint64_t ONE = (uint64_t)1 << 53;
static uint64_t state;

static uint64_t next(void)
{
    return test_random(&state);
}

static void make_row(float row[VOCAB])
{
    int how = (int)(next() % 4);
    for (int i = 0; i < VOCAB; i++) {
        float x = (float)(next() % 4096) / 1024 - 2;
        row[i] = how == 0 ? floorf(x) : x;
        if (how == 1 && i != 2 && next() % 3 == 0) row[i] = -INFINITY;
        if (how == 2) row[i] = (row[i] + 0x1p-70f) * 0x1p-40f; // not for fixed point
    }
}

static void set_rows(struct ck_math *m, const float *p, const float *q)
{
    memcpy(m->row[0].logit, p, VOCAB * sizeof *p);
    memcpy(m->row[1].logit, q, VOCAB * sizeof *q);
    ck_math_new_row(m, CK_TARGET);
    ck_math_new_row(m, CK_DRAFT);
}

static void shares(const float *row, long double temperature, long double out[VOCAB])
{
    long double sum = 0;
    for (int i = 0; i < VOCAB; i++) sum += out[i] = expl((long double)row[i] / temperature);
    for (int i = 0; i < VOCAB; i++) out[i] /= sum;
}

// p^1, p^2, ... and the law of the token.
struct chain {
    long double target[MOST + 1][VOCAB], law[VOCAB], left;
};

static void follow(const long double p[VOCAB], const long double q[VOCAB], const struct ck_row *row, size_t k, size_t m,
                   struct chain *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out->target[0], p, sizeof out->target[0]);
    out->left = 1;
    for (size_t j = 0; j < m; j++) {
        long double refused = 0, sum = 0;
        for (size_t i = 0; i < VOCAB; i++) {
            long double taken = row->rank[i] < k ? q[i] : fminl(q[i], out->target[j][i]);
            out->law[i] += out->left * taken;
            refused += q[i] - taken;
            sum += out->target[j + 1][i] = fmaxl(out->target[j][i] - q[i], 0);
        }
        for (size_t i = 0; i < VOCAB; i++) out->target[j + 1][i] /= sum > 1e-15L ? sum : 1;
        out->left *= sum > 1e-15L ? refused : 0;
    }
    for (size_t i = 0; i < VOCAB; i++) out->law[i] += out->left * out->target[m][i];
}

static void expect(enum answer found, long double less, long double more, const char *what)
{
    if (fabsl(less - more) < 1e-12L) return; // a tie, or as good as one
    if (found != (less < more ? YES : NO)) fail_msg("%s: %d for %Lg < %Lg", what, (int)found, less, more);
}

// The token that a number gives, -1 where it is close.
static int drawn(const long double p[VOCAB], long double u)
{
    long double sum = 0;
    for (int i = 0; i < VOCAB; i++) {
        sum += p[i];
        if (fabsl(sum - u) < 1e-12L) return -1;
        if (sum > u) return i;
    }
    return -1;
}

static void draws_from_the_draft(void **unused)
{
    (void)unused;
    struct ck_math m = {0};
    size_t count = test_count(200, 3000, 20000), rejected = 0;
    assert_true(ck_math_init(&m, VOCAB));
    state = test_seed(__func__);
    for (size_t n = 0; n < count; n++) {
        float row[2][VOCAB];
        long double p[VOCAB], q[VOCAB], u;
        struct chain chain;
        unsigned long tenths = 5 + next() % 20;
        make_row(row[0]);
        make_row(row[1]);
        if (n % 5 == 0) { // the same values in other places: p = q but for some tokens
            memcpy(row[1], row[0], sizeof row[0]);
            size_t i = next() % VOCAB, other = next() % VOCAB;
            float x = row[1][i];
            row[1][i] = row[1][other];
            row[1][other] = x;
        }
        mpq_set_ui(m.inverse_claim, 10, tenths);
        mpq_canonicalize(m.inverse_claim);
        set_rows(&m, row[0], row[1]);
        if (n % 3 == 0) m.first_level = 1 + (int)(n % 2);
        shares(row[0], (long double)tenths / 10, p);
        shares(row[1], (long double)tenths / 10, q);
        size_t many = 1 + next() % MOST, k = next() % VOCAB, j = next() % many, token = next() % VOCAB;
        follow(p, q, &m.row[0], 0, many, &chain);
        uint64_t bits = next() >> 11;
        u = (long double)bits / (long double)ONE;
        long double sum = 0;
        for (int i = 0; i < VOCAB; i++) sum += chain.target[j][i];
        if (sum > 0.5L) expect(ck_coin_draw(&m, many, j, token, bits), u * q[token], chain.target[j][token], "coin");
        int right = drawn(chain.target[many], u);
        for (size_t i = 0; i < VOCAB && right >= 0; i++)
            if (ck_is_residual(&m, many, i, bits) != ((int)i == right ? YES : NO))
                fail_msg("residual draw: %zu for %d", i, right);
        rejected += right >= 0;
        follow(p, q, &m.row[0], k, many, &chain);
        const struct ck_ask ask = {.k = k, .m = many, .token = token};
        struct iv v;
        iv_inits(&v, 1, 2048);
        bool known = false;
        for (int level = m.first_level; level < CK_LEVELS && !known && chain.law[token] > 1e-9L; level++) {
            known = ck_iid_ratio(&m, level, &ask, &v);
            long double truth = p[token] / chain.law[token];
            if (known && (fabsl(mpfr_get_ld(v.lo, MPFR_RNDN) - truth) > 1e-9L * truth ||
                          fabsl(mpfr_get_ld(v.hi, MPFR_RNDN) - truth) > 1e-9L * truth))
                fail_msg("ratio %Lg: [%Lg, %Lg], level %d, k %zu, m %zu", truth, mpfr_get_ld(v.lo, MPFR_RNDN),
                         mpfr_get_ld(v.hi, MPFR_RNDN), level, k, many);
        }
        iv_clears(&v, 1);
    }
    assert_true(rejected > count / 2);
    ck_math_clear(&m);
}

static void point_masses(void **unused)
{
    (void)unused;
    struct ck_math m = {0};
    assert_true(ck_math_init(&m, VOCAB));
    state = test_seed(__func__);
    mpq_set_ui(m.inverse_claim, 1, 1);
    for (size_t n = test_count(200, 3000, 20000); n > 0; n--) {
        float row[VOCAB];
        long double p[VOCAB], rest[VOCAB], law[VOCAB], left = 1;
        uint32_t child[VOCAB];
        make_row(row);
        set_rows(&m, row, row);
        if (n % 3 == 0) m.first_level = 1;
        shares(row, 1, p);
        for (uint32_t i = 0; i < VOCAB; i++) child[i] = i;
        for (size_t i = 0; i < VOCAB; i++) {
            size_t other = i + next() % (VOCAB - i);
            uint32_t t = child[i];
            child[i] = child[other];
            child[other] = t;
        }
        size_t many = 1 + next() % (VOCAB - 1), k = next() % VOCAB;
        bool taken = false;
        memcpy(rest, p, sizeof rest);
        memset(law, 0, sizeof law);
        for (size_t j = 0; j < many; j++) {
            uint64_t bits = next() >> 11;
            if (left > 1e-6L)
                expect(ck_coin_point(&m, child, j, child[j], bits), (long double)bits / (long double)ONE,
                       p[child[j]] / left, "coin of a point mass");
            if (!taken) law[child[j]] = m.row[0].rank[child[j]] < k ? left : p[child[j]];
            taken = taken || m.row[0].rank[child[j]] < k;
            left -= p[child[j]];
            rest[child[j]] = 0;
        }
        uint64_t bits = next() >> 11;
        for (int i = 0; i < VOCAB && left > 1e-6L; i++) rest[i] /= left;
        int right = left > 1e-6L ? drawn(rest, (long double)bits / (long double)ONE) : -1;
        const struct ck_part part = {VOCAB, child, many};
        for (size_t i = 0; i < VOCAB && right >= 0; i++)
            if (ck_is_draw(&m, CK_TARGET, i, &part, bits) != ((int)i == right ? YES : NO))
                fail_msg("residual draw of point masses: %zu for %d", i, right);
        for (size_t i = 0; i < many; i++) {
            struct ck_ask ask = {.k = k, .m = many, .children = child, .token = child[i]};
            struct iv v;
            iv_inits(&v, 1, 128);
            long double truth = taken ? p[child[i]] / law[child[i]] : 1;
            if ((!taken || law[child[i]] > 1e-6L) && ck_topk_ratio(&m, 1, &ask, &v) &&
                fabsl(mpfr_get_ld(v.lo, MPFR_RNDN) - truth) > 1e-9L * truth)
                fail_msg("ratio of a point mass: %Lg for %Lg", mpfr_get_ld(v.lo, MPFR_RNDN), truth);
            iv_clears(&v, 1);
            if (m.row[0].rank[child[i]] < k) break; // no later one is emitted
        }
    }
    ck_math_clear(&m);
}

// The coin of a uniform row, tails e^-10000 below it or none: u against one in so many that are left.
static void coins_of_equal_tokens(void **unused)
{
    (void)unused;
    struct ck_math m = {0};
    const uint32_t tried[VOCAB] = {0, 1, 2, 3, 4, 5, 6};
    int ties = 0;
    assert_true(ck_math_init(&m, VOCAB));
    mpq_set_ui(m.inverse_claim, 1, 1);
    for (size_t n = 1; n <= VOCAB; n++)
        for (size_t tails = 0; n + tails <= VOCAB; tails++) {
            float row[VOCAB];
            for (size_t i = 0; i < VOCAB; i++) row[i] = i < n ? 3 : i < n + tails ? -1e4f : -INFINITY;
            set_rows(&m, row, row);
            for (size_t j = 0; j < n; j++) {
                uint64_t share = ONE / (n - j);
                bool exact = share * (n - j) == ONE;
                if (n - j > 1) { // of one that is left, u < 1 always
                    assert_int_equal(ck_coin_point(&m, tried, j, j, share - 1), YES);
                    assert_int_equal(ck_coin_point(&m, tried, j, j, share), exact ? NO : YES);
                    assert_int_equal(ck_coin_point(&m, tried, j, j, share + 1), NO);
                    ties += exact;
                }
                assert_int_equal(ck_coin_point(&m, tried, j, j, 0), YES);
                if (n - j == 1 && tails == 0) assert_int_equal(ck_coin_point(&m, tried, j, j, ONE - 1), YES);
                if (n + tails < VOCAB) assert_int_equal(ck_coin_point(&m, tried, j, VOCAB - 1, 0), NO);
            }
        }
    assert_true(ties > 10);
    ck_math_clear(&m);
}

// All pairs of uniform rows: coins and residual draws at and around every value where they turn, in rationals.
static void uniform_pairs(void **unused)
{
    (void)unused;
    struct ck_math m = {0};
    mpq_t target[VOCAB], each, u, sum, t;
    size_t ties = 0;
    assert_true(ck_math_init(&m, VOCAB));
    mpq_set_ui(m.inverse_claim, 1, 1);
    mpq_inits(each, u, sum, t, NULL);
    for (int i = 0; i < VOCAB; i++) mpq_init(target[i]);
    for (unsigned long p = 1; p <= VOCAB; p++)
        for (unsigned q = 1; q < 1 << VOCAB; q += test_count(5, 1, 1)) {
            float row[2][VOCAB];
            for (int i = 0; i < VOCAB; i++) {
                row[0][i] = (unsigned long)i < p ? 1 : -INFINITY;
                row[1][i] = q >> i & 1 ? 5 : -INFINITY;
                mpq_set_ui(target[i], (unsigned long)i < p, p);
                mpq_canonicalize(target[i]);
            }
            set_rows(&m, row[0], row[1]);
            mpq_set_ui(each, 1, (unsigned long)__builtin_popcount(q));
            mpq_set_ui(sum, 1, 1);
            for (size_t j = 0; j < 4; j++) {
                for (size_t token = 0; token < VOCAB; token++) { // the coin of proposal j + 1 turns at p^j / q
                    bool in_q = q >> token & 1;
                    mpq_div(t, target[token], each);
                    mpq_mul_2exp(t, t, 53);
                    bool whole = mpz_cmp_ui(mpq_denref(t), 1) == 0, inside = mpq_cmp_ui(t, ONE, 1) < 0;
                    uint64_t turn = mpz_get_ui(mpq_numref(t));
                    if (!in_q || !whole || !inside) continue;
                    assert_int_equal(ck_coin_draw(&m, 4, j, token, turn), NO);
                    assert_int_equal(ck_coin_draw(&m, 4, j, token, turn + 1), NO);
                    if (turn > 0) assert_int_equal(ck_coin_draw(&m, 4, j, token, turn - 1), YES);
                    ties++;
                }
                mpq_set_ui(sum, 0, 1);
                for (int i = 0; i < VOCAB; i++) {
                    if (q >> i & 1) mpq_sub(target[i], target[i], each);
                    if (mpq_sgn(target[i]) < 0) mpq_set_ui(target[i], 0, 1);
                    mpq_add(sum, sum, target[i]);
                }
                if (mpq_sgn(sum) == 0) break;
                mpq_set_ui(t, 0, 1);
                for (int i = 0; i < VOCAB; i++) mpq_div(target[i], target[i], sum);
                for (int i = 0; i < VOCAB;
                     i++) { // the residual draw is i from the sum before it, up to that through it
                    mpq_mul_2exp(u, t, 53);
                    bool whole = mpz_cmp_ui(mpq_denref(u), 1) == 0 && mpq_sgn(target[i]) > 0;
                    uint64_t turn = mpz_get_ui(mpq_numref(u));
                    mpq_add(t, t, target[i]);
                    if (!whole) continue;
                    assert_int_equal(ck_is_residual(&m, j + 1, (size_t)i, turn), YES);
                    if (turn > 0) assert_int_equal(ck_is_residual(&m, j + 1, (size_t)i, turn - 1), NO);
                    ties++;
                }
            }
        }
    assert_true(ties > 500);
    for (int i = 0; i < VOCAB; i++) mpq_clear(target[i]);
    mpq_clears(each, u, sum, t, NULL);
    ck_math_clear(&m);
}

// q is p on half of every class: u = 1/2 is where the first coin turns, though neither row is uniform.
static void coins_of_classes(void **unused)
{
    (void)unused;
    struct ck_math m = {0};
    const float p[VOCAB] = {2, 2, 0.5f, 0.5f, -3, -3, -INFINITY},
                q[VOCAB] = {7, -INFINITY, 5.5f, -INFINITY, 2, -INFINITY, -INFINITY},
                shifted[VOCAB] = {1, 1, -0.5f, -0.5f, -4, -4, -INFINITY};
    assert_true(ck_math_init(&m, VOCAB));
    mpq_set_ui(m.inverse_claim, 3, 7);
    set_rows(&m, p, q);
    for (size_t token = 0; token < 6; token += 2) {
        assert_int_equal(ck_coin_draw(&m, 3, 0, token, ONE / 2), NO);
        assert_int_equal(ck_coin_draw(&m, 3, 0, token, ONE / 2 + 1), NO);
        assert_int_equal(ck_coin_draw(&m, 3, 0, token, ONE / 2 - 1), YES);
    }
    set_rows(&m, p, shifted); // the same law
    for (size_t token = 0; token < 6; token++) assert_int_equal(ck_coin_draw(&m, 3, 0, token, ONE - 1), YES);
    assert_int_equal(ck_coin_draw(&m, 3, 0, 6, 0), NO);
    const struct ck_ask ask = {.k = 2, .m = 3, .token = 1};
    struct iv v;
    iv_inits(&v, 1, 128);
    assert_true(ck_iid_ratio(&m, 0, &ask, &v) && mpfr_cmp_ui(v.lo, 1) == 0 && mpfr_cmp_ui(v.hi, 1) == 0);
    iv_clears(&v, 1);
    ck_math_clear(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_from_the_draft),  cmocka_unit_test(point_masses),
        cmocka_unit_test(coins_of_equal_tokens), cmocka_unit_test(uniform_pairs),
        cmocka_unit_test(coins_of_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
