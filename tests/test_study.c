// The study's figures of one round: against every walk of the target through small pools, written out naively, and
// against the trees that a decode would choose; the identities of docs/study.md on pools of every size.
#include "decode/tree.h"
#include "study/context.h"
#include "tests/study_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

// Sums of at most some hundred doubles between 0 and 1, in other orders: nothing but rounding may differ.
static void same(double a, double b)
{
    if (!(fabs(a - b) <= 1e-12)) fail_msg("%.17g and %.17g", a, b);
}

// ---- the naive copy: selection by repeated search, expectations by enumeration

struct naive {
    const struct hm_context *c;
    size_t count;
    double score[STUDY_MOST];
    bool tree[STUDY_MOST], scored[STUDY_MOST];
};

static int32_t first_of(const struct naive *n, size_t i)
{
    while (n->c->round->parent[i] >= 0) i = (size_t)n->c->round->parent[i];
    return (int32_t)i;
}

static size_t depth_of(const struct naive *n, size_t i)
{
    return n->c->round->parent[i] < 0 ? 1 : 1 + depth_of(n, (size_t)n->c->round->parent[i]);
}

static double factor(const struct naive *n, size_t i)
{
    const struct hm_recording_round *r = n->c->round;
    if (n->c->choice == HM_CHOICE_GREEDY) return r->argmax[r->parent[i] + 1] == r->token[i] ? 1 : 0;
    return r->p[i];
}

static bool drafted(const struct naive *n, size_t i)
{
    const struct hm_recording_round *r = n->c->round;
    return r->logq[i] > -INFINITY && (r->parent[i] < 0 || drafted(n, (size_t)r->parent[i]));
}

static void score_all(struct naive *n, size_t exact, const double *first)
{
    const struct hm_recording_round *r = n->c->round;
    for (size_t i = 0; i < n->count; i++) {
        size_t depth = depth_of(n, i);
        double step = first && depth == 1 ? log(first[i]) : depth <= exact ? log(factor(n, i)) : (double)r->logq[i];
        n->score[i] = (r->parent[i] < 0 ? 0 : n->score[r->parent[i]]) + step;
        if (!drafted(n, i)) n->score[i] = -INFINITY;
    }
}

// The best candidate that is not taken yet, of those below `first` (-1: of all); -1: none is left.
static int64_t best(const struct naive *n, const bool *taken, int32_t first)
{
    int64_t found = -1;
    for (size_t i = 0; i < n->count; i++) {
        if (taken[i] || !isfinite(n->score[i]) || (first >= 0 && first_of(n, i) != first)) continue;
        if (found < 0 || n->score[i] > n->score[found]) found = (int64_t)i;
    }
    return found;
}

static void choose(struct naive *n, size_t budget, int32_t first)
{
    memset(n->tree, 0, sizeof n->tree);
    for (size_t b = 0; b < budget; b++) {
        int64_t i = best(n, n->tree, first);
        if (i < 0) return;
        n->tree[i] = true;
    }
}

enum walk_rule { EXHAUSTIVE, CAP_ONE, LEAF_STOP };

static bool is_leaf(const struct naive *n, size_t i)
{
    for (size_t j = 0; j < n->count; j++)
        if (n->tree[j] && n->c->round->parent[j] == (int32_t)i) return false;
    return true;
}

// What one walk of the target gives: tokens[] are the candidates it would draw one after the other, then something else.
static size_t accepted(const struct naive *n, enum walk_rule rule, const size_t *walk, size_t length, bool *covered)
{
    size_t a = 0;
    while (a < length && n->tree[walk[a]] && !(rule == CAP_ONE && a == 1) && !(rule == LEAF_STOP && is_leaf(n, walk[a]))) a++;
    *covered = a < length && (n->tree[walk[a]] || n->scored[walk[a]]);
    return a;
}

struct totals {
    double probability, accepted[3], covered[3], lost[3], one, two;
    double draw, pearl, draw_size, pearl_size;
};

