// Draft vocabularies smaller than the target's (theory.md §4): the three certificates on the support of the draft, against
// the definition, against drafts that fail there, and at their equalities.
#include "certify/certificate_state.h"
#include "tests/certify_rows.h"

#include <mpfr.h>

enum { LARGEST = 9 };

static struct hm_claim claim_of(const float *l, const float *d, size_t vocab, size_t k, size_t m, struct hm_row_distance *distance)
{
    char rule[32];
    snprintf(rule, sizeof rule, "topm:%zu", k);
    struct hm_row *p = open_row(l, vocab, "1"), *q = open_row(d, vocab, "1");
    struct hm_error err;
    struct hm_claim claim = make_claim(rule, p, q, m);
    if (distance) assert_int_equal(hm_row_distance(p, q, distance, &err), HM_OK);
    hm_row_close(p);
    hm_row_close(q);
    return claim;
}

static void shares(const float *l, size_t n, long double *out)
{
    long double sum = 0;
    for (size_t i = 0; i < n; i++) sum += out[i] = expl(l[i]);
    for (size_t i = 0; i < n; i++) out[i] /= sum;
}

// p, D's tokens in order, and the law that attains the TV bound, in long double.
struct problem {
    size_t vocab, size, k, m; // of D: how many, |A cap D|, S
    float l[LARGEST];
    size_t order[LARGEST];
    long double p[LARGEST], mass, level, bound;
};

static long double gained(const struct problem *x, long double t)
{
    long double sum = 0;
    for (size_t i = x->k; i < x->k + x->m; i++) sum += fmaxl(0, t - x->p[x->order[i]]);
    return sum;
}

static long double lost(const struct problem *x, long double t)
{
    long double sum = 1 - x->mass;
    for (size_t i = 0; i < x->k; i++) sum += fmaxl(0, x->p[x->order[i]] - t);
    return sum;
}

static size_t draw_problem(struct random *r, struct problem *x)
{
    bool in[LARGEST];
    *x = (struct problem){.vocab = 3 + below(r, LARGEST - 2)};
    for (size_t i = 0; i < x->vocab; i++) x->l[i] = below(r, 4) ? (float)(1.5 * gauss(r)) : (float)below(r, 3);
    for (size_t i = 0; i < x->vocab; i++) in[i] = below(r, 3) > 0;
    in[0] = true;
    in[1] = true;
    in[2] = false;
    if (below(r, 6) == 0) x->l[below(r, 2)] = -INFINITY;
    shares(x->l, x->vocab, x->p);
    for (size_t i = 0; i < x->vocab; i++) {
        if (!in[i]) continue;
        size_t at = x->size++;
        for (; at > 0 && x->l[x->order[at - 1]] < x->l[i]; at--) x->order[at] = x->order[at - 1];
        x->order[at] = i;
        x->mass += x->p[i];
    }
    x->k = 1 + below(r, x->size - 1);
    x->m = 1 + below(r, x->size - x->k);
    long double low = 0, high = 1;
    for (int step = 0; step < 200; step++) {
        x->level = (low + high) / 2;
        if (gained(x, x->level) < lost(x, x->level)) low = x->level;
        else high = x->level;
    }
    x->bound = lost(x, x->level);
    // |A| on the whole vocabulary such that k of D's tokens are in it
    size_t whole = 0, last = x->order[x->k - 1];
    for (size_t i = 0; i < x->vocab; i++) whole += x->l[i] > x->l[last] || (x->l[i] == x->l[last] && i <= last);
    return whole;
}

static void assert_near(const char *what, struct hm_ival v, long double x)
{
    if (x == INFINITY ? v.lo != INFINITY : !(v.lo <= x + 1e-13L * (1 + x) && v.hi >= x - 1e-13L * (1 + x) && is_narrow(v)))
        fail_msg("%s: %.17Lg against [%.17g, %.17g]", what, x, v.lo, v.hi);
}

