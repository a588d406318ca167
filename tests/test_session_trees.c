// Every drafter, selection, traversal and scoring under `match`: the tokens of plain decoding; each round walked again from
// its rows; rows, kept ones among them, computed again from the context alone, bit for bit; identities of coverage.
#include "tests/session_support.h"

enum { MOST_NODES = 400, MOST_PATH = 80 };

struct watch {
    const struct models *m;
    const struct setting *s;
    const struct hm_acceptance *how;
    size_t vocab;
    struct hm_cache *cache; // of its own, to compute rows again
    uint64_t random;
    int32_t *context;       // prompt and what was emitted [length]
    size_t length;
    bool kept;              // the root's row was a row of the round before
    // The round at hand, as it must go on.
    size_t path[MOST_PATH], visited, at;
    int32_t token[MOST_PATH];
    bool covered;
    // Sums over whole rounds.
    uint64_t rounds, covered_rounds, accepted, root_passes, verified, scored;
};

// ---- a round, walked again

static int32_t draw_at(const struct watch *w, const float *row, uint32_t t)
{
    struct hm_accept_node node = {.target = row, .vocab = w->vocab, .sequence = SEQUENCE, .t = t};
    struct hm_decision d;
    struct hm_error err;
    assert_int_equal(hm_accept(w->how, NULL, &node, &d, &err), HM_OK);
    return d.token;
}

static int64_t child_of(const struct hm_tree *tree, size_t nodes, size_t node, int32_t token)
{
    for (size_t i = 1; i < nodes; i++)
        if (tree->parent[i] == (int32_t)node && tree->token[i] == token) return (int64_t)i;
    return -1;
}

static bool is_leaf(const struct hm_tree *tree, size_t node)
{
    for (size_t i = 1; i < tree->nodes - tree->scored; i++)
        if (tree->parent[i] == (int32_t)node) return false;
    return true;
}

// Visits nodes as the traversal allows; returns how many tokens are accepted. *end: the last visited node, *y: its draw.
static size_t walk(const struct watch *w, const struct hm_round_event *e, size_t cap, bool leaf_stop, size_t *path, size_t *end,
                   int32_t *token)
{
    size_t node = 0, n = 0, verified = e->tree->nodes - e->tree->scored;
    for (;;) {
        token[n] = draw_at(w, e->rows + node * w->vocab, e->t + (uint32_t)n);
        path[n] = node;
        int64_t child = child_of(e->tree, verified, node, token[n]);
        *end = node;
        if (child < 0 || (cap && n == cap) || (leaf_stop && is_leaf(e->tree, (size_t)child))) return n;
        node = (size_t)child;
        n++;
        assert_true(n < MOST_PATH);
    }
}

// ---- rows, computed again

static void check_row(struct watch *w, const struct hm_round_event *e, size_t node)
{
    struct hm_error err = {0};
    size_t depth = e->tree->depth[node], length = w->length + depth;
    int32_t *all = malloc(length * sizeof *all);
    float *row = malloc(w->vocab * sizeof *row);
    assert_true(all && row);
    memcpy(all, w->context, w->length * sizeof *all);
    for (size_t n = node, i = length; n > 0; n = (size_t)e->tree->parent[n]) all[--i] = e->tree->token[n];
    hm_cache_truncate(w->cache, 0);
    hm_status rc = hm_model_prefill(w->m->target, w->cache, all, length, row, NULL, &err);
    if (rc) fail_msg("%s", err.message);
    assert_memory_equal(row, e->rows + node * w->vocab, w->vocab * sizeof *row);
    free(all);
    free(row);
}

// ---- events

static bool wants_root(const struct setting *s)
{
    return s->selection != HM_SELECT_DRAFT && !s->covering;
}

static void check_first(const struct watch *w, const struct hm_round_event *e)
{
    enum hm_selection how = w->s->covering ? w->kept ? HM_SELECT_ROOT_DRAW : HM_SELECT_DRAFT : w->s->selection;
    if (w->s->drafting == PLAIN || how < HM_SELECT_ROOT_DRAW) {
        assert_int_equal(e->first, -1);
        return;
    }
    size_t children = 0;
    for (size_t i = 1; i < e->tree->nodes - e->tree->scored; i++) children += e->tree->parent[i] == 0;
    assert_int_equal(e->first, draw_at(w, e->rows, e->t));
    assert_int_equal(children, 1);
    assert_int_equal(e->tree->parent[1], 0);
    assert_int_equal(e->tree->token[1], e->first);
}

