// Reports of whole logs: figures against hand-worked ones, hostile text, truncation, logs without draft rows, several.
#include "tests/report_support.h"

#include "base/json.h"

#define TINY "tests/data/reports/tiny.jsonl"

static cJSON *as_json(const struct hm_report *report)
{
    char *text = written(hm_report_write_json, report);
    cJSON *json;
    struct hm_error err;
    if (hm_json_parse("report", text, strlen(text), &json, &err)) fail_msg("%s", err.message);
    free(text);
    return json;
}

// The number at "a.b.2.c": members by name, elements by place.
static double number_at(const cJSON *json, const char *path)
{
    char copy[128], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *part = strtok_r(copy, ".", &rest); part; part = strtok_r(NULL, ".", &rest))
        json =
            cJSON_IsArray(json) ? cJSON_GetArrayItem(json, atoi(part)) : cJSON_GetObjectItemCaseSensitive(json, part);
    if (!cJSON_IsNumber(json)) fail_msg("no number at %s", path);
    return json->valuedouble;
}

struct figure {
    const char *path;
    double value;
};

static void check_figures(const cJSON *json, const struct figure *figures, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double found = number_at(json, figures[i].path);
        if (found != figures[i].value)
            fail_msg("%s: expected %.17g, found %.17g", figures[i].path, figures[i].value, found);
    }
}

// tiny.jsonl by hand. Three rounds: two of two accepted and a leaf's continuation; none of two siblings; one of one,
// cut by the length. Two prompt tokens. Four steps have a draft.
static const struct figure HAND_WORKED[] = {
    {"totals.sequences", 2},
    {"totals.steps", 7},
    {"totals.prefill", 2},
    {"totals.continuations", 2},
    {"totals.undecided", 1},
    {"acceptance.rounds", 3},
    {"acceptance.rounds_cut_off", 0},
    {"acceptance.accepted", 3},
    {"acceptance.emitted", 5},
    {"acceptance.verified_nodes", 6},
    {"acceptance.pool", 60},
    {"acceptance.mean_accepted", 1},
    {"acceptance.tokens_per_round", 5.0 / 3},
    {"acceptance.acceptance_rate", 0.5},
    {"acceptance.tokens_per_target_pass", 7.0 / 5},
    {"acceptance.verified_per_round", 2},
    {"acceptance.pool_per_round", 20},
    {"acceptance.rounds_with_tree", 3},
    {"acceptance.fully_accepted", 2},
    {"acceptance.expected_accept.count", 3},
    {"acceptance.expected_accept_measured", 3},
    {"acceptance.per_depth.0.offered", 3},
    {"acceptance.per_depth.0.reached", 2},
    {"acceptance.per_depth.0.share", 2.0 / 3},
    {"acceptance.per_depth.1.offered", 1},
    {"acceptance.per_depth.1.reached", 1},
    {"acceptance.per_depth.1.share", 1.0 / 3},
    {"acceptance.per_depth.1.conditional", 0.5},
    {"lead_claim", 1}, // the acceptance rule's
    {"claims.0.with_draft", 4},
    {"claims.0.certified", 1},
    {"claims.0.certified_share", 0.25},
    {"claims.0.coverage_share", 0.75},
    {"claims.0.status.certified", 1},
    {"claims.0.status.covered_not_certified", 1},
    {"claims.0.status.not_covered", 1},
    {"claims.0.status.no_draft", 3},
    {"claims.0.status.undecided", 1},
    {"claims.0.status.vacuous", 0},
    {"claims.0.verdicts.klf.yes", 1},
    {"claims.0.verdicts.klf.undecided", 1},
    {"claims.0.verdicts.tv.no", 4},
    {"claims.0.radius.count", 4},
    {"claims.0.radius.min", 0.5},
    {"claims.0.radius.q50", 0.5},
    {"claims.0.klf.max", 0.25},
    {"claims.0.draft_kl_pq.count", 4},
    {"claims.1.draft_kl_pq.max", 0.125},
    {"claims.0.known.row.steps", 4},
    {"claims.0.known.row.klf", 1},
    {"claims.0.known.row.any", 1},
    {"claims.0.known.gap.klr", 4}, // a made log: no true margin certifies what its row does not
    {"claims.0.requirement.klf.steps", 4},
    {"claims.0.requirement.klf.draft_steps", 4},
    {"claims.0.requirement.klf.certified_below.x99", 0.25},
    {"claims.0.requirement.klf.curve.0.0", 0.125},
    {"claims.0.requirement.klf.curve.0.2", 4},
    {"claims.0.requirement.klf.curve.1.2", 0},
    {"claims.0.requirement.klf.curve.2.0", 0.25}, // the ends of a run of equal counts
    {"claims.0.requirement.klf.curve.2.1", 4},
    {"claims.0.requirement.klf.curve.3.1", 0},
    {"claims.1.requirement.klf.certified_below.x50", 0.25},
    {"claims.1.requirement.klf.curve.3.1", 1}, // the vacuous step
    {"claims.0.regions.0.line", 5},
    {"claims.0.regions.0.m", 2},
    {"claims.0.regions.0.klf.0", 0.25},
    {"claims.0.bands.band.4.row.klf", 1},
    {"claims.0.bands.band.4.steps", 3},
    {"claims.0.bands.band.4.certified", 1}, // margin.gap 5/16 lies in [0.2, 0.4)
    {"claims.1.certified", 2},
    {"claims.1.status.vacuous", 1},
    {"claims.1.status.inapplicable", 1},
    {"claims.1.status.no_draft", 3},
    {"claims.1.status.certified", 2},
    {"claims.1.verdicts.klr.inapplicable", 1},
    {"claims.1.bands.band.4.steps", 2},
    {"relaxation.regret.count", 7},
    {"relaxation.regret_max_upper", 0.5},
    {"relaxation.accepted_not_first", 3},
    {"relaxation.accepted_known", 3},
    {"draft_distance.kl_pq_mean.count", 4},
    {"draft_distance.kl_pq.q50", 0.125},
    {"draft_distance.kl_qp.max", 0.1875},
    {"draft_distance.tv.q99", 0.25},
    {"categories.0.steps", 6},
    {"categories.0.certified", 2},
    {"categories.1.steps", 1},
    {"categories.1.rounds", 0},
    {"run.timed_rounds", 3},
    {"run.draft_seconds", 0.75},
    {"run.verify_seconds", 1.5},
    {"run.certify_seconds", 1.5}};

