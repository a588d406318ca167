// Sessions under stochastic acceptance and fidelity budgets: each step decided again from its event alone, children found by
// place, trees of draws whose shape no draw changes, budgets charged in order and begun anew with each sequence.
#include "tests/session_support.h"

enum { MOST_NODES = 64 };

struct watch {
    const struct setting *s;
    const struct hm_acceptance *how;
    size_t vocab;
    struct hm_budget budget;
    int32_t parent[MOST_NODES], token[MOST_NODES];
    size_t nodes;
    uint64_t charged, relaxed, repeats, later; // steps; draws that repeat a sibling; accepted children after the first
};

static hm_status on_round(void *user, const struct hm_round_event *e, struct hm_error *err)
{
    struct watch *w = user;
    (void)err;
    assert_true(e->tree->nodes <= MOST_NODES);
    w->nodes = e->tree->nodes;
    memcpy(w->parent, e->tree->parent, w->nodes * sizeof *w->parent);
    memcpy(w->token, e->tree->token, w->nodes * sizeof *w->token);
    if (w->s->proposal != HM_PROPOSAL_IID) return HM_OK;
    // `width` draws at the root and at the first of each level, in pool order, as many as the budget lets in.
    size_t full = w->s->width * (w->s->depth + 1);
    assert_int_equal(w->nodes - 1, full < w->s->budget ? full : w->s->budget);
    for (size_t i = 1; i < w->nodes; i++) {
        size_t level = (i - 1) / w->s->width;
        assert_int_equal(w->parent[i], level ? (int)((level - 1) * w->s->width + 1) : 0);
        for (size_t j = 1; j < i; j++) w->repeats += w->parent[i] == w->parent[j] && w->token[i] == w->token[j];
    }
    return HM_OK;
}

static hm_status on_step(void *user, const struct hm_step_event *e, struct hm_error *err)
{
    struct watch *w = user;
    struct hm_accept_node node = {.target = e->target_row, .draft = e->draft_row, .vocab = w->vocab, .sequence = SEQUENCE,
                                  .t = e->t, .children = e->children, .child_count = e->capped ? 0 : e->child_count};
    struct hm_decision d;
    assert_int_equal(hm_accept(w->how, w->s->fidelity ? &w->budget : NULL, &node, &d, err), HM_OK);
    assert_int_equal(e->token, d.token);
    assert_int_equal(e->charged, d.charged);
    assert_int_equal(e->relaxed, d.relaxed);
    assert_true(e->spent == d.spent);
    if (d.charged) assert_memory_equal(&e->charge, &d.charge, sizeof d.charge);
    w->charged += d.charged;
    w->relaxed += d.charged && d.relaxed;
    assert_int_equal(e->child < 0, d.child < 0);
    if (d.child < 0) return HM_OK;
    size_t place = 0;
    for (size_t i = 1; i < (size_t)e->child; i++) place += w->parent[i] == (int32_t)e->node;
    assert_int_equal(w->parent[e->child], (int)e->node);
    assert_int_equal(place, d.child);
    w->later += place > 0;
    return HM_OK;
}

static struct setting random_setting(uint64_t *random)
{
    static const char *const rules[] = {"nucleus:0.5", "nucleus:0.9", "nucleus:1"};
    static const char *const limits[] = {"0", "1/1000", "1/10", "1", "5"};
    static const char *const deterministic[] = {"additive:0.1", "topm:3", "regret:4"};
    struct setting s = {.eos = -1, .seed = test_random(random), .width = 1 + test_below(random, 4), .depth = test_below(random, 4),
                        .budget = 1 + test_below(random, 16), .cap = test_below(random, 3), .temperature = "0.8"};
    s.drafting = test_below(random, 2) ? SELF : STRANGER;
    bool budget = test_below(random, 2);
    switch (test_below(random, 3)) {
    case 0: s.stochastic = HM_ACCEPT_STANDARD; break;
    case 1:
        s.stochastic = HM_ACCEPT_NUCLEUS;
        s.rule = rules[test_below(random, 3)];
        if (budget) s.fidelity = HM_BUDGET_TV;
        break;
    default:
        s.rule = deterministic[test_below(random, 3)];
        s.temperature = "0";
        if (budget) s.fidelity = HM_BUDGET_REGRET;
    }
    if (s.fidelity) s.limit = limits[test_below(random, 5)];
    if (s.stochastic && test_below(random, 2)) s.proposal = HM_PROPOSAL_IID;
    return s;
}

static void steps_follow_from_their_events(void **state)
{
    const struct models *m = *state;
    uint64_t random = test_seed("stochastic"), charged = 0, relaxed = 0, repeats = 0, later = 0;
    for (size_t i = 0; i < test_count(20, 120, 5000); i++) {
        struct setting s = random_setting(&random);
        struct opened o;
        struct hm_session_counts counts = {0};
        int32_t prompt[8];
        size_t n;
        open_session(m, &s, 64, &o);
        struct watch w = {.s = &s, .how = &o.options.acceptance, .vocab = hm_model_info(m->target)->vocab};
        hm_budget_init(&w.budget);
        w.budget.kind = s.fidelity;
        hm_rational_set(&w.budget.limit, &o.limit);
        struct hm_listener listener = {.user = &w, .round = on_round, .step = on_step};
        for (int sequence = 0; sequence < 2; sequence++) {
            hm_budget_begin(&w.budget, 20, s.budget, w.vocab);
            random_prompt(&random, w.vocab, prompt, 8);
            free(decode(&o, prompt, 8, 20, &listener, &counts, &n));
        }
        assert_int_equal(counts.charged, w.charged);
        assert_int_equal(counts.relaxed, w.relaxed);
        charged += w.charged;
        relaxed += w.relaxed;
        repeats += w.repeats;
        later += w.later;
        hm_budget_clear(&w.budget);
        close_session(&o, &s);
    }
    assert_true(relaxed > 0 && charged > relaxed && later > 0);
    assert_true(test_count(0, 1, 1) == 0 || repeats > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_follow_from_their_events),
    };
    return cmocka_run_group_tests(tests, set_up_models, tear_down_models);
}
