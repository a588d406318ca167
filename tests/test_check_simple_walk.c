// The naive checker on random decodes of every kind of walk: true ones, whose numbers come from the closed forms of
// theory.md §5, are proved by its enumeration of the law; and each lie is refuted in the line where it stands.
#include "certify/check/simple/simple.h"
#include "tests/seed.h"
#include "tests/test_check_simple_scene.h"
#include "tests/test_check_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct scene scenes[] = {
    {"match", 0, false, false, "draft", "exhaustive", -1, 4, NULL, 0},
    {"match", 0, false, true, "draft", "leaf-stop", -1, 4, NULL, 0},
    {"match", 0, false, false, "draft", "leaf-stop", -1, 0, NULL, 0},
    {"match", 0, false, true, "root-draw", "exhaustive", -1, 0, NULL, 0},
    {"match", 0, false, false, "pearl", "exhaustive", -1, 2, NULL, 0},
    {"standard", 0, false, true, "draft", "exhaustive", -1, 0, NULL, 0},
    {"standard", 0, true, true, "draft", "cap:2", 2, 0, NULL, 0},
    {"standard", 0, true, true, "draft", "exhaustive", -1, 0, NULL, 0},
    {"nucleus:3/5", 6, false, true, "draft", "exhaustive", -1, 0, NULL, 0},
    {"nucleus:7/10", 7, true, true, "draft", "exhaustive", -1, 0, NULL, 0},
    {"nucleus:1/5", 2, true, true, "draft", "cap:2", 2, 0, NULL, 0},
    {"nucleus:3/5", 6, true, true, "draft", "exhaustive", -1, 0, "tv", UINT64_C(1) << 58},
    {"nucleus:1/2", 5, false, true, "draft", "cap:1", 1, 0, "tv", UINT64_C(1) << 60},
    {"additive:3/10", 3, false, false, "draft", "exhaustive", -1, 0, "regret", UINT64_C(1) << 59},
    {"additive:1/2", 5, false, false, "draft", "cap:2", 2, 0, "regret", UINT64_C(1) << 60},
};
enum { SCENES = sizeof scenes / sizeof scenes[0] };
static uint64_t seed;

static void write_scene(const struct scene *scene, uint64_t from, enum lie lie, int nth, struct told *told)
{
    for (int i = 0; i < 200; i++)
        if (scene_write(test_folder(), scene, from + (uint64_t)i, lie, nth, told)) return;
    fail_msg("no decode can be written");
}

// What the naive checker says, which the fast one must say too.
static struct hm_simple_result judged(void)
{
    struct hm_simple_result r;
    struct hm_check_result fast;
    hm_check_simple(test_path("scene.jsonl"), false, false, &r);
    hm_check_log(test_path("scene.jsonl"), NULL, &fast);
    if ((int)fast.kind != (int)r.kind || (r.kind != HM_SIMPLE_REFUTED && fast.claims != r.claims))
        fail_msg("naive: %s, fast: %s", r.message, fast.message);
    return r;
}

static void true_logs(void **state)
{
    (void)state;
    struct hm_simple_result r;
    struct told told, all = {0};
    size_t count = test_count(4, 24, 2000), logs = 0;
    for (int i = 0; i < SCENES; i++)
        for (size_t n = 0; n < count; n++, logs++) {
            uint64_t own = test_random(&seed) >> 1;
            write_scene(&scenes[i], own, NO_LIE, 0, &told);
            r = judged();
            if (r.kind != HM_SIMPLE_PROVED) fail_msg("scene %d, seed %llu: %s", i, (unsigned long long)own, r.message);
            all.steps += told.steps;
            all.relaxed += told.relaxed;
            for (int j = 0; j < 4; j++) all.taken[j] += told.taken[j];
        }
    printf(
        "%zu true logs, %zu steps: %zu surely accepted, %zu by the first coin, %zu by a later one, %zu residual draws; "
        "%zu charged and relaxed\n",
        logs, all.steps, all.taken[0], all.taken[1], all.taken[2], all.taken[3], all.relaxed);
    for (int j = 0; j < 4; j++) assert_true(all.taken[j] > 0);
    assert_true(all.relaxed > 0);
}

static void false_logs(void **state)
{
    (void)state;
    struct hm_simple_result r;
    struct told told;
    size_t count = test_count(3, 9, 300), refuted[LIES] = {0};
    for (int i = 0; i < SCENES; i++)
        for (int lie = NO_LIE + 1; lie < LIES; lie++)
            for (size_t n = 0; n < count; n++) {
                uint64_t own = test_random(&seed) >> 1;
                write_scene(&scenes[i], own, (enum lie)lie, (int)(n % 3), &told);
                if (told.line == 0) continue;
                r = judged();
                if (r.kind != HM_SIMPLE_REFUTED || r.line != told.line)
                    fail_msg("scene %d, lie %d in line %zu, seed %llu: %s", i, lie, told.line, (unsigned long long)own,
                             r.message);
                refuted[lie]++;
            }
    printf("lies refuted:");
    for (int lie = NO_LIE + 1; lie < LIES; lie++) printf(" %zu", refuted[lie]);
    printf("\n");
    for (int lie = NO_LIE + 1; lie < LIES; lie++) assert_true(refuted[lie] > 0);
}

// A limit that is reached exactly is not passed: with 2^-60 less it would be.
static void exact_limits(void **state)
{
    (void)state;
    struct hm_simple_result r;
    struct told told;
    size_t found = 0, wanted = test_count(2, 20, 500);
    for (uint64_t own = test_random(&seed) >> 1; found < wanted; own++) {
        struct scene scene = scenes[found % 2 ? 11 : 13];
        scene.limit = UINT64_C(3) << 60;
        if (!scene_write(test_folder(), &scene, own, NO_LIE, 0, &told) || told.first_spent == 0) continue;
        scene.limit = told.first_spent;
        if (!scene_write(test_folder(), &scene, own, NO_LIE, 0, &told) || told.relaxed == 0) continue;
        r = judged();
        if (r.kind != HM_SIMPLE_PROVED) fail_msg("seed %llu: %s", (unsigned long long)own, r.message);
        scene.limit--;
        scene_write(test_folder(), &scene, own, LIE_OVERSPENT, 0, &told);
        if (told.line == 0) continue;
        r = judged();
        if (r.kind != HM_SIMPLE_REFUTED || r.line != told.line)
            fail_msg("seed %llu: %s", (unsigned long long)own, r.message);
        found++;
    }
}

// The false logs of an independent writer, one lie in each.
static void written_lies(void **state)
{
    (void)state;
    char name[64], path[128];
    unsigned long long line;
    size_t count = 0;
    FILE *list = fopen("tests/data/logs/bad/lines.txt", "r");
    assert_non_null(list);
    while (fscanf(list, "%63s line %llu", name, &line) == 2) {
        struct hm_simple_result r;
        snprintf(path, sizeof path, "tests/data/logs/bad/%s.jsonl", name);
        hm_check_simple(path, false, false, &r);
        if (r.kind != HM_SIMPLE_REFUTED || r.line != line) fail_msg("%s, line %llu: %s", name, line, r.message);
        count++;
    }
    fclose(list);
    assert_true(count >= 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(true_logs), cmocka_unit_test(false_logs),
                                       cmocka_unit_test(exact_limits), cmocka_unit_test(written_lies)};
    seed = test_seed("check_simple_walk");
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    test_drop_folder();
    return rc;
}
