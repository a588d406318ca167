// The round loop on random models: whatever the draft, `match` emits what plain decoding emits; every decision follows the
// walk of docs/log.md; cuts are exact.
#include "tests/session_support.h"

#include "certify/row.h"

// Checks each event as it comes.
struct watch {
    const struct hm_acceptance *how;
    size_t vocab, cap;
    uint32_t t;
    size_t expected_node;     // where the next step of the round must stand
    size_t accepted;          // in this round
    uint64_t checked;
    enum hm_stop_reason stop;
    int32_t parent[128], token[128];
    size_t nodes;
};

static hm_status on_round(void *user, const struct hm_round_event *event, struct hm_error *err)
{
    struct watch *w = user;
    (void)err;
    assert_int_equal(event->t, w->t);
    assert_true(event->tree->nodes <= 128);
    w->nodes = event->tree->nodes;
    memcpy(w->parent, event->tree->parent, w->nodes * sizeof *w->parent);
    memcpy(w->token, event->tree->token, w->nodes * sizeof *w->token);
    w->expected_node = w->accepted = 0;
    return HM_OK;
}

// The best accepted child by asking about every one, without the shortcuts of the decoder.
static int64_t best_child(struct watch *w, const struct hm_step_event *event)
{
    struct hm_row *row = NULL;
    struct hm_error err;
    int64_t best = -1;
    assert_int_equal(hm_row_open(event->target_row, w->vocab, w->how->certify_temperature, &row, &err), HM_OK);
    for (size_t i = 1; i < w->nodes; i++) {
        enum hm_verdict verdict;
        if (w->parent[i] != (int32_t)event->node) continue;
        assert_int_equal(hm_rule_accepts(w->how->rule, row, w->token[i], &verdict, &err), HM_OK);
        if (verdict != HM_YES) continue;
        if (best < 0 || hm_row_rank(row, w->token[i]) < hm_row_rank(row, w->token[best])) best = (int64_t)i;
    }
    hm_row_close(row);
    return best;
}

static hm_status on_step(void *user, const struct hm_step_event *event, struct hm_error *err)
{
    struct watch *w = user;
    (void)err;
    assert_int_equal(event->t, w->t);
    w->t++;
    w->stop = event->stop;
    if (event->round < 0) {
        assert_int_equal(event->source, HM_TOKEN_PREFILL);
        return HM_OK;
    }
    assert_int_equal(event->node, w->expected_node);
    bool capped = w->cap && w->accepted >= w->cap;
    if (w->how->rule) assert_int_equal(event->child, capped ? -1 : best_child(w, event));
    if (event->child >= 0) {
        assert_int_equal(event->source, HM_TOKEN_ACCEPTED);
        assert_int_equal(w->parent[event->child], (int32_t)event->node);
        assert_int_equal(w->token[event->child], event->token);
        w->expected_node = (size_t)event->child;
        w->accepted++;
    } else {
        assert_int_equal(event->source, HM_TOKEN_CONTINUATION);
        if (!w->how->rule && !capped)
            for (size_t i = 1; i < w->nodes; i++)
                assert_false(w->parent[i] == (int32_t)event->node && w->token[i] == event->token);
    }
    w->checked++;
    return HM_OK;
}

// Decodes with every event checked; the caller frees the tokens.
static int32_t *run(const struct models *m, const struct setting *s, const int32_t *prompt, size_t length, size_t most,
                    size_t positions, size_t *count, struct hm_session_counts *counts, enum hm_stop_reason *stop)
{
    struct opened o;
    open_session(m, s, positions, &o);
    struct watch watch = {.how = &o.options.acceptance, .vocab = hm_model_info(m->target)->vocab, .cap = s->cap};
    struct hm_listener listener = {.user = &watch, .round = on_round, .step = on_step};
    int32_t *token = decode(&o, prompt, length, most, &listener, counts, count);
    assert_int_equal(watch.t, *count);
    if (stop) *stop = watch.stop;
    close_session(&o, s);
    return token;
}

static void match_equals_plain_decoding(void **state)
{
    const struct models *m = *state;
    uint64_t random = test_seed("match");
    size_t vocab = hm_model_info(m->target)->vocab;
    for (size_t round = 0; round < test_count(6, 30, 1000); round++) {
        int32_t prompt[24];
        size_t length = 1 + test_below(&random, 24), a, b;
        random_prompt(&random, vocab, prompt, length);
        struct setting s = {.drafting = (enum drafting)(1 + test_below(&random, DRAFTINGS - 1)), .eos = -1,
                            .temperature = test_below(&random, 2) ? "0.8" : "0", .width = 1 + test_below(&random, 5),
                            .depth = test_below(&random, 5), .budget = test_below(&random, 30),
                            .cap = test_below(&random, 3), .seed = test_random(&random)};
        if (s.temperature[1] && test_below(&random, 2)) {
            s.top_k = 5 + test_below(&random, 20);
            s.top_p = "9/10";
        }
        struct setting plain = s;
        plain.drafting = PLAIN;
        struct hm_session_counts counts = {0};
        int32_t *tree_tokens = run(m, &s, prompt, length, 40, 64, &a, &counts, NULL);
        int32_t *plain_tokens = run(m, &plain, prompt, length, 40, 64, &b, &counts, NULL);
        assert_int_equal(a, 40);
        assert_int_equal(b, 40);
        assert_memory_equal(tree_tokens, plain_tokens, 40 * sizeof *tree_tokens);
        free(tree_tokens);
        free(plain_tokens);
    }
}

