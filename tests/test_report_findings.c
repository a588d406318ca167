// Findings in a report (reports/findings.h): counts and lists of the two contracts, errors that name the place, hostile text,
// files of any length in bounded memory, reports without a log, and the CSV report.
#include "tests/report_support.h"

#include "base/json.h"

#include <dirent.h>
#include <sys/resource.h>

#define COMPARE "tests/data/reports/compare.jsonl"
#define EVIDENCE "tests/data/reports/evidence.jsonl"

static struct hm_report *report_on_findings(const char *log, const char *first, const char *second)
{
    struct hm_report *report;
    struct hm_error err;
    if (hm_report_open(&report, &err) || (log && hm_report_add(report, log, &err)) ||
        hm_report_add_findings(report, first, &err) || (second && hm_report_add_findings(report, second, &err)))
        fail_msg("%s", err.message);
    return report;
}

static void counts_are_those_of_the_files(void **unused)
{
    (void)unused;
    struct hm_report *report = report_on_findings(NULL, COMPARE, EVIDENCE);
    const struct hm_findings *f = &report->findings;
    for (size_t i = 0; i < HM_FORK_WORDS; i++) assert_true(f->forks[i] == 1 && f->fork_listed[i] == 1);
    assert_true(f->outliers == 1 && f->refuted == 1 && f->findings == 4 && f->kinds == 3);
    assert_int_equal(hm_findings_unexplained(f), 7);
    assert_int_equal(hm_findings_undecided(f), 1);
    assert_true(hm_findings_compared(f) && !hm_findings_doubtful(&f->file[0]) && !hm_findings_doubtful(&f->file[1]));
    assert_true(f->file[0].unknown == 1 && f->file[0].lines == 14 && f->file[1].tokens == 14);
    const struct hm_fork_shown *k = &f->fork[HM_FORK_WORD_UNEXPLAINED][0];
    assert_true(k->t == 7 && k->needs.lo == 0.25 && k->needs.hi > 0.25 && k->a.token == 5 && k->b.radius.lo == 0.125);
    assert_string_equal(k->b.second_text, k->a.token_text); // one token has one text
    assert_true(f->kind[1].count == 2 && !strcmp(f->kind[1].name, "all-zero"));
    assert_true(f->noises == 1 && f->noise[0].bins <= HM_FINDINGS_BINS && f->noise[0].quantile[4].hi == 0.5);
    assert_true(f->missings == 2 && f->missing[0].tokens == 3 && f->missing[1].tokens == 12); // places of a comparison
    uint64_t all = 0;
    for (size_t i = 0; i < f->noise[0].bins; i++) all += f->noise[0].bin[i].count;
    assert_int_equal(all, 477); // 160 bins of i mod 7, joined in pairs
    hm_report_close(report);
}

static void texts_are_inert(void **unused)
{
    (void)unused;
    writer *const writers[] = {hm_report_write_html, hm_report_write_markdown};
    for (int log = 0; log < 2; log++) {
        struct hm_report *report = report_on_findings(log ? "tests/data/reports/tiny.jsonl" : NULL, COMPARE, EVIDENCE);
        for (size_t i = 0; i < 2; i++) {
            char *text = written(writers[i], report);
            size_t scripts = 0;
            for (const char *at = text; (at = strstr(at, "<script")); at++) scripts++;
            assert_int_equal(scripts, i ? 0 : 2); // the data and our own
            assert_null(strstr(text, "<img"));
            assert_null(strstr(text, "<b>new"));
            if (i) assert_null(strstr(text, "|x`y"));
            if (!log && i == 0) assert_non_null(strstr(text, "<h1><span data-key=\"findings.unexplained\">7</span> unexplained.</h1>"));
            free(text);
        }
        char *json = written(hm_report_write_json, report);
        cJSON *parsed;
        struct hm_error err;
        if (hm_json_parse("report", json, strlen(json), &parsed, &err)) fail_msg("%s", err.message);
        const cJSON *forks = cJSON_GetObjectItem(cJSON_GetObjectItem(parsed, "findings"), "fork_list");
        assert_int_equal(cJSON_GetArraySize(forks), 4);
        cJSON_Delete(parsed);
        free(json);
        hm_report_close(report);
    }
}

