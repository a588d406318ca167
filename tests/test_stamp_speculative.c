// The stamper under stochastic acceptance and budgets: headers and records that make no sense, and figures of rows that
// can be worked by hand. p is uniform over four tokens, q over the first two, A(p) is those two.
#include "certify/stamp.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { VOCAB = 4 };
static const float p_row[VOCAB] = {0, 0, 0, 0}, q_row[VOCAB] = {0, 0, -INFINITY, -INFINITY};

// A header and what is charged, in words.
struct setting {
    const char *acceptance; // NULL: match; "standard"; a rule
    const char *temperature, *certify_temperature, *top_p, *limit, *selection, *traversal, *score, *proposal;
    size_t top_k;
    int budget;
    bool iid, no_draft, audit, both; // both: a rule and standard
};

struct words {
    struct hm_rational temperature, certify, top_p, limit;
    struct hm_rule claimed, rule;
    bool has_rule;
};

static void parse(const char *text, struct hm_rational *out)
{
    hm_rational_init(out);
    assert_int_equal(hm_rational_parse(text, out, NULL), HM_OK);
}

static hm_status open_as(const struct setting *x, struct words *w, const struct hm_stamp_options *options,
                         struct hm_stamper **out, struct hm_error *err)
{
    static const struct hm_log_model model = {.name = "hand", .vocab = VOCAB, .architecture = "none"};
    *w = (struct words){.has_rule = x->acceptance && strcmp(x->acceptance, "standard") != 0};
    parse(x->temperature ? x->temperature : "1", &w->temperature);
    parse(x->certify_temperature ? x->certify_temperature : "1", &w->certify);
    parse(x->top_p ? x->top_p : "1", &w->top_p);
    parse(x->limit ? x->limit : "1", &w->limit);
    assert_int_equal(hm_rule_parse("nucleus:1/2", &w->claimed, NULL), HM_OK);
    if (w->has_rule) assert_int_equal(hm_rule_parse(x->acceptance, &w->rule, NULL), HM_OK);
    const struct hm_log_header header = {.rules = &w->claimed,
                                         .rule_count = 1,
                                         .m = (uint32_t[]){x->audit ? 1 : HM_M_TREE},
                                         .m_count = 1,
                                         .audit = x->audit,
                                         .acceptance = w->has_rule ? &w->rule : NULL,
                                         .standard = x->both || (x->acceptance && !w->has_rule),
                                         .proposal_iid = x->iid,
                                         .budget_kind = x->budget,
                                         .budget_limit = x->budget ? &w->limit : NULL,
                                         .temperature = &w->temperature,
                                         .certify_temperature = &w->certify,
                                         .top_k = x->top_k,
                                         .top_p = x->top_p ? &w->top_p : NULL,
                                         .target = &model,
                                         .draft = x->no_draft ? NULL : &model,
                                         .tokenizer_sha256 = "",
                                         .drafter = "standalone",
                                         .width = 2,
                                         .depth = 1,
                                         .budget = 2,
                                         .selection = x->selection ? x->selection : "draft",
                                         .traversal = x->traversal ? x->traversal : "exhaustive",
                                         .score = x->score,
                                         .proposal = x->proposal ? x->proposal
                                                     : x->iid    ? "iid"
                                                                 : "topk",
                                         .weights_dtype = "F32",
                                         .backend = "none",
                                         .row_source = "x"};
    return hm_stamper_open(options, &header, out, err);
}

static void clear(struct words *w)
{
    hm_rational_clear(&w->temperature);
    hm_rational_clear(&w->certify);
    hm_rational_clear(&w->top_p);
    hm_rational_clear(&w->limit);
    hm_rule_clear(&w->claimed);
    if (w->has_rule) hm_rule_clear(&w->rule);
}

