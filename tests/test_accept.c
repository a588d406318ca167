// Pools of iid draws, the combinations that are legal, and decisions that need no statistics.
#include "certify/philox.h"
#include "decode/accept.h"
#include "decode/pool.h"
#include "tests/certify_rows.h"

#include <string.h>

// ---- pools of draws

static void fill_pool(struct hm_pool *pool, const float *row, size_t vocab, size_t depth)
{
    for (size_t level = 0; level <= depth; level++) {
        size_t parents = level ? pool->beam_count : 1;
        for (size_t i = 0; i < parents; i++) {
            int32_t parent = level ? (int32_t)pool->beam[i] : -1;
            memcpy(hm_pool_reserve_rows(pool, 1, NULL), row, vocab * sizeof *row);
            assert_int_equal(hm_pool_expand(pool, parent, NULL), HM_OK);
        }
        hm_pool_advance(pool);
    }
}

// Each child carries the draw of its position and number; the shape is the same whatever is drawn.
static void iid_pools_have_one_shape(void **state)
{
    (void)state;
    struct random r = seeded("iid pools");
    enum { WIDE = 20, LEVELS = 3 };
    struct hm_rational half;
    hm_rational_init(&half);
    hm_rational_set_int(&half, 1, 2);
    for (size_t n = 0; n < rounds(100); n++) {
        float row[WIDE];
        int32_t ids[WIDE];
        size_t width = 1 + below(&r, 4), usable = 2 + below(&r, WIDE - 1), best[64];
        for (size_t i = 0; i < WIDE; i++) {
            row[i] = below(&r, 5) ? (float)gauss(&r) : -INFINITY;
            ids[i] = (int32_t)(3 * i + 1);
        }
        row[0] = 0;
        struct hm_pool pool;
        struct hm_pool_options options = {.width = width, .vocab = WIDE, .usable = usable, .ids = n % 2 ? ids : NULL,
                                          .proposal = HM_PROPOSAL_IID, .temperature = &half, .seed = n};
        assert_int_equal(hm_pool_init(&pool, &options, NULL), HM_OK);
        pool.sequence = 5;
        pool.t = 11;
        fill_pool(&pool, row, WIDE, LEVELS - 1);
        assert_int_equal(pool.count, LEVELS * width);
        struct hm_row *q = open_row(row, usable, "1/2");
        for (size_t i = 0; i < pool.count; i++) {
            const struct hm_candidate *c = &pool.candidate[i];
            int32_t entry;
            size_t level = i / width;
            uint64_t bits = hm_philox_bits(n, 5, 11 + (uint32_t)level, HM_DRAW_DRAFT, (uint32_t)(i % width));
            assert_int_equal(hm_row_draw(q, usable, bits, &entry, NULL), HM_OK);
            assert_int_equal(c->token, n % 2 ? ids[entry] : entry);
            assert_int_equal(c->parent, level ? (int)((level - 1) * width) : -1);
            assert_int_equal(c->depth, level + 1);
            double sum = 0;
            for (size_t k = 0; k < usable; k++) sum += exp((double)row[k]);
            assert_true(fabs((double)c->logq - ((double)row[entry] - log(sum))) < 1e-5); // at temperature 1: a drafter's score
        }
        size_t most = below(&r, pool.count + 3), count = hm_pool_best(&pool, most, best);
        assert_int_equal(count, most < pool.count ? most : pool.count);
        for (size_t i = 0; i < count; i++) assert_int_equal(best[i], i);
        hm_row_close(q);
        hm_pool_clear(&pool);
    }
    hm_rational_clear(&half);
}