static void figures_are_the_hand_worked_ones(void **state)
{
    (void)state;
    struct hm_report *report = report_on(TINY, NULL);
    cJSON *json = as_json(report);
    check_figures(json, HAND_WORKED, sizeof HAND_WORKED / sizeof *HAND_WORKED);
    double lower = number_at(json, "relaxation.regret.sum_lower"),
           upper = number_at(json, "relaxation.regret.sum_upper");
    assert_true(lower <= 0.75 && 0.75 <= upper && upper - lower < 1e-12);
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(json, "truncated")));
    cJSON_Delete(json);
    hm_report_close(report);
}

// Everything between the tags of a page that a browser would take for markup: only what we write ourselves.
static void hostile_text_is_inert(void **state)
{
    (void)state;
    struct hm_report *report = report_on("tests/data/reports/hostile.jsonl", NULL);
    char *html = written(hm_report_write_html, report), *markdown = written(hm_report_write_markdown, report);
    size_t scripts = 0;
    for (const char *at = html; (at = strstr(at, "<script")); at++) scripts++;
    assert_int_equal(scripts, 2); // the data and our own
    for (size_t i = 0; i < 2; i++) {
        const char *text = i ? markdown : html;
        assert_null(strstr(text, "<img"));
        assert_null(strstr(text, "<script>alert"));
        assert_null(strstr(text, "\xe2\x80\xae")); // the character that turns the direction of a text
        assert_null(strchr(text, '\x01'));
    }
    assert_non_null(strstr(html, "&lt;img src=x onerror=alert(2)&gt;"));
    assert_non_null(strstr(html, "\\u003cscript\\u003ealert(3)"));
    assert_non_null(strstr(html, "script-src 'sha256-"));
    cJSON *json = as_json(report);
    assert_non_null(
        strstr(cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "categories"), 0), "name")->valuestring,
               "<img"));
    cJSON_Delete(json);
    free(html);
    free(markdown);
    hm_report_close(report);
}

static void a_page_needs_no_network(void **state)
{
    (void)state;
    struct hm_report *report = report_on(TINY, NULL);
    char *html = written(hm_report_write_html, report);
    assert_null(strstr(html, "http://"));
    assert_null(strstr(html, "https://"));
    assert_null(strstr(html, " src="));
    assert_null(strstr(html, "@import"));
    assert_null(strstr(html, "Truncated"));
    assert_non_null(strstr(html, "hallmark verify " TINY));
    assert_non_null(strstr(html, "</html>"));
    free(html);
    hm_report_close(report);
}

static void truncation_is_said(void **state)
{
    (void)state;
    static const struct figure figures[] = {{"acceptance.rounds", 0},
                                            {"acceptance.rounds_cut_off", 1},
                                            {"totals.steps", 3},
                                            {"logs.0.lines", 6},
                                            {"logs.0.unfinished_sequences", 1}};
    struct hm_report *report = report_on("tests/data/reports/cut-round.jsonl", NULL);
    char *html = written(hm_report_write_html, report), *markdown = written(hm_report_write_markdown, report);
    cJSON *json = as_json(report);
    assert_true(hm_report_truncated(report));
    assert_non_null(strstr(html, "<b>Truncated log.</b>"));
    assert_non_null(strstr(markdown, "**Truncated:**"));
    check_figures(json, figures, sizeof figures / sizeof *figures);
    cJSON_Delete(json);
    free(html);
    free(markdown);
    hm_report_close(report);
    report = report_on("tests/data/reports/cut-line.jsonl", NULL);
    assert_true(hm_report_truncated(report));
    hm_report_close(report);
    report = report_on("tests/data/reports/no-newline.jsonl", NULL);
    assert_false(hm_report_truncated(report)); // it lost nothing but a newline
    hm_report_close(report);
}

