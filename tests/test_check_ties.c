// Equalities that no precision tells: tails e^-10000 below equal tokens, uniform rows, and rows that are each other's
// with tokens exchanged, all small ones of them. Each must be decided, and as long doubles say where those can.
#include "certify/check/power.h"
#include "tests/seed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 6 };

static void set_rows(struct ck_math *m, const float *p, const float *q)
{
    memcpy(m->row[0].logit, p, VOCAB * sizeof *p);
    memcpy(m->row[1].logit, q, VOCAB * sizeof *q);
    ck_math_new_row(m, CK_TARGET);
    ck_math_new_row(m, CK_DRAFT);
}

// Does the rule accept this position of n equal tokens and a tail?  By definition, at a depth that doubles can see.
static bool accepts(const struct ck_rule *r, int n, int tails, int position)
{
    long double e = expl(-5), total = n + tails * e,
                entropy = n / total * logl(total) + tails * e / total * (5 + logl(total));
    long double p = (position < n ? 1 : position < n + tails ? e : 0) / total, a = mpq_get_d(r->a), b = mpq_get_d(r->b);
    long double before = position <= n ? position / total : 1;
    if (r->kind == CK_ADDITIVE) return p >= 1 / total - a;
    if (r->kind == CK_ABSOLUTE) return p >= a;
    if (r->kind == CK_NUCLEUS) return before < a && p > 0;
    return p >= a || p >= b * expl(-entropy);
}

static void far_tails(void **state)
{
    (void)state;
    static const char *const forms[] = {"additive:%d/%d", "absolute:%d/%d", "nucleus:%d/%d", "entropy:%d/%d,1",
                                        "entropy:%d/%d,1/2"};
    struct ck_math m = {0};
    assert_true(ck_math_init(&m, VOCAB));
    mpq_set_ui(m.inverse_claim, 1, 1);
    for (int n = 2; n < VOCAB; n++)
        for (int tails = 1; n + tails <= VOCAB; tails++)
            for (int share = 1; share < n; share++)
                for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
                    float row[VOCAB];
                    char text[64];
                    struct ck_rule rule;
                    for (int j = 0; j < VOCAB; j++) row[j] = j < n ? 0 : j < n + tails ? -1e4f : -INFINITY;
                    set_rows(&m, row, row);
                    snprintf(text, sizeof text, forms[f], share, n);
                    assert_true(ck_rule_parse(text, &rule));
                    for (int j = 0; j < n; j++)
                        if (ck_member(&m, &rule, (size_t)j) != (accepts(&rule, n, tails, j) ? YES : NO))
                            fail_msg("%s, %d equal and %d far ones, position %d: %d", text, n, tails, j,
                                     (int)ck_member(&m, &rule, (size_t)j));
                    if (rule.kind == CK_ADDITIVE) assert_int_equal(ck_member(&m, &rule, VOCAB - 1), YES);
                    if (rule.kind == CK_ENTROPY || rule.kind == CK_ABSOLUTE)
                        assert_int_equal(ck_has_universal(&m, &rule), rule.kind == CK_ENTROPY ? YES : NO);
                    if (rule.kind == CK_ENTROPY && mpq_cmp_ui(rule.b, 1, 1) == 0)
                        assert_int_equal(ck_eps_in_force(&m, &rule), NO); // share/n against a little less than 1/n
                    ck_rule_clear(&rule);
                }
    ck_math_clear(&m);
}

// All pairs of uniform rows: p on the first tokens, q on any set.
static void pair(int p, unsigned q, float row[2][VOCAB])
{
    for (int j = 0; j < VOCAB; j++) {
        row[0][j] = j < p ? 0 : -INFINITY;
        row[1][j] = q >> j & 1 ? 1 : -INFINITY;
    }
}

