// Reports on speculative sampling, fidelity budgets and selections: sums worked by hand, and what the pages say of the
// golden logs.
#include "tests/report_support.h"

static bool within(struct hm_sum sum, double value)
{
    return sum.lo <= value && value <= sum.hi && sum.hi - sum.lo < 1e-12;
}

static struct hm_record_step a_step(double accept, double standard, double excess, double e)
{
    return (struct hm_record_step){.source = HM_SOURCE_ACCEPTED,
                                   .has_accept = true,
                                   .accept = {accept, accept},
                                   .has_accept_standard = true,
                                   .accept_standard = {standard, standard},
                                   .has_nucleus_excess = true,
                                   .nucleus_excess = {excess, excess},
                                   .has_e = true,
                                   .e = {e, e}};
}

// Positions with one draw and with two; one where the budget forbade the relaxation; one where nobody looked.
static void positions(void **unused)
{
    (void)unused;
    struct hm_report_speculative s = {0};
    struct hm_record_header h = {.proposal = "iid", .budget_kind = "tv", .budget_limit = "1"};
    struct hm_record_step step = a_step(0.75, 0.5, 0.25, 0.25);
    step.has_charge = step.relaxed = step.has_spent = true;
    step.spent = 0.25;
    hm_speculative_step(&s, &step, &h, 1, false);
    step = a_step(0.875, 0.75, 0.0625, 0.125);
    step.has_charge = step.relaxed = step.has_spent = true;
    step.spent = 0.375;
    hm_speculative_step(&s, &step, &h, 2, false);
    step = a_step(0.5, 0.5, 0.75, 0);
    step.has_charge = step.has_spent = true;
    step.spent = 0.375;
    step.source = HM_SOURCE_CONTINUATION;
    hm_speculative_step(&s, &step, &h, 1, true);
    step = (struct hm_record_step){.has_e = true, .ratio = {1, 1}, .source = HM_SOURCE_CONTINUATION};
    hm_speculative_step(&s, &step, &h, 0, false);
    assert_true(s.positions == 3 && s.accepted == 2 && s.in_force == 2 && s.single == 1);
    assert_true(within(s.accept, 2.125) && within(s.standard, 1.75) && within(s.gain, 0.375));
    assert_true(within(s.excess, 0.3125) && within(s.e, 0.375));
    assert_true(within(s.single_gain, 0.25) && within(s.single_excess, 0.25) && within(s.single_e, 0.25));
    assert_true(s.charged == 3 && s.relaxed == 2 && s.continued == 2 && s.covered == 1);
    hm_speculative_sequence_end(&s);
    hm_speculative_sequence_end(&s); // a sequence without a budget adds nothing
    assert_true(s.budgets == 1 && s.spent == 0.375 && s.spent_most == 0.375);
}

// R = max_tokens ((B + 1) V + B) 2^-53, the largest of the sequences'.
static void reserve(void **unused)
{
    (void)unused;
    struct hm_report_speculative s = {0};
    struct hm_record_header h = {.budget_kind = "tv", .budget = 3, .target = {.vocab = 1000}};
    hm_speculative_sequence(&s, &(struct hm_record_sequence){.max_tokens = 8}, &h);
    hm_speculative_sequence(&s, &(struct hm_record_sequence){.max_tokens = 2}, &h);
    double exact = 8 * (4 * 1000 + 3) * 0x1p-53;
    assert_true(s.reserve >= exact && s.reserve <= exact * (1 + 1e-12));
    h.budget_kind = NULL;
    hm_speculative_sequence(&s, &(struct hm_record_sequence){.max_tokens = 9999}, &h);
    assert_true(s.reserve < 2 * exact);
}

enum language { HTML, MARKDOWN, JSON };

// The report of one golden log, in one language; freed by the caller.
static char *report_of(const char *name, enum language language)
{
    static writer *const writers[] = {hm_report_write_html, hm_report_write_markdown, hm_report_write_json};
    char log[128];
    snprintf(log, sizeof log, "tests/data/logs/good/%s.jsonl", name);
    struct hm_report *report = report_on(log, NULL);
    char *text = written(writers[language], report);
    hm_report_close(report);
    return text;
}

