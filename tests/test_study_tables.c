// The study's tables: each cell is the figure its row and column name, averaged as docs/study.md says. Figures of one
// round come from study/context.h (tests/test_study.c); how they are put together is written out again here.
#include "study/study.h"
#include "tests/study_support.h"
#include "tests/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROUNDS = 24, BUDGET = 6 };

static struct study_round rounds[ROUNDS];
static struct hm_recording_header head = {
    .target = "t", .drafter = "d", .task = "one", .temperature = "1", .probability_temperature = "1", .top_p = "",
    .vocab = STUDY_VOCAB, .width = 5, .depth = 3, .budget = 4};

// Rounds 0-7 are prompt p of task one, 8-11 prompt q of task one, 12-23 prompt p of task two.
static int task_of(size_t i)
{
    return i >= 12;
}

static void write_task(int task)
{
    struct hm_recording_writer *w;
    head.task = task ? "two" : "one";
    assert_int_equal(hm_recording_create(path, &head, &w, NULL), HM_OK);
    for (size_t i = 0; i < ROUNDS; i++) {
        if (task_of(i) != task) continue;
        struct hm_recording_sequence s = {.sequence = (uint32_t)(i / 4), .id = i / 4 == 2 ? "q" : "p", .category = "c"};
        struct hm_recording_round r = rounds[i].round;
        r.sequence = (uint32_t)(i / 4);
        r.round = r.t = (uint32_t)(i % 4);
        if (i % 4 == 0) assert_int_equal(hm_recording_add_sequence(w, &s, NULL), HM_OK);
        assert_int_equal(hm_recording_add_round(w, &r, NULL), HM_OK);
    }
    assert_int_equal(hm_recording_finish(w, NULL), HM_OK);
}

static hm_status add_file(struct hm_study *study, struct hm_error *err)
{
    struct hm_recording *recording;
    assert_int_equal(hm_recording_open(path, &recording, NULL), HM_OK);
    assert_true(hm_study_takes(study, hm_recording_head(recording)));
    hm_status rc = hm_study_add(study, recording, err);
    hm_recording_close(recording);
    return rc;
}

// ---- the same figures, put together by hand

enum value { DRAFT, ROOT, ORACLE, DEPTH2, DRAW, DRAW_SIZE, PEARL, PEARL_SIZE, LIMITED, ONE, LEAF, TOP, FRONTIER, REALISED, OWN,
             CACHE, SAME, PRECEDING, CACHE_TV, SAME_THERE, DRAFT_SAME, ROOT_SAME, PRECEDING_AGREES, MATCHED, VALUES };

static double with_row(struct hm_context *c, const struct hm_substitute *row, bool there)
{
    size_t order[STUDY_MOST];
    const double *first = there ? hm_context_first_factors(c, row) : NULL;
    if (!first) return hm_context_expected(c, c->draft, c->draft_count, BUDGET);
    return hm_context_expected(c, order, hm_context_order_first(c, first, order), BUDGET);
}

