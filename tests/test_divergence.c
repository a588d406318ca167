// Divergences on request: the definition on small rows, adversaries that fail coverage below the level (none may be
// found), witnesses that attain it, and equalities that no precision shows.
#include "tests/divergence_support.h"

#include <mpfr.h>
#include <string.h>

enum { LARGEST = 8 };

static struct hm_ival between(const char *text, struct hm_row *p, struct hm_row *q)
{
    struct hm_divergence d = parse(text);
    struct hm_ival out;
    struct hm_error err = {.message = ""};
    if (hm_divergence_between(&d, p, q, &out, &err)) fail_msg("%s", err.message);
    hm_divergence_clear(&d);
    assert_true(out.lo >= 0);
    return out;
}

static struct hm_ival level(const char *text, struct hm_row *p, size_t k, size_t m)
{
    struct hm_divergence d = parse(text);
    struct hm_ival out;
    struct hm_error err = {.message = ""};
    if (hm_divergence_level(&d, p, k, m, &out, &err)) fail_msg("%s", err.message);
    hm_divergence_clear(&d);
    assert_true(out.lo >= 0);
    return out;
}

static enum hm_certified certified(const char *text, struct hm_row *p, struct hm_row *q, size_t k, size_t m)
{
    struct hm_divergence d = parse(text);
    enum hm_certified out;
    struct hm_error err = {.message = ""};
    if (hm_divergence_certified(&d, p, q, k, m, &out, &err)) fail_msg("%s", err.message);
    hm_divergence_clear(&d);
    return out;
}

static void names_are_canonical(void **state)
{
    (void)state;
    static const char *const good[][2] = {
        {"renyi:0.5", "renyi:1/2"}, {"renyi-reverse:3", "renyi-reverse:3"}, {"hellinger", "hellinger"}, {"chi2", "chi2"},
        {"chi2-reverse", "chi2-reverse"}, {"max", "max"}, {"spread", "spread"}};
    static const char *const bad[][2] = {
        {"", "divergence \"\": expected renyi:A, renyi-reverse:A, hellinger, chi2, chi2-reverse, max or spread"},
        {"kl", "divergence \"kl\": expected renyi:A, renyi-reverse:A, hellinger, chi2, chi2-reverse, max or spread"},
        {"renyi", "divergence \"renyi\": expected renyi:A with A > 0 and not 1"},
        {"renyi:1", "divergence \"renyi:1\": expected renyi:A with A > 0 and not 1"},
        {"renyi:3/3", "divergence \"renyi:3/3\": expected renyi:A with A > 0 and not 1"},
        {"renyi:0", "divergence \"renyi:0\": expected renyi:A with A > 0 and not 1"},
        {"renyi-reverse:-2", "divergence \"renyi-reverse:-2\": expected renyi-reverse:A with A > 0 and not 1"},
        {"renyi:2,3", "divergence \"renyi:2,3\": expected renyi:A with A > 0 and not 1"},
        {"chi2:2", "divergence \"chi2:2\": expected chi2 without a parameter"},
        {"max:", "divergence \"max:\": expected max without a parameter"}};
    struct hm_divergence d;
    struct hm_error err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        d = parse(good[i][0]);
        char *text = hm_divergence_text(&d);
        assert_string_equal(text, good[i][1]);
        free(text);
        hm_divergence_clear(&d);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(hm_divergence_parse(bad[i][0], &d, &err), HM_USAGE);
        assert_string_equal(err.message, bad[i][1]);
    }
}

// The definitions, in long double.
static long double renyi(const long double *p, const long double *q, size_t n, long double a)
{
    long double sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == 0) continue;
        if (q[i] == 0 && a > 1) return INFINITY;
        if (q[i] > 0) sum += powl(p[i], a) * powl(q[i], 1 - a);
    }
    return sum > 0 ? logl(sum) / (a - 1) : INFINITY;
}

