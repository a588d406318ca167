// Water levels: the special cases of theory.md §2 by name, the definition on random rows, and margins below them.
#include "bounds/ival_math.h"
#include "certify/certificate_state.h"
#include "tests/certify_rows.h"
#include "tests/seed.h"

#include <mpfr.h>

enum { LARGEST = 12 };

static void assert_overlap(struct hm_ival a, struct hm_ival b)
{
    if (!(a.lo <= b.hi && b.lo <= a.hi)) fail_msg("[%.17g, %.17g] and [%.17g, %.17g]", a.lo, a.hi, b.lo, b.hi);
}

// From the filter where it answers, which the cases of this file need, and from MPFR alone: one number.
static struct hm_level level_of(const float *l, size_t vocab, size_t k, size_t m, struct hm_margin *margin)
{
    struct hm_level v[2];
    struct hm_margin g[2];
    struct hm_error err = {.message = ""};
    for (int filter = 0; filter < 2; filter++) {
        struct hm_row *row = open_row(l, vocab, "1");
        if (!filter) row->filter.state = HM_FILTER_OFF;
        if (hm_level_make(row, k, m, &v[filter], margin ? &g[filter] : NULL, &err)) fail_msg("%s", err.message);
        hm_row_close(row);
        const struct hm_level *x = &v[filter];
        assert_true(hm_ival_narrow(x->klf) && hm_ival_narrow(x->klr) && hm_ival_narrow(x->tv) && hm_ival_narrow(x->level_f));
        assert_true(x->klf.lo >= 0 && x->klr.lo >= 0 && x->tv.lo >= 0 && (x->tv.hi <= 1 || x->tv.lo == INFINITY));
    }
    const struct hm_ival levels[][2] = {{v[0].klf, v[1].klf}, {v[0].klr, v[1].klr}, {v[0].tv, v[1].tv},
                                        {v[0].level_f, v[1].level_f}, {v[0].level_r, v[1].level_r}};
    for (size_t i = 0; i < 5; i++) assert_overlap(levels[i][0], levels[i][1]);
    assert_memory_equal(v[0].tied_r, v[1].tied_r, sizeof v[0].tied_r);
    if (!margin) return v[1];
    const struct hm_ival margins[][2] = {{g[0].gap, g[1].gap}, {g[0].klf, g[1].klf}, {g[0].klr, g[1].klr}, {g[0].tv, g[1].tv}};
    for (size_t i = 0; i < 4; i++) assert_overlap(margins[i][0], margins[i][1]);
    *margin = g[1];
    return v[1];
}

static void assert_near(struct hm_ival v, double x, double tolerance)
{
    if (!(v.lo <= x + tolerance && v.hi >= x - tolerance)) fail_msg("%.17g against [%.17g, %.17g]", x, v.lo, v.hi);
}

static void greedy_against_one_has_a_closed_form(void **state)
{
    (void)state;
    float l[] = {0.25f, 1.5f, -2, 0.75f};
    double w[] = {exp(0.25), exp(1.5), exp(-2), exp(0.75)}, sum = w[0] + w[1] + w[2] + w[3], a = w[1] / sum, b = w[3] / sum;
    struct hm_level v = level_of(l, 4, 1, 1, NULL);
    assert_near(v.klf, a * log(2 * a / (a + b)) + b * log(2 * b / (a + b)), 1e-15);
    assert_near(v.klr, -log(1 - (sqrt(a) - sqrt(b)) * (sqrt(a) - sqrt(b))), 1e-15);
    assert_near(v.tv, (a - b) / 2, 1e-15);
    assert_near(v.level_f, (a + b) / 2, 1e-15);
    assert_near(v.level_r, log(a * b) / 2, 1e-15);
    assert_true(v.tied_f[0] == 1 && v.tied_f[1] == 1 && v.tied_r[0] == 1 && v.tied_r[1] == 1);
}

