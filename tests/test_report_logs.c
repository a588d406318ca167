// Reports of every golden log, whole and cut after every line, by all three writers; what audits are shown as; what must
// never be on a page.
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_log_and_every_cut)};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
