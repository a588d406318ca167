// Bounds on sequences and runs: the counterexample that forbids clipping, exact enumeration of small decoders, coverage of
// the finite-sample bounds, sharpness, and what a drafter must reach.
#include "bounds/sequence.h"
#include "tests/certify_rows.h"

#include <mpfr.h>

enum { TOKENS = 3, LONGEST = 4, HIDDEN = 2 };

static struct hm_ival point(double x)
{
    return (struct hm_ival){x, x};
}

// A target and a decoder over sequences of `length` tokens. The decoder has a coin of its own, drawn first and never
// shown: with `hidden` 1 its laws depend on the prefix only.
struct decoder {
    size_t length, hidden;
    double p[64][TOKENS], o[HIDDEN][64][TOKENS]; // by prefix, as a number in base TOKENS with a leading 1
};

static void random_law(struct random *r, double *law)
{
    double sum = 0;
    for (size_t i = 0; i < TOKENS; i++) sum += law[i] = below(r, 4) ? uniform(r) : 0;
    if (sum == 0) sum = law[below(r, TOKENS)] = 1;
    for (size_t i = 0; i < TOKENS; i++) law[i] /= sum;
}

static void random_decoder(struct random *r, struct decoder *d, size_t hidden)
{
    d->length = 1 + below(r, 3);
    d->hidden = hidden;
    for (size_t prefix = 1; prefix < 64; prefix++) {
        random_law(r, d->p[prefix]);
        for (size_t h = 0; h < hidden; h++) {
            random_law(r, d->o[h][prefix]);
            double mix = uniform(r);
            for (size_t i = 0; i < TOKENS; i++) d->o[h][prefix][i] = mix * d->o[h][prefix][i] + (1 - mix) * d->p[prefix][i];
        }
    }
}

// What enumeration finds: the true TV, and the two expectations over the decoder's runs.
struct truth {
    double tv, shortfall, s, clipped;
};

static void walk(const struct decoder *d, size_t h, size_t prefix, size_t step, double chance, const struct hm_sequence_sum *sum,
                 struct truth *out)
{
    if (step == d->length) {
        struct hm_fidelity_sum one = {0};
        struct hm_fidelity bound;
        hm_fidelity_add(&one, sum);
        hm_fidelity_bound(&one, 0.05, &bound);
        out->shortfall += chance * bound.mean_shortfall.hi;
        out->s += chance * bound.mean_s.hi;
        out->clipped += chance * fmin(1, bound.mean_s.hi);
        assert_true(bound.bernstein == 1); // it needs two
        return;
    }
    const double *p = d->p[prefix], *o = d->o[h][prefix];
    double e = 0;
    for (size_t i = 0; i < TOKENS; i++) e += fabs(p[i] - o[i]) / 2;
    for (size_t i = 0; i < TOKENS; i++) {
        if (o[i] == 0) continue;
        struct hm_sequence_sum next = *sum;
        hm_sequence_add(&next, point(e), point(p[i] / o[i]));
        walk(d, h, prefix * TOKENS + i, step + 1, chance * o[i], &next, out);
    }
}

// Probability of every sequence under both; TV of the two.
static double variation(const struct decoder *d)
{
    size_t count = 1;
    double total = 0;
    for (size_t i = 0; i < d->length; i++) count *= TOKENS;
    for (size_t sequence = 0; sequence < count; sequence++) {
        double p = 1, o[HIDDEN] = {1, 1}, mean = 0;
        size_t prefix = 1, divisor = count;
        for (size_t i = 0; i < d->length; i++) {
            size_t token = sequence / (divisor /= TOKENS) % TOKENS;
            p *= d->p[prefix][token];
            for (size_t h = 0; h < d->hidden; h++) o[h] *= d->o[h][prefix][token];
            prefix = prefix * TOKENS + token;
        }
        for (size_t h = 0; h < d->hidden; h++) mean += o[h] / (double)d->hidden;
        total += fabs(p - mean) / 2;
    }
    return total;
}

static struct truth find(const struct decoder *d)
{
    struct truth t = {.tv = variation(d)};
    for (size_t h = 0; h < d->hidden; h++) walk(d, h, 1, 0, 1 / (double)d->hidden, &HM_SEQUENCE_START, &t);
    return t;
}

