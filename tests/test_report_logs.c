// Reports of every golden log, whole and cut after every line, by all three writers; what audits are shown as; what
// must never be on a page.
#include "tests/report_support.h"

#include "base/json.h"

#include <glob.h>

static writer *const WRITERS[] = {hm_report_write_html, hm_report_write_markdown, hm_report_write_json};

// The first `lines` lines of a text: its size.
static size_t size_of_lines(const char *text, size_t lines)
{
    const char *end = text;
    while (lines-- && (end = strchr(end, '\n'))) end++;
    return end ? (size_t)(end - text) : strlen(text);
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; (text = strchr(text, '\n')); text++) lines++;
    return lines;
}

// Numbers that only an outward rounding of 0 makes, and texts of what is NULL.
static void check_sane(const char *text, const char *path, size_t lines)
{
    static const char *const never[] = {"e-324", "e-323", "e-322", "(null)", " 1 sequences", "`1` sequences", ">nan"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strstr(text, never[i])) fail_msg("%s, %zu lines: %s is in the report", path, lines, never[i]);
}

static void write_all(const char *path, const char *shown, size_t lines)
{
    struct hm_report *report = report_on(path, NULL);
    for (size_t i = 0; i < 3; i++) {
        char *text = written(WRITERS[i], report);
        check_sane(text, shown, lines);
        if (i == 2) {
            cJSON *json;
            struct hm_error err;
            if (hm_json_parse("report", text, strlen(text), &json, &err)) fail_msg("%s: %s", shown, err.message);
            cJSON_Delete(json);
        }
        free(text);
    }
    hm_report_close(report);
}