static void rows_that_cannot_be_drawn_from(void **state)
{
    (void)state;
    struct hm_rational one;
    struct hm_pool pool;
    struct hm_error err;
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    struct hm_pool_options options = {.width = 2, .vocab = 3, .usable = 3, .proposal = HM_PROPOSAL_IID, .temperature = &one};
    assert_int_equal(hm_pool_init(&pool, &options, NULL), HM_OK);
    memcpy(hm_pool_reserve_rows(&pool, 1, NULL), (float[]){1, NAN, 2}, 3 * sizeof(float));
    assert_int_equal(hm_pool_expand(&pool, -1, &err), HM_RANGE);
    assert_string_equal(err.message, "draft row: logit 1: expected a finite number or -inf, found NaN");
    assert_int_equal(pool.count, 0);
    hm_pool_clear(&pool);
    hm_rational_clear(&one);
}

// ---- legal combinations

struct combination {
    enum hm_acceptance_kind kind;
    const char *rule;
    enum hm_proposal proposal;
    const char *temperature, *certify;
    size_t top_k;
    const char *top_p;
    enum hm_budget_kind budget;
    const char *message; // NULL: legal
};

static const struct combination combinations[] = {
    {HM_ACCEPT_MATCH, NULL, HM_PROPOSAL_TOPK, "0", "1", 5, "1/2", HM_BUDGET_NONE, NULL},
    {HM_ACCEPT_RULE, "additive:1/10", HM_PROPOSAL_TOPK, "0", "1", 0, NULL, HM_BUDGET_REGRET, NULL},
    {HM_ACCEPT_STANDARD, NULL, HM_PROPOSAL_IID, "1/2", "1/2", 0, "1", HM_BUDGET_NONE, NULL},
    {HM_ACCEPT_NUCLEUS, "nucleus:9/10", HM_PROPOSAL_TOPK, "1", "1", 0, NULL, HM_BUDGET_TV, NULL},
    {HM_ACCEPT_RULE, "nucleus:9/10", HM_PROPOSAL_TOPK, "1", "1", 0, NULL, HM_BUDGET_NONE,
     "--accept nucleus:P is nucleus speculative decoding, not a deterministic rule"},
    {HM_ACCEPT_NUCLEUS, "additive:1/10", HM_PROPOSAL_TOPK, "1", "1", 0, NULL, HM_BUDGET_NONE,
     "--accept nucleus: expected a share, as in nucleus:9/10"},
    {HM_ACCEPT_STANDARD, NULL, HM_PROPOSAL_TOPK, "0", "1", 0, NULL, HM_BUDGET_NONE,
     "--accept standard draws: expected --temperature above 0, found 0"},
    {HM_ACCEPT_NUCLEUS, "nucleus:1", HM_PROPOSAL_TOPK, "1", "1", 3, NULL, HM_BUDGET_NONE,
     "--accept nucleus compares whole distributions: expected none, found --top-k"},
    {HM_ACCEPT_STANDARD, NULL, HM_PROPOSAL_TOPK, "1", "1", 0, "9/10", HM_BUDGET_NONE,
     "--accept standard compares whole distributions: expected none, found --top-p"},
    {HM_ACCEPT_STANDARD, NULL, HM_PROPOSAL_TOPK, "1", "2", 0, NULL, HM_BUDGET_NONE,
     "--accept standard: expected --certify-temperature to be --temperature, 1, found 2"},
    {HM_ACCEPT_MATCH, NULL, HM_PROPOSAL_IID, "1", "1", 0, NULL, HM_BUDGET_NONE,
     "--proposal iid: expected --accept standard or nucleus:P; others want distinct children"},
    {HM_ACCEPT_RULE, "greedy", HM_PROPOSAL_IID, "1", "1", 0, NULL, HM_BUDGET_NONE,
     "--proposal iid: expected --accept standard or nucleus:P; others want distinct children"},
    {HM_ACCEPT_STANDARD, NULL, HM_PROPOSAL_TOPK, "1", "1", 0, NULL, HM_BUDGET_TV,
     "--tv-budget bounds what nucleus speculative decoding costs: expected --accept nucleus:P"},
    {HM_ACCEPT_NUCLEUS, "nucleus:1/2", HM_PROPOSAL_TOPK, "1", "1", 0, NULL, HM_BUDGET_REGRET,
     "--regret-budget bounds what a deterministic rule costs: expected --accept with such a rule"},
    {HM_ACCEPT_MATCH, NULL, HM_PROPOSAL_TOPK, "0", "1", 0, NULL, HM_BUDGET_REGRET,
     "--regret-budget bounds what a deterministic rule costs: expected --accept with such a rule"},
    {HM_ACCEPT_RULE, "additive:1/10", HM_PROPOSAL_TOPK, "1/2", "1/2", 0, NULL, HM_BUDGET_REGRET,
     "--regret-budget is for greedy decoding: expected --temperature 0, found 0.5"},
};