static void a_perfect_draft_is_accepted_whole(void **state)
{
    const struct models *m = *state;
    static const int32_t prompt[] = {5, 9, 2};
    struct setting s = {.drafting = SELF, .temperature = "0", .width = 3, .depth = 3, .budget = 30, .eos = -1};
    struct hm_session_counts counts = {0};
    size_t n;
    free(run(m, &s, prompt, 3, 41, 64, &n, &counts, NULL));
    assert_int_equal(n, 41);
    assert_int_equal(counts.rounds, 8); // one token from the prefill, then 4 accepted + 1 a round
    assert_int_equal(counts.accepted, 32);
    assert_int_equal(counts.full, 8);
    assert_int_equal(counts.reached[3], 8);
    assert_int_equal(counts.reached[4], 0);
}

static void relaxed_rules_follow_the_walk(void **state)
{
    const struct models *m = *state;
    static const char *const rules[] = {"greedy", "additive:0.1", "multiplicative:0.3", "topm:3", "entropy:0.09,0.3",
                                        "regret:2", "topk-delta:10,0.6"};
    uint64_t random = test_seed("rules");
    size_t vocab = hm_model_info(m->target)->vocab, accepted = 0;
    for (size_t round = 0; round < test_count(14, 28, 700); round++) {
        int32_t prompt[10];
        size_t n;
        random_prompt(&random, vocab, prompt, 10);
        struct setting s = {.drafting = round % 3 ? SELF : STRANGER, .temperature = round % 2 ? "0.8" : "0", .eos = -1,
                            .rule = rules[round % 7], .width = 4, .depth = 3, .budget = 16,
                            .cap = test_below(&random, 3), .seed = test_random(&random)};
        struct hm_session_counts counts = {0};
        free(run(m, &s, prompt, 10, 30, 64, &n, &counts, NULL));
        assert_int_equal(n, 30);
        accepted += counts.accepted;
    }
    assert_true(accepted > 0);
}

static void cuts_are_exact(void **state)
{
    const struct models *m = *state;
    static const int32_t prompt[] = {7, 7, 1, 30};
    struct setting s = {.drafting = SELF, .temperature = "0", .width = 3, .depth = 4, .budget = 16, .eos = -1};
    struct hm_session_counts counts = {0};
    enum hm_stop_reason stop;
    size_t n, cut;
    int32_t *all = run(m, &s, prompt, 4, 60, 64, &n, &counts, &stop);
    assert_int_equal(n, 60); // the context ends exactly at its last position
    assert_int_equal(stop, HM_STOP_LENGTH);
    for (size_t most = 1; most < 12; most++) {
        int32_t *some = run(m, &s, prompt, 4, most, 64, &cut, &counts, &stop);
        assert_int_equal(cut, most);
        assert_int_equal(stop, HM_STOP_LENGTH);
        assert_memory_equal(some, all, most * sizeof *some);
        free(some);
    }
    for (size_t i = 0; i < 20; i++) { // each token in turn ends the text at its first occurrence
        size_t first = 0;
        s.eos = all[i];
        while (all[first] != s.eos) first++;
        int32_t *some = run(m, &s, prompt, 4, 60, 64, &cut, &counts, &stop);
        assert_int_equal(cut, first + 1);
        assert_int_equal(stop, HM_STOP_EOS);
        free(some);
    }
    free(all);
}

// The tree must not reach beyond the models' last position, and the tokens there are still those of plain decoding.
static void the_last_positions_can_be_used(void **state)
{
    const struct models *m = *state;
    size_t positions = hm_model_info(m->target)->max_positions, n, plain_n;
    size_t length = positions - 20;
    uint64_t random = test_seed("positions");
    int32_t *prompt = malloc(length * sizeof *prompt);
    assert_non_null(prompt);
    random_prompt(&random, hm_model_info(m->target)->vocab, prompt, length);
    struct setting s = {.drafting = SELF, .temperature = "0", .width = 3, .depth = 4, .budget = 16, .eos = -1}, plain = s;
    plain.drafting = PLAIN;
    struct hm_session_counts counts = {0};
    int32_t *tree_tokens = run(m, &s, prompt, length, 20, positions, &n, &counts, NULL);
    int32_t *plain_tokens = run(m, &plain, prompt, length, 20, positions, &plain_n, &counts, NULL);
    assert_int_equal(n, 20);
    assert_int_equal(plain_n, 20);
    assert_memory_equal(tree_tokens, plain_tokens, 20 * sizeof *tree_tokens);
    free(prompt);
    free(tree_tokens);
    free(plain_tokens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(match_equals_plain_decoding),
        cmocka_unit_test(a_perfect_draft_is_accepted_whole),
        cmocka_unit_test(relaxed_rules_follow_the_walk),
        cmocka_unit_test(cuts_are_exact),
        cmocka_unit_test(the_last_positions_can_be_used),
    };
    return cmocka_run_group_tests(tests, set_up_models, tear_down_models);
}
