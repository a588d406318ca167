// What relaxation costs whole sequences (reports/course.h): the mean course against sums worked directly, at every width
// of the bins; sums that are never clipped; sequences that were cut.
#include "reports/course.h"

#include "tests/seed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SEQUENCES = 9, LONGEST = 3000 };

static struct hm_record_step a_step(int64_t t, double e, double ratio, double regret)
{
    return (struct hm_record_step){.t = t,
                                   .has_e = true,
                                   .e = {e, e},
                                   .ratio = {ratio, ratio},
                                   .has_regret = true,
                                   .regret = {regret, regret}};
}

// Sums of every sequence by token, in long doubles, carried on where it has ended.
struct direct {
    long double e[LONGEST + 1], shortfall[LONGEST + 1], regret[LONGEST + 1];
};

static void add_sequence(struct hm_report_course *c, struct direct *d, uint64_t *state, int length)
{
    long double e = 0, w = 1, regret = 0;
    for (int t = 0; t < LONGEST; t++) {
        if (t < length) {
            double own = (double)(test_random(state) % 8) / 64, r = (double)(test_random(state) % 1000) / 500;
            double ratio = 1 - (double)(test_random(state) % 9) / 256 + (test_random(state) % 3 == 0) * 0.0625;
            struct hm_record_step step = a_step(t, own, ratio, r);
            hm_course_step(c, &step);
            e += own;
            w *= ratio;
            regret += r;
        }
        d->e[t + 1] += e;
        d->shortfall[t + 1] += w < 1 ? 1 - w : 0;
        d->regret[t + 1] += regret;
    }
}

// An upper end is one, and near.
static void check_upper(double found, long double expected, const char *what, uint64_t tokens)
{
    if (!(found >= (double)expected * (1 - 1e-12)) || !(found <= (double)expected + 1e-9 + 1e-11 * (double)expected))
        fail_msg("%s after %llu tokens: expected %.17Lg, found %.17g", what, (unsigned long long)tokens, expected, found);
}

static void the_mean_course_is_the_mean(void **unused)
{
    (void)unused;
    uint64_t state = test_seed("report_course");
    int rounds = (int)test_count(4, 12, 200);
    struct hm_report_course *c = malloc(sizeof *c);
    struct direct *d = malloc(sizeof *d);
    assert_true(c && d);
    for (int round = 0; round < rounds; round++) {
        *c = (struct hm_report_course){0};
        *d = (struct direct){0};
        struct hm_course_group category = {0}, log = {0};
        int n = 1 + (int)(test_random(&state) % SEQUENCES), longest = 0;
        for (int i = 0; i < n; i++) {
            int length = 1 + (int)(test_random(&state) % (round % 3 ? LONGEST : 200));
            if (length > longest) longest = length;
            add_sequence(c, d, &state, length);
            hm_course_end(c, true, i % 2 ? &category : NULL, &log);
        }
        struct hm_course_point points[HM_COURSE_BINS];
        size_t count = hm_course_points(c, points);
        assert_true(count > 0 && count <= HM_COURSE_BINS);
        assert_true(points[count - 1].tokens >= (uint64_t)longest);
        for (size_t i = 0; i < count; i++) {
            size_t t = points[i].tokens < LONGEST ? (size_t)points[i].tokens : LONGEST;
            check_upper(points[i].e, d->e[t] / n, "sum of e", points[i].tokens);
            check_upper(points[i].shortfall, d->shortfall[t] / n, "shortfall", points[i].tokens);
            check_upper(points[i].regret, d->regret[t] / n, "regret", points[i].tokens);
        }
        assert_int_equal(log.fidelity.sequences, n);
        assert_int_equal(category.fidelity.sequences, n / 2);
        assert_int_equal(log.regret.count, n);
    }
    free(c);
    free(d);
}

// Two laws with e_1 = 1/2 that are disjoint on the branch taken half the time: the mean of S is 1, not 3/4 (theory.md §5).
static void sums_are_never_clipped(void **unused)
{
    (void)unused;
    struct hm_report_course *c = calloc(1, sizeof *c);
    struct hm_course_group all = {0};
    struct hm_fidelity f;
    assert_non_null(c);
    for (int i = 0; i < 2; i++) {
        struct hm_record_step first = a_step(0, 0.5, i ? 2 : 1, 0), second = a_step(1, i, i ? 0 : 1, 0);
        hm_course_step(c, &first);
        hm_course_step(c, &second);
        struct hm_course course = hm_course_end(c, true, &all, NULL);
        assert_true(course.has_e && course.s.lo == (i ? 1.5 : 0.5) && course.s.hi == course.s.lo);
        assert_true(course.shortfall.hi == (i ? 1 : 0));
    }
    hm_fidelity_bound(&all.fidelity, 0.025, &f);
    assert_true(f.mean_s.lo <= 1 && f.mean_s.hi >= 1 && f.vacuous_s);
    assert_true(f.mean_shortfall.lo <= 0.5 && f.mean_shortfall.hi >= 0.5 && f.vacuous);
    free(c);
}

static void what_was_cut_stays_out(void **unused)
{
    (void)unused;
    struct hm_report_course *c = calloc(1, sizeof *c);
    struct hm_course_group all = {0};
    struct hm_course_point points[HM_COURSE_BINS];
    assert_non_null(c);
    struct hm_record_step step = a_step(0, 0.5, 0.5, 3);
    hm_course_step(c, &step);
    struct hm_course cut = hm_course_end(c, false, &all, &all);
    assert_true(cut.has_e && cut.regret.hi == 3); // it is told of the sequence itself
    assert_true(all.fidelity.sequences == 0 && all.regret.count == 0);
    assert_int_equal(hm_course_points(c, points), 0);
    struct hm_course none = hm_course_end(c, true, &all, &all); // without e and regret there is nothing to say
    assert_true(!none.has_e && !none.has_regret && all.fidelity.sequences == 0);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_mean_course_is_the_mean),
                                       cmocka_unit_test(sums_are_never_clipped),
                                       cmocka_unit_test(what_was_cut_stays_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