// theory.md §5: e_1 = 1/2, and disjoint laws on the branch that the decoder takes half the time.
static void never_clip(void **state)
{
    (void)state;
    struct decoder d = {.length = 2, .hidden = 1};
    d.p[1][0] = 1;
    d.o[0][1][0] = d.o[0][1][1] = 0.5;
    d.p[3][0] = d.o[0][3][1] = 1; // after token 0: disjoint
    d.p[4][0] = d.o[0][4][0] = 1; // after token 1: equal
    struct truth t = find(&d);
    assert_true(fabs(t.tv - 1) < 1e-15 && fabs(t.s - 1) < 1e-15 && fabs(t.clipped - 0.75) < 1e-15);
    assert_true(fabs(t.shortfall - 1) < 1e-15);
}

static void bounds_hold_on_every_decoder(void **state)
{
    (void)state;
    struct random r = seeded("decoders");
    double least = 1;
    for (size_t n = 0; n < rounds(500); n++) {
        struct decoder d;
        random_decoder(&r, &d, 1 + n % 2);
        struct truth t = find(&d);
        assert_true(t.tv <= t.shortfall + 1e-12 && t.shortfall <= t.s + 1e-12);
        if (d.hidden == 1) assert_true(fabs(t.tv - t.shortfall) < 1e-12); // the prefix is all there is
        else least = fmin(least, t.tv / t.shortfall);
    }
    assert_true(least < 0.99); // a hidden coin makes a difference
}

static void finite_samples_cover(void **state)
{
    (void)state;
    struct random r = seeded("coverage");
    enum { SAMPLES = 60, RISK = 10 };
    size_t missed[2] = {0, 0}, runs = rounds(1000), tight = 0;
    for (size_t n = 0; n < runs; n++) {
        struct hm_fidelity_sum sum = {0};
        struct hm_fidelity bound;
        double level = uniform(&r), chance = n % 2 ? 0.05 : uniform(&r), mean = chance * level, total = 0, squares = 0;
        for (size_t i = 0; i < SAMPLES; i++) { // one step each: w is 1 - level or 1
            double w = uniform(&r) < chance ? 1 - level : 1;
            struct hm_sequence_sum one = HM_SEQUENCE_START;
            hm_sequence_add(&one, point(0), point(w));
            hm_fidelity_add(&sum, &one);
            total += 1 - w;
            squares += (1 - w) * (1 - w);
        }
        hm_fidelity_bound(&sum, 1.0 / RISK, &bound);
        missed[0] += bound.hoeffding < mean;
        missed[1] += bound.bernstein < mean;
        tight += bound.bernstein < bound.hoeffding;
        double average = total / SAMPLES, variance = fmax(0, (squares - total * average) / (SAMPLES - 1));
        double hoeffding = average + sqrt(log(RISK) / (2 * SAMPLES));
        double bernstein = average + sqrt(2 * variance * log(2 * RISK) / SAMPLES) + 7 * log(2 * RISK) / (3.0 * (SAMPLES - 1));
        assert_true(fabs(bound.hoeffding - fmin(1, hoeffding)) < 1e-12 && fabs(bound.bernstein - fmin(1, bernstein)) < 1e-7);
        assert_true(bound.mean_shortfall.lo <= average + 1e-13 && bound.mean_shortfall.hi >= average - 1e-13);
    }
    print_message("missed %zu and %zu of %zu at a risk of 1/%d\n", missed[0], missed[1], runs, RISK);
    assert_true(missed[0] * RISK <= runs + runs / 4 && missed[1] * RISK <= runs + runs / 4);
    assert_true(tight > 0); // small variances pay
}

