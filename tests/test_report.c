// Reports of whole logs: figures against hand-worked ones, hostile text, truncation, several logs, and sheer length.
#include "reports/figures.h"
#include "reports/report.h"

#include "base/file.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define TINY "tests/data/reports/tiny.jsonl"

static char scratch[] = "/tmp/hallmark-report-XXXXXX";

static int make_scratch(void **state)
{
    (void)state;
    int fd = mkstemp(scratch);
    return fd < 0 ? -1 : close(fd);
}

static int remove_scratch(void **state)
{
    (void)state;
    return unlink(scratch);
}

static struct hm_report *report_on(const char *first, const char *second)
{
    struct hm_report *report;
    struct hm_error err;
    if (hm_report_open(&report, &err) || hm_report_add(report, first, &err) || (second && hm_report_add(report, second, &err)))
        fail_msg("%s", err.message);
    return report;
}

typedef hm_status writer(const struct hm_report *, const char *, struct hm_error *);

// What a writer makes of the report; the caller frees it.
static char *written(writer *write, const struct hm_report *report)
{
    char *text = NULL;
    size_t size;
    struct hm_error err;
    if (write(report, scratch, &err) || hm_file_read(scratch, 64 << 20, &text, &size, &err)) fail_msg("%s", err.message);
    return text;
}

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
        json = cJSON_IsArray(json) ? cJSON_GetArrayItem(json, atoi(part)) : cJSON_GetObjectItemCaseSensitive(json, part);
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
        if (found != figures[i].value) fail_msg("%s: expected %.17g, found %.17g", figures[i].path, figures[i].value, found);
    }
}

