// A report of a log of sheer length: the page stays a page, and memory does not follow the log.
#include "tests/report_support.h"

#include <sys/resource.h>

static const char HEADER[] =
    "{\"hallmark\":1,\"kind\":\"header\",\"claims\":[\"greedy\"],\"m\":[1],\"margin\":false,\"acceptance\":\"match\","
    "\"temperature\":\"0\",\"certify_temperature\":\"1\","
    "\"processors\":{\"top_k\":0,\"top_p\":\"1\"},\"top\":0,\"nodes\":\"path\",\"target\":{\"name\":\"t\",\"vocab\":8},"
    "\"draft\":null,"
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
    fprintf(
        file,
        "%s%s{\"kind\":\"sequence\",\"sequence\":0,\"id\":1,\"prompt\":[],\"seed\":\"1\",\"stop\":{\"max_tokens\":0}%s",
        HEADER, CHAIN, CHAIN);
    for (int t = 0; t < STEPS; t++) {
        if (t)
            fprintf(file,
                    "{\"kind\":\"round\",\"sequence\":0,\"round\":%d,\"t\":%d,\"parent\":[-1],\"token\":[1],\"logq\":["
                    "\"0x0p+0\"],\"pool\":0,\"expected_accept\":null%s",
                    t - 1, t, CHAIN);
        fprintf(file,
                "{\"kind\":\"step\",\"sequence\":0,\"t\":%d,\"token\":1,\"node\":0,\"depth\":0,\"row\":{\"why\":\"\"},"
                "\"draft_row\":{\"why\":\"\"},\"top\":[],\"support\":8,"
                "\"lse\":[\"0x1p+0\",\"0x1p+0\"],\"entropy\":[\"0x1p+0\",\"0x1p+0\"],\"claims\":[{\"rule\":\"greedy\","
                "\"m\":1,\"m_from\":\"fixed\",\"k\":0,\"accepts\":\"no\","
                "\"edge\":[null,[1,\"0x0p+0\"]],\"klf\":[\"0x0p+0\",\"0x0p+0\"],\"klr\":[\"0x0p+0\",\"0x0p+0\"],\"tv\":"
                "[\"0x0p+0\",\"0x0p+0\"],\"certified\":null,\"why\":\"\"}],",
                t);
        if (t)
            fprintf(file, "\"source\":\"continuation\",\"round\":%d", t - 1);
        else
            fprintf(file, "\"source\":\"prefill\",\"round\":null");
        fprintf(file, "%s,\"text\":\"<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<< %d\"%s",
                t == STEPS - 1 ? ",\"finish\":\"length\"" : "", t, CHAIN);
    }
    fprintf(
        file,
        "{\"kind\":\"end\",\"sequences\":1,\"rounds\":%d,\"steps\":%d,\"nodes\":0,\"verdicts\":[],\"undecided\":0%s",
        STEPS - 1, STEPS, CHAIN);
    assert_int_equal(fclose(file), 0);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    struct hm_report *report = report_on(log, NULL);
    getrusage(RUSAGE_SELF, &after);
    char *html = written(hm_report_write_html, report);
    assert_int_equal(report->steps, STEPS);
    assert_in_range(report->token_count, HM_REPORT_MOST_TOKENS - HM_REPORT_BLOCK, HM_REPORT_MOST_TOKENS);
    assert_true(strlen(html) < 10u << 20);
    assert_true(report->block_count < HM_REPORT_MOST_BLOCKS);
    assert_non_null(strstr(html, "of 1 sequence in all, are in every figure of this page"));
    assert_non_null(strstr(html, "&lt; 199999")); // the newest tokens are the ones that stay
    assert_null(strstr(html, "&lt; 1000<"));
#if !defined(SANITIZED)
    assert_true(after.ru_maxrss - before.ru_maxrss < 64 << 10); // KiB; the log is about 130 MB