static void figures_are_the_definitions(void **state)
{
    (void)state;
    struct random r = seeded("figures");
    for (size_t n = 0; n < rounds(400); n++) {
        struct problem x;
        size_t whole = draw_problem(&r, &x);
        float d[LARGEST], part[LARGEST];
        long double q[LARGEST], kl = 0;
        for (size_t i = 0; i < x.vocab; i++) d[i] = -INFINITY;
        for (size_t i = 0; i < x.size; i++) d[x.order[i]] = x.l[x.order[i]] == -INFINITY ? -1 : x.l[x.order[i]] + (float)(0.5 * gauss(&r));
        struct hm_row_distance distance;
        struct hm_claim c = claim_of(x.l, d, x.vocab, whole, x.m, &distance);
        struct hm_restricted *f = &c.restricted;
        assert_true(c.has_restricted && f->k == x.k && !f->vacuous && !f->no_mass);
        assert_near("mass", f->mass, x.mass);
        shares(d, x.vocab, q);
        for (size_t i = 0; i < x.size; i++)
            if (x.p[x.order[i]] > 0) kl += x.p[x.order[i]] / x.mass * logl(x.p[x.order[i]] / x.mass / q[x.order[i]]);
        assert_near("kl", f->kl, kl);
        assert_near("tv", f->level.tv, x.bound);
        // p_D as a row of its own has the levels of theory.md §2
        for (size_t i = 0; i < x.size; i++) part[i] = x.l[x.order[i]];
        struct hm_row *row = open_row(part, x.size, "1");
        struct hm_level level;
        struct hm_error err;
        assert_int_equal(hm_level_make(row, x.k, x.m, &level, NULL, &err), HM_OK);
        assert_near("klf", f->level.klf, level.klf.lo);
        assert_near("klr", f->level.klr, level.klr.lo - logl(x.mass));
        assert_near("level", f->level.level_f, level.level_f.lo);
        assert_true(f->level.tied_f[0] == level.tied_f[0] && f->level.tied_r[1] == level.tied_r[1]);
        assert_true(c.vacuous || f->level.klr.hi >= c.level.klr.lo); // never below the whole vocabulary's
        hm_row_close(row);
    }
}

// A draft on D that fails weakly there, at or near the law that attains one of the bounds, or anywhere.
static void adversary(struct random *r, const struct problem *x, float *d)
{
    double noise = below(r, 3) ? 0 : below(r, 2) ? 1e-6 : 1;
    size_t kind = below(r, 3); // arithmetic level of p_D, geometric, TV
    long double level = x->level, logs = 0;
    if (kind == 1) {
        for (size_t i = 0; i < x->k + x->m; i++) logs += logl(fmaxl(x->p[x->order[i]], 1e-9L));
        level = expl(logs / (long double)(x->k + x->m));
    } else if (kind == 0) {
        for (size_t i = 0; i < x->k + x->m; i++) logs += x->p[x->order[i]];
        level = logs / (long double)(x->k + x->m);
    }
    for (size_t i = 0; i < x->vocab; i++) d[i] = -INFINITY;
    float top = -INFINITY;
    for (size_t rank = 0; rank < x->size; rank++) {
        size_t i = x->order[rank];
        long double q = rank < x->k ? fminl(x->p[i], level) : rank < x->k + x->m ? fmaxl(x->p[i], level) : x->p[i];
        d[i] = (float)(logl(fmaxl(q, 1e-12L)) + noise * gauss(r));
        if (rank < x->k) top = fmaxf(top, d[i]);
    }
    size_t above = 0;
    for (size_t rank = x->k; rank < x->size; rank++) above += d[x->order[rank]] >= top;
    for (size_t rank = x->k; rank < x->size && above < x->m; rank++)
        if (d[x->order[rank]] < top) d[x->order[rank]] = top, above++;
}

static void no_failing_draft_is_certified(void **state)
{
    (void)state;
    struct random r = seeded("adversaries");
    size_t close[3] = {0};
    for (size_t n = 0; n < rounds(3000); n++) {
        struct problem x;
        size_t whole = draw_problem(&r, &x);
        float d[LARGEST];
        adversary(&r, &x, d);
        struct hm_row_distance v;
        struct hm_claim c = claim_of(x.l, d, x.vocab, whole, x.m, &v);
        const struct hm_restricted *f = &c.restricted;
        const struct hm_ival values[3] = {f->kl, v.kl_qp, v.tv}, bounds[3] = {f->level.klf, f->level.klr, f->level.tv};
        for (int i = 0; i < 3; i++) {
            assert_int_equal(f->k, x.k);
            if (f->certified[i] != HM_CERT_NO || values[i].hi < bounds[i].lo)
                fail_msg("%d: %.17g against %.17g, verdict %d", i, values[i].hi, bounds[i].lo, (int)f->certified[i]);
            close[i] += values[i].lo < bounds[i].hi * 1.000001;
        }
    }
    print_message("within 10^-6 of the bound: %zu, %zu, %zu\n", close[0], close[1], close[2]);
    for (int i = 0; i < 3; i++) assert_true(close[i] > 20);
}