// tiny.jsonl by hand. Three rounds: two of two accepted and a leaf's continuation; none of two siblings; one of one, cut
// by the length. Two prompt tokens. Four steps have a draft.
static void figures_are_the_hand_worked_ones(void **state)
{
    (void)state;
    static const struct figure figures[] = {
        {"totals.sequences", 2}, {"totals.steps", 7}, {"totals.prefill", 2}, {"totals.continuations", 2}, {"totals.undecided", 1},
        {"acceptance.rounds", 3}, {"acceptance.rounds_cut_off", 0}, {"acceptance.accepted", 3}, {"acceptance.emitted", 5},
        {"acceptance.verified_nodes", 6}, {"acceptance.pool", 60}, {"acceptance.mean_accepted", 1}, {"acceptance.tokens_per_round", 5.0 / 3},
        {"acceptance.acceptance_rate", 0.5}, {"acceptance.tokens_per_target_pass", 7.0 / 5}, {"acceptance.verified_per_round", 2},
        {"acceptance.pool_per_round", 20}, {"acceptance.rounds_with_tree", 3}, {"acceptance.fully_accepted", 2},
        {"acceptance.expected_accept.count", 3}, {"acceptance.expected_accept_measured", 3},
        {"acceptance.per_depth.0.offered", 3}, {"acceptance.per_depth.0.reached", 2}, {"acceptance.per_depth.0.share", 2.0 / 3},
        {"acceptance.per_depth.1.offered", 1}, {"acceptance.per_depth.1.reached", 1}, {"acceptance.per_depth.1.share", 1.0 / 3},
        {"acceptance.per_depth.1.conditional", 0.5},
        {"lead_claim", 1}, // the acceptance rule's
        {"claims.0.with_draft", 4}, {"claims.0.certified", 1}, {"claims.0.certified_share", 0.25}, {"claims.0.coverage_share", 0.75},
        {"claims.0.status.certified", 1}, {"claims.0.status.covered_not_certified", 1}, {"claims.0.status.not_covered", 1},
        {"claims.0.status.no_draft", 3}, {"claims.0.status.undecided", 1}, {"claims.0.status.vacuous", 0},
        {"claims.0.verdicts.klf.yes", 1}, {"claims.0.verdicts.klf.undecided", 1}, {"claims.0.verdicts.tv.no", 4},
        {"claims.0.radius.count", 4}, {"claims.0.radius.min", 0.5}, {"claims.0.radius.q50", 0.5}, {"claims.0.klf.max", 0.25}, {"claims.0.draft_kl_pq.count", 4}, {"claims.1.draft_kl_pq.max", 0.125},
        {"claims.0.bands.band.4.steps", 3}, {"claims.0.bands.band.4.certified", 1}, // margin.gap 5/16 lies in [0.2, 0.4)
        {"claims.1.certified", 2}, {"claims.1.status.vacuous", 1}, {"claims.1.status.inapplicable", 1}, {"claims.1.status.no_draft", 3},
        {"claims.1.status.certified", 2}, {"claims.1.verdicts.klr.inapplicable", 1}, {"claims.1.bands.band.4.steps", 2},
        {"relaxation.regret.count", 7}, {"relaxation.regret_max_upper", 0.5}, {"relaxation.accepted_not_first", 3}, {"relaxation.accepted_known", 3},
        {"draft_distance.kl_pq_mean.count", 4}, {"draft_distance.kl_pq.q50", 0.125}, {"draft_distance.kl_qp.max", 0.1875}, {"draft_distance.tv.q99", 0.25},
        {"categories.0.steps", 6}, {"categories.0.certified", 2}, {"categories.1.steps", 1}, {"categories.1.rounds", 0},
        {"run.timed_rounds", 3}, {"run.draft_seconds", 0.75}, {"run.verify_seconds", 1.5}, {"run.certify_seconds", 1.5}};
    struct hm_report *report = report_on(TINY, NULL);
    cJSON *json = as_json(report);
    check_figures(json, figures, sizeof figures / sizeof *figures);
    double lower = number_at(json, "relaxation.regret.sum_lower"), upper = number_at(json, "relaxation.regret.sum_upper");
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
    assert_non_null(strstr(cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "categories"), 0), "name")->valuestring, "<img"));
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
    static const struct figure figures[] = {{"acceptance.rounds", 0}, {"acceptance.rounds_cut_off", 1}, {"totals.steps", 3}, {"logs.0.lines", 6}, {"logs.0.unfinished_sequences", 1}};
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
    static const struct figure figures[] = {{"totals.steps", 10}, {"acceptance.rounds", 3}, {"acceptance.rounds_cut_off", 1}, {"claims.0.with_draft", 6},
                                            {"claims.0.certified", 2}, {"logs.0.steps", 7}, {"logs.1.steps", 3}, {"relaxation.regret.count", 10}, {"categories.0.sequences", 2}};
    struct hm_report *report = report_on(TINY, "tests/data/reports/cut-round.jsonl");
    cJSON *json = as_json(report);
    check_figures(json, figures, sizeof figures / sizeof *figures);
    cJSON_Delete(json);
    hm_report_close(report);
}

static void other_claims_do_not_mix(void **state)
{
    (void)state;
    struct hm_report *report = report_on(TINY, NULL);
    struct hm_error err;
    assert_int_equal(hm_report_add(report, "tests/data/reports/hostile.jsonl", &err), HM_SHAPE);
    assert_non_null(strstr(err.message, "hostile.jsonl: line 1: claims: expected greedy with m = tree, as in " TINY ", found greedy\"><script>"));
    hm_report_close(report);
    report = report_on(TINY, NULL);
    assert_int_equal(hm_report_write_html(report, "/no/such/folder/report.html", &err), HM_IO);
    assert_string_equal(err.message, "/no/such/folder/report.html: cannot write: No such file or directory");
    hm_report_close(report);
}

static const char HEADER[] =
    "{\"hallmark\":1,\"kind\":\"header\",\"claims\":[\"greedy\"],\"m\":[1],\"margin\":false,\"acceptance\":\"match\",\"temperature\":\"0\",\"certify_temperature\":\"1\","
    "\"processors\":{\"top_k\":0,\"top_p\":\"1\"},\"top\":0,\"nodes\":\"path\",\"target\":{\"name\":\"t\",\"vocab\":8},\"draft\":null,"
    "\"decoder\":{\"drafter\":\"none\",\"width\":1,\"depth\":1,\"budget\":1,\"traversal\":\"exhaustive\"}";