// A tree that depends on the first token drawn: y1 counts, further nodes where the tree below it holds them.
static void drawn(struct naive *n, size_t budget, bool pearl, const size_t *walk, size_t length, double share, double *sum,
                  double *size)
{
    size_t a = 1, nodes = 1;
    bool covered;
    if (length > 0) {
        if (pearl) choose(n, budget, -1);
        else choose(n, budget, (int32_t)walk[0]);
        for (size_t i = 0; i < n->count; i++) {
            if (first_of(n, i) != (int32_t)walk[0]) n->tree[i] = false;
            nodes += n->tree[i] && i != walk[0];
        }
        n->tree[walk[0]] = true;
        a = accepted(n, EXHAUSTIVE, walk, length, &covered);
    }
    *sum += share * (double)a;
    *size += share * (double)nodes;
}

static void count_walk(struct naive *n, size_t budget, const size_t *walk, size_t length, double share, struct totals *t)
{
    size_t most = 0;
    bool covered;
    t->probability += share;
    choose(n, budget, -1);
    for (enum walk_rule rule = EXHAUSTIVE; rule <= LEAF_STOP; rule++) {
        size_t a = accepted(n, rule, walk, length, &covered);
        if (rule == EXHAUSTIVE) most = a;
        t->accepted[rule] += share * (double)a;
        t->lost[rule] += share * (double)(most - a);
        t->covered[rule] += covered ? share : 0;
    }
    t->one += most >= 1 ? share : 0;
    t->two += most >= 2 ? share : 0;
    drawn(n, budget, false, walk, length, share, &t->draw, &t->draw_size);
    drawn(n, budget, true, walk, length, share, &t->pearl, &t->pearl_size);
}

static void enumerate(struct naive *n, size_t budget, size_t *walk, size_t length, double share, struct totals *t)
{
    double rest = 1;
    int32_t parent = length ? (int32_t)walk[length - 1] : -1;
    for (size_t i = 0; i < n->count; i++) {
        if (n->c->round->parent[i] != parent) continue;
        walk[length] = i;
        enumerate(n, budget, walk, length + 1, share * factor(n, i), t);
        rest -= factor(n, i);
    }
    count_walk(n, budget, walk, length, share * fmax(0, rest), t);
}

// ---- tests

static void traversals_are_sums_over_walks(void **state)
{
    (void)state;
    uint64_t random = test_seed("walks");
    static struct study_round s;
    static struct naive n;
    struct hm_context c = {0};
    for (size_t round = 0; round < test_count(50, 1500, 50000); round++) {
        size_t walk[STUDY_MOST], budget = 1 + test_below(&random, 8), size = test_below(&random, 15);
        study_fill(&random, &s, size, 4);
        assert_int_equal(hm_context_load(&c, &s.round, test_below(&random, 2) ? HM_CHOICE_GREEDY : HM_CHOICE_DRAWN, NULL), HM_OK);
        n = (struct naive){.c = &c, .count = size};
        score_all(&n, 0, NULL);
        struct totals t = {0};
        enumerate(&n, budget, walk, 0, 1, &t);
        same(t.probability, 1);
        struct hm_traversal_figures f = hm_context_traverse(&c, budget);
        same(f.expected, t.accepted[EXHAUSTIVE]);
        same(f.one, t.one);
        same(f.one, t.accepted[CAP_ONE]);
        same(f.two, t.two);
        same(f.two, t.covered[CAP_ONE]);
        same(f.expected - f.one, t.lost[CAP_ONE]);
        same(f.leaf, t.covered[LEAF_STOP]);
        same(f.leaf, t.lost[LEAF_STOP]); // each covered round gives up exactly one accepted token
        same(f.expected - f.leaf, t.accepted[LEAF_STOP]);
        same(0, t.covered[EXHAUSTIVE]);
        struct hm_draw_figures draw = hm_context_root_draw(&c, budget);
        same(draw.expected, t.draw);
        same(draw.size, t.draw_size);
        double expected[16], nodes[16];
        hm_context_pearl(&c, expected, nodes, 16);
        same(expected[budget], t.pearl);
        same(nodes[budget], t.pearl_size);
        same(t.pearl, t.accepted[EXHAUSTIVE] + 1 - t.one);
    }
    hm_context_clear(&c);
}

