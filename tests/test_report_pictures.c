// The pictures of the page: the whole page is well-formed, names are there once, every picture says what it shows and
// how it is computed, and what is drawn stays bounded.
#include "tests/report_support.h"
#include "tests/seed.h"

#include <ctype.h>
#include <glob.h>
#include <math.h>

enum { DEEPEST = 64, LONGEST = 16 };

static bool is_void(const char *name)
{
    static const char *const names[] = {"meta", "input", "br", "hr", "link", "img", "col", "wbr"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static size_t name_at(const char *text, char out[LONGEST])
{
    size_t n = 0;
    while (n + 1 < LONGEST && (isalnum((unsigned char)text[n]) || text[n] == '-')) {
        out[n] = text[n];
        n++;
    }
    out[n] = 0;
    return n;
}

// The end of a tag: attributes are name="value" or a bare name.
static const char *skip_attributes(const char *at, const char *path)
{
    for (;;) {
        while (isspace((unsigned char)*at)) at++;
        if (*at == '>' || (*at == '/' && at[1] == '>')) return at;
        const char *start = at;
        while (isalnum((unsigned char)*at) || *at == '-' || *at == ':') at++;
        if (at == start) fail_msg("%s: no attribute: %.60s", path, start);
        if (*at != '=') continue;
        if (*++at != '"') fail_msg("%s: an attribute without quotes: %.60s", path, start);
        at = strchr(at + 1, '"');
        if (!at) fail_msg("%s: a value without an end: %.60s", path, start);
        at++;
    }
}

// Elements close in the order in which they opened; what is not ours to close is none of ours to open.
static void check_nesting(const char *html, const char *path)
{
    char open[DEEPEST][LONGEST];
    size_t depth = 0;
    for (const char *at = html; (at = strchr(at, '<')); at++) {
        char name[LONGEST];
        if (strncmp(at, "<!doctype", 9) == 0) continue;
        bool closes = at[1] == '/';
        if (!name_at(at + 1 + closes, name)) fail_msg("%s: no tag: %.60s", path, at);
        const char *end = skip_attributes(at + 1 + closes + strlen(name), path);
        if (closes) {
            if (!depth || strcmp(open[depth - 1], name) != 0)
                fail_msg("%s: </%s> closes %s: %.80s", path, name, depth ? open[depth - 1] : "nothing",
                         at > html + 60 ? at - 60 : at);
            depth--;
        } else if (*end != '/' && !is_void(name)) {
            if (depth == DEEPEST) fail_msg("%s: too deep", path);
            memcpy(open[depth++], name, LONGEST);
        }
        at = end;
        if (!closes && (strcmp(name, "script") == 0 || strcmp(name, "style") == 0)) { // no markup inside
            at = strstr(at, strcmp(name, "script") == 0 ? "</script>" : "</style>");
            assert_non_null(at);
            depth--;
            at = strchr(at, '>');
        }
    }
    if (depth) fail_msg("%s: <%s> is left open", path, open[depth - 1]);
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)); text++) n++;
    return n;
}

// Every id stands once, and every label names one.
static void check_names(const char *html, const char *path)
{
    for (const char *at = html; (at = strstr(at, " id=\"")); at++) {
        char id[128];
        snprintf(id, sizeof id, "%.*s", (int)(strchr(at + 5, '"') + 1 - at), at);
        if (count(html, id) != 1) fail_msg("%s: %zu times%s", path, count(html, id), id);
    }
    for (const char *at = html; (at = strstr(at, "<label for=\"")); at++) {
        char id[128];
        snprintf(id, sizeof id, " id=\"%.*s\"", (int)strcspn(at + 12, "\""), at + 12);
        if (count(html, id) != 1) fail_msg("%s: a label without%s", path, id);
    }
}

static void check_pictures(const char *html, const char *path)
{
    for (const char *at = html; (at = strstr(at, "<svg ")); at++) {
        const char *end = strchr(at, '>');
        bool hidden = strncmp(end - 18, "aria-hidden=\"true\"", 18) == 0;
        if (!hidden && (strncmp(end - 10, "role=\"img\"", 10) != 0 || strncmp(end + 1, "<title>", 7) != 0))
            fail_msg("%s: a picture without a title: %.100s", path, at);
        const char *close = strstr(at, "</svg>");
        for (const char *c = at; c < close; c++)
            if (strncmp(c, "nan", 3) == 0 && !isalpha((unsigned char)c[-1]) && !isalpha((unsigned char)c[3]))
                fail_msg("%s: not a number in a picture: %.60s", path, c);
    }
    for (const char *at = html; (at = strstr(at, "<div class=\"tabs\"")); at++) { // as many panels as buttons
        const char *end = strstr(at + 1, "<div class=\"tabs\"");
        size_t size = end ? (size_t)(end - at) : strlen(at), inputs = 0, tabs = 0;
        for (size_t i = 0; i < size; i++) {
            inputs += strncmp(at + i, "<input type=\"radio\"", 19) == 0;
            tabs += strncmp(at + i, "<div class=\"tab\">", 17) == 0;
        }
        if (inputs != tabs || inputs > 8) fail_msg("%s: %zu buttons, %zu panels", path, inputs, tabs);
    }
}

