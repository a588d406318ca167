// Rounds kept to be drawn (reports/rounds.h): the accepted path survives, no node stands without its parent, memory is
// bounded, and the choice is the one that is promised.
#include "reports/rounds.h"

#include "tests/seed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 16384 };

static int64_t parent[MOST], token[MOST], depth[MOST];
static double logq[MOST];

// A tree of n nodes, the last `scored` only scored; likelihoods that sometimes tie and sometimes are unknown.
static struct hm_record_round a_round(uint64_t *state, size_t n, size_t scored)
{
    parent[0] = -1;
    logq[0] = depth[0] = 0;
    for (size_t i = 0; i < n; i++) token[i] = (int64_t)test_below(state, 50000);
    for (size_t i = 1; i < n; i++) {
        size_t last = i < n - scored ? i : n - scored;
        parent[i] = (int64_t)(test_random(state) % 4 ? test_below(state, last) : last - 1);
        depth[i] = depth[parent[i]] + 1;
        logq[i] = test_random(state) % 9 ? -(double)(test_random(state) % 40) / 8 : -INFINITY;
    }
    return (struct hm_record_round){
        .nodes = n, .scored = scored, .parent = parent, .token = token, .depth = depth, .logq = logq, .t = 5, .first = -1};
}

// Walks down from the root as far as `accepted` nodes, at random; returns how many it took.
static uint64_t walk(struct hm_report_rounds *r, uint64_t *state, const struct hm_record_round *round, uint64_t accepted)
{
    struct hm_error err;
    int64_t at = 0;
    uint64_t taken = 0;
    size_t verified = round->nodes - round->scored;
    while (taken < accepted) {
        int64_t next = -1;
        for (size_t i = 1; i < verified; i++)
            if (parent[i] == at && (next < 0 || test_random(state) % 2)) next = (int64_t)i;
        if (next < 0) break;
        struct hm_record_step step = {.round = 0, .source = HM_SOURCE_ACCEPTED, .node = at, .child = next, .token = token[next], .text = ""};
        assert_int_equal(hm_rounds_step(r, &step, &err), HM_OK);
        at = next;
        taken++;
    }
    struct hm_record_step last = {.round = 0, .source = HM_SOURCE_CONTINUATION, .node = at, .child = -1, .token = 7, .text = ""};
    assert_int_equal(hm_rounds_step(r, &last, &err), HM_OK);
    return taken;
}

static void check_kept(const struct hm_kept_round *k, const struct hm_record_round *round, uint64_t taken)
{
    uint64_t path = 0;
    assert_true(k->has && k->accepted == taken && k->nodes == (int64_t)round->nodes);
    assert_true(k->count >= 1 && k->count <= HM_ROUNDS_NODES);
    assert_true(k->count == round->nodes || k->count + taken >= HM_ROUNDS_NODES);
    for (size_t i = 0; i < k->count; i++) {
        const struct hm_kept_node *n = &k->node[i];
        assert_true((n->node == 0) == (n->parent < 0) && (n->part == HM_NODE_ROOT) == (n->node == 0));
        assert_true(n->token == token[n->node] && n->depth == depth[n->node]);
        if (n->parent >= 0) {
            assert_true((size_t)n->parent < i && k->node[n->parent].node == parent[n->node]);
            assert_true((n->part == HM_NODE_SCORED) == ((size_t)n->node >= round->nodes - round->scored));
        }
        path += n->part == HM_NODE_ACCEPTED;
    }
    assert_int_equal(path, taken < HM_ROUNDS_NODES ? taken : HM_ROUNDS_NODES - 1);
}

static void what_is_kept_is_a_tree(void **unused)
{
    (void)unused;
    uint64_t state = test_seed("report_rounds");
    struct hm_error err;
    size_t rounds = test_count(60, 400, 20000);
    for (size_t i = 0; i < rounds; i++) {
        struct hm_report_rounds r = {0};
        size_t n = 2 + test_below(&state, i % 50 ? 200 : MOST - 2), scored = test_below(&state, n - 1);
        struct hm_record_round round = a_round(&state, n, scored);
        assert_int_equal(hm_rounds_begin(&r, &round, 0, 1, &err), HM_OK);
        uint64_t taken = walk(&r, &state, &round, test_below(&state, 90));
        assert_int_equal(hm_rounds_end(&r, taken, taken + 1, &err), HM_OK);
        check_kept(&r.kept[taken < HM_ROUNDS_KEPT ? taken : HM_ROUNDS_KEPT - 1], &round, taken);
        hm_rounds_clear(&r);
    }
}

static void keep(struct hm_report_rounds *r, uint64_t *state, uint64_t accepted, int64_t number)
{
    struct hm_error err;
    struct hm_record_round round = a_round(state, 5, 0);
    round.round = number;
    assert_int_equal(hm_rounds_begin(r, &round, 0, 1, &err), HM_OK);
    assert_int_equal(hm_rounds_end(r, accepted, accepted + 1, &err), HM_OK);
}

// Longest, typical and a miss lead; of every number the first round stays.
static void the_telling_ones_come_first(void **unused)
{
    (void)unused;
    uint64_t state = 3, by_count[8] = {2, 1, 5, 0, 1};
    struct hm_report_rounds r = {0};
    struct hm_shown_round shown[HM_ROUNDS_KEPT];
    assert_int_equal(hm_rounds_chosen(&r, by_count, 8, shown), 0);
    const uint64_t accepted[] = {2, 0, 4, 2, 1, 0};
    for (int64_t i = 0; i < 6; i++) keep(&r, &state, accepted[i], i);
    assert_int_equal(hm_rounds_chosen(&r, by_count, 8, shown), 4);
    assert_true(shown[0].round->accepted == 4 && !strcmp(shown[0].why, "most accepted"));
    assert_true(shown[1].round->accepted == 2 && shown[1].round->round == 0 && !strcmp(shown[1].why, "typical"));
    assert_true(shown[2].round->accepted == 0 && shown[2].round->round == 1 && !strcmp(shown[2].why, "total miss"));
    assert_true(shown[3].round->accepted == 1 && !*shown[3].why);
    hm_rounds_clear(&r);
    r = (struct hm_report_rounds){0};
    keep(&r, &state, 0, 9); // nothing but misses
    assert_int_equal(hm_rounds_chosen(&r, (uint64_t[]){1}, 1, shown), 1);
    assert_string_equal(shown[0].why, "total miss");
    hm_rounds_clear(&r);
}

static void texts_are_learned_where_they_are_plain(void **unused)
{
    (void)unused;
    struct hm_report_rounds r = {0};
    struct hm_error err;
    const struct {
        int64_t id;
        const char *text;
        bool known;
    } cases[] = {{5, " the", true}, {6, "\xc3\xa9", false}, {7, "", false}, {8, "\x1b[1m", false}, {9, "a text that is too long", false},
                 {5 + HM_ROUNDS_TEXTS, "other", false}, {1LL << 52, "far", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hm_record_step step = {.round = -1, .token = cases[i].id, .text = cases[i].text};
        assert_int_equal(hm_rounds_step(&r, &step, &err), HM_OK);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = hm_rounds_text(&r, cases[i].id);
        assert_true((text != NULL) == cases[i].known);
        if (text) assert_string_equal(text, cases[i].text);
    }
    assert_null(hm_rounds_text(&r, -1));
    hm_rounds_clear(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_kept_is_a_tree),
                                       cmocka_unit_test(the_telling_ones_come_first),
                                       cmocka_unit_test(texts_are_learned_where_they_are_plain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