static void headers_that_make_no_sense(void **unused)
{
    (void)unused;
    static const struct {
        struct setting setting;
        const char *message; // after "log header: "; NULL: it makes sense
    } cases[] = {
        {{.acceptance = "standard"}, NULL},
        {{.acceptance = "nucleus:1/2", .iid = true, .traversal = "cap:2", .budget = HM_LOG_TV_BUDGET}, NULL},
        {{.acceptance = "standard", .no_draft = true}, NULL},
        {{.acceptance = "additive:1/2", .temperature = "0", .budget = HM_LOG_REGRET_BUDGET, .limit = "0"}, NULL},
        {{.selection = "covering", .traversal = "leaf-stop", .score = "frontier:all"}, NULL},
        {{.selection = "pearl", .score = "top:3"}, NULL},
        {{.acceptance = "greedy", .both = true}, "acceptance: expected a rule or standard, found both"},
        {{.acceptance = "standard", .temperature = "0"}, "standard and nucleus: expected one temperature above 0"},
        {{.acceptance = "nucleus:1/2", .temperature = "1/2"}, "standard and nucleus: expected one temperature above 0"},
        {{.acceptance = "standard", .top_k = 3}, "standard and nucleus: expected neither top-k nor top-p"},
        {{.acceptance = "nucleus:1", .top_p = "9/10"}, "standard and nucleus: expected neither top-k nor top-p"},
        {{.iid = true}, "proposal iid: expected a draft model and acceptance standard or nucleus"},
        {{.acceptance = "greedy", .iid = true},
         "proposal iid: expected a draft model and acceptance standard or nucleus"},
        {{.acceptance = "standard", .iid = true, .no_draft = true},
         "proposal iid: expected a draft model and acceptance standard or nucleus"},
        {{.acceptance = "standard", .proposal = "iid"}, "proposal: expected topk or none, found iid"},
        {{.acceptance = "standard", .iid = true, .proposal = "topk"}, "proposal: expected iid, found topk"},
        {{.proposal = "beam"}, "proposal: expected topk or none, found beam"},
        {{.selection = "best"}, "selection: expected draft, root, root-draw, pearl or covering, found best"},
        {{.traversal = "cap:0"}, "traversal: expected exhaustive, cap:N or leaf-stop, found cap:0"},
        {{.traversal = "cap:2x"}, "traversal: expected exhaustive, cap:N or leaf-stop, found cap:2x"},
        {{.traversal = "cap:99999999999999999999"},
         "traversal: expected exhaustive, cap:N or leaf-stop, found cap:9999"},
        {{.score = "top:"}, "score: expected top:M, frontier:E or frontier:all, found top:"},
        {{.acceptance = "greedy", .traversal = "leaf-stop"},
         "expected selection draft, no score, and exhaustive or cap:N"},
        {{.acceptance = "standard", .selection = "pearl"},
         "expected selection draft, no score, and exhaustive or cap:N"},
        {{.acceptance = "nucleus:1/2", .score = "top:9"},
         "expected selection draft, no score, and exhaustive or cap:N"},
        {{.selection = "covering"}, "selection covering: expected leaf-stop, found exhaustive"},
        {{.budget = HM_LOG_TV_BUDGET}, "budget of total variation: expected acceptance nucleus"},
        {{.acceptance = "standard", .budget = HM_LOG_TV_BUDGET},
         "budget of total variation: expected acceptance nucleus"},
        {{.acceptance = "nucleus:1/2", .budget = HM_LOG_REGRET_BUDGET},
         "budget of regret: expected a deterministic rule"},
        {{.acceptance = "greedy", .budget = HM_LOG_REGRET_BUDGET}, "budget of regret: expected a deterministic rule"},
        {{.acceptance = "nucleus:1/2", .budget = HM_LOG_TV_BUDGET, .limit = "-1"}, "budget: expected a limit >= 0"},
        {{.audit = true, .temperature = "0", .iid = true},
         "audit: expected no budget, and no proposals that are draws"},
        {{.audit = true, .temperature = "0", .acceptance = "standard"}, "audit: expected acceptance match"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct hm_stamp_options options = {.threads = 1};
        struct hm_error err = {.message = ""};
        struct hm_stamper *s;
        struct words w;
        hm_status rc = open_as(&cases[i].setting, &w, &options, &s, &err);
        const char *wanted = cases[i].message;
        if (!wanted && rc) fail_msg("case %zu: %s", i, err.message);
        if (!rc) assert_int_equal(hm_stamper_close(s, NULL, &err), HM_OK);
        if (wanted && !rc) fail_msg("case %zu: expected \"%s\"", i, wanted);
        if (wanted) assert_int_equal(rc, HM_USAGE);
        if (wanted && strncmp(err.message, "log header: ", 12) == 0 &&
            strncmp(err.message + 12, wanted, strlen(wanted)) == 0)
            wanted = NULL;
        if (wanted) fail_msg("case %zu: expected \"%s\", found \"%s\"", i, wanted, err.message);
        clear(&w);
    }
}

// ---- figures

static const char *const KEYS[] = {"standard_accept", "nucleus_excess", "accept", "accept_standard", "charge", "e",
                                   "ratio",           "regret"};
enum { STANDARD, EXCESS, ACCEPT, ACCEPT_STANDARD, CHARGE, E, RATIO, REGRET };

struct heard {
    size_t steps;
    bool found[COUNT(KEYS)];
    struct hm_ival value[COUNT(KEYS)]; // of the last step
    char line[8192];
};

static hm_status listen(void *user, const char *json, size_t size, struct hm_error *err)
{
    struct heard *h = user;
    (void)err;
    if (!memmem(json, size, "\"kind\":\"step\"", 13)) return HM_OK;
    assert_true(size < sizeof h->line);
    memcpy(h->line, json, size);
    h->line[size] = 0;
    char *claims = strstr(h->line, ",\"claims\":");
    assert_non_null(claims);
    *claims = 0; // keys repeat inside
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        char key[64];
        snprintf(key, sizeof key, ",\"%s\":[", KEYS[i]);
        const char *at = strstr(h->line, key);
        h->found[i] = at && sscanf(at + strlen(key), "\"%lf\",\"%lf\"", &h->value[i].lo, &h->value[i].hi) == 2;
    }
    h->steps++;
    return HM_OK;
}