static long double defined(const char *text, const long double *p, const long double *q, size_t n)
{
    long double sum = 0, most = -INFINITY, least = INFINITY;
    struct hm_divergence d = parse(text);
    long double order = (long double)hm_rational_double(&d.order);
    enum hm_divergence_kind kind = d.kind;
    hm_divergence_clear(&d);
    if (kind == HM_DIVERGENCE_RENYI) return renyi(p, q, n, order);
    if (kind == HM_DIVERGENCE_RENYI_REVERSE) return renyi(q, p, n, order);
    for (size_t i = 0; i < n; i++) {
        if (p[i] == 0 && q[i] == 0) continue;
        most = fmaxl(most, logl(p[i] / q[i]));
        least = fminl(least, logl(p[i] / q[i]));
        if (kind == HM_DIVERGENCE_HELLINGER) sum += sqrtl(p[i] * q[i]);
        if (kind == HM_DIVERGENCE_CHI2) sum += p[i] * p[i] / q[i];
        if (kind == HM_DIVERGENCE_CHI2_REVERSE) sum += q[i] * q[i] / p[i];
    }
    if (kind == HM_DIVERGENCE_MAX) return most;
    if (kind == HM_DIVERGENCE_SPREAD) return most - least;
    return kind == HM_DIVERGENCE_HELLINGER ? 1 - sum : sum - 1;
}

static void shares(const float *l, size_t n, long double temperature, long double *out)
{
    long double sum = 0;
    for (size_t i = 0; i < n; i++) sum += out[i] = expl((long double)l[i] / temperature);
    for (size_t i = 0; i < n; i++) out[i] /= sum;
}

static void assert_near(const char *what, struct hm_ival v, long double x)
{
    long double slack = 1e-14L * (1 + fabsl(x));
    if (x == INFINITY ? v.lo != INFINITY : !(v.lo <= x + slack && v.hi >= x - slack && is_narrow(v)))
        fail_msg("%s: %.17Lg against [%.17g, %.17g]", what, x, v.lo, v.hi);
}

static void values_are_the_definitions(void **state)
{
    (void)state;
    struct random r = seeded("values");
    for (size_t n = 0; n < rounds(200); n++) {
        float l[LARGEST], d[LARGEST];
        long double p[LARGEST], q[LARGEST];
        size_t vocab = 2 + below(&r, LARGEST - 1);
        for (size_t i = 0; i < vocab; i++) {
            l[i] = below(&r, 5) || i == 0 ? (float)gauss(&r) : -INFINITY;
            d[i] = below(&r, 8) || i == 0 ? (float)gauss(&r) : -INFINITY;
        }
        if (n % 10 == 0) l[0] = -INFINITY, d[1] = -INFINITY, l[1] = 0; // 0 is q's alone, 1 is p's
        struct hm_row *target = open_row(l, vocab, "3/2"), *draft = open_row(d, vocab, "3/2");
        shares(l, vocab, 1.5L, p);
        shares(d, vocab, 1.5L, q);
        for (size_t i = 0; i < KINDS; i++) assert_near(kinds[i], between(kinds[i], target, draft), defined(kinds[i], p, q, vocab));
        for (size_t i = 0; i < KINDS; i++) assert_true(between(kinds[i], target, target).hi == 0);
        hm_row_close(target);
        hm_row_close(draft);
    }
}

// The level u of order a by bisection of the theory's balance, and the witness.
static void witness(const long double *p, size_t n, size_t k, size_t m, long double a, long double *q)
{
    long double low = p[k + m - 1], high = p[0], sum = 0;
    for (int step = 0; step < 200; step++) {
        long double u = (low + high) / 2, balance = 0;
        for (size_t i = 0; i < k + m; i++) {
            long double change = a > 0 ? powl(p[i], a) - powl(u, a) : powl(u, a) - powl(p[i], a);
            if (i < k ? p[i] > u : p[i] < u) balance += change;
        }
        if (balance > 0) low = u;
        else high = u;
    }
    if (a < 0 && p[k + m - 1] == 0) low = high = 0;
    for (size_t i = 0; i < n; i++)
        sum += q[i] = i < k ? fminl(p[i], high) : i < k + m ? fmaxl(p[i], high) : p[i];
    for (size_t i = 0; i < n; i++) q[i] /= sum;
}