static void nothing_accepted_gives_zero(void **state)
{
    (void)state;
    float l[] = {1, 1, 1, 1};
    struct hm_row *p = open_row(l, 4, "1"), *q = open_row((float[]){1, 2, 3, 4}, 4, "1");
    struct hm_claim c = make_claim("entropy:1/2,2", p, q, 1);
    assert_true(c.nothing && c.k == 0 && !c.vacuous && c.level.klf.hi == 0 && c.level.klr.hi == 0 && c.level.tv.hi == 0);
    assert_true(c.covered == HM_NO && c.edge[0] == -1 && c.edge[1] == 0);
    for (int i = 0; i < 3; i++) assert_int_equal(c.certified[i], HM_CERT_NO);
    c = make_claim("entropy:1/2,2", p, q, 5); // k = 0 comes before k + m > V
    assert_int_equal(c.certified[0], HM_CERT_NO);
    hm_row_close(p);
    hm_row_close(q);
}

static void too_few_rejected_tokens_are_vacuous(void **state)
{
    (void)state;
    struct hm_row *p = open_row((float[]){1, 2, 3, 4}, 4, "1"), *q = open_row((float[]){1, 5, 3, 4}, 4, "1");
    struct hm_claim c = make_claim("topm:2", p, q, 3);
    assert_true(c.vacuous && c.level.klf.lo == INFINITY && c.level.klr.lo == INFINITY && c.level.tv.lo == INFINITY);
    for (int i = 0; i < 3; i++) assert_int_equal(c.certified[i], HM_CERT_VACUOUS);
    assert_int_equal(c.covered, HM_YES);
    c = make_claim("topm:2", p, q, 2);
    assert_true(!c.vacuous && c.level.klf.hi < INFINITY);
    c = make_claim("topm:2", p, q, (size_t)-1);
    assert_true(c.vacuous && c.covered == HM_YES);
    hm_row_close(p);
    hm_row_close(q);
}

// Greedy, m = 3, one token without probability: the empty token must rise to a level of 0 in the reverse case.
static void an_empty_token_in_s_gives_up_a(void **state)
{
    (void)state;
    float l[] = {1, 0.5f, 0, -INFINITY};
    double w[] = {exp(1), exp(0.5), 1}, sum = w[0] + w[1] + w[2];
    struct hm_level v = level_of(l, 4, 1, 3, NULL);
    assert_near(v.klr, -log((w[1] + w[2]) / sum), 1e-15);
    assert_true(v.level_r.lo == -INFINITY && v.level_r.hi == -INFINITY);
    assert_true(v.tied_r[0] == 1 && v.tied_r[1] == 1);
    double c = (w[0] + w[2]) / sum / 3; // the second token lies above it, the third and the empty one below
    assert_near(v.level_f, c, 1e-15);
    assert_near(v.tv, w[0] / sum - c, 1e-15);
    assert_near(v.klf, w[0] / sum * log(w[0] / sum / c) + w[2] / sum * log(w[2] / sum / c), 1e-15);
}

static void a_holding_the_whole_support_is_infinite(void **state)
{
    (void)state;
    float l[] = {1, -5000, -INFINITY, -INFINITY};
    struct hm_level v = level_of(l, 4, 2, 1, NULL);
    assert_true(v.klr.lo == INFINITY && v.klf.hi < INFINITY); // by support: the tail e^-5000 is in A
    v = level_of(l, 4, 1, 2, NULL);
    assert_true(v.klr.hi < INFINITY);
    assert_near(v.klr, 5001, 1e-9);
}

static void all_tied_gives_exact_zero(void **state)
{
    (void)state;
    float l[] = {2, -1, 2, 2, 0};
    struct hm_margin g;
    struct hm_level v = level_of(l, 5, 2, 1, &g);
    assert_true(v.klf.hi == 0 && v.klr.hi == 0 && v.tv.hi == 0 && g.gap.hi == 0 && g.klf.hi == 0);
    v = level_of(l, 5, 2, 2, &g); // the fourth token is below them
    assert_true(v.klf.lo > 0 && v.klr.lo > 0 && v.tv.lo > 0 && g.gap.hi == 0);
}

// logits 2, 1, 0 with k = 1, m = 2: x = 1 exactly, so the second token lies on the reverse level.
static void a_token_on_the_level_is_decided_exactly(void **state)
{
    (void)state;
    struct hm_level v = level_of((float[]){2, 1, 0}, 3, 1, 2, NULL);
    double sum = exp(2) + exp(1) + 1;
    assert_near(v.level_r, 1 - log(sum), 1e-15);
    assert_true(v.tied_r[0] == 1 && v.tied_r[1] == 1);
    assert_near(v.klr, -log(3 * exp(1) / sum), 1e-15);
}