static hm_status on_round(void *user, const struct hm_round_event *e, struct hm_error *err)
{
    struct watch *w = user;
    (void)err;
    const struct hm_tree *tree = e->tree;
    size_t verified = tree->nodes - tree->scored, end, whole_end, path[MOST_PATH];
    int32_t token[MOST_PATH];
    assert_int_equal(w->at, w->visited); // the round before was emitted whole
    assert_true(verified - 1 <= w->s->budget);
    assert_int_equal(tree->token[0], w->context[w->length - 1]);
    bool separate = wants_root(w->s) && !w->kept;
    assert_int_equal(e->root_seconds > 0, separate);
    w->root_passes += separate;
    if (w->length < 100 || test_below(&w->random, 4) == 0) { // long contexts take long
        check_row(w, e, 0);
        for (int i = 0; i < 2; i++) check_row(w, e, test_below(&w->random, tree->nodes));
    }
    check_first(w, e);

    size_t accepted = walk(w, e, w->s->cap, w->s->leaf_stop || w->s->covering, w->path, &end, w->token);
    size_t whole = walk(w, e, 0, false, path, &whole_end, token);
    w->visited = accepted + 1;
    w->at = 0;
    w->covered = child_of(tree, tree->nodes, end, w->token[accepted]) >= 0;
    assert_int_equal(e->accepted, accepted);
    assert_int_equal(e->covered, w->covered);
    if (w->s->score_top == 0 && w->s->score_frontier == 0) { // docs/decoders.md, "Coverage"
        assert_int_equal(tree->scored, 0);
        if (w->s->leaf_stop || w->s->covering) {
            assert_int_equal(w->covered, whole > 0 && is_leaf(tree, whole_end));
            assert_int_equal(w->covered, whole - accepted);
        } else {
            assert_int_equal(w->covered, w->s->cap && whole > w->s->cap);
        }
    }
    w->rounds++;
    w->verified += verified - 1;
    w->scored += tree->scored;
    return HM_OK;
}

static hm_status on_step(void *user, const struct hm_step_event *e, struct hm_error *err)
{
    struct watch *w = user;
    (void)err;
    w->context[w->length++] = e->token;
    if (e->round < 0) return HM_OK;
    assert_true(w->at < w->visited);
    bool last = w->at + 1 == w->visited;
    assert_int_equal(e->node, w->path[w->at]);
    assert_int_equal(e->token, w->token[w->at]);
    assert_int_equal(e->child, last ? -1 : (int64_t)w->path[w->at + 1]);
    assert_int_equal(e->source, last ? HM_TOKEN_CONTINUATION : HM_TOKEN_ACCEPTED);
    assert_int_equal(e->capped, w->s->cap && w->at == w->s->cap);
    w->accepted += !last;
    w->covered_rounds += last && w->covered;
    if (last) w->kept = w->covered;
    w->at++;
    return HM_OK;
}

// ---- tests

// Decodes `most` tokens with everything checked, against plain decoding.
static void check_setting(const struct models *m, const struct setting *s, const int32_t *prompt, size_t length, size_t most,
                          size_t positions, uint64_t *random)
{
    struct opened o;
    struct hm_error err = {0};
    struct hm_session_counts counts = {0};
    size_t n, plain_n;
    open_session(m, s, positions, &o);
    struct watch w = {.m = m, .s = s, .how = &o.options.acceptance, .vocab = hm_model_info(m->target)->vocab,
                      .random = test_random(random), .length = length};
    w.context = malloc((length + most) * sizeof *w.context);
    assert_non_null(w.context);
    memcpy(w.context, prompt, length * sizeof *prompt);
    if (hm_cache_open(m->target, positions + 16, &w.cache, &err)) fail_msg("%s", err.message);
    struct hm_listener listener = {.user = &w, .round = on_round, .step = on_step};
    int32_t *token = decode(&o, prompt, length, most, &listener, &counts, &n);
    int32_t *plain = decode_plainly(m, s, prompt, length, most, positions, &plain_n);
    assert_int_equal(n, plain_n);
    assert_memory_equal(token, plain, n * sizeof *token);
    assert_int_equal(counts.rounds, w.rounds);
    assert_int_equal(counts.covered, w.covered_rounds);
    assert_int_equal(counts.accepted, w.accepted);
    assert_int_equal(counts.root_passes, w.root_passes);
    assert_int_equal(counts.verified, w.verified);
    assert_int_equal(counts.scored, w.scored);
    hm_cache_close(w.cache);
    close_session(&o, s);
    free(w.context);
    free(token);
    free(plain);
}

