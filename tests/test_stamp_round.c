// What a round expects to be accepted, and the law of a token under a rule, on trees and rows that can be worked by hand.
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

enum { VOCAB = 4, NODES = 5 };

// The root has the children 1 and 2 (tokens 0 and 3), node 1 has 3 and 4 (tokens 1 and 0). All rows are uniform but that
// of node 1, which has half of its mass on token 1.
static const int32_t parent[NODES] = {-1, 0, 0, 1, 1}, token[NODES] = {2, 0, 3, 1, 0};
// The same with its first token drawn before: node 1 is the root's only child.
static const int32_t drawn_parent[NODES] = {-1, 0, 1, 1, 0}, drawn_token[NODES] = {2, 0, 1, 0, 3};
static const float logq[NODES] = {0, -1, -1, -1, -1};

static void make_rows(float rows[NODES][VOCAB])
{
    memset(rows, 0, NODES * sizeof *rows);
    rows[1][1] = logf(3.0f);
}

struct setting {
    const char *temperature, *acceptance, *top_p, *traversal; // NULL: "1", match, off, exhaustive
    size_t top_k;
    bool path; // only nodes on the path
    size_t scored;         // of the nodes, the last so many were only scored
    const char *selection; // NULL: draft; else node 1 was drawn, and node 4 is only scored
};

struct heard {
    struct hm_ival value[2]; // of the keys looked for
    const char *keys[2];
    bool found, null;
};

// Takes [lower, upper] after "key":, as hexadecimal floats.
static hm_status listen(void *user, const char *json, size_t size, struct hm_error *err)
{
    struct heard *h = user;
    char *line = strndup(json, size);
    (void)err;
    for (int i = 0; i < 2 && h->keys[i]; i++) {
        char key[64];
        snprintf(key, sizeof key, ",\"%s\":", h->keys[i]);
        const char *at = strstr(line, key);
        if (!at) continue;
        h->null = strncmp(at + strlen(key), "null", 4) == 0;
        h->found = h->null || sscanf(at + strlen(key), "[\"%lf\",\"%lf\"]", &h->value[i].lo, &h->value[i].hi) == 2;
    }
    free(line);
    return HM_OK;
}

static void parse(const char *text, struct hm_rational *out)
{
    hm_rational_init(out);
    assert_int_equal(hm_rational_parse(text, out, NULL), HM_OK);
}

// One sequence of two tokens: one from the prompt, one from a round that accepts token 0 (under a rule) or draws it.
static void run(const struct setting *setting, struct heard *h)
{
    static const struct hm_log_model model = {.name = "hand", .vocab = VOCAB, .architecture = "none"};
    struct hm_rational temperature, one, top_p;
    struct hm_rule greedy, acceptance;
    struct hm_error err = {.message = ""};
    struct hm_stamper *s;
    parse(setting->temperature ? setting->temperature : "1", &temperature);
    parse("1", &one);
    parse(setting->top_p ? setting->top_p : "1", &top_p);
    assert_int_equal(hm_rule_parse("greedy", &greedy, NULL), HM_OK);
    if (setting->acceptance) assert_int_equal(hm_rule_parse(setting->acceptance, &acceptance, NULL), HM_OK);
    const struct hm_log_header header = {.rules = &greedy, .rule_count = 1, .m = (uint32_t[]){HM_M_TREE}, .m_count = 1,
                                         .acceptance = setting->acceptance ? &acceptance : NULL,
                                         .temperature = &temperature, .certify_temperature = &one,
                                         .top_k = setting->top_k, .top_p = setting->top_p ? &top_p : NULL,
                                         .all_nodes = !setting->path, .target = &model, .tokenizer_sha256 = "",
                                         .drafter = "ngram", .width = 2, .depth = 2, .budget = 4, .selection = setting->selection ? setting->selection : "draft",
                                         .score = setting->scored ? "frontier:4" : NULL,
                                         .traversal = setting->traversal ? setting->traversal : "exhaustive",
                                         .proposal = "topk", .weights_dtype = "F32", .backend = "none", .row_source = "x"};
    const struct hm_stamp_options options = {.line = listen, .line_user = h};
    if (hm_stamper_open(&options, &header, &s, &err)) fail_msg("%s", err.message);
    float rows[NODES][VOCAB];
    make_rows(rows);
    const struct hm_log_sequence sequence = {.max_tokens = 2};
    const struct hm_log_step first = {.round = -1, .child = -1, .token = 2, .support = VOCAB, .target_row = rows[0],
                                      .draft_why = "prefill"};
    const bool drawn = setting->selection != NULL;
    const struct hm_log_round round = {.t = 1, .nodes = NODES, .parent = drawn ? drawn_parent : parent,
                                       .token = drawn ? drawn_token : token, .logq = logq, .accepted = 1,
                                       .scored = setting->scored, .first_drawn = drawn, .first = 0, .target_rows = rows[0]};
    const struct hm_log_step second = {.t = 1, .source = HM_SOURCE_ACCEPTED, .child = 1, .support = VOCAB,
                                       .target_row = rows[0], .children = (int32_t[]){0, 3}, .child_count = 2,
                                       .draft_why = "no draft model", .finish = HM_FINISH_LENGTH};
    hm_status rc = hm_stamper_sequence(s, &sequence, &err);
    if (!rc) rc = hm_stamper_step(s, &first, &err);
    if (!rc) rc = hm_stamper_round(s, &round, &err);
    if (!rc) rc = hm_stamper_step(s, &second, &err);
    if (!rc) rc = hm_stamper_close(s, NULL, &err);
    if (rc) fail_msg("%s", err.message);
    hm_rational_clear(&temperature);
    hm_rational_clear(&one);
    hm_rational_clear(&top_p);
    hm_rule_clear(&greedy);
    if (setting->acceptance) hm_rule_clear(&acceptance);
}

