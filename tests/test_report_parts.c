// The parts of a report: numbers that round to the honest side, histograms, files that appear whole, inert text.
#include "reports/figures.h"
#include "base/histogram.h"
#include "reports/number.h"
#include "reports/output.h"

#include "base/file.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void numbers_are_written(void **state)
{
    (void)state;
    assert_string_equal(hm_number_down(0.1, 3).text, "0.1"); // the double is above 1/10
    assert_string_equal(hm_number_up(0.1, 3).text, "0.101");
    assert_string_equal(hm_number_down(1.0 / 3, 4).text, "0.3333");
    assert_string_equal(hm_number_up(1.0 / 3, 4).text, "0.3334");
    assert_string_equal(hm_number_down(-1.0 / 3, 4).text, "-0.3334");
    assert_string_equal(hm_number_near(1234567, 4).text, "1235000");
    assert_string_equal(hm_number_near(12345678, 4).text, "1.235e7");
    assert_string_equal(hm_number_down(0.00012345, 3).text, "0.000123");
    assert_string_equal(hm_number_down(0.000012345, 3).text, "1.23e-5");
    assert_string_equal(hm_number_up(9.999, 2).text, "10");
    assert_string_equal(hm_number_near(0, 3).text, "0");
    assert_string_equal(hm_number_up(INFINITY, 3).text, "inf");
    assert_string_equal(hm_number_json_down(INFINITY).text, "\"inf\"");
    assert_string_equal(hm_number_percent(999999, 1000000).text, "99.9%"); // not all
    assert_string_equal(hm_number_percent(1, 1000000).text, "0.1%");       // not none
    assert_string_equal(hm_number_percent(3, 3).text, "100.0%");
    assert_string_equal(hm_number_percent(0, 3).text, "0.0%");
    assert_string_equal(hm_number_percent(0, 0).text, "n/a");
    assert_string_equal(hm_number_ratio(5, 3, 3).text, "1.667");
    assert_string_equal(hm_number_ratio(1, 0, 3).text, "n/a");
    assert_string_equal(hm_number_count(1234567).text, "1,234,567");
    assert_string_equal(hm_number_count(999).text, "999");
}

// Read back exactly, a lower bound is at most the number and an upper bound at least it, and both are close.
static void bounds_stay_bounds(void **state)
{
    (void)state;
    uint64_t bits = 2463534242u;
    for (int i = 0; i < 50000; i++) {
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        double value = ldexp((double)(bits >> 11), (int)(bits % 80) - 100);
        int digits = 1 + i % 17;
        double down = strtod(hm_number_down(value, digits).text, NULL),
               up = strtod(hm_number_up(value, digits).text, NULL);
        if (!(down <= value && value <= up)) fail_msg("%a: %a .. %a at %d digits", value, down, up, digits);
        assert_true(up - down <= 2 * value * pow(10, 1 - digits));
    }
}

static void histograms_bracket_quantiles(void **state)
{
    (void)state;
    static struct hm_histogram h;
    for (int i = 1; i <= 1000; i++) hm_histogram_add(&h, i / 64.0);
    hm_histogram_add(&h, INFINITY);
    hm_histogram_add(&h, 0);
    hm_histogram_add(&h, NAN); // counts as nothing
    assert_int_equal(h.count, 1003);
    assert_int_equal(h.infinite, 1);
    assert_int_equal(h.below, 2);
    for (uint64_t rank = 2; rank < 1002; rank += 37) { // the value of this rank is (rank - 1) / 64
        double value = (double)(rank - 1) / 64, lower = hm_histogram_lower(&h, rank),
               upper = hm_histogram_upper(&h, rank);
        assert_true(lower <= value && value <= upper);
        assert_true(upper <= lower * 1.0313);
    }
    assert_true(hm_histogram_lower(&h, 1002) == INFINITY && hm_histogram_upper(&h, 1002) == INFINITY);
    for (size_t bin = 0; bin < HM_HISTOGRAM_BINS; bin += 13) { // exact at every edge
        uint64_t expected = 1;
        for (int i = 1; i <= 1000; i++) expected += i / 64.0 >= hm_histogram_edge(bin);
        assert_int_equal(hm_histogram_at_least(&h, bin), expected);
    }
    assert_int_equal(hm_histogram_rank(&h, 50, 100), 501);
}

static void sums_enclose(void **state)
{
    (void)state;
    struct hm_sum sum = {0};
    for (int i = 0; i < 1000; i++) hm_sum_add(&sum, (struct hm_ival){0.1, 0.1});
    assert_true(sum.lo < 100.0000000000000056 && sum.hi > 100.0000000000000055 &&
                sum.hi - sum.lo < 1e-10); // 1000 times the double 0.1
    assert_int_equal(sum.count, 1000);
    struct hm_sum whole = {0}; // sums of whole numbers stay exact
    for (int i = 0; i < 1000; i++) hm_sum_add(&whole, (struct hm_ival){i % 7, i % 7});
    assert_true(whole.lo == 2997 && whole.hi == 2997);
    struct hm_sum up = {0}, down = {0}; // one step that rounds up, one that rounds down
    hm_sum_add(&up, (struct hm_ival){1, 1});
    hm_sum_add(&up, (struct hm_ival){0x1.8p-53, 0x1.8p-53});
    assert_true(up.lo <= 1 && up.hi >= 1 + 0x1p-52);
    hm_sum_add(&down, (struct hm_ival){1, 1});
    hm_sum_add(&down, (struct hm_ival){0x1p-60, 0x1p-60});
    assert_true(down.lo <= 1 && down.hi > 1);
}