// NAN: the round says nothing about this value.
static void values_of(struct hm_context *c, const struct hm_recording_round *r, double v[VALUES])
{
    size_t order[STUDY_MOST], count = 0;
    double pearl[BUDGET + 1], size[BUDGET + 1];
    struct hm_draw_figures draw = hm_context_root_draw(c, BUDGET);
    struct hm_traversal_figures f = hm_context_traverse(c, BUDGET);
    hm_context_pearl(c, pearl, size, BUDGET + 1);
    v[DRAFT] = hm_context_expected(c, c->draft, c->draft_count, BUDGET);
    v[ROOT] = hm_context_expected(c, c->root, c->root_count, BUDGET);
    v[ORACLE] = hm_context_expected(c, c->oracle, c->oracle_count, BUDGET);
    v[DEPTH2] = hm_context_expected(c, order, hm_context_order(c, 2, order), BUDGET);
    v[DRAW] = draw.expected;
    v[DRAW_SIZE] = draw.size;
    v[PEARL] = pearl[BUDGET];
    v[PEARL_SIZE] = size[BUDGET];
    for (size_t i = 0; i < c->oracle_count; i++)
        for (size_t j = 0; j < c->draft_count && j < 50; j++)
            if (c->draft[j] == c->oracle[i]) order[count++] = c->oracle[i];
    v[LIMITED] = hm_context_expected(c, order, count, BUDGET);
    v[ONE] = f.one;
    v[LEAF] = f.leaf;
    v[TOP] = hm_context_covered(c, BUDGET, 100, 0);
    v[FRONTIER] = hm_context_covered(c, BUDGET, 0, 10);
    bool known = r->accepted >= 0 && c->choice == HM_CHOICE_DRAWN;
    v[REALISED] = known ? r->accepted : NAN;
    v[OWN] = known ? hm_context_expected(c, c->draft, c->draft_count, 4) : NAN;
    bool cached = r->cached.address != HM_ADDRESS_NONE, same = cached && r->cached.age == 1;
    bool preceding = r->preceding.address != HM_ADDRESS_NONE;
    v[CACHE] = with_row(c, &r->cached, cached);
    v[SAME] = with_row(c, &r->cached, same);
    v[PRECEDING] = with_row(c, &r->preceding, preceding);
    v[CACHE_TV] = cached ? r->cached.tv : NAN;
    v[SAME_THERE] = same ? v[SAME] : NAN;
    v[DRAFT_SAME] = same ? v[DRAFT] : NAN;
    v[ROOT_SAME] = same ? v[ROOT] : NAN;
    v[PRECEDING_AGREES] = preceding ? r->preceding.argmax == r->argmax[0] : NAN;
    v[MATCHED] = r->matched == HM_MATCHED_ABSENT ? NAN : r->matched == HM_MATCHED_EQUAL;
}

static double values[ROUNDS][VALUES];
static bool in[ROUNDS]; // the rounds that count

// Over rounds of each task, then over the tasks that have any.
static double mean(enum value v)
{
    double sum[2] = {0}, rounds_of[2] = {0}, total = 0;
    for (size_t i = 0; i < ROUNDS; i++) {
        if (!in[i] || isnan(values[i][v])) continue;
        sum[task_of(i)] += values[i][v];
        rounds_of[task_of(i)]++;
    }
    for (int task = 0; task < 2; task++) total += rounds_of[task] > 0 ? sum[task] / rounds_of[task] : 0;
    return total / ((rounds_of[0] > 0) + (rounds_of[1] > 0));
}

static const struct hm_study_cell *cells;
static size_t cell_count, checked;

static void expect(const char *table, const char *row, const char *column, double value)
{
    checked++;
    for (size_t i = 0; i < cell_count; i++) {
        if (strcmp(cells[i].table, table) || strcmp(cells[i].row, row) || strcmp(cells[i].column, column)) continue;
        if (!(fabs(cells[i].value - value) < 1e-12) && !(isnan(value) && isnan(cells[i].value)))
            fail_msg("%s, %s, %s: expected %.15g, found %.15g", table, row, column, value, cells[i].value);
        return;
    }
    fail_msg("no cell %s, %s, %s", table, row, column);
}

static void check_selection(void)
{
    static const char t[] = "Selection, B = 6";
    expect(t, "draft", "E[A]", mean(DRAFT));
    expect(t, "root", "E[A]", mean(ROOT));
    expect(t, "root", "over draft", mean(ROOT) - mean(DRAFT));
    expect(t, "oracle", "E[A]", mean(ORACLE));
    expect(t, "oracle", "over draft", mean(ORACLE) - mean(DRAFT));
    expect(t, "root-draw", "E[A]", mean(DRAW));
    expect(t, "root-draw", "over draft", mean(DRAW) - mean(DRAFT));
    expect(t, "root-draw", "verified nodes", mean(DRAW_SIZE));
    expect(t, "pearl", "E[A]", mean(PEARL));
    expect(t, "pearl", "verified nodes", mean(PEARL_SIZE));
    expect(t, "pearl-equal", "verified nodes", mean(DRAW_SIZE));
    expect("Root-draw over pearl, B = 6", "same cap", "gain", mean(DRAW) - mean(PEARL));
    expect("Exact factors, B = 6", "depth:1", "over draft", mean(ROOT) - mean(DRAFT));
    expect("Exact factors, B = 6", "depth:2", "over draft", mean(DEPTH2) - mean(DRAFT));
    expect("Exact factors, B = 6", "depth:2", "share of oracle's", (mean(DEPTH2) - mean(DRAFT)) / (mean(ORACLE) - mean(DRAFT)));
    expect("The oracle with a smaller pool, B = 6", "the 50 best", "oracle over draft", mean(LIMITED) - mean(DRAFT));
    expect("The oracle with a smaller pool, B = 6", "the whole pool", "oracle over draft", mean(ORACLE) - mean(DRAFT));
}