static void combinations_are_legal_or_say_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof combinations / sizeof *combinations; i++) {
        const struct combination *c = &combinations[i];
        struct hm_rational t, certify, top_p;
        struct hm_rule rule;
        struct hm_budget budget;
        struct hm_error err = {.message = ""};
        hm_rational_init(&t);
        hm_rational_init(&certify);
        hm_rational_init(&top_p);
        hm_budget_init(&budget);
        budget.kind = c->budget;
        assert_int_equal(hm_rational_parse(c->temperature, &t, &err), HM_OK);
        assert_int_equal(hm_rational_parse(c->certify, &certify, &err), HM_OK);
        if (c->top_p) assert_int_equal(hm_rational_parse(c->top_p, &top_p, &err), HM_OK);
        if (c->rule) rule = parse_rule(c->rule);
        struct hm_acceptance how = {.kind = c->kind, .rule = c->rule ? &rule : NULL, .proposal = c->proposal, .temperature = &t,
                                    .certify_temperature = &certify, .top_k = c->top_k, .top_p = c->top_p ? &top_p : NULL};
        assert_int_equal(hm_acceptance_check(&how, &budget, &err), c->message ? HM_USAGE : HM_OK);
        if (c->message) assert_string_equal(err.message, c->message);
        if (c->rule) hm_rule_clear(&rule);
        hm_budget_clear(&budget);
        hm_rational_clear(&t);
        hm_rational_clear(&certify);
        hm_rational_clear(&top_p);
    }
}

static void iid_needs_the_drafts_row(void **state)
{
    (void)state;
    struct hm_rational one;
    struct hm_decision out;
    struct hm_error err;
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    struct hm_acceptance how = {.kind = HM_ACCEPT_STANDARD, .proposal = HM_PROPOSAL_IID, .temperature = &one, .certify_temperature = &one};
    struct hm_accept_node node = {.target = (float[]){0, 1}, .vocab = 2, .children = (int32_t[]){1}, .child_count = 1};
    assert_int_equal(hm_accept(&how, NULL, &node, &out, &err), HM_USAGE);
    assert_string_equal(err.message, "iid proposals: expected the draft's row, found none");
    how.proposal = HM_PROPOSAL_TOPK; // point masses do not
    assert_int_equal(hm_accept(&how, NULL, &node, &out, &err), HM_OK);
    assert_false(out.charged || out.relaxed);
    assert_int_equal(out.support, 2);
    node.child_count = 0; // without children: the draw that match would make
    struct hm_acceptance match = {.kind = HM_ACCEPT_MATCH, .temperature = &one, .certify_temperature = &one};
    for (uint32_t t = 0; t < 50; t++) {
        struct hm_decision other;
        node.t = t;
        assert_int_equal(hm_accept(&how, NULL, &node, &out, &err), HM_OK);
        assert_int_equal(hm_accept(&match, NULL, &node, &other, &err), HM_OK);
        assert_int_equal(out.token, other.token);
    }
    hm_rational_clear(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iid_pools_have_one_shape),
        cmocka_unit_test(rows_that_cannot_be_drawn_from),
        cmocka_unit_test(combinations_are_legal_or_say_why),
        cmocka_unit_test(iid_needs_the_drafts_row),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