// Means: outward where the division rounds, exact where it does not; the least double never stands for 0.
static void means_are_exact_or_outward(void **state)
{
    (void)state;
    struct hm_sum zero = {0}, one = {0}, third = {0}, far = {0};
    for (int i = 0; i < 64; i++) {
        hm_sum_add(&zero, (struct hm_ival){0, 0});
        hm_sum_add(&one, (struct hm_ival){1, 1});
    }
    assert_true(hm_sum_mean_lower(&zero) == 0 && hm_sum_mean_upper(&zero) == 0);
    assert_true(hm_sum_mean_lower(&one) == 1 && hm_sum_mean_upper(&one) == 1);
    for (int i = 0; i < 3; i++) hm_sum_add(&third, (struct hm_ival){i == 0, i == 0});
    double lower = hm_sum_mean_lower(&third), upper = hm_sum_mean_upper(&third);
    assert_true(fma(lower, 3, -1) < 0 && fma(upper, 3, -1) > 0 && nextafter(lower, 1) == upper);
    for (int i = 0; i < 3; i++) hm_sum_add(&far, (struct hm_ival){i, INFINITY});
    assert_true(hm_sum_mean_lower(&far) == 1 && hm_sum_mean_upper(&far) == INFINITY);
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 20000; i++) { // against the remainder of the division, for sums and counts of every size
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        struct hm_sum any = {.count = 1 + (bits >> 8) % 100000};
        any.lo = any.hi = ldexp((double)(bits >> (11 + bits % 40)), -50);
        double n = (double)any.count, lo = hm_sum_mean_lower(&any), hi = hm_sum_mean_upper(&any);
        if (!(fma(lo, n, -any.lo) <= 0 && fma(hi, n, -any.hi) >= 0 && hi <= nextafter(lo, INFINITY)))
            fail_msg("%a / %g: %a .. %a", any.lo, n, lo, hi);
        assert_true((lo == hi) == (fma(lo, n, -any.lo) == 0));
    }
}

// No quantile lies outside the least and the largest value, which are exact.
static void quantiles_stay_between_least_and_most(void **state)
{
    (void)state;
    uint64_t bits = 362436069u;
    for (int round = 0; round < 200; round++) {
        static struct hm_histogram h;
        h = (struct hm_histogram){0};
        for (int i = 0; i <= round % 9; i++) {
            bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
            hm_histogram_add(&h, ldexp((double)(bits >> 11), -53 + (int)(bits % 90) - 65)); // past both ends as well
        }
        for (uint64_t rank = 0; rank < h.count; rank++) {
            double lower = hm_histogram_lower(&h, rank), upper = hm_histogram_upper(&h, rank);
            assert_true(h.least <= lower && lower <= upper && upper <= h.most);
        }
    }
}

static void words_follow_their_numbers(void **state)
{
    (void)state;
    assert_string_equal(hm_number_of(1, "sequence").text, "1 sequence");
    assert_string_equal(hm_number_of(0, "sequence").text, "0 sequences");
    assert_string_equal(hm_number_of(1234, "row").text, "1,234 rows");
    assert_string_equal(hm_number_of(UINT64_MAX, "accepted draft token").text,
                        "18,446,744,073,709,551,615 accepted draft tokens");
    assert_string_equal(hm_number_share(0, 5, 5).text, "all vacuous");
    assert_string_equal(hm_number_share(0, 5, 4).text, "0.0%");
    assert_string_equal(hm_number_share(0, 0, 0).text, "n/a");
}

static char *written(void (*write)(struct hm_output *, const char *), const char *text)
{
    char path[] = "/tmp/hallmark-output-XXXXXX", *content;
    struct hm_output *o;
    struct hm_error err;
    size_t size;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(hm_output_open(path, &o, &err), HM_OK);
    write(o, text);
    assert_int_equal(hm_output_close(o, &err), HM_OK);
    assert_int_equal(hm_file_read(path, 1 << 20, &content, &size, &err), HM_OK);
    unlink(path);
    return content;
}