static void encloses(struct hm_ival found, double value)
{
    if (!(found.lo <= value && value <= found.hi && found.hi - found.lo <= 0x1p-36))
        fail_msg("%.17g: found [%a, %a]", value, found.lo, found.hi);
}

static void expected_accept_is_that_of_the_page(void **unused)
{
    (void)unused;
    static const struct {
        struct setting setting;
        double value;
        bool null;
    } cases[] = {
        // 1/4 + 1/4, and 1/4 (1/2 + 1/6). The logit of token 1 is a float near ln 3, so the sixths are not exact.
        {{.path = false}, 0.25 + 0.25 + 0.25 * (0.5 + 0.5 / 3), false},
        {{.traversal = "cap:1"}, 0.5, false},
        {{.traversal = "cap:2"}, 0.25 + 0.25 + 0.25 * (0.5 + 0.5 / 3), false},
        {{.top_k = 2}, 0.5 + 0 + 0.5 * (0.75 + 0.25), false}, // tokens 0 and 1 are left, at node 1 with 3/4 and 1/4
        {{.top_p = "1/2"}, 0.5 + 0 + 0.5 * 1, false},         // 0 and 1 of the root; 1 alone at node 1
        {{.path = true}, 0, true},                            // node 1's row is not in the log
        {{.temperature = "0"}, 1, false},                     // what was accepted
        {{.acceptance = "topm:2"}, 1, false},                 // the same under a rule, whatever the temperature
        {{.acceptance = "topm:2", .path = true}, 1, false},
        {{.scored = 3}, 0.25, false},                         // node 1 alone is left
        {{.traversal = "leaf-stop"}, 0.25, false},            // nodes without children do not count: node 1
        {{.traversal = "leaf-stop", .scored = 2}, 0, false},  // and it has none that are more than scored
        {{.selection = "pearl", .traversal = "cap:1", .scored = 1}, 1, false}, // given, whatever its probability
        {{.selection = "root-draw", .traversal = "leaf-stop", .scored = 1}, 1, false},
        {{.selection = "pearl", .scored = 1, .temperature = "0"}, 1, false},
        {{.selection = "root-draw", .scored = 1}, 1 + 0.5 + 0.5 / 3, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct heard h = {.keys = {"expected_accept"}};
        run(&cases[i].setting, &h);
        assert_true(h.found);
        assert_int_equal(h.null, cases[i].null);
        // Where token 1 of node 1 counts, its float logit is within 2^-24 of ln 3.
        bool exact = i == 1 || (i >= 5 && i < 15);
        if (exact && !h.null) encloses(h.value[0], cases[i].value);
        else if (!h.null) assert_true(fabs(h.value[0].lo - cases[i].value) < 0x1p-22 && h.value[0].hi - h.value[0].lo < 0x1p-36);
    }
}

static void accepted_tokens_of_rules_have_a_law(void **unused)
{
    (void)unused;
    struct heard h = {.keys = {"e", "ratio"}};
    run(&(struct setting){.acceptance = "topm:2"}, &h);
    assert_true(h.found);
    encloses(h.value[0], 0.75);
    encloses(h.value[1], 0.25);
    h = (struct heard){.keys = {"e", "ratio"}}; // at temperature 0 there is none, nor under match
    run(&(struct setting){.acceptance = "topm:2", .temperature = "0"}, &h);
    assert_false(h.found);
    run(&(struct setting){.path = false}, &h);
    assert_false(h.found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expected_accept_is_that_of_the_page),
        cmocka_unit_test(accepted_tokens_of_rules_have_a_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