static const struct hm_log_sequence sequence = {.max_tokens = 2};
static const struct hm_log_step first = {
    .round = -1, .child = -1, .token = 2, .support = VOCAB, .target_row = p_row, .draft_why = "prefill"};

// One round: the root's children are proposals, `token` is emitted at it.
static void run(const struct setting *x, const int32_t *children, size_t count, int32_t token,
                const struct hm_log_step *more, struct heard *h)
{
    const struct hm_stamp_options options = {.line = listen, .line_user = h};
    const int32_t parent[] = {-1, 0, 0};
    const float logq[] = {0, -1, -1};
    int32_t tokens[3] = {2};
    struct hm_error err = {.message = ""};
    struct hm_stamper *s;
    struct words w;
    *h = (struct heard){0};
    if (open_as(x, &w, &options, &s, &err)) fail_msg("%s", err.message);
    memcpy(tokens + 1, children, count * sizeof *children);
    const struct hm_log_round round = {.t = 1, .nodes = 1 + count, .parent = parent, .token = tokens, .logq = logq};
    struct hm_log_step second = more ? *more : (struct hm_log_step){0};
    second.t = 1;
    second.source = HM_SOURCE_CONTINUATION;
    second.child = -1;
    for (size_t i = 0; i < count && second.child < 0 && !second.capped; i++)
        if (children[i] == token) second.source = HM_SOURCE_ACCEPTED, second.child = (int64_t)i + 1;
    second.token = token;
    second.support = VOCAB;
    second.target_row = p_row;
    second.draft_row = x->no_draft ? NULL : q_row;
    second.draft_why = x->no_draft ? "no draft model" : NULL;
    second.children = children;
    second.child_count = count;
    second.finish = HM_FINISH_LENGTH;
    hm_status rc = hm_stamper_sequence(s, &sequence, &err);
    if (!rc) rc = hm_stamper_step(s, &first, &err);
    if (!rc) rc = hm_stamper_round(s, &round, &err);
    if (!rc) rc = hm_stamper_step(s, &second, &err);
    if (!rc) rc = hm_stamper_close(s, NULL, &err);
    if (rc) fail_msg("%s", err.message);
    assert_int_equal(h->steps, 2);
    clear(&w);
}

static void is(const struct heard *h, int key, double value)
{
    struct hm_ival v = h->value[key];
    if (!h->found[key] || !(v.lo <= value && value <= v.hi && v.hi - v.lo <= 0x1p-34))
        fail_msg("%s: expected %.17g, found [%a, %a] in %s", KEYS[key], value, v.lo, v.hi, h->line);
}

static void lacks(const struct heard *h, int key)
{
    if (h->found[key]) fail_msg("%s in %s", KEYS[key], h->line);
}

static const int32_t twice[] = {1, 1}, likeliest[] = {0, 1}, late[] = {2, 0};

static void standard_sampling(void **unused)
{
    (void)unused;
    struct heard h;
    run(&(struct setting){.acceptance = "standard", .iid = true}, twice, 2, 1, NULL, &h);
    is(&h, STANDARD, 0.5);
    is(&h, ACCEPT, 0.5); // the residual after one rejection has nothing where q has something
    lacks(&h, ACCEPT_STANDARD), lacks(&h, EXCESS), lacks(&h, E), lacks(&h, REGRET), lacks(&h, CHARGE);
    run(&(struct setting){.acceptance = "standard", .no_draft = true}, late, 2, 0, NULL, &h);
    is(&h, ACCEPT, 0.5);
    lacks(&h, STANDARD);
    run(&(struct setting){.acceptance = "standard", .traversal = "cap:1"}, late, 2, 3,
        &(struct hm_log_step){.capped = true}, &h);
    lacks(&h, ACCEPT); // nobody looked
    is(&h, STANDARD, 0.5);
}