static void bounds_are_outward(void **state)
{
    (void)state;
    mpfr_t x, y;
    mpfr_inits2(300, x, y, (mpfr_ptr)0);
    for (uint64_t n = 1; n < UINT64_C(1) << 40; n = n * 7 + 1) { // nothing lost so far: the margin alone
        struct hm_fidelity_sum sum = {.sequences = n};
        struct hm_fidelity bound;
        hm_fidelity_bound(&sum, 0.03, &bound);
        mpfr_set_d(x, 0.03, MPFR_RNDN);
        mpfr_log(x, x, MPFR_RNDN);
        mpfr_neg(x, x, MPFR_RNDN);
        mpfr_div_ui(y, x, 2 * n, MPFR_RNDN);
        mpfr_sqrt(y, y, MPFR_RNDD);
        assert_true(bound.hoeffding == 1 || mpfr_cmp_d(y, bound.hoeffding) <= 0);
        assert_true(bound.hoeffding == 1 || mpfr_get_d(y, MPFR_RNDU) * (1 + 1e-12) >= bound.hoeffding);
        if (n == 1) continue;
        mpfr_const_log2(y, MPFR_RNDN);
        mpfr_add(x, x, y, MPFR_RNDN);
        mpfr_mul_ui(x, x, 7, MPFR_RNDN);
        mpfr_div_ui(x, x, 3 * (n - 1), MPFR_RNDD);
        assert_true(bound.bernstein == 1 || mpfr_cmp_d(x, bound.bernstein) <= 0);
    }
    mpfr_clears(x, y, (mpfr_ptr)0);
}

static void nothing_known_is_vacuous(void **state)
{
    (void)state;
    struct hm_fidelity_sum sum = {0};
    struct hm_fidelity bound;
    hm_fidelity_bound(&sum, 0.05, &bound);
    assert_true(bound.vacuous && bound.vacuous_s && bound.hoeffding == 1 && bound.bernstein == 1);
    assert_true(bound.mean_shortfall.lo == 0 && bound.mean_shortfall.hi == 1 && bound.mean_s.hi == INFINITY);
    struct hm_sequence_sum sequence = HM_SEQUENCE_START;
    hm_sequence_add(&sequence, (struct hm_ival){0, 1}, (struct hm_ival){0, INFINITY}); // an open step
    hm_sequence_add(&sequence, point(0.5), point(1));
    for (int i = 0; i < 1000; i++) hm_fidelity_add(&sum, &sequence);
    hm_fidelity_bound(&sum, 0.05, &bound);
    assert_true(bound.vacuous && bound.vacuous_s && bound.mean_shortfall.lo == 0 && bound.mean_shortfall.hi == 1);
    const double risks[] = {0, 1, -1, 2, NAN};
    sum = (struct hm_fidelity_sum){.sequences = 100000};
    for (size_t i = 0; i < 5; i++) {
        hm_fidelity_bound(&sum, risks[i], &bound);
        assert_true(bound.vacuous && bound.hoeffding == 1 && bound.bernstein == 1 && !bound.vacuous_s);
    }
    sequence = HM_SEQUENCE_START; // a ratio of 0 stays 0
    hm_sequence_add(&sequence, point(1), point(0));
    hm_sequence_add(&sequence, point(0), point(1e300));
    assert_true(sequence.log_w.hi == -INFINITY && sequence.s.lo == 1 && sequence.steps == 2);
}

static void the_uniform_bound_is_sharp(void **state)
{
    (void)state;
    static const double shares[] = {0x1p-80, 1e-6, 0.01, 0.25, 0.5, 0.999};
    static const uint64_t lengths[] = {1, 2, 17, 500};
    for (size_t i = 0; i < 6; i++) {
        for (size_t j = 0; j < 4; j++) { // o and p share 1 - e at each step, and are disjoint else: TV = 1 - (1-e)^L
            struct hm_ival bound = hm_sequence_uniform(point(shares[i]), lengths[j]);
            mpfr_t x;
            mpfr_init2(x, 400);
            mpfr_set_d(x, shares[i], MPFR_RNDN);
            mpfr_ui_sub(x, 1, x, MPFR_RNDN);
            mpfr_pow_ui(x, x, lengths[j], MPFR_RNDN);
            mpfr_ui_sub(x, 1, x, MPFR_RNDN);
            assert_true(mpfr_cmp_d(x, bound.lo) >= 0 && mpfr_cmp_d(x, bound.hi) <= 0 && bound.hi - bound.lo <= 1e-13 * bound.hi);
            mpfr_clear(x);
        }
    }
    assert_true(hm_sequence_uniform(point(0), 10).hi == 0 && hm_sequence_uniform(point(1), 3).lo == 1);
    assert_true(hm_sequence_uniform(point(0.5), 0).hi == 0 && hm_sequence_uniform(point(0.5), UINT64_MAX).hi == 1);
    struct hm_ival open = hm_sequence_uniform((struct hm_ival){-1, 2}, 3);
    assert_true(open.lo == 0 && open.hi == 1);
}