static void every_log_and_every_cut(void **state)
{
    (void)state;
    glob_t found;
    assert_int_equal(glob("tests/data/logs/good/*.jsonl", 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 18);
    char cut[] = "/tmp/hallmark-cut-XXXXXX";
    int fd = mkstemp(cut);
    assert_true(fd >= 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *text;
        size_t size;
        struct hm_error err;
        if (hm_file_read(found.gl_pathv[i], 64 << 20, &text, &size, &err)) fail_msg("%s", err.message);
        for (size_t lines = count_lines(text); lines > 0; lines--) {
            assert_int_equal(ftruncate(fd, 0), 0);
            size_t part = size_of_lines(text, lines);
            assert_int_equal(pwrite(fd, text, part, 0), (ssize_t)part);
            write_all(cut, found.gl_pathv[i], lines);
        }
        free(text);
    }
    close(fd);
    unlink(cut);
    globfree(&found);
}

// The text of a file with one text in it replaced by another, under a scratch name.
static void edited(const char *path, const char *old, const char *new, char name[32])
{
    char *text;
    size_t size;
    struct hm_error err;
    if (hm_file_read(path, 64 << 20, &text, &size, &err)) fail_msg("%s", err.message);
    char *at = strstr(text, old);
    assert_non_null(at);
    strcpy(name, "/tmp/hallmark-edited-XXXXXX");
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    fprintf(file, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
    assert_int_equal(fclose(file), 0);
    free(text);
}

static void check_texts(const char *text, bool present, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((strstr(text, texts[i]) != NULL) != present)
            fail_msg("%s in the report: %s", present ? "not" : "unexpectedly", texts[i]);
}
#define CHECK(text, present, ...)                                                                                      \
    check_texts(text, present, (const char *const[]){__VA_ARGS__}, sizeof(const char *[]){__VA_ARGS__} / sizeof(char *))
#define PRESENT(text, ...) CHECK(text, true, __VA_ARGS__)
#define ABSENT(text, ...) CHECK(text, false, __VA_ARGS__)

// Of an audit only what an audit has: rows, and the temperature they are certified at.
static void audits_speak_of_rows(void **state)
{
    (void)state;
    char name[32];
    edited("tests/data/logs/good/audit.jsonl", "\"certify_temperature\":\"1\"", "\"certify_temperature\":\"7/8\"",
           name);
    struct hm_report *report = report_on(name, NULL);
    char *html = written(hm_report_write_html, report), *markdown = written(hm_report_write_markdown, report);
    PRESENT(html, "1 of 9 rows with a draft row", "(9 rows in all)", "temperature 7/8", "<h2>Distance</h2>",
            "covers numbers and rows", "certified at temperature");
    ABSENT(html, "id=\"text\"", "#text", "#acceptance", "#closest", "<dt>Speed</dt>", "<dt>Cost of relaxation</dt>",
           "Relaxation</h3>", "; accepted by ", "tokens in all", "temperature 0", ">tree</th>", ">backend</th>",
           ">tokenizer sha256</th>", ">drafter</th>", "<dt>Acceptance</dt>", "<dt>Regret</dt>", ">selection</th>");
    PRESENT(markdown, "9 rows audited;", "| certified at temperature | 7/8 |");
    ABSENT(markdown, "### Acceptance", "| tree |", "| backend |", "tokens in", "| temperature |", "| acceptance |",
           "tokenizer", "the walk");
    free(html);
    free(markdown);
    hm_report_close(report);
    report = report_on("tests/data/logs/good/audit-target.jsonl", NULL);
    html = written(hm_report_write_html, report);
    PRESENT(html, "None of the 3 rows has a draft row: no draft model was audited.");
    free(html);
    hm_report_close(report);
    report = report_on("tests/data/logs/good/audit-target.jsonl", "tests/data/logs/good/audit-target.jsonl");
    html = written(hm_report_write_html, report);
    PRESENT(html, "None of the 6 rows");
    free(html);
    hm_report_close(report);
    unlink(name);
}

// The first claim whose rule is the acceptance rule leads, wherever it stands and however many have it.
static void the_acceptance_rule_leads(void **state)
{
    (void)state;
    static const struct {
        const char *acceptance;
        size_t lead;
    } cases[] = {{"greedy", 0}, {"nucleus:4/5", 2}, {"topk-delta:3,1/10", 6}, {"match", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[32], acceptance[64];
        snprintf(acceptance, sizeof acceptance, "\"acceptance\":\"%s\"", cases[i].acceptance);
        edited("tests/data/logs/good/audit.jsonl", "\"acceptance\":\"match\"", acceptance, name);
        struct hm_report *report = report_on(name, NULL);
        assert_int_equal(report->lead, cases[i].lead); // each rule with m = 1 and 2
        hm_report_close(report);
        unlink(name);
    }
}

// An accepted token stands one deeper than the node whose row accepted it.
static void cards_count_depths_from_one(void **state)
{
    (void)state;
    struct hm_report *report = report_on("tests/data/reports/tiny.jsonl", NULL);
    char *html = written(hm_report_write_html, report);
    PRESENT(html, "\n[1,2,1,1,0,", "\n[2,4,1,2,0,"); // t, token, accepted, depth, round
    free(html);
    hm_report_close(report);
    report = report_on("tests/data/logs/good/audit.jsonl", NULL);
    html = written(hm_report_write_html, report);
    PRESENT(html, "<th class=\"left\">Rule and m</th><th>certified</th><th>steps</th><th>least threshold</th>",
            "<td class=\"left\">greedy, m = 1</td>");
    free(html);
    hm_report_close(report);
}

// Where every step with a draft row is vacuous, no share of them is shown.
static void vacuous_steps_are_named(void **state)
{
    (void)state;
    struct hm_report *report = report_on("tests/data/logs/good/audit.jsonl", NULL);
    for (size_t i = 0; i < report->claim_count; i++) {
        struct hm_claim_figures *f = &report->claims[i];
        memset(f->status, 0, sizeof f->status);
        memset(f->verdict, 0, sizeof f->verdict);
        f->status[HM_TOKEN_VACUOUS] = f->with_draft = 9;
        f->certified_any = 0;
    }
    char *html = written(hm_report_write_html, report), *markdown = written(hm_report_write_markdown, report);
    PRESENT(html, "<h1>Nothing to certify: vacuous at all 9 rows", "covered: all vacuous",
            ">all vacuous</span></b></td>");
    ABSENT(html, "<h1>0.0%");
    PRESENT(markdown, "| **all vacuous** (0 of 9) | all vacuous | all vacuous | all vacuous | all vacuous | 9 |");
    free(html);
    free(markdown);
    hm_report_close(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_log_and_every_cut), cmocka_unit_test(audits_speak_of_rows),
        cmocka_unit_test(the_acceptance_rule_leads), cmocka_unit_test(cards_count_depths_from_one),
        cmocka_unit_test(vacuous_steps_are_named)};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