static void logs_add_up(void **state)
{
    (void)state;
    static const struct figure figures[] = {
        {"totals.steps", 10},       {"acceptance.rounds", 3},        {"acceptance.rounds_cut_off", 1},
        {"claims.0.with_draft", 6}, {"claims.0.certified", 2},       {"logs.0.steps", 7},
        {"logs.1.steps", 3},        {"relaxation.regret.count", 10}, {"categories.0.sequences", 2}};
    struct hm_report *report = report_on(TINY, "tests/data/reports/cut-round.jsonl");
    cJSON *json = as_json(report);
    check_figures(json, figures, sizeof figures / sizeof *figures);
    cJSON_Delete(json);
    hm_report_close(report);
}

// The same run with a drafter that has no distribution: what a draft must reach is known, and nothing else is shown.
static void logs_without_draft_rows_speak_of_the_requirement(void **state)
{
    (void)state;
    static const struct figure figures[] = {{"claims.0.with_draft", 0},
                                            {"claims.0.status.no_draft", 7},
                                            {"claims.0.klf.count", 4},
                                            {"claims.0.klf.max", 0.25},
                                            {"acceptance.fully_accepted", 2}};
    static const char *const shown[] = {"<h1>No draft distribution to certify.</h1>",
                                        "the n-gram drafter proposes tokens", "<h3>Requirement curve</h3>",
                                        "class=\"line\"", ">no draft row</span> <b>7</b>"};
    static const char *const left_out[] = {"Certified by margin", "no steps",         "class=\"line second\"",
                                           "id=\"proof\"",        "<th>covered</th>", "no draft here"};
    struct hm_report *report = report_on("tests/data/reports/no-rows.jsonl", NULL);
    char *html = written(hm_report_write_html, report), *markdown = written(hm_report_write_markdown, report);
    cJSON *json = as_json(report);
    check_figures(json, figures, sizeof figures / sizeof *figures);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (!strstr(html, shown[i])) fail_msg("not on the page: %s", shown[i]);
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (strstr(html, left_out[i])) fail_msg("on the page: %s", left_out[i]);
    assert_non_null(strstr(markdown, "No draft distribution to certify"));
    assert_non_null(strstr(markdown, "| greedy | tree | 0.25 "));
    assert_null(strstr(markdown, "### Certified"));
    cJSON_Delete(json);
    free(html);
    free(markdown);
    hm_report_close(report);
}

// What a reader could take for more than it is stands beside its measure.
static void claims_are_shown_with_their_whole(void **state)
{
    (void)state;
    static const char *const alone[] = {"<h1>50.0% certified: 2 of 4 steps with a draft row",
                                        "(7 tokens in all)</span></h1>",
                                        "(as the log says)",
                                        "model names, prompt and text are the writer\xe2\x80\x99s word",
                                        "data-key=\"acceptance.expected_accept.mean_lower\">1.000</span></b></td>",
                                        "emitted there: 1.000; rounds cut by the end of a sequence: 1<"};
    static const char *const two[] = {"(as the log says; first of 2 logs)", "temperature 0; first of 2 logs"};
    struct hm_report *report = report_on(TINY, NULL);
    char *html = written(hm_report_write_html, report);
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        if (!strstr(html, alone[i])) fail_msg("not on the page: %s", alone[i]);
    assert_null(strstr(html, "first of 1"));
    free(html);
    hm_report_close(report);
    report = report_on(TINY, "tests/data/reports/no-rows.jsonl");
    html = written(hm_report_write_html, report);
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (!strstr(html, two[i])) fail_msg("not on the page: %s", two[i]);
    free(html);
    hm_report_close(report);
}

static void other_claims_do_not_mix(void **state)
{
    (void)state;
    struct hm_report *report = report_on(TINY, NULL);
    struct hm_error err;
    assert_int_equal(hm_report_add(report, "tests/data/reports/hostile.jsonl", &err), HM_SHAPE);
    assert_non_null(strstr(err.message,
                           "hostile.jsonl: line 1: claims: expected greedy, additive:1/10 for m = tree, as in " TINY
                           ", found greedy\"><script>alert(3)</script>, additive:1/10 for m = tree"));
    hm_report_close(report);
    report = report_on(TINY, NULL);
    assert_int_equal(hm_report_write_html(report, "/no/such/folder/report.html", &err), HM_IO);
    assert_string_equal(err.message, "/no/such/folder/report.html: cannot write: No such file or directory");
    hm_report_close(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(figures_are_the_hand_worked_ones),
                                       cmocka_unit_test(hostile_text_is_inert),
                                       cmocka_unit_test(a_page_needs_no_network),
                                       cmocka_unit_test(truncation_is_said),
                                       cmocka_unit_test(logs_add_up),
                                       cmocka_unit_test(logs_without_draft_rows_speak_of_the_requirement),
                                       cmocka_unit_test(claims_are_shown_with_their_whole),
                                       cmocka_unit_test(other_claims_do_not_mix)};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