static void failures_are_paid_for(void **state)
{
    (void)state;
    struct random r = seeded("failures");
    struct hm_failure_sum sums[3] = {{0}};
    static const char *const rules[] = {"greedy", "topm:2", "additive:1/10", "nucleus:1/2"};
    for (size_t n = 0; n < rounds(600); n++) {
        float l[6], d[6];
        for (size_t i = 0; i < 6; i++) l[i] = (float)gauss(&r), d[i] = l[i] + (float)(0.7 * gauss(&r));
        struct hm_row *p = open_row(l, 6, "1"), *q = open_row(d, 6, "1");
        struct hm_claim c = make_claim(rules[n % 4], p, q, 1 + n % 2);
        struct hm_row_distance v;
        struct hm_error err;
        assert_int_equal(hm_row_distance(p, q, &v, &err), HM_OK);
        hm_failure_add(&sums[0], v.kl_pq, c.level.klf, c.covered == HM_YES);
        hm_failure_add(&sums[1], v.kl_qp, c.level.klr, c.covered == HM_YES);
        hm_failure_add(&sums[2], v.tv, c.level.tv, c.covered == HM_YES);
        for (int i = 0; i < 3; i++) assert_true((double)sums[i].failures <= sums[i].bound.hi); // on every run, at any time
        hm_row_close(p);
        hm_row_close(q);
    }
    assert_true(sums[0].failures > 20 && sums[0].bound.hi < (double)sums[0].steps && sums[0].steps == rounds(600));
    struct hm_failure_sum sum = {0};
    hm_failure_add(&sum, point(0), point(0), true);               // 1
    hm_failure_add(&sum, point(3), point(INFINITY), true);        // 0
    hm_failure_add(&sum, point(INFINITY), point(INFINITY), true); // 1
    hm_failure_add(&sum, point(INFINITY), point(2), true);        // 1
    hm_failure_add(&sum, point(0.5), point(2), true);             // 1/4
    hm_failure_add(&sum, point(5), point(2), true);               // 1
    assert_true(sum.bound.lo == 4.25 && sum.bound.hi == 4.25 && sum.failures == 0 && sum.steps == 6);
}

static void markov_is_the_best_threshold(void **state)
{
    (void)state;
    struct random r = seeded("thresholds");
    for (size_t n = 0; n < rounds(200); n++) {
        double levels[20], divergences = 0, at;
        size_t count = 1 + below(&r, 20), failures = 0;
        for (size_t i = 0; i < count; i++) {
            levels[i] = below(&r, 6) ? uniform(&r) : below(&r, 2) ? 0 : INFINITY;
            double d = 0.2 * uniform(&r);
            divergences += d;
            failures += d >= levels[i]; // the worst drafter fails whenever it may
        }
        double mean = divergences / (double)count, bound = hm_failure_markov(levels, count, mean * (1 + 1e-12), &at), best = 1;
        for (double s = 1e-4; s < 1.5; s += 1e-4) {
            size_t under = 0;
            for (size_t i = 0; i < count; i++) under += levels[i] < s;
            best = fmin(best, (double)under / (double)count + mean / s);
        }
        assert_true(bound <= best + 1e-9 && bound >= (double)failures / (double)count);
        size_t under = 0;
        for (size_t i = 0; i < count; i++) under += levels[i] < at;
        if (bound < 1) assert_true(fabs((double)under / (double)count + mean / at - bound) < 1e-9);
        else assert_true(at == INFINITY);
    }
    double bad[] = {NAN, 1, -3}, at;
    assert_true(hm_failure_markov(bad, 3, 0.1, &at) <= 1 && hm_failure_markov(bad, 3, NAN, &at) == 1 && at == INFINITY);
    assert_true(hm_failure_markov(bad, 0, 0, &at) == 1 && hm_failure_markov(bad, 3, INFINITY, &at) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_clip),
        cmocka_unit_test(bounds_hold_on_every_decoder),
        cmocka_unit_test(finite_samples_cover),
        cmocka_unit_test(bounds_are_outward),
        cmocka_unit_test(nothing_known_is_vacuous),
        cmocka_unit_test(the_uniform_bound_is_sharp),
        cmocka_unit_test(failures_are_paid_for),
        cmocka_unit_test(markov_is_the_best_threshold),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