static long double exponent(const char *text)
{
    struct hm_divergence d = parse(text);
    struct hm_power power;
    long double a = 1000; // `max` is the limit
    if (hm_divergence_power(&d, &power)) {
        a = (long double)mpq_get_d(power.a);
        mpq_clear(power.a);
    }
    hm_divergence_clear(&d);
    return a;
}

static void witnesses_attain_the_level(void **state)
{
    (void)state;
    struct random r = seeded("witnesses");
    for (size_t n = 0; n < rounds(300); n++) {
        float l[LARGEST];
        long double p[LARGEST], q[LARGEST];
        size_t vocab = 2 + below(&r, LARGEST - 1), k = 1 + below(&r, vocab - 1), m = 1 + below(&r, vocab - k);
        for (size_t i = 0; i < vocab; i++) l[i] = below(&r, 3) ? (float)(2 * gauss(&r)) : (float)below(&r, 3);
        for (size_t i = 0; i < vocab; i++) // in order, so that ranks are ids
            for (size_t j = i; j > 0 && l[j] > l[j - 1]; j--) {
                float swap = l[j];
                l[j] = l[j - 1];
                l[j - 1] = swap;
            }
        if (n % 4 == 0) l[vocab - 1] = -INFINITY;
        struct hm_row *row = open_row(l, vocab, "1/2");
        shares(l, vocab, 0.5L, p);
        for (size_t i = 0; i < KINDS; i++) {
            struct hm_ival star = level(kinds[i], row, k, m);
            if (strcmp(kinds[i], "max") == 0) {
                long double sum = 0;
                for (size_t s = k; s < k + m; s++) sum += p[0] - p[s];
                assert_near(kinds[i], star, log1pl(sum));
            } else if (strcmp(kinds[i], "spread") == 0) {
                assert_near(kinds[i], star, logl(p[0] / p[k + m - 1]));
            } else {
                witness(p, vocab, k, m, exponent(kinds[i]), q);
                bool whole = true; // A is the whole support, and an empty token must rise to it
                for (size_t s = k; s < vocab; s++) whole = whole && p[s] == 0;
                assert_near(kinds[i], star, exponent(kinds[i]) < 0 && whole ? INFINITY : defined(kinds[i], p, q, vocab));
            }
        }
        hm_row_close(row);
    }
}

// A draft row that fails weakly, near the witness of a random order or anywhere.
static void adversary(struct random *r, const float *l, size_t vocab, size_t k, size_t m, float *d)
{
    static const long double orders[] = {0.5L, 2, 0.1L, 3.5L, -1, -4, 0.9L, 100};
    long double p[LARGEST], q[LARGEST];
    shares(l, vocab, 1, p);
    witness(p, vocab, k, m, orders[below(r, 8)], q);
    double noise = below(r, 3) ? 0 : below(r, 2) ? 1e-6 : 1;
    for (size_t i = 0; i < vocab; i++) d[i] = q[i] > 0 ? (float)(logl(q[i]) + noise * gauss(r)) : -INFINITY;
    float top = -INFINITY;
    size_t at_or_above = 0;
    for (size_t i = 0; i < k; i++) top = fmaxf(top, d[i]);
    for (size_t i = k; i < vocab; i++) at_or_above += d[i] >= top;
    for (size_t i = k; i < vocab && at_or_above < m; i++)
        if (d[i] < top) d[i] = top, at_or_above++;
    if (top == -INFINITY) d[k] = 0;
}