// accept and e by following the proposals one after the other (theory.md §5).
static void follow(const long double p[VOCAB], const long double q[VOCAB], size_t k, size_t m, long double out[2])
{
    long double target[VOCAB], emitted[VOCAB] = {0}, left = 1;
    memcpy(target, p, sizeof target);
    for (size_t i = 0; i < m && left > 0; i++) {
        long double refused = 0, rest[VOCAB], sum = 0;
        for (size_t j = 0; j < VOCAB; j++) {
            long double taken = j < k ? q[j] : fminl(q[j], target[j]);
            emitted[j] += left * taken;
            refused += q[j] - taken;
            sum += rest[j] = fmaxl(target[j] - q[j], 0);
        }
        if (sum < 1e-15L || refused < 1e-15L) {
            left = 0;
            break;
        }
        for (size_t j = 0; j < VOCAB; j++) target[j] = rest[j] / sum;
        left *= refused;
    }
    out[0] = 1 - left;
    out[1] = 0;
    for (size_t j = 0; j < VOCAB; j++) out[1] += fmaxl(emitted[j] + left * target[j] - p[j], 0);
}

static void laws_of_uniform_rows(void **state)
{
    (void)state;
    ck_quantity *const quantities[2] = {ck_iid_accept, ck_iid_e};
    struct ck_math m = {0};
    float row[2][VOCAB];
    assert_true(ck_math_init(&m, VOCAB));
    mpq_set_ui(m.inverse_claim, 1, 1);
    for (int p = 1; p <= VOCAB; p++)
        for (unsigned q = 1; q < 1 << VOCAB; q++)
            for (struct ck_ask ask = {.k = 1, .m = 1};
                 ask.k<VOCAB; ask.m++, ask.k += ask.m> 4, ask.m %= 5, ask.m += !ask.m) {
                long double at[2][VOCAB], truth[2];
                pair(p, q, row);
                set_rows(&m, row[0], row[1]);
                for (int j = 0; j < VOCAB; j++) {
                    at[0][j] = j < p ? 1.0L / p : 0;
                    at[1][j] = q >> j & 1 ? 1.0L / __builtin_popcount(q) : 0;
                }
                follow(at[0], at[1], ask.k, ask.m, truth);
                for (int i = 0; i < 2; i++) {
                    struct iv v;
                    iv_inits(&v, 1, 128);
                    assert_true(quantities[i](&m, 1, &ask, &v));
                    bool zero = truth[i] < 1e-15L, sharp = !zero || mpfr_zero_p(v.hi);
                    double gap = (double)(mpfr_get_ld(v.lo, MPFR_RNDN) - truth[i]),
                           width = mpfr_get_d(v.hi, MPFR_RNDU) - mpfr_get_d(v.lo, MPFR_RNDD);
                    if (!sharp || fabs(gap) > 1e-14 || width > 1e-14)
                        fail_msg("p on %d, q on 0x%x, k %zu, m %zu: off by %g", p, q, ask.k, ask.m, gap);
                    iv_clears(&v, 1);
                }
            }
    ck_math_clear(&m);
}

static void divergences_of_uniform_rows(void **state)
{
    (void)state;
    static const char *const names[] = {"hellinger", "chi2",    "renyi:1/2", "renyi:1/3", "renyi:2/3",
                                        "renyi:3/2", "renyi:2", "renyi:3",   "renyi:5/2", "renyi-reverse:1/2"};
    struct ck_math m = {0};
    float row[2][VOCAB];
    int ties = 0;
    assert_true(ck_math_init(&m, VOCAB));
    mpq_set_ui(m.inverse_claim, 1, 1);
    for (size_t name = 0; name < sizeof names / sizeof names[0]; name++) {
        struct ck_power power;
        assert_true(ck_power_parse(names[name], &power));
        for (int p = 1; p <= VOCAB; p++)
            for (unsigned q = 1; q < 1 << VOCAB; q++) {
                pair(p, q, row);
                set_rows(&m, row[0], row[1]);
                for (size_t k = 1; k < VOCAB; k++)
                    for (size_t many = 1; k + many <= VOCAB; many++) {
                        struct ck_ask ask = {.k = k, .m = many, .power = &power};
                        struct iv v[2];
                        enum answer less = ck_power_certifies(&m, &ask);
                        iv_inits(v, 2, 256);
                        assert_true(ck_power_value(&m, 2, &ask, &v[0]) && ck_power_star(&m, 2, &ask, &v[1]));
                        enum answer plain = iv_less(&v[0], &v[1]);
                        ties += plain == OPEN;
                        if (less == OPEN || (plain == OPEN ? less != NO : less != plain))
                            fail_msg("%s, p on %d, q on 0x%x, k %zu, m %zu: %d for %d", names[name], p, q, k, many,
                                     (int)less, (int)plain);
                        iv_clears(v, 2);
                    }
            }
        ck_power_clear(&power);
    }
    assert_true(ties > 100);
    ck_math_clear(&m);
}