static const char CHAIN[] = ",\"chain\":\"0000000000000000000000000000000000000000000000000000000000000000\"}\n";

// 200,000 steps, each with a long text: the page stays a page, and memory does not follow the log.
static void length_is_bounded(void **state)
{
    (void)state;
    enum { STEPS = 200000 };
    char log[] = "/tmp/hallmark-long-XXXXXX";
    FILE *file = fdopen(mkstemp(log), "wb");
    assert_non_null(file);
    fprintf(file, "%s%s{\"kind\":\"sequence\",\"sequence\":0,\"id\":1,\"prompt\":[],\"seed\":\"1\",\"stop\":{\"max_tokens\":0}%s", HEADER, CHAIN, CHAIN);
    for (int t = 0; t < STEPS; t++) {
        if (t) fprintf(file, "{\"kind\":\"round\",\"sequence\":0,\"round\":%d,\"t\":%d,\"parent\":[-1],\"token\":[1],\"logq\":[\"0x0p+0\"],\"pool\":0,\"expected_accept\":null%s", t - 1, t, CHAIN);
        fprintf(file, "{\"kind\":\"step\",\"sequence\":0,\"t\":%d,\"token\":1,\"node\":0,\"depth\":0,\"row\":{\"why\":\"\"},\"draft_row\":{\"why\":\"\"},\"top\":[],\"support\":8,"
                      "\"lse\":[\"0x1p+0\",\"0x1p+0\"],\"entropy\":[\"0x1p+0\",\"0x1p+0\"],\"claims\":[{\"rule\":\"greedy\",\"m\":1,\"m_from\":\"fixed\",\"k\":0,\"accepts\":\"no\","
                      "\"edge\":[null,[1,\"0x0p+0\"]],\"klf\":[\"0x0p+0\",\"0x0p+0\"],\"klr\":[\"0x0p+0\",\"0x0p+0\"],\"tv\":[\"0x0p+0\",\"0x0p+0\"],\"certified\":null,\"why\":\"\"}],",
                t);
        if (t) fprintf(file, "\"source\":\"continuation\",\"round\":%d", t - 1);
        else fprintf(file, "\"source\":\"prefill\",\"round\":null");
        fprintf(file, "%s,\"text\":\"<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<< %d\"%s", t == STEPS - 1 ? ",\"finish\":\"length\"" : "", t, CHAIN);
    }
    fprintf(file, "{\"kind\":\"end\",\"sequences\":1,\"rounds\":%d,\"steps\":%d,\"nodes\":0,\"verdicts\":[],\"undecided\":0%s", STEPS - 1, STEPS, CHAIN);
    assert_int_equal(fclose(file), 0);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    struct hm_report *report = report_on(log, NULL);
    getrusage(RUSAGE_SELF, &after);
    char *html = written(hm_report_write_html, report);
    assert_int_equal(report->steps, STEPS);
    assert_int_equal(report->token_count, HM_REPORT_MOST_TOKENS);
    assert_true(strlen(html) < 10u << 20);
    assert_non_null(strstr(html, "The first 20,000 tokens are shown one by one. 180,000 more tokens"));
#if !defined(__SANITIZE_ADDRESS__)
    assert_true(after.ru_maxrss - before.ru_maxrss < 64 << 10); // KiB; the log is about 130 MB
#endif
    free(html);
    hm_report_close(report);
    unlink(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(figures_are_the_hand_worked_ones), cmocka_unit_test(hostile_text_is_inert),
                                       cmocka_unit_test(a_page_needs_no_network), cmocka_unit_test(truncation_is_said),
                                       cmocka_unit_test(logs_add_up), cmocka_unit_test(other_claims_do_not_mix), cmocka_unit_test(length_is_bounded)};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