static void no_failing_draft_is_certified(void **state)
{
    (void)state;
    struct random r = seeded("adversaries");
    size_t close = 0;
    for (size_t n = 0; n < rounds(200); n++) {
        float l[LARGEST], d[LARGEST];
        size_t vocab = 2 + below(&r, LARGEST - 1), k = 1 + below(&r, vocab - 1), m = 1 + below(&r, vocab - k);
        for (size_t i = 0; i < vocab; i++) l[i] = (float)(vocab - i) * (float)uniform(&r) * 0.3f + (float)(vocab - i);
        for (size_t i = 1; i < vocab; i++) l[i] = fminf(l[i], l[i - 1]);
        if (n % 5 == 0) l[vocab - 1] = -INFINITY;
        if (n % 7 == 0) l[1] = l[0];
        adversary(&r, l, vocab, k, m, d);
        struct hm_row *p = open_row(l, vocab, "1"), *q = open_row(d, vocab, "1");
        if (n % 2) p->filter.state = HM_FILTER_OFF; // MPFR alone
        for (size_t i = 0; i < KINDS; i++) {
            struct hm_ival value = between(kinds[i], p, q), star = level(kinds[i], p, k, m);
            enum hm_certified verdict = certified(kinds[i], p, q, k, m);
            if (value.hi < star.lo || verdict != HM_CERT_NO)
                fail_msg("%s: %.17g against %.17g with k = %zu, m = %zu: verdict %d", kinds[i], value.hi, star.lo, k, m, verdict);
            close += value.lo < star.hi * 1.00001;
        }
        hm_row_close(p);
        hm_row_close(q);
    }
    assert_true(close > 100);
}

// The limits are reached within 10^-30.
static void assert_meet(struct hm_ival a, struct hm_ival b)
{
    if (!(a.lo <= b.hi + 1e-15 && b.lo <= a.hi + 1e-15 && is_narrow(a))) fail_msg("[%a, %a] and [%a, %a]", a.lo, a.hi, b.lo, b.hi);
}

static void kinds_agree(void **state)
{
    (void)state;
    struct hm_row *p = open_row((float[]){3, 1, 0.5f, -1, -2}, 5, "7/10"), *q = open_row((float[]){2, 1.5f, 0, 0, -1}, 5, "7/10");
    struct hm_row_distance distance;
    struct hm_claim claim = make_claim("topm:2", p, q, 2);
    struct hm_error err;
    assert_int_equal(hm_row_distance(p, q, &distance, &err), HM_OK);
    double half = between("renyi:1/2", p, q).lo, two = between("renyi:2", p, q).lo, back = between("renyi-reverse:2", p, q).lo;
    assert_true(fabs(between("hellinger", p, q).lo + expm1(-half / 2)) < 1e-11);
    assert_true(fabs(between("chi2", p, q).lo - expm1(two)) < 1e-11);
    assert_true(fabs(between("chi2-reverse", p, q).lo - expm1(back)) < 1e-11);
    static const char *const near_one[] = {"renyi:1000000000000000000000000000001/1000000000000000000000000000000",
                                           "renyi-reverse:999999999999999999999999999999/1000000000000000000000000000000"};
    assert_meet(between(near_one[0], p, q), distance.kl_pq);
    assert_meet(between(near_one[1], p, q), distance.kl_qp);
    assert_meet(level(near_one[0], p, 2, 2), claim.level.klf);
    assert_meet(level(near_one[1], p, 2, 2), claim.level.klr);
    static const char *const huge = "renyi:1000000000000000000000000000000000000000";
    assert_meet(between(huge, p, q), between("max", p, q));
    assert_meet(level(huge, p, 2, 2), level("max", p, 2, 2));
    assert_true(is_narrow(level("renyi:1e-39", p, 2, 2)) && is_narrow(between("renyi:1e-39", p, q)));
    assert_int_equal(certified(huge, p, q, 2, 2), certified("max", p, q, 2, 2));
    hm_row_close(p);
    hm_row_close(q);
}

static void expect_all(struct hm_row *p, struct hm_row *q, size_t k, size_t m, enum hm_certified verdict)
{
    for (size_t i = 0; i < KINDS; i++) {
        enum hm_certified found = certified(kinds[i], p, q, k, m);
        if (found != verdict) fail_msg("%s: verdict %d, expected %d", kinds[i], found, verdict);
    }
}

