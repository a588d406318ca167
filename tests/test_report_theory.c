// The report's figures on bounds and laws (reports/theory.h), worked by hand from records made here.
#include "reports/theory.h"

#include "base/memory.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct hm_ival around(double x)
{
    return (struct hm_ival){nextafter(x, -INFINITY), nextafter(x, INFINITY)};
}

static struct hm_record_claim a_claim(double klf, double klr, double tv, enum hm_verdict covered, enum hm_certified word)
{
    return (struct hm_record_claim){.has_verdicts = true,
                                    .has_level = true,
                                    .has_distances = true,
                                    .level = {.klf = around(klf), .klr = around(klr), .tv = around(tv)},
                                    .covered = covered,
                                    .certified = {word, HM_CERT_NO, HM_CERT_NO}};
}

static const struct hm_record_header no_header;

// Two steps: one certified, one failure whose distance is twice its level.
static void failures(void **state)
{
    (void)state;
    struct hm_claim_theory *t = hm_calloc(1, sizeof *t);
    assert_non_null(t);
    struct hm_record_step step = {.has_draft = true, .kl_pq = around(0.25), .kl_qp = around(1), .tv = around(0.5)};
    struct hm_record_claim claim = a_claim(0.5, 0.5, 0.125, HM_YES, HM_CERT_YES);
    hm_theory_claim(t, &step, &claim, &no_header);
    claim = a_claim(0.125, 4, 1, HM_NO, HM_CERT_NO);
    hm_theory_claim(t, &step, &claim, &no_header);
    assert_int_equal(t->judged, 2);
    static const double bounds[3] = {0.25 / 0.5 + 1, 1 + 1.0 / 4, 1 + 0.5}; // min(1, D/D*), the second step's cut at 1
    for (int i = 0; i < 3; i++) {
        assert_int_equal(t->failure[i].failures, 1);
        assert_int_equal(t->failure[i].steps, 2);
        assert_true(t->failure[i].bound.lo <= bounds[i] && bounds[i] <= t->failure[i].bound.hi);
        assert_true(t->failure[i].bound.hi - t->failure[i].bound.lo < 1e-14);
    }
    free(t);
}

// A claim that does not apply, one without levels and one without a draft row judge nothing.
static void what_does_not_judge(void **state)
{
    (void)state;
    struct hm_claim_theory *t = hm_calloc(1, sizeof *t);
    assert_non_null(t);
    struct hm_record_step step = {.has_draft = true, .kl_pq = around(0.25), .kl_qp = around(1), .tv = around(0.5)};
    struct hm_record_claim claim = a_claim(0.5, 0.5, 0.125, HM_YES, HM_CERT_INAPPLICABLE);
    hm_theory_claim(t, &step, &claim, &no_header);
    claim = a_claim(0.5, 0.5, 0.125, HM_YES, HM_CERT_VACUOUS);
    claim.has_level = false;
    hm_theory_claim(t, &step, &claim, &no_header);
    claim = (struct hm_record_claim){.has_level = true, .has_distances = true};
    step.has_draft = false;
    hm_theory_claim(t, &step, &claim, &no_header);
    double at;
    assert_int_equal(t->judged, 0);
    assert_true(hm_theory_markov(t, &at) == 1 && at == 0);
    free(t);
}

// 100 steps with D* = 1 and 100 with D* = 4, mean D = 1/16: s = 1 gives 0/200 + 1/16, s = 4 gives 1/2 + 1/64.
static void markov(void **state)
{
    (void)state;
    struct hm_claim_theory *t = hm_calloc(1, sizeof *t);
    assert_non_null(t);
    struct hm_record_step step = {.has_draft = true, .kl_pq = {0.0625, 0.0625}, .kl_qp = around(1), .tv = around(0.5)};
    for (int i = 0; i < 200; i++) {
        struct hm_record_claim claim = a_claim(1, 1, 0.5, HM_YES, HM_CERT_YES);
        claim.level.klf.lo = i % 2 ? 1 : 4;
        hm_theory_claim(t, &step, &claim, &no_header);
    }
    double at, share = hm_theory_markov(t, &at);
    assert_true(at == 1 && share >= 0.0625 && share < 0.0625 + 1e-12);
    struct hm_record_claim infinite = a_claim(INFINITY, INFINITY, INFINITY, HM_YES, HM_CERT_NO);
    step.kl_pq = (struct hm_ival){INFINITY, INFINITY}; // an infinite mean bounds nothing
    hm_theory_claim(t, &step, &infinite, &no_header);
    assert_true(hm_theory_markov(t, &at) == 1);
    free(t);
}

// w = 1/2 in one of two finished sequences, e never clipped; a cut one is counted apart, one without e not at all.
static void sequences(void **state)
{
    (void)state;
    struct hm_report_theory *t = hm_calloc(1, sizeof *t);
    assert_non_null(t);
    struct hm_record_step relaxed = {.has_e = true, .e = {0.75, 0.75}, .ratio = {0.25, 0.25}};
    struct hm_record_step doubled = {.has_e = true, .e = {0.5, 0.5}, .ratio = {2, 2}};
    struct hm_record_step plain = {.has_e = true, .e = {0, 0}, .ratio = {1, 1}}, match = {0};
    hm_theory_step(t, &relaxed);
    hm_theory_step(t, &doubled);
    hm_theory_sequence_end(t, true); // S = 1.25, w = 1/2
    hm_theory_step(t, &plain);
    hm_theory_sequence_end(t, true); // S = 0, w = 1
    hm_theory_step(t, &relaxed);
    hm_theory_sequence_end(t, false);
    hm_theory_step(t, &match);
    hm_theory_sequence_end(t, true);
    struct hm_fidelity f;
    hm_fidelity_bound(&t->fidelity, 0.05, &f);
    assert_int_equal(t->fidelity.sequences, 2);
    assert_int_equal(t->unfinished, 1);
    assert_true(f.mean_s.lo <= 0.625 && 0.625 <= f.mean_s.hi);
    assert_true(f.mean_shortfall.lo <= 0.25 && 0.25 <= f.mean_shortfall.hi && f.mean_shortfall.hi < 0.25 + 1e-12);
    assert_true(f.hoeffding >= 1 && f.vacuous && !f.vacuous_s); // two sequences bound nothing
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(failures), cmocka_unit_test(what_does_not_judge),
                                       cmocka_unit_test(markov), cmocka_unit_test(sequences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