static void nucleus_sampling(void **unused)
{
    (void)unused;
    struct heard h;
    const struct setting iid = {.acceptance = "nucleus:1/2", .iid = true}, topk = {.acceptance = "nucleus:1/2"};
    run(&iid, twice, 1, 1, NULL, &h);
    is(&h, EXCESS, 0.5), is(&h, ACCEPT, 1), is(&h, ACCEPT_STANDARD, 0.5), is(&h, E, 0.5), is(&h, RATIO, 0.5);
    is(&h, REGRET, 0);
    run(&iid, twice, 2, 1, NULL, &h); // the first is accepted surely, so that a second changes nothing
    is(&h, ACCEPT, 1), is(&h, ACCEPT_STANDARD, 0.5), is(&h, E, 0.5), is(&h, RATIO, 0.5);
    run(&topk, likeliest, 2, 0, NULL, &h);
    is(&h, ACCEPT, 1), is(&h, ACCEPT_STANDARD, 0.5), is(&h, E, 0.75), is(&h, RATIO, 0.25);
    run(&topk, late, 2, 2, NULL, &h); // before the first in A: as often as p would
    is(&h, ACCEPT, 1), is(&h, E, 0.5), is(&h, RATIO, 1);
    run(&topk, late, 2, 0, NULL, &h);
    is(&h, E, 0.5), is(&h, RATIO, 1.0 / 3);
    run(&topk, late, 1, 3, NULL, &h); // none in A
    is(&h, ACCEPT, 0.25), is(&h, ACCEPT_STANDARD, 0.25), is(&h, E, 0), is(&h, RATIO, 1);
    run(&(struct setting){.acceptance = "nucleus:1/2", .traversal = "cap:1"}, late, 2, 0,
        &(struct hm_log_step){.capped = true}, &h);
    lacks(&h, ACCEPT), is(&h, E, 0), is(&h, RATIO, 1), is(&h, EXCESS, 0.5);
}

static void budgets(void **unused)
{
    (void)unused;
    struct heard h;
    const struct setting tv = {.acceptance = "nucleus:1/2", .budget = HM_LOG_TV_BUDGET, .limit = "9/10"};
    const struct hm_ival charge = {0.75, nextafter(0.75, 1)};
    run(&tv, likeliest, 2, 0,
        &(struct hm_log_step){.charged = true, .relaxed = true, .charge = charge, .spent = charge.hi}, &h);
    is(&h, CHARGE, 0.75), is(&h, E, 0.75), is(&h, RATIO, 0.25), is(&h, ACCEPT, 1);
    assert_non_null(strstr(
        h.line,
        ",\"relaxed\":true,\"charge\":[\"0x1.8p-1\",\"0x1.8000000000001p-1\"],\"spent\":\"0x1.8000000000001p-1\""));
    run(&tv, likeliest, 2, 0, &(struct hm_log_step){.charged = true, .charge = charge}, &h);
    is(&h, CHARGE, 0.75), is(&h, E, 0), is(&h, RATIO, 1), is(&h, ACCEPT, 0.5), is(&h, ACCEPT_STANDARD, 0.5);
    assert_non_null(strstr(h.line, ",\"relaxed\":false,"));
    const struct setting regret = {.acceptance = "topm:4", .temperature = "0", .budget = HM_LOG_REGRET_BUDGET};
    run(&regret, late, 2, 0, &(struct hm_log_step){.charged = true, .relaxed = true}, &h);
    is(&h, CHARGE, 0), lacks(&h, E), lacks(&h, ACCEPT);
    assert_non_null(strstr(h.line, ",\"spent\":\"0x0p+0\""));
}

// ---- order

static void tries(const struct setting *x, const struct hm_log_round *round, const struct hm_log_step *step,
                  const char *wanted)
{
    const struct hm_stamp_options options = {.threads = 1};
    struct hm_error err = {.message = ""};
    struct hm_stamper *s;
    struct words w;
    if (open_as(x, &w, &options, &s, &err)) fail_msg("%s", err.message);
    assert_int_equal(hm_stamper_sequence(s, &sequence, &err), HM_OK);
    assert_int_equal(hm_stamper_step(s, &first, &err), HM_OK);
    hm_status rc = hm_stamper_round(s, round, &err);
    if (!rc && step) rc = hm_stamper_step(s, step, &err);
    if (!rc) fail_msg("expected \"%s\"", wanted);
    if (strncmp(err.message, wanted, strlen(wanted)) != 0)
        fail_msg("expected \"%s\", found \"%s\"", wanted, err.message);
    hm_stamper_close(s, NULL, NULL);
    clear(&w);
}