static void scored_candidates_cover_walks(void **state)
{
    (void)state;
    uint64_t random = test_seed("scored");
    static struct study_round s;
    static struct naive n;
    struct hm_context c = {0};
    for (size_t round = 0; round < test_count(50, 1500, 50000); round++) {
        size_t walk[STUDY_MOST], budget = 1 + test_below(&random, 6), extra = test_below(&random, 8);
        size_t size = test_below(&random, 15);
        bool top = test_below(&random, 2);
        study_fill(&random, &s, size, 4);
        assert_int_equal(hm_context_load(&c, &s.round, HM_CHOICE_DRAWN, NULL), HM_OK);
        n = (struct naive){.c = &c, .count = size};
        score_all(&n, 0, NULL);
        choose(&n, budget, -1);
        bool taken[STUDY_MOST];
        memcpy(taken, n.tree, sizeof taken);
        for (size_t left = extra; left > 0;) { // in draft order, those that count first come first
            int64_t i = best(&n, taken, -1);
            if (i < 0) break;
            taken[i] = true;
            int32_t parent = s.parent[i];
            bool inside = parent < 0 || n.tree[parent];
            n.scored[i] = top || inside;
            left -= top || inside;
        }
        struct totals t = {0};
        enumerate(&n, budget, walk, 0, 1, &t);
        same(t.covered[EXHAUSTIVE],
             hm_context_covered(&c, budget, top && extra ? budget + extra : 0, top ? 0 : extra));
    }
    hm_context_clear(&c);
}

// Expected acceptance of a set of candidates, naively.
static double expected_of(const struct naive *n)
{
    double sum = 0;
    for (size_t i = 0; i < n->count; i++) {
        double reach = 1;
        for (int32_t j = (int32_t)i; j >= 0; j = n->c->round->parent[j]) reach *= factor(n, (size_t)j);
        sum += n->tree[i] ? reach : 0;
    }
    return sum;
}

static void orders_are_those_of_a_search(void **state)
{
    (void)state;
    uint64_t random = test_seed("orders");
    static struct study_round s;
    static struct naive n;
    size_t order[STUDY_MOST], exceeded = 0;
    struct hm_context c = {0};
    for (size_t round = 0; round < test_count(100, 2000, 50000); round++) {
        size_t budget = 1 + test_below(&random, 20), size = test_below(&random, 60);
        study_fill(&random, &s, size, 6);
        assert_int_equal(hm_context_load(&c, &s.round, test_below(&random, 2) ? HM_CHOICE_GREEDY : HM_CHOICE_DRAWN, NULL), HM_OK);
        n = (struct naive){.c = &c, .count = size};
        double oracle = hm_context_expected(&c, c.oracle, c.oracle_count, budget);
        for (uint32_t exact = 0; exact <= 7; exact++) {
            size_t count = hm_context_order(&c, exact, order);
            score_all(&n, exact, NULL);
            choose(&n, budget, -1);
            for (size_t i = 0; i < count && i < budget; i++) assert_true(n.tree[order[i]]);
            double gain = hm_context_expected(&c, order, count, budget);
            same(gain, expected_of(&n));
            assert_true(oracle >= gain - 1e-12);
            const size_t *known = exact == 0 ? c.draft : exact == 1 ? c.root : exact >= 6 ? c.oracle : NULL;
            if (known && count) assert_memory_equal(known, order, count * sizeof *order);
        }
        const double *first = hm_context_first_factors(&c, &s.round.cached);
        if (first) {
            size_t count = hm_context_order_first(&c, first, order);
            score_all(&n, 0, first);
            choose(&n, budget, -1);
            same(hm_context_expected(&c, order, count, budget), expected_of(&n));
        }
        exceeded += hm_context_root_draw(&c, budget).expected > oracle + 1e-9;
        double curve[80];
        hm_context_curve(&c, c.draft, c.draft_count, curve, 80);
        same(curve[budget], hm_context_expected(&c, c.draft, c.draft_count, budget));
        for (size_t i = 1; i < 80; i++) assert_true(curve[i] >= curve[i - 1]);
    }
    assert_true(exceeded > 0); // root-draw spends all of B after seeing y1
    hm_context_clear(&c);
}

// ---- the trees of a decode