static void says(const char *name, enum language language, const char *const *wanted, const char *const *unwanted)
{
    char *text = report_of(name, language);
    for (; *wanted; wanted++)
        if (!strstr(text, *wanted)) fail_msg("%s: no \"%s\"", name, *wanted);
    for (; *unwanted; unwanted++)
        if (strstr(text, *unwanted)) fail_msg("%s: \"%s\"", name, *unwanted);
    free(text);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
static const char *const nothing[] = {NULL};

static void pages_speak_of_it(void **unused)
{
    (void)unused;
    says("standard", HTML,
         LIST("<section id=\"speculative\">", "Nothing was relaxed: every token has", "total variation 0."),
         LIST("E<sub>N</sub></td>", "Fidelity budget</h3>", "(match)", "<code>match</code>"));
    says("nucleus-one", HTML, LIST("One draw, one number", "At the 7 positions with a single draw", "Whole sequences"),
         nothing);
    says("nucleus", HTML, LIST("likeliest, as point masses", "href=\"#speculative\""), LIST("One draw, one number"));
    says("tv-budget", HTML, LIST("Fidelity budget</h3>", "<b>2/5</b>", "7 of 16 positions", "tv, limit 2/5"), nothing);
    says("regret-budget", HTML, LIST("Relaxation within a budget", "nats of regret"), LIST("<h2>Speculative"));
    says("pearl", HTML,
         LIST("first token drawn", "only scored per round", "after which the next context", "frontier:2"),
         LIST("id=\"speculative\""));
    says("greedy", HTML, LIST("nothing further"), LIST("id=\"speculative\"", "the next context", "first token drawn"));
}

static void tables_speak_of_it(void **unused)
{
    (void)unused;
    says("standard", MARKDOWN, LIST("### Speculative sampling", "| acceptance |", "Nothing was relaxed"),
         LIST("| E_N"));
    says("nucleus-one", MARKDOWN, LIST("| acceptance gained | 1.09747 | 1.09748 |", "At the 7 positions with one draw"),
         nothing);
    says("tv-budget", MARKDOWN,
         LIST("| limit per sequence, total variation | 2/5 |", "| fidelity budget | tv, limit 2/5 |"), nothing);
    says("regret-budget", MARKDOWN, LIST("regrets of a sequence's tokens sum to at most the limit"),
         LIST("### Speculative"));
    says("covering", MARKDOWN,
         LIST("First token drawn before the tree was chosen: 2 of 6 rounds.", "Next context the address"), nothing);
    says("greedy", MARKDOWN, LIST("### Acceptance"), LIST("### Speculative", "Next context", "### Fidelity"));
}

// Prose keeps to 80 columns, and so do the tables on sampling and budgets.
static void lines_are_narrow(void **unused)
{
    (void)unused;
    static const char *const names[] = {"standard",   "nucleus-one", "tv-budget", "regret-budget", "audit",
                                        "restricted", "divergences", "stopped",   "relaxed-sampled"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *text = report_of(names[i], MARKDOWN);
        bool narrow = false;
        for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
            if (*at == '#') narrow = !strncmp(at, "### Spec", 8) || !strncmp(at, "### Fid", 7);
            if (end - at > 80 && (*at != '|' || narrow)) fail_msg("%s: %.90s", names[i], at);
        }
        free(text);
    }
}

// A draft whose vocabulary is reduced: why KLf is infinite, and the certificates that take its place.
static void reduced_vocabulary(void **unused)
{
    (void)unused;
    says("restricted", MARKDOWN,
         LIST("KLf is infinite at 2 of 4 steps", "### Reduced draft vocabulary",
              "| rule | m | certified | steps | mean p(D), at least | p(D) = 0 |\n",
              "| additive:1/5 | tree | 50.0% | 4 | 0.7624 | 0 |\n", "| topm:3 | 4 | "),
         nothing);
    says("restricted", HTML, LIST("KLf is infinite at 2 of 4 steps", "href=\"#reduced\"", "id=\"reduced\""), nothing);
    says("relaxed", MARKDOWN, LIST("### Distance"), LIST("KLf is infinite", "Reduced draft"));
    says("relaxed", HTML, LIST("KLr"), LIST("KLf is infinite", "id=\"reduced\""));
}

// All, some, or none; none as well where nothing is certified on a reduced vocabulary.
static void where_it_is_infinite(void **unused)
{
    (void)unused;
    struct hm_claim_figures claim = {0};
    struct hm_report_log log = {0};
    struct hm_report r = {
        .logs = &log, .log_count = 1, .claims = &claim, .claim_count = 1, .kl_pq = {.count = 1234}};
    claim.theory.restricted = 1234;
    assert_string_equal(hm_report_infinite(&r).text, "");
    r.kl_pq.infinite = 1;
    assert_string_equal(hm_report_infinite(&r).text, "1 of 1,234 steps");
    r.kl_pq.infinite = 1234;
    assert_string_equal(hm_report_infinite(&r).text, "all 1,234 steps");
    claim.theory.restricted = 0;
    assert_string_equal(hm_report_infinite(&r).text, "");
}

static void figures_for_machines(void **unused)
{
    (void)unused;
    says("tv-budget", JSON,
         LIST("\"speculative\":{\"positions\":16,\"accepted\":11,\"in_force\":7,",
              "\"fidelity_budget\":{\"kind\":\"tv\",\"limit\":\"2/5\",\"sequences\":2,",
              "\"asked\":16,\"in_force\":7,"),
         nothing);
    says("regret-budget", JSON,
         LIST("\"speculative\":null,", "\"kind\":\"regret\",\"limit\":\"1/2\"", "\"reserve_upper\":null"), nothing);
    says("pearl", JSON,
         LIST("\"rounds_first_drawn\":3,\"scored_nodes\":6,\"rounds_scored\":3,", "\"score\":\"frontier:2\"",
              "\"fidelity_budget\":null"),
         nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions),         cmocka_unit_test(reserve),
        cmocka_unit_test(pages_speak_of_it), cmocka_unit_test(tables_speak_of_it),
        cmocka_unit_test(lines_are_narrow), cmocka_unit_test(figures_for_machines),
        cmocka_unit_test(reduced_vocabulary), cmocka_unit_test(where_it_is_infinite),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
