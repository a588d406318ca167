// Means with tasks of equal weight, their bootstrap over prompts, and the figures made of them.
#include "study/figure.h"
#include "tests/seed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void add(struct hm_sample *s, const char *task, const char *prompt, size_t series, double value)
{
    size_t at;
    assert_int_equal(hm_sample_prompt(s, task, prompt, &at, NULL), HM_OK);
    hm_sample_add(s, at, series, value);
    assert_false(s->failed);
}

static void tasks_have_equal_weight(void **state)
{
    (void)state;
    struct hm_sample s = {0};
    double *mean;
    size_t x = hm_sample_series(&s, 2);
    add(&s, "long", "a", x, 1);
    add(&s, "long", "a", x, 2);
    add(&s, "long", "b", x, 6);
    add(&s, "short", "a", x, 11); // another prompt: it is another task's
    add(&s, "short", "a", x + 1, 5);
    assert_int_equal(s.prompts, 3);
    assert_int_equal(hm_sample_means(&s, 0, 0, &mean, NULL), HM_OK);
    assert_true(mean[x] == (3.0 + 11.0) / 2); // rounds have equal weight within a task
    assert_true(mean[x + 1] == 5);            // tasks without such rounds do not count
    free(mean);
    size_t nothing = hm_sample_series(&s, 1);
    assert_int_equal(hm_sample_means(&s, 3, 0, &mean, NULL), HM_OK);
    assert_true(isnan(mean[nothing]) && isnan(mean[2 * s.series + nothing]));
    free(mean);
    hm_sample_clear(&s);
}

static void the_seed_decides(void **state)
{
    (void)state;
    struct hm_sample s = {0};
    double *a, *b, *c;
    uint64_t random = test_seed("bootstrap");
    size_t x = hm_sample_series(&s, 1), differ = 0;
    for (int i = 0; i < 40; i++) {
        char prompt[8];
        snprintf(prompt, sizeof prompt, "%d", i);
        add(&s, i % 3 ? "one" : "two", prompt, x, test_signed(&random));
    }
    assert_int_equal(hm_sample_means(&s, 200, 5, &a, NULL), HM_OK);
    assert_int_equal(hm_sample_means(&s, 200, 5, &b, NULL), HM_OK);
    assert_int_equal(hm_sample_means(&s, 200, 6, &c, NULL), HM_OK);
    assert_memory_equal(a, b, 201 * sizeof *a);
    assert_true(a[0] == c[0]);
    for (size_t i = 1; i <= 200; i++) differ += a[i] != c[i];
    assert_true(differ > 190);
    free(a);
    free(b);
    free(c);
    hm_sample_clear(&s);
}

// Whole prompts are drawn, within tasks: with two prompts of one task a resample's mean is one of three values, with the
// odds 1 : 2 : 1, and a task of one prompt never varies.
static void prompts_are_drawn_within_tasks(void **state)
{
    (void)state;
    struct hm_sample s = {0};
    double *mean;
    size_t x = hm_sample_series(&s, 1), low = 0, middle = 0, high = 0;
    add(&s, "two prompts", "a", x, 0);
    add(&s, "two prompts", "a", x, 0);
    add(&s, "two prompts", "b", x, 6);
    add(&s, "one prompt", "a", x, 10);
    assert_int_equal(hm_sample_means(&s, 4000, 1, &mean, NULL), HM_OK);
    for (size_t i = 1; i <= 4000; i++) {
        low += mean[i] == 5;
        middle += mean[i] == 6;
        high += mean[i] == 8;
    }
    assert_int_equal(low + middle + high, 4000);
    assert_in_range(low, 850, 1150);   // 1,000 expected, sd 27: five and more of them
    assert_in_range(high, 850, 1150);
    free(mean);
    hm_sample_clear(&s);
}

static void figures_are_their_formulas(void **state)
{
    (void)state;
    //                      curve a              curve c           levels
    const double mean[] = {0, 1, 1.5, 1.5, 3,   10, 20, 30, 30, 50,   1.25, 1.5, 4, NAN};
    struct hm_figure f = {.kind = HM_FIGURE_DIFFERENCE, .a = 4, .b = 1};
    assert_true(hm_figure_value(&f, mean) == 2);
    f = hm_figure_share(2, 1, 4);
    assert_true(hm_figure_value(&f, mean) == 0.25);
    f = hm_figure_share(2, 3, 3);
    assert_true(isnan(hm_figure_value(&f, mean)));
    static const struct {
        size_t level;
        double reach, cap, at;
    } cases[] = {{10, 2, 1.5, 25}, {11, 2, 2, 30}, {12, INFINITY, INFINITY, 50}, {0, 0, 0, 10}};
    for (size_t i = 0; i < 4; i++) {
        f = (struct hm_figure){.kind = HM_FIGURE_REACH, .a = 0, .b = cases[i].level, .c = 5, .d = 12, .length = 5};
        assert_true(hm_figure_value(&f, mean) == cases[i].reach);
        f.kind = HM_FIGURE_CAP;
        assert_true(hm_figure_value(&f, mean) == cases[i].cap);
        f.kind = HM_FIGURE_AT_CAP;
        assert_true(hm_figure_value(&f, mean) == cases[i].at);
        f.kind = HM_FIGURE_BEYOND_CAP;
        assert_true(hm_figure_value(&f, mean) == 4 - cases[i].at);
    }
    f = (struct hm_figure){.kind = HM_FIGURE_REACH, .a = 0, .b = 13, .length = 5};
    assert_true(isnan(hm_figure_value(&f, mean)));
}

static void intervals_hold_the_middle_95_percent(void **state)
{
    (void)state;
    double means[1002], scratch[1001], value, low, high;
    for (int i = 0; i <= 1001; i++) means[i] = (double)((i * 389) % 1001); // 0 to 1000 in disorder after the value
    means[0] = -7;
    struct hm_figure f = hm_figure_mean(0);
    hm_figure_interval(&f, means, 1001, 1, scratch, &value, &low, &high);
    assert_true(value == -7 && low == 25 && high == 975);
    for (int i = 1; i <= 1001; i++) means[i] = i == 500 ? 3 : NAN;
    hm_figure_interval(&f, means, 1001, 1, scratch, &value, &low, &high);
    assert_true(low == 3 && high == 3); // what says nothing is left out
    for (int i = 1; i <= 1001; i++) means[i] = i % 2 ? INFINITY : 3;
    hm_figure_interval(&f, means, 1001, 1, scratch, &value, &low, &high);
    assert_true(low == 3 && isinf(high));
    hm_figure_interval(&f, means, 0, 1, scratch, &value, &low, &high);
    assert_true(isnan(low) && isnan(high));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_have_equal_weight),
        cmocka_unit_test(the_seed_decides),
        cmocka_unit_test(prompts_are_drawn_within_tasks),
        cmocka_unit_test(figures_are_their_formulas),
        cmocka_unit_test(intervals_hold_the_middle_95_percent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