// What double precision gets wrong (theory.md §2, "Evaluation without cancellation").
static void sharp_rows_and_close_ties_keep_their_digits(void **state)
{
    (void)state;
    struct hm_margin g;
    float sharp[] = {16.118095f, 0}; // p1 is about 1 - 1e-7
    struct hm_level v = level_of(sharp, 2, 1, 1, &g);
    double b = 1 / (1 + exp(16.118095f)), a = 1 - b;
    assert_true(v.klr.lo >= g.klr.lo && v.klf.lo >= g.klf.lo); // never below its own margin bound
    assert_near(v.klr, -0.5 * log(4 * a * b), 1e-9);
    double worst = 0;
    for (int n = 1; n <= 20; n++) { // ties of about 1e-9: KL is (p1 - p2)^2 / 4c to leading order, c = (p1 + p2)/2
        float tie[] = {1e-9f * (float)n, 0, -0.3f};
        v = level_of(tie, 3, 1, 1, &g);
        double sum = exp(tie[0]) + 1 + exp(tie[2]), y = expm1(tie[0]) / sum, c = (exp(tie[0]) + 1) / 2 / sum;
        double right = y * y / (4 * c), p1 = exp(tie[0]) / sum, p2 = 1 / sum;
        assert_true(v.klf.lo > 0 && v.klr.lo > 0 && v.tv.lo > 0);
        assert_near(v.klf, right, 1e-7 * right);
        assert_near(v.klr, right, 1e-7 * right);
        worst = fmax(worst, fabs(p1 * log(p1 / c) + p2 * log(p2 / c) - right) / right);
    }
    assert_true(worst > 1); // the formula as written has no digit left
}

static double excess(double p, double t)
{
    return p > 0 ? p * log(p / t) - p + t : t;
}

// KLf* = min F, KLr* = -ln(1 - min G), TV* at the crossing: against the minimum over a fine grid, in doubles.
static void levels_minimise_the_definition(void **state)
{
    (void)state;
    struct random r = seeded("definition");
    for (size_t n = 0; n < test_count(50, 300, 30000); n++) {
        float l[LARGEST];
        size_t vocab = 3 + below(&r, LARGEST - 3), k = 1 + below(&r, vocab - 1), m = 1 + below(&r, vocab - k);
        for (size_t i = 0; i < vocab; i++) l[i] = below(&r, 3) ? (float)gauss(&r) : (float)below(&r, 3);
        struct hm_margin g;
        struct hm_level v = level_of(l, vocab, k, m, &g);
        struct hm_row *row = open_row(l, vocab, "1");
        double p[LARGEST], sum = 0, f = INFINITY, geometric = INFINITY, variation = INFINITY;
        for (size_t i = 0; i < vocab; i++) sum += p[i] = exp(l[hm_row_token(row, i)]);
        for (size_t i = 0; i < vocab; i++) p[i] /= sum;
        for (double t = p[k + m - 1]; t <= p[0] * 1.0001; t *= 1.0005) {
            double forward = 0, reverse = 0, above = 0, under = 0;
            for (size_t i = 0; i < k + m; i++) {
                double clipped = i < k ? fmin(p[i], t) : fmax(p[i], t);
                forward += excess(p[i], clipped);
                reverse += excess(clipped, p[i]);
                if (i < k) above += fmax(0, p[i] - t);
                else under += fmax(0, t - p[i]);
            }
            f = fmin(f, forward);
            geometric = fmin(geometric, reverse);
            variation = fmin(variation, fmax(above, under));
        }
        assert_true(v.klf.lo <= f + 1e-12 && f - v.klf.hi < 1e-5);
        assert_true(v.klr.lo <= -log(1 - geometric) + 1e-12 && -log(1 - geometric) - v.klr.hi < 1e-4);
        assert_true(v.tv.lo <= variation + 1e-12 && variation - v.tv.hi < 1e-2);
        assert_true(g.klf.lo <= v.klf.hi && g.klr.lo <= v.klr.hi && g.tv.lo <= v.tv.hi); // §3: never above the exact one
        hm_row_close(row);
    }
}