static void words_and_ends(void **state)
{
    (void)state;
    struct hm_row *p = open_row((float[]){3, 2, 1}, 3, "1"), *q = open_row((float[]){3, 2, 1.0001f}, 3, "1"),
                  *flat = open_row((float[]){1, 1, 1}, 3, "1"), *half = open_row((float[]){-INFINITY, 0, 1}, 3, "1"),
                  *sharp = open_row((float[]){3, -INFINITY, -INFINITY}, 3, "1");
    expect_all(p, q, 0, 1, HM_CERT_NO);
    expect_all(p, q, 2, 2, HM_CERT_VACUOUS);
    expect_all(p, q, 2, (size_t)-1, HM_CERT_VACUOUS);
    expect_all(p, q, 1, 2, HM_CERT_YES);
    expect_all(flat, q, 1, 2, HM_CERT_NO); // the level is 0
    expect_all(p, flat, 1, 2, HM_CERT_NO);
    for (size_t i = 0; i < KINDS; i++) {
        assert_true(level(kinds[i], p, 0, 1).hi == 0 && level(kinds[i], p, 3, 1).lo == INFINITY);
        assert_true(level(kinds[i], flat, 1, 2).hi == 0);
    }
    // infinite divergences certify nothing, finite ones lie below an infinite level
    assert_int_equal(certified("max", p, half, 1, 1), HM_CERT_NO);
    assert_int_equal(certified("renyi-reverse:2", sharp, sharp, 1, 1), HM_CERT_YES);
    assert_true(level("renyi-reverse:2", sharp, 1, 1).lo == INFINITY && level("spread", sharp, 1, 2).lo == INFINITY);
    assert_int_equal(certified("spread", sharp, sharp, 1, 2), HM_CERT_YES);
    assert_int_equal(certified("spread", sharp, p, 1, 2), HM_CERT_NO);
    assert_true(level("hellinger", sharp, 1, 1).hi < 1 && between("hellinger", sharp, half).lo == 1);
    hm_row_close(p);
    hm_row_close(q);
    hm_row_close(flat);
    hm_row_close(half);
    hm_row_close(sharp);
}

// D = D* exactly: `no`, decided without a limit of precision.
static void equalities_are_no(void **state)
{
    (void)state;
    struct hm_row *p = open_row((float[]){2, 0.5f, -1}, 3, "1"), *q = open_row((float[]){1, 1, 1}, 3, "1");
    for (size_t i = 0; i < KINDS; i++) // q uniform on the tied set, which is all
        if (strcmp(kinds[i], "max") && strcmp(kinds[i], "spread")) assert_int_equal(certified(kinds[i], p, q, 1, 2), HM_CERT_NO);
    assert_true(level("renyi:2", p, 1, 2).lo <= between("renyi:2", p, q).hi && level("renyi:2", p, 1, 2).hi >= between("renyi:2", p, q).lo);
    hm_row_close(p);
    hm_row_close(q);
    p = open_row((float[]){2, 1, 0.5f, -INFINITY}, 4, "1"); // an empty token in S: q is p without A
    q = open_row((float[]){-INFINITY, 1.25f, 0.75f, -INFINITY}, 4, "1");
    assert_int_equal(certified("renyi-reverse:2", p, q, 1, 3), HM_CERT_NO);
    assert_int_equal(certified("chi2-reverse", p, q, 1, 3), HM_CERT_NO);
    assert_int_equal(certified("renyi-reverse:3/2", p, q, 1, 3), HM_CERT_NO);
    hm_row_close(q);
    q = open_row((float[]){2, 2, 0.5f, -INFINITY}, 4, "1"); // max: p raised in S to the first
    assert_int_equal(certified("max", p, q, 1, 1), HM_CERT_NO);
    assert_int_equal(certified("spread", p, q, 1, 1), HM_CERT_NO);
    hm_row_close(q);
    q = open_row((float[]){2, nextafterf(2, 0), 0.5f, -INFINITY}, 4, "1");
    assert_int_equal(certified("max", p, q, 1, 1), HM_CERT_YES);
    assert_int_equal(certified("spread", p, q, 1, 1), HM_CERT_YES);
    hm_row_close(p);
    hm_row_close(q);
    // Both uniform: rationals and roots of rationals, always decided.
    float wide[20], other[20];
    for (size_t i = 0; i < 20; i++) wide[i] = i < 8 ? 0 : -INFINITY;
    p = open_row(wide, 20, "1");
    for (size_t on = 1; on <= 20; on++) {
        for (size_t i = 0; i < 20; i++) other[i] = i < on ? 0 : -INFINITY;
        q = open_row(other, 20, "1");
        for (size_t k = 1; k <= 9; k++)
            for (size_t i = 0; i < KINDS; i++) { // never undecided, never certified if it fails weakly
                enum hm_certified found = certified(kinds[i], p, q, k, 10);
                assert_true(found == HM_CERT_YES || found == HM_CERT_NO);
                if (on >= k + 10) assert_int_equal(found, HM_CERT_NO);
            }
        hm_row_close(q);
    }
    hm_row_close(p);
}