static void without_a_comparison_the_page_says_how_to_make_one(void **unused)
{
    (void)unused;
    struct hm_report *report = report_on("tests/data/reports/tiny.jsonl", NULL);
    char *html = written(hm_report_write_html, report), *markdown = written(hm_report_write_markdown, report);
    assert_non_null(strstr(html, "no comparison was given"));
    assert_non_null(strstr(html, "hallmark compare tests/data/reports/tiny.jsonl other-run.jsonl --json &gt; compare.jsonl"));
    assert_non_null(strstr(markdown, "no comparison was given; to make one: `hallmark compare"));
    free(html);
    free(markdown);
    hm_report_close(report);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void errors_name_the_place(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *message; // after the file's name
    } cases[] = {
        {"", ": expected the lines of `hallmark compare --json` or `hallmark audit --json`, found none"},
        {"{\"hallmark\":1,\"kind\":\"header\"}\n", ": expected the lines of `hallmark compare --json` or `hallmark audit --json`, found none"},
        {"[]\n", ": line 1: expected an object, found an array"},
        {"\n{\"kind\":\"compare\"}\n{\"kind\":[]}\n", ": line 3: kind: expected text, found an array"},
        {"{\"kind\":\"compare\",\"a\":3}\n", ": line 1: a: expected an object, found a number"},
        {"{\"kind\":\"fork\",\"class\":\"bug\"}\n", ": line 1: class: expected unexplained, undecided, explained or tie, found \"bug\""},
        {"{\"kind\":\"fork\",\"class\":\"tie\",\"t\":0.5}\n", ": line 1: t: expected an integer, found a number"},
        {"{\"kind\":\"fork\",\"class\":\"tie\",\"needs\":[2,1]}\n", ": line 1: needs: expected a number, \"inf\" or [lower, upper], found an array"},
        {"{\"kind\":\"fork\",\"class\":\"tie\",\"needs\":\"nan\"}\n", ": line 1: needs: expected a number, \"inf\" or [lower, upper], found a string"},
        {"{\"kind\":\"fork\",\"class\":\"tie\",\"a\":[]}\n", ": line 1: a: expected an object, found an array"},
        {"{\"kind\":\"finding\"}\n", ": line 1: finding: expected a name, found nothing"},
        {"{\"kind\":\"noise\",\"histogram\":[[2,1],[1,1]]}\n", ": line 1: histogram: expected [edge, count] in ascending edges, found an array"},
        {"{\"kind\":\"noise\",\"histogram\":[[2,-1]]}\n", ": line 1: histogram: expected [edge, count] in ascending edges, found an array"},
        {"{\"kind\":\"temperature\",\"refuted\":1}\n", ": line 1: refuted: expected true or false, found a number"},
    };
    char path[] = "/tmp/hallmark-findings-XXXXXX", expected[400];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hm_report *report;
        struct hm_error err;
        write_text(path, cases[i].text);
        assert_int_equal(hm_report_open(&report, &err), HM_OK);
        assert_int_equal(hm_report_add_findings(report, path, &err), HM_FORMAT);
        snprintf(expected, sizeof expected, "%s%s", path, cases[i].message);
        assert_string_equal(err.message, expected);
        hm_report_close(report);
    }
    unlink(path);
}

// A file that ends early, and one whose summary counts otherwise than its lines.
static void doubt_is_said(void **unused)
{
    (void)unused;
    static const char *const texts[] = {
        "{\"kind\":\"compare\"}\n{\"kind\":\"fork\",\"class\":\"tie\"}\n",
        "{\"kind\":\"compare\"}\n{\"kind\":\"fork\",\"class\":\"tie\"}\n{\"kind\":\"summary\",\"tie\":0}\n"};
    static const char *const said[] = {"incomplete: no summary line", "its summary counts otherwise than its lines"};
    char path[] = "/tmp/hallmark-doubt-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < 2; i++) {
        write_text(path, texts[i]);
        struct hm_report *report = report_on_findings(NULL, path, NULL);
        char *html = written(hm_report_write_html, report), *markdown = written(hm_report_write_markdown, report);
        assert_non_null(strstr(html, said[i]));
        assert_non_null(strstr(html, "<b>Incomplete.</b>"));
        assert_non_null(strstr(markdown, "**Incomplete:**"));
        free(html);
        free(markdown);
        hm_report_close(report);
    }
    unlink(path);
}