static void trees_out_of_place(void **unused)
{
    (void)unused;
    static const int32_t parent[] = {-1, 0, 1, 0}, token[] = {2, 0, 1, 3};
    static const float logq[] = {0, -1, -1, -1};
    struct hm_log_round round = {.t = 1, .nodes = 4, .parent = parent, .token = token, .logq = logq, .scored = 1};
    tries(&(struct setting){0}, &round, NULL, "round: scored: expected none of 4 nodes, found 1");
    round.scored = 4;
    tries(&(struct setting){.score = "top:9"}, &round, NULL,
          "round: scored: expected fewer than all of 4 nodes, found 4");
    round.scored = 1;
    tries(&(struct setting){.score = "top:9", .selection = "pearl"}, &round, NULL,
          "round: first: expected a token drawn");
    round.first_drawn = true;
    tries(&(struct setting){.score = "top:9"}, &round, NULL, "round: first: expected no token drawn");
    tries(&(struct setting){.score = "top:9", .selection = "covering", .traversal = "leaf-stop"}, &round, NULL,
          "round: first: expected no token drawn"); // in the first round of a sequence
    round.first = 1;
    tries(&(struct setting){.score = "top:9", .selection = "pearl"}, &round, NULL,
          "round: first: expected token 1 in node 1");
    round.first = 0;
    round.scored = 0;
    tries(&(struct setting){.selection = "pearl"}, &round, NULL,
          "round: first: expected token 0 in node 1, the root's only child");
    round.scored = 1;
    struct hm_log_step step = {.t = 1,
                               .source = HM_SOURCE_ACCEPTED,
                               .child = 3,
                               .token = 3,
                               .support = VOCAB,
                               .target_row = p_row,
                               .draft_why = "leaf"};
    tries(&(struct setting){.score = "top:9", .selection = "pearl"}, &round, &step,
          "step 1: child: expected below 3, found 3");
    step.child = -1;
    step.node = 3;
    step.source = HM_SOURCE_CONTINUATION;
    tries(&(struct setting){.score = "top:9", .selection = "pearl"}, &round, &step,
          "step 1: node: expected below 3, found 3");
}

static void charges_out_of_place(void **unused)
{
    (void)unused;
    static const int32_t parent[] = {-1, 0}, token[] = {2, 0};
    static const float logq[] = {0, -1};
    const struct hm_log_round round = {.t = 1, .nodes = 2, .parent = parent, .token = token, .logq = logq};
    const struct setting tv = {.acceptance = "nucleus:1/2", .budget = HM_LOG_TV_BUDGET},
                         none = {.acceptance = "nucleus:1/2"};
    struct hm_log_step step = {.t = 1,
                               .source = HM_SOURCE_ACCEPTED,
                               .child = 1,
                               .token = 0,
                               .support = VOCAB,
                               .children = token + 1,
                               .child_count = 1,
                               .target_row = p_row,
                               .draft_row = q_row};
    tries(&tv, &round, &step, "step 1: expected a charge, as there are children to look at");
    step.charged = step.relaxed = true;
    step.charge = (struct hm_ival){0.5, 0.5};
    step.spent = 0.25;
    tries(&tv, &round, &step, "step 1: spent: expected 0x1p-1, found 0x1p-2");
    step.relaxed = false;
    tries(&tv, &round, &step, "step 1: spent: expected 0x0p+0, found 0x1p-2");
    tries(&none, &round, &step, "step 1: expected no charge and 0x0p+0 spent, found 0x1p-2");
    step.spent = NAN;
    tries(&tv, &round, &step, "step 1: spent: expected 0x0p+0, found ");
    step.spent = 0;
    step.charge.hi = NAN;
    tries(&tv, &round, &step, "step 1: charge: expected an enclosure of a number >= 0");
    step.charge = (struct hm_ival){-0.5, 0.5};
    tries(&tv, &round, &step, "step 1: charge: expected an enclosure of a number >= 0");
    step.capped = true;
    tries(&tv, &round, &step, "step 1: charge: there is no child to look at");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_that_make_no_sense), cmocka_unit_test(standard_sampling),
        cmocka_unit_test(nucleus_sampling),           cmocka_unit_test(budgets),
        cmocka_unit_test(trees_out_of_place),         cmocka_unit_test(charges_out_of_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