static void certified_drafts_cover(void **state)
{
    (void)state;
    struct random r = seeded("certified");
    size_t certified[3] = {0}, forward_only = 0;
    for (size_t n = 0; n < rounds(600); n++) {
        struct problem x;
        size_t whole = draw_problem(&r, &x);
        float d[LARGEST];
        double noise = below(&r, 2) ? 0.05 : 0.5;
        for (size_t i = 0; i < x.vocab; i++) d[i] = -INFINITY;
        for (size_t i = 0; i < x.size; i++) d[x.order[i]] = (float)(fmax(x.l[x.order[i]], -9) + noise * gauss(&r));
        struct hm_claim c = claim_of(x.l, d, x.vocab, whole, x.m, NULL);
        for (int i = 0; i < 3; i++) {
            certified[i] += c.restricted.certified[i] == HM_CERT_YES;
            assert_true(c.restricted.certified[i] != HM_CERT_UNDECIDED);
            if (c.restricted.certified[i] == HM_CERT_YES) assert_int_equal(c.covered, HM_YES);
            if (c.certified[i] == HM_CERT_YES && i > 0) assert_int_equal(c.restricted.certified[i], HM_CERT_YES); // no loss
        }
        forward_only += c.restricted.certified[0] == HM_CERT_YES && c.certified[0] != HM_CERT_YES;
    }
    assert_true(certified[0] > 50 && certified[1] > 50 && certified[2] > 20 && forward_only > 50);
}

static void expect(struct hm_claim c, enum hm_certified forward, enum hm_certified reverse, enum hm_certified tv)
{
    const enum hm_certified *v = c.restricted.certified;
    if (v[0] != forward || v[1] != reverse || v[2] != tv) fail_msg("verdicts %d %d %d", (int)v[0], (int)v[1], (int)v[2]);
}

// TV(p, q) >= 1 - p(D) for every q, so a bound that is no more is never met, however close arithmetic makes it.
static void what_lies_outside_may_be_too_much(void **state)
{
    (void)state;
    float l[] = {1, 0.75f, 0, 3}, d[] = {1, 0.75f, 0, -INFINITY};
    expect(claim_of(l, d, 4, 2, 1, NULL), HM_CERT_YES, HM_CERT_YES, HM_CERT_NO); // q is p_D: TV = 1 - p(D) = the bound
    float most[] = {1, 0.75f, 0, -3};
    expect(claim_of(most, d, 4, 1, 1, NULL), HM_CERT_YES, HM_CERT_YES, HM_CERT_YES); // 1 - p(D) is small against the gap
    float flat[] = {0, 0, -INFINITY, 0}, half[] = {0, -1, 0, -INFINITY}; // sum_S (p_1 - p_s) = 1 - p(D) exactly
    struct hm_claim c = claim_of(flat, half, 4, 1, 2, NULL);
    assert_int_equal(c.restricted.k, 1);
    expect(c, HM_CERT_NO, HM_CERT_NO, HM_CERT_NO);
    assert_near("bound", c.restricted.level.tv, 1.0L / 3);
}

static void equalities_are_no(void **state)
{
    (void)state;
    // q uniform on D, all of which is tied: forward and TV are attained
    float l[] = {2, 0.25f, -1, -2}, d[] = {0, 0, 0, -INFINITY};
    struct hm_row_distance v;
    struct hm_claim c = claim_of(l, d, 4, 1, 2, &v);
    expect(c, HM_CERT_NO, HM_CERT_NO, HM_CERT_NO);
    assert_true(c.restricted.kl.lo <= c.restricted.level.klf.hi && c.restricted.kl.hi >= c.restricted.level.klf.lo);
    assert_true(v.tv.lo <= c.restricted.level.tv.hi && v.tv.hi >= c.restricted.level.tv.lo);
    // the geometric witness of p_D
    float geometric[] = {0.5f, 0.5f, -2, -INFINITY}, p[] = {1, 0, -2, 4};
    c = claim_of(p, geometric, 4, 2, 1, &v);
    assert_int_equal(c.restricted.certified[1], HM_CERT_NO);
    assert_true(v.kl_qp.lo <= c.restricted.level.klr.hi && v.kl_qp.hi >= c.restricted.level.klr.lo);
    geometric[1] = nextafterf(0.5f, 0);
    c = claim_of(p, geometric, 4, 2, 1, &v);
    assert_int_equal(c.restricted.certified[1], HM_CERT_YES);
    // p and q uniform: rationals, none undecided
    size_t equal = 0;
    for (size_t kept = 1; kept <= 8; kept++) {
        for (size_t more = 0; more <= 5; more++) { // empty tokens in D
            for (size_t k = 1; k <= kept; k++) {
                float flat[14], draft[14];
                for (size_t i = 0; i < 14; i++) flat[i] = i < 8 ? 0 : -INFINITY;
                for (size_t i = 0; i < 14; i++) draft[i] = i < kept || (i >= 8 && i < 8 + more) ? 0 : -INFINITY;
                for (size_t m = 1; k + m <= kept + more; m++) {
                    c = claim_of(flat, draft, 14, k, m, &v);
                    assert_true(c.restricted.k == k && !c.restricted.vacuous);
                    for (int i = 0; i < 3; i++) assert_true(c.restricted.certified[i] <= HM_CERT_YES);
                    equal += v.tv.lo > 0 && v.tv.lo <= c.restricted.level.tv.hi && v.tv.hi >= c.restricted.level.tv.lo;
                }
            }
        }
    }
    assert_true(equal > 10);
}