#endif
    free(html);
    hm_report_close(report);
    unlink(log);
}

static void put_header(FILE *file, int rules)
{
    fputs("{\"hallmark\":1,\"kind\":\"header\",\"claims\":[", file);
    for (int i = 0; i < rules; i++) fprintf(file, "%s\"%0*d|@#<*`\"", i ? "," : "", 120, i);
    fputs("],\"m\":[1,2,3,4,5,6,7,8],\"margin\":false,\"acceptance\":\"match\",\"temperature\":\"0\",\"certify_temperature\":"
          "\"1\",\"processors\":{\"top_k\":0,\"top_p\":\"1\"},\"top\":0,\"nodes\":\"path\",\"target\":{\"name\":\"t\",\"vocab\":8},"
          "\"draft\":null,\"decoder\":{\"drafter\":\"none\",\"width\":1,\"depth\":1,\"budget\":1,\"traversal\":\"exhaustive\"}", file);
    fputs(CHAIN, file);
}

// 60 rules with names full of what Markdown has to escape, for eight m, in 14 logs with 70 categories: a comment of an issue
// takes the Markdown all the same, and what is cut is said.
static void markdown_fits_a_comment(void **state)
{
    (void)state;
    enum { RULES = 60, LOGS = 14 };
    struct hm_report *report;
    struct hm_error err;
    char log[] = "/tmp/hallmark-wide-XXXXXX";
    FILE *file = fdopen(mkstemp(log), "wb");
    assert_non_null(file);
    put_header(file, RULES);
    for (int s = 0; s < 70; s++) {
        fprintf(file, "{\"kind\":\"sequence\",\"sequence\":%d,\"id\":1,\"category\":\"%0*d||||\",\"prompt\":[],\"seed\":\"1\",\"stop\":{"
                      "\"max_tokens\":0}%s", s, 140, s, CHAIN);
        fprintf(file, "{\"kind\":\"step\",\"sequence\":%d,\"t\":0,\"token\":1,\"node\":0,\"depth\":0,\"row\":{\"why\":\"\"},\"draft_row\":"
                      "{\"why\":\"\"},\"top\":[],\"support\":8,\"lse\":[\"0x1p+0\",\"0x1p+0\"],\"entropy\":[\"0x1p+0\",\"0x1p+0\"],\"source\":"
                      "\"prefill\",\"round\":null,\"finish\":\"eos\",\"claims\":[", s);
        for (int i = 0; i < RULES * 8; i++)
            fprintf(file, "%s{\"rule\":\"%0*d|@#<*`\",\"m\":%d,\"m_from\":\"fixed\",\"k\":1,\"accepts\":\"yes\",\"edge\":[null,null],"
                          "\"level_f\":[\"0x1p-2\",\"0x1p-2\"],\"tied_f\":[1,1],\"level_r\":[\"-0x1p+0\",\"-0x1p+0\"],\"tied_r\":[1,1],"
                          "\"klf\":[\"0x1p-3\",\"0x1p-3\"],\"klr\":[\"0x1p-3\",\"0x1p-3\"],\"tv\":[\"0x1p-3\",\"0x1p-3\"],\"certified\":null,"
                          "\"why\":\"\"}", i ? "," : "", 120, i / 8, i % 8 + 1);
        fprintf(file, "]%s", CHAIN);
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(hm_report_open(&report, &err), HM_OK);
    for (int i = 0; i < LOGS; i++)
        if (hm_report_add(report, log, &err)) fail_msg("%s", err.message);
    char *markdown = written(hm_report_write_markdown, report);
    assert_in_range(strlen(markdown), 50000, 60000);
    assert_non_null(strstr(markdown, "*Cut here: an issue takes no more."));
    assert_non_null(strstr(markdown, "| Unexplained |")); // the answers come first
    free(markdown);
    hm_report_close(report);
    unlink(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(length_is_bounded), cmocka_unit_test(markdown_fits_a_comment)};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