// One proposal between rows of the same logits in another order, q's higher by a constant: e is 0 where q exceeds p at
// no token of A, acceptance sure where at no other, and each is positive or less than 1 else. Where q's lowest logit is
// a little lower still, every other token is likelier under q.
static void expect_one_proposal(struct ck_math *m, const float q[VOCAB], double constant, bool lower)
{
    const struct ck_row *p = &m->row[0];
    for (int level = m->first_level; level < 4; level++)
        for (size_t k = 1; k < VOCAB; k++) {
            const struct ck_ask ask = {.k = k, .m = 1, .token = p->order[0]};
            bool above[2] = {false, false};
            struct iv v[3];
            iv_inits(v, 3, 256);
            for (size_t j = 0; j < VOCAB; j++) {
                double of_p = p->logit[p->order[j]], of_q = (double)q[p->order[j]] - constant;
                above[j >= k] |= of_q > of_p || (lower && of_q == of_p && isfinite(of_q));
            }
            assert_true(ck_iid_e(m, level, &ask, &v[0]) && ck_iid_accept(m, level, &ask, &v[1]));
            bool zero = mpfr_zero_p(v[0].hi) != 0, sure = mpfr_cmp_ui(v[1].lo, 1) == 0, one = zero;
            bool told =
                level == 0 || ((!above[0] || mpfr_sgn(v[0].lo) > 0) && (!above[1] || mpfr_cmp_ui(v[1].hi, 1) < 0));
            if (zero) {
                assert_true(ck_iid_ratio(m, level, &ask, &v[2]));
                one = mpfr_cmp_ui(v[2].lo, 1) == 0 && mpfr_cmp_ui(v[2].hi, 1) == 0;
            }
            if (zero == above[0] || sure == above[1] || zero != one || !told)
                fail_msg("level %d, k %zu: e %s, accept %s, ratio %s, expected %s, %s", level, k, zero ? "0" : "open",
                         sure ? "1" : "open", one ? "1" : "open", above[0] ? "more" : "0", above[1] ? "less" : "1");
            iv_clears(v, 3);
        }
}

static void exchanged_tokens(void **state)
{
    (void)state;
    static const float sets[][VOCAB] = {
        {3, 2, 1, 0, -1, -2},      {2, 2, 1, 1, 0, 0},  {1.25f, 0.5f, 0.5f, -1, -INFINITY, -INFINITY},
        {0x1p-70f, 0, 0, 0, 0, 0}, {5, 0, 0, 0, 0, -9},
    };
    struct ck_math m = {0};
    size_t pairs = 0;
    assert_true(ck_math_init(&m, VOCAB));
    mpq_set_ui(m.inverse_claim, 10, 7);
    for (size_t set = 0; set < sizeof sets / sizeof sets[0]; set++)
        for (int code = 0; code < 720; code += (int)test_count(7, 1, 1), pairs++) {
            const float constant = set == 3 ? 0 : 0.25f; // 2^-70 + 1/4 is no float
            float q[VOCAB];
            size_t lowest = 0;
            memcpy(q, sets[set], sizeof q);
            for (int j = 1, rest = code; j < VOCAB; rest /= ++j) {
                float t = q[j];
                q[j] = q[rest % (j + 1)];
                q[rest % (j + 1)] = t;
            }
            for (size_t j = 0; j < VOCAB; j++) {
                q[j] += constant;
                if (isinf(q[lowest]) || (isfinite(q[j]) && q[j] < q[lowest])) lowest = j;
            }
            set_rows(&m, sets[set], q);
            expect_one_proposal(&m, q, (double)constant, false);
            if (set == 3) continue; // 0 has no float below it that is near
            q[lowest] = nextafterf(q[lowest], -INFINITY);
            set_rows(&m, sets[set], q);
            expect_one_proposal(&m, q, (double)constant, true);
        }
    printf("%zu pairs of rows with tokens exchanged\n", pairs);
    ck_math_clear(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(far_tails),
        cmocka_unit_test(laws_of_uniform_rows),
        cmocka_unit_test(divergences_of_uniform_rows),
        cmocka_unit_test(exchanged_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
