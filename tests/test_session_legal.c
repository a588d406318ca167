// Which combinations are decoders, and what is said of those that are not.
#include "tests/session_support.h"

struct refusal {
    struct setting setting;
    const char *message; // NULL: it is legal
};

static const struct refusal table[] = {
    {{.budget = 8}, NULL},
    {{.budget = 0}, NULL},
    {{.budget = 8, .selection = HM_SELECT_PEARL, .cap = 2}, NULL},
    {{.budget = 8, .selection = HM_SELECT_ROOT, .leaf_stop = true, .score_frontier = 4}, NULL},
    {{.budget = 8, .covering = true}, NULL},
    {{.budget = 8, .covering = true, .leaf_stop = true, .selection = HM_SELECT_ROOT_DRAW, .score_top = 9}, NULL},
    {{.budget = 8, .rule = "greedy", .cap = 1}, NULL},
    {{.budget = 8, .stochastic = HM_ACCEPT_STANDARD, .proposal = HM_PROPOSAL_IID}, NULL},
    {{.budget = 8, .rule = "greedy", .covering = true},
     "--decoder covering: expected --accept match, since a round that starts from its first token's own draw leaves nothing to relax"},
    {{.budget = 8, .rule = "greedy", .selection = HM_SELECT_ROOT},
     "--select root: expected --accept match, since every other acceptance is defined for the draft's own choice of candidates"},
    {{.budget = 8, .rule = "topm:2", .selection = HM_SELECT_ROOT_DRAW},
     "--select root-draw: expected --accept match, since the first token is the target's own draw and leaves nothing to relax"},
    {{.budget = 8, .stochastic = HM_ACCEPT_STANDARD, .selection = HM_SELECT_PEARL},
     "--select pearl: expected --accept match, since the first token is the target's own draw and leaves nothing to relax"},
    {{.budget = 8, .rule = "greedy", .leaf_stop = true},
     "--traverse leaf-stop: expected --accept match, since the token it stops at is emitted as the target's own draw"},
    {{.budget = 8, .rule = "greedy", .score_top = 20},
     "--score-top: expected --accept match, since the row it keeps serves no other decoder"},
    {{.budget = 8, .rule = "greedy", .score_frontier = 20},
     "--score-frontier: expected --accept match, since the row it keeps serves no other decoder"},
    {{.budget = 8, .cap = 2, .leaf_stop = true}, "--traverse cap:2: expected one traversal, found leaf-stop as well"},
    {{.budget = 8, .cap = 2, .covering = true},
     "--traverse cap:2: expected one traversal, found leaf-stop as well, which --decoder covering implies"},
    {{.budget = 8, .covering = true, .selection = HM_SELECT_ROOT},
     "--decoder covering: expected no --select root, since it selects by draft, and by root-draw after a covered round"},
    {{.budget = 8, .score_top = 20, .score_frontier = 2}, "--score-top, --score-frontier: expected one of the two, found both"},
    {{.budget = 8, .score_top = 8}, "--score-top 8: expected more than the tree's budget, 8, since those are verified anyway"},
    {{.budget = 0, .selection = HM_SELECT_PEARL}, "--tree-budget 0: expected at least 1 with pearl, since the drawn token is verified"},
    {{.budget = 0, .covering = true}, "--tree-budget 0: expected at least 1 with --decoder covering, since the drawn token is verified"},
    {{.budget = 8, .fidelity = HM_BUDGET_TV}, "a fidelity budget: expected a limit, found none"},
};

static void illegal_combinations_say_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct setting *s = &table[i].setting;
        struct hm_error err = {0};
        struct hm_rule rule;
        struct hm_rational one;
        hm_rational_init(&one);
        hm_rational_set_int(&one, 1, 1);
        if (s->rule) assert_int_equal(hm_rule_parse(s->rule, &rule, &err), HM_OK);
        struct hm_session_options options = {
            .width = 3, .depth = 3, .budget = s->budget, .selection = s->selection, .covering = s->covering, .cap = s->cap,
            .leaf_stop = s->leaf_stop, .score_top = s->score_top, .score_frontier = s->score_frontier, .fidelity = s->fidelity,
            .acceptance = {.kind = s->stochastic ? s->stochastic : s->rule ? HM_ACCEPT_RULE : HM_ACCEPT_MATCH,
                           .rule = s->rule ? &rule : NULL, .proposal = s->proposal, .temperature = &one, .certify_temperature = &one}};
        hm_status rc = hm_session_legal(&options, &err);
        assert_int_equal(rc, table[i].message ? HM_USAGE : HM_OK);
        if (rc && strcmp(err.message, table[i].message)) fail_msg("expected: %s\nfound:    %s", table[i].message, err.message);
        if (s->rule) hm_rule_clear(&rule);
        hm_rational_clear(&one);
    }
}

static void draws_want_a_drafter_with_rows(void **state)
{
    (void)state;
    struct hm_error err = {0};
    struct hm_rational one;
    struct hm_drafter *ngram = NULL;
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    assert_int_equal(hm_drafter_open_ngram(&ngram, &err), HM_OK);
    struct hm_session_options options = {.drafter = ngram, .width = 3, .depth = 3, .budget = 8,
                                         .acceptance = {.kind = HM_ACCEPT_STANDARD, .proposal = HM_PROPOSAL_IID,
                                                        .temperature = &one, .certify_temperature = &one}};
    assert_int_equal(hm_session_legal(&options, &err), HM_USAGE);
    assert_string_equal(err.message, "--proposal iid: expected a drafter with rows to draw from, found ngram");
    options.acceptance.proposal = HM_PROPOSAL_TOPK;
    assert_int_equal(hm_session_legal(&options, &err), HM_OK);
    hm_drafter_close(ngram);
    hm_rational_clear(&one);
}

// A pool whose size does not fit, and a session asked for the impossible.
static void opening_refuses_what_cannot_be(void **state)
{
    const struct models *m = *state;
    struct hm_error err = {0};
    struct opened o;
    struct setting s = {.drafting = NGRAM, .temperature = "0", .width = 3, .depth = 3, .budget = 8, .eos = -1};
    open_session(m, &s, 64, &o);
    struct hm_session *session = NULL;
    struct hm_session_options options = o.options;
    options.width = options.depth = SIZE_MAX / 4;
    assert_int_equal(hm_session_open(&options, &session, &err), HM_RANGE);
    assert_null(session);
    options = o.options;
    options.width = 0;
    assert_int_equal(hm_session_open(&options, &session, &err), HM_USAGE);
    assert_string_equal(err.message, "--tree-width: expected at least 1, found 0");
    options = o.options;
    options.cap = 1;
    options.leaf_stop = true;
    assert_int_equal(hm_session_open(&options, &session, &err), HM_USAGE);
    // Budgets beyond the pool are no more than the pool.
    options = o.options;
    options.budget = SIZE_MAX;
    assert_int_equal(hm_session_open(&options, &session, &err), HM_OK);
    hm_session_close(session);
    close_session(&o, &s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(illegal_combinations_say_why),
        cmocka_unit_test(draws_want_a_drafter_with_rows),
        cmocka_unit_test(opening_refuses_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, set_up_models, tear_down_models);
}