static void words_and_ends(void **state)
{
    (void)state;
    float l[] = {3, 2, 1, -INFINITY}, one[] = {-INFINITY, 0, -INFINITY, -INFINITY}, empty[] = {-INFINITY, -INFINITY, -INFINITY, 0},
          two[] = {-INFINITY, 1, 0, -INFINITY}, full[] = {1, 2, 3, 4};
    struct hm_claim c = claim_of(l, one, 4, 1, 1, NULL); // no accepted token in D
    assert_true(c.has_restricted && c.restricted.k == 0 && !c.restricted.vacuous && c.restricted.level.klf.hi == 0);
    expect(c, HM_CERT_NO, HM_CERT_NO, HM_CERT_NO);
    c = claim_of(l, one, 4, 2, 1, NULL); // D is one accepted token
    assert_true(c.restricted.k == 1 && c.restricted.vacuous && c.restricted.kl.hi == 0 && c.restricted.level.tv.lo == INFINITY);
    expect(c, HM_CERT_VACUOUS, HM_CERT_VACUOUS, HM_CERT_VACUOUS);
    assert_near("mass", c.restricted.mass, expl(-1) / (1 + expl(-1) + expl(-2)));
    c = claim_of(l, empty, 4, 2, 1, NULL);
    assert_true(c.restricted.no_mass && c.restricted.k == 0);
    expect(c, HM_CERT_NO, HM_CERT_NO, HM_CERT_NO);
    c = claim_of(l, two, 4, 2, 2, NULL);
    assert_true(c.restricted.k == 1 && c.restricted.vacuous);
    c = claim_of(l, full, 4, 2, 1, NULL);
    assert_false(c.has_restricted);
    float all[] = {1, 0, -1, -INFINITY}; // D is the support of p: nothing is lost, exactly
    c = claim_of(l, all, 4, 1, 1, NULL);
    assert_true(c.restricted.mass.lo == 1 && c.restricted.level.klr.lo <= c.level.klr.hi && c.level.klr.lo <= c.restricted.level.klr.hi);
    assert_true(c.restricted.level.tv.lo <= c.level.tv.hi && c.level.tv.lo <= c.restricted.level.tv.hi);
    expect(c, c.certified[0], c.certified[1], c.certified[2]);
    float far[] = {3000, 1, 0, -0.5f}, rest[] = {-INFINITY, 1, 0, -0.5f}; // p(D) of about e^-3000
    c = claim_of(far, rest, 4, 2, 1, NULL);
    assert_true(c.restricted.k == 1 && is_narrow(c.restricted.mass) && c.restricted.level.klr.lo > 2998);
    expect(c, HM_CERT_YES, HM_CERT_YES, HM_CERT_NO);
}

// Children that are not the first of q, and |A| undecided, come before everything else.
static void precedence(void **state)
{
    (void)state;
    struct hm_row *p = open_row((float[]){3, 2, 1, 0}, 4, "1"), *q = open_row((float[]){3, 2, 1, -INFINITY}, 4, "1");
    struct hm_rule rule = parse_rule("topm:1");
    struct hm_row_distance distance;
    struct hm_claim c;
    struct hm_error err;
    int32_t children[] = {1};
    assert_int_equal(hm_row_distance(p, q, &distance, &err), HM_OK);
    struct hm_claim_query query = {.rule = &rule, .target = p, .draft = q, .distance = &distance, .token = -1, .m = 1,
                                   .children = children};
    assert_int_equal(hm_claim_make(&query, &c, &err), HM_OK);
    expect(c, HM_CERT_INAPPLICABLE, HM_CERT_INAPPLICABLE, HM_CERT_INAPPLICABLE);
    assert_true(c.restricted.level.klf.lo > 0);
    struct hm_restricted r;
    assert_int_equal(hm_claim_restrict(&query, 1, HM_CERT_UNDECIDED, &r, &err), HM_OK);
    assert_true(r.certified[0] == HM_CERT_UNDECIDED && r.certified[2] == HM_CERT_UNDECIDED);
    hm_rule_clear(&rule);
    hm_row_close(p);
    hm_row_close(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_the_definitions),
        cmocka_unit_test(no_failing_draft_is_certified),
        cmocka_unit_test(certified_drafts_cover),
        cmocka_unit_test(what_lies_outside_may_be_too_much),
        cmocka_unit_test(equalities_are_no),
        cmocka_unit_test(words_and_ends),
        cmocka_unit_test(precedence),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