// The i-th of all combinations of drafter, selection, traversal, scoring and temperature.
enum { SELECTIONS = 5, TRAVERSALS = 4, SCORINGS = 3, COMBINATIONS = (DRAFTINGS - 1) * SELECTIONS * TRAVERSALS * SCORINGS * 2 };

static struct setting combination(size_t i, uint64_t *random)
{
    struct setting s = {.eos = -1, .seed = test_random(random), .width = 1 + test_below(random, 5), .depth = test_below(random, 5)};
    size_t traversal = i % TRAVERSALS, scoring = i / TRAVERSALS % SCORINGS, selection = i / TRAVERSALS / SCORINGS % SELECTIONS;
    s.budget = 1 + test_below(random, 30);
    s.cap = traversal == 1 ? 1 : traversal == 2 ? 2 : 0;
    s.leaf_stop = traversal == 3;
    if (scoring == 1) s.score_top = s.budget + 1 + test_below(random, 60);
    if (scoring == 2) s.score_frontier = 1 + test_below(random, 40);
    s.covering = selection == 4;
    if (s.covering) s.cap = 0;
    if (!s.covering) s.selection = (enum hm_selection)selection;
    i /= TRAVERSALS * SCORINGS * SELECTIONS;
    s.temperature = i % 2 ? "0.8" : "0";
    s.drafting = (enum drafting)(1 + i / 2 % (DRAFTINGS - 1));
    s.serial = test_below(random, 4) == 0;
    s.draft_threads = (unsigned)test_below(random, 4);
    if (i % 2 && test_below(random, 3) == 0) {
        s.top_k = 4 + test_below(random, 20);
        s.top_p = "9/10";
    }
    return s;
}

static void every_combination_emits_plain_tokens(void **state)
{
    const struct models *m = *state;
    uint64_t random = test_seed("combinations");
    size_t count = test_count(30, 150, 5 * COMBINATIONS), stride = 37; // coprime: the long run meets them all
    for (size_t i = 0; i < count; i++) {
        int32_t prompt[16];
        size_t length = 1 + test_below(&random, 16);
        struct setting s = combination(i * stride % COMBINATIONS, &random);
        random_prompt(&random, hm_model_info(m->target)->vocab, prompt, length);
        check_setting(m, &s, prompt, length, 24, 64, &random);
    }
}

// Trees must not reach beyond the models' last position, where a drawn token still wants its node.
static void the_last_positions_can_be_used(void **state)
{
    const struct models *m = *state;
    uint64_t random = test_seed("positions");
    size_t positions = hm_model_info(m->target)->max_positions, length = positions - 14;
    int32_t *prompt = malloc(length * sizeof *prompt);
    assert_non_null(prompt);
    for (size_t i = 0; i < test_count(3, 12, 1200); i++) {
        struct setting s = combination(test_below(&random, COMBINATIONS), &random);
        random_prompt(&random, hm_model_info(m->target)->vocab, prompt, length);
        check_setting(m, &s, prompt, length, 14, positions, &random);
    }
    free(prompt);
}

// A draft that is always right, through a covering decoder: every round but those at its end is covered.
static void a_perfect_draft_is_covered(void **state)
{
    const struct models *m = *state;
    static const int32_t prompt[] = {5, 9, 2};
    struct setting s = {.drafting = SELF, .temperature = "0", .width = 3, .depth = 3, .budget = 30, .eos = -1, .covering = true};
    struct opened o;
    struct hm_session_counts counts = {0};
    struct hm_listener listener = {0};
    size_t n;
    open_session(m, &s, 64, &o);
    free(decode(&o, prompt, 3, 41, &listener, &counts, &n));
    close_session(&o, &s);
    assert_int_equal(n, 41);
    assert_int_equal(counts.rounds, 10); // one token from the prefill, then 3 accepted + 1 a round
    assert_int_equal(counts.accepted, 30);
    assert_int_equal(counts.covered, 10);
    assert_int_equal(counts.root_passes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_combination_emits_plain_tokens),
        cmocka_unit_test(the_last_positions_can_be_used),
        cmocka_unit_test(a_perfect_draft_is_covered),
    };
    return cmocka_run_group_tests(tests, set_up_models, tear_down_models);
}