static void to_pool(const struct study_round *s, struct hm_pool *pool, struct hm_candidate *candidate)
{
    *pool = (struct hm_pool){.candidate = candidate, .count = s->round.count};
    for (size_t i = 0; i < s->round.count; i++) {
        int32_t parent = s->parent[i];
        candidate[i] = (struct hm_candidate){
            .token = s->token[i], .parent = parent, .row = -1, .depth = parent < 0 ? 1 : candidate[parent].depth + 1,
            .logq = s->logq[i], .score = (parent < 0 ? 0 : candidate[parent].score) + (double)s->logq[i]};
    }
}

// E[A] of the tree a decode would verify, y1 given where it is drawn (then its own factor is not counted: it is drawn).
static double tree_expects(const struct hm_context *c, const struct hm_tree *tree, bool is_drawn)
{
    double sum = 0;
    for (size_t i = 1; i < tree->nodes - tree->scored; i++) {
        if (tree->candidate[i] < 0 || (is_drawn && tree->depth[i] == 1)) continue;
        sum += c->reach[tree->candidate[i]];
    }
    return sum;
}

static void trees_are_those_of_a_decode(void **state)
{
    (void)state;
    uint64_t random = test_seed("trees of a decode");
    static struct study_round s;
    static struct hm_candidate candidate[STUDY_MOST];
    struct hm_context c = {0};
    struct hm_pool pool;
    struct hm_tree tree;
    assert_int_equal(hm_tree_init(&tree, 8, NULL), HM_OK);
    for (size_t round = 0; round < test_count(50, 1000, 20000); round++) {
        size_t budget = 1 + test_below(&random, 30), size = 1 + test_below(&random, 120);
        double first[STUDY_MOST], draw = 1, pearl = 1, draw_size = 1, pearl_size = 1, pearls[32], sizes[32];
        study_fill(&random, &s, size, 6);
        to_pool(&s, &pool, candidate);
        assert_int_equal(hm_context_load(&c, &s.round, HM_CHOICE_DRAWN, NULL), HM_OK);
        for (size_t i = 0; i < size; i++) first[i] = log(s.p[i]);
        struct hm_selection_request request = {.how = HM_SELECT_DRAFT, .budget = budget, .first_logp = first,
                                               .score_frontier = test_below(&random, 9)};
        assert_int_equal(hm_tree_select(&tree, 5, &pool, &request, NULL), HM_OK);
        same(tree_expects(&c, &tree, false), hm_context_expected(&c, c.draft, c.draft_count, budget));
        double covered = 0;
        for (size_t i = tree.nodes - tree.scored; i < tree.nodes; i++) covered += c.reach[tree.candidate[i]];
        same(covered, hm_context_covered(&c, budget, 0, request.score_frontier));
        request.how = HM_SELECT_ROOT;
        assert_int_equal(hm_tree_select(&tree, 5, &pool, &request, NULL), HM_OK);
        same(tree_expects(&c, &tree, false), hm_context_expected(&c, c.root, c.root_count, budget));
        for (size_t i = 0; i < size; i++) { // every y1 in the pool; the others add nothing
            if (s.parent[i] >= 0) continue;
            request.drawn = s.token[i];
            request.score_frontier = 0;
            request.how = HM_SELECT_ROOT_DRAW;
            assert_int_equal(hm_tree_select(&tree, 5, &pool, &request, NULL), HM_OK);
            draw += tree_expects(&c, &tree, true);
            draw_size += s.p[i] * (double)(tree.nodes - 2);
            request.how = HM_SELECT_PEARL;
            assert_int_equal(hm_tree_select(&tree, 5, &pool, &request, NULL), HM_OK);
            pearl += tree_expects(&c, &tree, true);
            pearl_size += s.p[i] * (double)(tree.nodes - 2);
        }
        struct hm_draw_figures f = hm_context_root_draw(&c, budget);
        hm_context_pearl(&c, pearls, sizes, 32);
        same(f.expected, draw);
        same(f.size, draw_size);
        same(pearls[budget], pearl);
        same(sizes[budget], pearl_size);
    }
    hm_tree_clear(&tree);
    hm_context_clear(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traversals_are_sums_over_walks),
        cmocka_unit_test(scored_candidates_cover_walks),
        cmocka_unit_test(orders_are_those_of_a_search),
        cmocka_unit_test(trees_are_those_of_a_decode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