// theory.md §3: equality when p puts (1+my)/(k+m) on k tokens and (1-ky)/(k+m) on m.
static void margins_are_sharp(void **state)
{
    (void)state;
    for (size_t k = 1; k <= 4; k++) {
        for (size_t m = 1; m <= 4; m++) {
            float l[8];
            struct hm_margin g;
            for (size_t i = 0; i < k + m; i++) l[i] = i < k ? 1.25f : 0;
            struct hm_level v = level_of(l, k + m, k, m, &g);
            assert_near(g.klf, (v.klf.lo + v.klf.hi) / 2, 1e-15);
            assert_near(g.klr, (v.klr.lo + v.klr.hi) / 2, 1e-15);
            assert_near(g.tv, (v.tv.lo + v.tv.hi) / 2, 1e-15);
        }
    }
}

// Closed forms: 0, -L; 0, 0, -L, -L; and an empty token that makes the level 0.
static void remote_tokens_have_closed_forms(void **state)
{
    (void)state;
    static const float lengths[] = {2.5e8f, 3e8f, 1e9f, 1e20f, 3e38f};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        float far = -lengths[i];
        double L = lengths[i], ulps = L * 1e-14;
        struct hm_margin g;
        struct hm_level v = level_of((float[]){0, far}, 2, 1, 1, &g);
        assert_near(v.klr, L / 2 - log(2), ulps);
        assert_near(g.klr, L / 2 - log(2), ulps);
        assert_near(g.klf, log(2), 1e-14);
        v = level_of((float[]){0, 0, far, far}, 4, 2, 1, &g);
        assert_near(v.klr, L / 3 - log(1.5), ulps);
        assert_near(g.klr, (L - log(2) - 2 * log(1.5)) / 3, ulps);
        v = level_of((float[]){0, far, far, -INFINITY}, 4, 1, 3, NULL);
        assert_near(v.klr, L - log(2), ulps);
    }
}

// Tokens 2^28 nats and more below the top: every figure is narrow.
static void remote_tokens_leave_narrow_figures(void **state)
{
    (void)state;
    static const float far[] = {0, 0, -1, -700, -15000, -3e8f, -3e8f, -1e9f, -1e20f, -1e38f, -3.4e38f, -INFINITY};
    static const char *const temperatures[] = {"1", "1/100000", "7/10"};
    struct random r = seeded("remote");
    for (size_t n = 0; n < test_count(60, 300, 3000); n++) {
        enum { MOST = 8 };
        float l[MOST];
        size_t vocab = 2 + below(&r, MOST - 1), k = 1 + below(&r, vocab - 1), m = 1 + below(&r, vocab - k);
        for (size_t i = 0; i < vocab; i++) l[i] = i ? far[below(&r, sizeof far / sizeof *far)] : 0;
        struct hm_row *row = open_row(l, vocab, temperatures[n % 3]);
        struct hm_level v;
        struct hm_margin g;
        struct hm_error err = {.message = ""};
        if (hm_level_make(row, k, m, &v, &g, &err)) fail_msg("%s", err.message);
        struct hm_ival all[] = {v.klf, v.klr, v.tv, v.level_f, v.level_r, g.gap, g.klf, g.klr, g.tv};
        for (size_t i = 0; i < 9; i++)
            if (!is_narrow(all[i])) fail_msg("row %zu, k %zu, m %zu: %zu: [%g, %g]", n, k, m, i, all[i].lo, all[i].hi);
        hm_row_close(row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remote_tokens_have_closed_forms),
        cmocka_unit_test(remote_tokens_leave_narrow_figures),
        cmocka_unit_test(greedy_against_one_has_a_closed_form),
        cmocka_unit_test(nothing_accepted_gives_zero),
        cmocka_unit_test(too_few_rejected_tokens_are_vacuous),
        cmocka_unit_test(an_empty_token_in_s_gives_up_a),
        cmocka_unit_test(a_holding_the_whole_support_is_infinite),
        cmocka_unit_test(all_tied_gives_exact_zero),
        cmocka_unit_test(a_token_on_the_level_is_decided_exactly),
        cmocka_unit_test(sharp_rows_and_close_ties_keep_their_digits),
        cmocka_unit_test(levels_minimise_the_definition),
        cmocka_unit_test(margins_are_sharp),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