static void every_page_is_well_formed(void **state)
{
    (void)state;
    static const char *const patterns[] = {"tests/data/logs/good/*.jsonl", "tests/data/reports/[hntc]*.jsonl"};
    size_t pages = 0;
    for (size_t p = 0; p < 2; p++) {
        glob_t found;
        assert_int_equal(glob(patterns[p], 0, NULL, &found), 0);
        for (size_t i = 0; i < found.gl_pathc; i++) {
            struct hm_report *report;
            struct hm_error err;
            assert_int_equal(hm_report_open(&report, &err), HM_OK);
            if (hm_report_add(report, found.gl_pathv[i], &err) == HM_OK) {
                char *html = written(hm_report_write_html, report);
                check_nesting(html, found.gl_pathv[i]);
                check_names(html, found.gl_pathv[i]);
                check_pictures(html, found.gl_pathv[i]);
                free(html);
                pages++;
            }
            hm_report_close(report);
        }
        globfree(&found);
    }
    assert_true(pages >= 20);
}

// What is drawn of a log, with what the figures of its claims take: a log of as many claims as there are rules shows.
static void the_pictures_are_there(void **state)
{
    (void)state;
    static const char *const shown[] = {
        "<h3>Certified by margin</h3>",     "<h3>Requirement curve</h3>", "<h3>Acceptance region</h3>",
        "<h2>The theorem in pictures</h2>", "<h3>Two tokens</h3>",        "<h3>Three tokens</h3>",
        "<h3>What knowing less loses</h3>", "all others, together",       "docs/theory.md \xc2\xa7"};
    struct hm_report *report = report_on("tests/data/logs/good/audit.jsonl", NULL);
    char *html = written(hm_report_write_html, report), *markdown = written(hm_report_write_markdown, report);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (!strstr(html, shown[i])) fail_msg("not on the page: %s", shown[i]);
    size_t panels = count(html, "<h3>Requirement curve</h3>") + count(html, "<h3>Certified by margin</h3>") +
                    count(html, "<h3>Acceptance region</h3>") + count(html, " tokens</h3>") +
                    1; // the table of what less loses
    assert_true(count(html, "<summary>How computed</summary>") >= panels);
    assert_true(count(html, "<h3>Requirement curve</h3>") <= 12 && count(html, "<h3>Acceptance region</h3>") <= 4);
    assert_non_null(strstr(markdown, "### Requirement\n"));
    assert_non_null(strstr(markdown, "### What knowing less loses\n"));
    free(html);
    free(markdown);
    hm_report_close(report);
}

// A log whose numbers contradict each other is drawn without a number that is none, and without anything off its
// picture.
static void nonsense_is_drawn_inside(void **state)
{
    (void)state;
    static const double odd[] = {0, 1e-300, 0.5, 1, 2, 1e300, INFINITY};
    enum { ODD = sizeof odd / sizeof *odd };
    for (size_t i = 0; i < ODD * ODD * ODD; i += test_count(11, 1, 1)) {
        struct hm_report *report = report_on("tests/data/reports/tiny.jsonl", NULL);
        double a = odd[i % ODD], b = odd[i / ODD % ODD], c = odd[i / ODD / ODD];
        for (size_t j = 0; j < report->claim_count; j++)
            for (int side = 0; side < 2; side++) {
                struct hm_regions *r = &report->claims[j].regions;
                r->count[side] = 1;
                r->near[side][0] =
                    (struct hm_region){.k = 1, .m = 1 + (int64_t)(i % 3 ? 0 : INT64_MAX / 2), .certified = side};
                struct hm_region *g = &r->near[side][0];
                for (int d = 0; d < 3; d++)
                    g->distance[d] = (struct hm_ival){b, c}, g->level[d] = (struct hm_ival){a, fmax(a, b)};
                g->edge[0] = (struct hm_ival){fmin(a, 1), fmin(b, 1)};
                g->edge[1] = (struct hm_ival){fmin(c, 1), fmin(c, 1)};
                g->gap = (struct hm_ival){fmin(b, 1), fmin(c, 1)};
                g->water[0] = (struct hm_ival){a, c};
            }
        char *html = written(hm_report_write_html, report);
        check_nesting(html, "odd");
        check_pictures(html, "odd");
        free(html);
        hm_report_close(report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_page_is_well_formed),
                                       cmocka_unit_test(the_pictures_are_there),
                                       cmocka_unit_test(nonsense_is_drawn_inside)};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