// Tokens 2^28 nats and more below the top: stars are narrow on Renyi's scale, and chi2 beyond the doubles is a lower bound.
static void remote_tokens_leave_narrow_stars(void **state)
{
    (void)state;
    static const float far[] = {0, 0, -1, -700, -3e8f, -3e8f, -1e9f, -1e20f, -3.4e38f, -INFINITY};
    struct random r = seeded("remote");
    for (size_t n = 0; n < rounds(60); n++) {
        float l[LARGEST];
        size_t vocab = 2 + below(&r, LARGEST - 1), k = 1 + below(&r, vocab - 1), m = 1 + below(&r, vocab - k);
        for (size_t i = 0; i < vocab; i++) l[i] = i ? far[below(&r, sizeof far / sizeof *far)] : 0;
        struct hm_row *p = open_row(l, vocab, n % 2 ? "1" : "1/100");
        for (size_t i = 0; i < KINDS; i++) {
            struct hm_ival star = level(kinds[i], p, k, m);
            bool bound = strncmp(kinds[i], "chi2", 4) == 0 && star.lo > 0x1.fp1023 && star.hi == INFINITY;
            if (!is_narrow(star) && !bound) fail_msg("%s, row %zu: [%g, %g]", kinds[i], n, star.lo, star.hi);
        }
        hm_row_close(p);
    }
    float near_far[] = {0, -3e8f};
    struct hm_row *closed = open_row(near_far, 2, "1"); // u = e^-L sqrt 2, Z = 2 u
    struct hm_ival star = level("renyi-reverse:3", closed, 1, 1);
    assert_true(fabs(star.lo - (3e8 - 1.5 * log(2))) < 1e-6 && fabs(star.hi - (3e8 - 1.5 * log(2))) < 1e-6);
    hm_row_close(closed);
    near_far[1] = -3e20f;
    struct hm_row *p = open_row(near_far, 2, "1"), *q = open_row((float[]){0, 1}, 2, "1");
    assert_int_equal(certified("renyi-reverse:1/2", p, q, 1, 1), HM_CERT_NO);
    assert_true(certified("renyi-reverse:3", p, q, 1, 1) != HM_CERT_UNDECIDED);
    hm_row_close(p);
    hm_row_close(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_canonical),
        cmocka_unit_test(values_are_the_definitions),
        cmocka_unit_test(witnesses_attain_the_level),
        cmocka_unit_test(no_failing_draft_is_certified),
        cmocka_unit_test(kinds_agree),
        cmocka_unit_test(words_and_ends),
        cmocka_unit_test(equalities_are_no),
        cmocka_unit_test(remote_tokens_leave_narrow_stars),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