static void text_is_inert(void **state)
{
    (void)state;
    static const struct {
        void (*write)(struct hm_output *, const char *);
        const char *text, *expected;
    } cases[] = {
        {hm_put_html, "</script><a b=\"c\" d='e'>&", "&lt;/script&gt;&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;"},
        {hm_put_html, "a\x01\x7f\n\tb", "a\xe2\x90\x81\xe2\x90\xa1\n\tb"},
        {hm_put_html, "x\xe2\x80\xaey", "x[U+202E]y"},
        {hm_put_html, "\xff", "\xef\xbf\xbd"},
        {hm_put_json, "</script>\"\\\n&'", "\"\\u003c/script\\u003e\\\"\\\\\\u000a\\u0026\\u0027\""},
        {hm_put_json, "\xe2\x80\xa8\xf0\x9f\x98\x80", "\"\\u2028\xf0\x9f\x98\x80\""},
        {hm_put_markdown, "a|b`c<d>\n@x #1 [l](u)",
         "a&#124;b&#96;c&#60;d&#62;\xe2\x86\xb5&#64;x &#35;1 &#91;l&#93;(u)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *found = written(cases[i].write, cases[i].text);
        assert_string_equal(found, cases[i].expected);
        free(found);
    }
}

static void put_unfolded(struct hm_output *o, const char *text)
{
    struct hm_error err;
    assert_int_equal(hm_output_fold(o, 1 << 20, &err), HM_OK);
    hm_put(o, text);
}

#define WORD "abcdefghijklmnopqrstuvwxyzabcdefghijklmn" // 40 characters
#define LESS "\xc3\xa9" "bcdefghijklmnopqrstuvwxyzabcdefghijklm" // 39, in 40 bytes

// Prose of Markdown keeps to 80 columns, and no line of it becomes a list, a quotation or a table by being folded.
static void prose_is_folded(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", ""},
        {"no end of line", "no end of line"},
        {"\n\n", "\n\n"},
        {WORD " " WORD "\n", WORD "\n" WORD "\n"},                      // 81 columns
        {WORD " " LESS "\n" WORD " " LESS, WORD " " LESS "\n" WORD " " LESS}, // 80
        {WORD WORD WORD " a\n", WORD WORD WORD "\na\n"},                // no space before column 80
        {WORD WORD WORD "\n", WORD WORD WORD "\n"},
        {"| " WORD " " WORD " |\n## " WORD " " WORD "\n", "| " WORD " " WORD " |\n## " WORD " " WORD "\n"},
        {"> a " WORD " " WORD " b " WORD " " WORD, "> a " WORD "\n> " WORD " b\n> " WORD "\n> " WORD},
        {WORD " " LESS " x y", WORD " " LESS "\nx y"},
        {WORD " " LESS " - y", WORD "\n" LESS " - y"},
        {WORD " " LESS " * y", WORD "\n" LESS " * y"},
        {WORD " " LESS " > y", WORD "\n" LESS " > y"},
        {WORD " " LESS " 12. y", WORD "\n" LESS " 12. y"},
        {WORD " " LESS " 1.2 y", WORD " " LESS "\n1.2 y"},
        {WORD " " LESS " **b** y", WORD " " LESS "\n**b** y"},
        {WORD " " LESS "  - y", WORD "\n" LESS "  - y"},
        {"a `" WORD " b` " WORD, "a `" WORD " b`\n" WORD},
        {"a " WORD " `" "b c d e f g h i j k l m n o p q r s t` z", "a " WORD "\n`b c d e f g h i j k l m n o p q r s t` z"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *content = written(put_unfolded, cases[i].text);
        assert_string_equal(content, cases[i].expected);
        free(content);
    }
}

static void files_appear_whole_or_not_at_all(void **state)
{
    (void)state;
    char folder[] = "/tmp/hallmark-whole-XXXXXX", path[64], *content;
    struct hm_output *o;
    struct hm_error err;
    struct stat st;
    size_t size;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/report", folder);
    assert_int_equal(hm_output_open(path, &o, &err), HM_OK);
    hm_put(o, "old");
    assert_int_not_equal(stat(path, &st), 0); // not before it is closed
    assert_int_equal(hm_output_close(o, &err), HM_OK);
    assert_int_equal(hm_output_open(path, &o, &err), HM_OK);
    hm_put(o, "new and longer");
    hm_output_abandon(o);
    assert_int_equal(hm_file_read(path, 100, &content, &size, &err), HM_OK);
    assert_string_equal(content, "old");
    free(content);
    unlink(path);
    assert_int_equal(rmdir(folder), 0); // no temporary file is left
    assert_int_equal(hm_output_open(path, &o, &err), HM_IO);
    assert_non_null(strstr(err.message, "cannot write: No such file or directory"));
    assert_int_equal(hm_output_open("tests", &o, &err), HM_IO);
    assert_string_equal(err.message, "tests: cannot write: it is a folder");
    assert_int_equal(hm_output_open("/dev/full", &o, &err), HM_OK);
    hm_put(o, "more than nothing");
    assert_int_equal(hm_output_close(o, &err), HM_IO);
    assert_string_equal(err.message, "/dev/full: cannot write: No space left on device");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_written),
                                       cmocka_unit_test(bounds_stay_bounds),
                                       cmocka_unit_test(histograms_bracket_quantiles),
                                       cmocka_unit_test(sums_enclose),
                                       cmocka_unit_test(means_are_exact_or_outward),
                                       cmocka_unit_test(quantiles_stay_between_least_and_most),
                                       cmocka_unit_test(words_follow_their_numbers),
                                       cmocka_unit_test(text_is_inert),
                                       cmocka_unit_test(prose_is_folded),
                                       cmocka_unit_test(files_appear_whole_or_not_at_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