static void check_split(const bool first_agrees[ROUNDS], const bool has_first[ROUNDS])
{
    static const char t[] = "Share of the oracle's advantage that root recovers, B = 6";
    static const char *const rows[] = {"it is not", "the draft's first token is the target's"};
    expect(t, "all rounds", "share", (mean(ROOT) - mean(DRAFT)) / (mean(ORACLE) - mean(DRAFT)));
    for (int agrees = 0; agrees < 2; agrees++) {
        for (size_t i = 0; i < ROUNDS; i++) in[i] = has_first[i] && first_agrees[i] == agrees;
        expect(t, rows[agrees], "oracle over draft", mean(ORACLE) - mean(DRAFT));
        expect(t, rows[agrees], "root over draft", mean(ROOT) - mean(DRAFT));
    }
    for (size_t i = 0; i < ROUNDS; i++) in[i] = true;
}

static void check_traversal(void)
{
    static const char t[] = "Traversal of the draft tree, B = 6", own[] = "The decode that was recorded, at its own B";
    expect(t, "exhaustive", "E[A]", mean(DRAFT));
    expect(t, "cap:1", "E[A]", mean(ONE));
    expect(t, "cap:1", "E[L_T - A]", mean(DRAFT) - mean(ONE));
    expect(t, "leaf-stop", "E[A]", mean(DRAFT) - mean(LEAF));
    expect(t, "leaf-stop", "Pr(C)", mean(LEAF));
    expect("Coverage of exhaustive traversal, B = 6", "scored top 100", "Pr(C)", mean(TOP));
    expect("Coverage of exhaustive traversal, B = 6", "scored frontier 10", "Pr(C)", mean(FRONTIER));
    expect(own, "accepted in a round", "realised", mean(REALISED));
    expect(own, "accepted in a round", "E[A]", mean(OWN));
    expect(own, "accepted in a round", "difference", mean(REALISED) - mean(OWN));
}

static void check_addresses(void)
{
    static const char t[] = "The first factor from a row at another address, B = 6";
    expect(t, "exact", "over draft", mean(ROOT) - mean(DRAFT));
    expect(t, "cache", "over draft", mean(CACHE) - mean(DRAFT));
    expect(t, "same token", "over draft", mean(SAME) - mean(DRAFT));
    expect(t, "same token", "where available", mean(SAME_THERE) - mean(DRAFT_SAME));
    expect(t, "same token", "the exact row there", mean(ROOT_SAME) - mean(DRAFT_SAME));
    expect(t, "preceding", "over draft", mean(PRECEDING) - mean(DRAFT));
    expect("Rows at other addresses", "cache", "mean TV", mean(CACHE_TV));
    expect("Rows at other addresses", "preceding", "same argmax", mean(PRECEDING_AGREES));
    expect("Rows of one address, computed twice", "kept in the round before", "bit-equal", mean(MATCHED));
}

static void check_parts(void)
{
    static const char *const names[] = {"whole outputs", "late rounds (2 tokens out)", "task one", "task two", "category c"};
    for (size_t part = 0; part < 5; part++) {
        for (size_t i = 0; i < ROUNDS; i++)
            in[i] = part == 1 ? i % 4 >= 2 : part == 2 ? task_of(i) == 0 : part == 3 ? task_of(i) == 1 : true;
        expect("By part, B = 6", names[part], "draft, E[A]", mean(DRAFT));
        expect("By part, B = 6", names[part], "root over draft", mean(ROOT) - mean(DRAFT));
        expect("By part, B = 6", names[part], "oracle over draft", mean(ORACLE) - mean(DRAFT));
        expect("By part, B = 6", names[part], "root-draw over pearl", mean(DRAW) - mean(PEARL));
    }
    for (size_t i = 0; i < ROUNDS; i++) in[i] = true;
}