// 200,000 forks and findings of 300 kinds: counted, listed in part; pages and memory stay small.
static void length_is_bounded(void **unused)
{
    (void)unused;
    enum { LINES = 200000 };
    char path[] = "/tmp/hallmark-long-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "wb");
    assert_non_null(file);
    fputs("{\"kind\":\"compare\"}\n", file);
    for (int i = 0; i < LINES; i++)
        if (i % 2)
            fprintf(file, "{\"kind\":\"fork\",\"class\":\"unexplained\",\"prompt\":%d,\"t\":1,\"why\":\"%0200d\",\"needs\":[1,2]}\n", i, i);
        else
            fprintf(file, "{\"kind\":\"finding\",\"finding\":\"kind %d\",\"message\":\"%0300d\"}\n", i % 600, i);
    assert_int_equal(fclose(file), 0);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    struct hm_report *report = report_on_findings(NULL, path, NULL);
    getrusage(RUSAGE_SELF, &after);
    assert_int_equal(report->findings.forks[HM_FORK_WORD_UNEXPLAINED], LINES / 2);
    assert_int_equal(report->findings.findings, LINES / 2);
    assert_int_equal(report->findings.kinds, HM_FINDINGS_KINDS);
    char *html = written(hm_report_write_html, report), *markdown = written(hm_report_write_markdown, report);
    assert_true(strlen(html) < 2u << 20);
    assert_true(strlen(markdown) <= 60000);
    assert_non_null(strstr(html, "100 of 100,000 forks are listed"));
#if !defined(SANITIZED)
    assert_true(after.ru_maxrss - before.ru_maxrss < 16 << 10); // KiB
#endif
    free(html);
    free(markdown);
    hm_report_close(report);
    unlink(path);
}

// The tables of the CSV report are there, with the promised columns, and no cell is taken for a formula.
static void tables_have_their_names(void **unused)
{
    (void)unused;
    static const struct {
        const char *file, *head;
        size_t lines; // with the head; 0: any
    } tables[] = {{"figures.csv", "path,value\n", 0},
                  {"logs.csv", "file,state,lines,chain,", 2},
                  {"claims.csv", "rule,m,steps,with_draft,certified,", 3},
                  {"depths.csv", "depth,offered,reached,nodes,share,conditional,of_offered,acceptance_rate\n", 0},
                  {"categories.csv", "name,sequences,steps,rounds,accepted,emitted,with_draft,certified,", 0},
                  {"sequences.csv", "log,sequence,id,category,turn,steps,finish,certified,", 3},
                  {"blocks.csv", "log,sequence,t,tokens,listed,certified,", 3},
                  {"course.csv", "tokens,shortfall_mean_upper,e_sum_mean_upper,regret_mean_upper\n", 0},
                  {"not_certified.csv", "log,line,sequence,t,row,token,text,status,k,m,", 0},
                  {"closest.csv", "log,line,sequence,t,token,text,by,noise_lower,", 0},
                  {"trees.csv", "log,why,line,sequence,round,t,accepted,emitted,nodes,scored,depth,", 0},
                  {"forks.csv", "file,class,prompt,id,category,t,needs_lower,needs_upper,", 5},
                  {"findings.csv", "file,finding,side,input,sequence,t,where,message\n", 5},
                  {"outliers.csv", "file,prompt,id,t,noise_lower,", 2}};
    char folder[] = "/tmp/hallmark-tables-XXXXXX", path[128];
    struct hm_error err;
    struct hm_report *report = report_on_findings("tests/data/reports/tiny.jsonl", COMPARE, EVIDENCE);
    assert_non_null(mkdtemp(folder));
    assert_int_equal(hm_report_write_csv(report, folder, &err), HM_OK);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char *text;
        size_t size, lines = 0;
        snprintf(path, sizeof path, "%s/%s", folder, tables[i].file);
        if (hm_file_read(path, 1 << 20, &text, &size, &err)) fail_msg("%s", err.message);
        if (strncmp(text, tables[i].head, strlen(tables[i].head)) != 0) fail_msg("%s: %.100s", tables[i].file, text);
        for (const char *at = text; (at = strchr(at, '\n')); at++) lines++;
        if (tables[i].lines && lines != tables[i].lines) fail_msg("%s: %zu lines", tables[i].file, lines);
        assert_null(strstr(text, ",=1+1"));
        if (i == 0) assert_non_null(strstr(text, "\nacceptance.mean_accepted,1\n"));
        free(text);
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0); // no other file
    assert_int_equal(hm_report_write_csv(report, "/no/such/folder/at/all", &err), HM_IO);
    assert_string_equal(err.message, "/no/such/folder/at/all: cannot make this folder: No such file or directory");
    assert_int_equal(hm_report_write_csv(report, COMPARE, &err), HM_IO);
    hm_report_close(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_are_those_of_the_files),
                                       cmocka_unit_test(texts_are_inert),
                                       cmocka_unit_test(without_a_comparison_the_page_says_how_to_make_one),
                                       cmocka_unit_test(errors_name_the_place),
                                       cmocka_unit_test(doubt_is_said),
                                       cmocka_unit_test(length_is_bounded),
                                       cmocka_unit_test(tables_have_their_names)};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