static struct hm_study_options options_for(bool greedy)
{
    struct hm_study_options o = {.budget = {BUDGET, 40}, .budgets = 2, .greedy = greedy, .late = 2, .resamples = 20};
    for (int i = 1; i <= HM_STUDY_GROUPS; i++) o.group[i] = i != 4;
    return o;
}

static void cells_are_what_they_say(void **state)
{
    (void)state;
    uint64_t random = test_seed("tables");
    struct hm_context c = {0};
    for (size_t repeat = 0; repeat < test_count(4, 30, 500); repeat++) {
        bool greedy = repeat % 3 == 2, agrees[ROUNDS], has_first[ROUNDS];
        struct hm_study_options options = options_for(greedy);
        struct hm_study *study;
        for (size_t i = 0; i < ROUNDS; i++) {
            study_fill(&random, &rounds[i], test_below(&random, 70), 4);
            rounds[i].round.accepted = (int32_t)test_below(&random, 6) - 1;
            rounds[i].round.matched = (enum hm_matched)test_below(&random, 3);
            assert_int_equal(hm_context_load(&c, &rounds[i].round, greedy ? HM_CHOICE_GREEDY : HM_CHOICE_DRAWN, NULL), HM_OK);
            values_of(&c, &rounds[i].round, values[i]);
            in[i] = true;
            has_first[i] = c.draft_count > 0;
            agrees[i] = has_first[i] && rounds[i].token[c.draft[0]] == rounds[i].argmax[0];
        }
        assert_int_equal(hm_study_open(&options, &study, NULL), HM_OK);
        for (int task = 0; task < 2; task++) {
            write_task(task);
            assert_int_equal(add_file(study, NULL), HM_OK);
        }
        assert_int_equal(hm_study_finish(study, &cells, &cell_count, NULL), HM_OK);
        struct hm_study_summary summary = hm_study_describe(study);
        assert_true(summary.tasks == 2 && summary.prompts == 3 && summary.rounds == ROUNDS && summary.greedy == greedy);
        checked = 0;
        check_selection();
        check_split(agrees, has_first);
        check_traversal();
        check_addresses();
        check_parts();
        assert_int_equal(checked, 61);
        hm_study_close(study);
    }
    hm_context_clear(&c);
}

static void other_recordings_are_not_taken(void **state)
{
    (void)state;
    struct hm_study_options options = options_for(false);
    struct hm_study *study;
    uint64_t random = 1;
    for (size_t i = 0; i < ROUNDS; i++) study_fill(&random, &rounds[i], 5, 2);
    assert_int_equal(hm_study_open(&options, &study, NULL), HM_OK);
    write_task(0);
    assert_int_equal(add_file(study, NULL), HM_OK);
    struct hm_recording_header others[9];
    for (size_t i = 0; i < 9; i++) others[i] = head;
    assert_true(hm_study_takes(study, &head));
    others[0].target = others[1].drafter = others[2].temperature = others[3].probability_temperature = others[4].top_p = "2";
    others[5].top_k = others[6].vocab = others[7].width = others[8].depth = 9;
    for (size_t i = 0; i < 9; i++) assert_false(hm_study_takes(study, &others[i]));
    hm_study_close(study);
}

static void a_pool_beyond_its_header_is_an_error(void **state)
{
    (void)state;
    struct hm_study_options options = options_for(false);
    struct hm_study *study;
    struct hm_error err;
    uint64_t random = 1;
    for (size_t i = 0; i < ROUNDS; i++) study_fill(&random, &rounds[i], i == 5 ? 81 : 80, 3);
    write_task(0);
    assert_int_equal(hm_study_open(&options, &study, NULL), HM_OK);
    assert_int_equal(add_file(study, &err), HM_FORMAT);
    assert_memory_equal(err.message, path, strlen(path));
    assert_string_equal(err.message + strlen(path), ": sequence 1, round 1: expected at most 80 candidates, found 81");
    hm_study_close(study);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_what_they_say),
        cmocka_unit_test(other_recordings_are_not_taken),
        cmocka_unit_test(a_pool_beyond_its_header_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
